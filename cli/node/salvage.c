/*
 * node/salvage.c - finds the chunks of a block that cannot be decoded, and puts the fill
 * value, NaN, nothing, or the elements of another array in their place, in an overlay.
 * The rest of a shard keeps its encoded bytes: the library replaces whole chunks without
 * reading them. If the index of a shard is damaged, all of the shard is lost. The store
 * itself never changes.
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

char *cli_region_text(const struct cli_region *region)
{
    struct cli_string text = {0};

    cli_string_add(&text, "", 0);
    for (int32_t d = 0; d < region->ndim; d++)
        cli_string_printf(&text, "%s%" PRIu64 ":%" PRIu64, d ? "," : "", region->start[d],
                          region->start[d] + region->count[d]);
    return text.text;
}

/* ---- one block ---- */

struct mend {
    struct cli *cli;
    zarr_array *array, *other;
    const uint64_t *block;
    enum cli_mend how;
    struct cli_region all;
    void *element; /* that is put in the place of lost ones */
    void *data;    /* the region that was read last */
    zarr_heap *heap;
    struct cli_losses *lost;
};

static zarr_status select_region(zarr_selection **out, const zarr_array *array,
                                 const struct cli_region *region, zarr_error *err)
{
    return zarr_selection_box(out, region->ndim, zarr_array_shape(array), region->start,
                              region->count, err);
}

/* Reads to m->data. missing: ZARR_MISSING_*. */
static zarr_status read_region(struct mend *m, zarr_array *array,
                               const struct cli_region *region, uint32_t missing,
                               zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(array);
    const uint64_t bytes =
        cli_mul(cli_product(region->ndim, region->count), zarr_dtype_item_bytes(type));
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st = select_region(&selection, array, region, err);

    if (!st)
        st = cli_heap(m->cli, type, &m->heap, err);
    if (!st) {
        free(m->data);
        m->data = cli_alloc((size_t)bytes);
        opts.heap = m->heap;
        opts.missing_chunks = missing;
        zarr_tensor_host(&tensor, NULL, m->data, bytes, region->ndim, region->count);
        st = cli_read(array, selection, &tensor, &opts, err);
    }
    zarr_selection_free(selection);
    return st;
}

/* Writes m->data, or the element everywhere. */
static zarr_status write_region(struct mend *m, const struct cli_region *region,
                                bool repeat, zarr_error *err)
{
    static const int64_t zeros[ZARR_MAX_RANK] = {0};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st = select_region(&selection, m->array, region, err);

    if (st)
        return st;
    opts.empty_chunks =
        m->how == CLI_MEND_ERASE ? ZARR_EMPTY_CHUNKS_SKIP : ZARR_EMPTY_CHUNKS_WRITE;
    zarr_tensor_host(&tensor, NULL, repeat ? m->element : m->data, 0, region->ndim,
                     region->count);
    if (repeat)
        tensor.strides = zeros;
    st = cli_write(m->array, selection, &tensor, &opts, err);
    if (cli_is_damage(st, err)) { /* of a chunk that is partly outside of the shape */
        opts.outside = ZARR_OUTSIDE_RESET;
        st = cli_write(m->array, selection, &tensor, &opts, err);
    }
    zarr_selection_free(selection);
    return st;
}

/* Cuts off what is outside of the shape. */
static void clip(const zarr_array *array, struct cli_region *region)
{
    const uint64_t *shape = zarr_array_shape(array);

    for (int32_t d = 0; d < region->ndim; d++)
        if (region->count[d] > shape[d] - region->start[d])
            region->count[d] = shape[d] - region->start[d];
}

/* The largest parts of a block that are lost at once: nested shards, else chunks. */
static void find_parts(const zarr_array *array, const uint64_t *count,
                       struct cli_boxes *out)
{
    const char *codecs = zarr_array_codecs(array), *codec, *shape = NULL, *item;
    const uint64_t *chunk = zarr_array_chunk_shape(array);
    const int32_t ndim = zarr_array_ndim(array);
    uint64_t part[ZARR_MAX_RANK];
    size_t n;

    for (size_t i = 0; !shape && (codec = cli_json_item(codecs, i, &n)) != NULL; i++)
        if (cli_sharding_config(codec))
            shape = cli_json_member(cli_sharding_config(codec), "chunk_shape", &n);
    for (int32_t d = 0; d < ndim; d++) {
        item = shape ? cli_json_item(shape, (size_t)d, &n) : NULL;
        part[d] = item ? strtoull(item, NULL, 10) : 0;
        /* codecs before the shards may change the dimensions */
        if (chunk && (part[d] == 0 || part[d] % chunk[d]))
            part[d] = chunk[d];
        if (!chunk || part[d] > count[d])
            part[d] = count[d];
    }
    cli_boxes_init(out, ndim, count, part, cli_product(ndim, part), false);
}

static void set_fill(struct mend *m)
{
    const void *fill = zarr_array_fill_value(m->array);
    const size_t bytes = (size_t)zarr_dtype_item_bytes(zarr_array_dtype(m->array));

    memset(m->element, 0, bytes);
    if (fill)
        memcpy(m->element, fill, bytes);
    if (m->how == CLI_MEND_NAN)
        m->how = CLI_MEND_ERASE;
}

/* A codec may turn NaN into a number. */
static zarr_status check_nan(struct mend *m, const struct cli_region *region,
                             zarr_error *err)
{
    const size_t bytes = (size_t)zarr_dtype_item_bytes(zarr_array_dtype(m->array));
    struct cli_region one = *region;
    zarr_status st;

    for (int32_t d = 0; d < one.ndim; d++)
        one.count[d] = 1;
    st = read_region(m, m->array, &one, ZARR_MISSING_FILL, err);
    if (st || memcmp(m->data, m->element, bytes) == 0)
        return st;
    set_fill(m);
    return write_region(m, region, true, err);
}

static zarr_status mend_region(struct mend *m, const struct cli_region *region,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (m->other)
        st = read_region(m, m->other, region, ZARR_MISSING_ERROR, err);
    if (!st)
        st = write_region(m, region, !m->other, err);
    if (!st && m->how == CLI_MEND_NAN)
        st = check_nan(m, region, err);
    return st;
}

static zarr_status copy_encoded(const struct mend *m, zarr_error *err)
{
    uint64_t bytes = 0;
    void *data = NULL;
    zarr_status st =
        zarr_array_block_read_encoded(m->other, m->block, NULL, &bytes, cli_cancel, err);

    if (st == ZARR_ERR_LIMIT) {
        data = cli_alloc((size_t)bytes);
        st = zarr_array_block_read_encoded(m->other, m->block, data, &bytes, cli_cancel,
                                           err);
    }
    if (!st)
        st = zarr_array_block_write_encoded(m->array, m->block, data, bytes, cli_cancel,
                                            err);
    free(data);
    return st;
}

static zarr_status mend_whole(struct mend *m, zarr_error *err)
{
    zarr_status st;

    if (m->other)
        return copy_encoded(m, err);
    st = zarr_array_block_erase(m->array, m->block, cli_cancel, err);
    return st || m->how == CLI_MEND_ERASE ? st : mend_region(m, &m->all, err);
}

/* Mends what a read of a part found, and notes it. */
static zarr_status mend_found(struct mend *m, const struct cli_region *part,
                              const zarr_error *why, zarr_error *err)
{
    const bool sharded = cli_is_sharded(m->array);
    struct cli_losses *l = m->lost;
    struct cli_region region = *part;
    uint64_t chunk[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    if (zarr_error_chunk(why, chunk) > 0)
        st = zarr_array_chunk_extent(m->array, chunk, region.start, region.count, err);
    clip(m->array, &region);
    if (!st && sharded)
        st = mend_region(m, &region, err);
    if (!sharded || cli_is_damage(st, err)) { /* of its index */
        l->is_all = true;
        l->n = 0;
        region = m->all;
        st = mend_whole(m, err);
    }
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->items = cli_realloc(l->items, l->cap * sizeof *l->items);
    }
    l->items[l->n++] = region;
    l->why = *why;
    l->is_read_error =
        l->is_read_error || (why->code == ZARR_ERR_IO && why->os_code == EIO);
    return st;
}

static bool is_erased(const struct mend *m)
{
    return m->lost->is_all && m->how == CLI_MEND_ERASE;
}

/* Mends a part until it can be read. */
static zarr_status mend_part(struct mend *m, const struct cli_region *part,
                             zarr_error *err)
{
    const uint64_t n_chunks = cli_product(part->ndim, part->count);
    zarr_error why = {0};
    zarr_status st = read_region(m, m->array, part, ZARR_MISSING_FILL, &why);

    /* a part has at most as many chunks as elements */
    for (uint64_t i = 0; cli_is_damage(st, &why) && !m->lost->is_all && i < n_chunks;
         i++) {
        st = mend_found(m, part, &why, err);
        if (st || is_erased(m))
            return st;
        st = read_region(m, m->array, part, ZARR_MISSING_FILL, &why);
    }
    if (st)
        *err = why;
    return st;
}

zarr_status cli_block_mend(struct cli *cli, zarr_array *array, const uint64_t *block,
                           enum cli_mend how, zarr_array *other, struct cli_losses *lost,
                           zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(array);
    const int32_t ndim = zarr_array_ndim(array);
    struct mend m = {.cli = cli,
                     .array = array,
                     .other = other,
                     .block = block,
                     .how = how,
                     .all.ndim = ndim,
                     .lost = lost};
    struct cli_boxes parts;
    uint64_t n_lost = 0;
    zarr_status st = zarr_array_block_extent(array, block, m.all.start, m.all.count, err);

    if (st)
        return st;
    clip(array, &m.all);
    m.element = cli_alloc((size_t)zarr_dtype_item_bytes(type) + 1);
    if (how != CLI_MEND_NAN || !cli_is_number(type) ||
        zarr_dtype_parse(type, "\"NaN\"", m.element, NULL) != ZARR_OK)
        set_fill(&m);
    find_parts(array, m.all.count, &parts);
    while (!st && !is_erased(&m) && cli_boxes_next(&parts)) {
        struct cli_region part = m.all;

        for (int32_t d = 0; d < ndim; d++)
            part.start[d] += parts.start[d];
        memcpy(part.count, parts.count, sizeof part.count);
        st = mend_part(&m, &part, err);
    }
    for (size_t i = 0; i < lost->n; i++)
        n_lost += cli_product(ndim, lost->items[i].count);
    lost->is_all = n_lost == cli_product(ndim, m.all.count);
    if (lost->is_all) {
        lost->items[0] = m.all;
        lost->n = 1;
    }
    zarr_heap_free(m.heap);
    free(m.data);
    free(m.element);
    return st;
}

void cli_losses_free(struct cli_losses *l)
{
    free(l->items);
    *l = (struct cli_losses){0};
}

static void tell_lost(struct cli *cli, const char *shown, const struct cli_region *lost,
                      const char *reason)
{
    char *region = cli_region_text(lost), *node = cli_json_quote(shown),
         *why = cli_json_quote(reason);

    if (cli->json)
        fprintf(stderr,
                "{\"lost\": {\"node\": %s, \"region\": \"%s\", \"reason\": %s}}\n", node,
                region, why);
    else
        cli_warn(cli, "%s[%s] is lost: %s", shown, region, reason);
    free(region);
    free(node);
    free(why);
}

/* Mends and tells what is lost of one block. */
static zarr_status skip_block(struct cli *cli, zarr_array *array, const uint64_t *block,
                              enum cli_mend how, const char *shown, uint64_t *n_lost,
                              zarr_error *err)
{
    struct cli_losses lost = {0};
    zarr_status st = cli_block_mend(cli, array, block, how, NULL, &lost, err);

    for (size_t i = 0; i < lost.n && !st; i++)
        tell_lost(cli, shown, &lost.items[i], lost.why.message);
    *n_lost += lost.n;
    cli_losses_free(&lost);
    return st;
}

int cli_salvage_open(struct cli *cli, struct cli_node *node)
{
    struct cli_overlay *overlay = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = cli_overlay_open(&overlay, &store, node->store, &err);

    if (!st && node->array)
        st = zarr_array_open(&array, store, node->path, NULL, &err);
    if (st) {
        zarr_store_free(store);
        return cli_fail(cli, st, &err, "cannot skip the damage of %s", node->shown);
    }
    zarr_array_free(node->array);
    zarr_group_free(node->group);
    zarr_store_free(node->store);
    node->array = array;
    node->group = NULL;
    node->store = store;
    return CLI_OK;
}

zarr_status cli_salvage_block(struct cli *cli, const struct cli_node *node,
                              const zarr_error *failed, enum cli_mend how,
                              zarr_error *err)
{
    uint64_t block[ZARR_MAX_RANK] = {0}, n_lost = 0;
    char key[ZARR_ERROR_MESSAGE_BYTES];
    zarr_status st = ZARR_OK;

    if (zarr_error_text(failed, ZARR_ERROR_KEY, key, sizeof key) > 0) {
        st = zarr_array_block_of_key(node->array, key, block, err);
        if (!st)
            st = skip_block(cli, node->array, block, how, node->shown, &n_lost, err);
    }
    if (!st && !n_lost) { /* another fault, or the block was replaced */
        *err = *failed;
        st = failed->code;
    }
    return st;
}

/* ---- the faults that verify finds ---- */

void cli_faults_add(struct cli_faults *all, const zarr_finding *f)
{
    const bool is_node = f->what == ZARR_FINDING_NODE;
    struct cli_fault *fault;

    if ((!is_node && f->what != ZARR_FINDING_CHUNK &&
         f->what != ZARR_FINDING_CONSOLIDATED) ||
        (f->status != ZARR_ERR_CORRUPT && f->status != ZARR_ERR_IO &&
         (f->status != ZARR_ERR_NOT_FOUND || !is_node)))
        return;
    if (all->n == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 64;
        all->items = cli_realloc(all->items, all->cap * sizeof *all->items);
    }
    fault = &all->items[all->n++];
    *fault = (struct cli_fault){.path = cli_strdup(f->path),
                                .key = cli_strdup(f->key),
                                .what = f->what,
                                .kind = f->kind};
    if (f->block && f->ndim)
        memcpy(fault->block, f->block, (size_t)f->ndim * sizeof *f->block);
}

void cli_faults_free(struct cli_faults *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].path);
        free(all->items[i].key);
    }
    free(all->items);
    *all = (struct cli_faults){0};
}

/* ---- a node whose damage is skipped ---- */

static int add_finding(void *user, const zarr_finding *f)
{
    cli_faults_add(user, f);
    return cli_is_cancelled();
}

int cli_salvage_node(struct cli *cli, struct cli_node *node, uint64_t *n_lost)
{
    zarr_verify_options opts = ZARR_VERIFY_OPTIONS_INIT;
    struct cli_faults faults = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc;

    opts.tell = add_finding;
    opts.tell_user = &faults;
    opts.cancel = cli_cancel;
    st = zarr_node_verify(node->store, node->path, NULL, &opts, &err);
    rc = st ? CLI_OK : cli_salvage_open(cli, node);
    for (size_t i = 0; i < faults.n && !st && !rc; i++) {
        const struct cli_fault *f = &faults.items[i];
        char *shown = cli_shown_below(node, cli_path_below(f->path, node->path));
        zarr_array *array = NULL;

        if (f->what == ZARR_FINDING_CHUNK)
            st = zarr_array_open(&array, node->store, f->path, NULL, &err);
        if (array)
            st = skip_block(cli, array, f->block, CLI_MEND_ERASE, shown, n_lost, &err);
        zarr_array_free(array);
        free(shown);
    }
    cli_faults_free(&faults);
    return st ? cli_fail(cli, st, &err, "cannot skip the damage of %s", node->shown) : rc;
}
