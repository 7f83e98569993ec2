/*
 * array/io/parts.c - reads and writes of several selections in one request. Each part has
 * a tensor and a status of its own; the pipe carries all of them out together. Chunks are
 * decoded in the memory of the tensors if it is the same for all, else in host memory.
 * Thread class: plain functions.
 */
#include "array/io/io_int.h"

#include <string.h>

struct zr_call_parts {
    struct zr_part *part;             /* owned */
    const zarr_selection **selection; /* owned; those of the parts */
    zarr_selection *all;              /* owned; for parts without a selection; or NULL */
    zarr_tensor *tensor;              /* owned; copies */
    zarr_io_part *to;                 /* the caller's */
    uint32_t n;
    struct zr_io *group; /* owned; one for each memory; NULL: one is enough */
    uint32_t n_groups;
};

void zr_io_parts_free(struct zr_io_call *c)
{
    const zarr_allocator *alloc = c->array->h.ctx->alloc;

    zarr_selection_free(c->parts->all);
    zr_free(alloc, c->parts->part);
    zr_free(alloc, c->parts->selection);
    zr_free(alloc, c->parts->tensor);
    zr_free(alloc, c->parts->group);
    zr_free(alloc, c->parts);
    c->parts = NULL;
}

static zarr_status parts_new(struct zr_io_call *c, zarr_io_part *to, size_t n,
                             zarr_error *err)
{
    const zarr_allocator *alloc = c->array->h.ctx->alloc;
    const size_t room = ZR_MAX(n, (size_t)1);
    struct zr_call_parts *p = NULL;

    if (n > UINT32_MAX || (n > 0 && !to))
        return zr_fail(err, ZARR_ERR_INVALID, "%zu parts: %s", n,
                       to ? "too many" : "none are given");
    p = c->parts = zr_calloc(alloc, 1, sizeof *p);
    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->part = zr_calloc(alloc, room, sizeof *p->part);
    p->selection = zr_calloc(alloc, room, sizeof(const zarr_selection *));
    p->tensor = zr_calloc(alloc, room, sizeof *p->tensor);
    if (!p->part || !p->selection || !p->tensor)
        return zr_fail_memory(err, n * sizeof *p->part);
    p->to = to;
    p->n = (uint32_t)n;
    return ZARR_OK;
}

/* Reads what the caller says of a part. */
static zarr_status part_read(struct zr_io_call *c, uint32_t i, zarr_error *err)
{
    const struct zr_array_meta *m = &c->state->meta;
    struct zr_call_parts *p = c->parts;
    const zarr_io_part *from = &p->to[i];

    if (from->reserved != 0)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "zarr_io_part: unknown flags");
    if (zr_tensor_is_packed(from->tensor))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the tensor of a part cannot be packed (ZARR_TENSOR_PACKED)");
    ZR_CHECK(zr_io_tensor(&p->tensor[i], from->tensor, c->array, err));
    ZR_CHECK(zr_array_selection_check(c->state, from->selection, err));
    if (!from->selection && !p->all)
        ZR_CHECK(zarr_selection_dims(&p->all, m->ndim, m->shape, 0, NULL, err));
    p->selection[i] = from->selection ? from->selection : p->all;
    p->part[i].selection = p->selection[i];
    p->part[i].number = i;
    p->part[i].status_to = &p->to[i].status;
    p->part[i].error_to = from->error;
    return ZARR_OK;
}

/* Whether all tensors are in one memory of one device. */
static bool is_one_memory(const struct zr_call_parts *p)
{
    for (uint32_t i = 1; i < p->n; i++)
        if (p->tensor[i].device_type != p->tensor[0].device_type ||
            p->tensor[i].device_id != p->tensor[0].device_id)
            return false;
    return p->n > 0;
}

/* The fill value of a field is made once, in the byte order of the tensors. */
static zarr_status field_order(const struct zr_call_parts *p, zarr_error *err)
{
    for (uint32_t i = 1; i < p->n; i++)
        if (p->part[i].view.swap_bytes != p->part[0].view.swap_bytes)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "parts of one field must have one byte order");
    return ZARR_OK;
}

static zarr_status prefix_part(uint32_t i, zarr_status st, zarr_error *err)
{
    if (st != ZARR_OK) {
        zr_prefix(err, st, "part %" PRIu32, i);
        err->item = i;
    }
    return st;
}

static zarr_status parts_views(struct zr_io_call *c, zarr_error *err)
{
    struct zr_call_parts *p = c->parts;
    const zarr_dtype *dtype = c->state->meta.dtype;
    zarr_status st = ZARR_OK;

    if (c->opts.field)
        ZR_TRY(zr_io_field(&c->io, c->state, c->opts.field, &dtype, err));
    for (uint32_t i = 0; i < p->n; i++) {
        c->io.selection = p->selection[i];
        st = zr_io_view(c, c->state, &p->tensor[i], dtype, &p->part[i].view, err);
        ZR_TRY(prefix_part(i, st, err));
    }
    c->io.selection = NULL;
    c->io.view = (struct zr_view){.base = {.device_type = ZARR_DEVICE_CPU}};
    if (is_one_memory(p))
        c->io.view = p->part[0].view;
    if (c->io.field.on && p->n > 0) {
        ZR_TRY(field_order(p, err));
        c->io.view.swap_bytes = p->part[0].view.swap_bytes;
    }
    if (c->io.field.on)
        ZR_TRY(zr_io_field_fill(&c->field_fill, &c->io, err));
out:
    return st;
}

static bool is_on_host(const struct zr_io_call *c, const zarr_memory *m)
{
    return zr_device_is_host(&c->array->h.ctx->memory, m->device_type);
}

/* Whether two parts may be decoded in one memory: all that the CPU can use is one. */
static bool is_near(const struct zr_io_call *c, const zarr_memory *a,
                    const zarr_memory *b)
{
    if (is_on_host(c, a) || is_on_host(c, b))
        return is_on_host(c, a) && is_on_host(c, b);
    return a->device_type == b->device_type && a->device_id == b->device_id;
}

/* A stream is that of one device. Parts in host memory need no order. */
static zarr_status parts_order(struct zr_io_call *c, zarr_error *err)
{
    const struct zr_call_parts *p = c->parts;
    const zarr_tensor *on = &p->tensor[0];

    if (!c->opts.stream)
        return ZARR_OK;
    for (uint32_t i = 0; i < p->n; i++) {
        const zarr_tensor *t = &p->tensor[i];

        if (zr_device_is_host(&c->array->h.ctx->memory, t->device_type))
            continue;
        if (!zr_device_is_host(&c->array->h.ctx->memory, on->device_type) &&
            (t->device_type != on->device_type || t->device_id != on->device_id))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "io options: a stream is given, but the tensors of the parts "
                           "are not all on one device");
        on = t;
    }
    return zr_io_order(&c->after, c->array->h.ctx, on->device_type, on->device_id,
                       c->opts.stream, err);
}

/* ---- parts in several memories ------------------------------------------ */

/* Moves parts of one memory together, in the order of the first of each memory. Returns
 * how many memories there are. Memories are few, and parts many. */
static uint32_t parts_sort(struct zr_io_call *c, struct zr_part *room)
{
    struct zr_call_parts *p = c->parts;
    uint32_t n = 0, n_groups = 0;

    for (uint32_t first = 0; first < p->n; first++) {
        const zarr_memory *m = &p->part[first].view.base;

        if (!p->part[first].selection) /* it was moved */
            continue;
        n_groups++;
        for (uint32_t i = first; i < p->n; i++)
            if (p->part[i].selection && is_near(c, m, &p->part[i].view.base)) {
                room[n++] = p->part[i];
                p->part[i].selection = NULL;
            }
    }
    memcpy(p->part, room, p->n * sizeof *room);
    for (uint32_t i = 0; i < p->n; i++)
        p->selection[i] = p->part[i].selection;
    return n_groups;
}

/* The io of the parts from `first` on that are in one memory. */
static zarr_status group_io(struct zr_io_call *c, struct zr_io *io, uint32_t first,
                            zarr_error *err)
{
    struct zr_call_parts *p = c->parts;
    const zarr_memory *m = &p->part[first].view.base;
    bool is_same = true;
    uint32_t n = 0;

    for (; first + n < p->n && is_near(c, m, &p->part[first + n].view.base); n++)
        is_same = is_same && p->part[first + n].view.base.device_type == m->device_type;
    ZR_CHECK(zr_array_io(io, c->array, c->state,
                         is_same ? m->device_type : ZARR_DEVICE_CPU, &c->opts, err));
    io->view = (struct zr_view){.base = {.device_type = ZARR_DEVICE_CPU}};
    if (is_same)
        io->view = p->part[first].view;
    io->after = is_on_host(c, m) ? NULL : c->io.after;
    io->heap = c->io.heap;
    io->check = zr_io_call_check;
    io->check_arg = c;
    io->parts = p->part + first;
    io->selections = p->selection + first;
    io->n_parts = n;
    return ZARR_OK;
}

/* A read whose parts are in several memories: each part is decoded where it belongs. A
 * plug-in's pipeline gets one request, and so does a read of a field. */
static zarr_status parts_split(struct zr_io_call *c, zarr_error *err)
{
    const zarr_allocator *alloc = c->array->h.ctx->alloc;
    struct zr_call_parts *p = c->parts;
    struct zr_part *room = NULL;
    uint32_t first = 0, n = 0;

    for (uint32_t i = 1; i < p->n && first == 0; i++)
        if (!is_near(c, &p->part[0].view.base, &p->part[i].view.base))
            first = i;
    if (first == 0 || c->io.write || c->io.field.on || c->io.pipeline->is_foreign)
        return ZARR_OK;
    room = zr_calloc(alloc, p->n, sizeof *room);
    if (!room)
        return zr_fail_memory(err, p->n * sizeof *room);
    n = parts_sort(c, room);
    zr_free(alloc, room);
    p->group = zr_calloc(alloc, n, sizeof *p->group);
    if (!p->group)
        return zr_fail_memory(err, n * sizeof *p->group);
    first = 0;
    for (uint32_t i = 0; i < n; i++) {
        ZR_CHECK(group_io(c, &p->group[i], first, err));
        first += p->group[i].n_parts;
    }
    c->io.groups = p->group;
    c->io.n_groups = n;
    return ZARR_OK;
}

/* What a call gets besides the array. */
struct many {
    zarr_io_part *parts;
    size_t n;
    const zarr_io_options *opts;
    bool write;
};

static zarr_status prepare_many(struct zr_io_call *c, const struct many *m,
                                zarr_error *err)
{
    int32_t device = ZARR_DEVICE_CPU;

    ZR_CHECK(zr_io_options_read(&c->opts, m->opts, err));
    if (c->opts.present)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "io options: `present` is for one selection");
    ZR_CHECK(parts_new(c, m->parts, m->n, err));
    for (uint32_t i = 0; i < c->parts->n; i++)
        ZR_CHECK(prefix_part(i, part_read(c, i, err), err));
    if (is_one_memory(c->parts))
        device = c->parts->tensor[0].device_type;
    if (c->parts->n > 0)
        ZR_CHECK(parts_order(c, err));
    ZR_CHECK(zr_array_io(&c->io, c->array, c->state, device, &c->opts, err));
    c->io.write = m->write;
    ZR_CHECK(parts_views(c, err));
    c->io.after = c->after.queued ? &c->after : NULL;
    c->io.check = zr_io_call_check;
    c->io.check_arg = c;
    c->io.parts = c->parts->part;
    c->io.selections = c->parts->selection;
    c->io.n_parts = c->parts->n;
    ZR_CHECK(parts_split(c, err));
    if (c->io.memory_bytes != 0)
        return zr_request_memory_check(&c->io, err);
    return ZARR_OK;
}

static void tell_all(const struct many *m, zarr_status st, const zarr_error *err)
{
    for (size_t i = 0; m->parts && i < m->n; i++) {
        m->parts[i].status = st;
        if (m->parts[i].error && err)
            *m->parts[i].error = *err;
    }
}

/* After a wrong argument nothing is read or written, and no part is done. */
static zarr_status refuse_many(const struct many *m, zarr_status st,
                               const zarr_error *said, zarr_error *err)
{
    tell_all(m, st, said);
    return zr_pass(err, st, said);
}

static zarr_status run_many(zarr_array *array, const struct many *m, zarr_error *err)
{
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    zarr_error said = ZARR_ERROR_INIT;
    zarr_status st = prepare_many(&c, m, &said);

    if (st != ZARR_OK) {
        zr_path_prefix(&said, st, array->h.path);
        st = refuse_many(m, st, &said, err);
    } else {
        st = zr_io_run(&c.io, c.opts.stats, err);
    }
    zr_io_call_deinit(&c);
    zr_array_state_free(c.state);
    return st;
}

static zarr_status submit_many(zarr_request **out, zarr_array *array,
                               const struct many *m, zarr_error *err)
{
    struct zr_io_call *c = NULL;
    zarr_error said = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    *out = NULL;
    st = zr_io_call_new(&c, array, &said);
    if (st != ZARR_OK)
        return refuse_many(m, st, &said, err);
    st = prepare_many(c, m, &said);
    if (st != ZARR_OK) {
        zr_path_prefix(&said, st, array->h.path);
        zr_io_call_free(c);
        return refuse_many(m, st, &said, err);
    }
    tell_all(m, ZARR_ERR_CANCELLED, NULL); /* until the request says more */
    st = zr_io_call_submit(out, c, &said);
    return st == ZARR_OK ? st : refuse_many(m, st, &said, err);
}

/* ---- the calls ------------------------------------------------------------- */

zarr_status zarr_array_read_many(zarr_array *array, zarr_io_part *parts, size_t n_parts,
                                 const zarr_io_options *opts, zarr_error *err)
{
    const struct many m = {.parts = parts, .n = n_parts, .opts = opts};

    ZR_NEED(array, err);
    return run_many(array, &m, err);
}

zarr_status zarr_array_write_many(zarr_array *array, zarr_io_part *parts, size_t n_parts,
                                  const zarr_io_options *opts, zarr_error *err)
{
    const struct many m = {.parts = parts, .n = n_parts, .opts = opts, .write = true};

    ZR_NEED(array, err);
    return run_many(array, &m, err);
}

zarr_status zarr_array_read_many_submit(zarr_request **out, zarr_array *array,
                                        zarr_io_part *parts, size_t n_parts,
                                        const zarr_io_options *opts, zarr_error *err)
{
    const struct many m = {.parts = parts, .n = n_parts, .opts = opts};

    *out = NULL;
    ZR_NEED(array, err);
    return submit_many(out, array, &m, err);
}

zarr_status zarr_array_write_many_submit(zarr_request **out, zarr_array *array,
                                         zarr_io_part *parts, size_t n_parts,
                                         const zarr_io_options *opts, zarr_error *err)
{
    const struct many m = {.parts = parts, .n = n_parts, .opts = opts, .write = true};

    *out = NULL;
    ZR_NEED(array, err);
    return submit_many(out, array, &m, err);
}
