/*
 * unit/store/test_local_system.c - lack of descriptors, files that are too large, full
 * disks, durability, descriptors 0 to 2, fork, a sandbox, lock files that another process
 * removes.
 */
#include "local_test.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void no_descriptors(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    struct rlimit old, low;
    zarr_error err = {0};

    assert_status(put_text(s, "a/v", "1"), ZARR_OK);
    getrlimit(RLIMIT_NOFILE, &old);
    for (rlim_t n = 3; n < 12; n++) { /* at each step of a read or a write */
        zarr_status st;

        low = (struct rlimit){n, old.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        st = get_status(s, "a/v", &err);
        assert_true(st == ZARR_OK || (st == ZARR_ERR_IO && err.os_code == EMFILE));
        st = put_text(s, "a/v", "1");
        assert_true(st == ZARR_OK || st == ZARR_ERR_IO);
        st = zarr_store_list(s, "", 0, append_row, (char[ROWS_BYTES]){0}, NULL, &err);
        assert_true(st == ZARR_OK || st == ZARR_ERR_IO);
        st = zarr_store_erase(s, "a/none", NULL, &err);
        assert_true(st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_IO);
        setrlimit(RLIMIT_NOFILE, &old);
    }
    assert_string_equal(get_text(s, "a/v"), "1");
    zarr_store_free(s);
}

enum {
    MANY_PINS = 100
};

static zarr_store_op pinned_op(struct zr_store_pin *pin, char *bytes, uint64_t n)
{
    zarr_store_op op = get_op(pin->key, 0, ZARR_STORE_TO_END, bytes, n);

    op.flags = ZR_STORE_OP_PINNED;
    op.lock = pin;
    return op;
}

/* More pins than descriptors: those without one compare versions. */
static void more_pins_than_descriptors(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    const int before = count_open_fds();
    static struct zr_store_pin pin[MANY_PINS];
    struct rlimit old, few;
    zarr_error err = {0};
    char bytes[8];

    write_file(w, "v", "old");
    write_file(w, "gone", "old");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_status st = zr_store_pin_init(&pin[i], s, i % 2 ? "gone" : "v", &err);

        if (st != ZARR_OK)
            fail_msg("pin %d: %s", i, err.message);
    }
    assert_int_equal(count_open_fds(), before + 16); /* one quarter of them */
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_store_op op = pinned_op(&pin[i], bytes, sizeof bytes);

        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        assert_true(op.done_bytes == 3 && memcmp(bytes, "old", 3) == 0);
    }
    assert_status(put_text(s, "v", "new"), ZARR_OK);
    assert_status(zarr_store_erase(s, "gone", NULL, &err), ZARR_OK);
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_store_op op = pinned_op(&pin[i], bytes, sizeof bytes);

        assert_status(zr_store_run_one(s, &op, &err),
                      i < 16 ? ZARR_OK : ZARR_ERR_CONFLICT);
        if (i >= 16)
            assert_non_null(strstr(err.message, i % 2 ? "deleted" : "replaced"));
    }
    for (int i = 0; i < MANY_PINS; i++)
        zr_store_pin_deinit(&pin[i]);
    assert_int_equal(count_open_fds(), before);
    /* All descriptors were given back. */
    assert_status(zr_store_pin_init(&pin[0], s, "v", &err), ZARR_OK);
    assert_int_equal(count_open_fds(), before + 1);
    zr_store_pin_deinit(&pin[0]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    zarr_store_free(s);
}

static void file_too_large(void **state)
{
    struct world *w = fixture_world(state);
    struct rlimit old, low;
    static char big[3 << 20];
    zarr_error err = {0};

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store *s = open_with(w, 0, 0, locks, 0);

        assert_status(put_text(s, "v", "old"), ZARR_OK);
        low = (struct rlimit){100000, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &low);
        assert_status(zarr_store_put(s, "v", big, sizeof big, NULL, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, EFBIG);
        assert_int_equal(err.os_domain, ZARR_OS_ERRNO);
        assert_status(zarr_store_put(s, "v", big, 200000, NULL, &err), ZARR_ERR_IO);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_string_equal(get_text(s, "v"), "old");
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        zarr_store_free(s);
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void disk_full(void **state)
{
    struct world *w = fixture_world(state);
    static char big[100000];
    zarr_error err = {0};
    zarr_store *s;

    if (geteuid() != 0 || mount("none", w->dir, "tmpfs", 0, "size=256k") != 0) {
        print_message("skipped: a small file system needs the right to mount one\n");
        skip();
    }
    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        s = open_with(w, 0, 0, locks, 0);
        assert_status(put_text(s, "v", "old"), ZARR_OK);
        assert_status(zarr_store_put(s, "a", big, sizeof big, NULL, &err), ZARR_OK);
        assert_status(zarr_store_put(s, "b", big, sizeof big, NULL, &err), ZARR_OK);
        assert_status(zarr_store_put(s, "v", big, sizeof big, NULL, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, ENOSPC);
        assert_non_null(strstr(err.message, w->dir));
        assert_string_equal(get_text(s, "v"), "old");
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        assert_status(zarr_store_erase_prefix(s, "", NULL, &err), ZARR_OK);
        assert_status(zarr_store_put(s, "v", big, sizeof big, NULL, &err), ZARR_OK);
        assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
        zarr_store_free(s);
    }
    assert_int_equal(umount(w->dir), 0);
}

static void durabilities(void **state)
{
    struct world *w = fixture_world(state);
    zarr_error err = {0};

    for (uint32_t d = 0; d <= ZARR_DURABILITY_EACH; d++) {
        for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
            zarr_store *s = open_with(w, 0, d, locks, 0);

            assert_status(put_text(s, "d/e/f/v", "1"), ZARR_OK);
            assert_status(put_text(s, "d/e/f/v", "2"), ZARR_OK);
            assert_string_equal(get_text(s, "d/e/f/v"), "2");
            assert_status(zarr_store_erase(s, "d/e/f/v", NULL, &err), ZARR_OK);
            assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
            assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
            assert_status(zarr_store_erase_prefix(s, "", NULL, &err), ZARR_OK);
            assert_status(zarr_store_flush(s, NULL, &err), ZARR_OK);
            zarr_store_free(s);
        }
    }
}

/* In a child whose descriptors 0 to 2 are closed. No file of the store may get one of
 * these numbers. */
static void low_descriptors(void **state)
{
    struct world *w = fixture_world(state);
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct stat st;
        zarr_store *s;
        int bad = 0;
        void *lock = NULL;

        for (int fd = 0; fd < 3; fd++)
            close(fd);
        s = open_with(w, 0, ZARR_DURABILITY_EACH, 0, 0);
        bad |= zr_store_lock(s, "x/y", NULL, &lock, NULL) != ZARR_OK;
        for (int fd = 0; fd < 3; fd++)
            bad |= fstat(fd, &st) == 0;
        bad |= put_text(s, "v", "1") != ZARR_OK || !get_text(s, "v");
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

/* A store opened before a fork works in the child, and the end of the child does not
 * release the parent's lock. */
static void fork_with_lock(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = "v"};
    int status = 0;
    void *lock = NULL;
    zarr_error err = {0};
    pid_t pid;

    assert_status(put_text(s, "w", "1"), ZARR_OK);
    assert_status(zr_store_lock(s, "v", NULL, &lock, &err), ZARR_OK);
    op.lock = lock;
    op.mem = zr_mem_of_host("x", 1);
    pid = fork();
    if (pid == 0) {
        int bad = zr_store_run_one(s, &op, NULL) != ZARR_ERR_INVALID;

        bad |= put_text(s, "w", "2") != ZARR_OK;
        zr_store_unlock(s, lock);
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_true(exists(w, "v.__lock"));
    assert_string_equal(get_text(s, "w"), "2");
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID); /* used up */
    zr_store_unlock(s, lock);
    zarr_store_free(s);
}

/* openat2() is EPERM from now on, for this process. */
static int forbid_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = ZR_COUNT(code), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

/* A sandbox that begins after openat2() was found to work: old stores and new ones go
 * on without it. */
static void sandbox(void **state)
{
    enum {
        NO_FILTERS = 2
    };
    struct world *w = fixture_world(state);
    zarr_store *before = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    int status = -1;
    pid_t pid;

    assert_status(put_text(before, "a/v", "1"), ZARR_OK);
    pid = fork();
    if (pid == 0) {
        zarr_store *after;
        int bad = forbid_openat2() != 0;

        if (bad)
            _exit(NO_FILTERS);
        after = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
        for (int i = 0; i < 2; i++) {
            zarr_store *s = i ? after : before;

            bad |= strcmp(get_text(s, "a/v"), "1") != 0;
            bad |= put_text(s, "a/w", "2") != ZARR_OK;
            bad |= get_status(s, "none", NULL) != ZARR_ERR_NOT_FOUND;
        }
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    zarr_store_free(before);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS) {
        print_message("skipped: this machine refuses filters of system calls\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* ---- two flushes at once ---- */

/* The kernel tells an error of the disk to one caller of syncfs() on a descriptor. This
 * one does so in the first call, while the second is under way or waits. */
static atomic_int n_syncfs;
static atomic_bool syncfs_fails, syncfs_waits;

int syncfs(int fd)
{
    const int i = atomic_fetch_add(&n_syncfs, 1);

    while (atomic_load(&syncfs_waits))
        usleep(1000);
    if (!atomic_load(&syncfs_fails))
        return fsync(fd);
    for (int ms = 0; i == 0 && ms < 300 && atomic_load(&n_syncfs) < 2; ms++)
        usleep(1000);
    usleep(i == 0 ? 0 : 50000); /* ends last */
    errno = EIO;
    return i == 0 ? -1 : 0;
}

struct flushing {
    zr_thread thread;
    zarr_store *s;
    zarr_status st;
};

static void *flush_it(void *arg)
{
    struct flushing *f = arg;

    f->st = zarr_store_flush(f->s, NULL, NULL);
    return NULL;
}

static void failed_flush_of_another_thread(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_COMMIT, 0, 0);
    struct flushing f[2] = {{.s = s}, {.s = s}};
    zarr_error err = {0};

    assert_status(put_text(s, "v", "1"), ZARR_OK);
    atomic_store(&n_syncfs, 0);
    atomic_store(&syncfs_fails, true);
    for (int i = 0; i < 2; i++)
        assert_status(zr_thread_start(&f[i].thread, flush_it, &f[i], &err), ZARR_OK);
    for (int i = 0; i < 2; i++)
        zr_thread_join(&f[i].thread);
    for (int i = 0; i < 2; i++)
        assert_status(f[i].st, ZARR_ERR_IO);
    atomic_store(&syncfs_fails, false);
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_ERR_IO);
    zarr_store_free(s);
}

/* ---- calls that wait for another one ---- */

static zarr_cancel stop;

static void *stop_soon(void *arg)
{
    (void)arg;
    usleep(30000);
    zarr_cancel_set(&stop);
    return NULL;
}

/* For a flush that hangs, and for the holder of a lock below a prefix. */
static void waits_can_be_cancelled(void **state)
{
    const zarr_store_options o = {.struct_size = sizeof o, .lock_wait_ms = 2000};
    struct world *w = fixture_world(state);
    zarr_store *s = open_local(w, &o);
    struct flushing f = {.s = s};
    zarr_error err = {0};
    void *lock = NULL;
    zr_thread other;

    assert_status(put_text(s, "a/v", "1"), ZARR_OK);
    atomic_store(&n_syncfs, 0);
    atomic_store(&syncfs_waits, true);
    assert_status(zr_thread_start(&f.thread, flush_it, &f, &err), ZARR_OK);
    while (atomic_load(&n_syncfs) == 0)
        usleep(1000);
    for (int i = 0; i < 2; i++) {
        zarr_cancel_reset(&stop);
        assert_status(zr_thread_start(&other, stop_soon, NULL, &err), ZARR_OK);
        if (i == 0) {
            assert_status(zr_store_flush(s, &stop, &err), ZARR_ERR_CANCELLED);
            atomic_store(&syncfs_waits, false);
            zr_thread_join(&f.thread);
            assert_status(f.st, ZARR_OK);
            assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
        } else {
            assert_status(zr_store_erase_prefix(s, "a", &stop, &err), ZARR_ERR_CANCELLED);
        }
        zr_thread_join(&other);
    }
    zr_store_unlock(s, lock);
    assert_string_equal(get_text(s, "a/v"), "1");
    zarr_store_free(s);
}

/* ---- a lock file that another process removes ---- */

/* The store sets the time of a value after it wrote it, before it renames it. */
static char stolen_lock[PATH_MAX];
static int n_steals;

static void write_stolen(void)
{
    FILE *f = NULL;

    unlink(stolen_lock);
    f = fopen(stolen_lock, "w");
    assert_non_null(f);
    fputs("half of a val", f);
    fclose(f);
}

int futimens(int fd, const struct timespec times[2])
{
    if (n_steals > 0) {
        n_steals--;
        write_stolen();
    }
    return (int)syscall(SYS_utimensat, fd, NULL, times, 0);
}

/* An erase removes the value while it holds the lock. */
int unlinkat(int dir, const char *name, int flags)
{
    if (n_steals > 0 && strcmp(name, "v") == 0) {
        n_steals--;
        write_stolen();
    }
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

/* The lock file that another writer made since is not renamed over the key, if the write
 * takes long: here because it is synced. */
static void stolen_locks(void **state)
{
    struct world *w = fixture_world(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_ORDERED, 0, 0);
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_LOCKED,
                        .key = "a/v",
                        .mem = zr_mem_of_host("mine", 4)};
    zarr_error err = {0};
    void *lock = NULL;

    assert_status(put_text(s, "a/v", "old"), ZARR_OK);
    path_in(w, stolen_lock, sizeof stolen_lock, "a/v.__lock");
    n_steals = 1; /* the second try takes the lock that no one holds */
    assert_status(put_text(s, "a/v", "new"), ZARR_OK);
    assert_string_equal(get_text(s, "a/v"), "new");
    assert_false(exists(w, "a/v.__lock"));
    n_steals = 100;
    assert_status(put_text(s, "a/v", "newer"), ZARR_ERR_CONFLICT);
    assert_string_equal(get_text(s, "a/v"), "new");
    n_steals = 0;
    assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
    op.lock = lock;
    n_steals = 1;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
    assert_non_null(strstr(err.message, "its lock file is gone"));
    zr_store_unlock(s, lock);
    assert_true(exists(w, "a/v.__lock"));
    assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
    write_stolen();
    zr_store_unlock(s, lock);
    assert_true(exists(w, "a/v.__lock"));
    assert_string_equal(get_text(s, "a/v"), "new");
    n_steals = 1;
    assert_status(zarr_store_erase(s, "a/v", NULL, &err), ZARR_OK);
    assert_int_equal(n_steals, 0);
    assert_true(exists(w, "a/v.__lock")); /* it is another writer's */
    assert_null(get_text(s, "a/v"));
    zarr_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(no_descriptors),
        T(more_pins_than_descriptors),
        T(file_too_large),
        T(disk_full),
        T(durabilities),
        T(low_descriptors),
        T(fork_with_lock),
        T(sandbox),
        T(failed_flush_of_another_thread),
        T(waits_can_be_cancelled),
        T(stolen_locks),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
