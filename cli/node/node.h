/*
 * node/node.h - places: opening what a command line names, reads and writes that an
 * interrupt stops, the walk over an array that is bigger than memory, facts of arrays.
 */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "frame/frame.h"

/* ---- locations: `path`, `file://path`, `x.zarr/group/array`, `x.zarr:/array`, each
 * with `[REGION]` behind an array (location.c has the grammar) ---- */

enum {
    CLI_OPEN_ANY = 0,
    CLI_OPEN_ARRAY = 1,  /* must be an array (node.array is open then) */
    CLI_OPEN_GROUP = 2,  /* must be a group */
    CLI_OPEN_WRITE = 4,  /* the store is opened for writing; otherwise read-only */
    CLI_OPEN_REGION = 8, /* a region is welcome; otherwise it is a usage error */
    CLI_OPEN_NEW = 16,   /* nothing need be there (kind may be NONE); makes the store's
                            root folder when it is missing; implies WRITE */
    CLI_OPEN_SHUT = 32   /* node.array stays NULL: codecs and types that no build knows
                            are no hindrance; nor is a document that cannot be read
                            (kind NONE, and a zarr_format) */
};

/* An opened place. Zero it before; close it always. */
struct cli_node {
    zarr_store *store;
    char *path;          /* inside the store, "" for its root */
    char *region;        /* without its brackets; NULL: none given */
    char *shown;         /* how to name it in messages: "x.zarr:/temp" */
    uint32_t kind;       /* ZARR_NODE_* */
    int32_t zarr_format; /* 2, 3; 0 when there is nothing */
    zarr_array *array;   /* open when kind is ARRAY, but for CLI_OPEN_SHUT */
    bool
        made_root; /* CLI_OPEN_NEW made the store's folder; closing removes it if empty */
};

/* The file or folder that `text` names, less its region, whether it is there or not;
 * NULL: it is in a store of another sort. Owned. */
char *cli_local_path(struct cli *cli, const char *text);
/* Opens what `text` names. Without ":/" the root of the store is found by walking up: the
 * topmost folder of the unbroken chain of nodes above the path; for a new node in no
 * existing hierarchy the folder called *.zarr, else the path itself. */
int cli_node_open(struct cli *cli, const char *text, unsigned flags,
                  struct cli_node *node);
/* There is no node, not even a broken one. */
bool cli_node_is_missing(const struct cli_node *node);
/* Frees all; NULL members are fine. */
void cli_node_close(struct cli_node *node);
/* Ends what was written (zarr_store_flush), with the error printed. */
int cli_node_flush(struct cli *cli, struct cli_node *node);
/* node->region of `array` (NULL: all); owned by the caller. */
int cli_node_select(struct cli *cli, const struct cli_node *node, const zarr_array *array,
                    zarr_selection **out);

/* ---- blocking work that an interrupt stops (io.c) ---- */

/* zarr_array_read()/_write() that an interrupt stops (CANCELLED); opts may be NULL. */
zarr_status cli_read(zarr_array *array, const zarr_selection *selection,
                     const zarr_tensor *dst, const zarr_io_options *opts,
                     zarr_error *err);
zarr_status cli_write(zarr_array *array, const zarr_selection *selection,
                      const zarr_tensor *src, const zarr_io_options *opts,
                      zarr_error *err);

/* read(2) of pipes and files in full: bytes read (less at the end), or -1 with errno;
 * EINTR after an interrupt, which is noticed while it waits. */
int64_t cli_read_fd(int fd, void *data, size_t bytes);

/* ---- walking an array bigger than memory ---- */

/* Bytes that a command may use for its own buffers, all together: half of --mem (the
 * library has the other half), or 256 MiB. */
uint64_t cli_buffer_bytes(const struct cli *cli);
/* Makes a heap for elements of variable length, or clears the one there is; nothing for
 * other types. */
zarr_status cli_heap(const struct cli *cli, const zarr_dtype *type, zarr_heap **heap,
                     zarr_error *err);

/* Boxes that follow each other in C order and together cover `shape` exactly. Runs: each
 * box is one run of the array in C order (for streams). Otherwise boxes are made of whole
 * `unit`s, except where one unit is over the limit (for copies and comparisons). */
struct cli_boxes {
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK]; /* the box of this turn */
    uint64_t n_items;                                    /* in this box */
    bool begun, done;
};
/* unit: lengths to align to where that is possible (chunks or shards), or NULL;
 * max_items >= 1. runs: see above. */
void cli_boxes_init(struct cli_boxes *boxes, int32_t ndim, const uint64_t *shape,
                    const uint64_t *unit, uint64_t max_items, bool runs);
bool cli_boxes_next(struct cli_boxes *boxes);
/* Elements of the largest box. UINT64_MAX never: it fits max_items. */
uint64_t cli_boxes_max_items(const struct cli_boxes *boxes);

/* The box of this turn as a selection of `outer`'s result (NULL: of the array's shape).
 */
zarr_status cli_boxes_select(const struct cli_boxes *boxes, const zarr_selection *outer,
                             zarr_selection **out, zarr_error *err);
/* A C-order host tensor over data, of the box's shape (lives in `shape_out`). */
void cli_boxes_tensor(const struct cli_boxes *boxes, void *data, uint64_t data_bytes,
                      int64_t shape_out[ZARR_MAX_RANK], zarr_tensor *out);

/* ---- facts of arrays (facts.c) ---- */

/* Its name, or what v2 calls it where v3 has none. Never NULL; borrowed. */
const char *cli_type_name(const zarr_dtype *type);
/* A fill value as JSON; owned. NULL: there is none, or an error, told in *err. */
char *cli_fill_text(const zarr_dtype *type, const void *fill, zarr_error *err);
/* Whether objects hold several chunks. */
bool cli_is_sharded(const zarr_array *array);
/* The configuration of a codec (JSON) that makes shards, or NULL. */
const char *cli_shards_of(const char *codec);

/* ---- one field of structs (field.c) ---- */

#define CLI_FIELD_OPTION                                                                 \
    {                                                                                    \
        "field", 0, 0, "PATH", NULL,                                                     \
            "one field of an array of structs; a.b: of a struct inside"                  \
    }
/* What --field chooses; without it the elements as they are. */
struct cli_field {
    const zarr_dtype *type;        /* of one value */
    uint64_t offset;               /* in the element */
    int32_t ndim;                  /* of the subarray */
    uint64_t shape[ZARR_MAX_RANK]; /* its lengths, behind those of the selection */
    uint64_t n_values;             /* in one element */
    zarr_io_options options;       /* for the reads */
};
int cli_field_find(struct cli *cli, const struct cli_node *node, struct cli_field *out);
/* Adds the subarray's dimensions to a tensor over the selection's; shape is the
 * tensor's. */
void cli_field_tensor(const struct cli_field *field, int64_t shape[ZARR_MAX_RANK],
                      zarr_tensor *tensor);
/* Turns n elements of a file round to this machine's byte order, where they stand.
 * orders, of structs: '<' or '>' for each field that is no struct; NULL: all are in
 * byte_order. */
void cli_elements_turn(const zarr_dtype *type, const char *orders, uint32_t byte_order,
                       void *data, uint64_t n);
/* NumPy writes holes between fields as ["","|V4"]. */
bool cli_fields_padded(const char *list);
/* The list with names for the holes, and the one without them; both owned. False: a field
 * without a name is none. */
bool cli_fields_unpad(const char *list, char **whole, char **kept);
/* Moves n structs of such a file together, to the front of data. */
void cli_struct_pack(const zarr_dtype *from, const zarr_dtype *to, void *data,
                     uint64_t n);
/* The orders in a v2 list of fields, such as [["a","<i4"]]. Owned. */
char *cli_struct_orders(const char *list);

#endif
