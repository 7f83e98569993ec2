/*
 * store/local/parts.c - values of the local store that are written in parts. With
 * ZARR_LOCKS_OS the parts go to the lock file of the key, which the caller holds or which
 * is locked from begin_parts() to end_parts(). So what a killed writer leaves is what any
 * writer leaves, and the next one uses it. With ZARR_LOCKS_NONE they go to a temporary
 * file. So the parts can be read before the commit: each is at its place in the file.
 * Thread class: any thread; parts may be written by several at once.
 */
#include "store/local/write_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A value that is written in parts: into the lock file, else into a temporary file. */
struct local_parts {
    struct {
        zr_mutex mutex;
        struct zr_part_list list;
    } locked;
    struct zr_local_lock *lock; /* the caller's, or `own`; NULL: there are no locks */
    struct zr_local_lock own;
    struct zr_local_temp temp;
    bool is_committed;
    zarr_store_version version; /* of the value */
    char key[];
};

/* Makes the file, with the mode of the value that it will replace. */
static zarr_status parts_make(struct zr_local *l, struct local_parts *p,
                              zarr_store_op *op, zarr_error *err)
{
    struct zr_local_owners owners = {0};
    struct stat st;
    const int os_code = zr_local_temp_open(l, p->key, &p->temp);

    if (os_code != 0)
        return zr_local_fail_write(l, op, os_code, "cannot write", err);
    if (fstat(p->temp.fd, &st) != 0)
        return zr_local_fail_write(l, op, errno, "cannot write", err);
    zr_local_owner_read(&owners.mine, &st);
    zr_local_owner_look(&p->temp.dir, &owners);
    if (owners.replaces) /* before the first byte is in the file */
        zr_local_owner_set(l, op, p->temp.fd, &owners);
    return ZARR_OK;
}

/* Takes the lock, or makes the file. */
static zarr_status parts_open(struct zr_local *l, struct local_parts *p,
                              const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT, .key = p->key};
    struct zr_lock_wait wait = {.key = p->key, .cancel = cancel};
    struct zr_local_owners owners = {0};
    int os_code = 0;

    if (!p->lock && l->locks == ZARR_LOCKS_NONE)
        return parts_make(l, p, &op, err);
    if (!p->lock) {
        ZR_CHECK(
            zr_local_lock_take(l, &p->own, &wait, ZR_LOCK_MAKES_FOLDERS, &os_code, err));
        p->lock = &p->own;
    }
    ZR_CHECK(zr_local_check_lock(l, &op, p->lock, true, err));
    p->lock->is_dirty = true;
    owners.mine = p->lock->owner;
    zr_local_owner_look(&p->lock->dir, &owners);
    if (owners.replaces) /* before the first byte is in the file */
        zr_local_owner_set(l, &op, p->lock->file.fd, &owners);
    return ZARR_OK;
}

void zr_local_end_parts(void *self, const char *key, void *parts)
{
    struct zr_local *l = self;
    struct local_parts *p = parts;

    ZR_UNUSED(key);
    if (p->lock == &p->own)
        (void)zr_local_lock_give(l, &p->own); /* removes what was not committed */
    zr_local_temp_close(&p->temp);
    zr_free(l->alloc, p->locked.list.part);
    zr_mutex_deinit(&p->locked.mutex);
    zr_free(l->alloc, p);
}

zarr_status zr_local_begin_parts(void *self, const char *key, void *lock,
                                 const zarr_cancel *cancel, void **parts, zarr_error *err)
{
    struct zr_local *l = self;
    const size_t n = strlen(key) + 1;
    struct local_parts *p = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_local_key_check(key, err));
    p = zr_calloc(l->alloc, 1, sizeof *p + n);
    if (!p)
        ZR_FAIL_MEMORY(err, sizeof *p + n);
    memcpy(p->key, key, n);
    zr_mutex_init(&p->locked.mutex);
    p->lock = lock;
    p->temp = (struct zr_local_temp){.dir = {-1, false, NULL}, .fd = -1};
    st = parts_open(l, p, cancel, err);
    if (st == ZARR_OK)
        *parts = p;
    else
        zr_local_end_parts(l, key, p);
out:
    return st;
}

static zarr_status fail_parts(zarr_store_op *op, const char *why, zarr_error *err)
{
    return zr_op_end(
        op, zr_fail(err, ZARR_ERR_INVALID, "%s: write with %s", op->key, why), 0);
}

/* look: also at the lock file. */
static zarr_status check_parts(const struct zr_local *l, zarr_store_op *op, bool look,
                               zarr_error *err)
{
    const struct local_parts *p = op->parts;

    if (strcmp(p->key, op->key) != 0)
        return fail_parts(op, "the parts of another key", err);
    if (p->lock)
        return zr_local_check_lock(l, op, p->lock, look, err);
    return p->temp.fd >= 0 ? ZARR_OK
                           : fail_parts(op, "parts that an earlier write used up", err);
}

static int parts_fd(const struct local_parts *p)
{
    return p->lock ? p->lock->file.fd : p->temp.fd;
}

/* Notes that the part has `bytes` bytes, and will have `wanted`. */
static zarr_status note_part(const struct zr_local *l, const zarr_store_op *op,
                             uint64_t bytes, uint64_t wanted, zarr_error *err)
{
    const struct zr_value_part part = {
        .number = op->part, .offset = op->offset, .bytes = bytes, .wanted = wanted};
    struct local_parts *p = op->parts;
    void *old = NULL;
    zarr_status st;

    zr_mutex_lock(&p->locked.mutex);
    st = zr_part_list_put(&p->locked.list, l->alloc, &part, &old, err);
    zr_mutex_unlock(&p->locked.mutex);
    return st;
}

static bool has_bytes(struct local_parts *p, uint64_t at, uint64_t bytes)
{
    bool yes;

    zr_mutex_lock(&p->locked.mutex);
    yes = zr_part_list_covers(&p->locked.list, at, bytes);
    zr_mutex_unlock(&p->locked.mutex);
    return yes;
}

/* Ends an operation that wrote a part of n bytes, or failed with an errno. */
static void part_end(const struct zr_local *l, zarr_store_op *op, int os_code, uint64_t n,
                     zarr_error *err)
{
    op->done_bytes = os_code == 0 ? n : 0;
    if (os_code == 0)
        zr_op_end(op, note_part(l, op, n, n, err), 0);
    else
        (void)zr_local_fail_write(l, op, os_code, "cannot write", err);
}

void zr_local_put_part(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    const struct local_parts *p = op->parts;
    void *from = NULL;
    zarr_status st = check_parts(l, op, false, err);
    int os_code;

    if (st != ZARR_OK)
        return;
    st = zr_mem_host_ptr(l->memory, &op->mem, op->mem.bytes, &from, err);
    if (st == ZARR_OK)
        st = note_part(l, op, 0, op->mem.bytes, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return;
    }
    os_code = zr_local_write_all(parts_fd(p), from, op->offset, op->mem.bytes);
    part_end(l, op, os_code, op->mem.bytes, err);
}

void zr_local_copy_part(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    struct zr_local_source from = {.fd = -1};
    uint64_t end;
    int os_code;
    zarr_status st;

    if (check_parts(l, op, false, err) != ZARR_OK ||
        zr_local_open_source(op, &from, err) != ZARR_OK)
        goto out;
    if (!zr_add(op->offset, from.bytes, &end) || end > INT64_MAX) {
        (void)fail_parts(op, "a part that ends too far", err);
        goto out;
    }
    st = note_part(l, op, 0, from.bytes, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        goto out;
    }
    os_code =
        zr_local_copy_bytes(l, from.fd, parts_fd(op->parts), op->offset, from.bytes);
    part_end(l, op, os_code, from.bytes, err);
    op->object_bytes = from.bytes;
out:
    if (from.fd >= 0)
        close(from.fd);
}

void zr_local_get_parts(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    const uint64_t n = ZR_MIN(op->length, op->mem.bytes);
    uint64_t done = 0;
    void *to = NULL;
    zarr_status st = check_parts(l, op, false, err);

    if (st != ZARR_OK)
        return;
    st = zr_mem_host_ptr(l->memory, &op->mem, n, &to, err);
    if (st == ZARR_OK && !has_bytes(op->parts, op->offset, n))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "%s: the parts have no %" PRIu64 " bytes at %" PRIu64, op->key, n,
                     op->offset);
    while (st == ZARR_OK && done < n) {
        const ssize_t got = pread(parts_fd(op->parts), (unsigned char *)to + done,
                                  (size_t)ZR_MIN(n - done, (uint64_t)SSIZE_MAX),
                                  (off_t)(op->offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            (void)zr_local_fail_write(l, op, errno, "cannot read its parts", err);
            return;
        }
        if (got == 0)
            st = zr_fail(err, ZARR_ERR_IO, "%s: another program cut its parts", op->key);
        done += (uint64_t)got;
    }
    op->done_bytes = st == ZARR_OK ? n : 0;
    zr_op_end(op, st, 0);
}

/* Gives a key the value that is in parts. A second commit finds that it is done. */
zarr_status zr_local_put_parts(struct zr_local *l, zarr_store_op *op,
                               const struct zr_local_source *from, zarr_error *err)
{
    struct local_parts *p = op->parts;
    const void *lock = op->flags & ZARR_STORE_OP_LOCKED ? op->lock : &p->own;
    zarr_status st = ZARR_OK;

    if (p->is_committed) {
        op->version = p->version;
        return zr_op_end(op, ZARR_OK, 0);
    }
    if (p->lock && p->lock != lock)
        return fail_parts(op, "another lock than its parts", err);
    ZR_TRY(check_parts(l, op, true, err));
    st = zr_part_list_check(&p->locked.list, op->key, op->length, err);
    if (st != ZARR_OK)
        return zr_op_end(op, st, 0);
    if (!p->lock)
        ZR_TRY(zr_local_check_version(l, op, err));
    st = p->lock ? zr_local_put_into_lock(l, op, p->lock, from, err)
                 : zr_local_temp_put(l, op, &p->temp, from, err);
    p->is_committed = st == ZARR_OK;
    p->version = op->version;
out:
    return st;
}
