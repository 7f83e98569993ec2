/*
 * unit/codecs/test_objects.c - v2's object codecs: the bytes that numcodecs writes, in
 * both directions, and malformed chunks: cut short, wrong counts and lengths, text that
 * is not UTF-8, values that JSON lacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

static struct impl_env env;
static struct zr_buffer buffers[2][3];

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return impl_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    for (int i = 0; i < 6; i++)
        zr_buffer_free(&buffers[i / 3][i % 3], &env.threads);
    impl_env_close(&env);
    return 0;
}

enum {
    MOST = 6 /* elements */
};
#define LIST(type) "{\"id\":\"vlen-array\",\"dtype\":\"" type "\"}"
#define LABELS(more)                                                                     \
    "{\"id\":\"categorize\",\"dtype\":\"|O\",\"labels\":[\"a\",\"bc\",\"a\"]" more "}"

static const uint64_t of_3[] = {3, 0}, of_2_3[] = {2, 3, 0}, of_1[] = {1, 0};

static zarr_status run(const struct zr_program *p, int turn, const zarr_memory *src,
                       const zarr_memory *dst, zarr_memory *out, zarr_error *err)
{
    struct zr_unsized g = {.ts = &env.threads, .buffer = buffers[turn]};

    return p->encode ? zr_unsized_encode(p, &g, src, dst, out, err)
                     : zr_unsized_decode(p, &g, src, dst, out, err);
}

static void open_chain(struct impl_chain *c, const char *codec, const char *dtype,
                       const uint64_t *dims)
{
    char text[256];
    zarr_error err = {0};
    const struct impl_chain_args args = {
        .format = 2, .codecs = text, .dtype = dtype, .dims = dims};

    (void)snprintf(text, sizeof text, "[%s]", codec);
    if (impl_chain_open(c, &env, &args, &err) != ZARR_OK || !c->decode || !c->encode) {
        fail_msg("%s: %s", codec, err.message);
        abort(); /* for the analyzer: fail_msg() does not return */
    }
}

static zarr_status decode(const char *codec, const char *dtype, const uint64_t *dims,
                          const char *bytes, size_t n, zarr_vlen *items, zarr_error *err)
{
    char copy[256];
    struct impl_chain c;
    zarr_memory src, dst = zr_mem_of_host(items, 0), out = {0};
    zarr_status st = ZARR_OK;

    assert_true(n <= sizeof copy);
    memcpy(copy, bytes, n);
    src = zr_mem_of_host(copy, n);
    open_chain(&c, codec, dtype, dims);
    dst.bytes = c.decode->decoded_bytes;
    assert_true(dst.bytes <= MOST * sizeof *items);
    st = run(c.decode, 0, &src, &dst, &out, err);
    impl_chain_close(&c);
    return st;
}

/* ---- what numcodecs writes --------------------------------------------------------- */

struct written {
    const char *codec, *dtype;
    const uint64_t *dims;
    const char *chunk;
    size_t bytes;
    zarr_vlen items[MOST];
};
#define ITEM(text)                                                                       \
    {                                                                                    \
        text, sizeof(text) - 1                                                           \
    }
#define BYTES(text) text, sizeof(text) - 1

static const int16_t pair[] = {1, -2},
                     seven[] = {7}; /* in the byte order of the machine */

static const struct written cases[] = {
    {"{\"id\":\"json2\"}",
     "string",
     of_3,
     BYTES("[\"a\",\"\\u00fc\\ud83d\\ude00\\u007f\",\"\\\"\\\\\\n\\u0000\",\"|O\",[3]]"),
     {ITEM("a"), ITEM("\xC3\xBC\xF0\x9F\x98\x80\x7f"), ITEM("\"\\\n\0")}},
    {"{\"id\":\"json2\",\"ensure_ascii\":false,\"separators\":[\", \",\": \"]}",
     "string",
     of_3,
     BYTES("[\"\xC3\xBC\", \"\x7f\", \"/\", \"|O\", [3]]"),
     {ITEM("\xC3\xBC"), ITEM("\x7f"), ITEM("/")}},
    {"{\"id\":\"json2\"}",
     "string",
     of_2_3,
     BYTES("[[\"a\",\"b\",\"c\"],[\"d\",\"\",\"f\"],\"|O\",[2,3]]"),
     {ITEM("a"), ITEM("b"), ITEM("c"), ITEM("d"), ITEM(""), ITEM("f")}},
    {"{\"id\":\"msgpack2\"}",
     "string",
     of_2_3,
     BYTES("\x94\x93\xA1"
           "a\xA1"
           "b\xA1"
           "c\x93\xA1"
           "d\xA0\xD9\x20"
           "01234567890123456789012345678901\xA2|O\x92\x02\x03"),
     {ITEM("a"), ITEM("b"), ITEM("c"), ITEM("d"), ITEM(""),
      ITEM("01234567890123456789012345678901")}},
    {"{\"id\":\"json2\"}",
     "string",
     of_2_3,
     BYTES("[[1.50,-0,null],[[[\"a\"]],{\"\\u00fc\":[true,NaN]},\" 1\"],\"|O\",[2,3]]"),
     {ITEM(" 1.50"), ITEM(" -0"), ITEM(" null"), ITEM(" [[\"a\"]]"),
      ITEM(" {\"\xC3\xBC\":[true,NaN]}"), ITEM(" \" 1\"")}},
    {"{\"id\":\"msgpack2\"}",
     "string",
     of_2_3,
     BYTES("\x94\x93\x07\xFF\xC0\x93\x91\x91\xA1"
           "a\x81\xA1k\x92\xC3\xCB\x3F\xF8\0\0\0\0\0\0\xA2 1\xA2|O\x92\x02\x03"),
     {ITEM(" 7"), ITEM(" -1"), ITEM(" null"), ITEM(" [[\"a\"]]"),
      ITEM(" {\"k\":[true,1.5]}"), ITEM(" \" 1\"")}},
    {"{\"id\":\"msgpack2\",\"use_bin_type\":false}",
     "string",
     of_1,
     BYTES("\x93\xDA\x00\x20"
           "01234567890123456789012345678901\xA2|O\x91\x01"),
     {ITEM("01234567890123456789012345678901")}},
    {LIST("<i2"),
     "vlen-array[int16]",
     of_3,
     BYTES("\3\0\0\0\4\0\0\0\1\0\xFE\xFF\0\0\0\0\2\0\0\0\7\0"),
     {{pair, 4}, ITEM(""), {seven, 2}}},
    {LIST(">i2"),
     "vlen-array[int16]",
     of_1,
     BYTES("\1\0\0\0\4\0\0\0\0\1\xFF\xFE"),
     {{pair, 4}}},
    {LABELS(""), "string", of_3, BYTES("\3\2\0"), {ITEM("a"), ITEM("bc"), ITEM("")}},
    {LABELS(",\"astype\":\">i2\""),
     "string",
     of_3,
     BYTES("\0\3\0\2\0\0"),
     {ITEM("a"), ITEM("bc"), ITEM("")}},
};

static void as_numcodecs(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        const struct written *w = &cases[i];
        zarr_vlen items[MOST] = {{0}};
        struct impl_chain c;
        zarr_memory src, dst = zr_mem_of_host(items, 0), out = {0};
        zarr_error err = {0};

        open_chain(&c, w->codec, w->dtype, w->dims);
        src = zr_mem_of_host((void *)(uintptr_t)w->items, c.decode->decoded_bytes);
        if (run(c.encode, 1, &src, NULL, &out, &err) != ZARR_OK)
            fail_msg("%s: %s", w->codec, err.message);
        assert_int_equal(out.bytes, w->bytes);
        assert_memory_equal(out.handle, w->chunk, w->bytes);
        src = zr_mem_of_host((void *)(uintptr_t)w->chunk, w->bytes);
        dst.bytes = c.decode->decoded_bytes;
        if (run(c.decode, 0, &src, &dst, &out, &err) != ZARR_OK)
            fail_msg("%s: %s", w->codec, err.message);
        for (size_t k = 0; k < c.decode->decoded_bytes / sizeof *items; k++) {
            assert_int_equal(items[k].bytes, w->items[k].bytes);
            if (items[k].bytes)
                assert_memory_equal(items[k].data, w->items[k].data, items[k].bytes);
        }
        impl_chain_close(&c);
    }
}

/* Text of fixed length: labels are cut to fit, and codes refer to labels that fit. */
static void categorized_characters(void **state)
{
    static const char codec[] = "{\"id\":\"categorize\",\"dtype\":\"<U2\",\"labels\":["
                                "\"a\",\"\\u00e9\\ud83d\\ude00\","
                                "\"\\u20acbc\"],\"astype\":\"<u2\"}";
    static const uint64_t of_4[] = {4, 0};
    static const uint32_t plain[4][2] = {{'a', 0}, {0xe9, 0x1f600}, {0, 0}, {'?', 'b'}};
    static const uint32_t cut[4][2] = {{0x20ac, 'b'}, {'a', 0}, {0, 0}, {0xe9, 0x1f600}};
    static const uint8_t stored[8] = {1, 0, 2, 0, 0, 0, 0, 0}; /* "?b" is not a label */
    uint8_t codes[8] = {3, 0, 1, 0, 0, 0, 2, 0};
    struct impl_chain c;
    uint8_t *got = NULL;
    size_t n = 0;
    zarr_error err = {0};

    ZR_UNUSED(state);
    open_chain(&c, codec, "<U2", of_4);
    assert_int_equal(impl_run(c.encode, &env, plain, sizeof plain, &got, &n, &err),
                     ZARR_OK);
    assert_int_equal(n, sizeof stored);
    assert_memory_equal(got, stored, sizeof stored);
    free(got);
    assert_int_equal(impl_run(c.decode, &env, codes, sizeof codes, &got, &n, &err),
                     ZARR_OK);
    assert_int_equal(n, sizeof cut);
    assert_memory_equal(got, cut, sizeof cut);
    free(got);
    codes[1] = 1;
    assert_int_equal(impl_run(c.decode, &env, codes, sizeof codes, &got, &n, &err),
                     ZARR_ERR_CORRUPT);
    if (!strstr(err.message, "element 0 has the number 259, there are 3 labels"))
        fail_msg("%s", err.message);
    free(got);
    impl_chain_close(&c);
}

/* ---- refused before any chunk is decoded ---- */

static const struct {
    const char *codec, *dtype;
    const uint64_t *dims;
    zarr_status status;
    const char *says;
} refusals[] = {
    {"{\"id\":\"json2\",\"encoding\":\"latin-1\"}", "string", of_3, ZARR_ERR_UNSUPPORTED,
     "json2: encoding \"latin-1\""},
    {"{\"id\":\"json2\",\"encoding\":3}", "string", of_3, ZARR_ERR_UNSUPPORTED,
     "json2: encoding \"?\""},
    {"{\"id\":\"json2\",\"separators\":[\";\",\":\"]}", "string", of_3, ZARR_ERR_INVALID,
     "two texts, a comma in the first"},
    {"{\"id\":\"json2\",\"separators\":\",\"}", "string", of_3, ZARR_ERR_INVALID,
     "two texts, a comma in the first"},
    {"{\"id\":\"json2\"}", "complex64", of_3, ZARR_ERR_UNSUPPORTED,
     "codec json2 does not take data type complex64, only text of any length (|O), "
     "bools, "
     "integers and floats"},
    {"{\"id\":\"json2\"}", "bytes", of_3, ZARR_ERR_UNSUPPORTED,
     "only text of any length (|O), bools"},
    {"{\"id\":\"json2\",\"allow_nan\":0}", "float32", of_3, ZARR_ERR_INVALID,
     "allow_nan"},
    {"{\"id\":\"msgpack2\",\"raw\":true}", "string", of_3, ZARR_ERR_UNSUPPORTED,
     "msgpack2: with raw the elements are bytes"},
    {"{\"id\":\"msgpack2\"}", "int2", of_3, ZARR_ERR_UNSUPPORTED,
     "codec msgpack2 does not take data type int2, only text of any length (|O), bools, "
     "integers and floats"},
    {"{\"id\":\"msgpack2\"}", "string", (const uint64_t[]){0}, ZARR_ERR_UNSUPPORTED,
     "msgpack2 cannot encode an array without dimensions"},
    {"{\"id\":\"vlen-array\"}", "vlen-array[int16]", of_3, ZARR_ERR_INVALID,
     "vlen-array: dtype must be a NumPy type"},
    {LIST("<q9"), "vlen-array[int16]", of_3, ZARR_ERR_UNSUPPORTED, "vlen-array: dtype: "},
    {LIST("string"), "vlen-array[int16]", of_3, ZARR_ERR_UNSUPPORTED,
     "vlen-array: items of variable length (string)"},
    {LIST("<i4"), "vlen-array[int16]", of_3, ZARR_ERR_UNSUPPORTED,
     "codec vlen-array does not take data type vlen-array[int16], only lists of its "
     "dtype"},
    {LIST("<i4"), "int32", of_3, ZARR_ERR_UNSUPPORTED, "only lists of its dtype"},
    {LABELS(",\"astype\":\"<f4\""), "string", of_3, ZARR_ERR_UNSUPPORTED,
     "categorize: astype \"<f4\" is not an integer"},
    {LABELS(",\"astype\":1"), "string", of_3, ZARR_ERR_UNSUPPORTED, "astype \"?\""},
    {LABELS(""), "int32", of_3, ZARR_ERR_UNSUPPORTED,
     "codec categorize does not take data type int32, only text"},
    {LABELS(""), "<U2", of_3, ZARR_ERR_UNSUPPORTED,
     "categorize: dtype \"|O\" is not the array's"},
    {"{\"id\":\"categorize\",\"dtype\":\"<U3\",\"labels\":[]}", "<U2", of_3,
     ZARR_ERR_UNSUPPORTED, "dtype \"<U3\" is not the array's"},
    {"{\"id\":\"categorize\",\"dtype\":\">U2\",\"labels\":[]}", "<U2", of_3,
     ZARR_ERR_UNSUPPORTED, "dtype \">U2\" is not the array's, little-endian"},
    {"{\"id\":\"categorize\",\"dtype\":\"<Q2\",\"labels\":[]}", "<U2", of_3,
     ZARR_ERR_UNSUPPORTED, "Q2"},
    {"{\"id\":\"categorize\",\"labels\":[]}", "string", of_3, ZARR_ERR_INVALID,
     "categorize: dtype must be"},
    {"{\"id\":\"categorize\",\"dtype\":\"|O\"}", "string", of_3, ZARR_ERR_INVALID,
     "a list of texts"},
    {"{\"id\":\"categorize\",\"dtype\":\"|O\",\"labels\":[\"a\",1]}", "string", of_3,
     ZARR_ERR_INVALID, "a list of texts"},
    {"{\"id\":\"vlen-bytes\"}", "string", of_3, ZARR_ERR_UNSUPPORTED,
     "codec vlen-bytes does not take data type string, only variable_length_bytes"},
};

static void check_refusal(const char *codec, const char *dtype, const uint64_t *dims,
                          zarr_status status, const char *says)
{
    char text[2048];
    const struct impl_chain_args args = {
        .format = 2, .codecs = text, .dtype = dtype, .dims = dims};
    struct impl_chain c;
    zarr_error err = {0};
    zarr_status st;

    (void)snprintf(text, sizeof text, "[%s]", codec);
    st = impl_chain_open(&c, &env, &args, &err);
    if (st != status || !strstr(err.message, says))
        fail_msg("%s of %s: %d, \"%s\"", codec, dtype, st, err.message);
}

static void refuse_codecs(void **state)
{
    char text[2048];
    size_t n = 0;

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(refusals); i++)
        check_refusal(refusals[i].codec, refusals[i].dtype, refusals[i].dims,
                      refusals[i].status, refusals[i].says);
    /* 128 labels, and codes up to 127 */
    n = (size_t)snprintf(text, sizeof text,
                         "{\"id\":\"categorize\",\"dtype\":\"|O\",\"astype\":\"|i1\","
                         "\"labels\":[\"0\"");
    for (int i = 1; i < 128; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",\"%d\"", i);
    (void)snprintf(text + n, sizeof text - n, "]}");
    check_refusal(text, "string", of_3, ZARR_ERR_INVALID,
                  "categorize: 128 labels, astype \"|i1\" has numbers for 127");
}

/* ---- malformed chunks ---- */

#define JSON  "{\"id\":\"json2\"}", "string"
#define PACK  "{\"id\":\"msgpack2\"}", "string"
#define LISTS LIST(">i2"), "vlen-array[int16]"
#define NAMES LABELS(""), "string"

static const struct {
    const char *codec, *dtype;
    const uint64_t *dims;
    const char *chunk;
    size_t bytes;
    zarr_status status;
    const char *says;
} lies[] = {
    {JSON, of_3, BYTES(""), ZARR_ERR_CORRUPT, "json2: byte 0"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",\"|O\",[3]"), ZARR_ERR_CORRUPT, "byte"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"|O\",[2]]"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {JSON, of_3, BYTES("{\"a\":1}"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {JSON, of_3, BYTES("3"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {JSON, of_3, BYTES("[]"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",\"|O\",[2]]"), ZARR_ERR_CORRUPT, "shape"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",\"|O\",3]"), ZARR_ERR_CORRUPT, "shape"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",\"|O\",[3,1]]"), ZARR_ERR_CORRUPT, "shape"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",1,[3]]"), ZARR_ERR_CORRUPT, "type and shape"},
    {JSON, of_3, BYTES("[\"a\",\"b\",\"c\",\"<i4\",[3]]"), ZARR_ERR_UNSUPPORTED,
     "of type \"<i4\""},
    {JSON, of_3, BYTES("[\"a\",\"\xFF\",\"c\",\"|O\",[3]]"), ZARR_ERR_CORRUPT, "UTF-8"},
    {JSON, of_3, BYTES("[\"a\",\"\\ud800\",\"c\",\"|O\",[3]]"), ZARR_ERR_CORRUPT,
     "surrogate"},
    {JSON, of_3, BYTES("[[[[[[[[[[[["), ZARR_ERR_CORRUPT, "json2: byte"},
    {JSON, of_3, BYTES("[\"a\",{\"b\":1,\"b\":1},\"c\",\"|O\",[3]]"), ZARR_ERR_CORRUPT,
     "json2"},
    {JSON, of_2_3, BYTES("[[\"a\",\"b\",\"c\"],[\"d\",\"e\"],\"|O\",[2,3]]"),
     ZARR_ERR_CORRUPT, "element 3 is not in a list of the chunk's shape"},
    {JSON, of_2_3, BYTES("[[\"a\",\"b\",\"c\"],\"d\",\"|O\",[2,3]]"), ZARR_ERR_CORRUPT,
     "element 3 is not in a list"},
    {PACK, of_3, BYTES(""), ZARR_ERR_CORRUPT, "not a list of 3"},
    {PACK, of_3, BYTES("\xDD\xFF\xFF\xFF\xFF"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {PACK, of_3, BYTES("\xDC\x00"), ZARR_ERR_CORRUPT, "not a list of 3"},
    {PACK, of_3, BYTES("\x95\xA1"), ZARR_ERR_CORRUPT, "element 0 ends after"},
    {PACK, of_3, BYTES("\x95\xA1\x61"), ZARR_ERR_CORRUPT, "element 1 is missing"},
    {PACK, of_3, BYTES("\x95\xDB\xFF\xFF\xFF\xFF\x61"), ZARR_ERR_CORRUPT, "ends after"},
    {PACK, of_3, BYTES("\x95\xD9"), ZARR_ERR_CORRUPT, "ends after"},
    {PACK, of_3, BYTES("\x95\xA1\xFF\xA0\xA0\xA2|O\x91\x03"), ZARR_ERR_CORRUPT,
     "element 0 is not UTF-8"},
    {PACK, of_3, BYTES("\x95\xA0\xC1\xA0\xA2|O\x91\x03"), ZARR_ERR_CORRUPT, "element 1"},
    {PACK, of_3, BYTES("\x95\xA0\xC4\x01\x61\xA0\xA2|O\x91\x03"), ZARR_ERR_UNSUPPORTED,
     "element 1 is or has bytes"},
    {PACK, of_3, BYTES("\x95\xA0\x82\xA1k\x01\xA1k\x02\xA0\xA2|O\x91\x03"),
     ZARR_ERR_CORRUPT, "element 1 has a key twice"},
    {PACK, of_3, BYTES("\x95\xA0\x92\x01"), ZARR_ERR_CORRUPT, "element 1 is missing"},
    {PACK, of_3, BYTES("\x95\xA0\x81\x01"), ZARR_ERR_UNSUPPORTED,
     "a key that is not text"},
    {PACK, of_3, BYTES("\x95\xA0\xD4\xA0\xA0\xA2|O\x91\x03"), ZARR_ERR_UNSUPPORTED,
     "an extension"},
    {PACK, of_3, BYTES("\x95\xA0\xA0\xA0\xA2|O\x91\x02"), ZARR_ERR_CORRUPT, "shape"},
    {PACK, of_3, BYTES("\x95\xA0\xA0\xA0\xA2|O\x91"), ZARR_ERR_CORRUPT, "shape"},
    {PACK, of_3, BYTES("\x95\xA0\xA0\xA0\xA2|O"), ZARR_ERR_CORRUPT, "shape"},
    {PACK, of_3, BYTES("\x95\xA0\xA0\xA0\xA3<i4\x91\x03"), ZARR_ERR_UNSUPPORTED, "<i4"},
    {PACK, of_3, BYTES("\x95\xA0\xA0\xA0\xA2|O\x91\x03\x00"), ZARR_ERR_CORRUPT,
     "1 bytes after"},
    {PACK, of_2_3, BYTES("\x94\x93\xA0\xA0\xA0\x92\xA0\xA0\xA2|O\x92\x02\x03"),
     ZARR_ERR_CORRUPT, "element 3 is not in a list"},
    {LISTS, of_1, BYTES("\1\0\0"), ZARR_ERR_CORRUPT, "the count alone has 4"},
    {LISTS, of_1, BYTES("\2\0\0\0\0\0\0\0\0\0\0\0"), ZARR_ERR_CORRUPT, "2 elements"},
    {LISTS, of_1, BYTES("\1\0\0\0\3\0\0\0abc"), ZARR_ERR_CORRUPT,
     "element 0 is not a whole number of items"},
    {LISTS, of_1, BYTES("\1\0\0\0\xFF\xFF\xFF\xFF"), ZARR_ERR_CORRUPT, "ends after"},
    {LISTS, of_1, BYTES("\1\0\0\0\2\0\0\0abc"), ZARR_ERR_CORRUPT, "1 bytes after"},
    {NAMES, of_3, BYTES("\1\1"), ZARR_ERR_CORRUPT, "2 encoded bytes"},
    {NAMES, of_3, BYTES("\1\1\4"), ZARR_ERR_CORRUPT, "element 2 has the number 4"},
    {LABELS(",\"astype\":\"|i1\""), "string", of_1, BYTES("\xFF"), ZARR_ERR_CORRUPT,
     "the number -1"},
};

static void chunks_that_lie(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(lies); i++) {
        zarr_vlen items[MOST];
        zarr_error err = {0};
        const zarr_status st = decode(lies[i].codec, lies[i].dtype, lies[i].dims,
                                      lies[i].chunk, lies[i].bytes, items, &err);

        if (st != lies[i].status || !strstr(err.message, lies[i].says))
            fail_msg("%zu, %s: %d, \"%s\"", i, lies[i].codec, (int)st, err.message);
    }
}

/* Wrong elements given by the caller. */
static void elements_that_lie(void **state)
{
    static const struct {
        const char *codec, *dtype;
        zarr_vlen item;
        const char *says;
    } wrong[] = {
        {JSON, {"\xFF", 1}, "element 0 is not UTF-8"},
        {PACK, {"a\xF0\x9F", 3}, "element 0 is not UTF-8"},
        {JSON, {NULL, 1}, "1 bytes at NULL"},
        {PACK, {NULL, 1}, "1 bytes at NULL"},
        {NAMES, {NULL, 1}, "1 bytes at NULL"},
        {LISTS, {"abc", 3}, "not a whole number of items of 2"},
        {LISTS, {NULL, 2}, "2 bytes at NULL"},
    };

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(wrong); i++) {
        zarr_vlen item = wrong[i].item;
        const zarr_memory src = zr_mem_of_host(&item, sizeof item);
        struct impl_chain c;
        zarr_memory out = {0};
        zarr_error err = {0};

        open_chain(&c, wrong[i].codec, wrong[i].dtype, of_1);
        assert_int_not_equal(run(c.encode, 1, &src, NULL, &out, &err), ZARR_OK);
        if (!strstr(err.message, wrong[i].says))
            fail_msg("%zu, %s: \"%s\"", i, wrong[i].codec, err.message);
        impl_chain_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_numcodecs),      cmocka_unit_test(categorized_characters),
        cmocka_unit_test(refuse_codecs),     cmocka_unit_test(chunks_that_lie),
        cmocka_unit_test(elements_that_lie),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
