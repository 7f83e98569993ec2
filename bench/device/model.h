/*
 * bench/device/model.h - a device without memory: it moves and computes nothing, so what
 * is left is the library's own time. Each call can take time of the CPU, as a driver's
 * does, and work can take the time of a model. Its memory kind is ZARR_DEVICE_EXT; it
 * decodes and encodes lz4. Thread class: shared.
 */
#ifndef BENCH_DEVICE_MODEL_H
#define BENCH_DEVICE_MODEL_H

#include <zarrc/plugin/plugin.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Rates in GB/s; 0: such work takes no time. There is one engine of each kind, which does
 * one thing at a time; work of a stream is done in order. */
struct model_rates {
    double call_us; /* of the CPU, for each call */
    double copy;    /* between host and device, each direction */
    double codec;   /* decoded bytes */
    double inside;  /* of boxes, fills and comparisons, bytes written or read */
    double ratio;   /* of decoded to encoded bytes, when encoding */
    double most;    /* bytes of a decoded chunk that the codec takes at most; 0: any */
    double unsafe;  /* other than 0: the codec does not say that it checks its input */
};
struct model_counters {
    atomic_uint_fast64_t calls; /* of all entries that a driver would be called for */
    atomic_uint_fast64_t runs;  /* of lists of copies */
    atomic_uint_fast64_t batches, chunks;
    atomic_uint_fast64_t waits, allocs;
    atomic_uint_fast64_t live_bytes, peak_bytes; /* of the device */
};

extern struct model_rates model_rates;
extern struct model_counters model_counters;

const zarr_memory_vtable *model_memory(void);
const zarr_codec_impl_vtable *model_codec(const char *codec);

/* Seconds of a clock that never goes back. */
double model_now(void);
/* Sleeps until that clock says `due`. */
void model_sleep(double due);

#endif
