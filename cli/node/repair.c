/*
 * node/repair.c - mends the faults that verify found: `verify --repair`. Each repair is
 * made in an overlay, where what it mends must then be readable. With --yes the change of
 * each object goes to the store in one step, and only if the object still is the one that
 * was found broken. So no other object changes, and after a kill the same command goes
 * on.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum how {
    HOW_DELETE,
    HOW_FROM,
    HOW_CONSOLIDATED
};

/* A key that a repair may change, with its version before. */
struct watched {
    char *key;
    zarr_store_value seen;
};

struct repair {
    struct cli *cli;
    const struct cli_node *node;
    enum how how;
    bool yes;
    enum cli_drop drop;
    struct cli_node from; /* the other store */
    struct cli_overlay *overlay;
    zarr_store *store; /* the overlay */
    struct watched watched[2];
    unsigned n_watched;
    char *checked;         /* path of the array that check_metadata() looked at */
    bool is_doubtful;      /* its verdict */
    struct cli_keys tried; /* paths whose documents cannot be restored */
    uint64_t n_items, n_failed, n_mended; /* n_mended: findings in chunks */
};

static zarr_status set_error(zarr_error *err, zarr_status st, const char *text)
{
    *err = (zarr_error){.code = st};
    snprintf(err->message, sizeof err->message, "%s", text);
    return st;
}

/* ---- the keys of one repair ---- */

static void watch(struct repair *r, const char *path, const char *name)
{
    struct watched *w = &r->watched[r->n_watched++];

    w->key = cli_path_join(path, name);
    cli_overlay_see(r->overlay, w->key, &w->seen);
}

/* Makes the changes, or after a failure forgets them. A plan keeps those of documents. */
static zarr_status finish(struct repair *r, zarr_status st, bool keep, zarr_error *err)
{
    for (; r->n_watched; r->n_watched--) {
        struct watched *w = &r->watched[r->n_watched - 1];

        if (!st && r->yes)
            st = cli_overlay_commit(r->overlay, w->key, &w->seen, err);
        if (st || (!r->yes && !keep))
            cli_overlay_forget(r->overlay, w->key);
        free(w->key);
    }
    return st;
}

/* ---- the plan ---- */

/* One line of the plan, or of what was done. lost may be NULL. */
static void tell(struct repair *r, const char *key, const char *action,
                 const struct cli_losses *lost, zarr_status st, const zarr_error *err)
{
    struct cli_json *j = r->cli->json ? cli_json(r->cli) : NULL;
    struct cli_string regions = {0};

    r->n_items++;
    r->n_failed += st != ZARR_OK;
    cli_string_add(&regions, "", 0);
    if (j) {
        cli_json_object(j);
        cli_json_text(cli_key(j, "key"), key);
        cli_json_text(cli_key(j, "action"), action);
        cli_json_list(cli_key(j, "regions"));
    }
    for (size_t i = 0; lost && i < lost->n; i++) {
        char *text = cli_region_text(lost->items[i].ndim, &lost->items[i].region);

        if (j)
            cli_json_text(j, text);
        else
            cli_string_printf(&regions, " [%s]", text);
        free(text);
    }
    if (j) {
        cli_json_end(j);
        cli_json_bool(cli_key(j, "done"), r->yes && !st);
        cli_json_text(cli_key(j, "reason"), st ? err->message : NULL);
        cli_json_end(j);
    } else if (st) {
        cli_line(r->cli, "%s: cannot %s%s: %s\n", key, action, regions.text,
                 err->message);
    } else {
        cli_line(r->cli, "%s: %s%s%s\n", key, r->yes ? "done: " : "plan: ", action,
                 regions.text);
    }
    cli_string_free(&regions);
}

/* ---- blocks ---- */

static bool has_same_fill(const zarr_array *a, const zarr_array *b)
{
    const zarr_array *const both[2] = {a, b};
    char text[2][ZARR_ERROR_MESSAGE_BYTES] = {{0}};
    size_t bytes[2] = {0};

    for (int i = 0; i < 2; i++) {
        const void *fill = zarr_array_fill_value(both[i]);

        if (fill && zarr_dtype_print(zarr_array_dtype(both[i]), fill, text[i],
                                     sizeof text[i], &bytes[i], NULL) != ZARR_OK)
            return false;
    }
    return bytes[0] == bytes[1] && bytes[0] < sizeof text[0] &&
           memcmp(text[0], text[1], bytes[0]) == 0;
}

/* Whether encoded blocks of one array mean the same in the other. */
static bool has_same_encoding(const zarr_array *a, const zarr_array *b,
                              const uint64_t *block)
{
    const size_t shape_bytes = (size_t)zarr_array_ndim(a) * sizeof(uint64_t);
    uint64_t at[2][ZARR_MAX_RANK] = {{0}}, size[2][ZARR_MAX_RANK] = {{0}};

    return zarr_array_ndim(a) == zarr_array_ndim(b) &&
           memcmp(zarr_array_shape(a), zarr_array_shape(b), shape_bytes) == 0 &&
           zarr_dtype_equal(zarr_array_dtype(a), zarr_array_dtype(b)) &&
           zarr_array_block_extent(a, block, at[0], size[0], NULL) == ZARR_OK &&
           zarr_array_block_extent(b, block, at[1], size[1], NULL) == ZARR_OK &&
           memcmp(at[0], at[1], sizeof at[0]) == 0 &&
           memcmp(size[0], size[1], sizeof size[0]) == 0 &&
           strcmp(zarr_array_codecs(a), zarr_array_codecs(b)) == 0 && has_same_fill(a, b);
}

static zarr_status copy_encoded(zarr_array *other, zarr_array *array,
                                const uint64_t *block, zarr_error *err)
{
    uint64_t bytes = 0;
    void *data = NULL;
    zarr_status st =
        zarr_array_block_read_encoded(other, block, NULL, &bytes, cli_cancel, err);

    if (st == ZARR_ERR_LIMIT) {
        data = cli_alloc((size_t)bytes);
        st = zarr_array_block_read_encoded(other, block, data, &bytes, cli_cancel, err);
    }
    if (!st)
        st = zarr_array_block_write_encoded(array, block, data, bytes, cli_cancel, err);
    free(data);
    return st;
}

static zarr_status copy_block(struct repair *r, zarr_array *array, const char *path,
                              const struct cli_losses *lost, zarr_error *err)
{
    const struct cli_lost *first = &lost->items[0];
    struct cli_elements_block buffer = {0};
    char *at = cli_path_join(r->from.path, path);
    zarr_array *other = NULL;
    zarr_status st = zarr_array_open(&other, r->from.store, at, NULL, err);

    if (!st && !has_same_encoding(array, other, first->block))
        st = set_error(err, ZARR_ERR_INVALID,
                       "the array in the other store has another shape, data type, fill "
                       "value, chunk grid or codecs");
    if (!st && first->is_block)
        st = copy_encoded(other, array, first->block, err);
    else
        for (size_t i = 0; i < lost->n && !st; i++) {
            const struct cli_region *region = &lost->items[i].region;

            st = cli_region_read(r->cli, other, region, ZARR_MISSING_ERROR, &buffer, err);
            if (!st)
                st = cli_region_write(array, region, buffer.data, false,
                                      ZARR_EMPTY_CHUNKS_WRITE, err);
        }
    cli_elements_block_free(&buffer);
    zarr_array_free(other);
    free(at);
    return st;
}

/* How many of the first stored blocks can be decoded, at least in part. */
struct fit {
    struct repair *r;
    zarr_array *array;
    unsigned n, n_good, most;
};

static int try_block(void *user, const zarr_block_info *block)
{
    struct fit *f = user;
    struct cli_losses lost = {0};

    f->n_good += cli_block_probe(f->r->cli, f->array, block->coordinates, &lost, NULL) ||
                 lost.n == 0 || !lost.items[0].is_all;
    cli_losses_free(&lost);
    return ++f->n == f->most || f->n_good;
}

/* If nothing of several blocks can be decoded, the metadata may be wrong, not they. */
static zarr_status check_metadata(struct repair *r, zarr_array *array, const char *path,
                                  zarr_error *err)
{
    struct fit fit = {.r = r, .array = array};
    zarr_status st = ZARR_OK;

    if (!r->checked || strcmp(r->checked, path) != 0) {
        st =
            zarr_array_list_blocks(array, ZARR_BLOCKS_STORED, try_block, &fit, NULL, err);
        free(r->checked);
        r->checked = cli_strdup(path);
        r->is_doubtful = fit.n > 1 && !fit.n_good;
    }
    return st || !r->is_doubtful
               ? st
               : set_error(err, ZARR_ERR_CORRUPT,
                           "no block of the array can be decoded, so the metadata may be "
                           "wrong: restore it, or delete the array");
}

/* Replaces what is lost of one block. */
static zarr_status delete_block(struct repair *r, zarr_array *array,
                                const struct cli_losses *lost, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < lost->n && !st; i++)
        st = lost->items[i].is_read_error
                 ? set_error(err, ZARR_ERR_IO,
                             "it cannot be read, but may be sound: the disk or the "
                             "network failed; reencode --skip-damaged saves the rest")
                 : cli_block_drop(r->cli, array, &lost->items[i], r->drop, err);
    return st;
}

/* Mends one block in the overlay, and reads it there. */
static zarr_status mend_block(struct repair *r, const struct cli_fault *fault,
                              struct cli_losses *lost, zarr_error *err)
{
    struct cli_losses rest = {0};
    zarr_array *array = NULL;
    zarr_status st = zarr_array_open(&array, r->store, fault->path, NULL, err);

    if (!st)
        st = cli_block_probe(r->cli, array, fault->block, lost, err);
    if (!st && lost->n && r->how == HOW_DELETE)
        st = check_metadata(r, array, fault->path, err);
    if (!st && lost->n)
        st = r->how == HOW_FROM ? copy_block(r, array, fault->path, lost, err)
                                : delete_block(r, array, lost, err);
    if (!st)
        st = cli_block_probe(r->cli, array, fault->block, &rest, err);
    if (!st && rest.n)
        st = set_error(err, ZARR_ERR_CORRUPT, rest.items[0].reason);
    cli_losses_free(&rest);
    zarr_array_free(array);
    return st;
}

static void repair_block(struct repair *r, const struct cli_fault *fault)
{
    struct cli_losses lost = {0};
    zarr_error err = {0};
    zarr_status st;

    watch(r, "", fault->key);
    st = mend_block(r, fault, &lost, &err);
    st = finish(r, st, false, &err);
    tell(r, fault->key,
         r->how == HOW_FROM                  ? "copy"
         : r->drop == CLI_DROP_FILL          ? "fill"
         : lost.n && !lost.items[0].is_block ? "delete chunks"
                                             : "delete",
         &lost, st, &err);
    r->n_mended += st ? 0 : fault->n_findings;
    cli_losses_free(&lost);
}

/* ---- documents ---- */

/* The documents of a node in another place. */
struct documents {
    const char *path;        /* of the node */
    char *main, *attributes; /* texts; attributes: of v2, or NULL */
    const char *main_name;
};

static void documents_free(struct documents *d)
{
    free(d->main);
    free(d->attributes);
}

/* The document of a group without its copies of others, which may be old: an entry in
 * consolidated metadata says that there is nothing below it. */
static char *without_consolidated(const char *json)
{
    const char *at = cli_json_members(json), *value;
    struct cli_string text = {0};
    size_t bytes;
    char *key;

    cli_string_add(&text, "{", 1);
    while ((value = cli_json_next(&at, &key, &bytes)) != NULL) {
        if (strcmp(key, "consolidated_metadata") != 0) {
            if (text.n_bytes > 1)
                cli_string_add(&text, ",", 1);
            cli_string_add_quoted(&text, key);
            cli_string_printf(&text, ":%.*s", (int)bytes, value);
        }
        free(key);
    }
    cli_string_add(&text, "}", 1);
    return text.text;
}

/* Takes the documents of an open node. */
static void take_documents(struct documents *d, zarr_array *array, zarr_group *group)
{
    const char *text =
        array ? zarr_array_attributes(array) : zarr_group_attributes(group);
    const int32_t format =
        array ? zarr_array_zarr_format(array) : zarr_group_zarr_format(group);

    d->main = without_consolidated(array ? zarr_array_metadata(array)
                                         : zarr_group_metadata(group));
    d->main_name = format == 3 ? "zarr.json" : array ? ".zarray" : ".zgroup";
    if (format == 2 && strcmp(text, "{}") != 0)
        d->attributes = cli_strdup(text);
    zarr_array_free(array);
    zarr_group_free(group);
}

/* From the consolidated metadata of the nearest group above that lists the node. */
static void find_consolidated(struct repair *r, struct documents *d)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    char *above = cli_strdup(d->path);

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    while (*above && !d->main && !cli_is_cancelled()) {
        zarr_group *group = NULL, *member = NULL;
        zarr_array *array = NULL;
        char *slash = strrchr(above, '/');

        *(slash ? slash : above) = '\0';
        if (zarr_group_open(&group, r->store, above, &opts, NULL) == ZARR_OK &&
            zarr_group_open_node(&array, &member, group, cli_path_below(d->path, above),
                                 NULL, NULL, NULL) == ZARR_OK)
            take_documents(d, array, member);
        zarr_group_free(group);
    }
    free(above);
}

static void find_in_store(struct repair *r, struct documents *d)
{
    char *at = cli_path_join(r->from.path, d->path);
    zarr_array *array = NULL;
    zarr_group *group = NULL;

    if (zarr_node_open(&array, &group, r->from.store, at, NULL, NULL, NULL) == ZARR_OK)
        take_documents(d, array, group);
    free(at);
}

static zarr_status open_node(const struct repair *r, const char *path, zarr_error *err)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    st = zarr_node_open(&array, &group, r->store, path, NULL, &opts, err);
    zarr_array_free(array);
    zarr_group_free(group);
    return st == ZARR_ERR_UNSUPPORTED ? ZARR_OK : st;
}

/* Reads a document: owned, empty if it has no text. Returns false if it is missing. */
static bool read_document(const struct repair *r, const char *path, const char *name,
                          char **text)
{
    zarr_store_value value = ZARR_STORE_VALUE_INIT;
    char *key = cli_path_join(path, name);
    const zarr_status st = zarr_store_stat(r->store, key, &value, cli_cancel, NULL);
    uint64_t n = st || value.bytes > ((uint64_t)64 << 20) ? 0 : value.bytes;

    *text = cli_alloc((size_t)n + 1);
    if (zarr_store_get(r->store, key, 0, *text, &n, cli_cancel, NULL) != ZARR_OK)
        n = 0;
    (*text)[n] = '\0';
    free(key);
    return st != ZARR_ERR_NOT_FOUND;
}

/* Whether a document of a newer version is in the place of the one to restore, or only
 * documents of the other format. */
static bool is_no_place(const struct repair *r, const char *path, bool is_v3)
{
    static const char *const names[] = {"zarr.json", ".zarray", ".zgroup"};
    bool has[2] = {false, false}, is_newer = false; /* has: documents of v2, of v3 */

    for (unsigned i = 0; i < 3; i++) {
        const char *version, *type;
        size_t bytes = 0;
        char *text;

        if (read_document(r, path, names[i], &text))
            has[i == 0] = true;
        version = cli_json_member(text, "zarr_format", &bytes);
        type = i == 0 ? cli_json_member(text, "node_type", &bytes) : NULL;
        is_newer = is_newer || (version && strcspn(version, "23") != 0) ||
                   (type && strncmp(type, "\"array\"", 7) != 0 &&
                    strncmp(type, "\"group\"", 7) != 0);
        free(text);
    }
    return is_newer || (has[!is_v3] && !has[is_v3]);
}

static zarr_status check_place(const struct repair *r, const struct documents *d,
                               zarr_error *err)
{
    const bool is_v3 = strcmp(d->main_name, "zarr.json") == 0;
    char *above = cli_strdup(d->path), *slash = strrchr(above, '/');
    const bool bad =
        is_no_place(r, above, is_v3) ||
        (*above && (*(slash ? slash : above) = '\0', is_no_place(r, above, is_v3)));

    free(above);
    return bad ? set_error(err, ZARR_ERR_INVALID,
                           "its metadata, or that of the group above, has another Zarr "
                           "format than the metadata to restore, or is newer")
               : ZARR_OK;
}

/* Opens a node, and if it is an array, looks at its chunks. */
static zarr_status check_restored(struct repair *r, const char *path, zarr_error *err)
{
    struct fit fit = {.r = r, .most = 8};
    zarr_status st = open_node(r, path, err);

    if (!st && zarr_array_open(&fit.array, r->store, path, NULL, NULL) == ZARR_OK)
        st = zarr_array_list_blocks(fit.array, ZARR_BLOCKS_STORED, try_block, &fit, NULL,
                                    err);
    zarr_array_free(fit.array);
    return st || !fit.n || fit.n_good
               ? st
               : set_error(err, ZARR_ERR_CORRUPT,
                           "the chunks cannot be decoded with the metadata to restore");
}

/* Tries the main document alone, then the attributes alone, then both: a sound document
 * keeps its bytes. */
static zarr_status put_documents(struct repair *r, const struct documents *d,
                                 zarr_error *err)
{
    const char *const names[2] = {d->main_name, ".zattrs"};
    const char *text[2] = {d->main, d->attributes};
    const unsigned sets = strcmp(d->main_name, "zarr.json") == 0 ? 1 : 3;
    zarr_status st = check_place(r, d, err);
    bool done = false;

    watch(r, d->path, names[0]);
    if (sets > 1)
        watch(r, d->path, names[1]);
    for (unsigned set = 1; set <= sets && !st && !done; set++) {
        for (unsigned i = 0; i < r->n_watched && !st; i++) {
            const char *key = r->watched[i].key;

            cli_overlay_forget(r->overlay, key);
            if (set & 1u << i && text[i])
                st = zarr_store_put(r->store, key, text[i], strlen(text[i]), NULL, err);
            else if (set & 1u << i)
                st = zarr_store_erase(r->store, key, NULL, err);
        }
        done = !st && open_node(r, d->path, err) == ZARR_OK;
    }
    return st ? st : done ? check_restored(r, d->path, err) : err->code;
}

static int add_path(void *user, const char *path, const char *what)
{
    const zarr_store_item item = {.key = path};

    (void)what;
    return cli_keys_add(user, &item);
}

/* Restores the documents of one node. */
static bool restore(struct repair *r, const char *path)
{
    struct documents d = {.path = path};
    zarr_error err = {0};
    zarr_status st;

    for (size_t i = 0; i < r->tried.n_items; i++)
        if (strcmp(r->tried.items[i], path) == 0)
            return false;
    if (r->how == HOW_FROM)
        find_in_store(r, &d);
    else
        find_consolidated(r, &d);
    st = d.main
             ? put_documents(r, &d, &err)
             : set_error(&err, ZARR_ERR_NOT_FOUND,
                         r->how == HOW_FROM ? "the other store has no such node"
                                            : "no consolidated metadata above lists it");
    st = finish(r, st, true, &err);
    tell(r, *path ? path : "/", "restore the metadata", NULL, st, &err);
    documents_free(&d);
    if (st)
        (void)add_path(&r->tried, path, NULL);
    return st == ZARR_OK;
}

/* ---- consolidated metadata ---- */

static bool consolidate(struct repair *r, const char *path)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    watch(r, path, "zarr.json");
    watch(r, path, ".zmetadata");
    st = zarr_group_open(&group, r->store, path, &opts, &err);
    if (!st)
        st = zarr_group_consolidate(group, NULL, &err);
    zarr_group_free(group);
    st = finish(r, st, true, &err);
    tell(r, *path ? path : "/", "consolidate again", NULL, st, &err);
    return st == ZARR_OK;
}

static int any_key(void *user, const zarr_store_item *item)
{
    (void)item;
    *(bool *)user = true;
    return 1;
}

/* Whether the documents of a node are missing, but not what is below it. */
static bool is_missing(const struct repair *r, const char *path)
{
    bool any = false;
    zarr_error err = {0};

    return open_node(r, path, &err) == ZARR_ERR_NOT_FOUND &&
           zarr_store_list(r->store, path, ZARR_LIST_RECURSIVE, any_key, &any, cli_cancel,
                           &err) == ZARR_OK &&
           any;
}

/* The paths of a group's nodes that differ from its consolidated metadata. */
static zarr_status find_stale(struct repair *r, const char *path, struct cli_keys *paths,
                              zarr_error *err)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    st = zarr_group_open(&group, r->store, path, &opts, err);
    if (!st)
        st = zarr_group_consolidated_check(group, add_path, paths, NULL, err);
    zarr_group_free(group);
    return st;
}

/* A group whose consolidated metadata is broken, or differs from its nodes. */
static bool repair_group(struct repair *r, const char *path)
{
    struct cli_keys paths = {0};
    zarr_error err = {0};
    const zarr_status st = find_stale(r, path, &paths, &err);
    bool ok = !st || st == ZARR_ERR_NOT_FOUND || cli_is_damage(st, &err);
    bool again = false, stale = st ? st != ZARR_ERR_NOT_FOUND : paths.n_items > 0;

    for (size_t i = 0; i < paths.n_items && ok && !again && !cli_is_cancelled(); i++)
        if (is_missing(r, paths.items[i]))
            ok = again = restore(r, paths.items[i]);
    cli_keys_free(&paths);
    if (again) /* other nodes may be below the restored one */
        return repair_group(r, path);
    /* from: only the other direction mends it */
    return ok && (!stale || r->how != HOW_CONSOLIDATED || consolidate(r, path));
}

/* A node whose own documents are sound: a group, because of those of another node. */
static bool repair_sound_node(struct repair *r, const struct cli_fault *fault)
{
    zarr_error err = {0};

    if (fault->kind == ZARR_NODE_GROUP)
        return repair_group(r, fault->path);
    (void)set_error(&err, ZARR_ERR_INVALID, fault->message);
    tell(r, fault->key, "mend", NULL, ZARR_ERR_INVALID, &err);
    return false;
}

/* ---- all of them ---- */

static int repair_open(struct repair *r, const char *text)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    r->how = strcmp(text, "delete") == 0         ? HOW_DELETE
             : strcmp(text, "consolidated") == 0 ? HOW_CONSOLIDATED
                                                 : HOW_FROM;
    if (r->how == HOW_FROM)
        rc = cli_node_open(r->cli, text + strlen("from:"), CLI_OPEN_PROBE, &r->from);
    if (rc)
        return rc;
    zarr_store_capabilities(r->node->store, &caps);
    r->drop = caps.flags & ZARR_STORE_CAP_PUT_IF_VERSION &&
                      !(caps.flags & ZARR_STORE_CAP_ERASE_IF_VERSION)
                  ? CLI_DROP_FILL /* such as S3: an erase might hit a newer object */
                  : CLI_DROP_ERASE;
    st = cli_overlay_open(&r->overlay, &r->store, r->node->store, &err);
    return st ? cli_fail(r->cli, st, &err, "cannot repair %s", r->node->shown) : CLI_OK;
}

/* Whether documents are missing or damaged: neither limits, permissions nor network. */
static bool is_broken(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_NOT_FOUND || cli_is_damage(st, err);
}

static void repair_all(struct repair *r, const struct cli_faults *faults)
{
    bool *later = cli_alloc(faults->n + 1);
    zarr_error err = {0};

    for (size_t i = 0; i < faults->n && !cli_is_cancelled(); i++) {
        const struct cli_fault *f = &faults->items[i];

        if (f->what == ZARR_FINDING_CHUNK && r->how != HOW_CONSOLIDATED)
            repair_block(r, f);
        else if (f->what == ZARR_FINDING_NODE && r->how != HOW_DELETE &&
                 is_broken(open_node(r, f->path, &err), &err))
            (void)restore(r, f->path);
        else
            later[i] = f->what != ZARR_FINDING_CHUNK && r->how != HOW_DELETE;
    }
    /* the check of a group fails as long as one of its nodes is broken, and verify then
     * says nothing of the others */
    if (r->how != HOW_DELETE)
        (void)repair_group(r, r->node->path);
    for (size_t i = 0; i < faults->n && !cli_is_cancelled(); i++) {
        const struct cli_fault *f = &faults->items[i];

        if (later[i] && f->what == ZARR_FINDING_CONSOLIDATED)
            (void)repair_group(r, f->path);
        else if (later[i])
            (void)repair_sound_node(r, f);
    }
    free(later);
}

int cli_repair_check(struct cli *cli)
{
    const char *text = cli_text(cli, "repair");

    if (!text && cli_flag(cli, "yes"))
        return cli_error(cli, CLI_USAGE, NULL, "--yes requires --repair");
    if (text && strcmp(text, "delete") != 0 && strcmp(text, "consolidated") != 0 &&
        (strncmp(text, "from:", 5) != 0 || !text[5]))
        return cli_error(cli, CLI_USAGE, NULL,
                         "--repair is delete, from:STORE or consolidated, not \"%s\"",
                         text);
    return CLI_OK;
}

int cli_repair(struct cli *cli, struct cli_node *node, const struct cli_faults *faults,
               uint64_t *n_mended, uint64_t *n_failed)
{
    struct repair r = {.cli = cli, .node = node, .yes = cli_flag(cli, "yes")};
    int rc = repair_open(&r, cli_text(cli, "repair"));

    if (!rc && cli->json)
        cli_json_array(cli_key(cli_json(cli), "repairs"));
    if (!rc)
        repair_all(&r, faults);
    if (!rc && cli->json)
        cli_json_end(cli_json(cli));
    cli_keys_free(&r.tried);
    free(r.checked);
    zarr_store_free(r.store);
    cli_node_close(&r.from);
    if (!rc && r.yes)
        rc = cli_node_flush(cli, node);
    if (!rc && cli_is_cancelled())
        rc = cli_error(cli, CLI_INTERRUPTED, NULL, "interrupted");
    if (!rc && r.yes)
        *n_mended = r.n_mended;
    *n_failed = r.n_failed;
    if (!rc)
        cli_say(cli, "%" PRIu64 " repair%s%s, %" PRIu64 " of them not possible",
                r.n_items, r.n_items == 1 ? "" : "s",
                r.yes ? "" : " planned, which --yes does", r.n_failed);
    return rc;
}
