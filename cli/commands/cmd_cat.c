/*
 * commands/cmd_cat.c - zarrc cat and zarrc export: write elements to stdout or to a file.
 * data/dump.c has the formats.
 */
#include "cf/cf.h"
#include "data/data.h"
#include "node/work.h"

#include <string.h>

/* What both commands do with damage; lost: becomes true if some was skipped. */
#define LOST_OPTION                                                                      \
    {                                                                                    \
        "lost", 0, 0, "WORD", "nan|fill",                                                \
            "what elements become that --skip-damaged leaves out: NaN if the data type " \
            "has one, else the fill value; or always the fill value (default: nan)"      \
    }
static int skip_damage(struct cli *cli, struct cli_dump *dump, bool *lost)
{
    const char *word = cli_text(cli, "lost");

    dump->lost = cli_flag(cli, "skip-damaged") ? lost : NULL;
    dump->lost_fill = word && *word == 'f';
    if (word && !dump->lost)
        return cli_error(cli, CLI_USAGE, NULL, "--lost requires --skip-damaged");
    if (dump->lost && cli_missing_is_error(cli))
        return cli_error(cli, CLI_USAGE, NULL,
                         "--skip-damaged and --missing-chunks=error exclude each other");
    return CLI_OK;
}

static int run_cat(struct cli *cli)
{
    bool lost = false;
    struct cli_node node = {0};
    struct cli_dump dump = {.cli = cli, .node = &node};
    int rc;

    dump.format = cli_text(cli, "format");
    dump.wrap_json = cli->json;
    if (!dump.format)
        dump.format = "text";
    if (cli->json && cli_text(cli, "format") && strcmp(dump.format, "json") != 0)
        return cli_error(cli, CLI_USAGE, NULL, "--json requires --format=json");
    if (cli->json)
        dump.format = "json";
    rc = skip_damage(cli, &dump, &lost);
    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &node);
    if (!rc && dump.lost)
        rc = cli_salvage_open(cli, &node);
    if (!rc)
        rc = cli_dump(&dump);
    cli_node_close(&node);
    return rc ? rc : lost ? CLI_LOST : CLI_OK;
}

static const char formats_about[] =
    "Writes the elements of an array or of a region in one of these formats. text: "
    "numbers in columns, one line for each row, planes one after the other. csv: rows of "
    "a 1-D or 2-D array. npy: a NumPy file. raw: only the elements, little-endian: bool "
    "as one byte, complex as two floats, U as UTF-32, S padded with NUL, dates and times "
    "as int64. elements: one element a line, as the v3 format spells a fill value: NaN "
    "as \"NaN\" (other NaNs as \"0x...\"), text as a JSON string, bytes as a base64 "
    "string, dates as an integer or \"NaT\", structs as an object of their fields. json: "
    "nested lists of such elements.\n\n"
    "--decode, or ZARRC_DECODE=1 in the environment, writes values as xarray.decode_cf() "
    "makes them. Integers with missing values become floats, and missing values NaN. In "
    "text, csv, elements and json, dates are like 2003-07-16T12:00:00, and flags become "
    "their flag_meanings, joined by |. npy and raw have datetime64[us], for the "
    "Gregorian calendar only; stored datetime64 stays as it is. Bytes (S) become text in "
    "UTF-8, in npy and raw they stay bytes. Single bytes whose last dimension is called "
    "like string8 or nchar, or that have the attribute _Encoding, are joined along it. "
    "Unlike in xarray, values outside of valid_range, valid_min or valid_max are "
    "missing, too.\n\n"
    "Elements are in C order. Memory does not grow with the array; --mem limits it. "
    "--memory reads into the memory of a device, and copies from there.\n\n"
    "--skip-damaged reads the rest of an array of which some chunks are damaged. Each "
    "region that is lost is one line on stderr (with --json, an object \"lost\" with "
    "node, region and reason), and the exit code is 8. The smallest region is a chunk; "
    "if the index of a shard cannot be decoded, it is the shard. Network, permissions "
    "and limits stay errors.";

static const struct cli_option cat_options[] = {
    {"format", 'F', 0, "FORMAT", CLI_DUMP_FORMATS, "output format (default: text)"},
    CLI_FIELD_OPTION,
    CLI_NEAREST_OPTION,
    CLI_DECODE_OPTION,
    CLI_MEMORY_OPTION,
    CLI_TRUST_OPTION,
    CLI_MISSING_OPTION,
    CLI_SKIP_DAMAGED_OPTION,
    LOST_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example cat_examples[] = {
    {"zarrc cat 'x.zarr/temp[0,:5,:5]'", "A corner of the first plane as text."},
    {"zarrc cat --format=csv 'x.zarr/temp[0]' > t0.csv", "One plane for a spreadsheet."},
    {"zarrc cat 'climate.zarr/tas[time@2003-07, lat@35:70, lon@-10:40]'",
     "July 2003 over Europe, by the coordinates of the array."},
    {"zarrc cat --decode --format=csv 'climate.zarr/tas[time=0]'",
     "Scaled values and NaN instead of stored integers."},
    {"zarrc cat --format=npy x.zarr/temp | python -c 'import io, numpy, sys; "
     "print(numpy.load(io.BytesIO(sys.stdin.buffer.read())).mean())'",
     "Pipe an array into NumPy."},
    {"zarrc cat --field=pos.x --format=csv x.zarr/particles",
     "One field of an array of structs."},
    {"zarrc cat --format=raw 'x.zarr/temp[:,10:20:2]' | sha256sum",
     "A checksum of a region."},
    {NULL, NULL}};

const struct cli_command cli_cmd_cat = {
    .name = "cat",
    .summary = "write the elements of an array to standard output",
    .operands = "ARRAY[REGION]",
    .min_args = 1,
    .max_args = 1,
    .about = formats_about,
    .json = "node, data_type: texts. shape: of data. data: nested lists of elements, as "
            "--format=json writes them.",
    .options = cat_options,
    .examples = cat_examples,
    .see_also = "zarrc-export zarrc-info",
    .run = run_cat,
};

/* ---- export ---- */

static void report_export(struct cli *cli, const struct cli_node *node,
                          const char *format)
{
    struct cli_json *j;

    if (!cli->json || strcmp(cli->args[1], "-") == 0)
        return;
    j = cli_json(cli);
    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), node->shown);
    cli_json_text(cli_key(j, "file"), cli->args[1]);
    cli_json_text(cli_key(j, "format"), format);
    cli_json_end(j);
}

static int run_export(struct cli *cli)
{
    const char *path = cli->args[1];
    bool lost = false;
    struct cli_node node = {0};
    struct cli_file file = {0};
    struct cli_dump dump = {.cli = cli, .node = &node, .progress = "export"};
    int rc;

    dump.format = cli_text(cli, "format");
    if (!dump.format)
        dump.format = cli_format_of_name(path);
    if (!dump.format)
        return cli_error(cli, CLI_USAGE, "Choose one, such as --format=npy.",
                         "%s has no known extension: option --format is missing", path);
    rc = skip_damage(cli, &dump, &lost);
    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_REGION, &node);
    if (!rc && dump.lost)
        rc = cli_salvage_open(cli, &node);
    if (!rc && cli_flag(cli, "force"))
        rc = cli_require_outside(cli, path, &node);
    if (!rc)
        rc = cli_file_create(cli, path, cli_flag(cli, "force"), &file);
    dump.file = &file;
    if (!rc)
        rc = cli_dump(&dump);
    if (!rc)
        rc = cli_file_commit(cli, &file);
    if (!rc)
        report_export(cli, &node, dump.format);
    cli_file_close(&file);
    cli_node_close(&node);
    return rc ? rc : lost ? CLI_LOST : CLI_OK;
}

static const struct cli_option export_options[] = {
    {"format", 'F', 0, "FORMAT", CLI_DUMP_FORMATS,
     "output format (default: by the extension of FILE: .npy, .csv, .json, .txt, .raw, "
     ".bin)"},
    CLI_FIELD_OPTION,
    CLI_NEAREST_OPTION,
    CLI_DECODE_OPTION,
    CLI_MEMORY_OPTION,
    CLI_TRUST_OPTION,
    CLI_MISSING_OPTION,
    CLI_SKIP_DAMAGED_OPTION,
    LOST_OPTION,
    {"force", 'f', 0, NULL, NULL, "overwrite FILE if it exists"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example export_examples[] = {
    {"zarrc export x.zarr/temp temp.npy", "A whole array as a NumPy file."},
    {"zarrc export --force 'x.zarr/temp[0]' t0.csv",
     "One plane as CSV; replaces an existing file."},
    {NULL, NULL}};

const struct cli_command cli_cmd_export = {
    .name = "export",
    .summary = "write an array or a region of it to a file",
    .operands = "ARRAY[REGION] FILE",
    .min_args = 2,
    .max_args = 2,
    .about = "Writes an array or a region as npy, raw, csv, text, elements or json; "
             "zarrc-cat(1) describes the formats. FILE gets its name only when it is "
             "complete; until then it has a temporary name. FILE - is standard output.",
    .json = "node, file, format: texts.",
    .options = export_options,
    .examples = export_examples,
    .see_also = "zarrc-cat zarrc-import",
    .run = run_export,
};
