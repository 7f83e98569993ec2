/*
 * zarrc/dtype.h - data types. A zarr_dtype is one immutable object that knows
 * all a runtime asks: its names in v2 and v3, configuration, size in memory,
 * and how its elements are byte-swapped, printed and parsed. Byte order is not
 * part of it: in memory it is the tensor's, in the store the codec's.
 * Thread class: frozen. Objects belong to the context that made them and live
 * as long as it does: nothing to free. A type that is met again is the same object; what
 * all of them may take together is the limit dtype_bytes, and a program that goes through
 * ever new structs for years takes a new context from time to time.
 */
#ifndef ZARRC_DTYPE_H
#define ZARRC_DTYPE_H

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/memory.h>

ZARR_BEGIN_DECLS

/** What the elements are. More kinds may come: treat an unknown one as opaque bytes. */
enum {
    ZARR_KIND_BOOL = 1,
    ZARR_KIND_INT = 2,
    ZARR_KIND_UINT = 3,
    ZARR_KIND_FLOAT = 4,
    ZARR_KIND_COMPLEX = 5,
    ZARR_KIND_RAW = 6,      /**< opaque bytes: v3 r<N>, v2 V<n> */
    ZARR_KIND_BYTES = 7,    /**< fixed length, NUL-padded: v2 S<n> */
    ZARR_KIND_UTF32 = 8,    /**< fixed length UCS-4, zero-padded: v2 U<n> */
    ZARR_KIND_DATETIME = 9, /**< int64 since 1970 in a unit; INT64_MIN is NaT */
    ZARR_KIND_TIMEDELTA = 10,
    ZARR_KIND_STRUCT = 11,   /**< named fields, packed, each in native byte order */
    ZARR_KIND_STRING = 12,   /**< UTF-8 of any length: zarr_vlen */
    ZARR_KIND_VBYTES = 13,   /**< bytes of any length: zarr_vlen */
    ZARR_KIND_OPTIONAL = 14, /**< a value's item and one byte: 1, or 0 where it is
                                missing (the item's bytes are zero then) */
    ZARR_KIND_VARRAY = 15,   /**< lists of any length of one other type,
                                zarr_dtype_item(): a zarr_vlen of its elements */
    ZARR_KIND_OTHER = 255    /**< a plug-in's own: zarr_dtype_print() says what it is */
};

/**
 * One element of a type of variable length, in host memory. Text has no NUL at its end
 * and may have some inside: the length counts. data may be NULL where bytes is 0. Whose
 * the bytes are: read, a zarr_heap's (zarrc/vlen.h); written, the caller's until the call
 * or request is done.
 */
typedef struct zarr_vlen {
    const void *data;
    uint64_t bytes;
} zarr_vlen;

/**
 * Looks a data type up by its v3 name ("int16", "r24", "numpy.datetime64[10us]"), by its
 * v2/NumPy string ("<i2", "|S4", "<U8", "<M8[10us]"; the byte order is ignored), by a
 * v3 JSON object
 * ({"name":..., "configuration":...}), or by a v2/NumPy list of fields
 * ([["a","<i4"],["b",">f8",[2,3]]]).
 * @param out borrowed, lives as long as ctx
 * @return UNSUPPORTED with the name for an unknown type; INVALID for malformed text
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_find(zarr_context *ctx, const char *name,
                                                     const zarr_dtype **out,
                                                     zarr_error *err);

/** v3 name, e.g. "float32", or NULL if the type has none. A struct's is its JSON object,
 * which zarr_dtype_find() takes. Borrowed. */
ZARR_API const char *zarr_dtype_name(const zarr_dtype *dtype);

/**
 * v2 string in little-endian spelling, e.g. "<f4", "|b1", "|S4", or NULL if it has none.
 * A struct's is the JSON text of its list of fields. Borrowed.
 */
ZARR_API const char *zarr_dtype_v2(const zarr_dtype *dtype);

/**
 * What data_type is in v3 metadata, as JSON: a string ("\"int16\""), or the object with
 * the type's name and configuration; NULL if it has no v3 name. Borrowed.
 */
ZARR_API const char *zarr_dtype_v3(const zarr_dtype *dtype);

/** One of ZARR_KIND_*. */
ZARR_API uint32_t zarr_dtype_kind(const zarr_dtype *dtype);

/** Bytes of one element in memory; where it is of variable length those of a zarr_vlen.
 */
ZARR_API uint64_t zarr_dtype_item_bytes(const zarr_dtype *dtype);

/** 1 when elements have no fixed length: each is a zarr_vlen, or begins with one
 * (ZARR_KIND_OPTIONAL). */
ZARR_API int zarr_dtype_variable(const zarr_dtype *dtype);

/** What the lists of a type of ZARR_KIND_VARRAY are made of (v2's vlen-array); NULL for
 * other types. */
ZARR_API const zarr_dtype *zarr_dtype_item(const zarr_dtype *dtype);

/** Significant bits of one element (bool: 8; int4: 4). */
ZARR_API uint64_t zarr_dtype_item_bits(const zarr_dtype *dtype);

/** Bytes of the unit that byte order applies to: int32 4, complex128 8, U<n> 4, raw 1. */
ZARR_API uint32_t zarr_dtype_swap_bytes(const zarr_dtype *dtype);

/** Numbers in one element, equal in size: 2 for complex types, else 1. */
ZARR_API uint32_t zarr_dtype_components(const zarr_dtype *dtype);

/** Significant bits of one component: bool 1, int4 4, complex64 32. */
ZARR_API uint64_t zarr_dtype_component_bits(const zarr_dtype *dtype);

/**
 * NumPy's name of the type: a type string in little-endian spelling ("<f4", "|V3",
 * "<M8[ns]"), the name that Python's ml_dtypes gives it ("bfloat16", "int4"), or NULL.
 * Borrowed.
 */
ZARR_API const char *zarr_dtype_numpy(const zarr_dtype *dtype);

/**
 * The data type for NumPy's: a type string (the byte order is ignored) or the name of a
 * numeric type ("float32", "bfloat16", "datetime64[us]").
 * @param out borrowed, lives as long as ctx
 * @return UNSUPPORTED with the name where there is none
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_from_numpy(zarr_context *ctx,
                                                           const char *numpy,
                                                           const zarr_dtype **out,
                                                           zarr_error *err);

/** The codec that turns elements into bytes in arrays made without naming one: "bytes",
 * "vlen-utf8" ... Borrowed. */
ZARR_API const char *zarr_dtype_codec(const zarr_dtype *dtype);

/** 1 when the registry calls the type experimental. */
ZARR_API int zarr_dtype_experimental(const zarr_dtype *dtype);

/**
 * DLPack code, bits and lanes; returns 0 and fills them, or -1 where DLPack has no
 * equivalent. Types of less than 8 bits (int4: 4) are one byte each here: say so in the
 * DLManagedTensorVersioned with DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, or ask for
 * ZARR_TENSOR_PACKED.
 */
ZARR_API int zarr_dtype_dlpack(const zarr_dtype *dtype, uint8_t *code, uint8_t *bits,
                               uint16_t *lanes);

/** The data type for DLPack's numbers, or UNSUPPORTED. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_from_dlpack(zarr_context *ctx,
                                                            uint8_t code, uint8_t bits,
                                                            uint16_t lanes,
                                                            const zarr_dtype **out,
                                                            zarr_error *err);

/** 1 when both are the same type with the same configuration, however it is spelled
 * ("r24", "raw_bytes[3]"). */
ZARR_API int zarr_dtype_equal(const zarr_dtype *a, const zarr_dtype *b);

/**
 * The type of the values of an optional type: an element is one of its items and then a
 * byte, 1 where there is a value, 0 where it is missing and the item's bytes are zero.
 * Itself optional in nested types.
 * @return borrowed; NULL where dtype is no optional type
 */
ZARR_API const zarr_dtype *zarr_dtype_underlying(const zarr_dtype *dtype);

/* ---- fields of structs ------------------------------------------------------------- */

/** One field of a struct, or of structs inside it. */
typedef struct zarr_dtype_field {
    uint32_t struct_size;
    int32_t ndim;            /**< of the subarray; 0: a single value */
    const char *name;        /**< its own name, without a path; borrowed from the type */
    const zarr_dtype *dtype; /**< of one value */
    uint64_t offset;         /**< bytes from the beginning of the element to the first */
    uint64_t shape[ZARR_MAX_RANK]; /**< of the subarray: ndim entries */
    uint64_t
        stride[ZARR_MAX_RANK]; /**< bytes from one value to the next in each of them */
} zarr_dtype_field;

#define ZARR_DTYPE_FIELD_INIT ZARR_SIZE_FIRST(zarr_dtype_field)

/** How many fields a struct has; 0: it is none. */
ZARR_API uint64_t zarr_dtype_n_fields(const zarr_dtype *dtype);

/**
 * Field i of a struct, in the order of storage.
 * @param out initialise with ZARR_DTYPE_FIELD_INIT
 * @return INVALID: no struct, or no such field
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_field_at(const zarr_dtype *dtype,
                                                         uint64_t i,
                                                         zarr_dtype_field *out,
                                                         zarr_error *err);

/**
 * The field with this name, or, with dots, a field of a struct inside: "a.b". A field
 * whose own name has dots is found by it first. What lies in a subarray of structs has
 * that subarray's dimensions in front of its own.
 * @param out initialise with ZARR_DTYPE_FIELD_INIT
 * @return NOT_FOUND names what there is; INVALID: no struct, or more dimensions than
 * ZARR_MAX_RANK
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_field_find(const zarr_dtype *dtype,
                                                           const char *path,
                                                           zarr_dtype_field *out,
                                                           zarr_error *err);

/* ---- elements as text -------------------------------------------------------------- */

/**
 * Writes one native-endian element as JSON text, as a v3 fill value would spell it.
 * @param text,cap the caller's buffer; @param text_bytes bytes needed less the terminator
 * (may exceed cap)
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_print(const zarr_dtype *dtype,
                                                      const void *element, char *text,
                                                      size_t cap, size_t *text_bytes,
                                                      zarr_error *err);

/**
 * Reads one element from JSON text as a v3 fill value; `element` takes item_bytes
 * native-endian bytes.
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_parse(const zarr_dtype *dtype,
                                                      const char *json, void *element,
                                                      zarr_error *err);

/**
 * Order of two native-endian elements: below 0, 0 or above 0. Total: numbers by value
 * with -0 before 0 and NaN behind all, complex numbers by real part first, text by
 * characters, NaT last, all else by bytes. 0 only for the same element, NaN payload
 * included.
 */
ZARR_API int zarr_dtype_compare(const zarr_dtype *dtype, const void *a, const void *b);

/**
 * One native-endian element as doubles, one each component: exact for all but 64-bit
 * integers above 2^53, which are rounded to nearest. Times are their count; NaT is NaN.
 * @return how many were written, at most 2; 0: the elements are no numbers
 */
ZARR_API uint32_t zarr_dtype_number(const zarr_dtype *dtype, const void *element,
                                    double out[2]);

/**
 * Frees the bytes that zarr_dtype_parse() made for an element of variable length and
 * leaves it empty; nothing to do for other types.
 */
ZARR_API void zarr_dtype_release(const zarr_dtype *dtype, void *element);

ZARR_END_DECLS

#endif
