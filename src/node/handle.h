/*
 * node/handle.h - a part of the door: what handles of arrays and groups share.
 */
#ifndef ZR_NODE_HANDLE_H
#define ZR_NODE_HANDLE_H

#include "ctx/ctx.h"
#include "json/json.h"
#include "store/store.h"

/* ---- handles ------------------------------------------------------------ */

/* Something that callers have borrowed from a handle. It is kept until the handle is
 * freed, even if the state that made it is gone. The payload follows. */
struct zr_borrowed {
    struct zr_borrowed *next;
};
/* The right to delete, replace or fill what is at a path: of the calls of all processes
 * that share the store's locks, one has it. It ends with its process. */
struct zr_claim {
    zarr_store *store; /* borrowed */
    void *lock;        /* NULL: nothing is claimed */
    bool has_job;      /* a job object says that the node is not complete */
};
/* First member of zarr_array and zarr_group. */
struct zr_handle {
    atomic_uint refs; /* owners of an array; a group has one */
    zarr_context *ctx;
    zarr_store *store;
    char *path;     /* normalised */
    zr_mutex mutex; /* guards the pointer to the state, `borrowed` and `claim` */
    struct zr_borrowed *borrowed;
    struct zr_claim claim; /* of the call that created the node */
    struct zr_fork_hook fork;
};
/* References store and context. path is moved. Cannot fail. */
void zr_handle_init(struct zr_handle *h, zarr_store *store, char *path);
void zr_handle_deinit(struct zr_handle *h);
/* Keeps a claim (moved), until this or the end of the handle. is_complete: its job object
 * is erased. */
void zr_handle_claim(struct zr_handle *h, struct zr_claim *claim);
zarr_status zr_handle_release_claim(struct zr_handle *h, bool is_complete,
                                    const zarr_cancel *cancel, zarr_error *err);
/* A text that is made when it is first asked for. The slot is in a state that the caller
 * holds, and the handle's mutex guards it. zr_handle_text() returns NULL if the text is
 * not made yet. zr_handle_json() makes it from v (NULL: "{}") and returns NULL if memory
 * is out. */
const char *zr_handle_text(struct zr_handle *h, const char **slot);
const char *zr_handle_json(struct zr_handle *h, const char **slot,
                           const struct zr_json *v, unsigned indent);

/* Logs a warning if the v3 node at path hides a v2 node of the same kind. */
void zr_warn_hidden(zarr_store *store, const char *path, uint32_t kind);

#endif
