/*
 * request.h - what makes a Request: request.c, and quick.c for the everyday reads of the
 * pipeline for zarr-python.
 */
#ifndef ZARRC_PYTHON_REQUEST_H
#define ZARRC_PYTHON_REQUEST_H

#include "ext.h"

/* What a request does. */
enum {
    ZX_READ = 0,
    ZX_WRITE = 1,
    ZX_APPEND = 2 /* along the dimension `axis` */
};

/* The end of one request; a part of its object, which `flights` keeps. */
struct letter {
    struct letter *next;
    struct mailbox *box;
    PyObject *request; /* borrowed */
};

typedef struct {
    PyObject_HEAD zx_state *st;
    zarr_request *r;
    zx_array *array;               /* owned */
    PyObject *selection, *options; /* owned */
    PyObject *present;             /* owned; a bytearray, or NULL */
    struct zx_memory memory;
    struct zx_io io;
    struct letter letter;
    uint64_t first; /* of an append */
    int is_done;    /* when it was submitted: no letter comes */
} zx_request;

#endif
