/*
 * ports/opencl/blosc.c - a decoder of blosc frames with lz4 inside, without bit shuffle.
 * The host reads the headers, so the encoded chunks are in host memory, and the decoder
 * brings them to the device itself. Other frames are refused.
 *
 * Format: Blosc 1 chunk format (README_CHUNK_FORMAT.rst of c-blosc).
 */
#include "device.h"

#include <stdlib.h>

enum {
    HEADER = 16,
    SHUFFLED = 1,
    STORED = 2,
    BIT_SHUFFLED = 4,
    NOT_SPLIT = 16,
    FORMAT_LZ4 = 1,
    SPLIT_LEAST_BYTES = 128, /* of a stream; blosc splits no block into shorter ones */
    SPLIT_MOST = 16
};

struct frame {
    const uint8_t *at;
    uint64_t bytes; /* encoded */
    uint32_t flags, item_bytes, decoded, block;
    uint64_t n_blocks;
};

static uint32_t le32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* False: the frame is damaged. */
static int frame_read(struct frame *f, const zarr_codec_job *job)
{
    const uint8_t *p = host_pointer(&job->src);

    if (job->src.bytes < HEADER)
        return 0;
    *f = (struct frame){.at = p,
                        .bytes = job->src.bytes,
                        .flags = p[2],
                        .item_bytes = p[3],
                        .decoded = le32(p + 4),
                        .block = le32(p + 8)};
    if (f->decoded != job->dst.bytes || le32(p + 12) > f->bytes)
        return 0;
    f->bytes = le32(p + 12);
    if (f->flags & STORED)
        return f->bytes >= HEADER + (uint64_t)f->decoded;
    if (f->block == 0)
        return f->decoded == 0;
    f->n_blocks = ((uint64_t)f->decoded + f->block - 1) / f->block;
    return f->bytes >= HEADER && f->n_blocks <= (f->bytes - HEADER) / 4;
}

static int blosc_accepts(void *self, const zarr_codec_job *job)
{
    const uint8_t *p = host_pointer(&job->src);
    const uint64_t *decoded = self;

    if (on_device(&job->src) || job->src.bytes < HEADER ||
        job->src.bytes > HEADER + *decoded)
        return 0;
    return (p[2] & STORED) || (p[2] >> 5 == FORMAT_LZ4 && !(p[2] & BIT_SHUFFLED));
}

/* ---- a batch -------------------- */

/* What one launch of each kernel does for all chunks. `scratch` has the encoded chunks
 * and, behind these, the blocks as LZ4 gives them. */
struct work {
    struct lane *lane;
    zarr_codec_job *jobs;
    uint64_t n;
    zarr_mem scratch;
    uint64_t used;   /* bytes of it */
    zarr_mem *up;    /* encoded chunks on the device */
    uint64_t *first; /* first of each job's planes; n + 1 entries */
    struct k_stream *streams;
    uint64_t n_streams, streams_room;
    uint64_t *job; /* of each stream */
    struct k_planes *planes;
    uint64_t n_planes, planes_room;
    struct decoding *decoding;
};

static void *grown(void *list, uint64_t n, uint64_t *room, size_t item)
{
    if (n < *room)
        return list;
    *room = *room ? 2 * *room : 256;
    return realloc(list, (size_t)*room * item);
}

static zarr_status add_stream(struct work *w, uint64_t job, const struct k_stream *s,
                              zarr_error *err)
{
    uint64_t room = w->streams_room;
    void *streams = grown(w->streams, w->n_streams, &room, sizeof *w->streams);
    void *jobs;

    if (streams)
        w->streams = streams;
    room = w->streams_room;
    jobs = streams ? grown(w->job, w->n_streams, &room, sizeof *w->job) : NULL;
    if (!jobs)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    w->job = jobs;
    w->streams_room = room;
    w->streams[w->n_streams] = *s;
    w->streams[w->n_streams].number = (k_u32)w->n_streams;
    w->job[w->n_streams++] = job;
    return ZARR_OK;
}

static zarr_status add_planes(struct work *w, const struct k_planes *p, zarr_error *err)
{
    void *planes = grown(w->planes, w->n_planes, &w->planes_room, sizeof *p);

    if (!planes)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    w->planes = planes;
    w->planes[w->n_planes++] = *p;
    return ZARR_OK;
}

static zarr_status frame_damaged(struct work *w, uint64_t i, zarr_error *err)
{
    const zarr_status first = w->jobs[i].status;

    w->jobs[i].status = ZARR_ERR_CORRUPT;
    if (err)
        err->item = i;
    return first == ZARR_OK
               ? host->fail(err, ZARR_ERR_CORRUPT, "blosc: the frame is damaged")
               : first;
}

/* The streams of one block: one for each byte of an element if it is split. */
static zarr_status block_add(struct work *w, uint64_t i, const struct frame *f,
                             uint64_t k, zarr_error *err)
{
    const int rest = k + 1 == f->n_blocks && f->decoded % f->block != 0;
    const uint32_t bytes = rest ? f->decoded % f->block : f->block;
    const int split = !(f->flags & NOT_SPLIT) && !rest && f->item_bytes > 0 &&
                      f->item_bytes <= SPLIT_MOST &&
                      f->block / f->item_bytes >= SPLIT_LEAST_BYTES;
    const uint32_t n = split ? f->item_bytes : 1, each = bytes / n;
    uint64_t at = le32(f->at + HEADER + 4 * k);
    const struct k_planes planes = {.src = w->scratch.offset + w->used,
                                    .dst = w->jobs[i].dst.offset + k * f->block,
                                    .bytes = bytes,
                                    .item_bytes =
                                        f->flags & SHUFFLED ? f->item_bytes : 1};
    zarr_status st = add_planes(w, &planes, err);

    for (uint32_t s = 0; s < n && st == ZARR_OK; s++) {
        const uint32_t encoded = at + 4 <= f->bytes ? le32(f->at + at) : UINT32_MAX;
        const struct k_stream stream = {.src = w->up[i].offset + at + 4,
                                        .src_bytes = encoded,
                                        .dst = planes.src + (uint64_t)s * each,
                                        .dst_bytes = each,
                                        .how = encoded == each ? K_STORED : K_LZ4};

        if (at + 4 > f->bytes || encoded > f->bytes - at - 4 || each * n != bytes)
            return frame_damaged(w, i, err);
        st = add_stream(w, i, &stream, err);
        at += 4 + (uint64_t)encoded;
    }
    w->used += bytes;
    return st;
}

static zarr_status frame_add(struct work *w, uint64_t i, zarr_error *err)
{
    zarr_codec_job *job = &w->jobs[i];
    struct frame f;
    zarr_status st = ZARR_OK;

    job->dst_used = job->dst.bytes;
    if (!frame_read(&f, job))
        return frame_damaged(w, i, err);
    if (f.flags & STORED) {
        const struct k_planes planes = {.src = w->up[i].offset + HEADER,
                                        .dst = job->dst.offset,
                                        .bytes = f.decoded,
                                        .item_bytes = 1};

        return add_planes(w, &planes, err);
    }
    for (uint64_t k = 0; k < f.n_blocks && st == ZARR_OK; k++)
        st = block_add(w, i, &f, k, err);
    return st;
}

/* Places of the encoded chunks in the scratch memory, and their copies to it. */
static zarr_status bring_up(struct work *w, zarr_error *err)
{
    zarr_mem *from = malloc((size_t)w->n * sizeof *from);
    zarr_status st;

    if (!from)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    for (uint64_t i = 0; i < w->n; i++) {
        from[i] = w->jobs[i].src;
        w->up[i] = w->scratch;
        w->up[i].offset += w->used;
        w->up[i].bytes = from[i].bytes;
        w->used += from[i].bytes;
    }
    st = copy_runs(w->lane, w->up, from, w->n, err);
    free(from);
    return st;
}

/* A failed chunk does not stop the others: its streams are left out. */
static zarr_status frames_add(struct work *w, zarr_status *damage, zarr_error *err)
{
    for (uint64_t i = 0; i < w->n; i++) {
        const uint64_t n_streams = w->n_streams, n_planes = w->n_planes;
        const uint64_t used = w->used;
        zarr_error own = ZARR_ERROR_INIT;
        zarr_status st;

        w->first[i] = n_planes;
        st = frame_add(w, i, &own);
        if (st != ZARR_OK && (*damage == ZARR_OK || st != ZARR_ERR_CORRUPT) && err)
            *err = own;
        if (st != ZARR_OK && st != ZARR_ERR_CORRUPT)
            return st;
        if (st == ZARR_OK)
            continue;
        *damage = st;
        w->n_streams = n_streams;
        w->n_planes = n_planes;
        w->used = used;
    }
    w->first[w->n] = w->n_planes;
    return ZARR_OK;
}

static zarr_status unshuffle_all(struct work *w, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0, k; i < w->n && st == ZARR_OK; i = k) {
        cl_mem dst = w->jobs[i].dst.handle;

        for (k = i + 1; k < w->n && w->jobs[k].dst.handle == dst; k++)
            ;
        if (w->first[k] > w->first[i])
            st =
                unshuffle_launch(w->lane, dst, w->scratch.handle, &w->planes[w->first[i]],
                                 w->first[k] - w->first[i], err);
    }
    return st;
}

static zarr_status work_queue(struct work *w, zarr_status *damage, zarr_error *err)
{
    zarr_status st = bring_up(w, err);

    if (st == ZARR_OK)
        st = frames_add(w, damage, err);
    if (st == ZARR_OK)
        st = decoding_begin(&w->decoding, w->lane->device, w->n_streams, err);
    for (uint64_t i = 0; i < w->n_streams && st == ZARR_OK; i++)
        w->decoding->job[i] = w->job[i];
    if (st == ZARR_OK && w->n_streams > 0)
        st = decoding_launch(w->lane, w->scratch.handle, w->scratch.handle, w->streams,
                             w->n_streams, w->decoding, err);
    if (st == ZARR_OK)
        st = unshuffle_all(w, err);
    if (st == ZARR_OK && w->n_streams > 0)
        st = decoding_read(w->lane, w->decoding, err);
    return st;
}

static zarr_status blosc_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                zarr_codec_exec *exec, zarr_error *err)
{
    struct work w = {.jobs = jobs,
                     .n = n,
                     .scratch = exec->scratch,
                     .up = malloc((size_t)n * sizeof *w.up),
                     .first = malloc((size_t)(n + 1) * sizeof *w.first)};
    zarr_status st = ZARR_OK, damage = ZARR_OK, end = ZARR_OK;

    (void)self;
    if (!w.up || !w.first)
        st = host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a batch");
    else
        st = lane_begin(device_get(), &w.lane, err);
    if (w.lane)
        st = lane_end(w.lane, work_queue(&w, &damage, err), err);
    if (w.decoding)
        end = decoding_end(w.decoding, jobs, "blosc",
                           st == ZARR_OK && damage == ZARR_OK ? err : NULL);
    free(w.up);
    free(w.first);
    free(w.streams);
    free(w.job);
    free(w.planes);
    if (st != ZARR_OK)
        return fail_all(jobs, n, st);
    return damage != ZARR_OK ? damage : end;
}

/* ---- the table -------------------- */

/* `self` is the decoded length. */
static zarr_status blosc_bind(void **self, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    uint64_t *bytes = malloc(sizeof *bytes);

    (void)spec;
    if (!bytes)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "opencl: no memory for a codec");
    *bytes = to->decoded->n_bytes;
    *self = bytes;
    return ZARR_OK;
}

static uint64_t blosc_scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    return n * (2 * max_out + HEADER);
}

const zarr_codec_impl_vtable opencl_blosc = {
    .struct_size = sizeof opencl_blosc,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_SAFE |
            ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "blosc",
    .impl = "opencl.blosc",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_OPENCL),
    .priority = 10,
    .bind = blosc_bind,
    .accepts = blosc_accepts,
    .scratch = blosc_scratch,
    .decode = blosc_decode,
    .close = free};
