/*
 * array/handle/state.c - an array as its documents describe it at one moment: parsed
 * metadata, the documents it points into, and what is computed from them when first
 * needed (a layout per kind of memory, texts). What is computed late is published with
 * one atomic exchange; a thread that comes second frees its own result. So readers take
 * no lock. A resize does not disturb a read under way, which keeps its state. Thread
 * class: frozen, counted.
 */
#include "array/array_int.h"

#include <string.h>

struct zr_layout_slot {
    struct zr_layout_slot *next;
    int32_t tensor, lent; /* as in zr_layout_key */
    uint32_t trust;       /* never 0 */
    char *preference;     /* owned; the key's, or else the array's; NULL: the context's */
    struct zr_layout *layout;
};

struct zr_array_state *zr_array_state_ref(struct zr_array_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void zr_array_state_free(struct zr_array_state *s)
{
    struct zr_layout_slot *slot = NULL;

    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    slot = atomic_load(&s->layouts);
    while (slot) {
        struct zr_layout_slot *next = slot->next;

        zr_layout_free(slot->layout);
        zr_free(s->alloc, slot->preference);
        zr_free(s->alloc, slot);
        slot = next;
    }
    if (atomic_load(&s->packed) != s)
        zr_array_state_free(atomic_load(&s->packed));
    zr_free(s->alloc, s->facts);
    zr_free(s->alloc, s->document_key);
    zr_array_meta_deinit(&s->meta);
    zr_parsed_free(s->parsed);
    zr_parsed_free(s->attrs_parsed);
    zr_free(s->alloc, s);
}

/* Walks into nested shards to the innermost chunk that can be read alone. Its shape is in
 * array order of dimensions. */
static zarr_status leaf_shape(struct zr_array_state *s, zarr_error *err)
{
    const struct zr_chain *chain = s->meta.chain;
    uint8_t to_array[ZARR_MAX_RANK], order[ZARR_MAX_RANK], next[ZARR_MAX_RANK];

    for (int32_t i = 0; i < s->meta.ndim; i++) {
        to_array[i] = (uint8_t)i;
        s->leaf_shape[i] = s->meta.grid.regular ? s->meta.grid.chunk_shape[i] : 0;
    }
    while (chain) {
        const struct zr_shard_spec *shard =
            zr_chain_whole_shard(chain) ? NULL : chain->codec[chain->a2b].structure.shard;

        for (uint32_t c = 0; shard && c < chain->a2b; c++) {
            if (chain->codec[c].structure.n_order == 0)
                continue;
            ZR_CHECK(zr_spec_order(&chain->codec[c], s->meta.ndim, order, err));
            for (int32_t i = 0; i < s->meta.ndim; i++)
                next[i] = to_array[order[i]];
            for (int32_t i = 0; i < s->meta.ndim; i++)
                to_array[i] = next[i];
        }
        for (int32_t i = 0; shard && i < s->meta.ndim && i < shard->ndim; i++)
            s->leaf_shape[to_array[i]] = shard->chunk_shape[i];
        s->n_shard_levels += shard != NULL;
        chain = shard ? shard->inner : NULL;
    }
    return ZARR_OK;
}

struct zr_array_source zr_array_source_make(int32_t format, struct zr_parsed *parsed,
                                            struct zr_parsed *attrs_parsed,
                                            const struct zr_array_meta *before)
{
    return (struct zr_array_source){
        .format = format,
        .nczarr = before && before->nczarr,
        .parsed = parsed,
        .attrs_parsed = attrs_parsed,
        .root = parsed->json.root,
        .attrs = attrs_parsed ? attrs_parsed->json.root : NULL,
    };
}

void zr_array_source_attrs(struct zr_array_source *src, const struct zr_array_state *s)
{
    src->attrs = s->attrs;
    src->attrs_parsed = s->attrs && !s->attrs_parsed ? s->parsed : s->attrs_parsed;
}

zarr_status zr_array_state_new(struct zr_array_state **out, const zarr_context *ctx,
                               const struct zr_array_source *src, zarr_error *err)
{
    struct zr_meta_env env = zr_meta_env_make(ctx, !src->asked);
    struct zr_array_state *s = zr_calloc(ctx->alloc, 1, sizeof *s);
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!s)
        return zr_fail_memory(err, sizeof *s);
    env.fill_spelled = src->fill_spelled;
    env.nczarr = src->nczarr;
    atomic_init(&s->refs, 1);
    s->alloc = ctx->alloc;
    s->parsed = zr_parsed_ref(src->parsed);
    s->attrs_parsed = zr_parsed_ref(src->attrs_parsed);
    s->root = src->root;
    s->attrs = src->attrs;
    ZR_TRY(zr_array_meta_parse(&s->meta, &env, src->format, s->root, s->attrs, err));
    zr_chunk_limits(&s->limits, &ctx->limits, s->meta.dtype);
    s->sharded = s->meta.chain->codec[s->meta.chain->a2b].structure.shard &&
                 !zr_chain_whole_shard(s->meta.chain);
    ZR_TRY(leaf_shape(s, err));
    ZR_TRY(zr_array_facts_make(&s->facts, s, err));
    *out = s; /* moved */
    s = NULL;
out:
    zr_array_state_free(s);
    return st;
}

zarr_status zr_array_strict(const zarr_array *array, zarr_error *err)
{
    struct zr_meta_env env = zr_meta_env_make(array->h.ctx, false);
    struct zr_array_state *s = zr_array_state_get(array);
    struct zr_array_meta meta = {0};
    zarr_status st;

    env.nczarr = s->meta.nczarr;
    st = zr_array_meta_parse(&meta, &env, s->meta.format, s->root, s->attrs, err);
    zr_array_meta_deinit(&meta);
    zr_array_state_free(s);
    return st;
}

/* ---- layouts ------------------------------------------------------------ */

static const struct zr_layout *layout_find(struct zr_layout_slot *slot,
                                           const struct zr_layout_key *key)
{
    for (; slot; slot = slot->next)
        if (slot->tensor == key->tensor && slot->lent == key->lent &&
            slot->trust == key->trust && zr_streq(slot->preference, key->preference))
            return slot->layout;
    return NULL;
}

static zarr_status layout_make(struct zr_layout **out, const zarr_array *a,
                               const struct zr_array_state *s,
                               const struct zr_layout_key *key, zarr_error *err)
{
    const zarr_store_caps *caps = zr_store_caps(a->chunk_store);
    const zarr_context *ctx = a->h.ctx;
    struct zr_layout_args args = {
        .grid = &s->meta.grid,
        .chain = s->meta.chain,
        .keys = &s->meta.keys,
        .dtype = s->meta.dtype,
        .fill = s->meta.fill,
        .index_dtype = ctx->uint64,
        .impls = &ctx->impls,
        .limits = &s->limits,
        .device_type = key->tensor,
        .store_devices = caps->device_types,
        .n_store_devices = caps->device_types ? caps->n_device_types : 0,
        .preference = key->preference ? key->preference : ctx->codec_preference,
        .log = &ctx->log,
        .trust = key->trust,
        .trust_told = &a->h.ctx->trust_told,
    };

    if (key->lent != 0) {
        args.store_devices = &key->lent;
        args.n_store_devices = 1;
    } else if (!args.store_devices && key->tensor != ZARR_DEVICE_CPU &&
               zr_store_device_direct(a->chunk_store, key->tensor)) {
        args.store_devices = &key->tensor;
        args.n_store_devices = 1;
    }
    return zr_layout_make(out, &args, ctx->alloc, err);
}

uint32_t zr_array_trust(const zarr_array *a, uint32_t trust)
{
    return trust ? trust : a->trust ? a->trust : a->h.ctx->trust;
}

zarr_status zr_array_layout(const struct zr_layout **out, const zarr_array *a,
                            struct zr_array_state *s, const struct zr_layout_key *wanted,
                            zarr_error *err)
{
    const struct zr_layout_key own = {wanted->tensor, wanted->lent,
                                      wanted->preference ? wanted->preference
                                                         : a->codec_preference,
                                      zr_array_trust(a, wanted->trust)};
    const struct zr_layout_key *key = &own;
    struct zr_layout_slot *head = atomic_load_explicit(&s->layouts, memory_order_acquire);
    struct zr_layout_slot *slot = NULL;
    zarr_status st = ZARR_OK;

    *out = layout_find(head, key);
    if (*out)
        return ZARR_OK;
    slot = zr_calloc(s->alloc, 1, sizeof *slot);
    if (!slot)
        ZR_FAIL_MEMORY(err, sizeof *slot);
    slot->tensor = key->tensor;
    slot->lent = key->lent;
    slot->trust = key->trust;
    slot->preference = key->preference ? zr_strdup(s->alloc, key->preference) : NULL;
    if (key->preference && !slot->preference)
        ZR_FAIL_MEMORY(err, strlen(key->preference));
    if (key->preference)
        ZR_TRY(zr_ctx_preference(a->h.ctx, key->preference, err));
    ZR_TRY(layout_make(&slot->layout, a, s, key, err));
    do { /* slots are only added, in front */
        *out = layout_find(head, key);
        slot->next = head;
    } while (!*out && !atomic_compare_exchange_weak_explicit(&s->layouts, &head, slot,
                                                             memory_order_acq_rel,
                                                             memory_order_acquire));
    if (!*out) {
        *out = slot->layout;
        slot = NULL; /* moved */
    }
out:
    if (slot) {
        zr_layout_free(slot->layout);
        zr_free(s->alloc, slot->preference);
    }
    zr_free(s->alloc, slot);
    return st;
}

/* ---- the handle's pointer to it ----------------------------------------- */

struct zr_array_state *zr_array_state_get(const zarr_array *array)
{
    zarr_array *a = (zarr_array *)(uintptr_t)array; /* only the lock is written */
    struct zr_array_state *s;

    zr_mutex_lock(&a->h.mutex);
    s = a->state;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    zr_mutex_unlock(&a->h.mutex);
    return s;
}

bool zr_array_state_exchange(zarr_array *array, const struct zr_array_state *before,
                             struct zr_array_state *s)
{
    struct zr_array_state *old;

    zr_mutex_lock(&array->h.mutex);
    old = array->state;
    if (before && old != before) {
        zr_mutex_unlock(&array->h.mutex);
        return false;
    }
    if (old && old->facts->lent) { /* callers may still look at them */
        old->facts->link.next = array->h.borrowed;
        array->h.borrowed = &old->facts->link;
        old->facts = NULL;
    }
    array->state = s;
    zr_mutex_unlock(&array->h.mutex);
    zr_array_state_free(old);
    return true;
}

/* v2: makes a state from .zarray of one state and .zattrs of another. */
static zarr_status state_of_two(struct zr_array_state **out, const zarr_array *a,
                                const struct zr_array_state *array,
                                const struct zr_array_state *attrs, zarr_error *err)
{
    struct zr_array_source src = {.format = 2,
                                  .parsed = array->parsed,
                                  .root = array->root,
                                  .nczarr = array->meta.nczarr};
    zarr_status st = ZARR_OK;

    zr_array_source_attrs(&src, attrs);
    ZR_TRY(zr_array_state_new(out, a->h.ctx, &src, err));
    ZR_TRY(zr_separator_inherit(a, array, *out, err));
out:
    if (st != ZARR_OK) {
        zr_array_state_free(*out);
        *out = NULL;
    }
    return st;
}

zarr_status zr_array_state_commit(zarr_array *array, struct zr_array_state *before,
                                  struct zr_array_state *s, enum zr_state_part part,
                                  zarr_error *err)
{
    struct zr_array_state *now = zr_array_state_ref(before), *next = NULL;
    zarr_status st = ZARR_OK;

    /* one document under one lock: the state written last is current */
    next = zr_array_state_ref(s);
    while (!zr_array_state_exchange(array, s->meta.format == 3 ? NULL : now, next)) {
        zr_array_state_free(next);
        zr_array_state_free(now);
        next = NULL;
        now = zr_array_state_get(array);
        ZR_TRY(state_of_two(&next, array, part == ZR_STATE_ARRAY ? s : now,
                            part == ZR_STATE_ATTRS ? s : now, err));
    }
    next = NULL; /* moved */
out:
    if (st != ZARR_OK)
        zr_prefix(err, st, "it is written, but this handle must be refreshed");
    zr_array_state_free(next);
    zr_array_state_free(now);
    return st;
}
