/* Introduces: zarr_group_create(), zarr_group_attribute_get(), zarr_group_open(),
 * zarr_group_open_array(), zarr_group_list(), zarr_group_walk()
 *
 * Makes groups with attributes, lists the members of one, and walks through all of them.
 * Usage: groups DIRECTORY
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static int print_node(void *user, const zarr_node_item *node)
{
    const int indent = user ? 2 * node->depth : 0;

    printf("%*s%s%s\n", indent, "", node->name, node->kind == ZARR_NODE_GROUP ? "/" : "");
    return ZARR_WALK_GO_ON; /* ZARR_WALK_STOP ends the listing */
}

static zarr_status build(zarr_store *store, zarr_error *err)
{
    const zarr_array_spec spec = {sizeof spec, .data_type = "float64", .ndim = 1,
                                  .shape = (uint64_t[]){12}};
    zarr_group *run = NULL; /* its parent, lab, is created, too */
    zarr_array *signal = NULL;
    zarr_status st = zarr_group_create(&run, store, "lab/run-1", NULL, NULL, err);

    if (st == ZARR_OK) /* values are JSON, so text has quotes */
        st = zarr_group_attribute_set(run, "started", "\"2026-01-31\"", err);
    if (st == ZARR_OK)
        st = zarr_array_create(&signal, store, "lab/run-1/signal", &spec, NULL, err);
    zarr_array_free(signal);
    zarr_group_free(run);
    return st;
}

int main(int argc, char **argv)
{
    const zarr_store_options create = {sizeof create, .flags = ZARR_STORE_CREATE};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_group *root = NULL, *run = NULL;
    zarr_array *signal = NULL;
    zarr_error err = {0};
    char text[40];

    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "x.zarr", &create, &err) ||
        build(store, &err) || zarr_group_open(&root, store, "", NULL, &err) ||
        zarr_group_walk(root, print_node, &err, NULL, &err) || /* all nodes below */
        zarr_group_open_group(&run, root, "lab/run-1", NULL, &err) ||
        zarr_group_list(run, print_node, NULL, NULL, &err) || /* members of one group */
        zarr_group_attribute_get(run, "started", text, sizeof text, NULL, &err) ||
        zarr_group_open_array(&signal, run, "signal", NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("%s: %s\n", zarr_array_path(signal), text);
    zarr_array_free(signal);
    zarr_group_free(run), zarr_group_free(root);
    zarr_store_free(store), zarr_context_free(ctx);
    return 0;
}
