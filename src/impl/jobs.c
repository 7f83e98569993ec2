/*
 * impl/jobs.c - the loop in which the core's CPU implementations run. A batch is n
 * chunks, each with its own status. Only this file checks that memory is the host's and
 * turns it into pointers. A block of no bytes gets the address of an unused byte, because
 * some libraries refuse NULL. Thread class: plain functions.
 */
#include "impl/impl_int.h"

#include <string.h>

/* Plug-ins get arrays of it. */
_Static_assert(sizeof(void *) != 8 || sizeof(zarr_codec_job) == 88,
               "zarr_codec_job never grows");

static bool job_is_host(const zarr_memory *m)
{
    return m->device_type > 0 && m->device_type < 32 &&
           (ZARR_MEMORY_BIT(m->device_type) & ZR_HOST_KINDS) &&
           (m->handle || m->bytes == 0);
}

static zarr_status job_open(const zarr_codec_job *job, struct zr_host_job *io,
                            uint8_t *idle, zarr_error *err)
{
    if (!job_is_host(&job->src) || !job_is_host(&job->dst))
        return zr_fail(err, ZARR_ERR_MEMORY_KIND,
                       "a codec of the CPU got memory of device type %" PRId32,
                       job_is_host(&job->src) ? job->dst.device_type
                                              : job->src.device_type);
    if (!zr_fits(job->src.bytes, &io->src_bytes) ||
        !zr_fits(job->dst.bytes, &io->dst_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "a chunk does not fit this machine's addresses");
    io->src = io->src_bytes ? (const uint8_t *)job->src.handle + job->src.offset : idle;
    io->dst = io->dst_bytes ? (uint8_t *)job->dst.handle + job->dst.offset : idle;
    return ZARR_OK;
}

zarr_status zr_jobs_each(zr_host_job_fn fn, void *self, zarr_codec_job *jobs, uint64_t n,
                         zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status first = ZARR_OK;
    uint8_t idle = 0;

    for (uint64_t i = 0; i < n; i++) {
        zarr_error *text = first == ZARR_OK ? err : NULL;
        struct zr_host_job io = {0};
        size_t used = 0;

        jobs[i].dst_used = 0;
        jobs[i].status = job_open(&jobs[i], &io, &idle, text);
        if (jobs[i].status == ZARR_OK)
            jobs[i].status = fn(self, &io, &used, exec, text);
        if (jobs[i].status == ZR_NO_ROOM) {
            jobs[i].status = ZARR_ERR_CORRUPT;
            jobs[i].flags |= ZARR_CODEC_JOB_NO_ROOM;
        }
        if (jobs[i].status == ZARR_OK)
            jobs[i].dst_used = used;
        else if (first == ZARR_OK)
            first = jobs[i].status;
    }
    return first;
}

void *zr_self_new(const zarr_codec_spec *spec, size_t bytes, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    const zarr_allocator **self = zr_calloc(alloc, 1, bytes);

    if (self)
        *self = alloc;
    else
        (void)zr_fail_memory(err, bytes);
    return self;
}

void zr_self_free(void *self)
{
    if (self)
        zr_free(*(const zarr_allocator **)self, self);
}

zarr_status zr_too_long(zarr_error *err, const char *codec, size_t room)
{
    (void)zr_fail(err, ZARR_ERR_CORRUPT, "%s: more than %zu bytes", codec, room);
    return ZR_NO_ROOM;
}

bool zr_job_peek(const zarr_codec_job *job, uint64_t at, void *out, size_t n)
{
    if (!job_is_host(&job->src) || job->src.bytes < n || at > job->src.bytes - n || !n)
        return false;
    memcpy(out, (const uint8_t *)job->src.handle + job->src.offset + at, n);
    return true;
}

zarr_status zr_no_room(zarr_error *err, const char *codec)
{
    return zr_fail(err, ZARR_ERR_INTERNAL, "%s: no room for the encoded chunk", codec);
}
