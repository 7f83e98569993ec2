/*
 * zip/spool.c - a new archive for a store that reads no parts before their commit, as one
 * of a service: it is written to a temporary file without a name, and becomes a value
 * when it is complete. The store below gets it in one PUT of mapped memory, and divides
 * it if need be.
 * Thread class: the busy thread; reads are shared.
 */
#include "zip/zip_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static zarr_status fail_spool(const char *what, int os_code, zarr_error *err)
{
    return zr_fail_os(err, ZARR_ERR_IO, os_code, "the temporary file of an archive: %s",
                      what);
}

zarr_status zr_zip_spool_open(struct zr_zip_spool *spool, const char *folder,
                              zarr_error *err)
{
    char path[4096];
    int os_code = 0;

    if ((size_t)snprintf(path, sizeof path, "%s/zarrc-zip-XXXXXX", folder) >= sizeof path)
        return fail_spool("the name of its folder is too long", ENAMETOOLONG, err);
    spool->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spool->fd < 0) { /* not every file system has it */
        spool->fd = mkostemp(path, O_CLOEXEC);
        os_code = errno;
        if (spool->fd < 0)
            return fail_spool("cannot make it", os_code, err);
        (void)unlink(path);
    }
    *spool = (struct zr_zip_spool){.is_open = true, .fd = spool->fd};
    return ZARR_OK;
}

void zr_zip_spool_close(struct zr_zip_spool *spool)
{
    if (spool->is_open)
        (void)close(spool->fd);
    spool->is_open = false;
}

zarr_status zr_zip_spool_write(const struct zr_zip_spool *spool, const zarr_memory *mem,
                               uint64_t at, zarr_error *err)
{
    const uint8_t *bytes = mem->handle; /* of the host */

    for (uint64_t done = 0; done < mem->bytes;) {
        const ssize_t n = pwrite(spool->fd, bytes + done,
                                 (size_t)ZR_MIN(mem->bytes - done, UINT64_C(1) << 30),
                                 (off_t)(at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_spool("cannot write", errno, err);
        done += (uint64_t)n;
    }
    return ZARR_OK;
}

zarr_status zr_zip_spool_read(const struct zr_zip_spool *spool, uint64_t at, uint64_t n,
                              void *to, zarr_error *err)
{
    for (uint64_t done = 0; done < n;) {
        const ssize_t got =
            pread(spool->fd, (uint8_t *)to + done,
                  (size_t)ZR_MIN(n - done, UINT64_C(1) << 30), (off_t)(at + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_spool("cannot read", errno, err);
        if (got == 0)
            return fail_spool("it is too short", EIO, err);
        done += (uint64_t)got;
    }
    return ZARR_OK;
}

zarr_status zr_zip_spool_put(struct zr_zip_spool *spool, zarr_store *store,
                             zarr_store_op *op, zarr_error *err)
{
    size_t n = 0;
    void *bytes;
    zarr_status st;

    if (!zr_fits(op->length, &n))
        return zr_fail_memory(err, op->length);
    bytes = mmap(NULL, n, PROT_READ, MAP_PRIVATE, spool->fd, 0);
    if (bytes == MAP_FAILED)
        return fail_spool("cannot map it", errno, err);
    op->mem = zr_mem_of_host(bytes, n);
    st = zarr_store_run(store, op, err);
    if (st == ZARR_OK) {
        spool->bytes = op->length;
        spool->version = op->version;
    }
    (void)munmap(bytes, n);
    return st;
}
