/*
 * fakenvcomp/fakenvcomp.c - a libnvcomp without a GPU, over the fake driver, for tests of
 * the real adapter: the calls of a version (FAKE_MAJOR 5 or 6), by liblz4, libzstd and
 * zlib. GDeflate is deflate here. Work is done when the stream gets there, and lists are
 * read then. Without FAKE_LACKS all formats are complete; with it zstd has no decoder.
 * What breaks a rule of nvCOMP aborts the process and says which: alignment, options that
 * are not 64 zeros, scratch memory that is short, statuses that are not asked for.
 *
 * Environment: FAKENVCOMP_VERSION tells another version, FAKENVCOMP_ALIGN the alignment
 * of inputs (4).
 */
#include "fakecuda.h"
#include "nvcomp.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define NV_API __attribute__((visibility("default")))

enum {
    OUTPUT_ALIGN = 2,
    TEMP_ALIGN = 256
};

static void fault(const char *what)
{
    (void)fprintf(stderr, "fake nvCOMP: %s\n", what);
    abort();
}

static uint64_t fail_in;
static int fail_with;
static uint64_t n_calls;

NV_API void fakenvcomp_fail(uint64_t k, int result);
void fakenvcomp_fail(uint64_t k, int result)
{
    fail_in = k;
    fail_with = result;
}

NV_API uint64_t fakenvcomp_calls(void);
uint64_t fakenvcomp_calls(void)
{
    return n_calls;
}

NV_API int nvcompGetProperties(struct nvcomp_properties *out);
int nvcompGetProperties(struct nvcomp_properties *out)
{
    const char *text = getenv("FAKENVCOMP_VERSION");

    out->version = text              ? (uint32_t)strtoul(text, NULL, 10)
                   : FAKE_MAJOR == 5 ? 5300
                                     : 6000;
    out->cudart_version = 13000;
    return 0;
}

static void check_options(const struct nvcomp_options *how)
{
    for (size_t i = 0; i < sizeof how->member / sizeof *how->member; i++)
        if (how->member[i] != 0)
            fault("options that are not zeros");
}

static size_t align_in(void)
{
    const char *text = getenv("FAKENVCOMP_ALIGN");

    return text ? strtoul(text, NULL, 10) : 4;
}

static size_t count_temp_bytes(size_t n, size_t total)
{
    return 1000 + 8 * n + total;
}

/* ---- streams -------------------- */

static int inflate_raw(const void *src, size_t n, void *dst, size_t room, size_t *out,
                       int bits)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)src,
                  .avail_in = (uInt)n,
                  .next_out = dst,
                  .avail_out = (uInt)room};
    int rc;

    if (inflateInit2(&z, bits) != Z_OK)
        return NVCOMP_CANNOT_DECODE;
    rc = inflate(&z, Z_FINISH);
    *out = room - z.avail_out;
    (void)inflateEnd(&z);
    return rc == Z_STREAM_END ? 0 : NVCOMP_CANNOT_DECODE;
}

static int decode_one(enum nvcomp_format f, const void *src, size_t n, void *dst,
                      size_t room, size_t *out)
{
    size_t got;
    int rc;

    *out = 0;
    switch (f) {
    case NVCOMP_ZSTD:
        got = ZSTD_decompress(dst, room, src, n);
        if (ZSTD_isError(got))
            return NVCOMP_CANNOT_DECODE;
        *out = got;
        return 0;
    case NVCOMP_LZ4:
        rc = LZ4_decompress_safe(src, dst, (int)n, (int)room);
        if (rc < 0)
            return NVCOMP_CANNOT_DECODE;
        *out = (size_t)rc;
        return 0;
    case NVCOMP_GZIP:
        return inflate_raw(src, n, dst, room, out, 31);
    case NVCOMP_DEFLATE:
    case NVCOMP_GDEFLATE:
        return inflate_raw(src, n, dst, room, out, -15);
    default:
        return NVCOMP_CANNOT_DECODE;
    }
}

static size_t deflate_raw(const void *src, size_t n, void *dst, size_t room, int bits)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)src,
                  .avail_in = (uInt)n,
                  .next_out = dst,
                  .avail_out = (uInt)room};
    size_t out;

    if (deflateInit2(&z, 1, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&z, Z_FINISH) != Z_STREAM_END)
        fault("zlib");
    out = room - z.avail_out;
    (void)deflateEnd(&z);
    return out;
}

static size_t encode_one(enum nvcomp_format f, const void *src, size_t n, void *dst,
                         size_t room)
{
    if (f == NVCOMP_ZSTD)
        return ZSTD_compress(dst, room, src, n, 1);
    if (f == NVCOMP_GZIP)
        return deflate_raw(src, n, dst, room, 31);
    return deflate_raw(src, n, dst, room, -15);
}

static size_t longest(size_t bytes)
{
    return bytes + bytes / 4 + 1024; /* more than metadata promises */
}

/* ---- batches -------------------- */

struct batch {
    enum nvcomp_format format;
    int encode;
    size_t n, temp_bytes, most;
    CUdeviceptr in, in_bytes, room, out, out_bytes, status, temp;
    CUstream s;
};

static void *reach(const struct batch *b, CUdeviceptr p, size_t bytes)
{
    void *at = fakecuda_memory(p, bytes, b->s);

    if (!at)
        fault("an address that is not the device's");
    return at;
}

static void run(void *arg)
{
    struct batch *b = arg;
    const CUdeviceptr *in = reach(b, b->in, b->n * 8), *out = reach(b, b->out, b->n * 8);
    const uint64_t *in_bytes = reach(b, b->in_bytes, b->n * 8);
    const uint64_t *room = b->encode ? NULL : reach(b, b->room, b->n * 8);
    uint64_t *out_bytes = reach(b, b->out_bytes, b->n * 8), total = 0;
    int *status = reach(b, b->status, b->n * sizeof *status);

    for (size_t i = 0; i < b->n; i++)
        total += b->encode ? b->most : room[i];
    if (b->temp % TEMP_ALIGN || b->temp_bytes < count_temp_bytes(b->n, total))
        fault("scratch memory is short or begins at the wrong place");
    memset(reach(b, b->temp, b->temp_bytes), 0xDD, b->temp_bytes);
    for (size_t i = 0; i < b->n; i++) {
        const size_t to = b->encode ? longest(b->most) : room[i];
        size_t length = 0;

        if (in[i] % align_in() || out[i] % OUTPUT_ALIGN)
            fault("a stream begins at the wrong place");
        if (b->encode)
            length = encode_one(b->format, reach(b, in[i], in_bytes[i]), in_bytes[i],
                                reach(b, out[i], to), to);
        else
            status[i] = decode_one(b->format, reach(b, in[i], in_bytes[i]), in_bytes[i],
                                   reach(b, out[i], to), to, &length);
        if (b->encode)
            status[i] = 0;
        out_bytes[i] = length;
    }
    free(b);
}

static int begin(const struct batch *given)
{
    struct batch *b;

    n_calls++;
    if (fail_in > 0 && --fail_in == 0)
        return fail_with;
    if (!given->status || !given->out_bytes)
        fault("statuses or lengths are not asked for");
    b = malloc(sizeof *b);
    if (!b)
        fault("no memory");
    *b = *given;
    fakecuda_queue(b->s, run, b);
    return 0;
}

#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

#if FAKE_MAJOR == 5
#    define TEMP_NAME(F, way) nvcompBatched##F##way##GetTempSizeAsync
#    define TEMP_ARGUMENTS                                                               \
        (size_t n, size_t most, struct nvcomp_options how, size_t * out, size_t total)
#else
#    define TEMP_NAME(F, way) nvcompBatched##F##way##GetTempSize
#    define TEMP_ARGUMENTS                                                               \
        (size_t n, size_t most, struct nvcomp_options how, size_t * out, size_t total,   \
         CUstream s)
#endif
#if FAKE_MAJOR == 5
#    define TEMP_UNUSED
#else
#    define TEMP_UNUSED (void)s;
#endif

#define DECODER(F, id)                                                                   \
    NV_API nvcomp_coder nvcompBatched##F##DecompressAsync;                               \
    int nvcompBatched##F##DecompressAsync(                                               \
        const void *const *in, const size_t *in_bytes, const size_t *room,               \
        size_t *out_bytes, size_t n, void *temp, size_t temp_bytes, void *const *out,    \
        struct nvcomp_options how, int *status, CUstream s)                              \
    {                                                                                    \
        check_options(&how);                                                             \
        return begin(&(struct batch){id, 0, n, temp_bytes, 0, AT(in), AT(in_bytes),      \
                                     AT(room), AT(out), AT(out_bytes), AT(status),       \
                                     AT(temp), s});                                      \
    }
#define ENCODER(F, id)                                                                   \
    NV_API nvcomp_encoder nvcompBatched##F##CompressAsync;                               \
    int nvcompBatched##F##CompressAsync(                                                 \
        const void *const *in, const size_t *in_bytes, size_t most, size_t n,            \
        void *temp, size_t temp_bytes, void *const *out, size_t *out_bytes,              \
        struct nvcomp_options how, int *status, CUstream s)                              \
    {                                                                                    \
        check_options(&how);                                                             \
        return begin(&(struct batch){id, 1, n, temp_bytes, most, AT(in), AT(in_bytes),   \
                                     0, AT(out), AT(out_bytes), AT(status), AT(temp),    \
                                     s});                                                \
    }                                                                                    \
    NV_API nvcomp_most_fn nvcompBatched##F##CompressGetMaxOutputChunkSize;               \
    int nvcompBatched##F##CompressGetMaxOutputChunkSize(                                 \
        size_t bytes, struct nvcomp_options how, size_t *out)                            \
    {                                                                                    \
        check_options(&how);                                                             \
        *out = longest(bytes);                                                           \
        return 0;                                                                        \
    }
#define SIZES(F, way)                                                                    \
    NV_API nvcomp_alignments_fn nvcompBatched##F##way##GetRequiredAlignments;            \
    int nvcompBatched##F##way##GetRequiredAlignments(struct nvcomp_options how,          \
                                                     struct nvcomp_alignments *out)      \
    {                                                                                    \
        check_options(&how);                                                             \
        *out = (struct nvcomp_alignments){align_in(), OUTPUT_ALIGN, TEMP_ALIGN};         \
        return 0;                                                                        \
    }                                                                                    \
    NV_API int TEMP_NAME(F, way) TEMP_ARGUMENTS;                                         \
    int TEMP_NAME(F, way) TEMP_ARGUMENTS                                                 \
    {                                                                                    \
        check_options(&how);                                                             \
        if (total < most || n == 0)                                                      \
            fault("a total that is less than its parts");                                \
        TEMP_UNUSED                                                                      \
        *out = count_temp_bytes(n, total);                                               \
        return 0;                                                                        \
    }

#if FAKE_MAJOR == 6 && defined(FAKE_LACKS)
SIZES(Zstd, Decompress)
#else
DECODER(Zstd, NVCOMP_ZSTD)
SIZES(Zstd, Decompress)
ENCODER(Zstd, NVCOMP_ZSTD)
SIZES(Zstd, Compress)
#endif
DECODER(Gzip, NVCOMP_GZIP)
SIZES(Gzip, Decompress)
ENCODER(Gzip, NVCOMP_GZIP)
SIZES(Gzip, Compress)
DECODER(Deflate, NVCOMP_DEFLATE)
SIZES(Deflate, Decompress)
DECODER(Gdeflate, NVCOMP_GDEFLATE)
SIZES(Gdeflate, Decompress)
DECODER(LZ4, NVCOMP_LZ4)
SIZES(LZ4, Decompress)
