/*
 * tree/copy.c - copies and moves a node with everything below it, object by object and
 * byte for byte, between any two stores. Chunks go first, in parallel; then the
 * documents, deepest first and the node's own last. Until that one exists, no
 * reader takes the copy for a complete node. An interrupted copy can be continued
 * (SKIP_EQUAL): objects that exist with equal bytes are not written again. A move inside
 * one store that can rename is a single rename. Thread class: plain functions.
 */
#include "tree/copy_int.h"

#include <stdlib.h>

static zarr_status copy_chunk_item(void *arg, uint64_t i, uint32_t worker,
                                   zarr_error *err)
{
    struct zr_copy *c = arg;

    ZR_UNUSED(worker);
    return zr_copy_object(c, c->chunk[i], err);
}

/* ---- what to copy, in which order --------------------------------------- */

int zr_copy_rank(const char *key)
{
    const char *name = zr_path_name(key);

    if (zr_streq(name, ZR_DOC_ATTRS) || zr_streq(name, ZR_DOC_CONSOLIDATED))
        return 0;
    if (zr_streq(name, ZR_DOC_V3) || zr_streq(name, ZR_DOC_ARRAY) ||
        zr_streq(name, ZR_DOC_GROUP))
        return 1;
    return 2;
}

bool zr_copy_is_document(const char *key)
{
    return zr_copy_rank(key) != 2;
}

static int compare_documents(const void *a, const void *b)
{
    const char *p = *(const char *const *)a, *q = *(const char *const *)b;
    const size_t m = zr_path_depth(p), n = zr_path_depth(q);

    if (m != n)
        return m > n ? -1 : 1;
    return zr_copy_rank(p) - zr_copy_rank(q);
}

static zarr_status sort_keys(struct zr_copy *c, zarr_error *err)
{
    const size_t n = c->keys.n;

    c->chunk = zr_calloc(c->ctx->alloc, ZR_MAX(n, 1), 2 * sizeof *c->chunk);
    if (!c->chunk)
        return zr_fail_memory(err, n * 2 * sizeof *c->chunk);
    c->document = c->chunk + n;
    for (size_t i = 0; i < n; i++) {
        if (zr_streq(c->keys.item[i], ZR_DOC_JOB)) {
            c->incomplete = true; /* see end_job() */
            continue;
        }
        if (zr_copy_rank(c->keys.item[i]) == 2)
            c->chunk[c->n_chunks++] = c->keys.item[i];
        else
            c->document[c->n_documents++] = c->keys.item[i];
    }
    if (c->n_documents == 0) /* copy_run() found one */
        return zr_fail(err, ZARR_ERR_CONFLICT,
                       "/%s was deleted or replaced while it was listed", c->src_path);
    if (c->n_documents > 1)
        qsort(c->document, c->n_documents, sizeof *c->document, compare_documents);
    if (!c->is_move)
        return ZARR_OK;
    c->mark = zr_calloc(c->ctx->alloc, ZR_MAX(n, 1), sizeof *c->mark);
    return c->mark ? ZARR_OK : zr_fail_memory(err, n * sizeof *c->mark);
}

enum {
    SURPLUS_BATCH = 64 /* objects that are erased with one call of the store */
};

/* Keys of the destination to erase, each followed by 0. */
struct surplus {
    struct zr_str text;
    size_t n;
};

static zarr_status erase_surplus(const struct zr_copy *c, struct surplus *s,
                                 zarr_error *err)
{
    zarr_store_op op[SURPLUS_BATCH];
    const char *key = zr_str_text(&s->text);
    const size_t n = s->n;
    zarr_status st = zr_str_status(&s->text, err);

    if (st != ZARR_OK)
        return st;
    for (size_t i = 0; i < n; i++, key += strlen(key) + 1)
        op[i] = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                                .flags = zr_key_kind(key),
                                .key = key,
                                .cancel = c->opts.cancel};
    st = zr_store_run(c->dst, op, n, err);
    s->n = 0;
    zr_str_clear(&s->text);
    return st;
}

/* Looks for objects of the destination that the source does not have. Each one is erased,
 * or is an error: a chunk that the source lacks would change elements of the copy. Both
 * lists are sorted. */
static zarr_status settle_surplus(struct zr_copy *c, bool erase, zarr_error *err)
{
    struct zr_names there;
    struct surplus s = {.n = 0};
    struct zr_str key;
    size_t i = 0;
    zarr_status st = ZARR_OK;

    zr_names_init(&there, c->ctx->alloc);
    zr_str_init(&key, c->ctx->alloc);
    zr_str_init(&s.text, c->ctx->alloc);
    there.cancel = c->opts.cancel;
    ZR_TRY(zr_names_keys(&there, c->dst, c->dst_path, err));
    for (size_t j = 0; j < there.n; j++) {
        while (i < c->keys.n && zr_path_compare(c->keys.item[i], there.item[j]) < 0)
            i++;
        if (zr_streq(there.item[j], ZR_DOC_JOB) ||
            (i < c->keys.n && zr_streq(c->keys.item[i], there.item[j])))
            continue;
        ZR_TRY(zr_path_key(&key, c->dst_path, there.item[j], err));
        if (!erase)
            ZR_FAIL(err, ZARR_ERR_EXISTS, "%s exists, but the source lacks it",
                    zr_str_text(&key));
        zr_str_append(&s.text, zr_str_text(&key), key.bytes + 1);
        if (++s.n == SURPLUS_BATCH)
            ZR_TRY(erase_surplus(c, &s, err));
    }
    st = erase_surplus(c, &s, err);
out:
    zr_str_deinit(&key);
    zr_str_deinit(&s.text);
    zr_names_deinit(&there);
    return st;
}

static bool can_rename(const struct zr_copy *c)
{
    return c->is_move && zr_store_same(c->src, c->dst) &&
           !zr_store_is_read_only(c->dst) && *c->src_path && *c->dst_path;
}

/* Lists the source. The documents are read before the chunks are listed. */
static zarr_status list_source(struct zr_copy *c, zarr_error *err)
{
    if (!c->plain)
        ZR_CHECK(zr_copy_see(c, err));
    return zr_tree_keys(&c->keys, c->src, c->src_path, false, c->opts.cancel, err);
}

static bool is_consolidated(const struct zr_copy *c)
{
    return (c->opts.flags & ZARR_COPY_CONSOLIDATED) != 0;
}

/* Moves in one step if both places are in one store that can rename. *moved false: it
 * must be copied, and consolidated metadata lists it meanwhile. */
static zarr_status try_rename(struct zr_copy *c, bool *moved, zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    *moved = false;
    if (!can_rename(c))
        return ZARR_OK;
    if (zr_is_cancelled(c->opts.cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "the move was cancelled");
    if (is_consolidated(c))
        ZR_TRY(zr_consolidated_remove(c->src, c->src_path, c->opts.cancel, err));
    st = zr_store_rename(c->src, c->src_path, c->dst_path, c->opts.cancel, &e);
    *moved = st == ZARR_OK;
    if (st == ZARR_ERR_UNSUPPORTED) {
        st = is_consolidated(c) ? zr_consolidated_restore(c->src, c->src_path, err)
                                : ZARR_OK;
    } else if (st != ZARR_OK) {
        if (is_consolidated(c))
            (void)zr_consolidated_restore(c->src, c->src_path, NULL);
        zr_pass(err, st, &e);
    }
out:
    return st;
}

/* ---- the copy ----------------------------------------------------------- */

/* Erasing the destination, or the source of a move, must not erase the other. */
static zarr_status check_apart(const struct zr_copy *c, zarr_error *err)
{
    bool overlap = false;

    ZR_CHECK(zr_store_overlap(c->src, c->src_path, c->dst, c->dst_path, &overlap, err));
    if (overlap)
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "/%s cannot be copied to /%s: they are one place, or one is inside "
            "the other",
            c->src_path, c->dst_path);
    return ZARR_OK;
}

static zarr_status prepare_destination(struct zr_copy *c, int32_t format, zarr_error *err)
{
    const uint32_t flags = c->opts.flags;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_check_new(c->dst_path, format, &c->ctx->limits, err));
    if (!(flags & ZARR_COPY_SKIP_EQUAL)) {
        const struct zr_erase_watch watch = {.cancel = c->opts.cancel,
                                             .consolidated = is_consolidated(c)};

        if (flags & ZARR_COPY_OVERWRITE) {
            ZR_TRY(zr_parents_check(c->dst, c->dst_path, c->opts.cancel, err));
            ZR_TRY(zr_node_erase_watched(c->dst, c->dst_path, &watch, err));
        } else
            ZR_TRY(zr_node_must_be_new(c->dst, c->dst_path, c->opts.cancel, err));
    }
    ZR_TRY(zr_parents_create(c->dst, c->dst_path, format, c->opts.cancel, err));
out:
    if (zr_is_store_failure(st))
        zr_path_prefix(err, st, c->dst_path);
    return st;
}

/* Says at the destination what is at work there. Of two calls with one destination the
 * second fails: objects of both would be a node that is a copy of neither. */
static zarr_status copy_job(struct zr_copy *c, zarr_error *err)
{
    struct zr_job_note job = {.command = c->is_move ? "mv" : "cp"};
    struct zr_str place;
    bool continues = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&place, c->ctx->alloc);
    zr_store_place(&place, c->src, c->src_path);
    ZR_TRY(zr_str_status(&place, err));
    job.source = zr_str_text(&place);
    if (c->opts.flags & ZARR_COPY_SKIP_EQUAL)
        ZR_TRY(zr_doc_is_there(c->dst, c->dst_path, ZR_DOC_JOB, &continues,
                               c->opts.cancel, err));
    ZR_TRY(zr_job_put(c->dst, c->dst_path, &job, !continues, c->opts.cancel, err));
    c->new_job = !continues;
    /* another call may have completed a node since prepare_destination() looked */
    if (!(c->opts.flags & ZARR_COPY_SKIP_EQUAL))
        st = zr_node_must_be_new(c->dst, c->dst_path, c->opts.cancel, err);
    if (st == ZARR_ERR_EXISTS) /* else the job object may be that of the other call */
        c->new_job = c->new_job && zr_job_is_exclusive(c->dst);
    if (zr_is_store_failure(st))
        zr_path_prefix(err, st, c->dst_path);
out:
    zr_str_deinit(&place);
    return st;
}

static zarr_status begin_job(struct zr_copy *c, zarr_error *err)
{
    const bool replaces = (c->opts.flags & ZARR_COPY_OVERWRITE) != 0;
    const bool removes = replaces && is_consolidated(c);
    zarr_status st = ZARR_OK;

    if (!replaces)
        ZR_TRY(zr_copy_must_not_mix(c, err));
    ZR_TRY(copy_job(c, err));
    if (removes)
        ZR_TRY(zr_consolidated_remove(c->dst, c->dst_path, c->opts.cancel, err));
    if (replaces)
        st = zr_copy_clear_documents(c, err);
    if (removes && st != ZARR_OK)
        (void)zr_consolidated_restore(c->dst, c->dst_path, NULL);
out:
    return st;
}

/* If the source is what an interrupted call left, so is the copy: its job object comes in
 * the place of the one of this call. */
static zarr_status end_job(struct zr_copy *c, zarr_error *err)
{
    struct zr_job_found job;
    zarr_status st = ZARR_OK;

    if (c->plain)
        return ZARR_OK;
    zr_job_found_init(&job, c->ctx->alloc);
    if (c->incomplete)
        ZR_TRY(zr_job_find(&job, c->src, c->src_path, c->opts.cancel, err));
    st = zr_job_restore(c->dst, c->dst_path, &job, c->opts.cancel, err);
out:
    zr_job_found_deinit(&job);
    return st;
}

/* Copies the chunks, then the documents. */
static zarr_status copy_all(struct zr_copy *c, zarr_error *err)
{
    const uint32_t threads = c->opts.max_threads;
    const bool mirror = (c->opts.flags & ZARR_COPY_OVERWRITE) != 0;
    const bool settle = (c->opts.flags & ZARR_COPY_SKIP_EQUAL) &&
                        (!c->plain || c->only_compares) &&
                        (mirror || zr_store_can(c->dst, ZARR_STORE_CAP_LIST));

    ZR_CHECK(sort_keys(c, err));
    if (settle && !mirror) /* before anything changes */
        ZR_CHECK(settle_surplus(c, mirror, err));
    ZR_CHECK(zr_parallel_for(c->n_chunks, threads ? threads : c->ctx->engine.max_threads,
                             copy_chunk_item, c, err));
    if (settle && mirror)
        ZR_CHECK(settle_surplus(c, mirror, err));
    /* A loss of power must not leave documents without chunks. A move keeps its job
     * object until the flush, unless all of it appears at once. */
    if (!c->plain && !c->is_move)
        ZR_CHECK(zr_store_flush_before(c->dst, c->opts.cancel, err));
    for (size_t i = 0; i < c->n_documents; i++)
        ZR_CHECK(zr_copy_object(c, c->document[i], err));
    return ZARR_OK;
}

/* Call it once the destination is there: if it was a link, the copy replaced it. */
static zarr_status put_destination(struct zr_copy *c, zarr_error *err)
{
    zr_str_clear(&c->destination);
    zr_store_place(&c->destination, c->dst, c->dst_path);
    return zr_str_status(&c->destination, err);
}

/* The last step of a move. */
static zarr_status erase_source(struct zr_copy *c, zarr_error *err)
{
    zarr_status st = put_destination(c, err);
    const struct zr_erase_watch watch = {.wait = c->opts.cancel,
                                         .consolidated = is_consolidated(c),
                                         .find_source_version =
                                             zr_copy_find_source_version,
                                         .move = c,
                                         .destination = zr_str_text(&c->destination)};

    if (st == ZARR_OK)
        st = zr_node_erase_watched(c->src, c->src_path, &watch, err);
    if (st != ZARR_OK)
        zr_path_prefix(err, st, c->src_path);
    return st;
}

/* There is no source. *finished: a move was interrupted at its last step, which is done
 * now. */
static zarr_status finish_move(struct zr_copy *c, bool *finished, zarr_error *err)
{
    const char *destination;
    struct zr_job_found job, there;
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_status st = ZARR_OK;

    *finished = false;
    if (!c->is_move || !(c->opts.flags & (ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE)))
        return ZARR_OK;
    zr_job_found_init(&job, c->ctx->alloc);
    zr_job_found_init(&there, c->ctx->alloc);
    ZR_TRY(zr_job_find(&job, c->src, c->src_path, c->opts.cancel, err));
    if (job.delete != ZR_JOB_MOVE)
        goto out;
    ZR_TRY(put_destination(c, err));
    destination = zr_str_text(&c->destination);
    if (!zr_streq(zr_str_text(&job.destination), destination))
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND,
                "/%s: there is only the rest of a move to \"%s\", not to \"%s\": "
                "repeat that move, or delete the rest with zarr_node_delete()",
                c->src_path, zr_str_text(&job.destination), destination);
    ZR_TRY(check_apart(c, err));
    ZR_TRY(zarr_node_probe(c->dst, c->dst_path, &kind, &format, c->opts.cancel, err));
    ZR_TRY(zr_job_find(&there, c->dst, c->dst_path, c->opts.cancel, err));
    /* a node that was never filled keeps its mark */
    *finished = kind != ZARR_NODE_NONE && there.delete == ZR_JOB_NO_DELETE &&
                (there.before.bytes == 0 ||
                 zr_streq(zr_str_text(&there.before), zr_str_text(&job.before)));
    if (*finished)
        st = erase_source(c, err);
out:
    zr_job_found_deinit(&there);
    zr_job_found_deinit(&job);
    return st;
}

/* A destination that appears at once has one flush, without the job object. */
static zarr_status flush_at_once(struct zr_copy *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (c->src != c->dst && zr_store_can(c->dst, ZARR_STORE_CAP_ATOMIC_FLUSH))
        st = zr_store_flush(c->dst, c->opts.cancel, err);
    if (st != ZARR_OK)
        (void)copy_job(c, NULL); /* it is not complete */
    return st;
}

static zarr_status copy_objects(struct zr_copy *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_cancel_check(c->opts.cancel, err));
    if (!c->plain)
        ZR_TRY(begin_job(c, err));
    ZR_TRY(copy_all(c, err));
    if (c->is_move) {
        ZR_TRY(zr_store_flush_before(c->dst, c->opts.cancel, err));
        /* a writer that has a lock may have read already what it changes */
        ZR_TRY(zr_store_wait_for_writers(c->src, c->src_path, c->opts.cancel, err));
        ZR_TRY(zr_copy_check_source(c, err));
    }
    ZR_TRY(end_job(c, err));
    if (c->is_move) {
        ZR_TRY(flush_at_once(c, err));
        st = erase_source(c, err);
    }
out:
    return st;
}

/* Continues a copy in a store that cannot be written, such as an archive in a bucket. It
 * must be complete. */
static zarr_status compare_destination(struct zr_copy *c, zarr_error *err)
{
    bool has_job = false;
    zarr_error e = {0};
    zarr_status st =
        zr_doc_is_there(c->dst, c->dst_path, ZR_DOC_JOB, &has_job, c->opts.cancel, err);

    ZR_TRY(st);
    ZR_TRY(list_source(c, err));
    st = has_job ? zr_fail(&e, ZARR_ERR_EXISTS, "the copy is not complete")
                 : copy_objects(c, &e);
    if (st == ZARR_ERR_EXISTS)
        st = zr_prefix(&e, ZARR_ERR_UNSUPPORTED,
                       "%s cannot be changed, and does not equal the source: delete it, "
                       "or choose another destination",
                       zarr_store_url(c->dst));
    zr_pass(err, st, &e);
out:
    return st;
}

static bool can_only_compare(const struct zr_copy *c)
{
    return (c->opts.flags & (ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE)) ==
               ZARR_COPY_SKIP_EQUAL &&
           !c->plain && !zr_store_can(c->dst, ZARR_STORE_CAP_WRITE);
}

static zarr_status copy_or_rename(struct zr_copy *c, int32_t format, zarr_error *err)
{
    bool moved = false, listed = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(check_apart(c, err));
    if (!c->plain)
        ZR_TRY(zr_copy_find_mark(c, err));
    c->only_compares = can_only_compare(c);
    if (c->only_compares) {
        c->plain = true;
        ZR_LEAVE(compare_destination(c, err));
    }
    /* Lists before the destination is erased. If a store cannot tell that source and
     * destination are one place, the result must not be a copy of nothing. */
    c->keys.cancel = c->seen_keys.cancel = c->opts.cancel;
    listed = !can_rename(c) || c->changes_mark;
    if (listed)
        ZR_TRY(list_source(c, err));
    if (!c->plain)
        ZR_TRY(zr_claim_take(&c->claim, c->dst, c->dst_path, c->opts.cancel, err));
    ZR_TRY(prepare_destination(c, format, err));
    ZR_TRY(try_rename(c, &moved, err));
    if (moved)
        goto out;
    if (!listed)
        ZR_TRY(list_source(c, err));
    st = copy_objects(c, err);
out:
    if (st != ZARR_OK && c->new_job && c->locked.objects == 0)
        (void)zr_job_erase(c->dst, c->dst_path, c->opts.cancel,
                           NULL); /* there is nothing to continue */
    zr_claim_give(&c->claim);
    return st;
}

static zarr_status copy_run(struct zr_copy *c, zarr_error *err)
{
    const struct zr_find where = {
        .store = c->src, .path = c->src_path, .cancel = c->opts.cancel};
    struct zr_found found;
    zarr_error e = {0};
    bool finished = false;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, c->ctx->alloc);
    if (c->is_move) /* no other call may delete or replace what it takes away */
        ZR_TRY(zr_claim_node(&c->source, c->src, c->src_path, c->opts.cancel, err));
    st = zr_node_find(&found, &where, &e);
    if (found.format != 0) { /* a broken node can be copied as it is */
        st = copy_or_rename(c, found.format, err);
        goto out;
    }
    if (st == ZARR_ERR_NOT_FOUND) {
        ZR_TRY(finish_move(c, &finished, err));
        st = finished ? ZARR_OK
                      : zr_fail(&e, ZARR_ERR_NOT_FOUND, "there is no array or group");
    }
    zr_path_prefix(&e, st, c->src_path);
    zr_pass(err, st, &e);
out:
    zr_claim_give(&c->source);
    zr_found_deinit(&found);
    return st;
}

static zarr_status copy_begin(struct zr_copy *c, const char *src_path,
                              const char *dst_path, const zarr_copy_options *opts,
                              zarr_error *err)
{
    const zarr_limits *limits = &c->ctx->limits;

    zr_mutex_init(&c->locked.mutex);
    zr_str_init(&c->destination, c->ctx->alloc);
    zr_names_init(&c->keys, c->ctx->alloc);
    zr_names_init(&c->seen_keys, c->ctx->alloc);
    ZR_CHECK(zr_struct_read(&c->opts, sizeof c->opts, 2 * sizeof(uint32_t), opts,
                            ZR_TAIL_REFUSE, "zarr_copy_options", err));
    ZR_CHECK(zr_flags_check(c->opts.flags,
                            ZARR_COPY_OVERWRITE | ZARR_COPY_SKIP_EQUAL |
                                ZARR_COPY_CONSOLIDATED,
                            "copy options", err));
    if (c->opts.objects_skipped)
        *c->opts.objects_skipped = 0;
    if (c->opts.bytes_skipped)
        *c->opts.bytes_skipped = 0;
    ZR_CHECK(zr_path_normal(&c->src_path, c->ctx->alloc, src_path, limits, err));
    return zr_path_normal(&c->dst_path, c->ctx->alloc, dst_path, limits, err);
}

static void copy_end(struct zr_copy *c)
{
    zr_str_deinit(&c->destination);
    zr_free(c->ctx->alloc, c->chunk);
    zr_free(c->ctx->alloc, c->src_path);
    zr_free(c->ctx->alloc, c->dst_path);
    zr_names_deinit(&c->keys);
    zr_names_deinit(&c->seen_keys);
    zr_free(c->ctx->alloc, c->seen);
    zr_free(c->ctx->alloc, c->mark);
    zr_mutex_deinit(&c->locked.mutex);
}

zarr_status zr_node_copy_plain(zarr_store *src, const char *src_path, zarr_store *dst,
                               const char *dst_path, const zarr_copy_options *opts,
                               zarr_error *err)
{
    struct zr_copy c = {
        .src = src, .dst = dst, .ctx = zr_store_context(src), .plain = true};
    zarr_status st = copy_begin(&c, src_path, dst_path, opts, err);

    if (st == ZARR_OK)
        st = copy_run(&c, err);
    copy_end(&c);
    return st;
}

zarr_status zarr_node_copy(zarr_store *src, const char *src_path, zarr_store *dst,
                           const char *dst_path, const zarr_copy_options *opts,
                           zarr_error *err)
{
    ZR_NEED(src, err);
    ZR_NEED(dst, err);
    struct zr_copy c = {.src = src, .dst = dst, .ctx = zr_store_context(src)};
    zarr_status st = copy_begin(&c, src_path, dst_path, opts, err);

    if (st == ZARR_OK)
        st = copy_run(&c, err);
    copy_end(&c);
    return st;
}

zarr_status zarr_node_move(zarr_store *src, const char *src_path, zarr_store *dst,
                           const char *dst_path, const zarr_copy_options *opts,
                           zarr_error *err)
{
    ZR_NEED(src, err);
    ZR_NEED(dst, err);
    struct zr_copy c = {
        .src = src, .dst = dst, .ctx = zr_store_context(src), .is_move = true};
    zarr_status st = copy_begin(&c, src_path, dst_path, opts, err);

    if (st == ZARR_OK && zr_store_is_read_only(src))
        st = zr_fail(err, ZARR_ERR_INVALID, "the source store is read-only");
    if (st == ZARR_OK && !zr_store_can(src, ZARR_STORE_CAP_WRITE))
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED, "stores of kind %s cannot write",
                     zr_store_name(src));
    /* A caller that moves a link means the link; others may need what it leads to. */
    if (st == ZARR_OK && *c.src_path == '\0' && zr_store_is_by_link(src))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "%s is a symbolic link to the store, which a move would empty: "
                     "move the link, or open the store by its own path",
                     zarr_store_url(src));
    if (st == ZARR_OK)
        st = copy_run(&c, err);
    copy_end(&c);
    return st;
}
