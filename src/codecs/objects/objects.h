/*
 * codecs/objects/objects.h - the configurations of json2 and categorize.
 */
#ifndef ZR_OBJECTS_FAMILY_H
#define ZR_OBJECTS_FAMILY_H

#include "codecs/codecs_int.h"

/* json2: how it writes text and numbers. */
struct zr_json2 {
    const char *comma; /* between elements, with its blanks; borrowed */
    bool ascii;        /* all other characters are escaped */
    bool finite;       /* allow_nan is false */
};
/* Returns false if the type is not one of the bools and numbers that json2 and msgpack2
 * take. */
bool zr_object_number(const zarr_dtype *dtype, struct zr_number *out);
zarr_status zr_spec_json2(const zarr_codec_spec *spec, struct zr_json2 *out,
                          zarr_error *err);

/* fill_read and fill_write of json2 and msgpack2. */
zarr_status zr_object_fill_read(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                const char *json, char *text, size_t cap,
                                size_t *text_bytes, zarr_error *err);
zarr_status zr_object_fill_write(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                 const char *json, char *text, size_t cap,
                                 size_t *text_bytes, zarr_error *err);

/* categorize: label i, counted from 0, is stored as the number i + 1 of type astype. */
struct zr_categorize {
    const struct zr_json *label; /* the first of n strings; borrowed */
    uint64_t n;
    struct zr_number astype;
};
zarr_status zr_spec_categorize(const zarr_codec_spec *spec, struct zr_categorize *out,
                               zarr_error *err);

#endif
