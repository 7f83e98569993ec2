/* errors.c - a zarr_error as an exception. zarrc/errors.py has the classes; this file
 * hands it the facts: node, key, place of the chunk, field, codes. */
#include "ext.h"

#include <string.h>

static PyObject *error_part(const zarr_error *err, uint32_t part)
{
    char text[ZARR_ERROR_MESSAGE_BYTES];
    const size_t n = zarr_error_text(err, part, text, sizeof text);

    if (!n)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
}

/* The place of the block in its grid, by its key. */
static PyObject *find_block(const zarr_error *err, const zarr_array *array)
{
    char key[ZARR_ERROR_MESSAGE_BYTES];
    uint64_t block[ZARR_MAX_RANK];

    if (!array || !zarr_error_text(err, ZARR_ERROR_KEY, key, sizeof key) ||
        zarr_array_block_of_key(array, key, block, NULL) != ZARR_OK)
        Py_RETURN_NONE;
    return zx_shape(zarr_array_ndim(array), block);
}

/* Whether each block of the array is one chunk. */
static int has_no_shards(const zarr_array *array)
{
    uint64_t chunks[ZARR_MAX_RANK], blocks[ZARR_MAX_RANK];

    zarr_array_chunk_counts(array, chunks);
    zarr_array_block_counts(array, blocks);
    return memcmp(chunks, blocks, (size_t)zarr_array_ndim(array) * sizeof *chunks) == 0;
}

static PyObject *find_chunk(const zarr_error *err, const zarr_array *array)
{
    uint64_t chunk[ZARR_MAX_RANK];
    const int32_t n = zarr_error_chunk(err, chunk);

    if (n > 0)
        return zx_shape(n, chunk);
    if (array && has_no_shards(array))
        return find_block(err, array);
    Py_RETURN_NONE;
}

static PyObject *store_url(const zarr_store *store)
{
    const char *url = store ? zarr_store_url(store) : NULL;

    if (!url)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(url); /* a path of the system has any bytes */
}

static PyObject *fail_as(zx_state *st, const zarr_error *err, const zarr_array *array,
                         const zarr_store *store, int is_index)
{
    PyObject *exception;

    if (PyErr_Occurred()) /* an interrupt, which says more */
        return NULL;
    exception = PyObject_CallFunction(
        st->make_error, "is{sNsNsNsNsNsNsNsisIsIsi}", (int)err->code, err->message,
        "store", store_url(store), "node", error_part(err, ZARR_ERROR_PATH), "key",
        error_part(err, ZARR_ERROR_KEY), "block", find_block(err, array), "chunk",
        find_chunk(err, array), "field", error_part(err, ZARR_ERROR_FIELD), "setting",
        error_part(err, ZARR_ERROR_SETTING), "os_code", (int)err->os_code, "os_domain",
        (unsigned)err->os_domain, "operation", (unsigned)err->operation, "is_index",
        is_index);
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *zx_fail(zx_state *st, const zarr_error *err, const zarr_array *array)
{
    return fail_as(st, err, array, array ? zarr_array_store(array) : NULL, 0);
}

PyObject *zx_fail_store(zx_state *st, const zarr_error *err, const zarr_store *store)
{
    return fail_as(st, err, NULL, store, 0);
}

PyObject *zx_fail_index(zx_state *st, const zarr_error *err)
{
    return fail_as(st, err, NULL, NULL, err->code == ZARR_ERR_INVALID);
}

int zx_check(zx_state *st, zarr_status status, const zarr_error *err,
             const zarr_array *array)
{
    if (status)
        zx_fail(st, err, array);
    return zx_log_flush(st) || status ? -1 : 0;
}

PyObject *zx_return_none(zx_state *st, zarr_status status, const zarr_error *err)
{
    if (zx_check(st, status, err, NULL))
        return NULL;
    Py_RETURN_NONE;
}
