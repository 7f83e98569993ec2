/*
 * node/change.h - a part of the door: attributes, making and erasing nodes, and the
 * records of calls that were interrupted.
 */
#ifndef ZR_NODE_CHANGE_H
#define ZR_NODE_CHANGE_H

#include "meta/meta.h"
#include "node/document.h"
#include "node/handle.h"
#include <zarrc/consolidate.h>
#include <zarrc/node.h>

/* ---- consolidated_metadata.c ------------------------------------------------------- */

/* Removes the entries of the node at `path`, and of all nodes below it, from consolidated
 * metadata. Call it right before the node is deleted, replaced or renamed. If it fails,
 * the entries are as before, and the node must stay. */
zarr_status zr_consolidated_remove(zarr_store *store, const char *path,
                                   const zarr_cancel *cancel, zarr_error *err);
/* Adds these entries again, of the nodes that are there: what was to follow failed, or
 * was cancelled. */
zarr_status zr_consolidated_restore(zarr_store *store, const char *path, zarr_error *err);
/* Reads the options of calls for consolidated metadata. flags: those that are known. */
zarr_status zr_consolidate_options_read(zarr_consolidate_options *o,
                                        const zarr_consolidate_options *opts,
                                        uint32_t flags, bool key, zarr_error *err);

/* ---- attributes --------------------------------------------------------- */

/* Destination of a text, as for snprintf(). bytes may be NULL, text only if cap is 0. */
struct zr_text_out {
    char *text;
    size_t cap;
    size_t *bytes;
};
zarr_status zr_text_give(const char *from, size_t n, const struct zr_text_out *to,
                         zarr_error *err);

zarr_status zr_attrs_get(const struct zr_json *attrs, const char *name,
                         const struct zr_text_out *to, const zarr_allocator *alloc,
                         zarr_error *err);
enum zr_attrs_verb {
    ZR_ATTRS_SET,
    ZR_ATTRS_DELETE,
    ZR_ATTRS_MERGE,
    ZR_ATTRS_REPLACE
};
struct zr_attrs_change {
    enum zr_attrs_verb verb;
    int32_t format;
    const char *name; /* SET, DELETE */
    const char *json; /* all but DELETE */
    bool large;       /* see zr_doc_source */
    const zarr_cancel *cancel;
    /* Called with the whole new document (v2: .zattrs) before it is written. */
    zarr_status (*check)(void *arg, struct zr_parsed *parsed, zarr_error *err);
    /* Called under the document's lock when the document that was checked last is
     * written. */
    zarr_status (*commit)(void *arg, zarr_error *err);
    void *arg;
};
zarr_status zr_attrs_change(zarr_store *store, const char *path,
                            const struct zr_attrs_change *change, zarr_error *err);

/* ---- job.c: what an interrupted call leaves ------------------------------ */

/* Once `cancel`, which may be NULL, is set, these calls do not wait for the store. A job
 * object that is to be erased or restored then stays, as after a kill. */

/* Puts a job object. EXISTS if there is one: of two calls at once only one works. */
zarr_status zr_job_begin(zarr_store *store, const char *path, const struct zr_str *text,
                         const zarr_cancel *cancel, zarr_error *err);
/* Whether that is certain. Otherwise the job object of a call that finds a node may be
 * that of the call that makes it. */
bool zr_job_is_exclusive(const zarr_store *store);
/* What a job object says; all but the command may be NULL. */
struct zr_job_note {
    const char *command;
    const char *source;      /* of a copy, and of a move that copies */
    const char *destination; /* of a move that deletes its source */
    const char *before;      /* of a delete: zr_job_found.before */
};
/* Says what is at work at path. must_be_new: as zr_job_begin(); else replaces a job
 * object. */
zarr_status zr_job_put(zarr_store *store, const char *path, const struct zr_job_note *job,
                       bool must_be_new, const zarr_cancel *cancel, zarr_error *err);
enum zr_job_delete {
    ZR_JOB_NO_DELETE, /* no job object, or one of another call */
    ZR_JOB_DELETE,
    ZR_JOB_MOVE /* the delete of a move: the destination is complete */
};
struct zr_job_found {
    /* Beside a document it says nothing: the delete was interrupted before it began. */
    enum zr_job_delete delete;
    struct zr_str destination; /* of MOVE; empty: it is not known */
    /* The text of the job object that says that the node is not complete. A delete keeps
     * it: it may fail before it begins. Empty: there is none. */
    struct zr_str before;
};
void zr_job_found_init(struct zr_job_found *f, const zarr_allocator *alloc);
void zr_job_found_deinit(struct zr_job_found *f);
/* Reads the job object. *out is initialised. */
zarr_status zr_job_find(struct zr_job_found *out, zarr_store *store, const char *path,
                        const zarr_cancel *cancel, zarr_error *err);
/* Puts the text `before` as the job object; erases the job object if there is none. */
zarr_status zr_job_restore(zarr_store *store, const char *path,
                           const struct zr_job_found *f, const zarr_cancel *cancel,
                           zarr_error *err);
zarr_status zr_job_erase(zarr_store *store, const char *path, const zarr_cancel *cancel,
                         zarr_error *err);
/* Fails with EXISTS if there is a job object: a node that is made there would be mixed
 * with what an interrupted call left. */
zarr_status zr_job_must_not_be(zarr_store *store, const char *path,
                               const zarr_cancel *cancel, zarr_error *err);

/* Takes a claim. CONFLICT with `os_code` EBUSY: another call is at work there. It does
 * not wait. */
zarr_status zr_claim_take(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err);
/* As zr_claim_take(), for what is deleted or moved away: any other failure, as of a full
 * disk, must not prevent that, and leaves no claim. */
zarr_status zr_claim_to_erase(struct zr_claim *claim, zarr_store *store, const char *path,
                              const zarr_cancel *cancel, zarr_error *err);
/* The same if there is a node or a job object, because the lock of a claim makes
 * folders. Then look again: the node may be gone. */
zarr_status zr_claim_node(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err);
/* Waits for the other call, unless `cancel` is set or the store's limit is over. */
zarr_status zr_claim_wait(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err);
void zr_claim_give(struct zr_claim *claim); /* zeroed storage is allowed */

/* ---- making nodes ------------------------------------------------------- */

/* A node that is being made, or replaced. */
struct zr_making {
    zarr_store *store;
    const char *path;          /* normalised */
    int32_t format;            /* of its parents, too */
    bool overwrite;            /* what is at path is deleted */
    bool has_parents;          /* false: parents are neither looked at nor made */
    bool has_begun;            /* zr_making_begin() succeeded */
    bool is_filled;            /* by the caller, who keeps the claim until then */
    const zarr_cancel *cancel; /* ends the call, until the node is there; NULL: never */
    struct zr_claim claim;     /* the caller may move it */
    struct zr_parents {
        char *path;  /* room for the longest of them */
        size_t *cut; /* the lengths of the paths that have no node, nearest first */
        size_t n, cap;
    } missing;
};
/* Checks what refuses the node, then waits for the right to make it, which it has until
 * zr_making_end(). EXISTS: there is a node, and `overwrite` is not set. INVALID: a parent
 * is an array. */
zarr_status zr_making_begin(struct zr_making *m, zarr_error *err);
void zr_making_end(struct zr_making *m); /* zeroed storage is allowed */
/* Writes groups of this format for those parents of path that have no metadata. INVALID
 * if a parent is an array. */
zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              const zarr_cancel *cancel, zarr_error *err);
/* Only says whether that call would be refused. */
zarr_status zr_parents_check(zarr_store *store, const char *path,
                             const zarr_cancel *cancel, zarr_error *err);
/* Fails with EXISTS if a node of any format is at path. */
zarr_status zr_node_must_be_new(zarr_store *store, const char *path,
                                const zarr_cancel *cancel, zarr_error *err);
/* Checks whether a node at path may be overwritten. *is_node says whether there is one,
 * or the job object of a call that was interrupted there. If not, fails with EXISTS if
 * there are keys that no array left behind. zr_prefix_may_go() checks only for such keys,
 * as in a store that has nothing but chunks. */
zarr_status zr_node_may_go(zarr_store *store, const char *path, bool *is_node,
                           const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_prefix_may_go(zarr_store *store, const char *path,
                             const zarr_cancel *cancel, zarr_error *err);
/* Whether a deleted or unfinished array leaves a key of this name, relative to its path:
 * chunks by either key encoding, and metadata that alone makes no node. */
bool zr_key_is_left_over(const char *key);
/* How to delete, what to tell, and when to stop. All may be zero. */
struct zr_erase_watch {
    void (*progress)(void *user, uint64_t objects_done);
    void *user;
    const zarr_cancel *cancel;
    const zarr_cancel *wait; /* in place of `cancel`: ends only the waits before the
                                first change */
    bool consolidated;       /* zr_consolidated_remove() first */
    /* Of a move: the job object says so, and only what was copied is deleted. Sets the
     * version of a key that was copied, zeros if it was not; false: unknown, and the key
     * is deleted whatever it has. A key with another version stays, and the call ends
     * with CONFLICT; if it is a document of the node itself, the node is complete. So
     * does a key that appears meanwhile. */
    bool (*find_source_version)(const void *arg, const char *key,
                                zarr_store_version *version);
    const void *move;        /* arg of find_source_version */
    const char *destination; /* of the move, for the job object */
};
/* Deletes everything at and below path, with a job object that goes last. It waits for
 * writers before it begins, and then the documents of each node go before its chunks, so
 * that a node erased in part does not look like a node with missing chunks.
 * If path is a link to another place, only the link goes. UNSUPPORTED: the store cannot
 * list; nothing was changed. */
zarr_status zr_node_erase_watched(zarr_store *store, const char *path,
                                  const struct zr_erase_watch *watch, zarr_error *err);
/* Deletes what zr_node_may_go() has found, before another node is made there. is_node: as
 * it said. consolidated and wait: as in zr_erase_watch. */
zarr_status zr_node_erase_old(zarr_store *store, const char *path, bool is_node,
                              bool consolidated, const zarr_cancel *wait,
                              zarr_error *err);
/* Makes the canonical text of a group's zarr.json or .zgroup. attributes may be NULL (v2:
 * attributes have their own document). */
zarr_status zr_group_text(struct zr_str *out, int32_t format,
                          const struct zr_json *attributes, const zarr_allocator *alloc,
                          zarr_error *err);
/* Parses a caller's attributes into doc->root. text NULL: none, and doc->root stays NULL.
 * INVALID if they are not an object. */
zarr_status zr_attributes_parse(struct zr_json_doc *doc, const char *text,
                                const zarr_limits *limits, zarr_error *err);
/* A node to be written. */
struct zr_new_node {
    const char *path;
    const struct zr_str *text; /* of its document */
    uint32_t kind;
    int32_t format;
    const struct zr_json *attrs; /* v2: written to .zattrs; may be NULL */
};
/* Makes the parents, then the node. If the caller fills it, a job object is there before
 * the document, so that no reader takes the node for complete. EXISTS: another call was
 * faster. */
zarr_status zr_making_write(struct zr_making *m, const struct zr_new_node *node,
                            zarr_error *err);
/* Returns what `meta` needs of a context. */
struct zr_meta_env zr_meta_env_make(const zarr_context *ctx, bool stored);

#endif
