/*
 * commands/cmd_create.c - zarrc create: creates an empty array or a group. An array is
 * described by options, by a model (--like) that options modify, or by a whole metadata
 * document. Existing nodes change only with --force, and --force never replaces a group,
 * because that would delete everything below it.
 */
#include "node/work.h"
#include "spec/spec.h"

#include <stdlib.h>
#include <string.h>

static int refuse_existing(struct cli *cli, const struct cli_node *node)
{
    const bool group = cli_flag(cli, "group");

    if (node->kind == ZARR_NODE_NONE && node->zarr_format)
        return cli_refuse_broken(cli, node, !group);
    if (node->kind == ZARR_NODE_NONE)
        return group ? cli_require_no_files(cli, node) : cli_require_unused(cli, node);
    if (group && node->kind == ZARR_NODE_GROUP && cli_flag(cli, "if-missing"))
        return CLI_OK;
    if (group && node->kind == ZARR_NODE_ARRAY)
        return cli_error(cli, CLI_EXISTS, "zarrc rm removes it.", "%s is an array",
                         node->shown);
    if (node->kind == ZARR_NODE_GROUP)
        return cli_error(cli, CLI_EXISTS,
                         "zarrc rm removes it, with everything below it.",
                         "%s is a group", node->shown);
    if (node->kind == ZARR_NODE_ARRAY && !cli_flag(cli, "force") &&
        !cli_flag(cli, "if-missing"))
        return cli_error(
            cli, CLI_EXISTS,
            "Nothing was changed. --force replaces it, --if-missing keeps it.",
            "%s already exists", node->shown);
    return CLI_OK;
}

/* The model, type and shape; the shared options come after. */
static int describe(struct cli *cli, struct cli_node *model, struct cli_spec *spec)
{
    const char *like = cli_text(cli, "like"), *type = cli_text(cli, "dtype");
    int32_t ndim = 0;
    bool given = false;
    int rc = CLI_OK;

    if (like)
        rc = cli_node_open(cli, like, CLI_OPEN_ARRAY, model);
    if (!rc && like)
        cli_spec_like(spec, model->array);
    if (!rc)
        rc = cli_shape(cli, "shape", spec->shape, &ndim, &given);
    if (!rc && like && given && ndim != spec->spec.ndim)
        rc = cli_error(cli, CLI_USAGE, NULL, "option --shape: %d dimensions, %s has %d",
                       (int)ndim, model->shown, (int)spec->spec.ndim);
    if (rc)
        return rc;
    if (given) {
        spec->spec.ndim = ndim;
        spec->spec.shape = spec->shape;
    }
    spec->spec.data_type = type;
    if (!like && (!spec->spec.shape || !spec->spec.data_type))
        return cli_error(cli, CLI_USAGE,
                         "Try: zarrc create x.zarr/a --shape=100,100 --dtype=float32",
                         "option --%s is missing", spec->spec.shape ? "dtype" : "shape");
    return cli_spec_read(cli, spec);
}

static uint32_t spec_flags(struct cli *cli)
{
    return (cli_flag(cli, "force") ? ZARR_SPEC_OVERWRITE : 0u) |
           (cli_flag(cli, "if-missing") ? ZARR_SPEC_IF_MISSING : 0u) |
           (cli_flag(cli, "no-consolidate") ? 0u : ZARR_SPEC_CONSOLIDATED);
}

static int create_array(struct cli *cli, struct cli_node *node)
{
    struct cli_spec spec = {.spec = {.struct_size = sizeof spec.spec}};
    struct cli_node model = {0};
    struct cli_string document = {0};
    const char *path = cli_text(cli, "document");
    zarr_error err = {0};
    zarr_status st;
    int rc;

    rc = path ? cli_read_text(cli, path, &document) : describe(cli, &model, &spec);
    if (rc)
        goto out;
    if (path)
        spec.spec.document = document.text;
    if (path && cli_flag(cli, "checksum"))
        spec.spec.flags |= ZARR_SPEC_CHECKSUM; /* the library refuses it */
    spec.spec.flags |= spec_flags(cli);
    spec.spec.cancel = cli_cancel;
    node->began = true;
    st = zarr_array_create(&node->array, node->store, node->path, &spec.spec, NULL, &err);
    if (st)
        rc = cli_fail(cli, st, &err, "cannot create array %s", node->shown);
out:
    cli_spec_free(&spec);
    cli_string_free(&document);
    cli_node_close(&model);
    return rc;
}

static int create_group(struct cli *cli, struct cli_node *node)
{
    const char *format = cli_text(cli, "zarr-format");
    const zarr_group_spec spec = {
        .struct_size = sizeof spec,
        .flags = cli_flag(cli, "if-missing") ? ZARR_GROUP_IF_MISSING : 0u,
        .zarr_format = format ? *format - '0' : 0,
        .attributes = cli_text(cli, "attributes"),
        .cancel = cli_cancel};
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    node->began = true;
    st = zarr_group_create(&group, node->store, node->path, &spec, NULL, &err);
    zarr_group_free(group);
    return st ? cli_fail(cli, st, &err, "cannot create group %s", node->shown) : CLI_OK;
}

static void report(struct cli *cli, const struct cli_node *node, bool group)
{
    struct cli_json *j;

    if (!cli->json)
        return;
    j = cli_json_node(cli, node->shown);
    cli_json_text(cli_key(j, "kind"), group ? "group" : "array");
    if (!group)
        cli_json_raw(cli_key(j, "metadata"), zarr_array_metadata(node->array));
}

static int run_create(struct cli *cli)
{
    struct cli_node node = {0};
    bool group = cli_flag(cli, "group");
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_NEW | CLI_OPEN_PROBE, &node);

    if (rc)
        goto out;
    if (group &&
        (cli_text(cli, "shape") || cli_text(cli, "dtype") || cli_text(cli, "like")))
        rc =
            cli_error(cli, CLI_USAGE, NULL, "--group takes no shape, data type or model");
    if (!rc)
        rc = refuse_existing(cli, &node);
    if (!rc)
        rc = group ? create_group(cli, &node) : create_array(cli, &node);
    rc = cli_update_after(cli, &node, cli_flag(cli, "force"), rc);
    if (!rc)
        report(cli, &node, group);
out:
    cli_node_close(&node);
    return rc;
}

static const struct cli_option create_options[] = {
    {"shape", 0, 0, "SHAPE", NULL,
     "lengths of the dimensions, as 100,200; \"\" for a scalar"},
    {"dtype", 't', 0, "TYPE", NULL,
     "data type: float32, <i2, |S4, numpy.datetime64[ns] ..."},
    {"like", 'l', CLI_VALUE_FILE, "ARRAY", NULL,
     "take everything that no option gives from this array"},
    {"document", 0, CLI_VALUE_FILE, "FILE", NULL,
     "take all metadata from this zarr.json or .zarray; - is standard input"},
    CLI_SPEC_OPTIONS,
    CLI_KEEP_FILL_OPTION,
    {"group", 'g', 0, NULL, NULL, "create a group"},
    {"force", 'f', 0, NULL, NULL,
     "replace an existing array, and chunks that a former array left; with --group: "
     "create the group even if the folder has other files"},
    {"if-missing", 0, 0, NULL, NULL,
     "keep an existing equal array, which may have grown, or an existing group, without "
     "an error"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example create_examples[] = {
    {"zarrc create x.zarr/temp --shape=365,720,1440 --dtype=float32 --chunks=1,720,1440",
     "An array, in a store that is created if it is missing."},
    {"zarrc create x.zarr/a --shape=8192,8192 -t uint16 -c 256,256 -s 2048,2048 "
     "--codec=blosc:lz4",
     "Shards of 64 chunks each, compressed by blosc with lz4."},
    {"zarrc create x.zarr/b --like x.zarr/a --codec=zstd:9",
     "Like another array, with stronger compression."},
    {"zarrc create old.zarr/a --zarr-format=2 --shape=100 -t '<i4' --codec=zlib:5 "
     "--separator=/",
     "An array of format 2."},
    {"zarrc create --group x.zarr/model --attributes='{\"title\": \"run 7\"}'",
     "A group."},
    {NULL, NULL}};

const struct cli_command cli_cmd_create = {
    .name = "create",
    .summary = "create an empty array or a group",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Creates an array from --shape and --dtype, from a model with --like, or from a "
        "metadata document. Missing parent groups are created as well. Elements have the "
        "fill value until they are written.\n\n"
        "A codec is NAME (crc32c), NAME:VALUE (zstd:5, gzip:6, blosc:lz4, bytes:big, "
        "transpose:1,0), NAME:KEY=VALUE,... "
        "(blosc:cname=zstd,clevel=7,shuffle=bitshuffle) or JSON. Several codecs are a "
        "chain in this order. bytes can be omitted. In format 2 the last codec is the "
        "compressor and those before it are filters. The default is zstd, without a "
        "checksum: a changed byte may decode to wrong elements, and neither reads nor "
        "zarrc verify notice it. --checksum appends crc32c, which detects it and costs 4 "
        "bytes for each chunk.\n\n"
        "With --like and --zarr-format an array whose dimensions have names keeps its "
        "missing value, as with zarrc-migrate(1); --keep-fill prevents that.",
    .json = "node; kind: array or group; metadata: the document of the new array.",
    .options = create_options,
    .examples = create_examples,
    .see_also = "zarrc-import zarrc-list zarrc-reencode",
    .run = run_create,
};
