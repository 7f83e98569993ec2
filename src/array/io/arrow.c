/*
 * array/io/arrow.c - elements of variable length as columns of Arrow's C data interface.
 * A read ends in one counted block that has offsets, bytes and the bitmap of nulls; the
 * array, its child and the schemas each hold a reference, because a consumer may move a
 * child out and release the rest. A column to write comes from another program and is
 * checked before use.
 * Thread class: plain functions; a column may be released on any thread.
 */
#include "array/io/vlen_int.h"

#include <zarrc/arrow.h>

enum {
    ARROW_ALIGN = 64 /* as Arrow recommends */
};

/* What a column of these elements is. */
struct arrow_type {
    const char *format[2]; /* with offsets of 32 and 64 bits */
    const char *item;      /* lists: the items' format; else NULL */
    uint64_t item_bytes;   /* lists: of an item; else 1 */
    bool text;
};

struct arrow_block {
    atomic_uint refs;
    zarr_context *ctx; /* counted */
    const void *buffers[3], *item_buffers[2];
    struct ArrowArray item, *items[1];
    struct ArrowSchema item_schema, *item_schemas[1];
};

/* ---- types ------------------------------------------------------------------------- */

static const char *item_format(const zarr_dtype *item)
{
    static const char *const formats[][2] = {
        {"int8", "c"},    {"uint8", "C"},   {"int16", "s"},  {"uint16", "S"},
        {"int32", "i"},   {"uint32", "I"},  {"int64", "l"},  {"uint64", "L"},
        {"float16", "e"}, {"float32", "f"}, {"float64", "g"}};
    const char *name = zarr_dtype_name(item);

    for (size_t i = 0; i < ZR_COUNT(formats); i++)
        if (zr_streq(name, formats[i][0]))
            return formats[i][1];
    return NULL;
}

static zarr_status find_arrow_type(struct arrow_type *out, const zarr_dtype *value,
                                   zarr_error *err)
{
    const zarr_dtype *item = zarr_dtype_item(value);

    *out = (struct arrow_type){.item_bytes = 1};
    if (zarr_dtype_kind(value) == ZARR_KIND_STRING) {
        out->format[0] = "u";
        out->format[1] = "U";
        out->text = true;
    } else if (zarr_dtype_kind(value) == ZARR_KIND_VBYTES) {
        out->format[0] = "z";
        out->format[1] = "Z";
    } else if (item && item_format(item)) {
        out->format[0] = "+l";
        out->format[1] = "+L";
        out->item = item_format(item);
        out->item_bytes = zarr_dtype_item_bytes(item);
    } else {
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "no column of Arrow for elements of %s",
                       zr_dtype_label(value));
    }
    return ZARR_OK;
}

/* ---- releasing --------------------------------------------------------------------- */

static void block_drop(struct arrow_block *b)
{
    zarr_context *ctx = b->ctx;

    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_free(ctx->alloc, b);
    zarr_context_free(ctx);
}

static struct arrow_block *block_take(struct arrow_block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

static void release_array(struct ArrowArray *a)
{
    struct arrow_block *b = a->private_data;

    for (int64_t i = 0; i < a->n_children; i++)
        if (a->children[i]->release)
            a->children[i]->release(a->children[i]);
    a->release = NULL;
    block_drop(b);
}

static void release_schema(struct ArrowSchema *s)
{
    struct arrow_block *b = s->private_data;

    for (int64_t i = 0; i < s->n_children; i++)
        if (s->children[i]->release)
            s->children[i]->release(s->children[i]);
    s->release = NULL;
    block_drop(b);
}

/* ---- reading ----------------------------------------------------------------------- */

/* Where the parts of a block are, in bytes from its beginning. */
struct arrow_plan {
    size_t valid, offsets, bytes, all;
    uint64_t sum, n_null;
    bool large;
};

static bool plan_part(size_t *at, size_t *all, uint64_t bytes)
{
    uint64_t end = 0;

    *at = (*all + ARROW_ALIGN - 1) / ARROW_ALIGN * ARROW_ALIGN;
    return zr_add(*at, bytes, &end) && end <= (uint64_t)PTRDIFF_MAX - ARROW_ALIGN &&
           zr_fits(end, all);
}

static zarr_status plan_column(struct arrow_plan *p, const struct zr_vlen_call *c,
                               const struct arrow_type *type, uint32_t flags,
                               zarr_error *err)
{
    uint64_t offsets = 0;
    zarr_vlen item;

    *p = (struct arrow_plan){.all = sizeof(struct arrow_block)};
    for (uint64_t i = 0; i < c->n; i++) {
        if (!zr_vlen_call_get(c, i, &item))
            p->n_null++;
        else if (item.bytes % type->item_bytes || !zr_add(p->sum, item.bytes, &p->sum))
            return zr_internal(err);
    }
    p->large = (flags & ZARR_ARROW_LARGE) || p->sum / type->item_bytes > INT32_MAX;
    if (c->n >= INT64_MAX || !zr_mul(c->n + 1, p->large ? 8 : 4, &offsets) ||
        !plan_part(&p->valid, &p->all, p->n_null ? c->n / 8 + 1 : 0) ||
        !plan_part(&p->offsets, &p->all, offsets) ||
        !plan_part(&p->bytes, &p->all, p->sum))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "the elements do not fit this machine's addresses");
    return ZARR_OK;
}

static void put_offset(uint8_t *offsets, bool large, uint64_t i, uint64_t value)
{
    const int32_t small = (int32_t)value;
    const int64_t wide = (int64_t)value;

    if (large)
        memcpy(offsets + 8 * i, &wide, sizeof wide);
    else
        memcpy(offsets + 4 * i, &small, sizeof small);
}

static void gather(uint8_t *base, const struct arrow_plan *p,
                   const struct zr_vlen_call *c, uint64_t item_bytes)
{
    uint8_t *bytes = base + p->bytes;
    uint64_t at = 0;
    zarr_vlen item;

    put_offset(base + p->offsets, p->large, 0, 0);
    if (p->n_null)
        memset(base + p->valid, 0, (size_t)(c->n / 8 + 1));
    for (uint64_t i = 0; i < c->n; i++) {
        if (zr_vlen_call_get(c, i, &item)) {
            if (item.bytes)
                memcpy(bytes + at, item.data, (size_t)item.bytes);
            at += item.bytes;
            if (p->n_null)
                base[p->valid + i / 8] |= (uint8_t)(1U << (i % 8));
        }
        put_offset(base + p->offsets, p->large, i + 1, at / item_bytes);
    }
}

/* Fills the array; b has a reference for it. */
static void fill_array(struct ArrowArray *out, struct arrow_block *b,
                       const struct arrow_plan *p, const struct zr_vlen_call *c,
                       const struct arrow_type *type, const uint8_t *base)
{
    b->buffers[0] = p->n_null ? base + p->valid : NULL;
    b->buffers[1] = base + p->offsets;
    b->buffers[2] = base + p->bytes;
    *out = (struct ArrowArray){.length = (int64_t)c->n,
                               .null_count = (int64_t)p->n_null,
                               .n_buffers = type->item ? 2 : 3,
                               .buffers = b->buffers,
                               .release = release_array,
                               .private_data = b};
    if (!type->item)
        return;
    b->item_buffers[1] = b->buffers[2];
    b->item = (struct ArrowArray){.length = (int64_t)(p->sum / type->item_bytes),
                                  .n_buffers = 2,
                                  .buffers = b->item_buffers,
                                  .release = release_array,
                                  .private_data = block_take(b)};
    b->items[0] = &b->item;
    out->n_children = 1;
    out->children = b->items;
}

static void fill_schema(struct ArrowSchema *out, struct arrow_block *b,
                        const struct arrow_type *type, bool large, bool optional)
{
    *out = (struct ArrowSchema){.format = type->format[large],
                                .name = "",
                                .flags = optional ? ARROW_FLAG_NULLABLE : 0,
                                .release = release_schema,
                                .private_data = block_take(b)};
    if (!type->item)
        return;
    b->item_schema = (struct ArrowSchema){.format = type->item,
                                          .name = "item",
                                          .release = release_schema,
                                          .private_data = block_take(b)};
    b->item_schemas[0] = &b->item_schema;
    out->n_children = 1;
    out->children = b->item_schemas;
}

static zarr_status column_out(struct ArrowSchema *schema, struct ArrowArray *out,
                              const struct zr_vlen_call *c, const struct arrow_type *type,
                              uint32_t flags, zarr_error *err)
{
    zarr_context *ctx = c->array->h.ctx;
    struct arrow_block *b = NULL;
    struct arrow_plan p;
    uint8_t *base = NULL;

    ZR_CHECK(plan_column(&p, c, type, flags, err));
    b = zr_malloc(ctx->alloc, p.all + ARROW_ALIGN);
    if (!b)
        return zr_fail_memory(err, p.all);
    zr_pages_advise(b, p.all + ARROW_ALIGN);
    memset(b, 0, sizeof *b);
    atomic_init(&b->refs, 1);
    b->ctx = zarr_context_ref(ctx);
    base = (uint8_t *)b;
    base += (ARROW_ALIGN - (uintptr_t)base % ARROW_ALIGN) % ARROW_ALIGN;
    gather(base, &p, c, type->item_bytes);
    if (schema)
        fill_schema(schema, b, type, p.large, c->optional);
    fill_array(out, b, &p, c, type, base);
    return ZARR_OK;
}

zarr_status zarr_array_read_arrow(zarr_array *array, const zarr_selection *selection,
                                  uint32_t flags, struct ArrowSchema *schema,
                                  struct ArrowArray *out, const zarr_io_options *opts,
                                  zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_vlen_call c = {.array = array};
    struct zarr_heap own = {.ctx = array->h.ctx};
    struct arrow_type type;
    zarr_status st = ZARR_OK;

    if (schema)
        *schema = (struct ArrowSchema){.release = NULL};
    if (!out)
        return zr_fail(err, ZARR_ERR_INVALID, "no column is given");
    *out = (struct ArrowArray){.release = NULL};
    if (flags & ~(uint32_t)ZARR_ARROW_LARGE)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "unknown flags 0x%" PRIx32, flags);
    zr_heap_init(&own.heap, array->h.ctx->budget.total, array->h.ctx->alloc);
    ZR_TRY(zr_vlen_call_open(&c, array, selection, err));
    ZR_TRY(find_arrow_type(&type, c.value, err));
    c.heap = &own;
    ZR_TRY(zr_vlen_call_read(&c, opts, err));
    st = column_out(schema, out, &c, &type, flags, err);
out:
    zr_heap_clear(&own.heap);
    zr_vlen_call_close(&c);
    return st;
}

/* ---- writing ----------------------------------------------------------------------- */

/* A column to write, checked. */
struct arrow_in {
    bool large;
    uint64_t first; /* its `offset` */
    const uint8_t *valid, *offsets, *bytes;
    uint64_t n_items, item_bytes; /* number of items behind `bytes`, at most */
};

/* Whether the column's format is one of this type. Text is bytes, too. */
static bool format_fits(const struct arrow_type *type, const char *format, bool *large)
{
    static const char *const text[2] = {"u", "U"};

    for (int i = 0; i < 2; i++)
        if (zr_streq(format, type->format[i]) ||
            (!type->text && !type->item && zr_streq(format, text[i]))) {
            *large = i == 1;
            return true;
        }
    return false;
}

static zarr_status check_schema(struct arrow_in *in, const struct arrow_type *type,
                                const struct ArrowSchema *s, zarr_error *err)
{
    const char *format = s && s->release && s->format ? s->format : NULL;
    const struct ArrowSchema *item = NULL;

    if (!format)
        return zr_fail(err, ZARR_ERR_INVALID, "Arrow: no schema, or it was released");
    if (type->item && s->n_children == 1 && s->children)
        item = s->children[0];
    if (s->dictionary || (item && item->dictionary))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Arrow: a column with a dictionary");
    if (!format_fits(type, format, &in->large) ||
        (type->item && (!item || !item->release || !item->format ||
                        !zr_streq(item->format, type->item))))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "Arrow: the column has format \"%.16s\", must be \"%s\" or \"%s\"%s%s",
            format, type->format[0], type->format[1], type->item ? " of " : "",
            type->item ? type->item : "");
    return ZARR_OK;
}

/* What is left of the addresses behind a pointer. Arrow does not tell how long a buffer
 * is, but none goes round the end of memory. */
static uint64_t space_behind(const void *p)
{
    return ZR_MIN((uint64_t)(UINTPTR_MAX - (uintptr_t)p), (uint64_t)PTRDIFF_MAX);
}

static bool fits_behind(const void *p, uint64_t n, uint64_t item_bytes)
{
    uint64_t bytes = 0;

    return zr_mul(n, item_bytes, &bytes) && bytes <= space_behind(p);
}

/* Checks what a column and the items of lists have in common. item_bytes: of buffer 1,
 * which has `more` items more than the column. */
static bool is_column(const struct ArrowArray *a, int64_t n_buffers, uint64_t item_bytes,
                      uint64_t more)
{
    return a->release && a->n_buffers == n_buffers && a->buffers && a->length >= 0 &&
           a->offset >= 0 && a->length <= INT64_MAX - 1 - a->offset &&
           a->null_count >= -1 && a->null_count <= a->length &&
           (a->null_count <= 0 || a->buffers[0]) && (a->length == 0 || a->buffers[1]) &&
           fits_behind(a->buffers[1], (uint64_t)(a->offset + a->length) + more,
                       item_bytes) &&
           fits_behind(a->buffers[0], (uint64_t)(a->offset + a->length) / 8 + 1, 1);
}

static bool is_present(const uint8_t *valid, uint64_t i)
{
    return valid[i / 8] >> (i % 8) & 1;
}

static bool has_null(const struct ArrowArray *a)
{
    const uint8_t *valid = a->null_count == 0 ? NULL : a->buffers[0];
    bool any = a->null_count > 0;

    for (int64_t i = 0; valid && i < a->length && !any; i++)
        any = !is_present(valid, (uint64_t)(a->offset + i));
    return any;
}

/* The items of a list: none is null. */
static zarr_status check_items(struct arrow_in *in, const struct ArrowArray *a,
                               zarr_error *err)
{
    const struct ArrowArray *item =
        a->n_children == 1 && a->children ? a->children[0] : NULL;

    if (!item || !is_column(item, 2, in->item_bytes, 0))
        return zr_fail(err, ZARR_ERR_INVALID, "Arrow: a list without its items");
    if (item->dictionary)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Arrow: a column with a dictionary");
    if (has_null(item))
        return zr_fail(err, ZARR_ERR_INVALID, "Arrow: the items of lists cannot be null");
    in->n_items = (uint64_t)item->length;
    in->bytes = item->buffers[1];
    if (in->bytes)
        in->bytes += (uint64_t)item->offset * in->item_bytes;
    return ZARR_OK;
}

static zarr_status check_column(struct arrow_in *in, const struct arrow_type *type,
                                const struct ArrowArray *a, uint64_t n, zarr_error *err)
{
    if (!a || !a->release)
        return zr_fail(err, ZARR_ERR_INVALID, "Arrow: no column, or it was released");
    if (a->dictionary)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Arrow: a column with a dictionary");
    if (!is_column(a, type->item ? 2 : 3, in->large ? 8 : 4, 1))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "Arrow: %" PRId64 " buffers, length %" PRId64 ", offset %" PRId64
                       ", null_count %" PRId64 ": no column of this format",
                       a->n_buffers, a->length, a->offset, a->null_count);
    if ((uint64_t)a->length != n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the column has %" PRId64 " elements, the selection %" PRIu64,
                       a->length, n);
    in->first = (uint64_t)a->offset;
    in->valid = a->null_count == 0 ? NULL : a->buffers[0];
    in->offsets = a->buffers[1];
    in->item_bytes = type->item_bytes;
    if (type->item)
        return check_items(in, a, err);
    in->bytes = a->buffers[2];
    in->n_items = space_behind(in->bytes);
    return ZARR_OK;
}

static int64_t offset_at(const struct arrow_in *in, uint64_t i)
{
    int32_t small = 0;
    int64_t wide = 0;

    if (in->large) {
        memcpy(&wide, in->offsets + 8 * i, sizeof wide);
        return wide;
    }
    memcpy(&small, in->offsets + 4 * i, sizeof small);
    return small;
}

/* Sets element i from the column. */
static zarr_status set_element(struct zr_vlen_call *c, const struct arrow_in *in,
                               uint64_t i, zarr_error *err)
{
    const uint64_t at = in->first + i;
    const bool present = !in->valid || is_present(in->valid, at);
    uint8_t *p = c->elements + (size_t)i * c->item_bytes;
    const int64_t begin = offset_at(in, at), end = offset_at(in, at + 1);
    zarr_vlen item = {0};

    if (!present && !c->optional)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "Arrow: element %" PRIu64 " is null, but the array's elements are "
                       "not optional",
                       i);
    if (!present)
        return ZARR_OK; /* its bytes are zero already */
    if (begin < 0 || end < begin || (uint64_t)end > in->n_items ||
        !zr_mul((uint64_t)(end - begin), in->item_bytes, &item.bytes) ||
        (item.bytes && !in->bytes))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "Arrow: element %" PRIu64 " goes from %" PRId64 " to %" PRId64
                       "%s",
                       i, begin, end, in->bytes ? "" : " of no bytes");
    if (item.bytes)
        item.data = in->bytes + (uint64_t)begin * in->item_bytes;
    memcpy(p, &item, sizeof item);
    if (c->optional)
        p[sizeof item] = 1;
    return ZARR_OK;
}

zarr_status zarr_array_write_arrow(zarr_array *array, const zarr_selection *selection,
                                   const struct ArrowSchema *schema,
                                   const struct ArrowArray *column,
                                   const zarr_io_options *opts, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_vlen_call c = {.array = array};
    struct arrow_in in = {0};
    struct arrow_type type;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_vlen_call_open(&c, array, selection, err));
    ZR_TRY(find_arrow_type(&type, c.value, err));
    ZR_TRY(check_schema(&in, &type, schema, err));
    ZR_TRY(check_column(&in, &type, column, c.n, err));
    for (uint64_t i = 0; i < c.n; i++)
        ZR_TRY(set_element(&c, &in, i, err));
    st = zarr_array_write(array, selection, &c.tensor, opts, err);
out:
    zr_vlen_call_close(&c);
    return st;
}
