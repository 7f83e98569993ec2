/*
 * ports/arrays.h - what the tests of plug-ins of devices share: a context with the
 * plug-in, and arrays that the CPU wrote. Their build defines PORT_PLUGIN, the file;
 * PORT_MEMORY, the type of its devices; and PORT_LOADS_DEVICE, whether loading it needs a
 * device.
 */
#ifndef PORT_ARRAYS_H
#define PORT_ARRAYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

enum {
    ROWS = 96,
    COLS = 128,
    N = ROWS * COLS
};

extern zarr_context *ctx;
extern zarr_store *store;
extern zarr_error err;

#define OK(call) assert_ok((call), __LINE__)
void assert_ok(zarr_status st, int line);

struct kind {
    const char *name, *type, *codecs;
    uint64_t chunk[2], shard[2]; /* `shard` 0: none */
};
extern const struct kind kinds[];
extern const int n_kinds;

size_t item_bytes(const struct kind *k);
/* Whether other elements than those of make_elements() change. */
int is_lossy(const struct kind *k);
/* A walk with some noise, which all codecs shorten. */
void make_elements(const struct kind *k, uint8_t *out);
/* Makes the array and writes `elements`, which it fills, by the CPU. */
zarr_array *make_array(const struct kind *k, uint8_t *elements);
/* All elements, in memory of a kind. */
zarr_tensor whole_tensor(const zarr_memory *mem);
/* Bytes of any memory on the host, and back. */
void fetch(uint8_t *to, const zarr_memory *mem, uint64_t bytes);
void put(const zarr_memory *mem, const uint8_t *from, uint64_t bytes);

/* Makes `ctx` and `store`. Ends the process with 77 and the reason if there is no device.
 * `add` NULL, or registers more before the store is opened. */
void begin_context(const char *allocators, void (*add)(void));
void end_context(void);

#endif
