/* quick_values.c - the everyday read of a store whose values are in memory (MemoryStore):
 * this gathers them, and the package decodes them, on a thread of its own if that takes
 * long. */
#include "quick.h"

/* The value of a key, None if there is none. NULL: it is of another class, or no array of
 * NumPy is in it. */
static PyObject *find_value(const zx_quick *q, PyObject *dict, PyObject *key)
{
    PyObject *value = zx_value_in(dict, key), *bytes;

    if (!value)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    bytes = Py_TYPE(value) == q->bytes_type ? zx_quick_attribute(q, value, ZX_NAME_DATA)
                                            : NULL;
    Py_DECREF(value);
    if (bytes && (PyObject *)Py_TYPE(bytes) != q->st->np_array)
        Py_CLEAR(bytes);
    return bytes;
}

/* Fills lists of the keys and the values of a batch. */
static bool gather(const zx_quick *q, const struct everyday *e, PyObject *keys,
                   PyObject *values)
{
    PyObject *dict = zx_quick_attribute(q, e->store, ZX_NAME_STORE_DICT);
    bool fits = dict && PyDict_CheckExact(dict);

    for (Py_ssize_t i = 0; fits && i < e->n; i++) {
        PyObject *item = PyList_GetItem(e->items, i), *key = NULL, *value = NULL;

        if (zx_quick_is_item(q, item))
            key = zx_quick_attribute(q, PyTuple_GetItem(item, 0), ZX_NAME_PATH);
        if (key)
            value = find_value(q, dict, key);
        fits = value != NULL;
        if (fits)
            fits = PyList_SetItem(keys, i, key) == 0 &&
                   PyList_SetItem(values, i, value) == 0;
        else
            Py_XDECREF(key);
    }
    Py_XDECREF(dict);
    return fits;
}

PyObject *zx_quick_gather(const zx_quick *q, const struct everyday *e, PyObject *memory)
{
    PyObject *sel = zx_quick_selection(q, e), *keys = PyList_New(e->n),
             *values = PyList_New(e->n);
    PyObject *out = NULL;

    if (sel && keys && values && gather(q, e, keys, values))
        out = Py_BuildValue("[OOOIOO]", (PyObject *)q->array, sel, memory, q->order, keys,
                            values);
    Py_XDECREF(sel);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return out;
}
