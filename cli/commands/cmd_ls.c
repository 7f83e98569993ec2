/*
 * commands/cmd_ls.c - zarrc ls and zarrc tree: list the members of a group. Both collect
 * the nodes first. The library returns them sorted, parents before children, with their
 * metadata documents, so that a listing opens no array.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *path, *name, *shape, *type, *chunks;
    const char *shown; /* by ls: the name or, with -R, the path below the group */
    uint32_t kind;
    int32_t zarr_format, depth;
};

struct listing {
    struct entry *items;
    size_t n, cap;
    bool is_recursive;
    size_t skip; /* length of the group's own path and its slash */
};

/* The value of a member on one line; owned, or NULL. */
static char *member(const char *object, const char *key)
{
    size_t n = 0;
    const char *value = cli_json_member(object, key, &n);

    return value ? cli_json_line(value, n) : NULL;
}

/* The name of a data type, which is a string or an object with a member name; of a struct
 * in v2, its list of fields. */
static char *data_type_name(const char *metadata)
{
    size_t n = 0;
    const char *v2 = cli_json_member(metadata, "dtype", &n);
    const char *v3 = cli_json_member(metadata, "data_type", &n);
    const char *type = v3 ? v3 : v2, *name = cli_json_member(type, "name", &n);
    char *text = type ? cli_json_unquote(name ? name : type, n) : NULL;

    return text || !type ? text : cli_json_line(type, n);
}

static char *chunks_json(const char *metadata)
{
    size_t n = 0;
    const char *grid = cli_json_member(metadata, "chunk_grid", &n);
    const char *conf = cli_json_member(grid, "configuration", &n);
    char *chunks = conf ? member(conf, "chunk_shape") : member(metadata, "chunks");

    return chunks ? chunks : member(conf, "chunk_shapes"); /* rectilinear */
}

static int add_entry(void *user, const zarr_node_item *item)
{
    struct listing *l = user;
    struct entry *e;

    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->items = cli_realloc(l->items, l->cap * sizeof *l->items);
    }
    e = &l->items[l->n++];
    *e = (struct entry){.kind = item->kind, .zarr_format = item->zarr_format};
    e->depth = item->depth;
    e->path = cli_strdup(item->path);
    e->name = cli_strdup(item->name ? item->name : item->path);
    e->shown =
        l->is_recursive && strlen(e->path) >= l->skip ? e->path + l->skip : e->name;
    if (item->kind == ZARR_NODE_ARRAY) {
        e->shape = member(item->metadata, "shape");
        e->type = data_type_name(item->metadata);
        e->chunks = chunks_json(item->metadata);
    }
    return ZARR_WALK_GO_ON;
}

static void listing_free(struct listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].path);
        free(l->items[i].name);
        free(l->items[i].shape);
        free(l->items[i].type);
        free(l->items[i].chunks);
    }
    free(l->items);
}

/* Adds the array itself: ls of an array lists only that array. */
static void add_array(const struct cli_node *node, struct listing *l)
{
    const char *slash = strrchr(node->path, '/');
    zarr_node_item item = {.struct_size = sizeof item, .kind = node->kind};

    item.path = node->path;
    item.name = slash ? slash + 1 : *node->path ? node->path : ".";
    item.zarr_format = node->zarr_format;
    item.depth = 1;
    item.metadata = zarr_array_metadata(node->array);
    add_entry(l, &item);
}

static int collect(struct cli *cli, struct cli_node *node, struct listing *l)
{
    const zarr_list_options o = {.struct_size = sizeof o, .cancel = cli_cancel};
    zarr_error err = {0};
    zarr_status st;

    if (node->kind == ZARR_NODE_ARRAY) {
        add_array(node, l);
        return CLI_OK;
    }
    l->skip = *node->path ? strlen(node->path) + 1 : 0;
    st = cli_node_group(node, &err);
    if (!st)
        st = l->is_recursive ? zarr_group_walk(node->group, add_entry, l, &o, &err)
                             : zarr_group_list(node->group, add_entry, l, &o, &err);
    return st ? cli_fail(cli, st, &err, "cannot list %s", node->shown) : CLI_OK;
}

static void listing_json(struct cli *cli, const struct cli_node *node,
                         const struct listing *l)
{
    struct cli_json *j = cli_json_node(cli, node->shown);

    cli_json_array(cli_key(j, "nodes"));
    for (size_t i = 0; i < l->n; i++) {
        const struct entry *e = &l->items[i];

        cli_json_object(j);
        cli_json_text(cli_key(j, "path"), e->path);
        cli_json_text(cli_key(j, "name"), e->name);
        cli_json_text(cli_key(j, "kind"), cli_kind_name(e->kind));
        cli_json_i64(cli_key(j, "zarr_format"), e->zarr_format);
        cli_json_i64(cli_key(j, "depth"), e->depth);
        if (e->kind == ZARR_NODE_ARRAY) {
            cli_json_raw(cli_key(j, "shape"), e->shape);
            cli_json_text(cli_key(j, "data_type"), e->type);
            cli_json_raw(cli_key(j, "chunks"), e->chunks);
        }
        cli_json_end(j);
    }
}

/* ---- ls ---- */

/* The line of a node, without its end. wide: the width of the names; 0: names alone. */
static int print_entry(struct cli *cli, const struct entry *e, size_t wide)
{
    int rc;

    if (wide == 0)
        return cli_line(cli, "%s%s", e->shown, e->kind == ZARR_NODE_GROUP ? "/" : "");
    if (e->kind != ZARR_NODE_ARRAY)
        return cli_line(cli, "%s v%d  %s", cli_kind_name(e->kind), (int)e->zarr_format,
                        e->shown);
    rc = cli_line(cli, "array v%d  %-*s  %-10s %s", (int)e->zarr_format, (int)wide,
                  e->shown, e->type ? e->type : "?", e->shape ? e->shape : "?");
    return rc || !e->chunks ? rc : cli_line(cli, " in %s", e->chunks);
}

static int print_entries(struct cli *cli, const struct listing *l, bool is_long)
{
    size_t wide = is_long;
    int rc = CLI_OK;

    for (size_t i = 0; i < l->n && is_long; i++)
        wide = strlen(l->items[i].shown) > wide ? strlen(l->items[i].shown) : wide;
    for (size_t i = 0; i < l->n && !rc; i++) {
        rc = print_entry(cli, &l->items[i], wide);
        if (!rc)
            rc = cli_printf(cli, "\n");
    }
    return rc;
}

/* ---- ls --stored ---- */

struct blocks {
    struct cli *cli;
    zarr_store *store;
    struct cli_json *j; /* NULL: lines */
    bool missing;
    int rc;
};

static int print_block(void *user, const zarr_block_info *block)
{
    struct blocks *b = user;
    const uint64_t bytes = cli_object_bytes(b->store, block->key, block->bytes);

    if (!b->j) {
        b->rc = b->missing
                    ? cli_line(b->cli, "missing  %s\n", block->key)
                    : cli_line(b->cli, "stored   %s  %" PRIu64 "\n", block->key, bytes);
        return b->rc != CLI_OK;
    }
    cli_json_object(b->j);
    cli_json_text(cli_key(b->j, "key"), block->key);
    cli_json_shape(cli_key(b->j, "block"), block->ndim, block->coordinates);
    if (!b->missing)
        cli_json_u64(cli_key(b->j, "bytes"), bytes);
    cli_json_end(b->j);
    return 0;
}

static int list_blocks(struct cli *cli, const struct cli_node *node)
{
    static const uint32_t what[] = {ZARR_BLOCKS_STORED | ZARR_BLOCKS_ASK,
                                    ZARR_BLOCKS_MISSING | ZARR_BLOCKS_ASK};
    const zarr_io_options o = {.struct_size = sizeof o, .cancel = cli_cancel};
    struct blocks b = {.cli = cli,
                       .store = node->store,
                       .j = cli->json ? cli_json_node(cli, node->shown) : NULL};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    for (int i = 0; i < 2 && !st && !b.rc; i++) {
        b.missing = i == 1;
        if (b.j)
            cli_json_array(cli_key(b.j, b.missing ? "missing" : "stored"));
        st = zarr_array_list_blocks(node->array, what[i], print_block, &b, &o, &err);
        if (b.j)
            cli_json_end(b.j);
    }
    return st ? cli_fail(cli, st, &err, "cannot list the blocks of %s", node->shown)
              : b.rc;
}

static int list_one(struct cli *cli, const char *place)
{
    struct cli_node node = {0};
    struct listing l = {.is_recursive = cli_flag(cli, "recursive")};
    const bool stored = cli_flag(cli, "stored");
    int rc = cli_node_open(cli, place, stored ? CLI_OPEN_ARRAY : CLI_OPEN_ANY, &node);

    if (!rc && !stored)
        rc = collect(cli, &node, &l);
    if (!rc && cli->n_args > 1 && !cli->json)
        rc = cli_line(cli, "%s:\n", node.shown);
    if (!rc && stored)
        rc = list_blocks(cli, &node);
    else if (!rc && cli->json)
        listing_json(cli, &node, &l);
    else if (!rc)
        rc = print_entries(cli, &l, cli_flag(cli, "long"));
    listing_free(&l);
    cli_node_close(&node);
    return rc;
}

static int run_ls(struct cli *cli)
{
    return cli->n_args ? cli_each_node(cli, true, list_one) : list_one(cli, ".");
}

static const struct cli_option ls_options[] = {
    {"long", 'l', 0, NULL, NULL, "also show kind, format, data type, shape and chunks"},
    {"recursive", 'R', 0, NULL, NULL,
     "list everything below NODE, not only its children"},
    {"stored", 0, 0, NULL, NULL,
     "list the blocks (chunks, or whole shards) of an array: first the stored ones, with "
     "their bytes, then the missing ones"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example ls_examples[] = {
    {"zarrc ls x.zarr", "The children of the root group; groups end in a slash."},
    {"zarrc ls -lR x.zarr/model",
     "Everything below a group, with shapes and data types."},
    {"zarrc ls --stored x.zarr/temp", "Which blocks of an array are stored."},
    {"zarrc ls -R --json x.zarr | jq -r '.nodes[] | select(.kind == \"array\") | .path'",
     "The paths of all arrays."},
    {NULL, NULL}};

const struct cli_command cli_cmd_ls = {
    .name = "ls",
    .summary = "list the members of a group, or the blocks of an array",
    .operands = "[NODE...]",
    .max_args = -1,
    .about =
        "Lists the children of each group, sorted by name. The default NODE is the "
        "current folder. If the group has consolidated metadata, it is used. A folder "
        "without metadata is not a node and is not listed. A node whose metadata cannot "
        "be read is called broken.",
    .json =
        "Several operands: a list of such documents. node: the location. nodes: list of "
        "objects with path (from the store's root), name, kind (array, group, broken), "
        "zarr_format, depth (1: a child); arrays also have shape, data_type, chunks (the "
        "shape of blocks: shards if the array has them). With --stored instead of nodes: "
        "stored, a list of objects with key, block (place in the grid) and bytes, and "
        "missing, the same without bytes.",
    .options = ls_options,
    .examples = ls_examples,
    .see_also = "zarrc-tree zarrc-info",
    .run = run_ls,
};

/* ---- tree ---- */

/* Whether no later entry has the same parent as entry i. */
static bool is_last(const struct listing *l, size_t i)
{
    for (size_t k = i + 1; k < l->n; k++) {
        if (l->items[k].depth == l->items[i].depth)
            return false;
        if (l->items[k].depth < l->items[i].depth)
            return true;
    }
    return true;
}

/* The lines before a name, and before the names below it. */
struct branch {
    const char *last, *other, *below_last, *below_other;
};
static const struct branch branches[] = {{"└── ", "├── ", "    ", "│   "},
                                         {"`-- ", "|-- ", "    ", "|   "}};

static int tree_line(struct cli *cli, const struct entry *e, const char *margin,
                     const char *branch)
{
    int rc = cli_line(cli, "%s%s%s", margin, branch, e->name);

    if (rc)
        return rc;
    if (e->kind == ZARR_NODE_ARRAY)
        return cli_line(cli, "  %s %s\n", e->type ? e->type : "?",
                        e->shape ? e->shape : "?");
    return cli_printf(cli, "%s\n", e->kind == ZARR_NODE_GROUP ? "/" : "  (broken)");
}

static int tree_lines(struct cli *cli, const struct listing *l,
                      const struct branch *branch)
{
    struct cli_string margin = {0};
    size_t *length = cli_alloc((l->n + 2) * sizeof *length); /* of the margin by depth */
    int rc = CLI_OK;

    cli_string_add(&margin, "", 0);
    for (size_t i = 0; i < l->n && !rc; i++) {
        const struct entry *e = &l->items[i];
        const bool last = is_last(l, i);
        size_t depth = e->depth > 0 ? (size_t)e->depth : 1;

        depth =
            depth <= l->n ? depth : l->n; /* parents come first, so it cannot be more */
        margin.n_bytes = length[depth];
        cli_string_add(&margin, "", 0);
        rc = tree_line(cli, e, margin.text, last ? branch->last : branch->other);
        cli_string_printf(&margin, "%s", last ? branch->below_last : branch->below_other);
        length[depth + 1] = margin.n_bytes;
    }
    free(length);
    cli_string_free(&margin);
    return rc;
}

static int run_tree(struct cli *cli)
{
    struct cli_node node = {0};
    struct listing l = {.is_recursive = true};
    int rc = cli_node_open(cli, cli->n_args ? cli->args[0] : ".", CLI_OPEN_ANY, &node);

    if (!rc)
        rc = collect(cli, &node, &l);
    if (!rc && cli->json)
        listing_json(cli, &node, &l);
    else if (!rc)
        rc = cli_line(cli, "%s\n", node.shown);
    if (!rc && !cli->json)
        rc = tree_lines(cli, &l, &branches[cli_flag(cli, "ascii")]);
    listing_free(&l);
    cli_node_close(&node);
    return rc;
}

static const struct cli_option tree_options[] = {
    {"ascii", 0, 0, NULL, NULL, "draw with ASCII characters"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example tree_examples[] = {
    {"zarrc tree x.zarr", "The hierarchy, with data types and shapes."}, {NULL, NULL}};

const struct cli_command cli_cmd_tree = {
    .name = "tree",
    .summary = "draw the hierarchy below a group",
    .operands = "[NODE]",
    .max_args = 1,
    .about = "Draws everything below a group as a tree, arrays with data type and shape.",
    .json = "The same as zarrc ls -R --json.",
    .options = tree_options,
    .examples = tree_examples,
    .see_also = "zarrc-ls",
    .run = run_tree,
};
