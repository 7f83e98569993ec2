/*
 * dtype/dtype_int.h - shared by the files of this room: the object of a zarr_dtype, a
 * bounded text sink, and the reading of small JSON texts. Not for other rooms.
 */
#ifndef ZR_DTYPE_INT_H
#define ZR_DTYPE_INT_H

#include "dtype/dtype.h"

/* The largest element that is accepted: no real data has larger ones, and the fill value
 * is kept in memory. */
#define ZR_ITEM_BYTES_MAX (UINT64_C(16) << 20)

struct zr_dtype_entry {
    struct zr_registered entry;
    zarr_dtype_vtable vt;
    struct zarr_dtype *fixed; /* the one object of a type that is not a family; owned */
};

static inline const struct zr_dtype_entry *
zr_dtype_entry_at(const struct zr_dtype_registry *r, size_t i)
{
    return (const void *)r->types.entry[i];
}

struct zarr_dtype {
    zarr_dtype_info info;
    const struct zr_dtype_entry *entry;
    bool parsed;                 /* the table frees info */
    char *name;                  /* short v3 name, "r24"; NULL: none */
    char *v3_json;               /* "\"r24\"" or an object's text; NULL: none */
    char *v3_name, *v3_config;   /* its two members; NULL: none */
    char *v2;                    /* "<f4"; a struct: "[[...]]"; NULL: none */
    char *numpy;                 /* "<f4", "bfloat16"; NULL: none */
    const zarr_allocator *alloc; /* NULL: malloc */
};

/* ---- make.c ---- */
/* json: text of the configuration or NULL; v2: text without byte order, else NULL. */
zarr_status zr_dtype_make(struct zarr_dtype **out, struct zr_dtype_registry *r,
                          const struct zr_dtype_entry *entry, const char *name,
                          const char *json, const char *v2, zarr_error *err);
void zr_dtype_unmake(struct zarr_dtype *t);
/* Gives the shared object equal to `made` (moved). */
zarr_status zr_dtype_intern(struct zr_dtype_registry *r, struct zarr_dtype *made,
                            const zarr_dtype **out, zarr_error *err);

/* ---- order.c ---- */
/* Returns INVALID: the text lacks the byte order that this v2 type needs. */
zarr_status zr_v2_no_order(const char *text, zarr_error *err);

/* ---- text out: never beyond cap, counts what was needed ---- */
struct zr_sink {
    char *text;
    size_t cap, n;
};
static inline void zr_sink_putc(struct zr_sink *s, char c)
{
    if (s->n < s->cap)
        s->text[s->n] = c;
    s->n++;
}
void zr_sink_put(struct zr_sink *s, const char *text, size_t n);
void zr_sink_puts(struct zr_sink *s, const char *text);
void zr_sink_u64(struct zr_sink *s, uint64_t v);
void zr_sink_base64(struct zr_sink *s, const uint8_t *bytes, size_t n);
/* Ends the text. *text_bytes: the length of the whole text, also if it was cut. */
zarr_status zr_sink_end(struct zr_sink *s, size_t *text_bytes);

/* ---- JSON text in ---- */
typedef zarr_status (*zr_from_json_fn)(const zarr_dtype_info *info, int format,
                                       const struct zr_json *v, void *element,
                                       zarr_error *err);
/* fill_parse() of zarr_dtype_vtable by a function that gets the parsed text. Takes a
 * number from the text without parsing it. */
zarr_status zr_fill_parse(zr_from_json_fn fn, const zarr_dtype_info *info, int format,
                          const char *json, void *element, zarr_error *err);
/* Defines NAME_fill_parse() by NAME_from_json(). */
#define ZR_FILL_PARSE(name)                                                              \
    static zarr_status name##_fill_parse(const zarr_dtype_info *info, int format,        \
                                         const char *json, void *element,                \
                                         zarr_error *err)                                \
    {                                                                                    \
        return zr_fill_parse(name##_from_json, info, format, json, element, err);        \
    }
/* Returns INVALID with the message "<v> is not a valid <type name>: <rule>". */
zarr_status zr_value_refuse(const zarr_dtype_info *info, const struct zr_json *v,
                            const char *rule, zarr_error *err);
/* Reads an integer in [low, high] as two's complement bits. Whole floats and numeric
 * strings are also read. high is UINT64_MAX only for low 0. */
zarr_status zr_value_integer(const zarr_dtype_info *info, const struct zr_json *v,
                             int64_t low, uint64_t high, uint64_t *bits, zarr_error *err);
/* Decodes a base64 string of at most cap bytes. Returns false if v is not base64 or is
 * longer. */
bool zr_value_base64(const struct zr_json *v, void *out, size_t cap, size_t *n);

/* ---- one configuration member, a whole number in [1, max] ---- */
zarr_status zr_config_u64(const char *type, const struct zr_json *config,
                          const char *member, uint64_t max, uint64_t *out,
                          zarr_error *err);
/* Returns INVALID, naming the member, if the object has a member besides these two (b
 * NULL: one). `what` is the object's name in messages. */
zarr_status zr_config_only(const char *what, const struct zr_json *config, const char *a,
                           const char *b, zarr_error *err);
/* Reads length_bytes from a configuration without other members, or from the short form
 * "name[<length_bytes>]". */
zarr_status zr_config_length(const zarr_dtype_info *info, const char *name,
                             const char *json, uint64_t *n, zarr_error *err);
/* For "name[<inside>]", returns true and gives the part between the brackets. */
bool zr_split_brackets(const char *name, const char **inside, size_t *n);

/* Store and load the low n bytes (1, 2, 4 or 8) of a bit pattern, in the host's order. */
void zr_store_low(void *element, uint64_t bits, uint64_t n);
uint64_t zr_load_low(const void *element, uint64_t n);

/* ---- float.c, real.c ---- */
extern const struct zr_float zr_floats[]; /* ends with a row without a name */
enum {                                    /* the first rows */
    ZR_FLOATS_16,
    ZR_FLOATS_32,
    ZR_FLOATS_64
};
const struct zr_float *zr_float_find(const char *name, size_t n);
/* Gives the format of a core float, or of the parts of a core complex type. NULL: another
 * type. */
const struct zr_float *zr_dtype_float(const zarr_dtype *dtype);
/* Load and store an element's bits. Bits above the format's are ignored. */
uint64_t zr_float_load(const struct zr_float *f, const void *p);
void zr_float_store(const struct zr_float *f, void *p, uint64_t bits);
bool zr_float_is_nan(const struct zr_float *f, uint64_t bits);
/* As zr_float_from_f64(), from decimal text, rounded once. Returns false if the text is
 * not a number. *fits: the result of zr_float_from_f64(). */
bool zr_float_from_text(const struct zr_float *f, const char *s, size_t n, uint64_t *bits,
                        bool *fits);
/* Writes a finite number as text. cap >= 40. */
size_t zr_float_format(const struct zr_float *f, uint64_t bits, char *text, size_t cap);

/* ---- vlen.c ---- */
/* Compares byte by byte. */
int zr_vlen_compare(const zarr_dtype_info *info, const void *a, const void *b);

/* ---- claims.c, find.c ---- */
/* Whether the type is "V8" or the like. Types of that size may share this form; look-ups
 * take it as the raw type. */
bool zr_is_raw_form(const char *type);
/* Whether any number of types may have this NumPy form: "V8", "V", "B" or "O". */
bool zr_is_shared_form(const char *numpy);
/* Whether the text is a letter and a size, such as "f4" or "M8[ns]", and not a name. */
bool zr_is_typestr(const char *type);
/* Whether NumPy spells a number so without a size: "?", "e", "half", "int". *type: its v2
 * type; NULL: its size differs between machines. No table can register such a text, but a
 * family may have it as the letter of its v2 types. */
bool zr_numpy_spelling(const char *text, const char **type);
/* Give the family of a name with a number or brackets, or of a v2 type. NULL: none. */
const struct zr_dtype_entry *zr_family_find(const struct zr_dtype_registry *r,
                                            const char *name);
const struct zr_dtype_entry *zr_family_of_v2(const struct zr_dtype_registry *r,
                                             const char *bare);
/* Whether the name is a member of this table's family: under the table's name or alias
 * `own`, or as a v2 type. */
bool zr_family_takes(const zarr_dtype_vtable *v, const char *own, const char *name);
bool zr_family_takes_v2(const zarr_dtype_vtable *v, const char *bare);

/* ---- claims.c ---- */
/* Checks a table before it is registered. Returns EXISTS if a name is taken; INVALID if a
 * name has forbidden characters or the table lacks an entry. */
zarr_status zr_dtype_check_table(struct zr_dtype_registry *r, const zarr_dtype_vtable *v,
                                 const char *origin, zarr_error *err);
/* Checks the texts that a table wrote. Returns EXISTS if a name or type belongs to
 * another table; INTERNAL if the table did not register it. */
zarr_status zr_dtype_check_texts(const struct zr_dtype_registry *r,
                                 const struct zarr_dtype *t, zarr_error *err);

/* ---- the core's tables ---- */
enum {
    ZR_DTYPE_REALS = 29
};
extern const zarr_dtype_vtable zr_dtype_reals[ZR_DTYPE_REALS];
extern const zarr_dtype_vtable zr_dtype_bool, zr_dtype_int2, zr_dtype_int4, zr_dtype_int8,
    zr_dtype_int16, zr_dtype_int32, zr_dtype_int64, zr_dtype_uint2, zr_dtype_uint4,
    zr_dtype_uint8, zr_dtype_uint16, zr_dtype_uint32, zr_dtype_uint64, zr_dtype_raw,
    zr_dtype_null_terminated, zr_dtype_utf32, zr_dtype_datetime64, zr_dtype_timedelta64,
    zr_dtype_struct, zr_dtype_string, zr_dtype_vbytes, zr_dtype_optional,
    zr_dtype_zarrs_optional, zr_dtype_ragged;

#endif
