/*
 * select/parse.c - selections as a person types them: "0:10, ::2, -1, [3,5,7], ...".
 * The grammar is Python's for basic and orthogonal indexing. Slices clip as in Python,
 * also for numbers that do not fit 64 bits. The text becomes zarr_dim_selection items,
 * which the ordinary constructor checks. Brackets around the whole text are dropped
 * unless they contain only numbers: "[3,5]" is a list in the first dimension, "[3,5,:]"
 * and "[[3,5]]" are selections in brackets.
 * Thread class: solo.
 */
#include "select/select_int.h"

#include <string.h>

struct items {
    int32_t n;
    zarr_dim_selection dim[ZARR_MAX_RANK];
    int64_t *list[ZARR_MAX_RANK]; /* owned */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void trim(const char **s, const char **e)
{
    while (*s < *e && is_blank(**s))
        ++*s;
    while (*s < *e && is_blank((*e)[-1]))
        --*e;
}

/* Finds the end of the item that begins at s: the next comma outside brackets, or e. */
static const char *item_end(const char *s, const char *e)
{
    int depth = 0;

    for (; s < e; s++) {
        if (*s == '[')
            depth++;
        else if (*s == ']')
            depth--;
        else if (*s == ',' && depth <= 0)
            break;
    }
    return s;
}

/* True for "[...]" if its last bracket closes its first one and it contains more than
 * numbers. */
static bool is_in_brackets(const char *s, const char *e)
{
    bool plain = true;
    int depth = 0;

    if (e - s < 2 || *s != '[' || e[-1] != ']')
        return false;
    for (const char *c = s; c < e - 1; c++) {
        depth += *c == '[';
        depth -= *c == ']';
        if (depth == 0)
            return false;
        if (c > s && (*c == '[' || *c == ':' || *c == '.'))
            plain = false;
    }
    return !plain;
}

/* Reads a whole number and clips it to what a slice can have: numbers beyond 64 bits are
 * just far away. */
static bool take_number(const char *s, const char *e, int64_t *out)
{
    bool negative = s < e && *s == '-';
    int64_t v = 0;

    if (s < e && (*s == '-' || *s == '+'))
        s++;
    if (s == e)
        return false;
    for (; s < e; s++) {
        if (*s < '0' || *s > '9')
            return false;
        if (!zr_mul(v, 10, &v) || !zr_add(v, *s - '0', &v))
            v = INT64_MAX;
    }
    *out = negative ? -v : v;
    return true;
}

static zarr_status bad_item(int32_t dim, const char *s, const char *e, const char *why,
                            zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INVALID, "dimension %d: \"%.*s\" %s", (int)dim,
                   (int)ZR_MIN(e - s, 100), s, why);
}

static zarr_status parse_slice(struct items *to, const char *s, const char *e,
                               zarr_error *err)
{
    int64_t part[3] = {ZARR_SLICE_DEFAULT, ZARR_SLICE_DEFAULT, ZARR_SLICE_DEFAULT};
    const char *from = s;

    for (int i = 0; from <= e; i++) {
        const char *colon = memchr(from, ':', (size_t)(e - from));
        const char *end = colon ? colon : e;
        const char *next = end + 1;
        trim(&from, &end);
        if (i == 3)
            return bad_item(to->n, s, e, "has too many colons", err);
        if (from < end && !take_number(from, end, &part[i]))
            return bad_item(to->n, s, e, "is not a slice", err);
        from = next;
    }
    if (part[2] == 0)
        return bad_item(to->n, s, e, "has step 0", err);
    to->dim[to->n] = (zarr_dim_selection){
        .kind = ZARR_DIM_SLICE, .start = part[0], .stop = part[1], .step = part[2]};
    return ZARR_OK;
}

/* [s, e) is the text between the brackets. */
static zarr_status parse_list(struct items *to, const char *s, const char *e,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const char *from = s;
    size_t n = 0, cap = 0;
    int64_t **list = &to->list[to->n];

    trim(&from, &e);
    while (from < e) {
        const char *end = item_end(from, e);
        const char *next = end + 1;
        ZR_TRY(zr_grow(NULL, list, &cap, n + 1, sizeof **list, err));
        trim(&from, &end);
        if (!take_number(from, end, &(*list)[n])) {
            st = bad_item(to->n, s, e, "is not a list of indexes", err);
            goto out;
        }
        n++;
        from = next; /* a comma at the end is allowed, as in Python */
    }
    to->dim[to->n] =
        (zarr_dim_selection){.kind = ZARR_DIM_LIST, .list = *list, .n_list = n};
out:
    return st;
}

static zarr_status parse_item(struct items *to, const char *s, const char *e,
                              zarr_error *err)
{
    int64_t index = 0;

    if (s < e && *s == '[' && e[-1] == ']')
        return parse_list(to, s + 1, e - 1, err);
    if (memchr(s, ':', (size_t)(e - s)))
        return parse_slice(to, s, e, err);
    if (!take_number(s, e, &index))
        return bad_item(to->n, s, e, "is not an index, slice, list or \"...\"", err);
    to->dim[to->n] = (zarr_dim_selection){.kind = ZARR_DIM_INDEX, .start = index};
    return ZARR_OK;
}

static bool is_ellipsis(const char *s, const char *e)
{
    return e - s == 3 && memcmp(s, "...", 3) == 0;
}

/* Counts the items other than "..."; *n_ellipsis counts those. */
static int32_t count_items(const char *s, const char *e, int *n_ellipsis)
{
    int32_t n = 0;

    *n_ellipsis = 0;
    while (s < e && n <= ZARR_MAX_RANK) {
        const char *end = item_end(s, e);
        const char *next = end + 1;
        trim(&s, &end);
        if (is_ellipsis(s, end))
            ++*n_ellipsis;
        else
            n++;
        s = next;
    }
    return n;
}

static zarr_status parse_items(struct items *to, int32_t ndim, const char *s,
                               const char *e, zarr_error *err)
{
    int n_ellipsis = 0;
    int32_t n = count_items(s, e, &n_ellipsis);
    zarr_status st = ZARR_OK;

    if (n > ndim || n_ellipsis > 1) {
        st = n_ellipsis > 1 ? zr_fail(err, ZARR_ERR_INVALID, "more than one \"...\"")
                            : zr_fail(err, ZARR_ERR_INVALID,
                                      "too many dimensions, the array has %d", (int)ndim);
        goto out;
    }
    while (s < e) {
        const char *end = item_end(s, e);
        const char *next = end + 1;
        trim(&s, &end);
        if (is_ellipsis(s, end)) {
            to->n += ndim - n; /* not changed: ALL */
        } else {
            ZR_TRY(parse_item(to, s, end, err));
            to->n++;
        }
        s = next;
    }
out:
    return st;
}

zarr_status zarr_selection_parse(zarr_selection **out, int32_t ndim,
                                 const uint64_t *shape, const char *text, zarr_error *err)
{
    struct items items = {0};
    const char *s = text ? text : "", *e = s + strlen(s);
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_check_shape(ndim, shape, err));
    trim(&s, &e);
    if (is_in_brackets(s, e)) {
        s++;
        e--;
        trim(&s, &e);
    }
    if (e - s == 2 && memcmp(s, "()", 2) == 0)
        s = e;
    ZR_TRY(parse_items(&items, ndim, s, e, err));
    ZR_TRY(zarr_selection_dims(out, ndim, shape, items.n, items.dim, err));
out:
    if (st == ZARR_ERR_INVALID)
        st = zr_prefix(err, st, "selection \"%.120s\"", text ? text : "");
    for (int32_t d = 0; d < ZARR_MAX_RANK; d++)
        zr_free(NULL, items.list[d]);
    return st;
}
