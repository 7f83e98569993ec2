/*
 * cuda/nvcomp.h - nvCOMP, NVIDIA's library of compressors, 5.1 to 6.0: its calls in
 * declarations of our own, and batches of streams on a lane. It is loaded when the first
 * array in memory of a device needs it. Where it is missing, its codecs do not bind, and
 * the CPU's do the work.
 *
 * Its decoders take valid input only, so no implementation has ZARR_CODEC_SAFE. On an
 * H100 with nvCOMP 6.0, damaged streams of zstd gave other elements with a status of
 * success, damaged deflate and LZ4 wrote beyond their output, and a skippable frame of
 * zstd was an illegal access, which destroys the context. It does not look at checksums
 * inside of streams.
 *
 * Format: nvCOMP's documentation of its batched C API.
 */
#ifndef CUDA_NVCOMP_H
#define CUDA_NVCOMP_H

#include "device.h"

enum nvcomp_format {
    NVCOMP_ZSTD,
    NVCOMP_DEFLATE,
    NVCOMP_GZIP,
    NVCOMP_SNAPPY,
    NVCOMP_GDEFLATE,
    NVCOMP_LZ4,
    NVCOMP_FORMATS
};

/* ---- nvcomp_library.c: the calls of the library -------------------- */

/* Results; zero is success. */
enum {
    NVCOMP_CANNOT_DECODE = 12,
    NVCOMP_CUDA_ERROR = 1000
};
/* Options of a format, by value: all formats have 64 bytes, and zeros are defaults. */
struct nvcomp_options {
    int member[16];
};
struct nvcomp_alignments {
    size_t input, output, temp;
};
struct nvcomp_properties {
    uint32_t version, cudart_version; /* 1000 * major + 100 * minor + patch */
};
/* NOLINTNEXTLINE(readability-function-size): nvCOMP's */
typedef int nvcomp_coder(const void *const *in, const size_t *in_bytes,
                         const size_t *out_room, size_t *out_bytes, size_t n, void *temp,
                         size_t temp_bytes, void *const *out, struct nvcomp_options how,
                         int *status, CUstream s);
/* NOLINTNEXTLINE(readability-function-size): nvCOMP's */
typedef int nvcomp_encoder(const void *const *in, const size_t *in_bytes, size_t most,
                           size_t n, void *temp, size_t temp_bytes, void *const *out,
                           size_t *out_bytes, struct nvcomp_options how, int *status,
                           CUstream s);
typedef int nvcomp_alignments_fn(struct nvcomp_options how,
                                 struct nvcomp_alignments *out);
typedef int nvcomp_temp_5_fn(size_t n, size_t most, struct nvcomp_options how,
                             size_t *out, size_t total);
typedef int nvcomp_temp_6_fn(size_t n, size_t most, struct nvcomp_options how,
                             size_t *out, size_t total, CUstream s);
typedef int nvcomp_most_fn(size_t bytes, struct nvcomp_options how, size_t *out);

/* One direction of a format; without all of its calls it has none. */
struct nvcomp_way {
    nvcomp_coder *decode;
    nvcomp_encoder *encode;
    nvcomp_temp_5_fn *temp_5; /* of the two, the one that the version has */
    nvcomp_temp_6_fn *temp_6;
    nvcomp_most_fn *most;           /* encoding: longest output */
    struct nvcomp_alignments align; /* each at least 1 */
};

/* Where the library is: a file, or a folder that has libnvcomp.so.6 or .so.5; NULL: where
 * the loader finds these. Counts before the first nvcomp_start() of the process. */
void nvcomp_place(const char *path);
/* Loads the library, once in a process. UNSUPPORTED: there is none, or not a version of
 * those above; the text says why. Starts no driver. */
zarr_status nvcomp_start(zarr_error *err);
/* For the child of a fork. */
void nvcomp_in_child(void);
/* The calls of a format after nvcomp_start(); NULL: the library lacks one. */
const struct nvcomp_way *nvcomp_find(enum nvcomp_format f, int encode);
/* Bytes of memory that a call for `n` streams of at most `most` decoded bytes needs. The
 * context of the device is current. 0: it does not tell. */
uint64_t nvcomp_temp(enum nvcomp_format f, int encode, uint64_t n, uint64_t most,
                     CUstream s);

/* ---- nvcomp_batch.c: batches -------------------- */

/* A stream: addresses and lengths. */
struct nvcomp_stream {
    CUdeviceptr src, dst;
    uint64_t src_bytes, room;
};
struct nvcomp_batch {
    enum nvcomp_format format;
    int encode;
    const struct nvcomp_stream *stream;
    uint64_t n, most; /* `most`: decoded bytes of the longest */
    CUdeviceptr scratch;
    uint64_t scratch_bytes;
};
/* What a batch gives: for each stream its length and nvCOMP's result. */
struct nvcomp_results {
    struct port_block block;
    uint64_t n;
};
/* Bytes of scratch memory for a batch whose inputs have at most `most_in` bytes each. */
uint64_t nvcomp_scratch(enum nvcomp_format f, int encode, uint64_t n, uint64_t most,
                        uint64_t most_in);
/* Queues a batch, in parts if the scratch memory is short. Results are valid after the
 * lane was waited for; nvcomp_results_close() is for the caller after a success.
 * UNSUPPORTED: other code must do it. */
zarr_status nvcomp_queue(struct cuda_lane *l, const struct nvcomp_batch *b,
                         struct nvcomp_results *out, zarr_error *err);
uint64_t nvcomp_length(const struct nvcomp_results *r, uint64_t i);
int nvcomp_status(const struct nvcomp_results *r, uint64_t i);
void nvcomp_results_close(struct nvcomp_results *r);

/* ---- nvcomp_codec.c -------------------- */

zarr_status nvcomp_register(const zarr_host *host, zarr_context *ctx, zarr_error *err);

#endif
