/*
 * frame/json_out.c - writes JSON documents value by value. Members keep the order in
 * which they are written. Numbers are exact: floats get the fewest digits that read back
 * equal. Invalid UTF-8 becomes U+FFFD. Nothing depends on the locale. The output of
 * --json is a stable interface: later versions may add members, but never remove one.
 * Each man page lists the members.
 */
#include "frame/frame_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 256,
    FLUSH_BYTES = 1 << 16,
    LINE_BYTES = 76
};

struct level {
    char close;    /* '}' or ']' */
    bool one_line; /* without line breaks, also inside nested values */
    bool any;      /* a value was written */
};

struct cli_json {
    struct cli *cli;
    struct cli_string buffer;
    struct cli_string *out; /* NULL: stdout */
    struct level level[MAX_DEPTH];
    int depth;
    bool one_line, after_key;
};

struct cli_json *cli_json_start(struct cli *cli, struct cli_string *out, bool one_line)
{
    struct cli_json *j = cli_alloc(sizeof *j);

    j->cli = cli;
    j->out = out;
    j->one_line = one_line;
    return j;
}

/* JSON may have U+007F to U+009F as they are, which terminals obey. */
static int out_clean(struct cli *cli, const struct cli_string *text)
{
    struct cli_string clean = {0};
    int rc;

    cli_add_clean(&clean, text->text, text->n_bytes);
    rc = cli_out(cli, clean.text, clean.n_bytes);
    cli_string_free(&clean);
    return rc;
}

static int flush(struct cli_json *j)
{
    int rc = CLI_OK;

    if (j->out)
        cli_string_add(j->out, j->buffer.text ? j->buffer.text : "", j->buffer.n_bytes);
    else if (j->buffer.n_bytes)
        rc = out_clean(j->cli, &j->buffer);
    j->buffer.n_bytes = 0;
    return rc;
}

int cli_json_finish(struct cli_json *j)
{
    int rc;

    while (j->depth > 0)
        cli_json_end(j);
    if (!j->out && j->buffer.n_bytes)
        cli_string_add(&j->buffer, "\n", 1);
    rc = flush(j);
    free(j->buffer.text);
    free(j);
    return rc;
}

struct cli_json *cli_json(struct cli *cli)
{
    if (!cli->json_writer)
        cli->json_writer = cli_json_start(cli, NULL, false);
    return cli->json_writer;
}

static void newline(struct cli_json *j)
{
    cli_string_add(&j->buffer, "\n", 1);
    for (int i = 0; i < j->depth; i++)
        cli_string_add(&j->buffer, "  ", 2);
}

/* Writes the comma and the space or line break in front of a value. */
static void before(struct cli_json *j)
{
    struct level *l = j->depth > 0 ? &j->level[j->depth - 1] : NULL;

    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!l)
        return;
    if (l->any)
        cli_string_add(&j->buffer, ",", 1);
    if (!l->one_line)
        newline(j);
    else if (l->any)
        cli_string_add(&j->buffer, " ", 1);
    l->any = true;
    if (j->buffer.n_bytes > FLUSH_BYTES)
        flush(j);
}

static void open_level(struct cli_json *j, char open, char close, bool one_line)
{
    bool outer = j->depth > 0 ? j->level[j->depth - 1].one_line : j->one_line;

    before(j);
    if (j->depth == MAX_DEPTH) {
        fprintf(stderr, "zarrc: bug: JSON deeper than %d\n", MAX_DEPTH);
        abort();
    }
    cli_string_add(&j->buffer, &open, 1);
    j->level[j->depth++] = (struct level){close, one_line || outer, false};
}

int cli_json_depth(const struct cli_json *j)
{
    return j->depth;
}

void cli_json_end_to(struct cli_json *j, int depth)
{
    while (j->depth > depth)
        cli_json_end(j);
}

void cli_json_object(struct cli_json *j)
{
    open_level(j, '{', '}', false);
}

void cli_json_array(struct cli_json *j)
{
    open_level(j, '[', ']', false);
}

void cli_json_list(struct cli_json *j)
{
    open_level(j, '[', ']', true);
}

void cli_json_end(struct cli_json *j)
{
    struct level l = j->level[--j->depth];

    if (l.any && !l.one_line)
        newline(j);
    cli_string_add(&j->buffer, &l.close, 1);
}

/* The length of the UTF-8 sequence at t, or 0 if it is not valid. */
static size_t utf8_length(const unsigned char *t)
{
    size_t n = t[0] < 0x80   ? 1
               : t[0] < 0xc2 ? 0
               : t[0] < 0xe0 ? 2
               : t[0] < 0xf0 ? 3
               : t[0] < 0xf5 ? 4
                             : 0;

    for (size_t i = 1; i < n; i++)
        if ((t[i] & 0xc0) != 0x80)
            return 0;
    if ((t[0] == 0xe0 && t[1] < 0xa0) || (t[0] == 0xed && t[1] > 0x9f) ||
        (t[0] == 0xf0 && t[1] < 0x90) || (t[0] == 0xf4 && t[1] > 0x8f))
        return 0;
    return n;
}

void cli_string_add_quoted(struct cli_string *s, const char *text)
{
    const unsigned char *t = (const unsigned char *)text;

    cli_string_add(s, "\"", 1);
    while (*t) {
        size_t n = utf8_length(t);

        if (n == 0)
            cli_string_add(s, "\xef\xbf\xbd", 3);
        else if (*t == '"' || *t == '\\')
            cli_string_printf(s, "\\%c", *t);
        else if (*t == '\n')
            cli_string_add(s, "\\n", 2);
        else if (*t == '\t')
            cli_string_add(s, "\\t", 2);
        else if (*t < 0x20 || *t == 0x7f)
            cli_string_printf(s, "\\u%04x", *t);
        else
            cli_string_add(s, t, n);
        t += n ? n : 1;
    }
    cli_string_add(s, "\"", 1);
}

bool cli_is_utf8(const char *text)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t n = 1;

    for (; *t && n; t += n)
        n = utf8_length(t);
    return n > 0;
}

char *cli_json_quote(const char *text)
{
    struct cli_string s = {0};

    cli_string_add_quoted(&s, text);
    return s.text;
}

struct cli_json *cli_key(struct cli_json *j, const char *key)
{
    before(j);
    cli_string_add_quoted(&j->buffer, key);
    cli_string_add(&j->buffer, ": ", 2);
    j->after_key = true;
    return j;
}

static void raw(struct cli_json *j, const char *text)
{
    before(j);
    cli_string_add(&j->buffer, text, strlen(text));
}

void cli_json_text(struct cli_json *j, const char *utf8)
{
    if (!utf8) {
        raw(j, "null");
        return;
    }
    before(j);
    cli_string_add_quoted(&j->buffer, utf8);
}

void cli_json_u64(struct cli_json *j, uint64_t value)
{
    before(j);
    cli_string_printf(&j->buffer, "%" PRIu64, value);
}

void cli_json_i64(struct cli_json *j, int64_t value)
{
    before(j);
    cli_string_printf(&j->buffer, "%" PRId64, value);
}

void cli_json_f64(struct cli_json *j, double value)
{
    char text[40];

    if (isnan(value)) {
        raw(j, "\"NaN\"");
    } else if (isinf(value)) {
        raw(j, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
        raw(j, text);
    }
}

void cli_json_bool(struct cli_json *j, bool value)
{
    raw(j, value ? "true" : "false");
}

void cli_json_null(struct cli_json *j)
{
    raw(j, "null");
}

/* ---- indenting JSON text anew ---- */

/* The length that the container at text has on one line, or any value above LINE_BYTES
 * if it is longer. */
static size_t measure(const char *text)
{
    size_t n = 0;
    int depth = 0;
    bool inside = false;

    for (const char *t = text; *t && n <= LINE_BYTES; t++) {
        if (inside) {
            n++;
            if (*t == '\\' && t[1])
                t++;
            else
                inside = *t != '"';
            continue;
        }
        if (strchr(" \t\r\n", *t))
            continue;
        n += *t == ',' || *t == ':' ? 2 : 1;
        inside = *t == '"';
        depth += (*t == '{' || *t == '[') - (*t == '}' || *t == ']');
        if (depth == 0)
            break;
    }
    return n;
}

/* The length of the string, number or literal at text. */
static size_t scalar_length(const char *text)
{
    size_t n = 1;

    if (*text != '"')
        return strcspn(text, ",:]} \t\r\n");
    while (text[n] && text[n] != '"')
        n += text[n] == '\\' && text[n + 1] ? 2 : 1;
    return text[n] ? n + 1 : n;
}

/* Whether the n bytes at text are a number that JSON does not have. */
static bool is_token(const char *text, size_t n)
{
    static const char *const tokens[] = {"NaN", "Infinity", "-Infinity"};
    bool is = false;

    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        is = is || (strlen(tokens[i]) == n && strncmp(text, tokens[i], n) == 0);
    return is;
}

void cli_json_raw(struct cli_json *j, const char *json)
{
    const int outside = j->depth;
    const char *t = json ? json : "null";

    while (*t) {
        size_t n = 1, quotes;

        if (*t == '{' || *t == '[') {
            open_level(j, *t, *t == '{' ? '}' : ']', measure(t) <= LINE_BYTES);
        } else if (*t == '}' || *t == ']') {
            if (j->depth <= outside)
                return; /* invalid: it would close a level of the caller */
            cli_json_end(j);
        } else if (*t == ':') {
            cli_string_add(&j->buffer, ": ", 2);
            j->after_key = true;
        } else if (!strchr(", \t\r\n", *t)) {
            n = scalar_length(t);
            n = n ? n : 1;
            before(j);
            quotes = !j->out && is_token(t, n) ? 1 : 0;
            cli_string_add(&j->buffer, "\"", quotes);
            cli_string_add(&j->buffer, t, n);
            cli_string_add(&j->buffer, "\"", quotes);
        }
        t += n;
    }
}

char *cli_json_line(const char *json, size_t bytes)
{
    char *text = cli_format("%.*s", (int)bytes, json);
    struct cli_string out = {0};
    struct cli_json *j = cli_json_start(NULL, &out, true);

    cli_json_raw(j, text);
    cli_json_finish(j);
    free(text);
    return out.text;
}

struct cli_json *cli_json_node(struct cli *cli, const char *shown)
{
    struct cli_json *j = cli_json(cli);

    cli_json_object(j);
    cli_json_text(cli_key(j, "node"), shown);
    return j;
}

void cli_json_shape(struct cli_json *j, int32_t ndim, const uint64_t *shape)
{
    if (!shape) {
        cli_json_null(j);
        return;
    }
    cli_json_list(j);
    for (int32_t d = 0; d < ndim; d++)
        cli_json_u64(j, shape[d]);
    cli_json_end(j);
}
