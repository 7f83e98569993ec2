/*
 * array/io/explain.c - describes what a read or write would do: asks the plan with the
 * arguments that the call itself would use. Nothing is executed, and the index cache is
 * only looked at.
 * Thread class: plain functions.
 */
#include "array/io/io_int.h"

/* An explanation and all that it points to. */
struct explained {
    zarr_explanation e; /* first: the caller has its address */
    struct zr_arena arena;
    zarr_context *ctx; /* counted */
};

static bool index_is_cached(void *arg, const char *key)
{
    const zarr_array *a = arg;
    struct zr_shard_index *x = a->indexes ? zr_index_cache_get(a->indexes, key) : NULL;

    zr_shard_index_free(x);
    return x != NULL;
}

/* NULL strides mean C order without gaps; anything else is reported as strided. */
static bool tensor_is_contiguous(const zarr_tensor *t, uint64_t item_bytes)
{
    int64_t expect = (int64_t)item_bytes, n = 0;

    if (!t || !t->strides || !t->shape)
        return true;
    for (int32_t d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] > 1 && t->strides[d] != expect)
            return false;
        if (!zr_fits(t->shape[d], &n) || !zr_mul(expect, n, &expect))
            return false;
    }
    return true;
}

static void explain_args(struct zr_explain_args *out, zarr_array *array,
                         const struct zr_io *io, uint32_t what, const zarr_tensor *tensor)
{
    *out = (struct zr_explain_args){
        .write = what == ZARR_EXPLAIN_WRITE,
        .reset_outside = io->reset_outside,
        .field = io->field.on,
        .pipeline = io->pipeline->name,
        .store_name = zr_store_name(array->chunk_store),
        .tensor_device = io->layout->device_type,
        .tensor_contiguous =
            !io->field.on && tensor_is_contiguous(tensor, io->layout->item_bytes),
        .compared = io->skip_empty &&
                    !zr_device_is_host(io->engine->memory, io->layout->device_type),
        .index_cached = index_is_cached,
        .arg = array,
    };
    out->units = zr_io_units(io);
    zr_io_cut(io, &out->plan);
}

/* What the caller asks about. */
struct asked {
    uint32_t what;
    const zarr_selection *selection;
    const zarr_tensor *tensor;
};

static zarr_status explain_to(struct explained *x, zarr_array *array,
                              const struct asked *q, const zarr_io_options *opts,
                              zarr_error *err)
{
    int32_t device, device_id;
    struct zr_array_state *s = zr_array_state_get(array);
    const struct zr_backend *backend = NULL;
    struct zr_explain_args args;
    const zarr_dtype *dtype = NULL;
    zarr_io_options o;
    struct zr_io io;
    zarr_status st = ZARR_OK;

    if (q->what > ZARR_EXPLAIN_WRITE)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "explain: %" PRIu32 " is neither a read nor a write", q->what);
    zarr_array_memory(array, &device, &device_id);
    if (q->tensor && q->tensor->device_type) {
        device = q->tensor->device_type;
        device_id = q->tensor->device_id;
    }
    ZR_TRY(zr_backend_find(&array->h.ctx->memory, device, &backend, err));
    ZR_TRY(zr_io_options_read(&o, opts, err));
    ZR_TRY(zr_array_selection_check(s, q->selection, err));
    ZR_TRY(zr_array_io(&io, array, s, device, &o, err));
    if (o.field)
        ZR_TRY(zr_io_field(&io, s, o.field, &dtype, err));
    io.selection = q->selection;
    io.view.base.device_type = device; /* its budgets decide how large waves are */
    io.view.base.device_id = device_id;
    explain_args(&args, array, &io, q->what, q->tensor);
    ZR_TRY(zr_plan_explain(&x->e, &args, &x->arena, err));
    x->e.trust = zr_array_trust(array, o.trust);
out:
    zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

zarr_status zarr_array_explain(zarr_explanation **out, zarr_array *array, uint32_t what,
                               const zarr_selection *selection, const zarr_tensor *tensor,
                               const zarr_io_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    const zarr_allocator *alloc = array->h.ctx->alloc;
    const struct asked q = {what, selection, tensor};
    struct explained *x = zr_calloc(alloc, 1, sizeof *x);
    zarr_status st;

    if (!x)
        return zr_fail_memory(err, sizeof *x);
    zr_arena_init(&x->arena, alloc);
    x->ctx = zarr_context_ref(array->h.ctx);
    st = explain_to(x, array, &q, opts, err);
    if (st == ZARR_OK)
        *out = &x->e;
    else
        zarr_explanation_free(&x->e);
    return st;
}

zarr_status zarr_explanation_text(const zarr_explanation *explanation, uint32_t form,
                                  char *text, size_t cap, size_t *text_bytes,
                                  zarr_error *err)
{
    const struct explained *x = (const struct explained *)(const void *)explanation;
    const zarr_allocator *alloc = x->ctx->alloc;
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_str s;
    zarr_status st = ZARR_OK;

    zr_str_init(&s, alloc);
    if (form > ZARR_EXPLAIN_JSON)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "explain: %" PRIu32 " is not one of ZARR_EXPLAIN_TEXT and _JSON", form);
    if (form == ZARR_EXPLAIN_JSON)
        ZR_TRY(zr_explanation_json(explanation, &s, alloc, err));
    else
        zr_explanation_print(explanation, &s);
    ZR_TRY(zr_str_status(&s, err));
    st = zr_text_give(zr_str_text(&s), s.bytes, &to, err);
out:
    zr_str_deinit(&s);
    return st;
}

void zarr_explanation_free(zarr_explanation *explanation)
{
    struct explained *x = (struct explained *)(void *)explanation;
    zarr_context *ctx;

    if (!x)
        return;
    ctx = x->ctx;
    zr_arena_deinit(&x->arena);
    zr_free(ctx->alloc, x);
    zarr_context_free(ctx);
}
