/* array.c - the type Array: a zarr_array, what it is, and what changes it as a whole.
 * array_io.c reads and writes elements. */
#include "ext.h"

#include <string.h>

/* ---- open and create -------------------------------------------------------- */

int zx_array_class(zx_state *st, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, st->array_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "a class of arrays is needed");
    return -1;
}

/* Asks the package for NumPy's data type. */
static int describe(zx_array *self)
{
    PyObject *told = PyObject_CallFunctionObjArgs(self->st->describe, self, NULL);
    PyObject *dtype;
    unsigned order, how;
    int rc = -1;

    if (told && PyArg_ParseTuple(told, "OII", &dtype, &order, &how)) {
        self->dtype = Py_NewRef(dtype);
        self->order = order;
        self->how = how;
        rc = 0;
    }
    Py_XDECREF(told);
    return rc;
}

PyObject *zx_array_wrap(zx_state *st, PyTypeObject *type, zx_store *store, zarr_array *a)
{
    zx_array *self = zx_alloc(type);

    if (!self) {
        zarr_array_free(a);
        return NULL;
    }
    self->st = st;
    self->a = a;
    self->store = (zx_store *)Py_NewRef((PyObject *)store);
    self->ndim = zarr_array_ndim(a);
    if (describe(self))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void array_dealloc(PyObject *o)
{
    zx_array *self = (zx_array *)o;

    Py_BEGIN_ALLOW_THREADS zarr_array_free(self->a);
    Py_END_ALLOW_THREADS Py_XDECREF((PyObject *)self->store);
    Py_XDECREF(self->dtype);
    zx_free(o);
}

int zx_array_options(PyObject *dict, zarr_array_open_options *out)
{
    uint32_t format = 0;

    if (zx_opt_u32(dict, "zarr_format", &format) ||
        zx_opt_u32(dict, "flags", &out->flags) ||
        zx_opt_u32(dict, "consolidated", &out->consolidated) ||
        zx_opt_u32(dict, "empty_chunks", &out->empty_chunks) ||
        zx_opt_u32(dict, "missing_chunks", &out->missing_chunks) ||
        zx_opt_text(dict, "codec_preference", &out->codec_preference) ||
        zx_opt_text(dict, "pipeline", &out->pipeline))
        return -1;
    out->zarr_format = (int32_t)format;
    return 0;
}

/* open_array(class, store or group, path, options) */
PyObject *zx_open_array(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    zarr_array_open_options o = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    PyObject *type, *from, *options;
    zx_group *group = NULL;
    zarr_array *a = NULL;
    zx_store *store;
    const char *path;
    zarr_error err;
    zarr_status status;

    if (!PyArg_ParseTuple(args, "OOsO", &type, &from, &path, &options) ||
        zx_array_class(st, type) || zx_array_options(options, &o))
        return NULL;
    if (PyObject_TypeCheck(from, st->group_type))
        group = (zx_group *)from;
    store = group ? group->store : zx_store_arg(st, from);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        group ? zarr_group_open_array(&a, group->g, path, &o, &err)
              : zarr_array_open(&a, store->s, path, &o, &err);
    Py_END_ALLOW_THREADS if (zx_check(st, status, &err, NULL))
    {
        zarr_array_free(a);
        return NULL;
    }
    return zx_array_wrap(st, (PyTypeObject *)type, store, a);
}

/* What a new array is to be; the texts are those of the dict. */
struct wish {
    zarr_array_spec spec;
    zarr_array_open_options options;
    uint64_t shape[ZARR_MAX_RANK], chunk[ZARR_MAX_RANK], shard[ZARR_MAX_RANK];
    const char *names[ZARR_MAX_RANK];
    zarr_array *out;
    zarr_store *store;
    const char *path;
};

static int wish_names(PyObject *dict, struct wish *w)
{
    PyObject *names = PyDict_GetItemString(dict, "dimension_names");

    if (!names || names == Py_None)
        return 0;
    if (!PyTuple_Check(names) || PyTuple_Size(names) != w->spec.ndim) {
        PyErr_SetString(PyExc_ValueError,
                        "dimension_names needs one name, or None, for each dimension");
        return -1;
    }
    for (int32_t d = 0; d < w->spec.ndim; d++) {
        PyObject *name = PyTuple_GetItem(names, d);

        if (name != Py_None && !(w->names[d] = PyUnicode_AsUTF8AndSize(name, NULL)))
            return -1;
    }
    w->spec.dimension_names = w->names;
    return 0;
}

static int wish_letter(PyObject *dict, const char *name, char *out)
{
    const char *text = NULL;

    if (zx_opt_text(dict, name, &text))
        return -1;
    if (text && strlen(text) != 1) {
        PyErr_Format(PyExc_ValueError, "%s is one letter, not %s", name, text);
        return -1;
    }
    if (text)
        *out = *text;
    return 0;
}

static int wish_texts(PyObject *dict, zarr_array_spec *s)
{
    return zx_opt_text(dict, "data_type", &s->data_type) ||
                   zx_opt_text(dict, "fill_value", &s->fill_value) ||
                   zx_opt_text(dict, "codecs", &s->codecs) ||
                   zx_opt_text(dict, "index_codecs", &s->index_codecs) ||
                   zx_opt_text(dict, "attributes", &s->attributes) ||
                   zx_opt_text(dict, "key_encoding", &s->key_encoding) ||
                   zx_opt_text(dict, "document", &s->document) ||
                   zx_opt_text(dict, "chunk_grid", &s->chunk_grid)
               ? -1
               : 0;
}

static int wish_like(zx_state *st, PyObject *dict, struct wish *w)
{
    PyObject *like = PyDict_GetItemString(dict, "like");

    if (!like || like == Py_None)
        return 0;
    if (!PyObject_TypeCheck(like, st->array_type)) {
        PyErr_SetString(PyExc_TypeError, "`like` is an array of zarrc");
        return -1;
    }
    w->spec.like = ((zx_array *)like)->a;
    return 0;
}

static int wish_of(zx_state *st, PyObject *dict, struct wish *w)
{
    static const zarr_array_spec no_spec = ZARR_ARRAY_SPEC_INIT;
    static const zarr_array_open_options no_options = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    uint32_t format = 0;
    int32_t ndim = -1;

    memset(w, 0, sizeof *w);
    w->spec = no_spec;
    w->options = no_options;
    if (zx_opt_u32(dict, "flags", &w->spec.flags) ||
        zx_opt_u32(dict, "zarr_format", &format) ||
        zx_opt_shape(dict, "shape", w->shape, &w->spec.shape, &ndim) ||
        zx_opt_shape(dict, "chunk_shape", w->chunk, &w->spec.chunk_shape, &ndim) ||
        zx_opt_shape(dict, "shard_shape", w->shard, &w->spec.shard_shape, &ndim))
        return -1;
    w->spec.zarr_format = (int32_t)format;
    w->spec.ndim = ndim < 0 ? 0 : ndim;
    return wish_texts(dict, &w->spec) || wish_names(dict, w) ||
                   wish_letter(dict, "separator", &w->spec.separator) ||
                   wish_letter(dict, "order", &w->spec.order) || wish_like(st, dict, w)
               ? -1
               : 0;
}

static zarr_status create_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct wish *w = arg;

    (void)cancel;
    return zarr_array_create(&w->out, w->store, w->path, &w->spec, &w->options, err);
}

/* create_array(class, store, path, spec, options) */
PyObject *zx_create_array(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *type, *store, *spec, *options;
    struct wish w;
    const char *path;

    if (!PyArg_ParseTuple(args, "OO!sO!O", &type, st->store_type, &store, &path,
                          &PyDict_Type, &spec, &options) ||
        zx_writable((zx_store *)store) || zx_array_class(st, type) ||
        wish_of(st, spec, &w) || zx_array_options(options, &w.options))
        return NULL;
    w.store = ((zx_store *)store)->s;
    w.path = path;
    w.options.zarr_format = 0;
    if (zx_call(st, create_work, &w, NULL)) {
        zarr_array_free(w.out);
        return NULL;
    }
    return zx_array_wrap(st, (PyTypeObject *)type, (zx_store *)store, w.out);
}

/* _with(options): the same array with other options */
static PyObject *array_with(PyObject *o, PyObject *options)
{
    zx_array *self = (zx_array *)o;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_array *a;
    zarr_error err;

    if (zx_array_options(options, &opts))
        return NULL;
    if (zarr_array_with(&a, self->a, &opts, &err))
        return zx_fail(self->st, &err, self->a);
    return zx_array_wrap(self->st, Py_TYPE(o), self->store, a);
}

/* ---- changes ---------------------------------------------------------------- */

struct change {
    zarr_array *a;
    const char *name, *json;
    int replace_all, changed;
    uint64_t shape[ZARR_MAX_RANK], n, bytes;
    uint32_t what;
    struct zx_rows rows;
};

static zarr_status attribute_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    (void)cancel;
    if (!c->name)
        return zarr_array_attributes_merge(c->a, c->json, c->replace_all, err);
    if (!c->json)
        return zarr_array_attribute_delete(c->a, c->name, err);
    return zarr_array_attribute_set(c->a, c->name, c->json, err);
}

/* _attribute(name, json, replace_all): name None: merge an object; json None: delete */
static PyObject *array_attribute(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    if (zx_writable(self->store) ||
        !PyArg_ParseTuple(args, "zz|p", &c.name, &c.json, &c.replace_all))
        return NULL;
    if (zx_call(self->st, attribute_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}

static zarr_status resize_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_shape_options o = ZARR_SHAPE_OPTIONS_INIT;
    struct change *c = arg;

    o.cancel = cancel;
    return zarr_array_resize(c->a, c->shape, &o, err);
}

/* _resize(shape) */
static PyObject *array_resize(PyObject *o, PyObject *shape)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    const int32_t n = zx_lengths(shape, c.shape);

    if (n < 0 || zx_writable(self->store))
        return NULL;
    if (n != self->ndim) {
        PyErr_Format(PyExc_ValueError, "%d lengths for %d dimensions", (int)n,
                     (int)self->ndim);
        return NULL;
    }
    if (zx_call(self->st, resize_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}

static zarr_status refresh_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    (void)cancel;
    return zarr_array_refresh(c->a, &c->changed, err);
}

/* refresh() -> whether the metadata differs */
static PyObject *array_refresh(PyObject *o, PyObject *unused)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    (void)unused;
    if (zx_call(self->st, refresh_work, &c, self->a))
        return NULL;
    return PyBool_FromLong(c.changed);
}

/* ---- what is stored --------------------------------------------------------- */

static zarr_status stored_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct change *c = arg;

    o.cancel = cancel;
    return zarr_array_stored(c->a, &c->n, c->what ? &c->bytes : NULL, &o, err);
}

/* _stored(with_bytes) -> (objects, bytes) */
static PyObject *array_stored(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    int with_bytes;

    if (!PyArg_ParseTuple(args, "p", &with_bytes))
        return NULL;
    c.what = (uint32_t)with_bytes;
    if (zx_call(self->st, stored_work, &c, self->a))
        return NULL;
    return Py_BuildValue("(KK)", (unsigned long long)c.n, (unsigned long long)c.bytes);
}

static int chunk_row(void *user, const zarr_chunk_info *chunk)
{
    uint64_t numbers[ZARR_MAX_RANK + 2] = {chunk->offset, chunk->bytes};
    const uint32_t n = (uint32_t)chunk->ndim;

    memcpy(numbers + 2, chunk->chunk, n * sizeof *numbers);
    return zx_rows_add(user, n + 2, numbers, 1, &chunk->key);
}

static zarr_status chunks_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct change *c = arg;

    o.cancel = cancel;
    return zarr_array_chunk_list(c->a, c->what, chunk_row, &c->rows, &o, err);
}

/* _chunks(inner) -> [(key, offset, bytes, place...)] */
static PyObject *array_chunks(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    int inner;

    if (!PyArg_ParseTuple(args, "p", &inner))
        return NULL;
    c.what = inner ? ZARR_CHUNKS_INNER : ZARR_CHUNKS_OBJECTS;
    if (zx_call(self->st, chunks_work, &c, self->a)) {
        zx_rows_free(&c.rows);
        return NULL;
    }
    return zx_rows_list(&c.rows);
}

/* ---- selections of it ------------------------------------------------------- */

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
static PyObject *array_select(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    zarr_selection *sel = NULL;
    zarr_error err;
    zarr_status status = ZARR_OK;
    PyObject *tuple;
    struct dims d;
    int is_blocks;

    if (!PyArg_ParseTuple(args, "Op", &tuple, &is_blocks))
        return NULL;
    if (dims_init(&d, self, tuple) == 0)
        status = is_blocks
                     ? zarr_array_select_blocks(self->a, &sel, (int32_t)d.n, d.dim, &err)
                     : zarr_selection_dims(&sel, self->ndim, zarr_array_shape(self->a),
                                           (int32_t)d.n, d.dim, &err);
    dims_deinit(&d);
    if (PyErr_Occurred())
        return NULL;
    return status ? zx_fail_index(self->st, &err) : zx_selection_wrap(self->st, sel);
}

/* _select_points(int64 coordinates, point after point, shape of the result) */
static PyObject *array_select_points(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    uint64_t shape[ZARR_MAX_RANK], n = 1;
    zarr_selection *sel = NULL;
    PyObject *coords, *result;
    zarr_error err;
    zarr_status status;
    Py_buffer view;
    int32_t ndim;

    if (!PyArg_ParseTuple(args, "OO", &coords, &result) ||
        (ndim = zx_lengths(result, shape)) < 0 ||
        PyObject_GetBuffer(coords, &view, PyBUF_ND))
        return NULL;
    for (int32_t d = 0; d < ndim; d++)
        n *= shape[d];
    if (view.itemsize != 8 ||
        (uint64_t)view.len / 8 != n * (uint64_t)(self->ndim ? self->ndim : 0)) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "coordinates do not fit the result");
        return NULL;
    }
    status = zarr_selection_points(&sel, self->ndim, zarr_array_shape(self->a), n,
                                   view.buf, ndim, shape, &err);
    PyBuffer_Release(&view);
    return status ? zx_fail_index(self->st, &err) : zx_selection_wrap(self->st, sel);
}

/* _select_mask(bool array of the array's shape, in C order) */
static PyObject *array_select_mask(PyObject *o, PyObject *mask)
{
    zx_array *self = (zx_array *)o;
    const uint64_t *shape = zarr_array_shape(self->a);
    zarr_selection *sel = NULL;
    zarr_error err;
    zarr_status status;
    Py_buffer view;
    bool fits;

    if (PyObject_GetBuffer(mask, &view, PyBUF_ND))
        return NULL;
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

/* ---- what it is ------------------------------------------------------------- */

enum {
    SHAPE,
    SHAPE_CHUNK,
    SHAPE_WRITE
};

static PyObject *array_shape(PyObject *o, void *which)
{
    zx_array *self = (zx_array *)o;
    const uint64_t *shape =
        (intptr_t)which == SHAPE_CHUNK   ? zarr_array_chunk_shape(self->a)
        : (intptr_t)which == SHAPE_WRITE ? zarr_array_write_shape(self->a)
                                         : zarr_array_shape(self->a);

    if (!shape)
        Py_RETURN_NONE;
    return zx_shape(self->ndim, shape);
}

static PyObject *array_grid(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    uint64_t counts[ZARR_MAX_RANK];

    (void)unused;
    zarr_array_chunk_counts(self->a, counts);
    return zx_shape(self->ndim, counts);
}

enum {
    TEXT_PATH,
    TEXT_METADATA,
    TEXT_ATTRIBUTES,
    TEXT_CODECS,
    TEXT_GRID
};

static PyObject *array_text(PyObject *o, void *which)
{
    const zarr_array *a = ((zx_array *)o)->a;

    switch ((intptr_t)which) {
    case TEXT_PATH:
        return zx_text(zarr_array_path(a));
    case TEXT_METADATA:
        return zx_text(zarr_array_metadata(a));
    case TEXT_ATTRIBUTES:
        return zx_text(zarr_array_attributes(a));
    case TEXT_CODECS:
        return zx_text(zarr_array_codecs(a));
    default:
        return zx_text(zarr_array_chunk_grid(a));
    }
}

static PyObject *array_number(PyObject *o, void *is_format)
{
    zx_array *self = (zx_array *)o;

    return PyLong_FromLong(is_format ? zarr_array_zarr_format(self->a) : self->ndim);
}

static PyObject *array_names(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    PyObject *tuple = PyTuple_New(self->ndim);

    (void)unused;
    for (int32_t d = 0; tuple && d < self->ndim; d++) {
        PyObject *name = zx_text(zarr_array_dimension_name(self->a, d));

        if (!name || PyTuple_SetItem(tuple, d, name))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* The bytes of the fill value, the text or bytes of one of variable length; None: null.
 */
static PyObject *array_fill(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    const zarr_dtype *dtype = zarr_array_dtype(self->a);
    const char *fill = zarr_array_fill_value(self->a);
    const zarr_vlen *v = (const zarr_vlen *)(const void *)fill;

    (void)unused;
    if (!fill)
        Py_RETURN_NONE;
    if (!zarr_dtype_variable(dtype))
        return PyBytes_FromStringAndSize(fill, (Py_ssize_t)zarr_dtype_item_bytes(dtype));
    return PyBytes_FromStringAndSize(v->data, (Py_ssize_t)v->bytes);
}

static PyObject *array_fill_json(PyObject *o, void *unused)
{
    zx_array *self = (zx_array *)o;
    const void *fill = zarr_array_fill_value(self->a);

    (void)unused;
    if (!fill)
        Py_RETURN_NONE;
    return zx_element_json(self->st, zarr_array_dtype(self->a), fill);
}

static PyObject *array_facts(PyObject *o, void *unused)
{
    (void)unused;
    return zx_dtype_facts(zarr_array_dtype(((zx_array *)o)->a));
}

/* The type of the elements of lists; None: elements are no lists. */
static PyObject *array_item_facts(PyObject *o, void *unused)
{
    const zarr_dtype *item = zarr_dtype_item(zarr_array_dtype(((zx_array *)o)->a));

    (void)unused;
    if (!item)
        Py_RETURN_NONE;
    return zx_dtype_facts(item);
}

static PyObject *array_how(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((zx_array *)o)->how);
}

static PyObject *array_object(PyObject *o, void *is_store)
{
    zx_array *self = (zx_array *)o;

    return Py_NewRef(is_store ? (PyObject *)self->store : self->dtype);
}

static PyMethodDef array_methods[] = {
    {"_read", zx_array_read, METH_VARARGS, NULL},
    {"_write", zx_array_write, METH_VARARGS, NULL},
    {"_append", zx_array_append, METH_VARARGS, NULL},
    {"_read_many", zx_array_read_many, METH_VARARGS, NULL},
    {"_submit", zx_array_submit, METH_VARARGS, NULL},
    {"_vlen", zx_array_vlen, METH_VARARGS, NULL},
    {"_tensor", zx_array_tensor, METH_O, NULL},
    {"_places", zx_array_places, METH_O, NULL},
    {"_decode", zx_array_decode, METH_VARARGS, NULL},
    {"_encode", zx_array_encode, METH_VARARGS, NULL},
    {"_arrow", zx_array_arrow, METH_VARARGS, NULL},
    {"_with", array_with, METH_O, NULL},
    {"_attribute", array_attribute, METH_VARARGS, NULL},
    {"_resize", array_resize, METH_O, NULL},
    {"refresh", array_refresh, METH_NOARGS,
     "refresh() -> bool\n\nReads the metadata again; tells whether it has changed."},
    {"_stored", array_stored, METH_VARARGS, NULL},
    {"_chunks", array_chunks, METH_VARARGS, NULL},
    {"_select", array_select, METH_VARARGS, NULL},
    {"_select_points", array_select_points, METH_VARARGS, NULL},
    {"_select_mask", array_select_mask, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static PyObject *array_is_fortran(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_array *)o)->is_fortran);
}

static int array_set_fortran(PyObject *o, PyObject *value, void *unused)
{
    const int wanted = value ? PyObject_IsTrue(value) : 0;

    (void)unused;
    if (wanted < 0)
        return -1;
    ((zx_array *)o)->is_fortran = wanted != 0;
    return 0;
}

static PyGetSetDef array_getset[] = {
    {"_is_fortran", array_is_fortran, array_set_fortran, NULL, NULL},
    {"shape", array_shape, NULL, "The lengths of the dimensions.", (void *)SHAPE},
    {"_chunk_shape", array_shape, NULL, NULL, (void *)SHAPE_CHUNK},
    {"_write_shape", array_shape, NULL, NULL, (void *)SHAPE_WRITE},
    {"_grid_shape", array_grid, NULL, NULL, NULL},
    {"path", array_text, NULL, "The path in the store.", (void *)TEXT_PATH},
    {"_metadata_text", array_text, NULL, NULL, (void *)TEXT_METADATA},
    {"_attributes_text", array_text, NULL, NULL, (void *)TEXT_ATTRIBUTES},
    {"_codecs_text", array_text, NULL, NULL, (void *)TEXT_CODECS},
    {"_grid_text", array_text, NULL, NULL, (void *)TEXT_GRID},
    {"ndim", array_number, NULL, "The number of dimensions.", NULL},
    {"zarr_format", array_number, NULL, "2 or 3.", (void *)1},
    {"dimension_names", array_names, NULL, "A name, or None, for each dimension.", NULL},
    {"_fill_bytes", array_fill, NULL, NULL, NULL},
    {"_fill_json", array_fill_json, NULL, NULL, NULL},
    {"_facts", array_facts, NULL, NULL, NULL},
    {"_item_facts", array_item_facts, NULL, NULL, NULL},
    {"_how", array_how, NULL, NULL, NULL},
    {"dtype", array_object, NULL, "NumPy's data type.", NULL},
    {"store", array_object, NULL, "The store.", (void *)1},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot array_slots[] = {{Py_tp_dealloc, array_dealloc},
                                    {Py_tp_methods, array_methods},
                                    {Py_tp_getset, array_getset},
                                    {Py_mp_subscript, zx_array_getitem},
                                    {Py_mp_ass_subscript, zx_array_setitem},
                                    {0, NULL}};
PyType_Spec zx_array_spec = {"zarrc._core.Array", sizeof(zx_array), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             array_slots};
