/*
 * easy/open.c - opens and creates the node at a location, with a store of its own.
 * Thread class: plain functions.
 */
#include "easy/easy_int.h"

#include <string.h>

/* Made when it is first needed and never freed. There is no lock: threads that race for
 * it each make one, and all but the first free theirs. So a child process, forked at any
 * moment, finds none or a complete one. */
static _Atomic(zarr_context *) default_context;

/* *out: ctx, or the default context if ctx is NULL; borrowed. */
static zarr_status context_or_default(zarr_context **out, zarr_context *ctx,
                                      zarr_error *err)
{
    zarr_context *first = NULL;

    *out = ctx ? ctx : atomic_load(&default_context);
    if (*out)
        return ZARR_OK;
    ZR_CHECK(zarr_context_create(out, NULL, err));
    if (!atomic_compare_exchange_strong(&default_context, &first, *out)) {
        zarr_context_free(*out);
        *out = first;
    }
    return ZARR_OK;
}

/* The place of a node, and how its store and its handle are opened. */
struct place {
    zarr_context *ctx; /* borrowed */
    zarr_location *at;
    zarr_store *store;
    zarr_open_options opts;
};

static void close_place(struct place *p)
{
    zarr_store_free(p->store);
    zarr_location_free(p->at);
}

/* store_flag: ZARR_STORE_READ_ONLY, ZARR_STORE_CREATE or 0. */
static zarr_status open_place(struct place *p, zarr_context *ctx, const char *location,
                              uint32_t store_flag, const zarr_open_options *opts,
                              zarr_error *err)
{
    zarr_store_options store;
    zarr_status st = ZARR_OK;

    *p = (struct place){0};
    ZR_TRY(zr_struct_read(&p->opts, sizeof p->opts, 2 * sizeof(uint32_t), opts,
                          ZR_TAIL_REFUSE, "zarr_open_options", err));
    ZR_TRY(zr_flags_check(p->opts.flags, 0, "open options", err));
    ZR_TRY(zr_struct_read(&store, sizeof store, 2 * sizeof(uint32_t), p->opts.store,
                          ZR_TAIL_REFUSE, "zarr_store_options", err));
    store.flags |= store_flag;
    ZR_TRY(context_or_default(&p->ctx, ctx, err));
    ZR_TRY(zarr_location_parse(&p->at, p->ctx, location, err));
    if (p->at->selection)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "%s: the location has a selection, [%s]; a node is opened whole",
                location, p->at->selection);
    ZR_TRY(zarr_store_open(&p->store, p->ctx, p->at->url, &store, err));
out:
    if (st != ZARR_OK)
        close_place(p);
    return st;
}

/* Gives the number of the mode among `modes`; `text` lists them. */
static zarr_status find_mode(const char *mode, const char *const *modes, const char *text,
                             int *out, zarr_error *err)
{
    for (*out = 0; modes[*out]; ++*out)
        if (zr_streq(mode, modes[*out]))
            return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID, "the mode is \"%s\"; it must be %s",
                   mode ? mode : "NULL", text);
}

/* ---- open ------------------------------------------------------------------ */

/* Opens the array if `array` is not NULL, else the group. */
static zarr_status open_node(zarr_array **array, zarr_group **group, zarr_context *ctx,
                             const char *location, const char *mode,
                             const zarr_open_options *opts, zarr_error *err)
{
    static const char *const modes[] = {"r", "r+", NULL};
    struct place p;
    int found = 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(find_mode(mode, modes, "\"r\" or \"r+\"", &found, err));
    ZR_TRY(
        open_place(&p, ctx, location, found == 0 ? ZARR_STORE_READ_ONLY : 0, opts, err));
    st = array ? zarr_array_open(array, p.store, p.at->path, p.opts.array, err)
               : zarr_group_open(group, p.store, p.at->path, p.opts.group, err);
    close_place(&p);
out:
    return st;
}

zarr_status zarr_open_array_with(zarr_array **out, zarr_context *ctx,
                                 const char *location, const char *mode,
                                 const zarr_open_options *opts, zarr_error *err)
{
    *out = NULL;
    return open_node(out, NULL, ctx, location, mode, opts, err);
}

zarr_status zarr_open_array(zarr_array **out, zarr_context *ctx, const char *location,
                            const char *mode, zarr_error *err)
{
    return zarr_open_array_with(out, ctx, location, mode, NULL, err);
}

zarr_status zarr_open_group_with(zarr_group **out, zarr_context *ctx,
                                 const char *location, const char *mode,
                                 const zarr_open_options *opts, zarr_error *err)
{
    *out = NULL;
    return open_node(NULL, out, ctx, location, mode, opts, err);
}

zarr_status zarr_open_group(zarr_group **out, zarr_context *ctx, const char *location,
                            const char *mode, zarr_error *err)
{
    return zarr_open_group_with(out, ctx, location, mode, NULL, err);
}

/* ---- create ---------------------------------------------------------------- */

enum create_mode {
    CREATE_NEW,
    CREATE_OVER,
    CREATE_OR_OPEN
};
static zarr_status find_create_mode(const char *mode, int *out, zarr_error *err)
{
    static const char *const modes[] = {"w-", "w", "a", NULL};

    return find_mode(mode, modes, "\"w-\", \"w\" or \"a\"", out, err);
}

zarr_status zarr_create_array_with(zarr_array **out, zarr_context *ctx,
                                   const char *location, const zarr_array_spec *spec,
                                   const zarr_open_options *opts, zarr_error *err)
{
    struct place p;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(open_place(&p, ctx, location, ZARR_STORE_CREATE, opts, err));
    st = zarr_array_create(out, p.store, p.at->path, spec, p.opts.array, err);
    close_place(&p);
out:
    return st;
}

/* Whether an array is what the caller asked for. It may have grown. */
static zarr_status check_existing(const zarr_array *a, const zarr_array_spec *asked,
                                  zarr_error *err)
{
    const zarr_dtype *have = zarr_array_dtype(a), *want = NULL;
    uint64_t shape[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    ZR_TRY(zarr_dtype_find(&want, zarr_array_context(a), asked->data_type, err));
    if (!zarr_dtype_equal(have, want))
        ZR_FAIL(err, ZARR_ERR_EXISTS, "there is an array of %s already, not of %s",
                zr_dtype_label(have), zr_dtype_label(want));
    if (zarr_array_ndim(a) != asked->ndim)
        ZR_FAIL(err, ZARR_ERR_EXISTS,
                "there is an array with %d dimensions already, not with %d",
                (int)zarr_array_ndim(a), (int)asked->ndim);
    zarr_array_copy_shapes(a, shape, NULL, NULL);
    for (int32_t d = 0; d < asked->ndim; d++)
        if (shape[d] < asked->shape[d])
            ZR_FAIL(err, ZARR_ERR_EXISTS,
                    "there is an array already, whose dimension %d has length "
                    "%" PRIu64 ", not %" PRIu64,
                    (int)d, shape[d], asked->shape[d]);
out:
    return zr_path_prefix(err, st, zarr_array_path(a));
}

static zarr_status open_or_create(zarr_array **out, struct place *p,
                                  zarr_array_spec *spec, zarr_error *err)
{
    zarr_error missing = {0};
    zarr_status st = zarr_array_open(out, p->store, p->at->path, p->opts.array, &missing);

    if (st == ZARR_ERR_NOT_FOUND) {
        spec->flags |= ZARR_SPEC_IF_MISSING; /* another call may be faster */
        return zarr_array_create(out, p->store, p->at->path, spec, p->opts.array, err);
    }
    if (st != ZARR_OK)
        return zr_pass(err, st, &missing);
    st = check_existing(*out, spec, err);
    if (st != ZARR_OK) {
        zarr_array_free(*out);
        *out = NULL;
    }
    return st;
}

/* NOLINTNEXTLINE(readability-function-size): the header says why */
zarr_status zarr_create_array(zarr_array **out, zarr_context *ctx, const char *location,
                              const char *mode, const char *data_type, int32_t ndim,
                              const uint64_t *shape, zarr_error *err)
{
    zarr_array_spec spec = {
        .struct_size = sizeof spec, .data_type = data_type, .ndim = ndim, .shape = shape};
    struct place p;
    int found = CREATE_NEW;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(find_create_mode(mode, &found, err));
    if (!data_type || (ndim > 0 && !shape))
        ZR_FAIL(err, ZARR_ERR_INVALID, "no %s is given",
                data_type ? "shape" : "data type");
    if (found == CREATE_OVER)
        spec.flags = ZARR_SPEC_OVERWRITE | ZARR_SPEC_CONSOLIDATED;
    if (found != CREATE_OR_OPEN)
        return zarr_create_array_with(out, ctx, location, &spec, NULL, err);
    ZR_TRY(open_place(&p, ctx, location, ZARR_STORE_CREATE, NULL, err));
    st = open_or_create(out, &p, &spec, err);
    close_place(&p);
out:
    return st;
}

zarr_status zarr_create_group_with(zarr_group **out, zarr_context *ctx,
                                   const char *location, const zarr_group_spec *spec,
                                   const zarr_open_options *opts, zarr_error *err)
{
    struct place p;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(open_place(&p, ctx, location, ZARR_STORE_CREATE, opts, err));
    st = zarr_group_create(out, p.store, p.at->path, spec, p.opts.group, err);
    close_place(&p);
out:
    return st;
}

zarr_status zarr_create_group(zarr_group **out, zarr_context *ctx, const char *location,
                              const char *mode, zarr_error *err)
{
    zarr_group_spec spec = {.struct_size = sizeof spec};
    int found = CREATE_NEW;

    *out = NULL;
    ZR_CHECK(find_create_mode(mode, &found, err));
    spec.flags = found == CREATE_OVER ? ZARR_GROUP_OVERWRITE | ZARR_GROUP_CONSOLIDATED
                 : found == CREATE_OR_OPEN ? ZARR_GROUP_IF_MISSING
                                           : 0;
    return zarr_create_group_with(out, ctx, location, &spec, NULL, err);
}
