/*
 * port/lz4.c - the codec lz4: a length, then one block. The codec snappy is decoded
 * alike.
 */
#include <string.h>

#include "port_int.h"

static zarr_status lz4_list(struct port_call *c, const struct port_item *x, uint64_t n,
                            struct port_block *list, zarr_error *err)
{
    const uint32_t how = strcmp(c->pending->codec, "lz4") == 0 ? K_LZ4_HEADED : K_SNAPPY;
    const zarr_status st = port_stage(c->lane, n * sizeof(struct k_stream), list, err);

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        ((struct k_stream *)list->host)[i] =
            (struct k_stream){.src = x[i].src.at,
                              .src_bytes = x[i].job->src.bytes,
                              .dst = x[i].dst.at,
                              .dst_bytes = x[i].job->dst.bytes,
                              .how = how,
                              .number = (k_u32)x[i].number};
    return st;
}

static zarr_status lz4_group(struct port_call *c, const struct port_item *x, uint64_t n,
                             zarr_error *err)
{
    struct port_block list;
    const zarr_status st = lz4_list(c, x, n, &list, err);

    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++)
        x[i].job->dst_used = x[i].job->dst.bytes;
    return port_launch_decode(c->lane, x[0].dst, x[0].src, &list, n, &c->pending->status,
                              err);
}

static zarr_status lz4_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "lz4", .results = PORT_SIZES, .group = port_lz4_encode_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status lz4_bind(void **self, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    static char encodes;

    (void)spec;
    (void)err;
    *self = to->encode ? &encodes : NULL;
    return ZARR_OK;
}

static zarr_status lz4_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "lz4", .results = PORT_STATUSES, .group = lz4_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable port_lz4 = {.struct_size = sizeof port_lz4,
                                         .caps = PORT_BOTH_WAYS,
                                         .codec = "lz4",
                                         .impl = PORT_NAME ".lz4",
                                         .in_kinds = PORT_KINDS,
                                         .out_kinds = PORT_KINDS,
                                         .priority = 10,
                                         .bind = lz4_bind,
                                         .scratch = port_lz4_scratch,
                                         .encode = lz4_encode,
                                         .decode = lz4_decode,
                                         .settle = port_settle};

static zarr_status snappy_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "snappy", .results = PORT_STATUSES, .group = lz4_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

const zarr_codec_impl_vtable port_snappy = {
    .struct_size = sizeof port_snappy,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC |
            ZARR_CODEC_SAFE | ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3,
    .codec = "snappy",
    .impl = PORT_NAME ".snappy",
    .in_kinds = PORT_KINDS,
    .out_kinds = PORT_KINDS,
    .priority = 10,
    .decode = snappy_decode,
    .settle = port_settle};
