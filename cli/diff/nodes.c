/*
 * diff/nodes.c - what two arrays are, compared property by property. A reader
 * of elements cannot see how they are stored, so chunks, codecs, keys and
 * format count only where they are asked for.
 */
#include "diff/diff.h"

#include <stdlib.h>
#include <string.h>

static void texts(struct diff_pair *p, const char *what, const char *a, const char *b,
                  bool is_json)
{
    if (strcmp(a ? a : "", b ? b : "") != 0 || !a != !b)
        cli_diff_fact(p, what, a, b, is_json);
}

static void shapes(struct diff_pair *p, const char *what, const uint64_t *a,
                   const uint64_t *b)
{
    char *ta = a ? cli_shape_text(zarr_array_ndim(p->a), a) : NULL;
    char *tb = b ? cli_shape_text(zarr_array_ndim(p->b), b) : NULL;

    texts(p, what, ta, tb, false);
    free(ta);
    free(tb);
}

/* What null in v2 is read as: zero, but NaT for times, also in structs. */
static void put_nat(const zarr_dtype *type, uint8_t *element)
{
    const uint32_t kind = zarr_dtype_kind(type);
    const int64_t nat = INT64_MIN;

    if (kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA)
        memcpy(element, &nat, sizeof nat);
    for (uint64_t i = 0; i < zarr_dtype_n_fields(type); i++) {
        zarr_dtype_field field = ZARR_DTYPE_FIELD_INIT;

        if (zarr_dtype_field_at(type, i, &field, NULL))
            return;
        for (uint64_t k = 0; k < cli_product(field.ndim, field.shape); k++)
            put_nat(field.dtype,
                    element + field.offset + k * zarr_dtype_item_bytes(field.dtype));
    }
}

static char *fill_text(const zarr_array *array, const zarr_dtype *type)
{
    const void *fill = zarr_array_fill_value(array);
    void *zero = fill ? NULL : cli_alloc((size_t)zarr_dtype_item_bytes(type));
    char *text = NULL;

    if (zero)
        put_nat(type, zero);
    text = cli_fill_text(type, fill ? fill : zero, NULL);
    free(zero);
    return text;
}

static void names(struct diff_pair *p)
{
    for (int32_t d = 0; d < zarr_array_ndim(p->a); d++) {
        char *what = cli_format("name of dimension %d", (int)d);

        texts(p, what, zarr_array_dimension_name(p->a, d),
              zarr_array_dimension_name(p->b, d), false);
        free(what);
    }
}

static void storage(struct diff_pair *p)
{
    const char *formats[] = {"", "1", "2", "3"};
    int32_t a = zarr_array_zarr_format(p->a), b = zarr_array_zarr_format(p->b);

    if (a != b)
        cli_diff_fact(p, "format", formats[a & 3], formats[b & 3], true);
    shapes(p, "chunks", zarr_array_chunk_shape(p->a), zarr_array_chunk_shape(p->b));
    shapes(p, "shards", zarr_array_write_shape(p->a), zarr_array_write_shape(p->b));
    if (!zarr_array_write_shape(p->a) || !zarr_array_write_shape(p->b))
        texts(p, "chunk grid", zarr_array_chunk_grid(p->a), zarr_array_chunk_grid(p->b),
              true);
    texts(p, "codecs", zarr_array_codecs(p->a), zarr_array_codecs(p->b), true);
}

void cli_diff_arrays(struct diff_pair *p)
{
    const zarr_dtype *type = zarr_array_dtype(p->a), *other = zarr_array_dtype(p->b);
    const bool same = zarr_dtype_equal(type, other); /* r24 is raw_bytes[3], too */
    char *fa = fill_text(p->a, type), *fb = fill_text(p->b, same ? type : other);

    if (!same || p->d->storage)
        texts(p, "data type", cli_type_name(type), cli_type_name(other), false);
    texts(p, "fill value", fa, fb, true);
    if (zarr_array_ndim(p->a) == zarr_array_ndim(p->b))
        names(p);
    cli_diff_attributes(p, zarr_array_attributes(p->a), zarr_array_attributes(p->b));
    if (p->d->storage)
        storage(p);
    free(fa);
    free(fb);
}

/* ---- attributes ----------------------------------------------------------------- */

/* v2 arrays keep names of dimensions here; names() compares those. */
static bool is_ours(const struct diff_pair *p, const char *key)
{
    return p->a && strcmp(key, "_ARRAY_DIMENSIONS") == 0;
}

/* Members of `from` that `in` lacks or, with both, has with another value. */
static void members(struct diff_pair *p, const char *from, const char *in, bool both)
{
    size_t n = 0, m = 0;
    const char *value, *other;
    char *key = NULL;

    for (size_t i = 0; (value = cli_json_member_at(from, i, &key, &n)) != NULL; i++) {
        other = cli_json_member(in, key, &m);
        if (!is_ours(p, key) &&
            (!other || (both && (n != m || memcmp(value, other, n) != 0)))) {
            char *what = cli_format("attribute %s", key);
            char *tv = cli_format("%.*s", (int)n, value);
            char *to = other ? cli_format("%.*s", (int)m, other) : NULL;

            cli_diff_fact(p, what, both ? tv : to, both ? to : tv, true);
            free(what);
            free(tv);
            free(to);
        }
        free(key);
    }
}

void cli_diff_attributes(struct diff_pair *p, const char *a, const char *b)
{
    if (p->d->ignore_attributes)
        return;
    members(p, a, b, true);
    members(p, b, a, false);
}
