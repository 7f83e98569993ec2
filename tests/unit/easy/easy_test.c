/*
 * unit/easy/easy_test.c - helpers of the tests of the short calls.
 */
#include "easy_test.h"

const char *place(const struct world *w, const char *node)
{
    static char text[4][128];
    static int next;
    char *out = text[next++ % 4];

    snprintf(out, sizeof text[0], "%s/run.zarr/%s", w->dir, node);
    return out;
}

zarr_array *make_easy(struct world *w, const char *node, const char *data_type,
                      int32_t ndim, const uint64_t *shape)
{
    zarr_array *a = NULL;

    assert_ok(zarr_create_array(&a, w->ctx, place(w, node), "w", data_type, ndim, shape,
                                &terr));
    return a;
}
