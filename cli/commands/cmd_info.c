/*
 * commands/cmd_info.c - zarrc info: prints the properties of a node. They come from its
 * metadata, which takes one read. --stats also lists the stored chunks. The text may
 * change between versions; --json is stable.
 */
#include "commands/info.h"

#include <stdlib.h>
#include <string.h>

/* ---- stored chunks ---- */

static int count_chunk(void *user, const zarr_chunk_info *chunk)
{
    struct info_stats *s = user;
    uint64_t bytes = chunk->bytes;

    if (bytes == UINT64_MAX) { /* the store's listing has no lengths */
        uint64_t none = 0;

        s->st = zarr_store_get(zarr_array_chunk_store(s->array), chunk->key, 0, NULL,
                               &none, &bytes, s->err);
        if (s->st)
            return 1;
    }
    s->n_objects++;
    s->bytes += bytes;
    return cli_cancel;
}

static int get_stats(struct cli *cli, const struct cli_node *node, struct info_stats *s)
{
    zarr_error err = {0};
    zarr_status st;

    *s = (struct info_stats){.array = node->array, .err = &err};
    s->n_total = info_grid_count(node->array);
    st = zarr_array_chunk_list(node->array, ZARR_CHUNKS_OBJECTS, count_chunk, s, &err);
    s->err = NULL;
    st = st ? st : s->st;
    if (!st && cli_cancel)
        st = ZARR_ERR_CANCELLED;
    return st ? cli_fail(cli, st, &err, "cannot list the chunks of %s", node->shown)
              : CLI_OK;
}

/* ---- groups ---- */

static const char *kind_name(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "broken";
}

static int child_text(void *user, const zarr_node_item *item)
{
    info_row(user, item->kind == ZARR_NODE_NONE ? "broken" : kind_name(item->kind), "%s",
             item->name);
    return cli_cancel;
}

static int child_json(void *user, const zarr_node_item *item)
{
    struct cli_json *j = user;

    cli_json_object(j);
    cli_json_text(cli_key(j, "name"), item->name);
    cli_json_text(cli_key(j, "kind"), kind_name(item->kind));
    cli_json_end(j);
    return cli_cancel;
}

static zarr_status group_json(struct cli *cli, const struct cli_node *node,
                              zarr_group *group, zarr_error *err)
{
    struct cli_json *j = cli_json(cli);
    zarr_status st;

    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), node->shown);
    cli_json_text(cli_key(j, "path"), node->path);
    cli_json_text(cli_key(j, "kind"), "group");
    cli_json_i64(cli_key(j, "zarr_format"), node->zarr_format);
    cli_json_bool(cli_key(j, "consolidated"), zarr_group_is_consolidated(group) != 0);
    cli_json_raw(cli_key(j, "attributes"), zarr_group_attributes(group));
    cli_json_array(cli_key(j, "children"));
    st = zarr_group_list(group, child_json, j, err);
    cli_json_end(j);
    cli_json_end(j);
    return st;
}

static zarr_status group_text(struct cli *cli, const struct cli_node *node,
                              zarr_group *group, zarr_error *err)
{
    cli_printf(cli, "%s\n", node->shown);
    info_row(cli, "group", "Zarr v%d%s", (int)node->zarr_format,
             zarr_group_is_consolidated(group) ? ", consolidated metadata" : "");
    info_attributes(cli, zarr_group_attributes(group));
    return zarr_group_list(group, child_text, cli, err);
}

static int group_info(struct cli *cli, const struct cli_node *node)
{
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_group_open(&group, node->store, node->path, NULL, &err);

    if (!st)
        st = cli->json ? group_json(cli, node, group, &err)
                       : group_text(cli, node, group, &err);
    zarr_group_free(group);
    return st ? cli_fail(cli, st, &err, "cannot read group %s", node->shown) : CLI_OK;
}

/* ---- the command ---- */

static int raw_metadata(struct cli *cli, const struct cli_node *node)
{
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    if (node->kind == ZARR_NODE_ARRAY)
        return cli_printf(cli, "%s\n", zarr_array_metadata(node->array));
    st = zarr_group_open(&group, node->store, node->path, NULL, &err);
    if (!st)
        cli_printf(cli, "%s\n", zarr_group_metadata(group));
    zarr_group_free(group);
    return st ? cli_fail(cli, st, &err, "cannot read group %s", node->shown) : CLI_OK;
}

static int run_info(struct cli *cli)
{
    struct cli_node node = {0};
    struct info_stats stats;
    bool want = cli_flag(cli, "stats");
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ANY, &node);

    if (rc)
        goto out;
    if (cli_flag(cli, "metadata")) {
        rc = raw_metadata(cli, &node);
    } else if (node.kind == ZARR_NODE_GROUP) {
        rc = group_info(cli, &node);
    } else {
        if (want)
            rc = get_stats(cli, &node, &stats);
        if (!rc && cli->json)
            info_array_json(cli, &node, want ? &stats : NULL);
        else if (!rc)
            info_array_text(cli, &node, want ? &stats : NULL);
    }
out:
    cli_node_close(&node);
    return rc;
}

static const struct cli_option info_options[] = {
    {"stats", 's', 0, NULL, NULL, "also count the stored objects and their bytes"},
    {"metadata", 'm', 0, NULL, NULL, "print only the metadata document"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example info_examples[] = {
    {"zarrc info x.zarr/temp", "Shape, chunks, data type, codecs and attributes."},
    {"zarrc info --stats x.zarr/temp", "Also the stored size and the compression ratio."},
    {"zarrc info --metadata x.zarr/temp | python -m json.tool", "The metadata document."},
    {"zarrc info --json x.zarr | jq .children",
     "The members of a group, for other programs."},
    {NULL, NULL}};

const struct cli_command cli_cmd_info = {
    .name = "info",
    .summary = "show the properties of an array or group",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Shows the shape, data type, fill value, chunks, shards, codecs and attributes "
        "of an array, or the attributes and members of a group. Only metadata is read, "
        "unless --stats is given.",
    .json =
        "node: its location. path: inside the store. kind: array or group. zarr_format: "
        "2 "
        "or 3. attributes: an object.\n\n"
        "Arrays: shape, dimension_names (null: no name), data_type, item_bytes, "
        "fill_value, chunks, shards (null: none), chunk_grid, codecs (as a v3 chain, "
        "also "
        "for v2), fields (of structs: name, data_type, offset, shape of the subarray, "
        "and "
        "fields of a nested struct), bytes (decoded), metadata (the document). With "
        "--stats: stored, an object with objects, objects_possible, bytes. Numbers that "
        "exceed 64 bits are null.\n\n"
        "Groups: consolidated, children (list of objects with name and kind).",
    .options = info_options,
    .examples = info_examples,
    .see_also = "zarrc-ls zarrc-attrs zarrc-explain",
    .run = run_info,
};
