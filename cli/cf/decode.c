/*
 * cf/decode.c - decodes stored elements by the CF conventions, as xarray.decode_cf():
 * scale_factor, add_offset, _FillValue, missing_value, _Unsigned, times, booleans and
 * text. Unlike xarray, it also takes values outside of the valid range as missing.
 */
#include "cf/cf.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- attributes ---- */

static char *attribute_text(const char *attributes, const char *key)
{
    size_t n = 0;
    const char *value = cli_json_member(attributes, key, &n);

    return value ? cli_json_unquote(value, n) : NULL;
}

/* Reads a number, or up to `most` numbers of a list. Returns how many. */
static int attribute_numbers(const char *attributes, const char *key, double *out,
                             int most)
{
    size_t n = 0;
    const char *value = cli_json_member(attributes, key, &n);
    const bool is_list = value && *value == '[';
    bool ok = value != NULL;
    int count = 0;

    while (ok && count < most) {
        const char *item = is_list ? cli_json_item(value, (size_t)count, &n) : value;
        char *text = !item          ? NULL
                     : *item == '"' ? cli_json_unquote(item, n)
                                    : cli_format("%.*s", (int)n, item);

        ok = text && cli_parse_f64(text, &out[count]);
        count += ok;
        free(text);
        ok = ok && is_list;
    }
    return count;
}

static bool attribute_is(const char *attributes, const char *key, const char *word)
{
    char *text = attribute_text(attributes, key);
    const bool same = text && strcmp(text, word) == 0;

    free(text);
    return same;
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
    cf->is_longitude = is_degrees(cf->unit, "east") ||
                       (attribute_is(attributes, "standard_name", "longitude") &&
                        (!cf->unit || strcmp(cf->unit, "degrees") == 0));
    cf->is_latitude = is_degrees(cf->unit, "north") ||
                      attribute_is(attributes, "standard_name", "latitude");
}

/* ---- what the attributes say ---- */

/* Gives the type the sign that _Unsigned tells. */
static zarr_status find_sign(struct cli *cli, struct cf *cf, const char *attributes,
                             zarr_error *err)
{
    const uint32_t kind = zarr_dtype_kind(cf->type);
    char *name;
    zarr_status st;

    if (kind == ZARR_KIND_FLOAT ||
        !attribute_is(attributes, "_Unsigned", kind == ZARR_KIND_INT ? "true" : "false"))
        return ZARR_OK;
    name = cli_format("%s%d", kind == ZARR_KIND_INT ? "uint" : "int",
                      (int)zarr_dtype_item_bits(cf->type));
    st = zarr_dtype_find(&cf->type, cli->ctx, name, err);
    free(name);
    return st;
}

static double stored_number(const struct cf *cf, const void *element)
{
    double v = (double)NAN;

    (void)zarr_dtype_number(cf->type, element, &v, 1);
    return v;
}

/* A number of an attribute as an element of the type, which _Unsigned may have changed.
 */
static double as_stored(const struct cf *cf, double v)
{
    const double all = ldexp(1, (int)zarr_dtype_item_bits(cf->type));
    const uint32_t kind = zarr_dtype_kind(cf->type);

    if (kind == ZARR_KIND_FLOAT && zarr_dtype_item_bytes(cf->type) == sizeof(float))
        return (double)(float)v;
    if (kind == ZARR_KIND_UINT && v < 0)
        return v + all;
    return kind == ZARR_KIND_INT && v >= all / 2 ? v - all : v;
}

static void find_missing(struct cf *cf, const void *element, const char *attributes)
{
    double v[CF_LIST_MAX + 1];
    int n = attribute_numbers(attributes, "missing_value", v, CF_LIST_MAX);

    if (element)
        v[n++] = stored_number(cf, element);
    for (int i = 0; i < n; i++)
        if (!isnan(v[i]))
            cf->missing[cf->n_missing++] = as_stored(cf, v[i]);
    v[0] = v[1] = (double)NAN; /* no limit */
    if (attribute_numbers(attributes, "valid_range", v, 2) != 2) {
        v[0] = v[1] = (double)NAN;
        attribute_numbers(attributes, "valid_min", &v[0], 1);
        attribute_numbers(attributes, "valid_max", &v[1], 1);
    }
    for (int i = 0; i < 2; i++) /* valid_max of int8 may be 255, if that is no -1 */
        if (cf->type != cf->decoded || zarr_dtype_kind(cf->type) == ZARR_KIND_FLOAT)
            v[i] = as_stored(cf, v[i]);
    cf->low = v[0];
    cf->high = v[1];
    cf->is_masked = cf->n_missing > 0 || isfinite(cf->low) || isfinite(cf->high);
}

/* The name of the type of decoded numbers and times; NULL: the stored type. */
static const char *decoded_name(const struct cf *cf)
{
    if (cf->kind == CF_TIME)
        return "<M8[us]";
    if (cf->has_scale)
        return "float64";
    if (cf->is_masked && zarr_dtype_kind(cf->type) != ZARR_KIND_FLOAT)
        return zarr_dtype_item_bytes(cf->type) <= 2 ? "float32" : "float64";
    return cf->is_bool ? "bool" : NULL;
}

/* datetime64 counts "D", "h", "s", "ms" and so on since 1970. */
static const char *find_datetime(struct cf *cf)
{
    const char *name = zarr_dtype_v2(cf->type), *unit = name ? strchr(name, '[') : NULL;
    char *units;

    if (!unit || strcmp(unit, "[M]") == 0)
        return NULL;
    units = cli_format("%.*s%s since 1970-01-01", (int)strcspn(unit + 1, "]"), unit + 1,
                       strcmp(unit, "[m]") == 0   ? "in"
                       : strcmp(unit, "[W]") == 0 ? "eek"
                                                  : "");
    if (cf_units_parse(units, CF_PROLEPTIC, &cf->units))
        cf->kind = CF_TIME;
    free(units);
    return decoded_name(cf);
}

/* Text in bytes. Characters are joined along their last dimension. */
static const char *find_text(struct cli *cli, struct cf *cf, const zarr_array *array,
                             const char *shown)
{
    const int32_t ndim = zarr_array_ndim(array);
    const char *last = ndim > 0 ? zarr_array_dimension_name(array, ndim - 1) : NULL;
    char *encoding = attribute_text(zarr_array_attributes(array), "_Encoding");

    cf->kind = CF_TEXT;
    cf->joins = ndim > 0 && zarr_array_dtype(array) == cf->type && cf->value_bytes == 1 &&
                (encoding || (last && (strstr(last, "str") || strstr(last, "char"))));
    if (cf->joins)
        cf->value_bytes = zarr_array_shape(array)[ndim - 1];
    if (encoding && strcasecmp(encoding, "utf-8") != 0 &&
        strcasecmp(encoding, "utf8") != 0 && strcasecmp(encoding, "ascii") != 0) {
        cli_warn(cli, "%s: the text stays bytes: its encoding is \"%s\"", shown,
                 encoding);
        cf->kind = CF_STORED;
        cf->joins = false;
    }
    free(encoding);
    return cf->kind == CF_TEXT ? "string" : NULL;
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

bool cf_is_number(const zarr_dtype *type)
{
    const uint32_t kind = zarr_dtype_kind(type);

    return zarr_dtype_components(type) == 1 &&
           (kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT || kind == ZARR_KIND_FLOAT);
}

/* Reads the attributes of numbers. Returns the name of the decoded type, or NULL. */
static const char *find_numbers(struct cli *cli, struct cf *cf, const zarr_array *array,
                                const char *shown)
{
    const char *attributes = zarr_array_attributes(array), *name;
    const bool is_whole = zarr_array_dtype(array) == cf->decoded; /* no field */

    cf->is_bool = attribute_is(attributes, "dtype", "bool") && cf->value_bytes == 1;
    cf->scale = 1;
    cf->has_scale = attribute_numbers(attributes, "scale_factor", &cf->scale, 1) == 1;
    if (attribute_numbers(attributes, "add_offset", &cf->offset, 1) == 1)
        cf->has_scale = true;
    cf->meanings = attribute_text(attributes, "flag_meanings");
    cf->n_flags = attribute_numbers(attributes, "flag_values", cf->flag, CF_LIST_MAX);
    cf->n_masks = attribute_numbers(attributes, "flag_masks", cf->mask, CF_LIST_MAX);
    find_missing(cf, is_whole ? zarr_array_missing_value(array) : NULL, attributes);
    find_time(cli, cf, attributes, shown);
    name = decoded_name(cf);
    if (cf->kind == CF_STORED && (name || cf->is_masked || cf->type != cf->decoded))
        cf->kind = CF_NUMBER;
    cf->decoded = cf->type;
    return name;
}

int cf_find(struct cli *cli, const zarr_array *array, const zarr_dtype *type,
            const char *shown, struct cf *out)
{
    const char *attributes = zarr_array_attributes(array), *name = NULL;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    *out = (struct cf){.type = type, .decoded = type};
    out->value_bytes = zarr_dtype_item_bytes(type);
    out->unit = attribute_text(attributes, "units");
    find_direction(out, attributes);
    if (cf_is_number(type))
        st = find_sign(cli, out, attributes, &err);
    if (!st && cf_is_number(type))
        name = find_numbers(cli, out, array, shown);
    else if (zarr_dtype_kind(type) == ZARR_KIND_DATETIME)
        name = find_datetime(out);
    else if (zarr_dtype_kind(type) == ZARR_KIND_BYTES)
        name = find_text(cli, out, array, shown);
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
    const bool is_date = zarr_dtype_kind(cf->type) == ZARR_KIND_DATETIME;
    const bool is_int64 = zarr_dtype_kind(cf->type) == ZARR_KIND_INT &&
                          zarr_dtype_item_bytes(cf->type) == sizeof(int64_t);
    const double v = is_date ? 0 : cf_number(cf, element);
    int64_t ticks;

    if (isnan(v) || cf->has_scale || !(is_date || is_int64))
        return cf_units_instant(&cf->units, v);
    memcpy(&ticks, element, sizeof ticks); /* exact, also above 2^53 */
    return ticks == INT64_MIN ? CF_NO_TIME : cf_units_instant(&cf->units, ticks);
}

static bool has_flag(const struct cf *cf, double v, int i)
{
    const double mask = i < cf->n_masks ? cf->mask[i] : -1;
    const double flag = i < cf->n_flags ? cf->flag[i] : mask;

    return i < (cf->n_masks ? cf->n_masks : cf->n_flags) && v == rint(v) &&
           fabs(v) < 9e15 && fabs(mask) < 9e15 &&
           (double)((int64_t)v & (int64_t)mask) == flag;
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
static void decode_number(const struct cf *cf, const char *element, char *out)
{
    const double v = cf_number(cf, element);
    const float narrow = (float)v;
    const size_t bytes = (size_t)cf->value_bytes;

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
    const size_t decoded = (size_t)zarr_dtype_item_bytes(cf->decoded);
    const char *from = elements;
    char *to = out;

    for (uint64_t i = 0; i < n; i++, from += cf->value_bytes, to += decoded) {
        if (cf->kind == CF_TIME) {
            const int64_t t = cf_time(cf, from);

            memcpy(to, &t, sizeof t);
        } else if (cf->kind == CF_NUMBER) {
            decode_number(cf, from, to);
        } else {
            zarr_vlen text = {.data = from, .bytes = cf->value_bytes};

            while (text.bytes > 0 && from[text.bytes - 1] == '\0')
                text.bytes--;
            memcpy(to, &text, sizeof text);
        }
    }
}
