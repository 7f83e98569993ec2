/*
 * unit/zip/test_repack.c - archives written anew without dead bytes, and in the form of
 * single-file OME-Zarr: what stays, what is refused, and failures at every allocation.
 */
#include "zip_test.h"

#include "zip/zip_int.h"

#define ROOT "{\"zarr_format\": 3, \"attributes\": {\"ome\": {\"version\": \"0.5\"}}}"

static zarr_store *open_form(struct world *w, zarr_store *below, const char *key,
                             uint32_t flags, enum zr_zip_form form)
{
    const struct zr_zip_options opts = {.flags = flags, .form = form};
    void *self = NULL;
    zarr_store *s = NULL;
    zarr_error err = {0};

    if (zr_zip_open(&self, &w->env, below, key, &opts, &err) != ZARR_OK ||
        zr_store_open_custom_url(&s, &w->env, &zr_zip_vtable, self, "zip:", NULL, &err) !=
            ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

static zarr_repack_result need_repack(zarr_store *s, uint32_t flags)
{
    zarr_repack_result result = ZARR_REPACK_RESULT_INIT;
    zarr_error err = {0};

    if (zarr_store_repack(s, flags, &result, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return result;
}

static size_t get_archive(zarr_store *below, const char *key, uint8_t *to, size_t room)
{
    size_t n = 0;
    zarr_error err = {0};

    if (read_whole(below, key, to, room, &n, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return n;
}

/* ---- dead bytes ---- */

static void check_nothing_dead(zarr_store *s)
{
    zarr_store_counters c = ZARR_STORE_COUNTERS_INIT;

    assert_status(zarr_store_stat(s, "zarr.json", NULL, NULL, NULL),
                  ZARR_OK); /* reads it */
    zarr_store_read_counters(s, &c);
    assert_int_equal(c.dead_bytes, 0);
    assert_int_equal(c.dead_values, 0);
}

static void make_dead(zarr_store *s)
{
    put_text(s, "zarr.json", "{}");
    put_text(s, "gone", "a value that is erased, longer than any extra field");
    put_text(s, "a/b", "first");
    need_flush(s);
    put_text(s, "a/b", "second");
    put_text(s, "a/c", "");
    assert_status(zarr_store_erase(s, "gone", NULL, NULL), ZARR_OK);
    need_flush(s);
}

static void check_dead(zarr_store *s)
{
    assert_text(s, "zarr.json", "{}");
    assert_text(s, "a/b", "second");
    assert_text(s, "a/c", "");
    assert_absent(s, "gone");
}

static void test_dead_bytes(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < N_PLACES; place++) {
        zarr_store *below = begin_place(w, (enum place)place), *s, *r;
        zarr_repack_result look, done;
        uint64_t bytes;
        zarr_error err = {0};

        s = need_as(w, below, ZARR_STORE_CREATE, place == IN_FOLDER_BY_COPY);
        make_dead(s);
        bytes = archive_bytes(below);
        r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        look = need_repack(r, ZARR_REPACK_LOOK);
        assert_true(look.is_needed && look.bytes_before == bytes);
        assert_int_equal(archive_bytes(below), bytes);
        assert_status(zarr_store_repack(r, 0, NULL, NULL, &err), ZARR_ERR_INVALID);
        put_text(s, "a/d", "not yet in a directory");
        done = need_repack(s, 0);
        assert_true(done.is_needed && done.bytes_after < done.bytes_before);
        assert_int_equal(archive_bytes(below), done.bytes_after);
        check_dead(s);
        assert_text(s, "a/d", "not yet in a directory");
        check_nothing_dead(s);
        assert_fails(r, "a/b", ZARR_ERR_IO, "open it again");
        zarr_store_free(r);
        r = need_as(w, below, ZARR_STORE_READ_ONLY, false);
        check_dead(r);
        bytes = archive_bytes(below);
        done = need_repack(s, 0); /* does nothing: r goes on */
        assert_true(!done.is_needed && done.bytes_after == bytes);
        check_dead(r);
        zarr_store_free(r);
        put_text(s, "a/b", "third");
        need_flush(s);
        assert_text(s, "a/b", "third");
        zarr_store_free(s);
        zarr_store_free(below);
    }
}

/* A tail that a killed writer left goes. An archive without members becomes short. */
static void test_tail(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    zarr_store_op op = {.verb = ZARR_STORE_APPEND, .key = "x.zip"};
    zarr_repack_result done;

    assert_false(need_repack(s, 0).is_needed); /* there is no archive */
    put_text(s, "a", "1");
    need_flush(s);
    op.offset = archive_bytes(below);
    op.mem = zr_mem_of_host((void *)(uintptr_t) "PK\3\4 half a member", 18);
    assert_status(zarr_store_run(below, &op, NULL), ZARR_OK);
    done = need_repack(s, 0);
    assert_int_equal(done.bytes_before, op.offset + 18);
    assert_int_equal(done.bytes_after, op.offset);
    assert_text(s, "a", "1");
    assert_status(zarr_store_erase(s, "a", NULL, NULL), ZARR_OK);
    done = need_repack(s, 0);
    assert_int_equal(done.bytes_after, 22);
    zarr_store_free(s);
    zarr_store_free(below);
}

/* ---- archives of other programs ---- */

static void make_foreign(struct maker *k)
{
    static char large[3 << 20];

    memset(large, 'x', sizeof large);
    make_bytes(k, "#!/bin/sh\n", 10);
    k->base = 10;
    make_text(k, "run/b", "old value, which is replaced by one far behind it");
    make_member(k, &(struct made_member){.name = "run/zarr.json",
                                         .data = "{}",
                                         .bytes = 2,
                                         .times = true,
                                         .local_extra = 40,
                                         .central_extra = 60});
    make_member(k, &(struct made_member){.name = "run/deflated",
                                         .data = large,
                                         .bytes = 100000,
                                         .method = 8,
                                         .descriptor = true});
    make_member(k, &(struct made_member){
                       .name = "run/zstd", .data = large, .bytes = 5000, .method = 93});
    make_member(k, &(struct made_member){.name = "run/large",
                                         .data = large,
                                         .bytes = sizeof large,
                                         .local_zip64 = true});
    make_text(k, "run/folder/", "");
    make_text(k, "run/\x81", "code page 437");
    make_text(k, "run/../no key", "kept");
    make_member(k, &(struct made_member){
                       .name = "run/link", .data = "b", .bytes = 1, .is_link = true});
    make_member(k, &(struct made_member){.name = "run/locked",
                                         .data = "secret",
                                         .bytes = 6,
                                         .flags = 1,
                                         .descriptor = true});
    make_text(k, "run/b", "new value");
    make_end(k, 0, "a comment", 9, false);
}

/* Each member that stays has its header and its bytes as they were. */
static void check_members(const struct maker *k, const uint8_t *p, size_t n)
{
    size_t from = 0;

    for (size_t i = 1; i < k->n_members; i++) { /* the first one is dead */
        const size_t at = k->member[i].header_at;
        const size_t bytes = k->member[i].data_at + k->member[i].stored - at;
        const uint8_t *found = memmem(p + from, n - from, k->bytes + at, bytes);

        if (!found)
            fail_msg("%s is not there", k->member[i].m.name);
        from = (size_t)(found - p) + bytes;
    }
}

static void test_foreign_archive(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < 2; place++) {
        struct maker k = {0};
        zarr_store *below = begin_place(w, (enum place)place), *s = NULL;
        uint8_t *bytes = NULL;
        size_t n = 0;
        zarr_repack_result done;
        zarr_error err = {0};

        make_foreign(&k);
        bytes = malloc(k.n);
        assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err), ZARR_OK);
        s = need_as(w, below, 0, false);
        done = need_repack(s, 0);
        assert_true(done.is_needed && done.bytes_after < k.n);
        n = get_archive(below, "x.zip", bytes, k.n);
        assert_int_equal(n, done.bytes_after);
        assert_memory_equal(bytes, k.bytes, k.base);
        check_members(&k, bytes, n);
        assert_memory_equal(bytes + n - 9, "a comment", 9);
        assert_memory_equal(bytes + n - 9 - 22 + 8, "\x0a\0", 2);
        assert_text(s, "b", "new value");
        assert_text(s, "zarr.json", "{}");
        assert_text(s, "\xc3\xbc", "code page 437");
        assert_fails(s, "link", ZARR_ERR_UNSUPPORTED, "symbolic link");
        assert_fails(s, "locked", ZARR_ERR_UNSUPPORTED, "encrypted");
        assert_false(need_repack(s, 0).is_needed);
        zarr_store_free(s);
        free(bytes);
        make_free(&k);
        zarr_store_free(below);
    }
}

/* Offsets may count the bytes before the archive, as after `zip -A`. They stay, unless
 * they are an archive without members. */
static void test_absolute_offsets(void **state)
{
    static const char empty[22] = "PK\5\6";
    static uint8_t bytes[1 << 14];
    struct world *w = *state;

    for (int i = 0; i < 4; i++) {
        const bool is_empty = i / 2;
        const enum zr_zip_form form = i % 2 ? ZR_ZIP_FORM_OZX : ZR_ZIP_FORM_PLAIN;
        const size_t head = is_empty ? 0 : 10;
        struct maker k = {0};
        zarr_store *below = begin_place(w, IN_MEMORY), *s;
        zarr_repack_result look, done;
        size_t n;

        make_bytes(&k, is_empty ? empty : "#!/bin/sh\n", is_empty ? sizeof empty : 10);
        make_text(&k, "zarr.json", ROOT);
        make_text(&k, "a", "a value that is replaced, longer than any extra field");
        make_text(&k, "a", "new");
        make_end(&k, 0, NULL, 0, false);
        assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, NULL), ZARR_OK);
        s = open_form(w, below, "x.zip", 0, form);
        look = need_repack(s, ZARR_REPACK_LOOK);
        done = need_repack(s, 0);
        assert_true(look.is_needed && done.is_needed && done.bytes_after < k.n);
        if (form == ZR_ZIP_FORM_PLAIN) /* the same records */
            assert_true(look.bytes_after > done.bytes_after);
        n = get_archive(below, "x.zip", bytes, sizeof bytes);
        assert_int_equal(n, done.bytes_after);
        assert_memory_equal(bytes, k.bytes, head);
        assert_memory_equal(bytes + head, k.bytes + k.member[0].header_at, 30);
        assert_int_equal(memmem(bytes, n, "\"jsonFirst\"", 11) != NULL,
                         is_empty && form == ZR_ZIP_FORM_OZX);
        assert_text(s, "a", "new");
        put_text(s, "b", "more");
        need_flush(s);
        need_repack(s, 0);
        assert_false(need_repack(s, 0).is_needed);
        get_archive(below, "x.zip", bytes, sizeof bytes);
        assert_memory_equal(bytes, k.bytes, head);
        zarr_store_free(s);
        s = open_form(w, below, "x.zip", ZARR_STORE_READ_ONLY, form);
        assert_text(s, "zarr.json", ROOT);
        assert_text(s, "a", "new");
        assert_text(s, "b", "more");
        zarr_store_free(s);
        make_free(&k);
        zarr_store_free(below);
    }
}

/* ---- what is refused ---- */

struct fault {
    const char *text;   /* in the message */
    size_t at;          /* counted from the local header of the second member */
    uint32_t value;     /* four bytes there */
    bool is_descriptor; /* that member has one */
    bool is_in_central; /* `at` counts from its record */
};

static void test_refused(void **state)
{
    static const struct fault faults[] = {
        {"its local header is not that", 0, 0x12345678, false, false},
        {"its local header is not that", 30, 0x12345678, false, false},
        {"its local header is not that", 6, 0x00080000, false, false}, /* a method */
        {"has other sizes", 14, 1, false, false},                      /* the CRC-32 */
        {"has other sizes", 18, 1, false, false},
        {"overlaps with the next", 26, 0x00400006, true, false},
        {"its CRC-32 is not that", 40, 0x12345678, false, false},
        {"it overlaps with another", 20, 0x00000020, false, true},
        {"contradicts itself", 24, 0x00000001, false, true},
        {"not between the begin", 42, 0x10000000, false, true},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ZR_COUNT(faults); i++) {
        const struct fault *f = &faults[i];
        struct maker k = {0};
        zarr_store *below = begin_place(w, IN_MEMORY), *s = NULL;
        static uint8_t bytes[1 << 14];
        zarr_error err = {0};

        make_text(&k, "dead", "a value that is replaced, longer than an extra field");
        make_member(&k, &(struct made_member){.name = "member",
                                              .data = "the value of a member",
                                              .bytes = 21,
                                              .descriptor = f->is_descriptor});
        make_text(&k, "dead", "new");
        make_end(&k, 0, NULL, 0, false);
        make_u32(&k,
                 (f->is_in_central ? k.member[1].central_at : k.member[1].header_at) +
                     f->at,
                 f->value);
        if (f->is_in_central && f->at == 20) /* the length decoded, too */
            make_u32(&k, k.member[1].central_at + 24, f->value);
        assert_status(zarr_store_put(below, "x.zip", k.bytes, k.n, NULL, &err), ZARR_OK);
        s = need_as(w, below, 0, false);
        assert_status(zarr_store_repack(s, 0, NULL, NULL, &err), ZARR_ERR_CORRUPT);
        if (!strstr(err.message, f->text) || !strstr(err.message, "member of x.zip"))
            fail_msg("%zu: %s", i, err.message);
        assert_int_equal(get_archive(below, "x.zip", bytes, sizeof bytes), k.n);
        assert_memory_equal(bytes, k.bytes, k.n);
        assert_text(s, "dead", "new");
        put_text(s, "more", "1"); /* the lock was released */
        zarr_store_free(s);
        make_free(&k);
        zarr_store_free(below);
    }
}

static void test_other_refusals(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    zarr_cancel *cancel = NULL;
    zarr_error err = {0};

    assert_status(zarr_cancel_create(&cancel, &err), ZARR_OK);
    zarr_cancel_set(cancel);
    make_dead(s);
    assert_status(zarr_store_repack(s, 2, NULL, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_status(zarr_store_repack(below, 0, NULL, NULL, &err), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no archive"));
    assert_status(zarr_store_repack(s, 0, NULL, cancel, &err), ZARR_ERR_CANCELLED);
    check_dead(s);
    assert_true(need_repack(s, 0).is_needed);
    check_dead(s);
    zarr_cancel_free(cancel);
    zarr_store_free(s);
    zarr_store_free(below);
}

/* Another handle holds the lock. */
static void test_locked(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER), *other = open_folder(w);
    zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
    void *lock = NULL;
    zarr_error err = {0};

    make_dead(s);
    assert_status(zarr_store_lock(&lock, other, "x.zip", NULL, &err), ZARR_OK);
    assert_status(zarr_store_repack(s, 0, NULL, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "another program writes this archive"));
    zarr_store_unlock(other, lock);
    assert_true(need_repack(s, 0).is_needed);
    check_dead(s);
    zarr_store_free(s);
    zarr_store_free(other);
    zarr_store_free(below);
}

/* ---- single-file OME-Zarr ---- */

static void assert_notes(struct world *w, zarr_store *below, const char *key,
                         const char *want)
{
    zarr_store *s = open_form(w, below, key, ZARR_STORE_READ_ONLY, ZR_ZIP_FORM_BY_NAME);
    struct notes f = {""};

    assert_status(zr_store_check(s, add_note, &f, NULL, NULL), ZARR_OK);
    assert_string_equal(f.text, want);
    zarr_store_free(s);
}

static void make_hierarchy(zarr_store *s)
{
    put_text(s, "a/c/0", "chunk");
    put_text(s, "a/b/zarr.json", "{\"b\": 1}");
    put_text(s, "a/zarr.json", "{\"a\": 1}");
    put_text(s, "zarr.json", ROOT);
}

static void test_new_ozx(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY), *s;
    static uint8_t p[1 << 14];

    s = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_BY_NAME);
    put_text(s, "a/" ZR_DOC_JOB, "a command is at work, and flushes");
    put_text(s, "zarr.json", "{}");
    need_flush(s);
    make_hierarchy(s);
    need_flush(s);
    assert_status(zarr_store_erase(s, "a/" ZR_DOC_JOB, NULL, NULL), ZARR_OK);
    need_flush(s);
    assert_notes(w, below, "x.ozx", "");
    get_archive(below, "x.ozx", p, sizeof p);
    assert_memory_equal(p + 30, "zarr.json", 9);
    check_nothing_dead(s);
    /* A node more: the directory alone is in order, which is enough. */
    put_text(s, "b/zarr.json", "{\"b\": 2}");
    need_flush(s);
    assert_notes(w, below, "x.ozx", "");
    /* Another document of the root is not the first member. */
    put_text(s, "zarr.json", ROOT " ");
    need_flush(s);
    assert_notes(w, below, "x.ozx",
                 "note: zarr.json of the root is not the first member\n"
                 "note: its comment does not tell the version of OME-Zarr\n");
    assert_true(need_repack(s, ZARR_REPACK_LOOK).is_needed);
    assert_true(need_repack(s, 0).is_needed);
    assert_notes(w, below, "x.ozx", "");
    assert_false(need_repack(s, 0).is_needed);
    assert_text(s, "zarr.json", ROOT " ");
    assert_text(s, "a/b/zarr.json", "{\"b\": 1}");
    assert_text(s, "a/c/0", "chunk");
    zarr_store_free(s);
    zarr_store_free(below);
}

/* The close of a handle does what its flush would do. */
static void test_close_of_ozx(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY), *s;

    assert_status(zarr_store_erase(below, "x.ozx", NULL, NULL), ZARR_ERR_NOT_FOUND);
    s = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_BY_NAME);
    make_hierarchy(s);
    zarr_store_free(s);
    assert_notes(w, below, "x.ozx", "");
    zarr_store_free(below);
}

static void test_forms(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY), *s;

    /* By the option: each flush. */
    s = open_form(w, below, "x.zip", ZARR_STORE_CREATE, ZR_ZIP_FORM_OZX);
    for (int i = 0; i < 3; i++) {
        make_hierarchy(s);
        need_flush(s);
        assert_notes(w, below, "x.zip", "note: its name does not end in .ozx\n");
        check_nothing_dead(s);
    }
    zarr_store_free(s);
    /* Without it: a plain archive, also of that name. */
    s = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    make_hierarchy(s);
    need_flush(s);
    assert_false(need_repack(s, 0).is_needed);
    zarr_store_free(s);
    assert_notes(w, below, "x.ozx",
                 "note: it does not use zip64\n"
                 "note: zarr.json of the root is not the first member\n"
                 "note: its comment does not tell the version of OME-Zarr\n");
    s = open_form(w, below, "x.ozx", 0, ZR_ZIP_FORM_BY_NAME);
    assert_true(need_repack(s, 0).is_needed);
    zarr_store_free(s);
    assert_notes(w, below, "x.ozx", "");
    zarr_store_free(below);
}

/* The comment tells a version only if the root has one, and no member is compressed. */
static void test_no_version(void **state)
{
    static const char *const roots[] = {
        "{}", "no JSON", "{\"attributes\": {\"ome\": {\"version\": 5}}}",
        "{\"attributes\": {\"ome\": {\"version\": \"0.5\\\"\"}}}"};
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *below = begin_place(w, IN_MEMORY), *s;

    for (size_t i = 0; i < ZR_COUNT(roots); i++) {
        s = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_BY_NAME);
        put_text(s, "c", "chunk");
        put_text(s, "zarr.json", roots[i]);
        zarr_store_free(s);
        assert_notes(w, below, "x.ozx",
                     "note: its comment does not tell the version of OME-Zarr\n");
        assert_status(zarr_store_erase(below, "x.ozx", NULL, NULL), ZARR_OK);
    }
    make_member(
        &k, &(struct made_member){.name = "c", .data = "chunk", .bytes = 5, .method = 8});
    make_text(&k, "zarr.json", ROOT);
    make_end(&k, 0, "a comment", 9, false);
    assert_status(zarr_store_put(below, "x.ozx", k.bytes, k.n, NULL, NULL), ZARR_OK);
    s = open_form(w, below, "x.ozx", 0, ZR_ZIP_FORM_BY_NAME);
    assert_true(need_repack(s, 0).is_needed);
    assert_false(need_repack(s, 0).is_needed);
    zarr_store_free(s);
    assert_notes(w, below, "x.ozx",
                 "note: 1 members are compressed by the archive; codecs of arrays should "
                 "do that\n"
                 "note: its comment does not tell the version of OME-Zarr\n");
    make_free(&k);
    zarr_store_free(below);
}

/* A document of the root that cannot be read tells no version. What is written stays. */
static void test_damaged_root(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        struct maker k = {0};
        zarr_store *below = begin_place(w, IN_MEMORY), *s;

        make_text(&k, "zarr.json", ROOT);
        make_text(&k, "c", "chunk");
        make_end(&k, 0, NULL, 0, true);
        if (i == 0) { /* too long, as the record tells */
            make_u32(&k, k.member[0].central_at + 20, 1 << 16);
            make_u32(&k, k.member[0].central_at + 24, 1 << 16);
        } else { /* its local header has too long a name */
            make_u16(&k, k.member[0].header_at + 26, 0xffff);
        }
        assert_status(zarr_store_put(below, "x.ozx", k.bytes, k.n, NULL, NULL), ZARR_OK);
        s = open_form(w, below, "x.ozx", 0, ZR_ZIP_FORM_BY_NAME);
        put_text(s, "d", "new");
        need_flush(s);
        zarr_store_free(s);
        s = open_form(w, below, "x.ozx", ZARR_STORE_READ_ONLY, ZR_ZIP_FORM_BY_NAME);
        assert_text(s, "c", "chunk");
        assert_text(s, "d", "new");
        zarr_store_free(s);
        make_free(&k);
        zarr_store_free(below);
    }
}

/* A handle that was opened before the archive was there, or changed, looks again. */
static void test_late_look(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_MEMORY), *early, *r, *s;
    struct notes f = {""};
    zarr_error err = {0};

    early = open_form(w, below, "x.zip", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    s = open_form(w, below, "x.zip", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    make_dead(s);
    assert_true(need_repack(early, ZARR_REPACK_LOOK).is_needed);
    assert_true(need_repack(early, 0).is_needed);
    r = open_form(w, below, "x.zip", ZARR_STORE_READ_ONLY, ZR_ZIP_FORM_PLAIN);
    assert_false(need_repack(r, ZARR_REPACK_LOOK).is_needed);
    make_dead(s);
    assert_true(need_repack(early, ZARR_REPACK_LOOK).is_needed);
    assert_status(zarr_store_repack(r, ZARR_REPACK_LOOK, NULL, NULL, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "open it again"));
    zarr_store_free(r);
    zarr_store_free(early);
    zarr_store_free(s);
    assert_status(zarr_store_stat(below, "x.ozx", NULL, NULL, NULL), ZARR_ERR_NOT_FOUND);
    early = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    s = open_form(w, below, "x.ozx", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    put_text(s, "c", "chunk");
    need_flush(s);
    assert_status(zr_store_check(early, add_note, &f, NULL, NULL), ZARR_OK);
    assert_non_null(strstr(f.text, "there is no zarr.json"));
    zarr_store_free(early);
    zarr_store_free(s);
    zarr_store_free(below);
}

/* ---- records ---- */

static void test_moved_records(void **state)
{
    const uint64_t far = UINT64_C(5) << 32;
    const struct zr_zip_record r = {
        .name = "name", .name_bytes = 4, .header_at = far, .bytes = 9, .crc = 7};
    uint8_t p[256], q[256 + 28];
    struct zr_zip_central c;
    size_t n = zr_zip_write_central(p, &r);

    (void)state;
    memcpy(p + n, "\x99\x99\2\0ab!", 7); /* a field, and half of one; a comment */
    p[30] = (uint8_t)(p[30] + 6);
    p[32] = 1;
    n = zr_zip_write_moved(q, p, 12);
    zr_zip_central_parse(q, &c);
    assert_true(!c.is_bad && c.header_at == 12 && c.bytes == 9 && c.crc == 7);
    assert_int_equal(c.extra_bytes, 6);
    assert_memory_equal(c.extra, "\x99\x99\2\0ab!", 7);
    assert_int_equal(n, 46 + 4 + 6 + 1);
    n = zr_zip_write_moved(p, q, far + 1);
    zr_zip_central_parse(p, &c);
    assert_true(!c.is_bad && c.header_at == far + 1 && c.bytes == 9);
    assert_int_equal(n, 46 + 4 + 12 + 6 + 1);
    assert_int_equal(zr_zip_central_bytes(p), n);
}

/* ---- failures ---- */

/* Repacks with one failing allocation. Afterwards all values are there. */
static bool repack_failing(struct world *w, zarr_store *below, int64_t at)
{
    zarr_store *s = open_form(w, below, "x.zip", 0, ZR_ZIP_FORM_OZX);
    bool failed;

    w->fail_at = at;
    failed = zarr_store_repack(s, 0, NULL, NULL, NULL) != ZARR_OK;
    zarr_store_free(s);
    failed = failed || w->fail_at <= 0;
    w->fail_at = 0;
    s = need_as(w, below, 0, false);
    check_dead(s);
    put_text(s, "a/b", "first");
    put_text(s, "a/b", "second");
    zarr_store_free(s);
    return failed;
}

static void test_failing_allocations(void **state)
{
    struct world *w = *state;

    for (int place = 0; place < 2; place++) {
        zarr_store *below = begin_place(w, (enum place)place);
        zarr_store *s = need_as(w, below, ZARR_STORE_CREATE, false);
        int64_t at = 1;

        make_dead(s);
        zarr_store_free(s);
        while (repack_failing(w, below, at))
            at++;
        assert_true(at > 5);
        zarr_store_free(below);
    }
}

/* ---- many members ---- */

static void test_many(void **state)
{
    struct world *w = *state;
    zarr_store *below = begin_place(w, IN_FOLDER);
    zarr_store *s = open_form(w, below, "x.zip", ZARR_STORE_CREATE, ZR_ZIP_FORM_PLAIN);
    char key[32], text[32];

    for (int i = 0; i < 70000; i++) {
        snprintf(key, sizeof key, i % 1000 ? "n%d/c" : "n%d/zarr.json", i);
        snprintf(text, sizeof text, "value %d", i);
        put_text(s, key, text);
    }
    zarr_store_free(s);
    s = open_form(w, below, "x.zip", 0, ZR_ZIP_FORM_OZX);
    for (int i = 1; i < 70000; i += 2) {
        snprintf(key, sizeof key, "n%d/c", i);
        assert_status(zarr_store_erase(s, key, NULL, NULL), ZARR_OK);
    }
    assert_true(need_repack(s, 0).is_needed);
    for (int i = 0; i < 70000; i++) {
        snprintf(key, sizeof key, i % 1000 ? "n%d/c" : "n%d/zarr.json", i);
        snprintf(text, sizeof text, "value %d", i);
        if (i % 2)
            assert_absent(s, key);
        else
            assert_text(s, key, text);
    }
    zarr_store_free(s);
    zarr_store_free(below);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dead_bytes, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_tail, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_foreign_archive, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_absolute_offsets, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_root, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_late_look, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_refused, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_other_refusals, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_locked, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_new_ozx, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_close_of_ozx, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_forms, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_no_version, folder_setup, folder_teardown),
        cmocka_unit_test(test_moved_records),
        cmocka_unit_test_setup_teardown(test_failing_allocations, folder_setup,
                                        folder_teardown),
        cmocka_unit_test_setup_teardown(test_many, folder_setup, folder_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
