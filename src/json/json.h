/*
 * json/json.h - the door to JSON text: one iterative parser that validates
 * while it builds (depth, token and string limits, duplicate keys, UTF-8,
 * escapes), a mutable tree in an arena, and a writer. Numbers keep their
 * source text, so 64-bit integers and NaN spellings survive exactly. Bare NaN,
 * Infinity, -Infinity tokens are read (real files have them; zr_json_doc says
 * so), and written by zr_json_write_tokens() and after zr_json_keep_tokens() only.
 * It is not a general library: no comments, no streaming, no schema.
 * Thread class: a document is solo while it changes, then frozen.
 */
#ifndef ZR_JSON_H
#define ZR_JSON_H

#include "base/base.h"

#include <string.h>

enum zr_json_type {
    ZR_JSON_NULL,
    ZR_JSON_FALSE,
    ZR_JSON_TRUE,
    ZR_JSON_NUMBER, /* text: the literal as written, incl. NaN, Infinity, -Infinity */
    ZR_JSON_STRING, /* text: unescaped UTF-8, may hold NUL: use bytes */
    ZR_JSON_ARRAY,
    ZR_JSON_OBJECT
};

/* A value. Children of arrays and objects are a singly linked list in source order. */
struct zr_json {
    enum zr_json_type type;
    uint32_t key_bytes;
    const char *key; /* inside an object: terminated; else NULL */
    struct zr_json *next;
    union {
        struct {
            const char *ptr; /* terminated */
            size_t bytes;
            bool bare; /* a number: zr_json_keep_tokens() */
        } text;
        struct {
            struct zr_json *first, *last;
            size_t n;
        } children;
    } u;
};

/* Owns all values made in it. Values of other documents must be copied in. */
struct zr_json_doc {
    struct zr_arena arena;
    struct zr_json *root;
    struct zr_json *spare; /* nodes allocated in advance, n_spare of them */
    size_t n_spare, slab;
    bool failed;     /* a maker ran out of memory: zr_json_is_ok() */
    bool nan_tokens; /* the parsed text had bare NaN, Infinity or -Infinity: invalid JSON,
                        tolerated */
};

void zr_json_doc_init(struct zr_json_doc *doc, const zarr_allocator *alloc);
void zr_json_doc_deinit(struct zr_json_doc *doc);
/* Empties the document; it keeps memory that the next one uses. */
void zr_json_doc_reset(struct zr_json_doc *doc);

/* Parses the whole text into doc->root. CORRUPT has a byte position ("byte 17: ...").
 * LIMIT names the limit (json_depth, json_tokens, string_bytes). A leading UTF-8 BOM and
 * surrounding blanks are allowed. */
zarr_status zr_json_parse(struct zr_json_doc *doc, const char *text, size_t bytes,
                          const zarr_limits *limits, zarr_error *err);

/* Makers. They return NULL if there is no memory. All accept NULL parents and values and
 * then do nothing. So build the tree first, and check once at the end (zr_json_is_ok, or
 * the result). */
struct zr_json *zr_json_new(struct zr_json_doc *doc, enum zr_json_type type);
struct zr_json *zr_json_new_string(struct zr_json_doc *doc, const char *s, size_t bytes);
struct zr_json *zr_json_new_text(struct zr_json_doc *doc,
                                 const char *s); /* terminated string */
struct zr_json *zr_json_new_u64(struct zr_json_doc *doc, uint64_t v);
struct zr_json *zr_json_new_i64(struct zr_json_doc *doc, int64_t v);
struct zr_json *zr_json_new_number(struct zr_json_doc *doc, const char *literal);
struct zr_json *zr_json_new_bool(struct zr_json_doc *doc, bool v);
struct zr_json *zr_json_copy(struct zr_json_doc *doc,
                             const struct zr_json *v); /* deep, iterative */
void zr_json_append(struct zr_json_doc *doc, struct zr_json *array,
                    struct zr_json *value);
/* Appends a member without looking for an old one: for callers that know that the key is
 * new. */
void zr_json_add(struct zr_json_doc *doc, struct zr_json *object, const char *key,
                 size_t key_bytes, struct zr_json *value);
/* Adds or replaces in place; the key is copied. O(members). */
void zr_json_set(struct zr_json_doc *doc, struct zr_json *object, const char *key,
                 struct zr_json *value);
bool zr_json_remove(struct zr_json *object, const char *key);
/* True while no maker of this doc ran out of memory. */
bool zr_json_is_ok(const struct zr_json_doc *doc);

/* Readers. For NULL and for values of another type they return NULL or false. */
struct zr_json *zr_json_get_n(const struct zr_json *object, const char *key,
                              size_t key_bytes);
static inline struct zr_json *zr_json_get(const struct zr_json *object, const char *key)
{
    return zr_json_get_n(object, key, strlen(key)); /* the length of a literal is known */
}
struct zr_json *zr_json_at(const struct zr_json *array,
                           size_t i);          /* O(i): prefer walking ->next */
size_t zr_json_count(const struct zr_json *v); /* members of array or object */
static inline bool zr_json_is(const struct zr_json *v, enum zr_json_type type)
{
    return v && v->type == type;
}
bool zr_json_is_text(const struct zr_json *v, const char *s); /* a string equal to s */
/* Whether a member has this key. A key may hold NUL, which strcmp() does not see. */
static inline bool zr_json_has_key(const struct zr_json *member, const char *key)
{
    const size_t n = strlen(key);

    return member->key_bytes == n && memcmp(member->key, key, n) == 0;
}
/* True for a number without fraction or exponent that fits. */
bool zr_json_u64(const struct zr_json *v, uint64_t *out);
bool zr_json_i64(const struct zr_json *v, int64_t *out);
bool zr_json_f64(const struct zr_json *v,
                 double *out); /* any number, NaN tokens included */
bool zr_json_bool(const struct zr_json *v, bool *out);
const char *
zr_json_string(const struct zr_json *v); /* NULL unless a string without NUL inside */
/* True for the same JSON value. The order of members does not matter. Numbers compare by
 * value ("1.0" equals "1", "1e2" equals "100"). "-0.0" and "0" differ, because they are
 * different fill values. False without memory for the stack of a very deep value. Linear
 * if members come in the same order, otherwise O(members * log(members)). */
bool zr_json_equal(const struct zr_json *a, const struct zr_json *b);
/* Looks many members of one object up, at the cost of zr_json_equal(). Zero except
 * `object` before the first look-up. */
struct zr_json_lookup {
    const struct zr_json *object, *hint;
    const struct zr_json **sorted; /* owned */
    size_t steps;
};
const struct zr_json *zr_json_lookup_get(struct zr_json_lookup *l, const char *key,
                                         size_t bytes);
void zr_json_lookup_end(struct zr_json_lookup *l);
/* "number", "object", "nothing" for NULL: for messages. */
const char *zr_json_type_text(const struct zr_json *v);
/* Writes the value as one line of text for messages, cut with "..." to fit. Returns
 * text. */
const char *zr_json_excerpt(const struct zr_json *v, char *text, size_t cap);

/* Writes JSON text. indent 0: compact {"a":1}; otherwise so many blanks a level, as
 * Python's json.dumps(indent=). Strings stay UTF-8, control characters are escaped. The
 * numbers NaN and Infinity are written as strings. Iterative. */
void zr_json_write(const struct zr_json *v, unsigned indent, struct zr_str *out);
/* The same, compact and with bare NaN and Infinity, which Python writes and reads. */
void zr_json_write_tokens(const struct zr_json *v, struct zr_str *out);
/* Turns NaN and Infinity into the strings that they would be written as, in place. */
void zr_json_quote_tokens(struct zr_json *v);
/* Makes NaN and Infinity in v stay bare whenever they or copies of them are written. v:
 * NULL, or a tree that may change. */
void zr_json_keep_tokens(struct zr_json *v);
/* Writes one string with its quotes. The bytes must be UTF-8. */
void zr_json_write_string(struct zr_str *out, const char *s, size_t bytes);

#endif
