/*
 * store/local/read.c - GET, STAT and pins of the local store: openat2, fstat, a read,
 * close. It builds no path, allocates nothing and takes no lock, except when it waits for
 * the disk (the lock of the pool). Values are replaced by rename and never changed in
 * place (by us, TensorStore and zarr-python), so an open descriptor is a snapshot. Only
 * the end of a value that an APPEND changes may be read as a mix; nothing is mapped, so a
 * value that becomes shorter is an error and no signal. The
 * fstat costs a tenth of the whole. It gives the version and the exact length, and makes
 * sure that only regular files are read. O_NONBLOCK keeps a FIFO from blocking us. A
 * directory or a device in the place of a value is an error, never a missing key.
 *
 * Pins of all stores and threads together hold at most a quarter of the descriptors that
 * the process may have. Further pins remember the version and open the value at each
 * read. If it has another version by then, the read fails with CONFLICT, as on stores
 * without pins. No thread ever waits for a descriptor.
 *
 * Only ENOENT without a broken symlink on the way means that a key is missing. ENOTDIR (a
 * parent is a file) is damage: the file may have replaced a directory of chunks.
 *
 * Thread class: any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sched/sched.h"

enum {
    PINS_MOST = 256
};
/* How many pins of this process hold a descriptor. A forked child has copies of the
 * descriptors and of this number. */
static atomic_uint_fast64_t pins_held;

/* The last file system that does not say which bytes of a file are in memory: its device
 * times two, plus one if reads of it may wait. */
static atomic_uint_fast64_t untold = UINT64_MAX; /* at first: none */

/* One read transfers at most this many bytes on Linux. */
#define READ_MAX_BYTES ((size_t)0x7ffff000)

void zr_local_version(const struct stat *st, zarr_store_version *out)
{
    const uint64_t numbers[ZR_LOCAL_NUMBERS] = {
        [ZR_LOCAL_DEVICE] = (uint64_t)st->st_dev,
        [ZR_LOCAL_INODE] = (uint64_t)st->st_ino,
        [ZR_LOCAL_TIME] = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) +
                          (uint64_t)st->st_mtim.tv_nsec,
        [ZR_LOCAL_BYTES] = (uint64_t)st->st_size,
    };

    /* as zr_store_version_make(), without a call for each GET */
    memset(out, 0, sizeof *out);
    out->bytes[0] = sizeof numbers;
    memcpy(out->bytes + 1, numbers, sizeof numbers);
}

static zarr_status read_open_failed(const struct zr_local *l, zarr_store_op *op,
                                    const char *key, int os_code, bool via_link,
                                    zarr_error *err)
{
    const char *why = "cannot open";

    if (os_code == ENOENT && !(via_link && zr_local_is_dangling(l, key)))
        return zr_op_end(op, zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", key), 0);
    if (os_code == ENOENT)
        why = ZR_LOCAL_NOWHERE_TEXT;
    else if (os_code == ENOTDIR)
        why = "a parent is a file";
    else if (os_code == ENAMETOOLONG)
        return zr_op_end(op, zr_fail_os(err, ZARR_ERR_INVALID, os_code, "%s", key),
                         os_code);
    return zr_op_end(op, zr_local_fail(l, err, os_code, key, why), os_code);
}

static zarr_status read_not_regular(zarr_store_op *op, const char *key, mode_t mode,
                                    zarr_error *err)
{
    const char *what = S_ISDIR(mode)    ? "a directory"
                       : S_ISFIFO(mode) ? "a FIFO"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    int os_code = S_ISDIR(mode) ? EISDIR : EINVAL;

    return zr_op_end(op,
                     zr_fail_os(err, ZARR_ERR_IO, os_code,
                                "%s: expected a value, found %s", key, what),
                     os_code);
}

/* False in tmpfs and its like. */
static bool may_sleep(int fd)
{
    static const uint64_t in_memory[] = {0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */,
                                         0x958458f6 /* hugetlbfs */};
    const uint64_t magic = zr_local_magic(fd);

    for (size_t i = 0; i < ZR_COUNT(in_memory); i++)
        if (magic == in_memory[i])
            return false;
    return true;
}

/* Opens a key's file, as zr_local_open() does; -EAGAIN: an attempt would wait. While this
 * thread waits for a disk or a network, the pool may use another one. A file system that
 * does not say which bytes are in memory does not say it of names either. */
static int read_open(struct zr_local *l, const char *key, bool *via_link)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
    const uint64_t silent = atomic_load_explicit(&untold, memory_order_relaxed);
    const bool is_silent =
        silent >> 1 == atomic_load_explicit(&l->last_device, memory_order_relaxed);
    int fd = -EAGAIN;

    if (zr_attempt_runs()) /* a file system that is mounted below may be a remote one */
        return zr_local_is_remote(l) || (is_silent && (silent & 1))
                   ? -EAGAIN
                   : zr_local_open_cached(l, key, flags, RESOLVE_NO_XDEV);
    if (is_silent && !(silent & 1))
        return zr_local_open(l, key, flags, via_link);
    if (!is_silent)
        fd = zr_local_open_cached(l, key, flags, 0);
    if (fd != -EAGAIN)
        return fd;
    zr_block_begin();
    fd = zr_local_open(l, key, flags, via_link);
    zr_block_end();
    return fd;
}

zarr_status zr_local_open_value(struct zr_local *l, zarr_store_op *op, const char *key,
                                int *fd, struct stat *st, zarr_error *err)
{
    zarr_status status = ZARR_OK;
    bool via_link = false;

    *st = (struct stat){0}; /* for clang-tidy, which cannot tell failures from success */
    *fd = read_open(l, key, &via_link);
    if (*fd == -EAGAIN && zr_attempt_runs())
        return zr_op_end(op, zr_attempt_fail(err), EAGAIN);
    if (*fd == -ENXIO) /* a socket, or a device without a driver */
        return read_not_regular(op, key, S_IFSOCK, err);
    if (*fd < 0)
        return read_open_failed(l, op, key, -*fd, via_link, err);
    if (fstat(*fd, st) != 0) {
        int os_code = errno;

        status = zr_op_end(op, zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: fstat", key),
                           os_code);
    } else if (!S_ISREG(st->st_mode)) {
        status = read_not_regular(op, key, st->st_mode, err);
    } else {
        atomic_store_explicit(&l->last_device, (uint64_t)st->st_dev,
                              memory_order_relaxed);
    }
    if (status != ZARR_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

static void fail_read(zarr_store_op *op, uint64_t n, uint64_t offset, zarr_error *err)
{
    int os_code = errno;

    zr_op_end(op,
              zr_fail_os(err, ZARR_ERR_IO, os_code,
                         "%s: read of %" PRIu64 " bytes at %" PRIu64, op->key, n, offset),
              os_code);
}

/* Reads at most n bytes that are in the page cache. -1: none of them are, or the file
 * system does not say. *sleeps: whether pread() may wait for a disk or a network. Other
 * errors are left to pread(), and so is a 0: Linux 5.9 and 5.10 give it in place of
 * EAGAIN. */
__attribute__((always_inline)) static inline ssize_t
read_cached(const zarr_store_op *op, int fd, const struct iovec *part, off_t offset,
            bool *sleeps)
{
    const uint64_t silent = atomic_load_explicit(&untold, memory_order_relaxed);
    uint64_t device = 0;
    ssize_t got = -1;

    memcpy(&device, op->version.bytes + 1 + ZR_LOCAL_DEVICE * sizeof device,
           sizeof device);
    *sleeps = silent & 1;
    if (silent >> 1 == device)
        return -1;
    errno = ENOSYS;
#ifdef RWF_NOWAIT
    got = preadv2(fd, part, 1, offset, RWF_NOWAIT);
#else
    ZR_UNUSED(part), ZR_UNUSED(offset);
#endif
    *sleeps = got == 0 || (got < 0 && errno == EAGAIN);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL ||
                    errno == EPERM)) { /* a sandbox may refuse it */
        *sleeps = may_sleep(fd);
        atomic_store_explicit(&untold, device << 1 | *sleeps, memory_order_relaxed);
    }
    return got > 0 ? got : -1;
}

/* Whether the file is known to be in tmpfs or its like. */
static bool is_in_memory(const zarr_store_op *op)
{
    uint64_t device = 0;

    memcpy(&device, op->version.bytes + 1 + ZR_LOCAL_DEVICE * sizeof device,
           sizeof device);
    return atomic_load_explicit(&untold, memory_order_relaxed) == device << 1;
}

/* Like pread(); EAGAIN: an attempt would wait. While this thread waits for a disk, the
 * pool may use another one. */
__attribute__((always_inline)) static inline ssize_t
read_some(const zarr_store_op *op, int fd, void *to, size_t n, off_t offset)
{
    const struct iovec part = {.iov_base = to, .iov_len = n};
    bool sleeps;
    ssize_t got = read_cached(op, fd, &part, offset, &sleeps);
    int os_code;

    if (got > 0)
        return got;
    if (zr_attempt_runs() && !is_in_memory(op)) {
        errno = EAGAIN;
        return -1;
    }
    if (sleeps)
        zr_block_begin();
    got = pread(fd, to, n, offset);
    os_code = errno;
    if (sleeps)
        zr_block_end();
    errno = os_code;
    return got;
}

/* Reads the part of op's range that the value has. If the value ends before its length,
 * it was changed in place meanwhile. */
static void read_range(struct zr_local *l, zarr_store_op *op, int fd,
                       uint64_t object_bytes, zarr_error *err)
{
    uint64_t offset, n;
    void *to = NULL;
    zarr_status st = ZARR_OK;

    op->object_bytes = object_bytes;
    zr_op_range(op, object_bytes, &offset, &n);
    if (n > 0 && !zr_device_is_host(l->memory, op->mem.device_type)) {
        st = zr_local_read_device(l, op, fd, offset, n, err);
        op->done_bytes = st == ZARR_OK ? n : 0;
        zr_op_end(op, st, op->os_code);
        return;
    }
    if (n > 0)
        st = zr_mem_host_ptr(l->memory, &op->mem, n, &to, err);
    for (uint64_t done = 0; st == ZARR_OK && done < n;) {
        ssize_t got =
            read_some(op, fd, (unsigned char *)to + done,
                      (size_t)ZR_MIN(n - done, READ_MAX_BYTES), (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN && zr_attempt_runs()) {
            zr_op_end(op, zr_attempt_fail(err), EAGAIN);
            return;
        }
        if (got < 0) {
            fail_read(op, n - done, offset + done, err);
            return;
        }
        if (got == 0)
            st = zr_fail(err, ZARR_ERR_CONFLICT, "%s: became shorter while it was read",
                         op->key);
        done += (uint64_t)got;
    }
    if (st == ZARR_OK)
        op->done_bytes = n;
    zr_op_end(op, st, 0);
}

/* Reads through a pin that holds no descriptor. */
static void read_same(struct zr_local *l, zarr_store_op *op, const struct zr_store_pin *p,
                      zarr_error *err)
{
    struct stat st;
    int fd;
    zarr_status status = zr_local_open_value(l, op, op->key, &fd, &st, err);

    if (status == ZARR_OK)
        zr_local_version(&st, &op->version);
    if (status == ZARR_ERR_NOT_FOUND ||
        (status == ZARR_OK && !zr_store_version_equal(&op->version, &p->version)))
        zr_op_end(op,
                  zr_fail(err, ZARR_ERR_CONFLICT, "%s: was %s while it was read", op->key,
                          status == ZARR_OK ? "replaced" : "deleted"),
                  0);
    else if (status == ZARR_OK)
        read_range(l, op, fd, p->object_bytes, err);
    if (status == ZARR_OK)
        close(fd);
}

void zr_local_get(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    zarr_store_version now;
    struct stat st;
    bool is_other;
    int fd;

    if (op->flags & ZR_STORE_OP_PINNED) {
        const struct zr_store_pin *p = op->lock;

        if (p->held == 0) {
            read_same(l, op, p, err);
            return;
        }
        op->version = p->version;
        read_range(l, op, (int)(p->held - 1), p->object_bytes, err);
        return;
    }
    if (zr_local_open_value(l, op, op->key, &fd, &st, err) != ZARR_OK)
        return;
    zr_local_version(&st, &now);
    is_other = (op->flags & ZARR_STORE_OP_IF_VERSION) &&
               !zr_store_version_equal(&now, &op->version);
    op->version = now;
    if (is_other)
        zr_local_conflict(op, err);
    else
        read_range(l, op, fd, (uint64_t)st.st_size, err);
    close(fd); /* opened for reading: close() loses nothing */
}

void zr_local_stat(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    struct stat st;
    int fd;

    if (zr_local_open_value(l, op, op->key, &fd, &st, err) != ZARR_OK)
        return;
    zr_local_version(&st, &op->version);
    op->object_bytes = (uint64_t)st.st_size;
    close(fd);
    zr_op_end(op, ZARR_OK, 0);
}

static uint64_t pins_most(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return PINS_MOST / 4;
    return ZR_MIN((uint64_t)limit.rlim_cur / 4, (uint64_t)PINS_MOST);
}

zarr_status zr_local_pin(void *self, struct zr_store_pin *p, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = p->key};
    struct stat st;
    int fd;
    zarr_status status = zr_local_open_value(self, &op, p->key, &fd, &st, err);

    if (status != ZARR_OK)
        return status;
    zr_local_version(&st, &p->version);
    p->object_bytes = (uint64_t)st.st_size;
    if (atomic_fetch_add(&pins_held, 1) < pins_most()) {
        p->held = (intptr_t)fd + 1;
    } else {
        atomic_fetch_sub(&pins_held, 1);
        close(fd);
    }
    return ZARR_OK;
}

void zr_local_unpin(void *self, struct zr_store_pin *p)
{
    ZR_UNUSED(self);
    if (p->held == 0)
        return;
    close((int)(p->held - 1));
    atomic_fetch_sub(&pins_held, 1);
}
