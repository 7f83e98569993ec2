/*
 * unit/tree/test_cancel_calls.c - a cancel object ends each call whose operations the
 * store only ends if it is asked to: changes through handles, calls for whole nodes, and
 * calls of a store.
 */
#include "cancel_test.h"
#include "ctx/ctx.h"

#include <time.h>

/* ---- changes through handles ------------------------------------------------------- */

struct handles {
    zarr_store *s;
    zarr_array *array[2]; /* v3, v2 */
    zarr_group *group[2];
};

static void open_handles(struct handles *h, zarr_store *s)
{
    const zarr_group_open_options plain = {.struct_size = sizeof plain,
                                           .consolidated = ZARR_CONSOLIDATED_NEVER};

    h->s = s;
    h->array[0] = open_array(s, "src/a");
    h->array[1] = open_array(s, "old/v");
    assert_ok(zarr_group_open(&h->group[0], s, "src", NULL, &terr));
    assert_ok(zarr_group_open(&h->group[1], s, "old", &plain, &terr));
}

static void free_handles(struct handles *h)
{
    for (int i = 0; i < 2; i++) {
        zarr_array_free(h->array[i]);
        zarr_group_free(h->group[i]);
    }
}

/* Replaces the node that a call before left with its claim given back. */
static zarr_status release_claim(zarr_store *s, bool of_group)
{
    static const uint64_t one[] = {1};
    const zarr_group_spec group = {.struct_size = sizeof group,
                                   .flags = ZARR_GROUP_CLAIM | ZARR_GROUP_OVERWRITE};
    const zarr_array_spec array = {.struct_size = sizeof array,
                                   .flags = ZARR_SPEC_CLAIM | ZARR_SPEC_OVERWRITE,
                                   .ndim = 1,
                                   .shape = one,
                                   .chunk_shape = one,
                                   .data_type = "uint8"};
    zarr_array *a = NULL;
    zarr_group *g = NULL;
    zarr_status st;

    if (of_group)
        assert_ok(zarr_group_create(&g, s, "new/g", &group, NULL, &terr));
    else
        assert_ok(zarr_array_create(&a, s, "new/a", &array, NULL, &terr));
    st = of_group ? zarr_group_release_claim(g, 1, alarm_cancel, &terr)
                  : zarr_array_release_claim(a, 1, alarm_cancel, &terr);
    zarr_array_free(a);
    zarr_group_free(g);
    return st;
}

/* call: set, merge or delete an attribute, or release a claim */
static zarr_status change_node(const struct handles *h, bool of_group, int format,
                               char call)
{
    zarr_array *a = h->array[format == 2];
    zarr_group *g = h->group[format == 2];

    if (call == 's')
        return of_group ? zarr_group_attribute_set(g, "k", "1", alarm_cancel, &terr)
                        : zarr_array_attribute_set(a, "k", "1", alarm_cancel, &terr);
    if (call == 'm')
        return of_group ? zarr_group_attributes_merge(g, "{}", 0, alarm_cancel, &terr)
                        : zarr_array_attributes_merge(a, "{}", 0, alarm_cancel, &terr);
    if (call == 'd')
        return of_group ? zarr_group_attribute_delete(g, "k", alarm_cancel, &terr)
                        : zarr_array_attribute_delete(a, "k", alarm_cancel, &terr);
    return release_claim(h->s, of_group);
}

static void changes_in_flight_end(void **state)
{
    static const struct {
        const char *key;
        uint32_t verb;
        bool of_group;
        int format;
        char call;
    } rows[] = {
        {"src/a/zarr.json", ZARR_STORE_GET, false, 3, 's'},
        {"src/a/zarr.json", ZARR_STORE_PUT, false, 3, 'm'},
        {"src/a/zarr.json", ZARR_STORE_GET, false, 3, 'd'},
        {"old/v/.zattrs", ZARR_STORE_GET, false, 2, 's'},
        {"old/v/.zarray", ZARR_STORE_GET, false, 2, 'm'},
        {"old/v/.zattrs", ZARR_STORE_PUT, false, 2, 'd'},
        {"src/zarr.json", ZARR_STORE_GET, true, 3, 's'},
        {"src/zarr.json", ZARR_STORE_PUT, true, 3, 'm'},
        {"src/zarr.json", ZARR_STORE_GET, true, 3, 'd'},
        {"old/.zattrs", ZARR_STORE_GET, true, 2, 's'},
        {"old/.zgroup", 0, true, 2, 'm'},
        {"old/.zattrs", ZARR_STORE_PUT, true, 2, 'd'},
        {"new/a/.zarrc-job", ZARR_STORE_ERASE, false, 3, 'r'},
        {"new/g/.zarrc-job", ZARR_STORE_ERASE, true, 3, 'r'},
    };
    zarr_store *s = NULL;
    struct handles h;
    struct world w;

    (void)state;
    s = open_hung(&w);
    hung_store.what = "no such key";
    open_handles(&h, s);
    hung_store.signals = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zarr_status st;

        alarm_cancel = fresh_cancel();
        hung_store.what = rows[i].key;
        hung_store.verb = rows[i].verb;
        hung_store.n_cancelled = 0;
        st = change_node(&h, rows[i].of_group, rows[i].format, rows[i].call);
        if (st != ZARR_ERR_CANCELLED || hung_store.n_cancelled == 0)
            fail_msg("row %zu: %s", i, st ? terr.message : "not cancelled");
        hung_store.what = "no such key";
        zarr_cancel_reset(alarm_cancel);
        assert_ok(change_node(&h, rows[i].of_group, rows[i].format, rows[i].call));
    }
    hung_store.verb = 0;
    hung_store.signals = false;
    free_handles(&h);
    zarr_store_free(s);
    world_close(&w);
}

/* ---- calls for whole nodes --------------------------------------------------------- */

static zarr_status call_copy(zarr_store *s)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_SKIP_EQUAL,
                                 .max_threads = 1,
                                 .cancel = alarm_cancel};

    return zarr_node_copy(s, "src", s, "new/dst", &o, &terr);
}

/* The group of the destination differs, and is erased first. */
static zarr_status call_replace(zarr_store *s)
{
    const zarr_copy_options o = {.struct_size = sizeof o,
                                 .flags = ZARR_COPY_SKIP_EQUAL | ZARR_COPY_OVERWRITE,
                                 .max_threads = 1,
                                 .cancel = alarm_cancel};

    return zarr_node_copy(s, "src", s, "two", &o, &terr);
}

static zarr_status call_delete(zarr_store *s)
{
    const zarr_delete_options o = {.struct_size = sizeof o, .cancel = alarm_cancel};
    const zarr_status st = zarr_node_delete_watched(s, "old", &o, &terr);

    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

static zarr_status call_reencode(zarr_store *s)
{
    const zarr_reencode_options o = {
        .struct_size = sizeof o, .flags = ZARR_REENCODE_RESUME, .cancel = alarm_cancel};

    return zarr_node_reencode(s, "src", s, "new/dst", NULL, &o, &terr);
}

static zarr_status call_migrate(zarr_store *s)
{
    const zarr_migrate_options o = {
        .struct_size = sizeof o, .flags = ZARR_MIGRATE_REMOVE, .cancel = alarm_cancel};

    return zarr_node_migrate(s, "old", &o, &terr);
}

static zarr_status call_create(zarr_store *s)
{
    static const uint64_t one[] = {1};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .flags = ZARR_SPEC_CLAIM,
                                  .ndim = 1,
                                  .shape = one,
                                  .chunk_shape = one,
                                  .data_type = "uint8",
                                  .cancel = alarm_cancel};
    const zarr_array_open_options o = {.struct_size = sizeof o, .cancel = alarm_cancel};
    zarr_array *a = NULL;
    const zarr_status st = zarr_array_create(&a, s, "new/dst", &spec, &o, &terr);

    zarr_array_free(a);
    return st;
}

static zarr_status call_verify(zarr_store *s)
{
    const zarr_verify_options o = {
        .struct_size = sizeof o, .max_threads = 1, .cancel = alarm_cancel};

    return zarr_node_verify(s, "old", NULL, &o, &terr);
}

static zarr_status call_diff(zarr_store *s)
{
    const zarr_diff_options o = {.struct_size = sizeof o, .cancel = alarm_cancel};

    return zarr_node_diff(s, "src", s, "two", NULL, &o, &terr);
}

/* Documents and job objects have a z in their names, other keys have none. */
static void every_document_operation_ends(void **state)
{
    static zarr_status (*const calls[])(zarr_store * s) = {
        call_copy,    call_replace, call_delete, call_reencode,
        call_migrate, call_create,  call_verify, call_diff};

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (int skip = 0, hangs = 1; hangs; skip++) {
            zarr_group *g = NULL;
            zarr_store *s = NULL;
            struct world w;
            zarr_status st;

            alarm_cancel = fresh_cancel();
            hung_store.what = "no such key";
            s = open_hung(&w);
            assert_ok(group_create(&g, s, "two", 3, NULL, 0, &terr));
            zarr_group_free(g);
            hung_store.what = "z";
            hung_store.signals = true;
            hung_store.skip = skip;
            hung_store.n_cancelled = hung_store.n_endless = 0;
            st = calls[i](s);
            hangs = hung_store.n_cancelled > 0;
            if (hung_store.n_endless > 0 || st != (hangs ? ZARR_ERR_CANCELLED : ZARR_OK))
                fail_msg("call %zu, operation %d: %s", i, skip, st ? terr.message : "OK");
            hung_store.what = "no such key";
            hung_store.skip = 0;
            zarr_cancel_reset(alarm_cancel);
            if (hangs && calls[i] != call_create)
                assert_ok(calls[i](s));
            zarr_store_free(s);
            world_close(&w);
        }
    hung_store.signals = false;
}

/* ---- calls of a store that never answers ------------------------------------------- */

/* A call that does not pass its object on fails at once. */
static zarr_status wait_for_cancel(const zarr_cancel *cancel, zarr_error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (cancel && !zarr_cancel_is_set(cancel))
        nanosleep(&pause, NULL);
    err->code = cancel ? ZARR_ERR_CANCELLED : ZARR_ERR_IO;
    snprintf(err->message, sizeof err->message, "waited for a cancel object");
    return (zarr_status)err->code;
}

static zarr_status mute_list(void *self, const char *prefix, uint32_t how,
                             zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)self, (void)prefix, (void)how, (void)fn, (void)user;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    (void)self;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_erase_prefix(void *self, const char *prefix,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    (void)self, (void)prefix;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_clean(void *self, const char *prefix, uint64_t min_age_s,
                              uint64_t *n_removed, const zarr_cancel *cancel,
                              zarr_error *err)
{
    (void)self, (void)prefix, (void)min_age_s, (void)n_removed;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_open(void **self, zarr_context *ctx, const char *url,
                             const zarr_store_options *opts, const zarr_cancel *cancel,
                             zarr_error *err)
{
    (void)self, (void)ctx, (void)url, (void)opts;
    return wait_for_cancel(cancel, err);
}

static zarr_status mute_rename(void *self, const char *from, const char *to,
                               const zarr_cancel *cancel, zarr_error *err)
{
    (void)self, (void)from, (void)to;
    zarr_cancel_set(alarm_cancel);
    return wait_for_cancel(cancel, err);
}

/* A move by a rename that the store never answers. The source is complete. */
static void a_rename_ends(void **state)
{
    zarr_copy_options o = ZARR_COPY_OPTIONS_INIT;
    zarr_store_vtable mute = hung_vtable;
    zarr_store *s = NULL, *hangs = NULL;
    struct world w;

    (void)state;
    mute.rename = mute_rename;
    s = open_hung(&w);
    hung_store.what = "no such key";
    assert_ok(zarr_store_open_custom(&hangs, w.ctx, &mute, NULL, NULL, &terr));
    o.cancel = alarm_cancel = fresh_cancel();
    assert_status(zarr_node_move(hangs, "src", hangs, "dst", &o, &terr),
                  ZARR_ERR_CANCELLED);
    assert_says("waited for a cancel object");
    check_elements(&w);
    zarr_store_free(hangs);
    zarr_store_free(s);
    world_close(&w);
}

static int no_row(void *user, const zarr_store_item *item)
{
    (void)user, (void)item;
    return 0;
}

static zarr_status call_store(zarr_store *s, zarr_array *a, int which,
                              const zarr_cancel *c)
{
    static const uint64_t block[2] = {0, 0};
    char text[8] = "";
    const zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .handle = text, .bytes = 8};
    const zarr_store_options opts = {.struct_size = sizeof opts, .cancel = c};
    zarr_store *none = NULL;
    uint64_t n = sizeof text;
    uint32_t kind;
    int32_t format;

    switch (which) {
    case 0:
        return zarr_store_list(s, "", 0, no_row, NULL, c, &terr);
    case 1:
        return zarr_store_flush(s, c, &terr);
    case 2:
        return zarr_store_erase_prefix(s, "src", c, &terr);
    case 3:
        return zarr_node_probe(s, "src", &kind, &format, c, &terr);
    case 4:
        return zarr_store_put(s, "k", text, n, c, &terr);
    case 5:
        return zarr_store_put_new(s, "k", text, n, c, &terr);
    case 6:
        return zarr_store_erase(s, "k", c, &terr);
    case 7:
        return zarr_store_stat(s, "k", NULL, c, &terr);
    case 8:
        return zarr_store_read(s, "k", 0, &mem, NULL, c, &terr);
    case 9:
        return zarr_store_write(s, "k", &mem, NULL, NULL, c, &terr);
    case 10:
        return zarr_array_refresh(a, NULL, c, &terr);
    case 11:
        return zarr_array_recheck(a, c, &terr);
    case 12:
        return zarr_array_block_read_encoded(a, block, text, &n, c, &terr);
    case 13:
        return zarr_array_block_write_encoded(a, block, text, n, c, &terr);
    case 14:
        return zarr_array_block_erase(a, block, c, &terr);
    case 15:
        return zarr_store_get(s, "k", 0, text, &n, c, &terr);
    case 16:
        return zarr_store_clean(s, "src", 0, &n, c, &terr);
    case 17:
        return zarr_store_open(&none, zarr_store_context(s), "hung://x", &opts, &terr);
    default:
        return ZARR_OK;
    }
}

static void calls_of_a_store_end(void **state)
{
    zarr_store_vtable mute = hung_vtable;
    zarr_store *s = NULL, *hangs = NULL;
    zarr_array *a = NULL;
    struct world w;

    (void)state;
    begin_alarms();
    mute.list = mute_list;
    mute.flush = mute_flush;
    mute.erase_prefix = mute_erase_prefix;
    mute.clean = mute_clean;
    mute.open = mute_open;
    s = open_hung(&w);
    assert_ok(zr_store_register(w.ctx->stores, &mute, "test", &terr));
    assert_ok(zarr_store_open_custom(&hangs, w.ctx, &mute, NULL, NULL, &terr));
    hung_store.what = "no such key";
    a = open_array(hangs, "src/a");
    hung_store.what = "";
    for (int which = 0; which < 18; which++) {
        alarm_cancel = fresh_cancel();
        alarm_in_ms(50);
        if (call_store(hangs, a, which, alarm_cancel) != ZARR_ERR_CANCELLED)
            fail_msg("call %d: %s", which, terr.message);
    }
    end_alarms();
    zarr_array_free(a);
    zarr_store_free(hangs);
    zarr_store_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_in_flight_end),
        cmocka_unit_test(every_document_operation_ends),
        cmocka_unit_test(a_rename_ends),
        cmocka_unit_test(calls_of_a_store_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
