/*
 * node/salvage.c - finds the chunks of a block that cannot be decoded, and puts the fill
 * value, NaN, nothing, or the elements of another array in their place, in an overlay.
 * The rest of a shard keeps its encoded bytes: the library replaces whole chunks without
 * reading them. If the index of a shard cannot be decoded, all of the shard is lost; by a
 * bad entry of it only the entry's chunk. The store itself never changes.
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
    uint64_t part[ZARR_MAX_RANK]; /* the largest that is lost at once: a nested shard */
    const uint64_t *chunk;        /* of these; is_chunk: it is one of them, or a block */
    bool is_chunk;
    void *element; /* that is put in the place of lost ones */
    void *data;    /* the region that was read last */
    zarr_heap *heap;
    struct cli_losses *lost;
};

static uint64_t region_bytes(const struct mend *m, const struct cli_region *region)
{
    return cli_mul(cli_product(region->ndim, region->count),
                   zarr_dtype_item_bytes(zarr_array_dtype(m->array)));
}

static zarr_status select_region(zarr_selection **out, const zarr_array *array,
                                 const struct cli_region *region, zarr_error *err)
{
    return zarr_selection_box(out, region->ndim, zarr_array_shape(array), region->start,
                              region->count, err);
}

/* Reads to m->data. */
static zarr_status read_region(struct mend *m, const struct cli_region *region,
                               zarr_error *err)
{
    const uint64_t bytes = region_bytes(m, region);
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st = select_region(&selection, m->array, region, err);

    if (!st)
        st = cli_heap(m->cli, zarr_array_dtype(m->array), &m->heap, err);
    if (!st) {
        free(m->data);
        m->data = cli_alloc((size_t)bytes);
        opts.heap = m->heap;
        zarr_tensor_host(&tensor, NULL, m->data, bytes, region->ndim, region->count);
        st = cli_read(m->array, selection, &tensor, &opts, err);
    }
    zarr_selection_free(selection);
    return st;
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

/* ---- what is lost ---- */

static void add_lost(struct mend *m, const struct cli_region *region,
                     const zarr_error *why)
{
    struct cli_losses *l = m->lost;

    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->items = cli_realloc(l->items, l->cap * sizeof *l->items);
    }
    l->items[l->n++] = *region;
    l->why = *why;
    l->is_read_error =
        l->is_read_error || (why->code == ZARR_ERR_IO && why->os_code == EIO);
}

static void set_all_lost(struct mend *m)
{
    m->lost->items[0] = m->all;
    m->lost->n = 1;
    m->lost->is_all = true;
}

static void find_parts(struct mend *m)
{
    const char *codecs = zarr_array_codecs(m->array), *codec, *shape = NULL, *item;
    size_t n;

    m->chunk = cli_is_sharded(m->array) ? zarr_array_chunk_shape(m->array) : NULL;
    m->is_chunk = true;
    if (!m->chunk)
        memcpy(m->part, m->all.count, sizeof m->part);
    for (size_t i = 0; !shape && (codec = cli_json_item(codecs, i, &n)) != NULL; i++)
        if (cli_sharding_config(codec))
            shape = cli_json_member(cli_sharding_config(codec), "chunk_shape", &n);
    for (int32_t d = 0; m->chunk && d < m->all.ndim; d++) {
        item = shape ? cli_json_item(shape, (size_t)d, &n) : NULL;
        m->part[d] = item ? strtoull(item, NULL, 10) : 0;
        /* codecs before the shards may change the dimensions */
        if (m->part[d] == 0 || m->part[d] % m->chunk[d])
            m->part[d] = m->chunk[d];
        m->is_chunk = m->is_chunk && m->part[d] == m->chunk[d];
    }
}

static void begin_parts(struct cli_boxes *boxes, const struct cli_region *region,
                        const uint64_t *edge)
{
    uint64_t step[ZARR_MAX_RANK];

    for (int32_t d = 0; d < region->ndim; d++)
        step[d] = edge[d] < region->count[d] ? edge[d] : region->count[d];
    cli_boxes_init(boxes, region->ndim, region->count, step,
                   cli_product(region->ndim, step), false);
}

/* Sets *part to the next part of a region. */
static bool next_part(struct cli_boxes *boxes, const struct cli_region *region,
                      struct cli_region *part)
{
    if (!cli_boxes_next(boxes))
        return false;
    part->ndim = region->ndim;
    for (int32_t d = 0; d < region->ndim; d++) {
        part->start[d] = region->start[d] + boxes->start[d];
        part->count[d] = boxes->count[d];
    }
    return true;
}

static bool names_chunk(const zarr_error *err)
{
    uint64_t chunk[ZARR_MAX_RANK];

    return zarr_error_chunk(err, chunk) > 0;
}

/* Finds lost chunks of a nested shard. All are, if one of the shards in it is. */
static zarr_status find_lost_chunks(struct mend *m, const struct cli_region *part,
                                    zarr_error *err)
{
    const size_t n = m->lost->n;
    struct cli_region chunk;
    struct cli_boxes boxes;

    begin_parts(&boxes, part, m->chunk);
    while (next_part(&boxes, part, &chunk)) {
        zarr_error why = {0};
        const zarr_status st = read_region(m, &chunk, &why);

        if (st && !cli_is_damage(st, &why)) {
            *err = why;
            return st;
        }
        if (st && !names_chunk(&why)) {
            m->lost->n = n;
            add_lost(m, part, &why);
            return ZARR_OK;
        }
        if (st)
            add_lost(m, &chunk, &why);
    }
    return ZARR_OK;
}

static zarr_status find_lost(struct mend *m, const struct cli_region *part,
                             zarr_error *err)
{
    zarr_error why = {0};
    const zarr_status st = read_region(m, part, &why);

    if (!cli_is_damage(st, &why)) {
        if (st)
            *err = why;
        return st;
    }
    if (!m->is_chunk && names_chunk(&why))
        return find_lost_chunks(m, part, err);
    add_lost(m, part, &why);
    if (m->is_chunk && !names_chunk(&why)) /* the object, or its index */
        set_all_lost(m);
    return ZARR_OK;
}

/* ---- what replaces it ---- */

static zarr_status write_parts(const struct mend *m, zarr_io_part *parts, zarr_error *err)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_status st;

    opts.cancel = cli_cancel;
    opts.empty_chunks =
        m->how == CLI_MEND_ERASE ? ZARR_EMPTY_CHUNKS_SKIP : ZARR_EMPTY_CHUNKS_WRITE;
    st = zarr_array_write_many(m->array, parts, m->lost->n, &opts, err);
    if (cli_is_damage(st, err)) { /* of a chunk that is partly outside of the shape */
        opts.outside = ZARR_OUTSIDE_RESET;
        st = zarr_array_write_many(m->array, parts, m->lost->n, &opts, err);
    }
    return st;
}

static zarr_status read_other(struct mend *m, zarr_io_part *parts, zarr_error *err)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_status st = cli_heap(m->cli, zarr_array_dtype(m->array), &m->heap, err);

    opts.cancel = cli_cancel;
    opts.heap = m->heap;
    opts.missing_chunks = ZARR_MISSING_ERROR;
    return st ? st : zarr_array_read_many(m->other, parts, m->lost->n, &opts, err);
}

/* Writes all that is lost at once: no write needs the damaged bytes or the bad index
 * entries of another lost chunk. */
static zarr_status replace_parts(struct mend *m, zarr_error *err)
{
    static const int64_t zeros[ZARR_MAX_RANK] = {0};
    const size_t n = m->lost->n;
    zarr_selection **selections = cli_alloc(n * sizeof *selections);
    zarr_tensor *tensors = cli_alloc(n * sizeof *tensors);
    zarr_io_part *parts = cli_alloc(n * sizeof *parts);
    zarr_status st = ZARR_OK;
    char *data = NULL;
    uint64_t bytes = 0;

    for (size_t i = 0; i < n && m->other; i++)
        bytes += region_bytes(m, &m->lost->items[i]);
    data = cli_alloc((size_t)bytes);
    for (size_t i = 0, at = 0; i < n && !st; i++) {
        const struct cli_region *region = &m->lost->items[i];
        const uint64_t size = m->other ? region_bytes(m, region) : 0;

        st = select_region(&selections[i], m->array, region, err);
        zarr_tensor_host(&tensors[i], NULL, m->other ? data + at : m->element, size,
                         region->ndim, region->count);
        if (!m->other)
            tensors[i].strides = zeros;
        parts[i] = (zarr_io_part){.selection = selections[i], .tensor = &tensors[i]};
        at += (size_t)size;
    }
    if (!st && m->other)
        st = read_other(m, parts, err);
    if (!st)
        st = write_parts(m, parts, err);
    for (size_t i = 0; i < n; i++)
        zarr_selection_free(selections[i]);
    free(selections);
    free(tensors);
    free(parts);
    free(data);
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

static zarr_status replace_all(struct mend *m, zarr_error *err)
{
    zarr_status st;

    if (m->other)
        return copy_encoded(m, err);
    st = zarr_array_block_erase(m->array, m->block, cli_cancel, err);
    return st || m->how == CLI_MEND_ERASE ? st : replace_parts(m, err);
}

static zarr_status replace_lost(struct mend *m, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!m->lost->is_all)
        st = replace_parts(m, err);
    if (cli_is_damage(st, err)) /* of the index, or of chunks outside of the shape */
        set_all_lost(m);
    return m->lost->is_all ? replace_all(m, err) : st;
}

/* A codec may turn NaN into a number. */
static zarr_status check_nan(struct mend *m, zarr_error *err)
{
    const size_t bytes = (size_t)zarr_dtype_item_bytes(zarr_array_dtype(m->array));
    struct cli_region one = m->lost->items[0];
    zarr_status st;

    for (int32_t d = 0; d < one.ndim; d++)
        one.count[d] = 1;
    st = read_region(m, &one, err);
    if (st || memcmp(m->data, m->element, bytes) == 0)
        return st;
    set_fill(m);
    return replace_lost(m, err);
}

/* Finds what is lost, replaces it, and reads the block again. */
static zarr_status mend_block(struct mend *m, zarr_error *err)
{
    struct cli_losses *l = m->lost;
    struct cli_boxes boxes;
    struct cli_region part;
    uint64_t n_lost = 0;
    zarr_status st = ZARR_OK;

    begin_parts(&boxes, &m->all, m->part);
    while (!st && !l->is_all && next_part(&boxes, &m->all, &part))
        st = find_lost(m, &part, err);
    if (st || !l->n)
        return st;
    st = replace_lost(m, err);
    if (!st && m->how == CLI_MEND_NAN)
        st = check_nan(m, err);
    begin_parts(&boxes, &m->all, m->part);
    while (!st && !(l->is_all && m->how == CLI_MEND_ERASE) &&
           next_part(&boxes, &m->all, &part))
        st = read_region(m, &part, err);
    for (size_t i = 0; i < l->n; i++)
        n_lost += cli_product(m->all.ndim, l->items[i].count);
    if (n_lost == cli_product(m->all.ndim, m->all.count))
        set_all_lost(m);
    return st;
}

zarr_status cli_block_mend(struct cli *cli, zarr_array *array, const uint64_t *block,
                           enum cli_mend how, zarr_array *other, struct cli_losses *lost,
                           zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(array);
    struct mend m = {.cli = cli,
                     .array = array,
                     .other = other,
                     .block = block,
                     .how = how,
                     .all.ndim = zarr_array_ndim(array),
                     .lost = lost};
    zarr_status st = zarr_array_block_extent(array, block, m.all.start, m.all.count, err);

    if (st)
        return st;
    for (int32_t d = 0; d < m.all.ndim; d++) /* what is outside of the shape stays */
        if (m.all.count[d] > zarr_array_shape(array)[d] - m.all.start[d])
            m.all.count[d] = zarr_array_shape(array)[d] - m.all.start[d];
    m.element = cli_alloc((size_t)zarr_dtype_item_bytes(type) + 1);
    if (how != CLI_MEND_NAN || !cli_is_number(type) ||
        zarr_dtype_parse(type, "\"NaN\"", m.element, NULL) != ZARR_OK)
        set_fill(&m);
    find_parts(&m);
    st = mend_block(&m, err);
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
