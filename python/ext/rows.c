/* rows.c - rows of listings. The library tells them without the GIL; they become tuples
 * of texts and numbers afterwards. */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

struct zx_row {
    struct zx_row *next;
    uint32_t n_numbers, n_texts;
    uint64_t number[]; /* then the texts, each after a '=' and with its NUL; "" is NULL */
};

int zx_rows_add(struct zx_rows *rows, uint32_t n_numbers, const uint64_t *numbers,
                uint32_t n_texts, const char *const *texts)
{
    size_t bytes = 0;
    struct zx_row *row;
    char *at;

    for (uint32_t i = 0; i < n_texts; i++)
        bytes += texts[i] ? strlen(texts[i]) + 2 : 1;
    row = malloc(sizeof *row + n_numbers * sizeof *numbers + bytes);
    if (!row) {
        rows->is_short = true;
        return 1;
    }
    row->next = NULL;
    row->n_numbers = n_numbers;
    row->n_texts = n_texts;
    memcpy(row->number, numbers, n_numbers * sizeof *numbers);
    at = (char *)(row->number + n_numbers);
    for (uint32_t i = 0; i < n_texts; i++) {
        const size_t n = texts[i] ? strlen(texts[i]) + 1 : 0;

        if (n > 0) {
            *at++ = '=';
            memcpy(at, texts[i], n);
            at += n;
        } else {
            *at++ = '\0';
        }
    }
    *(rows->last ? &rows->last->next : &rows->first) = row;
    rows->last = row;
    return 0;
}

const struct zx_row *zx_row_next(const struct zx_row *row)
{
    return row->next;
}

uint64_t zx_row_number(const struct zx_row *row, uint32_t i)
{
    return row->number[i];
}

const char *zx_row_text(const struct zx_row *row)
{
    const char *at = (const char *)(row->number + row->n_numbers);

    return *at == '\0' ? at : at + 1;
}

/* (texts..., numbers...) */
static PyObject *row_tuple(const struct zx_row *row)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)row->n_texts + row->n_numbers);
    const char *at = (const char *)(row->number + row->n_numbers);
    Py_ssize_t i = 0;

    for (uint32_t t = 0; tuple && t < row->n_texts; t++) {
        const size_t n = strlen(at);
        PyObject *text =
            n == 0 ? Py_NewRef(Py_None)
                   : PyUnicode_DecodeUTF8(at + 1, (Py_ssize_t)n - 1, "surrogateescape");

        at += n + 1;
        if (!text || PyTuple_SetItem(tuple, i++, text))
            Py_CLEAR(tuple);
    }
    for (uint32_t t = 0; tuple && t < row->n_numbers; t++) {
        PyObject *number = PyLong_FromUnsignedLongLong(row->number[t]);

        if (!number || PyTuple_SetItem(tuple, i++, number))
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *zx_rows_list(struct zx_rows *rows)
{
    PyObject *list = rows->is_short ? PyErr_NoMemory() : PyList_New(0);

    for (const struct zx_row *row = rows->first; list && row; row = row->next) {
        PyObject *tuple = row_tuple(row);

        if (!tuple || PyList_Append(list, tuple))
            Py_CLEAR(list);
        Py_XDECREF(tuple);
    }
    zx_rows_free(rows);
    return list;
}

void zx_rows_free(struct zx_rows *rows)
{
    while (rows->first) {
        struct zx_row *next = rows->first->next;

        free(rows->first);
        rows->first = next;
    }
    rows->last = NULL;
}
