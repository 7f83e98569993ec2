/*
 * frame/message.c - messages to the user, on stderr. An error tells what failed, where,
 * why, and what to do next. The library's message is printed unchanged; this file adds
 * the failed operation before it and a hint after it. With --json an error is one JSON
 * object on one line:
 *     {"error": {"code": "corrupt", "exit": 4, "what": ..., "why": ..., "next": ...}}
 * and, if they are known, the node, the key, the block and the chunk.
 * Colours are used only on a terminal without NO_COLOR, or with --color=always.
 */
#include "frame/frame_int.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Faults of networks and of other processes, which pass. A full or broken disk does not
 * mend itself. */
static bool passes(int os_code)
{
    static const int codes[] = {EAGAIN,      EBUSY,        EINTR,        EMFILE,
                                ENFILE,      ENOBUFS,      ESTALE,       ETIMEDOUT,
                                ECONNRESET,  ECONNREFUSED, ECONNABORTED, ENETDOWN,
                                ENETUNREACH, ENETRESET,    EHOSTDOWN,    EHOSTUNREACH};

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] == os_code)
            return true;
    return false;
}

static int find_exit_code(zarr_status status, const zarr_error *err)
{
    switch (status) {
    case ZARR_OK:
        return CLI_OK;
    case ZARR_ERR_INVALID:
        return CLI_USAGE;
    case ZARR_ERR_NOT_FOUND:
        return CLI_NOT_FOUND;
    case ZARR_ERR_CORRUPT:
    case ZARR_ERR_LIMIT:
    case ZARR_ERR_NO_MEMORY:
    case ZARR_ERR_INTERNAL:
        return CLI_CORRUPT;
    case ZARR_ERR_EXISTS:
        return CLI_EXISTS;
    case ZARR_ERR_CONFLICT:
        return CLI_AGAIN;
    case ZARR_ERR_UNSUPPORTED:
    case ZARR_ERR_ABI:
    case ZARR_ERR_MEMORY_KIND:
        return CLI_UNSUPPORTED;
    case ZARR_ERR_CANCELLED:
        return CLI_INTERRUPTED;
    default:
        return err && passes(err->os_code) ? CLI_AGAIN : CLI_IO;
    }
}

static bool has_option(const struct cli *cli, const char *name)
{
    return cli_option_find(cli->command, '\0', name, strlen(name)) != NULL;
}

static const char *hint_exists(const struct cli *cli)
{
    if (!has_option(cli, "force"))
        return "Nothing was changed.";
    if (cli_flag(cli, "force"))
        return "Nothing was changed. Choose another location, or empty it yourself.";
    return "Nothing was changed. Use --force to overwrite it.";
}

/* `zarrc list` helps only if the message is about something that this build lacks. */
static const char *hint_unsupported(struct cli *cli, const zarr_error *err)
{
    static const char *const words[] = {"known",   "this build",  "no implementation",
                                        "refused", "no pipeline", "no store"};
    const char *near;

    if (err && strstr(err->message, "the missing value in Zarr v2"))
        return "zarrc reencode --zarr-format=2 writes it anew; --keep-fill leaves the "
               "fill value.";
    if (err && strstr(err->message, "Zarr v3 has no codec"))
        return "zarrc reencode --zarr-format=3 --codec=NAME writes it anew.";
    near = err ? cli_nearest_name(cli, err->message) : NULL;
    for (size_t i = 0; err && !near && i < sizeof words / sizeof words[0]; i++)
        if (strstr(err->message, words[i]))
            return "zarrc list shows what this build supports.";
    return near;
}

/* --chunks alone leaves the shards of the source or model as they are. */
static const char *hint_invalid(const struct cli *cli, const zarr_error *err)
{
    return err && strstr(err->message, "does not divide the shard's") &&
                   has_option(cli, "shards") && !cli_text(cli, "shards")
               ? "The shards stay as they are unless --shards=SHAPE gives others, or "
                 "--shards=none makes each chunk an object."
               : NULL;
}

/* Half of --mem is the context's memory, of which the error tells the least. */
static const char *hint_memory(const zarr_error *err)
{
    static char text[64];
    const char *needs = strstr(err->message, " needs ");
    const uint64_t bytes = needs ? strtoull(needs + strlen(" needs "), NULL, 10) : 0;

    if (bytes == 0)
        return "Allow more memory with --mem=SIZE.";
    snprintf(text, sizeof text, "Try: --mem=%" PRIu64 "M.", (bytes >> 19) + 1);
    return text;
}

/* What helps against a setting that the error names; NULL: it names none. */
static const char *hint_setting(const zarr_error *err)
{
    static char text[160];
    char name[64];

    if (!err || !zarr_error_text(err, ZARR_ERROR_SETTING, name, sizeof name))
        return NULL;
    if (strcmp(name, "locks") == 0)
        return "If nothing else writes to the store, turn locks off: --locks=none or "
               "ZARRC_LOCKS=none.";
    if (strcmp(name, "symlinks") == 0)
        return "If you trust the store, follow its links: --symlinks=follow or "
               "ZARRC_SYMLINKS=follow.";
    if (strcmp(name, "memory_bytes") == 0)
        return hint_memory(err);
    snprintf(text, sizeof text,
             "If you know where the data comes from, raise the limit: --limit=%s=VALUE.",
             name);
    return text;
}

static const char *hint_for(struct cli *cli, zarr_status status, const zarr_error *err)
{
    const char *setting = hint_setting(err);

    if (err && strstr(err->message, "consolidated metadata would list"))
        return "Nothing was deleted. --no-consolidate leaves the consolidated "
               "metadata as it is; zarrc consolidate writes it anew.";
    if (setting)
        return setting;
    switch (status) {
    case ZARR_ERR_INVALID:
        return hint_invalid(cli, err);
    case ZARR_ERR_CORRUPT:
        return err && err->operation == ZARR_OPERATION_DECODE
                   ? "An interrupted write or a damaged copy can be the cause. "
                     "zarrc verify NODE lists all errors."
                   : "zarrc verify NODE lists all errors.";
    case ZARR_ERR_NO_MEMORY:
        return "Try a smaller region, or a smaller --mem.";
    case ZARR_ERR_EXISTS:
        return hint_exists(cli);
    case ZARR_ERR_CONFLICT:
        if (err && err->os_code == EBUSY)
            return "Nothing was changed. Repeat the command when the other one is done.";
        return "Another process changed it at the same time. Check its state, then "
               "repeat the command.";
    case ZARR_ERR_UNSUPPORTED:
        return hint_unsupported(cli, err);
    case ZARR_ERR_INTERNAL:
        return err && strstr(err->message, "broke its contract")
                   ? "This is a bug in the plug-in; please report it to its author."
                   : "This is a bug in zarrc; please report it.";
    default:
        return NULL;
    }
}

static void add_clean(struct cli_string *s, const char *text)
{
    cli_add_escaped(s, text, strlen(text), STDERR_FILENO, true);
}

static void write_stderr(struct cli_string *s)
{
    fflush(stdout); /* keeps the order of the output on a terminal */
    fwrite(s->text, 1, s->n_bytes, stderr);
    free(s->text);
}

struct report {
    const char *code, *what, *why, *next;
    const char *os; /* is added to what; or NULL */
    int exit_code;
    const zarr_error *error; /* of the library, or NULL */
    const zarr_array *array; /* which has the error's block, or NULL */
};

static void report_text(const struct cli *cli, const struct report *r)
{
    struct cli_string s = {0};

    cli_string_printf(&s, "%s ", cli->color_err ? "\033[1;31mzarrc:\033[0m" : "zarrc:");
    add_clean(&s, r->what);
    if (r->why) {
        cli_string_add(&s, "\n  ", 3);
        add_clean(&s, r->why);
    }
    if (r->why && r->code)
        cli_string_printf(&s, "   [%s]", r->code);
    if (r->next) {
        cli_string_add(&s, "\n  ", 3);
        add_clean(&s, r->next);
    }
    cli_string_add(&s, "\n", 1);
    write_stderr(&s);
}

static void add_part(struct cli_json *j, const char *name, const zarr_error *err,
                     uint32_t part)
{
    char text[ZARR_ERROR_MESSAGE_BYTES];

    if (zarr_error_text(err, part, text, sizeof text))
        cli_json_text(cli_key(j, name), text);
}

/* Where the error is, as far as it is known. */
static void add_place(struct cli_json *j, const struct report *r)
{
    char key[ZARR_ERROR_MESSAGE_BYTES];
    uint64_t at[ZARR_MAX_RANK];
    int32_t ndim;

    add_part(j, "node", r->error, ZARR_ERROR_PATH);
    add_part(j, "key", r->error, ZARR_ERROR_KEY);
    if (r->array && zarr_error_text(r->error, ZARR_ERROR_KEY, key, sizeof key) &&
        zarr_array_block_of_key(r->array, key, at, NULL) == ZARR_OK)
        cli_json_shape(cli_key(j, "block"), zarr_array_ndim(r->array), at);
    ndim = zarr_error_chunk(r->error, at);
    if (ndim > 0)
        cli_json_shape(cli_key(j, "chunk"), ndim, at);
}

static void report_json(struct cli *cli, const struct report *r)
{
    struct cli_string s = {0}, clean = {0};
    struct cli_json *j = cli_json_start(cli, &s, true);

    cli_json_object(j);
    cli_json_object(cli_key(j, "error"));
    cli_json_text(cli_key(j, "code"), r->code);
    cli_json_i64(cli_key(j, "exit"), r->exit_code);
    cli_json_text(cli_key(j, "what"), r->what);
    cli_json_text(cli_key(j, "why"), r->why);
    cli_json_text(cli_key(j, "next"), r->next);
    if (r->error)
        add_place(j, r);
    cli_json_end(j);
    cli_json_end(j);
    cli_json_finish(j);
    cli_string_add(&s, "\n", 1);
    cli_add_clean(&clean, s.text, s.n_bytes);
    write_stderr(&clean);
    cli_string_free(&s);
}

/* Shows a URL of the command line without its secrets wherever it is in the text, which
 * is moved. */
static char *hide_url(char *text, const char *url)
{
    const size_t n = strlen(url), m = zarr_url_show(url, NULL, 0);
    char *shown = cli_alloc(m + 1), *at = text;

    zarr_url_show(url, shown, m + 1);
    while (strcmp(shown, url) != 0 && (at = strstr(at, url)) != NULL) {
        char *longer = cli_format("%.*s%s%s", (int)(at - text), text, shown, at + n);

        at = longer + (at - text) + m;
        free(text);
        text = longer;
    }
    free(shown);
    return text;
}

static char *hide_secrets(const struct cli *cli, char *text)
{
    for (int i = 1; i < cli->n_words; i++) {
        const char *word = cli->words[i], *value = strchr(word, '=');

        if (word[0] == '-')
            word = value ? value + 1 : "";
        if (strstr(word, "://"))
            text = hide_url(text, word);
    }
    return text;
}

ZARR_PRINTF(2, 0)
static char *vformat(const struct cli *cli, const char *format, va_list args)
{
    return hide_secrets(cli, cli_vformat(format, args));
}

zarr_status cli_set_error(zarr_error *err, zarr_status st, const char *format, ...)
{
    va_list args;

    *err = (zarr_error){.code = st};
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return st;
}

/* Fills r.what from the format, and prints the report. */
ZARR_PRINTF(3, 0)
static void report(struct cli *cli, struct report r, const char *format, va_list args)
{
    char *text = vformat(cli, format, args);
    char *what = cli_format("%s%s%s", text, r.os ? ": " : "", r.os ? r.os : "");

    r.what = what;
    if (cli->json)
        report_json(cli, &r);
    else
        report_text(cli, &r);
    free(what);
    free(text);
}

int cli_tell_failure(struct cli *cli, const struct cli_failure *f, const char *format,
                     ...)
{
    const zarr_error *err = f->error;
    struct report r = {.next = f->hint ? f->hint : hint_for(cli, f->status, err),
                       .error = err,
                       .array = f->array,
                       .code = zarr_status_text(f->status),
                       .exit_code = find_exit_code(f->status, err)};
    va_list args;

    if (f->status == ZARR_ERR_CANCELLED || cli_is_cancelled())
        return cli->json || !cli->quiet
                   ? cli_error(cli, CLI_INTERRUPTED, NULL, "interrupted")
                   : CLI_INTERRUPTED;
    r.why = err && err->message[0] ? err->message : r.code;
    va_start(args, format);
    report(cli, r, format, args);
    va_end(args);
    return r.exit_code;
}

static const char *code_name(int exit_code)
{
    static const char *const names[] = {"ok",          "different", "usage",
                                        "not found",   "corrupt",   "exists",
                                        "unsupported", "conflict"};

    if (exit_code == CLI_INTERRUPTED)
        return "cancelled";
    return exit_code >= 0 && exit_code <= CLI_AGAIN ? names[exit_code] : "unknown";
}

int cli_error(struct cli *cli, int exit_code, const char *hint, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(cli,
           (struct report){
               .code = code_name(exit_code), .next = hint, .exit_code = exit_code},
           format, args);
    va_end(args);
    return exit_code;
}

int cli_errno(struct cli *cli, int error_number, const char *format, ...)
{
    const int rc = error_number == EEXIST                        ? CLI_EXISTS
                   : error_number == EINTR && cli_is_cancelled() ? CLI_INTERRUPTED
                                                                 : CLI_IO;
    struct report r = {.code = error_number == ENOENT ? "not found"
                               : rc == CLI_IO         ? "io"
                                                      : code_name(rc),
                       .exit_code = rc,
                       .os = strerror(error_number)};
    va_list args;

    if (error_number == EPIPE) {
        cli->pipe_closed = true;
        return CLI_PIPE;
    }
    va_start(args, format);
    report(cli, r, format, args);
    va_end(args);
    return rc;
}

void cli_tell(struct cli *cli, int how, const char *format, ...)
{
    struct cli_string s = {0};
    va_list args;
    char *text;

    if (cli->quiet || (how == CLI_TELL_NOTE && cli->verbose == 0) ||
        (how == CLI_TELL_RESULT && cli->json))
        return;
    if (how == CLI_TELL_WARNING)
        cli_string_printf(&s, "%s ",
                          cli->color_err ? "\033[1;33mzarrc: warning:\033[0m"
                                         : "zarrc: warning:");
    else if (how == CLI_TELL_NOTE)
        cli_string_printf(&s, "zarrc: ");
    va_start(args, format);
    text = vformat(cli, format, args);
    va_end(args);
    add_clean(&s, text);
    cli_string_add(&s, "\n", 1);
    write_stderr(&s);
    free(text);
}

enum {
    WARNINGS_MOST = 256 /* later ones may repeat */
};

/* Whether the text has not come before: a command opens a node more than once, and the
 * library warns each time. Called by any thread. */
static bool is_new_warning(const char *text)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char *had[WARNINGS_MOST]; /* until the process ends */
    static size_t n;
    bool is_new = true;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < n; i++)
        is_new = is_new && strcmp(had[i], text) != 0;
    if (is_new && n < WARNINGS_MOST)
        had[n++] = cli_strdup(text);
    pthread_mutex_unlock(&mutex);
    return is_new;
}

void cli_log(void *user, uint32_t level, const char *text)
{
    static const char *const names[] = {"log",  "error", "warning",
                                        "info", "debug", "trace"};

    (void)user;
    if (level == ZARR_LOG_WARN && !is_new_warning(text))
        return;
    fprintf(stderr, "zarrc: %s: %s\n", names[level < 6 ? level : 0], text);
}
