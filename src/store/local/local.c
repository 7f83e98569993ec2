/*
 * store/local/local.c - a directory as a store: opens it, says what it can do, renames
 * folders, and has the table of its verbs. What costs a system call is found out once:
 * whether the kernel has openat2() by the first store of the process, the root's device
 * and whether it is on a network file system by the first write. Thread class: frozen
 * after open.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    FACT_UNKNOWN,
    FACT_FALSE,
    FACT_TRUE
};

uint64_t zr_local_magic(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 ? (uint64_t)fs.f_type & UINT32_MAX : 0;
}

/* The magic numbers of network file systems, from statfs(2). On these, fsync and close
 * report errors of writes. */
static bool is_remote_file_system(int fd)
{
    static const uint64_t magics[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE */
        0x00c36400, /* CEPH */
        0x0bd00bd0, /* Lustre */
        0x01021997, /* 9P */
        0x5346414f, /* AFS */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
    };
    const uint64_t magic = zr_local_magic(fd);

    for (size_t i = 0; i < ZR_COUNT(magics); i++)
        if (magic == magics[i])
            return true;
    return magic == 0;
}

bool zr_local_is_remote(struct zr_local *l)
{
    int known = atomic_load_explicit(&l->remote, memory_order_relaxed);

    if (known == FACT_UNKNOWN) {
        known = is_remote_file_system(l->root) ? FACT_TRUE : FACT_FALSE;
        atomic_store_explicit(&l->remote, known, memory_order_relaxed);
    }
    return known == FACT_TRUE;
}

bool zr_local_is_elsewhere(struct zr_local *l, dev_t device)
{
    struct stat st;

    if (!atomic_load_explicit(&l->has_device, memory_order_acquire)) {
        if (fstat(l->root, &st) != 0)
            return true;
        atomic_store_explicit(&l->device, (uint64_t)st.st_dev, memory_order_relaxed);
        atomic_store_explicit(&l->has_device, true, memory_order_release);
    }
    return atomic_load_explicit(&l->device, memory_order_relaxed) != (uint64_t)device;
}

static bool local_has_openat2(int root)
{
    static atomic_int kernel = FACT_UNKNOWN;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    int known = atomic_load_explicit(&kernel, memory_order_relaxed), fd;

    if (known == FACT_UNKNOWN) {
        fd = (int)syscall(SYS_openat2, root, ".", &how, sizeof how);
        if (fd >= 0)
            close(fd);
        /* an error of this root, such as EACCES, says nothing about the kernel */
        if (fd < 0 && errno != ENOSYS && errno != EPERM)
            return false;
        known = fd >= 0 ? FACT_TRUE : FACT_FALSE; /* EPERM: from a sandbox */
        atomic_store_explicit(&kernel, known, memory_order_relaxed);
    }
    return known == FACT_TRUE;
}

static int local_open_dir(const char *path, int flags)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    while (fd < 0 && errno == EINTR);
    return zr_local_high_fd(fd);
}

/* Opens the root, and notes whether the path names a symlink. Slashes and dots at its end
 * make no difference to that: "link/." means what the link leads to. */
static int local_open_named(struct zr_local *l, const char *path)
{
    size_t n = strlen(path);
    char *name = NULL;
    int fd;

    while (n > 1 && (path[n - 1] == '/' || (path[n - 1] == '.' && path[n - 2] == '/')))
        n--;
    if (path[n] != '\0') {
        name = zr_strndup(l->alloc, path, n);
        if (!name)
            return -ENOMEM;
    }
    fd = local_open_dir(name ? name : path, O_NOFOLLOW);
    zr_free(l->alloc, name);
    if (fd != -ENOTDIR && fd != -ELOOP)
        return fd;
    fd = local_open_dir(path, 0);
    l->by_link = fd >= 0;
    return fd;
}

/* Syncs the parent of the new directory `part`. */
static int local_sync_parent(char *part)
{
    char *slash = strrchr(part, '/');
    struct zr_local_dir dir = {.name = NULL};
    int os_code = 0;

    if (slash && slash != part)
        *slash = '\0';
    dir.fd = local_open_dir(!slash ? "." : slash == part ? "/" : part, 0);
    if (slash && slash != part)
        *slash = '/';
    if (dir.fd < 0)
        return -dir.fd;
    os_code = zr_local_dir_sync(&dir);
    close(dir.fd);
    return os_code;
}

/* Makes path and its missing parents. */
static zarr_status local_make_root(struct zr_local *l, const char *path, zarr_error *err)
{
    size_t n = strlen(path);
    char *part = zr_strndup(l->alloc, path, n);
    zarr_status st = ZARR_OK;
    int os_code = 0;

    if (!part)
        return zr_fail_memory(err, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        part[i] = '\0';
        os_code = mkdir(part, 0777) != 0 ? errno : 0;
        if (os_code == 0)
            atomic_fetch_add(&l->n_made, 1);
        if (os_code == 0 && l->durability == ZARR_DURABILITY_EACH)
            os_code = local_sync_parent(part);
        if (os_code != 0 && os_code != EEXIST && (os_code != EROFS || i == n) &&
            (os_code != EACCES || i == n)) {
            st = zr_fail_os(err, ZARR_ERR_IO, os_code, "cannot make the directory %s",
                            part);
            goto out;
        }
        part[i] = path[i];
    }
out:
    zr_free(l->alloc, part);
    return st;
}

static zarr_status local_open_root(struct zr_local *l, const char *path, bool create,
                                   zarr_error *err)
{
    zarr_status status;

    l->root = local_open_named(l, path);
    if (l->root == -ENOENT && create) {
        status = local_make_root(l, path, err);
        if (status != ZARR_OK)
            return status;
        l->root = local_open_named(l, path);
    }
    if (l->root == -ENOENT)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: the directory does not exist", path);
    if (l->root == -ENOMEM)
        return zr_fail_memory(err, strlen(path));
    if (l->root == -ENOTDIR)
        return zr_local_fail_file(l->alloc, path, err);
    if (l->root < 0)
        return zr_fail_os(err, ZARR_ERR_IO, -l->root, "%s: cannot open", path);
    l->has_openat2 = local_has_openat2(l->root);
    return ZARR_OK;
}

/* The first of both that is not 0, else `usual`. */
static uint32_t local_choose(uint32_t option, uint32_t from_env, uint32_t usual)
{
    return option != 0 ? option : from_env != 0 ? from_env : usual;
}

static zarr_status local_read_options(struct zr_local *l, const struct zr_store_env *env,
                                      const zarr_store_options *o, zarr_error *err)
{
    if (o->durability > ZARR_DURABILITY_EACH)
        return zr_fail(err, ZARR_ERR_INVALID, "durability %" PRIu32 " is not known",
                       o->durability);
    if (o->locks > ZARR_LOCKS_NONE)
        return zr_fail(err, ZARR_ERR_INVALID, "locks %" PRIu32 " is not known", o->locks);
    if (o->symlinks > ZARR_SYMLINKS_FOLLOW)
        return zr_fail(err, ZARR_ERR_INVALID, "symlinks %" PRIu32 " is not known",
                       o->symlinks);
    if (o->device_type != 0 && o->device_type != ZARR_DEVICE_CPU)
        return zr_fail(err, ZARR_ERR_INVALID, "a local store has no device type");
    l->durability = o->durability == 0 ? ZARR_DURABILITY_COMMIT : o->durability;
    l->locks = local_choose(o->locks, env->locks, ZARR_LOCKS_OS);
    l->symlinks = local_choose(o->symlinks, env->symlinks, ZARR_SYMLINKS_WITHIN);
    return ZARR_OK;
}

static void local_close(void *self)
{
    struct zr_local *l = self;

    if (l->root >= 0)
        close(l->root);
    zr_local_close_hierarchy(l);
    zr_local_flush_deinit(l);
    zr_keylocks_deinit(&l->keylocks);
    zr_free(l->alloc, l);
}

static zarr_status local_open(void **self, const struct zr_store_env *env,
                              const char *url, const zarr_store_options *opts,
                              zarr_error *err)
{
    struct zr_local *l = zr_calloc(env->alloc, 1, sizeof *l);
    const char *path = zr_url_folder(url);
    const bool direct =
        opts->kind ? zr_streq(opts->kind, "gds") : zr_starts_with(url, "gds:");
    zarr_status st = ZARR_OK;

    if (!l)
        return zr_fail_memory(err, sizeof *l);
    l->alloc = env->alloc;
    l->log = env->log;
    l->memory = env->memory;
    l->listing_keys = env->limits.listing_keys;
    l->linked_directories = env->limits.linked_directories;
    l->root = -1;
    zr_keylocks_init(&l->keylocks, env, opts);
    zr_local_flush_init(l);
    ZR_TRY(local_read_options(l, env, opts, err));
    if (*path == '\0')
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s: no path in it", url);
    ZR_TRY(local_open_root(l, path, (opts->flags & ZARR_STORE_CREATE) != 0, err));
    if (direct)
        zr_local_find_devices(l, url);
    *self = l;
    l = NULL;
out:
    if (l)
        local_close(l);
    return st;
}

static void local_caps(void *self, zarr_store_caps *out)
{
    const struct zr_local *l = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT |
                 ZARR_STORE_CAP_FAST_GET | ZARR_STORE_CAP_PUT_NEW |
                 ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_PARTS |
                 ZARR_STORE_CAP_READ_PARTS | ZARR_STORE_CAP_COPY |
                 ZARR_STORE_CAP_COPY_PARTS | ZARR_STORE_CAP_APPEND;
    if (l->locks == ZARR_LOCKS_OS)
        out->flags |= ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_WRITES_WAIT |
                      ZARR_STORE_CAP_PUT_IF_VERSION | ZARR_STORE_CAP_ERASE_IF_VERSION;
    if (l->n_device_types > 0) /* such a read takes longer, and a longer one is faster */
        out->flags &= ~(uint32_t)ZARR_STORE_CAP_FAST_GET;
    out->device_types = l->device_types;
    out->n_device_types = l->n_device_types;
}

static bool local_by_link(const void *self)
{
    const struct zr_local *l = self;

    return l->by_link;
}

/* On a remote file system each value is synced anyway, and few of them know what fsync()
 * of a folder means: some answer with EIO. */
static bool local_syncs_names(void *self)
{
    return zr_local_flushes(self) && !zr_local_is_remote(self);
}

static void local_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const bool in_parts = op->flags & ZARR_STORE_OP_IN_PARTS;

    switch (op->verb) {
    case ZARR_STORE_GET:
        (in_parts ? zr_local_get_parts : zr_local_get)(self, op, err);
        break;
    case ZARR_STORE_PUT:
        zr_local_put(self, op, err);
        break;
    case ZARR_STORE_COPY:
        (in_parts ? zr_local_copy_part : zr_local_put)(self, op, err);
        break;
    case ZARR_STORE_APPEND:
        zr_local_append(self, op, err);
        break;
    case ZARR_STORE_ERASE:
        zr_local_erase(self, op, err);
        break;
    case ZARR_STORE_PUT_PART:
        zr_local_put_part(self, op, err);
        break;
    case ZARR_STORE_STAT:
        zr_local_stat(self, op, err);
        break;
    default:
        zr_op_end(op, zr_internal(err), 0);
    }
}

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

/* Moves a whole folder with one rename(2). So a reader finds all of it under one of the
 * two names, also after a kill. Open descriptors (pins, locks) follow the folder; a write
 * under a lock that was taken before is refused. It refuses what rename(2) cannot do
 * (another disk, a destination that is not empty) and what rename(2) would change (a
 * folder that is a symlink); the caller then copies. */
static zarr_status local_rename(void *self, const char *from, const char *to,
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

const zarr_store_vtable zr_local_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "local",
    .caps = local_caps,
    .run = local_run,
    .list = zr_local_list,
    .lock = zr_local_lock,
    .unlock = zr_local_unlock,
    .flush = zr_local_flush,
    .erase_prefix = zr_local_erase_prefix,
    .clean = zr_local_clean,
    .close = local_close,
    .rename = local_rename,
    .begin_parts = zr_local_begin_parts,
    .end_parts = zr_local_end_parts,
    .place = zr_local_tell_place,
};

static const struct zr_store_option local_options[] = {
    {"durability", offsetof(zarr_store_options, durability), "none|commit|ordered|each"},
    {"lock_wait_ms", offsetof(zarr_store_options, lock_wait_ms), NULL},
    {"locks", offsetof(zarr_store_options, locks), "os|none"},
    {"symlinks", offsetof(zarr_store_options, symlinks), "within|deny|follow"},
};

const struct zr_store_native zr_local_native = {
    .open = local_open,
    .pin = zr_local_pin,
    .unpin = zr_local_unpin,
    .same = zr_local_same,
    .overlap = zr_local_overlap,
    .erase_link = zr_local_erase_link,
    .erase_rest = zr_local_erase_rest,
    .by_link = local_by_link,
    .sync_names = zr_local_sync_names,
    .syncs_names = local_syncs_names,
    .wait_for_writer = zr_local_wait_for_writer,
    .detail = "a directory; URL: a path, file://path, local://path or gds:path",
    .options = local_options,
    .n_options = ZR_COUNT(local_options),
};
