/*
 * bench/device/store.h - a store that keeps the end of each value only: enough for
 * metadata and for the indexes of shards. Ranges of chunks come without their bytes, and
 * as slowly as a rate says, as from many disks at once. Thread class: shared.
 */
#ifndef BENCH_DEVICE_STORE_H
#define BENCH_DEVICE_STORE_H

#include <zarrc/plugin/store.h>

/* gb_s: GB/s of chunks, read and written; 0: they take no time. */
void model_store_rate(double gb_s);
const zarr_store_vtable *model_store(void);
/* Ends its thread and forgets all values, once nothing uses the store. */
void model_store_end(void);

#endif
