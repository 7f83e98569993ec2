/*
 * ctx/devices.c - lists the devices of each kind of memory, as the backends describe
 * them. A driver may take long to answer, so it is asked without the register lock.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

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

zarr_status zr_ctx_devices_list(zarr_context *ctx,
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
