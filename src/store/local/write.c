/*
 * store/local/write.c - PUT, COPY and ERASE of the local store. A value is always
 * written under another name and renamed over the key. So every reader finds the old or
 * the new one, at any time and after any kill. An empty folder in the place of a value is
 * removed. With ZARR_LOCKS_OS the other name is the lock file (local/lock.c), with
 * ZARR_LOCKS_NONE a temporary name.
 *
 * Durability:
 * none: the kernel writes when it likes.
 * commit: a flush calls syncfs(); a metadata document is synced before its rename.
 * ordered: as commit, and every value is synced before its rename.
 * each: every value is synced before its rename, and its directory after it.
 * With commit and ordered, an operation may ask for its value to be synced so
 * (ZR_STORE_OP_SYNCED); local/sync.c then syncs the directories.
 *
 * syncfs() reaches only the root's disk. On another disk commit and ordered therefore
 * work as each does, also for new directories and erased keys. Network file systems
 * report errors of writes at fsync or close, so every value is synced there. A failed
 * sync is final: the kernel may have dropped the pages, and another try would report
 * success for lost bytes.
 *
 * The store sets the modification time itself, to the nanosecond. The kernel's time is
 * only as fine as its timer, and inode numbers are reused soon, so two values could have
 * one version.
 *
 * Thread class: any thread.
 */
#include "store/local/write_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WRITE_MAX_BYTES ((size_t)0x7ffff000)

enum {
    WRITE_TOLD = -1, /* in place of an errno: `op` and the error have been filled */
    ALLOCATE_FROM_BYTES = 1 << 20, /* below this, delayed allocation is as good */
    COPY_BYTES = 1 << 20,
    TEMP_TRIES = 16,
    LOOK_FROM_BYTES =
        64 << 10,  /* a last look before the rename; also at what is synced */
    LOST_TRIES = 4 /* another process removes the lock file each time */
};

/* ---- bytes into a file; all return 0 or an errno ---- */

int zr_local_write_all(int fd, const unsigned char *from, uint64_t at, uint64_t n)
{
    uint64_t done = 0;

    while (done < n) {
        ssize_t put = pwrite(fd, from + done, (size_t)ZR_MIN(n - done, WRITE_MAX_BYTES),
                             (off_t)(at + done));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno;
        if (put == 0)
            return ENOSPC;
        done += (uint64_t)put;
    }
    return 0;
}

int zr_local_set_length(int fd, uint64_t n)
{
    int st;

    do
        st = ftruncate(fd, (off_t)n);
    while (st != 0 && errno == EINTR);
    return st == 0 ? 0 : errno;
}

int zr_local_copy_bytes(const struct zr_local *l, int from, int to, uint64_t at,
                        uint64_t n)
{
    uint64_t done = 0;
    unsigned char *block = NULL;
    int os_code = 0;

    while (done < n && os_code == 0) {
        off_t in = (off_t)done, out = (off_t)(at + done);
        const size_t want = (size_t)ZR_MIN(n - done, WRITE_MAX_BYTES);
        ssize_t got = block ? pread(from, block, ZR_MIN(want, COPY_BYTES), in)
                            : copy_file_range(from, &in, to, &out, want, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0 && block)
            os_code = zr_local_write_all(to, block, at + done, (uint64_t)got);
        else if (got <= 0 && block)
            os_code = got < 0 ? errno : EIO;
        else if (got <= 0 && !(block = zr_malloc(l->alloc, COPY_BYTES)))
            os_code = ENOMEM; /* not every file system, and not between two of them */
        done += got > 0 ? (uint64_t)got : 0;
    }
    zr_free(l->alloc, block);
    return os_code;
}

/* True if the value must be on the disk before the rename gives it its key. */
static bool must_sync(struct zr_local *l, const zarr_store_op *op, dev_t device)
{
    if (zr_local_is_remote(l) || zr_local_syncs_each(l, device) ||
        (op->flags & ZR_STORE_OP_SYNCED))
        return true;
    return l->durability == ZARR_DURABILITY_ORDERED ||
           (l->durability != ZARR_DURABILITY_NONE &&
            (op->flags & ZARR_STORE_OP_KIND) == ZARR_STORE_OP_DOCUMENT);
}

/* The version follows from the time that the file is given, without an fstat() on a
 * device whose files kept such a time before. */
int zr_local_write_end(struct zr_local *l, zarr_store_op *op, struct zr_local_file *f)
{
    const bool wanted = (op->flags & (ZARR_STORE_OP_WANT_VERSION |
                                      ZARR_STORE_OP_IF_VERSION | ZR_STORE_OP_TELL)) != 0;
    /* a network file system knows the time after the sync */
    const bool late = wanted && zr_local_is_remote(l);
    struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}}, *set = &times[1];
    struct stat st = {.st_dev = f->device, .st_ino = f->inode};
    int os_code = 0;
    bool early;

    /* for finer versions; without it the kernel's time is good enough */
    if (clock_gettime(CLOCK_REALTIME, set) != 0 || futimens(f->fd, times) != 0)
        set = NULL;
    early = f->device == 0 ||
            (wanted && !late && (!set || f->device != atomic_load(&l->exact_device)));
    if (early && fstat(f->fd, &st) != 0)
        return errno;
    /* a coarser time is a multiple of 10 ns, so another one is kept to the nanosecond */
    if (early && set && set->tv_nsec % 10 != 0 && st.st_mtim.tv_sec == set->tv_sec &&
        st.st_mtim.tv_nsec == set->tv_nsec)
        atomic_store(&l->exact_device, st.st_dev);
    if (wanted && !early && !late) {
        st.st_mtim = *set;
        st.st_size = (off_t)f->bytes;
    }
    if (must_sync(l, op, st.st_dev))
        os_code = zr_local_sync_file(l, f->fd);
    if (os_code != 0)
        return os_code;
    if (late && fstat(f->fd, &st) != 0)
        return errno;
    f->device = st.st_dev;
    if (wanted)
        zr_local_version(&st, &op->version);
    return 0;
}

/* Parts are in the file already, perhaps over a longer value of an earlier attempt. */
static int write_bytes(struct zr_local *l, zarr_store_op *op,
                       const struct zr_local_file *f, const struct zr_local_source *from,
                       zarr_error *err)
{
    const bool in_parts = op->flags & ZARR_STORE_OP_IN_PARTS;
    int os_code = 0;

    if (in_parts || f->is_dirty)
        os_code = zr_local_set_length(f->fd, in_parts ? f->bytes : 0);
    if (os_code == 0 && f->owners.replaces)
        zr_local_owner_set(l, op, f->fd, &f->owners);
    if (os_code != 0 || in_parts)
        return os_code;
    if (from->fd >= 0)
        return zr_local_copy_bytes(l, from->fd, f->fd, 0, f->bytes);
    if (op->mem.bytes >= ALLOCATE_FROM_BYTES &&
        fallocate(f->fd, 0, 0, (off_t)op->mem.bytes) != 0 &&
        (errno == EFBIG || errno == ENOSPC || errno == EDQUOT || errno == EIO))
        return errno;
    if (!from->mem && op->mem.bytes > 0)
        return zr_local_write_device(l, op, f->fd, err) == ZARR_OK ? 0 : WRITE_TOLD;
    return zr_local_write_all(f->fd, from->mem, 0, op->mem.bytes);
}

/* Writes op's value. Returns 0, an errno or WRITE_TOLD. */
static int write_value(struct zr_local *l, zarr_store_op *op, struct zr_local_file *f,
                       const struct zr_local_source *from, zarr_error *err)
{
    const int os_code = write_bytes(l, op, f, from, err);

    return os_code == 0 ? zr_local_write_end(l, op, f) : os_code;
}

/* Gives a file the name of its key, and fails with EEXIST if that name is taken, also
 * by another program. Not every file system can rename so; link() is the same in two
 * steps, of which the first decides. */
static int write_rename_new(const struct zr_local_dir *dir, const char *from_name)
{
    if (renameat2(dir->fd, from_name, dir->fd, dir->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM)
        return errno;
    if (linkat(dir->fd, from_name, dir->fd, dir->name, 0) != 0)
        return errno;
    return unlinkat(dir->fd, from_name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

static int write_rename(struct zr_local *l, const struct zr_local_dir *dir,
                        const char *from_name, dev_t device, bool is_new)
{
    int os_code = 0;

    if (is_new)
        os_code = write_rename_new(dir, from_name);
    else if (renameat(dir->fd, from_name, dir->fd, dir->name) != 0)
        os_code = errno;
    if (os_code == EISDIR && unlinkat(dir->fd, dir->name, AT_REMOVEDIR) == 0)
        os_code = renameat(dir->fd, from_name, dir->fd, dir->name) != 0 ? errno : 0;
    if (os_code != 0)
        return os_code;
    atomic_fetch_add(&l->n_written, 1);
    return zr_local_syncs_each(l, device) ? zr_local_dir_sync(dir) : 0;
}

zarr_status zr_local_fail_write(const struct zr_local *l, zarr_store_op *op, int os_code,
                                const char *what, zarr_error *err)
{
    if (os_code == WRITE_TOLD)
        return op->status;
    if (os_code == ENAMETOOLONG)
        return zr_op_end(
            op, zr_fail_os(err, ZARR_ERR_INVALID, os_code, "%s: %s", op->key, what),
            os_code);
    if (os_code == ZR_LOCAL_NOWHERE)
        return zr_op_end(
            op,
            zr_fail_os(err, ZARR_ERR_IO, ENOENT, "%s: " ZR_LOCAL_NOWHERE_TEXT, op->key),
            ENOENT);
    return zr_op_end(op, zr_local_fail(l, err, os_code, op->key, what), os_code);
}

/* ---- conditions ---- */

zarr_status zr_local_conflict(zarr_store_op *op, zarr_error *err)
{
    return zr_op_end(
        op, zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", op->key), 0);
}

static zarr_status erase_missing(zarr_store_op *op, zarr_error *err)
{
    return zr_op_end(op, zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key), 0);
}

zarr_status zr_local_check_version(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op now = {.verb = ZARR_STORE_STAT, .key = op->key};
    zarr_store_version version = {{0}};
    struct stat st;
    int fd = -1;
    zarr_status status;

    if (!(op->flags & ZARR_STORE_OP_IF_VERSION))
        return ZARR_OK;
    status = zr_local_open_value(l, &now, op->key, &fd, &st, err);
    if (status == ZARR_OK) {
        zr_local_version(&st, &version);
        close(fd);
    } else if (status != ZARR_ERR_NOT_FOUND) {
        return zr_op_end(op, status, now.os_code);
    } else if (op->verb == ZARR_STORE_ERASE) {
        return erase_missing(op, err);
    }
    if (zr_store_version_equal(&version, &op->version))
        return ZARR_OK;
    return zr_local_conflict(op, err);
}

static zarr_status lock_is_gone(zarr_store_op *op, zarr_error *err)
{
    return zr_op_end(op,
                     zr_fail(err, ZARR_ERR_CONFLICT,
                             "%s: its lock file is gone: the folder was moved or "
                             "deleted, or another process removed the file",
                             op->key),
                     0);
}

zarr_status zr_local_check_lock(const struct zr_local *l, zarr_store_op *op,
                                struct zr_local_lock *lk, bool look, zarr_error *err)
{
    const char *why = NULL;
    bool is_there = false;
    int os_code = 0;

    if (lk && zr_has_forked(lk->fork_generation))
        why = "a lock of the parent process";
    else if (!lk || lk->file.fd < 0)
        why = "no lock";
    else if (strcmp(lk->keylock.key, op->key) != 0)
        why = "the lock of another key";
    else if (lk->is_spent)
        why = "a lock that an earlier write used up";
    if (why)
        return zr_op_end(
            op, zr_fail(err, ZARR_ERR_INVALID, "%s: write with %s", op->key, why), 0);
    if (!look)
        return ZARR_OK;
    os_code = zr_local_lock_is_at_key(l, lk, &is_there);
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot look at its lock file", err);
    if (is_there)
        return ZARR_OK;
    lk->is_spent = !zr_local_lock_has_one_name(lk);
    return lock_is_gone(op, err);
}

/* ---- PUT ---- */

zarr_status zr_local_put_into_lock(struct zr_local *l, zarr_store_op *op,
                                   struct zr_local_lock *lk,
                                   const struct zr_local_source *from, zarr_error *err)
{
    const bool is_new = zr_op_is_new(op);
    struct zr_local_file file = {.fd = lk->file.fd,
                                 .bytes = from->bytes,
                                 .is_dirty = lk->is_dirty,
                                 .owners = {.is_first = is_new, .mine = lk->owner},
                                 .device = lk->device,
                                 .inode = lk->inode};
    zarr_status st = zr_local_check_version(l, op, err);
    bool is_named = true;
    int os_code;

    if (st != ZARR_OK)
        return st;
    if (!is_new)
        zr_local_owner_look(&lk->dir, &file.owners);
    os_code = write_value(l, op, &file, from, err);
    lk->is_dirty = true;
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot write", err);
    /* Another process may have removed the lock file, by no right, and a writer may have
     * made its own since: half a value, which the rename would give the key. A small
     * value is written in the time that a look takes. */
    if (from->bytes >= LOOK_FROM_BYTES || must_sync(l, op, lk->device))
        os_code = zr_local_lock_look(lk, &is_named);
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot look at its lock file", err);
    lk->is_lost = lk->is_spent = !is_named;
    if (lk->is_lost)
        return lock_is_gone(op, err);
    os_code = write_rename(l, &lk->dir, lk->lock_name, lk->device, is_new);
    /* Spent also if only the directory's fsync failed, which leaves the lock file without
     * its name, or the unlink() after a link(), which leaves it the value's name. */
    lk->is_spent = os_code == 0 || !zr_local_lock_has_one_name(lk);
    if (os_code == EEXIST && is_new)
        return zr_local_conflict(op, err);
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot replace", err);
    if (zr_local_owner_is_shut_out(&file.owners))
        zr_local_mode_set(l, op, file.fd, file.owners.old.mode);
    /* versions of whole seconds may come back with another value */
    if ((op->flags & ZR_STORE_OP_TELL) && file.owners.is_first &&
        zr_store_version_number(&op->version, ZR_LOCAL_NUMBERS, ZR_LOCAL_TIME) %
                1000000000 !=
            0)
        op->flags |= ZR_STORE_OP_CREATED;
    return zr_op_end(op, ZARR_OK, 0);
}

static zarr_status put_with_own_lock(struct zr_local *l, zarr_store_op *op,
                                     const struct zr_local_source *from, zarr_error *err)
{
    const zarr_store_version wanted = op->version;
    struct zr_local_lock lk = {.is_lost = true};
    zarr_status st = ZARR_OK;

    for (int i = 0; i < LOST_TRIES && lk.is_lost; i++) {
        struct zr_lock_wait wait = {.key = op->key, .cancel = op->cancel};
        int os_code = 0;

        op->version = wanted;
        st = zr_local_lock_take(l, &lk, &wait, ZR_LOCK_MAKES_FOLDERS, &os_code, err);
        if (st != ZARR_OK)
            return zr_op_end(op, st, os_code);
        st = zr_local_put_into_lock(l, op, &lk, from, err);
        os_code = zr_local_lock_give(l, &lk);
        if (st == ZARR_OK && os_code != 0)
            st = zr_local_fail_write(l, op, os_code, "cannot close", err);
    }
    return st;
}

int zr_local_temp_open(struct zr_local *l, const char *key, struct zr_local_temp *t)
{
    int os_code = ENOENT;

    *t = (struct zr_local_temp){.dir = {-1, false, NULL}, .fd = -1};
    for (int i = 0; os_code == ENOENT && i < TEMP_TRIES; i++) { /* folders may vanish */
        zr_local_dir_close(&t->dir);
        os_code = zr_local_dir_open(l, key, true, &t->dir);
        if (os_code != 0)
            return os_code;
        os_code = EEXIST;
        for (int k = 0; (os_code == EEXIST || os_code == EINTR) && k < TEMP_TRIES; k++) {
            snprintf(t->name, sizeof t->name, ZR_TEMP_PREFIX "%ld-%016" PRIx64,
                     (long)getpid(), zr_random_u64());
            t->fd = zr_local_high_fd(
                openat(t->dir.fd, t->name,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
            os_code = t->fd < 0 ? -t->fd : 0;
        }
    }
    return os_code;
}

/* Closes the file, if it is open, and removes it unless it is a value. */
static void temp_end(struct zr_local_temp *t, bool is_value)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
    if (!is_value)
        (void)unlinkat(t->dir.fd, t->name, 0);
}

void zr_local_temp_close(struct zr_local_temp *t)
{
    if (t->fd >= 0)
        temp_end(t, false);
    zr_local_dir_close(&t->dir);
}

/* Some file systems report errors of writes only when a descriptor is closed. keep: the
 * file stays open. */
static int temp_flush(struct zr_local_temp *t, bool keep)
{
    const int fd = keep ? fcntl(t->fd, F_DUPFD_CLOEXEC, 0) : t->fd;

    if (!keep)
        t->fd = -1;
    if (fd < 0)
        return errno;
    return close(fd) != 0 && errno != EINTR ? errno : 0;
}

/* Whether no other name leads to the file, which may be a value then. */
static bool temp_has_its_name(const struct zr_local_temp *t)
{
    struct stat mine, named;

    return fstat(t->fd, &mine) == 0 &&
           fstatat(t->dir.fd, t->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino &&
           mine.st_nlink == 1;
}

zarr_status zr_local_temp_put(struct zr_local *l, zarr_store_op *op,
                              struct zr_local_temp *t, const struct zr_local_source *from,
                              zarr_error *err)
{
    const bool is_new = zr_op_is_new(op);
    const bool keep = op->flags & ZARR_STORE_OP_IN_PARTS; /* for another commit */
    struct zr_local_file file = {.fd = t->fd, .bytes = from->bytes};
    struct stat st;
    int os_code, closed;

    if (!is_new && fstat(file.fd, &st) == 0) {
        zr_local_owner_read(&file.owners.mine, &st);
        zr_local_owner_look(&t->dir, &file.owners);
    }
    os_code = write_value(l, op, &file, from, err);
    if (os_code == 0 && zr_local_owner_is_shut_out(&file.owners))
        zr_local_mode_set(l, op, file.fd, file.owners.old.mode);
    closed = temp_flush(t, keep);
    if (os_code == 0)
        os_code = closed;
    if (os_code == 0)
        os_code = write_rename(l, &t->dir, t->name, file.device, is_new);
    if (os_code == 0 || !keep || !temp_has_its_name(t))
        temp_end(t, os_code == 0);
    if (os_code == EEXIST && is_new)
        return zr_local_conflict(op, err);
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot write", err);
    return zr_op_end(op, ZARR_OK, 0);
}

static zarr_status put_by_temp(struct zr_local *l, zarr_store_op *op,
                               const struct zr_local_source *from, zarr_error *err)
{
    struct zr_local_temp t;
    zarr_status status = zr_local_check_version(l, op, err);
    int os_code;

    if (status != ZARR_OK)
        return status;
    os_code = zr_local_temp_open(l, op->key, &t);
    status = os_code == 0 ? zr_local_temp_put(l, op, &t, from, err)
                          : zr_local_fail_write(l, op, os_code, "cannot write", err);
    zr_local_temp_close(&t);
    return status;
}

/* ---- COPY ---- */

zarr_status zr_local_open_source(zarr_store_op *op, struct zr_local_source *out,
                                 zarr_error *err)
{
    const zarr_store_source *from = op->source;
    zarr_store_op get = {.verb = ZARR_STORE_GET, .key = from->key};
    zarr_store_version version;
    struct stat st;
    const zarr_status status =
        zr_local_open_value(from->self, &get, from->key, &out->fd, &st, err);

    if (status != ZARR_OK)
        return zr_op_end(op, status, get.os_code);
    out->bytes = (uint64_t)st.st_size;
    zr_local_version(&st, &version);
    if (zr_store_version_is_none(&from->version) ||
        zr_store_version_equal(&version, &from->version))
        return ZARR_OK;
    return zr_op_end(
        op, zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", from->key), 0);
}

/* ---- PUT and COPY ---- */

void zr_local_put(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    const bool in_parts = op->flags & ZARR_STORE_OP_IN_PARTS;
    struct zr_local_source from = {.bytes = in_parts ? op->length : op->mem.bytes,
                                   .fd = -1};
    void *mem = NULL;
    zarr_status st = zr_local_key_check(op->key, err);

    if (st == ZARR_OK && op->mem.bytes > 0 &&
        zr_device_is_host(l->memory, op->mem.device_type))
        st = zr_mem_host_ptr(l->memory, &op->mem, op->mem.bytes, &mem, err);
    from.mem = mem;
    if (st != ZARR_OK)
        zr_op_end(op, st, 0);
    else if (op->verb == ZARR_STORE_COPY)
        st = zr_local_open_source(op, &from, err);
    if (st != ZARR_OK)
        goto out;
    if (in_parts)
        st = zr_local_put_parts(l, op, &from, err);
    else if (op->flags & ZARR_STORE_OP_LOCKED)
        st = zr_local_check_lock(l, op, op->lock, true, err);
    else if (l->locks == ZARR_LOCKS_NONE)
        st = put_by_temp(l, op, &from, err);
    else
        st = put_with_own_lock(l, op, &from, err);
    if (st == ZARR_OK && !in_parts && (op->flags & ZARR_STORE_OP_LOCKED))
        st = zr_local_put_into_lock(l, op, op->lock, &from, err);
    if (st == ZARR_OK)
        op->done_bytes = op->object_bytes = from.bytes;
out:
    if (from.fd >= 0)
        close(from.fd);
}

/* ---- ERASE ---- */

/* lk: the lock that is held, which knows the folder's device; or NULL. */
static zarr_status erase_in_dir(struct zr_local *l, zarr_store_op *op,
                                const struct zr_local_dir *dir,
                                const struct zr_local_lock *lk, zarr_error *err)
{
    zarr_status st = zr_local_check_version(l, op, err);
    int os_code = 0;

    if (st != ZARR_OK)
        return st;
    if (unlinkat(dir->fd, dir->name, 0) != 0)
        os_code = errno;
    if (os_code == EISDIR && unlinkat(dir->fd, dir->name, AT_REMOVEDIR) == 0)
        os_code = 0;
    if (os_code == ENOENT)
        return erase_missing(op, err);
    if (os_code == 0) {
        atomic_fetch_add(&l->n_written, 1);
        os_code = zr_local_dir_commit(l, dir, lk ? &lk->device : NULL);
    }
    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot erase", err);
    op->version = (zarr_store_version){{0}};
    return zr_op_end(op, ZARR_OK, 0);
}

static zarr_status erase_with_own_lock(struct zr_local *l, zarr_store_op *op,
                                       zarr_error *err)
{
    struct zr_local_lock lk;
    int os_code = 0;
    struct zr_lock_wait wait = {.key = op->key, .cancel = op->cancel};
    zarr_status st = zr_local_lock_take(l, &lk, &wait, ZR_LOCK_MAKES_FILE, &os_code, err);

    if (st != ZARR_OK)
        return zr_op_end(op, st, st == ZARR_ERR_NOT_FOUND ? 0 : os_code);
    st = erase_in_dir(l, op, &lk.dir, &lk, err);
    (void)zr_local_lock_give(l, &lk); /* nothing was written to its file */
    return st;
}

static zarr_status erase_without_lock(struct zr_local *l, zarr_store_op *op,
                                      zarr_error *err)
{
    struct zr_local_dir dir;
    zarr_status st;
    int os_code = zr_local_dir_open(l, op->key, false, &dir);

    if (os_code == ENOENT)
        st = erase_missing(op, err);
    else if (os_code != 0)
        st = zr_local_fail_write(l, op, os_code, "cannot erase", err);
    else
        st = erase_in_dir(l, op, &dir, NULL, err);
    zr_local_dir_close(&dir);
    return st;
}

void zr_local_erase(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    zarr_status st = zr_local_key_check(op->key, err);

    if (st != ZARR_OK)
        zr_op_end(op, st, 0);
    else if (op->flags & ZARR_STORE_OP_LOCKED)
        st = zr_local_check_lock(l, op, op->lock, true, err);
    else if (l->locks == ZARR_LOCKS_NONE || (op->flags & ZR_STORE_OP_GUARDED))
        st = erase_without_lock(l, op, err);
    else
        st = erase_with_own_lock(l, op, err);
    if (st == ZARR_OK && (op->flags & ZARR_STORE_OP_LOCKED))
        (void)erase_in_dir(l, op, &((struct zr_local_lock *)op->lock)->dir, op->lock,
                           err);
}
