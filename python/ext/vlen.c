/* vlen.c - the type Vlen: elements of variable length on their way to and from Python. A
 * read puts their bytes into a heap, from which a list of str or bytes is made, or an
 * array of NumPy's StringDType. A write borrows the bytes of the objects of a list, or
 * copies those of such an array: another thread may change its elements meanwhile. */
#include "ext.h"

#include <string.h>

enum {
    TEXT_BYTES = 2 * sizeof(size_t) /* an element of StringDType */
};

static void vlen_dealloc(PyObject *o)
{
    zx_vlen *self = (zx_vlen *)o;

    zarr_heap_free(self->heap);
    zx_kept_free(self->item);
    zx_kept_free(self->copy);
    Py_XDECREF(self->objects);
    Py_XDECREF((PyObject *)self->context);
    zx_free(o);
}

static zx_vlen *vlen_new(zx_context *context, PyObject *shape)
{
    zx_state *st = context->st;
    uint64_t length[ZARR_MAX_RANK], n = 1;
    const int32_t ndim = zx_lengths(shape, length);
    zx_vlen *self;

    if (ndim < 0)
        return NULL;
    for (int32_t d = 0; d < ndim; d++) {
        if (length[d] > (uint64_t)PY_SSIZE_T_MAX / sizeof(zarr_vlen) / (n ? n : 1)) {
            PyErr_NoMemory();
            return NULL;
        }
        n *= length[d];
    }
    self = zx_alloc(st->vlen_type);
    if (!self)
        return NULL;
    self->st = st;
    self->context = (zx_context *)Py_NewRef((PyObject *)context);
    self->n = n;
    self->ndim = ndim;
    for (int32_t d = 0; d < ndim; d++)
        self->shape[d] = (int64_t)length[d];
    self->item = zx_kept_calloc(context, n ? (size_t)n : 1, sizeof *self->item);
    if (!self->item) {
        Py_DECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    return self;
}

/* The bytes of a str or bytes object, borrowed. */
static int borrow(PyObject *object, zarr_vlen *out)
{
    Py_ssize_t n;

    if (PyUnicode_Check(object)) {
        out->data = PyUnicode_AsUTF8AndSize(object, &n);
        if (!out->data)
            return -1;
    } else if (PyBytes_Check(object)) {
        char *data;

        if (PyBytes_AsStringAndSize(object, &data, &n))
            return -1;
        out->data = data;
    } else {
        PyErr_Format(PyExc_TypeError, "elements are str or bytes, not %R", object);
        return -1;
    }
    out->bytes = (uint64_t)n;
    return 0;
}

static int fill_from(zx_vlen *self, PyObject *list)
{
    if (!PyList_Check(list) || (uint64_t)PyList_Size(list) != self->n) {
        PyErr_SetString(PyExc_ValueError, "a list with one object an element is needed");
        return -1;
    }
    self->objects = PyList_AsTuple(list); /* no thread can change it */
    if (!self->objects)
        return -1;
    for (uint64_t i = 0; i < self->n; i++)
        if (borrow(PyTuple_GetItem(self->objects, (Py_ssize_t)i), &self->item[i]))
            return -1;
    return 0;
}

/* The memory of an array of NumPy's own class with one dimension of StringDType. */
static int texts_init(struct zx_memory *m, const zx_vlen *self, PyObject *array,
                      PyObject *dtype, bool is_writable)
{
    PyObject *kind = PyObject_GetAttr(dtype, self->st->name[ZX_NAME_KIND]);
    const char *text = kind ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    const bool is_text = text && strcmp(text, "T") == 0;

    Py_XDECREF(kind);
    if (!text)
        return -1;
    if (is_text && zx_memory_of_numpy(m, self->st, array, is_writable)) {
        if (m->t.ndim == 1 && m->shape[0] == self->n)
            return 0;
        zx_memory_deinit(m);
    }
    PyErr_SetString(PyExc_ValueError, "an array with one text an element is needed");
    return -1;
}

/* Borrows all texts of an array, and says how many bytes they have. */
static int borrow_texts(zx_vlen *self, const struct zx_memory *m, void *lock,
                        size_t *bytes)
{
    const char *at = m->t.data;

    *bytes = 0;
    for (uint64_t i = 0; i < self->n; i++, at += m->strides[0]) {
        struct zx_np_text text;
        const int told = self->st->np_text.load(lock, at, &text);

        if (told || text.bytes > PY_SSIZE_T_MAX - *bytes) {
            if (told > 0)
                PyErr_SetString(PyExc_TypeError, "elements are text, and one is missing");
            else
                PyErr_NoMemory();
            return -1;
        }
        self->item[i].data = text.data;
        self->item[i].bytes = text.bytes;
        *bytes += text.bytes;
    }
    return 0;
}

static int copy_texts(zx_vlen *self, const struct zx_memory *m, void *lock)
{
    size_t bytes;
    char *to;

    if (borrow_texts(self, m, lock, &bytes))
        return -1;
    to = self->copy = zx_kept_calloc(self->context, bytes ? bytes : 1, 1);
    if (!to) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint64_t i = 0; i < self->n; i++) {
        zarr_vlen *v = &self->item[i];

        if (v->bytes)
            memcpy(to, v->data, (size_t)v->bytes);
        v->data = to;
        to += v->bytes;
    }
    return 0;
}

static int fill_from_texts(zx_vlen *self, PyObject *array)
{
    const struct zx_np_text_api *api = &self->st->np_text;
    PyObject *dtype = PyObject_GetAttr(array, self->st->name[ZX_NAME_DTYPE]);
    struct zx_memory m;
    void *lock;
    int st;

    if (!dtype || texts_init(&m, self, array, dtype, false)) {
        Py_XDECREF(dtype);
        return -1;
    }
    lock = api->lock(dtype);
    st = copy_texts(self, &m, lock);
    api->unlock(lock);
    zx_memory_deinit(&m);
    Py_DECREF(dtype);
    return st;
}

/* Elements of a list, or of an array of StringDType. */
static int fill(zx_vlen *self, PyObject *elements)
{
    PyObject *list;
    int st;

    if ((PyObject *)Py_TYPE(elements) != self->st->np_array)
        return fill_from(self, elements);
    if (self->st->np_text.load)
        return fill_from_texts(self, elements);
    list = PyObject_CallMethod(elements, "tolist", NULL);
    st = list ? fill_from(self, list) : -1;
    Py_XDECREF(list);
    return st;
}

/* Array.vlen(shape, elements=None) -> Vlen: with elements for a write, else with room for
 * a read */
PyObject *zx_array_vlen(PyObject *o, PyObject *args)
{
    zx_array *a = (zx_array *)o;
    PyObject *shape, *elements = Py_None;
    zx_vlen *self;
    zarr_error err;

    if (!PyArg_ParseTuple(args, "O|O", &shape, &elements))
        return NULL;
    self = vlen_new(a->store->context, shape);
    if (!self)
        return NULL;
    if (elements != Py_None) {
        if (fill(self, elements))
            Py_CLEAR(self);
    } else if (zarr_heap_create(&self->heap, zarr_array_context(a->a), 0, &err)) {
        Py_DECREF(self);
        return zx_fail(a->st, &err, NULL);
    }
    return (PyObject *)self;
}

/* list(is_text) -> list of str, or of bytes */
static PyObject *vlen_list(PyObject *o, PyObject *is_text)
{
    const zx_vlen *self = (zx_vlen *)o;
    const int text = PyObject_IsTrue(is_text);
    PyObject *list = text < 0 ? NULL : PyList_New((Py_ssize_t)self->n);

    for (uint64_t i = 0; list && i < self->n; i++) {
        const zarr_vlen *v = &self->item[i];
        const char *data = v->data ? v->data : "";
        PyObject *one = text ? PyUnicode_DecodeUTF8(data, (Py_ssize_t)v->bytes, NULL)
                             : PyBytes_FromStringAndSize(data, (Py_ssize_t)v->bytes);

        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one))
            Py_CLEAR(list);
    }
    return list;
}

/* The codecs of the library check text. Those of a plug-in may give other bytes. */
static bool is_ascii(const char *p, size_t n)
{
    uint64_t word = 0, some;

    for (; n >= sizeof some; p += sizeof some, n -= sizeof some) {
        memcpy(&some, p, sizeof some);
        word |= some;
    }
    for (; n; n--)
        word |= (uint8_t)*p++;
    return !(word & UINT64_C(0x8080808080808080));
}

static int check_text(const zarr_vlen *v)
{
    PyObject *text;

    if (is_ascii(v->data, (size_t)v->bytes))
        return 0;
    text = PyUnicode_DecodeUTF8(v->data, (Py_ssize_t)v->bytes, NULL);
    Py_XDECREF(text);
    return text ? 0 : -1;
}

static int store_texts(const zx_vlen *self, const struct zx_memory *m, void *lock)
{
    char *at = m->t.data;

    for (uint64_t i = 0; i < self->n; i++, at += m->strides[0]) {
        const zarr_vlen *v = &self->item[i];

        if (check_text(v))
            return -1;
        if (v->bytes && self->st->np_text.store(lock, at, v->data, (size_t)v->bytes)) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

/* texts(dtype) -> array of StringDType with one dimension; None: NumPy has no functions
 * for it */
static PyObject *vlen_texts(PyObject *o, PyObject *dtype)
{
    const zx_vlen *self = (zx_vlen *)o;
    const struct zx_np_text_api *api = &self->st->np_text;
    const struct zx_wish wish = {
        .ndim = 1, .shape = {self->n}, .bytes = self->n * TEXT_BYTES, .dtype = dtype};
    PyObject *out, *own = NULL;
    struct zx_memory m;
    void *lock;

    if (!api->store)
        Py_RETURN_NONE;
    if (!PyObject_TypeCheck(dtype, (PyTypeObject *)self->st->np_dtype)) {
        PyErr_SetString(PyExc_TypeError, "a data type of NumPy is needed");
        return NULL;
    }
    out = zx_empty(self->context, &wish);
    if (out)
        own = PyObject_GetAttr(out, self->st->name[ZX_NAME_DTYPE]);
    if (!own || texts_init(&m, self, out, own, true)) {
        Py_XDECREF(own);
        Py_XDECREF(out);
        return NULL;
    }
    lock = api->lock(own);
    if (store_texts(self, &m, lock))
        Py_CLEAR(out);
    api->unlock(lock);
    zx_memory_deinit(&m);
    Py_DECREF(own);
    return out;
}

static PyObject *vlen_shape(PyObject *o, void *unused)
{
    const zx_vlen *self = (zx_vlen *)o;
    uint64_t shape[ZARR_MAX_RANK];

    (void)unused;
    for (int32_t d = 0; d < self->ndim; d++)
        shape[d] = (uint64_t)self->shape[d];
    return zx_shape(self->ndim, shape);
}

static PyMethodDef vlen_methods[] = {{"list", vlen_list, METH_O, NULL},
                                     {"texts", vlen_texts, METH_O, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyGetSetDef vlen_getset[] = {{"shape", vlen_shape, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot vlen_slots[] = {{Py_tp_dealloc, vlen_dealloc},
                                   {Py_tp_methods, vlen_methods},
                                   {Py_tp_getset, vlen_getset},
                                   {0, NULL}};
PyType_Spec zx_vlen_spec = {"zarrc._core.Vlen", sizeof(zx_vlen), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            vlen_slots};
