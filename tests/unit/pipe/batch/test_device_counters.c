/*
 * unit/pipe/batch/test_device_counters.c - what zarr_stats says of reads and writes of a
 * device is what the device saw: for raw chunks, for those that the CPU or the device
 * decodes, and for those that the device declines; whole or in part, in shards or not, of
 * one selection or of several, and with a device that leaves entries out.
 */
#include "unit/pipe/device_test.h"

#include <zarrc/parts.h>

/* The shape of a leaf of each kind. */
static const uint64_t leaf[][2] = {{10, 40}, {7, 9}, {10, 10}, {9, 11},  {10, 40},
                                   {7, 9},   {8, 8}, {10, 10}, {10, 10}, {5, 4},
                                   {5, 4},   {2, 4}, {5, 4},   {9, 11},  {10, 10}};
_Static_assert(ZR_COUNT(leaf) == N_KINDS, "a leaf for each kind");

struct variant {
    int kind;
    bool write, parts;
    const char *text; /* the selection */
    zarr_status declines;
    uint32_t entries; /* that the device leaves out */
};

/* What must be counted. */
struct want {
    uint64_t elements, chunks, missing, present;
};

static bool outer_is_missing(const struct variant *v, uint64_t row, uint64_t col)
{
    const uint64_t *chunk = kinds[v->kind].chunk;

    return !v->write && row / chunk[0] == 1 && col / chunk[1] == 0;
}

static struct want count_wanted(const struct variant *v, const zarr_selection *const *sel,
                                int n_sel, const bool *have)
{
    const uint64_t *size = leaf[v->kind];
    struct want w = {0};

    for (int i = 0; i < n_sel; i++)
        w.elements += zarr_selection_n_items(sel[i]);
    for (uint64_t r = 0; r < ROWS; r += size[0])
        for (uint64_t c = 0; c < COLS; c += size[1]) {
            bool touched = false;

            for (uint64_t i = r; i < ROWS && i < r + size[0]; i++)
                for (uint64_t k = c; k < COLS && k < c + size[1]; k++)
                    touched = touched || have[i * COLS + k];
            w.chunks += touched;
            w.missing += touched && outer_is_missing(v, r, c);
        }
    w.present = w.chunks - w.missing;
    return w;
}

/* The elements that a selection has: what a write of it from the host changes. */
static void mark(const struct pw *w, const zarr_selection *sel, bool *have)
{
    static const uint64_t chunk[2] = {50, 40};
    static int32_t ones[N], got[N];
    zarr_array *a = pw_array(w->store, "mark", "[" BYTES "]", shape, chunk);
    uint64_t lengths[2];
    zarr_tensor t;

    for (int d = 0; d < 2; d++)
        lengths[d] = (uint64_t)zarr_selection_shape(sel)[d];
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    zarr_tensor_host(&t, NULL, ones, sizeof ones, 2, lengths);
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (int i = 0; i < N; i++)
        have[i] = have[i] || got[i] == 1;
    zarr_array_free(a);
    assert_ok(zarr_node_delete(w->store, "mark", &terr));
}

static void same_bytes(const struct variant *v, const char *what, uint64_t said,
                       uint64_t saw)
{
    if (said != saw)
        fail_msg("kind %d, %s, \"%s\"%s, declines %d, without %x: %s: said %d, saw %d",
                 v->kind, v->write ? "write" : "read", v->text,
                 v->parts ? ", in parts" : "", (int)v->declines, v->entries, what,
                 (int)said, (int)saw);
}

/* What crossed, and what stayed on the device. */
static void check_copies(const struct variant *v, const struct counts *c)
{
    const uint64_t by_codec = (uint64_t)atomic_load(&n_late.copied);
    const zarr_stats *s = &c->stats;

    same_bytes(v, "bytes up", s->bytes_up, c->moved.bytes_up);
    same_bytes(v, "bytes down", s->bytes_down, c->moved.bytes_down);
    if (v->entries & (ZARR_FAKEDEV_BOX | ZARR_FAKEDEV_FILL))
        return; /* one copy of a box is one of many rows then */
    same_bytes(v, "copies up", s->copies_up, c->moved.copies_up);
    same_bytes(v, "copies down", s->copies_down, c->moved.copies_down);
    same_bytes(v, "copies on the device", s->copies_device,
               c->moved.copies_device - by_codec + c->moved.fills);
}

/* Boxes go through the host. What is read comes down for nothing else. */
static void check_staged(const struct variant *v, const struct counts *c,
                         uint64_t declined)
{
    if (!v->write && kinds[v->kind].on_device && !declined)
        same_bytes(v, "decoded elements on the host", c->stats.copies_decoded_host > 0,
                   c->moved.bytes_down > 0);
}

static void check_chunks(const struct variant *v, const struct counts *c,
                         const struct want *w)
{
    const uint64_t bytes = leaf[v->kind][0] * leaf[v->kind][1] * 4;
    const uint64_t declined = (uint64_t)atomic_load(&n_late.declined);
    const bool whole = strcmp(v->text, "...") == 0 && !v->parts;
    const zarr_stats *s = &c->stats;
    const uint64_t detours = s->copies_decoded_host;

    same_bytes(v, "elements", s->elements, w->elements);
    same_bytes(v, "chunks done", s->chunks_done, w->chunks);
    same_bytes(v, "chunks total", s->chunks_total, w->chunks);
    same_bytes(v, "chunks missing", s->chunks_missing, w->missing);
    same_bytes(v, "chunks declined", s->chunks_fallback, declined);
    same_bytes(v, "chunks in part", s->chunks_partial, 0);
    /* indexes of shards are decoded, too, and codecs around them */
    assert_true(s->bytes_decoded >= bytes * w->present);
    if (!strstr(kinds[v->kind].codecs, "sharding") &&
        (!v->write ||
         (whole && ROWS % leaf[v->kind][0] == 0 && COLS % leaf[v->kind][1] == 0)))
        same_bytes(v, "bytes decoded", s->bytes_decoded, bytes * w->present);
    if (v->entries & ZARR_FAKEDEV_BOX)
        check_staged(v, c, declined);
    else if (!kinds[v->kind].on_device)
        assert_true(detours >= w->present);
    else if (!declined)
        same_bytes(v, "decoded elements on the host", detours, 0);
    else
        assert_in_range(detours, 1, declined);
}

static void one_case(const struct variant *v)
{
    zarr_selection *sel[2] = {NULL};
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_io_part part[2] = {{0}};
    uint64_t lengths[2][2];
    bool have[N] = {false};
    const int n = v->parts ? 2 : 1;
    zarr_tensor t[2];
    zarr_memory mem[2];
    struct counts c;
    struct want w;
    struct pw world;
    zarr_array *a;

    open_world(&world, 2, 1 << 20);
    a = filled_array(&world, "a", v->kind);
    if (!v->write)
        assert_ok(zarr_array_block_erase(a, (uint64_t[2]){1, 0}, NULL, &terr));
    assert_ok(zarr_selection_parse(&sel[0], 2, shape, v->text, &terr));
    assert_ok(zarr_selection_parse(&sel[1], 2, shape, "17:64, 11:33", &terr));
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < 2; d++)
            lengths[i][d] = zarr_selection_shape(sel[i])[d];
        mem[i] = tensor_new(&world, &t[i], lengths[i]);
        assert_int_equal(zarr_fakedev_poke(mem[i].handle, 0, data, sizeof data), 0);
        part[i] = (zarr_io_part){.selection = sel[i], .tensor = &t[i]};
        mark(&world, sel[i], have);
    }
    w = count_wanted(v, (const zarr_selection *const *)sel, n, have);
    zarr_fakedev_decline(device, v->entries);
    declines = v->declines;
    count_begin(&c, &o);
    if (v->parts)
        assert_ok(v->write ? zarr_array_write_many(a, part, 2, &o, &terr)
                           : zarr_array_read_many(a, part, 2, &o, &terr));
    else
        assert_ok(v->write ? zarr_array_write(a, sel[0], &t[0], &o, &terr)
                           : zarr_array_read(a, sel[0], &t[0], &o, &terr));
    count_end(&c);
    declines = ZARR_OK;
    zarr_fakedev_decline(device, 0);
    check_copies(v, &c);
    check_chunks(v, &c, &w);
    for (int i = 0; i < n; i++)
        zarr_memory_free(world.ctx, &mem[i]);
    for (int i = 0; i < 2; i++)
        zarr_selection_free(sel[i]);
    zarr_array_free(a);
    close_world(&world);
}

static void all_cases(bool write)
{
    static const char *const texts[] = {"...", "3:90, 5:37", "::7, 1::3"};
    static const zarr_status answers[] = {ZARR_OK, ZARR_ERR_UNSUPPORTED,
                                          ZARR_ERR_NO_MEMORY, ZARR_ERR_DEVICE};
    static const uint32_t entries[] = {0, ZARR_FAKEDEV_LIST | ZARR_FAKEDEV_BOXES,
                                       ZARR_FAKEDEV_BOX | ZARR_FAKEDEV_FILL |
                                           ZARR_FAKEDEV_BOXES | ZARR_FAKEDEV_FILLS};
    struct variant v = {.write = write};
    int n = 0;

    for (v.kind = 0; v.kind < N_KINDS; v.kind++)
        for (size_t i = 0; i < ZR_COUNT(texts); i++)
            for (size_t k = 0; k < (i == 0 ? ZR_COUNT(answers) : 2); k++)
                for (size_t e = 0; e < ZR_COUNT(entries); e++) {
                    if (n++ % ZR_CASE_STEP != 0)
                        continue;
                    v.text = texts[i];
                    v.declines = answers[k];
                    v.entries = entries[e];
                    v.parts = false;
                    one_case(&v);
                    v.parts = true;
                    one_case(&v);
                }
}

static void test_reads(void **state)
{
    (void)state;
    all_cases(false);
}

static void test_writes(void **state)
{
    (void)state;
    all_cases(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
