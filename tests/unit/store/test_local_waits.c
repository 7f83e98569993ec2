/*
 * unit/store/test_local_waits.c - a thread that waits for a disk or a network is none of
 * those that the pool counts; one that copies cached bytes is. This program defines the
 * calls that open and read files, and so says what is cached.
 */
#undef _FORTIFY_SOURCE /* it defines pread() as an inline function */
#include "local_test.h"

#include <dlfcn.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "sched/sched.h"

#if defined RWF_NOWAIT && defined RESOLVE_CACHED

enum {
    BYTES = 300000,
    TMPFS = 0x01021994,
    FUSE = 0x65735546
};
static struct {
    ssize_t cached; /* preadv2() gives so many bytes at first, then EAGAIN */
    int os_code;    /* it fails with this instead */
    bool ends;      /* it gives 0 instead of EAGAIN */
    uint32_t n_asked, n_read, n_blocked;
    dev_t device;    /* added to that of each file */
    uint32_t system; /* its magic number */
    int names;       /* 0: openat2() finds what is cached; else its errno */
    uint32_t n_names, n_opened, n_open_blocked;
} disk;

static uint32_t blocked_now(void)
{
    struct zr_pool_stats pool;

    zr_pool_stats_get(&pool);
    return pool.n_blocked;
}

/* Of openat2() and those calls of the tests below. */
long syscall(long sysno, ...)
{
    static long (*real)(long, ...);
    struct open_how how;
    va_list list;
    long a[4];

    if (!real) {
        void *p = dlsym(RTLD_NEXT, "syscall");

        memcpy(&real, &p, sizeof p);
    }
    va_start(list, sysno);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (sysno != SYS_openat2)
        return real(sysno, a[0], a[1], a[2], a[3]);
    how = *(const struct open_how *)(uintptr_t)a[2]; /* NOLINT: the address of `how` */
    if (how.resolve & RESOLVE_CACHED) {
        disk.n_names++;
        if (disk.names != 0) {
            errno = disk.names;
            return -1;
        }
        how.resolve &= ~(uint64_t)RESOLVE_CACHED;
    } else if (how.flags & O_NONBLOCK) {
        disk.n_opened++;
        disk.n_open_blocked += blocked_now();
    }
    return real(sysno, a[0], a[1], &how, sizeof how);
}

int fstat(int fd, struct stat *buf)
{
    const int result = fstatat(fd, "", buf, AT_EMPTY_PATH);

    buf->st_dev += disk.device;
    return result;
}

int fstatfs(int fildes, struct statfs *buf)
{
    ZR_UNUSED(fildes);
    *buf = (struct statfs){.f_type = disk.system};
    return 0;
}

ssize_t preadv2(int fd, const struct iovec *iovec, int count, off_t offset, int flags)
{
    size_t n;

    disk.n_asked++;
    assert_int_equal(count, 1);
    assert_int_equal(flags, RWF_NOWAIT);
    if (disk.ends)
        return 0;
    if (disk.os_code != 0 || disk.cached == 0) {
        errno = disk.os_code != 0 ? disk.os_code : EAGAIN;
        return -1;
    }
    n = ZR_MIN((size_t)disk.cached, iovec->iov_len);
    disk.cached -= (ssize_t)n;
    return (ssize_t)syscall(SYS_pread64, fd, iovec->iov_base, n, offset);
}

ssize_t pread(int fd, void *buf, size_t nbytes, off_t offset)
{
    disk.n_read++;
    disk.n_blocked += blocked_now();
    return (ssize_t)syscall(SYS_pread64, fd, buf, nbytes, offset);
}

struct reader {
    zarr_store *store;
    const char *bytes;
    uint64_t n;
    struct zr_event done;
};

static void read_value(void *arg)
{
    struct reader *r = arg;
    static char to[BYTES];
    zarr_store_op op = get_op("v", 0, r->n, to, r->n);
    zarr_error err = {0};

    memset(to, 0, sizeof to);
    assert_status(zr_store_run_one(r->store, &op, &err), ZARR_OK);
    assert_int_equal(op.done_bytes, r->n);
    assert_memory_equal(to, r->bytes, r->n);
    zr_event_set(&r->done);
}

/* On a thread of the pool. */
static void read_in_pool(zarr_store *s, const char *bytes, uint64_t n)
{
    struct reader r = {.store = s, .bytes = bytes, .n = n};
    struct zr_task t = {.fn = read_value, .arg = &r};
    zarr_error err = {0};

    disk.n_asked = disk.n_read = disk.n_blocked = 0;
    disk.n_names = disk.n_opened = disk.n_open_blocked = 0;
    zr_event_init(&r.done);
    assert_status(zr_task_submit(&t, &err), ZARR_OK);
    assert_true(zr_event_wait(&r.done, UINT64_MAX));
    zr_event_deinit(&r.done);
}

static void waits_for_disks(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    static char bytes[BYTES];
    zarr_error err = {0};

    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    assert_status(zarr_store_put(s, "v", bytes, BYTES, NULL, &err), ZARR_OK);

    disk.cached = BYTES;
    read_in_pool(s, bytes, BYTES);
    assert_int_equal(disk.n_asked, 1);
    assert_int_equal(disk.n_read, 0);

    read_in_pool(s, bytes, BYTES);
    assert_int_equal(disk.n_read, 1);
    assert_int_equal(disk.n_blocked, 1);

    disk.ends = true; /* Linux 5.10 */
    read_in_pool(s, bytes, BYTES);
    assert_int_equal(disk.n_read, 1);
    assert_int_equal(disk.n_blocked, 1);
    disk.ends = false;

    disk.cached = 100000;
    read_in_pool(s, bytes, BYTES);
    assert_int_equal(disk.n_asked, 2);
    assert_int_equal(disk.n_read, 1);
    assert_int_equal(disk.n_blocked, 1);

    read_in_pool(s, bytes, 40); /* short */
    assert_int_equal(disk.n_asked, 1);
    assert_int_equal(disk.n_read, 1);
    assert_int_equal(disk.n_blocked, 1);
    zarr_store_free(s);
}

/* A file system that does not say what is cached is asked once. */
static void asks_once(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_error err = {0};

    assert_status(zarr_store_put(s, "v", "12345678", 8, NULL, &err), ZARR_OK);
    disk.os_code = EOPNOTSUPP;
    for (uint32_t i = 0; i < 6; i++) {
        const bool waits = i % 4 >= 2, is_first = i % 2 == 0;

        disk.system = waits ? FUSE : TMPFS;
        disk.device = waits ? 1 : 2;
        read_in_pool(s, "12345678", 8);
        assert_int_equal(disk.n_asked, is_first);
        assert_int_equal(disk.n_read, 1);
        assert_int_equal(disk.n_blocked, waits);
        if (is_first)
            continue;
        assert_int_equal(disk.n_names, 0); /* nor is it asked for names */
        assert_int_equal(disk.n_opened, 1);
        assert_int_equal(disk.n_open_blocked, waits);
    }
    disk.os_code = 0;
    disk.device = 0;
    zarr_store_free(s);
}

/* Opening a file reads its directory. */
static void waits_for_names(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_error err = {0};

    assert_status(zarr_store_put(s, "v", "12345678", 8, NULL, &err), ZARR_OK);
    disk.cached = BYTES;
    read_in_pool(s, "12345678", 8);
    assert_int_equal(disk.n_names, 1);
    assert_int_equal(disk.n_opened, 0);

    disk.names = EAGAIN;
    read_in_pool(s, "12345678", 8);
    assert_int_equal(disk.n_opened, 1);
    assert_int_equal(disk.n_open_blocked, 1);

    disk.names = EINVAL; /* Linux before 5.12; asked once */
    for (uint32_t i = 0; i < 2; i++) {
        read_in_pool(s, "12345678", 8);
        assert_int_equal(disk.n_names, 1 - i);
        assert_int_equal(disk.n_opened, 1);
        assert_int_equal(disk.n_open_blocked, 1);
    }
    disk.names = 0;
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(waits_for_disks), T(asks_once),
                                       T(waits_for_names)};

    return cmocka_run_group_tests_name("local_waits", tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: the system cannot tell what is cached\n");
    return 77;
}

#endif
