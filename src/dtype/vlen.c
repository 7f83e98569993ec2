/*
 * dtype/vlen.c - elements of any length: text in UTF-8 (`string`) and bytes. In memory an
 * element is a zarr_vlen, an address and a length. The caller decides who owns that
 * memory. The parser of fill values allocates their bytes, and zarr_dtype_release() frees
 * them. In v2 both types are "|O", and the filter tells them apart (meta/array_v2.c).
 * Fill values: text is a JSON string. Bytes are base64; lists of numbers are also read.
 * Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

int zarr_dtype_variable(const zarr_dtype *dtype)
{
    return dtype && (dtype->info.flags & ZARR_DTYPE_VARIABLE) ? 1 : 0;
}

void zarr_dtype_release(const zarr_dtype *dtype, void *element)
{
    zarr_vlen item;

    if (!zarr_dtype_variable(dtype) || !element)
        return;
    memcpy(&item, element, sizeof item);
    if (item.bytes)
        zr_free(dtype->info.allocator, (void *)(uintptr_t)item.data);
    memset(element, 0, (size_t)dtype->info.item_bytes);
}

static zarr_status vlen_parse(zarr_dtype_info *info, uint32_t kind)
{
    info->kind = kind;
    info->item_bytes = sizeof(zarr_vlen);
    info->flags = ZARR_DTYPE_VARIABLE;
    return ZARR_OK;
}

static zarr_status string_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host, name, json, err);
    return vlen_parse(info, ZARR_KIND_STRING);
}

static zarr_status vbytes_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host, name, json, err);
    return vlen_parse(info, ZARR_KIND_VBYTES);
}

static zarr_status vlen_write(const char *name, uint32_t what, char *text, size_t cap,
                              size_t *text_bytes)
{
    struct zr_sink s = {text, cap, 0};

    if (what == ZARR_DTYPE_TEXT_V2) {
        zr_sink_puts(&s, "O");
        return zr_sink_end(&s, text_bytes);
    }
    zr_sink_puts(&s, what == ZARR_DTYPE_TEXT_V3 ? "\"" : "");
    zr_sink_puts(&s, name);
    zr_sink_puts(&s, what == ZARR_DTYPE_TEXT_V3 ? "\"" : "");
    return zr_sink_end(&s, text_bytes);
}

static zarr_status string_write(const zarr_dtype_info *info, uint32_t what, char *text,
                                size_t cap, size_t *text_bytes, zarr_error *err)
{
    ZR_UNUSED(info, err);
    return vlen_write("string", what, text, cap, text_bytes);
}

/* Writes the name that zarr-python writes. zarr-python reads both names. */
static zarr_status vbytes_write(const zarr_dtype_info *info, uint32_t what, char *text,
                                size_t cap, size_t *text_bytes, zarr_error *err)
{
    ZR_UNUSED(info, err);
    return vlen_write("variable_length_bytes", what, text, cap, text_bytes);
}

/* ---- fill values ------------------------------------------------------------ */

/* Allocates n bytes for the element; *data is their address. */
static zarr_status item_take(const zarr_dtype_info *info, void *element, size_t n,
                             uint8_t **data, zarr_error *err)
{
    zarr_vlen item = {0};

    memcpy(element, &item, sizeof item);
    *data = NULL;
    if (n == 0)
        return ZARR_OK;
    *data = zr_malloc(info->allocator, n);
    if (!*data)
        return zr_fail_memory(err, n);
    item = (zarr_vlen){.data = *data, .bytes = n};
    memcpy(element, &item, sizeof item);
    return ZARR_OK;
}

/* Old v2 files have 0 for an empty element. */
static bool is_v2_zero(const struct zr_json *v, int format)
{
    uint64_t zero = 1;

    return format == 2 && zr_json_u64(v, &zero) && zero == 0;
}

static zarr_status string_from_json(const zarr_dtype_info *info, int format,
                                    const struct zr_json *v, void *element,
                                    zarr_error *err)
{
    uint8_t *data = NULL;

    memset(element, 0, sizeof(zarr_vlen));
    if (is_v2_zero(v, format))
        return ZARR_OK;
    if (!zr_json_is(v, ZR_JSON_STRING))
        return zr_value_refuse(info, v, "text is expected", err);
    ZR_CHECK(item_take(info, element, v->u.text.bytes, &data, err));
    if (data)
        memcpy(data, v->u.text.ptr, v->u.text.bytes);
    return ZARR_OK;
}

ZR_FILL_PARSE(string)

static void element_free(const zarr_dtype_info *info, void *element)
{
    zarr_vlen item;

    memcpy(&item, element, sizeof item);
    zr_free(info->allocator, (void *)(uintptr_t)item.data);
    memset(element, 0, sizeof item);
}

static zarr_status vbytes_from_base64(const zarr_dtype_info *info,
                                      const struct zr_json *v, void *element,
                                      zarr_error *err)
{
    const size_t room = v->u.text.bytes / 4 * 3;
    zarr_status st = ZARR_OK;
    uint8_t *data = NULL;
    size_t n = 0;
    zarr_vlen item;

    ZR_TRY(item_take(info, element, room, &data, err));
    if (!room && v->u.text.bytes == 0)
        goto out;
    if (!room || !zr_value_base64(v, data, room, &n)) {
        element_free(info, element);
        st = zr_value_refuse(info, v, "base64 text is expected", err);
        goto out;
    }
    if (n == 0)
        element_free(info, element);
    item = (zarr_vlen){.data = n ? data : NULL, .bytes = n};
    memcpy(element, &item, sizeof item);
out:
    return st;
}

static zarr_status vbytes_from_list(const zarr_dtype_info *info, const struct zr_json *v,
                                    void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint8_t *data = NULL;
    size_t i = 0;

    ZR_TRY(item_take(info, element, zr_json_count(v), &data, err));
    for (const struct zr_json *e = v->u.children.first; e && data; e = e->next) {
        uint64_t byte = 0;

        if (!zr_json_u64(e, &byte) || byte > 255) {
            element_free(info, element);
            st = zr_value_refuse(info, v, "numbers from 0 to 255 are expected", err);
            goto out;
        }
        data[i++] = (uint8_t)byte;
    }
out:
    return st;
}

static zarr_status vbytes_from_json(const zarr_dtype_info *info, int format,
                                    const struct zr_json *v, void *element,
                                    zarr_error *err)
{
    memset(element, 0, sizeof(zarr_vlen));
    if (zr_json_is(v, ZR_JSON_STRING))
        return vbytes_from_base64(info, v, element, err);
    if (zr_json_is(v, ZR_JSON_ARRAY))
        return vbytes_from_list(info, v, element, err);
    return is_v2_zero(v, format)
               ? ZARR_OK
               : zr_value_refuse(info, v, "base64 text or a list of numbers is expected",
                                 err);
}

ZR_FILL_PARSE(vbytes)

static zarr_status item_read(const zarr_dtype_info *info, const void *element,
                             zarr_vlen *item, zarr_error *err)
{
    memcpy(item, element, sizeof *item);
    if (!item->data && item->bytes)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: an element of %" PRIu64 " bytes at address NULL", info->name,
                       item->bytes);
    return ZARR_OK;
}

static void put_escape(struct zr_sink *s, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    if (c == '"' || c == '\\') {
        zr_sink_putc(s, '\\');
        zr_sink_putc(s, (char)c);
        return;
    }
    zr_sink_puts(s, "\\u00");
    zr_sink_putc(s, hex[c >> 4]);
    zr_sink_putc(s, hex[c & 15]);
}

static zarr_status string_fill_print(const zarr_dtype_info *info, int format,
                                     const void *element, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    zarr_vlen item;
    const char *p = NULL;

    ZR_UNUSED(format);
    ZR_CHECK(item_read(info, element, &item, err));
    p = item.data;
    if (item.bytes > SIZE_MAX / 8 || !zr_utf8_is_valid(p ? p : "", (size_t)item.bytes))
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: an element is not valid UTF-8",
                       info->name);
    zr_sink_putc(&s, '"');
    for (uint64_t i = 0; i < item.bytes; i++) {
        const unsigned char c = (unsigned char)p[i];

        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            put_escape(&s, c);
        else
            zr_sink_putc(&s, (char)c);
    }
    zr_sink_putc(&s, '"');
    return zr_sink_end(&s, text_bytes);
}

static zarr_status vbytes_fill_print(const zarr_dtype_info *info, int format,
                                     const void *element, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    zarr_vlen item;

    ZR_UNUSED(format);
    ZR_CHECK(item_read(info, element, &item, err));
    if (item.bytes > SIZE_MAX / 8)
        return zr_fail(err, ZARR_ERR_LIMIT, "%s: an element of %" PRIu64 " bytes",
                       info->name, item.bytes);
    zr_sink_putc(&s, '"');
    zr_sink_base64(&s, item.data, (size_t)item.bytes);
    zr_sink_putc(&s, '"');
    return zr_sink_end(&s, text_bytes);
}

/* Compares byte by byte. For UTF-8 this is the order of its characters. */
int zr_vlen_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    zarr_vlen x, y;
    int order = 0;

    ZR_UNUSED(info);
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x.bytes && y.bytes)
        order = memcmp(x.data, y.data, (size_t)ZR_MIN(x.bytes, y.bytes));
    return order ? order : (x.bytes > y.bytes) - (x.bytes < y.bytes);
}

/* StringDType of NumPy 2 in its spellings; before NumPy 2 text is objects. */
static const char *const string_in_numpy[] = {"T16", "StringDType", "StringDType()",
                                              "O",   "object",      NULL};

const zarr_dtype_vtable zr_dtype_string = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .name = "string",
    .parse = string_parse,
    .write = string_write,
    .fill_parse = string_fill_parse,
    .fill_print = string_fill_print,
    .numpy = "T",
    .codec = "vlen-utf8",
    .compare = zr_vlen_compare,
    .numpy_aliases = string_in_numpy,
};

static const char *const vbytes_aliases[] = {"bytes", "binary", NULL};

const zarr_dtype_vtable zr_dtype_vbytes = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .name = "variable_length_bytes",
    .aliases = vbytes_aliases,
    .parse = vbytes_parse,
    .write = vbytes_write,
    .fill_parse = vbytes_fill_parse,
    .fill_print = vbytes_fill_print,
    .numpy = "O",
    .codec = "vlen-bytes",
    .compare = zr_vlen_compare,
};
