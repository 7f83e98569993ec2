/*
 * unit/store/test_lock.c - no update is lost: threads and processes increment counters
 * in one value under its lock, and the totals are exact. Writers that know only the
 * protocol (TensorStore's, done below with plain system calls) take part.
 * test_lock_holders.c is about those that hold a lock. Arguments: processes threads
 * increments.
 */
#include "store_test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t n_processes = 4, max_threads = 4, n_increments = 50;

/* ---- incrementing through the store ---- */

static zarr_status increment_locked(zarr_store *s, const char *key)
{
    uint64_t value = 0;
    void *lock = NULL;
    zarr_store_op get = get_op(key, 0, sizeof value, &value, sizeof value);
    zarr_store_op put = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = key};
    zarr_error err = {0};
    zarr_status st = zr_store_lock(s, key, NULL, &lock, &err);

    if (st != ZARR_OK)
        return st;
    st = zr_store_run_one(s, &get, &err);
    if (st == ZARR_OK || st == ZARR_ERR_NOT_FOUND) {
        value++;
        put.lock = lock;
        put.mem = zr_mem_of_host(&value, sizeof value);
        st = zr_store_run_one(s, &put, &err);
    }
    zr_store_unlock(s, lock);
    if (st != ZARR_OK)
        fprintf(stderr, "increment: %s\n", err.message);
    return st;
}

static zarr_status increment_conditional(zarr_store *s, const char *key)
{
    zarr_status st;

    do {
        uint64_t value = 0;
        zarr_store_op get = get_op(key, 0, sizeof value, &value, sizeof value);
        zarr_store_op put = {
            .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_IF_VERSION, .key = key};

        st = zr_store_run_one(s, &get, NULL);
        if (st == ZARR_ERR_NOT_FOUND)
            get.version = (zarr_store_version){{0}};
        else if (st != ZARR_OK)
            return st;
        value++;
        put.version = get.version;
        put.mem = zr_mem_of_host(&value, sizeof value);
        st = zr_store_run_one(s, &put, NULL);
    } while (st == ZARR_ERR_CONFLICT);
    return st;
}

struct worker {
    zarr_store *s;
    zarr_status (*increment)(zarr_store *s, const char *key);
    zarr_status st;
    zr_thread thread;
};

static void *work(void *arg)
{
    struct worker *x = arg;

    for (uint64_t i = 0; i < n_increments && x->st == ZARR_OK; i++)
        x->st = x->increment(x->s, "a/counter");
    return NULL;
}

/* Returns 0 on success. */
static int work_in_threads(zarr_store *s,
                           zarr_status (*increment)(zarr_store *, const char *))
{
    struct worker x[64] = {{0}};
    int bad = 0;

    for (uint64_t i = 0; i < max_threads; i++) {
        x[i].s = s;
        x[i].increment = increment;
        bad |= zr_thread_start(&x[i].thread, work, &x[i], NULL) != ZARR_OK;
    }
    for (uint64_t i = 0; i < max_threads; i++) {
        zr_thread_join(&x[i].thread);
        bad |= x[i].st != ZARR_OK;
    }
    return bad;
}

/* ---- a writer that knows only the protocol ---- */

static int protocol_open(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

static int protocol_increment(const char *dir)
{
    char data[256], lock[256];
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat a, b;
    uint64_t value = 0;
    int fd, other, in;

    snprintf(data, sizeof data, "%s/a/counter", dir);
    snprintf(lock, sizeof lock, "%s/a/counter.__lock", dir);
    fd = protocol_open(lock);
    for (;;) {
        if (fd < 0 || fcntl(fd, F_OFD_SETLKW, &fl) != 0)
            return 1;
        other = protocol_open(lock);
        if (fstat(fd, &a) != 0 || fstat(other, &b) != 0)
            return 1;
        if (a.st_dev == b.st_dev && a.st_ino == b.st_ino)
            break;
        close(fd);
        fd = other;
    }
    close(other);
    in = open(data, O_RDONLY | O_CLOEXEC);
    if (in >= 0 && read(in, &value, sizeof value) != sizeof value)
        return 1;
    if (in >= 0)
        close(in);
    value++;
    if (ftruncate(fd, 0) != 0 || pwrite(fd, &value, sizeof value, 0) != sizeof value ||
        rename(lock, data) != 0)
        return 1;
    close(fd);
    return 0;
}

/* ---- all together ---- */

static uint64_t total_in(zarr_store *s)
{
    uint64_t value = 0, n = sizeof value;
    zarr_error err;

    assert_status(zarr_store_get(s, "a/counter", 0, &value, &n, NULL, &err), ZARR_OK);
    assert_int_equal(n, sizeof value);
    return value;
}

static void wait_for(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        int status = 0;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

static int count_rows(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static void run_processes(zarr_status (*increment)(zarr_store *, const char *),
                          bool strangers)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    uint64_t want = n_processes * max_threads * n_increments;
    struct world w;
    zarr_store *s;
    zarr_error err;
    int n_debris = 0;

    world_init(&w);
    s = open_local(&w, &o);
    assert_status(put_text(s, "a/other", ""), ZARR_OK);
    for (uint64_t p = 0; p < n_processes; p++) {
        if (fork() == 0) {
            if (strangers && p % 2 == 0) {
                for (uint64_t i = 0; i < max_threads * n_increments; i++)
                    if (protocol_increment(w.dir) != 0)
                        _exit(1);
                _exit(0);
            }
            /* alternately its own handle and the inherited one */
            _exit(work_in_threads(p % 3 == 0 ? open_local(&w, &o) : s, increment));
        }
    }
    wait_for(n_processes);
    assert_int_equal(total_in(s), want);
    assert_status(
        zarr_store_list(s, "", ZARR_LIST_DEBRIS, count_rows, &n_debris, NULL, &err),
        ZARR_OK);
    assert_int_equal(n_debris, 0);
    zarr_store_free(s);
    world_free(&w);
}

static void processes_and_threads(void **state)
{
    (void)state;
    run_processes(increment_locked, false);
}

static void processes_by_condition(void **state)
{
    (void)state;
    run_processes(increment_conditional, false);
}

static void with_strangers(void **state)
{
    (void)state;
    run_processes(increment_locked, true);
}

/* ---- lock files with other names ---- */

/* Gives the lock file other names, as a backup by hard links does, and puts a file of its
 * own in the lock file's place while there is none. Ends by SIGKILL. */
static void link_for_ever(const char *dir)
{
    char lock[256], copy[256], victim[256];

    snprintf(lock, sizeof lock, "%s/a/counter.__lock", dir);
    snprintf(copy, sizeof copy, "%s/copy", dir);
    snprintf(victim, sizeof victim, "%s/victim", dir);
    for (;;) {
        if (link(lock, copy) == 0)
            (void)unlink(copy);
        (void)!link(victim, lock);
        usleep(20);
    }
}

static void with_hard_links(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    char victim[256], text[16] = "";
    struct world w;
    zarr_store *s;
    int fd, status, n_linkers = 2;
    pid_t linker[2];

    (void)state;
    world_init(&w);
    s = open_local(&w, &o);
    assert_status(put_text(s, "a/other", ""), ZARR_OK);
    path_in(&w, victim, sizeof victim, "victim");
    fd = open(victim, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, "victim", 6), 6);
    for (int i = 0; i < n_linkers; i++) {
        linker[i] = fork();
        if (linker[i] == 0)
            link_for_ever(w.dir);
    }
    for (uint64_t p = 0; p < n_processes; p++)
        if (fork() == 0)
            _exit(work_in_threads(p % 2 ? open_local(&w, &o) : s, increment_locked));
    wait_for(n_processes);
    for (int i = 0; i < n_linkers; i++) {
        assert_int_equal(kill(linker[i], SIGKILL), 0);
        assert_int_equal(waitpid(linker[i], &status, 0), linker[i]);
    }
    assert_int_equal(total_in(s), n_processes * max_threads * n_increments);
    assert_int_equal(pread(fd, text, sizeof text, 0), 6);
    assert_string_equal(text, "victim");
    close(fd);
    zarr_store_free(s);
    world_free(&w);
}

static void threads_on_every_store(void **state)
{
    static const struct {
        enum sort sort;
        zarr_status (*increment)(zarr_store *s, const char *key);
    } cases[] = {
        {SORT_LOCAL, increment_locked},          {SORT_LOCAL, increment_conditional},
        {SORT_LOCAL_NO_LOCKS, increment_locked}, {SORT_MEMORY, increment_locked},
        {SORT_MEMORY, increment_conditional},    {SORT_ASYNC, increment_locked},
        {SORT_ASYNC, increment_conditional},     {SORT_PLAIN, increment_locked},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct world w;
        zarr_store *s;

        world_init(&w);
        s = open_sort(&w, cases[i].sort);
        assert_int_equal(work_in_threads(s, cases[i].increment), 0);
        assert_int_equal(total_in(s), max_threads * n_increments);
        zarr_store_free(s);
        world_free(&w);
    }
}

/* ---- erasing beside a counter ---- */

struct eraser {
    zarr_store *s;
    atomic_bool stop;
    atomic_uint_fast64_t n_begun, n_done; /* increments */
    atomic_int n_bad;
};

static void *count_up(void *arg)
{
    struct eraser *x = arg;

    while (!atomic_load(&x->stop)) {
        atomic_fetch_add(&x->n_begun, 1);
        if (increment_locked(x->s, "a/b/counter") != ZARR_OK)
            atomic_fetch_add(&x->n_bad, 1);
        atomic_fetch_add(&x->n_done, 1);
    }
    return NULL;
}

/* Fails if the count is more than all increments that may have come after `before`. */
static void assert_counted_since(struct eraser *x, zarr_store *s, uint64_t before)
{
    uint64_t value = 0, n = sizeof value, begun;
    zarr_error err = {0};
    const zarr_status st = zarr_store_get(s, "a/b/counter", 0, &value, &n, NULL, &err);

    if (st != ZARR_OK && st != ZARR_ERR_NOT_FOUND)
        fail_msg("%s", err.message);
    begun = atomic_load(&x->n_begun);
    if (value > begun - before)
        fail_msg("the erased count goes on: %" PRIu64 ", at most %" PRIu64, value,
                 begun - before);
}

/* An erase begins the count anew, whatever it meets: a value that was read before it is
 * not written after it. Both ends have handles of their own, as processes have. */
static void erases_are_not_lost(void **state)
{
    struct world w;
    struct eraser x = {.s = NULL};
    zr_thread counter[2];
    zarr_store *s = NULL;
    zarr_error err = {0};

    (void)state;
    world_init(&w);
    x.s = open_sort(&w, SORT_LOCAL);
    s = open_sort(&w, SORT_LOCAL);
    for (size_t i = 0; i < ZR_COUNT(counter); i++)
        assert_status(zr_thread_start(&counter[i], count_up, &x, NULL), ZARR_OK);
    for (uint64_t i = 0; i < 10 * n_increments; i++) {
        const uint64_t before = atomic_load(&x.n_done);
        const zarr_status st = zarr_store_erase(s, "a/b/counter", NULL, &err);

        if (st != ZARR_OK && st != ZARR_ERR_NOT_FOUND)
            fail_msg("%s", err.message);
        assert_counted_since(&x, s, before);
        while (atomic_load(&x.n_done) < before + 6 && atomic_load(&x.n_bad) == 0)
            sched_yield();
        assert_counted_since(&x, s, before);
    }
    atomic_store(&x.stop, true);
    for (size_t i = 0; i < ZR_COUNT(counter); i++)
        zr_thread_join(&counter[i]);
    assert_int_equal(x.n_bad, 0);
    zarr_store_free(s);
    zarr_store_free(x.s);
    world_free(&w);
}

/* Readers and plain writers see complete values while others hold locks, and directories
 * may disappear. */
struct shaker {
    zarr_store *s;
    atomic_bool stop;
    atomic_int n_bad;
};

static void *shake_erase(void *arg)
{
    struct shaker *x = arg;

    while (!atomic_load(&x->stop)) {
        if (zarr_store_erase_prefix(x->s, "d", NULL, NULL) != ZARR_OK)
            atomic_fetch_add(&x->n_bad, 1);
        usleep(200);
    }
    return NULL;
}

static void *shake_read(void *arg)
{
    struct shaker *x = arg;
    char to[6000];

    while (!atomic_load(&x->stop)) {
        uint64_t n = sizeof to;
        zarr_status st = zarr_store_get(x->s, "d/e/f/v", 0, to, &n, NULL, NULL);

        if (st == ZARR_ERR_NOT_FOUND)
            continue;
        if (st != ZARR_OK || n == sizeof to || n < 1000) {
            atomic_fetch_add(&x->n_bad, 1);
            continue;
        }
        for (uint64_t i = 1; i < n; i++)
            if (to[i] != to[0] || n != (uint64_t)(to[0] - 'a' + 1) * 1000) {
                atomic_fetch_add(&x->n_bad, 1);
                break;
            }
    }
    return NULL;
}

static void vanishing_directories(void **state)
{
    static const enum sort sorts[] = {SORT_LOCAL, SORT_LOCAL_NO_LOCKS, SORT_MEMORY};
    static char value[5000];

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(sorts); k++) {
        struct world w;
        struct shaker x = {.s = NULL};
        zr_thread eraser, reader;
        zarr_error err = {0};
        zarr_status st = ZARR_OK;

        world_init(&w);
        x.s = open_sort(&w, sorts[k]);
        assert_status(zr_thread_start(&eraser, shake_erase, &x, NULL), ZARR_OK);
        assert_status(zr_thread_start(&reader, shake_read, &x, NULL), ZARR_OK);
        for (uint64_t i = 0; i < 10 * n_increments && st == ZARR_OK; i++) {
            uint64_t n = 1 + i % 5;

            memset(value, (int)('a' + n - 1), sizeof value);
            st = zarr_store_put(x.s, "d/e/f/v", value, n * 1000, NULL, &err);
            if (st == ZARR_ERR_IO && sorts[k] == SORT_LOCAL_NO_LOCKS &&
                err.os_code == ENOENT)
                st = ZARR_OK; /* the directory of its temporary file is gone: an error,
                                 nothing torn */
        }
        atomic_store(&x.stop, true);
        zr_thread_join(&eraser);
        zr_thread_join(&reader);
        if (st != ZARR_OK)
            fail_msg("%s", err.message);
        assert_int_equal(x.n_bad, 0);
        zarr_store_free(x.s);
        world_free(&w);
    }
}

/* An erase that another lock guards waits for no lock of its key; others do. */
static void guarded_erase(void **state)
{
    char value = '1';
    zarr_store_op put = {
        .verb = ZARR_STORE_PUT, .key = "a/v", .mem = zr_mem_of_host(&value, 1)};
    zarr_store_op erase = {.verb = ZARR_STORE_ERASE, .key = "a/v"};
    struct world w;
    zarr_store *s;
    zarr_error err = {0};
    void *lock = NULL;

    (void)state;
    world_init(&w);
    w.lock_wait_ms = 20;
    s = open_sort(&w, SORT_LOCAL);
    assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
    assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
    assert_status(zr_store_run_one(s, &erase, &err), ZARR_ERR_IO);
    erase.flags = ZR_STORE_OP_GUARDED;
    assert_status(zr_store_run_one(s, &erase, &err), ZARR_OK);
    zr_store_unlock(s, lock);
    assert_status(zr_store_run_one(s, &erase, &err), ZARR_ERR_NOT_FOUND);
    zarr_store_free(s);
    world_free(&w);
}

/* A PUT tells the version if that is asked, and leaves it alone otherwise. */
static void version_if_asked(void **state)
{
    const zarr_store_version none = {{0}};
    char value = '1';
    zarr_store_op put = {
        .verb = ZARR_STORE_PUT, .key = "a/v", .mem = zr_mem_of_host(&value, 1)};
    zarr_store_op get = get_op("a/v", 0, 1, &value, 1);
    struct world w;
    zarr_store *s;
    zarr_error err = {0};

    (void)state;
    world_init(&w);
    s = open_sort(&w, SORT_LOCAL);
    assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
    assert_true(zr_store_version_equal(&put.version, &none));
    put.flags = ZARR_STORE_OP_WANT_VERSION;
    assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
    get.flags = ZARR_STORE_OP_WANT_VERSION;
    assert_status(zr_store_run_one(s, &get, &err), ZARR_OK);
    assert_true(zr_store_version_equal(&put.version, &get.version));
    zarr_store_free(s);
    world_free(&w);
}

/* A PUT tells whether its key was new, without another look at the file. */
static void created_if_told(void **state)
{
    char value[] = "12";
    zarr_error err = {0};

    (void)state;
    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
        struct world w;
        zarr_store *s;

        world_init(&w);
        o.locks = locks;
        s = open_local(&w, &o);
        for (int i = 0; i < 4; i++) {
            zarr_store_op put = {.verb = ZARR_STORE_PUT,
                                 .flags = ZR_STORE_OP_TELL,
                                 .key = i < 2 ? "a/v" : "a/w",
                                 .mem = zr_mem_of_host(value, i < 2 ? 1 : 2)};
            zarr_store_op stat = {.verb = ZARR_STORE_STAT,
                                  .flags = ZARR_STORE_OP_WANT_VERSION,
                                  .key = put.key};

            assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
            assert_int_equal((put.flags & ZR_STORE_OP_CREATED) != 0,
                             i % 2 == 0 && locks == ZARR_LOCKS_OS);
            assert_status(zr_store_run_one(s, &stat, &err), ZARR_OK);
            assert_true(zr_store_version_equal(&put.version, &stat.version));
        }
        zarr_store_free(s);
        world_free(&w);
    }
}

static struct world *renamed;

static void rename_folder(void *user, uint32_t level, const char *text)
{
    char from[256], to[256];

    (void)user;
    (void)level;
    if (strcmp(text, "lock a/1: taken") != 0)
        return;
    path_in(renamed, from, sizeof from, "a");
    path_in(renamed, to, sizeof to, "b");
    assert_int_equal(rename(from, to), 0);
}

/* A folder that another process renames meanwhile is not made again for its locks. */
static void waiting_makes_nothing(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o};
    char path[256];
    zarr_error err = {0};
    struct world w;
    struct stat st;
    zarr_store *s;

    (void)state;
    world_init(&w);
    renamed = &w;
    w.env.log = (struct zr_log){.fn = rename_folder, .level = ZARR_LOG_DEBUG};
    s = open_local(&w, &o);
    path_in(&w, path, sizeof path, "a");
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 1; i <= 2; i++) {
        int fd;

        path_in(&w, path, sizeof path, i == 1 ? "a/1.__lock" : "a/2.__lock");
        fd = open(path, O_CREAT | O_WRONLY, 0666);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_status(zr_store_wait_for_writers(s, "a", NULL, &err), ZARR_OK);
    path_in(&w, path, sizeof path, "b");
    assert_int_equal(stat(path, &st), 0);
    path_in(&w, path, sizeof path, "a");
    assert_int_equal(stat(path, &st), -1);
    zarr_store_free(s);
    world_free(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_and_threads),
        cmocka_unit_test(processes_by_condition),
        cmocka_unit_test(with_strangers),
        cmocka_unit_test(with_hard_links),
        cmocka_unit_test(threads_on_every_store),
        cmocka_unit_test(erases_are_not_lost),
        cmocka_unit_test(vanishing_directories),
        cmocka_unit_test(guarded_erase),
        cmocka_unit_test(version_if_asked),
        cmocka_unit_test(created_if_told),
        cmocka_unit_test(waiting_makes_nothing),
    };
    uint64_t *const number[] = {&n_processes, &max_threads, &n_increments};

    for (int i = 1; i < argc && i <= 3; i++)
        *number[i - 1] = strtoull(argv[i], NULL, 10);
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
