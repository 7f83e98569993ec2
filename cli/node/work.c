/*
 * node/work.c - lists of nodes and objects for commands that work on whole hierarchies,
 * and checks of stores and locations. A list is complete before the work begins, because
 * most commands change the hierarchy that they list.
 */
#include "node/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

double cli_seconds(void)
{
    return (double)cli_now_ns() / 1e9;
}

/* ---- nodes ---- */

const char *cli_path_below(const char *path, const char *top)
{
    size_t n = strlen(top);

    if (n && strncmp(path, top, n) == 0)
        path += n;
    return path + (*path == '/');
}

static void tree_add(struct cli_tree *tree, const char *path, uint32_t kind,
                     int32_t zarr_format)
{
    if (tree->n_items == tree->cap) {
        tree->cap = tree->cap ? tree->cap * 2 : 16;
        tree->items = cli_realloc(tree->items, tree->cap * sizeof *tree->items);
    }
    tree->items[tree->n_items++] =
        (struct cli_tree_item){cli_strdup(path), kind, zarr_format};
}

struct listing {
    struct cli_tree *tree;
    const char *top;
};

static int tree_row(void *user, const zarr_node_item *item)
{
    struct listing *l = user;
    const char *below = cli_path_below(item->path, l->top);
    struct cli_tree_item *last = &l->tree->items[l->tree->n_items - 1];

    if (strcmp(last->path, below) == 0) /* a group that cannot be listed */
        last->kind = item->kind;
    else
        tree_add(l->tree, below, item->kind, item->zarr_format);
    return ZARR_WALK_GO_ON;
}

int cli_tree_list(struct cli *cli, const struct cli_node *node, struct cli_tree *out)
{
    zarr_group_open_options opts = {.struct_size = sizeof opts};
    const zarr_list_options walk = {
        .struct_size = sizeof walk, .flags = ZARR_MEMBERS_GO_ON, .cancel = cli_cancel};
    struct listing l = {out, node->path};
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st;

    tree_add(out, "", node->kind, node->zarr_format);
    if (node->kind != ZARR_NODE_GROUP)
        return CLI_OK;
    opts.consolidated = ZARR_CONSOLIDATED_NEVER;
    opts.cancel = cli_cancel;
    st = zarr_group_open(&group, node->store, node->path, &opts, &err);
    if (!st)
        st = zarr_group_walk(group, tree_row, &l, &walk, &err);
    zarr_group_free(group);
    if (st)
        return cli_fail(cli, st, &err, "cannot list %s", node->shown);
    return CLI_OK;
}

void cli_tree_free(struct cli_tree *tree)
{
    for (size_t i = 0; i < tree->n_items; i++)
        free(tree->items[i].path);
    free(tree->items);
    *tree = (struct cli_tree){0};
}

bool cli_is_node_fault(zarr_status st, const zarr_error *err)
{
    static const int codes[] = {ENOENT, ENOTDIR, EISDIR, ELOOP, EXDEV,
                                EINVAL, ENXIO,   EACCES, EPERM, EIO};

    if (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT ||
        st == ZARR_ERR_INVALID || st == ZARR_ERR_NOT_FOUND)
        return true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if ((st == ZARR_ERR_IO || st == ZARR_ERR_DENIED) &&
            err->os_domain == ZARR_OS_ERRNO && err->os_code == codes[i])
            return true;
    return false;
}

static bool is_document(const char *name)
{
    static const char *const names[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs"};
    bool is = false;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        is |= strcmp(name, names[i]) == 0;
    return is;
}

/* Which keys below a node to look for. */
enum {
    KEY_ANY,
    KEY_NODE, /* a document of a node below it */
    KEY_OTHER /* none of the node's own documents */
};

struct find_key {
    int what;
    const char *path;
    char *found; /* its name below the node, owned */
};

static int look_at_key(void *user, const zarr_store_item *item)
{
    struct find_key *f = user;
    const char *name = cli_path_below(item->key, f->path), *slash = strrchr(name, '/');

    if (item->is_prefix || (f->what == KEY_NODE && !(slash && is_document(slash + 1))) ||
        (f->what == KEY_OTHER && is_document(name)))
        return cli_is_cancelled();
    f->found = cli_strdup(name);
    return 1;
}

/* *found: the name of the first key of that kind, owned; NULL: there is none. */
static int find_key(struct cli *cli, const struct cli_node *node, int what, char **found)
{
    struct find_key f = {.what = what, .path = node->path};
    zarr_error err = {0};
    zarr_status st = zarr_store_list(node->store, node->path, ZARR_LIST_RECURSIVE,
                                     look_at_key, &f, cli_cancel, &err);

    *found = f.found;
    return st || cli_is_cancelled()
               ? cli_fail(cli, st, &err, "cannot list %s", node->shown)
               : CLI_OK;
}

int cli_has_nodes_below(struct cli *cli, const struct cli_node *node, bool *out)
{
    char *found;
    const int rc = find_key(cli, node, KEY_NODE, &found);

    *out = found != NULL;
    free(found);
    return rc;
}

char *cli_shown_below(const struct cli_node *node, const char *path)
{
    if (!*path)
        return cli_strdup(node->shown);
    return cli_format(*node->path ? "%s/%s" : "%s:/%s", node->shown, path);
}

char *cli_shown_at(const struct cli_node *node, const char *path)
{
    const char *root = cli_local_root(node);

    return *path ? cli_format("%s:/%s", root, path) : cli_strdup(root);
}

uint32_t cli_kind_at(zarr_store *store, const char *path, int32_t *format)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t found = 0;

    const zarr_status st = zarr_node_probe(store, path, &kind, &found, cli_cancel, NULL);

    if (st)
        kind = ZARR_NODE_NONE;
    if (st && st != ZARR_ERR_NOT_FOUND && found == 0)
        found = -1;
    if (format)
        *format = found;
    return kind;
}

/* ---- objects ---- */

uint64_t cli_object_bytes(zarr_store *store, const char *key, uint64_t listed)
{
    zarr_store_value value = ZARR_STORE_VALUE_INIT;

    if (listed != UINT64_MAX)
        return listed;
    return zarr_store_stat(store, key, &value, cli_cancel, NULL) == ZARR_OK ? value.bytes
                                                                            : 0;
}

static int stop_listing(void *user, const zarr_store_item *item)
{
    (void)user;
    (void)item;
    return 1;
}

bool cli_can_list(struct cli *cli, const struct cli_node *node, const char *done)
{
    const bool can =
        zarr_store_list(node->store, node->path, ZARR_LIST_DIRECTORY, stop_listing, NULL,
                        cli_cancel, NULL) != ZARR_ERR_UNSUPPORTED;

    if (!can)
        cli_warn(cli,
                 "%s cannot be listed: only the objects that its metadata names are %s",
                 node->shown, done);
    return can;
}

struct counting {
    zarr_store *store;
    bool with_bytes;
    struct cli_objects *out;
};

static int count_object(void *user, const zarr_store_item *item)
{
    struct counting *c = user;

    if (!item->is_prefix) {
        c->out->n_objects++;
        if (c->with_bytes)
            c->out->n_bytes += cli_object_bytes(c->store, item->key, item->bytes);
    }
    return cli_is_cancelled();
}

int cli_objects_count(struct cli *cli, const struct cli_node *node, uint32_t how,
                      bool with_bytes, struct cli_objects *out)
{
    struct counting c = {node->store, with_bytes, out};
    zarr_error err = {0};
    zarr_status st =
        zarr_store_list(node->store, node->path, how, count_object, &c, cli_cancel, &err);

    if (st || cli_is_cancelled())
        return cli_fail(cli, st, &err, "cannot list %s", node->shown);
    return CLI_OK;
}

int cli_require_empty(struct cli *cli, const struct cli_node *node)
{
    char *found;
    int rc;

    if (cli_job_refuse(cli, node))
        return CLI_EXISTS;
    rc = find_key(cli, node, KEY_ANY, &found);
    if (!rc && found)
        rc = cli_rest_of_array(node)
                 ? cli_rest_error(cli, CLI_EXISTS, node)
                 : cli_error(
                       cli, CLI_EXISTS, "Choose another location, or empty it yourself.",
                       "there are files at %s that are not a Zarr node", node->shown);
    free(found);
    return rc;
}

/* Another process may be creating the node right now, so its documents are no files. */
int cli_require_unused(struct cli *cli, const struct cli_node *node)
{
    char *found;
    int rc = CLI_OK;

    if (cli_flag(cli, "force") && cli_can_replace_rest(node))
        return CLI_OK;
    if (cli_job_refuse(cli, node))
        return CLI_EXISTS;
    if (cli_flag(cli, "force"))
        return CLI_OK;
    rc = find_key(cli, node, KEY_OTHER, &found);
    if (!rc && found)
        rc = cli_error(cli, CLI_EXISTS,
                       "Choose another location. --force deletes only chunks that a "
                       "former array left.",
                       "there is no Zarr node at %s, but there are files (%s)",
                       node->shown, found);
    free(found);
    return rc;
}

int cli_require_no_files(struct cli *cli, const struct cli_node *node)
{
    bool nodes = false;
    char *found = NULL;
    int rc = cli_job_refuse(cli, node);

    if (rc || cli_flag(cli, "force"))
        return rc;
    rc = cli_has_nodes_below(cli, node, &nodes);
    if (!rc && !nodes)
        rc = find_key(cli, node, KEY_ANY, &found);
    if (!rc && found)
        rc = cli_error(cli, CLI_EXISTS,
                       "Choose another location. --force creates the group, but zarrc "
                       "rm of the group would delete the files.",
                       "there is no Zarr node at %s, but there are files", node->shown);
    free(found);
    return rc;
}

int cli_refuse_broken(struct cli *cli, const struct cli_node *node, bool may_replace)
{
    bool below = false;
    int rc = cli_has_nodes_below(cli, node, &below);

    if (rc || (may_replace && !below && cli_flag(cli, "force")))
        return rc;
    return cli_error(cli, CLI_EXISTS,
                     below         ? "zarrc rm -r removes it, with everything below it."
                     : may_replace ? "Nothing was changed. Use --force to replace it."
                                   : "zarrc rm removes it.",
                     "%s is a node with broken metadata", node->shown);
}

int cli_check_resume(struct cli *cli)
{
    if (cli_flag(cli, "force") && cli_flag(cli, "resume"))
        return cli_error(cli, CLI_USAGE, NULL, "--force and --resume exclude each other");
    return CLI_OK;
}

/* ---- locations ---- */

const char *cli_local_root(const struct cli_node *node)
{
    static const char *const schemes[] = {"file://", "gds://", "gds:"};
    const char *url = node->store ? zarr_store_url(node->store) : "";

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url + strlen(schemes[i]);
    return url;
}

void cli_remove_empty_root(const struct cli_node *node)
{
    if (node->created_root && node->store)
        (void)rmdir(cli_local_root(node)); /* fails if it is not empty, as intended */
}

bool cli_same_store(const struct cli_node *a, const struct cli_node *b)
{
    char *p = realpath(cli_local_root(a), NULL), *q = realpath(cli_local_root(b), NULL);
    bool same = a->store == b->store || (p && q && strcmp(p, q) == 0);

    free(p);
    free(q);
    return same;
}

int cli_share_archive(struct cli *cli, struct cli_node *src, const struct cli_node *dst)
{
    struct stat st;
    zarr_error err = {0};
    zarr_status status = ZARR_OK;

    if (!cli_same_store(src, dst) || stat(cli_local_root(src), &st) != 0 ||
        !S_ISREG(st.st_mode))
        return CLI_OK;
    zarr_store_free(src->store);
    src->store = zarr_store_ref(dst->store);
    if (!src->array)
        return CLI_OK;
    zarr_array_free(src->array);
    src->array = NULL;
    status = zarr_array_open(&src->array, src->store, src->path, NULL, &err);
    return status ? cli_fail(cli, status, &err, "cannot open array %s", src->shown)
                  : CLI_OK;
}

int cli_require_outside(struct cli *cli, const char *file, const struct cli_node *node)
{
    char *joined = cli_path_join(cli_local_root(node), node->path);
    char *folder = realpath(joined, NULL), *found = realpath(file, NULL);
    const size_t n = folder ? strlen(folder) : 0;
    const bool inside =
        folder && found && strncmp(found, folder, n) == 0 && found[n] == '/';

    free(joined);
    free(folder);
    free(found);
    if (!inside)
        return CLI_OK;
    return cli_error(cli, CLI_USAGE, "Nothing was changed.", "%s is inside %s", file,
                     node->shown);
}

/* ---- consolidated metadata ---- */

static void warn_consolidated(struct cli *cli, const struct cli_node *node, bool is_sure)
{
    char *path = cli_strdup(node->path);

    while (*path) {
        zarr_group *group = NULL;
        char *slash = strrchr(path, '/');

        *(slash ? slash : path) = '\0';
        if (zarr_group_open(&group, node->store, path, NULL, NULL) == ZARR_OK &&
            zarr_group_is_consolidated(group))
            cli_warn(cli,
                     "consolidated metadata of %s:/%s %s out of date; "
                     "zarrc consolidate updates it",
                     zarr_store_url(node->store), path, is_sure ? "is" : "may be");
        zarr_group_free(group);
    }
    free(path);
}

int cli_update_after(struct cli *cli, struct cli_node *node, bool below, int rc)
{
    const zarr_consolidate_options o = {.struct_size = sizeof o,
                                        .flags = below ? ZARR_CONSOLIDATED_BELOW : 0};
    zarr_error err = {0};
    int done;

    if (rc && !node->began)
        return rc;
    if (cli_flag(cli, "no-consolidate"))
        warn_consolidated(cli, node, rc == CLI_OK);
    else if (zarr_group_consolidated_update(node->store, node->path, NULL, &o, &err) !=
             ZARR_OK)
        cli_warn(cli,
                 "consolidated metadata is out of date: %s; zarrc consolidate writes it "
                 "anew",
                 err.message);
    done = cli_node_flush(cli, node);
    return rc ? rc : done;
}

static int any_object(void *user, const zarr_store_item *item)
{
    (void)item;
    *(bool *)user = true;
    return 1;
}

bool cli_is_empty_folder(const struct cli_node *node)
{
    char *path = cli_path_join(cli_local_root(node), node->path);
    bool any = false;
    struct stat st;
    const bool folder = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
                        zarr_store_list(node->store, node->path, ZARR_LIST_UNLINKED,
                                        any_object, &any, NULL, NULL) == ZARR_OK;

    free(path);
    return folder && !any;
}

int cli_delete_folder(struct cli *cli, struct cli_node *node)
{
    zarr_error err = {0};
    const zarr_status st =
        zarr_store_erase_prefix(node->store, node->path, cli_cancel, &err);

    if (st)
        return cli_fail(cli, st, &err, "cannot delete %s", node->shown);
    if (!*node->path)
        (void)rmdir(cli_local_root(node));
    return cli_update_after(cli, node, true, CLI_OK);
}

bool cli_copy_may_begin(const struct cli *cli, const struct cli_node *dst,
                        bool is_resumed)
{
    return cli_node_is_missing(dst) || cli_flag(cli, "force") || is_resumed;
}
