/*
 * tree/copy_object.c - copies one object of a node. Each thread has one object in memory,
 * counted in the context's byte budget.
 * Thread class: plain function.
 */
#include "mem/mem.h"
#include "tree/copy_int.h"

#include <stdlib.h>
#include <string.h>

/* One thread at a time calls the caller's function, without a lock. The others do not
 * wait: that thread also reports what they finish meanwhile. */
static void copy_progress(struct zr_copy *c, uint64_t bytes, bool skipped)
{
    zr_mutex_lock(&c->locked.mutex);
    c->locked.objects++;
    c->locked.bytes += bytes;
    if (skipped && c->opts.objects_skipped)
        ++*c->opts.objects_skipped;
    if (skipped && c->opts.bytes_skipped)
        *c->opts.bytes_skipped += bytes;
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

struct copied_object {
    struct zr_str src_key, dst_key;
    uint64_t bytes, taken; /* taken: bytes taken from the budget */
    zarr_memory mem, old;
    zarr_store_version version; /* of the source of a move */
    bool large;                 /* it is not in memory: copy_large.c copies it */
    bool is_copied;             /* by the store */
};

/* What is copied besides documents are chunks. */
static uint32_t copy_kind(const char *key)
{
    const uint32_t kind = zr_key_kind(key);

    return kind ? kind : ZARR_STORE_OP_CHUNK;
}

/* version: NULL, if it is not wanted. */
static zarr_status stat_object(const struct zr_copy *c, zarr_store *s, const char *key,
                               uint64_t *bytes, zarr_store_version *version,
                               zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = copy_kind(key),
                        .key = key,
                        .object_bytes = UINT64_MAX,
                        .cancel = c->opts.cancel};
    zarr_status st;

    op.flags |= version ? ZARR_STORE_OP_WANT_VERSION : 0u;
    st = zr_store_run_one(s, &op, err);
    *bytes = op.object_bytes;
    if (version)
        *version = op.version;
    return st;
}

struct got_object {
    uint64_t bytes;
    bool whole;                 /* false: the object is longer than `bytes` */
    zarr_store_version version; /* of the source of a move */
};

static zarr_status get_object(const struct zr_copy *c, zarr_store *s, const char *key,
                              zarr_memory mem, struct got_object *out, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = copy_kind(key),
                        .key = key,
                        .length = ZARR_STORE_TO_END,
                        .mem = mem,
                        .cancel = c->opts.cancel};
    zarr_status st;

    op.flags |= c->is_move && s == c->src ? ZARR_STORE_OP_WANT_VERSION : 0u;
    st = zr_store_run_one(s, &op, err);
    *out = (struct got_object){.bytes = op.done_bytes,
                               .whole = op.object_bytes == UINT64_MAX ||
                                        op.object_bytes <= op.done_bytes,
                               .version = op.version};
    return st;
}

static void object_release(struct zr_copy *c, struct copied_object *o)
{
    zr_pool_give(c->ctx->pool, &o->mem);
    zr_pool_give(c->ctx->pool, &o->old);
    o->mem = o->old = (zarr_memory){0};
    if (o->taken)
        zr_budget_give(&c->ctx->budget, o->taken);
    o->taken = 0;
}

static zarr_status object_reserve(struct zr_copy *c, struct copied_object *o, bool both,
                                  zarr_error *err)
{
    const uint64_t one = ZR_MAX(o->bytes, 1);
    uint64_t need = one;

    if (both && !zr_mul(one, 2, &need))
        return zr_fail_memory(err, one);
    ZR_CHECK(zr_budget_take(&c->ctx->budget, need, UINT64_MAX, NULL, err));
    o->taken = need;
    ZR_CHECK(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, one, &o->mem, err));
    if (both)
        ZR_CHECK(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, one, &o->old, err));
    return ZARR_OK;
}

/* Reads the source object, even if its size changes meanwhile. `both`: takes room for the
 * old object, too. */
static zarr_status object_read(struct zr_copy *c, struct copied_object *o, bool both,
                               zarr_error *err)
{
    struct got_object got = {0};
    bool whole = false;
    zarr_status st = ZARR_OK;

    for (int i = 0; i < 8 && !whole; i++) {
        object_release(c, o);
        ZR_TRY(stat_object(c, c->src, zr_str_text(&o->src_key), &o->bytes, NULL, err));
        o->large = zr_copy_is_large(c, zr_str_text(&o->src_key), o->bytes);
        if (o->large)
            goto out;
        ZR_TRY(object_reserve(c, o, both, err));
        ZR_TRY(get_object(c, c->src, zr_str_text(&o->src_key), o->mem, &got, err));
        /* whole only if it still has the length measured */
        whole = got.whole && got.bytes == o->bytes;
    }
    o->version = got.version;
    if (!whole)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "the object changes while it is copied");
out:
    if (st == ZARR_ERR_NOT_FOUND) /* the listing had it */
        st = zr_fail(err, ZARR_ERR_CONFLICT, "it vanished while the node was copied");
    return st;
}

/* Lets the store copy the object, if it can. */
static zarr_status copy_by_store(struct zr_copy *c, struct copied_object *o,
                                 zarr_error *err)
{
    zarr_store_source source = {.store = c->src, .key = zr_str_text(&o->src_key)};
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .key = zr_str_text(&o->dst_key),
                        .source = &source,
                        .cancel = c->opts.cancel};
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    if (!zr_store_can_key(c->dst, op.key, ZARR_STORE_CAP_COPY))
        return ZARR_OK;
    op.flags = copy_kind(op.key) | ZR_STORE_OP_BY_STORE;
    if (c->is_move) /* the source is erased if it still has this version */
        st = stat_object(c, c->src, source.key, &o->bytes, &source.version, &why);
    if (st == ZARR_OK)
        st = zr_store_run_one(c->dst, &op, &why);
    if (st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_CONFLICT) /* the source changes */
        return ZARR_OK;
    if (st == ZARR_ERR_NOT_FOUND) /* the listing had it */
        return zr_fail(err, ZARR_ERR_CONFLICT, "it vanished while the node was copied");
    ZR_TRY(zr_pass(err, st, &why));
    o->is_copied = true;
    o->bytes = op.object_bytes;
    o->version = source.version;
    if (o->bytes == UINT64_MAX) /* not every store tells it */
        st = stat_object(c, c->dst, op.key, &o->bytes, NULL, err);
out:
    return st;
}

/* *there: the destination has an object with this key. */
static zarr_status copy_is_there(struct zr_copy *c, struct copied_object *o, bool *there,
                                 bool *equal, zarr_error *err)
{
    const char *key = zr_str_text(&o->dst_key);
    struct got_object got;
    zarr_error e = {0};
    void *a = NULL, *b = NULL;
    zarr_status st = get_object(c, c->dst, key, o->old, &got, &e);

    *equal = false;
    *there = st != ZARR_ERR_NOT_FOUND;
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    ZR_TRY(zr_pass(err, st, &e));
    if (got.whole && got.bytes == o->bytes) {
        ZR_TRY(zr_mem_host_ptr(&c->ctx->memory, &o->mem, o->bytes, &a, err));
        ZR_TRY(zr_mem_host_ptr(&c->ctx->memory, &o->old, o->bytes, &b, err));
        *equal = memcmp(a, b, (size_t)o->bytes) == 0;
    }
out:
    return st;
}

/* ---- documents that change during the copy -------------------------------- */

static zarr_status hash_object(const struct zr_copy *c, const struct copied_object *o,
                               uint64_t *out, zarr_error *err)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    void *data = NULL;
    zarr_status st = zr_mem_host_ptr(&c->ctx->memory, &o->mem, o->bytes, &data, err);

    for (uint64_t i = 0; st == ZARR_OK && i < o->bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    *out = hash;
    return st;
}

static int compare_seen(const void *a, const void *b)
{
    return strcmp(((const struct zr_copy_seen *)a)->key,
                  ((const struct zr_copy_seen *)b)->key);
}

static zarr_status see_document(struct zr_copy *c, const char *name, zarr_error *err)
{
    struct copied_object o = {0};
    uint64_t hash = 0;
    zarr_status st = ZARR_OK;

    zr_str_init(&o.src_key, c->ctx->alloc);
    ZR_TRY(zr_cancel_check(c->opts.cancel, err));
    ZR_TRY(zr_path_key(&o.src_key, c->src_path, name, err));
    if (c->changes_mark && zr_streq(zr_path_name(name), ZR_DOC_ARRAY))
        ZR_TRY(zr_copy_check_mark(c, zr_str_text(&o.src_key), err));
    ZR_TRY(object_read(c, &o, false, err));
    ZR_TRY(hash_object(c, &o, &hash, err));
    c->seen[c->n_seen++] = (struct zr_copy_seen){.key = name, .hash = hash};
out:
    if (zr_is_store_failure(st) || st == ZARR_ERR_CONFLICT || st == ZARR_ERR_NO_MEMORY)
        zr_prefix(err, st, "%s", name);
    object_release(c, &o);
    zr_str_deinit(&o.src_key);
    return st;
}

zarr_status zr_copy_see(struct zr_copy *c, zarr_error *err)
{
    const struct zr_names *keys = &c->seen_keys;
    size_t n = 0;

    ZR_CHECK(zr_tree_keys(&c->seen_keys, c->src, c->src_path, true, c->opts.cancel, err));
    for (size_t i = 0; i < keys->n; i++)
        n += zr_copy_is_document(keys->item[i]);
    c->seen = zr_calloc(c->ctx->alloc, ZR_MAX(n, (size_t)1), sizeof *c->seen);
    if (!c->seen)
        return zr_fail_memory(err, n * sizeof *c->seen);
    for (size_t i = 0; i < keys->n; i++)
        if (zr_copy_is_document(keys->item[i]))
            ZR_CHECK(see_document(c, keys->item[i], err));
    if (c->n_seen > 1)
        qsort(c->seen, c->n_seen, sizeof *c->seen, compare_seen);
    return ZARR_OK;
}

/* A document that changed may speak of chunks that were not listed, such as those of an
 * append. */
static zarr_status check_unchanged(const struct zr_copy *c, const char *name,
                                   const struct copied_object *o, zarr_error *err)
{
    const struct zr_copy_seen want = {.key = name};
    const struct zr_copy_seen *seen;
    uint64_t hash = 0;

    if (!c->seen || !zr_copy_is_document(name))
        return ZARR_OK;
    seen = c->n_seen == 0
               ? NULL
               : bsearch(&want, c->seen, c->n_seen, sizeof *c->seen, compare_seen);
    ZR_CHECK(hash_object(c, o, &hash, err));
    if (!seen || seen->hash != hash)
        return zr_fail(err, ZARR_ERR_CONFLICT, "it changed while the node was copied");
    return ZARR_OK;
}

/* ---- a move's source that changes ------------------------------------------ */

/* NULL: there is no such key, or this is no move. */
static struct zr_copy_mark *find_copy_mark(const struct zr_copy *c, const char *name)
{
    const size_t at = c->mark ? zr_names_find(&c->keys, name) : c->keys.n;

    return at < c->keys.n ? &c->mark[at] : NULL;
}

static void mark_copied(struct zr_copy *c, const char *name,
                        const struct copied_object *o)
{
    struct zr_copy_mark *mark = find_copy_mark(c, name);

    if (mark)
        *mark = (struct zr_copy_mark){
            .version = o->version, .bytes = o->bytes, .known = true};
}

/* A store without versions leaves them zero. */
static bool is_marked(const struct zr_copy_mark *mark, uint64_t bytes,
                      const zarr_store_version *version)
{
    return bytes == mark->bytes && (zr_store_version_is_none(version) ||
                                    zr_store_version_is_none(&mark->version) ||
                                    zr_store_version_equal(version, &mark->version));
}

bool zr_copy_find_source_version(const void *copy, const char *key,
                                 zarr_store_version *version)
{
    static const zarr_store_version none;
    const struct zr_copy *c = copy;
    const char *name = key + (*c->src_path ? strlen(c->src_path) + 1 : 0);
    const struct zr_copy_mark *mark = NULL;

    if (!c->mark || !zr_store_can_key(c->src, key, ZARR_STORE_CAP_ERASE_IF_VERSION))
        return false;
    mark = find_copy_mark(c, name);
    *version = mark ? mark->version : none;
    return !mark || (mark->known && !zr_store_version_is_none(version));
}

static zarr_status check_mark(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    const struct zr_copy *c = arg;
    const struct zr_copy_mark *mark = &c->mark[i];
    zarr_store_version version = {{0}};
    uint64_t bytes = 0;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(worker);
    zr_str_init(&key, c->ctx->alloc);
    ZR_TRY(zr_cancel_check(c->opts.cancel, err));
    if (!mark->known)
        goto out;
    ZR_TRY(zr_path_key(&key, c->src_path, c->keys.item[i], err));
    st = stat_object(c, c->src, zr_str_text(&key), &bytes, &version, err);
    if (st == ZARR_ERR_NOT_FOUND || (st == ZARR_OK && !is_marked(mark, bytes, &version)))
        st = zr_fail(err, ZARR_ERR_CONFLICT, "%s changed while the node was moved",
                     c->keys.item[i]);
    else if (st != ZARR_OK) /* not every store names the key */
        zr_prefix(err, st, "%s", c->keys.item[i]);
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_copy_check_source(struct zr_copy *c, zarr_error *err)
{
    const uint32_t threads = c->opts.max_threads;
    struct zr_names now;
    zarr_status st = ZARR_OK;

    zr_names_init(&now, c->ctx->alloc);
    now.cancel = c->opts.cancel;
    ZR_TRY(zr_names_keys(&now, c->src, c->src_path, err));
    for (size_t i = 0; i < now.n; i++)
        if (i >= c->keys.n || !zr_streq(now.item[i], c->keys.item[i]))
            ZR_FAIL(err, ZARR_ERR_CONFLICT,
                    "keys of the source appeared or vanished while the node was "
                    "moved (at %s)",
                    now.item[i]);
    ZR_TRY(zr_parallel_for(c->keys.n, threads ? threads : c->ctx->engine.max_threads,
                           check_mark, c, err));
out:
    zr_names_deinit(&now);
    return st;
}

/* ---- one object --------------------------------------------------------- */

/* Whether the object of the destination may be written, given that it does not equal. */
static zarr_status check_different(const struct zr_copy *c, const char *key, bool there,
                                   zarr_error *err)
{
    if (!there && c->only_compares)
        return zr_fail(err, ZARR_ERR_EXISTS, "%s is missing", key);
    if (!there || (c->opts.flags & ZARR_COPY_OVERWRITE))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_EXISTS, "%s exists with other bytes", key);
}

static zarr_status object_begin(struct zr_copy *c, struct copied_object *o,
                                const char *name, bool both, zarr_error *err)
{
    zr_str_init(&o->src_key, c->ctx->alloc);
    zr_str_init(&o->dst_key, c->ctx->alloc);
    ZR_CHECK(zr_cancel_check(c->opts.cancel, err));
    ZR_CHECK(zr_path_key(&o->src_key, c->src_path, name, err));
    ZR_CHECK(zr_path_key(&o->dst_key, c->dst_path, name, err));
    if (!both && !zr_copy_is_document(name))
        ZR_CHECK(copy_by_store(c, o, err));
    if (!o->is_copied)
        ZR_CHECK(object_read(c, o, both, err));
    return ZARR_OK;
}

static zarr_status object_end(struct zr_copy *c, struct copied_object *o,
                              const char *name, zarr_status st, zarr_error *err)
{
    /* Not every store names the key in its errors, and the allocator does not know it. */
    if (zr_is_store_failure(st) || st == ZARR_ERR_CONFLICT || st == ZARR_ERR_NO_MEMORY)
        zr_prefix(err, st, "%s", name);
    object_release(c, o);
    zr_str_deinit(&o->src_key);
    zr_str_deinit(&o->dst_key);
    return st;
}

zarr_status zr_copy_clear_document(struct zr_copy *c, const char *name, bool erase,
                                   zarr_error *err)
{
    struct copied_object o = {0};
    bool there = false, equal = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(object_begin(c, &o, name, true, err));
    ZR_TRY(copy_is_there(c, &o, &there, &equal, err));
    if (!there || equal)
        goto out;
    ZR_TRY(check_different(c, zr_str_text(&o.dst_key), there, err));
    if (erase) {
        c->new_job = false; /* there is something to continue */
        st = zarr_store_erase(c->dst, zr_str_text(&o.dst_key), c->opts.cancel, err);
    }
out:
    return object_end(c, &o, name, st, err);
}

zarr_status zr_copy_object(struct zr_copy *c, const char *name, zarr_error *err)
{
    const bool compare = (c->opts.flags & ZARR_COPY_SKIP_EQUAL) != 0;
    struct copied_object o = {0};
    zarr_store_op put = {.verb = ZARR_STORE_PUT, .cancel = c->opts.cancel};
    bool there = false, equal = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(object_begin(c, &o, name, compare, err));
    if (o.is_copied) {
        mark_copied(c, name, &o);
        goto out;
    }
    if (o.large) {
        const struct zr_copy_large large = {.src_key = zr_str_text(&o.src_key),
                                            .dst_key = zr_str_text(&o.dst_key),
                                            .bytes = o.bytes,
                                            .compare = compare,
                                            .there = &there,
                                            .equal = &equal,
                                            .version = &o.version};

        ZR_TRY(zr_copy_large(c, &large, err));
        mark_copied(c, name, &o);
        goto out;
    }
    ZR_TRY(check_unchanged(c, name, &o, err));
    if (compare)
        ZR_TRY(copy_is_there(c, &o, &there, &equal, err));
    if (!equal) {
        ZR_TRY(check_different(c, zr_str_text(&o.dst_key), there, err));
        put.key = zr_str_text(&o.dst_key);
        put.flags = copy_kind(put.key);
        if (!zr_mem_slice(&o.mem, 0, o.bytes, &put.mem))
            ZR_TRY(zr_internal(err));
        ZR_TRY(zr_store_run_one(c->dst, &put, err));
    }
    mark_copied(c, name, &o);
out:
    st = object_end(c, &o, name, st, err);
    if (st == ZARR_OK)
        copy_progress(c, o.bytes, equal);
    return st;
}
