/*
 * unit/tree/consolidated_test.h - a hierarchy, and what walks and checks tell, as text.
 */
#ifndef CONSOLIDATED_TEST_H
#define CONSOLIDATED_TEST_H

#include "unit/array/array_test.h"

struct told {
    char text[4096];
    int stop;
};

static inline int tell_difference(void *user, const char *path, const char *what)
{
    struct told *t = user;
    const size_t at = strlen(t->text);

    snprintf(t->text + at, sizeof t->text - at, "%s %s|", path, what);
    return t->stop;
}

static inline void make_tree(struct world *w, int format)
{
    zarr_group *g = NULL;

    assert_ok(group_create(&g, w->store, "c/g/inner", format, "{\"i\": 1}", 0, &terr));
    zarr_group_free(g);
    zarr_array_free(make_array(w, "c/g/inner/x", format, 4, 4));
    zarr_array_free(make_array(w, "c/A", format, 4, 4));
    zarr_array_free(make_array(w, "c/b", format, 4, 4));
}

#endif
