/* log.c - lines of the library's log on their way to Python. Any thread of the library
 * pushes a line; the next call of a thread of Python hands it to zarrc/_log.py. The list
 * has no lock, so that it works in the child of a fork. */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_LINES = 4096 /* that wait; further lines are dropped */
};

struct line {
    struct line *next;
    uint32_t level;
    char text[];
};

static _Atomic(struct line *) lines; /* newest first */
static atomic_uint n_lines;

void zx_log_put(void *user, uint32_t level, const char *text)
{
    const size_t n = strlen(text) + 1;
    struct line *l;

    (void)user;
    if (atomic_load(&n_lines) >= MOST_LINES)
        return;
    l = malloc(sizeof *l + n);
    if (!l)
        return;
    l->level = level;
    memcpy(l->text, text, n);
    l->next = atomic_load(&lines);
    while (!atomic_compare_exchange_weak(&lines, &l->next, l))
        ;
    atomic_fetch_add(&n_lines, 1);
}

static struct line *take_oldest_first(void)
{
    struct line *l = atomic_exchange(&lines, NULL), *out = NULL;

    while (l) {
        struct line *next = l->next;

        l->next = out;
        out = l;
        l = next;
        atomic_fetch_sub(&n_lines, 1);
    }
    return out;
}

int zx_log_flush(zx_state *st)
{
    PyObject *type, *value, *traceback;
    struct line *l;
    bool had_error;

    if (!atomic_load_explicit(&lines, memory_order_relaxed) || !st->on_log)
        return 0;
    PyErr_Fetch(&type, &value, &traceback);
    had_error = type != NULL;
    for (l = take_oldest_first(); l;) {
        struct line *next = l->next;
        PyObject *done = NULL;

        if (!PyErr_Occurred())
            done = PyObject_CallFunction(st->on_log, "Is", (unsigned)l->level, l->text);
        Py_XDECREF(done);
        free(l);
        l = next;
    }
    if (!had_error)
        return PyErr_Occurred() ? -1 : 0;
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return 0;
}
