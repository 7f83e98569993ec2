/*
 * node/orphans.c - chunks without their array, and groups without their document, which
 * have no object .zarrc-job: what other programs leave when a delete is killed. They are
 * known by their names, and only below a group, so that no other folder is taken for
 * them.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>

struct rest_look {
    const char *path;
    bool any, foreign;
};

/* c, c/0/1, c.0.1, 0.1 or 0/1; or metadata that alone makes no node. */
static bool is_array_key(const char *name)
{
    bool digits = false;

    if (strcmp(name, "c") == 0 || strcmp(name, ".zattrs") == 0 ||
        strcmp(name, ".zarrc-leftovers") == 0 || strcmp(name, ".zarrc-job") == 0)
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
    l->foreign = !is_array_key(cli_path_below(item->key, l->path));
    return l->foreign || cli_is_cancelled();
}

bool cli_rest_of_array(const struct cli_node *node)
{
    struct rest_look l = {.path = node->path};
    const char *slash = strrchr(node->path, '/');
    char *parent = cli_format("%.*s", slash ? (int)(slash - node->path) : 0, node->path);
    const bool below_group = *node->path && cli_node_is_missing(node) &&
                             cli_kind_at(node->store, parent, NULL) == ZARR_NODE_GROUP;

    free(parent);
    return below_group &&
           zarr_store_list(node->store, node->path, ZARR_LIST_UNLINKED, look_at, &l,
                           cli_cancel, NULL) == ZARR_OK &&
           l.any && !l.foreign;
}

bool cli_can_replace_rest(const struct cli_node *node)
{
    struct rest_look l = {.path = node->path};
    struct cli_job job;
    bool is = cli_node_is_missing(node) && cli_job_read(node->store, node->path, &job);

    if (is) {
        is = (cli_job_deletes(&job) || cli_job_is_of_import(&job) ||
              strcmp(job.command, "create") == 0 || strcmp(job.command, "import") == 0) &&
             zarr_store_list(node->store, node->path, ZARR_LIST_UNLINKED, look_at, &l,
                             cli_cancel, NULL) == ZARR_OK &&
             !l.foreign;
        cli_job_free(&job);
    }
    return is;
}

int cli_rest_error(struct cli *cli, int exit_code, const struct cli_node *node)
{
    char *at = cli_shell_word(node->shown), *hint;

    hint = cli_format("If only its metadata was lost, restore that. zarrc rm -r %s "
                      "removes them.",
                      at);
    cli_error(cli, exit_code, hint,
              "there is no node at %s, but chunks of an array that was deleted in part",
              node->shown);
    free(hint);
    free(at);
    return exit_code;
}

/* ---- all below a node ---- */

static bool ends_with_name(const char *key, const char *name)
{
    const size_t n = strlen(key), m = strlen(name);

    return n >= m && strcmp(key + n - m, name) == 0 && (n == m || key[n - m - 1] == '/');
}

/* What the keys below a folder without a document are. */
struct folder {
    bool any, job, nodes; /* nodes: documents below it */
    bool foreign;         /* not only chunks of one array */
    bool not_chunk;       /* not only chunks of arrays at or below it */
};

static bool is_document_key(const char *key)
{
    return ends_with_name(key, "zarr.json") || ends_with_name(key, ".zarray") ||
           ends_with_name(key, ".zgroup");
}

static const char *last_name(const char *key)
{
    const char *slash = strrchr(key, '/');

    return slash ? slash + 1 : key;
}

static int look_below(void *user, const zarr_store_item *item)
{
    struct rest_look *l = user;
    const char *name = cli_path_below(item->key, l->path);

    l->any = l->any || (*name != '.' && is_array_key(name));
    l->foreign = strchr(name, '/') && is_document_key(name);
    return l->foreign || cli_is_cancelled();
}

uint32_t cli_kind_below(zarr_store *store, const char *path)
{
    struct rest_look l = {.path = path};
    const zarr_status st = zarr_store_list(store, path, ZARR_LIST_RECURSIVE, look_below,
                                           &l, cli_cancel, NULL);

    return st          ? ZARR_NODE_NONE
           : l.foreign ? ZARR_NODE_GROUP
           : l.any     ? ZARR_NODE_ARRAY
                       : ZARR_NODE_NONE;
}

static struct folder inspect_folder(const struct cli_keys *keys, const char *path)
{
    struct folder f = {.any = false};

    for (size_t i = 0; i < keys->n_items; i++) {
        const char *below = cli_path_below(keys->items[i], path);

        f.any = true;
        f.job = f.job || strcmp(below, ".zarrc-job") == 0;
        f.nodes = f.nodes || is_document_key(below);
        f.foreign = f.foreign || !is_array_key(below);
        f.not_chunk = f.not_chunk || !is_array_key(last_name(below));
    }
    return f;
}

struct rests {
    struct cli *cli;
    const struct cli_node *node;
    struct cli_tree tree;   /* nodes; paths below the node */
    struct cli_keys sorted; /* their paths in the store */
    struct cli_keys todo;   /* folders in groups that are not nodes */
    int32_t zarr_format;
    cli_rest_fn fn;
    void *user;
};

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int note_folder(void *user, const zarr_store_item *item)
{
    struct rests *r = user;
    const bool is_node =
        r->sorted.n_items > 0 && bsearch(&item->key, r->sorted.items, r->sorted.n_items,
                                         sizeof *r->sorted.items, compare_paths) != NULL;

    if (item->is_prefix && !is_node) {
        const zarr_store_item folder = {.key = item->key};

        (void)cli_keys_add(&r->todo, &folder);
    }
    return cli_is_cancelled();
}

static int list_folders(struct rests *r, const char *path)
{
    zarr_error err = {0};
    const zarr_status st =
        zarr_store_list(r->node->store, path, ZARR_LIST_DIRECTORY_UNLINKED, note_folder,
                        r, cli_cancel, &err);

    return st || cli_is_cancelled()
               ? cli_fail(r->cli, st, &err, "cannot list %s", r->node->shown)
               : CLI_OK;
}

static void tell_rest(const struct rests *r, const char *path, const struct folder *f)
{
    const bool is_group = f->foreign;
    char *shown = cli_shown_at(r->node, path);
    char *at = cli_shell_word(shown), *hint;

    if (is_group)
        hint = cli_format("zarrc create --group%s%s %s makes it a group.",
                          f->nodes ? "" : " --force",
                          r->zarr_format == 2 ? " --zarr-format=2" : "", at);
    else
        hint = cli_format("If only its metadata was lost, restore that. zarrc rm -r %s "
                          "removes it.",
                          at);
    r->fn(r->user, &(struct cli_rest){.path = path, .hint = hint, .is_group = is_group});
    free(hint);
    free(at);
    free(shown);
}

static int look_at_folder(struct rests *r, const char *path)
{
    struct cli_keys keys = {0};
    struct folder f;
    zarr_error err = {0};
    const zarr_status st = zarr_store_list(r->node->store, path, ZARR_LIST_UNLINKED,
                                           cli_keys_add, &keys, cli_cancel, &err);
    int rc = CLI_OK;

    if (cli_is_cancelled() || (st && !cli_is_node_fault(st, &err)))
        rc = cli_fail(r->cli, st, &err, "cannot list %s", r->node->shown);
    else if (st)
        r->fn(r->user, &(struct cli_rest){.path = path, .read_error = &err});
    f = inspect_folder(&keys, path);
    cli_keys_free(&keys);
    if (rc || f.job || !f.any)
        return rc;
    if (!f.foreign || f.nodes || !f.not_chunk)
        tell_rest(r, path, &f);
    return CLI_OK;
}

static int look_everywhere(struct rests *r)
{
    int rc = CLI_OK;

    for (size_t i = 0; i < r->tree.n_items; i++) {
        const zarr_store_item item = {
            .key = cli_path_join(r->node->path, r->tree.items[i].path)};

        (void)cli_keys_add(&r->sorted, &item);
        free((char *)(uintptr_t)item.key);
    }
    if (r->sorted.n_items > 1)
        qsort(r->sorted.items, r->sorted.n_items, sizeof *r->sorted.items, compare_paths);
    for (size_t i = 0; i < r->tree.n_items && !rc; i++)
        if (r->tree.items[i].kind == ZARR_NODE_GROUP) {
            char *path = cli_path_join(r->node->path, r->tree.items[i].path);

            rc = list_folders(r, path);
            free(path);
        }
    for (size_t i = 0; i < r->todo.n_items && !rc; i++)
        rc = look_at_folder(r, r->todo.items[i]);
    return rc;
}

int cli_rests_each(struct cli *cli, const struct cli_node *node, cli_rest_fn fn,
                   void *user)
{
    struct rests r = {.cli = cli, .node = node, .fn = fn, .user = user};
    int rc = CLI_OK;

    r.zarr_format = node->zarr_format;
    if (node->kind == ZARR_NODE_GROUP)
        rc = cli_tree_list(cli, node, &r.tree);
    if (!rc)
        rc = look_everywhere(&r);
    cli_keys_free(&r.todo);
    cli_keys_free(&r.sorted);
    cli_tree_free(&r.tree);
    return rc;
}
