/*
 * array/io/packed_state.c - an array whose chunks have several elements per byte, seen as
 * an array of opaque bytes: the same chunks, the same codecs apart from the one that
 * packs, and a last dimension that counts items of whole bytes. Requests of packed
 * tensors whose rows begin at an item go through it, so that everything the pipe can do
 * with bytes works for them: direct reads, parts of shards, memory of devices. Thread
 * class: plain functions; states are frozen.
 */
#include "array/io/io_int.h"

#include <stdio.h>
#include <string.h>

bool zr_packed_item(const zarr_dtype *dtype, uint32_t *per_item, uint32_t *item_bytes)
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
    zarr_status st = ZARR_OK;

    *fits = m->format == 3 && m->ndim > 0 && m->grid.regular && m->fill_defined &&
            zr_packed_item(m->dtype, &per_item, &item_bytes) &&
            m->grid.chunk_shape[m->ndim - 1] % per_item == 0;
    if (!*fits)
        return ZARR_OK;
    ZR_TRY(zr_array_meta_codecs(m, doc, &codecs, err));
    *fits = rewrite_codecs(doc, codecs, m->chain, m->dtype, per_item);
    if (!*fits)
        goto out;
    ZR_TRY(zr_array_meta_grid(m, doc, &grid, err));
    *fits = divide_last(
        doc, mutable_member(mutable_member(grid, "configuration"), "chunk_shape"),
        per_item);
    if (!*fits)
        goto out;
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
        st = zr_fail_memory(err, sizeof *root);
out:
    return st;
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

zarr_status zr_array_packed_state(struct zr_array_state **out, const zarr_array *a,
                                  struct zr_array_state *s, zarr_error *err)
{
    struct zr_array_state *made = atomic_load(&s->packed), *now = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!made) {
        ZR_TRY(packed_make(&made, a, s, err));
        if (!made)
            made = s;
        if (!atomic_compare_exchange_strong(&s->packed, &now, made)) {
            if (made != s)
                zr_array_state_free(made);
            made = now; /* another thread was first */
        }
    }
    *out = made == s ? NULL : made;
out:
    return st;
}
