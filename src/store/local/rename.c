/*
 * store/local/rename.c - moves a whole folder with one rename(2). So a reader finds all
 * of it under one of the two names, also after a kill. Open descriptors (pins, locks)
 * follow the folder; a write under a lock that was taken before is refused. It refuses
 * what rename(2) cannot do (another disk, a destination that is not empty) and what
 * rename(2) would change (a folder that is a symlink); the caller then copies.
 * Thread class: any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* True if a copy can do what this rename could not. */
static bool rename_is_for_copy(int os_code)
{
    return os_code == EXDEV || os_code == ENOTEMPTY || os_code == EEXIST ||
           os_code == ENOTDIR || os_code == EBUSY || os_code == ENOSYS ||
           os_code == EOPNOTSUPP;
}

static zarr_status fail_rename(const char *from, const char *to, int os_code,
                               zarr_error *err)
{
    zarr_status st = rename_is_for_copy(os_code) ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_IO;

    if (os_code == ZR_LOCAL_NOWHERE)
        return zr_fail_os(err, st, ENOENT,
                          "%s: cannot rename it to %s: " ZR_LOCAL_NOWHERE_TEXT, from, to);
    return zr_fail_os(err, st, os_code, "%s: cannot rename it to %s", from, to);
}

/* Returns 0 for a folder, ENOTDIR for anything else, or another errno. */
static int rename_look(const struct zr_local_dir *d)
{
    struct stat st;

    if (fstatat(d->fd, d->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

zarr_status zr_local_rename(void *self, const char *from, const char *to,
                            const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_local *l = self;
    struct zr_local_dir a = {.fd = -1}, b = {.fd = -1};
    int os_code = 0;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(cancel);
    ZR_TRY(zr_local_key_check(from, err));
    ZR_TRY(zr_local_key_check(to, err));
    os_code = zr_local_dir_open(l, from, false, &a);
    if (os_code == 0)
        os_code = rename_look(&a);
    if (os_code == ENOENT)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "%s: no such folder", from);
    if (os_code == 0)
        os_code = zr_local_dir_open(l, to, true, &b);
    if (os_code == 0 && renameat(a.fd, a.name, b.fd, b.name) != 0)
        os_code = errno;
    if (os_code != 0)
        ZR_TRY(fail_rename(from, to, os_code, err));
    atomic_fetch_add(&l->n_written, 1);
    os_code = zr_local_dir_commit(l, &b, NULL);
    if (os_code == 0)
        os_code = zr_local_dir_commit(l, &a, NULL);
    if (os_code != 0)
        st = zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: renamed to %s, but not synced",
                        from, to);
out:
    zr_local_dir_close(&a);
    zr_local_dir_close(&b);
    return st;
}
