/*
 * store/local/path.c - from a key to a descriptor, without leaving the root. One
 * openat2() from the root's descriptor opens a key. The first try refuses all symlinks:
 * then ENOENT proves that the key is missing, and stores without symlinks (nearly all)
 * pay nothing. Only if a symlink is on the way does the policy decide: deny, within (only
 * links that stay below the root, or below the directory symlink_root above it) or
 * follow. ENOENT from a link whose target does not
 * exist (an unmounted disk) is an error and never means that the key is missing.
 *
 * On kernels without openat2() the key is walked component by component with O_NOFOLLOW.
 * The policy "within" then refuses every symlink, which is safe. Descriptors 0 to 2 are
 * never used: otherwise a message that another part of the process prints could end up in
 * a chunk.
 *
 * Thread class: plain functions, any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#    define RESOLVE_CACHED 0x20 /* headers before Linux 5.12 */
#endif

enum {
    OPEN_TRIES = 32,     /* openat2 returns EAGAIN while directories are renamed */
    PATIENCE = 5,        /* pauses of 1, 2, 4, ... ms */
    MAKE_DIR_TRIES = 64, /* another process may remove directories while they are made */
    PARTIAL_HEX_DIGITS = 32
};

int zr_local_high_fd(int fd)
{
    int high;

    if (fd < 0)
        return -errno;
    if (fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (high < 0)
        high = -errno;
    close(fd);
    return high;
}

static int path_openat2(int dir, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {0};
    int fd;

    how.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC);
    how.resolve = resolve;
    for (int i = 0; i < OPEN_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN))
            break;
    }
    return zr_local_high_fd(fd);
}

static int path_openat(int dir, const char *path, int flags)
{
    int fd;

    do
        fd = openat(dir, path, flags | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return zr_local_high_fd(fd);
}

/* Opens one component and follows no symlink. A symlink is ELOOP unless the caller wants
 * the link itself. */
static int path_open_component(int dir, const char *component, int flags)
{
    const bool takes_link = (flags & (O_PATH | O_NOFOLLOW)) == O_PATH;
    const int fd = path_openat(dir, component, flags | O_NOFOLLOW);
    struct stat st;

    if (fd != -ENOTDIR && (fd < 0 || !takes_link)) /* O_PATH opens the link itself */
        return fd;
    if (fstatat(dir, component, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -ELOOP;
}

/* Opens path without openat2(), component by component; refuses symlinks. */
static int path_walk(int root, const char *path, int flags)
{
    char component[NAME_MAX + 1];
    int dir = root, next = -1;

    for (;;) {
        size_t n = strcspn(path, "/");
        bool is_last = path[n] == '\0';

        if (n > NAME_MAX) {
            next = -ENAMETOOLONG;
            break;
        }
        memcpy(component, path, n);
        component[n] = '\0';
        next =
            path_open_component(dir, component, is_last ? flags : O_PATH | O_DIRECTORY);
        if (is_last || next < 0)
            break;
        if (dir != root)
            close(dir);
        dir = next;
        path += n + 1;
    }
    if (dir != root)
        close(dir);
    return next;
}

/* ---- links that lead out of the root --------------------------------------------- */

/* Looks for it from where the root is now: no matter how the store was named. Returns 0
 * or -errno. */
static int hierarchy_look(const struct zr_local *l, struct zr_local_hierarchy **out)
{
    char name[40], path[PATH_MAX];
    struct zr_local_hierarchy *h;
    const char *rest;
    ssize_t got;
    size_t n;
    int rc;

    snprintf(name, sizeof name, "/proc/self/fd/%d", l->root);
    got = readlink(name, path, sizeof path - 1);
    if (got <= 0)
        return -EXDEV;
    path[got] = '\0';
    n = zr_path_find_root(l->alloc, path);
    if (n == 0)
        return -ENOMEM;
    h = zr_calloc(l->alloc, 1, sizeof *h + (size_t)got + 1);
    if (!h)
        return -ENOMEM;
    h->root = -1;
    rest = path + n + strspn(path + n, "/");
    memcpy(h->rest, rest, strlen(rest) + 1);
    path[n] = '\0';
    if (*h->rest != '\0')
        h->root = path_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY);
    rc = *h->rest != '\0' && h->root < 0 ? h->root : 0;
    if (rc == 0)
        *out = h;
    else
        zr_free(l->alloc, h);
    return rc;
}

static void hierarchy_free(const zarr_allocator *alloc, struct zr_local_hierarchy *h)
{
    if (h && h->root >= 0)
        close(h->root);
    zr_free(alloc, h);
}

void zr_local_close_hierarchy(struct zr_local *l)
{
    hierarchy_free(l->alloc, atomic_load(&l->hierarchy));
}

/* Several threads may look at a time: the first result counts. The member is a cache, so
 * it may change in a handle that is only read. */
static int hierarchy_find(const struct zr_local *l, const struct zr_local_hierarchy **out)
{
    struct zr_local *cache = (struct zr_local *)(uintptr_t)l;
    struct zr_local_hierarchy *mine = NULL, *found = atomic_load(&l->hierarchy);
    int rc = found ? 0 : hierarchy_look(l, &mine);

    if (mine && !atomic_compare_exchange_strong(&cache->hierarchy, &found, mine))
        hierarchy_free(l->alloc, mine);
    *out = found ? found : mine;
    return rc;
}

/* Opens path from the root of the hierarchy. The store's root must still be where it was
 * when that was found: otherwise -EXDEV. */
static int path_open_from_above(const struct zr_local *l, const char *path, int flags,
                                uint64_t resolve)
{
    const struct zr_local_hierarchy *h = NULL;
    char whole[PATH_MAX];
    struct stat now, root;
    int n, fd = hierarchy_find(l, &h);
    bool is_there;

    if (fd < 0)
        return fd;
    if (h->root < 0)
        return -EXDEV;
    n = snprintf(whole, sizeof whole, "%s/%s", h->rest, path);
    if (n < 0 || (size_t)n >= sizeof whole)
        return -ENAMETOOLONG;
    fd = path_openat2(h->root, h->rest, O_PATH | O_DIRECTORY, resolve);
    if (fd < 0)
        return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : -EXDEV;
    is_there = fstat(fd, &now) == 0 && fstat(l->root, &root) == 0 &&
               now.st_dev == root.st_dev && now.st_ino == root.st_ino;
    close(fd);
    return is_there ? path_openat2(h->root, whole, flags, resolve) : -EXDEV;
}

static int path_open_once(const struct zr_local *l, const char *path, int flags,
                          bool *via_link)
{
    uint64_t within = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    int fd = -ENOSYS;

    if (l->has_openat2)
        fd = path_openat2(l->root, path, flags, within | RESOLVE_NO_SYMLINKS);
    if (fd == -ENOSYS || fd == -EPERM) /* a sandbox may refuse it from now on */
        fd = path_walk(l->root, path, flags);
    if (fd != -ELOOP)
        return fd;
    *via_link = true;
    if (l->symlinks == ZARR_SYMLINKS_FOLLOW)
        return path_openat(l->root, path, flags);
    if (l->symlinks == ZARR_SYMLINKS_DENY || !l->has_openat2)
        return fd;
    fd = path_openat2(l->root, path, flags, within);
    return fd == -EXDEV ? path_open_from_above(l, path, flags, within) : fd;
}

int zr_local_open_cached(const struct zr_local *l, const char *path, int flags,
                         uint64_t resolve)
{
    static atomic_bool cannot; /* Linux before 5.12 */
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                                      RESOLVE_NO_SYMLINKS | RESOLVE_CACHED | resolve};
    int fd;

    if (!l->has_openat2 || atomic_load_explicit(&cannot, memory_order_relaxed))
        return -EAGAIN;
    fd = (int)syscall(SYS_openat2, l->root, path, &how, sizeof how);
    if (fd < 0 && errno == EINVAL)
        atomic_store_explicit(&cannot, true, memory_order_relaxed);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : -EAGAIN;
    return zr_local_high_fd(fd);
}

int zr_local_open(const struct zr_local *l, const char *path, int flags, bool *via_link)
{
    struct timespec pause = {0, 1000000};
    bool link = false;
    int fd = path_open_once(l, path, flags, &link);

    /* Other threads close descriptors within microseconds, so try a few more times. */
    for (int i = 0; i < PATIENCE && (fd == -EMFILE || fd == -ENFILE); i++) {
        nanosleep(&pause, NULL);
        pause.tv_nsec *= 2;
        fd = path_open_once(l, path, flags, &link);
    }
    if (via_link)
        *via_link = link;
    return fd;
}

/* ---- directories ---- */

/* Opens the longest part of path[0, *n) that exists. *n becomes its length; 0 is the
 * root. */
static int dir_open_deepest(const struct zr_local *l, char *path, size_t *n)
{
    int fd = -ENOENT;

    while (*n > 0) {
        char cut = path[*n];

        path[*n] = '\0';
        fd = zr_local_open(l, path, O_PATH | O_DIRECTORY, NULL);
        path[*n] = cut;
        if (fd != -ENOENT)
            return fd;
        do
            --*n;
        while (*n > 0 && path[*n] != '/');
    }
    fd = fcntl(l->root, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return fd < 0 ? -errno : fd;
}

/* Makes path[0, n) inside `parent`, which is path[0, have). It adds one component.
 * Returns 0 or an errno. */
static int dir_make_one(struct zr_local *l, int parent, const char *path, size_t have,
                        size_t n)
{
    char component[NAME_MAX + 1];
    size_t begin = have == 0 ? 0 : have + 1;
    struct zr_local_dir d = {parent, false, NULL};

    if (n - begin > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(component, path + begin, n - begin);
    component[n - begin] = '\0';
    if (mkdirat(parent, component, 0777) != 0 && errno != EEXIST)
        return errno;
    return zr_local_dir_commit(l, &d, NULL);
}

/* Makes the missing directories of path[0, n). Returns the descriptor of the last one, or
 * -errno. */
static int dir_make_missing(struct zr_local *l, char *path, size_t n)
{
    size_t have = n, next;
    int fd = dir_open_deepest(l, path, &have), os_code;

    while (fd >= 0 && have < n) {
        next = have + 1;
        while (next < n && path[next] != '/')
            next++;
        os_code = dir_make_one(l, fd, path, have, next);
        close(fd);
        if (os_code != 0)
            return -os_code;
        path[next] = '\0';
        fd = zr_local_open(l, path, O_PATH | O_DIRECTORY, NULL);
        path[next] = next < n ? '/' : '\0';
        have = next;
    }
    return fd;
}

int zr_local_dir_open(struct zr_local *l, const char *key, bool create,
                      struct zr_local_dir *out)
{
    const char *slash = strrchr(key, '/');
    char path[PATH_MAX];
    bool via_link = false;
    size_t n;
    int fd;

    *out = (struct zr_local_dir){l->root, false, key};
    if (!slash)
        return 0;
    n = (size_t)(slash - key);
    if (n >= sizeof path)
        return ENAMETOOLONG;
    memcpy(path, key, n);
    path[n] = '\0';
    fd = zr_local_open(l, path, O_PATH | O_DIRECTORY, &via_link);
    if (fd == -ENOENT && via_link && zr_local_is_dangling(l, path))
        fd = -ZR_LOCAL_NOWHERE;
    for (int i = 0; fd == -ENOENT && create && i < MAKE_DIR_TRIES; i++)
        fd = dir_make_missing(l, path, n);
    *out = (struct zr_local_dir){fd, true, slash + 1};
    return fd < 0 ? -fd : 0;
}

void zr_local_dir_close(struct zr_local_dir *d)
{
    if (d->owned && d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

bool zr_local_syncs_each(struct zr_local *l, dev_t device)
{
    if (l->durability == ZARR_DURABILITY_EACH || atomic_load(&l->lacks_syncfs))
        return true;
    /* syncfs() misses a directory that is mounted or linked in from another file
     * system. */
    return l->durability != ZARR_DURABILITY_NONE && zr_local_is_elsewhere(l, device);
}

bool zr_local_flushes(const struct zr_local *l)
{
    return l->durability == ZARR_DURABILITY_COMMIT ||
           l->durability == ZARR_DURABILITY_ORDERED;
}

int zr_local_dir_commit(struct zr_local *l, const struct zr_local_dir *d,
                        const dev_t *device)
{
    struct stat st;

    if (l->durability == ZARR_DURABILITY_NONE)
        return 0;
    if (!device && fstat(d->fd, &st) != 0)
        return errno;
    return zr_local_syncs_each(l, device ? *device : st.st_dev) ? zr_local_dir_sync(d)
                                                                : 0;
}

/* ---- names ---- */

/* zarr-python's temporary name: <name>.<32 hex digits>.partial */
static bool name_is_partial(const char *name, size_t n)
{
    static const char tail[] = ".partial";
    const size_t tail_bytes = sizeof tail - 1, hex = PARTIAL_HEX_DIGITS;
    size_t begin;

    if (n < tail_bytes + hex + 2 || memcmp(name + n - tail_bytes, tail, tail_bytes) != 0)
        return false;
    begin = n - tail_bytes - hex;
    if (name[begin - 1] != '.')
        return false;
    for (size_t i = begin; i < begin + hex; i++)
        if (!strchr("0123456789abcdef", name[i]) || name[i] == '\0')
            return false;
    return true;
}

enum zr_local_kind zr_local_name_kind(const char *name, size_t n)
{
    const size_t lock = sizeof ZR_LOCK_SUFFIX - 1, temp = sizeof ZR_TEMP_PREFIX - 1;

    if (n >= lock && memcmp(name + n - lock, ZR_LOCK_SUFFIX, lock) == 0)
        return ZR_LOCAL_LOCK;
    if (n >= temp && memcmp(name, ZR_TEMP_PREFIX, temp) == 0)
        return ZR_LOCAL_TEMP;
    return name_is_partial(name, n) ? ZR_LOCAL_PARTIAL : ZR_LOCAL_KEY;
}

zarr_status zr_local_key_check(const char *key, zarr_error *err)
{
    for (const char *s = key;; s++) {
        size_t n = strcspn(s, "/");

        if (zr_local_name_kind(s, n) != ZR_LOCAL_KEY)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "key %s: the local store keeps such names for lock and "
                           "temporary files",
                           key);
        s += n;
        if (*s == '\0')
            return ZARR_OK;
    }
}
