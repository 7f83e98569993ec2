/*
 * node/path.c - paths of nodes and keys of their documents. A path is normalised once,
 * when it enters the library: '\' becomes '/', leading, trailing and repeated slashes are
 * dropped, and "" is the root. "." and ".." are refused, here and again by every store.
 * Opening accepts any other name, because foreign writers may have made it. Making a node
 * also refuses names that a format reserves.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

static size_t component_bytes(const char *p)
{
    size_t n = 0;

    while (p[n] && p[n] != '/' && p[n] != '\\')
        n++;
    return n;
}

zarr_status zr_path_append(struct zr_str *out, const char *path,
                           const zarr_limits *limits, zarr_error *err)
{
    for (const char *p = path ? path : ""; *p;) {
        const size_t n = component_bytes(p);

        if (n == 0) {
            p++;
            continue;
        }
        ZR_CHECK(zr_node_name_check(p, n, limits, err));
        if (out->bytes > 0)
            zr_str_putc(out, '/');
        zr_str_append(out, p, n);
        p += n;
    }
    if (out->bytes > ZR_KEY_MAX_BYTES)
        return zr_fail(err, ZARR_ERR_INVALID, "the path has more than %d bytes",
                       ZR_KEY_MAX_BYTES);
    return zr_str_status(out, err);
}

zarr_status zr_path_normal(char **out, const zarr_allocator *alloc, const char *path,
                           const zarr_limits *limits, zarr_error *err)
{
    struct zr_str s;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_str_init(&s, alloc);
    ZR_TRY(zr_path_append(&s, path, limits, err));
    *out = s.bytes ? zr_str_take(&s) : zr_strdup(alloc, "");
    if (!*out)
        ZR_FAIL_MEMORY(err, 1);
out:
    zr_str_deinit(&s);
    return st;
}

const char *zr_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

size_t zr_path_parent_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

zarr_status zr_path_check_new(const char *path, int format, const zarr_limits *limits,
                              zarr_error *err)
{
    for (const char *p = path; *p;) {
        const size_t n = component_bytes(p);

        ZR_CHECK(zr_node_name_check_new(p, n, format, limits, err));
        p += n + (p[n] == '/');
    }
    return ZARR_OK;
}

zarr_status zr_path_key(struct zr_str *out, const char *path, const char *name,
                        zarr_error *err)
{
    zr_str_clear(out);
    zr_str_puts(out, path);
    if (*path && *name)
        zr_str_putc(out, '/');
    zr_str_puts(out, name);
    return zr_str_status(out, err);
}

size_t zr_path_depth(const char *path)
{
    size_t n = *path != '\0';

    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* '/' sorts before every other byte, so that a node comes right before all nodes below
 * it. */
int zr_path_compare(const char *a, const char *b)
{
    const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;

    while (*p && *p == *q) {
        p++;
        q++;
    }
    if (*p == *q)
        return 0;
    if (!*p || !*q)
        return *p ? 1 : -1;
    if (*p == '/' || *q == '/')
        return *p == '/' ? -1 : 1;
    return *p < *q ? -1 : 1;
}

zarr_status zr_path_prefix(zarr_error *err, zarr_status st, const char *path)
{
    const struct zr_text_part part[ZARR_ERROR_PARTS] = {
        [ZARR_ERROR_PATH] = {0, 1 + strlen(path)}};

    return zr_prefix_parts(err, st, part, "/%s", path);
}

zarr_status zr_doc_prefix(zarr_error *err, zarr_status st, const char *path,
                          const char *name)
{
    const size_t n = strlen(path), slash = n > 0;
    const struct zr_text_part part[ZARR_ERROR_PARTS] = {
        [ZARR_ERROR_PATH] = {0, 1 + n}, [ZARR_ERROR_KEY] = {1, n + slash + strlen(name)}};

    return zr_prefix_parts(err, st, part, "/%s%s%s", path, slash ? "/" : "", name);
}
