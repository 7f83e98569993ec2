/*
 * store/local/device.c - values of the local store between files and memory of devices,
 * without a way through host memory. Only a store whose URL begins with "gds:" does so,
 * and only if the memory's backend reaches files on that file system. Otherwise the
 * store is as any other local store: the library reads into pinned memory.
 * Names, locks, replacement and durability are the same in both cases.
 * Thread class: any thread; zr_local_find_devices() solo.
 */
#include "store/local/local_int.h"

#include "sched/sched.h"

static void device_add(struct zr_local *l, int32_t device_type)
{
    if (l->n_device_types < ZR_COUNT(l->device_types))
        l->device_types[l->n_device_types++] = device_type;
}

void zr_local_find_devices(struct zr_local *l, const char *url)
{
    const struct zr_memory_registry *r = l->memory;
    bool found = false;
    zarr_error why;

    zr_fail(&why, ZARR_ERR_UNSUPPORTED, "no memory of a loaded plug-in reaches files");
    for (size_t i = 1; i < ZR_COUNT(r->by_type); i++) {
        const struct zr_backend *be = r->by_type[i];

        if (!be)
            continue;
        if (zr_device_is_host(r, (int32_t)i)) {
            device_add(l, (int32_t)i);
        } else if (be->vt.reaches_files &&
                   be->vt.reaches_files(be->self, l->root, &why) == ZARR_OK) {
            device_add(l, (int32_t)i);
            found = true;
            zr_log(&l->log, ZARR_LOG_INFO, "%s: \"%s\" memory reaches the files", url,
                   be->vt.name);
        }
    }
    if (found)
        return;
    zr_error_distrust(&why);
    l->n_device_types = 0; /* all kinds of host memory, as any local store */
    zr_log(&l->log, ZARR_LOG_WARN,
           "%s: no device reaches the files, so chunks go through host memory: %s", url,
           why.message);
}

/* Ends an operation with what a backend said. */
static zarr_status device_end(zarr_store_op *op, zarr_status st, zarr_error *own,
                              zarr_error *err)
{
    zr_error_distrust(own);
    if (st != ZARR_OK && own->code != st)
        zr_fail(own, st, "%s", zarr_status_text(st));
    if (st != ZARR_OK) {
        zr_prefix(own, st, "%s", op->key);
        zr_op_end(op, st, own->os_domain == ZARR_OS_ERRNO ? own->os_code : 0);
        if (err)
            *err = *own;
    }
    return st;
}

zarr_status zr_local_read_device(const struct zr_local *l, zarr_store_op *op, int fd,
                                 uint64_t offset, uint64_t n, zarr_error *err)
{
    const struct zr_backend *be;
    zarr_memory to;
    zarr_error own;
    zarr_status st = zr_backend_find(l->memory, op->mem.device_type, &be, err);

    if (st != ZARR_OK || !zr_mem_slice(&op->mem, 0, n, &to))
        return st != ZARR_OK ? st : zr_internal(err);
    zr_error_clear(&own);
    zr_block_begin();
    st = be->vt.read_file(be->self, fd, offset, &to, &op->up_bytes, &own);
    zr_block_end();
    return device_end(op, st, &own, err);
}

zarr_status zr_local_write_device(const struct zr_local *l, zarr_store_op *op, int fd,
                                  zarr_error *err)
{
    const struct zr_backend *be;
    zarr_error own;
    zarr_status st = zr_backend_find(l->memory, op->mem.device_type, &be, err);

    if (st != ZARR_OK)
        return zr_op_end(op, st, 0);
    zr_error_clear(&own);
    zr_block_begin();
    st = be->vt.write_file(be->self, fd, &op->mem, &op->down_bytes, &own);
    zr_block_end();
    return device_end(op, st, &own, err);
}
