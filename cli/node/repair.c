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
    const struct cli_node *node;
    bool blocks, metadata; /* what it mends */
    enum cli_mend how;     /* of blocks */
    bool yes;
    struct cli_node from;          /* the other store; store NULL: none */
    struct cli_keys done;          /* actions with their keys, which are not repeated */
    char *checked;                 /* path of the array that is_doubtful() looked at */
    bool is_doubtful;              /* its verdict */
    unsigned n_mended, n_restored; /* in this round */
    uint64_t n_items, n_failed;
};

/* One line of the plan, or of what was done. lost: NULL, or regions of an array. */
static void tell(struct repair *r, const char *action, const char *key,
                 const struct cli_losses *lost, zarr_status st, const zarr_error *err)
{
    struct cli_json *j = r->cli->json ? cli_json(r->cli) : NULL;
    struct cli_string line = {0};

    if (j) {
        cli_json_object(j);
        cli_json_text(cli_key(j, "key"), key);
        cli_json_text(cli_key(j, "action"), action);
        cli_json_list(cli_key(j, "regions"));
    }
    cli_string_printf(&line, "%s: %s%s", key,
                      st       ? "cannot "
                      : r->yes ? "done: "
                               : "plan: ",
                      action);
    for (size_t i = 0; lost && i < lost->n; i++) {
        char *text = cli_region_text(&lost->items[i]);

        if (j)
            cli_json_text(j, text);
        cli_string_printf(&line, " [%s]", text);
        free(text);
    }
    if (j) {
        cli_json_end(j);
        cli_json_bool(cli_key(j, "done"), r->yes && !st);
        cli_json_text(cli_key(j, "reason"), st ? err->message : NULL);
        cli_json_end(j);
    } else {
        cli_line(r->cli, "%s%s%s\n", line.text, st ? ": " : "", st ? err->message : "");
    }
    cli_string_free(&line);
    r->n_items++;
    r->n_failed += st != ZARR_OK;
    r->n_mended += st == ZARR_OK;
}

/* Whether a repair of this key was tried before; notes that it is now. */
static bool begin(struct repair *r, const char *action, const char *key)
{
    char *text = cli_format("%s %s", action, key);
    bool is_new = true;

    for (size_t i = 0; i < r->done.n_items && is_new; i++)
        is_new = strcmp(r->done.items[i], text) != 0;
    if (is_new)
        (void)cli_keys_add(&r->done, &(zarr_store_item){.key = text});
    free(text);
    return is_new;
}

/* ---- blocks ---- */

/* What encoded blocks depend on, and attributes that their meaning depends on; owned. */
static char *encoding_text(const zarr_array *a)
{
    static const char *const names[] = {"scale_factor", "add_offset", "units"};
    const zarr_dtype *type = zarr_array_dtype(a);
    char *shape = cli_shape_text(zarr_array_ndim(a), zarr_array_shape(a));
    char *fill = cli_fill_text(type, zarr_array_fill_value(a), NULL);
    struct cli_string text = {0};

    cli_string_printf(&text, "%s %s %s %s %s", cli_type_name(type), shape,
                      zarr_array_chunk_grid(a), zarr_array_codecs(a), fill ? fill : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = 0;
        const char *value = cli_json_member(zarr_array_attributes(a), names[i], &n);

        cli_string_printf(&text, " %.*s", value ? (int)n : 0, value ? value : "");
    }
    free(shape);
    free(fill);
    return text.text;
}

/* Opens the array of the other store. Its encoded blocks must mean the same. */
static zarr_status open_other(const struct repair *r, const char *path,
                              const zarr_array *array, zarr_array **out, zarr_error *err)
{
    char *at = cli_path_join(r->from.path, path), *mine, *others;
    zarr_status st = zarr_array_open(out, r->from.store, at, NULL, err);

    free(at);
    if (st)
        return st;
    mine = encoding_text(array);
    others = encoding_text(*out);
    if (strcmp(mine, others) != 0)
        st = cli_set_error(
            err, ZARR_ERR_INVALID,
            "the array in the other store has another shape, data type, fill "
            "value, chunk grid, codecs, scale_factor, add_offset or units");
    free(mine);
    free(others);
    return st;
}

struct fit {
    struct cli *cli;
    zarr_array *array;
    unsigned n, most; /* 0: all */
    bool any_sound;
};

static int try_block(void *user, const zarr_block_info *block)
{
    struct fit *f = user;
    struct cli_losses lost = {0};
    zarr_error err = {0};

    f->any_sound = cli_block_mend(f->cli, f->array, block->coordinates, CLI_MEND_ERASE,
                                  NULL, &lost, &err) ||
                   !lost.is_all;
    cli_losses_free(&lost);
    return ++f->n == f->most || f->any_sound;
}

/* Whether none of the first `most` stored blocks can be decoded, even in part: then the
 * metadata may be wrong, not they. One of them alone proves nothing if `most` is 0. */
static bool is_doubtful(struct cli *cli, zarr_store *store, const char *path,
                        unsigned most)
{
    struct fit fit = {.cli = cli, .most = most};
    struct cli_overlay *overlay;
    zarr_store *through = NULL;
    zarr_status st = cli_overlay_open(&overlay, &through, store, NULL);

    if (!st)
        st = zarr_array_open(&fit.array, through, path, NULL, NULL);
    if (!st)
        st = zarr_array_list_blocks(fit.array, ZARR_BLOCKS_STORED, try_block, &fit, NULL,
                                    NULL);
    zarr_array_free(fit.array);
    zarr_store_free(through);
    return !st && fit.n > (most ? 0u : 1u) && !fit.any_sound;
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
    if (!st && !lost->n)
        return cli_set_error(err, ZARR_ERR_CORRUPT,
                             "no element of the array is lost: what is broken is "
                             "outside of its shape, or sound again");
    if (st || r->from.store)
        return st;
    if (lost->is_read_error)
        return cli_set_error(
            err, ZARR_ERR_IO,
            "it cannot be read, but may be sound: the disk or the network "
            "failed; reencode --skip-damaged saves the rest");
    if (lost->is_all && (!r->checked || strcmp(r->checked, fault->path) != 0)) {
        free(r->checked);
        r->checked = cli_strdup(fault->path);
        r->is_doubtful = is_doubtful(r->cli, r->node->store, fault->path, 0);
    }
    return lost->is_all && r->is_doubtful
               ? cli_set_error(
                     err, ZARR_ERR_CORRUPT,
                     "no block of the array can be decoded, so the metadata may be "
                     "wrong: restore it, or delete the array")
               : ZARR_OK;
}

static void repair_block(struct repair *r, const struct cli_fault *fault)
{
    struct cli_losses lost = {0};
    struct cli_overlay *overlay;
    zarr_store *store = NULL;
    zarr_store_value seen;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st;

    if (!begin(r, "block", fault->key))
        return;
    cli_value_see(r->node->store, fault->key, &seen);
    st = cli_overlay_open(&overlay, &store, r->node->store, &err);
    if (!st)
        st = zarr_array_open(&array, store, fault->path, NULL, &err);
    if (!st)
        st = mend_block(r, fault, array, &lost, &err);
    if (!st && r->yes)
        st = cli_overlay_commit(overlay, fault->key, &seen, &err);
    tell(r,
         r->how == CLI_MEND_COPY   ? "copy"
         : r->how == CLI_MEND_FILL ? "fill"
         : lost.is_all             ? "delete"
                                   : "delete chunks",
         fault->key, &lost, st, &err);
    zarr_array_free(array);
    zarr_store_free(store);
    cli_losses_free(&lost);
}

/* ---- documents ---- */

/* The documents of a node in another place. */
struct documents {
    int32_t format;
    uint32_t kind; /* ZARR_NODE_* */
    const char *names[2];
    char *texts[2]; /* the second: attributes of v2 */
};

/* The document of a group without its copies of others, which may be old: an entry in
 * consolidated metadata says that nothing is below it. */
static char *group_text(const char *document)
{
    const char *at = cli_json_members(document), *value;
    struct cli_string text = {0};
    char *name;
    size_t bytes;

    cli_string_add(&text, "{", 1);
    while ((value = cli_json_next(&at, &name, &bytes)) != NULL) {
        if (strcmp(name, "consolidated_metadata") != 0) {
            cli_string_add(&text, ",", text.n_bytes > 1);
            cli_string_add_quoted(&text, name);
            cli_string_add(&text, ":", 1);
            cli_string_add(&text, value, bytes);
        }
        free(name);
    }
    cli_string_add(&text, "}", 1);
    return text.text;
}

/* Takes the documents of an open node. */
static void take_documents(struct documents *d, zarr_array *array, zarr_group *group)
{
    const char *attributes =
        array ? zarr_array_attributes(array) : zarr_group_attributes(group);

    d->format = array ? zarr_array_zarr_format(array) : zarr_group_zarr_format(group);
    d->names[0] = d->format == 3 ? "zarr.json" : array ? ".zarray" : ".zgroup";
    d->names[1] = ".zattrs";
    d->kind = array ? ZARR_NODE_ARRAY : ZARR_NODE_GROUP;
    d->texts[0] = array ? cli_strdup(zarr_array_metadata(array))
                        : group_text(zarr_group_metadata(group));
    d->texts[1] = cli_strdup(attributes);
    zarr_array_free(array);
    zarr_group_free(group);
}

/* Finds them in the other store, or in the consolidated metadata of the nearest group
 * above that lists the node. */
static bool find_documents(const struct repair *r, const char *path, struct documents *d)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    char *at = cli_path_join(r->from.store ? r->from.path : "", path), *slash;
    zarr_array *array = NULL;
    zarr_group *group = NULL, *above;
    bool found = r->from.store && zarr_node_open(&array, &group, r->from.store, at, NULL,
                                                 NULL, NULL) == ZARR_OK;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    while (!r->from.store && !found && *at && !cli_is_cancelled()) {
        above = NULL;
        slash = strrchr(at, '/');
        *(slash ? slash : at) = '\0';
        found = zarr_group_open(&above, r->node->store, at, &opts, NULL) == ZARR_OK &&
                zarr_group_open_node(&array, &group, above, cli_path_below(path, at),
                                     NULL, NULL, NULL) == ZARR_OK;
        zarr_group_free(above);
    }
    free(at);
    if (found)
        take_documents(d, array, group);
    return found;
}

/* Whether documents are missing or damaged: neither limits, permissions nor network. */
static bool is_broken(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_NOT_FOUND || cli_is_damage(st, err);
}

/* Opens a node without consolidated metadata. UNSUPPORTED is no damage. */
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

/* Whether the document to replace is of a newer version of Zarr. */
static bool is_newer(zarr_store *store, const char *key)
{
    zarr_store_value value;
    zarr_error err;
    char *text = cli_value_read(store, key, &value, &err);
    const char *format = NULL, *type = NULL;
    size_t bytes;
    bool is;

    if (text) {
        format = cli_json_member(text, "zarr_format", &bytes);
        type = cli_json_member(text, "node_type", &bytes);
    }
    is = (format && *format != '2' && *format != '3') ||
         (type && strncmp(type, "\"array\"", 7) != 0 &&
          strncmp(type, "\"group\"", 7) != 0);
    free(text);
    return is;
}

/* Replaces those documents whose bit is in `set`. */
static zarr_status put_documents(struct repair *r, const char *path,
                                 const struct documents *d, unsigned set, zarr_error *err)
{
    struct cli_overlay *overlay;
    zarr_store *store = NULL;
    zarr_store_value seen[2];
    char *keys[2];
    zarr_status st = cli_overlay_open(&overlay, &store, r->node->store, err);

    for (unsigned i = 0; i < 2; i++) {
        keys[i] = cli_path_join(path, d->names[i]);
        cli_value_see(r->node->store, keys[i], &seen[i]);
        if (!st && set & 1u << i)
            st = zarr_store_put(store, keys[i], d->texts[i], strlen(d->texts[i]), NULL,
                                err);
    }
    if (!st && is_newer(r->node->store, keys[0]))
        st = cli_set_error(err, ZARR_ERR_UNSUPPORTED,
                           "its metadata is of a newer version of Zarr");
    if (!st)
        st = open_node(store, path, err);
    if (!st && is_doubtful(r->cli, store, path, 8))
        st = cli_set_error(err, ZARR_ERR_INVALID,
                           "the chunks cannot be decoded with the metadata to restore");
    for (unsigned i = 0; i < 2; i++) {
        if (!st && r->yes)
            st = cli_overlay_commit(overlay, keys[i], &seen[i], err);
        free(keys[i]);
    }
    zarr_store_free(store);
    return st;
}

/* Restores the documents of one node: the main one alone, then the attributes alone, then
 * both, so that a sound document keeps its bytes. */
static void restore(struct repair *r, const char *path, bool is_missing)
{
    struct documents d = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_ERR_NOT_FOUND;
    const uint32_t kind = cli_kind_below(r->node->store, path);

    if (!begin(r, "restore", path))
        return;
    if (!find_documents(r, path, &d)) {
        if (is_missing) /* it may never have been a node */
            return;
        st = cli_set_error(&err, st,
                           r->from.store ? "the other store has no such node"
                                         : "no consolidated metadata above lists it");
    } else if (r->node->zarr_format && r->node->zarr_format != d.format) {
        st = cli_set_error(&err, ZARR_ERR_INVALID,
                           "the metadata to restore has another Zarr format");
    } else if (kind && kind != d.kind) {
        st = cli_set_error(
            &err, ZARR_ERR_INVALID,
            kind == ZARR_NODE_ARRAY
                ? "there are chunks, but the metadata to restore is of a group"
                : "there are nodes below it, but the metadata to restore is "
                  "of an array");
    }
    for (unsigned set = d.format ? 1 : 4;
         set < (d.format == 2 ? 4 : 2) && is_broken(st, &err); set++)
        st = put_documents(r, path, &d, set, &err);
    r->n_restored++;
    tell(r, "restore the metadata", *path ? path : "/", NULL, st, &err);
    free(d.texts[0]);
    free(d.texts[1]);
}

/* A node that differs from its entry, which is the last copy if its document is missing.
 */
static int restore_missing(void *user, const char *path, const char *what)
{
    struct repair *r = user;

    (void)what;
    if (open_node(r->node->store, path, NULL)) {
        restore(r, path, false);
        r->n_restored++; /* also if that failed in an earlier round */
    }
    return cli_is_cancelled();
}

/* Writes the consolidated metadata of a group anew, unless nodes had to be restored from
 * it: then a later round may do it. */
static void consolidate(struct repair *r, const char *path)
{
    zarr_group_open_options opts = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    st = zarr_group_open(&group, r->node->store, path, &opts, &err);
    if (!st)
        st = zarr_group_consolidated_check(group, restore_missing, r, NULL, &err);
    zarr_group_free(group);
    if ((st && !is_broken(st, &err)) || r->n_restored || !begin(r, "consolidate", path))
        return;
    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    group = NULL;
    st = zarr_group_open(&group, r->node->store, path, &opts, &err);
    if (!st && r->yes)
        st = zarr_group_consolidate(group, NULL, &err);
    zarr_group_free(group);
    tell(r, "consolidate again", *path ? path : "/", NULL, st, &err);
}

/* ---- all of them ---- */

static int repair_open(struct repair *r, const char *text)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;

    r->blocks = strcmp(text, "consolidated") != 0;
    r->metadata = strcmp(text, "delete") != 0;
    zarr_store_capabilities(r->node->store, &caps);
    r->how = r->blocks && r->metadata ? CLI_MEND_COPY
             : caps.flags & ZARR_STORE_CAP_PUT_IF_VERSION &&
                     !(caps.flags & ZARR_STORE_CAP_ERASE_IF_VERSION)
                 ? CLI_MEND_FILL /* such as S3: an erase might hit a newer object */
                 : CLI_MEND_ERASE;
    return r->how == CLI_MEND_COPY
               ? cli_node_open(r->cli, text + strlen("from:"), CLI_OPEN_PROBE, &r->from)
               : CLI_OK;
}

static void repair_all(struct repair *r, const struct cli_faults *faults)
{
    for (size_t i = 0; i < faults->n && !cli_is_cancelled(); i++) {
        const struct cli_fault *f = &faults->items[i];
        zarr_error err = {0};
        const zarr_status st = f->what == ZARR_FINDING_NODE
                                   ? open_node(r->node->store, f->path, &err)
                                   : ZARR_OK;

        if (f->what == ZARR_FINDING_CHUNK && r->blocks)
            repair_block(r, f);
        else if (r->metadata && is_broken(st, &err))
            restore(r, f->path, st == ZARR_ERR_NOT_FOUND);
    }
    /* Otherwise nodes that could not be restored would be lost. A later round may do it.
     */
    for (size_t i = 0; i < faults->n && !r->blocks && !r->n_restored; i++)
        if (faults->items[i].what != ZARR_FINDING_CHUNK &&
            faults->items[i].kind == ZARR_NODE_GROUP && !cli_is_cancelled() &&
            (i == 0 || strcmp(faults->items[i].path, faults->items[i - 1].path) != 0))
            consolidate(r, faults->items[i].path);
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

int cli_repair(struct cli *cli, struct cli_node *node, struct cli_faults *faults,
               int (*find)(void *user), void *user)
{
    struct repair r = {.cli = cli, .node = node, .yes = cli_flag(cli, "yes")};
    int rc = repair_open(&r, cli_text(cli, "repair"));

    if (!rc && cli->json)
        cli_json_array(cli_key(cli_json(cli), "repairs"));
    while (!rc) { /* what is below a restored group is checked in the next round */
        r.n_mended = r.n_restored = 0;
        repair_all(&r, faults);
        if (!r.yes || !r.n_mended)
            break;
        cli_faults_free(faults);
        rc = cli_node_flush(cli, node);
        if (!rc)
            rc = find(user);
    }
    if (!rc && cli->json)
        cli_json_end(cli_json(cli));
    cli_keys_free(&r.done);
    free(r.checked);
    cli_node_close(&r.from);
    if (!rc && cli_is_cancelled())
        rc = cli_error(cli, CLI_INTERRUPTED, NULL, "interrupted");
    if (!rc)
        cli_say(cli, "%" PRIu64 " of %" PRIu64 " repair%s %s; %" PRIu64 " not possible",
                r.n_items - r.n_failed, r.n_items, r.n_items == 1 ? "" : "s",
                r.yes ? "done" : "planned, for --yes", r.n_failed);
    return rc;
}
