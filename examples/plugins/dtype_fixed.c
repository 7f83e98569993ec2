/*
 * dtype_fixed.c - a data type: "example.fixed8_8", signed numbers of two bytes with 8
 * bits after the binary point: 1.5 is 0x0180. Fill values are JSON numbers.
 *
 *     cc -shared -fPIC -o dtype_fixed.so dtype_fixed.c
 *     zarrc --plugin=./dtype_fixed.so create --dtype=example.fixed8_8 ...
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const zarr_host *host; /* static in the library: may be kept */

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

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    return host->register_dtype(ctx, &fixed, err);
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
