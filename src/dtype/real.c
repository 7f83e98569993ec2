/*
 * dtype/real.c - floats of 4 to 64 bits and complex pairs of them. As a fill value, a
 * float is a number; "NaN", "Infinity" or "-Infinity" if its format has them; or its bits
 * as "0x..." with the most significant digit first. Bare NaN tokens and numbers in quotes
 * are also read. The library writes the shortest decimal that reads back; for formats of
 * one byte, the exact value. In v3 it writes the bits of a NaN that is not the canonical
 * one; v2 has no spelling for those. Floats are handled as bits and not as values, so
 * signalling NaNs pass unchanged.
 * info->param[0]: the format's row in zr_floats. Thread class: frozen.
 */
#include "dtype_int.h"

#include <string.h>

static const struct zr_float *real_form(const zarr_dtype_info *info)
{
    return &zr_floats[info->param[0]];
}

/* ---- in ------------------------------------------------------------------- */

static bool is_word(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(s, word, n) == 0;
}

static bool bits_from_special(const struct zr_float *f, const char *s, size_t n,
                              uint64_t *bits)
{
    if (is_word(s, n, "NaN"))
        *bits = f->nan;
    else if (is_word(s, n, "Infinity") || is_word(s, n, "+Infinity"))
        *bits = f->infinity;
    else if (is_word(s, n, "-Infinity"))
        *bits = f->infinity ? f->infinity | f->sign : 0;
    else
        return false;
    return true;
}

/* Reads "0x" and all hexadecimal digits of this width. */
static bool bits_from_hex(const struct zr_float *f, const char *s, size_t n,
                          uint64_t *bits)
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

/* Reads base64, as TensorStore writes v2 fill values of types that NumPy lacks. */
static bool bits_from_base64(const struct zr_float *f, const struct zr_json *v,
                             uint64_t *bits)
{
    uint8_t bytes[8];
    size_t n = 0;

    if (f->bytes != 1 || !zr_value_base64(v, bytes, sizeof bytes, &n) || n != 1)
        return false;
    *bits = bytes[0];
    return true;
}

/* `whole` is the value for messages: v, or the pair that contains it. */
static zarr_status parse_number(const zarr_dtype_info *info, const struct zr_json *v,
                                const struct zr_json *whole, uint64_t *bits,
                                zarr_error *err)
{
    bool fits = false;

    if (!zr_float_from_text(real_form(info), v->u.text.ptr, v->u.text.bytes, bits, &fits))
        return zr_value_refuse(
            info, whole,
            "a number, \"NaN\", \"Infinity\", \"-Infinity\" or all digits "
            "of \"0x...\" are expected",
            err);
    return fits ? ZARR_OK : zr_value_refuse(info, whole, "out of range", err);
}

static zarr_status parse_float(const zarr_dtype_info *info, int format,
                               const struct zr_json *v, const struct zr_json *whole,
                               void *element, zarr_error *err)
{
    const struct zr_float *f = real_form(info);
    uint64_t bits = 0;
    const char *s;
    size_t n;

    if (!zr_json_is(v, ZR_JSON_NUMBER) && !zr_json_is(v, ZR_JSON_STRING))
        return zr_value_refuse(info, whole, "a number is expected", err);
    s = v->u.text.ptr;
    n = v->u.text.bytes;
    if (bits_from_special(f, s, n, &bits)) {
        if (bits == 0)
            return zr_value_refuse(info, whole, "the type has no such value", err);
    } else if (bits_from_hex(f, s, n, &bits) ||
               (format == 2 && bits_from_base64(f, v, &bits))) {
        if (bits & ~(UINT64_MAX >> (64 - f->bits)))
            return zr_value_refuse(info, whole, "out of range", err);
    } else if (parse_number(info, v, whole, &bits, err)) {
        return ZARR_ERR_INVALID;
    }
    zr_float_store(f, element, bits);
    return ZARR_OK;
}

static zarr_status parse_pair(const zarr_dtype_info *info, int format,
                              const struct zr_json *v, void *element, zarr_error *err)
{
    uint8_t *imaginary = (uint8_t *)element + real_form(info)->bytes;

    if (!zr_json_is(v, ZR_JSON_ARRAY)) { /* old files have the real part alone */
        ZR_CHECK(parse_float(info, format, v, v, element, err));
        memset(imaginary, 0, real_form(info)->bytes);
        return ZARR_OK;
    }
    if (zr_json_count(v) != 2)
        ZR_CHECK(zr_value_refuse(info, v, "a pair [real, imaginary] is expected", err));
    ZR_CHECK(parse_float(info, format, zr_json_at(v, 0), v, element, err));
    return parse_float(info, format, zr_json_at(v, 1), v, imaginary, err);
}

static zarr_status real_from_json(const zarr_dtype_info *info, int format,
                                  const struct zr_json *v, void *element, zarr_error *err)
{
    return info->kind == ZARR_KIND_COMPLEX
               ? parse_pair(info, format, v, element, err)
               : parse_float(info, format, v, v, element, err);
}

ZR_FILL_PARSE(real)

/* ---- out ------------------------------------------------------------------ */

static void put_hex(struct zr_sink *s, const struct zr_float *f, uint64_t bits)
{
    static const char digits[] = "0123456789abcdef";

    zr_sink_puts(s, "\"0x");
    for (int shift = f->bytes * 8 - 4; shift >= 0; shift -= 4)
        zr_sink_putc(s, digits[bits >> shift & 15]);
    zr_sink_putc(s, '"');
}

static void print_float(struct zr_sink *s, const struct zr_float *f, int format,
                        const void *element)
{
    uint64_t bits = zr_float_load(f, element);
    char text[48];

    if (f->v2_base64 && format == 2) {
        const uint8_t byte = (uint8_t)bits;

        zr_sink_putc(s, '"');
        zr_sink_base64(s, &byte, 1);
        zr_sink_putc(s, '"');
    } else if (zr_float_is_nan(f, bits)) {
        if (bits == f->nan || format == 2)
            zr_sink_puts(s, "\"NaN\"");
        else
            put_hex(s, f, bits);
    } else if (f->infinity && (bits & ~f->sign) == f->infinity) {
        zr_sink_puts(s, bits & f->sign ? "\"-Infinity\"" : "\"Infinity\"");
    } else {
        zr_sink_put(s, text, zr_float_format(f, bits, text, sizeof text));
    }
}

static zarr_status real_fill_print(const zarr_dtype_info *info, int format,
                                   const void *element, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    const struct zr_float *f = real_form(info);

    ZR_UNUSED(err);
    if (info->kind == ZARR_KIND_COMPLEX) {
        zr_sink_putc(&s, '[');
        print_float(&s, f, format, element);
        zr_sink_putc(&s, ',');
        print_float(&s, f, format, (const uint8_t *)element + f->bytes);
        zr_sink_putc(&s, ']');
    } else {
        print_float(&s, f, format, element);
    }
    return zr_sink_end(&s, text_bytes);
}

const struct zr_float *zr_dtype_float(const zarr_dtype *dtype)
{
    const bool real =
        dtype->info.kind == ZARR_KIND_FLOAT || dtype->info.kind == ZARR_KIND_COMPLEX;

    return real && dtype->entry->vt.fill_print == real_fill_print
               ? real_form(&dtype->info)
               : NULL;
}

/* ---- values ---------------------------------------------------------------- */

static int order_of_bits(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_float(const struct zr_float *f, const void *a, const void *b)
{
    const uint64_t x = zr_float_load(f, a), y = zr_float_load(f, b);
    const bool x_nan = zr_float_is_nan(f, x), y_nan = zr_float_is_nan(f, y);

    if (x_nan || y_nan)
        return x_nan && y_nan ? order_of_bits(x, y) : x_nan - y_nan;
    if ((x ^ y) & f->sign)
        return x & f->sign ? -1 : 1;
    return x & f->sign ? order_of_bits(y, x) : order_of_bits(x, y);
}

static int real_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    const struct zr_float *f = real_form(info);
    const int order = compare_float(f, a, b);

    if (order || info->components < 2)
        return order;
    return compare_float(f, (const uint8_t *)a + f->bytes, (const uint8_t *)b + f->bytes);
}

static void real_number(const zarr_dtype_info *info, const void *element, double *out)
{
    const struct zr_float *f = real_form(info);

    for (uint32_t i = 0; i < info->components; i++)
        out[i] = zr_float_to_f64(
            f, zr_float_load(f, (const uint8_t *)element + (size_t)i * f->bytes));
}

/* ---- tables --------------------------------------------------------------- */

static zarr_status real_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                              const char *name, const char *json, zarr_error *err)
{
    const bool pair = zr_starts_with(name, "complex");
    const char *part = !pair                          ? name
                       : zr_streq(name, "complex64")  ? "float32"
                       : zr_streq(name, "complex128") ? "float64"
                                                      : name + strlen("complex_");
    const struct zr_float *f = zr_float_find(part, strlen(part));

    ZR_UNUSED(host, json);
    if (!f)
        return zr_internal(err);
    info->param[0] = (uint64_t)(f - zr_floats);
    info->kind = pair ? ZARR_KIND_COMPLEX : ZARR_KIND_FLOAT;
    info->components = pair ? 2 : 1;
    info->component_bits = f->bits;
    info->item_bytes = (uint64_t)f->bytes * info->components;
    info->item_bits = (uint64_t)f->bits * info->components;
    info->swap_bytes = f->bytes;
    if (f->unregistered)
        info->flags |= ZARR_DTYPE_EXPERIMENTAL;
    if (pair && f->dlpack != ZARR_DLPACK_FLOAT)
        return ZARR_OK;
    info->dlpack_code = pair ? ZARR_DLPACK_COMPLEX : f->dlpack;
    info->dlpack_bits = (uint8_t)info->item_bits;
    info->dlpack_lanes = 1;
    return ZARR_OK;
}

#define REAL(v3_name, v2_type, numpy_type)                                               \
    {                                                                                    \
        .struct_size = sizeof(zarr_dtype_vtable), .name = v3_name, .v2 = v2_type,        \
        .parse = real_parse, .fill_parse = real_fill_parse,                              \
        .fill_print = real_fill_print, .numpy = numpy_type, .compare = real_compare,     \
        .number = real_number                                                            \
    }
/* Types that NumPy itself lacks, under their names in ml_dtypes. For some of them,
 * TensorStore uses that name in v2. */
#define SMALL(v3_name) REAL(v3_name, NULL, v3_name)
#define SMALL_V2(v3_name)                                                                \
    {                                                                                    \
        .struct_size = sizeof(zarr_dtype_vtable), .flags = ZARR_DTYPE_V2_PLAIN,          \
        .name = v3_name, .v2 = v3_name, .parse = real_parse,                             \
        .fill_parse = real_fill_parse, .fill_print = real_fill_print, .numpy = v3_name,  \
        .compare = real_compare, .number = real_number                                   \
    }

static const char *const complex64_aliases[] = {"complex_float32", NULL};
static const char *const complex128_aliases[] = {"complex_float64", NULL};

#define PAIR(v3_name, v2_type, other_names)                                              \
    {                                                                                    \
        .struct_size = sizeof(zarr_dtype_vtable), .name = v3_name,                       \
        .aliases = other_names, .v2 = v2_type, .parse = real_parse,                      \
        .fill_parse = real_fill_parse, .fill_print = real_fill_print, .numpy = v2_type,  \
        .compare = real_compare, .number = real_number                                   \
    }

const zarr_dtype_vtable zr_dtype_reals[ZR_DTYPE_REALS] = {
    REAL("float16", "f2", "f2"),
    REAL("float32", "f4", "f4"),
    REAL("float64", "f8", "f8"),
    SMALL_V2("bfloat16"),
    SMALL_V2("float8_e3m4"),
    SMALL("float8_e4m3"),
    SMALL_V2("float8_e4m3b11fnuz"),
    SMALL_V2("float8_e4m3fn"),
    SMALL_V2("float8_e4m3fnuz"),
    SMALL_V2("float8_e5m2"),
    SMALL_V2("float8_e5m2fnuz"),
    SMALL_V2("float8_e8m0fnu"),
    SMALL("float6_e2m3fn"),
    SMALL("float6_e3m2fn"),
    SMALL_V2("float4_e2m1fn"),
    PAIR("complex64", "c8", complex64_aliases),
    PAIR("complex128", "c16", complex128_aliases),
    REAL("complex_float16", NULL, "complex32"),
    REAL("complex_bfloat16", NULL, "bcomplex32"),
    REAL("complex_float8_e3m4", NULL, NULL),
    REAL("complex_float8_e4m3", NULL, NULL),
    REAL("complex_float8_e4m3b11fnuz", NULL, NULL),
    REAL("complex_float8_e4m3fnuz", NULL, NULL),
    REAL("complex_float8_e5m2", NULL, NULL),
    REAL("complex_float8_e5m2fnuz", NULL, NULL),
    REAL("complex_float8_e8m0fnu", NULL, NULL),
    REAL("complex_float6_e2m3fn", NULL, NULL),
    REAL("complex_float6_e3m2fn", NULL, NULL),
    REAL("complex_float4_e2m1fn", NULL, NULL),
};
