/*
 * plan/wave.c - builds a wave: items with their targets, grouped by source, all in the
 * arena of the wave. cut.c cuts the groups into segments.
 * Thread class: solo; the pipeline holds a lock around it.
 */
#include "plan/plan_int.h"

#include <string.h>

enum {
    WAVE_FIRST_SLOTS = 8
};

void zr_wave_init(struct zr_wave *w, const zarr_allocator *alloc)
{
    *w = (struct zr_wave){.kind = ZR_WAVE_END};
    zr_arena_init(&w->arena, alloc);
}

void zr_wave_release(struct zr_wave *w)
{
    for (uint32_t i = 0; i < w->n_segments; i++)
        /* the level of chunks in shards is the layout's: not counted */
        if (!w->segment[i].shard)
            zr_level_give(w->segment[i].level);
    for (uint32_t i = 0; i < w->n_hold; i++)
        zr_shard_free(w->hold[i]);
    for (uint32_t i = 0; i < w->n_opens; i++) {
        zr_shard_free(w->open[i].shard);
        zr_shard_free(w->open[i].parent);
    }
    w->n_hold = w->n_opens = w->n_segments = w->n_items = 0;
    w->decoded_bytes = 0;
}

void zr_wave_deinit(struct zr_wave *w)
{
    zr_wave_release(w);
    zr_arena_deinit(&w->arena);
}

static bool arena_grow(struct zr_arena *arena, void *ptr_ptr, uint32_t *cap, uint32_t n,
                       size_t item_bytes)
{
    void **ptr = ptr_ptr;
    uint32_t want = *cap == 0 ? WAVE_FIRST_SLOTS : *cap * 2;
    void *bigger = NULL;

    if (n < *cap)
        return true;
    bigger = zr_arena_alloc(arena, (size_t)want * item_bytes);
    if (!bigger)
        return false;
    if (n > 0)
        memcpy(bigger, *ptr, (size_t)n * item_bytes);
    *ptr = bigger;
    *cap = want;
    return true;
}

static struct zr_item *new_item(struct zr_wave_builder *b,
                                const struct zr_projection *proj)
{
    struct zr_item *item = zr_arena_alloc(&b->w->arena, sizeof *item);

    if (!item || !zr_target_pack(&item->target, proj, &b->w->arena))
        return NULL;
    item->is_bad = false;
    return item;
}

/* A group is a zr_segment that is not cut yet: all items of one source, in the order in
 * which they were added. */
static struct zr_segment *new_group(struct zr_wave_builder *b)
{
    struct zr_wave *w = b->w;

    if (!arena_grow(&w->arena, &w->segment, &b->group_cap, w->n_segments,
                    sizeof *w->segment))
        return NULL;
    b->item_cap = 0;
    w->segment[w->n_segments] = (struct zr_segment){0};
    return &w->segment[w->n_segments++];
}

zarr_status zr_wave_add_whole(struct zr_plan *p, struct zr_wave_builder *b,
                              const struct zr_projection *proj, zarr_error *err)
{
    struct zr_item *item = new_item(b, proj);
    struct zr_segment *group = new_group(b);
    zarr_status st = ZARR_OK;

    if (!item || !group)
        return zr_fail_memory(err, sizeof *item);
    st = zr_layout_outer(p->a.layout, proj->shape, &group->level, err);
    zr_plan_key(&p->a, proj->chunk, &p->key);
    group->key = zr_arena_strndup(&b->w->arena, zr_str_text(&p->key), p->key.bytes);
    group->item = zr_arena_alloc(&b->w->arena, sizeof(struct zr_item *));
    if (st != ZARR_OK)
        return zr_prefix_key(err, st, zr_str_text(&p->key));
    if (!group->key || !group->item || p->key.failed)
        return zr_fail_memory(err, p->key.bytes);
    item->offset = 0;
    item->bytes = UINT64_MAX;
    item->ordinal = p->ordinal++;
    item->unit = p->unit++;
    item->n_chunks = 1;
    item->fill_level = 0;
    group->bytes = UINT64_MAX;
    group->item[0] = item;
    group->n_items = 1;
    b->w->n_items++;
    b->w->decoded_bytes += group->level->decoded_bytes;
    return ZARR_OK;
}

static struct zr_segment *shard_group(struct zr_wave_builder *b, struct zr_shard *shard)
{
    struct zr_wave *w = b->w;
    struct zr_segment *group = NULL;

    if (w->n_segments > 0 && w->segment[w->n_segments - 1].shard == shard)
        return &w->segment[w->n_segments - 1];
    if (!arena_grow(&w->arena, &w->hold, &b->hold_cap, w->n_hold,
                    sizeof(struct zr_shard *)))
        return NULL;
    group = new_group(b);
    if (!group)
        return NULL;
    group->shard = w->hold[w->n_hold++] = zr_shard_ref(shard);
    b->end = 0;
    group->level = w->level;
    group->key = shard->buffer.handle ? NULL : shard->key;
    return group;
}

/* Notes whether a chunk continues the one before it, up to a hole that is read. */
static void note_order(struct zr_wave_builder *b, const struct zr_plan_args *a,
                       const struct zr_item *item)
{
    if (b->end != 0 && (item->offset < b->end || item->offset - b->end > a->segment_gap))
        b->is_scattered = true;
    b->end = item->offset + item->bytes;
}

zarr_status zr_wave_add_inner(struct zr_plan *p, struct zr_wave_builder *b,
                              struct zr_shard *shard, const struct zr_projection *proj,
                              uint64_t entry, uint32_t fill_level, zarr_error *err)
{
    struct zr_item *item = new_item(b, proj);
    struct zr_segment *group = shard_group(b, shard);
    const struct zr_shard_index *x = shard->index;

    /* The list seldom grows, so most chunks make no call. */
    if (!item || !group ||
        (group->n_items >= b->item_cap &&
         !arena_grow(&b->w->arena, &group->item, &b->item_cap, group->n_items,
                     sizeof(struct zr_item *))))
        return zr_fail_memory(err, sizeof *item);
    item->ordinal = p->ordinal++;
    item->unit = b->unit;
    item->n_chunks = 1;
    item->fill_level = fill_level;
    item->offset = 0;
    item->bytes = ZR_ITEM_MISSING;
    if (x->missing || entry == UINT64_MAX || ZR_PAIR_IS_MISSING(x->entry + 2 * entry)) {
        /* it is filled */
    } else if (zr_shard_index_check(x, entry, NULL) != ZARR_OK) {
        item->is_bad = true;
        item->offset = entry;
    } else {
        item->offset = shard->base + x->entry[2 * entry];
        item->bytes = x->entry[2 * entry + 1];
        note_order(b, &p->a, item);
    }
    group->item[group->n_items++] = item;
    b->w->n_items++;
    b->w->decoded_bytes +=
        item->bytes == ZR_ITEM_MISSING ? 0 : b->w->level->decoded_bytes;
    return ZARR_OK;
}

enum {
    COUNTED_MOST = 1 << 20
};

/* Number of chunks that a projector gives. Those that several selections touch count
 * once, unless there are too many to look at each. */
static uint64_t count_once(struct zr_projector *p, bool several)
{
    uint64_t n = zr_project_count(p);
    struct zr_projection proj;

    if (!several || n > COUNTED_MOST)
        return n;
    for (n = 0; zr_project_next(p, &proj);)
        n++;
    return n;
}

/* Number of chunks that a projection on a shard of level `level` touches; 1 if it
 * cannot be determined. */
static uint64_t count_leaves(struct zr_plan *p, uint32_t level,
                             const struct zr_projection *proj)
{
    const struct zr_level *lv = &p->a.layout->level[level];
    const uint64_t *leaf = zr_layout_leaf_shape(p->a.layout);
    struct zr_frame *f = &p->frame[level];
    uint64_t edge[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < lv->ndim; d++)
        edge[d] = leaf[lv->to_array[d]];
    if (f->leaves)
        st = zr_project_reopen_inner(f->leaves, proj, NULL, NULL);
    else
        st = zr_project_open_inner(&f->leaves, p->alloc, proj, edge, NULL, NULL, NULL);
    return st == ZARR_OK ? count_once(f->leaves, proj->next != NULL) : 1;
}

/* Adds one item for everything that the request wants of a missing shard of level
 * `level`. */
zarr_status zr_wave_add_missing(struct zr_plan *p, struct zr_wave_builder *b,
                                struct zr_shard *shard, const struct zr_projection *proj,
                                uint32_t level, zarr_error *err)
{
    zarr_status st = zr_wave_add_inner(p, b, shard, proj, UINT64_MAX, level, err);

    if (st == ZARR_OK) {
        const struct zr_segment *group = &b->w->segment[b->w->n_segments - 1];
        struct zr_item *item = group->item[group->n_items - 1];

        item->n_chunks = count_leaves(p, level, proj);
    }
    return st;
}

bool zr_wave_is_full(const struct zr_plan *p, const struct zr_wave_builder *b)
{
    const struct zr_wave *w = b->w;
    uint32_t most = p->a.wave_items;

    if (p->a.wave_items_in_order != 0 && !b->is_scattered)
        most = ZR_MIN(most, p->a.wave_items_in_order);
    return w->decoded_bytes >= p->a.wave_bytes || w->n_items >= most ||
           (p->a.plain && w->n_items > 0);
}
