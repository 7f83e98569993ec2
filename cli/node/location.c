/*
 * node/location.c - opens the node that an operand names. The grammar:
 *
 *     PATH | file://PATH | STORE:/NODE | SCHEME:REST, each optionally with [REGION]
 *
 * SCHEME:/... names the store that a plug-in has registered under SCHEME. If a file or
 * folder of that name exists, it means STORE:/NODE instead. SCHEME://... always names the
 * plug-in's store.
 *
 * If PATH has no ":/", the root of the store is searched: from the deepest folder on the
 * path that is a node, up to the topmost node of the unbroken chain above it. So
 * x.zarr/a/b is node a/b of x.zarr, and an array in a plain folder is the root of its own
 * store. In `x.zarr:/a` the root is explicit. This file only tests which documents exist
 * (is there a zarr.json?); the library reads them.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The parts of a location. */
struct location {
    char *root, *path, *region;
};

static void location_free(struct location *p)
{
    free(p->root);
    free(p->path);
    free(p->region);
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static bool is_node(const char *folder)
{
    static const char *const documents[] = {"zarr.json", ".zgroup", ".zarray",
                                            ".zmetadata"};
    bool found = false;

    for (size_t i = 0; i < sizeof documents / sizeof documents[0] && !found; i++) {
        char *path = cli_path_join(folder, documents[i]);

        found = exists(path);
        free(path);
    }
    return found;
}

/* Whether a file has exactly this name. split: the result of find_split(), whose colon is
 * left out of the name, or NULL. */
static bool names_file(const char *text, const char *split)
{
    char *path = split ? cli_format("%.*s%s", (int)(split - text), text, split + 1)
                       : cli_strdup(text);
    const bool is = exists(path);

    free(path);
    return is;
}

/* Cuts a region, "[...]" with balanced brackets, off the end of text, and returns it
 * without the brackets. NULL if there is none, or if a file has the whole text as its
 * name. */
static char *cut_region(char *text, const char *split)
{
    size_t n = strlen(text), at = n;
    int depth = 0;
    char *region;

    if (n < 2 || text[n - 1] != ']' || names_file(text, split))
        return NULL;
    do {
        at--;
        depth += text[at] == ']' ? 1 : text[at] == '[' ? -1 : 0;
    } while (at > 0 && depth > 0);
    if (depth > 0 || at == 0)
        return NULL;
    region = cli_format("%.*s", (int)(n - at - 2), text + at + 1);
    text[at] = '\0';
    return region;
}

static size_t scheme_bytes(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-");
}

/* Whether the first n bytes name an existing folder and cannot be a scheme, as in
 * "x.zarr://a". */
static bool is_folder_name(const char *text, size_t n)
{
    char *name = cli_format("%.*s", (int)n, text);
    const bool is = scheme_bytes(text) < n && exists(name);

    free(name);
    return is;
}

struct scheme {
    const char *text;
    size_t bytes;
    bool found;
};

static int see_scheme(void *user, const zarr_registry_item *item)
{
    struct scheme *s = user;

    s->found = strcmp(item->origin, "core") != 0 && strlen(item->name) == s->bytes &&
               strncmp(item->name, s->text, s->bytes) == 0;
    return s->found;
}

/* The colon after the scheme, if text begins with the scheme of a plug-in's store; else
 * NULL. */
static char *plugin_colon(struct cli *cli, char *text)
{
    struct scheme s = {text, strcspn(text, ":/"), false};
    char *name;
    bool is_here;

    if (text[s.bytes] != ':' ||
        zarr_context_list(cli->ctx, ZARR_REGISTRY_STORE, see_scheme, &s, NULL) !=
            ZARR_OK ||
        !s.found)
        return NULL;
    name = cli_format("%.*s", (int)s.bytes, text);
    is_here = strncmp(text + s.bytes, "://", 3) != 0 && exists(name);
    free(name);
    return is_here ? NULL : text + s.bytes;
}

/* The last ":/" that separates a store from a node, or NULL. scheme: the colon of a
 * scheme, which does not count. */
static char *find_split(char *text, const char *scheme)
{
    char *found = NULL;

    for (char *at = strstr(text, ":/"); at; at = strstr(at + 1, ":/"))
        if (at > text && at != scheme &&
            (at[2] != '/' || is_folder_name(text, (size_t)(at - text))))
            found = at;
    return found;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The folder that contains path. NULL for "/", ".", ".." and "a/..". Owned. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    if (is_dots(name) || *name == '\0')
        return NULL;
    if (!slash)
        return cli_strdup(".");
    while (slash > path && slash[-1] == '/')
        slash--;
    return slash == path ? cli_strdup("/")
                         : cli_format("%.*s", (int)(slash - path), path);
}

static void strip_slashes(char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
}

/* The part of path after root, which is path itself or a result of parent_of(). Owned. */
static char *rest_of(const char *path, const char *root)
{
    size_t n = strlen(root);

    if (strcmp(root, ".") == 0 && strncmp(path, "./", 2) != 0)
        return cli_strdup(strcmp(path, ".") == 0 ? "" : path);
    path += n;
    return cli_strdup(path + strspn(path, "/"));
}

/* The deepest folder on the path (including path) that is a node; owned, or NULL. */
static char *deepest_node(const char *path)
{
    char *at = cli_strdup(path);

    while (at && !is_node(at)) {
        char *up = parent_of(at);

        free(at);
        at = up;
    }
    return at;
}

static char *topmost_node(char *node)
{
    for (char *up = parent_of(node); up; up = parent_of(node)) {
        if (!is_node(up)) {
            free(up);
            break;
        }
        free(node);
        node = up;
    }
    return node;
}

/* The root of a new hierarchy: the first folder called *.zarr, else the path itself. */
static char *new_root(const char *path)
{
    const char *at = path;

    while ((at = strstr(at, ".zarr"))) {
        at += 5;
        if (*at == '/' || *at == '\0')
            return cli_format("%.*s", (int)(at - path), path);
    }
    return cli_strdup(path);
}

static bool has_scheme(const char *text)
{
    size_t n = scheme_bytes(text);

    return n > 1 && text[n] == ':' && (strncmp(text + n, "://", 3) == 0 || !exists(text));
}

static void parse_location(struct cli *cli, const char *text, struct location *p)
{
    char *copy = cli_strdup(text), *start = copy, *split;
    char *root;
    const char *scheme = plugin_colon(cli, start);

    if (strncmp(start, "file://", 7) == 0)
        start += 7;
    split = find_split(start, scheme);
    p->region = cut_region(start, split);
    strip_slashes(start);
    if (split) {
        *split = '\0';
        p->root = cli_strdup(start);
        p->path = cli_strdup(split + 1 + strspn(split + 1, "/"));
    } else if (scheme || has_scheme(start)) {
        p->root = cli_strdup(start);
        p->path = cli_strdup("");
    } else {
        root = deepest_node(start);
        root = root ? topmost_node(root) : new_root(start);
        p->path = rest_of(start, root);
        p->root = root;
    }
    free(copy);
}

char *cli_local_path(struct cli *cli, const char *text)
{
    struct location p = {0};
    char *path = NULL;

    parse_location(cli, text, &p);
    if (!plugin_colon(cli, p.root) && !has_scheme(p.root))
        path = cli_path_join(p.root, p.path);
    location_free(&p);
    return path;
}

/* ---- the node ---- */

/* Names of the children of a group, for "did you mean". */
struct names {
    const char *list[256];
    size_t n;
};

static int add_name(void *user, const zarr_node_item *item)
{
    struct names *names = user;

    if (names->n < 255)
        names->list[names->n++] = cli_strdup(item->name);
    return names->n < 255 ? 0 : 1;
}

static int no_node(struct cli *cli, const struct cli_node *node)
{
    struct names names = {{NULL}, 0};
    const char *slash = strrchr(node->path, '/');
    char *parent = slash ? cli_format("%.*s", (int)(slash - node->path), node->path)
                         : cli_strdup("");
    zarr_group *group = NULL;
    char *hint = NULL, *other = NULL;

    if (*node->path &&
        zarr_group_open(&group, node->store, parent, NULL, NULL) == ZARR_OK &&
        zarr_group_list(group, add_name, &names, NULL, NULL) == ZARR_OK) {
        const char *near = cli_nearest(slash ? slash + 1 : node->path, names.list);

        if (near)
            hint =
                cli_format("Did you mean \"%s%s%s\"?", parent, *parent ? "/" : "", near);
    }
    if (!hint && (other = cli_local_path(cli, node->shown))) {
        const char *text = cli_foreign_folder(other);

        hint = text ? cli_strdup(text) : NULL;
    }
    cli_error(cli, CLI_NOT_FOUND, hint, "there is no Zarr array or group at %s",
              node->shown);
    for (size_t i = 0; i < names.n; i++)
        free((void *)(uintptr_t)names.list[i]);
    zarr_group_free(group);
    free(parent);
    free(hint);
    free(other);
    return CLI_NOT_FOUND;
}

bool cli_node_is_missing(const struct cli_node *node)
{
    return node->kind == ZARR_NODE_NONE && node->zarr_format == 0;
}

static int check_kind(struct cli *cli, unsigned flags, const struct cli_node *node)
{
    struct cli_job job;

    if (node->region && !(flags & CLI_OPEN_REGION))
        return cli_error(cli, CLI_USAGE, NULL, "%s takes no region: [%s]",
                         cli->command->name, node->region);
    if (cli_node_is_missing(node) && flags & CLI_OPEN_REST &&
        cli_job_read(node->store, node->path, &job)) {
        cli_job_free(&job);
        return CLI_OK;
    }
    if (cli_node_is_missing(node) && !(flags & CLI_OPEN_NEW)) {
        const int rc = cli_job_missing(cli, node);

        if (rc || !cli_rest_of_array(node))
            return rc ? rc : no_node(cli, node);
        return flags & CLI_OPEN_REST ? CLI_OK : cli_rest_error(cli, CLI_NOT_FOUND, node);
    }
    if (!cli_node_is_missing(node) && !(flags & CLI_OPEN_REST))
        cli_job_warn(cli, node);
    if (node->kind == ZARR_NODE_GROUP && (flags & CLI_OPEN_ARRAY))
        return cli_error(cli, CLI_USAGE, "zarrc ls NODE lists its members.",
                         "%s is a group, %s needs an array", node->shown,
                         cli->command->name);
    if (node->kind == ZARR_NODE_ARRAY && (flags & CLI_OPEN_GROUP))
        return cli_error(cli, CLI_USAGE, NULL, "%s is an array, %s needs a group",
                         node->shown, cli->command->name);
    if (node->kind == ZARR_NODE_GROUP && node->region)
        return cli_error(cli, CLI_USAGE, NULL, "%s is a group, only arrays have regions",
                         node->shown);
    return CLI_OK;
}

static int open_store(struct cli *cli, char *root, unsigned flags, struct cli_node *node)
{
    zarr_store_options opts = {.struct_size = sizeof opts,
                               .lock_wait_ms = (uint32_t)cli->lock_wait_s * 1000};
    zarr_error err = {0};
    zarr_status st;

    if (!(flags & (CLI_OPEN_WRITE | CLI_OPEN_NEW)))
        opts.flags |= ZARR_STORE_READ_ONLY;
    if (flags & CLI_OPEN_NEW) {
        opts.flags |= ZARR_STORE_CREATE;
        node->created_root = !exists(root);
    }
    st = zarr_store_open(&node->store, cli->ctx, root, &opts, &err);
    if (st && !plugin_colon(cli, root)) {
        const int rc = cli_refuse_foreign(cli, root, "a Zarr store");

        if (rc)
            return rc;
    }
    return st ? cli_fail(cli, st, &err, "cannot open %s", node->shown) : CLI_OK;
}

int cli_node_open(struct cli *cli, const char *text, unsigned flags,
                  struct cli_node *node)
{
    struct location location = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc;

    *node = (struct cli_node){0};
    parse_location(cli, text, &location);
    node->path = cli_strdup(location.path);
    node->region = location.region ? cli_strdup(location.region) : NULL;
    node->shown = *location.path ? cli_format("%s:/%s", location.root, location.path)
                                 : cli_strdup(location.root);
    rc = open_store(cli, location.root, flags, node);
    if (rc)
        goto out;
    st = zarr_node_probe(node->store, node->path, &node->kind, &node->zarr_format, &err);
    if (st == ZARR_ERR_NOT_FOUND || (node->zarr_format != 0 && flags & CLI_OPEN_PROBE))
        st = ZARR_OK; /* CLI_OPEN_PROBE accepts a broken node */
    if (st)
        rc = cli_fail(cli, st, &err, "cannot read %s", node->shown);
    if (!rc)
        rc = check_kind(cli, flags, node);
    if (!rc && node->kind == ZARR_NODE_ARRAY && !(flags & CLI_OPEN_PROBE)) {
        st = zarr_array_open(&node->array, node->store, node->path, NULL, &err);
        if (st)
            rc = cli_fail(cli, st, &err, "cannot open array %s", node->shown);
    }
out:
    location_free(&location);
    return rc;
}

void cli_node_close(struct cli_node *node)
{
    const char *root =
        node->created_root && node->store ? zarr_store_url(node->store) : NULL;

    if (root)
        rmdir(root); /* fails if it is not empty, as intended */
    zarr_array_free(node->array);
    zarr_store_free(node->store);
    free(node->path);
    free(node->region);
    free(node->shown);
    *node = (struct cli_node){0};
}

int cli_node_flush(struct cli *cli, struct cli_node *node)
{
    zarr_error err = {0};
    zarr_status st = zarr_store_flush(node->store, &err);

    return st ? cli_fail(cli, st, &err, "cannot finish writing %s", node->shown) : CLI_OK;
}

int cli_node_select(struct cli *cli, const struct cli_node *node, const zarr_array *array,
                    zarr_selection **out)
{
    zarr_error err = {0};
    zarr_status st =
        zarr_selection_parse(out, zarr_array_ndim(array), zarr_array_shape(array),
                             node->region ? node->region : "", &err);

    return st ? cli_fail(cli, st, &err, "invalid region [%s] of %s",
                         node->region ? node->region : "", node->shown)
              : CLI_OK;
}
