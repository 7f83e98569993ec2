/*
 * plot/sparse.c - draws the stored chunks of a sparse array, which evenly spaced samples
 * may miss. A pixel that a stored chunk covers shows an element of it, the one nearest to
 * the middle of the pixel.
 */
#include "plot/plot.h"

#include <stdlib.h>
#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

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

/* The elements of the axis whose indices are in [begin, end). False: none. */
static bool cover(const struct plot_axis *s, int64_t start, int64_t begin, int64_t end,
                  struct span *out)
{
    const int64_t step = s->step < 0 ? -s->step : s->step;
    const int64_t near = s->step < 0 ? start - (end - 1) : begin - start;
    const int64_t far = s->step < 0 ? start - begin : end - 1 - start;

    if (far < 0)
        return false;
    out->from = near > 0 ? (uint64_t)((near - 1) / step + 1) : 0;
    out->to = least((uint64_t)(far / step + 1), s->n);
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
        const uint64_t n = zarr_array_shape(r->array)[d];
        int64_t start = r->dims[d].start, begin, end;

        if (all->inner) {
            origin[d] = cli_mul(chunk[d], unit[d]);
            count[d] = unit[d];
        }
        start += start < 0 ? (int64_t)n : 0;
        begin = (int64_t)least(origin[d], n);
        end = (int64_t)least(cli_add(origin[d], count[d]), n);
        inside = start >= begin && start < end; /* an index */
        for (int i = 2 - r->out->ndim; i < 2; i++)
            if (r->out->axis[i].array_dim == d)
                inside = cover(&r->out->axis[i], start, begin, end, &out[i]);
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
static uint64_t shown_element(const struct plot_axis *s, uint64_t k,
                              const struct span *chunk)
{
    const double share = ((double)k + 0.5) / (double)s->n_samples;
    const uint64_t at = (uint64_t)(share * (double)s->n);

    return at < chunk->from ? chunk->from : at >= chunk->to ? chunk->to - 1 : at;
}

/* The pixels of the axis that the chunk touches. */
static struct span touched_pixels(const struct plot_axis *s, const struct span *chunk)
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
    const size_t bytes = (size_t)zarr_dtype_item_bytes(r->field.type);
    const int first = 2 - r->out->ndim;
    const int64_t strides[2] = {(int64_t)(r->out->axis[1].n_samples * bytes),
                                (int64_t)bytes};
    zarr_selection *whole = NULL;
    int64_t *list[2] = {NULL, NULL};
    uint64_t shape[2] = {0, 0}, offset = 0;
    zarr_tensor tensor;
    zarr_status st;

    for (int i = first; i < 2; i++) {
        const struct plot_axis *s = &r->out->axis[i];
        const struct span at = touched_pixels(s, &chunk[i]);

        shape[i] = at.to - at.from;
        offset += at.from * (uint64_t)strides[i];
        list[i] = cli_alloc((size_t)shape[i] * sizeof *list[i]);
        for (uint64_t k = 0; k < shape[i]; k++)
            list[i][k] = (int64_t)shown_element(s, at.from + k, &chunk[i]);
    }
    st = cli_plot_select(r, list, shape, &whole, err);
    zarr_tensor_host(&tensor, NULL, elements, r->out->n_values * bytes, r->out->ndim,
                     &shape[first]);
    tensor.byte_offset = offset;
    tensor.strides = &strides[first];
    if (!st)
        st = cli_read(r->array, whole, &tensor, &r->field.options, err);
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
