/*
 * store/local/same_folder.c - whether two folders are the same, or one contains the
 * other. Paths alone do not show it (./a, symlinks, roots a level apart). So both folders
 * are opened, and their devices and inodes are compared on the way up through `..`, also
 * above the roots. If a folder does not exist yet, its nearest existing parent is
 * compared.
 * Thread class: any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct local_place {
    int fd; /* the deepest folder of the prefix that exists */
    struct stat st;
    const char *rest; /* the part that does not exist; "": all exists */
};

static bool place_is(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static zarr_status place_open(struct local_place *p, const struct zr_local *l,
                              const char *prefix, zarr_error *err)
{
    char path[PATH_MAX];
    size_t n = strlen(prefix);

    if (n >= sizeof path)
        return zr_fail_os(err, ZARR_ERR_IO, ENAMETOOLONG, "%s", prefix);
    memcpy(path, prefix, n + 1);
    p->fd = -ENOENT;
    p->rest = prefix + n;
    while (n > 0) {
        p->fd = zr_local_open(l, path, O_PATH | O_DIRECTORY, NULL);
        if (p->fd != -ENOENT && p->fd != -ENOTDIR)
            break;
        while (n > 0 && path[n - 1] != '/')
            n--;
        p->rest = prefix + n;
        n -= n > 0;
        path[n] = '\0';
    }
    if (n == 0)
        p->fd = zr_local_high_fd(fcntl(l->root, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (p->fd < 0)
        return zr_local_fail(l, err, -p->fd, prefix, "cannot look where it is");
    if (fstat(p->fd, &p->st) != 0)
        return zr_fail_os(err, ZARR_ERR_IO, errno, "%s: fstat", prefix);
    return ZARR_OK;
}

static void place_close(struct local_place *p)
{
    if (p->fd >= 0)
        close(p->fd);
}

static int place_open_up(int fd)
{
    int up;

    do
        up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (up < 0 && errno == EINTR);
    return zr_local_high_fd(up);
}

/* Whether p's folder is `top` or is below it. The walk up ends at a folder that was
 * deleted or may not be searched (EACCES): nothing above it can be reached through it. */
static zarr_status place_is_inside(const struct local_place *p, const struct stat *top,
                                   bool *yes, zarr_error *err)
{
    struct stat at = p->st, next;
    int fd = p->fd, up, os_code = 0;

    *yes = place_is(&at, top);
    while (!*yes && os_code == 0) {
        up = place_open_up(fd);
        if (up < 0) {
            os_code = -up;
            break;
        }
        if (fd != p->fd)
            close(fd);
        fd = up;
        if (fstat(fd, &next) != 0)
            os_code = errno;
        else if (place_is(&next, &at)) /* the root */
            break;
        at = next;
        *yes = os_code == 0 && place_is(&at, top);
    }
    if (fd != p->fd)
        close(fd);
    if (os_code != 0 && os_code != EACCES && os_code != ENOENT)
        return zr_fail_os(err, ZARR_ERR_IO, os_code, "cannot look above a folder");
    return ZARR_OK;
}

bool zr_local_same(void *self, void *other)
{
    const struct zr_local *l = self, *m = other;
    struct stat a, b;

    return fstat(l->root, &a) == 0 && fstat(m->root, &b) == 0 && place_is(&a, &b);
}

zarr_status zr_local_overlap(void *self, const char *a, void *other, const char *b,
                             bool *overlap, zarr_error *err)
{
    struct local_place p = {.fd = -1, .rest = ""}, q = {.fd = -1, .rest = ""};
    zarr_status st = ZARR_OK;

    *overlap = false;
    ZR_TRY(place_open(&p, self, a, err));
    ZR_TRY(place_open(&q, other, b, err));
    if (*p.rest != '\0' && *q.rest != '\0') /* neither exists yet */
        *overlap = place_is(&p.st, &q.st) &&
                   (strcmp(p.rest, q.rest) == 0 || zr_key_is_below(p.rest, q.rest) ||
                    zr_key_is_below(q.rest, p.rest));
    if (*p.rest == '\0')
        ZR_TRY(place_is_inside(&q, &p.st, overlap, err));
    if (*q.rest == '\0' && !*overlap)
        ZR_TRY(place_is_inside(&p, &q.st, overlap, err));
out:
    place_close(&p);
    place_close(&q);
    return st;
}

/* The path of the root's descriptor: the path of the URL may have been relative, or have
 * a link. */
void zr_local_tell_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct zr_local *l = self;
    char name[64], path[PATH_MAX];
    zarr_store_place place = {
        .struct_size = sizeof place, .scheme = "file", .prefix = path};
    struct stat root, found;
    ssize_t n;

    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", l->root);
    n = readlink(name, path, sizeof path - 1);
    if (n <= 0)
        return;
    path[n] = '\0';
    if (fstat(l->root, &root) == 0 && stat(path, &found) == 0 && place_is(&root, &found))
        fn(user, &place); /* else the folder was deleted, or is out of reach */
}
