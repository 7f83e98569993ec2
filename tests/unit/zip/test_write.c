/*
 * unit/zip/test_write.c - archives that zarrc writes: what other handles find after each
 * step, and sessions of several handles and threads.
 */
#include "zip_test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "sched/sched.h"
#include "zip/zip_int.h"

/* ---- values ---- */

static void test_values(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < N_PLACES; place++) {
        zarr_store *below = begin_place(w, (enum place)place), *s, *r = NULL;
        const bool copies = place == IN_FOLDER_BY_COPY;
        zarr_error err = {0};

        assert_status(open_as(&s, w, below, 0, copies, &err), ZARR_ERR_NOT_FOUND);
        s = need_as(w, below, ZARR_STORE_CREATE, copies);
        assert_absent(s, "a/b");
        put_text(s, "zarr.json", "{}");
        put_text(s, "a/b", "first");
        put_text(s, "a/b", "second");
        put_text(s, "a/\xc3\xa4", "");
        put_text(s, "gone", "x");
        assert_status(zarr_store_erase(s, "gone", NULL, &err), ZARR_OK);
        assert_status(zarr_store_erase(s, "gone", NULL, &err), ZARR_ERR_NOT_FOUND);
        assert_text(s, "a/b", "second"); /* before any directory is there */
        need_flush(s);
        r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        assert_text(r, "a/b", "second");
        assert_text(r, "a/\xc3\xa4", "");
        assert_absent(r, "gone");
        zarr_store_free(r);
        put_text(s, "a/c", "third");
        assert_status(zarr_store_erase(s, "a/b", NULL, &err), ZARR_OK);
        zarr_store_free(s); /* writes the directory, too */
        s = need_as(w, below, 0, copies);
        assert_absent(s, "a/b");
        assert_text(s, "a/c", "third");
        assert_text(s, "zarr.json", "{}");
        assert_status(zarr_store_erase_prefix(s, "a", NULL, &err), ZARR_OK);
        assert_absent(s, "a/c");
        put_text(s, "a/c", "again");
        zarr_store_free(s);
        s = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        assert_text(s, "a/c", "again");
        assert_absent(s, "a/\xc3\xa4");
        assert_status(zarr_store_put(s, "a", "", 0, NULL, NULL), ZARR_ERR_INVALID);
        zarr_store_free(s);
        s = need_as(w, below, 0, copies);
        assert_status(zarr_store_put(s, "a\\b", "", 0, NULL, &err), ZARR_ERR_INVALID);
        assert_non_null(strstr(err.message, "backslash"));
        zarr_store_free(s);
        zarr_store_free(below);
    }
}

/* What other programs stored stays as it is: their records, folders, the comment, bytes
 * before the archive, and the folder above the root. */
static void test_foreign_archive(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *below = begin_place(w, IN_FOLDER), *s = NULL;
    static uint8_t bytes[1 << 16];
    uint64_t n = sizeof bytes;
    zarr_error err;

    make_bytes(&k, "#!/bin/sh\n", 10);
    k.base = 10;
    make_member(&k,
                &(struct made_member){
                    .name = "run/zarr.json", .data = "{}", .bytes = 2, .times = true});
    make_member(&k, &(struct made_member){.name = "run/old",
                                          .data = "old value",
                                          .bytes = 9,
                                          .method = 8,
                                          .central_extra = 100,
                                          .local_extra = 40,
                                          .descriptor = true});
    make_text(&k, "run/folder/", "");
    make_text(&k, "run/\x81", "code page 437");
    make_end(&k, 0, "a comment", 9, false);
    assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err), ZARR_OK);
    s = need_as(w, below, 0, false);
    put_text(s, "new", "new value");
    put_text(s, "zarr.json", "{ }");
    zarr_store_free(s);
    s = need_as(w, below, ZARR_STORE_READ_ONLY, false);
    assert_text(s, "new", "new value");
    assert_text(s, "old", "old value");
    assert_text(s, "zarr.json", "{ }");
    assert_text(s, "\xc3\xbc", "code page 437");
    zarr_store_free(s);
    assert_status(zarr_store_get(below, "x.zip", 0, bytes, &n, NULL, &err), ZARR_OK);
    assert_memory_equal(bytes, k.bytes, k.n); /* nothing is overwritten */
    assert_memory_equal(bytes + n - 9, "a comment", 9);
    assert_memory_equal(bytes + n - 9 - 22 + 8, "\5\0", 2); /* without the old document */
    assert_non_null(memmem(bytes + k.n, n - k.n, "run/folder/", 11));
    make_free(&k);
    zarr_store_free(below);
}

/* ---- conditions ---- */

static void test_conditions(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    char text[] = "one";
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_IF_VERSION,
                        .key = "a",
                        .mem = zr_mem_of_host(text, 3),
                        .length = 3};
    zarr_store_version first;
    zarr_error err = {0};

    assert_status(zarr_store_run(s, &op, &err), ZARR_OK); /* it is new */
    first = op.version;
    op.version = (zarr_store_version){{0}};
    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_CONFLICT);
    op.version = first;
    need_flush(s); /* the version is that of the member, not of the session */
    assert_status(zarr_store_run(s, &op, &err), ZARR_OK);
    assert_memory_not_equal(&op.version, &first, sizeof first);
    op.verb = ZARR_STORE_GET;
    op.version = first;
    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_CONFLICT);
    op.verb = ZARR_STORE_ERASE;
    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_CONFLICT);
    op.verb = ZARR_STORE_GET;
    op.flags = ZARR_STORE_OP_WANT_VERSION;
    assert_status(zarr_store_run(s, &op, &err), ZARR_OK);
    op.verb = ZARR_STORE_ERASE;
    op.flags = ZARR_STORE_OP_IF_VERSION;
    assert_status(zarr_store_run(s, &op, &err), ZARR_OK);
    assert_absent(s, "a");
    zarr_store_free(s);
    zarr_store_free(below);
}

/* ---- several handles ---- */

/* Two handles of one thread take turns, and each finds what the other wrote. */
static void test_two_handles(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < N_PLACES; place++) {
        const bool copies = place == IN_FOLDER_BY_COPY;
        zarr_store *below = begin_place(w, (enum place)place);
        zarr_store *also = place == IN_MEMORY ? zarr_store_ref(below) : open_folder(w);
        zarr_store *a = need_as(w, below, ZARR_STORE_CREATE, copies);
        zarr_store *b = need_as(w, also, ZARR_STORE_CREATE, copies), *r = NULL;

        put_text(a, "a", "1");
        put_text(b, "b", "2"); /* ends the session of a */
        assert_text(b, "a", "1");
        put_text(a, "a", "3");
        assert_text(a, "b", "2");
        r = need_as(w, below, 0, copies); /* ends it, too */
        assert_text(r, "a", "3");
        assert_text(b, "a", "3"); /* reads the directory again */
        zarr_store_free(r);
        zarr_store_free(a);
        zarr_store_free(b);
        zarr_store_free(also);
        zarr_store_free(below);
    }
}

/* Another process, here the lock alone, makes a writer wait, and then fail. */
static void test_other_program(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER), *other = open_folder(w);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    void *lock = NULL;
    zarr_error err = {0};

    assert_status(zarr_store_lock(&lock, other, "x.zip", NULL, &err), ZARR_OK);
    assert_status(zarr_store_put(s, "a", "1", 1, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "x.zip: another program writes this archive"));
    zarr_store_unlock(other, lock);
    put_text(s, "a", "1");
    need_flush(s);
    put_text(s, "b", "2");
    /* a program without locks replaces the archive: nothing of its is overwritten */
    assert_status(zarr_store_erase(other, "nothing", NULL, &err), ZARR_ERR_NOT_FOUND);
    {
        char name[64];
        FILE *f;

        snprintf(name, sizeof name, "%s/x.zip", folder);
        f = fopen(name, "ab");
        assert_non_null(f);
        fputs("appended", f);
        fclose(f);
    }
    assert_status(zarr_store_put(s, "c", "3", 1, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "no locks"));
    assert_text(s, "a", "1");
    assert_absent(s, "b");
    put_text(s, "c", "3"); /* a new session cuts the tail */
    zarr_store_free(s);
    s = need_as(w, below, ZARR_STORE_READ_ONLY, false);
    assert_text(s, "c", "3");
    zarr_store_free(s);
    zarr_store_free(other);
    zarr_store_free(below);
}

/* A session whose archive was removed ends, and lets others write. is_empty: its old
 * directory has no record, so the append finds it out. */
static void remove_archive(struct world *w, bool is_empty)
{
    struct failing f = {.below = begin_place(w, IN_FOLDER)};
    zarr_store *over = open_failing(w, &f);
    zarr_store *s = need_as(w, over, ZARR_STORE_CREATE, false), *also = NULL;
    char name[64];
    zarr_error err = {0};

    put_text(s, "a", "1");
    if (is_empty)
        assert_status(zarr_store_erase(s, "a", NULL, &err), ZARR_OK);
    need_flush(s);
    put_text(s, "b", "2");
    snprintf(name, sizeof name, "%s/x.zip", folder);
    assert_int_equal(unlink(name), 0);
    f.at = 100; /* counts calls */
    assert_status(zarr_store_flush(s, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "is lost"));
    if (is_empty) /* a flush and the append: no call after the lock was given back */
        assert_int_equal(f.at, 98);
    f.at = 0;
    also = need_as(w, f.below, ZARR_STORE_CREATE, false);
    put_text(also, "a", "new");
    zarr_store_free(also);
    assert_text(s, "a", "new");
    zarr_store_free(s);
    zarr_store_free(over);
    zarr_store_free(f.below);
}

static void test_removed(void **state)
{
    remove_archive(*state, false);
    remove_archive(*state, true);
}

static void test_fork(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    int status = 0;
    pid_t child;

    put_text(s, "a", "1");
    need_flush(s);
    put_text(s, "b", "2");
    child = fork();
    if (child == 0) {
        char c = 0;
        size_t n = 0;
        zarr_error err = {0};
        const bool good =
            zarr_store_put(s, "c", "3", 1, NULL, &err) == ZARR_ERR_INVALID &&
            strstr(err.message, "forked") && zarr_store_flush(s, NULL, &err) == ZARR_OK &&
            read_whole(s, "a", &c, 1, &n, &err) == ZARR_OK && c == '1';

        zarr_store_free(s);
        _exit(good ? 0 : 1);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    put_text(s, "c", "3"); /* the session of the parent goes on */
    zarr_store_free(s);
    s = need_as(w, below, 0, false);
    assert_text(s, "b", "2");
    assert_text(s, "c", "3");
    need_flush(s);
#if !defined(__SANITIZE_THREAD__) /* it allows no threads in a child */
    child = fork();               /* without a session, the child has its own */
    if (child == 0) {
        const zarr_status st = zarr_store_put(s, "d", "4", 1, NULL, NULL);

        zarr_store_free(s);
        _exit(st == ZARR_OK ? 0 : 1);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_text(s, "d", "4");
#endif
    zarr_store_free(s);
    zarr_store_free(below);
}

/* ---- threads ---- */

enum {
    THREADS = 4,
    KEYS = 40
};
struct writer {
    zarr_store *s, *flushed;
    int number;
    bool failed;
};

static void name_key(char *key, size_t n, int thread, int i)
{
    snprintf(key, n, "t%d/%d", thread, i);
}

static void *write_keys(void *arg)
{
    struct writer *t = arg;
    char key[32], to[256], want[256];

    for (int i = 0; i < KEYS; i++) {
        size_t n = 0;

        name_key(key, sizeof key, t->number, i);
        memset(want, t->number * KEYS + i, sizeof want);
        if (zarr_store_put(t->s, key, want, sizeof want, NULL, NULL) != ZARR_OK ||
            read_whole(t->s, key, to, sizeof to, &n, NULL) != ZARR_OK ||
            n != sizeof want || memcmp(to, want, n) != 0)
            t->failed = true;
        if (i % 16 == 7 && zarr_store_flush(t->s, NULL, NULL) != ZARR_OK)
            t->failed = true;
    }
    return NULL;
}

/* Threads write through one handle, or each has its own. */
static void test_threads(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < 2 * N_PLACES; place++) {
        zarr_store *below = begin_place(w, (enum place)(place / 2)), *r = NULL;
        const bool copies = place / 2 == IN_FOLDER_BY_COPY, own = place % 2;
        struct writer t[THREADS];
        zr_thread thread[THREADS];
        char key[32];

        for (int i = 0; i < THREADS; i++) {
            t[i] = (struct writer){.number = i};
            t[i].s = i > 0 && !own ? zarr_store_ref(t[0].s)
                                   : need_as(w, below, ZARR_STORE_CREATE, copies);
        }
        for (int i = 0; i < THREADS; i++)
            assert_status(zr_thread_start(&thread[i], write_keys, &t[i], NULL), ZARR_OK);
        for (int i = 0; i < THREADS; i++)
            zr_thread_join(&thread[i]);
        for (int i = 0; i < THREADS; i++) {
            assert_false(t[i].failed);
            zarr_store_free(t[i].s);
        }
        r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        for (int i = 0; i < THREADS * KEYS; i++) {
            name_key(key, sizeof key, i / KEYS, i % KEYS);
            assert_status(zarr_store_stat(r, key, NULL, NULL, NULL), ZARR_OK);
        }
        zarr_store_free(r);
        zarr_store_free(below);
    }
}

/* ---- reads of several threads ---- */

static struct {
    atomic_int n_inside;
    atomic_bool is_late;
    struct zr_event both;
} meeting;

/* A GET of the archive ends when another one has begun. */
static void meet(struct failing *f)
{
    ZR_UNUSED(f);
    if (atomic_fetch_add(&meeting.n_inside, 1) == 1)
        zr_event_set(&meeting.both);
    if (!zr_event_wait(&meeting.both, zr_now_ns() + UINT64_C(30000000000)))
        atomic_store(&meeting.is_late, true);
}

static void *read_key(void *arg)
{
    struct writer *t = arg;
    char to[64], key[2] = {(char)('a' + t->number), '\0'};
    uint64_t n = sizeof to;

    t->failed = zarr_store_get(t->s, key, 0, to, &n, NULL, NULL) != ZARR_OK || n != 5 ||
                memcmp(to, t->number ? "value" : "first", 5) != 0;
    return NULL;
}

/* No read of a member waits until that of another thread has ended. */
static void test_parallel_reads(void **state)
{
    struct world *w = *state;
    struct failing f = {.below = begin_place(w, IN_MEMORY), .is_slow = true};
    zarr_store *s = need_as(w, f.below, ZARR_STORE_CREATE, false), *over = NULL;
    struct writer t[2];
    zr_thread thread[2];

    put_text(s, "a", "first");
    put_text(s, "b", "value");
    zarr_store_free(s);
    over = open_failing(w, &f);
    s = need_as(w, over, ZARR_STORE_READ_ONLY, false);
    assert_status(zarr_store_stat(s, "a", NULL, NULL, NULL), ZARR_OK);
    zr_event_init(&meeting.both);
    f.changes = meet;
    for (int i = 0; i < 2; i++) {
        t[i] = (struct writer){.number = i, .s = s};
        assert_status(zr_thread_start(&thread[i], read_key, &t[i], NULL), ZARR_OK);
    }
    for (int i = 0; i < 2; i++)
        zr_thread_join(&thread[i]);
    assert_true(!t[0].failed && !t[1].failed && !atomic_load(&meeting.is_late));
    assert_true(atomic_load(&meeting.n_inside) >= 2);
    zr_event_deinit(&meeting.both);
    zarr_store_free(s);
    zarr_store_free(over);
    zarr_store_free(f.below);
}

/* ---- directories ---- */

/* The directory is written now and then, so that a kill loses little. */
static void test_periodic(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < N_PLACES; place++) {
        const bool copies = place == IN_FOLDER_BY_COPY;
        zarr_store *below = begin_place(w, (enum place)place), *s = NULL, *r = NULL;
        const struct zr_zip_options opts = {.flags = ZARR_STORE_CREATE,
                                            .always_copies = copies};
        static char value[4096];
        void *self = NULL;
        zarr_error err = {0};

        assert_status(zr_zip_open(&self, &w->env, below, "x.zip", &opts, &err), ZARR_OK);
        ((struct zr_zip_store *)self)->due_ns = 0;
        assert_status(zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self,
                                               "zip:x.zip", NULL, &err),
                      ZARR_OK);
        for (int i = 0; i < 3; i++) {
            char key[16];

            snprintf(key, sizeof key, "k%d", i);
            usleep(2000); /* 32 times as long as a directory takes */
            assert_status(zarr_store_put(s, key, value, sizeof value, NULL, &err),
                          ZARR_OK);
        }
        if (place == IN_FOLDER) /* no call of this handle */
            assert_status(zarr_store_stat(below, "x.zip", NULL, NULL, NULL), ZARR_OK);
        zarr_store_free(s);
        r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        assert_status(zarr_store_stat(r, "k2", NULL, NULL, NULL), ZARR_OK);
        zarr_store_free(r);
        zarr_store_free(below);
    }
}

/* A handle that writes nothing for a while does not keep others waiting. */
static void test_idle(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    zarr_status st = ZARR_ERR_NOT_FOUND;

    put_text(s, "a", "1");
    for (int i = 0; i < 500 && st != ZARR_OK; i++) {
        usleep(20000);
        st = zarr_store_stat(below, "x.zip", NULL, NULL,
                             NULL); /* no call of this handle */
    }
    assert_status(st, ZARR_OK);
    assert_text(s, "a", "1");
    put_text(s, "b", "2");
    zarr_store_free(s);
    zarr_store_free(below);
}

/* What a killed writer left behind the directory is cut off by clean, and by the next
 * writer. */
static void test_tail(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    uint64_t bytes = 0, n = 0;
    zarr_error err = {0};

    for (int i = 0; i < 2; i++) {
        zarr_store_op op = {.verb = ZARR_STORE_APPEND, .key = "x.zip"};

        put_text(s, "a", "1");
        zarr_store_free(s);
        op.offset = bytes = archive_bytes(below);
        op.mem = zr_mem_of_host((void *)(uintptr_t) "PK\3\4 half a member", 18);
        assert_status(zarr_store_run(below, &op, &err), ZARR_OK);
        s = need_as(w, below, 0, false);
        assert_text(s, "a", "1");
        if (i == 0) {
            assert_status(zarr_store_clean(s, "", 0, &n, NULL, &err), ZARR_OK);
            assert_int_equal(n, 1);
            assert_int_equal(archive_bytes(below), bytes);
        }
    }
    put_text(s, "b", "");
    need_flush(s);
    assert_text(s, "a", "1");
    zarr_store_free(s);
    zarr_store_free(below);
}

/* An archive with bytes before it is replaced: after a kill its directory could not be
 * told from that of an archive in a value. */
static void test_prefix(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *below = begin_place(w, IN_FOLDER), *s = NULL;
    zarr_error err = {0};

    make_bytes(&k, "#!/bin/sh\n", 10);
    k.base = 10;
    make_text(&k, "a", "1");
    make_end(&k, 0, NULL, 0, false);
    assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err), ZARR_OK);
    s = need_as(w, below, 0, false);
    put_text(s, "b", "2");
    assert_int_equal(archive_bytes(below), k.n); /* as a kill would leave it */
    zarr_store_free(s);
    s = need_as(w, below, ZARR_STORE_READ_ONLY, false);
    assert_text(s, "a", "1");
    assert_text(s, "b", "2");
    zarr_store_free(s);
    make_free(&k);
    zarr_store_free(below);
}

/* ---- numbers of zip64 ---- */

static void test_records(void **state)
{
    const struct zr_zip_record r = {.name = "name",
                                    .name_bytes = 4,
                                    .header_at = UINT64_C(5) << 32,
                                    .bytes = UINT64_C(6) << 32,
                                    .crc = 7,
                                    .time = zr_zip_time()};
    const struct zr_zip_record small = {.name = "\xc3\xa4", .name_bytes = 2, .bytes = 9};
    uint8_t p[256];
    struct zr_zip_central c;

    (void)state;
    assert_int_equal(zr_zip_write_local(p, &r), 30 + 4 + 20);
    assert_int_equal(zr_load_le64(p + 30 + 4 + 4), r.bytes);
    assert_int_equal(zr_zip_write_central(p, &r), 46 + 4 + 28);
    zr_zip_central_parse(p, &c);
    assert_true(c.header_at == r.header_at && c.bytes == r.bytes && !c.is_bad);
    assert_true(c.stored_bytes == r.bytes && c.crc == 7 && !c.is_link);
    assert_int_equal(zr_zip_write_central(p, &small), 46 + 2);
    zr_zip_central_parse(p, &c);
    assert_true(c.bytes == 9 && c.flags == 0x800 && c.name_bytes == 2);
    assert_int_equal(zr_zip_write_end(p, 65534, 1, 2, 0, false), 22);
    assert_int_equal(zr_zip_write_end(p, 65535, 1, 2, 0, false), 98);
    assert_int_equal(zr_zip_write_end(p, 1, UINT64_C(1) << 32, 2, 0, false), 98);
    assert_int_equal(zr_load_le64(p + 48), UINT64_C(1) << 32);
    assert_int_equal(zr_zip_write_end(p, 1, 3, 2, 0, true), 98);
    assert_int_equal(zr_load_le64(p + 48), 3);
    assert_true(zr_load_le32(p + 76 + 16) == UINT32_MAX);
}

static void test_many_members(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    char key[16];

    for (int i = 0; i < 70000; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_status(zarr_store_put(s, key, key, strlen(key), NULL, NULL), ZARR_OK);
    }
    zarr_store_free(s);
    s = need_as(w, below, ZARR_STORE_READ_ONLY, false);
    for (int i = 0; i < 70000; i += 777) {
        snprintf(key, sizeof key, "%d", i);
        assert_text(s, key, key);
    }
    zarr_store_free(s);
    zarr_store_free(below);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_foreign_archive, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_conditions, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_two_handles, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_other_program, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_removed, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_fork, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_threads, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_parallel_reads, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_periodic, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_idle, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_tail, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_prefix, folder_setup, folder_teardown),
        cmocka_unit_test(test_records),
        cmocka_unit_test_setup_teardown(test_many_members, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
