/*
 * unit/store/test_lock_unlocked.c - writers that do not take the lock of a key, beside
 * one that holds it: the store makes them wait, or the library takes the lock for them.
 */
#include "store_test.h"

#include <unistd.h>

/* Writers that do not use the lock, on stores with neither locks nor versions: they must
 * not write between the read and the write of a lock holder. */
struct stranger {
    zarr_store *s;
    uint32_t verb;
    uint64_t n; /* operations at once: submitted together if the store can */
    zarr_status st;
    atomic_bool ended;
};

static void *write_unlocked(void *arg)
{
    struct stranger *x = arg;
    char text[] = "theirs";
    zarr_store_op op[2] = {{.verb = x->verb, .key = "a/v"},
                           {.verb = ZARR_STORE_PUT, .key = "a/other"}};

    for (int i = 0; i < 2; i++)
        if (op[i].verb == ZARR_STORE_PUT)
            op[i].mem = zr_mem_of_host(text, strlen(text));
    x->st = zr_store_run(x->s, op, x->n, NULL);
    atomic_store(&x->ended, true);
    return NULL;
}

static void one_stranger(zarr_store *s, uint32_t verb, uint64_t n)
{
    struct stranger x = {.s = s, .verb = verb, .n = n};
    char mine[] = "mine";
    zarr_store_op put = {.verb = ZARR_STORE_PUT,
                         .flags = ZARR_STORE_OP_LOCKED,
                         .key = "a/v",
                         .mem = zr_mem_of_host(mine, strlen(mine))};
    zr_thread thread;
    void *lock = NULL;

    assert_status(put_text(s, "a/v", "old"), ZARR_OK);
    assert_status(zr_store_lock(s, "a/v", NULL, &lock, NULL), ZARR_OK);
    put.lock = lock;
    assert_status(zr_thread_start(&thread, write_unlocked, &x, NULL), ZARR_OK);
    usleep(30000);
    assert_false(atomic_load(&x.ended));
    assert_string_equal(get_text(s, "a/v"), "old");
    assert_status(zr_store_run_one(s, &put, NULL), ZARR_OK);
    assert_string_equal(get_text(s, "a/v"), "mine");
    zr_store_unlock(s, lock);
    zr_thread_join(&thread);
    assert_status(x.st, ZARR_OK);
    if (verb == ZARR_STORE_PUT)
        assert_string_equal(get_text(s, "a/v"), "theirs");
    else
        assert_null(get_text(s, "a/v"));
}

static void unlocked_writers_wait(void **state)
{
    const uint32_t caps = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_WRITE;

    (void)state;
    for (int sort = 0; sort < 3; sort++)
        for (int k = 0; k < 4; k++) {
            struct world w;
            zarr_store *s = NULL;

            world_init(&w);
            if (sort == 0)
                s = open_sort(&w, SORT_LOCAL_NO_LOCKS);
            else if (sort == 1)
                assert_status(open_plain(&s, &w, caps, NULL), ZARR_OK);
            else
                assert_status(open_async(&s, &w, caps, NULL), ZARR_OK);
            one_stranger(s, k % 2 ? ZARR_STORE_ERASE : ZARR_STORE_PUT, k < 2 ? 1 : 2);
            zarr_store_free(s);
            world_free(&w);
        }
}

/* A store of an application that keeps locks, and leaves it to the library that all
 * writes take them. One lock is for
 * all keys, which serves because no test here nests two. */
struct advisory {
    zarr_store *below;
    zr_mutex mutex;
    uint32_t caps;
    atomic_int n_locks, n_held, n_bare, n_wrong;
    zarr_status refuses; /* what lock() returns; OK: it locks */
};

static void advisory_caps(void *self, zarr_store_caps *out)
{
    const struct advisory *a = self;

    out->flags = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_LOCK | a->caps;
}

static zarr_status advisory_lock(void *self, const char *key, const zarr_cancel *cancel,
                                 void **lock, zarr_error *err)
{
    struct advisory *a = self;

    ZR_UNUSED(cancel);
    if (a->refuses != ZARR_OK) {
        *lock = a; /* means nothing */
        return zr_fail(err, a->refuses, "%s: no lock for you", key);
    }
    zr_mutex_lock(&a->mutex);
    atomic_fetch_add(&a->n_locks, 1);
    atomic_fetch_add(&a->n_held, 1);
    *lock = a;
    return ZARR_OK;
}

static void advisory_unlock(void *self, void *lock)
{
    struct advisory *a = self;

    atomic_fetch_add(&a->n_wrong, lock != a);
    atomic_fetch_sub(&a->n_held, 1);
    zr_mutex_unlock(&a->mutex);
}

/* It keeps nothing of the operation as it was, as a store may. */
static void advisory_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct advisory *a = self;

    if (op->verb != ZARR_STORE_GET) {
        const bool locked = (op->flags & ZARR_STORE_OP_LOCKED) != 0;

        atomic_fetch_add(&a->n_bare, !locked);
        atomic_fetch_add(&a->n_wrong,
                         locked && (op->lock != a || atomic_load(&a->n_held) != 1));
    }
    op->flags &= ~(uint32_t)ZARR_STORE_OP_LOCKED;
    op->lock = NULL;
    (void)zr_store_run_one(a->below, op, err);
}

static void advisory_submit(void *self, zarr_store_op **ops, uint64_t n,
                            void (*done)(void *arg, zarr_store_op *op,
                                         const zarr_error *err),
                            void *arg)
{
    for (uint64_t i = 0; i < n; i++) {
        zarr_error err = {0};

        advisory_run(self, ops[i], &err);
        done(arg, ops[i], &err);
    }
}

static zarr_store *advisory_open(struct world *w, struct advisory *a, bool submits,
                                 uint32_t caps)
{
    const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                  .name = "advisory",
                                  .caps = advisory_caps,
                                  .run = submits ? NULL : advisory_run,
                                  .submit = submits ? advisory_submit : NULL,
                                  .lock = advisory_lock,
                                  .unlock = advisory_unlock};
    zarr_store *s = NULL;

    memset(a, 0, sizeof *a);
    zr_mutex_init(&a->mutex);
    a->caps = caps;
    a->below = open_sort(w, SORT_MEMORY);
    assert_status(zr_store_open_custom(&s, &w->env, &vt, a, NULL, NULL), ZARR_OK);
    return s;
}

static void advisory_close(zarr_store *s, struct advisory *a)
{
    assert_int_equal(atomic_load(&a->n_held), 0);
    assert_int_equal(atomic_load(&a->n_wrong), 0);
    zarr_store_free(s);
    zarr_store_free(a->below);
    zr_mutex_deinit(&a->mutex);
}

static void unlocked_writers_take_advisory_locks(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        const uint64_t n = k & 2 ? 2 : 1;
        struct advisory a;
        struct world w;
        zarr_store *s;

        world_init(&w);
        s = advisory_open(&w, &a, k & 4, 0);
        one_stranger(s, k & 1 ? ZARR_STORE_ERASE : ZARR_STORE_PUT, n);
        assert_int_equal(atomic_load(&a.n_bare), 0);
        /* the first value, the holder, the others */
        assert_int_equal(atomic_load(&a.n_locks), 2 + n);
        advisory_close(s, &a);
        world_free(&w);
    }
}

/* The store makes writes wait itself: the library takes no lock for them. */
static void stores_that_make_writes_wait(void **state)
{
    (void)state;
    for (int submits = 0; submits < 2; submits++) {
        struct advisory a;
        struct world w;
        zarr_store *s;

        world_init(&w);
        s = advisory_open(&w, &a, submits, ZARR_STORE_CAP_WRITES_WAIT);
        assert_status(put_text(s, "a", "1"), ZARR_OK);
        assert_status(zarr_store_erase(s, "a", NULL, NULL), ZARR_OK);
        assert_int_equal(atomic_load(&a.n_bare), 2);
        assert_int_equal(atomic_load(&a.n_locks), 0);
        advisory_close(s, &a);
        world_free(&w);
    }
}

/* No lock, no write. */
static void refused_locks(void **state)
{
    (void)state;
    for (int submits = 0; submits < 2; submits++) {
        struct advisory a;
        struct world w;
        char text[] = "2";
        zarr_store_op op[2] = {{.verb = ZARR_STORE_PUT, .key = "a"},
                               {.verb = ZARR_STORE_ERASE, .key = "a"}};
        zarr_error err = {0};
        zarr_store *s;

        world_init(&w);
        s = advisory_open(&w, &a, submits, 0);
        assert_status(put_text(s, "a", "1"), ZARR_OK);
        a.refuses = ZARR_ERR_IO;
        op[0].mem = zr_mem_of_host(text, strlen(text));
        assert_status(zr_store_run(s, op, 2, &err), ZARR_ERR_IO);
        assert_non_null(strstr(err.message, "no lock for you"));
        for (int i = 0; i < 2; i++) {
            assert_status(op[i].status, ZARR_ERR_IO);
            assert_int_equal(op[i].flags, 0);
            assert_null(op[i].lock);
        }
        assert_string_equal(get_text(s, "a"), "1");
        assert_status(zr_store_lock(s, "a", NULL, &op[0].lock, &err), ZARR_ERR_IO);
        assert_null(op[0].lock); /* nothing to give back */
        advisory_close(s, &a);
        world_free(&w);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlocked_writers_wait),
        cmocka_unit_test(unlocked_writers_take_advisory_locks),
        cmocka_unit_test(stores_that_make_writes_wait),
        cmocka_unit_test(refused_locks),
    };

    return cmocka_run_group_tests_name("lock_unlocked", tests, NULL, NULL);
}
