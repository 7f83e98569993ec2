/*
 * store/archive_path.c - which paths name an archive, and the store and the key of an
 * archive: the folder that holds the file, and its name. A folder whose name ends in
 * ".zip" is a folder.
 * Thread class: plain functions.
 */
#include "store/store_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_as_archive(const char *path, size_t n)
{
    return n > 4 && path[n - 5] != '/' &&
           (memcmp(path + n - 4, ".zip", 4) == 0 || memcmp(path + n - 4, ".ozx", 4) == 0);
}

static bool path_is_folder(const char *path, size_t n)
{
    char name[PATH_MAX];
    struct stat st;

    if (n >= sizeof name)
        return false;
    memcpy(name, path, n);
    name[n] = '\0';
    return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

size_t zr_path_find_archive(const char *path)
{
    const size_t end = strlen(path);

    for (size_t n = 0; n <= end; n++) {
        const char *slash = memchr(path + n, '/', end - n);

        n = slash ? (size_t)(slash - path) : end;
        if (ends_as_archive(path, n) && !path_is_folder(path, n))
            return n;
    }
    return 0;
}

bool zr_path_is_archive(const char *path)
{
    const size_t n = strlen(path);

    return n > 0 && zr_path_find_archive(path) == n;
}

size_t zr_url_of_archive(const char *url)
{
    const size_t head = zr_url_of_server(url);
    const size_t host = head > 0 ? head + strcspn(url + head, "/?") : 0;
    const size_t n = head > 0 ? host + strcspn(url + host, "?") : 0;

    return n > host && ends_as_archive(url + host, n - host) ? n : 0;
}

/* The key of an archive in the path of a URL, of which `n` bytes stand before the query.
 * The store gets the URL of the folder, with the query. */
static zarr_status split_url(const zarr_allocator *alloc, const char *url, char **store,
                             char **key, zarr_error *err)
{
    const size_t head = zr_url_of_server(url), n = head + strcspn(url + head, "?");
    const size_t host = head + strcspn(url + head, "/?");
    size_t slash = n;
    struct zr_str folder, name;
    zarr_status st = ZARR_OK;

    zr_str_init(&folder, alloc);
    zr_str_init(&name, alloc);
    while (slash > host && url[slash] != '/')
        slash--;
    if (slash < n && !zr_url_decode(&name, url + slash + 1, n - slash - 1))
        ZR_FAIL(err, ZARR_ERR_INVALID, "the URL has a malformed escape in its path");
    zr_str_append(&folder, url, slash);
    zr_str_puts(&folder, url + n);
    ZR_TRY(zr_str_status(&folder, err));
    ZR_TRY(zr_str_status(&name, err));
    *store = zr_str_take(&folder);
    *key = zr_str_take(&name);
    if (*key)
        goto out;
    zr_free_secret(alloc, *store);
    *store = NULL;
    st = zr_fail_memory(err, 1);
out:
    zr_str_deinit(&folder);
    zr_str_deinit(&name);
    return st;
}

/* A link that leads nowhere stays. */
static const char *follow_link(const char *url, char real[PATH_MAX])
{
    const char *path = url + zr_url_of_files(url);
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real) ? real
                                                                                : url;
}

zarr_status zr_archive_split(const zarr_allocator *alloc, const char *url, char **store,
                             char **key, zarr_error *err)
{
    char real[PATH_MAX];
    const char *const whole = follow_link(url, real);
    const char *path = whole + zr_url_of_files(whole), *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n = (size_t)(name - whole);

    *key = *store = NULL;
    if (zr_url_of_server(url) > 0)
        return split_url(alloc, url, store, key, err);
    *store = slash ? zr_strndup(alloc, whole, slash == path ? n : n - 1)
                   : zr_strdup(alloc, ".");
    if (*store)
        *key = zr_strdup(alloc, name);
    if (*key)
        return ZARR_OK;
    zr_free(alloc, *store);
    *store = NULL;
    return zr_fail_memory(err, strlen(url));
}
