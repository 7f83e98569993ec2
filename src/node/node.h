/*
 * node/node.h - the door of nodes as documents: their paths, the texts under their
 * metadata keys, how they are found, listed, written and erased, and what handles of
 * arrays and groups share. A *document* is the text of one metadata key (zr_doc). A
 * *found* node is what lies at a path: kind, format and the parsed document (zr_found).
 */
#ifndef ZR_NODE_H
#define ZR_NODE_H

#include "base/base.h"
#include "ctx/ctx.h"
#include "json/json.h"
#include "meta/meta.h"
#include "store/store.h"
#include <zarrc/group.h>

#define ZR_DOC_V3           "zarr.json"
#define ZR_DOC_ARRAY        ".zarray"
#define ZR_DOC_GROUP        ".zgroup"
#define ZR_DOC_ATTRS        ".zattrs"
#define ZR_DOC_CONSOLIDATED ".zmetadata"

/* ---- paths -------------------------------------------------------------- */

/* Appends the components of path to out, normalised, with '/' in front where out has
 * some.
 */
zarr_status zr_path_append(struct zr_str *out, const char *path,
                           const zarr_limits *limits, zarr_error *err);
/* A normalised path, "" for the root; owned by the caller. */
zarr_status zr_path_normal(char **out, const zarr_allocator *alloc, const char *path,
                           const zarr_limits *limits, zarr_error *err);
/* Of normalised paths: */
const char *zr_path_name(const char *path);    /* last component */
size_t zr_path_parent_bytes(const char *path); /* in front of it and its '/' */
/* Names that a new node of this format may have. */
zarr_status zr_path_check_new(const char *path, int format, const zarr_limits *limits,
                              zarr_error *err);
/* "path/name", or the one that is not "", in place of what out held. */
void zr_path_key(struct zr_str *out, const char *path, const char *name);
size_t zr_path_depth(const char *path); /* components of a normalised path */
/* Order of a walk: a node right before all below it, siblings by bytes of their names. */
int zr_path_compare(const char *a, const char *b);
/* Puts "/path", or "/path/name", in front of a message. */
zarr_status zr_path_prefix(zarr_error *err, zarr_status st, const char *path);
zarr_status zr_doc_prefix(zarr_error *err, zarr_status st, const char *path,
                          const char *name);

/* ---- documents ---------------------------------------------------------- */

enum {
    ZR_DOC_SMALL = 4096
};
struct zr_doc {
    const char *text; /* terminated */
    size_t bytes;
    zarr_store_version version; /* of an update's reading */
    bool found;                 /* of an update's reading */
    char *big;
    size_t big_bytes;
    const zarr_allocator *alloc;
    char small[ZR_DOC_SMALL];
};
void zr_doc_init(struct zr_doc *d, const zarr_allocator *alloc);
void zr_doc_deinit(struct zr_doc *d);

/* Where a document is: under "path/name", and how long it may be. */
struct zr_doc_source {
    zarr_store *store;
    const char *path, *name; /* of its node; its own */
    bool large; /* the limit is consolidated_bytes; else it is metadata_bytes */
};
/* NOT_FOUND (leaves err alone), LIMIT, or what the store says. */
zarr_status zr_doc_get(struct zr_doc *d, const struct zr_doc_source *src,
                       zarr_error *err);
/* Into json->root, which is an object. */
zarr_status zr_doc_parse(struct zr_json_doc *json, const struct zr_doc *d,
                         const zarr_limits *limits, zarr_error *err);

/* Makes the new text from the old one (NULL: there is none); an empty one changes
 * nothing. */
struct zr_doc_edit {
    zarr_status (*fn)(void *arg, const struct zr_doc *old, struct zr_str *text,
                      zarr_error *err);
    void *arg;
    bool may_be_new, must_be_new;
    const bool *give_up; /* fn's CONFLICT is final once it set this; may be NULL */
    /* Called once the text is written, before another update can begin through this store
     * handle; may be NULL. What it says is what the update says. */
    zarr_status (*commit)(void *arg, zarr_error *err);
};
/* Read, edit, write, so that no other update is lost. */
zarr_status zr_doc_update(const struct zr_doc_source *src, const struct zr_doc_edit *edit,
                          zarr_error *err);
/* Only versions keep two changers of one document apart, across handles: no lock does. */
bool zr_doc_by_version(const zarr_store *s);
/* Writes "path/name" whole; EXISTS when it is there, unless it may be replaced. */
zarr_status zr_doc_write(zarr_store *store, const char *path, const char *name,
                         const struct zr_str *text, bool replace, zarr_error *err);
/* Whether the store has an object under this key, or under "path/name"; failures other
 * than NOT_FOUND are errors. */
zarr_status zr_key_is_there(zarr_store *store, const char *key, bool *there,
                            zarr_error *err);
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
/* The document's JSON object; *out stays NULL on failure. */
zarr_status zr_parsed_read(struct zr_parsed **out, const struct zr_doc *d,
                           const zarr_context *ctx, zarr_error *err);
struct zr_parsed *zr_parsed_ref(struct zr_parsed *t);
void zr_parsed_free(struct zr_parsed *t);

/* ---- what is at a path -------------------------------------------------- */

struct zr_found {
    uint32_t kind;            /* ZARR_NODE_*; NONE: a document is there but broken */
    int32_t format;           /* 2, 3; 0: no document was read */
    struct zr_doc doc;        /* zarr.json, .zarray or .zgroup */
    struct zr_parsed *parsed; /* the same, parsed; NULL when it does not parse */
};
void zr_found_init(struct zr_found *f, const zarr_allocator *alloc);
void zr_found_deinit(struct zr_found *f);

struct zr_find {
    zarr_store *store;
    const char *path; /* normalised */
    int32_t format;   /* 2, 3; 0: either */
    int32_t first;    /* with format 0: which to try first; 0: 3 */
    bool array;       /* one is expected: no zarr.json as large as a group's is read */
};
/* NOT_FOUND (leaves err alone): no document. A broken one is CORRUPT (or what is wrong)
 * with *f's kind NONE. */
zarr_status zr_node_find(struct zr_found *f, const struct zr_find *where,
                         zarr_error *err);
/* Reads path/.zattrs; *out stays NULL when there is none. */
zarr_status zr_attrs_read(struct zr_parsed **out, zarr_store *store, const char *path,
                          zarr_error *err);
/* A node by its documents inside another one: consolidated metadata. */
struct zr_entry {
    const char *path; /* relative to the consolidated group */
    uint32_t kind;
    int32_t format;
    const struct zr_json *doc, *attrs; /* attrs: v2 only, may be NULL */
};
const char *zr_kind_text(uint32_t kind); /* "array", "group", "broken node" */
/* The document that makes an array or a group: "zarr.json", ".zarray" or ".zgroup". */
const char *zr_doc_name(uint32_t kind, int32_t format);
/* A format that a caller asks for: INVALID if it is not 0, 2 or 3. */
zarr_status zr_format_check(int32_t format, zarr_error *err);

/* ---- names below a group ------------------------------------------------ */

struct zr_names {
    struct zr_arena arena;
    const char **item; /* sorted by bytes */
    size_t n, cap;
    const zarr_allocator *alloc;
};
void zr_names_init(struct zr_names *names, const zarr_allocator *alloc);
void zr_names_deinit(struct zr_names *names);
/* All keys below path, relative to it, sorted by zr_path_compare(). LIMIT listing_keys.
 */
zarr_status zr_names_keys(struct zr_names *names, zarr_store *store, const char *path,
                          zarr_error *err);

/* ---- handles ------------------------------------------------------------ */

/* What a caller has borrowed from a handle: kept until the handle is freed, whatever
 * becomes of the state that it came from. The payload follows. */
struct zr_borrowed {
    struct zr_borrowed *next;
};
/* First member of zarr_array and zarr_group. */
struct zr_handle {
    atomic_uint refs;
    zarr_context *ctx;
    zarr_store *store;
    char *path;     /* normalised */
    zr_mutex mutex; /* guards the pointer to the state, and `borrowed` */
    struct zr_borrowed *borrowed;
    struct zr_fork_hook fork;
};
/* References store and context; path is moved. Cannot fail. */
void zr_handle_init(struct zr_handle *h, zarr_store *store, char *path);
void zr_handle_deinit(struct zr_handle *h);
/* A text that is made when first asked for. The slot is in a state that the caller holds
 * and is guarded by the handle's mutex. The first returns NULL if it is not made yet, the
 * second makes it from v (NULL: "{}") and returns NULL if there is no memory. */
const char *zr_handle_text(struct zr_handle *h, const char **slot);
const char *zr_handle_json(struct zr_handle *h, const char **slot,
                           const struct zr_json *v, unsigned indent);

/* Logs when a v2 node is hidden behind the v3 node found at path. */
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
    char *path;    /* of the group */
    int32_t first; /* format to look for first */
    struct zr_names names;
    size_t next; /* name to look at next */
    struct zr_child *block;
    size_t cap, n, at; /* of the block */
    const zarr_allocator *alloc;
};
/* path: normalised. *seen: names of all groups of one walk so far, 0 at its beginning.
 * LIMIT listing_keys: more than that in one group, or in the walk. */
zarr_status zr_children_open(struct zr_children *k, zarr_store *store, const char *path,
                             int32_t first, uint64_t *seen, zarr_error *err);
void zr_children_close(struct zr_children *k); /* zeroed storage is fine */
/* The next node by name (kind NONE: broken), valid until the next call; *out NULL behind
 * the last. */
zarr_status zr_children_next(struct zr_children *k, const struct zr_child **out,
                             zarr_error *err);

/* ---- attributes --------------------------------------------------------- */

/* Where a text goes as snprintf() has it; bytes may be NULL. */
struct zr_text_out {
    char *text;
    size_t cap;
    size_t *bytes;
};
zarr_status zr_text_give(const char *from, size_t n, const struct zr_text_out *to);

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
    bool large;       /* as in zr_doc_source */
    /* Called with the whole new document (v2: .zattrs) before it is written. */
    zarr_status (*check)(void *arg, struct zr_parsed *parsed, zarr_error *err);
    /* Called when what was checked last is written, under the document's lock. */
    zarr_status (*commit)(void *arg, zarr_error *err);
    void *arg;
};
zarr_status zr_attrs_change(zarr_store *store, const char *path,
                            const struct zr_attrs_change *change, zarr_error *err);

/* ---- making nodes ------------------------------------------------------- */

/* Writes groups of this format where parents of path have no metadata; INVALID when one
 * is an array. */
zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              zarr_error *err);
/* EXISTS when a node of any format is at path. */
zarr_status zr_node_must_be_new(zarr_store *store, const char *path, zarr_error *err);
/* Before a node at path is overwritten: EXISTS where there is none (*is_node false) but
 * keys are that no array left behind. The second asks for such keys only, as in a store
 * of chunks alone. */
zarr_status zr_node_may_go(zarr_store *store, const char *path, bool *is_node,
                           zarr_error *err);
zarr_status zr_prefix_may_go(zarr_store *store, const char *path, zarr_error *err);
/* Deletes whatever is at and below path; fine when nothing is. */
zarr_status zr_node_erase(zarr_store *store, const char *path, zarr_error *err);
/* Canonical text of a group's zarr.json or .zgroup; attributes may be NULL (v2: they have
 * their own document). */
zarr_status zr_group_text(struct zr_str *out, int32_t format,
                          const struct zr_json *attributes, const zarr_allocator *alloc,
                          zarr_error *err);
/* A caller's attributes, into doc->root; NULL: none, doc->root stays NULL. INVALID. */
zarr_status zr_attributes_parse(struct zr_json_doc *doc, const char *text,
                                const zarr_limits *limits, zarr_error *err);
/* A node that is to be there. */
struct zr_new_node {
    const char *path;
    const struct zr_str *text; /* of its document */
    uint32_t kind;
    int32_t format;
    const struct zr_json *attrs; /* v2: for .zattrs; may be NULL */
};
/* The document, and the attributes of v2 with it (a .zattrs that is there is replaced, or
 * erased): of several who make one node, the winner's. EXISTS when the document is there.
 */
zarr_status zr_node_write(zarr_store *store, const struct zr_new_node *node,
                          zarr_error *err);
/* What meta needs of a context. */
struct zr_meta_env zr_meta_env_of(const zarr_context *ctx, bool stored);

#endif
