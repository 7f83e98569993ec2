/*
 * fault/scenarios_store.c - stores of two, keys that must be new, arrays of a text.
 */
#include "fault.h"

/* Opens an array from its text, and once more with other options. */
static zarr_status open_text(struct world *w, zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_array *a = NULL, *b = NULL, *c = NULL;
    const char *text;
    zarr_status st = zarr_array_open(&a, w->store, "g/v3", NULL, err);

    opts.device_type = ZARR_DEVICE_CPU;
    opts.codec_preference = "zstd=cpu";
    if (st == ZARR_OK) {
        text = zarr_array_metadata(a);
        st = !text ? zarr_array_refresh(a, NULL, NULL, err)
                   : zarr_array_open_document(&b, w->ctx, text, NULL, "g/v3", w->store,
                                              NULL, err);
    }
    if (st == ZARR_OK && b)
        st = zarr_array_with(&c, b, &opts, err);
    zarr_array_free(c);
    zarr_array_free(b);
    zarr_array_free(a);
    return st;
}

/* Reads through a store of two, and takes a text apart. */
static zarr_status composite(struct world *w, zarr_error *err)
{
    zarr_store *chunks = NULL, *both = NULL;
    zarr_location *at = NULL;
    zarr_group *g = NULL;
    zarr_status st = zarr_store_open(&chunks, w->ctx, "memory:", NULL, err);

    if (st == ZARR_OK)
        st = zarr_store_open_composite(&both, w->store, chunks, NULL, err);
    if (st == ZARR_OK)
        st = zarr_group_open(&g, both, "g", NULL, err);
    if (st == ZARR_OK)
        st = zarr_location_parse(&at, w->ctx, "x.zarr:/g[1]", err);
    zarr_location_free(at);
    zarr_group_free(g);
    zarr_store_free(both);
    zarr_store_free(chunks);
    return st;
}

/* Makes a key that does not exist, looks at it, reads and replaces it. */
static zarr_status put_new(struct world *w, zarr_error *err)
{
    char text[3] = {'a', 'b', 'c'};
    const zarr_memory mem = {
        .device_type = ZARR_DEVICE_CPU, .handle = text, .bytes = sizeof text};
    zarr_store_value v = ZARR_STORE_VALUE_INIT;
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_status st = zarr_store_put_new(w->store, "fresh", text, sizeof text, NULL, err);

    if (st == ZARR_OK)
        st = zarr_store_stat(w->store, "fresh", &v, NULL, err);
    if (st == ZARR_OK)
        st = zarr_store_read(w->store, "fresh", ZARR_STORE_SUFFIX, &mem, &v, NULL, err);
    zarr_store_capabilities(w->store, &caps);
    if (st == ZARR_OK)
        st = zarr_store_write(
            w->store, "fresh", &mem,
            caps.chunk_flags & ZARR_STORE_CAP_PUT_IF_VERSION ? &v.version : NULL, &v,
            NULL, err);
    return st;
}

static void check_put_new(struct world *w, bool done)
{
    char text[4];
    uint64_t bytes = sizeof text;
    zarr_error err;
    const zarr_status st = zarr_store_get(w->store, "fresh", 0, text, &bytes, NULL, &err);

    if (done || st != ZARR_ERR_NOT_FOUND) {
        world_must(st, &err, "fresh");
        assert_int_equal(bytes, 3);
        assert_true(memcmp(text, "abc", 3) == 0 || memcmp(text, "bcc", 3) == 0);
    }
}

static zarr_status run_text(zarr_store *s, zarr_store_op *op, uint32_t verb, char *text,
                            zarr_error *err)
{
    op->verb = verb;
    op->mem.handle = text;
    op->mem.bytes = text ? strlen(text) : 0;
    return zarr_store_run(s, op, err);
}

/* Writes a value in place, three times under one lock. */
static zarr_status append(struct world *w, zarr_error *err)
{
    static char text[] = "abc";
    zarr_store_op op = {.key = "fresh.end", .mem = {.device_type = ZARR_DEVICE_CPU}};
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_status st = zarr_store_put(w->store, op.key, text, 3, NULL, err);

    zarr_store_capabilities(w->store, &caps);
    if (st != ZARR_OK || !(caps.chunk_flags & ZARR_STORE_CAP_APPEND))
        return st;
    op.flags = ZARR_STORE_OP_LOCKED | ZARR_STORE_OP_WANT_VERSION;
    st = zarr_store_lock(&op.lock, w->store, op.key, NULL, err);
    for (op.offset = 3; st == ZARR_OK && op.offset <= 9; op.offset += 3)
        st = run_text(w->store, &op, ZARR_STORE_APPEND, text, err);
    zarr_store_unlock(w->store, op.lock);
    return st;
}

static void check_append(struct world *w, bool done)
{
    char text[16];
    uint64_t bytes = sizeof text;
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_error err;
    const zarr_status st =
        zarr_store_get(w->store, "fresh.end", 0, text, &bytes, NULL, &err);

    zarr_store_capabilities(w->store, &caps);
    if (!done && st == ZARR_ERR_NOT_FOUND)
        return;
    world_must(st, &err, "fresh.end");
    assert_in_range(bytes, 3, 12); /* it is not atomic */
    assert_memory_equal(text, "abcabcabcabc", bytes);
    if (done && (caps.chunk_flags & ZARR_STORE_CAP_APPEND))
        assert_int_equal(bytes, 12);
}

/* Writes a value in parts, the first from another value, and reads them. */
static zarr_status write_draft(struct world *w, zarr_error *err)
{
    static char text[] = "abc", more[] = "def";
    zarr_store_source from = {.key = "fresh"};
    char read[4] = "";
    zarr_store_op op = {
        .key = "fresh.draft", .source = &from, .mem = {.device_type = ZARR_DEVICE_CPU}};
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_status st = zarr_store_put(w->store, from.key, text, 3, NULL, err);

    zarr_store_capabilities(w->store, &caps);
    if (st != ZARR_OK || !(caps.chunk_flags & ZARR_STORE_CAP_READ_PARTS))
        return st;
    st = zarr_store_begin_parts(&op.parts, w->store, op.key, NULL, NULL, err);
    op.part = 2;
    op.offset = 3;
    if (st == ZARR_OK)
        st = run_text(w->store, &op, ZARR_STORE_PUT_PART, more, err);
    op.flags = ZARR_STORE_OP_IN_PARTS;
    op.part = 1;
    op.offset = 0;
    if (st == ZARR_OK)
        st = run_text(w->store, &op, ZARR_STORE_COPY, NULL, err);
    op.offset = 2;
    op.length = 3;
    memcpy(read, "...", sizeof read);
    if (st == ZARR_OK)
        st = run_text(w->store, &op, ZARR_STORE_GET, read, err);
    if (st == ZARR_OK)
        assert_string_equal(read, "cde");
    op.length = 6;
    if (st == ZARR_OK)
        st = run_text(w->store, &op, ZARR_STORE_PUT, NULL, err);
    zarr_store_end_parts(w->store, op.key, op.parts);
    return st;
}

static void check_draft(struct world *w, bool done)
{
    char text[16];
    uint64_t bytes = sizeof text;
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_error err;
    const zarr_status st =
        zarr_store_get(w->store, "fresh.draft", 0, text, &bytes, NULL, &err);

    zarr_store_capabilities(w->store, &caps);
    if (st == ZARR_ERR_NOT_FOUND &&
        !(done && (caps.chunk_flags & ZARR_STORE_CAP_READ_PARTS)))
        return;
    world_must(st, &err, "fresh.draft");
    assert_int_equal(bytes, 6);
    assert_memory_equal(text, "abcdef", 6);
}

static const struct scenario all[] = {
    {"open a text", open_text, NULL, "v3", NULL},
    {"composite store", composite, NULL, NULL, NULL},
    {"put a new key", put_new, check_put_new, NULL, NULL},
    {"append in place", append, check_append, NULL, NULL},
    {"write in parts", write_draft, check_draft, NULL, NULL},
};
const struct scenarios store_scenarios = {all, sizeof all / sizeof *all};
