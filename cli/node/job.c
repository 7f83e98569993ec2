/*
 * node/job.c - the object .zarrc-job, which commands put at a place where they are at
 * work and delete at the end. If a command was interrupted, the next one finds it, tells
 * what happened, and names the commands that continue or remove it.
 */
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define JOB_NAME ".zarrc-job"

enum {
    MOST_BYTES = 1 << 16 /* the job of a reencode has whole documents at its end */
};

static char *member_text(const char *object, const char *name)
{
    size_t bytes = 0;
    const char *value = cli_json_member(object, name, &bytes);

    return value ? cli_json_unquote(value, bytes) : NULL;
}

/* Messages name the commands of zarrc only, not any text that a store has. */
static bool is_known(const char *command)
{
    static const char *const known[] = {"cp",     "mv",      "rm",      "create",
                                        "import", "migrate", "reencode"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(command, known[i]) == 0)
            return true;
    return false;
}

bool cli_job_read(zarr_store *store, const char *path, struct cli_job *out)
{
    char *key = cli_path_join(path, JOB_NAME), *text = cli_alloc(MOST_BYTES + 1);
    uint64_t n = MOST_BYTES;
    const bool is = zarr_store_get(store, key, 0, text, &n, NULL, NULL) == ZARR_OK;

    *out = (struct cli_job){0};
    if (is) {
        text[n] = '\0';
        out->command = member_text(text, "command");
        out->source = member_text(text, "source");
        out->destination = member_text(text, "destination");
        if (!out->command) /* the library's job of a reencode */
            out->command = cli_strdup("reencode");
        if (!is_known(out->command)) {
            free(out->command);
            out->command = cli_strdup("command");
        }
    }
    free(text);
    free(key);
    return is;
}

bool cli_job_deletes(const struct cli_job *job)
{
    return strcmp(job->command, "rm") == 0 ||
           (strcmp(job->command, "mv") == 0 && !job->source);
}

bool cli_job_is_of_import(const struct cli_job *job)
{
    static const char suffix[] = CLI_STAGING_SUFFIX;
    const size_t n = job->source ? strlen(job->source) : 0, m = sizeof suffix - 1;

    return strcmp(job->command, "mv") == 0 && n > m &&
           strcmp(job->source + n - m, suffix) == 0;
}

void cli_job_free(struct cli_job *job)
{
    free(job->command);
    free(job->source);
    free(job->destination);
    *job = (struct cli_job){0};
}

int cli_job_begin(struct cli *cli, zarr_store *store, const char *path,
                  const char *source)
{
    char *key = cli_path_join(path, JOB_NAME), *quoted = cli_json_quote(source);
    char *text = cli_format("{\"zarrc_job\": 1, \"command\": \"%s\", \"source\": %s}\n",
                            cli->command->name, quoted);
    zarr_error err = {0};
    const zarr_status st = zarr_store_put(store, key, text, strlen(text), NULL, &err);

    free(key);
    free(quoted);
    free(text);
    return st ? cli_fail(cli, st, &err, "cannot begin the %s", cli->command->name)
              : CLI_OK;
}

void cli_job_end(struct cli *cli, zarr_store *store, const char *path)
{
    char *key = cli_path_join(path, JOB_NAME);
    const zarr_status st = zarr_store_erase(store, key, NULL, NULL);

    if (st && st != ZARR_ERR_NOT_FOUND)
        cli_warn(cli, "%s cannot be deleted", key);
    free(key);
}

/* A place as the library writes it into a job. */
static void add_place(void *user, const zarr_store_place *place)
{
    const char *prefix = place->prefix ? place->prefix : "";
    size_t n;

    prefix += strspn(prefix, "/");
    for (n = strlen(prefix); n > 0 && prefix[n - 1] == '/';)
        n--;
    cli_string_printf(user, "%s://%s", place->scheme ? place->scheme : "",
                      place->endpoint ? place->endpoint : "");
    if (place->bucket && *place->bucket)
        cli_string_printf(user, "/%s", place->bucket);
    cli_string_printf(user, "/%.*s", (int)n, prefix);
}

char *cli_job_name(const struct cli_node *node)
{
    const char *root = cli_local_root(node), *end;
    char *joined = cli_path_join(root, node->path);
    struct cli_string s = {0};
    char *name, *real;
    struct stat st;

    if (stat(root, &st) != 0 || !S_ISDIR(st.st_mode)) { /* such as an archive, or a URL */
        zarr_store_tell_place(node->store, add_place, &s);
        end = s.text && s.text[strlen(s.text) - 1] == '/' ? "" : "/";
        name = !s.text       ? NULL
               : *node->path ? cli_format("%s%s%s", s.text, end, node->path)
                             : cli_strdup(s.text);
    } else {
        name = realpath(joined, NULL);
        real = name ? NULL : realpath(root, NULL);
        if (real)
            name = cli_path_join(real, node->path);
        free(real);
    }
    free(s.text);
    free(joined);
    return name ? name : cli_format("%s:/%s", zarr_store_url(node->store), node->path);
}

/* The length of the character at the beginning if a message would show it in another way.
 */
static size_t control_length(const char *at)
{
    unsigned code;

    return cli_control(at, strlen(at), false, &code);
}

/* $'...', which bash, ksh and zsh know. */
static void add_escaped(struct cli_string *s, const char *text)
{
    cli_string_add(s, "$'", 2);
    while (*text) {
        size_t n = *text == '\'' || *text == '\\' ? 1 : control_length(text);

        if (n == 0)
            cli_string_add(s, text++, 1);
        for (; n > 0; n--)
            cli_string_printf(s, "\\x%02x", (unsigned char)*text++);
    }
    cli_string_add(s, "'", 1);
}

char *cli_shell_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789/._-:+=@%,";
    struct cli_string s = {0};
    bool escaped = false;

    for (const char *p = text; *p; p++)
        escaped |= control_length(p) > 0;
    if (*text == '-') /* a location, and no option */
        cli_string_add(&s, "./", 2);
    if (escaped) {
        add_escaped(&s, text);
        return s.text;
    }
    if (*text && text[strspn(text, plain)] == '\0') {
        cli_string_add(&s, text, strlen(text));
        return s.text;
    }
    cli_string_add(&s, "'", 1);
    for (; *text; text++)
        if (*text == '\'')
            cli_string_add(&s, "'\\''", 4);
        else
            cli_string_add(&s, text, 1);
    cli_string_add(&s, "'", 1);
    return s.text;
}

/* The options of an interrupted migrate that zarrc itself writes. A job is an object of a
 * store, and a user may paste the hint into a shell, so nothing else is repeated. */
static char *migrate_options(const char *source)
{
    static const char *const known[] = {"--zarr-format=2", "--zarr-format=3",
                                        "--force",         "--remove-old",
                                        "--keep-fill",     "--no-consolidate"};
    struct cli_string s = {0};

    cli_string_add(&s, "", 0);
    while (source && *source) {
        const size_t n = strcspn(source, " ");

        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strlen(known[i]) == n && strncmp(known[i], source, n) == 0) {
                cli_string_add(&s, " ", 1);
                cli_string_add(&s, source, n);
            }
        source += n;
        source += strspn(source, " ");
    }
    return s.text;
}

/* The commands that continue or remove it. Owned. */
static char *make_hint(const struct cli_job *job, const char *shown)
{
    char *at = cli_shell_word(shown),
         *from = cli_shell_word(job->source ? job->source : "SOURCE"),
         *to = cli_shell_word(job->destination ? job->destination : ""),
         *options = migrate_options(job->source);
    const bool moves = strcmp(job->command, "mv") == 0;
    char *hint;

    if (moves && !job->source && job->destination)
        hint = cli_format("zarrc mv --resume %s %s completes it, and so does "
                          "zarrc rm -r %s.",
                          at, to, at);
    else if (cli_job_deletes(job))
        hint = cli_format("zarrc rm -r %s completes it.", at);
    else if (cli_job_is_of_import(job) || strcmp(job->command, "import") == 0)
        hint =
            cli_format("zarrc import --force with the same options starts again. zarrc "
                       "rm -r %s removes it.",
                       at);
    else if (moves || strcmp(job->command, "cp") == 0)
        /* --resume reads the copy from memory, and mv then deletes the source */
        hint = cli_format("zarrc %s --resume %s %s continues it.%s zarrc rm -r %s "
                          "removes it.",
                          job->command, from, at,
                          moves ? " If mv said that the copy may not be on the disk, use "
                                  "--force instead of --resume."
                                : "",
                          at);
    else if (strcmp(job->command, "reencode") == 0)
        hint = cli_format("The same command with --resume continues it. zarrc rm -r %s "
                          "removes it.",
                          at);
    else if (strcmp(job->command, "migrate") == 0)
        hint = cli_format("zarrc migrate%s %s continues it.", options, at);
    else if (strcmp(job->command, "create") == 0)
        hint = cli_format("--force (overwrite=True) replaces it. zarrc rm -r %s removes "
                          "it.",
                          at);
    else
        hint = cli_format("This zarrc does not know how to continue it. zarrc rm -r %s "
                          "removes it.",
                          at);
    free(options);
    free(at);
    free(from);
    free(to);
    return hint;
}

int cli_job_error(struct cli *cli, int exit_code, const struct cli_job *job,
                  const char *shown)
{
    char *hint = make_hint(job, shown);

    cli_error(cli, exit_code, hint,
              cli_job_deletes(job)
                  ? "there is no node at %s, but the rest of an interrupted %s%s%s"
                  : "there is no complete node at %s, but an interrupted %s%s%s",
              shown, job->command, job->source ? " of " : "",
              job->source ? job->source : "");
    free(hint);
    return exit_code;
}

int cli_job_refuse(struct cli *cli, const struct cli_node *node)
{
    struct cli_job job;
    int rc = CLI_OK;

    if (cli_node_is_missing(node) && cli_job_read(node->store, node->path, &job)) {
        rc = cli_job_error(cli, CLI_EXISTS, &job, node->shown);
        cli_job_free(&job);
    }
    return rc;
}

/* An import that replaces an array and was killed between the delete of the old one and
 * the last step leaves the new array, complete, next to the place. */
static int staged_error(struct cli *cli, const struct cli_node *node)
{
    char *path = cli_format("%s" CLI_STAGING_SUFFIX, node->path);
    int rc = CLI_OK;

    if (*node->path && cli_kind_at(node->store, path, NULL) == ZARR_NODE_ARRAY) {
        char *from = cli_format("%s" CLI_STAGING_SUFFIX, node->shown);
        char *a = cli_shell_word(from), *b = cli_shell_word(node->shown);
        char *hint = cli_format("zarrc mv %s %s completes it.", a, b);

        rc = CLI_NOT_FOUND;
        cli_error(cli, rc, hint,
                  "there is no node at %s, but an interrupted import left the new array "
                  "at %s",
                  node->shown, from);
        free(hint);
        free(b);
        free(a);
        free(from);
    }
    free(path);
    return rc;
}

int cli_job_check_missing(struct cli *cli, const struct cli_node *node)
{
    char *path = cli_strdup(node->path);
    struct cli_job job;
    int rc = CLI_OK;

    for (;;) {
        char *slash = strrchr(path, '/');

        if (cli_job_read(node->store, path, &job)) {
            char *shown = cli_shown_at(node, path);

            rc = cli_job_error(cli, CLI_NOT_FOUND, &job, shown);
            free(shown);
            cli_job_free(&job);
        }
        if (rc || !*path)
            break;
        *(slash ? slash : path) = '\0';
    }
    free(path);
    return rc ? rc : staged_error(cli, node);
}

void cli_job_warn(struct cli *cli, const struct cli_node *node)
{
    struct cli_job job;

    if (cli_job_read(node->store, node->path, &job)) {
        char *hint = make_hint(&job, node->shown);

        cli_warn(cli, "%s is incomplete: a %s was interrupted, or is at work. %s",
                 node->shown, job.command, hint);
        free(hint);
        cli_job_free(&job);
    }
}

/* ---- all below a node ---- */

static int add_job(void *user, const zarr_store_item *item)
{
    const char *slash = strrchr(item->key, '/');
    const char *name = slash ? slash + 1 : item->key;

    return item->is_prefix || strcmp(name, JOB_NAME) != 0 ? cli_is_cancelled()
                                                          : cli_keys_add(user, item);
}

int cli_jobs_each(struct cli *cli, const struct cli_node *node, cli_job_fn fn, void *user)
{
    struct cli_keys keys = {0};
    zarr_error err = {0};
    const zarr_status st = zarr_store_list(node->store, node->path, ZARR_LIST_UNLINKED,
                                           add_job, &keys, cli_cancel, &err);
    int rc = CLI_OK;

    if ((st && !cli_is_node_fault(st, &err)) || cli_is_cancelled())
        rc = cli_fail(cli, st, &err, "cannot list %s", node->shown);
    for (size_t i = 0; i < keys.n_items && !rc; i++) {
        char *path = cli_strdup(keys.items[i]), *end = strrchr(path, '/'), *shown, *hint;
        struct cli_job job;

        *(end ? end : path) = '\0';
        if (cli_job_read(node->store, path, &job)) {
            shown = cli_shown_at(node, path);
            hint = make_hint(&job, shown);
            fn(user, keys.items[i], job.command, hint);
            free(shown);
            free(hint);
            cli_job_free(&job);
        }
        free(path);
    }
    cli_keys_free(&keys);
    return rc;
}
