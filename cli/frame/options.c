/*
 * frame/options.c - parses the command line by the commands' tables: `--name VALUE`,
 * `--name=VALUE`, `-n VALUE`, `-nVALUE`, combined flags `-qv`; `--` ends the options.
 * Options and operands may be mixed, and common options may come before the command.
 * Names cannot be abbreviated, so a new option does not break scripts. For an unknown
 * name, the message suggests the most similar one. An option takes the next argument as
 * its value even if that begins with a dash (--fill -1).
 */
#include "frame/frame_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The commands in the order of the help. A new one is a file commands/cmd_<name>.c, a
 * name here, and a line in CMakeLists.txt. */
/* clang-format off */
#define COMMANDS(X) \
    X(info) X(ls) X(tree) X(cat) X(attrs) X(create) X(import) X(export) X(explain) X(cp) \
    X(mv) X(rm) X(resize) X(append) X(reencode) X(migrate) X(verify) X(diff) X(clean) \
    X(repack) X(consolidate) X(plot) X(summary) X(list) X(calibrate) X(version) X(help) X(completion)
/* clang-format on */

#define DECLARE(name) extern const struct cli_command cli_cmd_##name;
COMMANDS(DECLARE)

#define ROW(name) &cli_cmd_##name,
const struct cli_command *const cli_commands[] = {COMMANDS(ROW) NULL};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

enum {
    LOCK_WAIT_MAX_S = 4000000 /* milliseconds fit 32 bits */
};

const struct cli_option cli_common_options[] = {
    {"json", 0, 0, NULL, NULL,
     "write one JSON document to stdout, and errors as JSON to stderr"},
    {"max-threads", 'j', 0, "N", NULL, "use at most N threads (default: all cores)"},
    {"mem", 0, 0, "SIZE", NULL,
     "limit for the memory of chunks and buffers, as 512M or 4G; a chunk that needs more "
     "is refused (default: an eighth of the machine's memory; a larger chunk is handled "
     "alone)"},
    {"limit", 0, CLI_REPEAT, "NAME=VALUE", NULL,
     "raise or lower a limit of the library, as chunk_bytes=8G or json_depth=2000; an "
     "error about a limit names it, and ZARRC_LIMITS does the same"},
    {"untrusted", 0, 0, NULL, NULL,
     "narrow limits, which data of unknown origin needs: chunks up to 256 MiB, 64 MiB if "
     "their elements have variable length, metadata up to 4 MiB, 64 levels of JSON"},
    {"lock-wait", 0, 0, "SECONDS", NULL,
     "fail if another writer holds the lock of a key for longer (default: wait, with a "
     "warning after 10 s)"},
    {"locks", 0, 0, "KIND", "os|none",
     "locks between writers of a local store; none: only if nothing else writes to it "
     "(default: ZARRC_LOCKS, else os)"},
    {"symlinks", 0, 0, "WHICH", "within|deny|follow",
     "symbolic links to follow in a local store; within: those that stay in it (default: "
     "ZARRC_SYMLINKS, else within)"},
    {"store-option", 0, CLI_REPEAT, "[URL-PREFIX=]NAME=VALUE", NULL,
     "option of a store, as locks=none; with a prefix only of stores whose URL is the "
     "prefix or below it; VALUE is text, JSON that begins with { or [, or @FILE for the "
     "text of a file, without its last newline: a secret in an argument is visible to "
     "other users"},
    {"progress", 0, 0, "MODE", "auto|bar|lines|json|none",
     "how to show progress on stderr; auto: a bar on a terminal, else a line every 10 s"},
    {"color", 0, 0, "WHEN", "auto|always|never",
     "when to use colours; auto: on a terminal, unless NO_COLOR is set"},
    {"plugin", 0, CLI_REPEAT, "FILE", NULL,
     "load a plug-in: a shared library with codecs, data types, stores or pipelines"},
    {"log-level", 0, 0, "LEVEL", "error|warn|info|debug|trace",
     "least severe messages of the library to show on stderr (default: warn)"},
    {"quiet", 'q', 0, NULL, NULL, "print errors only"},
    {"verbose", 'v', CLI_REPEAT, NULL, NULL, "print more messages"},
    {"help", 'h', 0, NULL, NULL, "show this help"},
    {NULL, 0, 0, NULL, NULL, NULL}};

const struct cli_option *cli_option_find(const struct cli_command *command, char letter,
                                         const char *name, size_t bytes)
{
    const struct cli_option *tables[] = {command ? command->options : NULL,
                                         cli_common_options};

    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name; o++)
            if (name ? strncmp(o->name, name, bytes) == 0 && o->name[bytes] == '\0'
                     : o->letter == letter)
                return o;
    return NULL;
}

static const char *try_help(const struct cli *cli)
{
    static char text[64];

    snprintf(text, sizeof text, "Try: zarrc %s%s--help",
             cli->command ? cli->command->name : "", cli->command ? " " : "");
    return text;
}

static int unknown_option(struct cli *cli, const char *name, size_t bytes)
{
    const char *names[128];
    size_t n = 0;
    const struct cli_option *tables[] = {cli->command ? cli->command->options : NULL,
                                         cli_common_options};
    char *word = cli_format("%.*s", (int)(bytes < 64 ? bytes : 64), name);
    const char *near;

    for (size_t t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name && n < 127; o++)
            names[n++] = o->name;
    names[n] = NULL;
    near = cli_nearest(word, names);
    cli_error(cli, CLI_USAGE, try_help(cli),
              near ? "unknown option --%s; did you mean --%s?" : "unknown option --%s",
              word, near);
    free(word);
    return CLI_USAGE;
}

uint32_t cli_choice_place(const char *choices, const char *text)
{
    for (uint32_t i = 1;; i++) {
        const size_t n = strcspn(choices, "|");

        if (strlen(text) == n && strncmp(choices, text, n) == 0)
            return i;
        if (!choices[n])
            return 0;
        choices += n + 1;
    }
}

static int add_value(struct cli *cli, const struct cli_option *option, const char *text)
{
    struct cli_values *v = cli->values;

    if (text && option->choices && !cli_choice_place(option->choices, text))
        return cli_error(cli, CLI_USAGE, try_help(cli),
                         "option --%s: \"%s\" is not one of %s", option->name, text,
                         option->choices);
    v->items = cli_realloc(v->items, (v->n_items + 1) * sizeof *v->items);
    v->items[v->n_items++] = (struct cli_value){option, text};
    return CLI_OK;
}

/* The arguments and the index of the next one. */
struct arguments {
    char **item;
    int n, at;
};

static int parse_long(struct cli *cli, struct arguments *w, const char *name)
{
    size_t bytes = strcspn(name, "=");
    const struct cli_option *option = cli_option_find(cli->command, '\0', name, bytes);
    const char *value = name[bytes] == '=' ? name + bytes + 1 : NULL;

    if (!option)
        return unknown_option(cli, name, bytes);
    if (!option->value && value)
        return cli_error(cli, CLI_USAGE, try_help(cli), "option --%s takes no value",
                         option->name);
    if (option->value && !value) {
        if (w->at >= w->n)
            return cli_error(cli, CLI_USAGE, try_help(cli),
                             "option --%s needs a value: --%s=%s", option->name,
                             option->name, option->value);
        value = w->item[w->at++];
    }
    return add_value(cli, option, value);
}

static int parse_short(struct cli *cli, struct arguments *w, const char *letters)
{
    int rc = CLI_OK;

    for (; *letters && !rc; letters++) {
        const struct cli_option *option =
            cli_option_find(cli->command, *letters, NULL, 0);

        if (!option)
            return cli_error(cli, CLI_USAGE, try_help(cli), "unknown option -%c",
                             *letters);
        if (!option->value) {
            rc = add_value(cli, option, NULL);
            continue;
        }
        if (letters[1])
            return add_value(cli, option, letters[1] == '=' ? letters + 2 : letters + 1);
        if (w->at >= w->n)
            return cli_error(cli, CLI_USAGE, try_help(cli),
                             "option -%c needs a value: -%c %s", *letters, *letters,
                             option->value);
        return add_value(cli, option, w->item[w->at++]);
    }
    return rc;
}

/* What other programs call what a command does. */
static const char *const synonyms[][2] = {
    {"rechunk", "reencode"}, {"convert", "reencode"}, {"validate", "verify"},
    {"check", "verify"},     {"fsck", "verify"},      {"delete", "rm"},
    {"remove", "rm"},        {"rename", "mv"},        {"move", "mv"},
    {"copy", "cp"},          {"du", "info --stats"},  {"size", "info --stats"},
    {"dump", "info"},        {"show", "info"},        {"mkdir", "create --group"},
    {"compare", "diff"},     {"stats", "summary"},    {"statistics", "summary"},
};

static const char *find_synonym(const char *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i][0], word) == 0)
            return synonyms[i][1];
    return NULL;
}

static int refuse_command(struct cli *cli, const char *word, const char *const *names,
                          const char *near)
{
    struct cli_string all = {0};

    if (near)
        return cli_error(cli, CLI_USAGE, try_help(cli),
                         "unknown command \"%s\"; did you mean \"%s\"?", word, near);
    cli_string_printf(&all, "The commands are");
    for (size_t i = 0; names[i]; i++)
        cli_string_printf(&all, "%s %s", i ? "," : "", names[i]);
    cli_string_add(&all, ".", 1);
    cli_error(cli, CLI_USAGE, all.text, "unknown command \"%s\"", word);
    cli_string_free(&all);
    return CLI_USAGE;
}

static int parse_command(struct cli *cli, const char *word)
{
    const char *names[128];
    size_t n = 0;
    const char *near;

    cli->command = cli_command_find(word);
    if (cli->command)
        return CLI_OK;
    for (size_t i = 0; cli_commands[i] && n < 127; i++)
        names[n++] = cli_commands[i]->name;
    names[n] = NULL;
    near = find_synonym(word);
    return refuse_command(cli, word, names, near ? near : cli_nearest(word, names));
}

static int check_operands(struct cli *cli)
{
    const struct cli_command *c = cli->command;
    char *usage;
    int rc = CLI_OK;

    if (!c || cli_flag(cli, "help"))
        return CLI_OK;
    usage = cli_help_usage(c);
    if (cli->n_args < c->min_args)
        rc = cli_error(cli, CLI_USAGE, usage, "%s: too few operands", c->name);
    else if (c->max_args >= 0 && cli->n_args > c->max_args)
        rc = cli_error(cli, CLI_USAGE, usage, "%s: unexpected operand \"%s\"", c->name,
                       cli->args[c->max_args]);
    free(usage);
    return rc;
}

int cli_options_parse(struct cli *cli, int argc, char **argv)
{
    struct cli_values *v = cli_alloc(sizeof *v);
    struct arguments w = {argv, argc, 1};
    bool only_operands = false;
    int rc = CLI_OK;

    cli->values = v;
    cli->words = argv;
    cli->n_words = argc;
    v->args = cli_alloc(((size_t)argc + 1) * sizeof *v->args);
    while (w.at < w.n && !rc) {
        const char *word = w.item[w.at++];

        if (only_operands || word[0] != '-' || word[1] == '\0') {
            if (cli->command)
                v->args[v->n_args++] = word;
            else
                rc = parse_command(cli, word);
        } else if (strcmp(word, "--") == 0) {
            only_operands = true;
        } else if (word[1] == '-') {
            if (!cli->command && strcmp(word, "--version") == 0)
                rc = parse_command(cli, "version");
            else
                rc = parse_long(cli, &w, word + 2);
        } else {
            rc = parse_short(cli, &w, word + 1);
        }
    }
    cli->args = v->args;
    cli->n_args = v->n_args;
    return rc ? rc : check_operands(cli);
}

void cli_options_free(struct cli *cli)
{
    if (cli->values) {
        free(cli->values->items);
        free(cli->values->args);
        free(cli->values);
    }
    cli->values = NULL;
}

static bool decide_color(const struct cli *cli, int fd)
{
    const uint32_t when = cli_choice(cli, "color"); /* auto, always, never */
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    if (when > 1)
        return when == 2;
    return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static int decide_progress(const struct cli *cli)
{
    static const int modes[] = {CLI_PROGRESS_BAR, CLI_PROGRESS_LINES, CLI_PROGRESS_JSON,
                                CLI_PROGRESS_NONE};
    const uint32_t mode = cli_choice(cli, "progress"); /* auto, bar, lines, ... */

    if (mode > 1)
        return modes[mode - 2];
    if (cli->quiet || cli->json)
        return CLI_PROGRESS_NONE;
    return isatty(STDERR_FILENO) ? CLI_PROGRESS_BAR : CLI_PROGRESS_LINES;
}

int cli_options_common(struct cli *cli)
{
    uint64_t threads = 0;
    int rc;

    cli->json = cli_flag(cli, "json");
    cli->quiet = cli_flag(cli, "quiet");
    cli->verbose = cli_count(cli, "verbose");
    cli->untrusted = cli_flag(cli, "untrusted");
    cli->color_out = decide_color(cli, STDOUT_FILENO);
    cli->color_err = decide_color(cli, STDERR_FILENO);
    cli->progress = decide_progress(cli);
    cli->locks = cli_choice(cli, "locks");
    cli->symlinks = cli_choice(cli, "symlinks");
    rc = cli_u64(cli, "max-threads", &threads);
    if (!rc && threads > 1024)
        rc = cli_error(cli, CLI_USAGE, NULL, "option --max-threads: at most 1024");
    cli->max_threads = (unsigned)threads;
    if (!rc)
        rc = cli_size(cli, "mem", &cli->memory_bytes);
    if (!rc)
        rc = cli_u64(cli, "lock-wait", &cli->lock_wait_s);
    if (!rc && cli_text(cli, "lock-wait") &&
        (cli->lock_wait_s == 0 || cli->lock_wait_s > LOCK_WAIT_MAX_S))
        rc = cli_error(cli, CLI_USAGE, NULL, "option --lock-wait: 1 to %d seconds",
                       LOCK_WAIT_MAX_S);
    if (!rc && cli_text(cli, "mem") && cli->memory_bytes < (1u << 20))
        rc = cli_error(cli, CLI_USAGE, NULL, "option --mem: at least 1M");
    return rc;
}
