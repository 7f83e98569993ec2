/*
 * grid/config_int.h - helpers for the JSON configurations of grids and chunk
 * key encodings. Not for other rooms.
 */
#ifndef ZR_GRID_CONFIG_INT_H
#define ZR_GRID_CONFIG_INT_H

#include "grid/grid.h"

typedef zarr_status (*zr_canonical_fn)(const void *self, char *text, size_t cap,
                                       size_t *text_bytes, zarr_error *err);

/* INVALID unless config is NULL or an object. UNSUPPORTED for members other than these
 * (the list ends with NULL), or other than this one. */
zarr_status zr_config_check_members(const struct zr_json *config, const char *what,
                                    const char *const *members, zarr_error *err);
zarr_status zr_config_check(const struct zr_json *config, const char *what,
                            const char *member, zarr_error *err);
zarr_status zr_config_parse(struct zr_json_doc *doc, const char *json, zarr_error *err);
/* Writes the configuration as text; NULL gives "{}". */
zarr_status zr_config_text(const struct zr_json *config, struct zr_str *out,
                           zarr_error *err);
/* Writes to a caller's block, as snprintf does. */
zarr_status zr_config_give(const struct zr_str *s, char *text, size_t cap,
                           size_t *text_bytes, zarr_error *err);
/* Appends what a vtable's canonical() writes. */
zarr_status zr_config_take(const void *self, zr_canonical_fn canonical,
                           struct zr_str *out, zarr_error *err);

#endif
