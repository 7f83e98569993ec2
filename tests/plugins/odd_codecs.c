/*
 * odd_codecs.c - a plug-in with difficult codecs: one for v2 metadata under a name that
 * means another codec in v3, with an implementation that is preferred; one with a name
 * of numcodecs; and two that break their contract.
 */
#include <zarrc/plugin/plugin.h>

enum {
    N_CODECS = 4
};

static uint8_t *at(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}

static zarr_status turn(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < jobs[i].src.bytes; k++)
            at(&jobs[i].dst)[k] = (uint8_t)(at(&jobs[i].src)[k] ^ 0x55);
        jobs[i].dst_used = jobs[i].src.bytes;
        jobs[i].status = ZARR_OK;
    }
    return ZARR_OK;
}

static zarr_status too_much(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    const zarr_status st = turn(self, jobs, n, exec, err);

    jobs[0].dst_used = jobs[0].dst.bytes + 1;
    return st;
}

static zarr_status no_status(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        jobs[i].status = 1;
    return 1;
}

#define SPEC(codec, more)                                                                \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_spec_vtable), .name = (codec), .flags = (more), \
        .kind = ZARR_CODEC_BYTES_BYTES                                                   \
    }
#define IMPL(name, more, how)                                                            \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable), .codec = (name),                  \
        .impl = "cpu.odd",                                                               \
        .caps =                                                                          \
            ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | (more),    \
        .priority = 1, .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),                     \
        .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU), .encode = turn, .decode = (how)   \
    }

static const zarr_codec_spec_vtable spec[N_CODECS] = {
    SPEC("scale_offset", ZARR_CODEC_SPEC_V2),
    SPEC("odd_turn", ZARR_CODEC_SPEC_NUMCODECS),
    SPEC("odd.much", 0),
    SPEC("odd.none", 0),
};
static const zarr_codec_impl_vtable impl[N_CODECS] = {
    IMPL("scale_offset", ZARR_CODEC_FOR_V2, turn),
    IMPL("odd_turn", 0, turn),
    IMPL("odd.much", 0, too_much),
    IMPL("odd.none", 0, no_status),
};

static zarr_status load(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st = ZARR_OK;

    (void)self;
    for (int i = 0; i < N_CODECS && st == ZARR_OK; i++) {
        st = host->register_codec_spec(ctx, &spec[i], err);
        if (st == ZARR_OK)
            st = host->register_codec_impl(ctx, &impl[i], err);
    }
    return st;
}

static const zarr_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi = ZARR_PLUGIN_ABI,
    .name = "odd-codecs",
    .version = "1",
    .license = "MIT",
    .load = load,
};

ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_v1(void);
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
