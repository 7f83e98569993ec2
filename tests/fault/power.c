/*
 * fault/power.c - see power.h. The functions below replace those of the C library and
 * write the log: names that come and go, bytes that are written, syncs. Then the machine
 * stops after each entry of the log. All changes of names up to there survive, as with a
 * journal, but only those bytes of a file that were synced. At a mark even unsynced names
 * are dropped.
 */
#include "power.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    N_OPS = 20000,
    N_FILES = 4000,
    TOP = 1, /* the number of the directory that was there before */
    NAME_BYTES = 96
};

enum kind {
    OP_NAME,   /* `name` in `dir` is `file` from now on; file 0: it is gone */
    OP_RENAME, /* `name` in `dir` becomes `other` in the same directory */
    OP_WRITE,
    OP_EMPTY,
    OP_SYNC,     /* of one file, or of the names in one directory */
    OP_SYNC_ALL, /* of the file system */
    OP_MARK      /* the durability promises that all of the above is on the disk */
};

struct op {
    enum kind kind;
    int dir, file;
    char name[NAME_BYTES], other[NAME_BYTES];
    uint64_t at;
    size_t n;
    unsigned char *bytes;
};

static struct {
    pthread_mutex_t mutex;
    bool on;
    const char *put, *erase; /* a mark comes before this name is written, or erased */
    struct op op[N_OPS];
    size_t n;
    ino_t inode[N_FILES]; /* of file 1, 2, ...; 0: the number has another file now */
    bool is_directory[N_FILES];
    int n_files;
} tape = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The C library's own function of this name; the cast is POSIX's way to say it. */
#define REAL(type, name, params)                                                         \
    static type(*real_##name) params;                                                    \
    if (!real_##name)                                                                    \
    *(void **)(&real_##name) = dlsym(RTLD_NEXT, #name)

/* ---- the log ------------------------------------------------------------- */

static struct op *add_op(enum kind kind)
{
    struct op *op = &tape.op[tape.n++];

    if (tape.n == N_OPS)
        abort();
    *op = (struct op){.kind = kind};
    return op;
}

static int find_file(ino_t inode)
{
    for (int i = 1; i <= tape.n_files; i++)
        if (tape.inode[i] == inode)
            return i;
    return 0;
}

/* Numbers of inodes are used again; then the old file is another one. */
static int new_file(ino_t inode)
{
    const int old = find_file(inode);

    if (old)
        tape.inode[old] = 0;
    if (++tape.n_files == N_FILES)
        abort();
    tape.inode[tape.n_files] = inode;
    tape.is_directory[tape.n_files] = false;
    return tape.n_files;
}

static int file_of_fd(int fd)
{
    struct stat st;
    int file;

    if (fstat(fd, &st) != 0)
        abort();
    file = find_file(st.st_ino);
    return file ? file : new_file(st.st_ino);
}

static void copy_name(char to[NAME_BYTES], const char *name)
{
    if (strlen(name) >= NAME_BYTES || strchr(name, '/'))
        abort();
    memcpy(to, name, strlen(name) + 1);
}

static bool begin_log(void)
{
    if (!tape.on)
        return false;
    pthread_mutex_lock(&tape.mutex);
    return true;
}

static void log_new_name(int dir, const char *name)
{
    struct stat st;
    struct op *op = add_op(OP_NAME);

    op->dir = file_of_fd(dir);
    copy_name(op->name, name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        abort();
    op->file = new_file(st.st_ino);
    tape.is_directory[op->file] = S_ISDIR(st.st_mode);
}

static void log_fd(enum kind kind, int fd)
{
    if (begin_log()) {
        add_op(kind)->file = file_of_fd(fd);
        pthread_mutex_unlock(&tape.mutex);
    }
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's own
 * names for them are reserved. */

int openat64(int dir, const char *path, int flags, ...)
{
    const int saved = errno;
    bool is_new = false;
    struct stat st;
    mode_t mode;
    va_list ap;
    int fd;

    REAL(int, openat64, (int, const char *, int, ...));
    va_start(ap, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (tape.on && flags & O_CREAT)
        is_new = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0;
    errno = saved;
    fd = real_openat64(dir, path, flags, mode);
    if (fd >= 0 && is_new && begin_log()) {
        log_new_name(dir, path);
        pthread_mutex_unlock(&tape.mutex);
    }
    return fd;
}

static void log_promise(const char *name, const char *wanted)
{
    if (wanted && strcmp(name, wanted) == 0 && begin_log()) {
        (void)add_op(OP_MARK);
        pthread_mutex_unlock(&tape.mutex);
    }
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    int st;

    REAL(int, mkdirat, (int, const char *, mode_t));
    st = real_mkdirat(dir, name, mode);
    if (st == 0 && begin_log()) {
        log_new_name(dir, name);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int mkdir(const char *path, mode_t mode)
{
    int st;

    REAL(int, mkdir, (const char *, mode_t));
    st = real_mkdir(path, mode);
    if (st == 0 && begin_log()) {
        const char *slash = strrchr(path, '/');
        char parent[512];
        int dir;

        snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
        dir = open(parent, O_RDONLY | O_DIRECTORY);
        if (dir < 0)
            abort();
        log_new_name(dir, slash + 1);
        close(dir);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int st;

    REAL(int, renameat, (int, const char *, int, const char *));
    log_promise(to, tape.put);
    st = real_renameat(from_dir, from, to_dir, to);
    if (st == 0 && begin_log()) {
        struct op *op = add_op(OP_RENAME);

        op->dir = file_of_fd(from_dir);
        if (file_of_fd(to_dir) != op->dir)
            abort();
        copy_name(op->name, from);
        copy_name(op->other, to);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int unlinkat(int dir, const char *name, int flags)
{
    int st;

    REAL(int, unlinkat, (int, const char *, int));
    log_promise(name, tape.erase);
    st = real_unlinkat(dir, name, flags);
    if (st == 0 && begin_log()) {
        struct op *op = add_op(OP_NAME);

        op->dir = file_of_fd(dir);
        copy_name(op->name, name);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int ftruncate64(int fd, off64_t n)
{
    REAL(int, ftruncate64, (int, off64_t));
    log_fd(OP_EMPTY, fd);
    return real_ftruncate64(fd, n);
}

/* No disk is waited for. */
int fsync(int fd)
{
    log_fd(OP_SYNC, fd);
    return 0;
}

int fdatasync(int fd)
{
    log_fd(OP_SYNC, fd);
    return 0;
}

int syncfs(int fd)
{
    log_fd(OP_SYNC_ALL, fd);
    return 0;
}

#ifdef __clang__ /* the C library declares it inline */
#    pragma clang diagnostic ignored "-Wstatic-in-inline"
#endif

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    REAL(ssize_t, pwrite64, (int, const void *, size_t, off64_t));
    if (begin_log()) {
        struct op *op = add_op(OP_WRITE);

        op->file = file_of_fd(fd);
        op->at = (uint64_t)at;
        op->n = n;
        op->bytes = malloc(n + 1);
        if (!op->bytes)
            abort();
        memcpy(op->bytes, from, n);
        pthread_mutex_unlock(&tape.mutex);
    }
    return real_pwrite64(fd, from, n, at);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

void power_begin(const char *top)
{
    struct stat st;

    if (stat(top, &st) != 0 || new_file(st.st_ino) != TOP)
        abort();
    tape.on = true;
}

void power_stop(void)
{
    tape.on = false;
}

void power_clear(void)
{
    power_stop();
    for (size_t i = 0; i < tape.n; i++)
        free(tape.op[i].bytes);
    tape.n = 0;
    tape.n_files = 0;
}

size_t power_entries(void)
{
    return tape.n;
}

void power_mark(void)
{
    (void)add_op(OP_MARK);
}

void power_mark_before(const char *put, const char *erase)
{
    tape.put = put;
    tape.erase = erase;
}

/* ---- the state after a loss of power ------------------------------------------ */

struct name {
    int dir, file; /* file 0: no such name */
    const char *name;
};
static struct {
    struct name name[N_FILES];
    size_t n;
} names;

static struct name *find_name(int dir, const char *name)
{
    for (size_t i = 0; i < names.n; i++)
        if (names.name[i].dir == dir && strcmp(names.name[i].name, name) == 0)
            return &names.name[i];
    if (names.n == N_FILES)
        abort();
    names.name[names.n] = (struct name){.dir = dir, .name = name};
    return &names.name[names.n++];
}

/* True if a sync after entry i, before entry `end`, made the names in the directory
 * durable. */
static bool name_is_synced(size_t i, size_t end)
{
    for (size_t k = i + 1; k < end; k++)
        if (tape.op[k].kind == OP_SYNC_ALL ||
            (tape.op[k].kind == OP_SYNC && tape.op[k].file == tape.op[i].dir))
            return true;
    return false;
}

static void replay_names(size_t end, bool only_synced)
{
    names.n = 0;
    for (size_t i = 0; i < end; i++) {
        const struct op *op = &tape.op[i];

        if ((op->kind != OP_NAME && op->kind != OP_RENAME) ||
            (only_synced && !name_is_synced(i, end)))
            continue;
        if (op->kind == OP_NAME) {
            find_name(op->dir, op->name)->file = op->file;
        } else {
            const int file = find_name(op->dir, op->name)->file;

            find_name(op->dir, op->name)->file = 0;
            find_name(op->dir, op->other)->file = file;
        }
    }
}

struct content {
    unsigned char bytes[8192];
    size_t n;
};

static void replay_bytes(int file, size_t end, struct content *out)
{
    out->n = 0;
    for (size_t i = 0; i < end; i++) {
        const struct op *op = &tape.op[i];

        if (op->file != file)
            continue;
        if (op->kind == OP_EMPTY)
            out->n = 0;
        if (op->kind != OP_WRITE)
            continue;
        if (op->at + op->n > sizeof out->bytes)
            abort();
        memcpy(out->bytes + op->at, op->bytes, op->n);
        if (op->at + op->n > out->n)
            out->n = op->at + op->n;
    }
}

/* Where the last sync of the file, before entry `end`, is in the log. */
static size_t last_sync(int file, size_t end)
{
    while (end > 0) {
        const struct op *op = &tape.op[--end];

        if (op->kind == OP_SYNC_ALL || (op->kind == OP_SYNC && op->file == file))
            return end;
    }
    return 0;
}

/* Objects are not changed any more once they have their key, so the whole value is all
 * that was ever written to the file. */
static bool is_whole(int file, size_t end)
{
    static struct content kept, whole;

    replay_bytes(file, last_sync(file, end), &kept);
    replay_bytes(file, tape.n, &whole);
    return kept.n == whole.n && memcmp(kept.bytes, whole.bytes, whole.n) == 0;
}

/* A file of a write that is under way. */
static bool is_working(const struct name *n)
{
    return strstr(n->name, ".__lock") || strstr(n->name, ".zarrc-tmp");
}

static bool is_value(const struct name *n)
{
    return n->file && !is_working(n) && !tape.is_directory[n->file];
}

static bool is_document(const struct name *n)
{
    static const char *const documents[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs",
                                            ".zmetadata"};

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++)
        if (strcmp(n->name, documents[i]) == 0)
            return true;
    return false;
}

/* The name in `names` that leads to a directory; NULL: none does. */
static const struct name *find_folder_name(int directory)
{
    for (size_t i = 0; i < names.n; i++)
        if (names.name[i].file == directory)
            return &names.name[i];
    return NULL;
}

/* True if each directory from the top down to this one still has its name. */
static bool is_reached(int directory)
{
    for (const struct name *n; directory != TOP; directory = n->dir) {
        n = find_folder_name(directory);
        if (!n)
            return false;
    }
    return true;
}

/* At a mark nothing may be missing, whichever names were synced. */
static int count_unsynced(size_t end)
{
    static struct name all[N_FILES];
    size_t n = 0;
    int lost = 0;

    replay_names(end, false);
    for (size_t i = 0; i < names.n; i++)
        if (!is_working(&names.name[i]) && is_reached(names.name[i].dir))
            all[n++] = names.name[i];
    replay_names(end, true);
    for (size_t i = 0; i < n; i++) {
        const struct name *now = find_name(all[i].dir, all[i].name);

        if (tape.is_directory[now->file] || tape.is_directory[all[i].file])
            continue; /* a directory without values below it is no key */
        lost += now->file != all[i].file ||
                (now->file && (!is_whole(now->file, end) || !is_reached(now->dir)));
    }
    return lost;
}

struct power_losses power_losses(void)
{
    struct power_losses sum = {0};

    for (size_t end = 1; end <= tape.n; end++) {
        replay_names(end, false);
        for (size_t i = 0; i < names.n; i++) {
            const struct name *n = &names.name[i];

            if (is_value(n) && !is_whole(n->file, end))
                ++*(is_document(n) ? &sum.documents : &sum.chunks);
        }
        if (tape.op[end - 1].kind == OP_MARK)
            sum.promised += count_unsynced(end);
    }
    return sum;
}

struct power_syncs power_syncs(size_t begin)
{
    struct power_syncs sum = {0};

    for (size_t i = begin; i < tape.n; i++) {
        sum.whole += tape.op[i].kind == OP_SYNC_ALL;
        if (tape.op[i].kind != OP_MARK)
            continue;
        sum.marks++;
        sum.lost += count_unsynced(i + 1);
    }
    return sum;
}
