/*
 * store/local/list.c - the uses of a walk: listings, erasing a prefix, and removing
 * debris. Debris is what a killed writer leaves: lock files, temporary files,
 * zarr-python's ".partial" files. A lock file is removed only while we hold its lock, so
 * a living writer never loses it. A temporary file is removed only after the process in
 * its name ended. For the others only the age counts.
 * Thread class: any thread; a walk sees a directory as it was when it was read.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- list ---- */

struct local_listing {
    struct zr_local *l;
    uint32_t how;
    zarr_store_list_fn fn;
    void *user;
};

/* Seconds since a file was written; 0 if its time is in the future. */
static uint64_t file_age(const struct stat *st)
{
    const int64_t age = zr_wall_seconds() - (int64_t)st->st_mtim.tv_sec;

    return age > 0 ? (uint64_t)age : 0;
}

/* The same of a path; 0: it is gone. */
static uint64_t path_age(struct zr_local *l, const char *path)
{
    struct zr_local_dir dir;
    struct stat st;
    uint64_t age = 0;

    if (zr_local_dir_open(l, path, false, &dir) == 0 &&
        fstatat(dir.fd, dir.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        age = file_age(&st);
    zr_local_dir_close(&dir);
    return age;
}

static zarr_status listing_visit(void *user, enum zr_local_event event, const char *path,
                                 bool is_linked, bool *stop, zarr_error *err)
{
    const struct local_listing *x = user;
    zarr_store_item item = {.key = path, .bytes = UINT64_MAX, .is_linked = is_linked};

    ZR_UNUSED(err);
    item.is_prefix = event == ZR_LOCAL_DIR;
    if (event == ZR_LOCAL_DIR_END ||
        (event == ZR_LOCAL_DEBRIS) != (x->how == ZARR_LIST_DEBRIS))
        return ZARR_OK;
    if (event == ZR_LOCAL_DIR && x->how != ZARR_LIST_DIRECTORY &&
        x->how != ZARR_LIST_DIRECTORY_UNLINKED && x->how != ZARR_LIST_FOLDERS)
        return ZARR_OK;
    if (event == ZR_LOCAL_DEBRIS)
        item.age_s = path_age(x->l, path);
    *stop = x->fn(x->user, &item) != 0;
    return ZARR_OK;
}

zarr_status zr_local_list(void *self, const char *prefix, uint32_t how,
                          zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                          zarr_error *err)
{
    struct local_listing x = {self, how, fn, user};
    uint32_t flags = ZR_LOCAL_WALK_GO_ON;

    if (how == ZARR_LIST_DIRECTORY || how == ZARR_LIST_DIRECTORY_UNLINKED)
        flags |= ZR_LOCAL_WALK_FLAT;
    if (how == ZARR_LIST_DEBRIS || how == ZARR_LIST_UNLINKED ||
        how == ZARR_LIST_DIRECTORY_UNLINKED)
        flags |= ZR_LOCAL_WALK_NO_LINKS;
    return zr_local_walk(self, prefix, flags, listing_visit, &x, cancel, err);
}

/* ---- debris ---- */

/* Call it with the lock of fd's file. Removes the file if the name still leads to it. */
static bool debris_remove_locked(int dir, const char *name, int fd)
{
    struct stat mine, named;

    return fstat(fd, &mine) == 0 &&
           fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino &&
           unlinkat(dir, name, 0) == 0;
}

/* Without locks the application makes sure that the file has no other writer. */
static bool debris_sweep_lock(const struct zr_local *l, int dir, const char *name)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct zr_lock_file f = {.list = 0};
    bool removed = false;
    int os_code;

    if (zr_lock_file_open(&f, dir, name, flags) != 0)
        return false;
    os_code = zr_local_lock_try(f.fd);
    if (os_code == 0 ||
        (l->locks == ZARR_LOCKS_NONE && zr_local_lock_is_missing(os_code)))
        removed = debris_remove_locked(dir, name, f.fd);
    (void)zr_lock_file_close(&f);
    return removed;
}

/* True if the process in the name .zarrc-tmp-<pid>-<rand> has ended. A process of another
 * host looks as if it had ended; the minimum age protects its file. */
static bool debris_owner_is_gone(const char *name)
{
    const char *digits = name + sizeof ZR_TEMP_PREFIX - 1;
    uint64_t pid = 0;

    if (!zr_parse_u64(digits, strcspn(digits, "-"), &pid) || pid == 0 || pid > INT32_MAX)
        return true;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static bool debris_sweep(struct zr_local *l, const char *path, uint64_t min_age_s)
{
    struct zr_local_dir dir;
    enum zr_local_kind kind;
    struct stat st;
    bool removed = false;

    if (zr_local_dir_open(l, path, false, &dir) != 0)
        goto out;
    if (fstatat(dir.fd, dir.name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        goto out;
    if (file_age(&st) < min_age_s)
        goto out;
    kind = zr_local_name_kind(dir.name, strlen(dir.name));
    if (kind == ZR_LOCAL_LOCK)
        removed = debris_sweep_lock(l, dir.fd, dir.name);
    else if (kind == ZR_LOCAL_PARTIAL || debris_owner_is_gone(dir.name))
        removed = unlinkat(dir.fd, dir.name, 0) == 0;
    if (removed)
        atomic_fetch_add(&l->n_written, 1);
out:
    zr_local_dir_close(&dir);
    return removed;
}

struct local_cleaning {
    struct zr_local *l;
    uint64_t min_age_s, n_removed;
};

static zarr_status cleaning_visit(void *user, enum zr_local_event event, const char *path,
                                  bool is_linked, bool *stop, zarr_error *err)
{
    struct local_cleaning *x = user;

    ZR_UNUSED(is_linked, stop, err);
    if (event == ZR_LOCAL_DEBRIS && debris_sweep(x->l, path, x->min_age_s))
        x->n_removed++;
    return ZARR_OK;
}

zarr_status zr_local_clean(void *self, const char *prefix, uint64_t min_age_s,
                           uint64_t *n_removed, const zarr_cancel *cancel,
                           zarr_error *err)
{
    struct local_cleaning x = {self, min_age_s, 0};
    zarr_status st = zr_local_walk(self, prefix, ZR_LOCAL_WALK_NO_LINKS, cleaning_visit,
                                   &x, cancel, err);

    *n_removed = x.n_removed;
    return st;
}

/* ---- erase a prefix ---- */

static zarr_status erasing_rmdir(struct zr_local *l, const char *path, zarr_error *err)
{
    struct zr_local_dir dir;
    zarr_status st = ZARR_OK;
    int os_code = zr_local_dir_open(l, path, false, &dir);

    if (os_code == 0) {
        if (unlinkat(dir.fd, dir.name, AT_REMOVEDIR) == 0)
            atomic_fetch_add(&l->n_written, 1);
        else
            os_code = errno;
    }
    zr_local_dir_close(&dir);
    /* Not empty: another writer is working below. A symlink or a missing directory:
     * nothing to remove. */
    if (os_code != 0 && os_code != ENOTEMPTY && os_code != EEXIST && os_code != ENOENT &&
        os_code != ENOTDIR)
        st = zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: cannot remove the directory",
                        path);
    return st;
}

struct local_erasing {
    struct zr_local *l;
    const char *last; /* the only key that may be there; NULL: any */
    const zarr_cancel *cancel;
};

static zarr_status erasing_visit(void *user, enum zr_local_event event, const char *path,
                                 bool is_linked, bool *stop, zarr_error *err)
{
    const struct local_erasing *x = user;
    zarr_store_op op = {.verb = ZARR_STORE_ERASE, .key = path, .cancel = x->cancel};

    ZR_UNUSED(is_linked, stop);
    if (event == ZR_LOCAL_DEBRIS)
        (void)debris_sweep(x->l, path, 0);
    if (event == ZR_LOCAL_DIR_END)
        return erasing_rmdir(x->l, path, err);
    if (event != ZR_LOCAL_FILE)
        return ZARR_OK;
    if (x->last && !zr_streq(path, x->last))
        return zr_store_fail_new_key(path, err);
    zr_local_erase(x->l, &op, err);
    return op.status == ZARR_ERR_NOT_FOUND ? ZARR_OK : op.status;
}

zarr_status zr_local_erase_link(void *self, const char *prefix, bool *was,
                                zarr_error *err)
{
    struct zr_local *l = self;
    struct zr_local_dir dir;
    struct stat st;
    int os_code;

    *was = false;
    if (*prefix == '\0' || zr_local_dir_open(l, prefix, false, &dir) != 0)
        return ZARR_OK; /* the erase that follows reports the error */
    os_code = fstatat(dir.fd, dir.name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    *was = os_code == 0 && S_ISLNK(st.st_mode);
    if (*was && unlinkat(dir.fd, dir.name, 0) != 0) {
        os_code = errno;
    } else if (*was) {
        atomic_fetch_add(&l->n_written, 1);
        os_code = zr_local_dir_commit(l, &dir, NULL);
    }
    zr_local_dir_close(&dir);
    if (*was && os_code != 0)
        return zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: cannot remove the symlink",
                          prefix);
    return ZARR_OK;
}

zarr_status zr_local_erase_rest(void *self, const char *prefix, const char *last,
                                const zarr_cancel *cancel, zarr_error *err)
{
    struct local_erasing x = {self, last, cancel};
    zarr_status st =
        zr_local_walk(self, prefix, ZR_LOCAL_WALK_NO_LINKS | ZR_LOCAL_WALK_DIRS_FIRST,
                      erasing_visit, &x, cancel, err);

    if (st == ZARR_OK && *prefix != '\0')
        st = erasing_rmdir(self, prefix, err);
    return st;
}

zarr_status zr_local_erase_prefix(void *self, const char *prefix,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    bool link = false;
    zarr_status st = zr_local_erase_link(self, prefix, &link, err);

    return st != ZARR_OK || link ? st
                                 : zr_local_erase_rest(self, prefix, NULL, cancel, err);
}
