/*
 * base/refusal.c - names that are refused on purpose, and the reason. The rooms have the
 * tables (chain/refusals.c ...); this file only looks names up.
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <string.h>

static bool refusal_names(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);

    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, name, n - 1) == 0;
    return strcmp(pattern, name) == 0;
}

const struct zr_refusal *zr_refusal_find(const struct zr_refusal *table, const char *kind,
                                         const char *name)
{
    for (; table->kind; table++)
        if (strcmp(table->kind, kind) == 0 && refusal_names(table->name, name))
            return table;
    return NULL;
}

zarr_status zr_fail_refused(zarr_error *err, const struct zr_refusal *table,
                            const char *kind, const char *name)
{
    const struct zr_refusal *row = zr_refusal_find(table, kind, name);

    if (!row)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s \"%.128s\" is not known", kind,
                       name);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s \"%.128s\" is refused: %s", kind, name,
                   row->reason);
}
