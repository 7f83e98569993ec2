/*
 * dtype/optional.c - values that may be missing: `optional` around any other type, and
 * `zarrs.optional`, the name that zarrs uses until a registry has it. In memory an
 * element is the value's item followed by one byte. The byte is 1 if there is a value. It
 * is 0 if the value is missing, and the item's bytes are then zero. A fill value is null
 * or a list of the value, which may itself be null in nested types.
 * Thread class: frozen once parsed.
 * Recursion: a value's type may be optional again, OPTIONAL_DEPTH_MAX deep. Names longer
 * than OPTIONAL_NAME_MAX are refused, and JSON has its own limit.
 */
#include "dtype_int.h"

#include <string.h>

enum {
    OPTIONAL_NAME_MAX = 255,
    OPTIONAL_DEPTH_MAX = 16
};

struct optional {
    const zarr_allocator *alloc;
    const zarr_dtype *value; /* borrowed from the registry */
    const char *name;        /* of the table */
};

static void optional_free(zarr_dtype_info *info)
{
    struct optional *self = info->self;

    if (self)
        zr_free(self->alloc, self);
    info->self = NULL;
}

static const struct optional *optional_from_dtype(const zarr_dtype *dtype)
{
    return dtype && dtype->entry->vt.free == optional_free ? dtype->info.self : NULL;
}

const zarr_dtype *zarr_dtype_underlying(const zarr_dtype *dtype)
{
    const struct optional *self = optional_from_dtype(dtype);

    return self ? self->value : NULL;
}

/* ---- names ------------------------------------------------------------------- */

static zarr_status optional_depth(const zarr_dtype *value, zarr_error *err)
{
    int depth = 1;

    for (; value; value = zarr_dtype_underlying(value))
        depth++;
    return depth - 1 > OPTIONAL_DEPTH_MAX
               ? zr_fail(err, ZARR_ERR_LIMIT, "optional: nested deeper than %d",
                         (int)OPTIONAL_DEPTH_MAX)
               : ZARR_OK;
}

static zarr_status optional_make(zarr_dtype_info *info, const zarr_dtype_host *host,
                                 const char *table, const char *text, zarr_error *err)
{
    const zarr_dtype *value = NULL;
    struct optional *self = NULL;
    zarr_status st = ZARR_OK;

    st = host->find(&value, host, text, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "%s", table);
    ZR_TRY(optional_depth(value, err));
    if (!value->v3_json) {
        st =
            zr_fail(err, ZARR_ERR_UNSUPPORTED,
                    "%s: the values' type %s has no name in v3", table, value->info.name);
        goto out;
    }
    self = zr_calloc(info->allocator, 1, sizeof *self);
    if (!self)
        ZR_FAIL_MEMORY(err, sizeof *self);
    *self = (struct optional){info->allocator, value, table};
    info->kind = ZARR_KIND_OPTIONAL;
    info->item_bytes = value->info.item_bytes + 1;
    info->swap_bytes = 1;
    info->flags = ZARR_DTYPE_EXPERIMENTAL | (value->info.flags & ZARR_DTYPE_VARIABLE);
    info->self = self;
out:
    return st;
}

/* The configuration has the members of an object that names a data type.
 * "optional[<name>]" is the short form. */
static zarr_status optional_parse_as(zarr_dtype_info *info, const zarr_dtype_host *host,
                                     const char *table, const char *name,
                                     const char *json, zarr_error *err)
{
    char inside[OPTIONAL_NAME_MAX + 1];
    const char *at = NULL;
    size_t n = 0;

    if (json)
        return optional_make(info, host, table, json, err);
    if (!zr_split_brackets(name, &at, &n) || n == 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "data type %s needs a configuration with the name of the values' "
                       "type, or %s[<type>]",
                       table, table);
    if (n >= sizeof inside)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "data type %s[...]: the name has %zu bytes, at most %d are "
                       "supported",
                       table, n, OPTIONAL_NAME_MAX);
    memcpy(inside, at, n);
    inside[n] = '\0';
    return optional_make(info, host, table, inside, err);
}

static zarr_status optional_parse(zarr_dtype_info *info, const zarr_dtype_host *host,
                                  const char *name, const char *json, zarr_error *err)
{
    return optional_parse_as(info, host, "optional", name, json, err);
}

static zarr_status zarrs_optional_parse(zarr_dtype_info *info,
                                        const zarr_dtype_host *host, const char *name,
                                        const char *json, zarr_error *err)
{
    return optional_parse_as(info, host, "zarrs.optional", name, json, err);
}

/* zarrs requires a configuration for the inner type, even an empty one. */
static void put_v3(struct zr_sink *s, const struct optional *self)
{
    const char *value = self->value->v3_json;

    zr_sink_puts(s, "{\"name\":\"");
    zr_sink_puts(s, self->name);
    zr_sink_puts(s, "\",\"configuration\":");
    if (*value == '{') {
        zr_sink_puts(s, value);
    } else {
        zr_sink_puts(s, "{\"name\":");
        zr_sink_puts(s, value);
        zr_sink_puts(s, ",\"configuration\":{}}");
    }
    zr_sink_puts(s, "}");
}

static zarr_status optional_write(const zarr_dtype_info *info, uint32_t what, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct optional *self = info->self;
    const char *name = self->value->name;
    struct zr_sink s = {text, cap, 0};

    ZR_UNUSED(err);
    *text_bytes = 0;
    if (what == ZARR_DTYPE_TEXT_V2)
        return ZARR_OK;
    if (what == ZARR_DTYPE_TEXT_V3 || !name || *name == '{' ||
        strlen(name) > OPTIONAL_NAME_MAX) {
        put_v3(&s, self);
    } else {
        zr_sink_puts(&s, self->name);
        zr_sink_puts(&s, "[");
        zr_sink_puts(&s, name);
        zr_sink_puts(&s, "]");
    }
    return zr_sink_end(&s, text_bytes);
}

/* ---- elements ------------------------------------------------------------------ */

static bool has_value(const struct optional *self, const void *element)
{
    return ((const uint8_t *)element)[self->value->info.item_bytes] != 0;
}

static zarr_status optional_from_json(const zarr_dtype_info *info, int format,
                                      const struct zr_json *v, void *element,
                                      zarr_error *err)
{
    const struct optional *self = info->self;

    memset(element, 0, (size_t)info->item_bytes);
    if (zr_json_is(v, ZR_JSON_NULL))
        return ZARR_OK;
    if (!zr_json_is(v, ZR_JSON_ARRAY) || zr_json_count(v) != 1)
        return zr_value_refuse(info, v, "null or a list of one value is expected", err);
    ZR_CHECK(zr_dtype_fill_parse(self->value, zr_json_at(v, 0), format, element, err));
    ((uint8_t *)element)[self->value->info.item_bytes] = 1;
    return ZARR_OK;
}

ZR_FILL_PARSE(optional)

static zarr_status optional_fill_print(const zarr_dtype_info *info, int format,
                                       const void *element, char *text, size_t cap,
                                       size_t *text_bytes, zarr_error *err)
{
    const struct optional *self = info->self;
    const zarr_dtype *value = self->value;
    struct zr_sink s = {text, cap, 0};
    zarr_status st = ZARR_OK;
    size_t n = 0;

    if (!has_value(self, element)) {
        zr_sink_puts(&s, "null");
        return zr_sink_end(&s, text_bytes);
    }
    zr_sink_putc(&s, '[');
    st = value->entry->vt.fill_print(&value->info, format, element,
                                     cap > 1 ? text + 1 : NULL, cap > 1 ? cap - 1 : 0, &n,
                                     err);
    if (st != ZARR_OK)
        return st;
    s.n += n;
    zr_sink_putc(&s, ']');
    return zr_sink_end(&s, text_bytes);
}

/* Sorts missing elements after all values. */
static int optional_compare(const zarr_dtype_info *info, const void *a, const void *b)
{
    const struct optional *self = info->self;
    const bool x = has_value(self, a), y = has_value(self, b);

    return x && y ? zarr_dtype_compare(self->value, a, b) : (int)y - (int)x;
}

const zarr_dtype_vtable zr_dtype_optional = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY | ZARR_DTYPE_EXPERIMENTAL,
    .name = "optional",
    .parse = optional_parse,
    .write = optional_write,
    .fill_parse = optional_fill_parse,
    .fill_print = optional_fill_print,
    .free = optional_free,
    .codec = "optional",
    .compare = optional_compare,
};

const zarr_dtype_vtable zr_dtype_zarrs_optional = {
    .struct_size = sizeof(zarr_dtype_vtable),
    .flags = ZARR_DTYPE_FAMILY | ZARR_DTYPE_EXPERIMENTAL,
    .name = "zarrs.optional",
    .parse = zarrs_optional_parse,
    .write = optional_write,
    .fill_parse = optional_fill_parse,
    .fill_print = optional_fill_print,
    .free = optional_free,
    .codec = "zarrs.optional",
    .compare = optional_compare,
};
