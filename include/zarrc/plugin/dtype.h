/*
 * zarrc/plugin/dtype.h - how to make a data type. FOR EXTENDERS: stable per
 * plug-in ABI number.
 *
 * A table describes one type ("bfloat16") or a family whose members differ by
 * configuration ("numpy.datetime64") or by a number in the name ("r24"). The
 * library makes one object per type and context, shares it, and calls the
 * functions below with the facts that parse() filled in. Everything here is
 * text and plain numbers: fill values come and go as JSON text, elements as
 * native-endian bytes at any alignment.
 *
 * Texts go out as snprintf() has it: at most cap bytes with the NUL,
 * *text_bytes is the length needed less the NUL; text may be NULL if cap is 0.
 * Malformed input is ZARR_ERR_INVALID; who reads a stored document turns that
 * into ZARR_ERR_CORRUPT. Functions are called from any thread; parse(), parse_v2(),
 * write() and free() also while the context's registries are locked: they look other
 * types up by their zarr_dtype_host and call nothing that takes a context, which would
 * wait for ever.
 */
#ifndef ZARRC_PLUGIN_DTYPE_H
#define ZARRC_PLUGIN_DTYPE_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>

ZARR_BEGIN_DECLS

/** DLPack's type codes (dlpack.h, DLDataTypeCode). */
enum {
    ZARR_DLPACK_INT = 0,
    ZARR_DLPACK_UINT = 1,
    ZARR_DLPACK_FLOAT = 2,
    ZARR_DLPACK_BFLOAT = 4,
    ZARR_DLPACK_COMPLEX = 5,
    ZARR_DLPACK_BOOL = 6,
    ZARR_DLPACK_FLOAT8_E3M4 = 7,
    ZARR_DLPACK_FLOAT8_E4M3 = 8,
    ZARR_DLPACK_FLOAT8_E4M3B11FNUZ = 9,
    ZARR_DLPACK_FLOAT8_E4M3FN = 10,
    ZARR_DLPACK_FLOAT8_E4M3FNUZ = 11,
    ZARR_DLPACK_FLOAT8_E5M2 = 12,
    ZARR_DLPACK_FLOAT8_E5M2FNUZ = 13,
    ZARR_DLPACK_FLOAT8_E8M0FNU = 14,
    ZARR_DLPACK_FLOAT6_E2M3FN = 15,
    ZARR_DLPACK_FLOAT6_E3M2FN = 16,
    ZARR_DLPACK_FLOAT4_E2M1FN = 17
};

/** What a type is; parse() fills it, every other function reads it. */
typedef struct zarr_dtype_info {
    uint32_t struct_size;
    uint32_t kind;       /**< ZARR_KIND_* */
    uint64_t item_bytes; /**< one element in memory; variable length: a zarr_vlen's */
    uint64_t item_bits;  /**< significant bits of an element; 0: 8 * item_bytes */
    uint32_t swap_bytes; /**< unit that byte order applies to; 0: 1, no byte order */
    uint32_t flags;      /**< ZARR_DTYPE_* */
    uint8_t dlpack_code; /**< ZARR_DLPACK_* */
    uint8_t dlpack_bits; /**< 0: DLPack has no such type */
    uint16_t dlpack_lanes;
    uint32_t reserved;
    uint64_t param[2]; /**< the type's own: a unit, a length ... */
    void *self;        /**< the type's own, freed by free() */
    const char *name;  /**< set by the library before parse(): for messages, borrowed */
    const zarr_allocator *allocator; /**< set by the library before parse(); never NULL */
    uint32_t components; /**< numbers in an element, equal in size: complex 2; 0: 1 */
    /**
     * Significant bits of one component, the lowest of its bytes: bool 1, int4 4; 0: all
     * of item_bits. Where they are fewer than the component's one byte, the bits above
     * are ignored in stores and repeat the sign (ZARR_KIND_INT) or are zero in memory.
     */
    uint32_t component_bits;
} zarr_dtype_info;

enum {
    ZARR_DTYPE_EXPERIMENTAL =
        1, /**< in info.flags: not registered, or marked as not stable */
    ZARR_DTYPE_FAMILY =
        2, /**< in vtable.flags: has members that differ by configuration */
    ZARR_DTYPE_NUMBERED = 4, /**< with FAMILY: members are called name + decimal digits */
    /** in info.flags: an element is, or begins with, a zarr_vlen. fill_parse() takes its
     * bytes from info->allocator, none for length 0; the library frees them. */
    ZARR_DTYPE_VARIABLE = 8,
    ZARR_DTYPE_V2_PLAIN = 32, /**< in vtable.flags: the v2 type is written without a byte
                                 order and means little-endian ("bfloat16") */
    ZARR_DTYPE_V2_ONLY = 64   /**< in vtable.flags: `name` is for zarr_dtype_find(); v3
                                 metadata has no form of the type */
};

/** What parse() may ask the library for: other data types, for types made of types. */
typedef struct zarr_dtype_host {
    uint32_t struct_size, reserved;
    void *registry;
    /** text: as for zarr_dtype_find(). */
    zarr_status (*find)(const struct zarr_dtype_host *host, const char *text,
                        const zarr_dtype **out, zarr_error *err);
} zarr_dtype_host;

/** Which text write() shall give. */
enum {
    ZARR_DTYPE_TEXT_V3 =
        1, /**< v3 metadata: "\"r24\"" or {"name":...,"configuration":{...}} */
    ZARR_DTYPE_TEXT_NAME = 2, /**< one word that parse() takes without json: "r24",
                                 "numpy.datetime64[10us]" */
    ZARR_DTYPE_TEXT_V2 = 3    /**< v2 without byte order: "V3", "M8[10us]" */
};

/** Required: name or v2, parse, fill_parse and fill_print; of a family also write, and
 * parse_v2 where it has a v2. Every other entry may be NULL, with the default told at it.
 */
typedef struct zarr_dtype_vtable {
    uint32_t struct_size, flags; /**< ZARR_DTYPE_FAMILY ... */
    /* Names, aliases, v2 and numpy: printable ASCII without blanks, quotes and
     * backslashes, that does not begin with <, >, |, =, [ or {; else INVALID. What a
     * look-up understands as another type in any of its spellings ("f4", "<f4",
     * "float32") is EXISTS. */
    const char *name; /**< v3 name, or its constant part; NULL: the type is in v2 only */
    const char *const *aliases; /**< further v3 names read but not written;
                                   NULL-terminated; NULL: none */
    const char *v2; /**< v2 type without byte order ("f4"), family: its letter ("S");
                       NULL: none */
    /**
     * Fills *info; when it fails it leaves nothing to free. name: as found, "r24",
     * "numpy.datetime64[10us]", an alias; json: text of the configuration object or NULL.
     * Called once for a type that is no family, with json NULL.
     */
    zarr_status (*parse)(zarr_dtype_info *info, const zarr_dtype_host *host,
                         const char *name, const char *json, zarr_error *err);
    /** The same from a v2 string without byte order, "M8[10us]". NULL where v2 is NULL;
     * or no family: parse() is called. */
    zarr_status (*parse_v2)(zarr_dtype_info *info, const zarr_dtype_host *host,
                            const char *v2, zarr_error *err);
    /** ZARR_DTYPE_TEXT_*; *text_bytes 0: there is none in that form. NULL: name and v2 as
     * they stand above. */
    zarr_status (*write)(const zarr_dtype_info *info, uint32_t what, char *text,
                         size_t cap, size_t *text_bytes, zarr_error *err);
    /** One element from the JSON text of a fill value; format 2 or 3. Reading is tolerant
     * where the meaning is clear. */
    zarr_status (*fill_parse)(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err);
    /** JSON text of an element, strict. */
    zarr_status (*fill_print)(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err);
    /** The element where metadata has no fill value. NULL: all bytes zero. */
    void (*fill_default)(const zarr_dtype_info *info, void *element);
    /** Frees info->self. NULL: nothing to free. */
    void (*free)(zarr_dtype_info *info);
    /**
     * NumPy's type without byte order ("f4") or the name that ml_dtypes gives it
     * ("bfloat16"); family: its v2 letter again, the members then have their v2 text.
     * NULL: none. Forms of raw bytes ("V4") may be shared, all others are this type's.
     */
    const char *numpy;
    const char
        *codec; /**< array->bytes codec of arrays made without one; NULL: "bytes" */
    /** Order of two elements, below 0, 0, above 0; total, 0 only for the same element.
     * NULL: by their bytes. */
    int (*compare)(const zarr_dtype_info *info, const void *a, const void *b);
    /** The components as doubles, nearest where a double can't hold them; out has room
     * for info->components. NULL: the elements are no numbers. */
    void (*number)(const zarr_dtype_info *info, const void *element, double *out);
} zarr_dtype_vtable;

ZARR_END_DECLS

#endif
