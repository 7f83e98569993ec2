/*
 * unit/ctx/test_registration.c - one thread registers while others look up and list. They
 * see no incomplete entry, and results stay valid. In a sealed context no look-up waits
 * for the register lock. The thread sanitizer checks the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/ctx.h"
#include "unit/ctx/ctx_test.h"
#include <unistd.h>

enum {
    N_TYPES = 200,
    N_FINDERS = 2,
    NAME_BYTES = 24
};

struct shared {
    zarr_context *ctx;
    atomic_int n_types;      /* number registered so far */
    atomic_int n_threads_in; /* number of threads that completed a round */
    atomic_int wrong;
    atomic_bool stop;
};

static zarr_status own_type(zarr_dtype_info *info, const zarr_dtype_host *host,
                            const char *name, const char *json, zarr_error *err)
{
    const zarr_dtype *of = NULL;

    (void)name;
    (void)json;
    info->item_bytes = 3;
    info->kind = ZARR_KIND_OTHER;
    return host->find(&of, host, "r24", err); /* the lock is already held */
}

/* ---- the names, which the registries do not copy ---------------------------- */

static char type_names[N_TYPES][NAME_BYTES], other_names[N_TYPES][NAME_BYTES];

static void make_names(void)
{
    for (int i = 0; i < N_TYPES; i++) {
        snprintf(type_names[i], NAME_BYTES, "acme.type%d", i);
        snprintf(other_names[i], NAME_BYTES, "acme.other%d", i);
    }
}

static void register_one(zarr_context *ctx, int i)
{
    zarr_dtype_vtable type = *zr_dtype_core[0];
    zarr_codec_spec_vtable codec = {.struct_size = sizeof codec,
                                    .name = other_names[i],
                                    .kind = ZARR_CODEC_BYTES_BYTES};
    zarr_grid_vtable grid = zr_grid_rectilinear;
    zarr_key_encoding_vtable keys = zr_key_v2;
    zarr_pipeline_vtable pipeline = zr_pipeline_serial;
    zarr_store_vtable store = {.struct_size = sizeof store,
                               .name = other_names[i],
                               .open = own_open,
                               .caps = own_caps,
                               .run = own_run};

    type.name = type_names[i];
    type.parse = own_type;
    type.v2 = type.numpy = NULL;
    type.aliases = NULL;
    grid.name = keys.name = pipeline.name = other_names[i];
    assert_ok(zarr_context_register_dtype(ctx, &type, "tests", &terr));
    assert_ok(zarr_context_register_codec_spec(ctx, &codec, "tests", &terr));
    assert_ok(zarr_context_register_grid(ctx, &grid, "tests", &terr));
    assert_ok(zarr_context_register_key_encoding(ctx, &keys, "tests", &terr));
    assert_ok(zarr_context_register_pipeline(ctx, &pipeline, NULL, "tests", &terr));
    assert_ok(zarr_context_register_store(ctx, &store, "tests", &terr));
}

/* ---- the other threads ----------------------------------------------------- */

/* Uses every kind of look-up, and looks up the newest entries. */
static bool find_all(zarr_context *ctx, int n_types)
{
    const zarr_dtype *a = NULL, *b = NULL, *c = NULL, *member = NULL, *last = NULL;
    const char *name = n_types > 0 ? type_names[n_types - 1] : "int8";
    char raw[NAME_BYTES];
    uint32_t order;
    zarr_error err;

    snprintf(raw, sizeof raw, "r%d", 8 * (1 + n_types));
    return zarr_dtype_find(&a, ctx, "<f4", &err) == ZARR_OK &&
           zarr_dtype_find_order(&b, ctx, "float32", &order, &err) == ZARR_OK &&
           zarr_dtype_from_dlpack(&c, ctx, ZARR_DLPACK_FLOAT, 32, 1, &err) == ZARR_OK &&
           zarr_dtype_find(&member, ctx, raw, &err) == ZARR_OK &&
           zarr_dtype_find(&last, ctx, name, &err) == ZARR_OK && a == b && b == c &&
           zr_streq(zarr_dtype_name(member), raw) &&
           zr_streq(zarr_dtype_name(last), name) &&
           zarr_dtype_find(&a, ctx, "acme.nobody", &err) == ZARR_ERR_UNSUPPORTED;
}

static void *find_all_the_time(void *arg)
{
    struct shared *s = arg;
    bool counted = false;

    while (!atomic_load(&s->stop)) {
        if (!find_all(s->ctx, atomic_load(&s->n_types)))
            atomic_fetch_add(&s->wrong, 1);
        if (!counted)
            atomic_fetch_add(&s->n_threads_in, 1);
        counted = true;
    }
    return NULL;
}

struct seen {
    struct shared *s;
    int n_types, n_stores;
};

/* Calls the library from a callback, which no lock may prevent. */
static int see_row(void *user, const zarr_registry_item *item)
{
    struct seen *seen = user;
    const zarr_dtype *found = NULL;
    zarr_error err;

    if (!zr_streq(item->origin, "tests"))
        return 0;
    if (item->registry == ZARR_REGISTRY_DTYPE) {
        if (!zr_streq(item->name, type_names[seen->n_types++]) ||
            !zr_streq(item->detail, "3 bytes") ||
            zarr_dtype_find(&found, seen->s->ctx, item->name, &err) != ZARR_OK)
            atomic_fetch_add(&seen->s->wrong, 1);
    } else if (item->registry == ZARR_REGISTRY_STORE) {
        if (!zr_streq(item->name, other_names[seen->n_stores++]))
            atomic_fetch_add(&seen->s->wrong, 1);
    }
    return 0;
}

static void *list_all_the_time(void *arg)
{
    struct shared *s = arg;
    zarr_error err;
    bool counted = false;

    while (!atomic_load(&s->stop)) {
        struct seen seen = {.s = s};
        const int before = atomic_load(&s->n_types);

        if (zarr_context_list(s->ctx, 0, see_row, &seen, &err) != ZARR_OK ||
            seen.n_types < before || seen.n_stores < before)
            atomic_fetch_add(&s->wrong, 1);
        if (!counted)
            atomic_fetch_add(&s->n_threads_in, 1);
        counted = true;
    }
    return NULL;
}

static void test_beside_each_other(void **state)
{
    struct shared s = {0};
    const zarr_dtype *before[N_TYPES] = {0}, *member = NULL, *again = NULL;
    zr_thread t[N_FINDERS + 1];
    zarr_store *store = NULL;

    (void)state;
    make_names();
    assert_ok(zarr_context_create(&s.ctx, NULL, &terr));
    assert_ok(zarr_dtype_find(&member, s.ctx, "r72", &terr));
    for (int i = 0; i <= N_FINDERS; i++)
        assert_int_equal(zr_thread_start(&t[i],
                                         i == 0 ? list_all_the_time : find_all_the_time,
                                         &s, NULL),
                         ZARR_OK);
    while (atomic_load(&s.n_threads_in) <= N_FINDERS)
        usleep(100);
    for (int i = 0; i < N_TYPES; i++) {
        register_one(s.ctx, i);
        atomic_store(&s.n_types, i + 1);
        assert_ok(zarr_dtype_find(&before[i], s.ctx, type_names[i], &terr));
    }
    /* This call seals the context. */
    assert_ok(zarr_store_open(&store, s.ctx, "memory:", NULL, &terr));
    usleep(10000);
    atomic_store(&s.stop, true);
    for (int i = 0; i <= N_FINDERS; i++)
        zr_thread_join(&t[i]);
    assert_int_equal(atomic_load(&s.wrong), 0);
    for (int i = 0; i < N_TYPES; i++) { /* the type handed out first is still the same */
        assert_ok(zarr_dtype_find(&again, s.ctx, type_names[i], &terr));
        assert_ptr_equal(again, before[i]);
        assert_string_equal(zarr_dtype_name(again), type_names[i]);
    }
    assert_ok(zarr_dtype_find(&again, s.ctx, "r72", &terr));
    assert_ptr_equal(again, member);
    zarr_store_free(store);
    zarr_context_free(s.ctx);
}

/* ---- the lock itself -------------------------------------------------------- */

static void *find_once(void *arg)
{
    struct shared *s = arg;

    atomic_store(&s->wrong, find_all(s->ctx, 0) ? 0 : 1);
    atomic_store(&s->stop, true);
    return NULL;
}

static void *list_once(void *arg)
{
    struct shared *s = arg;
    struct seen seen = {.s = s};
    zarr_error err;

    if (zarr_context_list(s->ctx, 0, see_row, &seen, &err) != ZARR_OK)
        atomic_store(&s->wrong, 1);
    atomic_store(&s->stop, true);
    return NULL;
}

/* A look-up waits while another thread registers. In a sealed context it does not
 * wait. */
static void look_while_locked(void *(*look)(void *), bool sealed)
{
    struct shared s = {0};
    zarr_store *store = NULL;
    zr_thread t;

    assert_ok(zarr_context_create(&s.ctx, NULL, &terr));
    if (sealed)
        assert_ok(zarr_store_open(&store, s.ctx, "memory:", NULL, &terr));
    zr_mutex_lock(&s.ctx->locked.mutex);
    assert_int_equal(zr_thread_start(&t, look, &s, NULL), ZARR_OK);
    usleep(50000); /* enough time to finish if no lock held it back */
    if (sealed)
        zr_thread_join(&t); /* otherwise it hangs */
    else
        assert_false(atomic_load(&s.stop));
    zr_mutex_unlock(&s.ctx->locked.mutex);
    if (!sealed)
        zr_thread_join(&t);
    assert_true(atomic_load(&s.stop));
    assert_int_equal(atomic_load(&s.wrong), 0);
    zarr_store_free(store);
    zarr_context_free(s.ctx);
}

static void test_waits(void **state)
{
    (void)state;
    look_while_locked(find_once, false);
    look_while_locked(list_once, false);
}

static void test_waits_no_more(void **state)
{
    (void)state;
    look_while_locked(find_once, true);
    look_while_locked(list_once, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside_each_other),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_waits_no_more),
    };

    alarm(300); /* a deadlock fails the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
