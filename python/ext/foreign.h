/*
 * foreign.h - what the two halves of a store of Python share. foreign.c is the half that
 * the library calls: it puts letters into a box and never calls Python. service.c is the
 * half that a thread of Python calls: it takes the letters and answers them.
 *
 * A letter is answered once, by the first who claims its part: the store, the end of its
 * batch object, or the end of the interpreter.
 */
#ifndef ZARRC_PYTHON_FOREIGN_H
#define ZARRC_PYTHON_FOREIGN_H

#include "ext.h"

#include <pthread.h>
#include <zarrc/plugin/store.h>

/* What a letter asks for. */
enum {
    ZX_OPS = 0,          /* operations, answered one by one */
    ZX_LIST = 1,         /* rows below `prefix`, or the first page of them */
    ZX_ERASE_PREFIX = 2, /* removes all below `prefix` */
    ZX_FLUSH = 3,        /* what was written becomes durable */
    ZX_CANCEL = 4,       /* what was sent with `arg` may end; without an answer */
    ZX_CLOSE = 5,        /* the store has gone; without an answer */
    ZX_PLUGIN = 6,       /* `arg` is what a plug-in is asked (plugin.h) */
    ZX_LIST_NEXT = 7,    /* the next page of `listing` */
    ZX_LIST_END = 8      /* `listing` ends before its last page; without an answer */
};

/* A verb of an operation besides those of the library: GET of a range that is not the
 * index of a shard. */
enum {
    ZX_RANGE = 100
};

/* The answer to a call that waits, on the stack of its thread. */
struct zx_answer {
    pthread_mutex_t mutex;
    pthread_cond_t end;
    bool is_done;
    zarr_status status;
    zarr_error err;
    struct zx_rows rows;
};

typedef void (*zx_done_fn)(void *arg, zarr_store_op *op, const zarr_error *err);

/* `op`, `claimed` and `prefix` are behind the letter, in its block. */
struct zx_letter {
    struct zx_letter *next;
    uint64_t store;   /* the number that Python gave the store */
    uint32_t what;    /* ZX_OPS and so on */
    uint32_t how;     /* ZX_LIST: one of ZARR_LIST_* */
    uint64_t listing; /* a number for ZX_LIST, ZX_LIST_NEXT and ZX_LIST_END */
    uint64_t generation;
    uint64_t n; /* how many parts there are to answer */
    zarr_store_op **op;
    atomic_bool *claimed;
    char *prefix;
    zx_done_fn done;
    void *arg;
    struct zx_answer *answer;
};

struct zx_box {
    atomic_uint n_owners;
    int fd;                              /* an eventfd, readable while letters wait */
    _Atomic(struct zx_letter *) letters; /* newest first; `closed` once no more come */
    struct zx_letter closed;
    atomic_uint_fast64_t generation; /* one more in the child of a fork */
};

struct zx_box *zx_box_new(void);
struct zx_box *zx_box_ref(struct zx_box *box);
void zx_box_unref(struct zx_box *box);
/* Takes all letters, oldest first; NULL: there are none. */
struct zx_letter *zx_box_take(struct zx_box *box);
/* Refuses all letters from now on, and returns those that wait, oldest first. */
struct zx_letter *zx_box_close(struct zx_box *box);
/* Forgets the parent's letters, in the child of a fork. */
int zx_box_reset(struct zx_box *box);

/* True for the one caller that must answer part i. False for letters of the parent of a
 * fork too: its locks mean nothing here. */
bool zx_claim(struct zx_box *box, struct zx_letter *l, uint64_t i);
/* Ends a part that was claimed; `text` may be NULL if the status is ZARR_OK. Rows of a
 * listing are moved. */
void zx_answer_op(struct zx_letter *l, uint64_t i, zarr_status status, int os_code,
                  const char *text);
void zx_answer_call(struct zx_letter *l, zarr_status status, int os_code,
                    const char *text, struct zx_rows *rows);
/* Ends all parts that nothing has claimed, and frees the letter. */
void zx_letter_end(struct zx_box *box, struct zx_letter *l, const char *why);

/* Sends a letter about `arg` and waits for its answer, on a thread without the GIL. If
 * `here` is not NULL, it gets the letter, and answers and frees it. */
zarr_status zx_box_ask(struct zx_box *box, uint32_t what, void *arg,
                       void (*here)(struct zx_letter *l), zarr_error *err);

/* Makes a store whose letters go into `box`. */
struct zx_foreign_spec {
    struct zx_box *box; /* borrowed */
    uint64_t number;
    uint32_t caps, parallel;
    uint32_t flags;  /* ZARR_STORE_READ_ONLY */
    const char *url; /* copied; NULL: a registered table has a name of its own */
    uint32_t can_flush, can_erase_prefix;
    /* the four texts of a zarr_store_place, each ended by 0; copied. NULL: not known */
    const char *place;
    size_t place_bytes;
};
zarr_status zx_foreign_open(zarr_store **out, zarr_context *ctx,
                            const struct zx_foreign_spec *spec, zarr_error *err);
/* The two halves of such a store: its table of functions, and what they get as `self`;
 * NULL: there is no memory. */
void zx_foreign_table(zarr_store_vtable *out, const struct zx_foreign_spec *spec);
void *zx_foreign_new(const struct zx_foreign_spec *spec, zarr_error *err);

/* The number of a store of Python, which `self` of an operation is. */
uint64_t zx_foreign_number(const void *self);

/* ---- letter_service.c ------------------------------------------------------- */

typedef struct zx_service zx_service;
/* A list of objects for these letters; NULL: an exception. Letters that find no object
 * end at once. */
typedef PyObject *zx_letters_fn(zx_service *self, struct zx_letter *l);
struct zx_service {
    PyObject_HEAD zx_state *st;
    struct zx_box *box;
    zx_letters_fn *objects;
};
/* box: moved. NULL: an exception. */
PyObject *zx_service_new(zx_state *st, PyTypeObject *type, struct zx_box *box,
                         zx_letters_fn *objects);
/* Waits until there are letters, without the GIL, and takes all; NULL if a box was
 * closed or its letters were taken meanwhile. */
struct zx_letter *zx_box_wait(struct zx_box *box);

/* ---- service.c -------------------------------------------------------------- */

/* The box of a Service, borrowed; NULL with a TypeError for another object. */
struct zx_box *zx_service_box(zx_state *st, PyObject *service);

#endif
