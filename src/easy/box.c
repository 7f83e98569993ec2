/*
 * easy/box.c - reads, writes and appends boxes of elements in host memory. Elements of
 * another data type are converted if no value can change. A read puts the stored elements
 * at the end of the caller's memory and converts them there from the front: a type that
 * holds every value of another is never shorter, so no element is overwritten before it
 * is converted. A write converts into memory of its own.
 * Thread class: plain functions.
 */
#include "codecs/codecs.h"
#include "easy/easy_int.h"

#include <string.h>
#include <zarrc/shape.h>

/* The caller's memory. */
struct box_memory {
    const char *data_type; /* NULL: the array's */
    void *data;
    uint64_t bytes;
};

struct box {
    zarr_array *array;
    const zarr_io_options *opts;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];     /* of the tensor: with the dimensions of a field */
    const zarr_dtype *stored, *wanted; /* of the array or its field; of the memory */
    uint32_t order;                    /* of the elements in memory */
    bool converts;
    struct zr_number from, to; /* if it converts: of parts of elements */
    uint32_t n_parts;          /* that an element has then */
    size_t n_items;
    uint64_t bytes; /* of all elements in memory */
};

/* ---- shape ----------------------------------------------------------------- */

uint64_t zarr_array_n_items(const zarr_array *array)
{
    uint64_t shape[ZARR_MAX_RANK] = {0};

    if (!array)
        return 0;
    zarr_array_copy_shapes(array, shape, NULL, NULL);
    return zr_product_cap(shape, (size_t)zarr_array_ndim(array));
}

zarr_status zarr_array_check_ndim(const zarr_array *array, int32_t ndim, zarr_error *err)
{
    ZR_NEED(array, err);
    if (zarr_array_ndim(array) == ndim)
        return ZARR_OK;
    zr_fail(err, ZARR_ERR_INVALID, "the array has %d dimensions, the program expects %d",
            (int)zarr_array_ndim(array), (int)ndim);
    return zr_path_prefix(err, ZARR_ERR_INVALID, zarr_array_path(array));
}

/* Sets the shape of the box. *out: a selection, owned by the caller; NULL: the whole
 * array. */
static zarr_status box_select(struct box *b, const uint64_t *start, const uint64_t *count,
                              zarr_selection **out, zarr_error *err)
{
    uint64_t shape[ZARR_MAX_RANK] = {0}, first[ZARR_MAX_RANK] = {0};

    zarr_array_copy_shapes(b->array, shape, NULL, NULL);
    b->ndim = zarr_array_ndim(b->array);
    for (int32_t d = 0; d < b->ndim; d++) {
        first[d] = start ? start[d] : 0;
        b->shape[d] = count ? count[d] : first[d] <= shape[d] ? shape[d] - first[d] : 0;
    }
    if (!start && !count)
        return ZARR_OK;
    return zarr_selection_box(out, b->ndim, shape, first, b->shape, err);
}

/* Appends the dimensions of the field, whose type takes the place of the array's. */
static zarr_status box_field(struct box *b, const char *name, zarr_error *err)
{
    zarr_dtype_field field = ZARR_DTYPE_FIELD_INIT;

    ZR_CHECK(zarr_dtype_field_find(b->stored, name, &field, err));
    if (field.ndim > ZARR_MAX_RANK - b->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "a box of %d dimensions and a field of %d more: at most %d",
                       (int)b->ndim, (int)field.ndim, ZARR_MAX_RANK);
    memcpy(b->shape + b->ndim, field.shape, (size_t)field.ndim * sizeof *b->shape);
    b->ndim += field.ndim;
    b->stored = field.dtype;
    return ZARR_OK;
}

/* ---- data types ------------------------------------------------------------ */

/* write: from memory to the array. */
static zarr_status box_conversion(struct box *b, bool write, zarr_error *err)
{
    const zarr_dtype *source = write ? b->wanted : b->stored;
    const zarr_dtype *target = write ? b->stored : b->wanted;
    struct zr_number *memory = write ? &b->from : &b->to;

    b->converts = !zarr_dtype_equal(source, target);
    if (!b->converts)
        return ZARR_OK;
    if (!zr_number_from_dtype(source, &b->from) ||
        !zr_number_from_dtype(target, &b->to) || b->from.parts != b->to.parts)
        return zr_fail(err, ZARR_ERR_INVALID, "%s cannot be converted to %s",
                       zr_dtype_label(source), zr_dtype_label(target));
    if (!zr_number_holds(&b->to, &b->from))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s is not converted to %s, which has no equal for some of its "
                       "values",
                       zr_dtype_label(source), zr_dtype_label(target));
    b->n_parts = b->from.parts;
    b->from = zr_number_part(&b->from);
    b->to = zr_number_part(&b->to);
    if (b->order != ZR_ORDER_NATIVE)
        memory->big = memory->bytes > 1 && b->order == ZARR_ORDER_BIG;
    return ZARR_OK;
}

static zarr_status box_types(struct box *b, const char *data_type, bool write,
                             zarr_error *err)
{
    zarr_io_options o;

    ZR_CHECK(zr_struct_read(&o, sizeof o, 2 * sizeof(uint32_t), b->opts, ZR_TAIL_REFUSE,
                            "zarr_io_options", err));
    b->stored = zarr_array_dtype(b->array);
    if (o.field)
        ZR_CHECK(box_field(b, o.field, err));
    b->wanted = b->stored;
    if (data_type)
        ZR_CHECK(zarr_dtype_find_order(&b->wanted, zarr_array_context(b->array),
                                       data_type, &b->order, err));
    return box_conversion(b, write, err);
}

/* ---- memory ---------------------------------------------------------------- */

static zarr_status box_room(struct box *b, const struct box_memory *m, zarr_error *err)
{
    const uint64_t item_bytes = zarr_dtype_item_bytes(b->wanted);
    const uint64_t n = zr_product_cap(b->shape, (size_t)b->ndim);

    b->bytes = zr_mul_cap(n, item_bytes);
    if (b->bytes > m->bytes || !zr_fits(n, &b->n_items) || n > INT64_MAX)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%" PRIu64 " elements of %s need %" PRIu64
                       " bytes, data_bytes is %" PRIu64,
                       n, zr_dtype_label(b->wanted), b->bytes, m->bytes);
    if (b->bytes > 0 && !m->data)
        return zr_fail(err, ZARR_ERR_INVALID, "data is NULL");
    return ZARR_OK;
}

static zarr_status box_prepare(struct box *b, const struct box_memory *m, bool write,
                               zarr_error *err)
{
    ZR_CHECK(box_types(b, m->data_type, write, err));
    return box_room(b, m, err);
}

/* Describes elements of the array's type, or of the caller's if nothing is converted. */
static void box_describe(zarr_tensor *out, const struct box *b, void *data)
{
    const uint64_t item_bytes = zarr_dtype_item_bytes(b->stored);

    zarr_tensor_host(out, NULL, data ? data : out, b->n_items * item_bytes, b->ndim,
                     b->shape);
    out->dtype = b->stored;
    out->byte_order = b->converts ? ZR_ORDER_NATIVE : b->order;
}

static size_t box_parts(const struct box *b)
{
    return b->n_items * b->n_parts; /* fits: their bytes do */
}

/* ---- the calls ------------------------------------------------------------- */

static zarr_status read_elements(struct box *b, const zarr_selection *sel, void *data,
                                 zarr_error *err)
{
    uint8_t *stored = data;
    zarr_tensor tensor;

    if (b->converts && b->n_items > 0)
        stored += b->bytes - b->n_items * zarr_dtype_item_bytes(b->stored);
    box_describe(&tensor, b, stored);
    ZR_CHECK(zarr_array_read(b->array, sel, &tensor, b->opts, err));
    if (b->converts)
        return zr_codecs_cast(data, &b->to, stored, &b->from, box_parts(b),
                              zarr_array_context(b->array)->alloc, err);
    return ZARR_OK;
}

/* NOLINTNEXTLINE(readability-function-size): the header says why */
zarr_status zarr_array_read_box_with(zarr_array *array, const uint64_t *start,
                                     const uint64_t *count, const char *data_type,
                                     void *data, uint64_t data_bytes,
                                     const zarr_io_options *opts, zarr_error *err)
{
    const struct box_memory m = {data_type, data, data_bytes};
    struct box b = {.array = array, .opts = opts};
    zarr_selection *sel = NULL;
    zarr_status st = ZARR_OK;

    ZR_NEED(array, err);
    st = box_select(&b, start, count, &sel, err);
    if (st == ZARR_OK)
        st = box_prepare(&b, &m, false, err);
    if (st == ZARR_OK)
        st = read_elements(&b, sel, data, err);
    else
        zr_path_prefix(err, st, zarr_array_path(array));
    zarr_selection_free(sel);
    return st;
}

zarr_status zarr_array_read_box(zarr_array *array, const uint64_t *start,
                                const uint64_t *count, const char *data_type, void *data,
                                uint64_t data_bytes, zarr_error *err)
{
    return zarr_array_read_box_with(array, start, count, data_type, data, data_bytes,
                                    NULL, err);
}

/* *out: the caller's elements, or `room`, which is allocated and has them converted. */
static zarr_status convert_source(struct box *b, const void *data, void **room,
                                  void **out, zarr_error *err)
{
    const zarr_allocator *alloc = zarr_array_context(b->array)->alloc;
    size_t bytes = 0;

    *out = (void *)(uintptr_t)data;
    if (!b->converts || b->n_items == 0)
        return ZARR_OK;
    if (zr_mul(b->n_items, (size_t)zarr_dtype_item_bytes(b->stored), &bytes))
        *out = *room = zr_malloc(alloc, bytes);
    if (!*room)
        return zr_fail_memory(err, bytes);
    return zr_codecs_cast(*room, &b->to, data, &b->from, box_parts(b), alloc, err);
}

/* How a box is stored: in a selection, or appended. */
struct box_target {
    const zarr_selection *selection;
    bool append;
    uint64_t *first;
};

static zarr_status write_elements(struct box *b, const struct box_memory *m,
                                  const struct box_target *to, zarr_error *err)
{
    zarr_tensor tensor;
    void *room = NULL, *elements = NULL;
    zarr_status st = box_prepare(b, m, true, err);

    if (st == ZARR_OK)
        st = convert_source(b, m->data, &room, &elements, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, zarr_array_path(b->array));
    } else {
        box_describe(&tensor, b, elements);
        st = to->append
                 ? zarr_array_append(b->array, 0, &tensor, to->first, b->opts, err)
                 : zarr_array_write(b->array, to->selection, &tensor, b->opts, err);
    }
    zr_free(zarr_array_context(b->array)->alloc, room);
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the header says why */
zarr_status zarr_array_write_box_with(zarr_array *array, const uint64_t *start,
                                      const uint64_t *count, const char *data_type,
                                      const void *data, uint64_t data_bytes,
                                      const zarr_io_options *opts, zarr_error *err)
{
    const struct box_memory m = {data_type, (void *)(uintptr_t)data, data_bytes};
    struct box b = {.array = array, .opts = opts};
    struct box_target to = {0};
    zarr_selection *sel = NULL;
    zarr_status st = ZARR_OK;

    ZR_NEED(array, err);
    st = box_select(&b, start, count, &sel, err);
    to.selection = sel;
    if (st == ZARR_OK)
        st = write_elements(&b, &m, &to, err);
    else
        zr_path_prefix(err, st, zarr_array_path(array));
    zarr_selection_free(sel);
    return st;
}

zarr_status zarr_array_write_box(zarr_array *array, const uint64_t *start,
                                 const uint64_t *count, const char *data_type,
                                 const void *data, uint64_t data_bytes, zarr_error *err)
{
    return zarr_array_write_box_with(array, start, count, data_type, data, data_bytes,
                                     NULL, err);
}

/* NOLINTNEXTLINE(readability-function-size): the header says why */
zarr_status zarr_array_append_rows_with(zarr_array *array, uint64_t n_rows,
                                        const char *data_type, const void *data,
                                        uint64_t data_bytes, uint64_t *first,
                                        const zarr_io_options *opts, zarr_error *err)
{
    const struct box_memory m = {data_type, (void *)(uintptr_t)data, data_bytes};
    const struct box_target to = {.append = true, .first = first};
    struct box b = {.array = array, .opts = opts};

    ZR_NEED(array, err);
    b.ndim = zarr_array_ndim(array);
    zarr_array_copy_shapes(array, b.shape, NULL, NULL);
    b.shape[0] = n_rows; /* an array without dimensions is refused by the append */
    return write_elements(&b, &m, &to, err);
}

zarr_status zarr_array_append_rows(zarr_array *array, uint64_t n_rows,
                                   const char *data_type, const void *data,
                                   uint64_t data_bytes, zarr_error *err)
{
    return zarr_array_append_rows_with(array, n_rows, data_type, data, data_bytes, NULL,
                                       NULL, err);
}
