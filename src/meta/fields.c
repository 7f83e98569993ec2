/*
 * meta/fields.c - reads single members; a message has the rule that a member breaks.
 * Sizes are whole numbers up to 2^63-1, because tensors count in int64. A number like 1e3
 * is refused as a size, because readers disagree about it.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <math.h>
#include <string.h>

/* As in zarrc/limits.h. */
enum {
    RANK_DEFAULT = 64,
    DIMENSION_NAME_DEFAULT = 64 << 10
};

zarr_status zr_meta_refuse(const char *field, const char *want, const struct zr_json *v,
                           zarr_error *err)
{
    char text[80];

    return zr_fail(err, ZARR_ERR_INVALID, "%s must be %s, not %s", field, want,
                   zr_json_excerpt(v, text, sizeof text));
}

zarr_status zr_meta_format(const struct zr_json *root, int format, zarr_error *err)
{
    const struct zr_json *v = zr_json_get(root, "zarr_format");
    uint64_t found = 0;

    if (!zr_json_is(root, ZR_JSON_OBJECT))
        return zr_meta_refuse("the metadata document", "an object", root, err);
    if (!zr_json_u64(v, &found) || found != (uint64_t)format)
        return zr_meta_refuse("zarr_format", format == 3 ? "3" : "2", v, err);
    return ZARR_OK;
}

static zarr_status read_size(const char *field, const struct zr_json *v, uint64_t *out,
                             zarr_error *err)
{
    if (!zr_json_u64(v, out) || *out > INT64_MAX)
        return zr_meta_refuse(field, "a list of whole numbers from 0 to 2^63-1", v, err);
    return ZARR_OK;
}

zarr_status zr_meta_sizes(const char *field, const struct zr_json *v, int32_t ndim,
                          uint64_t *out, zarr_error *err)
{
    int32_t d = 0;

    if (!zr_json_is(v, ZR_JSON_ARRAY))
        return zr_meta_refuse(field, "a list of whole numbers", v, err);
    if (zr_json_count(v) != (size_t)ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s has %zu entries, the array has %" PRId32 " dimensions", field,
                       zr_json_count(v), ndim);
    for (const struct zr_json *n = v->u.children.first; n; n = n->next)
        ZR_CHECK(read_size(field, n, &out[d++], err));
    return ZARR_OK;
}

zarr_status zr_meta_shape(struct zr_array_meta *m, const struct zr_json *v,
                          const struct zr_meta_env *env, zarr_error *err)
{
    uint32_t limit = env->limits && env->limits->rank ? env->limits->rank : RANK_DEFAULT;

    limit = ZR_MIN(limit, (uint32_t)ZARR_MAX_RANK);
    if (zr_json_count(v) > limit)
        return zr_fail_limit(err, "rank", limit, "shape has %zu dimensions",
                             zr_json_count(v));
    m->ndim = (int32_t)zr_json_count(v);
    return zr_meta_sizes("shape", v, m->ndim, m->shape, err);
}

zarr_status zr_meta_extension(const char *field, const struct zr_json *v,
                              const char **name, const struct zr_json **config,
                              zarr_error *err)
{
    *config = NULL;
    *name = zr_json_string(zr_json_is(v, ZR_JSON_OBJECT) ? zr_json_get(v, "name") : v);
    if (!*name || !**name)
        return zr_meta_refuse(field, "a name or an object with a name", v, err);
    for (const struct zr_json *member = v->type == ZR_JSON_OBJECT ? v->u.children.first
                                                                  : NULL;
         member; member = member->next) {
        if (zr_json_has_key(member, "configuration")) {
            if (!zr_json_is(member, ZR_JSON_OBJECT))
                return zr_fail(err, ZARR_ERR_INVALID,
                               "%s \"%s\": configuration must be an object, not %s",
                               field, *name, zr_json_type_text(member));
            *config = member;
        } else if (zr_json_has_key(member, "must_understand")) {
            if (member->type != ZR_JSON_TRUE)
                return zr_fail(err, ZARR_ERR_INVALID,
                               "%s \"%s\": must_understand can only be true here", field,
                               *name);
        } else if (!zr_json_has_key(member, "name")) {
            return zr_fail(err, ZARR_ERR_INVALID, "%s \"%s\": unknown member \"%.64s\"",
                           field, *name, member->key);
        }
    }
    return ZARR_OK;
}

zarr_status zr_meta_attributes(const struct zr_json *v, const struct zr_json **out,
                               zarr_error *err)
{
    *out = NULL;
    if (!v || v->type == ZR_JSON_NULL)
        return ZARR_OK;
    if (v->type != ZR_JSON_OBJECT)
        return zr_meta_refuse("attributes", "an object", v, err);
    *out = v;
    return ZARR_OK;
}

bool zr_meta_is_known(const struct zr_json *member, const char *const *known)
{
    for (; *known; known++)
        if ((*known)[0] == member->key[0] && zr_json_has_key(member, *known))
            return true;
    return false;
}

zarr_status zr_meta_check_members(const struct zr_json *root, const char *const *known,
                                  zarr_error *err)
{
    for (const struct zr_json *v = root->u.children.first; v; v = v->next) {
        bool understand = true;

        if (zr_meta_is_known(v, known))
            continue;
        if (zr_json_bool(zr_json_get(v, "must_understand"), &understand) && !understand)
            continue;
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "member \"%.64s\" is not known, and it does not say "
                       "\"must_understand\": false",
                       v->key);
    }
    return ZARR_OK;
}

/* Returns the name of the infinity that a number out of the type's range rounds to, or
 * NULL if it is no such number. */
static const char *fill_infinity(const zarr_dtype *dtype, const struct zr_json *v)
{
    uint64_t element[2];
    double d = 0;

    if ((!zr_json_is(v, ZR_JSON_NUMBER) && !zr_json_is(v, ZR_JSON_STRING)) ||
        zarr_dtype_item_bytes(dtype) > sizeof element ||
        !zr_parse_f64(v->u.text.ptr, v->u.text.bytes, &d) ||
        zr_dtype_fill_parse(dtype, v, 3, element, NULL) == ZARR_OK)
        return NULL;
    return signbit(d) ? "\"-Infinity\"" : "\"Infinity\"";
}

static void fill_put_part(struct zr_str *text, const char *infinity,
                          const struct zr_json *v)
{
    if (infinity)
        zr_str_puts(text, infinity);
    else
        zr_json_write(v, 0, text);
}

/* Stored numbers are rounded to nearest, as all libraries read them: 1e39 is infinite in
 * float32. A caller who creates an array with such a fill value gets an error instead. */
static bool fill_rounds(struct zr_array_meta *m, const struct zr_json *v)
{
    const bool pair = zarr_dtype_kind(m->dtype) == ZARR_KIND_COMPLEX;
    /* otherwise v is the real part alone */
    const bool both = pair && zr_json_is(v, ZR_JSON_ARRAY);
    const struct zr_json *real = both ? zr_json_at(v, 0) : v;
    const struct zr_json *imaginary = both ? zr_json_at(v, 1) : NULL;
    const char *infinity[2] = {NULL, NULL};
    struct zr_str text;
    bool done = false;

    if ((!pair && zarr_dtype_kind(m->dtype) != ZARR_KIND_FLOAT) ||
        (both && zr_json_count(v) != 2))
        return false;
    infinity[0] = fill_infinity(m->dtype, real);
    infinity[1] = both ? fill_infinity(m->dtype, imaginary) : NULL;
    if (!infinity[0] && !infinity[1])
        return false;
    zr_str_init(&text, m->alloc);
    zr_str_puts(&text, pair ? "[" : "");
    fill_put_part(&text, infinity[0], real);
    if (pair) {
        zr_str_puts(&text, ",");
        if (both)
            fill_put_part(&text, infinity[1], imaginary);
        zr_str_puts(&text, both ? "]" : "0]");
    }
    done = zr_str_status(&text, NULL) == ZARR_OK &&
           zarr_dtype_parse(m->dtype, zr_str_text(&text), m->fill, NULL) == ZARR_OK;
    zr_str_deinit(&text);
    return done;
}

zarr_status zr_meta_fill(struct zr_array_meta *m, const struct zr_meta_env *env,
                         const struct zr_json *v, zarr_error *err)
{
    const struct zr_order order = zr_meta_order(m);
    size_t bytes = 0;
    zarr_status st = ZARR_OK;

    if (!zr_fits(zarr_dtype_item_bytes(m->dtype), &bytes) ||
        !(m->fill = zr_calloc(m->alloc, 1, ZR_MAX(bytes, (size_t)1))))
        return zr_fail_memory(err, zarr_dtype_item_bytes(m->dtype));
    if (!v) {
        zr_dtype_fill_default(m->dtype, m->fill);
        return ZARR_OK;
    }
    if (env->stored && zr_dtype_zero_is_bits(m->dtype, v))
        memset(m->fill, 0, bytes);
    else if (env->stored && fill_rounds(m, v))
        m->fill_defined = true;
    else if (m->format == 2)
        st = zr_dtype_fill_parse_v2(m->dtype, v, &order, m->fill, err);
    else
        st = zr_dtype_fill_parse(m->dtype, v, m->format, m->fill, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "fill_value");
    m->fill_defined = m->fill_told = true;
    return ZARR_OK;
}

zarr_status zr_meta_names_alloc(struct zr_array_meta *m, zarr_error *err)
{
    size_t n = (size_t)ZR_MAX(m->ndim, 1);

    m->dimension_names = zr_calloc(m->alloc, n, sizeof *m->dimension_names);
    return m->dimension_names ? ZARR_OK
                              : zr_fail_memory(err, n * sizeof *m->dimension_names);
}

zarr_status zr_meta_check_chain(const struct zr_array_meta *m,
                                const struct zr_meta_env *env, zarr_error *err)
{
    struct zr_chain_reps reps = {0};
    zarr_chunk_spec chunk;
    zarr_limits limits;
    zarr_status st = ZARR_OK;

    if (env->limits)
        limits = *env->limits;
    else
        zr_limits_default(&limits);
    /* no limit: looking at an array must be possible even if reading it is not */
    limits.chunk_bytes = UINT64_MAX;
    zr_array_meta_chunk(m, &chunk);
    st = zr_chain_resolve(&reps, m->chain, &chunk, &limits, m->alloc, err);
    zr_chain_reps_deinit(&reps);
    if (st == ZARR_OK && !m->grid.regular) { /* the check above was of the first chunk */
        uint64_t unit[ZARR_MAX_RANK];

        st = zr_chain_unit(m->chain, m->ndim, unit, err);
        if (st == ZARR_OK)
            st = zr_grid_check_unit(&m->grid, unit, err);
        st = zr_prefix(err, st, "codecs");
    }
    return st;
}

zarr_status zr_meta_blame(const struct zr_meta_env *env, zarr_status st, zarr_error *err)
{
    if (env->stored && st == ZARR_ERR_INVALID)
        st = ZARR_ERR_CORRUPT;
    else if (!env->stored && st == ZARR_ERR_CORRUPT)
        st = ZARR_ERR_INVALID;
    if (err && st != ZARR_OK)
        err->code = st;
    return st;
}
