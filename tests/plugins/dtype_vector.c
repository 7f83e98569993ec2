/*
 * dtype_vector.c - a data type with three components: "tests.vector3", three int16. Its
 * metadata may have any configuration. Fill values are lists of three numbers.
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>
#include <string.h>

static const zarr_host *host;

static zarr_status parse(zarr_dtype_info *info, const zarr_dtype_host *types,
                         const char *name, const char *json, zarr_error *err)
{
    (void)types;
    (void)name;
    (void)json;
    (void)err;
    info->kind = ZARR_KIND_INT; /* of each component */
    info->item_bytes = 6;
    info->swap_bytes = 2;
    info->components = 3;
    info->flags = ZARR_DTYPE_EXPERIMENTAL;
    return ZARR_OK;
}

static zarr_status fill_parse(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err)
{
    int16_t v[3] = {0, 0, 0};

    (void)format;
    if (strcmp(json, "0") != 0 && sscanf(json, "[%hd,%hd,%hd]", &v[0], &v[1], &v[2]) != 3)
        return host->fail(err, ZARR_ERR_INVALID, "%s: %s is no list of three numbers",
                          info->name, json);
    memcpy(element, v, sizeof v);
    return ZARR_OK;
}

static zarr_status fill_print(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err)
{
    int16_t v[3];

    (void)info;
    (void)format;
    (void)err;
    memcpy(v, element, sizeof v);
    *text_bytes = (size_t)snprintf(text, cap, "[%d,%d,%d]", v[0], v[1], v[2]);
    return ZARR_OK;
}

static void number(const zarr_dtype_info *info, const void *element, double *out)
{
    int16_t v[3];

    (void)info;
    memcpy(v, element, sizeof v);
    for (int i = 0; i < 3; i++)
        out[i] = v[i];
}

static const zarr_dtype_vtable vector = {
    .struct_size = sizeof vector,
    .flags = ZARR_DTYPE_ANY_CONFIGURATION,
    .name = "tests.vector3",
    .parse = parse,
    .fill_parse = fill_parse,
    .fill_print = fill_print,
    .numpy = "V",
    .number = number,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    return host->register_dtype(ctx, &vector, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "tests-vector",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
