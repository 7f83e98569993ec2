//! zarrs-oracle - the crate `zarrs` as a program, for what its Python package cannot read or
//! write. It has no opinion of its own: documents and elements go through it as they are.
//!
//!     zarrs-oracle create DIR < document     checks the document, writes it as zarrs does
//!     zarrs-oracle info DIR                  the document as zarrs understands it, its fill value
//!     zarrs-oracle read DIR [BOX] > elements
//!     zarrs-oracle write DIR [BOX] < elements
//!     zarrs-oracle fills < {"data_type": ..., "fill_values": [...]}
//!                                            what each means and how zarrs writes it, or null
//!     zarrs-oracle nodes DIR                 the tree by its consolidated metadata alone
//!     zarrs-oracle consolidate DIR
//!     zarrs-oracle version
//!
//! A BOX is `0:4,2:3`: begin and end of each dimension. Elements are in C order and native byte
//! order, as one block, numbers in it 64 bits wide and native:
//!
//!     F size bytes                       of fixed size
//!     V n n+1 offsets, bytes             of variable length
//!     O n n bytes of the mask, block     that may be missing: 1 is valid
//!
//! A failure is a line on stderr and exit code 1.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use zarrs::array::{
    Array, ArrayBytes, ArrayBytesOffsets, ArrayMetadata, ArrayMetadataOptions, ArraySubset,
    DataType,
};
use zarrs::config::{UseConsolidatedMetadata, global_config_mut};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::Group;
use zarrs::metadata::v3::MetadataV3;
use zarrs::metadata_ext::group::consolidated_metadata::ConsolidatedMetadata;

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("zarrs-oracle: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["create", folder] => create(folder),
        ["info", folder] => info(folder),
        ["read", folder] => read(folder, None),
        ["read", folder, area] => read(folder, Some(area)),
        ["write", folder] => write(folder, None),
        ["write", folder, area] => write(folder, Some(area)),
        ["fills"] => fills(),
        ["nodes", folder] => nodes(folder),
        ["consolidate", folder] => consolidate(folder),
        ["version"] => say(VERSION),
        _ => Err("see the head of main.rs for the commands".into()),
    }
}

fn say(text: impl Display) -> Result<()> {
    Ok(writeln!(io::stdout(), "{text}")?)
}

// ---- arrays ---------------------------------------------------------------------------------

fn open(folder: &str) -> Result<Array<FilesystemStore>> {
    Ok(Array::open(Arc::new(FilesystemStore::new(folder)?), "/")?)
}

/// Only what the document itself says: zarrs would add its name and version to the attributes.
fn plain() -> ArrayMetadataOptions {
    ArrayMetadataOptions::default().with_include_zarrs_metadata(false)
}

fn create(folder: &str) -> Result<()> {
    let document = ArrayMetadata::try_from(io::read_to_string(io::stdin())?.as_str())?;
    let store = Arc::new(FilesystemStore::new(folder)?);
    Ok(Array::new_with_metadata(store, "/", document)?.store_metadata_opt(&plain())?)
}

fn info(folder: &str) -> Result<()> {
    let array = open(folder)?;
    let facts = json!({
        "document": array.metadata_opt(&plain()),
        "fill_value": array.fill_value().as_ne_bytes(),
        "chunk_counts": array.chunk_grid_shape(),
    });
    say(facts)
}

fn area_of(array: &Array<FilesystemStore>, area: Option<&str>) -> Result<ArraySubset> {
    let Some(area) = area else {
        return Ok(array.subset_all());
    };
    let mut ranges = Vec::new();
    for range in area.split(',') {
        let (begin, end) = range.split_once(':').ok_or("a range without a colon")?;
        ranges.push(begin.parse()?..end.parse()?);
    }
    Ok(ArraySubset::new_with_ranges(&ranges))
}

fn read(folder: &str, area: Option<&str>) -> Result<()> {
    let array = open(folder)?;
    let elements: ArrayBytes = array.retrieve_array_subset(&area_of(&array, area)?)?;
    let mut out = io::stdout().lock();
    put_block(&mut out, &elements)?;
    Ok(out.flush()?)
}

fn write(folder: &str, area: Option<&str>) -> Result<()> {
    let array = open(folder)?;
    let mut elements = Vec::new();
    io::stdin().read_to_end(&mut elements)?;
    let mut rest = &elements[..];
    let block = get_block(&mut rest)?;
    if !rest.is_empty() {
        return Err("bytes behind the elements".into());
    }
    Ok(array.store_array_subset(&area_of(&array, area)?, block)?)
}

// ---- elements -------------------------------------------------------------------------------

fn put_number(out: &mut impl Write, number: usize) -> Result<()> {
    Ok(out.write_all(&(number as u64).to_ne_bytes())?)
}

fn put_block(out: &mut impl Write, elements: &ArrayBytes) -> Result<()> {
    match elements {
        ArrayBytes::Fixed(bytes) => {
            out.write_all(b"F")?;
            put_number(out, bytes.len())?;
            out.write_all(bytes)?;
        }
        ArrayBytes::Variable(elements) => {
            out.write_all(b"V")?;
            put_number(out, elements.offsets().len() - 1)?;
            for offset in elements.offsets().iter() {
                put_number(out, *offset)?;
            }
            out.write_all(&elements.bytes()[..elements.offsets().last()])?;
        }
        ArrayBytes::Optional(elements) => {
            out.write_all(b"O")?;
            put_number(out, elements.num_elements())?;
            out.write_all(elements.mask())?;
            put_block(out, elements.data())?;
        }
    }
    Ok(())
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Result<&'a [u8]> {
    Ok(rest.split_off(..size).ok_or("elements end early")?)
}

fn get_number(rest: &mut &[u8]) -> Result<usize> {
    Ok(u64::from_ne_bytes(take(rest, 8)?.try_into()?) as usize)
}

fn get_block<'a>(rest: &mut &'a [u8]) -> Result<ArrayBytes<'a>> {
    let kind = take(rest, 1)?[0];
    let n = get_number(rest)?;
    match kind {
        b'F' => Ok(ArrayBytes::new_flen(take(rest, n)?)),
        b'V' => {
            let offsets = (0..=n)
                .map(|_| get_number(rest))
                .collect::<Result<Vec<_>>>()?;
            let offsets = ArrayBytesOffsets::new(offsets)?;
            Ok(ArrayBytes::new_vlen(take(rest, offsets.last())?, offsets)?)
        }
        b'O' => {
            let mask = take(rest, n)?;
            Ok(get_block(rest)?.with_optional_mask(mask))
        }
        _ => Err("a block that is none of F, V and O".into()),
    }
}

// ---- fill values ----------------------------------------------------------------------------

fn fill(data_type: &DataType, value: &Value) -> Result<Value> {
    let value = data_type.fill_value_v3(&serde_json::from_value(value.clone())?)?;
    Ok(json!({
        "bytes": value.as_ne_bytes(),
        "json": data_type.metadata_fill_value(&value)?,
    }))
}

fn fills() -> Result<()> {
    let input: Value = serde_json::from_reader(io::stdin())?;
    let data_type: MetadataV3 = serde_json::from_value(input["data_type"].clone())?;
    let data_type = DataType::from_metadata(&data_type)?;
    let values = input["fill_values"].as_array().ok_or("no fill_values")?;
    let found: Vec<Value> = values
        .iter()
        .map(|value| fill(&data_type, value).unwrap_or(Value::Null))
        .collect();
    say(json!(found))
}

// ---- hierarchies ----------------------------------------------------------------------------

fn root(folder: &str, how: UseConsolidatedMetadata) -> Result<Group<FilesystemStore>> {
    global_config_mut().set_use_consolidated_metadata(how);
    Ok(Group::open(Arc::new(FilesystemStore::new(folder)?), "/")?)
}

fn nodes(folder: &str) -> Result<()> {
    let found: HashMap<_, _> = root(folder, UseConsolidatedMetadata::Must)?
        .traverse()?
        .into_iter()
        .map(|(path, metadata)| (path.as_str().to_string(), metadata))
        .collect();
    say(json!(found))
}

fn consolidate(folder: &str) -> Result<()> {
    let mut group = root(folder, UseConsolidatedMetadata::Never)?;
    let metadata = group
        .traverse()?
        .into_iter()
        .map(|(path, metadata)| (path.as_str().trim_start_matches('/').to_string(), metadata))
        .collect();
    group.set_consolidated_metadata(Some(ConsolidatedMetadata {
        metadata,
        ..Default::default()
    }));
    Ok(group.store_metadata()?)
}
