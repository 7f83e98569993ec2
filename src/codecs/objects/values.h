/*
 * codecs/objects/values.h - elements of "|O" that are not text, for json2 and msgpack2.
 */
#ifndef ZR_OBJECT_VALUES_H
#define ZR_OBJECT_VALUES_H

#include "codecs/codecs_int.h"
#include "json/json.h"

enum {
    ZR_VALUE_DEPTH = 256 /* lists and objects in each other */
};

/* The state of a thread. `doc` has a decoded chunk, or the text of its values. Elements
 * point into it until the next chunk. */
struct zr_values {
    struct zr_json_doc doc, scratch;
    bool open;
};
zarr_status zr_values_open(void *self, void **state, zarr_error *err);
void zr_values_close(void *state);
void zr_values_begin(struct zr_values *t, const zarr_allocator *alloc);

/* Parses an element into doc->root if it is a value. *is_value false: it is text.
 * Returns LIMIT for a value with too much in it. */
zarr_status zr_value_parse(struct zr_json_doc *doc, const zarr_vlen *item, bool *is_value,
                           zarr_error *err);
/* Gives the element that stands for a value. It lasts until the next chunk. */
zarr_status zr_value_text(struct zr_values *t, const struct zr_json *v, zarr_vlen *out,
                          zarr_error *err);
/* Replaces a decoded text that would be taken for a value. */
zarr_status zr_value_escape(struct zr_values *t, zarr_vlen *item, zarr_error *err);

/* Reads a number: a float if it is written as one, else an integer. Returns false if the
 * integer has more than 64 bits. */
bool zr_value_number(const struct zr_json *v, uint32_t *kind, struct zr_numpy_value *out);
/* Makes the JSON number or bool that a decoded number of this kind is. */
struct zr_json *zr_value_new_number(struct zr_json_doc *doc, uint32_t kind,
                                    struct zr_numpy_value v);

/* Which numbers of a value a codec can write. */
struct zr_value_rule {
    bool any_integer; /* also of more than 64 bits */
    bool any_float;   /* also NaN and Infinity */
    bool single;      /* floats have 32 bits */
};
/* Returns why the codec cannot write a number in v, such as "is not finite, allow_nan is
 * false"; NULL: it can write all. */
const char *zr_value_unfit(const struct zr_value_rule *rule, const struct zr_json *v);

/* A walk through a value that zr_value_parse() made, parents first. Begins zeroed, with
 * the value itself. */
struct zr_value_walk {
    const struct zr_json *around[ZR_VALUE_DEPTH];
    size_t depth;
};
const struct zr_json *zr_value_next(struct zr_value_walk *w, const struct zr_json *v);

#endif
