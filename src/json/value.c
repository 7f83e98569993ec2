/*
 * json/value.c - documents, nodes, and the makers that build a tree. Nodes come from
 * slabs of the document's arena, and are freed only with the document. A maker without
 * memory returns NULL and marks the document. Every maker accepts NULL, so a builder
 * checks once, at its end.
 * Thread class: solo.
 */
#include "json_int.h"

#include <string.h>

void zr_json_doc_init(struct zr_json_doc *doc, const zarr_allocator *alloc)
{
    *doc = (struct zr_json_doc){.slab = 8};
    zr_arena_init(&doc->arena, alloc);
}

void zr_json_doc_deinit(struct zr_json_doc *doc)
{
    if (!doc)
        return;
    zr_arena_deinit(&doc->arena);
    doc->root = NULL;
    doc->spare = NULL;
    doc->n_spare = 0;
}

void zr_json_doc_reset(struct zr_json_doc *doc)
{
    zr_arena_reset(&doc->arena);
    doc->root = NULL;
    doc->spare = NULL;
    doc->n_spare = 0;
    doc->failed = doc->nan_tokens = false;
}

bool zr_json_is_ok(const struct zr_json_doc *doc)
{
    return !doc->failed;
}

struct zr_json *zr_json_node(struct zr_json_doc *doc)
{
    struct zr_json *v;

    if (doc->n_spare == 0) {
        doc->spare = zr_arena_alloc(&doc->arena, doc->slab * sizeof *doc->spare);
        if (!doc->spare) {
            doc->failed = true;
            return NULL;
        }
        doc->n_spare = doc->slab;
        doc->slab = ZR_MIN(doc->slab * 2, (size_t)1024);
    }
    v = doc->spare++;
    doc->n_spare--;
    *v = (struct zr_json){0};
    return v;
}

struct zr_json *zr_json_new(struct zr_json_doc *doc, enum zr_json_type type)
{
    struct zr_json *v = zr_json_node(doc);

    if (v) {
        v->type = type;
        if (type == ZR_JSON_NUMBER || type == ZR_JSON_STRING)
            v->u.text.ptr = "";
    }
    return v;
}

static struct zr_json *new_text(struct zr_json_doc *doc, enum zr_json_type type,
                                const char *s, size_t bytes)
{
    struct zr_json *v = zr_json_node(doc);
    char *copy = v ? zr_arena_strndup(&doc->arena, s, bytes) : NULL;

    if (!copy) {
        doc->failed = true;
        return NULL;
    }
    v->type = type;
    v->u.text.ptr = copy;
    v->u.text.bytes = bytes;
    return v;
}

struct zr_json *zr_json_new_string(struct zr_json_doc *doc, const char *s, size_t bytes)
{
    return new_text(doc, ZR_JSON_STRING, s, bytes);
}

struct zr_json *zr_json_new_text(struct zr_json_doc *doc, const char *s)
{
    return new_text(doc, ZR_JSON_STRING, s, strlen(s));
}

struct zr_json *zr_json_new_number(struct zr_json_doc *doc, const char *literal)
{
    return new_text(doc, ZR_JSON_NUMBER, literal, strlen(literal));
}

/* Writes the decimal digits of v to the end of a buffer. Returns where they begin. */
static char *put_decimal(char *end, uint64_t v)
{
    *--end = '\0';
    do {
        *--end = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    return end;
}

struct zr_json *zr_json_new_u64(struct zr_json_doc *doc, uint64_t v)
{
    char text[24];

    return zr_json_new_number(doc, put_decimal(text + sizeof text, v));
}

struct zr_json *zr_json_new_i64(struct zr_json_doc *doc, int64_t v)
{
    char text[24], *s;

    s = put_decimal(text + sizeof text, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    if (v < 0)
        *--s = '-';
    return zr_json_new_number(doc, s);
}

struct zr_json *zr_json_new_bool(struct zr_json_doc *doc, bool v)
{
    return zr_json_new(doc, v ? ZR_JSON_TRUE : ZR_JSON_FALSE);
}

void zr_json_append(struct zr_json_doc *doc, struct zr_json *array, struct zr_json *value)
{
    ZR_UNUSED(doc);
    if (!array || !value || array->type != ZR_JSON_ARRAY)
        return;
    value->next = NULL;
    value->key = NULL;
    value->key_bytes = 0;
    zr_json_link(array, value);
}

void zr_json_add(struct zr_json_doc *doc, struct zr_json *object, const char *key,
                 size_t key_bytes, struct zr_json *value)
{
    char *copy;

    if (!object || !value || object->type != ZR_JSON_OBJECT)
        return;
    copy = key_bytes <= UINT32_MAX ? zr_arena_strndup(&doc->arena, key, key_bytes) : NULL;
    if (!copy) {
        doc->failed = true;
        return;
    }
    value->next = NULL;
    value->key = copy;
    value->key_bytes = (uint32_t)key_bytes;
    zr_json_link(object, value);
}

/* Finds the link that points to the member of this key, or NULL. *before: the member
 * before it. */
static struct zr_json **find_link(struct zr_json *object, const char *key, size_t n,
                                  struct zr_json **before)
{
    *before = NULL;
    if (!object || object->type != ZR_JSON_OBJECT)
        return NULL;
    for (struct zr_json **link = &object->u.children.first; *link;
         link = &(*link)->next) {
        if ((*link)->key_bytes == n && memcmp((*link)->key, key, n) == 0)
            return link;
        *before = *link;
    }
    return NULL;
}

void zr_json_set(struct zr_json_doc *doc, struct zr_json *object, const char *key,
                 struct zr_json *value)
{
    const size_t key_bytes = strlen(key);
    struct zr_json *before = NULL, *old;
    struct zr_json **link = find_link(object, key, key_bytes, &before);

    if (!value || !link) {
        zr_json_add(doc, object, key, key_bytes, value);
        return;
    }
    old = *link;
    if (old == value)
        return;
    value->key = old->key;
    value->key_bytes = old->key_bytes;
    value->next = old->next;
    *link = value;
    if (object->u.children.last == old)
        object->u.children.last = value;
}

bool zr_json_remove(struct zr_json *object, const char *key)
{
    struct zr_json *before = NULL;
    struct zr_json **link = find_link(object, key, strlen(key), &before);

    if (!link)
        return false;
    if (object->u.children.last == *link)
        object->u.children.last = before;
    *link = (*link)->next;
    object->u.children.n--;
    return true;
}

/* Copies one node without its children. */
static struct zr_json *copy_value(struct zr_json_doc *doc, const struct zr_json *v)
{
    struct zr_json *made = NULL;

    if (v->type != ZR_JSON_STRING && v->type != ZR_JSON_NUMBER)
        return zr_json_new(doc, v->type);
    made = new_text(doc, v->type, v->u.text.ptr, v->u.text.bytes);
    if (made && v->type == ZR_JSON_NUMBER)
        made->u.text.bare = v->u.text.bare;
    return made;
}

struct copy_level {
    const struct zr_json *from; /* next to copy */
    struct zr_json *into;
};

static void copy_push(struct zr_json_doc *doc, struct zr_json_stack *levels,
                      const struct zr_json *from, struct zr_json *into)
{
    struct copy_level *l = zr_json_stack_push(levels);

    if (l)
        *l = (struct copy_level){from->u.children.first, into};
    else
        doc->failed = true;
}

struct zr_json *zr_json_copy(struct zr_json_doc *doc, const struct zr_json *v)
{
    struct zr_json *top = v ? copy_value(doc, v) : NULL;
    struct zr_json_stack levels;

    if (!top || v->type < ZR_JSON_ARRAY)
        return top;
    zr_json_stack_init(&levels, sizeof(struct copy_level), doc->arena.alloc);
    copy_push(doc, &levels, v, top);
    while (levels.depth > 0 && !doc->failed) {
        struct copy_level *l = zr_json_stack_top(&levels);
        const struct zr_json *child = l->from;
        struct zr_json *made;

        if (!child) {
            levels.depth--;
            continue;
        }
        l->from = child->next;
        made = copy_value(doc, child);
        if (child->key)
            zr_json_add(doc, l->into, child->key, child->key_bytes, made);
        else
            zr_json_append(doc, l->into, made);
        if (!made)
            doc->failed = true;
        else if (child->type >= ZR_JSON_ARRAY)
            copy_push(doc, &levels, child, made);
    }
    zr_json_stack_deinit(&levels);
    return doc->failed ? NULL : top;
}
