/*
 * mem/registry.c - the memory kinds: one backend for each of DLPack's device numbers,
 * also one for the host; allocators beside them; and the only place where a handle
 * becomes a pointer. All other code that touches bytes asks here first. A fake device
 * with faulting pages proves that in the tests. Thread class: filled by one thread, then
 * frozen.
 */
#include "mem/mem_int.h"

#include <string.h>

/* Applications and plug-ins have arrays of it. */
_Static_assert(sizeof(void *) != 8 || sizeof(zarr_memory) == 32,
               "zarr_memory never grows");

#define HOST_ACCESS (ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE)

static void backend_close(struct zr_registered *e)
{
    struct zr_backend *be = (void *)e;

    if (be->vt.close)
        be->vt.close(be->self);
}

/* ---- which backend allocates ---- */

/* Takes the next name of a list; returns false after the last. */
static bool wanted_next(const char **list, const char **name, size_t *bytes)
{
    while (*list && (**list == ';' || **list == ' '))
        ++*list;
    if (!*list || !**list)
        return false;
    *name = *list;
    *bytes = strcspn(*list, "; ");
    *list += *bytes;
    return true;
}

const struct zr_backend *zr_backend_find_by_name(const struct zr_memory_registry *r,
                                                 const char *name, size_t bytes)
{
    for (size_t i = 0; i < r->kinds.n; i++) {
        const char *has = r->kinds.entry[i]->name;

        if (strlen(has) == bytes && memcmp(has, name, bytes) == 0)
            return (const void *)r->kinds.entry[i];
    }
    return NULL;
}

/* Chooses the first of the wanted names that is registered for this kind. */
static void registry_choose(struct zr_memory_registry *r, int32_t device_type)
{
    const char *list = r->wanted, *name = NULL;
    size_t bytes = 0;

    while (wanted_next(&list, &name, &bytes)) {
        const struct zr_backend *be = zr_backend_find_by_name(r, name, bytes);

        if (be && be->vt.device_type == device_type) {
            r->allocator[device_type] = be;
            return;
        }
    }
}

void zr_memory_choose(struct zr_memory_registry *r, const char *names)
{
    r->wanted = names;
}

void zr_memory_each_missing(const struct zr_memory_registry *r,
                            void (*fn)(void *user, const char *name, size_t bytes),
                            void *user)
{
    const char *list = r->wanted, *name = NULL;
    size_t bytes = 0;

    while (wanted_next(&list, &name, &bytes))
        if (!zr_backend_find_by_name(r, name, bytes))
            fn(user, name, bytes);
}

const struct zr_backend *zr_backend_allocator(const struct zr_memory_registry *r,
                                              const struct zr_backend *be)
{
    const struct zr_backend *chosen = r->allocator[be->vt.device_type];

    return chosen ? chosen : be;
}

static zarr_status backend_add(struct zr_memory_registry *r, const zarr_memory_vtable *v,
                               void *self, const char *origin, zarr_error *err)
{
    const struct zr_backend be = {
        .entry = {.name = v->name, .origin = origin}, .vt = *v, .self = self};

    ZR_CHECK(zr_registry_add(&r->kinds, &be.entry, sizeof be, NULL, err));
    if (!(v->flags & ZARR_MEMORY_ALLOCATOR))
        r->by_type[v->device_type] = (void *)zr_registry_find(&r->kinds, v->name);
    registry_choose(r, v->device_type);
    return ZARR_OK;
}

zarr_status zr_memory_registry_init(struct zr_memory_registry *r,
                                    const zarr_allocator *alloc, zarr_error *err)
{
    zarr_memory_vtable v;

    *r = (struct zr_memory_registry){.alloc = alloc};
    zr_registry_init(&r->kinds, "memory backend", alloc, backend_close);
    zr_host_vtable(&v);
    /* The host's self is the allocator itself; it is never written through. */
    return backend_add(r, &v, (void *)(uintptr_t)(const void *)alloc, "core", err);
}

void zr_memory_registry_deinit(struct zr_memory_registry *r)
{
    zr_registry_deinit(&r->kinds);
    memset(r->by_type, 0, sizeof r->by_type);
    memset(r->allocator, 0, sizeof r->allocator);
}

static zarr_status backend_check(const struct zr_memory_registry *r,
                                 const zarr_memory_vtable *v, zarr_error *err)
{
    const char *name = v->name;
    const bool allocator = (v->flags & ZARR_MEMORY_ALLOCATOR) != 0;
    zarr_status st = zr_check_name("memory backend", v->name, err);

    if (st != ZARR_OK)
        return st;
    if (!v->alloc || !v->free || (!v->copy && !allocator))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "memory backend \"%s\" lacks alloc, free or copy", name);
    if (allocator && v->device_type == ZARR_DEVICE_CPU)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "memory backend \"%s\": host memory has no other allocator than "
                       "the context's",
                       name);
    if (v->reaches_files && (!v->read_file || !v->write_file))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "memory backend \"%s\" lacks read_file or write_file", name);
    if (v->device_type < 1 || (size_t)v->device_type >= ZR_COUNT(r->by_type))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "memory backend \"%s\": device type %" PRId32 " is not in 1..%zu",
                       name, v->device_type, ZR_COUNT(r->by_type) - 1);
    if (v->alignment & (v->alignment - 1))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "memory backend \"%s\": alignment %" PRIu32
                       " is not a power of two",
                       name, v->alignment);
    for (size_t i = 0; i < ZR_COUNT(r->by_type); i++) {
        const struct zr_backend *old = r->by_type[i];

        if (old && !allocator && i == (size_t)v->device_type)
            return zr_fail(err, ZARR_ERR_EXISTS,
                           "memory backend \"%s\": device type %" PRId32
                           " is \"%s\" of %s already",
                           name, v->device_type, old->vt.name, old->entry.origin);
        if (old && zr_streq(old->vt.name, name))
            return zr_fail(err, ZARR_ERR_EXISTS,
                           "memory backend \"%s\": the name is taken by device type "
                           "%zu of %s",
                           name, i, old->entry.origin);
    }
    return ZARR_OK;
}

zarr_status zr_memory_register(struct zr_memory_registry *r, const zarr_memory_vtable *v,
                               void *self, const char *origin, zarr_error *err)
{
    zarr_memory_vtable own;

    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "memory backend without a table");
    ZR_CHECK(zr_struct_read(&own, sizeof own, ZR_SIZE_THROUGH(zarr_memory_vtable, close),
                            v, ZR_TAIL_IGNORE, "zarr_memory_vtable", err));
    if (own.alignment == 0)
        own.alignment = (uint32_t)ZR_HOST_ALIGN_BYTES;
    ZR_CHECK(backend_check(r, &own, err));
    return backend_add(r, &own, self, origin, err);
}

zarr_status zr_backend_find(const struct zr_memory_registry *r, int32_t device_type,
                            const struct zr_backend **out, zarr_error *err)
{
    *out = NULL;
    if (device_type > 0 && (size_t)device_type < ZR_COUNT(r->by_type))
        *out = r->by_type[device_type];
    if (*out)
        return ZARR_OK;
    zr_backend_fail_missing(device_type, err);
    return ZARR_ERR_UNSUPPORTED;
}

bool zr_device_is_host(const struct zr_memory_registry *r, int32_t device_type)
{
    const struct zr_backend *be;

    if (device_type == ZARR_DEVICE_CPU) /* asked several times for each chunk */
        return true;
    return zr_backend_find(r, device_type, &be, NULL) == ZARR_OK &&
           (be->vt.flags & HOST_ACCESS) == HOST_ACCESS;
}

zarr_status zr_mem_host_ptr(const struct zr_memory_registry *r, const zarr_memory *mem,
                            uint64_t bytes, void **out, zarr_error *err)
{
    const struct zr_backend *be;
    uint64_t end;

    *out = NULL;
    ZR_CHECK(zr_backend_find(r, mem->device_type, &be, err));
    if ((be->vt.flags & HOST_ACCESS) != HOST_ACCESS)
        return zr_fail(err, ZARR_ERR_MEMORY_KIND, "the host cannot touch \"%s\" memory",
                       be->vt.name);
    if (bytes > mem->bytes || (bytes && !mem->handle) ||
        !zr_add((uint64_t)(uintptr_t)mem->handle, mem->offset, &end) ||
        !zr_add(end, bytes, &end) || end > UINTPTR_MAX)
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "internal error: %" PRIu64 " bytes at %" PRIu64
                       " of a run of %" PRIu64,
                       bytes, mem->offset, mem->bytes);
    if (mem->handle)
        *out = (uint8_t *)mem->handle + mem->offset;
    return ZARR_OK;
}

zarr_memory zr_mem_of_host(void *p, uint64_t bytes)
{
    return (zarr_memory){.device_type = ZARR_DEVICE_CPU, .handle = p, .bytes = bytes};
}

bool zr_mem_slice(const zarr_memory *mem, uint64_t offset, uint64_t bytes,
                  zarr_memory *out)
{
    zarr_memory part = *mem;
    uint64_t end;

    if (!zr_add(offset, bytes, &end) || end > mem->bytes ||
        !zr_add(mem->offset, offset, &part.offset))
        return false;
    part.bytes = bytes;
    *out = part;
    return true;
}

void zr_mem_classify(const struct zr_memory_registry *r, const void *pointer,
                     int32_t *device_type, int32_t *device_id)
{
    for (size_t i = 0; pointer && i < r->kinds.n; i++)
        if (zr_backend_classify((const void *)r->kinds.entry[i], pointer, device_type,
                                device_id))
            return;
    *device_type = ZARR_DEVICE_CPU;
    *device_id = 0;
}
