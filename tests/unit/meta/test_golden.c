/*
 * unit/meta/test_golden.c - every document of tests/golden/zarr-python.json is read,
 * written and compared: as JSON values with zarr-python's, byte for byte with our text in
 * tests/golden/zarrc.txt, and after conversion to the other format and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/meta/env.h"

enum {
    LONGEST = 1 << 20 /* bytes of a file */
};

static char golden[4096];  /* the folder */
static char want[LONGEST]; /* zarrc.txt: each document after a line "== NAME" */
static struct zr_str written;

static size_t read_text(const char *name, char *text)
{
    char path[5000];
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, "%s/%s", golden, name);
    file = fopen(path, "rb");
    assert_non_null(file);
    n = fread(text, 1, LONGEST - 1, file);
    assert_true(n < LONGEST - 1);
    text[n] = '\0';
    fclose(file);
    return n;
}

static void write_text(const char *name, const char *text)
{
    char path[5000];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", golden, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Compares bits, not text: 9.96921e+36 and 9.969209968386869e+36 are the same
 * float32. */
static void assert_same_fill(const struct zr_array_meta *m, const struct zr_json *theirs,
                             const struct zr_json *ours, const char *name)
{
    uint8_t a[64], b[64];

    if (zr_json_equal(theirs, ours))
        return;
    assert_int_equal(zr_dtype_fill_parse(m->dtype, theirs, m->format, a, NULL), ZARR_OK);
    assert_int_equal(zr_dtype_fill_parse(m->dtype, ours, m->format, b, NULL), ZARR_OK);
    if (memcmp(a, b, zarr_dtype_item_bytes(m->dtype)) != 0)
        fail_msg("%s: fill_value", name);
}

static void assert_same_document(const struct zr_array_meta *m,
                                 const struct zr_json *theirs, const struct zr_json *ours,
                                 const char *name)
{
    assert_int_equal(zr_json_count(theirs), zr_json_count(ours));
    for (const struct zr_json *v = theirs->u.children.first; v; v = v->next) {
        const struct zr_json *w = zr_json_get(ours, v->key);

        if (zr_streq(v->key, "fill_value"))
            assert_same_fill(m, v, w, name);
        else if (!zr_json_equal(v, w))
            fail_msg("%s: %s differs", name, v->key);
    }
}

/* `written` grows by the document, and is the beginning of `want`. */
static void assert_golden(const char *name, const struct zr_json *ours)
{
    const size_t from = written.bytes;

    zr_str_puts(&written, "== ");
    zr_str_puts(&written, name);
    zr_str_putc(&written, '\n');
    zr_json_write(ours, ZR_META_INDENT, &written);
    zr_str_putc(&written, '\n');
    if (!getenv("ZR_GOLDEN_UPDATE") &&
        strncmp(want + from, zr_str_text(&written) + from, written.bytes - from) != 0)
        fail_msg("we write\n%s", zr_str_text(&written) + from);
}

/* Converts there and back: everything that both formats can express is kept. */
static void check_conversion(struct meta_world *w, const struct zr_array_meta *m,
                             const char *name)
{
    struct zr_array_meta other, again;
    zarr_error err = {0};
    zarr_status st = zr_array_meta_convert(&other, &w->env, m, 5 - m->format, &err);

    if (strstr(name, "shards") || strstr(name, "several-shards") ||
        zr_streq(name, "v3-names") || /* one of them is null */
        zr_streq(m->keys.vt->name, "default")) {
        assert_int_equal(st, ZARR_ERR_UNSUPPORTED);
        return;
    }
    if (st != ZARR_OK)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(other.format, 5 - m->format);
    assert_true(
        zarr_dtype_equal(other.dtype, m->dtype)); /* raw_bytes is written as r<N> */
    assert_int_equal(other.chain->n, m->chain->n);
    st = zr_array_meta_convert(&again, &w->env, &other, m->format, &err);
    if (st != ZARR_OK)
        fail_msg("%s: back: %s", name, err.message);
    assert_int_equal(again.ndim, m->ndim);
    assert_memory_equal(again.shape, m->shape, sizeof m->shape);
    assert_int_equal(again.byte_order, m->byte_order);
    assert_int_equal(again.order, m->order);
    assert_memory_equal(again.fill, m->fill, zarr_dtype_item_bytes(m->dtype));
    zr_array_meta_deinit(&again);
    zr_array_meta_deinit(&other);
}

static void check_array(struct meta_world *w, const char *name,
                        const struct zr_json *theirs, int format)
{
    struct zr_array_meta m;
    struct zr_json_doc doc;
    struct zr_json *ours = NULL;
    zarr_error err = {0};

    zr_json_doc_init(&doc, NULL);
    if (zr_array_meta_parse(&m, &w->env, format, theirs, NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", name, err.message);
    assert_int_equal(zr_array_meta_write(&m, &doc, &ours, &err), ZARR_OK);
    assert_same_document(&m, theirs, ours, name);
    assert_golden(name, ours);
    check_conversion(w, &m, name);
    if (m.format == 3) { /* v2 has no other key encodings */
        zr_key_encoding_deinit(&m.keys);
        assert_int_equal(zr_key_encoding_parse(&m.keys, w->env.grids, "v2", NULL, NULL),
                         ZARR_OK);
        check_conversion(w, &m, name);
    }
    zr_array_meta_deinit(&m);
    zr_json_doc_deinit(&doc);
}

static void check_group(struct meta_world *w, const char *name,
                        const struct zr_json *theirs, int format)
{
    struct zr_group_meta m;
    struct zr_json_doc doc;
    struct zr_json *ours = NULL;
    zarr_error err = {0};

    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_group_meta_parse(&m, &w->env, format, theirs, NULL, &err),
                     ZARR_OK);
    assert_int_equal(zr_group_meta_write(&m, &doc, &ours, &err), ZARR_OK);
    assert_true(zr_json_equal(theirs, ours));
    assert_golden(name, ours);
    zr_json_doc_deinit(&doc);
}

static void check_document(struct meta_world *w, const char *name,
                           const struct zr_json *theirs)
{
    const struct zr_json *map = NULL;

    if (zr_json_get(theirs, "shape"))
        check_array(w, name, theirs, name[1] - '0');
    else if (zr_json_get(theirs, "zarr_consolidated_format")) {
        assert_int_equal(zr_consolidated_map(&map, 2, theirs, NULL), ZARR_OK);
        assert_non_null(zr_json_get(map, ".zgroup"));
    } else {
        check_group(w, name, theirs, zr_json_get(theirs, "node_type") ? 3 : 2);
    }
}

static void documents(void **state)
{
    static char theirs[LONGEST];
    const size_t n = read_text("zarr-python.json", theirs);
    struct meta_world w;
    struct zr_json_doc doc;

    (void)state;
    assert_int_equal(meta_world_open(&w, NULL), ZARR_OK);
    zr_json_doc_init(&doc, NULL);
    zr_str_init(&written, NULL);
    read_text("zarrc.txt", want);
    assert_int_equal(zr_json_parse(&doc, theirs, n, NULL, NULL), ZARR_OK);
    assert_true(zr_json_count(doc.root) > 100);
    for (const struct zr_json *v = doc.root->u.children.first; v; v = v->next)
        check_document(&w, v->key, v);
    if (getenv("ZR_GOLDEN_UPDATE"))
        write_text("zarrc.txt", zr_str_text(&written));
    else
        assert_string_equal(want, zr_str_text(&written));
    zr_str_deinit(&written);
    zr_json_doc_deinit(&doc);
    meta_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents)};
    const char *source = getenv("ZR_SOURCE_DIR");

    snprintf(golden, sizeof golden, "%s/tests/golden", source ? source : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
