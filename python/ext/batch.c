/* batch.c - what slices select in a batch of zarr-python, which is the product of what
 * each dimension selects in each of its chunks. zarrc/_batch.py and quick.c call this. */
#include "quick.h"

/* False, without an exception: this is no slice that selects forwards. */
static bool read_slice(PyObject *object, Py_ssize_t *start, Py_ssize_t *stop,
                       Py_ssize_t *step)
{
    if (!PySlice_Check(object))
        return false;
    if (PySlice_Unpack(object, start, stop, step)) {
        PyErr_Clear();
        return false;
    }
    return *start >= 0 && *stop > *start && *step > 0;
}

/* Where an item lies in the result, which has no gaps. */
static bool read_place(PyObject *object, Py_ssize_t *start, Py_ssize_t *stop)
{
    Py_ssize_t step;

    return read_slice(object, start, stop, &step) && step == 1;
}

bool zx_slice_init(struct zx_slice *s, PyObject *inside, PyObject *from, PyObject *to,
                   uint64_t begin, uint64_t edge)
{
    Py_ssize_t start, stop, step, first, last, end;
    uint64_t at, n, by;

    if (!read_slice(inside, &start, &stop, &step) || !read_place(from, &first, &end) ||
        (to != from && !read_place(to, &last, &end)) || end <= first ||
        begin > INT64_MAX / 4 || (uint64_t)start >= edge || start > INT64_MAX / 4 ||
        end - first > INT64_MAX / 4 / step)
        return false;
    at = begin + (uint64_t)start;
    n = (uint64_t)(end - first);
    by = (uint64_t)step;
    s->start = (int64_t)at;
    s->step = step;
    s->stop = (int64_t)(at + (n - 1) * by + 1);
    s->count = n;
    s->first = (uint64_t)first;
    s->n_chunks = by >= edge ? n : (at + (n - 1) * by) / edge - at / edge + 1;
    return true;
}

/* select_slice(inside, from, to, begin, edge) -> (start, stop, step, count, first place
 * in the result, chunks), or None; see zx_slice_init() */
PyObject *zx_select_slice(PyObject *module, PyObject *args)
{
    PyObject *inside, *from, *to;
    Py_ssize_t begin, edge;
    struct zx_slice s;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOnn", &inside, &from, &to, &begin, &edge))
        return NULL;
    if (begin < 0 || edge < 0 ||
        !zx_slice_init(&s, inside, from, to, (uint64_t)begin, (uint64_t)edge))
        Py_RETURN_NONE;
    return Py_BuildValue("(LLLKKK)", (long long)s.start, (long long)s.stop,
                         (long long)s.step, (unsigned long long)s.count,
                         (unsigned long long)s.first, (unsigned long long)s.n_chunks);
}
