/*
 * zip/values.c - the last decoded members. A compressed member has no ranges, but the
 * chunks of a shard are read by ranges: without this, each of them would decode the whole
 * shard.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#define VALUES_MOST (UINT64_C(256) << 20)

/* What threads of the parent were making stays unmade. */
static void values_in_child(void *arg)
{
    struct zr_zip_values *v = arg;

    zr_cond_init(&v->locked.done);
    for (size_t i = 0; i < ZR_ZIP_VALUES; i++)
        if (!v->locked.slot[i].value)
            v->locked.slot[i].is_used = false;
}

void zr_zip_values_init(struct zr_zip_values *v, const zarr_allocator *alloc)
{
    *v = (struct zr_zip_values){.alloc = alloc};
    zr_mutex_init(&v->locked.mutex);
    zr_cond_init(&v->locked.done);
    v->fork = (struct zr_fork_hook){
        .mutex = &v->locked.mutex, .child = values_in_child, .arg = v};
    zr_fork_hook_add(&v->fork);
}

void zr_zip_values_deinit(struct zr_zip_values *v)
{
    zr_fork_hook_remove(&v->fork);
    for (size_t i = 0; i < ZR_ZIP_VALUES; i++)
        zr_zip_value_free(v->alloc, v->locked.slot[i].value);
    zr_cond_deinit(&v->locked.done);
    zr_mutex_deinit(&v->locked.mutex);
}

void zr_zip_value_free(const zarr_allocator *alloc, struct zr_zip_value *value)
{
    if (value && atomic_fetch_sub(&value->refs, 1) == 1)
        zr_free(alloc, value);
}

static struct zr_zip_slot *find_member_locked(struct zr_zip_values *v,
                                              const struct zr_zip_view *view)
{
    for (size_t i = 0; i < ZR_ZIP_VALUES; i++) {
        struct zr_zip_slot *s = &v->locked.slot[i];

        if (s->is_used && s->epoch == view->epoch && s->header_at == view->m.header_at)
            return s;
    }
    return NULL;
}

/* The slot whose value was not used for the longest time; NULL: all are being made. A
 * free slot comes first, if `or_free`. */
static struct zr_zip_slot *find_oldest_locked(struct zr_zip_values *v, bool or_free)
{
    struct zr_zip_slot *oldest = NULL;

    for (size_t i = 0; i < ZR_ZIP_VALUES; i++) {
        struct zr_zip_slot *s = &v->locked.slot[i];

        if (or_free && !s->is_used)
            return s;
        if (s->value && (!oldest || s->used < oldest->used))
            oldest = s;
    }
    return oldest;
}

static void drop_locked(struct zr_zip_values *v, struct zr_zip_slot *s)
{
    if (s->value)
        v->locked.bytes -= s->value->bytes;
    zr_zip_value_free(v->alloc, s->value);
    *s = (struct zr_zip_slot){.is_used = false};
}

struct zr_zip_value *zr_zip_values_get(struct zr_zip_values *v,
                                       const struct zr_zip_view *view)
{
    struct zr_zip_value *value = NULL;
    struct zr_zip_slot *s;

    zr_mutex_lock(&v->locked.mutex);
    while ((s = find_member_locked(v, view)) && !s->value)
        zr_cond_wait(&v->locked.done, &v->locked.mutex);
    if (s) {
        value = s->value;
        atomic_fetch_add(&value->refs, 1);
        s->used = ++v->locked.clock;
    } else if ((s = find_oldest_locked(v, true))) {
        drop_locked(v, s);
        s->is_used = true;
        s->epoch = view->epoch;
        s->header_at = view->m.header_at;
    } /* else nothing is kept of it */
    zr_mutex_unlock(&v->locked.mutex);
    return value;
}

void zr_zip_values_put(struct zr_zip_values *v, const struct zr_zip_view *view,
                       struct zr_zip_value *value)
{
    struct zr_zip_slot *s, *oldest;

    zr_mutex_lock(&v->locked.mutex);
    s = find_member_locked(v, view);
    if (s && value && !s->value) {
        while (v->locked.bytes + value->bytes > VALUES_MOST &&
               (oldest = find_oldest_locked(v, false)))
            drop_locked(v, oldest);
        atomic_fetch_add(&value->refs, 1);
        s->value = value;
        s->used = ++v->locked.clock;
        v->locked.bytes += value->bytes;
    } else if (s && !s->value) {
        s->is_used = false;
    }
    zr_cond_broadcast(&v->locked.done);
    zr_mutex_unlock(&v->locked.mutex);
}
