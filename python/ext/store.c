/* store.c - the type Store: a zarr_store, its keys, and what is done with nodes by their
 * path. */
#include "ext.h"

#include <zarrc/plugin/store.h>

#include <string.h>

enum {
    MOST_TRIES = 64 /* of a read whose value others replace */
};

zx_store *zx_store_arg(zx_state *st, PyObject *object)
{
    if (PyObject_TypeCheck(object, st->store_type))
        return (zx_store *)object;
    PyErr_Format(PyExc_TypeError, "a zarrc.Store is needed, not %R", object);
    return NULL;
}

PyObject *zx_store_wrap(zx_state *st, PyTypeObject *type, zx_context *context,
                        zarr_store *s)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zx_store *self = zx_alloc(type);

    if (!self) {
        zarr_store_free(s);
        return NULL;
    }
    zarr_store_capabilities(s, &caps);
    self->st = st;
    self->s = s;
    self->context = (zx_context *)Py_NewRef((PyObject *)context);
    self->is_fast = (caps.flags & ZARR_STORE_CAP_FAST_GET) != 0;
    self->is_read_only = (caps.flags & ZARR_STORE_CAP_WRITE) == 0;
    return (PyObject *)self;
}

/* _view(read_only) -> the same store; a view that is read-only refuses writes itself */
static PyObject *store_view(PyObject *o, PyObject *is_read_only)
{
    zx_store *self = (zx_store *)o;
    const int wanted = PyObject_IsTrue(is_read_only);
    PyObject *view;

    if (wanted < 0)
        return NULL;
    view = zx_store_wrap(self->st, Py_TYPE(o), self->context, zarr_store_ref(self->s));
    if (view && wanted)
        ((zx_store *)view)->is_read_only = true;
    if (view)
        ((zx_store *)view)->flushes_each = self->flushes_each;
    return view;
}

int zx_writable(const zx_store *store)
{
    zarr_error err = ZARR_ERROR_INIT;

    if (!store->is_read_only)
        return 0;
    err.code = ZARR_ERR_INVALID;
    PyOS_snprintf(err.message, sizeof err.message, "the store is read-only");
    zx_fail_store(store->st, &err, store->s);
    return -1;
}

int zx_store_class(zx_state *st, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, st->store_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "a class of stores is needed");
    return -1;
}

static int store_options(PyObject *dict, zarr_store_options *out)
{
    return zx_opt_u32(dict, "flags", &out->flags) ||
                   zx_opt_u32(dict, "durability", &out->durability) ||
                   zx_opt_u32(dict, "locks", &out->locks) ||
                   zx_opt_u32(dict, "symlinks", &out->symlinks) ||
                   zx_opt_u32(dict, "lock_wait_ms", &out->lock_wait_ms) ||
                   zx_opt_text(dict, "kind", &out->kind) ||
                   zx_opt_text(dict, "config", &out->config)
               ? -1
               : 0;
}

struct opening {
    zarr_context *ctx;
    const char *url;
    zarr_store_options options;
    zarr_store *out;
};

static zarr_status open_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct opening *w = arg;

    w->options.cancel = cancel;
    return zarr_store_open(&w->out, w->ctx, w->url, &w->options, err);
}

/* A path opens without a thread of its own, which only a URL may need. */
static int open_url(zx_state *st, struct opening *w)
{
    zarr_error err;
    zarr_status status;

    if (strstr(w->url, "://"))
        return zx_call(st, open_work, w, NULL) ? -1 : 0;
    Py_BEGIN_ALLOW_THREADS status = open_work(w, NULL, &err);
    Py_END_ALLOW_THREADS return zx_check(st, status, &err, NULL);
}

/* open_store(class, context, url, options): a path whose bytes are no UTF-8 has them as
 * os.fsdecode() gives them */
PyObject *zx_open_store(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct opening w = {.options = ZARR_STORE_OPTIONS_INIT};
    PyObject *type, *context, *url, *options;
    int failed;

    if (!PyArg_ParseTuple(args, "OO!O&O", &type, st->context_type, &context,
                          PyUnicode_FSConverter, &url, &options))
        return NULL;
    w.ctx = ((zx_context *)context)->ctx;
    w.url = PyBytes_AsString(url);
    failed = !w.url || zx_store_class(st, type) || store_options(options, &w.options) ||
             open_url(st, &w);
    Py_DECREF(url);
    if (failed) {
        zarr_store_free(w.out);
        return NULL;
    }
    return zx_store_wrap(st, (PyTypeObject *)type, (zx_context *)context, w.out);
}

/* open_composite(class, metadata, chunks, flags) */
PyObject *zx_open_composite(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    PyObject *type, *metadata, *chunks;
    zarr_store *s;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "OO!O!I", &type, st->store_type, &metadata,
                          st->store_type, &chunks, &o.flags) ||
        zx_store_class(st, type))
        return NULL;
    if (zarr_store_open_composite(&s, ((zx_store *)metadata)->s, ((zx_store *)chunks)->s,
                                  &o, &err))
        return zx_fail(st, &err, NULL);
    return zx_store_wrap(st, (PyTypeObject *)type, ((zx_store *)metadata)->context, s);
}

static void store_dealloc(PyObject *o)
{
    zx_store *self = (zx_store *)o;

    Py_BEGIN_ALLOW_THREADS zarr_store_free(self->s);
    Py_END_ALLOW_THREADS Py_XDECREF((PyObject *)self->context);
    zx_free(o);
}

/* ---- keys ------------------------------------------------------------------- */

/* What a GET wants. An offset of ZARR_STORE_SUFFIX means the last `length` bytes. */
struct range {
    zarr_store *s;
    const char *key;
    uint64_t offset, length;
    char *data; /* room for n bytes */
    uint64_t n;
    zarr_store_value value;
    bool is_missing;
};

/* How many bytes the range of a value of `bytes` bytes has. */
static uint64_t bytes_of_range(const struct range *r, uint64_t bytes)
{
    const uint64_t begin = r->offset == ZARR_STORE_SUFFIX ? 0 : r->offset;
    const uint64_t rest = begin < bytes ? bytes - begin : 0;

    return r->length < rest ? r->length : rest;
}

static zarr_status stat_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct range *r = arg;
    const zarr_status status = zarr_store_stat(r->s, r->key, &r->value, cancel, err);

    r->is_missing = status == ZARR_ERR_NOT_FOUND;
    return r->is_missing ? ZARR_OK : status;
}

/* Not zarr_store_read(), which asks for the bytes of its memory, even if they are all. */
static zarr_status read_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct range *r = arg;
    zarr_store_op op = {
        .verb = ZARR_STORE_GET,
        .key = r->key,
        .offset = r->offset,
        .length = r->length,
        .mem = {.device_type = ZARR_DEVICE_CPU, .handle = r->data, .bytes = r->n},
        .cancel = cancel};
    const zarr_status status = zarr_store_run(r->s, &op, err);

    r->value.bytes = op.object_bytes;
    r->value.done_bytes = op.done_bytes;
    return status;
}

/* Reads the range of a value that had `bytes` bytes a moment ago. If a longer value has
 * replaced it, *bytes becomes its length, and the result is NULL without an exception. */
static PyObject *get_sized(zx_store *self, struct range *r, uint64_t *bytes)
{
    PyObject *out;

    r->n = bytes_of_range(r, *bytes);
    out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)r->n);
    if (!out || r->n == 0) /* a moment ago there was nothing in the range */
        return out;
    r->data = PyBytes_AsString(out);
    if (zx_call_store(self, read_work, r)) {
        Py_CLEAR(out);
    } else if (r->value.bytes != UINT64_MAX && bytes_of_range(r, r->value.bytes) > r->n) {
        *bytes = r->value.bytes;
        Py_CLEAR(out);
    } else if (r->value.done_bytes < r->n) {
        /* it was replaced by a shorter value meanwhile */
        PyObject *part =
            PyBytes_FromStringAndSize(r->data, (Py_ssize_t)r->value.done_bytes);

        Py_DECREF(out);
        out = part;
    }
    return out;
}

/* get(key, offset=0, length=None) -> bytes; None: there is no such key. The largest
 * offset means the last `length` bytes */
static PyObject *store_get(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    unsigned long long offset = 0, limit = UINT64_MAX;
    struct range r = {.s = self->s, .value = ZARR_STORE_VALUE_INIT};
    zarr_error err = ZARR_ERROR_INIT;
    PyObject *out = NULL;
    uint64_t bytes;

    if (!PyArg_ParseTuple(args, "s|KK", &r.key, &offset, &limit))
        return NULL;
    r.offset = offset;
    r.length = limit;
    if (zx_call_store(self, stat_work, &r))
        return NULL;
    if (r.is_missing)
        Py_RETURN_NONE;
    bytes = r.value.bytes;
    for (int i = 0; i < MOST_TRIES && !out && !PyErr_Occurred(); i++)
        out = get_sized(self, &r, &bytes);
    if (out || PyErr_Occurred())
        return out;
    err.code = ZARR_ERR_CONFLICT;
    PyOS_snprintf(err.message, sizeof err.message,
                  "%.200s: the value grew each time that it was read", r.key);
    return zx_fail_store(self->st, &err, self->s);
}

struct putting {
    zarr_store *s;
    const char *key;
    Py_buffer view;
    int is_new;
};

static zarr_status put_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    const struct putting *p = arg;
    const uint64_t n = (uint64_t)p->view.len;

    return p->is_new ? zarr_store_put_new(p->s, p->key, p->view.buf, n, cancel, err)
                     : zarr_store_put(p->s, p->key, p->view.buf, n, cancel, err);
}

/* put(key, data, is_new=False) */
static PyObject *store_put(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct putting p = {.s = self->s};
    zarr_status status;

    if (zx_writable(self) || !PyArg_ParseTuple(args, "sy*|p", &p.key, &p.view, &p.is_new))
        return NULL;
    status = zx_call_store(self, put_work, &p);
    PyBuffer_Release(&p.view);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

/* stat(key) -> length; None: there is no such key */
static PyObject *store_stat(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct range r = {.s = self->s, .value = ZARR_STORE_VALUE_INIT};

    if (!PyArg_ParseTuple(args, "s", &r.key) || zx_call_store(self, stat_work, &r))
        return NULL;
    if (r.is_missing)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(r.value.bytes);
}

/* ---- calls that take long --------------------------------------------------- */

struct errand {
    zarr_store *s, *other;
    const char *path, *other_path, *key;
    uint32_t how, flags;
    uint64_t n;
    struct zx_rows rows;
};

static PyObject *errand_run(zx_store *self, zx_work work, struct errand *e)
{
    if (zx_call(self->st, work, e, NULL))
        return NULL;
    Py_RETURN_NONE;
}

static zarr_status erase_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct errand *e = arg;

    return e->how ? zarr_store_erase_prefix(e->s, e->path, cancel, err)
                  : zarr_store_erase(e->s, e->path, cancel, err);
}

/* erase(key, is_prefix=False) */
static PyObject *store_erase(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};
    int is_prefix = 0;

    if (zx_writable(self) || !PyArg_ParseTuple(args, "s|p", &e.path, &is_prefix))
        return NULL;
    e.how = (uint32_t)is_prefix;
    return errand_run(self, erase_work, &e);
}

static int key_row(void *user, const zarr_store_item *item)
{
    const uint64_t numbers[] = {item->bytes, item->is_prefix};

    return zx_rows_add(user, 2, numbers, 1, &item->key);
}

static zarr_status list_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct errand *e = arg;

    return zarr_store_list(e->s, e->path, e->how, key_row, &e->rows, cancel, err);
}

/* list(prefix, how) -> [(key, bytes, is_prefix)] */
static PyObject *store_list(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};

    if (!PyArg_ParseTuple(args, "s|I", &e.path, &e.how))
        return NULL;
    if (zx_call(self->st, list_work, &e, NULL)) {
        zx_rows_free(&e.rows);
        return NULL;
    }
    return zx_rows_list(&e.rows);
}

static zarr_status flush_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    return zarr_store_flush(((struct errand *)arg)->s, cancel, err);
}

static PyObject *store_flush(PyObject *o, PyObject *unused)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};

    (void)unused;
    return errand_run(self, flush_work, &e);
}

/* _flush_each(): from now on each write of an array ends with a flush */
static PyObject *store_flush_each(PyObject *o, PyObject *unused)
{
    (void)unused;
    ((zx_store *)o)->flushes_each = true;
    Py_RETURN_NONE;
}

/* ---- nodes ------------------------------------------------------------------ */

struct probing {
    zarr_store *s;
    const char *path;
    uint32_t kind;
    int32_t format;
};

static zarr_status probe_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct probing *p = arg;

    return zarr_node_probe(p->s, p->path, &p->kind, &p->format, cancel, err);
}

/* probe(path) -> (kind, format) */
static PyObject *store_probe(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct probing p = {.s = self->s};

    if (!PyArg_ParseTuple(args, "s", &p.path) || zx_call_store(self, probe_work, &p))
        return NULL;
    return Py_BuildValue("(Ii)", (unsigned)p.kind, (int)p.format);
}

/* other_format(path) -> str or None */
static PyObject *store_other_format(PyObject *o, PyObject *args)
{
    const char *path, *text;

    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    Py_BEGIN_ALLOW_THREADS text = zarr_node_other_format(((zx_store *)o)->s, path);
    Py_END_ALLOW_THREADS return Py_BuildValue("z", text);
}

static zarr_status delete_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_delete_options o = ZARR_DELETE_OPTIONS_INIT;
    struct errand *e = arg;

    o.flags = e->flags;
    o.cancel = cancel;
    return zarr_node_delete_watched(e->s, e->path, &o, err);
}

/* node_delete(path, flags) */
static PyObject *store_node_delete(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};

    if (zx_writable(self) || !PyArg_ParseTuple(args, "sI", &e.path, &e.flags))
        return NULL;
    return errand_run(self, delete_work, &e);
}

static zarr_status copy_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;
    struct errand *e = arg;

    o.flags = e->flags;
    o.cancel = cancel;
    return e->how ? zarr_node_move(e->s, e->path, e->other, e->other_path, &o, err)
                  : zarr_node_copy(e->s, e->path, e->other, e->other_path, &o, err);
}

/* node_copy(path, other, other_path, is_move, flags) */
static PyObject *store_node_copy(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};
    PyObject *other;
    int is_move;

    if (!PyArg_ParseTuple(args, "sO!spI", &e.path, self->st->store_type, &other,
                          &e.other_path, &is_move, &e.flags) ||
        zx_writable((zx_store *)other) || (is_move && zx_writable(self)))
        return NULL;
    e.other = ((zx_store *)other)->s;
    e.how = (uint32_t)is_move;
    return errand_run(self, copy_work, &e);
}

static zarr_status consolidate_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_group_open_options how = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;
    struct errand *e = arg;
    zarr_group *g;
    zarr_status status;

    how.consolidated = ZARR_CONSOLIDATED_NEVER;
    how.cancel = cancel;
    o.key = e->key;
    o.cancel = cancel;
    status = zarr_group_open(&g, e->s, e->path, &how, err);
    if (status == ZARR_OK)
        status = zarr_group_consolidate(g, &o, err);
    zarr_group_free(g);
    return status;
}

static zarr_status update_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_consolidate_options o = ZARR_CONSOLIDATE_OPTIONS_INIT;
    struct errand *e = arg;

    o.flags = e->flags;
    o.cancel = cancel;
    return zarr_group_consolidated_update(e->s, e->path, NULL, &o, err);
}

/* consolidated_update(path, flags) */
static PyObject *store_consolidated_update(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};

    if (zx_writable(self) || !PyArg_ParseTuple(args, "sI", &e.path, &e.flags))
        return NULL;
    return errand_run(self, update_work, &e);
}

/* consolidate(path, key=None) */
static PyObject *store_consolidate(PyObject *o, PyObject *args)
{
    zx_store *self = (zx_store *)o;
    struct errand e = {.s = self->s};

    if (zx_writable(self) || !PyArg_ParseTuple(args, "s|z", &e.path, &e.key))
        return NULL;
    return errand_run(self, consolidate_work, &e);
}

/* locate(context, text) -> (url, path, shown) of a node: the root of its hierarchy, which
 * messages show as `shown` */
PyObject *zx_locate(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *context, *text, *out = NULL;
    zarr_location *at = NULL;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "O!O&", st->context_type, &context, PyUnicode_FSConverter,
                          &text))
        return NULL;
    if (!zx_check(st,
                  zarr_location_parse(&at, ((zx_context *)context)->ctx,
                                      PyBytes_AsString(text), &err),
                  &err, NULL))
        out = Py_BuildValue("(NNN)", PyUnicode_DecodeFSDefault(at->url),
                            PyUnicode_DecodeFSDefault(at->path),
                            PyUnicode_DecodeFSDefault(at->shown));
    zarr_location_free(at);
    Py_DECREF(text);
    return out;
}

/* ---- the type --------------------------------------------------------------- */

static PyObject *store_url(PyObject *o, void *unused)
{
    const char *url = zarr_store_url(((zx_store *)o)->s);

    (void)unused;
    return PyUnicode_DecodeFSDefault(url);
}

static PyObject *store_caps(PyObject *o, void *unused)
{
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;

    (void)unused;
    zarr_store_capabilities(((zx_store *)o)->s, &caps);
    return Py_BuildValue("(zI)", caps.kind, (unsigned)caps.flags);
}

static PyObject *store_context(PyObject *o, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((zx_store *)o)->context);
}

static PyObject *store_is_read_only(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_store *)o)->is_read_only);
}

/* The same number for all views of a store. */
static PyObject *store_identity(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((zx_store *)o)->s);
}

static void note_place(void *user, const zarr_store_place *place)
{
    PyObject **out = user;

    if (place->scheme && strcmp(place->scheme, "file") == 0 && place->prefix)
        *out = PyUnicode_DecodeFSDefault(place->prefix);
}

/* Where the directory is now that an open store holds. None: it was deleted, or is none.
 */
static PyObject *store_directory(PyObject *o, void *unused)
{
    PyObject *out = NULL;

    (void)unused;
    zarr_store_tell_place(((zx_store *)o)->s, note_place, &out);
    if (!out && !PyErr_Occurred())
        Py_RETURN_NONE;
    return out;
}

static PyMethodDef store_methods[] = {
    {"_view", store_view, METH_O, NULL},
    {"_get", store_get, METH_VARARGS, NULL},
    {"_put", store_put, METH_VARARGS, NULL},
    {"_stat", store_stat, METH_VARARGS, NULL},
    {"_erase", store_erase, METH_VARARGS, NULL},
    {"_list", store_list, METH_VARARGS, NULL},
    {"_flush", store_flush, METH_NOARGS, NULL},
    {"_flush_each", store_flush_each, METH_NOARGS, NULL},
    {"_probe", store_probe, METH_VARARGS, NULL},
    {"_other_format", store_other_format, METH_VARARGS, NULL},
    {"_node_delete", store_node_delete, METH_VARARGS, NULL},
    {"_node_copy", store_node_copy, METH_VARARGS, NULL},
    {"_consolidate", store_consolidate, METH_VARARGS, NULL},
    {"_consolidated_update", store_consolidated_update, METH_VARARGS, NULL},
    {"_lock", zx_store_lock, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef store_getset[] = {{"url", store_url, NULL, NULL, NULL},
                                     {"_read_only", store_is_read_only, NULL, NULL, NULL},
                                     {"_identity", store_identity, NULL, NULL, NULL},
                                     {"_directory", store_directory, NULL, NULL, NULL},
                                     {"_caps", store_caps, NULL, NULL, NULL},
                                     {"_context", store_context, NULL, NULL, NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot store_slots[] = {{Py_tp_dealloc, store_dealloc},
                                    {Py_tp_methods, store_methods},
                                    {Py_tp_getset, store_getset},
                                    {0, NULL}};
PyType_Spec zx_store_spec = {"zarrc._core.Store", sizeof(zx_store), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             store_slots};
