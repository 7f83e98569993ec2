/*
 * store/local/sync.c - makes files, the whole store, and the names of a few keys durable.
 * Where a call to sync does not exist, a stronger one takes its place: fsync() that of
 * fdatasync(), sync() and the sync of each value that of syncfs(). If there is none,
 * the log has one warning.
 *
 * Of the names of a few keys it syncs the root first and then each folder down to the
 * keys. Where no journal keeps the order, the record of a
 * change is then on the disk before the chunks are. The folders above a key may be new,
 * too, or the work of a writer that has not flushed. A folder that does not exist needs
 * no sync; that of the folder above it says so. What the store cannot sync alone, as a
 * folder that it may not list, it flushes. Thread class: any thread.
 */
#include "store/local/local_int.h"

#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_LOOK_NS UINT64_C(10000000) /* how often a waiter looks at `cancel` */

enum {
    SYNC_UNABLE = -1 /* in place of an errno: a flush must do it */
};

/* Fails with IO if a sync that belongs to no operation failed before. */
static zarr_status sync_check_past(const struct zr_local *l, zarr_error *err)
{
    const int os_code = atomic_load(&l->sync_os_code);

    if (os_code == 0)
        return ZARR_OK;
    return zr_fail_os(err, ZARR_ERR_IO, os_code,
                      "an earlier flush failed; later writes may be lost");
}

/* Keeps that a sync failed now. Returns IO. */
static zarr_status sync_fail(struct zr_local *l, int os_code, zarr_error *err)
{
    atomic_store(&l->sync_os_code, os_code);
    return zr_fail_os(err, ZARR_ERR_IO, os_code, "cannot flush to the disk");
}

/* Returns 0 or an errno. */
static int sync_by(int (*sync_fn)(int fd), int fd)
{
    int os_code;

    do
        os_code = sync_fn(fd) == 0 ? 0 : errno;
    while (os_code == EINTR);
    return os_code;
}

/* The file system or the kernel has no such call. */
static bool sync_is_missing(int os_code)
{
    return os_code == EINVAL || os_code == ENOSYS;
}

int zr_local_sync_file(struct zr_local *l, int fd)
{
    int os_code = sync_by(fdatasync, fd);

    if (sync_is_missing(os_code))
        os_code = sync_by(fsync, fd);
    if (!sync_is_missing(os_code))
        return os_code;
    if (!atomic_exchange(&l->warned_of_sync, true))
        zr_log(
            &l->log, ZARR_LOG_WARN,
            "this file system cannot sync files (fsync: errno %d); a loss of power may "
            "lose what is written",
            os_code);
    return 0;
}

/* Syncs everything that was written to the root's disk. Returns 0 or an errno. */
static int sync_all(struct zr_local *l)
{
    int os_code = sync_by(syncfs, l->root);

    if (!sync_is_missing(os_code))
        return os_code;
    /* Later values are synced one by one. sync() reports no errors. */
    atomic_store(&l->lacks_syncfs, true);
    sync();
    return zr_local_sync_file(l, l->root);
}

int zr_local_dir_sync(const struct zr_local_dir *d)
{
    int fd, os_code;

    do
        fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    fd = zr_local_high_fd(fd);
    if (fd < 0)
        return -fd;
    os_code = sync_by(fsync, fd);
    close(fd);
    return sync_is_missing(os_code) ? 0 : os_code; /* not every one syncs directories */
}

/* Returns 0, an errno or SYNC_UNABLE. */
static int sync_folder_fd(int fd)
{
    const int os_code = sync_by(fsync, fd);

    switch (os_code) {
    case EINVAL: /* file systems say in many ways that they cannot sync a folder */
    case EBADF:
    case ENOSYS:
    case EOPNOTSUPP:
    case EPERM:
    case EACCES:
    case EROFS:
        return SYNC_UNABLE;
    default:
        return os_code;
    }
}

/* The names of the root and of its parents, if this handle made them. */
static int sync_above_root(struct zr_local *l)
{
    const unsigned n = atomic_load(&l->n_made);
    int fd = l->root, os_code = 0;

    for (unsigned i = 0; i < n && os_code == 0; i++) {
        const int up =
            zr_local_high_fd(openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

        if (fd != l->root)
            close(fd);
        fd = up;
        os_code = fd < 0 ? SYNC_UNABLE : sync_folder_fd(fd);
    }
    if (fd >= 0 && fd != l->root)
        close(fd);
    if (os_code == 0)
        atomic_store(&l->n_made, 0);
    return os_code;
}

/* Syncs the folder key[0, n). */
static int sync_folder(const struct zr_local *l, const char *key, size_t n)
{
    char path[PATH_MAX];
    int fd, os_code;

    if (n >= sizeof path)
        return SYNC_UNABLE;
    memcpy(path, key, n);
    path[n] = '\0';
    fd = zr_local_open(l, path, O_RDONLY | O_DIRECTORY, NULL);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return SYNC_UNABLE;
    os_code = sync_folder_fd(fd);
    close(fd);
    return os_code;
}

/* Syncs the folders of a key that the key before it is not in. */
static int sync_folders(const struct zr_local *l, const char *key, const char *before)
{
    int os_code = 0;

    for (size_t i = 0; key[i] != '\0' && os_code == 0; i++)
        if (key[i] == '/' && (!before || strncmp(key, before, i + 1) != 0))
            os_code = sync_folder(l, key, i);
    return os_code;
}

zarr_status zr_local_sync_names(void *self, const char *keys, size_t n, zarr_error *err)
{
    struct zr_local *l = self;
    const char *key = keys, *before = NULL;
    zarr_status st = sync_check_past(l, err);
    int os_code = 0;

    if (st != ZARR_OK)
        return st;
    zr_block_begin();
    os_code = sync_folder_fd(l->root);
    for (size_t i = 0; i < n && os_code == 0; i++) {
        os_code = sync_folders(l, key, before);
        before = key;
        key += strlen(key) + 1;
    }
    if (os_code == 0)
        os_code = sync_above_root(l);
    zr_block_end();
    if (os_code == SYNC_UNABLE)
        return zr_local_flush(l, NULL, err);
    return os_code == 0 ? ZARR_OK : sync_fail(l, os_code, err);
}

/* ---- flush ---- */

/* The kernel tells an error of the disk to one call of syncfs() on a descriptor. So
 * flushes run one after the other, and each looks whether an earlier one failed. */
static zarr_status flush_in_turn(struct zr_local *l, zarr_error *err)
{
    const uint64_t n_written = atomic_load(&l->n_written);
    zarr_status st = sync_check_past(l, err);
    int os_code = 0;

    if (st != ZARR_OK)
        return st;
    if (!zr_local_flushes(l) || atomic_load(&l->n_synced) >= n_written)
        return ZARR_OK;
    os_code = sync_all(l);
    if (os_code == 0) {
        atomic_store(&l->n_synced, n_written);
        return ZARR_OK;
    }
    return sync_fail(l, os_code, err);
}

static void flush_in_child(void *arg)
{
    struct zr_local *l = arg;

    zr_cond_init(&l->flush.ended);
    l->flush.runs = false;
}

void zr_local_flush_init(struct zr_local *l)
{
    zr_mutex_init(&l->flush.mutex);
    zr_cond_init(&l->flush.ended);
    l->fork = (struct zr_fork_hook){
        .mutex = &l->flush.mutex, .child = flush_in_child, .arg = l};
    zr_fork_hook_add(&l->fork);
}

void zr_local_flush_deinit(struct zr_local *l)
{
    zr_fork_hook_remove(&l->fork);
    zr_cond_deinit(&l->flush.ended);
    zr_mutex_deinit(&l->flush.mutex);
}

zarr_status zr_local_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_local *l = self;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&l->flush.mutex);
    zr_block_begin();
    while (l->flush.runs && st == ZARR_OK) {
        (void)zr_cond_wait_until(&l->flush.ended, &l->flush.mutex,
                                 cancel ? zr_now_ns() + FLUSH_LOOK_NS : UINT64_MAX);
        st = zr_cancel_check(cancel, err);
    }
    if (st == ZARR_OK) {
        l->flush.runs = true;
        zr_mutex_unlock(&l->flush.mutex);
        st = flush_in_turn(l, err);
        zr_mutex_lock(&l->flush.mutex);
        l->flush.runs = false;
        zr_cond_broadcast(&l->flush.ended);
    }
    zr_block_end();
    zr_mutex_unlock(&l->flush.mutex);
    return st;
}
