/* options.c - members of dicts, which carry the options of calls. A member that is absent
 * or None leaves the default. */
#include "ext.h"

#include <stddef.h>
#include <string.h>

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

#define COUNTER(name)                                                                    \
    {                                                                                    \
#        name, offsetof(zarr_stats, name)                                                \
    }

static const struct counter {
    const char *name;
    size_t at;
} counters[] = {COUNTER(chunks_total),
                COUNTER(chunks_done),
                COUNTER(chunks_missing),
                COUNTER(chunks_direct),
                COUNTER(chunks_partial),
                COUNTER(chunks_fallback),
                COUNTER(chunks_distrusted),
                COUNTER(elements),
                COUNTER(bytes_stored),
                COUNTER(bytes_decoded),
                COUNTER(bytes_heap),
                COUNTER(store_gets),
                COUNTER(store_puts),
                COUNTER(store_erases),
                COUNTER(store_ranges),
                COUNTER(index_reads),
                COUNTER(index_hits),
                COUNTER(copies_host),
                COUNTER(bytes_host),
                COUNTER(copies_up),
                COUNTER(bytes_up),
                COUNTER(copies_down),
                COUNTER(bytes_down),
                COUNTER(copies_device),
                COUNTER(bytes_device),
                COUNTER(copies_decoded_host),
                COUNTER(waves),
                COUNTER(read_modify_writes),
                COUNTER(wall_ns)};

int zx_stats_add(PyObject *counts, const zarr_stats *stats)
{
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        uint64_t n = 0, more;
        PyObject *sum;

        memcpy(&more, (const char *)stats + counters[i].at, sizeof more);
        if (zx_opt_u64(counts, counters[i].name, &n))
            return -1;
        sum = PyLong_FromUnsignedLongLong(n + more);
        if (!sum || PyDict_SetItemString(counts, counters[i].name, sum)) {
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
