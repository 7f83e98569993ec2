/* parts.c - several selections of an array, each into memory of its own, in one request
 * of the library (zarrc/parts.h). zarrc/_parts.py prepares selections and memory. */
#include "ext.h"

#include <stdlib.h>

struct parts {
    zx_array *array;
    zarr_io_part *part;
    struct zx_memory *memory; /* of the first `n` parts, held */
    size_t n;
    struct zx_io io;
};

/* Describes one more part. -1: an exception. */
static int add_part(struct parts *p, PyObject *selection, PyObject *object,
                    PyObject *order)
{
    zarr_io_part *part = &p->part[p->n];
    struct zx_memory *m = &p->memory[p->n];
    const unsigned long number = PyLong_AsUnsignedLong(order);

    if (PyErr_Occurred())
        return -1;
    if (zx_selection_arg(p->array->st, selection, &part->selection) ||
        zx_io_memory(&p->io, m, p->array, object, true, part->selection))
        return -1;
    m->t.byte_order = (uint32_t)number;
    part->tensor = &m->t;
    p->n++;
    return 0;
}

/* Reads all parts. -1: an exception. Ctrl-C cancels on the main thread. */
static int read_parts(struct parts *p)
{
    zx_array *a = p->array;
    zarr_request *r = NULL;
    zarr_error err;
    zarr_status status;

    if (!p->io.progress && !zx_is_on_main(a->st)) {
        Py_BEGIN_ALLOW_THREADS status =
            zarr_array_read_many(a->a, p->part, p->n, &p->io.o, &err);
        Py_END_ALLOW_THREADS return zx_check(a->st, status, &err, a->a);
    }
    Py_BEGIN_ALLOW_THREADS status =
        zarr_array_read_many_submit(&r, a->a, p->part, p->n, &p->io.o, &err);
    Py_END_ALLOW_THREADS if (status) return zx_check(a->st, status, &err, a->a);
    return zx_wait(a->st, r, p->io.progress, a->a) ? -1 : 0;
}

static int fill_parts(struct parts *p, PyObject *selections, PyObject *memories,
                      PyObject *orders)
{
    const Py_ssize_t n = PyTuple_Size(selections);

    p->part = calloc((size_t)n + 1, sizeof *p->part);
    p->memory = calloc((size_t)n + 1, sizeof *p->memory);
    if (!p->part || !p->memory) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (add_part(p, PyTuple_GetItem(selections, i), PyTuple_GetItem(memories, i),
                     PyTuple_GetItem(orders, i)))
            return -1;
    return read_parts(p);
}

/* _read_many(selections, memories, byte orders, options=None): tuples of one length. The
 * elements are not of variable length. */
PyObject *zx_array_read_many(PyObject *o, PyObject *args)
{
    PyObject *selections, *memories, *orders, *options = NULL;
    struct parts p = {.array = (zx_array *)o};
    int rc;

    if (!PyArg_ParseTuple(args, "O!O!O!|O", &PyTuple_Type, &selections, &PyTuple_Type,
                          &memories, &PyTuple_Type, &orders, &options))
        return NULL;
    if (PyTuple_Size(selections) != PyTuple_Size(memories) ||
        PyTuple_Size(selections) != PyTuple_Size(orders) || p.array->how != ZX_PLAIN) {
        PyErr_SetString(PyExc_ValueError,
                        "each selection needs memory for elements of a fixed size");
        return NULL;
    }
    if (zx_io_init(&p.io, p.array, options))
        return NULL;
    rc = fill_parts(&p, selections, memories, orders);
    for (size_t i = 0; i < p.n; i++)
        zx_memory_deinit(&p.memory[i]);
    free(p.part);
    free(p.memory);
    zx_io_deinit(&p.io);
    if (rc)
        return NULL;
    Py_RETURN_NONE;
}
