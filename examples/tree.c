/* Introduces: zarr_node_copy(), zarr_node_move(), zarr_node_delete(), zarr_node_probe(),
 * zarr_node_migrate(), zarr_group_consolidate()
 *
 * Whole trees: copies a group of format 2, converts the metadata of the copy to format 3,
 * moves it, deletes the old one, and consolidates. Usage: tree DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static void look(zarr_store *store, const char *path)
{
    static const char *const kinds[] = {"nothing", "array", "group"};
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    const zarr_status st = zarr_node_probe(store, path, &kind, &format, NULL, NULL);

    printf("%s: %s, format %d\n", path, st ? zarr_status_text(st) : kinds[kind], format);
}

static zarr_status change(zarr_store *store, zarr_error *err)
{
    zarr_migrate_options v3 = ZARR_MIGRATE_OPTIONS_INIT;
    zarr_group *group = NULL;
    zarr_status st = zarr_node_copy(store, "old", store, "copy", NULL, err);

    v3.flags = ZARR_MIGRATE_REMOVE;
    if (st == ZARR_OK) /* writes metadata; chunks stay as they are */
        st = zarr_node_migrate(store, "copy", &v3, err);
    if (st == ZARR_OK) /* one step: a reader sees the old or the new path */
        st = zarr_node_move(store, "copy", store, "new", NULL, err);
    if (st == ZARR_OK)
        st = zarr_node_delete(store, "old", err);
    if (st == ZARR_OK && !(st = zarr_group_open(&group, store, "new", NULL, err)))
        st = zarr_group_consolidate(group, NULL, err); /* last: copies all metadata */
    zarr_group_free(group);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    create.flags = ZARR_STORE_CREATE, spec.data_type = "int16";
    spec.zarr_format = 2, spec.ndim = 1, spec.shape = (uint64_t[]){4};
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "example.zarr", &create,
                        &err) ||
        zarr_array_create(&array, store, "old/values", &spec, NULL, &err) ||
        change(store, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    look(store, "old"), look(store, "new"), look(store, "new/values");
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
