/*
 * frame/frame.h - the header that every file of the program includes: exit codes,
 * options, messages, progress, stdout, JSON. A subcommand is one file
 * commands/cmd_<name>.c. It defines a `const struct cli_command`, which is listed in
 * frame/options.c. The parser, --help, the man page and the completions are made from
 * that table. The program includes only the public headers <zarrc/...> of the library,
 * which proves that the public API is sufficient.
 *
 * Conventions (tested): data and JSON go to stdout, everything else to stderr. A function
 * that can fail prints its error itself and returns an exit code (0: continue). A command
 * therefore looks like this:
 *
 *     struct cli_node node = {0};
 *     int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY, &node);
 *     if (rc)
 *         goto out;
 *     ...
 *     out: cli_node_close(&node); return rc;
 *
 * All functions run on the program's main thread unless their comment says otherwise.
 * The program never calls setlocale(), so numbers and messages do not depend on the
 * locale.
 */
#ifndef CLI_FRAME_H
#define CLI_FRAME_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <zarrc/zarrc.h>

/* ---- exit codes: a stable interface, listed in every man page ---- */

enum {
    CLI_OK = 0,
    CLI_DIFFERENT = 1, /* diff found a difference, or verify found an error */
    CLI_USAGE = 2,     /* wrong options or arguments */
    CLI_NOT_FOUND = 3, /* no such file or node, or I/O failed */
    CLI_IO = 3,
    CLI_CORRUPT = 4,     /* stored data is corrupt or exceeds a limit */
    CLI_EXISTS = 5,      /* the target already exists */
    CLI_UNSUPPORTED = 6, /* valid, but this build does not support it */
    CLI_AGAIN = 7,       /* another process or the store was busy: may succeed later */
    CLI_LOST = 8,        /* done, but --skip-damaged left out damaged data */
    CLI_INTERRUPTED = 130,
    CLI_PIPE = 141 /* as of a program that SIGPIPE ended */
};

/* ---- the tables ---- */

enum {
    CLI_REPEAT = 1,    /* may be given several times: cli_count(), cli_text_at() */
    CLI_VALUE_FILE = 2 /* the value completes to files and folders */
};

/* One option. A table of options ends with an entry whose name is NULL. */
struct cli_option {
    const char *name;    /* long name without dashes */
    char letter;         /* short name, or 0 */
    unsigned flags;      /* CLI_REPEAT ... */
    const char *value;   /* name of the value in the help, "SIZE"; NULL: a flag */
    const char *choices; /* the permitted values, "text|csv|npy"; NULL: any value */
    const char *help;    /* one or two sentences, lower case, no full stop at the end */
};

/* One example: a command line that works, and its effect. A NULL line ends the table. */
struct cli_example {
    const char *line; /* "zarrc info x.zarr/temp" */
    const char *what; /* "Shape, chunks, codecs and attributes of an array." */
};

struct cli;

enum {
    CLI_CMD_NO_CONTEXT = 1 /* cli->ctx stays NULL */
};

struct cli_command {
    const char *name;
    const char *summary;    /* one line, lower case: "show what a node is" */
    const char *operands;   /* "SOURCE DESTINATION", "NODE[REGION]", "" */
    int min_args, max_args; /* max_args < 0: any number */
    unsigned flags;         /* CLI_CMD_* */
    const char *about;      /* plain-text paragraphs, separated by empty lines */
    const char *json;       /* the members that --json writes, plain text; NULL: none */
    /* The command's own options. The common options are added to every command. */
    const struct cli_option *options;
    const struct cli_example *examples; /* at least one */
    const char *see_also;               /* "zarrc-cp zarrc-verify" or NULL */
    int (*run)(struct cli *cli);        /* returns an exit code */
};

/* All commands in the order of the help, NULL-terminated (options.c). */
extern const struct cli_command *const cli_commands[];
/* The command of that name, or NULL. */
const struct cli_command *cli_command_find(const char *name);

/* ---- one invocation of the program ---- */

enum {
    CLI_PROGRESS_NONE,
    CLI_PROGRESS_BAR,
    CLI_PROGRESS_LINES,
    CLI_PROGRESS_JSON
};

struct cli {
    const struct cli_command *command;
    zarr_context *ctx; /* created before run() is called */
    int n_args;        /* operands: the arguments that are not options */
    const char *const *args;

    bool json;   /* --json: one JSON document on stdout, errors as JSON on stderr */
    bool quiet;  /* -q: errors only */
    int verbose; /* number of -v options */
    bool color_out, color_err;
    int progress;          /* CLI_PROGRESS_*; "auto" is already resolved */
    unsigned max_threads;  /* -j; 0: all cores */
    uint64_t memory_bytes; /* --mem; 0: not given */
    uint64_t lock_wait_s;  /* --lock-wait; 0: not given */
    /* --locks, --symlinks, as ZARR_LOCKS_* and ZARR_SYMLINKS_*; 0: not given */
    uint32_t locks, symlinks;
    bool untrusted;

    /* private to frame/; commands do not use these */
    char *const *words; /* the command line; URLs in it may have secrets */
    int n_words;
    struct cli_values *values;
    struct cli_json *json_writer;
    bool out_failed;
    bool pipe_closed; /* the reader of an output has gone */
};

/* The options and operands of the command line. */
struct cli_value {
    const struct cli_option *option;
    const char *text; /* NULL for a flag */
};
struct cli_values {
    struct cli_value *items;
    size_t n_items;
    const char **args; /* operands */
    int n_args;
};

/* ---- values of options by long name; an unknown name aborts the program ---- */

bool cli_flag(const struct cli *cli, const char *name);
/* The last value given, or NULL. */
const char *cli_text(const struct cli *cli, const char *name);
int cli_count(const struct cli *cli, const char *name);
const char *cli_text_at(const struct cli *cli, const char *name, int i);
/* The place of the value among the option's choices, from 1 on; 0: not given. */
uint32_t cli_choice(const struct cli *cli, const char *name);
/* The place of a text among choices, "text|csv|npy", from 1 on; 0: it is none of them. */
uint32_t cli_choice_place(const char *choices, const char *text);
/* These return CLI_USAGE if the value is not valid. If the option was not given, *out
 * keeps its value. */
int cli_u64(struct cli *cli, const char *name, uint64_t *out);
int cli_i64(struct cli *cli, const char *name, int64_t *out);
int cli_f64(struct cli *cli, const char *name, double *out);
/* Bytes: "4096", "64M", "1.5GiB", "2GB" (K, M, G, T are powers of 1024; KB ... of 1000).
 */
int cli_size(struct cli *cli, const char *name, uint64_t *out);
/* "100,200,3" or "100x200x3". If the option was not given, *ndim is 0. "" is the shape of
 * a scalar (*ndim 0, *given true). given may be NULL. */
int cli_shape(struct cli *cli, const char *name, uint64_t out[ZARR_MAX_RANK],
              int32_t *ndim, bool *given);

/* The same conversions of a text. They return false if it is not valid, and print
 * nothing. */
bool cli_parse_i64(const char *text, int64_t *out);
bool cli_parse_f64(const char *text, double *out);
/* keep: "-" leaves a length of `out` as it is. */
bool cli_parse_shape(const char *text, bool keep, uint64_t out[ZARR_MAX_RANK],
                     int32_t *ndim);

/* ---- errors and other messages: to stderr ---- */

/* Why something failed. array: --json has the block that failed, too; NULL: there is
 * none. hint NULL: one is found if it is known. */
struct cli_failure {
    zarr_status status;
    const zarr_error *error;
    const zarr_array *array;
    const char *hint;
};
/* Prints what failed (the format: "cannot read x.zarr:/a"), why (the library's message
 * and the name of the status) and a hint what to do next. Returns the exit code of the
 * status. After an interrupt it prints one line and returns CLI_INTERRUPTED. */
int cli_tell_failure(struct cli *cli, const struct cli_failure *f, const char *format,
                     ...) ZARR_PRINTF(3, 4);
#define cli_fail(cli, st, err, ...) cli_fail_array(cli, NULL, st, err, __VA_ARGS__)
#define cli_fail_array(cli, array, st, err, ...)                                         \
    cli_tell_failure(cli, &(struct cli_failure){st, err, array, NULL}, __VA_ARGS__)

/* cli_fail() for an error that the program itself detects: one line and, unless NULL, a
 * hint (a sentence or "Try: ..."). Returns exit_code. */
int cli_error(struct cli *cli, int exit_code, const char *hint, const char *format, ...)
    ZARR_PRINTF(4, 5);

/* Sets an error as the library does. Returns st. */
zarr_status cli_set_error(zarr_error *err, zarr_status st, const char *format, ...)
    ZARR_PRINTF(3, 4);

/* "zarrc: cannot open FILE: No such file or directory". Returns the exit code of errno.
 */
int cli_errno(struct cli *cli, int error_number, const char *format, ...)
    ZARR_PRINTF(3, 4);

/* Prints one line: warnings unless -q, notes only with -v, results unless -q or --json.
 */
enum {
    CLI_TELL_WARNING,
    CLI_TELL_NOTE,
    CLI_TELL_RESULT
};
void cli_tell(struct cli *cli, int how, const char *format, ...) ZARR_PRINTF(3, 4);
#define cli_warn(cli, ...) cli_tell(cli, CLI_TELL_WARNING, __VA_ARGS__)
#define cli_note(cli, ...) cli_tell(cli, CLI_TELL_NOTE, __VA_ARGS__)
#define cli_say(cli, ...)  cli_tell(cli, CLI_TELL_RESULT, __VA_ARGS__)

/* The most similar word of a NULL-terminated list, for "did you mean"; NULL if none is
 * similar. */
const char *cli_nearest(const char *word, const char *const *list);

/* ---- interrupts ---- */

/* The first SIGINT or SIGTERM sets it. Pass it as `cancel` to the library. Loops poll
 * cli_is_cancelled() and return CLI_INTERRUPTED. A second signal kills the program. */
extern zarr_cancel *cli_cancel;
int cli_is_cancelled(void);

/* ---- progress ---- */

/* Writes progress to stderr as --progress says: a bar on a terminal (bytes, rate, time
 * left), a line every 10 s in a log, JSON lines, or nothing. */
struct cli_progress {
    struct cli *cli;
    const char *what;
    uint64_t total_bytes, total_items; /* 0: not known */
    uint64_t done_bytes, done_items;
    uint64_t skipped_bytes; /* done by an interrupted command before: not in the rate */
    uint64_t began_ns, shown_ns;
    int width_shown;
};
/* what: the word that the line begins with, "copy"; borrowed. */
void cli_progress_begin(struct cli_progress *p, struct cli *cli, const char *what,
                        uint64_t total_bytes, uint64_t total_items);
/* Takes totals so far, not increments. It is cheap: call it often. Any thread may call
 * it, one at a time. */
void cli_progress_update(struct cli_progress *p, uint64_t done_bytes,
                         uint64_t done_items);
/* Shows the last state; if ok is true, as complete. A second call does nothing. */
void cli_progress_end(struct cli_progress *p, bool ok);

/* ---- stdout ---- */

/* Buffered. The first failure (such as a full disk) is printed once; a closed pipe is
 * not. Then every call returns CLI_IO, and the command should stop. main() prints errors
 * of the final flush. */
int cli_out(struct cli *cli, const void *data, size_t bytes);
/* Control characters become \u escapes, as in JSON: names from a store must not send any
 * to the terminal. Line ends stay, but cli_line() escapes those of names, too: only the
 * one that ends `format` stays. */
int cli_print(struct cli *cli, bool is_line, const char *format, ...) ZARR_PRINTF(3, 4);
#define cli_printf(cli, ...) cli_print(cli, false, __VA_ARGS__)
#define cli_line(cli, ...)   cli_print(cli, true, __VA_ARGS__)
/* Appends text with its control characters escaped in the same way. */
struct cli_string;
void cli_add_clean(struct cli_string *out, const char *text, size_t bytes);
/* Returns the length of the character at the beginning of the text if a terminal must not
 * get it, else 0. On a terminal these are control characters, line separators, and
 * characters that change the direction of the text around them; otherwise only control
 * characters. */
size_t cli_control(const char *text, size_t bytes, bool terminal, unsigned *code);

/* ---- JSON on stdout: objects and arrays, at most 256 levels deep ---- */

struct cli_json;
/* The writer of the document on stdout. main() ends the document with a newline. */
struct cli_json *cli_json(struct cli *cli);
/* Begins the object of a command on a node there, with the member "node". */
struct cli_json *cli_json_node(struct cli *cli, const char *shown);
/* A writer into *out (NULL: stdout). one_line: without line breaks. */
struct cli_json *cli_json_start(struct cli *cli, struct cli_string *out, bool one_line);
/* Closes open objects and arrays, writes the rest and frees the writer. */
int cli_json_finish(struct cli_json *j);
/* The key of the next value; only inside an object. Returns j. */
struct cli_json *cli_key(struct cli_json *j, const char *key);
/* Ends objects and arrays until `depth` of them are open. */
void cli_json_end_to(struct cli_json *j, int depth);
void cli_json_object(struct cli_json *j); /* {  ... until cli_json_end() */
void cli_json_array(struct cli_json *j);  /* [  each value on its own line */
void cli_json_list(struct cli_json *j);   /* [  all values on one line: for numbers */
void cli_json_end(struct cli_json *j);
void cli_json_text(struct cli_json *j, const char *utf8); /* NULL: null */
void cli_json_u64(struct cli_json *j, uint64_t value);
void cli_json_i64(struct cli_json *j, int64_t value);
void cli_json_f64(struct cli_json *j, double value); /* "NaN", "Infinity", "-Infinity" */
void cli_json_bool(struct cli_json *j, bool value);
void cli_json_null(struct cli_json *j);
/* JSON text, which is indented anew; NULL: null. On stdout NaN and Infinity without
 * quotes, which metadata may have, become strings: --json writes JSON. */
void cli_json_raw(struct cli_json *j, const char *json);
void cli_json_shape(struct cli_json *j, int32_t ndim,
                    const uint64_t *shape); /* NULL: null */

/* ---- reading JSON that the library wrote: valid and canonical ---- */

/* The value of a member of an object: pointer into json and length, or NULL, as for an
 * object that is NULL. */
const char *cli_json_member(const char *object, const char *key, size_t *bytes);
/* The i-th value of an array, or NULL if there are fewer. */
const char *cli_json_item(const char *array, size_t i, size_t *bytes);
/* The end of the value that begins at text. The text may be invalid JSON: the result
 * never points past its NUL. */
const char *cli_json_value_end(const char *text);
/* A JSON string as text (escapes resolved), or NULL if it is not a string. Owned. */
char *cli_json_unquote(const char *json, size_t bytes);
/* The same with its length, which counts NULs. Returns false if it is not a string. */
bool cli_json_unquote_to(const char *json, size_t bytes, struct cli_string *out);
/* Text as a JSON string with quotes; what is not UTF-8 becomes U+FFFD. Owned. */
char *cli_json_quote(const char *text);
bool cli_is_utf8(const char *text);
/* The length of the UTF-8 sequence at the beginning, or 0 if it is not valid. */
size_t cli_utf8_length(const char *text);
/* The same value on one line: {"a": [1, 2]}. Owned. */
char *cli_json_line(const char *json, size_t bytes);
/* Where the members of an object or the items of an array begin, for cli_json_next();
 * container may be NULL. */
const char *cli_json_members(const char *container);
/* The next member: a pointer to its value, or NULL after the last. The caller owns *key.
 * key NULL: the next item of an array. */
const char *cli_json_next(const char **at, char **key, size_t *bytes);

/* ---- small helpers ---- */

/* These never return NULL: if no memory is left, they print a message and exit with
 * CLI_CORRUPT. */
void *cli_alloc(size_t bytes);
void *cli_realloc(void *block, size_t bytes);
char *cli_strdup(const char *text);

/* Keys of a store, collected by zarr_store_list(). Zero it before use. */
struct cli_keys {
    char **items;
    size_t n_items, cap;
};
/* A zarr_store_list_fn; user is a struct cli_keys. */
int cli_keys_add(void *user, const zarr_store_item *item);
void cli_keys_free(struct cli_keys *k);
/* Nanoseconds of a monotonic clock. */
uint64_t cli_now_ns(void);
/* Overwrites bytes with zeros. No compiler removes it. */
void cli_wipe(void *p, size_t n);
/* As snprintf, into new memory that the caller owns. */
char *cli_format(const char *format, ...) ZARR_PRINTF(1, 2);
char *cli_vformat(const char *format, va_list args) ZARR_PRINTF(1, 0);
/* "a/b"; a or b may be empty. Owned. */
char *cli_path_join(const char *a, const char *b);

/* A growing string. Zero it before use. text is NULL until the first byte is added. A
 * secret leaves no copies in freed memory. */
struct cli_string {
    char *text;
    size_t n_bytes, cap;
    bool is_secret;
};
void cli_string_add(struct cli_string *s, const void *data, size_t bytes);
/* Adds a text as a JSON string. */
void cli_string_add_quoted(struct cli_string *s, const char *text);
/* Frees the text and zeroes *s. */
void cli_string_free(struct cli_string *s);
void cli_string_printf(struct cli_string *s, const char *format, ...) ZARR_PRINTF(2, 3);
void cli_string_vprintf(struct cli_string *s, const char *format, va_list args)
    ZARR_PRINTF(2, 0);

/* "1.4 GiB" into the caller's buffer; returns it. */
const char *cli_bytes_text(uint64_t bytes, char text[16]);
/* The ending of a word after the number: "s", and "" after 1. */
const char *cli_plural(uint64_t n);
/* "(100, 200, 3)", as NumPy prints a shape; owned by the caller. */
char *cli_shape_text(int32_t ndim, const uint64_t *shape);
/* Appends an element as the JSON that v3 has for a fill value. */
zarr_status cli_element_print(const zarr_dtype *type, const void *element,
                              struct cli_string *out, zarr_error *err);
/* A fill value as JSON; owned. NULL if it is NULL, or after an error, with
 * *err set. */
char *cli_fill_text(const zarr_dtype *type, const void *fill, zarr_error *err);
/* The product of the lengths, or UINT64_MAX on overflow. */
uint64_t cli_product(int32_t ndim, const uint64_t *shape);
/* a * b and a + b, or UINT64_MAX on overflow. */
uint64_t cli_mul(uint64_t a, uint64_t b);
uint64_t cli_add(uint64_t a, uint64_t b);

/* A file that is written under a temporary name in the same folder and then renamed, so
 * that an incomplete file never has the final name. */
struct cli_file {
    FILE *file;
    char *path, *temporary;
    bool replace; /* --force */
};
/* Returns CLI_EXISTS if the file exists and force is false. Path "-": stdout. */
int cli_file_create(struct cli *cli, const char *path, bool force, struct cli_file *out);
/* Flushes, syncs and renames. */
int cli_file_commit(struct cli *cli, struct cli_file *file);
/* Removes the temporary file unless it was committed. Always call it. */
void cli_file_close(struct cli_file *file);

/* ---- help, man pages and completions (help.c, docs_man.c, docs_completion.c) ---- */

void cli_help_program(struct cli_string *out);
void cli_help_options(struct cli_string *out); /* those of all commands */
void cli_help_command(const struct cli_command *command, struct cli_string *out);
/* "usage: zarrc info [OPTION]... NODE"; owned. */
char *cli_help_usage(const struct cli_command *command);

void cli_man_program(struct cli_string *out);
void cli_man_command(const struct cli_command *command, struct cli_string *out);
/* shell: bash, zsh or fish; returns false for any other. */
bool cli_completion(const char *shell, struct cli_string *out);

#endif
