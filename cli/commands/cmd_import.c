/*
 * commands/cmd_import.c - zarrc import: elements of a .npy or raw file, or of standard
 * input, into a new array or a region of an existing one. Memory does not grow
 * with the file: it is read box by box (import/copy.c). A new array whose import
 * fails is removed again; one that it replaces stays (import/target.c).
 */
#include "import/import.h"
#include "node/work.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

/* ---- where it goes ---- */

/* An array that will be replaced need not be one that can be opened. */
static int open_node(struct import *im)
{
    const unsigned flags = CLI_OPEN_NEW | CLI_OPEN_REGION;
    int rc = cli_node_open(im->cli, im->cli->args[1], flags | CLI_OPEN_PROBE, &im->node);

    if (!rc && im->node.kind == ZARR_NODE_ARRAY && im->node.region) {
        cli_node_close(&im->node);
        rc = cli_node_open(im->cli, im->cli->args[1], flags, &im->node);
    }
    return rc;
}

/* The region and the field of an array that is there. */
static int choose(struct import *im)
{
    const struct cli_node *node = &im->node;
    int rc = cli_node_select(im->cli, node, node->array, &im->selection);

    if (!rc)
        rc = cli_field_find(im->cli, node, &im->field);
    if (!rc && zarr_selection_ndim(im->selection) > ZARR_MAX_RANK - im->field.ndim)
        rc = cli_error(im->cli, CLI_UNSUPPORTED, NULL,
                       "the region of %s and the field together have more than %d "
                       "dimensions",
                       node->shown, ZARR_MAX_RANK);
    return rc;
}

static int open_target(struct import *im)
{
    struct cli *cli = im->cli;
    const struct cli_node *node = &im->node;
    int rc = open_node(im);

    if (rc)
        return rc;
    if (node->kind == ZARR_NODE_GROUP)
        return cli_error(cli, CLI_EXISTS, NULL, "%s is a group", node->shown);
    if (node->kind == ZARR_NODE_NONE && node->region)
        return cli_error(cli, CLI_NOT_FOUND, "Without a region a new array is made.",
                         "there is no array %s to write a region of", node->shown);
    if (node->region)
        return choose(im);
    if (cli_text(cli, "field"))
        return cli_error(cli, CLI_USAGE, "Write ARRAY[...] for all of it.",
                         "--field writes into an array that is there");
    if (cli_node_is_missing(node))
        rc = cli_require_unused(cli, node);
    else if (node->kind == ZARR_NODE_NONE)
        rc = cli_refuse_broken(cli, node, true);
    else if (!cli_flag(cli, "force"))
        rc = cli_error(
            cli, CLI_EXISTS,
            "Nothing was changed. --force replaces it; ARRAY[...] writes into it.",
            "%s is there already", node->shown);
    else if (!im->is_stdin)
        rc = cli_require_outside(cli, im->name, node);
    return rc ? rc : cli_import_target(im, !cli_node_is_missing(node));
}

static int create_target(struct import *im)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    zarr_error err = {0};
    zarr_status st;
    int rc;

    memcpy(spec.shape, im->header.shape, sizeof spec.shape);
    spec.spec.shape = spec.shape;
    spec.spec.ndim = im->header.ndim;
    spec.spec.data_type = cli_type_name(im->new_type ? im->new_type : im->type);
    rc = cli_spec_read(im->cli, &spec);
    if (im->raw)
        spec.spec.order = 0; /* --order says how the file is laid out */
    if (cli_flag(im->cli, "force"))
        spec.spec.flags |= ZARR_SPEC_OVERWRITE;
    if (!rc) {
        st = zarr_array_create(&im->node.array, im->target_store, im->target_path,
                               &spec.spec, NULL, &err);
        if (st)
            rc = cli_fail(im->cli, st, &err, "cannot create array %s", im->node.shown);
        else
            im->created = true;
    }
    cli_spec_free(&spec);
    return rc;
}

static int check_shape(struct import *im)
{
    uint64_t shape[ZARR_MAX_RANK];
    const int32_t ndim = cli_import_region(im, shape);
    char *have, *want;
    int rc = CLI_OK;

    if (im->header.fortran && im->field.ndim > 0)
        return cli_error(im->cli, CLI_UNSUPPORTED, "Write it in C order.",
                         "%s is in Fortran order, and field %s has dimensions of its own",
                         im->name, im->field.options.field);
    if (ndim == im->header.ndim &&
        memcmp(shape, im->header.shape, (size_t)ndim * sizeof *shape) == 0)
        return CLI_OK;
    have = cli_shape_text(im->header.ndim, im->header.shape);
    want = cli_shape_text(ndim, shape);
    rc = cli_error(im->cli, CLI_USAGE, NULL, "%s has shape %s, the %s has %s", im->name,
                   have, im->field.ndim > 0 ? "field of the region" : "region", want);
    free(have);
    free(want);
    return rc;
}

/* ---- the command ---- */

static int prepare(struct import *im)
{
    int rc = cli_import_open(im);

    if (!rc)
        rc = open_target(im);
    if (!rc)
        rc = cli_import_describe(im);
    if (!rc && im->selection)
        rc = check_shape(im);
    if (!rc && !im->selection)
        rc = create_target(im);
    return rc;
}

static void report(const struct import *im)
{
    struct cli_json *j;

    if (!im->cli->json)
        return;
    j = cli_json(im->cli);
    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), im->node.shown);
    cli_json_bool(cli_key(j, "created"), im->created);
    cli_json_shape(cli_key(j, "shape"), im->header.ndim, im->header.shape);
    cli_json_u64(cli_key(j, "bytes"), cli_import_bytes(im));
    cli_json_end(j);
}

static int run_import(struct cli *cli)
{
    struct import im = {.cli = cli, .field.n_values = 1};
    int rc = prepare(&im);

    if (!rc)
        rc = cli_import_copy(&im);
    if (!rc)
        rc = im.created ? cli_import_commit(&im) : cli_node_flush(cli, &im.node);
    if (rc)
        cli_import_undo(&im);
    else
        report(&im);
    zarr_selection_free(im.selection);
    cli_elements_free(&im.elements);
    free(im.orders);
    free(im.header.fields);
    zarr_array_free(im.node.array);
    im.node.array = NULL;
    cli_import_free(&im);
    cli_node_close(&im.node);
    if (im.file && !im.is_stdin)
        fclose(im.file);
    return rc;
}

static const struct cli_option import_options[] = {
    {"input", 'i', 0, "FORMAT", "auto|npy|raw|" CLI_TEXT_FORMATS,
     "what FILE is (default: by its name: .npy, .json, .raw, .bin; .txt and .csv are "
     "refused; else raw with --dtype, npy without): npy, raw, a JSON array, elements "
     "(one JSON value a line), or lines "
     "(each one text)"},
    {"dtype", 't', 0, "TYPE", NULL,
     "raw, text: data type of the elements, as float32 or >i2 (text of a new array: "
     "string); npy: what NumPy has no name for, as bfloat16, or string"},
    {"shape", 0, 0, "SHAPE", NULL, "raw, elements, lines: lengths of the dimensions"},
    {"endian", 0, 0, "ORDER", "little|big",
     "raw: byte order of the file (default: little)"},
    {"offset", 0, 0, "BYTES", NULL, "raw: bytes in front of the elements"},
    CLI_FIELD_OPTION,
    CLI_SPEC_OPTIONS,
    {"force", 0, 0, NULL, NULL,
     "replace an existing array, when the new one is complete"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example import_examples[] = {
    {"zarrc import temp.npy x.zarr/temp --chunks=1,720,1440 --codec=zstd:5",
     "A NumPy file into a new array."},
    {"zarrc import --dtype=float32 --shape=100,200 data.bin x.zarr/a", "A raw file."},
    {"zarrc import t7.npy 'x.zarr/temp[7]'", "One plane of an array that is there."},
    {"zarrc import --field=pos.x x.npy 'x.zarr/particles[...]'",
     "One field of an array of structs."},
    {"cat data.bin | zarrc import -t '>i2' --shape=1000 - x.zarr/b",
     "From a pipe, big-endian."},
    {"ls | zarrc import --input=lines - x.zarr/names", "An array of text, a line each."},
    {"zarrc import new.json 'x.zarr/names[2:5]'",
     "A JSON array into a region, as zarrc-export writes it."},
    {NULL, NULL}};

const struct cli_command cli_cmd_import = {
    .name = "import",
    .summary = "write a .npy, raw or text file into a new array or a region",
    .operands = "FILE ARRAY[REGION]",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Reads a NumPy file (C or Fortran order, any byte order), a raw one, or "
        "elements as text; FILE - is standard "
        "input. Without a region a new array is made, by the options of "
        "zarrc-create(1); with a "
        "region (ARRAY[...] for all of it) the elements go into the existing array, "
        "and shapes "
        "must agree. --field writes one field of an array of structs and leaves the "
        "others "
        "alone; a subarray's dimensions stand behind those of the region.\n\nMemory does "
        "not grow with the file; --mem says how much may "
        "be used. When "
        "the import fails, a new array is removed again, and what --force would have "
        "replaced is as it was: the new array is made beside it, as ARRAY.zarrc-import, "
        "until it is complete. With a region, chunks written until then stay. Text is "
        "read whole: JSON takes every element as zarrc-cat(1) writes "
        "it, lists are dimensions. A NumPy file has opaque bytes, or int8, where NumPy "
        "lacks the data type: they go into arrays of their type as they are, and into a "
        "new one by --dtype=TYPE. Text and bytes of fixed length (npy: U and "
        "S) may "
        "go into arrays of variable length.\n\nFor a raw file --order says how the file "
        "is laid out, for others "
        "how elements "
        "are ordered inside chunks.",
    .json = "node; created: true for a new array; shape and bytes: of what was written.",
    .options = import_options,
    .examples = import_examples,
    .see_also = "zarrc-create zarrc-export zarrc-append",
    .run = run_import,
};
