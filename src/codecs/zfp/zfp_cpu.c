/*
 * codecs/zfp/zfp_cpu.c - zfp and zfpy by libzfp. The library reads and writes whole words
 * and does not check where its stream ends. So a chunk is decoded from a copy, with as
 * many zeros after it as the metadata lets the decoder read. The decoder must then have
 * used exactly the chunk. A header (zfpy) must name the field that the metadata gives. It
 * may also name the dimensions that the field had before a filter flattened it, or
 * floats, because other writers do so. Streams are little-endian words of 64 bits, as
 * every little-endian machine writes them. Each thread keeps the stream object and both
 * buffers. The library takes no allocator, so it uses malloc() for the object and for its
 * own memory.
 */
#include "codecs/zfp/zfp_promote.h"

#include <stdio.h>
#include <string.h>
#include <zfp.h>

enum {
    ZFP_WORD = 8,
    ZFP_HEADER_ROOM = 40 /* a header has at most 148 bits */
};

struct zfp_self {
    const zarr_allocator *alloc;
    struct zr_zfp z;
    const char *codec;
};
struct zfp_thread {
    zfp_stream *stream;
    const zarr_allocator *alloc; /* of the buffers, from the codec that made the first */
    void *words, *items;         /* aligned for all number types */
    size_t words_bytes, items_bytes;
};

static zarr_status zfp_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct zfp_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->codec = zarr_codec_spec_name(spec);
    st = zr_spec_zfp(spec, to->decoded, &self->z, err);
    if (st == ZARR_OK)
        *out = self;
    else
        zr_free(alloc, self);
    return st;
}

static zarr_status zfp_thread_open(void *self, void **state, zarr_error *err)
{
    struct zfp_thread *t = zr_calloc(NULL, 1, sizeof *t);

    ZR_UNUSED(self);
    if (!t)
        return zr_fail_memory(err, sizeof *t);
    *state = t;
    return ZARR_OK;
}

static void zfp_thread_close(void *state)
{
    struct zfp_thread *t = state;

    if (!t)
        return;
    if (t->stream)
        zfp_stream_close(t->stream);
    zr_free(t->alloc, t->words);
    zr_free(t->alloc, t->items);
    zr_free(NULL, t);
}

/* Grows a buffer. All codecs that use a thread state belong to its context, so both
 * buffers have the same allocator. */
static zarr_status zfp_room(struct zfp_thread *t, const struct zfp_self *self, bool words,
                            uint64_t need, zarr_error *err)
{
    void **buffer = words ? &t->words : &t->items;
    size_t *have = words ? &t->words_bytes : &t->items_bytes;
    size_t bytes = 0;

    if (need <= *have)
        return ZARR_OK;
    if (!t->words && !t->items)
        t->alloc = self->alloc;
    zr_free(t->alloc, *buffer);
    *have = 0;
    *buffer = zr_fits(need, &bytes) ? zr_malloc(t->alloc, bytes) : NULL;
    if (!*buffer)
        return zr_fail_memory(err, need);
    *have = bytes;
    return ZARR_OK;
}

/* ---- fields ------------------------------------------------------------------------ */

static size_t zfp_item_bytes(const struct zr_zfp *z)
{
    return z->scalar == ZR_ZFP_INT32 || z->scalar == ZR_ZFP_FLOAT ? 4 : 8;
}

/* `size` has the slowest dimension first. */
static void zfp_set_size(zfp_field *f, const uint64_t *size, uint32_t dims)
{
    f->nx = (size_t)size[dims - 1];
    f->ny = dims > 1 ? (size_t)size[dims - 2] : 0;
    f->nz = dims > 2 ? (size_t)size[dims - 3] : 0;
    f->nw = dims > 3 ? (size_t)size[dims - 4] : 0;
}

static void zfp_field_set(zfp_field *f, const struct zr_zfp *z, void *items)
{
    static const zfp_type types[] = {[ZR_ZFP_INT32] = zfp_type_int32,
                                     [ZR_ZFP_INT64] = zfp_type_int64,
                                     [ZR_ZFP_FLOAT] = zfp_type_float,
                                     [ZR_ZFP_DOUBLE] = zfp_type_double};

    *f = (zfp_field){.type = types[z->scalar], .data = items};
    zfp_set_size(f, z->size, z->dims);
}

static bool zfp_same_size(const zfp_field *a, const zfp_field *b)
{
    return a->nx == b->nx && a->ny == b->ny && a->nz == b->nz && a->nw == b->nw;
}

static uint64_t zfp_count_blocks(const zfp_field *f)
{
    const uint64_t size[] = {f->nx, ZR_MAX(f->ny, (size_t)1), ZR_MAX(f->nz, (size_t)1),
                             ZR_MAX(f->nw, (size_t)1)};

    return zr_zfp_blocks(size, ZR_COUNT(size));
}

static bool zfp_set_mode(zfp_stream *s, const struct zr_zfp *z, const zfp_field *f)
{
    switch (z->mode) {
    case ZR_ZFP_EXPERT:
        return !z->header &&
               zfp_stream_set_params(s, z->minbits, z->maxbits, z->maxprec, z->minexp);
    case ZR_ZFP_RATE:
        return zfp_stream_set_rate(s, z->number, f->type, z->dims, zfp_false) > 0;
    case ZR_ZFP_PRECISION:
        return zfp_stream_set_precision(s, (uint)ZR_MIN(z->number, 64.0)) > 0;
    case ZR_ZFP_ACCURACY:
        return zfp_stream_set_accuracy(s, z->number) >= 0;
    default:
        zfp_stream_set_reversible(s);
        return true;
    }
}

static zarr_status zfp_thread_stream(struct zfp_thread *t, zfp_stream **out,
                                     zarr_error *err)
{
    if (!t->stream)
        t->stream = zfp_stream_open(NULL);
    *out = t->stream;
    return t->stream ? ZARR_OK : zr_fail_memory(err, sizeof(zfp_stream));
}

static uint64_t zfp_whole_words(uint64_t bytes)
{
    return (bytes + ZFP_WORD - 1) / ZFP_WORD * ZFP_WORD;
}

/* Swaps the bytes of the words in memory on big-endian machines. */
static void zfp_order_words(void *words, size_t bytes)
{
    if (!ZR_HOST_IS_LITTLE && stream_word_bits > 8)
        zr_byteswap(words, words, bytes / (stream_word_bits / 8),
                    (uint32_t)stream_word_bits / 8);
}

/* The float type of the same width. */
static zfp_type zfp_floats(zfp_type whole)
{
    return whole == zfp_type_int64 ? zfp_type_double : zfp_type_float;
}

/* ---- decoding --------------------------------------------------------------------- */

/* Room for four lengths and a type. */
#define ZFP_FIELD_TEXT 128

static const char *zfp_type_text(zfp_type type)
{
    return type == zfp_type_int32    ? "int32"
           : type == zfp_type_int64  ? "int64"
           : type == zfp_type_float  ? "float32"
           : type == zfp_type_double ? "float64"
                                     : "an unknown type";
}

/* "6 x 10 items of float32", the slowest dimension first. */
static const char *zfp_field_text(const zfp_field *f, char text[ZFP_FIELD_TEXT])
{
    const size_t size[] = {f->nw, f->nz, f->ny, f->nx};
    size_t n = 0;

    for (size_t i = 0; i < ZR_COUNT(size); i++)
        if (size[i] > 0)
            n += (size_t)snprintf(text + n, ZFP_FIELD_TEXT - n, "%s%zu", n ? " x " : "",
                                  size[i]);
    (void)snprintf(text + n, ZFP_FIELD_TEXT - n, " items of %s", zfp_type_text(f->type));
    return text;
}

/* Reads zfpy's header, which sets the stream's mode. CORRUPT if it names another field
 * than the metadata. `want` gets the type and the dimensions of the header; these have
 * the same number of items and the same size of an item. */
static zarr_status zfp_take_header(zfp_stream *s, zfp_field *want,
                                   const struct zfp_self *self, zarr_error *err)
{
    const struct zr_zfp *z = &self->z;
    zfp_field f = {.type = zfp_type_none}, ours, array, flat;
    char theirs[ZFP_FIELD_TEXT], wanted[ZFP_FIELD_TEXT];

    if (!zfp_read_header(s, &f, ZFP_HEADER_FULL))
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: damaged header", self->codec);
    zfp_field_set(&ours, z, NULL);
    array = flat = ours;
    zfp_set_size(&flat, &z->n_items, 1);
    if (z->array_dims)
        zfp_set_size(&array, z->array_size, z->array_dims);
    if ((zfp_same_size(&f, &ours) || zfp_same_size(&f, &array) ||
         zfp_same_size(&f, &flat)) &&
        (f.type == ours.type || (z->bits_of_floats && f.type == zfp_floats(ours.type)))) {
        want->type = f.type;
        want->nx = f.nx;
        want->ny = f.ny;
        want->nz = f.nz;
        want->nw = f.nw;
        return ZARR_OK;
    }
    return zr_fail(err, ZARR_ERR_CORRUPT, "%s: the header says %s, the chunk has %s",
                   self->codec, zfp_field_text(&f, theirs),
                   zfp_field_text(&ours, wanted));
}

/* Reads the header from the first bytes of the chunk, to get the mode of the stream. */
static zarr_status zfp_peek(zfp_stream *s, zfp_field *want, const struct zfp_self *self,
                            const struct zr_host_job *io, zarr_error *err)
{
    uint64_t front[ZFP_HEADER_ROOM / ZFP_WORD] = {0};
    bitstream *bits = stream_open(front, sizeof front);
    zarr_status st = ZARR_OK;

    if (!bits)
        return zr_fail_memory(err, sizeof front);
    memcpy(front, io->src, ZR_MIN(io->src_bytes, sizeof front));
    zfp_order_words(front, sizeof front);
    zfp_stream_set_bit_stream(s, bits);
    zfp_stream_rewind(s);
    st = zfp_take_header(s, want, self, err);
    zfp_stream_set_bit_stream(s, NULL);
    stream_close(bits);
    return st;
}

/* Copies the stream and adds zeros after it for all words that the decoder may read. */
static zarr_status zfp_copy_in(struct zfp_thread *t, const struct zfp_self *self,
                               const zfp_stream *s, const zfp_field *f,
                               const struct zr_host_job *io, size_t *bytes,
                               zarr_error *err)
{
    const uint64_t most = zfp_stream_maximum_size(s, f);
    const uint64_t src_bits = (uint64_t)io->src_bytes * 8;
    const uint64_t n_blocks = zfp_count_blocks(f);
    uint64_t room = 0, least = 0;

    if (!zr_mul(n_blocks, s->minbits, &least) || least > src_bits + 63)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: truncated stream: %zu bytes",
                       self->codec, io->src_bytes);
    /* a block of a damaged stream can be one bit longer than any encoder writes it */
    if (!zr_add(ZR_MAX(most, (uint64_t)io->src_bytes), n_blocks / 8 + 64, &room))
        return zr_internal(err);
    room -= room % ZFP_WORD;
    ZR_CHECK(zfp_room(t, self, true, room, err));
    memcpy(t->words, io->src, io->src_bytes);
    memset((uint8_t *)t->words + io->src_bytes, 0, (size_t)room - io->src_bytes);
    *bytes = (size_t)room;
    zfp_order_words(t->words, *bytes);
    return ZARR_OK;
}

static zarr_status zfp_decode_words(const struct zfp_self *self, zfp_stream *s,
                                    zfp_field *f, const struct zr_host_job *io,
                                    zarr_error *err)
{
    zarr_status st = ZARR_OK;
    size_t got = 0;

    zfp_stream_rewind(s);
    if (self->z.header)
        ZR_TRY(zfp_take_header(s, f, self, err));
    got = zfp_decompress(s, f);
    if (!got)
        st = zr_fail(err, ZARR_ERR_CORRUPT, "%s: damaged stream", self->codec);
    else if (zfp_whole_words(got) > zfp_whole_words(io->src_bytes))
        st = zr_fail(err, ZARR_ERR_CORRUPT, "%s: truncated stream: %zu bytes of %zu",
                     self->codec, io->src_bytes, got);
    else if (zfp_whole_words(got) < zfp_whole_words(io->src_bytes))
        st = zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, the stream ends after %zu",
                     self->codec, io->src_bytes, got);
out:
    return st;
}

static zarr_status zfp_decode_field(const struct zfp_self *self, struct zfp_thread *t,
                                    zfp_field *f, const struct zr_host_job *io,
                                    zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zfp_stream *s = NULL;
    bitstream *bits = NULL;
    size_t bytes = 0;

    if (!io->src_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: the chunk is empty", self->codec);
    ZR_TRY(zfp_thread_stream(t, &s, err));
    if (self->z.header) {
        const zfp_field asked = *f;

        ZR_TRY(zfp_peek(s, f, self, io, err));
        if (asked.sx && !zfp_same_size(f, &asked)) /* the strides are those of `asked` */
            ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "%s: the chunk is flattened", self->codec);
    } else if (!zfp_set_mode(s, &self->z, f)) {
        ZR_TRY(zr_internal(err));
    }
    ZR_TRY(zfp_copy_in(t, self, s, f, io, &bytes, err));
    bits = stream_open(t->words, bytes);
    if (!bits)
        ZR_FAIL_MEMORY(err, 64);
    zfp_stream_set_bit_stream(s, bits);
    st = zfp_decode_words(self, s, f, io, err);
out:
    if (bits) {
        zfp_stream_set_bit_stream(s, NULL);
        stream_close(bits);
    }
    return st;
}

static zarr_status zfp_decode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct zfp_self *self = self_ptr;
    struct zfp_thread *t = exec->thread_state;
    const struct zr_zfp *z = &self->z;
    const size_t item = zfp_item_bytes(z), want = (size_t)z->n_items * z->item_bytes;
    const bool aside = zr_zfp_promotes(z) || (uintptr_t)io->dst % item;
    zfp_field f;

    if (io->dst_bytes < want)
        return zr_no_room(err, self->codec);
    if (aside)
        ZR_CHECK(zfp_room(t, self, false, z->n_items * item, err));
    zfp_field_set(&f, z, aside ? t->items : io->dst);
    ZR_CHECK(zfp_decode_field(self, t, &f, io, err));
    if (zr_zfp_promotes(z))
        zr_zfp_demote(z, t->items, io->dst);
    else if (aside)
        memcpy(io->dst, t->items, want);
    *used = want;
    return ZARR_OK;
}

/* ---- into a tensor with strides --------------------------------------------------- */

/* Returns false if the library cannot write there. Its strides are in whole items. */
static bool zfp_places_set(zfp_field *f, const struct zr_zfp *z,
                           const zarr_codec_strided *to)
{
    uint8_t *first = (uint8_t *)to->first.handle + to->first.offset;
    const int64_t item = (int64_t)zfp_item_bytes(z);
    int64_t stride[4] = {0};

    if (zr_zfp_promotes(z) || to->ndim != (int32_t)z->dims ||
        (uintptr_t)first % (size_t)item)
        return false;
    for (int32_t d = 0; d < to->ndim; d++) {
        if (to->shape[d] != z->size[d] || to->stride[d] % item)
            return false;
        stride[to->ndim - 1 - d] = to->stride[d] / item;
    }
    zfp_field_set(f, z, first);
    f->sx = (ptrdiff_t)stride[0];
    f->sy = (ptrdiff_t)stride[1];
    f->sz = (ptrdiff_t)stride[2];
    f->sw = (ptrdiff_t)stride[3];
    return true;
}

struct zfp_places {
    const struct zfp_self *self;
    zfp_field field;
};

static zarr_status zfp_strided_one(void *places, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    struct zfp_places *p = places;
    const zarr_status st =
        zfp_decode_field(p->self, exec->thread_state, &p->field, io, err);

    *used = (size_t)p->self->z.n_items * p->self->z.item_bytes;
    return st;
}

static zarr_status zfp_decode_strided(void *self, zarr_codec_job *job,
                                      const zarr_codec_strided *to, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    struct zfp_places p = {.self = self};
    zarr_codec_job in = {.src = job->src, .dst = to->first};
    zarr_status st;

    if (!zfp_places_set(&p.field, &p.self->z, to))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: other elements or strides",
                       p.self->codec);
    st = zr_jobs_each(zfp_strided_one, &p, &in, 1, exec, err);
    job->dst_used = in.dst_used;
    return st;
}

ZR_JOBS_EACH(zfp_decode, zfp_decode_one)

/* ---- encoding --------------------------------------------------------------------- */

static zarr_status zfp_items(struct zfp_thread *t, const struct zfp_self *self,
                             const struct zr_host_job *io, void **items, zarr_error *err)
{
    const struct zr_zfp *z = &self->z;
    const size_t item = zfp_item_bytes(z);
    zarr_status st = ZARR_OK;

    *items = (void *)(uintptr_t)io->src; /* libzfp does not write to it */
    if (!zr_zfp_promotes(z) && (uintptr_t)io->src % item == 0)
        goto out;
    ZR_TRY(zfp_room(t, self, false, z->n_items * item, err));
    *items = t->items;
    if (!zr_zfp_promotes(z))
        memcpy(t->items, io->src, io->src_bytes);
    else if (!zr_zfp_promote(z, io->src, t->items))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "%s: an unsigned element uses the highest bit, which zfp's type "
                     "lacks",
                     self->codec);
out:
    return st;
}

static zarr_status zfp_encode_one(void *self_ptr, const struct zr_host_job *io,
                                  size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct zfp_self *self = self_ptr;
    struct zfp_thread *t = exec->thread_state;
    zarr_status st = ZARR_OK;
    zfp_stream *s = NULL;
    bitstream *bits = NULL;
    zfp_field f;
    void *items = NULL;
    uint64_t most = 0;
    size_t got = 0;

    if (io->src_bytes != (size_t)self->z.n_items * self->z.item_bytes)
        return zr_internal(err);
    ZR_TRY(zfp_thread_stream(t, &s, err));
    ZR_TRY(zfp_items(t, self, io, &items, err));
    zfp_field_set(&f, &self->z, items);
    if (!zfp_set_mode(s, &self->z, &f))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "%s: mode %d cannot be written", self->codec,
                (int)self->z.mode);
    /* and a last word that the library may begin without need */
    most = zfp_whole_words(zfp_stream_maximum_size(s, &f)) + ZFP_HEADER_ROOM;
    ZR_TRY(zfp_room(t, self, true, most, err));
    bits = stream_open(t->words, t->words_bytes);
    if (!bits)
        ZR_FAIL_MEMORY(err, 64);
    zfp_stream_set_bit_stream(s, bits);
    zfp_stream_rewind(s);
    if (self->z.header && !zfp_write_header(s, &f, ZFP_HEADER_FULL))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "%s: chunks of this shape or mode have no header", self->codec);
    got = zfp_compress(s, &f);
    *used = (size_t)zfp_whole_words(got);
    if (!got || *used > t->words_bytes)
        st = zr_internal(err);
    else if (*used > io->dst_bytes)
        st = zr_no_room(err, self->codec);
    if (st != ZARR_OK)
        goto out;
    memset((uint8_t *)t->words + got, 0, *used - got);
    zfp_order_words(t->words, *used);
    memcpy(io->dst, t->words, *used);
out:
    if (bits) {
        zfp_stream_set_bit_stream(s, NULL);
        stream_close(bits);
    }
    return st;
}

ZR_JOBS_EACH(zfp_encode, zfp_encode_one)

#define ZFP_VTABLE(name)                                                                 \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC,                                                \
        .codec = name, .impl = "cpu.libzfp", .in_kinds = ZR_HOST_KINDS,                  \
        .out_kinds = ZR_HOST_KINDS, .bind = zfp_bind, .thread_open = zfp_thread_open,    \
        .thread_close = zfp_thread_close, .encode = zfp_encode, .decode = zfp_decode,    \
        .close = zr_self_free, .strided = zfp_decode_strided,                            \
    }
const zarr_codec_impl_vtable zr_cpu_zfp = ZFP_VTABLE("zfp");
const zarr_codec_impl_vtable zr_cpu_zfpy = ZFP_VTABLE("zfpy");
