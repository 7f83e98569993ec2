/*
 * plan/plan.c - one read, unrolled lazily. The projector of the grid gives
 * outer chunks; unsharded ones become items at once. Shards need their index
 * first: up to OPENS of them are noted in a frame and handed out as an OPEN
 * wave; once fed, the frame's shards are projected on their inner grid one by
 * one, giving items or, one level deeper, the next frame. So memory is bounded
 * by depth x OPENS, whatever the size of the request.
 * Thread class: solo; the pipeline holds a lock around it.
 */
#include "plan/plan_int.h"

#include <string.h>

enum {
    OPENS = 64,
    WAVE_RUN_SLOTS = 8
};

/* Shards of one level that are being worked through. */
struct frame {
    struct zr_projection *proj; /* OPENS of them */
    const struct zr_level **lv; /* of each shard, counted */
    struct zr_shard **shard;    /* fed, counted */
    uint64_t *ordinal;
    uint32_t n, pos, most;
    bool waiting; /* handed out, not fed yet */
    struct zr_projector *inner;
    bool inner_active;
    struct zr_projector *leaves; /* counts the leaves of missing shards */
    struct zr_arena lists;       /* copies of list pieces and points of proj */
};

struct zr_plan {
    struct zr_plan_args a;
    const zarr_allocator *alloc;
    struct zr_projector *outer;
    struct frame *frame; /* n_levels - 1 */
    uint32_t n_frames;
    uint64_t ordinal;
    struct zr_str key;
    zarr_selection *all; /* made here when the caller gave none */
};

void zr_wave_init(struct zr_wave *w, const zarr_allocator *alloc)
{
    *w = (struct zr_wave){.kind = ZR_WAVE_END};
    zr_arena_init(&w->arena, alloc);
}

static void wave_release(struct zr_wave *w)
{
    for (uint32_t i = 0; i < w->n_runs; i++)
        if (w->run[i].shard == NULL) /* inner chunks' level is the layout's */
            zr_level_give(w->run[i].level);
    for (uint32_t i = 0; i < w->n_hold; i++)
        zr_shard_free(w->hold[i]);
    for (uint32_t i = 0; i < w->n_opens; i++) {
        zr_shard_free(w->open[i].shard);
        zr_shard_free(w->open[i].parent);
    }
    w->n_hold = w->n_opens = w->n_runs = w->n_items = 0;
    w->decoded_bytes = 0;
}

void zr_wave_deinit(struct zr_wave *w)
{
    wave_release(w);
    zr_arena_deinit(&w->arena);
}

void zr_plan_key(const struct zr_plan_args *a, const uint64_t *chunk, struct zr_str *out)
{
    zr_str_clear(out);
    if (a->prefix[0] != '\0') {
        zr_str_puts(out, a->prefix);
        zr_str_putc(out, '/');
    }
    zr_key_encoding_key(a->layout->keys, a->layout->grid->ndim, chunk, out);
}

/* ---- opening and closing --------------------------------------------------- */

/* How many shards of a level are open at once: their indexes, and their values where
 * codecs lie around them, are in memory together. */
static uint32_t opens_most(const struct zr_plan_args *a, const struct zr_level *lv)
{
    uint64_t each = lv->n_inner_all * 2 * sizeof(uint64_t), most = 0;

    if (a->plain)
        return 1;
    if (lv->bytes_decode != NULL && !zr_add_u64(each, lv->decoded_bytes, &each))
        return 1;
    most = a->wave_bytes / ZR_MAX(each, UINT64_C(1));
    return (uint32_t)ZR_MIN(ZR_MAX(most, UINT64_C(1)), (uint64_t)OPENS);
}

static zarr_status frame_init(struct frame *f, const zarr_allocator *alloc,
                              zarr_error *err)
{
    zr_arena_init(&f->lists, alloc);
    f->proj = zr_calloc(alloc, OPENS, sizeof(*f->proj));
    f->lv = zr_calloc(alloc, OPENS, sizeof(const struct zr_level *));
    f->shard = zr_calloc(alloc, OPENS, sizeof(*f->shard));
    f->ordinal = zr_calloc(alloc, OPENS, sizeof(*f->ordinal));
    if (f->proj == NULL || f->lv == NULL || f->shard == NULL || f->ordinal == NULL)
        return zr_fail_memory(err, OPENS * sizeof(*f->proj));
    return ZARR_OK;
}

static void frame_clear(struct frame *f)
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

static void frame_deinit(struct frame *f, const zarr_allocator *alloc)
{
    if (f->shard != NULL && f->lv != NULL)
        frame_clear(f);
    zr_project_free(f->inner);
    zr_project_free(f->leaves);
    zr_arena_deinit(&f->lists);
    zr_free(alloc, f->proj);
    zr_free(alloc, f->lv);
    zr_free(alloc, f->shard);
    zr_free(alloc, f->ordinal);
}

zarr_status zr_plan_open(struct zr_plan **out, const struct zr_plan_args *args,
                         const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_grid *grid = args->layout->grid;
    struct zr_plan *p = zr_calloc(alloc, 1, sizeof(*p));

    if (p == NULL)
        return zr_fail_memory(err, sizeof(*p));
    p->a = *args;
    p->alloc = alloc;
    zr_str_init(&p->key, alloc);
    if (p->a.selection == NULL) {
        ZR_TRY(zarr_selection_all(&p->all, grid->ndim, grid->shape, err));
        p->a.selection = p->all;
    }
    ZR_TRY(zr_project_open(&p->outer, alloc, grid, p->a.selection, err));
    if (args->layout->n_levels > 1) {
        p->frame = zr_calloc(alloc, args->layout->n_levels - 1, sizeof(*p->frame));
        if (p->frame == NULL)
            ZR_TRY(zr_fail_memory(err, sizeof(*p->frame)));
        p->n_frames = args->layout->n_levels - 1;
        for (uint32_t i = 0; i < p->n_frames; i++) {
            ZR_TRY(frame_init(&p->frame[i], alloc, err));
            p->frame[i].most = opens_most(args, &args->layout->level[i]);
        }
    }
    *out = p;
    p = NULL;
out:
    zr_plan_free(p);
    return st;
}

void zr_plan_free(struct zr_plan *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; p->frame != NULL && i < p->n_frames; i++)
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
                             zr_layout_leaf_shape(p->a.layout), NULL) != ZARR_OK)
        return 0;
    if (zr_project_open(&proj, p->alloc, &leaf, p->a.selection, NULL) == ZARR_OK)
        n = zr_project_count(proj);
    zr_project_free(proj);
    zr_grid_deinit(&leaf);
    return n;
}

/* ---- items ----------------------------------------------------------------- */

/* Groups of the wave under construction grow in arena blocks of doubling size. */
struct wave_builder {
    struct zr_wave *w;
    uint32_t group_cap, item_cap, hold_cap;
};

static bool arena_grow(struct zr_arena *arena, void *ptr_ptr, uint32_t *cap, uint32_t n,
                       size_t item_bytes)
{
    void **ptr = ptr_ptr;
    uint32_t want = *cap == 0 ? WAVE_RUN_SLOTS : *cap * 2;
    void *bigger = NULL;

    if (n < *cap)
        return true;
    bigger = zr_arena_alloc(arena, (size_t)want * item_bytes);
    if (bigger == NULL)
        return false;
    if (n > 0)
        memcpy(bigger, *ptr, (size_t)n * item_bytes);
    *ptr = bigger;
    *cap = want;
    return true;
}

static struct zr_item *new_item(struct wave_builder *b, const struct zr_projection *proj)
{
    struct zr_item *item = zr_arena_alloc(&b->w->arena, sizeof(*item));

    if (item == NULL || !zr_target_pack(&item->target, proj, &b->w->arena))
        return NULL;
    return item;
}

/* A group is a zr_run that has not been cut yet: all items of one source, in the order
 * they came. */
static struct zr_run *new_group(struct wave_builder *b)
{
    struct zr_wave *w = b->w;

    if (!arena_grow(&w->arena, &w->run, &b->group_cap, w->n_runs, sizeof(*w->run)))
        return NULL;
    b->item_cap = 0;
    w->run[w->n_runs] = (struct zr_run){0};
    return &w->run[w->n_runs++];
}

static zarr_status add_whole(struct zr_plan *p, struct wave_builder *b,
                             const struct zr_projection *proj, zarr_error *err)
{
    struct zr_item *item = new_item(b, proj);
    struct zr_run *group = new_group(b);
    zarr_status st = ZARR_OK;

    if (item == NULL || group == NULL)
        return zr_fail_memory(err, sizeof(*item));
    st = zr_layout_outer(p->a.layout, proj->shape, &group->level, err);
    zr_plan_key(&p->a, proj->chunk, &p->key);
    group->key = zr_arena_strndup(&b->w->arena, zr_str_text(&p->key), p->key.bytes);
    group->item = zr_arena_alloc(&b->w->arena, sizeof(struct zr_item *));
    if (st != ZARR_OK)
        return zr_prefix(err, st, "%s", zr_str_text(&p->key));
    if (group->key == NULL || group->item == NULL || p->key.failed)
        return zr_fail_memory(err, p->key.bytes);
    item->offset = 0;
    item->bytes = UINT64_MAX;
    item->ordinal = p->ordinal++;
    item->n_chunks = 1;
    item->fill_level = 0;
    group->bytes = UINT64_MAX;
    group->item[0] = item;
    group->n_items = 1;
    b->w->n_items++;
    b->w->decoded_bytes += group->level->decoded_bytes;
    return ZARR_OK;
}

static struct zr_run *shard_group(struct wave_builder *b, struct zr_shard *shard)
{
    struct zr_wave *w = b->w;
    struct zr_run *group = NULL;

    if (w->n_runs > 0 && w->run[w->n_runs - 1].shard == shard)
        return &w->run[w->n_runs - 1];
    if (!arena_grow(&w->arena, &w->hold, &b->hold_cap, w->n_hold,
                    sizeof(struct zr_shard *)))
        return NULL;
    group = new_group(b);
    if (group == NULL)
        return NULL;
    group->shard = w->hold[w->n_hold++] = zr_shard_ref(shard);
    group->level = w->level;
    group->key = shard->buffer.handle != NULL ? NULL : shard->key;
    return group;
}

static zarr_status add_inner(struct zr_plan *p, struct wave_builder *b,
                             struct zr_shard *shard, const struct zr_projection *proj,
                             uint64_t entry, uint32_t fill_level, zarr_error *err)
{
    struct zr_item *item = new_item(b, proj);
    struct zr_run *group = shard_group(b, shard);
    const struct zr_shard_index *x = shard->index;

    if (item == NULL || group == NULL ||
        !arena_grow(&b->w->arena, &group->item, &b->item_cap, group->n_items,
                    sizeof(struct zr_item *)))
        return zr_fail_memory(err, sizeof(*item));
    item->ordinal = p->ordinal++;
    item->n_chunks = 1;
    item->fill_level = fill_level;
    item->offset = 0;
    item->bytes = ZR_ITEM_MISSING;
    if (!x->missing && entry != UINT64_MAX && x->entry[2 * entry] != ZR_INDEX_MISSING) {
        item->offset = shard->base + x->entry[2 * entry];
        item->bytes = x->entry[2 * entry + 1];
    }
    group->item[group->n_items++] = item;
    b->w->n_items++;
    b->w->decoded_bytes +=
        item->bytes == ZR_ITEM_MISSING ? 0 : b->w->level->decoded_bytes;
    return ZARR_OK;
}

/* How many leaf chunks a projection on a shard of level `level` touches; 1 when that
 * cannot be told. */
static uint64_t count_leaves(struct zr_plan *p, uint32_t level,
                             const struct zr_projection *proj)
{
    const struct zr_level *lv = &p->a.layout->level[level];
    const uint64_t *leaf = zr_layout_leaf_shape(p->a.layout);
    struct frame *f = &p->frame[level];
    uint64_t edge[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < lv->ndim; d++)
        edge[d] = leaf[lv->to_array[d]];
    if (f->leaves != NULL)
        st = zr_project_reopen_inner(f->leaves, proj, NULL, NULL);
    else
        st = zr_project_open_inner(&f->leaves, p->alloc, proj, edge, NULL, NULL, NULL);
    return st == ZARR_OK ? zr_project_count(f->leaves) : 1;
}

/* One item for all that a request wants of a missing shard of level `level`. */
static zarr_status add_missing(struct zr_plan *p, struct wave_builder *b,
                               struct zr_shard *shard, const struct zr_projection *proj,
                               uint32_t level, zarr_error *err)
{
    zarr_status st = add_inner(p, b, shard, proj, UINT64_MAX, level, err);

    if (st == ZARR_OK) {
        const struct zr_run *group = &b->w->run[b->w->n_runs - 1];
        struct zr_item *item = group->item[group->n_items - 1];

        item->n_chunks = count_leaves(p, level, proj);
    }
    return st;
}

static bool wave_full(const struct zr_plan *p, const struct zr_wave *w)
{
    return w->decoded_bytes >= p->a.wave_bytes || w->n_items >= p->a.wave_items ||
           (p->a.plain && w->n_items > 0);
}

/* ---- shards ------------------------------------------------------------------- */

static uint64_t inner_entry(const struct zr_level *lv, const uint64_t *chunk)
{
    uint64_t at = 0;

    for (int32_t d = 0; d < lv->ndim; d++)
        at = at * lv->n_inner[d] + chunk[d];
    return at;
}

/* Notes one shard of level `level` in its frame and in the OPEN wave. */
static zarr_status note_open(struct zr_plan *p, struct zr_wave *w, uint32_t level,
                             const struct zr_projection *proj, struct zr_shard *parent,
                             zarr_error *err)
{
    struct frame *f = &p->frame[level];
    struct zr_open *o = &w->open[w->n_opens];

    *o = (struct zr_open){.level = level, .ordinal = p->ordinal};
    f->proj[f->n] = *proj;
    if (!zr_projection_keep(&f->proj[f->n], proj, &f->lists))
        return zr_fail_memory(err, sizeof(*proj));
    f->lv[f->n] = &p->a.layout->level[level];
    if (parent == NULL) {
        zarr_status st = ZARR_OK;

        zr_plan_key(&p->a, proj->chunk, &p->key);
        st = zr_layout_outer(p->a.layout, proj->shape, &f->lv[f->n], err);
        if (st != ZARR_OK)
            return zr_prefix(err, st, "%s", zr_str_text(&p->key));
    } else {
        uint64_t entry =
            inner_entry(p->frame[level - 1].lv[p->frame[level - 1].pos], proj->chunk);

        zr_str_clear(&p->key);
        zr_str_puts(&p->key, parent->key);
        o->offset = parent->base + parent->index->entry[2 * entry];
        o->bytes = parent->index->entry[2 * entry + 1];
    }
    f->ordinal[f->n] = p->ordinal++;
    f->shard[f->n] = NULL;
    o->lv = f->lv[f->n++];
    o->key = zr_arena_strndup(&w->arena, zr_str_text(&p->key), p->key.bytes);
    if (o->key == NULL || p->key.failed)
        return zr_fail_memory(err, p->key.bytes);
    o->parent = parent == NULL ? NULL : zr_shard_ref(parent);
    w->n_opens++;
    return ZARR_OK;
}

static zarr_status begin_opens(struct zr_plan *p, struct zr_wave *w, uint32_t level,
                               zarr_error *err)
{
    frame_clear(&p->frame[level]);
    w->kind = ZR_WAVE_OPEN;
    w->open = zr_arena_alloc(&w->arena, OPENS * sizeof(*w->open));
    return w->open != NULL ? ZARR_OK : zr_fail_memory(err, OPENS * sizeof(*w->open));
}

/* Outer shards: the next OPENS of the grid. Leaves w->kind END when there are none. */
static zarr_status open_outer(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_projection proj;

    if (!zr_project_next(p->outer, &proj))
        return ZARR_OK;
    ZR_TRY(begin_opens(p, w, 0, err));
    do {
        ZR_TRY(note_open(p, w, 0, &proj, NULL, err));
    } while (w->n_opens < p->frame[0].most && zr_project_next(p->outer, &proj));
    p->frame[0].waiting = true;
out:
    return st;
}

static zarr_status start_inner(struct zr_plan *p, struct frame *f, uint32_t level,
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
    if (f->inner != NULL)
        st = zr_project_reopen_inner(f->inner, outer, clip_ptr, err);
    else
        st = zr_project_open_inner(&f->inner, p->alloc, outer, lv->inner_shape,
                                   lv->permuted ? lv->order : NULL, clip_ptr, err);
    f->inner_active = st == ZARR_OK;
    return st;
}

/* Items from the current shard of frame `level`, whose inner chunks are leaves. */
static zarr_status pull_leaves(struct zr_plan *p, struct wave_builder *b, uint32_t level,
                               zarr_error *err)
{
    struct frame *f = &p->frame[level];
    struct zr_shard *shard = f->shard[f->pos];
    struct zr_projection proj;
    zarr_status st = ZARR_OK;

    while (!wave_full(p, b->w)) {
        if (!zr_project_next(f->inner, &proj)) {
            f->inner_active = false;
            f->pos++;
            break;
        }
        ZR_TRY(add_inner(p, b, shard, &proj, inner_entry(f->lv[f->pos], proj.chunk),
                         level + 1, err));
    }
out:
    return st;
}

/* Nested shards: opens for the next frame, and fill items for those that are missing. */
static zarr_status pull_shards(struct zr_plan *p, struct wave_builder *b, uint32_t level,
                               zarr_error *err)
{
    struct frame *f = &p->frame[level];
    struct zr_shard *shard = f->shard[f->pos];
    struct zr_projection proj;
    zarr_status st = ZARR_OK;
    uint32_t most = p->frame[level + 1].most;

    while (b->w->n_opens < most) {
        uint64_t entry = 0;

        if (wave_full(p, b->w))
            break;
        if (!zr_project_next(f->inner, &proj)) {
            f->inner_active = false;
            f->pos++;
            break;
        }
        entry = inner_entry(f->lv[f->pos], proj.chunk);
        if (shard->index->missing || shard->index->entry[2 * entry] == ZR_INDEX_MISSING) {
            ZR_TRY(add_missing(p, b, shard, &proj, level + 1, err));
            continue;
        }
        if (b->w->n_opens == 0)
            ZR_TRY(begin_opens(p, b->w, level + 1, err));
        ZR_TRY(note_open(p, b->w, level + 1, &proj, shard, err));
    }
    if (b->w->n_opens > 0)
        p->frame[level + 1].waiting = true;
out:
    return st;
}

static zarr_status pull_frame(struct zr_plan *p, struct wave_builder *b, uint32_t level,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct frame *f = &p->frame[level];

    if (!f->inner_active) {
        if (f->shard[f->pos]->index->missing) { /* one fill for all of it */
            ZR_TRY(add_missing(p, b, f->shard[f->pos], &f->proj[f->pos], level, err));
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

static struct frame *deepest_frame(struct zr_plan *p, uint32_t *level)
{
    for (uint32_t i = p->n_frames; i > 0; i--)
        if (p->frame[i - 1].pos < p->frame[i - 1].n) {
            *level = i - 1;
            return &p->frame[i - 1];
        }
    return NULL;
}

static zarr_status pull_sharded(struct zr_plan *p, struct wave_builder *b,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint32_t level = 0;

    while (!wave_full(p, b->w) && b->w->n_opens == 0) {
        if (deepest_frame(p, &level) == NULL) {
            if (b->w->n_items > 0) /* give these out first: opening takes time */
                break;
            return open_outer(p, b->w, err);
        }
        ZR_TRY(pull_frame(p, b, level, err));
    }
out:
    return st;
}

static zarr_status pull_whole(struct zr_plan *p, struct wave_builder *b, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_projection proj;

    while (!wave_full(p, b->w) && zr_project_next(p->outer, &proj))
        ZR_TRY(add_whole(p, b, &proj, err));
out:
    return st;
}

zarr_status zr_plan_next(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct wave_builder b = {.w = w};

    wave_release(w);
    zr_arena_reset(&w->arena);
    w->run = NULL;
    w->open = NULL;
    w->hold = NULL;
    w->kind = ZR_WAVE_END;
    w->level = &p->a.layout->level[p->a.layout->n_levels - 1];
    st = p->n_frames == 0 ? pull_whole(p, &b, err) : pull_sharded(p, &b, err);
    if (st != ZARR_OK)
        return st;
    /* Fill items may stand beside opens of nested shards: the wave then does both. */
    if (w->n_items > 0) {
        st = zr_wave_cut(w, &p->a, err);
        if (w->kind == ZR_WAVE_END)
            w->kind = ZR_WAVE_DATA;
    }
    return st;
}

zarr_status zr_plan_feed(struct zr_plan *p, struct zr_wave *w, zarr_error *err)
{
    struct frame *f = NULL;

    if (w->n_opens == 0)
        return ZARR_OK;
    f = &p->frame[w->open[0].level];
    if (!f->waiting || f->n != w->n_opens)
        return zr_internal(err);
    for (uint32_t i = 0; i < f->n; i++) {
        if (w->open[i].shard == NULL || w->open[i].shard->index == NULL)
            return zr_internal(err);
        f->shard[i] = w->open[i].shard;
        w->open[i].shard = NULL;
    }
    f->pos = 0;
    f->waiting = false;
    return ZARR_OK;
}
