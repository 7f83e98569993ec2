/*
 * cuda/pair.c - pairs of blocks: pinned host memory, and device memory of the same size.
 * Descriptions go up in them, and results come down. A device keeps those that are not in
 * use, so a steady state allocates nothing. Thread class: shared.
 */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    PAIR_LEAST_BYTES = 256 * 1024
};

pthread_mutex_t pairs_mutex = PTHREAD_MUTEX_INITIALIZER; /* of the lists of all devices */

void pair_free(struct pair *p)
{
    struct cuda_device *d = p->device;

    if (p->host && !atomic_load(&d->lost))
        (void)cuda.cuMemFreeHost(p->host);
    device_free(d, p->at);
    free(p);
}

static zarr_status pair_new(struct cuda_device *d, uint64_t bytes, struct pair **out,
                            zarr_error *err)
{
    struct pair *p = calloc(1, sizeof *p);
    void *host = NULL;
    zarr_status st;

    if (!p)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a list");
    p->device = d;
    p->bytes = PAIR_LEAST_BYTES;
    while (p->bytes < bytes)
        p->bytes *= 2;
    st = device_check(
        d, err, "pinned memory",
        cuda.cuMemHostAlloc(&host, (size_t)p->bytes, CU_MEMHOSTALLOC_PORTABLE));
    p->host = host;
    if (st == ZARR_OK)
        st = device_alloc(d, p->bytes, &p->at, err);
    if (st != ZARR_OK)
        pair_free(p);
    else
        *out = p;
    return st;
}

zarr_status pair_take(struct cuda_device *d, uint64_t bytes, struct pair **out,
                      zarr_error *err)
{
    struct pair **at, *p;

    *out = NULL;
    if (bytes > UINT64_C(1) << 40)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: a list is too long");
    lock_take(&pairs_mutex);
    for (at = &d->pairs; *at && (*at)->bytes < bytes; at = &(*at)->next)
        ;
    p = *at;
    if (p)
        *at = p->next;
    lock_give(&pairs_mutex);
    if (!p)
        return pair_new(d, bytes, out, err);
    p->next = NULL;
    p->used = p->sent = 0;
    *out = p;
    return ZARR_OK;
}

void pair_give(struct pair *p)
{
    struct cuda_device *d = p->device;

    lock_take(&pairs_mutex);
    p->next = d->pairs;
    d->pairs = p;
    lock_give(&pairs_mutex);
}
