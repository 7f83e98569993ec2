/*
 * array/io/prepare.c - checks once what a call reads or writes: options, tensor and
 * selection become one struct zr_io for the pipe.
 * Thread class: plain functions.
 */
#include "array/io/io_int.h"

#include <string.h>

/* Copies the caller's tuning, which may be NULL or compiled against an older header. */
static zarr_status tuning_read(zarr_tuning *t, const zarr_tuning *tuning, zarr_error *err)
{
    return zr_struct_read(t, sizeof *t, 2 * sizeof(uint32_t), tuning, ZR_TAIL_REFUSE,
                          "zarr_tuning", err);
}

/* Applies what the caller asks for to the io of a handle. */
static zarr_status apply_options(struct zr_io *io, const zarr_array *a,
                                 const zarr_io_options *o, const zarr_tuning *tuning,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (o->missing_chunks)
        io->missing_error = o->missing_chunks == ZARR_MISSING_ERROR;
    if (o->empty_chunks)
        io->skip_empty = o->empty_chunks == ZARR_EMPTY_CHUNKS_SKIP;
    io->no_huge_pages = (o->flags & ZARR_IO_NO_HUGE_PAGES) != 0;
    io->at_once = (o->flags & ZARR_IO_AT_ONCE) != 0;
    io->max_threads = o->max_threads;
    io->wave_bytes = tuning->wave_bytes;
    io->progress = o->progress;
    io->progress_user = o->progress_user;
    io->cancel = o->cancel;
    io->coalesce_gap = tuning->coalesce_gap;
    io->coalesce_bytes = tuning->coalesce_bytes;
    if (tuning->memory_bytes &&
        (!io->memory_bytes || tuning->memory_bytes < io->memory_bytes))
        io->memory_bytes = tuning->memory_bytes;
    io->reset_outside = o->outside == ZARR_OUTSIDE_RESET;
    io->inner_order = tuning->inner_order;
    io->present = o->present;
    io->n_present = o->n_present;
    if (tuning->pipeline)
        st = zr_ctx_pipeline(a->h.ctx, tuning->pipeline, &io->pipeline, err);
    return st;
}

/* Makes the io of a call on this state. lent: the memory of chunks that the caller has,
 * as in zr_layout_key. opts may be NULL. */
static zarr_status make_io(struct zr_io *io, const zarr_array *a,
                           struct zr_array_state *s, int32_t device_type, int32_t lent,
                           const zarr_io_options *opts, zarr_error *err)
{
    struct zr_layout_key key = {.tensor = zr_ctx_memory(a->h.ctx, device_type),
                                .lent = lent,
                                .trust = opts ? opts->trust : 0};
    zarr_tuning tuning;

    ZR_CHECK(tuning_read(&tuning, opts ? opts->tuning : NULL, err));
    key.preference = tuning.codec_preference;
    *io = (struct zr_io){
        .engine = &a->h.ctx->engine,
        .pipeline = a->pipeline,
        .store = a->chunk_store,
        .prefix = a->h.path,
        .indexes = a->indexes,
        .memory_bytes = a->h.ctx->engine.memory_limit,
        .skip_empty = a->empty_chunks == ZARR_EMPTY_CHUNKS_SKIP,
        .missing_error = a->missing_chunks == ZARR_MISSING_ERROR,
    };
    ZR_CHECK(zr_array_layout(&io->layout, a, s, &key, err));
    if (opts)
        ZR_CHECK(apply_options(io, a, opts, &tuning, err));
    return ZARR_OK;
}

zarr_status zr_array_io(struct zr_io *io, const zarr_array *a, struct zr_array_state *s,
                        int32_t device_type, const zarr_io_options *opts, zarr_error *err)
{
    return make_io(io, a, s, device_type, 0, opts, err);
}

zarr_status zr_array_memory_check(const zarr_array *a, int32_t device_type,
                                  const zarr_io_options *opts, bool write, uint64_t *need,
                                  zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(a);
    struct zr_io io = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_io(&io, a, s, device_type, opts, err));
    io.view.base.device_type = zr_ctx_memory(a->h.ctx, device_type);
    io.write = write;
    st = zr_memory_check(&io, need, err);
out:
    zr_array_state_free(s);
    return st;
}

/* The chunks that the caller has replace those of the chunk store. */
static void take_given(struct zr_io *io, const struct zr_io_given *given)
{
    io->store = given->store;
    io->indexes = NULL;
    io->sink = given->sink;
    io->sink_arg = given->sink_arg;
}

/* ---- options ------------------------------------------------------------ */

zarr_status zr_io_options_read(zarr_io_options *o, const zarr_io_options *opts,
                               zarr_error *err)
{
    const uint32_t known = ZARR_IO_NO_HUGE_PAGES | ZARR_IO_AT_ONCE;
    zarr_tuning tuning;

    ZR_CHECK(zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                            "zarr_io_options", err));
    ZR_CHECK(tuning_read(&tuning, o->tuning, err));
    if (tuning.flags)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "tuning: unknown flags 0x%" PRIx32,
                       tuning.flags);
    if (o->flags & ~known)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "io options: unknown flags 0x%" PRIx32,
                       o->flags & ~known);
    if (o->missing_chunks > ZARR_MISSING_ERROR ||
        o->empty_chunks > ZARR_EMPTY_CHUNKS_WRITE)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "io options: missing_chunks %" PRIu32 " or empty_chunks %" PRIu32
                       " is not one of its values",
                       o->missing_chunks, o->empty_chunks);
    if (o->outside > ZARR_OUTSIDE_RESET || o->trust > ZARR_TRUST_NONE || o->reserved)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "io options: outside %" PRIu32 " or trust %" PRIu32
                       " is not one of its values, or reserved is not 0",
                       o->outside, o->trust);
    if (tuning.inner_order > ZARR_INNER_ORDER_COLUMN_MAJOR || tuning.reserved)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "tuning: inner_order %" PRIu32
                       " is not one of its values, or reserved is not 0",
                       tuning.inner_order);
    if (o->stats && o->stats->struct_size == 0)
        return zr_fail(err, ZARR_ERR_ABI,
                       "zarr_stats.struct_size is 0: initialise it with ZARR_STATS_INIT");
    return ZARR_OK;
}

zarr_status zr_io_options_keep(zarr_io_options *o, zarr_tuning *tuning,
                               struct zr_arena *texts, zarr_error *err)
{
    const char **const text[] = {&o->field, &tuning->pipeline, &tuning->codec_preference};

    ZR_CHECK(tuning_read(tuning, o->tuning, err));
    o->tuning = o->tuning ? tuning : NULL;
    for (size_t i = 0; i < ZR_COUNT(text); i++) {
        const char *from = *text[i];

        if (from)
            *text[i] = zr_arena_strndup(texts, from, strlen(from));
        if (from && !*text[i])
            return zr_fail_memory(err, strlen(from));
    }
    return ZARR_OK;
}

/* ---- tensor and selection ----------------------------------------------- */

zarr_status zr_array_selection_check(const struct zr_array_state *s,
                                     const zarr_selection *sel, zarr_error *err)
{
    if (sel && !zr_selection_fits(sel, s->meta.ndim, s->meta.shape))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the selection was made for another shape than the array's");
    return ZARR_OK;
}

static zarr_status check_tensor_dtype(const zarr_tensor *t, const zarr_dtype *dtype,
                                      zarr_error *err)
{
    const uint32_t host = ZR_HOST_IS_LITTLE ? ZARR_ORDER_LITTLE : ZARR_ORDER_BIG;
    const char *have = NULL, *want = NULL;

    if (zarr_dtype_kind(dtype) == ZARR_KIND_STRUCT && zr_dtype_has_order(dtype) &&
        t->byte_order != ZR_ORDER_NATIVE && t->byte_order != host)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "tensor: structs have this machine's byte order in memory");
    if (!t->dtype || zarr_dtype_equal(t->dtype, dtype))
        return ZARR_OK;
    have =
        zarr_dtype_name(t->dtype) ? zarr_dtype_name(t->dtype) : zarr_dtype_v2(t->dtype);
    want = zarr_dtype_name(dtype) ? zarr_dtype_name(dtype) : zarr_dtype_v2(dtype);
    return zr_fail(err, ZARR_ERR_INVALID, "the tensor is %.200s, the array %.200s",
                   have ? have : "of another type",
                   want ? want : "of a type without a name");
}

bool zr_tensor_is_packed(const zarr_tensor *tensor)
{
    return tensor &&
           tensor->struct_size >= offsetof(zarr_tensor, flags) + sizeof tensor->flags &&
           (tensor->flags & ZARR_TENSOR_PACKED);
}

/* Replaces the name of a data type by the type. */
static zarr_status find_named_type(zarr_tensor *t, zarr_context *ctx, zarr_error *err)
{
    uint32_t order = ZR_ORDER_NATIVE;
    zarr_status st = ZARR_OK;

    if (t->dtype)
        ZR_FAIL(err, ZARR_ERR_INVALID, "tensor: dtype and data_type exclude each other");
    st = zr_dtype_find_any(&ctx->dtypes, t->data_type, &t->dtype, &order, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "tensor"));
    if (t->byte_order == ZR_ORDER_NATIVE && order <= ZARR_ORDER_BIG &&
        zarr_dtype_kind(t->dtype) != ZARR_KIND_STRUCT)
        t->byte_order = order;
    t->data_type = NULL;
out:
    return st;
}

zarr_status zr_io_tensor(zarr_tensor *t, const zarr_tensor *tensor, const zarr_array *a,
                         zarr_error *err)
{
    if (!tensor)
        return zr_fail(err, ZARR_ERR_INVALID, "no tensor is given");
    ZR_CHECK(zr_struct_read(t, sizeof *t, offsetof(zarr_tensor, byte_order), tensor,
                            ZR_TAIL_REFUSE, "zarr_tensor", err));
    if (t->data_type)
        ZR_CHECK(find_named_type(t, a->h.ctx, err));
    if (t->device_type == 0)
        zarr_array_memory(a, &t->device_type, &t->device_id);
    return ZARR_OK;
}

/* Sets the shape that the tensor must have: the result's, followed by that of a field's
 * subarray. */
static zarr_status want_shape(struct zr_view_want *want,
                              const struct zr_field_view *field, uint64_t *room,
                              zarr_error *err)
{
    if (want->ndim > ZARR_MAX_RANK - field->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "a result of %d dimensions and a field of %d more: at most %d",
                       (int)want->ndim, (int)field->ndim, ZARR_MAX_RANK);
    memcpy(room, want->shape, (size_t)want->ndim * sizeof *room);
    memcpy(room + want->ndim, field->shape, (size_t)field->ndim * sizeof *room);
    want->shape = room;
    want->ndim += field->ndim;
    return ZARR_OK;
}

/* Elements that point to their bytes must be in host memory, and a read needs a heap for
 * these bytes. */
static zarr_status check_variable(struct zr_io_call *c, int32_t device_type, bool write,
                                  zarr_error *err)
{
    if (device_type != ZARR_DEVICE_CPU)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "elements of variable length are in host memory only, not in "
                       "memory of device type %" PRId32,
                       device_type);
    if (!write && !c->opts.heap)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "elements of variable length need a heap (zarr_io_options.heap)");
    c->io.heap = c->opts.heap ? &c->opts.heap->heap : NULL;
    return ZARR_OK;
}

zarr_status zr_io_call_check(void *arg, bool found_none, zarr_error *err)
{
    const struct zr_io_call *c = arg;
    zarr_status st = c->io.write ? zr_array_recheck(c->array, c->state, c->io.cancel, err)
                                 : zr_array_recheck_read(c->array, c->state, &c->io,
                                                         c->io.cancel, err);

    if (st == ZARR_OK && found_none)
        st = zr_separator_check(c->array, c->state, c->io.cancel, err);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, c->array->h.path);
}

void zr_io_call_deinit(struct zr_io_call *c)
{
    zr_free(c->array->h.ctx->alloc, c->field_fill);
    if (c->packed)
        zr_packed_free(c->packed);
    if (c->parts)
        zr_io_parts_free(c);
    if (c->after.be)
        zr_stream_give(&c->array->h.ctx->engine.streams, &c->after);
}

zarr_status zr_io_view(struct zr_io_call *c, const struct zr_array_state *s,
                       const zarr_tensor *t, const zarr_dtype *dtype, struct zr_view *out,
                       zarr_error *err)
{
    const zarr_selection *sel = c->io.selection;
    const struct zr_field_view *field = &c->io.field;
    struct zr_view_want want = {.role =
                                    c->io.write ? ZR_VIEW_SOURCE : ZR_VIEW_DESTINATION};
    uint64_t room[ZARR_MAX_RANK];

    want.ndim = sel ? zarr_selection_ndim(sel) : s->meta.ndim;
    want.shape = sel ? zarr_selection_shape(sel) : s->meta.shape;
    if ((t->dtype && t->dtype != dtype) || t->byte_order != ZR_ORDER_NATIVE)
        ZR_CHECK(check_tensor_dtype(t, dtype, err));
    want.item_bytes = field->on ? field->item_bytes : c->io.layout->item_bytes;
    want.swap_unit = field->on ? field->swap_unit : c->io.layout->swap_unit;
    if (field->ndim > 0)
        ZR_CHECK(want_shape(&want, field, room, err));
    ZR_CHECK(zr_view_from_tensor(out, &c->array->h.ctx->memory, t, &want, err));
    if (zr_ctx_memory(c->array->h.ctx, t->device_type) != t->device_type) {
        out->base.device_type = ZARR_DEVICE_CPU;
        out->base.device_id = 0;
        c->io.no_huge_pages = true; /* its backend chose the pages */
    }
    if (c->io.layout->variable)
        ZR_CHECK(check_variable(c, out->base.device_type, c->io.write, err));
    return ZARR_OK;
}

/* Orders the call after the application's stream, if one is given. */
static zarr_status prepare_order(struct zr_io_call *c, const zarr_tensor *tensor,
                                 zarr_error *err)
{
    zarr_tensor t;

    ZR_CHECK(zr_io_tensor(&t, tensor, c->array, err));
    return zr_io_order(&c->after, c->array->h.ctx, t.device_type, t.device_id,
                       c->opts.stream, err);
}

zarr_status zr_io_prepare(struct zr_io_call *c, const zarr_selection *sel,
                          const zarr_tensor *tensor, const zarr_io_options *opts,
                          bool write, zarr_error *err)
{
    struct zr_array_state *s = c->state;
    const zarr_dtype *dtype = NULL;
    zarr_tensor t;

    ZR_CHECK(zr_io_options_read(&c->opts, opts, err));
    if (zr_tensor_is_packed(tensor)) {
        if (c->opts.stream)
            ZR_CHECK(prepare_order(c, tensor, err));
        ZR_CHECK(zr_stream_sync(&c->after, err)); /* it unpacks elements at once */
        ZR_CHECK(zr_packed_begin(c, sel, tensor, write, err));
        tensor = &c->packed->tensor;
        s = c->packed->bytes ? c->packed->bytes : s;
        sel = c->packed->box ? c->packed->box : sel;
    }
    ZR_CHECK(zr_io_tensor(&t, tensor, c->array, err));
    ZR_CHECK(zr_array_selection_check(s, sel, err));
    if (c->opts.stream && !c->packed)
        ZR_CHECK(prepare_order(c, &t, err));
    ZR_CHECK(make_io(&c->io, c->array, s, t.device_type,
                     c->given ? c->given->device_type : 0, &c->opts, err));
    if (c->given)
        take_given(&c->io, c->given);
    dtype = s->meta.dtype;
    if (c->opts.field)
        ZR_CHECK(zr_io_field(&c->io, s, c->opts.field, &dtype, err));
    c->io.selection = sel;
    c->io.write = write;
    c->io.session = c->session;
    ZR_CHECK(zr_io_view(c, s, &t, dtype, &c->io.view, err));
    if (c->io.field.on)
        ZR_CHECK(zr_io_field_fill(&c->field_fill, &c->io, err));
    c->io.after = c->after.queued ? &c->after : NULL;
    if (c->packed)
        c->io.elements_each = c->packed->per_item;
    if (c->packed && c->packed->elements && !write) {
        c->io.finish = zr_packed_finish;
        c->io.finish_arg = c->packed;
    }
    c->io.check = c->given ? NULL : zr_io_call_check;
    c->io.check_arg = c;
    if (c->io.memory_bytes != 0)
        return zr_request_memory_check(&c->io, err);
    return ZARR_OK;
}
