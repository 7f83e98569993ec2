/* chunks.c - arrays from the text of their metadata, and chunks whose encoded bytes the
 * caller has: the pipeline for zarr-python fetches and stores chunks through stores of
 * Python, and the library decodes and encodes them. The bytes are borrowed from buffers
 * of Python. Encoded chunks leave as objects with the buffer protocol, without a copy. */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

/* open_document(class, store, path, text, attributes, options) */
PyObject *zx_open_document(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    zarr_array_open_options o = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    const char *path, *text, *attributes;
    PyObject *type, *from, *options;
    zarr_array *a = NULL;
    zx_store *store;
    zarr_error err;
    zarr_status status;

    if (!PyArg_ParseTuple(args, "OOsszO", &type, &from, &path, &text, &attributes,
                          &options) ||
        zx_array_class(st, type) || zx_array_options(options, &o))
        return NULL;
    store = zx_store_arg(st, from);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = zarr_array_open_document(
        &a, store->context->ctx, text, attributes, path, store->s, &o, &err);
    Py_END_ALLOW_THREADS if (zx_check(st, status, &err, NULL))
    {
        zarr_array_free(a);
        return NULL;
    }
    return zx_array_wrap(st, (PyTypeObject *)type, store, a);
}

static zarr_status explain_nothing(const zx_array *self, uint32_t what,
                                   zarr_explanation **out, zarr_error *err)
{
    zarr_dim_selection dim[ZARR_MAX_RANK] = {{0}};
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_status status = ZARR_OK;

    for (int32_t d = 0; d < self->ndim; d++) {
        dim[d].kind = ZARR_DIM_SLICE;
        dim[d].step = 1;
    }
    zarr_array_copy_shapes(self->a, shape, NULL, NULL);
    if (self->ndim)
        status = zarr_selection_dims(&sel, self->ndim, shape, self->ndim, dim, err);
    if (status == ZARR_OK)
        status = zarr_array_explain(out, self->a, what, sel, NULL, NULL, err);
    zarr_selection_free(sel);
    return status;
}

/* _check_codecs(is_write): raises if no implementation here decodes, or encodes, the
 * chunks */
PyObject *zx_array_check_codecs(PyObject *o, PyObject *is_write)
{
    const zx_array *self = (zx_array *)o;
    const uint32_t what = is_write == Py_True ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ;
    zarr_explanation *x = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status status;

    Py_BEGIN_ALLOW_THREADS status = explain_nothing(self, what, &x, &err);
    Py_END_ALLOW_THREADS if (status == ZARR_OK && x->n_steps == 0)
    {
        status = err.code = ZARR_ERR_UNSUPPORTED;
        PyOS_snprintf(err.message, sizeof err.message,
                      "codecs that this build decodes only");
    }
    zarr_explanation_free(x);
    if (zx_check(self->st, status, &err, self->a))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *explanation_text(zx_array *self, const zarr_explanation *x,
                                  uint32_t form)
{
    zarr_error err;
    size_t bytes = 0;
    PyObject *out = NULL;
    char *text;

    if (zx_check(self->st, zarr_explanation_text(x, form, NULL, 0, &bytes, &err), &err,
                 self->a))
        return NULL;
    text = PyMem_Malloc(bytes + 1);
    if (!text)
        return PyErr_NoMemory();
    if (zx_check(self->st, zarr_explanation_text(x, form, text, bytes + 1, &bytes, &err),
                 &err, self->a) == 0)
        out = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "replace");
    PyMem_Free(text);
    return out;
}

/* (lines for people, JSON) */
static PyObject *explanation_texts(zx_array *self, const zarr_explanation *x)
{
    PyObject *text = explanation_text(self, x, ZARR_EXPLAIN_TEXT);
    PyObject *json = text ? explanation_text(self, x, ZARR_EXPLAIN_JSON) : NULL;

    if (json)
        return Py_BuildValue("(NN)", text, json);
    Py_XDECREF(text);
    return NULL;
}

/* _explain(is_write, selection, memory or None, options) -> what the call would do, as
 * text and as JSON */
PyObject *zx_array_explain(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    PyObject *selection, *object, *options, *out = NULL;
    const zarr_selection *sel;
    zarr_explanation *x = NULL;
    struct zx_memory m = {.owner = NULL};
    struct zx_io io;
    int is_write;
    zarr_error err;
    zarr_status status;

    if (!PyArg_ParseTuple(args, "pOOO", &is_write, &selection, &object, &options) ||
        zx_selection_arg(self->st, selection, &sel) || zx_io_init(&io, self, options))
        return NULL;
    if (object != Py_None && zx_io_lend(&m, self, object, false))
        goto io;
    Py_BEGIN_ALLOW_THREADS status =
        zarr_array_explain(&x, self->a, is_write ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ,
                           sel, object == Py_None ? NULL : &m.t, &io.o, &err);
    Py_END_ALLOW_THREADS if (zx_check(self->st, status, &err, self->a) == 0) out =
        explanation_texts(self, x);
    zarr_explanation_free(x);
    zx_memory_deinit(&m);
io:
    zx_io_deinit(&io);
    return out;
}

/* ---- statistics ------------------------------------------------------------- */

/* The options of a summary, and the memory that they point to. */
struct summary_call {
    zx_array *array;
    const zarr_selection *selection;
    zarr_summary_options o;
    struct zx_io io;
    int32_t over[ZARR_MAX_RANK];
    Py_buffer weights, edges, quantiles, missing;
    zarr_summary *out;
};

/* *n becomes the number of doubles of a member; the buffer is released by its `obj`. */
static int doubles_option(PyObject *options, const char *name, Py_buffer *view,
                          const double **out, uint64_t *n)
{
    PyObject *object;

    if (zx_opt(options, name, &object))
        return -1;
    if (!object)
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS))
        return -1;
    *out = view->buf;
    *n = (uint64_t)view->len / sizeof(double);
    return 0;
}

static int over_option(struct summary_call *c, PyObject *options)
{
    uint64_t over[ZARR_MAX_RANK];
    const uint64_t *given = NULL;
    int32_t n = -1;

    if (zx_opt_shape(options, "over", over, &given, &n))
        return -1;
    for (int32_t i = 0; given && i < n; i++)
        c->over[i] = (int32_t)given[i];
    if (given) {
        c->o.over = c->over;
        c->o.n_over = (uint32_t)n;
    }
    return 0;
}

static int summary_options(struct summary_call *c, PyObject *options)
{
    uint64_t n_edges = 0, n_quantiles = 0, dim = 0;
    PyObject *missing;

    if (over_option(c, options) || zx_opt(options, "missing", &missing) ||
        doubles_option(options, "weights", &c->weights, &c->o.weights, &c->o.n_weights) ||
        doubles_option(options, "edges", &c->edges, &c->o.edges, &n_edges) ||
        doubles_option(options, "quantiles", &c->quantiles, &c->o.quantiles,
                       &n_quantiles) ||
        zx_opt_u64(options, "weights_dim", &dim) ||
        zx_opt_u32(options, "bins", &c->o.n_bins) ||
        (missing && missing != Py_True &&
         PyObject_GetBuffer(missing, &c->missing, PyBUF_C_CONTIGUOUS)))
        return -1;
    if (missing == Py_True && !c->io.o.field)
        c->o.missing = zarr_array_missing_value(c->array->a);
    else if (missing && missing != Py_True)
        c->o.missing = c->missing.buf;
    c->o.weights_dim = (int32_t)dim;
    c->o.n_quantiles = (uint32_t)n_quantiles;
    c->o.io = &c->io.o;
    return 0;
}

static zarr_status run_summary(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct summary_call *c = arg;

    c->io.o.cancel = cancel;
    return zarr_array_summary(&c->out, c->array->a, c->selection, &c->o, err);
}

static int put_bytes(PyObject *out, const char *name, const void *data, uint64_t n,
                     uint64_t bytes)
{
    PyObject *value = NULL;
    int rc;

    if (!data)
        return 0;
    if (n <= (uint64_t)PY_SSIZE_T_MAX / bytes)
        value = PyByteArray_FromStringAndSize(data, (Py_ssize_t)(n * bytes));
    else
        PyErr_NoMemory();
    rc = value ? PyDict_SetItemString(out, name, value) : -1;
    Py_XDECREF(value);
    return rc;
}

/* The lists as bytes, by their names in zarr_summary. */
static PyObject *summary_dict(const zarr_summary *s, uint32_t n_quantiles)
{
    const uint64_t n = s->n_places, item = zarr_dtype_item_bytes(s->dtype);
    const uint64_t edges = (uint64_t)s->n_bins + 1;
    PyObject *out = Py_BuildValue("{s:I,s:K,s:K}", "flags", (unsigned)s->flags, "n_below",
                                  (unsigned long long)s->n_below, "n_above",
                                  (unsigned long long)s->n_above);

    if (out &&
        (put_bytes(out, "dims", s->dims, (uint64_t)s->ndim, 4) ||
         put_bytes(out, "count", s->count, n, 8) ||
         put_bytes(out, "missing", s->n_missing, n, 8) ||
         put_bytes(out, "nan", s->n_nan, n, 8) ||
         put_bytes(out, "min", s->min, n, item) ||
         put_bytes(out, "max", s->max, n, item) || put_bytes(out, "sum", s->sum, n, 8) ||
         put_bytes(out, "mean", s->mean, n, 8) || put_bytes(out, "std", s->std, n, 8) ||
         put_bytes(out, "sum_high", s->sum_high, n, 8) ||
         put_bytes(out, "sum_low", s->sum_low, n, 8) ||
         put_bytes(out, "weight", s->weight, n, 8) ||
         put_bytes(out, "edges", s->edges, edges, 8) ||
         put_bytes(out, "bins", s->bins, s->n_bins, 8) ||
         put_bytes(out, "quantiles", s->quantiles, n_quantiles, 8)))
        Py_CLEAR(out);
    return out;
}

/* _summary(selection, options) -> the members of a zarr_summary */
PyObject *zx_array_summary(PyObject *o, PyObject *args)
{
    struct summary_call c = {.array = (zx_array *)o, .o = ZARR_SUMMARY_OPTIONS_INIT};
    PyObject *selection, *options, *out = NULL;

    if (!PyArg_ParseTuple(args, "OO", &selection, &options) ||
        zx_selection_arg(c.array->st, selection, &c.selection) ||
        zx_io_init(&c.io, c.array, options))
        return NULL;
    if (summary_options(&c, options) == 0 &&
        zx_call(c.array->st, run_summary, &c, c.array->a) == ZARR_OK)
        out = summary_dict(c.out, c.o.n_quantiles);
    zarr_summary_free(c.out);
    PyBuffer_Release(&c.weights); /* which does nothing if there is none */
    PyBuffer_Release(&c.edges);
    PyBuffer_Release(&c.quantiles);
    PyBuffer_Release(&c.missing);
    zx_io_deinit(&c.io);
    return out;
}

/* ---- keys ------------------------------------------------------------------- */

/* Fills the grid coordinates of a list of keys. -1: an exception. */
static int locate_keys(zx_array *a, PyObject *keys, Py_ssize_t n, uint64_t *out)
{
    zarr_error err;

    for (Py_ssize_t i = 0; i < n; i++) {
        const char *key = PyUnicode_AsUTF8AndSize(PyList_GetItem(keys, i), NULL);

        if (!key)
            return -1;
        if (zarr_array_block_of_key(a->a, key, out + i * a->ndim, &err)) {
            zx_fail(a->st, &err, NULL);
            return -1;
        }
    }
    return 0;
}

/* The length of a list; -1: it is none, or too long, with an exception. */
static Py_ssize_t list_length(PyObject *list)
{
    const Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : -1;

    if (n < 0 || n > PY_SSIZE_T_MAX / (Py_ssize_t)(8 * ZARR_MAX_RANK)) {
        PyErr_SetString(PyExc_TypeError, "a list is needed");
        return -1;
    }
    return n;
}

/* _places(keys) -> bytes: grid coordinates as uint64, key after key */
PyObject *zx_array_places(PyObject *o, PyObject *keys)
{
    zx_array *self = (zx_array *)o;
    const Py_ssize_t n = list_length(keys);
    PyObject *out;
    char *data;

    if (n < 0)
        return NULL;
    out = PyBytes_FromStringAndSize(NULL, n * self->ndim * 8);
    data = out ? PyBytes_AsString(out) : NULL;
    if (data && locate_keys(self, keys, n, (uint64_t *)(void *)data))
        Py_CLEAR(out);
    return out;
}

/* ---- chunks that Python has ------------------------------------------------- */

/* Encoded chunks in buffers of Python, which it holds. */
struct given {
    zarr_block_batch batch;
    uint64_t *places;
    zarr_memory *bytes;
    Py_buffer *views;
    Py_ssize_t n_views;
};

static void given_deinit(struct given *g)
{
    for (Py_ssize_t i = 0; i < g->n_views; i++)
        PyBuffer_Release(&g->views[i]);
    PyMem_Free(g->views);
    PyMem_Free(g->bytes);
    PyMem_Free(g->places);
}

/* Borrows one chunk; None is a missing one. */
static int borrow_chunk(struct given *g, PyObject *value, zarr_memory *out)
{
    static const char nothing; /* of a chunk without bytes, which is not missing */
    Py_buffer *view = &g->views[g->n_views];

    out->device_type = ZARR_DEVICE_CPU;
    if (value == Py_None)
        return 0;
    if (PyObject_GetBuffer(value, view, PyBUF_SIMPLE))
        return -1;
    g->n_views++;
    out->handle = view->len ? view->buf : (void *)(uintptr_t)&nothing;
    out->bytes = (uint64_t)view->len;
    return 0;
}

/* Takes (keys, values), two lists of the same length. */
static int given_init(struct given *g, zx_array *a, PyObject *keys, PyObject *values)
{
    static const zarr_block_batch none = ZARR_BLOCK_BATCH_INIT;
    const Py_ssize_t n = list_length(keys);
    const size_t room = n > 0 ? (size_t)n : 1;

    memset(g, 0, sizeof *g);
    g->batch = none;
    if (n < 0 || !PyList_Check(values) || PyList_Size(values) != n) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "one value for each key is needed");
        return -1;
    }
    g->places = PyMem_Calloc(room * (size_t)(a->ndim ? a->ndim : 1), sizeof *g->places);
    g->bytes = PyMem_Calloc(room, sizeof *g->bytes);
    g->views = PyMem_Calloc(room, sizeof *g->views);
    if (!g->places || !g->bytes || !g->views) {
        PyErr_NoMemory();
        goto fail;
    }
    if (locate_keys(a, keys, n, g->places))
        goto fail;
    for (Py_ssize_t i = 0; i < n; i++)
        if (borrow_chunk(g, PyList_GetItem(values, i), &g->bytes[i]))
            goto fail;
    g->batch.n_blocks = (uint64_t)n;
    g->batch.blocks = g->places;
    g->batch.bytes = g->bytes;
    return 0;
fail:
    given_deinit(g);
    return -1;
}

/* ---- chunks that the library made ------------------------------------------- */

/* One encoded chunk. Threads of the library put them on a list without locks. */
struct piece {
    struct piece *next;
    bool is_erased;
    uint64_t bytes;
    uint64_t place[]; /* then the bytes */
};

struct harvest {
    _Atomic(struct piece *) first;
    zarr_array *a;
};

typedef struct {
    PyObject_HEAD struct piece *piece; /* owned */
    char *data;                        /* in it */
} zx_block;

static char *piece_data(struct piece *p, int32_t ndim)
{
    return (char *)(p->place + ndim);
}

/* zarr_block_sink_fn: any thread calls it. */
static zarr_status collect(void *user, const uint64_t *chunk, const zarr_memory *bytes,
                           zarr_error *err)
{
    struct harvest *h = user;
    const int32_t ndim = zarr_array_ndim(h->a);
    const size_t head = sizeof(struct piece) + (size_t)ndim * sizeof *chunk;
    struct piece *p;

    if (bytes && bytes->bytes > SIZE_MAX - head)
        return ZARR_ERR_NO_MEMORY;
    p = malloc(head + (bytes ? (size_t)bytes->bytes : 0));
    if (!p) {
        if (err)
            err->code = ZARR_ERR_NO_MEMORY;
        return ZARR_ERR_NO_MEMORY;
    }
    p->is_erased = !bytes;
    p->bytes = bytes ? bytes->bytes : 0;
    if (ndim)
        memcpy(p->place, chunk, (size_t)ndim * sizeof *chunk);
    if (p->bytes)
        memcpy(piece_data(p, ndim), (const char *)bytes->handle + bytes->offset,
               (size_t)p->bytes);
    p->next = atomic_load(&h->first);
    while (!atomic_compare_exchange_weak(&h->first, &p->next, p))
        ;
    return ZARR_OK;
}

static void harvest_free(struct harvest *h)
{
    struct piece *p = atomic_exchange(&h->first, NULL);

    while (p) {
        struct piece *next = p->next;

        free(p);
        p = next;
    }
}

static void block_dealloc(PyObject *o)
{
    free(((zx_block *)o)->piece);
    zx_free(o);
}

static int block_buffer(PyObject *o, Py_buffer *view, int flags)
{
    zx_block *self = (zx_block *)o;

    return PyBuffer_FillInfo(view, o, self->data, (Py_ssize_t)self->piece->bytes, 0,
                             flags);
}

static Py_ssize_t block_length(PyObject *o)
{
    return (Py_ssize_t)((zx_block *)o)->piece->bytes;
}

static PyType_Slot block_slots[] = {{Py_tp_dealloc, block_dealloc},
                                    {Py_bf_getbuffer, block_buffer},
                                    {Py_sq_length, block_length},
                                    {0, NULL}};
PyType_Spec zx_block_spec = {"zarrc._core.Block", sizeof(zx_block), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             block_slots};

PyObject *zx_place_key(zx_array *a, const uint64_t *place)
{
    char text[4096];
    size_t n = 0;
    zarr_error err;

    if (zarr_array_block_key(a->a, place, text, sizeof text, &n, &err))
        return zx_fail(a->st, &err, a->a);
    if (n >= sizeof text)
        return PyErr_Format(PyExc_ValueError, "a key of %zu bytes", n);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, NULL);
}

/* (key, Block or None); the piece is moved. */
static PyObject *make_row(zx_array *a, struct piece *p)
{
    PyObject *key = zx_place_key(a, p->place);
    zx_block *block;

    if (!key || p->is_erased) {
        free(p);
        return key ? Py_BuildValue("(NO)", key, Py_None) : NULL;
    }
    block = zx_alloc(a->st->block_type);
    if (!block) {
        free(p);
        Py_DECREF(key);
        return NULL;
    }
    block->piece = p;
    block->data = piece_data(p, a->ndim);
    return Py_BuildValue("(NN)", key, block);
}

static PyObject *harvest_list(struct harvest *h, zx_array *a)
{
    struct piece *p = atomic_exchange(&h->first, NULL);
    PyObject *list = PyList_New(0);

    while (p) {
        struct piece *next = p->next;
        PyObject *row = NULL;

        if (list)
            row = make_row(a, p);
        else
            free(p);
        if (list && (!row || PyList_Append(list, row)))
            Py_CLEAR(list);
        Py_XDECREF(row);
        p = next;
    }
    return list;
}

/* ---- decode and encode ------------------------------------------------------ */

struct passage {
    zx_array *a;
    const zarr_selection *sel;
    struct zx_memory memory;
    struct zx_io io;
    struct given given;
    struct harvest harvest;
};

static zarr_status decode_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct passage *p = arg;

    p->io.o.cancel = cancel;
    return zarr_array_decode(p->a->a, p->sel, &p->memory.t, &p->given.batch, &p->io.o,
                             err);
}

static zarr_status encode_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct passage *p = arg;
    zarr_block_sink sink = ZARR_BLOCK_SINK_INIT;

    sink.fn = collect;
    sink.user = &p->harvest;
    p->io.o.cancel = cancel;
    return zarr_array_encode(p->a->a, p->sel, &p->memory.t, &p->given.batch, &sink,
                             &p->io.o, err);
}

/* Decodes on this thread, if that takes little time and waits for nothing. Returns
 * whether it is done. */
static PyObject *decode_at_once(struct passage *p)
{
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st;

    Py_BEGIN_ALLOW_THREADS st = decode_work(p, NULL, &err);
    Py_END_ALLOW_THREADS if (zx_check(p->a->st, st == ZARR_ERR_CANCELLED ? ZARR_OK : st,
                                      &err, p->a->a)) return NULL;
    return PyBool_FromLong(st == ZARR_OK);
}

static PyObject *passage(PyObject *o, PyObject *args, bool is_read)
{
    zx_array *self = (zx_array *)o;
    PyObject *selection, *object, *keys, *values, *options, *out = NULL;
    struct passage p = {.a = self};
    unsigned order;

    if (!PyArg_ParseTuple(args, "OOIOOO", &selection, &object, &order, &keys, &values,
                          &options) ||
        zx_selection_arg(self->st, selection, &p.sel) || zx_io_init(&p.io, self, options))
        return NULL;
    p.harvest.a = self->a;
    if (zx_io_memory(&p.io, &p.memory, self, object, is_read, p.sel))
        goto io;
    p.memory.t.byte_order = order;
    if (given_init(&p.given, self, keys, values))
        goto memory;
    if (is_read && (p.io.o.flags & ZARR_IO_AT_ONCE))
        out = decode_at_once(&p);
    else if (zx_call(self->st, is_read ? decode_work : encode_work, &p, self->a) == 0)
        out = is_read ? Py_NewRef(Py_None) : harvest_list(&p.harvest, self);
    harvest_free(&p.harvest);
    given_deinit(&p.given);
memory:
    zx_memory_deinit(&p.memory);
io:
    zx_io_deinit(&p.io);
    return out;
}

/* _decode(selection, memory, order, keys, values, options): `values` has the encoded
 * chunk for each key, or None. With the option at_once it returns whether it is done; it
 * does nothing that takes long */
PyObject *zx_array_decode(PyObject *o, PyObject *args)
{
    return passage(o, args, true);
}

/* _encode(selection, memory, order, keys, values, options) -> [(key, Block or None)]:
 * `keys` and `values` are the old chunks; None: erase the chunk */
PyObject *zx_array_encode(PyObject *o, PyObject *args)
{
    return passage(o, args, false);
}
