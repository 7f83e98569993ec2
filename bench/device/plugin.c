/*
 * bench/device/plugin.c - the modelled device as a plug-in, for any program: copies to
 * and from its memory move nothing, so what is read is never what was stored. Options:
 * call_us, copy, codec, inside, ratio, most, unsafe, see model.h; all are 0 but
 * ratio, which is 2. name: that of the codec, instead of lz4.
 */
#include "model.h"

#include <stddef.h>

static zarr_status load(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    const char *name = host->option_text(ctx, "name");
    zarr_status st;

    (void)self;
    (void)host->option_f64(ctx, "call_us", &model_rates.call_us);
    (void)host->option_f64(ctx, "copy", &model_rates.copy);
    (void)host->option_f64(ctx, "codec", &model_rates.codec);
    (void)host->option_f64(ctx, "inside", &model_rates.inside);
    (void)host->option_f64(ctx, "ratio", &model_rates.ratio);
    (void)host->option_f64(ctx, "most", &model_rates.most);
    (void)host->option_f64(ctx, "unsafe", &model_rates.unsafe);
    if (model_rates.ratio < 1)
        return host->fail(err, ZARR_ERR_INVALID, "model: ratio is below 1");
    st = host->register_memory(ctx, model_memory(), NULL, err);
    if (st == ZARR_OK)
        st = host->register_codec_impl(ctx, model_codec(name ? name : "lz4"), err);
    return st;
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "model",
                                   .version = "1",
                                   .license = "MIT",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
