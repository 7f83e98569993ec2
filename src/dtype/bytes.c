/*
 * dtype/bytes.c - elements of a fixed number of bytes without byte order: opaque ones (v3
 * r<N> with N in bits, v2 V<n>) and NUL-padded text in no stated encoding (v2 S<n>, v3
 * null_terminated_bytes). Fill values are written as base64 of all n bytes, except that
 * r<N> in v3 is a list of byte values, as the specification says. Both types read both
 * forms. Old v2 files have other fill values for S, which length and alphabet tell from
 * base64.
 * raw_bytes is zarr-python's name for r<N> and the only one that it reads, so V<n>
 * becomes it in v3. An array that is created or opened as r<N> keeps that name. Thread
 * class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

enum {
    SPELLED_RAW_BYTES = 1 /* in info->param[0] */
};

/* ---- facts and names ------------------------------------------------------- */

static zarr_status bytes_facts(zarr_dtype_info *info, uint32_t kind, uint64_t n,
                               zarr_error *err)
{
    if (n == 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "data type %s: elements of zero bytes",
                       info->name);
    info->kind = kind;
    info->item_bytes = n;
    info->swap_bytes = 1;
    return ZARR_OK;
}

static zarr_status bad_name(const zarr_dtype_info *info, const char *want,
                            zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID, "data type \"%.64s\": %s", info->name, want);
}

static zarr_status raw_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                             const char *name, const char *json, zarr_error *err)
{
    uint64_t bits = 0, n = 0;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(host);
    if (zr_starts_with(name, "raw_bytes")) {
        ZR_TRY(zr_config_length(info, name, json, &n, err));
        info->param[0] = SPELLED_RAW_BYTES;
        info->flags |= ZARR_DTYPE_EXPERIMENTAL;
    } else {
        if (json && strcmp(json, "{}") != 0) {
            st = bad_name(info, "it takes no configuration", err);
            goto out;
        }
        if (name[1] == '0' || !zr_parse_u64(name + 1, strlen(name + 1), &bits) ||
            bits % 8 != 0) {
            st =
                bad_name(info, "the number of bits after r must be a multiple of 8", err);
            goto out;
        }
        n = bits / 8;
    }
    st = bytes_facts(info, ZARR_KIND_RAW, n, err);
out:
    return st;
}

static zarr_status null_terminated_parse(zarr_dtype_info *info,
                                         const zarr_dtype_host *host, const char *name,
                                         const char *json, zarr_error *err)
{
    uint64_t n = 0;

    ZR_UNUSED(host);
    ZR_CHECK(zr_config_length(info, name, json, &n, err));
    info->flags |= ZARR_DTYPE_EXPERIMENTAL;
    return bytes_facts(info, ZARR_KIND_BYTES, n, err);
}

/* Parses "S12" or "V3". */
static zarr_status bytes_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                                  const char *v2, zarr_error *err)
{
    uint64_t n = 0;

    ZR_UNUSED(host);
    if (!zr_parse_u64(v2 + 1, strlen(v2 + 1), &n))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "dtype \"%.64s\": a number of bytes is expected", v2);
    info->flags |= ZARR_DTYPE_EXPERIMENTAL;
    if (v2[0] == 'S')
        return bytes_facts(info, ZARR_KIND_BYTES, n, err);
    info->param[0] = SPELLED_RAW_BYTES;
    return bytes_facts(info, ZARR_KIND_RAW, n, err);
}

/* Writes `stem` and the length as v3 object, as short form in brackets, or as v2 type. */
static void write_length(struct zr_sink *s, uint32_t what, const char *stem, char v2,
                         uint64_t n)
{
    if (what == ZARR_DTYPE_TEXT_V2) {
        zr_sink_putc(s, v2);
        zr_sink_u64(s, n);
        return;
    }
    zr_sink_puts(s, what == ZARR_DTYPE_TEXT_V3 ? "{\"name\":\"" : "");
    zr_sink_puts(s, stem);
    zr_sink_puts(s, what == ZARR_DTYPE_TEXT_V3 ? "\",\"configuration\":{\"length_bytes\":"
                                               : "[");
    zr_sink_u64(s, n);
    zr_sink_puts(s, what == ZARR_DTYPE_TEXT_V3 ? "}}" : "]");
}

static zarr_status raw_write(const zarr_dtype_info *info, uint32_t what, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    if (what == ZARR_DTYPE_TEXT_V2 || info->param[0] == SPELLED_RAW_BYTES) {
        write_length(&s, what, "raw_bytes", 'V', info->item_bytes);
    } else {
        zr_sink_puts(&s, what == ZARR_DTYPE_TEXT_V3 ? "\"r" : "r");
        zr_sink_u64(&s, info->item_bytes * 8);
        zr_sink_puts(&s, what == ZARR_DTYPE_TEXT_V3 ? "\"" : "");
    }
    return zr_sink_end(&s, text_bytes);
}

static zarr_status null_terminated_write(const zarr_dtype_info *info, uint32_t what,
                                         char *text, size_t cap, size_t *text_bytes,
                                         zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    write_length(&s, what, "null_terminated_bytes", 'S', info->item_bytes);
    return zr_sink_end(&s, text_bytes);
}

/* ---- fill values ----------------------------------------------------------- */

/* Reads a list [0, 255, ...] with one number for each byte of the element. */
static zarr_status byte_list(const zarr_dtype_info *info, const struct zr_json *v,
                             uint8_t *element, zarr_error *err)
{
    size_t n = 0;

    if (zr_json_count(v) != info->item_bytes)
        return zr_fail(err, ZARR_ERR_INVALID, "a list of %zu bytes is not a valid %s",
                       zr_json_count(v), info->name);
    for (const struct zr_json *b = v->u.children.first; b; b = b->next) {
        uint64_t value = 0;

        if (!zr_json_u64(b, &value) || value > 255)
            return zr_value_refuse(info, b, "byte values from 0 to 255 are expected",
                                   err);
        element[n++] = (uint8_t)value;
    }
    return ZARR_OK;
}

/* Reads base64 of the element. Padded text may lack its padding. */
static bool padded_base64(const zarr_dtype_info *info, const struct zr_json *v,
                          uint8_t *element, bool *fits)
{
    size_t n = 0, room = (size_t)info->item_bytes;
    bool padded = info->kind == ZARR_KIND_BYTES;

    if (zr_value_base64(v, element, room, &n)) {
        *fits = n == room || padded;
        memset(element + n, 0, room - n);
        return true;
    }
    *fits = false;
    return false;
}

static zarr_status parse_string(const zarr_dtype_info *info, int format,
                                const struct zr_json *v, uint8_t *element,
                                zarr_error *err)
{
    size_t room = (size_t)info->item_bytes, n = v->u.text.bytes;
    bool fits = false;

    if (padded_base64(info, v, element, &fits) && fits)
        return ZARR_OK;
    if (format == 2 &&
        (n == 0 || info->kind == ZARR_KIND_BYTES)) { /* old files have "" or plain text */
        while (n > 0 && v->u.text.ptr[n - 1] == '\0')
            n--;
        if (n <= room) {
            memcpy(element, v->u.text.ptr, n);
            memset(element + n, 0, room - n);
            return ZARR_OK;
        }
    }
    return zr_value_refuse(info, v, "base64 of all its bytes is expected", err);
}

static zarr_status bytes_from_json(const zarr_dtype_info *info, int format,
                                   const struct zr_json *v, void *element,
                                   zarr_error *err)
{
    uint64_t zero = 1;

    if (zr_json_is(v, ZR_JSON_STRING))
        return parse_string(info, format, v, element, err);
    if (zr_json_is(v, ZR_JSON_ARRAY))
        return byte_list(info, v, element, err);
    if (format != 2 || !zr_json_u64(v, &zero) || zero != 0)
        return zr_value_refuse(info, v, "base64 text is expected", err);
    memset(element, 0, (size_t)info->item_bytes);
    return ZARR_OK;
}

ZR_FILL_PARSE(bytes)

static zarr_status base64_fill_print(const zarr_dtype_info *info, int format,
                                     const void *element, char *text, size_t cap,
                                     size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(format, err);
    zr_sink_putc(&s, '"');
    zr_sink_base64(&s, element, (size_t)info->item_bytes);
    zr_sink_putc(&s, '"');
    return zr_sink_end(&s, text_bytes);
}

static zarr_status raw_fill_print(const zarr_dtype_info *info, int format,
                                  const void *element, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    const uint8_t *bytes = element;

    if (format == 2 || info->param[0] == SPELLED_RAW_BYTES)
        return base64_fill_print(info, format, element, text, cap, text_bytes, err);
    for (uint64_t i = 0; i < info->item_bytes; i++) {
        zr_sink_putc(&s, i ? ',' : '[');
        zr_sink_u64(&s, bytes[i]);
    }
    zr_sink_putc(&s, ']');
    return zr_sink_end(&s, text_bytes);
}

static const char *const raw_aliases[] = {"raw_bytes", NULL};

const zarr_dtype_vtable zr_dtype_raw = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY | ZARR_DTYPE_NUMBERED,
    .name = "r",
    .aliases = raw_aliases,
    .v2 = "V",
    .parse = raw_parse,
    .parse_v2 = bytes_parse_v2,
    .write = raw_write,
    .fill_parse = bytes_fill_parse,
    .fill_print = raw_fill_print,
    .numpy = "V",
};

const zarr_dtype_vtable zr_dtype_null_terminated = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY | ZARR_DTYPE_EXPERIMENTAL,
    .name = "null_terminated_bytes",
    .v2 = "S",
    .parse = null_terminated_parse,
    .parse_v2 = bytes_parse_v2,
    .write = null_terminated_write,
    .fill_parse = bytes_fill_parse,
    .fill_print = base64_fill_print,
    .numpy = "S",
};
