/* unit/base/test_registry.c - registries: order, names, owners, failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "unit/json/fail_alloc.h"

struct thing {
    struct zr_registered entry;
    int number;
};

static int closed[8], n_closed;

static void note_closed(struct zr_registered *e)
{
    closed[n_closed++] = ((struct thing *)(void *)e)->number;
}

static zarr_status add(struct zr_registry *r, const char *name, int number,
                       const char *const *aliases, const char *origin, zarr_error *err)
{
    const struct thing t = {.entry = {.name = name, .origin = origin}, .number = number};

    return zr_registry_add(r, &t.entry, sizeof t, aliases, err);
}

static int find_number(const struct zr_registry *r, const char *name)
{
    const struct thing *t = (const void *)zr_registry_find(r, name);

    return t ? t->number : -1;
}

static void names_and_order(void **state)
{
    static const char *const aliases[] = {"uno", "eins", NULL};
    char name[] = "one", origin[] = "me";
    struct zr_registry r;
    const struct zr_registered *first = NULL;

    (void)state;
    n_closed = 0;
    zr_registry_init(&r, "thing", NULL, note_closed);
    assert_null(zr_registry_find(&r, "one"));
    assert_int_equal(add(&r, name, 1, aliases, origin, NULL), ZARR_OK);
    name[0] = origin[0] = 'X'; /* copied */
    first = zr_registry_find(&r, "one");
    for (int i = 2; i < 6; i++)
        assert_int_equal(add(&r, NULL, i, NULL, "you", NULL), ZARR_OK);
    assert_ptr_equal(zr_registry_find(&r, "eins"), first); /* the entry did not move */
    assert_string_equal(first->name, "one");
    assert_string_equal(first->origin, "me");
    assert_int_equal(find_number(&r, "uno"), 1);
    assert_int_equal(r.n, 5);
    assert_null(r.entry[4]->name);
    assert_int_equal(((struct thing *)(void *)r.entry[4])->number, 5);
    zr_registry_deinit(&r);
    assert_int_equal(n_closed, 5);
    for (int i = 0; i < 5; i++) /* newest first */
        assert_int_equal(closed[i], 5 - i);
    assert_int_equal(r.n, 0);
    zr_registry_deinit(&r);
}

/* A refused entry leaves nothing behind and its close() is not called. */
static void refuse_taken(void **state)
{
    static const char *const aliases[] = {"uno", NULL},
                             *const two[] = {"due", "uno", NULL},
                             *const bad[] = {"a b", NULL}, *const own[] = {"three", NULL};
    struct zr_registry r;
    zarr_error err;

    (void)state;
    n_closed = 0;
    zr_registry_init(&r, "thing", NULL, note_closed);
    assert_int_equal(add(&r, "one", 1, aliases, "me", &err), ZARR_OK);
    assert_int_equal(add(&r, "one", 2, NULL, "you", &err), ZARR_ERR_EXISTS);
    assert_string_equal(err.message, "thing \"one\" is registered already, by me");
    assert_int_equal(add(&r, "uno", 2, NULL, "you", &err), ZARR_ERR_EXISTS);
    assert_string_equal(err.message, "thing \"uno\" is registered already, by me");
    assert_int_equal(add(&r, "two", 2, two, "you", &err), ZARR_ERR_EXISTS);
    assert_string_equal(err.message, "thing \"two\": alias \"uno\" is taken, by me");
    assert_int_equal(add(&r, "plain", 4, NULL, "core", &err), ZARR_OK);
    assert_int_equal(add(&r, "plain", 5, NULL, "me", &err), ZARR_ERR_EXISTS);
    assert_string_equal(err.message, "thing \"plain\" is registered already, by core");
    assert_int_equal(find_number(&r, "plain"), 4); /* a core name stays the core's */
    assert_int_equal(add(&r, "", 2, NULL, "you", &err), ZARR_ERR_INVALID);
    assert_int_equal(add(&r, "t o", 2, NULL, "you", &err), ZARR_ERR_INVALID);
    assert_int_equal(add(&r, "two", 2, bad, "you", &err), ZARR_ERR_INVALID);
    assert_int_equal(r.n, 2);
    assert_int_equal(n_closed, 0);
    assert_int_equal(find_number(&r, "two"), -1);
    assert_int_equal(find_number(&r, "due"), -1);
    assert_int_equal(find_number(&r, "uno"), 1);
    assert_int_equal(add(&r, "two", 2, NULL, "you", &err), ZARR_OK);
    assert_int_equal(add(&r, "three", 3, own, "you", &err), ZARR_OK); /* its own name */
    assert_int_equal(find_number(&r, "three"), 3);
    zr_registry_deinit(&r);
}

/* An entry added in two steps is not found before the second step. */
static void two_steps(void **state)
{
    const struct thing t = {.entry = {.name = "one"}, .number = 1};
    struct zr_registered *e = NULL;
    struct zr_registry r;

    (void)state;
    n_closed = 0;
    zr_registry_init(&r, "thing", NULL, note_closed);
    e = zr_registry_make(&r, &t.entry, sizeof t, NULL);
    assert_string_equal(e->origin, "");
    assert_null(zr_registry_find(&r, "one"));
    assert_int_equal(zr_registry_put(&r, e, NULL, NULL), ZARR_OK);
    assert_ptr_equal(zr_registry_find(&r, "one"), e);
    e = zr_registry_make(&r, &t.entry, sizeof t, NULL);
    assert_int_equal(zr_registry_put(&r, e, NULL, NULL), ZARR_ERR_EXISTS);
    zr_registry_drop(&r, e);
    assert_int_equal(n_closed, 1);
    assert_int_equal(find_number(&r, "one"), 1);
    zr_registry_deinit(&r);
}

static zarr_status registry_scenario(struct fail_alloc *f)
{
    static const char *const aliases[] = {"uno", "eins", NULL};
    struct zr_registry r;
    zarr_status st = ZARR_OK;
    int put = 0;

    n_closed = 0;
    zr_registry_init(&r, "thing", &f->alloc, note_closed);
    for (int i = 0; i < 7 && st == ZARR_OK; i++) {
        char name[16];

        snprintf(name, sizeof name, "n%d", i);
        st = add(&r, name, i, i == 3 ? aliases : NULL, "me", NULL);
        put += st == ZARR_OK;
        assert_int_equal(find_number(&r, name), st == ZARR_OK ? i : -1);
    }
    assert_int_equal(r.n, put);
    assert_int_equal(find_number(&r, "eins"), put > 3 ? 3 : -1);
    assert_int_equal(find_number(&r, "uno"), put > 3 ? 3 : -1);
    zr_registry_deinit(&r);
    assert_int_equal(n_closed, put);
    return st;
}

static void failing_memory(void **state)
{
    struct fail_alloc f;
    zarr_status st = ZARR_ERR_NO_MEMORY;

    (void)state;
    for (size_t n = 1; st != ZARR_OK && n < 1000; n++) {
        fail_alloc_init(&f, n, 0);
        st = registry_scenario(&f);
        assert_int_equal(st, f.failed ? ZARR_ERR_NO_MEMORY : ZARR_OK);
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(st, ZARR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_order),
        cmocka_unit_test(refuse_taken),
        cmocka_unit_test(two_steps),
        cmocka_unit_test(failing_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
