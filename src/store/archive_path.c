/*
 * store/archive_path.c - which paths name an archive, and the store and the key of an
 * archive: the folder that holds the file, and its name. A folder whose name ends in
 * ".zip" is a folder.
 * Thread class: plain functions.
 */
#include "store/store_int.h"

#include <limits.h>
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
    for (size_t n = strcspn(path, "/");; n += 1 + strcspn(path + n + 1, "/")) {
        if (ends_as_archive(path, n) && !path_is_folder(path, n))
            return n;
        if (path[n] == '\0')
            return 0;
    }
}

bool zr_path_is_archive(const char *path)
{
    const size_t n = strlen(path);

    return n > 0 && zr_path_find_archive(path) == n;
}

zarr_status zr_archive_split(const zarr_allocator *alloc, const char *url, char **store,
                             char **key, zarr_error *err)
{
    const char *path = url + zr_url_of_files(url), *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n = (size_t)(name - url);

    *key = NULL;
    *store =
        slash ? zr_strndup(alloc, url, slash == path ? n : n - 1) : zr_strdup(alloc, ".");
    if (*store)
        *key = zr_strdup(alloc, name);
    if (*key)
        return ZARR_OK;
    zr_free(alloc, *store);
    *store = NULL;
    return zr_fail_memory(err, strlen(url));
}
