/*
 * array/create/create.c - creates arrays. The spec becomes a document, the parser that
 * will read the document checks it, and it is written canonically: first the parents, the
 * array's own document last and only if there is none, together with its attributes (v2)
 * under the key's lock. Thread class: plain functions. Of several calls that create one
 * array, one works at a time: from its first look at the path until the array is open.
 */
#include "array/create/spec_int.h"
#include "array/array_int.h"
#include "array/shape/shape_int.h"

struct array_making {
    const zarr_context *ctx;
    zarr_store *store, *chunk_store;
    const char *path;
    struct zr_making making;
    zarr_array_spec spec;
    struct zr_spec_like like;
    bool for_device; /* without codecs in the spec: those that devices are fast at */
    int32_t format;
    struct zr_parsed *parsed, *attrs; /* counted */
    struct zr_array_state *state;     /* counted: as asked for, and completed */
    struct zr_str text;               /* of the document */
};

static void document_deinit(struct array_making *m)
{
    zr_array_state_free(m->state);
    zr_parsed_free(m->parsed);
    zr_parsed_free(m->attrs);
    zr_str_deinit(&m->text);
}

static void making_deinit(struct array_making *m)
{
    zr_making_end(&m->making);
    zr_spec_like_deinit(&m->like);
    document_deinit(m);
}

/* Parses the document that the spec asks for, completes it, and writes it as it will be
 * stored. */
static zarr_status make_document(struct array_making *m, zarr_error *err)
{
    struct zr_array_source src;
    struct zr_json *root = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, m->ctx->alloc);
    ZR_TRY(zr_parsed_new(&m->parsed, m->ctx->alloc, err));
    ZR_TRY(zr_parsed_new(&m->attrs, m->ctx->alloc, err));
    ZR_TRY(zr_spec_document(m->parsed, m->attrs, &m->format, m->ctx, &m->spec,
                            m->for_device, err));
    src = zr_array_source_make(m->format, m->parsed, m->format == 2 ? m->attrs : NULL,
                               NULL);
    src.asked = true;
    src.fill_spelled = !m->spec.document;
    ZR_TRY(zr_array_state_new(&m->state, m->ctx, &src, err));
    /* only this thread has the state */
    ZR_TRY(zr_array_meta_complete(&m->state->meta, err));
    ZR_TRY(zr_array_meta_write_new(&m->state->meta, &doc, &root, err));
    zr_json_write(root, ZR_META_INDENT, &m->text);
    /* the handle keeps what the store will have */
    if (m->format == 2)
        zr_json_set(&m->parsed->json, m->parsed->json.root, "fill_value",
                    zr_json_copy(&m->parsed->json, zr_json_get(root, "fill_value")));
    if (!zr_json_is_ok(&m->parsed->json))
        ZR_FAIL_MEMORY(err, m->parsed->json.arena.used_bytes);
    zr_json_quote_tokens(m->parsed->json.root);
    zr_json_quote_tokens(m->attrs->json.root);
    ZR_TRY(zr_str_status(&m->text, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status check_layout(const struct zr_array_state *s, const zarr_context *ctx,
                                const zarr_limits *limits, zarr_error *err)
{
    const struct zr_layout_args args = {.grid = &s->meta.grid,
                                        .chain = s->meta.chain,
                                        .keys = &s->meta.keys,
                                        .dtype = s->meta.dtype,
                                        .fill = s->meta.fill,
                                        .index_dtype = ctx->uint64,
                                        .impls = &ctx->impls,
                                        .limits = limits,
                                        .device_type = ZARR_DEVICE_CPU,
                                        .trust = ctx->trust};
    struct zr_layout *layout = NULL;
    const zarr_status st = zr_layout_make(&layout, &args, ctx->alloc, err);

    zr_layout_free(layout);
    return st == ZARR_ERR_LIMIT ? st : ZARR_OK; /* else reading says what is wrong */
}

/* LIMIT if a context with these limits refuses the array's chunks. */
static zarr_status array_fits(const struct zr_array_state *s, const zarr_context *ctx,
                              const zarr_limits *limits, zarr_error *err)
{
    const uint64_t largest = zr_largest_chunk_bytes(&s->meta.grid, s->meta.dtype);
    zarr_limits own;

    zr_chunk_limits(&own, limits, s->meta.dtype);
    if (!s->meta.grid.regular && !s->sharded && largest > own.chunk_bytes)
        return zr_fail_limit(err, zr_chunk_limit_name(s->meta.dtype), own.chunk_bytes,
                             "a chunk of %" PRIu64 " bytes", largest);
    return check_layout(s, ctx, &own, err);
}

/* Warns in the log if a reader with default limits refuses the array or its document. A
 * default that depends on the reader's memory counts with its least value. */
static void warn_readers(const struct zr_array_state *s, const zarr_context *ctx,
                         const struct zr_str *text, const char *path)
{
    zarr_limits usual;
    struct zr_json_doc doc;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    zr_limits_default(&usual);
    usual.chunk_bytes = ZR_CHUNK_BYTES_LEAST;
    usual.variable_chunk_bytes = ZR_VARIABLE_CHUNK_BYTES_LEAST;
    zr_json_doc_init(&doc, ctx->alloc);
    if (text->bytes > usual.metadata_bytes)
        st = zr_fail_limit(&why, "metadata_bytes", usual.metadata_bytes,
                           "the document has %zu bytes", text->bytes);
    if (st == ZARR_OK)
        st = zr_json_parse(&doc, zr_str_text(text), text->bytes, &usual, &why);
    if (st == ZARR_OK)
        st = array_fits(s, ctx, &usual, &why);
    if (st == ZARR_ERR_LIMIT)
        zr_log(&ctx->log, ZARR_LOG_WARN,
               "/%s: a reader with default limits may refuse this array: %s", path,
               why.message);
    zr_json_doc_deinit(&doc);
}

static zarr_status erase_old(const struct array_making *m, zarr_error *err)
{
    bool is_node = false;

    ZR_CHECK(zr_node_may_go(m->store, m->path, &is_node, m->spec.cancel, err));
    if (!zr_store_can(m->chunk_store, ZARR_STORE_CAP_LIST))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "stores of kind %s cannot list the chunks that are to be deleted",
                       zr_store_name(m->chunk_store));
    if (!is_node && m->chunk_store != m->store)
        ZR_CHECK(zr_prefix_may_go(m->chunk_store, m->path, m->spec.cancel, err));
    if (m->chunk_store != m->store)
        ZR_CHECK(zr_store_wait_for_writers(m->chunk_store, m->path, m->spec.cancel, err));
    ZR_CHECK(zr_node_erase_old(m->store, m->path, is_node,
                               (m->spec.flags & ZARR_SPEC_CONSOLIDATED) != 0,
                               m->spec.cancel, err));
    if (m->chunk_store != m->store)
        ZR_CHECK(zr_store_erase_prefix(m->chunk_store, m->path, m->spec.cancel, err));
    return ZARR_OK;
}

/* Chunks of an array that was deleted in part would be elements of the new array. */
static zarr_status must_be_no_chunks(const struct array_making *m, zarr_error *err)
{
    ZR_CHECK(zr_job_must_not_be(m->store, m->path, m->spec.cancel, err));
    if (!(m->spec.flags & ZARR_SPEC_KEEP_CHUNKS))
        return zr_chunks_must_not_be(m->chunk_store, m->path, &m->state->meta,
                                     m->spec.cancel, err);
    return ZARR_OK;
}

static zarr_status write_array(struct array_making *m, bool *overtaken, zarr_error *err)
{
    const struct zr_new_node node = {.path = m->path,
                                     .kind = ZARR_NODE_ARRAY,
                                     .text = &m->text,
                                     .format = m->format,
                                     .attrs = m->attrs->json.root};
    zarr_status st = ZARR_OK;

    *overtaken = false;
    if (m->making.overwrite)
        ZR_TRY(erase_old(m, err));
    else
        ZR_TRY(must_be_no_chunks(m, err));
    st = zr_making_write(&m->making, &node, err);
    *overtaken = st == ZARR_ERR_EXISTS;
out:
    return st;
}

/* *overtaken: in a store without locks, another call made or deleted the array
 * meanwhile. */
static zarr_status write_and_open(zarr_array **out, struct array_making *m,
                                  const zarr_array_open_options *opts, bool *overtaken,
                                  zarr_error *err)
{
    zarr_status st = write_array(m, overtaken, err);

    if (st != ZARR_OK)
        return zr_path_prefix(err, st, m->path);
    st = zarr_array_open(out, m->store, m->path, opts, err);
    *overtaken = st == ZARR_ERR_NOT_FOUND;
    return st;
}

static void put_shape_text(struct zr_str *out, const struct zr_array_meta *m)
{
    zr_str_putc(out, '[');
    for (int32_t d = 0; d < m->ndim; d++)
        zr_str_printf(out, "%s%" PRIu64, d > 0 ? ", " : "", m->shape[d]);
    zr_str_putc(out, ']');
}

static zarr_status shape_differs(const struct array_making *m,
                                 const struct zr_array_meta *have, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, m->ctx->alloc);
    put_shape_text(&text, have);
    zr_str_puts(&text, ", but the shape asked for is ");
    put_shape_text(&text, &m->state->meta);
    ZR_TRY(zr_str_status(&text, err));
    st =
        zr_fail(err, ZARR_ERR_EXISTS, "/%s: there is an array already, whose shape is %s",
                m->path, zr_str_text(&text));
out:
    zr_str_deinit(&text);
    return st;
}

/* Compares all members except attributes, which may change at any time, and the shape. A
 * grid may list more chunks for a larger shape. */
static zarr_status compare_asked(const struct array_making *m,
                                 const struct zr_array_meta *now, zarr_error *err)
{
    static const char *const skipped[] = {"attributes", "shape", "chunk_grid", "chunks"};
    const struct zr_array_meta *wanted = &m->state->meta;
    const bool same_chunks =
        now->ndim == wanted->ndim && zr_grid_same_chunks(&now->grid, &wanted->grid);
    const size_t n_skipped = same_chunks ? ZR_COUNT(skipped) : 2;
    struct zr_json *have = NULL, *want = NULL;
    const char *other = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, m->ctx->alloc);
    ZR_TRY(zr_array_meta_write_canonical(now, &doc, &have, err));
    ZR_TRY(zr_array_meta_write_canonical(wanted, &doc, &want, err));
    for (size_t i = 0; i < n_skipped; i++) {
        zr_json_remove(have, skipped[i]);
        zr_json_remove(want, skipped[i]);
    }
    for (const struct zr_json *v = want->u.children.first; v && !other; v = v->next)
        other = zr_json_equal(zr_json_get(have, v->key), v) ? NULL : v->key;
    if (other || !zr_json_equal(have, want))
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "/%s: there is an array with other metadata already (%s differs)",
                     m->path, other ? other : "a member");
out:
    zr_json_doc_deinit(&doc);
    return st;
}

/* The array may have grown since it was created. */
static zarr_status is_as_made(const struct array_making *m, const zarr_array *a,
                              zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(a);
    const struct zr_array_meta *now = &s->meta, *wanted = &m->state->meta;
    zarr_status st = ZARR_OK;

    if (now->ndim != wanted->ndim)
        ZR_TRY(shape_differs(m, now, err));
    for (int32_t d = 0; d < now->ndim; d++)
        if (now->shape[d] < wanted->shape[d])
            ZR_TRY(shape_differs(m, now, err));
    ZR_TRY(compare_asked(m, now, err));
out:
    zr_array_state_free(s);
    return st;
}

/* The codecs of a spec that names none may be those of either default. */
static zarr_status is_what_was_asked(struct array_making *m, const zarr_array *a,
                                     zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = is_as_made(m, a, &e);

    if (st != ZARR_ERR_EXISTS || m->spec.codecs || m->spec.document)
        goto out;
    document_deinit(m);
    m->state = NULL;
    m->parsed = m->attrs = NULL;
    m->for_device = !m->for_device;
    zr_str_init(&m->text, m->ctx->alloc);
    if (make_document(m, NULL) == ZARR_OK && is_as_made(m, a, NULL) == ZARR_OK)
        return ZARR_OK;
out:
    zr_pass(err, st, &e);
    return st;
}

/* Opens what made the creation fail, if it is the array that was asked for. */
static zarr_status open_existing(zarr_array **out, struct array_making *m,
                                 const zarr_array_open_options *opts, zarr_error *exists,
                                 zarr_error *err)
{
    zarr_error no_array = {0};
    zarr_status st = zarr_array_open(out, m->store, m->path, opts, &no_array);

    if (st == ZARR_OK)
        return is_what_was_asked(m, *out, err);
    if (st != ZARR_ERR_NOT_FOUND)
        return zr_pass(err, st, &no_array);
    /* a node or other keys are in the way */
    return zr_pass(err, ZARR_ERR_EXISTS, exists);
}

static zarr_status create_and_open(zarr_array **out, struct array_making *m,
                                   const zarr_array_open_options *opts, zarr_error *err)
{
    struct zr_backoff wait;
    bool overtaken = true;
    zarr_error e = {0};
    zarr_status st = zr_path_check_new(m->path, m->format, &m->ctx->limits, &e);

    if (st == ZARR_OK)
        st = zr_making_begin(&m->making, &e);
    if (st != ZARR_OK)
        zr_path_prefix(&e, st, m->path);
    zr_backoff_init(&wait, m->store, m->path, m->making.cancel);
    while (st == ZARR_OK && overtaken) {
        st = write_and_open(out, m, opts, &overtaken, &e);
        overtaken = overtaken && m->making.overwrite;
        if (overtaken) /* by a call that replaces the same node without locks */
            st = zr_backoff_wait(&wait, st, &e);
    }
    if (st == ZARR_ERR_EXISTS && m->spec.flags & ZARR_SPEC_IF_MISSING)
        st = open_existing(out, m, opts, &e, err);
    else
        zr_pass(err, st, &e);
    if (st != ZARR_OK) {
        zarr_array_free(*out);
        *out = NULL;
    } else if (m->making.is_filled && m->making.has_begun) {
        zr_handle_claim(&(*out)->h, &m->making.claim);
    }
    return st;
}

static zarr_status read_spec(struct array_making *m, const zarr_array_spec *spec,
                             zarr_error *err)
{
    ZR_CHECK(zr_spec_read(&m->spec, spec, err));
    if (!m->spec.like)
        return ZARR_OK;
    ZR_CHECK(zr_spec_like_make(&m->like, m->ctx, &m->spec, err));
    return zr_spec_read(&m->spec, &m->like.spec, err);
}

/* Whether tensors that name no memory are in a GPU's, pinned or managed memory. */
static bool is_for_device(const zarr_store *chunks, const zarr_array_open_options *o)
{
    int32_t type = 0, id = 0;

    zr_array_default_memory(chunks, o, &type, &id);
    return type == ZARR_DEVICE_CUDA || type == ZARR_DEVICE_CUDA_HOST ||
           type == ZARR_DEVICE_CUDA_MANAGED;
}

zarr_status zarr_array_create(zarr_array **out, zarr_store *store, const char *path,
                              const zarr_array_spec *spec,
                              const zarr_array_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(store, err);
    struct array_making m = {.ctx = zr_store_context(store), .store = store};
    zarr_array_open_options o;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    zr_str_init(&m.text, m.ctx->alloc);
    ZR_TRY(zr_array_options_read(&o, opts, 0, err));
    ZR_TRY(zr_path_normal(&normal, m.ctx->alloc, path, &m.ctx->limits, err));
    m.path = normal;
    m.chunk_store = o.chunk_store ? o.chunk_store : store;
    st = read_spec(&m, spec, err);
    m.for_device = st == ZARR_OK && !m.spec.codecs && is_for_device(m.chunk_store, &o);
    if (st == ZARR_OK)
        st = make_document(&m, err);
    if (st == ZARR_OK)
        st = array_fits(m.state, m.ctx, &m.ctx->limits, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, normal);
        goto out;
    }
    warn_readers(m.state, m.ctx, &m.text, normal);
    o.zarr_format = m.format;
    m.making = (struct zr_making){.store = store,
                                  .path = normal,
                                  .format = m.format,
                                  .overwrite = m.spec.flags & ZARR_SPEC_OVERWRITE,
                                  .has_parents = !(m.spec.flags & ZARR_SPEC_NO_PARENTS),
                                  .is_filled = m.spec.flags & ZARR_SPEC_CLAIM,
                                  .cancel = m.spec.cancel};
    ZR_TRY(create_and_open(out, &m, &o, err));
out:
    making_deinit(&m);
    zr_free(m.ctx->alloc, normal);
    return st;
}

zarr_status zarr_array_release_claim(zarr_array *array, int is_complete,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(array, err);
    return zr_handle_release_claim(&array->h, is_complete, cancel, err);
}
