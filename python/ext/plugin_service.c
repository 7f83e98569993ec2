/* plugin_service.c - the half of codecs, data types and stores of Python that one thread
 * of Python calls, and the list of what was registered. A PluginCall is one letter; its
 * question is copied into objects before Python sees it. A call that is dropped without
 * an answer fails, so that an exception cannot leave a thread of the library waiting. */
#include "plugin.h"

#include <limits.h>
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
    struct zx_lease *lease; /* of memory that Python was given; NULL: of none */
    atomic_bool is_busy;    /* the next implementation runs */
} plugin_call;

/* An implementation of Python runs the next one on the thread of plug-ins. If that one
 * asks, the same thread answers. */
struct turn {
    zx_state *st;
    struct zx_box *box;
    PyObject *take; /* borrowed: (question) */
    PyThreadState *thread;
};
static _Thread_local struct turn *turn;

static PyObject *make_questions(zx_state *st, struct zx_box *box, struct zx_letter *l);

/* ---- on threads of the library ---------------------------------------------- */

/* Without the GIL, which it takes. The question fails if it gets no answer. */
static void ask_here(struct zx_letter *l)
{
    struct turn *t = turn;
    PyObject *list, *done = NULL;

    PyEval_RestoreThread(t->thread);
    list = make_questions(t->st, t->box, l);
    if (list && PyList_Size(list) == 1)
        done = PyObject_CallFunctionObjArgs(t->take, PyList_GetItem(list, 0), NULL);
    Py_XDECREF(done);
    Py_XDECREF(list);
    PyErr_Clear();
    t->thread = PyEval_SaveThread();
}

zarr_status zx_ask(struct zx_ask *q, zarr_error *err)
{
    return zx_box_ask(atomic_load(&the_box), ZX_PLUGIN, q, turn ? ask_here : NULL, err);
}

const struct zx_plug *zx_plug_find(uint32_t registry, const char *name, const char *codec)
{
    const struct zx_plug *p = atomic_load(&plugs);

    while (p && (p->registry != registry || strcmp(p->name, name) != 0 ||
                 atomic_load(&p->is_dropped) || (codec && strcmp(p->other, codec) != 0)))
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
 * item_bits, other name or None, priority); NULL: an exception. */
static struct zx_plug *make_plug(PyObject *tuple, bool *is_new)
{
    struct zx_plug made = {0}, *p;
    unsigned long long number, item_bytes;
    const char *name, *other;
    size_t name_bytes, other_bytes;
    int is_lossy;

    if (!PyArg_ParseTuple(tuple, "IKsIIpKIIzi", &made.registry, &number, &name,
                          &made.kind, &made.flags, &is_lossy, &item_bytes,
                          &made.swap_bytes, &made.item_bits, &other, &made.priority))
        return NULL;
    p = (struct zx_plug *)(uintptr_t)zx_plug_find(
        made.registry, name, made.registry == ZARR_REGISTRY_CODEC_IMPL ? other : NULL);
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
    other_bytes = other ? strlen(other) + 1 : 0;
    p = malloc(sizeof *p + name_bytes + other_bytes);
    if (!p) {
        PyErr_NoMemory();
        return NULL;
    }
    *p = made;
    p->name = (char *)(p + 1);
    p->other = other ? p->name + name_bytes : NULL;
    memcpy(p->name, name, name_bytes);
    if (other)
        memcpy(p->other, other, other_bytes);
    p->next = atomic_load(&plugs);
    while (!atomic_compare_exchange_weak(&plugs, &p->next, p))
        ;
    *is_new = true;
    return p;
}

static zarr_status register_one(zarr_context *ctx, const struct zx_plug *p,
                                zarr_error *err)
{
    switch (p->registry) {
    case ZARR_REGISTRY_CODEC:
        return zx_codec_register(ctx, p, err);
    case ZARR_REGISTRY_CODEC_IMPL:
        return zx_impl_register(ctx, p, err);
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
        bool is_new = false;
        struct zx_plug *p = make_plug(PyTuple_GetItem(tuple, i), &is_new);
        zarr_error err;
        zarr_status status;

        if (!p)
            return -1;
        Py_BEGIN_ALLOW_THREADS status = register_one(ctx, p, &err);
        Py_END_ALLOW_THREADS if (status && is_new)
            atomic_store(&p->is_dropped, true); /* another one may have its name */
        if (zx_check(st, status, &err, NULL))
            return -1;
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
    case ZX_ASK_BIND:
        return Py_BuildValue("(OIKsNN)", call, q->what, number, q->json,
                             chunk_object(q->decoded), chunk_object(q->encoded));
    case ZX_ASK_ENCODE_THERE:
    case ZX_ASK_DECODE_THERE:
        return Py_BuildValue("(OIKsNNz)", call, q->what, number, q->json,
                             chunk_object(q->decoded), chunk_object(q->encoded),
                             q->next ? zarr_codec_next_name(q->next) : NULL);
    default:
        return Py_BuildValue("(OIKsNNN)", call, q->what, number, q->json,
                             chunk_object(q->decoded), chunk_object(q->encoded),
                             inputs_object(q));
    }
}

/* Letters as questions. One that finds no memory fails at once. */
static PyObject *make_questions(zx_state *st, struct zx_box *box, struct zx_letter *l)
{
    PyObject *list = PyList_New(0);

    while (l) {
        struct zx_letter *next = l->next;
        plugin_call *call = list ? zx_alloc(st->plugin_call_type) : NULL;

        if (call) {
            PyObject *asked;

            call->st = st;
            call->box = zx_box_ref(box);
            call->l = l;
            call->what = ((struct zx_ask *)l->arg)->what;
            asked = question(call);
            if (!asked || PyList_Append(list, asked))
                PyErr_Clear(); /* the call fails when it is dropped */
            Py_XDECREF(asked);
            Py_DECREF((PyObject *)call);
        } else {
            PyErr_Clear();
            zx_letter_end(box, l, "no memory for a call of a plug-in");
        }
        l = next;
    }
    return list;
}

static PyObject *list_questions(zx_service *self, struct zx_letter *l)
{
    return make_questions(self->st, self->box, l);
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

/* Before the answer: the library has its memory back then. */
static void end_lease(plugin_call *self)
{
    if (self->lease)
        atomic_store(&self->lease->is_over, true);
}

static void call_dealloc(PyObject *o)
{
    plugin_call *self = (plugin_call *)o;

    end_lease(self);
    zx_lease_unref(self->lease);
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
    end_lease(self);
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

/* ---- memory of the chunks ---------------------------------------------------- */

/* memory() -> ([inputs], [outputs]) of an implementation's chunks, until count_kept() */
static PyObject *call_memory(PyObject *o, PyObject *unused)
{
    plugin_call *self = (plugin_call *)o;
    const struct zx_ask *q = self->l->arg;

    (void)unused;
    if (self->lease || atomic_load(&self->l->claimed[0])) {
        PyErr_SetString(PyExc_RuntimeError, "the call is over");
        return NULL;
    }
    self->lease = zx_lease_new();
    return self->lease ? zx_chunk_memories(self->st, self->lease, q->jobs, q->n) : NULL;
}

/* count_kept() -> how many objects and exports of the memory are alive; it exports no
 * more */
static PyObject *call_count_kept(PyObject *o, PyObject *unused)
{
    struct zx_lease *lease = ((plugin_call *)o)->lease;

    (void)unused;
    end_lease((plugin_call *)o);
    if (!lease)
        return PyLong_FromLong(0);
    return PyLong_FromUnsignedLong(atomic_load(&lease->n) - 1);
}

/* Jobs of pairs of memory; NULL: an exception. */
static zarr_codec_job *make_jobs(plugin_call *self, PyObject *inputs, PyObject *outputs,
                                 Py_ssize_t n)
{
    zarr_codec_job *jobs = PyMem_Calloc((size_t)n + 1, sizeof *jobs);

    if (!jobs)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; jobs && i < n; i++) {
        const zarr_memory *src =
            zx_chunk_memory(self->st, self->lease, PyList_GetItem(inputs, i), false);
        const zarr_memory *dst =
            src ? zx_chunk_memory(self->st, self->lease, PyList_GetItem(outputs, i), true)
                : NULL;

        if (!dst) {
            PyMem_Free(jobs);
            return NULL;
        }
        jobs[i].src = *src;
        jobs[i].dst = *dst;
    }
    return jobs;
}

static zarr_status run_next(plugin_call *self, zarr_codec_job *jobs, uint64_t n,
                            PyObject *take, zarr_error *err)
{
    const struct zx_ask *q = self->l->arg;
    struct turn t = {.st = self->st, .box = self->box, .take = take}, *const outer = turn;
    zarr_status status;

    t.thread = PyEval_SaveThread();
    turn = &t;
    status = zarr_codec_next_run(q->next, q->exec, jobs, n, err);
    turn = outer;
    PyEval_RestoreThread(t.thread);
    return status;
}

/* [bytes or (status, text)] of jobs; only the first failure has a text of its own. */
static PyObject *job_results(const zarr_codec_job *jobs, Py_ssize_t n,
                             const zarr_error *err)
{
    const char *text = err->message;
    PyObject *list = PyList_New(n);

    for (Py_ssize_t i = 0; list && i < n; i++) {
        const zarr_codec_job *j = &jobs[i];
        PyObject *one =
            j->status
                ? Py_BuildValue("(is)", (int)j->status, text)
                : PyLong_FromUnsignedLongLong(
                      j->flags & ZARR_CODEC_JOB_NO_ROOM ? j->dst.bytes + 1 : j->dst_used);

        if (j->status)
            text = "it failed, too";
        if (!one || PyList_SetItem(list, i, one))
            Py_CLEAR(list);
    }
    return list;
}

/* next(inputs, outputs, take) -> [bytes or (status, text)]: the next implementation does
 * chunks. take(question) answers what it asks meanwhile */
static PyObject *call_next(PyObject *o, PyObject *args)
{
    plugin_call *self = (plugin_call *)o;
    zarr_error err = ZARR_ERROR_INIT;
    PyObject *inputs, *outputs, *take, *list = NULL;
    zarr_codec_job *jobs;
    Py_ssize_t n;

    if (!PyArg_ParseTuple(args, "OOO", &inputs, &outputs, &take) ||
        (n = PyList_Size(inputs)) < 0 || PyList_Size(outputs) < 0)
        return NULL;
    if (PyList_Size(outputs) != n)
        return PyErr_Format(PyExc_ValueError, "%zd inputs have %zd outputs", n,
                            PyList_Size(outputs));
    if (!self->lease || atomic_load(&self->lease->is_over) ||
        atomic_exchange(&self->is_busy, true)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the next implementation is called in the call of its wrapper, "
                        "by one thread at a time");
        return NULL;
    }
    jobs = make_jobs(self, inputs, outputs, n);
    if (jobs) {
        (void)run_next(self, jobs, (uint64_t)n, take, &err);
        list = job_results(jobs, n, &err);
        PyMem_Free(jobs);
    }
    atomic_store(&self->is_busy, false);
    return list;
}

/* ---- answers to encode and decode ------------------------------------------- */

/* The output has `n` bytes, or would have. True: there is room for them. */
static bool has_room(zarr_codec_job *job, uint64_t n, bool is_decode, const char **text)
{
    const bool fits = n <= job->dst.bytes;

    if (!fits) {
        *text = is_decode ? "decoding gives more bytes than the chunk has"
                          : "encoding gives more bytes than the codec promises";
        job->flags |= ZARR_CODEC_JOB_NO_ROOM;
    }
    job->status = fits ? ZARR_OK : ZARR_ERR_CORRUPT;
    job->dst_used = fits ? n : 0;
    return fits;
}

/* One job: bytes, how many there are in its memory, or (status, text). -1: an exception;
 * `*text` is borrowed. */
static int job_answer(zarr_codec_job *job, PyObject *answer, uint32_t what,
                      const char **text)
{
    const bool is_decode = what == ZX_ASK_DECODE || what == ZX_ASK_DECODE_THERE;
    Py_buffer view;
    int status;

    if (PyTuple_Check(answer)) {
        if (!PyArg_ParseTuple(answer, "is", &status, text))
            return -1;
        job->status = status;
        return 0;
    }
    if (what == ZX_ASK_ENCODE_THERE || what == ZX_ASK_DECODE_THERE) {
        const unsigned long long n = PyLong_AsUnsignedLongLong(answer);

        if (n == ULLONG_MAX && PyErr_Occurred())
            return -1;
        (void)has_room(job, n, is_decode, text);
        return 0;
    }
    if (PyObject_GetBuffer(answer, &view, PyBUF_C_CONTIGUOUS))
        return -1;
    if (has_room(job, (uint64_t)view.len, is_decode, text) && view.len > 0)
        memcpy((char *)job->dst.handle + job->dst.offset, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return 0;
}

/* chunks(list of answers): answers all jobs of a call */
static PyObject *call_chunks(PyObject *o, PyObject *list)
{
    plugin_call *self = (plugin_call *)o;
    const Py_ssize_t n = PyList_Size(list);
    const char *first_text = NULL;
    zarr_status first = ZARR_OK;
    struct zx_ask *q;

    end_lease(self);
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
        else if (job_answer(job, PyList_GetItem(list, (Py_ssize_t)i), self->what,
                            &text) == 0 &&
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
    {"memory", call_memory, METH_NOARGS, NULL},
    {"count_kept", call_count_kept, METH_NOARGS, NULL},
    {"next", call_next, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyType_Slot call_slots[] = {
    {Py_tp_dealloc, call_dealloc}, {Py_tp_methods, call_methods}, {0, NULL}};
PyType_Spec zx_plugin_call_spec = {"zarrc._core.PluginCall", sizeof(plugin_call), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   call_slots};
