/*
 * second_call.c - makes one call twice, for scripts/second_call.py, which counts by
 * callgrind the functions and files of the library that the second call enters. The first
 * call warms up: worker contexts, scratch memory and the index of the shard exist.
 *
 * Usage: second_call DIRECTORY CASE, or second_call list
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zarrc/zarrc.h>

enum {
    EDGE = 256
};

#define RAW "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}]"
static const struct call_case {
    const char *name, *codecs, *selected;
    uint64_t chunk[2], shard[2];
    int write;
} cases[] = {
    {"raw read", RAW, "0:64,0:64", {64, 64}, {0, 0}, 0},
    {"zstd read", NULL, "0:64,0:64", {64, 64}, {0, 0}, 0},
    {"shard read", NULL, "3:60,3:60", {64, 64}, {128, 128}, 0},
    {"raw write", RAW, "0:64,0:64", {64, 64}, {0, 0}, 1},
    {"partial shard write", NULL, "3:60,3:60", {64, 64}, {128, 128}, 1},
};

static zarr_error err;
static float elements[EDGE * EDGE];

static void must(zarr_status status)
{
    if (status == ZARR_OK)
        return;
    fprintf(stderr, "second_call: %s\n", err.message);
    exit(1);
}

struct call {
    zarr_array *array;
    zarr_selection *selection;
    zarr_tensor tensor;
    zarr_io_options opts;
    int write;
};

static void make_call(struct call *c)
{
    must((c->write ? zarr_array_write : zarr_array_read)(c->array, c->selection,
                                                         &c->tensor, &c->opts, &err));
}

/* Callgrind counts inside of it. */
__attribute__((noinline)) void counted_call(struct call *c);
void counted_call(struct call *c)
{
    make_call(c);
}

static void run(zarr_store *store, const struct call_case *what)
{
    const uint64_t shape[2] = {EDGE, EDGE};
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 2,
        .shape = shape,
        .chunk_shape = what->chunk,
        .shard_shape = what->shard[0] != 0 ? what->shard : NULL,
        .data_type = "float32",
        .codecs = what->codecs,
    };
    struct call c = {.opts = {.struct_size = sizeof c.opts, .max_threads = 1},
                     .write = what->write};
    zarr_tensor all;

    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        elements[i] = (float)(i * i % 1000 + 1);
    must(zarr_array_create(&c.array, store, "a", &spec, NULL, &err));
    zarr_tensor_host(&all, NULL, elements, sizeof elements, 2, shape);
    must(zarr_array_write(c.array, NULL, &all, &c.opts, &err));
    must(zarr_selection_parse(&c.selection, 2, shape, what->selected, &err));
    zarr_tensor_host(&c.tensor, NULL, elements, sizeof elements, 2,
                     zarr_selection_shape(c.selection));
    make_call(&c);
    counted_call(&c);
    zarr_selection_free(c.selection);
    zarr_array_free(c.array);
}

int main(int argc, char **argv)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .flags = ZARR_STORE_CREATE};
    const size_t n = sizeof cases / sizeof *cases;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    size_t i = 0;

    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (i = 0; i < n; i++)
            puts(cases[i].name);
        return 0;
    }
    while (argc == 3 && i < n && strcmp(cases[i].name, argv[2]) != 0)
        i++;
    if (argc != 3 || i == n) {
        fprintf(stderr, "usage: second_call DIRECTORY CASE, or second_call list\n");
        return 2;
    }
    must(zarr_context_create(&ctx, NULL, &err));
    must(zarr_store_open(&store, ctx, argv[1], &opts, &err));
    run(store, &cases[i]);
    zarr_store_free(store);
    zarr_context_free(ctx);
    return 0;
}
