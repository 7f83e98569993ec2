/*
 * array/stored/shards.c - walks the chunks of one stored shard in order, through nested
 * shards. No recursion: a stack has one opened shard per level; the limit shard_depth
 * bounds it. Missing chunks are skipped. Thread class: plain function.
 */
#include "array/stored/stored_int.h"

struct shard_frame {
    struct zr_shard *shard;         /* counted */
    uint64_t next;                  /* next entry */
    uint64_t origin[ZARR_MAX_RANK]; /* first element of the shard, in array coordinates */
    bool in_value; /* its chunks are in a decoded value, not in the object */
};

struct shard_walk {
    const struct zr_io *io;
    const char *key;
    const struct zr_level *outermost; /* level of this shard */
    struct shard_frame *frame;        /* one per level except the last */
    uint32_t n;
    const struct zr_inner_use *use;
    const uint64_t *shape; /* of the array */
};

/* Computes where entry i of this frame's shard begins, in array order of dimensions. */
static void entry_origin(const struct shard_walk *w, const struct shard_frame *f,
                         uint64_t i, uint64_t *origin)
{
    const struct zr_level *level = w->io->layout->level;
    const struct zr_level *outer = w->n == 1 ? w->outermost : &level[w->n - 1];
    const struct zr_level *inner = &level[w->n];

    for (int32_t d = outer->ndim - 1; d >= 0; d--) {
        const int32_t to = inner->to_array[d];

        origin[to] = f->origin[to] + i % outer->n_inner[d] * outer->inner_shape[d];
        i /= outer->n_inner[d];
    }
}

/* Begins with an opened shard. Who only lists chunks needs no value for it, only those of
 * the shards around it. Its fn may itself read: that waits for none of them. */
static void enter(struct shard_walk *w)
{
    struct shard_frame *f = &w->frame[w->n++];

    f->next = 0;
    f->in_value = f->shard->buffer.handle != NULL;
    if (w->use->reads)
        return;
    if (w->n + 1 == w->io->layout->n_levels)
        zr_shard_drop_value(f->shard);
    else
        zr_shard_makes_room(f->shard);
}

static zarr_status step_into(struct shard_walk *w, uint64_t entry, zarr_error *err)
{
    struct shard_frame *from = &w->frame[w->n - 1], *to = &w->frame[w->n];
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    entry_origin(w, from, entry, to->origin);
    st = zr_shard_open_inner(w->io, from->shard, entry, w->n, &to->shard, &why);
    if (st == ZARR_OK) {
        enter(w);
        return ZARR_OK;
    }
    if (!w->use->fault)
        return zr_pass(err, st, &why);
    zr_shard_makes_room(from->shard); /* the caller's function may read */
    return w->use->fault(w->use->arg, to->origin, st, &why, err);
}

static bool is_inside(const struct shard_walk *w, const uint64_t *origin)
{
    bool inside = true;

    for (int32_t d = 0; d < w->outermost->ndim; d++)
        inside = inside && origin[d] < w->shape[d];
    return inside;
}

static zarr_status walk_entries_of_shard(struct shard_walk *w, zarr_error *err)
{
    const uint32_t last = w->io->layout->n_levels - 1;

    while (w->n > 0) {
        struct shard_frame *f = &w->frame[w->n - 1];
        const struct zr_shard_index *x = f->shard->index;
        struct zr_inner_chunk inner = {.shard = f->shard, .offset = UINT64_MAX};

        if (x->missing || f->next == x->n) {
            zr_shard_free(f->shard);
            f->shard = NULL;
            w->n--;
            continue;
        }
        inner.entry = f->next++;
        if (zr_shard_index_lacks(x, inner.entry)) {
            entry_origin(w, f, inner.entry, inner.origin);
            if (w->use->n_missing && is_inside(w, inner.origin))
                ++*w->use->n_missing;
            continue;
        }
        if (w->n < last) {
            ZR_CHECK(step_into(w, inner.entry, err));
            continue;
        }
        entry_origin(w, f, inner.entry, inner.origin);
        if (!f->in_value)
            inner.offset = f->shard->base + x->entry[2 * inner.entry];
        inner.bytes = x->entry[2 * inner.entry + 1];
        ZR_CHECK(w->use->fn(w->use->arg, &inner, err));
    }
    return ZARR_OK;
}

zarr_status zr_shard_walk(const struct zr_io *io, const struct zr_array_state *s,
                          const uint64_t *chunk, const char *key,
                          const struct zr_inner_use *use, zarr_error *err)
{
    const uint32_t levels = io->layout->n_levels;
    struct shard_walk w = {.io = io, .key = key, .use = use, .shape = s->meta.shape};
    uint64_t shape[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    w.frame = zr_calloc(s->alloc, levels, sizeof *w.frame);
    if (!w.frame)
        return zr_fail_memory(err, levels * sizeof *w.frame);
    for (int32_t d = 0; d < s->meta.ndim; d++)
        zr_grid_extent(&s->meta.grid, d, chunk[d], &w.frame[0].origin[d], &shape[d]);
    ZR_TRY(zr_layout_outer(io->layout, shape, &w.outermost, err));
    ZR_TRY(zr_shard_open_object(io, w.outermost, key, &w.frame[0].shard, err));
    enter(&w);
    ZR_TRY(walk_entries_of_shard(&w, err));
out:
    for (uint32_t i = 0; i < levels; i++)
        zr_shard_free(w.frame[i].shard);
    zr_level_give(w.outermost);
    zr_free(s->alloc, w.frame);
    return st;
}
