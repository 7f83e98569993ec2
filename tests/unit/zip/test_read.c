/*
 * unit/zip/test_read.c - valid archives of many programs' kinds: values, ranges,
 * listings, names, roots, and how many reads of the store below they cost.
 */
#include "zip_test.h"

#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "the value of a member, the value of a member, of a member";

/* Reads [from, from + n) of a key; SUFFIX: the last n bytes. */
static void assert_range(zarr_store *s, const char *key, uint64_t from, uint64_t n,
                         const char *want)
{
    char to[64] = {0};
    const zarr_memory mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = ZR_MIN(n, 64)};
    zarr_store_value value = ZARR_STORE_VALUE_INIT;
    zarr_error err;

    if (zarr_store_read(s, key, from, &mem, &value, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(value.done_bytes, strlen(want));
    assert_memory_equal(to, want, strlen(want));
    assert_int_equal(value.bytes, sizeof text - 1);
}

static void test_values_and_ranges(void **state)
{
    static const struct made_member kinds[] = {
        {.name = "k/stored"},
        {.name = "k/deflated", .method = 8},
        {.name = "k/zstd", .method = 93},
        {.name = "k/extra", .local_extra = 28, .central_extra = 24},
        {.name = "k/same-extra", .local_extra = 28, .central_extra = 28},
        {.name = "k/times", .times = true},
        {.name = "k/zip64", .local_zip64 = true},
        {.name = "k/java", .method = 8, .descriptor = true},
        {.name = "k/late", .descriptor = true},
        {.name = "k/last"},
    };
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    for (size_t i = 0; i < ZR_COUNT(kinds); i++) {
        struct made_member m = kinds[i];

        m.data = text;
        m.bytes = sizeof text - 1;
        make_member(&k, &m);
    }
    make_text(&k, "k/empty", "");
    make_end(&k, 0, NULL, 0, false);
    for (int round = 0; round < 2; round++) { /* ranges first, then whole values first */
        s = need_archive(w, &k);
        for (size_t i = 0; i < ZR_COUNT(kinds); i++) {
            if (round)
                assert_text(s, kinds[i].name, text);
            assert_range(s, kinds[i].name, 4, 5, "value");
            assert_range(s, kinds[i].name, ZARR_STORE_SUFFIX, 6, "member");
            assert_range(s, kinds[i].name, sizeof text - 7, 100, "member");
            assert_range(s, kinds[i].name, 1000, 5, "");
            assert_text(s, kinds[i].name, text);
        }
        assert_text(s, "k/empty", "");
        assert_absent(s, "k");
        assert_absent(s, "k/none");
        zarr_store_free(s);
    }
    make_free(&k);
}

/* A stored member of the usual layout costs one read, of its bytes alone. */
static void test_reads(void **state)
{
    static const struct {
        struct made_member m;
        int gets;      /* of the first read of the whole value */
        int gets_part; /* of a part, read before */
    } rows[] = {
        {{.name = "plain"}, 1, 1},
        {{.name = "extra", .local_extra = 16, .central_extra = 16}, 1, 1},
        {{.name = "times", .times = true}, 1, 1},
        {{.name = "zip64", .local_zip64 = true}, 1, 2},
        {{.name = "late", .descriptor = true}, 1, 2},
        {{.name = "deflated", .method = 8}, 1, 1},
        {{.name = "long", .local_extra = 1000}, 2, 2},
        {{.name = "end"}, 1, 1},
    };
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct made_member m = rows[i].m;

        m.data = text;
        m.bytes = sizeof text - 1;
        make_member(&k, &m);
    }
    make_end(&k, 0, NULL, 0, false);
    for (int part = 0; part < 2; part++) {
        s = need_archive(w, &k);
        for (size_t i = 0; i < ZR_COUNT(rows); i++) {
            w->n_gets = 0;
            w->got_bytes = 0;
            if (part)
                assert_range(s, rows[i].m.name, 4, 5, "value");
            else
                assert_text(s, rows[i].m.name, text);
            assert_int_equal(w->n_gets, part ? rows[i].gets_part : rows[i].gets);
            if (i == 0)
                assert_int_equal(w->got_bytes, part ? 5 : sizeof text - 1);
            w->n_gets = 0; /* a second part of it */
            assert_range(s, rows[i].m.name, 10, 5, "of a ");
            assert_int_equal(w->n_gets, rows[i].m.method == 8 && part ? 0 : 1);
        }
        zarr_store_free(s);
    }
    make_free(&k);
}

/* ---- where the directory is ---- */

static void test_comments_and_prefixes(void **state)
{
    static const uint8_t no_end[] = {'P', 'K', 5, 6, 0, 0, 0, 0, 1, 0, 1, 0};
    static char comment[65535], prefix[1000];
    struct world *w = *state;

    memset(comment, 'c', sizeof comment);
    memcpy(comment + 100, no_end, sizeof no_end);
    for (int i = 0; i < 16; i++) {
        struct maker k = {0};
        zarr_store *s;

        if (i & 1) {
            make_bytes(&k, prefix, sizeof prefix);
            k.base = i & 8 ? 0 : sizeof prefix;
        }
        make_text(&k, "a", "first");
        make_text(&k, "b/c", "second");
        make_end(&k, 0, comment, i & 2 ? sizeof comment : 0, i & 4);
        s = need_archive(w, &k);
        assert_text(s, "a", "first");
        assert_text(s, "b/c", "second");
        zarr_store_free(s);
        make_free(&k);
    }
}

/* An archive in an archive, and one in the comment: the outer one counts. */
static void test_nested(void **state)
{
    struct world *w = *state;
    struct maker inner = {0}, k = {0};
    zarr_store *s;

    make_text(&inner, "x", "inner");
    make_end(&inner, 0, NULL, 0, false);
    make_text(&k, "x", "outer");
    make_member(&k, &(struct made_member){
                        .name = "i.zip", .data = inner.bytes, .bytes = inner.n});
    make_end(&k, 0, inner.bytes, inner.n - 1, false);
    s = need_archive(w, &k);
    assert_text(s, "x", "outer");
    zarr_store_free(s);
    make_bytes(&k, "cut off", 7); /* the same if the end is searched */
    s = need_archive(w, &k);
    assert_text(s, "x", "outer");
    assert_non_null(strstr(w->log, "last complete directory"));
    zarr_store_free(s);
    make_free(&k);
    make_free(&inner);
}

/* A writer was killed after it appended a value that is an archive. */
static void test_tail_is_archive(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;
    size_t first;

    make_text(&k, "x", "outer");
    make_end(&k, 0, NULL, 0, false);
    first = k.n_members;
    make_bytes(&k, "PK\3\4 the header of the value ", 30);
    k.base = k.n;
    make_text(&k, "x", "inner");
    make_end(&k, first, NULL, 0, false);
    s = need_archive(w, &k);
    assert_text(s, "x", "outer");
    assert_non_null(strstr(w->log, "last complete directory"));
    zarr_store_free(s);
    make_free(&k);
}

/* Two archives in one file: the second counts, as for other programs. */
static void test_joined(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;
    size_t first;

    make_text(&k, "x", "first");
    make_end(&k, 0, "comment", 7, false);
    first = k.n_members;
    k.base = k.n;
    make_text(&k, "x", "second");
    make_end(&k, first, NULL, 0, false);
    s = need_archive(w, &k);
    assert_text(s, "x", "second");
    zarr_store_free(s);
    make_free(&k);
}

static void test_many_members(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;
    size_t at;

    /* a member that the directory does not name lies between two others */
    make_text(&k, "a", "one");
    make_text(&k, "dead", "dead bytes");
    k.n_members--;
    make_text(&k, "b", "two");
    at = k.member[0].header_at; /* not in the order of the archive */
    k.member[2] = k.member[0];
    k.member[0] = k.member[1];
    k.member[1] = k.member[2];
    assert_int_equal(k.member[1].header_at, at);
    make_end(&k, 0, NULL, 0, false);
    s = need_archive(w, &k);
    assert_text(s, "a", "one");
    assert_text(s, "b", "two");
    assert_absent(s, "dead");
    zarr_store_free(s);
    make_free(&k);

    make_end(&k, 0, NULL, 0, false); /* no member */
    s = need_archive(w, &k);
    assert_absent(s, "a");
    zarr_store_free(s);
    make_free(&k);
}

/* ---- names ---- */

static void test_names(void **state)
{
    static const struct {
        const char *name, *key; /* NULL: ignored */
        size_t n;
        uint16_t flags;
    } rows[] = {
        {"plain/a.b", "plain/a.b", 0, 0},
        {"u\xc3\xa4", "u\xc3\xa4", 0, 0x800},
        {"w\xc3\xa4", "w\xc3\xa4", 0, 0}, /* Info-ZIP sets no flag */
        {"u\x84x", "u\xc3\xa4x", 0, 0},   /* code page 437 */
        {"\xe1\xfb", "\xc3\x9f\xe2\x88\x9a", 0, 0},
        {"bad\xff", NULL, 0, 0x800},
        {"/absolute", NULL, 0, 0},
        {"up/../../etc/passwd", NULL, 0, 0},
        {"..", NULL, 0, 0},
        {"./dot", NULL, 0, 0},
        {"two//parts", NULL, 0, 0},
        {"back\\slash", NULL, 0, 0},
        {"C:\\x", NULL, 0, 0},
        {"n\0ul", NULL, 4, 0},
        {"folder/", NULL, 0, 0},
    };
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;
    size_t n_ignored = 0;
    char said[64];

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        make_member(&k, &(struct made_member){.name = rows[i].name,
                                              .name_bytes = rows[i].n,
                                              .flags = rows[i].flags,
                                              .data = "v",
                                              .bytes = 1});
        n_ignored += !rows[i].key;
    }
    make_end(&k, 0, NULL, 0, false);
    s = need_archive(w, &k);
    for (size_t i = 0; i < ZR_COUNT(rows); i++)
        if (rows[i].key)
            assert_text(s, rows[i].key, "v");
    assert_absent(s, "folder");
    assert_absent(s, "n");
    assert_absent(s, "back/slash");
    snprintf(said, sizeof said, "%zu members are ignored", n_ignored - 1);
    assert_non_null(strstr(w->log, said));
    zarr_store_free(s);
    make_free(&k);
}

static void test_duplicates(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    make_text(&k, "a", "old");
    make_text(&k, "b", "other");
    make_text(&k, "a", "new value");
    make_text(&k, "a", "newest");
    make_end(&k, 0, NULL, 0, false);
    s = need_archive(w, &k);
    assert_text(s, "a", "newest");
    assert_text(s, "b", "other");
    zarr_store_free(s);
    make_free(&k);
}

static void assert_dead(struct world *w, const struct maker *k, uint64_t values,
                        uint64_t bytes)
{
    zarr_store_counters c = ZARR_STORE_COUNTERS_INIT;
    zarr_store *s = need_archive(w, k);

    zarr_store_read_counters(s, &c);
    zarr_store_free(s);
    assert_int_equal(c.dead_values, values);
    assert_int_equal(c.dead_bytes, bytes);
}

/* Members that were replaced, that no record names, and what is behind the end record. */
static void test_dead_bytes(void **state)
{
    enum {
        HEADER = 30 + 1 /* and a name */
    };
    static const struct made_member odd[] = {
        {.name = "e",
         .data = "text",
         .bytes = 4,
         .local_zip64 = true,
         .descriptor = true},
        {.name = "f", .data = "text", .bytes = 4, .local_extra = 9, .times = true}};
    static char gap[100];
    struct world *w = *state;
    struct maker k = {0};

    for (int is_counted = 0; is_counted < 2; is_counted++) { /* by its offsets */
        k = (struct maker){0};
        make_bytes(&k, gap, 50); /* before the archive: not its bytes */
        k.base = is_counted ? 0 : k.n;
        make_text(&k, "a", "old");
        make_end(&k, 0, NULL, 0, false);
        assert_dead(w, &k, 0, 0);
        make_free(&k);
    }
    k = (struct maker){0};
    make_text(&k, "a", "old");
    make_text(&k, "b", "other");
    for (size_t i = 0; i < ZR_COUNT(odd); i++)
        make_member(&k, &odd[i]);
    make_end(&k, 0, "comment", 7, true);
    assert_dead(w, &k, 0, 0);
    k.n = k.directory_at;
    make_text(&k, "a", "new value");
    make_text(&k, "a", "newest");
    make_end(&k, 0, NULL, 0, false);
    assert_dead(w, &k, 2, 2 * HEADER + 3 + 9);
    make_bytes(&k, gap, sizeof gap); /* of a writer that was killed */
    assert_dead(w, &k, 2, 2 * HEADER + 3 + 9 + sizeof gap);
    k.n = k.directory_at;
    make_end(&k, 1, NULL, 0, false); /* the first "a" is not named */
    assert_dead(w, &k, 1, 2 * HEADER + 3 + 9);
    k.n = k.directory_at;
    make_bytes(&k, gap, sizeof gap); /* such as an old directory */
    make_end(&k, 4, NULL, 0, false);
    assert_dead(w, &k, 1, k.member[4].header_at + HEADER + 9 + sizeof gap);
    make_free(&k);
}

/* ---- the root and listings ---- */

struct rows {
    char text[512];
};

static int add_row(void *user, const zarr_store_item *item)
{
    struct rows *r = user;
    const size_t n = strlen(r->text);

    snprintf(r->text + n, sizeof r->text - n, "%s%s ", item->key,
             item->is_prefix ? "/" : "");
    return 0;
}

static void assert_list(zarr_store *s, const char *prefix, uint32_t how, const char *want)
{
    struct rows r = {""};
    zarr_error err;

    if (zarr_store_list(s, prefix, how, add_row, &r, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_string_equal(r.text, want);
}

static void test_listings(void **state)
{
    static const char *const keys[] = {
        "zarr.json",     "t/c/1/0", "t/c/0/0", "t/zarr.json",
        "t-1/zarr.json", "t/c/0/1", "t"};
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    for (size_t i = 0; i < ZR_COUNT(keys); i++)
        make_text(&k, keys[i], keys[i]);
    make_end(&k, 0, NULL, 0, false);
    s = need_archive(w, &k);
    assert_list(s, "", ZARR_LIST_RECURSIVE,
                "t t-1/zarr.json t/c/0/0 t/c/0/1 t/c/1/0 t/zarr.json zarr.json ");
    assert_list(s, "", ZARR_LIST_DIRECTORY, "t t-1/ t/ zarr.json ");
    assert_list(s, "t", ZARR_LIST_DIRECTORY, "t/c/ t/zarr.json ");
    assert_list(s, "t/c", ZARR_LIST_DIRECTORY, "t/c/0/ t/c/1/ ");
    assert_list(s, "t/c/0", ZARR_LIST_RECURSIVE, "t/c/0/0 t/c/0/1 ");
    assert_list(s, "t/c/0/0", ZARR_LIST_RECURSIVE, "");
    assert_list(s, "none", ZARR_LIST_DIRECTORY, "");
    assert_list(s, "", ZARR_LIST_DEBRIS, "");
    zarr_store_free(s);
    make_free(&k);
}

static void test_folder_above_root(void **state)
{
    static const struct {
        const char *members[5];
        const char *list;
    } rows[] = {
        {{"x.zarr/zarr.json", "x.zarr/t/zarr.json"}, "t/ zarr.json "},
        {{"x.zarr/", "x.zarr/.zgroup", "x.zarr/t/.zarray"}, ".zgroup t/ "},
        {{"a/b/.zarray", "a/b/0.0"}, ".zarray 0.0 "},
        {{"x/zarr.json", "x/c/0", "__MACOSX/x/._zarr.json"}, "c/ zarr.json "},
        {{"x.zarr/zarr.json", "readme"}, "readme x.zarr/ "},
        {{"x/zarr.json", "y/zarr.json"}, "x/ y/ "},
        {{"x/a/zarr.json", "x/b/zarr.json"}, "x/ "},
        {{"xy/zarr.json", "x/zarr.json"}, "x/ xy/ "},
        {{"x/zarr.json"}, "zarr.json "},
        {{"zarr.json"}, "zarr.json "},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        struct maker k = {0};
        zarr_store *s;

        for (size_t j = 0; j < 5 && rows[i].members[j]; j++)
            make_text(&k, rows[i].members[j], "v");
        make_end(&k, 0, NULL, 0, false);
        s = need_archive(w, &k);
        assert_list(s, "", ZARR_LIST_DIRECTORY, rows[i].list);
        zarr_store_free(s);
        make_free(&k);
    }
}

/* ---- forks and memory ---- */

static void test_fork(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;
    int status = 0;
    pid_t pid;

    make_text(&k, "a", text);
    make_member(&k,
                &(struct made_member){
                    .name = "b", .data = text, .bytes = sizeof text - 1, .method = 8});
    make_end(&k, 0, NULL, 0, false);
    s = need_archive(w, &k);
    assert_text(s, "a", text);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        assert_range(s, "b", 4, 5, "value");
        assert_text(s, "a", text);
        _exit(0);
    }
    assert_text(s, "b", text);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    zarr_store_free(s);
    make_free(&k);
}

static zarr_status use_all(struct world *w, zarr_error *err)
{
    struct rows r = {""};
    zarr_store *s = NULL;
    char to[64];
    size_t n = 0;
    zarr_status st = open_archive(&s, w, err);

    if (st == ZARR_OK)
        st = zarr_store_list(s, "", ZARR_LIST_RECURSIVE, add_row, &r, NULL, err);
    if (st == ZARR_OK)
        st = read_whole(s, "a", to, sizeof to, &n, err);
    if (st == ZARR_OK)
        st = read_whole(s, "b", to, 10, &n, err);
    if (st == ZARR_OK)
        st = read_whole(s, "c", to, sizeof to, &n, err);
    zarr_store_free(s);
    return st;
}

static void test_no_memory(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_error err;
    int at = 1;

    make_text(&k, "b0", "not sorted");
    make_text(&k, "a", text);
    make_member(&k,
                &(struct made_member){
                    .name = "b", .data = text, .bytes = sizeof text - 1, .method = 8});
    make_member(
        &k, &(struct made_member){
                .name = "c", .data = text, .bytes = sizeof text - 1, .descriptor = true});
    make_end(&k, 0, NULL, 0, false);
    put_archive(w, k.bytes, k.n);
    for (;; at++) {
        zarr_status st;

        w->fail_at = at;
        st = use_all(w, &err);
        if (st == ZARR_OK && w->fail_at > 0)
            break;
        w->fail_at = 0;
        if (st != ZARR_OK)
            assert_status(st, ZARR_ERR_NO_MEMORY);
    }
    w->fail_at = 0;
    assert_true(at > 10);
    make_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values_and_ranges, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_reads, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_comments_and_prefixes, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_nested, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_tail_is_archive, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_joined, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_many_members, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_names, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_duplicates, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_dead_bytes, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_listings, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_folder_above_root, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_fork, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
