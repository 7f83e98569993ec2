/*
 * store/emulate_int.h - what the files that emulate share: emulate.c takes an operation
 * apart, emulate_range.c reads ranges. Thread class: any thread.
 */
#ifndef ZR_STORE_EMULATE_INT_H
#define ZR_STORE_EMULATE_INT_H

#include "store/store_int.h"

enum {
    EMULATE_TRIES = 8 /* of several requests that must see one value */
};

/* Takes over what a GET of the same bytes returned. */
void zr_emulate_take_result(zarr_store_op *op, const zarr_store_op *get);
/* LIMIT if a value of `bytes` is too large to be read whole. */
zarr_status zr_emulate_check_limit(const zarr_store *s, const zarr_store_op *op,
                                   uint64_t bytes, zarr_error *err);
/* Does a GET whose memory the store takes. */
void zr_emulate_range(zarr_store *s, zarr_store_op *op, zarr_error *err);
/* Whether the store itself can read the range of op. */
bool zr_emulate_takes_range(const zarr_store *s, const zarr_store_op *op);
/* The flag that asks for the version of the value, if the store has versions. */
uint32_t zr_emulate_version_flag(const zarr_store *s);
/* An operation that is emulated by several ends between two of them. */
bool zr_emulate_is_cancelled(const zarr_store_op *op, zarr_store_op *next,
                             zarr_error *err);
/* Does a STAT. */
void zr_emulate_stat(zarr_store *s, zarr_store_op *op, zarr_error *err);
/* Ends op with CONFLICT: the value has another version. */
void zr_emulate_conflict(zarr_store_op *op, zarr_error *err);

#endif
