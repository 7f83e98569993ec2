/*
 * store/local/parts.c - values of the local store that are written in parts. With
 * ZARR_LOCKS_OS the parts go to the lock file of the key, which the caller holds or which
 * is locked from begin_parts() to end_parts(). So what a killed writer leaves is what any
 * writer leaves, and the next one uses it. With ZARR_LOCKS_NONE they go to a temporary
 * file.
 * Thread class: any thread; parts may be written by several at once.
 */
#include "store/local/write_int.h"

#include <string.h>

/* A value that is written in parts: into the lock file, else into a temporary file. */
struct local_parts {
    struct zr_local_lock *lock; /* the caller's, or `own`; NULL: there are no locks */
    struct zr_local_lock own;
    struct zr_local_temp temp;
    bool is_committed;
    zarr_store_version version; /* of the value */
    char key[];
};

/* Takes the lock, or makes the file. */
static zarr_status parts_open(struct zr_local *l, struct local_parts *p,
                              const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT, .key = p->key};
    struct zr_lock_wait wait = {.key = p->key, .cancel = cancel};
    struct zr_local_owners owners = {0};
    zarr_status st = ZARR_OK;
    int os_code = 0;

    if (!p->lock && l->locks == ZARR_LOCKS_NONE) {
        os_code = zr_local_temp_open(l, p->key, &p->temp);
        return os_code == 0 ? ZARR_OK
                            : zr_local_fail_write(l, &op, os_code, "cannot write", err);
    }
    if (!p->lock) {
        ZR_TRY(
            zr_local_lock_take(l, &p->own, &wait, ZR_LOCK_MAKES_FOLDERS, &os_code, err));
        p->lock = &p->own;
    }
    ZR_TRY(zr_local_check_lock(l, &op, p->lock, true, err));
    p->lock->is_dirty = true;
    owners.mine = p->lock->owner;
    zr_local_owner_look(&p->lock->dir, &owners);
    if (owners.replaces) /* before the first byte is in the file */
        zr_local_owner_set(l, &op, p->lock->file.fd, &owners);
out:
    return st;
}

void zr_local_end_parts(void *self, const char *key, void *parts)
{
    struct zr_local *l = self;
    struct local_parts *p = parts;

    ZR_UNUSED(key);
    if (p->lock == &p->own)
        (void)zr_local_lock_give(l, &p->own); /* removes what was not committed */
    zr_local_temp_close(&p->temp);
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

void zr_local_put_part(struct zr_local *l, zarr_store_op *op, zarr_error *err)
{
    const struct local_parts *p = op->parts;
    void *from = NULL;
    zarr_status st = check_parts(l, op, false, err);
    int os_code;

    if (st != ZARR_OK)
        return;
    st = zr_mem_host_ptr(l->memory, &op->mem, op->mem.bytes, &from, err);
    if (st != ZARR_OK) {
        zr_op_end(op, st, 0);
        return;
    }
    os_code = zr_local_write_all(p->lock ? p->lock->file.fd : p->temp.fd, from,
                                 op->offset, op->mem.bytes);
    op->done_bytes = os_code == 0 ? op->mem.bytes : 0;
    if (os_code == 0)
        zr_op_end(op, ZARR_OK, 0);
    else
        (void)zr_local_fail_write(l, op, os_code, "cannot write", err);
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
    if (!p->lock)
        ZR_TRY(zr_local_check_version(l, op, err));
    st = p->lock ? zr_local_put_into_lock(l, op, p->lock, from, err)
                 : zr_local_temp_put(l, op, &p->temp, from, err);
    p->is_committed = st == ZARR_OK;
    p->version = op->version;
out:
    return st;
}
