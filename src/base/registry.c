/*
 * base/registry.c - one registry of a context: entries in the order of registration, and
 * their names. An entry is a copy of the registered table. If the table of an older
 * plug-in is shorter, the rest of the copy is NULL. Entries do not move when more are
 * added. A name that is taken fails with EXISTS, so nothing can replace a core entry.
 * Thread class: solo while it is filled, frozen once its owner sealed it.
 */
#include "base/base.h"

#include <string.h>

void zr_registry_init(struct zr_registry *r, const char *what,
                      const zarr_allocator *alloc, void (*close)(struct zr_registered *e))
{
    *r = (struct zr_registry){.what = what, .alloc = alloc, .close = close};
    zr_map_init(&r->names, alloc, NULL);
}

void zr_registry_deinit(struct zr_registry *r)
{
    zr_map_deinit(&r->names);
    while (r->n > 0) /* entries may use earlier ones */
        zr_registry_drop(r, r->entry[--r->n]);
    zr_free(r->alloc, r->entry);
    r->entry = NULL;
    r->cap = 0;
}

struct zr_registered *zr_registry_make(const struct zr_registry *r,
                                       const struct zr_registered *entry, size_t bytes,
                                       zarr_error *err)
{
    const char *name = entry->name ? entry->name : "";
    const char *origin = entry->origin ? entry->origin : "";
    const size_t name_bytes = strlen(name) + 1, origin_bytes = strlen(origin) + 1;
    char *block = zr_malloc(r->alloc, bytes + name_bytes + origin_bytes);
    struct zr_registered *e = (struct zr_registered *)(void *)block;

    if (!block) {
        (void)zr_fail_memory(err, bytes);
        return NULL;
    }
    memcpy(block, entry, bytes);
    memcpy(block + bytes, name, name_bytes);
    memcpy(block + bytes + name_bytes, origin, origin_bytes);
    e->name = entry->name ? block + bytes : NULL;
    e->origin = block + bytes + name_bytes;
    return e;
}

void zr_registry_drop(const struct zr_registry *r, struct zr_registered *e)
{
    if (e && r->close)
        r->close(e);
    zr_free(r->alloc, e);
}

zarr_status zr_registry_refuse_taken(const struct zr_registry *r, const char *name,
                                     const char *alias, const struct zr_registered *had,
                                     zarr_error *err)
{
    if (!had)
        return ZARR_OK;
    if (!alias)
        return zr_fail(err, ZARR_ERR_EXISTS, "%s \"%s\" is registered already, by %s",
                       r->what, name, had->origin);
    return zr_fail(err, ZARR_ERR_EXISTS, "%s \"%s\": alias \"%s\" is taken, by %s",
                   r->what, name, alias, had->origin);
}

static zarr_status registry_check(const struct zr_registry *r, const char *name,
                                  const char *const *aliases, zarr_error *err)
{
    if (name) {
        ZR_CHECK(zr_check_name(r->what, name, err));
        ZR_CHECK(zr_registry_refuse_taken(r, name, NULL, zr_registry_find(r, name), err));
    }
    for (; aliases && *aliases; aliases++) {
        ZR_CHECK(zr_check_name(r->what, *aliases, err));
        ZR_CHECK(zr_registry_refuse_taken(r, name ? name : "", *aliases,
                                          zr_registry_find(r, *aliases), err));
    }
    return ZARR_OK;
}

static void registry_forget(struct zr_registry *r, const char *name,
                            const char *const *aliases)
{
    if (name)
        (void)zr_map_remove(&r->names, name);
    for (; aliases && *aliases; aliases++)
        (void)zr_map_remove(&r->names, *aliases);
}

zarr_status zr_registry_put(struct zr_registry *r, struct zr_registered *e,
                            const char *const *aliases, zarr_error *err)
{
    zarr_status st = registry_check(r, e->name, aliases, err);

    if (st != ZARR_OK)
        return st;
    ZR_TRY(zr_grow(r->alloc, &r->entry, &r->cap, r->n + 1, sizeof(struct zr_registered *),
                   err));
    if (e->name)
        ZR_TRY(zr_map_put(&r->names, e->name, e, err));
    for (size_t i = 0; aliases && aliases[i]; i++)
        ZR_TRY(zr_map_put(&r->names, aliases[i], e, err));
    r->entry[r->n++] = e; /* moved */
out:
    if (st != ZARR_OK)
        registry_forget(r, e->name, aliases);
    return st;
}

zarr_status zr_registry_add(struct zr_registry *r, const struct zr_registered *entry,
                            size_t bytes, const char *const *aliases, zarr_error *err)
{
    struct zr_registered *e = zr_registry_make(r, entry, bytes, err);
    zarr_status st = e ? zr_registry_put(r, e, aliases, err) : ZARR_ERR_NO_MEMORY;

    if (st != ZARR_OK) /* the caller still owns what the entry owns */
        zr_free(r->alloc, e);
    return st;
}

struct zr_registered *zr_registry_find(const struct zr_registry *r, const char *name)
{
    return zr_map_get(&r->names, name);
}
