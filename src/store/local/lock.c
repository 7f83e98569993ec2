/*
 * store/local/lock.c - the right to change one key, by TensorStore's protocol. A process
 * that holds an exclusive lock on the file <key>.__lock may remove that file or rename it
 * over the key, as long as the file still has that name. So the new value is written to
 * the lock file. A writer takes the right in three steps:
 * 1. open the lock file; make it if it does not exist;
 * 2. take the lock (an open file description lock; flock where the kernel or the file
 * system does not know these, as TensorStore does it);
 * 3. check that the name still leads to the locked file. If the last holder renamed or
 * removed it, begin again. If the file has another name, too, remove this one and begin
 * again: the other name may be the value, or belong to a copy of the store that was made
 * of hard links (cp -al, rsync --link-dest), and writing in place would change it.
 *
 * Threads of one handle first take a lock by key, so they queue without system calls.
 * Waiting for other processes is polling with growing pauses and never blocks in the
 * kernel, so that a wait can end at the limit of the store's options. A forked child does
 * not own its parent's locks. An open file description lock lives as long as any copy of
 * its descriptor, so a fork hook closes the child's copies.
 *
 * Thread class: a struct zr_local_lock belongs to its holder.
 */
#include "store/local/local_int.h"

#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    LOCK_VANISHED_TRIES = 1000, /* another process removes the directory each time */
    LOCK_PARENTS_TRIES = 16, /* or its parents, each time that many were tried to make */
    LOCK_YIELDS = 16,        /* first tries, about a microsecond each */
    LOCK_PAUSE_MIN_NS = 20000,   /* a replaced chunk takes 50 us upwards */
    LOCK_PAUSE_MAX_NS = 2000000, /* keeps a wait for a slow writer cheap */
    LOCK_FILE_LISTS = 16
};

/* These say that a kind of lock does not exist on this file system, which is the same for
 * every process. Other errors, such as ENOLCK of a server whose lock service is down, may
 * pass. Who then took the other kind would not exclude those that have the first. */
static bool lock_kind_is_missing(int os_code)
{
    return os_code == EINVAL || os_code == ENOSYS || os_code == EOPNOTSUPP;
}

bool zr_local_lock_is_missing(int os_code)
{
    return os_code == EOPNOTSUPP || os_code == ENOLCK || os_code == ZR_ENOTSUPP;
}

int zr_local_lock_try(int fd)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET}; /* the whole file */

    if (fcntl(fd, F_OFD_SETLK, &fl) == 0)
        return 0;
    if (errno == EACCES || errno == EAGAIN || errno == EINTR)
        return EAGAIN;
    if (!lock_kind_is_missing(errno))
        return errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EINTR ? EAGAIN : lock_kind_is_missing(errno) ? EOPNOTSUPP : errno;
}

/* ---- descriptors that may hold a lock ---- */

/* Lists of all stores. A fork must not come between the open and the list, so the file is
 * made with its list locked; several lists, because threads that write small chunks spend
 * most of their time there. */
static struct lock_files {
    zr_mutex mutex;
    struct zr_lock_file *open;
    struct zr_fork_hook fork;
} lock_files[LOCK_FILE_LISTS];
static zr_once lock_files_once = ZR_ONCE_INIT;

static void lock_files_in_child(void *arg)
{
    struct lock_files *l = arg;

    for (struct zr_lock_file *f = l->open; f; f = f->next) {
        close(f->fd);
        f->fd = -1;
    }
    l->open = NULL;
}

static void lock_files_make(void)
{
    for (size_t i = 0; i < LOCK_FILE_LISTS; i++) {
        struct lock_files *l = &lock_files[i];

        zr_mutex_init(&l->mutex);
        l->fork = (struct zr_fork_hook){
            .mutex = &l->mutex, .child = lock_files_in_child, .arg = l};
        zr_fork_hook_add(&l->fork);
    }
}

int zr_lock_file_open(struct zr_lock_file *f, int dir, const char *name, int flags)
{
    struct lock_files *l = NULL;
    int os_code = 0;

    zr_call_once(&lock_files_once, lock_files_make);
    f->list %= LOCK_FILE_LISTS;
    l = &lock_files[f->list];
    zr_mutex_lock(&l->mutex);
    do
        f->fd = openat(dir, name, flags, 0666);
    while (f->fd < 0 && errno == EINTR);
    f->fd = zr_local_high_fd(f->fd);
    if (f->fd < 0) {
        os_code = -f->fd;
        f->fd = -1;
    } else {
        f->prev = NULL;
        f->next = l->open;
        if (f->next)
            f->next->prev = f;
        l->open = f;
    }
    zr_mutex_unlock(&l->mutex);
    return os_code;
}

int zr_lock_file_close(struct zr_lock_file *f)
{
    struct flock fl = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    const int fd = f->fd;
    struct lock_files *l = NULL;

    if (fd < 0) /* never opened, or this is a forked child */
        return 0;
    /* Releases first: a child that is forked after the file left the list keeps a
     * descriptor without a lock. Closes last: then another file may get the number. */
    if (fcntl(fd, F_OFD_SETLK, &fl) != 0)
        (void)flock(fd, LOCK_UN);
    l = &lock_files[f->list];
    zr_mutex_lock(&l->mutex);
    if (f->prev)
        f->prev->next = f->next;
    else
        l->open = f->next;
    if (f->next)
        f->next->prev = f->prev;
    zr_mutex_unlock(&l->mutex);
    f->fd = -1;
    return close(fd) != 0 && errno != EINTR ? errno : 0;
}

/* ---- taking the lock ---- */

/* Returns ETIMEDOUT when the wait is over, ECANCELED when it was cancelled. */
static int lock_wait(const struct zr_local_lock *lk, struct zr_lock_wait *wait)
{
    struct timespec pause = {0, LOCK_PAUSE_MIN_NS};
    char holder[ZR_LOCK_HOLDER_BYTES];
    int os_code;

    for (int i = 0;; i++) {
        os_code = zr_local_lock_try(lk->file.fd);
        if (os_code != EAGAIN)
            return os_code;
        if (i < LOCK_YIELDS)
            continue;
        (void)zr_lock_wait_due(wait);
        if (zr_lock_wait_is_over(wait))
            return zr_is_cancelled(wait->cancel) ? ECANCELED : ETIMEDOUT;
        if (zr_lock_wait_is_long(wait)) {
            zr_local_lock_holders(lk->file.fd, lk->lock_name, holder);
            zr_lock_wait_warn(wait, holder);
        }
        zr_block_begin();
        nanosleep(&pause, NULL);
        zr_block_end();
        pause.tv_nsec = ZR_MIN(pause.tv_nsec * 2, (long)LOCK_PAUSE_MAX_NS);
    }
}

/* Sets *n_names to how many names the locked file has, 0 if `name` does not lead to it.
 * Returns 0 or an errno. */
static int lock_count_names(const struct zr_local_lock *lk, int dir, const char *name,
                            nlink_t *n_names)
{
    struct stat named;

    *n_names = 0;
    if (fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    if (named.st_dev == lk->device && named.st_ino == lk->inode)
        *n_names = named.st_nlink;
    return 0;
}

int zr_local_lock_look(const struct zr_local_lock *lk, bool *yes)
{
    nlink_t n_names;
    const int os_code = lock_count_names(lk, lk->dir.fd, lk->lock_name, &n_names);

    *yes = n_names > 0;
    return os_code;
}

bool zr_local_lock_has_one_name(const struct zr_local_lock *lk)
{
    nlink_t n_names;

    return lock_count_names(lk, lk->dir.fd, lk->lock_name, &n_names) == 0 && n_names == 1;
}

static bool has_lock_file(const struct zr_local *l, const char *key)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s" ZR_LOCK_SUFFIX, key);
    struct stat st;

    return n >= 0 && (size_t)n < sizeof path &&
           fstatat(l->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int zr_local_lock_is_at_key(const struct zr_local *l, const struct zr_local_lock *lk,
                            bool *yes)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s" ZR_LOCK_SUFFIX, lk->keylock.key);
    nlink_t n_names;
    int os_code;

    *yes = true;
    if (n < 0 || (size_t)n >= sizeof path) /* no call takes such a path */
        return 0;
    os_code = lock_count_names(lk, l->root, path, &n_names);
    *yes = n_names > 0;
    return os_code;
}

/* Call it with the lock held. Sets *same if the name still leads to the locked file and
 * the file has no other name. Only the holder may remove the name, so the next attempt
 * makes a file of its own. Who waits for the old file finds that it lost its name.
 * Returns 0 or an errno. */
static int lock_is_current(struct zr_local_lock *lk, bool *same)
{
    struct stat mine;
    nlink_t n_names = 0;
    int os_code = 0;

    *same = false;
    if (fstat(lk->file.fd, &mine) != 0)
        return errno;
    if (!S_ISREG(mine.st_mode))
        return EINVAL;
    lk->is_dirty = mine.st_size > 0;
    lk->device = mine.st_dev;
    lk->inode = mine.st_ino;
    zr_local_owner_read(&lk->owner, &mine);
    /* counted together with the look at the name: a link may come and go */
    os_code = lock_count_names(lk, lk->dir.fd, lk->lock_name, &n_names);
    *same = n_names == 1;
    if (n_names > 1 && unlinkat(lk->dir.fd, lk->lock_name, 0) != 0)
        os_code = errno;
    return os_code;
}

/* Does steps 1 to 3 once. Returns 0 and *same, or an errno: ENOENT if the directory of
 * the lock file vanished meanwhile, or if the file is not to be made. Closes the lock
 * file unless *same. */
static int lock_attempt(struct zr_local_lock *lk, struct zr_lock_wait *wait, bool *same,
                        zarr_error *err)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                      (lk->makes == ZR_LOCK_MAKES_NOTHING ? 0 : O_CREAT);
    char holder[ZR_LOCK_HOLDER_BYTES];
    int os_code;

    *same = false;
    lk->file.list = lk->keylock.bucket;
    os_code = zr_lock_file_open(&lk->file, lk->dir.fd, lk->lock_name, flags);
    if (os_code != 0)
        return os_code;
    os_code = lock_wait(lk, wait);
    if (os_code == 0) {
        os_code = lock_is_current(lk, same);
    } else if (os_code == ETIMEDOUT || os_code == ECANCELED) {
        zr_local_lock_holders(lk->file.fd, lk->lock_name, holder);
        (void)zr_lock_wait_fail(wait, holder, err);
    } else if (os_code == EOPNOTSUPP) { /* no process can have a lock on it */
        (void)unlinkat(lk->dir.fd, lk->lock_name, 0);
    }
    if (!*same)
        (void)zr_lock_file_close(&lk->file);
    return os_code;
}

static zarr_status fail_lock(const struct zr_local *l, const char *key, int os_code,
                             zarr_error *err)
{
    if (zr_local_lock_is_missing(os_code)) {
        const zarr_status st =
            zr_fail_os(err, ZARR_ERR_UNSUPPORTED, os_code,
                       "%s: this file system gives no locks (option locks)", key);

        zr_error_mark_option(err, "locks");
        return st;
    }
    if (os_code == ETIMEDOUT) /* lock_attempt() wrote the message */
        return ZARR_ERR_IO;
    if (os_code == ECANCELED)
        return ZARR_ERR_CANCELLED;
    if (os_code == ENAMETOOLONG)
        return zr_fail_os(err, ZARR_ERR_INVALID, os_code, "%s with " ZR_LOCK_SUFFIX, key);
    if (os_code == ZR_LOCAL_NOWHERE)
        return zr_fail_os(err, ZARR_ERR_IO, ENOENT, "%s: " ZR_LOCAL_NOWHERE_TEXT, key);
    return zr_local_fail(l, err, os_code, key, "cannot lock for writing");
}

zarr_status zr_local_lock_take(struct zr_local *l, struct zr_local_lock *lk,
                               struct zr_lock_wait *wait, enum zr_lock_makes makes,
                               int *os_code, zarr_error *err)
{
    const bool create = makes == ZR_LOCK_MAKES_FOLDERS;
    const char *key = wait->key;
    int n_vanished = 0, n_parents = 0;
    bool same = false;
    zarr_status st;

    *lk = (struct zr_local_lock){
        .dir = {.fd = -1}, .file = {.fd = -1}, .appended = {.fd = -1}, .makes = makes};
    lk->fork_generation = zr_fork_generation();
    st = zr_keylocks_take(&l->keylocks, &lk->keylock, wait, err);
    if (st != ZARR_OK) {
        *os_code = st == ZARR_ERR_CANCELLED ? 0 : ETIMEDOUT;
        return st;
    }
    lk->has_keylock = true;
    do {
        zr_local_dir_close(&lk->dir);
        *os_code = zr_local_dir_open(l, key, create, &lk->dir);
        if (*os_code == 0 &&
            (size_t)snprintf(lk->lock_name, sizeof lk->lock_name, "%s" ZR_LOCK_SUFFIX,
                             lk->dir.name) >= sizeof lk->lock_name)
            *os_code = ENAMETOOLONG;
        if (*os_code == 0)
            *os_code = lock_attempt(lk, wait, &same, err);
        else if (*os_code == ENOENT && (!create || ++n_parents > LOCK_PARENTS_TRIES))
            break; /* no parent directories, or they could not be made */
        if (*os_code == ENOENT && (!create || ++n_vanished > LOCK_VANISHED_TRIES))
            break;
    } while (*os_code == ENOENT || (*os_code == 0 && !same));
    zr_log(&l->log, ZARR_LOG_DEBUG, "lock %s: %s", key,
           *os_code == 0 ? "taken" : "refused");
    if (*os_code == 0)
        return ZARR_OK;
    zr_local_lock_give(l, lk);
    if (!create && *os_code == ENOENT)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", key);
    st = fail_lock(l, key, *os_code, err);
    if (st == ZARR_ERR_CANCELLED)
        *os_code = 0;
    else if (*os_code == ZR_LOCAL_NOWHERE)
        *os_code = ENOENT;
    return st;
}

int zr_local_lock_give(struct zr_local *l, struct zr_local_lock *lk)
{
    bool is_mine = !zr_has_forked(lk->fork_generation), is_named = false;
    int os_code = 0, left_over = 0;

    /* another process may have removed the file, and another writer may have the name */
    if (is_mine && lk->file.fd >= 0 && !lk->is_spent &&
        (zr_local_lock_look(lk, &is_named) != 0 || is_named) &&
        unlinkat(lk->dir.fd, lk->lock_name, 0) != 0)
        left_over = errno;
    if (lk->appended.fd >= 0)
        close(lk->appended.fd);
    lk->appended.fd = -1;
    os_code = zr_lock_file_close(&lk->file);
    zr_local_dir_close(&lk->dir);
    if (lk->has_keylock && is_mine)
        zr_keylocks_give(&l->keylocks, &lk->keylock);
    lk->has_keylock = false;
    if (left_over != 0) /* after the locks are released, because the application's log
                           function may take long */
        zr_log(&l->log, ZARR_LOG_WARN, "%s: cannot remove the lock file: errno %d",
               lk->lock_name, left_over);
    return os_code;
}

/* ---- the verbs of the vtable ---- */

struct local_held_lock {
    struct zr_local_lock lock; /* first, because op->lock points to it */
    char key[];
};

zarr_status zr_local_lock(void *self, const char *key, const zarr_cancel *cancel,
                          void **lock, zarr_error *err)
{
    struct zr_local *l = self;
    size_t n = strlen(key) + 1;
    struct local_held_lock *held = NULL;
    struct zr_lock_wait wait = {.cancel = cancel};
    int os_code = 0;
    zarr_status st = zr_local_key_check(key, err);

    if (st != ZARR_OK)
        return st;
    held = zr_malloc(l->alloc, sizeof *held + n);
    if (!held)
        return zr_fail_memory(err, sizeof *held + n);
    memcpy(held->key, key, n);
    wait.key = held->key;
    st = zr_local_lock_take(l, &held->lock, &wait, ZR_LOCK_MAKES_FOLDERS, &os_code, err);
    if (st != ZARR_OK)
        zr_free(l->alloc, held);
    else
        *lock = held;
    return st;
}

void zr_local_unlock(void *self, void *lock)
{
    struct zr_local *l = self;
    struct local_held_lock *held = lock;

    if (!held)
        return;
    /* Where close() can report that a value was lost, the PUT called fsync before. */
    (void)zr_local_lock_give(l, &held->lock);
    zr_free(l->alloc, held);
}

/* The writer's folder may be renamed or deleted meanwhile: this call must not make it
 * again. */
zarr_status zr_local_wait_for_writer(void *self, const char *key,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_local *l = self;
    struct zr_lock_wait wait = {.key = key, .cancel = cancel};
    struct zr_local_lock lk;
    zarr_error why = {0};
    int os_code = 0;
    zarr_status st;

    if (l->locks == ZARR_LOCKS_NONE || !has_lock_file(l, key))
        return ZARR_OK;
    st = zr_local_lock_take(l, &lk, &wait, ZR_LOCK_MAKES_NOTHING, &os_code, &why);
    if (st == ZARR_OK)
        (void)zr_local_lock_give(l, &lk); /* nothing was written to its file */
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &why);
}
