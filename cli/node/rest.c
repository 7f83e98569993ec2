/*
 * node/rest.c - chunks without their array, and without the object .zarrc-job: what other
 * programs leave when a delete is killed. They are known by their names, and only below a
 * group, so that no other folder is taken for them.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>

struct rest_look {
    const char *path;
    bool any, foreign;
};

/* c, c/0/1, c.0.1, 0.1 or 0/1; or metadata that alone makes no node. */
static bool is_of_array(const char *name)
{
    bool digits = false;

    if (strcmp(name, "c") == 0 || strcmp(name, ".zattrs") == 0 ||
        strcmp(name, ".zarrc-leftovers") == 0)
        return true;
    if (name[0] == 'c' && (name[1] == '/' || name[1] == '.'))
        name += 2;
    for (; *name; name++) {
        if ((*name == '/' || *name == '.') && !digits)
            return false;
        digits = *name >= '0' && *name <= '9';
        if (!digits && *name != '/' && *name != '.')
            return false;
    }
    return digits;
}

static int look_at(void *user, const zarr_store_item *item)
{
    struct rest_look *l = user;

    l->any = true;
    l->foreign = !is_of_array(cli_path_below(item->key, l->path));
    return l->foreign || cli_cancelled();
}

bool cli_rest_of_array(const struct cli_node *node)
{
    struct rest_look l = {.path = node->path};
    const char *slash = strrchr(node->path, '/');
    char *parent = cli_format("%.*s", slash ? (int)(slash - node->path) : 0, node->path);
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    const bool below_group =
        *node->path && cli_node_is_missing(node) &&
        zarr_node_probe(node->store, parent, &kind, &format, NULL) == ZARR_OK &&
        kind == ZARR_NODE_GROUP;

    free(parent);
    return below_group &&
           zarr_store_list(node->store, node->path, ZARR_LIST_UNLINKED, look_at, &l,
                           NULL) == ZARR_OK &&
           l.any && !l.foreign;
}

int cli_rest_error(struct cli *cli, int exit_code, const struct cli_node *node)
{
    char *at = cli_shell_word(node->shown), *hint;

    hint = cli_format("zarrc rm -r %s removes them.", at);
    cli_error(cli, exit_code, hint,
              "there is no node at %s, but chunks of an array that was deleted in part",
              node->shown);
    free(hint);
    free(at);
    return exit_code;
}
