/*
 * codecs/objects/categorize_cpu.c - categorize: stores text as the number of its label,
 * counted from 1. As in numcodecs, text that is not a label becomes 0, and 0 becomes
 * empty text: the filter is meant to lose such text. A number above that of the last
 * label is CORRUPT. Elements of variable length point to the labels of the configuration.
 * Elements of a fixed length get as much of a label as fits.
 */
#include "codecs/objects/objects.h"

#include <string.h>

struct categorize_self {
    const zarr_allocator *alloc;
    struct zr_categorize c; /* its labels are borrowed from the specification */
    const struct zr_json **label;
    struct zr_map by_text; /* maps the text of a label to its number, kept as a pointer */
    size_t n, item_bytes;  /* elements of a chunk, and bytes of one */
    bool wide;             /* elements are text of a fixed length, in 32-bit characters */
};

static void categorize_close(void *self_ptr)
{
    struct categorize_self *self = self_ptr;

    if (!self)
        return;
    zr_map_deinit(&self->by_text);
    zr_free(self->alloc, self->label);
    zr_free(self->alloc, self);
}

/* Converts the label, which is valid UTF-8, to at most `most` characters of 32 bits, and
 * returns their number. `out` may be NULL and may be unaligned. */
static size_t categorize_widen(const struct zr_json *label, uint8_t *out, size_t most)
{
    const unsigned char *s = (const unsigned char *)label->u.text.ptr;
    const unsigned char *end = s + label->u.text.bytes;
    size_t n = 0;

    for (; s < end && n < most; n++) {
        const int more = *s < 0x80 ? 0 : *s < 0xE0 ? 1 : *s < 0xF0 ? 2 : 3;
        uint32_t c = *s++;

        c &= more ? 0x3Fu >> more : 0x7Fu;
        for (int i = 0; i < more; i++)
            c = c << 6 | (*s++ & 0x3F);
        if (out)
            memcpy(out + 4 * n, &c, sizeof c);
    }
    return n;
}

/* The size without zeros at the end, which NumPy does not count as part of a text. */
static size_t categorize_trim(const uint8_t *wide, size_t bytes)
{
    while (bytes >= 4 &&
           !(wide[bytes - 1] | wide[bytes - 2] | wide[bytes - 3] | wide[bytes - 4]))
        bytes -= 4;
    return bytes;
}

/* Adds a label to by_text. If a label occurs twice, the last one wins. */
static zarr_status categorize_learn(struct categorize_self *self,
                                    const struct zr_json *label, size_t number,
                                    zarr_error *err)
{
    const char *key = label->u.text.ptr;
    size_t bytes = label->u.text.bytes;
    uint8_t *wide = NULL;
    zarr_status st = ZARR_OK;

    if (self->wide) {
        if (!zr_mul(bytes, 4, &bytes))
            return zr_fail_memory(err, bytes);
        wide = zr_malloc(self->alloc, ZR_MAX(bytes, (size_t)1));
        if (!wide)
            return zr_fail_memory(err, bytes);
        bytes = categorize_trim(wide, 4 * categorize_widen(label, wide, SIZE_MAX));
        key = (const char *)wide;
    }
    st = zr_map_put_n(&self->by_text, key, bytes, (void *)(uintptr_t)number, err);
    zr_free(self->alloc, wide);
    return st;
}

static zarr_status categorize_bind(void **out, const zarr_codec_spec *spec,
                                   const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct categorize_self *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;
    size_t number = 0;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    zr_map_init(&self->by_text, alloc, NULL);
    ZR_TRY(zr_spec_categorize(spec, &self->c, err));
    self->item_bytes = (size_t)zarr_dtype_item_bytes(to->decoded->dtype);
    self->n = (size_t)(to->decoded->n_bytes / self->item_bytes);
    self->wide = !zarr_dtype_variable(to->decoded->dtype);
    self->label = zr_calloc(alloc, (size_t)self->c.n + 1, sizeof(struct zr_json *));
    if (!self->label)
        ZR_FAIL_MEMORY(err, (size_t)self->c.n * sizeof(struct zr_json *));
    for (const struct zr_json *v = self->c.label; v; v = v->next) {
        self->label[number++] = v;
        ZR_TRY(categorize_learn(self, v, number, err));
    }
    *out = self; /* moved */
    self = NULL;
out:
    categorize_close(self);
    return st;
}

static zarr_status categorize_decode_one(void *self_ptr, const struct zr_host_job *io,
                                         size_t *used, zarr_codec_exec *exec,
                                         zarr_error *err)
{
    const struct categorize_self *self = self_ptr;
    const size_t each = self->c.astype.bytes;

    ZR_UNUSED(exec);
    if (io->src_bytes != self->n * each)
        return zr_fail(err, ZARR_ERR_CORRUPT, "categorize: %zu bytes, expected %zu",
                       io->src_bytes, self->n * each);
    if (io->dst_bytes / self->item_bytes < self->n)
        return zr_no_room(err, "categorize");
    memset(io->dst, 0, self->n * self->item_bytes);
    for (size_t i = 0; i < self->n; i++) {
        const uint64_t code = zr_numpy_load(&self->c.astype, io->src + i * each).u;
        uint8_t *dst = io->dst + i * self->item_bytes;
        zarr_vlen item = {0};

        if (code > self->c.n)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "categorize: element %zu has the number %" PRId64
                           ", there are %" PRIu64 " labels",
                           i, (int64_t)code, self->c.n);
        if (code == 0)
            continue;
        if (self->wide) {
            (void)categorize_widen(self->label[code - 1], dst, self->item_bytes / 4);
            continue;
        }
        item.data = self->label[code - 1]->u.text.ptr;
        item.bytes = self->label[code - 1]->u.text.bytes;
        memcpy(dst, &item, sizeof item);
    }
    *used = self->n * self->item_bytes;
    return ZARR_OK;
}

static zarr_status categorize_encode_one(void *self_ptr, const struct zr_host_job *io,
                                         size_t *used, zarr_codec_exec *exec,
                                         zarr_error *err)
{
    const struct categorize_self *self = self_ptr;
    const size_t each = self->c.astype.bytes;

    ZR_UNUSED(exec);
    if (io->src_bytes / self->item_bytes != self->n)
        return zr_internal(err);
    if (io->dst_bytes / each < self->n)
        return zr_no_room(err, "categorize");
    for (size_t i = 0; i < self->n; i++) {
        const uint8_t *src = io->src + i * self->item_bytes;
        zarr_vlen item = {src, self->item_bytes};
        struct zr_numpy_value code = {0};

        if (self->wide)
            item.bytes = categorize_trim(src, self->item_bytes);
        else
            memcpy(&item, src, sizeof item);
        if (item.bytes && !item.data)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "categorize: element %zu of %" PRIu64 " bytes at NULL", i,
                           item.bytes);
        code.u = (uintptr_t)zr_map_get_n(&self->by_text, item.bytes ? item.data : "",
                                         (size_t)item.bytes);
        zr_numpy_store(&self->c.astype, io->dst + i * each, code);
    }
    *used = self->n * each;
    return ZARR_OK;
}

ZR_JOBS_EACH(categorize_decode, categorize_decode_one)

ZR_JOBS_EACH(categorize_encode, categorize_encode_one)

const zarr_codec_impl_vtable zr_cpu_categorize = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2,
    .codec = "categorize",
    .impl = "cpu.zarrc",
    .in_kinds = ZR_HOST_KINDS,
    .out_kinds = ZR_HOST_KINDS,
    .bind = categorize_bind,
    .encode = categorize_encode,
    .decode = categorize_decode,
    .close = categorize_close,
};
