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

/* A member of a group, with the files below it. */
struct member {
    char *name; /* owned */
    struct info_files files;
};

/* The files of a node, and of each member of a group. */
struct usage {
    struct info_files all;
    struct member *member; /* sorted by name */
    size_t n_members;
    size_t prefix_bytes; /* of a key, up to the names of members */
    char *root;          /* directory of a local store, owned; NULL: another store */
};

static void usage_free(struct usage *u)
{
    for (size_t i = 0; i < u->n_members; i++)
        free(u->member[i].name);
    free(u->member);
    free(u->root);
}

static void set_root(void *user, const zarr_store_place *place)
{
    struct usage *u = user;
    struct stat st;

    /* the place of an archive is a file */
    if (strcmp(place->scheme, "file") == 0 && stat(place->prefix, &st) == 0 &&
        S_ISDIR(st.st_mode))
        u->root = cli_strdup(place->prefix);
}

static int add_member(void *user, const zarr_node_item *item)
{
    struct usage *u = user;

    u->member = cli_realloc(u->member, (u->n_members + 1) * sizeof *u->member);
    u->member[u->n_members++] = (struct member){.name = cli_strdup(item->name)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* The first part of a path. */
static int by_first_part(const void *path, const void *member)
{
    const char *name = ((const struct member *)member)->name;
    const size_t n = strcspn(path, "/");
    const int order = strncmp(path, name, n);

    return order ? order : name[n] ? -1 : 0;
}

/* The member whose name is the first part of a path; NULL: there is none. */
static struct member *find_member(const struct usage *u, const char *path)
{
    return u->n_members == 0
               ? NULL
               : bsearch(path, u->member, u->n_members, sizeof *u->member, by_first_part);
}

/* The bytes that a file takes on the disk; 0 if it is gone. POSIX leaves the unit of
 * st_blocks open; Linux, macOS and the BSDs count 512 bytes. */
static uint64_t allocated_bytes(const char *root, const char *key)
{
    char *path = cli_path_join(root, key);
    struct stat st;
    const uint64_t n = stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;

    free(path);
    return n;
}

static int count_file(void *user, const zarr_store_item *item)
{
    struct usage *u = user;
    struct member *m = NULL;
    uint64_t allocated = 0;

    if (item->is_prefix)
        return cli_is_cancelled();
    if (u->root)
        allocated = allocated_bytes(u->root, item->key);
    m = find_member(u, item->key + u->prefix_bytes);
    if (m) {
        m->files.n++;
        m->files.allocated += allocated;
    }
    u->all.n++;
    u->all.allocated += allocated;
    return cli_is_cancelled();
}

/* A store that cannot list everything below the node leaves the numbers unknown. */
static int get_usage(struct cli *cli, const struct cli_node *node, struct usage *u)
{
    const zarr_list_options o = {
        .struct_size = sizeof o, .flags = ZARR_MEMBERS_GO_ON, .cancel = cli_cancel};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    bool is_known = false;

    *u = (struct usage){.prefix_bytes = strlen(node->path) + (node->path[0] != '\0')};
    zarr_store_tell_place(node->store, set_root, u);
    if (node->group)
        st = zarr_group_list(node->group, add_member, u, &o, &err);
    if (u->n_members > 1)
        qsort(u->member, u->n_members, sizeof *u->member, by_name);
    if (!st)
        is_known = zarr_store_list(node->store, node->path, ZARR_LIST_RECURSIVE,
                                   count_file, u, cli_cancel, &err) == ZARR_OK;
    if (cli_is_cancelled())
        return cli_fail(cli, ZARR_ERR_CANCELLED, &err, "cannot list %s", node->shown);
    u->all.is_known = is_known;
    u->all.is_local = u->root != NULL;
    for (size_t i = 0; i < u->n_members; i++) {
        u->member[i].files.is_known = u->all.is_known;
        u->member[i].files.is_local = u->all.is_local;
    }
    return CLI_OK;
}

/* ---- stored chunks ---- */

static int get_stats(struct cli *cli, const struct cli_node *node, struct info_stats *s)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = cli_cancel};
    struct usage usage = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc;

    *s = (struct info_stats){.n_total = info_grid_count(node->array)};
    st = zarr_array_count_stored(node->array, &s->n_objects, &s->bytes, &io, &err);
    rc = st ? cli_fail(cli, st, &err, "cannot list the chunks of %s", node->shown)
            : get_usage(cli, node, &usage);
    s->files = usage.all;
    usage_free(&usage);
    return rc;
}

/* ---- groups ---- */

/* A node that cannot be opened, or whose chunks cannot be listed. */
struct fault {
    char *path, *reason; /* owned */
    zarr_status status;
    bool is_limit; /* of this run: it can be raised */
};

/* Sums of a group and everything below it; UINT64_MAX: more than 64 bits. */
struct totals {
    uint64_t n_arrays, n_groups;
    uint64_t n_objects, n_total, bytes, decoded;
    struct fault *fault;
    size_t n_faults;
    struct usage usage;
};

static void totals_free(struct totals *t)
{
    usage_free(&t->usage);
    for (size_t i = 0; i < t->n_faults; i++) {
        free(t->fault[i].path);
        free(t->fault[i].reason);
    }
    free(t->fault);
}

static void add_fault(struct totals *t, const char *path, zarr_status st,
                      const zarr_error *err)
{
    t->fault = cli_realloc(t->fault, (t->n_faults + 1) * sizeof *t->fault);
    t->fault[t->n_faults++] = (struct fault){
        .path = cli_strdup(path),
        .reason = cli_strdup(err->message),
        .status = st,
        .is_limit =
            st == ZARR_ERR_LIMIT && zarr_error_text(err, ZARR_ERROR_SETTING, NULL, 0) > 0,
    };
}

/* The exit code of verify for these faults. */
static int faults_exit_code(const struct totals *t)
{
    for (size_t i = 0; i < t->n_faults; i++)
        if (!t->fault[i].is_limit)
            return CLI_DIFFERENT;
    return t->n_faults ? CLI_CORRUPT : CLI_OK;
}

static int add_array(struct cli *cli, const struct cli_node *top, const char *path,
                     struct totals *t)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = cli_cancel};
    char *shown = cli_shown_below(top, path);
    char *full = cli_path_join(top->path, path);
    uint64_t n_objects = 0, bytes = 0;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_array_open(&array, top->store, full, NULL, &err);
    int rc = CLI_OK;

    if (!st)
        st = zarr_array_count_stored(array, &n_objects, &bytes, &io, &err);
    if (!st) {
        t->n_arrays++;
        t->n_objects += n_objects;
        t->bytes += bytes;
        t->n_total = cli_add(t->n_total, info_grid_count(array));
        t->decoded = cli_add(t->decoded, info_decoded_bytes(array));
    } else if (cli_is_node_fault(st, &err)) {
        add_fault(t, full, st, &err);
    } else {
        rc = cli_fail(cli, st, &err, "cannot list the chunks of %s", shown);
    }
    zarr_array_free(array);
    free(shown);
    free(full);
    return rc;
}

static int pass_member(void *user, const zarr_node_item *item)
{
    (void)user;
    (void)item;
    return ZARR_WALK_STOP;
}

/* A node that the listing could not read; opening it, or listing its members, tells the
 * reason. */
static int add_broken(struct cli *cli, const struct cli_node *top, const char *path,
                      struct totals *t)
{
    char *full = cli_path_join(top->path, path);
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_node_open(&array, &group, top->store, full, NULL, NULL, &err);
    int rc = CLI_OK;

    if (group)
        st = zarr_group_list(group, pass_member, NULL, NULL, &err);
    if (cli_is_node_fault(st, &err) || st == ZARR_ERR_IO || st == ZARR_ERR_DENIED)
        add_fault(t, full, st, &err);
    else if (st)
        rc = cli_fail(cli, st, &err, "cannot open %s", full);
    zarr_array_free(array);
    zarr_group_free(group);
    free(full);
    return rc;
}

static int get_totals(struct cli *cli, const struct cli_node *node, struct totals *t)
{
    struct cli_tree tree = {0};
    int rc = cli_tree_list(cli, node, &tree);

    *t = (struct totals){0};
    for (size_t i = 0; i < tree.n_items && !rc; i++) {
        const struct cli_tree_item *item = &tree.items[i];

        if (item->kind == ZARR_NODE_ARRAY)
            rc = add_array(cli, node, item->path, t);
        else if (item->kind == ZARR_NODE_GROUP)
            t->n_groups++;
        else
            rc = add_broken(cli, node, item->path, t);
    }
    cli_tree_free(&tree);
    return rc ? rc : get_usage(cli, node, &t->usage);
}

static void totals_text(struct cli *cli, const struct totals *t)
{
    char stored[16], decoded[16];

    info_row(cli, "below", "%" PRIu64 " array%s, %" PRIu64 " group%s%s", t->n_arrays,
             t->n_arrays == 1 ? "" : "s", t->n_groups - 1, t->n_groups == 2 ? "" : "s",
             t->n_faults ? ", and broken nodes:" : "");
    for (size_t i = 0; i < t->n_faults; i++)
        info_row(cli, "broken", "%s   [%s]", t->fault[i].reason,
                 zarr_status_text(t->fault[i].status));
    info_row(cli, "stored", "%s in %" PRIu64 " objects, of %s decoded",
             cli_bytes_text(t->bytes, stored), t->n_objects,
             t->decoded == UINT64_MAX ? "more than 2^64 bytes"
                                      : cli_bytes_text(t->decoded, decoded));
    info_files_text(cli, &t->usage.all);
}

static void totals_json(struct cli_json *j, const struct totals *t)
{
    cli_json_object(cli_key(j, "stored"));
    cli_json_u64(cli_key(j, "arrays"), t->n_arrays);
    cli_json_u64(cli_key(j, "groups"), t->n_groups);
    cli_json_u64(cli_key(j, "broken"), t->n_faults);
    cli_json_array(cli_key(j, "faults"));
    for (size_t i = 0; i < t->n_faults; i++) {
        cli_json_object(j);
        cli_json_text(cli_key(j, "node"), t->fault[i].path);
        cli_json_text(cli_key(j, "code"), zarr_status_text(t->fault[i].status));
        cli_json_text(cli_key(j, "reason"), t->fault[i].reason);
        cli_json_end(j);
    }
    cli_json_end(j);
    cli_json_u64(cli_key(j, "objects"), t->n_objects);
    info_count_json(cli_key(j, "objects_possible"), t->n_total);
    cli_json_u64(cli_key(j, "bytes"), t->bytes);
    info_count_json(cli_key(j, "decoded_bytes"), t->decoded);
    info_files_json(j, &t->usage.all);
    cli_json_end(j);
}

static const char *kind_name(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "broken";
}

/* Where the rows of members go. */
struct children {
    struct cli *cli;
    struct cli_json *json;
    const struct usage *usage; /* NULL: without --stats */
};

enum {
    MOST_OPENED = 256 /* members: without consolidated metadata each takes a request */
};

/* A member that is printed. */
struct child {
    char *name; /* owned */
    uint32_t kind;
    zarr_array *array; /* owned; NULL: no array, or it was not opened */
};
struct child_list {
    struct child *item;
    size_t n;
};

static int add_child(void *user, const zarr_node_item *item)
{
    struct child_list *l = user;

    l->item = cli_realloc(l->item, (l->n + 1) * sizeof *l->item);
    l->item[l->n++] = (struct child){.name = cli_strdup(item->name), .kind = item->kind};
    return 0;
}

/* The dimensions of all members with their lengths: "time = 24, lat = 36". */
static void dimensions_row(struct cli *cli, const struct child_list *l)
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

static void child_text(const struct children *c, const struct child *m)
{
    const struct member *found = c->usage ? find_member(c->usage, m->name) : NULL;
    char files[64] = "";

    if (found && found->files.is_known)
        info_files_format(&found->files, files, sizeof files);
    if (m->array)
        info_variable_text(c->cli, m->array, m->name, files);
    else
        info_row(c->cli, kind_name(m->kind), "%s%s%s", m->name, *files ? "  " : "",
                 files);
}

/* Prints the members: dimensions, coordinates, then the others. Frees them. */
static void children_text(const struct children *c, zarr_group *group,
                          struct child_list *l)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    const size_t most = zarr_group_is_consolidated(group) ? l->n : MOST_OPENED;

    for (size_t i = 0; i < l->n && i < most; i++)
        if (l->item[i].kind == ZARR_NODE_ARRAY &&
            zarr_group_open_array(&l->item[i].array, group, l->item[i].name, &opts,
                                  NULL) != ZARR_OK)
            l->item[i].array = NULL;
    dimensions_row(c->cli, l);
    for (int coordinates = 1; coordinates >= 0; coordinates--)
        for (size_t i = 0; i < l->n; i++) {
            const struct child *m = &l->item[i];

            if ((m->array && info_is_coordinate(m->array, m->name)) == coordinates)
                child_text(c, m);
        }
    for (size_t i = 0; i < l->n; i++) {
        zarr_array_free(l->item[i].array);
        free(l->item[i].name);
    }
    free(l->item);
}

static int child_json(void *user, const zarr_node_item *item)
{
    const struct children *c = user;
    const struct member *m = c->usage ? find_member(c->usage, item->name) : NULL;

    cli_json_object(c->json);
    cli_json_text(cli_key(c->json, "name"), item->name);
    cli_json_text(cli_key(c->json, "kind"), kind_name(item->kind));
    if (m)
        info_files_json(c->json, &m->files);
    cli_json_end(c->json);
    return 0;
}

static zarr_status group_json(struct cli *cli, const struct cli_node *node,
                              zarr_group *group, const struct totals *totals,
                              zarr_error *err)
{
    const zarr_list_options o = {
        .struct_size = sizeof o, .flags = ZARR_MEMBERS_GO_ON, .cancel = cli_cancel};
    struct cli_json *j = cli_json(cli);
    struct children children = {.json = j, .usage = totals ? &totals->usage : NULL};
    zarr_status st;

    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), node->shown);
    cli_json_text(cli_key(j, "path"), node->path);
    cli_json_text(cli_key(j, "kind"), "group");
    cli_json_i64(cli_key(j, "zarr_format"), node->zarr_format);
    cli_json_bool(cli_key(j, "consolidated"), zarr_group_is_consolidated(group) != 0);
    cli_json_raw(cli_key(j, "attributes"), zarr_group_attributes(group));
    cli_json_array(cli_key(j, "children"));
    st = zarr_group_list(group, child_json, &children, &o, err);
    cli_json_end(j);
    if (totals)
        totals_json(j, totals);
    if (totals)
        info_store_json(j, node->store);
    cli_json_end(j);
    return st;
}

static zarr_status group_text(struct cli *cli, const struct cli_node *node,
                              zarr_group *group, const struct totals *totals,
                              zarr_error *err)
{
    const zarr_list_options o = {
        .struct_size = sizeof o, .flags = ZARR_MEMBERS_GO_ON, .cancel = cli_cancel};
    struct children children = {.cli = cli, .usage = totals ? &totals->usage : NULL};
    struct child_list list = {0};
    zarr_status st;

    cli_line(cli, "%s\n", node->shown);
    info_row(cli, "group", "Zarr v%d%s", (int)node->zarr_format,
             zarr_group_is_consolidated(group) ? ", consolidated metadata" : "");
    if (totals)
        totals_text(cli, totals);
    if (totals)
        info_store_text(cli, node->store);
    info_attributes(cli, zarr_group_attributes(group));
    st = zarr_group_list(group, add_child, &list, &o, err);
    children_text(&children, group, &list);
    return st;
}

static int group_info(struct cli *cli, struct cli_node *node)
{
    const bool want = cli_flag(cli, "stats");
    struct totals totals = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    st = cli_node_group(node, &err);
    if (!st && want)
        rc = get_totals(cli, node, &totals);
    if (rc)
        goto out;
    if (!st)
        st = (cli->json ? group_json : group_text)(cli, node, node->group,
                                                   want ? &totals : NULL, &err);
    rc = st ? cli_fail(cli, st, &err, "cannot read group %s", node->shown)
            : faults_exit_code(&totals);
out:
    totals_free(&totals);
    return rc;
}

/* ---- the command ---- */

static int raw_metadata(struct cli *cli, struct cli_node *node)
{
    zarr_error err = {0};
    zarr_status st;

    if (node->kind == ZARR_NODE_ARRAY)
        return cli_printf(cli, "%s\n", zarr_array_metadata(node->array));
    st = cli_node_group(node, &err);
    if (!st)
        cli_printf(cli, "%s\n", zarr_group_metadata(node->group));
    return st ? cli_fail(cli, st, &err, "cannot read group %s", node->shown) : CLI_OK;
}

static int info_one(struct cli *cli, const char *place)
{
    struct cli_node node = {0};
    struct info_stats stats;
    bool want = cli_flag(cli, "stats");
    int rc = cli_node_open(cli, place, CLI_OPEN_ANY, &node);

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
        "values "
        "and the attributes that tell what the values mean. Without consolidated "
        "metadata, "
        "members after the 256th are names only. Only metadata is read, unless --stats "
        "is "
        "given.\n\n"
        "--stats counts as files all keys of the node, documents included, but no "
        "directories, locks and temporary files. On a local disk it also shows the bytes "
        "that the file system allocated for them.\n\n"
        "--stats of a group names the nodes below that cannot be opened or counted, and "
        "goes on. The exit code is then that of zarrc-verify(1): 1, or 4 if only limits "
        "are in the way. The sums are without these nodes.",
    .json =
        "Several operands: a list of such documents. node: its location. path: inside "
        "the store. kind: array or group. zarr_format: "
        "2 "
        "or 3. attributes: an object.\n\n"
        "Arrays: shape, dimension_names (null: no name), data_type, item_bytes, "
        "fill_value, chunks, shards (null: none), chunk_grid, codecs (as a v3 chain, "
        "also "
        "for v2), fields (of structs: name, data_type, offset, shape of the subarray, "
        "and "
        "fields of a nested struct), bytes (decoded), metadata (the document). With "
        "--stats: stored, an object with objects, objects_possible, bytes, files (null: "
        "the "
        "store cannot list), allocated_bytes (null: no local disk); and, of a "
        "store with a network, requests, an object with requests, retries, "
        "bytes_received, bytes_sent; and, of an archive with bytes that no value uses, "
        "dead, an object with values (replaced or erased) and bytes. Numbers that "
        "exceed 64 bits are null.\n\n"
        "Groups: consolidated, children (list of objects with name and kind; with "
        "--stats also files and allocated_bytes). With "
        "--stats: stored, the sums of all arrays below: arrays, groups (the group itself "
        "counts), broken (number of faults), faults (objects with node, code and "
        "reason), "
        "objects, objects_possible, bytes, decoded_bytes, files, allocated_bytes; "
        "requests and dead as of "
        "arrays.",
    .options = info_options,
    .examples = info_examples,
    .see_also = "zarrc-ls zarrc-attrs zarrc-explain zarrc-verify",
    .run = run_info,
};
