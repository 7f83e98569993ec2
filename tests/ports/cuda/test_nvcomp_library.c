/*
 * ports/cuda/test_nvcomp_library.c - which libnvcomp the plug-in takes: versions, missing
 * calls, places; and what streams say of themselves. Each case is a process of its own,
 * because a process loads the library once. The real library, where it is installed,
 * answers what it can without a GPU.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "nvcomp.h"

/* ---- what the loader needs of the plug-in -------------------- */

static char said[400];

static zarr_status say(zarr_error *err, zarr_status st, const char *fmt, ...)
{
    va_list arguments;

    (void)err;
    va_start(arguments, fmt);
    (void)vsnprintf(said, sizeof said, fmt, arguments);
    va_end(arguments);
    return st;
}

static const zarr_host host = {.fail = say};
const zarr_host *port_host = &host;

/* ---- cases -------------------- */

struct wish {
    const char *place, *version; /* NULL: the loader's search; the library's own */
    zarr_status want;
    const char *text; /* part of the message */
    int lacks_zstd;
};

static int run_case(const struct wish *w)
{
    const uint64_t n = 16, most = 1 << 16;

    if (w->version)
        setenv("FAKENVCOMP_VERSION", w->version, 1);
    nvcomp_place(w->place);
    if (nvcomp_start(NULL) != w->want || nvcomp_start(NULL) != w->want)
        return 1;
    if (w->want != ZARR_OK)
        return strstr(said, w->text) ? 0 : 2;
    for (int f = 0; f < NVCOMP_FORMATS; f++) {
        const int decodes = nvcomp_find((enum nvcomp_format)f, 0) != NULL;

        if (f != NVCOMP_SNAPPY && decodes == (f == NVCOMP_ZSTD && w->lacks_zstd))
            return 3;
        if (decodes && nvcomp_temp((enum nvcomp_format)f, 0, n, most, NULL) == 0)
            return 4;
    }
    return 0;
}

static void check(const struct wish *w)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        const int rc = run_case(w);

        if (rc)
            (void)fprintf(stderr, "%s, version %s: step %d: %s\n", w->place, w->version,
                          rc, said);
        _exit(rc);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_versions(void **state)
{
    static const struct wish wishes[] = {
        {FAKE_6, NULL, ZARR_OK, NULL, 0},
        {FAKE_5, NULL, ZARR_OK, NULL, 0},
        {FAKE_5, "5100", ZARR_OK, NULL, 0},
        {FAKE_6, "6099", ZARR_OK, NULL, 0},
        {FAKE_LACKS_IT, NULL, ZARR_OK, NULL, 1},
        {FAKE_5, "5000", ZARR_ERR_UNSUPPORTED, "version 5.0", 0},
        {FAKE_5, "4200", ZARR_ERR_UNSUPPORTED, "version 4.2", 0},
        {FAKE_6, "6100", ZARR_ERR_UNSUPPORTED, "version 6.1", 0},
        {FAKE_6, "7000", ZARR_ERR_UNSUPPORTED, "not one of 5.1 to 6.0", 0},
        {"/nowhere", NULL, ZARR_ERR_UNSUPPORTED, "/nowhere/libnvcomp.so.5", 0},
        {"/nowhere/libnvcomp.so.6", NULL, ZARR_ERR_UNSUPPORTED, "/nowhere", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        check(&wishes[i]);
}

/* A file is as good as its folder. */
static void test_file(void **state)
{
    const struct wish w = {FAKE_6 "/libnvcomp.so.6", NULL, ZARR_OK, NULL, 0};

    (void)state;
    check(&w);
}

/* A library of another kind has no properties. */
static void test_other_library(void **state)
{
    const struct wish w = {"libm.so.6", NULL, ZARR_ERR_UNSUPPORTED, "version 0.0", 0};

    (void)state;
    check(&w);
}

/* ---- the real library -------------------- */

/* nvCOMP 5.1 has no call for the alignments of its gzip encoder, which is not used then.
 */
static int lacks_alignments(const char *place)
{
    char file[1100];
    void *library;
    int lacks;

    (void)snprintf(file, sizeof file, "%s/libnvcomp.so.5", place);
    library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    lacks = library && !dlsym(library, "nvcompBatchedGzipCompressGetRequiredAlignments");
    if (library)
        (void)dlclose(library);
    return lacks;
}

/* Without a device it tells versions, alignments and, of decoders, memory. */
static int real_case(const char *place)
{
    uint64_t small, large;

    nvcomp_place(place);
    if (nvcomp_start(NULL) != ZARR_OK)
        return 1;
    for (int f = 0; f < NVCOMP_FORMATS; f++) {
        const struct nvcomp_way *w = nvcomp_find((enum nvcomp_format)f, 0);

        if (!w || !w->decode || w->align.input > 16 || w->align.output > 16)
            return 10 + f;
        w = nvcomp_find((enum nvcomp_format)f, 1);
        if ((w && w->encode) == (f == NVCOMP_GZIP && lacks_alignments(place)))
            return 20 + f;
    }
    small = nvcomp_temp(NVCOMP_ZSTD, 0, 1, 1 << 17, NULL);
    large = nvcomp_temp(NVCOMP_ZSTD, 0, 1024, 1 << 17, NULL);
    return small > 0 && large > small ? 0 : 30;
}

static void test_real(void **state)
{
    const char *folders = getenv("ZARRC_TEST_NVCOMP"); /* separated by colons */
    int n = 0;

    (void)state;
    for (const char *at = folders; at && *at;) {
        char place[1024];
        const size_t length = strcspn(at, ":");
        int status = 0;
        pid_t child;

        (void)snprintf(place, sizeof place, "%.*s", (int)length, at);
        at += length + (at[length] == ':');
        child = fork();
        if (child == 0) {
            const int rc = real_case(place);

            if (rc)
                (void)fprintf(stderr, "%s: step %d: %s\n", place, rc, said);
            _exit(rc);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        n++;
    }
    if (n == 0) {
        print_message("the real libnvcomp is not installed: ZARRC_TEST_NVCOMP names no "
                      "folder\n");
        skip();
    }
}

/* ---- streams -------------------- */

static void test_zstd_frames(void **state)
{
    /* 4 bytes of content: a raw block */
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x20, 4,  0x21,
                                    0,    0,    'a',  'b',  'c',  'd'};
    static uint8_t many[6 + 3 * (K_CHECK_BLOCKS + 1)];
    uint8_t copy[40];
    const uint64_t n = sizeof frame;

    (void)state;
    assert_true(k_stream_fits(frame, n, 4, K_ZSTD));
    assert_false(k_stream_fits(frame, n, 5, K_ZSTD));
    for (uint64_t k = 0; k < n; k++) /* cut */
        assert_false(k_stream_fits(frame, k, 4, K_ZSTD));
    memcpy(copy, frame, n);
    memcpy(copy + n, frame, n); /* two frames */
    assert_false(k_stream_fits(copy, 2 * n, 4, K_ZSTD));
    assert_false(k_stream_fits(copy, n + 4, 4, K_ZSTD)); /* bytes after the frame */
    copy[4] = 0x24;                                      /* with a checksum */
    assert_true(k_stream_fits(copy, n + 4, 4, K_ZSTD));
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
    copy[4] = 0x21; /* a dictionary */
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
    copy[4] = 0x28; /* reserved */
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
    copy[4] = 0x00; /* a window, and no size */
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
    copy[4] = 0x20;
    copy[6] = 0x27; /* a block of the reserved kind */
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
    copy[6] = 0x23; /* one byte, repeated */
    assert_true(k_stream_fits(copy, 10, 4, K_ZSTD));
    memcpy(many, frame, 6);
    memset(many + 6, 0, sizeof many - 6); /* empty blocks */
    many[sizeof many - 3] = 1;
    many[5] = 0;
    assert_false(k_stream_fits(many, sizeof many, 0, K_ZSTD)); /* too many */
    memmove(many + 6 + 3, many + 6 + 6, sizeof many - 12);
    assert_true(k_stream_fits(many, sizeof many - 3, 0, K_ZSTD));
    copy[0] = 0x50; /* skippable, or none */
    assert_false(k_stream_fits(copy, n, 4, K_ZSTD));
}

static void test_other_headers(void **state)
{
    static const uint8_t zlib[] = {0x78, 0x9C, 3, 0, 0, 0, 0, 1};
    uint8_t gzip[24] = {0x1f, 0x8b, 8};
    uint8_t copy[8];

    (void)state;
    memcpy(copy, zlib, sizeof copy);
    assert_true(k_stream_fits(zlib, sizeof zlib, 1, K_ZLIB));
    assert_false(k_stream_fits(zlib, 6, 1, K_ZLIB));
    copy[1] = 0xBB; /* a dictionary */
    assert_false(k_stream_fits(copy, sizeof copy, 1, K_ZLIB));
    copy[1] = 0x9D; /* the check of the header */
    assert_false(k_stream_fits(copy, sizeof copy, 1, K_ZLIB));

    gzip[20] = 200;
    assert_true(k_stream_fits(gzip, sizeof gzip, 200, K_GZIP));
    assert_true(k_stream_fits(gzip, sizeof gzip, 200 + (UINT64_C(1) << 32), K_GZIP));
    assert_false(k_stream_fits(gzip, sizeof gzip, 400, K_GZIP)); /* of two members */
    gzip[3] = 8;                                                 /* a name */
    assert_false(k_stream_fits(gzip, sizeof gzip, 200, K_GZIP));

    assert_true(k_stream_fits((const uint8_t *)"\x80\x02", 2, 256, K_SNAPPY));
    assert_false(k_stream_fits((const uint8_t *)"\x80\x02", 2, 255, K_SNAPPY));
    assert_false(
        k_stream_fits((const uint8_t *)"\xff\xff\xff\xff\xff\x01", 6, 1, K_SNAPPY));
    assert_true(k_stream_fits((const uint8_t *)"\0\1\0\0x", 5, 256, K_LZ4_HEADED));
    assert_false(k_stream_fits((const uint8_t *)"\0\1\0\0", 4, 256, K_LZ4_HEADED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),      cmocka_unit_test(test_file),
        cmocka_unit_test(test_other_library), cmocka_unit_test(test_real),
        cmocka_unit_test(test_zstd_frames),   cmocka_unit_test(test_other_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
