/*
 * unit/tree/test_cancel_set.c - a cancel object that is set before a call: each call that
 * takes one returns ZARR_ERR_CANCELLED, changes nothing, and works once the object is
 * reset. The calls of chunks without a store, of parts, of columns and of leftovers are
 * here; test_cancel.c has the others, and cancels them in their middle.
 */
#include "cancel_test.h"

#include <zarrc/arrow.h>

static zarr_cancel *cancel;
static zarr_io_options io;
static int32_t data[ROWS * COLS];
static const uint64_t shape[2] = {ROWS, COLS};

static zarr_tensor tensor(void)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof data, 2, shape);
    return t;
}

/* ---- chunks without a store ----------------------------------------------------- */

static int n_sunk;

static zarr_status sink(void *user, const uint64_t *chunk, const zarr_memory *bytes,
                        zarr_error *err)
{
    (void)user;
    (void)chunk;
    (void)bytes;
    (void)err;
    n_sunk++;
    return ZARR_OK;
}

/* All chunks are missing. */
static zarr_status do_decode(zarr_array *a)
{
    enum {
        CHUNKS = 4 * 3
    };
    static uint64_t chunks[CHUNKS][2];
    static zarr_memory bytes[CHUNKS];
    const zarr_tensor t = tensor();
    zarr_block_batch in = ZARR_BLOCK_BATCH_INIT;

    for (uint64_t i = 0; i < CHUNKS; i++) {
        chunks[i][0] = i / 3;
        chunks[i][1] = i % 3;
    }
    in.n_blocks = CHUNKS;
    in.blocks = chunks[0];
    in.bytes = bytes;
    return zarr_array_decode(a, NULL, &t, &in, &io, &terr);
}

static zarr_status do_encode(zarr_array *a)
{
    const zarr_block_sink to = {.struct_size = sizeof to, .fn = sink};
    const zarr_tensor t = tensor();
    zarr_status st;

    n_sunk = 0;
    st = zarr_array_encode(a, NULL, &t, NULL, &to, &io, &terr);
    assert_int_equal(n_sunk, st == ZARR_OK ? 4 * 3 : 0);
    return st;
}

/* ---- parts and requests ----------------------------------------------------------- */

static zarr_status do_read_many(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_io_part part = {.tensor = &t};
    const zarr_status st = zarr_array_read_many(a, &part, 1, &io, &terr);

    assert_int_equal(part.status, st);
    return st;
}

static zarr_status do_write_many(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_io_part part = {.tensor = &t};

    return zarr_array_write_many(a, &part, 1, &io, &terr);
}

static zarr_status wait_for_end(zarr_request *rq)
{
    const zarr_status st = zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr);

    zarr_request_free(rq);
    return st;
}

static zarr_status do_read_submit(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_request *rq = NULL;

    assert_ok(zarr_array_read_submit(&rq, a, NULL, &t, &io, &terr));
    return wait_for_end(rq);
}

static zarr_status do_write_submit(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_request *rq = NULL;

    assert_ok(zarr_array_write_submit(&rq, a, NULL, &t, &io, &terr));
    return wait_for_end(rq);
}

static zarr_status do_read_many_submit(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_io_part part = {.tensor = &t};
    zarr_request *rq = NULL;

    assert_ok(zarr_array_read_many_submit(&rq, a, &part, 1, &io, &terr));
    return wait_for_end(rq);
}

static zarr_status do_write_many_submit(zarr_array *a)
{
    const zarr_tensor t = tensor();
    zarr_io_part part = {.tensor = &t};
    zarr_request *rq = NULL;

    assert_ok(zarr_array_write_many_submit(&rq, a, &part, 1, &io, &terr));
    return wait_for_end(rq);
}

/* ---- counts and leftovers --------------------------------------------------------- */

static zarr_status do_stored(zarr_array *a)
{
    return zarr_array_count_stored(a, NULL, NULL, &io, &terr);
}

static zarr_status do_clear_leftovers(zarr_array *a)
{
    const zarr_shape_options o = {.struct_size = sizeof o, .cancel = io.cancel};

    return zarr_array_clear_leftovers(a, NULL, &o, &terr);
}

/* ---- columns ----------------------------------------------------------------------- */

static zarr_status do_read_vlen(zarr_array *text)
{
    zarr_vlen_column c = ZARR_VLEN_COLUMN_INIT;
    const zarr_status st = zarr_array_read_vlen(text, NULL, &c, &io, &terr);

    zarr_vlen_column_free(&c);
    return st;
}

static zarr_status do_write_vlen(zarr_array *text)
{
    const uint64_t offsets[] = {0, 1, 1, 3};
    zarr_vlen_column c = ZARR_VLEN_COLUMN_INIT;

    c.n = 3;
    c.offsets = offsets;
    c.bytes = (const uint8_t *)"abc";
    return zarr_array_write_vlen(text, NULL, &c, &io, &terr);
}

static zarr_status read_arrow(zarr_array *text, struct ArrowSchema *schema,
                              struct ArrowArray *column, const zarr_io_options *opts)
{
    return zarr_array_read_arrow(text, NULL, 0, schema, column, opts, &terr);
}

static void release(struct ArrowSchema *schema, struct ArrowArray *column)
{
    if (schema->release)
        schema->release(schema);
    if (column->release)
        column->release(column);
}

static zarr_status do_read_arrow(zarr_array *text)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray column = {0};
    const zarr_status st = read_arrow(text, &schema, &column, &io);

    release(&schema, &column);
    return st;
}

static zarr_status do_write_arrow(zarr_array *text)
{
    struct ArrowSchema schema = {0};
    struct ArrowArray column = {0};
    zarr_status st;

    assert_ok(read_arrow(text, &schema, &column, NULL));
    st = zarr_array_write_arrow(text, NULL, &schema, &column, &io, &terr);
    release(&schema, &column);
    return st;
}

/* ---- all --------------------------------------------------------------------------- */

typedef zarr_status (*call_fn)(zarr_array *a);

static int n_puts;

/* Counts what changes the store. */
static void count_run(void *self, zarr_store_op *op, zarr_error *err)
{
    n_puts += op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_ERASE;
    zarr_store_run(self, op, err);
}

static void count_caps(void *self, zarr_store_caps *out)
{
    zarr_store_capabilities(self, out);
    out->flags &= ~(uint32_t)ZARR_STORE_CAP_LOCK;
}

static zarr_status count_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user, const zarr_cancel *c,
                              zarr_error *err)
{
    (void)c;
    return zarr_store_list(self, prefix, how, fn, user, NULL, err);
}

static const zarr_store_vtable count_vtable = {.struct_size = sizeof count_vtable,
                                               .name = "count",
                                               .caps = count_caps,
                                               .run = count_run,
                                               .list = count_list};

static void each_call(zarr_array *a, const char *name, call_fn call)
{
    zarr_status st;

    zarr_cancel_set(cancel);
    n_puts = 0;
    st = call(a);
    if (st != ZARR_ERR_CANCELLED || terr.code != st)
        fail_msg("%s: %s: %s", name, zarr_status_text(st), terr.message);
    assert_int_equal(n_puts, 0);
    zarr_cancel_reset(cancel);
    st = call(a);
    if (st != ZARR_OK)
        fail_msg("%s, not cancelled: %s", name, terr.message);
}

#define CALL(name)                                                                       \
    {                                                                                    \
#        name, name                                                                      \
    }

static void every_call(void **state)
{
    static const struct {
        const char *name;
        call_fn call;
    } calls[] = {CALL(do_decode),           CALL(do_encode),
                 CALL(do_read_many),        CALL(do_write_many),
                 CALL(do_read_submit),      CALL(do_write_submit),
                 CALL(do_stored),           CALL(do_clear_leftovers),
                 CALL(do_read_many_submit), CALL(do_write_many_submit)},
      of_text[] = {CALL(do_write_vlen), CALL(do_read_vlen), CALL(do_read_arrow),
                   CALL(do_write_arrow)};
    const uint64_t three[] = {3};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = three,
                                  .chunk_shape = three,
                                  .data_type = "string"};
    zarr_array *a = NULL, *text = NULL;
    zarr_store *s = NULL;
    struct world w;

    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        data[i] = i + 1;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_store_open_custom(&s, w.ctx, &count_vtable, w.store, NULL, &terr));
    zarr_array_free(make_array(&w, "a", 3, ROWS, COLS));
    a = open_array(s, "a");
    assert_ok(zarr_array_create(&text, s, "text", &spec, NULL, &terr));
    assert_ok(zarr_cancel_create(&cancel, &terr));
    io = (zarr_io_options){.struct_size = sizeof io, .cancel = cancel, .max_threads = 1};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        each_call(a, calls[i].name, calls[i].call);
    for (size_t i = 0; i < sizeof of_text / sizeof *of_text; i++)
        each_call(text, of_text[i].name, of_text[i].call);
    zarr_cancel_free(cancel);
    zarr_array_free(text);
    zarr_array_free(a);
    zarr_store_free(s);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
