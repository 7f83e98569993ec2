/* context.c - the type Context: a zarr_context, with what asks its registries. */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_PLUGINS = 64
};

struct wish {
    zarr_context_options o;
    zarr_limits limits; /* zero: defaults */
    const char *plugins[MOST_PLUGINS + 1];
};

static int read_plugins(PyObject *dict, struct wish *w)
{
    PyObject *tuple;
    Py_ssize_t n;

    if (zx_opt(dict, "plugins", &tuple))
        return -1;
    n = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    if (n > MOST_PLUGINS) {
        PyErr_SetString(PyExc_ValueError, "too many plug-ins");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        w->plugins[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (!w->plugins[i])
            return -1;
    }
    w->o.plugins = n ? w->plugins : NULL;
    return 0;
}

static int parse_limits(zarr_limits *limits, const char *text)
{
    zarr_error err;

    if (zarr_limits_parse(limits, text, &err) == ZARR_OK)
        return 0;
    PyErr_Format(PyExc_ValueError, "limits: %s", err.message);
    return -1;
}

/* check_limits(text): raises ValueError unless zarr_limits_parse() takes the text */
PyObject *zx_check_limits(PyObject *module, PyObject *text)
{
    const char *limits = PyUnicode_AsUTF8AndSize(text, NULL);
    zarr_limits unused = ZARR_LIMITS_INIT;

    (void)module;
    if (!limits || parse_limits(&unused, limits))
        return NULL;
    Py_RETURN_NONE;
}

static int read_wish(PyObject *dict, struct wish *w)
{
    static const zarr_context_options none = ZARR_CONTEXT_OPTIONS_INIT;
    const char *limits = NULL;
    uint32_t untrusted = 0;

    memset(w, 0, sizeof *w);
    w->o = none;
    w->o.log = zx_log_put;
    w->limits.struct_size = sizeof w->limits;
    if (zx_opt_u32(dict, "max_threads", &w->o.max_threads) ||
        zx_opt_u64(dict, "memory_bytes", &w->o.memory_bytes) ||
        zx_opt_u64(dict, "wave_bytes", &w->o.wave_bytes) ||
        zx_opt_u32(dict, "log_level", &w->o.log_level) ||
        zx_opt_text(dict, "pipeline", &w->o.pipeline) ||
        zx_opt_text(dict, "codec_preference", &w->o.codec_preference) ||
        zx_opt_text(dict, "plugin_options", &w->o.plugin_options) ||
        zx_opt_text(dict, "allocators", &w->o.allocators) ||
        zx_opt_u32(dict, "trust", &w->o.trust) ||
        zx_opt_u32(dict, "untrusted", &untrusted) ||
        zx_opt_text(dict, "limits", &limits) || read_plugins(dict, w))
        return -1;
    if (untrusted)
        zarr_limits_untrusted(&w->limits);
    w->o.limits = &w->limits;
    return limits ? parse_limits(&w->limits, limits) : 0;
}

/* new_context(options) -> Context */
static PyObject *context_make(zx_state *st, PyObject *options)
{
    zarr_context *ctx = NULL;
    zx_context *self;
    PyObject *python;
    struct wish w;
    zarr_error err;
    zarr_status status;

    if (read_wish(options, &w))
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = zarr_context_create(&ctx, &w.o, &err);
    Py_END_ALLOW_THREADS if (zx_check(st, status, &err, NULL) ||
                             zx_opt(options, "python", &python) ||
                             zx_plugs_register(st, ctx, python))
    {
        zarr_context_free(ctx);
        return NULL;
    }
    self = zx_alloc(st->context_type);
    if (!self) {
        zarr_context_free(ctx);
        return NULL;
    }
    self->st = st;
    self->ctx = ctx;
    return (PyObject *)self;
}

PyObject *zx_new_context(PyObject *module, PyObject *options)
{
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options are a dict");
        return NULL;
    }
    return context_make(PyModule_GetState(module), options);
}

static void context_dealloc(PyObject *o)
{
    zarr_context *ctx = ((zx_context *)o)->ctx;

    Py_BEGIN_ALLOW_THREADS zarr_context_free(ctx);
    Py_END_ALLOW_THREADS zx_free(o);
}

static PyObject *context_trim(PyObject *o, PyObject *unused)
{
    zarr_context *ctx = ((zx_context *)o)->ctx;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS zarr_context_trim(ctx);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

/* ---- registries ------------------------------------------------------------- */

static int one_row(void *user, const zarr_registry_item *item)
{
    PyObject *row = Py_BuildValue(
        "{sIsssssssssssIsi}", "registry", (unsigned)item->registry, "name", item->name,
        "origin", item->origin, "detail", item->detail, "v3", item->v3, "v2", item->v2,
        "flags", (unsigned)item->flags, "device_type", (int)item->device_type);
    const int rc = !row || PyList_Append(user, row);

    Py_XDECREF(row);
    return rc;
}

/* registry(number=0) -> list of dicts */
static PyObject *context_registry(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    unsigned registry = 0;
    PyObject *list;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "|I", &registry) || !(list = PyList_New(0)))
        return NULL;
    /* It reads tables and calls back on this thread, so the GIL stays. */
    if (zarr_context_list(self->ctx, registry, one_row, list, &err)) {
        Py_DECREF(list);
        return zx_fail(self->st, &err, NULL);
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

/* ---- data types ------------------------------------------------------------- */

/* facts(name) -> (NumPy's name, v2 name, v3 JSON, kind, bytes of an element) */
static PyObject *context_facts(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    const zarr_dtype *dtype;
    const char *name;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    if (zarr_dtype_find(&dtype, self->ctx, name, &err))
        return zx_fail(self->st, &err, NULL);
    return zx_dtype_facts(dtype);
}

PyObject *zx_dtype_facts(const zarr_dtype *dtype)
{
    return Py_BuildValue("(zzzIK)", zarr_dtype_numpy(dtype), zarr_dtype_v2(dtype),
                         zarr_dtype_v3(dtype), (unsigned)zarr_dtype_kind(dtype),
                         (unsigned long long)zarr_dtype_item_bytes(dtype));
}

/* details(name) -> what the getters of a data type tell, and the byte order in its name
 */
static PyObject *context_details(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    const zarr_dtype *dtype;
    uint32_t byte_order;
    const char *name;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    if (zarr_dtype_find_order(&dtype, self->ctx, name, &byte_order, &err)) {
        byte_order = UINT32_MAX; /* the fields of a struct have different ones */
        if (zarr_dtype_find(&dtype, self->ctx, name, &err))
            return zx_fail(self->st, &err, NULL);
    }
    return Py_BuildValue(
        "{sNszszszszsIsKsIsKsIsOszsz}", "facts", zx_dtype_facts(dtype), "name",
        zarr_dtype_name(dtype), "v3_name", zarr_dtype_v3_name(dtype), "configuration",
        zarr_dtype_v3_configuration(dtype), "codec", zarr_dtype_codec(dtype),
        "byte_order", (unsigned)byte_order, "item_bits",
        (unsigned long long)zarr_dtype_item_bits(dtype), "components",
        (unsigned)zarr_dtype_components(dtype), "component_bits",
        (unsigned long long)zarr_dtype_component_bits(dtype), "swap_bytes",
        (unsigned)zarr_dtype_swap_bytes(dtype), "is_experimental",
        zarr_dtype_experimental(dtype) ? Py_True : Py_False, "item",
        zarr_dtype_name(zarr_dtype_item(dtype)), "underlying",
        zarr_dtype_name(zarr_dtype_underlying(dtype)));
}

PyObject *zx_element_json(zx_state *st, const zarr_dtype *dtype, const void *element)
{
    char small[256], *text = small;
    size_t n = 0;
    zarr_error err;
    zarr_status status;
    PyObject *out = NULL;

    /* A data type of Python answers on another thread. */
    Py_BEGIN_ALLOW_THREADS status =
        zarr_dtype_print(dtype, element, small, sizeof small, &n, &err);
    Py_END_ALLOW_THREADS if (status) return zx_fail(st, &err, NULL);
    if (n >= sizeof small) {
        text = PyMem_Malloc(n + 1);
        if (!text)
            return PyErr_NoMemory();
        Py_BEGIN_ALLOW_THREADS status =
            zarr_dtype_print(dtype, element, text, n + 1, &n, &err);
        Py_END_ALLOW_THREADS if (status) zx_fail(st, &err, NULL);
    }
    if (!PyErr_Occurred())
        out = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "surrogatepass");
    if (text != small)
        PyMem_Free(text);
    return out;
}

/* element_json(name, bytes) -> how metadata spell an element of fixed size */
static PyObject *context_element_json(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    const zarr_dtype *dtype;
    const char *name;
    Py_buffer view;
    zarr_error err;
    PyObject *out = NULL;

    if (!PyArg_ParseTuple(args, "sy*", &name, &view))
        return NULL;
    if (zarr_dtype_find(&dtype, self->ctx, name, &err))
        zx_fail(self->st, &err, NULL);
    else if (zarr_dtype_variable(dtype) ||
             zarr_dtype_item_bytes(dtype) != (uint64_t)view.len)
        PyErr_Format(PyExc_ValueError, "%zd bytes are no element of %s", view.len, name);
    else
        out = zx_element_json(self->st, dtype, view.buf);
    PyBuffer_Release(&view);
    return out;
}

/* element(name, JSON text) -> the bytes of an element of fixed size */
static PyObject *context_element(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    const zarr_dtype *dtype;
    const char *name, *json;
    zarr_error err;
    zarr_status status;
    PyObject *out;
    void *element;

    if (!PyArg_ParseTuple(args, "ss", &name, &json))
        return NULL;
    if (zarr_dtype_find(&dtype, self->ctx, name, &err))
        return zx_fail(self->st, &err, NULL);
    if (zarr_dtype_variable(dtype))
        return PyErr_Format(PyExc_ValueError, "elements of %s have no fixed size", name);
    element = PyMem_Calloc(1, (size_t)zarr_dtype_item_bytes(dtype) + 1);
    if (!element)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS status = zarr_dtype_parse(dtype, json, element, &err);
    Py_END_ALLOW_THREADS out =
        status ? zx_fail(self->st, &err, NULL)
               : PyBytes_FromStringAndSize(element,
                                           (Py_ssize_t)zarr_dtype_item_bytes(dtype));
    PyMem_Free(element);
    return out;
}

static PyMethodDef context_methods[] = {
    {"trim", context_trim, METH_NOARGS, NULL},
    {"registry", context_registry, METH_VARARGS, NULL},
    {"facts", context_facts, METH_VARARGS, NULL},
    {"details", context_details, METH_VARARGS, NULL},
    {"element_json", context_element_json, METH_VARARGS, NULL},
    {"element", context_element, METH_VARARGS, NULL},
    {"_empty", zx_context_empty, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot context_slots[] = {
    {Py_tp_dealloc, context_dealloc}, {Py_tp_methods, context_methods}, {0, NULL}};
PyType_Spec zx_context_spec = {"zarrc._core.Context", sizeof(zx_context), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               context_slots};
