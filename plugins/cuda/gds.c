/*
 * cuda/gds.c - files into memory of a device and back, by cuFile. Its fast way wants
 * buffers that are registered, and offsets in the file and in memory that are multiples
 * of 4096. So the plug-in has blocks of its own on each device, registered once. A read
 * is rounded out to pages, goes into a block, and from there to its place by a copy on
 * the device, which costs little. A write goes the other way.
 *
 * Short reads and writes, the end of a file behind its last page, and files that cuFile
 * refuses go through pinned memory and the file system. cuFile's own compatibility mode
 * is never used.
 *
 * Thread class: shared. A call blocks its thread.
 */
#include "cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GDS_PAGE = 4096,
    GDS_LEAST_BYTES = 16 * 1024, /* below this, a way by cuFile takes longer */
    GDS_BLOCKS_MOST = 16,        /* of one device */
    GDS_STAGED_BYTES = 4 << 20
};
#define GDS_BLOCK_BYTES ((uint64_t)8 << 20)

struct gds_block {
    struct gds_block *next;
    struct cuda_device *device;
    CUdeviceptr block, at; /* `at`: the first page in it */
};

/* A read or a write of a file. */
struct gds_call {
    struct cuda_device *device;
    int file, write;
    uint64_t *staged; /* bytes that went through pinned memory */
};

pthread_mutex_t gds_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pthread_cond_t given;
    int holders;
    struct gds_block *idle;
} gds = {.given = PTHREAD_COND_INITIALIZER};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void *as_pointer(CUdeviceptr p)
{
    return (void *)(uintptr_t)p; /* NOLINT(performance-no-int-to-ptr) */
}

static zarr_status fail_cufile(zarr_error *err, const char *what, ssize_t rc, int os_code)
{
    if (rc == -1)
        return port_host->fail_os(err, ZARR_ERR_IO, os_code, "GPUDirect Storage: %s",
                                  what);
    return port_host->fail(err, ZARR_ERR_IO, "GPUDirect Storage: %s: error %ld of cuFile",
                           what, -(long)rc);
}

/* ---- blocks; the device's context is current -------------------- */

static void block_free(struct gds_block *b)
{
    struct place was;

    if (b->block && driver_runs() && device_enter(b->device, &was, NULL) == ZARR_OK) {
        if (b->at && cufile_runs())
            (void)cufile.cuFileBufDeregister(as_pointer(b->at));
        (void)cuda.cuMemFree_v2(b->block);
        device_leave(&was);
    }
    free(b);
}

/* Memory of a pool cannot be registered, so this is no such memory. */
static zarr_status block_new(struct cuda_device *d, struct gds_block **out,
                             zarr_error *err)
{
    struct gds_block *b = calloc(1, sizeof *b);
    struct cufile_result r = {.code = 0};
    CUdeviceptr at;
    zarr_status st;

    if (!b)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a block");
    b->device = d;
    st = device_check(d, err, "memory for files",
                      cuda.cuMemAlloc_v2(&b->block, GDS_BLOCK_BYTES + GDS_PAGE));
    if (st == ZARR_OK) {
        at = (b->block + GDS_PAGE - 1) / GDS_PAGE * GDS_PAGE;
        r = cufile.cuFileBufRegister(as_pointer(at), GDS_BLOCK_BYTES, 0);
        b->at = r.code == 0 ? at : 0;
        if (r.code != 0)
            st = port_host->fail(err, ZARR_ERR_DEVICE,
                                 "GPUDirect Storage: a block cannot be registered: error "
                                 "%d of cuFile",
                                 r.code);
    }
    if (st != ZARR_OK)
        block_free(b);
    else
        *out = b;
    return st;
}

/* An idle block of the device; under the lock. */
static struct gds_block *block_idle(const struct cuda_device *d)
{
    struct gds_block **at = &gds.idle, *b;

    while (*at && (*at)->device != d)
        at = &(*at)->next;
    b = *at;
    if (b)
        *at = b->next;
    return b;
}

static zarr_status block_take(struct cuda_device *d, struct gds_block **out,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    lock_take(&gds_mutex);
    while (!(*out = block_idle(d)) && d->file_blocks >= GDS_BLOCKS_MOST)
        (void)pthread_cond_wait(&gds.given, &gds_mutex);
    d->file_blocks += !*out;
    lock_give(&gds_mutex);
    if (*out)
        return ZARR_OK;
    st = block_new(d, out, err);
    if (st != ZARR_OK) {
        lock_take(&gds_mutex);
        d->file_blocks--;
        (void)pthread_cond_broadcast(&gds.given);
        lock_give(&gds_mutex);
    }
    return st;
}

static void block_give(struct gds_block *b)
{
    lock_take(&gds_mutex);
    b->next = gds.idle;
    gds.idle = b;
    (void)pthread_cond_broadcast(&gds.given);
    lock_give(&gds_mutex);
}

void gds_hold(void)
{
    lock_take(&gds_mutex);
    gds.holders++;
    lock_give(&gds_mutex);
}

void gds_release(void)
{
    lock_take(&gds_mutex);
    if (--gds.holders == 0) {
        cufile_handles_close();
        while (gds.idle) {
            struct gds_block *b = gds.idle;

            gds.idle = b->next;
            b->device->file_blocks--;
            block_free(b);
        }
        cufile_stop();
    }
    lock_give(&gds_mutex);
}

/* ---- copies between a block or pinned memory and the caller's memory -------------- */

static zarr_status copy_part(const zarr_memory *mem, uint64_t at, zarr_memory part,
                             int to_memory, zarr_error *err)
{
    zarr_memory whole = *mem;

    whole.offset += at;
    whole.bytes = part.bytes;
    return to_memory ? cuda_memory.copy(NULL, &whole, &part, part.bytes, NULL, err)
                     : cuda_memory.copy(NULL, &part, &whole, part.bytes, NULL, err);
}

static zarr_memory part_of_block(const struct gds_block *b, uint64_t at, uint64_t bytes)
{
    return (zarr_memory){.device_type = ZARR_DEVICE_CUDA,
                         .device_id = b->device->number,
                         .handle = as_pointer(b->at),
                         .offset = at,
                         .bytes = bytes};
}

/* ---- through pinned memory -------------------- */

/* One pread() or pwrite() of all of `bytes`. */
static zarr_status file_all(int file, char *host, uint64_t at, uint64_t bytes, int write,
                            zarr_error *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const size_t n = (size_t)(bytes - done);
        const ssize_t rc = write ? pwrite(file, host + done, n, (off_t)(at + done))
                                 : pread(file, host + done, n, (off_t)(at + done));

        if (rc < 0 && errno == EINTR)
            continue;
        if (rc < 0 || (rc == 0 && write))
            return port_host->fail_os(err, ZARR_ERR_IO, rc < 0 ? errno : ENOSPC,
                                      write ? "write" : "read");
        if (rc == 0)
            return port_host->fail(err, ZARR_ERR_CONFLICT,
                                   "became shorter while it was read");
        done += (uint64_t)rc;
    }
    return ZARR_OK;
}

/* Bytes [from, mem->bytes) of memory, and the same of the file, which is `shift` behind.
 */
static zarr_status transfer_staged(const struct gds_call *c, uint64_t shift,
                                   const zarr_memory *mem, uint64_t from, zarr_error *err)
{
    struct pair *p = NULL;
    zarr_status st =
        from < mem->bytes
            ? pair_take(c->device, least(mem->bytes - from, GDS_STAGED_BYTES), &p, err)
            : ZARR_OK;

    while (st == ZARR_OK && from < mem->bytes) {
        const zarr_memory host = {.device_type = ZARR_DEVICE_CPU,
                                  .handle = p->host,
                                  .bytes = least(mem->bytes - from, p->bytes)};

        if (c->write)
            st = copy_part(mem, from, host, 0, err);
        if (st == ZARR_OK)
            st = file_all(c->file, p->host, shift + from, host.bytes, c->write, err);
        if (st == ZARR_OK && !c->write)
            st = copy_part(mem, from, host, 1, err);
        from += host.bytes;
        *c->staged += host.bytes;
    }
    if (p)
        pair_give(p);
    return st;
}

/* ---- by cuFile -------------------- */

static zarr_status direct_read(struct gds_block *b, void *handle, uint64_t offset,
                               const zarr_memory *dst, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t done = 0; st == ZARR_OK && done < dst->bytes;) {
        const uint64_t begin = (offset + done) / GDS_PAGE * GDS_PAGE;
        const uint64_t skip = offset + done - begin;
        uint64_t n = least(dst->bytes - done, GDS_BLOCK_BYTES - skip);
        const uint64_t pages = (skip + n + GDS_PAGE - 1) / GDS_PAGE;
        ssize_t got;

        errno = 0;
        got = cufile.cuFileRead(handle, as_pointer(b->at), (size_t)(pages * GDS_PAGE),
                                (off_t)begin, 0);
        if (got == -1 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_cufile(err, "read", got, errno);
        if ((uint64_t)got <= skip)
            return port_host->fail(err, ZARR_ERR_CONFLICT,
                                   "became shorter while it was read");
        n = least(n, (uint64_t)got - skip);
        st = copy_part(dst, done, part_of_block(b, skip, n), 1, err);
        done += n;
    }
    return st;
}

/* Writes the whole pages of `src`. */
static zarr_status direct_write(struct gds_block *b, void *handle, const zarr_memory *src,
                                uint64_t *written, zarr_error *err)
{
    const uint64_t bytes = src->bytes / GDS_PAGE * GDS_PAGE;
    zarr_status st = ZARR_OK;

    for (uint64_t done = 0; st == ZARR_OK && done < bytes;) {
        const uint64_t n = least(bytes - done, GDS_BLOCK_BYTES);
        ssize_t put;

        st = copy_part(src, done, part_of_block(b, 0, n), 0, err);
        if (st != ZARR_OK)
            break;
        errno = 0;
        put = cufile.cuFileWrite(handle, as_pointer(b->at), (size_t)n, (off_t)done, 0);
        if (put == -1 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_cufile(err, "write", put, errno);
        if (put < GDS_PAGE || (uint64_t)put > n)
            return fail_cufile(err, "write", -1, ENOSPC);
        done += (uint64_t)put / GDS_PAGE * GDS_PAGE;
        *written = done;
    }
    return st;
}

static zarr_status read_here(const struct gds_call *c, uint64_t offset,
                             const zarr_memory *dst, zarr_error *err)
{
    struct cufile_handle *h = NULL;
    struct gds_block *b = NULL;
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (dst->bytes >= GDS_LEAST_BYTES)
        st = cufile_handle_take(c->file, 1, &h, err);
    if (st == ZARR_ERR_UNSUPPORTED)
        return transfer_staged(c, offset, dst, 0, err);
    if (st == ZARR_OK)
        st = block_take(c->device, &b, err);
    if (st == ZARR_OK) {
        st = direct_read(b, cufile_raw_handle(h), offset, dst, err);
        block_give(b);
    }
    if (h)
        cufile_handle_give(h);
    return st;
}

static zarr_status write_here(const struct gds_call *c, const zarr_memory *src,
                              zarr_error *err)
{
    struct cufile_handle *h = NULL;
    struct gds_block *b = NULL;
    uint64_t written = 0;
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (src->bytes >= GDS_LEAST_BYTES)
        st = cufile_handle_take(c->file, 0, &h, err);
    if (st == ZARR_OK)
        st = block_take(c->device, &b, err);
    if (b) {
        st = direct_write(b, cufile_raw_handle(h), src, &written, err);
        block_give(b);
    }
    if (h)
        cufile_handle_give(h);
    if (st == ZARR_OK || st == ZARR_ERR_UNSUPPORTED)
        st = transfer_staged(c, 0, src, written, err);
    return st;
}

/* ---- door -------------------- */

static zarr_status gds_enter(int32_t number, struct cuda_device **d, struct place *was,
                             zarr_error *err)
{
    const zarr_status st = cufile_start(err);

    return st == ZARR_OK ? device_use(number, d, was, err) : st;
}

zarr_status gds_read_file(void *self, int file, uint64_t offset, const zarr_memory *dst,
                          uint64_t *count, zarr_error *err)
{
    struct gds_call c = {.file = file, .staged = count};
    struct place was;
    zarr_status st = gds_enter(dst->device_id, &c.device, &was, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    st = read_here(&c, offset, dst, err);
    device_leave(&was);
    return st;
}

zarr_status gds_write_file(void *self, int file, const zarr_memory *src, uint64_t *count,
                           zarr_error *err)
{
    struct gds_call c = {.file = file, .write = 1, .staged = count};
    struct place was;
    zarr_status st = gds_enter(src->device_id, &c.device, &was, err);

    (void)self;
    if (st != ZARR_OK)
        return st;
    st = write_here(&c, src, err);
    device_leave(&was);
    return st;
}

/* A file on the directory's file system: a document of its root, else a new one without a
 * name. */
static int file_to_try(int directory)
{
    static const char *const names[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    int fd = -1;

    for (size_t i = 0; i < sizeof names / sizeof *names && fd < 0; i++)
        fd = openat(directory, names[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd;
}

zarr_status gds_reaches_files(void *self, int directory, zarr_error *err)
{
    struct cufile_handle *h = NULL;
    zarr_status st = cufile_start(err);
    int fd;

    (void)self;
    if (st != ZARR_OK)
        return st;
    fd = file_to_try(directory);
    if (fd < 0)
        return port_host->fail_os(err, ZARR_ERR_UNSUPPORTED, errno,
                                  "GPUDirect Storage: no file to try it on");
    st = cufile_handle_take(fd, 1, &h, err);
    if (h)
        cufile_handle_give(h);
    (void)close(fd);
    return st;
}
