/*
 * zip/session.c - the time in which a handle writes an archive: from its first write to
 * the flush, the close, or a moment without a write. The handle holds the lock of the
 * archive's key in the store below, so other programs wait.
 *
 * In place: members are appended behind the last complete directory, which stays until a
 * new one is complete behind them. So after a kill the old directory is found, and what
 * the killed writer appended is cut off by the next one. The store below is flushed
 * before a directory is written: a directory on the disk names only members on the disk.
 *
 * In a store that reads no parts, a new archive is spooled to a file (spool.c).
 *
 * A draft: a new archive, and one that other programs shall see old or new, is written in
 * parts, of which the first may be a copy of the old archive.
 * Thread class: each function is called by the busy thread.
 */
#include "zip/zip_int.h"

#include "sched/sched.h"

#include <errno.h>
#include <time.h>

#define IDLE_NS UINT64_C(500000000) /* without a write, until a session ends */
/* Without the lock, other programs that wait get their turn: they look more often. */
#define TURN_PAUSE_NS 20000000

enum {
    DUE_FACTOR = 32, /* for a directory that takes long, or is long */
    DUE_MEMBERS = 4,
    IDLE_NS_PER_BYTE = 1000 /* each end costs a directory of so many bytes */
};

/* ---- begin ---- */

static zarr_status fail_session_lock(const struct zr_zip_store *z, zarr_status st,
                                     const zarr_error *why, zarr_error *err)
{
    st = zr_pass(err, st, why);
    if (why->os_code != ETIMEDOUT)
        return st;
    return zr_prefix(err, st, "%s: another program writes this archive", z->archive.key);
}

static zarr_status check_current(struct zr_zip_store *z, const zarr_cancel *cancel,
                                 zarr_error *err)
{
    bool is_current = false;
    zarr_status st = ZARR_OK;

    if (!z->is_stale)
        ZR_TRY(zr_zip_is_current(&z->archive, cancel, &is_current, err));
    if (!is_current)
        st = zr_zip_load(z, cancel, err);
    if (st == ZARR_ERR_NOT_FOUND)
        st = zr_fail(err, ZARR_ERR_IO, "%s: the archive disappeared", z->archive.key);
out:
    return st;
}

/* About how long the directory is. */
static uint64_t directory_bytes(const struct zr_zip_store *z)
{
    return z->table.n * ZR_ZIP_CENTRAL_BYTES + z->table.names.bytes;
}

/* A spooled archive cannot be changed once it is there: only a flush or the close ends
 * its session. */
void zr_zip_session_used(struct zr_zip_store *z)
{
    atomic_store(&z->idle_at_ns,
                 z->is_spooled
                     ? UINT64_MAX
                     : zr_now_ns() + IDLE_NS + directory_bytes(z) * IDLE_NS_PER_BYTE);
}

/* After a kill the old directory is searched. It cannot be told from that of an archive
 * in a value if there are bytes before this archive. */
static bool can_append(const struct zr_zip_store *z)
{
    return !z->always_copies && z->table.base == 0 &&
           z->archive.caps.chunk_flags & ZARR_STORE_CAP_APPEND;
}

static void open_session(struct zr_zip_store *z)
{
    struct zr_zip_session *s = &z->session;

    s->is_in_place = z->archive.bytes > 0 && can_append(z);
    s->end = s->is_in_place ? z->table.end_at : z->archive.bytes;
    s->n_parts = s->member_bytes = s->cost_ns = s->copy_ns = 0;
    s->is_dirty = false;
    s->time = zr_zip_time();
    s->written_ns = zr_now_ns();
    z->needs_order = z->needs_order || z->orders != ZR_ZIP_ORDERS_NEVER;
    zr_zip_session_used(z);
    zr_mutex_lock(&z->mutex);
    z->archive.in_session = true;
    zr_mutex_unlock(&z->mutex);
}

/* A store does not tell who waits for a lock, and gives it to those who ask first. So a
 * handle that has had it for long, with breaks too short for others, pauses. */
static void give_turn(struct zr_zip_store *z)
{
    const struct timespec pause = {0, TURN_PAUSE_NS};
    const uint64_t now = zr_now_ns();
    const bool has_paused = now - z->unlocked_ns >= TURN_PAUSE_NS;

    if (!has_paused && now - z->turn_began_ns < z->turn_ns)
        return;
    if (!has_paused) {
        zr_block_begin();
        nanosleep(&pause, NULL);
        zr_block_end();
    }
    z->turn_began_ns = zr_now_ns();
}

zarr_status zr_zip_session_lock(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err)
{
    zarr_error why = {0};
    uint64_t asked_ns = 0;
    zarr_status st = ZARR_OK;

    give_turn(z);
    ZR_TRY(zr_zip_writer_claim(z, cancel, err));
    asked_ns = zr_now_ns();
    st =
        zarr_store_lock(&z->session.lock, z->archive.store, z->archive.key, cancel, &why);
    z->session.is_locked = st == ZARR_OK;
    if (zr_now_ns() - asked_ns >=
        TURN_PAUSE_NS) /* that was the turn of another program */
        z->turn_began_ns = zr_now_ns();
    if (st != ZARR_OK) {
        zr_zip_writer_release(z);
        st = fail_session_lock(z, st, &why, err);
    }
out:
    return st;
}

void zr_zip_session_unlock(struct zr_zip_store *z)
{
    zarr_store_unlock(z->archive.store, z->session.lock);
    z->session.lock = NULL;
    z->session.is_locked = false;
    z->unlocked_ns = zr_now_ns();
    zr_zip_writer_release(z);
}

zarr_status zr_zip_session_begin(struct zr_zip_store *z, const zarr_cancel *cancel,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (z->archive.in_session)
        return ZARR_OK;
    if (z->has_forked)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: this process was forked while its parent wrote the archive: "
                       "flush the store before the fork, or open it again",
                       z->archive.key);
    ZR_TRY(zr_zip_session_lock(z, cancel, err));
    st = check_current(z, cancel, err);
    if (st == ZARR_OK)
        open_session(z);
    else
        zr_zip_session_unlock(z);
out:
    return st;
}

/* Begins a draft: parts of the store below, or a file. */
static zarr_status begin_parts(struct zr_zip_store *z, const zarr_cancel *cancel,
                               zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    zarr_status st = ZARR_OK;

    if (!z->is_spooled)
        return zarr_store_begin_parts(&s->parts, z->archive.store, z->archive.key,
                                      s->lock, cancel, err);
    zr_zip_spool_close(&z->spool);
    st = zr_zip_spool_open(&z->spool, z->temp_folder, err);
    if (st == ZARR_OK)
        s->parts = &z->spool;
    return st;
}

/* The file has the whole archive, if this handle has written it. The draft goes on in it.
 */
static zarr_status go_on_in_spool(struct zr_zip_store *z, zarr_error *err)
{
    struct zr_zip_spool *spool = &z->spool;

    if (!spool->is_open || spool->bytes != z->archive.bytes ||
        !zr_store_version_equal(&spool->version, &z->archive.version))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: an archive on this store cannot be changed. Copy it to a "
                       "file, change that, and copy it back",
                       z->archive.key);
    spool->bytes = 0;
    z->session.parts = spool;
    z->session.n_parts = 1;
    return ZARR_OK;
}

static void end_parts(struct zr_zip_store *z)
{
    struct zr_zip_session *s = &z->session;

    if (s->parts != &z->spool)
        zarr_store_end_parts(z->archive.store, z->archive.key, s->parts);
    else if (z->spool.bytes == 0) /* it was not committed */
        zr_zip_spool_close(&z->spool);
    s->parts = NULL;
}

zarr_status zr_zip_session_begin_anew(struct zr_zip_store *z, const zarr_cancel *cancel,
                                      zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    const zarr_status st = begin_parts(z, cancel, err);

    if (st == ZARR_OK) {
        s->is_in_place = false;
        s->end = 0;
    }
    return st;
}

/* ---- bytes ---- */

/* The old archive becomes the first part of a draft, with its directory, which is dead
 * then. */
static zarr_status copy_archive(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    zarr_store_source from = {.key = z->archive.key, .version = z->archive.version};
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .flags = ZARR_STORE_OP_IN_PARTS,
                        .key = z->archive.key,
                        .cancel = cancel,
                        .source = &from,
                        .parts = s->parts,
                        .part = 1};
    const uint64_t begun_ns = zr_now_ns();

    if (z->archive.bytes == 0)
        return ZARR_OK;
    ZR_CHECK(zarr_store_run(z->archive.store, &op, err));
    s->n_parts = 1;
    s->copy_ns = zr_now_ns() - begun_ns;
    return ZARR_OK;
}

static zarr_status begin_draft(struct zr_zip_store *z, const zarr_cancel *cancel,
                               zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    zarr_status st = ZARR_OK;

    if (s->is_in_place || s->parts)
        return ZARR_OK;
    if (z->is_spooled && z->archive.bytes > 0) {
        ZR_TRY(go_on_in_spool(z, err));
    } else {
        ZR_TRY(begin_parts(z, cancel, err));
        st = copy_archive(z, cancel, err);
    }
    if (st != ZARR_OK) {
        end_parts(z);
        return st;
    }
    zr_mutex_lock(&z->mutex);
    z->archive.parts = s->parts;
    z->archive.spool = z->is_spooled ? &z->spool : NULL;
    zr_mutex_unlock(&z->mutex);
out:
    return st;
}

/* Drops a session that can never end well. */
static zarr_status fail_conflict(struct zr_zip_store *z, zarr_error *err)
{
    zr_zip_session_drop(z);
    return zr_fail(err, ZARR_ERR_IO,
                   "%s: a program that takes no locks changed the archive: what was "
                   "written after the last flush is lost",
                   z->archive.key);
}

/* An append gave the archive a version. */
static void set_version(struct zr_zip_store *z, const zarr_store_version *version)
{
    zr_mutex_lock(&z->mutex);
    z->archive.version = *version;
    zr_mutex_unlock(&z->mutex);
}

static zarr_status read_version(const struct zr_zip_store *z, zarr_store_version *out)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = ZARR_STORE_OP_WANT_VERSION,
                        .key = z->archive.key};
    const zarr_status st = zarr_store_run(z->archive.store, &op, NULL);

    if (st == ZARR_OK)
        *out = op.version;
    return st;
}

/* Whether another program changed or removed the archive after the last append. */
static bool has_changed(const struct zr_zip_store *z)
{
    zarr_store_version version = {{0}};
    const zarr_status st = read_version(z, &version);

    return st == ZARR_ERR_NOT_FOUND ||
           (st == ZARR_OK &&
            z->archive.caps.chunk_flags & ZARR_STORE_CAP_PUT_IF_VERSION &&
            !zr_store_version_equal(&version, &z->archive.version));
}

/* Appends in place, if the archive is as the last append left it. */
static zarr_status append(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err)
{
    zarr_store_version version = {{0}};
    zarr_status st = ZARR_OK;

    op->verb = ZARR_STORE_APPEND;
    op->flags = ZARR_STORE_OP_LOCKED;
    op->lock = z->session.lock;
    op->version = z->archive.version;
    if (z->archive.caps.chunk_flags & ZARR_STORE_CAP_VERSIONS)
        op->flags |= ZARR_STORE_OP_WANT_VERSION;
    if (z->archive.caps.chunk_flags & ZARR_STORE_CAP_PUT_IF_VERSION)
        op->flags |= ZARR_STORE_OP_IF_VERSION;
    st = zarr_store_run(z->archive.store, op, err);
    if (st == ZARR_ERR_CONFLICT || st == ZARR_ERR_NOT_FOUND)
        return fail_conflict(z, err);
    if (st == ZARR_OK)
        set_version(z, &op->version);
    else if (read_version(z, &version) == ZARR_OK) /* it may have changed the archive */
        set_version(z, &version);
    return st;
}

static zarr_status add_part(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    const uint64_t most = z->archive.caps.parts_max;

    if (z->is_spooled)
        return zr_zip_spool_write(&z->spool, &op->mem, op->offset, err);
    if (most > 0 && s->n_parts >= most)
        return zr_fail(err, ZARR_ERR_LIMIT, "%s: more than %" PRIu64 " parts",
                       z->archive.key, most);
    op->verb = ZARR_STORE_PUT_PART;
    op->parts = s->parts;
    op->part = s->n_parts + 1;
    return zarr_store_run(z->archive.store, op, err);
}

zarr_status zr_zip_session_write(struct zr_zip_store *z, const void *bytes, uint64_t n,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    zarr_store_op op = {.key = z->archive.key,
                        .offset = s->end,
                        .length = n,
                        .mem = zr_mem_of_host((void *)(uintptr_t)bytes, n),
                        .cancel = cancel};
    zarr_status st = begin_draft(z, cancel, err);

    ZR_TRY(st);
    ZR_TRY((s->is_in_place ? append : add_part)(z, &op, err));
    s->end += n;
    s->n_parts++;
out:
    return st;
}

/* ---- directories, and the end ---- */

/* Writes the directory of all members. */
static zarr_status write_directory(struct zr_zip_store *z, zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    const uint64_t begun_ns = zr_now_ns(), end = s->end;
    zarr_status st = ZARR_OK;

    if (!s->is_dirty)
        return ZARR_OK;
    if (s->is_in_place)
        ZR_TRY(zarr_store_flush(z->archive.store, NULL, err));
    st = zr_zip_directory_write(z, NULL, err);
    if (st != ZARR_OK) {
        if (s->is_in_place) /* the next bytes replace what there is of it */
            s->end = end;
        if (s->is_in_place && z->archive.in_session && has_changed(z)) /* not yet seen */
            st = fail_conflict(z, err);
        goto out;
    }
    s->is_dirty = false;
    s->member_bytes = 0;
    s->written_ns = zr_now_ns();
    s->cost_ns = s->written_ns - begun_ns;
out:
    return st;
}

/* Waits for those that read, and lets no other thread begin. */
static void stop_readers(struct zr_zip_store *z)
{
    zr_mutex_lock(&z->mutex);
    z->is_ending = true;
    while (z->n_readers > 0)
        zr_cond_wait(&z->changed, &z->mutex);
    zr_mutex_unlock(&z->mutex);
}

void zr_zip_session_drop(struct zr_zip_store *z)
{
    stop_readers(z);
    zr_mutex_lock(&z->mutex);
    z->archive.in_session = z->is_ending = false;
    z->archive.parts = NULL;
    z->archive.spool = NULL;
    z->is_stale = true;
    zr_cond_broadcast(&z->changed);
    zr_mutex_unlock(&z->mutex);
    end_parts(z);
    zr_zip_session_unlock(z);
}

/* The draft becomes the archive. The store has its bytes on the disk before its name, as
 * those of a document: else the old archive could be lost with the new one. */
static zarr_status commit_draft(struct zr_zip_store *z, zarr_error *err)
{
    struct zr_zip_session *s = &z->session;
    const bool is_new = z->archive.bytes == 0;
    const uint32_t cap = is_new ? (uint32_t)ZARR_STORE_CAP_PUT_NEW
                                : (uint32_t)ZARR_STORE_CAP_PUT_IF_VERSION;
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_IN_PARTS | ZARR_STORE_OP_LOCKED |
                                 ZARR_STORE_OP_DOCUMENT,
                        .key = z->archive.key,
                        .length = s->end,
                        .version = z->archive.version,
                        .lock = s->lock,
                        .parts = s->parts};
    zarr_status st = ZARR_OK;

    if (z->archive.caps.chunk_flags & cap)
        op.flags |= ZARR_STORE_OP_IF_VERSION;
    stop_readers(z);
    if (z->is_spooled) {
        op.flags &= ~(uint32_t)ZARR_STORE_OP_IN_PARTS;
        op.flags |= z->archive.caps.chunk_flags & ZARR_STORE_CAP_VERSIONS
                        ? (uint32_t)ZARR_STORE_OP_WANT_VERSION
                        : 0u;
        op.parts = NULL;
        st = zr_zip_spool_put(&z->spool, z->archive.store, &op, err);
    } else {
        st = zarr_store_run(z->archive.store, &op, err);
    }
    if (st == ZARR_ERR_CONFLICT)
        return fail_conflict(z, err);
    if (st != ZARR_OK) {
        zr_mutex_lock(&z->mutex);
        z->is_ending = false;
        zr_cond_broadcast(&z->changed);
        zr_mutex_unlock(&z->mutex);
    }
    return st;
}

zarr_status zr_zip_session_end(struct zr_zip_store *z, zarr_error *err)
{
    if (!z->archive.in_session)
        return ZARR_OK;
    ZR_CHECK(write_directory(z, err));
    if (z->session.parts)
        ZR_CHECK(commit_draft(z, err));
    zr_zip_session_drop(z);
    return ZARR_OK;
}

zarr_status zr_zip_session_tick(struct zr_zip_store *z, zarr_error *err)
{
    const struct zr_zip_session *s = &z->session;
    const uint64_t pause = ZR_MAX(z->due_ns, DUE_FACTOR * s->cost_ns);
    const uint64_t turn = ZR_MAX(z->turn_ns, DUE_FACTOR * (s->cost_ns + s->copy_ns));

    zr_zip_session_used(z);
    if (z->is_spooled)
        return ZARR_OK;
    if (zr_now_ns() - z->turn_began_ns >= turn)
        return zr_zip_session_end(z, err);
    if (!s->is_dirty || s->member_bytes / DUE_MEMBERS < directory_bytes(z) ||
        zr_now_ns() - s->written_ns < pause)
        return ZARR_OK;
    if (s->is_in_place)
        return write_directory(z, err);
    /* The next session is in place, unless each needs a copy of the archive. */
    if (can_append(z))
        return zr_zip_session_end(z, err);
    return ZARR_OK;
}
