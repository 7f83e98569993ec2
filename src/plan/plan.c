/*
 * plan/plan.c - unrolls one read lazily. The projector of the grid yields blocks.
 * Chunks without shards become items at once. Shards need their index first: a frame
 * collects up to OPENS of them (or as many as the caller wants), of several outer
 * shards if they are nested, and gives them out as an OPEN wave. Once they are opened,
 * the plan projects the shards of the frame on their inner grids one by one, which yields
 * items or, one level deeper, the next frame. So memory is bounded by depth x OPENS for a
 * request of any size.
 * Thread class: solo; the pipeline holds a lock around it.
 */
#include "plan/plan_int.h"

#include <string.h>

enum {
    OPENS = 64
};

/* ---- opening and closing --------------------------------------------------- */

/* How many shards of a level may be open at once. Their indexes are in memory together,
 * and so are the decoded values of shards with codecs around them. */
static uint32_t opens_most(const struct zr_plan_args *a, uint32_t level)
{
    const struct zr_level *lv = &a->layout->level[level];
    const uint64_t limit = a->opens != 0 ? a->opens : OPENS;
    uint64_t each = lv->n_inner_all * 2 * sizeof(uint64_t), most = 0;
    uint64_t held = a->held_bytes;

    if (a->plain)
        return 1;
    if (lv->bytes_decode && !zr_add(each, lv->decoded_bytes, &each))
        return 1;
    most = a->wave_bytes / ZR_MAX(each, UINT64_C(1));
    for (uint32_t i = 0; i < level; i++)
        held >>= a->layout->level[i].bytes_decode != NULL;
    if (lv->bytes_decode && a->held_bytes != 0)
        most = ZR_MIN(most, held / ZR_MAX(zr_body_bytes(lv), UINT64_C(1)));
    return (uint32_t)ZR_MIN(ZR_MAX(most, UINT64_C(1)), limit);
}

static zarr_status frame_init(struct zr_frame *f, uint32_t most,
                              const zarr_allocator *alloc, zarr_error *err)
{
    zr_arena_init(&f->lists, alloc);
    f->most = most;
    /* 6 KiB each, written when a shard is noted: not worth zeroing for each request */
    f->proj = zr_malloc(alloc, most * sizeof *f->proj);
    f->lv = zr_calloc(alloc, most, sizeof(const struct zr_level *));
    f->shard = zr_calloc(alloc, most, sizeof *f->shard);
    f->ordinal = zr_calloc(alloc, most, sizeof *f->ordinal);
    f->unit = zr_calloc(alloc, most, sizeof *f->unit);
    if (!f->proj || !f->lv || !f->shard || !f->ordinal || !f->unit)
        return zr_fail_memory(err, most * sizeof *f->proj);
    return ZARR_OK;
}

static void frame_clear(struct zr_frame *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        zr_shard_free(f->shard[i]);
        f->shard[i] = NULL;
        zr_level_give(f->lv[i]);
    }
    f->n = f->pos = 0;
    f->inner_active = false;
    zr_arena_reset(&f->lists);
}

static void frame_deinit(struct zr_frame *f, const zarr_allocator *alloc)
{
    if (f->shard && f->lv)
        frame_clear(f);
    zr_project_free(f->inner);
    zr_project_free(f->leaves);
    zr_arena_deinit(&f->lists);
    zr_free(alloc, f->proj);
    zr_free(alloc, f->lv);
    zr_free(alloc, f->shard);
    zr_free(alloc, f->ordinal);
    zr_free(alloc, f->unit);
}

static zarr_status plan_project(struct zr_projector **out,
                                const struct zr_plan_args *args,
                                const struct zr_grid *grid, const zarr_allocator *alloc,
                                zarr_error *err)
{
    if (!args->selections)
        return zr_project_open(out, alloc, grid, args->selection, err);
    return zr_project_open_many(out, alloc, grid, args->selections, args->n_selections,
                                err);
}

zarr_status zr_plan_open(struct zr_plan **out, const struct zr_plan_args *args,
                         const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_grid *grid = args->layout->grid;
    struct zr_plan *p = zr_calloc(alloc, 1, sizeof *p);

    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->a = *args;
    p->alloc = alloc;
    zr_str_init(&p->key, alloc);
    if (!p->a.selection && !p->a.selections) {
        ZR_TRY(zarr_selection_dims(&p->all, grid->ndim, grid->shape, 0, NULL, err));
        p->a.selection = p->all;
    }
    ZR_TRY(plan_project(&p->outer, &p->a, grid, alloc, err));
    if (args->layout->n_levels > 1) {
        p->frame = zr_calloc(alloc, args->layout->n_levels - 1, sizeof *p->frame);
        if (!p->frame)
            ZR_FAIL_MEMORY(err, sizeof *p->frame);
        p->n_frames = args->layout->n_levels - 1;
        for (uint32_t i = 0; i < p->n_frames; i++)
            ZR_TRY(frame_init(&p->frame[i], opens_most(args, i), alloc, err));
    }
    *out = p;
    p = NULL;
out:
    zr_plan_free(p);
    return st;
}

void zr_plan_free(struct zr_plan *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; p->frame && i < p->n_frames; i++)
        frame_deinit(&p->frame[i], p->alloc);
    zr_free(p->alloc, p->frame);
    zr_project_free(p->outer);
    zarr_selection_free(p->all);
    zr_str_deinit(&p->key);
    zr_free(p->alloc, p);
}

uint64_t zr_plan_count(const struct zr_plan *p)
{
    struct zr_grid leaf = {0};
    struct zr_projector *proj = NULL;
    const struct zr_grid *grid = p->a.layout->grid;
    uint64_t n = 0;

    if (p->n_frames == 0)
        return zr_project_count(p->outer);
    if (zr_grid_init_regular(&leaf, grid->ndim, grid->shape,
                             zr_layout_leaf_shape(p->a.layout), "chunk_shape",
                             NULL) != ZARR_OK)
        return 0;
    if (plan_project(&proj, &p->a, &leaf, p->alloc, NULL) == ZARR_OK)
        n = zr_project_count(proj);
    zr_project_free(proj);
    zr_grid_deinit(&leaf);
    return n;
}

bool zr_plan_count_sorts(const struct zr_plan *p)
{
    return p->n_frames > 0 && zr_project_is_of_points(p->outer);
}

/* ---- shards ------------------------------------------------------------------- */

static uint64_t inner_entry(const struct zr_level *lv, const uint64_t *chunk)
{
    uint64_t at = 0;

    for (int32_t d = 0; d < lv->ndim; d++)
        at = at * lv->n_inner[d] + chunk[d];
    return at;
}

/* The coordinates of a shard's first element in the array. */
static const uint64_t *find_origin(struct zr_arena *arena, const struct zr_level *lv,
                                   const struct zr_projection *proj,
                                   const struct zr_shard *parent)
{
    uint64_t *origin = zr_arena_alloc(arena, (size_t)lv->ndim * sizeof *origin);

    for (int32_t i = 0; origin && i < lv->ndim; i++) {
        const uint8_t d = lv->to_array[i];

        origin[d] = proj->origin[i] + (parent ? parent->origin[d] : 0);
    }
    return origin;
}

/* Adds one shard of level `level` to its frame and to the OPEN wave. */
static zarr_status note_open(struct zr_plan *p, struct zr_wave *w, uint32_t level,
                             const struct zr_projection *proj, struct zr_shard *parent,
                             zarr_error *err)
{
    struct zr_frame *f = &p->frame[level];
    struct zr_open *o = &w->open[w->n_opens];

    *o = (struct zr_open){.level = level, .ordinal = p->ordinal};
    if (!zr_projection_keep(&f->proj[f->n], proj, &f->lists))
        return zr_fail_memory(err, sizeof *proj);
    o->proj = &f->proj[f->n];
    f->lv[f->n] = &p->a.layout->level[level];
    if (!parent) {
        zarr_status st = ZARR_OK;

        zr_plan_key(&p->a, proj->chunk, &p->key);
        st = zr_layout_outer(p->a.layout, proj->shape, &f->lv[f->n], err);
        if (st != ZARR_OK)
            return zr_prefix_key(err, st, zr_str_text(&p->key));
    } else {
        uint64_t entry =
            inner_entry(p->frame[level - 1].lv[p->frame[level - 1].pos], proj->chunk);

        zr_str_clear(&p->key);
        zr_str_puts(&p->key, parent->key);
        o->entry = entry;
        o->offset = parent->base + parent->index->entry[2 * entry];
        o->bytes = parent->index->entry[2 * entry + 1];
    }
    f->unit[f->n] =
        parent ? p->frame[level - 1].unit[p->frame[level - 1].pos] : p->unit++;
    f->ordinal[f->n] = p->ordinal++;
    f->shard[f->n] = NULL;
    o->lv = f->lv[f->n++];
    o->key = zr_arena_strndup(&w->arena, zr_str_text(&p->key), p->key.bytes);
    o->origin = find_origin(&w->arena, o->lv, proj, parent);
    if (!o->key || !o->origin || p->key.failed)
        return zr_fail_memory(err, p->key.bytes);
    o->parent = !parent ? NULL : zr_shard_ref(parent);
    w->n_opens++;
    return ZARR_OK;
}

static zarr_status begin_opens(struct zr_plan *p, struct zr_wave *w, uint32_t level,
                               zarr_error *err)
{
    const uint32_t most = p->frame[level].most;

    for (uint32_t i = level; i < p->n_frames; i++) /* the deeper ones are at their ends */
        frame_clear(&p->frame[i]);
    w->kind = ZR_WAVE_OPEN;
    w->open = zr_arena_alloc(&w->arena, most * sizeof *w->open);
    return w->open ? ZARR_OK : zr_fail_memory(err, most * sizeof *w->open);
}

/*
 * Adds the next shards of the grid. Leaves w->kind at END if there are none.
 */
static zarr_status open_outer(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    struct zr_projection proj;

    if (!zr_project_next(p->outer, &proj))
        return ZARR_OK;
    ZR_CHECK(begin_opens(p, w, 0, err));
    do {
        ZR_CHECK(note_open(p, w, 0, &proj, NULL, err));
    } while (w->n_opens < p->frame[0].most && zr_project_next(p->outer, &proj));
    p->frame[0].waiting = true;
    return ZARR_OK;
}

static zarr_status start_inner(struct zr_plan *p, struct zr_frame *f, uint32_t level,
                               zarr_error *err)
{
    const struct zr_level *lv = f->lv[f->pos];
    const struct zr_projection *outer = &f->proj[f->pos];
    const struct zr_grid *grid = p->a.layout->grid;
    uint64_t clip[ZARR_MAX_RANK], *clip_ptr = NULL;
    zarr_status st = ZARR_OK;

    if (level == 0) {
        for (int32_t d = 0; d < lv->ndim; d++)
            clip[d] = ZR_MIN(lv->shape[d], grid->shape[d] - outer->origin[d]);
        clip_ptr = clip;
    }
    if (f->inner)
        st = zr_project_reopen_inner(f->inner, outer, clip_ptr, err);
    else
        st = zr_project_open_inner(&f->inner, p->alloc, outer, lv->inner_shape,
                                   lv->permuted ? lv->order : NULL, clip_ptr, err);
    f->inner_active = st == ZARR_OK;
    return st;
}

/* Makes items from the chunks of the current shard of frame `level`. */
static zarr_status pull_leaves(struct zr_plan *p, struct zr_wave_builder *b,
                               uint32_t level, zarr_error *err)
{
    struct zr_frame *f = &p->frame[level];
    struct zr_shard *shard = f->shard[f->pos];
    struct zr_projection proj;

    while (!zr_wave_is_full(p, b)) {
        if (!zr_project_next(f->inner, &proj)) {
            f->inner_active = false;
            f->pos++;
            break;
        }
        ZR_CHECK(zr_wave_add_inner(
            p, b, shard, &proj, inner_entry(f->lv[f->pos], proj.chunk), level + 1, err));
    }
    return ZARR_OK;
}

/* Nested shards: makes opens for the next frame, and fill items for missing shards. */
static zarr_status pull_shards(struct zr_plan *p, struct zr_wave_builder *b,
                               uint32_t level, zarr_error *err)
{
    struct zr_frame *f = &p->frame[level];
    struct zr_shard *shard = f->shard[f->pos];
    struct zr_projection proj;
    uint32_t most = p->frame[level + 1].most;

    while (b->w->n_opens < most) {
        uint64_t entry = 0;

        if (zr_wave_is_full(p, b))
            break;
        if (!zr_project_next(f->inner, &proj)) {
            f->inner_active = false;
            f->pos++;
            break;
        }
        entry = inner_entry(f->lv[f->pos], proj.chunk);
        if (shard->index->missing ||
            ZR_PAIR_IS_MISSING(shard->index->entry + 2 * entry)) {
            ZR_CHECK(zr_wave_add_missing(p, b, shard, &proj, level + 1, err));
            continue;
        }
        if (b->w->n_opens == 0)
            ZR_CHECK(begin_opens(p, b->w, level + 1, err));
        ZR_CHECK(note_open(p, b->w, level + 1, &proj, shard, err));
    }
    if (b->w->n_opens > 0)
        p->frame[level + 1].waiting = true;
    return ZARR_OK;
}

static zarr_status pull_frame(struct zr_plan *p, struct zr_wave_builder *b,
                              uint32_t level, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_frame *f = &p->frame[level];

    b->unit = f->unit[f->pos];
    if (!f->inner_active) {
        if (f->shard[f->pos]->index->missing) { /* one fill item for the whole shard */
            ZR_TRY(zr_wave_add_missing(p, b, f->shard[f->pos], &f->proj[f->pos], level,
                                       err));
            f->pos++;
            goto out;
        }
        ZR_TRY(start_inner(p, f, level, err));
    }
    if (level + 1 < p->n_frames)
        st = pull_shards(p, b, level, err);
    else
        st = pull_leaves(p, b, level, err);
out:
    return st;
}

/* ---- the pull ------------------------------------------------------------------ */

/* Adds nested shards of the next shards of frame `level` to a wave that has some. */
static zarr_status pull_more_shards(struct zr_plan *p, struct zr_wave_builder *b,
                                    uint32_t level, zarr_error *err)
{
    const struct zr_frame *f = &p->frame[level];

    while (f->pos < f->n && b->w->n_opens < p->frame[level + 1].most &&
           !zr_wave_is_full(p, b))
        ZR_CHECK(pull_frame(p, b, level, err));
    return ZARR_OK;
}

/* Whether shards below this level have their values in memory. */
static bool holds_below(const struct zr_plan *p, uint32_t level)
{
    for (uint32_t i = level + 1; i < p->n_frames; i++)
        if (p->a.layout->level[i].bytes_decode)
            return true;
    return false;
}

static zarr_status pull_sharded(struct zr_plan *p, struct zr_wave_builder *b,
                                zarr_error *err)
{
    uint32_t level = 0, before = 0;

    while (!zr_wave_is_full(p, b) && b->w->n_opens == 0) {
        level = p->n_frames;
        while (level > 0 && p->frame[level - 1].pos >= p->frame[level - 1].n)
            level--;
        if (level-- == 0) {
            if (b->w->n_items > 0) /* deliver these first: opening takes time */
                break;
            return open_outer(p, b->w, err);
        }
        /* the next shards wait for the memory of those that these items are in */
        if (level < before && b->w->n_items > 0 && holds_below(p, level))
            break;
        before = level;
        ZR_CHECK(pull_frame(p, b, level, err));
    }
    if (b->w->n_opens > 0)
        return pull_more_shards(p, b, level, err);
    return ZARR_OK;
}

static zarr_status pull_whole(struct zr_plan *p, struct zr_wave_builder *b,
                              zarr_error *err)
{
    struct zr_projection proj;

    while (!zr_wave_is_full(p, b) && zr_project_next(p->outer, &proj))
        ZR_CHECK(zr_wave_add_whole(p, b, &proj, err));
    return ZARR_OK;
}

zarr_status zr_plan_next(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_wave_builder b = {.w = w};

    zr_wave_release(w);
    zr_arena_reset(&w->arena);
    w->segment = NULL;
    w->open = NULL;
    w->hold = NULL;
    w->kind = ZR_WAVE_END;
    w->level = &p->a.layout->level[p->a.layout->n_levels - 1];
    st = p->n_frames == 0 ? pull_whole(p, &b, err) : pull_sharded(p, &b, err);
    if (st != ZARR_OK)
        return st;
    /*
     * A wave can have fill items beside opens of nested shards. The pipe then does both.
     */
    if (w->n_items > 0) {
        st = zr_wave_cut(w, &p->a, err);
        if (w->kind == ZR_WAVE_END)
            w->kind = ZR_WAVE_DATA;
    }
    return st;
}

zarr_status zr_plan_resume(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    struct zr_frame *f = NULL;

    if (w->n_opens == 0)
        return ZARR_OK;
    f = &p->frame[w->open[0].level];
    if (!f->waiting || f->n != w->n_opens)
        return zr_internal(err);
    for (uint32_t i = 0; i < f->n; i++) {
        if (!w->open[i].shard || !w->open[i].shard->index)
            return zr_internal(err);
        f->shard[i] = w->open[i].shard;
        w->open[i].shard = NULL;
    }
    f->pos = 0;
    f->waiting = false;
    return ZARR_OK;
}
