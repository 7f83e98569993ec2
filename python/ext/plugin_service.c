/* plugin_service.c - the half of codecs, data types and stores of Python that one thread
 * of Python calls, and the list of what was registered. A PluginCall is one letter; its
 * question is copied into objects before Python sees it. A call that is dropped without
 * an answer fails, so that an exception cannot leave a thread of the library waiting. */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tables of functions get no pointer of ours, so these two belong to the process. */
static _Atomic(struct zx_plug *) plugs;
static _Atomic(struct zx_box *) the_box;

typedef struct {
    PyObject_HEAD zx_state *st;
    struct zx_box *box;
    struct zx_letter *l;
    uint32_t what;
} plugin_call;

/* ---- on threads of the library ---------------------------------------------- */

zarr_status zx_ask(struct zx_ask *q, zarr_error *err)
{
    return zx_box_ask(atomic_load(&the_box), ZX_PLUGIN, q, err);
}

const struct zx_plug *zx_plug_find(uint32_t registry, const char *name)
{
    const struct zx_plug *p = atomic_load(&plugs);

    while (p && (p->registry != registry || strcmp(p->name, name) != 0))
        p = p->next;
    return p;
}

void zx_ask_text(struct zx_ask *q, char *text, size_t cap, size_t *text_bytes)
{
    const size_t n = q->out ? (size_t)q->out_bytes : 0;

    *text_bytes = n;
    if (cap > 0) {
        const size_t fits = n < cap ? n : cap - 1;

        if (fits > 0)
            memcpy(text, q->out, fits);
        text[fits] = 0;
    }
    free(q->out);
    q->out = NULL;
}

zarr_status zx_plug_fail(zarr_error *err, zarr_status status, const char *name,
                         const char *text)
{
    static const zarr_error none = ZARR_ERROR_INIT;

    if (err) {
        *err = none;
        err->code = status;
        snprintf(err->message, sizeof err->message, "%.200s: %s", name, text);
    }
    return status;
}

/* ---- what was registered ---------------------------------------------------- */

/* The plug-in of (registry, number, name, kind, flags, is_lossy, item_bytes, swap_bytes,
 * item_bits, v2 name or None); NULL: an exception. */
static const struct zx_plug *make_plug(PyObject *tuple)
{
    struct zx_plug made = {0}, *p;
    unsigned long long number, item_bytes;
    const char *name, *v2;
    size_t name_bytes, v2_bytes;
    int is_lossy;

    if (!PyArg_ParseTuple(tuple, "IKsIIpKIIz", &made.registry, &number, &name, &made.kind,
                          &made.flags, &is_lossy, &item_bytes, &made.swap_bytes,
                          &made.item_bits, &v2))
        return NULL;
    p = (struct zx_plug *)(uintptr_t)zx_plug_find(made.registry, name);
    if (p && p->number == number)
        return p;
    if (p) {
        PyErr_Format(PyExc_ValueError, "%s is registered already", name);
        return NULL;
    }
    made.number = number;
    made.is_lossy = is_lossy;
    made.item_bytes = item_bytes;
    name_bytes = strlen(name) + 1;
    v2_bytes = v2 ? strlen(v2) + 1 : 0;
    p = malloc(sizeof *p + name_bytes + v2_bytes);
    if (!p) {
        PyErr_NoMemory();
        return NULL;
    }
    *p = made;
    p->name = (char *)(p + 1);
    p->v2 = v2 ? p->name + name_bytes : NULL;
    memcpy(p->name, name, name_bytes);
    if (v2)
        memcpy(p->v2, v2, v2_bytes);
    p->next = atomic_load(&plugs);
    while (!atomic_compare_exchange_weak(&plugs, &p->next, p))
        ;
    return p;
}

static zarr_status register_one(zarr_context *ctx, const struct zx_plug *p,
                                zarr_error *err)
{
    switch (p->registry) {
    case ZARR_REGISTRY_CODEC:
        return zx_codec_register(ctx, p, err);
    case ZARR_REGISTRY_DTYPE:
        return zx_dtype_register(ctx, p, err);
    default:
        return zx_scheme_register(ctx, p, err);
    }
}

int zx_plugs_register(zx_state *st, zarr_context *ctx, PyObject *tuple)
{
    const Py_ssize_t n = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;

    for (Py_ssize_t i = 0; i < n; i++) {
        const struct zx_plug *p = make_plug(PyTuple_GetItem(tuple, i));
        zarr_error err;
        zarr_status status;

        if (!p)
            return -1;
        Py_BEGIN_ALLOW_THREADS status = register_one(ctx, p, &err);
        Py_END_ALLOW_THREADS if (zx_check(st, status, &err, NULL)) return -1;
    }
    return 0;
}

/* ---- PluginService ---------------------------------------------------------- */

/* (shape or None, facts of the data type or None, bytes, whether that is exact, fill
 * value or None) */
static PyObject *chunk_object(const zarr_chunk_spec *c)
{
    PyObject *shape, *facts, *fill;

    if (!c)
        return Py_NewRef(Py_None);
    shape = c->dtype ? zx_shape(c->ndim, c->shape) : Py_NewRef(Py_None);
    facts = c->dtype ? zx_dtype_facts(c->dtype) : Py_NewRef(Py_None);
    fill = c->dtype && c->fill ? PyBytes_FromStringAndSize(
                                     c->fill, (Py_ssize_t)zarr_dtype_item_bytes(c->dtype))
                               : Py_NewRef(Py_None);
    return Py_BuildValue("(NNKIN)", shape, facts, (unsigned long long)c->n_bytes,
                         (unsigned)c->exact, fill);
}

static PyObject *inputs_object(const struct zx_ask *q)
{
    PyObject *list = PyList_New((Py_ssize_t)q->n);

    for (uint64_t i = 0; list && i < q->n; i++) {
        const zarr_memory *src = &q->jobs[i].src;
        PyObject *bytes = PyBytes_FromStringAndSize(
            src->bytes ? (const char *)src->handle + src->offset : "",
            (Py_ssize_t)src->bytes);

        if (!bytes || PyList_SetItem(list, (Py_ssize_t)i, bytes))
            Py_CLEAR(list);
    }
    return list;
}

/* The question of a letter as (call, what, number, ...). */
static PyObject *question(plugin_call *call)
{
    const struct zx_ask *q = call->l->arg;
    const unsigned long long number = q->number;

    switch (q->what) {
    case ZX_ASK_CANONICAL:
    case ZX_ASK_FILL_PARSE:
        return Py_BuildValue("(OIKsi)", call, q->what, number, q->json, (int)q->format);
    case ZX_ASK_FILL_PRINT:
        /* no format with '#': built with the headers of 3.13 it fails on 3.11 and 3.12 */
        return Py_BuildValue("(OIKNi)", call, q->what, number,
                             PyBytes_FromStringAndSize((const char *)q->element,
                                                       (Py_ssize_t)q->item_bytes),
                             (int)q->format);
    case ZX_ASK_RESOLVE:
        return Py_BuildValue("(OIKsN)", call, q->what, number, q->json,
                             chunk_object(q->decoded));
    case ZX_ASK_OPEN:
        return Py_BuildValue("(OIKszi)", call, q->what, number, q->json, q->more,
                             (int)q->format);
    default:
        return Py_BuildValue("(OIKsNNN)", call, q->what, number, q->json,
                             chunk_object(q->decoded), chunk_object(q->encoded),
                             inputs_object(q));
    }
}

/* Letters as questions. One that finds no memory fails at once. */
static PyObject *list_questions(zx_service *self, struct zx_letter *l)
{
    PyObject *list = PyList_New(0);

    while (l) {
        struct zx_letter *next = l->next;
        plugin_call *call = list ? zx_alloc(self->st->plugin_call_type) : NULL;

        if (call) {
            PyObject *asked;

            call->st = self->st;
            call->box = zx_box_ref(self->box);
            call->l = l;
            call->what = ((struct zx_ask *)l->arg)->what;
            asked = question(call);
            if (!asked || PyList_Append(list, asked))
                PyErr_Clear(); /* the call fails when it is dropped */
            Py_XDECREF(asked);
            Py_DECREF((PyObject *)call);
        } else {
            PyErr_Clear();
            zx_letter_end(self->box, l, "no memory for a call of a plug-in");
        }
        l = next;
    }
    return list;
}

/* new_plugin_service() -> the one of the process */
PyObject *zx_new_plugin_service(PyObject *module, PyObject *unused)
{
    zx_state *st = PyModule_GetState(module);
    struct zx_box *box = atomic_load(&the_box), *none = NULL;

    (void)unused;
    if (!box) {
        box = zx_box_new();
        if (!box)
            return PyErr_SetFromErrno(PyExc_OSError);
        if (!atomic_compare_exchange_strong(&the_box, &none, box)) {
            zx_box_unref(box);
            box = none;
        }
    }
    return zx_service_new(st, st->plugin_service_type, zx_box_ref(box), list_questions);
}

/* ---- PluginCall ------------------------------------------------------------- */

static void call_dealloc(PyObject *o)
{
    plugin_call *self = (plugin_call *)o;

    zx_letter_end(self->box, self->l, "the plug-in ended without an answer");
    zx_box_unref(self->box);
    zx_free(o);
}

/* fail(status, text): ends the question with an error */
static PyObject *call_fail(PyObject *o, PyObject *args)
{
    plugin_call *self = (plugin_call *)o;
    const char *text;
    int status;

    if (!PyArg_ParseTuple(args, "is", &status, &text))
        return NULL;
    if (zx_claim(self->box, self->l, 0))
        zx_answer_call(self->l, status, 0, text, NULL);
    Py_RETURN_NONE;
}

/* answer(bytes): answers with a text, or with an element */
static PyObject *call_answer(PyObject *o, PyObject *args)
{
    plugin_call *self = (plugin_call *)o;
    Py_buffer view;
    char *copy;

    if (!PyArg_ParseTuple(args, "y*", &view))
        return NULL;
    copy = malloc((size_t)view.len + 1);
    if (copy && zx_claim(self->box, self->l, 0)) {
        struct zx_ask *q = self->l->arg;

        memcpy(copy, view.buf, (size_t)view.len);
        copy[view.len] = 0;
        q->out = copy;
        q->out_bytes = (uint64_t)view.len;
        zx_answer_call(self->l, ZARR_OK, 0, NULL, NULL);
    } else {
        free(copy);
    }
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

/* resolved(shape or None, dtype or None, bytes, is_exact, fill or None): what a codec
 * gives */
static PyObject *call_answer_resolve(PyObject *o, PyObject *args)
{
    plugin_call *self = (plugin_call *)o;
    uint64_t lengths[ZARR_MAX_RANK];
    PyObject *shape, *fill;
    const char *dtype;
    unsigned long long n_bytes;
    int is_exact, ndim = 0;
    char *copy = NULL;
    Py_ssize_t n_fill = 0;

    if (!PyArg_ParseTuple(args, "OzKpO", &shape, &dtype, &n_bytes, &is_exact, &fill) ||
        (shape != Py_None && (ndim = zx_lengths(shape, lengths)) < 0))
        return NULL;
    if (dtype && strlen(dtype) >= ZX_NAME_BYTES) {
        PyErr_SetString(PyExc_ValueError, "the name of the data type is too long");
        return NULL;
    }
    if (fill != Py_None) {
        char *bytes;

        if (PyBytes_AsStringAndSize(fill, &bytes, &n_fill))
            return NULL;
        copy = malloc((size_t)n_fill + 1);
        if (!copy)
            return PyErr_NoMemory();
        memcpy(copy, bytes, (size_t)n_fill);
    }
    if (!zx_claim(self->box, self->l, 0)) {
        free(copy);
        Py_RETURN_NONE;
    }
    {
        struct zx_ask *q = self->l->arg;

        if (shape != Py_None) {
            q->chunk->ndim = ndim;
            memcpy(q->chunk->shape, lengths, (size_t)ndim * sizeof *lengths);
        } else {
            q->chunk->dtype = NULL;
            q->chunk->n_bytes = n_bytes;
            q->chunk->exact = (uint32_t)is_exact;
        }
        if (dtype)
            memcpy(q->dtype, dtype, strlen(dtype) + 1);
        q->out = copy;
        q->out_bytes = (uint64_t)n_fill;
        zx_answer_call(self->l, ZARR_OK, 0, NULL, NULL);
    }
    Py_RETURN_NONE;
}

/* opened(service, number, caps, parallel): a store, whose operations go to a Service */
static PyObject *call_answer_open(PyObject *o, PyObject *args)
{
    plugin_call *self = (plugin_call *)o;
    unsigned long long number;
    unsigned caps, parallel;
    PyObject *service;
    struct zx_box *box;

    if (!PyArg_ParseTuple(args, "OKII", &service, &number, &caps, &parallel) ||
        !(box = zx_service_box(self->st, service)))
        return NULL;
    if (zx_claim(self->box, self->l, 0)) {
        const struct zx_ask *q = self->l->arg;

        *q->store = (struct zx_foreign_spec){
            .box = zx_box_ref(box), .number = number, .caps = caps, .parallel = parallel};
        zx_answer_call(self->l, ZARR_OK, 0, NULL, NULL);
    }
    Py_RETURN_NONE;
}

/* ---- answers to encode and decode ------------------------------------------- */

/* One job: bytes, or (status, text). -1: an exception; `*text` is borrowed. */
static int job_answer(zarr_codec_job *job, PyObject *answer, bool is_decode,
                      const char **text)
{
    Py_buffer view;
    int status;

    if (PyTuple_Check(answer)) {
        if (!PyArg_ParseTuple(answer, "is", &status, text))
            return -1;
        job->status = status;
        return 0;
    }
    if (PyObject_GetBuffer(answer, &view, PyBUF_C_CONTIGUOUS))
        return -1;
    job->status = ZARR_OK;
    if ((uint64_t)view.len > job->dst.bytes) {
        *text = is_decode ? "decoding gives more bytes than the chunk has"
                          : "encoding gives more bytes than the codec promises";
        job->status = ZARR_ERR_CORRUPT;
        job->flags |= ZARR_CODEC_JOB_NO_ROOM;
    } else if (view.len > 0) {
        memcpy((char *)job->dst.handle + job->dst.offset, view.buf, (size_t)view.len);
    }
    job->dst_used = job->status ? 0 : (uint64_t)view.len;
    PyBuffer_Release(&view);
    return 0;
}

/* chunks(list of bytes or (status, text)): answers all jobs of a call */
static PyObject *call_chunks(PyObject *o, PyObject *list)
{
    plugin_call *self = (plugin_call *)o;
    const Py_ssize_t n = PyList_Size(list);
    const char *first_text = NULL;
    zarr_status first = ZARR_OK;
    struct zx_ask *q;

    if (n < 0 || !zx_claim(self->box, self->l, 0)) {
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    q = self->l->arg;
    for (uint64_t i = 0; i < q->n && !PyErr_Occurred(); i++) {
        const char *text = NULL;
        zarr_codec_job *job = &q->jobs[i];

        if ((uint64_t)n != q->n)
            PyErr_SetString(PyExc_ValueError, "one result for each chunk is needed");
        else if (job_answer(job, PyList_GetItem(list, (Py_ssize_t)i),
                            self->what == ZX_ASK_DECODE, &text) == 0 &&
                 job->status && !first) {
            first = job->status;
            first_text = text;
        }
    }
    if (PyErr_Occurred()) {
        for (uint64_t i = 0; i < q->n; i++)
            q->jobs[i].status = ZARR_ERR_INTERNAL;
        zx_answer_call(self->l, ZARR_ERR_INTERNAL, 0,
                       "a codec of Python gave something other than bytes", NULL);
        return NULL;
    }
    zx_answer_call(self->l, first, 0, first_text, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef call_methods[] = {
    {"fail", call_fail, METH_VARARGS, NULL},
    {"answer", call_answer, METH_VARARGS, NULL},
    {"answer_resolve", call_answer_resolve, METH_VARARGS, NULL},
    {"answer_open", call_answer_open, METH_VARARGS, NULL},
    {"chunks", call_chunks, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot call_slots[] = {
    {Py_tp_dealloc, call_dealloc}, {Py_tp_methods, call_methods}, {0, NULL}};
PyType_Spec zx_plugin_call_spec = {"zarrc._core.PluginCall", sizeof(plugin_call), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   call_slots};
