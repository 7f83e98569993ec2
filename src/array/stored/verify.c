/*
 * array/stored/verify.c - decodes everything that is stored in an array and reports
 * faults: shards with an invalid index, chunks that do not decode to what the metadata
 * says, objects that cannot be read. Objects are checked in parallel; faults are reported
 * by one thread at a time. A store that fails as a whole ends the call, because the rest
 * is then unknown. Thread class: plain function.
 */
#include "array/io/io_int.h"
#include "array/shape/shape_int.h"
#include "array/stored/stored_int.h"

#include <string.h>

struct verifying {
    zarr_array *array;
    struct zr_array_state *state; /* counted */
    struct zr_stored stored;
    zarr_error read_error; /* of a folder that the listing passed; code OK: none */
    struct zr_io io;
    zarr_io_options opts;
    struct zr_array_state
        *larger; /* counted: to look outside of the shape; may be NULL */
    struct zr_verify_call call;
    atomic_bool stopped;
    struct {
        zr_mutex mutex;
        zr_cond free;
        bool telling; /* a thread is in one of the caller's functions */
        zarr_stats stats;
        uint64_t n_border, border[ZARR_MAX_RANK]; /* chunks with elements outside; one */
    } locked;
};

struct verified_object {
    struct verifying *v;
    const char *key;
    const uint64_t *chunk;
    /* first element of the block, or of the current chunk in a shard */
    uint64_t origin[ZARR_MAX_RANK];
    struct zr_check check; /* its n_sound: the next chunks that are sound */
    zarr_status failed;    /* of the one after them; OK: not checked */
    zarr_error why;        /* of `failed` */
};

/* Whether the stored object causes this status. */
static bool is_fault(zarr_status st, const zarr_error *e)
{
    return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_LIMIT || st == ZARR_ERR_UNSUPPORTED ||
           st == ZARR_ERR_INVALID || zr_store_blames_object(st, e);
}

/* Waits for this thread's turn: one thread at a time calls the caller's functions,
 * without a lock. */
static void turn_take(struct verifying *v, zarr_stats *now)
{
    zr_mutex_lock(&v->locked.mutex);
    if (v->locked.telling) {
        zr_block_begin();
        while (v->locked.telling)
            zr_cond_wait(&v->locked.free, &v->locked.mutex);
        zr_block_end();
    }
    v->locked.telling = true;
    if (now)
        *now = v->locked.stats;
    zr_mutex_unlock(&v->locked.mutex);
}

static void turn_give(struct verifying *v)
{
    zr_mutex_lock(&v->locked.mutex);
    v->locked.telling = false;
    zr_cond_broadcast(&v->locked.free);
    zr_mutex_unlock(&v->locked.mutex);
}

static void tell_fault(const struct verified_object *o, zarr_status st,
                       const char *message)
{
    struct verifying *v = o->v;
    /* a store may name the key, which the item has by itself */
    const size_t n = strlen(o->key);
    const bool named =
        strncmp(message, o->key, n) == 0 && strncmp(message + n, ": ", 2) == 0;
    const zarr_verify_item item = {.struct_size = sizeof item,
                                   .status = st,
                                   .key = o->key,
                                   .message = message + (named ? n + 2 : 0),
                                   .block = o->chunk,
                                   .origin = o->origin,
                                   .ndim = v->state->meta.ndim};

    turn_take(v, NULL);
    if (!atomic_load(&v->stopped) && v->call.fn(v->call.user, &item) != 0)
        atomic_store(&v->stopped, true);
    turn_give(v);
}

/* Reports a fault. Returns OK if it was reported; otherwise the failure that ends the
 * call. */
static zarr_status judge(const struct verified_object *o, zarr_status st,
                         const zarr_error *e, zarr_error *err)
{
    if (st == ZARR_OK || st == ZARR_ERR_NOT_FOUND) /* erased meanwhile */
        return ZARR_OK;
    if (is_fault(st, e)) {
        tell_fault(o, st, e->message);
        return ZARR_OK;
    }
    return zr_pass(err, st, e);
}

static void judge_missing(const struct verified_object *o, uint64_t n)
{
    zarr_error e = {0};

    if (n == 0)
        return;
    zr_fail(&e, ZARR_ERR_NOT_FOUND, "%" PRIu64 " chunk%s not stored", n,
            n == 1 ? " is" : "s are");
    tell_fault(o, ZARR_ERR_NOT_FOUND, e.message);
}

/* Names a chunk of a shard by its coordinates in the array's grid of chunks. */
static void prefix_chunk(const struct verified_object *o, zarr_status st, zarr_error *e)
{
    const struct zr_array_state *s = o->v->state;
    uint64_t chunk[ZARR_MAX_RANK];
    char text[160];

    for (int32_t d = 0; d < s->meta.ndim; d++)
        chunk[d] = o->origin[d] / s->leaf_shape[d];
    zr_coord_text(text, sizeof text, chunk, s->meta.ndim);
    if (is_fault(st, e))
        zr_prefix(e, st, "chunk [%s]", text);
    else
        zr_prefix(e, st, "%s: chunk [%s]", o->key, text);
}

/* The chunks after this one are checked with it. What is found is told when the walk
 * comes to them. */
static zarr_status check_inner(void *arg, const struct zr_inner_chunk *inner,
                               zarr_error *err)
{
    struct verified_object *o = arg;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (atomic_load(&o->v->stopped))
        return ZARR_OK;
    if (o->check.n_sound == 0 && o->failed == ZARR_OK)
        o->failed =
            zr_chunks_check(&o->v->io, inner->shard, inner->entry, &o->check, &o->why);
    if (o->check.n_sound > 0) {
        o->check.n_sound--;
        return ZARR_OK;
    }
    st = zr_pass(&e, o->failed, &o->why);
    zr_error_clear(&o->why);
    o->failed = ZARR_OK;
    memcpy(o->origin, inner->origin, sizeof o->origin);
    if (st != ZARR_OK)
        prefix_chunk(o, st, &e);
    if (is_fault(st, &e))
        zr_shard_makes_room(inner->shard); /* the caller's function may read */
    return judge(o, st, &e, err);
}

/* A nested shard that cannot be opened; its siblings still can. */
static zarr_status nested_fault(void *arg, const uint64_t *origin, zarr_status st,
                                const zarr_error *why, zarr_error *err)
{
    struct verified_object *o = arg;

    memcpy(o->origin, origin, sizeof o->origin);
    return judge(o, st, why, err);
}

/* Checks a chunk that is not a shard. */
static zarr_status check_whole(const struct verifying *v, const uint64_t *chunk,
                               const char *key, zarr_error *err)
{
    const struct zr_level *lv = NULL;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    zr_grid_chunk_shape(&v->state->meta.grid, chunk, shape);
    ZR_TRY(zr_layout_outer(v->io.layout, shape, &lv, err));
    ZR_TRY(zr_chunk_check(&v->io, lv, key, err));
out:
    zr_level_give(lv);
    return st;
}

static void count_object(struct verifying *v)
{
    zarr_stats now;

    zr_mutex_lock(&v->locked.mutex);
    v->locked.stats.chunks_done++;
    zr_mutex_unlock(&v->locked.mutex);
    if (!v->opts.progress)
        return;
    turn_take(v, &now);
    v->opts.progress(v->opts.progress_user, &now);
    turn_give(v);
}

/* ---- outside of the shape ------------------------------------------------- */

/* Border chunks are read through a state that ends where the chunks end. Elements of
 * lossy codecs are never exactly the fill value. */
static zarr_status outside_open(struct verifying *v, zarr_error *err)
{
    bool lossy = false;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (!v->call.outside)
        goto out;
    ZR_TRY(zr_array_lossy(v->array, v->state, &lossy, err));
    if (lossy)
        goto out;
    st = zr_outside_state(&v->larger, v->array, v->state, NULL, &e);
    st = st == ZARR_ERR_NO_MEMORY ? zr_pass(err, st, &e) : ZARR_OK;
out:
    return st;
}

static zarr_status look_outside(struct verifying *v, const uint64_t *chunk,
                                zarr_error *err)
{
    const uint64_t *shape = v->state->meta.shape;
    const int32_t ndim = v->state->meta.ndim;
    bool is_fill = true;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (!v->larger)
        return ZARR_OK;
    st = zr_outside_is_fill(v->array, v->larger, chunk, shape, v->opts.cancel, &is_fill,
                            &e);
    if (st != ZARR_OK) /* the check of the chunk itself reports faults */
        return is_fault(st, &e) || st == ZARR_ERR_NOT_FOUND ? ZARR_OK
                                                            : zr_pass(err, st, &e);
    if (is_fill)
        return ZARR_OK;
    zr_mutex_lock(&v->locked.mutex);
    if (v->locked.n_border++ == 0)
        memcpy(v->locked.border, chunk, (size_t)ndim * sizeof *chunk);
    zr_mutex_unlock(&v->locked.mutex);
    return ZARR_OK;
}

static zarr_status tell_outside(const struct verifying *v, bool chunks, uint64_t n,
                                const uint64_t *chunk, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    if (!v->call.outside || n == 0 || atomic_load(&v->stopped))
        return ZARR_OK;
    zr_str_init(&key, v->array->h.ctx->alloc);
    ZR_TRY(zr_array_key(v->array, v->state, chunk, &key, err));
    v->call.outside(v->call.user, chunks, n, zr_str_text(&key));
out:
    zr_str_deinit(&key);
    return st;
}

/* Keeps the first chunk. */
static zarr_status keep_chunk(void *arg, const uint64_t *chunk, bool *stop,
                              zarr_error *err)
{
    ZR_UNUSED(err);
    memcpy(arg, chunk, ZARR_MAX_RANK * sizeof *chunk);
    *stop = true;
    return ZARR_OK;
}

static zarr_status tell_missing(const struct verifying *v, zarr_error *err)
{
    const uint64_t all = zr_grid_n_chunks_all(&v->state->meta.grid);
    uint64_t chunk[ZARR_MAX_RANK] = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    if (!v->call.missing || v->stored.n >= all || atomic_load(&v->stopped))
        return ZARR_OK;
    zr_str_init(&key, v->array->h.ctx->alloc);
    ZR_TRY(
        zr_stored_each_missing(&v->stored, &v->state->meta.grid, keep_chunk, chunk, err));
    ZR_TRY(zr_array_key(v->array, v->state, chunk, &key, err));
    v->call.missing(v->call.user, all - v->stored.n, zr_str_text(&key));
out:
    zr_str_deinit(&key);
    return st;
}

/* Reports a chunk that is no value. Otherwise the keys that made it a suspect are
 * foreign. */
static zarr_status check_suspect(struct verifying *v, const struct zr_suspect *suspect,
                                 zarr_error *err)
{
    const size_t skip = *v->array->h.path ? strlen(v->array->h.path) + 1 : 0;
    uint64_t chunk[ZARR_MAX_RANK] = {0}, size;
    struct verified_object o = {
        .v = v, .chunk = chunk, .key = v->stored.keys.ptr + suspect->chunk};
    bool there;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    (void)zr_key_encoding_chunk(&v->state->meta.keys, v->state->meta.ndim, o.key + skip,
                                chunk);
    for (int32_t d = 0; d < v->state->meta.ndim; d++)
        zr_grid_extent(&v->state->meta.grid, d, chunk[d], &o.origin[d], &size);
    st = zr_key_is_there(v->array->chunk_store, o.key, ZARR_STORE_OP_CHUNK, &there,
                         v->opts.cancel, &e);
    if (st == ZARR_OK)
        st = zr_stored_acquit(&v->stored, suspect, &e);
    return judge(&o, st, &e, err);
}

static zarr_status check_suspects(struct verifying *v, bool below_file, zarr_error *err)
{
    for (size_t i = 0; i < v->stored.n_suspects && !atomic_load(&v->stopped); i++)
        if (v->stored.suspect[i].below_file == below_file)
            ZR_CHECK(check_suspect(v, &v->stored.suspect[i], err));
    return ZARR_OK;
}

static void tell_foreign(const struct verifying *v)
{
    for (int i = 0; i < 2; i++) {
        const struct zr_foreign_keys *f = &v->stored.foreign[i];

        if (v->call.foreign && f->n > 0 && !atomic_load(&v->stopped))
            v->call.foreign(v->call.user, i == 1, f->n, f->key);
    }
}

static zarr_status verify_object(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    struct verifying *v = arg;
    const uint64_t *chunk = zr_stored_chunk(&v->stored, i);
    struct verified_object o = {.v = v, .chunk = chunk};
    uint64_t n_missing = 0, size;
    const struct zr_inner_use use = {.fn = check_inner,
                                     .arg = &o,
                                     .reads = true,
                                     .fault = nested_fault,
                                     .n_missing = v->call.missing ? &n_missing : NULL};
    struct zr_str key;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_UNUSED(worker);
    if (atomic_load(&v->stopped))
        return ZARR_OK;
    for (int32_t d = 0; d < v->state->meta.ndim; d++)
        zr_grid_extent(&v->state->meta.grid, d, chunk[d], &o.origin[d], &size);
    zr_str_init(&key, v->array->h.ctx->alloc);
    ZR_TRY(zr_array_key(v->array, v->state, chunk, &key, err));
    o.key = zr_str_text(&key);
    if (v->state->sharded)
        st = zr_shard_walk(&v->io, v->state, chunk, o.key, &use, &e);
    else
        st = check_whole(v, chunk, o.key, &e);
    if (st != ZARR_OK && !is_fault(st, &e) && !v->state->sharded)
        zr_prefix_key(&e, st, o.key);
    ZR_TRY(judge(&o, st, &e, err));
    if (st == ZARR_OK)
        judge_missing(&o, n_missing);
    ZR_TRY(look_outside(v, chunk, err));
    count_object(v);
out:
    zr_str_deinit(&key);
    return st;
}

/* Finds what is stored. Goes on with the rest if a folder cannot be read: v->read_error
 * then has the failure. */
static zarr_status find_objects(struct verifying *v, zarr_error *err)
{
    zarr_error why = {0};
    const zarr_status st =
        zr_stored_find(&v->stored, v->array, v->state, NULL, true, v->opts.cancel, &why);

    if (st == ZARR_OK)
        return ZARR_OK;
    zr_path_prefix(&why, st, v->array->h.path);
    if (!zr_store_blames_object(st, &why))
        return zr_pass(err, st, &why);
    v->read_error = why;
    return ZARR_OK;
}

static zarr_status verify_all(struct verifying *v, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = v->opts.max_threads ? v->opts.max_threads
                                           : v->array->h.ctx->engine.max_threads,
        .cancel = v->opts.cancel};
    zarr_status st = ZARR_OK;

    st = zr_array_io(&v->io, v->array, v->state, ZARR_DEVICE_CPU, NULL, err);
    v->io.cancel = v->opts.cancel;
    v->io.indexes = NULL; /* a cached index proves nothing */
    ZR_TRY(zr_path_prefix(err, st, v->array->h.path));
    ZR_TRY(find_objects(v, err));
    v->locked.stats = (zarr_stats){.struct_size = sizeof v->locked.stats};
    v->locked.stats.chunks_total = v->stored.n;
    ZR_TRY(outside_open(v, err));
    ZR_TRY(zr_parallel_run(v->stored.n, &opts, verify_object, v, err));
    ZR_TRY(check_suspects(v, true, err));
    ZR_TRY(check_suspects(v, false, err));
    ZR_TRY(tell_outside(v, true, v->stored.n_outside, v->stored.outside, err));
    ZR_TRY(tell_outside(v, false, v->locked.n_border, v->locked.border, err));
    tell_foreign(v);
    ZR_TRY(zr_pass(err, v->read_error.code,
                   &v->read_error)); /* what is missing is not known */
    ZR_TRY(tell_missing(v, err));
    if (v->stored.n == 0)
        st = zr_path_prefix(err,
                            zr_separator_check(v->array, v->state, v->opts.cancel, err),
                            v->array->h.path);
out:
    return st;
}

zarr_status zr_array_verify(zarr_array *array, const struct zr_verify_call *call,
                            const zarr_io_options *opts, zarr_error *err)
{
    struct verifying v = {.array = array, .call = *call};
    zarr_status st = ZARR_OK;

    atomic_init(&v.stopped, false);
    zr_mutex_init(&v.locked.mutex);
    zr_cond_init(&v.locked.free);
    v.state = zr_array_state_get(array);
    st = zr_io_options_read(&v.opts, opts, err);
    if (st == ZARR_OK)
        st = zr_io_no_stream(&v.opts, err);
    if (st == ZARR_OK)
        st = verify_all(&v, err);
    zr_stored_deinit(&v.stored);
    zr_array_state_free(v.state);
    zr_array_state_free(v.larger);
    zr_cond_deinit(&v.locked.free);
    zr_mutex_deinit(&v.locked.mutex);
    return st;
}

zarr_status zarr_array_verify(zarr_array *array,
                              int (*fn)(void *user, const zarr_verify_item *item),
                              void *user, const zarr_io_options *opts, zarr_error *err)
{
    const struct zr_verify_call call = {.fn = fn, .user = user};

    ZR_NEED(array, err);
    return zr_array_verify(array, &call, opts, err);
}
