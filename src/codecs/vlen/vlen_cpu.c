/*
 * codecs/vlen/vlen_cpu.c - vlen-utf8, vlen-bytes, zarrs.vlen_v2 and vlen-array. A chunk
 * is the number of elements, then the length and the bytes of each element. The numbers
 * are little-endian u32. Decoding copies nothing: elements point into the encoded bytes.
 * The caller of the program keeps those until it has moved the elements. Only lists whose
 * items look different in memory (byte order, padding) are copied. The thread keeps the
 * copy until the next chunk. Decoding checks everything: the number of elements against
 * the chunk, lengths against the remaining bytes, text for valid UTF-8. Bytes after the
 * last element are CORRUPT.
 */
#include "codecs/vlen/vlen.h"

#include <string.h>

enum {
    VLEN_WORD = 4
};

struct vlen_self {
    const zarr_allocator *alloc;
    const char *codec;
    uint64_t n; /* elements of a chunk, or at most that many if `varies` */
    bool varies, text;
    struct zr_ragged list; /* vlen-array */
    uint64_t each;         /* vlen-array: bytes of one item of a list; others: 1 */
    bool converts;         /* encoded items look different in memory */
};

struct vlen_thread {
    uint8_t *items; /* converted items of the chunk; as long as its encoded bytes */
    size_t bytes;
    const zarr_allocator *alloc;
};

static zarr_status vlen_thread_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(self);
    *state = zr_calloc(NULL, 1, sizeof(struct vlen_thread));
    return *state ? ZARR_OK : zr_fail_memory(err, sizeof(struct vlen_thread));
}

static void vlen_thread_close(void *state)
{
    struct vlen_thread *t = state;

    if (t)
        zr_free(t->alloc, t->items);
    zr_free(NULL, t);
}

static zarr_status vlen_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct vlen_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->codec = zarr_codec_spec_name(spec);
    self->n = to->decoded->n_bytes / sizeof(zarr_vlen);
    self->varies = !to->decoded->exact;
    self->text = zarr_dtype_kind(to->decoded->dtype) == ZARR_KIND_STRING;
    self->each = 1;
    if (zarr_dtype_kind(to->decoded->dtype) == ZARR_KIND_VARRAY) {
        ZR_TRY(zr_spec_read_ragged(spec, &self->list, err));
        self->each = zarr_dtype_item_bytes(self->list.item);
        self->converts = zr_dtype_is_padded(self->list.item) ||
                         zr_dtype_is_swapped(self->list.item, &self->list.stored);
    }
    *out = self; /* moved */
    self = NULL;
out:
    zr_free(alloc, self);
    return st;
}

static zarr_status vlen_fail(const struct vlen_self *self, const char *what, uint64_t i,
                             zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "%s: element %" PRIu64 " %s", self->codec, i,
                   what);
}

/* Copies the items of one list to `to` and converts them to their form in memory. */
static void vlen_to_memory(const struct vlen_self *self, zarr_vlen *item, uint8_t *to)
{
    if (item->bytes)
        memcpy(to, item->data, (size_t)item->bytes);
    zr_dtype_swap(self->list.item, &self->list.stored, to, item->bytes / self->each);
    zr_dtype_unpad(self->list.item, to, (size_t)(item->bytes / self->each));
    item->data = to;
}

static zarr_status vlen_item_room(const struct vlen_self *self, struct vlen_thread *t,
                                  size_t bytes, uint8_t **out, zarr_error *err)
{
    *out = NULL;
    if (!self->converts)
        return ZARR_OK;
    if (bytes > t->bytes) {
        zr_free(t->alloc, t->items);
        t->bytes = 0;
        t->alloc = self->alloc;
        t->items = zr_malloc(t->alloc, bytes);
        if (!t->items)
            return zr_fail_memory(err, bytes);
        t->bytes = bytes;
    }
    *out = t->items;
    return ZARR_OK;
}

static zarr_status vlen_decode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct vlen_self *self = self_ptr;
    const uint8_t *p = io->src, *end = io->src + io->src_bytes;
    uint64_t n = self->n;
    uint8_t *converted = NULL;

    if (io->src_bytes < VLEN_WORD)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes, the count alone has 4",
                       self->codec, io->src_bytes);
    if (self->varies && zr_load_le32(p) < n)
        n = zr_load_le32(p);
    if (zr_load_le32(p) != n)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: %" PRIu32 " elements, the chunk has %" PRIu64, self->codec,
                       zr_load_le32(p), n);
    if (io->dst_bytes / sizeof(zarr_vlen) < n)
        return self->varies ? zr_too_long(err, self->codec, io->dst_bytes)
                            : zr_no_room(err, self->codec);
    ZR_CHECK(vlen_item_room(self, exec->thread_state, io->src_bytes, &converted, err));
    p += VLEN_WORD;
    for (uint64_t i = 0; i < n; i++) {
        zarr_vlen item = {0};

        if (end - p < VLEN_WORD)
            return vlen_fail(self, "is missing: the chunk is short", i, err);
        item.bytes = zr_load_le32(p);
        p += VLEN_WORD;
        if (item.bytes > (uint64_t)(end - p))
            return vlen_fail(self, "ends after the end of the chunk", i, err);
        item.data = p;
        if (self->text && !zr_utf8_is_valid((const char *)p, (size_t)item.bytes))
            return vlen_fail(self, "is not UTF-8", i, err);
        if (item.bytes % self->each)
            return vlen_fail(self, "is not a whole number of items", i, err);
        if (converted)
            vlen_to_memory(self, &item, converted + (p - io->src));
        p += item.bytes;
        memcpy(io->dst + i * sizeof item, &item, sizeof item);
    }
    if (p != end)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %zu bytes after the last element",
                       self->codec, (size_t)(end - p));
    *used = (size_t)n * sizeof(zarr_vlen);
    return ZARR_OK;
}

ZR_JOBS_EACH(vlen_decode, vlen_decode_one)

/* Converts items in place to their encoded form. */
static zarr_status vlen_to_stored(const struct vlen_self *self, uint8_t *at,
                                  uint64_t bytes, zarr_error *err)
{
    const size_t n = (size_t)(bytes / self->each);

    if (!self->converts)
        return ZARR_OK;
    ZR_CHECK(zr_dtype_pad(self->list.item, at, n, err));
    zr_dtype_swap(self->list.item, &self->list.stored, at, n);
    return ZARR_OK;
}

/* INVALID if the element is too long, is missing although it has a length, is not UTF-8
 * or is not a whole number of items. */
static zarr_status vlen_check(const struct vlen_self *self, const zarr_vlen *item,
                              uint64_t i, zarr_error *err)
{
    if (item->bytes > UINT32_MAX || (item->bytes && !item->data))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: element %" PRIu64 " of %" PRIu64 " bytes%s", self->codec, i,
                       item->bytes,
                       item->data ? ", at most 2^32 - 1 are possible" : " at NULL");
    if (self->text && item->bytes && !zr_utf8_is_valid(item->data, (size_t)item->bytes))
        return zr_fail(err, ZARR_ERR_INVALID, "%s: element %" PRIu64 " is not UTF-8",
                       self->codec, i);
    if (item->bytes % self->each)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: element %" PRIu64 " of %" PRIu64
                       " bytes is not a whole number of items of %" PRIu64,
                       self->codec, i, item->bytes, self->each);
    return ZARR_OK;
}

static zarr_status vlen_encode_one(void *self_ptr, const struct zr_host_job *io,
                                   size_t *used, zarr_codec_exec *exec, zarr_error *err)
{
    const struct vlen_self *self = self_ptr;
    const uint64_t n = io->src_bytes / sizeof(zarr_vlen);
    uint8_t *p = io->dst, *end = io->dst + io->dst_bytes;

    ZR_UNUSED(exec);
    if (self->varies ? n > self->n : n != self->n)
        return zr_internal(err);
    if (end - p < VLEN_WORD)
        return zr_too_long(err, self->codec, io->dst_bytes);
    zr_store_le32(p, (uint32_t)n);
    p += VLEN_WORD;
    for (uint64_t i = 0; i < n; i++) {
        zarr_vlen item;

        memcpy(&item, io->src + i * sizeof item, sizeof item);
        ZR_CHECK(vlen_check(self, &item, i, err));
        if ((uint64_t)(end - p) < VLEN_WORD ||
            (uint64_t)(end - p) - VLEN_WORD < item.bytes)
            return zr_too_long(err, self->codec, io->dst_bytes);
        zr_store_le32(p, (uint32_t)item.bytes);
        if (item.bytes)
            memcpy(p + VLEN_WORD, item.data, (size_t)item.bytes);
        ZR_CHECK(vlen_to_stored(self, p + VLEN_WORD, item.bytes, err));
        p += VLEN_WORD + item.bytes;
    }
    *used = (size_t)(p - io->dst);
    return ZARR_OK;
}

ZR_JOBS_EACH(vlen_encode, vlen_encode_one)

/* Encoding: the exact encoded size. */
static uint64_t vlen_size_hint(void *self, const zarr_codec_job *job, int encode)
{
    uint64_t sum = VLEN_WORD;

    ZR_UNUSED(self);
    for (uint64_t at = 0; encode && at + sizeof(zarr_vlen) <= job->src.bytes;
         at += sizeof(zarr_vlen)) {
        zarr_vlen item;

        if (!zr_job_peek(job, at, &item, sizeof item) || !zr_add(sum, VLEN_WORD, &sum) ||
            !zr_add(sum, item.bytes, &sum))
            return UINT64_MAX;
    }
    return encode ? sum : 0;
}

#define VLEN_VTABLE(name, more)                                                          \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC | (more),                                       \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = vlen_bind, .encode = vlen_encode,            \
        .decode = vlen_decode, .close = zr_self_free, .size_hint = vlen_size_hint,       \
        .thread_open = vlen_thread_open, .thread_close = vlen_thread_close,              \
    }
const zarr_codec_impl_vtable zr_cpu_vlen_utf8 = VLEN_VTABLE("vlen-utf8", 0);
const zarr_codec_impl_vtable zr_cpu_vlen_bytes = VLEN_VTABLE("vlen-bytes", 0);
const zarr_codec_impl_vtable zr_cpu_vlen_v2 = VLEN_VTABLE("zarrs.vlen_v2", 0);
const zarr_codec_impl_vtable zr_cpu_vlen_array =
    VLEN_VTABLE("vlen-array", ZARR_CODEC_FOR_V2);
