/*
 * zip/zip.c - the functions of the store, and its opening. If the archive changed, a
 * handle that only reads fails each read, and one that may write reads the directory
 * again.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#include <string.h>

static void zip_close(void *self)
{
    struct zr_zip_store *z = self;
    const zarr_allocator *alloc = z->archive.env.alloc;
    zarr_error err = {0};

    (void)zr_zip_busy_begin(z, NULL, NULL);
    if (zr_zip_session_end(z, &err) != ZARR_OK) {
        zr_log(&z->archive.env.log, ZARR_LOG_ERROR,
               "%s: what was written after the last flush is lost: %s", z->archive.key,
               err.message);
        if (z->archive.in_session)
            zr_zip_session_drop(z);
    } else if (zr_zip_end_in_order(z, NULL, &err) != ZARR_OK) {
        zr_log(&z->archive.env.log, ZARR_LOG_ERROR, "%s", err.message);
    }
    zr_zip_busy_end(z);
    zr_zip_writer_leave(z);
    zr_zip_spool_close(&z->spool);
    zr_fork_hook_remove(&z->fork);
    zr_cond_deinit(&z->changed);
    zr_mutex_deinit(&z->mutex);
    zr_zip_values_deinit(&z->values);
    zr_zip_table_deinit(&z->table);
    zarr_store_free(z->archive.store);
    zr_free(alloc, z->archive.key);
    zr_free(alloc, z->temp_folder);
    zr_free(alloc, z);
}

/* The session, its lock and its parts are the parent's. */
static void zip_in_child(void *arg)
{
    struct zr_zip_store *z = arg;

    zr_cond_init(&z->changed);
    z->has_forked = z->has_forked || z->archive.in_session;
    if (z->archive.in_session)
        z->is_stale = true;
    z->archive.in_session = z->is_busy = z->is_ending = z->needs_order = false;
    z->orders = ZR_ZIP_ORDERS_NEVER;
    z->archive.parts = NULL;
    z->archive.spool = NULL;
    zr_zip_spool_close(&z->spool);
    z->session = (struct zr_zip_session){.lock = NULL};
    z->n_readers = 0;
    z->writer.n_visitors = 0;
}

static void zip_caps(void *self, zarr_store_caps *out)
{
    const uint32_t passed = ZARR_STORE_CAP_FAST_GET | ZARR_STORE_CAP_COALESCES;
    const uint32_t writes = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT |
                            ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_PUT_NEW |
                            ZARR_STORE_CAP_PUT_IF_VERSION |
                            ZARR_STORE_CAP_ERASE_IF_VERSION;
    const struct zr_zip_store *z = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 (z->can_write ? writes : (uint32_t)ZARR_STORE_CAP_IMMUTABLE) |
                 (z->is_spooled ? (uint32_t)ZARR_STORE_CAP_ATOMIC_FLUSH : 0u) |
                 (z->archive.caps.flags & passed);
    out->parallel = z->archive.caps.parallel;
    out->device_types = z->device_types;
    out->n_device_types = z->n_device_types;
}

static zarr_status read_member(struct zr_zip_store *z, zarr_store_op *op,
                               const struct zr_zip_ahead *ahead, struct zr_zip_view *v,
                               zarr_error *err)
{
    zarr_store_version version;
    zarr_status st =
        zr_zip_view_begin(z, op->key, op->cancel, op->verb == ZARR_STORE_GET, v, err);

    if (st != ZARR_OK)
        return st;
    zr_zip_version(&v->m, &version);
    op->object_bytes = v->m.bytes;
    if ((op->flags & ZARR_STORE_OP_IF_VERSION) &&
        !zr_store_version_equal(&version, &op->version))
        st = zr_fail(err, ZARR_ERR_CONFLICT, "%s: the value changed", op->key);
    else if (op->verb == ZARR_STORE_GET)
        st = zr_zip_get(z, v, op, ahead, err);
    zr_zip_view_end(z, v);
    if (st == ZARR_OK &&
        (op->flags & (ZARR_STORE_OP_WANT_VERSION | ZARR_STORE_OP_IF_VERSION)))
        op->version = version;
    return st;
}

/* As the busy thread of a session: nothing is appended meanwhile, so the version of the
 * archive is known. */
static zarr_status read_between_appends(struct zr_zip_store *z, zarr_store_op *op,
                                        struct zr_zip_view *v, zarr_error *err)
{
    zarr_status st = zr_zip_busy_begin(z, op->cancel, err);
    bool in_session = false;

    if (st != ZARR_OK)
        return st;
    in_session = z->archive.in_session;
    if (in_session)
        st = read_member(z, op, NULL, v, err);
    zr_zip_busy_end(z);
    return in_session ? st : read_member(z, op, NULL, v, err);
}

zarr_status zr_zip_run_one(struct zr_zip_store *z, zarr_store_op *op,
                           const struct zr_zip_ahead *ahead, zarr_error *err)
{
    bool in_session = false;
    zarr_status st = ZARR_OK;

    if (op->verb == ZARR_STORE_PUT && z->can_write)
        return zr_zip_put(z, op, err);
    if (op->verb == ZARR_STORE_ERASE && z->can_write)
        return zr_zip_erase(z, op, err);
    if (op->verb != ZARR_STORE_GET && op->verb != ZARR_STORE_STAT)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: this archive cannot be written",
                       op->key);
    for (int i = 0; i < ZR_ZIP_TRIES; i++) {
        struct zr_zip_view v = {.has_changed = false};

        st = in_session ? read_between_appends(z, op, &v, err)
                        : read_member(z, op, i == 0 ? ahead : NULL, &v, err);
        if (st == ZARR_OK || !v.has_changed || !z->can_write ||
            (in_session && v.archive.in_session))
            break;
        in_session = v.archive.in_session;
    }
    return st;
}

static void zip_run(void *self, zarr_store_op *op, zarr_error *err)
{
    op->status = zr_zip_run_one(self, op, NULL, err);
    op->os_code = op->status != ZARR_OK && err ? err->os_code : 0;
}

/* Members are below the key of the archive. */
struct zip_telling {
    const struct zr_zip_store *store;
    zarr_store_place_fn fn;
    void *user;
};

static void zip_tell(void *user, const zarr_store_place *place)
{
    const struct zip_telling *t = user;
    const struct zr_zip_archive *a = &t->store->archive;
    const char *prefix = place->prefix ? place->prefix : "";
    zarr_store_place inner = *place;
    struct zr_str joined;

    zr_str_init(&joined, a->env.alloc);
    zr_str_printf(&joined, "%s%s%s", prefix,
                  *prefix && !zr_ends_with(prefix, "/") ? "/" : "", a->key);
    inner.prefix = zr_str_text(&joined);
    if (!joined.failed)
        t->fn(t->user, &inner);
    zr_str_deinit(&joined);
}

static void zip_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct zr_zip_store *z = self;
    struct zip_telling t = {z, fn, user};

    zarr_store_tell_place(z->archive.store, zip_tell, &t);
}

/* Looks at the first bytes, once for each directory, and only if the first member does
 * not begin with them. */
static void judge_head(struct zr_zip_store *z)
{
    struct zr_zip_archive archive;
    uint64_t epoch;
    uint8_t first[4];
    bool is_due;

    zr_mutex_lock(&z->mutex);
    archive = z->archive;
    epoch = z->epoch;
    is_due = z->head_epoch != epoch + 1;
    if (is_due && (z->table.base > 0 || zr_zip_first_at(&z->table) < sizeof first)) {
        z->is_headed = is_due = false;
        z->head_epoch = epoch + 1;
    }
    zr_mutex_unlock(&z->mutex);
    if (!is_due || zr_zip_read_host(&archive, 0, sizeof first, first, NULL) != ZARR_OK)
        return;
    zr_mutex_lock(&z->mutex);
    z->is_headed = zr_zip_is_headed(first);
    z->head_epoch = epoch + 1;
    zr_mutex_unlock(&z->mutex);
}

static void zip_count(void *self, zarr_store_counters *out)
{
    struct zr_zip_store *z = self;

    zarr_store_read_counters(z->archive.store, out);
    judge_head(z);
    zr_mutex_lock(&z->mutex);
    zr_zip_count_dead(&z->table, z->archive.bytes,
                      z->head_epoch == z->epoch + 1 && z->is_headed, out);
    zr_mutex_unlock(&z->mutex);
}

const zarr_store_vtable zr_zip_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "zip",
    .caps = zip_caps,
    .run = zip_run,
    .submit = zr_zip_submit,
    .list = zr_zip_list,
    .flush = zr_zip_flush,
    .erase_prefix = zr_zip_erase_prefix,
    .clean = zr_zip_clean,
    .close = zip_close,
    .place = zip_place,
    .count = zip_count,
    .check = zr_zip_check,
    .repack = zr_zip_repack,
};

/* A new archive, and one in a store that cannot append, is written in parts. They are
 * small: one for each member. */
static bool takes_small_parts(const zarr_store_caps *caps)
{
    const uint32_t needs = ZARR_STORE_CAP_PARTS | ZARR_STORE_CAP_READ_PARTS;

    return (caps->chunk_flags & needs) == needs && caps->part_min_bytes <= 1;
}

/* Whether a new archive can be spooled: its PUT may be large. */
static bool can_spool(const zarr_store_caps *caps)
{
    const uint32_t needs = ZARR_STORE_CAP_PARTS | ZARR_STORE_CAP_ATOMIC_PUT;

    return (caps->chunk_flags & needs) == needs && caps->part_min_bytes > 1;
}

static void zip_init(struct zr_zip_store *z, const struct zr_store_env *env,
                     zarr_store *store, const char *key,
                     const struct zr_zip_options *opts)
{
    z->archive.env = *env;
    z->archive.store = zarr_store_ref(store);
    z->archive.caps.struct_size = sizeof z->archive.caps;
    zarr_store_capabilities(store, &z->archive.caps);
    z->is_spooled = !takes_small_parts(&z->archive.caps) && can_spool(&z->archive.caps);
    z->can_write = !(opts->flags & ZARR_STORE_READ_ONLY) &&
                   (z->archive.caps.chunk_flags & ZARR_STORE_CAP_WRITE) &&
                   (z->is_spooled || takes_small_parts(&z->archive.caps));
    z->is_new_allowed = z->can_write && opts->flags & ZARR_STORE_CREATE;
    z->always_copies = opts->always_copies;
    z->is_ozx = opts->form == ZR_ZIP_FORM_OZX ||
                (opts->form == ZR_ZIP_FORM_BY_NAME && zr_ends_with(key, ".ozx"));
    if (opts->form == ZR_ZIP_FORM_OZX)
        z->orders = ZR_ZIP_ORDERS_EACH;
    z->due_ns = ZR_ZIP_DUE_NS;
    z->turn_ns = ZR_ZIP_TURN_NS;
    for (int32_t kind = 1; kind < ZR_ZIP_KINDS; kind++)
        if (zr_device_is_host(env->memory, kind))
            z->device_types[z->n_device_types++] = kind;
    zr_mutex_init(&z->mutex);
    zr_cond_init(&z->changed);
    zr_zip_table_init(&z->table, env);
    zr_zip_values_init(&z->values, env->alloc);
    z->fork = (struct zr_fork_hook){.mutex = &z->mutex, .child = zip_in_child, .arg = z};
    zr_fork_hook_add(&z->fork);
}

zarr_status zr_zip_open(void **self, const struct zr_store_env *env, zarr_store *store,
                        const char *key, const struct zr_zip_options *opts,
                        zarr_error *err)
{
    struct zr_zip_store *z = zr_calloc(env->alloc, 1, sizeof *z);
    zarr_status st = ZARR_OK;

    if (!z)
        return zr_fail_memory(err, sizeof *z);
    zip_init(z, env, store, key, opts);
    z->archive.key = zr_strdup(env->alloc, key);
    if (z->is_spooled)
        z->temp_folder = zr_strdup(env->alloc, opts->temp_folder && *opts->temp_folder
                                                   ? opts->temp_folder
                                                   : "/tmp");
    if (!z->archive.key || (z->is_spooled && !z->temp_folder))
        ZR_FAIL_MEMORY(err, strlen(key) + 1);
    ZR_TRY(zr_zip_writer_end_others(z, opts->cancel, err));
    ZR_TRY(zr_zip_busy_begin(z, opts->cancel, err));
    st = zr_zip_load(z, opts->cancel, err);
    if (st == ZARR_OK && z->archive.bytes == 0 && z->is_ozx && !z->orders)
        z->orders = ZR_ZIP_ORDERS_ONCE;
    zr_zip_busy_end(z);
    ZR_TRY(st);
    if (z->is_spooled && z->archive.bytes > 0)
        z->can_write = false;
    *self = z;
    z = NULL;
out:
    if (z)
        zip_close(z);
    return st;
}
