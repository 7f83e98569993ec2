/* options.c - members of dicts, which carry the options of calls. A member that is absent
 * or None leaves the default. */
#include "ext.h"

int zx_opt(PyObject *dict, const char *name, PyObject **out)
{
    PyObject *key;

    *out = NULL;
    if (!dict || dict == Py_None)
        return 0;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "options are a dict, not %R",
                     (PyObject *)Py_TYPE(dict));
        return -1;
    }
    key = PyUnicode_FromString(name);
    if (!key)
        return -1;
    *out = PyDict_GetItemWithError(dict, key); /* PyDict_GetItemString() drops errors */
    Py_DECREF(key);
    if (!*out && PyErr_Occurred())
        return -1;
    if (*out == Py_None)
        *out = NULL;
    return 0;
}

int zx_stats_add(PyObject *counts, const zarr_stats *stats)
{
    const struct {
        const char *name;
        uint64_t n;
    } row[] = {{"chunks_total", stats->chunks_total},
               {"chunks_direct", stats->chunks_direct},
               {"chunks_fallback", stats->chunks_fallback},
               {"bytes_stored", stats->bytes_stored},
               {"bytes_decoded", stats->bytes_decoded},
               {"copies_host", stats->copies_host},
               {"bytes_host", stats->bytes_host},
               {"copies_up", stats->copies_up},
               {"bytes_up", stats->bytes_up},
               {"copies_down", stats->copies_down},
               {"bytes_down", stats->bytes_down},
               {"copies_device", stats->copies_device},
               {"bytes_device", stats->bytes_device},
               {"copies_decoded_host", stats->copies_decoded_host}};

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t n = 0;
        PyObject *sum;

        if (zx_opt_u64(counts, row[i].name, &n))
            return -1;
        sum = PyLong_FromUnsignedLongLong(n + row[i].n);
        if (!sum || PyDict_SetItemString(counts, row[i].name, sum)) {
            Py_XDECREF(sum);
            return -1;
        }
        Py_DECREF(sum);
    }
    return 0;
}

int zx_opt_u64(PyObject *dict, const char *name, uint64_t *out)
{
    unsigned long long number;
    PyObject *value;

    if (zx_opt(dict, name, &value))
        return -1;
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
    PyObject *value;

    if (zx_opt(dict, name, &value))
        return -1;
    if (!value)
        return 0;
    *out = PyUnicode_AsUTF8AndSize(value, NULL);
    return *out ? 0 : -1;
}

int zx_opt_shape(PyObject *dict, const char *name, uint64_t *room, const uint64_t **out,
                 int32_t *n)
{
    PyObject *value;
    int32_t length;

    if (zx_opt(dict, name, &value))
        return -1;
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
