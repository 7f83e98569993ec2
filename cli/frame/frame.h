/*
 * frame/frame.h - what every file of the program uses: exit codes, options, messages,
 * progress, stdout, JSON. A subcommand is one file commands/cmd_<name>.c that defines a
 * `const struct cli_command` and is named in the table of frame/commands.c; parser,
 * --help, man page and completions come from the command's table. Everything of Zarr
 * comes from <zarrc/...>: the program sees no other header of the library, which proves
 * that the API is enough.
 *
 * Habits (they are tested): data and JSON go to stdout, all else to stderr; a
 * function that can fail prints its error itself and returns an exit code (0:
 * go on), so a command reads
 *
 *     struct cli_node node = {0};
 *     int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY, &node);
 *     if (rc)
 *         goto out;
 *     ...
 *     out: cli_node_close(&node); return rc;
 *
 * Everything here runs on the program's one thread unless it says otherwise.
 * The program never calls setlocale(): numbers and messages are the same
 * everywhere.
 */
#ifndef CLI_FRAME_H
#define CLI_FRAME_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <zarrc/zarrc.h>

/* ---- exit codes (a contract; users.md lists them, so do all man pages) ---- */

enum {
    CLI_OK = 0,
    CLI_DIFFERENT = 1, /* compared: different; verified: not valid */
    CLI_USAGE = 2,     /* wrong options or arguments */
    CLI_NOT_FOUND = 3, /* no such file or node, or I/O failed */
    CLI_IO = 3,
    CLI_CORRUPT = 4,     /* stored bytes are wrong, or over a limit */
    CLI_EXISTS = 5,      /* something is there already, or somebody changed it */
    CLI_UNSUPPORTED = 6, /* legal, but not in this build */
    CLI_INTERRUPTED = 130
};

/* ---- the tables ---- */

enum {
    CLI_REPEAT = 1,     /* may be given several times: cli_count(), cli_text_at() */
    CLI_HIDDEN = 2,     /* not in help, man page and completion */
    CLI_VALUE_FILE = 4, /* completion: files */
    CLI_VALUE_NODE = 8  /* completion: folders */
};

/* One option. A table of them ends with an entry whose name is NULL. */
struct cli_option {
    const char *name;    /* long name without dashes */
    char letter;         /* short name or 0 */
    unsigned flags;      /* CLI_REPEAT ... */
    const char *value;   /* what the value is called in help, "SIZE"; NULL: a flag */
    const char *choices; /* "text|csv|npy": other values are refused; NULL: any */
    const char *help;    /* one or two sentences, lower case, no full stop at the end */
};

/* One example: a command line that works, and what it does. NULL line ends the table. */
struct cli_example {
    const char *line; /* "zarrc info x.zarr/temp" */
    const char *what; /* "What is in an array, and how it is stored." */
};

struct cli;

enum {
    CLI_CMD_HIDDEN = 1,    /* not in lists and completions, no man page */
    CLI_CMD_NO_CONTEXT = 2 /* cli->ctx stays NULL */
};

struct cli_command {
    const char *name;
    const char *summary;    /* one line, lower case: "show what a node is" */
    const char *operands;   /* "SOURCE DESTINATION", "NODE[REGION]", "" */
    int min_args, max_args; /* max_args < 0: any number */
    unsigned flags;         /* CLI_CMD_* */
    const char *about;      /* paragraphs, split by empty lines; plain text, no markup */
    const char
        *json; /* what --json writes: member by member, plain text; NULL: nothing */
    const struct cli_option
        *options; /* of this command; the common ones come by themselves */
    const struct cli_example *examples; /* at least one */
    const char *see_also;               /* "zarrc-cp zarrc-verify" or NULL */
    int (*run)(struct cli *cli);        /* returns an exit code */
};

/* All commands in the order of the help, NULL-terminated (commands.c). */
extern const struct cli_command *const cli_commands[];
/* By name, or NULL. */
const struct cli_command *cli_command_find(const char *name);

/* ---- one run of the program ---- */

enum {
    CLI_PROGRESS_NONE,
    CLI_PROGRESS_BAR,
    CLI_PROGRESS_LINES,
    CLI_PROGRESS_JSON
};

struct cli {
    const struct cli_command *command;
    zarr_context *ctx; /* made before run() is called */
    int n_args;        /* operands: what is left without the options */
    const char *const *args;

    bool json;   /* --json: one JSON document on stdout, errors as JSON on stderr */
    bool quiet;  /* -q: errors only */
    int verbose; /* -v counts */
    bool color_out, color_err;
    int progress;          /* CLI_PROGRESS_*, decided */
    unsigned n_threads;    /* -j; 0: all cores */
    uint64_t memory_bytes; /* --mem; 0: not given */
    bool untrusted;

    /* of the frame; commands leave them alone */
    struct cli_values *values;
    struct cli_json *json_writer;
    bool out_failed;
};

/* ---- values of options: by long name; a name that is in no table is a bug ---- */

bool cli_flag(const struct cli *cli, const char *name);
/* The last value given, or NULL. */
const char *cli_text(const struct cli *cli, const char *name);
int cli_count(const struct cli *cli, const char *name);
const char *cli_text_at(const struct cli *cli, const char *name, int i);
/* These leave *out alone when the option was not given; CLI_USAGE when its value is
 * wrong. */
int cli_u64(struct cli *cli, const char *name, uint64_t *out);
int cli_i64(struct cli *cli, const char *name, int64_t *out);
int cli_f64(struct cli *cli, const char *name, double *out);
/* Bytes: "4096", "64M", "1.5GiB", "2GB" (K, M, G, T are powers of 1024; KB ... of 1000).
 */
int cli_size(struct cli *cli, const char *name, uint64_t *out);
/* "100,200,3" or "100x200x3"; *ndim is 0 when not given; "" is the shape of a scalar
 * (*ndim 0, *given true). given may be NULL. */
int cli_shape(struct cli *cli, const char *name, uint64_t out[ZARR_MAX_RANK],
              int32_t *ndim, bool *given);

/* The same from plain text; false when it is wrong. Nothing is printed. */
bool cli_parse_u64(const char *text, uint64_t *out);
bool cli_parse_i64(const char *text, int64_t *out);
bool cli_parse_f64(const char *text, double *out);
bool cli_parse_size(const char *text, uint64_t *out);
bool cli_parse_shape(const char *text, uint64_t out[ZARR_MAX_RANK], int32_t *ndim);

/* ---- errors and other messages: to stderr ---- */

/* The exit code of a status. */
int cli_exit_code(zarr_status status);

/* Prints what and where ("cannot read x.zarr:/a" is the format), why (the library's own
 * sentence and the status's name) and, where there is a known cure, what next.
 * Returns the exit code of st. After an interrupt: CLI_INTERRUPTED, one line. */
int cli_fail(struct cli *cli, zarr_status st, const zarr_error *err, const char *format,
             ...) ZARR_PRINTF(4, 5);

/* The same for what the program itself found: a line and, unless NULL, what next (a
 * sentence or "Try: ..."). Returns exit_code. */
int cli_error(struct cli *cli, int exit_code, const char *hint, const char *format, ...)
    ZARR_PRINTF(4, 5);

/* "zarrc: cannot open FILE: No such file or directory". Returns the exit code of errno.
 */
int cli_errno(struct cli *cli, int error_number, const char *format, ...)
    ZARR_PRINTF(3, 4);

/* One line; warnings unless -q, notes with -v only, says unless -q and --json. */
void cli_warn(struct cli *cli, const char *format, ...) ZARR_PRINTF(2, 3);
void cli_note(struct cli *cli, const char *format, ...) ZARR_PRINTF(2, 3);
void cli_say(struct cli *cli, const char *format, ...) ZARR_PRINTF(2, 3);

/* The nearest of a NULL-terminated list, or NULL when none is near: for "did you mean".
 */
const char *cli_nearest(const char *word, const char *const *list);

/* ---- interrupts ---- */

/* 0 until the first SIGINT or SIGTERM. Hand &cli_cancel to zarr_copy_options.cancel, poll
 * it in loops: return CLI_INTERRUPTED. A second signal ends the program at once. */
extern int cli_cancel;

/* ---- progress ---- */

/* A bar on a terminal (bytes, rate, time left), a line every 10 s in a log, JSON lines,
 * or nothing, as --progress says; to stderr. */
struct cli_progress {
    struct cli *cli;
    const char *what;
    uint64_t total_bytes, total_items; /* 0: not known */
    uint64_t done_bytes, done_items;
    uint64_t skipped_bytes; /* done before this run (resumed): not counted in the rate */
    int64_t began_ns, shown_ns;
    int width_shown;
};
/* what: one word for the line, "copy"; borrowed. */
void cli_progress_begin(struct cli_progress *p, struct cli *cli, const char *what,
                        uint64_t total_bytes, uint64_t total_items);
/* Absolute numbers so far; cheap, call it often; from one thread at a time, any thread.
 */
void cli_progress_update(struct cli_progress *p, uint64_t done_bytes,
                         uint64_t done_items);
/* Last state; ok false leaves the line as it is. Safe to call twice. */
void cli_progress_end(struct cli_progress *p, bool ok);

/* ---- stdout ---- */

/* Buffered; the first failure (full disk, closed pipe) is reported once, later calls
 * return CLI_IO at once: stop then. Errors at the end are reported by the frame. */
int cli_out(struct cli *cli, const void *data, size_t bytes);
int cli_printf(struct cli *cli, const char *format, ...) ZARR_PRINTF(2, 3);

/* ---- JSON on stdout: objects and arrays of any depth up to 64 ---- */

struct cli_json;
/* The writer of this run's document. The frame ends it with a newline. */
struct cli_json *cli_json(struct cli *cli);
/* Key of the next value; only inside an object. Returns j. */
struct cli_json *cli_key(struct cli_json *j, const char *key);
void cli_json_object(struct cli_json *j); /* {  ... until cli_json_end() */
void cli_json_array(struct cli_json *j);  /* [  each value on a line of its own */
void cli_json_list(struct cli_json *j);   /* [  all on one line: for numbers */
void cli_json_end(struct cli_json *j);
void cli_json_text(struct cli_json *j, const char *utf8); /* NULL: null */
void cli_json_u64(struct cli_json *j, uint64_t value);
void cli_json_i64(struct cli_json *j, int64_t value);
void cli_json_f64(struct cli_json *j, double value); /* "NaN", "Infinity", "-Infinity" */
void cli_json_bool(struct cli_json *j, bool value);
void cli_json_null(struct cli_json *j);
/* Valid JSON text, laid out anew; NULL: null. */
void cli_json_raw(struct cli_json *j, const char *json);
void cli_json_shape(struct cli_json *j, int32_t ndim,
                    const uint64_t *shape); /* NULL: null */

/* ---- reading JSON that the library wrote (valid, canonical) ---- */

/* The value of a member of an object: pointer into json and length, or NULL. */
const char *cli_json_member(const char *object, const char *key, size_t *bytes);
/* The i-th value of an array, or NULL behind the last. */
const char *cli_json_item(const char *array, size_t i, size_t *bytes);
/* Behind the value that begins at text; also of text that may be no JSON: never behind
 * its end. */
const char *cli_json_value_end(const char *text);
/* A JSON string as text (escapes resolved), or NULL when it is no string. Owned. */
char *cli_json_unquote(const char *json, size_t bytes);
/* Text as a JSON string with quotes. Owned. */
char *cli_json_quote(const char *text);
/* The same value on one line: {"a": [1, 2]}. Owned. */
char *cli_json_line(const char *json, size_t bytes);
/* The i-th member: value as above, *key owned by the caller. */
const char *cli_json_member_at(const char *object, size_t i, char **key, size_t *bytes);

/* ---- small helpers ---- */

/* Never NULL: without memory the program ends with a message and CLI_CORRUPT. */
void *cli_alloc(size_t bytes);
void *cli_realloc(void *block, size_t bytes);
char *cli_strdup(const char *text);

/* Keys of a store, collected by zarr_store_list(); all zero: none yet. */
struct cli_keys {
    char **items;
    size_t n_items, cap;
};
/* A zarr_store_list_fn; user is a struct cli_keys. */
int cli_keys_add(void *user, const zarr_store_item *item);
void cli_keys_free(struct cli_keys *k);
/* As snprintf into new memory; owned by the caller. */
char *cli_format(const char *format, ...) ZARR_PRINTF(1, 2);
/* "a/b"; parts may be empty. Owned. */
char *cli_path_join(const char *a, const char *b);

/* Text that grows. Zero it before; text is NULL until the first byte. */
struct cli_string {
    char *text;
    size_t n_bytes, cap;
};
void cli_string_add(struct cli_string *s, const void *data, size_t bytes);
/* Frees the text and zeroes *s. */
void cli_string_free(struct cli_string *s);
void cli_string_printf(struct cli_string *s, const char *format, ...) ZARR_PRINTF(2, 3);

/* "1.4 GiB" into the caller's buffer; returns it. */
const char *cli_bytes_text(uint64_t bytes, char text[16]);
/* "(100, 200, 3)" as users of NumPy know it; owned by the caller. */
char *cli_shape_text(int32_t ndim, const uint64_t *shape);
/* Product, or UINT64_MAX when it is more. */
uint64_t cli_product(int32_t ndim, const uint64_t *shape);
/* a * b, a + b, or UINT64_MAX. */
uint64_t cli_mul(uint64_t a, uint64_t b);
uint64_t cli_add(uint64_t a, uint64_t b);

/* A file that appears whole or not at all: written under a temporary name beside it. */
struct cli_file {
    FILE *file;
    char *path, *temporary;
};
/* CLI_EXISTS when it is there and force is false. Path "-": stdout. */
int cli_file_create(struct cli *cli, const char *path, bool force, struct cli_file *out);
/* Flushes, syncs and renames; on failure nothing is left. */
int cli_file_commit(struct cli *cli, struct cli_file *file);
/* Removes the temporary file unless committed. Always call it. */
void cli_file_close(struct cli_file *file);

#endif
