/*
 * codecs/checksum/checksum_cpu.c - the checksum codecs: four little-endian bytes after
 * the bytes that they cover, or before them if that is the codec's default or its
 * configuration says so. Decoding always checks them, because the copy of the bytes costs
 * more than the sum.
 */
#include "codecs/checksum/checksum.h"

#include <libdeflate.h>
#include <string.h>

enum {
    SUM_BYTES = 4
};

struct sum_self {
    const zarr_allocator *alloc;
    const char *codec;
    uint32_t (*sum)(const struct sum_self *self, const uint8_t *p, size_t n);
    bool at_start;
    uint32_t initval; /* jenkins_lookup3 */
    size_t prefix_bytes;
    uint8_t prefix[ZR_JENKINS_PREFIX_MAX];
};

/* ---- the sums --------------------------------------------------------------------- */

static uint32_t sum_crc32c(const struct sum_self *self, const uint8_t *p, size_t n)
{
    ZR_UNUSED(self);
    return zr_crc32c(0, p, n);
}

static uint32_t sum_crc32(const struct sum_self *self, const uint8_t *p, size_t n)
{
    ZR_UNUSED(self);
    return libdeflate_crc32(0, p, n);
}

static uint32_t sum_adler32(const struct sum_self *self, const uint8_t *p, size_t n)
{
    ZR_UNUSED(self);
    return libdeflate_adler32(1, p, n);
}

static uint32_t sum_fletcher32(const struct sum_self *self, const uint8_t *p, size_t n)
{
    ZR_UNUSED(self);
    return zr_fletcher32(p, n);
}

static uint32_t sum_jenkins(const struct sum_self *self, const uint8_t *p, size_t n)
{
    return zr_jenkins_lookup3(self->initval, self->prefix, self->prefix_bytes, p, n);
}

static const struct {
    const char *codec;
    uint32_t (*sum)(const struct sum_self *self, const uint8_t *p, size_t n);
    bool at_start;
} sum_kinds[] = {
    {"crc32c", sum_crc32c, false},           {"crc32", sum_crc32, true},
    {"adler32", sum_adler32, true},          {"fletcher32", sum_fletcher32, false},
    {"jenkins_lookup3", sum_jenkins, false},
};

/* ---- binding ---------------------------------------------------------------------- */

static void sum_read_jenkins(struct sum_self *self, const zarr_codec_spec *spec)
{
    int64_t prefix[ZR_JENKINS_PREFIX_MAX] = {0}, initval = 0, n = 0;

    (void)zarr_codec_spec_i64(spec, "initval", &initval);
    n = zarr_codec_spec_i64s(spec, "prefix", prefix, ZR_JENKINS_PREFIX_MAX);
    self->initval = (uint32_t)initval;
    self->prefix_bytes = n > 0 ? ZR_MIN((size_t)n, sizeof self->prefix) : 0;
    for (size_t i = 0; i < self->prefix_bytes; i++)
        self->prefix[i] = (uint8_t)prefix[i];
}

static zarr_status sum_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    const char *location = zarr_codec_spec_text(spec, "location");
    struct sum_self *self = NULL;
    size_t k = 0;

    ZR_UNUSED(to);
    while (k < ZR_COUNT(sum_kinds) &&
           !zr_streq(sum_kinds[k].codec, zarr_codec_spec_name(spec)))
        k++;
    if (k == ZR_COUNT(sum_kinds))
        return zr_internal(err);
    self = zr_calloc(alloc, 1, sizeof *self);
    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->codec = sum_kinds[k].codec;
    self->sum = sum_kinds[k].sum;
    self->at_start = location ? zr_streq(location, "start") : sum_kinds[k].at_start;
    sum_read_jenkins(self, spec);
    *out = self;
    return ZARR_OK;
}

/* ---- both ways -------------------------------------------------------------------- */

/* Compares the sum. *payload: the first of the bytes that it covers. */
static zarr_status sum_check(const struct sum_self *self, const struct zr_host_job *io,
                             const uint8_t **payload, zarr_error *err)
{
    const size_t n = io->src_bytes - SUM_BYTES;
    uint32_t stored = 0, computed = 0;

    *payload = io->src;
    if (io->src_bytes < SUM_BYTES)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, the checksum alone has 4",
                       self->codec, io->src_bytes);
    stored = zr_load_le32(self->at_start ? io->src : io->src + n);
    if (self->at_start)
        *payload += SUM_BYTES;
    computed = self->sum(self, *payload, n);
    if (stored != computed)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: checksum mismatch: stored %08" PRIx32 ", computed %08" PRIx32,
                       self->codec, stored, computed);
    return ZARR_OK;
}

static zarr_status sum_decode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct sum_self *self = self_ptr;
    const uint8_t *payload = NULL;

    ZR_UNUSED(exec);
    if (io->src_bytes > SUM_BYTES && io->src_bytes - SUM_BYTES > io->dst_bytes)
        return zr_too_long(err, self->codec, io->dst_bytes);
    ZR_CHECK(sum_check(self, io, &payload, err));
    *used = io->src_bytes - SUM_BYTES;
    memcpy(io->dst, payload, *used);
    return ZARR_OK;
}

static zarr_status sum_within_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const uint8_t *payload = NULL;

    ZR_UNUSED(exec);
    ZR_CHECK(sum_check(self_ptr, io, &payload, err));
    *used = io->src_bytes - SUM_BYTES;
    return ZARR_OK;
}

static zarr_status sum_within(void *self_ptr, zarr_codec_job *job, zarr_codec_exec *exec,
                              zarr_error *err)
{
    const struct sum_self *self = self_ptr;
    zarr_codec_job in = {.src = job->src};

    in.dst.device_type = job->src.device_type; /* of no bytes */
    ZR_CHECK(zr_jobs_each(sum_within_one, self_ptr, &in, 1, exec, err));
    if (!zr_mem_slice(&job->src, self->at_start ? SUM_BYTES : 0, in.dst_used, &job->dst))
        return zr_internal(err);
    job->dst_used = in.dst_used;
    return ZARR_OK;
}

ZR_JOBS_EACH(sum_decode, sum_decode_one)

static zarr_status sum_encode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct sum_self *self = self_ptr;
    const size_t n = io->src_bytes;

    ZR_UNUSED(exec);
    if (io->dst_bytes < SUM_BYTES || io->dst_bytes - SUM_BYTES < n)
        return zr_no_room(err, self->codec);
    memcpy(self->at_start ? io->dst + SUM_BYTES : io->dst, io->src, n);
    zr_store_le32(self->at_start ? io->dst : io->dst + n, self->sum(self, io->src, n));
    *used = n + SUM_BYTES;
    return ZARR_OK;
}

ZR_JOBS_EACH(sum_encode, sum_encode_one)

#define SUM_VTABLE(name, library)                                                        \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = name, .impl = library, .in_kinds = ZR_HOST_KINDS,                       \
        .out_kinds = ZR_HOST_KINDS, .bind = sum_bind, .encode = sum_encode,              \
        .decode = sum_decode, .close = zr_self_free, .within = sum_within,               \
    }
const zarr_codec_impl_vtable zr_cpu_crc32c = SUM_VTABLE("crc32c", "cpu.zarrc");
const zarr_codec_impl_vtable zr_cpu_crc32 = SUM_VTABLE("crc32", "cpu.libdeflate");
const zarr_codec_impl_vtable zr_cpu_adler32 = SUM_VTABLE("adler32", "cpu.libdeflate");
const zarr_codec_impl_vtable zr_cpu_fletcher32 = SUM_VTABLE("fletcher32", "cpu.zarrc");
const zarr_codec_impl_vtable zr_cpu_jenkins_lookup3 =
    SUM_VTABLE("jenkins_lookup3", "cpu.zarrc");
