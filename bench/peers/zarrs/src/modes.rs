//! Each mode, as a program that uses zarrs would do it.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use unsafe_cell_slice::UnsafeCellSlice;
use zarrs::array::{
    Array, ArrayBytes, ArrayBytesDecodeIntoTarget, ArrayBytesFixedDisjointView, ArrayShardedExt, ArrayShardedReadableExt,
    ArrayShardedReadableExtCache, ArraySubset, CodecOptions,
};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::Group;

use crate::memory::{self, Random};
use crate::slow::Slow;
use crate::{Job, Result};

type Local = Array<FilesystemStore>;

const ROWS: u64 = 10; // that one append adds

pub struct Modes<'a> {
    job: &'a Job,
    array: Option<Local>,
    slow: Option<Array<Slow>>,
    target: Option<Local>,
    whole: Option<&'static mut [u8]>, // the output that is resident
    source: Option<Vec<u8>>,          // of writes
    options: CodecOptions,
    sum: u64,
}

fn open(place: &str) -> Result<Local> {
    Ok(Array::open(Arc::new(FilesystemStore::new(place)?), "/")?)
}

fn open_slow(place: &str, delay: u64) -> Result<Array<Slow>> {
    let slow = Slow { inner: FilesystemStore::new(place)?, delay: Duration::from_millis(delay) };
    Ok(Array::open(Arc::new(slow), "/")?)
}

fn array_bytes(array: &Local) -> usize {
    array.subset_all().num_elements_usize() * array.data_type().fixed_size().expect("elements of one size")
}

fn read_into(array: &Local, out: &mut [u8]) -> Result<()> {
    let item = array.data_type().fixed_size().expect("elements of one size");
    let cell = UnsafeCellSlice::new(out);
    let mut view = unsafe { ArrayBytesFixedDisjointView::new(cell, item, array.shape(), array.subset_all())? };
    Ok(array.retrieve_array_subset_into(&array.subset_all(), ArrayBytesDecodeIntoTarget::Fixed(&mut view))?)
}

fn each(callers: usize, n: usize, f: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let run = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                break;
            }
            f(i);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..callers {
            scope.spawn(run);
        }
        run();
    });
}

fn chunk_place(mut i: usize, counts: &[u64]) -> Vec<u64> {
    let mut place = vec![0; counts.len()];
    for d in (0..counts.len()).rev() {
        place[d] = i as u64 % counts[d];
        i /= counts[d] as usize;
    }
    place
}

impl<'a> Modes<'a> {
    pub fn begin(job: &'a Job) -> Result<Modes<'a>> {
        let callers = job.number("callers", 1);
        let cores = std::thread::available_parallelism()?.get();
        if !job.text("warmup").is_empty() {
            let array = open(job.text("warmup"))?;
            let _: ArrayBytes = array.retrieve_array_subset(&array.subset_all())?;
        }
        let options = CodecOptions::default().with_concurrent_target((cores / callers).max(1));
        Ok(Modes { job, array: None, slow: None, target: None, whole: None, source: None, options, sum: 0 })
    }

    pub fn before(&mut self) -> Result<()> {
        let delay = self.job.number("delay", 0) as u64;
        self.sum = 0;
        if delay > 0 {
            self.slow = Some(open_slow(&self.job.place, delay)?);
        } else if !matches!(self.job.mode.as_str(), "open" | "list" | "nodes" | "append") {
            self.array = Some(open(&self.job.place)?);
        }
        if !self.job.text("to").is_empty() {
            self.target = Some(open(self.job.text("to"))?);
        }
        match (self.job.mode.as_str(), &self.array) {
            ("read", Some(array)) if self.job.text("out") == "warm" && self.whole.is_none() => {
                let block = memory::map(array_bytes(array), true);
                block.fill(1);
                self.whole = Some(block);
            }
            ("write", Some(array)) if self.source.is_none() => {
                let data: ArrayBytes = array.retrieve_array_subset(&array.subset_all())?;
                self.source = Some(data.into_fixed()?.into_owned());
            }
            _ => {}
        }
        Ok(())
    }

    pub fn after(&self) -> u64 {
        self.sum
    }

    /// What it took, if the time ends before the checksum.
    pub fn run(&mut self) -> Result<Option<Duration>> {
        match self.job.mode.as_str() {
            "read" => return self.read().map(Some),
            "write" => return self.write().map(Some),
            "units" if !self.job.numbers("region").is_empty() => self.inner_chunks(),
            "units" | "round" => self.chunks(),
            "crops" | "planes" => self.parts()?,
            "append" => self.append()?,
            "strings" => return self.strings().map(Some),
            "open" => {
                for _ in 0..self.job.number("n", 1) {
                    self.sum += open(&self.job.place)?.shape()[0];
                }
            }
            "list" => {
                let store = Arc::new(FilesystemStore::new(&self.job.place)?);
                self.sum = Group::open(store, "/")?.child_arrays()?.len() as u64;
            }
            "nodes" => {
                let store = Arc::new(FilesystemStore::new(&self.job.place)?);
                for i in 0..self.job.number("n", 1) {
                    self.sum += Array::open(store.clone(), &format!("/a{i:05}"))?.shape()[0];
                }
            }
            mode => return Err(format!("{mode}: no such mode").into()),
        }
        Ok(None)
    }

    fn read(&mut self) -> Result<Duration> {
        let start = Instant::now();
        if let Some(slow) = &self.slow {
            let data: ArrayBytes = slow.retrieve_array_subset(&slow.subset_all())?;
            let took = start.elapsed();
            self.sum = memory::full_sum(&data.into_fixed()?);
            return Ok(took);
        }
        let array = self.array.as_ref().expect("an array");
        match self.job.text("out") {
            "warm" => {
                let out = self.whole.as_mut().expect("an output");
                read_into(array, out)?;
                let took = start.elapsed();
                self.sum = memory::full_sum(out);
                Ok(took)
            }
            "aligned" => {
                let out = memory::map(array_bytes(array), false);
                read_into(array, out)?;
                let took = start.elapsed();
                self.sum = memory::full_sum(out);
                memory::unmap(out);
                Ok(took)
            }
            _ => {
                let data: ArrayBytes = array.retrieve_array_subset(&array.subset_all())?;
                let took = start.elapsed();
                self.sum = memory::full_sum(&data.into_fixed()?);
                Ok(took)
            }
        }
    }

    fn write(&mut self) -> Result<Duration> {
        let target = self.target.as_ref().expect("a target");
        let start = Instant::now();
        let data = ArrayBytes::from(self.source.as_ref().expect("a source").as_slice());
        target.store_array_subset(&target.subset_all(), data)?;
        Ok(start.elapsed())
    }

    /// Chunks of the array's grid; mode `round` writes them, too.
    fn chunks(&mut self) {
        let array = self.array.as_ref().expect("an array");
        let counts = array.chunk_grid_shape().to_vec();
        let sum = AtomicU64::new(0);
        each(self.job.number("callers", 1), counts.iter().product::<u64>() as usize, |i| {
            let place = chunk_place(i, &counts);
            let data: ArrayBytes = array.retrieve_chunk_opt(&place, &self.options).expect("a chunk");
            let data = data.into_fixed().expect("elements of one size");
            sum.fetch_add(memory::sparse_sum(&data), Ordering::Relaxed);
            if let Some(target) = &self.target {
                target.store_chunk_opt(&place, ArrayBytes::from(data), &self.options).expect("a chunk written");
            }
        });
        self.sum = sum.into_inner();
    }

    /// Inner chunks, with zarrs's own cache of shard indexes.
    fn inner_chunks(&mut self) {
        let array = self.array.as_ref().expect("an array");
        let counts = array.subchunk_grid_shape().to_vec();
        let (sum, cache) = (AtomicU64::new(0), ArrayShardedReadableExtCache::new(array));
        each(self.job.number("callers", 1), counts.iter().product::<u64>() as usize, |i| {
            let place = chunk_place(i, &counts);
            let data: ArrayBytes = array.retrieve_subchunk_opt(&cache, &place, &self.options).expect("an inner chunk");
            sum.fetch_add(memory::sparse_sum(&data.into_fixed().expect("elements of one size")), Ordering::Relaxed);
        });
        self.sum = sum.into_inner();
    }

    fn parts(&mut self) -> Result<()> {
        let array = self.array.as_ref().expect("an array");
        let axis = self.job.number("axis", 0);
        let extent: Vec<u64> = if self.job.mode == "crops" {
            self.job.numbers("region")
        } else {
            array.shape().iter().enumerate().map(|(d, n)| if d == axis { 1 } else { *n }).collect()
        };
        let (mut random, cache) = (Random(1), ArrayShardedReadableExtCache::new(array));
        for _ in 0..self.job.number("n", 1) {
            let below = |(n, e): (&u64, &u64)| if n > e { random.below(n - e + 1) } else { 0 };
            let origin: Vec<u64> = array.shape().iter().zip(&extent).map(below).collect();
            let subset = ArraySubset::new_with_start_shape(origin, extent.clone())?;
            let data: ArrayBytes = if cache.array_is_sharded() {
                array.retrieve_array_subset_sharded_opt(&cache, &subset, &self.options)?
            } else {
                array.retrieve_array_subset(&subset)?
            };
            self.sum = self.sum.wrapping_add(memory::sparse_sum(&data.into_fixed()?));
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        let target = self.target.as_mut().expect("a target");
        let row = target.shape()[1];
        for i in 0..self.job.number("n", 1) as u64 {
            let slab: Vec<f32> = (0..ROWS * row).map(|k| ((i * ROWS * row + k) / 8) as f32).collect();
            target.set_shape(vec![ROWS * (i + 1), row])?;
            target.store_array_subset(&ArraySubset::new_with_start_shape(vec![ROWS * i, 0], vec![ROWS, row])?, slab.as_slice())?;
            target.store_metadata()?;
        }
        Ok(())
    }

    fn strings(&mut self) -> Result<Duration> {
        let array = self.array.as_ref().expect("an array");
        let start = Instant::now();
        let data: ArrayBytes = array.retrieve_array_subset(&array.subset_all())?;
        let took = start.elapsed();
        let (bytes, _) = data.into_variable()?.into_parts();
        self.sum = bytes.len() as u64;
        Ok(took)
    }
}
