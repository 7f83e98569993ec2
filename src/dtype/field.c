/*
 * dtype/field.c - gives users the fields of a struct: by number, or by a path through
 * nested structs. Thread class: frozen.
 */
#include "struct_int.h"

#include <string.h>

uint64_t zarr_dtype_n_fields(const zarr_dtype *dtype)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);

    return s ? s->n : 0;
}

/* Steps into a field and adds its offset and dimensions to those in `out`. */
static zarr_status field_enter(zarr_dtype_field *out, const struct zr_field *f,
                               zarr_error *err)
{
    uint64_t stride = f->dtype->info.item_bytes;

    if (out->ndim + f->ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "field \"%.64s\" has more than %d dimensions", f->name,
                       (int)ZARR_MAX_RANK);
    for (int32_t d = f->ndim - 1; d >= 0; d--) {
        out->shape[out->ndim + d] = f->shape[d];
        out->stride[out->ndim + d] = (int64_t)stride;
        stride *= f->shape[d]; /* cannot overflow: checked when the type was made */
    }
    out->ndim += f->ndim;
    out->name = f->name;
    out->dtype = f->dtype;
    out->offset += f->offset;
    return ZARR_OK;
}

static zarr_status no_struct(const zarr_dtype *dtype, zarr_error *err)
{
    const char *name = dtype ? dtype->info.name : NULL;

    return zr_fail(err, ZARR_ERR_INVALID, "data type %.64s has no fields",
                   name ? name : "NULL");
}

/* Refuses callers whose struct has another size. There is no older version yet. */
static zarr_status give_field(zarr_dtype_field *out, const zarr_dtype_field *f,
                              zarr_error *err)
{
    if (!out || out->struct_size != sizeof *out)
        return zr_fail(err, out ? ZARR_ERR_ABI : ZARR_ERR_INVALID,
                       "zarr_dtype_field: initialise it with ZARR_DTYPE_FIELD_INIT");
    *out = *f;
    return ZARR_OK;
}

zarr_status zarr_dtype_field_at(const zarr_dtype *dtype, uint64_t i,
                                zarr_dtype_field *out, zarr_error *err)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    zarr_dtype_field f = {.struct_size = sizeof f};

    if (!s)
        return no_struct(dtype, err);
    if (i >= s->n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "there is no field %" PRIu64 ", only %zu fields", i, s->n);
    ZR_CHECK(field_enter(&f, &s->field[i], err));
    return give_field(out, &f, err);
}

static zarr_status not_there(const struct zr_struct *s, const char *path, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str names;

    zr_str_init(&names, s->alloc);
    for (size_t i = 0; i < s->n && names.bytes < 160; i++)
        zr_str_printf(&names, "%s%.64s", i ? ", " : "", s->field[i].name);
    st =
        zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no field \"%.64s\"; the fields are %s",
                path, zr_str_text(&names));
    zr_error_mark(err, ZARR_ERROR_FIELD, strlen("there is no field \""), path);
    zr_str_deinit(&names);
    return st;
}

/* Finds the first field of the path: the whole path as a name, or the longest part before
 * a dot that leads into a struct. *rest: the path after it. */
static const struct zr_field *first_field(const struct zr_struct *s, const char *path,
                                          const char **rest)
{
    const struct zr_field *f = zr_map_get(&s->by_name, path);
    size_t n = strlen(path);

    *rest = NULL;
    while (!f && n > 0) {
        while (n > 0 && path[n - 1] != '.')
            n--;
        if (n == 0)
            break;
        n--;
        f = zr_map_get_n(&s->by_name, path, n);
        if (f && !zr_struct_from_dtype(f->dtype))
            f = NULL;
        *rest = path + n + 1;
    }
    return f;
}

zarr_status zarr_dtype_field_find(const zarr_dtype *dtype, const char *path,
                                  zarr_dtype_field *out, zarr_error *err)
{
    const struct zr_struct *s = zr_struct_from_dtype(dtype);
    zarr_dtype_field f = {.struct_size = sizeof f};
    zarr_status st = ZARR_OK;

    if (!s)
        return no_struct(dtype, err);
    if (!path)
        return zr_fail(err, ZARR_ERR_INVALID, "no field is named");
    for (const char *rest = path; rest;) {
        const char *here = rest;
        const struct zr_field *step = first_field(s, here, &rest);

        if (!step) {
            st = not_there(s, here, err);
            goto out;
        }
        ZR_TRY(field_enter(&f, step, err));
        s = zr_struct_from_dtype(step->dtype);
    }
    st = give_field(out, &f, err);
out:
    return st;
}
