/* device.c - memory of devices. Out: the type Device, elements that were read into memory
 * which the library, or a function of the application, allocated on a device; other
 * libraries take it by DLPack. In: memory that is known by its address only, as the CUDA
 * array interface tells it. */
#include "ext.h"

typedef struct {
    PyObject_HEAD zx_state *st;
    zx_array *array;  /* owned: whose data type the elements have */
    PyObject *keeper; /* owned: the application's object that has the memory, or NULL */
    zarr_memory mem;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    int64_t strides[ZARR_MAX_RANK];
} zx_device;

/* ---- Device: out ---------------------------------------------------------------- */

/* Strides in C order; returns the bytes, at least 1, or 0: too many. */
static uint64_t layout(zx_device *self, const uint64_t *length)
{
    uint64_t bytes = zarr_dtype_item_bytes(zarr_array_dtype(self->array->a));
    bool is_empty = false;

    for (int32_t d = self->ndim - 1; d >= 0; d--) {
        self->shape[d] = length[d];
        self->strides[d] = (int64_t)bytes;
        is_empty |= length[d] == 0;
        if (length[d] && bytes > (uint64_t)PY_SSIZE_T_MAX / length[d])
            return 0;
        bytes *= length[d] ? length[d] : 1;
    }
    return is_empty ? 1 : bytes;
}

static int allocate_own(zx_device *self, const char *where, uint64_t bytes)
{
    zarr_context *ctx = zarr_array_context(self->array->a);
    int32_t device_type, device_id;
    zarr_error err;
    zarr_status status;

    Py_BEGIN_ALLOW_THREADS status =
        zarr_memory_parse(ctx, where, &device_type, &device_id, &err);
    if (status == ZARR_OK)
        status = zarr_memory_alloc(&self->mem, ctx, device_type, device_id, bytes, &err);
    Py_END_ALLOW_THREADS return zx_check(self->st, status, &err, self->array->a);
}

/* Whether an address is memory of the device that `self->mem` names. Managed memory is of
 * each GPU. */
static int is_there(const zx_device *self, const char *where)
{
    zarr_context *ctx = zarr_array_context(self->array->a);
    const int32_t wanted = self->mem.device_type;
    int32_t type, id;
    bool is_managed;

    Py_BEGIN_ALLOW_THREADS zarr_memory_classify(ctx, self->mem.handle, &type, &id);
    Py_END_ALLOW_THREADS is_managed = type == ZARR_DEVICE_CUDA_MANAGED;
    if (is_managed && (wanted == type || wanted == ZARR_DEVICE_CUDA))
        return 0;
    if (type == wanted && id == self->mem.device_id)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "the allocator gave memory of the kind %d of device %d, which is not %s",
                 (int)type, (int)id, where);
    return -1;
}

/* Memory of the application. `allocate` is called with the bytes, here, in a thread of
 * Python, and gives (address, what keeps the memory). */
static int borrow(zx_device *self, const char *where, PyObject *allocate, uint64_t bytes)
{
    zarr_context *ctx = zarr_array_context(self->array->a);
    PyObject *told, *address, *keeper;
    zarr_error err;
    zarr_status status;
    int rc = -1;

    Py_BEGIN_ALLOW_THREADS status =
        zarr_memory_parse(ctx, where, &self->mem.device_type, &self->mem.device_id, &err);
    Py_END_ALLOW_THREADS if (zx_check(self->st, status, &err, self->array->a)) return -1;
    told = PyObject_CallFunction(allocate, "K", (unsigned long long)bytes);
    if (told && PyArg_ParseTuple(told, "OO", &address, &keeper)) {
        self->keeper = Py_NewRef(keeper);
        self->mem.handle = PyLong_AsVoidPtr(address);
        self->mem.bytes = bytes;
        rc = PyErr_Occurred() ? -1 : is_there(self, where);
    }
    Py_XDECREF(told);
    return rc;
}

/* Array._device(shape, text of the device, function that allocates or None) -> Device */
PyObject *zx_array_device(PyObject *o, PyObject *args)
{
    zx_array *a = (zx_array *)o;
    uint64_t length[ZARR_MAX_RANK], bytes;
    const char *where;
    PyObject *shape, *allocate;
    zx_device *self;
    int32_t ndim;

    if (!PyArg_ParseTuple(args, "OsO", &shape, &where, &allocate) ||
        (ndim = zx_lengths(shape, length)) < 0)
        return NULL;
    self = zx_alloc(a->st->device_type);
    if (!self)
        return NULL;
    self->st = a->st;
    self->array = (zx_array *)Py_NewRef(o);
    self->ndim = ndim;
    bytes = layout(self, length);
    if (!bytes)
        PyErr_NoMemory();
    if (!bytes || (allocate == Py_None ? allocate_own(self, where, bytes)
                                       : borrow(self, where, allocate, bytes)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void device_dealloc(PyObject *o)
{
    zx_device *self = (zx_device *)o;

    if (self->array && self->mem.handle && !self->keeper) {
        zarr_context *ctx = zarr_array_context(self->array->a);

        Py_BEGIN_ALLOW_THREADS zarr_memory_free(ctx, &self->mem);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(self->keeper);
    Py_XDECREF((PyObject *)self->array);
    zx_free(o);
}

static void device_tensor(zarr_tensor *t, const zx_device *self)
{
    static const zarr_tensor none = ZARR_TENSOR_INIT;

    *t = none;
    t->device_type = self->mem.device_type;
    t->device_id = self->mem.device_id;
    t->dtype = zarr_array_dtype(self->array->a);
    t->data = self->mem.handle;
    t->byte_offset = self->mem.offset;
    t->ndim = self->ndim;
    t->shape = self->shape;
    t->strides = self->strides;
}

/* On any thread: zarr_dlpack_release. */
static void release_device(void *user)
{
    if (Py_IsInitialized()) { /* else the memory goes with the process */
        const PyGILState_STATE gil = PyGILState_Ensure();

        Py_DECREF((PyObject *)user);
        PyGILState_Release(gil);
    }
}

/* capsule(has_version) */
static PyObject *device_capsule(PyObject *o, PyObject *has_version)
{
    zx_device *self = (zx_device *)o;
    const int wanted = PyObject_IsTrue(has_version);
    zarr_tensor t;

    if (wanted < 0)
        return NULL;
    device_tensor(&t, self);
    Py_INCREF(o);
    return zx_capsule(self->array, &t, wanted, release_device, o);
}

static PyObject *device_place(PyObject *o, void *unused)
{
    zx_device *self = (zx_device *)o;

    (void)unused;
    return Py_BuildValue("(ii)", (int)self->mem.device_type, (int)self->mem.device_id);
}

static PyObject *device_is_borrowed(PyObject *o, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((zx_device *)o)->keeper != NULL);
}

static PyObject *device_pointer(PyObject *o, void *unused)
{
    zx_device *self = (zx_device *)o;

    (void)unused;
    return PyLong_FromVoidPtr((char *)self->mem.handle + self->mem.offset);
}

static PyObject *device_shape(PyObject *o, void *unused)
{
    zx_device *self = (zx_device *)o;

    (void)unused;
    return zx_shape(self->ndim, self->shape);
}

void zx_memory_of_device(struct zx_memory *m, PyObject *o)
{
    zx_device *self = (zx_device *)o;

    device_tensor(&m->t, self);
    m->owner = Py_NewRef(o);
    for (int32_t d = 0; d < self->ndim; d++) {
        m->shape[d] = self->shape[d];
        m->strides[d] = self->strides[d];
    }
}

/* ---- addresses: in ---------------------------------------------------------------- */

static int read_strides(struct zx_memory *m, PyObject *strides, uint64_t item_bytes)
{
    int64_t next = (int64_t)item_bytes;

    if (strides != Py_None &&
        (!PyTuple_Check(strides) || PyTuple_Size(strides) != m->t.ndim)) {
        PyErr_SetString(PyExc_ValueError, "there is one stride for each dimension");
        return -1;
    }
    for (int32_t d = m->t.ndim - 1; d >= 0; d--) {
        if (strides == Py_None) {
            m->strides[d] = next;
            if (m->shape[d] && (uint64_t)next > (uint64_t)PY_SSIZE_T_MAX / m->shape[d]) {
                PyErr_NoMemory();
                return -1;
            }
            next *= (int64_t)m->shape[d];
        } else if ((m->strides[d] = PyLong_AsLongLong(PyTuple_GetItem(strides, d))) ==
                       -1 &&
                   PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

int zx_memory_of_address(struct zx_memory *m, zx_array *a, PyObject *tuple)
{
    static const zarr_tensor none = ZARR_TENSOR_INIT;
    uint64_t length[ZARR_MAX_RANK];
    PyObject *pointer, *shape, *strides, *owner;
    int32_t ndim;

    m->owner = NULL;
    m->is_held = false;
    m->t = none;
    if (!PyArg_ParseTuple(tuple, "OOOO", &pointer, &shape, &strides, &owner) ||
        (ndim = zx_lengths(shape, length)) < 0)
        return -1;
    m->t.data = PyLong_AsVoidPtr(pointer);
    if (PyErr_Occurred())
        return -1;
    m->t.ndim = ndim;
    for (int32_t d = 0; d < ndim; d++)
        m->shape[d] = length[d];
    if (read_strides(m, strides, zarr_dtype_item_bytes(zarr_array_dtype(a->a))))
        return -1;
    m->t.shape = m->shape;
    m->t.strides = m->strides;
    zarr_memory_classify(zarr_array_context(a->a), m->t.data, &m->t.device_type,
                         &m->t.device_id);
    if (m->t.device_type == ZARR_DEVICE_CPU && m->t.data) {
        PyErr_SetString(PyExc_ValueError, "no memory backend knows this memory of a "
                                          "device: is the plug-in for it loaded?");
        return -1;
    }
    m->owner = Py_NewRef(tuple); /* which keeps the memory */
    return 0;
}

/* _check_address(tuple): raises if no plug-in knows this memory */
PyObject *zx_array_check_address(PyObject *o, PyObject *tuple)
{
    struct zx_memory m;

    if (zx_memory_of_address(&m, (zx_array *)o, tuple))
        return NULL;
    zx_memory_deinit(&m);
    Py_RETURN_NONE;
}

static PyMethodDef device_methods[] = {{"capsule", device_capsule, METH_O, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyGetSetDef device_getset[] = {
    {"place", device_place, NULL, NULL, NULL},
    {"is_borrowed", device_is_borrowed, NULL, NULL, NULL},
    {"pointer", device_pointer, NULL, NULL, NULL},
    {"shape", device_shape, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot device_slots[] = {{Py_tp_dealloc, device_dealloc},
                                     {Py_tp_methods, device_methods},
                                     {Py_tp_getset, device_getset},
                                     {0, NULL}};
PyType_Spec zx_device_spec = {"zarrc._core.Device", sizeof(zx_device), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              device_slots};
