/* arrow.c - elements of variable length as a column of Apache Arrow, in capsules of its
 * PyCapsule interface. */
#include "ext.h"

#include <zarrc/arrow.h>

static const char schema_name[] = "arrow_schema", array_name[] = "arrow_array";

static void schema_drop(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, schema_name);

    if (schema->release) /* no receiver moved it */
        schema->release(schema);
    PyMem_Free(schema);
}

static void array_drop(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, array_name);

    if (array->release)
        array->release(array);
    PyMem_Free(array);
}

struct errand {
    zarr_array *a;
    const zarr_selection *sel;
    struct ArrowSchema *schema;
    struct ArrowArray *array;
};

static zarr_status arrow_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct errand *e = arg;

    o.cancel = cancel;
    return zarr_array_read_arrow(e->a, e->sel, 0, e->schema, e->array, &o, err);
}

/* The two structs in capsules, so that they are freed whatever happens. */
static PyObject *make_pair(struct ArrowSchema **schema, struct ArrowArray **array)
{
    PyObject *first, *second, *pair = NULL;

    *schema = PyMem_Calloc(1, sizeof **schema);
    *array = PyMem_Calloc(1, sizeof **array);
    first = *schema ? PyCapsule_New(*schema, schema_name, schema_drop) : NULL;
    second = *array ? PyCapsule_New(*array, array_name, array_drop) : NULL;
    if (first && second)
        pair = PyTuple_Pack(2, first, second);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    if (!first)
        PyMem_Free(*schema);
    if (!second)
        PyMem_Free(*array);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

/* Array._arrow(selection) -> (schema, column) */
PyObject *zx_array_arrow(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    PyObject *selection, *pair;
    struct errand e = {.a = self->a};

    if (!PyArg_ParseTuple(args, "O", &selection))
        return NULL;
    if (selection != Py_None && Py_TYPE(selection) != self->st->selection_type) {
        PyErr_SetString(PyExc_TypeError, "a Selection or None is needed");
        return NULL;
    }
    e.sel = selection == Py_None ? NULL : ((zx_selection *)selection)->sel;
    pair = make_pair(&e.schema, &e.array);
    if (pair && zx_call(self->st, arrow_work, &e, self->a))
        Py_CLEAR(pair);
    return pair;
}
