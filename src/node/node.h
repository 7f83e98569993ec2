/*
 * node/node.h - the door of nodes as documents: their paths, the texts under their
 * metadata keys, how nodes are found, listed, written and erased, and what handles of
 * arrays and groups share. A *document* is the text under one metadata key (zr_doc). A
 * *found* node is the node at a path: kind, format and the parsed document (zr_found).
 */
#ifndef ZR_NODE_H
#define ZR_NODE_H

#include "base/base.h"
#include "ctx/ctx.h"
#include "json/json.h"
#include "meta/meta.h"
#include "store/store.h"
#include <zarrc/group.h>
#include <zarrc/node.h>

/* ---- paths -------------------------------------------------------------- */

/* Appends the components of path to out, normalised, preceded by a '/' if out is not
 * empty. */
zarr_status zr_path_append(struct zr_str *out, const char *path,
                           const zarr_limits *limits, zarr_error *err);
/* Returns the normalised path, "" for the root; owned by the caller. */
zarr_status zr_path_normal(char **out, const zarr_allocator *alloc, const char *path,
                           const zarr_limits *limits, zarr_error *err);
/* These take normalised paths. */
const char *zr_path_name(const char *path); /* last component */
/* length of the parent's path, without the '/' after it */
size_t zr_path_parent_bytes(const char *path);
/* Checks that a new node of this format may have this path. */
zarr_status zr_path_check_new(const char *path, int format, const zarr_limits *limits,
                              zarr_error *err);
/* Sets out to "path/name", or to one of them if the other is "". */
void zr_path_key(struct zr_str *out, const char *path, const char *name);
size_t zr_path_depth(const char *path); /* number of components of a normalised path */
/* Compares paths in the order of a walk: a node comes right before all nodes below it,
 * siblings in byte order of their names. */
int zr_path_compare(const char *a, const char *b);
/* Puts "/path", or "/path/name", before a message. */
zarr_status zr_path_prefix(zarr_error *err, zarr_status st, const char *path);
zarr_status zr_doc_prefix(zarr_error *err, zarr_status st, const char *path,
                          const char *name);

/* ---- documents ---------------------------------------------------------- */

enum {
    ZR_DOC_SMALL = 4096
};
struct zr_doc {
    const char *text; /* terminated by 0 */
    size_t bytes;
    zarr_store_version version; /* set by the read of an update, or if it was asked for */
    bool found;                 /* set by the read of an update */
    char *big;
    size_t big_bytes;
    const zarr_allocator *alloc;
    char small[ZR_DOC_SMALL];
};
void zr_doc_init(struct zr_doc *d, const zarr_allocator *alloc);
void zr_doc_deinit(struct zr_doc *d);

/* The place of a document, under "path/name", and which limit bounds its length. */
struct zr_doc_source {
    zarr_store *store;
    const char *path, *name; /* path of its node; its own name */
    bool large;        /* bounded by limit consolidated_bytes, else by metadata_bytes */
    bool want_version; /* a read sets zr_doc.version; may cost a call */
};
/* Reads the document. Fails with NOT_FOUND (err is not set), LIMIT, or the store's
 * error. */
zarr_status zr_doc_get(struct zr_doc *d, const struct zr_doc_source *src,
                       zarr_error *err);
/* Waits for a writer that has the document's lock. It may have taken the lock before its
 * folder was renamed, and then writes into the renamed folder. */
zarr_status zr_doc_wait_for_writer(zarr_store *store, const char *path, const char *name,
                                   const zarr_cancel *cancel, zarr_error *err);
/* Asks for the version of the document under a key. Fails with NOT_FOUND (err is not set)
 * or the store's error. All zero: the store has no versions. */
zarr_status zr_doc_version(zarr_store_version *out, zarr_store *store, const char *key,
                           zarr_error *err);
/* Parses the document into json->root, which is an object. */
zarr_status zr_doc_parse(struct zr_json_doc *json, const struct zr_doc *d,
                         const zarr_limits *limits, zarr_error *err);

/* fn makes the new text from the old document (NULL: there is none). An empty text means
 * no change. */
struct zr_doc_edit {
    zarr_status (*fn)(void *arg, const struct zr_doc *old, struct zr_str *text,
                      zarr_error *err);
    void *arg;
    bool may_be_new, must_be_new;
    const bool *give_up; /* set by fn: its CONFLICT is final; may be NULL */
    /* Called once the text is written, before another update can begin through this store
     * handle. Its status becomes that of the update. May be NULL. */
    zarr_status (*commit)(void *arg, zarr_error *err);
    const zarr_cancel *cancel; /* ends the wait for the lock; NULL: never */
};
/* Reads, edits and writes the document so that no other update is lost. */
zarr_status zr_doc_update(const struct zr_doc_source *src, const struct zr_doc_edit *edit,
                          zarr_error *err);
/* Returns true if only versions, and no lock, keep apart two handles that change one
 * document. */
bool zr_doc_by_version(const zarr_store *s);
/* Returns true if the store has no locks, but a PUT of a new document there fails if
 * another writer made it first. */
bool zr_doc_new_by_put(const zarr_store *s);
/* Writes "path/name" as a whole. Fails with EXISTS if the document exists and `replace`
 * is false. */
zarr_status zr_doc_write(zarr_store *store, const char *path, const char *name,
                         const struct zr_str *text, bool replace, zarr_error *err);
/* Erases "path/name"; OK if it does not exist. guarded: see ZR_STORE_OP_GUARDED. */
zarr_status zr_doc_erase(zarr_store *store, const char *path, const char *name,
                         bool guarded, zarr_error *err);
/* Finds out whether the store has an object under this key, or under "path/name".
 * Failures other than NOT_FOUND are errors. kind: ZARR_STORE_OP_DOCUMENT, _CHUNK or 0. */
zarr_status zr_key_is_there(zarr_store *store, const char *key, uint32_t kind,
                            bool *there, zarr_error *err);
zarr_status zr_doc_is_there(zarr_store *store, const char *path, const char *name,
                            bool *there, zarr_error *err);

/* A parsed document that several states share. */
struct zr_parsed {
    atomic_uint refs;
    struct zr_json_doc json;
    const zarr_allocator *alloc;
};
zarr_status zr_parsed_new(struct zr_parsed **out, const zarr_allocator *alloc,
                          zarr_error *err);
/* Parses the document, whose root is an object. *out stays NULL on failure. */
zarr_status zr_parsed_read(struct zr_parsed **out, const struct zr_doc *d,
                           const zarr_context *ctx, zarr_error *err);
struct zr_parsed *zr_parsed_ref(struct zr_parsed *t);
void zr_parsed_free(struct zr_parsed *t);

/* ---- what is at a path -------------------------------------------------- */

struct zr_found {
    /* ZARR_NODE_*; NONE: there is a document, but it is broken */
    uint32_t kind;
    int32_t format;           /* 2, 3; 0: no document was read */
    struct zr_doc doc;        /* zarr.json, .zarray or .zgroup */
    struct zr_parsed *parsed; /* the parsed document; NULL if it does not parse */
};
void zr_found_init(struct zr_found *f, const zarr_allocator *alloc);
void zr_found_deinit(struct zr_found *f);

struct zr_find {
    zarr_store *store;
    const char *path; /* normalised */
    int32_t format;   /* 2, 3; 0: either */
    int32_t first;    /* with format 0: the format to try first; 0: 3 */
    /* an array is expected, so a zarr.json larger than an array's is not read */
    bool array;
    bool wait_for_writers; /* zr_doc_wait_for_writer() first */
    const zarr_cancel *cancel;
};
/* Finds the node at a path. NOT_FOUND (err is not set): there is no document. If the
 * document is broken, fails with CORRUPT or another status for its fault, and f->kind is
 * NONE. */
zarr_status zr_node_find(struct zr_found *f, const struct zr_find *where,
                         zarr_error *err);
/* Returns NOT_FOUND: "there is no <what>", and what other format the folder seems to
 * have. */
zarr_status zr_fail_no_node(zarr_store *store, const char *path, const char *what,
                            zarr_error *err);
/* Reads path/.zattrs. *out stays NULL if there is none. */
zarr_status zr_attrs_read(struct zr_parsed **out, zarr_store *store, const char *path,
                          zarr_error *err);
/* A node described by its documents inside another document: consolidated metadata. */
struct zr_entry {
    const char *path; /* relative to the consolidating group */
    uint32_t kind;
    int32_t format;
    const struct zr_json *doc, *attrs; /* attrs: only v2, may be NULL */
};
const char *zr_kind_text(uint32_t kind); /* "array", "group", "broken node" */
/* The document that makes an array or a group: "zarr.json", ".zarray" or ".zgroup". */
const char *zr_doc_name(uint32_t kind, int32_t format);
/* Checks the format that a caller asks for. INVALID if it is not 0, 2 or 3. */
zarr_status zr_format_check(int32_t format, zarr_error *err);

/* ---- names below a group ------------------------------------------------ */

struct zr_names {
    struct zr_arena arena;
    const char **item; /* sorted by bytes, or by zr_path_compare() */
    size_t n, cap;
    uint64_t n_linked;         /* names that a symbolic link leads to */
    const zarr_cancel *cancel; /* ends the listing; NULL: never */
    const zarr_allocator *alloc;
};
void zr_names_init(struct zr_names *names, const zarr_allocator *alloc);
void zr_names_deinit(struct zr_names *names);
/* Collects all keys below path, relative to it, sorted by zr_path_compare(). LIMIT
 * listing_keys. */
zarr_status zr_names_keys(struct zr_names *names, zarr_store *store, const char *path,
                          zarr_error *err);

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
    atomic_uint refs;
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
                                    zarr_error *err);
/* A text that is made when it is first asked for. The slot is in a state that the caller
 * holds, and the handle's mutex guards it. zr_handle_text() returns NULL if the text is
 * not made yet. zr_handle_json() makes it from v (NULL: "{}") and returns NULL if memory
 * is out. */
const char *zr_handle_text(struct zr_handle *h, const char **slot);
const char *zr_handle_json(struct zr_handle *h, const char **slot,
                           const struct zr_json *v, unsigned indent);

/* Logs a warning if a v2 node is hidden by the v3 node at path. */
void zr_warn_hidden(zarr_store *store, const char *path);

/* ---- children of a group in the store, block by block ------------------- */

struct zr_child {
    const char *name;
    struct zr_found found;
    zarr_status st;
    zarr_error err;
};
struct zr_children {
    zarr_store *store;
    char *path;            /* path of the group */
    int32_t first;         /* format to try first */
    bool wait_for_writers; /* see zr_find */
    bool go_on;            /* of zr_seen */
    struct zr_names names;
    size_t next; /* index of the next name to look at */
    struct zr_child *block;
    size_t cap, n, at; /* of `block`: room, children in it, next one to return */
    const zarr_allocator *alloc;
};
/* What one walk has seen: the names of all its groups. The numbers are zero before the
 * walk. */
struct zr_seen {
    uint64_t n, n_linked;
    bool go_on;                /* a node that may not be read is broken, not an error */
    bool wait_for_writers;     /* see zr_find */
    const zarr_cancel *cancel; /* ends the walk; NULL: never */
};
/* path: normalised. Fails with LIMIT listing_keys or linked_directories if one group or
 * the walk has more names. */
zarr_status zr_children_open(struct zr_children *k, zarr_store *store, const char *path,
                             int32_t first, struct zr_seen *seen, zarr_error *err);
void zr_children_close(struct zr_children *k); /* accepts zeroed storage */
/* Returns the next node by name (kind NONE: broken), valid until the next call. *out is
 * NULL after the last. */
zarr_status zr_children_next(struct zr_children *k, const struct zr_child **out,
                             zarr_error *err);

/* ---- subtree.c: whole subtrees with their documents ------------------------------ */

/* Every node below a group, with its documents as the store has them. */
struct zr_subtree_node {
    const char *path; /* relative to the group; "": the group itself */
    uint32_t kind;
    struct zr_parsed *parsed, *attrs; /* counted; attrs: v2, may be NULL */
};
struct zr_subtree {
    struct zr_arena arena;
    struct zr_subtree_node *node; /* [0] is the group */
    struct zr_seen seen;
    size_t n, cap;
    int32_t format;
    const zarr_allocator *alloc;
};
/* Leaves out nodes of the other format. A broken node is an error. NOT_FOUND: there is no
 * group at path. format 0: the group's own, v3 first. wait_for_writers: of the documents
 * below the group (see zr_doc_wait_for_writer()). */
zarr_status zr_subtree_read(struct zr_subtree *out, zarr_store *store, const char *path,
                            int32_t format, bool wait_for_writers,
                            const zarr_cancel *cancel, zarr_error *err);
/* Reads the node at path, an array or a group of this format, and all nodes below it if
 * `below`; then it waits for writers of all these documents. out->n is 0 if there is no
 * such node. */
zarr_status zr_subtree_read_node(struct zr_subtree *out, zarr_store *store,
                                 const char *path, int32_t format,
                                 const zarr_cancel *cancel, bool below, zarr_error *err);
void zr_subtree_deinit(struct zr_subtree *g);

/* ---- consolidated_metadata.c ------------------------------------------------------- */

/* Removes the entries of the node at `path`, and of all nodes below it, from consolidated
 * metadata. Call it right before the node is deleted, replaced or renamed. If it fails,
 * the node must stay. */
zarr_status zr_consolidated_remove(zarr_store *store, const char *path,
                                   const zarr_cancel *cancel, zarr_error *err);
/* Adds these entries again, of the nodes that are there: what was to follow failed. */
zarr_status zr_consolidated_restore(zarr_store *store, const char *path,
                                    const zarr_cancel *cancel, zarr_error *err);
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

/* Puts a job object. EXISTS if there is one: of two calls at once only one works. */
zarr_status zr_job_begin(zarr_store *store, const char *path, const struct zr_str *text,
                         zarr_error *err);
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
                       bool must_be_new, zarr_error *err);
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
                        zarr_error *err);
/* Puts the text `before` as the job object; erases the job object if there is none. */
zarr_status zr_job_restore(zarr_store *store, const char *path,
                           const struct zr_job_found *f, zarr_error *err);
zarr_status zr_job_erase(zarr_store *store, const char *path, zarr_error *err);
/* Fails with EXISTS if there is a job object: a node that is made there would be mixed
 * with what an interrupted call left. */
zarr_status zr_job_must_not_be(zarr_store *store, const char *path, zarr_error *err);

/* Takes a claim. CONFLICT with `os_code` EBUSY: another call is at work there. It does
 * not wait. */
zarr_status zr_claim_take(struct zr_claim *claim, zarr_store *store, const char *path,
                          zarr_error *err);
/* As zr_claim_take(), for what is deleted or moved away: any other failure, as of a full
 * disk, must not prevent that, and leaves no claim. */
zarr_status zr_claim_to_erase(struct zr_claim *claim, zarr_store *store, const char *path,
                              zarr_error *err);
/* The same if there is a node or a job object, because the lock of a claim makes
 * folders. Then look again: the node may be gone. */
zarr_status zr_claim_node(struct zr_claim *claim, zarr_store *store, const char *path,
                          zarr_error *err);
/* Waits for the other call, unless `cancel` is set or the store's limit is over. */
zarr_status zr_claim_wait(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err);
void zr_claim_give(struct zr_claim *claim); /* zeroed storage is allowed */

/* ---- making nodes ------------------------------------------------------- */

enum {
    ZR_OVERTAKEN_TRIES = 64 /* by calls that replace the same node without locks */
};
/* A node that is being made, or replaced. */
struct zr_making {
    zarr_store *store;
    const char *path;          /* normalised */
    int32_t format;            /* of its parents, too */
    bool overwrite;            /* what is at path is deleted */
    bool has_parents;          /* false: parents are neither looked at nor made */
    bool has_begun;            /* zr_making_begin() succeeded */
    bool is_filled;            /* by the caller, who keeps the claim until then */
    const zarr_cancel *cancel; /* ends waits for other calls; NULL: never */
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
/* Makes groups of those parents that have no metadata. */
zarr_status zr_making_parents(struct zr_making *m, zarr_error *err);
void zr_making_end(struct zr_making *m); /* zeroed storage is allowed */
/* Writes groups of this format for those parents of path that have no metadata. INVALID
 * if a parent is an array. */
zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              zarr_error *err);
/* Only says whether that call would be refused. */
zarr_status zr_parents_check(zarr_store *store, const char *path, zarr_error *err);
/* Fails with EXISTS if a node of any format is at path. */
zarr_status zr_node_must_be_new(zarr_store *store, const char *path, zarr_error *err);
/* Checks whether a node at path may be overwritten. *is_node says whether there is one,
 * or the job object of a call that was interrupted there. If not, fails with EXISTS if
 * there are keys that no array left behind. zr_prefix_may_go() checks only for such keys,
 * as in a store that has nothing but chunks. */
zarr_status zr_node_may_go(zarr_store *store, const char *path, bool *is_node,
                           zarr_error *err);
zarr_status zr_prefix_may_go(zarr_store *store, const char *path, zarr_error *err);
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
/* Writes the document and, for v2, the attributes with it: an existing .zattrs is
 * replaced, or erased if there are no attributes. If several threads make one node, one
 * wins, with its attributes. EXISTS if the document exists. */
zarr_status zr_node_write(zarr_store *store, const struct zr_new_node *node,
                          zarr_error *err);
/* Makes the parents, then the node. If the caller fills it, a job object is there before
 * the document, so that no reader takes the node for complete. EXISTS: another call was
 * faster. */
zarr_status zr_making_write(struct zr_making *m, const struct zr_new_node *node,
                            zarr_error *err);
/* Returns what `meta` needs of a context. */
struct zr_meta_env zr_meta_env_make(const zarr_context *ctx, bool stored);

#endif
