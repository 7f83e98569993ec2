/*
 * easy/group_attributes.c - the calls for attributes of a group.
 * Thread class: plain functions.
 */
#include "easy/easy_int.h"

zarr_status zarr_group_attribute_get_double(const zarr_group *group, const char *name,
                                            double *value, zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_numbers(&a, ZR_TYPE_DOUBLE, value, 1, NULL, err);
}

zarr_status zarr_group_attribute_get_doubles(const zarr_group *group, const char *name,
                                             double *values, uint64_t cap, uint64_t *n,
                                             zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_numbers(&a, ZR_TYPE_DOUBLE, values, cap, n, err);
}

zarr_status zarr_group_attribute_get_int64(const zarr_group *group, const char *name,
                                           int64_t *value, zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_numbers(&a, ZR_TYPE_INT64, value, 1, NULL, err);
}

zarr_status zarr_group_attribute_get_int64s(const zarr_group *group, const char *name,
                                            int64_t *values, uint64_t cap, uint64_t *n,
                                            zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_numbers(&a, ZR_TYPE_INT64, values, cap, n, err);
}

zarr_status zarr_group_attribute_get_text(const zarr_group *group, const char *name,
                                          char *text, size_t cap, size_t *text_bytes,
                                          zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_text(&a, text, cap, text_bytes, err);
}

zarr_status zarr_group_attribute_get_texts(zarr_texts **out, const zarr_group *group,
                                           const char *name, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(group, err);
    const struct zr_attribute a = {.group = group, .name = name};

    return zr_attribute_get_texts(out, &a, err);
}

zarr_status zarr_group_attribute_set_double(zarr_group *group, const char *name,
                                            double value, zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.doubles = &value, .n = 1};

    return zr_attribute_set(NULL, group, name, &v, err);
}

zarr_status zarr_group_attribute_set_doubles(zarr_group *group, const char *name,
                                             const double *values, uint64_t n,
                                             zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.doubles = values, .n = n, .is_list = true};

    return zr_attribute_set(NULL, group, name, &v, err);
}

zarr_status zarr_group_attribute_set_int64(zarr_group *group, const char *name,
                                           int64_t value, zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.int64s = &value, .n = 1};

    return zr_attribute_set(NULL, group, name, &v, err);
}

zarr_status zarr_group_attribute_set_int64s(zarr_group *group, const char *name,
                                            const int64_t *values, uint64_t n,
                                            zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.int64s = values, .n = n, .is_list = true};

    return zr_attribute_set(NULL, group, name, &v, err);
}

zarr_status zarr_group_attribute_set_text(zarr_group *group, const char *name,
                                          const char *text, zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.texts = text ? &text : NULL, .n = 1};

    return zr_attribute_set(NULL, group, name, &v, err);
}

zarr_status zarr_group_attribute_set_texts(zarr_group *group, const char *name,
                                           const char *const *texts, uint64_t n,
                                           zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_attribute_value v = {.texts = texts, .n = n, .is_list = true};

    return zr_attribute_set(NULL, group, name, &v, err);
}
