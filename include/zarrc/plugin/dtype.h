/**
 * @file
 * How to make a data type. For extenders: stable for each plug-in ABI number.
 *
 * A table describes one data type, such as "bfloat16", or a family of data types that
 * differ by a configuration ("numpy.datetime64") or by a number in the name ("r24"). The
 * library makes one object for each type of a context, and passes the facts that parse()
 * told to all other functions. Fill values are JSON text. Elements are bytes in native
 * byte order, at any alignment.
 *
 * Functions that write text do so as snprintf(). They write at most `cap` bytes with the
 * NUL and store the length without the NUL in `*text_bytes`, even if it exceeds the
 * buffer. `text` may be NULL if `cap` is 0. Text that is wrong is ZARR_ERR_INVALID; if it
 * comes from a stored document, the library makes ZARR_ERR_CORRUPT of that. Functions
 * that fail fill `err` with one line of text.
 *
 * The library calls the functions from any thread, several at once. It holds the lock of
 * its registries when it calls parse(), parse_v2(), write() and free(). These find other
 * data types by their zarr_dtype_host. They must not call a function that takes a
 * context, which would wait forever.
 *
 * Spec: Zarr v3 core, "Data types" and "Array metadata" (`fill_value`); Zarr v2, "Data
 * type encoding" and "Fill value encoding".
 */
#ifndef ZARRC_PLUGIN_DTYPE_H
#define ZARRC_PLUGIN_DTYPE_H

#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/types.h>

ZARR_BEGIN_DECLS

/** Type codes of DLPack: DLDataTypeCode of dlpack.h. */
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

/**
 * The facts of one data type. The library sets `struct_size`, `name` and `allocator` and
 * zeroes all other members; parse() sets those that are not zero.
 */
typedef struct zarr_dtype_info {
    uint32_t struct_size;
    uint32_t kind; /**< one of ZARR_KIND_* */
    /** bytes of an element in memory; of variable length: those of a zarr_vlen */
    uint64_t item_bytes;
    uint64_t item_bits;    /**< significant bits of an element; 0: all its bits */
    uint32_t swap_bytes;   /**< bytes of the unit that has a byte order; 0 or 1: none */
    uint32_t flags;        /**< ZARR_DTYPE_EXPERIMENTAL, ZARR_DTYPE_VARIABLE */
    uint8_t dlpack_code;   /**< one of ZARR_DLPACK_* */
    uint8_t dlpack_bits;   /**< bits of a DLDataType; 0: DLPack has no such type */
    uint16_t dlpack_lanes; /**< lanes of a DLDataType */
    uint32_t reserved;
    uint64_t param[2]; /**< for the type's own use, such as a unit or a length */
    void *self;        /**< for the type's own use; freed by free() */
    const char *name; /**< name of the type, for messages; set by the library; borrowed */
    /** where host memory comes from; set by the library; never NULL */
    const zarr_allocator *allocator;
    /** equal numbers of an element, at most ZARR_COMPONENTS_MAX: complex has 2; 0: 1 */
    uint32_t components;
    /**
     * significant bits of one component, the lowest bits of its bytes: 1 for bool, 4 for
     * int4; 0: `item_bits` divided by `components`. If a component has less than 8, the
     * other bits of its byte are ignored in a store. In memory they repeat the sign
     * (ZARR_KIND_INT) or are zero
     */
    uint32_t component_bits;
} zarr_dtype_info;

/** Flags of a zarr_dtype_info ("info") and of a zarr_dtype_vtable ("table"). */
enum {
    /** info: not in Zarr's registry, or marked there as unstable */
    ZARR_DTYPE_EXPERIMENTAL = 1,
    /** table: a family, whose members differ by configuration */
    ZARR_DTYPE_FAMILY = 2,
    /** table, with FAMILY: the name of a member is `name` and decimal digits */
    ZARR_DTYPE_NUMBERED = 4,
    /** info: an element is a zarr_vlen or begins with one. fill_parse() allocates its
     * bytes by `info->allocator`, none for the length 0, and the library frees them */
    ZARR_DTYPE_VARIABLE = 8,
    /** table: v2 metadata names the type without a byte order, such as "bfloat16", and
     * means little-endian */
    ZARR_DTYPE_V2_PLAIN = 32,
    /** table: v3 metadata cannot name the type; `name` is for zarr_dtype_find() */
    ZARR_DTYPE_V2_ONLY = 64,
    /** table, without FAMILY: v3 metadata may give the type any configuration, such as
     * an author or a version. The library keeps the configuration and writes it back; it
     * calls parse() with each. Elements do not depend on it: the facts are always the
     * same, and types that differ in it alone are equal */
    ZARR_DTYPE_ANY_CONFIGURATION = 128
};

/** How parse() finds other data types, for types that are made of types. */
typedef struct zarr_dtype_host {
    uint32_t struct_size, reserved;
    void *registry; /**< for the library */
    /** Finds a data type by a text, as zarr_dtype_find(). `host` is this struct. `*out`
     * is borrowed from the context. */
    zarr_status (*find)(const zarr_dtype **out, const struct zarr_dtype_host *host,
                        const char *text, zarr_error *err);
} zarr_dtype_host;

/** Which text write() writes. */
enum {
    /** v3 metadata as JSON text: "\"r24\"", or an object with `name` and
     * `configuration` */
    ZARR_DTYPE_TEXT_V3 = 1,
    /** one word that parse() takes as `name` without `json`: "r24" or
     * "numpy.datetime64[10us]" */
    ZARR_DTYPE_TEXT_NAME = 2,
    ZARR_DTYPE_TEXT_V2 = 3 /**< v2 string without byte order: "V3" or "M8[10us]" */
};

/**
 * A data type or a family. Required are `name` or `v2`, parse(), fill_parse() and
 * fill_print(); of a family also write(), and parse_v2() if it has `v2`. Any other entry
 * may be NULL, which has the meaning that its comment gives.
 *
 * `name`, `aliases`, `v2`, `numpy` and `numpy_aliases` are printable ASCII without
 * blanks, quotes and backslashes, and do not begin with <, >, |, =, [ or {; else the
 * registration fails with ZARR_ERR_INVALID. It fails with ZARR_ERR_EXISTS if a look-up
 * takes a name for another type, in any of its spellings ("f4", "<f4", "float32"). The
 * same holds for a number of NumPy's ("f", "half"), which only a family may have as its
 * v2 letter. It fails with ZARR_ERR_INTERNAL if parse() tells a wrong fact. The message
 * names the entry or fact, and its value.
 */
typedef struct zarr_dtype_vtable {
    uint32_t struct_size, flags; /**< `flags`: ZARR_DTYPE_FAMILY and so on */
    /** v3 name; of a family its constant part. NULL: only v2 has the type */
    const char *name;
    /** more v3 names that are read but never written, ended by NULL; NULL: none */
    const char *const *aliases;
    /** v2 string without byte order, such as "f4"; of a family its letter, such as "S".
     * NULL: v2 does not have the type */
    const char *v2;
    /**
     * Fills `*info` from a v3 name. `name` is the name that was found: "r24",
     * "numpy.datetime64[10us]" or an alias. `json` is the text of the configuration
     * object, or NULL. For a type that is not a family the library calls the function
     * once, with `json` NULL; with ANY_CONFIGURATION also for each configuration. After a
     * failure there is nothing to free.
     */
    zarr_status (*parse)(zarr_dtype_info *info, const zarr_dtype_host *host,
                         const char *name, const char *json, zarr_error *err);
    /** Fills `*info` from a v2 string without byte order, such as "M8[10us]". NULL: `v2`
     * is NULL; or the type is not a family, and parse() tells its facts. */
    zarr_status (*parse_v2)(zarr_dtype_info *info, const zarr_dtype_host *host,
                            const char *v2, zarr_error *err);
    /** Writes the text `what`, one of ZARR_DTYPE_TEXT_*. `*text_bytes` 0: the type has no
     * such text. NULL: the texts are `name` and `v2`. */
    zarr_status (*write)(const zarr_dtype_info *info, uint32_t what, char *text,
                         size_t cap, size_t *text_bytes, zarr_error *err);
    /** Makes one element from the JSON text of a fill value. `format` is 2 or 3. It
     * accepts other spellings than fill_print() writes if their meaning is clear. */
    zarr_status (*fill_parse)(const zarr_dtype_info *info, int format, const char *json,
                              void *element, zarr_error *err);
    /** Writes one element as the JSON text of a fill value, as the specification of the
     * format wants it. `format` is 2 or 3. */
    zarr_status (*fill_print)(const zarr_dtype_info *info, int format,
                              const void *element, char *text, size_t cap,
                              size_t *text_bytes, zarr_error *err);
    /** Makes the element that metadata without a fill value means. NULL: all bytes zero.
     */
    void (*fill_default)(const zarr_dtype_info *info, void *element);
    /** Frees `info->self`; cannot fail. NULL: nothing to free. */
    void (*free)(zarr_dtype_info *info);
    /**
     * type string of NumPy without byte order, such as "f4", or the name that ml_dtypes
     * gives the type, such as "bfloat16". Of a family its letter in v2, and each member
     * then has its v2 text. NULL: NumPy does not have the type. Any number of types and
     * families may share these forms, which no look-up takes as theirs. They are "V"
     * (opaque bytes of the element's size; "V4" if it is 4), "B" (that many unsigned
     * bytes, "4B") and "O" (Python objects)
     */
    const char *numpy;
    /** array->bytes codec of arrays that are created without codecs; NULL: "bytes" */
    const char *codec;
    /** Orders two elements: returns a number below, equal to or above 0. The order is
     * total, and only the same element is equal. NULL: by their bytes. */
    int (*compare)(const zarr_dtype_info *info, const void *a, const void *b);
    /** Converts the components of an element to doubles, rounded to nearest. `out` has
     * room for `info->components`. NULL: elements are not numbers. */
    void (*number)(const zarr_dtype_info *info, const void *element, double *out);
    /** more names in NumPy that zarr_dtype_find_order() takes as this type, ended by
     * NULL; NULL: none */
    const char *const *numpy_aliases;
} zarr_dtype_vtable;

ZARR_END_DECLS

#endif
