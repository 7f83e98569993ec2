/*
 * plot/sparse.c - draws the stored chunks of a sparse array, which evenly spaced samples
 * may miss. A pixel that a stored chunk covers shows an element of it, the one nearest to
 * the middle of the pixel.
 */
#include "plot/plot_int.h"

#include <stdlib.h>
#include <string.h>

/* Elements of the region along both axes, or pixels; [from, to). */
struct span {
    uint64_t from, to;
};

struct stored {
    struct reading *r;
    struct span *item; /* two for each chunk */
    size_t n, cap;
    bool inner;
};

/* The elements of the axis that a chunk covers. False: none. */
static bool cover(const struct sampling *s, const struct dim_region *p, uint64_t begin,
                  uint64_t count, struct span *out)
{
    const uint64_t start = (uint64_t)p->start, end = begin + count;
    const uint64_t step =
        p->step < 0 ? (uint64_t)0 - (uint64_t)p->step : (uint64_t)p->step;

    if (step == 0)
        return false;
    if (p->step > 0) {
        if (end <= start)
            return false;
        out->from = begin > start ? (begin - start + step - 1) / step : 0;
        out->to = (end - 1 - start) / step + 1;
    } else {
        if (begin > start)
            return false;
        out->from = end <= start ? (start - (end - 1) + step - 1) / step : 0;
        out->to = (start - begin) / step + 1;
    }
    out->to = out->to < s->n ? out->to : s->n;
    return out->from < out->to;
}

/* Where the chunk is in the region. False: outside. */
static bool place(const struct stored *all, const uint64_t *chunk, struct span out[2])
{
    const struct reading *r = all->r;
    const int32_t ndim = zarr_array_ndim(r->array);
    const uint64_t *unit = zarr_array_chunk_shape(r->array);
    uint64_t origin[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
    bool inside = all->inner || zarr_array_block_extent(r->array, chunk, origin, count,
                                                        NULL) == ZARR_OK;

    out[0] = (struct span){0, 1}; /* of a line */
    for (int32_t d = 0; d < ndim && inside; d++) {
        const struct dim_region *p = &r->dims[d];
        const struct sampling *s = NULL;

        if (all->inner) {
            origin[d] = cli_mul(chunk[d], unit[d]);
            count[d] = unit[d];
        }
        for (int i = 2 - r->n_axes; i < 2; i++)
            if (r->axis[i].array_dim == d) {
                s = &r->axis[i];
                inside = cover(s, p, origin[d], count[d], &out[i]);
            }
        if (!s) {
            const int64_t n = (int64_t)zarr_array_shape(r->array)[d];
            const uint64_t at = (uint64_t)(p->start < 0 ? p->start + n : p->start);

            inside = at >= origin[d] && at - origin[d] < count[d];
        }
    }
    return inside;
}

static int add_chunk(void *user, const zarr_block_info *chunk)
{
    struct stored *all = user;
    struct span at[2];

    if (all->inner && !chunk->is_chunk)
        return 1;
    if (!place(all, chunk->coordinates, at))
        return cli_is_cancelled();
    if (all->n == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 64;
        all->item = cli_realloc(all->item, 2 * all->cap * sizeof *all->item);
    }
    memcpy(all->item + 2 * all->n++, at, sizeof at);
    return cli_is_cancelled();
}

/* The element of the axis that pixel k shows if it shows one of the chunk. */
static uint64_t shown_element(const struct sampling *s, uint64_t k,
                              const struct span *chunk)
{
    const double share = ((double)k + 0.5) / (double)s->n_samples;
    const uint64_t at = (uint64_t)(share * (double)s->n);

    return at < chunk->from ? chunk->from : at >= chunk->to ? chunk->to - 1 : at;
}

/* The pixels of the axis that the chunk touches. */
static struct span touched_pixels(const struct sampling *s, const struct span *chunk)
{
    const double scale = (double)s->n_samples / (double)s->n;
    struct span out = {(uint64_t)((double)chunk->from * scale),
                       (uint64_t)((double)(chunk->to - 1) * scale) + 1};

    out.to = out.to < s->n_samples ? out.to : s->n_samples;
    out.from = out.from < out.to ? out.from : out.to - 1;
    return out;
}

/* Reads the pixels of one chunk into elements. */
static zarr_status read_chunk(struct reading *r, const struct span chunk[2],
                              char *elements, zarr_error *err)
{
    const int32_t ndim = zarr_selection_ndim(r->outer);
    const size_t bytes = (size_t)zarr_dtype_item_bytes(r->field.type);
    zarr_dim_selection dims[ZARR_MAX_RANK];
    zarr_selection *inner = NULL, *whole = NULL;
    struct span at[2] = {{0, 1}, {0, 1}};
    int64_t *list[2] = {NULL, NULL}, strides[2];
    uint64_t shape[2];
    zarr_tensor tensor;
    zarr_status st;

    memset(dims, 0, sizeof dims);
    for (int32_t d = 0; d < ndim; d++)
        dims[d].kind = ZARR_DIM_INDEX;
    for (int i = 2 - r->n_axes; i < 2; i++) {
        const struct sampling *s = &r->axis[i];

        at[i] = touched_pixels(s, &chunk[i]);
        list[i] = cli_alloc((size_t)(at[i].to - at[i].from) * sizeof *list[i]);
        for (uint64_t k = at[i].from; k < at[i].to; k++)
            list[i][k - at[i].from] = (int64_t)shown_element(s, k, &chunk[i]);
        dims[s->dim] = (zarr_dim_selection){
            .kind = ZARR_DIM_LIST, .list = list[i], .n_list = at[i].to - at[i].from};
        shape[i - (2 - r->n_axes)] = (uint64_t)(at[i].to - at[i].from);
        strides[i - (2 - r->n_axes)] =
            i == 0 ? (int64_t)(r->axis[1].n_samples * bytes) : (int64_t)bytes;
    }
    st = zarr_selection_dims(&inner, ndim, zarr_selection_shape(r->outer), ndim, dims,
                             err);
    if (!st)
        st = zarr_selection_compose(&whole, r->outer, inner, err);
    zarr_tensor_host(&tensor, NULL, elements, r->out->n_values * bytes, r->n_axes, shape);
    tensor.byte_offset =
        (at[0].from * (r->n_axes == 2 ? r->axis[1].n_samples : 0) + at[1].from) * bytes;
    tensor.strides = strides;
    if (!st)
        st = cli_read(r->array, whole, &tensor, &r->field.options, err);
    zarr_selection_free(inner);
    zarr_selection_free(whole);
    free(list[0]);
    free(list[1]);
    return st;
}

/* False: the stored chunks cannot be listed. */
static bool list_chunks(struct stored *all, bool inner)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = cli_cancel};

    all->inner = inner;
    all->n = 0;
    return zarr_array_list_blocks(all->r->array,
                                  inner ? ZARR_BLOCKS_CHUNKS : ZARR_BLOCKS_STORED,
                                  add_chunk, all, &io, NULL) == ZARR_OK;
}

/* Chunks only of few shards: their indexes must be read. */
static bool list_stored(struct stored *all, uint64_t most)
{
    if (!list_chunks(all, false))
        return false;
    if (!cli_is_sharded(all->r->array) || all->n > most / 16)
        return true;
    return list_chunks(all, true) || list_chunks(all, false);
}

zarr_status cli_plot_fill_stored(struct reading *r, uint64_t most, char *elements,
                                 zarr_error *err)
{
    struct stored all = {.r = r};
    zarr_status st = ZARR_OK;
    size_t each;

    for (int32_t d = 0; d < zarr_array_ndim(r->array); d++)
        if (r->dims[d].is_list)
            return ZARR_OK; /* the user chose the elements */
    if (list_stored(&all, most)) {
        each = all.n / most + 1;
        for (size_t i = 0; i < all.n && !st; i += each)
            st = read_chunk(r, all.item + 2 * i, elements, err);
    }
    free(all.item);
    return st;
}
