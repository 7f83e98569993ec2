/*
 * client.c - an application that uses the plug-ins of examples/plugins: arrays with
 * their codecs, with and without shards, written through one pipeline and read through
 * the others, whole and in part; and the errors of loading. argv[1]: the folder of the
 * plug-ins, argv[2]: watched.so, loaded instead of its codec_batch.so.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

enum {
    ROWS = 60,
    COLS = 50
};

static zarr_error err;

#define CHECK(call)                                                                      \
    do {                                                                                 \
        if ((call) != ZARR_OK) {                                                         \
            printf("%s:%d: %s\n", __FILE__, __LINE__, err.message);                      \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)
#define EXPECT(what)                                                                     \
    do {                                                                                 \
        if (!(what)) {                                                                   \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                    \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

static int16_t model[ROWS][COLS], got[ROWS][COLS];

static void read_by(zarr_array *array, const char *pipeline, int64_t row, int64_t rows)
{
    static const uint64_t shape[] = {ROWS, COLS};
    const uint64_t start[] = {(uint64_t)row, 0}, count[] = {(uint64_t)rows, COLS};
    const uint64_t size[] = {rows, COLS};
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_tuning tuning = ZARR_TUNING_INIT;
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_selection *sel = NULL;
    zarr_tensor t;

    tuning.pipeline = pipeline;
    io.tuning = &tuning;
    io.stats = &stats;
    memset(got, 0x55, sizeof got);
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, size);
    CHECK(zarr_selection_box(&sel, 2, shape, start, count, &err));
    CHECK(zarr_array_read(array, sel, &t, &io, &err));
    EXPECT(memcmp(got, model[row], (size_t)rows * sizeof model[0]) == 0);
    EXPECT(stats.chunks_done > 0 && stats.elements == (uint64_t)(rows * COLS));
    EXPECT(stats.waves > 0);
    zarr_selection_free(sel);
}

static void write_by(zarr_array *array, const char *pipeline, int64_t row, int64_t rows,
                     int value)
{
    static const uint64_t shape[] = {ROWS, COLS};
    const uint64_t start[] = {(uint64_t)row, 0}, count[] = {(uint64_t)rows, COLS};
    const uint64_t size[] = {rows, COLS};
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_tuning tuning = ZARR_TUNING_INIT;
    zarr_selection *sel = NULL;
    zarr_tensor t;

    for (int64_t r = row; r < row + rows; r++)
        for (int c = 0; c < COLS; c++)
            model[r][c] = (int16_t)(value < 0 ? 0 : value + (int)r * 3 + c / 7);
    tuning.pipeline = pipeline;
    io.tuning = &tuning;
    zarr_tensor_host(&t, NULL, model[row], (uint64_t)rows * sizeof model[0], 2, size);
    CHECK(zarr_selection_box(&sel, 2, shape, start, count, &err));
    CHECK(zarr_array_write(array, sel, &t, &io, &err));
    zarr_selection_free(sel);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static void use(zarr_store *store, const char *path, const char *codecs, int sharded)
{
    static const char *const pipelines[] = {"waves", "serial", "example.own"};
    static const uint64_t shape[] = {ROWS, COLS}, chunk[] = {8, 16}, shard[] = {24, 32};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *array = NULL;

    memset(model, 0, sizeof model);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.shard_shape = sharded ? shard : NULL;
    spec.data_type = "int16";
    spec.codecs = codecs;
    CHECK(zarr_array_create(&array, store, path, &spec, NULL, &err));
    for (int i = 0; i < 3; i++) {
        write_by(array, pipelines[i], 0, ROWS, 100 * i); /* all elements */
        write_by(array, pipelines[i], 5, 20, 1000 + i);  /* in part */
        /* Only the fill value: the chunk is erased. */
        write_by(array, pipelines[i], 24, 16, -1);
        for (int k = 0; k < 3; k++) {
            read_by(array, pipelines[k], 0, ROWS);
            read_by(array, pipelines[k], 11, 30);
        }
    }
    zarr_array_free(array);
}

/* A codec that encodes batches gets whole waves: with `waves`, 32 chunks take fewer than
 * 32 calls. `serial` has no batches. */
static void batches(zarr_store *store, const char *plugin)
{
    /* The copy that the library loaded. */
    void *handle = dlopen(plugin, RTLD_NOW | RTLD_NOLOAD);
    uint64_t *most = handle ? (uint64_t *)dlsym(handle, "watched_most") : NULL;
    zarr_array *array = NULL;

    EXPECT(most != NULL);
    CHECK(zarr_array_open(&array, store, "rle", NULL, &err));
    write_by(array, "waves", 0, ROWS, 7);
    most[0] = 0;
    read_by(array, "serial", 0, ROWS);
    EXPECT(most[0] == 1);
    read_by(array, "waves", 0, ROWS);
    printf("client: batches of %d chunks, encoded by %d\n", (int)most[0], (int)most[1]);
    EXPECT(most[0] > 1 && most[0] <= 32);
    EXPECT(most[1] > 1 && most[1] <= 32);
    zarr_array_free(array);
    dlclose(handle);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"dtype_fixed", "codec_xor", "", "store_log",
                                        "pipeline_own"};
    char text[5][1024], url[1100];
    const char *plugins[6] = {NULL};
    zarr_context_options o = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_store_options so = ZARR_STORE_OPTIONS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;

    EXPECT(argc == 3);
    for (int i = 0; i < 5; i++) {
        if (*names[i])
            snprintf(text[i], sizeof text[i], "%s/%s.so", argv[1], names[i]);
        else
            snprintf(text[i], sizeof text[i], "%s", argv[2]);
        plugins[i] = text[i];
    }
    o.plugins = plugins;
    CHECK(zarr_context_create(&ctx, &o, &err));
    so.flags = ZARR_STORE_CREATE;
    snprintf(url, sizeof url, "log:client.zarr");
    CHECK(zarr_store_open(&store, ctx, url, &so, &err));
    EXPECT(zarr_context_load(ctx, plugins[0], &err) == ZARR_ERR_INVALID);
    use(store, "rle", "[\"example.rle\"]", 0);
    use(store, "xor", "[{\"name\":\"example.xor\",\"configuration\":{\"key\":7}}]", 0);
    use(store, "big",
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
        "{\"name\":\"example.xor\",\"configuration\":{\"key\":200}}]",
        0);
    use(store, "both",
        "[{\"name\":\"example.xor\",\"configuration\":{\"key\":255}},\"example.rle\"]",
        0);
    use(store, "rle_in_shards", "[\"example.rle\"]", 1);
    use(store, "rle_around_shards",
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,8],"
        "\"codecs\":[" LITTLE "],\"index_codecs\":[" LITTLE "]}},\"example.rle\"]",
        0);
    use(store, "xor_in_shards",
        "[{\"name\":\"example.xor\",\"configuration\":{\"key\":1}}]", 1);
    batches(store, plugins[2]);
    zarr_store_free(store);
    zarr_context_free(ctx);
    puts("client: 7 arrays, 3 pipelines");
    return 0;
}
