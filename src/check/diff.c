/*
 * check/diff.c - compares two nodes with everything below them: which nodes both have,
 * and the properties of each pair. Elements: diff_elements.c.
 * Thread class: plain function.
 */
#include "check/check.h"

#include <string.h>

enum {
    DIFF_FLAGS = ZARR_DIFF_STORAGE | ZARR_DIFF_DATA | ZARR_DIFF_NAN_DIFFERS |
                 ZARR_DIFF_TOLERANT | ZARR_DIFF_FIRST | ZARR_DIFF_MISSING_ERROR
};

/* ---- what the caller hears --------------------------------------------------------- */

void zr_diff_tell(struct zr_diff_pair *p, zarr_difference *difference)
{
    p->node.n_differences++;
    difference->struct_size = sizeof *difference;
    difference->path = p->below;
    if (p->d->opts.tell && !p->d->stopped)
        p->d->stopped = p->d->opts.tell(p->d->opts.tell_user, difference) != 0;
}

bool zr_diff_is_fault(zarr_status st)
{
    return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT;
}

void zr_diff_note_fault(struct zr_diff *d, zarr_status st, const zarr_error *why)
{
    if (d->fault == ZARR_OK) {
        d->fault = st;
        d->why = *why;
    }
}

void zr_diff_tell_fault(struct zr_diff_pair *p, zarr_difference *difference, int side,
                        zarr_status st, const zarr_error *why)
{
    zr_diff_note_fault(p->d, st, why);
    difference->struct_size = sizeof *difference;
    difference->what = ZARR_DIFFERENCE_UNREADABLE;
    difference->path = p->below;
    *(side ? &difference->b : &difference->a) = why->message;
    if (p->d->opts.tell && !p->d->stopped)
        p->d->stopped = p->d->opts.tell(p->d->opts.tell_user, difference) != 0;
}

/* Whether the caller wants no more differences. */
static bool has_enough_differences(const struct zr_diff *d)
{
    return d->stopped || (d->opts.flags & ZARR_DIFF_FIRST && d->result.n_different > 0);
}

void zr_diff_progress(const struct zr_diff *d, const char *path)
{
    const zarr_progress now = {.struct_size = sizeof now,
                               .path = path,
                               .bytes_done = d->total_bytes
                                                 ? ZR_MIN(d->done_bytes, d->total_bytes)
                                                 : d->done_bytes,
                               .bytes_total = d->total_bytes};

    if (d->opts.progress)
        d->opts.progress(d->opts.progress_user, &now);
}

static void pair_tell(struct zr_diff_pair *p)
{
    zarr_diff_node *n = &p->node;
    zarr_diff_result *r = &p->d->result;

    n->ndim = p->ndim;
    n->first_at = n->n_different ? p->first_at : NULL;
    n->largest_at = n->largest >= 0 ? p->largest_at : NULL;
    r->n_elements = zr_add_cap(r->n_elements, n->n_elements);
    r->n_unread = zr_add_cap(r->n_unread, n->n_unread);
    r->n_elements_different = zr_add_cap(r->n_elements_different, n->n_different);
    if (n->largest > r->largest)
        r->largest = n->largest;
    if (n->n_differences || n->n_different)
        r->n_different++;
    if (p->d->opts.tell_node && !p->d->stopped)
        p->d->stopped = p->d->opts.tell_node(p->d->opts.tell_user, n) != 0;
}

/* ---- two arrays ------------------------------------------------------------------- */

static void tell_two_shapes(struct zr_diff_pair *p, uint32_t what, const uint64_t *a,
                            int32_t ndim_a, const uint64_t *b, int32_t ndim_b)
{
    zarr_difference d = {.what = what,
                         .dim = -1,
                         .shape_a = a,
                         .shape_b = b,
                         .ndim_a = ndim_a,
                         .ndim_b = ndim_b};

    if (ndim_a != ndim_b || (ndim_a > 0 && memcmp(a, b, (size_t)ndim_a * sizeof *a) != 0))
        zr_diff_tell(p, &d);
}

/* Finds the field that the caller names, or takes whole elements. */
static zarr_status find_field(struct zr_diff_pair *p, int side, zarr_error *err)
{
    const zarr_dtype *type = zarr_array_dtype(p->array[side]);
    zarr_dtype_field *f = &p->field[side];
    zarr_status st = ZARR_OK;

    *f = (zarr_dtype_field)ZARR_DTYPE_FIELD_INIT;
    f->dtype = type;
    if (!p->d->opts.field)
        return ZARR_OK;
    st = zarr_dtype_field_find(type, p->d->opts.field, f, err);
    return st ? zr_path_prefix(err, st, zr_str_text(&p->path[side])) : ZARR_OK;
}

/* Returns false if the elements of the two arrays cannot be compared. */
static bool same_fields(struct zr_diff_pair *p)
{
    const zarr_dtype_field *a = &p->field[0], *b = &p->field[1];
    const bool same = zarr_dtype_equal(a->dtype, b->dtype);
    const uint64_t before = p->node.n_differences;

    if (!same && p->d->data_only) {
        const char *na = zarr_dtype_name(a->dtype), *nb = zarr_dtype_name(b->dtype);
        zarr_difference d = {.what = ZARR_DIFFERENCE_DATA_TYPE, .dim = -1};

        d.a = na ? na : zarr_dtype_v2(a->dtype);
        d.b = nb ? nb : zarr_dtype_v2(b->dtype);
        zr_diff_tell(p, &d);
    }
    tell_two_shapes(p, ZARR_DIFFERENCE_FIELD_SHAPE, a->shape, a->ndim, b->shape, b->ndim);
    return same && p->node.n_differences == before;
}

/* Sets the shape of what is compared. INVALID: the selection is for another shape. */
static zarr_status compared_shape(struct zr_diff_pair *p, int side,
                                  const uint64_t **shape, int32_t *ndim, zarr_error *err)
{
    const zarr_array *a = p->array[side];
    const zarr_selection *s = p->selection[side];

    *shape = s ? zarr_selection_shape(s) : zarr_array_shape(a);
    *ndim = s ? zarr_selection_ndim(s) : zarr_array_ndim(a);
    if (s && !zr_selection_fits(s, zarr_array_ndim(a), zarr_array_shape(a)))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "/%s: the selection was made for another shape",
                       zr_str_text(&p->path[side]));
    return ZARR_OK;
}

static zarr_status diff_two_arrays(struct zr_diff_pair *p, zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    const uint64_t *shape[2];
    int32_t ndim[2];
    uint64_t before;
    bool same;

    opts.cancel = p->d->opts.cancel;
    if (p->d->opts.flags & ZARR_DIFF_MISSING_ERROR)
        opts.missing_chunks = ZARR_MISSING_ERROR;
    for (int side = 0; side < 2; side++) {
        p->side = side;
        ZR_CHECK(zarr_array_open(&p->array[side], p->d->store[side],
                                 zr_str_text(&p->path[side]), &opts, err));
        ZR_CHECK(find_field(p, side, err));
        ZR_CHECK(compared_shape(p, side, &shape[side], &ndim[side], err));
    }
    p->n_values = zr_product_cap(p->field[0].shape, (size_t)p->field[0].ndim);
    p->ndim = ndim[0] + p->field[0].ndim;
    if (!p->d->data_only)
        ZR_CHECK(zr_diff_arrays(p, err));
    same = same_fields(p);
    before = p->node.n_differences;
    tell_two_shapes(p, ZARR_DIFFERENCE_SHAPE, shape[0], ndim[0], shape[1], ndim[1]);
    if (p->node.n_differences > before || !same)
        return ZARR_OK;
    if (p->ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "/%s: more than %d dimensions with those of the field",
                       zr_str_text(&p->path[0]), ZARR_MAX_RANK);
    return zr_diff_elements(p, err);
}

/* ---- nodes ------------------------------------------------------------------------ */

static const char *kind_name(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "unreadable";
}

static zarr_status diff_groups(struct zr_diff_pair *p, zarr_error *err)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = p->d->opts.cancel};
    zarr_group *g[2] = {NULL, NULL};
    zarr_status st = ZARR_OK;

    for (int side = 0; side < 2; side++) {
        p->side = side;
        ZR_TRY(zarr_group_open(&g[side], p->d->store[side], zr_str_text(&p->path[side]),
                               &opts, err));
    }
    if (!p->d->data_only)
        ZR_TRY(zr_diff_attributes(p, zarr_group_attributes(g[0]),
                                  zarr_group_attributes(g[1]), err));
out:
    zarr_group_free(g[0]);
    zarr_group_free(g[1]);
    return st;
}

static zarr_status pair_compare(struct zr_diff_pair *p, uint32_t kind_b, zarr_error *err)
{
    zarr_difference d = {.what = ZARR_DIFFERENCE_KIND, .dim = -1};

    if (p->node.kind != kind_b) {
        d.a = kind_name(p->node.kind);
        d.b = kind_name(kind_b);
        zr_diff_tell(p, &d);
        return ZARR_OK;
    }
    return p->node.kind == ZARR_NODE_GROUP ? diff_groups(p, err)
                                           : diff_two_arrays(p, err);
}

static zarr_status diff_pair(struct zr_diff *d, const struct zr_node_row *a,
                             const struct zr_node_row *b, zarr_error *err)
{
    struct zr_diff_pair p = {.d = d, .below = a->path, .n_values = 1};
    zarr_difference f = {.dim = -1};
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    p.node = (zarr_diff_node){
        .struct_size = sizeof p.node, .kind = a->kind, .path = a->path, .largest = -1};
    for (int side = 0; side < 2; side++)
        zr_str_init(&p.path[side], d->ctx->alloc);
    d->result.n_nodes++;
    for (int side = 0; side < 2; side++) {
        ZR_TRY(zr_path_key(&p.path[side], d->top[side], side ? b->path : a->path, err));
    }
    if (*a->path == '\0') {
        p.selection[0] = d->opts.selection_a;
        p.selection[1] = d->opts.selection_b;
    }
    ZR_TRY(zr_cancel_check(d->opts.cancel, err));
    st = pair_compare(&p, b->kind, &why);
    if (zr_diff_is_fault(st))
        zr_diff_tell_fault(&p, &f, p.side, st, &why);
    else
        ZR_TRY(zr_pass(err, st, &why));
    st = ZARR_OK;
    pair_tell(&p);
out:
    for (int side = 0; side < 2; side++) {
        zarr_array_free(p.array[side]);
        zr_str_deinit(&p.path[side]);
    }
    return st;
}

static void tell_only(struct zr_diff *d, const char *path, uint32_t what)
{
    const zarr_difference only = {
        .struct_size = sizeof only, .what = what, .path = path, .dim = -1};

    d->result.n_nodes++;
    d->result.n_different++;
    if (d->opts.tell)
        d->stopped = d->opts.tell(d->opts.tell_user, &only) != 0;
}

/* Merges both lists, which are sorted. */
static zarr_status diff_lists(struct zr_diff *d, const struct zr_nodes *a,
                              const struct zr_nodes *b, zarr_error *err)
{
    size_t i = 0, k = 0;

    while (!has_enough_differences(d) && (i < a->n || k < b->n)) {
        const int order = zr_diff_next(a, i, b, k);

        if (order == 0)
            ZR_CHECK(diff_pair(d, &a->item[i], &b->item[k], err));
        else if (order < 0)
            tell_only(d, a->item[i].path, ZARR_DIFFERENCE_ONLY_A);
        else
            tell_only(d, b->item[k].path, ZARR_DIFFERENCE_ONLY_B);
        i += order <= 0;
        k += order >= 0;
    }
    return ZARR_OK;
}

/* Counts the bytes of a's arrays, for progress; 0 if a region is compared. */
static zarr_status count_bytes(struct zr_diff *d, const struct zr_nodes *nodes,
                               zarr_error *err)
{
    const zarr_array_open_options opts = {.struct_size = sizeof opts,
                                          .cancel = d->opts.cancel};
    struct zr_str path;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, d->ctx->alloc);
    for (size_t i = 0; i < nodes->n && d->opts.progress && !d->opts.selection_a; i++) {
        zarr_array *array = NULL;
        zarr_error why = {0};

        if (nodes->item[i].kind != ZARR_NODE_ARRAY)
            continue;
        ZR_TRY(zr_path_key(&path, d->top[0], nodes->item[i].path, err));
        st = zarr_array_open(&array, d->store[0], zr_str_text(&path), &opts, &why);
        if (st == ZARR_OK)
            d->total_bytes = zr_add_cap(d->total_bytes, zr_decoded_bytes(array));
        zarr_array_free(array);
        /* The comparison reports every other fault of the array. */
        ZR_TRY(st == ZARR_ERR_NO_MEMORY || st == ZARR_ERR_CANCELLED
                   ? zr_pass(err, st, &why)
                   : ZARR_OK);
    }
out:
    zr_str_deinit(&path);
    return st;
}

static zarr_status diff_run(struct zr_diff *d, const char *const paths[2],
                            zarr_error *err)
{
    struct zr_nodes nodes[2] = {{0}, {0}};
    zarr_status st = ZARR_OK;

    for (int side = 0; side < 2; side++) {
        ZR_TRY(zr_path_normal(&d->top[side], d->ctx->alloc, paths[side], &d->ctx->limits,
                              err));
        ZR_TRY(zr_nodes_find(&nodes[side], d->store[side], d->top[side], d->opts.cancel,
                             err));
    }
    ZR_TRY(zr_diff_check_memory(d, &nodes[0], &nodes[1], err));
    ZR_TRY(count_bytes(d, &nodes[0], err));
    zr_diff_progress(d, d->top[0]);
    ZR_TRY(diff_lists(d, &nodes[0], &nodes[1], err));
out:
    zr_nodes_free(&nodes[0]);
    zr_nodes_free(&nodes[1]);
    return st;
}

static zarr_status diff_options(struct zr_diff *d, const zarr_diff_options *opts,
                                zarr_error *err)
{
    ZR_CHECK(zr_struct_read(&d->opts, sizeof d->opts, 2 * sizeof(uint32_t), opts,
                            ZR_TAIL_REFUSE, "zarr_diff_options", err));
    ZR_CHECK(zr_flags_check(d->opts.flags, DIFF_FLAGS, "diff options", err));
    if (!(d->opts.rtol >= 0) || !(d->opts.atol >= 0))
        return zr_fail(err, ZARR_ERR_INVALID, "a tolerance is a number from 0 up");
    d->data_only = d->opts.flags & ZARR_DIFF_DATA || d->opts.field;
    return ZARR_OK;
}

zarr_status zarr_node_diff(zarr_store *store_a, const char *path_a, zarr_store *store_b,
                           const char *path_b, zarr_diff_result *result,
                           const zarr_diff_options *opts, zarr_error *err)
{
    ZR_NEED(store_a, err);
    ZR_NEED(store_b, err);
    struct zr_diff d = {.store = {store_a, store_b}, .ctx = zr_store_context(store_a)};
    const char *const paths[2] = {path_a, path_b};
    zarr_status st = diff_options(&d, opts, err);

    d.result.largest = -1;
    if (st == ZARR_OK)
        st = diff_run(&d, paths, err);
    if (st == ZARR_OK && !has_enough_differences(&d))
        st = zr_pass(err, d.fault, &d.why);
    if (result)
        zr_struct_give(result, result->struct_size, &d.result, sizeof d.result);
    for (int side = 0; side < 2; side++)
        zr_free(d.ctx->alloc, d.top[side]);
    return st;
}
