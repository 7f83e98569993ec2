/**
 * @file
 * Short calls for everyday work. They open and create nodes (arrays and groups) by their
 * location, read and write boxes of elements, and append rows. They list the members of a
 * group, and get and set attributes of plain C types. A program can mix them with the
 * calls of the other headers. A call whose name ends in _with takes options.
 */
#ifndef ZARRC_EASY_H
#define ZARRC_EASY_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/create.h>
#include <zarrc/error.h>
#include <zarrc/group.h>
#include <zarrc/io.h>
#include <zarrc/store.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/* Names of data types, as zarr_dtype_find() takes them. The compiler reports a misspelt
 * constant. The calls also accept any other name that zarr_dtype_find() accepts, such as
 * ">i2". */
#define ZARR_BOOL       "bool"
#define ZARR_INT8       "int8"
#define ZARR_INT16      "int16"
#define ZARR_INT32      "int32"
#define ZARR_INT64      "int64"
#define ZARR_UINT8      "uint8"
#define ZARR_UINT16     "uint16"
#define ZARR_UINT32     "uint32"
#define ZARR_UINT64     "uint64"
#define ZARR_FLOAT16    "float16"
#define ZARR_FLOAT32    "float32"
#define ZARR_FLOAT64    "float64"
#define ZARR_COMPLEX64  "complex64"
#define ZARR_COMPLEX128 "complex128"

/* ---- open and create ------------------------------------------------------- */

/** Options of calls that open or create a node by its location. The call borrows them.
 * NULL means defaults. */
typedef struct zarr_open_options {
    uint32_t struct_size, flags; /**< `flags` must be 0 */
    /** options of the store. The call adds ZARR_STORE_READ_ONLY for the mode "r", and
     * ZARR_STORE_CREATE if it makes a node */
    const zarr_store_options *store;
    const zarr_array_open_options *array; /**< options of an array's handle */
    const zarr_group_open_options *group; /**< options of a group's handle */
} zarr_open_options;

#define ZARR_OPEN_OPTIONS_INIT ZARR_SIZE_FIRST(zarr_open_options)

/**
 * @name Open a node by its location
 * `location` is a text such as "run.zarr/temp" or "run.zarr:/temp". zarr_location_parse()
 * describes its form; here it must not have a selection. Each call opens a store of its
 * own, which lives as long as the handle that the call returns. `mode` is "r" for a
 * read-only store, or "r+" to read and write. `opts` may be NULL.
 *
 * `ctx` may be NULL: then the call uses the default context. The first call that needs
 * this context makes it with default options, and it lives until the process ends. Any
 * thread, and a child process after fork(), may use it.
 *
 * @retval ZARR_ERR_NOT_FOUND there is no such node; the message tells what is there
 * @retval ZARR_ERR_INVALID the mode is unknown, or the location is empty or has a
 * selection
 * @retval ZARR_ERR_CORRUPT the metadata breaks the rules of the format
 * @retval ZARR_ERR_UNSUPPORTED this build lacks something that the metadata names
 * @{
 */
/**
 * Opens an array by its location.
 * @param out receives the array; owned: zarr_array_free()
 * @param ctx borrowed; the array keeps it alive; NULL: the default context
 * @param location where the array is, such as "run.zarr/temp"
 * @param mode "r": the store is read-only; "r+": read and write
 * @see zarr_create_array(), zarr_array_read_box(), zarr_array_check_ndim()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_open_array(zarr_array **out, zarr_context *ctx,
                                                     const char *location,
                                                     const char *mode, zarr_error *err);
/** Opens an array with options. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_open_array_with(zarr_array **out, zarr_context *ctx, const char *location,
                     const char *mode, const zarr_open_options *opts, zarr_error *err);
/** Opens a group in the same way; owned: zarr_group_free(). */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_open_group(zarr_group **out, zarr_context *ctx,
                                                     const char *location,
                                                     const char *mode, zarr_error *err);
/** Opens a group with options. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_open_group_with(zarr_group **out, zarr_context *ctx, const char *location,
                     const char *mode, const zarr_open_options *opts, zarr_error *err);
/** @} */

/**
 * @name Create a node at a location
 * `location` and `ctx` are as for zarr_open_array(). The call creates the directory of
 * the store and the parent groups if they are missing. `mode` has the values of
 * zarr-python:
 *
 * - "w-": fail with ZARR_ERR_EXISTS if the node exists;
 * - "w": replace an existing node. The call first deletes it with everything below it,
 *   and removes it from the consolidated metadata of the groups above;
 * - "a": open the node if it exists. An array must then have the requested data type and
 *   number of dimensions, and no dimension may be shorter than requested.
 *
 * @retval ZARR_ERR_EXISTS a node exists that the mode does not replace or open
 * @retval ZARR_ERR_INVALID an argument is wrong, or the location has a selection
 * @retval ZARR_ERR_UNSUPPORTED the data type is unknown, or the store cannot write
 * @{
 */
/**
 * Creates an array, or opens one that exists.
 * @param out receives the array; owned: zarr_array_free()
 * @param ctx borrowed; the array keeps it alive; NULL: the default context
 * @param location where the array is, such as "run.zarr/temp"
 * @param mode "w-", "w" or "a"
 * @param data_type such as ZARR_FLOAT32, as for zarr_dtype_find()
 * @param ndim number of dimensions; 0: a single element
 * @param shape `ndim` lengths in elements; NULL if `ndim` is 0. Borrowed for the call
 * @see zarr_open_array(), zarr_array_write_box(), zarr_array_append_rows()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): where an array is, and the least that a new one needs */
zarr_create_array(zarr_array **out, zarr_context *ctx, const char *location,
                  const char *mode, const char *data_type, int32_t ndim,
                  const uint64_t *shape, zarr_error *err);
/**
 * Creates an array from a spec. The flags of the spec replace the mode.
 * @param out,ctx,location as for zarr_create_array()
 * @param spec describes the array
 * @param opts options; NULL: defaults
 * @see zarr_array_create()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_create_array_with(
    zarr_array **out, zarr_context *ctx, const char *location,
    const zarr_array_spec *spec, const zarr_open_options *opts, zarr_error *err);
/** Creates a group, or opens one that exists; owned: zarr_group_free(). */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_create_group(zarr_group **out,
                                                       zarr_context *ctx,
                                                       const char *location,
                                                       const char *mode, zarr_error *err);
/** Creates a group from a spec. The flags of `spec` replace the mode. `spec` NULL: a v3
 * group without attributes. `opts` may be NULL. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_create_group_with(
    zarr_group **out, zarr_context *ctx, const char *location,
    const zarr_group_spec *spec, const zarr_open_options *opts, zarr_error *err);
/** @} */

/* ---- elements -------------------------------------------------------------- */

/**
 * Returns how many elements an array has, at most UINT64_MAX.
 * @param array borrowed; NULL: the call returns 0
 */
ZARR_API uint64_t zarr_array_n_items(const zarr_array *array);

/**
 * Checks the number of dimensions. A call that takes coordinates reads one for each
 * dimension of the stored array. So a program with coordinates of a fixed length must
 * check first.
 * @param array borrowed
 * @param ndim how many dimensions the program expects
 * @retval ZARR_ERR_INVALID the array has another number of dimensions
 * @see zarr_array_read_box(), zarr_array_ndim()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_check_ndim(const zarr_array *array,
                                                           int32_t ndim, zarr_error *err);

/**
 * @name Read and write a box of elements
 * A box is `count` neighbouring elements along each dimension, from `start` on. Its
 * elements are in host memory, in C order without gaps. If the memory and the array have
 * different data types, the call converts integers, floats and complex numbers. It does
 * so only if the target type can hold every value of the source type exactly. A read
 * converts int16 to float32, but not int32 to float32. The calling thread converts, and a
 * write allocates memory for all converted elements.
 *
 * @retval ZARR_ERR_INVALID the box reaches beyond the array; `data_bytes` is less than
 * the box needs; the target type cannot hold every value of the source type; or the store
 * is read-only
 * @retval ZARR_ERR_CORRUPT a chunk or a shard index is damaged
 * @retval ZARR_ERR_UNSUPPORTED the data type is unknown
 * @retval ZARR_ERR_IO the store failed
 * @{
 */
/**
 * Reads a box of an array into memory of the caller.
 * @param array borrowed
 * @param start first index along each dimension; NULL: 0
 * @param count how many elements along each dimension; NULL: all from `start` on. `start`
 * and `count` have one entry for each dimension of the array (zarr_array_check_ndim())
 * @param data_type data type in memory, such as ZARR_FLOAT32 or ">i2"; NULL: the array's
 * @param data memory for the elements; after a failure its content is undefined
 * @param data_bytes bytes of memory at `data`. The call never accesses memory beyond
 * them, whatever the stored shape is
 * @see zarr_array_n_items(), zarr_array_read(), zarr_array_read_submit()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_read_box(
    zarr_array *array, const uint64_t *start, const uint64_t *count,
    const char *data_type, void *data, uint64_t data_bytes, zarr_error *err);
/**
 * Reads a box with options.
 * @param array,start,count,data_type,data,data_bytes as for zarr_array_read_box()
 * @param opts as for zarr_array_read(). If `zarr_io_options.field` names a field, its
 * data type takes the place of the array's. If the field is a subarray, its dimensions
 * follow those of the box
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): what zarr_array_read_box() takes, and options */
zarr_array_read_box_with(zarr_array *array, const uint64_t *start, const uint64_t *count,
                         const char *data_type, void *data, uint64_t data_bytes,
                         const zarr_io_options *opts, zarr_error *err);
/**
 * Writes memory of the caller to a box of an array.
 * @param array,start,count,data_type,data_bytes as for zarr_array_read_box()
 * @param data the elements, only read
 * @see zarr_array_write(), zarr_store_flush()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_write_box(
    zarr_array *array, const uint64_t *start, const uint64_t *count,
    const char *data_type, const void *data, uint64_t data_bytes, zarr_error *err);
/**
 * Writes a box with options.
 * @param array,start,count,data_type,data,data_bytes as for zarr_array_write_box()
 * @param opts as for zarr_array_write()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): what zarr_array_write_box() takes, and options */
zarr_array_write_box_with(zarr_array *array, const uint64_t *start, const uint64_t *count,
                          const char *data_type, const void *data, uint64_t data_bytes,
                          const zarr_io_options *opts, zarr_error *err);
/**
 * Appends rows: makes an array longer along dimension 0 and writes there, as
 * zarr_array_append() does. A row is all elements with one index along dimension 0.
 * @param array borrowed
 * @param n_rows how many rows are appended
 * @param data_type,data,data_bytes the elements, as for zarr_array_write_box()
 * @see zarr_array_append()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_append_rows(zarr_array *array, uint64_t n_rows, const char *data_type,
                       const void *data, uint64_t data_bytes, zarr_error *err);
/**
 * Appends rows with options.
 * @param array,n_rows,data_type,data,data_bytes as for zarr_array_append_rows()
 * @param first becomes the index of the first new row; may be NULL
 * @param opts as for zarr_array_append()
 */
ZARR_API ZARR_MUST_CHECK zarr_status
/* NOLINT(function-size): what zarr_array_append_rows() takes, a result and options */
zarr_array_append_rows_with(zarr_array *array, uint64_t n_rows, const char *data_type,
                            const void *data, uint64_t data_bytes, uint64_t *first,
                            const zarr_io_options *opts, zarr_error *err);
/** @} */

/* ---- members of a group ---------------------------------------------------- */

/** The nodes below a group at the time of the listing. Thread class: frozen. */
typedef struct zarr_members {
    uint32_t struct_size, reserved;
    uint64_t n; /**< how many there are */
    /** the nodes: parents before their children, siblings by name; NULL if `n` is 0 */
    const zarr_node_item *const *node;
} zarr_members;

/**
 * @name List the members of a group
 * The list is a copy, so the program may change, delete and create nodes while it uses
 * the list. A node whose metadata is damaged has the kind ZARR_NODE_NONE.
 * @retval ZARR_ERR_INVALID `max_depth` is negative
 * @retval ZARR_ERR_UNSUPPORTED the store cannot list
 * @retval ZARR_ERR_LIMIT there are more names than `zarr_limits.listing_keys`
 * @retval ZARR_ERR_IO the store failed
 * @{
 */
/**
 * Lists the nodes below a group.
 * @param out receives the list; owned: zarr_members_free()
 * @param group borrowed
 * @param max_depth 1: direct children only; 2: also their children, and so on; 0: all
 * nodes below the group
 * @see zarr_group_open_array(), zarr_group_walk()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_list_members(zarr_members **out,
                                                             zarr_group *group,
                                                             int32_t max_depth,
                                                             zarr_error *err);
/**
 * Lists the nodes below a group with options.
 * @param out,group,max_depth as for zarr_group_list_members()
 * @param opts as for zarr_group_walk(); NULL: defaults
 */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_list_members_with(zarr_members **out, zarr_group *group, int32_t max_depth,
                             const zarr_list_options *opts, zarr_error *err);
/** Frees a list. `members` may be NULL. */
ZARR_API void zarr_members_free(zarr_members *members);
/** @} */

/* ---- attributes ------------------------------------------------------------ */

/** The texts of an attribute. Thread class: frozen. */
typedef struct zarr_texts {
    uint32_t struct_size, reserved;
    uint64_t n;              /**< how many there are */
    const char *const *text; /**< each ends with a NUL */
} zarr_texts;

/**
 * @name Attributes as plain C types
 * zarr_array_attribute_get() and zarr_array_attribute_set() handle any JSON value; these
 * calls handle numbers, texts and lists of them. `name` is the name of the attribute.
 * Calls that get a list accept a single value, as a list of one. Calls that get a single
 * value accept a list of one. NaN and infinities are stored as the texts "NaN",
 * "Infinity" and "-Infinity", because JSON has no such numbers.
 *
 * - Getting a list of numbers stores the numbers in `values`, which has room for `cap` of
 *   them, and their count in `n`. If `values` is NULL, it stores only the count. If `n`
 *   is NULL, the list must have exactly `cap` numbers; otherwise the call fails with
 *   ZARR_ERR_INVALID.
 * - Getting a text stores it in `text`, which has room for `cap` bytes. Its length
 *   without the NUL goes to `text_bytes`, which may be NULL. If `text` is NULL, the call
 *   stores only the length.
 * - Getting a list of texts allocates it; owned: zarr_texts_free().
 * - Setting a list takes `n` members, borrowed for the call.
 *
 * @retval ZARR_ERR_NOT_FOUND there is no such attribute
 * @retval ZARR_ERR_INVALID the attribute has another type; or a number does not fit the C
 * type, as 0.5 in int64_t, or as 2^53 + 1, which a double cannot hold exactly; or a text
 * has a NUL inside, or is not UTF-8; or the store is read-only
 * @retval ZARR_ERR_LIMIT the value does not fit in the memory of the caller, which does
 * not change; `n` or `text_bytes` tells how much is needed
 * @{
 */
/** Gets a number, and stores it in `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get_double(
    const zarr_array *array, const char *name, double *value, zarr_error *err);
/** Gets a whole number, and stores it in `value`; 3.0 counts as a whole number. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get_int64(
    const zarr_array *array, const char *name, int64_t *value, zarr_error *err);
/** Gets a text. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_attribute_get_text(const zarr_array *array, const char *name, char *text,
                              size_t cap, size_t *text_bytes, zarr_error *err);
/** Gets a list of numbers. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get_doubles(
    const zarr_array *array, const char *name, double *values, uint64_t cap, uint64_t *n,
    zarr_error *err);
/** Gets a list of whole numbers. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get_int64s(
    const zarr_array *array, const char *name, int64_t *values, uint64_t cap, uint64_t *n,
    zarr_error *err);
/** Gets a list of texts of an `array`. `out` receives it. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_get_texts(
    zarr_texts **out, const zarr_array *array, const char *name, zarr_error *err);
/** Sets a number, `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set_double(zarr_array *array,
                                                                     const char *name,
                                                                     double value,
                                                                     zarr_error *err);
/** Sets a whole number, `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set_int64(zarr_array *array,
                                                                    const char *name,
                                                                    int64_t value,
                                                                    zarr_error *err);
/** Sets a text. It ends with a NUL. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_array_attribute_set_text(zarr_array *array,
                                                                   const char *name,
                                                                   const char *text,
                                                                   zarr_error *err);
/** Sets a list of numbers. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_attribute_set_doubles(zarr_array *array, const char *name,
                                 const double *values, uint64_t n, zarr_error *err);
/** Sets a list of whole numbers. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_attribute_set_int64s(zarr_array *array, const char *name,
                                const int64_t *values, uint64_t n, zarr_error *err);
/** Sets a list of texts, `texts`. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_array_attribute_set_texts(zarr_array *array, const char *name,
                               const char *const *texts, uint64_t n, zarr_error *err);
/** Gets a number of a group, and stores it in `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get_double(
    const zarr_group *group, const char *name, double *value, zarr_error *err);
/** Gets a whole number of a group, and stores it in `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get_int64(
    const zarr_group *group, const char *name, int64_t *value, zarr_error *err);
/** Gets a text of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_attribute_get_text(const zarr_group *group, const char *name, char *text,
                              size_t cap, size_t *text_bytes, zarr_error *err);
/** Gets a list of numbers of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get_doubles(
    const zarr_group *group, const char *name, double *values, uint64_t cap, uint64_t *n,
    zarr_error *err);
/** Gets a list of whole numbers of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get_int64s(
    const zarr_group *group, const char *name, int64_t *values, uint64_t cap, uint64_t *n,
    zarr_error *err);
/** Gets a list of texts of a `group`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_get_texts(
    zarr_texts **out, const zarr_group *group, const char *name, zarr_error *err);
/** Sets a number of a group, `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set_double(zarr_group *group,
                                                                     const char *name,
                                                                     double value,
                                                                     zarr_error *err);
/** Sets a whole number of a group, `value`. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set_int64(zarr_group *group,
                                                                    const char *name,
                                                                    int64_t value,
                                                                    zarr_error *err);
/** Sets a text of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_group_attribute_set_text(zarr_group *group,
                                                                   const char *name,
                                                                   const char *text,
                                                                   zarr_error *err);
/** Sets a list of numbers of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_attribute_set_doubles(zarr_group *group, const char *name,
                                 const double *values, uint64_t n, zarr_error *err);
/** Sets a list of whole numbers of a group. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_attribute_set_int64s(zarr_group *group, const char *name,
                                const int64_t *values, uint64_t n, zarr_error *err);
/** Sets a list of texts of a group, `texts`. */
ZARR_API ZARR_MUST_CHECK zarr_status
zarr_group_attribute_set_texts(zarr_group *group, const char *name,
                               const char *const *texts, uint64_t n, zarr_error *err);
/** Frees a list of texts. `texts` may be NULL. */
ZARR_API void zarr_texts_free(zarr_texts *texts);
/** @} */

ZARR_END_DECLS

#endif
