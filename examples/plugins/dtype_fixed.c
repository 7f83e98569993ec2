/*
 * dtype_fixed.c - a data type: "example.fixed8_8", signed numbers of two bytes with 8
 * bits after the binary point: 1.5 is 0x0180. Fill values are JSON numbers. And an
 * array->array codec: "example.to_fixed" stores float64 as this type, rounded.
 *
 *     cc -shared -fPIC -o dtype_fixed.so dtype_fixed.c
 *     zarrc --plugin=./dtype_fixed.so create --dtype=example.fixed8_8 ...
 *     zarrc --plugin=./dtype_fixed.so create --dtype=float64 --codec=example.to_fixed ...
 *
 * With the option {"example-fixed": {"tolerance": 0.001}} the codec refuses to encode a
 * value that it would change by more than that.
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const zarr_host *host; /* static in the library: may be kept */
static double tolerance = 1;  /* the option: for all contexts of the process */

static zarr_status parse(zarr_dtype_info *info, const zarr_dtype_host *types,
                         const char *name, const char *json, zarr_error *err)
{
    (void)types;
    (void)name;
    (void)json;
    (void)err;
    info->kind = ZARR_KIND_OTHER; /* programs show elements by fill_print() */
    info->item_bytes = 2;
    info->swap_bytes = 2; /* the `bytes` codec stores it in either byte order */
    info->flags = ZARR_DTYPE_EXPERIMENTAL;
    return ZARR_OK;
}

static zarr_status fill_parse(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err)
{
    char *end = NULL;
    const double value = strtod(json, &end) * 256;
    int16_t bits;

    (void)format;
    if (end == json || *end != '\0' || !(value >= INT16_MIN && value <= INT16_MAX) ||
        value != (double)(int16_t)value)
        return host->fail(err, ZARR_ERR_INVALID,
                          "%s: %s is no multiple of 1/256 from -128 to 127.99609375",
                          info->name, json);
    bits = (int16_t)value;
    memcpy(element, &bits, sizeof bits); /* at any alignment */
    return ZARR_OK;
}

static zarr_status fill_print(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err)
{
    int16_t bits;

    (void)info;
    (void)format;
    (void)err;
    memcpy(&bits, element, sizeof bits);
    *text_bytes = (size_t)snprintf(text, cap, "%.11g", bits / 256.0); /* exact */
    return ZARR_OK;
}

static const zarr_dtype_vtable fixed = {
    .struct_size = sizeof fixed,
    .name = "example.fixed8_8",
    .parse = parse,
    .fill_parse = fill_parse,
    .fill_print = fill_print,
};

/* ---- the codec ---- */

static zarr_status canonical(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    (void)format;
    if (host->spec_member(raw, 0))
        return host->fail(err, ZARR_ERR_INVALID,
                          "example.to_fixed: the configuration is %s, not {}",
                          host->spec_json(raw));
    *text_bytes = (size_t)snprintf(text, cap, "{}");
    return ZARR_OK;
}

static zarr_status round_one(double value, int16_t *out, zarr_error *err)
{
    const double scaled = value * 256;
    double change = 0;

    if (!(scaled > INT16_MIN - 0.5 && scaled < INT16_MAX + 0.5)) /* also a NaN */
        return host->fail(err, ZARR_ERR_INVALID,
                          "example.to_fixed: %g is not from -128 to 127.99609375", value);
    *out = (int16_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    change = *out / 256.0 - value;
    if (change > tolerance || change < -tolerance)
        return host->fail(err, ZARR_ERR_INVALID,
                          "example.to_fixed: %g would become %.11g", value, *out / 256.0);
    return ZARR_OK;
}

/* The output has another data type, and its fill value is the input's, encoded. */
static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_status st = host->spec_dtype(&out->dtype, spec, fixed.name, err);
    int16_t bits;
    double fill;

    if (st == ZARR_OK && strcmp(host->dtype_name(in->dtype), "float64") != 0)
        st = host->fail(err, ZARR_ERR_INVALID,
                        "example.to_fixed: elements are %s, must be float64",
                        host->dtype_name(in->dtype));
    if (st != ZARR_OK || !in->fill)
        return st;
    memcpy(&fill, in->fill, sizeof fill);
    st = round_one(fill, &bits, err);
    if (st == ZARR_OK)
        memcpy(fill_out, &bits, sizeof bits);
    out->fill = fill_out;
    return st;
}

static int lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    (void)spec;
    (void)in;
    return tolerance > 0;
}

static const zarr_codec_spec_vtable meaning = {
    .struct_size = sizeof meaning,
    .flags = ZARR_CODEC_SPEC_EXPERIMENTAL | ZARR_CODEC_SPEC_ELEMENTWISE,
    .name = "example.to_fixed",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = canonical,
    .resolve = resolve,
    .lossy = lossy,
};

static unsigned char *block_bytes(const zarr_memory *mem)
{
    return (unsigned char *)mem->handle + mem->offset;
}

static zarr_status encode(void *self, zarr_codec_job *job, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    const uint64_t n_items = job->src.bytes / sizeof(double);

    (void)self;
    (void)n; /* 1: no ZARR_CODEC_BATCH below */
    (void)exec;
    job->status = ZARR_OK;
    if (job->dst.bytes / sizeof(int16_t) < n_items)
        job->status = host->fail(err, ZARR_ERR_CORRUPT, "example.to_fixed: room");
    for (uint64_t i = 0; i < n_items && job->status == ZARR_OK; i++) {
        double value;
        int16_t bits = 0;

        memcpy(&value, block_bytes(&job->src) + i * sizeof value, sizeof value);
        job->status = round_one(value, &bits, err);
        memcpy(block_bytes(&job->dst) + i * sizeof bits, &bits, sizeof bits);
    }
    job->dst_used = n_items * sizeof(int16_t);
    return job->status;
}

static zarr_status decode(void *self, zarr_codec_job *job, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    const uint64_t n_items = job->src.bytes / sizeof(int16_t);

    (void)self;
    (void)n;
    (void)exec;
    job->status = ZARR_OK;
    if (job->dst.bytes / sizeof(double) < n_items)
        job->status = host->fail(err, ZARR_ERR_CORRUPT, "example.to_fixed: room");
    for (uint64_t i = 0; i < n_items && job->status == ZARR_OK; i++) {
        double value;
        int16_t bits;

        memcpy(&bits, block_bytes(&job->src) + i * sizeof bits, sizeof bits);
        value = bits / 256.0;
        memcpy(block_bytes(&job->dst) + i * sizeof value, &value, sizeof value);
    }
    job->dst_used = n_items * sizeof(double);
    return job->status;
}

static const zarr_codec_impl_vtable way = {
    .struct_size = sizeof way,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "example.to_fixed",
    .impl = "cpu.example",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .encode = encode,
    .decode = decode,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st;

    (void)self;
    host = given;
    (void)host->option_f64(ctx, "tolerance", &tolerance);
    st = host->register_dtype(ctx, &fixed, err);
    if (st == ZARR_OK)
        st = host->register_codec_spec(ctx, &meaning, err);
    return st == ZARR_OK ? host->register_codec_impl(ctx, &way, err) : st;
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-fixed",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
