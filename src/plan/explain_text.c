/*
 * plan/explain_text.c - an explanation as lines for people, and as JSON for programs.
 * Both have only what the struct has.
 * Thread class: plain functions.
 */
#include "plan/plan_int.h"

/* ---- lines ------------------------------------------------------------------------- */

/* Counts that no number holds are UINT64_MAX. */
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

static void print_step(const zarr_explanation *e, const zarr_explain_step *s,
                       struct zr_str *out)
{
    const bool write = e->operation == ZARR_EXPLAIN_WRITE;

    switch (s->kind) {
    case ZARR_STEP_STORE:
        if (write)
            zr_device_print(out, s->from_device);
        zr_str_printf(out, "%s%s%s", write ? " -> " : "", e->store, write ? "" : " -> ");
        if (!write)
            zr_device_print(out, s->to_device);
        break;
    case ZARR_STEP_CODEC:
        zr_str_printf(out, "%s@", s->codec);
        for (uint32_t i = 0; i < s->n_implementations; i++)
            zr_str_printf(out, "%s%s", i > 0 ? "/" : "", s->implementations[i]);
        break;
    case ZARR_STEP_COPY:
        zr_str_puts(out, "copy ");
        zr_device_print(out, s->from_device);
        zr_str_puts(out, "->");
        zr_device_print(out, s->to_device);
        break;
    case ZARR_STEP_SWAP:
        zr_str_printf(out, "swap %" PRIu32, s->swap_bytes);
        break;
    case ZARR_STEP_TRANSPOSE:
        zr_str_puts(out, "transpose(");
        for (int32_t d = 0; d < e->ndim; d++)
            zr_str_printf(out, "%s%" PRId32, d > 0 ? "," : "", s->order[d]);
        zr_str_putc(out, ')');
        break;
    default:
        zr_device_print(out, e->device_type);
    }
}

/* Prints the index at e->steps[i] with its codecs, and returns the number of the step
 * after them. */
static uint32_t print_index(const zarr_explanation *e, uint32_t i, struct zr_str *out)
{
    const char *join = "";

    zr_str_printf(out, "shard index of %" PRIu64 " chunks (", e->steps[i]->index_chunks);
    for (i++; i < e->n_steps && e->steps[i]->flags & ZARR_STEP_OF_INDEX &&
              e->steps[i]->kind != ZARR_STEP_INDEX;
         i++) {
        zr_str_puts(out, join);
        print_step(e, e->steps[i], out);
        join = " -> ";
    }
    zr_str_printf(out, "%s)", *join ? "" : "raw");
    return i;
}

static void print_way(const zarr_explanation *e, struct zr_str *out)
{
    uint32_t i = 0;

    if (e->n_steps == 0)
        zr_str_puts(out, "cannot be written by this build");
    while (i < e->n_steps) {
        zr_str_puts(out, i > 0 ? " -> " : "");
        if (e->steps[i]->kind == ZARR_STEP_INDEX)
            i = print_index(e, i, out);
        else
            print_step(e, e->steps[i++], out);
    }
}

static bool has_step(const zarr_explanation *e, uint32_t kind)
{
    for (uint32_t i = 0; i < e->n_steps; i++)
        if (e->steps[i]->kind == kind && !(e->steps[i]->flags & ZARR_STEP_OF_INDEX))
            return true;
    return false;
}

static void print_copies(const zarr_explanation *e, struct zr_str *out)
{
    const bool swap = has_step(e, ZARR_STEP_SWAP);
    const bool turn = has_step(e, ZARR_STEP_TRANSPOSE);

    if (e->copy == ZARR_EXPLAIN_COPY_NONE)
        zr_str_puts(out, "none");
    else if (e->copy == ZARR_EXPLAIN_COPY_BETWEEN)
        zr_str_puts(out, "copy between memories, strided");
    else if (e->copy == ZARR_EXPLAIN_COPY_DECODER)
        zr_str_puts(out, "none where the decoder knows the tensor's strides, else one "
                         "strided copy");
    else if (e->copy == ZARR_EXPLAIN_COPY_DIRECT)
        zr_str_printf(out,
                      "%s the tensor where a chunk is contiguous there, else one "
                      "strided copy",
                      e->operation == ZARR_EXPLAIN_WRITE ? "from" : "into");
    else if (swap || turn)
        zr_str_printf(out, "strided copy with %s%s%s", turn ? "transpose" : "",
                      turn && swap ? " and " : "", swap ? "byte swap" : "");
    else
        zr_str_puts(out, "one strided copy a chunk");
    if (e->flags & ZARR_EXPLAIN_COMPARED)
        zr_str_puts(out, "; to the host once, to compare with the fill value");
}

/* How the other objects compare with the shape that is shown. */
static const char *others(const zarr_explanation *e)
{
    return e->flags & ZARR_EXPLAIN_LARGER    ? " and larger"
           : e->flags & ZARR_EXPLAIN_SMALLER ? " and smaller"
                                             : "";
}

static void print_objects(const zarr_explanation *e, struct zr_str *out)
{
    const bool write = e->operation == ZARR_EXPLAIN_WRITE;

    print_count(out, "blocks:       ", e->blocks);
    zr_str_puts(out, " of shape ");
    print_shape(out, e->ndim, e->block_shape);
    zr_str_puts(out, others(e));
    if (e->blocks_partial != UINT64_MAX)
        zr_str_printf(out, ", %" PRIu64 " %s", e->blocks_partial,
                      write ? "changed where something is stored" : "covered in part");
    print_count(out, "\nchunks:       ", e->chunks);
    zr_str_puts(out, " of shape ");
    print_shape(out, e->ndim, e->chunk_shape);
    zr_str_printf(out, "%s, %" PRIu64 " bytes each\n",
                  e->flags & ZARR_EXPLAIN_SHARDS ? "" : others(e), e->chunk_bytes);
    if (e->flags & ZARR_EXPLAIN_SHARDS) {
        zr_str_printf(out, "indexes:      %" PRIu64 " cached", e->indexes_cached);
        print_count(out, ", ", e->indexes_to_fetch);
        zr_str_puts(out, " to fetch\n");
    }
    if (e->whole_shard_codec)
        zr_str_printf(out,
                      "shards:       decoded whole: %s in front of sharding_indexed does "
                      "not work element by element\n",
                      e->whole_shard_codec);
}

/* Why decoders were not chosen. */
static void print_trust(const zarr_explanation *e, struct zr_str *out)
{
    for (uint32_t i = 0; i < e->n_steps; i++)
        if (e->steps[i]->distrusted)
            zr_str_printf(
                out, "trust:        %s: not %s@%s, which does not check its input%s\n",
                zr_trust_name(e->trust), e->steps[i]->codec, e->steps[i]->distrusted,
                e->trust == ZARR_TRUST_VERIFIED ? ", because no checksum codec follows"
                                                : "");
}

static void print_measured(const zarr_explanation *e, struct zr_str *out)
{
    for (uint32_t i = 0; i < e->n_steps; i++)
        if (e->steps[i]->measured)
            zr_str_printf(out, "measured:     %s: %s\n", e->steps[i]->codec,
                          e->steps[i]->measured);
}

void zr_explanation_print(const zarr_explanation *e, struct zr_str *out)
{
    const bool write = e->operation == ZARR_EXPLAIN_WRITE;

    zr_str_printf(out, "%s \"%s\" %s store %s, tensor in ", write ? "write" : "read",
                  e->path, write ? "to" : "from", e->store);
    zr_device_print(out, e->device_type);
    zr_str_puts(out, " memory\npath:         ");
    print_way(e, out);
    zr_str_puts(out, "\ncopies:       ");
    print_copies(e, out);
    zr_str_putc(out, '\n');
    print_trust(e, out);
    print_measured(e, out);
    print_objects(e, out);
    print_count(out, "waves:        ", e->waves);
    print_count(out, " of at most ", e->wave_bytes);
    zr_str_printf(out, " bytes\npipeline:     %s, %" PRIu32 " threads\n", e->pipeline,
                  e->threads);
}

/* ---- JSON -------------------------------------------------------------------------- */

static void explain_put_text(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                             const char *text)
{
    if (text)
        zr_json_set(doc, o, key, zr_json_new_text(doc, text));
}

static void explain_put_count(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                              uint64_t n)
{
    zr_json_set(doc, o, key,
                n == UINT64_MAX ? zr_json_new(doc, ZR_JSON_NULL)
                                : zr_json_new_u64(doc, n));
}

static void explain_put_flag(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                             bool on)
{
    if (on)
        zr_json_set(doc, o, key, zr_json_new_bool(doc, true));
}

static void explain_put_device(struct zr_json_doc *doc, struct zr_json *o,
                               const char *key, int32_t device)
{
    if (device != 0)
        zr_json_set(doc, o, key, zr_json_new_i64(doc, device));
}

static void explain_put_shape(struct zr_json_doc *doc, struct zr_json *o, const char *key,
                              const zarr_explanation *e, const uint64_t *shape)
{
    struct zr_json *list = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t d = 0; d < e->ndim; d++)
        zr_json_append(doc, list, zr_json_new_u64(doc, shape[d]));
    zr_json_set(doc, o, key, list);
}

static struct zr_json *step_json(struct zr_json_doc *doc, const zarr_explanation *e,
                                 const zarr_explain_step *s)
{
    static const char *const kinds[] = {"",     "store", "index",     "codec",
                                        "copy", "swap",  "transpose", "tensor"};
    struct zr_json *o = zr_json_new(doc, ZR_JSON_OBJECT), *list;

    explain_put_text(doc, o, "kind", kinds[s->kind]);
    explain_put_flag(doc, o, "of_index", s->flags & ZARR_STEP_OF_INDEX);
    explain_put_count(doc, o, "level", s->level);
    explain_put_device(doc, o, "from_device", s->from_device);
    explain_put_device(doc, o, "to_device", s->to_device);
    explain_put_text(doc, o, "codec", s->codec);
    if (s->n_implementations > 0) {
        list = zr_json_new(doc, ZR_JSON_ARRAY);
        for (uint32_t i = 0; i < s->n_implementations; i++)
            zr_json_append(doc, list, zr_json_new_text(doc, s->implementations[i]));
        zr_json_set(doc, o, "implementations", list);
    }
    explain_put_text(doc, o, "distrusted", s->distrusted);
    explain_put_text(doc, o, "measured", s->measured);
    if (s->kind == ZARR_STEP_SWAP)
        explain_put_count(doc, o, "swap_bytes", s->swap_bytes);
    if (s->kind == ZARR_STEP_INDEX)
        explain_put_count(doc, o, "index_chunks", s->index_chunks);
    if (s->order) {
        list = zr_json_new(doc, ZR_JSON_ARRAY);
        for (int32_t d = 0; d < e->ndim; d++)
            zr_json_append(doc, list, zr_json_new_i64(doc, s->order[d]));
        zr_json_set(doc, o, "order", list);
    }
    return o;
}

static void explain_put_numbers(struct zr_json_doc *doc, struct zr_json *o,
                                const zarr_explanation *e)
{
    explain_put_count(doc, o, "elements", e->elements);
    explain_put_count(doc, o, "blocks", e->blocks);
    explain_put_count(doc, o, "blocks_partial", e->blocks_partial);
    explain_put_shape(doc, o, "block_shape", e, e->block_shape);
    explain_put_flag(doc, o, "smaller", e->flags & ZARR_EXPLAIN_SMALLER);
    explain_put_flag(doc, o, "larger", e->flags & ZARR_EXPLAIN_LARGER);
    explain_put_count(doc, o, "chunks", e->chunks);
    explain_put_shape(doc, o, "chunk_shape", e, e->chunk_shape);
    explain_put_count(doc, o, "chunk_bytes", e->chunk_bytes);
    if (e->flags & ZARR_EXPLAIN_SHARDS) {
        explain_put_count(doc, o, "indexes_cached", e->indexes_cached);
        explain_put_count(doc, o, "indexes_to_fetch", e->indexes_to_fetch);
    }
    explain_put_text(doc, o, "whole_shard_codec", e->whole_shard_codec);
    explain_put_count(doc, o, "waves", e->waves);
    explain_put_count(doc, o, "wave_bytes", e->wave_bytes);
    explain_put_text(doc, o, "pipeline", e->pipeline);
    explain_put_count(doc, o, "threads", e->threads);
}

zarr_status zr_explanation_json(const zarr_explanation *e, struct zr_str *out,
                                const zarr_allocator *alloc, zarr_error *err)
{
    static const char *const copies[] = {"none", "between", "strided", "decoder",
                                         "direct"};
    struct zr_json_doc doc;
    struct zr_json *o, *steps;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    o = zr_json_new(&doc, ZR_JSON_OBJECT);
    steps = zr_json_new(&doc, ZR_JSON_ARRAY);
    explain_put_text(&doc, o, "operation",
                     e->operation == ZARR_EXPLAIN_WRITE ? "write" : "read");
    explain_put_text(&doc, o, "path", e->path);
    explain_put_text(&doc, o, "store", e->store);
    explain_put_device(&doc, o, "device_type", e->device_type);
    for (uint32_t i = 0; i < e->n_steps; i++)
        zr_json_append(&doc, steps, step_json(&doc, e, e->steps[i]));
    zr_json_set(&doc, o, "steps", steps);
    explain_put_text(&doc, o, "copy", copies[e->copy]);
    explain_put_flag(&doc, o, "compared", e->flags & ZARR_EXPLAIN_COMPARED);
    if (e->operation == ZARR_EXPLAIN_READ)
        explain_put_text(&doc, o, "trust", zr_trust_name(e->trust));
    explain_put_numbers(&doc, o, e);
    if (!zr_json_is_ok(&doc))
        st = zr_fail_memory(err, 0);
    else
        zr_json_write(o, 2, out);
    zr_json_doc_deinit(&doc);
    return st;
}
