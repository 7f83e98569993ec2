/*
 * unit/zip/test_hostile.c - archives that are cut off, damaged or made to harm: an error
 * that names archive and member, or the right value; never another value.
 */
#include "zip_test.h"

static const char one[] = "the first value, the first value, the first value";
static const char two[] = "the second value, of another length, of another length";

/* Three members, stored, deflated and zstd, and one with a local header of its own. */
static void make_usual(struct maker *k)
{
    make_text(k, "zarr.json", one);
    make_member(k, &(struct made_member){
                       .name = "c/0", .data = two, .bytes = sizeof two - 1, .method = 8});
    make_member(k,
                &(struct made_member){
                    .name = "c/1", .data = one, .bytes = sizeof one - 1, .method = 93});
    make_member(k, &(struct made_member){.name = "c/2",
                                         .data = two,
                                         .bytes = sizeof two - 1,
                                         .descriptor = true,
                                         .times = true});
}

static int count_row(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

static void ignore_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    (void)arg;
    assert_true((op->status == ZARR_OK) == (err == NULL));
}

/* Reads all members in one call, whole and in part: each ends as it does alone. */
static void use_together(struct world *w, const struct maker *k)
{
    static uint8_t mem[2][3 * MADE_MEMBERS][256];
    static const uint64_t offset[] = {0, 3, ZARR_STORE_SUFFIX};
    static const uint64_t length[] = {ZARR_STORE_TO_END, 8, 8};
    zarr_store_op op[2][3 * MADE_MEMBERS], *ops[3 * MADE_MEMBERS];
    const size_t n = 3 * k->n_members;
    zarr_store *s = NULL;
    zarr_error err;

    w->is_slow = true;
    if (open_archive(&s, w, &err) == ZARR_OK) {
        for (size_t i = 0; i < n; i++) {
            for (size_t way = 0; way < 2; way++)
                op[way][i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                             .key = k->member[i / 3].m.name,
                                             .offset = offset[i % 3],
                                             .length = length[i % 3],
                                             .mem = zr_mem_of_host(mem[way][i], 256)};
            ops[i] = &op[0][i];
        }
        zarr_store_submit(s, ops, n, ignore_done, NULL);
        for (size_t i = 0; i < n; i++) {
            assert_status(zarr_store_run(s, &op[1][i], NULL), op[0][i].status);
            assert_int_equal(op[0][i].done_bytes, op[1][i].done_bytes);
            assert_memory_equal(mem[0][i], mem[1][i], op[0][i].done_bytes);
        }
        zarr_store_free(s);
    }
    w->is_slow = false;
}

/* Opens the archive, lists it, and reads all keys. A value that is read is right. A key
 * may be missing only if its name was changed. Returns how many values were read. */
static int use_archive(struct world *w, const struct maker *k, bool names_changed)
{
    int n_rows = 0, n_values = 0;
    zarr_store *s = NULL;
    zarr_error err = {0};
    char to[256], part[8];
    size_t n = 0;

    if (open_archive(&s, w, &err) != ZARR_OK) {
        assert_non_null(strstr(err.message, "x.zip"));
        return 0;
    }
    assert_status(
        zarr_store_list(s, "", ZARR_LIST_RECURSIVE, count_row, &n_rows, NULL, &err),
        ZARR_OK);
    for (size_t i = 0; i < k->n_members; i++) {
        const struct made_member *m = &k->member[i].m;
        zarr_status st = read_whole(s, m->name, to, sizeof to, &n, &err);

        if (st == ZARR_OK) {
            assert_int_equal(n, m->bytes);
            assert_memory_equal(to, m->data, n);
            n_values++;
        } else if (st == ZARR_ERR_NOT_FOUND) {
            assert_true(names_changed);
        } else {
            assert_non_null(strstr(err.message, "x.zip"));
        }
        st = read_whole(s, m->name, part, sizeof part, &n, &err);
        if (st != ZARR_OK)
            assert_true(err.message[0]);
    }
    zarr_store_free(s);
    use_together(w, k);
    return n_values;
}

static void test_cut_off(void **state)
{
    struct world *w = *state;
    struct maker k = {0};

    make_usual(&k);
    make_end(&k, 0, "a comment", 9, false);
    for (size_t n = 0; n < k.n; n++) {
        put_archive(w, k.bytes, n);
        /* without a part of its comment, the archive is complete */
        assert_int_equal(use_archive(w, &k, false), n >= k.n - 9 ? 4 : 0);
    }
    make_free(&k);
}

/* A program appends members and a directory, and is killed after each byte. */
static void test_killed_append(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    size_t first;
    zarr_store *s;
    zarr_error err;

    make_text(&k, "a", "old");
    make_text(&k, "b", "kept");
    make_end(&k, 0, NULL, 0, false);
    first = k.n;
    make_text(&k, "a", "new value");
    make_member(&k, &(struct made_member){
                        .name = "c", .data = two, .bytes = sizeof two - 1, .method = 8});
    make_end(&k, 1, NULL, 0, false);
    for (size_t n = first; n <= k.n; n++) {
        put_archive(w, k.bytes, n);
        w->log[0] = '\0';
        if (open_archive(&s, w, &err) != ZARR_OK)
            fail_msg("%zu: %s", n, err.message);
        assert_text(s, "b", "kept");
        assert_text(s, "a", n < k.n ? "old" : "new value");
        if (n < k.n)
            assert_absent(s, "c");
        else
            assert_text(s, "c", two);
        assert_int_equal(w->log[0] != '\0', n > first && n < k.n);
        zarr_store_free(s);
    }
    make_free(&k);
}

/* The old directory is far from the end, and what is after it looks like end records. */
static void test_far_directory(void **state)
{
    static const uint8_t wrong[22] = {'P', 'K', 5, 6,  0, 0, 0, 0, 1,
                                      0,   1,   0, 64, 0, 0, 0, 1};
    static uint8_t junk[3 << 20];
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    make_text(&k, "a", "old");
    make_end(&k, 0, NULL, 0, true);
    for (size_t i = 0; i + 64 < sizeof junk; i += 8191)
        memcpy(junk + i, wrong, sizeof wrong);
    make_bytes(&k, junk, sizeof junk);
    s = need_archive(w, &k);
    assert_text(s, "a", "old");
    zarr_store_free(s);
    make_free(&k);
}

/* Many wrong end records that share one long directory: few bytes are read. */
static void test_shared_directory(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s = NULL;
    zarr_error err;
    uint8_t record[46] = "PK\1\2";
    uint8_t end[22] = "PK\5\6";

    for (int i = 0; i < 20000; i++)
        make_bytes(&k, record, sizeof record);
    for (int i = 0; i < 20000; i++) {
        zr_store_le32(end + 12, (uint32_t)k.n);
        make_bytes(&k, end, sizeof end);
    }
    make_bytes(&k, "x", 1);
    put_archive(w, k.bytes, k.n);
    assert_status(open_archive(&s, w, &err), ZARR_ERR_CORRUPT);
    assert_true(w->got_bytes < 4 * k.n);
    make_free(&k);
}

/* Every byte of the directory and of the end record becomes each of some values. */
static void test_each_byte(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct world *w = *state;

    for (int zip64 = 0; zip64 < 2; zip64++) {
        struct maker k = {0};

        make_usual(&k);
        make_end(&k, 0, "comment", 7, zip64);
        for (size_t at = 0; at < k.n; at++)
            for (size_t i = 0; i < ZR_COUNT(values); i++) {
                const uint8_t was = k.bytes[at];

                k.bytes[at] = values[i];
                put_archive(w, k.bytes, k.n);
                use_archive(w, &k, at >= k.directory_at);
                k.bytes[at] = was;
            }
        make_free(&k);
    }
}

/* Every field of two and four bytes becomes each of some values. */
static void test_each_field(void **state)
{
    static const uint32_t values[] = {0,      1,          2,          0xfffe,
                                      0xffff, 0x7fffffff, 0xfffffffe, UINT32_MAX};
    struct world *w = *state;
    struct maker k = {0};

    make_usual(&k);
    make_end(&k, 0, NULL, 0, true);
    for (size_t at = k.directory_at; at + 4 <= k.n; at++)
        for (size_t i = 0; i < 2 * ZR_COUNT(values); i++) {
            uint8_t was[4];

            memcpy(was, k.bytes + at, 4);
            if (i < ZR_COUNT(values))
                make_u32(&k, at, values[i]);
            else
                make_u16(&k, at, (uint16_t)values[i - ZR_COUNT(values)]);
            put_archive(w, k.bytes, k.n);
            use_archive(w, &k, true);
            memcpy(k.bytes + at, was, 4);
        }
    make_free(&k);
}

static void test_bad_members(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s;

    make_text(&k, "good", one);
    make_text(&k, "encrypted", one);
    make_text(&k, "bzip2", one);
    make_member(&k, &(struct made_member){
                        .name = "link", .data = "good", .bytes = 4, .is_link = true});
    make_text(&k, "sum", one);
    make_text(&k, "overlaps", one);
    make_text(&k, "outside", one);
    make_text(&k, "sizes", one);
    make_text(&k, "renamed", one);
    make_member(&k,
                &(struct made_member){
                    .name = "bomb", .data = one, .bytes = sizeof one - 1, .method = 8});
    make_member(&k,
                &(struct made_member){
                    .name = "huge", .data = one, .bytes = sizeof one - 1, .method = 93});
    make_member(&k, &(struct made_member){.name = "late",
                                          .data = one,
                                          .bytes = sizeof one - 1,
                                          .descriptor = true});
    make_end(&k, 0, NULL, 0, false);
    make_u16(&k, k.member[1].central_at + 8, 1);
    make_u16(&k, k.member[2].central_at + 10, 12);
    k.bytes[k.member[4].data_at] ^= 1;
    make_u32(&k, k.member[5].central_at + 20, 60);
    make_u32(&k, k.member[5].central_at + 24, 60);
    make_u32(&k, k.member[6].central_at + 42, (uint32_t)k.directory_at - 3);
    make_u32(&k, k.member[7].central_at + 24, 3);
    k.bytes[k.member[8].header_at + 30] ^= 1;
    make_u16(&k, k.member[8].header_at + 28, 1);
    make_u32(&k, k.member[9].central_at + 24, 1 << 19);
    make_u32(&k, k.member[10].central_at + 24, 1 << 30);
    k.bytes[k.member[11].header_at + 30] ^= 1;
    s = need_archive(w, &k);
    assert_text(s, "good", one);
    assert_fails(s, "encrypted", ZARR_ERR_UNSUPPORTED, "encrypted");
    assert_fails(s, "bzip2", ZARR_ERR_UNSUPPORTED, "bzip2 (method 12)");
    assert_fails(s, "link", ZARR_ERR_UNSUPPORTED, "symbolic link");
    assert_fails(s, "sum", ZARR_ERR_CORRUPT, "CRC-32");
    assert_fails(s, "overlaps", ZARR_ERR_CORRUPT, "overlaps");
    assert_fails(s, "outside", ZARR_ERR_CORRUPT, "not between");
    assert_fails(s, "sizes", ZARR_ERR_CORRUPT, "contradicts");
    assert_fails(s, "bomb", ZARR_ERR_CORRUPT, "so many bytes");
    assert_fails(s, "huge", ZARR_ERR_LIMIT, "chunk_bytes");
    assert_fails(s, "late", ZARR_ERR_CORRUPT, "local header");
    zarr_store_free(s);
    make_free(&k);
}

/* Each allocation of a call with many operations fails once, or all from there on. */
static void test_no_memory(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    uint8_t mem[8][256];
    int n_failed = 1;

    make_usual(&k);
    make_end(&k, 0, NULL, 0, false);
    put_archive(w, k.bytes, k.n);
    w->is_slow = true;
    for (int at = 1; at < 100; at++) {
        zarr_store_op op[4], *ops[4];
        zarr_store *s = NULL;
        zarr_error err;

        assert_status(open_archive(&s, w, &err), ZARR_OK);
        for (size_t i = 0; i < 4; i++) {
            op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                    .key = k.member[i].m.name,
                                    .length = ZARR_STORE_TO_END,
                                    .mem = zr_mem_of_host(mem[i], 256)};
            ops[i] = &op[i];
        }
        w->forever = at % 2;
        w->fail_at = at / 2 + 1;
        zarr_store_submit(s, ops, 4, ignore_done, NULL);
        n_failed = 0;
        w->fail_at = 0;
        for (size_t i = 0; i < 4; i++) {
            n_failed += op[i].status != ZARR_OK;
            if (op[i].status == ZARR_OK)
                assert_memory_equal(mem[i], k.member[i].m.data, op[i].done_bytes);
            else
                assert_status(op[i].status, ZARR_ERR_NO_MEMORY);
        }
        zarr_store_free(s);
    }
    assert_int_equal(n_failed, 0); /* in the end there are not so many */
    w->is_slow = w->forever = false;
    make_free(&k);
}

static void test_limits(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s = NULL;
    zarr_error err;
    char name[2048];

    for (int i = 0; i < 5; i++) {
        memset(name, 'a' + i, sizeof name - 1);
        name[sizeof name - 1] = '\0';
        make_text(&k, name, "v");
    }
    make_end(&k, 0, NULL, 0, false);
    put_archive(w, k.bytes, k.n);
    w->env.limits.listing_keys = 4;
    assert_status(open_archive(&s, w, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "listing_keys is 4"));
    w->env.limits.listing_keys = 5;
    assert_status(open_archive(&s, w, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "names"));
    w->env.limits.listing_keys = 64;
    assert_status(open_archive(&s, w, &err), ZARR_OK);
    zarr_store_free(s);
    make_free(&k);
}

/* Another program appends while the archive is opened: its directory is read again. */
static void test_changes_at_open(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s = NULL;
    zarr_error err = {0};

    make_text(&k, "a", "value");
    make_end(&k, 0, NULL, 0, false);
    make_text(&k, "b", "new"); /* so more than the end is read */
    put_archive(w, k.bytes, k.n);
    for (int n = 1; n < 16; n++) {
        w->n_changes = n;
        if (open_archive(&s, w, &err) != ZARR_OK)
            fail_msg("%d: %s", n, err.message);
        assert_int_equal(w->n_changes, 0);
        assert_text(s, "a", "value");
        zarr_store_free(s);
    }
    w->n_changes = 1000;
    assert_status(open_archive(&s, w, &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "x.zip: the archive changed"));
    assert_true(w->n_changes > 900); /* it ends */
    w->n_changes = 0;
    make_free(&k);
}

/* What is read is of the archive that was opened, or fails. A key never reads as missing.
 */
static void test_changes(void **state)
{
    struct world *w = *state;
    struct maker k = {0}, other = {0};
    zarr_store *s;

    make_text(&k, "a", "value");
    make_member(&k, &(struct made_member){
                        .name = "b", .data = one, .bytes = sizeof one - 1, .method = 8});
    make_end(&k, 0, NULL, 0, false);
    make_text(&other, "a", "other");
    make_end(&other, 0, NULL, 0, false);
    s = need_archive(w, &k);
    put_archive(w, k.bytes, k.n); /* the same bytes, but a new value */
    assert_fails(s, "a", ZARR_ERR_IO, "changed");
    assert_fails(s, "b", ZARR_ERR_IO, "changed");
    assert_absent(s, "c");
    put_archive(w, other.bytes, other.n);
    assert_fails(s, "a", ZARR_ERR_IO, "changed");
    assert_status(zarr_store_erase(w->memory_store, "x.zip", NULL, NULL), ZARR_OK);
    assert_fails(s, "a", ZARR_ERR_IO, "disappeared");
    assert_fails(s, "b", ZARR_ERR_IO, "disappeared");
    zarr_store_free(s);
    make_free(&k);
    make_free(&other);
}

static void test_no_archive(void **state)
{
    struct world *w = *state;
    struct maker k = {0};
    zarr_store *s = NULL;
    zarr_error err;

    assert_status(open_archive(&s, w, &err), ZARR_ERR_NOT_FOUND);
    put_archive(w, "", 0);
    assert_status(open_archive(&s, w, &err), ZARR_ERR_CORRUPT);
    put_archive(w, "\x89HDF\r\n\x1a\n and more", 17);
    assert_status(open_archive(&s, w, &err), ZARR_ERR_CORRUPT);
    make_text(&k, "a", "v");
    make_end(&k, 0, NULL, 0, false);
    make_u16(&k, k.end_at + 4, 1); /* a part of several files */
    put_archive(w, k.bytes, k.n);
    assert_status(open_archive(&s, w, &err), ZARR_ERR_UNSUPPORTED);
    make_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut_off, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_killed_append, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_far_directory, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_shared_directory, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_each_byte, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_each_field, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_bad_members, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_limits, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_changes, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_changes_at_open, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_no_archive, world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
