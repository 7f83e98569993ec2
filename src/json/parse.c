/*
 * json/parse.c - text to tree, in one pass over a private copy of the text. The copy is
 * in the document's arena and is edited in place. Strings are unescaped in place, and the
 * byte after each string or number (its quote or delimiter, already read) becomes the
 * terminating NUL. So a value costs one node and no copy, and the address of a key still
 * gives its position. There is no recursion and no stack: an open container has no next
 * sibling yet, so its `next` points to the container around it until it is closed. The
 * copy ends with NULs, which no token accepts, so no loop compares with the end. There
 * are eight, because blanks and strings are looked at in words of eight bytes.
 *
 * Refused: everything that RFC 8259 refuses except a leading BOM and the bare tokens NaN,
 * Infinity and -Infinity; duplicate keys; lone surrogates; what is beyond a limit.
 *
 * Thread class: a parse is solo.
 */
#include "json_int.h"

#include <string.h>

/* The limits that apply if a member of zarr_limits is zero; zarrc/limits.h documents
 * them. */
enum {
    DEPTH_DEFAULT = 64,
    TOKENS_DEFAULT = 4 << 20,
    STRING_DEFAULT = 1 << 20
};

enum {
    JSON_BEHIND = 8 /* NULs behind the text */
};

struct parser {
    char *base, *p, *end;
    char *number_end; /* where a NUL must be written after the delimiter there is read */
    struct zr_json_doc *doc;
    struct zr_json *open; /* innermost open container */
    uint64_t depth, max_depth, n_values, max_values;
    size_t max_string;
    struct zr_json_keys keys;
    zarr_error *err;
};

/* Bytes of a string that need no further check: printable ASCII without " and \. */
static const uint8_t json_plain[256] = {
    [0x20] = 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, /* " */
    [0x30] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x40] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x50] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, /* \ */
    [0x60] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x70] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

static uint64_t json_position(const struct parser *ps, const char *at)
{
    return (uint64_t)(at - ps->base);
}

static zarr_status json_bad(const struct parser *ps, const char *at, const char *what)
{
    uint64_t pos = json_position(ps, at);

    if (at >= ps->end)
        return zr_fail(ps->err, ZARR_ERR_CORRUPT,
                       "byte %" PRIu64 ": the JSON text ends where %s is expected", pos,
                       what);
    return zr_fail(ps->err, ZARR_ERR_CORRUPT, "byte %" PRIu64 ": %s is expected", pos,
                   what);
}

static zarr_status json_bad_string(const struct parser *ps, const char *at,
                                   const char *why)
{
    return zr_fail(ps->err, ZARR_ERR_CORRUPT, "byte %" PRIu64 ": %s",
                   json_position(ps, at),
                   at >= ps->end ? "the JSON text ends in a string" : why);
}

/* Eight bytes at once, the first lowest. Behind the text is room for them. */
#define JSON_BYTES(c) (UINT64_C(0x0101010101010101) * (uint64_t)(c))
#define JSON_HIGH     JSON_BYTES(0x80)

/* The index of the first byte that has a bit in `bits`, which is not 0. */
static inline size_t json_first(uint64_t bits)
{
    return (size_t)__builtin_ctzll(bits) / 8;
}

static inline char *json_blanks(char *p)
{
    if ((unsigned char)*p > ' ')
        return p;
    for (;;) {
        const uint64_t others = zr_load_le64(p) ^ JSON_BYTES(' ');

        if (others == 0) { /* the indent of a nested value */
            p += 8;
            continue;
        }
        p += json_first(others);
        if (*p != '\n' && *p != '\r' && *p != '\t')
            return p;
        p++;
    }
}

/* Skips the bytes that json_plain has. In each of the four terms, the lowest bit belongs
 * to a byte that is not plain; a borrow can only set bits above it. */
static inline char *json_plain_end(char *p)
{
    for (;; p += 8) {
        const uint64_t w = zr_load_le64(p);
        const uint64_t quote = w ^ JSON_BYTES('"'), escape = w ^ JSON_BYTES('\\');
        const uint64_t other =
            (((quote - JSON_BYTES(1)) & ~quote) | ((escape - JSON_BYTES(1)) & ~escape) |
             ((w - JSON_BYTES(0x20)) & ~w) | w) &
            JSON_HIGH;

        if (other != 0)
            return p + json_first(other);
    }
}

/* ---- strings ------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the four digits of \uXXXX. Returns -1 if there are others. The final NUL stops it
 * in time. */
static int32_t hex_unit(const char *p)
{
    int32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);

        if (d < 0)
            return -1;
        unit = unit << 4 | d;
    }
    return unit;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xE0 | c >> 12);
        } else {
            *to++ = (char)(0xF0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
    }
    *to++ = (char)(0x80 | (c & 0x3F));
    return to;
}

/* Reads an escape; p is at its 'u'. Writes at *to, which is never after p. */
static zarr_status json_unicode(const struct parser *ps, char **p, char **to)
{
    const char *escape = *p - 1;
    int32_t unit = hex_unit(*p + 1), low;

    if (unit < 0)
        return json_bad_string(ps, escape, "\\u needs four hexadecimal digits");
    *p += 5;
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return json_bad_string(ps, escape, "lone surrogate");
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        low = (*p)[0] == '\\' && (*p)[1] == 'u' ? hex_unit(*p + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return json_bad_string(ps, escape, "lone surrogate");
        *p += 6;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    *to = put_utf8(*to, (uint32_t)unit);
    return ZARR_OK;
}

static zarr_status json_escape(const struct parser *ps, char **p, char **to)
{
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    const char *hit;

    (*p)++;
    if (**p == 'u')
        return json_unicode(ps, p, to);
    hit = **p ? strchr(from, **p) : NULL;
    if (!hit)
        return json_bad_string(ps, *p, "unknown escape in a string");
    *(*to)++ = into[hit - from];
    (*p)++;
    return ZARR_OK;
}

/* The length of the UTF-8 sequence at s; 0: malformed, overlong, a surrogate, or too
 * large. */
static size_t utf8_length(const unsigned char *s)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t n;

    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        n = 2;
    else if (s[0] >= 0xE0 && s[0] <= 0xEF)
        n = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4)
        n = 4;
    else
        return 0;
    if (s[0] == 0xE0)
        low = 0xA0;
    else if (s[0] == 0xED)
        high = 0x9F;
    else if (s[0] == 0xF0)
        low = 0x90;
    else if (s[0] == 0xF4)
        high = 0x8F;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* Reads the rest of a string, from the first byte that is not plain to its closing
 * quote. */
static zarr_status json_string_rest(struct parser *ps, char *p, char **to_io)
{
    zarr_status st = ZARR_OK;
    char *to = *to_io;

    for (;;) {
        unsigned char c = (unsigned char)*p;

        if (json_plain[c]) {
            *to++ = *p++;
        } else if (c == '"') {
            break;
        } else if (c == '\\') {
            ZR_TRY(json_escape(ps, &p, &to));
        } else if (c < 0x80) {
            st = json_bad_string(ps, p, "control character in a string");
            goto out;
        } else {
            size_t n = utf8_length((const unsigned char *)p);

            if (n == 0) {
                st = json_bad_string(ps, p, "malformed UTF-8");
                goto out;
            }
            memmove(to, p, n);
            to += n;
            p += n;
        }
    }
out:
    ps->p = p;
    *to_io = to;
    return st;
}

/* ps->p is after the opening quote on entry, and after the closing one on return. */
static zarr_status json_string(struct parser *ps, const char **text, size_t *bytes)
{
    zarr_status st = ZARR_OK;
    char *start = ps->p, *p = start, *to;

    p = json_plain_end(p);
    to = p;
    ps->p = p;
    if (*p != '"')
        ZR_TRY(json_string_rest(ps, p, &to));
    *bytes = (size_t)(to - start);
    *text = start;
    if (*bytes > ps->max_string) {
        st = zr_fail(ps->err, ZARR_ERR_LIMIT,
                     "byte %" PRIu64 ": string of %zu bytes, limit string_bytes is %zu",
                     json_position(ps, start) - 1, *bytes, ps->max_string);
        goto out;
    }
    *to = '\0';
    ps->p++;
out:
    return st;
}

/* ---- numbers and words ---------------------------------------------------- */

static char *json_digits(char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Returns the end of the number at p, or NULL and in *bad where it goes wrong. */
static char *json_number_end(char *p, char **bad)
{
    char *from;

    p += *p == '-';
    if (*p == '0') {
        p++;
    } else {
        from = p;
        p = json_digits(p);
        if (p == from)
            goto fail;
    }
    if (*p == '.') {
        from = ++p;
        p = json_digits(p);
        if (p == from)
            goto fail;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        from = p;
        p = json_digits(p);
        if (p == from)
            goto fail;
    }
    return p;
fail:
    *bad = p;
    return NULL;
}

static void set_literal(struct parser *ps, struct zr_json *v, char *start, char *behind)
{
    v->type = ZR_JSON_NUMBER;
    v->u.text.ptr = start;
    v->u.text.bytes = (size_t)(behind - start);
    ps->number_end = behind;
    ps->p = behind;
}

static zarr_status json_number(struct parser *ps, struct zr_json *v)
{
    char *start = ps->p, *bad = start;
    char *behind;

    if (start[0] == '-' && strncmp(start, "-Infinity", 9) == 0) {
        ps->doc->nan_tokens = true;
        set_literal(ps, v, start, start + 9);
        return ZARR_OK;
    }
    behind = json_number_end(start, &bad);
    if (!behind)
        return json_bad(ps, bad, "a digit");
    if (*behind >= '0' && *behind <= '9')
        return zr_fail(ps->err, ZARR_ERR_CORRUPT,
                       "byte %" PRIu64 ": number with a leading zero",
                       json_position(ps, start));
    if ((size_t)(behind - start) > ps->max_string)
        return zr_fail(ps->err, ZARR_ERR_LIMIT,
                       "byte %" PRIu64 ": number of %zu bytes, limit string_bytes is %zu",
                       json_position(ps, start), (size_t)(behind - start),
                       ps->max_string);
    set_literal(ps, v, start, behind);
    return ZARR_OK;
}

static zarr_status json_word(struct parser *ps, struct zr_json *v)
{
    static const struct {
        const char *text;
        uint8_t bytes, type;
    } words[] = {{"null", 4, ZR_JSON_NULL},
                 {"true", 4, ZR_JSON_TRUE},
                 {"false", 5, ZR_JSON_FALSE},
                 {"NaN", 3, ZR_JSON_NUMBER},
                 {"Infinity", 8, ZR_JSON_NUMBER}};

    for (size_t i = 0; i < ZR_COUNT(words); i++) {
        if (*ps->p != words[i].text[0] ||
            strncmp(ps->p, words[i].text, words[i].bytes) != 0)
            continue;
        if (words[i].type == ZR_JSON_NUMBER) {
            ps->doc->nan_tokens = true;
            set_literal(ps, v, ps->p, ps->p + words[i].bytes);
        } else {
            v->type = (enum zr_json_type)words[i].type;
            ps->p += words[i].bytes;
        }
        return ZARR_OK;
    }
    return json_bad(ps, ps->p, "a value");
}

/* ---- structure ------------------------------------------------------------ */

static zarr_status json_limit_values(const struct parser *ps)
{
    return zr_fail(ps->err, ZARR_ERR_LIMIT,
                   "byte %" PRIu64 ": more than %" PRIu64
                   " JSON values, limit json_tokens",
                   json_position(ps, ps->p), ps->max_values);
}

/* Reads the "key": of the next member; the node gets the key. */
static zarr_status json_key(struct parser *ps, struct zr_json *v)
{
    zarr_status st = ZARR_OK;
    size_t bytes = 0;

    if (*ps->p != '"') {
        st = json_bad(ps, ps->p, "a key in quotes");
        goto out;
    }
    ps->p++;
    ZR_TRY(json_string(ps, &v->key, &bytes));
    v->key_bytes = (uint32_t)bytes; /* max_string is capped at UINT32_MAX */
    ps->p = json_blanks(ps->p);
    if (*ps->p != ':') {
        st = json_bad(ps, ps->p, "':'");
        goto out;
    }
    ps->p = json_blanks(ps->p + 1);
out:
    return st;
}

static zarr_status json_push(struct parser *ps, struct zr_json *v, enum zr_json_type type)
{
    if (++ps->depth > ps->max_depth)
        return zr_fail(ps->err, ZARR_ERR_LIMIT,
                       "byte %" PRIu64 ": nested deeper than %" PRIu64
                       ", limit json_depth",
                       json_position(ps, ps->p), ps->max_depth);
    v->type = type;
    v->next = ps->open; /* used for the way back: see the top of the file */
    ps->open = v;
    ps->p++;
    return ZARR_OK;
}

/* Reads the value at ps->p, with its key inside an object, and links it to the open
 * container. Opening brackets are entered, not read to their end. */
static zarr_status json_value(struct parser *ps)
{
    zarr_status st = ZARR_OK;
    struct zr_json *around = ps->open;
    struct zr_json *v = zr_json_node(ps->doc);

    if (!v) {
        st = zr_fail_memory(ps->err, sizeof *v);
        goto out;
    }
    if (ps->n_values++ >= ps->max_values) {
        st = json_limit_values(ps);
        goto out;
    }
    if (around && around->type == ZR_JSON_OBJECT)
        ZR_TRY(json_key(ps, v));
    if (around)
        zr_json_link(around, v);
    else
        ps->doc->root = v;

    if (*ps->p == '"') {
        v->type = ZR_JSON_STRING;
        ps->p++;
        ZR_TRY(json_string(ps, &v->u.text.ptr, &v->u.text.bytes));
    } else if (*ps->p == '-' || (*ps->p >= '0' && *ps->p <= '9')) {
        ZR_TRY(json_number(ps, v));
    } else if (*ps->p == '{') {
        ZR_TRY(json_push(ps, v, ZR_JSON_OBJECT));
    } else if (*ps->p == '[') {
        ZR_TRY(json_push(ps, v, ZR_JSON_ARRAY));
    } else {
        ZR_TRY(json_word(ps, v));
    }
out:
    return st;
}

static zarr_status json_pop(struct parser *ps)
{
    zarr_status st = ZARR_OK;
    struct zr_json *v = ps->open;
    const struct zr_json *twice = NULL;

    ps->open = v->next;
    v->next = NULL;
    ps->depth--;
    ps->p++;
    if (v->type == ZR_JSON_OBJECT && v->u.children.n > 1) {
        ZR_TRY(zr_json_keys_check(&ps->keys, v, &twice, ps->err));
        if (twice)
            st = zr_fail(ps->err, ZARR_ERR_CORRUPT,
                         "byte %" PRIu64 ": key \"%.64s\" occurs twice",
                         json_position(ps, twice->key) - 1, twice->key);
    }
out:
    return st;
}

/* After a value: closes the containers that end here and moves to the next value or to
 * the end. */
static zarr_status json_after_value(struct parser *ps)
{
    zarr_status st = ZARR_OK;

    while (ps->open) {
        char c = *(ps->p = json_blanks(ps->p));
        bool object = ps->open->type == ZR_JSON_OBJECT;

        if (c == ',') {
            if (ps->number_end)
                *ps->number_end = '\0';
            ps->number_end = NULL;
            ps->p = json_blanks(ps->p + 1);
            goto out;
        }
        if (c != (object ? '}' : ']')) {
            st = json_bad(ps, ps->p, object ? "',' or '}'" : "',' or ']'");
            goto out;
        }
        if (ps->number_end)
            *ps->number_end = '\0';
        ps->number_end = NULL;
        ZR_TRY(json_pop(ps));
    }
out:
    return st;
}

static zarr_status json_document(struct parser *ps)
{
    zarr_status st = ZARR_OK;

    ps->p = json_blanks(ps->p);
    do {
        const struct zr_json *before = ps->open;

        ZR_TRY(json_value(ps));
        if (ps->open != before) { /* entered a container: is it empty? */
            ps->p = json_blanks(ps->p);
            if (*ps->p != (ps->open->type == ZR_JSON_OBJECT ? '}' : ']'))
                continue;
            ZR_TRY(json_pop(ps));
        }
        ZR_TRY(json_after_value(ps));
    } while (ps->open);

    ps->p = json_blanks(ps->p);
    if (ps->p != ps->end)
        st = zr_fail(ps->err, ZARR_ERR_CORRUPT,
                     "byte %" PRIu64 ": text after the JSON value",
                     json_position(ps, ps->p));
    else if (ps->number_end)
        *ps->number_end = '\0';
out:
    return st;
}

static void json_limits(struct parser *ps, const zarr_limits *limits)
{
    uint64_t depth = limits ? limits->json_depth : 0;
    uint64_t values = limits ? limits->json_tokens : 0;
    uint64_t string = limits ? limits->string_bytes : 0;

    ps->max_depth = ZR_MIN(depth ? depth : DEPTH_DEFAULT, (uint64_t)ZR_JSON_DEPTH_MAX);
    ps->max_values = values ? values : TOKENS_DEFAULT;
    ps->max_string =
        (size_t)ZR_MIN(string ? string : STRING_DEFAULT, (uint64_t)UINT32_MAX);
}

/* Takes `bytes` of the arena. A fresh document gets one block for the text and the first
 * slab: most documents are smaller than a block that the arena chooses by itself. */
static char *json_room(struct zr_json_doc *doc, size_t bytes)
{
    if (doc->n_spare == 0 && bytes <= SIZE_MAX / 2)
        zr_arena_expect(&doc->arena, bytes + doc->slab * sizeof *doc->spare);
    return zr_arena_alloc(&doc->arena, bytes);
}

zarr_status zr_json_parse(struct zr_json_doc *doc, const char *text, size_t bytes,
                          const zarr_limits *limits, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct parser ps = {.doc = doc, .err = err};
    size_t skip = bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    size_t room;

    doc->root = NULL;
    doc->nan_tokens = false;
    json_limits(&ps, limits);
    zr_json_keys_init(&ps.keys, doc->arena.alloc);
    /* A value takes at least 2 bytes of text, 12 on average. The slabs of nodes follow
     * from that. */
    doc->slab = ZR_MAX(doc->slab, ZR_MIN(bytes / 12 + 8, (size_t)1024));
    if (!zr_add_size(bytes, JSON_BEHIND, &room) || !(ps.base = json_room(doc, room))) {
        st = zr_fail_memory(err, bytes);
        goto out;
    }
    if (bytes)
        memcpy(ps.base, text, bytes);
    memset(ps.base + bytes, 0, JSON_BEHIND);
    ps.p = ps.base + skip;
    ps.end = ps.base + bytes;
    ZR_TRY(json_document(&ps));
out:
    zr_json_keys_deinit(&ps.keys);
    if (st != ZARR_OK)
        doc->root = NULL;
    return st;
}
