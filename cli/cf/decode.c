/*
 * cf/decode.c - decodes stored elements by the CF conventions, as xarray.decode_cf():
 * scale_factor, add_offset, _FillValue, missing_value, _Unsigned, times and booleans.
 * Unlike xarray, it also takes values outside of the valid range as missing.
 */
#include "cf/cf.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- attributes ---- */

static char *attribute_text(const char *attributes, const char *key)
{
    size_t n = 0;
    const char *value = cli_json_member(attributes, key, &n);

    return value ? cli_json_unquote(value, n) : NULL;
}

static bool read_number(const char *json, size_t bytes, double *out)
{
    char *text = *json == '"' ? cli_json_unquote(json, bytes)
                              : cli_format("%.*s", (int)bytes, json);
    const bool ok = text && bytes < 64 && cli_parse_f64(text, out);

    free(text);
    return ok;
}

/* Reads a number, or up to `most` numbers of a list. Returns how many. */
static int attribute_numbers(const char *attributes, const char *key, double *out,
                             int most)
{
    size_t n = 0;
    const char *value = cli_json_member(attributes, key, &n);
    int count = 0;

    if (!value || *value != '[')
        return value && read_number(value, n, out) ? 1 : 0;
    while (count < most) {
        const char *item = cli_json_item(value, (size_t)count, &n);

        if (!item || !read_number(item, n, &out[count]))
            break;
        count++;
    }
    return count;
}

/* Whether units are "degrees_east", "degree_E" and so on, or the same of the north. */
static bool is_degrees(const char *unit, const char *toward)
{
    if (!unit || strncmp(unit, "degree", 6) != 0)
        return false;
    unit += 6;
    unit += *unit == 's';
    unit += *unit == '_';
    return strcmp(unit, toward) == 0 || (unit[0] == toupper(*toward) && unit[1] == '\0');
}

static void find_direction(struct cf *cf, const char *attributes)
{
    char *standard = attribute_text(attributes, "standard_name");

    cf->is_longitude =
        is_degrees(cf->unit, "east") || (standard && strcmp(standard, "longitude") == 0 &&
                                         (!cf->unit || strcmp(cf->unit, "degrees") == 0));
    cf->is_latitude =
        is_degrees(cf->unit, "north") || (standard && strcmp(standard, "latitude") == 0);
    cf->name = attribute_text(attributes, "long_name");
    if (!cf->name)
        cf->name = standard;
    else
        free(standard);
}

/* ---- what the attributes say ---- */

/* The number with the sign that _Unsigned gives to it. */
static double with_sign(const struct cf *cf, double v)
{
    const int bits = (int)zarr_dtype_item_bits(cf->type);

    if (cf->is_unsigned && v < 0)
        return v + ldexp(1, bits);
    return cf->is_signed && v >= ldexp(1, bits - 1) ? v - ldexp(1, bits) : v;
}

static double stored_number(const struct cf *cf, const void *element)
{
    double v = (double)NAN;

    return zarr_dtype_number(cf->type, element, &v, 1) == 1 ? with_sign(cf, v)
                                                            : (double)NAN;
}

static void find_missing(struct cf *cf, const zarr_array *array, const char *attributes)
{
    const void *element =
        zarr_array_dtype(array) == cf->type ? zarr_array_missing_value(array) : NULL;
    double v[CF_MISSING_MAX];
    int n = attribute_numbers(attributes, "missing_value", v, CF_MISSING_MAX - 1);

    if (element)
        v[n++] = stored_number(cf, element);
    for (int i = 0; i < n; i++) {
        if (zarr_dtype_kind(cf->type) == ZARR_KIND_FLOAT &&
            zarr_dtype_item_bytes(cf->type) == sizeof(float))
            v[i] = (double)(float)v[i];
        if (!isnan(v[i]))
            cf->missing[cf->n_missing++] = with_sign(cf, v[i]);
    }
    cf->low = -(double)INFINITY;
    cf->high = (double)INFINITY;
    if (attribute_numbers(attributes, "valid_range", v, 2) == 2) {
        cf->low = v[0];
        cf->high = v[1];
    } else {
        attribute_numbers(attributes, "valid_min", &cf->low, 1);
        attribute_numbers(attributes, "valid_max", &cf->high, 1);
    }
    cf->low = isnan(cf->low) ? -(double)INFINITY : cf->low;
    cf->high = isnan(cf->high) ? (double)INFINITY : cf->high;
    cf->is_masked = cf->n_missing > 0 || isfinite(cf->low) || isfinite(cf->high);
}

static void find_packing(struct cf *cf, const char *attributes)
{
    const uint32_t kind = zarr_dtype_kind(cf->type);
    char *sign = attribute_text(attributes, "_Unsigned");

    cf->is_unsigned = sign && kind == ZARR_KIND_INT && strcmp(sign, "true") == 0;
    cf->is_signed = sign && kind == ZARR_KIND_UINT && strcmp(sign, "false") == 0;
    free(sign);
    sign = attribute_text(attributes, "dtype");
    cf->is_bool =
        sign && strcmp(sign, "bool") == 0 && zarr_dtype_item_bytes(cf->type) == 1;
    free(sign);
    cf->scale = 1;
    cf->has_scale = attribute_numbers(attributes, "scale_factor", &cf->scale, 1) == 1;
    if (attribute_numbers(attributes, "add_offset", &cf->offset, 1) == 1)
        cf->has_scale = true;
}

/* datetime64: how many microseconds a tick has, or ticks a microsecond. */
static bool find_tick(struct cf *cf)
{
    static const struct {
        const char *unit;
        int64_t tick, per_tick;
    } rows[] = {{"W", INT64_C(604800000000), 1},
                {"D", INT64_C(86400000000), 1},
                {"h", INT64_C(3600000000), 1},
                {"m", 60000000, 1},
                {"s", 1000000, 1},
                {"ms", 1000, 1},
                {"us", 1, 1},
                {"ns", 1, 1000},
                {"ps", 1, 1000000},
                {"fs", 1, 1000000000}};
    const char *text = zarr_dtype_v2(cf->type), *unit = text ? strchr(text, '[') : NULL;

    for (size_t i = 0; unit && i < sizeof rows / sizeof *rows; i++) {
        const size_t n = strlen(rows[i].unit);

        if (strncmp(unit + 1, rows[i].unit, n) == 0 && unit[n + 1] == ']') {
            cf->tick = rows[i].tick;
            cf->per_tick = rows[i].per_tick;
            return true;
        }
    }
    return false;
}

static void find_time(struct cli *cli, struct cf *cf, const char *attributes,
                      const char *shown)
{
    char *calendar = attribute_text(attributes, "calendar");
    enum cf_calendar found;

    if (cf->unit && strstr(cf->unit, " since ")) {
        if (cf_calendar_find(calendar, &found) &&
            cf_units_parse(cf->unit, found, &cf->units))
            cf->kind = CF_TIME;
        else
            cli_warn(cli, "%s: the times stay numbers: \"%s\" in calendar \"%s\"", shown,
                     cf->unit, calendar ? calendar : "standard");
    }
    free(calendar);
}

static const char *decoded_name(const struct cf *cf)
{
    const uint64_t bytes = zarr_dtype_item_bytes(cf->type);
    static const char *const names[2][4] = {{"int8", "int16", "int32", "int64"},
                                            {"uint8", "uint16", "uint32", "uint64"}};

    if (cf->kind == CF_TIME)
        return "<M8[us]";
    if (cf->has_scale)
        return "float64";
    if (cf->is_bool && !cf->is_masked)
        return "bool";
    if (cf->is_masked)
        return bytes <= 2 ? "float32" : "float64";
    return names[cf->is_unsigned][bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

bool cf_is_number(const zarr_dtype *type)
{
    const uint32_t kind = zarr_dtype_kind(type);

    return zarr_dtype_components(type) == 1 &&
           (kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT || kind == ZARR_KIND_FLOAT);
}

int cf_find(struct cli *cli, const zarr_array *array, const zarr_dtype *type,
            const char *shown, struct cf *out)
{
    const char *attributes = zarr_array_attributes(array), *name = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    *out = (struct cf){.type = type, .decoded = type};
    out->unit = attribute_text(attributes, "units");
    find_direction(out, attributes);
    if (zarr_dtype_kind(type) == ZARR_KIND_DATETIME) {
        out->units.calendar = CF_PROLEPTIC;
        out->kind = find_tick(out) ? CF_TIME : CF_STORED;
        return CLI_OK;
    }
    if (!cf_is_number(type))
        return CLI_OK;
    find_packing(out, attributes);
    out->meanings = attribute_text(attributes, "flag_meanings");
    out->n_flags = attribute_numbers(attributes, "flag_values", out->flag, CF_FLAGS_MAX);
    out->n_masks = attribute_numbers(attributes, "flag_masks", out->mask, CF_FLAGS_MAX);
    find_missing(out, array, attributes);
    find_time(cli, out, attributes, shown);
    if (out->kind == CF_TIME || out->has_scale || out->is_unsigned || out->is_signed ||
        out->is_bool || (out->is_masked && zarr_dtype_kind(type) != ZARR_KIND_FLOAT))
        name = decoded_name(out);
    if (out->kind == CF_STORED && (name || out->is_masked))
        out->kind = CF_NUMBER;
    if (name)
        st = zarr_dtype_find(&out->decoded, cli->ctx, name, &err);
    return st ? cli_fail(cli, st, &err, "cannot decode %s", shown) : CLI_OK;
}

bool cf_is_wanted(const struct cli *cli)
{
    const char *setting = getenv("ZARRC_DECODE");

    return cli_flag(cli, "decode") || (setting && strcmp(setting, "1") == 0);
}

void cf_free(struct cf *cf)
{
    free(cf->unit);
    free(cf->name);
    free(cf->meanings);
    *cf = (struct cf){0};
}

/* ---- elements ---- */

static bool is_missing(const struct cf *cf, double v)
{
    for (int i = 0; i < cf->n_missing; i++)
        if (v == cf->missing[i])
            return true;
    return v < cf->low || v > cf->high;
}

double cf_number(const struct cf *cf, const void *element)
{
    const double v = stored_number(cf, element);

    if (cf->is_masked && is_missing(cf, v))
        return (double)NAN;
    return cf->has_scale ? v * cf->scale + cf->offset : v;
}

int64_t cf_time(const struct cf *cf, const void *element)
{
    int64_t ticks;

    if (cf->tick == 0)
        return cf_units_instant(&cf->units, cf_number(cf, element));
    memcpy(&ticks, element, sizeof ticks);
    if (ticks == INT64_MIN || ticks > INT64_MAX / cf->tick ||
        ticks < -(INT64_MAX / cf->tick))
        return CF_NO_TIME;
    return ticks * cf->tick / cf->per_tick -
           (ticks * cf->tick % cf->per_tick < 0); /* rounded down */
}

static bool has_flag(const struct cf *cf, double v, int i)
{
    if (cf->n_masks == 0)
        return i < cf->n_flags && v == cf->flag[i];
    return i < cf->n_masks && fabs(v) < 9e15 && fabs(cf->mask[i]) < 9e15 &&
           (double)((int64_t)v & (int64_t)cf->mask[i]) ==
               (i < cf->n_flags ? cf->flag[i] : cf->mask[i]);
}

bool cf_flags_print(const struct cf *cf, const void *decoded, struct cli_string *out)
{
    const char *word = cf->meanings ? cf->meanings : "";
    double v = (double)NAN;
    bool any = false;

    if (cf->n_flags + cf->n_masks == 0 ||
        zarr_dtype_number(cf->decoded, decoded, &v, 1) != 1)
        return false;
    for (int i = 0; *word; i++) {
        const size_t n = strcspn(word, " ");

        if (has_flag(cf, v, i)) {
            cli_string_add(out, "|", any);
            cli_add_clean(out, word, n);
            any = true;
        }
        word += n;
        word += strspn(word, " ");
    }
    return any;
}

/* One element as a number of the decoded type. */
static void decode_number(const struct cf *cf, const char *element, size_t bytes,
                          char *out)
{
    const double v = cf_number(cf, element);
    const float narrow = (float)v;

    if (!cf->has_scale && (cf->decoded == cf->type || !cf->is_masked)) {
        memcpy(out, element, bytes); /* a masked float, or bits of another sign */
        if (isnan(v) && zarr_dtype_parse(cf->type, "\"NaN\"", out, NULL) != ZARR_OK)
            memset(out, 0xff, bytes);
        if (cf->is_bool)
            *out = v != 0;
    } else if (zarr_dtype_item_bytes(cf->decoded) == sizeof v) {
        memcpy(out, &v, sizeof v);
    } else {
        memcpy(out, &narrow, sizeof narrow);
    }
}

void cf_decode(const struct cf *cf, const void *elements, uint64_t n, void *out)
{
    const size_t bytes = (size_t)zarr_dtype_item_bytes(cf->type);
    const size_t decoded = (size_t)zarr_dtype_item_bytes(cf->decoded);
    const char *from = elements;
    char *to = out;

    for (uint64_t i = 0; i < n; i++, from += bytes, to += decoded) {
        if (cf->kind == CF_TIME) {
            const int64_t t = cf_time(cf, from);

            memcpy(to, &t, sizeof t);
        } else if (cf->kind == CF_NUMBER) {
            decode_number(cf, from, bytes, to);
        } else {
            memcpy(to, from, bytes);
        }
    }
}
