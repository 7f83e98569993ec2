/*
 * store/local/append.c - APPEND of the local store: the only verb that changes a file in
 * place. An APPEND does not use up the lock of the key, and the file stays open
 * while the caller holds that lock. So most appends are four system calls: a look at the
 * name of the lock file and at that of the value, the write, and the time, from which the
 * version follows.
 *
 * A file that has another name, too, or that a symbolic link leads to, is not only this
 * key's, and by its other name it has another lock. A PUT leaves such a file as it is,
 * and so does an APPEND: a copy of the bytes to keep replaces it first. Where the file
 * system shares blocks between files, the copy takes no room.
 *
 * The new bytes are written before the file is cut: a reader that knows the old length
 * finds fewer bytes only if the value becomes shorter.
 * Thread class: any thread; the appends under one lock come one after the other.
 */
#include "store/local/write_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    APPEND_TRIES = 4 /* another program replaces or links the file each time */
};

static zarr_status append_fail(zarr_store_op *op, zarr_status code, const char *why,
                               zarr_error *err)
{
    return zr_op_end(op, zr_fail(err, code, "%s: %s", op->key, why), 0);
}

static zarr_status append_check_offset(zarr_store_op *op, uint64_t bytes, zarr_error *err)
{
    uint64_t end;

    if (op->offset > bytes)
        return zr_op_end(op,
                         zr_fail(err, ZARR_ERR_INVALID,
                                 "%s: append at %" PRIu64 " of %" PRIu64 " bytes",
                                 op->key, op->offset, bytes),
                         0);
    if (!zr_add(op->offset, op->mem.bytes, &end) || end > INT64_MAX)
        return append_fail(op, ZARR_ERR_INVALID, "the value would be too long", err);
    return ZARR_OK;
}

/* Replaces the file that the key shares by a copy of the bytes to keep. */
static zarr_status append_unshare(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    struct zr_local_source from = {.fd = -1};
    struct zr_local_temp t = {.dir = {-1, false, NULL}, .fd = -1};
    struct stat st;
    int os_code;
    zarr_status status = zr_local_open_value(l, op, op->key, &from.fd, &st, err);

    if (status != ZARR_OK)
        return status;
    status = append_check_offset(op, (uint64_t)st.st_size, err);
    if (status != ZARR_OK)
        goto out;
    from.bytes = op->offset;
    os_code = zr_local_temp_open(l, op->key, &t);
    status = os_code == 0 ? zr_local_temp_put(l, op, &t, &from, err)
                          : zr_local_fail_write(l, op, os_code, "cannot append", err);
    zr_local_temp_close(&t);
out:
    close(from.fd);
    return status;
}

/* Opens the file of the key that *st tells about, unless it is open already. Returns 0,
 * an errno, or EAGAIN: the key has another file by now. */
static int append_open(const struct zr_local_dir *dir, const struct stat *st,
                       struct zr_local_appended *file)
{
    struct stat now;

    if (file->fd >= 0 && file->inode == st->st_ino && file->device == st->st_dev)
        return 0;
    if (file->fd >= 0)
        close(file->fd);
    do
        file->fd = openat(dir->fd, dir->name,
                          O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (file->fd < 0 && errno == EINTR);
    file->fd = zr_local_high_fd(file->fd);
    if (file->fd < 0)
        return file->fd == -ENOENT || file->fd == -ELOOP ? EAGAIN : -file->fd;
    if (fstat(file->fd, &now) != 0)
        return errno;
    file->device = now.st_dev;
    file->inode = now.st_ino;
    return now.st_ino == st->st_ino && now.st_dev == st->st_dev ? 0 : EAGAIN;
}

/* Writes op's bytes into the open file, which *st tells about. */
static zarr_status write_append(struct zr_local *l, zarr_store_op *op,
                                const struct zr_local_appended *to, const struct stat *st,
                                zarr_error *err)
{
    struct zr_local_file file = {.fd = to->fd,
                                 .bytes = op->offset + op->mem.bytes,
                                 .device = to->device,
                                 .inode = to->inode};
    void *from = NULL;
    zarr_status status = zr_mem_host_ptr(l->memory, &op->mem, op->mem.bytes, &from, err);
    int os_code;

    if (status != ZARR_OK)
        return zr_op_end(op, status, 0);
    os_code = zr_local_write_all(to->fd, from, op->offset, op->mem.bytes);
    if (os_code == 0 && file.bytes < (uint64_t)st->st_size)
        os_code = zr_local_set_length(to->fd, file.bytes);
    atomic_fetch_add(&l->n_written, 1);
    if (os_code == 0)
        os_code = zr_local_write_end(l, op, &file);
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot append", err);
    op->done_bytes = op->mem.bytes;
    op->object_bytes = file.bytes;
    return zr_op_end(op, ZARR_OK, 0);
}

/* Checks the version of the file that *st tells about. */
static zarr_status append_check_version(const struct stat *st, zarr_store_op *op,
                                        zarr_error *err)
{
    zarr_store_version now;

    zr_local_version(st, &now);
    if (!(op->flags & ZARR_STORE_OP_IF_VERSION) ||
        zr_store_version_equal(&now, &op->version))
        return ZARR_OK;
    return zr_local_conflict(op, err);
}

/* Looks at the file of the key. *os_code: 0, an errno, or EAGAIN: look
 * again. *is_unshared: the file replaced one of the version that op expects. */
static zarr_status append_look(struct zr_local *l, zarr_store_op *op,
                               const struct zr_local_dir *dir, struct stat *now,
                               bool *is_unshared, int *os_code, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *os_code = fstatat(dir->fd, dir->name, now, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (*os_code != 0)
        return ZARR_OK;
    if (S_ISREG(now->st_mode) && now->st_nlink == 1) {
        if (!*is_unshared)
            ZR_TRY(append_check_version(now, op, err));
        return append_check_offset(op, (uint64_t)now->st_size, err);
    }
    if (!*is_unshared)
        ZR_TRY(zr_local_check_version(l, op, err));
    st = append_unshare(l, op, err); /* fails if it is no value */
    *is_unshared = true;
    *os_code = EAGAIN;
out:
    return st;
}

static zarr_status append_in_dir(struct zr_local *l, zarr_store_op *op,
                                 const struct zr_local_dir *dir,
                                 struct zr_local_appended *file, zarr_error *err)
{
    bool is_unshared = false;
    struct stat st;
    int os_code = EAGAIN;

    for (int i = 0; i < APPEND_TRIES && os_code == EAGAIN; i++) {
        const zarr_status status =
            append_look(l, op, dir, &st, &is_unshared, &os_code, err);

        if (status != ZARR_OK)
            return status;
        if (os_code == 0)
            os_code = append_open(dir, &st, file);
    }
    if (os_code == 0)
        return write_append(l, op, file, &st, err);
    if (os_code == ENOENT)
        return append_fail(op, ZARR_ERR_NOT_FOUND, "no such key", err);
    if (os_code == EAGAIN)
        return zr_local_conflict(op, err);
    return zr_local_fail_write(l, op, os_code, "cannot append", err);
}

static zarr_status append_with_own_lock(struct zr_local *l, zarr_store_op *op,
                                        zarr_error *err)
{
    struct zr_lock_wait wait = {.key = op->key, .cancel = op->cancel};
    struct zr_local_lock lk;
    int os_code = 0;
    zarr_status st = zr_local_lock_take(l, &lk, &wait, ZR_LOCK_MAKES_FILE, &os_code, err);

    if (st != ZARR_OK)
        return zr_op_end(op, st, st == ZARR_ERR_NOT_FOUND ? 0 : os_code);
    st = append_in_dir(l, op, &lk.dir, &lk.appended, err);
    (void)zr_local_lock_give(l, &lk); /* nothing was written to its file */
    return st;
}

static zarr_status append_without_lock(struct zr_local *l, zarr_store_op *op,
                                       zarr_error *err)
{
    struct zr_local_appended file = {.fd = -1};
    struct zr_local_dir dir;
    zarr_status st;
    int os_code = zr_local_dir_open(l, op->key, false, &dir);

    if (os_code == ENOENT)
        st = append_fail(op, ZARR_ERR_NOT_FOUND, "no such key", err);
    else if (os_code != 0)
        st = zr_local_fail_write(l, op, os_code, "cannot append", err);
    else
        st = append_in_dir(l, op, &dir, &file, err);
    if (file.fd >= 0)
        close(file.fd);
    zr_local_dir_close(&dir);
    return st;
}

void zr_local_append(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    struct zr_local_lock *lk = op->lock;
    zarr_status st = zr_local_key_check(op->key, err);

    if (st != ZARR_OK)
        zr_op_end(op, st, 0);
    else if (op->flags & ZARR_STORE_OP_LOCKED)
        st = zr_local_check_lock(l, op, lk, true, err);
    else if (l->locks == ZARR_LOCKS_NONE)
        (void)append_without_lock(l, op, err);
    else
        (void)append_with_own_lock(l, op, err);
    if (st == ZARR_OK && (op->flags & ZARR_STORE_OP_LOCKED))
        (void)append_in_dir(l, op, &lk->dir, &lk->appended, err);
}
