/*
 * store/local/walk.c - visits everything below a prefix, one directory at a time and
 * without recursion. It reads a whole directory, sorts the names so that the order is
 * stable, and closes it, so depth costs no descriptors: only the
 * length of a path limits it. One text has the names of all
 * open levels; it grows and shrinks like a stack. Each directory is opened from the root
 * again, under the symlink policy. To follow a symlink to a directory above it would
 * never end, so this is an error. Symlinks to neighbours multiply the work, so the
 * directories behind symlinks have a limit.
 *
 * FIFOs, sockets, devices, and symlinks whose target is missing or outside of the root,
 * are reported as files: reading them gives an error. If they were left out, they would
 * look like chunks that were never written, and survive a deletion. Names that are not
 * UTF-8 are not keys and are skipped. Both are logged.
 *
 * A listing that meets a directory or an entry which alone cannot be read goes on with
 * the others, and fails at its end. A deletion fails at once.
 *
 * Thread class: one thread per walk.
 */
#include "store/local/local_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WALK_READ_BYTES = 32768
};

struct walk_entry {
    bool is_dir, is_link;
    size_t name; /* offset in names */
};
struct walk_level {
    size_t path_bytes;             /* length of this directory's path in walk.path */
    size_t names_begin, next, end; /* its entries that are not reported yet */
    dev_t device;
    ino_t inode;
    bool is_linked; /* a link leads here */
};
struct local_walk {
    struct zr_local *l;
    uint32_t flags;
    zr_local_visit_fn visit;
    void *user;
    bool stop;
    uint64_t n_seen, n_linked;
    uint64_t n_unread;     /* directories and entries that the walk passed */
    zarr_error read_error; /* why the first of them cannot be read */
    struct zr_str path, names;
    struct walk_entry *entries;
    size_t n_entries, cap_entries;
    struct walk_level *levels;
    size_t n_levels, cap_levels;
};

static void walk_path_cut(struct local_walk *w, size_t bytes)
{
    w->path.bytes = bytes;
    if (w->path.ptr)
        w->path.ptr[bytes] = '\0';
}

/* walk.path becomes <directory>/<name>. */
static zarr_status walk_path_set(struct local_walk *w, size_t dir_bytes, const char *name,
                                 zarr_error *err)
{
    walk_path_cut(w, dir_bytes);
    if (dir_bytes > 0)
        zr_str_putc(&w->path, '/');
    zr_str_puts(&w->path, name);
    return zr_str_status(&w->path, err);
}

/* Passes an entry that alone cannot be read. Otherwise returns the failure; so also of a
 * link that leads above itself: where there is one, there are many ways to it. */
static zarr_status walk_pass(struct local_walk *w, zarr_status st, const zarr_error *why,
                             zarr_error *err)
{
    if (!(w->flags & ZR_LOCAL_WALK_GO_ON) || !zr_store_blames_object(st, why) ||
        why->os_code == ELOOP)
        return zr_pass(err, st, why);
    if (w->n_unread++ == 0)
        w->read_error = *why;
    return ZARR_OK;
}

/* The failure of a walk that passed something. */
static zarr_status walk_end(const struct local_walk *w, zarr_error *err)
{
    const zarr_status st = zr_pass(err, w->read_error.code, &w->read_error);

    if (w->n_unread > 1)
        zr_prefix(err, st, "%" PRIu64 " entries cannot be read, this one first",
                  w->n_unread);
    return st;
}

/* ---- the type of an entry ---- */

enum walk_type {
    WALK_FILE,
    WALK_DIR,
    WALK_UNREADABLE, /* it exists, but cannot be read */
    WALK_GONE
};

static enum walk_type walk_type_of_mode(mode_t mode)
{
    return S_ISREG(mode) ? WALK_FILE : S_ISDIR(mode) ? WALK_DIR : WALK_UNREADABLE;
}

/* Whether the symlink at walk.path leads to a directory above it. Looks above the
 * beginning of the walk as well, because a caller may go down with one walk per level. */
static bool walk_leads_up(struct local_walk *w, const struct stat *to)
{
    struct stat above;
    bool found = false;

    for (size_t i = w->path.bytes; i-- > 0 && !found;) {
        int fd;

        if (i > 0 && w->path.ptr[i] != '/')
            continue;
        if (i > 0)
            w->path.ptr[i] = '\0';
        fd = zr_local_open(w->l, i > 0 ? w->path.ptr : ".", O_PATH | O_DIRECTORY, NULL);
        if (i > 0)
            w->path.ptr[i] = '/';
        found = fd >= 0 && fstat(fd, &above) == 0 && above.st_dev == to->st_dev &&
                above.st_ino == to->st_ino;
        if (fd >= 0)
            close(fd);
    }
    return found;
}

static zarr_status walk_ring(const char *path, zarr_error *err)
{
    return zr_fail_os(err, ZARR_ERR_IO, ELOOP,
                      "%s: this symbolic link leads to a directory above it", path);
}

/* What the link at walk.path leads to. */
static zarr_status walk_type_of_link(struct local_walk *w, enum walk_type *type,
                                     int *os_code, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct stat to;
    int fd = zr_local_open(w->l, zr_str_text(&w->path), O_PATH, NULL);

    if (fd >= 0 && fstat(fd, &to) == 0)
        *type = walk_type_of_mode(to.st_mode);
    else if (fd >= 0 || fd == -EIO)
        *os_code = fd >= 0 ? errno : -fd;
    if (fd >= 0)
        close(fd);
    if (*type == WALK_DIR && walk_leads_up(w, &to))
        st = walk_ring(zr_str_text(&w->path), err);
    return st;
}

/* For symlinks and for file systems that do not report types. walk.path is the entry's
 * path. */
static zarr_status walk_type_by_stat(struct local_walk *w, int dir, const char *name,
                                     enum walk_type *type, bool *is_link, zarr_error *err)
{
    zarr_status status = ZARR_OK;
    struct stat st;
    int os_code = 0;

    *type = WALK_UNREADABLE;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        *type = WALK_GONE;
        os_code = errno;
    } else if (!S_ISLNK(st.st_mode)) {
        *type = walk_type_of_mode(st.st_mode);
    } else if (w->flags & ZR_LOCAL_WALK_NO_LINKS) {
        *type = WALK_FILE;
    } else {
        *is_link = true;
        status = walk_type_of_link(w, type, &os_code, err);
    }
    if (status != ZARR_OK)
        return status;
    if (os_code == 0 || os_code == ENOENT) /* ENOENT: gone */
        return ZARR_OK;
    return zr_fail_os(err, ZARR_ERR_IO, os_code, "%s: cannot tell what it is",
                      zr_str_text(&w->path));
}

static zarr_status walk_type(struct local_walk *w, int dir, const char *name,
                             unsigned char d_type, enum walk_type *type, bool *is_link,
                             zarr_error *err)
{
    *is_link = false;
    *type = d_type == DT_REG ? WALK_FILE : d_type == DT_DIR ? WALK_DIR : WALK_UNREADABLE;
    if (d_type == DT_LNK || d_type == DT_UNKNOWN)
        return walk_type_by_stat(w, dir, name, type, is_link, err);
    return ZARR_OK;
}

/* ---- reading one directory ---- */

static zarr_status walk_add(struct local_walk *w, int dir, size_t dir_bytes,
                            const char *name, unsigned char d_type, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    enum walk_type type = WALK_GONE;
    zarr_error why = {0};
    size_t n = strlen(name);
    bool is_link = false;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ZARR_OK;
    ZR_TRY(walk_path_set(w, dir_bytes, name, err));
    st = walk_type(w, dir, name, d_type, &type, &is_link, &why);
    if (st != ZARR_OK || type == WALK_GONE) {
        st = walk_pass(w, st, &why, err);
        goto out;
    }
    /* what erases reads nothing */
    if (type == WALK_UNREADABLE && !(w->flags & ZR_LOCAL_WALK_NO_LINKS))
        zr_log(&w->l->log, ZARR_LOG_WARN, "listing: %s cannot be read", w->path.ptr);
    if (!zr_utf8_is_valid(name, n)) {
        zr_log(&w->l->log, ZARR_LOG_WARN, "listing: %s cannot be a key", w->path.ptr);
        goto out;
    }
    if (w->path.bytes >= PATH_MAX) /* left out, it would survive a deletion */
        ZR_FAIL(err, ZARR_ERR_LIMIT,
                "a path in a local store has at most %d bytes: %.100s...", PATH_MAX - 1,
                w->path.ptr);
    if (++w->n_seen > w->l->listing_keys)
        ZR_FAIL_LIMIT(err, "listing_keys", w->l->listing_keys,
                      "more than %" PRIu64 " keys in a listing", w->l->listing_keys);
    ZR_TRY(zr_grow(w->l->alloc, &w->entries, &w->cap_entries, w->n_entries + 1,
                   sizeof *w->entries, err));
    w->entries[w->n_entries++] =
        (struct walk_entry){type == WALK_DIR, is_link, w->names.bytes};
    zr_str_append(&w->names, name, n + 1);
    ZR_TRY(zr_str_status(&w->names, err));
out:
    return st;
}

static zarr_status walk_read(struct local_walk *w, int dir, size_t dir_bytes,
                             zarr_error *err)
{
    _Alignas(struct dirent64) char block[WALK_READ_BYTES];
    zarr_status st = ZARR_OK;
    ssize_t got;

    while ((got = getdents64(dir, block, sizeof block)) > 0 ||
           (got < 0 && errno == EINTR)) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *d = (const void *)(block + at);

            ZR_TRY(walk_add(w, dir, dir_bytes, d->d_name, d->d_type, err));
            at += d->d_reclen;
        }
    }
    if (got < 0 && errno != ENOENT) /* ENOENT: removed while we read it */
        st = zr_fail_os(err, ZARR_ERR_IO, errno, "%.*s: cannot list", (int)dir_bytes,
                        zr_str_text(&w->path));
out:
    walk_path_cut(w, dir_bytes);
    return st;
}

static int walk_compare(const void *a, const void *b, void *arg)
{
    const struct walk_entry *x = a, *y = b;
    const struct local_walk *w = arg;

    if ((w->flags & ZR_LOCAL_WALK_DIRS_FIRST) && x->is_dir != y->is_dir)
        return x->is_dir ? -1 : 1;
    return strcmp(w->names.ptr + x->name, w->names.ptr + y->name);
}

/* ---- levels ---- */

/* Fails with the last link on walk.path, which leads to a directory that is also above
 * it. */
static zarr_status walk_fail_ring(struct local_walk *w, zarr_error *err)
{
    char path[PATH_MAX], *slash = path;
    struct stat st;
    bool is_link = false;

    (void)snprintf(path, sizeof path, "%s", zr_str_text(&w->path));
    while (!is_link && slash) {
        const int fd = zr_local_open(w->l, path, O_PATH | O_NOFOLLOW, NULL);

        is_link = fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
        if (fd >= 0)
            close(fd);
        slash = strrchr(path, '/');
        if (!is_link && slash)
            *slash = '\0';
    }
    return walk_ring(path, err);
}

/* Links can make a few directories look like 2^30. */
static zarr_status walk_count_linked(struct local_walk *w, zarr_error *err)
{
    if (++w->n_linked <= w->l->linked_directories)
        return ZARR_OK;
    return zr_fail_limit(err, "linked_directories", w->l->linked_directories,
                         "%s: more than %" PRIu64
                         " directories behind symbolic links in one listing",
                         zr_str_text(&w->path), w->l->linked_directories);
}

static bool walk_is_ancestor(const struct local_walk *w, const struct stat *st)
{
    for (size_t i = 0; i < w->n_levels; i++)
        if (w->levels[i].device == st->st_dev && w->levels[i].inode == st->st_ino)
            return true;
    return false;
}

/* Reads the directory at walk.path and makes it the top level. A directory that is gone
 * counts as empty, but not one behind a symlink that leads nowhere. */
static zarr_status walk_enter(struct local_walk *w, bool is_linked, zarr_error *err)
{
    const char *path = w->path.bytes > 0 ? w->path.ptr : ".";
    struct walk_level *level;
    struct stat dir;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;
    bool via_link = false;
    int fd = zr_local_open(w->l, path, O_RDONLY | O_DIRECTORY, &via_link);

    if (fd == -ENOENT && via_link && zr_local_is_dangling(w->l, path))
        return zr_fail_os(err, ZARR_ERR_IO, ENOENT, "%s: " ZR_LOCAL_NOWHERE_TEXT, path);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return ZARR_OK;
    if (fd < 0)
        return zr_local_fail(w->l, err, -fd, path, "cannot list");
    if (fstat(fd, &dir) != 0) {
        st = zr_fail_os(err, ZARR_ERR_IO, errno, "%s: fstat", path);
        goto out;
    }
    if (walk_is_ancestor(w, &dir))
        ZR_TRY(walk_fail_ring(w, err));
    is_linked = is_linked || via_link;
    if (is_linked)
        ZR_TRY(walk_count_linked(w, err));
    ZR_TRY(zr_grow(w->l->alloc, &w->levels, &w->cap_levels, w->n_levels + 1,
                   sizeof *w->levels, err));
    level = &w->levels[w->n_levels++];
    *level = (struct walk_level){.path_bytes = w->path.bytes,
                                 .names_begin = w->names.bytes,
                                 .next = w->n_entries,
                                 .end = w->n_entries,
                                 .is_linked = is_linked,
                                 .device = dir.st_dev,
                                 .inode = dir.st_ino};
    st = walk_read(w, fd, w->path.bytes, &why);
    ZR_TRY(walk_pass(w, st, &why, err));
    level->end = w->n_entries;
    if (level->end > level->next)
        qsort_r(w->entries + level->next, level->end - level->next, sizeof *w->entries,
                walk_compare, w);
out:
    close(fd);
    return st;
}

static zarr_status walk_visit(struct local_walk *w, enum zr_local_event event,
                              bool is_linked, zarr_error *err)
{
    return w->visit(w->user, event, w->path.ptr, is_linked, &w->stop, err);
}

/* Removes the top level, all of whose entries are reported, and its names. Reports the
 * end of the directory unless the walk began there. */
static zarr_status walk_leave(struct local_walk *w, zarr_error *err)
{
    const struct walk_level *level = &w->levels[--w->n_levels];

    w->names.bytes = level->names_begin;
    w->n_entries = w->n_levels > 0 ? w->levels[w->n_levels - 1].end : 0;
    walk_path_cut(w, level->path_bytes);
    if (w->n_levels == 0)
        return ZARR_OK;
    return walk_visit(w, ZR_LOCAL_DIR_END, level->is_linked, err);
}

static zarr_status walk_tell(struct local_walk *w, const struct walk_entry *e,
                             zarr_error *err)
{
    const char *name = w->names.ptr + e->name;
    enum zr_local_kind kind = zr_local_name_kind(name, strlen(name));
    size_t n_levels = w->n_levels;
    bool is_linked = e->is_link || w->levels[n_levels - 1].is_linked;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(walk_path_set(w, w->levels[n_levels - 1].path_bytes, name, err));
    if (!e->is_dir) {
        st = walk_visit(w, kind == ZR_LOCAL_KEY ? ZR_LOCAL_FILE : ZR_LOCAL_DEBRIS,
                        is_linked, err);
        goto out;
    }
    if (kind != ZR_LOCAL_KEY) /* no key can be below */
        goto out;
    ZR_TRY(walk_visit(w, ZR_LOCAL_DIR, is_linked, err));
    if (w->stop || (w->flags & ZR_LOCAL_WALK_FLAT))
        goto out;
    st = walk_enter(w, is_linked, &why);
    ZR_TRY(walk_pass(w, st, &why, err));
    if (w->n_levels == n_levels) /* gone, or cannot be read */
        st = walk_visit(w, ZR_LOCAL_DIR_END, is_linked, err);
out:
    return st;
}

zarr_status zr_local_walk(struct zr_local *l, const char *prefix, uint32_t flags,
                          zr_local_visit_fn visit, void *user, const zarr_cancel *cancel,
                          zarr_error *err)
{
    struct local_walk w = {.l = l, .flags = flags, .visit = visit, .user = user};
    zarr_status st = ZARR_OK;

    zr_str_init(&w.path, l->alloc);
    zr_str_init(&w.names, l->alloc);
    if (*prefix != '\0')
        ZR_TRY(walk_path_set(&w, 0, prefix, err));
    ZR_TRY(walk_enter(&w, false, err));
    while (w.n_levels > 0 && !w.stop) {
        struct walk_level *top = &w.levels[w.n_levels - 1];

        ZR_TRY(zr_cancel_check(cancel, err));
        if (top->next == top->end) {
            ZR_TRY(walk_leave(&w, err));
        } else {
            struct walk_entry e = w.entries[top->next++];

            ZR_TRY(walk_tell(&w, &e, err));
        }
    }
    if (!w.stop)
        st = walk_end(&w, err);
out:
    zr_free(l->alloc, w.levels);
    zr_free(l->alloc, w.entries);
    zr_str_deinit(&w.names);
    zr_str_deinit(&w.path);
    return st;
}
