/*
 * tree/reencode_missing.c - what a change of the format means to readers: keeps the
 * missing value of an array through a change of the format: changes the planned
 * documents. If the fill value changes, the array's chunks are all written, because
 * missing ones of the source have the old fill value. Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/reencode_int.h"

#include <string.h>

/* Whether the caller's choices left to us what the change replaces. */
static zarr_status is_ours(const struct zr_missing_change *c, const zarr_array *source,
                           const zarr_array *made, bool *ours, zarr_error *err)
{
    const int32_t format = zarr_array_zarr_format(made);
    const zarr_array *array[2] = {source, made};
    const struct zr_json *given[2];
    struct zr_json_doc doc[2];
    zarr_status st = ZARR_OK;

    *ours = true;
    for (int i = 0; i < 2; i++)
        zr_json_doc_init(&doc[i], zr_store_context(zarr_array_store(source))->alloc);
    if (format == 2 && (c->fill || c->drop))
        ZR_TRY(zr_same_fill(source, made, ours, err));
    for (int i = 0; i < 2; i++) {
        const char *text = zarr_array_attributes(array[i]);

        if (!text)
            ZR_FAIL_MEMORY(err, 1);
        ZR_TRY(zr_json_parse(&doc[i], text, strlen(text),
                             &zr_store_context(zarr_array_store(source))->limits, err));
        zr_json_quote_tokens(doc[i].root);
        given[i] = zr_json_get(doc[i].root, ZR_MISSING_ATTRIBUTE);
    }
    if (!given[0] != !given[1] || (given[0] && !zr_json_equal(given[0], given[1])))
        *ours = false;
out:
    for (int i = 0; i < 2; i++)
        zr_json_doc_deinit(&doc[i]);
    return st;
}

/* Reads a planned document. *out stays NULL if there is none. */
static zarr_status read_planned(struct zr_json_doc *doc, struct zr_reencode *r,
                                const char *path, const char *name, struct zr_json **out,
                                zarr_error *err)
{
    const struct zr_doc_source src = {
        .store = r->target, .path = path, .name = name, .large = true};
    struct zr_parsed *parsed = NULL;
    struct zr_doc text;
    zarr_status st;

    *out = NULL;
    zr_doc_init(&text, r->ctx->alloc);
    st = zr_doc_get(&text, &src, err);
    if (st == ZARR_OK)
        st = zr_parsed_read(&parsed, &text, r->ctx, err);
    if (st == ZARR_OK)
        *out = zr_json_copy(doc, parsed->json.root);
    if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    zr_parsed_free(parsed);
    zr_doc_deinit(&text);
    return st;
}

static zarr_status put(struct zr_reencode *r, const char *path, const char *name,
                       const struct zr_json *root, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, r->ctx->alloc);
    zr_json_write(root, ZR_META_INDENT, &text);
    ZR_TRY(zr_str_status(&text, err));
    st = zr_doc_write(r->target, path, name, &text, true, r->opts.cancel, err);
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status change_documents(struct zr_reencode *r, const char *path,
                                    int32_t format, const struct zr_missing_change *c,
                                    struct zr_json_doc *doc, zarr_error *err)
{
    const char *name = zr_doc_name(ZARR_NODE_ARRAY, format);
    struct zr_json *root = NULL, *attributes = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(read_planned(doc, r, path, name, &root, err));
    if (format == 2)
        ZR_TRY(read_planned(doc, r, path, ZR_DOC_ATTRS, &attributes, err));
    if (format == 2 && !attributes)
        attributes = zr_json_new(doc, ZR_JSON_OBJECT);
    zr_missing_apply(c, doc, root, attributes);
    if (!zr_json_is_ok(doc))
        ZR_FAIL_MEMORY(err, doc->arena.used_bytes);
    ZR_TRY(put(r, path, name, root, err));
    if (attributes)
        ZR_TRY(put(r, path, ZR_DOC_ATTRS, attributes, err));
out:
    return st;
}

zarr_status zr_reencode_keep_missing(struct zr_reencode *r, const zarr_array *source,
                                     const zarr_array *made, const char *path,
                                     zarr_error *err)
{
    const int32_t format = zarr_array_zarr_format(made);
    struct zr_missing_change change = {0};
    struct zr_json_doc doc;
    bool ours = true;
    zarr_status st = ZARR_OK;

    if (r->opts.flags & ZARR_REENCODE_KEEP_FILL)
        return ZARR_OK;
    zr_json_doc_init(&doc, r->ctx->alloc);
    ZR_TRY(zr_array_missing_plan(&change, source, format, &doc, err));
    if (change.warning && r->opts.warn)
        r->opts.warn(r->opts.warn_user, zarr_array_path(source), change.warning);
    if (!change.fill && !change.attribute && !change.drop)
        goto out;
    ZR_TRY(is_ours(&change, source, made, &ours, err));
    if (ours)
        ZR_TRY(change_documents(r, path, format, &change, &doc, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_reencode_ome(struct zr_reencode *r, const char *attributes,
                            const char *path, int32_t format, zarr_error *err)
{
    const zarr_limits *limits = &r->ctx->limits;
    const char *warning = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    if (r->ome_told || !r->opts.warn)
        return ZARR_OK;
    zr_json_doc_init(&doc, r->ctx->alloc);
    ZR_TRY(zr_json_parse(&doc, attributes, strlen(attributes), limits, err));
    warning = zr_ome_warning(doc.root, path, format);
    if (warning)
        r->opts.warn(r->opts.warn_user, path, warning);
    r->ome_told = warning != NULL;
out:
    zr_json_doc_deinit(&doc);
    return st;
}
