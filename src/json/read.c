/*
 * json/read.c - lookups in values, and conversions. All functions accept NULL and other
 * types and then return NULL or false, so readers of metadata chain calls and check once.
 * Nothing here fails or allocates.
 * Thread class: frozen.
 */
#include "json_int.h"

#include <math.h>
#include <string.h>

struct zr_json *zr_json_get_n(const struct zr_json *object, const char *key,
                              size_t key_bytes)
{
    if (!zr_json_is(object, ZR_JSON_OBJECT))
        return NULL;
    for (struct zr_json *v = object->u.children.first; v; v = v->next)
        if (v->key_bytes == key_bytes && v->key[0] == key[0] &&
            memcmp(v->key, key, key_bytes) == 0)
            return v;
    return NULL;
}

struct zr_json *zr_json_at(const struct zr_json *array, size_t i)
{
    struct zr_json *v = zr_json_is(array, ZR_JSON_ARRAY) ? array->u.children.first : NULL;

    while (v && i--)
        v = v->next;
    return v;
}

size_t zr_json_count(const struct zr_json *v)
{
    return v && v->type >= ZR_JSON_ARRAY ? v->u.children.n : 0;
}

bool zr_json_is_text(const struct zr_json *v, const char *s)
{
    return zr_json_is(v, ZR_JSON_STRING) && v->u.text.bytes == strlen(s) &&
           memcmp(v->u.text.ptr, s, v->u.text.bytes) == 0;
}

bool zr_json_u64(const struct zr_json *v, uint64_t *out)
{
    return zr_json_is(v, ZR_JSON_NUMBER) &&
           zr_parse_u64(v->u.text.ptr, v->u.text.bytes, out);
}

bool zr_json_i64(const struct zr_json *v, int64_t *out)
{
    return zr_json_is(v, ZR_JSON_NUMBER) &&
           zr_parse_i64(v->u.text.ptr, v->u.text.bytes, out);
}

bool zr_json_f64(const struct zr_json *v, double *out)
{
    if (!zr_json_is(v, ZR_JSON_NUMBER))
        return false;
    if (v->u.text.ptr[0] == 'N')
        *out = (double)NAN;
    else if (v->u.text.ptr[0] == 'I')
        *out = (double)INFINITY;
    else if (v->u.text.ptr[0] == '-' && v->u.text.ptr[1] == 'I')
        *out = -(double)INFINITY;
    else
        return zr_parse_f64(v->u.text.ptr, v->u.text.bytes, out);
    return true;
}

bool zr_json_bool(const struct zr_json *v, bool *out)
{
    if (!v || (v->type != ZR_JSON_TRUE && v->type != ZR_JSON_FALSE))
        return false;
    *out = v->type == ZR_JSON_TRUE;
    return true;
}

const char *zr_json_string(const struct zr_json *v)
{
    if (!zr_json_is(v, ZR_JSON_STRING) || memchr(v->u.text.ptr, '\0', v->u.text.bytes))
        return NULL;
    return v->u.text.ptr;
}

const char *zr_json_type_text(const struct zr_json *v)
{
    static const char *const names[] = {
        [ZR_JSON_NULL] = "null",     [ZR_JSON_FALSE] = "false",
        [ZR_JSON_TRUE] = "true",     [ZR_JSON_NUMBER] = "number",
        [ZR_JSON_STRING] = "string", [ZR_JSON_ARRAY] = "array",
        [ZR_JSON_OBJECT] = "object",
    };

    return v ? names[v->type] : "nothing";
}
