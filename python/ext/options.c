/* options.c - members of dicts, which carry the options of calls. A member that is absent
 * or None leaves the default. */
#include "ext.h"

static PyObject *member(PyObject *dict, const char *name)
{
    PyObject *value = dict && dict != Py_None ? PyDict_GetItemString(dict, name) : NULL;

    return value == Py_None ? NULL : value;
}

int zx_opt_u64(PyObject *dict, const char *name, uint64_t *out)
{
    PyObject *value = member(dict, name);
    unsigned long long number;

    if (!value)
        return 0;
    number = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred())
        return -1;
    *out = number;
    return 0;
}

int zx_opt_u32(PyObject *dict, const char *name, uint32_t *out)
{
    uint64_t number = *out;

    if (zx_opt_u64(dict, name, &number))
        return -1;
    if (number > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s is too large", name);
        return -1;
    }
    *out = (uint32_t)number;
    return 0;
}

int zx_opt_text(PyObject *dict, const char *name, const char **out)
{
    PyObject *value = member(dict, name);

    if (!value)
        return 0;
    *out = PyUnicode_AsUTF8AndSize(value, NULL);
    return *out ? 0 : -1;
}

int zx_opt_shape(PyObject *dict, const char *name, uint64_t *room, const uint64_t **out,
                 int32_t *n)
{
    PyObject *value = member(dict, name);
    int32_t length;

    if (!value)
        return 0;
    length = zx_lengths(value, room);
    if (length < 0)
        return -1;
    if (n && *n >= 0 && length != *n) {
        PyErr_Format(PyExc_ValueError, "%s: %d lengths for %d dimensions", name,
                     (int)length, (int)*n);
        return -1;
    }
    if (n)
        *n = length;
    *out = room;
    return 0;
}
