/*
 * ext.h - what the files of the extension `zarrc._core` share. The extension turns
 * objects of Python into arguments of libzarrc and results into objects. It has no codec
 * and no chunk logic. It is plain C against the limited API of CPython 3.11 and the
 * buffer protocol; a free-threaded interpreter gets its own build of the same source.
 *
 * No thread of the library ever calls Python (only the deleter of a DLPack tensor, which
 * another library calls, takes the GIL). What such a thread has to tell (a log line,
 * the end of a request) goes into a list without locks, from which a thread of Python
 * takes it. A thread of the library waits for Python only where it asks a plug-in that is
 * written in Python (plugin.h), or needs an answer of a store of Python before it goes on
 * (foreign.h): each call that may do so is made without the GIL. The interpreter may end
 * at any time.
 */
#ifndef ZARRC_PYTHON_EXT_H
#define ZARRC_PYTHON_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <zarrc/dlpack.h>
#include <zarrc/zarrc.h>

/* Headers from 3.12 on take None for immortal, also in the limited API of 3.11, where it
 * is not: each return would give away a reference that the interpreter has. */
#undef Py_RETURN_NONE
#define Py_RETURN_NONE return Py_NewRef(Py_None)

/* Attributes of objects of zarr-python and of NumPy. */
enum {
    ZX_NAME_STORE,
    ZX_NAME_PATH,
    ZX_NAME_SHAPE,
    ZX_NAME_DTYPE,
    ZX_NAME_KIND,
    ZX_NAME_ITEMSIZE,
    ZX_NAME_IS_OPEN,
    ZX_NAME_DATA,
    ZX_NAME_STORE_DICT,
    ZX_N_NAMES
};

/* Text as NumPy's StringDType gives it: its bytes are valid while the type is locked. */
struct zx_np_text {
    size_t bytes;
    const char *data;
};

/* NumPy's functions for elements of StringDType; NULL: it has none. */
struct zx_np_text_api {
    void *(*lock)(PyObject *dtype);
    void (*unlock)(void *lock);
    /* 0: done, 1: the element is missing, -1: no memory */
    int (*load)(void *lock, const void *element, struct zx_np_text *out);
    /* 0: done, -1: no memory */
    int (*store)(void *lock, void *element, const char *data, size_t bytes);
};

/* What the package binds with bind(), and the types. One for each module object. */
typedef struct zx_state {
    PyObject *make_error; /* (code, message, facts) -> exception */
    PyObject *on_log;     /* (level, text) */
    PyObject *np_empty;   /* numpy.empty */
    PyObject *np_array;   /* numpy.ndarray */
    PyObject *np_dtype;   /* numpy.dtype */
    /* Functions of NumPy for C; NULL: it has another ABI. */
    PyObject *(*np_set_handler)(PyObject *handler);
    PyObject *(*np_make)(int ndim, const Py_ssize_t *shape, PyObject *dtype, int fortran);
    struct zx_np_text_api np_text;
    PyObject *output_handler; /* outputs.c */
    PyObject *describe;       /* (core array) -> (NumPy's data type, byte order, how) */
    PyObject *ask_threads; /* () -> threads of a call, once while `asks`; may be NULL */
    atomic_bool asks;
    atomic_uint max_threads; /* what it said; 0: the context's */
    PyObject *flights;       /* set of requests in flight, which own their memory */
    PyTypeObject *context_type, *store_type, *array_type, *group_type, *selection_type;
    PyTypeObject *vlen_type, *request_type, *queue_type, *tensor_type, *block_type;
    PyTypeObject *service_type, *batch_type, *device_type, *lock_type;
    PyTypeObject *plugin_service_type, *plugin_call_type, *chunk_memory_type;
    PyTypeObject *quick_type;
    PyObject *name[ZX_N_NAMES];                /* of attributes, by ZX_NAME_* */
    atomic_ullong quick_batches, quick_chunks; /* of Quick, for `zarrc.pipeline_stats` */
    unsigned long main_thread;                 /* the only one that signals interrupt */
} zx_state;

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_context *ctx;
} zx_context;

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_store *s;
    zx_context *context; /* owned */
    bool is_fast;        /* ZARR_STORE_CAP_FAST_GET */
    bool is_read_only;   /* also if only this view of it is */
    bool flushes_each;   /* each write of an array ends with a flush */
} zx_store;

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_selection *sel;
} zx_selection;

/* How elements travel. */
enum {
    ZX_PLAIN = 0, /* as they are, through the buffer protocol */
    ZX_VLEN = 1,  /* as zarr_vlen, through a Vlen */
    ZX_OTHER = 2, /* not at all: NumPy has no such elements */
    ZX_VIEWED = 3 /* as plain ones, in memory of `empty` */
};

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_array *a;
    zx_store *store; /* owned */
    PyObject *dtype; /* NumPy's, owned */
    uint32_t order;  /* ZARR_ORDER_* of `dtype` */
    uint32_t how;    /* ZX_PLAIN or ZX_VLEN */
    int32_t ndim;
    bool is_fortran; /* reads give new arrays in column-major order */
    bool has_like;   /* [] gives arrays of another library, which zarrc/_array.py does */
    zarr_tuning tuning; /* of calls that name no other */
} zx_array;

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_group *g;
    zx_store *store; /* owned */
} zx_group;

/* Elements of variable length: to read, with a heap; or to write, with their objects. */
typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_vlen *item;
    uint64_t n;
    int32_t ndim;
    int64_t shape[ZARR_MAX_RANK];
    zx_context *context; /* owned */
    zarr_heap *heap;     /* of elements that are read */
    PyObject *objects;   /* a tuple, whose texts and bytes are written */
    char *copy;          /* of the texts of an array that are written */
} zx_vlen;

/* A tensor over memory of a Python object, which it keeps alive. */
struct zx_memory {
    zarr_tensor t;
    uint64_t shape[ZARR_MAX_RANK];
    int64_t strides[ZARR_MAX_RANK];
    Py_buffer view;
    PyObject *owner; /* a Vlen, a capsule, ...; NULL: `view` is held */
    bool is_held;
};

/* Options of one read or write. */
struct zx_io {
    zarr_io_options o;
    zarr_tuning tuning; /* `o` points to it */
    PyObject *progress; /* borrowed; called with (chunks done, chunks in all) */
    PyObject *field;    /* owned text, for `o.field` */
    PyObject *counts;   /* owned dict, to which `stats` is added; or NULL */
    zarr_stats stats;
    Py_buffer present;  /* held if `o.present` is set */
    uint32_t is_packed; /* memory of uint8 with several elements a byte */
};

/* ---- errors.c and log.c ----------------------------------------------------- */

/* Raises the exception for `err`, and returns NULL. `array` may be NULL. */
PyObject *zx_fail(zx_state *st, const zarr_error *err, const zarr_array *array);
/* The same for a store, before there is an array. */
PyObject *zx_fail_store(zx_state *st, const zarr_error *err, const zarr_store *store);
/* The same for a selection: what is wrong with it is an IndexError. */
PyObject *zx_fail_index(zx_state *st, const zarr_error *err);
/* None, or NULL after a failure; hands the log over. */
PyObject *zx_return_none(zx_state *st, zarr_status status, const zarr_error *err);
/* 0, or -1 with an exception; hands the log over. */
int zx_check(zx_state *st, zarr_status status, const zarr_error *err,
             const zarr_array *array);
/* The log of all contexts, a zarr_log_fn: any thread may call it. */
void zx_log_put(void *user, uint32_t level, const char *text);
/* Hands waiting lines to Python. 0, or -1: a warning was turned into an exception. */
int zx_log_flush(zx_state *st);

/* ---- interrupt.c ------------------------------------------------------------ */

/* Work without the GIL, which `cancel` stops. */
typedef zarr_status (*zx_work)(void *arg, zarr_cancel *cancel, zarr_error *err);
/* Does work that may take long. On the main thread Ctrl-C cancels it. ZARR_OK, or a
 * status with an exception set. */
zarr_status zx_call(zx_state *st, zx_work work, void *arg, const zarr_array *array);
/* The same for work that takes long only if the store is slow. */
zarr_status zx_call_store(const zx_store *store, zx_work work, void *arg);
/* Whether signals arrive on this thread. */
bool zx_is_on_main(const zx_state *st);
/* What Ctrl-C sets, for the thread of a long call of the main thread; NULL: another one.
 */
const zarr_cancel *zx_cancel_of_thread(void);
/* Waits for a request: calls `progress` (NULL: none), lets Ctrl-C cancel it, and frees
 * it. ZARR_OK, or a status with an exception set. */
zarr_status zx_wait(zx_state *st, zarr_request *r, PyObject *progress,
                    const zarr_array *array);

/* ---- selection.c ------------------------------------------------------------ */

/* Makes a selection of a key of integers, slices and `...`. 1: done, *out NULL means all;
 * 0: the key has something else; -1: an exception. */
int zx_key(zx_state *st, int32_t ndim, const uint64_t *shape, PyObject *key,
           zarr_selection **out);
/* One dimension of a tuple for oindex or blocks; -1: an exception. Views stay held. */
int zx_dim(PyObject *item, zarr_dim_selection *dim, Py_buffer *view, bool *is_held);
PyObject *zx_selection_wrap(zx_state *st, zarr_selection *sel); /* moved */

/* ---- memory.c, vlen.c, dlpack.c, device.c ----------------------------------- */

/* Describes memory of `object`: a buffer, a Vlen or a Device. -1: an exception. */
int zx_memory_init(struct zx_memory *m, zx_state *st, PyObject *object, bool is_writable);
/* The same for a capsule of DLPack, which must be one. */
bool zx_is_capsule(PyObject *object);
int zx_memory_of_capsule(struct zx_memory *m, zx_array *a, PyObject *capsule,
                         bool is_writable);
/* A capsule of DLPack of a tensor. Also after an exception `release` is called, once. */
PyObject *zx_capsule(zx_array *array, const zarr_tensor *t, bool has_version,
                     zarr_dlpack_release release, void *user);
/* A DLPack capsule over bytes of the library; `release` is called once, on any thread,
 * also after a failure. */
PyObject *zx_bytes_capsule(const zarr_memory *m, bool is_read_only, bool has_version,
                           zarr_dlpack_release release, void *user);
/* The address of a block, where addresses are handles; else the handle. */
void *zx_address(const zarr_memory *m);
PyObject *zx_array_device(PyObject *self, PyObject *args);
void zx_memory_of_device(struct zx_memory *m, PyObject *device);
/* Memory of a device by its address: a tuple (address, shape, strides in bytes or None,
 * what keeps it). */
int zx_memory_of_address(struct zx_memory *m, zx_array *a, PyObject *tuple);
PyObject *zx_array_check_address(PyObject *self, PyObject *tuple);
/* arrow.c: (schema, column), capsules of Arrow's PyCapsule interface */
PyObject *zx_array_arrow(PyObject *self, PyObject *args);
PyObject *zx_array_tensor(PyObject *self, PyObject *memory);
void zx_memory_deinit(struct zx_memory *m);
/* Repeats elements to fill a shape, as NumPy broadcasts a value. */
int zx_memory_broadcast(struct zx_memory *m, int32_t ndim, const uint64_t *shape);

PyObject *zx_array_vlen(PyObject *self, PyObject *args);

/* ---- outputs.c -------------------------------------------------------------- */

/* `numpy_api`: the capsule of NumPy's functions, or None. -1: an exception. */
int zx_outputs_init(zx_state *st, PyObject *numpy_api);
/* What array is wanted. */
struct zx_wish {
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK], bytes; /* about those of the elements */
    PyObject *dtype;                      /* NumPy's, borrowed */
    bool is_fortran;
};
/* numpy.empty() for a read to fill. Large arrays get memory that is kept between reads.
 */
PyObject *zx_empty(zx_context *context, const struct zx_wish *w);
PyObject *zx_context_empty(PyObject *self, PyObject *args);
/* calloc() and free() with memory that is kept likewise, if it is large. */
void *zx_kept_calloc(zx_context *context, size_t n, size_t bytes);
void zx_kept_free(void *p);
/* Where the elements of such an array are; NULL: only its buffer tells. */
void *zx_data_of_new(zx_state *st, PyObject *array);
/* The tensor of an array of NumPy's own class, without a look at its buffer, which takes
 * longer and which arrays of StringDType lack. False: only the buffer tells, or the array
 * cannot be written to. */
bool zx_memory_of_numpy(struct zx_memory *m, zx_state *st, PyObject *array,
                        bool is_writable);
PyObject *zx_small_empty(PyObject *module, PyObject *args);
PyObject *zx_keep_outputs(PyObject *module, PyObject *number);
PyObject *zx_outputs(PyObject *module, PyObject *unused);

/* ---- array_io.c ------------------------------------------------------------- */

/* `options`: a dict, or NULL. */
int zx_io_init(struct zx_io *io, const zx_array *a, PyObject *options);
void zx_io_deinit(struct zx_io *io);
/* Names the buffer that receives a byte for each chunk: whether the store has it. */
int zx_io_present(struct zx_io *io, PyObject *object);
/* Memory of any kind of object. -1: an exception. */
int zx_io_lend(struct zx_memory *m, zx_array *a, PyObject *object, bool is_writable);
/* The tensor of one read or write. `order`: ZARR_ORDER_* of plain memory. */
int zx_io_memory(struct zx_io *io, struct zx_memory *m, zx_array *a, PyObject *object,
                 bool is_read, const zarr_selection *sel);
PyObject *zx_array_getitem(PyObject *self, PyObject *key);
int zx_array_setitem(PyObject *self, PyObject *key, PyObject *value);
PyObject *zx_array_key(PyObject *self, PyObject *key);
PyObject *zx_array_fresh(PyObject *self, PyObject *args);
PyObject *zx_array_explain(PyObject *self, PyObject *args);
PyObject *zx_array_summary(PyObject *self, PyObject *args);
PyObject *zx_array_read(PyObject *self, PyObject *args);
PyObject *zx_array_read_into(PyObject *self, PyObject *args);
PyObject *zx_array_write(PyObject *self, PyObject *args);
PyObject *zx_array_append(PyObject *self, PyObject *args);
/* parts.c */
PyObject *zx_array_read_many(PyObject *self, PyObject *args);
/* The selection of an argument; None is NULL. -1: an exception. */
int zx_selection_arg(zx_state *st, PyObject *object, const zarr_selection **out);

/* ---- array_open.c, array_change.c, array_select.c --------------------------- */

PyObject *zx_array_with(PyObject *self, PyObject *options);
PyObject *zx_array_release_claim(PyObject *o, PyObject *args);
PyObject *zx_array_attribute(PyObject *self, PyObject *args);
PyObject *zx_array_resize(PyObject *self, PyObject *args);
PyObject *zx_array_refresh(PyObject *self, PyObject *unused);
PyObject *zx_array_recheck(PyObject *self, PyObject *unused);
PyObject *zx_array_count_stored(PyObject *self, PyObject *args);
PyObject *zx_array_chunks(PyObject *self, PyObject *args);
PyObject *zx_array_block_key(PyObject *self, PyObject *coordinates);
PyObject *zx_array_block_read(PyObject *self, PyObject *coordinates);
PyObject *zx_array_block_write(PyObject *self, PyObject *args);
PyObject *zx_array_select(PyObject *self, PyObject *args);
PyObject *zx_array_select_points(PyObject *self, PyObject *args);
PyObject *zx_array_select_mask(PyObject *self, PyObject *mask);

/* ---- chunks.c --------------------------------------------------------------- */

PyObject *zx_open_document(PyObject *module, PyObject *args);
PyObject *zx_array_check_codecs(PyObject *self, PyObject *is_write);
PyObject *zx_array_places(PyObject *self, PyObject *keys);
/* The key of the block with grid coordinates. */
PyObject *zx_place_key(zx_array *a, const uint64_t *place);
PyObject *zx_array_decode(PyObject *self, PyObject *args);
PyObject *zx_array_encode(PyObject *self, PyObject *args);

/* ---- request.c -------------------------------------------------------------- */

PyObject *zx_array_submit(PyObject *self, PyObject *args);

/* ---- quick.c ---------------------------------------------------------------- */

int zx_quick_init(zx_state *st); /* -1: an exception */
void zx_quick_deinit(zx_state *st);
PyObject *zx_select_slice(PyObject *module, PyObject *args);
PyObject *zx_new_quick(PyObject *module, PyObject *args);
PyObject *zx_quick_counts(PyObject *module, PyObject *is_reset);

/* ---- service.c -------------------------------------------------------------- */

PyObject *zx_new_service(PyObject *module, PyObject *unused);
PyObject *zx_open_foreign(PyObject *module, PyObject *args);

/* ---- store.c ---------------------------------------------------------------- */

/* Makes a Store object of a class that derives from ours. `s` is moved. */
PyObject *zx_store_wrap(zx_state *st, PyTypeObject *type, zx_context *context,
                        zarr_store *s);
/* -1 with a TypeError if it is not such a class. */
int zx_store_class(zx_state *st, PyObject *type);
/* lock.c */
PyObject *zx_store_lock(PyObject *self, PyObject *key);

/* ---- options.c: members of a dict of options; -1: an exception -------------- */

/* Borrows a member; `*out` is NULL if it is absent or None. `dict` may be NULL or None.
 */
int zx_opt(PyObject *dict, const char *name, PyObject **out);
int zx_opt_u32(PyObject *dict, const char *name, uint32_t *out);
int zx_opt_u64(PyObject *dict, const char *name, uint64_t *out);
/* Adds counters to a dict, by their names. -1: an exception, as one of them is no number.
 */
int zx_stats_add(PyObject *counts, const zarr_stats *stats);
/* The text lives as long as the dict. */
int zx_opt_text(PyObject *dict, const char *name, const char **out);
/* A tuple of lengths; `*out` is `room`, or NULL if there is no such member. */
int zx_opt_shape(PyObject *dict, const char *name, uint64_t *room, const uint64_t **out,
                 int32_t *n);

/* ---- functions of the module, and data types (context.c) -------------------- */

PyObject *zx_new_context(PyObject *module, PyObject *options);
PyObject *zx_check_limits(PyObject *module, PyObject *text);
PyObject *zx_open_store(PyObject *module, PyObject *args);
PyObject *zx_open_composite(PyObject *module, PyObject *args);
PyObject *zx_locate(PyObject *module, PyObject *args);
PyObject *zx_open_array(PyObject *module, PyObject *args);
PyObject *zx_create_array(PyObject *module, PyObject *args);
PyObject *zx_open_group(PyObject *module, PyObject *args);
PyObject *zx_open_node(PyObject *module, PyObject *args);
PyObject *zx_create_group(PyObject *module, PyObject *args);
PyObject *zx_new_queue(PyObject *module, PyObject *unused);
/* (NumPy's name, v2 name, v3 JSON, kind, bytes of an element) */
PyObject *zx_dtype_facts(const zarr_dtype *dtype);
PyObject *zx_element_json(zx_state *st, const zarr_dtype *dtype, const void *element);
/* The store object of an argument; NULL: a TypeError. */
zx_store *zx_store_arg(zx_state *st, PyObject *object);
/* -1 with an exception if the store is read-only. */
int zx_writable(const zx_store *store);
/* Makes an Array object of a class that derives from ours. `a` is moved. */
PyObject *zx_array_wrap(zx_state *st, PyTypeObject *type, zx_store *store, zarr_array *a);
int zx_array_options(PyObject *dict, zarr_array_open_options *out);
/* -1 with an exception if it is no class of arrays. */
int zx_array_class(zx_state *st, PyObject *type);

/* ---- rows.c ----------------------------------------------------------------- */

struct zx_rows {
    struct zx_row *first, *last;
    bool is_short; /* there was no memory for a row */
    bool has_more; /* the listing of a store has another page */
};

/* Adds a row; without the GIL. Not 0: there is no memory, end the listing. */
int zx_rows_add(struct zx_rows *rows, uint32_t n_numbers, const uint64_t *numbers,
                uint32_t n_texts, const char *const *texts);
const struct zx_row *zx_row_next(const struct zx_row *row);
uint64_t zx_row_number(const struct zx_row *row, uint32_t i);
const char *zx_row_text(const struct zx_row *row); /* the first one */
PyObject *zx_rows_list(struct zx_rows *rows);      /* a list of tuples; frees the rows */
void zx_rows_free(struct zx_rows *rows);

/* ---- objects ---------------------------------------------------------------- */

void *zx_alloc(PyTypeObject *type);
void zx_free(void *object);          /* the end of each dealloc */
PyObject *zx_text(const char *text); /* None for NULL */
PyObject *zx_shape(int32_t n, const uint64_t *shape);
/* Reads a tuple of lengths; returns how many, -1: an exception. */
int32_t zx_lengths(PyObject *tuple, uint64_t *out);
/* Adds a type to the module; NULL: an exception. */
PyTypeObject *zx_type(PyObject *module, PyType_Spec *spec);
/* Adds the numbers of C that the package uses, by their names; -1: an exception. */
int zx_constants_add(PyObject *module);

extern PyType_Spec zx_context_spec, zx_store_spec, zx_array_spec, zx_group_spec,
    zx_selection_spec, zx_vlen_spec, zx_request_spec, zx_queue_spec, zx_tensor_spec,
    zx_block_spec, zx_service_spec, zx_batch_spec, zx_device_spec, zx_quick_spec,
    zx_lock_spec;

#endif
