/*
 * frame/json_in.c - reads members, items and strings of JSON text that the library wrote.
 * Such text is valid, so these functions only skip over values and do not validate.
 * Other text must not come here before the library has accepted it, except to
 * cli_json_value_end(). Nothing recurses; only keys are copied.
 */
#include "frame/frame.h"

#include <stdlib.h>
#include <string.h>

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
        t = skip_space(skip_string(t));
        t = skip_space(*t == ':' ? t + 1 : t);
    }
    value = t;
    *at = cli_json_value_end(t);
    return value;
}

const char *cli_json_members(const char *object)
{
    const char *at = object ? skip_space(object) : "";

    return *at == '{' ? at + 1 : "";
}

const char *cli_json_next(const char **at, char **key, size_t *bytes)
{
    const char *name = NULL, *value = next_value(at, &name);

    if (!value)
        return NULL;
    *bytes = (size_t)(*at - value);
    *key = cli_json_unquote(name, (size_t)(skip_string(name) - name));
    return value;
}

const char *cli_json_member(const char *object, const char *key, size_t *bytes)
{
    const char *at = skip_space(object), *name = NULL, *value;
    char *quoted;
    size_t n;

    if (*at != '{')
        return NULL;
    at++;
    quoted = cli_json_quote(key);
    n = strlen(quoted);
    while ((value = next_value(&at, &name)))
        if (strncmp(name, quoted, n) == 0)
            break;
    free(quoted);
    if (value)
        *bytes = (size_t)(at - value);
    return value;
}

const char *cli_json_item(const char *array, size_t i, size_t *bytes)
{
    const char *at = skip_space(array), *value = NULL;

    if (*at != '[')
        return NULL;
    at++;
    for (size_t k = 0; k <= i; k++) {
        value = next_value(&at, NULL);
        if (!value)
            return NULL;
    }
    *bytes = (size_t)(at - value);
    return value;
}

static unsigned hex4(const char *t)
{
    unsigned value = 0;

    for (int i = 0; i < 4 && t[i]; i++)
        value = value * 16 + (unsigned)(t[i] <= '9'   ? t[i] - '0'
                                        : t[i] >= 'a' ? t[i] - 'a' + 10
                                                      : t[i] - 'A' + 10);
    return value;
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
