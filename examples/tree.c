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
    zarr_error err;

    if (zarr_node_probe(store, path, &kind, &format, &err))
        fprintf(stderr, "%s\n", err.message);
    printf("%s: %s, format %d\n", path, kinds[kind], (int)format);
}

static zarr_status change(zarr_store *store, zarr_error *err)
{
    const zarr_migrate_options v3 = {sizeof v3, .flags = ZARR_MIGRATE_REMOVE};
    zarr_group *group = NULL;
    zarr_status st = zarr_node_copy(store, "old", store, "copy", NULL, err);

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
    const zarr_store_options create = {sizeof create, .flags = ZARR_STORE_CREATE};
    const zarr_array_spec spec = {sizeof spec, .zarr_format = 2, .data_type = "int16",
                                  .ndim = 1, .shape = (uint64_t[]){4}};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = {0};

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
