/*
 * node/write.c - one document of a node by its path and name: its text, written
 * and erased. Thread class: plain functions.
 */
#include "node/node.h"

zarr_status zr_group_text(struct zr_str *out, int32_t format,
                          const struct zr_json *attributes, const zarr_allocator *alloc,
                          zarr_error *err)
{
    const struct zr_group_meta meta = {.format = format, .attributes = attributes};
    struct zr_json *root = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    ZR_TRY(zr_group_meta_write(&meta, &doc, &root, err));
    zr_json_write(root, ZR_META_INDENT, out);
    ZR_TRY(zr_str_status(out, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_document_write(zarr_store *store, const char *path, const char *name,
                              const struct zr_str *text, bool replace, zarr_error *err)
{
    const struct zr_doc_source src = {.store = store, .path = path, .name = name};

    return zr_doc_create(&src, zr_str_text(text), text->bytes, replace, err);
}

zarr_status zr_document_erase(zarr_store *store, const char *path, const char *name,
                              zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE};
    zarr_error e = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    zr_path_key(&key, path, name);
    ZR_TRY(zr_str_status(&key, err));
    op.key = zr_str_text(&key);
    st = zr_store_run_one(store, &op, &e);
    st = st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e);
out:
    zr_str_deinit(&key);
    return st;
}
