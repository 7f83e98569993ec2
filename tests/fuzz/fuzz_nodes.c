/*
 * fuzz/fuzz_nodes.c - any bytes as the consolidated metadata that a group is opened
 * with, through the public API over a memory store: as the group's zarr.json and as
 * .zmetadata beside a .zgroup. What is accepted must be listed in order, each node
 * below the group, and can be opened or says why not.
 */
#include <stdlib.h>
#include <string.h>

#include <zarrc/zarrc.h>

#include "fuzz.h"

static zarr_context *fuzz_ctx;

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    zarr_limits limits = ZARR_LIMITS_INIT;
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;

    (void)argc;
    (void)argv;
    zarr_limits_untrusted(&limits);
    opts.limits = &limits;
    opts.max_threads = 1;
    fuzz_check(zarr_context_create(&fuzz_ctx, &opts, NULL) == ZARR_OK);
    return 0;
}

struct fuzz_walk {
    zarr_group *group;
    int n, n_arrays;
};

static int fuzz_node(void *user, const zarr_node_item *item)
{
    struct fuzz_walk *x = user;
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_error err = {0};

    fuzz_check(item->path && item->name && item->depth > 0);
    fuzz_check(strstr(item->path, item->name) && item->name[0] != '\0');
    fuzz_check(!strstr(item->path, "..") || !strstr(item->path, "/../"));
    if (++x->n > 50)
        return ZARR_WALK_STOP;
    if (item->kind == ZARR_NODE_ARRAY) {
        const zarr_status st =
            zarr_group_open_array(&a, x->group, item->path, NULL, &err);

        fuzz_check(st == ZARR_OK || (!a && err.message[0] != '\0'));
        if (a)
            fuzz_check(zarr_array_metadata(a) && zarr_array_ndim(a) >= 0);
        x->n_arrays += a != NULL;
        zarr_array_free(a);
    } else if (item->kind == ZARR_NODE_GROUP) {
        const zarr_status st =
            zarr_group_open_group(&g, x->group, item->path, NULL, &err);

        fuzz_check(st == ZARR_OK || (!g && err.message[0] != '\0'));
        zarr_group_free(g);
    }
    return ZARR_WALK_GO_ON;
}

static int fuzz_child(void *user, const zarr_node_item *item)
{
    fuzz_check(item->depth == 1 && !strchr(item->name, '/'));
    return ++*(int *)user > 50;
}

static void fuzz_open(zarr_store *store, uint32_t how)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .consolidated = how};
    struct fuzz_walk x = {0};
    zarr_error err = {0};
    zarr_status st = zarr_group_open(&x.group, store, "", &opts, &err);
    int n = 0;

    fuzz_check(st == ZARR_OK || (!x.group && err.message[0] != '\0'));
    if (st != ZARR_OK)
        return;
    fuzz_check(how != ZARR_CONSOLIDATED_MUST || zarr_group_is_consolidated(x.group));
    st = zarr_group_walk(x.group, fuzz_node, &x, NULL, &err);
    fuzz_check(st == ZARR_OK || err.message[0] != '\0');
    st = zarr_group_list(x.group, fuzz_child, &n, NULL, &err);
    fuzz_check(st == ZARR_OK || err.message[0] != '\0');
    zarr_group_free(x.group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char v2[] = "{\"zarr_format\":2}";

    for (int format = 2; format <= 3; format++) {
        zarr_store *store = NULL;

        fuzz_check(zarr_store_open(&store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
        fuzz_check(zarr_store_put(store, format == 3 ? "zarr.json" : ".zmetadata", data,
                                  size, NULL, NULL) == ZARR_OK);
        if (format == 2)
            fuzz_check(zarr_store_put(store, ".zgroup", v2, sizeof v2 - 1, NULL, NULL) ==
                       ZARR_OK);
        fuzz_open(store, ZARR_CONSOLIDATED_MUST);
        fuzz_open(store, 0);
        zarr_store_free(store);
    }
    return 0;
}
