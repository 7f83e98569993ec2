/*
 * unit/store/test_local_waits.c - a thread that waits for a disk is none of those that
 * the pool counts; one that copies cached bytes is. This program defines the calls that
 * read files, and so says what is cached.
 */
#include "local_test.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "sched/sched.h"

#ifdef RWF_NOWAIT

enum {
    BYTES = 300000
};
static struct {
    ssize_t cached; /* preadv2() gives so many bytes at first, then EAGAIN */
    int os_code;    /* it fails with this instead */
    bool ends;      /* it gives 0 instead of EAGAIN */
    uint32_t n_asked, n_read, n_blocked;
} disk;

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
    struct zr_pool_stats pool;

    zr_pool_stats_get(&pool);
    disk.n_read++;
    disk.n_blocked += pool.n_blocked;
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
    zr_event_init(&r.done);
    assert_status(zr_task_submit(&t, &err), ZARR_OK);
    assert_true(zr_event_wait(&r.done, UINT64_MAX));
    zr_event_deinit(&r.done);
}

static void waits_for_disks(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    static char bytes[BYTES];
    zarr_error err = {0};

    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    assert_status(zarr_store_put(s, "v", bytes, BYTES, &err), ZARR_OK);

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

    read_in_pool(s, bytes, 4096); /* short */
    assert_int_equal(disk.n_asked, 0);
    assert_int_equal(disk.n_read, 1);

    disk.os_code = EOPNOTSUPP; /* asked once */
    for (uint32_t i = 0; i < 2; i++) {
        read_in_pool(s, bytes, BYTES);
        assert_int_equal(disk.n_asked, 1 - i);
        assert_int_equal(disk.n_read, 1);
        assert_int_equal(disk.n_blocked, 0);
    }
    disk.os_code = 0;
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(waits_for_disks)};

    return cmocka_run_group_tests_name("local_waits", tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: the system cannot tell what is cached\n");
    return 77;
}

#endif
