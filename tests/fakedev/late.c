/*
 * tests/fakedev/late.c - streams of the fake device. A stream is a list of work. Nothing
 * of it is done before the stream is waited for, or before a stream that is ordered after
 * it. A stream that is closed lives on until that work is done. When work is queued, the
 * bytes of a host source are noted; when it is done, they must be the same. One lock
 * covers all streams.
 */
#include "fakedev_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOT_YET = 0xEE
};

enum late_kind {
    LATE_COPY,
    LATE_BOX,
    LATE_FILL,
    LATE_EQUAL,
    LATE_ORDER
};

struct stream;

struct work {
    struct work *next;
    enum late_kind kind;
    uint64_t number; /* in its stream */
    zarr_memory dst, src;
    zarr_box *box;
    uint8_t *pattern;
    uint32_t item_bytes;
    uint8_t *equal;
    uint8_t *noted; /* the elements of a host source, packed */
    struct stream *foreign;
    uint64_t until; /* work of `foreign` up to this number comes first */
};

struct stream {
    struct stream *next;
    struct fakedev *dev;
    int32_t device_id;
    uint64_t n; /* work ever queued */
    struct work *first, **last;
    uint32_t orders; /* in other streams, after work of this one */
    bool closed;
};

static struct {
    pthread_mutex_t mutex;
    struct stream *streams;
} late = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t box_bytes(const zarr_box *box)
{
    return fake_box_items(box) * box->item_bytes;
}

/* A copy of a box whose destination is packed bytes, without a swap. */
static void pack_box(const zarr_box *box, uint8_t *to)
{
    zarr_box packed = *box;
    int64_t line = box->item_bytes;

    packed.swap_bytes = 0;
    for (int32_t k = box->ndim - 1; k >= 0; k--) {
        packed.dst.stride[k] = line;
        line *= (int64_t)box->shape[k];
    }
    fake_box_move(&packed, to, (const uint8_t *)box->src.mem.handle + box->src.mem.offset,
                  NULL);
}

/* ---- queueing ------------------------------------------------------------------ */

/* Frees a stream that is closed and that no work comes after; the lock is held. */
static void stream_drop(struct stream *s)
{
    struct stream **at = &late.streams;

    if (!s->closed || s->orders > 0)
        return;
    while (*at && *at != s)
        at = &(*at)->next;
    if (!*at || s->first) {
        (void)fprintf(stderr, "fake device: a stream was closed twice, or with work\n");
        abort();
    }
    *at = s->next;
    free(s);
}

static void work_free(struct work *w)
{
    if (!w)
        return;
    if (w->foreign) {
        w->foreign->orders--;
        stream_drop(w->foreign);
    }
    free(w->box);
    free(w->pattern);
    free(w->noted);
    free(w);
}

static struct work *work_make(enum late_kind kind, const zarr_box *box,
                              const void *pattern, uint32_t item_bytes)
{
    struct work *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->kind = kind;
    w->item_bytes = item_bytes;
    if (box) {
        w->box = malloc(sizeof *box);
        if (w->box)
            *w->box = *box;
    }
    if (pattern) {
        w->pattern = malloc(item_bytes);
        if (w->pattern)
            memcpy(w->pattern, pattern, item_bytes);
    }
    if ((box && !w->box) || (pattern && !w->pattern)) {
        work_free(w);
        return NULL;
    }
    return w;
}

/* Queues work, whose ownership moves. */
static zarr_status work_queue(struct stream *s, struct work *w)
{
    pthread_mutex_lock(&late.mutex);
    w->number = ++s->n;
    *s->last = w;
    s->last = &w->next;
    pthread_mutex_unlock(&late.mutex);
    pthread_mutex_lock(&s->dev->mutex);
    s->dev->late.queued++;
    pthread_mutex_unlock(&s->dev->mutex);
    return ZARR_OK;
}

zarr_status fake_late_copy(struct fakedev *dev, void *stream, const zarr_memory *dst,
                           const zarr_memory *src, uint64_t bytes, zarr_error *err)
{
    zarr_status st = fake_do_copy(dev, dst, src, bytes, false, err);
    struct work *w = NULL;

    if (st != ZARR_OK)
        return st;
    w = work_make(LATE_COPY, NULL, NULL, 0);
    if (!w)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    w->dst = *dst;
    w->src = *src;
    w->dst.bytes = w->src.bytes = bytes;
    if (src->device_type != dev->device_type) {
        w->noted = malloc(bytes ? bytes : 1);
        if (w->noted)
            memcpy(w->noted, (const uint8_t *)src->handle + src->offset, bytes);
    } else if (dst->device_type != dev->device_type) {
        memset((uint8_t *)dst->handle + dst->offset, NOT_YET, bytes);
    }
    return work_queue(stream, w);
}

zarr_status fake_late_box(struct fakedev *dev, void *stream, const zarr_box *box,
                          zarr_error *err)
{
    zarr_status st = fake_do_box(dev, box, false, err);
    struct work *w = NULL;

    if (st != ZARR_OK)
        return st;
    w = work_make(LATE_BOX, box, NULL, 0);
    if (!w)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    w->dst = box->dst.mem;
    w->src = box->src.mem;
    if (box->src.mem.device_type != dev->device_type) {
        w->noted = malloc(box_bytes(box));
        if (w->noted)
            pack_box(box, w->noted);
    } else if (box->dst.mem.device_type != dev->device_type) {
        uint8_t *none = malloc(box->item_bytes);

        if (none) {
            memset(none, NOT_YET, box->item_bytes);
            fake_box_move(box, (uint8_t *)box->dst.mem.handle + box->dst.mem.offset, NULL,
                          none);
        }
        free(none);
    }
    return work_queue(stream, w);
}

zarr_status fake_late_fill(struct fakedev *dev, void *stream, const zarr_box *box,
                           const void *pattern, zarr_error *err)
{
    zarr_status st = fake_do_fill(dev, box, pattern, false, err);
    struct work *w = NULL;

    if (st != ZARR_OK)
        return st;
    w = work_make(LATE_FILL, box, pattern, box->item_bytes);
    if (!w)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    w->dst = box->dst.mem;
    return work_queue(stream, w);
}

/* ---- doing it ------------------------------------------------------------------ */

static zarr_status do_equal(struct fakedev *dev, const zarr_memory *src,
                            const uint8_t *pattern, uint32_t item_bytes, uint8_t *equal,
                            zarr_error *err)
{
    struct side s;
    zarr_status st = fake_side(dev, src, 0, (int64_t)src->bytes, &s, err);

    if (st != ZARR_OK)
        return st;
    if (!s.device || item_bytes == 0 || src->bytes % item_bytes)
        return fake_fault(dev, err, "comparison of host memory or of a part of an item");
    *equal = 1;
    for (uint64_t i = 0; i < src->bytes; i++)
        if (s.p[i] != pattern[i % item_bytes])
            *equal = 0;
    return ZARR_OK;
}

static zarr_status check_noted(struct fakedev *dev, const struct work *w, zarr_error *err)
{
    const uint64_t bytes = w->kind == LATE_BOX ? box_bytes(w->box) : w->src.bytes;
    uint8_t *now = NULL;
    bool same = true;

    if (!w->noted)
        return ZARR_OK;
    if (w->kind == LATE_BOX) {
        now = malloc(bytes);
        if (now)
            pack_box(w->box, now);
    }
    same = memcmp(w->noted, now ? now : (const uint8_t *)w->src.handle + w->src.offset,
                  bytes) == 0;
    free(now);
    return same ? ZARR_OK
                : fake_fault(dev, err, "a source was changed before the stream was done");
}

static zarr_status stream_run(struct stream *s, uint64_t until, zarr_error *err);

static zarr_status work_do(struct fakedev *dev, const struct work *w, zarr_error *err)
{
    const zarr_status st = check_noted(dev, w, err);

    if (st != ZARR_OK)
        return st;
    switch (w->kind) {
    case LATE_COPY:
        return fake_do_copy(dev, &w->dst, &w->src, w->src.bytes, true, err);
    case LATE_BOX:
        return fake_do_box(dev, w->box, true, err);
    case LATE_FILL:
        return fake_do_fill(dev, w->box, w->pattern, true, err);
    case LATE_EQUAL:
        return do_equal(dev, &w->src, w->pattern, w->item_bytes, w->equal, err);
    case LATE_ORDER:
        break;
    }
    return stream_run(w->foreign, w->until, err);
}

/* Does the work of a stream up to a number; the lock is held. The first failure comes
 * back, the rest is done all the same. */
static zarr_status stream_run(struct stream *s, uint64_t until, zarr_error *err)
{
    zarr_status first = ZARR_OK;

    while (s->first && s->first->number <= until) {
        struct work *w = s->first;
        const zarr_status st = work_do(s->dev, w, first == ZARR_OK ? err : NULL);

        first = first == ZARR_OK ? st : first;
        s->first = w->next;
        if (!s->first)
            s->last = &s->first;
        work_free(w);
    }
    return first;
}

zarr_status fake_sync(void *self, void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    struct stream *s = stream;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_SYNC, err), done = ZARR_OK;

    pthread_mutex_lock(&dev->mutex);
    dev->late.syncs++;
    pthread_mutex_unlock(&dev->mutex);
    if (!s)
        return st;
    pthread_mutex_lock(&late.mutex);
    done = stream_run(s, UINT64_MAX, st == ZARR_OK ? err : NULL);
    pthread_mutex_unlock(&late.mutex);
    return st == ZARR_OK ? done : st;
}

static bool inside(const zarr_memory *m, const struct block *b)
{
    const uint8_t *p = m->handle;

    return p && p >= b->handle_map && p < b->handle_map + b->map_bytes;
}

bool fake_late_uses(const struct block *b)
{
    bool used = false;

    pthread_mutex_lock(&late.mutex);
    for (const struct stream *s = late.streams; s; s = s->next)
        for (const struct work *w = s->first; w; w = w->next)
            used = used || inside(&w->dst, b) || inside(&w->src, b);
    pthread_mutex_unlock(&late.mutex);
    return used;
}

zarr_status fake_late_equal(struct fakedev *dev, void *stream, const zarr_memory *src,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            zarr_error *err)
{
    struct work *w = NULL;

    if (!stream)
        return do_equal(dev, src, pattern, item_bytes, equal, err);
    w = work_make(LATE_EQUAL, NULL, pattern, item_bytes);
    if (!w)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    w->src = *src;
    w->equal = equal;
    *equal = NOT_YET;
    return work_queue(stream, w);
}

/* ---- streams ------------------------------------------------------------------- */

zarr_status fake_stream_open(void *self, int32_t device_id, void **stream,
                             zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_STREAM, err);
    struct stream *s = st == ZARR_OK ? calloc(1, sizeof *s) : NULL;

    if (!s)
        return st != ZARR_OK ? st : fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    s->dev = dev;
    s->device_id = device_id;
    s->last = &s->first;
    pthread_mutex_lock(&late.mutex);
    s->next = late.streams;
    late.streams = s;
    pthread_mutex_unlock(&late.mutex);
    pthread_mutex_lock(&dev->mutex);
    dev->late.streams++;
    dev->late.streams_opened++;
    pthread_mutex_unlock(&dev->mutex);
    *stream = s;
    return ZARR_OK;
}

void fake_stream_close(void *self, void *stream)
{
    struct fakedev *dev = self;
    struct stream *s = stream;

    pthread_mutex_lock(&late.mutex);
    if (s->closed) {
        (void)fprintf(stderr, "fake device: a stream was closed twice\n");
        abort();
    }
    s->closed = true;
    stream_drop(s);
    pthread_mutex_unlock(&late.mutex);
    pthread_mutex_lock(&dev->mutex);
    dev->late.streams--;
    pthread_mutex_unlock(&dev->mutex);
}

zarr_status fake_order(void *self, void *stream, void *foreign, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_ORDER, err);
    struct work *w = st == ZARR_OK ? work_make(LATE_ORDER, NULL, NULL, 0) : NULL;

    if (!w)
        return st != ZARR_OK ? st : fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_lock(&late.mutex);
    w->foreign = foreign;
    w->foreign->orders++;
    w->until = w->foreign->n;
    pthread_mutex_unlock(&late.mutex);
    pthread_mutex_lock(&dev->mutex);
    dev->late.orders++;
    pthread_mutex_unlock(&dev->mutex);
    return work_queue(stream, w);
}
