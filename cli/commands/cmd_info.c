/*
 * commands/cmd_info.c - zarrc info: prints the properties of a node. They come from its
 * metadata, which takes one read. --stats also lists the stored chunks. The text may
 * change between versions; --json is stable.
 */
#include "commands/info.h"
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files ---- */

/* The files below a node, and the directory of a local store; else NULL. */
struct counting {
    struct info_files files;
    char *root;
};

static void set_root(void *user, const zarr_store_place *place)
{
    struct counting *c = user;
    struct stat st;

    /* the place of an archive is a file */
    if (strcmp(place->scheme, "file") == 0 && stat(place->prefix, &st) == 0 &&
        S_ISDIR(st.st_mode))
        c->root = cli_strdup(place->prefix);
}

/* POSIX leaves the unit of st_blocks open; Linux, macOS and the BSDs count 512 bytes. */
static int count_file(void *user, const zarr_store_item *item)
{
    struct counting *c = user;
    char *path = c->root ? cli_path_join(c->root, item->key) : NULL;
    struct stat st;

    c->files.n += !item->is_prefix;
    if (path && !item->is_prefix && stat(path, &st) == 0)
        c->files.allocated += (uint64_t)st.st_blocks * 512;
    free(path);
    return cli_is_cancelled();
}

/* Counts the files of a member of a node; "": of the node itself. A store that cannot
 * list leaves the numbers unknown. */
static struct info_files count_files(const struct cli_node *node, const char *member)
{
    struct counting c = {{0}, NULL};
    char *path = cli_path_join(node->path, member);

    zarr_store_tell_place(node->store, set_root, &c);
    c.files.is_known = zarr_store_list(node->store, path, ZARR_LIST_RECURSIVE, count_file,
                                       &c, cli_cancel, NULL) == ZARR_OK;
    c.files.is_local = c.root != NULL;
    free(c.root);
    free(path);
    return c.files;
}

/* ---- what is stored ---- */

static void stats_free(struct info_stats *s)
{
    for (size_t i = 0; i < s->n_faults; i++) {
        free(s->fault[i].path);
        free(s->fault[i].reason);
    }
    free(s->fault);
}

static void add_fault(struct info_stats *s, const char *path, zarr_status st,
                      const zarr_error *err)
{
    s->fault = cli_realloc(s->fault, (s->n_faults + 1) * sizeof *s->fault);
    s->fault[s->n_faults++] = (struct info_fault){
        .path = cli_strdup(path),
        .reason = cli_strdup(err->message),
        .status = st,
        .is_limit =
            st == ZARR_ERR_LIMIT && zarr_error_text(err, ZARR_ERROR_SETTING, NULL, 0) > 0,
    };
}

/* The exit code of verify for these faults. */
static int faults_exit_code(const struct info_stats *s)
{
    for (size_t i = 0; i < s->n_faults; i++)
        if (!s->fault[i].is_limit)
            return CLI_DIFFERENT;
    return s->n_faults ? CLI_CORRUPT : CLI_OK;
}

static zarr_status add_array(zarr_array *array, struct info_stats *s, zarr_error *err)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = cli_cancel};
    uint64_t n_objects = 0, bytes = 0;
    const zarr_status st = zarr_array_count_stored(array, &n_objects, &bytes, &io, err);

    if (st)
        return st;
    s->n_arrays++;
    s->n_objects += n_objects;
    s->bytes += bytes;
    s->n_total = cli_add(s->n_total, info_grid_count(array));
    s->decoded = cli_add(s->decoded, info_decoded_bytes(array));
    return ZARR_OK;
}

static int pass_member(void *user, const zarr_node_item *item)
{
    (void)user;
    (void)item;
    return ZARR_WALK_STOP;
}

/* Adds an array, or a node that the listing could not read: opening it, or listing its
 * members, tells the reason. */
static int add_node(struct cli *cli, const struct cli_node *top,
                    const struct cli_tree_item *item, struct info_stats *s)
{
    const bool is_broken = item->kind == ZARR_NODE_NONE;
    char *shown = cli_shown_below(top, item->path);
    char *full = cli_path_join(top->path, item->path);
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_node_open(&array, &group, top->store, full, NULL, NULL, &err);
    int rc = CLI_OK;

    if (array)
        st = add_array(array, s, &err);
    else if (group)
        st = zarr_group_list(group, pass_member, NULL, NULL, &err);
    if (cli_is_node_fault(st, &err) ||
        (is_broken && (st == ZARR_ERR_IO || st == ZARR_ERR_DENIED)))
        add_fault(s, full, st, &err);
    else if (st)
        rc = cli_fail(cli, st, &err, "cannot list the chunks of %s", shown);
    zarr_array_free(array);
    zarr_group_free(group);
    free(shown);
    free(full);
    return rc;
}

static int get_stats(struct cli *cli, const struct cli_node *node, struct info_stats *s)
{
    struct cli_tree tree = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    *s = (struct info_stats){.files = count_files(node, "")};
    if (node->array)
        st = add_array(node->array, s, &err);
    else
        rc = cli_tree_list(cli, node, &tree);
    for (size_t i = 0; i < tree.n_items && !rc; i++)
        if (tree.items[i].kind == ZARR_NODE_GROUP)
            s->n_groups++;
        else
            rc = add_node(cli, node, &tree.items[i], s);
    cli_tree_free(&tree);
    return st ? cli_fail(cli, st, &err, "cannot list the chunks of %s", node->shown) : rc;
}

static void stats_text(struct cli *cli, const struct info_stats *t)
{
    char stored[16], decoded[16];

    info_row(cli, "below", "%" PRIu64 " array%s, %" PRIu64 " group%s%s", t->n_arrays,
             cli_plural(t->n_arrays), t->n_groups - 1, cli_plural(t->n_groups - 1),
             t->n_faults ? ", and broken nodes:" : "");
    for (size_t i = 0; i < t->n_faults; i++)
        info_row(cli, "broken", "%s   [%s]", t->fault[i].reason,
                 zarr_status_text(t->fault[i].status));
    info_row(cli, "stored", "%s in %" PRIu64 " object%s, of %s decoded",
             cli_bytes_text(t->bytes, stored), t->n_objects, cli_plural(t->n_objects),
             t->decoded == UINT64_MAX ? "more than 2^64 bytes"
                                      : cli_bytes_text(t->decoded, decoded));
    info_files_text(cli, &t->files);
}

static void faults_json(struct cli_json *j, const struct info_stats *s)
{
    cli_json_u64(cli_key(j, "broken"), s->n_faults);
    cli_json_array(cli_key(j, "faults"));
    for (size_t i = 0; i < s->n_faults; i++) {
        cli_json_object(j);
        cli_json_text(cli_key(j, "node"), s->fault[i].path);
        cli_json_text(cli_key(j, "code"), zarr_status_text(s->fault[i].status));
        cli_json_text(cli_key(j, "reason"), s->fault[i].reason);
        cli_json_end(j);
    }
    cli_json_end(j);
}

void info_stats_json(struct cli_json *j, const struct info_stats *s, bool is_group)
{
    cli_json_object(cli_key(j, "stored"));
    if (is_group) {
        cli_json_u64(cli_key(j, "arrays"), s->n_arrays);
        cli_json_u64(cli_key(j, "groups"), s->n_groups);
        faults_json(j, s);
    }
    cli_json_u64(cli_key(j, "objects"), s->n_objects);
    info_count_json(cli_key(j, "objects_possible"), s->n_total);
    cli_json_u64(cli_key(j, "bytes"), s->bytes);
    if (is_group)
        info_count_json(cli_key(j, "decoded_bytes"), s->decoded);
    info_files_json(j, &s->files);
    cli_json_end(j);
}

/* ---- members of a group ---- */

enum {
    MOST_OPENED = 256 /* members: without consolidated metadata each takes a request */
};

/* A member; with --stats, with its files. */
struct child {
    char *name; /* owned */
    uint32_t kind;
    zarr_array *array; /* owned; NULL: no array, or it was not opened */
    struct info_files files;
};
struct children {
    struct child *item;
    size_t n;
};

static int add_child(void *user, const zarr_node_item *item)
{
    struct children *l = user;

    l->item = cli_realloc(l->item, (l->n + 1) * sizeof *l->item);
    l->item[l->n++] = (struct child){.name = cli_strdup(item->name), .kind = item->kind};
    return 0;
}

static void open_children(const struct cli_node *node, const struct children *l)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    const size_t most = zarr_group_is_consolidated(node->group) ? l->n : MOST_OPENED;

    for (size_t i = 0; i < l->n && i < most; i++)
        if (l->item[i].kind == ZARR_NODE_ARRAY &&
            zarr_group_open_array(&l->item[i].array, node->group, l->item[i].name, &opts,
                                  NULL) != ZARR_OK)
            l->item[i].array = NULL;
}

static void children_free(struct children *l)
{
    for (size_t i = 0; i < l->n; i++) {
        zarr_array_free(l->item[i].array);
        free(l->item[i].name);
    }
    free(l->item);
}

/* The dimensions of all members with their lengths: "time = 24, lat = 36". */
static void dimensions_row(struct cli *cli, const struct children *l)
{
    struct cli_string all = {0};

    cli_string_add(&all, ", ", 2);
    for (size_t i = 0; i < l->n; i++)
        for (int32_t d = 0; l->item[i].array && d < zarr_array_ndim(l->item[i].array);
             d++) {
            const char *name = zarr_array_dimension_name(l->item[i].array, d);
            char *text = name ? cli_format(", %s = %" PRIu64 ", ", name,
                                           zarr_array_shape(l->item[i].array)[d])
                              : NULL;

            if (text && !strstr(all.text, text))
                cli_string_add(&all, text + 2, strlen(text) - 2);
            free(text);
        }
    if (all.n_bytes > 2)
        info_row(cli, "dimensions", "%.*s", (int)all.n_bytes - 4, all.text + 2);
    cli_string_free(&all);
}

/* Prints the members: dimensions, coordinates, then the others. */
static void children_text(struct cli *cli, const struct children *l)
{
    dimensions_row(cli, l);
    for (int coordinates = 1; coordinates >= 0; coordinates--)
        for (size_t i = 0; i < l->n; i++) {
            const struct child *m = &l->item[i];
            char files[64];

            if ((m->array && info_is_coordinate(m->array, m->name)) != coordinates)
                continue;
            info_files_format(&m->files, "  ", files, sizeof files);
            if (m->array)
                info_variable_text(cli, m->array, m->name, files);
            else
                info_row(cli, cli_kind_name(m->kind), "%s%s", m->name, files);
        }
}

static void group_text(struct cli *cli, const struct cli_node *node,
                       const struct info_stats *stats, const struct children *l)
{
    cli_line(cli, "%s\n", node->shown);
    info_row(cli, "group", "Zarr v%d%s", (int)node->zarr_format,
             zarr_group_is_consolidated(node->group) ? ", consolidated metadata" : "");
    if (stats) {
        stats_text(cli, stats);
        info_store_text(cli, node->store);
    }
    info_attributes(cli, zarr_group_attributes(node->group));
    open_children(node, l);
    children_text(cli, l);
}

static void group_json(struct cli *cli, const struct cli_node *node,
                       const struct info_stats *stats, const struct children *l)
{
    struct cli_json *j = cli_json_node(cli, node->shown);

    cli_json_text(cli_key(j, "path"), node->path);
    cli_json_text(cli_key(j, "kind"), "group");
    cli_json_i64(cli_key(j, "zarr_format"), node->zarr_format);
    cli_json_bool(cli_key(j, "consolidated"),
                  zarr_group_is_consolidated(node->group) != 0);
    cli_json_raw(cli_key(j, "attributes"), zarr_group_attributes(node->group));
    cli_json_array(cli_key(j, "children"));
    for (size_t i = 0; i < l->n; i++) {
        cli_json_object(j);
        cli_json_text(cli_key(j, "name"), l->item[i].name);
        cli_json_text(cli_key(j, "kind"), cli_kind_name(l->item[i].kind));
        if (stats)
            info_files_json(j, &l->item[i].files);
        cli_json_end(j);
    }
    cli_json_end(j);
    if (stats) {
        info_stats_json(j, stats, true);
        info_store_json(j, node->store);
    }
}

static int group_info(struct cli *cli, const struct cli_node *node,
                      const struct info_stats *stats)
{
    const zarr_list_options o = {
        .struct_size = sizeof o, .flags = ZARR_MEMBERS_GO_ON, .cancel = cli_cancel};
    struct children children = {0};
    zarr_error err = {0};
    const zarr_status st = zarr_group_list(node->group, add_child, &children, &o, &err);

    for (size_t i = 0; i < children.n && stats; i++)
        children.item[i].files = count_files(node, children.item[i].name);
    if (!st)
        (cli->json ? group_json : group_text)(cli, node, stats, &children);
    children_free(&children);
    return st ? cli_fail(cli, st, &err, "cannot read group %s", node->shown) : CLI_OK;
}

/* ---- the command ---- */

static int info_node(struct cli *cli, struct cli_node *node)
{
    struct info_stats stats = {0}, *want = cli_flag(cli, "stats") ? &stats : NULL;
    zarr_error err = {0};
    const zarr_status st = node->array ? ZARR_OK : cli_node_group(node, &err);
    int rc = CLI_OK;

    if (st)
        return cli_fail(cli, st, &err, "cannot read group %s", node->shown);
    if (cli_flag(cli, "metadata"))
        return cli_printf(cli, "%s\n",
                          node->array ? zarr_array_metadata(node->array)
                                      : zarr_group_metadata(node->group));
    if (want)
        rc = get_stats(cli, node, want);
    if (!rc && node->group)
        rc = group_info(cli, node, want);
    else if (!rc)
        (cli->json ? info_array_json : info_array_text)(cli, node, want);
    rc = rc ? rc : faults_exit_code(&stats);
    stats_free(&stats);
    return rc;
}

static int info_one(struct cli *cli, const char *place)
{
    struct cli_node node = {0};
    int rc = cli_node_open(cli, place, CLI_OPEN_ANY, &node);

    if (!rc)
        rc = info_node(cli, &node);
    cli_node_close(&node);
    return rc;
}

static int run_info(struct cli *cli)
{
    return cli_each_node(cli, true, info_one);
}

static const struct cli_option info_options[] = {
    {"stats", 's', 0, NULL, NULL,
     "also count the stored objects, the files, and their bytes; groups: the sums of all "
     "arrays below, and the files of each member"},
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
    .operands = "NODE...",
    .min_args = 1,
    .max_args = -1,
    .about =
        "Shows the shape, data type, fill value, chunks, shards, codecs and attributes "
        "of each array. Of each group it shows the attributes, the dimensions and the "
        "members as ncdump -h does: coordinates first, with types, shapes, missing "
        "values and the attributes that tell what the values mean. Without consolidated "
        "metadata, members after the 256th are names only. Only metadata is read, unless "
        "--stats is given.\n\n"
        "--stats counts as files all keys of the node, documents included, but no "
        "directories, locks and temporary files. On a local disk it also shows the bytes "
        "that the file system allocated for them.\n\n"
        "--stats of a group names the nodes below that cannot be opened or counted, and "
        "goes on. The exit code is then that of zarrc-verify(1): 1, or 4 if only limits "
        "are in the way. The sums are without these nodes.",
    .json =
        "Several operands: a list of such documents. node: its location. path: inside "
        "the store. kind: array or group. zarr_format: 2 or 3. attributes: an object.\n\n"
        "Arrays: shape, dimension_names (null: no name), data_type, item_bytes, "
        "fill_value, chunks, shards (null: none), chunk_grid, codecs (as a v3 chain, "
        "also for v2), fields (of structs: name, data_type, offset, shape of the "
        "subarray, and fields of a nested struct), bytes (decoded), metadata (the "
        "document). With --stats: stored, an object with objects, objects_possible, "
        "bytes, files (null: the store cannot list), allocated_bytes (null: no local "
        "disk); and, of a store with a network, requests, an object with requests, "
        "retries, bytes_received, bytes_sent; and, of an archive with bytes that no "
        "value uses, dead, an object with values (replaced or erased) and bytes. Numbers "
        "that exceed 64 bits are null.\n\n"
        "Groups: consolidated, children (list of objects with name and kind; with "
        "--stats also files and allocated_bytes). With --stats: stored, the sums of all "
        "arrays below: arrays, groups (the group itself counts), broken (number of "
        "faults), faults (objects with node, code and reason), objects, "
        "objects_possible, bytes, decoded_bytes, files, allocated_bytes; requests and "
        "dead as of arrays.",
    .options = info_options,
    .examples = info_examples,
    .see_also = "zarrc-ls zarrc-attrs zarrc-explain zarrc-verify",
    .run = run_info,
};
