/* vlen.c - the type Vlen: elements of variable length on their way to and from Python. A
 * read puts their bytes into a heap, from which a list of str or bytes is made. A write
 * borrows the bytes of the objects of a list. */
#include "ext.h"

static void vlen_dealloc(PyObject *o)
{
    zx_vlen *self = (zx_vlen *)o;

    zarr_heap_free(self->heap);
    PyMem_Free(self->item);
    Py_XDECREF(self->objects);
    zx_free(o);
}

static zx_vlen *vlen_new(zx_state *st, PyObject *shape)
{
    uint64_t length[ZARR_MAX_RANK], n = 1;
    const int32_t ndim = zx_lengths(shape, length);
    zx_vlen *self;

    if (ndim < 0)
        return NULL;
    for (int32_t d = 0; d < ndim; d++) {
        if (length[d] > (uint64_t)PY_SSIZE_T_MAX / sizeof(zarr_vlen) / (n ? n : 1)) {
            PyErr_NoMemory();
            return NULL;
        }
        n *= length[d];
    }
    self = zx_alloc(st->vlen_type);
    if (!self)
        return NULL;
    self->st = st;
    self->n = n;
    self->ndim = ndim;
    for (int32_t d = 0; d < ndim; d++)
        self->shape[d] = (int64_t)length[d];
    self->item = PyMem_Calloc(n ? n : 1, sizeof *self->item);
    if (!self->item) {
        Py_DECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    return self;
}

/* The bytes of a str or bytes object, borrowed. */
static int borrow(PyObject *object, zarr_vlen *out)
{
    Py_ssize_t n;

    if (PyUnicode_Check(object)) {
        out->data = PyUnicode_AsUTF8AndSize(object, &n);
        if (!out->data)
            return -1;
    } else if (PyBytes_Check(object)) {
        char *data;

        if (PyBytes_AsStringAndSize(object, &data, &n))
            return -1;
        out->data = data;
    } else {
        PyErr_Format(PyExc_TypeError, "elements are str or bytes, not %R", object);
        return -1;
    }
    out->bytes = (uint64_t)n;
    return 0;
}

static int fill_from(zx_vlen *self, PyObject *list)
{
    if (!PyList_Check(list) || (uint64_t)PyList_Size(list) != self->n) {
        PyErr_SetString(PyExc_ValueError, "a list with one object an element is needed");
        return -1;
    }
    self->objects = PyList_AsTuple(list); /* no thread can change it */
    if (!self->objects)
        return -1;
    for (uint64_t i = 0; i < self->n; i++)
        if (borrow(PyTuple_GetItem(self->objects, (Py_ssize_t)i), &self->item[i]))
            return -1;
    return 0;
}

/* Array.vlen(shape, list=None) -> Vlen: with the elements of a list for a write, else
 * with room for a read */
PyObject *zx_array_vlen(PyObject *o, PyObject *args)
{
    zx_array *a = (zx_array *)o;
    PyObject *shape, *list = Py_None;
    zx_vlen *self;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "O|O", &shape, &list))
        return NULL;
    self = vlen_new(a->st, shape);
    if (!self)
        return NULL;
    if (list != Py_None) {
        if (fill_from(self, list))
            Py_CLEAR(self);
    } else if (zarr_heap_create(&self->heap, zarr_array_context(a->a), 0, &err)) {
        Py_DECREF(self);
        return zx_fail(a->st, &err, NULL);
    }
    return (PyObject *)self;
}

/* list(is_text) -> list of str, or of bytes */
static PyObject *vlen_list(PyObject *o, PyObject *is_text)
{
    const zx_vlen *self = (zx_vlen *)o;
    const int text = PyObject_IsTrue(is_text);
    PyObject *list = text < 0 ? NULL : PyList_New((Py_ssize_t)self->n);

    for (uint64_t i = 0; list && i < self->n; i++) {
        const zarr_vlen *v = &self->item[i];
        const char *data = v->data ? v->data : "";
        PyObject *one = text ? PyUnicode_DecodeUTF8(data, (Py_ssize_t)v->bytes, NULL)
                             : PyBytes_FromStringAndSize(data, (Py_ssize_t)v->bytes);

        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *vlen_shape(PyObject *o, void *unused)
{
    const zx_vlen *self = (zx_vlen *)o;
    uint64_t shape[ZARR_MAX_RANK];

    (void)unused;
    for (int32_t d = 0; d < self->ndim; d++)
        shape[d] = (uint64_t)self->shape[d];
    return zx_shape(self->ndim, shape);
}

static PyMethodDef vlen_methods[] = {{"list", vlen_list, METH_O, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyGetSetDef vlen_getset[] = {{"shape", vlen_shape, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot vlen_slots[] = {{Py_tp_dealloc, vlen_dealloc},
                                   {Py_tp_methods, vlen_methods},
                                   {Py_tp_getset, vlen_getset},
                                   {0, NULL}};
PyType_Spec zx_vlen_spec = {"zarrc._core.Vlen", sizeof(zx_vlen), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            vlen_slots};
