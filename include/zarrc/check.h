/**
 * @file
 * Calls that look at all elements: zarr_node_verify() checks everything that is stored in
 * a hierarchy, zarr_array_verify() in one array, zarr_node_diff() compares two nodes, and
 * zarr_array_summary() computes statistics. All of them only read.
 */
#ifndef ZARRC_CHECK_H
#define ZARRC_CHECK_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/group.h>
#include <zarrc/io.h>
#include <zarrc/progress.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/* ---- verify ----------------------------------------------------------------------- */

/** Severities of findings. */
enum {
    /** all data can be read, but something is not as it should be, such as consolidated
     * metadata that is out of date. Or something was not checked, because this build
     * cannot decode it */
    ZARR_SEVERITY_WARNING = 1,
    ZARR_SEVERITY_ERROR = 2, /**< data or metadata cannot be read */
    /** no fault: elements outside of the shape, objects below an array that are no part
     * of it, or a recommendation that an archive does not follow */
    ZARR_SEVERITY_NOTE = 3,
    /** not checked, because the data exceeds a limit of this context. The message names
     * the limit */
    ZARR_SEVERITY_LIMIT = 4
};

/** Subjects of findings. */
enum {
    ZARR_FINDING_NODE = 1,  /**< a node that cannot be opened */
    ZARR_FINDING_CHUNK = 2, /**< a stored object, or a chunk of a shard */
    /** consolidated metadata that differs from a node, or that readers ignore because it
     * is damaged */
    ZARR_FINDING_CONSOLIDATED = 3,
    /** with ZARR_VERIFY_STRICT: metadata of an array that a strict reader refuses */
    ZARR_FINDING_STRICT = 4,
    /** elements stored outside of the array's shape, which a larger shape would show.
     * WARNING: an interrupted call left them. NOTE: the message has the number of chunks
     * with such elements, and `key` is the key of one */
    ZARR_FINDING_OUTSIDE = 5,
    /** objects below an array that are neither chunks nor documents of it, such as chunks
     * of another key encoding. The message has their number, and `key` is the key of one
     */
    ZARR_FINDING_FOREIGN = 6,
    /** with ZARR_VERIFY_MISSING_ERROR: chunks that are not stored. Each array has one
     * such finding, with their number and the key of the first */
    ZARR_FINDING_MISSING = 7,
    /** the form of the store, if the root is verified. ERROR: the store breaks a rule.
     * NOTE: it does not follow a recommendation. Archives called "*.ozx" are checked for
     * RFC-9 of OME-NGFF. Others whose comment says OME-Zarr get only NOTEs */
    ZARR_FINDING_STORE = 8
};

/** A fault that zarr_node_verify() found. Everything in it is borrowed for the call. */
typedef struct zarr_finding {
    uint32_t struct_size;
    uint32_t severity; /**< ZARR_SEVERITY_* */
    uint32_t what;     /**< ZARR_FINDING_* */
    uint32_t kind;     /**< of the node: ZARR_NODE_*; NONE: its metadata cannot be read */
    zarr_status status; /**< what is wrong, such as ZARR_ERR_CORRUPT; NOTE: ZARR_OK */
    int32_t ndim;       /**< CHUNK: number of coordinates */
    const char *path;   /**< of the node, from the store's root */
    /** CHUNK, CONSOLIDATED, OUTSIDE, FOREIGN, MISSING: key of the object, from the
     * store's root; NODE, STRICT: the path */
    const char *key;
    const char *message; /**< one line, without path and key */
    /** CHUNK: grid coordinates of the block; else NULL */
    const uint64_t *block;
    /** CHUNK: first element of the faulty chunk or block; else NULL */
    const uint64_t *origin;
} zarr_finding;

/** Flags of zarr_verify_options. */
enum {
    ZARR_VERIFY_NO_DATA = 1, /**< check metadata only: decode no chunk */
    /**
     * also check the rules for new arrays: some faults, such as a compression level out
     * of range, prevent creating an array but not opening one. The first such fault of
     * each array is a WARNING
     */
    ZARR_VERIFY_STRICT = 2,
    /** a chunk that is not stored is an error, also in a shard */
    ZARR_VERIFY_MISSING_ERROR = 4
};

/** Options of zarr_node_verify(). */
typedef struct zarr_verify_options {
    uint32_t struct_size, flags;    /**< `flags`: ZARR_VERIFY_* */
    uint32_t max_threads, reserved; /**< maximum threads; 0: as many as the context has */
    /** receives each finding, on one thread at a time and without a lock held. If it
     * returns non-zero, the call stops and returns ZARR_OK. NULL: findings are counted */
    int (*tell)(void *user, const zarr_finding *finding);
    void *tell_user; /**< passed to `tell` */
    /** receives the numbers of objects and bytes that were checked; may be NULL */
    zarr_progress_fn progress;
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_verify_options;

/** Initial value of a zarr_verify_options. */
#define ZARR_VERIFY_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_verify_options)

/** What zarr_node_verify() looked at and found. */
typedef struct zarr_verify_result {
    uint32_t struct_size, flags;
    uint64_t n_arrays;   /**< arrays that were checked */
    uint64_t n_groups;   /**< groups that were checked */
    uint64_t n_objects;  /**< stored blocks of these arrays */
    uint64_t n_bytes;    /**< their encoded bytes */
    uint64_t n_errors;   /**< findings of ZARR_SEVERITY_ERROR */
    uint64_t n_warnings; /**< findings of ZARR_SEVERITY_WARNING */
    uint64_t n_notes;    /**< findings of ZARR_SEVERITY_NOTE */
    uint64_t n_limits;   /**< findings of ZARR_SEVERITY_LIMIT */
} zarr_verify_result;

/** Initial value of a zarr_verify_result. */
#define ZARR_VERIFY_RESULT_INIT ZARR_SIZE_FIRST(zarr_verify_result)

/**
 * Verifies a node with everything below it. The call reads and decodes all that is
 * stored: the metadata of every node, every chunk with its checksums, and the index of
 * every shard. It compares consolidated metadata with the nodes. Chunks that are not
 * stored are legal. Without checksums, the call finds a changed bit only if the decoder
 * notices it.
 *
 * @param store store of the node; may be read-only
 * @param path path of the node; "" is the root of the store
 * @param result filled up to its struct_size; after a failure it has the counts until
 * then. May be NULL
 * @param opts options; NULL: defaults
 * @return ZARR_OK if everything could be checked, with or without findings
 * @retval ZARR_ERR_NOT_FOUND there is no node, nor a damaged one
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed as a whole, so the check is not complete. One
 * object that cannot be read is a finding
 * @see zarr_array_verify()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_verify(zarr_store *store, const char *path,
                                                      zarr_verify_result *result,
                                                      const zarr_verify_options *opts,
                                                      zarr_error *err);

/* ---- one array ------------------------------------------------------------------ */

/** A fault that zarr_array_verify() found. Its texts are borrowed for the call. */
typedef struct zarr_verify_item {
    uint32_t struct_size;
    zarr_status status;    /**< what is wrong, such as ZARR_ERR_CORRUPT */
    const char *key;       /**< key of the object in the chunk store */
    const char *message;   /**< one line that says what is wrong */
    const uint64_t *block; /**< grid coordinates of the block; `ndim` entries */
    /** first element of the faulty chunk or block; `ndim` entries */
    const uint64_t *origin;
    int32_t ndim, reserved; /**< `ndim`: dimensions of the array */
} zarr_verify_item;

/**
 * Checks everything that an array has stored. Every chunk is decoded, and every shard
 * index is checked. After a fault the check goes on. If the store cannot list, the call
 * asks it for each block of the grid, and finds no other keys.
 *
 * @param array borrowed
 * @param fn called for each fault, by one thread at a time and with no lock held; a
 * non-zero return ends the check
 * @param user passed to `fn`
 * @param opts `max_threads`, `progress` and `cancel` are used; NULL: defaults
 * @return ZARR_OK if everything could be checked, with or without faults
 * @retval ZARR_ERR_CORRUPT the metadata names the wrong separator of chunk keys
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO the store failed as a whole, so the check is not complete. One
 * object that cannot be read is a fault
 * @retval ZARR_ERR_LIMIT the grid has more blocks to ask for than
 * `zarr_limits.listing_keys`
 * @see zarr_array_list_blocks()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_verify(zarr_array *array, int (*fn)(void *user, const zarr_verify_item *item),
                  void *user, const zarr_io_options *opts, zarr_error *err);

/* ---- diff ------------------------------------------------------------------------- */

/** Kinds of differences. */
enum {
    ZARR_DIFFERENCE_ONLY_A = 1,         /**< a node that b does not have */
    ZARR_DIFFERENCE_ONLY_B = 2,         /**< a node that a does not have */
    ZARR_DIFFERENCE_KIND = 3,           /**< the kind of the node: "array", "group" or
                                           "unreadable" */
    ZARR_DIFFERENCE_SHAPE = 4,          /**< the shape of the array or of the region */
    ZARR_DIFFERENCE_DATA_TYPE = 5,      /**< the data type, by name */
    ZARR_DIFFERENCE_FIELD_SHAPE = 6,    /**< the shape of the field that is compared */
    ZARR_DIFFERENCE_FILL_VALUE = 7,     /**< the fill value, as JSON */
    ZARR_DIFFERENCE_DIMENSION_NAME = 8, /**< the name of dimension `dim` */
    ZARR_DIFFERENCE_ATTRIBUTE = 9,      /**< the attribute `name`, as JSON */
    ZARR_DIFFERENCE_FORMAT = 10,        /**< with ZARR_DIFF_STORAGE: the Zarr format */
    ZARR_DIFFERENCE_CHUNKS = 11,        /**< with ZARR_DIFF_STORAGE: the chunk shape */
    ZARR_DIFFERENCE_SHARDS = 12,        /**< with ZARR_DIFF_STORAGE: the block shape */
    ZARR_DIFFERENCE_CHUNK_GRID = 13,    /**< with ZARR_DIFF_STORAGE: the chunk grid */
    ZARR_DIFFERENCE_CODECS = 14,        /**< with ZARR_DIFF_STORAGE: the codecs */
    ZARR_DIFFERENCE_ELEMENT = 15,       /**< one element */
    /** a node or a chunk that cannot be read: `a` or `b` has the reason. Not counted as a
     * difference */
    ZARR_DIFFERENCE_UNREADABLE = 16,
    /** the missing value, as JSON (see zarr_array_missing_value()). Compared only if both
     * arrays have dimension names and their formats differ. Then `_FillValue` is not
     * reported as a ZARR_DIFFERENCE_ATTRIBUTE */
    ZARR_DIFFERENCE_MISSING_VALUE = 17
};

/** One difference. Everything in it is borrowed for the call. */
typedef struct zarr_difference {
    uint32_t struct_size;
    uint32_t what;    /**< ZARR_DIFFERENCE_* */
    const char *path; /**< of the node, below both; "": the nodes themselves */
    const char *name; /**< ATTRIBUTE; else NULL */
    int32_t dim;      /**< DIMENSION_NAME; else -1 */
    uint32_t is_json; /**< 1: `a` and `b` are JSON; 0: plain text */
    /** value in a; NULL: a has none, or the difference is in a shape or an element */
    const char *a;
    const char *b; /**< value in b, likewise */
    /** SHAPE, FIELD_SHAPE, CHUNKS, SHARDS: the shape in a; NULL: chunks differ in shape
     */
    const uint64_t *shape_a;
    const uint64_t *shape_b; /**< in b, likewise */
    int32_t ndim_a;          /**< length of `shape_a` */
    int32_t ndim_b;          /**< length of `shape_b` */
    /** ELEMENT: its index in the region, then that in the subarray of a field.
     * UNREADABLE: the first element that was not compared; NULL: the node cannot be read
     */
    const uint64_t *index;
    int32_t ndim, reserved;  /**< length of `index` */
    const zarr_dtype *dtype; /**< ELEMENT: its data type */
    const void *element_a;   /**< ELEMENT: the native-endian value in a */
    const void *element_b;   /**< ELEMENT: the one in b */
    double distance;         /**< ELEMENT: |a - b|; negative: they are no numbers */
} zarr_difference;

/** The result for a node that is in both hierarchies, reported after the node's
 * differences. Everything is borrowed for the call. */
typedef struct zarr_diff_node {
    uint32_t struct_size;
    uint32_t kind;          /**< ZARR_NODE_* in a */
    const char *path;       /**< below both */
    uint64_t n_differences; /**< those other than elements */
    uint64_t n_elements;    /**< elements compared; in subarrays of a field, each value */
    uint64_t n_different;   /**< elements that differ */
    int32_t ndim, reserved; /**< length of the indexes that follow */
    /** index of the first element that differs, in the order of comparison (chunk by
     * chunk); NULL: none does */
    const uint64_t *first_at;
    double largest;             /**< largest |a - b|; negative: no numbers differ */
    const uint64_t *largest_at; /**< where that is; NULL: nowhere */
    /** elements that were not compared, because a chunk cannot be read */
    uint64_t n_unread;
} zarr_diff_node;

/** Flags of zarr_diff_options. */
enum {
    ZARR_DIFF_STORAGE = 1,     /**< also compare chunks, shards, codecs and format */
    ZARR_DIFF_DATA = 2,        /**< compare only kind, shape, data type and elements */
    ZARR_DIFF_NAN_DIFFERS = 4, /**< NaN is equal to nothing; default: NaN equals NaN */
    ZARR_DIFF_TOLERANT = 8,    /**< compare with `rtol` and `atol`, also if both are 0 */
    ZARR_DIFF_FIRST = 16,      /**< stop after the first node or part that differs */
    /** elements of a missing chunk cannot be read; default: they have the fill value */
    ZARR_DIFF_MISSING_ERROR = 32
};

/** Options of zarr_node_diff(). */
typedef struct zarr_diff_options {
    uint32_t struct_size, flags; /**< `flags`: ZARR_DIFF_* */
    double rtol; /**< with ZARR_DIFF_TOLERANT: equal if |a - b| <= atol + rtol * |b| */
    double atol; /**< see `rtol`. Without the flag: equal bits, or both are NaN */
    /** `tell` receives at most this many elements and this many unreadable chunks of an
     * array; all are counted */
    uint64_t max_elements;
    /** maximum bytes of buffers, at most 128 MiB; they do not count in the context's
     * budget. 0: half of the context's memory_bytes */
    uint64_t buffer_bytes;
    /** one field of arrays of structs, "a.b"; implies ZARR_DIFF_DATA; NULL: elements */
    const char *field;
    const zarr_selection *selection_a; /**< region of a, if it is an array; NULL: all */
    const zarr_selection *selection_b; /**< region of b, likewise */
    /** receives each difference. If it returns non-zero, the call stops and returns
     * ZARR_OK; may be NULL */
    int (*tell)(void *user, const zarr_difference *difference);
    /** receives each node that both have, after its differences; like `tell` */
    int (*tell_node)(void *user, const zarr_diff_node *compared);
    void *tell_user; /**< passed to `tell` and `tell_node` */
    /** receives the number of decoded bytes of a that were compared; may be NULL */
    zarr_progress_fn progress;
    void *progress_user; /**< passed to `progress` */
    /** stops the call with ZARR_ERR_CANCELLED once it is set; borrowed; may be NULL */
    zarr_cancel *cancel;
} zarr_diff_options;

/** Initial value of a zarr_diff_options. */
#define ZARR_DIFF_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_diff_options)

/** What zarr_node_diff() compared and found. */
typedef struct zarr_diff_result {
    uint32_t struct_size, flags;
    uint64_t n_nodes;              /**< nodes compared, and nodes in only a or only b */
    uint64_t n_different;          /**< nodes that differ */
    uint64_t n_elements;           /**< elements that were compared, of all arrays */
    uint64_t n_elements_different; /**< elements that differ */
    double largest;                /**< largest |a - b|; negative: no numbers differ */
    /** elements that were not compared, because a chunk cannot be read */
    uint64_t n_unread;
} zarr_diff_result;

/** Initial value of a zarr_diff_result. */
#define ZARR_DIFF_RESULT_INIT ZARR_SIZE_FIRST(zarr_diff_result)

/**
 * Compares two nodes with everything below them. The call compares kind, shape, data
 * type, fill value, missing value, names of dimensions, attributes, and every element. A
 * node or chunk that cannot be read is reported, and everything else is compared. All
 * functions of the options are called on the caller's thread.
 *
 * @param store_a,path_a store and path of the first node
 * @param store_b,path_b store and path of the second node
 * @param result filled up to its struct_size, also after a failure; may be NULL
 * @param opts options; NULL: defaults
 * @return ZARR_OK if the nodes could be compared; `result->n_different` tells if they
 * differ
 * @retval ZARR_ERR_NOT_FOUND there is no node at one of the paths, or no such field
 * @retval ZARR_ERR_INVALID a selection was made for another shape, a tolerance is
 * negative, or `field` is given for an array that is not of structs
 * @retval ZARR_ERR_CORRUPT a node or chunk is damaged; the rest was compared, unless
 * ZARR_DIFF_FIRST or `tell` ended the call
 * @retval ZARR_ERR_UNSUPPORTED this build cannot read a node; the rest was compared
 * @retval ZARR_ERR_LIMIT a chunk is larger than a limit; the rest was compared. Or a
 * chunk needs more than the context's memory_bytes; nothing was compared
 * @retval ZARR_ERR_CANCELLED `cancel` was set
 * @retval ZARR_ERR_IO a store failed
 * @see zarr_node_verify()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_node_diff(
    zarr_store *store_a, const char *path_a, zarr_store *store_b, const char *path_b,
    zarr_diff_result *result, const zarr_diff_options *opts, zarr_error *err);

/* ---- summary ---------------------------------------------------------------------- */

/** Options of zarr_array_summary(). */
typedef struct zarr_summary_options {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    /** dimensions of the region over which statistics are computed; the others are kept,
     * and each of their places gets its own. NULL: over all dimensions */
    const int32_t *over;
    uint32_t n_over; /**< how many they are */
    /** dimension that `weights` belongs to, one of `over` */
    int32_t weights_dim;
    /** a weight of at least 0 for each index of `weights_dim`, such as the cosine of the
     * latitude, for sum, mean and standard deviation. NULL: all are 1 */
    const double *weights;
    uint64_t n_weights; /**< how many they are */
    /** an element: elements with this value are missing, and only counted; NULL: no value
     * means that. zarr_array_missing_value() gives the one of an array */
    const void *missing;
    /** `n_bins` + 1 rising edges of the histogram, as for NumPy; NULL: bins of equal
     * width from the least to the greatest element. Only over all dimensions */
    const double *edges;
    uint32_t n_bins;           /**< bins of the histogram; 0: none is made */
    uint32_t n_quantiles;      /**< how many `quantiles` there are */
    const double *quantiles;   /**< from 0 to 1. Only over all dimensions */
    zarr_progress_fn progress; /**< receives decoded bytes; may be NULL */
    void *progress_user;       /**< passed to `progress` */
    /** options of the reads. `field`, `missing_chunks`, `trust`, `stats`, `max_threads`,
     * `cancel` and `tuning` are used; NULL: defaults */
    const zarr_io_options *io;
    /** gives the values of `n` elements, so that packed elements have the statistics of
     * what they mean; NaN: the element is missing. Extremes are then of type float64, and
     * `missing` is not used. Any thread calls it, and several at a time. NULL: elements
     * are values */
    void (*convert)(void *user, const void *elements, uint64_t n, double *values);
    void *convert_user; /**< passed to `convert` */
} zarr_summary_options;

#define ZARR_SUMMARY_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_summary_options)

/** Flags of a zarr_summary. */
enum {
    /** quantiles, and a histogram without edges of the caller, are from a sketch. The
     * rank of a quantile errs by at most 1 % */
    ZARR_SUMMARY_SKETCH = 1
};

/**
 * Statistics of elements. Each pointer to results has `n_places` of them, one for each
 * place of the dimensions that are kept, in C order. A place without elements has zeros
 * as its extremes, and NaN as mean and deviation. Thread class: frozen.
 */
typedef struct zarr_summary {
    uint32_t struct_size, flags; /**< `flags`: ZARR_SUMMARY_SKETCH or 0 */
    int32_t ndim;                /**< number of dimensions that are kept */
    uint32_t n_bins;             /**< bins of the histogram */
    const uint64_t *shape;       /**< their lengths */
    const int32_t *dims;         /**< which dimensions of the region they are */
    uint64_t n_places;           /**< product of the lengths; 1 if none is kept */
    const zarr_dtype *dtype;     /**< data type of the elements */
    const uint64_t *count;       /**< elements that are neither missing nor NaN */
    const uint64_t *n_missing;   /**< elements that have the missing value */
    const uint64_t *n_nan;       /**< other elements that are NaN or NaT */
    const void *min, *max;       /**< least and greatest elements, of type `dtype` */
    /** sums, means and standard deviations (the divisor is the number of elements or the
     * sum of weights); NaN for times */
    const double *sum, *mean, *std;
    /** sums of integers without weights, exactly: `sum_high` * 2^64 + `sum_low`; else
     * NULL */
    const int64_t *sum_high;
    const uint64_t *sum_low; /**< see `sum_high` */
    const double *weight;    /**< sums of the weights of elements; NULL without weights */
    const double *edges;     /**< `n_bins` + 1 edges of the histogram; NULL without one */
    const uint64_t *bins;    /**< elements in each bin; the last has its upper edge */
    uint64_t n_below;        /**< elements below the first edge */
    uint64_t n_above;        /**< elements above the last edge */
    const double *quantiles; /**< one for each of the options */
} zarr_summary;

/**
 * @name Statistics of an array
 * @{
 */
/**
 * Computes statistics of the elements of an array or of a region of it. Memory holds a
 * part of the array and what each kept place needs. The call reads each element once. If
 * the region is a box, and a chunk needs at most a quarter of the context's memory, it
 * decodes each chunk once. It does not decode missing chunks.
 *
 * Sums of integers are exact. The error of a sum of n floats is, before it is rounded, at
 * most n * 2^-104 of the sum of absolute values. Results do not depend on the number of
 * threads. If a part of a sum is above the largest double, it is infinite or NaN.
 *
 * Quantiles lie between neighbouring elements, as those of NumPy do by default. They are
 * exact for types of up to 16 bits, and for regions whose elements, as doubles, take at
 * most a quarter of the context's memory. Otherwise a sketch is used, and `flags` tells.
 *
 * @param out receives the statistics; owned: zarr_summary_free()
 * @param array borrowed
 * @param selection the region, made for the array's shape; NULL: all elements
 * @param opts options; NULL: defaults
 * @retval ZARR_ERR_INVALID an option is wrong, or the selection does not fit the array
 * @retval ZARR_ERR_UNSUPPORTED elements are not real numbers, booleans or times; or
 * quantiles, a histogram or weights are asked for times
 * @retval ZARR_ERR_LIMIT the kept places need more than the context's memory
 * @retval ZARR_ERR_CORRUPT a chunk is damaged
 * @retval ZARR_ERR_NOT_FOUND as for zarr_array_read()
 * @retval ZARR_ERR_CONFLICT as for zarr_array_read()
 * @retval ZARR_ERR_CANCELLED `opts->io->cancel` was set
 * @retval ZARR_ERR_IO the store failed
 * @see zarr_array_missing_value(), zarr_array_read()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_summary(zarr_summary **out,
                                                        zarr_array *array,
                                                        const zarr_selection *selection,
                                                        const zarr_summary_options *opts,
                                                        zarr_error *err);
/** Frees statistics. `summary` may be NULL. */
ZARR_API void zarr_summary_free(zarr_summary *summary);
/** @} */

ZARR_END_DECLS

#endif
