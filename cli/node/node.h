/*
 * node/node.h - opens the node that an operand names; reads and writes that an interrupt
 * cancels; iteration over an array that is larger than memory; properties of arrays.
 */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "frame/frame.h"

/* ---- locations --------------------------------------------------------------- */

/* `path`, `file://path`, `x.zarr/group/array` or `x.zarr:/array`, with `[REGION]` after
 * an array (location.c has the grammar). */

enum {
    CLI_OPEN_ANY = 0,
    CLI_OPEN_ARRAY = 1,  /* must be an array */
    CLI_OPEN_GROUP = 2,  /* must be a group */
    CLI_OPEN_WRITE = 4,  /* opens the store for writing; without it: read-only */
    CLI_OPEN_REGION = 8, /* permits a region; without it, a region is a usage error */
    CLI_OPEN_NEW = 16,   /* the node may be missing (kind NONE); creates the store's root
                            folder if it is missing; implies WRITE */
    CLI_OPEN_PROBE = 32, /* only finds out the kind, and node.array stays NULL: succeeds
                            also if the array has unknown codecs or types, or if its
                            metadata is broken (kind NONE, zarr_format not 0) */
    CLI_OPEN_REST = 64,  /* the node may be missing if an interrupted command left a job
                            object there; tells nothing about it */
    CLI_OPEN_CROP = 256, /* permits a region of a group, whose names stay as they are */
    CLI_OPEN_MISSING = 128 /* the node may be missing, and nothing is created */
};

/* An opened node. Zero it before; always close it. */
struct cli_node {
    zarr_store *store;
    char *path;          /* inside the store, "" for its root */
    char *region;        /* without its brackets; NULL: none was given */
    char *asked;         /* the region as it was written, if it had names; else NULL */
    char *shown;         /* the node's name in messages: "x.zarr:/temp" */
    uint32_t kind;       /* ZARR_NODE_* */
    int32_t zarr_format; /* 2, 3; 0 if there is no node */
    zarr_array *array;   /* open if kind is ARRAY, unless CLI_OPEN_PROBE was given */
    zarr_group *group;   /* of cli_node_group(), which may open it */
    bool created_root;   /* CLI_OPEN_NEW created the root folder: cli_node_close() removes
                            it if it is empty */
    bool began;          /* a command sets it right before the first call that may change
                            the node, for cli_update_after() */
};

/* Opens a store with the options of the command line; flags: ZARR_STORE_*. Prints
 * nothing.
 */
zarr_status cli_store_open(struct cli *cli, zarr_store **out, const char *url,
                           uint32_t flags, zarr_error *err);
/* Opens the node that `text` names. Without ":/" the root of the store is the topmost
 * folder of the unbroken chain of nodes above the path. For a new node outside of any
 * hierarchy, the root is the first folder on the path that is called *.zarr, else the
 * path itself. */
int cli_node_open(struct cli *cli, const char *text, unsigned flags,
                  struct cli_node *node);
/* Opens node->group, unless it is open. */
zarr_status cli_node_group(struct cli_node *node, zarr_error *err);
/* Calls fn for each operand, also after one failed, but not after an interrupt. Of
 * several operands it skips those that are no node but a part of one, such as
 * x.zarr/zarr.json, and says so. With --json and more than one operand, the documents are
 * items of an array. blank_lines: an empty line of text is between operands. Returns the
 * exit code of the first failure. */
int cli_each_node(struct cli *cli, bool blank_lines,
                  int (*fn)(struct cli *cli, const char *operand));
/* Whether there is no node, not even a broken one. */
bool cli_node_is_missing(const struct cli_node *node);
/* The error that cli_node_open() prints for a missing node; flags: as for that call.
 * CLI_OK if CLI_OPEN_REST permits what is there. */
int cli_node_fail_missing(struct cli *cli, unsigned flags, const struct cli_node *node);
/* Frees all members; NULL members are permitted. */
void cli_node_close(struct cli_node *node);
/* Completes the writes (zarr_store_flush), also those before an interrupt; a later one
 * ends it. Prints the error. */
int cli_node_flush(struct cli *cli, struct cli_node *node);
/* Replaces names in node->region by indices. cli_node_open() does this. */
int cli_node_resolve(struct cli *cli, struct cli_node *node);
/* node->region (NULL: all) as a selection of `array`; owned by the caller. */
int cli_node_select(struct cli *cli, const struct cli_node *node, const zarr_array *array,
                    zarr_selection **out);

/* ---- blocking calls that an interrupt cancels (io.c) ---- */

/* zarr_array_read() and zarr_array_write(), which an interrupt cancels (CANCELLED). opts
 * may be NULL. */
zarr_status cli_read(zarr_array *array, const zarr_selection *selection,
                     const zarr_tensor *dst, const zarr_io_options *opts,
                     zarr_error *err);
zarr_status cli_write(zarr_array *array, const zarr_selection *selection,
                      const zarr_tensor *src, const zarr_io_options *opts,
                      zarr_error *err);

/* ---- source.c: files and standard input ---- */

/* Bytes in their order. Its functions print their errors, and an interrupt ends them,
 * also while they wait (CLI_INTERRUPTED). Zero: standard input, which close() leaves
 * open. */
struct cli_source {
    const char *name; /* for messages; borrowed */
    int fd;
    bool has_peeked;
    unsigned char peeked; /* the next byte */
};
/* Path "-": standard input. Refuses a folder. Always close *out. */
int cli_source_open(struct cli *cli, const char *path, struct cli_source *out);
/* Reads *bytes, fewer only at the end, and sets *bytes. */
int cli_source_read(struct cli *cli, struct cli_source *source, void *data,
                    size_t *bytes);
/* Sets *byte to the next byte, which stays the next one; -1: the end. */
int cli_source_peek(struct cli *cli, struct cli_source *source, int *byte);
/* Adds all the rest, which must be text, to *out. out->text is not NULL then. */
int cli_source_text(struct cli *cli, struct cli_source *source, struct cli_string *out);
void cli_source_close(struct cli_source *source);
/* The same for a whole file, or standard input if path is "-". */
int cli_read_text(struct cli *cli, const char *path, struct cli_string *out);

/* ---- iterating over an array that is larger than memory ---- */

/* The total size of the buffers that a command may allocate: half of --mem (the
 * library uses the other half), or 256 MiB. */
uint64_t cli_buffer_bytes(const struct cli *cli);
/* Creates *heap for elements of variable length, or clears it if it exists. Does nothing
 * for other types. */
zarr_status cli_heap(const struct cli *cli, const zarr_dtype *type, zarr_heap **heap,
                     zarr_error *err);

/* Boxes in C order that cover `shape` exactly once. Contiguous boxes (for streams): the
 * elements of a box follow each other in the C order of the array. Other boxes (for
 * copies and comparisons) consist of whole `unit`s, unless one unit exceeds max_items. */
struct cli_boxes {
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK]; /* the current box */
    uint64_t n_items;                                    /* in the current box */
    bool begun, done;
};
/* unit: lengths (of chunks or shards) to align boxes to where possible, or NULL.
 * max_items >= 1: elements in a box at most. */
void cli_boxes_init(struct cli_boxes *boxes, int32_t ndim, const uint64_t *shape,
                    const uint64_t *unit, uint64_t max_items, bool contiguous);
bool cli_boxes_next(struct cli_boxes *boxes);
/* The number of elements in the largest box, at most max_items. */
uint64_t cli_boxes_max_items(const struct cli_boxes *boxes);

/* The current box as a selection of the result of `outer` (NULL: of the array). */
zarr_status cli_boxes_select(const struct cli_boxes *boxes, const zarr_selection *outer,
                             zarr_selection **out, zarr_error *err);
/* A C-order host tensor over data with the shape of the current box. The tensor points to
 * shape_out. */
void cli_boxes_tensor(const struct cli_boxes *boxes, void *data, uint64_t data_bytes,
                      uint64_t shape_out[ZARR_MAX_RANK], zarr_tensor *out);

/* ---- memory that --memory names, and --trust (facts.c) ---- */

#define CLI_MEMORY_OPTION                                                                \
    {                                                                                    \
        "memory", 0, 0, "KIND[:N]", NULL,                                                \
            "the memory that elements are read into, such as cuda:0; see zarrc list "    \
            "devices (default: host)"                                                    \
    }
#define CLI_TRUST_OPTION                                                                 \
    {                                                                                    \
        "trust", 0, 0, "WORD", "verified|full|none",                                     \
            "which decoders that do not check their input are used, such as some of "    \
            "GPUs: for data with a checksum that was verified, all, or none "            \
            "(default: verified)"                                                        \
    }
#define CLI_MISSING_OPTION                                                               \
    {                                                                                    \
        "missing-chunks", 0, 0, "WORD", "fill|error",                                    \
            "read a missing chunk as the fill value, or fail (default: fill)"            \
    }
/* Whether --missing-chunks=error is given. */
bool cli_missing_is_error(const struct cli *cli);
/* One of ZARR_TRUST_*; 0 without --trust. */
uint32_t cli_trust(const struct cli *cli);
/* The kind of memory and the number of the device; host memory without --memory. */
struct cli_memory {
    int32_t device_type, device_id;
};
int cli_memory_find(struct cli *cli, struct cli_memory *out);
/* Moves a host tensor of `bytes` bytes into a block of this memory, and allocates *block
 * if it is empty. Host memory: changes nothing. The caller frees the block. */
zarr_status cli_memory_tensor(struct cli *cli, const struct cli_memory *memory,
                              uint64_t bytes, zarr_memory *block, zarr_tensor *tensor,
                              zarr_error *err);
/* Copies a block to the host. An empty block: nothing. */
zarr_status cli_memory_download(struct cli *cli, const zarr_memory *block, void *data,
                                uint64_t bytes, zarr_error *err);

/* ---- properties of arrays (facts.c) ---- */

/* The v3 name of a data type, or its v2 name if v3 has none. Never NULL; borrowed. */
const char *cli_type_name(const zarr_dtype *type);
/* "array", "group", or "broken" for all other kinds. */
const char *cli_kind_name(uint32_t kind);
/* Whether an object holds more than one chunk. */
bool cli_is_sharded(const zarr_array *array);
/* The configuration of a sharding codec (codec: JSON), or NULL for any other codec. */
const char *cli_sharding_config(const char *codec);

/* ---- damage (salvage.c, overlay.c, repair.c) ---- */

#define CLI_SKIP_DAMAGED_OPTION                                                          \
    {                                                                                    \
        "skip-damaged", 0, 0, NULL, NULL,                                                \
            "leave out chunks that cannot be decoded, name each on stderr, and end "     \
            "with exit code 8"                                                           \
    }
/* Whether damage of what is stored causes this status: neither the network, nor a
 * permission, nor a limit or a codec of this build. */
bool cli_is_damage(zarr_status st, const zarr_error *err);

/* A store that reads `base` and keeps all changes in memory; zarr_store_free(*out) frees
 * both. *overlay lives as long as *out. */
struct cli_overlay;
zarr_status cli_overlay_open(struct cli_overlay **overlay, zarr_store **out,
                             zarr_store *base, zarr_error *err);
/* The length and version of a value, for cli_overlay_commit(). */
void cli_value_see(zarr_store *store, const char *key, zarr_store_value *out);
/* A value as text, with its version; owned. NULL: it cannot be read, or is no text. */
char *cli_value_read(zarr_store *store, const char *key, zarr_store_value *value,
                     zarr_error *err);
/* Makes the change of one key in the base, if the key has the version `seen` there.
 * CONFLICT: another writer changed the key. */
zarr_status cli_overlay_commit(const struct cli_overlay *overlay, const char *key,
                               const zarr_store_value *seen, zarr_error *err);

/* A box of elements. */
struct cli_region {
    int32_t ndim;
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
};
/* "0:10,20:30", as after the name of an array; owned. */
char *cli_region_text(const struct cli_region *region);

/* The elements of a block that cannot be decoded. Zero it before use. */
struct cli_losses {
    struct cli_region *items;
    size_t n, cap;
    bool is_all;        /* the whole block */
    bool is_read_error; /* the disk or the network failed */
    zarr_error why;     /* of one of them */
};
enum cli_mend {
    CLI_MEND_ERASE, /* the chunks become missing */
    CLI_MEND_FILL,  /* chunks of fill values are written */
    CLI_MEND_NAN,   /* chunks of NaN, if the type has it */
    CLI_MEND_COPY   /* from another array with the same encoding */
};
/* Replaces the chunks of a block that cannot be decoded, and appends their regions. The
 * other chunks of the block keep their encoded bytes. array: of an overlay; other: for
 * CLI_MEND_COPY. */
zarr_status cli_block_mend(struct cli *cli, zarr_array *array, const uint64_t *block,
                           enum cli_mend how, zarr_array *other, struct cli_losses *lost,
                           zarr_error *err);
void cli_losses_free(struct cli_losses *lost);

/* Gives a node a store in which damage can be mended. Opens node->array again. */
int cli_salvage_open(struct cli *cli, struct cli_node *node);
/* After a read of node->array that failed because of damage: mends the block that the
 * error names, and tells what is lost. After ZARR_OK, read again. */
zarr_status cli_salvage_block(struct cli *cli, const struct cli_node *node,
                              const zarr_error *failed, enum cli_mend how,
                              zarr_error *err);
/* Verifies a node, makes lost chunks missing as cli_salvage_open() permits, and tells
 * them. */
int cli_salvage_node(struct cli *cli, struct cli_node *node, uint64_t *n_lost);

/* Faults of zarr_node_verify() that a repair can mend. Zero it before use. */
struct cli_fault {
    char *path, *key;
    uint32_t what, kind;           /* ZARR_FINDING_*, ZARR_NODE_* */
    uint64_t block[ZARR_MAX_RANK]; /* CHUNK */
};
struct cli_faults {
    struct cli_fault *items;
    size_t n, cap;
};
/* Copies a finding, if a repair can mend it. */
void cli_faults_add(struct cli_faults *all, const zarr_finding *finding);
void cli_faults_free(struct cli_faults *all);
/* Whether --repair and --yes are valid. */
int cli_repair_check(struct cli *cli);
/* Prints how --repair mends these faults. With --yes mends them, and then calls find(),
 * which verifies again and fills *faults, until there is nothing to mend. With --json:
 * "repairs" inside the open object. */
int cli_repair(struct cli *cli, struct cli_node *node, struct cli_faults *faults,
               int (*find)(void *user), void *user);

/* ---- one field of structs (field.c) ---- */

#define CLI_FIELD_OPTION                                                                 \
    {                                                                                    \
        "field", 0, 0, "PATH", NULL,                                                     \
            "one field of an array of structs; a.b is field b of the nested struct a"    \
    }
/* The field that --field selects; without --field, the whole element. */
struct cli_field {
    const zarr_dtype *type;        /* of one value */
    uint64_t offset;               /* in the element */
    int32_t ndim;                  /* of the subarray; 0: a single value */
    uint64_t shape[ZARR_MAX_RANK]; /* of the subarray */
    uint64_t n_values;             /* in one element */
    zarr_io_options options;       /* for reads and writes of the field */
};
int cli_field_find(struct cli *cli, const struct cli_node *node, struct cli_field *out);
/* Appends the subarray's dimensions to a tensor that has those of the selection. shape:
 * the lengths that the tensor points to. */
void cli_field_tensor(const struct cli_field *field, uint64_t shape[ZARR_MAX_RANK],
                      zarr_tensor *tensor);
/* Swaps the bytes of n elements of a file in place to the byte order of this machine.
 * orders: '<' or '>' for each field that is not itself a struct; NULL: all are in
 * byte_order. */
void cli_elements_swap(const zarr_dtype *type, const char *orders, uint32_t byte_order,
                       void *data, uint64_t n);
/* Whether a list of fields has padding, which NumPy writes as a field ["","|V4"]. */
bool cli_fields_have_padding(const char *list);
/* *named: the list with generated names for the padding; *unpadded: the list without it.
 * The caller owns both. Returns false if a field that is not padding has no name. */
bool cli_fields_unpad(const char *list, char **named, char **unpadded);
/* Removes the padding of n structs in place: from has it, to has not. */
void cli_struct_pack(const zarr_dtype *from, const zarr_dtype *to, void *data,
                     uint64_t n);
/* The byte order of each field in a v2 list of fields, such as [["a","<i4"]]. Owned. */
char *cli_struct_orders(const char *list);

#endif
