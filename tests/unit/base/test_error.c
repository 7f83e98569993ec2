/*
 * unit/base/test_error.c - errors, safe text, logging, growable structs, limits,
 * version.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include <errno.h>

#include <zarrc/version.h>

static void status_texts(void **state)
{
    (void)state;
    for (zarr_status st = ZARR_OK; st >= ZARR_ERR_DENIED; st--)
        assert_string_not_equal(zarr_status_text(st), "unknown");
    assert_string_equal(zarr_status_text(ZARR_OK), "ok");
    assert_string_equal(zarr_status_text(ZARR_ERR_CORRUPT), "corrupt");
    assert_string_equal(zarr_status_text(ZARR_ERR_MEMORY_KIND), "memory kind");
    assert_string_equal(zarr_status_text(1), "unknown");
    assert_string_equal(zarr_status_text(ZARR_ERR_DENIED - 1), "unknown");
    assert_string_equal(zarr_status_text(INT32_MIN), "unknown");
    assert_int_equal(sizeof(zarr_error), 528);
}

static void messages_are_one_safe_line(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"a\nb\tc\x7f\x1b[31m", "a?b?c??[31m"},
        {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
        {"\xFF\xC0\x80", "???"},
        {"\xED\xA0\x80", "???"}, /* a surrogate */
        {"\xC2\x9B"
         "2J",
         "??2J"},           /* CSI as a C1 control */
        {"\xE2\x82", "??"}, /* incomplete, but not because we cut it */
        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_error err;

        assert_int_equal(zr_fail(&err, ZARR_ERR_INVALID, "%s", cases[i].in),
                         ZARR_ERR_INVALID);
        assert_string_equal(err.message, cases[i].out);
        assert_int_equal(err.code, ZARR_ERR_INVALID);
        assert_int_equal(err.os_code, 0);
        assert_int_equal(err.item, 0);
    }
}

static void long_text_is_cut_between_characters(void **state)
{
    char text[1024];

    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        zarr_error err;
        size_t n;

        memset(text, 'x', shift);
        for (n = shift; n + 4 < sizeof text; n += 4)
            memcpy(text + n, "\xF0\x9F\x98\x80", 4);
        text[n] = '\0';
        zr_fail(&err, ZARR_ERR_INVALID, "%s", text);
        n = strlen(err.message);
        assert_in_range(n, ZARR_ERROR_MESSAGE_BYTES - 4, ZARR_ERROR_MESSAGE_BYTES - 1);
        assert_true(zr_utf8_is_valid(err.message, n));
        assert_int_equal((n - shift) % 4, 0);
        assert_null(strchr(err.message, '?'));
    }
}

static void system_errors_and_prefixes(void **state)
{
    zarr_error err;

    (void)state;
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, EACCES, "open %s", "k"),
                     ZARR_ERR_DENIED);
    assert_int_equal(err.os_code, EACCES);
    assert_int_equal(err.os_domain, ZARR_OS_ERRNO);
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_INVALID, EPERM, "k"), ZARR_ERR_INVALID);
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, EROFS, "k"), ZARR_ERR_IO);
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, EPERM, "k"), ZARR_ERR_DENIED);
    assert_string_equal(zarr_status_text(ZARR_ERR_DENIED), "denied");
    assert_int_equal(zr_foreign_status(ZARR_ERR_DENIED, false), ZARR_ERR_DENIED);
    assert_int_equal(zr_foreign_status(ZARR_ERR_DENIED - 1, false), ZARR_ERR_INTERNAL);
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, EACCES, "open %s", "k"),
                     ZARR_ERR_DENIED);
    assert_true(zr_starts_with(err.message, "open k: "));
    assert_true(strlen(err.message) > strlen("open k: "));

    err.item = 7;
    assert_int_equal(zr_prefix(&err, ZARR_ERR_IO, "/raw/%d c/3", 0), ZARR_ERR_IO);
    assert_true(zr_starts_with(err.message, "/raw/0 c/3: open k: "));
    assert_int_equal(err.os_code, EACCES);
    assert_int_equal(err.item, 7);

    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, ENOMEM, "x"), ZARR_ERR_NO_MEMORY);
    assert_int_equal(err.code, ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_fail_os(&err, ZARR_ERR_IO, 99999, "x"), ZARR_ERR_IO);
    assert_true(strlen(err.message) > 3);
    assert_int_equal(zr_fail_memory(&err, 123), ZARR_ERR_NO_MEMORY);
    assert_non_null(strstr(err.message, "123"));

    zr_fail(&err, ZARR_ERR_IO, "inner");
    /* Its arguments quote the message that it replaces. */
    zr_fail(&err, ZARR_ERR_IO, "outer (%s)", err.message);
    assert_string_equal(err.message, "outer (inner)");
    assert_int_equal(zr_internal(&err), ZARR_ERR_INTERNAL);

    assert_int_equal(zr_fail(NULL, ZARR_ERR_IO, "x"), ZARR_ERR_IO);
    assert_int_equal(zr_fail_os(NULL, ZARR_ERR_IO, ENOMEM, "x"), ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_prefix(NULL, ZARR_ERR_IO, "x"), ZARR_ERR_IO);
}

/* The store may name the key, and the room above does. */
static void key_is_named_once(void **state)
{
    char text[16];
    zarr_error err;

    (void)state;
    zr_fail_os(&err, ZARR_ERR_IO, EISDIR, "%s: expected a value", "a/c/0");
    zr_error_mark(&err, ZARR_ERROR_KEY, 0, "a/c/0");
    zr_prefix_key(&err, ZARR_ERR_IO, "a/c/0");
    assert_true(zr_starts_with(err.message, "a/c/0: expected a value: "));
    assert_int_equal(zarr_error_text(&err, ZARR_ERROR_KEY, text, sizeof text), 5);
    assert_string_equal(text, "a/c/0");
    assert_int_equal(err.os_code, EISDIR);
    zr_prefix_key(&err, ZARR_ERR_IO, "a/c/00");
    assert_true(zr_starts_with(err.message, "a/c/00: a/c/0: expected"));
    zr_fail(&err, ZARR_ERR_IO, "a/c/0");
    zr_prefix_key(&err, ZARR_ERR_IO, "a/c/0");
    assert_string_equal(err.message, "a/c/0: a/c/0");
}

static void prefix_of_a_full_message(void **state)
{
    zarr_error err;
    char text[ZARR_ERROR_MESSAGE_BYTES * 2];

    (void)state;
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = '\0';
    zr_fail(&err, ZARR_ERR_IO, "%s", text);
    assert_int_equal(strlen(err.message), ZARR_ERROR_MESSAGE_BYTES - 1);
    zr_prefix(&err, ZARR_ERR_IO, "%s", text);
    assert_int_equal(strlen(err.message), ZARR_ERROR_MESSAGE_BYTES - 1);
    assert_non_null(strstr(err.message, "m...m")); /* both errors have a part */
    assert_non_null(strstr(err.message, "m: m"));
}

/* A long address is shortened in the middle, between characters. The reason is kept. */
static void prefix_too_long(void **state)
{
    zarr_error err;
    char name[ZARR_ERROR_MESSAGE_BYTES];

    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        memset(name, 'a', sizeof name);
        for (size_t i = shift; i + 2 <= sizeof name - 5; i += 2)
            memcpy(name + i, "\xC3\xA4", 2);
        name[sizeof name - 5] = '\0';
        zr_fail(&err, ZARR_ERR_CORRUPT, "the checksum differs");
        zr_prefix(&err, ZARR_ERR_CORRUPT, "node/%s/key", name);
        assert_true(zr_starts_with(err.message, "node/"));
        assert_non_null(strstr(err.message, "..."));
        assert_true(zr_ends_with(err.message, "/key: the checksum differs"));
        assert_null(strchr(err.message, '?'));
        assert_in_range(strlen(err.message), ZARR_ERROR_MESSAGE_BYTES - 4,
                        ZARR_ERROR_MESSAGE_BYTES - 1);
        zr_fail_os(&err, ZARR_ERR_IO, EACCES, "%s%s: cannot list", name, name);
        assert_true(zr_ends_with(err.message, ": cannot list: Permission denied"));
        /* Of the form "<key>: <key>: reason". */
        for (int again = 0; again < 3; again++) {
            zr_prefix(&err, ZARR_ERR_IO, "node/%s", name);
            assert_true(zr_starts_with(err.message, "node/"));
            assert_true(zr_ends_with(err.message, ": cannot list: Permission denied"));
            assert_null(strchr(err.message, '?'));
        }
    }
}

struct options {
    uint32_t struct_size, flags;
    uint64_t a, b;
};

struct grown {
    struct options known;
    uint64_t news;
};

enum {
    OPTIONS_FIRST = 16
}; /* up to and including member a */

static void structs_grow(void **state)
{
    static const struct {
        uint32_t size;
        uint64_t news;
        enum zr_tail tail;
        zarr_status want;
        uint64_t want_b;
    } cases[] = {
        {sizeof(struct options), 0, ZR_TAIL_REFUSE, ZARR_OK, 2},
        {OPTIONS_FIRST, 0, ZR_TAIL_REFUSE, ZARR_OK, 0},
        {sizeof(struct grown), 0, ZR_TAIL_REFUSE, ZARR_OK, 2},
        {sizeof(struct grown), 1, ZR_TAIL_REFUSE, ZARR_ERR_UNSUPPORTED, 0},
        {sizeof(struct grown), UINT64_C(1) << 63, ZR_TAIL_REFUSE, ZARR_ERR_UNSUPPORTED,
         0},
        {sizeof(struct grown), 1, ZR_TAIL_IGNORE, ZARR_OK, 2},
        {0, 0, ZR_TAIL_REFUSE, ZARR_ERR_ABI, 0},
        {OPTIONS_FIRST - 1, 0, ZR_TAIL_REFUSE, ZARR_ERR_ABI, 0},
        {UINT32_MAX, 0, ZR_TAIL_IGNORE, ZARR_ERR_ABI, 0},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        const struct grown src = {{cases[i].size, 0, 1, 2}, cases[i].news};
        struct options dst;
        zarr_error err;

        memset(&dst, 0xFF, sizeof dst);
        assert_int_equal(zr_struct_read(&dst, sizeof dst, OPTIONS_FIRST, &src,
                                        cases[i].tail, "options", &err),
                         cases[i].want);
        assert_int_equal(dst.struct_size, sizeof dst);
        assert_int_equal(dst.flags, 0);
        assert_int_equal(dst.b, cases[i].want_b);
        assert_int_equal(dst.a, cases[i].want == ZARR_OK);
    }
}

static void no_struct_means_defaults(void **state)
{
    struct options dst = {1, 2, 3, 4};

    (void)state;
    assert_int_equal(
        zr_struct_read(&dst, sizeof dst, OPTIONS_FIRST, NULL, ZR_TAIL_REFUSE, "o", NULL),
        ZARR_OK);
    assert_int_equal(dst.struct_size, sizeof dst);
    assert_true(dst.flags == 0 && dst.a == 0 && dst.b == 0);
}

struct seen {
    uint32_t level;
    int n;
    char text[2048];
};

static void note_line(void *user, uint32_t level, const char *text)
{
    struct seen *s = user;

    s->level = level;
    s->n++;
    snprintf(s->text, sizeof s->text, "%s", text);
}

static void log_lines(void **state)
{
    struct seen seen = {0};
    const struct zr_log log = {note_line, &seen, ZARR_LOG_INFO}, silent = {0};
    char text[2000];

    (void)state;
    zr_log(&log, ZARR_LOG_INFO, "a\n%d", 5);
    assert_string_equal(seen.text, "a?5");
    assert_int_equal(seen.level, ZARR_LOG_INFO);
    zr_log(&log, ZARR_LOG_DEBUG, "not seen");
    zr_log(&silent, ZARR_LOG_ERROR, "not seen");
    zr_log(NULL, ZARR_LOG_ERROR, "not seen");
    assert_int_equal(seen.n, 1);
    memset(text, 'l', sizeof text);
    text[sizeof text - 1] = '\0';
    zr_log(&log, ZARR_LOG_ERROR, "%s", text);
    assert_int_equal(strlen(seen.text), 1023);
}

static void limits_by_name(void **state)
{
    static const char *const wrong[] = {"rank=65",        "rank=-1",
                                        "chunk_bytes=",   "chunk_bytes=0",
                                        "chunk_bytes=1k", "chunk_bytes=16777216T",
                                        "chunk_bytes= 1", "chunk_byte=1",
                                        "flags=1",        "=1",
                                        "json_depth=4G",  "json_depth"};
    zarr_limits a = ZARR_LIMITS_INIT, shorter = ZARR_LIMITS_INIT;
    zarr_error err = ZARR_ERROR_INIT;

    (void)state;
    assert_int_equal(
        zarr_limits_parse(&a, "chunk_bytes=8G,json_depth=2000,,json_depth=3K,", &err),
        ZARR_OK);
    assert_int_equal(a.chunk_bytes, INT64_C(8) << 30);
    assert_int_equal(a.json_depth, 3072);
    assert_int_equal(zarr_limits_parse(&a, "", &err), ZARR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        a.rank = 7;
        assert_int_equal(zarr_limits_parse(&a, wrong[i], &err), ZARR_ERR_INVALID);
        assert_int_equal(a.rank, 7);
    }
    assert_int_equal(zarr_limits_parse(&a, "rank=8,nonsense=1", &err), ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "\"nonsense\" is not a limit"));
    assert_int_equal(a.rank, 7); /* nothing was set */
    shorter.struct_size = (uint32_t)offsetof(zarr_limits, linked_directories);
    shorter.linked_directories = 5;
    assert_int_equal(zarr_limits_parse(&shorter, "linked_directories=6", &err),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_limits_parse(&shorter, "codecs=9", &err), ZARR_OK);
    assert_int_equal(shorter.linked_directories, 5); /* not a byte behind the struct */
    assert_int_equal(shorter.codecs, 9);
    shorter.struct_size = 0;
    assert_int_equal(zarr_limits_parse(&shorter, "codecs=9", &err), ZARR_ERR_ABI);
}

/* The name of the limit survives prefixes and a message that is cut. */
static void limits_are_named(void **state)
{
    char longest[2000], name[64];
    zarr_error err = ZARR_ERROR_INIT;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(zr_fail_limit(NULL, "rank", 1, "x"), ZARR_ERR_LIMIT);
    assert_int_equal(zr_fail_limit(&err, "rank", 64, "%d dimensions", 65),
                     ZARR_ERR_LIMIT);
    assert_string_equal(err.message, "65 dimensions (limit rank is 64)");
    zr_prefix(&err, ZARR_ERR_LIMIT, "a/b");
    assert_string_equal(err.message, "a/b: 65 dimensions (limit rank is 64)");
    assert_int_equal(zarr_error_text(&err, ZARR_ERROR_SETTING, name, sizeof name), 4);
    assert_string_equal(name, "rank");
    zr_fail_limit(&err, "dimension_name_bytes", UINT64_MAX, "%s", longest);
    zr_prefix(&err, ZARR_ERR_LIMIT, "%s", longest);
    assert_true(zarr_error_text(&err, ZARR_ERROR_SETTING, name, sizeof name));
    assert_string_equal(name, "dimension_name_bytes");
    zr_fail(&err, ZARR_ERR_LIMIT, "no limit that can be raised");
    assert_int_equal(zarr_error_text(&err, ZARR_ERROR_SETTING, name, sizeof name), 0);
}

static void limits_and_version(void **state)
{
    zarr_limits a, b;
    char text[32];

    (void)state;
    zr_limits_default(&a);
    zarr_limits_untrusted(&b);
    assert_int_equal(a.struct_size, sizeof a);
    assert_int_equal(a.metadata_bytes, 64 << 20);
    assert_int_equal(a.string_bytes, 64 << 20);
    assert_int_equal(a.json_depth, 1000);
    assert_int_equal(a.chunk_bytes, 0); /* half of the context's memory */
    assert_int_equal(a.listing_keys, 10 << 20);
    assert_int_equal(a.linked_directories, 64 << 10);
    assert_int_equal(a.rank, ZARR_MAX_RANK);
    assert_int_equal(b.metadata_bytes, 4 << 20);
    assert_int_equal(b.chunk_bytes, 256 << 20);
    assert_int_equal(b.listing_keys, 1 << 20);
    assert_int_equal(b.linked_directories, 4 << 10);
    assert_int_equal(b.variable_chunk_bytes, 64 << 20);
    assert_int_equal(b.string_bytes, 1 << 20);
    assert_int_equal(b.json_depth, 64);

    snprintf(text, sizeof text, "%d.%d.%d", ZARR_VERSION_MAJOR, ZARR_VERSION_MINOR,
             ZARR_VERSION_PATCH);
    assert_string_equal(zarr_version(), text);
    assert_int_equal(zarr_version_number(), ZARR_VERSION_MAJOR * 1000000 +
                                                ZARR_VERSION_MINOR * 1000 +
                                                ZARR_VERSION_PATCH);
    assert_int_equal(zarr_version_number(), ZARR_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_texts),
        cmocka_unit_test(messages_are_one_safe_line),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(system_errors_and_prefixes),
        cmocka_unit_test(key_is_named_once),
        cmocka_unit_test(prefix_of_a_full_message),
        cmocka_unit_test(prefix_too_long),
        cmocka_unit_test(structs_grow),
        cmocka_unit_test(no_struct_means_defaults),
        cmocka_unit_test(log_lines),
        cmocka_unit_test(limits_by_name),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(limits_and_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
