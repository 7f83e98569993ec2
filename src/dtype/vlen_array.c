/*
 * dtype/vlen_array.c - lists of any length of one other type, which v2 has by the filter
 * vlen-array. In memory an element is a zarr_vlen whose bytes are the list's items, each
 * in this machine's byte order. In v2 the type is "|O", and the filter names the type of
 * the items. The type has no v3 form. Programs call it vlen-array[int32].
 * Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

#define RAGGED_NAME "vlen-array"

static const zarr_dtype *ragged_item(const zarr_dtype_info *info)
{
    return info->self;
}

const zarr_dtype *zarr_dtype_item(const zarr_dtype *dtype)
{
    return dtype && dtype->info.kind == ZARR_KIND_VARRAY &&
                   zr_streq(dtype->entry->vt.name, zr_dtype_ragged.name)
               ? ragged_item(&dtype->info)
               : NULL;
}

static zarr_status ragged_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype *item = NULL;
    const char *inside = NULL;
    struct zr_str text;
    size_t n = 0;

    zr_str_init(&text, info->allocator);
    if (json || !zr_split_brackets(name, &inside, &n) || n == 0)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "data type %.64s: the type of the items is expected in brackets, "
                "\"" RAGGED_NAME "[int32]\"",
                name);
    /* Accepts plain items only. This also ends the recursion. */
    if (strchr("{[\"", *inside) || zr_starts_with(inside, RAGGED_NAME)) {
        st =
            zr_fail(err, ZARR_ERR_UNSUPPORTED,
                    "data type %.64s: lists of lists or structs are not supported", name);
        goto out;
    }
    zr_str_append(&text, inside, n);
    ZR_TRY(zr_str_status(&text, err));
    ZR_TRY(host->find(&item, host, zr_str_text(&text), err));
    if (zarr_dtype_variable(item) || item->info.item_bytes == 0 || !item->v2)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "data type %.64s: items must have a fixed length and a type that v2 has",
                name);
    info->kind = ZARR_KIND_VARRAY;
    info->item_bytes = sizeof(zarr_vlen);
    info->flags = ZARR_DTYPE_VARIABLE;
    info->self = (void *)(uintptr_t)item;
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status ragged_write(const zarr_dtype_info *info, uint32_t what, char *text,
                                size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    *text_bytes = 0;
    if (what == ZARR_DTYPE_TEXT_V3)
        return ZARR_OK;
    if (what == ZARR_DTYPE_TEXT_V2) {
        zr_sink_puts(&s, "O");
    } else {
        zr_sink_puts(&s, RAGGED_NAME "[");
        zr_sink_puts(&s, ragged_item(info)->info.name);
        zr_sink_puts(&s, "]");
    }
    return zr_sink_end(&s, text_bytes);
}

/* ---- elements as text ------------------------------------------------------------ */

static zarr_status ragged_from_list(const zarr_dtype_info *info, int format,
                                    const struct zr_json *v, void *element,
                                    zarr_error *err)
{
    const zarr_dtype *item = ragged_item(info);
    const size_t n = zr_json_count(v), each = (size_t)item->info.item_bytes;
    zarr_status st = ZARR_OK;
    uint8_t *data = NULL;
    zarr_vlen made = {0};
    size_t bytes = 0;

    if (n == 0)
        return ZARR_OK;
    if (!zr_mul(n, each, &bytes))
        return zr_fail(err, ZARR_ERR_LIMIT, "%s: %zu items are too many", info->name, n);
    data = zr_malloc(info->allocator, bytes);
    if (!data)
        return zr_fail_memory(err, bytes);
    made = (zarr_vlen){.data = data, .bytes = bytes};
    for (const struct zr_json *e = v->u.children.first; e; e = e->next, data += each)
        ZR_TRY(zr_dtype_fill_parse(item, e, format, data, err));
    memcpy(element, &made, sizeof made);
    made = (zarr_vlen){0};
out:
    zr_free(info->allocator, (void *)(uintptr_t)made.data);
    return st;
}

/* Old v2 files have 0 or "" for an empty list. */
static bool ragged_is_empty(const struct zr_json *v, int format)
{
    uint64_t zero = 1;

    return format == 2 &&
           ((zr_json_u64(v, &zero) && zero == 0) || zr_json_is_text(v, ""));
}

static zarr_status ragged_from_json(const zarr_dtype_info *info, int format,
                                    const struct zr_json *v, void *element,
                                    zarr_error *err)
{
    memset(element, 0, sizeof(zarr_vlen));
    if (zr_json_is(v, ZR_JSON_ARRAY))
        return ragged_from_list(info, format, v, element, err);
    return ragged_is_empty(v, format)
               ? ZARR_OK
               : zr_value_refuse(info, v, "a list is expected", err);
}

ZR_FILL_PARSE(ragged)

static zarr_status ragged_fill_print(const zarr_dtype_info *info, int format,
                                     const void *element, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    const zarr_dtype *item = ragged_item(info);
    struct zr_sink s = {text, cap, 0};
    zarr_vlen list;

    memcpy(&list, element, sizeof list);
    if ((!list.data && list.bytes) || list.bytes % item->info.item_bytes)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: an element of %" PRIu64 " bytes%s",
                       info->name, list.bytes, list.data ? "" : " at address NULL");
    if (format == 2 &&
        list.bytes == 0) { /* zarr-python 2 does not take a list as fill value */
        zr_sink_putc(&s, '0');
        return zr_sink_end(&s, text_bytes);
    }
    zr_sink_putc(&s, '[');
    for (uint64_t at = 0; at < list.bytes; at += item->info.item_bytes) {
        const size_t begin = s.n + (at ? 1 : 0);
        const size_t left = begin < cap ? cap - begin : 0;
        size_t n = 0;

        if (at)
            zr_sink_putc(&s, ',');
        ZR_CHECK(item->entry->vt.fill_print(&item->info, format,
                                            (const uint8_t *)list.data + at,
                                            left ? text + begin : NULL, left, &n, err));
        s.n += n;
    }
    zr_sink_putc(&s, ']');
    return zr_sink_end(&s, text_bytes);
}

const zarr_dtype_vtable zr_dtype_ragged = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY | ZARR_DTYPE_V2_ONLY,
    .name = RAGGED_NAME,
    .parse = ragged_parse,
    .write = ragged_write,
    .fill_parse = ragged_fill_parse,
    .fill_print = ragged_fill_print,
    .numpy = "O",
    .codec = "vlen-array",
    .compare = zr_vlen_compare,
};
