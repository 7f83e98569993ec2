/*
 * node/document.h - a part of the door: paths, the texts under metadata keys, and what is
 * at a path.
 */
#ifndef ZR_NODE_DOCUMENT_H
#define ZR_NODE_DOCUMENT_H

#include "ctx/ctx.h"
#include "json/json.h"
#include "store/store.h"

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
/* Sets out to "path/name", or to one of them if the other is "". Returns the status of
 * `out`. */
zarr_status zr_path_key(struct zr_str *out, const char *path, const char *name,
                        zarr_error *err);
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

/* Documents that are fetched together from a store that is far away. */
enum {
    ZR_V2_ARRAY = 1,        /* .zarray */
    ZR_V2_GROUP = 2,        /* .zgroup */
    ZR_V2_ATTRS = 4,        /* .zattrs */
    ZR_V2_CONSOLIDATED = 8, /* .zmetadata */
    ZR_V3_NODE = 16,        /* zarr.json */
    ZR_DOCS_AHEAD = 5
};
struct zr_docs_ahead {
    zarr_store *store;
    size_t n; /* 0 before the first fetch */
    struct zr_doc_ahead {
        const char *name;
        struct zr_str key;
        char *text; /* owned; of room + 1 bytes */
        size_t room, bytes;
        bool is_known, is_there;
    } doc[ZR_DOCS_AHEAD];
};
struct zr_ahead_node {
    struct zr_docs_ahead *ahead;
    const char *path; /* of the node */
};
/* Fetches documents of n nodes, and waits for them. which: of the enum above. */
void zr_docs_ahead_fetch(const struct zr_ahead_node *node, size_t n, zarr_store *store,
                         uint32_t which, const zarr_cancel *cancel);
/* Whether the document was fetched. */
bool zr_docs_ahead_has(const struct zr_docs_ahead *a, const char *name);
/* Whether it is known what a GET of the document gives; *st: OK or NOT_FOUND. Each
 * document can be taken once. a may be NULL. */
bool zr_docs_ahead_take(struct zr_docs_ahead *a, struct zr_doc *d, const char *name,
                        zarr_status *st);
void zr_docs_ahead_deinit(struct zr_docs_ahead *a);

/* The place of a document, under "path/name", and which limit bounds its length. */
struct zr_doc_source {
    zarr_store *store;
    const char *path, *name; /* path of its node; its own name */
    bool large;        /* bounded by limit consolidated_bytes, else by metadata_bytes */
    bool want_version; /* a read sets zr_doc.version; may cost a call */
    struct zr_docs_ahead *ahead; /* zr_doc_get() looks there first; may be NULL */
    const zarr_cancel *cancel;   /* ends a read, not an update; NULL: never */
};
/* Reads the document. Fails with NOT_FOUND (err is not set), LIMIT, or the store's
 * error. */
zarr_status zr_doc_get(struct zr_doc *d, const struct zr_doc_source *src,
                       zarr_error *err);
/* The same for a document beside the one that makes the node. A service that refused
 * access to it may not have it. */
zarr_status zr_doc_get_beside(struct zr_doc *d, const struct zr_doc_source *src,
                              bool *there, zarr_error *err);
/* Waits for a writer that has the document's lock. It may have taken the lock before its
 * folder was renamed, and then writes into the renamed folder. */
zarr_status zr_doc_wait_for_writer(zarr_store *store, const char *path, const char *name,
                                   const zarr_cancel *cancel, zarr_error *err);
/* Parses the document into json->root, which is an object. */
zarr_status zr_doc_parse(struct zr_json_doc *json, const struct zr_doc *d,
                         const zarr_limits *limits, zarr_error *err);

/* fn makes the new text from the old document (NULL: there is none). An empty text means
 * no change. If another writer is faster, the document is read again, and fn is called
 * again. A CONFLICT of fn itself is final. */
struct zr_doc_edit {
    zarr_status (*fn)(void *arg, const struct zr_doc *old, struct zr_str *text,
                      zarr_error *err);
    void *arg;
    bool may_be_new, must_be_new;
    /* Set by fn: the text says the same as no document, which is erased if the store can
     * do that under the condition of the update. May be NULL. */
    const bool *erase;
    /* Called once the text is written, before another update can begin through this store
     * handle. Its status becomes that of the update. May be NULL. */
    zarr_status (*commit)(void *arg, zarr_error *err);
    const zarr_cancel *cancel; /* ends the update; NULL: never */
};
/* Reads, edits and writes the document so that no other update is lost. */
zarr_status zr_doc_update(const struct zr_doc_source *src, const struct zr_doc_edit *edit,
                          zarr_error *err);
/* Returns true if the store has no locks, but a PUT of a new document there fails if
 * another writer made it first. */
bool zr_doc_new_by_put(const zarr_store *s);
/* Writes "path/name" as a whole. Fails with EXISTS if the document exists and `replace`
 * is false. */
zarr_status zr_doc_write(zarr_store *store, const char *path, const char *name,
                         const struct zr_str *text, bool replace,
                         const zarr_cancel *cancel, zarr_error *err);
/* Erases "path/name"; OK if it does not exist. guarded: see ZR_STORE_OP_GUARDED. */
zarr_status zr_doc_erase(zarr_store *store, const char *path, const char *name,
                         bool guarded, const zarr_cancel *cancel, zarr_error *err);
/* Finds out whether the store has an object under this key, or under "path/name".
 * Failures other than NOT_FOUND are errors. kind: ZARR_STORE_OP_DOCUMENT, _CHUNK or 0. */
zarr_status zr_key_is_there(zarr_store *store, const char *key, uint32_t kind,
                            bool *there, const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_doc_is_there(zarr_store *store, const char *path, const char *name,
                            bool *there, const zarr_cancel *cancel, zarr_error *err);

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
    struct zr_docs_ahead ahead;
    const zarr_cancel *cancel; /* of the search */
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
    /* ZR_V2_*: the documents of a v2 node that the caller will read. If the store is far
     * away, they are fetched together, into f->ahead */
    uint32_t v2;
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
/* Reads .zattrs of the node. *out stays NULL if there is none. ahead: may be NULL. */
zarr_status zr_attrs_read(struct zr_parsed **out, const struct zr_find *where,
                          struct zr_docs_ahead *ahead, zarr_error *err);
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

#endif
