/*
 * dtype/order.c - byte order in storage. A type has no byte order of its own. In a v2
 * file each field of a struct can have a different one. This file reads, writes and
 * applies these orders. Thread class: plain functions.
 * Recursion: through nested structs, ZR_STRUCT_DEPTH_MAX deep.
 */
#include "struct_int.h"

#include <string.h>

/* ---- carrying it out --------------------------------------------------------- */

enum {
    ORDER_BLOCK = 32 * 1024 /* each field walks it once: it should fit the cache */
};

struct swap_walk {
    const char *leaf; /* order of the next field; NULL: one order for all */
    bool all;         /* one order: whether fields are swapped */
    char swapped;     /* the letter of the order that is not this machine's */
};

/* Swaps n values that are `stride` bytes apart. */
static void swap_column(uint8_t *at, uint64_t n, uint64_t stride, uint64_t units,
                        uint32_t unit)
{
    if (units * unit == stride) {
        zr_byteswap(at, at, (size_t)(n * units), unit);
        return;
    }
    for (uint64_t i = 0; i < n; i++, at += stride)
        zr_byteswap(at, at, (size_t)units, unit);
}

static void swap_fields(struct swap_walk *w, const struct zr_struct *s, uint8_t *at,
                        uint64_t n, uint64_t stride);

/* Swaps a subarray of structs, which are below->bytes apart in each of n places. */
static void swap_nested(struct swap_walk *w, const struct zr_struct *below,
                        const struct zr_field *f, uint8_t *at, uint64_t n,
                        uint64_t stride)
{
    const char *leaf = w->leaf;

    if (f->n_items == 1 || f->n_items * below->bytes == stride) {
        swap_fields(w, below, at, n * f->n_items,
                    f->n_items == 1 ? stride : below->bytes);
        return;
    }
    for (uint64_t i = 0; i < n; i++, at += stride) {
        w->leaf = leaf;
        swap_fields(w, below, at, f->n_items, below->bytes);
    }
}

static void swap_fields(struct swap_walk *w, const struct zr_struct *s, uint8_t *at,
                        uint64_t n, uint64_t stride)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct zr_field *f = &s->field[i];
        const struct zr_struct *below = zr_struct_from_dtype(f->dtype);
        const uint32_t unit = f->dtype->info.swap_bytes;

        if (below) {
            swap_nested(w, below, f, at + f->offset, n, stride);
        } else if (unit > 1) {
            const bool swapped = w->leaf ? *w->leaf++ == w->swapped : w->all;

            if (swapped)
                swap_column(at + f->offset, n, stride,
                            f->n_items * (f->dtype->info.item_bytes / unit), unit);
        }
    }
}

static char swapped_letter(void)
{
    return ZR_HOST_IS_LITTLE ? '>' : '<';
}

/* NATIVE means "not given": a type of one byte, or an old struct, which is
 * little-endian. */
static bool order_is_swapped(uint32_t order)
{
    return (order == ZARR_ORDER_BIG) == ZR_HOST_IS_LITTLE;
}

void zr_struct_swap(const struct zr_struct *s, const struct zr_order *order, void *data,
                    uint64_t n)
{
    const uint64_t block = ZR_MAX(ORDER_BLOCK / s->bytes, UINT64_C(1));
    const bool mixed = order->order == ZR_ORDER_MIXED;

    for (uint64_t i = 0; i < n; i += block) {
        struct swap_walk w = {.leaf = mixed ? order->leaves : NULL,
                              .all = !mixed && order_is_swapped(order->order),
                              .swapped = swapped_letter()};

        if (mixed || w.all)
            swap_fields(&w, s, (uint8_t *)data + i * s->bytes, ZR_MIN(block, n - i),
                        s->bytes);
    }
}

bool zr_dtype_has_order(const zarr_dtype *dtype)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);

    return s ? s->n_orders > 0 : dtype->info.swap_bytes > 1;
}

bool zr_dtype_leaves_fit(const zarr_dtype *dtype, const char *leaves)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);

    return s && leaves && strlen(leaves) == s->n_orders;
}

bool zr_dtype_is_swapped(const zarr_dtype *dtype, const struct zr_order *order)
{
    if (!zr_dtype_has_order(dtype))
        return false;
    if (order->order == ZR_ORDER_MIXED)
        return strchr(order->leaves, swapped_letter()) != NULL;
    if (order->order == ZR_ORDER_NATIVE && !zr_struct_from_dtype(dtype))
        return false;
    return order_is_swapped(order->order);
}

void zr_dtype_swap(const zarr_dtype *dtype, const struct zr_order *order, void *data,
                   uint64_t n)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    const uint32_t unit = dtype->info.swap_bytes;

    if (!zr_dtype_is_swapped(dtype, order))
        return;
    if (s)
        zr_struct_swap(s, order, data, n);
    else
        zr_byteswap(data, data, (size_t)(n * (dtype->info.item_bytes / unit)), unit);
}

/* ---- v2 lists ------------------------------------------------------------------ */

zarr_status zr_v2_no_order(const char *text, zarr_error *err)
{
    return zr_fail(
        err, ZARR_ERR_INVALID,
        "data type \"%.64s\" needs a byte order: \"<\" (little) or \">\" (big) in "
        "front",
        text);
}

/* Called for the text of each field that has a byte order. The list was parsed as this
 * struct. */
typedef zarr_status (*leaf_fn)(void *arg, const zarr_dtype *dtype, struct zr_json *text,
                               zarr_error *err);

static zarr_status each_leaf(const struct zr_struct *s, struct zr_json *list, leaf_fn fn,
                             void *arg, zarr_error *err)
{
    struct zr_json *item =
        zr_json_is(list, ZR_JSON_ARRAY) ? list->u.children.first : NULL;

    for (size_t i = 0; i < s->n; i++, item = item->next) {
        const struct zr_field *f = &s->field[i];
        const struct zr_struct *below = zr_struct_from_dtype(f->dtype);
        struct zr_json *type = zr_json_at(item, 1);

        if (!item || !type)
            return zr_internal(err);
        if (below)
            ZR_CHECK(each_leaf(below, type, fn, arg, err));
        else if (f->dtype->info.swap_bytes > 1)
            ZR_CHECK(fn(arg, f->dtype, type, err));
    }
    return ZARR_OK;
}

struct leaf_orders {
    bool little, big;
    struct zr_str *leaves;
};

/* In v2, "bfloat16" and the like are names without a byte order and mean
 * little-endian. */
static bool is_plain(const zarr_dtype *dtype)
{
    return (dtype->entry->vt.flags & ZARR_DTYPE_V2_PLAIN) != 0;
}

static zarr_status leaf_order(void *arg, const zarr_dtype *dtype, struct zr_json *text,
                              zarr_error *err)
{
    struct leaf_orders *o = arg;
    const char *s = zr_json_string(text);
    char letter = s ? *s : '\0';

    if (letter != '>' && is_plain(dtype))
        letter = '<';
    if (letter != '<' && letter != '>')
        return zr_v2_no_order(s ? s : "", err);
    o->little |= letter == '<';
    o->big |= letter == '>';
    if (o->leaves)
        zr_str_putc(o->leaves, letter);
    return ZARR_OK;
}

zarr_status zr_dtype_v2_order(const zarr_dtype *dtype, const struct zr_json *v,
                              uint32_t *byte_order, struct zr_str *leaves,
                              zarr_error *err)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    struct leaf_orders o = {.leaves = leaves};

    if (!s)
        return zr_internal(err);
    ZR_CHECK(each_leaf(s, (struct zr_json *)(uintptr_t)v, leaf_order, &o, err));
    *byte_order = o.little && o.big ? (uint32_t)ZR_ORDER_MIXED
                  : o.big           ? (uint32_t)ZARR_ORDER_BIG
                  : o.little        ? (uint32_t)ZARR_ORDER_LITTLE
                                    : (uint32_t)ZR_ORDER_NATIVE;
    if (leaves)
        return zr_str_status(leaves, err);
    return ZARR_OK;
}

struct leaf_writer {
    struct zr_json_doc *doc;
    const struct zr_order *order;
    const char *leaf;
    bool refused; /* a field has no text in that order */
};

static zarr_status write_leaf(void *arg, const zarr_dtype *dtype, struct zr_json *text,
                              zarr_error *err)
{
    struct leaf_writer *w = arg;
    const char letter = w->leaf                             ? *w->leaf++
                        : w->order->order == ZARR_ORDER_BIG ? '>'
                                                            : '<';
    char *copy = NULL;

    ZR_UNUSED(err);
    if (is_plain(dtype)) {
        w->refused |= letter == '>';
        return ZARR_OK;
    }
    copy = zr_arena_strndup(&w->doc->arena, text->u.text.ptr, text->u.text.bytes);
    w->doc->failed |= !copy;
    if (copy) {
        copy[0] = letter;
        text->u.text.ptr = copy;
    }
    return ZARR_OK;
}

static struct zr_json *write_struct_v2(const zarr_dtype *dtype,
                                       const struct zr_order *order,
                                       struct zr_json_doc *doc)
{
    struct leaf_writer w = {doc, order,
                            order->order == ZR_ORDER_MIXED ? order->leaves : NULL, false};
    struct zr_json *out = NULL;
    struct zr_json_doc text;

    zr_json_doc_init(&text, doc->arena.alloc);
    if (zr_json_parse(&text, dtype->v2, strlen(dtype->v2), NULL, NULL) == ZARR_OK)
        out = zr_json_copy(doc, text.root);
    doc->failed |= !out;
    if (out &&
        each_leaf(zr_struct_from_dtype(dtype), out, write_leaf, &w, NULL) != ZARR_OK)
        doc->failed = true;
    zr_json_doc_deinit(&text);
    return w.refused ? NULL : out;
}

struct zr_json *zr_dtype_write_v2(const zarr_dtype *dtype, const struct zr_order *order,
                                  struct zr_json_doc *doc)
{
    struct zr_json *out;

    if (!dtype->v2 || (order->order == ZARR_ORDER_BIG && dtype->info.swap_bytes > 1 &&
                       (dtype->entry->vt.flags & ZARR_DTYPE_V2_PLAIN)))
        return NULL; /* v2 has bfloat16 and the like in little-endian only */
    if (zr_struct_from_dtype(dtype))
        return write_struct_v2(dtype, order, doc);
    out = zr_json_new_text(doc, dtype->v2);
    if (out && order->order == ZARR_ORDER_BIG && dtype->info.swap_bytes > 1) {
        struct leaf_writer w = {doc, order, NULL, false};

        (void)write_leaf(&w, dtype, out, NULL);
    }
    return zr_json_is_ok(doc) ? out : NULL;
}

/* ---- fill values ----------------------------------------------------------------- */

zarr_status zr_dtype_fill_parse_v2(const zarr_dtype *dtype, const struct zr_json *v,
                                   const struct zr_order *order, void *element,
                                   zarr_error *err)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    size_t n = 0;

    if (s && zr_value_base64(v, element, (size_t)s->bytes, &n) && n == s->bytes) {
        zr_dtype_swap(dtype, order, element, 1);
        return ZARR_OK;
    }
    return zr_dtype_fill_parse(dtype, v, 2, element, err);
}

zarr_status zr_dtype_fill_write_v2(const zarr_dtype *dtype, const void *element,
                                   const struct zr_order *order, struct zr_json_doc *doc,
                                   struct zr_json **out, zarr_error *err)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    zarr_status st = ZARR_OK;
    uint8_t *stored = NULL;
    struct zr_str text;

    if (!s)
        return zr_dtype_fill_write(dtype, element, 2, doc, out, err);
    zr_str_init(&text, dtype->alloc);
    stored = zr_malloc(dtype->alloc, (size_t)s->bytes);
    if (!stored)
        ZR_FAIL_MEMORY(err, s->bytes);
    memcpy(stored, element, (size_t)s->bytes);
    zr_dtype_swap(dtype, order, stored, 1);
    zr_base64_encode(&text, stored, (size_t)s->bytes);
    ZR_TRY(zr_str_status(&text, err));
    *out = zr_json_new_string(doc, zr_str_text(&text), text.bytes);
    if (!*out)
        st = zr_fail_memory(err, text.bytes);
out:
    zr_free(dtype->alloc, stored);
    zr_str_deinit(&text);
    return st;
}
