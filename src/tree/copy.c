/*
 * tree/copy.c - copying and moving a node with everything below it, object by object
 * and byte for byte, between any two stores. Chunks go first, in parallel;
 * then the documents, deepest first and the node's own last: until that one is
 * there, the copy is not a node that anybody could take for complete. What an
 * interrupted copy left can be kept (SKIP_EQUAL): objects that are there with
 * equal bytes are not written again.
 * A move inside one store that can rename is that, in one step.
 * One object is in memory per thread, counted in the context's byte budget.
 * Thread class: plain functions.
 */
#include "tree/tree.h"

#include <stdlib.h>
#include <string.h>

struct node_copy {
    zarr_store *src, *dst;
    char *src_path, *dst_path;
    zarr_copy_options opts;
    bool is_move;
    zarr_context *ctx;              /* of src: memory comes from it */
    struct zr_names keys;           /* relative */
    const char **chunk, **document; /* into keys.item */
    size_t n_chunks, n_documents;
    struct {
        zr_mutex mutex;
        uint64_t objects, bytes;
        bool told, telling; /* told: the caller knows these numbers */
    } locked;
};

/* The caller's function is called by one thread at a time, with no lock held and without
 * the others waiting: what they finish meanwhile is told by that thread afterwards. */
static void copy_progress(struct node_copy *c, uint64_t bytes)
{
    zr_mutex_lock(&c->locked.mutex);
    c->locked.objects++;
    c->locked.bytes += bytes;
    c->locked.told = !c->opts.progress;
    while (!c->locked.told && !c->locked.telling) {
        const uint64_t objects = c->locked.objects, sum = c->locked.bytes;

        c->locked.told = c->locked.telling = true;
        zr_mutex_unlock(&c->locked.mutex);
        c->opts.progress(c->opts.progress_user, objects, sum);
        zr_mutex_lock(&c->locked.mutex);
        c->locked.telling = false;
    }
    zr_mutex_unlock(&c->locked.mutex);
}

/* ---- one object --------------------------------------------------------- */

struct copied_object {
    struct zr_str src_key, dst_key;
    uint64_t bytes, taken; /* taken: of the budget */
    zarr_mem mem, old;
};

static zarr_status stat_object(zarr_store *s, const char *key, uint64_t *bytes,
                               zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = key, .object_bytes = UINT64_MAX};
    const zarr_status st = zr_store_run_one(s, &op, err);

    *bytes = op.object_bytes;
    return st;
}

/* *whole false: the object goes on behind *bytes. */
static zarr_status get_object(zarr_store *s, const char *key, zarr_mem mem,
                              uint64_t *bytes, bool *whole, zarr_error *err)
{
    zarr_store_op op = {
        .verb = ZARR_STORE_GET, .key = key, .length = ZARR_STORE_TO_END, .mem = mem};
    const zarr_status st = zr_store_run_one(s, &op, err);

    *whole = op.object_bytes == UINT64_MAX || op.object_bytes <= op.done_bytes;
    *bytes = op.done_bytes;
    return st;
}

static void object_release(struct node_copy *c, struct copied_object *o)
{
    zr_pool_give(c->ctx->pool, &o->mem);
    zr_pool_give(c->ctx->pool, &o->old);
    o->mem = o->old = (zarr_mem){0};
    if (o->taken)
        zr_budget_give(&c->ctx->budget, o->taken);
    o->taken = 0;
}

static zarr_status object_reserve(struct node_copy *c, struct copied_object *o, bool both,
                                  zarr_error *err)
{
    const uint64_t one = ZR_MAX(o->bytes, 1);
    uint64_t need = one;
    zarr_status st = ZARR_OK;

    if (both && !zr_mul_u64(one, 2, &need))
        return zr_fail_memory(err, one);
    ZR_TRY(zr_budget_take(&c->ctx->budget, need, UINT64_MAX, NULL, err));
    o->taken = need;
    ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, one, &o->mem, err));
    if (both)
        ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, one, &o->old, err));
out:
    return st;
}

/* Reads the source object, whatever its size becomes meanwhile. `both`: room for the old
 * one, too. */
static zarr_status object_read(struct node_copy *c, struct copied_object *o, bool both,
                               zarr_error *err)
{
    bool whole = false;
    zarr_status st = ZARR_OK;

    for (int i = 0; i < 8 && !whole; i++) {
        uint64_t got = 0;

        object_release(c, o);
        ZR_TRY(stat_object(c->src, zr_str_text(&o->src_key), &o->bytes, err));
        ZR_TRY(object_reserve(c, o, both, err));
        ZR_TRY(get_object(c->src, zr_str_text(&o->src_key), o->mem, &got, &whole, err));
        whole = whole && got == o->bytes; /* as long as it was measured */
    }
    if (!whole)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "the object changes while it is copied");
out:
    return st;
}

static zarr_status copy_is_there(struct node_copy *c, struct copied_object *o,
                                 bool *equal, zarr_error *err)
{
    const char *key = zr_str_text(&o->dst_key);
    zarr_error e = {0};
    uint64_t bytes = 0;
    bool whole = false;
    void *a = NULL, *b = NULL;
    zarr_status st = get_object(c->dst, key, o->old, &bytes, &whole, &e);

    *equal = false;
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    ZR_TRY(zr_pass(err, st, &e));
    if (whole && bytes == o->bytes) {
        ZR_TRY(zr_mem_host_ptr(&c->ctx->memory, &o->mem, bytes, &a, err));
        ZR_TRY(zr_mem_host_ptr(&c->ctx->memory, &o->old, bytes, &b, err));
        *equal = memcmp(a, b, (size_t)bytes) == 0;
    }
    if (!*equal && !(c->opts.flags & ZARR_COPY_OVERWRITE))
        st = zr_fail(err, ZARR_ERR_EXISTS, "%s is there with other bytes", key);
out:
    return st;
}

static zarr_status copy_object(struct node_copy *c, const char *name, zarr_error *err)
{
    const bool compare = (c->opts.flags & ZARR_COPY_SKIP_EQUAL) != 0;
    struct copied_object o = {0};
    zarr_store_op put = {.verb = ZARR_STORE_PUT};
    bool equal = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&o.src_key, c->ctx->alloc);
    zr_str_init(&o.dst_key, c->ctx->alloc);
    if (zr_is_cancelled(c->opts.cancel))
        ZR_TRY(zr_fail(err, ZARR_ERR_CANCELLED, "the copy was cancelled"));
    zr_path_key(&o.src_key, c->src_path, name);
    zr_path_key(&o.dst_key, c->dst_path, name);
    ZR_TRY(zr_str_status(&o.src_key, err));
    ZR_TRY(zr_str_status(&o.dst_key, err));
    ZR_TRY(object_read(c, &o, compare, err));
    if (compare)
        ZR_TRY(copy_is_there(c, &o, &equal, err));
    if (!equal) {
        put.key = zr_str_text(&o.dst_key);
        if (!zr_mem_slice(&o.mem, 0, o.bytes, &put.mem))
            ZR_TRY(zr_internal(err));
        ZR_TRY(zr_store_run_one(c->dst, &put, err));
    }
out:
    /* Not every store names the key, and the allocator does not know it. */
    if (st == ZARR_ERR_IO || st == ZARR_ERR_CONFLICT || st == ZARR_ERR_NO_MEMORY)
        zr_prefix(err, st, "%s", name);
    object_release(c, &o);
    zr_str_deinit(&o.src_key);
    zr_str_deinit(&o.dst_key);
    if (st == ZARR_OK)
        copy_progress(c, o.bytes);
    return st;
}

static zarr_status copy_chunk_item(void *arg, uint64_t i, uint32_t worker,
                                   zarr_error *err)
{
    struct node_copy *c = arg;

    ZR_UNUSED(worker);
    return copy_object(c, c->chunk[i], err);
}

/* ---- what to copy, in which order --------------------------------------- */

/* Attributes before the document that makes a node; 2: not a document. */
static int document_rank(const char *key)
{
    const char *name = zr_path_name(key);

    if (zr_streq(name, ZR_DOC_ATTRS) || zr_streq(name, ZR_DOC_CONSOLIDATED))
        return 0;
    if (zr_streq(name, ZR_DOC_V3) || zr_streq(name, ZR_DOC_ARRAY) ||
        zr_streq(name, ZR_DOC_GROUP))
        return 1;
    return 2;
}

static int compare_documents(const void *a, const void *b)
{
    const char *p = *(const char *const *)a, *q = *(const char *const *)b;
    const size_t m = zr_path_depth(p), n = zr_path_depth(q);

    if (m != n)
        return m > n ? -1 : 1;
    return document_rank(p) - document_rank(q);
}

static zarr_status sort_keys(struct node_copy *c, zarr_error *err)
{
    const size_t n = c->keys.n;

    c->chunk = zr_calloc(c->ctx->alloc, ZR_MAX(n, 1), 2 * sizeof *c->chunk);
    if (!c->chunk)
        return zr_fail_memory(err, n * 2 * sizeof *c->chunk);
    c->document = c->chunk + n;
    for (size_t i = 0; i < n; i++) {
        if (document_rank(c->keys.item[i]) == 2)
            c->chunk[c->n_chunks++] = c->keys.item[i];
        else
            c->document[c->n_documents++] = c->keys.item[i];
    }
    if (c->n_documents > 1)
        qsort(c->document, c->n_documents, sizeof *c->document, compare_documents);
    return ZARR_OK;
}

/* Objects at the destination that the source does not have: both lists are sorted. */
static zarr_status erase_surplus(struct node_copy *c, zarr_error *err)
{
    struct zr_names there;
    struct zr_str key;
    size_t i = 0;
    zarr_status st = ZARR_OK;

    zr_names_init(&there, c->ctx->alloc);
    zr_str_init(&key, c->ctx->alloc);
    ZR_TRY(zr_names_keys(&there, c->dst, c->dst_path, err));
    for (size_t j = 0; j < there.n; j++) {
        while (i < c->keys.n && zr_path_compare(c->keys.item[i], there.item[j]) < 0)
            i++;
        if (i < c->keys.n && zr_streq(c->keys.item[i], there.item[j]))
            continue;
        zr_path_key(&key, c->dst_path, there.item[j]);
        ZR_TRY(zr_str_status(&key, err));
        ZR_TRY(zarr_store_erase(c->dst, zr_str_text(&key), err));
    }
out:
    zr_str_deinit(&key);
    zr_names_deinit(&there);
    return st;
}

static bool can_rename(const struct node_copy *c)
{
    return c->is_move && zr_store_same(c->src, c->dst) &&
           !zr_store_is_read_only(c->dst) && *c->src_path && *c->dst_path;
}

/* One step, where both places are in one store that can. *moved false: copy. */
static zarr_status try_rename(struct node_copy *c, bool *moved, zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    *moved = false;
    if (!can_rename(c))
        return ZARR_OK;
    if (zr_is_cancelled(c->opts.cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "the move was cancelled");
    st = zr_store_rename(c->src, c->src_path, c->dst_path, &e);
    *moved = st == ZARR_OK;
    if (st == ZARR_OK || st == ZARR_ERR_UNSUPPORTED)
        return ZARR_OK;
    return zr_pass(err, st, &e);
}

/* ---- the copy ----------------------------------------------------------- */

/* Erasing the destination, or the source of a move, must not take the other with it. */
static zarr_status check_apart(const struct node_copy *c, zarr_error *err)
{
    bool overlap = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_overlap(c->src, c->src_path, c->dst, c->dst_path, &overlap, err));
    if (overlap)
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "/%s cannot be copied to /%s: they are one place, or one is inside "
                     "the other",
                     c->src_path, c->dst_path);
out:
    return st;
}

static zarr_status prepare_destination(struct node_copy *c, int32_t format,
                                       zarr_error *err)
{
    const uint32_t flags = c->opts.flags;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_check_new(c->dst_path, format, &c->ctx->limits, err));
    if (!(flags & ZARR_COPY_SKIP_EQUAL)) {
        if (flags & ZARR_COPY_OVERWRITE)
            ZR_TRY(zr_node_erase(c->dst, c->dst_path, err));
        else
            ZR_TRY(zr_node_must_be_new(c->dst, c->dst_path, err));
    }
    ZR_TRY(zr_parents_create(c->dst, c->dst_path, format, err));
out:
    if (st == ZARR_ERR_IO)
        zr_path_prefix(err, st, c->dst_path);
    return st;
}

static zarr_status copy_run(struct node_copy *c, zarr_error *err)
{
    const struct zr_find where = {.store = c->src, .path = c->src_path};
    const uint32_t threads = c->opts.max_threads;
    struct zr_found found;
    zarr_error e = {0};
    bool moved = false;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, c->ctx->alloc);
    st = zr_node_find(&found, &where, &e);
    if (found.format == 0) { /* a broken node can be copied as it is */
        if (st == ZARR_ERR_NOT_FOUND)
            zr_fail(&e, st, "there is no array or group");
        zr_path_prefix(&e, st, c->src_path);
        zr_pass(err, st, &e);
        goto out;
    }
    ZR_TRY(check_apart(c, err));
    /* Before the destination is erased: a store that could not tell that it is the source
     * must not end in a copy of nothing. */
    if (!can_rename(c))
        ZR_TRY(zr_names_keys(&c->keys, c->src, c->src_path, err));
    ZR_TRY(prepare_destination(c, found.format, err));
    ZR_TRY(try_rename(c, &moved, err));
    if (moved)
        goto out;
    if (can_rename(c))
        ZR_TRY(zr_names_keys(&c->keys, c->src, c->src_path, err));
    ZR_TRY(sort_keys(c, err));
    ZR_TRY(zr_parallel_for(c->n_chunks, threads ? threads : c->ctx->engine.n_threads,
                           copy_chunk_item, c, err));
    if ((c->opts.flags & (ZARR_COPY_OVERWRITE | ZARR_COPY_SKIP_EQUAL)) ==
        (ZARR_COPY_OVERWRITE | ZARR_COPY_SKIP_EQUAL))
        ZR_TRY(erase_surplus(c, err));
    for (size_t i = 0; i < c->n_documents; i++)
        ZR_TRY(copy_object(c, c->document[i], err));
    if (c->is_move) {
        st = zr_node_erase(c->src, c->src_path, err);
        if (st != ZARR_OK)
            ZR_TRY(zr_path_prefix(err, st, c->src_path));
    }
out:
    zr_found_deinit(&found);
    return st;
}

static zarr_status copy_begin(struct node_copy *c, const char *src_path,
                              const char *dst_path, const zarr_copy_options *opts,
                              zarr_error *err)
{
    const zarr_limits *limits = &c->ctx->limits;
    zarr_status st = ZARR_OK;

    zr_mutex_init(&c->locked.mutex);
    zr_names_init(&c->keys, c->ctx->alloc);
    ZR_TRY(zr_struct_read(&c->opts, sizeof c->opts, 2 * sizeof(uint32_t), opts,
                          ZR_TAIL_REFUSE, "zarr_copy_options", err));
    if (c->opts.flags & ~(uint32_t)(ZARR_COPY_OVERWRITE | ZARR_COPY_SKIP_EQUAL))
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "copy options: unknown flags 0x%" PRIx32, c->opts.flags));
    ZR_TRY(zr_path_normal(&c->src_path, c->ctx->alloc, src_path, limits, err));
    ZR_TRY(zr_path_normal(&c->dst_path, c->ctx->alloc, dst_path, limits, err));
out:
    return st;
}

static void copy_end(struct node_copy *c)
{
    zr_free(c->ctx->alloc, c->chunk);
    zr_free(c->ctx->alloc, c->src_path);
    zr_free(c->ctx->alloc, c->dst_path);
    zr_names_deinit(&c->keys);
    zr_mutex_deinit(&c->locked.mutex);
}

zarr_status zarr_node_copy(zarr_store *src, const char *src_path, zarr_store *dst,
                           const char *dst_path, const zarr_copy_options *opts,
                           zarr_error *err)
{
    struct node_copy c = {.src = src, .dst = dst, .ctx = zr_store_context(src)};
    zarr_status st = copy_begin(&c, src_path, dst_path, opts, err);

    if (st == ZARR_OK)
        st = copy_run(&c, err);
    copy_end(&c);
    return st;
}

zarr_status zarr_node_move(zarr_store *src, const char *src_path, zarr_store *dst,
                           const char *dst_path, const zarr_copy_options *opts,
                           zarr_error *err)
{
    struct node_copy c = {
        .src = src, .dst = dst, .ctx = zr_store_context(src), .is_move = true};
    zarr_status st = copy_begin(&c, src_path, dst_path, opts, err);

    if (st == ZARR_OK && zr_store_is_read_only(src))
        st = zr_fail(err, ZARR_ERR_INVALID, "the source store is read-only");
    if (st == ZARR_OK)
        st = copy_run(&c, err);
    copy_end(&c);
    return st;
}
