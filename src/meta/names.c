/*
 * meta/names.c - which names a node may have, whether a name comes from a caller, a
 * listing, or consolidated metadata, which may be hostile. Existing nodes may have any
 * name that is safe; new nodes must also avoid names that the formats reserve.
 * Thread class: plain functions.
 */
#include "meta_int.h"

#include <string.h>

static bool is_only_dots(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (name[i] != '.')
            return false;
    return true;
}

zarr_status zr_node_name_check(const char *name, size_t bytes, const zarr_limits *limits,
                               zarr_error *err)
{
    uint32_t limit = limits && limits->node_name_bytes ? limits->node_name_bytes : 1024;

    if (bytes == 0)
        return zr_fail(err, ZARR_ERR_INVALID, "a node name is empty");
    if (bytes > limit)
        return zr_fail_limit(err, "node_name_bytes", limit, "a node name has %zu bytes",
                             bytes);
    if (memchr(name, '\0', bytes) || memchr(name, '/', bytes) ||
        memchr(name, '\\', bytes) || !zr_utf8_is_valid(name, bytes))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "node name \"%.*s\" must be UTF-8 without '/', '\\' and NUL",
                       (int)ZR_MIN(bytes, (size_t)128), name);
    if (bytes <= 2 && is_only_dots(name, bytes))
        return zr_fail(err, ZARR_ERR_INVALID, "\"%.*s\" is not a node name", (int)bytes,
                       name);
    return ZARR_OK;
}

zarr_status zr_node_name_check_new(const char *name, size_t bytes, int format,
                                   const zarr_limits *limits, zarr_error *err)
{
    /* the last two are objects that zarrc puts beside documents */
    static const char *const documents[] = {"zarr.json",       ".zarray",    ".zgroup",
                                            ".zattrs",         ".zmetadata", ".zarrc-job",
                                            ".zarrc-leftovers"};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_node_name_check(name, bytes, limits, err));
    if (is_only_dots(name, bytes) ||
        (format == 3 && bytes >= 2 && memcmp(name, "__", 2) == 0))
        st = zr_fail(err, ZARR_ERR_INVALID, "node name \"%.*s\" is reserved",
                     (int)ZR_MIN(bytes, (size_t)128), name);
    for (size_t i = 0; st == ZARR_OK && i < ZR_COUNT(documents); i++)
        if (strlen(documents[i]) == bytes && memcmp(documents[i], name, bytes) == 0)
            st = zr_fail(err, ZARR_ERR_INVALID, "node name \"%s\" is reserved",
                         documents[i]);
out:
    return st;
}
