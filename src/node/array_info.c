/*
 * node/array_info.c - what an array is, without failing: plain getters. Texts
 * are made when first asked for and belong to the state; a NULL where a text is
 * promised means that there was no memory for it. What is returned is good
 * until the handle is changed or freed.
 * Thread class: as the handle.
 */
#include "node/node_int.h"

int32_t zarr_array_zarr_format(const zarr_array *array)
{
    return zr_array_state_peek(array)->meta.format;
}

const char *zarr_array_path(const zarr_array *array)
{
    return array->h.path;
}

int32_t zarr_array_ndim(const zarr_array *array)
{
    return zr_array_state_peek(array)->meta.ndim;
}

const uint64_t *zarr_array_shape(const zarr_array *array)
{
    return zr_array_state_peek(array)->meta.shape;
}

const uint64_t *zarr_array_write_shape(const zarr_array *array)
{
    const struct zr_array_state *s = zr_array_state_peek(array);

    return s->meta.grid.regular ? s->meta.grid.chunk_shape : NULL;
}

const uint64_t *zarr_array_chunk_shape(const zarr_array *array)
{
    const struct zr_array_state *s = zr_array_state_peek(array);

    return s->meta.grid.regular ? s->leaf_shape : NULL;
}

const zarr_dtype *zarr_array_dtype(const zarr_array *array)
{
    return zr_array_state_peek(array)->meta.dtype;
}

const void *zarr_array_fill_value(const zarr_array *array)
{
    const struct zr_array_state *s = zr_array_state_peek(array);

    return s->meta.fill_defined ? s->meta.fill : NULL;
}

const char *zarr_array_dimension_name(const zarr_array *array, int32_t dim)
{
    const struct zr_array_state *s = zr_array_state_peek(array);

    if (!s->meta.dimension_names || dim < 0 || dim >= s->meta.ndim)
        return NULL;
    return s->meta.dimension_names[dim];
}

typedef zarr_status (*meta_writer)(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                   struct zr_json **out, zarr_error *err);

static const char *lazy_written(zr_lazy_text *slot, const struct zr_array_state *s,
                                meta_writer write, unsigned indent)
{
    const char *there = atomic_load(slot);
    struct zr_json *root = NULL;
    struct zr_json_doc doc;

    if (there)
        return there;
    zr_json_doc_init(&doc, s->alloc);
    if (write(&s->meta, &doc, &root, NULL) == ZARR_OK)
        there = zr_lazy_json(slot, root, indent, s->alloc);
    zr_json_doc_deinit(&doc);
    return there;
}

const char *zarr_array_metadata(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_peek(array);

    return lazy_written(&s->document, s, zr_array_meta_write, ZR_META_INDENT);
}

const char *zarr_array_attributes(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_peek(array);

    return zr_lazy_json(&s->attributes, s->meta.attributes, ZR_META_INDENT, s->alloc);
}

const char *zarr_array_codecs(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_peek(array);

    return lazy_written(&s->codecs, s, zr_array_meta_codecs, 0);
}

zarr_store *zarr_array_store(const zarr_array *array)
{
    return array->h.store;
}

zarr_store *zarr_array_chunk_store(const zarr_array *array)
{
    return array->chunk_store;
}
