/*
 * codecs/objects/objects_int.h - shared by json2 and msgpack2. Both store the elements of
 * a chunk (text, bools, numbers) as one list, nested like the chunk's dimensions. NumPy's
 * name of the type and the shape follow the elements.
 */
#ifndef ZR_OBJECTS_INT_H
#define ZR_OBJECTS_INT_H

#include "codecs/objects/objects.h"
#include "codecs/objects/values.h"

struct zr_objects;
struct zr_put;

/* How json2 or msgpack2 writes and reads a chunk. read() is told that there is room, and
 * writes all elements. */
struct zr_objects_form {
    void (*put)(const struct zr_objects *self, struct zr_put *p, const uint8_t *items);
    zarr_status (*read)(const struct zr_objects *self, struct zr_values *t,
                        const struct zr_host_job *io, zarr_error *err);
};

struct zr_objects {
    const zarr_allocator *alloc;
    const struct zr_objects_form *form; /* static */
    const char *codec;
    uint64_t n;            /* elements of a chunk */
    struct zr_number type; /* of numbers, in native order; kind 0 means text */
    size_t each;           /* bytes of an element in memory */
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t most_values; /* of a chunk of text, so that their tree is no larger than a
                             chunk may be */
    bool short_text;      /* msgpack2: lengths of one byte may be used */
    bool single;          /* msgpack2: floats have 32 bits */
    struct zr_json2 json;
};
zarr_status zr_objects_bind(void **out, const struct zr_objects_form *form,
                            const zarr_codec_spec *spec, const zarr_codec_binding *to,
                            zarr_error *err);
void zr_objects_close(void *self);
/* Entries of both tables. */
zarr_status zr_objects_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err);
zarr_status zr_objects_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err);
uint64_t zr_objects_size_hint(void *self, const zarr_codec_job *job, int encode);
#define ZR_OBJECTS_TABLE(name, bind_entry)                                               \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |        \
                ZARR_CODEC_DETERMINISTIC | ZARR_CODEC_FOR_V2,                            \
        .codec = name, .impl = "cpu.zarrc", .in_kinds = ZR_HOST_KINDS,                   \
        .out_kinds = ZR_HOST_KINDS, .bind = bind_entry, .thread_open = zr_values_open,   \
        .thread_close = zr_values_close, .encode = zr_objects_encode,                    \
        .decode = zr_objects_decode, .close = zr_objects_close,                          \
        .size_hint = zr_objects_size_hint,                                               \
    }

/* Returns CORRUPT with the text "<codec>: element <i> <what>". */
zarr_status zr_objects_fail(const struct zr_objects *self, const char *what, uint64_t i,
                            zarr_error *err);
/* Returns UNSUPPORTED with the text "<codec>: element <i> is or has <what>, ...". */
zarr_status zr_objects_no_json(const struct zr_objects *self, const char *what,
                               uint64_t i, zarr_error *err);
zarr_status zr_objects_wrong_list(const struct zr_objects *self, uint64_t want,
                                  zarr_error *err);
zarr_status zr_objects_wrong_shape(const struct zr_objects *self, zarr_error *err);
/* Checks the type that follows the elements. UNSUPPORTED if the array is text and the
 * type is not. CORRUPT if it is not the array's type of numbers. */
zarr_status zr_objects_type(const struct zr_objects *self, const char *s, size_t n,
                            zarr_error *err);

/* Room for a name such as "<f8". The rest keeps the compiler quiet about truncation. */
#define ZR_OBJECTS_TYPE 16
/* Prints the name of the array's type that follows the elements. */
void zr_objects_type_name(const struct zr_objects *self, char name[ZR_OBJECTS_TYPE]);
/* Stores the decoded value v in the array's type. `kind` is that of v: a bool, UINT if it
 * is 0 or more, INT if it is less than 0, a float, or 0 for a value that is not a number.
 * `shown` is the value for the error's text. CORRUPT if the type cannot hold v. */
zarr_status zr_objects_number(const struct zr_objects *self, uint32_t kind,
                              struct zr_numpy_value v, const char *shown, uint64_t i,
                              uint8_t *to, zarr_error *err);

/* The current place in the nested lists. */
struct zr_nest {
    int32_t ndim;
    int32_t leaf; /* the dimension whose lists hold elements */
    int32_t open; /* before an element: the dimensions from this one on begin a list */
    uint64_t dims[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
};
/* Begins at the first element. If `nested`, the lists are nested like the chunk's
 * dimensions. Otherwise one list has all elements; numcodecs reads that form, too. */
void zr_nest_begin(struct zr_nest *nest, const struct zr_objects *self, bool nested);
/* Goes to the next element. The lists of the dimensions from nest->open on have ended. */
void zr_nest_step(struct zr_nest *nest);

/* Output. Bytes that do not fit the room are counted but not written. */
struct zr_put {
    uint8_t *to;
    uint64_t room, bytes;
    bool failed; /* memory is short */
};
void zr_put_bytes(struct zr_put *p, const void *from, uint64_t n);
void zr_put_byte(struct zr_put *p, unsigned byte);
void zr_put_word(struct zr_put *p, const char *text);

/* Calls put_value() or, if the element is text, put_text(). */
typedef void zr_put_value(const struct zr_objects *self, struct zr_put *p,
                          const struct zr_json *v);
typedef void zr_put_text(const struct zr_objects *self, struct zr_put *p,
                         const zarr_vlen *item);
void zr_objects_put(const struct zr_objects *self, struct zr_put *p,
                    const zarr_vlen *item, zr_put_value *put_value,
                    zr_put_text *put_text);

zarr_vlen zr_objects_item(const uint8_t *items, uint64_t i);

/* Writes a chunk of msgpack2 (msgpack2_put.c). */
void zr_msgpack_put(const struct zr_objects *self, struct zr_put *p,
                    const uint8_t *items);

#endif
