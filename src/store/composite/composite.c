/*
 * store/composite/composite.c - one store made of two: metadata documents are in one, all
 * other keys in the other. The name of a key decides, never the kind that an operation
 * tells, so that all operations on a key and all listings agree. Each part emulates what
 * it lacks.
 *
 * Arrays ask zr_store_of_chunks() and then use the store of the chunks directly: its
 * locks, versions, memory kinds and concurrency are those of the chunks. The capabilities
 * of the composite itself are those that both parts have, except that locks, versions
 * and conditions are those of the documents.
 * Thread class: shared, as the parts.
 */
#include "store/store_int.h"

#include <string.h>

struct composite {
    const zarr_allocator *alloc;
    zarr_store *docs, *chunks; /* counted */
};

static zarr_store *composite_part(const struct composite *c, const char *key)
{
    return zr_key_kind(key) == ZARR_STORE_OP_DOCUMENT ? c->docs : c->chunks;
}

static void composite_close(void *self)
{
    struct composite *c = self;

    zarr_store_free(c->docs);
    zarr_store_free(c->chunks);
    zr_free(c->alloc, c);
}

static void composite_caps(void *self, zarr_store_caps *out)
{
    const uint32_t of_docs = ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_WRITES_WAIT |
                             ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_PUT_NEW |
                             ZARR_STORE_CAP_PUT_IF_VERSION |
                             ZARR_STORE_CAP_ERASE_IF_VERSION;
    const struct composite *c = self;
    const zarr_store_caps *docs = zr_store_caps(c->docs),
                          *chunks = zr_store_caps(c->chunks);

    out->flags = (docs->flags & chunks->flags & ~of_docs) | (docs->flags & of_docs);
    /* there is no submit() here, and two parts appear one after the other */
    out->flags &= ~(uint32_t)(ZARR_STORE_CAP_COALESCES | ZARR_STORE_CAP_ATOMIC_FLUSH);
    out->metadata_flags = docs->flags;
    out->chunk_flags = chunks->flags;
    out->device_types = chunks->device_types;
    out->n_device_types = chunks->n_device_types;
    out->parallel = chunks->parallel;
    out->part_min_bytes = chunks->part_min_bytes;
    out->parts_max = chunks->parts_max;
}

/* ---- locks: the lock of a part, and which part ---- */

struct composite_lock {
    zarr_store *part;
    void *lock;
};

static zarr_status composite_lock(void *self, const char *key, const zarr_cancel *cancel,
                                  void **lock, zarr_error *err)
{
    struct composite *c = self;
    struct composite_lock *l = zr_malloc(c->alloc, sizeof *l);
    zarr_status st;

    if (!l)
        return zr_fail_memory(err, sizeof *l);
    l->part = composite_part(c, key);
    st = zr_store_lock(l->part, key, cancel, &l->lock, err);
    if (st == ZARR_OK)
        *lock = l;
    else
        zr_free(c->alloc, l);
    return st;
}

static void composite_unlock(void *self, void *lock)
{
    struct composite *c = self;
    struct composite_lock *l = lock;

    zr_store_unlock(l->part, l->lock);
    zr_free(c->alloc, l);
}

static zarr_status composite_begin_parts(void *self, const char *key, void *lock,
                                         const zarr_cancel *cancel, void **parts,
                                         zarr_error *err)
{
    const struct composite_lock *l = lock;

    return zr_store_begin_parts(composite_part(self, key), key, l ? l->lock : NULL,
                                cancel, parts, err);
}

static void composite_end_parts(void *self, const char *key, void *parts)
{
    zr_store_end_parts(composite_part(self, key), key, parts);
}

/* A part without versions is not asked for them. */
static void composite_run(void *self, zarr_store_op *op, zarr_error *err)
{
    zarr_store *const part = composite_part(self, op->key);
    void *const lock = op->lock;
    const uint32_t flags = op->flags;
    const struct composite_lock *l = flags & ZARR_STORE_OP_LOCKED ? lock : NULL;
    zarr_store_source *const source = op->source;
    zarr_store_source from;

    if (l && l->part != part) {
        zr_op_end(op,
                  zr_fail(err, ZARR_ERR_INVALID, "%s: write with the lock of another key",
                          op->key),
                  0);
        return;
    }
    if (l)
        op->lock = l->lock;
    if (op->verb == ZARR_STORE_COPY) {
        from = *source;
        from.store = composite_part(source->self, source->key);
        op->source = &from;
    }
    if (!zr_store_can(part, ZARR_STORE_CAP_VERSIONS))
        op->flags &= ~(uint32_t)ZARR_STORE_OP_WANT_VERSION;
    (void)zr_store_run_one(part, op, err);
    op->lock = lock;
    op->source = source;
    op->flags = flags | (op->flags & ZR_STORE_OP_CREATED);
}

/* ---- listing ---- */

struct composite_listing {
    const struct composite *c;
    const zarr_store *from; /* the part that is listed */
    bool all;               /* debris: names of files, which belong to no part */
    bool stopped;
    struct zr_map prefixes; /* that the documents' store listed */
    zarr_store_list_fn fn;
    void *user;
    zarr_status status;
    zarr_error *err;
};

static int composite_row(void *user, const zarr_store_item *item)
{
    struct composite_listing *x = user;

    if (item->is_prefix && zr_map_get(&x->prefixes, item->key))
        return 0;
    if (item->is_prefix && x->from == x->c->docs)
        x->status = zr_map_put(&x->prefixes, item->key, x, x->err);
    if (x->status != ZARR_OK)
        return 1;
    if (!item->is_prefix && !x->all && composite_part(x->c, item->key) != x->from)
        return 0;
    x->stopped = x->fn(x->user, item) != 0;
    return x->stopped;
}

static zarr_status composite_list(void *self, const char *prefix, uint32_t how,
                                  zarr_store_list_fn fn, void *user,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    const struct composite *c = self;
    zarr_store *const parts[] = {c->docs, c->chunks};
    struct composite_listing x = {
        .c = c, .all = how == ZARR_LIST_DEBRIS, .fn = fn, .user = user, .err = err};
    zarr_status st = ZARR_OK;

    zr_map_init(&x.prefixes, c->alloc, 0);
    for (size_t i = 0; i < ZR_COUNT(parts) && !x.stopped; i++) {
        x.from = parts[i];
        ZR_TRY(zr_store_list(parts[i], prefix, how, composite_row, &x, cancel, err));
        ZR_TRY(x.status);
    }
out:
    zr_map_deinit(&x.prefixes);
    return st;
}

/* ---- the rest: documents first, so that a node is gone before its chunks ---- */

static zarr_status composite_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    const struct composite *c = self;
    const zarr_status st = zr_store_flush(c->chunks, cancel, err);

    return st == ZARR_OK ? zr_store_flush(c->docs, cancel, err) : st;
}

static zarr_status composite_erase_prefix(void *self, const char *prefix,
                                          const zarr_cancel *cancel, zarr_error *err)
{
    const struct composite *c = self;
    const zarr_status st = zr_store_erase_prefix(c->docs, prefix, cancel, err);

    return st == ZARR_OK ? zr_store_erase_prefix(c->chunks, prefix, cancel, err) : st;
}

static zarr_status composite_erase_rest(void *self, const char *prefix, const char *last,
                                        const zarr_cancel *cancel, zarr_error *err)
{
    const struct composite *c = self;
    const zarr_status st = zr_store_erase_rest(c->chunks, prefix, last, cancel, err);

    return st == ZARR_OK ? zr_store_erase_rest(c->docs, prefix, last, cancel, err) : st;
}

/* If the prefix is a link in one part, the keys of the other part go as well. */
static zarr_status composite_erase_link(void *self, const char *prefix, bool *was,
                                        zarr_error *err)
{
    const struct composite *c = self;
    bool docs = false, chunks = false;

    ZR_CHECK(zr_store_erase_link(c->docs, prefix, &docs, err));
    ZR_CHECK(zr_store_erase_link(c->chunks, prefix, &chunks, err));
    *was = docs || chunks;
    if (*was && !docs)
        ZR_CHECK(zr_store_erase_prefix(c->docs, prefix, NULL, err));
    if (*was && !chunks)
        ZR_CHECK(zr_store_erase_prefix(c->chunks, prefix, NULL, err));
    return ZARR_OK;
}

static zarr_status composite_clean(void *self, const char *prefix, uint64_t min_age_s,
                                   uint64_t *n_removed, const zarr_cancel *cancel,
                                   zarr_error *err)
{
    const struct composite *c = self;
    uint64_t n_docs = 0, n_chunks = 0;
    zarr_status st = zarr_store_clean(c->docs, prefix, min_age_s, &n_docs, cancel, err);

    ZR_TRY(st);
    ZR_TRY(zr_cancel_check(cancel, err));
    st = zarr_store_clean(c->chunks, prefix, min_age_s, &n_chunks, cancel, err);
out:
    *n_removed = n_docs + n_chunks;
    return st;
}

static int composite_stop(void *user, const zarr_store_item *item)
{
    *(bool *)user = true;
    ZR_UNUSED(item);
    return 1;
}

static zarr_status composite_has(zarr_store *s, const char *prefix, bool *has,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    *has = false;
    return zr_store_list(s, prefix, ZARR_LIST_RECURSIVE, composite_stop, has, cancel,
                         err);
}

/* Two renames are not one step: between them a reader would see an array without its
 * chunks. So only keys that are all in one part are renamed, and only to a place where
 * the other part has no keys. The caller copies in the other cases. */
static zarr_status composite_rename(void *self, const char *from, const char *to,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    const struct composite *c = self;
    bool docs = false, chunks = false, taken = false;

    ZR_CHECK(composite_has(c->docs, from, &docs, cancel, err));
    ZR_CHECK(composite_has(c->chunks, from, &chunks, cancel, err));
    if (!docs && !chunks)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no keys below", from);
    if (docs && chunks)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: keys in two stores cannot be renamed in one step", from);
    ZR_CHECK(composite_has(docs ? c->chunks : c->docs, to, &taken, cancel, err));
    if (taken)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: the other store has keys below",
                       to);
    return zr_store_rename(docs ? c->docs : c->chunks, from, to, cancel, err);
}

static bool composite_same(void *self, void *other)
{
    const struct composite *c = self, *d = other;

    return zr_store_same(c->docs, d->docs) && zr_store_same(c->chunks, d->chunks);
}

static bool composite_by_link(const void *self)
{
    const struct composite *c = self;

    return zr_store_is_by_link(c->docs) || zr_store_is_by_link(c->chunks);
}

static zarr_store *composite_get(const void *self, const char *key)
{
    return composite_part(self, key);
}

static void composite_count(void *self, zarr_store_counters *out)
{
    const struct composite *c = self;
    zarr_store_counters chunks = ZARR_STORE_COUNTERS_INIT;

    zarr_store_read_counters(c->docs, out);
    zarr_store_read_counters(c->chunks, &chunks);
    out->requests += chunks.requests;
    out->retries += chunks.retries;
    out->bytes_sent += chunks.bytes_sent;
    out->bytes_received += chunks.bytes_received;
    out->dead_values += chunks.dead_values;
    out->dead_bytes += chunks.dead_bytes;
}

static const zarr_store_vtable composite_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "composite",
    .caps = composite_caps,
    .run = composite_run,
    .list = composite_list,
    .lock = composite_lock,
    .unlock = composite_unlock,
    .flush = composite_flush,
    .erase_prefix = composite_erase_prefix,
    .clean = composite_clean,
    .close = composite_close,
    .rename = composite_rename,
    .begin_parts = composite_begin_parts,
    .end_parts = composite_end_parts,
    .count = composite_count,
};

static const struct zr_store_native composite_native = {
    .part = composite_get,
    .same = composite_same,
    .erase_rest = composite_erase_rest,
    .erase_link = composite_erase_link,
    .by_link = composite_by_link,
};

static zarr_status composite_check(zarr_store *docs, zarr_store *chunks, zarr_error *err)
{
    if (!docs || !chunks)
        return zr_fail(err, ZARR_ERR_INVALID, "a composite store needs two stores");
    if (docs->native == &composite_native || chunks->native == &composite_native)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "a part of a composite store cannot be composite itself");
    if (docs->env.ctx != chunks->env.ctx)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the two stores belong to different contexts");
    if (zr_store_same(docs, chunks))
        return zr_fail(err, ZARR_ERR_INVALID, "both stores are the same one");
    return ZARR_OK;
}

zarr_status zarr_store_open_composite(zarr_store **out, zarr_store *metadata_store,
                                      zarr_store *chunk_store,
                                      const zarr_store_options *opts, zarr_error *err)
{
    struct zr_store_native_make make = {.vt = &composite_vtable,
                                        .native = &composite_native};
    struct composite *c = NULL;
    struct zr_str url;
    zarr_status st = composite_check(metadata_store, chunk_store, err);

    *out = NULL;
    if (st != ZARR_OK)
        return st;
    zr_str_init(&url, metadata_store->env.alloc);
    zr_str_printf(&url, "composite:%s+%s", metadata_store->url, chunk_store->url);
    ZR_TRY(zr_str_status(&url, err));
    c = zr_calloc(metadata_store->env.alloc, 1, sizeof *c);
    if (!c)
        ZR_FAIL_MEMORY(err, sizeof *c);
    *c = (struct composite){.alloc = metadata_store->env.alloc,
                            .docs = zarr_store_ref(metadata_store),
                            .chunks = zarr_store_ref(chunk_store)};
    make.self = c;
    make.memory_source = chunk_store;
    make.read_only = metadata_store->read_only && chunk_store->read_only;
    ZR_TRY(zr_store_make_native(out, &metadata_store->env, &make, zr_str_text(&url), opts,
                                err));
    (*out)->keylocks.rules = metadata_store->keylocks.rules;
out:
    zr_str_deinit(&url);
    return st;
}
