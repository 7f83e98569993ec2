/*
 * tests/fakedev/fakedev.c - the device of fakedev.h. Each allocation is a memfd mapped
 * twice: without access (the handle) and with access (for the device). The end of the
 * memory is at the end of its last page as far as alignment allows, and a page without
 * access follows. The bytes between are checked when the memory is freed. One list
 * contains the live allocations of all devices.
 */
#include "fakedev_int.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_all fake_all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

zarr_status fake_fail(zarr_error *err, zarr_status status, const char *text)
{
    if (err) {
        memset(err, 0, sizeof *err);
        err->code = status;
        (void)snprintf(err->message, sizeof err->message, "fake device: %s", text);
    }
    return status;
}

zarr_status fake_fault(struct fakedev *dev, zarr_error *err, const char *text)
{
    pthread_mutex_lock(&dev->mutex);
    dev->count.faults++;
    pthread_mutex_unlock(&dev->mutex);
    return fake_fail(err, ZARR_ERR_DEVICE, text);
}

zarr_status fake_inject(struct fakedev *dev, uint32_t call, zarr_error *err)
{
    const uint32_t asks = ZARR_FAKEDEV_ALLOC | ZARR_FAKEDEV_HOST | ZARR_FAKEDEV_LIMIT;
    zarr_status st = ZARR_OK;

    if (dev->declined & call)
        return fake_fail(err, ZARR_ERR_UNSUPPORTED, "declined");
    pthread_mutex_lock(&dev->mutex);
    dev->late.calls += !(call & asks);
    if ((dev->fail_calls & call) && dev->fail_in && --dev->fail_in == 0)
        st = dev->fail_status;
    pthread_mutex_unlock(&dev->mutex);
    return st == ZARR_OK ? st : fake_fail(err, st, "injected failure");
}

/* ---- allocations -------------------------------------------------------------- */

struct block *fake_block_locked(const void *address)
{
    for (struct block *b = fake_all.blocks; b; b = b->next)
        if ((const uint8_t *)address >= b->handle_map &&
            (const uint8_t *)address < b->handle_map + b->map_bytes)
            return b;
    return NULL;
}

static bool fake_block_map(struct block *b, bool pinned)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t data = (b->bytes + page - 1) / page * page;
    const int fd = memfd_create("fakedev", MFD_CLOEXEC);

    if (fd < 0)
        return false;
    b->map_bytes = data + page; /* the last page is never accessible, in either mapping */
    b->lead = (data - b->bytes) / ALIGN_BYTES * ALIGN_BYTES;
    b->guard_bytes = data - b->bytes;
    b->pinned = pinned;
    b->handle_map = MAP_FAILED;
    b->real_map = MAP_FAILED;
    if (ftruncate(fd, (off_t)b->map_bytes) == 0) {
        b->handle_map =
            mmap(NULL, b->map_bytes, pinned ? PROT_READ | PROT_WRITE : PROT_NONE,
                 MAP_SHARED, fd, 0);
        b->real_map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (b->handle_map == MAP_FAILED || b->real_map == MAP_FAILED ||
        mprotect(b->real_map + data, page, PROT_NONE) != 0 ||
        (pinned && mprotect(b->handle_map + data, page, PROT_NONE) != 0)) {
        if (b->handle_map != MAP_FAILED)
            munmap(b->handle_map, b->map_bytes);
        if (b->real_map != MAP_FAILED)
            munmap(b->real_map, b->map_bytes);
        return false;
    }
    b->handle = b->handle_map + b->lead;
    b->real = b->real_map + b->lead;
    /* Fills new memory with a pattern that no test expects. */
    memset(b->real_map, GUARD_BYTE, data);
    return true;
}

static bool block_guards_whole(const struct block *b)
{
    const uint64_t after = b->guard_bytes - b->lead;

    for (uint64_t i = 0; i < b->lead; i++)
        if (b->real_map[i] != GUARD_BYTE)
            return false;
    for (uint64_t i = 0; i < after; i++)
        if (b->real[b->bytes + i] != GUARD_BYTE)
            return false;
    return true;
}

struct block *fake_block_take(struct fakedev *dev, const void *handle, bool pinned)
{
    struct block **at, *b;

    pthread_mutex_lock(&fake_all.mutex);
    for (at = &fake_all.blocks; *at && (*at)->handle != handle; at = &(*at)->next)
        ;
    b = *at;
    if (b)
        *at = b->next;
    pthread_mutex_unlock(&fake_all.mutex);
    if (!b || b->owner != dev || b->pinned != pinned || !block_guards_whole(b) ||
        fake_late_uses(b)) {
        (void)fprintf(stderr, "fake device: freed what it does not own or what queued "
                              "work uses, or a broken guard\n");
        abort();
    }
    munmap(b->real_map, b->map_bytes);
    munmap(b->handle_map, b->map_bytes);
    return b;
}

/* Whether `bytes` more fit the budget. */
bool fake_within(struct fakedev *dev, uint64_t bytes, bool pinned)
{
    bool fits = false;

    pthread_mutex_lock(&dev->mutex);
    fits = pinned ? dev->pinned_most == 0 ||
                        dev->late.pinned_bytes + bytes <= dev->pinned_most
                  : dev->most == 0 || dev->count.live_bytes + bytes <= dev->most;
    pthread_mutex_unlock(&dev->mutex);
    return fits;
}

struct block *fake_block_new(struct fakedev *dev, int32_t device_id, uint64_t bytes,
                             bool pinned)
{
    struct block *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->owner = dev;
    b->bytes = bytes ? bytes : 1;
    b->device_id = device_id;
    if (!fake_block_map(b, pinned)) {
        free(b);
        return NULL;
    }
    pthread_mutex_lock(&fake_all.mutex);
    b->next = fake_all.blocks;
    fake_all.blocks = b;
    pthread_mutex_unlock(&fake_all.mutex);
    return b;
}

static zarr_status fake_alloc(void *self, int32_t device_id, uint64_t bytes,
                              zarr_memory *out, zarr_error *err)
{
    struct fakedev *dev = self;
    struct block *b;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_ALLOC, err);

    if (st != ZARR_OK)
        return st;
    if (bytes > UINT64_C(1) << 40 || !fake_within(dev, bytes, false))
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    b = fake_block_new(dev, device_id, bytes, false);
    if (!b)
        return fake_fail(err, ZARR_ERR_NO_MEMORY, "out of memory");
    pthread_mutex_lock(&dev->mutex);
    dev->count.allocs++;
    dev->count.live_blocks++;
    dev->count.live_bytes += b->bytes;
    if (dev->count.live_bytes > dev->count.peak_bytes)
        dev->count.peak_bytes = dev->count.live_bytes;
    *out = (zarr_memory){.device_type = dev->device_type,
                         .device_id = device_id,
                         .handle = b->handle,
                         .bytes = bytes};
    pthread_mutex_unlock(&dev->mutex);
    return ZARR_OK;
}

static void fake_free(void *self, zarr_memory *mem)
{
    struct fakedev *dev = self;
    struct block *b;

    if (!mem->handle)
        return;
    b = fake_block_take(dev, mem->handle, false);
    pthread_mutex_lock(&dev->mutex);
    dev->count.frees++;
    dev->count.live_blocks--;
    dev->count.live_bytes -= b->bytes;
    pthread_mutex_unlock(&dev->mutex);
    free(b);
    *mem = (zarr_memory){0};
}

/* ---- copies ------------------------------------------------------------------- */

/* low and high: first and last byte accessed, relative to handle + offset. A handle may
 * point into a block. */
zarr_status fake_side(struct fakedev *dev, const zarr_memory *m, int64_t low,
                      int64_t high, struct side *out, zarr_error *err)
{
    const uint8_t *first = (const uint8_t *)m->handle + m->offset;
    const struct block *b;
    const char *why = NULL;

    pthread_mutex_lock(&fake_all.mutex);
    b = fake_block_locked(m->handle);
    if (m->device_type != dev->device_type) {
        why = b && !b->pinned ? "a device handle was passed as host memory" : NULL;
        out->device = false;
        out->p = (uint8_t *)m->handle + m->offset;
    } else if (!b || b->owner->device_type != dev->device_type || b->pinned) {
        why = "not a live handle of this kind of device";
    } else if (first + low < b->handle || first + high > b->handle + b->bytes) {
        why = "access out of bounds";
    } else if (m->device_id != b->device_id) {
        why = "wrong device_id";
    } else {
        out->device = true;
        out->p = b->real + (first - b->handle);
    }
    pthread_mutex_unlock(&fake_all.mutex);
    return why ? fake_fault(dev, err, why) : ZARR_OK;
}

static void count_copy(struct fakedev *dev, const struct side *dst,
                       const struct side *src, uint64_t bytes)
{
    zarr_fakedev_counters *c = &dev->count;

    pthread_mutex_lock(&dev->mutex);
    if (dst->device && src->device) {
        c->copies_device++;
        c->bytes_device += bytes;
    } else if (dst->device) {
        c->copies_up++;
        c->bytes_up += bytes;
    } else {
        c->copies_down++;
        c->bytes_down += bytes;
    }
    pthread_mutex_unlock(&dev->mutex);
}

zarr_status fake_do_copy(struct fakedev *dev, const zarr_memory *dst,
                         const zarr_memory *src, uint64_t bytes, bool move,
                         zarr_error *err)
{
    struct side d, s;
    zarr_status st = ZARR_OK;

    if (bytes > dst->bytes || bytes > src->bytes)
        return fake_fault(dev, err, "copy longer than its memory");
    st = fake_side(dev, dst, 0, (int64_t)bytes, &d, err);
    if (st == ZARR_OK)
        st = fake_side(dev, src, 0, (int64_t)bytes, &s, err);
    if (st != ZARR_OK)
        return st;
    if (!d.device && !s.device)
        return fake_fault(dev, err, "copy without a device side");
    if (!move)
        return ZARR_OK;
    memmove(d.p, s.p, bytes);
    count_copy(dev, &d, &s, bytes);
    return ZARR_OK;
}

static zarr_status fake_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t bytes, void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_COPY, err);

    if (st != ZARR_OK)
        return st;
    return stream ? fake_late_copy(dev, stream, dst, src, bytes, err)
                  : fake_do_copy(dev, dst, src, bytes, true, err);
}

/* The range of bytes that the box accesses on this side. The size of a box's memory
 * counts from the handle. */
static zarr_status box_side(struct fakedev *dev, const zarr_box *box,
                            const zarr_box_side *from, struct side *out, zarr_error *err)
{
    int64_t low = 0, high = box->item_bytes;

    for (int32_t k = 0; k < box->ndim; k++) {
        const int64_t reach = (int64_t)(box->shape[k] - 1) * from->stride[k];

        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    if ((int64_t)from->mem.offset + low < 0 ||
        (uint64_t)((int64_t)from->mem.offset + high) > from->mem.bytes)
        return fake_fault(dev, err, "box leaves its memory");
    return fake_side(dev, &from->mem, low, high, out, err);
}

uint64_t fake_box_items(const zarr_box *box)
{
    uint64_t n = 1;

    for (int32_t k = 0; k < box->ndim; k++)
        n *= box->shape[k];
    return n;
}

/* Copies element by element, simple and slow. src NULL: fills with the pattern. */
void fake_box_move(const zarr_box *box, uint8_t *dst, const uint8_t *src,
                   const uint8_t *pattern)
{
    const uint32_t unit = !pattern && box->swap_bytes > 1 ? box->swap_bytes : 1;
    const uint64_t n = fake_box_items(box);

    for (uint64_t i = 0; i < n; i++) {
        int64_t d = 0, s = 0;
        uint64_t rest = i;

        for (int32_t k = box->ndim - 1; k >= 0; k--) {
            d += (int64_t)(rest % box->shape[k]) * box->dst.stride[k];
            s += pattern ? 0 : (int64_t)(rest % box->shape[k]) * box->src.stride[k];
            rest /= box->shape[k];
        }
        for (uint32_t j = 0; j < box->item_bytes; j++)
            dst[d + j] =
                pattern ? pattern[j] : src[s + (j / unit * unit + unit - 1 - j % unit)];
    }
}

zarr_status fake_do_box(struct fakedev *dev, const zarr_box *box, bool move,
                        zarr_error *err)
{
    struct side d, s;
    zarr_status st = ZARR_OK;

    if (box->struct_size < sizeof *box)
        return fake_fault(dev, err, "box without its size");
    st = box_side(dev, box, &box->dst, &d, err);
    if (st == ZARR_OK)
        st = box_side(dev, box, &box->src, &s, err);
    if (st != ZARR_OK)
        return st;
    if (!d.device && !s.device)
        return fake_fault(dev, err, "box copy without a device side");
    if (!move)
        return ZARR_OK;
    fake_box_move(box, d.p, s.p, NULL);
    count_copy(dev, &d, &s, fake_box_items(box) * box->item_bytes);
    pthread_mutex_lock(&dev->mutex);
    dev->count.boxes++;
    pthread_mutex_unlock(&dev->mutex);
    return ZARR_OK;
}

static zarr_status fake_copy_box(void *self, const zarr_box *box, void *stream,
                                 zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_BOX, err);

    if (st != ZARR_OK || fake_box_items(box) == 0)
        return st;
    return stream ? fake_late_box(dev, stream, box, err)
                  : fake_do_box(dev, box, true, err);
}

zarr_status fake_do_fill(struct fakedev *dev, const zarr_box *box, const void *pattern,
                         bool move, zarr_error *err)
{
    struct side d;
    zarr_status st = box_side(dev, box, &box->dst, &d, err);

    if (st != ZARR_OK)
        return st;
    if (!d.device)
        return fake_fault(dev, err, "fill of host memory");
    if (!move)
        return ZARR_OK;
    fake_box_move(box, d.p, NULL, pattern);
    pthread_mutex_lock(&dev->mutex);
    dev->count.fills++;
    pthread_mutex_unlock(&dev->mutex);
    return ZARR_OK;
}

static zarr_status fake_fill_box(void *self, const zarr_box *box, const void *pattern,
                                 void *stream, zarr_error *err)
{
    struct fakedev *dev = self;
    zarr_status st = fake_inject(dev, ZARR_FAKEDEV_FILL, err);

    if (st != ZARR_OK || fake_box_items(box) == 0)
        return st;
    return stream ? fake_late_fill(dev, stream, box, pattern, err)
                  : fake_do_fill(dev, box, pattern, true, err);
}

static void fake_close(void *self)
{
    zarr_fakedev_free(self);
}

/* ---- public functions --------------------------------------------------- */

static const zarr_memory_vtable table_full = {
    .struct_size = sizeof table_full,
    .name = "fake",
    .device_type = ZARR_DEVICE_EXT,
    .alignment = ALIGN_BYTES,
    .alloc = fake_alloc,
    .free = fake_free,
    .copy = fake_copy,
    .copy_box = fake_copy_box,
    .fill_box = fake_fill_box,
    .close = fake_close,
};
static const zarr_memory_vtable table_plain = {
    .struct_size = sizeof table_plain,
    .name = "fake-plain",
    .device_type = ZARR_DEVICE_EXT,
    .alignment = ALIGN_BYTES,
    .alloc = fake_alloc,
    .free = fake_free,
    .copy = fake_copy,
    .close = fake_close,
};

static const zarr_memory_vtable table_late = {
    .struct_size = sizeof table_late,
    .flags = ZARR_MEMORY_STREAM_ORDERED,
    .name = "fake-late",
    .device_type = ZARR_DEVICE_EXT,
    .alignment = ALIGN_BYTES,
    .alloc = fake_alloc,
    .free = fake_free,
    .copy = fake_copy,
    .copy_box = fake_copy_box,
    .fill_box = fake_fill_box,
    .sync = fake_sync,
    .close = fake_close,
    .copy_list = fake_copy_list,
    .copy_boxes = fake_copy_boxes,
    .fill_boxes = fake_fill_boxes,
    .equal_list = fake_equal_list,
    .stream_open = fake_stream_open,
    .stream_close = fake_stream_close,
    .order = fake_order,
    .host_alloc = fake_host_alloc,
    .host_free = fake_host_free,
    .classify = fake_classify,
    .limit = fake_limit,
};

const zarr_memory_vtable *zarr_fakedev_vtable_late(void)
{
    return &table_late;
}

const zarr_memory_vtable *zarr_fakedev_vtable(void)
{
    return &table_full;
}

const zarr_memory_vtable *zarr_fakedev_vtable_plain(void)
{
    return &table_plain;
}

void *zarr_fakedev_create(void)
{
    struct fakedev *dev = calloc(1, sizeof *dev);

    if (dev) {
        pthread_mutex_init(&dev->mutex, NULL);
        dev->device_type = ZARR_DEVICE_EXT;
    }
    return dev;
}

void zarr_fakedev_free(void *self)
{
    struct fakedev *dev = self;

    if (!dev)
        return;
    if (dev->count.live_blocks || dev->late.pinned_blocks || dev->late.streams) {
        (void)fprintf(stderr, "fake device: %llu blocks were never freed\n",
                      (unsigned long long)(dev->count.live_blocks +
                                           dev->late.pinned_blocks + dev->late.streams));
        abort();
    }
    pthread_mutex_destroy(&dev->mutex);
    free(dev);
}

void zarr_fakedev_set_type(void *self, int32_t device_type)
{
    ((struct fakedev *)self)->device_type = device_type;
}

void zarr_fakedev_count(void *self, zarr_fakedev_counters *out)
{
    struct fakedev *dev = self;

    pthread_mutex_lock(&dev->mutex);
    *out = dev->count;
    pthread_mutex_unlock(&dev->mutex);
}

void zarr_fakedev_fail(void *self, uint32_t calls, uint64_t k, zarr_status status)
{
    struct fakedev *dev = self;

    pthread_mutex_lock(&dev->mutex);
    dev->fail_calls = calls;
    dev->fail_in = k;
    dev->fail_status = status;
    pthread_mutex_unlock(&dev->mutex);
}

/* The accessible address of a live handle's bytes, or NULL. */
static uint8_t *find_bytes(const void *handle, uint64_t offset, uint64_t bytes)
{
    uint8_t *p = NULL;
    const struct block *b;

    pthread_mutex_lock(&fake_all.mutex);
    b = fake_block_locked(handle);
    if (b && (const uint8_t *)handle >= b->handle) {
        const uint64_t start = (uint64_t)((const uint8_t *)handle - b->handle);

        if (offset <= b->bytes - start && bytes <= b->bytes - start - offset)
            p = b->real + start + offset;
    }
    pthread_mutex_unlock(&fake_all.mutex);
    return p;
}

int zarr_fakedev_peek(const void *handle, uint64_t offset, void *host, uint64_t bytes)
{
    const uint8_t *p = find_bytes(handle, offset, bytes);

    if (p)
        memcpy(host, p, bytes);
    return p ? 0 : -1;
}

int zarr_fakedev_poke(const void *handle, uint64_t offset, const void *host,
                      uint64_t bytes)
{
    uint8_t *p = find_bytes(handle, offset, bytes);

    if (p)
        memcpy(p, host, bytes);
    return p ? 0 : -1;
}
