/*
 * quick.h - what the files of a Quick share: quick.c, batch.c for what items select, and
 * quick_values.c for stores whose values are in memory.
 */
#ifndef ZARRC_PYTHON_QUICK_H
#define ZARRC_PYTHON_QUICK_H

#include "ext.h"

enum {
    ZX_AT_ONCE = 16,    /* reads done at once, after which other tasks run */
    ZX_MOST_AT_ONCE = 8 /* chunks of one of them: the library does no more at once */
};

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

/* ---- batch.c ---------------------------------------------------------------- */

/* What the items of a batch select along a dimension where each has a slice. */
struct zx_slice {
    int64_t start, stop, step; /* of the array */
    uint64_t count, first;     /* elements, and where they begin in the result */
    uint64_t n_chunks;         /* that they meet */
};

/* From the slice in the first item's chunk, which begins at `begin` and is `edge` long,
 * and the slices of the first and of the last item in the result. False, without an
 * exception: they do not select forwards, or do not say where they end. */
bool zx_slice_init(struct zx_slice *s, PyObject *inside, PyObject *from, PyObject *to,
                   uint64_t begin, uint64_t edge);

/* ---- quick.c ---------------------------------------------------------------- */

/* The selection as an object. NULL: there is none, perhaps without an exception. */
PyObject *zx_quick_selection(const zx_quick *q, const struct everyday *e);

/* ---- quick_values.c --------------------------------------------------------- */

/* [array, selection, memory, order, keys, values], for Array._decode; NULL: the store has
 * values that we do not know */
PyObject *zx_quick_gather(const zx_quick *q, const struct everyday *e, PyObject *memory);

#endif
