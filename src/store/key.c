/*
 * store/key.c - checks keys, in one place for all stores: UTF-8 components joined by '/',
 * none of them empty, "." or "..". So a key from hostile metadata cannot leave the root,
 * and no object has two spellings of its key. Names that one store reserves (lock and
 * temporary files) are checked by that store.
 * Thread class: plain functions.
 */
#include "store/store_int.h"

#include <string.h>

static zarr_status key_fail(zarr_error *err, size_t at, const char *why)
{
    return zr_fail(err, ZARR_ERR_INVALID, "bad key: %s at byte %zu", why, at);
}

zarr_status zr_key_validate(const char *key, size_t n, zarr_error *err)
{
    unsigned char all = 0, c = 0;
    size_t begin = 0, i = 0;

    if (!key || n == 0)
        return key_fail(err, 0, "it is empty");
    if (n > ZR_KEY_MAX_BYTES)
        return key_fail(err, ZR_KEY_MAX_BYTES, "it is too long");
    for (;;) {
        for (; i < n && (c = (unsigned char)key[i]) > '/'; i++) /* nearly all */
            all |= c;
        if (i < n && c == '\0')
            return key_fail(err, i, "a NUL");
        if (i < n && c != '/') {
            i++;
            continue;
        }
        /* it would be a second spelling of another key */
        if (i == begin || (key[begin] == '.' &&
                           (i == begin + 1 || (i == begin + 2 && key[begin + 1] == '.'))))
            return key_fail(err, begin, "an empty, \".\" or \"..\" component");
        if (i == n)
            break;
        begin = ++i;
    }
    if (all >= 0x80 && !zr_utf8_is_valid(key, n))
        return key_fail(err, 0, "not UTF-8");
    return ZARR_OK;
}

zarr_status zr_key_validate_prefix(const char *prefix, size_t n, zarr_error *err)
{
    if (prefix && n == 0)
        return ZARR_OK;
    return zr_key_validate(prefix, n, err);
}

uint32_t zr_key_kind(const char *key)
{
    static const char *const names[] = {
        ZR_DOC_V3,           ZR_DOC_ARRAY,     ZR_DOC_GROUP, ZR_DOC_ATTRS,
        ZR_DOC_CONSOLIDATED, ZR_DOC_LEFTOVERS, ZR_DOC_JOB};
    const char *slash = strrchr(key, '/');
    const char *name = slash ? slash + 1 : key;

    for (size_t i = 0; i < ZR_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return ZARR_STORE_OP_DOCUMENT;
    return 0;
}

bool zr_key_is_below(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);

    if (n == 0)
        return true;
    return strncmp(key, prefix, n) == 0 && key[n] == '/';
}
