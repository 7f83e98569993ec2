/*
 * tests/fakedev/fakedev_int.h - what the files of the fake device share: its blocks, and
 * the work that is done at once (fakedev.c) or at the next wait (late.c).
 * Lists are in lists.c, pinned memory and budgets in memory_facts.c.
 */
#ifndef ZARR_FAKEDEV_INT_H
#define ZARR_FAKEDEV_INT_H

#include "fakedev.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    ALIGN_BYTES = 64,
    GUARD_BYTE = 0xA5
};

struct fakedev {
    pthread_mutex_t mutex;
    int32_t device_type;
    zarr_fakedev_counters count;
    uint32_t fail_calls;
    uint64_t fail_in;
    zarr_status fail_status;
    uint32_t declined;          /* calls that answer UNSUPPORTED */
    uint64_t most, pinned_most; /* bytes; 0: no budget */
    zarr_fakedev_late_counters late;
};

struct block {
    struct block *next;
    const struct fakedev *owner;
    uint8_t *handle, *real; /* first byte in either mapping */
    uint8_t *handle_map, *real_map;
    uint64_t bytes, map_bytes, guard_bytes; /* guard bytes: in front of the memory, and
                                               behind it in the last page */
    uint64_t lead; /* position of the first byte in its mapping */
    int32_t device_id;
    bool pinned; /* host memory: both mappings are accessible */
};

/* The live blocks of all devices. */
extern struct fake_all {
    pthread_mutex_t mutex;
    struct block *blocks;
} fake_all;

/* One side of a copy as the device sees it. */
struct side {
    uint8_t *p; /* address of handle + offset, accessible */
    bool device;
};

zarr_status fake_fail(zarr_error *err, zarr_status status, const char *text);
/* Records that a rule was broken. */
zarr_status fake_fault(struct fakedev *dev, zarr_error *err, const char *text);
/* Fails if this call is the one that must fail, or if its kind is declined. */
zarr_status fake_inject(struct fakedev *dev, uint32_t call, zarr_error *err);

/* The live block that contains the address. */
struct block *fake_block_locked(const void *address);
/* Makes a block with pages of its own and lists it. NULL: memory is short. */
struct block *fake_block_new(struct fakedev *dev, int32_t device_id, uint64_t bytes,
                             bool pinned);
/* Takes a block out of the list and unmaps it; aborts if that breaks a rule. */
struct block *fake_block_take(struct fakedev *dev, const void *handle, bool pinned);
bool fake_within(struct fakedev *dev, uint64_t bytes, bool pinned);
zarr_status fake_side(struct fakedev *dev, const zarr_memory *m, int64_t low,
                      int64_t high, struct side *out, zarr_error *err);

/* Check the arguments, and do the work if `move`. */
zarr_status fake_do_copy(struct fakedev *dev, const zarr_memory *dst,
                         const zarr_memory *src, uint64_t bytes, bool move,
                         zarr_error *err);
zarr_status fake_do_box(struct fakedev *dev, const zarr_box *box, bool move,
                        zarr_error *err);
zarr_status fake_do_fill(struct fakedev *dev, const zarr_box *box, const void *pattern,
                         bool move, zarr_error *err);
uint64_t fake_box_items(const zarr_box *box);
void fake_box_move(const zarr_box *box, uint8_t *dst, const uint8_t *src,
                   const uint8_t *pattern);

/* ---- late.c: work on a stream ---- */

zarr_status fake_late_copy(struct fakedev *dev, void *stream, const zarr_memory *dst,
                           const zarr_memory *src, uint64_t bytes, zarr_error *err);
zarr_status fake_late_box(struct fakedev *dev, void *stream, const zarr_box *box,
                          zarr_error *err);
zarr_status fake_late_fill(struct fakedev *dev, void *stream, const zarr_box *box,
                           const void *pattern, zarr_error *err);
/* Compares a run; stream NULL: at once. */
zarr_status fake_late_equal(struct fakedev *dev, void *stream, const zarr_memory *src,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            zarr_error *err);
/* Whether queued work uses a block. */
bool fake_late_uses(const struct block *b);

zarr_status fake_copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                           uint64_t n, void *stream, zarr_error *err);
zarr_status fake_copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                            zarr_error *err);
zarr_status fake_fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                            const void *pattern, void *stream, zarr_error *err);
/* NOLINT(function-size): an entry of the table of a memory backend */
zarr_status fake_equal_list(void *self, const zarr_memory *src, uint64_t n,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            void *stream, zarr_error *err);
zarr_status fake_stream_open(void *self, int32_t device_id, void **stream,
                             zarr_error *err);
void fake_stream_close(void *self, void *stream);
zarr_status fake_sync(void *self, void *stream, zarr_error *err);
zarr_status fake_order(void *self, void *stream, void *foreign, zarr_error *err);
zarr_status fake_host_alloc(void *self, int32_t device_id, uint64_t bytes,
                            zarr_memory *out, zarr_error *err);
void fake_host_free(void *self, zarr_memory *mem);
int fake_classify(void *self, const void *pointer, int32_t *device_type,
                  int32_t *device_id);
zarr_status fake_limit(void *self, int32_t device_id, uint64_t *bytes, zarr_error *err);

#endif
