/* selection.c - keys of Python as selections: the quick way for integers, slices and
 * `...`, and the type Selection, which zarrc/_indexing.py makes for everything else. */
#include "ext.h"

#include <string.h>

/* ---- keys ------------------------------------------------------------------- */

/* The library has its own value for an end that is not given; a clipped one may equal it.
 */
static int64_t not_default(Py_ssize_t i)
{
    return i == PY_SSIZE_T_MIN ? PY_SSIZE_T_MIN + 1 : i;
}

static int slice_dim(PyObject *item, zarr_dim_selection *dim)
{
    Py_ssize_t start, stop, step;

    if (PySlice_Unpack(item, &start, &stop, &step))
        return -1;
    dim->kind = ZARR_DIM_SLICE;
    dim->start = not_default(start);
    dim->stop = step > 0 ? not_default(stop) : stop;
    dim->step = not_default(step);
    return 0;
}

static int index_dim(PyObject *item, zarr_dim_selection *dim)
{
    const Py_ssize_t i = PyNumber_AsSsize_t(item, PyExc_IndexError);

    if (i == -1 && PyErr_Occurred())
        return -1;
    dim->kind = ZARR_DIM_INDEX;
    dim->start = i;
    return 0;
}

/* 1: done; 0: something else; -1: an exception. */
static int basic_dim(PyObject *item, zarr_dim_selection *dim)
{
    if (PySlice_Check(item))
        return slice_dim(item, dim) ? -1 : 1;
    if (PyLong_CheckExact(item))
        return index_dim(item, dim) ? -1 : 1;
    if (PyBool_Check(item) || !PyIndex_Check(item))
        return 0;
    if (index_dim(item, dim) == 0) /* an integer of NumPy */
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) /* an array says that it is none */
        return -1;
    PyErr_Clear();
    return 0;
}

struct key {
    PyObject *tuple, *item; /* one of them is NULL */
    Py_ssize_t n;
};

static PyObject *key_item(const struct key *k, Py_ssize_t i)
{
    return k->tuple ? PyTuple_GetItem(k->tuple, i) : k->item;
}

/* Where `...` is; -1: nowhere; -2: twice, with an exception. */
static Py_ssize_t find_ellipsis(const struct key *k)
{
    Py_ssize_t at = -1;

    for (Py_ssize_t i = 0; i < k->n; i++) {
        if (key_item(k, i) != Py_Ellipsis)
            continue;
        if (at >= 0) {
            PyErr_SetString(PyExc_IndexError,
                            "an index can only have a single ellipsis ('...')");
            return -2;
        }
        at = i;
    }
    return at;
}

/* Fills `dims`; returns as zx_key(). */
static int basic_dims(const struct key *k, int32_t ndim, zarr_dim_selection *dims)
{
    const Py_ssize_t ellipsis = find_ellipsis(k), n = k->n - (ellipsis >= 0);
    Py_ssize_t at = 0;

    if (ellipsis == -2)
        return -1;
    memset(dims, 0, (size_t)ndim * sizeof *dims);
    for (Py_ssize_t i = 0; i < k->n; i++) {
        zarr_dim_selection beyond; /* of an item too many, which may name a field */
        int rc;

        if (i == ellipsis) {
            at += n < ndim ? ndim - n : 0;
            continue;
        }
        rc = basic_dim(key_item(k, i), at < ndim ? &dims[at] : &beyond);
        if (rc <= 0)
            return rc;
        at++;
    }
    if (n > ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array; expected %d, got %zd",
                     (int)ndim, n);
        return -1;
    }
    return 1;
}

int zx_key(zx_state *st, int32_t ndim, const uint64_t *shape, PyObject *key,
           zarr_selection **out)
{
    zarr_dim_selection dims[ZARR_MAX_RANK];
    const bool is_tuple = PyTuple_Check(key);
    const struct key k = {.tuple = is_tuple ? key : NULL,
                          .item = key,
                          .n = is_tuple ? PyTuple_Size(key) : 1};
    zarr_error err;
    int rc;

    *out = NULL;
    if (key == Py_Ellipsis || (is_tuple && k.n == 0))
        return 1;
    rc = basic_dims(&k, ndim, dims);
    if (rc == 1 && zarr_selection_dims(out, ndim, shape, ndim, dims, &err)) {
        zx_fail_index(st, &err);
        return -1;
    }
    return rc;
}

/* ---- one dimension of a tuple that was prepared in Python ------------------- */

int zx_dim(PyObject *item, zarr_dim_selection *dim, Py_buffer *view, bool *is_held)
{
    int rc;

    memset(dim, 0, sizeof *dim);
    *is_held = false;
    if (item == Py_None)
        return 0;
    rc = basic_dim(item, dim);
    if (rc)
        return rc < 0 ? -1 : 0;
    if (PyObject_GetBuffer(item, view, PyBUF_ND))
        return -1;
    *is_held = true;
    if (view->ndim != 1 || (view->itemsize != 1 && view->itemsize != 8)) {
        PyErr_SetString(PyExc_IndexError, "lists of indexes are int64, masks are bool");
        return -1;
    }
    dim->kind = view->itemsize == 1 ? ZARR_DIM_MASK : ZARR_DIM_LIST;
    dim->list = view->buf;
    dim->mask = view->buf;
    dim->n_list = (uint64_t)view->shape[0];
    return 0;
}

/* ---- the type --------------------------------------------------------------- */

PyObject *zx_selection_wrap(zx_state *st, zarr_selection *sel)
{
    zx_selection *self = zx_alloc(st->selection_type);

    if (!self) {
        zarr_selection_free(sel);
        return NULL;
    }
    self->st = st;
    self->sel = sel;
    return (PyObject *)self;
}

static void selection_dealloc(PyObject *o)
{
    zarr_selection_free(((zx_selection *)o)->sel);
    zx_free(o);
}

static PyObject *selection_shape(PyObject *o, void *unused)
{
    const zarr_selection *sel = ((zx_selection *)o)->sel;

    (void)unused;
    return zx_shape(zarr_selection_ndim(sel), zarr_selection_shape(sel));
}

/* compose(inner) -> Selection */
static PyObject *selection_compose(PyObject *o, PyObject *inner)
{
    zx_selection *self = (zx_selection *)o;
    zarr_selection *out;
    zarr_error err;

    if (Py_TYPE(inner) != self->st->selection_type) {
        PyErr_SetString(PyExc_TypeError, "a Selection is needed");
        return NULL;
    }
    if (zarr_selection_compose(&out, self->sel, ((zx_selection *)inner)->sel, &err))
        return zx_fail_index(self->st, &err);
    return zx_selection_wrap(self->st, out);
}

static PyMethodDef selection_methods[] = {{"compose", selection_compose, METH_O, NULL},
                                          {NULL, NULL, 0, NULL}};
static PyGetSetDef selection_getset[] = {{"shape", selection_shape, NULL, NULL, NULL},
                                         {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot selection_slots[] = {{Py_tp_dealloc, selection_dealloc},
                                        {Py_tp_methods, selection_methods},
                                        {Py_tp_getset, selection_getset},
                                        {0, NULL}};
PyType_Spec zx_selection_spec = {"zarrc._core.Selection", sizeof(zx_selection), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 selection_slots};
