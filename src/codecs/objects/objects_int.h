/*
 * codecs/objects/objects_int.h - json2 and msgpack2: a chunk's elements (text, bools,
 * numbers) as one list, nested as the chunk's dimensions are, with NumPy's name of the
 * type and the shape behind them.
 */
#ifndef ZR_OBJECTS_INT_H
#define ZR_OBJECTS_INT_H

#include "codecs/objects/objects.h"

struct zr_objects {
    const zarr_allocator *alloc;
    const char *codec;
    uint64_t n;            /* elements of a chunk */
    struct zr_number type; /* of numbers, in native order; kind 0: text */
    size_t each;           /* bytes of an element in memory */
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    bool missing;    /* null and 0 are empty text */
    bool short_text; /* msgpack2: lengths of one byte may be used */
    bool single;     /* msgpack2: floats have 32 bits */
    struct zr_json2 json;
};
zarr_status zr_objects_bind(void **out, const zarr_codec_spec *spec,
                            const zarr_chunk_spec *decoded, zarr_error *err);
void zr_objects_close(void *self);

/* "<codec>: element <i> <what>", CORRUPT. */
zarr_status zr_objects_damaged(const struct zr_objects *self, const char *what,
                               uint64_t i, zarr_error *err);
/* "<codec>: element <i> is <what>, ...", UNSUPPORTED. */
zarr_status zr_objects_no_text(const struct zr_objects *self, const char *what,
                               uint64_t i, zarr_error *err);
zarr_status zr_objects_wrong_list(const struct zr_objects *self, uint64_t want,
                                  zarr_error *err);
zarr_status zr_objects_wrong_shape(const struct zr_objects *self, zarr_error *err);
/* Checks the type that follows the elements. UNSUPPORTED: it is not a type of text.
 * CORRUPT: it is not the array's type of numbers. */
zarr_status zr_objects_type(const struct zr_objects *self, const char *s, size_t n,
                            zarr_error *err);

#define ZR_OBJECTS_TYPE 16 /* "<f8", whatever the compiler thinks of */
/* The name of the array's type, as it follows the elements. */
void zr_objects_type_name(const struct zr_objects *self, char name[ZR_OBJECTS_TYPE]);
/* A value as it was found: kind 'b', 'u' (from 0 on), 'i' (below 0), 'f', or 0 for what
 * is no number, of which `shown` tells. Stores it, or CORRUPT: the type does not hold it.
 */
zarr_status zr_objects_number(const struct zr_objects *self, uint32_t kind,
                              struct zr_numpy_value v, const char *shown, uint64_t i,
                              uint8_t *to, zarr_error *err);

/* The current place in the nested lists. */
struct zr_nest {
    int32_t ndim;
    int32_t leaf; /* the dimension whose lists hold elements */
    int32_t open; /* before an element: dimensions from here on begin a list */
    uint64_t dims[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
};
/* nested: as the chunk is; else one list of all, as which numcodecs reads it, too. */
void zr_nest_begin(struct zr_nest *nest, const struct zr_objects *self, bool nested);
/* Goes on after an element: the lists of dimensions from nest->open on have ended. */
void zr_nest_step(struct zr_nest *nest);

/* Output. Bytes that do not fit the room are only counted. */
struct zr_put {
    uint8_t *to;
    uint64_t room, bytes;
};
void zr_put_bytes(struct zr_put *p, const void *from, uint64_t n);
void zr_put_byte(struct zr_put *p, unsigned byte);
void zr_put_word(struct zr_put *p, const char *text);

typedef void zr_put_chunk(const struct zr_objects *self, struct zr_put *p,
                          const uint8_t *items);
/* Checks the elements, then writes them. */
zarr_status zr_objects_encode(const struct zr_objects *self, zr_put_chunk *put,
                              const struct zr_host_job *io, size_t *used,
                              zarr_error *err);
/* The exact size that encoding job->src takes; 0: not to be told. */
uint64_t zr_objects_size(const struct zr_objects *self, zr_put_chunk *put,
                         const zarr_codec_job *job);
zarr_vlen zr_objects_item(const uint8_t *items, uint64_t i);

#endif
