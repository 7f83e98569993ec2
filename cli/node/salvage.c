/*
 * node/salvage.c - finds the chunks of a block that cannot be decoded, and puts the fill
 * value, NaN, or nothing in their place, in an overlay. The rest of a shard keeps its
 * encoded bytes: the library replaces whole chunks without reading them. If the index of
 * a shard is damaged, all of the shard is lost. The store itself never changes.
 */
#include "node/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_damage(zarr_status st, const zarr_error *err)
{
    return st == ZARR_ERR_CORRUPT || (st == ZARR_ERR_IO && cli_is_node_fault(st, err) &&
                                      !zarr_error_text(err, ZARR_ERROR_SETTING, NULL, 0));
}

/* ---- the chunks of one block ---- */

struct probe {
    zarr_array *array;
    int32_t ndim;
    uint64_t chunk[ZARR_MAX_RANK];  /* lengths of a chunk */
    uint64_t origin[ZARR_MAX_RANK]; /* of the block, in elements */
    uint64_t counts[ZARR_MAX_RANK]; /* of chunks in the block */
    unsigned char *is_lost;         /* one for each chunk, in C order */
    uint64_t n, n_lost;
    uint64_t n_outside; /* chunks of the block outside of the shape */
};

static zarr_status probe_begin(struct probe *p, zarr_array *array, const uint64_t *block,
                               zarr_error *err)
{
    const uint64_t *chunk = zarr_array_chunk_shape(array);
    const uint64_t *shape = zarr_array_shape(array);
    uint64_t size[ZARR_MAX_RANK];
    zarr_status st = zarr_array_block_extent(array, block, p->origin, size, err);

    if (st)
        return st;
    p->array = array;
    p->ndim = zarr_array_ndim(array);
    for (int32_t d = 0; d < p->ndim; d++) {
        const uint64_t inside = shape[d] - p->origin[d];

        p->chunk[d] = chunk ? chunk[d] : size[d];
        p->counts[d] = ((size[d] < inside ? size[d] : inside) - 1) / p->chunk[d] + 1;
    }
    p->n = cli_product(p->ndim, p->counts);
    for (int32_t d = 0; d < p->ndim; d++)
        size[d] = (size[d] - 1) / p->chunk[d] + 1;
    p->n_outside = cli_product(p->ndim, size) - p->n;
    return ZARR_OK;
}

/* A box of chunks, counted in the block, as a box of elements inside the shape. */
static void elements_of_chunks(const struct probe *p, const uint64_t *first,
                               const uint64_t *counts, struct cli_region *out)
{
    const uint64_t *shape = zarr_array_shape(p->array);

    for (int32_t d = 0; d < p->ndim; d++) {
        out->start[d] = p->origin[d] + first[d] * p->chunk[d];
        out->count[d] = counts[d] * p->chunk[d];
        if (out->count[d] > shape[d] - out->start[d])
            out->count[d] = shape[d] - out->start[d];
    }
}

static void place_in(const struct probe *p, uint64_t i, uint64_t *at)
{
    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        at[d] = i % p->counts[d];
        i /= p->counts[d];
    }
}

static uint64_t chunk_number(const struct probe *p, const uint64_t *at)
{
    uint64_t i = 0;

    for (int32_t d = 0; d < p->ndim; d++)
        i = i * p->counts[d] + at[d];
    return i;
}

static int pass_block(void *user, const zarr_block_info *block)
{
    (void)user;
    (void)block;
    return 0;
}

/* Whether one read tells that nothing of the block can be read: its index is damaged, and
 * there is no other inside. */
static bool is_all_lost(const struct probe *p, const uint64_t *block, zarr_error *why)
{
    const char *codecs = zarr_array_codecs(p->array);
    const char *first = codecs ? strstr(codecs, "\"sharding_indexed\"") : NULL;
    zarr_status st;

    if (!first || strstr(first + 1, "\"sharding_indexed\""))
        return false;
    st = zarr_array_block_list_chunks(p->array, block, pass_block, NULL, NULL, why);
    return st && cli_is_damage(st, why);
}

zarr_status cli_region_read(struct cli *cli, zarr_array *array,
                            const struct cli_region *region, uint32_t missing,
                            struct cli_elements_block *out, zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(array);
    const int32_t ndim = zarr_array_ndim(array);
    const uint64_t bytes =
        cli_mul(cli_product(ndim, region->count), zarr_dtype_item_bytes(type));
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st;

    if (out->bytes < bytes || !out->data) {
        free(out->data);
        out->data = cli_alloc((size_t)bytes);
        out->bytes = bytes;
    }
    st = cli_heap(cli, type, &out->heap, err);
    if (!st)
        st = zarr_selection_box(&selection, ndim, zarr_array_shape(array), region->start,
                                region->count, err);
    if (st)
        return st;
    opts.heap = out->heap;
    opts.missing_chunks = missing;
    zarr_tensor_host(&tensor, NULL, out->data, bytes, ndim, region->count);
    st = cli_read(array, selection, &tensor, &opts, err);
    zarr_selection_free(selection);
    return st;
}

zarr_status cli_region_write(zarr_array *array, const struct cli_region *region,
                             const void *data, bool repeat, uint32_t empty,
                             zarr_error *err)
{
    static const int64_t zeros[ZARR_MAX_RANK] = {0};
    const int32_t ndim = zarr_array_ndim(array);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st = zarr_selection_box(&selection, ndim, zarr_array_shape(array),
                                        region->start, region->count, err);

    if (st)
        return st;
    opts.empty_chunks = empty;
    zarr_tensor_host(&tensor, NULL, (void *)(uintptr_t)data, 0, ndim, region->count);
    if (repeat)
        tensor.strides = zeros;
    st = cli_write(array, selection, &tensor, &opts, err);
    if (cli_is_damage(st, err)) { /* of a chunk that is partly outside of the shape */
        opts.outside = ZARR_OUTSIDE_RESET;
        st = cli_write(array, selection, &tensor, &opts, err);
    }
    zarr_selection_free(selection);
    return st;
}

void cli_elements_block_free(struct cli_elements_block *b)
{
    zarr_heap_free(b->heap);
    free(b->data);
    *b = (struct cli_elements_block){0};
}

/* Reads each chunk. why: the reason of the first that is lost. */
static zarr_status probe_run(struct cli *cli, struct probe *p, const uint64_t *block,
                             zarr_error *why, zarr_error *err)
{
    struct cli_elements_block buffer = {0};
    uint64_t one[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < p->ndim; d++)
        one[d] = 1;
    if (is_all_lost(p, block, why)) {
        p->n_lost = p->n;
        return ZARR_OK;
    }
    p->is_lost = cli_alloc((size_t)p->n);
    for (uint64_t i = 0; i < p->n && !st; i++) {
        struct cli_region region;
        zarr_error e = {0};

        place_in(p, i, at);
        elements_of_chunks(p, at, one, &region);
        st = cli_region_read(cli, p->array, &region, ZARR_MISSING_FILL, &buffer, &e);
        if (st && cli_is_damage(st, &e)) {
            if (p->n_lost++ == 0)
                *why = e;
            p->is_lost[i] = 1;
            st = ZARR_OK;
        } else if (st) {
            *err = e;
        }
    }
    cli_elements_block_free(&buffer);
    return st;
}

/* Whether all chunks of a box are lost. take: they then count as not lost. */
static bool box_is_lost(const struct probe *p, const uint64_t *first,
                        const uint64_t *counts, bool take)
{
    uint64_t at[ZARR_MAX_RANK];
    int32_t d;

    memcpy(at, first, sizeof at);
    do {
        unsigned char *lost = &p->is_lost[chunk_number(p, at)];

        if (!*lost)
            return false;
        *lost = !take;
        for (d = p->ndim - 1; d >= 0 && ++at[d] == first[d] + counts[d]; d--)
            at[d] = first[d];
    } while (d >= 0);
    return true;
}

/* The largest box of lost chunks that begins with the first of them: a nested shard with
 * a damaged index can only be replaced whole. */
static bool take_box(const struct probe *p, uint64_t *first, uint64_t *counts)
{
    const unsigned char *lost = p->is_lost ? memchr(p->is_lost, 1, (size_t)p->n) : NULL;

    if (!lost)
        return false;
    place_in(p, (uint64_t)(lost - p->is_lost), first);
    for (int32_t d = 0; d < ZARR_MAX_RANK; d++)
        counts[d] = 1;
    for (int32_t d = p->ndim - 1; d >= 0; d--) {
        while (first[d] + counts[d] < p->counts[d]) {
            counts[d]++;
            if (!box_is_lost(p, first, counts, false)) {
                counts[d]--;
                break;
            }
        }
    }
    return box_is_lost(p, first, counts, true);
}

/* ---- what is lost ---- */

static struct cli_lost *add_lost(struct cli_losses *l, const struct probe *p,
                                 const uint64_t *block, const zarr_error *why)
{
    struct cli_lost *lost;

    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->items = cli_realloc(l->items, l->cap * sizeof *l->items);
    }
    lost = &l->items[l->n++];
    memset(lost, 0, sizeof *lost);
    lost->ndim = p->ndim;
    lost->is_all = p->n_lost == p->n;
    lost->is_block = lost->is_all && (!p->is_lost || !p->n_outside);
    lost->is_read_error = why->code == ZARR_ERR_IO && why->os_domain == ZARR_OS_ERRNO &&
                          why->os_code == EIO;
    if (p->ndim)
        memcpy(lost->block, block, (size_t)p->ndim * sizeof *block);
    lost->reason = cli_strdup(why->message);
    return lost;
}

void cli_losses_free(struct cli_losses *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].reason);
    free(l->items);
    *l = (struct cli_losses){0};
}

zarr_status cli_block_probe(struct cli *cli, zarr_array *array, const uint64_t *block,
                            struct cli_losses *out, zarr_error *err)
{
    struct probe p = {0};
    zarr_error why = {0};
    uint64_t first[ZARR_MAX_RANK] = {0}, counts[ZARR_MAX_RANK];
    zarr_status st = probe_begin(&p, array, block, err);

    if (!st)
        st = probe_run(cli, &p, block, &why, err);
    if (!st && !p.is_lost)
        elements_of_chunks(&p, first, p.counts, &add_lost(out, &p, block, &why)->region);
    while (!st && take_box(&p, first, counts))
        elements_of_chunks(&p, first, counts, &add_lost(out, &p, block, &why)->region);
    free(p.is_lost);
    return st;
}

/* One element that is put in the place of lost ones: NaN if it is wanted and the type has
 * it, else the fill value. Returns whether it is NaN. */
static bool make_element(const zarr_array *array, bool nan, void *element)
{
    const zarr_dtype *type = zarr_array_dtype(array);
    const void *fill = zarr_array_fill_value(array);

    if (nan && cli_is_number(type) &&
        zarr_dtype_parse(type, "\"NaN\"", element, NULL) == ZARR_OK)
        return true;
    if (fill)
        memcpy(element, fill, (size_t)zarr_dtype_item_bytes(type));
    return false;
}

/* A codec may turn NaN into a number: then it becomes the fill value. */
static zarr_status check_nan(struct cli *cli, zarr_array *array,
                             const struct cli_lost *lost, const void *nan,
                             zarr_error *err)
{
    struct cli_elements_block now = {0};
    struct cli_region one = lost->region;
    char text[2][128] = {{0}};
    size_t bytes;
    zarr_status st;

    for (int32_t d = 0; d < lost->ndim; d++)
        one.count[d] = 1;
    st = cli_region_read(cli, array, &one, ZARR_MISSING_FILL, &now, err);
    for (int i = 0; i < 2 && !st; i++)
        st = zarr_dtype_print(zarr_array_dtype(array), i ? now.data : nan, text[i],
                              sizeof text[i], &bytes, err);
    if (!st && strcmp(text[0], text[1]) != 0)
        st = cli_block_drop(cli, array, lost, CLI_DROP_ERASE, err);
    cli_elements_block_free(&now);
    return st;
}

zarr_status cli_block_drop(struct cli *cli, zarr_array *array,
                           const struct cli_lost *lost, enum cli_drop how,
                           zarr_error *err)
{
    const uint32_t empty =
        how == CLI_DROP_FILL ? ZARR_EMPTY_CHUNKS_WRITE : ZARR_EMPTY_CHUNKS_SKIP;
    const zarr_dtype *type = zarr_array_dtype(array);
    void *element = cli_alloc((size_t)zarr_dtype_item_bytes(type) + 1);
    bool nan;
    zarr_status st;

    nan = make_element(array, how == CLI_DROP_NAN, element);
    if (lost->is_block && !nan && how != CLI_DROP_FILL)
        st = zarr_array_block_erase(array, lost->block, cli_cancel, err);
    else
        st = cli_region_write(array, &lost->region, element, true, empty, err);
    if (lost->is_all && cli_is_damage(st, err)) { /* the index of a nested shard */
        st = zarr_array_block_erase(array, lost->block, cli_cancel, err);
        if (!st && nan)
            st = cli_region_write(array, &lost->region, element, true, empty, err);
    }
    if (!st && nan)
        st = check_nan(cli, array, lost, element, err);
    free(element);
    return st;
}

char *cli_region_text(int32_t ndim, const struct cli_region *region)
{
    struct cli_string text = {0};

    cli_string_add(&text, "", 0);
    for (int32_t d = 0; d < ndim; d++)
        cli_string_printf(&text, "%s%" PRIu64 ":%" PRIu64, d ? "," : "", region->start[d],
                          region->start[d] + region->count[d]);
    return text.text;
}

void cli_tell_lost(struct cli *cli, const char *shown, const struct cli_lost *lost)
{
    char *region = cli_region_text(lost->ndim, &lost->region);
    struct cli_string text = {0};

    if (cli->json) {
        struct cli_json *j = cli_json_start(cli, &text, true);

        cli_json_object(j);
        cli_json_object(cli_key(j, "lost"));
        cli_json_text(cli_key(j, "node"), shown);
        cli_json_text(cli_key(j, "region"), region);
        cli_json_text(cli_key(j, "reason"), lost->reason);
        (void)cli_json_finish(j);
        fprintf(stderr, "%s\n", text.text);
    } else {
        cli_warn(cli, "%s[%s] is lost: %s", shown, region, lost->reason);
    }
    cli_string_free(&text);
    free(region);
}

/* Drops and tells what is lost of one block. */
static zarr_status skip_block(struct cli *cli, zarr_array *array, const uint64_t *block,
                              bool nan, const char *shown, uint64_t *n_lost,
                              zarr_error *err)
{
    struct cli_losses losses = {0};
    zarr_status st = cli_block_probe(cli, array, block, &losses, err);

    for (size_t i = 0; i < losses.n && !st; i++) {
        st = cli_block_drop(cli, array, &losses.items[i],
                            nan ? CLI_DROP_NAN : CLI_DROP_ERASE, err);
        cli_tell_lost(cli, shown, &losses.items[i]);
        ++*n_lost;
    }
    cli_losses_free(&losses);
    return st;
}

/* ---- an array whose damage is skipped while it is read ---- */

zarr_status cli_salvage_block(struct cli_salvage *s, const zarr_error *failed,
                              const char *shown, zarr_error *err)
{
    const uint64_t n = s->n_lost;
    uint64_t block[ZARR_MAX_RANK] = {0};
    char key[ZARR_ERROR_MESSAGE_BYTES];
    struct cli_overlay *overlay;
    zarr_status st = ZARR_OK;

    if (!s->store)
        st = cli_overlay_open(&overlay, &s->store, zarr_array_store(s->array), err);
    if (!st && !s->through)
        st = zarr_array_open(&s->through, s->store, zarr_array_path(s->array), NULL, err);
    if (!st && zarr_error_text(failed, ZARR_ERROR_KEY, key, sizeof key) > 0) {
        st = zarr_array_block_of_key(s->through, key, block, err);
        if (!st)
            st = skip_block(s->cli, s->through, block, s->nan, shown, &s->n_lost, err);
    }
    if (!st && s->n_lost == n) { /* another fault, or the block was replaced */
        *err = *failed;
        st = failed->code;
    }
    return st;
}

void cli_salvage_free(struct cli_salvage *s)
{
    zarr_array_free(s->through);
    zarr_store_free(s->store);
}

/* ---- the faults that verify finds ---- */

bool cli_faults_add(struct cli_faults *all, const zarr_finding *f)
{
    const size_t recent = all->n < 64 ? all->n : 64;
    struct cli_fault *fault;

    if (f->what == ZARR_FINDING_CHUNK
            ? f->severity != ZARR_SEVERITY_ERROR ||
                  (f->status != ZARR_ERR_CORRUPT && f->status != ZARR_ERR_IO)
        : f->what == ZARR_FINDING_NODE
            ? f->severity == ZARR_SEVERITY_NOTE ||
                  (f->status != ZARR_ERR_CORRUPT && f->status != ZARR_ERR_IO &&
                   f->status != ZARR_ERR_NOT_FOUND)
            : f->what != ZARR_FINDING_CONSOLIDATED)
        return false;
    for (size_t i = 1; i <= recent; i++) { /* other chunks of a shard */
        fault = &all->items[all->n - i];
        if (fault->what == f->what && strcmp(fault->key, f->key) == 0 &&
            strcmp(fault->path, f->path) == 0) {
            fault->n_findings++;
            return true;
        }
    }
    if (all->n == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 64;
        all->items = cli_realloc(all->items, all->cap * sizeof *all->items);
    }
    fault = &all->items[all->n++];
    *fault = (struct cli_fault){.path = cli_strdup(f->path),
                                .key = cli_strdup(f->key),
                                .message = cli_strdup(f->message),
                                .what = f->what,
                                .kind = f->kind,
                                .n_findings = 1};
    if (f->block && f->ndim)
        memcpy(fault->block, f->block, (size_t)f->ndim * sizeof *f->block);
    return true;
}

void cli_faults_free(struct cli_faults *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].path);
        free(all->items[i].key);
        free(all->items[i].message);
    }
    free(all->items);
    *all = (struct cli_faults){0};
}

/* ---- a node whose damage is skipped ---- */

static int add_finding(void *user, const zarr_finding *f)
{
    (void)cli_faults_add(user, f);
    return cli_is_cancelled();
}

int cli_salvage_node(struct cli *cli, struct cli_node *node, uint64_t *n_lost)
{
    zarr_verify_options opts = ZARR_VERIFY_OPTIONS_INIT;
    struct cli_overlay *overlay = NULL;
    struct cli_faults faults = {0};
    zarr_store *store = NULL;
    zarr_error err = {0};
    zarr_status st;

    opts.tell = add_finding;
    opts.tell_user = &faults;
    opts.cancel = cli_cancel;
    st = zarr_node_verify(node->store, node->path, NULL, &opts, &err);
    if (!st)
        st = cli_overlay_open(&overlay, &store, node->store, &err);
    for (size_t i = 0; i < faults.n && !st; i++) {
        char *shown =
            cli_shown_below(node, cli_path_below(faults.items[i].path, node->path));

        zarr_array *array = NULL;

        if (faults.items[i].what == ZARR_FINDING_CHUNK)
            st = zarr_array_open(&array, store, faults.items[i].path, NULL, &err);
        if (array)
            st =
                skip_block(cli, array, faults.items[i].block, false, shown, n_lost, &err);
        zarr_array_free(array);
        free(shown);
    }
    cli_faults_free(&faults);
    if (st) {
        zarr_store_free(store);
        return cli_fail(cli, st, &err, "cannot skip the damage of %s", node->shown);
    }
    zarr_array_free(node->array);
    zarr_group_free(node->group);
    node->array = NULL;
    node->group = NULL;
    zarr_store_free(node->store);
    node->store = store;
    return CLI_OK;
}
