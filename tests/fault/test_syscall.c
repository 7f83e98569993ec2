/*
 * fault/test_syscall.c - the local store while the k-th system call of a class fails,
 * once and then with all later ones, is interrupted, or transfers fewer bytes than asked
 * for. Nothing may crash, hang or leak a descriptor; a failure is reported with its
 * errno; every object is old or new; leftovers have names that no listing shows; and
 * folders on another disk are synced as well. The functions below replace those of the C
 * library.
 */
#include "fault.h"

#include "../sanitizers.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum call {
    CALL_NONE,
    CALL_OPEN,
    CALL_READ,
    CALL_WRITE,
    CALL_SYNC,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_CLOSE,
    CALL_READDIR,
    CALL_STAT,
    CALL_LOCK,
    CALL_MKDIR,
    N_CALLS
};
static const char *const call_names[N_CALLS] = {"",        "open",   "read",   "write",
                                                "sync",    "rename", "unlink", "close",
                                                "readdir", "stat",   "lock",   "mkdir"};

enum how {
    HOW_FAILS,
    HOW_INTERRUPTED, /* EINTR, once */
    HOW_SHORT        /* half of the bytes, from then on */
};

static struct {
    struct fuse fuse;
    enum call call;
    enum how how;
} trap;

/* The C library's own function of this name; the cast is POSIX's way to say it. */
#define REAL(type, name, params)                                                         \
    static type(*real_##name) params;                                                    \
    if (!real_##name)                                                                    \
    *(void **)(&real_##name) = dlsym(RTLD_NEXT, #name)

static bool is_trapped(enum call call)
{
    if (trap.call != call || trap.how == HOW_SHORT || !fuse_burns(&trap.fuse))
        return false;
    errno = trap.how == HOW_INTERRUPTED ? EINTR : EIO;
    return true;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's own
 * names for them are reserved. */
#define PLAIN(call, name, params, args)                                                  \
    int name params                                                                      \
    {                                                                                    \
        REAL(int, name, params);                                                         \
        return is_trapped(call) ? -1 : real_##name args;                                 \
    }

PLAIN(CALL_RENAME, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
PLAIN(CALL_UNLINK, unlinkat, (int dir, const char *name, int flags), (dir, name, flags))
PLAIN(CALL_MKDIR, mkdirat, (int dir, const char *name, mode_t mode), (dir, name, mode))
PLAIN(CALL_STAT, fstat64, (int fd, struct stat64 *st), (fd, st))
PLAIN(CALL_STAT, fstatat64, (int dir, const char *name, struct stat64 *st, int flags),
      (dir, name, st, flags))
PLAIN(CALL_WRITE, ftruncate64, (int fd, off64_t n), (fd, n))
PLAIN(CALL_WRITE, fallocate64, (int fd, int mode, off64_t at, off64_t n),
      (fd, mode, at, n))

/* Inodes that were synced, in order. */
static struct {
    dev_t device;
    ino_t inode;
} synced[32];
static size_t n_synced;

/* No test here needs to wait for a disk. */
static int sync_trapped(int fd)
{
    struct stat st;

    if (is_trapped(CALL_SYNC))
        return -1;
    if (n_synced < sizeof synced / sizeof *synced && fstat(fd, &st) == 0) {
        synced[n_synced].device = st.st_dev;
        synced[n_synced++].inode = st.st_ino;
    }
    return 0;
}

int fsync(int fd)
{
    return sync_trapped(fd);
}

int fdatasync(int fd)
{
    return sync_trapped(fd);
}

int syncfs(int fd)
{
    (void)fd;
    return is_trapped(CALL_SYNC) ? -1 : 0;
}

int close(int fd)
{
    const bool fails = is_trapped(CALL_CLOSE);

    REAL(int, close, (int));
    return real_close(fd) != 0 || fails ? (errno = EIO, -1) : 0;
}

int openat64(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    REAL(int, openat64, (int, const char *, int, ...));
    va_start(ap, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return is_trapped(CALL_OPEN) ? -1 : real_openat64(dir, path, flags, mode);
}

long syscall(long n, ...)
{
    long a[6];
    va_list ap;

    REAL(long, syscall, (long, ...));
    va_start(ap, n);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (n == SYS_openat2 && is_trapped(CALL_OPEN))
        return -1;
    return real_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int fcntl64(int fd, int what, ...)
{
    va_list ap;
    void *arg;

    REAL(int, fcntl64, (int, int, ...));
    va_start(ap, what);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (what == F_OFD_SETLK && ((struct flock *)arg)->l_type == F_WRLCK &&
        is_trapped(CALL_LOCK))
        return -1;
    return real_fcntl64(fd, what, arg);
}

/* Half of n bytes, at least one, if the trap says so. */
static size_t cut(enum call call, size_t n)
{
    return trap.call == call && trap.how == HOW_SHORT && n > 1 && fuse_burns(&trap.fuse)
               ? n / 2
               : n;
}

/* The C library declares some of these inline. */
#ifdef __clang__
#    pragma clang diagnostic ignored "-Wstatic-in-inline"
#endif

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    REAL(ssize_t, pread64, (int, void *, size_t, off64_t));
    if (is_trapped(CALL_READ))
        return -1;
    return real_pread64(fd, to, cut(CALL_READ, n), at);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    REAL(ssize_t, pwrite64, (int, const void *, size_t, off64_t));
    if (is_trapped(CALL_WRITE))
        return -1;
    return real_pwrite64(fd, from, cut(CALL_WRITE, n), at);
}

ssize_t getdents64(int fd, void *to, size_t n)
{
    REAL(ssize_t, getdents64, (int, void *, size_t));
    return is_trapped(CALL_READDIR) ? -1 : real_getdents64(fd, to, n);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* ---- the runs ------------------------------------------------------------ */

/* Works without /proc, which a machine may lack: a new descriptor is the lowest free
 * one. */
static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 40; fd++) /* a leak takes the lowest free number */
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static int no_debris(void *user, const zarr_store_item *item)
{
    const char *name = strrchr(item->key, '/');

    name = name ? name + 1 : item->key;
    if (strstr(name, ".__lock") || strstr(name, ".zarrc-tmp"))
        fail_msg("%s is listed", item->key);
    ++*(int *)user;
    return 0;
}

static int any_debris(void *user, const zarr_store_item *item)
{
    /* Cleaning removes a temporary file once its process is gone. */
    if (!user && !strstr(item->key, ".zarrc-tmp"))
        fail_msg("%s cannot be swept", item->key);
    if (user)
        ++*(int *)user;
    return 0;
}

struct mode {
    uint32_t durability, locks;
};
static const struct mode modes[] = {{ZARR_DURABILITY_EACH, ZARR_LOCKS_OS},
                                    {ZARR_DURABILITY_COMMIT, ZARR_LOCKS_NONE}};

static char root[256];

/* Thousands of small worlds are created and removed. On a disk shared with others
 * this may take many minutes, so scenarios that have not begun after this time are
 * skipped. */
#define DISK_SECONDS 120
static bool in_memory;
static time_t began;

static void open_world(struct world *w, const struct mode *m, const char *extra)
{
    const bool filled = world_files(root, extra);
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_error err;

    opts.flags = ZARR_STORE_CREATE;
    opts.durability = m->durability;
    opts.locks = m->locks;
    world_context(w, 1);
    if (zarr_store_open(&store, w->ctx, root, &opts, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    if (filled)
        w->store = store;
    else
        world_fill(w, store, extra);
}

static void close_world(struct world *w)
{
    world_close(w);
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void check_left_over(struct world *w)
{
    zarr_error err;
    uint64_t n_removed = 0;
    int n = 0, n_debris = 0;

    if (zarr_store_list(w->store, "", ZARR_LIST_RECURSIVE, no_debris, &n, NULL, &err) !=
            ZARR_OK ||
        zarr_store_list(w->store, "", ZARR_LIST_DEBRIS, any_debris, &n_debris, NULL,
                        &err) != ZARR_OK)
        fail_msg("%s", err.message);
    if (n_debris > 0 &&
        (zarr_store_clean(w->store, "", 0, &n_removed, NULL, &err) != ZARR_OK ||
         zarr_store_list(w->store, "", ZARR_LIST_DEBRIS, any_debris, NULL, NULL, &err) !=
             ZARR_OK))
        fail_msg("%s", err.message);
    assert_true(n > 10);
}

/* Scenarios that change nothing share a world. */
static bool only_reads(const struct scenario *s)
{
    static const char *const names[] = {"open", "read", "list", "inspect", "submit"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(s->name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool run_once(struct world *w, const struct scenario *s, int64_t k, bool forever)
{
    const int before = count_descriptors();
    zarr_error err = {0};
    zarr_status st;
    bool reached;

    atomic_store(&w->memory.blown, true); /* see no_fault() */
    fuse_set(&trap.fuse, k, forever);
    st = s->run(w, &err);
    reached = fuse_off(&trap.fuse);
    if (st != ZARR_OK && (trap.how != HOW_FAILS || st != ZARR_ERR_IO || !reached ||
                          err.os_code != EIO || !strchr(err.message, '/')))
        fail_msg("%s, %s %d, how %d, %s: %s: %s", s->name, call_names[trap.call], (int)k,
                 trap.how, forever ? "for ever" : "once", zarr_status_text(st),
                 err.message);
    if (count_descriptors() != before)
        fail_msg("%s, %s %d: %d descriptors, %d before", s->name, call_names[trap.call],
                 (int)k, count_descriptors(), before);
    world_check(w, s, st == ZARR_OK);
    check_left_over(w);
    return reached;
}

/* Runs each k; with all later ones failing: each of the first k, then samples. Returns
 * the number of runs. */
static int run_class(const struct scenario *s, const struct mode *m, bool forever)
{
    const bool keep = only_reads(s);
    bool reached = true;
    struct world w;
    int64_t step;
    int n = 0;

    if (keep)
        open_world(&w, m, s->extra);
    for (int64_t k = 1; reached; k += step, n++) {
        step = ZR_FAIL_STEP(k);
        if (forever && k > 6 && step < 5)
            step = 5;
        if (!keep)
            open_world(&w, m, s->extra);
        reached = run_once(&w, s, k, forever);
        if (!keep)
            close_world(&w);
    }
    if (keep)
        close_world(&w);
    return n;
}

static void test_scenario(void **state)
{
    const struct scenario *s = *state;
    int n = 0;

    if (!in_memory && time(NULL) - began > DISK_SECONDS) {
        print_message("skipped: there is no /dev/shm to write to, and on the disk the "
                      "scenarios before took more than %d s\n",
                      DISK_SECONDS);
        skip();
    }
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        if (m > 0 && only_reads(s))
            continue;
        trap.how = HOW_FAILS;
        for (trap.call = 1; trap.call < N_CALLS; trap.call++)
            n += run_class(s, &modes[m], false) + run_class(s, &modes[m], true);
        trap.how = HOW_INTERRUPTED;
        for (trap.call = 1; trap.call < N_CALLS; trap.call++)
            if (trap.call == CALL_OPEN || trap.call == CALL_READ ||
                trap.call == CALL_WRITE || trap.call == CALL_SYNC ||
                trap.call == CALL_READDIR || trap.call == CALL_LOCK)
                n += run_class(s, &modes[m], false);
        trap.how = HOW_SHORT;
        trap.call = CALL_READ;
        n += run_class(s, &modes[m], true);
        trap.call = CALL_WRITE;
        n += run_class(s, &modes[m], true);
    }
    trap.call = CALL_NONE;
    print_message("%s: %d runs\n", s->name, n);
}

/* ---- another disk -------------------------------------------------------- */

static bool was_synced(const struct stat *st)
{
    bool found = false;

    for (size_t i = 0; i < n_synced; i++)
        found |= synced[i].device == st->st_dev && synced[i].inode == st->st_ino;
    n_synced = 0;
    return found;
}

static struct stat stat_file(const char *dir, const char *name)
{
    char path[600];
    struct stat st = {0};

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(stat(path, &st), 0);
    return st;
}

static void on_another_disk(zarr_store *s, const char *disk)
{
    zarr_error err;
    struct stat top = stat_file(disk, "."), d1, d2;

    n_synced = 0;
    assert_int_equal(zarr_store_put(s, "l/d1/d2/k", "x", 1, NULL, &err), ZARR_OK);
    d1 = stat_file(disk, "d1");
    d2 = stat_file(disk, "d1/d2");
    for (int i = 0; i < 3; i++) { /* each contains a new name */
        const size_t n = n_synced;

        assert_true(was_synced(i == 0 ? &top : i == 1 ? &d1 : &d2));
        n_synced = n;
    }
    n_synced = 0;
    assert_int_equal(zarr_store_erase(s, "l/d1/d2/k", NULL, &err), ZARR_OK);
    assert_true(was_synced(&d2));
    /* On the root's disk flush() syncs everything. */
    assert_int_equal(zarr_store_put(s, "here/k", "x", 1, NULL, &err), ZARR_OK);
    assert_int_equal(zarr_store_erase(s, "here/k", NULL, &err), ZARR_OK);
    assert_int_equal(n_synced, 0);
    assert_int_equal(zarr_store_flush(s, NULL, &err), ZARR_OK);
}

static void test_another_disk(void **state)
{
    char disk[] = "/dev/shm/zarrc-disk-XXXXXX", here[] = "/tmp/zarrc-disk-XXXXXX";
    char link[64];
    struct stat a, b;

    (void)state;
    if (access("/dev/shm", W_OK) != 0 || stat("/dev/shm", &a) != 0 ||
        stat("/tmp", &b) != 0 || a.st_dev == b.st_dev) {
        print_message("skipped: /tmp and /dev/shm are no two disks\n");
        skip();
    }
    assert_non_null(mkdtemp(disk));
    assert_non_null(mkdtemp(here));
    snprintf(link, sizeof link, "%s/l", here);
    assert_int_equal(symlink(disk, link), 0);
    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        const zarr_store_options opts = {.struct_size = sizeof opts,
                                         .durability = ZARR_DURABILITY_COMMIT,
                                         .symlinks = ZARR_SYMLINKS_FOLLOW,
                                         .locks = locks};
        char inner[600];
        struct world w;
        zarr_error err;

        world_context(&w, 1);
        assert_int_equal(zarr_store_open(&w.store, w.ctx, here, &opts, &err), ZARR_OK);
        on_another_disk(w.store, disk);
        world_close(&w);
        snprintf(inner, sizeof inner, "%s/d1", disk);
        assert_int_equal(nftw(inner, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
    assert_int_equal(nftw(disk, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(nftw(here, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
    static struct CMUnitTest tests[64];
    size_t n;
    const char *tmp = getenv("TMPDIR");

    began = time(NULL);
    in_memory = access("/dev/shm", W_OK) == 0;
    if (in_memory)
        tmp = "/dev/shm";
    snprintf(root, sizeof root, "%s/zarrc-syscall-%d", tmp ? tmp : "/tmp", (int)getpid());
    n = scenario_tests(tests, 63, test_scenario);
    tests[n] = (struct CMUnitTest){"another disk", test_another_disk, NULL, NULL, NULL};
    return _cmocka_run_group_tests("syscall", tests, n + 1, NULL, NULL);
}
