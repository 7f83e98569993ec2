/*
 * ctx/list.c - what a context knows, row by row: names, who brought them, and
 * one line of detail made when asked for. Data types and stores list
 * themselves; the other registries are told from the rows that register.c
 * keeps. The lock is never held while the caller's function runs, so that it
 * may call back.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

struct list_call {
    int (*fn)(void *user, const zarr_registry_item *item);
    void *user;
    bool stopped;
    struct zr_str detail;
};

static void list_emit(struct list_call *c, uint32_t registry, const char *name,
                      const char *origin, const char *detail)
{
    const zarr_registry_item item = {
        .struct_size = sizeof item,
        .registry = registry,
        .name = name,
        .origin = origin,
        .detail = detail,
    };

    c->stopped = c->fn(c->user, &item) != 0;
}

static int list_dtype_item(void *user, const zarr_registry_item *item)
{
    struct list_call *c = user;

    c->stopped = c->fn(c->user, item) != 0;
    return c->stopped;
}

static void list_stores(const zarr_context *ctx, struct list_call *c)
{
    for (size_t i = 0; i < zr_store_registry_count(ctx->stores) && !c->stopped; i++) {
        const char *name = NULL, *origin = NULL, *detail = NULL;

        zr_store_registry_item(ctx->stores, i, &name, &origin, &detail);
        list_emit(c, ZARR_REGISTRY_STORE, name, origin, detail ? detail : "");
    }
}

static void detail_codec(const zarr_codec_spec_vtable *vt, struct zr_str *out)
{
    static const char *const kinds[] = {"", "array to array", "array to bytes",
                                        "bytes to bytes"};

    if (!vt)
        return;
    zr_str_puts(out, kinds[vt->kind < ZR_COUNT(kinds) ? vt->kind : 0]);
    for (size_t i = 0; vt->aliases && vt->aliases[i]; i++)
        zr_str_printf(out, "%s %s", i ? "," : "; also", vt->aliases[i]);
}

static void detail_kinds(uint32_t kinds, struct zr_str *out)
{
    const char *comma = "";

    for (int32_t i = 0; i < 32; i++)
        if (kinds & ZARR_MEMORY_BIT(i)) {
            zr_str_printf(out, "%s%" PRId32, comma, i);
            comma = ",";
        }
}

static void detail_impl(const zarr_codec_impl_vtable *vt, struct zr_str *out)
{
    zr_str_printf(out, "%s;%s%s priority %" PRId32 "; memory ", vt->codec,
                  vt->caps & ZARR_CODEC_CAN_DECODE ? " decodes," : "",
                  vt->caps & ZARR_CODEC_CAN_ENCODE ? " encodes," : "", vt->priority);
    detail_kinds(vt->in_kinds, out);
    zr_str_puts(out, " -> ");
    detail_kinds(vt->out_kinds, out);
}

static void row_detail(const zarr_context *ctx, const struct zr_ctx_row *row,
                       struct zr_str *out)
{
    if (row->registry == ZARR_REGISTRY_CODEC)
        detail_codec(zr_codec_spec_lookup(&ctx->codecs, row->name), out);
    else if (row->registry == ZARR_REGISTRY_CODEC_IMPL)
        detail_impl(&ctx->impls.items[row->index]->vt, out);
    else if (row->registry == ZARR_REGISTRY_MEMORY)
        zr_str_printf(out, "device type %" PRIu32, row->index);
    else if (row->registry == ZARR_REGISTRY_PIPELINE &&
             zr_streq(row->name, ctx->pipeline->name))
        zr_str_puts(out, "default");
}

/* Row i of this registry at or after *at; the detail is made while the lock is held. */
static bool next_row(zarr_context *ctx, uint32_t registry, size_t *at,
                     struct zr_ctx_row *row, struct zr_str *detail)
{
    bool found = false;

    zr_mutex_lock(&ctx->locked.mutex);
    for (; *at < ctx->locked.n_rows && !found; (*at)++) {
        *row = ctx->locked.rows[*at];
        found = row->registry == registry;
    }
    zr_str_clear(detail);
    if (found)
        row_detail(ctx, row, detail);
    zr_mutex_unlock(&ctx->locked.mutex);
    return found;
}

static void list_rows(zarr_context *ctx, uint32_t registry, struct list_call *c)
{
    struct zr_ctx_row row = {0};

    /* The host backend comes with the memory registry. */
    if (registry == ZARR_REGISTRY_MEMORY)
        list_emit(c, registry, "host", ZR_CTX_CORE, "device type 1");
    for (size_t at = 0; !c->stopped && next_row(ctx, registry, &at, &row, &c->detail);)
        list_emit(c, registry, row.name, row.origin, zr_str_text(&c->detail));
}

zarr_status zarr_context_list(zarr_context *ctx, uint32_t registry,
                              int (*fn)(void *user, const zarr_registry_item *item),
                              void *user, zarr_error *err)
{
    struct list_call c = {.fn = fn, .user = user};
    zarr_status st = ZARR_OK;

    if (registry > ZARR_REGISTRY_PIPELINE)
        return zr_fail(err, ZARR_ERR_INVALID, "%" PRIu32 " is no registry", registry);
    zr_str_init(&c.detail, ctx->alloc);
    for (uint32_t r = ZARR_REGISTRY_DTYPE; r <= ZARR_REGISTRY_PIPELINE && !c.stopped;
         r++) {
        if (registry && r != registry)
            continue;
        if (r == ZARR_REGISTRY_DTYPE)
            (void)zr_dtype_list(&ctx->dtypes, list_dtype_item, &c);
        else if (r == ZARR_REGISTRY_STORE)
            list_stores(ctx, &c);
        else
            list_rows(ctx, r, &c);
    }
    st = zr_str_status(&c.detail, err);
    zr_str_deinit(&c.detail);
    return st;
}
