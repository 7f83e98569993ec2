/* unit/array/foreign.c - an application's own codecs and chunk key encoding. */
#include "foreign.h"

#include <stdbool.h>

/* ---- codecs -------------------------------------------------------------- */

enum {
    TURN = 0x5a
};

atomic_int n_partial, n_whole;

static char *at(const zarr_memory *m)
{
    return (char *)m->handle + m->offset;
}

static zarr_status finish(zarr_codec_job *job)
{
    job->dst_used = job->src.bytes;
    return job->status = ZARR_OK;
}

static bool fits(zarr_codec_job *job)
{
    job->status = job->dst.bytes < job->src.bytes ? ZARR_ERR_CORRUPT : ZARR_OK;
    return job->status == ZARR_OK;
}

/* XORs every byte with `with`. Applying it twice gives the old bytes back. */
static zarr_status flip(zarr_codec_job *jobs, uint64_t n, char with)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!fits(&jobs[i]))
            return jobs[i].status;
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            at(&jobs[i].dst)[k] = (char)(at(&jobs[i].src)[k] ^ with);
        (void)finish(&jobs[i]);
    }
    return ZARR_OK;
}

/* Inverts every bit. Also used as an array->bytes codec. */
static zarr_status neg(void *self, zarr_codec_job *jobs, uint64_t n,
                       zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    return flip(jobs, n, '\xff');
}

/* Reverses the order of the elements of a chunk. */
static zarr_status mirror(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bytes = jobs[i].src.bytes;

        if (!fits(&jobs[i]))
            return jobs[i].status;
        for (uint64_t k = 0; k + 2 <= bytes; k += 2)
            memcpy(at(&jobs[i].dst) + bytes - 2 - k, at(&jobs[i].src) + k, 2);
        (void)finish(&jobs[i]);
    }
    return ZARR_OK;
}

static zarr_status turn(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    atomic_fetch_add(&n_whole, 1);
    return flip(jobs, n, TURN);
}

static zarr_status turn_partial(void *self, zarr_codec_job *job,
                                const zarr_codec_range *ranges, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    uint64_t used = 0, last = 0;

    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t r = 0; r < n; r++) {
        if (ranges[r].offset < last) /* the ranges are not in order */
            return job->status = ZARR_ERR_INTERNAL;
        last = ranges[r].offset + ranges[r].bytes;
        if (last > job->dst.bytes || last > job->src.bytes)
            return job->status = ZARR_ERR_CORRUPT;
        for (uint64_t k = ranges[r].offset; k < last; k++)
            at(&job->dst)[k] = (char)(at(&job->src)[k] ^ TURN);
        used += ranges[r].bytes;
    }
    job->dst_used = used;
    atomic_fetch_add(&n_partial, 1);
    return job->status = ZARR_OK;
}

static zarr_status resolve_neg(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    int16_t fill = 0;

    (void)spec;
    (void)err;
    if (in->fill)
        memcpy(&fill, in->fill, sizeof fill);
    fill = (int16_t)~fill;
    memcpy(fill_out, &fill, sizeof fill);
    out->fill = fill_out;
    return ZARR_OK;
}

static zarr_status resolve_mirror(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)err;
    if (in->fill)
        memcpy(fill_out, in->fill, sizeof(int16_t));
    out->fill = fill_out;
    return ZARR_OK;
}

static zarr_status resolve_bytes(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    (void)err;
    out->dtype = NULL;
    out->n_bytes = in->n_bytes;
    out->exact = 1;
    return ZARR_OK;
}

static const struct {
    const char *name, *impl;
    uint32_t kind, flags;
    zarr_status (*resolve)(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err);
    zarr_status (*run)(void *self, zarr_codec_job *jobs, uint64_t n,
                       zarr_codec_exec *exec, zarr_error *err); /* encodes and decodes */
    zarr_status (*partial)(void *self, zarr_codec_job *job,
                           const zarr_codec_range *ranges, uint64_t n,
                           zarr_codec_exec *exec, zarr_error *err);
} codecs[] = {
    {"test.neg", "cpu.neg", ZARR_CODEC_ARRAY_ARRAY, ZARR_CODEC_SPEC_ELEMENTWISE,
     resolve_neg, neg, NULL},
    {"test.mirror", "cpu.mirror", ZARR_CODEC_ARRAY_ARRAY, 0, resolve_mirror, mirror,
     NULL},
    {"test.pack", "cpu.pack", ZARR_CODEC_ARRAY_BYTES, 0, resolve_bytes, neg, NULL},
    {"test.turn", "cpu.turn", ZARR_CODEC_BYTES_BYTES, 0, resolve_bytes, turn,
     turn_partial},
};

static void register_codecs(struct world *w)
{
    const uint32_t cpu = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);

    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const zarr_codec_spec_vtable spec = {.struct_size = sizeof spec,
                                             .name = codecs[i].name,
                                             .flags =
                                                 ZARR_CODEC_SPEC_V3 | codecs[i].flags,
                                             .kind = codecs[i].kind,
                                             .resolve = codecs[i].resolve};
        const zarr_codec_impl_vtable impl = {
            .struct_size = sizeof impl,
            .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE,
            .in_kinds = cpu,
            .out_kinds = cpu,
            .codec = codecs[i].name,
            .impl = codecs[i].impl,
            .encode = codecs[i].run,
            .decode = codecs[i].run,
            .partial = codecs[i].partial};

        assert_ok(zarr_context_register_codec_spec(w->ctx, &spec, "tests", &terr));
        assert_ok(zarr_context_register_codec_impl(w->ctx, &impl, "tests", &terr));
    }
}

/* ---- chunk keys ---------------------------------------------------------- */

/* Coordinates in reverse order: chunk (0, 1) has the key "k_1_0". */
static zarr_status keys_parse(void **self, const char *json, zarr_error *err)
{
    (void)json;
    (void)err;
    *self = NULL;
    return ZARR_OK;
}

static zarr_status keys_canonical(const void *self, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    (void)self;
    (void)err;
    *text_bytes = (size_t)snprintf(text, cap, "{}");
    return ZARR_OK;
}

static size_t keys_key(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                       size_t cap)
{
    char all[32 * ZARR_MAX_RANK] = "k";
    size_t n = 1;

    (void)self;
    for (int32_t d = ndim - 1; d >= 0; d--)
        n += (size_t)snprintf(all + n, sizeof all - n, "_%llu",
                              (unsigned long long)chunk[d]);
    (void)snprintf(text, cap, "%s", all);
    return n;
}

static int keys_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    char again[32 * ZARR_MAX_RANK];
    const char *p = text;

    if (*p++ != 'k')
        return -1;
    for (int32_t d = ndim - 1; d >= 0; d--) {
        char *end = NULL;

        if (*p++ != '_')
            return -1;
        chunk[d] = strtoull(p, &end, 10);
        p = end;
    }
    (void)keys_key(self, ndim, chunk, again, sizeof again);
    return strcmp(again, text) == 0 ? 0 : -1;
}

static void keys_free(void *self)
{
    assert_null(self);
}

static const zarr_key_encoding_vtable keys = {.struct_size = sizeof keys,
                                              .name = "test.keys",
                                              .parse = keys_parse,
                                              .canonical = keys_canonical,
                                              .key = keys_key,
                                              .chunk = keys_chunk,
                                              .free = keys_free};

void foreign_world(struct world *w, enum world_sort sort)
{
    world_begin(w, sort);
    assert_ok(world_context(w, &terr));
    register_codecs(w);
    assert_ok(zarr_context_register_key_encoding(w->ctx, &keys, "tests", &terr));
}
