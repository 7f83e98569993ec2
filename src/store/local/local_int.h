/*
 * store/local/local_int.h - what the files of the local store share. A store is a
 * directory, and a key is a file in it. All names are resolved from the root's descriptor
 * and never from the root's path. So nothing changes if a parent of the root is renamed
 * or replaced.
 */
#ifndef ZR_LOCAL_INT_H
#define ZR_LOCAL_INT_H

#include "store/store_int.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#define ZR_TEMP_PREFIX ".zarrc-tmp-"

/* A descriptor that may hold a lock. local/lock.c lists them, so that a forked child
 * closes its copies: otherwise the lock of a killed process would live on in the child.
 */
struct zr_lock_file {
    int fd; /* -1: none */
    uint32_t list;
    struct zr_lock_file *prev, *next;
};

/* The directory below which links may lead that lead out of the root
 * (ZARR_SYMLINKS_WITHIN). */
struct zr_local_hierarchy {
    int root;    /* -1: the store has the whole hierarchy */
    char rest[]; /* path of the store's root from there */
};

struct zr_local {
    const zarr_allocator *alloc;
    struct zr_log log;
    const struct zr_memory_registry *memory;
    uint64_t listing_keys, linked_directories;
    int32_t
        device_types[ZR_STORE_KINDS]; /* that files are read into; see local/device.c */
    uint32_t n_device_types;
    int root;
    atomic_uint_fast64_t device; /* for zr_local_is_elsewhere(): the root's */
    atomic_bool has_device;
    uint32_t durability, locks, symlinks;
    atomic_int remote; /* for zr_local_is_remote() */
    bool has_openat2;
    bool by_link;                                   /* the root's path named a symlink */
    _Atomic(struct zr_local_hierarchy *) hierarchy; /* NULL: not looked for */
    atomic_uint_fast64_t last_device;  /* of the value that was opened last */
    atomic_uint_fast64_t exact_device; /* keeps modification times to the nanosecond */
    atomic_uint_fast64_t n_written,
        n_synced; /* writes done; how many of them the last successful flush covered */
    atomic_int
        sync_os_code; /* errno of the first flush that failed; all later flushes fail */
    atomic_bool lacks_syncfs, warned_of_sync; /* see local/sync.c */
    atomic_uint n_made; /* the root and its parents that this handle made; 0: also if
                           their names are on the disk */
    struct zr_keylocks keylocks;
    struct {
        zr_mutex mutex;
        zr_cond ended;
        bool runs; /* one at a time; none in a forked child */
    } flush;
    struct zr_fork_hook fork;
};

/* See `place` in zarr_store_vtable; in local/same_folder.c. */
void zr_local_tell_place(void *self, zarr_store_place_fn fn, void *user);

/* ---- local/path.c: from keys to descriptors ------------------------------------ */

/* Opens path below the root under the symlink policy. Returns a descriptor above 2, or
 * -errno. *via_link (may be NULL): whether a symlink was on the way. */
int zr_local_open(const struct zr_local *l, const char *path, int flags, bool *via_link);
/* Like zr_local_open() on names that the kernel has in memory. -EAGAIN: they are not all
 * there, it cannot tell, or a symlink, an error or what `resolve` (more flags of openat2)
 * forbids is on the way: zr_local_open() says which. */
int zr_local_open_cached(const struct zr_local *l, const char *path, int flags,
                         uint64_t resolve);
void zr_local_close_hierarchy(struct zr_local *l);
/* Replaces a descriptor of 0 to 2 by a higher one, as zr_local_open does. Returns -errno
 * if fd is negative. */
int zr_local_high_fd(int fd);

/* In place of ENOENT: a symlink on the way leads nowhere, so what is behind it is not
 * known. Reported as ENOENT, with this text. */
#define ZR_LOCAL_NOWHERE      ENOLINK
#define ZR_LOCAL_NOWHERE_TEXT "a symlink on the way leads nowhere"

/* ---- local/link.c: symlinks that cannot be followed ----------------------------- */

/* After zr_local_open returned -ENOENT with *via_link: true if the cause is a symlink
 * whose target does not exist. */
bool zr_local_is_dangling(const struct zr_local *l, const char *path);
/* Fails with IO and os_code: "<path>: <what>". If a symlink on the way to path was
 * refused, says which one instead, and where it leads. */
zarr_status zr_local_fail(const struct zr_local *l, zarr_error *err, int os_code,
                          const char *path, const char *what);

/* ---- directories ---------------------------------------------------------------- */

/* The directory that holds a key's file, and the file's name (inside the key). */
struct zr_local_dir {
    int fd;
    bool owned;
    const char *name;
};
/* Opens the directory of a key. Returns 0 or an errno, also ZR_LOCAL_NOWHERE. create:
 * makes missing directories. */
int zr_local_dir_open(struct zr_local *l, const char *key, bool create,
                      struct zr_local_dir *out);
void zr_local_dir_close(struct zr_local_dir *d); /* {-1} is allowed */
/* Whether the root is on a network file system, where fsync and close report errors of
 * writes. */
bool zr_local_is_remote(struct zr_local *l);
/* True if each write on this device must be synced at once, because a flush does not
 * reach it. */
bool zr_local_syncs_each(struct zr_local *l, dev_t device);
/* Whether syncfs() on the root does not reach this device. */
bool zr_local_is_elsewhere(struct zr_local *l, dev_t device);
bool zr_local_flushes(
    const struct zr_local *l); /* true if a flush makes writes durable */
/* Fails because something on the path is no folder: UNSUPPORTED, with what reads it, if
 * it is a file of a known format; else INVALID. */
zarr_status zr_local_fail_file(const zarr_allocator *alloc, const char *path,
                               zarr_error *err);
/* The magic number of fd's file system, from statfs(2). 0: unknown. */
uint64_t zr_local_magic(int fd);
/* Call it after a name in d was made, erased or renamed. Syncs d if the durability needs
 * it. device: that of d, or NULL: not known. Returns 0 or an errno. */
int zr_local_dir_commit(struct zr_local *l, const struct zr_local_dir *d,
                        const dev_t *device);

enum zr_local_kind {
    ZR_LOCAL_KEY,
    ZR_LOCAL_LOCK,
    ZR_LOCAL_TEMP,
    ZR_LOCAL_PARTIAL
};
/* The kind of file that a name of n bytes belongs to. */
enum zr_local_kind zr_local_name_kind(const char *name, size_t n);
/* INVALID if a component of the key is a name that this store reserves. */
zarr_status zr_local_key_check(const char *key, zarr_error *err);

/* ---- local/read.c ------------------------------------------------------------------ */

/* The numbers of a version. */
enum {
    ZR_LOCAL_DEVICE,
    ZR_LOCAL_INODE,
    ZR_LOCAL_TIME, /* of the modification, in nanoseconds */
    ZR_LOCAL_BYTES,
    ZR_LOCAL_NUMBERS /* how many there are */
};
void zr_local_version(const struct stat *st, zarr_store_version *out);
/* Opens a key's file and checks that it is a regular file. NOT_FOUND if it does not
 * exist; other errors name the cause. The caller closes *fd. */
zarr_status zr_local_open_value(struct zr_local *l, zarr_store_op *op, const char *key,
                                int *fd, struct stat *st, zarr_error *err);
void zr_local_get(struct zr_local *l, zarr_store_op *op, zarr_error *err);
void zr_local_stat(struct zr_local *l, zarr_store_op *op, zarr_error *err);
zarr_status zr_local_pin(void *self, struct zr_store_pin *p, zarr_error *err);
void zr_local_unpin(void *self, struct zr_store_pin *p);

/* ---- local/mode.c --------------------------------------------------------------- */

/* Who may do what with a file. */
struct zr_local_owner {
    mode_t mode; /* the last nine bits */
    uid_t uid;
    gid_t gid;
};
/* Of a file that becomes a value. */
struct zr_local_owners {
    bool is_first; /* the key has no file of any kind */
    bool replaces; /* a file, whose owner is `old` */
    struct zr_local_owner mine, old;
};
void zr_local_owner_read(struct zr_local_owner *o, const struct stat *st);
/* Looks at the file that the value will replace. */
void zr_local_owner_look(const struct zr_local_dir *dir, struct zr_local_owners *o);
void zr_local_mode_set(struct zr_local *l, const zarr_store_op *op, int fd, mode_t mode);
/* Call it before the first byte is written, so that no user reads what the old file kept
 * from them. The owner may read and write until the file has its key: otherwise a lock
 * file that a killed writer left would stop all later ones. */
void zr_local_owner_set(struct zr_local *l, const zarr_store_op *op, int fd,
                        const struct zr_local_owners *o);
/* Whether the mode that the file gets in the end takes rights from its owner. */
bool zr_local_owner_is_shut_out(const struct zr_local_owners *o);

/* ---- local/lock.c: TensorStore's lock protocol ------------------------- */

/* What may be made to take a lock. */
enum zr_lock_makes {
    ZR_LOCK_MAKES_NOTHING,
    ZR_LOCK_MAKES_FILE,
    ZR_LOCK_MAKES_FOLDERS /* and the file */
};
/* The file of a value that an APPEND opened. */
struct zr_local_appended {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
struct zr_local_lock {
    struct zr_keylock keylock;
    struct zr_local_dir dir;
    struct zr_lock_file file; /* fd -1: not held */
    bool is_dirty;            /* the lock file has bytes of another attempt to write */
    bool is_spent; /* the lock file was renamed over the key: the right is used up */
    bool is_lost;  /* a write found that another process removed the lock file */
    bool has_keylock;
    dev_t device;
    ino_t inode;
    struct zr_local_owner owner; /* of the lock file */
    struct zr_local_appended appended;
    uint64_t fork_generation;
    enum zr_lock_makes makes;
    char lock_name[NAME_MAX + 1];
};
/* Waits for the lock of key. lk is any storage; key is borrowed. NOT_FOUND if something
 * does not exist that `makes` does not include. */
zarr_status zr_local_lock_take(struct zr_local *l, struct zr_local_lock *lk,
                               struct zr_lock_wait *wait, enum zr_lock_makes makes,
                               int *os_code, zarr_error *err);
/* Gives the lock back, and removes the lock file, unless it became the value or its name
 * leads to another file. Returns 0 or the errno of close(). */
int zr_local_lock_give(struct zr_local *l, struct zr_local_lock *lk);
/* Whether the name of the lock file, in the folder that was opened then, still leads to
 * it. Returns 0 or an errno. */
int zr_local_lock_look(const struct zr_local_lock *lk, bool *yes);
/* Whether the name leads to it and it has no other name; false if it cannot be found out.
 */
bool zr_local_lock_has_one_name(const struct zr_local_lock *lk);
/* Whether the path of the key leads to it, too: otherwise the folder was moved or deleted
 * meanwhile. Returns 0 or an errno. */
int zr_local_lock_is_at_key(const struct zr_local *l, const struct zr_local_lock *lk,
                            bool *yes);
/* Waits until no process has the lock file of key, if there is one. */
zarr_status zr_local_wait_for_writer(void *self, const char *key,
                                     const zarr_cancel *cancel, zarr_error *err);
/* Tries once to lock a descriptor. Returns 0, EAGAIN (another holder), or an errno (the
 * file system has no locks). */
int zr_local_lock_try(int fd);
/* Whether such an error of zr_local_lock_try() means that the file system gives no locks,
 * now or ever. */
bool zr_local_lock_is_missing(int os_code);
/* Opens the file `name` in dir. f->list: any number, which spreads files over lists.
 * Returns 0 or an errno. */
int zr_lock_file_open(struct zr_lock_file *f, int dir, const char *name, int flags);
/* Gives the lock back if it is held, and closes the file. Returns 0 or the errno of
 * close(). */
int zr_lock_file_close(struct zr_lock_file *f);
/* Writes to out which other processes have fd's lock file open. */
void zr_local_lock_holders(int fd, const char *name, char out[ZR_LOCK_HOLDER_BYTES]);
zarr_status zr_local_lock(void *self, const char *key, const zarr_cancel *cancel,
                          void **lock, zarr_error *err);
void zr_local_unlock(void *self, void *lock);

/* ---- local/device.c: values between files and devices ------------------ */

/* Fills l->device_types, or logs why chunks go through host memory. */
void zr_local_find_devices(struct zr_local *l, const char *url);
/* Reads n bytes at `offset` into op's memory, or writes op's value. */
zarr_status zr_local_read_device(const struct zr_local *l, zarr_store_op *op, int fd,
                                 uint64_t offset, uint64_t n, zarr_error *err);
zarr_status zr_local_write_device(const struct zr_local *l, zarr_store_op *op, int fd,
                                  zarr_error *err);

/* ---- local/write.c ----------------------------------------------------- */

/* Ends an operation whose value has another version. */
zarr_status zr_local_conflict(zarr_store_op *op, zarr_error *err);
/* PUT and COPY. */
void zr_local_put(struct zr_local *l, zarr_store_op *op, zarr_error *err);
zarr_status zr_local_begin_parts(void *self, const char *key, void *lock,
                                 const zarr_cancel *cancel, void **parts,
                                 zarr_error *err);
void zr_local_put_part(struct zr_local *l, zarr_store_op *op, zarr_error *err);
void zr_local_end_parts(void *self, const char *key, void *parts);
void zr_local_erase(struct zr_local *l, zarr_store_op *op, zarr_error *err);
/* These read and write what begin_parts() began; see ZARR_STORE_OP_IN_PARTS. */
void zr_local_get_parts(struct zr_local *l, zarr_store_op *op, zarr_error *err);
void zr_local_copy_part(struct zr_local *l, zarr_store_op *op, zarr_error *err);
void zr_local_append(struct zr_local *l, zarr_store_op *op, zarr_error *err);

/* ---- local/sync.c: makes files, names and the store durable ------------- */

/* Syncs the bytes of a file. Returns 0, also if the file system cannot do that (the log
 * has a warning then), or an errno. */
int zr_local_sync_file(struct zr_local *l, int fd);
/* Syncs the names in a directory, if its file system can. Returns 0 or an errno. */
int zr_local_dir_sync(const struct zr_local_dir *d);

/* Flushes the store if it cannot sync the folders. */
zarr_status zr_local_sync_names(void *self, const char *keys, size_t n, zarr_error *err);
void zr_local_flush_init(struct zr_local *l);
void zr_local_flush_deinit(struct zr_local *l);
zarr_status zr_local_flush(void *self, const zarr_cancel *cancel, zarr_error *err);

/* ---- local/walk.c, local/list.c: directories --------------------------- */

enum zr_local_event {
    ZR_LOCAL_FILE,
    ZR_LOCAL_DEBRIS,
    ZR_LOCAL_DIR,
    ZR_LOCAL_DIR_END
};
enum {
    ZR_LOCAL_WALK_FLAT = 1,     /* one level: directories are reported, not entered */
    ZR_LOCAL_WALK_NO_LINKS = 2, /* symlinks count as files and are not followed */
    ZR_LOCAL_WALK_DIRS_FIRST = 4,
    ZR_LOCAL_WALK_GO_ON = 8 /* what alone cannot be read fails the walk at its end */
};
/* Called for each entry; returns a status. *stop ends the walk. path is the full key,
 * valid during the call. is_linked: a symbolic link leads to it, or to a directory above
 * it. */
typedef zarr_status (*zr_local_visit_fn)(void *user, enum zr_local_event event,
                                         const char *path, bool is_linked, bool *stop,
                                         zarr_error *err);
/* Visits everything below prefix in the order of names. ZR_LOCAL_DIR comes before the
 * entries of a directory, ZR_LOCAL_DIR_END after them. A missing prefix counts as
 * empty. A link to a directory above it is IO with ELOOP. */
zarr_status zr_local_walk(struct zr_local *l, const char *prefix, uint32_t flags,
                          zr_local_visit_fn visit, void *user, const zarr_cancel *cancel,
                          zarr_error *err);
zarr_status zr_local_list(void *self, const char *prefix, uint32_t how,
                          zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                          zarr_error *err);
/* Removes a prefix that is itself a symlink; the target of the link stays. */
zarr_status zr_local_erase_link(void *self, const char *prefix, bool *was,
                                zarr_error *err);
zarr_status zr_local_erase_prefix(void *self, const char *prefix,
                                  const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_local_erase_rest(void *self, const char *prefix, const char *last,
                                const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_local_clean(void *self, const char *prefix, uint64_t min_age_s,
                           uint64_t *n_removed, const zarr_cancel *cancel,
                           zarr_error *err);

/* ---- local/same_folder.c ---- */
bool zr_local_same(void *self, void *other);
zarr_status zr_local_overlap(void *self, const char *a, void *other, const char *b,
                             bool *overlap, zarr_error *err);

#endif
