/**
 * @file
 * Data types. A zarr_dtype knows its names in both formats (v2 and v3), the size of its
 * elements, and how to swap their bytes, print, parse and compare them. It does not know
 * their byte order: the tensor tells that of memory, a codec that of stored chunks.
 * Thread class: frozen.
 *
 * A zarr_dtype belongs to its context and lives as long as the context: nothing has to be
 * freed. Equal types of a context are the same object. All types of a context together
 * take at most `zarr_limits.dtype_bytes` of memory. A long-running program that always
 * meets new struct types must make a new context from time to time.
 */
#ifndef ZARRC_DTYPE_H
#define ZARRC_DTYPE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** How many numbers an element has at most; complex numbers have 2. */
#define ZARR_COMPONENTS_MAX 64

/** Kinds of elements. Later versions may add kinds: treat an unknown kind as opaque
 * bytes. `<N>` is a number of bits, `<n>` one of bytes or characters. */
enum {
    ZARR_KIND_BOOL = 1,    /**< one byte, 0 or 1 */
    ZARR_KIND_INT = 2,     /**< signed integer */
    ZARR_KIND_UINT = 3,    /**< unsigned integer */
    ZARR_KIND_FLOAT = 4,   /**< floating-point number */
    ZARR_KIND_COMPLEX = 5, /**< real part and imaginary part */
    ZARR_KIND_RAW = 6,     /**< opaque bytes: v3 r<N>, v2 V<n> */
    ZARR_KIND_BYTES = 7,   /**< text of fixed length in bytes, padded with NUL: v2 S<n> */
    ZARR_KIND_UTF32 = 8, /**< text of fixed length in UCS-4, padded with zero: v2 U<n> */
    ZARR_KIND_DATETIME = 9,   /**< int64: units since 1970; INT64_MIN is NaT, no time */
    ZARR_KIND_TIMEDELTA = 10, /**< int64: a number of units; INT64_MIN is NaT */
    ZARR_KIND_STRUCT = 11, /**< named fields without gaps, in the machine's byte order */
    ZARR_KIND_STRING = 12, /**< UTF-8 text of any length: a zarr_vlen */
    ZARR_KIND_VBYTES = 13, /**< bytes of any length: a zarr_vlen */
    ZARR_KIND_OPTIONAL = 14, /**< a value, then one byte: 1, or 0 if the value is
                                missing; the bytes of a missing value are zero */
    ZARR_KIND_VARRAY = 15,   /**< lists of any length, whose elements have the type of
                                zarr_dtype_item(): a zarr_vlen */
    ZARR_KIND_OTHER = 255 /**< a type of a plug-in: zarr_dtype_print() shows elements */
};

/**
 * One element of variable length in host memory. Text does not end with a NUL and may
 * contain NULs: only `bytes` tells its length. After a read, a zarr_heap owns the bytes.
 * For a write, the caller owns them and keeps them valid until the call or request is
 * done.
 */
typedef struct zarr_vlen {
    const void *data; /**< the bytes; may be NULL if there are none */
    uint64_t bytes;   /**< how many there are */
} zarr_vlen;

/**
 * Finds a data type by one of its names. Accepted are:
 * - a v3 name: "int16", "r24", "numpy.datetime64[10us]";
 * - a v2 or NumPy string: "<i2", "|S4", "<U8", "<M8[10us]", whose byte order is ignored;
 * - another name of NumPy's for a number or a time: "?", "e", "half", "datetime64[us]".
 * "int" and "uint" have 64 bits, "float" is float64, "complex" is complex128. "long" and
 * "intp" are refused, because their sizes differ between machines;
 * - a v3 JSON object with `name` and `configuration`;
 * - a v2 or NumPy list of fields as JSON: [["a","<i4"],["b",">f8",[2,3]]].
 *
 * Spec: Zarr v3 core, "Data types"; Zarr v2, "Data type encoding".
 *
 * @param out receives the data type, borrowed from the context
 * @param ctx borrowed
 * @param name the name
 * @retval ZARR_ERR_UNSUPPORTED the data type is unknown, or the library refuses it; the
 * message gives the reason
 * @retval ZARR_ERR_INVALID the text cannot be a data type
 * @see zarr_array_dtype(), zarr_dtype_name(), zarr_dtype_find_order()
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_find(const zarr_dtype **out,
                                                     zarr_context *ctx, const char *name,
                                                     zarr_error *err);

/**
 * Finds a data type and the byte order in its name. ">i2" means int16 in big-endian
 * order. Put both into a zarr_tensor to describe the memory of another library, such as a
 * NumPy array.
 * @param out receives the data type, borrowed from the context
 * @param ctx borrowed
 * @param name as for zarr_dtype_find(), or what zarr_dtype_numpy() gives; "T",
 * "StringDType", "O" and "object" are `string`
 * @param byte_order receives ZARR_ORDER_LITTLE or ZARR_ORDER_BIG if the name says so
 * and elements have a byte order; else 0. For a list of fields it is the
 * order of all fields that have one
 * @retval ZARR_ERR_UNSUPPORTED the data type is unknown; or it is a struct whose fields
 * have different byte orders
 * @retval ZARR_ERR_INVALID the text cannot be a data type
 * @see zarr_tensor
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_find_order(const zarr_dtype **out,
                                                           zarr_context *ctx,
                                                           const char *name,
                                                           uint32_t *byte_order,
                                                           zarr_error *err);

/**
 * @name Names of a data type
 * The texts are borrowed and live as long as the context.
 * @{
 */
/** Returns the v3 name, such as "float32"; NULL if the type has none. The name of a
 * struct is its JSON object, which zarr_dtype_find() takes. */
ZARR_API const char *zarr_dtype_name(const zarr_dtype *dtype);

/**
 * Returns the v2 string in little-endian spelling, such as "<f4", "|b1" or "|S4"; NULL if
 * the type has none. The string of a struct is the JSON text of its list of fields.
 */
ZARR_API const char *zarr_dtype_v2(const zarr_dtype *dtype);

/**
 * Returns what `data_type` is in v3 metadata, as JSON text: a string in quotes, or an
 * object with `name` and `configuration`; NULL if the type has no v3 name.
 */
ZARR_API const char *zarr_dtype_v3(const zarr_dtype *dtype);

/** Returns the name in v3 metadata without its configuration, such as "float32" or
 * "numpy.datetime64"; NULL if the type has no v3 name. */
ZARR_API const char *zarr_dtype_v3_name(const zarr_dtype *dtype);

/** Returns the configuration in v3 metadata as the JSON text of an object, such as
 * {"unit":"us","scale_factor":10}; NULL if the type has none. v2 has no separate
 * configuration: the v2 string has everything. */
ZARR_API const char *zarr_dtype_v3_configuration(const zarr_dtype *dtype);

/**
 * Returns the name in NumPy, or NULL if there is none. It is one of:
 * - a type string in little-endian spelling, such as "<f4", "|V3" or "<M8[ns]";
 * - the name in the Python package ml_dtypes, such as "bfloat16" or "int4";
 * - "T" (StringDType) for text of any length, for which "O" is a name, too;
 * - "O" (objects) for other types of any length;
 * - "3B" for three unsigned bytes.
 */
ZARR_API const char *zarr_dtype_numpy(const zarr_dtype *dtype);

/** Returns the name of the default codec that turns elements into bytes: "bytes",
 * "vlen-utf8" and so on. Arrays that are created without codecs have it. */
ZARR_API const char *zarr_dtype_codec(const zarr_dtype *dtype);
/** @} */

/**
 * @name What the elements of a data type are
 * @{
 */
/** Returns the kind of the elements, one of ZARR_KIND_*. */
ZARR_API uint32_t zarr_dtype_kind(const zarr_dtype *dtype);

/** Returns how many bytes an element has in memory; for elements of variable length, the
 * size of a zarr_vlen. */
ZARR_API uint64_t zarr_dtype_item_bytes(const zarr_dtype *dtype);

/** Returns 1 if elements have variable length, else 0. Each such element is a zarr_vlen;
 * in optional types it begins with one. */
ZARR_API int zarr_dtype_variable(const zarr_dtype *dtype);

/** Returns how many bits of an element are significant: 8 for bool, 4 for int4. */
ZARR_API uint64_t zarr_dtype_item_bits(const zarr_dtype *dtype);

/** Returns the bytes of the unit that byte order applies to: 4 for int32, 8 for
 * complex128, 4 for text in UCS-4, 1 for raw bytes. */
ZARR_API uint32_t zarr_dtype_swap_bytes(const zarr_dtype *dtype);

/** Returns how many numbers an element has: 2 in complex types, up to
 * ZARR_COMPONENTS_MAX in types of plug-ins, else 1. */
ZARR_API uint32_t zarr_dtype_components(const zarr_dtype *dtype);

/** Returns how many bits of one of these numbers are significant: 1 for bool, 4 for int4,
 * 32 for complex64. */
ZARR_API uint64_t zarr_dtype_component_bits(const zarr_dtype *dtype);

/** Returns the type of the elements of a list, in types of ZARR_KIND_VARRAY (vlen-array
 * of v2); NULL for other types. */
ZARR_API const zarr_dtype *zarr_dtype_item(const zarr_dtype *dtype);

/**
 * Returns the type of the values of an optional type; NULL for other types. The type of
 * the values may be optional, too. ZARR_KIND_OPTIONAL describes an element.
 */
ZARR_API const zarr_dtype *zarr_dtype_underlying(const zarr_dtype *dtype);

/** Returns 1 if Zarr's registry calls the type experimental, else 0. */
ZARR_API int zarr_dtype_experimental(const zarr_dtype *dtype);
/** @} */

/**
 * @name Data types of DLPack
 * @{
 */
/**
 * Gets the numbers by which DLPack names a data type. An element of less than 8 bits,
 * such as int4, takes a whole byte in memory: set
 * DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED in the DLManagedTensorVersioned, or use a
 * tensor with ZARR_TENSOR_PACKED.
 * @param dtype borrowed
 * @param code,bits,lanes filled, as members of a DLDataType
 * @return 0; -1 if DLPack has no such type
 */
ZARR_API int zarr_dtype_dlpack(const zarr_dtype *dtype, uint8_t *code, uint8_t *bits,
                               uint16_t *lanes);

/**
 * Finds the data type that a DLDataType of DLPack describes.
 * @param out receives the data type, borrowed from the context
 * @param ctx borrowed
 * @param code,bits,lanes members of a DLDataType
 * @retval ZARR_ERR_UNSUPPORTED there is no such data type
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_from_dlpack(const zarr_dtype **out,
                                                            zarr_context *ctx,
                                                            uint8_t code, uint8_t bits,
                                                            uint16_t lanes,
                                                            zarr_error *err);
/** @} */

/**
 * Compares two data types.
 * @param a,b borrowed; they may belong to different contexts
 * @return 1 if both have the same name and configuration, else 0. Different spellings are
 * equal, such as "r24" and "raw_bytes[3]". For a type of a plug-in with
 * ZARR_DTYPE_ANY_CONFIGURATION, the call compares only the name
 */
ZARR_API int zarr_dtype_equal(const zarr_dtype *a, const zarr_dtype *b);

/* ---- fields of structs ------------------------------------------------------------- */

/** One field of structured elements. */
typedef struct zarr_dtype_field {
    uint32_t struct_size;
    int32_t ndim;            /**< dimensions of a subarray; 0: a single value */
    const char *name;        /**< the field's own name, borrowed from the data type */
    const zarr_dtype *dtype; /**< data type of one value */
    uint64_t offset;         /**< bytes from the beginning of the element to the field */
    uint64_t shape[ZARR_MAX_RANK]; /**< shape of the subarray, `ndim` entries */
    /** bytes from one value to the next, `ndim` entries */
    int64_t stride[ZARR_MAX_RANK];
} zarr_dtype_field;

#define ZARR_DTYPE_FIELD_INIT ZARR_SIZE_FIRST(zarr_dtype_field)

/**
 * @name Fields of a structured data type
 * A structured element has named fields without gaps between them, in the machine's byte
 * order. A field is a value, a subarray of values, or a struct. zarr_array_read() and
 * zarr_array_write() handle one field of all elements, if `zarr_io_options.field` names
 * it.
 * @{
 */
/** Returns how many fields a data type has; 0 if it is not a struct. */
ZARR_API uint64_t zarr_dtype_n_fields(const zarr_dtype *dtype);

/**
 * Tells about a field by its number.
 * @param dtype borrowed
 * @param i number of the field, from 0, in the order of storage
 * @param out filled; initialise it with ZARR_DTYPE_FIELD_INIT
 * @retval ZARR_ERR_INVALID the type is not a struct, or has fewer fields
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_field_at(const zarr_dtype *dtype,
                                                         uint64_t i,
                                                         zarr_dtype_field *out,
                                                         zarr_error *err);

/**
 * Finds a field by its name. "a.b" is the field b of the struct a; a field whose own name
 * is "a.b" is found first. A field inside of a subarray of structs has the dimensions of
 * that subarray before its own.
 * @param dtype borrowed
 * @param path name of the field, or names joined by dots
 * @param out filled; initialise it with ZARR_DTYPE_FIELD_INIT
 * @retval ZARR_ERR_NOT_FOUND there is no such field; the message lists the fields
 * @retval ZARR_ERR_INVALID the type is not a struct, or the field has more than
 * ZARR_MAX_RANK dimensions
 * @see zarr_io_options
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_field_find(const zarr_dtype *dtype,
                                                           const char *path,
                                                           zarr_dtype_field *out,
                                                           zarr_error *err);
/** @} */

/* ---- elements as text -------------------------------------------------------------- */

/**
 * @name Elements as JSON text
 * The text of an element is the one that a fill value has in v3 metadata. In memory,
 * elements are in the machine's byte order.
 *
 * Spec: Zarr v3 core, "Array metadata", `fill_value`.
 * @{
 */
/**
 * Writes one element as JSON text.
 * @param dtype borrowed
 * @param element the element
 * @param text,cap buffer of `cap` bytes; `text` may be NULL if `cap` is 0
 * @param text_bytes becomes the length of the text without its terminator, which may
 * exceed `cap`
 * @retval ZARR_ERR_INVALID an argument is NULL
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_print(const zarr_dtype *dtype,
                                                      const void *element, char *text,
                                                      size_t cap, size_t *text_bytes,
                                                      zarr_error *err);

/**
 * Makes one element from JSON text. An element of variable length gets memory of its own,
 * which zarr_dtype_release() frees.
 * @param dtype borrowed
 * @param json the text, such as "3", "\"NaN\"" or "[1.5, 0]"
 * @param element filled; it has room for zarr_dtype_item_bytes()
 * @retval ZARR_ERR_INVALID the text is not JSON, or not a value of the type
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_parse(const zarr_dtype *dtype,
                                                      const char *json, void *element,
                                                      zarr_error *err);

/**
 * Frees the memory that zarr_dtype_parse() allocated for an element of variable length,
 * and makes the element empty. For other types it does nothing.
 * @param dtype borrowed
 * @param element the element
 */
ZARR_API void zarr_dtype_release(const zarr_dtype *dtype, void *element);
/** @} */

/**
 * Compares two elements, for sorting. The order depends on the type:
 * - numbers: by value, with -0 before 0 and NaN after all others;
 * - complex numbers: by the real part first;
 * - text: by characters;
 * - times: by value, with NaT after all others;
 * - types of plug-ins: as the plug-in says;
 * - other elements: by bytes.
 * @param dtype borrowed
 * @param a,b elements in the machine's byte order
 * @return a number below 0 if `a` comes before `b`, 0 if they are the same element, and a
 * number above 0 if `a` comes after `b`. Two NaNs with different payloads are different
 * elements
 */
ZARR_API int zarr_dtype_compare(const zarr_dtype *dtype, const void *a, const void *b);

/**
 * Converts one element to doubles, one for each number in it. The conversion is exact,
 * except that 64-bit integers beyond 2^53 are rounded to the nearest double. A time
 * becomes its number of units; NaT becomes NaN.
 * @param dtype borrowed
 * @param element an element in the machine's byte order; may be NULL if `cap` is 0
 * @param out,cap filled with the first `cap` numbers; ZARR_COMPONENTS_MAX are enough for
 * each type. `out` may be NULL if `cap` is 0
 * @return how many numbers an element has, which may exceed `cap`; 0 if elements are not
 * numbers
 * @see zarr_dtype_components()
 */
ZARR_API uint32_t zarr_dtype_number(const zarr_dtype *dtype, const void *element,
                                    double *out, uint32_t cap);

ZARR_END_DECLS

#endif
