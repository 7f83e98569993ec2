/* quick.c - the everyday read of the pipeline for zarr-python in one call: one item, or
 * the items that slices and integers make, into an array of NumPy. The package makes a
 * Quick after a read that it prepared itself (zarrc/_quick.py), and says there what must
 * be as it was. Whatever is otherwise, and whatever fails, is left to the package, which
 * does it again and tells why: then the answer is None. */
#include "quick.h"
#include "request.h"

#include <string.h>
#include <sys/stat.h>

/* Whether an attribute is this object. */
static bool has(PyObject *object, PyObject *name, const PyObject *wanted)
{
    PyObject *found = PyObject_GetAttr(object, name);

    Py_XDECREF(found);
    return found && found == wanted;
}

static bool equals(PyObject *found, PyObject *wanted)
{
    const bool same =
        found && (found == wanted || PyObject_RichCompareBool(found, wanted, Py_EQ) > 0);

    Py_XDECREF(found);
    return same;
}

/* ---- what must be as it was ------------------------------------------------- */

/* Whether a mark is as it was: (object, attribute, value), (dict, key, value, or None if
 * there is no such key) or (callable, None, what it returns). */
static bool holds(PyObject *mark)
{
    PyObject *from = PyTuple_GetItem(mark, 0), *name = PyTuple_GetItem(mark, 1);
    PyObject *value = PyTuple_GetItem(mark, 2), *found;

    if (name == Py_None)
        return equals(PyObject_CallNoArgs(from), value);
    if (!PyDict_CheckExact(from))
        return equals(PyObject_GetAttr(from, name), value);
    found = zx_value_in(from, name);
    return found ? equals(found, value) : value == Py_None && !PyErr_Occurred();
}

/* Whether the settings are those that were. The marks tell it sooner than now(), whose
 * bytecode is not in the caches when a read comes. Where they changed, now() knows. */
static bool has_settings(const zx_quick *q)
{
    const Py_ssize_t n = PyTuple_Size(q->marks);
    Py_ssize_t i = 0;

    if (q->now == Py_None)
        return true;
    while (i < n && holds(PyTuple_GetItem(q->marks, i)))
        i++;
    if (n > 0 && i == n)
        return true;
    PyErr_Clear();
    return equals(PyObject_CallNoArgs(q->now), q->settings);
}

/* Whether a batch is of the store that we know, with its chunks. */
static bool is_ours(const zx_quick *q, struct everyday *e)
{
    e->n = PyList_CheckExact(e->items) ? PyList_Size(e->items) : 0;
    if (e->n < 1)
        return false;
    e->first = PyList_GetItem(e->items, 0);
    e->last = PyList_GetItem(e->items, e->n - 1);
    if (!zx_quick_is_item(q, e->first) || !zx_quick_is_item(q, e->last))
        return false;
    e->store = zx_quick_attribute(q, PyTuple_GetItem(e->first, 0), ZX_NAME_STORE);
    return e->store && Py_TYPE(e->store) == q->store_type &&
           (q->bytes_type ? has((PyObject *)q->store_type, q->name, q->value)
                          : has(e->store, q->st->name[ZX_NAME_IS_OPEN], Py_True) &&
                                has(e->store, q->name, q->value)) &&
           equals(zx_quick_attribute(q, PyTuple_GetItem(e->first, 1), ZX_NAME_SHAPE),
                  q->chunk) &&
           (PyTuple_GetItem(e->first, 1) == PyTuple_GetItem(e->last, 1) ||
            equals(zx_quick_attribute(q, PyTuple_GetItem(e->last, 1), ZX_NAME_SHAPE),
                   q->chunk)) &&
           has_settings(q);
}

/* The array of NumPy in a buffer; NULL: it is none, or has another data type. */
static PyObject *find_numpy_array(const zx_quick *q, PyObject *buffer)
{
    PyObject *found = NULL;

    for (Py_ssize_t i = 0; !found && i < PyTuple_Size(q->buffers); i++)
        if ((PyObject *)Py_TYPE(buffer) == PyTuple_GetItem(q->buffers, i))
            found = zx_quick_attribute(q, buffer, ZX_NAME_DATA);
    if (found && (PyObject *)Py_TYPE(found) == q->st->np_array &&
        equals(zx_quick_attribute(q, found, ZX_NAME_DTYPE), q->dtype))
        return found;
    Py_XDECREF(found);
    return NULL;
}

/* Whether the store's directory was neither made again nor moved. */
static bool is_there(const zx_quick *q, const char *root)
{
    struct stat found;

    return !root || (stat(root, &found) == 0 && found.st_dev == q->device &&
                     found.st_ino == q->inode);
}

/* ---- the selection ---------------------------------------------------------- */

static bool find_place(const zx_quick *q, PyObject *item, uint64_t *place)
{
    PyObject *path = zx_quick_attribute(q, PyTuple_GetItem(item, 0), ZX_NAME_PATH);
    const char *key = path ? PyUnicode_AsUTF8AndSize(path, NULL) : NULL;
    const bool is_chunk =
        key && zarr_array_block_of_key(q->array->a, key, place, NULL) == ZARR_OK;

    Py_XDECREF(path);
    return is_chunk;
}

/* What the items select along a dimension; returns how many chunks that are, 0: it is
 * nothing that we know. `begin`: where the first item's chunk begins. */
static uint64_t along(struct everyday *e, int32_t d, uint64_t begin, uint64_t edge)
{
    PyObject *inside = PyTuple_GetItem(PyTuple_GetItem(e->first, 2), d);
    PyObject *from = PyTuple_GetItem(e->first, 3), *to = PyTuple_GetItem(e->last, 3);
    zarr_dim_selection *dim = &e->dim[d];
    struct zx_slice s;

    if (PyLong_CheckExact(inside)) {
        const Py_ssize_t at = PyLong_AsSsize_t(inside);

        dim->kind = ZARR_DIM_INDEX;
        dim->start = (int64_t)begin + at;
        return at >= 0 && (uint64_t)at < edge;
    }
    if (e->n_axes >= PyTuple_Size(from) ||
        !zx_slice_init(&s, inside, PyTuple_GetItem(from, e->n_axes),
                       PyTuple_GetItem(to, e->n_axes), begin, edge) ||
        s.first != 0)
        return 0;
    dim->kind = ZARR_DIM_SLICE;
    dim->start = s.start;
    dim->step = s.step;
    dim->stop = s.stop;
    e->shape[e->n_axes++] = s.count;
    return s.n_chunks;
}

static bool are_tuples(const struct everyday *e, int32_t ndim)
{
    PyObject *from = PyTuple_GetItem(e->first, 3), *to = PyTuple_GetItem(e->last, 3);

    return PyTuple_CheckExact(PyTuple_GetItem(e->first, 2)) &&
           PyTuple_Size(PyTuple_GetItem(e->first, 2)) == ndim &&
           PyTuple_CheckExact(from) && PyTuple_CheckExact(to) &&
           PyTuple_Size(from) == PyTuple_Size(to);
}

/* Fills what the batch selects: the product that its first and last item tell. */
static bool reach(const zx_quick *q, struct everyday *e)
{
    const int32_t ndim = q->array->ndim;
    uint64_t place[ZARR_MAX_RANK], n_chunks = 1;

    if (!are_tuples(e, ndim) || !find_place(q, e->first, place))
        return false;
    for (int32_t d = 0; d < ndim; d++) {
        uint64_t n = 0;

        if (place[d] < INT64_MAX / 2 / q->edge[d])
            n = along(e, d, place[d] * q->edge[d], q->edge[d]);
        if (n == 0 || n > (uint64_t)e->n / n_chunks)
            return false;
        n_chunks *= n;
    }
    return n_chunks == (uint64_t)e->n &&
           e->n_axes == PyTuple_Size(PyTuple_GetItem(e->first, 3));
}

/* Makes the selection; NULL: all of an array without dimensions. False: the array has no
 * such elements. */
static bool make_selection(const zx_quick *q, const struct everyday *e,
                           zarr_selection **sel)
{
    uint64_t shape[ZARR_MAX_RANK];
    bool fits;

    *sel = NULL;
    if (q->array->ndim == 0)
        return true;
    zarr_array_copy_shapes(q->array->a, shape, NULL, NULL);
    if (zarr_selection_dims(sel, q->array->ndim, shape, q->array->ndim, e->dim, NULL))
        return false;
    fits = zarr_selection_ndim(*sel) == e->n_axes;
    for (int32_t d = 0; fits && d < e->n_axes; d++)
        fits = zarr_selection_shape(*sel)[d] == e->shape[d];
    if (!fits) {
        zarr_selection_free(*sel);
        *sel = NULL;
    }
    return fits;
}

PyObject *zx_quick_selection(const zx_quick *q, const struct everyday *e)
{
    zarr_selection *sel;

    if (!make_selection(q, e, &sel))
        return NULL;
    return sel ? zx_selection_wrap(q->st, sel) : Py_NewRef(Py_None);
}

/* Whether memory has the shape of the selection. */
static bool has_shape(const struct everyday *e, const struct zx_memory *m)
{
    bool fits = m->t.ndim == e->n_axes;

    for (int32_t d = 0; fits && d < e->n_axes; d++)
        fits = m->shape[d] == e->shape[d];
    return fits;
}

/* ---- stores that the library reads ------------------------------------------ */

/* What zarr-python is told of each chunk. */
static PyObject *results(const zx_quick *q, const uint8_t *present, Py_ssize_t n)
{
    PyObject *out = PyTuple_New(n);

    for (Py_ssize_t i = 0; out && i < n; i++)
        if (PyTuple_SetItem(out, i, Py_NewRef(present[i] ? q->present : q->missing)))
            Py_CLEAR(out);
    if (out) {
        atomic_fetch_add(&q->st->quick_batches, 1);
        atomic_fetch_add(&q->st->quick_chunks, (unsigned long long)n);
    }
    return out;
}

/* A small read without a Request: it is done on return. NULL with `is_late`: it
 * would take long, or have to wait. */
static PyObject *read_now(const zx_quick *q, struct everyday *e, PyObject *memory,
                          const char *root, bool *is_late)
{
    uint8_t present[ZX_MOST_AT_ONCE] = {0};
    struct zx_io io;
    struct zx_memory m;
    zarr_selection *sel = NULL;
    zarr_status status = ZARR_ERR_INVALID;

    *is_late = false;
    if (zx_io_init(&io, q->array, NULL) ||
        (!zx_memory_of_numpy(&m, q->st, memory, true) &&
         zx_memory_init(&m, q->st, memory, true)))
        return NULL;
    m.t.byte_order = q->order;
    io.o.flags |= ZARR_IO_AT_ONCE;
    io.o.present = present;
    io.o.n_present = (uint64_t)e->n;
    if (has_shape(e, &m) && make_selection(q, e, &sel)) {
        Py_BEGIN_ALLOW_THREADS if (is_there(q, root)) status =
            zarr_array_read(q->array->a, sel, &m.t, &io.o, NULL);
        Py_END_ALLOW_THREADS e->is_raised = zx_log_flush(q->st) != 0;
    }
    zarr_selection_free(sel);
    zx_memory_deinit(&m);
    *is_late = status == ZARR_ERR_CANCELLED && !e->is_raised;
    return status == ZARR_OK && !e->is_raised ? results(q, present, e->n) : NULL;
}

/* A read that waits to be started; NULL: the memory does not fit, or there is none. */
static zx_request *make_request(const zx_quick *q, const struct everyday *e,
                                PyObject *memory)
{
    zx_request *r = zx_alloc(q->st->request_type);

    if (!r)
        return NULL;
    r->st = q->st;
    r->array = (zx_array *)Py_NewRef((PyObject *)q->array);
    r->selection = zx_quick_selection(q, e);
    r->present = PyByteArray_FromStringAndSize(NULL, e->n);
    if (!r->selection || !r->present || zx_io_init(&r->io, q->array, NULL) ||
        zx_io_present(&r->io, r->present) ||
        zx_memory_init(&r->memory, q->st, memory, true) || !has_shape(e, &r->memory)) {
        Py_DECREF((PyObject *)r);
        return NULL;
    }
    r->memory.t.byte_order = q->order;
    memset(r->io.o.present, 0, (size_t)e->n);
    return r;
}

/* Without the GIL. False: something is wrong. */
static bool start(const zx_quick *q, zx_request *r, const char *root)
{
    const zarr_selection *sel =
        r->selection == Py_None ? NULL : ((zx_selection *)r->selection)->sel;

    return is_there(q, root) &&
           zarr_array_read_submit(&r->r, r->array->a, sel, &r->memory.t, &r->io.o,
                                  NULL) == ZARR_OK &&
           zarr_request_wait(r->r, 0, &r->is_done, NULL) == ZARR_OK;
}

/* A request that the event loop has to wait for. `is_tried`: it cannot be done at once.
 */
static PyObject *submit_request(const zx_quick *q, struct everyday *e, PyObject *memory,
                                const char *root, bool is_tried)
{
    zx_request *r = make_request(q, e, memory);
    bool is_started;

    if (!r)
        return NULL;
    if (!is_tried)
        r->io.o.flags |= ZARR_IO_AT_ONCE;
    Py_BEGIN_ALLOW_THREADS is_started = start(q, r, root);
    Py_END_ALLOW_THREADS e->is_raised = zx_log_flush(q->st) != 0;
    if (!is_started || e->is_raised)
        Py_CLEAR(r);
    return (PyObject *)r;
}

/* The results, or a request. Most small reads are done at once; now and then one of them
 * is a request all the same, for other tasks of the event loop to run. */
static PyObject *read_library(const zx_quick *q, struct everyday *e, PyObject *memory)
{
    static _Thread_local unsigned n_small;
    const char *root = q->root == Py_None ? NULL : PyBytes_AsString(q->root);
    const bool is_tried = e->n <= ZX_MOST_AT_ONCE && ++n_small % ZX_AT_ONCE != 0;
    bool is_late = true;
    PyObject *out = NULL;

    if (is_tried)
        out = read_now(q, e, memory, root, &is_late);
    return is_late ? submit_request(q, e, memory, root, is_tried) : out;
}

/* ---- the type --------------------------------------------------------------- */

static PyObject *read_everyday(const zx_quick *q, struct everyday *e, PyObject *buffer)
{
    PyObject *memory, *out;

    if (!is_ours(q, e) || !reach(q, e))
        return NULL;
    memory = find_numpy_array(q, buffer);
    if (!memory)
        return NULL;
    out = q->bytes_type ? zx_quick_gather(q, e, memory) : read_library(q, e, memory);
    Py_DECREF(memory);
    return out;
}

/* read(batch, buffer, drop_axes) -> a tuple: what zarr-python is told, all is done; a
 * Request or a list for Array._decode: zarrc/_quick.py goes on; None: the batch is none
 * of ours, or its read failed */
static PyObject *quick_read(PyObject *o, PyObject *args)
{
    struct everyday e = {.n = 0};
    PyObject *buffer, *drop, *out = NULL;

    if (!PyArg_ParseTuple(args, "OOO", &e.items, &buffer, &drop))
        return NULL;
    if (PyTuple_CheckExact(drop) && PyTuple_Size(drop) == 0)
        out = read_everyday((zx_quick *)o, &e, buffer);
    Py_XDECREF(e.store);
    if (out || e.is_raised)
        return out;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static void quick_dealloc(PyObject *o)
{
    zx_quick *q = (zx_quick *)o;
    PyObject *owned[] = {(PyObject *)q->array,
                         (PyObject *)q->place_type,
                         (PyObject *)q->store_type,
                         (PyObject *)q->bytes_type,
                         q->buffers,
                         q->chunk,
                         q->dtype,
                         q->name,
                         q->value,
                         q->root,
                         q->now,
                         q->settings,
                         q->marks,
                         q->present,
                         q->missing};

    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        Py_XDECREF(owned[i]);
    zx_free(o);
}

static PyMethodDef quick_methods[] = {{"read", quick_read, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyType_Slot quick_slots[] = {
    {Py_tp_dealloc, quick_dealloc}, {Py_tp_methods, quick_methods}, {0, NULL}};
PyType_Spec zx_quick_spec = {"zarrc._core.Quick", sizeof(zx_quick), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             quick_slots};

static void own(PyObject **slot, PyObject *value)
{
    *slot = Py_NewRef(value);
}

/* Takes the shape of chunks, a tuple of lengths that are not 0. */
static int own_chunk(zx_quick *q, PyObject *chunk)
{
    bool fits = zx_lengths(chunk, q->edge) == q->array->ndim;

    for (int32_t d = 0; fits && d < q->array->ndim; d++)
        fits = q->edge[d] > 0;
    if (!fits) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "chunks of another grid");
        return -1;
    }
    own(&q->chunk, chunk);
    return 0;
}

static int check_marks(PyObject *marks)
{
    bool fits = true;

    for (Py_ssize_t i = 0; i < PyTuple_Size(marks); i++) {
        PyObject *mark = PyTuple_GetItem(marks, i);

        fits = fits && PyTuple_CheckExact(mark) && PyTuple_Size(mark) == 3;
    }
    if (!fits)
        PyErr_SetString(PyExc_TypeError, "marks are tuples of three");
    return fits ? 0 : -1;
}

/* new_quick(array, class of places, of the store, classes of buffers, chunk shape, data
 * type and order of the memory, (attribute of the store, its value), (directory or None,
 * device, inode), (now, settings, marks), (present, missing), class of values or None) */
PyObject *zx_new_quick(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *array, *place, *store, *buffers, *chunk, *dtype, *name, *value, *root, *now;
    PyObject *settings, *marks, *present, *missing, *bytes;
    unsigned long long device, inode;
    unsigned order;
    zx_quick *q;

    if (!PyArg_ParseTuple(args, "OO!O!O!OOI(UO)(OKK)(OOO!)(OO)O", &array, &PyType_Type,
                          &place, &PyType_Type, &store, &PyTuple_Type, &buffers, &chunk,
                          &dtype, &order, &name, &value, &root, &device, &inode, &now,
                          &settings, &PyTuple_Type, &marks, &present, &missing, &bytes) ||
        check_marks(marks))
        return NULL;
    if (!PyObject_TypeCheck(array, st->array_type) ||
        (root != Py_None && !PyBytes_Check(root)) ||
        (bytes != Py_None && !PyType_Check(bytes))) {
        PyErr_SetString(PyExc_TypeError, "an array, bytes and a class are needed");
        return NULL;
    }
    q = zx_alloc(st->quick_type);
    if (!q)
        return NULL;
    q->st = st;
    q->array = (zx_array *)Py_NewRef(array);
    if (own_chunk(q, chunk)) {
        Py_DECREF((PyObject *)q);
        return NULL;
    }
    q->place_type = (PyTypeObject *)Py_NewRef(place);
    q->store_type = (PyTypeObject *)Py_NewRef(store);
    q->bytes_type = bytes == Py_None ? NULL : (PyTypeObject *)Py_NewRef(bytes);
    q->order = order;
    q->device = device;
    q->inode = inode;
    own(&q->buffers, buffers);
    own(&q->dtype, dtype);
    own(&q->name, name);
    own(&q->value, value);
    own(&q->root, root);
    own(&q->now, now);
    own(&q->settings, settings);
    own(&q->marks, marks);
    own(&q->present, present);
    own(&q->missing, missing);
    return (PyObject *)q;
}

/* ---- the module ------------------------------------------------------------- */

int zx_quick_init(zx_state *st)
{
    static const char *const name[] = {[ZX_NAME_STORE] = "store",
                                       [ZX_NAME_PATH] = "path",
                                       [ZX_NAME_SHAPE] = "shape",
                                       [ZX_NAME_DTYPE] = "dtype",
                                       [ZX_NAME_KIND] = "kind",
                                       [ZX_NAME_ITEMSIZE] = "itemsize",
                                       [ZX_NAME_IS_OPEN] = "_is_open",
                                       [ZX_NAME_DATA] = "_data",
                                       [ZX_NAME_STORE_DICT] = "_store_dict"};

    for (int i = 0; i < ZX_N_NAMES; i++)
        if (!(st->name[i] = PyUnicode_InternFromString(name[i])))
            return -1;
    return 0;
}

void zx_quick_deinit(zx_state *st)
{
    for (int i = 0; i < ZX_N_NAMES; i++)
        Py_CLEAR(st->name[i]);
}

/* quick_counts(is_reset) -> (batches, chunks) that were done in one call */
PyObject *zx_quick_counts(PyObject *module, PyObject *is_reset)
{
    zx_state *st = PyModule_GetState(module);
    const bool resets = is_reset == Py_True;
    const unsigned long long batches =
        resets ? atomic_exchange(&st->quick_batches, 0) : atomic_load(&st->quick_batches);
    const unsigned long long chunks =
        resets ? atomic_exchange(&st->quick_chunks, 0) : atomic_load(&st->quick_chunks);

    return Py_BuildValue("(KK)", batches, chunks);
}
