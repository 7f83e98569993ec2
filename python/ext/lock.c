/* lock.c - the lock of one key of a store, for a read and a write that belong together.
 * The write gives the lock back, so that no other thread can do so while it runs. */
#include "ext.h"

#include <zarrc/plugin/store.h>

typedef struct {
    PyObject_HEAD zx_store *store; /* owned */
    PyObject *key;                 /* owned, a text */
    _Atomic(void *) lock;          /* NULL: given back */
} zx_lock;

struct taking {
    zarr_store *s;
    const char *key;
    void *lock;
};

static zarr_status take_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct taking *t = arg;

    return zarr_store_lock(&t->lock, t->s, t->key, cancel, err);
}

static void give_back(zarr_store *s, void *lock)
{
    Py_BEGIN_ALLOW_THREADS zarr_store_unlock(s, lock);
    Py_END_ALLOW_THREADS
}

/* _lock(key) -> Lock, once no one else holds it */
PyObject *zx_store_lock(PyObject *o, PyObject *key)
{
    zx_store *store = (zx_store *)o;
    struct taking t = {.s = store->s};
    zx_lock *self;

    t.key = PyUnicode_AsUTF8AndSize(key, NULL);
    if (!t.key || zx_writable(store))
        return NULL;
    if (zx_call(store->st, take_work, &t, NULL)) {
        give_back(t.s, t.lock);
        return NULL;
    }
    self = zx_alloc(store->st->lock_type);
    if (!self) {
        give_back(t.s, t.lock);
        return NULL;
    }
    self->store = (zx_store *)Py_NewRef(o);
    self->key = Py_NewRef(key);
    atomic_init(&self->lock, t.lock);
    return (PyObject *)self;
}

/* Does the holder's one write. */
static PyObject *run(zx_lock *self, zarr_store_op *op)
{
    zarr_store *s = self->store->s;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status status;

    op->key = PyUnicode_AsUTF8AndSize(self->key, NULL);
    if (!op->key)
        return NULL;
    op->lock = atomic_exchange(&self->lock, NULL);
    if (!op->lock) {
        PyErr_SetString(PyExc_ValueError, "the lock was given back");
        return NULL;
    }
    op->flags = ZARR_STORE_OP_LOCKED | ZARR_STORE_OP_CHUNK;
    op->object_bytes = UINT64_MAX;
    Py_BEGIN_ALLOW_THREADS status = zarr_store_run(s, op, &err);
    zarr_store_unlock(s, op->lock);
    Py_END_ALLOW_THREADS if (status == ZARR_ERR_NOT_FOUND && op->verb == ZARR_STORE_ERASE)
        status = ZARR_OK;
    return zx_return_none(self->store->st, status, &err);
}

/* put(data) */
static PyObject *lock_put(PyObject *o, PyObject *data)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT};
    PyObject *out;
    Py_buffer view;

    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE))
        return NULL;
    op.mem.device_type = ZARR_DEVICE_CPU;
    op.mem.handle = view.buf;
    op.mem.bytes = op.length = (uint64_t)view.len;
    out = run((zx_lock *)o, &op);
    PyBuffer_Release(&view);
    return out;
}

/* erase(): also if there is no such key */
static PyObject *lock_erase(PyObject *o, PyObject *unused)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE};

    (void)unused;
    return run((zx_lock *)o, &op);
}

static void release(zx_lock *self)
{
    void *lock = atomic_exchange(&self->lock, NULL);

    if (lock)
        give_back(self->store->s, lock);
}

/* release(): nothing if there was a write */
static PyObject *lock_release(PyObject *o, PyObject *unused)
{
    (void)unused;
    release((zx_lock *)o);
    Py_RETURN_NONE;
}

static void lock_dealloc(PyObject *o)
{
    zx_lock *self = (zx_lock *)o;

    release(self);
    Py_XDECREF((PyObject *)self->store);
    Py_XDECREF(self->key);
    zx_free(o);
}

static PyMethodDef lock_methods[] = {{"put", lock_put, METH_O, NULL},
                                     {"erase", lock_erase, METH_NOARGS, NULL},
                                     {"release", lock_release, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyType_Slot lock_slots[] = {
    {Py_tp_dealloc, lock_dealloc}, {Py_tp_methods, lock_methods}, {0, NULL}};
PyType_Spec zx_lock_spec = {"zarrc._core.Lock", sizeof(zx_lock), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            lock_slots};
