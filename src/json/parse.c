/*
 * json/parse.c - text to tree, in one pass over a private copy of the text. The copy is
 * in the document's arena and is edited in place. Strings are unescaped in place, and the
 * byte after each string or number (its quote or delimiter, already read) becomes the
 * terminating NUL. So a value costs one node and no copy, and the address of a key still
 * gives its position. There is no recursion and no stack: an open container has no next
 * sibling yet, so its `next` points to the container around it until it is closed. The
 * copy ends with NULs, which no token accepts, so no loop compares with the end. There
 * are eight, because blanks are looked at in words of eight bytes. string.c reads
 * strings.
 *
 * Refused: everything that RFC 8259 refuses except a leading BOM and the bare tokens NaN,
 * Infinity and -Infinity; duplicate keys; lone surrogates; what is beyond a limit.
 *
 * Thread class: a parse is solo.
 */
#include "json_int.h"

#include <string.h>

/* 120 comparisons, mostly of lengths only, cost about as much as 16 hashes. */
enum {
    PAIRS_MAX = 16
};

static bool same_key(const struct zr_json *a, const struct zr_json *b)
{
    return a->key_bytes == b->key_bytes && a->key[0] == b->key[0] &&
           memcmp(a->key, b->key, a->key_bytes) == 0;
}

static const struct zr_json *check_pairs(const struct zr_json *object)
{
    for (const struct zr_json *b = object->u.children.first; b; b = b->next)
        for (const struct zr_json *a = object->u.children.first; a != b; a = a->next)
            if (same_key(a, b))
                return b;
    return NULL;
}

/* Makes at least two empty slots for each member. */
static zarr_status reserve_slots(struct zr_json_keys *k, size_t n, size_t *used,
                                 zarr_error *err)
{
    size_t cap = 64;

    while (cap / 2 < n)
        cap *= 2;
    if (cap > k->cap) {
        zr_free(k->alloc, (void *)k->slots);
        k->cap = 0;
        k->slots = zr_malloc(k->alloc, cap * sizeof *k->slots);
        if (!k->slots)
            return zr_fail_memory(err, cap * sizeof *k->slots);
        k->cap = cap;
    }
    memset((void *)k->slots, 0, cap * sizeof *k->slots);
    *used = cap;
    return ZARR_OK;
}

/* Looks for two members with the same key. Implementations disagree about which of them
 * counts, so such a document has two meanings and is refused. In small objects all pairs
 * are compared. Larger ones use a hash set with the keyed hash of maps, so that no text
 * costs more than linear time. *twice: the first member whose key an earlier one has, or
 * NULL. */
static zarr_status keys_check(struct zr_json_keys *k, const struct zr_json *object,
                              const struct zr_json **twice, zarr_error *err)
{
    size_t cap = 0;

    *twice = NULL;
    if (object->u.children.n <= PAIRS_MAX) {
        *twice = check_pairs(object);
        return ZARR_OK;
    }
    ZR_CHECK(reserve_slots(k, object->u.children.n, &cap, err));
    for (const struct zr_json *v = object->u.children.first; v && !*twice; v = v->next) {
        size_t at = (size_t)zr_map_hash(v->key, v->key_bytes) & (cap - 1);

        while (k->slots[at] && !same_key(k->slots[at], v))
            at = (at + 1) & (cap - 1);
        if (k->slots[at])
            *twice = v;
        k->slots[at] = v;
    }
    return ZARR_OK;
}

/* The limits that apply if a member of zarr_limits is zero; zarrc/limits.h documents
 * them. */
enum {
    DEPTH_DEFAULT = 1000,
    TOKENS_DEFAULT = 4 << 20,
    STRING_DEFAULT = 64 << 20
};

enum {
    JSON_BEHIND = 8 /* NULs behind the text */
};

static zarr_status json_bad(const struct zr_json_parser *ps, const char *at,
                            const char *what)
{
    uint64_t pos = zr_json_position(ps, at);

    if (at >= ps->end)
        return zr_fail(ps->err, ZARR_ERR_CORRUPT,
                       "byte %" PRIu64 ": the JSON text ends where %s is expected", pos,
                       what);
    return zr_fail(ps->err, ZARR_ERR_CORRUPT, "byte %" PRIu64 ": %s is expected", pos,
                   what);
}

/* Skips blanks, eight bytes at once. Behind the text is room for them. */
static inline char *json_blanks(char *p)
{
    const uint64_t spaces = UINT64_C(0x2020202020202020);

    if ((unsigned char)*p > ' ')
        return p;
    for (;;) {
        const uint64_t others = zr_load_le64(p) ^ spaces;

        if (others == 0) { /* the indent of a nested value */
            p += 8;
            continue;
        }
        p += __builtin_ctzll(others) / 8; /* the first that is no space */
        if (*p != '\n' && *p != '\r' && *p != '\t')
            return p;
        p++;
    }
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

static void set_literal(struct zr_json_parser *ps, struct zr_json *v, char *start,
                        char *behind)
{
    v->type = ZR_JSON_NUMBER;
    v->u.text.ptr = start;
    v->u.text.bytes = (size_t)(behind - start);
    ps->number_end = behind;
    ps->p = behind;
}

static zarr_status json_number(struct zr_json_parser *ps, struct zr_json *v)
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
                       zr_json_position(ps, start));
    if ((size_t)(behind - start) > ps->max_string)
        return zr_fail_limit(ps->err, "string_bytes", ps->max_string,
                             "byte %" PRIu64 ": number of %zu bytes",
                             zr_json_position(ps, start), (size_t)(behind - start));
    set_literal(ps, v, start, behind);
    return ZARR_OK;
}

static zarr_status json_word(struct zr_json_parser *ps, struct zr_json *v)
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

static zarr_status json_limit_values(const struct zr_json_parser *ps)
{
    return zr_fail_limit(ps->err, "json_tokens", ps->max_values,
                         "byte %" PRIu64 ": more than %" PRIu64 " JSON values",
                         zr_json_position(ps, ps->p), ps->max_values);
}

/* Reads the "key": of the next member; the node gets the key. */
static zarr_status json_key(struct zr_json_parser *ps, struct zr_json *v)
{
    zarr_status st = ZARR_OK;
    size_t bytes = 0;

    if (*ps->p != '"') {
        st = json_bad(ps, ps->p, "a key in quotes");
        goto out;
    }
    ps->p++;
    ZR_TRY(zr_json_read_string(ps, &v->key, &bytes));
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

static zarr_status json_push(struct zr_json_parser *ps, struct zr_json *v,
                             enum zr_json_type type)
{
    if (++ps->depth > ps->max_depth)
        return zr_fail_limit(ps->err, "json_depth", ps->max_depth,
                             "byte %" PRIu64 ": lists and objects are nested deeper than "
                             "%" PRIu64,
                             zr_json_position(ps, ps->p), ps->max_depth);
    v->type = type;
    v->next = ps->open; /* used for the way back: see the top of the file */
    ps->open = v;
    ps->p++;
    return ZARR_OK;
}

/* Reads the value at ps->p, with its key inside an object, and links it to the open
 * container. Opening brackets are entered, not read to their end. */
static zarr_status json_value(struct zr_json_parser *ps)
{
    zarr_status st = ZARR_OK;
    struct zr_json *around = ps->open;
    struct zr_json *v = zr_json_node(ps->doc);

    if (!v)
        ZR_FAIL_MEMORY(ps->err, sizeof *v);
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
        ZR_TRY(zr_json_read_string(ps, &v->u.text.ptr, &v->u.text.bytes));
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

static zarr_status json_pop(struct zr_json_parser *ps)
{
    zarr_status st = ZARR_OK;
    struct zr_json *v = ps->open;
    const struct zr_json *twice = NULL;

    ps->open = v->next;
    v->next = NULL;
    ps->depth--;
    ps->p++;
    if (v->type == ZR_JSON_OBJECT && v->u.children.n > 1) {
        ZR_TRY(keys_check(&ps->keys, v, &twice, ps->err));
        if (twice)
            st = zr_fail(ps->err, ZARR_ERR_CORRUPT,
                         "byte %" PRIu64 ": key \"%.64s\" occurs twice",
                         zr_json_position(ps, twice->key) - 1, twice->key);
    }
out:
    return st;
}

/* After a value: closes the containers that end here and moves to the next value or to
 * the end. */
static zarr_status json_after_value(struct zr_json_parser *ps)
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

static zarr_status json_document(struct zr_json_parser *ps)
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
                     zr_json_position(ps, ps->p));
    else if (ps->number_end)
        *ps->number_end = '\0';
out:
    return st;
}

static void json_limits(struct zr_json_parser *ps, const zarr_limits *limits)
{
    uint64_t depth = limits ? limits->json_depth : 0;
    uint64_t values = limits ? limits->json_tokens : 0;
    uint64_t string = limits ? limits->string_bytes : 0;

    ps->max_depth = depth ? depth : DEPTH_DEFAULT;
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
    struct zr_json_parser ps = {.doc = doc, .err = err};
    size_t skip = bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    size_t room;

    doc->root = NULL;
    doc->nan_tokens = false;
    json_limits(&ps, limits);
    ps.keys.alloc = doc->arena.alloc;
    /* A value takes at least 2 bytes of text, 12 on average. The slabs of nodes follow
     * from that. */
    doc->slab = ZR_MAX(doc->slab, ZR_MIN(bytes / 12 + 8, (size_t)1024));
    if (!zr_add(bytes, JSON_BEHIND, &room) || !(ps.base = json_room(doc, room)))
        ZR_FAIL_MEMORY(err, bytes);
    if (bytes)
        memcpy(ps.base, text, bytes);
    memset(ps.base + bytes, 0, JSON_BEHIND);
    ps.p = ps.base + skip;
    ps.end = ps.base + bytes;
    ZR_TRY(json_document(&ps));
out:
    zr_free(ps.keys.alloc, (void *)ps.keys.slots);
    if (st != ZARR_OK)
        doc->root = NULL;
    return st;
}
