/*
 * frame/json.c - writes JSON documents value by value. Members keep the order in which
 * they are written. Numbers are exact: floats get the fewest digits that read back equal.
 * Invalid UTF-8 becomes U+FFFD. Nothing depends on the locale. The output of --json is a
 * stable interface: later versions may add members, but never remove one. Each man page
 * lists the members. The other functions read members, items and strings of JSON text
 * that the library wrote. Such text is valid, so they only skip over values and do not
 * validate. Other text must not come to them before the library has accepted it, except
 * to cli_json_value_end(). Nothing recurses; only keys are copied.
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
    struct cli_string *out, buffer; /* out: the caller's, or the buffer of stdout */
    struct level level[MAX_DEPTH];
    int depth;
    bool one_line, after_key;
};

struct cli_json *cli_json_start(struct cli *cli, struct cli_string *out, bool one_line)
{
    struct cli_json *j = cli_alloc(sizeof *j);

    j->cli = cli;
    j->out = out ? out : &j->buffer;
    j->one_line = one_line;
    cli_string_add(j->out, "", 0);
    return j;
}

/* JSON may have U+007F to U+009F as they are, which terminals obey. */
static int flush(struct cli_json *j)
{
    struct cli_string clean = {0};
    int rc;

    cli_add_clean(&clean, j->buffer.text, j->buffer.n_bytes);
    rc = clean.n_bytes ? cli_out(j->cli, clean.text, clean.n_bytes) : CLI_OK;
    cli_string_free(&clean);
    j->buffer.n_bytes = 0;
    return rc;
}

int cli_json_finish(struct cli_json *j)
{
    int rc;

    cli_json_end_to(j, 0);
    if (j->buffer.n_bytes)
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
    cli_string_add(j->out, "\n", 1);
    for (int i = 0; i < j->depth; i++)
        cli_string_add(j->out, "  ", 2);
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
        cli_string_add(j->out, ",", 1);
    if (!l->one_line)
        newline(j);
    else if (l->any)
        cli_string_add(j->out, " ", 1);
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
    cli_string_add(j->out, &open, 1);
    j->level[j->depth++] = (struct level){close, one_line || outer, false};
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
    cli_string_add(j->out, &l.close, 1);
}

size_t cli_utf8_length(const char *text)
{
    const unsigned char *t = (const unsigned char *)text;
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
        size_t n = cli_utf8_length((const char *)t);

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
    size_t n = 1;

    for (; *text && n; text += n)
        n = cli_utf8_length(text);
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
    cli_string_add_quoted(j->out, key);
    cli_string_add(j->out, ": ", 2);
    j->after_key = true;
    return j;
}

static void raw(struct cli_json *j, const char *text)
{
    before(j);
    cli_string_add(j->out, text, strlen(text));
}

void cli_json_text(struct cli_json *j, const char *utf8)
{
    if (!utf8) {
        raw(j, "null");
        return;
    }
    before(j);
    cli_string_add_quoted(j->out, utf8);
}

void cli_json_u64(struct cli_json *j, uint64_t value)
{
    before(j);
    cli_string_printf(j->out, "%" PRIu64, value);
}

void cli_json_i64(struct cli_json *j, int64_t value)
{
    before(j);
    cli_string_printf(j->out, "%" PRId64, value);
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

/* ---- steps over JSON text ---- */

static const char *skip_space(const char *t)
{
    return t + strspn(t, " \t\r\n");
}

/* The end of the string that begins at t. */
static const char *skip_string(const char *t)
{
    for (t++; *t && *t != '"'; t++)
        if (*t == '\\' && t[1])
            t++;
    return *t ? t + 1 : t;
}

const char *cli_json_value_end(const char *t)
{
    int depth = 0;

    do {
        if (*t == '"') {
            t = skip_string(t);
            continue;
        }
        if (*t == '{' || *t == '[')
            depth++;
        else if (*t == '}' || *t == ']')
            depth--;
        else if (depth == 0)
            return t + strcspn(t, ",]} \t\r\n");
        t++;
    } while (*t && depth > 0);
    return t;
}

/* ---- indenting JSON text anew ---- */

/* The length that the container at text has on one line, or any value above LINE_BYTES
 * if it is longer. */
static size_t measure(const char *text)
{
    size_t n = 0;
    int depth = 0;

    do {
        const char *end = *text == '"' ? skip_string(text) : text + 1;

        if (!strchr(" \t\r\n", *text))
            n += *text == ',' || *text == ':' ? 2 : (size_t)(end - text);
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        text = end;
    } while (*text && n <= LINE_BYTES && depth > 0);
    return n;
}

/* Whether a number is one that JSON does not have: NaN, Infinity or -Infinity. */
static bool is_token(const char *text)
{
    text += *text == '-';
    return *text == 'N' || *text == 'I';
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
            cli_string_add(j->out, ": ", 2);
            j->after_key = true;
        } else if (!strchr(", \t\r\n", *t)) {
            n = (size_t)(cli_json_value_end(t) - t);
            before(j);
            quotes = j->out == &j->buffer && is_token(t);
            cli_string_add(j->out, "\"", quotes);
            cli_string_add(j->out, t, n);
            cli_string_add(j->out, "\"", quotes);
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

/* ---- reading ---- */

/* Steps over one member ("key: value"; key not NULL) or one item. Returns its value, or
 * NULL at the end. */
static const char *next_value(const char **at, const char **key)
{
    const char *t = skip_space(*at), *value;

    if (*t == ',')
        t = skip_space(t + 1);
    if (*t == '\0' || *t == '}' || *t == ']')
        return NULL;
    if (key) {
        *key = t;
        t = *t == '"' ? skip_space(skip_string(t)) : "";
        if (*t != ':')
            return NULL; /* a list has no members */
        t = skip_space(t + 1);
    }
    value = t;
    *at = cli_json_value_end(t);
    return value;
}

const char *cli_json_members(const char *container)
{
    const char *at = container ? skip_space(container) : "";

    return *at == '{' || *at == '[' ? at + 1 : "";
}

const char *cli_json_next(const char **at, char **key, size_t *bytes)
{
    const char *name = NULL, *value = next_value(at, key ? &name : NULL);

    if (value)
        *bytes = (size_t)(*at - value);
    if (value && key)
        *key = cli_json_unquote(name, (size_t)(skip_string(name) - name));
    return value;
}

const char *cli_json_member(const char *object, const char *key, size_t *bytes)
{
    const char *at = cli_json_members(object), *name = NULL, *value;
    char *quoted = cli_json_quote(key);

    while ((value = next_value(&at, &name)))
        if (strncmp(name, quoted, strlen(quoted)) == 0)
            break;
    free(quoted);
    if (value)
        *bytes = (size_t)(at - value);
    return value;
}

const char *cli_json_item(const char *array, size_t i, size_t *bytes)
{
    const char *at = cli_json_members(array), *value;

    do
        value = cli_json_next(&at, NULL, bytes);
    while (value && i-- > 0);
    return value;
}

static unsigned hex4(const char *t)
{
    char digits[5] = {0};

    memcpy(digits, t, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

static void add_utf8(struct cli_string *s, unsigned c)
{
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)(lead[n] | c);
    cli_string_add(s, b, n);
}

/* Adds the escape at t ("\n", "\u00e9" or a surrogate pair), which ends before end.
 * Returns the end of the escape. */
static const char *add_escape(struct cli_string *s, const char *t, const char *end)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = strchr(from, t[1]);
    unsigned c;

    if (t[1] != 'u' || end - t < 6) {
        cli_string_add(s, at ? &to[at - from] : t + 1, 1);
        return t + 2;
    }
    c = hex4(t + 2);
    if (c >= 0xd800 && c < 0xdc00 && end - t >= 12 && t[6] == '\\' && t[7] == 'u') {
        c = 0x10000 + ((c - 0xd800) << 10) + (hex4(t + 8) - 0xdc00);
        t += 6;
    }
    add_utf8(s, c);
    return t + 6;
}

bool cli_json_unquote_to(const char *json, size_t bytes, struct cli_string *out)
{
    const char *t = json + 1, *end = json + bytes - 1;

    if (bytes < 2 || *json != '"')
        return false;
    cli_string_add(out, "", 0);
    while (t < end)
        if (*t == '\\') {
            t = add_escape(out, t, end);
        } else {
            cli_string_add(out, t, 1);
            t++;
        }
    return true;
}

char *cli_json_unquote(const char *json, size_t bytes)
{
    struct cli_string s = {0};

    return cli_json_unquote_to(json, bytes, &s) ? s.text : NULL;
}
