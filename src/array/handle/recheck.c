/*
 * array/handle/recheck.c - finds out whether the stored array is still the one that a
 * handle describes. An array that was moved, deleted or replaced has no chunks at the old
 * keys, so a read through an old handle would give fill values, and a write would store
 * chunks that no array has. Nor has an array that another writer shrank the chunks that
 * it lost. A read checks after it met a missing chunk; a write checks before each wave,
 * under the locks of blocks that it changes in part, and after its last object. If the
 * store has versions, a check costs one STAT while the document stays the same. NOT_FOUND
 * and CONFLICT say that the array is gone or another one; any other failure is one of the
 * check. Thread class: shared.
 */
#include "array/array_int.h"

#include <string.h>

/* ---- comparing ---------------------------------------------------------- */

/* v2: a document without dimension_separator says nothing about the chunks' keys. */
static bool has_known_separator(const struct zr_array_meta *m)
{
    return m->format == 3 || m->separator_given;
}

/* Compares what decides the elements, in canonical form. Shape, attributes and names of
 * dimensions may change at any time. *member: the first member that differs, or NULL. */
static zarr_status first_difference(const struct zr_array_meta *a,
                                    const struct zr_array_meta *b, const char **member,
                                    zarr_error *err)
{
    static const char *const v2[] = {"dtype", "compressor", "filters",
                                     "order", "fill_value", "dimension_separator"};
    static const char *const v3[] = {"data_type", "codecs", "fill_value",
                                     "chunk_key_encoding", "storage_transformers"};
    const char *const *name = a->format == 3 ? v3 : v2;
    const size_t n = a->format == 3 ? ZR_COUNT(v3)
                                    : ZR_COUNT(v2) - !(has_known_separator(a) &&
                                                       has_known_separator(b));
    struct zr_json *have = NULL, *want = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    *member = NULL;
    zr_json_doc_init(&doc, a->alloc);
    ZR_TRY(zr_array_meta_write_canonical(a, &doc, &have, err));
    ZR_TRY(zr_array_meta_write_canonical(b, &doc, &want, err));
    for (size_t i = 0; i < n && !*member; i++)
        if (!zr_json_equal(zr_json_get(have, name[i]), zr_json_get(want, name[i])))
            *member = name[i];
out:
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_array_same_chunks(const struct zr_array_state *a,
                                 const struct zr_array_state *b, zarr_error *err)
{
    const char *member = NULL;

    if (zr_json_equal(a->root, b->root))
        return ZARR_OK;
    if (a->meta.format != b->meta.format || a->meta.ndim != b->meta.ndim)
        return zr_fail(err, ZARR_ERR_CONFLICT, "the array has another rank now");
    if (!zr_grid_same_chunks(&a->meta.grid, &b->meta.grid))
        return zr_fail(err, ZARR_ERR_CONFLICT, "the array has other chunks now");
    ZR_CHECK(first_difference(&a->meta, &b->meta, &member, err));
    if (member)
        return zr_fail(err, ZARR_ERR_CONFLICT, "the array has another %s now", member);
    return ZARR_OK;
}

/* ---- the stored document ------------------------------------------------ */

/* A CONFLICT of the store, such as a document that changes while it is read, says nothing
 * about the array. */
static zarr_status report_unread(zarr_error *err, zarr_status st)
{
    return st == ZARR_ERR_CONFLICT
               ? zr_prefix(err, ZARR_ERR_IO, "the document could not be read")
               : st;
}

/* An array that this library cannot open has taken the place of the handle's. */
static zarr_status report_unknown(zarr_error *err, zarr_status st)
{
    const bool judges = st != ZARR_OK && st != ZARR_ERR_NO_MEMORY;

    return judges ? zr_prefix(err, ZARR_ERR_CONFLICT, "there is another array now") : st;
}

/* Sets shape to that of the stored array. */
static zarr_status compare_stored(const zarr_array *a, const struct zr_array_state *s,
                                  const struct zr_doc *doc, uint64_t *shape,
                                  zarr_error *err)
{
    struct zr_array_source src = {0};
    struct zr_array_state *now = NULL;
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_parsed_read(&parsed, doc, a->h.ctx, err));
    if (zr_json_equal(parsed->json.root, s->root))
        goto out;
    if (s->meta.format == 3 &&
        !zr_json_is_text(zr_json_get(parsed->json.root, "node_type"), "array"))
        ZR_FAIL(err, ZARR_ERR_CONFLICT, "there is a group now");
    src = zr_array_source_make(s->meta.format, parsed, NULL, &s->meta);
    ZR_TRY(report_unknown(err, zr_array_state_new(&now, a->h.ctx, &src, err)));
    ZR_TRY(zr_array_same_chunks(s, now, err));
    memcpy(shape, now->meta.shape, sizeof now->meta.shape);
out:
    zr_array_state_free(now);
    zr_parsed_free(parsed);
    return st;
}

static const char *document_name(const struct zr_array_state *s)
{
    return zr_doc_name(ZARR_NODE_ARRAY, s->meta.format);
}

static zarr_status fail_gone(const struct zr_array_state *s, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_NOT_FOUND,
                   "%s no longer exists: the array was moved or deleted after it was "
                   "opened, or migrated to the other format",
                   document_name(s));
}

/* Reads the document and compares it with the state. Sets shape to the stored one. */
static zarr_status read_and_compare(zarr_array *a, struct zr_array_state *s,
                                    uint64_t *shape, const zarr_cancel *cancel,
                                    zarr_error *err)
{
    const struct zr_doc_source src = {
        .store = a->h.store,
        .path = a->h.path,
        .name = document_name(s),
        .want_version = zr_store_can(a->h.store, ZARR_STORE_CAP_VERSIONS),
        .cancel = cancel,
    };
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, a->h.ctx->alloc);
    memcpy(shape, s->meta.shape, sizeof s->meta.shape);
    st = report_unread(err, zr_doc_get(&doc, &src, err));
    if (st == ZARR_ERR_NOT_FOUND && !atomic_load(&a->has_document))
        st = ZARR_OK; /* described by consolidated metadata alone */
    else if (st == ZARR_ERR_NOT_FOUND)
        st = fail_gone(s, err);
    else if (st == ZARR_OK)
        st = compare_stored(a, s, &doc, shape, err);
    if (st == ZARR_OK && doc.bytes > 0) {
        atomic_store(&a->has_document, true);
        zr_mutex_lock(&a->h.mutex);
        s->seen = doc.version;
        memcpy(s->seen_shape, shape, sizeof s->seen_shape);
        zr_mutex_unlock(&a->h.mutex);
    }
    zr_doc_deinit(&doc);
    return st;
}

/* Gets the version of the stored document. All zero: the store has no versions. The key
 * is made once: a write looks under the lock of each block that it changes in part. */
static zarr_status stored_version(zarr_array *a, struct zr_array_state *s,
                                  zarr_store_version *out, const zarr_cancel *cancel,
                                  zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .cancel = cancel,
                        .flags = ZARR_STORE_OP_WANT_VERSION | ZARR_STORE_OP_DOCUMENT};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&a->h.mutex);
    if (!s->document_key) {
        zr_str_init(&key, s->alloc);
        st = zr_path_key(&key, a->h.path, document_name(s), err);
        s->document_key = zr_str_take(&key);
    }
    zr_mutex_unlock(&a->h.mutex);
    if (st != ZARR_OK)
        return st;
    op.key = s->document_key;
    st = zr_store_run_one(a->h.store, &op, err);
    *out = op.version;
    return st;
}

/* As zr_array_recheck(). Sets shape to that of the stored array. */
static zarr_status find_shape(zarr_array *a, struct zr_array_state *s, uint64_t *shape,
                              const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_version seen, now = {{0}}; /* zeros: no version is known */
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&a->h.mutex);
    seen = s->seen;
    memcpy(shape, s->seen_shape, sizeof s->seen_shape);
    zr_mutex_unlock(&a->h.mutex);
    if (zr_store_can(a->h.store, ZARR_STORE_CAP_VERSIONS) &&
        !zr_store_version_equal(&seen, &now)) {
        st = stored_version(a, s, &now, cancel, err);
        if (st == ZARR_ERR_NOT_FOUND)
            return fail_gone(s, err);
        if (st != ZARR_OK)
            return report_unread(err, st);
        if (zr_store_version_equal(&seen, &now))
            return ZARR_OK;
    }
    return read_and_compare(a, s, shape, cancel, err);
}

zarr_status zr_array_recheck(zarr_array *a, struct zr_array_state *s,
                             const zarr_cancel *cancel, zarr_error *err)
{
    uint64_t shape[ZARR_MAX_RANK];

    return a->may_go ? find_shape(a, s, shape, cancel, err) : ZARR_OK;
}

/* ---- elements that another writer removed -------------------------------- */

static zarr_status shrunk(const struct zr_array_state *s, const uint64_t *shape,
                          zarr_error *err)
{
    int32_t d = 0;

    while (d < s->meta.ndim - 1 && shape[d] >= s->meta.shape[d])
        d++;
    return zr_fail(err, ZARR_ERR_CONFLICT,
                   "elements that are read no longer exist: dimension %" PRId32
                   " had length %" PRIu64 " when the array was opened, and has %" PRIu64
                   " now",
                   d, s->meta.shape[d], shape[d]);
}

static bool is_within(const struct zr_array_state *s, const zarr_selection *sel,
                      const uint64_t *shape)
{
    if (sel)
        return zr_selection_is_within(sel, shape);
    for (int32_t d = 0; d < s->meta.ndim; d++)
        if (s->meta.shape[d] > shape[d])
            return false;
    return true;
}

zarr_status zr_array_recheck_read(zarr_array *a, struct zr_array_state *s,
                                  const struct zr_io *io, const zarr_cancel *cancel,
                                  zarr_error *err)
{
    const int32_t last = s->meta.ndim - 1;
    uint64_t shape[ZARR_MAX_RANK], items[ZARR_MAX_RANK];
    bool within = true;

    if (!a->may_go)
        return ZARR_OK;
    ZR_CHECK(find_shape(a, s, shape, cancel, err));
    memcpy(items, shape, sizeof items);
    if (io && io->elements_each > 1) /* the selection is one of packed bytes */
        items[last] = zr_ceil_div_u64(items[last], io->elements_each);
    for (uint32_t i = 0; io && i < io->n_parts; i++)
        within = within && is_within(s, io->selections[i], items);
    if (!io || !io->parts)
        within = is_within(s, io ? io->selection : NULL, items);
    if (!within)
        return shrunk(s, shape, err);
    return ZARR_OK;
}

zarr_status zarr_array_recheck(zarr_array *array, const zarr_cancel *cancel,
                               zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = zr_array_recheck_read(array, s, NULL, cancel, err);

    zr_array_state_free(s);
    return zr_path_prefix(err, st, array->h.path);
}
