/* array_io.c - elements of an array. Keys of integers and slices, and memory that NumPy
 * has anyway, take the quick way here; zarrc/_indexing.py prepares everything else. */
#include "ext.h"

#include <string.h>

enum {
    QUICK_BYTES = 1 << 20 /* the main thread reads this much without looking for Ctrl-C */
};

/* ---- options ---------------------------------------------------------------- */

int zx_io_present(struct zx_io *io, PyObject *object)
{
    if (!object || object == Py_None)
        return 0;
    if (PyObject_GetBuffer(object, &io->present, PyBUF_WRITABLE))
        return -1;
    io->o.present = io->present.buf;
    io->o.n_present = (uint64_t)io->present.len;
    return 0;
}

/* Threads of a call that names no number; 0: those of the context. Each process asks
 * once, at its first call: before that, a spawned worker does not know what it works for.
 */
static uint32_t call_threads(zx_state *st)
{
    PyObject *found;
    unsigned long n;

    if (atomic_exchange(&st->asks, false)) {
        found = PyObject_CallNoArgs(st->ask_threads);
        n = found ? PyLong_AsUnsignedLong(found) : 0;
        if (PyErr_Occurred())
            PyErr_Clear(); /* the context's threads do, too */
        else
            atomic_store(&st->max_threads, n <= UINT16_MAX ? (uint32_t)n : 0);
        Py_XDECREF(found);
    }
    return atomic_load(&st->max_threads);
}

int zx_io_init(struct zx_io *io, const zx_array *a, PyObject *options)
{
    static const zarr_io_options none = ZARR_IO_OPTIONS_INIT;
    static const zarr_stats no_stats = ZARR_STATS_INIT;

    PyObject *field, *present, *counts;
    uint32_t at_once = 0;
    uint64_t stream = 0;

    io->o = none;
    io->progress = io->field = io->counts = NULL;
    io->is_packed = 0;
    io->o.max_threads = call_threads(a->st);
    io->tuning = a->tuning;
    io->o.tuning = &io->tuning;
    if (!options || options == Py_None)
        return 0;
    if (zx_opt_u32(options, "max_threads", &io->o.max_threads) ||
        zx_opt_u32(options, "missing_chunks", &io->o.missing_chunks) ||
        zx_opt_u32(options, "empty_chunks", &io->o.empty_chunks) ||
        zx_opt_u32(options, "outside", &io->o.outside) ||
        zx_opt_u32(options, "inner_order", &io->tuning.inner_order) ||
        zx_opt_u32(options, "trust", &io->o.trust) ||
        zx_opt_u64(options, "wave_bytes", &io->tuning.wave_bytes) ||
        zx_opt_u64(options, "memory_bytes", &io->tuning.memory_bytes) ||
        zx_opt_u64(options, "coalesce_gap", &io->tuning.coalesce_gap) ||
        zx_opt_u64(options, "coalesce_bytes", &io->tuning.coalesce_bytes) ||
        zx_opt_text(options, "codec_preference", &io->tuning.codec_preference) ||
        zx_opt_text(options, "pipeline", &io->tuning.pipeline) ||
        zx_opt_u32(options, "packed", &io->is_packed) ||
        zx_opt_text(options, "field", &io->o.field) ||
        zx_opt_u32(options, "at_once", &at_once) ||
        zx_opt_u64(options, "stream", &stream))
        return -1;
    if (at_once)
        io->o.flags |= ZARR_IO_AT_ONCE;
    io->o.stream = (void *)(uintptr_t)stream; /* NOLINT(performance-no-int-to-ptr) */
    if (zx_opt(options, "progress", &io->progress) || zx_opt(options, "field", &field) ||
        zx_opt(options, "present", &present) || zx_opt(options, "stats", &counts) ||
        (counts &&
         zx_stats_add(counts, &no_stats)) || /* whether that is possible later */
        zx_io_present(io, present))
        return -1;
    io->field = Py_XNewRef(field);
    io->counts = Py_XNewRef(counts);
    io->stats = no_stats;
    io->o.stats = counts ? &io->stats : NULL;
    return 0;
}

void zx_io_deinit(struct zx_io *io)
{
    Py_CLEAR(io->field);
    if (io->counts) {
        PyObject *type, *value, *trace;

        PyErr_Fetch(&type, &value, &trace);       /* of the call, if it failed */
        if (zx_stats_add(io->counts, &io->stats)) /* the dict was changed meanwhile */
            PyErr_WriteUnraisable(io->counts);
        PyErr_Restore(type, value, trace);
        Py_CLEAR(io->counts);
    }
    if (io->o.present)
        PyBuffer_Release(&io->present);
    io->o.present = NULL;
}

/* The shape of what a call moves, of at most ZARR_MAX_RANK dimensions; returns their
 * number. */
static int32_t result_shape(const zx_array *a, const zarr_selection *sel, uint64_t *shape)
{
    const int32_t ndim = sel ? zarr_selection_ndim(sel) : a->ndim;

    if (sel)
        memcpy(shape, zarr_selection_shape(sel), (size_t)ndim * sizeof *shape);
    else
        zarr_array_copy_shapes(a->a, shape, NULL, NULL);
    return ndim;
}

/* Memory of uint8 whose rows have several elements a byte. */
static int pack(struct zx_memory *m, const zx_array *a, const zarr_selection *sel)
{
    const uint64_t bits = zarr_dtype_item_bits(zarr_array_dtype(a->a));
    uint64_t shape[ZARR_MAX_RANK];
    bool fits = m->is_held && m->view.itemsize == 1 && bits < 8;
    int32_t ndim;

    ndim = result_shape(a, sel, shape);
    fits = fits && ndim > 0 && m->t.ndim == ndim && m->strides[ndim - 1] == 1;
    for (int32_t d = 0; fits && d < ndim; d++) {
        const uint64_t bytes = d < ndim - 1 ? shape[d] : (shape[d] * bits + 7) / 8;

        fits = m->shape[d] == bytes;
        m->shape[d] = shape[d];
    }
    if (fits) {
        m->t.flags |= ZARR_TENSOR_PACKED;
        return 0;
    }
    PyErr_SetString(PyExc_ValueError, "packed elements need memory of uint8 whose last "
                                      "dimension has the bytes of a row, without gaps");
    return -1;
}

int zx_io_lend(struct zx_memory *m, zx_array *a, PyObject *object, bool is_writable)
{
    return zx_is_capsule(object)   ? zx_memory_of_capsule(m, a, object, is_writable)
           : PyTuple_Check(object) ? zx_memory_of_address(m, a, object)
                                   : zx_memory_init(m, a->st, object, is_writable);
}

int zx_io_memory(struct zx_io *io, struct zx_memory *m, zx_array *a, PyObject *object,
                 bool is_read, const zarr_selection *sel)
{
    uint64_t shape[ZARR_MAX_RANK];
    int32_t ndim;

    if ((!is_read && zx_writable(a->store)) || zx_io_lend(m, a, object, is_read))
        return -1;
    if (m->owner && is_read && Py_TYPE(m->owner) == a->st->vlen_type)
        io->o.heap = ((zx_vlen *)m->owner)->heap;
    if (io->is_packed) {
        if (pack(m, a, sel) == 0)
            return 0;
        zx_memory_deinit(m);
        return -1;
    }
    if (is_read || io->o.field) /* a field may have dimensions of its own */
        return 0;
    ndim = result_shape(a, sel, shape);
    if (zx_memory_broadcast(m, ndim, shape) == 0)
        return 0;
    zx_memory_deinit(m);
    return -1;
}

/* ---- one read or write ------------------------------------------------------ */

/* How much a call moves, roughly. */
static uint64_t estimate_bytes(const zx_array *a, const struct zx_memory *m)
{
    uint64_t n = zarr_dtype_item_bytes(zarr_array_dtype(a->a));

    for (int32_t d = 0; d < m->t.ndim; d++) /* an estimate: it may wrap */
        n *= m->shape[d];
    return n;
}

/* Whether the main thread should look for signals meanwhile. A write may wait for a lock.
 */
static bool takes_long(const zx_array *a, const struct zx_memory *m, bool is_read)
{
    return !a->store->is_fast || !is_read || estimate_bytes(a, m) > QUICK_BYTES;
}

static int transfer(zx_array *a, const zarr_selection *sel, struct zx_memory *m,
                    struct zx_io *io, bool is_read)
{
    const bool flushes = !is_read && a->store->flushes_each;
    zarr_request *r = NULL;
    zarr_error err;
    zarr_status status;

    if (!io->progress && !(zx_is_on_main(a->st) && takes_long(a, m, is_read))) {
        Py_BEGIN_ALLOW_THREADS status =
            is_read ? zarr_array_read(a->a, sel, &m->t, &io->o, &err)
                    : zarr_array_write(a->a, sel, &m->t, &io->o, &err);
        if (flushes && !status)
            status = zarr_store_flush(a->store->s, NULL, &err);
        Py_END_ALLOW_THREADS return zx_check(a->st, status, &err, a->a);
    }
    Py_BEGIN_ALLOW_THREADS status =
        is_read ? zarr_array_read_submit(&r, a->a, sel, &m->t, &io->o, &err)
                : zarr_array_write_submit(&r, a->a, sel, &m->t, &io->o, &err);
    Py_END_ALLOW_THREADS if (status) return zx_check(a->st, status, &err, a->a);
    if (zx_wait(a->st, r, io->progress, a->a))
        return -1;
    if (!flushes)
        return 0;
    Py_BEGIN_ALLOW_THREADS status = zarr_store_flush(a->store->s, NULL, &err);
    Py_END_ALLOW_THREADS return zx_check(a->st, status, &err, a->a);
}

static int move(zx_array *a, const zarr_selection *sel, PyObject *object, uint32_t order,
                struct zx_io *io, bool is_read)
{
    struct zx_memory m;
    int rc;

    if (zx_io_memory(io, &m, a, object, is_read, sel))
        return -1;
    m.t.byte_order = order;
    rc = transfer(a, sel, &m, io, is_read);
    zx_memory_deinit(&m);
    return rc;
}

/* ---- [] --------------------------------------------------------------------- */

static PyObject *fresh(const zx_array *a, const zarr_selection *sel, struct zx_wish *w)
{
    w->ndim = result_shape(a, sel, w->shape);
    w->dtype = a->dtype;
    w->is_fortran = a->is_fortran;
    w->bytes = zarr_dtype_item_bytes(zarr_array_dtype(a->a));
    for (int32_t d = 0; d < w->ndim; d++) /* it may wrap: NumPy refuses such a shape */
        w->bytes *= w->shape[d];
    return zx_empty(a->store->context, w);
}

/* _fresh(shape, dtype, bytes) -> a new array in the order of those that reads give */
PyObject *zx_array_fresh(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    unsigned long long bytes;
    struct zx_wish w;
    PyObject *shape;

    if (!PyArg_ParseTuple(args, "OO!K", &shape, self->st->np_dtype, &w.dtype, &bytes))
        return NULL;
    w.ndim = zx_lengths(shape, w.shape);
    if (w.ndim < 0)
        return NULL;
    w.bytes = bytes;
    w.is_fortran = self->is_fortran;
    return zx_empty(self->store->context, &w);
}

/* Reads into a new array, which needs no look at its buffer. */
static int read_fresh(zx_array *a, const zarr_selection *sel, PyObject *out,
                      const struct zx_wish *w, struct zx_io *io)
{
    static const zarr_tensor none = ZARR_TENSOR_INIT;
    void *data = w->is_fortran ? NULL : zx_data_of_new(a->st, out);
    struct zx_memory m;

    if (!data)
        return move(a, sel, out, a->order, io, true);
    m.t = none;
    m.t.device_type = ZARR_DEVICE_CPU;
    m.t.byte_order = a->order;
    m.t.data = data;
    m.t.data_bytes = w->bytes;
    m.t.ndim = w->ndim;
    m.t.shape = m.shape;
    for (int32_t d = 0; d < w->ndim; d++)
        m.shape[d] = w->shape[d];
    return transfer(a, sel, &m, io, true);
}

/* What NumPy gives for x[()]: a scalar. */
static PyObject *as_scalar(PyObject *array)
{
    PyObject *key = PyTuple_New(0);
    PyObject *out = key ? PyObject_GetItem(array, key) : NULL;

    Py_XDECREF(key);
    Py_DECREF(array);
    return out;
}

/* As zx_key(). */
static int basic_key(const zx_array *a, PyObject *key, zarr_selection **out)
{
    uint64_t shape[ZARR_MAX_RANK];

    zarr_array_copy_shapes(a->a, shape, NULL, NULL);
    return zx_key(a->st, a->ndim, shape, key, out);
}

PyObject *zx_array_getitem(PyObject *o, PyObject *key)
{
    zx_array *self = (zx_array *)o;
    zarr_selection *sel = NULL;
    PyObject *out;
    struct zx_wish wish;
    struct zx_io io;
    int is_quick = 0;

    if (self->how == ZX_PLAIN && !self->has_like)
        is_quick = basic_key(self, key, &sel);
    if (is_quick < 0)
        return NULL;
    if (!is_quick)
        return PyObject_CallMethod(o, "_get", "(O)", key);
    zx_io_init(&io, self, NULL); /* it calls Python, so no exception may be set yet */
    out = fresh(self, sel, &wish);
    if (out && read_fresh(self, sel, out, &wish, &io))
        Py_CLEAR(out);
    zarr_selection_free(sel);
    return out && wish.ndim == 0 ? as_scalar(out) : out;
}

/* Whether a value is an array of NumPy with our data type. */
static bool has_dtype(const zx_array *a, PyObject *value)
{
    PyObject *dtype;
    int same;

    if (!PyObject_TypeCheck(value, (PyTypeObject *)a->st->np_array))
        return false; /* the buffer of a scalar may be bytes */
    dtype = PyObject_GetAttrString(value, "dtype");
    same = dtype ? PyObject_RichCompareBool(dtype, a->dtype, Py_EQ) : 0;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return same > 0;
}

int zx_array_setitem(PyObject *o, PyObject *key, PyObject *value)
{
    zx_array *self = (zx_array *)o;
    zarr_selection *sel = NULL;
    int is_quick = 0, rc;
    struct zx_io io;
    PyObject *done;

    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    if (self->how == ZX_PLAIN && has_dtype(self, value))
        is_quick = basic_key(self, key, &sel);
    if (is_quick < 0)
        return -1;
    if (!is_quick) {
        done = PyObject_CallMethod(o, "_set", "(OO)", key, value);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    zx_io_init(&io, self, NULL);
    rc = move(self, sel, value, self->order, &io, false);
    zarr_selection_free(sel);
    return rc;
}

static bool has_shape(const struct zx_memory *m, int32_t ndim, const uint64_t *shape)
{
    bool same = m->t.ndim == ndim;

    for (int32_t d = 0; same && d < ndim; d++)
        same = m->shape[d] == shape[d];
    return same;
}

/* Reads into memory of NumPy that is just as z[key] would be. Returns 1 if that is done,
 * 0 if zarrc/_indexing.py has to look at the key or the memory, which also tells what is
 * wrong with them. */
static int read_quick(zx_array *self, const zarr_selection *sel, PyObject *out)
{
    uint64_t shape[ZARR_MAX_RANK];
    struct zx_memory m;
    struct zx_io io;
    int rc;

    if (zx_io_init(&io, self, NULL))
        return -1;
    if (zx_io_memory(&io, &m, self, out, true, sel)) {
        PyErr_Clear();
        return 0;
    }
    rc = has_shape(&m, result_shape(self, sel, shape), shape);
    m.t.byte_order = self->order;
    if (rc && transfer(self, sel, &m, &io, true))
        rc = -1;
    zx_memory_deinit(&m);
    return rc;
}

/* _read_into(key, memory) -> whether the elements are there */
PyObject *zx_array_read_into(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    zarr_selection *sel = NULL;
    PyObject *key, *out;
    int rc = 0;

    if (!PyArg_ParseTuple(args, "OO", &key, &out))
        return NULL;
    if (self->how == ZX_PLAIN && has_dtype(self, out))
        rc = basic_key(self, key, &sel);
    if (rc > 0)
        rc = read_quick(self, sel, out);
    zarr_selection_free(sel);
    return rc < 0 ? NULL : PyBool_FromLong(rc);
}

/* _key(key) -> the Selection of integers and slices, None for all elements, or
 * NotImplemented for a key of another kind */
PyObject *zx_array_key(PyObject *o, PyObject *key)
{
    zx_array *self = (zx_array *)o;
    zarr_selection *sel = NULL;
    const int is_quick = basic_key(self, key, &sel);

    if (is_quick < 0)
        return NULL;
    if (!is_quick)
        return Py_NewRef(Py_NotImplemented);
    return sel ? zx_selection_wrap(self->st, sel) : Py_NewRef(Py_None);
}

/* ---- what zarrc/_indexing.py prepared --------------------------------------- */

int zx_selection_arg(zx_state *st, PyObject *object, const zarr_selection **out)
{
    *out = NULL;
    if (object == Py_None)
        return 0;
    if (Py_TYPE(object) != st->selection_type) {
        PyErr_SetString(PyExc_TypeError, "a Selection or None is needed");
        return -1;
    }
    *out = ((zx_selection *)object)->sel;
    return 0;
}

static PyObject *read_or_write(PyObject *o, PyObject *args, bool is_read)
{
    zx_array *self = (zx_array *)o;
    PyObject *selection, *object, *options = NULL;
    const zarr_selection *sel;
    unsigned order;
    struct zx_io io;
    int rc;

    if (!PyArg_ParseTuple(args, "OOI|O", &selection, &object, &order, &options) ||
        zx_selection_arg(self->st, selection, &sel) || zx_io_init(&io, self, options))
        return NULL;
    rc = move(self, sel, object, order, &io, is_read);
    zx_io_deinit(&io);
    if (rc)
        return NULL;
    Py_RETURN_NONE;
}

/* _read(selection, memory, order, options=None) */
PyObject *zx_array_read(PyObject *o, PyObject *args)
{
    return read_or_write(o, args, true);
}

/* _write(selection, memory, order, options=None) */
PyObject *zx_array_write(PyObject *o, PyObject *args)
{
    return read_or_write(o, args, false);
}

/* _append(memory, axis, order, options=None) -> where the elements begin */
PyObject *zx_array_append(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    PyObject *object, *options = NULL;
    zarr_request *r = NULL;
    struct zx_memory m;
    uint64_t first = 0;
    unsigned order;
    struct zx_io io;
    zarr_error err;
    zarr_status status;
    int axis;

    if (zx_writable(self->store) ||
        !PyArg_ParseTuple(args, "OiI|O", &object, &axis, &order, &options) ||
        zx_io_init(&io, self, options))
        return NULL;
    if (zx_io_lend(&m, self, object, false)) {
        zx_io_deinit(&io);
        return NULL;
    }
    m.t.byte_order = order;
    Py_BEGIN_ALLOW_THREADS status =
        zarr_array_append_submit(&r, self->a, axis, &m.t, &first, &io.o, &err);
    Py_END_ALLOW_THREADS if (status) zx_check(self->st, status, &err, self->a);
    else status = zx_wait(self->st, r, io.progress, self->a);
    zx_memory_deinit(&m);
    zx_io_deinit(&io);
    return status ? NULL : PyLong_FromUnsignedLongLong(first);
}
