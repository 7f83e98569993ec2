/* dlpack.c - tensors of DLPack, for data types that NumPy's own __dlpack__ refuses, such
 * as bfloat16. Out: the type Tensor, over memory of NumPy; and bytes of the library that
 * a plug-in works on. In: a capsule of another library, as memory of a read or write. */
#include "ext.h"

#include <stdlib.h>
#include <zarrc/dlpack.h>

/* The heads of the structs of dlpack.h (DLPack 1.1), of which only the deleters are
 * called here. */
struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *manager;
    void (*deleter)(struct dl_managed *self);
};

struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

static const char plain[] = "dltensor", versioned[] = "dltensor_versioned";

/* ---- Tensor: out -------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD zx_state *st;
    zx_array *array;  /* owned: whose data type the elements have */
    PyObject *memory; /* owned */
} zx_tensor;

/* Array._tensor(memory) -> Tensor over elements that were read */
PyObject *zx_array_tensor(PyObject *o, PyObject *memory)
{
    zx_array *a = (zx_array *)o;
    zx_tensor *self = zx_alloc(a->st->tensor_type);

    if (!self)
        return NULL;
    self->st = a->st;
    self->array = (zx_array *)Py_NewRef(o);
    self->memory = Py_NewRef(memory);
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *o)
{
    zx_tensor *self = (zx_tensor *)o;

    Py_XDECREF((PyObject *)self->array);
    Py_XDECREF(self->memory);
    zx_free(o);
}

/* Keeps the memory of a tensor until its receiver deletes it, on any thread. */
static void release_view(void *user)
{
    Py_buffer *view = user;

    if (!Py_IsInitialized()) /* the memory goes with the process */
        return;
    {
        const PyGILState_STATE gil = PyGILState_Ensure();

        PyBuffer_Release(view);
        PyMem_Free(view);
        PyGILState_Release(gil);
    }
}

static void delete_managed(void *managed, bool has_version)
{
    if (has_version)
        ((struct dl_versioned *)managed)->deleter(managed);
    else
        ((struct dl_managed *)managed)->deleter(managed);
}

/* Of a capsule that no receiver took. */
static void capsule_drop(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, plain))
        delete_managed(PyCapsule_GetPointer(capsule, plain), false);
    else if (PyCapsule_IsValid(capsule, versioned))
        delete_managed(PyCapsule_GetPointer(capsule, versioned), true);
}

PyObject *zx_capsule(zx_array *array, const zarr_tensor *t, bool has_version,
                     zarr_dlpack_release release, void *user)
{
    zarr_context *ctx = zarr_array_context(array->a);
    struct DLManagedTensorVersioned *v = NULL;
    struct DLManagedTensor *m = NULL;
    PyObject *capsule;
    zarr_error err;
    zarr_status status;

    status = has_version
                 ? zarr_tensor_to_dlpack(&v, ctx, t, 0, release, user, &err)
                 : zarr_tensor_to_dlpack_unversioned(&m, ctx, t, release, user, &err);
    if (status) {
        zx_fail(array->st, &err, array->a);
        release(user);
        return NULL;
    }
    capsule = PyCapsule_New(has_version ? (void *)v : (void *)m,
                            has_version ? versioned : plain, capsule_drop);
    if (!capsule)
        delete_managed(has_version ? (void *)v : (void *)m, has_version);
    return capsule;
}

void *zx_address(const zarr_memory *m)
{
    const bool has_addresses = m->device_type == ZARR_DEVICE_CPU ||
                               m->device_type == ZARR_DEVICE_CUDA ||
                               m->device_type == ZARR_DEVICE_CUDA_HOST ||
                               m->device_type == ZARR_DEVICE_CUDA_MANAGED;

    return has_addresses && m->handle ? (char *)m->handle + m->offset : m->handle;
}

/* A tensor of bytes, in one block with its length and what it has to release. */
struct byte_tensor {
    union {
        struct dl_managed plain;
        struct dl_versioned versioned;
    } managed;
    int64_t length, stride;
    zarr_dlpack_release release;
    void *user;
};

static void free_bytes(struct byte_tensor *b)
{
    b->release(b->user);
    free(b);
}

static void delete_plain(struct dl_managed *self)
{
    free_bytes(self->manager);
}

static void delete_versioned(struct dl_versioned *self)
{
    free_bytes(self->manager);
}

PyObject *zx_bytes_capsule(const zarr_memory *m, bool is_read_only, bool has_version,
                           zarr_dlpack_release release, void *user)
{
    struct byte_tensor *b = calloc(1, sizeof *b);
    struct dl_tensor *t = NULL;
    PyObject *capsule;

    if (!b) {
        release(user);
        return PyErr_NoMemory();
    }
    t = has_version ? &b->managed.versioned.tensor : &b->managed.plain.tensor;
    b->release = release;
    b->user = user;
    b->length = (int64_t)m->bytes;
    b->stride = 1;
    t->data = zx_address(m);
    t->byte_offset = t->data && t->data == m->handle ? m->offset : 0;
    t->device.type = m->device_type;
    t->device.id = m->device_id;
    t->ndim = 1;
    t->dtype.code = 1; /* unsigned integers */
    t->dtype.bits = 8;
    t->dtype.lanes = 1;
    t->shape = &b->length;
    t->strides = &b->stride;
    if (has_version) {
        b->managed.versioned.version.major = 1;
        b->managed.versioned.manager = b;
        b->managed.versioned.deleter = delete_versioned;
        b->managed.versioned.flags = is_read_only ? ZARR_DLPACK_READ_ONLY : 0;
    } else {
        b->managed.plain.manager = b;
        b->managed.plain.deleter = delete_plain;
    }
    capsule = PyCapsule_New(&b->managed, has_version ? versioned : plain, capsule_drop);
    if (!capsule)
        free_bytes(b);
    return capsule;
}

static PyObject *make_capsule(zx_tensor *self, Py_buffer *view, bool has_version)
{
    zarr_tensor t = ZARR_TENSOR_INIT;

    t.device_type = ZARR_DEVICE_CPU;
    t.dtype = zarr_array_dtype(self->array->a);
    t.data = view->buf;
    t.ndim = view->ndim;
    t.shape = (const uint64_t *)view->shape;
    t.strides = (const int64_t *)view->strides;
    t.byte_order = self->array->order;
    return zx_capsule(self->array, &t, has_version, release_view, view);
}

/* capsule(has_version) */
static PyObject *tensor_capsule(PyObject *o, PyObject *has_version)
{
    zx_tensor *self = (zx_tensor *)o;
    const int wanted = PyObject_IsTrue(has_version);
    Py_buffer *view = wanted < 0 ? NULL : PyMem_Malloc(sizeof *view);

    if (!view)
        return wanted < 0 ? NULL : PyErr_NoMemory();
    if (PyObject_GetBuffer(self->memory, view, PyBUF_STRIDES)) {
        PyMem_Free(view);
        return NULL;
    }
    return make_capsule(self, view, wanted);
}

static PyMethodDef tensor_methods[] = {{"capsule", tensor_capsule, METH_O, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc}, {Py_tp_methods, tensor_methods}, {0, NULL}};
PyType_Spec zx_tensor_spec = {"zarrc._core.Tensor", sizeof(zx_tensor), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              tensor_slots};

/* ---- capsules of others: in ---------------------------------------------------- */

/* Describes a tensor; `m` then borrows it from the capsule. */
static zarr_status view_capsule(zarr_context *ctx, PyObject *capsule,
                                zarr_dlpack_view *out, zarr_error *err)
{
    if (PyCapsule_IsValid(capsule, versioned))
        return zarr_tensor_from_dlpack(out, ctx, PyCapsule_GetPointer(capsule, versioned),
                                       err);
    return zarr_tensor_from_dlpack_unversioned(out, ctx,
                                               PyCapsule_GetPointer(capsule, plain), err);
}

bool zx_is_capsule(PyObject *object)
{
    return PyCapsule_IsValid(object, versioned) || PyCapsule_IsValid(object, plain);
}

int zx_memory_of_capsule(struct zx_memory *m, zx_array *a, PyObject *capsule,
                         bool is_writable)
{
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;
    zarr_error err;

    if (view_capsule(zarr_array_context(a->a), capsule, &view, &err)) {
        zx_fail(a->st, &err, NULL);
        return -1;
    }
    m->is_held = false;
    if (is_writable && (view.flags & ZARR_DLPACK_READ_ONLY)) {
        PyErr_SetString(PyExc_ValueError, "out is read-only");
        return -1;
    }
    m->t = view.tensor;
    m->owner = Py_NewRef(capsule); /* which deletes the tensor */
    m->t.shape = m->shape;
    m->t.strides = m->strides;
    for (int32_t d = m->t.ndim - 1; d >= 0; d--) {
        const int64_t next = d + 1 < m->t.ndim
                                 ? m->strides[d + 1] * (int64_t)m->shape[d + 1]
                                 : (int64_t)zarr_dtype_item_bytes(m->t.dtype);

        m->shape[d] = view.shape[d];
        m->strides[d] = view.tensor.strides ? view.strides[d] : next;
    }
    return 0;
}
