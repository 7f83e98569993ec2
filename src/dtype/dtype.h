/*
 * dtype/dtype.h - the door to data types: a registry of tables (zarrc/plugin/dtype.h),
 * which makes one shared object for each type; look-up by v3 name, v3 JSON, v2 string and
 * DLPack numbers; fill values between JSON and bytes in both formats. The public getters
 * (zarrc/dtype.h) describe one type. A type has no byte order: functions take or give it
 * beside the type. Pure: no I/O, no memory kinds.
 * Thread class: until its registry is sealed, the owner lets in one thread at a time, to
 * register, look up or list. After that any thread may look up. The only lock protects
 * the interning of types made on demand (r24, numpy.datetime64[us]). Types are frozen,
 * even while others are registered, and live as long as the registry. Callers borrow them
 * and never give them back, so a limit bounds the memory of a registry's types.
 */
#ifndef ZR_DTYPE_H
#define ZR_DTYPE_H

#include "base/base.h"
#include "json/json.h"
#include <zarrc/dtype.h>
#include <zarrc/plugin/dtype.h>

struct zr_dtype_entry;

struct zr_dtype_registry {
    struct zr_registry types; /* struct zr_dtype_entry, by v3 name or alias */
    struct zr_map v2, numpy;  /* v2 type or letter, and NumPy type -> entry, borrowed */
    const zarr_allocator *alloc;
    uint64_t most_bytes; /* maximum of `bytes` (limit dtype_bytes); 0: none */
    struct {
        zr_mutex mutex;
        struct zr_map made; /* short name -> zarr_dtype, owned */
        uint64_t bytes;     /* estimate of the bytes of all types in `made` */
    } locked;
    struct zr_fork_hook fork;
};
zarr_status zr_dtype_registry_init(struct zr_dtype_registry *r,
                                   const zarr_allocator *alloc, zarr_error *err);
void zr_dtype_registry_deinit(struct zr_dtype_registry *r);
/* Copies the table. Returns EXISTS, naming both origins, if a name, alias, v2 type, NumPy
 * type or DLPack type is taken. */
zarr_status zr_dtype_register(struct zr_dtype_registry *r, const zarr_dtype_vtable *v,
                              const char *origin, zarr_error *err);
/* The core's types, a NULL-terminated table for ctx/builtin.c. */
extern const zarr_dtype_vtable *const zr_dtype_core[];
/* The types refused on purpose: kind "data type". */
extern const struct zr_refusal zr_dtype_refused[];
/* A row for zarr_context_list(). Its texts are in the row or live as long as the
 * registry. */
struct zr_dtype_row {
    zarr_registry_item item;
    char name[64], detail[128], aliases[128];
};
/* Gives the i-th type in registration order. Returns false after the last. */
bool zr_dtype_row(const struct zr_dtype_registry *r, size_t i, struct zr_dtype_row *row);

/* ---- look-up ------------------------------------------------------------- */

/* Takes a v3 name, v3 JSON, or a v2 string. *byte_order (may be NULL): the order that "<"
 * or ">" gives in a v2 string, for a list of fields as in zr_dtype_from_v2(), else
 * ZR_ORDER_NATIVE. */
zarr_status zr_dtype_find(struct zr_dtype_registry *r, const char *text,
                          const zarr_dtype **out, uint32_t *byte_order, zarr_error *err);
/* The same for names that users write, as zarr_dtype_find(): also takes NumPy's other
 * names of numbers and times ("half", "datetime64[us]"), which stored metadata may not
 * have. */
zarr_status zr_dtype_find_any(struct zr_dtype_registry *r, const char *text,
                              const zarr_dtype **out, uint32_t *byte_order,
                              zarr_error *err);
/* As zarr_dtype_find_order(): takes all of NumPy's names. */
zarr_status zr_dtype_find_order(struct zr_dtype_registry *r, const char *text,
                                const zarr_dtype **out, uint32_t *byte_order,
                                zarr_error *err);
/* A v3 `data_type`: a name, or an object {name, configuration}. */
zarr_status zr_dtype_from_v3(struct zr_dtype_registry *r, const struct zr_json *v,
                             const zarr_dtype **out, zarr_error *err);
/* A v2 `dtype`. *byte_order: ZARR_ORDER_LITTLE or _BIG; NATIVE where the type has no byte
 * order; ZR_ORDER_MIXED for structs whose fields differ (zr_dtype_v2_order()). */
zarr_status zr_dtype_from_v2(struct zr_dtype_registry *r, const struct zr_json *v,
                             const zarr_dtype **out, uint32_t *byte_order,
                             zarr_error *err);
zarr_status zr_dtype_from_dlpack(const struct zr_dtype_registry *r, uint8_t code,
                                 uint8_t bits, uint16_t lanes, const zarr_dtype **out,
                                 zarr_error *err);
/* Finds a type by its name in NumPy; *byte_order as in zr_dtype_find(). */
zarr_status zr_dtype_from_numpy(struct zr_dtype_registry *r, const char *text,
                                const zarr_dtype **out, uint32_t *byte_order,
                                zarr_error *err);

/* ---- elements in memory ------------------------------------------------------- */

/* Gives the number of significant bits of an element that has one byte per component:
 * bool 1, int4 4, complex_float4 4. Stores may hold anything in the other bits. 0: all
 * bits of the type are significant. */
uint32_t zr_dtype_padded_bits(const zarr_dtype *dtype);
/* Whether the type has such elements, or is a struct with such fields. */
bool zr_dtype_is_padded(const zarr_dtype *dtype);
/* Sets the unused bits of n elements from a store to their form in memory, in place. */
void zr_dtype_unpad(const zarr_dtype *dtype, void *data, size_t n);
/* The same for n elements on their way to a store. Returns INVALID if unused bits are
 * neither zero nor copies of the sign. */
zarr_status zr_dtype_pad(const zarr_dtype *dtype, void *data, size_t n, zarr_error *err);
/* Whether zr_dtype_pad() would leave all n elements as they are. */
bool zr_dtype_is_padded_well(const zarr_dtype *dtype, const void *data, size_t n);
/* Convert n elements between the packed form and one byte each, for types with padded
 * bits and one component. The unused bits of the last packed byte are zero. */
void zr_packed_get(const zarr_dtype *dtype, void *elements, const void *packed, size_t n);
void zr_packed_put(const zarr_dtype *dtype, void *packed, const void *elements, size_t n);

/* A binary floating-point format. A number is (-1)^sign * 2^(exponent - bias) *
 * 1.fraction. A format without a sign bit consists of the exponent alone. */
struct zr_float {
    const char *name;
    uint8_t bytes, bits, fraction_bits;
    uint8_t dlpack;    /* ZARR_DLPACK_* */
    bool v2_base64;    /* TensorStore's v2 takes fill values as base64 only */
    bool unregistered; /* other libraries use this name, but it is not registered */
    int16_t bias;
    uint64_t sign;          /* mask; 0: no sign, no zero */
    uint64_t infinity, nan; /* +infinity and the canonical NaN; 0: none */
    uint64_t largest;       /* the largest finite magnitude */
};
double zr_float_to_f64(const struct zr_float *f, uint64_t bits); /* exact */
/* Rounds to nearest, ties to even, as IEEE 754. Returns false if v is too large or if the
 * format lacks its infinity, NaN, sign or zero. *bits is then meaningless. */
bool zr_float_from_f64(const struct zr_float *f, double v, uint64_t *bits);

/* ---- numbers --------------------------------------------------------------- */

/* How a number is stored: the description that all codecs compute with. */
struct zr_number {
    uint8_t kind;  /* ZARR_KIND_BOOL, _INT, _UINT, _FLOAT, _COMPLEX; 0: no number */
    uint8_t bytes; /* in memory, of one part */
    uint8_t bits;  /* that are significant, the lowest ones */
    uint8_t parts; /* 2: complex */
    bool big;      /* the most significant byte comes first; false for single bytes */
    const struct zr_float
        *real; /* the format of floats and of complex parts; else NULL */
};
/* Describes the numbers of a data type, in this machine's byte order. Returns false
 * unless the type is one of the core's integers of 2 to 64 bits, floats or complex
 * types. */
bool zr_number_from_dtype(const zarr_dtype *dtype, struct zr_number *out);
/* Describes a NumPy number of this kind with `bytes` bytes a part, in this machine's byte
 * order. */
struct zr_number zr_number_make(uint32_t kind, unsigned bytes);
/* Gives the type of a complex number's parts, and any other type unchanged. */
struct zr_number zr_number_part(const struct zr_number *n);
/* Whether it has infinity and NaN where IEEE 754 has them. */
bool zr_number_is_ieee(const struct zr_number *n);
bool zr_number_is_swapped(const struct zr_number *n); /* not this machine's order */
static inline bool zr_number_is_whole(const struct zr_number *n)
{
    return n->kind == ZARR_KIND_INT || n->kind == ZARR_KIND_UINT;
}
static inline uint32_t zr_number_item_bytes(const struct zr_number *n)
{
    return (uint32_t)n->bytes * n->parts;
}
/* Load and store the bits of one part. p may have any alignment. */
uint64_t zr_number_bits(const struct zr_number *n, const void *p);
void zr_number_put(const struct zr_number *n, void *p, uint64_t bits);

/* ---- numbers as NumPy has them (numpy.c) ------------------------------------------- */

/* Reads NumPy's name of a number, byte order included: "<f8", ">i2", "|u1", "float32".
 * Returns false unless it names a bool, an integer, a float of 16 to 64 bits, or a
 * complex number with parts of 32 or 64 bits. text may be NULL. */
bool zr_numpy_parse(const char *text, struct zr_number *out);
/* Whether NumPy has such numbers. */
bool zr_numpy_has(const struct zr_number *n);
/* NumPy's letter: b, i, u, f or c. */
char zr_numpy_letter(const struct zr_number *n);

struct zr_numpy_value { /* the type says which member is used */
    uint64_t u;         /* bool, integers: sign-extended */
    double d;
};
/* Load, store and convert one element of any alignment, or one part of a complex number.
 * zr_numpy_cast() converts a whole element in memory. Conversions follow NumPy's
 * astype(). A float that does not fit an integer type gives the result of x86 on every
 * machine. */
struct zr_numpy_value zr_numpy_load(const struct zr_number *n, const void *p);
void zr_numpy_store(const struct zr_number *n, void *p, struct zr_numpy_value v);
struct zr_numpy_value zr_numpy_convert(const struct zr_number *from,
                                       const struct zr_number *to,
                                       struct zr_numpy_value v);
void zr_numpy_cast(const struct zr_number *from, const struct zr_number *to,
                   const void *src, void *dst);
/* Cuts u to the type's width and keeps the sign. */
uint64_t zr_numpy_wrap(const struct zr_number *n, uint64_t u);
/* Rounds to the digits of a float of so many bytes, half to even. */
double zr_numpy_round(unsigned float_bytes, double d);

/* The unit of a 64-bit count of time: "M8[s]", "m8[10us]". */
struct zr_numpy_unit {
    char kind;     /* M or m; 0: a plain number */
    char text[16]; /* between the brackets */
};
#define ZR_NUMPY_NAME 5 /* "<c16" */
void zr_numpy_print(const struct zr_number *n, char out[ZR_NUMPY_NAME]);
/* Reads "<M8[s]" as an int64 and the unit that it counts. Returns false for any other
 * type and for one without a unit. */
bool zr_numpy_parse_time(const char *text, struct zr_number *out,
                         struct zr_numpy_unit *unit);
/* Gives NumPy's name of an array's elements in this order; "" if NumPy has no such
 * number. */
void zr_numpy_name(const zarr_dtype *dtype, uint32_t order, char out[ZR_NUMPY_NAME]);
/* Gives the item bytes of a number or time by its NumPy name; 0: no such type. */
uint32_t zr_numpy_item_bytes(const char *name);

/* Gives the v3 or v2 name for messages, never NULL. */
const char *zr_dtype_label(const zarr_dtype *dtype);
/* Gives the text of a fill value for messages, "" if it has none. */
const char *zr_dtype_fill_text(const zarr_dtype *dtype, const void *fill, char *text,
                               size_t cap);

/* ---- exact numbers (number.c) -------------------------------------------------- */

enum { /* in the order of cast_value's names */
    ZR_ROUND_EVEN,
    ZR_ROUND_ZERO,
    ZR_ROUND_POSITIVE,
    ZR_ROUND_NEGATIVE,
    ZR_ROUND_AWAY
};
enum {
    ZR_RANGE_ERROR,
    ZR_RANGE_CLAMP, /* to infinity if the type has it */
    ZR_RANGE_WRAP   /* integers */
};
enum {
    ZR_SCALAR_FINITE,
    ZR_SCALAR_INFINITY,
    ZR_SCALAR_NAN
};
struct zr_scalar { /* (minus ? -1 : 1) * c * 2^q; NaN: c is the payload, left-aligned */
    uint8_t kind;
    bool minus;
    int32_t q;
    uint64_t c;
};
enum zr_cast_result {
    ZR_CAST_OK,
    ZR_CAST_NAN,
    ZR_CAST_INFINITY,
    ZR_CAST_RANGE /* this and the two above tell why there is no value */
};
struct zr_scalar zr_scalar_from_bits(const struct zr_number *n, uint64_t bits);
/* Rounds first, to the target's digits with any exponent, then checks the range. */
enum zr_cast_result zr_scalar_cast(const struct zr_scalar *v, const struct zr_number *to,
                                   uint32_t rounding, uint32_t out_of_range,
                                   uint64_t *bits);
/* Whether every value of a part of `from`, NaN and -0 included, is one of `to`. */
bool zr_number_holds(const struct zr_number *to, const struct zr_number *from);
struct zr_scalar zr_scalar_of_f64(double d);
double zr_scalar_f64(const struct zr_scalar *v); /* nearest */

/* Gives equal keys for equal numbers: all NaN have one key, and both zeros have one. */
uint64_t zr_number_key(const struct zr_number *n, uint64_t bits);

/* ---- runs of elements (block.c) ----------------------------------------------- */

/* The maximum number of elements for one call, because blocks live on the stack. */
#define ZR_BLOCK 512

/* Loads bools and integers, sign-extended. */
void zr_block_whole(const struct zr_number *number, const uint8_t *src, size_t n,
                    uint64_t *out);
/* Loads any NumPy number except complex ones. Rounds integers of 64 bits. */
void zr_block_real(const struct zr_number *number, const uint8_t *src, size_t n,
                   double *out);
/* Store numbers as NumPy's astype() converts them. sign: the integers in `in` are
 * signed. */
void zr_block_put_whole(const struct zr_number *number, uint8_t *dst, const uint64_t *in,
                        size_t n, bool sign);
void zr_block_put_real(const struct zr_number *number, uint8_t *dst, const double *in,
                       size_t n);

/* ---- storage order -------------------------------------------------------- */

/*
 * The byte order of elements in storage. In memory all fields of a struct have this
 * machine's order, so the type has none (swap_bytes 1). In v2 files each field may have
 * its own.
 */
enum {                   /* beside ZARR_ORDER_* */
    ZR_ORDER_NATIVE = 0, /* the machine's; or elements have none */
    ZR_ORDER_MIXED = 3
};
struct zr_order {
    uint32_t order;     /* ZARR_ORDER_LITTLE, _BIG, or ZR_ORDER_* */
    const char *leaves; /* MIXED: '<' or '>' for each field that has a byte order, nested
                           fields in place, subarrays once */
};
/* Whether byte order matters to the type, or to a field of it. */
bool zr_dtype_has_order(const zarr_dtype *dtype);
/* Whether `leaves` has as many letters as the type has parts with a byte order. */
bool zr_dtype_leaves_fit(const zarr_dtype *dtype, const char *leaves);
/* Reads the byte orders of the fields from the v2 `dtype` list that gave this type.
 * Appends a letter for each to `leaves` (may be NULL). Returns INVALID if a field that
 * needs a byte order names none. */
zarr_status zr_dtype_v2_order(const zarr_dtype *dtype, const struct zr_json *v,
                              uint32_t *byte_order, struct zr_str *leaves,
                              zarr_error *err);
/* Whether elements in this order differ from those in memory. */
bool zr_dtype_is_swapped(const zarr_dtype *dtype, const struct zr_order *order);
/* Converts n elements from that order to this machine's, or back, in place. */
void zr_dtype_swap(const zarr_dtype *dtype, const struct zr_order *order, void *data,
                   uint64_t n);

/* ---- metadata ------------------------------------------------------------- */

/* Writes `data_type`: a plain string if there is no configuration. Returns NULL if memory
 * is short or the type has no v3 name. */
struct zr_json *zr_dtype_write_v3(const zarr_dtype *dtype, struct zr_json_doc *doc);
/* Writes `dtype`, with the byte order given (NATIVE: little). Returns NULL if memory is
 * short or the type has no v2 form. */
struct zr_json *zr_dtype_write_v2(const zarr_dtype *dtype, const struct zr_order *order,
                                  struct zr_json_doc *doc);

/* float8_e8m0fnu has no zero. TensorStore writes 0 if no fill value was given, and reads
 * it as zero bits (2^-127). We read stored documents the same way, but refuse 0 as a
 * caller's fill value. */
bool zr_dtype_zero_is_bits(const zarr_dtype *dtype, const struct zr_json *v);
/* Reads one element from a fill value of format 2 or 3. JSON null is the missing value of
 * an optional type. For any other type it is INVALID here, because the caller decides
 * what it means. */
zarr_status zr_dtype_fill_parse(const zarr_dtype *dtype, const struct zr_json *v,
                                int format, void *element, zarr_error *err);
/* Writes a fill value; *out belongs to doc. Returns NO_MEMORY, or CORRUPT if the element
 * is not a value of the type (code points above U+10FFFF). */
zarr_status zr_dtype_fill_write(const zarr_dtype *dtype, const void *element, int format,
                                struct zr_json_doc *doc, struct zr_json **out,
                                zarr_error *err);
/* The same for v2, where base64 of a struct has the order of the stored elements. */
zarr_status zr_dtype_fill_parse_v2(const zarr_dtype *dtype, const struct zr_json *v,
                                   const struct zr_order *order, void *element,
                                   zarr_error *err);
zarr_status zr_dtype_fill_write_v2(const zarr_dtype *dtype, const void *element,
                                   const struct zr_order *order, struct zr_json_doc *doc,
                                   struct zr_json **out, zarr_error *err);
/* Gives the element used if metadata has no fill value: zero, "", NaT. */
void zr_dtype_fill_default(const zarr_dtype *dtype, void *element);

#endif
