/*
 * unit/store/test_values.c - zarr_store_stat(), _read(), _write(), _put_new(), _run(),
 * capabilities, and `config`, on all kinds of stores, and with the memory of a device.
 */
#include "store_test.h"

#include "fakedev/fakedev.h"

static const zarr_store_version none;

static bool has_versions(zarr_store *s)
{
    return zr_store_can(s, ZARR_STORE_CAP_VERSIONS);
}

/* ---- every store ---- */

static void stat_one(zarr_store *s)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_error err = {0};

    assert_status(zarr_store_stat(s, "a/k", &v, NULL, &err), ZARR_ERR_NOT_FOUND);
    assert_status(zarr_store_stat(s, "../k", &v, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_stat(s, NULL, &v, NULL, &err), ZARR_ERR_INVALID);
    assert_status(put_text(s, "a/k", "0123456789"), ZARR_OK);
    assert_status(zarr_store_stat(s, "a/k", &v, NULL, &err), ZARR_OK);
    assert_int_equal(v.bytes, 10);
    assert_int_equal(v.has_version, has_versions(s));
    assert_int_equal(zr_store_version_equal(&v.version, &none), !has_versions(s));
    assert_status(zarr_store_stat(s, "a/k", NULL, NULL, &err), ZARR_OK);
}

static void read_one(zarr_store *s, uint64_t offset, uint64_t length, uint64_t room,
                     const char *want)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_error err = {0};
    char to[32];
    const zarr_memory mem = zr_mem_of_host(to, ZR_MIN(length, room));

    memset(to, '#', sizeof to);
    assert_status(zarr_store_read(s, "a/k", offset, &mem, &v, NULL, &err), ZARR_OK);
    assert_int_equal(v.done_bytes, strlen(want));
    assert_memory_equal(to, want, strlen(want));
    assert_int_equal(to[strlen(want)], '#');
    assert_true(v.bytes == 10 || v.bytes == UINT64_MAX);
    assert_int_equal(v.has_version, has_versions(s));
}

static void read_all_ways(zarr_store *s)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_error err = {0};
    char to[4];
    const zarr_memory mem = zr_mem_of_host(to, sizeof to);

    read_one(s, 0, ZARR_STORE_TO_END, 31, "0123456789");
    read_one(s, 3, ZARR_STORE_TO_END, 31, "3456789");
    read_one(s, 3, 2, 31, "34");
    read_one(s, 3, 5, 2, "34");
    read_one(s, ZARR_STORE_SUFFIX, 3, 31, "789");
    read_one(s, ZARR_STORE_SUFFIX, 30, 31, "0123456789");
    read_one(s, 12, 4, 31, "");
    assert_status(zarr_store_read(s, "no", 0, &mem, &v, NULL, &err), ZARR_ERR_NOT_FOUND);
    assert_status(zarr_store_read(s, "a/k", 0, NULL, &v, NULL, &err), ZARR_ERR_INVALID);
}

static void write_by_version(zarr_store *s)
{
    zarr_store_value v = ZARR_STORE_VALUE_INIT, w = ZARR_STORE_VALUE_INIT;
    const zarr_memory mem = zr_mem_of_host((char[]){'n', 'e', 'w'}, 3);
    zarr_error err = {0};

    assert_status(zarr_store_stat(s, "a/k", &v, NULL, &err), ZARR_OK);
    if (!zr_store_can(s, ZARR_STORE_CAP_PUT_IF_VERSION)) {
        v.version.bytes[0] = 1;
        assert_status(zarr_store_write(s, "a/k", &mem, &v.version, NULL, NULL, &err),
                      ZARR_ERR_UNSUPPORTED);
        return;
    }
    assert_status(zarr_store_write(s, "a/k", &mem, &v.version, &w, NULL, &err), ZARR_OK);
    assert_int_equal(w.bytes, 3);
    assert_int_equal(w.has_version, 1);
    assert_false(zr_store_version_equal(&v.version, &w.version));
    assert_status(zarr_store_write(s, "a/k", &mem, &v.version, NULL, NULL, &err),
                  ZARR_ERR_CONFLICT);
    assert_status(zarr_store_write(s, "a/k", &mem, &w.version, NULL, NULL, &err),
                  ZARR_OK);
}

static void put_new_one(zarr_store *s)
{
    const zarr_memory mem = zr_mem_of_host((char[]){'2'}, 1);
    zarr_error err = {0};

    assert_status(zarr_store_put_new(s, "n/k", "1", 1, NULL, &err), ZARR_OK);
    assert_string_equal(get_text(s, "n/k"), "1");
    assert_status(zarr_store_put_new(s, "n/k", "2", 1, NULL, &err), ZARR_ERR_EXISTS);
    assert_int_equal(err.code, ZARR_ERR_EXISTS);
    assert_non_null(strstr(err.message, "n/k: exists already"));
    assert_status(zarr_store_write(s, "n/k", &mem, &none, NULL, NULL, &err),
                  ZARR_ERR_EXISTS);
    assert_string_equal(get_text(s, "n/k"), "1");
    assert_status(zarr_store_erase(s, "n/k", NULL, &err), ZARR_OK);
    assert_status(zarr_store_put_new(s, "n/k", "3", 1, NULL, &err), ZARR_OK);
    assert_string_equal(get_text(s, "n/k"), "3");
    assert_status(zarr_store_put_new(s, "..", "3", 1, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_put_new(s, "n/empty", NULL, 0, NULL, &err), ZARR_OK);
    assert_status(zarr_store_put_new(s, "n/empty", NULL, 0, NULL, &err), ZARR_ERR_EXISTS);
    assert_status(zarr_store_write(s, "n/k", NULL, NULL, NULL, NULL, &err),
                  ZARR_ERR_INVALID);
}

static void lock_one(zarr_store *s)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_LOCKED,
                        .key = "l/k",
                        .length = 1,
                        .mem = zr_mem_of_host((char[]){'x'}, 1)};
    zarr_error err = {0};

    assert_status(zarr_store_lock(&op.lock, s, "l/k", NULL, &err), ZARR_OK);
    assert_status(zarr_store_run(s, &op, &err), ZARR_OK);
    zarr_store_unlock(s, op.lock);
    zarr_store_unlock(s, NULL);
    assert_string_equal(get_text(s, "l/k"), "x");
    op.flags = ZR_STORE_OP_PINNED; /* a flag of ours: `lock` is no pin */
    op.verb = ZARR_STORE_GET;
    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_INVALID);
    op.flags = ZR_STORE_OP_GUARDED; /* so is this: the key has a lock */
    op.verb = ZARR_STORE_ERASE;
    assert_status(zarr_store_run(s, &op, &err), ZARR_ERR_INVALID);
}

/* The local stores of one test have one directory. */
static void erase_all(zarr_store *s)
{
    static const char *const keys[] = {"a/k", "n/k", "n/empty", "l/k"};
    zarr_error err;

    for (size_t i = 0; i < ZR_COUNT(keys); i++)
        assert_status(zarr_store_erase(s, keys[i], NULL, &err), ZARR_OK);
}

static void every_store(void **state)
{
    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(*state, (enum sort)sort);

        stat_one(s);
        read_all_ways(s);
        write_by_version(s);
        put_new_one(s);
        lock_one(s);
        erase_all(s);
        zarr_store_free(s);
    }
}

static void read_only(void **state)
{
    struct world *w = *state;
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_error err = {0};
    zarr_store *s;

    o.flags = ZARR_STORE_READ_ONLY;
    s = open_local(w, &o);
    assert_status(zarr_store_put_new(s, "k", "1", 1, NULL, &err), ZARR_ERR_INVALID);
    zarr_store_free(s);
}

/* ---- one of many makes the key ---- */

enum {
    RACERS = 4,
    RACES = 50
};

struct racer {
    zarr_store *store;
    atomic_int *n_won;
    char name;
    zr_thread thread;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    char key[32];
    zarr_error err;

    for (int i = 0; i < RACES; i++) {
        zarr_status st;

        snprintf(key, sizeof key, "race/%d", i);
        st = zarr_store_put_new(r->store, key, &r->name, 1, NULL, &err);
        if (st == ZARR_OK)
            atomic_fetch_add(r->n_won, 1);
        else if (st != ZARR_ERR_EXISTS)
            fail_msg("%s", err.message);
    }
    return NULL;
}

static void one_wins(void **state)
{
    struct world *w = *state;
    struct racer r[RACERS];
    zarr_error err;

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *s = open_sort(w, (enum sort)sort);
        const bool is_local = strcmp(zr_store_name(s), "local") == 0;
        zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
        atomic_int n_won = 0;

        o.locks = sort == SORT_LOCAL_NO_LOCKS ? ZARR_LOCKS_NONE : ZARR_LOCKS_OS;
        for (int i = 0; i < RACERS; i++) {
            r[i] = (struct racer){NULL, &n_won, (char)('a' + i), {0}};
            r[i].store = is_local ? open_local(w, &o) : zarr_store_ref(s);
            assert_status(zr_thread_start(&r[i].thread, race, &r[i], &err), ZARR_OK);
        }
        for (int i = 0; i < RACERS; i++) {
            zr_thread_join(&r[i].thread);
            zarr_store_free(r[i].store);
        }
        assert_int_equal(n_won, RACES);
        assert_status(zarr_store_erase_prefix(s, is_local ? "race" : "", NULL, &err),
                      is_local || zr_store_can(s, ZARR_STORE_CAP_LIST)
                          ? ZARR_OK
                          : ZARR_ERR_UNSUPPORTED);
        zarr_store_free(s);
    }
}

/* A file that another program makes after the look and before the rename. */
static void foreign_writer(void **state)
{
    struct world *w = *state;
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_IF_VERSION, .key = "f"};
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_error err = {0};

    for (uint32_t locks = ZARR_LOCKS_OS; locks <= ZARR_LOCKS_NONE; locks++) {
        zarr_store *s;

        o.locks = locks;
        s = open_local(w, &o);
        op.mem = zr_mem_of_host((char[]){'a'}, 1);
        op.version = none;
        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        op.version = none;
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
        assert_status(zarr_store_erase(s, "f", NULL, &err), ZARR_OK);
        zarr_store_free(s);
    }
}

/* ---- stores over stores ---- */

static void over_caps(void *self, zarr_store_caps *out)
{
    zarr_store_capabilities(self, out);
}

static void over_run(void *self, zarr_store_op *op, zarr_error *err)
{
    zarr_store_run(self, op, err);
}

static zarr_status over_lock(void *self, const char *key, const zarr_cancel *cancel,
                             void **lock, zarr_error *err)
{
    return zarr_store_lock(lock, self, key, cancel, err);
}

static void over_unlock(void *self, void *lock)
{
    zarr_store_unlock(self, lock);
}

static zarr_status over_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)cancel;
    return zarr_store_list(self, prefix, how, fn, user, NULL, err);
}

static void over_close(void *self)
{
    zarr_store_free(self);
}

static zarr_status over_begin_parts(void *self, const char *key, void *lock,
                                    const zarr_cancel *cancel, void **parts,
                                    zarr_error *err)
{
    return zarr_store_begin_parts(parts, self, key, lock, cancel, err);
}

static void over_end_parts(void *self, const char *key, void *parts)
{
    zarr_store_end_parts(self, key, parts);
}

static const zarr_store_vtable over_vtable = {.struct_size = sizeof over_vtable,
                                              .begin_parts = over_begin_parts,
                                              .end_parts = over_end_parts,
                                              .name = "over",
                                              .caps = over_caps,
                                              .run = over_run,
                                              .list = over_list,
                                              .lock = over_lock,
                                              .unlock = over_unlock,
                                              .close = over_close};

static void over_every_store(void **state)
{
    struct world *w = *state;
    zarr_error err = {0};

    for (int sort = 0; sort < N_SORTS; sort++) {
        zarr_store *inner = open_sort(w, (enum sort)sort), *s = NULL;
        zarr_store_caps a = ZARR_STORE_CAPS_INIT, b = ZARR_STORE_CAPS_INIT;

        zarr_store_capabilities(inner, &a);
        assert_status(zr_store_open_custom(&s, &w->env, &over_vtable, inner, NULL, &err),
                      ZARR_OK);
        zarr_store_capabilities(s, &b);
        assert_string_equal(b.kind, "over");
        assert_string_equal(a.kind, zr_store_name(inner));
        assert_int_equal(a.flags, b.flags);
        assert_int_equal(a.n_device_types, b.n_device_types);
        assert_int_equal(a.parallel, b.parallel);
        stat_one(s);
        read_all_ways(s);
        write_by_version(s);
        put_new_one(s);
        lock_one(s);
        erase_all(s);
        zarr_store_free(s);
    }
}

/* The bytes of a device reach the innermost store without a copy of a store above it. */
static void device_memory(void **state)
{
    struct world *w = *state;
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    static const enum sort sorts[] = {SORT_MEMORY, SORT_LOCAL, SORT_COMPOSITE};
    void *dev = zarr_fakedev_create();
    zarr_store *inner = NULL, *s = NULL;
    zarr_memory mem = {0}, part;
    zarr_error err = {0};
    char text[5] = "";

    assert_status(
        zr_memory_register(&w->memory, zarr_fakedev_vtable(), dev, "test", &err),
        ZARR_OK);
    assert_status(zarr_fakedev_vtable()->alloc(dev, 0, 4, &mem, &err), ZARR_OK);
    for (size_t i = 0; i < ZR_COUNT(sorts); i++) {
        inner = open_sort(w, sorts[i]);
        assert_status(zr_store_open_custom(&s, &w->env, &over_vtable, inner, NULL, &err),
                      ZARR_OK);
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, "abcd", 4), 0);
        assert_status(zarr_store_write(s, "k", &mem, NULL, &v, NULL, &err), ZARR_OK);
        assert_int_equal(v.down_bytes, 4);
        assert_int_equal(v.up_bytes, 0);
        assert_string_equal(get_text(s, "k"), "abcd");
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, "----", 4), 0);
        part = mem;
        part.bytes = 2;
        assert_status(zarr_store_read(s, "k", ZARR_STORE_SUFFIX, &part, &v, NULL, &err),
                      ZARR_OK);
        assert_int_equal(v.done_bytes, 2);
        assert_int_equal(v.up_bytes, 2);
        assert_int_equal(v.down_bytes, 0);
        assert_int_equal(zarr_fakedev_peek(mem.handle, 0, text, 4), 0);
        assert_string_equal(text, "cd--");
        zarr_store_free(s);
    }
    zarr_fakedev_vtable()->free(dev, &mem);
}

/* ---- config ---- */

static char got_config[64];

static void config_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    (void)out;
}

static zarr_status config_open(void **self, zarr_context *ctx, const char *url,
                               const zarr_store_options *opts, const zarr_cancel *cancel,
                               zarr_error *err)
{
    (void)cancel;
    (void)self;
    (void)ctx;
    (void)url;
    (void)err;
    snprintf(got_config, sizeof got_config, "%s", opts->config ? opts->config : "NULL");
    return ZARR_OK;
}

static void config_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)err;
    op->status = ZARR_ERR_NOT_FOUND;
}

static const zarr_store_vtable config_vtable = {.struct_size = sizeof config_vtable,
                                                .name = "conf",
                                                .open = config_open,
                                                .caps = config_caps,
                                                .run = config_run};

static zarr_status open_config(struct world *w, const char *url, const char *config,
                               zarr_error *err)
{
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_store *s = NULL;
    zarr_status st;

    o.config = config;
    st = zr_store_open(&s, w->registry, &w->env, url, &o, err);
    zarr_store_free(s);
    return st;
}

static void config(void **state)
{
    static const char *const wrong[] = {"", "{", "[]", "1", "{\"a\":1} x", "{\"a\"}"};
    struct world *w = *state;
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    static const char *const wrong_values[] = {
        "{\"locks\": \"SECRET\"}",     "{\"locks\": \"\"}",
        "{\"locks\": \"os|none\"}",    "{\"locks\": 1}",
        "{\"locks\": null}",           "{\"lock_wait_ms\": \"SECRET\"}",
        "{\"lock_wait_ms\": -1}",      "{\"lock_wait_ms\": 4294967296}",
        "{\"durability\": {\"a\": 1}}"};
    zarr_store *s = NULL;
    zarr_error err = {0};

    assert_status(zr_store_register(w->registry, &config_vtable, "test", &err), ZARR_OK);
    assert_status(open_config(w, "conf:x", " {\"headers\": {\"a\": 1}}", &err), ZARR_OK);
    assert_string_equal(got_config, " {\"headers\": {\"a\": 1}}");
    assert_status(open_config(w, "conf:x", NULL, &err), ZARR_OK);
    assert_string_equal(got_config, "NULL");
    for (size_t i = 0; i < ZR_COUNT(wrong); i++) {
        assert_status(open_config(w, "conf:x", wrong[i], &err), ZARR_ERR_INVALID);
        assert_non_null(strstr(err.message, "zarr_store_options.config"));
    }
    assert_status(open_config(w, w->dir, "{}", &err), ZARR_OK);
    assert_status(open_config(w, w->dir, "{\"anon\": true}", &err), ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "stores of kind local have no option \"anon\""));
    assert_non_null(strstr(
        err.message, "its options are durability, lock_wait_ms, locks and symlinks"));
    for (size_t i = 0; i < ZR_COUNT(wrong_values); i++) {
        assert_status(open_config(w, w->dir, wrong_values[i], &err), ZARR_ERR_INVALID);
        assert_null(strstr(err.message, "SECRET"));
    }
    o.config = "{\"durability\": \"each\", \"locks\": \"none\", \"symlinks\": \"deny\", "
               "\"lock_wait_ms\": \"17\"}";
    o.locks = ZARR_LOCKS_OS;
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err), ZARR_OK);
    assert_int_equal(zr_store_options(s).durability, ZARR_DURABILITY_EACH);
    assert_int_equal(zr_store_options(s).locks, ZARR_LOCKS_NONE);
    assert_int_equal(zr_store_options(s).symlinks, ZARR_SYMLINKS_DENY);
    assert_int_equal(zr_store_options(s).lock_wait_ms, 17);
    assert_false(zr_store_can(s, ZARR_STORE_CAP_LOCK));
    zarr_store_free(s);
    o.locks = 0;
    assert_status(open_config(w, "memory:", "{\"size\": 1}", &err), ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "stores of kind memory have no option \"size\""));
    o.config = "{\"x\": 1}";
    assert_status(zr_store_open_custom(&s, &w->env, &config_vtable, NULL, &o, &err),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(err.message, "stores of kind conf have no option \"x\""));
}

static void capabilities(void **state)
{
    struct world *w = *state;
    zarr_store_caps c = {.struct_size = offsetof(zarr_store_caps, kind), .kind = "kept"};
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_store *s = open_sort(w, SORT_MEMORY);

    zarr_store_capabilities(s, &c);
    assert_string_equal(c.kind, "kept"); /* an older caller's struct is shorter */
    assert_true(c.flags & ZARR_STORE_CAP_PUT_NEW);
    assert_int_equal(c.n_device_types, 1);
    assert_int_equal(c.device_types[0], ZARR_DEVICE_CPU);
    zarr_store_free(s);
    o.flags = ZARR_STORE_READ_ONLY;
    s = open_local(w, &o);
    c.struct_size = sizeof c;
    zarr_store_capabilities(s, &c);
    assert_string_equal(c.kind, "local");
    assert_false(c.flags & ZARR_STORE_CAP_WRITE);
    assert_true(c.flags & ZARR_STORE_CAP_LOCK);
    zarr_store_free(s);
}

/* ---- a store of two parts ---- */

/* Each part decides what its keys have. A lock of a key of one part is no lock of the
 * other part. */
static void parts(void **state)
{
    struct world *w = *state;
    zarr_store *docs = open_sort(w, SORT_LOCAL), *chunks = open_sort(w, SORT_PLAIN), *s;
    const char *const keys[] = {"a/zarr.json", "a/c/0"};
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_error err = {0};

    assert_status(zarr_store_open_composite(&s, docs, chunks, NULL, &err), ZARR_OK);
    for (int i = 0; i < 2; i++) {
        zarr_store_op op = {.verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED};

        assert_status(zarr_store_put_new(s, keys[i], "1", 1, NULL, &err), ZARR_OK);
        assert_status(zarr_store_put_new(s, keys[i], "2", 1, NULL, &err),
                      ZARR_ERR_EXISTS);
        assert_status(zarr_store_stat(s, keys[i], &v, NULL, &err), ZARR_OK);
        assert_int_equal(v.has_version, i == 0);
        assert_int_equal(v.bytes, 1);
        assert_status(zr_store_lock(s, keys[i], NULL, &op.lock, &err), ZARR_OK);
        op.mem = zr_mem_of_host("3", 1);
        op.key = keys[1 - i];
        assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID);
        assert_non_null(strstr(err.message, op.key));
        op.key = keys[i];
        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        zr_store_unlock(s, op.lock);
        assert_string_equal(get_text(s, keys[i]), "3");
    }
    zarr_store_free(s);
    zarr_store_free(docs);
    zarr_store_free(chunks);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_store),    TEST(read_only),        TEST(one_wins),
        TEST(foreign_writer), TEST(over_every_store), TEST(device_memory),
        TEST(config),         TEST(capabilities),     TEST(parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
