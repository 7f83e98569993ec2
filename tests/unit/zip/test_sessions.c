/*
 * unit/zip/test_sessions.c - sessions beside other programs: those that append, that
 * wait, and that replace the archive.
 */
#include "zip_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zip/zip_int.h"

static char archive[64], other_archive[64];

static void begin_names(void)
{
    snprintf(archive, sizeof archive, "%s/x.zip", folder);
    snprintf(other_archive, sizeof other_archive, "%s/y.zip", folder);
}

static zarr_store *open_waiting(struct world *w, uint32_t lock_wait_ms)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .lock_wait_ms = lock_wait_ms};
    zarr_store *s = NULL;

    assert_status(zr_store_open(&s, w->registry, &w->env, folder, &opts, NULL), ZARR_OK);
    return s;
}

/* ---- a program that appends ---- */

/* A tail is worth a warning only if no program is at work. */
static void test_warning(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER), *other = open_folder(w);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    zarr_store_op op = {
        .verb = ZARR_STORE_APPEND,
        .flags = ZARR_STORE_OP_LOCKED,
        .key = "x.zip",
        .mem = zr_mem_of_host((void *)(uintptr_t) "PK\3\4 half a member", 18)};

    put_text(s, "a", "1");
    zarr_store_free(s);
    op.offset = archive_bytes(below);
    assert_status(zarr_store_lock(&op.lock, other, "x.zip", NULL, NULL), ZARR_OK);
    assert_status(zarr_store_run(other, &op, NULL), ZARR_OK);
    w->log[0] = '\0';
    s = need_as(w, below, 0, false);
    assert_text(s, "a", "1");
    assert_string_equal(w->log, "");
    zarr_store_free(s);
    zarr_store_unlock(other, op.lock);
    s = need_as(w, below, 0, false);
    assert_text(s, "a", "1");
    assert_non_null(strstr(w->log, "interrupted"));
    zarr_store_free(s);
    zarr_store_free(other);
    zarr_store_free(below);
}

/* ---- a program that replaces the archive ---- */

/* Other bytes at the same places. */
static void replace_archive(void)
{
    static char bytes[1 << 16];
    FILE *from = fopen(archive, "rb"), *to = fopen(other_archive, "wb");
    size_t n;

    assert_true(from && to);
    n = fread(bytes, 1, sizeof bytes, from);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == 'A')
            bytes[i] = 'C';
    assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    fclose(to);
    assert_int_equal(rename(other_archive, archive), 0);
}

static void test_replaced(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    char value[4096], to[16];
    uint64_t n = sizeof to;
    zarr_error err = {0};

    begin_names();
    memset(value, 'A', sizeof value);
    assert_status(zarr_store_put(s, "a", value, sizeof value, NULL, &err), ZARR_OK);
    need_flush(s);
    put_text(s, "b", "2");
    assert_status(zarr_store_get(s, "a", 100, to, &n, NULL, &err), ZARR_OK);
    assert_memory_equal(to, "AAAAAAAAAAAAAAAA", 16);
    replace_archive();
    n = sizeof to;
    assert_status(zarr_store_get(s, "a", 100, to, &n, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "changed"));
    assert_status(zarr_store_put(s, "c", "3", 1, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "no locks"));
    n = sizeof to;
    assert_status(zarr_store_get(s, "a", 100, to, &n, NULL, &err), ZARR_OK);
    assert_memory_equal(to, "CCCCCCCCCCCCCCCC", 16);
    zarr_store_free(s);
    zarr_store_free(below);
}

static void get_part(zarr_store *s, zarr_status want, char c)
{
    char to[16] = {0};
    uint64_t n = sizeof to;
    zarr_error err = {0};

    assert_status(zarr_store_get(s, "a", 100, to, &n, NULL, &err), want);
    if (want != ZARR_OK)
        assert_non_null(strstr(err.message, "changed"));
    else
        assert_true(n == sizeof to && to[0] == c && to[15] == c);
}

/* A decoded value is not that of its key after another handle replaced it. */
static void test_replaced_value(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER), *also = open_folder(w), *s, *r, *t;
    struct maker k = {0};
    static char value[4096];
    zarr_error err = {0};

    memset(value, 'A', sizeof value);
    make_member(&k, &(struct made_member){
                        .name = "a", .data = value, .bytes = sizeof value, .method = 8});
    make_end(&k, 0, NULL, 0, false);
    assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err), ZARR_OK);
    s = need_as(w, below, 0, false);
    r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
    t = need_as(w, also, 0, false);
    for (int i = 0; i < 2; i++) {
        get_part(s, ZARR_OK, 'A');
        get_part(r, ZARR_OK, 'A');
    }
    put_text(s, "b", "2"); /* in a session the archive grows by itself */
    get_part(s, ZARR_OK, 'A');
    need_flush(s);
    get_part(s, ZARR_OK, 'A');
    memset(value, 'B', sizeof value);
    assert_status(zarr_store_put(t, "a", value, sizeof value, NULL, &err), ZARR_OK);
    need_flush(t);
    get_part(s, ZARR_OK, 'B');
    get_part(r, ZARR_ERR_IO, 0);
    zarr_store_free(t);
    zarr_store_free(r);
    zarr_store_free(s);
    make_free(&k);
    zarr_store_free(also);
    zarr_store_free(below);
}

/* ---- a program that waits ---- */

struct held {
    zarr_store *store;
    void *lock;
};

static void *unlock_soon(void *arg)
{
    const struct held *h = arg;

    usleep(700000);
    zarr_store_unlock(h->store, h->lock);
    return NULL;
}

/* While a handle waits for the lock, another program has its turn. */
static void test_turn_begins(void **state)
{
    struct world *w = *state;
    const struct zr_zip_options opts = {.flags = ZARR_STORE_CREATE};
    zarr_store *below = begin_place(w, IN_FOLDER), *s = NULL;
    struct held held = {.store = open_folder(w)};
    struct zr_zip_store *z = NULL;
    void *self = NULL;
    zr_thread thread;

    zarr_store_free(below);
    below = open_waiting(w, 10000);
    assert_status(zr_zip_open(&self, &w->env, below, "x.zip", &opts, NULL), ZARR_OK);
    z = self;
    z->turn_ns = 500000000;
    assert_status(zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self, "zip:x.zip",
                                           NULL, NULL),
                  ZARR_OK);
    assert_status(zarr_store_lock(&held.lock, held.store, "x.zip", NULL, NULL), ZARR_OK);
    assert_status(zr_thread_start(&thread, unlock_soon, &held, NULL), ZARR_OK);
    put_text(s, "a", "1");
    assert_true(z->archive.in_session);
    zr_thread_join(&thread);
    zarr_store_free(s);
    zarr_store_free(held.store);
    zarr_store_free(below);
}

#if !defined(__SANITIZE_THREAD__) /* it allows no threads in a child */
static void *put_one(void *store)
{
    return zarr_store_put(store, "a", "1", 1, NULL, NULL) == ZARR_OK ? store : NULL;
}

static void exit_while_busy(struct world *w)
{
    const struct zr_zip_options opts = {.flags = ZARR_STORE_CREATE};
    zarr_store *below = open_waiting(w, 60000), *s = NULL, *busy = NULL;
    void *self = NULL;
    zr_thread thread;

    alarm(60);
    if (zr_zip_open(&self, &w->env, below, "y.zip", &opts, NULL) != ZARR_OK ||
        zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self, "zip:y.zip", NULL,
                                 NULL) != ZARR_OK ||
        open_as(&busy, w, below, ZARR_STORE_CREATE, false, NULL) != ZARR_OK ||
        zarr_store_put(s, "a", "1", 1, NULL, NULL) != ZARR_OK ||
        zr_thread_start(&thread, put_one, busy, NULL) != ZARR_OK)
        _exit(1);
    usleep(200000); /* the thread waits for the lock of x.zip */
    exit(0);
}

/* The exit of a process ends the sessions of idle handles before it waits for another. */
static void test_exit(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_status st = ZARR_ERR_NOT_FOUND;
    void *lock = NULL;
    int status = 0;
    pid_t child;

    assert_status(zarr_store_lock(&lock, below, "x.zip", NULL, NULL), ZARR_OK);
    fflush(NULL);
    child = fork();
    if (child == 0)
        exit_while_busy(w);
    for (int i = 0; i < 400 && st != ZARR_OK; i++) {
        usleep(10000);
        st = zarr_store_stat(below, "y.zip", NULL, NULL, NULL);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    zarr_store_unlock(below, lock);
    assert_status(st, ZARR_OK);
    assert_status(zarr_store_erase(below, "y.zip", NULL, NULL), ZARR_OK);
    zarr_store_free(below);
}

static void write_for_ever(struct world *w, bool flushes)
{
    const struct zr_zip_options opts = {.flags = ZARR_STORE_CREATE};
    zarr_store *below = open_waiting(w, 10000), *s = NULL;
    void *self = NULL;

    if (zr_zip_open(&self, &w->env, below, "x.zip", &opts, NULL) != ZARR_OK)
        _exit(1);
    ((struct zr_zip_store *)self)->turn_ns = 200000000;
    if (zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self, "zip:x.zip", NULL,
                                 NULL) != ZARR_OK)
        _exit(1);
    alarm(60);
    for (;;)
        if (zarr_store_put(s, "child", "1", 1, NULL, NULL) != ZARR_OK ||
            (flushes && zarr_store_flush(s, NULL, NULL) != ZARR_OK))
            _exit(1);
}

/* A program that never pauses lets others write. */
static void test_turns(void **state)
{
    struct world *w = *state;

    for (int flushes = 0; flushes < 2; flushes++) {
        zarr_store *below, *s;
        int status = 0;
        pid_t child;

        zarr_store_free(begin_place(w, IN_FOLDER));
        child = fork();
        if (child == 0)
            write_for_ever(w, flushes);
        below = open_waiting(w, 10000);
        for (int i = 0; i < 20000 && zarr_store_stat(below, "x.zip", NULL, NULL, NULL);
             i++)
            usleep(1000);
        s = need_as(w, below, 0, false);
        for (int i = 0; i < 3; i++) {
            put_text(s, "parent", "2");
            need_flush(s);
        }
        assert_text(s, "child", "1");
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        zarr_store_free(s);
        zarr_store_free(below);
    }
    zarr_store_free(begin_place(w, IN_FOLDER)); /* with the lock file of the child */
}
#endif

/* ---- a call that waits ---- */

static void touch_archive(struct failing *f)
{
    FILE *file = fopen(archive, "ab");

    (void)f;
    assert_non_null(file);
    fputc(0, file);
    fclose(file);
}

static void *cancel_soon(void *arg)
{
    usleep(50000);
    zarr_cancel_set(arg);
    return NULL;
}

/* Opens an archive that changes during each read, while another program has its lock. */
static zarr_status open_changing(struct world *w, uint32_t lock_wait_ms,
                                 zarr_cancel *cancel, zarr_error *err)
{
    struct failing f = {.below = open_waiting(w, lock_wait_ms), .changes = touch_archive};
    zarr_store *over = open_failing(w, &f);
    const struct zr_zip_options opts = {.flags = ZARR_STORE_CREATE, .cancel = cancel};
    void *self = NULL;
    const zarr_status st = zr_zip_open(&self, &w->env, over, "x.zip", &opts, err);

    zarr_store_free(over);
    zarr_store_free(f.below);
    return st;
}

static void test_open_waits(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER), *other = open_folder(w);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    zarr_cancel *cancel = NULL;
    zarr_error err = {0};
    void *lock = NULL;
    zr_thread thread;

    begin_names();
    put_text(s, "a", "1");
    zarr_store_free(s);
    touch_archive(NULL); /* the directory must be searched, by several reads */
    assert_status(zarr_cancel_create(&cancel, NULL), ZARR_OK);
    assert_status(zarr_store_lock(&lock, other, "x.zip", NULL, &err), ZARR_OK);
    assert_status(open_changing(w, 100, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "x.zip: another program writes this archive"));
    assert_status(zr_thread_start(&thread, cancel_soon, cancel, NULL), ZARR_OK);
    assert_status(open_changing(w, 0, cancel, &err), ZARR_ERR_CANCELLED);
    zr_thread_join(&thread);
    zarr_store_unlock(other, lock);
    zarr_cancel_free(cancel);
    zarr_store_free(other);
    zarr_store_free(below);
}

/* ---- reads of many members ---- */

enum {
    N_KEYS = 20
};

static void count_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    (void)err;
    *(int *)arg += op->status == ZARR_OK && op->done_bytes == 1;
}

/* Reads in a session reach a slow store together, as others do. */
static void test_read_ahead(void **state)
{
    struct world *w = *state;
    struct failing f = {.below = begin_place(w, IN_FOLDER), .is_slow = true};
    zarr_store *over = open_failing(w, &f);
    zarr_store *s = need_as(w, over, ZARR_STORE_CREATE, false);
    static zarr_store_op op[N_KEYS];
    zarr_store_op *ops[N_KEYS];
    char key[N_KEYS][16], to[N_KEYS];
    int n_good = 0;

    for (int i = 0; i < N_KEYS; i++) {
        snprintf(key[i], sizeof key[i], "%d", i);
        assert_status(
            zarr_store_put(s, key[i], &"abcdefghijklmnopqrst"[i], 1, NULL, NULL),
            ZARR_OK);
        if (i == N_KEYS / 2)
            need_flush(s);
        op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                .key = key[i],
                                .length = 1,
                                .mem = zr_mem_of_host(&to[i], 1)};
        ops[i] = &op[i];
    }
    f.most_ops = 0;
    zarr_store_submit(s, ops, N_KEYS, count_done, &n_good);
    assert_int_equal(n_good, N_KEYS);
    assert_memory_equal(to, "abcdefghijklmnopqrst", N_KEYS);
    assert_int_equal(f.most_ops, N_KEYS);
    zarr_store_free(s);
    zarr_store_free(over);
    zarr_store_free(f.below);
}

#define T(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_warning),
        T(test_replaced),
        T(test_replaced_value),
        T(test_turn_begins),
#if !defined(__SANITIZE_THREAD__)
        T(test_exit),
        T(test_turns),
#endif
        T(test_open_waits),
        T(test_read_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
