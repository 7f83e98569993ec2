/*
 * zarrc_fortran.c - what the procedures of the module zarrc (zarrc.f90) do, by the short
 * calls of zarrc/easy.h. A program compiles both files, with the ISO_Fortran_binding.h of
 * its Fortran compiler. CFI_cdesc_t is that header's descriptor, which tells the type and
 * the extents of an argument. An argument that is absent is NULL.
 * Thread class: plain functions.
 */
#include <ISO_Fortran_binding.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zarrc/zarrc.h>

_Static_assert(ZARR_MAX_RANK == 64, "max_rank in zarrc.f90");

/* ---- errors ---------------------------------------------------------------- */

void zarr_fortran_stop(const char *text, int n); /* of the module; does not return */

static zarr_status fail(zarr_error *err, zarr_status st, const char *format, ...)
{
    va_list arguments;

    *err = (zarr_error){.code = st};
    va_start(arguments, format);
    (void)vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    return st;
}

static zarr_status fail_memory(zarr_error *err)
{
    return fail(err, ZARR_ERR_NO_MEMORY, "there is no memory for a copy of an argument");
}

/* Copies a text, and fills the rest with blanks. Returns false if the text is cut. */
static bool put_text(char *to, size_t room, const char *text)
{
    const size_t bytes = strlen(text);

    memset(to, ' ', room);
    memcpy(to, text, bytes < room ? bytes : room);
    return bytes <= room;
}

/* Ends a call: gives its status to the program, or stops the program. */
static void report(zarr_status st, const zarr_error *err, int *stat, CFI_cdesc_t *errmsg)
{
    if (stat)
        *stat = st;
    if (st == ZARR_OK)
        return;
    if (errmsg && errmsg->rank == 0 && errmsg->type == CFI_type_char)
        put_text(errmsg->base_addr, errmsg->elem_len, err->message);
    if (!stat)
        zarr_fortran_stop(err->message, (int)strlen(err->message));
}

static zarr_status check_open(const void *handle, zarr_error *err)
{
    return handle ? ZARR_OK
                  : fail(err, ZARR_ERR_INVALID, "the array or group is not open");
}

/* ---- arguments ------------------------------------------------------------- */

/* NULL: the elements are of another type. */
static const char *find_data_type(const CFI_cdesc_t *d)
{
    static const struct {
        CFI_type_t type;
        const char *name;
    } types[] = {{CFI_type_int8_t, ZARR_INT8},
                 {CFI_type_int16_t, ZARR_INT16},
                 {CFI_type_int32_t, ZARR_INT32},
                 {CFI_type_int64_t, ZARR_INT64},
                 {CFI_type_float, ZARR_FLOAT32},
                 {CFI_type_double, ZARR_FLOAT64},
                 {CFI_type_float_Complex, ZARR_COMPLEX64},
                 {CFI_type_double_Complex, ZARR_COMPLEX128}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == d->type)
            return types[i].name;
    return NULL;
}

static size_t count_items(const CFI_cdesc_t *d)
{
    size_t n = 1;

    for (int i = 0; i < d->rank; i++)
        if (d->dim[i].extent == 0)
            return 0;
    for (int i = 0; i < d->rank; i++)
        n *= (size_t)d->dim[i].extent; /* fits: they are in memory */
    return n;
}

/* An assumed-size array has no last extent. */
static zarr_status check_extents(const CFI_cdesc_t *d, zarr_error *err)
{
    if (d->rank == 0 || d->dim[d->rank - 1].extent >= 0)
        return ZARR_OK;
    return fail(err, ZARR_ERR_INVALID,
                "an array of assumed size has no shape: pass a section such as x(1:n)");
}

/* Returns false if the elements are no integers of 32 or 64 bits. */
static bool get_integer(const CFI_cdesc_t *d, size_t i, int64_t *out)
{
    if (d->type == CFI_type_int32_t)
        *out = ((const int32_t *)d->base_addr)[i];
    else if (d->type == CFI_type_int64_t)
        *out = ((const int64_t *)d->base_addr)[i];
    else
        return false;
    return true;
}

/* Gives the entries of a list in the order of Zarr, counted from `least`. */
static zarr_status get_lengths(uint64_t *out, int32_t ndim, const CFI_cdesc_t *list,
                               int64_t least, const char *name, zarr_error *err)
{
    int64_t v = 0;

    if (list->dim[0].extent != ndim)
        return fail(err, ZARR_ERR_INVALID, "%s has %lld entries, expected %d", name,
                    (long long)list->dim[0].extent, (int)ndim);
    for (int32_t i = 0; i < ndim; i++) {
        if (!get_integer(list, (size_t)i, &v))
            return fail(err, ZARR_ERR_INVALID, "%s must have integers of 32 or 64 bits",
                        name);
        if (v < least)
            return fail(err, ZARR_ERR_INVALID, "%s(%d) is %lld, expected at least %lld",
                        name, (int)i + 1, (long long)v, (long long)least);
        out[ndim - 1 - i] = (uint64_t)(v - least);
    }
    return ZARR_OK;
}

/* Copies texts without the blanks at their ends. Owned: free(*out), also after a failure.
 */
static zarr_status copy_texts(char ***out, const CFI_cdesc_t *d, zarr_error *err)
{
    const size_t n = count_items(d), bytes = d->elem_len + 1;
    const char *from = d->base_addr;
    char *to;

    *out = NULL;
    if (n < SIZE_MAX / (bytes + sizeof *out) - 1)
        *out = malloc(n * (bytes + sizeof *out) + 1);
    if (!*out)
        return fail_memory(err);
    to = (char *)(*out + n);
    for (size_t i = 0; i < n; i++, from += d->elem_len, to += bytes) {
        size_t length = d->elem_len;

        while (length > 0 && from[length - 1] == ' ')
            length--;
        memcpy(to, from, length);
        to[length] = 0;
        if (strlen(to) < length)
            return fail(err, ZARR_ERR_INVALID, "the text \"%s\" has a NUL inside", to);
        (*out)[i] = to;
    }
    return ZARR_OK;
}

enum {
    NAME_BYTES = 4096
};

/* Copies a location, a name or a mode without the blanks at its end. */
static zarr_status copy_name(char *out, const CFI_cdesc_t *d, zarr_error *err)
{
    char **text = NULL;
    zarr_status st = copy_texts(&text, d, err);

    if (st == ZARR_OK && strlen(*text) >= NAME_BYTES)
        st = fail(err, ZARR_ERR_LIMIT,
                  "\"%.40s...\" has %zu bytes, at most %d are possible", *text,
                  strlen(*text), NAME_BYTES - 1);
    if (st == ZARR_OK)
        strcpy(out, *text);
    free(text);
    return st;
}

/* ---- open, create and close ------------------------------------------------ */

struct place {
    char location[NAME_BYTES], mode[NAME_BYTES];
};

/* Also checks that the variable is free. `usual`: the mode if it is absent. */
static zarr_status get_place(struct place *out, const void *handle,
                             const CFI_cdesc_t *location, const CFI_cdesc_t *mode,
                             const char *usual, zarr_error *err)
{
    zarr_status st = copy_name(out->location, location, err);

    if (handle)
        return fail(err, ZARR_ERR_INVALID,
                    "the variable has an open array or group: call zarr_close() first");
    strcpy(out->mode, usual);
    return st == ZARR_OK && mode ? copy_name(out->mode, mode, err) : st;
}

void zarr_fortran_open_array(zarr_array **array, const CFI_cdesc_t *location,
                             const CFI_cdesc_t *mode, int *stat, CFI_cdesc_t *errmsg)
{
    struct place p;
    zarr_error err;
    zarr_status st = get_place(&p, *array, location, mode, "r", &err);

    if (st == ZARR_OK)
        st = zarr_open_array(array, NULL, p.location, p.mode, &err);
    report(st, &err, stat, errmsg);
}

void zarr_fortran_open_group(zarr_group **group, const CFI_cdesc_t *location,
                             const CFI_cdesc_t *mode, int *stat, CFI_cdesc_t *errmsg)
{
    struct place p;
    zarr_error err;
    zarr_status st = get_place(&p, *group, location, mode, "r", &err);

    if (st == ZARR_OK)
        st = zarr_open_group(group, NULL, p.location, p.mode, &err);
    report(st, &err, stat, errmsg);
}

void zarr_fortran_create_group(zarr_group **group, const CFI_cdesc_t *location,
                               const CFI_cdesc_t *mode, int *stat, CFI_cdesc_t *errmsg)
{
    struct place p;
    zarr_error err;
    zarr_status st = get_place(&p, *group, location, mode, "w-", &err);

    if (st == ZARR_OK)
        st = zarr_create_group(group, NULL, p.location, p.mode, &err);
    report(st, &err, stat, errmsg);
}

/* zarr_create_array() knows all modes and checks an array that exists, but it takes no
 * chunks. */
static zarr_status create_array(zarr_array **out, const struct place *p,
                                zarr_array_spec *spec, zarr_error *err)
{
    const bool overwrites = strcmp(p->mode, "w") == 0;
    zarr_array *found = NULL;
    zarr_status st = ZARR_ERR_EXISTS;

    if (overwrites)
        spec->flags = ZARR_SPEC_OVERWRITE | ZARR_SPEC_CONSOLIDATED;
    if (overwrites || strcmp(p->mode, "w-") == 0)
        return zarr_create_array_with(out, NULL, p->location, spec, NULL, err);
    if (strcmp(p->mode, "a") == 0 &&
        zarr_open_array(&found, NULL, p->location, "r", NULL) == ZARR_ERR_NOT_FOUND)
        st = zarr_create_array_with(out, NULL, p->location, spec, NULL, err);
    zarr_array_free(found);
    if (st != ZARR_ERR_EXISTS)
        return st;
    /* an unknown mode, or the array exists, perhaps because another program was faster */
    return zarr_create_array(out, NULL, p->location, p->mode, spec->data_type, spec->ndim,
                             spec->shape, err);
}

/* Gives the names in the order of Zarr. Owned: free(*texts), also after a failure. */
static zarr_status get_dimension_names(const char **out, char ***texts, int32_t ndim,
                                       const CFI_cdesc_t *names, zarr_error *err)
{
    zarr_status st = copy_texts(texts, names, err);

    if (st == ZARR_OK && names->dim[0].extent != ndim)
        return fail(err, ZARR_ERR_INVALID, "dimensions has %lld entries, expected %d",
                    (long long)names->dim[0].extent, (int)ndim);
    for (int32_t d = 0; st == ZARR_OK && d < ndim; d++)
        out[d] = (*texts)[ndim - 1 - d];
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the arguments of zarr_create() */
void zarr_fortran_create_array(zarr_array **array, const CFI_cdesc_t *location,
                               const CFI_cdesc_t *data_type, const CFI_cdesc_t *shape,
                               const CFI_cdesc_t *chunks, const CFI_cdesc_t *shards,
                               const CFI_cdesc_t *dimensions, const CFI_cdesc_t *mode,
                               int *stat, CFI_cdesc_t *errmsg)
{
    uint64_t lengths[3][ZARR_MAX_RANK];
    const char *names[ZARR_MAX_RANK];
    char type[NAME_BYTES], **texts = NULL;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    struct place p;
    zarr_error err;
    zarr_status st = get_place(&p, *array, location, mode, "w-", &err);

    spec.data_type = type;
    spec.shape = lengths[0];
    spec.ndim = shape->dim[0].extent < ZARR_MAX_RANK ? (int32_t)shape->dim[0].extent
                                                     : ZARR_MAX_RANK;
    spec.chunk_shape = chunks ? lengths[1] : NULL;
    spec.shard_shape = shards ? lengths[2] : NULL;
    spec.dimension_names = dimensions ? names : NULL;
    if (st == ZARR_OK && shape->dim[0].extent > ZARR_MAX_RANK)
        st = fail(&err, ZARR_ERR_INVALID,
                  "shape has %lld entries, at most %d are possible",
                  (long long)shape->dim[0].extent, ZARR_MAX_RANK);
    if (st == ZARR_OK)
        st = copy_name(type, data_type, &err);
    if (st == ZARR_OK)
        st = get_lengths(lengths[0], spec.ndim, shape, 0, "shape", &err);
    if (st == ZARR_OK && chunks)
        st = get_lengths(lengths[1], spec.ndim, chunks, 0, "chunks", &err);
    if (st == ZARR_OK && shards)
        st = get_lengths(lengths[2], spec.ndim, shards, 0, "shards", &err);
    if (st == ZARR_OK && dimensions)
        st = get_dimension_names(names, &texts, spec.ndim, dimensions, &err);
    if (st == ZARR_OK)
        st = create_array(array, &p, &spec, &err);
    free(texts);
    report(st, &err, stat, errmsg);
}

void zarr_fortran_close_array(zarr_array **array)
{
    zarr_array_free(*array);
    *array = NULL;
}

void zarr_fortran_close_group(zarr_group **group)
{
    zarr_group_free(*group);
    *group = NULL;
}

/* lengths: room for ZARR_MAX_RANK. */
void zarr_fortran_get_lengths(zarr_array *const *array, int64_t *lengths, int *n,
                              int *stat, CFI_cdesc_t *errmsg)
{
    uint64_t shape[ZARR_MAX_RANK];
    zarr_error err;
    zarr_status st = check_open(*array, &err);

    *n = st == ZARR_OK ? zarr_array_ndim(*array) : 0;
    if (st == ZARR_OK)
        zarr_array_copy_shapes(*array, shape, NULL, NULL);
    for (int i = 0; i < *n; i++)
        lengths[i] = (int64_t)shape[*n - 1 - i];
    report(st, &err, stat, errmsg);
}

/* ---- elements -------------------------------------------------------------- */

/* What zarr_array_read_box() takes. */
struct box {
    const char *data_type;
    uint64_t bytes, start[ZARR_MAX_RANK], count[ZARR_MAX_RANK];
};

static zarr_status get_memory(struct box *b, const zarr_array *array,
                              const CFI_cdesc_t *data, zarr_error *err)
{
    zarr_status st = check_open(array, err);

    b->data_type = find_data_type(data);
    if (st == ZARR_OK && !b->data_type)
        st =
            fail(err, ZARR_ERR_INVALID,
                 "/%s: data must be integer, real or complex of the kinds int8 to int64, "
                 "real32 and real64",
                 zarr_array_path(array));
    if (st == ZARR_OK)
        st = check_extents(data, err);
    if (st == ZARR_OK)
        b->bytes = (uint64_t)count_items(data) * data->elem_len;
    return st;
}

/* Whether the extents of data are those of the box, except for lengths of 1. */
static bool has_extents(const CFI_cdesc_t *data, const uint64_t *count, int32_t ndim)
{
    int i = 0;

    for (int32_t d = ndim - 1; d >= 0; d--) {
        if (count[d] == 1)
            continue;
        while (i < data->rank && data->dim[i].extent == 1)
            i++;
        if (i == data->rank || (uint64_t)data->dim[i++].extent != count[d])
            return false;
    }
    while (i < data->rank && data->dim[i].extent == 1)
        i++;
    return i == data->rank;
}

/* `other` has the shape that data should have. */
static zarr_status refuse_shape(const zarr_array *array, const CFI_cdesc_t *data,
                                const char *other, const uint64_t *wanted,
                                const char *advice, zarr_error *err)
{
    char have[200] = "", want[200] = "";
    size_t n = 0, m = 0;

    for (int i = 0; i < data->rank && n < sizeof have; i++)
        n += (size_t)snprintf(have + n, sizeof have - n, n ? ",%lld" : "%lld",
                              (long long)data->dim[i].extent);
    for (int32_t d = zarr_array_ndim(array) - 1; d >= 0 && m < sizeof want; d--)
        m += (size_t)snprintf(want + m, sizeof want - m, m ? ",%llu" : "%llu",
                              (unsigned long long)wanted[d]);
    return fail(err, ZARR_ERR_INVALID, "/%s: data has the shape (%s), %s (%s)%s",
                zarr_array_path(array), have, other, want, advice);
}

/* The box that zarr_read() and zarr_write() are about; zarrc.f90 has the rules. */
static zarr_status get_box(struct box *b, const zarr_array *array,
                           const CFI_cdesc_t *data, const CFI_cdesc_t *start,
                           const CFI_cdesc_t *count, zarr_error *err)
{
    zarr_status st = get_memory(b, array, data, err);
    const int32_t ndim = st == ZARR_OK ? zarr_array_ndim(array) : 0;
    uint64_t shape[ZARR_MAX_RANK];
    bool is_whole = data->rank == ndim;

    if (st == ZARR_OK)
        zarr_array_copy_shapes(array, shape, NULL, NULL);
    for (int32_t d = 0; d < ndim; d++) {
        b->start[d] = 0;
        b->count[d] = d < data->rank ? (uint64_t)data->dim[data->rank - 1 - d].extent : 1;
        is_whole = is_whole && b->count[d] == shape[d];
    }
    if (st == ZARR_OK && start)
        st = get_lengths(b->start, ndim, start, 1, "start", err);
    if (st == ZARR_OK && count)
        st = get_lengths(b->count, ndim, count, 0, "count", err);
    if (st == ZARR_OK && count && !has_extents(data, b->count, ndim))
        return refuse_shape(array, data, "count is", b->count, "", err);
    if (st == ZARR_OK && !count && (start ? data->rank != ndim : !is_whole))
        return refuse_shape(array, data, "the array", shape,
                            start ? ": pass count for another rank"
                                  : ": pass start or count for a part",
                            err);
    return st;
}

void zarr_fortran_read(zarr_array *const *array, const CFI_cdesc_t *data,
                       const CFI_cdesc_t *start, const CFI_cdesc_t *count, int *stat,
                       CFI_cdesc_t *errmsg)
{
    struct box b;
    zarr_error err;
    zarr_status st = get_box(&b, *array, data, start, count, &err);

    if (st == ZARR_OK)
        st = zarr_array_read_box(*array, b.start, b.count, b.data_type, data->base_addr,
                                 b.bytes, &err);
    report(st, &err, stat, errmsg);
}

void zarr_fortran_write(zarr_array *const *array, const CFI_cdesc_t *data,
                        const CFI_cdesc_t *start, const CFI_cdesc_t *count, int *stat,
                        CFI_cdesc_t *errmsg)
{
    struct box b;
    zarr_error err;
    zarr_status st = get_box(&b, *array, data, start, count, &err);

    if (st == ZARR_OK)
        st = zarr_array_write_box(*array, b.start, b.count, b.data_type, data->base_addr,
                                  b.bytes, &err);
    report(st, &err, stat, errmsg);
}

/* The last dimension of Fortran, which grows, is dimension 0 of Zarr. */
void zarr_fortran_append(zarr_array *const *array, const CFI_cdesc_t *data, int *stat,
                         CFI_cdesc_t *errmsg)
{
    struct box b;
    zarr_error err;
    zarr_status st = get_memory(&b, *array, data, &err);
    const int ndim = st == ZARR_OK ? zarr_array_ndim(*array) : 0;
    uint64_t shape[ZARR_MAX_RANK];
    bool fits = ndim > 0 && (data->rank == ndim || data->rank == ndim - 1);

    if (st == ZARR_OK)
        zarr_array_copy_shapes(*array, shape, NULL, NULL);
    for (int i = 0; fits && i < ndim - 1; i++)
        fits = (uint64_t)data->dim[i].extent == shape[ndim - 1 - i];
    if (st == ZARR_OK && !fits)
        st = refuse_shape(*array, data, "the array", shape,
                          ": all but the last dimension must match", &err);
    if (st == ZARR_OK)
        st = zarr_array_append_rows(
            *array, data->rank == ndim ? (uint64_t)data->dim[ndim - 1].extent : 1,
            b.data_type, data->base_addr, b.bytes, &err);
    report(st, &err, stat, errmsg);
}

/* ---- attributes ------------------------------------------------------------ */

struct node {
    zarr_array *array; /* NULL: the group */
    zarr_group *group;
};

/* Calls zarr_array_attribute_CALL() or zarr_group_attribute_CALL(). */
#define ON_NODE(node, call, ...)                                                         \
    ((node)->array ? zarr_array_attribute_##call((node)->array, __VA_ARGS__)             \
                   : zarr_group_attribute_##call((node)->group, __VA_ARGS__))

static const char *node_path(const struct node *node)
{
    return node->array ? zarr_array_path(node->array) : zarr_group_path(node->group);
}

static bool is_integer(const CFI_cdesc_t *d)
{
    return d->type == CFI_type_int32_t || d->type == CFI_type_int64_t;
}

static bool is_real(const CFI_cdesc_t *d)
{
    return d->type == CFI_type_float || d->type == CFI_type_double;
}

static double get_real(const CFI_cdesc_t *d, size_t i)
{
    return d->type == CFI_type_double ? ((const double *)d->base_addr)[i]
                                      : (double)((const float *)d->base_addr)[i];
}

/* Rounds reals to the type of the element. Returns false if a value is too large. */
static bool put_number(const CFI_cdesc_t *d, size_t i, int64_t integer, double real)
{
    if (d->type == CFI_type_int64_t)
        ((int64_t *)d->base_addr)[i] = integer;
    else if (d->type == CFI_type_double)
        ((double *)d->base_addr)[i] = real;
    else if (d->type == CFI_type_int32_t && integer >= INT32_MIN && integer <= INT32_MAX)
        ((int32_t *)d->base_addr)[i] = (int32_t)integer;
    else if (d->type == CFI_type_float &&
             !(isfinite(real) && fabs(real) > (double)FLT_MAX))
        ((float *)d->base_addr)[i] = (float)real;
    else
        return false;
    return true;
}

static zarr_status set_numbers(const struct node *node, const char *name,
                               const CFI_cdesc_t *value, zarr_error *err)
{
    const size_t n = count_items(value);
    int64_t *integers = calloc(n + 1, sizeof *integers);
    double *reals = calloc(n + 1, sizeof *reals);
    zarr_status st = ZARR_OK;

    if (!integers || !reals) {
        st = fail_memory(err);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        if (!get_integer(value, i, &integers[i]))
            reals[i] = get_real(value, i);
    if (is_integer(value))
        st = value->rank == 0 ? ON_NODE(node, set_int64, name, *integers, err)
                              : ON_NODE(node, set_int64s, name, integers, n, err);
    else
        st = value->rank == 0 ? ON_NODE(node, set_double, name, *reals, err)
                              : ON_NODE(node, set_doubles, name, reals, n, err);
out:
    free(integers);
    free(reals);
    return st;
}

static zarr_status set_texts(const struct node *node, const char *name,
                             const CFI_cdesc_t *value, zarr_error *err)
{
    char **text = NULL;
    zarr_status st = copy_texts(&text, value, err);

    if (st == ZARR_OK)
        st = value->rank == 0 ? ON_NODE(node, set_text, name, *text, err)
                              : ON_NODE(node, set_texts, name, (const char *const *)text,
                                        count_items(value), err);
    free(text);
    return st;
}

/* *n becomes the number of values; NULL: the argument must have as many elements. */
static zarr_status get_numbers(const struct node *node, const char *name,
                               const CFI_cdesc_t *value, uint64_t *n, zarr_error *err)
{
    const size_t cap = count_items(value);
    int64_t *integers = calloc(cap + 1, sizeof *integers);
    double *reals = calloc(cap + 1, sizeof *reals);
    zarr_status st = ZARR_OK;

    if (!integers || !reals) {
        st = fail_memory(err);
        goto out;
    }
    st = is_integer(value) ? ON_NODE(node, get_int64s, name, integers, cap, n, err)
                           : ON_NODE(node, get_doubles, name, reals, cap, n, err);
    for (size_t i = 0; st == ZARR_OK && i < (n ? *n : cap); i++)
        if (!put_number(value, i, integers[i], reals[i]))
            st = fail(err, ZARR_ERR_INVALID,
                      "/%s: attribute \"%s\": value %zu is too large for %s",
                      node_path(node), name, i + 1, find_data_type(value));
out:
    free(integers);
    free(reals);
    return st;
}

static zarr_status get_texts(const struct node *node, const char *name,
                             const CFI_cdesc_t *value, uint64_t *n, zarr_error *err)
{
    const size_t cap = count_items(value), bytes = value->elem_len;
    char *to = value->base_addr;
    zarr_texts *t = NULL;
    zarr_status st = node->array
                         ? zarr_array_attribute_get_texts(&t, node->array, name, err)
                         : zarr_group_attribute_get_texts(&t, node->group, name, err);

    if (st == ZARR_OK && n)
        *n = t->n;
    if (st == ZARR_OK && (n ? t->n > cap : t->n != cap))
        st = fail(err, n ? ZARR_ERR_LIMIT : ZARR_ERR_INVALID,
                  "/%s: attribute \"%s\" has %llu texts, the argument has %zu elements",
                  node_path(node), name, (unsigned long long)t->n, cap);
    for (size_t i = 0; st == ZARR_OK && i < t->n; i++)
        if (!put_text(to + i * bytes, bytes, t->text[i]))
            st = fail(
                err, ZARR_ERR_LIMIT,
                "/%s: attribute \"%s\": \"%.40s\" has %zu bytes, there is room for %zu",
                node_path(node), name, t->text[i], strlen(t->text[i]), bytes);
    zarr_texts_free(t);
    return st;
}

/* Gets the name, and checks the value. */
static zarr_status check_attribute(char *out, const struct node *node,
                                   const CFI_cdesc_t *name, const CFI_cdesc_t *value,
                                   zarr_error *err)
{
    zarr_status st = check_open(node->array ? (void *)node->array : node->group, err);

    if (st == ZARR_OK)
        st = copy_name(out, name, err);
    if (st == ZARR_OK)
        st = check_extents(value, err);
    if (st == ZARR_OK && (value->rank > 1 || !(value->type == CFI_type_char ||
                                               is_integer(value) || is_real(value))))
        st = fail(
            err, ZARR_ERR_INVALID,
            "/%s: attribute \"%s\": the value must be a scalar or a list (rank 1), of "
            "character, or of integer or real with 32 or 64 bits",
            node_path(node), out);
    return st;
}

static void set_attribute(const struct node *node, const CFI_cdesc_t *name,
                          const CFI_cdesc_t *value, int *stat, CFI_cdesc_t *errmsg)
{
    char text[NAME_BYTES];
    zarr_error err;
    zarr_status st = check_attribute(text, node, name, value, &err);

    if (st == ZARR_OK)
        st = (value->type == CFI_type_char ? set_texts : set_numbers)(node, text, value,
                                                                      &err);
    report(st, &err, stat, errmsg);
}

void zarr_fortran_set_in_array(zarr_array *const *array, const CFI_cdesc_t *name,
                               const CFI_cdesc_t *value, int *stat, CFI_cdesc_t *errmsg)
{
    set_attribute(&(struct node){.array = *array}, name, value, stat, errmsg);
}

void zarr_fortran_set_in_group(zarr_group *const *group, const CFI_cdesc_t *name,
                               const CFI_cdesc_t *value, int *stat, CFI_cdesc_t *errmsg)
{
    set_attribute(&(struct node){.group = *group}, name, value, stat, errmsg);
}

static void get_attribute(const struct node *node, const CFI_cdesc_t *name,
                          const CFI_cdesc_t *value, int *n, int *stat,
                          CFI_cdesc_t *errmsg)
{
    char text[NAME_BYTES];
    uint64_t have = 0, *counted = n ? &have : NULL;
    zarr_error err;
    zarr_status st = check_attribute(text, node, name, value, &err);

    if (st == ZARR_OK)
        st = (value->type == CFI_type_char ? get_texts : get_numbers)(node, text, value,
                                                                      counted, &err);
    if (n)
        *n = have < INT_MAX ? (int)have : INT_MAX;
    report(st, &err, stat, errmsg);
}

void zarr_fortran_get_from_array(zarr_array *const *array, const CFI_cdesc_t *name,
                                 const CFI_cdesc_t *value, int *n, int *stat,
                                 CFI_cdesc_t *errmsg)
{
    get_attribute(&(struct node){.array = *array}, name, value, n, stat, errmsg);
}

void zarr_fortran_get_from_group(zarr_group *const *group, const CFI_cdesc_t *name,
                                 const CFI_cdesc_t *value, int *n, int *stat,
                                 CFI_cdesc_t *errmsg)
{
    get_attribute(&(struct node){.group = *group}, name, value, n, stat, errmsg);
}

/* ---- members of a group ---------------------------------------------------- */

/* Gives how many direct children there are, and the length of the longest name. Owned:
 * zarr_fortran_close_members(); after a failure there are none. */
void zarr_fortran_open_members(zarr_members **out, zarr_group *const *group, int *n,
                               int *length, int *stat, CFI_cdesc_t *errmsg)
{
    zarr_error err;
    zarr_status st = check_open(*group, &err);

    *out = NULL;
    *n = *length = 0;
    if (st == ZARR_OK)
        st = zarr_group_list_members(out, *group, 1, &err);
    if (st == ZARR_OK && (*out)->n > INT_MAX)
        st = fail(&err, ZARR_ERR_LIMIT, "the group has more than %d members", INT_MAX);
    else if (st == ZARR_OK)
        *n = (int)(*out)->n;
    for (int i = 0; i < *n; i++)
        if (strlen((*out)->node[i]->name) > (size_t)*length)
            *length = (int)strlen((*out)->node[i]->name);
    report(st, &err, stat, errmsg);
}

/* i: from 1 on. */
void zarr_fortran_get_member(const zarr_members *members, int i, const CFI_cdesc_t *name,
                             bool *is_array)
{
    const zarr_node_item *node = members->node[i - 1];

    put_text(name->base_addr, name->elem_len, node->name);
    *is_array = node->kind == ZARR_NODE_ARRAY;
}

void zarr_fortran_close_members(zarr_members *members)
{
    zarr_members_free(members);
}
