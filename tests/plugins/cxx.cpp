/*
 * cxx.cpp - a plug-in in C++17 that follows zarrc/plugin/plugin.h and declares nothing
 * that the headers declare. Its bytes->bytes codec inverts every bit.
 */
#include <zarrc/plugin/plugin.h>

#include <cstring>

namespace
{

const zarr_host *host;

zarr_status canonical(const zarr_codec_spec *, int, char *text, size_t cap,
                      size_t *text_bytes, zarr_error *)
{
    if (cap > 2)
        std::memcpy(text, "{}", 3);
    *text_bytes = 2;
    return ZARR_OK;
}

zarr_status resolve(const zarr_codec_spec *, const zarr_chunk_spec *in,
                    zarr_chunk_spec *out, void *, zarr_error *)
{
    out->n_bytes = in->n_bytes;
    out->exact = in->exact;
    return ZARR_OK;
}

zarr_status turn(void *, zarr_codec_job *jobs, uint64_t n, zarr_codec_exec *,
                 zarr_error *err)
{
    zarr_status first = ZARR_OK;

    for (uint64_t i = 0; i < n; i++) {
        zarr_codec_job &job = jobs[i];
        const auto *src =
            static_cast<const unsigned char *>(job.src.handle) + job.src.offset;
        auto *dst = static_cast<unsigned char *>(job.dst.handle) + job.dst.offset;

        job.status = ZARR_OK;
        if (job.dst.bytes < job.src.bytes) {
            job.flags |= ZARR_CODEC_JOB_NO_ROOM;
            job.status = host->fail(err, ZARR_ERR_CORRUPT, "tests.turned: no room");
            first = first == ZARR_OK ? job.status : first;
            continue;
        }
        for (uint64_t k = 0; k < job.src.bytes; k++)
            dst[k] = static_cast<unsigned char>(~src[k]);
        job.dst_used = job.src.bytes;
    }
    return first;
}

zarr_status load(const zarr_host *given, zarr_context *ctx, void **, zarr_error *err)
{
    zarr_codec_spec_vtable spec{};
    zarr_codec_impl_vtable impl{};
    zarr_status st;

    host = given;
    spec.struct_size = sizeof spec;
    spec.name = "tests.turned";
    spec.kind = ZARR_CODEC_BYTES_BYTES;
    spec.canonical = canonical;
    spec.resolve = resolve;
    impl.struct_size = sizeof impl;
    impl.codec = "tests.turned";
    impl.impl = "cpu.cxx";
    impl.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE;
    impl.in_kinds = impl.out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU);
    impl.encode = impl.decode = turn;
    st = host->register_codec_spec(ctx, &spec, err);
    return st == ZARR_OK ? host->register_codec_impl(ctx, &impl, err) : st;
}

} // namespace

const zarr_plugin *zarr_plugin_v1(void)
{
    static const zarr_plugin plugin = [] {
        zarr_plugin p{};

        p.struct_size = sizeof p;
        p.abi = ZARR_PLUGIN_ABI;
        p.name = "tests-cxx";
        p.load = load;
        return p;
    }();

    return &plugin;
}
