/*
 * plugin.h - what the files about codecs, data types and stores written in Python share.
 * plugin_codec.c, plugin_dtype.c and plugin_store.c have the tables of functions that the
 * library calls, on any thread. They never call Python: each function puts a question
 * into a letter (foreign.h) and waits. plugin_service.c is the half that one thread of
 * Python calls: it takes the letters, with copies of all bytes, and answers them. So a
 * wave of chunks costs one turn of the GIL. Only an implementation of a codec gets memory
 * of the library itself (plugin_memory.c), until its call ends.
 */
#ifndef ZARRC_PYTHON_PLUGIN_H
#define ZARRC_PYTHON_PLUGIN_H

#include "foreign.h"

#include <zarrc/plugin/plugin.h>

/* What a plug-in is asked. */
enum {
    ZX_ASK_CANONICAL = 1, /* the canonical form of a configuration */
    ZX_ASK_RESOLVE = 2,   /* what a codec gives */
    ZX_ASK_ENCODE = 3,    /* chunks of a wave */
    ZX_ASK_DECODE = 4,
    ZX_ASK_FILL_PARSE = 5, /* an element of the JSON text of a fill value */
    ZX_ASK_FILL_PRINT = 6,
    ZX_ASK_OPEN = 7,         /* a store of a URL */
    ZX_ASK_BIND = 8,         /* whether an implementation takes such chunks */
    ZX_ASK_ENCODE_THERE = 9, /* chunks of a wave, in the memory where they are */
    ZX_ASK_DECODE_THERE = 10
};

enum {
    ZX_NAME_BYTES = 256, /* most bytes of a data type's name in an answer, with its NUL */
    ZX_FILL_BYTES = 512  /* most bytes of an element */
};

/* A codec, an implementation of one, a data type or a store of Python. It lives as long
 * as the process, because tables of functions keep its texts. */
struct zx_plug {
    struct zx_plug *next;
    atomic_bool is_dropped; /* its first registration failed: nothing uses it */
    uint64_t number;        /* the number that Python gave it */
    uint32_t registry;      /* ZARR_REGISTRY_* */
    uint32_t kind;  /* ZARR_CODEC_* of a codec, ZARR_KIND_* of a data type, the kind of
                       memory of an implementation */
    uint32_t flags; /* ZARR_CODEC_SPEC_* of a codec, ZARR_CODEC_* of an implementation */
    bool is_lossy;
    int32_t priority;    /* of an implementation */
    uint64_t item_bytes; /* of a data type, and what follows */
    uint32_t swap_bytes, item_bits;
    char *name;
    char *other; /* the v2 name of a data type, or NULL; the codec of an implementation */
};

/* A chunk before or after a codec, with its fill value. */
struct zx_chunk {
    zarr_chunk_spec spec;
    unsigned char fill[ZX_FILL_BYTES];
};

/* A question, on the stack of the thread that asks. The answer is in `out`, `chunk` or
 * the jobs. */
struct zx_ask {
    uint32_t what;
    uint64_t number;
    const char *json; /* a configuration, a fill value or a URL */
    const char *more; /* ZX_ASK_OPEN: the options as JSON, or NULL */
    int32_t format;
    const zarr_chunk_spec *decoded, *encoded; /* NULL: not known here */
    zarr_codec_job *jobs;
    uint64_t n;
    const void *element; /* ZX_ASK_FILL_PRINT */
    uint64_t item_bytes;
    char *out; /* a text with its NUL, or an element; the asker frees it */
    uint64_t out_bytes;
    zarr_chunk_spec *chunk; /* ZX_ASK_RESOLVE: changed */
    void *chunk_fill;
    char dtype[ZX_NAME_BYTES];     /* ZX_ASK_RESOLVE: another data type; "": the same */
    struct zx_foreign_spec *store; /* ZX_ASK_OPEN: filled; its box is one of ours */
    const zarr_codec_next *next;   /* of an implementation: the next one, or NULL */
    zarr_codec_exec *exec;
};

/* ---- plugin_service.c ------------------------------------------------------- */

/* Sends a question and waits for the answer. */
zarr_status zx_ask(struct zx_ask *q, zarr_error *err);
/* The plug-in of a name, or NULL. `codec`: of an implementation; else NULL. */
const struct zx_plug *zx_plug_find(uint32_t registry, const char *name,
                                   const char *codec);
/* Writes as snprintf(): a text of an answer, which is freed. */
void zx_ask_text(struct zx_ask *q, char *text, size_t cap, size_t *text_bytes);
/* Sets an error of a plug-in. Returns `status`. */
zarr_status zx_plug_fail(zarr_error *err, zarr_status status, const char *name,
                         const char *text);
/* Registers what a tuple of Python lists in a new context; -1: an exception. */
int zx_plugs_register(zx_state *st, zarr_context *ctx, PyObject *tuple);
PyObject *zx_new_plugin_service(PyObject *module, PyObject *unused);

/* ---- plugin_memory.c -------------------------------------------------------- */

/* How many objects and exports of one call are alive, with the call itself. */
struct zx_lease {
    atomic_uint n;
    atomic_bool is_over; /* nothing may be exported now */
};
struct zx_lease *zx_lease_new(void); /* NULL: an exception */
void zx_lease_unref(void *lease);
/* ([inputs], [outputs]) of jobs, as ChunkMemory; NULL: an exception. */
PyObject *zx_chunk_memories(zx_state *st, struct zx_lease *lease,
                            const zarr_codec_job *jobs, uint64_t n);
/* The memory of such an object of this lease; NULL: an exception. */
const zarr_memory *zx_chunk_memory(zx_state *st, const struct zx_lease *lease,
                                   PyObject *object, bool is_output);

/* ---- plugin_codec.c, plugin_dtype.c, plugin_store.c ------------------------- */

zarr_status zx_codec_register(zarr_context *ctx, const struct zx_plug *p,
                              zarr_error *err);
zarr_status zx_impl_register(zarr_context *ctx, const struct zx_plug *p, zarr_error *err);
zarr_status zx_dtype_register(zarr_context *ctx, const struct zx_plug *p,
                              zarr_error *err);
zarr_status zx_scheme_register(zarr_context *ctx, const struct zx_plug *p,
                               zarr_error *err);

extern PyType_Spec zx_plugin_service_spec, zx_plugin_call_spec, zx_chunk_memory_spec;

#endif
