/*
 * plan/explain.c - describes what a request would do, as text or JSON: the path of its
 * bytes (implementations, copies between memories), chunks, waves, and what is not known
 * yet (shard indexes). It walks the outer level of the plan that the pipeline would use,
 * and executes nothing.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

#include <string.h>

enum {
    COUNT_MOST = 1 << 20
};

struct facts {
    uint64_t objects, chunks, partial, cached, waves, elements;
    uint64_t wave_bytes; /* of as many units as fit one wave */
    bool counted;        /* each object was projected */
};

static const char *device_text(int32_t device)
{
    switch (device) {
    case ZARR_DEVICE_CPU:
        return "host";
    case ZARR_DEVICE_CUDA:
        return "cuda";
    case ZARR_DEVICE_CUDA_HOST:
        return "cuda_host";
    case ZARR_DEVICE_OPENCL:
        return "opencl";
    case ZARR_DEVICE_EXT:
        return "ext";
    case ZARR_DEVICE_CUDA_MANAGED:
        return "cuda_managed";
    default:
        return "other";
    }
}

static void walk_objects(const struct zr_explain_args *a, struct zr_projector *p,
                         struct zr_str *key, struct facts *f)
{
    struct zr_projection proj;

    f->counted = f->objects <= COUNT_MOST;
    if (!f->counted)
        return;
    while (zr_project_next(p, &proj)) {
        f->partial += a->write && !a->reset_outside ? !proj.full : !proj.whole;
        f->elements += proj.n_items;
        if (!a->index_cached || !a->plan.layout->level[0].is_shard)
            continue;
        zr_plan_key(&a->plan, proj.chunk, key);
        f->cached += a->index_cached(a->arg, zr_str_text(key));
    }
}

/* A wave of a read is full when it has its bytes or items; a wave of a write, when it has
 * its objects. */
static void count_waves(const struct zr_explain_args *a, struct facts *f)
{
    const struct zr_layout *l = a->plan.layout;
    const uint64_t unit = l->level[a->write ? 0 : l->n_levels - 1].decoded_bytes;
    uint64_t per_wave = zr_ceil_div_u64(ZR_MAX(a->plan.wave_bytes, UINT64_C(1)),
                                        ZR_MAX(unit, UINT64_C(1)));

    if (a->write)
        per_wave = ZR_MAX(a->units, UINT64_C(1));
    else if (a->plan.wave_items != 0)
        per_wave = ZR_MIN(per_wave, (uint64_t)a->plan.wave_items);
    f->waves = a->write ? f->objects : f->chunks;
    if (f->waves != UINT64_MAX) /* else: too many to count */
        f->waves = zr_ceil_div_u64(f->waves, per_wave);
    if (!zr_mul_u64(per_wave, unit, &f->wave_bytes))
        f->wave_bytes = UINT64_MAX;
}

static zarr_status collect_facts(const struct zr_explain_args *a, struct facts *f,
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
        ZR_TRY(zarr_selection_all(&all, l->grid->ndim, l->grid->shape, err));
        sel = all;
    }
    ZR_TRY(zr_project_open(&p, alloc, l->grid, sel, err));
    ZR_TRY(zr_plan_open(&plan, &a->plan, alloc, err));
    f->objects = zr_project_count(p);
    f->chunks = zr_plan_count(plan);
    walk_objects(a, p, &key, f);
    count_waves(a, f);
out:
    zr_plan_free(plan);
    zr_project_free(p);
    zarr_selection_free(all);
    zr_str_deinit(&key);
    return st;
}

static bool is_permuted(const struct zr_program *p)
{
    bool permuted = false;

    for (int32_t d = 0; d < p->ndim; d++)
        permuted |= p->order[d] != d;
    return permuted;
}

static void route_program(const struct zr_program *p, struct zr_str *out)
{
    if (!p || (p->n == 0 && p->swap_bytes <= 1 && !is_permuted(p)))
        return; /* no stage, no swap, no permutation */
    zr_str_puts(out, " -> ");
    zr_program_print(p, out);
}

static void route_index(const struct zr_level *lv, bool write, struct zr_str *out)
{
    zr_str_printf(out, " -> shard index of %" PRIu64 " chunks (", lv->n_inner_all);
    zr_program_print(write ? lv->index->encode : lv->index->decode, out);
    zr_str_putc(out, ')');
}

/* The route of the bytes of one leaf chunk, from store to tensor. */
static void route_read(const struct zr_explain_args *a, struct zr_str *out)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].decode;

    zr_str_printf(out, "%s -> %s", a->store_name, device_text(p->fetch_device));
    for (uint32_t i = 0; i + 1 < l->n_levels; i++) {
        route_program(l->level[i].bytes_decode, out);
        route_index(&l->level[i], false, out);
    }
    route_program(p, out);
    zr_str_printf(out, " -> %s", device_text(a->tensor_device));
}

/* An encoding program prints its stages in the order of encoding. */
static void route_write(const struct zr_explain_args *a, struct zr_str *out)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].encode;

    zr_str_puts(out, device_text(a->tensor_device));
    route_program(p, out);
    zr_str_printf(out, " -> %s", device_text(p->fetch_device));
    for (uint32_t i = l->n_levels - 1; i-- > 0;) {
        route_index(&l->level[i], true, out);
        route_program(l->level[i].bytes_encode, out);
    }
    zr_str_printf(out, " -> %s", a->store_name);
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

static void route(const struct zr_explain_args *a, struct zr_str *out)
{
    if (!a->write)
        route_read(a, out);
    else if (can_encode(a->plan.layout))
        route_write(a, out);
    else
        zr_str_puts(out, "cannot be written by this build");
}

/* Describes the copy between tensor and chunk for a chunk that is read or written whole.
 * It is the last step of a read and the first of a write. */
static const char *tensor_step(const struct zr_explain_args *a)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    const struct zr_program *p = a->write ? leaf->encode : leaf->decode;

    if (!p)
        return "none";
    if (p->decoded_device != a->tensor_device)
        return "copy between memories, strided";
    if (!a->write && p->n > 0 && !p->unsized && p->swap_bytes <= 1 &&
        zr_stage_strides(&p->stage[p->n - 1]))
        return "none where the decoder knows the tensor's strides, else one strided copy";
    if (is_permuted(p) && p->swap_bytes > 1)
        return "strided copy with transpose and byte swap";
    if (is_permuted(p))
        return "strided copy with transpose";
    if (p->swap_bytes > 1)
        return "strided copy with byte swap";
    if (!a->tensor_contiguous)
        return "one strided copy a chunk";
    return a->write ? "from the tensor where a chunk is contiguous there, else one "
                      "strided copy"
                    : "into the tensor where a chunk is contiguous there, else one "
                      "strided copy";
}

/* Elements that the CPU cannot read are copied to the host for the comparison with the
 * fill value, unless encoding begins with that copy. */
static const char *compared_step(const struct zr_explain_args *a)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_program *p = l->level[l->n_levels - 1].encode;

    if (!a->write || !a->compared || !p || p->decoded_device != a->tensor_device ||
        (p->n > 0 && p->stage[p->n - 1].kind == ZR_STAGE_COPY))
        return "";
    return "; to the host once, to compare with the fill value";
}

/* Counts saturate at 2^64 - 1. */
static void print_count(struct zr_str *out, const char *before, uint64_t n)
{
    if (n == UINT64_MAX)
        zr_str_printf(out, "%smore than 2^64", before);
    else
        zr_str_printf(out, "%s%" PRIu64, before, n);
}

static void print_shape(struct zr_str *out, int32_t ndim, const uint64_t *shape)
{
    zr_str_putc(out, '[');
    for (int32_t d = 0; d < ndim; d++)
        zr_str_printf(out, "%s%" PRIu64, d > 0 ? "," : "", shape[d]);
    zr_str_putc(out, ']');
}

/* If chunks differ in shape: how the others compare with that of level[0]. */
static const char *others(const struct zr_layout *l)
{
    return l->smallest ? " and larger" : " and smaller";
}

/*
 * Name of the codec that keeps inner chunks from being read alone; NULL: there is none.
 */
static const char *whole_shard(const struct zr_level *leaf)
{
    const struct zarr_codec_spec *s = zr_chain_whole_shard(leaf->chain);

    return s ? zarr_codec_spec_name(s) : NULL;
}

static void print_indexes(const struct facts *f, struct zr_str *out)
{
    const bool many = f->objects == UINT64_MAX;

    zr_str_printf(out, "indexes:      %" PRIu64 " cached", f->cached);
    print_count(out, ", ", many ? f->objects : f->objects - f->cached);
    zr_str_puts(out, " to fetch\n");
}

static void print_text(const struct zr_explain_args *a, const struct facts *f,
                       struct zr_str *out)
{
    const struct zr_layout *l = a->plan.layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];

    zr_str_printf(out, "%s \"%s\" %s store %s, tensor in %s memory\n",
                  a->write ? "write" : "read", a->plan.prefix, a->write ? "to" : "from",
                  a->store_name, device_text(a->tensor_device));
    zr_str_puts(out, "path:         ");
    route(a, out);
    zr_str_printf(out, "\ncopies:       %s%s\n", tensor_step(a), compared_step(a));
    print_count(out, "objects:      ", f->objects);
    zr_str_puts(out, " of shape ");
    print_shape(out, l->grid->ndim, l->level[0].array_shape);
    if (l->variants)
        zr_str_puts(out, others(l));
    if (f->counted)
        zr_str_printf(out, ", %" PRIu64 " %s", f->partial,
                      a->write ? "changed where something is stored" : "covered in part");
    print_count(out, "\nchunks:       ", f->chunks);
    zr_str_puts(out, " of shape ");
    print_shape(out, l->grid->ndim, leaf->array_shape);
    zr_str_printf(out, "%s, %" PRIu64 " bytes each\n",
                  l->variants && leaf == l->level ? others(l) : "", leaf->decoded_bytes);
    if (l->level[0].is_shard)
        print_indexes(f, out);
    if (whole_shard(leaf))
        zr_str_printf(out,
                      "shards:       decoded whole: %s in front of sharding_indexed does "
                      "not work element by element\n",
                      whole_shard(leaf));
    print_count(out, "waves:        ", f->waves);
    print_count(out, " of at most ", f->wave_bytes);
    zr_str_puts(out, " bytes\n");
    zr_str_printf(out, "pipeline:     %s, %" PRIu32 " threads\n", a->pipeline,
                  a->plan.threads);
}

static void json_text(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                      const char *text)
{
    zr_json_set(doc, o, key, zr_json_new_text(doc, text));
}

static void json_u64(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                     uint64_t v)
{
    zr_json_set(doc, o, key,
                v == UINT64_MAX ? zr_json_new(doc, ZR_JSON_NULL)
                                : zr_json_new_u64(doc, v)); /* null: 2^64 or more */
}

static zarr_status print_json(const struct zr_explain_args *a, const struct facts *f,
                              struct zr_str *out, const zarr_allocator *alloc,
                              zarr_error *err)
{
    const struct zr_layout *l = a->plan.layout;
    struct zr_json_doc doc;
    struct zr_json *o = NULL;
    struct zr_str path, copies;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    zr_str_init(&path, alloc);
    zr_str_init(&copies, alloc);
    o = zr_json_new(&doc, ZR_JSON_OBJECT);
    route(a, &path);
    json_text(&doc, o, "operation", a->write ? "write" : "read");
    json_text(&doc, o, "store", a->store_name);
    json_text(&doc, o, "memory", device_text(a->tensor_device));
    json_text(&doc, o, "path", zr_str_text(&path));
    zr_str_printf(&copies, "%s%s", tensor_step(a), compared_step(a));
    json_text(&doc, o, "copies", zr_str_text(&copies));
    json_u64(&doc, o, "objects", f->objects);
    if (f->counted)
        json_u64(&doc, o, "objects_partial", f->partial);
    json_u64(&doc, o, "chunks", f->chunks);
    if (l->variants && l->n_levels == 1)
        zr_json_set(&doc, o, "chunks_differ", zr_json_new_bool(&doc, true));
    json_u64(&doc, o, "chunk_bytes", l->level[l->n_levels - 1].decoded_bytes);
    if (l->level[0].is_shard) {
        json_u64(&doc, o, "indexes_cached", f->cached);
        json_u64(&doc, o, "indexes_to_fetch",
                 f->objects == UINT64_MAX ? f->objects : f->objects - f->cached);
    }
    if (whole_shard(&l->level[l->n_levels - 1]))
        json_text(&doc, o, "shard_whole_for", whole_shard(&l->level[l->n_levels - 1]));
    json_u64(&doc, o, "waves", f->waves);
    json_u64(&doc, o, "wave_bytes", f->wave_bytes);
    json_text(&doc, o, "pipeline", a->pipeline);
    json_u64(&doc, o, "threads", a->plan.threads);
    if (!zr_json_ok(&doc) || path.failed || copies.failed)
        st = zr_fail_memory(err, 0);
    else
        zr_json_write(o, 2, out);
    zr_str_deinit(&path);
    zr_str_deinit(&copies);
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_plan_explain(const struct zr_explain_args *args, struct zr_str *out,
                            const zarr_allocator *alloc, zarr_error *err)
{
    struct facts f = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(collect_facts(args, &f, alloc, err));
    if (args->json)
        ZR_TRY(print_json(args, &f, out, alloc, err));
    else
        print_text(args, &f, out);
    ZR_TRY(zr_str_status(out, err));
out:
    return st;
}
