/*
 * zarrc/dtype.h - data types. A zarr_dtype is one immutable object that knows
 * all a runtime asks: its names in v2 and v3, configuration, size in memory,
 * and how its elements are byte-swapped, printed and parsed. Byte order is not
 * part of it: in memory it is the tensor's, in the store the codec's.
 * Thread class: frozen. Objects belong to the context that made them and live
 * as long as it does: nothing to free.
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
    ZARR_KIND_STRUCT = 11, /**< reserved: fields */
    ZARR_KIND_STRING = 12, /**< reserved: variable-length UTF-8 */
    ZARR_KIND_VBYTES = 13  /**< reserved: variable-length bytes */
};

/**
 * Looks a data type up by its v3 name ("int16", "r24", "numpy.datetime64[10us]"), by its
 * v2/NumPy string ("<i2", "|S4", "<U8", "<M8[10us]"; the byte order is ignored), or by a
 * v3 JSON object
 * ({"name":..., "configuration":...}).
 * @param out borrowed, lives as long as ctx
 * @return UNSUPPORTED with the name for an unknown type; INVALID for malformed text
 */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_find(zarr_context *ctx, const char *name,
                                                     const zarr_dtype **out,
                                                     zarr_error *err);

/** v3 name, e.g. "float32", or NULL if the type has none. Borrowed. */
ZARR_API const char *zarr_dtype_name(const zarr_dtype *dtype);

/**
 * v2 string in little-endian spelling, e.g. "<f4", "|b1", "|S4", or NULL if it has none.
 * Borrowed.
 */
ZARR_API const char *zarr_dtype_v2(const zarr_dtype *dtype);

/** One of ZARR_KIND_*. */
ZARR_API uint32_t zarr_dtype_kind(const zarr_dtype *dtype);

/** Bytes of one element in memory; 0: variable length. */
ZARR_API uint64_t zarr_dtype_item_bytes(const zarr_dtype *dtype);

/** Significant bits of one element (bool: 8; int4: 4); 0: variable length. */
ZARR_API uint64_t zarr_dtype_item_bits(const zarr_dtype *dtype);

/** Bytes of the unit that byte order applies to: int32 4, complex128 8, U<n> 4, raw 1. */
ZARR_API uint32_t zarr_dtype_swap_bytes(const zarr_dtype *dtype);

/** 1 when the registry calls the type experimental. */
ZARR_API int zarr_dtype_experimental(const zarr_dtype *dtype);

/**
 * DLPack code, bits and lanes; returns 0 and fills them, or -1 where DLPack has no
 * equivalent.
 */
ZARR_API int zarr_dtype_dlpack(const zarr_dtype *dtype, uint8_t *code, uint8_t *bits,
                               uint16_t *lanes);

/** The data type for DLPack's numbers, or UNSUPPORTED. */
ZARR_API ZARR_MUST_CHECK zarr_status zarr_dtype_from_dlpack(zarr_context *ctx,
                                                            uint8_t code, uint8_t bits,
                                                            uint16_t lanes,
                                                            const zarr_dtype **out,
                                                            zarr_error *err);

/** 1 when both are the same type with the same configuration. */
ZARR_API int zarr_dtype_equal(const zarr_dtype *a, const zarr_dtype *b);

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

ZARR_END_DECLS

#endif
