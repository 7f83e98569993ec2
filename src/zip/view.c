/*
 * zip/view.c - the members as a reader sees them. A writer may change the table at any
 * time, so a reader copies the member that it reads, and how the archive was. If another
 * program has changed the archive meanwhile, a handle that may write reads the directory
 * again. In a session members stay where they are, and the session waits for readers
 * before it ends. Thread class: shared.
 */
#include "zip/zip_int.h"

#include "sched/sched.h"
#include "store/store.h"

/* The end record with the longest comment, and the zip64 records before it. */
enum {
    TAIL_BYTES = 65536 + 128
};

/* ---- one busy thread ---- */

static zarr_status wait_locked(struct zr_zip_store *z, const zarr_cancel *cancel,
                               zarr_error *err)
{
    zr_block_begin();
    (void)zr_cond_wait_until(&z->changed, &z->mutex,
                             cancel ? zr_now_ns() + ZR_ZIP_CANCEL_NS : UINT64_MAX);
    zr_block_end();
    return zr_cancel_check(cancel, err);
}

zarr_status zr_zip_busy_begin(struct zr_zip_store *z, const zarr_cancel *cancel,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&z->mutex);
    while (z->is_busy && st == ZARR_OK)
        st = wait_locked(z, cancel, err);
    if (st == ZARR_OK)
        z->is_busy = true;
    zr_mutex_unlock(&z->mutex);
    return st;
}

bool zr_zip_busy_try(struct zr_zip_store *z)
{
    bool yes;

    zr_mutex_lock(&z->mutex);
    yes = !z->is_busy;
    z->is_busy = true;
    zr_mutex_unlock(&z->mutex);
    return yes;
}

void zr_zip_busy_end(struct zr_zip_store *z)
{
    zr_mutex_lock(&z->mutex);
    z->is_busy = false;
    zr_cond_broadcast(&z->changed);
    zr_mutex_unlock(&z->mutex);
}

/* ---- the directory ---- */

static void log_ignored(const struct zr_zip_store *z, const struct zr_zip_table *t)
{
    if (t->n_ignored > 0)
        zr_log(&z->archive.env.log, ZARR_LOG_WARN,
               "%s: %zu members are ignored, because their names are no keys: \"%s\" is "
               "the first of them",
               z->archive.key, t->n_ignored,
               zr_zip_table_name(t, &t->member[t->ignored]));
}

static zarr_status read_directory(struct zr_zip_archive *a, struct zr_zip_table *t,
                                  bool is_new_allowed, zarr_error *err)
{
    uint8_t *tail = zr_malloc(a->env.alloc, TAIL_BYTES);
    zarr_error why = {0};
    size_t n = 0;
    zarr_status st = ZARR_OK;

    if (!tail)
        return zr_fail_memory(err, TAIL_BYTES);
    st = zr_zip_read_tail(a, tail, TAIL_BYTES, &n, &why);
    if (st == ZARR_ERR_NOT_FOUND && is_new_allowed)
        st = zr_zip_table_finish(t, err);
    else if (st == ZARR_OK)
        st = zr_zip_directory_read(a, t, tail, n, err);
    else
        st = zr_pass(err, st, &why);
    zr_free(a->env.alloc, tail);
    return st;
}

/* *has_changed: another program changed the archive meanwhile. */
static zarr_status load_once(struct zr_zip_store *z, const zarr_cancel *cancel,
                             bool *has_changed, zarr_error *err)
{
    struct zr_zip_archive a = z->archive;
    struct zr_zip_table t, old;
    zarr_status st = ZARR_OK;

    zr_zip_table_init(&t, &a.env);
    a.cancel = cancel;
    a.has_changed = has_changed;
    a.bytes = 0;
    a.version = (zarr_store_version){{0}};
    ZR_TRY(read_directory(&a, &t, z->is_new_allowed, err));
    log_ignored(z, &t);
    if (a.bytes > 0)
        z->is_new_allowed = false; /* an archive that disappears is no new one */
    zr_mutex_lock(&z->mutex);
    old = z->table;
    z->table = t;
    z->archive.bytes = a.bytes; /* the rest is read without the mutex */
    z->archive.version = a.version;
    z->members_end = t.directory_at;
    z->epoch++;
    z->is_stale = false;
    zr_mutex_unlock(&z->mutex);
    t = old;
out:
    zr_zip_table_deinit(&t);
    return st;
}

/* Bytes behind the last directory are those of a program at work if it has the lock, or
 * if the archive has changed by now. Otherwise they are what a killed one left. A handle
 * that only reads cannot ask for the lock. */
static void look_at_tail(struct zr_zip_store *z, const zarr_cancel *cancel,
                         bool *has_changed)
{
    const struct zr_zip_archive *a = &z->archive;
    bool is_current = true;
    void *lock = NULL;

    if (a->bytes <= z->table.end_at)
        return;
    if (z->can_write && !z->session.is_locked) {
        const zarr_status st = zr_store_lock_try(a->store, a->key, cancel, &lock, NULL);

        if (st == ZARR_ERR_CONFLICT)
            return;
        if (st == ZARR_OK && zr_zip_is_current(a, cancel, &is_current, NULL) == ZARR_OK)
            *has_changed = !is_current;
        zarr_store_unlock(a->store, lock);
    }
    if (!*has_changed)
        zr_log(&a->env.log, ZARR_LOG_WARN,
               "%s: no end record at the end of the archive: %san append was "
               "interrupted, or bytes were added. Its last complete directory, at byte "
               "%" PRIu64 ", is used",
               a->key, z->can_write ? "" : "a program is appending, or ",
               z->table.directory_at);
}

/* A program that writes all the time changes the archive during each try. So after the
 * first one, a handle that may write takes the lock, unless its session has it. */
zarr_status zr_zip_load(struct zr_zip_store *z, const zarr_cancel *cancel,
                        zarr_error *err)
{
    const bool was_locked = z->session.is_locked;
    bool has_changed = true;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    for (int i = 0; has_changed && i < ZR_ZIP_TRIES; i++) {
        if (i > 0 && z->can_write && !z->session.is_locked)
            ZR_TRY(zr_zip_session_lock(z, cancel, &why));
        has_changed = false;
        st = load_once(z, cancel, &has_changed, &why);
        if (st == ZARR_OK)
            look_at_tail(z, cancel, &has_changed);
    }
out:
    if (z->session.is_locked && !was_locked)
        zr_zip_session_unlock(z);
    return zr_pass(err, st, &why);
}

zarr_status zr_zip_is_current(const struct zr_zip_archive *a, const zarr_cancel *cancel,
                              bool *yes, zarr_error *err)
{
    const bool versions = a->caps.chunk_flags & ZARR_STORE_CAP_VERSIONS;
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = versions ? (uint32_t)ZARR_STORE_OP_WANT_VERSION : 0,
                        .key = a->key,
                        .cancel = cancel};
    zarr_error why = {0};
    const zarr_status st = zarr_store_run(a->store, &op, &why);

    if (st == ZARR_ERR_NOT_FOUND)
        *yes = a->bytes == 0;
    else
        *yes = op.object_bytes == a->bytes &&
               (!versions || zr_store_version_equal(&op.version, &a->version));
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &why);
}

zarr_status zr_zip_refresh_busy(struct zr_zip_store *z, bool look,
                                const zarr_cancel *cancel, zarr_error *err)
{
    bool is_current = true;
    zarr_status st = ZARR_OK;

    if (z->archive.in_session)
        return ZARR_OK;
    if (look && !z->is_stale)
        ZR_TRY(zr_zip_is_current(&z->archive, cancel, &is_current, err));
    if (!is_current && !z->can_write)
        st = zr_zip_fail_changed(&z->archive, &(struct zr_zip_caller){0}, err);
    else if (z->is_stale || !is_current)
        st = zr_zip_load(z, cancel, err);
out:
    if (st == ZARR_ERR_NOT_FOUND) /* of the archive: never let a member read as missing */
        st = zr_fail(err, ZARR_ERR_IO, "%s: the archive disappeared", z->archive.key);
    return st;
}

static zarr_status refresh(struct zr_zip_store *z, bool look, const zarr_cancel *cancel,
                           zarr_error *err)
{
    zarr_status st = zr_zip_busy_begin(z, cancel, err);

    if (st != ZARR_OK)
        return st;
    st = zr_zip_refresh_busy(z, look, cancel, err);
    zr_zip_busy_end(z);
    return st;
}

/* ---- views ---- */

static void fill_view_locked(struct zr_zip_store *z, const struct zr_zip_member *m,
                             struct zr_zip_view *v)
{
    v->archive = z->archive;
    v->m = *m;
    v->epoch = z->epoch;
    v->members_end = z->members_end;
    v->has_changed = false;
    z->n_readers += z->archive.in_session;
}

/* Waits until the members can be read, and returns with the mutex locked. Other handles
 * of the process write first what they have. */
static zarr_status lock_members(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&z->mutex);
    if (z->can_write && !z->archive.in_session) {
        zr_mutex_unlock(&z->mutex);
        st = zr_zip_writer_end_others(z, cancel, err);
        if (st != ZARR_OK)
            return st;
        zr_mutex_lock(&z->mutex);
    }
    while (z->is_stale || z->is_ending) {
        if (z->is_ending) {
            st = wait_locked(z, cancel, err);
        } else {
            zr_mutex_unlock(&z->mutex);
            st = refresh(z, false, cancel, err);
            zr_mutex_lock(&z->mutex);
        }
        if (st != ZARR_OK) {
            zr_mutex_unlock(&z->mutex);
            return st;
        }
    }
    return ZARR_OK;
}

static zarr_status look_up(struct zr_zip_store *z, const char *key,
                           const zarr_cancel *cancel, struct zr_zip_view *v,
                           bool *is_settled, zarr_error *err)
{
    const struct zr_zip_member *m = NULL;
    zarr_status st = lock_members(z, cancel, err);

    if (st != ZARR_OK)
        return st;
    m = zr_zip_table_find(&z->table, key);
    if (m)
        fill_view_locked(z, m, v);
    *is_settled = z->archive.in_session || (m && m->bytes > 0);
    zr_mutex_unlock(&z->mutex);
    return m ? ZARR_OK : zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", key);
}

zarr_status zr_zip_view_begin(struct zr_zip_store *z, const char *key,
                              const zarr_cancel *cancel, bool is_get,
                              struct zr_zip_view *v, zarr_error *err)
{
    bool is_settled = false;
    zarr_status st = ZARR_OK;

    if (is_get || !z->can_write) {
        st = look_up(z, key, cancel, v, &is_settled, err);
        if ((st != ZARR_OK && st != ZARR_ERR_NOT_FOUND) || is_settled || !z->can_write)
            return st;
    }
    /* nothing is read of the archive, so nothing else shows whether it has changed */
    st = refresh(z, true, cancel, err);
    return st == ZARR_OK ? look_up(z, key, cancel, v, &is_settled, err) : st;
}

void zr_zip_view_end(struct zr_zip_store *z, const struct zr_zip_view *v)
{
    if (!v->archive.in_session && !(v->has_changed && z->can_write))
        return;
    zr_mutex_lock(&z->mutex);
    if (v->archive.in_session) {
        if (--z->n_readers == 0)
            zr_cond_broadcast(&z->changed);
    } else if (v->epoch == z->epoch && !z->archive.in_session) {
        z->is_stale = true;
    }
    zr_mutex_unlock(&z->mutex);
}

void zr_zip_view_note(struct zr_zip_store *z, struct zr_zip_view *v, const char *key,
                      uint32_t lead)
{
    struct zr_zip_member *m = NULL;

    v->m.lead = lead;
    zr_mutex_lock(&z->mutex);
    m = v->epoch == z->epoch ? zr_zip_table_find(&z->table, key) : NULL;
    if (m && m->header_at == v->m.header_at)
        m->lead = lead;
    zr_mutex_unlock(&z->mutex);
}

void zr_zip_version(const struct zr_zip_member *m, zarr_store_version *out)
{
    zr_store_version_make(out, (const uint64_t[]){m->header_at, m->bytes, m->crc}, 3);
}

/* ---- listings ---- */

zarr_status zr_zip_list(void *self, const char *prefix, uint32_t how,
                        zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                        zarr_error *err)
{
    struct zr_zip_store *z = self;
    struct zr_zip_rows rows = {.n = 0};
    zarr_status st = ZARR_OK;

    if (how == ZARR_LIST_DEBRIS)
        return ZARR_OK;
    zr_str_init(&rows.text, z->archive.env.alloc);
    if (z->can_write)
        ZR_TRY(refresh(z, true, cancel, err));
    ZR_TRY(lock_members(z, cancel, err));
    st = zr_zip_table_list(&z->table, prefix, how != ZARR_LIST_DIRECTORY, &rows, err);
    zr_mutex_unlock(&z->mutex);
    for (size_t i = 0; st == ZARR_OK && i < rows.n; i++) {
        const struct zr_zip_row *row = &rows.row[i];
        const zarr_store_item item = {.key = rows.text.ptr + row->key_at,
                                      .bytes = row->bytes,
                                      .is_prefix = row->bytes == UINT64_MAX};

        if (fn(user, &item) != 0)
            break;
    }
out:
    zr_str_deinit(&rows.text);
    zr_free(z->archive.env.alloc, rows.row);
    return st;
}
