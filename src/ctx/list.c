/*
 * ctx/list.c - lists what a context knows: names, origins, and one line of detail for
 * each, made when it is asked for. Data types and stores list themselves; devices are
 * listed as their backends describe them. The rows of the other registries come from
 * register.c. Until the context is sealed, each row is made under the register lock. The
 * caller's function is never called under that lock, so it may call the library. Thread
 * class: shared.
 */
#include "ctx/ctx_int.h"

#include "codecs/codecs.h"

#include <string.h>

enum {
    DEVICES_MAX = 1024 /* of one backend; a larger count is a fault of the backend */
};

struct device_rows {
    int (*emit)(void *user, const zarr_registry_item *item);
    void *user;
    struct zr_str name, detail;
};

/* Returns the i-th backend that is not an allocator, or NULL after the last one. */
static const struct zr_backend *device_backend(zarr_context *ctx, size_t *i)
{
    const bool locked = zr_ctx_look_begin(ctx);
    const struct zr_backend *be = NULL;

    while (!be && *i < ctx->memory.kinds.n) {
        be = (const void *)ctx->memory.kinds.entry[(*i)++];
        if (be->vt.flags & ZARR_MEMORY_ALLOCATOR)
            be = NULL;
    }
    zr_ctx_look_end(ctx, locked);
    return be;
}

static zarr_registry_item device_item(const struct zr_backend *be, struct device_rows *r)
{
    return (zarr_registry_item){
        .struct_size = sizeof(zarr_registry_item),
        .registry = ZARR_REGISTRY_DEVICE,
        .name = zr_str_text(&r->name),
        .origin = be->entry.origin,
        .detail = zr_str_text(&r->detail),
        .v3 = "",
        .v2 = "",
        .aliases = "",
        .of = be->vt.name,
        .capabilities = "",
        .device_type = be->vt.device_type,
    };
}

static void put_bytes(struct zr_str *out, uint64_t bytes, const char *after)
{
    if (bytes > 0)
        zr_str_printf(out, "%s%.1f GiB%s", zr_str_text(out)[0] ? ", " : "",
                      (double)bytes / (double)(1u << 30), after);
}

static int emit_failure(struct device_rows *r, const struct zr_backend *be,
                        int32_t device_id, const zarr_error *err)
{
    zarr_registry_item item;

    zr_str_clear(&r->detail);
    zr_str_puts(&r->detail, err->message);
    item = device_item(be, r);
    item.device_id = device_id;
    return r->emit(r->user, &item);
}

static int emit_device(struct device_rows *r, const struct zr_backend *be,
                       int32_t device_id)
{
    zarr_device_facts facts;
    zarr_registry_item item;
    zarr_error err = {0};

    zr_str_clear(&r->name);
    zr_memory_print(&r->name, be);
    zr_str_printf(&r->name, ":%" PRId32, device_id);
    if (zr_backend_describe(be, device_id, &facts, &err) != ZARR_OK)
        return emit_failure(r, be, device_id, &err);
    zr_str_clear(&r->detail);
    zr_str_puts(&r->detail, facts.name);
    put_bytes(&r->detail, facts.total_bytes, "");
    put_bytes(&r->detail, facts.free_bytes, " free");
    item = device_item(be, r);
    item.device_id = device_id;
    item.total_bytes = facts.total_bytes;
    item.free_bytes = facts.free_bytes;
    return r->emit(r->user, &item);
}

/* Returns whether the listing ends. */
static bool emit_devices(struct device_rows *r, const struct zr_backend *be)
{
    zarr_error err = {0};
    uint32_t n = 1;
    zarr_status st = zr_backend_device_count(be, &n, &err);

    if (st == ZARR_OK && n > DEVICES_MAX)
        st = zr_fail(&err, ZARR_ERR_DEVICE,
                     "memory backend \"%s\" counts %" PRIu32 " devices", be->vt.name, n);
    if (st != ZARR_OK) {
        zr_str_clear(&r->name);
        zr_memory_print(&r->name, be);
        return emit_failure(r, be, 0, &err) != 0;
    }
    for (uint32_t i = 0; i < n; i++)
        if (emit_device(r, be, (int32_t)i) != 0)
            return true;
    return false;
}

/* Calls emit for each device of each backend, as the backend describes it, until it
 * returns non-zero. A driver may take long to answer, so it is asked without the register
 * lock. */
static zarr_status list_devices(zarr_context *ctx,
                                int (*emit)(void *user, const zarr_registry_item *item),
                                void *user, zarr_error *err)
{
    struct device_rows r = {.emit = emit, .user = user};
    const struct zr_backend *be = NULL;
    zarr_status st;
    size_t i = 0;

    zr_str_init(&r.name, ctx->alloc);
    zr_str_init(&r.detail, ctx->alloc);
    while ((be = device_backend(ctx, &i)) && !emit_devices(&r, be))
        ;
    st = zr_str_status(&r.name, err);
    if (st == ZARR_OK)
        st = zr_str_status(&r.detail, err);
    zr_str_deinit(&r.name);
    zr_str_deinit(&r.detail);
    return st;
}

struct list_call {
    int (*fn)(void *user, const zarr_registry_item *item);
    void *user;
    bool stopped;
    struct zr_str detail, v3, aliases, capabilities; /* of the current row */
};

static zarr_registry_item list_item(uint32_t registry, const char *name,
                                    const char *origin)
{
    return (zarr_registry_item){
        .struct_size = sizeof(zarr_registry_item),
        .registry = registry,
        .name = name,
        .origin = origin,
        .detail = "",
        .v3 = "",
        .v2 = "",
        .aliases = "",
        .of = "",
        .capabilities = "",
    };
}

static int list_emit(void *user, const zarr_registry_item *item)
{
    struct list_call *c = user;

    c->stopped = c->fn(c->user, item) != 0;
    return c->stopped;
}

static void word_if(struct zr_str *s, bool said, const char *word)
{
    if (said)
        zr_str_printf(s, "%s%s", zr_str_text(s)[0] ? " " : "", word);
}

static void list_dtypes(zarr_context *ctx, struct list_call *c)
{
    struct zr_dtype_row row;
    bool found = true;

    for (size_t i = 0; found && !c->stopped; i++) {
        const bool locked = zr_ctx_look_begin(ctx);

        found = zr_dtype_row(&ctx->dtypes, i, &row);
        zr_ctx_look_end(ctx, locked);
        if (found)
            list_emit(c, &row.item);
    }
}

/* Gives the i-th store; its texts live as long as the registry. */
static bool store_row(zarr_context *ctx, size_t i, zarr_registry_item *item)
{
    const char *name = NULL, *origin = NULL, *detail = NULL;
    const bool locked = zr_ctx_look_begin(ctx);
    const bool found = i < zr_store_registry_count(ctx->stores);

    if (found)
        zr_store_registry_item(ctx->stores, i, &name, &origin, &detail);
    zr_ctx_look_end(ctx, locked);
    *item = list_item(ZARR_REGISTRY_STORE, name, origin);
    item->detail = detail ? detail : "";
    return found;
}

static void list_stores(zarr_context *ctx, struct list_call *c)
{
    zarr_registry_item item;

    for (size_t i = 0; !c->stopped && store_row(ctx, i, &item); i++)
        list_emit(c, &item);
}

static void list_refused(const struct zr_refusal *row, struct list_call *c)
{
    for (; row->kind && !c->stopped; row++) {
        zarr_registry_item item =
            list_item(ZARR_REGISTRY_REFUSED, row->name, ZR_CTX_CORE);

        item.of = row->kind;
        item.detail = row->reason;
        list_emit(c, &item);
    }
}

static void list_plugins(zarr_context *ctx, struct list_call *c)
{
    const zarr_plugin *info = NULL;
    const char *path = NULL;

    for (size_t i = 0; !c->stopped && zr_plugins_get(ctx, i, &info, &path); i++) {
        zarr_registry_item item;

        if (!info) /* its load() failed */
            continue;
        item = list_item(ZARR_REGISTRY_PLUGIN, info->name, path);
        zr_str_clear(&c->detail);
        zr_str_printf(&c->detail, "%s%s%s", info->version ? info->version : "",
                      info->version && info->license ? "; " : "",
                      info->license ? info->license : "");
        item.detail = zr_str_text(&c->detail);
        list_emit(c, &item);
    }
}

static void tell_codec(const zarr_context *ctx, const zarr_codec_spec_vtable *vt,
                       struct list_call *c, zarr_registry_item *item)
{
    static const char *const kinds[] = {"", "array to array", "array to bytes",
                                        "bytes to bytes"};

    if (!vt)
        return;
    zr_str_puts(&c->detail, kinds[vt->kind < ZR_COUNT(kinds) ? vt->kind : 0]);
    if (zr_impl_absence_text(&ctx->impls, vt->name) && !zr_impl_has(&ctx->impls, vt))
        zr_str_printf(&c->detail, "; metadata only: %s",
                      zr_impl_absence_text(&ctx->impls, vt->name));
    for (size_t i = 0; vt->aliases && vt->aliases[i]; i++)
        word_if(&c->aliases, true, vt->aliases[i]);
    if (vt->flags & ZARR_CODEC_SPEC_EXPERIMENTAL)
        item->flags |= ZARR_ITEM_EXPERIMENTAL;
    if (!(vt->flags & ZARR_CODEC_SPEC_V3))
        item->v2 = vt->name;
    if (!(vt->flags & ZARR_CODEC_SPEC_V2))
        zr_str_printf(&c->v3, "%s%s",
                      vt->flags & ZARR_CODEC_SPEC_NUMCODECS ? "numcodecs." : "",
                      vt->name);
}

static void put_kinds(uint32_t kinds, struct zr_str *out)
{
    const char *comma = "";

    for (int32_t i = 0; i < 32; i++)
        if (kinds & ZARR_MEMORY_BIT(i)) {
            zr_str_printf(out, "%s%" PRId32, comma, i);
            comma = ",";
        }
}

static void tell_impl(const zarr_codec_impl_vtable *vt, struct list_call *c,
                      zarr_registry_item *item)
{
    const char *version =
        zr_streq(item->origin, ZR_CTX_CORE) ? zr_codecs_library_version(vt->impl) : NULL;
    static const struct {
        uint32_t cap;
        const char *word;
    } caps[] = {{ZARR_CODEC_CAN_DECODE, "decode"},
                {ZARR_CODEC_CAN_ENCODE, "encode"},
                {ZARR_CODEC_BATCH, "batch"},
                {ZARR_CODEC_SAFE, "safe"},
                {ZARR_CODEC_DETERMINISTIC, "deterministic"},
                {ZARR_CODEC_FOR_V2, "v2"},
                {ZARR_CODEC_FOR_V3, "v3"}};

    for (size_t i = 0; i < ZR_COUNT(caps); i++) {
        word_if(&c->capabilities, vt->caps & caps[i].cap, caps[i].word);
        if (caps[i].cap == ZARR_CODEC_BATCH) {
            word_if(&c->capabilities, vt->partial != NULL, "partial");
            word_if(&c->capabilities, vt->strided != NULL, "strided");
            word_if(&c->capabilities, vt->within != NULL, "within");
        }
    }
    item->of = vt->codec;
    item->in_kinds = vt->in_kinds;
    item->out_kinds = vt->out_kinds;
    item->priority = vt->priority;
    zr_str_printf(&c->detail, "%s; priority %" PRId32 "; memory ", vt->codec,
                  vt->priority);
    put_kinds(vt->in_kinds, &c->detail);
    zr_str_puts(&c->detail, " -> ");
    put_kinds(vt->out_kinds, &c->detail);
    if (version) /* the name of the implementation ends with that of the library */
        zr_str_printf(&c->detail, "; version %s", version);
}

static void tell_row(const zarr_context *ctx, const struct zr_ctx_row *row,
                     struct list_call *c, zarr_registry_item *item)
{
    if (row->registry == ZARR_REGISTRY_CODEC)
        tell_codec(ctx,
                   row->index ? zr_codec_spec_lookup_v2(&ctx->codecs, row->name)
                              : zr_codec_spec_lookup(&ctx->codecs, row->name),
                   c, item);
    else if (row->registry == ZARR_REGISTRY_CODEC_IMPL)
        tell_impl(&zr_impl_at(&ctx->impls, row->index)->vt, c, item);
    else if (row->registry == ZARR_REGISTRY_MEMORY) {
        const struct zr_backend *be =
            zr_backend_find_by_name(&ctx->memory, row->name, strlen(row->name));

        zr_str_printf(&c->detail, "%sdevice type %" PRIu32,
                      be && be->vt.flags & ZARR_MEMORY_ALLOCATOR ? "allocator for " : "",
                      row->index);
        item->device_type = (int32_t)row->index;
    } else if (row->registry == ZARR_REGISTRY_PIPELINE &&
               zr_streq(row->name, ctx->pipeline->name)) {
        item->flags |= ZARR_ITEM_DEFAULT;
        zr_str_puts(&c->detail, "default");
    } else if (row->registry == ZARR_REGISTRY_GRID ||
               row->registry == ZARR_REGISTRY_KEY_ENCODING)
        zr_str_puts(&c->v3, row->name);
}

/* Gives the next row of this registry at or after *at. Makes its texts while registration
 * is locked out. */
static bool next_row(zarr_context *ctx, uint32_t registry, size_t *at,
                     struct list_call *c, zarr_registry_item *item)
{
    const bool locked = zr_ctx_look_begin(ctx);
    struct zr_ctx_row row = {0};
    bool found = false;

    for (; *at < ctx->locked.n_rows && !found; (*at)++) {
        row = ctx->locked.rows[*at];
        found = row.registry == registry;
    }
    zr_str_clear(&c->detail);
    zr_str_clear(&c->v3);
    zr_str_clear(&c->aliases);
    zr_str_clear(&c->capabilities);
    if (found) {
        *item = list_item(registry, row.name, row.origin);
        tell_row(ctx, &row, c, item);
        item->detail = zr_str_text(&c->detail);
        item->v3 = zr_str_text(&c->v3);
        item->aliases = zr_str_text(&c->aliases);
        item->capabilities = zr_str_text(&c->capabilities);
    }
    zr_ctx_look_end(ctx, locked);
    return found;
}

static void list_rows(zarr_context *ctx, uint32_t registry, struct list_call *c)
{
    zarr_registry_item item = list_item(registry, "host", ZR_CTX_CORE);

    item.detail = "device type 1";
    item.device_type = ZARR_DEVICE_CPU;
    if (registry == ZARR_REGISTRY_MEMORY) /* the memory registry has it */
        list_emit(c, &item);
    for (size_t at = 0; !c->stopped && next_row(ctx, registry, &at, c, &item);)
        list_emit(c, &item);
}

static zarr_status list_texts_end(struct list_call *c, zarr_error *err)
{
    struct zr_str *const texts[] = {&c->detail, &c->v3, &c->aliases, &c->capabilities};
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < ZR_COUNT(texts); i++) {
        if (st == ZARR_OK)
            st = zr_str_status(texts[i], err);
        zr_str_deinit(texts[i]);
    }
    return st;
}

zarr_status zarr_context_list(zarr_context *ctx, uint32_t registry,
                              int (*fn)(void *user, const zarr_registry_item *item),
                              void *user, zarr_error *err)
{
    struct list_call c = {.fn = fn, .user = user};
    zarr_status st = ZARR_OK;

    ZR_NEED(ctx, err);
    if (registry > ZARR_REGISTRY_DEVICE)
        return zr_fail(err, ZARR_ERR_INVALID, "%" PRIu32 " is not a registry", registry);
    zr_str_init(&c.detail, ctx->alloc);
    zr_str_init(&c.v3, ctx->alloc);
    zr_str_init(&c.aliases, ctx->alloc);
    zr_str_init(&c.capabilities, ctx->alloc);
    for (uint32_t r = ZARR_REGISTRY_DTYPE; r <= ZARR_REGISTRY_DEVICE && !c.stopped; r++) {
        if (registry && r != registry)
            continue;
        if (r == ZARR_REGISTRY_DTYPE) {
            list_dtypes(ctx, &c);
        } else if (r == ZARR_REGISTRY_STORE) {
            list_stores(ctx, &c);
        } else if (r == ZARR_REGISTRY_REFUSED) {
            list_refused(zr_dtype_refused, &c);
            list_refused(zr_codec_refused, &c);
            list_refused(zr_grid_refused, &c);
        } else if (r == ZARR_REGISTRY_PLUGIN) {
            list_plugins(ctx, &c);
        } else if (r == ZARR_REGISTRY_DEVICE) {
            st = list_devices(ctx, list_emit, &c, err);
        } else {
            list_rows(ctx, r, &c);
        }
    }
    if (st != ZARR_OK) {
        (void)list_texts_end(&c, NULL);
        return st;
    }
    return list_texts_end(&c, err);
}
