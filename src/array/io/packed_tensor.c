/*
 * array/io/packed_tensor.c - reads into and writes from tensors with several elements per
 * byte (ZARR_TENSOR_PACKED). If the chunks are packed alike and the request is a box of
 * whole bytes, the request is one of bytes (packed_state()). Otherwise the elements pass
 * through a block with one byte each, because the pipe handles only whole bytes and two
 * chunks may share one; and the packed bytes through a block in host memory. Thread
 * class: plain functions.
 */
#include "array/io/io_int.h"

#include <stdio.h>
#include <string.h>

/* How many elements share an item, the smallest number of whole bytes that they fill.
 * False: elements of this type cannot be packed. */
static bool packed_item(const zarr_dtype *dtype, uint32_t *per_item, uint32_t *item_bytes)
{
    const uint32_t width = zr_dtype_padded_bits(dtype);

    if (width < 2 || zarr_dtype_components(dtype) != 1)
        return false;
    *item_bytes = 8 % width == 0 ? 1 : width / 2; /* 2, 4 and 6 bits */
    *per_item = *item_bytes * 8 / width;
    return true;
}

/* Divides the last number of a list; false if that leaves a rest. */
static bool divide_last(struct zr_json_doc *doc, struct zr_json *list, uint32_t by)
{
    struct zr_json *last = zr_json_is(list, ZR_JSON_ARRAY) ? list->u.children.last : NULL;
    const struct zr_json *made = NULL;
    uint64_t n = 0;

    if (!last || !zr_json_u64(last, &n) || n % by != 0)
        return false;
    made = zr_json_new_u64(doc, n / by);
    if (made)
        last->u = made->u;
    return true;
}

static struct zr_json *mutable_member(struct zr_json *object, const char *key)
{
    return (struct zr_json *)(uintptr_t)zr_json_get(object, key);
}

/* Rewrites the codecs of a chain and of the shards in it. False: they do not pack. */
static bool rewrite_codecs(struct zr_json_doc *doc, struct zr_json *list,
                           const struct zr_chain *chain, const zarr_dtype *dtype,
                           uint32_t per_item)
{
    for (;;) {
        struct zr_json *first =
            zr_json_is(list, ZR_JSON_ARRAY) ? list->u.children.first : NULL;
        struct zr_json *config = first ? mutable_member(first, "configuration") : NULL;
        const struct zr_shard_spec *shard =
            chain->n > 0 && chain->a2b == 0 ? chain->codec[0].structure.shard : NULL;

        if (!first || !zr_json_is(first, ZR_JSON_OBJECT))
            return false;
        if (!shard) {
            const struct zr_json *made = NULL;

            if (!zr_chain_packs(chain, dtype))
                return false;
            made = zr_json_new(doc, ZR_JSON_OBJECT);
            zr_json_set(doc, (struct zr_json *)(uintptr_t)made, "name",
                        zr_json_new_text(doc, "bytes"));
            if (made)
                first->u = made->u;
            return true;
        }
        if (!config || !divide_last(doc, mutable_member(config, "chunk_shape"), per_item))
            return false;
        list = mutable_member(config, "codecs");
        chain = shard->inner;
    }
}

/* The fill value of an item: a list of bytes, as v3 spells it. */
static struct zr_json *item_fill(struct zr_json_doc *doc, const struct zr_array_meta *m,
                                 uint32_t per_item, uint32_t item_bytes)
{
    struct zr_json *list = zr_json_new(doc, ZR_JSON_ARRAY);
    uint8_t elements[8], bytes[8] = {0};

    memset(elements, m->fill[0], sizeof elements);
    zr_packed_put(m->dtype, bytes, elements, per_item);
    for (uint32_t i = 0; i < item_bytes; i++)
        zr_json_append(doc, list, zr_json_new_u64(doc, bytes[i]));
    return list;
}

/* Makes the document. *fits: chunks are packed. */
static zarr_status packed_document(struct zr_parsed *parsed,
                                   const struct zr_array_meta *m, bool *fits,
                                   zarr_error *err)
{
    struct zr_json_doc *doc = &parsed->json;
    struct zr_json *root = zr_json_copy(doc, m->document), *codecs = NULL, *shape = NULL;
    struct zr_json *grid = NULL;
    uint32_t per_item = 0, item_bytes = 0;
    char type[16];

    *fits = m->format == 3 && m->ndim > 0 && m->grid.regular && m->fill_defined &&
            packed_item(m->dtype, &per_item, &item_bytes) &&
            m->grid.chunk_shape[m->ndim - 1] % per_item == 0;
    if (!*fits)
        return ZARR_OK;
    ZR_CHECK(zr_array_meta_codecs(m, doc, &codecs, err));
    *fits = rewrite_codecs(doc, codecs, m->chain, m->dtype, per_item);
    if (!*fits)
        return ZARR_OK;
    ZR_CHECK(zr_array_meta_grid(m, doc, &grid, err));
    *fits = divide_last(
        doc, mutable_member(mutable_member(grid, "configuration"), "chunk_shape"),
        per_item);
    if (!*fits)
        return ZARR_OK;
    shape = zr_json_new(doc, ZR_JSON_ARRAY);
    for (int32_t d = 0; d < m->ndim; d++)
        zr_json_append(doc, shape,
                       zr_json_new_u64(doc, d == m->ndim - 1
                                                ? zr_ceil_div_u64(m->shape[d], per_item)
                                                : m->shape[d]));
    (void)snprintf(type, sizeof type, "r%" PRIu32, 8 * item_bytes);
    zr_json_set(doc, root, "shape", shape);
    zr_json_set(doc, root, "data_type", zr_json_new_text(doc, type));
    zr_json_set(doc, root, "fill_value", item_fill(doc, m, per_item, item_bytes));
    zr_json_set(doc, root, "chunk_grid", grid);
    zr_json_set(doc, root, "codecs", codecs);
    doc->root = root;
    if (!root || !zr_json_is_ok(doc))
        return zr_fail_memory(err, sizeof *root);
    return ZARR_OK;
}

static zarr_status packed_make(struct zr_array_state **out, const zarr_array *a,
                               const struct zr_array_state *s, zarr_error *err)
{
    struct zr_parsed *parsed = NULL;
    struct zr_array_source src;
    bool fits = false;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_parsed_new(&parsed, s->alloc, err));
    ZR_TRY(packed_document(parsed, &s->meta, &fits, err));
    if (!fits)
        goto out;
    src = zr_array_source_make(3, parsed, NULL, NULL);
    st = zr_array_state_new(out, a->h.ctx, &src, err);
    if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
        st = ZARR_OK; /* elements with a byte each work always */
out:
    zr_parsed_free(parsed);
    return st;
}

/* Gives the state that has the same chunks as bytes: items of `item_bytes` opaque bytes
 * that hold `per_item` elements each, in the last dimension, and the same codecs apart
 * from the one that packs. So everything the pipe can do with bytes works: direct reads,
 * parts of shards, memory of devices. Borrowed from s. *out NULL: the chunks are not
 * packed, or rows of a chunk do not begin at an item. */
static zarr_status packed_state(struct zr_array_state **out, const zarr_array *a,
                                struct zr_array_state *s, zarr_error *err)
{
    struct zr_array_state *made = atomic_load(&s->packed), *now = NULL;

    *out = NULL;
    if (!made) {
        ZR_CHECK(packed_make(&made, a, s, err));
        if (!made)
            made = s;
        if (!atomic_compare_exchange_strong(&s->packed, &now, made)) {
            if (made != s)
                zr_array_state_free(made);
            made = now; /* another thread was first */
        }
    }
    *out = made == s ? NULL : made;
    return ZARR_OK;
}

void zr_packed_free(struct zr_packed *p)
{
    const zarr_allocator *alloc = p->call->array->h.ctx->alloc;

    zarr_selection_free(p->box);
    zr_free(alloc, p->rows);
    zr_free(alloc, p->elements);
    zr_free(alloc, p);
}

/* *n: number of elements. Checks that their packed bytes fit after data + byte_offset. */
static zarr_status packed_check(const zarr_tensor *t, const zarr_dtype *dtype, size_t *n,
                                zarr_error *err)
{
    const uint32_t width = zr_dtype_padded_bits(dtype);
    uint64_t bits = 1;

    if (zr_flags_check(t->flags, ZARR_TENSOR_PACKED, "tensor", err) != ZARR_OK)
        return ZARR_ERR_UNSUPPORTED;
    if (width < 2 || zarr_dtype_components(dtype) != 1)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: elements of %s cannot be packed: only those of 2, 4 or 6 "
                       "bits can",
                       zarr_dtype_name(dtype) ? zarr_dtype_name(dtype)
                                              : zarr_dtype_v2(dtype));
    if (t->ndim < 0 || t->ndim > ZARR_MAX_RANK || (t->ndim > 0 && !t->shape))
        return zr_fail(err, ZARR_ERR_INVALID, "tensor: no shape, or too many dimensions");
    if (t->strides && t->ndim > 0 && t->strides[t->ndim - 1] != 1)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "tensor: the last of the strides is %" PRId64
                       ", but packed elements are neighbours: it must be 1",
                       t->strides[t->ndim - 1]);
    for (int32_t i = 0; i < t->ndim; i++)
        if (!zr_mul(bits, t->shape[i], &bits))
            return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    if (!zr_fits(bits, n) || !zr_mul(bits, width, &bits))
        return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    if (!t->strides && t->data_bytes &&
        (t->byte_offset > t->data_bytes ||
         zr_ceil_div_u64(bits, 8) > t->data_bytes - t->byte_offset))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tensor: %" PRIu64 " bytes after byte_offset are too few for %zu "
                       "elements of %" PRIu32 " bits",
                       t->byte_offset > t->data_bytes ? 0
                                                      : t->data_bytes - t->byte_offset,
                       *n, width);
    return ZARR_OK;
}

/* ---- a request of bytes ------------------------------------------------------------ */

/* Makes the box of items that a box of elements is. False: it does not begin and end at
 * an item, or it is no box. */
static zarr_status items_box(bool *fits, zarr_selection **out, const zarr_selection *sel,
                             const struct zr_array_state *bytes,
                             const struct zr_array_state *s, uint32_t per_item,
                             zarr_error *err)
{
    const int32_t last = s->meta.ndim - 1;
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];

    *fits = sel ? zarr_selection_ndim(sel) == s->meta.ndim &&
                      zr_selection_fits(sel, s->meta.ndim, s->meta.shape) &&
                      zr_selection_is_box(sel, start, count) &&
                      start[last] % per_item == 0 && count[last] % per_item == 0
                : s->meta.shape[last] % per_item == 0;
    if (!*fits || !sel)
        return ZARR_OK;
    start[last] /= per_item;
    count[last] /= per_item;
    return zarr_selection_box(out, s->meta.ndim, bytes->meta.shape, start, count, err);
}

/* Sets p->bytes if the request can be one of bytes. A shard that is written in parts has
 * chunks of elements. */
static zarr_status packed_as_bytes(struct zr_packed *p, const zarr_selection *sel,
                                   const zarr_tensor *t, zarr_error *err)
{
    struct zr_array_state *s = p->call->state, *bytes = NULL;
    const int32_t last = t->ndim - 1;
    uint32_t per_item = 0, item_bytes = 0;
    bool fits = false;

    if (t->ndim != s->meta.ndim || t->ndim == 0 || p->call->opts.field ||
        p->call->session || (t->dtype && !zarr_dtype_equal(t->dtype, s->meta.dtype)) ||
        !packed_item(s->meta.dtype, &per_item, &item_bytes) ||
        t->shape[last] % per_item != 0)
        return ZARR_OK;
    ZR_CHECK(packed_state(&bytes, p->call->array, s, err));
    if (bytes)
        ZR_CHECK(items_box(&fits, &p->box, sel, bytes, s, per_item, err));
    if (!fits)
        return ZARR_OK;
    p->bytes = bytes;
    p->per_item = per_item;
    p->tensor = *t;
    p->tensor.flags = 0;
    p->tensor.dtype = NULL;
    p->tensor.byte_order = ZR_ORDER_NATIVE;
    memcpy(p->shape, t->shape, (size_t)t->ndim * sizeof *p->shape);
    p->shape[last] /= per_item;
    p->tensor.shape = p->shape;
    if (t->strides) {
        memcpy(p->strides, t->strides, (size_t)t->ndim * sizeof *p->strides);
        p->strides[last] = item_bytes;
        p->tensor.strides = p->strides;
    }
    return ZARR_OK;
}

/* ---- elements with a byte each ---------------------------------------------- */

/* Makes the view of the caller's bytes: all of them, or rows that begin at a byte. */
static zarr_status rows_view(struct zr_packed *p, const zarr_tensor *t, size_t n,
                             bool write, zarr_error *err)
{
    const uint32_t width = zr_dtype_padded_bits(p->call->state->meta.dtype);
    const bool rows = t->strides && t->ndim > 0;
    struct zr_view_want want = {.ndim = rows ? t->ndim : 1,
                                .item_bytes = 1,
                                .swap_unit = 1,
                                .role = write ? ZR_VIEW_SOURCE : ZR_VIEW_DESTINATION};
    uint64_t shape[ZARR_MAX_RANK], bits = 0;
    zarr_tensor bytes = *t;

    p->row_elements = rows ? (size_t)t->shape[t->ndim - 1] : n;
    p->n_rows = p->row_elements ? n / p->row_elements : 0;
    if (!zr_mul(p->row_elements, width, &bits))
        return zr_fail(err, ZARR_ERR_LIMIT, "tensor: too many elements");
    p->row_bytes = (size_t)zr_ceil_div_u64(bits, 8);
    for (int32_t d = 0; d < want.ndim; d++)
        shape[d] = d < want.ndim - 1 ? t->shape[d] : p->row_bytes;
    want.shape = shape;
    bytes.ndim = want.ndim;
    bytes.shape = shape;
    bytes.strides = rows ? t->strides : NULL;
    bytes.dtype = NULL;
    bytes.flags = 0;
    bytes.byte_order = ZR_ORDER_NATIVE;
    return zr_view_from_tensor(&p->view, &p->call->array->h.ctx->memory, &bytes, &want,
                               err);
}

/* Copies the packed bytes between the caller's memory and p->rows. */
static zarr_status copy_rows(struct zr_packed *p, bool write, zarr_error *err)
{
    const size_t bytes = p->n_rows * p->row_bytes;
    const zarr_memory run = zr_mem_of_host(p->rows, bytes);
    zarr_box box = {.struct_size = sizeof box, .ndim = p->view.ndim, .item_bytes = 1};
    zarr_box_side *own = write ? &box.dst : &box.src;
    zarr_box_side *other = write ? &box.src : &box.dst;
    int64_t stride = 1;

    if (bytes == 0)
        return ZARR_OK;
    memcpy(box.shape, p->view.shape, sizeof box.shape);
    zr_box_side_init(own, &run, 0);
    for (int32_t d = box.ndim; d-- > 0;) {
        own->stride[d] = stride;
        stride *= (int64_t)box.shape[d];
    }
    other->mem = p->view.base;
    memcpy(other->stride, p->view.stride, sizeof other->stride);
    return zr_box_copy(&p->call->array->h.ctx->memory, &box, NULL, NULL, err);
}

zarr_status zr_packed_finish(void *packed, zarr_error *err)
{
    struct zr_packed *p = packed;

    for (size_t i = 0; i < p->n_rows; i++)
        zr_packed_put(p->call->state->meta.dtype, p->rows + i * p->row_bytes,
                      p->elements + i * p->row_elements, p->row_elements);
    return copy_rows(p, false, err);
}

static zarr_status packed_as_elements(struct zr_packed *p, const zarr_tensor *t, size_t n,
                                      bool write, zarr_error *err)
{
    const zarr_allocator *alloc = p->call->array->h.ctx->alloc;

    ZR_CHECK(rows_view(p, t, n, write, err));
    p->elements = zr_malloc(alloc, ZR_MAX(n, 1));
    p->rows = zr_malloc(alloc, ZR_MAX(p->n_rows * p->row_bytes, 1));
    if (!p->elements || !p->rows)
        return zr_fail_memory(err, n);
    if (write) {
        ZR_CHECK(copy_rows(p, true, err));
        for (size_t i = 0; i < p->n_rows; i++)
            zr_packed_get(p->call->state->meta.dtype, p->elements + i * p->row_elements,
                          p->rows + i * p->row_bytes, p->row_elements);
    }
    memcpy(p->shape, t->shape, (size_t)t->ndim * sizeof *p->shape);
    p->tensor = (zarr_tensor){.struct_size = sizeof p->tensor,
                              .device_type = ZARR_DEVICE_CPU,
                              .ndim = t->ndim,
                              .data = p->elements,
                              .dtype = t->dtype,
                              .shape = p->shape,
                              .data_bytes = n};
    return ZARR_OK;
}

zarr_status zr_packed_begin(struct zr_io_call *c, const zarr_selection *sel,
                            const zarr_tensor *tensor, bool write, zarr_error *err)
{
    const zarr_allocator *alloc = c->array->h.ctx->alloc;
    struct zr_packed *p = zr_calloc(alloc, 1, sizeof *p);
    zarr_tensor t;
    size_t n = 0;

    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->call = c;
    c->packed = p; /* the call frees it */
    ZR_CHECK(zr_io_tensor(&t, tensor, c->array, err));
    ZR_CHECK(packed_check(&t, c->state->meta.dtype, &n, err));
    ZR_CHECK(packed_as_bytes(p, sel, &t, err));
    if (!p->bytes)
        return packed_as_elements(p, &t, n, write, err);
    return ZARR_OK;
}
