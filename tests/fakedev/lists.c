/*
 * tests/fakedev/lists.c - the entries of the fake device that take lists. A list has one
 * kind of memory on each side, and nothing in it is empty. Its items may be done in any
 * order, and are done backward.
 */
#include "fakedev_int.h"

static void count_list(struct fakedev *dev, uint64_t n)
{
    pthread_mutex_lock(&dev->mutex);
    dev->late.lists++;
    dev->late.list_items += n;
    pthread_mutex_unlock(&dev->mutex);
}

/* The library promises that a list has one kind of memory on each side. */
static bool same_kind(const zarr_memory *a, const zarr_memory *b)
{
    return a->device_type == b->device_type && a->device_id == b->device_id;
}

zarr_status fake_copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                           uint64_t n, void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_LIST, err);

    for (uint64_t i = n; i-- > 0 && st == ZARR_OK;) {
        if (!same_kind(&dst[i], &dst[0]) || !same_kind(&src[i], &src[0]) ||
            dst[i].bytes != src[i].bytes || dst[i].bytes == 0)
            st = fake_fault(dev, err, "list with mixed memories or lengths");
        else if (stream)
            st = fake_late_copy(dev, stream, &dst[i], &src[i], dst[i].bytes, err);
        else
            st = fake_do_copy(dev, &dst[i], &src[i], dst[i].bytes, true, err);
    }
    if (st == ZARR_OK)
        count_list(dev, n);
    return st;
}

zarr_status fake_copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                            zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_BOXES, err);

    for (uint64_t i = n; i-- > 0 && st == ZARR_OK;) {
        if (!same_kind(&boxes[i].dst.mem, &boxes[0].dst.mem) ||
            !same_kind(&boxes[i].src.mem, &boxes[0].src.mem) ||
            fake_box_items(&boxes[i]) == 0)
            st = fake_fault(dev, err, "list with mixed memories or empty boxes");
        else
            st = stream ? fake_late_box(dev, stream, &boxes[i], err)
                        : fake_do_box(dev, &boxes[i], true, err);
    }
    if (st == ZARR_OK)
        count_list(dev, n);
    return st;
}

zarr_status fake_fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                            const void *pattern, void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_FILLS, err);

    for (uint64_t i = n; i-- > 0 && st == ZARR_OK;) {
        if (!same_kind(&boxes[i].dst.mem, &boxes[0].dst.mem) ||
            boxes[i].item_bytes != boxes[0].item_bytes || fake_box_items(&boxes[i]) == 0)
            st = fake_fault(dev, err, "list with mixed memories, items or empty boxes");
        else
            st = stream ? fake_late_fill(dev, stream, &boxes[i], pattern, err)
                        : fake_do_fill(dev, &boxes[i], pattern, true, err);
    }
    if (st == ZARR_OK)
        count_list(dev, n);
    return st;
}

/* NOLINT(function-size): an entry of the table of a memory backend */
zarr_status fake_equal_list(void *self, const zarr_memory *src, uint64_t n,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_EQUAL, err);

    for (uint64_t i = n; i-- > 0 && st == ZARR_OK;) {
        if (!same_kind(&src[i], &src[0]) || src[i].bytes == 0)
            st = fake_fault(dev, err, "list with mixed memories or empty runs");
        else
            st = fake_late_equal(dev, stream, &src[i], pattern, item_bytes, &equal[i],
                                 err);
    }
    if (st == ZARR_OK) {
        count_list(dev, n);
        pthread_mutex_lock(&dev->mutex);
        dev->late.equals += n;
        pthread_mutex_unlock(&dev->mutex);
    }
    return st;
}
