/*
 * unit/array/array_test.h - helpers that make, fill and check arrays in a test's world.
 */
#ifndef ZR_ARRAY_TEST_H
#define ZR_ARRAY_TEST_H

#include "unit/node/node_test.h"

/* A 2-d int32 array with chunks of 2 x 2 and fill value -1. Format 2 or 3; 4 means v3
 * with shards of 4 x 4. */
zarr_array *make_array(struct world *w, const char *path, int kind, uint64_t rows,
                       uint64_t cols);
/* Writes row * 1000 + col to every element. */
void fill_array(zarr_array *a);
/* One element of a 2-d int32 array. */
int32_t read_at(zarr_array *a, uint64_t row, uint64_t col);
/* Counts wrong elements: [0, rows) x [0, cols) must be as fill_array() wrote it and the
 * rest -1. */
int count_wrong(zarr_array *a, uint64_t rows, uint64_t cols);

/* The text of an explanation; `form` as in zarr_explanation_text(). */
static inline void explain_text(zarr_array *a, uint32_t what, const zarr_io_options *opts,
                                uint32_t form, char *text, size_t cap)
{
    zarr_explanation *e = NULL;
    size_t n = 0;

    assert_ok(zarr_array_explain(&e, a, what, NULL, NULL, opts, &terr));
    assert_ok(zarr_explanation_text(e, form, text, cap, &n, &terr));
    assert_int_equal(strlen(text), n);
    zarr_explanation_free(e);
}

/* zarr_group_create() with the members of a spec. */
static inline zarr_status group_create(zarr_group **out, zarr_store *store,
                                       const char *path, int32_t format,
                                       const char *attributes, uint32_t flags,
                                       zarr_error *err)
{
    const zarr_group_spec spec = {.struct_size = sizeof spec,
                                  .flags = flags,
                                  .zarr_format = format,
                                  .attributes = attributes};

    return zarr_group_create(out, store, path, &spec, NULL, err);
}

static inline zarr_status open_unconsolidated(zarr_group **out, zarr_store *store,
                                              const char *path, zarr_error *err)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .consolidated = ZARR_CONSOLIDATED_NEVER};

    return zarr_group_open(out, store, path, &opts, err);
}

/* Opens the group at the path and consolidates it. */
static inline zarr_status consolidate_at(zarr_store *store, const char *path,
                                         const zarr_consolidate_options *opts,
                                         zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = open_unconsolidated(&g, store, path, err);

    if (st == ZARR_OK)
        st = zarr_group_consolidate(g, opts, err);
    zarr_group_free(g);
    return st;
}

/* Opens the group at the path and compares its consolidated metadata. */
static inline zarr_status
check_consolidated_at(zarr_store *store, const char *path,
                      int (*fn)(void *user, const char *path, const char *what),
                      void *user, const zarr_consolidate_options *opts, zarr_error *err)
{
    zarr_group *g = NULL;
    zarr_status st = open_unconsolidated(&g, store, path, err);

    if (st == ZARR_OK)
        st = zarr_group_consolidated_check(g, fn, user, opts, err);
    zarr_group_free(g);
    return st;
}

#endif
