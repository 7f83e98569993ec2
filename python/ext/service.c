/* service.c - the half of stores of Python that a thread of Python calls. A Service is
 * the box of letters; a Batch is one letter. zarrc/_foreign.py decides on which thread or
 * loop a batch is answered. A batch that is dropped ends what is still open in it, so
 * that a coroutine that dies cannot leave a caller waiting. */
#include "foreign.h"

#include <stdlib.h>
#include <string.h>

enum {
    LARGE_BYTES = 1 << 17 /* a copy that is worth giving up the GIL */
};

/* `mutex` keeps an operation from being answered, after which it is gone, while another
 * thread reads it. */
typedef struct {
    PyObject_HEAD struct zx_box *box;
    struct zx_letter *l;
    pthread_mutex_t mutex;
} zx_batch;

/* ---- Service ---------------------------------------------------------------- */

/* Letters as Batch objects. Those that find no object end at once. */
static PyObject *list_batches(zx_service *self, struct zx_letter *l)
{
    PyObject *list = PyList_New(0);

    while (l) {
        struct zx_letter *next = l->next;
        zx_batch *b = list ? zx_alloc(self->st->batch_type) : NULL;

        if (b) {
            b->box = zx_box_ref(self->box);
            b->l = l;
            pthread_mutex_init(&b->mutex, NULL);
            if (PyList_Append(list, (PyObject *)b))
                PyErr_Clear();
            Py_DECREF((PyObject *)b);
        } else {
            PyErr_Clear();
            zx_letter_end(self->box, l, "no memory for a batch of operations");
        }
        l = next;
    }
    return list;
}

PyObject *zx_new_service(PyObject *module, PyObject *unused)
{
    zx_state *st = PyModule_GetState(module);
    struct zx_box *box = zx_box_new();

    (void)unused;
    return box ? zx_service_new(st, st->service_type, box, list_batches)
               : PyErr_SetFromErrno(PyExc_OSError);
}

struct zx_box *zx_service_box(zx_state *st, PyObject *service)
{
    if (Py_TYPE(service) == st->service_type)
        return ((zx_service *)service)->box;
    PyErr_SetString(PyExc_TypeError, "a Service is needed");
    return NULL;
}

/* open_foreign(class, context, service, url, number, caps, parallel, flags, can_flush,
 * can_erase_prefix, place=None) */
PyObject *zx_open_foreign(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    struct zx_foreign_spec spec = {0};
    PyObject *type, *context, *service, *url, *place = Py_None;
    unsigned long long number;
    Py_ssize_t place_bytes = 0;
    char *texts = NULL;
    zarr_store *s = NULL;
    zarr_error err;
    zarr_status status;

    if (!PyArg_ParseTuple(args, "OO!O!O&KIIIpp|O", &type, st->context_type, &context,
                          st->service_type, &service, PyUnicode_FSConverter, &url,
                          &number, &spec.caps, &spec.parallel, &spec.flags,
                          &spec.can_flush, &spec.can_erase_prefix, &place))
        return NULL;
    if (place != Py_None) /* "z#" differs between the versions of the stable ABI */
        (void)PyBytes_AsStringAndSize(place, &texts, &place_bytes);
    spec.place = texts;
    spec.place_bytes = (size_t)place_bytes + 1; /* with the 0 after the last text */
    spec.url = PyBytes_AsString(url);
    if (!spec.url || (!spec.place && place != Py_None) || zx_store_class(st, type)) {
        Py_DECREF(url);
        return NULL;
    }
    spec.number = number;
    spec.box = ((zx_service *)service)->box;
    Py_BEGIN_ALLOW_THREADS status =
        zx_foreign_open(&s, ((zx_context *)context)->ctx, &spec, &err);
    Py_END_ALLOW_THREADS Py_DECREF(url);
    if (zx_check(st, status, &err, NULL)) {
        zarr_store_free(s);
        return NULL;
    }
    return zx_store_wrap(st, (PyTypeObject *)type, (zx_context *)context, s);
}

/* ---- Batch: what is asked --------------------------------------------------- */

static void batch_dealloc(PyObject *o)
{
    zx_batch *self = (zx_batch *)o;

    zx_letter_end(self->box, self->l, "the store ended without an answer");
    pthread_mutex_destroy(&self->mutex);
    zx_box_unref(self->box);
    zx_free(o);
}

static Py_ssize_t batch_length(PyObject *o)
{
    return (Py_ssize_t)((zx_batch *)o)->l->n;
}

/* The operation of an index, or NULL with an exception. */
static zarr_store_op *op_at(zx_batch *self, Py_ssize_t i)
{
    if (self->l->what == ZX_OPS && i >= 0 && (uint64_t)i < self->l->n)
        return self->l->op[i];
    PyErr_SetString(PyExc_IndexError, "there is no such operation");
    return NULL;
}

/* Nothing but another thread's short look is waited for, and without the GIL. */
static void hold(zx_batch *self)
{
    if (pthread_mutex_trylock(&self->mutex) == 0)
        return;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->mutex);
    Py_END_ALLOW_THREADS
}

static void let_go(zx_batch *self)
{
    pthread_mutex_unlock(&self->mutex);
}

/* For the holder: whether the operation is there. */
static bool is_open(const zx_batch *self, Py_ssize_t i)
{
    return self->l->generation == atomic_load(&self->box->generation) &&
           !atomic_load(&self->l->claimed[i]);
}

/* True for the one caller that must answer part i, which then is its own. */
static bool claim(zx_batch *self, uint64_t i)
{
    bool is_mine;

    hold(self);
    is_mine = zx_claim(self->box, self->l, i);
    let_go(self);
    return is_mine;
}

static PyObject *number_or_none(bool is_none, uint64_t n)
{
    if (is_none)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(n);
}

/* How many bytes a GET wants; UINT64_MAX: all. */
static uint64_t wanted_bytes(const zarr_store_op *op)
{
    if (op->length == ZARR_STORE_TO_END || op->offset == ZARR_STORE_SUFFIX)
        return op->length;
    return op->length < op->mem.bytes ? op->length : op->mem.bytes;
}

static PyObject *key_object(const char *key)
{
    return PyUnicode_DecodeUTF8(key, (Py_ssize_t)strlen(key), "surrogateescape");
}

static bool is_cancelled(const zarr_store_op *op)
{
    return op->cancel && zarr_cancel_is_set(op->cancel);
}

/* The verb, or ZX_RANGE for a range of a value that is not the index of a shard. */
static unsigned op_verb(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET && op->offset != ZARR_STORE_SUFFIX &&
                   op->length != ZARR_STORE_TO_END &&
                   (op->flags & ZARR_STORE_OP_KIND) != ZARR_STORE_OP_INDEX
               ? ZX_RANGE
               : op->verb;
}

/* op(i) -> (verb, key, offset, length); offset None: a suffix; length None: to the end.
 * None: it has been answered, or its caller has cancelled it */
static PyObject *batch_op(PyObject *o, PyObject *index)
{
    zx_batch *self = (zx_batch *)o;
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    const zarr_store_op *op = op_at(self, i);
    bool ends = false;
    PyObject *out = NULL;

    if (!op)
        return NULL;
    hold(self);
    if (!is_open(self, i))
        out = Py_NewRef(Py_None);
    else if (is_cancelled(op))
        ends = zx_claim(self->box, self->l, (uint64_t)i);
    else
        out = Py_BuildValue(
            "(INNN)", op_verb(op), key_object(op->key),
            number_or_none(op->offset == ZARR_STORE_SUFFIX, op->offset),
            number_or_none(op->length == ZARR_STORE_TO_END, wanted_bytes(op)));
    let_go(self);
    if (!ends)
        return out;
    zx_answer_op(self->l, (uint64_t)i, ZARR_ERR_CANCELLED, 0, "cancelled");
    Py_RETURN_NONE;
}

/* Holds the batch and returns an operation of this verb; the caller lets go. NULL: an
 * exception; nothing is held. */
static const zarr_store_op *hold_op(zx_batch *self, PyObject *index, uint32_t verb)
{
    const Py_ssize_t i = PyLong_AsSsize_t(index);
    const zarr_store_op *op = op_at(self, i);

    if (!op)
        return NULL;
    hold(self);
    if (is_open(self, i) && op->verb == verb)
        return op;
    let_go(self);
    PyErr_SetString(PyExc_ValueError, "the operation has ended, or has another verb");
    return NULL;
}

/* source(i) -> (number of a store, key) that a COPY reads */
static PyObject *batch_source(PyObject *o, PyObject *index)
{
    const zarr_store_op *op = hold_op((zx_batch *)o, index, ZARR_STORE_COPY);
    PyObject *out;

    if (!op)
        return NULL;
    out = Py_BuildValue("(KN)", (unsigned long long)zx_foreign_number(op->source->self),
                        key_object(op->source->key));
    let_go((zx_batch *)o);
    return out;
}

/* data(i) -> bytes that a PUT writes; a copy, because stores keep what they get */
static PyObject *batch_data(PyObject *o, PyObject *index)
{
    const zarr_store_op *op = hold_op((zx_batch *)o, index, ZARR_STORE_PUT);
    PyObject *out;

    if (!op)
        return NULL;
    out = PyBytes_FromStringAndSize(
        op->mem.bytes ? (const char *)op->mem.handle + op->mem.offset : "",
        (Py_ssize_t)op->mem.bytes);
    let_go((zx_batch *)o);
    return out;
}

/* ---- Batch: answers --------------------------------------------------------- */

static void copy_bytes(void *to, const void *from, size_t n)
{
    if (n == 0)
        return;
    if (n < LARGE_BYTES) {
        memcpy(to, from, n);
        return;
    }
    Py_BEGIN_ALLOW_THREADS memcpy(to, from, n);
    Py_END_ALLOW_THREADS
}

/* Whether bytes answer a GET without the length of the whole value, which becomes
 * *total if they tell it. */
static bool tells_enough(const zarr_store_op *op, uint64_t n, uint64_t *total)
{
    const bool is_suffix = op->offset == ZARR_STORE_SUFFIX;

    if (*total != UINT64_MAX)
        return true;
    if (op->length == ZARR_STORE_TO_END || (is_suffix && n < op->length)) {
        if (!is_suffix && op->offset > 0 && n == 0)
            return false; /* it may begin after the end */
        *total = n + (is_suffix ? 0 : op->offset);
        return true;
    }
    if (is_suffix)
        return n <= op->mem.bytes;
    if (n >= op->length) /* all that was asked for, or more: the memory bounds it */
        return true;
    if (n < wanted_bytes(op) && (n > 0 || op->offset == 0)) {
        *total = op->offset + n; /* the value ends there */
        return true;
    }
    return false;
}

/* 1: answered; 0: the length of the whole value is needed first; -1: an exception */
static int answer_get(zx_batch *self, Py_ssize_t i, PyObject *value, uint64_t total)
{
    zarr_store_op *op = self->l->op[i];
    bool is_mine = false;
    Py_buffer view;
    uint64_t n;
    int rc = 1;

    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE))
        return -1;
    n = (uint64_t)view.len;
    hold(self);
    if (is_open(self, i)) {
        if (n > wanted_bytes(op)) /* the store gave more than the range */
            n = wanted_bytes(op);
        rc = tells_enough(op, n, &total);
        is_mine = rc && zx_claim(self->box, self->l, (uint64_t)i);
    }
    let_go(self);
    if (is_mine) {
        n = n < op->mem.bytes ? n : op->mem.bytes;
        if (n > 0)
            copy_bytes((char *)op->mem.handle + op->mem.offset, view.buf, (size_t)n);
        op->done_bytes = n;
        op->object_bytes = total;
        zx_answer_op(self->l, (uint64_t)i, ZARR_OK, 0, NULL);
    }
    PyBuffer_Release(&view);
    return rc;
}

/* give(i, bytes, total=-1) -> whether this answers the GET; if not, the length of the
 * whole value is missing */
static PyObject *batch_give(PyObject *o, PyObject *args)
{
    zx_batch *self = (zx_batch *)o;
    long long total = -1;
    PyObject *value;
    Py_ssize_t i;
    int rc;

    if (!PyArg_ParseTuple(args, "nO|L", &i, &value, &total) || !op_at(self, i))
        return NULL;
    rc = answer_get(self, i, value, total < 0 ? UINT64_MAX : (uint64_t)total);
    return rc < 0 ? NULL : PyBool_FromLong(rc);
}

/* end(i, status=0, text=None, os_code=0, size=-1): how an operation or a call ended; the
 * size answers a STAT */
static PyObject *batch_end(PyObject *o, PyObject *args)
{
    zx_batch *self = (zx_batch *)o;
    int status = 0, os_code = 0;
    const char *text = NULL;
    long long size = -1;
    Py_ssize_t i;

    if (!PyArg_ParseTuple(args, "n|iziL", &i, &status, &text, &os_code, &size))
        return NULL;
    if (i < 0 || (uint64_t)i >= self->l->n) {
        PyErr_SetString(PyExc_IndexError, "there is no such operation");
        return NULL;
    }
    if (!claim(self, (uint64_t)i))
        Py_RETURN_NONE;
    if (self->l->what == ZX_OPS) {
        if (size >= 0)
            self->l->op[i]->object_bytes = (uint64_t)size;
        zx_answer_op(self->l, (uint64_t)i, status, os_code, text);
    } else {
        zx_answer_call(self->l, status, os_code, text, NULL);
    }
    Py_RETURN_NONE;
}

/* One (key, bytes or None, is_prefix). -1: an exception. */
static int add_row(struct zx_rows *rows, PyObject *row)
{
    unsigned long long numbers[2] = {UINT64_MAX, 0};
    PyObject *key, *bytes, *encoded;
    int is_prefix;

    if (!PyArg_ParseTuple(row, "UOp", &key, &bytes, &is_prefix))
        return -1;
    if (bytes != Py_None) {
        numbers[0] = PyLong_AsUnsignedLongLong(bytes);
        if (PyErr_Occurred())
            return -1;
    }
    encoded = PyUnicode_AsEncodedString(key, "utf-8", "surrogateescape");
    if (!encoded)
        return -1;
    {
        const uint64_t n[2] = {numbers[0], (uint64_t)is_prefix};
        const char *text = PyBytes_AsString(encoded);

        if (zx_rows_add(rows, 2, n, 1, &text))
            PyErr_NoMemory();
    }
    Py_DECREF(encoded);
    return PyErr_Occurred() ? -1 : 0;
}

/* rows(list of (key, bytes or None, is_prefix), has_more=False) -> whether the caller of
 * the listing still waited for it */
static PyObject *batch_rows(PyObject *o, PyObject *args)
{
    zx_batch *self = (zx_batch *)o;
    struct zx_rows rows = {0};
    PyObject *list;
    int has_more = 0;
    bool is_mine;
    Py_ssize_t n;

    if (!PyArg_ParseTuple(args, "O!|p", &PyList_Type, &list, &has_more))
        return NULL;
    if (self->l->what != ZX_LIST && self->l->what != ZX_LIST_NEXT) {
        PyErr_SetString(PyExc_ValueError, "this is no listing");
        return NULL;
    }
    n = PyList_Size(list);
    rows.has_more = has_more;
    for (Py_ssize_t i = 0; i < n; i++)
        if (add_row(&rows, PyList_GetItem(list, i))) {
            zx_rows_free(&rows);
            return NULL;
        }
    is_mine = claim(self, 0);
    if (is_mine)
        zx_answer_call(self->l, ZARR_OK, 0, NULL, &rows);
    zx_rows_free(&rows);
    return PyBool_FromLong(is_mine);
}

/* The key of a GET of a whole value, or NULL; *is_over: it has been answered. */
static PyObject *whole_key(zx_batch *self, Py_ssize_t i, bool *is_over)
{
    const zarr_store_op *op = self->l->op[i];
    PyObject *key = NULL;

    hold(self);
    *is_over = !is_open(self, i);
    if (!*is_over && op->verb == ZARR_STORE_GET && op->offset == 0 &&
        op->length == ZARR_STORE_TO_END && !is_cancelled(op))
        key = key_object(op->key);
    let_go(self);
    return key;
}

/* fill(get, first=0) -> the first index that is not a GET of a whole value which
 * get(key) -> bytes or None answered: the caller goes on there. The loop of quick stores
 */
static PyObject *batch_fill(PyObject *o, PyObject *args)
{
    zx_batch *self = (zx_batch *)o;
    const uint64_t n = self->l->what == ZX_OPS ? self->l->n : 0;
    Py_ssize_t i = 0;
    PyObject *get;

    if (!PyArg_ParseTuple(args, "O|n", &get, &i) || i < 0)
        return NULL;
    for (; (uint64_t)i < n; i++) {
        PyObject *key, *value;
        bool is_over;
        int rc;

        key = whole_key(self, i, &is_over);
        if (is_over)
            continue;
        value = key ? PyObject_CallFunctionObjArgs(get, key, NULL) : NULL;
        Py_XDECREF(key);
        if (!value)
            break;
        rc = value == Py_None ? 1 : answer_get(self, i, value, UINT64_MAX);
        if (value == Py_None && claim(self, (uint64_t)i))
            zx_answer_op(self->l, (uint64_t)i, ZARR_ERR_NOT_FOUND, 0,
                         "there is no such key");
        Py_DECREF(value);
        if (rc <= 0)
            break;
    }
    PyErr_Clear(); /* the caller tries that one again, and tells what is wrong */
    return PyLong_FromSsize_t(i);
}

/* fail(text): ends what is open, with an IO error */
static PyObject *batch_fail(PyObject *o, PyObject *args)
{
    zx_batch *self = (zx_batch *)o;
    int status = ZARR_ERR_IO, os_code = 0;
    const char *text;

    if (!PyArg_ParseTuple(args, "s|ii", &text, &status, &os_code))
        return NULL;
    for (uint64_t i = 0; i < self->l->n; i++) {
        if (!claim(self, i))
            continue;
        if (self->l->what == ZX_OPS)
            zx_answer_op(self->l, i, status, os_code, text);
        else
            zx_answer_call(self->l, status, os_code, text, NULL);
    }
    Py_RETURN_NONE;
}

/* ---- Batch: its type -------------------------------------------------------- */

static PyObject *batch_store(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((zx_batch *)o)->l->store);
}

static PyObject *batch_what(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((zx_batch *)o)->l->what);
}

static PyObject *batch_how(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(((zx_batch *)o)->l->how);
}

static PyObject *batch_listing(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((zx_batch *)o)->l->listing);
}

/* The same number for the operations of one call and for the letter that cancels them. */
static PyObject *batch_call(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((zx_batch *)o)->l->arg);
}

static PyObject *batch_prefix(PyObject *o, void *unused)
{
    const char *prefix = ((zx_batch *)o)->l->prefix;

    (void)unused;
    return key_object(prefix ? prefix : "");
}

static PyMethodDef batch_methods[] = {{"op", batch_op, METH_O, NULL},
                                      {"data", batch_data, METH_O, NULL},
                                      {"source", batch_source, METH_O, NULL},
                                      {"give", batch_give, METH_VARARGS, NULL},
                                      {"end", batch_end, METH_VARARGS, NULL},
                                      {"rows", batch_rows, METH_VARARGS, NULL},
                                      {"fill", batch_fill, METH_VARARGS, NULL},
                                      {"fail", batch_fail, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyGetSetDef batch_getset[] = {{"store", batch_store, NULL, NULL, NULL},
                                     {"what", batch_what, NULL, NULL, NULL},
                                     {"how", batch_how, NULL, NULL, NULL},
                                     {"call", batch_call, NULL, NULL, NULL},
                                     {"prefix", batch_prefix, NULL, NULL, NULL},
                                     {"listing", batch_listing, NULL, NULL, NULL},
                                     {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot batch_slots[] = {{Py_tp_dealloc, batch_dealloc},
                                    {Py_tp_methods, batch_methods},
                                    {Py_tp_getset, batch_getset},
                                    {Py_sq_length, batch_length},
                                    {0, NULL}};
PyType_Spec zx_batch_spec = {"zarrc._core.Batch", sizeof(zx_batch), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             batch_slots};
