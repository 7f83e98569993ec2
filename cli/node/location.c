/*
 * node/location.c - opens the node that an operand names. zarr_location_parse() has the
 * grammar of operands. A shell expands an asterisk below x.zarr to nodes and to files of
 * the group, such as zarr.json: commands on several nodes skip these files.
 */
#include "cf/cf.h"
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* ---- stores with the options of the command line ---- */

/* Values of --store-option may be secrets: no message quotes one, and files with values
 * keep them out of lists of processes. The texts are wiped when the store is open. */

enum {
    FILE_MOST_BYTES = 1 << 20 /* of a value */
};

/* One value of --store-option, [URL-PREFIX=]name=value. */
struct store_option {
    const char *prefix, *name, *value;
    size_t prefix_bytes, name_bytes;
};

static size_t name_bytes(const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return text[n] == '=' ? n : 0;
}

/* A text before the name that cannot be a name is the prefix. */
static bool split_option(struct store_option *o, const char *text)
{
    const size_t n = name_bytes(text) > 0 ? 0 : strcspn(text, "=");

    *o = (struct store_option){.prefix = text, .prefix_bytes = n};
    o->name = n > 0 && text[n] == '=' ? text + n + 1 : text;
    o->name_bytes = name_bytes(o->name);
    o->value = o->name + o->name_bytes + 1;
    return o->name_bytes > 0;
}

/* "https://h/a" is for "https://h/a" and what is below it, but not for "https://h/ab": a
 * secret must not go to another host. */
static bool is_for(const struct store_option *o, const char *url)
{
    const size_t n = o->prefix_bytes;
    const char last = n > 0 ? o->prefix[n - 1] : '/';

    return strncmp(url, o->prefix, n) == 0 &&
           (last == '/' || last == ':' || url[n] == '\0' || url[n] == '/' ||
            url[n] == '?');
}

static zarr_status fail_option(zarr_error *err, const struct store_option *o,
                               const char *what)
{
    return cli_set_error(err, ZARR_ERR_INVALID, "--store-option%s%.*s: %s",
                         o->name_bytes > 0 ? " " : "",
                         (int)(o->name_bytes < 64 ? o->name_bytes : 64), o->name, what);
}

/* Returns the text of a file without its last newline, or NULL. *n: with its NUL. */
static char *read_value(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text;

    if (!f)
        return NULL;
    setvbuf(f, NULL, _IONBF, 0); /* no copy in a buffer that is not wiped */
    text = cli_alloc(FILE_MOST_BYTES + 1);
    *n = fread(text, 1, FILE_MOST_BYTES, f);
    if (ferror(f) || *n == FILE_MOST_BYTES || memchr(text, '\0', *n)) {
        cli_wipe(text, *n);
        free(text);
        text = NULL;
    } else {
        *n -= *n > 0 && text[*n - 1] == '\n';
        text[*n] = '\0';
    }
    fclose(f);
    return text;
}

static zarr_status put_option(struct cli_string *config, const struct store_option *o,
                              zarr_error *err)
{
    size_t n = 0;
    char *file = *o->value == '@' ? read_value(o->value + 1, &n) : NULL;
    const char *value = *o->value == '@' ? file : o->value;

    if (!value)
        return fail_option(err, o,
                           "the file of the value cannot be read, or has a NUL "
                           "byte or more than 1 MiB");
    cli_string_printf(config, "%s\"%.*s\":", config->n_bytes > 1 ? "," : "",
                      (int)o->name_bytes, o->name);
    if (*value == '{' || *value == '[')
        cli_string_add(config, value, strlen(value));
    else
        cli_string_add_quoted(config, value);
    if (file)
        cli_wipe(file, n);
    free(file);
    return ZARR_OK;
}

/* Whether the store of a URL takes the option "untrusted". */
static bool is_web(const char *url)
{
    if (strncmp(url, "zip:", 4) == 0)
        url += 4;
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0 ||
           strncasecmp(url, "s3://", 5) == 0;
}

/* Makes the JSON object of all options for a URL; of one name the last counts. Text is
 * NULL if there are none. */
static zarr_status make_config(struct cli *cli, const char *url,
                               struct cli_string *config, zarr_error *err)
{
    const int n = cli_count(cli, "store-option");
    zarr_status st = ZARR_OK;
    struct store_option o, later;
    bool is_told = false;

    for (int i = 0; i < n && st == ZARR_OK; i++) {
        bool is_last = true;

        if (!split_option(&o, cli_text_at(cli, "store-option", i)))
            return fail_option(err, &o, "write name=value, or URL-PREFIX=name=value");
        for (int k = i + 1; k < n; k++)
            if (split_option(&later, cli_text_at(cli, "store-option", k)) &&
                is_for(&later, url) && later.name_bytes == o.name_bytes &&
                memcmp(later.name, o.name, o.name_bytes) == 0)
                is_last = false;
        if (!is_last || !is_for(&o, url))
            continue;
        if (config->n_bytes == 0)
            cli_string_add(config, "{", 1);
        is_told = is_told || (o.name_bytes == strlen("untrusted") &&
                              memcmp(o.name, "untrusted", o.name_bytes) == 0);
        st = put_option(config, &o, err);
    }
    if (cli->untrusted && !is_told && is_web(url))
        cli_string_printf(config, "%s\"untrusted\":true", config->n_bytes ? "," : "{");
    if (config->n_bytes > 0)
        cli_string_add(config, "}", 1);
    return st;
}

zarr_status cli_store_open(struct cli *cli, zarr_store **out, const char *url,
                           uint32_t flags, zarr_error *err)
{
    zarr_store_options opts = {.struct_size = sizeof opts,
                               .flags = flags,
                               .locks = cli->locks,
                               .symlinks = cli->symlinks,
                               .lock_wait_ms = (uint32_t)cli->lock_wait_s * 1000};
    struct cli_string config = {.is_secret = true};
    zarr_status st = make_config(cli, url, &config, err);

    opts.config = config.text;
    if (st == ZARR_OK)
        st = zarr_store_open(out, cli->ctx, url, &opts, err);
    cli_string_free(&config);
    return st;
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

/* Consolidated metadata may name a node that another program deleted. */
static char *stale_hint(const struct cli_node *node, const char *parent)
{
    char *group = cli_shown_at(node, parent);
    char *word = cli_shell_word(group);
    char *hint = cli_format("Consolidated metadata still names it. zarrc consolidate %s "
                            "writes it anew.",
                            word);

    free(word);
    free(group);
    return hint;
}

static int no_node(struct cli *cli, const struct cli_node *node)
{
    struct names names = {{NULL}, 0};
    const char *slash = strrchr(node->path, '/');
    const char *asked = slash ? slash + 1 : node->path;
    char *parent = slash ? cli_format("%.*s", (int)(slash - node->path), node->path)
                         : cli_strdup("");
    zarr_group *group = NULL;
    const char *other;
    char *hint = NULL;

    if (*node->path &&
        zarr_group_open(&group, node->store, parent, NULL, NULL) == ZARR_OK &&
        zarr_group_list(group, add_name, &names, NULL, NULL) == ZARR_OK) {
        const char *near = cli_nearest(asked, names.list);

        if (near && strcmp(near, asked) == 0)
            hint = stale_hint(node, parent);
        else if (near)
            hint =
                cli_format("Did you mean \"%s%s%s\"?", parent, *parent ? "/" : "", near);
    }
    if (!hint && (other = zarr_node_other_format(node->store, node->path)))
        hint = cli_format("This may be %s.", other);
    cli_error(cli, CLI_NOT_FOUND, hint, "there is no Zarr array or group at %s",
              node->shown);
    for (size_t i = 0; i < names.n; i++)
        free((void *)(uintptr_t)names.list[i]);
    zarr_group_free(group);
    free(parent);
    free(hint);
    return CLI_NOT_FOUND;
}

bool cli_node_is_missing(const struct cli_node *node)
{
    return node->kind == ZARR_NODE_NONE && node->zarr_format == 0;
}

int cli_node_fail_missing(struct cli *cli, unsigned flags, const struct cli_node *node)
{
    struct cli_job job;
    int rc;

    if (flags & CLI_OPEN_REST && cli_job_read(node->store, node->path, &job)) {
        cli_job_free(&job);
        return CLI_OK;
    }
    rc = cli_job_check_missing(cli, node);
    if (rc || !cli_rest_of_array(node))
        return rc ? rc : no_node(cli, node);
    return flags & CLI_OPEN_REST ? CLI_OK : cli_rest_error(cli, CLI_NOT_FOUND, node);
}

/* If not, a GET takes long, so a command skips those that it can do without. */
static bool is_fast(const struct cli_node *node)
{
    zarr_store_caps caps = {.struct_size = sizeof caps};

    zarr_store_capabilities(node->store, &caps);
    return caps.flags & ZARR_STORE_CAP_FAST_GET;
}

static int check_kind(struct cli *cli, unsigned flags, const struct cli_node *node)
{
    if (node->region && !(flags & CLI_OPEN_REGION))
        return cli_error(cli, CLI_USAGE, NULL, "%s takes no region: [%s]",
                         cli->command->name, node->region);
    if (cli_node_is_missing(node) && !(flags & (CLI_OPEN_NEW | CLI_OPEN_MISSING)))
        return cli_node_fail_missing(cli, flags, node);
    if (!cli_node_is_missing(node) && !(flags & CLI_OPEN_REST) &&
        (!node->region || is_fast(node)))
        cli_job_warn(cli, node);
    if (node->kind == ZARR_NODE_GROUP && (flags & CLI_OPEN_ARRAY))
        return cli_error(cli, CLI_USAGE, "zarrc ls NODE lists its members.",
                         "%s is a group, %s needs an array", node->shown,
                         cli->command->name);
    if (node->kind == ZARR_NODE_ARRAY && (flags & CLI_OPEN_GROUP))
        return cli_error(cli, CLI_USAGE, NULL, "%s is an array, %s needs a group",
                         node->shown, cli->command->name);
    if (node->kind == ZARR_NODE_GROUP && node->region && !(flags & CLI_OPEN_CROP))
        return cli_error(cli, CLI_USAGE, NULL, "%s is a group, only arrays have regions",
                         node->shown);
    return CLI_OK;
}

static int open_store(struct cli *cli, const zarr_location *at, unsigned flags,
                      struct cli_node *node)
{
    uint32_t how = 0;
    zarr_error err = {0};
    zarr_status st;

    if (!(flags & (CLI_OPEN_WRITE | CLI_OPEN_NEW)))
        how |= ZARR_STORE_READ_ONLY;
    if (flags & CLI_OPEN_NEW) {
        how |= ZARR_STORE_CREATE;
        node->created_root = at->is_local && !exists(at->url);
    }
    st = cli_store_open(cli, &node->store, at->url, how, &err);
    return st ? cli_fail(cli, st, &err, "cannot open %s", node->shown) : CLI_OK;
}

/* The node whose file or folder of chunks this path in its store is, by its name in
 * messages; NULL: it is not part of a node. The path has no node. Owned. */
static char *node_above(const struct cli_node *node)
{
    char *file = cli_path_join(cli_local_root(node), node->path);
    char *path = cli_strdup(node->path), *shown = NULL;
    uint32_t kind = ZARR_NODE_NONE;
    struct stat st;
    const bool exists = stat(file, &st) == 0;
    const bool is_file = exists && S_ISREG(st.st_mode);

    while (exists && *path && kind == ZARR_NODE_NONE) {
        char *slash = strrchr(path, '/');

        *(slash ? slash : path) = '\0';
        kind = cli_kind_at(node->store, path, NULL);
    }
    if (kind == ZARR_NODE_ARRAY || (kind == ZARR_NODE_GROUP && is_file))
        shown = cli_shown_at(node, path);
    free(path);
    free(file);
    return shown;
}

/* The error for an operand such as x.zarr/zarr.json; CLI_OK if it is no part of a node.
 */
static int refuse_part(struct cli *cli, unsigned flags, const struct cli_node *node)
{
    const unsigned missing = CLI_OPEN_NEW | CLI_OPEN_MISSING | CLI_OPEN_REST;
    char *above =
        cli_node_is_missing(node) && !(flags & missing) ? node_above(node) : NULL;
    char *word = above ? cli_shell_word(above) : NULL;
    char *hint = above ? cli_format("zarrc info %s shows it.", word) : NULL;
    const int rc =
        above ? cli_error(cli, CLI_NOT_FOUND, hint,
                          "%s is part of %s, not an array or a group", node->shown, above)
              : CLI_OK;

    free(hint);
    free(word);
    free(above);
    return rc;
}

/* Opens what is at the place, so that its documents are read once. */
static zarr_status open_at_once(struct cli_node *node, unsigned flags, zarr_error *err)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    const zarr_status st =
        flags & CLI_OPEN_ARRAY
            ? zarr_array_open(&node->array, node->store, node->path, &opts, err)
            : zarr_node_open(&node->array, &node->group, node->store, node->path, &opts,
                             NULL, err);

    if (st != ZARR_OK)
        return st;
    node->kind = node->array ? ZARR_NODE_ARRAY : ZARR_NODE_GROUP;
    node->zarr_format = node->array ? zarr_array_zarr_format(node->array)
                                    : zarr_group_zarr_format(node->group);
    return st;
}

/* To say what is wrong with a node that cannot be opened, the kind comes first. */
static zarr_status find_node(struct cli_node *node, unsigned flags, zarr_error *err)
{
    zarr_status st =
        flags & CLI_OPEN_PROBE ? ZARR_ERR_INVALID : open_at_once(node, flags, err);

    if (st == ZARR_ERR_CANCELLED)
        return st;
    if (st == ZARR_OK || (st == ZARR_ERR_NOT_FOUND && !(flags & CLI_OPEN_ARRAY)))
        return ZARR_OK;
    st = zarr_node_probe(node->store, node->path, &node->kind, &node->zarr_format,
                         cli_cancel, err);
    if (st == ZARR_ERR_NOT_FOUND || (node->zarr_format != 0 && flags & CLI_OPEN_PROBE))
        st = ZARR_OK; /* CLI_OPEN_PROBE accepts a broken node */
    return st;
}

int cli_node_open(struct cli *cli, const char *text, unsigned flags,
                  struct cli_node *node)
{
    zarr_location *at = NULL;
    zarr_error err = {0};
    zarr_status st;
    int rc;

    *node = (struct cli_node){0};
    if (strcmp(text, "-") == 0)
        return cli_error(cli, CLI_USAGE, "./- is the folder with this name.",
                         "- is a stream, not the location of a node");
    st = zarr_location_parse(&at, cli->ctx, text, &err);
    if (st)
        return cli_fail(cli, st, &err, "\"%s\" names no node", text);
    node->path = cli_strdup(at->path);
    node->region = at->selection ? cli_strdup(at->selection) : NULL;
    node->shown =
        *at->path ? cli_format("%s:/%s", at->shown, at->path) : cli_strdup(at->shown);
    rc = open_store(cli, at, flags, node);
    if (rc)
        goto out;
    st = find_node(node, flags, &err);
    rc = refuse_part(cli, flags, node);
    if (!rc && st)
        rc = cli_fail(cli, st, &err, "cannot read %s", node->shown);
    if (!rc)
        rc = check_kind(cli, flags, node);
    if (!rc && node->kind == ZARR_NODE_ARRAY && !node->array &&
        !(flags & CLI_OPEN_PROBE)) {
        st = open_at_once(node, CLI_OPEN_ARRAY, &err);
        if (st)
            rc = cli_fail(cli, st, &err, "cannot open array %s", node->shown);
    }
    if (!rc && node->array)
        rc = cli_node_resolve(cli, node);
out:
    zarr_location_free(at);
    return rc;
}

zarr_status cli_node_group(struct cli_node *node, zarr_error *err)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};

    return node->group
               ? ZARR_OK
               : zarr_group_open(&node->group, node->store, node->path, &opts, err);
}

void cli_node_close(struct cli_node *node)
{
    const char *root =
        node->created_root && node->store ? zarr_store_url(node->store) : NULL;

    if (root)
        rmdir(root); /* fails if it is not empty, as intended */
    zarr_array_free(node->array);
    zarr_group_free(node->group);
    zarr_store_free(node->store);
    free(node->path);
    free(node->region);
    free(node->asked);
    free(node->shown);
    *node = (struct cli_node){0};
}

int cli_node_flush(struct cli *cli, struct cli_node *node)
{
    const zarr_cancel *cancel = cli_is_cancelled() ? NULL : cli_cancel;
    zarr_error err = {0};
    zarr_status st = zarr_store_flush(node->store, cancel, &err);

    return st ? cli_fail(cli, st, &err, "cannot finish writing %s", node->shown) : CLI_OK;
}

int cli_node_resolve(struct cli *cli, struct cli_node *node)
{
    char *asked = node->region ? cli_strdup(node->region) : NULL;
    const int rc = cf_region_resolve(cli, node->store, node->array, node->shown,
                                     &node->region, NULL);

    if (!asked || strcmp(asked, node->region) == 0)
        free(asked);
    else
        node->asked = asked;
    return rc;
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

/* ---- several nodes ---- */

/* Whether the operand is a part of a node. Whatever else is wrong with it, fn reports. */
static bool skip(struct cli *cli, const char *text)
{
    struct cli_node node = {0};
    zarr_location *at = NULL;
    char *above = NULL;
    zarr_error err = {0};
    int32_t format = 0;

    if (zarr_location_parse(&at, cli->ctx, text, NULL) == ZARR_OK && at->is_local &&
        *at->path && !at->selection &&
        cli_store_open(cli, &node.store, at->url, ZARR_STORE_READ_ONLY, &err) ==
            ZARR_OK) {
        node.path = cli_strdup(at->path);
        if (!cli_kind_at(node.store, node.path, &format) && format <= 0)
            above = node_above(&node);
    }
    if (above)
        cli_say(cli, "%s is part of %s, not a node: skipped", text, above);
    zarr_location_free(at);
    cli_node_close(&node);
    free(above);
    return above != NULL;
}

int cli_each_node(struct cli *cli, bool blank_lines,
                  int (*fn)(struct cli *cli, const char *operand))
{
    const bool list = cli->n_args > 1;
    int rc = CLI_OK, n = 0;

    if (list && cli->json)
        cli_json_array(cli_json(cli));
    for (int i = 0; i < cli->n_args && !cli_is_cancelled() && !cli->out_failed; i++) {
        int one = CLI_OK;

        if (list && skip(cli, cli->args[i]))
            continue;
        if (blank_lines && n > 0 && !cli->json)
            cli_printf(cli, "\n");
        n++;
        one = fn(cli, cli->args[i]);
        rc = rc ? rc : one;
        if (list && cli->json) /* a command that failed may have left some open */
            cli_json_end_to(cli_json(cli), 1);
    }
    if (list && cli->json)
        cli_json_end(cli_json(cli));
    if (n == 0 && !cli_is_cancelled() && !cli->out_failed)
        rc = cli_error(cli, CLI_NOT_FOUND, NULL, "no operand is an array or a group");
    return rc ? rc : cli_is_cancelled() ? CLI_INTERRUPTED : CLI_OK;
}
