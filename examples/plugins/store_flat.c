/*
 * store_flat.c - a store that can be written: "flat:FOLDER" keeps each value in one file
 * of FOLDER, which has no folders below it. A slash in a key becomes "%2F" in the name of
 * the file, and "%" becomes "%25".
 *
 *     cc -shared -fPIC -o store_flat.so store_flat.c
 *     zarrc --plugin=./store_flat.so create flat:///data/x --shape=10 --dtype=int8
 *
 * It shows ranges and suffixes, values that are replaced in one step, errors with their
 * errno, and listings. The library emulates locks, erasing a prefix, and moving.
 */
#define _POSIX_C_SOURCE 200809L

#include <zarrc/plugin/plugin.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 256 /* of a file, with the NUL */

static const char temporary[] = ".tmp-";
static const zarr_host *host;

struct flat_store {
    zarr_context *ctx; /* borrowed: the library's store holds it */
    int folder;
};

/* Writes the name of a key's file. Returns 0 if it is too long. */
static int name_encode(const char *key, char name[NAME_BYTES])
{
    size_t n = 0;

    for (; *key && n + 4 < NAME_BYTES; key++) {
        if (*key == '/' || *key == '%') {
            memcpy(name + n, *key == '/' ? "%2F" : "%25", 3);
            n += 3;
        } else {
            name[n++] = *key;
        }
    }
    name[n] = '\0';
    return *key == '\0';
}

static void name_decode(const char *name, char key[NAME_BYTES])
{
    size_t n = 0;

    while (*name && n + 1 < NAME_BYTES) {
        const int escaped = name[0] == '%' && name[1] && name[2];

        key[n++] = (char)(!escaped ? *name : name[2] == 'F' ? '/' : '%');
        name += escaped ? 3 : 1;
    }
    key[n] = '\0';
}

static void op_fail(zarr_store_op *op, zarr_error *err)
{
    op->os_code = errno;
    if (errno == ENOENT && op->verb != ZARR_STORE_PUT)
        op->status = host->fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key);
    else
        op->status = host->fail_os(err, ZARR_ERR_IO, errno, "%s", op->key);
}

/* ---- one operation ---- */

static void op_get(struct flat_store *s, zarr_store_op *op, const char *name,
                   zarr_error *err)
{
    unsigned char *to = (unsigned char *)op->mem.handle;
    const int fd = openat(s->folder, name, O_RDONLY | O_CLOEXEC);
    uint64_t size, offset = op->offset, want = op->length;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        op_fail(op, err);
        if (fd >= 0)
            close(fd);
        return;
    }
    op->object_bytes = size = (uint64_t)st.st_size;
    if (op->verb == ZARR_STORE_GET) {
        if (offset == ZARR_STORE_SUFFIX) /* the last bytes, or all if there are fewer */
            offset = size - (want < size ? want : size);
        if (offset > size)
            offset = size;
        if (want > size - offset)
            want = size - offset;
        if (want > op->mem.bytes)
            want = op->mem.bytes;
        while (op->done_bytes < want) {
            const ssize_t got =
                pread(fd, to + op->mem.offset + op->done_bytes,
                      (size_t)(want - op->done_bytes), (off_t)(offset + op->done_bytes));

            if (got <= 0) {
                errno = got < 0 ? errno : EIO; /* cut off meanwhile */
                op_fail(op, err);
                close(fd);
                return;
            }
            op->done_bytes += (uint64_t)got;
        }
    }
    close(fd);
    op->status = ZARR_OK;
}

static int write_all(int fd, const unsigned char *from, uint64_t n)
{
    while (n > 0) {
        const ssize_t put = write(fd, from, n < (1u << 30) ? (size_t)n : 1u << 30);

        if (put < 0)
            return -1;
        from += put;
        n -= (uint64_t)put;
    }
    return 0;
}

/* A new value is written to a file of its own, which then gets the name of the key. */
static void op_put(struct flat_store *s, zarr_store_op *op, const char *name,
                   zarr_error *err)
{
    static unsigned counter;
    const unsigned char *from = (const unsigned char *)op->mem.handle;
    char other[NAME_BYTES];
    int fd = -1, failed;

    do {
        snprintf(other, sizeof other, "%s%ld-%u", temporary, (long)getpid(),
                 __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
        fd = openat(s->folder, other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST); /* of a process that was killed */
    if (fd < 0) {
        op_fail(op, err);
        return;
    }
    failed = write_all(fd, from ? from + op->mem.offset : from, op->mem.bytes) != 0;
    failed =
        (close(fd) != 0 || failed) || renameat(s->folder, other, s->folder, name) != 0;
    if (failed) {
        op_fail(op, err);
        unlinkat(s->folder, other, 0);
        return;
    }
    op->done_bytes = op->object_bytes = op->mem.bytes;
    op->status = ZARR_OK;
}

static void store_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct flat_store *s = (struct flat_store *)self;
    char name[NAME_BYTES];

    if (!name_encode(op->key, name) || strncmp(name, temporary, strlen(temporary)) == 0)
        op->status = host->fail(err, ZARR_ERR_INVALID, "%s: no name for a file", op->key);
    else if (op->verb == ZARR_STORE_PUT)
        op_put(s, op, name, err);
    else if (op->verb != ZARR_STORE_ERASE)
        op_get(s, op, name, err);
    else if (unlinkat(s->folder, name, 0) == 0)
        op->status = ZARR_OK;
    else
        op_fail(op, err);
}

/* ---- the store ---- */

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_value(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
           strncmp(entry->d_name, temporary, strlen(temporary)) != 0;
}

/* One row for each key, or each name one level below the prefix, which are sorted. */
static zarr_status store_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    const struct flat_store *s = (const struct flat_store *)self;
    const size_t skip = *prefix ? strlen(prefix) + 1 : 0;
    char key[NAME_BYTES], last[NAME_BYTES] = "", path[64];
    struct dirent **names = NULL;
    int n, stop = how == ZARR_LIST_DEBRIS;

    (void)cancel;
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->folder);
    n = scandir(path, &names, is_value, compare_names);
    if (n < 0)
        return host->fail_os(err, ZARR_ERR_IO, errno, "%s: cannot list", prefix);
    for (int i = 0; i < n; i++) {
        zarr_store_item item = {.key = key, .bytes = UINT64_MAX};
        char *slash;

        name_decode(names[i]->d_name, key);
        free(names[i]);
        if (stop ||
            (skip && (strncmp(key, prefix, skip - 1) != 0 || key[skip - 1] != '/')))
            continue;
        slash = how == ZARR_LIST_DIRECTORY ? strchr(key + skip, '/') : NULL;
        if (slash) {
            *slash = '\0';
            item.is_prefix = 1;
            if (strcmp(key, last) == 0)
                continue;
            memcpy(last, key, sizeof last);
        }
        stop = fn(user, &item) != 0;
    }
    free(names);
    return ZARR_OK;
}

static void store_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT |
                 ZARR_STORE_CAP_FAST_GET;
}

static zarr_status store_open(void **self, zarr_context *ctx, const char *url,
                              const zarr_store_options *opts, const zarr_cancel *cancel,
                              zarr_error *err)
{
    struct flat_store *s = (struct flat_store *)host->alloc(ctx, sizeof *s);

    (void)cancel;
    if (!s)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "flat: no memory");
    url += strlen("flat:");
    url += strncmp(url, "//", 2) == 0 ? 2 : 0;
    if (opts && (opts->flags & ZARR_STORE_CREATE))
        (void)mkdir(url, 0777); /* open() tells what is wrong */
    s->ctx = ctx;
    s->folder = open(url, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0) {
        host->fail_os(err, errno == ENOENT ? ZARR_ERR_NOT_FOUND : ZARR_ERR_IO, errno,
                      "%s", url);
        host->free(ctx, s);
        return err ? err->code : ZARR_ERR_IO;
    }
    *self = s;
    return ZARR_OK;
}

static void store_close(void *self)
{
    struct flat_store *s = (struct flat_store *)self;

    close(s->folder);
    host->free(s->ctx, s);
}

static const zarr_store_vtable store = {
    .struct_size = sizeof store,
    .name = "flat",
    .open = store_open,
    .caps = store_caps,
    .run = store_run,
    .list = store_list,
    .close = store_close,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    return host->register_store(ctx, &store, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-flat",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
