/* object.c - small helpers for objects of the limited API. */
#include "ext.h"

void *zx_alloc(PyTypeObject *type)
{
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

void zx_free(void *object)
{
    PyTypeObject *type = Py_TYPE((PyObject *)object);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

PyObject *zx_text(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return PyUnicode_FromString(text);
}

PyObject *zx_shape(int32_t n, const uint64_t *shape)
{
    PyObject *tuple = PyTuple_New(n);

    for (int32_t i = 0; tuple && i < n; i++) {
        PyObject *length = PyLong_FromUnsignedLongLong(shape[i]);

        if (!length || PyTuple_SetItem(tuple, i, length))
            Py_CLEAR(tuple);
    }
    return tuple;
}

int32_t zx_lengths(PyObject *tuple, uint64_t *out)
{
    const Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;

    if (n < 0 || n > ZARR_MAX_RANK) {
        PyErr_SetString(PyExc_TypeError, "a tuple of at most 64 lengths is needed");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == UINT64_MAX && PyErr_Occurred())
            return -1;
    }
    return (int32_t)n;
}

PyTypeObject *zx_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type && PyModule_AddType(module, (PyTypeObject *)type))
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
