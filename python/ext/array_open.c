/* array_open.c - arrays that are opened and created: options and specifications of Python
 * for the library, and its handles as objects. */
#include "ext.h"

#include <string.h>

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
    self->tuning.struct_size = sizeof self->tuning;
    if (describe(self))
        Py_CLEAR(self);
    return (PyObject *)self;
}

int zx_array_options(PyObject *dict, zarr_array_open_options *out)
{
    uint32_t format = 0;

    if (zx_opt_u32(dict, "zarr_format", &format) ||
        zx_opt_u32(dict, "flags", &out->flags) ||
        zx_opt_u32(dict, "consolidated", &out->consolidated) ||
        zx_opt_u32(dict, "empty_chunks", &out->empty_chunks) ||
        zx_opt_u32(dict, "missing_chunks", &out->missing_chunks) ||
        zx_opt_u32(dict, "trust", &out->trust) ||
        zx_opt_text(dict, "codec_preference", &out->codec_preference) ||
        zx_opt_text(dict, "pipeline", &out->pipeline))
        return -1;
    out->zarr_format = (int32_t)format;
    return 0;
}

struct opening {
    zarr_store *store;
    zarr_group *group; /* NULL: the path begins at the root of the store */
    const char *path;
    zarr_array_open_options options;
    zarr_array *out;
};

static zarr_status open_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct opening *w = arg;

    w->options.cancel = cancel;
    return w->group ? zarr_group_open_array(&w->out, w->group, w->path, &w->options, err)
                    : zarr_array_open(&w->out, w->store, w->path, &w->options, err);
}

/* open_array(class, store or group, path, options) */
PyObject *zx_open_array(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct opening w = {.options = ZARR_ARRAY_OPEN_OPTIONS_INIT};
    PyObject *type, *from, *options;
    zx_group *group = NULL;
    zx_store *store;

    if (!PyArg_ParseTuple(args, "OOsO", &type, &from, &w.path, &options) ||
        zx_array_class(st, type) || zx_array_options(options, &w.options))
        return NULL;
    if (PyObject_TypeCheck(from, st->group_type))
        group = (zx_group *)from;
    store = group ? group->store : zx_store_arg(st, from);
    if (!store)
        return NULL;
    w.store = store->s;
    w.group = group ? group->g : NULL;
    if (zx_call_store(store, open_work, &w)) {
        zarr_array_free(w.out);
        return NULL;
    }
    return zx_array_wrap(st, (PyTypeObject *)type, store, w.out);
}

/* What a new array is to be; the texts are those of the dict. */
struct wish {
    zarr_array_spec spec;
    zarr_array_open_options options;
    uint64_t shape[ZARR_MAX_RANK], chunk[ZARR_MAX_RANK], shard[ZARR_MAX_RANK];
    const char *names[ZARR_MAX_RANK];
    zarr_array *out;
    zarr_store *store;
    const char *path, *device; /* device: text of the default memory, or NULL */
};

static int wish_names(PyObject *dict, struct wish *w)
{
    PyObject *names;

    if (zx_opt(dict, "dimension_names", &names))
        return -1;
    if (!names)
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
    PyObject *like;

    if (zx_opt(dict, "like", &like))
        return -1;
    if (!like)
        return 0;
    if (!PyObject_TypeCheck(like, st->array_type)) {
        PyErr_SetString(PyExc_TypeError, "`like` is an array of zarrc");
        return -1;
    }
    w->spec.like = ((zx_array *)like)->a;
    return 0;
}

static int read_wish(zx_state *st, PyObject *dict, struct wish *w)
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
    zarr_status status = ZARR_OK;

    w->spec.cancel = cancel;
    if (w->device)
        status = zarr_memory_parse(zarr_store_context(w->store), w->device,
                                   &w->options.device_type, &w->options.device_id, err);
    /* UNSUPPORTED: the kind is known, and reads say what the device lacks */
    if (status && status != ZARR_ERR_UNSUPPORTED)
        return status;
    return zarr_array_create(&w->out, w->store, w->path, &w->spec, &w->options, err);
}

/* create_array(class, store, path, spec, options); options has "device", too */
PyObject *zx_create_array(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *type, *store, *spec, *options;
    struct wish w;
    const char *path;

    if (!PyArg_ParseTuple(args, "OO!sO!O", &type, st->store_type, &store, &path,
                          &PyDict_Type, &spec, &options) ||
        zx_writable((zx_store *)store) || zx_array_class(st, type) ||
        read_wish(st, spec, &w) || zx_array_options(options, &w.options) ||
        zx_opt_text(options, "device", &w.device))
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
PyObject *zx_array_with(PyObject *o, PyObject *options)
{
    zx_array *self = (zx_array *)o;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_array *a;
    zarr_error err;
    zarr_status status;

    if (zx_array_options(options, &opts))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = zarr_array_with(&a, self->a, &opts, &err);
    Py_END_ALLOW_THREADS if (status) return zx_fail(self->st, &err, self->a);
    return zx_array_wrap(self->st, Py_TYPE(o), self->store, a);
}
