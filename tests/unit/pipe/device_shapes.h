/*
 * unit/pipe/device_shapes.h - for tests of reads and writes of a device where the chunks
 * of a grid differ in shape.
 */
#ifndef DEVICE_SHAPES_H
#define DEVICE_SHAPES_H

#include "device_test.h"

static const char grid[] = "{\"name\":\"rectilinear\",\"configuration\":{"
                           "\"kind\":\"inline\",\"chunk_shapes\":"
                           "[[10,20,10,30,30],[5,15,20]]}}";
static const uint64_t rows[] = {10, 20, 10, 30, 30}, columns[] = {5, 15, 20};
enum {
    SHAPES = 9,
    CHUNKS = 15 /* one or two of each shape */
};

static const struct chain {
    const char *codecs;
    int codec_calls;     /* of a wave, for each shape */
    int waits_unchecked; /* a codec that does not check its input waits for one before it
                          */
} chains[] = {
    {"[" BYTES "]", 0, 1},
    {"[" BIG "," GZIP "]", 0, 1},
    {"[" TURN "," BIG "," GZIP "]", 0, 1},
    {"[" BYTES "," LATE "]", 1, 1},
    {"[" TURN "," BIG "," LATE "]", 1, 1},
    {"[" BYTES "," LATE "," CRC "]", 1, 1},
    {"[" BYTES "," LATE "," LATE "]", 2, 2},
    {"[" BYTES "," LATE "," GZIP "," LATE "]", 1, 1},
};

static inline zarr_array *array_of_shapes(const struct pw *w, const char *path,
                                          const char *codecs)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .data_type = "int32",
                                  .fill_value = "-1",
                                  .chunk_grid = grid,
                                  .codecs = codecs};
    zarr_array *a = NULL;
    zarr_tensor t;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    return a;
}

#endif
