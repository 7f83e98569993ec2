/*
 * codecs/lzma/lzma_cpu.c - numcodecs' lzma by liblzma, in its three containers. A chunk
 * may be several .xz or .lzma streams in a row, .xz with zeros between them. Other bytes
 * after the last stream are CORRUPT. A stream names the memory that its decoder needs.
 * More than MEMORY_ALWAYS plus twice the chunk's size is refused. Each thread keeps the
 * library's state, because a new start then reuses its memory.
 */
#include "codecs/lzma/lzma_filters.h"

#include <lzma.h>

/* Preset 9, the largest, needs 65 MiB. */
#define MEMORY_ALWAYS (UINT64_C(128) << 20)

enum {
    LZMA_XZ = 1,
    LZMA_ALONE = 2,
    LZMA_RAW = 3
};

struct lzma_self {
    const zarr_allocator *alloc;
    int format;
    uint32_t preset;
    lzma_check check;
    uint64_t memory; /* the most bytes that a decoder may use */
    /* The list ends with id LZMA_VLI_UNKNOWN. */
    lzma_filter filter[ZR_LZMA_FILTERS_MAX + 1];
    lzma_options_lzma lzma;
    lzma_options_delta delta[ZR_LZMA_FILTERS_MAX];
    lzma_options_bcj bcj[ZR_LZMA_FILTERS_MAX];
};

/* ---- binding ---------------------------------------------------------------------- */

static bool lzma_set_lzma(lzma_options_lzma *o, const struct zr_lzma_filter *f)
{
    const int64_t *m = f->member;

    if (lzma_lzma_preset(o, m[ZR_LZMA_PRESET] < 0 ? LZMA_PRESET_DEFAULT
                                                  : (uint32_t)m[ZR_LZMA_PRESET]))
        return false;
    if (m[ZR_LZMA_DICT_SIZE] >= 0)
        o->dict_size = (uint32_t)m[ZR_LZMA_DICT_SIZE];
    if (m[ZR_LZMA_LC] >= 0)
        o->lc = (uint32_t)m[ZR_LZMA_LC];
    if (m[ZR_LZMA_LP] >= 0)
        o->lp = (uint32_t)m[ZR_LZMA_LP];
    if (m[ZR_LZMA_PB] >= 0)
        o->pb = (uint32_t)m[ZR_LZMA_PB];
    if (m[ZR_LZMA_MODE] >= 0)
        o->mode = (lzma_mode)m[ZR_LZMA_MODE];
    if (m[ZR_LZMA_NICE_LEN] >= 0)
        o->nice_len = (uint32_t)m[ZR_LZMA_NICE_LEN];
    if (m[ZR_LZMA_MF] >= 0)
        o->mf = (lzma_match_finder)m[ZR_LZMA_MF];
    if (m[ZR_LZMA_DEPTH] >= 0)
        o->depth = (uint32_t)m[ZR_LZMA_DEPTH];
    return true;
}

static bool lzma_set_filters(struct lzma_self *self, const zarr_codec_spec *spec)
{
    struct zr_lzma_filter f[ZR_LZMA_FILTERS_MAX];
    const uint32_t n = zr_spec_lzma_filters(spec, f);

    for (uint32_t i = 0; i < n; i++) {
        const int64_t dist = f[i].member[ZR_LZMA_DIST],
                      start = f[i].member[ZR_LZMA_START_OFFSET];

        self->filter[i].id = (lzma_vli)f[i].id;
        if (self->filter[i].id == LZMA_FILTER_DELTA) {
            self->delta[i].type = LZMA_DELTA_TYPE_BYTE;
            self->delta[i].dist = dist < 0 ? 1 : (uint32_t)dist;
            self->filter[i].options = &self->delta[i];
        } else if (i + 1 < n) {
            self->bcj[i].start_offset = start < 0 ? 0 : (uint32_t)start;
            self->filter[i].options = &self->bcj[i];
        } else {
            self->filter[i].options = &self->lzma;
            if (!lzma_set_lzma(&self->lzma, &f[i]))
                return false;
        }
        if (!lzma_filter_decoder_is_supported(self->filter[i].id))
            return false;
    }
    self->filter[n].id = LZMA_VLI_UNKNOWN;
    return true;
}

static zarr_status lzma_check_memory(const struct lzma_self *self, uint64_t needs,
                                     zarr_error *err)
{
    if (needs <= self->memory)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_LIMIT,
                   "lzma: decoding takes %" PRIu64 " bytes of memory, more than %" PRIu64,
                   needs, self->memory);
}

static zarr_status lzma_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    struct lzma_self *self = zr_self_new(spec, sizeof *self, err);
    int64_t format = LZMA_XZ, check = -1, preset = LZMA_PRESET_DEFAULT;
    zarr_status st = ZARR_OK;

    if (!self)
        return ZARR_ERR_NO_MEMORY;
    (void)zarr_codec_spec_i64(spec, "format", &format);
    (void)zarr_codec_spec_i64(spec, "check", &check);
    (void)zarr_codec_spec_i64(spec, "preset", &preset);
    self->format = (int)format;
    self->preset = (uint32_t)preset;
    self->check = check < 0 ? LZMA_CHECK_CRC64 : (lzma_check)check;
    if (!zr_mul(to->decoded->n_bytes, 2, &self->memory) ||
        !zr_add(self->memory, MEMORY_ALWAYS, &self->memory))
        self->memory = UINT64_MAX;
    if (!lzma_set_filters(self, spec))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "lzma: this liblzma lacks a filter");
    if (self->format == LZMA_RAW)
        ZR_TRY(lzma_check_memory(self, lzma_raw_decoder_memusage(self->filter), err));
    *out = self; /* moved */
    self = NULL;
out:
    zr_self_free(self);
    return st;
}

static zarr_status lzma_thread_open(void *self, void **state, zarr_error *err)
{
    const lzma_stream fresh = LZMA_STREAM_INIT;
    lzma_stream *z = zr_malloc(NULL, sizeof *z);

    ZR_UNUSED(self);
    if (!z)
        return zr_fail_memory(err, sizeof *z);
    *z = fresh;
    *state = z;
    return ZARR_OK;
}

static void lzma_thread_close(void *state)
{
    if (!state)
        return;
    lzma_end(state);
    zr_free(NULL, state);
}

/* ---- decoding --------------------------------------------------------------------- */

static lzma_ret lzma_start_decoder(const struct lzma_self *self, lzma_stream *z)
{
    if (self->format == LZMA_XZ)
        return lzma_stream_decoder(z, self->memory, LZMA_CONCATENATED);
    return self->format == LZMA_ALONE ? lzma_alone_decoder(z, self->memory)
                                      : lzma_raw_decoder(z, self->filter);
}

/* Called if the room is full before the end of the stream. True if the stream decodes to
 * more bytes, false if only its end is missing. */
static bool lzma_has_more(lzma_stream *z)
{
    uint8_t spare = 0;

    z->next_out = &spare;
    z->avail_out = 1;
    return lzma_code(z, LZMA_FINISH) != LZMA_MEM_ERROR && z->avail_out == 0;
}

static zarr_status lzma_explain(const struct lzma_self *self, lzma_stream *z, lzma_ret rc,
                                size_t room, zarr_error *err)
{
    if (rc == LZMA_MEM_ERROR)
        return zr_fail_memory(err, 0);
    if (rc == LZMA_MEMLIMIT_ERROR)
        return lzma_check_memory(self, lzma_memusage(z), err);
    if (rc == LZMA_BUF_ERROR && !z->avail_out && lzma_has_more(z))
        return zr_too_long(err, "lzma", room);
    return zr_fail(err, ZARR_ERR_CORRUPT, "lzma: %s",
                   rc == LZMA_BUF_ERROR       ? "truncated stream"
                   : rc == LZMA_FORMAT_ERROR  ? "no stream where one should start"
                   : rc == LZMA_OPTIONS_ERROR ? "a stream with unknown options"
                                              : "damaged stream");
}

static zarr_status lzma_decode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct lzma_self *self = self_ptr;
    lzma_stream *z = exec->thread_state;
    lzma_ret rc = LZMA_OK;

    z->next_in = io->src;
    z->avail_in = io->src_bytes;
    z->next_out = io->dst;
    z->avail_out = io->dst_bytes;
    do {
        rc = lzma_start_decoder(self, z);
        while (rc == LZMA_OK)
            rc = lzma_code(z, LZMA_FINISH);
        if (rc != LZMA_STREAM_END)
            return lzma_explain(self, z, rc, io->dst_bytes, err);
    } while (z->avail_in && self->format != LZMA_RAW);
    if (z->avail_in)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "lzma: %zu bytes after the end of the stream", z->avail_in);
    *used = io->dst_bytes - z->avail_out;
    return ZARR_OK;
}

ZR_JOBS_EACH(lzma_decode, lzma_decode_one)

/* ---- encoding --------------------------------------------------------------------- */

static lzma_ret lzma_start_encoder(const struct lzma_self *self, lzma_stream *z)
{
    lzma_options_lzma options;

    if (self->format == LZMA_RAW)
        return lzma_raw_encoder(z, self->filter);
    if (self->format == LZMA_XZ)
        return self->filter[0].id == LZMA_VLI_UNKNOWN
                   ? lzma_easy_encoder(z, self->preset, self->check)
                   : lzma_stream_encoder(z, self->filter, self->check);
    if (self->filter[0].id != LZMA_VLI_UNKNOWN)
        return lzma_alone_encoder(z, &self->lzma);
    return lzma_lzma_preset(&options, self->preset) ? LZMA_OPTIONS_ERROR
                                                    : lzma_alone_encoder(z, &options);
}

static zarr_status lzma_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct lzma_self *self = self_ptr;
    lzma_stream *z = exec->thread_state;
    lzma_ret rc = lzma_start_encoder(self, z);

    z->next_in = io->src;
    z->avail_in = io->src_bytes;
    z->next_out = io->dst;
    z->avail_out = io->dst_bytes;
    while (rc == LZMA_OK)
        rc = lzma_code(z, LZMA_FINISH);
    *used = io->dst_bytes - z->avail_out;
    if (rc == LZMA_STREAM_END)
        return ZARR_OK;
    if (rc == LZMA_MEM_ERROR)
        return zr_fail_memory(err, 0);
    if (rc == LZMA_BUF_ERROR)
        return zr_no_room(err, "lzma");
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "lzma: this liblzma cannot encode with these filters or this check");
}

ZR_JOBS_EACH(lzma_encode, lzma_encode_one)

const zarr_codec_impl_vtable zr_cpu_lzma = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "lzma",
    .impl = "cpu.liblzma",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = lzma_bind,
    .thread_open = lzma_thread_open,
    .thread_close = lzma_thread_close,
    .encode = lzma_encode,
    .decode = lzma_decode,
    .close = zr_self_free,
};
