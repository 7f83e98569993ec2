/*
 * port/port_int.h - what the files of the room share: a call of a codec from its lane to
 * its statuses, jobs ordered by their buffers, and launches.
 */
#ifndef PORT_INT_H
#define PORT_INT_H

#include "port.h"

/* Of codecs that decode and encode all chunks of a call, of both formats, on a stream. */
#define PORT_BOTH_WAYS                                                                   \
    (ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |                  \
     ZARR_CODEC_ASYNC | ZARR_CODEC_SAFE | ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2 | \
     ZARR_CODEC_FOR_V3)

/* What a call leaves on a stream for settle(). */
struct port_pending {
    const char *codec;
    uint64_t n;                  /* jobs */
    struct port_block status;    /* of the jobs, by kernels; without bytes: none */
    struct port_block sizes;     /* encoding: bytes of the outputs, or 0 for too many */
    uint32_t *early;             /* K_ statuses that the host found; NULL: none */
    void *inner[PORT_N_FORMATS]; /* of port_decoder */
    int declines;                /* damage, too: the next implementation judges it */
};

/* A call of encode() or decode(). */
struct port_call {
    struct port_lane *lane;
    void *self;
    zarr_codec_job *jobs;
    uint64_t n;
    zarr_codec_exec *exec;
    struct port_pending *pending;
};

/* A job with its number and its places. */
struct port_item {
    zarr_codec_job *job;
    uint64_t number;
    struct port_place src, dst;
};
typedef zarr_status (*port_group_fn)(struct port_call *c, const struct port_item *items,
                                     uint64_t n, zarr_error *err);

/* What kernels write for each job. */
enum port_results {
    PORT_NO_RESULTS,
    PORT_STATUSES, /* K_ statuses */
    PORT_SIZES     /* lengths of outputs; 0: it did not fit, and other code encodes it */
};
/* A codec: its name for messages, and what queues the work of a call and sets `dst_used`
 * of each job: group(), for each group of jobs with the same two buffers, or if that is
 * NULL queue(), for the whole call. */
struct port_codec {
    const char *name;
    enum port_results results;
    port_group_fn group;
    zarr_status (*queue)(struct port_call *c, zarr_error *err);
};
zarr_status port_run(const struct port_codec *codec, void *self, zarr_codec_job *jobs,
                     uint64_t n, zarr_codec_exec *exec, zarr_error *err);
/* settle() of all codecs. */
zarr_status port_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err);

/* A status that the host found; the first one of a job counts. */
void port_note_status(struct port_call *c, uint64_t job, uint32_t status);

zarr_status port_no_memory(zarr_error *err);

/* Makes the list of all jobs, in which those with the same two buffers are neighbours;
 * the caller frees it. Jobs with `src` on the host have the place {NULL, 0} there. */
zarr_status port_items(struct port_call *c, struct port_item **out, zarr_error *err);
int port_same_buffers(const struct port_item *a, const struct port_item *b);

#define PORT_ARG_BUFFER(p)                                                               \
    (struct port_argument)                                                               \
    {                                                                                    \
        .kind = PORT_BUFFER, .buffer = (p).buffer                                        \
    }
#define PORT_ARG_BLOCK(b)                                                                \
    (struct port_argument)                                                               \
    {                                                                                    \
        .kind = PORT_BLOCK, .block = &(b)                                                \
    }
#define PORT_ARG_AT(p)                                                                   \
    (struct port_argument)                                                               \
    {                                                                                    \
        .kind = PORT_AT, .buffer = (p).buffer, .number = (p).at                          \
    }
#define PORT_ARG_U64(x)                                                                  \
    (struct port_argument)                                                               \
    {                                                                                    \
        .kind = PORT_U64, .number = (x)                                                  \
    }
#define PORT_ARG_U32(x)                                                                  \
    (struct port_argument)                                                               \
    {                                                                                    \
        .kind = PORT_U32, .number = (x)                                                  \
    }

/* Work items for each of `n` parts of at most `most` bytes: enough to fill a device, and
 * at least some bytes for each. */
uint64_t port_each(uint64_t n, uint64_t most);

/* Launches of lists that were staged: `n` of a block's descriptions. */
zarr_status port_launch_decode(struct port_lane *l, struct port_place dst,
                               struct port_place src, const struct port_block *streams,
                               uint64_t n, const struct port_block *status,
                               zarr_error *err);
zarr_status port_launch_encode(struct port_lane *l, struct port_place dst,
                               struct port_place src, const struct port_block *streams,
                               uint64_t n, const struct port_block *sizes,
                               zarr_error *err);
/* `most`: bytes of the longest run. */
zarr_status port_launch_runs(struct port_lane *l, struct port_place dst,
                             struct port_place src, const struct port_block *runs,
                             uint64_t n, uint64_t most, zarr_error *err);
/* A staged list of planes; `most`: bytes of the longest. */
struct port_planes {
    const struct port_block *list;
    uint64_t n, most;
    struct port_place dst, src;
};
zarr_status port_launch_planes(struct port_lane *l, enum port_kernel k,
                               const struct port_planes *p, zarr_error *err);

/* A block that the device writes first. */
zarr_status port_stage_empty(struct port_lane *l, uint64_t bytes, struct port_block *out,
                             zarr_error *err);

/* zstd.c: scratch memory for n streams of `decoded` bytes together; UINT64_MAX: too much.
 */
uint64_t port_zstd_scratch(uint64_t n, uint64_t decoded);
/* Streams of zstd, with places in `dst` and `src`. With a `list` that a kernel wrote,
 * `src` of each is its place in that list, from which it gets its bytes if it is of zstd;
 * the list keeps the others. */
struct port_zstd {
    struct port_place dst, src;
    const struct k_stream *streams;
    uint64_t n;
    const struct port_block *list; /* NULL: none */
    zarr_memory scratch;
};
/* Queues the kernels. */
zarr_status port_zstd_decode(struct port_call *c, const struct port_zstd *z,
                             zarr_error *err);
/* Whether a frame has so few streams that their list is shorter than its elements, and
 * so few of zstd, which only `zstd` permits, that their scratch memory suffices. */
int port_blosc_fits(const struct k_frame *f, uint64_t decoded, int zstd);
/* decode() for chunks in the device's memory: without zstd inside, and with it. */
zarr_status port_blosc_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err);
zarr_status port_blosc_zstd_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                   zarr_codec_exec *exec, zarr_error *err);
/* The part of a memory from byte `used` on, aligned for the kernels of zstd. */
zarr_memory port_memory_rest(const zarr_memory *m, uint64_t used);

static inline const uint8_t *port_host_bytes(const zarr_memory *m)
{
    return (const uint8_t *)m->handle + m->offset;
}

extern const zarr_codec_impl_vtable port_lz4, port_snappy, port_zstd, port_shuffle,
    port_blosc, port_blosc_device, port_blosc_foreign, port_blosc_zstd, port_crc32c,
    port_crc32, port_adler32, port_fletcher32, port_jenkins_lookup3, port_delta,
    port_delta_array, port_fixedscaleoffset, port_fixedscaleoffset_array, port_quantize,
    port_quantize_array, port_astype, port_astype_array, port_packbits,
    port_packbits_array;

#endif
