/*
 * unit/meta/test_golden.c - every document of tests/golden/zarr-python is read, written
 * and compared: as JSON values with zarr-python's, byte for byte with our golden text,
 * and after conversion to the other format and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>

#include <cmocka.h>

#include "unit/meta/env.h"

static char golden[4096];

static size_t read_text(const char *folder, const char *name, char *text, size_t cap)
{
    char path[5000];
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, "%s/%s/%s", golden, folder, name);
    file = fopen(path, "rb");
    if (!file)
        return 0;
    n = fread(text, 1, cap - 1, file);
    text[n] = '\0';
    fclose(file);
    return n;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[5000];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s/%s", golden, folder, name);
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

static void assert_golden(const char *name, const struct zr_json *ours)
{
    char *want = malloc(1 << 20);
    struct zr_str text;

    zr_str_init(&text, NULL);
    zr_json_write(ours, ZR_META_INDENT, &text);
    zr_str_putc(&text, '\n');
    if (getenv("ZR_GOLDEN_UPDATE"))
        write_text("zarrc", name, zr_str_text(&text));
    if (read_text("zarrc", name, want, 1 << 20) == 0)
        fail_msg("no golden document %s", name);
    if (strcmp(want, zr_str_text(&text)) != 0)
        fail_msg("%s: we write\n%s", name, zr_str_text(&text));
    free(want);
    zr_str_deinit(&text);
}

/* Converts there and back: everything that both formats can express is kept. */
static void check_conversion(struct meta_world *w, const struct zr_array_meta *m,
                             const char *name)
{
    struct zr_array_meta other, again;
    zarr_error err = {0};
    zarr_status st = zr_array_meta_convert(&other, &w->env, m, 5 - m->format, &err);

    if (strstr(name, "shards") || strstr(name, "several-shards") ||
        zr_streq(name, "v3-names.json") || /* one of them is null */
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

static void check_document(struct meta_world *w, const char *name)
{
    char *text = malloc(1 << 20);
    size_t n = read_text("zarr-python", name, text, 1 << 20);
    const struct zr_json *map = NULL;
    struct zr_json_doc doc;

    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_json_parse(&doc, text, n, NULL, NULL), ZARR_OK);
    if (zr_json_get(doc.root, "shape"))
        check_array(w, name, doc.root, name[1] - '0');
    else if (zr_json_get(doc.root, "zarr_consolidated_format")) {
        assert_int_equal(zr_consolidated_map(&map, 2, doc.root, NULL), ZARR_OK);
        assert_non_null(zr_json_get(map, ".zgroup"));
    } else {
        check_group(w, name, doc.root, zr_json_get(doc.root, "node_type") ? 3 : 2);
    }
    zr_json_doc_deinit(&doc);
    free(text);
}

static void documents(void **state)
{
    struct dirent **names = NULL;
    struct meta_world w;
    char path[5000];
    int n, done = 0;

    (void)state;
    assert_int_equal(meta_world_open(&w, NULL), ZARR_OK);
    snprintf(path, sizeof path, "%s/zarr-python", golden);
    n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (zr_ends_with(names[i]->d_name, ".json")) {
            check_document(&w, names[i]->d_name);
            done++;
        }
        free(names[i]);
    }
    free(names);
    assert_true(done > 100);
    meta_world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents)};
    const char *source = getenv("ZR_SOURCE_DIR");

    snprintf(golden, sizeof golden, "%s/tests/golden", source ? source : ".");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
