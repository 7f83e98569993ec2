/*
 * array/handle/info.c - plain getters of an array, which cannot fail. Shapes, names and
 * fill value are in one block (struct zr_array_facts) made with each state; once lent it
 * belongs to the handle. Texts are made when first asked for; NULL where a text is
 * promised means that memory was out.
 * Thread class: as the handle.
 */
#include "array/array_int.h"

#include <string.h>

/* ---- facts -------------------------------------------------------------- */

static size_t name_bytes(const struct zr_array_meta *m)
{
    size_t n = 0;

    for (int32_t d = 0; m->dimension_names && d < m->ndim; d++)
        n += m->dimension_names[d] ? strlen(m->dimension_names[d]) + 1 : 0;
    return n;
}

static void copy_names(struct zr_array_facts *f, const struct zr_array_meta *m,
                       char *text)
{
    for (int32_t d = 0; d < m->ndim; d++) {
        const char *name = m->dimension_names[d];
        const size_t n = name ? strlen(name) + 1 : 0;

        f->name[d] = NULL;
        if (!name)
            continue;
        f->name[d] = memcpy(text, name, n);
        text += n;
    }
}

/* Number of bytes that a fill value of variable length points to. */
static size_t fill_tail_bytes(const struct zr_array_meta *m)
{
    zarr_vlen item = {0};

    if (zarr_dtype_variable(m->dtype))
        memcpy(&item, m->fill, sizeof item);
    return (size_t)item.bytes;
}

/* Makes one block with the struct, three shapes, the pointers to names, the fill value,
 * the names, and the bytes that the fill value points to. */
zarr_status zr_array_facts_make(struct zr_array_facts **out,
                                const struct zr_array_state *s, zarr_error *err)
{
    const struct zr_array_meta *m = &s->meta;
    const size_t rank = (size_t)m->ndim, shape_bytes = rank * sizeof *m->shape;
    const size_t fill_bytes = (size_t)zarr_dtype_item_bytes(m->dtype);
    const size_t tail_bytes = fill_tail_bytes(m), names = name_bytes(m);
    const size_t bytes = sizeof(struct zr_array_facts) + 3 * shape_bytes +
                         rank * sizeof(char *) + fill_bytes + names + tail_bytes;
    struct zr_array_facts *f = zr_calloc(s->alloc, 1, bytes);
    uint64_t *numbers = NULL;
    char *rest = NULL;

    *out = f;
    if (!f)
        return zr_fail_memory(err, bytes);
    f->ndim = m->ndim;
    numbers = (uint64_t *)(f + 1);
    f->shape = memcpy(numbers, m->shape, shape_bytes);
    if (m->grid.regular)
        f->block_shape = memcpy(numbers + rank, m->grid.chunk_shape, shape_bytes);
    if (m->grid.regular || s->sharded)
        f->leaf_shape = memcpy(numbers + 2 * rank, s->leaf_shape, shape_bytes);
    rest = (char *)(numbers + 3 * rank) + rank * sizeof(char *);
    f->fill = memcpy(rest, m->fill, fill_bytes);
    f->fill_defined = m->fill_defined;
    f->has_missing = zr_missing_element(m, f->missing);
    if (tail_bytes) {
        zarr_vlen item;

        memcpy(&item, f->fill, sizeof item);
        item.data = memcpy(rest + fill_bytes + names, item.data, tail_bytes);
        memcpy(f->fill, &item, sizeof item);
    }
    if (m->dimension_names) {
        f->name = (const char **)(numbers + 3 * rank);
        copy_names(f, m, rest + fill_bytes);
    }
    return ZARR_OK;
}

/* Returns what the array is at this moment. Valid as long as the handle. */
static const struct zr_array_facts *lend_facts(const zarr_array *array)
{
    zarr_array *a = (zarr_array *)(uintptr_t)array; /* only the lock is written */
    struct zr_array_facts *f;

    zr_mutex_lock(&a->h.mutex);
    f = a->state->facts;
    f->lent = true;
    zr_mutex_unlock(&a->h.mutex);
    return f;
}

const uint64_t *zarr_array_shape(const zarr_array *array)
{
    return array ? lend_facts(array)->shape : NULL;
}

const uint64_t *zarr_array_block_shape(const zarr_array *array)
{
    return array ? lend_facts(array)->block_shape : NULL;
}

const uint64_t *zarr_array_chunk_shape(const zarr_array *array)
{
    return array ? lend_facts(array)->leaf_shape : NULL;
}

static void copy_shape(uint64_t *dst, const uint64_t *src, int32_t ndim)
{
    for (int32_t d = 0; dst && d < ndim; d++)
        dst[d] = src ? src[d] : 0;
}

void zarr_array_copy_shapes(const zarr_array *array, uint64_t *shape,
                            uint64_t *chunk_shape, uint64_t *block_shape)
{
    if (!array)
        return;
    zarr_array *a = (zarr_array *)(uintptr_t)array; /* only the lock is written */
    const struct zr_array_facts *f;
    int32_t ndim;

    zr_mutex_lock(&a->h.mutex);
    f = a->state->facts;
    ndim = a->state->meta.ndim;
    copy_shape(shape, f->shape, ndim);
    copy_shape(chunk_shape, f->leaf_shape, ndim);
    copy_shape(block_shape, f->block_shape, ndim);
    zr_mutex_unlock(&a->h.mutex);
}

const void *zarr_array_fill_value(const zarr_array *array)
{
    if (!array)
        return NULL;
    const struct zr_array_facts *f = lend_facts(array);

    return f->fill_defined ? f->fill : NULL;
}

const void *zarr_array_missing_value(const zarr_array *array)
{
    if (!array)
        return NULL;
    const struct zr_array_facts *f = lend_facts(array);

    return f->has_missing ? f->missing : NULL;
}

const void *zr_array_fill_element(const zarr_array *array)
{
    return lend_facts(array)->fill;
}

const char *zarr_array_dimension_name(const zarr_array *array, int32_t dim)
{
    if (!array)
        return NULL;
    const struct zr_array_facts *f = lend_facts(array);

    if (!f->name || dim < 0 || dim >= f->ndim)
        return NULL;
    return f->name[dim];
}

/* ---- plain values ------------------------------------------------------- */

int32_t zarr_array_zarr_format(const zarr_array *array)
{
    if (!array)
        return 0;
    struct zr_array_state *s = zr_array_state_get(array);
    const int32_t format = s->meta.format;

    zr_array_state_free(s);
    return format;
}

int32_t zarr_array_ndim(const zarr_array *array)
{
    if (!array)
        return 0;
    struct zr_array_state *s = zr_array_state_get(array);
    const int32_t ndim = s->meta.ndim;

    zr_array_state_free(s);
    return ndim;
}

const zarr_dtype *zarr_array_dtype(const zarr_array *array)
{
    if (!array)
        return NULL;
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_dtype *dtype = s->meta.dtype; /* lives as long as the context */

    zr_array_state_free(s);
    return dtype;
}

bool zr_array_has_one_index(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_get(array);
    const bool one = s->n_shard_levels == 1;

    zr_array_state_free(s);
    return one;
}

const struct zr_grid *zr_array_grid(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_get(array);
    const struct zr_grid *grid = &s->meta.grid; /* the handle keeps the state alive */

    zr_array_state_free(s);
    return grid;
}

const char *zarr_array_path(const zarr_array *array)
{
    return array ? array->h.path : NULL;
}

zarr_store *zarr_array_store(const zarr_array *array)
{
    return array ? array->h.store : NULL;
}

void zarr_array_memory(const zarr_array *array, int32_t *device_type, int32_t *device_id)
{
    if (!array)
        return;
    const bool host =
        array->device_by_default && zarr_dtype_variable(zarr_array_dtype(array));

    *device_type = host ? ZARR_DEVICE_CPU : array->device_type;
    *device_id = host ? 0 : array->device_id;
}

zarr_context *zarr_array_context(const zarr_array *array)
{
    return array ? array->h.ctx : NULL;
}

zarr_store *zarr_array_chunk_store(const zarr_array *array)
{
    return array ? array->chunk_store : NULL;
}

zarr_status zr_array_convert(struct zr_array_meta *out, const zarr_array *array,
                             int32_t format, zarr_error *err)
{
    const struct zr_meta_env env = zr_meta_env_make(array->h.ctx, true);
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = zr_array_meta_convert(out, &env, &s->meta, format, err);

    zr_array_state_free(s);
    return st;
}

zarr_status zr_array_missing_plan(struct zr_missing_change *out, const zarr_array *array,
                                  int32_t format, struct zr_json_doc *doc,
                                  zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = zr_missing_plan(out, &s->meta, format, doc, err);

    zr_array_state_free(s);
    return st;
}

zarr_status zr_array_missing_value(struct zr_json **out, bool *variable,
                                   const zarr_array *array, struct zr_json_doc *doc,
                                   zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = zr_missing_value(out, variable, &s->meta, doc, err);

    zr_array_state_free(s);
    return st;
}

/* ---- texts -------------------------------------------------------------- */

typedef zarr_status (*meta_writer)(const struct zr_array_meta *m, struct zr_json_doc *doc,
                                   struct zr_json **out, zarr_error *err);

static const char *written_text(struct zr_handle *h, const char **slot,
                                const struct zr_array_meta *m, meta_writer write,
                                unsigned indent)
{
    const char *there = zr_handle_text(h, slot);
    struct zr_json *root = NULL;
    struct zr_json_doc doc;

    if (there)
        return there;
    zr_json_doc_init(&doc, h->ctx->alloc);
    if (write(m, &doc, &root, NULL) == ZARR_OK)
        there = zr_handle_json(h, slot, root, indent);
    zr_json_doc_deinit(&doc);
    return there;
}

const char *zarr_array_metadata(const zarr_array *array)
{
    if (!array)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&array->h;
    struct zr_array_state *s = zr_array_state_get(array);
    const char *text =
        written_text(h, &s->document, &s->meta, zr_array_meta_write, ZR_META_INDENT);

    zr_array_state_free(s);
    return text;
}

const char *zarr_array_codecs(const zarr_array *array)
{
    if (!array)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&array->h;
    struct zr_array_state *s = zr_array_state_get(array);
    const char *text = written_text(h, &s->codecs, &s->meta, zr_array_meta_codecs, 0);

    zr_array_state_free(s);
    return text;
}

const char *zarr_array_chunk_grid(const zarr_array *array)
{
    if (!array)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&array->h;
    struct zr_array_state *s = zr_array_state_get(array);
    const char *text = written_text(h, &s->grid, &s->meta, zr_array_meta_grid, 0);

    zr_array_state_free(s);
    return text;
}

const char *zarr_array_attributes(const zarr_array *array)
{
    if (!array)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&array->h;
    struct zr_array_state *s = zr_array_state_get(array);
    const char *text =
        zr_handle_json(h, &s->attributes, s->meta.attributes, ZR_META_INDENT);

    zr_array_state_free(s);
    return text;
}
