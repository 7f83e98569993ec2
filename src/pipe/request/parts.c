/*
 * pipe/request/parts.c - several selections in one request. The plan gives each chunk
 * once, with a target for each part that touches it. A chunk that fails is the failure of
 * these parts only, and the request goes on. Of the failures of a part, the one of its
 * first chunk counts, whatever the number of threads. Thread class: on the worker
 * context; parts are under the request's lock.
 */
#include "pipe/request/request.h"

void zr_parts_begin(struct zarr_request *rq)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++)
        rq->io.parts[i].status = ZARR_OK;
}

/* A shard that was replaced meanwhile makes the whole read begin again, a few times. */
bool zr_parts_take(const struct zarr_request *rq, zarr_status st)
{
    return rq->io.parts && st != ZARR_OK && st != ZARR_ERR_CANCELLED &&
           (st != ZARR_ERR_CONFLICT || rq->last_try);
}

void zr_part_fail(struct zarr_request *rq, uint32_t i, zarr_status st,
                  const zarr_error *err, uint64_t ordinal)
{
    struct zr_part *part = &rq->io.parts[i];

    zr_request_lock(rq);
    if (part->status == ZARR_OK || ordinal < part->ordinal) {
        part->status = st;
        part->ordinal = ordinal;
        part->error = *err;
    }
    zr_request_unlock(rq);
}

void zr_parts_fail(struct zarr_request *rq, const struct zr_projection *p, zarr_status st,
                   const zarr_error *err, uint64_t ordinal)
{
    for (; p; p = p->next)
        zr_part_fail(rq, p->part, st, err, ordinal);
}

zarr_status zr_parts_status(const struct zarr_request *rq, zarr_error *err)
{
    const struct zr_part *first = NULL;

    for (uint32_t i = 0; i < rq->io.n_parts; i++) {
        const struct zr_part *part = &rq->io.parts[i];

        if (part->status != ZARR_OK && (!first || part->number < first->number))
            first = part;
    }
    if (!first)
        return ZARR_OK;
    *err = first->error;
    err->item = first->number;
    return first->status;
}

void zr_parts_fail_all(struct zarr_request *rq, zarr_status st, const zarr_error *err)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++)
        zr_part_fail(rq, i, st, err, UINT64_MAX);
}

void zr_parts_tell(const struct zarr_request *rq)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++) {
        struct zr_part *part = &rq->io.parts[i];

        *part->status_to = part->status;
        if (part->status == ZARR_OK || !part->error_to)
            continue;
        zr_error_mark_path(&part->error, rq->io.prefix);
        *part->error_to = part->error;
    }
}
