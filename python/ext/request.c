/* request.c - requests that asyncio waits for. A Queue has one descriptor for all
 * requests of an event loop: a request that ends is pushed on a list without locks, and a
 * byte goes into a pipe. No thread waits, and none of the library's threads calls Python.
 * A request that a queue tells of is in the set `flights` of the module, so that its
 * memory stays until then; one without a queue is stopped when its object goes; the
 * package cancels what is left when the interpreter ends. */
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the library's threads see of a queue; lives as long as anything points to it. */
struct mailbox {
    atomic_uint n_owners;
    int read_fd, write_fd;
    _Atomic(struct letter *) letters; /* newest first */
};

typedef struct {
    PyObject_HEAD zx_state *st;
    struct mailbox *box;
} zx_queue;

/* ---- mailboxes -------------------------------------------------------------- */

static void box_release(struct mailbox *box)
{
    struct letter *l;

    if (!box || atomic_fetch_sub(&box->n_owners, 1) > 1)
        return;
    l = atomic_load(&box->letters);
    (void)l; /* letters are parts of request objects */
    close(box->read_fd);
    close(box->write_fd);
    free(box);
}

static struct mailbox *box_new(void)
{
    struct mailbox *box = malloc(sizeof *box);
    int fd[2];

    if (!box)
        return NULL;
    if (pipe(fd)) {
        free(box);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(fd[i], F_SETFD, FD_CLOEXEC);
        fcntl(fd[i], F_SETFL, O_NONBLOCK);
    }
    atomic_init(&box->n_owners, 1);
    atomic_init(&box->letters, NULL);
    box->read_fd = fd[0];
    box->write_fd = fd[1];
    return box;
}

/* On a thread of the library: zarr_request_fn. */
static void post(void *user, zarr_status status, const zarr_error *err)
{
    struct letter *l = user;
    struct mailbox *box = l->box;
    ssize_t n;

    (void)status;
    (void)err;
    l->next = atomic_load(&box->letters);
    while (!atomic_compare_exchange_weak(&box->letters, &l->next, l))
        ;
    do /* a full pipe is readable anyway */
        n = write(box->write_fd, "", 1);
    while (n < 0 && errno == EINTR);
    box_release(box);
}

/* ---- Queue ------------------------------------------------------------------ */

PyObject *zx_new_queue(PyObject *module, PyObject *unused)
{
    zx_state *st = PyModule_GetState(module);
    struct mailbox *box = box_new();
    zx_queue *self;

    (void)unused;
    if (!box)
        return PyErr_SetFromErrno(PyExc_OSError);
    self = zx_alloc(st->queue_type);
    if (!self) {
        box_release(box);
        return NULL;
    }
    self->st = st;
    self->box = box;
    return (PyObject *)self;
}

static void queue_dealloc(PyObject *o)
{
    box_release(((zx_queue *)o)->box);
    zx_free(o);
}

static PyObject *queue_fileno(PyObject *o, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(((zx_queue *)o)->box->read_fd);
}

static void empty_pipe(int fd)
{
    char bytes[256];
    ssize_t n;

    do
        n = read(fd, bytes, sizeof bytes);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
}

/* take() -> list of the requests that have ended */
static PyObject *queue_take(PyObject *o, PyObject *unused)
{
    zx_queue *self = (zx_queue *)o;
    PyObject *list = PyList_New(0);
    struct letter *l;

    (void)unused;
    if (!list)
        return NULL;
    empty_pipe(self->box->read_fd);
    for (l = atomic_exchange(&self->box->letters, NULL); l;) {
        struct letter *next = l->next;
        PyObject *request = Py_NewRef(l->request);

        if (PyList_Append(list, request))
            PyErr_Clear(); /* it stays in `flights` until the end */
        else if (PySet_Discard(self->st->flights, request) < 0)
            PyErr_Clear();
        Py_DECREF(request);
        l = next;
    }
    return list;
}

static PyMethodDef queue_methods[] = {{"fileno", queue_fileno, METH_NOARGS, NULL},
                                      {"take", queue_take, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyType_Slot queue_slots[] = {
    {Py_tp_dealloc, queue_dealloc}, {Py_tp_methods, queue_methods}, {0, NULL}};
PyType_Spec zx_queue_spec = {"zarrc._core.Queue", sizeof(zx_queue), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             queue_slots};

/* ---- Request ---------------------------------------------------------------- */

static void request_dealloc(PyObject *o)
{
    zx_request *self = (zx_request *)o;

    Py_BEGIN_ALLOW_THREADS zarr_request_free(self->r);
    Py_END_ALLOW_THREADS zx_memory_deinit(&self->memory);
    zx_io_deinit(&self->io);
    Py_XDECREF((PyObject *)self->array);
    Py_XDECREF(self->selection);
    Py_XDECREF(self->options);
    Py_XDECREF(self->present);
    zx_free(o);
}

static zarr_status start(zx_request *self, int what, int axis, zarr_error *err)
{
    zx_array *a = self->array;
    const zarr_selection *sel =
        self->selection == Py_None ? NULL : ((zx_selection *)self->selection)->sel;

    if (what == ZX_APPEND)
        return zarr_array_append_submit(&self->r, a->a, axis, &self->memory.t,
                                        &self->first, &self->io.o, err);
    if (what == ZX_WRITE)
        return zarr_array_write_submit(&self->r, a->a, sel, &self->memory.t, &self->io.o,
                                       err);
    self->io.o.flags |= ZARR_IO_AT_ONCE;
    return zarr_array_read_submit(&self->r, a->a, sel, &self->memory.t, &self->io.o, err);
}

/* Starts a request and asks for its letter, unless it is done. */
static zarr_status start_with_letter(zx_request *self, int what, int axis,
                                     zarr_error *err)
{
    zarr_status status = start(self, what, axis, err);

    if (status)
        return status;
    if (what == ZX_READ)
        status = zarr_request_wait(self->r, 0, &self->is_done, NULL);
    if (self->is_done) /* wait() raises what failed */
        return ZARR_OK;
    status = zarr_request_then(self->r, post, &self->letter, err);
    if (status)
        zarr_request_cancel(self->r);
    return status;
}

/* Starts a request whose end goes into the mailbox. -1: an exception. */
static int launch(zx_request *self, struct mailbox *box, int what, int axis)
{
    zarr_error err;
    zarr_status status;

    if (PySet_Add(self->st->flights, (PyObject *)self))
        return -1;
    self->letter.request = (PyObject *)self;
    self->letter.box = box;
    atomic_fetch_add(&box->n_owners, 1); /* for the letter */
    Py_BEGIN_ALLOW_THREADS status = start_with_letter(self, what, axis, &err);
    Py_END_ALLOW_THREADS if (status == ZARR_OK &&
                             !self->is_done) return zx_log_flush(self->st);
    box_release(box);
    if (PySet_Discard(self->st->flights, (PyObject *)self) < 0)
        PyErr_Clear();
    return self->is_done ? zx_log_flush(self->st)
                         : zx_check(self->st, status, &err, self->array->a);
}

static int request_memory(zx_request *self, int what, PyObject *object, unsigned order)
{
    const zarr_selection *sel =
        self->selection == Py_None ? NULL : ((zx_selection *)self->selection)->sel;
    const int rc = what == ZX_APPEND && zx_writable(self->array->store) ? -1
                   : what == ZX_APPEND
                       ? zx_io_lend(&self->memory, self->array, object, false)
                       : zx_io_memory(&self->io, &self->memory, self->array, object,
                                      what == ZX_READ, sel);

    self->memory.t.byte_order = order;
    return rc;
}

/* _submit(queue, what, selection, memory, order, options, axis=0) -> Request */
PyObject *zx_array_submit(PyObject *o, PyObject *args)
{
    zx_array *a = (zx_array *)o;
    PyObject *queue, *selection, *object, *options;
    int what, axis = 0;
    zx_request *self;
    unsigned order;

    if (!PyArg_ParseTuple(args, "O!iOOIO|i", a->st->queue_type, &queue, &what, &selection,
                          &object, &order, &options, &axis))
        return NULL;
    if (selection != Py_None && Py_TYPE(selection) != a->st->selection_type) {
        PyErr_SetString(PyExc_TypeError, "a Selection or None is needed");
        return NULL;
    }
    self = zx_alloc(a->st->request_type);
    if (!self)
        return NULL;
    self->st = a->st;
    self->array = (zx_array *)Py_NewRef(o);
    self->selection = Py_NewRef(selection);
    self->options = Py_NewRef(options);
    if (zx_io_init(&self->io, a, options) || request_memory(self, what, object, order) ||
        launch(self, ((zx_queue *)queue)->box, what, axis))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *request_cancel(PyObject *o, PyObject *unused)
{
    (void)unused;
    zarr_request_cancel(((zx_request *)o)->r);
    Py_RETURN_NONE;
}

/* wait() -> where appended elements begin; raises what failed */
static PyObject *request_wait(PyObject *o, PyObject *unused)
{
    zx_request *self = (zx_request *)o;
    zarr_error err;
    zarr_status status;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS status =
        zarr_request_wait(self->r, ZARR_WAIT_FOREVER, NULL, &err);
    Py_END_ALLOW_THREADS if (zx_check(self->st, status, &err,
                                      self->array->a)) return NULL;
    return PyLong_FromUnsignedLongLong(self->first);
}

/* progress() -> (chunks done, chunks in all) */
static PyObject *request_progress(PyObject *o, PyObject *unused)
{
    zarr_stats stats = ZARR_STATS_INIT;

    (void)unused;
    zarr_request_progress(((zx_request *)o)->r, &stats);
    return Py_BuildValue("(KK)", (unsigned long long)stats.chunks_done,
                         (unsigned long long)stats.chunks_total);
}

/* is_done() -> whether the request was done when it was submitted: its queue never tells
 * of it */
static PyObject *request_is_done(PyObject *o, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_request *)o)->is_done);
}

/* follow(queue): sends the letter of a read that was submitted without one */
static PyObject *request_follow(PyObject *o, PyObject *queue)
{
    zx_request *self = (zx_request *)o;
    struct mailbox *box;
    zarr_error err;
    zarr_status status;

    if (Py_TYPE(queue) != self->st->queue_type || self->is_done || self->letter.box) {
        PyErr_SetString(PyExc_TypeError,
                        "a Queue, and a request without one, are needed");
        return NULL;
    }
    if (PySet_Add(self->st->flights, o))
        return NULL;
    box = ((zx_queue *)queue)->box;
    self->letter.request = o;
    self->letter.box = box;
    atomic_fetch_add(&box->n_owners, 1); /* for the letter */
    Py_BEGIN_ALLOW_THREADS status = zarr_request_then(self->r, post, &self->letter, &err);
    if (status)
        zarr_request_cancel(self->r);
    Py_END_ALLOW_THREADS if (status)
    {
        box_release(box);
        PySet_Discard(self->st->flights, o);
    }
    return zx_return_none(self->st, status, &err);
}

/* leave(): cancels a request without a queue, and waits until it has stopped */
static PyObject *request_leave(PyObject *o, PyObject *unused)
{
    zx_request *self = (zx_request *)o;
    zarr_status status;

    (void)unused;
    zarr_request_cancel(self->r);
    Py_BEGIN_ALLOW_THREADS status =
        zarr_request_wait(self->r, ZARR_WAIT_FOREVER, NULL, NULL);
    Py_END_ALLOW_THREADS(void) status; /* why it has stopped is of no interest */
    Py_RETURN_NONE;
}

/* present() -> the bytearray that tells of each chunk whether the store has it, or None
 */
static PyObject *request_present(PyObject *o, PyObject *unused)
{
    PyObject *present = ((zx_request *)o)->present;

    (void)unused;
    return Py_NewRef(present ? present : Py_None);
}

static PyMethodDef request_methods[] = {{"is_done", request_is_done, METH_NOARGS, NULL},
                                        {"cancel", request_cancel, METH_NOARGS, NULL},
                                        {"wait", request_wait, METH_NOARGS, NULL},
                                        {"progress", request_progress, METH_NOARGS, NULL},
                                        {"follow", request_follow, METH_O, NULL},
                                        {"leave", request_leave, METH_NOARGS, NULL},
                                        {"present", request_present, METH_NOARGS, NULL},
                                        {NULL, NULL, 0, NULL}};
static PyType_Slot request_slots[] = {
    {Py_tp_dealloc, request_dealloc}, {Py_tp_methods, request_methods}, {0, NULL}};
PyType_Spec zx_request_spec = {"zarrc._core.Request", sizeof(zx_request), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               request_slots};
