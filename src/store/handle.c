/*
 * store/handle.c - the handle of a store: opens it, counts its references, says what the
 * store can do, and takes what its functions report. Options are read once, here; a store
 * only gets a full struct. The opening checks what a store declares for contradictions,
 * so later calls need no checks.
 * Thread class: frozen.
 */
#include "store/registry_int.h"

#include <string.h>

enum {
    CAPS_ROOM = 512
};

static void handle_destroy(zarr_store *s)
{
    struct zr_store_env env = s->env;

    if (s->self && s->vt.close)
        s->vt.close(s->self);
    zr_fork_hook_remove(&s->fork);
    zr_keylocks_deinit(&s->keylocks);
    zr_mutex_deinit(&s->locked.mutex);
    zr_free(env.alloc, s->url);
    zr_free(env.alloc, s->name);
    zr_free(env.alloc, s);
    if (env.ctx_unref && env.ctx)
        env.ctx_unref(env.ctx);
}

/* The parent process cancels its operations in flight; the child forgets them. */
static void handle_in_child(void *arg)
{
    zarr_store *s = arg;

    s->locked.batches = NULL;
}

/* Copies a text as it is shown: the handle keeps no secret of its URL. A local store has
 * a path, which a name such as "data:a?b=c" is, too. */
static zarr_status handle_show(char **out, const zarr_store *s, const char *text,
                               zarr_error *err)
{
    const zarr_allocator *alloc = s->env.alloc;

    if (s->vt.run != zr_local_vtable.run)
        ZR_CHECK(zr_store_show_url(out, alloc, text, err));
    if (!*out && !(*out = zr_strdup(alloc, text)))
        return zr_fail_memory(err, strlen(text));
    return ZARR_OK;
}

/* Makes a handle that has no store yet. */
static zarr_status handle_create(zarr_store **out, const struct zr_store_env *env,
                                 const zarr_store_vtable *vt, const char *url,
                                 const zarr_store_options *opts, zarr_error *err)
{
    zarr_store *s = zr_calloc(env->alloc, 1, sizeof *s);
    zarr_status st = ZARR_OK;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    atomic_init(&s->refs, 1);
    s->vt = *vt;
    s->env = *env;
    s->run = zr_op_run_foreign;
    s->run_self = s;
    s->read_only = (opts->flags & ZARR_STORE_READ_ONLY) != 0;
    s->options = *opts;
    s->options.kind = s->options.config = NULL;
    s->options.cancel = NULL;
    zr_keylocks_init(&s->keylocks, env, opts);
    zr_mutex_init(&s->locked.mutex);
    s->fork = (struct zr_fork_hook){
        .mutex = &s->locked.mutex, .child = handle_in_child, .arg = s};
    zr_fork_hook_add(&s->fork);
    if (env->ctx_ref && env->ctx)
        env->ctx_ref(env->ctx);
    ZR_TRY(handle_show(&s->url, s, url, err));
    ZR_TRY(handle_show(&s->name, s, vt->name ? vt->name : "custom", err));
    s->vt.name = s->name;
    *out = s;
    s = NULL;
out:
    if (s)
        handle_destroy(s);
    return st;
}

static zarr_status handle_check_conditions(const zarr_store *s, zarr_error *err)
{
    static const struct {
        uint32_t cap, needs;
        const char *names[2];
    } rules[] = {
        {ZARR_STORE_CAP_PUT_IF_VERSION,
         ZARR_STORE_CAP_VERSIONS,
         {"PUT_IF_VERSION", "VERSIONS"}},
        {ZARR_STORE_CAP_PUT_IF_VERSION,
         ZARR_STORE_CAP_PUT_NEW,
         {"PUT_IF_VERSION", "PUT_NEW"}},
        {ZARR_STORE_CAP_ERASE_IF_VERSION,
         ZARR_STORE_CAP_VERSIONS,
         {"ERASE_IF_VERSION", "VERSIONS"}},
    };

    for (size_t i = 0; i < ZR_COUNT(rules); i++)
        if ((s->caps.flags & rules[i].cap) && !(s->caps.flags & rules[i].needs))
            return zr_fail(err, ZARR_ERR_INVALID, "store %s: says %s but not %s", s->name,
                           rules[i].names[0], rules[i].names[1]);
    return ZARR_OK;
}

/* Asks the opened store what it can do, and refuses contradictions. A store that was
 * compiled with a longer struct may assign all of it, so there is room for more. */
static zarr_status handle_read_caps(zarr_store *s, zarr_error *err)
{
    union {
        zarr_store_caps caps;
        unsigned char room[CAPS_ROOM];
    } u = {.room = {0}};

    u.caps.struct_size = sizeof u.caps;
    s->vt.caps(s->self, &u.caps);
    s->caps = u.caps;
    s->caps.struct_size = sizeof s->caps;
    s->caps.kind = s->name;
    if ((s->caps.flags & ZARR_STORE_CAP_LIST) && !s->vt.list)
        return zr_fail(err, ZARR_ERR_INVALID, "store %s: says LIST but has no list",
                       s->name);
    if ((s->caps.flags & ZARR_STORE_CAP_LOCK) && !s->vt.lock)
        return zr_fail(err, ZARR_ERR_INVALID, "store %s: says LOCK but has no lock",
                       s->name);
    if (!s->vt.begin_parts || !s->vt.end_parts) /* it tells what a store below it can */
        s->caps.flags &= ~(uint32_t)(ZARR_STORE_CAP_PARTS | ZARR_STORE_CAP_READ_PARTS |
                                     ZARR_STORE_CAP_COPY_PARTS);
    if ((s->caps.flags & ZARR_STORE_CAP_COALESCES) && !s->vt.submit)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "store %s: says COALESCES but has no submit", s->name);
    ZR_CHECK(handle_check_conditions(s, err));
    if (!s->caps.device_types)
        s->caps.n_device_types = 0;
    if (s->caps.n_device_types > ZR_COUNT(s->device_types))
        return zr_fail(err, ZARR_ERR_INVALID, "store %s: %" PRIu32 " device types",
                       s->name, s->caps.n_device_types);
    for (uint32_t i = 0; i < s->caps.n_device_types; i++)
        s->device_types[i] = s->caps.device_types[i];
    s->caps.device_types = s->caps.n_device_types > 0 ? s->device_types : NULL;
    if (!s->native || !s->native->part)
        s->caps.metadata_flags = s->caps.chunk_flags = s->caps.flags;
    if (s->read_only) {
        s->caps.flags &= ~(uint32_t)ZARR_STORE_CAP_WRITE;
        s->caps.metadata_flags &= ~(uint32_t)ZARR_STORE_CAP_WRITE;
        s->caps.chunk_flags &= ~(uint32_t)ZARR_STORE_CAP_WRITE;
    }
    return ZARR_OK;
}

static zarr_status handle_read_options(zarr_store_options *out,
                                       const zarr_store_options *opts, zarr_error *err)
{
    const uint32_t known = ZARR_STORE_READ_ONLY | ZARR_STORE_CREATE;
    zarr_status st = zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), opts,
                                    ZR_TAIL_REFUSE, "zarr_store_options", err);

    if (st == ZARR_OK &&
        ((out->flags & ~known) != 0 || out->reserved != 0 || out->reserved_1 != 0))
        st = zr_fail(err, ZARR_ERR_INVALID, "zarr_store_options.flags has unknown bits");
    if (st == ZARR_OK && (out->tensor_device_type < 0 || out->tensor_device_id < 0))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "zarr_store_options: no device has the type %" PRId32
                     " and the number %" PRId32,
                     out->tensor_device_type, out->tensor_device_id);
    return st;
}

zarr_status zr_store_open(zarr_store **out, const struct zr_store_registry *r,
                          const struct zr_store_env *env, const char *url,
                          const zarr_store_options *opts, zarr_error *err)
{
    const struct zr_store_row *row = NULL;
    struct zr_foreign call;
    zarr_store_options o;
    zarr_store *s = NULL;
    zarr_status st = ZARR_OK;

    if (!url)
        return zr_fail(err, ZARR_ERR_INVALID, "no URL");
    ZR_TRY(handle_read_options(&o, opts, err));
    ZR_TRY(zr_store_registry_for_url(r, url, o.kind, &row, err));
    ZR_TRY(zr_store_config_read(&o, !row->native, row->native, row->vt.name, env, err));
    ZR_TRY(handle_create(&s, env, &row->vt, url, &o, err));
    s->native = row->native;
    s->by_url = true;
    if (s->native)
        st = s->native->open(&s->self, &s->env, url, &o, err);
    else
        st = zr_store_call_end(s, &call,
                               s->vt.open(&s->self, env->ctx, url, &o, o.cancel,
                                          zr_store_call_begin(s, &call, err)),
                               ZARR_OPERATION_OPEN, err);
    if (st != ZARR_OK) {
        s->self = NULL; /* after a failed open there is nothing to close */
        goto out;
    }
    if (s->native) {
        s->run = s->vt.run;
        s->run_self = s->self;
    }
    ZR_TRY(handle_read_caps(s, err));
out:
    if (st != ZARR_OK)
        zr_error_operation(err, ZARR_OPERATION_OPEN);
    if (s)
        zr_log(&env->log, ZARR_LOG_DEBUG, "open %s: %s", s->url, zarr_status_text(st));
    if (st == ZARR_OK)
        *out = s;
    else
        zarr_store_free(s);
    return st;
}

static zarr_status handle_check_bare(const zarr_store_options *o, zarr_error *err)
{
    const zarr_store_options bare = {.struct_size = sizeof bare,
                                     .flags = o->flags,
                                     .config = o->config,
                                     .cancel = o->cancel,
                                     .tensor_device_type = o->tensor_device_type,
                                     .tensor_device_id = o->tensor_device_id};

    if (memcmp(o, &bare, sizeof bare) == 0 && !(o->flags & ZARR_STORE_CREATE))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "of zarr_store_options this store takes ZARR_STORE_READ_ONLY and the "
                   "default memory alone");
}

zarr_status zr_store_make_native(zarr_store **out, const struct zr_store_env *env,
                                 const struct zr_store_native_make *make, const char *url,
                                 const zarr_store_options *opts, zarr_error *err)
{
    zarr_store_options o;
    zarr_store *s = NULL;
    void *self = make->self;
    zarr_status st = ZARR_OK;

    ZR_TRY(handle_read_options(&o, opts, err));
    ZR_TRY(handle_check_bare(&o, err));
    ZR_TRY(zr_store_config_read(&o, false, NULL, make->vt->name, env, err));
    ZR_TRY(handle_create(&s, env, make->vt, url, &o, err));
    s->native = make->native;
    s->self = self;
    self = NULL; /* the handle owns it now */
    s->run = s->vt.run;
    s->run_self = s->self;
    s->read_only = s->read_only || make->read_only;
    if (make->memory_source && s->options.tensor_device_type == 0)
        zr_store_default_memory(make->memory_source, &s->options.tensor_device_type,
                                &s->options.tensor_device_id);
    ZR_TRY(handle_read_caps(s, err));
    *out = s;
    s = NULL;
out:
    zarr_store_free(s);
    if (self)
        make->vt->close(self);
    return st;
}

zarr_status zr_store_open_custom(zarr_store **out, const struct zr_store_env *env,
                                 const zarr_store_vtable *vtable, void *self,
                                 const zarr_store_options *opts, zarr_error *err)
{
    return zr_store_open_custom_url(out, env, vtable, self, NULL, opts, err);
}

zarr_status zr_store_open_custom_url(zarr_store **out, const struct zr_store_env *env,
                                     const zarr_store_vtable *vtable, void *self,
                                     const char *url, const zarr_store_options *opts,
                                     zarr_error *err)
{
    zarr_store_vtable vt = {0};
    zarr_store_options o;
    zarr_store *s = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_vtable_read(&vt, vtable, err));
    ZR_TRY(handle_read_options(&o, opts, err));
    ZR_TRY(zr_store_config_read(&o, false, NULL, vt.name ? vt.name : "custom", env, err));
    if (!url)
        url = vt.name ? vt.name : "custom:";
    ZR_TRY(handle_create(&s, env, &vt, url, &o, err));
    s->self = self;
    self = NULL; /* the handle owns it now */
    ZR_TRY(handle_read_caps(s, err));
    *out = s;
    s = NULL;
out:
    zarr_store_free(s);
    if (self && vt.close)
        vt.close(self);
    return st;
}

zarr_store *zarr_store_ref(zarr_store *store)
{
    if (!store)
        return NULL;
    atomic_fetch_add(&store->refs, 1);
    return store;
}

void zarr_store_free(zarr_store *store)
{
    if (store && atomic_fetch_sub(&store->refs, 1) == 1)
        handle_destroy(store);
}

const char *zarr_store_url(const zarr_store *store)
{
    return store ? store->url : NULL;
}

const zarr_store_caps *zr_store_caps(const zarr_store *s)
{
    return &s->caps;
}

bool zr_store_can(const zarr_store *s, uint32_t caps)
{
    return (caps & ~s->caps.flags) == 0;
}

bool zr_store_lends(const zarr_store *s)
{
    return s->native && s->native->lend;
}

bool zr_store_lend(zarr_store *s, zarr_store_op *op)
{
    return s->native && s->native->lend && s->native->lend(s->self, op);
}

bool zr_store_can_key(const zarr_store *s, const char *key, uint32_t caps)
{
    const bool is_document = zr_key_kind(key) == ZARR_STORE_OP_DOCUMENT;
    const uint32_t flags = is_document ? s->caps.metadata_flags : s->caps.chunk_flags;

    return (caps & ~flags) == 0;
}

bool zr_store_is_by_version(const zarr_store *s)
{
    return (s->caps.flags & (ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_PUT_IF_VERSION)) ==
           ZARR_STORE_CAP_PUT_IF_VERSION;
}

bool zr_store_default_memory(const zarr_store *s, int32_t *device_type,
                             int32_t *device_id)
{
    if (s->options.tensor_device_type == 0)
        return false;
    *device_type = s->options.tensor_device_type;
    *device_id = s->options.tensor_device_id;
    return true;
}

bool zr_store_device_direct(const zarr_store *s, int32_t device_type)
{
    for (uint32_t i = 0; i < s->caps.n_device_types; i++)
        if (s->device_types[i] == device_type)
            return true;
    return s->caps.n_device_types == 0 && zr_device_is_host(s->env.memory, device_type);
}

zarr_store_options zr_store_options(const zarr_store *s)
{
    return s->options;
}

const char *zr_store_name(const zarr_store *s)
{
    return s->name;
}

zarr_store *zr_store_of_chunks(zarr_store *s)
{
    zarr_store *part;

    if (!s->native || !s->native->part)
        return s;
    part = s->native->part(s->self, "c/0");
    return s->read_only && !part->read_only ? s : part; /* it must not write */
}

bool zr_store_is_own(const zarr_store *s)
{
    return zr_store_of_key(s, "c/0")->native != NULL;
}

bool zr_store_is_read_only(const zarr_store *s)
{
    return s->read_only;
}

zarr_context *zr_store_context(const zarr_store *s)
{
    return s->env.ctx;
}

/* ---- calls of a store's functions ---- */

zarr_error *zr_store_call_begin(const zarr_store *s, struct zr_foreign *f,
                                zarr_error *err)
{
    return s->native ? err : zr_foreign_begin(f, err);
}

zarr_status zr_store_call_end(const zarr_store *s, struct zr_foreign *f, zarr_status st,
                              uint32_t operation, zarr_error *err)
{
    if (st == ZARR_OK)
        return st;
    if (!s->native)
        st = zr_foreign_fail(f, st, true, "the %s store", s->name);
    zr_error_operation(err, operation);
    return st;
}
