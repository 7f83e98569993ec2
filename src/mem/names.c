/*
 * mem/names.c - the names of kinds of memory, in texts for people and in settings.
 * Thread class: plain functions.
 */
#include "mem/mem.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t type;
} device_names[] = {{"host", ZARR_DEVICE_CPU},
                    {"cpu", ZARR_DEVICE_CPU}, /* only read */
                    {"cuda", ZARR_DEVICE_CUDA},
                    {"cuda_host", ZARR_DEVICE_CUDA_HOST},
                    {"opencl", ZARR_DEVICE_OPENCL},
                    {"ext", ZARR_DEVICE_EXT},
                    {"cuda_managed", ZARR_DEVICE_CUDA_MANAGED}};

static const char *device_name(int32_t device_type)
{
    for (size_t i = 0; i < ZR_COUNT(device_names); i++)
        if (device_names[i].type == device_type)
            return device_names[i].name;
    return NULL;
}

void zr_backend_fail_missing(int32_t device_type, zarr_error *err)
{
    const char *name = device_name(device_type);

    (void)zr_fail(err, ZARR_ERR_UNSUPPORTED,
                  "no memory backend for device type %" PRId32
                  "%s%s%s: no plug-in that is loaded has one; "
                  "ZARRC_PLUGINS names plug-ins to load",
                  device_type, name ? " (" : "", name ? name : "", name ? ")" : "");
}

void zr_device_print(struct zr_str *out, int32_t device_type)
{
    const char *name = device_name(device_type);

    if (name)
        zr_str_puts(out, name);
    else
        zr_str_printf(out, "device%" PRId32, device_type);
}

void zr_memory_print(struct zr_str *out, const struct zr_backend *be)
{
    const char *name = device_name(be->vt.device_type);

    zr_str_puts(out, name ? name : be->vt.name);
}

bool zr_kind_parse(const char *text, size_t bytes, int32_t *device_type)
{
    uint64_t kind = 0;

    for (size_t i = 0; i < ZR_COUNT(device_names); i++)
        if (strlen(device_names[i].name) == bytes &&
            memcmp(device_names[i].name, text, bytes) == 0)
            kind = (uint64_t)device_names[i].type;
    if (kind == 0 && !zr_parse_u64(text, bytes, &kind))
        return false;
    if (kind == 0 || kind > INT32_MAX)
        return false;
    *device_type = (int32_t)kind;
    return true;
}

bool zr_device_number(const char *text, int32_t *device_id)
{
    uint64_t number = 0;

    if (!zr_parse_u64(text, strlen(text), &number) || number > INT32_MAX)
        return false;
    *device_id = (int32_t)number;
    return true;
}

bool zr_device_parse(const char *text, int32_t *device_type, int32_t *device_id)
{
    const char *colon = strchr(text, ':');
    int32_t kind = 0, number = 0;

    if (colon && !zr_device_number(colon + 1, &number))
        return false;
    if (!zr_kind_parse(text, colon ? (size_t)(colon - text) : strlen(text), &kind))
        return false;
    *device_type = kind;
    *device_id = number;
    return true;
}
