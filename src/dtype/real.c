/*
 * dtype/real.c - float16, float32, float64 and the complex pairs of the last
 * two. A float is a number, "NaN", "Infinity", "-Infinity", or its bits as
 * "0x..." with the most significant digit first; bare NaN tokens and numbers in
 * quotes are read too. Written are: the shortest decimal that reads back, and
 * in v3 the bits of a NaN that is not the canonical one; v2 has no words for
 * those. Bits, not values, are handled: signalling NaNs pass unchanged.
 * Thread class: frozen.
 */
#include "dtype_int.h"

#include <math.h>
#include <string.h>

/* Masks of one width. NaN: all exponent bits and some fraction bit. */
struct float_form {
    unsigned bytes;
    uint64_t infinity, sign, canonical_nan;
};
static const struct float_form float_forms[] = {
    {2, 0x7c00, 0x8000, 0x7e00},
    {4, 0x7f800000, 0x80000000, 0x7fc00000},
    {8, UINT64_C(0x7ff0000000000000), UINT64_C(1) << 63, UINT64_C(0x7ff8000000000000)},
};

static const struct float_form *form_of(uint64_t bytes)
{
    return &float_forms[bytes == 2 ? 0 : bytes == 4 ? 1 : 2];
}

static uint64_t load_bits(const void *p, unsigned bytes)
{
    uint16_t half;
    uint32_t single;
    uint64_t bits;

    if (bytes == 2) {
        memcpy(&half, p, 2);
        return half;
    }
    if (bytes == 4) {
        memcpy(&single, p, 4);
        return single;
    }
    memcpy(&bits, p, 8);
    return bits;
}

static void store_bits(void *p, unsigned bytes, uint64_t bits)
{
    uint16_t half = (uint16_t)bits;
    uint32_t single = (uint32_t)bits;

    if (bytes == 2)
        memcpy(p, &half, 2);
    else if (bytes == 4)
        memcpy(p, &single, 4);
    else
        memcpy(p, &bits, 8);
}

/* ---- in ------------------------------------------------------------------- */

static bool is_word(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(s, word, n) == 0;
}

static bool special_bits(const struct float_form *f, const char *s, size_t n,
                         uint64_t *bits)
{
    if (is_word(s, n, "NaN"))
        *bits = f->canonical_nan;
    else if (is_word(s, n, "Infinity") || is_word(s, n, "+Infinity"))
        *bits = f->infinity;
    else if (is_word(s, n, "-Infinity"))
        *bits = f->infinity | f->sign;
    else
        return false;
    return true;
}

/* "0x" and all digits of this width. */
static bool hex_bits(const struct float_form *f, const char *s, size_t n, uint64_t *bits)
{
    if (n != 2 + 2 * (size_t)f->bytes || s[0] != '0' || (s[1] | 0x20) != 'x')
        return false;
    *bits = 0;
    for (size_t i = 2; i < n; i++) {
        char c = s[i];
        unsigned digit;

        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (unsigned)((c | 0x20) - 'a' + 10);
        else
            return false;
        *bits = *bits << 4 | digit;
    }
    return true;
}

static bool decimal_bits(const struct float_form *f, const char *s, size_t n,
                         uint64_t *bits)
{
    float single = 0;
    double v = 0;

    if (f->bytes == 4) {
        if (!zr_parse_f32(s, n, &single))
            return false;
        *bits = load_bits(&single, 4);
        return true;
    }
    if (!zr_parse_f64(s, n, &v))
        return false;
    *bits = f->bytes == 2 ? zr_half_from_f64(v) : load_bits(&v, 8);
    return true;
}

static zarr_status parse_float(const zarr_dtype_info *info, const struct float_form *f,
                               const struct zr_json *v, void *element, zarr_error *err)
{
    uint64_t bits = 0;
    const char *s;
    size_t n;

    if (!zr_json_is(v, ZR_JSON_NUMBER) && !zr_json_is(v, ZR_JSON_STRING))
        return zr_value_refuse(info, v, "a number is expected", err);
    s = v->u.text.ptr;
    n = v->u.text.bytes;
    if (!special_bits(f, s, n, &bits) && !hex_bits(f, s, n, &bits)) {
        if (!decimal_bits(f, s, n, &bits))
            return zr_value_refuse(
                info, v,
                "a number, \"NaN\", \"Infinity\", \"-Infinity\" or all digits "
                "of \"0x...\" are expected",
                err);
        if ((bits & f->infinity) == f->infinity)
            return zr_value_refuse(info, v, "out of range", err);
    }
    store_bits(element, f->bytes, bits);
    return ZARR_OK;
}

static zarr_status float_fill_parse(const zarr_dtype_info *info, int format,
                                    const char *json, void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_value value;

    ZR_UNUSED(format);
    ZR_TRY(zr_value_open(&value, info, json, err));
    ZR_TRY(parse_float(info, form_of(info->item_bytes), value.v, element, err));
out:
    zr_value_close(&value);
    return st;
}

static zarr_status complex_fill_parse(const zarr_dtype_info *info, int format,
                                      const char *json, void *element, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_value value;
    const struct float_form *f = form_of(info->item_bytes / 2);
    uint8_t *imaginary = (uint8_t *)element + f->bytes;

    ZR_UNUSED(format);
    ZR_TRY(zr_value_open(&value, info, json, err));
    if (zr_json_is(value.v, ZR_JSON_ARRAY)) {
        if (zr_json_count(value.v) != 2)
            ZR_TRY(zr_value_refuse(info, value.v, "a pair [real, imaginary] is expected",
                                   err));
        ZR_TRY(parse_float(info, f, zr_json_at(value.v, 0), element, err));
        ZR_TRY(parse_float(info, f, zr_json_at(value.v, 1), imaginary, err));
    } else { /* old files: the real part alone */
        ZR_TRY(parse_float(info, f, value.v, element, err));
        store_bits(imaginary, f->bytes, 0);
    }
out:
    zr_value_close(&value);
    return st;
}

/* ---- out ------------------------------------------------------------------ */

static void put_hex(struct zr_sink *s, const struct float_form *f, uint64_t bits)
{
    static const char digits[] = "0123456789abcdef";

    zr_sink_puts(s, "\"0x");
    for (int shift = (int)f->bytes * 8 - 4; shift >= 0; shift -= 4)
        zr_sink_putc(s, digits[bits >> shift & 15]);
    zr_sink_putc(s, '"');
}

static void print_float(struct zr_sink *s, const struct float_form *f, int format,
                        const void *element)
{
    uint64_t bits = load_bits(element, f->bytes);
    char text[48];
    float single;
    double v;
    size_t n;

    if ((bits & ~f->sign) == f->infinity) {
        zr_sink_puts(s, bits & f->sign ? "\"-Infinity\"" : "\"Infinity\"");
        return;
    }
    if ((bits & f->infinity) == f->infinity) {
        if (bits == f->canonical_nan || format == 2)
            zr_sink_puts(s, "\"NaN\"");
        else
            put_hex(s, f, bits);
        return;
    }
    if (f->bytes == 2) {
        n = zr_half_format(text, sizeof text, (uint16_t)bits);
    } else if (f->bytes == 4) {
        memcpy(&single, element, 4);
        n = zr_format_f32(text, sizeof text, single);
    } else {
        memcpy(&v, element, 8);
        n = zr_format_f64(text, sizeof text, v);
    }
    zr_sink_put(s, text, n);
}

static zarr_status float_fill_print(const zarr_dtype_info *info, int format,
                                    const void *element, char *text, size_t cap,
                                    size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    print_float(&s, form_of(info->item_bytes), format, element);
    return zr_sink_end(&s, text_bytes);
}

static zarr_status complex_fill_print(const zarr_dtype_info *info, int format,
                                      const void *element, char *text, size_t cap,
                                      size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    const struct float_form *f = form_of(info->item_bytes / 2);

    ZR_UNUSED(err);
    zr_sink_putc(&s, '[');
    print_float(&s, f, format, element);
    zr_sink_putc(&s, ',');
    print_float(&s, f, format, (const uint8_t *)element + f->bytes);
    zr_sink_putc(&s, ']');
    return zr_sink_end(&s, text_bytes);
}

/* ---- tables --------------------------------------------------------------- */

static zarr_status real_facts(zarr_dtype_info *info, uint8_t bytes, uint8_t parts)
{
    info->kind = parts == 2 ? ZARR_KIND_COMPLEX : ZARR_KIND_FLOAT;
    info->item_bytes = (uint64_t)bytes * parts;
    info->swap_bytes = bytes;
    info->dlpack_code = parts == 2 ? ZARR_DLPACK_COMPLEX : ZARR_DLPACK_FLOAT;
    info->dlpack_bits = (uint8_t)(bytes * 8 * parts);
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

#define REAL_TABLE(table, v3_name, v2_type, function, bytes, parts, read, print)         \
    static zarr_status function(zarr_dtype_info *info, const zarr_dtype_host *host,      \
                                const char *name, const char *json, zarr_error *err)     \
    {                                                                                    \
        ZR_UNUSED(host);                                                                 \
        ZR_UNUSED(name);                                                                 \
        ZR_UNUSED(json);                                                                 \
        ZR_UNUSED(err);                                                                  \
        return real_facts(info, bytes, parts);                                           \
    }                                                                                    \
    const zarr_dtype_vtable table = {                                                    \
        .struct_size = sizeof(zarr_dtype_vtable),                                        \
        .name = v3_name,                                                                 \
        .v2 = v2_type,                                                                   \
        .parse = function,                                                               \
        .fill_parse = read,                                                              \
        .fill_print = print,                                                             \
    }
REAL_TABLE(zr_dtype_float16, "float16", "f2", parse_float16, 2, 1, float_fill_parse,
           float_fill_print);
REAL_TABLE(zr_dtype_float32, "float32", "f4", parse_float32, 4, 1, float_fill_parse,
           float_fill_print);
REAL_TABLE(zr_dtype_float64, "float64", "f8", parse_float64, 8, 1, float_fill_parse,
           float_fill_print);
REAL_TABLE(zr_dtype_complex64, "complex64", "c8", parse_complex64, 4, 2,
           complex_fill_parse, complex_fill_print);
REAL_TABLE(zr_dtype_complex128, "complex128", "c16", parse_complex128, 8, 2,
           complex_fill_parse, complex_fill_print);
