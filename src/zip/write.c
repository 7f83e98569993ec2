/*
 * zip/write.c - the operations that write. A value becomes a member without compression
 * at the end of the archive, and the table then names it. Old members stay as dead bytes.
 * Thread class: shared; one thread writes at a time.
 */
#include "zip/zip_int.h"

#include "codecs/codecs.h"

#include <string.h>

enum {
    TOGETHER_BYTES = 64 << 10 /* values that are copied behind their header */
};

/* ---- put ---- */

static zarr_status check_condition(struct zr_zip_store *z, const zarr_store_op *op,
                                   zarr_error *err)
{
    const struct zr_zip_member *m = zr_zip_table_find(&z->table, op->key);
    zarr_store_version v = {{0}};

    if (!(op->flags & ZARR_STORE_OP_IF_VERSION))
        return ZARR_OK;
    if (m)
        zr_zip_version(m, &v);
    if (zr_store_version_equal(&v, &op->version))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CONFLICT, "%s: another writer changed the value",
                   op->key);
}

/* Writes the local header and the value. m has its sizes and its CRC-32. */
static zarr_status write_member(struct zr_zip_store *z, const zarr_store_op *op,
                                const void *value, struct zr_zip_member *m,
                                zarr_error *err)
{
    const struct zr_zip_table *t = &z->table;
    const char *root = t->root > 0 ? t->names.ptr + t->first_at : "";
    const size_t n = strlen(op->key), most = ZR_ZIP_RECORD_MOST + t->root + n;
    const size_t together = m->bytes <= TOGETHER_BYTES ? (size_t)m->bytes : 0;
    uint8_t *head = zr_malloc(t->alloc, most + t->root + n + together);
    char *name = (char *)head + most + together;
    zarr_status st = ZARR_OK;

    if (!head)
        return zr_fail_memory(err, most + t->root + n + together);
    memcpy(name, root, t->root);
    memcpy(name + t->root, op->key, n);
    m->header_at = z->session.end;
    m->lead = (uint32_t)zr_zip_write_local(
        head, &(struct zr_zip_record){.name = name,
                                      .name_bytes = t->root + n,
                                      .bytes = m->bytes,
                                      .crc = m->crc,
                                      .time = z->session.time});
    if (together > 0)
        memcpy(head + m->lead, value, together);
    ZR_TRY(zr_zip_session_write(z, head, m->lead + together, op->cancel, err));
    if (m->bytes > together)
        st = zr_zip_session_write(z, value, m->bytes, op->cancel, err);
out:
    zr_free(t->alloc, head);
    return st;
}

static zarr_status put_busy(struct zr_zip_store *z, zarr_store_op *op, const void *value,
                            struct zr_zip_member *m, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_zip_session_begin(z, op->cancel, err));
    ZR_TRY(check_condition(z, op, err));
    zr_mutex_lock(&z->mutex);
    st = zr_zip_table_reserve(&z->table, op->key, err);
    zr_mutex_unlock(&z->mutex);
    ZR_TRY(st);
    ZR_TRY(write_member(z, op, value, m, err));
    zr_mutex_lock(&z->mutex);
    zr_zip_table_put(&z->table, op->key, m);
    z->members_end = z->session.end;
    zr_mutex_unlock(&z->mutex);
    z->session.is_dirty = true;
    z->session.member_bytes += m->lead + m->bytes;
    if (op->flags & (ZARR_STORE_OP_WANT_VERSION | ZARR_STORE_OP_IF_VERSION))
        zr_zip_version(m, &op->version);
    op->done_bytes = op->object_bytes = m->bytes;
    st = zr_zip_session_tick(z, err);
out:
    return st;
}

zarr_status zr_zip_put(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err)
{
    struct zr_zip_member m = {.bytes = op->mem.bytes, .stored_bytes = op->mem.bytes};
    const void *bytes = NULL;
    void *value = NULL;
    size_t n = 0;
    zarr_status st = ZARR_OK;

    if (!zr_fits(op->mem.bytes, &n))
        return zr_fail_memory(err, op->mem.bytes);
    if (n > 0)
        ZR_TRY(zr_mem_host_ptr(z->archive.env.memory, &op->mem, n, &value, err));
    bytes = value ? value : "";
    m.crc = zr_codecs_crc32(0, bytes, n);
    ZR_TRY(zr_zip_busy_begin(z, op->cancel, err));
    st = put_busy(z, op, bytes, &m, err);
    zr_zip_busy_end(z);
out:
    return st;
}

/* ---- erase ---- */

static void drop_member(struct zr_zip_store *z, struct zr_zip_member *m)
{
    zr_mutex_lock(&z->mutex);
    zr_zip_table_drop(&z->table, m);
    zr_mutex_unlock(&z->mutex);
    z->session.is_dirty = true;
    zr_zip_session_used(z);
}

zarr_status zr_zip_erase(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err)
{
    struct zr_zip_member *m = NULL;
    zarr_status st = zr_zip_busy_begin(z, op->cancel, err);

    if (st != ZARR_OK)
        return st;
    ZR_TRY(zr_zip_session_begin(z, op->cancel, err));
    m = zr_zip_table_find(&z->table, op->key);
    if (!m)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key);
    ZR_TRY(check_condition(z, op, err));
    drop_member(z, m);
    st = zr_zip_session_tick(z, err);
out:
    zr_zip_busy_end(z);
    return st;
}

zarr_status zr_zip_erase_prefix(void *self, const char *prefix, const zarr_cancel *cancel,
                                zarr_error *err)
{
    struct zr_zip_store *z = self;
    struct zr_zip_table *t = &z->table;
    zarr_status st = zr_zip_busy_begin(z, cancel, err);

    if (st != ZARR_OK)
        return st;
    ZR_TRY(zr_zip_session_begin(z, cancel, err));
    for (size_t i = 0; i < t->n; i++) {
        struct zr_zip_member *m = &t->member[i];

        if (m->flags & ZR_ZIP_HAS_KEY && zr_key_is_below(zr_zip_table_key(t, m), prefix))
            drop_member(z, m);
    }
out:
    zr_zip_busy_end(z);
    return st;
}

/* ---- flush and clean ---- */

/* Whether the archive is a whole hierarchy: a command that is at work has a job object,
 * and may flush before it ends. */
static bool is_hierarchy(const struct zr_zip_store *z)
{
    const struct zr_zip_table *t = &z->table;

    for (size_t i = 0; i < t->n; i++)
        if (t->member[i].flags & ZR_ZIP_HAS_KEY &&
            zr_ends_with(zr_zip_table_name(t, &t->member[i]), ZR_DOC_JOB))
            return false;
    return zr_zip_table_find(t, ZR_DOC_V3) != NULL;
}

zarr_status zr_zip_end_in_order(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err)
{
    zarr_repack_result unused = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_zip_session_end(z, err));
    if (!z->needs_order || (z->orders == ZR_ZIP_ORDERS_ONCE && !is_hierarchy(z)))
        return ZARR_OK;
    z->needs_order = false;
    if (z->orders == ZR_ZIP_ORDERS_ONCE)
        z->orders = ZR_ZIP_ORDERS_NEVER;
    st = zr_zip_repack_busy(z, &unused, cancel, err);
    z->needs_order = st != ZARR_OK;
    if (st != ZARR_OK)
        st = zr_prefix(
            err, st, "%s: all is written, but the members are not in the order of RFC-9",
            z->archive.key);
out:
    return st;
}

zarr_status zr_zip_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_store *z = self;
    zarr_status st = zr_zip_busy_begin(z, cancel, err);

    if (st != ZARR_OK)
        return st;
    st = zr_zip_end_in_order(z, cancel, err);
    zr_zip_busy_end(z);
    return st == ZARR_OK && z->can_write ? zarr_store_flush(z->archive.store, cancel, err)
                                         : st;
}

/* A session by itself uses or removes the draft of a killed writer. The tail that one
 * left behind the directory is cut off. */
zarr_status zr_zip_clean(void *self, const char *prefix, uint64_t min_age_s,
                         uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_store *z = self;
    zarr_status st = zr_zip_busy_begin(z, cancel, err);

    ZR_UNUSED(prefix);
    ZR_UNUSED(min_age_s); /* a tail has no writer: that would have the lock */
    if (st != ZARR_OK)
        return st;
    ZR_TRY(zr_zip_session_begin(z, cancel, err));
    if (z->session.is_in_place && z->session.end < z->archive.bytes &&
        !z->session.is_dirty) {
        ZR_TRY(zr_zip_session_write(z, "", 0, cancel, err));
        *n_removed = 1;
    }
    st = zr_zip_session_end(z, err);
out:
    zr_zip_busy_end(z);
    return st;
}
