/*
 * node/attrs.c - attributes of arrays and groups: one JSON object, inside zarr.json for
 * v3, in a document of its own for v2. A change reads, edits and writes that document
 * under its lock. Every other member stays as it was, known or not, with its numbers as
 * they were spelled. Before anything is written the caller may check the new document,
 * because a change must not turn a node into one that cannot be opened.
 * Thread class: plain functions; changes may run from many threads.
 */
#include "node/node.h"

#include <string.h>

enum {
    ATTRS_INDENT = 2
};

zarr_status zr_text_give(const char *from, size_t n, const struct zr_text_out *to,
                         zarr_error *err)
{
    if (!to->text && to->cap > 0)
        return zr_fail(err, ZARR_ERR_INVALID, "a text of %zu bytes is NULL", to->cap);
    if (to->cap > 0) {
        const size_t k = ZR_MIN(n, to->cap - 1);

        memcpy(to->text, from, k);
        to->text[k] = '\0';
    }
    if (to->bytes)
        *to->bytes = n;
    return ZARR_OK;
}

zarr_status zr_attrs_get(const struct zr_json *attrs, const char *name,
                         const struct zr_text_out *to, const zarr_allocator *alloc,
                         zarr_error *err)
{
    const struct zr_json *v = zr_json_get(attrs, name);
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    if (!v)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "there is no attribute \"%s\"", name);
    zr_json_write(v, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    ZR_TRY(zr_text_give(zr_str_text(&text), text.bytes, to, err));
out:
    zr_str_deinit(&text);
    return st;
}

/* ---- the edit ----------------------------------------------------------- */

struct attrs_editing {
    const struct zr_attrs_change *change;
    const zarr_context *ctx;
    const struct zr_json *value; /* parsed */
    struct zr_parsed *parsed;    /* the new document */
};

static zarr_status old_document(struct attrs_editing *e, const struct zr_doc *old,
                                struct zr_json **attrs, zarr_error *err)
{
    struct zr_json_doc *json = NULL;

    zr_parsed_free(e->parsed); /* of an attempt that met a conflict */
    e->parsed = NULL;
    if (old)
        ZR_CHECK(zr_parsed_read(&e->parsed, old, e->ctx, err));
    else
        ZR_CHECK(zr_parsed_new(&e->parsed, e->ctx->alloc, err));
    json = &e->parsed->json;
    if (!old)
        json->root = zr_json_new(json, ZR_JSON_OBJECT);
    *attrs = json->root;
    if (e->change->format == 3) {
        *attrs = zr_json_get(json->root, "attributes");
        if (!zr_json_is(*attrs, ZR_JSON_OBJECT)) {
            *attrs = zr_json_new(json, ZR_JSON_OBJECT);
            zr_json_set(json, json->root, "attributes", *attrs);
        }
    }
    return ZARR_OK;
}

/* Takes the place of a member's value; its key and its neighbours stay. */
static void member_assign(struct zr_json *member, const struct zr_json *value)
{
    const struct zr_json old = *member;

    *member = *value;
    member->key = old.key;
    member->key_bytes = old.key_bytes;
    member->next = old.next;
}

/* By a map, because a search for each member is quadratic. */
static zarr_status merge_members(struct zr_json_doc *json, struct zr_json *into,
                                 const struct zr_json *from, const zarr_allocator *alloc,
                                 zarr_error *err)
{
    struct zr_map mine;
    zarr_status st = ZARR_OK;

    zr_map_init(&mine, alloc, NULL);
    for (struct zr_json *v = into->u.children.first; v; v = v->next)
        ZR_TRY(zr_map_put_n(&mine, v->key, v->key_bytes, v, err));
    for (const struct zr_json *v = from->u.children.first; v; v = v->next) {
        struct zr_json *copy = zr_json_copy(json, v);
        struct zr_json *old = zr_map_get_n(&mine, v->key, v->key_bytes);

        if (copy && old)
            member_assign(old, copy);
        else
            zr_json_add(json, into, v->key, v->key_bytes, copy);
    }
out:
    zr_map_deinit(&mine);
    return st;
}

static void replace_members(struct zr_json_doc *json, struct zr_json *into,
                            const struct zr_json *from)
{
    into->u.children.first = into->u.children.last = NULL;
    into->u.children.n = 0;
    for (const struct zr_json *v = from->u.children.first; v; v = v->next)
        zr_json_add(json, into, v->key, v->key_bytes, zr_json_copy(json, v));
}

static zarr_status apply_change(struct attrs_editing *e, struct zr_json *attrs,
                                zarr_error *err)
{
    const struct zr_attrs_change *c = e->change;
    struct zr_json_doc *json = &e->parsed->json;
    zarr_status st = ZARR_OK;

    if (!attrs)
        return zr_fail_memory(err, sizeof *attrs);
    switch (c->verb) {
    case ZR_ATTRS_SET:
        zr_json_set(json, attrs, c->name, zr_json_copy(json, e->value));
        break;
    case ZR_ATTRS_DELETE:
        if (!zr_json_remove(attrs, c->name))
            return zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no attribute \"%s\"",
                           c->name);
        break;
    case ZR_ATTRS_MERGE:
        st = merge_members(json, attrs, e->value, e->ctx->alloc, err);
        break;
    case ZR_ATTRS_REPLACE:
        replace_members(json, attrs, e->value);
        break;
    }
    if (st == ZARR_OK && !zr_json_is_ok(json))
        st = zr_fail_memory(err, json->arena.used_bytes);
    return st;
}

static zarr_status edit_attributes(void *arg, const struct zr_doc *old,
                                   struct zr_str *text, zarr_error *err)
{
    struct attrs_editing *e = arg;
    struct zr_json *attrs = NULL;

    ZR_CHECK(old_document(e, old, &attrs, err));
    ZR_CHECK(apply_change(e, attrs, err));
    ZR_CHECK(e->change->check(e->change->arg, e->parsed, err));
    /* the handle keeps what the store will have */
    zr_json_quote_tokens(e->parsed->json.root);
    zr_json_write(e->parsed->json.root, ATTRS_INDENT, text);
    return ZARR_OK;
}

static zarr_status commit_attributes(void *arg, zarr_error *err)
{
    const struct attrs_editing *e = arg;

    return e->change->commit(e->change->arg, err);
}

static zarr_status parse_text(struct zr_json_doc *doc, const char *text, bool object,
                              const zarr_limits *limits, zarr_error *err)
{
    zarr_status st = zr_json_parse(doc, text, strlen(text), limits, err);

    if (st == ZARR_ERR_CORRUPT)
        st = zr_prefix(err, ZARR_ERR_INVALID, "the JSON text of the attributes");
    if (st == ZARR_OK && object && !zr_json_is(doc->root, ZR_JSON_OBJECT))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "attributes must be a JSON object, but have type %s",
                     zr_json_type_text(doc->root));
    return st;
}

zarr_status zr_attributes_parse(struct zr_json_doc *doc, const char *text,
                                const zarr_limits *limits, zarr_error *err)
{
    return text ? parse_text(doc, text, true, limits, err) : ZARR_OK;
}

/* Parses the caller's JSON text. */
static zarr_status parse_value(struct zr_json_doc *json, const struct zr_attrs_change *c,
                               const zarr_limits *limits, zarr_error *err)
{
    if (c->verb == ZR_ATTRS_DELETE)
        return ZARR_OK;
    if (!c->json)
        return zr_fail(err, ZARR_ERR_INVALID, "no JSON text is given");
    return parse_text(json, c->json, c->verb != ZR_ATTRS_SET, limits, err);
}

zarr_status zr_attrs_change(zarr_store *store, const char *path,
                            const struct zr_attrs_change *change, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    struct attrs_editing e = {.change = change, .ctx = ctx};
    const struct zr_doc_edit edit = {.fn = edit_attributes,
                                     .arg = &e,
                                     .may_be_new = change->format == 2,
                                     .commit = commit_attributes,
                                     .cancel = change->cancel};
    const struct zr_doc_source src = {
        .store = store,
        .path = path,
        .name = change->format == 3 ? ZR_DOC_V3 : ZR_DOC_ATTRS,
        .large = change->large,
    };
    struct zr_json_doc value;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&value, ctx->alloc);
    if (!change->name && change->verb <= ZR_ATTRS_DELETE)
        ZR_FAIL(err, ZARR_ERR_INVALID, "no attribute is named");
    ZR_TRY(parse_value(&value, change, &ctx->limits, err));
    e.value = value.root;
    ZR_TRY(zr_doc_update(&src, &edit, err));
out:
    zr_parsed_free(e.parsed);
    zr_json_doc_deinit(&value);
    return st;
}
