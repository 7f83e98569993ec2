/* group.c - the type Group: a zarr_group, its attributes and its members. */
#include "ext.h"

static PyObject *group_wrap(zx_state *st, PyTypeObject *type, zx_store *store,
                            zarr_group *g)
{
    zx_group *self = zx_alloc(type);

    if (!self) {
        zarr_group_free(g);
        return NULL;
    }
    self->st = st;
    self->g = g;
    self->store = (zx_store *)Py_NewRef((PyObject *)store);
    return (PyObject *)self;
}

static void group_dealloc(PyObject *o)
{
    zx_group *self = (zx_group *)o;

    Py_BEGIN_ALLOW_THREADS zarr_group_free(self->g);
    Py_END_ALLOW_THREADS Py_XDECREF((PyObject *)self->store);
    zx_free(o);
}

static int group_class(zx_state *st, PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, st->group_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "a class of groups is needed");
    return -1;
}

static int group_options(PyObject *dict, zarr_group_open_options *out)
{
    uint32_t format = 0;

    if (zx_opt_u32(dict, "zarr_format", &format) ||
        zx_opt_u32(dict, "consolidated", &out->consolidated) ||
        zx_opt_text(dict, "consolidated_key", &out->consolidated_key))
        return -1;
    out->zarr_format = (int32_t)format;
    return 0;
}

struct opening {
    zarr_store *store;
    zarr_group *parent; /* NULL: the path begins at the root of the store */
    const char *path;
    zarr_array_open_options array_options;
    zarr_group_open_options options;
    zarr_array *array;
    zarr_group *out;
};

static zarr_status open_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct opening *w = arg;

    w->options.cancel = cancel;
    return w->parent
               ? zarr_group_open_group(&w->out, w->parent, w->path, &w->options, err)
               : zarr_group_open(&w->out, w->store, w->path, &w->options, err);
}

static zarr_status open_node_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct opening *w = arg;

    w->options.cancel = w->array_options.cancel = cancel;
    return w->parent ? zarr_group_open_node(&w->array, &w->out, w->parent, w->path,
                                            &w->array_options, &w->options, err)
                     : zarr_node_open(&w->array, &w->out, w->store, w->path,
                                      &w->array_options, &w->options, err);
}

/* Does the work for a store or a group. NULL: an exception. */
static zx_store *open_from(zx_state *st, PyObject *from, zx_work work, struct opening *w)
{
    zx_group *parent = PyObject_TypeCheck(from, st->group_type) ? (zx_group *)from : NULL;
    zx_store *store = parent ? parent->store : zx_store_arg(st, from);

    if (!store)
        return NULL;
    w->store = store->s;
    w->parent = parent ? parent->g : NULL;
    if (zx_call_store(store, work, w) == ZARR_OK)
        return store;
    zarr_array_free(w->array);
    zarr_group_free(w->out);
    return NULL;
}

/* open_group(class, store or group, path, options) */
PyObject *zx_open_group(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct opening w = {.options = ZARR_GROUP_OPEN_OPTIONS_INIT};
    PyObject *type, *from, *options;
    zx_store *store;

    if (!PyArg_ParseTuple(args, "OOsO", &type, &from, &w.path, &options) ||
        group_class(st, type) || group_options(options, &w.options))
        return NULL;
    store = open_from(st, from, open_work, &w);
    return store ? group_wrap(st, (PyTypeObject *)type, store, w.out) : NULL;
}

/* open_node(class of arrays, class of groups, store or group, path, options) */
PyObject *zx_open_node(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct opening w = {.array_options = ZARR_ARRAY_OPEN_OPTIONS_INIT,
                        .options = ZARR_GROUP_OPEN_OPTIONS_INIT};
    PyObject *arrays, *groups, *from, *options;
    zx_store *store;

    if (!PyArg_ParseTuple(args, "OOOsO", &arrays, &groups, &from, &w.path, &options) ||
        zx_array_class(st, arrays) || group_class(st, groups) ||
        zx_array_options(options, &w.array_options) || group_options(options, &w.options))
        return NULL;
    store = open_from(st, from, open_node_work, &w);
    if (!store)
        return NULL;
    return w.array ? zx_array_wrap(st, (PyTypeObject *)arrays, store, w.array)
                   : group_wrap(st, (PyTypeObject *)groups, store, w.out);
}

struct making {
    zarr_group *g;
    zarr_store *s;
    const char *path;
    zarr_group_spec spec;
};

static zarr_status make_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct making *m = arg;

    m->spec.cancel = cancel;
    return zarr_group_create(&m->g, m->s, m->path, &m->spec, NULL, err);
}

/* create_group(class, store, path, format, attributes, flags) */
PyObject *zx_create_group(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct making m = {.spec = ZARR_GROUP_SPEC_INIT};
    unsigned flags;
    int format;
    PyObject *type, *store;

    if (!PyArg_ParseTuple(args, "OO!sizI", &type, st->store_type, &store, &m.path,
                          &format, &m.spec.attributes, &flags) ||
        zx_writable((zx_store *)store) || group_class(st, type))
        return NULL;
    m.s = ((zx_store *)store)->s;
    m.spec.zarr_format = format;
    m.spec.flags = flags;
    if (zx_call(st, make_work, &m, NULL)) {
        zarr_group_free(m.g);
        return NULL;
    }
    return group_wrap(st, (PyTypeObject *)type, (zx_store *)store, m.g);
}

struct release {
    zarr_group *g;
    int is_complete;
};

static zarr_status group_release_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    const struct release *r = arg;

    return zarr_group_release_claim(r->g, r->is_complete, cancel, err);
}

/* _release_claim(is_complete): lets others replace a group that was created with a claim
 */
static PyObject *group_release_claim(PyObject *o, PyObject *args)
{
    zx_group *self = (zx_group *)o;
    struct release r = {.g = self->g};

    if (!PyArg_ParseTuple(args, "p", &r.is_complete) ||
        zx_call(self->st, group_release_work, &r, NULL))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- attributes ------------------------------------------------------------- */

struct attribute {
    zarr_group *g;
    const char *name, *json;
    int replace_all;
};

static zarr_status attribute_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct attribute *a = arg;

    if (!a->name)
        return zarr_group_attributes_merge(a->g, a->json, a->replace_all, cancel, err);
    if (!a->json)
        return zarr_group_attribute_delete(a->g, a->name, cancel, err);
    return zarr_group_attribute_set(a->g, a->name, a->json, cancel, err);
}

/* _attribute(name, json, replace_all): name None: merge an object; json None: delete */
static PyObject *group_attribute(PyObject *o, PyObject *args)
{
    zx_group *self = (zx_group *)o;
    struct attribute a = {.g = self->g};

    if (zx_writable(self->store) ||
        !PyArg_ParseTuple(args, "zz|p", &a.name, &a.json, &a.replace_all))
        return NULL;
    if (zx_call(self->st, attribute_work, &a, NULL))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- members ---------------------------------------------------------------- */

struct listing {
    zarr_group *g;
    unsigned max_depth; /* 0: no bound; 1: direct children */
    struct zx_rows rows;
};

static int node_row(void *user, const zarr_node_item *node)
{
    struct listing *l = user;
    const uint64_t numbers[] = {node->kind, (uint64_t)node->zarr_format,
                                (uint64_t)node->depth};
    const char *texts[] = {node->path, node->name, node->metadata};

    if (zx_rows_add(&l->rows, 3, numbers, 3, texts))
        return ZARR_WALK_STOP;
    return l->max_depth && (unsigned)node->depth >= l->max_depth ? ZARR_WALK_SKIP
                                                                 : ZARR_WALK_GO_ON;
}

static int child_row(void *user, const zarr_node_item *node)
{
    return node_row(user, node) == ZARR_WALK_STOP ? ZARR_WALK_STOP : ZARR_WALK_GO_ON;
}

static zarr_status walk_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_list_options o = ZARR_LIST_OPTIONS_INIT;
    struct listing *l = arg;

    o.cancel = cancel;
    if (l->max_depth == 1)
        return zarr_group_list(l->g, child_row, l, &o, err);
    return zarr_group_walk(l->g, node_row, l, &o, err);
}

/* _members(max_depth) -> [(path, name, metadata, kind, format, depth)] */
static PyObject *group_members(PyObject *o, PyObject *args)
{
    zx_group *self = (zx_group *)o;
    struct listing l = {.g = self->g};

    if (!PyArg_ParseTuple(args, "I", &l.max_depth))
        return NULL;
    if (zx_call(self->st, walk_work, &l, NULL)) {
        zx_rows_free(&l.rows);
        return NULL;
    }
    return zx_rows_list(&l.rows);
}

/* ---- the type --------------------------------------------------------------- */

enum {
    TEXT_PATH,
    TEXT_METADATA,
    TEXT_ATTRIBUTES
};

static PyObject *group_text(PyObject *o, void *which)
{
    const zarr_group *g = ((zx_group *)o)->g;
    const intptr_t what = (intptr_t)which;
    const char *text;

    if (what == TEXT_PATH)
        return zx_text(zarr_group_path(g));
    Py_BEGIN_ALLOW_THREADS text =
        what == TEXT_METADATA ? zarr_group_metadata(g) : zarr_group_attributes(g);
    Py_END_ALLOW_THREADS return zx_text(text);
}

static PyObject *group_format(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromLong(zarr_group_zarr_format(((zx_group *)o)->g));
}

static PyObject *group_is_consolidated(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(zarr_group_is_consolidated(((zx_group *)o)->g));
}

static PyObject *group_store(PyObject *o, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((zx_group *)o)->store);
}

static PyMethodDef group_methods[] = {
    {"_attribute", group_attribute, METH_VARARGS, NULL},
    {"_members", group_members, METH_VARARGS, NULL},
    {"_release_claim", group_release_claim, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef group_getset[] = {
    {"path", group_text, NULL, NULL, (void *)TEXT_PATH},
    {"_metadata_text", group_text, NULL, NULL, (void *)TEXT_METADATA},
    {"_attributes_text", group_text, NULL, NULL, (void *)TEXT_ATTRIBUTES},
    {"zarr_format", group_format, NULL, NULL, NULL},
    {"_is_consolidated", group_is_consolidated, NULL, NULL, NULL},
    {"store", group_store, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot group_slots[] = {{Py_tp_dealloc, group_dealloc},
                                    {Py_tp_methods, group_methods},
                                    {Py_tp_getset, group_getset},
                                    {0, NULL}};
PyType_Spec zx_group_spec = {"zarrc._core.Group", sizeof(zx_group), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             group_slots};
