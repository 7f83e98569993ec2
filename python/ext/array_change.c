/* array_change.c - what changes an array as a whole, and what it has stored. */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

/* ---- changes ---------------------------------------------------------------- */

struct change {
    zarr_array *a;
    const char *name, *json;
    int replace_all, changed, is_complete;
    uint64_t shape[ZARR_MAX_RANK], n, bytes;
    uint32_t what;
    bool has_place; /* `shape` has the coordinates of a block */
    struct zx_rows rows;
};

static zarr_status attribute_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    if (!c->name)
        return zarr_array_attributes_merge(c->a, c->json, c->replace_all, cancel, err);
    if (!c->json)
        return zarr_array_attribute_delete(c->a, c->name, cancel, err);
    return zarr_array_attribute_set(c->a, c->name, c->json, cancel, err);
}

/* _attribute(name, json, replace_all): name None: merge an object; json None: delete */
PyObject *zx_array_attribute(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    if (zx_writable(self->store) ||
        !PyArg_ParseTuple(args, "zz|p", &c.name, &c.json, &c.replace_all))
        return NULL;
    if (zx_call(self->st, attribute_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}

static zarr_status resize_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_shape_options o = ZARR_SHAPE_OPTIONS_INIT;
    struct change *c = arg;

    o.flags = c->what;
    o.cancel = cancel;
    return zarr_array_resize(c->a, c->shape, &o, err);
}

/* _resize(shape, flags) */
PyObject *zx_array_resize(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    PyObject *shape;
    int32_t n;

    if (!PyArg_ParseTuple(args, "OI", &shape, &c.what))
        return NULL;
    n = zx_lengths(shape, c.shape);
    if (n < 0 || zx_writable(self->store))
        return NULL;
    if (n != self->ndim) {
        PyErr_Format(PyExc_ValueError, "%d lengths for %d dimensions", (int)n,
                     (int)self->ndim);
        return NULL;
    }
    if (zx_call(self->st, resize_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}

static zarr_status refresh_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    return zarr_array_refresh(c->a, &c->changed, cancel, err);
}

/* refresh() -> whether the metadata differs */
PyObject *zx_array_refresh(PyObject *o, PyObject *unused)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    (void)unused;
    if (zx_call(self->st, refresh_work, &c, self->a))
        return NULL;
    return PyBool_FromLong(c.changed);
}

static zarr_status recheck_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    return zarr_array_recheck(c->a, cancel, err);
}

/* _recheck(): raises NotFoundError or ConflictError if the stored array is another one */
PyObject *zx_array_recheck(PyObject *o, PyObject *unused)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    (void)unused;
    if (zx_call(self->st, recheck_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- what is stored --------------------------------------------------------- */

static zarr_status stored_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct change *c = arg;

    o.cancel = cancel;
    return zarr_array_count_stored(c->a, &c->n, c->what ? &c->bytes : NULL, &o, err);
}

/* _stored(with_bytes) -> (objects, bytes) */
PyObject *zx_array_count_stored(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    int with_bytes;

    if (!PyArg_ParseTuple(args, "p", &with_bytes))
        return NULL;
    c.what = (uint32_t)with_bytes;
    if (zx_call(self->st, stored_work, &c, self->a))
        return NULL;
    return Py_BuildValue("(KK)", (unsigned long long)c.n, (unsigned long long)c.bytes);
}

static int chunk_row(void *user, const zarr_block_info *chunk)
{
    uint64_t numbers[ZARR_MAX_RANK + 2] = {chunk->offset, chunk->bytes};
    const uint32_t n = (uint32_t)chunk->ndim;

    memcpy(numbers + 2, chunk->coordinates, n * sizeof *numbers);
    return zx_rows_add(user, n + 2, numbers, 1, &chunk->key);
}

static zarr_status chunks_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    struct change *c = arg;

    o.cancel = cancel;
    if (c->has_place)
        return zarr_array_block_list_chunks(c->a, c->shape, chunk_row, &c->rows, &o, err);
    return zarr_array_list_blocks(c->a, c->what, chunk_row, &c->rows, &o, err);
}

/* Grid coordinates of a block. -1: an exception. */
static int block_place(const zx_array *a, PyObject *coordinates, uint64_t *out)
{
    const int32_t n = zx_lengths(coordinates, out);

    if (n >= 0 && n != a->ndim)
        PyErr_Format(PyExc_ValueError, "%d coordinates for %d dimensions", (int)n,
                     (int)a->ndim);
    return n == a->ndim ? 0 : -1;
}

/* _chunks(what, coordinates=None) -> [(key, offset, bytes, coordinates...)]: with
 * coordinates the chunks of one block */
PyObject *zx_array_chunks(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};
    PyObject *place = Py_None;

    if (!PyArg_ParseTuple(args, "I|O", &c.what, &place))
        return NULL;
    c.has_place = place != Py_None;
    if (c.has_place && block_place(self, place, c.shape))
        return NULL;
    if (zx_call(self->st, chunks_work, &c, self->a)) {
        zx_rows_free(&c.rows);
        return NULL;
    }
    return zx_rows_list(&c.rows);
}

/* ---- encoded blocks --------------------------------------------------------- */

enum {
    FIRST_BYTES = 64 << 10, /* room for a block, before its size is known */
    MOST_TRIES = 8          /* other processes may replace it by a longer one */
};

struct encoded {
    zarr_array *a;
    uint64_t place[ZARR_MAX_RANK];
    char *data;            /* read: malloc() */
    uint64_t room, bytes;  /* read: of `data`, and how many were read */
    Py_buffer view;        /* write */
    zarr_store *flushed;   /* after the change; or NULL */
    bool is_write, erases; /* neither: read */
};

static zarr_status grow(struct encoded *b, uint64_t bytes, zarr_error *err)
{
    char *data = bytes > PY_SSIZE_T_MAX ? NULL : realloc(b->data, (size_t)bytes);

    if (!data) {
        PyOS_snprintf(err->message, sizeof err->message,
                      "no memory for a block of %llu bytes", (unsigned long long)bytes);
        return err->code = ZARR_ERR_NO_MEMORY;
    }
    b->data = data;
    b->room = bytes;
    return ZARR_OK;
}

static zarr_status encoded_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct encoded *b = arg;
    zarr_status st = ZARR_OK;

    if (b->is_write || b->erases) {
        st = b->erases
                 ? zarr_array_block_erase(b->a, b->place, cancel, err)
                 : zarr_array_block_write_encoded(b->a, b->place, b->view.buf,
                                                  (uint64_t)b->view.len, cancel, err);
        return st == ZARR_OK && b->flushed ? zarr_store_flush(b->flushed, cancel, err)
                                           : st;
    }
    b->bytes = FIRST_BYTES;
    for (int i = 0; i < MOST_TRIES; i++) {
        st = grow(b, b->bytes, err);
        if (st)
            return st;
        st = zarr_array_block_read_encoded(b->a, b->place, b->data, &b->bytes, cancel,
                                           err);
        if (st != ZARR_ERR_LIMIT || b->bytes <= b->room)
            break;
    }
    return st;
}

/* _block_key(coordinates) -> the key of a block */
PyObject *zx_array_block_key(PyObject *o, PyObject *coordinates)
{
    zx_array *self = (zx_array *)o;
    uint64_t place[ZARR_MAX_RANK];

    return block_place(self, coordinates, place) ? NULL : zx_place_key(self, place);
}

/* _block_read(coordinates) -> encoded bytes */
PyObject *zx_array_block_read(PyObject *o, PyObject *coordinates)
{
    zx_array *self = (zx_array *)o;
    struct encoded b = {.a = self->a};
    PyObject *out = NULL;

    if (block_place(self, coordinates, b.place))
        return NULL;
    if (zx_call(self->st, encoded_work, &b, self->a) == 0)
        out = PyBytes_FromStringAndSize(b.data, (Py_ssize_t)b.bytes);
    free(b.data);
    return out;
}

/* _block_write(coordinates, data or None): None erases the block */
PyObject *zx_array_block_write(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct encoded b = {.a = self->a};
    PyObject *coordinates, *data;
    int rc;

    if (!PyArg_ParseTuple(args, "OO", &coordinates, &data) || zx_writable(self->store) ||
        block_place(self, coordinates, b.place))
        return NULL;
    b.erases = data == Py_None;
    b.is_write = !b.erases;
    b.flushed = self->store->flushes_each ? self->store->s : NULL;
    if (b.is_write && PyObject_GetBuffer(data, &b.view, PyBUF_SIMPLE))
        return NULL;
    rc = zx_call(self->st, encoded_work, &b, self->a);
    if (b.is_write)
        PyBuffer_Release(&b.view);
    if (rc)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- claims ----------------------------------------------------------------- */

static zarr_status release_work(void *arg, zarr_cancel *cancel, zarr_error *err)
{
    struct change *c = arg;

    return zarr_array_release_claim(c->a, c->is_complete, cancel, err);
}

/* _release_claim(is_complete): lets others replace an array that was created with a claim
 */
PyObject *zx_array_release_claim(PyObject *o, PyObject *args)
{
    zx_array *self = (zx_array *)o;
    struct change c = {.a = self->a};

    if (!PyArg_ParseTuple(args, "p", &c.is_complete) ||
        zx_call(self->st, release_work, &c, self->a))
        return NULL;
    Py_RETURN_NONE;
}
