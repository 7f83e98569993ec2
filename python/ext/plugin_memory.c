/* plugin_memory.c - the type ChunkMemory: the bytes of one chunk in memory of the
 * library, which an implementation of a codec reads or writes during one call. Other
 * libraries take it without a copy: by DLPack, by the CUDA array interface, or by the
 * buffer protocol where the CPU can use it. A lease counts what is alive, because the
 * memory goes back to the library when the call ends. */
#include "plugin.h"

#include <stdlib.h>

typedef struct {
    PyObject_HEAD zx_state *st;
    struct zx_lease *lease;
    zarr_memory mem;
    bool is_output;
} chunk_memory;

struct zx_lease *zx_lease_new(void)
{
    struct zx_lease *lease = calloc(1, sizeof *lease);

    if (!lease)
        PyErr_NoMemory();
    else
        atomic_init(&lease->n, 1);
    return lease;
}

static struct zx_lease *lease_ref(struct zx_lease *lease)
{
    atomic_fetch_add(&lease->n, 1);
    return lease;
}

/* On any thread, without the GIL: it ends an export, too. */
void zx_lease_unref(void *lease)
{
    if (lease && atomic_fetch_sub(&((struct zx_lease *)lease)->n, 1) == 1)
        free(lease);
}

static PyObject *memory_new(zx_state *st, struct zx_lease *lease, const zarr_memory *mem,
                            bool is_output)
{
    chunk_memory *self = zx_alloc(st->chunk_memory_type);

    if (!self)
        return NULL;
    self->st = st;
    self->lease = lease_ref(lease);
    self->mem = *mem;
    self->is_output = is_output;
    return (PyObject *)self;
}

static void memory_dealloc(PyObject *o)
{
    zx_lease_unref(((chunk_memory *)o)->lease);
    zx_free(o);
}

PyObject *zx_chunk_memories(zx_state *st, struct zx_lease *lease,
                            const zarr_codec_job *jobs, uint64_t n)
{
    PyObject *inputs = PyList_New((Py_ssize_t)n), *outputs = PyList_New((Py_ssize_t)n);

    for (uint64_t i = 0; inputs && outputs && i < n; i++) {
        PyObject *in = memory_new(st, lease, &jobs[i].src, false);
        PyObject *out = memory_new(st, lease, &jobs[i].dst, true);
        const bool has_both = in && out;

        if ((in && PyList_SetItem(inputs, (Py_ssize_t)i, in)) ||
            (out && PyList_SetItem(outputs, (Py_ssize_t)i, out)) || !has_both)
            Py_CLEAR(inputs);
    }
    if (inputs && outputs)
        return Py_BuildValue("(NN)", inputs, outputs);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    return NULL;
}

const zarr_memory *zx_chunk_memory(zx_state *st, const struct zx_lease *lease,
                                   PyObject *object, bool is_output)
{
    const chunk_memory *self = (const chunk_memory *)object;

    if (Py_TYPE(object) != st->chunk_memory_type || self->lease != lease ||
        self->is_output != is_output) {
        PyErr_Format(PyExc_TypeError, "%R is not one of the %s of this call", object,
                     is_output ? "outputs" : "inputs");
        return NULL;
    }
    return &self->mem;
}

/* ---- what other libraries ask ------------------------------------------------- */

static int check_lease(const chunk_memory *self)
{
    if (!atomic_load(&self->lease->is_over))
        return 0;
    PyErr_SetString(PyExc_BufferError,
                    "the call of the implementation has ended, and its memory with it");
    return -1;
}

static bool is_cuda(const zarr_memory *m)
{
    return m->device_type == ZARR_DEVICE_CUDA ||
           m->device_type == ZARR_DEVICE_CUDA_HOST ||
           m->device_type == ZARR_DEVICE_CUDA_MANAGED;
}

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None). The input is
 * complete, and nothing else uses the output: no stream has to wait. */
static PyObject *memory_dlpack(PyObject *o, PyObject *args, PyObject *named)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    chunk_memory *self = (chunk_memory *)o;
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    int32_t number[2];
    long major = 0, minor = 0;

    if (!PyArg_ParseTupleAndKeywords(args, named, "|$OOOO", names, &stream, &version,
                                     &device, &copy) ||
        check_lease(self))
        return NULL;
    if (version && version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor))
        return NULL;
    if (device && device != Py_None &&
        (!PyArg_ParseTuple(device, "ii", &number[0], &number[1]) ||
         number[0] != self->mem.device_type || number[1] != self->mem.device_id)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_BufferError, "the bytes stay on their device");
        return NULL;
    }
    if (copy && copy != Py_None && PyObject_IsTrue(copy)) {
        PyErr_SetString(PyExc_BufferError, "the bytes are not copied");
        return NULL;
    }
    return zx_bytes_capsule(&self->mem, !self->is_output, major >= 1, zx_lease_unref,
                            lease_ref(self->lease));
}

static PyObject *memory_dlpack_device(PyObject *o, PyObject *unused)
{
    const zarr_memory *m = &((chunk_memory *)o)->mem;

    (void)unused;
    return Py_BuildValue("(ii)", (int)m->device_type, (int)m->device_id);
}

static PyObject *memory_interface(PyObject *o, void *unused)
{
    chunk_memory *self = (chunk_memory *)o;
    const zarr_memory *m = &self->mem;

    (void)unused;
    if (!is_cuda(m)) {
        PyErr_SetString(PyExc_AttributeError, "the memory is not of CUDA");
        return NULL;
    }
    if (check_lease(self))
        return NULL;
    return Py_BuildValue("{s(K)sss(NO)sOsOsi}", "shape", (unsigned long long)m->bytes,
                         "typestr", "|u1", "data",
                         PyLong_FromVoidPtr(m->bytes ? zx_address(m) : NULL),
                         self->is_output ? Py_False : Py_True, "strides", Py_None,
                         "stream", Py_None, "version", 3);
}

static int memory_getbuffer(PyObject *o, Py_buffer *view, int flags)
{
    static char none[1];
    chunk_memory *self = (chunk_memory *)o;
    const zarr_memory *m = &self->mem;

    view->obj = NULL;
    if (m->device_type != ZARR_DEVICE_CPU && m->device_type != ZARR_DEVICE_CUDA_HOST) {
        PyErr_SetString(PyExc_BufferError,
                        "the CPU cannot use this memory: take it by DLPack");
        return -1;
    }
    if (check_lease(self))
        return -1;
    return PyBuffer_FillInfo(view, o, m->bytes ? zx_address(m) : none,
                             (Py_ssize_t)m->bytes, !self->is_output, flags);
}

static PyObject *memory_nbytes(PyObject *o, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(((chunk_memory *)o)->mem.bytes);
}

static PyObject *memory_shape(PyObject *o, void *unused)
{
    (void)unused;
    return zx_shape(1, &((chunk_memory *)o)->mem.bytes);
}

static PyObject *memory_dtype(PyObject *o, void *unused)
{
    (void)unused;
    return PyObject_CallFunction(((chunk_memory *)o)->st->np_dtype, "s", "u1");
}

static Py_ssize_t memory_length(PyObject *o)
{
    return (Py_ssize_t)((chunk_memory *)o)->mem.bytes;
}

static PyObject *memory_repr(PyObject *o)
{
    const chunk_memory *self = (chunk_memory *)o;

    return PyUnicode_FromFormat("<ChunkMemory of an %s, %llu bytes, device (%d, %d)>",
                                self->is_output ? "output" : "input",
                                (unsigned long long)self->mem.bytes,
                                (int)self->mem.device_type, (int)self->mem.device_id);
}

static PyMethodDef memory_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))memory_dlpack,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", memory_dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef memory_members[] = {
    {"nbytes", memory_nbytes, NULL, NULL, NULL},
    {"shape", memory_shape, NULL, NULL, NULL},
    {"dtype", memory_dtype, NULL, NULL, NULL},
    {"__cuda_array_interface__", memory_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot memory_slots[] = {{Py_tp_dealloc, memory_dealloc},
                                     {Py_tp_methods, memory_methods},
                                     {Py_tp_getset, memory_members},
                                     {Py_tp_repr, memory_repr},
                                     {Py_sq_length, memory_length},
                                     {Py_bf_getbuffer, memory_getbuffer},
                                     {0, NULL}};
PyType_Spec zx_chunk_memory_spec = {
    "zarrc._core.ChunkMemory", sizeof(chunk_memory), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};
