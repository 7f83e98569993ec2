/* letter_service.c - what Service and PluginService share: a box of letters that a thread
 * of Python waits for and takes. Only the objects that the letters become differ. */
#include "foreign.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

PyObject *zx_service_new(zx_state *st, PyTypeObject *type, struct zx_box *box,
                         zx_letters_fn *objects)
{
    zx_service *self = zx_alloc(type);

    if (!self) {
        zx_box_unref(box);
        return NULL;
    }
    self->st = st;
    self->box = box;
    self->objects = objects;
    return (PyObject *)self;
}

static void service_dealloc(PyObject *o)
{
    zx_box_unref(((zx_service *)o)->box);
    zx_free(o);
}

struct zx_letter *zx_box_wait(struct zx_box *box)
{
    struct pollfd p = {.fd = box->fd, .events = POLLIN};
    uint64_t count;
    ssize_t n;

    Py_BEGIN_ALLOW_THREADS poll(&p, 1, -1);
    do
        n = read(p.fd, &count, sizeof count);
    while (n < 0 && errno == EINTR);
    Py_END_ALLOW_THREADS return zx_box_take(box);
}

/* wait() -> list of objects; waits until there is a letter, without the GIL. It may be
 * empty. */
static PyObject *service_wait(PyObject *o, PyObject *unused)
{
    zx_service *self = (zx_service *)o;

    (void)unused;
    return self->objects(self, zx_box_wait(self->box));
}

/* close() -> list of the objects that wait; later letters fail */
static PyObject *service_close(PyObject *o, PyObject *unused)
{
    zx_service *self = (zx_service *)o;

    (void)unused;
    return self->objects(self, zx_box_close(self->box));
}

/* reset(): in the child of a fork, forgets the parent's letters */
static PyObject *service_reset(PyObject *o, PyObject *unused)
{
    (void)unused;
    if (zx_box_reset(((zx_service *)o)->box))
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef service_methods[] = {{"wait", service_wait, METH_NOARGS, NULL},
                                        {"close", service_close, METH_NOARGS, NULL},
                                        {"reset", service_reset, METH_NOARGS, NULL},
                                        {NULL, NULL, 0, NULL}};
static PyType_Slot service_slots[] = {
    {Py_tp_dealloc, service_dealloc}, {Py_tp_methods, service_methods}, {0, NULL}};
PyType_Spec zx_service_spec = {"zarrc._core.Service", sizeof(zx_service), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               service_slots};
PyType_Spec zx_plugin_service_spec = {
    "zarrc._core.PluginService", sizeof(zx_service), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, service_slots};
