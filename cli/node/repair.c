/*
 * node/repair.c - mends the faults that verify found: `verify --repair`. Each repair is
 * made in an overlay of its own, where what it mends must then be readable. With --yes
 * the change of each object goes to the store in one step, and only if the object still
 * is the one that was found broken. So no other object changes, and after a kill the same
 * command goes on.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct repair {
    struct cli *cli;
    zarr_store *store;
    enum cli_mend how;     /* of blocks */
    bool metadata, blocks; /* what it mends: consolidated: not blocks, delete: only them */
    bool yes;
    struct cli_node from;      /* the other store; store NULL: none */
    struct cli_keys tried;     /* paths of the nodes that were restored, or could not be */
    char *checked;             /* path of the array that check_metadata() looked at */
    bool is_doubtful;          /* its verdict */
    bool any_restored;
    uint64_t n_items, n_failed, n_mended; /* n_mended: findings in chunks */
};

static zarr_status set_error(zarr_error *err, zarr_status st, const char *text)
{
    *err = (zarr_error){.code = st};
    snprintf(err->message, sizeof err->message, "%s", text);
    return st;
}

/* One line of the plan, or of what was done. lost may be NULL. */
static void tell(struct repair *r, const char *key, const char *action, int32_t ndim,
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
        char *text = cli_region_text(ndim, &lost->items[i]);

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

/* Whether encoded blocks of one array mean the same in the other. */
static bool has_same_encoding(const zarr_array *a, const zarr_array *b)
{
    const zarr_dtype *type = zarr_array_dtype(a);
    const int32_t ndim = zarr_array_ndim(a);
    char *fills[2];
    bool same =
        ndim == zarr_array_ndim(b) && zarr_dtype_equal(type, zarr_array_dtype(b)) &&
        memcmp(zarr_array_shape(a), zarr_array_shape(b),
               (size_t)ndim * sizeof(uint64_t)) == 0 &&
        strcmp(zarr_array_chunk_grid(a), zarr_array_chunk_grid(b)) == 0 &&
        strcmp(zarr_array_codecs(a), zarr_array_codecs(b)) == 0;

    if (!same)
        return false;
    fills[0] = cli_fill_text(type, zarr_array_fill_value(a), NULL);
    fills[1] = cli_fill_text(type, zarr_array_fill_value(b), NULL);
    same = fills[0] && fills[1] ? strcmp(fills[0], fills[1]) == 0 : fills[0] == fills[1];
    free(fills[0]);
    free(fills[1]);
    return same;
}

static zarr_status open_other(const struct repair *r, const char *path,
                              const zarr_array *array, zarr_array **out, zarr_error *err)
{
    char *at = cli_path_join(r->from.path, path);
    zarr_status st = zarr_array_open(out, r->from.store, at, NULL, err);

    free(at);
    return st || has_same_encoding(array, *out)
               ? st
               : set_error(err, ZARR_ERR_INVALID,
                           "the array in the other store has another shape, data type, "
                           "fill value, chunk grid or codecs");
}

/* How many of the first stored blocks can be decoded, at least in part. The array is one
 * of an overlay. */
struct fit {
    struct repair *r;
    zarr_array *array;
    unsigned n, n_good, most;
};

static int try_block(void *user, const zarr_block_info *block)
{
    struct fit *f = user;
    struct cli_losses lost = {0};

    f->n_good += cli_block_mend(f->r->cli, f->array, block->coordinates, CLI_MEND_ERASE,
                                NULL, &lost, NULL) ||
                 !lost.is_all;
    cli_losses_free(&lost);
    return ++f->n == f->most || f->n_good;
}

/* If nothing of several blocks can be decoded, the metadata may be wrong, not they. */
static zarr_status check_metadata(struct repair *r, const char *path, zarr_error *err)
{
    struct fit fit = {.r = r};
    struct cli_overlay *overlay;
    zarr_store *store = NULL;
    zarr_status st = ZARR_OK;

    if (!r->checked || strcmp(r->checked, path) != 0) {
        st = cli_overlay_open(&overlay, &store, r->store, err);
        if (!st)
            st = zarr_array_open(&fit.array, store, path, NULL, err);
        if (!st)
            st = zarr_array_list_blocks(fit.array, ZARR_BLOCKS_STORED, try_block, &fit,
                                        NULL, err);
        zarr_array_free(fit.array);
        zarr_store_free(store);
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

static zarr_status mend_block(struct repair *r, const struct cli_fault *fault,
                              zarr_array *array, struct cli_losses *lost, zarr_error *err)
{
    zarr_array *other = NULL;
    zarr_status st = ZARR_OK;

    if (r->from.store)
        st = open_other(r, fault->path, array, &other, err);
    if (!st)
        st = cli_block_mend(r->cli, array, fault->block, r->how, other, lost, err);
    zarr_array_free(other);
    if (!st && !other && lost->is_read_error)
        st = set_error(err, ZARR_ERR_IO,
                       "it cannot be read, but may be sound: the disk or the network "
                       "failed; reencode --skip-damaged saves the rest");
    if (!st && !other && lost->is_all)
        st = check_metadata(r, fault->path, err);
    return st;
}

static void repair_block(struct repair *r, const struct cli_fault *fault)
{
    struct cli_losses lost = {0};
    struct cli_overlay *overlay;
    zarr_store *store = NULL;
    zarr_store_value seen;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = cli_overlay_open(&overlay, &store, r->store, &err);

    cli_value_see(r->store, fault->key, &seen);
    if (!st)
        st = zarr_array_open(&array, store, fault->path, NULL, &err);
    if (!st)
        st = mend_block(r, fault, array, &lost, &err);
    if (!st && r->yes)
        st = cli_overlay_commit(overlay, fault->key, &seen, &err);
    tell(r, fault->key,
         r->how == CLI_MEND_COPY   ? "copy"
         : r->how == CLI_MEND_FILL ? "fill"
         : lost.is_all             ? "delete"
                                   : "delete chunks",
         array ? zarr_array_ndim(array) : 0, &lost, st, &err);
    r->n_mended += st ? 0 : fault->n_findings;
    zarr_array_free(array);
    zarr_store_free(store);
    cli_losses_free(&lost);
}

/* ---- documents ---- */

/* The documents of a node in another place. */
struct documents {
    int32_t format;
    const char *names[2];
    char *texts[2]; /* the second: attributes of v2 */
};

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

/* Finds them in the other store, or in the consolidated metadata of the nearest group
 * above that lists the node. Returns false if there are none. */
static bool find_documents(const struct repair *r, const char *path, struct documents *d)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    char *at = cli_path_join(r->from.store ? r->from.path : "", path);
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    bool found = r->from.store && zarr_node_open(&array, &group, r->from.store, at, NULL,
                                                 NULL, NULL) == ZARR_OK;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    while (!r->from.store && !found && *at && !cli_is_cancelled()) {
        zarr_group *above = NULL;
        char *slash = strrchr(at, '/');

        *(slash ? slash : at) = '\0';
        found = zarr_group_open(&above, r->store, at, &opts, NULL) == ZARR_OK &&
                zarr_group_open_node(&array, &group, above, cli_path_below(path, at),
                                     NULL, NULL, NULL) == ZARR_OK;
        zarr_group_free(above);
    }
    free(at);
    if (found) {
        d->format = array ? zarr_array_zarr_format(array) : zarr_group_zarr_format(group);
        d->names[0] = d->format == 3 ? "zarr.json" : array ? ".zarray" : ".zgroup";
        d->names[1] = ".zattrs";
        d->texts[0] = without_consolidated(array ? zarr_array_metadata(array)
                                                 : zarr_group_metadata(group));
        d->texts[1] = cli_strdup(array ? zarr_array_attributes(array)
                                       : zarr_group_attributes(group));
    }
    zarr_array_free(array);
    zarr_group_free(group);
    return found;
}

static zarr_status open_node(zarr_store *store, const char *path, zarr_error *err)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    st = zarr_node_open(&array, &group, store, path, NULL, &opts, err);
    zarr_array_free(array);
    zarr_group_free(group);
    return st == ZARR_ERR_UNSUPPORTED ? ZARR_OK : st;
}

/* Whether documents are missing or damaged: neither limits, permissions nor network. */
static bool is_broken(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_NOT_FOUND || cli_is_damage(st, err);
}

/* Whether the document to replace is of a newer version of Zarr. */
static bool is_newer(const struct repair *r, const char *path, const char *name)
{
    char *text = cli_alloc(65536), *key = cli_path_join(path, name);
    const char *format, *type;
    uint64_t n = 65535;
    size_t bytes;
    bool is;

    if (zarr_store_get(r->store, key, 0, text, &n, cli_cancel, NULL) != ZARR_OK)
        n = 0;
    text[n] = '\0';
    format = cli_json_member(text, "zarr_format", &bytes);
    type = cli_json_member(text, "node_type", &bytes);
    is = (format && strcspn(format, "23") != 0) ||
         (type && strncmp(type, "\"array\"", 7) != 0 &&
          strncmp(type, "\"group\"", 7) != 0);
    free(text);
    free(key);
    return is;
}

/* The format of the documents at a path, or of the group above. 0: there are none. */
static int32_t find_format(const struct repair *r, const char *path)
{
    char *at = cli_strdup(path), *slash = strrchr(at, '/');
    uint32_t kind;
    int32_t format = 0;

    if (zarr_node_probe(r->store, at, &kind, &format, cli_cancel, NULL) == ZARR_OK &&
        format == 0) {
        *(slash ? slash : at) = '\0';
        if (zarr_node_probe(r->store, at, &kind, &format, cli_cancel, NULL) != ZARR_OK)
            format = 0;
    }
    free(at);
    return format;
}

/* Opens a node, and if it is an array, looks at its chunks. */
static zarr_status check_restored(struct repair *r, zarr_store *store, const char *path,
                                  zarr_error *err)
{
    struct fit fit = {.r = r, .most = 8};
    zarr_status st = open_node(store, path, err);

    if (!st && zarr_array_open(&fit.array, store, path, NULL, NULL) == ZARR_OK)
        st = zarr_array_list_blocks(fit.array, ZARR_BLOCKS_STORED, try_block, &fit, NULL,
                                    err);
    zarr_array_free(fit.array);
    return st || !fit.n || fit.n_good
               ? st
               : set_error(err, ZARR_ERR_CORRUPT,
                           "the chunks cannot be decoded with the metadata to restore");
}

/* Replaces those documents whose bit is in `set`. */
static zarr_status put_documents(struct repair *r, const char *path,
                                 const struct documents *d, unsigned set, zarr_error *err)
{
    struct cli_overlay *overlay;
    zarr_store *store = NULL;
    zarr_store_value seen[2];
    char *keys[2];
    zarr_status st = cli_overlay_open(&overlay, &store, r->store, err);

    for (unsigned i = 0; i < 2; i++) {
        keys[i] = cli_path_join(path, d->names[i]);
        cli_value_see(r->store, keys[i], &seen[i]);
        if (!st && set & 1u << i)
            st = zarr_store_put(store, keys[i], d->texts[i], strlen(d->texts[i]), NULL,
                                err);
    }
    if (!st)
        st = check_restored(r, store, path, err);
    for (unsigned i = 0; i < 2; i++) {
        if (!st && r->yes)
            st = cli_overlay_commit(overlay, keys[i], &seen[i], err);
        free(keys[i]);
    }
    zarr_store_free(store);
    return st;
}

static int add_path(void *user, const char *path, const char *what)
{
    const zarr_store_item item = {.key = path};

    (void)what;
    return cli_keys_add(user, &item);
}

/* Restores the documents of one node: the main one alone, then the attributes alone, then
 * both, so that a sound document keeps its bytes. */
static bool restore(struct repair *r, const char *path)
{
    struct documents d = {0};
    int32_t format = find_format(r, path);
    zarr_error err = {0};
    zarr_status st;

    for (size_t i = 0; i < r->tried.n_items; i++)
        if (strcmp(r->tried.items[i], path) == 0)
            return false;
    (void)add_path(&r->tried, path, NULL);
    if (!find_documents(r, path, &d))
        st = set_error(&err, ZARR_ERR_NOT_FOUND,
                       r->from.store ? "the other store has no such node"
                                     : "no consolidated metadata above lists it");
    else if ((format && format != d.format) || is_newer(r, path, d.names[0]))
        st = set_error(&err, ZARR_ERR_INVALID,
                       "its metadata, or that of the group above, has another Zarr "
                       "format than the metadata to restore, or is newer");
    else
        st = put_documents(r, path, &d, 1, &err);
    for (unsigned set = 2; d.format == 2 && set < 4 && is_broken(st, &err); set++)
        st = put_documents(r, path, &d, set, &err);
    r->any_restored = r->any_restored || !st;
    tell(r, *path ? path : "/", "restore the metadata", 0, NULL, st, &err);
    free(d.texts[0]);
    free(d.texts[1]);
    return st == ZARR_OK;
}

/* ---- consolidated metadata ---- */

static void consolidate(struct repair *r, const char *path)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    st = zarr_group_open(&group, r->store, path, &opts, &err);
    if (!st && r->yes)
        st = zarr_group_consolidate(group, NULL, &err);
    zarr_group_free(group);
    tell(r, *path ? path : "/", "consolidate again", 0, NULL, st, &err);
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

    return open_node(r->store, path, &err) == ZARR_ERR_NOT_FOUND &&
           zarr_store_list(r->store, path, ZARR_LIST_RECURSIVE, any_key, &any, cli_cancel,
                           &err) == ZARR_OK &&
           any;
}

/* A group whose consolidated metadata is broken, or differs from its nodes. Returns true
 * if it must be looked at again. */
static bool repair_group(struct repair *r, const char *path)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    struct cli_keys paths = {0};
    zarr_group *group = NULL;
    bool again = false, missing = false;
    zarr_error err = {0};
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    st = zarr_group_open(&group, r->store, path, &opts, &err);
    if (!st)
        st = zarr_group_consolidated_check(group, add_path, &paths, NULL, &err);
    zarr_group_free(group);
    for (size_t i = 0; i < paths.n_items && !again && !cli_is_cancelled(); i++)
        if (is_missing(r, paths.items[i])) {
            missing = true;
            again = restore(r, paths.items[i]); /* other nodes may be below it */
        }
    /* from: only the other direction mends it */
    if (!missing && !r->from.store &&
        (st ? cli_is_damage(st, &err) && (r->yes || !r->any_restored) : paths.n_items > 0))
        consolidate(r, path);
    cli_keys_free(&paths);
    return again;
}

/* ---- all of them ---- */

static int repair_open(struct repair *r, const char *text)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;

    r->blocks = strcmp(text, "consolidated") != 0;
    r->metadata = strcmp(text, "delete") != 0;
    zarr_store_capabilities(r->store, &caps);
    r->how = r->blocks && r->metadata ? CLI_MEND_COPY
             : caps.flags & ZARR_STORE_CAP_PUT_IF_VERSION &&
                     !(caps.flags & ZARR_STORE_CAP_ERASE_IF_VERSION)
                 ? CLI_MEND_FILL /* such as S3: an erase might hit a newer object */
                 : CLI_MEND_ERASE;
    return r->how == CLI_MEND_COPY ? cli_node_open(r->cli, text + strlen("from:"),
                                                   CLI_OPEN_PROBE, &r->from)
                                   : CLI_OK;
}

static void repair_all(struct repair *r, const char *top, const struct cli_faults *faults)
{
    zarr_error err = {0};

    for (size_t i = 0; i < faults->n && !cli_is_cancelled(); i++) {
        const struct cli_fault *f = &faults->items[i];

        if (f->what == ZARR_FINDING_CHUNK && r->blocks)
            repair_block(r, f);
        else if (f->what == ZARR_FINDING_NODE && r->metadata &&
                 is_broken(open_node(r->store, f->path, &err), &err))
            (void)restore(r, f->path);
    }
    /* the check of a group fails as long as one of its nodes is broken, and verify then
     * says nothing of the others */
    while (r->metadata && repair_group(r, top))
        continue;
    for (size_t i = 0; i < faults->n && r->metadata && !cli_is_cancelled(); i++)
        if (faults->items[i].kind == ZARR_NODE_GROUP &&
            strcmp(faults->items[i].path, top) != 0)
            while (repair_group(r, faults->items[i].path))
                continue;
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
    struct repair r = {.cli = cli, .store = node->store, .yes = cli_flag(cli, "yes")};
    int rc = repair_open(&r, cli_text(cli, "repair"));

    if (!rc && cli->json)
        cli_json_array(cli_key(cli_json(cli), "repairs"));
    if (!rc)
        repair_all(&r, node->path, faults);
    if (!rc && cli->json)
        cli_json_end(cli_json(cli));
    cli_keys_free(&r.tried);
    free(r.checked);
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
