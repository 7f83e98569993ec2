/*
 * tree/copy_int.h - a copy or move under way, between copy.c (what, in which order) and
 * copy_object.c (one object).
 */
#ifndef ZR_TREE_COPY_INT_H
#define ZR_TREE_COPY_INT_H

#include "tree/tree.h"

/* A document of the source as it was before its chunks were listed. */
struct zr_copy_seen {
    const char *key;
    uint64_t hash;
};

/* What an object of a move's source was when it was copied. */
struct zr_copy_mark {
    zarr_store_version version;
    uint64_t bytes;
    bool known;
};

struct zr_copy {
    zarr_store *src, *dst;
    char *src_path, *dst_path;
    struct zr_str destination; /* its name for the job object */
    zarr_copy_options opts;
    struct zr_claim claim, source;  /* of the destination, and of the source of a move */
    bool is_move, plain;            /* plain: without a job object */
    bool only_compares;             /* plain, as the destination cannot be written */
    bool new_job;                   /* the job object was not there before */
    bool incomplete;                /* the source has a job object of another call */
    bool changes_mark;              /* see zr_copy_find_mark() */
    zarr_context *ctx;              /* of src: its allocator and budget are used */
    struct zr_names keys;           /* relative to src_path */
    const char **chunk, **document; /* point into keys.item */
    size_t n_chunks, n_documents;
    struct zr_names seen_keys;
    struct zr_copy_seen *seen; /* sorted by key, which points into seen_keys */
    size_t n_seen;
    struct zr_copy_mark *mark; /* of each key, for a move; else NULL */
    struct {
        zr_mutex mutex;
        uint64_t objects, bytes;
        /* told: the caller knows these numbers; telling: a thread is in the caller's
         * function */
        bool told, telling;
    } locked;
};
/* Copies the object with this relative key, counts it and reports progress. Several
 * threads may call it. */
zarr_status zr_copy_object(struct zr_copy *c, const char *name, zarr_error *err);
/* Notes what the source's documents say. Call it before the chunks are listed. Then
 * zr_copy_object() fails with CONFLICT for a document that says something else. */
zarr_status zr_copy_see(struct zr_copy *c, zarr_error *err);
bool zr_copy_is_document(const char *key);
/* Fails with CONFLICT if the source of a move is not what was copied: the move would
 * delete what another program wrote meanwhile. Call it after zr_copy_object(). */
zarr_status zr_copy_check_source(struct zr_copy *c, zarr_error *err);
/* See zr_erase_watch. copy: a struct zr_copy. Unknown without marks: the source is what
 * an interrupted move left. */
bool zr_copy_find_source_version(const void *copy, const char *key,
                                 zarr_store_version *version);
/* Looks at a document of the destination before chunks are copied: one with other bytes
 * fails with EXISTS. With OVERWRITE it is erased if `erase` is set. */
zarr_status zr_copy_clear_document(struct zr_copy *c, const char *name, bool erase,
                                   zarr_error *err);
/* Rank of a document: attributes come before the document that makes a node; 2: not a
 * document. */
int zr_copy_rank(const char *key);
/* Fails with EXISTS if the copy would take over what is at the destination: chunks that a
 * deleted node left would be elements of the copy. */
zarr_status zr_copy_must_not_mix(struct zr_copy *c, zarr_error *err);
/* Erases documents of the destination that the copy will replace: in an interrupted copy
 * they would describe the new chunks. */
zarr_status zr_copy_clear_documents(struct zr_copy *c, zarr_error *err);

/* ---- copy_mark.c ---- */

/* Sets c->changes_mark: a group above the source, or above the destination, but not above
 * both, says that netCDF-C wrote its arrays. */
zarr_status zr_copy_find_mark(struct zr_copy *c, zarr_error *err);
/* Fails with UNSUPPORTED if the array with this document depends on that mark. */
zarr_status zr_copy_check_mark(const struct zr_copy *c, const char *key, zarr_error *err);

/* ---- copy_large.c ---- */

/* Whether an object is copied range by range, because memory has no room for it. */
bool zr_copy_is_large(const struct zr_copy *c, const char *src_key, uint64_t bytes);
struct zr_copy_large {
    const char *src_key, *dst_key;
    uint64_t bytes;
    bool compare;                /* an object with the same bytes is left alone */
    bool *there, *equal;         /* out, for `compare` */
    zarr_store_version *version; /* out: of the source */
};
zarr_status zr_copy_large(struct zr_copy *c, const struct zr_copy_large *o,
                          zarr_error *err);

#endif
