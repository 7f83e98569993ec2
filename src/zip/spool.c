/*
 * zip/spool.c - a new archive for a store that reads no parts before their commit, as one
 * of a service: it is written to a temporary file without a name, and becomes a value
 * when it is complete. The store below gets it in one PUT of mapped memory, and divides
 * it if need be. After a PUT of unknown outcome a conflict may be with its own value: the
 * bytes tell.
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

#define SPOOL_BLOCK (UINT64_C(8) << 20)

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

/* Compares n bytes of a value with those at the file's beginning. CONFLICT: others. */
static zarr_status compare_bytes(const uint8_t *bytes, uint64_t n, zarr_store *store,
                                 zarr_store_op *op, uint8_t *block, zarr_error *err)
{
    for (op->offset = 0; op->offset < n; op->offset += op->length) {
        op->length = ZR_MIN(n - op->offset, SPOOL_BLOCK);
        op->mem = zr_mem_of_host(block, op->length);
        ZR_CHECK(zarr_store_run(store, op, err));
        if (op->done_bytes != op->length ||
            memcmp(block, bytes + op->offset, (size_t)op->length) != 0)
            return ZARR_ERR_CONFLICT;
    }
    return ZARR_OK;
}

/* Looks whether the value is from an earlier PUT, whose outcome was unknown. No version
 * or length alone tells that. *n, *version: of the value. CONFLICT: it is another one;
 * any other failure leaves that open. */
static zarr_status find_own_value(const struct zr_zip_spool *spool, const uint8_t *bytes,
                                  zarr_store *store, const zarr_store_op *put,
                                  uint64_t *n, zarr_store_version *version,
                                  zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = ZARR_STORE_OP_WANT_VERSION,
                        .key = put->key,
                        .cancel = put->cancel};
    void *block;
    zarr_status st;

    if (spool->tried == 0)
        return ZARR_ERR_CONFLICT;
    st = zarr_store_run(store, &op, err);
    if (st != ZARR_OK)
        return st == ZARR_ERR_NOT_FOUND ? ZARR_ERR_CONFLICT : st;
    if (op.object_bytes == 0 || op.object_bytes > spool->tried ||
        zr_store_version_is_none(&op.version))
        return ZARR_ERR_CONFLICT;
    block = mmap(NULL, SPOOL_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (block == MAP_FAILED)
        return zr_fail_memory(err, SPOOL_BLOCK);
    *n = op.object_bytes;
    *version = op.version;
    op.verb = ZARR_STORE_GET;
    op.flags = ZARR_STORE_OP_IF_VERSION;
    st = compare_bytes(bytes, *n, store, &op, block, err);
    (void)munmap(block, SPOOL_BLOCK);
    return st == ZARR_ERR_NOT_FOUND ? ZARR_ERR_CONFLICT : st;
}

static zarr_status put_again(struct zr_zip_spool *spool, const uint8_t *bytes,
                             zarr_store *store, zarr_store_op *op, zarr_error *err)
{
    zarr_store_version version;
    uint64_t n = 0;
    zarr_status st = find_own_value(spool, bytes, store, op, &n, &version, err);

    if (st != ZARR_OK)
        return st;
    op->version = version;
    return n == op->length ? ZARR_OK : zarr_store_run(store, op, err);
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
    if (st == ZARR_ERR_CONFLICT)
        st = put_again(spool, bytes, store, op, err);
    if (st == ZARR_OK) {
        spool->bytes = op->length;
        spool->version = op->version;
        spool->tried = 0;
    } else {
        spool->tried = ZR_MAX(spool->tried, op->length);
    }
    (void)munmap(bytes, n);
    return st;
}
