/*
 * mem/mem.h - the door to memory of any kind: backends, checked views of the caller's
 * tensors, strided copies and fills between any two memories, pooled buffers, and the
 * only place where a handle becomes a host pointer. It knows nothing of Zarr: of an
 * element it knows only item_bytes.
 * Thread class: registry sealed; pools shared; views are values.
 */
#ifndef ZR_MEM_H
#define ZR_MEM_H

#include "base/base.h"
#include <zarrc/memory.h>
#include <zarrc/plugin/memory.h>

/* ---- backends ----------------------------------------------------------- */

struct zr_backend {
    struct zr_registered entry;
    zarr_memory_vtable vt;
    void *self;
};
struct zr_memory_registry {
    struct zr_registry kinds; /* struct zr_backend */
    /* By DLPack number: the backend that copies this kind, [ZARR_DEVICE_CPU] is the host;
     * and the chosen one that allocates it, or NULL. */
    struct zr_backend *by_type[32];
    const struct zr_backend *allocator[32];
    const char *wanted; /* names of allocators to choose, by ';'; borrowed; or NULL */
    const zarr_allocator *alloc;
};
/* Registers the host backend, whose memory comes from alloc. */
zarr_status zr_memory_registry_init(struct zr_memory_registry *r,
                                    const zarr_allocator *alloc, zarr_error *err);
void zr_memory_registry_deinit(struct zr_memory_registry *r);
zarr_status zr_memory_register(struct zr_memory_registry *r, const zarr_memory_vtable *v,
                               void *self, const char *origin, zarr_error *err);
/* UNSUPPORTED names the device type. */
zarr_status zr_backend_find(const struct zr_memory_registry *r, int32_t device_type,
                            const struct zr_backend **out, zarr_error *err);
/* Returns the backend that allocates and frees memory of the kind of `be`. */
const struct zr_backend *zr_backend_allocator(const struct zr_memory_registry *r,
                                              const struct zr_backend *be);
/* Returns any backend by the `bytes` bytes of its name, allocators included; or NULL. */
const struct zr_backend *zr_backend_find_by_name(const struct zr_memory_registry *r,
                                                 const char *name, size_t bytes);
/* Chooses allocators among those that are registered later; `names` is borrowed. */
void zr_memory_choose(struct zr_memory_registry *r, const char *names);
/* Calls fn for each name that was to be chosen and is not registered. */
void zr_memory_each_missing(const struct zr_memory_registry *r,
                            void (*fn)(void *user, const char *name, size_t bytes),
                            void *user);
bool zr_device_is_host(const struct zr_memory_registry *r,
                       int32_t device_type); /* the CPU may read and write it */

/* The only way from a handle to a pointer. MEMORY_KIND if the host cannot reach the
 * memory, INTERNAL if [offset, offset+bytes) is not inside. */
zarr_status zr_mem_host_ptr(const struct zr_memory_registry *r, const zarr_memory *mem,
                            uint64_t bytes, void **out, zarr_error *err);
/* Prints a kind of memory: "host", "cuda", ..., or "device20". */
void zr_device_print(struct zr_str *out, int32_t device_type);
/* The text of UNSUPPORTED: no backend has this kind of memory, and how one is loaded. */
void zr_backend_fail_missing(int32_t device_type, zarr_error *err);
/* Prints the kind of a backend's memory, by the backend's name if no other is known. */
void zr_memory_print(struct zr_str *out, const struct zr_backend *be);
/* *n is 1 if the backend does not count its devices. */
zarr_status zr_backend_device_count(const struct zr_backend *be, uint32_t *n,
                                    zarr_error *err);
/* All zero if the backend does not describe its devices. The name is valid UTF-8. */
zarr_status zr_backend_describe(const struct zr_backend *be, int32_t device_id,
                                zarr_device_facts *out, zarr_error *err);
/* Reads a kind of memory: such a name, or a number. */
bool zr_kind_parse(const char *text, size_t bytes, int32_t *device_type);
bool zr_device_number(const char *text, int32_t *device_id);
/* Reads "cuda:0": a kind, and the number of the device, 0 without it. */
bool zr_device_parse(const char *text, int32_t *device_type, int32_t *device_id);
/* Asks the backends which memory a pointer is; host memory if none knows it. */
void zr_mem_classify(const struct zr_memory_registry *r, const void *pointer,
                     int32_t *device_type, int32_t *device_id);
zarr_memory zr_mem_of_host(void *p, uint64_t bytes);
/* Gives a part of a run; false if it is not inside. */
bool zr_mem_slice(const zarr_memory *mem, uint64_t offset, uint64_t bytes,
                  zarr_memory *out);

/* ---- heaps ---------------------------------------------------------------- */

/* Blocks of host memory that live until all are freed at once. Shared; clearing is
 * solo. */
struct zr_heap_slab;
struct zr_heap {
    _Atomic(struct zr_heap_slab *) current; /* blocks are cut from it */
    _Atomic(struct zr_heap_slab *) slabs;   /* all of them */
    atomic_uint_fast64_t bytes;             /* of all blocks */
    atomic_uint_fast64_t held;              /* of all slabs */
    uint64_t most;
    const zarr_allocator *alloc;
};
void zr_heap_init(struct zr_heap *h, uint64_t most, const zarr_allocator *alloc);
void zr_heap_clear(struct zr_heap *h);
uint64_t zr_heap_bytes(const struct zr_heap *h);
/* LIMIT above h->most. *out is aligned for any element and never NULL. */
zarr_status zr_heap_alloc(struct zr_heap *h, uint64_t bytes, void **out, zarr_error *err);

/* ---- counters ----------------------------------------------------------- */

/* Counters of copies by route. Each worker has its own, and they are added up at the
 * end. A list counts as many copies as it has runs or boxes that are not empty, however
 * many calls it takes. */
struct zr_copy_counters {
    uint64_t copies_host, bytes_host, copies_up, bytes_up, copies_down, bytes_down,
        copies_device, bytes_device,
        staged,  /* device<->device or box copies that went through the host */
        detours, /* of these, boxes of elements between two places on devices */
        calls;   /* calls of backends for copies, fills and comparisons; one for a list */
};

/* ---- views --------------------------------------------------------------- */

/* A checked strided view of the caller's memory. Strides are in bytes and have any sign.
 * base.offset is the first element. */
struct zr_view {
    zarr_memory base;
    int32_t ndim;
    uint32_t item_bytes;
    uint32_t swap_bytes; /* unit to reverse against host order; 0: none */
    uint64_t shape[ZARR_MAX_RANK];
    int64_t stride[ZARR_MAX_RANK];
};
enum zr_view_role {
    ZR_VIEW_SOURCE,
    ZR_VIEW_DESTINATION
};
/* What the caller's tensor must be. swap_unit: bytes of the data type's unit. */
struct zr_view_want {
    int32_t ndim;
    const uint64_t *shape;
    uint32_t item_bytes, swap_unit;
    enum zr_view_role role;
};
/* Makes a view of a caller's tensor. Checks the struct size, rank and shape against
 * `want`, strides and lengths in 64 bits, data_bytes, byte order, and overlap
 * (destination). base.bytes counts from the handle, as in a box's sides. */
zarr_status zr_view_from_tensor(struct zr_view *out, const struct zr_memory_registry *r,
                                const zarr_tensor *tensor,
                                const struct zr_view_want *want, zarr_error *err);
/* Makes a C-order view of a run of bytes. base is an ordinary run, whose bytes count from
 * its offset. */
void zr_view_contiguous(struct zr_view *out, zarr_memory base, int32_t ndim,
                        const uint64_t *shape, uint32_t item_bytes, uint32_t swap_bytes);
bool zr_view_is_contiguous(const struct zr_view *v);

/* ---- strided copies ------------------------------------------------------ */

/*
 * Makes one side of a box over a run of bytes. The first element is `at` bytes after the
 * run's offset. The bytes of a run count from its offset, those of a side from the
 * handle, because strides go both ways; this function converts one to the other. The
 * caller sets the strides.
 */
void zr_box_side_init(zarr_box_side *out, const zarr_memory *run, int64_t at);

struct zr_stream;
/*
 * Copies box->shape elements from src to dst, in any memories with any strides, and
 * reverses units of swap_bytes. It merges and sorts dimensions, then chooses: memcpy of
 * long runs, non-temporal rows, fused byte swap, blocked transposes (the fastest
 * dimensions of both sides differ), generic loop. For other memories it uses the
 * backend's copy_box if there is one, and otherwise packs through host memory (counted).
 * It allocates nothing if both sides are host memory. The stream may be NULL.
 */
zarr_status zr_box_copy(const struct zr_memory_registry *r, const zarr_box *box,
                        struct zr_stream *s, struct zr_copy_counters *c, zarr_error *err);
/* The same, if both sides are host memory. */
void zr_host_box_copy(const zarr_box *box);
/*
 * What zr_box_copy() finds out about a box in host memory. Boxes of one form differ only
 * in where their first elements are, so for small ones it is found out once for many.
 */
enum {
    ZR_FORM_DIMS = 4
};
struct zr_plane;
struct zr_box_form {
    void (*plane)(const struct zr_plane *p);
    size_t run; /* n, ds, ss and run: as in struct zr_strided */
    uint32_t unit, ndim;
    uint64_t n[ZR_FORM_DIMS];
    int64_t ds[ZR_FORM_DIMS], ss[ZR_FORM_DIMS];
    /* relative to the first element: the bytes that the box touches, where copying begins
     */
    int64_t dst_low, dst_high, src_low, src_high, dst_at, src_at;
    uint64_t bytes, dst_bytes;
    uint32_t place; /* of the first element in its line of the cache, if `line` */
    bool line, fence;
};
/* Returns false if the box has no form. */
bool zr_box_form_make(struct zr_box_form *out, const struct zr_memory_registry *r,
                      const zarr_box *box);
/* Copies a box of the form. dst and src are those of its sides, with the place of the
 * first element as their offset. Returns false, and copies nothing, if the form does not
 * fit there: zr_box_copy() copies the box, or says what is wrong. */
bool zr_box_form_copy(const struct zr_box_form *f, const zarr_memory *dst,
                      const zarr_memory *src, struct zr_copy_counters *c);
/* Fills box->dst with a pattern of item_bytes (host memory, already in the destination's
 * byte order). */
zarr_status zr_box_fill(const struct zr_memory_registry *r, const zarr_box *box,
                        const void *pattern, struct zr_stream *s,
                        struct zr_copy_counters *c, zarr_error *err);
/* True if all n elements equal the pattern bit for bit. Host memory only; vectorised;
 * stops at the first difference. */
bool zr_all_equal(const void *data, uint64_t n, const void *pattern, uint32_t item_bytes);
/* Copies a plain run between any two memories. */
zarr_status zr_mem_copy_bytes(const struct zr_memory_registry *r, const zarr_memory *dst,
                              const zarr_memory *src, uint64_t bytes,
                              struct zr_copy_counters *c, zarr_error *err);

/* ---- streams and lists ------------------------------------------------------ */

enum {
    ZR_STREAMS_IDLE = 16 /* for the waves of two requests */
};
/*
 * A queue of work on a device; {0} is no stream. One thread at a time uses it. Memory
 * that queued work reads or writes, host memory included, stays valid, unchanged and
 * unread until zr_stream_sync(); pool blocks are given back only afterwards. That is also
 * true after a call that failed, since a part of its work may be queued.
 */
struct zr_stream {
    const struct zr_backend *be;
    void *handle; /* what the backend's functions get; NULL: work is done on return */
    bool queued;  /* work since the last wait; set it after queueing by `handle` */
    bool failed;  /* a call failed, so nothing more is queued on it */
    int32_t device_id;
    uint64_t fork_generation; /* of the process that opened it */
    struct zr_pool *pool;     /* for blocks that copies need meanwhile; NULL: none */
};
/* Opens a stream for memory of a device. `handle` stays NULL if the backend has none. */
zarr_status zr_stream_open(struct zr_stream *out, const struct zr_memory_registry *r,
                           int32_t device_type, int32_t device_id, zarr_error *err);
/* Waits for all work, if there is any. s may be NULL. */
zarr_status zr_stream_sync(struct zr_stream *s, zarr_error *err);
/* Makes later work run after what is on an application's stream now. foreign NULL:
 * nothing. */
zarr_status zr_stream_order(struct zr_stream *s, void *foreign, zarr_error *err);
/* Waits, and makes *s empty. s may be NULL or empty. */
void zr_stream_close(struct zr_stream *s);
/* Idle streams, because opening one is a call of a driver. Shared. They are closed before
 * the registry of their backends ends. */
struct zr_streams {
    struct {
        zr_mutex mutex;
        struct zr_stream idle[ZR_STREAMS_IDLE];
        uint32_t n;
    } locked;
    struct zr_fork_hook fork;
};
void zr_streams_init(struct zr_streams *p);
void zr_streams_deinit(struct zr_streams *p);
/* Closes the idle ones. */
void zr_streams_trim(struct zr_streams *p);
/* As zr_stream_open(), but takes an idle stream of the device if there is one. */
zarr_status zr_stream_take(struct zr_stream *out, struct zr_streams *from,
                           const struct zr_memory_registry *r, int32_t device_type,
                           int32_t device_id, zarr_error *err);
/* Waits, keeps the stream for the next user unless a wait failed, and makes *s empty. s
 * may be empty. */
void zr_stream_give(struct zr_streams *to, struct zr_stream *s);

/*
 * Lists of runs or boxes that do not overlap, between any memories, in any mix. Each is
 * checked as the single call checks, before anything moves. Neighbours with the same two
 * devices go in one call of the backend. s NULL: all is done on return. Otherwise work
 * of the stream's backend is queued, unless `s->handle` is NULL; work that needs the host
 * or another backend waits for the stream first and is done on return.
 */
/* Run i has dst[i].bytes == src[i].bytes bytes; INVALID otherwise. */
zarr_status zr_mem_copy_list(const struct zr_memory_registry *r, const zarr_memory *dst,
                             const zarr_memory *src, uint64_t n, struct zr_stream *s,
                             struct zr_copy_counters *c, zarr_error *err);
zarr_status zr_box_copy_list(const struct zr_memory_registry *r, const zarr_box *boxes,
                             uint64_t n, struct zr_stream *s, struct zr_copy_counters *c,
                             zarr_error *err);
/* All boxes have the same item_bytes. `pattern` is only read during the call. */
zarr_status zr_box_fill_list(const struct zr_memory_registry *r, const zarr_box *boxes,
                             uint64_t n, const void *pattern, struct zr_stream *s,
                             struct zr_copy_counters *c, zarr_error *err);
/* Runs to compare with a pattern. */
struct zr_equal_list {
    const zarr_memory *src; /* each a multiple of item_bytes long */
    uint64_t n;
    const void *pattern; /* item_bytes long */
    uint32_t item_bytes;
    uint8_t *equal; /* n answers: 1 if run i is nothing but copies of the pattern, bit for
                     * bit, else 0 */
};
/* The answers are valid after zr_stream_sync(). */
zarr_status zr_mem_equal_list(const struct zr_memory_registry *r,
                              const struct zr_equal_list *l, struct zr_stream *s,
                              struct zr_copy_counters *c, zarr_error *err);

/* ---- pooled buffers -------------------------------------------------------- */

/*
 * Reusable blocks of any memory kind, in size classes. Blocks that are given back are
 * kept, up to a limit; trimming frees them. Shared (locks inside). A block that queued
 * work uses is given back only after the wait for its stream, also after a failure: the
 * next taker may be another thread with another stream.
 */
struct zr_pool;
zarr_status zr_pool_create(struct zr_pool **out, const struct zr_memory_registry *r,
                           const zarr_allocator *alloc, uint64_t keep_bytes,
                           zarr_error *err);
void zr_pool_free(struct zr_pool *p);
/* Sets the budgets of each device: bytes of its blocks in use and idle together, and
 * bytes of its pinned host memory. Before the first block. 0: what the backend's limit()
 * says; for pinned memory also at most pinned_most. */
void zr_pool_set_budgets(struct zr_pool *p, uint64_t device_bytes, uint64_t pinned_bytes,
                         uint64_t pinned_most);
/* Gives the budget of a device's memory, or of its pinned host memory. UINT64_MAX: there
 * is none. */
zarr_status zr_pool_budget(struct zr_pool *p, int32_t device_type, int32_t device_id,
                           bool pinned, uint64_t *bytes, zarr_error *err);
/* Takes a block of at least `bytes`; out->bytes is the block's full size. NO_MEMORY if
 * the device's budget is used up. */
zarr_status zr_pool_take(struct zr_pool *p, int32_t device_type, int32_t device_id,
                         uint64_t bytes, zarr_memory *out, zarr_error *err);
/* Takes a block of host memory (ZARR_DEVICE_CPU) for copies to and from a device: pinned
 * by the device's backend, or ordinary if the backend cannot pin, or if the budget or the
 * machine has no more. zr_pool_give() takes it back like any block. */
zarr_status zr_pool_take_staging(struct zr_pool *p, int32_t device_type,
                                 int32_t device_id, uint64_t bytes, zarr_memory *out,
                                 zarr_error *err);
/* Number of pinned blocks in use. */
uint64_t zr_pool_count_pinned(const struct zr_pool *p);
void zr_pool_give(struct zr_pool *p, zarr_memory *mem);
void zr_pool_trim(struct zr_pool *p);

#endif
