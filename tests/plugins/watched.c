/*
 * watched.c - examples/plugins/codec_batch.c as it is, with a host table in front of the
 * library's: it notes how many chunks each batch has. The client looks the largest up.
 */
#include <zarrc/plugin/plugin.h>

/* The example's own function is called something else. */
const zarr_plugin *plugin_inside(void);
#define zarr_plugin_v1 plugin_inside
#include "codec_batch.c"
#undef zarr_plugin_v1

static zarr_host watching;
static zarr_status (*parallel_inside)(uint64_t n, uint32_t max_threads,
                                      zarr_parallel_fn fn, void *arg, zarr_error *err);

/* The most chunks that one call got: to decode, to encode. The client does one read or
 * write after another, and the library one batch of a request after another. */
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
