/*
 * unit/store/test_fault.c - each allocation fails, alone and with all later ones: the
 * call returns NO_MEMORY or succeeds, leaks nothing (the allocator of the world counts),
 * old values are kept, and later calls succeed.
 */
#include "store_test.h"

struct scene {
    struct world *w;
    zarr_store *s;
};

static zarr_status scene_put(struct scene *x)
{
    zarr_status st = put_text(x->s, "a/v", "value");

    return st == ZARR_OK ? put_text(x->s, "b/c/v", "value") : st;
}

static zarr_status scene_get(struct scene *x)
{
    char to[4];
    zarr_store_op op = get_op("kept", 1, 2, to, sizeof to);
    zarr_status st = zr_store_run_one(x->s, &op, NULL);

    if (st == ZARR_OK && memcmp(to, "ep", 2) != 0)
        return ZARR_ERR_INTERNAL;
    op = get_op("kept", ZARR_STORE_SUFFIX, 2, to, sizeof to);
    return st == ZARR_OK ? zr_store_run_one(x->s, &op, NULL) : st;
}

static zarr_status scene_run(struct scene *x)
{
    char to[8][8];
    zarr_store_op ops[8];
    zarr_error err = {0};

    for (int i = 0; i < 8; i++)
        ops[i] = get_op(i % 2 ? "kept" : "none", i % 3 == 0 ? ZARR_STORE_SUFFIX : 0, 4,
                        to[i], 8);
    return zr_store_run(x->s, ops, 8, &err);
}

static int scene_row(void *user, const zarr_store_item *item)
{
    (void)user;
    (void)item;
    return 0;
}

static zarr_status scene_list(struct scene *x)
{
    zarr_status st = ZARR_OK;

    for (uint32_t how = 0; how < 3 && st == ZARR_OK; how++)
        st = zarr_store_list(x->s, "", how, scene_row, NULL, NULL, NULL);
    return st == ZARR_ERR_UNSUPPORTED ? ZARR_OK : st;
}

static zarr_status scene_lock(struct scene *x)
{
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = "l/v"};
    zarr_status st = zr_store_lock(x->s, "l/v", NULL, &op.lock, NULL);

    if (st != ZARR_OK)
        return st;
    op.mem = zr_mem_of_host("x", 1);
    st = zr_store_run_one(x->s, &op, NULL);
    zr_store_unlock(x->s, op.lock);
    return st;
}

static zarr_status scene_append(struct scene *x)
{
    zarr_store_op op = {.verb = ZARR_STORE_APPEND,
                        .flags = ZARR_STORE_OP_LOCKED,
                        .key = "l/w",
                        .mem = zr_mem_of_host("x", 1)};
    zarr_status st = put_text(x->s, op.key, "");

    if (st != ZARR_OK || !zr_store_can_key(x->s, op.key, ZARR_STORE_CAP_APPEND))
        return st;
    st = zr_store_lock(x->s, op.key, NULL, &op.lock, NULL);
    for (op.offset = 0; st == ZARR_OK && op.offset < 3; op.offset++)
        st = zr_store_run_one(x->s, &op, NULL);
    zr_store_unlock(x->s, op.lock);
    return st;
}

/* A copy becomes a part, which is read and committed. */
static zarr_status scene_parts(struct scene *x)
{
    zarr_store_source from = {.key = "kept"};
    char to[4];
    zarr_store_op op = {.verb = ZARR_STORE_COPY,
                        .flags = ZARR_STORE_OP_IN_PARTS,
                        .key = "a/p",
                        .source = &from,
                        .part = 1};
    zarr_status st = ZARR_OK;

    if (!zr_store_can_key(x->s, op.key, ZARR_STORE_CAP_READ_PARTS))
        return ZARR_OK;
    st = zr_store_begin_parts(x->s, op.key, NULL, NULL, &op.parts, NULL);
    if (st == ZARR_OK)
        st = zr_store_run_one(x->s, &op, NULL);
    op.verb = ZARR_STORE_GET;
    op.length = sizeof to;
    op.mem = zr_mem_of_host(to, sizeof to);
    if (st == ZARR_OK)
        st = zr_store_run_one(x->s, &op, NULL);
    if (st == ZARR_OK && memcmp(to, "kept", sizeof to) != 0)
        st = ZARR_ERR_INTERNAL;
    op.verb = ZARR_STORE_PUT;
    op.mem.bytes = 0;
    if (st == ZARR_OK)
        st = zr_store_run_one(x->s, &op, NULL);
    zr_store_end_parts(x->s, op.key, op.parts);
    return st;
}

static zarr_status scene_erase(struct scene *x)
{
    zarr_status st = zarr_store_erase_prefix(x->s, "b", NULL, NULL);

    return st == ZARR_ERR_UNSUPPORTED ? ZARR_OK : st;
}

static zarr_status scene_open(struct scene *x)
{
    zarr_store_options o = {.struct_size = sizeof o, .flags = ZARR_STORE_CREATE};
    zarr_store *s = NULL;
    char path[128];
    zarr_status st;

    path_in(x->w, path, sizeof path, "sub/dir");
    st = zr_store_open(&s, x->w->registry, &x->w->env, path, &o, NULL);
    zarr_store_free(s);
    if (st == ZARR_OK) {
        st = zr_store_open(&s, x->w->registry, &x->w->env, "memory:", NULL, NULL);
        if (st == ZARR_OK)
            zarr_store_free(s);
    }
    return st;
}

static zarr_status scene_open_plain(struct scene *x)
{
    zarr_store *s = NULL;
    zarr_error err = {0};
    zarr_status st = open_plain(&s, x->w, ZARR_STORE_CAP_WRITE, &err);

    if (st == ZARR_OK)
        zarr_store_free(s);
    return st;
}

static zarr_status scene_register(struct scene *x)
{
    struct zr_store_registry *r = NULL;
    zarr_status st = zr_store_registry_create(&r, &x->w->alloc, NULL);

    if (st == ZARR_OK)
        st = zr_store_registry_add_core(r, NULL);
    zr_store_registry_free(r);
    return st;
}

static const struct {
    zarr_status (*run)(struct scene *x);
    bool is_read;
} scenes[] = {
    {scene_put, false},       {scene_get, true},      {scene_run, true},
    {scene_list, true},       {scene_lock, false},    {scene_append, false},
    {scene_parts, false},     {scene_erase, false},   {scene_open, true},
    {scene_open_plain, true}, {scene_register, true},
};

static void run_scene(struct world *w, enum sort sort, size_t which)
{
    struct scene x = {w, open_sort(w, sort)};

    assert_status(put_text(x.s, "kept", "kept"), ZARR_OK);
    for (int forever = 0; forever < 2; forever++) {
        for (int64_t n = 1;; n++) {
            int64_t blocks = w->n_blocks;
            int fds = count_open_fds();
            zarr_status st;

            w->forever = forever;
            atomic_store(&w->fail_at, n);
            st = scenes[which].run(&x);
            if (atomic_exchange(&w->fail_at, 0) > 1) {
                assert_status(st, ZARR_OK);
                break; /* fewer than n allocations: done */
            }
            if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
                fail_msg("scene %zu, allocation %d: %s", which, (int)n,
                         zarr_status_text(st));
            if (scenes[which].is_read && w->n_blocks != blocks)
                fail_msg("scene %zu, allocation %d: leak", which, (int)n);
            assert_int_equal(count_open_fds(), fds);
            assert_string_equal(get_text(x.s, "kept"), "kept");
            if (n > 500)
                fail_msg("scene %zu never ends", which);
        }
    }
    zarr_store_free(x.s);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    for (enum sort sort = 0; sort < N_SORTS; sort++) {
        for (size_t i = 0; i < ZR_COUNT(scenes); i++) {
            struct world w;

            world_init(&w);
            run_scene(&w, sort, i);
            world_free(&w);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails)};

    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
