/* plugin_codec.c - the tables of a codec that is written in Python, and of an
 * implementation of a codec. All chunks of a wave are one question. The input of a codec
 * is shown to Python as a copy, and the answer is copied into the library's memory,
 * within its bounds. An implementation gets the memory itself. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

static const struct zx_plug *find_plug(const zarr_codec_spec *spec)
{
    return zx_plug_find(ZARR_REGISTRY_CODEC, zarr_codec_spec_name(spec), NULL);
}

static zarr_status fail_gone(zarr_error *err, const char *name)
{
    return zx_plug_fail(err, ZARR_ERR_INTERNAL, name, "no such codec is registered");
}

/* ---- the specification ------------------------------------------------------ */

static zarr_status canonical(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct zx_plug *p = find_plug(raw);
    struct zx_ask q = {
        .what = ZX_ASK_CANONICAL, .json = zarr_codec_spec_json(raw), .format = format};
    zarr_status status;

    if (!p)
        return fail_gone(err, zarr_codec_spec_name(raw));
    q.number = p->number;
    status = zx_ask(&q, err);
    zx_ask_text(&q, text, cap, text_bytes);
    return status;
}

static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const struct zx_plug *p = find_plug(spec);
    struct zx_ask q = {.what = ZX_ASK_RESOLVE,
                       .json = zarr_codec_spec_json(spec),
                       .decoded = in,
                       .chunk = out,
                       .chunk_fill = fill_out};
    zarr_status status;

    if (!p)
        return fail_gone(err, zarr_codec_spec_name(spec));
    q.number = p->number;
    status = zx_ask(&q, err);
    if (status == ZARR_OK && q.dtype[0])
        status = zarr_codec_spec_dtype(&out->dtype, spec, q.dtype, err);
    if (status == ZARR_OK && p->kind == ZARR_CODEC_ARRAY_ARRAY && q.out) {
        if (q.out_bytes != zarr_dtype_item_bytes(out->dtype))
            status = zx_plug_fail(err, ZARR_ERR_INVALID, p->name,
                                  "the fill value is no element of its data type");
        else {
            memcpy(fill_out, q.out, (size_t)q.out_bytes);
            out->fill = fill_out;
        }
    }
    free(q.out);
    return status;
}

static int lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    const struct zx_plug *p = find_plug(spec);

    (void)in;
    return p && p->is_lossy;
}

/* ---- the implementation ----------------------------------------------------- */

struct bound {
    uint64_t number;
    zarr_codec_next *next; /* owned: what an implementation may wrap; NULL: nothing */
    struct zx_chunk decoded, encoded;
    char json[];
};

static void keep(struct zx_chunk *out, const zarr_chunk_spec *in)
{
    memset(out, 0, sizeof *out);
    if (!in)
        return;
    out->spec = *in;
    out->spec.fill = NULL;
    if (in->fill && in->dtype && zarr_dtype_item_bytes(in->dtype) <= ZX_FILL_BYTES) {
        memcpy(out->fill, in->fill, (size_t)zarr_dtype_item_bytes(in->dtype));
        out->spec.fill = out->fill;
    }
}

static zarr_status make_bound(struct bound **out, const struct zx_plug *p,
                              const zarr_codec_spec *spec, const zarr_codec_binding *to,
                              zarr_error *err)
{
    const char *json = zarr_codec_spec_json(spec);
    const size_t n = strlen(json) + 1;
    struct bound *b;

    if (!p)
        return fail_gone(err, zarr_codec_spec_name(spec));
    if ((to->decoded->dtype && zarr_dtype_variable(to->decoded->dtype)) ||
        (to->encoded->dtype && zarr_dtype_variable(to->encoded->dtype)))
        return zx_plug_fail(err, ZARR_ERR_UNSUPPORTED, p->name,
                            "codecs of Python take elements of a fixed size");
    b = malloc(sizeof *b + n);
    if (!b)
        return zx_plug_fail(err, ZARR_ERR_NO_MEMORY, p->name, "no memory");
    b->number = p->number;
    b->next = NULL;
    keep(&b->decoded, to->decoded);
    keep(&b->encoded, to->encoded);
    memcpy(b->json, json, n);
    *out = b;
    return ZARR_OK;
}

static zarr_status bind(void **self, const zarr_codec_spec *spec,
                        const zarr_codec_binding *to, zarr_error *err)
{
    struct bound *b = NULL;
    const zarr_status status = make_bound(&b, find_plug(spec), spec, to, err);

    *self = b;
    return status;
}

static void finish(void *self)
{
    zarr_codec_next_close(((struct bound *)self)->next);
    free(self);
}

static zarr_status bind_impl(void **self, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    struct bound *b = NULL;
    zarr_status status = make_bound(
        &b, zx_plug_find(ZARR_REGISTRY_CODEC_IMPL, to->impl, zarr_codec_spec_name(spec)),
        spec, to, err);

    if (status == ZARR_OK) {
        struct zx_ask q = {.what = ZX_ASK_BIND,
                           .number = b->number,
                           .json = b->json,
                           .decoded = &b->decoded.spec,
                           .encoded = &b->encoded.spec};

        status = zx_ask(&q, err);
        free(q.out);
    }
    if (status == ZARR_OK) {
        status = zarr_codec_next_open(&b->next, to, err);
        if (status == ZARR_ERR_UNSUPPORTED) /* it is the last one */
            status = ZARR_OK;
    }
    if (status == ZARR_OK)
        *self = b;
    else if (b)
        finish(b);
    return status;
}

/* For what the implementation wraps; its own calls need none. */
static uint64_t scratch(void *self, uint64_t n, uint64_t max_out)
{
    const zarr_codec_next *next = ((const struct bound *)self)->next;

    return next ? zarr_codec_next_scratch(next, n, max_out) : 0;
}

static zarr_status run(void *self, uint32_t what, zarr_codec_job *jobs, uint64_t n,
                       zarr_codec_exec *exec, zarr_error *err)
{
    struct bound *b = self;
    struct zx_ask q = {.what = what,
                       .number = b->number,
                       .json = b->json,
                       .decoded = &b->decoded.spec,
                       .encoded = &b->encoded.spec,
                       .jobs = jobs,
                       .n = n,
                       .next = b->next,
                       .exec = exec};

    zarr_status status;

    for (uint64_t i = 0; i < n; i++) { /* until Python answers */
        jobs[i].status = ZARR_ERR_IO;
        jobs[i].dst_used = 0;
    }
    status = zx_ask(&q, err);
    for (uint64_t i = 0; i < n && status != ZARR_OK; i++)
        if (jobs[i].status == ZARR_ERR_IO) /* it failed for all of them */
            jobs[i].status = status;
    return status;
}

static zarr_status encode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    return run(self, ZX_ASK_ENCODE, jobs, n, exec, err);
}

static zarr_status decode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    return run(self, ZX_ASK_DECODE, jobs, n, exec, err);
}

static zarr_status encode_there(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    return run(self, ZX_ASK_ENCODE_THERE, jobs, n, exec, err);
}

static zarr_status decode_there(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    return run(self, ZX_ASK_DECODE_THERE, jobs, n, exec, err);
}

zarr_status zx_codec_register(zarr_context *ctx, const struct zx_plug *p, zarr_error *err)
{
    const zarr_codec_spec_vtable meaning = {.struct_size = sizeof meaning,
                                            .flags =
                                                p->flags | ZARR_CODEC_SPEC_EXPERIMENTAL,
                                            .name = p->name,
                                            .kind = p->kind,
                                            .canonical = canonical,
                                            .resolve = resolve,
                                            .lossy = lossy};
    const uint32_t format =
        p->flags & ZARR_CODEC_SPEC_V2 ? ZARR_CODEC_FOR_V2 : ZARR_CODEC_FOR_V3;
    const zarr_codec_impl_vtable way = {.struct_size = sizeof way,
                                        .caps = ZARR_CODEC_CAN_DECODE |
                                                ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |
                                                ZARR_CODEC_SAFE | format,
                                        .codec = p->name,
                                        .impl = "cpu.python",
                                        .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                        .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                        .bind = bind,
                                        .encode = encode,
                                        .decode = decode,
                                        .close = finish};
    zarr_status status =
        zarr_context_register_codec_spec(ctx, &meaning, "zarrc.plugins", err);

    if (status == ZARR_OK)
        status = zarr_context_register_codec_impl(ctx, &way, "zarrc.plugins", err);
    return status;
}

/* In memory of a device, chunks begin where an implementation may read words of any
 * size. */
zarr_status zx_impl_register(zarr_context *ctx, const struct zx_plug *p, zarr_error *err)
{
    const bool is_host = p->kind == ZARR_DEVICE_CPU;
    const zarr_codec_impl_vtable way = {.struct_size = sizeof way,
                                        .caps = p->flags | ZARR_CODEC_BATCH,
                                        .codec = p->other,
                                        .impl = p->name,
                                        .in_kinds = ZARR_MEMORY_BIT(p->kind),
                                        .out_kinds = ZARR_MEMORY_BIT(p->kind),
                                        .priority = p->priority,
                                        .alignment = is_host ? 0 : 256,
                                        .bind = bind_impl,
                                        .scratch = scratch,
                                        .encode = encode_there,
                                        .decode = decode_there,
                                        .close = finish};

    return zarr_context_register_codec_impl(ctx, &way, "zarrc.plugins", err);
}
