/* array.c - the type Array: a zarr_array, and what it is. array_open.c makes arrays,
 * array_io.c reads and writes elements, array_select.c makes selections, array_change.c
 * changes an array as a whole. */
#include "ext.h"

static void array_dealloc(PyObject *o)
{
    zx_array *self = (zx_array *)o;

    Py_BEGIN_ALLOW_THREADS zarr_array_free(self->a);
    Py_END_ALLOW_THREADS Py_XDECREF((PyObject *)self->store);
    Py_XDECREF(self->dtype);
    zx_free(o);
}

enum {
    SHAPE,
    SHAPE_CHUNK,
    SHAPE_WRITE
};

static PyObject *array_shape(PyObject *o, void *which)
{
    zx_array *self = (zx_array *)o;
    uint64_t shape[ZARR_MAX_RANK] = {0};
    const intptr_t what = (intptr_t)which;

    zarr_array_copy_shapes(self->a, what == SHAPE ? shape : NULL,
                           what == SHAPE_CHUNK ? shape : NULL,
                           what == SHAPE_WRITE ? shape : NULL);
    if (what != SHAPE && self->ndim > 0 && shape[0] == 0) /* chunks differ in shape */
        Py_RETURN_NONE;
    return zx_shape(self->ndim, shape);
}

static PyObject *array_grid(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    uint64_t counts[ZARR_MAX_RANK];

    (void)unused;
    zarr_array_block_counts(self->a, counts);
    return zx_shape(self->ndim, counts);
}

enum {
    TEXT_PATH,
    TEXT_METADATA,
    TEXT_ATTRIBUTES,
    TEXT_CODECS,
    TEXT_GRID
};

static PyObject *array_text(PyObject *o, void *which)
{
    const zarr_array *a = ((zx_array *)o)->a;
    const intptr_t what = (intptr_t)which;
    const char *text;

    if (what == TEXT_PATH)
        return zx_text(zarr_array_path(a));
    /* Some are written when they are first asked for, with the fill value of a data type
     * that may be written in Python. */
    Py_BEGIN_ALLOW_THREADS text = what == TEXT_METADATA     ? zarr_array_metadata(a)
                                  : what == TEXT_ATTRIBUTES ? zarr_array_attributes(a)
                                  : what == TEXT_CODECS     ? zarr_array_codecs(a)
                                                            : zarr_array_chunk_grid(a);
    Py_END_ALLOW_THREADS return zx_text(text);
}

static PyObject *array_number(PyObject *o, void *is_format)
{
    zx_array *self = (zx_array *)o;

    return PyLong_FromLong(is_format ? zarr_array_zarr_format(self->a) : self->ndim);
}

static PyObject *array_names(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    PyObject *tuple = PyTuple_New(self->ndim);

    (void)unused;
    for (int32_t d = 0; tuple && d < self->ndim; d++) {
        PyObject *name = zx_text(zarr_array_dimension_name(self->a, d));

        if (!name || PyTuple_SetItem(tuple, d, name))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The bytes of the fill value, the text or bytes of one of variable length; None: null.
 */
static PyObject *array_fill(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    const zarr_dtype *dtype = zarr_array_dtype(self->a);
    const char *fill = zarr_array_fill_value(self->a);
    const zarr_vlen *v = (const zarr_vlen *)(const void *)fill;

    (void)unused;
    if (!fill)
        Py_RETURN_NONE;
    if (!zarr_dtype_variable(dtype))
        return PyBytes_FromStringAndSize(fill, (Py_ssize_t)zarr_dtype_item_bytes(dtype));
    return PyBytes_FromStringAndSize(v->data, (Py_ssize_t)v->bytes);
}

static PyObject *array_fill_json(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    const void *fill = zarr_array_fill_value(self->a);

    (void)unused;
    if (!fill)
        Py_RETURN_NONE;
    return zx_element_json(self->st, zarr_array_dtype(self->a), fill);
}

static PyObject *array_facts(PyObject *o, void *unused)
{
    (void)unused;
    return zx_dtype_facts(zarr_array_dtype(((zx_array *)o)->a));
}

/* The type of the elements of lists; None: elements are no lists. */
static PyObject *array_item_facts(PyObject *o, void *unused)
{
    const zarr_dtype *item = zarr_dtype_item(zarr_array_dtype(((zx_array *)o)->a));

    (void)unused;
    if (!item)
        Py_RETURN_NONE;
    return zx_dtype_facts(item);
}

static PyObject *array_how(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((zx_array *)o)->how);
}

static PyObject *array_object(PyObject *o, void *is_store)
{
    zx_array *self = (zx_array *)o;

    return Py_NewRef(is_store ? (PyObject *)self->store : self->dtype);
}

static PyMethodDef array_methods[] = {
    {"_key", zx_array_key, METH_O, NULL},
    {"_fresh", zx_array_fresh, METH_VARARGS, NULL},
    {"_read", zx_array_read, METH_VARARGS, NULL},
    {"_read_into", zx_array_read_into, METH_VARARGS, NULL},
    {"_write", zx_array_write, METH_VARARGS, NULL},
    {"_append", zx_array_append, METH_VARARGS, NULL},
    {"_read_many", zx_array_read_many, METH_VARARGS, NULL},
    {"_submit", zx_array_submit, METH_VARARGS, NULL},
    {"_vlen", zx_array_vlen, METH_VARARGS, NULL},
    {"_tensor", zx_array_tensor, METH_O, NULL},
    {"_device", zx_array_device, METH_VARARGS, NULL},
    {"_places", zx_array_places, METH_O, NULL},
    {"_check_address", zx_array_check_address, METH_O, NULL},
    {"_explain", zx_array_explain, METH_VARARGS, NULL},
    {"_summary", zx_array_summary, METH_VARARGS, NULL},
    {"_check_codecs", zx_array_check_codecs, METH_O, NULL},
    {"_decode", zx_array_decode, METH_VARARGS, NULL},
    {"_encode", zx_array_encode, METH_VARARGS, NULL},
    {"_arrow", zx_array_arrow, METH_VARARGS, NULL},
    {"_with", zx_array_with, METH_O, NULL},
    {"_release_claim", zx_array_release_claim, METH_VARARGS, NULL},
    {"_attribute", zx_array_attribute, METH_VARARGS, NULL},
    {"_resize", zx_array_resize, METH_VARARGS, NULL},
    {"refresh", zx_array_refresh, METH_NOARGS,
     "refresh() -> bool\n\nReads the metadata again; tells whether it has changed."},
    {"_recheck", zx_array_recheck, METH_NOARGS, NULL},
    {"_count_stored", zx_array_count_stored, METH_VARARGS, NULL},
    {"_chunks", zx_array_chunks, METH_VARARGS, NULL},
    {"_block_key", zx_array_block_key, METH_O, NULL},
    {"_block_read", zx_array_block_read, METH_O, NULL},
    {"_block_write", zx_array_block_write, METH_VARARGS, NULL},
    {"_select", zx_array_select, METH_VARARGS, NULL},
    {"_select_points", zx_array_select_points, METH_VARARGS, NULL},
    {"_select_mask", zx_array_select_mask, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static PyObject *array_is_fortran(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_array *)o)->is_fortran);
}

static int array_set_fortran(PyObject *o, PyObject *value, void *unused)
{
    const int wanted = value ? PyObject_IsTrue(value) : 0;

    (void)unused;
    if (wanted < 0)
        return -1;
    ((zx_array *)o)->is_fortran = wanted != 0;
    return 0;
}

static PyObject *array_has_like(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_array *)o)->has_like);
}

static int array_set_like(PyObject *o, PyObject *value, void *unused)
{
    const int wanted = value ? PyObject_IsTrue(value) : 0;

    (void)unused;
    if (wanted < 0)
        return -1;
    ((zx_array *)o)->has_like = wanted != 0;
    return 0;
}

/* (wave_bytes, memory_bytes, coalesce_gap, coalesce_bytes); 0: the library's */
static PyObject *array_tuning(PyObject *o, void *unused)
{
    const zarr_tuning *t = &((zx_array *)o)->tuning;

    (void)unused;
    return zx_shape(4, (const uint64_t[]){t->wave_bytes, t->memory_bytes, t->coalesce_gap,
                                          t->coalesce_bytes});
}

static int array_set_tuning(PyObject *o, PyObject *value, void *unused)
{
    zarr_tuning *t = &((zx_array *)o)->tuning;
    uint64_t n[ZARR_MAX_RANK];

    (void)unused;
    if (!value || zx_lengths(value, n) != 4) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "four numbers are needed");
        return -1;
    }
    t->wave_bytes = n[0];
    t->memory_bytes = n[1];
    t->coalesce_gap = n[2];
    t->coalesce_bytes = n[3];
    return 0;
}

static PyGetSetDef array_getset[] = {
    {"_tuning", array_tuning, array_set_tuning, NULL, NULL},
    {"_has_like", array_has_like, array_set_like, NULL, NULL},
    {"_is_fortran", array_is_fortran, array_set_fortran, NULL, NULL},
    {"shape", array_shape, NULL, "The lengths of the dimensions.", (void *)SHAPE},
    {"_chunk_shape", array_shape, NULL, NULL, (void *)SHAPE_CHUNK},
    {"_block_shape", array_shape, NULL, NULL, (void *)SHAPE_WRITE},
    {"_grid_shape", array_grid, NULL, NULL, NULL},
    {"path", array_text, NULL, "The path in the store.", (void *)TEXT_PATH},
    {"_metadata_text", array_text, NULL, NULL, (void *)TEXT_METADATA},
    {"_attributes_text", array_text, NULL, NULL, (void *)TEXT_ATTRIBUTES},
    {"_codecs_text", array_text, NULL, NULL, (void *)TEXT_CODECS},
    {"_grid_text", array_text, NULL, NULL, (void *)TEXT_GRID},
    {"ndim", array_number, NULL, "The number of dimensions.", NULL},
    {"zarr_format", array_number, NULL, "2 or 3.", (void *)1},
    {"dimension_names", array_names, NULL, "A name, or None, for each dimension.", NULL},
    {"_fill_bytes", array_fill, NULL, NULL, NULL},
    {"_fill_json", array_fill_json, NULL, NULL, NULL},
    {"_facts", array_facts, NULL, NULL, NULL},
    {"_item_facts", array_item_facts, NULL, NULL, NULL},
    {"_how", array_how, NULL, NULL, NULL},
    {"dtype", array_object, NULL, "NumPy's data type.", NULL},
    {"store", array_object, NULL, "The store.", (void *)1},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot array_slots[] = {{Py_tp_dealloc, array_dealloc},
                                    {Py_tp_methods, array_methods},
                                    {Py_tp_getset, array_getset},
                                    {Py_mp_subscript, zx_array_getitem},
                                    {Py_mp_ass_subscript, zx_array_setitem},
                                    {0, NULL}};
PyType_Spec zx_array_spec = {"zarrc._core.Array", sizeof(zx_array), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             array_slots};
