/* Introduces: zarr_group_attribute_set(), zarr_group_walk(), zarr_group_consolidate()
 *
 * Builds a small hierarchy, consolidates and walks it. Usage: groups_attrs DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static int print_node(void *user, const zarr_node_item *node)
{
    const char *slash = node->kind == ZARR_NODE_GROUP ? "/" : "";

    ++*(int *)user;
    printf("%*s%s%s\n", 2 * node->depth, "", node->name, slash);
    return ZARR_WALK_GO_ON;
}

static zarr_status build(zarr_store *store, zarr_error *err)
{
    const uint64_t shape[1] = {12};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec, .ndim = 1, .shape = shape, .data_type = "float64"};
    zarr_group *run = NULL;
    zarr_array *signal = NULL;
    zarr_status st = zarr_group_create(&run, store, "lab/run-1", 3, NULL, 0, err);

    if (st == ZARR_OK)
        st = zarr_group_attribute_set(run, "started", "\"2026-01-31\"", err);
    if (st == ZARR_OK)
        st = zarr_array_create(&signal, store, "lab/run-1/signal", &spec, NULL, err);
    if (st == ZARR_OK) /* all metadata below "" into one document */
        st = zarr_group_consolidate(store, "", NULL, err);
    zarr_array_free(signal);
    zarr_group_free(run);
    return st;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "example.zarr";
    const zarr_store_options create = {.struct_size = sizeof create,
                                       .flags = ZARR_STORE_CREATE};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_group *root = NULL;
    zarr_error err = {0};
    int n = 0;

    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, path, &create, &err) || build(store, &err) ||
        zarr_group_open(&root, store, "", NULL, &err) ||
        zarr_group_walk(root, print_node, &n, &err))
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    zarr_group_free(root);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return err.code != ZARR_OK || n != 3;
}
