/* outputs.c - memory of new arrays of NumPy that a read fills. New pages from the system
 * cost more than decoding into them, and malloc gives large blocks back at once. So the
 * blocks of large arrays that are freed are kept, up to a limit, for the next read, and
 * so is the room in which texts come before an array of NumPy has them.
 *
 * NumPy lets a program allocate the data of its arrays (NEP 49, NumPy 1.22). The arrays
 * own their data like all others: NumPy resizes them in place, and reuses temporaries.
 * There are no headers of NumPy here: what they declare for this is written down below,
 * and its ABI is asked first. With another ABI all arrays come from NumPy's allocator.
 *
 * Arrays are freed by any thread, perhaps after the array that they were read from, so
 * the blocks belong to the process. Idle blocks lose their contents when the system needs
 * memory (MADV_FREE). The child of a fork begins with no idle blocks: its parent has the
 * pages of those. */
#include "ext.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEAST_BYTES = 4 << 20, /* malloc itself keeps what is smaller */
    UNIT_BYTES = 2 << 20,  /* a huge page */
    N_LISTS = 64           /* of blocks in use, by address */
};

/* ---- as NumPy's headers declare it ------------------------------------------ */

struct numpy_handler {
    char name[127];
    uint8_t version;
    struct {
        void *ctx;
        void *(*malloc)(void *ctx, size_t bytes);
        void *(*calloc)(void *ctx, size_t n, size_t bytes);
        void *(*realloc)(void *ctx, void *p, size_t bytes);
        void (*free)(void *ctx, void *p, size_t bytes);
    } allocator;
};

/* How each array begins. */
struct numpy_array {
    PyObject_HEAD char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
};

enum {
    IS_WRITABLE = 0x400 /* a flag of arrays */
};

enum { /* places in the table of NumPy's functions */
    ABI_VERSION = 0,
    EMPTY = 184,
    API_VERSION = 211,
    SET_HANDLER = 304,
    LOAD_TEXT = 313,
    STORE_TEXT = 314,
    LOCK_TEXTS = 316,
    UNLOCK_TEXTS = 318,
    LEAST_API = 0xf, /* 1.22 */
    TEXT_API = 0x12  /* 2.0, the first with StringDType */
};

/* ---- blocks ----------------------------------------------------------------- */

struct block {
    struct block *next;
    zarr_memory mem;
};

static struct {
    pthread_mutex_t mutex;
    zarr_context *ctx;           /* owned for ever: it allocates and frees all blocks */
    struct block *used[N_LISTS]; /* of arrays that live */
    struct block *idle;          /* newest first */
    uint64_t used_bytes, idle_bytes, most_bytes;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct block **used_list(const void *p)
{
    return &kept.used[(uintptr_t)p / UNIT_BYTES % N_LISTS];
}

static void put_used(struct block *b)
{
    struct block **list = used_list(b->mem.handle);

    b->next = *list;
    *list = b;
    kept.used_bytes += b->mem.bytes;
}

/* Where the list has the block of an address; NULL: it is none of ours. */
static struct block **find_used(const void *p)
{
    struct block **at = used_list(p);

    while (*at && (*at)->mem.handle != p)
        at = &(*at)->next;
    return *at ? at : NULL;
}

/* Frees blocks that are in no list, without the lock. */
static void give_back(struct block *b)
{
    while (b) {
        struct block *next = b->next;

        zarr_memory_free(kept.ctx, &b->mem);
        free(b);
        b = next;
    }
}

/* Cuts the oldest idle blocks off, until the rest has at most `most` bytes. */
static struct block *cut_idle(uint64_t most)
{
    struct block **at = &kept.idle, *rest;
    uint64_t bytes = 0;

    while (*at && (*at)->mem.bytes <= most - bytes) {
        bytes += (*at)->mem.bytes;
        at = &(*at)->next;
    }
    rest = *at;
    *at = NULL;
    kept.idle_bytes = bytes;
    return rest;
}

/* Takes the smallest idle block that fits and is not much larger. */
static struct block *take_idle(uint64_t bytes)
{
    struct block **best = NULL, *b;

    for (struct block **at = &kept.idle; *at; at = &(*at)->next)
        if ((*at)->mem.bytes >= bytes && (*at)->mem.bytes - bytes <= bytes / 4 &&
            (!best || (*at)->mem.bytes < (*best)->mem.bytes))
            best = at;
    if (!best)
        return NULL;
    b = *best;
    *best = b->next;
    kept.idle_bytes -= b->mem.bytes;
    put_used(b);
    return b;
}

/* Frees what is idle. */
static void trim_outputs(void)
{
    struct block *rest;

    pthread_mutex_lock(&kept.mutex);
    rest = cut_idle(0);
    pthread_mutex_unlock(&kept.mutex);
    give_back(rest);
}

/* A new block on huge pages; NULL: there is no memory. */
static struct block *make(uint64_t bytes)
{
    struct block *b = calloc(1, sizeof *b);
    zarr_error err;

    if (!b || zarr_memory_alloc_from(&b->mem, kept.ctx, "host", 0, bytes, &err)) {
        free(b);
        return NULL;
    }
    return b;
}

/* ---- what NumPy calls ------------------------------------------------------- */

static _Thread_local bool makes_output; /* this thread is in zx_empty() */

static void *output_malloc(void *unused, size_t bytes)
{
    struct block *b;
    uint64_t room;

    (void)unused;
    if (!makes_output || bytes < LEAST_BYTES || bytes > SIZE_MAX - UNIT_BYTES)
        return malloc(bytes);
    room = (bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
    pthread_mutex_lock(&kept.mutex);
    b = take_idle(room);
    pthread_mutex_unlock(&kept.mutex);
    if (b)
        return b->mem.handle;
    b = make(room);
    if (!b) {
        trim_outputs();
        b = make(room);
    }
    if (!b)
        return NULL;
    pthread_mutex_lock(&kept.mutex);
    put_used(b);
    pthread_mutex_unlock(&kept.mutex);
    return b->mem.handle;
}

/* NumPy wants zeros for elements of StringDType. */
static void *output_calloc(void *unused, size_t n, size_t bytes)
{
    void *p;

    if (!makes_output || n < LEAST_BYTES / (bytes ? bytes : 1) ||
        n > SIZE_MAX / (bytes ? bytes : 1))
        return calloc(n, bytes);
    p = output_malloc(unused, n * bytes);
    if (p)
        memset(p, 0, n * bytes);
    return p;
}

/* The system may take the pages of an idle block. */
static void lend_pages(const zarr_memory *mem)
{
#ifdef MADV_FREE
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)mem->handle, end = first + (uintptr_t)mem->bytes;
    const uintptr_t low = (first + page - 1) / page * page, high = end / page * page;

    if (low < high)
        (void)madvise((char *)mem->handle + (low - first), high - low, MADV_FREE);
#else
    (void)mem;
#endif
}

/* Takes a block out of the list of those in use; NULL: it is none of ours. */
static struct block *take_used(const void *p)
{
    struct block **at, *b = NULL;

    pthread_mutex_lock(&kept.mutex);
    at = find_used(p);
    if (at) {
        b = *at;
        *at = b->next;
        kept.used_bytes -= b->mem.bytes;
    }
    pthread_mutex_unlock(&kept.mutex);
    return b;
}

static void output_free(void *unused, void *p, size_t bytes)
{
    struct block *b = p ? take_used(p) : NULL;

    (void)unused;
    (void)bytes;
    if (!b) {
        free(p);
        return;
    }
    lend_pages(&b->mem);
    pthread_mutex_lock(&kept.mutex);
    b->next = kept.idle;
    kept.idle = b;
    b = cut_idle(kept.most_bytes);
    pthread_mutex_unlock(&kept.mutex);
    give_back(b);
}

/* Bytes of a block in use; 0: it is none of ours. */
static uint64_t bytes_of_used(const void *p)
{
    struct block **at;
    uint64_t bytes;

    pthread_mutex_lock(&kept.mutex);
    at = find_used(p);
    bytes = at ? (*at)->mem.bytes : 0;
    pthread_mutex_unlock(&kept.mutex);
    return bytes;
}

static void *output_realloc(void *unused, void *p, size_t bytes)
{
    const uint64_t has = p ? bytes_of_used(p) : 0;
    void *other;

    if (!has)
        return realloc(p, bytes);
    if (bytes <= has && bytes >= has / 2)
        return p;
    other = malloc(bytes);
    if (!other)
        return NULL;
    memcpy(other, p, bytes < has ? bytes : (size_t)has);
    output_free(unused, p, 0);
    return other;
}

/* ---- forks ------------------------------------------------------------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&kept.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&kept.mutex);
}

static void after_fork_in_child(void)
{
    struct block *rest = cut_idle(0);

    pthread_mutex_unlock(&kept.mutex);
    give_back(rest);
}

static void follow_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* ---- arrays ----------------------------------------------------------------- */

static struct numpy_handler handler = {
    .name = "zarrc",
    .version = 1,
    .allocator = {NULL, output_malloc, output_calloc, output_realloc, output_free}};

/* Finds the functions of NumPy in its table. They stay NULL if it has another ABI. */
static void find_functions(zx_state *st, void **table)
{
    unsigned (*abi)(void), (*api)(void);

    st->np_set_handler = NULL;
    st->np_make = NULL;
    memset(&st->np_text, 0, sizeof st->np_text);
    if (!table)
        return;
    memcpy(&abi, &table[ABI_VERSION], sizeof abi);
    if (abi() != 0x2000000 && abi() != 0x1000009)
        return;
    memcpy(&api, &table[API_VERSION], sizeof api);
    if (api() < LEAST_API)
        return;
    memcpy(&st->np_set_handler, &table[SET_HANDLER], sizeof st->np_set_handler);
    memcpy(&st->np_make, &table[EMPTY], sizeof st->np_make);
    if (api() < TEXT_API)
        return;
    memcpy(&st->np_text.load, &table[LOAD_TEXT], sizeof st->np_text.load);
    memcpy(&st->np_text.store, &table[STORE_TEXT], sizeof st->np_text.store);
    memcpy(&st->np_text.lock, &table[LOCK_TEXTS], sizeof st->np_text.lock);
    memcpy(&st->np_text.unlock, &table[UNLOCK_TEXTS], sizeof st->np_text.unlock);
}

int zx_outputs_init(zx_state *st, PyObject *numpy_api)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void **table = numpy_api == Py_None ? NULL : PyCapsule_GetPointer(numpy_api, NULL);

    PyErr_Clear(); /* it has another table */
    pthread_once(&once, follow_forks);
    find_functions(st, table);
    if (!st->np_set_handler || st->output_handler)
        return 0;
    st->output_handler = PyCapsule_New(&handler, "mem_handler", NULL);
    return st->output_handler ? 0 : -1;
}

static PyObject *call_numpy(zx_state *st, const struct zx_wish *w)
{
    PyObject *shape = zx_shape(w->ndim, w->shape), *out = NULL;

    if (shape)
        out = w->is_fortran
                  ? PyObject_CallFunction(st->np_empty, "OOs", shape, w->dtype, "F")
                  : PyObject_CallFunctionObjArgs(st->np_empty, shape, w->dtype, NULL);
    Py_XDECREF(shape);
    return out;
}

/* The same without objects for the arguments. */
static PyObject *empty_of_numpy(zx_state *st, const struct zx_wish *w)
{
    Py_ssize_t shape[ZARR_MAX_RANK];

    if (!st->np_make)
        return call_numpy(st, w);
    for (int32_t d = 0; d < w->ndim; d++) {
        if (w->shape[d] > (uint64_t)PY_SSIZE_T_MAX)
            return call_numpy(st, w);
        shape[d] = (Py_ssize_t)w->shape[d];
    }
    return st->np_make(w->ndim, shape, Py_NewRef(w->dtype), w->is_fortran);
}

void *zx_data_of_new(zx_state *st, PyObject *array)
{
    return st->np_make ? ((struct numpy_array *)array)->data : NULL;
}

bool zx_memory_of_numpy(struct zx_memory *m, zx_state *st, PyObject *array,
                        bool is_writable)
{
    static const zarr_tensor none = ZARR_TENSOR_INIT;
    const struct numpy_array *a = (const struct numpy_array *)array;

    if (!st->np_make || (is_writable && !(a->flags & IS_WRITABLE)) ||
        a->ndim > ZARR_MAX_RANK)
        return false;
    m->t = none;
    m->t.device_type = ZARR_DEVICE_CPU;
    m->t.data = a->data;
    m->t.ndim = a->ndim;
    m->t.shape = m->shape;
    m->t.strides = m->strides;
    for (int d = 0; d < a->ndim; d++) {
        m->shape[d] = (uint64_t)a->shape[d];
        m->strides[d] = a->strides[d];
    }
    m->owner = Py_NewRef(array);
    m->is_held = false;
    return true;
}

/* Whether a block of this length is kept when its array is freed. */
static bool is_kept(zarr_context *ctx, uint64_t bytes)
{
    bool fits;

    pthread_mutex_lock(&kept.mutex);
    fits = bytes <= kept.most_bytes;
    if (fits && !kept.ctx)
        kept.ctx = zarr_context_ref(ctx);
    pthread_mutex_unlock(&kept.mutex);
    return fits;
}

/* Puts our allocator in place of NumPy's own, and returns that. NULL: the program gave
 * NumPy another one, which stays. */
static PyObject *replace_handler(zx_state *st)
{
    PyObject *usual = st->np_set_handler(st->output_handler);
    const struct numpy_handler *of =
        usual ? PyCapsule_GetPointer(usual, "mem_handler") : NULL;

    if (of && strcmp(of->name, "default_allocator") == 0)
        return usual;
    PyErr_Clear();
    if (usual)
        Py_XDECREF(st->np_set_handler(usual));
    PyErr_Clear();
    Py_XDECREF(usual);
    return NULL;
}

PyObject *zx_empty(zx_context *context, const struct zx_wish *w)
{
    zx_state *st = context->st;
    PyObject *usual = NULL, *out, *type, *value, *trace;

    if (w->bytes >= LEAST_BYTES && st->np_set_handler && is_kept(context->ctx, w->bytes))
        usual = replace_handler(st);
    if (!usual)
        return empty_of_numpy(st, w);
    makes_output = true;
    out = empty_of_numpy(st, w);
    makes_output = false;
    PyErr_Fetch(&type, &value, &trace);
    Py_XDECREF(st->np_set_handler(usual));
    Py_DECREF(usual);
    if (type) {
        Py_XDECREF(out);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    if (PyErr_Occurred())
        Py_CLEAR(out);
    return out;
}

void *zx_kept_calloc(zx_context *context, size_t n, size_t bytes)
{
    void *p;

    makes_output = n <= SIZE_MAX / bytes && n * bytes >= LEAST_BYTES &&
                   is_kept(context->ctx, n * bytes);
    p = output_calloc(NULL, n, bytes);
    makes_output = false;
    return p;
}

void zx_kept_free(void *p)
{
    output_free(NULL, p, 0);
}

/* _empty(shape, dtype, is_fortran, bytes) */
PyObject *zx_context_empty(PyObject *o, PyObject *args)
{
    zx_context *self = (zx_context *)o;
    unsigned long long bytes;
    struct zx_wish w;
    PyObject *shape;
    int is_fortran;

    if (!PyArg_ParseTuple(args, "OO!pK", &shape, self->st->np_dtype, &w.dtype,
                          &is_fortran, &bytes))
        return NULL;
    w.ndim = zx_lengths(shape, w.shape);
    if (w.ndim < 0)
        return NULL;
    w.bytes = bytes;
    w.is_fortran = is_fortran != 0;
    return zx_empty(self, &w);
}

/* ---- functions of the module ------------------------------------------------ */

/* Whether elements are plain bytes, and how many an element has; 0: they are not. */
static uint64_t plain_bytes(zx_state *st, PyObject *dtype)
{
    PyObject *kind = PyObject_GetAttr(dtype, st->name[ZX_NAME_KIND]);
    PyObject *size = PyObject_GetAttr(dtype, st->name[ZX_NAME_ITEMSIZE]);
    const char *text = kind ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    uint64_t bytes =
        text && strchr("?biufc", *text) && size ? PyLong_AsUnsignedLongLong(size) : 0;

    Py_XDECREF(kind);
    Py_XDECREF(size);
    return PyErr_Occurred() ? 0 : bytes;
}

/* empty(shape, dtype, order) -> a new small array of numbers as numpy.empty() makes it;
 * None: it is large, or zarrc/_outputs.py or NumPy must look at an argument */
PyObject *zx_small_empty(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *shape, *order;
    struct zx_wish w;

    if (!PyArg_ParseTuple(args, "OOO", &shape, &w.dtype, &order))
        return NULL;
    if (!PyUnicode_Check(order))
        Py_RETURN_NONE;
    w.ndim = zx_lengths(shape, w.shape);
    w.bytes = w.ndim >= 0 && PyObject_TypeCheck(w.dtype, (PyTypeObject *)st->np_dtype)
                  ? plain_bytes(st, w.dtype)
                  : 0;
    for (int32_t d = 0; d < w.ndim; d++)
        w.bytes = w.bytes < LEAST_BYTES && w.shape[d] < LEAST_BYTES ? w.bytes * w.shape[d]
                                                                    : LEAST_BYTES;
    w.is_fortran = PyUnicode_CompareWithASCIIString(order, "F") == 0;
    if (w.bytes > 0 && w.bytes < LEAST_BYTES &&
        (w.is_fortran || PyUnicode_CompareWithASCIIString(order, "C") == 0))
        return empty_of_numpy(st, &w);
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* keep_outputs(bytes): the limit of idle blocks; 0 keeps none */
PyObject *zx_keep_outputs(PyObject *module, PyObject *number)
{
    const unsigned long long most = PyLong_AsUnsignedLongLong(number);
    struct block *rest;

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    pthread_mutex_lock(&kept.mutex);
    kept.most_bytes = most;
    rest = cut_idle(most);
    pthread_mutex_unlock(&kept.mutex);
    give_back(rest);
    Py_RETURN_NONE;
}

/* outputs() -> (bytes of blocks in use, bytes of idle blocks) */
PyObject *zx_outputs(PyObject *module, PyObject *unused)
{
    uint64_t used, idle;

    (void)module;
    (void)unused;
    pthread_mutex_lock(&kept.mutex);
    used = kept.used_bytes;
    idle = kept.idle_bytes;
    pthread_mutex_unlock(&kept.mutex);
    return Py_BuildValue("(KK)", (unsigned long long)used, (unsigned long long)idle);
}
