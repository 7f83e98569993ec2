/*
 * unit/store/test_lock_holders.c - those that hold a lock, and those that wait for it: a
 * holder that dies has the lock no more, a lock file that has another name is not written
 * to, no forked child keeps a lock, and a wait ends after lock_wait_ms and says who holds
 * the lock.
 */
#include "store_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A holder in another process is waited for. Its lock is free when it dies. */
static void holder_dies(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    struct world w;
    zarr_store *s;
    int pipe_fd[2], status;
    uint64_t died = 0, put = 0;
    char byte;
    pid_t pid;

    (void)state;
    world_init(&w);
    s = open_local(&w, &o);
    assert_int_equal(pipe(pipe_fd), 0);
    pid = fork();
    if (pid == 0) {
        void *lock = NULL;
        zarr_status st = zr_store_lock(s, "a/v", NULL, &lock, NULL);

        (void)!write(pipe_fd[1], "", st == ZARR_OK);
        usleep(100000);
        died = zr_now_ns();
        (void)!write(pipe_fd[1], &died, sizeof died);
        _exit(0); /* without unlocking, like a crash */
    }
    assert_int_equal(read(pipe_fd[0], &byte, 1), 1);
    assert_status(put_text(s, "a/v", "mine"), ZARR_OK);
    put = zr_now_ns();
    assert_int_equal(read(pipe_fd[0], &died, sizeof died), sizeof died);
    assert_true(put > died);
    waitpid(pid, &status, 0);
    assert_string_equal(get_text(s, "a/v"), "mine");
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    zarr_store_free(s);
    world_free(&w);
}

/* ---- lock files with another name ---- */

/* A killed writer left a lock file, and a copy of the store by hard links shares it. */
static void share_lock_file(struct world *w, const char *name, char *copy, size_t cap)
{
    char lock[256];
    int fd;

    path_in(w, lock, sizeof lock, name);
    path_in(w, copy, cap, "copy");
    fd = open(lock, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    assert_int_equal(write(fd, "a copy", 6), 6);
    close(fd);
    (void)unlink(copy);
    assert_int_equal(link(lock, copy), 0);
}

static void assert_text_in(const char *path, const char *want)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    assert_string_equal(text, want);
}

static void hard_links(void **state)
{
    static const char *const keys[] = {"a/v", "a/zarr.json"};
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    char copy[256], name[64];
    struct world w;
    zarr_store *s;

    (void)state;
    world_init(&w);
    s = open_local(&w, &o);
    for (size_t i = 0; i < ZR_COUNT(keys); i++) {
        zarr_store_op put = {.verb = ZARR_STORE_PUT,
                             .flags = ZARR_STORE_OP_LOCKED,
                             .key = keys[i],
                             .mem = zr_mem_of_host("2", 1)};
        zarr_error err = {0};

        snprintf(name, sizeof name, "%s.__lock", keys[i]);
        assert_status(put_text(s, keys[i], "0"), ZARR_OK);
        share_lock_file(&w, name, copy, sizeof copy);
        assert_status(put_text(s, keys[i], "1"), ZARR_OK);
        assert_text_in(copy, "a copy");
        assert_string_equal(get_text(s, keys[i]), "1");
        share_lock_file(&w, name, copy, sizeof copy);
        assert_status(zr_store_lock(s, keys[i], NULL, &put.lock, &err), ZARR_OK);
        assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
        zr_store_unlock(s, put.lock);
        assert_text_in(copy, "a copy");
        assert_string_equal(get_text(s, keys[i]), "2");
        share_lock_file(&w, name, copy, sizeof copy);
        assert_status(zarr_store_erase(s, keys[i], NULL, &err), ZARR_OK);
        assert_text_in(copy, "a copy");
    }
    zarr_store_free(s);
    world_free(&w);
}

struct putter {
    zarr_store *s;
    zarr_status st;
};

static void *put_value(void *arg)
{
    struct putter *x = arg;

    x->st = put_text(x->s, "a/v", "mine");
    return NULL;
}

/* Waits until this process has the file open once more. fstatat(), as the thread
 * sanitizer takes fstat() of a file that another thread closes for a race. */
static void await_opener(const char *path, int n_wanted)
{
    struct stat want, st;

    assert_int_equal(stat(path, &want), 0);
    for (int n = 0; n < n_wanted; usleep(1000)) {
        n = 0;
        for (int fd = 0; fd < 256; fd++)
            n += fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_ino == want.st_ino &&
                 st.st_dev == want.st_dev;
    }
}

/* A holder that removes the name of a shared lock file and makes a new one: who waits for
 * the old file goes on to the new one, and waits for that. */
static void waiter_of_shared_file(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char copy[256], lock[256];
    struct putter x = {.s = NULL};
    struct world w;
    zr_thread thread;
    int old, fresh;

    (void)state;
    world_init(&w);
    x.s = open_local(&w, &o);
    assert_status(put_text(x.s, "a/v", "theirs"), ZARR_OK);
    path_in(&w, lock, sizeof lock, "a/v.__lock");
    share_lock_file(&w, "a/v.__lock", copy, sizeof copy);
    old = open(lock, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(old, F_OFD_SETLK, &fl), 0);
    assert_status(zr_thread_start(&thread, put_value, &x, NULL), ZARR_OK);
    await_opener(copy, 2);
    assert_int_equal(unlink(lock), 0);
    fresh = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    assert_int_equal(fcntl(fresh, F_OFD_SETLK, &fl), 0);
    close(old);
    await_opener(lock, 2);
    assert_string_equal(get_text(x.s, "a/v"), "theirs");
    assert_int_equal(unlink(lock), 0);
    close(fresh);
    zr_thread_join(&thread);
    assert_status(x.st, ZARR_OK);
    assert_string_equal(get_text(x.s, "a/v"), "mine");
    assert_text_in(copy, "a copy");
    zarr_store_free(x.s);
    world_free(&w);
}

/* ---- forked children ---- */

/* A child that was forked while this process held a lock does not keep it. */
static void child_keeps_no_lock(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    int ready[2], status;
    struct world w;
    zarr_store *s;
    pid_t owner, child = 0;

    (void)state;
    world_init(&w);
    s = open_local(&w, &o);
    assert_int_equal(pipe(ready), 0);
    owner = fork();
    if (owner == 0) {
        void *lock = NULL;

        if (zr_store_lock(s, "a/v", NULL, &lock, NULL) != ZARR_OK)
            _exit(1);
        child = fork();
        if (child == 0)
            for (;;)
                pause();
        (void)!write(ready[1], &child, sizeof child);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &child, sizeof child), sizeof child);
    assert_int_equal(kill(owner, SIGKILL), 0);
    waitpid(owner, &status, 0);
    o.lock_wait_ms = 5000;
    zarr_store_free(s);
    s = open_local(&w, &o);
    assert_status(put_text(s, "a/v", "mine"), ZARR_OK);
    assert_int_equal(kill(child, SIGKILL), 0);
    close(ready[0]);
    close(ready[1]);
    zarr_store_free(s);
    world_free(&w);
}

/* The same while other threads take and give locks, and sweep lock files: a child holds
 * no lock at whatever moment it was forked. A descriptor whose lock the parent has
 * released is harmless, so this counts locks, as the kernel lists them. */
static int count_locks(void)
{
    char path[40], text[1024];
    int n = 0;

    for (int fd = 0; fd < 256; fd++) {
        ssize_t got = 0;
        int info;

        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
        info = open(path, O_RDONLY | O_CLOEXEC);
        if (info < 0)
            continue;
        got = read(info, text, sizeof text - 1);
        close(info);
        text[got > 0 ? got : 0] = '\0';
        n += strstr(text, "lock:") != NULL;
    }
    return n;
}

struct sweeper {
    zarr_store *s;
    atomic_bool stop;
    atomic_int n_bad;
};

static void *sweep(void *arg)
{
    struct sweeper *x = arg;

    while (!atomic_load(&x->stop))
        if (zarr_store_clean(x->s, "", 0, NULL, NULL, NULL) != ZARR_OK ||
            put_text(x->s, "a/swept", "1") != ZARR_OK)
            atomic_fetch_add(&x->n_bad, 1);
    return NULL;
}

static void fork_at_any_moment(void **state)
{
    zarr_store_options o = {.struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE};
    struct world w;
    struct sweeper x = {.s = NULL};
    const int before = count_locks(); /* those of the program that started this one */
    zr_thread thread;
    void *lock = NULL;
    int n_bad = 0;

    (void)state;
    world_init(&w);
    x.s = open_local(&w, &o);
    assert_status(zr_store_lock(x.s, "a/held", NULL, &lock, NULL), ZARR_OK);
    assert_status(zr_thread_start(&thread, sweep, &x, NULL), ZARR_OK);
    for (int i = 0; i < 200; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0)
            _exit(count_locks() - before);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        n_bad += status != 0;
    }
    atomic_store(&x.stop, true);
    zr_thread_join(&thread);
    assert_int_equal(x.n_bad, 0);
    assert_int_equal(n_bad, 0);
    if (access("/proc/self/fdinfo", R_OK) == 0)
        assert_int_equal(count_locks() - before, 1);
    zr_store_unlock(x.s, lock);
    zarr_store_free(x.s);
    world_free(&w);
}

/* ---- waits that end ---- */

struct messages {
    char text[1024];
    int n;
};

static void note_message(void *user, uint32_t level, const char *text)
{
    struct messages *m = user;

    if (level == ZARR_LOG_WARN) {
        m->n++;
        snprintf(m->text, sizeof m->text, "%s", text);
    }
}

/* One warning, then IO with ETIMEDOUT; both name the key and `holder`. */
static void assert_wait_ends(zarr_store *s, struct messages *m, const char *holder)
{
    uint64_t begin = zr_now_ns();
    zarr_error err = {0};

    m->n = 0;
    assert_status(zarr_store_put(s, "a/v", "x", 1, NULL, &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, ETIMEDOUT);
    assert_true(zr_now_ns() - begin >= 150000000);
    assert_non_null(strstr(err.message, "a/v: no lock within 0.15 s"));
    assert_non_null(strstr(err.message, holder));
    assert_int_equal(m->n, 1);
    assert_non_null(strstr(m->text, "a/v: has waited 0.05 s"));
    assert_non_null(strstr(m->text, holder));
}

static void waits_end(void **state)
{
    zarr_store_options o = {
        .struct_size = sizeof o, .durability = ZARR_DURABILITY_NONE, .lock_wait_ms = 150};
    struct messages m = {.n = 0};
    struct world w;
    zarr_store *s, *other;
    char holder[64];
    int ready[2], status;
    void *lock = NULL;
    pid_t pid;

    (void)state;
    world_init(&w);
    w.env.log = (struct zr_log){.fn = note_message, .user = &m, .level = ZARR_LOG_WARN};
    w.env.lock_warn_ns = 50000000;
    s = open_local(&w, &o);
    other = open_local(&w, &o);
    assert_status(zr_store_lock(s, "a/v", NULL, &lock, NULL), ZARR_OK);
    assert_wait_ends(s, &m, "a thread of this process");
    assert_wait_ends(other, &m, "this process by another handle");
    zr_store_unlock(s, lock);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (zr_store_lock(s, "a/v", NULL, &lock, NULL) == ZARR_OK)
            (void)!write(ready[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], holder, 1), 1);
    snprintf(holder, sizeof holder, "process %d (", (int)pid);
    assert_wait_ends(s, &m, access("/proc/self/fd", R_OK) == 0 ? holder : "unknown");
    assert_int_equal(kill(pid, SIGKILL), 0);
    waitpid(pid, &status, 0);
    assert_status(put_text(s, "a/v", "free"), ZARR_OK);
    close(ready[0]);
    close(ready[1]);
    zarr_store_free(other);
    zarr_store_free(s);
    world_free(&w);
}

/* Stores whose only locks are those between the threads of a handle. */
static void waits_end_on_every_store(void **state)
{
    static const enum sort sorts[] = {SORT_MEMORY, SORT_PLAIN, SORT_ASYNC};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(sorts); i++) {
        struct world w;
        zarr_store *s;
        zarr_error err = {0};
        void *lock = NULL, *second = NULL;

        world_init(&w);
        w.lock_wait_ms = 20;
        s = open_sort(&w, sorts[i]);
        assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
        assert_status(zr_store_lock(s, "a/v", NULL, &second, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, ETIMEDOUT);
        zr_store_unlock(s, lock);
        assert_status(zr_store_lock(s, "a/v", NULL, &lock, &err), ZARR_OK);
        zr_store_unlock(s, lock);
        zarr_store_free(s);
        world_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holder_dies),
        cmocka_unit_test(hard_links),
        cmocka_unit_test(waiter_of_shared_file),
        cmocka_unit_test(child_keeps_no_lock),
        cmocka_unit_test(fork_at_any_moment),
        cmocka_unit_test(waits_end),
        cmocka_unit_test(waits_end_on_every_store),
    };

    return cmocka_run_group_tests_name("lock_holders", tests, NULL, NULL);
}
