/* array_select.c - selections of an array that zarrc/_indexing.py prepared: dimensions on
 * their own, blocks, points and masks. */
#include "ext.h"

/* Takes the views of `n` dimensions. */
struct dims {
    zarr_dim_selection dim[ZARR_MAX_RANK];
    Py_buffer view[ZARR_MAX_RANK];
    bool is_held[ZARR_MAX_RANK];
    Py_ssize_t n;
};

static int dims_init(struct dims *d, zx_array *self, PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;

    d->n = 0;
    if (n < 0 || n > self->ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array; expected %d, got %zd",
                     (int)self->ndim, n);
        return -1;
    }
    for (; d->n < n; d->n++)
        if (zx_dim(PyTuple_GetItem(tuple, d->n), &d->dim[d->n], &d->view[d->n],
                   &d->is_held[d->n])) {
            d->n += d->is_held[d->n];
            return -1;
        }
    return 0;
}

static void dims_deinit(struct dims *d)
{
    for (Py_ssize_t i = 0; i < d->n; i++)
        if (d->is_held[i])
            PyBuffer_Release(&d->view[i]);
}

/* _select(tuple, is_blocks): one slice, integer, int64 list or bool mask a dimension */
PyObject *zx_array_select(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_error err;
    zarr_status status = ZARR_OK;
    PyObject *tuple;
    struct dims d;
    int is_blocks;

    if (!PyArg_ParseTuple(args, "Op", &tuple, &is_blocks))
        return NULL;
    zarr_array_copy_shapes(self->a, shape, NULL, NULL);
    if (dims_init(&d, self, tuple) == 0)
        status =
            is_blocks
                ? zarr_array_select_blocks(&sel, self->a, (int32_t)d.n, d.dim, &err)
                : zarr_selection_dims(&sel, self->ndim, shape, (int32_t)d.n, d.dim, &err);
    dims_deinit(&d);
    if (PyErr_Occurred())
        return NULL;
    return status ? zx_fail_index(self->st, &err) : zx_selection_wrap(self->st, sel);
}

/* _select_points(int64 coordinates, point after point, shape of the result) */
PyObject *zx_array_select_points(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    uint64_t shape[ZARR_MAX_RANK], lengths[ZARR_MAX_RANK], n = 1;
    zarr_selection *sel = NULL;
    PyObject *coords, *result;
    zarr_error err;
    zarr_status status;
    Py_buffer view;
    int32_t ndim;

    if (!PyArg_ParseTuple(args, "OO", &coords, &result) ||
        (ndim = zx_lengths(result, lengths)) < 0 ||
        PyObject_GetBuffer(coords, &view, PyBUF_ND))
        return NULL;
    for (int32_t d = 0; d < ndim; d++)
        n *= lengths[d];
    if (view.itemsize != 8 ||
        (uint64_t)view.len / 8 != n * (uint64_t)(self->ndim ? self->ndim : 0)) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "coordinates do not fit the result");
        return NULL;
    }
    zarr_array_copy_shapes(self->a, shape, NULL, NULL);
    status =
        zarr_selection_points(&sel, self->ndim, shape, n, view.buf, ndim, lengths, &err);
    PyBuffer_Release(&view);
    return status ? zx_fail_index(self->st, &err) : zx_selection_wrap(self->st, sel);
}

/* _select_mask(bool array of the array's shape, in C order) */
PyObject *zx_array_select_mask(PyObject *o, PyObject *mask)
{
    zx_array *self = (zx_array *)o;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_error err;
    zarr_status status;
    Py_buffer view;
    bool fits;

    if (PyObject_GetBuffer(mask, &view, PyBUF_ND))
        return NULL;
    zarr_array_copy_shapes(self->a, shape, NULL, NULL);
    fits = view.itemsize == 1 && view.ndim == self->ndim;
    for (int32_t d = 0; fits && d < self->ndim; d++)
        fits = (uint64_t)view.shape[d] == shape[d];
    status = fits ? zarr_selection_mask(&sel, self->ndim, shape, view.buf, &err) : 0;
    PyBuffer_Release(&view);
    if (!fits) {
        PyErr_SetString(PyExc_IndexError, "the mask does not have the array's shape");
        return NULL;
    }
    return status ? zx_fail_index(self->st, &err) : zx_selection_wrap(self->st, sel);
}
