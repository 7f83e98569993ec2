/*
 * array/stored/objects.c - finds the stored objects of an array in the store's listing:
 * keys that the key encoding can read back as a chunk inside the grid. Documents are
 * skipped. Other keys are foreign: they are counted. But a key that names a file where a
 * folder of chunks would be is an error, because it hides these chunks. The rows are
 * collected first, because a store need not support changes while it lists. Thread class:
 * solo.
 */
#include "array/stored/stored_int.h"

#include <string.h>

void zr_array_key_append(const zarr_array *a, const struct zr_array_state *s,
                         const uint64_t *chunk, struct zr_str *out)
{
    if (*a->h.path) {
        zr_str_puts(out, a->h.path);
        zr_str_putc(out, '/');
    }
    zr_key_encoding_key(&s->meta.keys, s->meta.ndim, chunk, out);
}

zarr_status zr_array_key(const zarr_array *a, const struct zr_array_state *s,
                         const uint64_t *chunk, struct zr_str *out, zarr_error *err)
{
    zr_str_clear(out);
    zr_array_key_append(a, s, chunk, out);
    return zr_str_status(out, err);
}

void zr_stored_deinit(struct zr_stored *s)
{
    zr_free(s->alloc, s->row);
    for (int i = 0; i < 2; i++)
        zr_free(s->alloc, s->foreign[i].key);
    zr_free(s->alloc, s->suspect);
    zr_str_deinit(&s->keys);
    *s = (struct zr_stored){0};
}

struct stored_listing {
    struct zr_stored *out;
    const struct zr_array_state *s;
    size_t skip;
    const uint64_t *inside; /* see zr_stored_list() */
    uint64_t limit;
    const zarr_cancel *cancel;
    struct zr_str first; /* key of the first chunk, once it is needed */
    zarr_status st;
    zarr_error *err;
};

static bool is_inside_grid(const struct zr_array_state *s, const uint64_t *chunk)
{
    for (int32_t d = 0; d < s->meta.ndim; d++)
        if (chunk[d] >= zr_grid_n_chunks(&s->meta.grid, d))
            return false;
    return true;
}

static bool is_below_all(const uint64_t *chunk, const uint64_t *inside, int32_t ndim)
{
    for (int32_t d = 0; d < ndim; d++)
        if (chunk[d] >= inside[d])
            return false;
    return true;
}

static zarr_status add_stored(struct stored_listing *l, const uint64_t *chunk,
                              uint64_t bytes)
{
    struct zr_stored *out = l->out;
    const size_t width = (size_t)out->ndim + 1;

    if (out->n >= l->limit)
        return zr_fail_limit(l->err, "listing_keys", l->limit,
                             "more than %" PRIu64 " chunks in a listing", l->limit);
    ZR_CHECK(zr_grow(out->alloc, &out->row, &out->cap, out->n + 1,
                     width * sizeof *out->row, l->err));
    memcpy(out->row + out->n * width, chunk, (width - 1) * sizeof *chunk);
    out->row[out->n * width + width - 1] = bytes;
    out->n++;
    return ZARR_OK;
}

/* ---- suspects ---- */

/* Makes a suspect of the last text of out->keys, which begins there. Drops the text, and
 * returns NULL, if no chunk of the grid has that key. */
static struct zr_suspect *end_suspect(struct stored_listing *l, size_t begin,
                                      bool below_file)
{
    struct zr_stored *out = l->out;
    uint64_t chunk[ZARR_MAX_RANK];

    l->st = zr_str_status(&out->keys, l->err);
    if (l->st == ZARR_OK &&
        zr_key_encoding_chunk(&l->s->meta.keys, l->s->meta.ndim,
                              out->keys.ptr + begin + l->skip, chunk) &&
        is_inside_grid(l->s, chunk)) {
        zr_str_append(&out->keys, "", 1);
        l->st = zr_grow(out->alloc, &out->suspect, &out->cap_suspects,
                        out->n_suspects + 1, sizeof *out->suspect, l->err);
        if (l->st != ZARR_OK)
            return NULL;
        out->suspect[out->n_suspects] =
            (struct zr_suspect){.chunk = begin, .below_file = below_file};
        return &out->suspect[out->n_suspects++];
    }
    out->keys.bytes = begin;
    return NULL;
}

/* Notes a key that would be a folder of chunks: "c/5" hides "c/5/0". The depth of the
 * first chunk's key shows this. */
static struct zr_suspect *note_above(struct stored_listing *l, const char *key)
{
    const uint64_t zeros[ZARR_MAX_RANK] = {0};
    struct zr_str *keys = &l->out->keys;
    const size_t begin = keys->bytes;
    const char *below;

    if (l->first.bytes == 0)
        zr_key_encoding_key(&l->s->meta.keys, l->s->meta.ndim, zeros, &l->first);
    below = strchr(zr_str_text(&l->first), '/');
    for (const char *p = strchr(key + l->skip, '/'); p && below; p = strchr(p + 1, '/'))
        below = strchr(below + 1, '/');
    if (!below)
        return NULL;
    zr_str_puts(keys, key);
    zr_str_puts(keys, below);
    return end_suspect(l, begin, true);
}

/* Notes the folder that the first n bytes of a key name, if a chunk has that key. A
 * listing tells all that is below a folder at once, so only the last suspect may be the
 * same. */
static struct zr_suspect *note_folder(struct stored_listing *l, const char *key, size_t n)
{
    struct zr_stored *out = l->out;
    struct zr_suspect *last = out->n_suspects ? &out->suspect[out->n_suspects - 1] : NULL;
    const size_t begin = out->keys.bytes;

    if (last && strlen(out->keys.ptr + last->chunk) == n &&
        memcmp(out->keys.ptr + last->chunk, key, n) == 0)
        return last;
    zr_str_append(&out->keys, key, n);
    return end_suspect(l, begin, false);
}

/* The suspect that a key belongs to which is neither a chunk nor a document, or NULL. */
static struct zr_suspect *note_suspect(struct stored_listing *l, const char *key)
{
    struct zr_suspect *found = note_above(l, key);

    for (const char *p = strchr(key + l->skip, '/'); p && !found && l->st == ZARR_OK;
         p = strchr(p + 1, '/'))
        found = note_folder(l, key, (size_t)(p - key));
    return found;
}

static zarr_status count_foreign(struct zr_stored *out, int like_chunks, uint64_t n,
                                 const char *key, zarr_error *err)
{
    struct zr_foreign_keys *f = &out->foreign[like_chunks];

    f->n += n;
    if (f->key || n == 0)
        return ZARR_OK;
    f->key = zr_strndup(out->alloc, key, strlen(key));
    return f->key ? ZARR_OK : zr_fail_memory(err, strlen(key) + 1);
}

zarr_status zr_stored_acquit(struct zr_stored *s, const struct zr_suspect *suspect,
                             zarr_error *err)
{
    for (int i = 0; i < 2; i++)
        ZR_CHECK(count_foreign(s, i, suspect->n[i], s->keys.ptr + suspect->key[i], err));
    return ZARR_OK;
}

/* Counts a key that is neither a chunk nor a document, and keeps the first. */
static zarr_status note_foreign(struct stored_listing *l, const char *key)
{
    const char *name = key + l->skip;
    const int like_chunks = zr_key_is_left_over(name);
    const bool is_document =
        zr_key_kind(name) == ZARR_STORE_OP_DOCUMENT && !strchr(name, '/');
    struct zr_suspect *suspect = note_suspect(l, key);

    if (l->st != ZARR_OK || is_document)
        return l->st;
    if (!suspect)
        return count_foreign(l->out, like_chunks, 1, key, l->err);
    if (suspect->n[like_chunks]++ == 0) {
        suspect->key[like_chunks] = l->out->keys.bytes;
        zr_str_append(&l->out->keys, key, strlen(key) + 1);
    }
    return zr_str_status(&l->out->keys, l->err);
}

static int on_stored_key(void *user, const zarr_store_item *item)
{
    struct stored_listing *l = user;
    uint64_t chunk[ZARR_MAX_RANK];

    l->st = zr_cancel_check(l->cancel, l->err);
    if (l->st != ZARR_OK)
        return 1;
    if (strlen(item->key) <= l->skip)
        return 0;
    if (item->is_prefix) {
        if (!l->inside)
            (void)note_folder(l, item->key, strlen(item->key));
        return l->st != ZARR_OK;
    }
    if (!zr_key_encoding_chunk(&l->s->meta.keys, l->s->meta.ndim, item->key + l->skip,
                               chunk)) {
        l->st = l->inside ? ZARR_OK : note_foreign(l, item->key);
        return l->st != ZARR_OK;
    }
    if (l->inside && is_below_all(chunk, l->inside, l->out->ndim))
        return 0;
    if (!l->inside && !is_inside_grid(l->s, chunk)) {
        if (l->out->n_outside++ == 0)
            memcpy(l->out->outside, chunk, (size_t)l->out->ndim * sizeof *chunk);
        return 0;
    }
    l->st = add_stored(l, chunk, item->bytes);
    return l->st != ZARR_OK;
}

/* Fails if a file hides chunks. */
static zarr_status check_stored(const struct zr_stored *s, zarr_store *store,
                                const zarr_cancel *cancel, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < s->n_suspects && st == ZARR_OK; i++) {
        const struct zr_suspect *suspect = &s->suspect[i];
        bool there;

        if (suspect->below_file)
            st = zr_key_is_there(store, s->keys.ptr + suspect->chunk, ZARR_STORE_OP_CHUNK,
                                 &there, cancel, err);
    }
    return st;
}

/* Heap sort in place: the width of rows is not a compile-time constant. No memory, no
 * recursion. */
static bool row_less(const struct zr_stored *s, size_t i, size_t j)
{
    const uint64_t *a = zr_stored_chunk(s, i), *b = zr_stored_chunk(s, j);

    for (int32_t d = 0; d < s->ndim; d++)
        if (a[d] != b[d])
            return a[d] < b[d];
    return false;
}

static void row_swap(struct zr_stored *s, size_t i, size_t j)
{
    const size_t width = (size_t)s->ndim + 1;
    uint64_t *a = s->row + i * width, *b = s->row + j * width;

    for (size_t k = 0; k < width; k++) {
        const uint64_t keep = a[k];

        a[k] = b[k];
        b[k] = keep;
    }
}

static void sift_down(struct zr_stored *s, size_t i, size_t n)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= n)
            return;
        if (child + 1 < n && row_less(s, child, child + 1))
            child++;
        if (!row_less(s, i, child))
            return;
        row_swap(s, i, child);
        i = child;
    }
}

static bool rows_are_sorted(const struct zr_stored *s)
{
    for (size_t i = 1; i < s->n; i++)
        if (row_less(s, i, i - 1))
            return false;
    return true;
}

static void sort_rows(struct zr_stored *s)
{
    if (rows_are_sorted(s))
        return;
    for (size_t i = s->n / 2; i > 0; i--)
        sift_down(s, i - 1, s->n);
    for (size_t n = s->n; n > 1; n--) {
        row_swap(s, 0, n - 1);
        sift_down(s, 0, n - 1);
    }
}

/* ---- a store that cannot list ---- */

enum {
    ASKED_TOGETHER = 128 /* blocks */
};

struct asking {
    struct stored_listing *l;
    const zarr_array *a;
    struct zr_str keys; /* of the next blocks, each followed by 0 */
    size_t n;
};

/* Reads one byte of each block: a server may answer other requests for its length. */
static zarr_status ask(struct asking *k, zarr_error *err)
{
    zarr_store_op op[ASKED_TOGETHER];
    uint8_t byte[ASKED_TOGETHER];
    const char *key = zr_str_text(&k->keys);
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_str_status(&k->keys, err));
    for (size_t i = 0; i < k->n; i++, key += strlen(key) + 1)
        op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                .flags = ZARR_STORE_OP_CHUNK,
                                .key = key,
                                .length = 1,
                                .mem = zr_mem_of_host(&byte[i], 1),
                                .object_bytes = UINT64_MAX,
                                .cancel = k->l->cancel};
    ZR_TRY(zr_store_run(k->a->chunk_store, op, k->n, err));
    for (size_t i = 0; i < k->n && st == ZARR_OK; i++)
        if (op[i].status == ZARR_OK) {
            (void)on_stored_key(
                k->l, &(zarr_store_item){.key = op[i].key, .bytes = op[i].object_bytes});
            st = k->l->st;
        }
    zr_str_clear(&k->keys);
    k->n = 0;
out:
    return st;
}

static zarr_status ask_block(void *arg, const uint64_t *chunk, bool *stop,
                             zarr_error *err)
{
    struct asking *k = arg;

    ZR_UNUSED(stop);
    zr_array_key_append(k->a, k->l->s, chunk, &k->keys);
    zr_str_append(&k->keys, "", 1);
    return ++k->n == ASKED_TOGETHER ? ask(k, err) : ZARR_OK;
}

/* Asks for each block of the grid. Nothing else below the array is found. */
static zarr_status ask_for_blocks(struct stored_listing *l, const zarr_array *a,
                                  zarr_error *err)
{
    const uint64_t n = zr_grid_n_chunks_all(&l->s->meta.grid);
    struct asking k = {.l = l, .a = a};
    zarr_status st = ZARR_OK;

    if (n > l->limit)
        return zr_fail_limit(err, "listing_keys", l->limit,
                             "the store cannot list, and the grid has %" PRIu64
                             " blocks: more than %" PRIu64 " are not asked for",
                             n, l->limit);
    zr_str_init(&k.keys, l->out->alloc);
    st = zr_stored_each_missing(l->out, &l->s->meta.grid, ask_block, &k, err);
    if (st == ZARR_OK && k.n > 0)
        st = ask(&k, err);
    zr_str_deinit(&k.keys);
    return st;
}

zarr_status zr_stored_find(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           bool asks, const zarr_cancel *cancel, zarr_error *err)
{
    const bool lists = zr_store_can(a->chunk_store, ZARR_STORE_CAP_LIST);
    struct stored_listing l = {
        .out = out,
        .s = s,
        .skip = *a->h.path ? strlen(a->h.path) + 1 : 0,
        .inside = inside,
        .limit = a->h.ctx->limits.listing_keys,
        .cancel = cancel,
        .err = err,
    };
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    *out = (struct zr_stored){.ndim = s->meta.ndim, .alloc = a->h.ctx->alloc};
    zr_str_init(&out->keys, a->h.ctx->alloc);
    zr_str_init(&l.first, a->h.ctx->alloc);
    st = !lists
             ? zr_fail(&why, ZARR_ERR_UNSUPPORTED, "the store of the chunks cannot list")
             : zr_store_list(a->chunk_store, a->h.path, ZARR_LIST_FOLDERS, on_stored_key,
                             &l, cancel, &why);
    if (st == ZARR_ERR_UNSUPPORTED && asks)
        st = ask_for_blocks(&l, a, err);
    else
        zr_pass(err, st, &why);
    if (st == ZARR_OK)
        st = l.st;
    if (st == ZARR_OK)
        st = zr_str_status(&l.first, err);
    sort_rows(out);
    zr_str_deinit(&l.first);
    return st;
}

zarr_status zr_stored_list(struct zr_stored *out, const zarr_array *a,
                           const struct zr_array_state *s, const uint64_t *inside,
                           bool asks, const zarr_cancel *cancel, zarr_error *err)
{
    zarr_status st = zr_stored_find(out, a, s, inside, asks, cancel, err);

    return st == ZARR_OK ? check_stored(out, a->chunk_store, cancel, err) : st;
}

zarr_status zr_stored_each_missing(const struct zr_stored *s, const struct zr_grid *grid,
                                   zarr_status (*fn)(void *arg, const uint64_t *chunk,
                                                     bool *stop, zarr_error *err),
                                   void *arg, zarr_error *err)
{
    const size_t row_bytes = (size_t)s->ndim * sizeof(uint64_t);
    uint64_t begin[ZARR_MAX_RANK] = {0}, end[ZARR_MAX_RANK], at[ZARR_MAX_RANK] = {0};
    struct zr_coord_set stored;
    bool stop = zr_grid_n_chunks_all(grid) == 0;
    size_t next = 0;
    zarr_status st = ZARR_OK;

    zr_coord_set_init(&stored, s->ndim, s->alloc);
    for (size_t i = 0; i < s->n; i++)
        ZR_TRY(zr_coord_set_add(&stored, zr_stored_chunk(s, i), err));
    zr_coord_set_sort(&stored);
    for (int32_t d = 0; d < s->ndim; d++)
        end[d] = zr_grid_n_chunks(grid, d);
    for (bool more = true; more && !stop; more = zr_grid_step(at, begin, end, s->ndim)) {
        if (next < stored.n &&
            memcmp(zr_coord_set_item(&stored, next), at, row_bytes) == 0)
            next++;
        else
            ZR_TRY(fn(arg, at, &stop, err));
    }
out:
    zr_coord_set_deinit(&stored);
    return st;
}
