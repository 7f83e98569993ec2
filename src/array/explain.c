/*
 * array/explain.c - describes what a read or write would do, as text or JSON: asks the
 * plan with the arguments that the call itself would use. Nothing is executed, and the
 * index cache is only looked at.
 * Thread class: plain function.
 */
#include "array/array_int.h"

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
    int64_t expect = (int64_t)item_bytes;

    if (!t || !t->strides || !t->shape)
        return true;
    for (int32_t d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] > 1 && t->strides[d] != expect)
            return false;
        if (!zr_mul_i64(expect, t->shape[d], &expect))
            return false;
    }
    return true;
}

static void explain_args(struct zr_explain_args *out, zarr_array *array,
                         const struct zr_io *io, uint32_t what, const zarr_tensor *tensor)
{
    *out = (struct zr_explain_args){
        .write = (what & ZARR_EXPLAIN_WRITE) != 0,
        .json = (what & ZARR_EXPLAIN_JSON) != 0,
        .reset_outside = io->reset_outside,
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

static zarr_status explain_to(struct zr_str *text, zarr_array *array, uint32_t what,
                              const zarr_selection *sel, const zarr_tensor *tensor,
                              const zarr_io_options *opts, zarr_error *err)
{
    const int32_t device =
        tensor && tensor->device_type ? tensor->device_type : array->device_type;
    struct zr_array_state *s = zr_array_state_get(array);
    struct zr_explain_args args;
    const zarr_dtype *dtype = NULL;
    zarr_io_options o;
    struct zr_io io;
    zarr_status st = ZARR_OK;

    if (what & ~(uint32_t)(ZARR_EXPLAIN_WRITE | ZARR_EXPLAIN_JSON))
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID, "explain: unknown flags 0x%" PRIx32, what));
    ZR_TRY(zr_io_options_read(&o, opts, err));
    ZR_TRY(zr_array_selection_check(s, sel, err));
    ZR_TRY(zr_array_io(&io, array, s, device, o.codec_preference, err));
    ZR_TRY(zr_io_options_apply(&io, array, &o, err));
    ZR_TRY(zr_io_field(&io, s, o.field, &dtype, err));
    io.selection = sel;
    explain_args(&args, array, &io, what, tensor);
    ZR_TRY(zr_plan_explain(&args, text, array->h.ctx->alloc, err));
    ZR_TRY(zr_str_status(text, err));
out:
    if (st != ZARR_OK)
        zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

/* NOLINT(function-size): public; a read's arguments, and a buffer as snprintf takes it */
zarr_status zarr_array_explain(zarr_array *array, uint32_t what,
                               const zarr_selection *selection, const zarr_tensor *tensor,
                               const zarr_io_options *opts, char *text, size_t cap,
                               size_t *text_bytes, zarr_error *err)
{
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_str s;
    zarr_status st = ZARR_OK;

    zr_str_init(&s, array->h.ctx->alloc);
    st = explain_to(&s, array, what, selection, tensor, opts, err);
    if (st == ZARR_OK)
        st = zr_text_give(zr_str_text(&s), s.bytes, &to);
    zr_str_deinit(&s);
    return st;
}
