/*
 * commands/cmd_attrs.c - zarrc attrs: list, get, set, del, merge, rename-dim. Values are
 * JSON. The library changes the metadata document under a lock, so that writers of
 * different attributes do not overwrite each other.
 */
#include "node/work.h"

#include <zarrc/plugin/store.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_TRIES =
        100 /* of a change; of those that conflict, one writer succeeds each time */
};

/* Opens the array (node->array) or the group (node->group). */
static int open_target(struct cli *cli, const char *text, unsigned flags,
                       struct cli_node *node)
{
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = cli_node_open(cli, text, flags, node);

    if (!rc && node->kind == ZARR_NODE_GROUP)
        st = cli_node_group(node, &err);
    return st ? cli_fail(cli, st, &err, "cannot open group %s", node->shown) : rc;
}

static const char *target_attributes(const struct cli_node *node)
{
    return node->group ? zarr_group_attributes(node->group)
                       : zarr_array_attributes(node->array);
}

static zarr_status get_one(const struct cli_node *node, const char *name, char *text,
                           size_t *bytes, zarr_error *err)
{
    size_t cap = text ? *bytes : 0;

    return node->group
               ? zarr_group_attribute_get(node->group, name, text, cap, bytes, err)
               : zarr_array_attribute_get(node->array, name, text, cap, bytes, err);
}

static zarr_status set_one(const struct cli_node *node, const char *name,
                           const char *json, zarr_error *err)
{
    return node->group
               ? zarr_group_attribute_set(node->group, name, json, cli_cancel, err)
               : zarr_array_attribute_set(node->array, name, json, cli_cancel, err);
}

static zarr_status delete_one(const struct cli_node *node, const char *name,
                              zarr_error *err)
{
    return node->group ? zarr_group_attribute_delete(node->group, name, cli_cancel, err)
                       : zarr_array_attribute_delete(node->array, name, cli_cancel, err);
}

static zarr_status merge_all(const struct cli_node *node, const char *json, int replace,
                             zarr_error *err)
{
    return node->group
               ? zarr_group_attributes_merge(node->group, json, replace, cli_cancel, err)
               : zarr_array_attributes_merge(node->array, json, replace, cli_cancel, err);
}

/* ---- the verbs ---- */

static int list_all(struct cli *cli, const struct cli_node *node)
{
    const char *all = target_attributes(node), *at, *value;
    size_t n = 0;
    char *key = NULL, *line;

    if (cli->json) {
        struct cli_json *j = cli_json_node(cli, node->shown);

        cli_json_raw(cli_key(j, "attributes"), all);
        cli_json_end(j);
        return CLI_OK;
    }
    at = cli_json_members(all);
    while ((value = cli_json_next(&at, &key, &n)) && !cli->out_failed) {
        line = cli_json_line(value, n);
        cli_line(cli, "%s: %s\n", key, line);
        free(line);
        free(key);
        key = NULL;
    }
    free(key);
    return CLI_OK;
}

static int no_attribute(struct cli *cli, const struct cli_node *node, const char *name)
{
    const char *names[129] = {NULL};
    char *owned[128] = {NULL}, *hint = NULL;
    const char *near, *at = cli_json_members(target_attributes(node));
    size_t n = 0, bytes;

    while (n < 128 && cli_json_next(&at, &owned[n], &bytes)) {
        names[n] = owned[n];
        n++;
    }
    near = cli_nearest(name, names);
    if (near)
        hint = cli_format("Did you mean \"%s\"?", near);
    cli_error(cli, CLI_NOT_FOUND, hint, "%s has no attribute \"%s\"", node->shown, name);
    for (size_t i = 0; i < n; i++)
        free(owned[i]);
    free(hint);
    return CLI_NOT_FOUND;
}

/* With --text other programs get the text itself, and a terminal no control characters.
 */
static void print_value(struct cli *cli, const char *json)
{
    struct cli_string plain = {0}, clean = {0};
    const struct cli_string *shown = &plain;

    if (!cli_flag(cli, "text") || !cli_json_unquote_to(json, strlen(json), &plain)) {
        cli_printf(cli, "%s\n", json);
        return;
    }
    if (isatty(STDOUT_FILENO)) {
        cli_add_clean(&clean, plain.text, plain.n_bytes);
        shown = &clean;
    }
    cli_out(cli, shown->text ? shown->text : "", shown->n_bytes);
    cli_out(cli, "\n", 1);
    cli_string_free(&plain);
    cli_string_free(&clean);
}

static int get(struct cli *cli, const struct cli_node *node)
{
    const char *name = cli->args[2];
    zarr_error err = {0};
    size_t n = 0;
    zarr_status st = get_one(node, name, NULL, &n, &err);
    char *text;

    if (st == ZARR_ERR_NOT_FOUND)
        return no_attribute(cli, node, name);
    if (st)
        return cli_fail(cli, st, &err, "cannot read attribute \"%s\" of %s", name,
                        node->shown);
    text = cli_alloc(++n);
    st = get_one(node, name, text, &n, &err);
    if (!st && cli->json) {
        struct cli_json *j = cli_json_node(cli, node->shown);

        cli_json_text(cli_key(j, "name"), name);
        cli_json_raw(cli_key(j, "value"), text);
        cli_json_end(j);
    } else if (!st) {
        print_value(cli, text);
    }
    free(text);
    return st ? cli_fail(cli, st, &err, "cannot read attribute \"%s\"", name) : CLI_OK;
}

static int set(struct cli *cli, const struct cli_node *node)
{
    const char *name = cli->args[2];
    char *json =
        cli_flag(cli, "text") ? cli_json_quote(cli->args[3]) : cli_strdup(cli->args[3]);
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    if (cli_flag(cli, "text") && !cli_is_utf8(cli->args[3]))
        rc = cli_error(cli, CLI_USAGE, "JSON has text in UTF-8 only.",
                       "attribute \"%s\": \"%s\" is not UTF-8", name, cli->args[3]);
    else
        st = set_one(node, name, json, &err);
    if (st == ZARR_ERR_INVALID)
        rc = cli_error(
            cli, CLI_USAGE, "For text use --text, or quotes inside quotes: '\"abc\"'.",
            "attribute \"%s\": \"%s\" is not JSON (%s)", name, cli->args[3], err.message);
    else if (st)
        rc = cli_fail(cli, st, &err, "cannot set attribute \"%s\" of %s", name,
                      node->shown);
    free(json);
    return rc;
}

static int delete_all(struct cli *cli, const struct cli_node *node)
{
    for (int i = 2; i < cli->n_args; i++) {
        zarr_error err = {0};
        zarr_status st = delete_one(node, cli->args[i], &err);

        if (st == ZARR_ERR_NOT_FOUND)
            return no_attribute(cli, node, cli->args[i]);
        if (st)
            return cli_fail(cli, st, &err, "cannot delete attribute \"%s\" of %s",
                            cli->args[i], node->shown);
    }
    return CLI_OK;
}

static int merge(struct cli *cli, const struct cli_node *node)
{
    const char *word = cli->args[2];
    struct cli_string json = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    if (*word == '@' || strcmp(word, "-") == 0)
        rc = cli_read_text(cli, *word == '@' ? word + 1 : word, &json);
    else
        cli_string_printf(&json, "%s", word);
    if (!rc)
        st = merge_all(node, json.text, cli_flag(cli, "replace"), &err);
    if (st)
        rc = cli_fail(cli, st, &err, "cannot merge attributes of %s", node->shown);
    cli_string_free(&json);
    return rc;
}

/* ---- dimensions ---- */

/* Finds a dimension by its name. EXISTS: another one has the new name. */
static zarr_status find_dimension(const zarr_array *array, const char *const names[2],
                                  int32_t *dim, zarr_error *err)
{
    bool is_taken = false;

    *dim = -1;
    for (int32_t d = 0; d < zarr_array_ndim(array); d++) {
        const char *name = zarr_array_dimension_name(array, d);

        if (name && *dim < 0 && strcmp(name, names[0]) == 0)
            *dim = d;
        is_taken = is_taken || (name && strcmp(name, names[1]) == 0);
    }
    return *dim < 0   ? cli_set_error(err, ZARR_ERR_NOT_FOUND,
                                      "there is no dimension \"%s\"", names[0])
           : is_taken ? cli_set_error(err, ZARR_ERR_EXISTS,
                                      "there is a dimension \"%s\" already", names[1])
                      : ZARR_OK;
}

/* Changes the text of a document: only the bytes of the name. v2: that of .zattrs. */
static zarr_status edit_names(const zarr_array *array, const char *text,
                              const char *const names[2], struct cli_string *out,
                              zarr_error *err)
{
    const bool is_v3 = zarr_array_zarr_format(array) == 3;
    zarr_array *now = NULL; /* as this text has it, which must be valid */
    const char *list, *item = NULL;
    size_t bytes = 0;
    int32_t dim = 0;
    zarr_status st = zarr_array_open_document(
        &now, zarr_store_context(zarr_array_store(array)),
        is_v3 ? text : zarr_array_metadata(array), is_v3 ? NULL : text,
        zarr_array_path(array), NULL, NULL, err);

    if (!st)
        st = find_dimension(now, names, &dim, err);
    zarr_array_free(now);
    if (st)
        return st;
    list = cli_json_member(text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0),
                           is_v3 ? "dimension_names" : "_ARRAY_DIMENSIONS", &bytes);
    if (list)
        item = cli_json_item(list, (size_t)dim, &bytes);
    if (!item)
        return cli_set_error(err, ZARR_ERR_UNSUPPORTED,
                             "the document spells the names of dimensions with escapes");
    cli_string_add(out, text, (size_t)(item - text));
    cli_string_add_quoted(out, names[1]);
    cli_string_add(out, item + bytes, strlen(item + bytes));
    return ZARR_OK;
}

/* Reads, changes and writes the document under its lock, as the library changes
 * attributes. CONFLICT: a writer that needs no lock was faster. */
static zarr_status rename_once(const zarr_array *array, const char *key,
                               const char *const names[2], zarr_error *err)
{
    zarr_store *store = zarr_array_store(array);
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_LOCKED | ZARR_STORE_OP_DOCUMENT,
                        .key = key,
                        .cancel = cli_cancel};
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    struct cli_string edited = {0};
    zarr_store_value seen;
    char *text = NULL;
    zarr_status st = zarr_store_lock(&op.lock, store, key, cli_cancel, err);

    if (st)
        return st;
    text = cli_value_read(store, key, &seen, err);
    st = text ? edit_names(array, text, names, &edited, err) : err->code;
    if (!st) {
        zarr_store_capabilities(store, &caps);
        if (caps.flags & ZARR_STORE_CAP_PUT_IF_VERSION) {
            op.flags |= ZARR_STORE_OP_IF_VERSION;
            op.version = seen.version;
        }
        op.mem = (zarr_memory){.device_type = ZARR_DEVICE_CPU,
                               .handle = edited.text,
                               .bytes = edited.n_bytes};
        op.length = edited.n_bytes;
        st = zarr_store_run(store, &op, err);
    }
    zarr_store_unlock(store, op.lock);
    cli_string_free(&edited);
    free(text);
    return st;
}

/* Renames the dimension of an array that has it. try: only says whether it would fail. */
static int rename_one(struct cli *cli, const struct cli_node *top, const char *path,
                      bool try, uint64_t *n_renamed)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = cli_cancel};
    char *full = cli_path_join(top->path, path), *shown = cli_shown_below(top, path);
    const char *const *names = cli->args + 2;
    char *key = NULL;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_array_open(&array, top->store, full, &opts, &err);
    int32_t dim = -1;
    int rc = CLI_OK;

    if (!st)
        st = find_dimension(array, names, &dim, &err);
    if (!st && !try) {
        key = cli_path_join(full,
                            zarr_array_zarr_format(array) == 3 ? "zarr.json" : ".zattrs");
        st = ZARR_ERR_CONFLICT;
        for (int i = 0; i < MAX_TRIES && st == ZARR_ERR_CONFLICT; i++)
            st = rename_once(array, key, names, &err);
    }
    if (st && (!array || dim >= 0))
        rc = cli_fail(cli, st, &err, "cannot rename a dimension of %s", shown);
    *n_renamed += dim >= 0;
    zarr_array_free(array);
    free(shown);
    free(full);
    free(key);
    return rc;
}

/* After a failure, too: some arrays may have the new name. */
static void update_group(struct cli *cli, const struct cli_node *top, const char *path)
{
    char *full = cli_path_join(top->path, path), *shown = cli_shown_below(top, path);
    zarr_group *group = NULL;
    zarr_error err = {.message = "--no-consolidate"};
    zarr_status st = zarr_group_open(&group, top->store, full, NULL, &err);
    const bool has = !st && zarr_group_is_consolidated(group);

    if (has && !cli_flag(cli, "no-consolidate"))
        st = zarr_group_consolidate(group, NULL, &err);
    if (st || (has && cli_flag(cli, "no-consolidate")))
        cli_warn(cli,
                 "consolidated metadata of %s may be out of date: %s; zarrc consolidate "
                 "updates it",
                 shown, err.message);
    zarr_group_free(group);
    free(shown);
    free(full);
}

static int rename_dimension(struct cli *cli, const struct cli_node *node)
{
    struct cli_tree tree = {0};
    uint64_t n = 0;
    int rc = CLI_OK;

    if (node->kind == ZARR_NODE_GROUP && !cli_flag(cli, "recursive"))
        return cli_error(cli, CLI_USAGE, "--recursive renames it in all arrays below.",
                         "%s is a group", node->shown);
    if (!*cli->args[3] || !cli_is_utf8(cli->args[3]))
        return cli_error(cli, CLI_USAGE, NULL, "the new name of a dimension %s",
                         *cli->args[3] ? "is not UTF-8" : "is empty");
    rc = cli_tree_list(cli, node, &tree);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < tree.n_items && !rc; i++)
            if (tree.items[i].kind == ZARR_NODE_ARRAY)
                rc = rename_one(cli, node, tree.items[i].path, pass == 0, &n);
    for (size_t i = 0; i < tree.n_items; i++)
        if (tree.items[i].kind == ZARR_NODE_GROUP)
            update_group(cli, node, tree.items[i].path);
    cli_tree_free(&tree);
    return rc || n ? rc
                   : cli_error(cli, CLI_NOT_FOUND,
                               "zarrc info shows the names of dimensions.",
                               "%s has no dimension \"%s\"", node->shown, cli->args[2]);
}

/* ---- the command ---- */

struct verb {
    const char *name;
    int min_args, max_args; /* including the verb and the node */
    int (*run)(struct cli *cli, const struct cli_node *node);
    bool writes;
};

static const struct verb verbs[] = {
    {"list", 2, 2, list_all, false}, {"get", 3, 3, get, false},
    {"set", 4, 4, set, true},        {"del", 3, -1, delete_all, true},
    {"merge", 3, 3, merge, true},    {"rename-dim", 4, 4, rename_dimension, true}};

static const struct verb *find_verb(struct cli *cli)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, cli->args[0]) == 0)
            return &verbs[i];
    return NULL;
}

static int run_verb(struct cli *cli, const struct verb *v, const char *place)
{
    struct cli_node node = {0};
    int rc = open_target(cli, place, v->writes ? CLI_OPEN_WRITE : 0, &node);

    node.began = !rc && v->writes;
    if (!rc)
        rc = v->run(cli, &node);
    if (node.began)
        rc = cli_update_after(cli, &node, v->run == rename_dimension, rc);
    if (!rc && v->writes) {
        cli_node_close(&node);
        if (!rc && cli->json) { /* reads the new attributes from the store */
            rc = open_target(cli, place, 0, &node);
            rc = rc ? rc : list_all(cli, &node);
        }
    }
    cli_node_close(&node);
    return rc;
}

static int run_attrs(struct cli *cli)
{
    static const char *const names[] = {"list",  "get",        "set", "del",
                                        "merge", "rename-dim", NULL};
    const struct verb *v = find_verb(cli);
    const char *near;

    if (!v && cli->n_args == 1)
        return run_verb(cli, &verbs[0], cli->args[0]);
    if (!v) {
        near = cli_nearest(cli->args[0], names);
        return cli_error(
            cli, CLI_USAGE, "Try: zarrc attrs --help",
            "\"%s\" is not one of list, get, set, del, merge, rename-dim%s%s",
            cli->args[0], near ? "; did you mean " : "", near ? near : "");
    }
    if (cli->n_args < v->min_args || (v->max_args >= 0 && cli->n_args > v->max_args))
        return cli_error(cli, CLI_USAGE, "Try: zarrc attrs --help",
                         "attrs %s: wrong number of operands", v->name);
    return run_verb(cli, v, cli->args[1]);
}

static const struct cli_option attrs_options[] = {
    {"text", 't', 0, NULL, NULL,
     "set: VALUE is text, not JSON; get: print text without quotes"},
    {"replace", 0, 0, NULL, NULL, "merge: delete all other attributes"},
    {"recursive", 'r', 0, NULL, NULL, "rename-dim: in a group and everything below it"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example attrs_examples[] = {
    {"zarrc attrs x.zarr/temp", "All attributes, one a line, values as JSON."},
    {"zarrc attrs get --text x.zarr/temp units", "One attribute, as plain text."},
    {"zarrc attrs set x.zarr/temp valid_range '[0, 1]'",
     "Set an attribute to a JSON value."},
    {"zarrc attrs set --text x.zarr/temp units kelvin", "Set an attribute to a text."},
    {"zarrc attrs del x.zarr/temp history", "Delete an attribute."},
    {"zarrc attrs merge x.zarr/temp @attributes.json",
     "Set several attributes from a file."},
    {"zarrc attrs rename-dim --recursive x.zarr lat latitude",
     "Rename a dimension of all arrays."},
    {NULL, NULL}};

const struct cli_command cli_cmd_attrs = {
    .name = "attrs",
    .summary = "show or change the attributes of an array or group",
    .operands = "[list|get|set|del|merge|rename-dim] NODE [ARG...]",
    .min_args = 1,
    .max_args = -1,
    .about =
        "list NODE prints all attributes, get NODE NAME prints one as JSON. set NODE "
        "NAME VALUE sets an attribute to a JSON value; NaN, Infinity and -Infinity, "
        "which JSON lacks, become strings. del NODE NAME... deletes attributes. merge "
        "NODE OBJECT sets every member of a JSON object; OBJECT is JSON text, @FILE, or "
        "- for standard input. rename-dim NODE OLD NEW renames a dimension; zarrc-mv(1) "
        "renames its coordinate.\n\n"
        "Changes are made under a lock: writers of different attributes do not overwrite "
        "each other.",
    .json = "list, set, del, merge, rename-dim: node; attributes (the new object). get: "
            "node, name, value.",
    .options = attrs_options,
    .examples = attrs_examples,
    .see_also = "zarrc-info zarrc-consolidate",
    .run = run_attrs,
};
