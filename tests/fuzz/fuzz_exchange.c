/*
 * fuzz/fuzz_exchange.c - tensors of DLPack and columns of Arrow with any numbers, as
 * another program may give them. What is refused says why. What is taken has its elements
 * where a computation of this file says; it goes out again as it came. Buffers of Arrow
 * have no length, so those of the target are long enough for all offsets that it makes,
 * apart from those that no memory can have.
 */
#include <stdbool.h>
#include <string.h>

#include <zarrc/arrow.h>
#include <zarrc/dlpack.h>
#include <zarrc/zarrc.h>

#include "fuzz.h"
#include "support/foreign/dlpack.h"

enum {
    FUZZ_ELEMENTS = 4,
    FUZZ_BYTES = 1 << 17,
    FUZZ_OFFSETS = 300,
    FUZZ_RANK = 4
};

static zarr_context *fuzz_ctx;
static zarr_store *fuzz_store;
static uint8_t fuzz_memory[FUZZ_BYTES]; /* offsets have 16 bits, items 2 bytes */

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* ---- the input as numbers ---------------------------------------------------------- */

struct fuzz_input {
    const uint8_t *p;
    size_t n;
};

static uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

/* A small number, or one that no memory has. */
static int64_t fuzz_number(struct fuzz_input *in)
{
    static const int64_t far[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX - 5, INT64_MAX / 2,
                                  INT64_MIN, INT64_MIN + 1, INT64_MIN / 2, -1};
    const uint8_t b = fuzz_byte(in);

    return b < 240 ? b / 2 : far[b % 8];
}

/* A small number of either sign, or a huge one. */
static int64_t fuzz_stride(struct fuzz_input *in)
{
    const uint8_t b = fuzz_byte(in);

    return b < 200   ? (int8_t)(b - 100)
           : b < 240 ? ((int64_t)b - 219) * (INT64_C(1) << (fuzz_byte(in) % 58))
                     : fuzz_number(in);
}

/* ---- DLPack ------------------------------------------------------------------------ */

/* The place of the last element's first lane in bits, counted from the first element,
 * modulo 2^64: strides may be negative. */
static uint64_t fuzz_place(const DLTensor *t, uint64_t bits)
{
    uint64_t at = 0, next = 1;

    for (int32_t d = t->ndim; d-- > 0;) {
        at += (t->strides ? (uint64_t)t->strides[d] : next) * (uint64_t)(t->shape[d] - 1);
        next *= (uint64_t)t->shape[d];
    }
    return at * bits;
}

static uint64_t fuzz_place_in(const zarr_tensor *t, int32_t ndim, uint64_t lane_bits)
{
    const bool packed = (t->flags & ZARR_TENSOR_PACKED) != 0;
    uint64_t at = 0, next = lane_bits;

    for (int32_t d = t->ndim; d-- > 0;) {
        uint64_t step = next;

        if (t->strides && !(packed && d == t->ndim - 1))
            step = (uint64_t)t->strides[d] * 8;
        if (d < ndim && t->shape[d] > 1)
            at += step * (uint64_t)(t->shape[d] - 1);
        next *= (uint64_t)t->shape[d];
    }
    return at;
}

static void fuzz_taken(const DLManagedTensorVersioned *v, const zarr_dlpack_view *view)
{
    const DLTensor *from = &v->dl_tensor;
    const bool padded =
        from->dtype.bits < 8 && (v->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
    const uint64_t lane = padded ? 8 : from->dtype.bits;
    const zarr_tensor *t = &view->tensor;
    uint64_t n = 1;

    fuzz_check(t->ndim == from->ndim || t->ndim == from->ndim + 1);
    fuzz_check(t->device_type > 0 && t->data == from->data);
    for (int32_t d = 0; d < t->ndim; d++) {
        fuzz_check(t->shape[d] ==
                   (d < from->ndim ? (uint64_t)from->shape[d] : from->dtype.lanes));
        fuzz_check(!__builtin_mul_overflow(n, t->shape[d], &n));
    }
    if (n > 0)
        fuzz_check(fuzz_place(from, lane * from->dtype.lanes) ==
                   fuzz_place_in(t, from->ndim,
                                 t->ndim > from->ndim ? lane : lane * from->dtype.lanes));
}

static void fuzz_out(const zarr_dlpack_view *view)
{
    struct DLManagedTensorVersioned *out = NULL;
    zarr_error err = {0};
    const zarr_status st =
        zarr_tensor_to_dlpack(&out, fuzz_ctx, &view->tensor, 0, NULL, NULL, &err);
    DLManagedTensorVersioned *v = NULL;

    memcpy(&v, &out, sizeof v);
    fuzz_check(st == ZARR_OK ? v != NULL
                             : st == ZARR_ERR_UNSUPPORTED && !v && err.message[0]);
    if (!v)
        return;
    fuzz_check(v->dl_tensor.ndim == view->tensor.ndim);
    for (int32_t d = 0; d < v->dl_tensor.ndim; d++)
        fuzz_check((uint64_t)v->dl_tensor.shape[d] == view->tensor.shape[d]);
    v->deleter(v);
}

static void fuzz_dlpack(struct fuzz_input *in)
{
    static const uint8_t bits[] = {8, 16, 32, 64, 4, 2, 6, 1, 128};
    int64_t shape[FUZZ_RANK], strides[FUZZ_RANK];
    DLManagedTensorVersioned v = {.version = {1, 0}};
    const struct DLManagedTensorVersioned *from = NULL;
    const DLManagedTensorVersioned *given = &v;
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;
    const uint8_t forms = fuzz_byte(in), size = fuzz_byte(in);
    zarr_error err = {0};
    zarr_status st;

    v.version.major = forms & 1 ? fuzz_byte(in) : 1;
    v.flags = fuzz_byte(in);
    v.dl_tensor.data = forms & 2 ? NULL : fuzz_memory;
    v.dl_tensor.dtype.code = fuzz_byte(in);
    v.dl_tensor.dtype.bits = size < 200 ? bits[size % sizeof bits] : size;
    v.dl_tensor.dtype.lanes = forms & 4 ? fuzz_byte(in) : 1;
    v.dl_tensor.device.device_type = forms & 8 ? (DLDeviceType)fuzz_stride(in) : kDLCPU;
    v.dl_tensor.byte_offset = (uint64_t)fuzz_number(in);
    v.dl_tensor.ndim = (int32_t)(fuzz_byte(in) % (FUZZ_RANK + 1));
    v.dl_tensor.shape = forms & 16 ? NULL : shape;
    v.dl_tensor.strides = forms & 32 ? strides : NULL;
    for (int i = 0; i < FUZZ_RANK; i++) {
        shape[i] = forms & 64 ? fuzz_stride(in) : fuzz_number(in);
        strides[i] = fuzz_stride(in);
    }
    if (forms & 128)
        v.dl_tensor.ndim = (int32_t)(fuzz_byte(in) < 128 ? INT32_MIN : ZARR_MAX_RANK + 1);
    memcpy(&from, &given, sizeof from);
    st = zarr_tensor_from_dlpack(&view, fuzz_ctx, from, &err);
    if (st == ZARR_OK) {
        fuzz_taken(&v, &view);
        fuzz_out(&view);
    } else {
        fuzz_check(err.message[0] &&
                   (st == ZARR_ERR_INVALID || st == ZARR_ERR_UNSUPPORTED));
    }
}

/* ---- Arrow ------------------------------------------------------------------------- */

static void fuzz_release_schema(struct ArrowSchema *s)
{
    s->release = NULL;
}

static void fuzz_release_array(struct ArrowArray *a)
{
    a->release = NULL;
}

struct fuzz_column {
    struct ArrowSchema schema, item_schema, *schemas[2];
    struct ArrowArray array, item, *items[2];
    const void *buffers[3], *item_buffers[3];
    uint8_t valid[64], item_valid[64];
    int32_t small[FUZZ_OFFSETS];
    int64_t wide[FUZZ_OFFSETS];
};

static struct fuzz_column fuzz_c;

static void fuzz_schema(struct ArrowSchema *s, struct fuzz_input *in, uint8_t forms)
{
    static const char *const formats[] = {"u", "U", "z", "Z", "+l", "+L", "s", "i", ""};

    *s = (struct ArrowSchema){.format = formats[fuzz_byte(in) % 9],
                              .name = "",
                              .release = forms & 1 ? NULL : fuzz_release_schema};
    if (forms & 2)
        s->dictionary = s;
    if (forms & 4)
        s->format = NULL;
    s->n_children = forms & 8 ? fuzz_stride(in) : 0;
}

static void fuzz_array(struct ArrowArray *a, struct fuzz_input *in, uint8_t forms)
{
    *a = (struct ArrowArray){.length = forms & 1 ? fuzz_number(in) : FUZZ_ELEMENTS,
                             .offset = forms & 2 ? fuzz_number(in) : 0,
                             .null_count = forms & 4 ? fuzz_number(in) : 0,
                             .release = forms & 8 ? NULL : fuzz_release_array};
    if (forms & 16)
        a->dictionary = a;
    a->n_buffers = forms & 32 ? fuzz_stride(in) : 3;
    a->n_children = forms & 64 ? fuzz_stride(in) : 0;
}

static void fuzz_offsets(struct fuzz_column *c, struct fuzz_input *in)
{
    const uint8_t step = fuzz_byte(in);

    for (int i = 0; i < FUZZ_OFFSETS; i++) {
        int16_t at = (int16_t)(i * (step % 16));

        if (i < 16 && step >= 128)
            at = (int16_t)(fuzz_byte(in) << 8 | fuzz_byte(in));
        c->small[i] = at;
        c->wide[i] = at;
    }
    for (size_t i = 0; i < sizeof c->valid; i++) {
        c->valid[i] = i < 2 ? fuzz_byte(in) : (uint8_t)(step + i);
        c->item_valid[i] = i < 2 ? fuzz_byte(in) : 0xFF;
    }
}

static void fuzz_list(struct fuzz_column *c, struct fuzz_input *in)
{
    const uint8_t forms = fuzz_byte(in);

    fuzz_schema(&c->item_schema, in, forms & 1 ? fuzz_byte(in) : 0);
    if (forms & 2)
        c->item_schema.format = "s";
    fuzz_array(&c->item, in, forms & 4 ? fuzz_byte(in) : 1);
    c->item.n_buffers = forms & 8 ? fuzz_number(in) : 2;
    c->item_buffers[0] = forms & 16 ? c->item_valid : NULL;
    c->item_buffers[1] = forms & 32 ? NULL : fuzz_memory;
    c->item.buffers = forms & 64 ? NULL : c->item_buffers;
    c->schemas[0] = &c->item_schema;
    c->items[0] = forms & 128 ? NULL : &c->item;
    c->schema.children = c->schemas;
    c->array.children = c->items;
    if (c->array.n_children == 0)
        c->schema.n_children = c->array.n_children = 1;
    if (c->array.n_buffers == 3)
        c->array.n_buffers = 2;
}

/* The column that came out has the elements of the one that went in. */
static void fuzz_same(const struct fuzz_column *c, bool large, uint64_t item_bytes,
                      const struct ArrowArray *out)
{
    const struct ArrowArray *a = &c->array;
    const uint8_t *bytes = fuzz_memory, *got = out->buffers[item_bytes > 1 ? 0 : 2];
    const uint8_t *valid = out->buffers[0];
    const int32_t *ends = out->buffers[1];

    if (item_bytes > 1) {
        bytes += (uint64_t)c->item.offset * item_bytes;
        got = out->children[0]->buffers[1];
    }
    for (int64_t i = 0; i < FUZZ_ELEMENTS; i++) {
        const int64_t at = a->offset + i;
        const int64_t begin = large ? c->wide[at] : c->small[at];
        const int64_t end = large ? c->wide[at + 1] : c->small[at + 1];
        const bool null =
            a->null_count != 0 && a->buffers[0] && !(c->valid[at / 8] >> (at % 8) & 1);

        fuzz_check(null == (valid && !(valid[i / 8] >> (i % 8) & 1)));
        fuzz_check(ends[i + 1] - ends[i] == (null ? 0 : end - begin));
        if (!null && end > begin)
            fuzz_check(!memcmp(got + (uint64_t)ends[i] * item_bytes,
                               bytes + (uint64_t)begin * item_bytes,
                               (uint64_t)(end - begin) * item_bytes));
    }
}

static void fuzz_write(const char *name, bool large, uint64_t item_bytes)
{
    const struct fuzz_column *c = &fuzz_c;
    struct ArrowArray out;
    zarr_array *a = NULL;
    zarr_error err = {0};
    zarr_status st;

    fuzz_check(zarr_array_open(&a, fuzz_store, name, NULL, &err) == ZARR_OK);
    st = zarr_array_write_arrow(a, NULL, &c->schema, &c->array, NULL, &err);
    if (st == ZARR_OK) {
        fuzz_check(zarr_array_read_arrow(a, NULL, 0, NULL, &out, NULL, &err) == ZARR_OK);
        fuzz_check(out.length == FUZZ_ELEMENTS);
        fuzz_same(c, large, item_bytes, &out);
        out.release(&out);
    } else {
        fuzz_check(err.message[0] &&
                   (st == ZARR_ERR_INVALID || st == ZARR_ERR_UNSUPPORTED));
    }
    zarr_array_free(a);
}

static void fuzz_arrow(struct fuzz_input *in)
{
    static const char *const names[] = {"text", "bytes", "list", "some"};
    struct fuzz_column *c = &fuzz_c;
    const uint8_t which = fuzz_byte(in) % 4, forms = fuzz_byte(in);
    bool large = false;

    fuzz_schema(&c->schema, in, forms & 1 ? fuzz_byte(in) : 0);
    fuzz_array(&c->array, in, forms & 2 ? fuzz_byte(in) : 0);
    fuzz_offsets(c, in);
    if (c->schema.format)
        large = c->schema.format[0] == 'U' || c->schema.format[0] == 'Z' ||
                !strcmp(c->schema.format, "+L");
    c->buffers[0] = forms & 4 ? c->valid : NULL;
    c->buffers[1] = forms & 8 ? NULL : large ? (const void *)c->wide : c->small;
    c->buffers[2] = forms & 16 ? NULL : fuzz_memory;
    c->array.buffers = forms & 32 ? NULL : c->buffers;
    if (which == 2 || (forms & 64))
        fuzz_list(c, in);
    fuzz_write(names[which], large, which == 2 ? 2 : 1);
}

/* ---- entry ------------------------------------------------------------------------- */

static void fuzz_make(const char *name, const char *type, int32_t format)
{
    const uint64_t shape[1] = {FUZZ_ELEMENTS}, chunk[1] = {3};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array *a = NULL;

    spec.zarr_format = format;
    spec.data_type = type;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    fuzz_check(zarr_array_create(&a, fuzz_store, name, &spec, NULL, NULL) == ZARR_OK);
    zarr_array_free(a);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    zarr_context_options co = ZARR_CONTEXT_OPTIONS_INIT;

    (void)argc;
    (void)argv;
    co.max_threads = 1;
    for (size_t i = 0; i < sizeof fuzz_memory; i++)
        fuzz_memory[i] = (uint8_t)(i % 95 + 32); /* text, so most strings are valid */
    fuzz_memory[40] = 0xFF;
    fuzz_check(zarr_context_create(&fuzz_ctx, &co, NULL) == ZARR_OK);
    fuzz_check(zarr_store_open(&fuzz_store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
    fuzz_make("text", "string", 3);
    fuzz_make("bytes", "bytes", 3);
    fuzz_make("list", "vlen-array[int16]", 2);
    fuzz_make("some", "{\"name\":\"optional\",\"configuration\":{\"name\":\"string\"}}",
              3);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    if (fuzz_byte(&in) & 1)
        fuzz_arrow(&in);
    else
        fuzz_dlpack(&in);
    return 0;
}
