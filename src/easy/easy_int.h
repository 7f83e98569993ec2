/*
 * easy/easy_int.h - what the files of this room share.
 */
#ifndef ZR_EASY_INT_H
#define ZR_EASY_INT_H

#include "base/base.h"
#include "ctx/ctx.h"
#include "json/json.h"
#include "node/node.h"
#include <zarrc/easy.h>

/* An attribute of an array or of a group. */
struct zr_attribute {
    const zarr_array *array;
    const zarr_group *group;
    const char *name;
};

/* The C types of numbers. */
enum zr_number_type {
    ZR_TYPE_DOUBLE,
    ZR_TYPE_INT64
};
/* values NULL: only tells n. n NULL: exactly one value is wanted. */
zarr_status zr_attribute_get_numbers(const struct zr_attribute *a,
                                     enum zr_number_type type, void *values, uint64_t cap,
                                     uint64_t *n, zarr_error *err);
zarr_status zr_attribute_get_text(const struct zr_attribute *a, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err);
zarr_status zr_attribute_get_texts(zarr_texts **out, const struct zr_attribute *a,
                                   zarr_error *err);

/* A value to set: n of one type, a list or a single one. */
struct zr_attribute_value {
    const double *doubles;
    const int64_t *int64s;
    const char *const *texts;
    uint64_t n;
    bool is_list;
};
zarr_status zr_attribute_set(zarr_array *array, zarr_group *group, const char *name,
                             const struct zr_attribute_value *value, zarr_error *err);

#endif
