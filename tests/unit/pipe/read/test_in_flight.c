/*
 * unit/pipe/read/test_in_flight.c - how many operations a store gets at once. A store
 * without an event loop says so by `parallel`: the number does not depend on the threads
 * of the request, nor of the context.
 */
#include "unit/pipe/pipe_test.h"

#include <time.h>

enum {
    N = 48,
    CHUNK = 8
};
static const uint64_t shape[2] = {N, N}, chunk[2] = {CHUNK, CHUNK}, zero[2];
static int32_t data[N * N], got[N * N];

/* A store whose operations on chunks wait until `parallel` of them are there. Those that
 * are too many have a while to come. */
struct slow {
    zarr_store *below;
    uint32_t parallel;
    atomic_int now, most, n;
};

static void slow_caps(void *self, zarr_store_caps *out)
{
    const struct slow *s = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT;
    out->parallel = s->parallel;
}

static void slow_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const bool counts = strstr(op->key, "/c/") != NULL;
    struct slow *s = self;
    int now = 0, most = 0;

    if (counts) {
        now = atomic_fetch_add(&s->now, 1) + 1;
        most = atomic_load(&s->most);
        while (now > most && !atomic_compare_exchange_weak(&s->most, &most, now))
            ;
        atomic_fetch_add(&s->n, 1);
        for (int i = 0; i < 20000 && atomic_load(&s->most) < (int)s->parallel; i++)
            nanosleep(&pause, NULL);
        nanosleep(&pause, NULL);
    }
    zarr_store_run(s->below, op, err);
    if (counts)
        atomic_fetch_sub(&s->now, 1);
}

static zarr_status slow_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    return zarr_store_list(((struct slow *)self)->below, prefix, how, fn, user, NULL,
                           err);
}

static const zarr_store_vtable slow_vtable = {.struct_size = sizeof slow_vtable,
                                              .name = "slow",
                                              .caps = slow_caps,
                                              .run = slow_run,
                                              .list = slow_list};

static int count_in_flight(struct slow *s, zarr_array *a, int32_t *elements, bool write)
{
    const zarr_io_options o = {.struct_size = sizeof o, .max_threads = 1};

    atomic_store(&s->most, 0);
    atomic_store(&s->n, 0);
    assert_ok(pw_box(a, zero, shape, elements, &o, write));
    assert_int_equal(atomic_load(&s->n), N / CHUNK * N / CHUNK);
    return atomic_load(&s->most);
}

static void test_parallel(void **state)
{
    static const uint32_t numbers[] = {1, 3, 12};

    (void)state;
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
    for (size_t i = 0; i < ZR_COUNT(numbers); i++) {
        struct slow slow = {.parallel = numbers[i]};
        zarr_store *s = NULL;
        struct pw w;
        zarr_array *a;

        pw_open(&w, 1, UINT64_C(64) << 20, 0);
        slow.below = w.store;
        assert_ok(zarr_store_open_custom(&s, w.ctx, &slow_vtable, &slow, NULL, &terr));
        a = pw_array(s, "a", "[" BYTES "," GZIP "]", shape, chunk);
        assert_int_equal(count_in_flight(&slow, a, data, true), numbers[i]);
        memset(got, 0, sizeof got);
        assert_int_equal(count_in_flight(&slow, a, got, false), numbers[i]);
        assert_memory_equal(got, data, sizeof data);
        zarr_array_free(a);
        zarr_store_free(s);
        pw_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
