/*
 * commands/cmd_import.c - zarrc import: writes the elements of a .npy, raw or text file,
 * or of standard input, into a new array or a region of an existing array. A .npy or raw
 * file is read box by box (import/file.c), so memory does not grow with it. If the import
 * fails, a new array is removed, and an array that it should replace stays.
 */
#include "cf/cf.h"
#include "import/import.h"
#include "node/work.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where a new array is created ---- */

/* An array that replaces another one is created at a temporary location next to it and
 * moved when it is complete, so that a failed import leaves the old array unchanged.
 * Otherwise the array is created at its final location. A failed import deletes the
 * metadata and the chunks that it wrote, and nothing else. */

/* The temporary location as a folder; NULL: the store has no folders. Owned. */
static char *staging_folder(const struct import *im)
{
    char *real = realpath(cli_local_root(&im->node), NULL);
    char *path = real ? cli_path_join(real, im->node.path) : NULL;
    char *out = path ? cli_format("%s" CLI_STAGING_SUFFIX, path) : NULL;

    free(path);
    free(real);
    return out;
}

/* If the array is the root of its store, the temporary location is another store next to
 * it. A store that is not a folder has no such location: the array is then created at its
 * final location. */
static int open_staging_store(struct import *im)
{
    zarr_error err = {0};
    zarr_status st;

    im->target_root = staging_folder(im);
    if (!im->target_root)
        return CLI_OK;
    st = cli_store_open(im->cli, &im->target_store, im->target_root, ZARR_STORE_CREATE,
                        &err);
    if (st)
        return cli_fail(im->cli, st, &err, "cannot create %s", im->target_root);
    im->staged = true;
    return CLI_OK;
}

/* Whether an import that replaces an array was interrupted: what it left at the temporary
 * location is replaced by this one. */
static bool is_staged(const struct import *im)
{
    char *folder = staging_folder(im), *path = NULL;
    bool is = folder && access(folder, F_OK) == 0;

    if (!is && *im->node.path) { /* the store may have no folders */
        path = cli_format("%s" CLI_STAGING_SUFFIX, im->node.path);
        is = cli_kind_at(im->node.store, path, NULL) != ZARR_NODE_NONE;
    }
    free(path);
    free(folder);
    return is;
}

/* Fills target_store, target_path, target_root and staged. replaces: there is an array at
 * the node's location. */
static int set_target(struct import *im, bool replaces)
{
    int rc = CLI_OK;

    replaces = replaces || (cli_flag(im->cli, "force") && is_staged(im));
    if (replaces && *im->node.path) {
        im->target_path = cli_format("%s" CLI_STAGING_SUFFIX, im->node.path);
        im->staged = true;
    } else {
        im->target_path = cli_strdup(im->node.path);
        if (replaces)
            rc = open_staging_store(im);
    }
    if (!im->target_store)
        im->target_store = zarr_store_ref(im->node.store);
    return rc;
}

/* Flushes the complete array and moves it to the node's location. */
static int commit(struct import *im)
{
    zarr_copy_options opts = {.struct_size = sizeof opts, .flags = ZARR_COPY_OVERWRITE};
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc;

    if (!cli_flag(im->cli, "no-consolidate"))
        opts.flags |= ZARR_COPY_CONSOLIDATED;
    zarr_store_capabilities(im->target_store, &caps);
    if (!(caps.flags & ZARR_STORE_CAP_ATOMIC_FLUSH)) /* the job goes after the flush */
        st = zarr_store_flush(im->target_store, cli_cancel, &err);
    if (st)
        return cli_fail(im->cli, st, &err, "cannot finish writing %s", im->node.shown);
    cli_job_end(im->cli, im->target_store, im->target_path);
    if (!im->staged) /* else the record of the import may come back */
        return cli_node_flush(im->cli, &im->node);
    im->created = false;             /* undo() cannot undo the move */
    zarr_array_free(im->node.array); /* and its claim of the temporary location */
    im->node.array = NULL;
    st = zarr_node_move(im->target_store, im->target_path, im->node.store, im->node.path,
                        &opts, &err);
    if (st)
        return cli_fail(im->cli, st, &err,
                        "the new array is complete at %s%s%s, but cannot replace %s",
                        im->target_root ? im->target_root
                                        : zarr_store_url(im->target_store),
                        im->target_root ? "" : ":/", im->target_path, im->node.shown);
    rc = cli_node_flush(im->cli, &im->node);
    im->created = rc == CLI_OK;
    return rc;
}

/* ---- an import that failed ---- */

static const char *const documents[] = {"zarr.json", ".zarray", ".zattrs"};

static int add_chunk(void *user, const zarr_block_info *chunk)
{
    const zarr_store_item item = {.key = chunk->key};

    return cli_keys_add(user, &item);
}

/* Deletes the metadata first: readers must not take a partly deleted array for an array
 * with missing chunks. The job object goes last. */
static bool erase_made(const struct import *im)
{
    struct cli_keys chunks = {0}, rest = {0};
    bool is_alone, ok = zarr_array_list_blocks(im->node.array, ZARR_BLOCKS_STORED,
                                               add_chunk, &chunks, NULL, NULL) == ZARR_OK;

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        char *key = cli_path_join(im->target_path, documents[i]);
        zarr_status st = zarr_store_erase(im->target_store, key, NULL, NULL);

        ok &= st == ZARR_OK || st == ZARR_ERR_NOT_FOUND;
        free(key);
    }
    is_alone = zarr_store_list(im->target_store, im->target_path, ZARR_LIST_RECURSIVE,
                               cli_keys_add, &rest, NULL, NULL) == ZARR_OK &&
               rest.n_items == chunks.n_items + 1; /* the job object */
    if (!is_alone) {
        for (size_t i = 0; i < chunks.n_items; i++)
            ok &= zarr_store_erase(im->target_store, chunks.items[i], NULL, NULL) ==
                  ZARR_OK;
        if (ok)
            cli_job_end(im->cli, im->target_store, im->target_path);
    } else /* no other files: deletes everything at once, with the folders */
        ok &= zarr_store_erase_prefix(im->target_store, im->target_path, NULL, NULL) ==
              ZARR_OK;
    cli_keys_free(&chunks);
    cli_keys_free(&rest);
    return ok;
}

/* Deletes the incomplete new array and nothing else. Warns if it cannot. */
static void undo(struct import *im)
{
    if (im->created && !erase_made(im))
        cli_warn(im->cli, "%s is incomplete and could not be removed", im->node.shown);
}

/* ---- the target array ---- */

/* Opens the array only if there is a region. An array that will be replaced may be one
 * that cannot be opened. */
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

/* Selects the region and the field of an existing array. */
static int select_region(struct import *im)
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
        return cli_error(cli, CLI_NOT_FOUND,
                         "Without a region, import creates a new array.",
                         "there is no array at %s", node->shown);
    if (node->region)
        return select_region(im);
    if (cli_text(cli, "field"))
        return cli_error(cli, CLI_USAGE, "ARRAY[...] is the region of the whole array.",
                         "--field requires a region of an existing array");
    if (cli_node_is_missing(node))
        rc = cli_require_unused(cli, node);
    else if (node->kind == ZARR_NODE_NONE)
        rc = cli_refuse_broken(cli, node, true);
    else if (!cli_flag(cli, "force"))
        rc = cli_error(
            cli, CLI_EXISTS,
            "Nothing was changed. --force replaces it; ARRAY[...] writes into it.",
            "%s already exists", node->shown);
    else if (im->source.fd != STDIN_FILENO)
        rc = cli_require_outside(cli, im->source.name, node);
    return rc ? rc
              : set_target(im, !cli_node_is_missing(node) || cli_can_replace_rest(node));
}

static int create_target(struct import *im)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    zarr_error err = {0};
    zarr_status st;
    int rc;

    if (im->model.array) {
        cli_spec_like(&spec, im->model.array);
        if (spec.spec.ndim != im->header.ndim)
            return cli_error(im->cli, CLI_USAGE, NULL, "%s has %d dimensions, %s has %d",
                             im->source.name, (int)im->header.ndim, im->model.shown,
                             (int)spec.spec.ndim);
    }
    memcpy(spec.shape, im->header.shape, sizeof spec.shape);
    spec.spec.shape = spec.shape;
    spec.spec.ndim = im->header.ndim;
    spec.spec.data_type = cli_type_name(im->new_type ? im->new_type : im->type);
    rc = cli_spec_read(im->cli, &spec);
    if (im->raw)
        spec.spec.order = 0; /* for a raw file, --order is the order of the file */
    if (cli_flag(im->cli, "force"))
        spec.spec.flags |= ZARR_SPEC_OVERWRITE;
    spec.spec.flags |= ZARR_SPEC_CLAIM; /* until the array is complete */
    spec.spec.cancel = cli_cancel;
    if (!cli_flag(im->cli, "no-consolidate"))
        spec.spec.flags |= ZARR_SPEC_CONSOLIDATED;
    if (!rc) {
        im->node.began = true;
        st = zarr_array_create(&im->node.array, im->target_store, im->target_path,
                               &spec.spec, NULL, &err);
        im->created = !st;
        rc = st ? cli_fail(im->cli, st, &err, "cannot create array %s", im->node.shown)
                : cli_job_begin(im->cli, im->target_store, im->target_path,
                                im->source.name);
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
                         "%s is in Fortran order, but field %s is a subarray",
                         im->source.name, im->field.options.field);
    if (ndim == im->header.ndim &&
        memcmp(shape, im->header.shape, (size_t)ndim * sizeof *shape) == 0)
        return CLI_OK;
    have = cli_shape_text(im->header.ndim, im->header.shape);
    want = cli_shape_text(ndim, shape);
    rc = cli_error(im->cli, CLI_USAGE, NULL, "%s has shape %s, the %s has %s",
                   im->source.name, have,
                   im->field.ndim > 0 ? "field of the region" : "region", want);
    free(have);
    free(want);
    return rc;
}

/* ---- the command ---- */

static int open_model(struct import *im)
{
    const char *like = cli_text(im->cli, "like");

    if (like && im->node.region)
        return cli_error(
            im->cli, CLI_USAGE, NULL,
            "--like describes a new array; %s is a region of one that exists",
            im->node.shown);
    return like ? cli_node_open(im->cli, like, CLI_OPEN_ARRAY, &im->model) : CLI_OK;
}

static int prepare(struct import *im)
{
    int rc = cli_import_open(im);

    if (!rc)
        rc = open_target(im);
    if (!rc)
        rc = open_model(im);
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
    j = cli_json_node(im->cli, im->node.shown);
    cli_json_bool(cli_key(j, "created"), im->created);
    cli_json_shape(cli_key(j, "shape"), im->header.ndim, im->header.shape);
    cli_json_u64(cli_key(j, "bytes"), cli_import_bytes(im));
}

static int run_import(struct cli *cli)
{
    struct import im = {.cli = cli,
                        .field = {.n_values = 1, .options = ZARR_IO_OPTIONS_INIT}};
    int rc = prepare(&im);

    if (!rc)
        rc = cli_import_copy(&im);
    if (!rc)
        rc = im.created ? commit(&im) : cli_node_flush(cli, &im.node);
    if (rc)
        undo(&im);
    else
        report(&im);
    if (im.target_store) /* no import into a region */
        rc = cli_update_after(cli, &im.node, true, rc);
    zarr_selection_free(im.selection);
    cli_elements_free(&im.elements);
    free(im.orders);
    free(im.header.fields);
    zarr_array_free(im.node.array);
    im.node.array = NULL;
    zarr_store_free(im.target_store);
    if (im.target_root)
        (void)rmdir(im.target_root); /* fails if it is not empty, as intended */
    free(im.target_root);
    free(im.target_path);
    cli_node_close(&im.model);
    cli_node_close(&im.node);
    cli_source_close(&im.source);
    return rc;
}

static const struct cli_option import_options[] = {
    {"format", 'F', 0, "FORMAT", "auto|npy|raw|" CLI_TEXT_FORMATS,
     "format of FILE (default: by its extension .npy, .json, .raw or .bin; .txt and .csv "
     "are refused; else raw with --dtype, npy without); json: a nested JSON array; "
     "elements: one JSON value a line; lines: one text a line"},
    {"dtype", 't', 0, "TYPE", NULL,
     "raw, text: data type of the elements, as float32 or >i2 (default for text in a new "
     "array: string); npy: a data type that NumPy lacks, as bfloat16, or string"},
    CLI_NEAREST_OPTION,
    {"shape", 0, 0, "SHAPE", NULL,
     "raw, elements, lines: lengths of the dimensions, as 100,200"},
    {"byte-order", 0, 0, "ORDER", "little|big",
     "raw: byte order of FILE (default: little)"},
    {"offset", 0, 0, "BYTES", NULL, "raw: number of bytes before the elements"},
    CLI_FIELD_OPTION,
    {"like", 'l', 0, "ARRAY", NULL,
     "take everything that neither the file nor an option gives from this array"},
    CLI_SPEC_OPTIONS,
    CLI_KEEP_FILL_OPTION,
    {"force", 'f', 0, NULL, NULL,
     "replace an existing array when the new one is complete"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example import_examples[] = {
    {"zarrc import temp.npy x.zarr/temp --chunks=1,720,1440 --codec=zstd:5",
     "A NumPy file into a new array."},
    {"zarrc import --dtype=float32 --shape=100,200 data.bin x.zarr/a", "A raw file."},
    {"zarrc import t7.npy 'x.zarr/temp[7]'", "One plane of an existing array."},
    {"zarrc import --field=pos.x x.npy 'x.zarr/particles[...]'",
     "One field of an array of structs."},
    {"cat counts.bin | zarrc import -t '>i2' --shape=1000 - x.zarr/b",
     "From a pipe, big-endian."},
    {"ls | zarrc import --format=lines - x.zarr/names",
     "An array of text, with one element for each line."},
    {"zarrc import new.json 'x.zarr/names[2:5]'",
     "A JSON array, as zarrc-export writes it, into a region."},
    {NULL, NULL}};

const struct cli_command cli_cmd_import = {
    .name = "import",
    .summary = "write a .npy, raw or text file into a new array or a region",
    .operands = "FILE ARRAY[REGION]",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Reads a NumPy file (C or Fortran order, any byte order), a raw file, or "
        "elements as text; FILE - is standard input. Without a region it creates a new "
        "array with the options of zarrc-create(1). With a region (ARRAY[...] is the "
        "whole array) it writes the elements into the existing array, and the shapes "
        "must be equal. --field writes one field of an array of structs and keeps the "
        "other fields; the dimensions of a subarray follow those of the region.\n\n"
        "Memory does not grow with a .npy or raw file; --mem limits it. A shard of a new "
        "array that is larger than half of --mem is encoded and written chunk by chunk. "
        "If that is not possible, because --mem does not permit a chunk or the input is "
        "a pipe, an import with --mem fails before it writes anything. Text is read into "
        "memory as a whole. JSON has the elements as zarrc-cat(1) writes them, and its "
        "lists are dimensions.\n\n"
        "If the import fails, a new array is removed, and an array that --force should "
        "replace is unchanged: the new array is called ARRAY.zarrc-import until it is "
        "complete. Chunks that were already written into a region stay.\n\n"
        "If NumPy lacks a data type, a NumPy file has opaque bytes or int8 instead. Such "
        "elements are written unchanged into arrays of the right type, or into a new "
        "array with --dtype=TYPE. Text and bytes of fixed length (npy: U and S) can be "
        "written into arrays of variable length.\n\n"
        "For a raw file --order is the order of the elements in the file, for other "
        "files their order inside chunks.",
    .json = "node; created: true for a new array; shape, bytes: of the written elements.",
    .options = import_options,
    .examples = import_examples,
    .see_also = "zarrc-create zarrc-export zarrc-append",
    .run = run_import,
};
