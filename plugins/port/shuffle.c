/*
 * port/shuffle.c - the codec shuffle, both ways.
 */
#include "port_int.h"

#include <stdlib.h>

static zarr_status shuffle_bind(void **self, const zarr_codec_spec *spec,
                                const zarr_codec_binding *to, zarr_error *err)
{
    int64_t *item_bytes = malloc(sizeof *item_bytes);

    (void)to;
    if (!item_bytes)
        return port_no_memory(err);
    *item_bytes = 4; /* the default of numcodecs */
    (void)port_host->spec_i64(spec, "elementsize", item_bytes);
    *self = item_bytes;
    return ZARR_OK;
}

static zarr_status shuffle_group(struct port_call *c, const struct port_item *x,
                                 uint64_t n, enum port_kernel k, zarr_error *err)
{
    const int64_t *item_bytes = c->self;
    struct port_block list;
    uint64_t most = 0;
    zarr_status st = port_stage(c->lane, n * sizeof(struct k_planes), &list, err);

    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++) {
        zarr_codec_job *job = x[i].job;
        const int fits = job->src.bytes <= job->dst.bytes;

        job->dst_used = job->src.bytes;
        if (!fits)
            port_note_status(c, x[i].number, K_TOO_LONG);
        ((struct k_planes *)list.host)[i] =
            (struct k_planes){.src = x[i].src.at,
                              .dst = x[i].dst.at,
                              .bytes = fits ? job->src.bytes : 0,
                              .item_bytes = (k_u32)*item_bytes};
        most = job->src.bytes > most ? job->src.bytes : most;
    }
    const struct port_planes planes = {
        .list = &list, .n = n, .most = most, .dst = x[0].dst, .src = x[0].src};

    return port_launch_planes(c->lane, k, &planes, err);
}

static zarr_status shuffle_back(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    return shuffle_group(c, x, n, PORT_UNSHUFFLE, err);
}

static zarr_status shuffle_forth(struct port_call *c, const struct port_item *x,
                                 uint64_t n, zarr_error *err)
{
    return shuffle_group(c, x, n, PORT_SHUFFLE, err);
}

static zarr_status shuffle_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {.name = "shuffle", .group = shuffle_back};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status shuffle_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                  zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {.name = "shuffle", .group = shuffle_forth};

    return port_run(&codec, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable port_shuffle = {.struct_size = sizeof port_shuffle,
                                             .caps = PORT_BOTH_WAYS,
                                             .codec = "shuffle",
                                             .impl = PORT_NAME ".shuffle",
                                             .in_kinds = PORT_KINDS,
                                             .out_kinds = PORT_KINDS,
                                             .priority = 10,
                                             .bind = shuffle_bind,
                                             .decode = shuffle_decode,
                                             .encode = shuffle_encode,
                                             .settle = port_settle,
                                             .close = free};
