/*
 * commands/cmd_diff.c - zarrc diff: two arrays, regions of arrays, or groups with all
 * below them. Exit code 0 where they are equal, 1 where they differ, and the
 * usual ones where that cannot be said.
 */
#include "diff/diff.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"rtol", 0, 0, "X", NULL, "elements are equal within X times the second one"},
    {"atol", 0, 0, "X", NULL, "elements are equal within X"},
    {"nan-differs", 0, 0, NULL, NULL, "NaN is equal to nothing (default: to NaN)"},
    {"limit", 'N', 0, "N", NULL, "show N elements of each array (default: 10)"},
    {"storage", 0, 0, NULL, NULL, "chunks, shards, codecs and format count, too"},
    {"data", 0, 0, NULL, NULL, "only elements (and what must be equal for them) count"},
    CLI_FIELD_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc diff a.zarr b.zarr", "All nodes, attributes and elements."},
    {"zarrc diff --rtol=1e-6 a.zarr/temp b.zarr/temp", "Elements within a tolerance."},
    {"zarrc diff --field=pos.x a.zarr/particles b.zarr/particles",
     "One field of arrays of structs."},
    {"zarrc diff -q 'a.zarr/temp[0]' 'a.zarr/temp[1]' && echo equal",
     "Two steps of one array, by exit code."},
    {NULL, NULL}};

static int read_options(struct diff *d)
{
    struct cli *cli = d->cli;
    int rc = cli_f64(cli, "rtol", &d->rtol);

    if (!rc)
        rc = cli_f64(cli, "atol", &d->atol);
    d->limit = 10;
    if (!rc)
        rc = cli_u64(cli, "limit", &d->limit);
    if (!rc && (!(d->rtol >= 0) || !(d->atol >= 0)))
        rc = cli_error(cli, CLI_USAGE, NULL, "a tolerance is a number from 0 up");
    d->tolerant = cli_text(cli, "rtol") || cli_text(cli, "atol");
    d->nan_differs = cli_flag(cli, "nan-differs");
    d->storage = cli_flag(cli, "storage");
    d->data_only = cli_flag(cli, "data") || cli_text(cli, "field");
    d->ignore_attributes = d->data_only;
    return rc;
}

/* ---- arrays --------------------------------------------------------------------- */

static bool shapes_equal(const zarr_selection *a, const zarr_selection *b)
{
    const int32_t ndim = zarr_selection_ndim(a);

    return ndim == zarr_selection_ndim(b) &&
           (ndim == 0 || memcmp(zarr_selection_shape(a), zarr_selection_shape(b),
                                (size_t)ndim * sizeof(uint64_t)) == 0);
}

static void fact_of_shapes(struct diff_pair *p, const char *what, int32_t ndim_a,
                           const uint64_t *a, int32_t ndim_b, const uint64_t *b)
{
    char *ta = cli_shape_text(ndim_a, a), *tb = cli_shape_text(ndim_b, b);

    cli_diff_fact(p, what, ta, tb, false);
    free(ta);
    free(tb);
}

/* The field of both that --field names, else their elements. */
static int find_fields(struct diff_pair *p)
{
    const struct cli_node a = {.array = p->a, .shown = p->shown_a};
    const struct cli_node b = {.array = p->b, .shown = p->shown_b};
    int rc = cli_field_find(p->d->cli, &a, &p->field[0]);

    return rc ? rc : cli_field_find(p->d->cli, &b, &p->field[1]);
}

static bool same_fields(struct diff_pair *p)
{
    const struct cli_field *a = &p->field[0], *b = &p->field[1];
    const bool same = zarr_dtype_equal(a->type, b->type);

    if (!same && p->d->data_only)
        cli_diff_fact(p, "data type", cli_type_name(a->type), cli_type_name(b->type),
                      false);
    if (a->ndim == b->ndim &&
        memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0)
        return same;
    fact_of_shapes(p, "shape of the field", a->ndim, a->shape, b->ndim, b->shape);
    return false;
}

/* na, nb: where the regions are; arrays are open. */
static int compare_arrays(struct diff_pair *p, const struct cli_node *na,
                          const struct cli_node *nb)
{
    zarr_selection *sa = NULL, *sb = NULL;
    bool same;
    int rc = find_fields(p);

    if (!rc)
        rc = cli_node_select(p->d->cli, na, p->a, &sa);
    if (!rc)
        rc = cli_node_select(p->d->cli, nb, p->b, &sb);
    if (rc)
        goto out;
    if (!p->d->data_only)
        cli_diff_arrays(p);
    same = same_fields(p);
    if (!shapes_equal(sa, sb))
        fact_of_shapes(p, "shape", zarr_selection_ndim(sa), zarr_selection_shape(sa),
                       zarr_selection_ndim(sb), zarr_selection_shape(sb));
    else if (same)
        rc = cli_diff_elements(p, sa, sb);
out:
    zarr_selection_free(sa);
    zarr_selection_free(sb);
    return rc;
}

static int open_one(struct cli *cli, const struct cli_node *node, const char *path,
                    const char *shown, zarr_array **out)
{
    zarr_error err = {0};
    zarr_status st = zarr_array_open(out, node->store, path, NULL, &err);

    return st ? cli_fail(cli, st, &err, "cannot open %s", shown) : CLI_OK;
}

/* ---- nodes ---------------------------------------------------------------------- */

static const char *kind_name(uint32_t kind)
{
    return kind == ZARR_NODE_ARRAY   ? "array"
           : kind == ZARR_NODE_GROUP ? "group"
                                     : "unreadable";
}

static int group_attributes(struct diff_pair *p, const char *pa, const char *pb)
{
    zarr_group *a = NULL, *b = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_group_open(&a, p->d->a.store, pa, NULL, &err);

    if (!st)
        st = zarr_group_open(&b, p->d->b.store, pb, NULL, &err);
    if (!st)
        cli_diff_attributes(p, zarr_group_attributes(a), zarr_group_attributes(b));
    zarr_group_free(a);
    zarr_group_free(b);
    return st ? cli_fail(p->d->cli, st, &err, "cannot open %s or %s", p->shown_a,
                         p->shown_b)
              : CLI_OK;
}

static int compare_nodes(struct diff *d, const struct cli_tree_item *ia,
                         const struct cli_tree_item *ib)
{
    struct diff_pair p = {.d = d, .path = ia->path};
    char *pa = cli_path_join(d->a.path, ia->path);
    char *pb = cli_path_join(d->b.path, ib->path);
    int rc = CLI_OK;

    p.shown_a = cli_shown_below(&d->a, ia->path);
    p.shown_b = cli_shown_below(&d->b, ib->path);
    cli_diff_pair_begin(&p);
    if (ia->kind != ib->kind) {
        cli_diff_fact(&p, "kind", kind_name(ia->kind), kind_name(ib->kind), false);
    } else if (ia->kind == ZARR_NODE_GROUP) {
        rc = group_attributes(&p, pa, pb);
    } else {
        rc = open_one(d->cli, &d->a, pa, p.shown_a, &p.a);
        if (!rc)
            rc = open_one(d->cli, &d->b, pb, p.shown_b, &p.b);
        if (!rc)
            rc = compare_arrays(&p, &d->a, &d->b);
    }
    if (!rc)
        cli_diff_pair_end(&p);
    zarr_array_free(p.a);
    zarr_array_free(p.b);
    free(p.shown_a);
    free(p.shown_b);
    free(pa);
    free(pb);
    return rc;
}

/* Order of a walk: '/' comes before every other byte. */
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    if (*a == *b)
        return 0;
    if (!*a || !*b)
        return *a ? 1 : -1;
    if (*a == '/' || *b == '/')
        return *a == '/' ? -1 : 1;
    return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static bool go_on(const struct diff *d)
{
    return !d->cli->quiet || d->cli->json || d->n_different == 0;
}

/* Both trees are sorted. */
static int compare_trees(struct diff *d, const struct cli_tree *a,
                         const struct cli_tree *b)
{
    size_t i = 0, k = 0;
    int rc = CLI_OK;

    while (!rc && go_on(d) && (i < a->n_items || k < b->n_items)) {
        int order = i == a->n_items   ? 1
                    : k == b->n_items ? -1
                                      : compare_paths(a->items[i].path, b->items[k].path);

        if (order == 0)
            rc = compare_nodes(d, &a->items[i], &b->items[k]);
        else if (order < 0)
            cli_diff_only(d, a->items[i].path, 'a');
        else
            cli_diff_only(d, b->items[k].path, 'b');
        i += order <= 0;
        k += order >= 0;
    }
    return rc;
}

static uint64_t bytes_of(struct diff *d, const struct cli_tree *tree)
{
    uint64_t total = 0;

    for (size_t i = 0; i < tree->n_items && d->cli->progress; i++) {
        char *path = cli_path_join(d->a.path, tree->items[i].path);
        zarr_array *array = NULL;

        if (tree->items[i].kind == ZARR_NODE_ARRAY &&
            zarr_array_open(&array, d->a.store, path, NULL, NULL) == ZARR_OK)
            total += cli_mul(cli_product(zarr_array_ndim(array), zarr_array_shape(array)),
                             zarr_dtype_item_bytes(zarr_array_dtype(array)));
        zarr_array_free(array);
        free(path);
    }
    return total;
}

static int diff(struct diff *d)
{
    struct cli_tree a = {0}, b = {0};
    int rc = cli_tree_list(d->cli, &d->a, &a);

    if (!rc)
        rc = cli_tree_list(d->cli, &d->b, &b);
    if (!rc) {
        cli_diff_begin(d);
        cli_progress_begin(&d->progress, d->cli, "diff",
                           d->a.region ? 0 : bytes_of(d, &a), 0);
        rc = compare_trees(d, &a, &b);
        cli_progress_end(&d->progress, rc == CLI_OK);
    }
    if (!rc) {
        cli_diff_end(d);
        rc = d->n_different ? CLI_DIFFERENT : CLI_OK;
    }
    cli_tree_free(&a);
    cli_tree_free(&b);
    return rc;
}

static int run(struct cli *cli)
{
    struct diff d = {.cli = cli};
    int rc = read_options(&d);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_REGION, &d.a);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_REGION, &d.b);
    if (!rc)
        rc = diff(&d);
    cli_node_close(&d.a);
    cli_node_close(&d.b);
    return rc;
}

const struct cli_command cli_cmd_diff = {
    .name = "diff",
    .summary = "compare two nodes",
    .operands = "A[REGION] B[REGION]",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Compares two arrays, regions of arrays, or groups with everything below them: "
        "shape, data type, fill value, names of dimensions, attributes, and every "
        "element. How elements are stored (chunks, codecs, format) makes no difference "
        "unless --storage is given. With --field one field of arrays of structs is "
        "compared, and nothing else of them; a subarray's dimensions stand behind those "
        "of the array.\n\n"
        "Elements are equal when their bits are, or both are NaN; with --rtol or --atol "
        "when |a - b| <= atol + rtol * |b|. Memory is bounded, however large the arrays "
        "are.\n\n"
        "Exit code 0: equal. 1: different. Others: as everywhere, it could not be "
        "compared. With -q nothing is printed, and the first difference ends it.",
    .json = "a, b. nodes: an object for each node that differs, with path and either "
            "only_in (a or b) or differences (what, a, b) and elements (index, a, b), "
            "elements_compared, elements_different, largest_difference. equal; "
            "nodes_compared; nodes_different.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-verify zarrc-reencode",
    .run = run,
};
