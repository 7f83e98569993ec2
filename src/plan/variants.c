/*
 * plan/variants.c - the outermost levels of a layout whose chunks differ in shape: one
 * for each shape that requests met recently. Levels are made outside the lock, found by a
 * hash of the shape, and counted while a request uses them. When there are too many, the
 * least recently used one is dropped. Each level, and each chain nested in its
 * codecs, keeps a fill value, so fewer levels are kept if elements are large.
 * Thread class: shared.
 */
#include "plan/plan_int.h"

#include <string.h>

enum {
    VARIANTS_MOST = 64,
    VARIANTS_LEAST = 2,
    VARIANTS_ITEMS = 1 << 20 /* bytes of one element, over all variants */
};

struct zr_variant {
    struct zr_level level;
    atomic_uint refs;
    const zarr_allocator *alloc;
};

struct zr_variants {
    struct zr_layout_args args;
    uint32_t most;
    int32_t *store_devices; /* owned */
    char *preference;
    const zarr_allocator *alloc;
    struct zr_fork_hook fork;
    struct {
        zr_mutex mutex;
        uint32_t n;
        uint64_t clock;
        struct {
            uint64_t hash, used;
            struct zr_variant *variant; /* counted */
        } slot[VARIANTS_MOST];
    } locked;
};

void zr_variant_unref(struct zr_variant *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_level_deinit(&v->level, v->alloc);
    zr_free(v->alloc, v);
}

static uint32_t variants_most(uint64_t item_bytes)
{
    const uint64_t n = VARIANTS_ITEMS / ZR_MAX(item_bytes, UINT64_C(1));

    return (uint32_t)ZR_MIN(ZR_MAX(n, (uint64_t)VARIANTS_LEAST), (uint64_t)VARIANTS_MOST);
}

zarr_status zr_variants_make(struct zr_variants **out, const struct zr_layout_args *args,
                             const zarr_allocator *alloc, zarr_error *err)
{
    size_t bytes = args->n_store_devices * sizeof *args->store_devices;
    struct zr_variants *v = zr_calloc(alloc, 1, sizeof *v);
    zarr_status st = ZARR_OK;

    if (!v)
        return zr_fail_memory(err, sizeof *v);
    v->args = *args;
    v->most = variants_most(zarr_dtype_item_bytes(args->dtype));
    v->alloc = alloc;
    zr_mutex_init(&v->locked.mutex);
    v->fork.mutex = &v->locked.mutex;
    zr_fork_hook_add(&v->fork);
    v->args.log = NULL; /* level 0 warned */
    if (args->preference) {
        v->args.preference = v->preference = zr_strdup(alloc, args->preference);
        if (!v->preference)
            ZR_FAIL_MEMORY(err, strlen(args->preference));
    }
    if (bytes > 0) {
        v->args.store_devices = v->store_devices = zr_malloc(alloc, bytes);
        if (!v->store_devices)
            ZR_FAIL_MEMORY(err, bytes);
        memcpy(v->store_devices, args->store_devices, bytes);
    }
    *out = v;
    v = NULL;
out:
    zr_variants_free(v);
    return st;
}

void zr_variants_free(struct zr_variants *v)
{
    if (!v)
        return;
    for (uint32_t i = 0; i < v->locked.n; i++)
        zr_variant_unref(v->locked.slot[i].variant);
    zr_fork_hook_remove(&v->fork);
    zr_mutex_deinit(&v->locked.mutex);
    zr_free(v->alloc, v->preference);
    zr_free(v->alloc, v->store_devices);
    zr_free(v->alloc, v);
}

static uint64_t shape_hash(const uint64_t *shape, int32_t ndim)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (int32_t d = 0; d < ndim; d++) {
        h = (h ^ shape[d]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool same_shape(const struct zr_level *lv, const uint64_t *shape)
{
    return memcmp(lv->shape, shape, (size_t)lv->ndim * sizeof *shape) == 0;
}

/* Returns a counted variant, or NULL. */
static struct zr_variant *find_locked(struct zr_variants *v, const uint64_t *shape,
                                      uint64_t hash)
{
    for (uint32_t i = 0; i < v->locked.n; i++) {
        struct zr_variant *there = v->locked.slot[i].variant;

        if (v->locked.slot[i].hash != hash || !same_shape(&there->level, shape))
            continue;
        v->locked.slot[i].used = ++v->locked.clock;
        atomic_fetch_add_explicit(&there->refs, 1, memory_order_relaxed);
        return there;
    }
    return NULL;
}

/* Puts a variant in a slot and counts it once more. Returns the variant that it
 * displaced, which the caller must release, or NULL. */
static struct zr_variant *put_locked(struct zr_variants *v, struct zr_variant *made,
                                     uint64_t hash)
{
    uint32_t at = v->locked.n;
    struct zr_variant *gone = NULL;

    if (at < v->most) {
        v->locked.n++;
    } else {
        at = 0;
        for (uint32_t i = 1; i < v->most; i++)
            if (v->locked.slot[i].used < v->locked.slot[at].used)
                at = i;
        gone = v->locked.slot[at].variant;
    }
    atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
    v->locked.slot[at].variant = made;
    v->locked.slot[at].hash = hash;
    v->locked.slot[at].used = ++v->locked.clock;
    return gone;
}

static zarr_status variant_make(struct zr_variant **out, const struct zr_layout *l,
                                const uint64_t *shape, zarr_error *err)
{
    struct zr_variant *made = zr_calloc(l->alloc, 1, sizeof *made);
    zarr_status st = ZARR_OK;

    if (!made)
        return zr_fail_memory(err, sizeof *made);
    atomic_init(&made->refs, 1);
    made->alloc = l->alloc;
    made->level.variant = made;
    ZR_TRY(zr_level_outer_make(l, &l->variants->args, shape, &made->level, err));
    *out = made;
    made = NULL;
out:
    zr_variant_unref(made);
    return st;
}

zarr_status zr_variants_find(const struct zr_layout *l, const uint64_t *shape,
                             const struct zr_level **out, zarr_error *err)
{
    struct zr_variants *v = l->variants;
    struct zr_variant *there = NULL, *made = NULL, *gone = NULL;
    const uint64_t hash = shape_hash(shape, l->grid->ndim);
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&v->locked.mutex);
    there = find_locked(v, shape, hash);
    zr_mutex_unlock(&v->locked.mutex);
    if (!there) {
        ZR_TRY(variant_make(&made, l, shape, err));
        zr_mutex_lock(&v->locked.mutex);
        there = find_locked(v, shape, hash); /* another thread may have been faster */
        if (!there) {
            gone = put_locked(v, made, hash);
            there = made;
            made = NULL;
        }
        zr_mutex_unlock(&v->locked.mutex);
    }
    *out = &there->level;
out:
    zr_variant_unref(made);
    zr_variant_unref(gone);
    return st;
}
