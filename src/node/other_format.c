/*
 * node/other_format.c - recognises folders of other formats by the names in them, after
 * no node was found there. One listing of the folder, which ends after OTHER_NAMES names.
 * Thread class: shared.
 */
#include "node/node.h"

#include <string.h>

enum {
    OTHER_NAMES = 1000
};

/* A name that a folder of the format contains, and another one; NULL: none. */
struct other_format {
    const char *name, *beside, *text;
};

static const char in_icechunk[] = "an Icechunk repository, which the Python package "
                                  "icechunk reads";
static const char in_tiledb[] = "a TileDB array or group, which TileDB reads";
static const struct other_format other_formats[] = {
    {"attributes.json", NULL,
     "an N5 container, which zarr-python 2 (N5Store) and z5py read"},
    {"meta", "attrs",
     "a Zarr v1 array, which zarr-python 2 reads; zarr.convenience.copy() of zarr-python "
     "2 "
     "writes it as v2"},
    {"snapshots", "refs", in_icechunk},
    {"snapshots", "repo", in_icechunk},
    {"__schema", NULL, in_tiledb},
    {"__group", NULL, in_tiledb},
    {".zmetadata", NULL,
     "a kerchunk folder of references, which fsspec (the file system \"reference\") and "
     "xarray (the engine \"kerchunk\") read"},
};

struct other_look {
    size_t path_bytes, n;
    uint32_t names, beside; /* a bit for each row of other_formats */
};

static int other_look_at(void *user, const zarr_store_item *item)
{
    struct other_look *l = user;
    const char *name = item->key + (l->path_bytes ? l->path_bytes + 1 : 0);

    for (uint32_t i = 0; i < ZR_COUNT(other_formats); i++) {
        if (strcmp(name, other_formats[i].name) == 0)
            l->names |= UINT32_C(1) << i;
        if (!other_formats[i].beside || strcmp(name, other_formats[i].beside) == 0)
            l->beside |= UINT32_C(1) << i;
    }
    return ++l->n >= OTHER_NAMES;
}

const char *zarr_node_other_format(zarr_store *store, const char *path)
{
    if (!store)
        return NULL;
    const zarr_context *ctx = zr_store_context(store);
    struct other_look l = {0};
    const char *text = NULL;
    char *normal = NULL;

    if (!zr_store_can(store, ZARR_STORE_CAP_LIST) ||
        zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, NULL) != ZARR_OK)
        return NULL;
    l.path_bytes = strlen(normal);
    if (zr_store_list(store, normal, ZARR_LIST_DIRECTORY, other_look_at, &l, NULL,
                      NULL) == ZARR_OK)
        for (uint32_t i = 0; i < ZR_COUNT(other_formats) && !text; i++)
            if (l.names & l.beside & UINT32_C(1) << i)
                text = other_formats[i].text;
    zr_free(ctx->alloc, normal);
    return text;
}

zarr_status zr_fail_no_node(zarr_store *store, const char *path, const char *what,
                            zarr_error *err)
{
    const char *other = err ? zarr_node_other_format(store, path) : NULL;

    return zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no %s%s%s", what,
                   other ? "; this may be " : "", other ? other : "");
}
