/*
 * port/port.h - what plug-ins of devices share: lists of boxes, runs, fills and
 * comparisons, and codecs whose work the kernels of plugins/kernels do. A plug-in (CUDA,
 * OpenCL) implements the functions of the first half. The second half gives it entries
 * for its zarr_memory_vtable, and tables of codecs.
 *
 * A call of the library begins a lane, stages descriptions, launches kernels and ends the
 * lane. It waits for nothing if the library gave it a stream.
 */
#ifndef PORT_H
#define PORT_H

#include <zarrc/plugin/plugin.h>

#include "kernels/kernels.h"

/* ---- what a plug-in implements -------------------- */

/* Set by the plug-in before it registers anything. */
extern const zarr_host *port_host;

/* A queue of a device. The plug-in's own struct begins with this one. A stream of the
 * library is a lane. One thread at a time uses a lane. */
struct port_lane {
    int32_t device_id;
    struct port_comparison
        *comparisons; /* those that port_finish_comparisons() must finish */
};

/* The lane of a call: `stream`, or if that is NULL one that port_end() waits for. The
 * device's context is current until port_end(). */
zarr_status port_begin(void *stream, int32_t device_id, struct port_lane **out,
                       zarr_error *err);
/* Ends what port_begin() began; not called if that failed. Without a stream it waits,
 * also if `st` is a failure, and calls port_finish_comparisons(). Returns `st`, or the
 * failure of the wait. */
zarr_status port_end(void *stream, struct port_lane *l, zarr_status st, zarr_error *err);
/* Waits for all work on a lane. For failures in the middle of a call: what was queued
 * still writes results. */
zarr_status port_wait(struct port_lane *l, zarr_error *err);

/* Whether kernels reach the memory. */
int port_reaches(const zarr_memory *m);
/* A buffer as kernels get it, and bytes from its start. Where all memory of a device has
 * one range of addresses, `buffer` is NULL (address 0) and `at` is the address, so that
 * one launch does the work in all blocks. */
struct port_place {
    void *buffer;
    uint64_t at;
};
struct port_place port_memory_place(const zarr_memory *m);

/* Bytes on the host and their copy on the device, which begins at a multiple of 16. */
struct port_block {
    void *host;
    uint64_t bytes;
    struct port_place device;
    void *own; /* of the plug-in */
};
/* A block for descriptions. The caller writes `host` before it launches the first kernel
 * that has the block as an argument. That launch brings all blocks that were staged
 * before it up, at best in one copy. The host may write a block once. It belongs to the
 * call: `host` is invalid after port_end(), and the device's side when the work of the
 * call is done. `bytes` > 0. */
zarr_status port_stage(struct port_lane *l, uint64_t bytes, struct port_block *out,
                       zarr_error *err);
/* A block for results: the device's side is zeros when kernels see it. It stays until
 * port_result_close(), on any thread, after the lane was waited for. */
zarr_status port_result_open(struct port_lane *l, uint64_t bytes, struct port_block *out,
                             zarr_error *err);
/* Queues the copy to `host`. */
zarr_status port_result_fetch(struct port_lane *l, struct port_block *b, zarr_error *err);
void port_result_close(struct port_block *b);

/* Queues copies of runs, run i of dst[i].bytes bytes, as copy_list() of a memory backend:
 * one side may be host memory, which stays as it is until the lane was waited for. */
zarr_status port_copy(struct port_lane *l, const zarr_memory *dst, const zarr_memory *src,
                      uint64_t n, zarr_error *err);

/* The kernels, and for each its name and whether a group of port_lanes() work items has
 * one stream. A plug-in looks them up by their names, all or each when it is first
 * needed. */
#define PORT_KERNELS(X)                                                                  \
    X(COPY_BOXES, "k_copy_boxes", 0)                                                     \
    X(FILL_BOXES, "k_fill_boxes", 0)                                                     \
    X(COPY_RUNS, "k_copy_runs", 0)                                                       \
    X(DIFFER, "k_differ", 0)                                                             \
    X(SHUFFLE, "k_shuffle", 0)                                                           \
    X(UNSHUFFLE, "k_unshuffle", 0)                                                       \
    X(DECODE, "k_decode", 1)                                                             \
    X(ENCODE, "k_encode", 1)                                                             \
    X(ENCODE_PIECES, "k_encode_pieces", 1)                                               \
    X(JOIN_BLOCKS, "k_join_blocks", 0)                                                   \
    X(CHECK_STREAMS, "k_check_streams", 0)                                               \
    X(BLOSC_OPEN, "k_blosc_open", 0)                                                     \
    X(BLOSC_LIST, "k_blosc_list", 0)                                                     \
    X(BLOSC_PACK, "k_blosc_pack", 0)                                                     \
    X(ZSTD_TAKE, "k_zstd_take", 0)                                                       \
    X(ZSTD_OPEN, "k_zstd_open", 0)                                                       \
    X(ZSTD_LITERALS, "k_zstd_literals", 1)                                               \
    X(ZSTD_SEQUENCES, "k_zstd_sequences", 1)                                             \
    X(ZSTD_EXECUTE, "k_zstd_execute", 1)                                                 \
    X(SUM_SLICES, "k_sum_slices", 0)                                                     \
    X(SUM_END, "k_sum_end", 0)                                                           \
    X(CAST, "k_cast", 0)                                                                 \
    X(SCALE, "k_scale", 0)                                                               \
    X(UNSCALE, "k_unscale", 0)                                                           \
    X(DELTA, "k_delta", 0)                                                               \
    X(DELTA_SUMS, "k_delta_sums", 0)                                                     \
    X(UNDELTA, "k_undelta", 0)                                                           \
    X(UNPACK_BITS, "k_unpack_bits", 0)                                                   \
    X(PACK_BITS, "k_pack_bits", 0)
enum port_kernel {
#define PORT_KERNEL(id, name, per_stream) PORT_##id,
    PORT_KERNELS(PORT_KERNEL)
#undef PORT_KERNEL
    PORT_N_KERNELS
};
struct port_kernel_fact {
    const char *name;
    int per_stream;
};
extern const struct port_kernel_fact port_kernel_facts[PORT_N_KERNELS];

/* An argument of a kernel. */
enum port_argument_kind {
    PORT_BUFFER, /* the start of `buffer`: places in it are in descriptions */
    PORT_BLOCK,  /* where the device's side of `block` begins */
    PORT_AT,     /* `number` bytes from the start of `buffer` */
    PORT_U64,
    PORT_U32
};
struct port_argument {
    enum port_argument_kind kind;
    void *buffer;
    const struct port_block *block;
    uint64_t number;
};
/* Queues a kernel for so many work items; 0: nothing. The plug-in rounds up to whole
 * groups. If the kernel has a stream in each group, a group has exactly port_lanes()
 * items; if these are 1, any number. */
zarr_status port_launch(struct port_lane *l, enum port_kernel k,
                        const struct port_argument *a, uint32_t n_arguments,
                        uint64_t work_items, zarr_error *err);
/* K_LANES of the plug-in's kernels. */
uint32_t port_lanes(void);

/* Other code that decodes streams inside of chunks, such as nvCOMP's; NULL, or an entry
 * that is NULL: there is none, and such chunks go to the next implementation. */
enum port_format {
    PORT_ZSTD,
    PORT_ZLIB,
    PORT_N_FORMATS
};
struct port_decoder {
    /* Whether streams of a format can be decoded, on the devices of this process. */
    int (*knows)(enum port_format f);
    /* Bytes of scratch memory for `n` chunks, of at most `max_out` decoded bytes each. */
    uint64_t (*scratch)(enum port_format f, uint64_t n, uint64_t max_out);
    /* Queues the decoding of `n` streams. `streams` is host memory, borrowed for the
     * call; places in it are in the buffers of `src` and `dst`. UNSUPPORTED, before
     * anything is queued: the batch goes to the next implementation. `*pending` is for
     * settle(). */
    zarr_status (*decode)(struct port_lane *l, enum port_format f, struct port_place dst,
                          struct port_place src, const struct k_stream *streams,
                          uint64_t n, const zarr_memory *scratch, void **pending,
                          zarr_error *err);
    /* After the lane was waited for: writes a K_ status to status[streams[i].number] for
     * each stream that failed, and frees `pending`, which is not NULL. */
    void (*settle)(void *pending, uint32_t *status);
};
extern const struct port_decoder *port_decoder;

/* ---- what a plug-in gets -------------------- */

/* For a plug-in's sync(): finishes the comparisons of a lane that was waited for. `st`:
 * whether the wait failed. */
void port_finish_comparisons(struct port_lane *l, zarr_status st);

/* Entries of zarr_memory_vtable; `self` is not used. Boxes with a side that kernels do
 * not reach, or with sides on two devices, are UNSUPPORTED. port_copy_run() is copy(). */
zarr_status port_copy_run(void *self, const zarr_memory *dst, const zarr_memory *src,
                          uint64_t bytes, void *stream, zarr_error *err);
zarr_status port_copy_list(void *self, const zarr_memory *dst, const zarr_memory *src,
                           uint64_t n, void *stream, zarr_error *err);
zarr_status port_copy_box(void *self, const zarr_box *box, void *stream, zarr_error *err);
zarr_status port_fill_box(void *self, const zarr_box *box, const void *pattern,
                          void *stream, zarr_error *err);
zarr_status port_copy_boxes(void *self, const zarr_box *boxes, uint64_t n, void *stream,
                            zarr_error *err);
zarr_status port_fill_boxes(void *self, const zarr_box *boxes, uint64_t n,
                            const void *pattern, void *stream, zarr_error *err);
/* NOLINTNEXTLINE(readability-function-size): the entry of a table of the ABI */
zarr_status port_equal_list(void *self, const zarr_memory *src, uint64_t n,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            void *stream, zarr_error *err);

/* Registers all codecs that the kernels do. They are named after PORT_NAME ("cuda" gives
 * "cuda.lz4"), and are for memory of PORT_KINDS, a sum of ZARR_MEMORY_BIT(). The build of
 * each plug-in defines both, because names of codecs are static. */
zarr_status port_register_codecs(zarr_context *ctx, zarr_error *err);

#endif
