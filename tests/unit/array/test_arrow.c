/*
 * unit/array/test_arrow.c - columns of Arrow's C data interface: text, bytes, lists and
 * optional values, in and out, with offsets of 32 and 64 bits; releases in any order; and
 * columns that another program made wrong.
 */
#include "support/foreign/abi.h"

#include <zarrc/arrow.h>
#include <zarrc/vlen.h>

#include "array_test.h"

#include <stdbool.h>

static struct world w;

static int open_world(void **state)
{
    (void)state;
    world_open(&w, WORLD_MEMORY);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&w); /* fails if a block is not freed */
    return 0;
}

static zarr_array *make(const char *type, int32_t format, const char *fill)
{
    const uint64_t shape[1] = {5}, chunk[1] = {2};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.zarr_format = format;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.data_type = type;
    spec.fill_value = fill;
    spec.flags = ZARR_SPEC_OVERWRITE;
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    return a;
}

/* A column that an application made; release counts. */
struct column {
    struct ArrowSchema schema, item_schema, *schemas[1];
    struct ArrowArray array, item, *items[1];
    const void *buffers[3], *item_buffers[2];
};

static void no_schema_release(struct ArrowSchema *s)
{
    s->release = NULL;
}

static void no_array_release(struct ArrowArray *a)
{
    a->release = NULL;
}

static void column_open(struct column *c, const char *format, int64_t n,
                        const uint8_t *valid, const void *offsets, const void *bytes)
{
    memset(c, 0, sizeof *c);
    c->schema.format = format;
    c->schema.release = no_schema_release;
    c->buffers[0] = valid;
    c->buffers[1] = offsets;
    c->buffers[2] = bytes;
    c->array.length = n;
    c->array.null_count = valid ? -1 : 0;
    c->array.n_buffers = 3;
    c->array.buffers = c->buffers;
    c->array.release = no_array_release;
}

/* Makes a list of it, whose items are in the bytes. */
static void column_list(struct column *c, const char *item, int64_t n_items)
{
    c->item_schema.format = item;
    c->item_schema.release = no_schema_release;
    c->schemas[0] = &c->item_schema;
    c->schema.n_children = c->array.n_children = 1;
    c->schema.children = c->schemas;
    c->array.n_buffers = 2;
    c->item_buffers[1] = c->buffers[2];
    c->item.length = n_items;
    c->item.n_buffers = 2;
    c->item.buffers = c->item_buffers;
    c->item.release = no_array_release;
    c->items[0] = &c->item;
    c->array.children = c->items;
}

static int64_t read_offset(const struct ArrowArray *a, bool large, int64_t i)
{
    return large ? ((const int64_t *)a->buffers[1])[i]
                 : ((const int32_t *)a->buffers[1])[i];
}

/* Element i has this text; NULL: it is null. */
static void assert_element(const struct ArrowArray *a, bool large, int64_t i,
                           const char *want)
{
    const uint8_t *valid = a->buffers[0];
    const char *bytes = a->buffers[2];
    const int64_t begin = read_offset(a, large, i), end = read_offset(a, large, i + 1);

    if (!want) {
        assert_non_null(valid);
        assert_false(valid[i / 8] >> (i % 8) & 1);
        assert_true(begin == end);
        return;
    }
    assert_true(!valid || valid[i / 8] >> (i % 8) & 1);
    assert_int_equal(end - begin, strlen(want));
    assert_memory_equal(bytes + begin, want, strlen(want));
}

static const int32_t offsets32[] = {0, 1, 1, 4, 6, 6, 9};
static const int64_t offsets64[] = {0, 1, 1, 4, 6, 6, 9};
static const char bytes[] = "abcd\xC3\xBCxyz";
static const char *const texts[] = {"a", "", "bcd", "\xC3\xBC", ""};

static void check_column(zarr_array *a, const char *format, uint32_t flags,
                         const char *const *want, int n_null)
{
    struct ArrowSchema schema;
    struct ArrowArray out;
    const bool large = (flags & ZARR_ARROW_LARGE) != 0;

    assert_ok(zarr_array_read_arrow(a, NULL, flags, &schema, &out, NULL, &terr));
    assert_string_equal(schema.format, format);
    assert_int_equal(schema.flags, n_null >= 0 ? ARROW_FLAG_NULLABLE : 0);
    assert_int_equal(schema.n_children, 0);
    schema.release(&schema);
    assert_null(schema.release);
    assert_int_equal(out.length, 5);
    assert_int_equal(out.null_count, n_null > 0 ? n_null : 0);
    assert_int_equal(out.n_buffers, 3);
    assert_int_equal(out.offset, 0);
    assert_int_equal((uintptr_t)out.buffers[1] % 64, 0);
    assert_int_equal((uintptr_t)out.buffers[2] % 64, 0);
    for (int64_t i = 0; i < 5; i++)
        assert_element(&out, large, i, want[i]);
    out.release(&out);
    assert_null(out.release);
}

static void text_and_bytes(void **state)
{
    static const char *const filled[] = {"f", "f", "f", "f", "f"};
    static const struct {
        const char *type, *fill, *small, *large, *from;
        int32_t format;
    } rows[] = {{"string", "\"f\"", "u", "U", "u", 3},
                {"bytes", "\"Zg==\"", "z", "Z", "z", 3},
                {"bytes", "\"Zg==\"", "z", "Z", "u", 3},
                {"string", "\"f\"", "u", "U", "u", 2}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int large = 0; large < 2; large++) {
            zarr_array *a = make(rows[i].type, rows[i].format, rows[i].fill);
            const char wide[2] = {(char)(rows[i].from[0] - 'a' + 'A'), '\0'};
            struct column c;

            check_column(a, rows[i].small, 0, filled, -1);
            column_open(&c, large ? wide : rows[i].from, 5, NULL,
                        large ? (const void *)offsets64 : offsets32, bytes);
            assert_ok(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr));
            assert_non_null(c.array.release); /* borrowed */
            check_column(a, rows[i].small, 0, texts, -1);
            check_column(a, rows[i].large, ZARR_ARROW_LARGE, texts, -1);
            zarr_array_free(a);
        }
}

/* `offset` of the column, a bitmap that begins inside a byte, and part of an array. */
static void nulls_and_offsets(void **state)
{
    static const char *const want[] = {NULL, "bcd", NULL, "", "xyz"};
    const uint8_t valid[1] = {0x35}; /* 1 0 1 0 1 1 */
    const uint64_t shape[1] = {5}, start[1] = {2}, count[1] = {2};
    zarr_array *a = make(
        "{\"name\":\"optional\",\"configuration\":{\"name\":\"string\"}}", 3, "null");
    zarr_selection *sel = NULL;
    struct ArrowArray out;
    struct column c;

    (void)state;
    column_open(&c, "u", 5, valid, offsets32, bytes);
    c.array.offset = 1;
    assert_ok(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr));
    check_column(a, "u", 0, want, 2);
    check_column(a, "U", ZARR_ARROW_LARGE, want, 2);
    assert_ok(zarr_selection_box(&sel, 1, shape, start, count, &terr));
    c.array.length = 2; /* null, "bcd" onto elements 2 and 3 */
    c.array.offset = 2;
    c.array.null_count = 0; /* says that there is none, so the bitmap does not count */
    assert_ok(zarr_array_write_arrow(a, sel, &c.schema, &c.array, NULL, &terr));
    assert_ok(zarr_array_read_arrow(a, sel, 0, NULL, &out, NULL, &terr));
    assert_int_equal(out.length, 2);
    assert_int_equal(out.null_count, 0);
    assert_null(out.buffers[0]);
    assert_element(&out, false, 0, "bcd");
    assert_element(&out, false, 1, "\xC3\xBC");
    out.release(&out);
    zarr_selection_free(sel);
    zarr_array_free(a);
}

static void lists(void **state)
{
    static const int16_t items[] = {99, -1, 2, 3, 4, 5};
    static const int64_t ends[] = {0, 2, 2, 3, 5, 5};
    zarr_array *a = make("vlen-array[int16]", 2, NULL);
    struct ArrowSchema schema;
    struct ArrowArray out, child;
    struct column c;

    (void)state;
    column_open(&c, "+L", 5, NULL, ends, items);
    column_list(&c, "s", 5);
    c.item.offset = 1;
    assert_ok(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr));
    assert_ok(zarr_array_read_arrow(a, NULL, 0, &schema, &out, NULL, &terr));
    assert_string_equal(schema.format, "+l");
    assert_string_equal(schema.children[0]->format, "s");
    assert_int_equal(out.n_buffers, 2);
    assert_int_equal(out.n_children, 1);
    assert_int_equal(out.children[0]->length, 5);
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(read_offset(&out, false, i), ends[i]);
    /* the child is moved out and outlives the rest */
    child = *out.children[0];
    out.children[0]->release = NULL;
    out.release(&out);
    schema.release(&schema);
    assert_memory_equal(child.buffers[1], items + 1, 5 * sizeof *items);
    zarr_array_free(a);
    child.release(&child);
    assert_null(child.release);
    a = make("vlen-array[int16]", 2, NULL);
    c.item.length = 4;
    assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                  ZARR_ERR_INVALID);
    assert_says("goes from 3 to 5");
    c.item.length = 5;
    c.item_schema.format = "S";
    assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                  ZARR_ERR_INVALID);
    c.item_schema.format = "s";
    c.item_buffers[0] = items;
    c.item.null_count = 1;
    assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                  ZARR_ERR_INVALID);
    c.array.n_children = 0;
    assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
}

static void refused_columns(void **state)
{
    static const int32_t falling[] = {0, 3, 2, 4, 6, 6}, negative[] = {-1, 1, 2, 4, 6, 6};
    const uint8_t valid[1] = {0x1D};
    zarr_array *a = make("string", 3, NULL);
    struct ArrowSchema dictionary;

    (void)state;
    for (int i = 0; i < 15; i++) {
        struct column c;

        memset(&terr, 0, sizeof terr);
        column_open(&c,
                    i == 0   ? "z"
                    : i == 1 ? "i"
                    : i == 2 ? "vu"
                             : "u",
                    5, i == 3 ? valid : NULL,
                    i == 4   ? falling
                    : i == 5 ? negative
                    : i == 6 ? NULL
                             : offsets32,
                    i == 7   ? NULL
                    : i == 8 ? "ab\xFF"
                               "d  "
                             : bytes);
        c.array.length = i == 9 ? 4 : i == 10 ? -1 : 5;
        c.array.offset = i == 11 ? -1 : 0;
        c.array.n_buffers = i == 12 ? 2 : 3;
        if (i == 13)
            c.array.release = NULL;
        c.schema.dictionary = i == 14 ? &dictionary : NULL;
        assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                      i == 14 ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_INVALID);
    }
    assert_status(zarr_array_write_arrow(a, NULL, NULL, NULL, NULL, &terr),
                  ZARR_ERR_INVALID);
    zarr_array_free(a);
}

static void say_in_column(struct column *c, int i, int32_t *offsets)
{
    struct ArrowArray *a = &c->array;

    a->null_count = i == 0 ? -2 : i == 1 ? 6 : i == 2 ? 3 : i == 3 ? INT64_MIN : 0;
    a->offset = i == 4   ? INT64_MAX - 5
                : i == 5 ? INT64_MAX / 4
                : i == 6 ? INT64_MAX / 2
                : i == 7 ? INT64_MIN
                         : 0;
    a->n_buffers = i == 8 ? -1 : i == 9 ? INT64_MAX : 3;
    a->length = i == 10 ? INT64_MAX : i == 11 ? INT64_MIN : 5;
    if (i == 12)
        a->buffers = NULL;
    c->schema.format = i == 13 ? NULL : i == 14 ? "" : c->schema.format;
    if (i == 15)
        c->schema.release = NULL;
    if (i == 16)
        a->dictionary = a;
    offsets[5] = i == 17 ? INT32_MIN : 6;
}

/* Each number of a column at its ends: an error, and no byte is read. */
static void hostile_columns(void **state)
{
    zarr_array *a = make("string", 3, NULL);
    int32_t offsets[6] = {0, 1, 1, 4, 6, 6};

    (void)state;
    for (int i = 0; i < 18; i++) {
        struct column c;

        memset(&terr, 0, sizeof terr);
        column_open(&c, "u", 5, NULL, offsets, bytes);
        say_in_column(&c, i, offsets);
        assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                      i == 16 ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_INVALID);
        assert_says("");
    }
    zarr_array_free(a);
}

static void say_in_list(struct column *c, int i)
{
    static const uint8_t some_null[1] = {0x1B};

    if (i == 0)
        c->item_schema.release = NULL; /* moved out, as the specification permits */
    if (i == 1)
        c->item.release = NULL;
    if (i == 2)
        c->item_schema.dictionary = &c->item_schema;
    if (i == 3)
        c->item.dictionary = &c->item;
    c->item_schema.format = i == 4 ? NULL : "s";
    c->schemas[0] = i == 5 ? NULL : &c->item_schema;
    c->schema.n_children = i == 6 ? INT64_MAX : i == 7 ? -1 : 1;
    c->array.n_children = i == 8 ? INT64_MIN : i == 9 ? 2 : 1;
    c->items[0] = i == 10 ? NULL : &c->item;
    c->item.offset = i == 11 ? INT64_MAX / 2 : i == 12 ? -1 : i == 13 ? INT64_MAX - 5 : 0;
    c->item.length = i == 14 ? -1 : i == 15 ? INT64_MAX - 1 : 5;
    c->item_buffers[0] = i == 16 ? some_null : NULL;
    c->item.null_count = i == 16 ? -1 : i == 17 ? 1 : 0;
    c->item.n_buffers = i == 18 ? 1 : 2;
    if (i == 19)
        c->item.buffers = NULL;
    if (i == 20)
        c->schema.children = NULL;
    if (i == 21)
        c->array.children = NULL;
}

static void hostile_lists(void **state)
{
    static const int16_t items[] = {-1, 2, 3, 4, 5};
    static const int32_t ends[] = {0, 2, 2, 3, 5, 5};
    static const uint8_t all[1] = {0x1F};
    zarr_array *a = make("vlen-array[int16]", 2, NULL);
    struct column c;

    (void)state;
    for (int i = 0; i < 22; i++) {
        memset(&terr, 0, sizeof terr);
        column_open(&c, "+l", 5, NULL, ends, items);
        column_list(&c, "s", 5);
        say_in_list(&c, i);
        assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                      i == 2 || i == 3 ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_INVALID);
        assert_says("Arrow");
    }
    /* a bitmap without a null, whose count the producer does not know */
    column_open(&c, "+l", 5, NULL, ends, items);
    column_list(&c, "s", 5);
    c.item_buffers[0] = all;
    c.item.null_count = -1;
    assert_ok(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr));
    zarr_array_free(a);
}

static void refused_arrays(void **state)
{
    static const struct {
        const char *type;
        zarr_status want;
    } rows[] = {
        {"int16", ZARR_ERR_INVALID},
        {"{\"name\":\"optional\",\"configuration\":{\"name\":\"optional\","
         "\"configuration\":{\"name\":\"string\"}}}",
         ZARR_ERR_UNSUPPORTED},
    };
    struct ArrowSchema schema;
    struct ArrowArray out;
    struct column c;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zarr_array *a = make(rows[i].type, 3, NULL);

        assert_status(zarr_array_read_arrow(a, NULL, 0, &schema, &out, NULL, &terr),
                      rows[i].want);
        assert_true(!schema.release && !out.release);
        column_open(&c, "u", 5, NULL, offsets32, bytes);
        assert_status(zarr_array_write_arrow(a, NULL, &c.schema, &c.array, NULL, &terr),
                      rows[i].want);
        assert_status(zarr_array_read_arrow(a, NULL, 2, &schema, &out, NULL, &terr),
                      ZARR_ERR_UNSUPPORTED);
        zarr_array_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_and_bytes, open_world, close_world),
        cmocka_unit_test_setup_teardown(nulls_and_offsets, open_world, close_world),
        cmocka_unit_test_setup_teardown(lists, open_world, close_world),
        cmocka_unit_test_setup_teardown(refused_columns, open_world, close_world),
        cmocka_unit_test_setup_teardown(hostile_columns, open_world, close_world),
        cmocka_unit_test_setup_teardown(hostile_lists, open_world, close_world),
        cmocka_unit_test_setup_teardown(refused_arrays, open_world, close_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
