/* Introduces: zarr_open_group(), zarr_group_list_members(), zarr_group_store()
 *
 * Walks through everything below a group. Calls that take a store and a path get them
 * from the group.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status delete_run(const char *where, const char *path, zarr_error *err)
{
    zarr_group *group = NULL;
    zarr_status st = zarr_open_group(&group, NULL, where, "r+", err);

    if (st == ZARR_OK)
        st = zarr_node_delete(zarr_group_store(group), path, err);
    zarr_group_free(group);
    return st;
}

static zarr_status walk_group(const char *where, zarr_error *err)
{
    zarr_group *group = NULL;
    zarr_members *all = NULL;
    zarr_status st = zarr_open_group(&group, NULL, where, "r", err);

    if (st == ZARR_OK)
        st = zarr_group_list_members(&all, group, 0, err); /* of any depth */
    for (uint64_t i = 0; st == ZARR_OK && i < all->n; i++) {
        const int is_group = all->node[i]->kind == ZARR_NODE_GROUP;

        printf("%s%s\n", all->node[i]->path, is_group ? "/" : "");
    }
    zarr_members_free(all);
    zarr_group_free(group);
    return st;
}

int main(void)
{
    const uint64_t shape[1] = {12};
    zarr_array *a = NULL, *b = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    if (zarr_create_array(&a, NULL, "lab.zarr/run-1/signal", "w", ZARR_FLOAT64, 1, shape,
                          &err) ||
        zarr_create_array(&b, NULL, "lab.zarr/run-2/signal", "w", ZARR_FLOAT64, 1, shape,
                          &err) ||
        delete_run("lab.zarr", "run-1", &err) || walk_group("lab.zarr", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_array_free(a);
    zarr_array_free(b);
    return 0;
}
