/*
 * array/io/io_int.h - a call that reads or writes: prepare.c fills it in, io.c carries it
 * out.
 */
#ifndef ZR_ARRAY_IO_INT_H
#define ZR_ARRAY_IO_INT_H

#include "array/array_int.h"

#include <zarrc/parts.h>

/* ---- prepare.c ---- */
/* Makes the io of a request for the whole array on this state, in memory of the given
 * kind, as opts want it; NULL: as the handle is. The caller sets view and selection. */
zarr_status zr_array_io(struct zr_io *io, const zarr_array *a, struct zr_array_state *s,
                        int32_t device_type, const zarr_io_options *opts,
                        zarr_error *err);

zarr_status zr_io_options_read(zarr_io_options *o, const zarr_io_options *opts,
                               zarr_error *err);
/* Refuses a stream, for calls that use no memory of a device. */
zarr_status zr_io_no_stream(const zarr_io_options *o, zarr_error *err);
zarr_status zr_array_selection_check(const struct zr_array_state *s,
                                     const zarr_selection *sel, zarr_error *err);
bool zr_tensor_is_packed(const zarr_tensor *tensor);

/* ---- field.c ---- */
/* Sets io->field, and the data type that the tensor must have. */
zarr_status zr_io_field(struct zr_io *io, const struct zr_array_state *s,
                        const char *path, const zarr_dtype **dtype, zarr_error *err);
/* Makes the fill value of io->field. Needs io's layout and view. The caller frees *out
 * when io is done. */
zarr_status zr_io_field_fill(uint8_t **out, struct zr_io *io, zarr_error *err);

/* ---- calls ---- */

/* Encoded chunks that the caller has, or gets. */
struct zr_io_given {
    zarr_store *store;   /* the chunks to read */
    int32_t device_type; /* the memory that encoded chunks are in */
    /* writes: as in struct zr_io */
    zarr_status (*sink)(void *arg, const uint64_t *chunk, const zarr_memory *bytes,
                        zarr_error *err);
    void *sink_arg;
};

struct zr_io_call {
    zarr_array *array;
    struct zr_array_state *state;    /* counted */
    const struct zr_io_given *given; /* NULL: the chunk store has the chunks */
    struct zr_io io;
    struct zr_shard_session *session; /* NULL: the call writes or reads whole blocks */
    zarr_io_options opts;
    uint8_t *field_fill;         /* owned; io points into it */
    struct zr_packed *packed;    /* owned; NULL: the tensor is not packed */
    struct zr_call_parts *parts; /* owned; NULL: one selection */
    zarr_cancel *owned_cancel;   /* counted, for a submitted request; else NULL */
    struct zr_stream after;      /* ordered after the application's stream */
};
/* Frees what zr_io_prepare() allocated, not c->state. */
void zr_io_call_deinit(struct zr_io_call *c);
/* Sets c->io, c->opts and c->field_fill. c->array and c->state are set before. */
zarr_status zr_io_prepare(struct zr_io_call *c, const zarr_selection *sel,
                          const zarr_tensor *tensor, const zarr_io_options *opts,
                          bool write, zarr_error *err);

/* Copies the tuning and the texts that the options point to, for a call that reads them
 * after it returned. */
zarr_status zr_io_options_keep(zarr_io_options *o, zarr_tuning *tuning,
                               struct zr_arena *texts, zarr_error *err);

/* Copies the caller's tensor, which may be compiled against an older header, and sets its
 * kind of memory. */
zarr_status zr_io_tensor(zarr_tensor *t, const zarr_tensor *tensor, const zarr_array *a,
                         zarr_error *err);
/* Makes the view of a tensor for c->io.selection, in the state s. dtype: of an element,
 * or of the field. */
zarr_status zr_io_view(struct zr_io_call *c, const struct zr_array_state *s,
                       const zarr_tensor *t, const zarr_dtype *dtype, struct zr_view *out,
                       zarr_error *err);
/* An io's check; arg is the struct zr_io_call. */
zarr_status zr_io_call_check(void *arg, bool found_none, zarr_error *err);
/* Starts a call, which was prepared, as a request. c and its array are the request's
 * now, also after a failure. */
zarr_status zr_io_call_submit(zarr_request **out, struct zr_io_call *c, zarr_error *err);
/* Makes a call that can be submitted; its array and state are counted. */
zarr_status zr_io_call_new(struct zr_io_call **out, zarr_array *array, zarr_error *err);
void zr_io_call_free(struct zr_io_call *c);

/* Reads or writes, and returns when that is done. c->array, c->state and c->given are set
 * before. */
zarr_status zr_io_call_run(struct zr_io_call *c, const zarr_selection *sel,
                           const zarr_tensor *tensor, const zarr_io_options *opts,
                           bool write, zarr_error *err);

/* ---- order.c ---- */
/* Makes *out a stream whose end comes after what is on `foreign` now; foreign NULL: does
 * nothing. zr_stream_sync() waits for it; zr_stream_give() to the engine's, also after a
 * failure. */
zarr_status zr_io_order(struct zr_stream *out, zarr_context *ctx, int32_t device_type,
                        int32_t device_id, void *foreign, zarr_error *err);

/* ---- parts.c ---- */
void zr_io_parts_free(struct zr_io_call *c);

/* ---- packed_tensor.c ---- */
/* What a request with a packed tensor reads or writes instead. */
struct zr_packed {
    struct zr_io_call *call;
    struct zr_array_state *bytes; /* borrowed; NULL: elements have a byte each */
    uint32_t per_item;            /* elements in an element of `bytes` */
    zarr_selection *box;          /* owned; NULL: the caller's selection */
    zarr_tensor tensor;           /* points into this struct */
    uint64_t shape[ZARR_MAX_RANK];
    int64_t strides[ZARR_MAX_RANK];
    /* elements with a byte each: the caller's bytes, a copy of them and the elements */
    struct zr_view view;
    uint8_t *rows, *elements; /* owned */
    size_t n_rows, row_bytes, row_elements;
};
/* Makes c->packed; c->opts is set. A write unpacks the caller's elements now, if it must.
 */
zarr_status zr_packed_begin(struct zr_io_call *c, const zarr_selection *sel,
                            const zarr_tensor *tensor, bool write, zarr_error *err);
/* Packs the elements of a read; an io's finish. */
zarr_status zr_packed_finish(void *packed, zarr_error *err);
void zr_packed_free(struct zr_packed *p);

#endif
