/*
 * watched_codec.c - examples/plugins/codec_batch.c with a wrapped host table, which
 * records the number of chunks in each batch. The client reads the largest number.
 */
#include <zarrc/plugin/plugin.h>

/* Renames the example's own entry function. */
const zarr_plugin *plugin_inside(void);
#define zarr_plugin_v1 plugin_inside
#include "codec_batch.c"
#undef zarr_plugin_v1

static zarr_host watching;
static zarr_status (*parallel_inside)(uint64_t n, uint32_t max_threads,
                                      zarr_parallel_fn fn, void *arg, zarr_error *err);

/* The most chunks in one call, for decoding and encoding. There is no race: the client
 * does one read or write after another, and the library one batch of a request after
 * another. */
ZARR_PLUGIN_EXPORT uint64_t watched_most[2];
uint64_t watched_most[2];

static zarr_status parallel(uint64_t n, uint32_t max_threads, zarr_parallel_fn fn,
                            void *arg, zarr_error *err)
{
    const struct batch *b = (const struct batch *)arg;

    if (n > watched_most[b->encode])
        watched_most[b->encode] = n;
    return parallel_inside(n, max_threads, fn, arg, err);
}

static zarr_status load_watched(const zarr_host *given, zarr_context *ctx, void **self,
                                zarr_error *err)
{
    watching = *given;
    parallel_inside = given->parallel;
    watching.parallel = parallel;
    return plugin.load(&watching, ctx, self, err);
}

const zarr_plugin *zarr_plugin_v1(void)
{
    static zarr_plugin watched;

    watched = plugin;
    watched.load = load_watched;
    return &watched;
}
