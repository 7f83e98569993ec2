/*
 * json/write.c - tree to text, compact or in the layout of Python's json.dumps(indent=n),
 * which other Zarr implementations write. The output is strict JSON whatever was read:
 * NaN and Infinity become strings, except in zr_json_write_tokens() and after
 * zr_json_keep_tokens(). Strings stay UTF-8,
 * and only what must be escaped is escaped. Iterative, with one position a level.
 * Thread class: solo in `out`, frozen in the tree.
 */
#include "json_int.h"

#include <string.h>

static void write_escape(struct zr_str *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *named = NULL;
    char text[6] = {'\\', 'u', '0', '0', 0, 0};

    switch (c) {
    case '"':
        named = "\\\"";
        break;
    case '\\':
        named = "\\\\";
        break;
    case '\b':
        named = "\\b";
        break;
    case '\f':
        named = "\\f";
        break;
    case '\n':
        named = "\\n";
        break;
    case '\r':
        named = "\\r";
        break;
    case '\t':
        named = "\\t";
        break;
    default:
        text[4] = digits[c >> 4];
        text[5] = digits[c & 15];
    }
    zr_str_append(out, named ? named : text, named ? 2 : sizeof text);
}

void zr_json_write_string(struct zr_str *out, const char *s, size_t bytes)
{
    size_t done = 0;

    zr_str_putc(out, '"');
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        zr_str_append(out, s + done, i - done);
        write_escape(out, c);
        done = i + 1;
    }
    zr_str_append(out, s + done, bytes - done);
    zr_str_putc(out, '"');
}

static bool is_token(const struct zr_json *number)
{
    return strpbrk(number->u.text.ptr, "NI") != NULL;
}

static void write_number(struct zr_str *out, const struct zr_json *v, bool tokens)
{
    const bool quoted = is_token(v) && !tokens && !v->u.text.bare;

    if (quoted)
        zr_str_putc(out, '"');
    zr_str_append(out, v->u.text.ptr, v->u.text.bytes);
    if (quoted)
        zr_str_putc(out, '"');
}

/* Writes a value, or the opening bracket of a value with children. */
static void write_node(struct zr_str *out, const struct zr_json *v, bool tokens)
{
    static const char *const words[] = {"null", "false", "true"};

    if (v->type == ZR_JSON_NUMBER)
        write_number(out, v, tokens);
    else if (v->type == ZR_JSON_STRING)
        zr_json_write_string(out, v->u.text.ptr, v->u.text.bytes);
    else if (v->type < ZR_JSON_NUMBER)
        zr_str_puts(out, words[v->type]);
    else if (v->u.children.n == 0)
        zr_str_puts(out, v->type == ZR_JSON_OBJECT ? "{}" : "[]");
    else
        zr_str_putc(out, v->type == ZR_JSON_OBJECT ? '{' : '[');
}

static void write_line(struct zr_str *out, unsigned indent, size_t depth)
{
    static const char blanks[] = "                                ";
    size_t n = indent * depth;

    if (indent == 0)
        return;
    zr_str_putc(out, '\n');
    for (; n > sizeof blanks - 1; n -= sizeof blanks - 1)
        zr_str_append(out, blanks, sizeof blanks - 1);
    zr_str_append(out, blanks, n);
}

static void write_key(struct zr_str *out, const struct zr_json *v, unsigned indent)
{
    if (!v->key)
        return;
    zr_json_write_string(out, v->key, v->key_bytes);
    zr_str_puts(out, indent ? ": " : ":");
}

static void write_tree(const struct zr_json *v, unsigned indent, bool tokens,
                       struct zr_str *out)
{
    const struct zr_json **level, *child;
    struct zr_json_stack around;

    if (!v)
        return;
    zr_json_stack_init(&around, sizeof *level, out->alloc);
    for (write_node(out, v, tokens); !out->failed;) {
        child = NULL;
        if (v->type >= ZR_JSON_ARRAY && v->u.children.n > 0) { /* go down */
            level = zr_json_stack_push(&around);
            if (!level) {
                out->failed = true;
                break;
            }
            *level = v;
            child = v->u.children.first;
        }
        while (!child && around.depth > 0) { /* on, or up */
            child = v->next;
            if (child) {
                zr_str_putc(out, ',');
            } else {
                level = zr_json_stack_top(&around);
                v = *level;
                around.depth--;
                write_line(out, indent, around.depth);
                zr_str_putc(out, v->type == ZR_JSON_OBJECT ? '}' : ']');
            }
        }
        if (!child)
            break;
        v = child;
        write_line(out, indent, around.depth);
        write_key(out, v, indent);
        write_node(out, v, tokens);
    }
    zr_json_stack_deinit(&around);
}

void zr_json_write(const struct zr_json *v, unsigned indent, struct zr_str *out)
{
    write_tree(v, indent, false, out);
}

void zr_json_write_tokens(const struct zr_json *v, struct zr_str *out)
{
    write_tree(v, 0, true, out);
}

/* The way back up: while a container is open, its last child's `next` points to it, and
 * only there. */
static bool is_way_up(const struct zr_json *v, const struct zr_json *next)
{
    return next->type >= ZR_JSON_ARRAY && next->u.children.last == v;
}

/* Needs no memory, so it cannot fail. */
static void change_tokens(struct zr_json *v, bool keep)
{
    struct zr_json *const top = v;

    while (v) {
        if (v->type == ZR_JSON_NUMBER && is_token(v) && keep)
            v->u.text.bare = true;
        else if (v->type == ZR_JSON_NUMBER && is_token(v) && !v->u.text.bare)
            v->type = ZR_JSON_STRING; /* the text does not change */
        if (v->type >= ZR_JSON_ARRAY && v->u.children.first) {
            v->u.children.last->next = v;
            v = v->u.children.first;
            continue;
        }
        while (v != top && is_way_up(v, v->next)) {
            struct zr_json *around = v->next;

            v->next = NULL;
            v = around;
        }
        v = v != top ? v->next : NULL;
    }
}

void zr_json_quote_tokens(struct zr_json *v)
{
    change_tokens(v, false);
}

void zr_json_keep_tokens(struct zr_json *v)
{
    change_tokens(v, true);
}

enum {
    EXCERPT_DEPTH = 8 /* how many levels of lists and objects are shown */
};

/* A text with a limit; text beyond it becomes "...". */
struct excerpt {
    char *text;
    size_t cap, n;
    bool cut;
};

static void excerpt_put(struct excerpt *e, const char *s, size_t bytes)
{
    for (size_t i = 0; i < bytes && !e->cut; i++) {
        if (e->n + 5 >= e->cap) { /* room for ..." and the NUL */
            while (e->n > 1 && i > 0 && ((unsigned char)s[i] & 0xC0) == 0x80) {
                i--; /* do not cut a UTF-8 sequence */
                e->n--;
            }
            memcpy(e->text + e->n, "...", 3);
            e->n += 3;
            e->cut = true;
            break;
        }
        e->text[e->n++] = s[i];
    }
}

/* Writes control characters, also NUL, as JSON does. */
static void excerpt_string(struct excerpt *e, const char *s, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const bool begun = !e->cut;
    size_t done = 0;

    excerpt_put(e, "\"", 1);
    for (size_t i = 0; i < bytes && !e->cut; i++) {
        const unsigned char c = (unsigned char)s[i];
        const char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};

        if (c >= 0x20)
            continue;
        excerpt_put(e, s + done, i - done);
        excerpt_put(e, escape, sizeof escape);
        done = i + 1;
    }
    excerpt_put(e, s + done, bytes - done);
    if (begun && e->n + 1 < e->cap)
        e->text[e->n++] = '"';
}

static void excerpt_scalar(struct excerpt *e, const struct zr_json *v)
{
    const char *name = zr_json_type_text(v);

    if (v && v->type == ZR_JSON_STRING)
        excerpt_string(e, v->u.text.ptr, v->u.text.bytes);
    else if (v && v->type == ZR_JSON_NUMBER)
        excerpt_put(e, v->u.text.ptr, v->u.text.bytes);
    else if (v && v->type >= ZR_JSON_ARRAY && zr_json_count(v) == 0)
        excerpt_put(e, v->type == ZR_JSON_ARRAY ? "[]" : "{}", 2);
    else if (v && v->type >= ZR_JSON_ARRAY)
        excerpt_put(e, "...", 3);
    else
        excerpt_put(e, name, strlen(name));
}

const char *zr_json_excerpt(const struct zr_json *v, char *text, size_t cap)
{
    struct excerpt e = {.text = text, .cap = cap};
    const struct zr_json *open[EXCERPT_DEPTH];
    size_t depth = 0;

    if (cap < 8)
        return "";
    while (!e.cut) {
        if (depth && v->key) {
            excerpt_string(&e, v->key, v->key_bytes);
            excerpt_put(&e, ":", 1);
        }
        if (v && v->type >= ZR_JSON_ARRAY && zr_json_count(v) && depth < EXCERPT_DEPTH) {
            excerpt_put(&e, v->type == ZR_JSON_ARRAY ? "[" : "{", 1);
            open[depth++] = v;
            v = v->u.children.first;
            continue;
        }
        excerpt_scalar(&e, v);
        while (depth && !v->next) {
            v = open[--depth];
            excerpt_put(&e, v->type == ZR_JSON_ARRAY ? "]" : "}", 1);
        }
        if (!depth)
            break;
        excerpt_put(&e, ",", 1);
        v = v->next;
    }
    text[e.n] = '\0';
    return text;
}
