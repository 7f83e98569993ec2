/*
 * plan/explain.c - tells what a request would do: the way of its bytes (implementations,
 * copies between memories), chunks, waves, and what is not known yet (shard indexes). It
 * walks the outer level of the plan that the pipeline would use, and executes nothing.
 * explain_text.c turns it into text and JSON.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

#include <stdio.h>
#include <string.h>

enum {
    COUNT_MOST = 1 << 20
};

/* Whether the request needs an object in part. */
static bool is_partial(const struct zr_explain_args *a, const struct zr_projection *p)
{
    if (!a->write)
        return !p->whole;
    return a->field || (a->reset_outside ? !p->whole : !p->full);
}

static void walk_objects(const struct zr_explain_args *a, struct zr_projector *p,
                         struct zr_str *key, zarr_explanation *f)
{
    struct zr_projection proj;

    f->indexes_cached = 0;
    f->blocks_partial = f->blocks <= COUNT_MOST ? 0 : UINT64_MAX;
    if (f->blocks_partial != 0)
        return;
    while (zr_project_next(p, &proj)) {
        f->blocks_partial += is_partial(a, &proj);
        if (!a->index_cached || !a->plan.layout->level[0].is_shard)
            continue;
        zr_plan_key(&a->plan, proj.chunk, key);
        f->indexes_cached += a->index_cached(a->arg, zr_str_text(key));
    }
}

/* A wave of a read is full when it has its bytes or items; a wave of a write, when it has
 * its objects. */
static void count_waves(const struct zr_explain_args *a, zarr_explanation *f)
{
    const struct zr_layout *l = a->plan.layout;
    const uint64_t unit = l->level[a->write ? 0 : l->n_levels - 1].decoded_bytes;
    uint64_t per_wave = zr_ceil_div_u64(ZR_MAX(a->plan.wave_bytes, UINT64_C(1)),
                                        ZR_MAX(unit, UINT64_C(1)));

    if (a->write)
        per_wave = ZR_MAX(a->units, UINT64_C(1));
    else if (a->plan.wave_items != 0)
        per_wave = ZR_MIN(per_wave, (uint64_t)a->plan.wave_items);
    if (!a->write && a->plan.wave_items_in_order != 0)
        per_wave = ZR_MIN(per_wave, (uint64_t)a->plan.wave_items_in_order);
    f->waves = a->write ? f->blocks : f->chunks;
    if (f->waves != UINT64_MAX) /* else: too many to count */
        f->waves = zr_ceil_div_u64(f->waves, per_wave);
    if (!zr_mul(per_wave, unit, &f->wave_bytes))
        f->wave_bytes = UINT64_MAX;
}

static zarr_status count_all(const struct zr_explain_args *a, zarr_explanation *f,
                             const zarr_allocator *alloc, zarr_error *err)
{
    const struct zr_layout *l = a->plan.layout;
    struct zr_plan *plan = NULL;
    struct zr_projector *p = NULL;
    zarr_selection *all = NULL;
    const zarr_selection *sel = a->plan.selection;
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, alloc);
    if (!sel) {
        ZR_TRY(zarr_selection_dims(&all, l->grid->ndim, l->grid->shape, 0, NULL, err));
        sel = all;
    }
    ZR_TRY(zr_project_open(&p, alloc, l->grid, sel, err));
    ZR_TRY(zr_plan_open(&plan, &a->plan, alloc, err));
    f->elements = zarr_selection_n_items(sel);
    f->blocks = zr_project_count(p);
    f->chunks = zr_plan_count(plan);
    walk_objects(a, p, &key, f);
    count_waves(a, f);
    if (l->level[0].is_shard)
        f->indexes_to_fetch =
            f->blocks == UINT64_MAX ? UINT64_MAX : f->blocks - f->indexes_cached;
out:
    zr_plan_free(plan);
    zr_project_free(p);
    zarr_selection_free(all);
    zr_str_deinit(&key);
    return st;
}

/* ---- the way of the bytes ---------------------------------------------------------- */

struct route {
    const struct zr_explain_args *a;
    struct zr_arena *arena;
    const zarr_explain_step **step;
    uint32_t n, cap;
    uint32_t level, flags;  /* of the next steps */
    bool failed;            /* no memory */
    zarr_explain_step none; /* takes what is set then */
};

static const char *kept_text(struct route *r, const char *text)
{
    const char *kept = text ? zr_arena_strndup(r->arena, text, strlen(text)) : NULL;

    r->failed |= text && !kept;
    return kept;
}

/* The numbers that decided where a stage works. */
static const char *measured_text(struct route *r, const struct zr_stage *s)
{
    const struct zr_measured *m = s->measured;
    char text[256];

    snprintf(text, sizeof text,
             "%s %" PRIu64 " us a MiB, the CPU and a copy %" PRIu64
             ", with chunks of %" PRIu64 " bytes",
             m->impl, (m->device_ns + 500) / 1000, (m->host_ns + 500) / 1000,
             m->chunk_bytes);
    return kept_text(r, text);
}

/* Appends a step, or returns a step that is not part of the way. */
static zarr_explain_step *explain_step(struct route *r, uint32_t kind, int32_t from,
                                       int32_t to)
{
    zarr_explain_step *s = zr_arena_alloc(r->arena, sizeof *s);

    if (r->n == r->cap) {
        const uint32_t cap = ZR_MAX(2 * r->cap, UINT32_C(16));
        const zarr_explain_step **more = zr_arena_alloc(r->arena, cap * sizeof *more);

        if (more && r->n > 0)
            memcpy(more, r->step, r->n * sizeof *more);
        r->cap = more ? cap : r->cap;
        r->step = more ? more : r->step;
    }
    if (!s || r->n == r->cap) {
        r->failed = true;
        return &r->none;
    }
    *s = (zarr_explain_step){.struct_size = sizeof *s,
                             .kind = kind,
                             .flags = r->flags,
                             .level = r->level,
                             .from_device = from,
                             .to_device = to};
    r->step[r->n++] = s;
    return s;
}

static void explain_codec(struct route *r, zarr_explain_step *step,
                          const struct zr_stage *s)
{
    const char **names;
    uint32_t n = 0;

    for (const struct zr_stage *f = s; f; f = f->fallback)
        n++;
    names = zr_arena_alloc(r->arena, n * sizeof *names);
    if (!names) {
        r->failed = true;
        return;
    }
    n = 0;
    for (const struct zr_stage *f = s; f; f = f->fallback)
        names[n++] = kept_text(r, f->impl->vt.impl);
    step->codec = kept_text(r, zarr_codec_spec_name(&s->spec));
    if (s->measured)
        step->measured = measured_text(r, s);
    step->distrusted = kept_text(r, s->distrusted ? s->distrusted->vt.impl : NULL);
    step->implementations = names;
    step->n_implementations = n;
}

static bool is_permuted(const struct zr_program *p)
{
    bool permuted = false;

    for (int32_t d = 0; d < p->ndim; d++)
        permuted |= p->order[d] != d;
    return permuted;
}

/* What the copy between chunk and tensor also does. */
static void explain_elements(struct route *r, const struct zr_program *p)
{
    const int32_t device = p->decoded_device;

    if (p->swap_bytes > 1)
        explain_step(r, ZARR_STEP_SWAP, device, device)->swap_bytes = p->swap_bytes;
    if (is_permuted(p)) {
        int32_t *order = zr_arena_alloc(r->arena, (size_t)p->ndim * sizeof *order);

        r->failed |= !order;
        for (int32_t d = 0; order && d < p->ndim; d++)
            order[d] = p->order[d];
        explain_step(r, ZARR_STEP_TRANSPOSE, device, device)->order = order;
    }
}

static void route_program(struct route *r, const struct zr_program *p)
{
    if (p && p->encode)
        explain_elements(r, p);
    for (uint32_t i = 0; p && i < p->n; i++) {
        const struct zr_stage *s = &p->stage[p->encode ? p->n - 1 - i : i];
        const int32_t from = p->encode ? s->out_device : s->in_device;
        const int32_t to = p->encode ? s->in_device : s->out_device;

        if (s->kind == ZR_STAGE_COPY)
            explain_step(r, ZARR_STEP_COPY, from, to);
        else
            explain_codec(r, explain_step(r, ZARR_STEP_CODEC, from, to), s);
    }
    if (p && !p->encode)
        explain_elements(r, p);
}

/* Indexes are read and written in host memory. */
static void route_index(struct route *r, uint32_t level)
{
    const struct zr_level *lv = &r->a->plan.layout->level[level];

    r->level = level;
    r->flags = ZARR_STEP_OF_INDEX;
    explain_step(r, ZARR_STEP_INDEX, ZARR_DEVICE_CPU, ZARR_DEVICE_CPU)->index_chunks =
        lv->n_inner_all;
    route_program(r, r->a->write ? lv->index->encode : lv->index->decode);
    r->flags = 0;
}

static void route_read(struct route *r)
{
    const struct zr_layout *l = r->a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].decode;

    explain_step(r, ZARR_STEP_STORE, 0, p->fetch_device);
    for (uint32_t i = 0; i + 1 < l->n_levels; i++) {
        r->level = i;
        route_program(r, l->level[i].bytes_decode);
        route_index(r, i);
    }
    r->level = l->n_levels - 1;
    route_program(r, p);
    explain_step(r, ZARR_STEP_TENSOR, p->decoded_device, r->a->tensor_device);
}

/* Steps of encoding programs come in the order of encoding. */
static void route_write(struct route *r)
{
    const struct zr_layout *l = r->a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].encode;

    r->level = l->n_levels - 1;
    explain_step(r, ZARR_STEP_TENSOR, r->a->tensor_device, p->decoded_device);
    route_program(r, p);
    for (uint32_t i = l->n_levels - 1; i-- > 0;) {
        route_index(r, i);
        r->level = i;
        route_program(r, l->level[i].bytes_encode);
    }
    r->level = 0;
    explain_step(r, ZARR_STEP_STORE, p->fetch_device, 0);
}

/* A level has no encoding program if this build has no encoder for one of its codecs. */
static bool can_encode(const struct zr_layout *l)
{
    bool can = l->level[l->n_levels - 1].encode != NULL;

    for (uint32_t i = 0; i + 1 < l->n_levels; i++) {
        const struct zr_level *lv = &l->level[i];

        can &=
            lv->index->encode && (lv->bytes_encode != NULL) == (lv->bytes_decode != NULL);
    }
    return can;
}

/* The copy between tensor and chunk of a chunk that is read or written whole. It is the
 * last step of a read and the first of a write. */
static uint32_t tensor_copy(const struct zr_explain_args *a)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    const struct zr_program *p = a->write ? leaf->encode : leaf->decode;

    if (!p)
        return ZARR_EXPLAIN_COPY_NONE;
    if (p->decoded_device != a->tensor_device)
        return ZARR_EXPLAIN_COPY_BETWEEN;
    if (p->decodes_strided && p->swap_bytes <= 1)
        return ZARR_EXPLAIN_COPY_DECODER;
    if (is_permuted(p) || p->swap_bytes > 1 || !a->tensor_contiguous)
        return ZARR_EXPLAIN_COPY_STRIDED;
    return ZARR_EXPLAIN_COPY_DIRECT;
}

/* Elements that the CPU cannot read are copied to the host for the comparison with the
 * fill value, unless encoding begins with that copy. */
static bool explain_compares(const struct zr_explain_args *a)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].encode;

    return a->write && a->compared && p && p->decoded_device == a->tensor_device &&
           (p->n == 0 || p->stage[p->n - 1].kind != ZR_STAGE_COPY);
}

static uint32_t explain_flags(const struct zr_explain_args *a)
{
    const struct zr_layout *l = a->plan.layout;
    uint32_t flags = l->level[0].is_shard ? ZARR_EXPLAIN_SHARDS : 0;

    if (l->variants)
        flags |= l->smallest ? ZARR_EXPLAIN_LARGER : ZARR_EXPLAIN_SMALLER;
    if (explain_compares(a))
        flags |= ZARR_EXPLAIN_COMPARED;
    return flags;
}

static const uint64_t *kept_shape(struct route *r, const uint64_t *shape)
{
    const size_t bytes = (size_t)r->a->plan.layout->grid->ndim * sizeof *shape;
    uint64_t *kept = zr_arena_alloc(r->arena, ZR_MAX(bytes, sizeof *shape));

    r->failed |= !kept;
    if (kept && bytes > 0)
        memcpy(kept, shape, bytes);
    return kept;
}

zarr_status zr_plan_explain(zarr_explanation *out, const struct zr_explain_args *args,
                            struct zr_arena *arena, zarr_error *err)
{
    const struct zr_layout *l = args->plan.layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    const struct zarr_codec_spec *whole = zr_chain_whole_shard(leaf->chain);
    struct route r = {.a = args, .arena = arena};

    *out = (zarr_explanation){
        .struct_size = sizeof *out,
        .flags = explain_flags(args),
        .operation = args->write ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ,
        .copy = tensor_copy(args),
        .device_type = args->tensor_device,
        .ndim = l->grid->ndim,
        .threads = args->plan.threads,
        .path = kept_text(&r, args->plan.prefix),
        .store = kept_text(&r, args->store_name),
        .pipeline = kept_text(&r, args->pipeline),
        .whole_shard_codec = kept_text(&r, whole ? zarr_codec_spec_name(whole) : NULL),
        .block_shape = kept_shape(&r, l->level[0].array_shape),
        .chunk_shape = kept_shape(&r, leaf->array_shape),
        .chunk_bytes = leaf->decoded_bytes};
    ZR_CHECK(count_all(args, out, arena->alloc, err));
    if (!args->write)
        route_read(&r);
    else if (can_encode(l))
        route_write(&r);
    out->steps = r.step;
    out->n_steps = r.n;
    if (r.failed)
        return zr_fail_memory(err, sizeof **r.step);
    return ZARR_OK;
}
