/*
 * check/verify.c - reads and decodes everything that is stored at and below a node and
 * reports faults. A fault of the data is a finding, and the check goes on. A store that
 * fails ends the call, because the rest is then unknown.
 * Thread class: plain function; findings come from worker threads, one at a time.
 */
#include "array/array.h"
#include "check/check.h"

#include <string.h>

struct node_check {
    zarr_store *store;
    zarr_context *ctx;
    zarr_verify_options opts;
    zarr_verify_result result;
    struct zr_nodes nodes;
    char *top;          /* normalised */
    struct zr_str path; /* path of the current node */
    uint32_t kind;
    /* numbers of objects: of earlier nodes, of the current one */
    uint64_t done_before, done_here;
    bool any_broken, stopped;
};

static zarr_status open_array(zarr_array **out, const struct node_check *c,
                              zarr_error *err)
{
    const zarr_array_open_options o = {.struct_size = sizeof o, .cancel = c->opts.cancel};

    return zarr_array_open(out, c->store, zr_str_text(&c->path), &o, err);
}

static zarr_status open_group(zarr_group **out, const struct node_check *c,
                              uint32_t consolidated, zarr_error *err)
{
    const zarr_group_open_options o = {
        .struct_size = sizeof o, .consolidated = consolidated, .cancel = c->opts.cancel};

    return zarr_group_open(out, c->store, zr_str_text(&c->path), &o, err);
}

/* ---- findings --------------------------------------------------------------------- */

/* Whether the stored objects cause this status. */
static bool is_finding(zarr_status st, const zarr_error *why)
{
    return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT ||
           st == ZARR_ERR_INVALID || st == ZARR_ERR_NOT_FOUND ||
           zr_store_blames_object(st, why);
}

/* Drops path and key from an error message: a finding has both by itself. */
static const char *without_address(const char *message, const char *key)
{
    const size_t n = strlen(key), slash = message[0] == '/';

    return strncmp(message + slash, key, n) == 0 &&
                   strncmp(message + slash + n, ": ", 2) == 0
               ? message + slash + n + 2
               : message;
}

static void find_fault(struct node_check *c, zarr_finding *f)
{
    f->struct_size = sizeof *f;
    f->kind = c->kind;
    f->path = zr_str_text(&c->path);
    f->key = f->key ? f->key : f->path;
    f->message = without_address(f->message, f->key);
    if (!f->severity)
        f->severity = f->status == ZARR_ERR_UNSUPPORTED ? ZARR_SEVERITY_WARNING
                      : f->status == ZARR_ERR_LIMIT     ? ZARR_SEVERITY_LIMIT
                                                        : ZARR_SEVERITY_ERROR;
    if (c->stopped)
        return;
    if (f->severity == ZARR_SEVERITY_ERROR)
        c->result.n_errors++;
    else if (f->severity == ZARR_SEVERITY_NOTE)
        c->result.n_notes++;
    else if (f->severity == ZARR_SEVERITY_LIMIT)
        c->result.n_limits++;
    else
        c->result.n_warnings++;
    c->stopped = c->opts.tell && c->opts.tell(c->opts.tell_user, f) != 0;
}

/* Reports a finding about the current node as a whole, or returns the failure that ends
 * the call. */
static zarr_status node_fault(struct node_check *c, zarr_status st, const zarr_error *why,
                              zarr_error *err)
{
    zarr_finding f = {.what = ZARR_FINDING_NODE, .status = st, .message = why->message};

    /* The listing read past a key of a document that is not a value, so an IO error is a
     * fault of this node, whatever the store says. */
    if (is_finding(st, why) || (c->kind == ZARR_NODE_NONE && zr_is_store_failure(st))) {
        if (st == ZARR_ERR_LIMIT && !zarr_error_text(why, ZARR_ERROR_SETTING, NULL, 0))
            f.severity = ZARR_SEVERITY_ERROR; /* no context can read it */
        find_fault(c, &f);
        return ZARR_OK;
    }
    return zr_pass(err, st, why);
}

static int chunk_fault(void *user, const zarr_verify_item *item)
{
    struct node_check *c = user;
    zarr_finding f = {.what = ZARR_FINDING_CHUNK,
                      .status = item->status,
                      .key = item->key,
                      .message = item->message,
                      .block = item->block,
                      .origin = item->origin,
                      .ndim = item->ndim};

    find_fault(c, &f);
    return c->stopped;
}

/* What a resize to the same shape does with blocks outside of it, as zr_trim() does. */
static const char *clearing_text(const zarr_store *store)
{
    return zr_store_can(store, ZARR_STORE_CAP_PUT_IF_VERSION) &&
                   !zr_store_can(store, ZARR_STORE_CAP_LOCK) &&
                   !zr_store_can(store, ZARR_STORE_CAP_ERASE_IF_VERSION)
               ? "gives them the fill value, since this store cannot erase them safely"
               : "clears them";
}

/* Called by zr_array_verify() at its end, on the caller's thread. */
static void on_outside(void *user, bool chunks, uint64_t n, const char *key)
{
    struct node_check *c = user;
    zarr_error text = {0};
    zarr_finding f = {.what = ZARR_FINDING_OUTSIDE,
                      .severity = ZARR_SEVERITY_NOTE,
                      .key = key,
                      .message = text.message};

    zr_fail(&text, ZARR_OK,
            "%" PRIu64 " chunk%s, this one among them, %s outside of the shape%s; a "
            "resize to the same shape %s",
            n, n == 1 ? "" : "s",
            chunks   ? n == 1 ? "is" : "are"
            : n == 1 ? "has elements"
                     : "have elements",
            chunks ? "" : " that are not the fill value",
            chunks ? clearing_text(c->store) : "clears them");
    find_fault(c, &f);
}

static void on_missing(void *user, uint64_t n, const char *key)
{
    struct node_check *c = user;
    zarr_error text = {0};
    zarr_finding f = {.what = ZARR_FINDING_MISSING,
                      .status = ZARR_ERR_NOT_FOUND,
                      .key = key,
                      .message = text.message};

    zr_fail(&text, ZARR_ERR_NOT_FOUND, "%" PRIu64 " block%s not stored, this one first",
            n, n == 1 ? " is" : "s are");
    find_fault(c, &f);
}

static void on_foreign(void *user, bool like_chunks, uint64_t n, const char *key)
{
    struct node_check *c = user;
    zarr_error text = {0};
    zarr_finding f = {.what = ZARR_FINDING_FOREIGN,
                      .severity = ZARR_SEVERITY_NOTE,
                      .key = key,
                      .message = text.message};

    zr_fail(&text, ZARR_OK, "%" PRIu64 " object%s, this one among them, %s", n,
            n == 1 ? "" : "s",
            !like_chunks ? n == 1 ? "is no part of the array" : "are no part of the array"
            : n == 1     ? "looks like a chunk, but is none: the array has other keys"
                         : "look like chunks, but are none: the array has other keys");
    find_fault(c, &f);
}

/* Reports the record of an interrupted resize or append. */
static zarr_status verify_record(struct node_check *c, zarr_array *array, zarr_error *err)
{
    zarr_finding f = {.what = ZARR_FINDING_OUTSIDE,
                      .status = ZARR_ERR_CONFLICT,
                      .severity = ZARR_SEVERITY_WARNING,
                      .message =
                          "a resize or append is under way or was interrupted, and "
                          "elements may be left outside of the shape; zarrc clean "
                          "or the next resize clears them"};
    const zarr_shape_options look = {.struct_size = sizeof look,
                                     .flags = ZARR_LEFTOVERS_LOOK,
                                     .cancel = c->opts.cancel};
    int found = 0;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, c->ctx->alloc);
    ZR_TRY(zarr_array_clear_leftovers(array, &found, &look, err));
    if (!found)
        goto out;
    ZR_TRY(zr_path_key(&key, zr_str_text(&c->path), ZR_DOC_LEFTOVERS, err));
    f.key = zr_str_text(&key);
    find_fault(c, &f);
out:
    zr_str_deinit(&key);
    return st;
}

struct consolidated_check {
    struct node_check *c;
    const char *key;
    struct zr_str text;
};

static int consolidated_fault(void *user, const char *path, const char *what)
{
    struct consolidated_check *cc = user;
    zarr_finding f = {.what = ZARR_FINDING_CONSOLIDATED,
                      .status = ZARR_ERR_CORRUPT,
                      .severity = ZARR_SEVERITY_WARNING,
                      .key = cc->key};

    zr_str_clear(&cc->text);
    zr_str_printf(&cc->text, "consolidated metadata of /%s: %s", path, what);
    f.message = zr_str_text(&cc->text);
    find_fault(cc->c, &f);
    return cc->c->stopped;
}

/* ---- progress --------------------------------------------------------------------- */

static void tell_progress(const struct node_check *c)
{
    const zarr_verify_result *r = &c->result;
    zarr_progress p = {.struct_size = sizeof p, .objects_total = r->n_objects};

    if (!c->opts.progress)
        return;
    p.path = zr_str_text(&c->path);
    p.objects_done = ZR_MIN(c->done_before + c->done_here, r->n_objects);
    p.bytes_total = r->n_bytes;
    p.bytes_done = r->n_bytes;
    if (p.objects_done < r->n_objects)
        p.bytes_done = (uint64_t)((double)r->n_bytes * (double)p.objects_done /
                                  (double)r->n_objects);
    c->opts.progress(c->opts.progress_user, &p);
}

static void on_object(void *user, const zarr_stats *so_far)
{
    struct node_check *c = user;

    /* calls of several threads may come out of order */
    if (so_far->chunks_done > c->done_here)
        c->done_here = so_far->chunks_done;
    tell_progress(c);
}

/* ---- nodes ------------------------------------------------------------------------ */

static zarr_status verify_strict(struct node_check *c, const zarr_array *array,
                                 zarr_error *err)
{
    zarr_error why = {0};
    const zarr_status st = zr_array_strict(array, &why);
    zarr_finding f = {.what = ZARR_FINDING_STRICT,
                      .status = st,
                      .severity = ZARR_SEVERITY_WARNING,
                      .message = why.message};

    if (st == ZARR_OK || !is_finding(st, &why))
        return zr_pass(err, st, &why);
    find_fault(c, &f);
    return ZARR_OK;
}

static zarr_status verify_array(struct node_check *c, zarr_error *err)
{
    const struct zr_verify_call call = {
        .fn = chunk_fault,
        .outside = on_outside,
        .foreign = on_foreign,
        .missing = c->opts.flags & ZARR_VERIFY_MISSING_ERROR ? on_missing : NULL,
        .user = c};
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_array *array = NULL;
    zarr_error why = {0};
    zarr_status st = open_array(&array, c, &why);

    c->result.n_arrays++;
    if (st != ZARR_OK)
        return node_fault(c, st, &why, err);
    io.max_threads = c->opts.max_threads;
    io.progress = on_object;
    io.progress_user = c;
    io.cancel = c->opts.cancel;
    st = verify_record(c, array, &why);
    if (st != ZARR_OK && zr_store_blames_object(st, &why))
        st = node_fault(c, st, &why, err);
    if (st == ZARR_OK && c->opts.flags & ZARR_VERIFY_STRICT)
        st = verify_strict(c, array, &why);
    if (st == ZARR_OK && !(c->opts.flags & ZARR_VERIFY_NO_DATA))
        st = zr_array_verify(array, &call, &io, &why);
    zarr_array_free(array);
    /* counts nothing for this array; the others still count */
    if (st != ZARR_ERR_NOT_FOUND && is_finding(st, &why))
        return node_fault(c, st, &why, err);
    return zr_pass(err, st, &why);
}

static zarr_status verify_consolidated(struct node_check *c, zarr_group *group,
                                       zarr_error *err)
{
    const zarr_consolidate_options o = {.struct_size = sizeof o,
                                        .cancel = c->opts.cancel};
    struct consolidated_check cc = {.c = c};
    zarr_error why = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, c->ctx->alloc);
    zr_str_init(&cc.text, c->ctx->alloc);
    ZR_TRY(zr_path_key(
        &key, zr_str_text(&c->path),
        zarr_group_zarr_format(group) == 2 ? ZR_DOC_CONSOLIDATED : ZR_DOC_V3, err));
    cc.key = zr_str_text(&key);
    st = zarr_group_consolidated_check(group, consolidated_fault, &cc, &o, &why);
    if (st != ZARR_OK && is_finding(st, &why) && c->any_broken)
        st = ZARR_OK; /* the broken node is reported as a finding */
    else if (st != ZARR_OK)
        st = node_fault(c, st, &why, err);
    if (st == ZARR_OK)
        st = zr_str_status(&cc.text, err);
out:
    zr_str_deinit(&cc.text);
    zr_str_deinit(&key);
    return st;
}

/* Opens of a group pass over consolidated metadata that is broken. */
static zarr_status verify_ignored(struct node_check *c, const zarr_group *group,
                                  zarr_error *err)
{
    zarr_finding f = {.what = ZARR_FINDING_CONSOLIDATED,
                      .severity = ZARR_SEVERITY_WARNING};
    zarr_group *again = NULL;
    zarr_error why = {0};
    struct zr_str key;
    zarr_status st = open_group(&again, c, ZARR_CONSOLIDATED_MUST, &why);

    zarr_group_free(again);
    if (st == ZARR_OK || st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    if (!is_finding(st, &why))
        return zr_pass(err, st, &why);
    f.status = st;
    f.message = why.message;
    zr_str_init(&key, c->ctx->alloc);
    st = zr_path_key(&key, zr_str_text(&c->path),
                     zarr_group_zarr_format(group) == 2 ? ZR_DOC_CONSOLIDATED : ZR_DOC_V3,
                     err);
    if (st == ZARR_OK) {
        f.key = zr_str_text(&key);
        find_fault(c, &f);
    }
    zr_str_deinit(&key);
    return st;
}

static zarr_status verify_group(struct node_check *c, zarr_error *err)
{
    zarr_group *group = NULL;
    zarr_error why = {0};
    zarr_status st = open_group(&group, c, 0, &why);

    c->result.n_groups++;
    if (st != ZARR_OK)
        return node_fault(c, st, &why, err);
    st = zarr_group_is_consolidated(group) ? verify_consolidated(c, group, err)
                                           : verify_ignored(c, group, err);
    zarr_group_free(group);
    return st;
}

static int pass_member(void *user, const zarr_node_item *item)
{
    ZR_UNUSED(user, item);
    return ZARR_WALK_STOP;
}

/* Reports a node that the listing could not read; opening it, or listing its members,
 * tells the reason. */
static zarr_status verify_broken(struct node_check *c, zarr_error *err)
{
    const zarr_list_options list = {.struct_size = sizeof list, .cancel = c->opts.cancel};
    zarr_array *array = NULL;
    zarr_group *group = NULL;
    zarr_error why = {0};
    zarr_status st = open_array(&array, c, &why);

    if (st == ZARR_ERR_NOT_FOUND)
        st = open_group(&group, c, 0, &why);
    if (group)
        st = zarr_group_list(group, pass_member, NULL, &list, &why);
    zarr_array_free(array);
    zarr_group_free(group);
    if (st == ZARR_OK)
        st = zr_fail(&why, ZARR_ERR_CORRUPT, "its metadata cannot be read");
    return node_fault(c, st, &why, err);
}

static zarr_status verify_node(struct node_check *c, const struct zr_node_row *node,
                               zarr_error *err)
{
    c->kind = node->kind;
    c->done_here = 0;
    ZR_CHECK(zr_path_key(&c->path, c->top, node->path, err));
    ZR_CHECK(zr_cancel_check(c->opts.cancel, err));
    if (node->kind == ZARR_NODE_GROUP)
        ZR_CHECK(verify_group(c, err));
    else if (node->kind == ZARR_NODE_ARRAY)
        ZR_CHECK(verify_array(c, err));
    else
        ZR_CHECK(verify_broken(c, err));
    c->done_before += c->done_here;
    return ZARR_OK;
}

/* ---- how much there is to do ------------------------------------------------------- */

/* Length of the object from the listing, or else from the store; 0 if neither knows
 * it. */
static uint64_t object_bytes(const struct node_check *c, const zarr_block_info *chunk)
{
    zarr_store_value value = ZARR_STORE_VALUE_INIT;

    if (chunk->bytes != UINT64_MAX)
        return chunk->bytes;
    return zarr_store_stat(c->store, chunk->key, &value, c->opts.cancel, NULL) == ZARR_OK
               ? value.bytes
               : 0;
}

static int count_stored(void *user, const zarr_block_info *chunk)
{
    struct node_check *c = user;

    c->result.n_objects++;
    c->result.n_bytes = zr_add_cap(c->result.n_bytes, object_bytes(c, chunk));
    return 0;
}

/* An array that cannot be counted is reported when it is checked. */
static zarr_status count_node(struct node_check *c, const struct zr_node_row *node,
                              zarr_error *err)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = c->opts.cancel};
    zarr_array *array = NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    c->any_broken = c->any_broken || node->kind == ZARR_NODE_NONE;
    if (node->kind != ZARR_NODE_ARRAY)
        return ZARR_OK;
    ZR_TRY(zr_path_key(&c->path, c->top, node->path, err));
    st = open_array(&array, c, &why);
    if (st == ZARR_OK)
        st = zarr_array_list_blocks(array, ZARR_BLOCKS_STORED | ZARR_BLOCKS_ASK,
                                    count_stored, c, &io, &why);
    zarr_array_free(array);
    st = st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED ? zr_pass(err, st, &why)
                                                              : ZARR_OK;
out:
    return st;
}

/* A finding about the form of the store. */
static void on_form(void *user, int is_fault, const char *text)
{
    struct node_check *c = user;
    zarr_finding f = {.what = ZARR_FINDING_STORE,
                      .status = is_fault ? ZARR_ERR_INVALID : ZARR_OK,
                      .severity = is_fault ? ZARR_SEVERITY_ERROR : ZARR_SEVERITY_NOTE,
                      .message = text};

    find_fault(c, &f);
}

static zarr_status verify_tree(struct node_check *c, const char *path, zarr_error *err)
{
    ZR_CHECK(zr_path_normal(&c->top, c->ctx->alloc, path, &c->ctx->limits, err));
    ZR_CHECK(zr_nodes_find(&c->nodes, c->store, c->top, c->opts.cancel, err));
    for (size_t i = 0; i < c->nodes.n; i++)
        ZR_CHECK(count_node(c, &c->nodes.item[i], err));
    zr_str_clear(&c->path);
    tell_progress(c);
    if (*c->top == '\0')
        ZR_CHECK(zr_store_check(c->store, on_form, c, c->opts.cancel, err));
    for (size_t i = 0; i < c->nodes.n && !c->stopped; i++)
        ZR_CHECK(verify_node(c, &c->nodes.item[i], err));
    return ZARR_OK;
}

zarr_status zarr_node_verify(zarr_store *store, const char *path,
                             zarr_verify_result *result, const zarr_verify_options *opts,
                             zarr_error *err)
{
    ZR_NEED(store, err);
    struct node_check c = {.store = store, .ctx = zr_store_context(store)};
    zarr_status st = ZARR_OK;

    zr_str_init(&c.path, c.ctx->alloc);
    ZR_TRY(zr_struct_read(&c.opts, sizeof c.opts, 2 * sizeof(uint32_t), opts,
                          ZR_TAIL_REFUSE, "zarr_verify_options", err));
    ZR_TRY(zr_flags_check(c.opts.flags,
                          ZARR_VERIFY_NO_DATA | ZARR_VERIFY_STRICT |
                              ZARR_VERIFY_MISSING_ERROR,
                          "verify options", err));
    st = verify_tree(&c, path, err);
    if (result)
        zr_struct_give(result, result->struct_size, &c.result, sizeof c.result);
out:
    zr_nodes_free(&c.nodes);
    zr_str_deinit(&c.path);
    zr_free(c.ctx->alloc, c.top);
    return st;
}
