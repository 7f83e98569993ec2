/*
 * store/local/link.c - finds the symlink on the way to a key that cannot be followed: its
 * target is missing, or the policy of the store refuses it.
 * Thread class: plain functions, any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINK_TARGET_BYTES = 160 /* of a target that a message shows */
};

struct bad_link {
    char path[PATH_MAX];
    char target[LINK_TARGET_BYTES];
};

/* Returns why path cannot be opened if it is a symlink, 0 if it is none or leads
 * somewhere, or the errno of a name above it that cannot be opened. */
static int link_try(const struct zr_local *l, struct bad_link *link)
{
    struct stat st;
    ssize_t n = 0;
    int fd = zr_local_open(l, link->path, O_PATH | O_NOFOLLOW, NULL);
    bool is_link;

    link->target[0] = '\0';
    if (fd < 0)
        return -fd;
    is_link = fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
    if (is_link)
        n = readlinkat(fd, "", link->target, sizeof link->target - 1);
    link->target[ZR_MAX(n, (ssize_t)0)] = '\0';
    close(fd);
    if (!is_link)
        return 0;
    fd = zr_local_open(l, link->path, O_PATH, NULL);
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -fd : 0;
}

/* Returns the first error on the way to path, whose place *link tells; 0: there is none,
 * or path is too long. */
static int local_link_find(const struct zr_local *l, const char *path,
                           struct bad_link *link)
{
    const size_t n = strlen(path);
    int os_code = 0;

    link->target[0] = '\0';
    for (size_t i = 1; i <= n && n < sizeof link->path && os_code == 0; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(link->path, path, i);
        link->path[i] = '\0';
        os_code = link_try(l, link);
    }
    return os_code;
}

bool zr_local_is_dangling(const struct zr_local *l, const char *path)
{
    struct bad_link link;
    const int os_code = local_link_find(l, path, &link);

    return os_code != 0 &&
           (link.target[0] != '\0' || (os_code != ENOENT && os_code != ENOTDIR));
}

zarr_status zr_local_fail(const struct zr_local *l, zarr_error *err, int os_code,
                          const char *path, const char *what)
{
    struct bad_link link;
    zarr_status st;

    if ((os_code != EXDEV && os_code != ELOOP) ||
        local_link_find(l, path, &link) != os_code || link.target[0] == '\0')
        return zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: %s", path, what);
    if (os_code == ELOOP && l->symlinks == ZARR_SYMLINKS_FOLLOW)
        return zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: the symbolic link %s to \"%s\"",
                          path, link.path, link.target);
    zr_log(&l->log, ZARR_LOG_DEBUG, "refused the symbolic link %s to \"%s\"", link.path,
           link.target);
    st = zr_fail(err, ZARR_ERR_IO,
                 "%s: the symbolic link %s to \"%s\" %s (option symlinks)", path,
                 link.path, link.target,
                 os_code == EXDEV ? "leads out of the store" : "is not followed");
    zr_error_mark_option(err, "symlinks");
    if (err) {
        err->os_code = os_code;
        err->os_domain = ZARR_OS_ERRNO;
    }
    return st;
}
