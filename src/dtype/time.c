/*
 * dtype/time.c - NumPy's datetime64 and timedelta64: an int64 that counts a multiple of a
 * unit (since 1970 for the former), where INT64_MIN is NaT, "not a time". v2 has
 * M8[10us], m8[ns], and M8 without a unit, a multiple of which is M8[5generic]; v3 has
 * numpy.datetime64 with unit and scale_factor. The count is read and written as an
 * integer: there is no calendar here.
 * info->param: unit's index, multiple. Thread class: frozen.
 */
#include "dtype_int.h"

#include <math.h>
#include <string.h>

enum {
    UNIT_GENERIC = 13
};
#define MULTIPLE_MAX UINT64_C(2147483647) /* int32, as NumPy keeps it */

static const char *const time_units[] = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                         "ms", "us", "ns", "ps", "fs", "as", "generic"};
_Static_assert(ZR_COUNT(time_units) == UNIT_GENERIC + 1, "generic is the last unit");

static bool unit_index(const char *s, size_t n, uint64_t *index)
{
    if (n == 3 && (memcmp(s, "\xCE\xBCs", 3) == 0 || memcmp(s, "\xC2\xB5s", 3) == 0)) {
        s = "us"; /* the micro sign and the Greek mu */
        n = 2;
    }
    for (uint64_t i = 0; i < ZR_COUNT(time_units); i++) {
        if (strlen(time_units[i]) == n && memcmp(time_units[i], s, n) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static zarr_status time_facts(zarr_dtype_info *info, uint32_t kind, uint64_t unit,
                              uint64_t multiple)
{
    info->kind = kind;
    info->item_bytes = 8;
    info->swap_bytes = 8;
    info->param[0] = unit;
    info->param[1] = multiple;
    return ZARR_OK;
}

/* Parses "10us". */
static zarr_status unit_text(zarr_dtype_info *info, uint32_t kind, const char *s,
                             size_t n, zarr_error *err)
{
    uint64_t unit = 0, multiple = 1;
    size_t digits = 0;

    while (digits < n && s[digits] >= '0' && s[digits] <= '9')
        digits++;
    if ((digits > 0 && (!zr_parse_u64(s, digits, &multiple) || multiple < 1 ||
                        multiple > MULTIPLE_MAX)) ||
        !unit_index(s + digits, n - digits, &unit))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "data type %.64s: a unit such as [ns] or [10us] is expected",
                       info->name);
    return time_facts(info, kind, unit, multiple);
}

static zarr_status time_config(zarr_dtype_info *info, uint32_t kind, const char *name,
                               const struct zr_json *config, zarr_error *err)
{
    const struct zr_json *unit = zr_json_get(config, "unit");
    const struct zr_json *scale = zr_json_get(config, "scale_factor");
    uint64_t index = 0, multiple = 1;
    char text[64];

    if (!zr_json_is(unit, ZR_JSON_STRING) ||
        !unit_index(unit->u.text.ptr, unit->u.text.bytes, &index))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "data type %s: unit must be one of Y M W D h m s ms us ns ps fs as "
            "generic, not %s",
            name, zr_json_excerpt(unit, text, sizeof text));
    if (zr_config_only("the configuration", config, "unit", "scale_factor", err))
        return zr_prefix(err, ZARR_ERR_INVALID, "data type %s", name);
    if (scale &&
        zr_config_u64(name, config, "scale_factor", MULTIPLE_MAX, &multiple, err))
        return ZARR_ERR_INVALID;
    return time_facts(info, kind, index, multiple);
}

static zarr_status time_parse(zarr_dtype_info *info, uint32_t kind, const char *name,
                              const char *json, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc config;
    const char *inside = NULL;
    size_t n = 0;

    zr_json_doc_init(&config, info->allocator);
    if (!json && zr_split_brackets(name, &inside, &n)) {
        st = unit_text(info, kind, inside, n, err);
        goto out;
    }
    if (json)
        ZR_TRY(zr_json_parse(&config, json, strlen(json), NULL, err));
    st = time_config(info, kind, name, config.root, err);
out:
    zr_json_doc_deinit(&config);
    return st;
}

static zarr_status datetime_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                  const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    return time_parse(info, ZARR_KIND_DATETIME, name, json, err);
}

static zarr_status timedelta_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                   const char *name, const char *json, zarr_error *err)
{
    ZR_UNUSED(host);
    return time_parse(info, ZARR_KIND_TIMEDELTA, name, json, err);
}

/* Parses "M8[10us]" or "m8". */
static zarr_status time_parse_v2(zarr_dtype_info *info, const zarr_dtype_host *host,
                                 const char *v2, zarr_error *err)
{
    uint32_t kind = v2[0] == 'M' ? ZARR_KIND_DATETIME : ZARR_KIND_TIMEDELTA;
    const char *inside = NULL;
    size_t n = 0;

    ZR_UNUSED(host);
    if (v2[1] == '8' && v2[2] == '\0')
        return time_facts(info, kind, UNIT_GENERIC, 1);
    if (v2[1] != '8' || v2[2] != '[' || !zr_split_brackets(v2, &inside, &n))
        return zr_fail(err, ZARR_ERR_INVALID, "dtype \"%.64s\": %c8[unit] is expected",
                       v2, v2[0]);
    return unit_text(info, kind, inside, n, err);
}

static zarr_status time_write(const zarr_dtype_info *info, uint32_t what, char *text,
                              size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    bool datetime = info->kind == ZARR_KIND_DATETIME;
    const char *name = datetime ? "numpy.datetime64" : "numpy.timedelta64";
    const char *unit = time_units[info->param[0]];

    ZR_UNUSED(err);
    if (what == ZARR_DTYPE_TEXT_V3) {
        zr_sink_puts(&s, "{\"name\":\"");
        zr_sink_puts(&s, name);
        zr_sink_puts(&s, "\",\"configuration\":{\"unit\":\"");
        zr_sink_puts(&s, unit);
        zr_sink_puts(&s, "\",\"scale_factor\":");
        zr_sink_u64(&s, info->param[1]);
        zr_sink_puts(&s, "}}");
        return zr_sink_end(&s, text_bytes);
    }
    if (what == ZARR_DTYPE_TEXT_V2)
        name = datetime ? "M8" : "m8";
    zr_sink_puts(&s, name);
    if (what == ZARR_DTYPE_TEXT_NAME || info->param[0] != UNIT_GENERIC ||
        info->param[1] != 1) {
        zr_sink_putc(&s, '[');
        if (info->param[1] != 1)
            zr_sink_u64(&s, info->param[1]);
        zr_sink_puts(&s, unit);
        zr_sink_putc(&s, ']');
    }
    return zr_sink_end(&s, text_bytes);
}

/* ---- fill values ----------------------------------------------------------- */

static void time_fill_default(const zarr_dtype_info *info, void *element)
{
    const int64_t nat = INT64_MIN;

    ZR_UNUSED(info);
    memcpy(element, &nat, sizeof nat);
}

static zarr_status time_from_json(const zarr_dtype_info *info, int format,
                                  const struct zr_json *v, void *element, zarr_error *err)
{
    uint64_t bits = 0;

    ZR_UNUSED(format);
    if (zr_json_is_text(v, "NaT")) {
        time_fill_default(info, element);
        return ZARR_OK;
    }
    ZR_CHECK(zr_value_integer(info, v, INT64_MIN, INT64_MAX, &bits, err));
    memcpy(element, &bits, sizeof bits);
    return ZARR_OK;
}

ZR_FILL_PARSE(time)

static zarr_status time_fill_print(const zarr_dtype_info *info, int format,
                                   const void *element, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    struct zr_sink s = {text, cap, 0};
    int64_t v;

    ZR_UNUSED(info, format, err);
    memcpy(&v, element, sizeof v);
    if (v == INT64_MIN) {
        zr_sink_puts(&s, "\"NaT\"");
    } else {
        if (v < 0)
            zr_sink_putc(&s, '-');
        zr_sink_u64(&s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    }
    return zr_sink_end(&s, text_bytes);
}

/* Sorts NaT after all times, as NumPy does. */
static int time_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    int64_t x, y;

    ZR_UNUSED(info);
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (x == INT64_MIN || y == INT64_MIN)
        return (x == INT64_MIN) - (y == INT64_MIN);
    return (x > y) - (x < y);
}

static void time_number(const zarr_dtype_info *info, const void *element, double *out)
{
    int64_t v;

    ZR_UNUSED(info);
    memcpy(&v, element, sizeof v);
    *out = v == INT64_MIN ? (double)NAN : (double)v;
}

#define TIME_TABLE(table, v3_name, v2_letter, function)                                  \
    const zarr_dtype_vtable table = {                                                    \
        .struct_size = sizeof(zarr_dtype_vtable),                                        \
        .flags = ZARR_DTYPE_FAMILY,                                                      \
        .name = v3_name,                                                                 \
        .v2 = v2_letter,                                                                 \
        .parse = function,                                                               \
        .parse_v2 = time_parse_v2,                                                       \
        .write = time_write,                                                             \
        .fill_parse = time_fill_parse,                                                   \
        .fill_print = time_fill_print,                                                   \
        .fill_default = time_fill_default,                                               \
        .numpy = v2_letter,                                                              \
        .compare = time_compare,                                                         \
        .number = time_number,                                                           \
    }
TIME_TABLE(zr_dtype_datetime64, "numpy.datetime64", "M", datetime_parse);
TIME_TABLE(zr_dtype_timedelta64, "numpy.timedelta64", "m", timedelta_parse);
