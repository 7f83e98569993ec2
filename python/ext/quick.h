/*
 * quick.h - what the files of a Quick share: quick.c, and quick_values.c for stores whose
 * values are in memory.
 */
#ifndef ZARRC_PYTHON_QUICK_H
#define ZARRC_PYTHON_QUICK_H

#include "ext.h"

typedef struct {
    PyObject_HEAD zx_state *st;
    zx_array *array;
    PyTypeObject *place_type, *store_type; /* of StorePath and of its store */
    PyObject *buffers;                     /* classes of buffers of elements */
    PyObject *chunk, *dtype;               /* the shape of chunks; of the memory */
    PyObject *name, *value; /* an attribute of the store, which tells where it is; of the
                               class of a memory store, whose values are taken */
    PyObject *root;         /* bytes: the directory of the store; None: it has none */
    unsigned long long device, inode; /* of the directory */
    PyObject *now, *settings;    /* now() gives those that hold; None: the store's own */
    PyObject *marks;             /* what now() looks at, and what it found */
    PyObject *present, *missing; /* what zarr-python is told of a chunk */
    PyTypeObject *bytes_type;    /* of the buffers of a memory store; else NULL */
    unsigned order;
    uint64_t edge[ZARR_MAX_RANK];
} zx_quick;

/* A batch, and what it selects of the array. */
struct everyday {
    PyObject *items, *first, *last, *store; /* borrowed, except the store */
    Py_ssize_t n;
    bool is_raised; /* an exception is for the caller: a warning that is an error */
    int32_t n_axes; /* of the result */
    uint64_t shape[ZARR_MAX_RANK];
    zarr_dim_selection dim[ZARR_MAX_RANK];
};

/* A new reference to an attribute; name: ZX_NAME_*. */
static inline PyObject *zx_quick_attribute(const zx_quick *q, PyObject *object, int name)
{
    return PyObject_GetAttr(object, q->st->name[name]);
}

/* The value of a key; NULL, perhaps with an exception: there is none. */
static inline PyObject *zx_value_in(PyObject *dict, PyObject *key)
{
#ifdef Py_GIL_DISABLED
    PyObject *value;

    return PyDict_GetItemRef(dict, key, &value) < 0 ? NULL : value;
#else
    return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/* Whether this is an item of a batch, with a place of the class that we know. */
static inline bool zx_quick_is_item(const zx_quick *q, PyObject *item)
{
    return PyTuple_CheckExact(item) && PyTuple_Size(item) == 5 &&
           Py_TYPE(PyTuple_GetItem(item, 0)) == q->place_type;
}

/* ---- quick.c ---------------------------------------------------------------- */

/* The selection as an object. NULL: there is none, perhaps without an exception. */
PyObject *zx_quick_selection(const zx_quick *q, const struct everyday *e);

/* ---- quick_values.c --------------------------------------------------------- */

/* [array, selection, memory, order, keys, values], for Array._decode; NULL: the store has
 * values that we do not know */
PyObject *zx_quick_gather(const zx_quick *q, const struct everyday *e, PyObject *memory);

#endif
