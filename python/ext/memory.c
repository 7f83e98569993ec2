/* memory.c - memory of Python objects as tensors. The buffer protocol is asked without a
 * format, so that it gives memory of every data type of NumPy with elements of a fixed
 * size; the data type was compared before. */
#include "ext.h"

static int held_by_buffer(struct zx_memory *m, PyObject *object, bool is_writable)
{
    if (PyObject_GetBuffer(object, &m->view,
                           PyBUF_STRIDES | (is_writable ? PyBUF_WRITABLE : 0)))
        return -1;
    m->is_held = true;
    if (m->view.ndim > ZARR_MAX_RANK) {
        PyErr_SetString(PyExc_ValueError, "an array has at most 64 dimensions");
        return -1;
    }
    m->t.ndim = m->view.ndim;
    m->t.data = m->view.buf;
    for (int d = 0; d < m->view.ndim; d++) {
        m->shape[d] = (uint64_t)m->view.shape[d];
        m->strides[d] = m->view.strides[d];
    }
    return 0;
}

static void held_by_vlen(struct zx_memory *m, zx_vlen *v)
{
    int64_t stride = (int64_t)sizeof *v->item;

    m->owner = Py_NewRef((PyObject *)v);
    m->t.ndim = v->ndim;
    m->t.data = v->item;
    for (int32_t d = v->ndim - 1; d >= 0; d--) {
        m->shape[d] = (uint64_t)v->shape[d];
        m->strides[d] = stride;
        stride *= v->shape[d] ? v->shape[d] : 1;
    }
}

int zx_memory_init(struct zx_memory *m, zx_state *st, PyObject *object, bool is_writable)
{
    static const zarr_tensor none = ZARR_TENSOR_INIT;

    m->t = none;
    m->owner = NULL;
    m->is_held = false;
    m->t.device_type = ZARR_DEVICE_CPU;
    if (Py_TYPE(object) == st->vlen_type) {
        held_by_vlen(m, (zx_vlen *)object);
    } else if (Py_TYPE(object) == st->device_type) {
        zx_memory_of_device(m, object);
    } else if (held_by_buffer(m, object, is_writable)) {
        zx_memory_deinit(m);
        return -1;
    }
    m->t.shape = m->shape;
    m->t.strides = m->strides;
    return 0;
}

void zx_memory_deinit(struct zx_memory *m)
{
    if (m->is_held)
        PyBuffer_Release(&m->view);
    m->is_held = false;
    Py_CLEAR(m->owner);
}

/* "(2, 3)" of a shape. */
static PyObject *shape_text(int32_t ndim, const uint64_t *shape)
{
    PyObject *tuple = zx_shape(ndim, shape), *text = tuple ? PyObject_Repr(tuple) : NULL;

    Py_XDECREF(tuple);
    return text;
}

static int does_not_fit(const struct zx_memory *m, int32_t ndim, const uint64_t *shape)
{
    uint64_t own[ZARR_MAX_RANK];
    PyObject *a, *b;

    for (int32_t d = 0; d < m->t.ndim; d++)
        own[d] = m->shape[d];
    a = shape_text(m->t.ndim, own);
    b = shape_text(ndim, shape);
    if (a && b)
        PyErr_Format(PyExc_ValueError,
                     "could not broadcast input array from shape %U into shape %U", a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return -1;
}

/* Takes away the first dimensions of length 1 that the selection does not have. */
static void drop_leading(struct zx_memory *m, int32_t ndim)
{
    int32_t extra = 0;

    while (m->t.ndim - extra > ndim && m->shape[extra] == 1)
        extra++;
    for (int32_t d = extra; extra && d < m->t.ndim; d++) {
        m->shape[d - extra] = m->shape[d];
        m->strides[d - extra] = m->strides[d];
    }
    m->t.ndim -= extra;
}

int zx_memory_broadcast(struct zx_memory *m, int32_t ndim, const uint64_t *shape)
{
    int32_t lead;

    drop_leading(m, ndim);
    lead = ndim - m->t.ndim;
    if (lead < 0)
        return does_not_fit(m, ndim, shape);
    for (int32_t d = m->t.ndim - 1; d >= 0; d--)
        if (m->shape[d] != shape[d + lead] && m->shape[d] != 1)
            return does_not_fit(m, ndim, shape);
    for (int32_t d = m->t.ndim - 1; d >= 0; d--) {
        m->strides[d + lead] = m->shape[d] == shape[d + lead] ? m->strides[d] : 0;
        m->shape[d + lead] = shape[d + lead];
    }
    for (int32_t d = 0; d < lead; d++) {
        m->shape[d] = shape[d];
        m->strides[d] = 0;
    }
    m->t.ndim = ndim;
    return 0;
}
