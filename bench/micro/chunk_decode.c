/*
 * bench/micro/chunk_decode.c - what a chunk costs whose encoded bytes the caller has
 * (zarr_array_decode()), beside a chunk of a memory store. A program, not a test:
 *
 *   chunk_decode <n_chunks> <codecs> <rounds> [read|decode]
 *
 * An array of n_chunks chunks of 16 bytes, so that little but the way of each chunk is
 * counted. Prints the median of each, in nanoseconds of CPU a chunk, with one thread.
 * `valgrind --tool=callgrind` counts instructions of one of them:
 * (many rounds - one round) / (rounds - 1) / n_chunks.
 */
#include <zarrc/zarrc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CHUNK = 16, /* elements, and bytes */
    ROUNDS_MOST = 64
};

static zarr_error err;

static void must(zarr_status status)
{
    if (status == ZARR_OK)
        return;
    fprintf(stderr, "chunk_decode: %s\n", err.message);
    exit(1);
}

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);

    if (!p)
        exit(1);
    return p;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* An array, its elements, and its chunks as the store has them. */
struct subject {
    zarr_context *ctx;
    zarr_store *store;
    zarr_array *array;
    zarr_tensor tensor;
    uint64_t shape;
    uint8_t *elements, *encoded;
    zarr_memory *bytes;
    uint64_t *chunks;
    zarr_block_batch batch;
};

static void open_array(struct subject *s, uint64_t n, const char *codecs)
{
    const uint64_t shape = n * CHUNK, chunk = CHUNK;
    zarr_context_options options = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    options.max_threads = 1;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk_shape = &chunk;
    spec.data_type = "uint8";
    spec.codecs = codecs;
    must(zarr_context_create(&s->ctx, &options, &err));
    must(zarr_store_open(&s->store, s->ctx, "memory:", NULL, &err));
    must(zarr_array_create(&s->array, s->store, "", &spec, NULL, &err));
    s->elements = room((size_t)shape, 1);
    for (uint64_t i = 0; i < shape; i++)
        s->elements[i] = (uint8_t)(i % 251 + 1);
    s->shape = shape;
    zarr_tensor_host(&s->tensor, NULL, s->elements, (size_t)shape, 1, &s->shape);
    must(zarr_array_write(s->array, NULL, &s->tensor, NULL, &err));
}

static void take_chunks(struct subject *s, uint64_t n)
{
    enum {
        MOST = 128 /* bytes of an encoded chunk */
    };

    s->encoded = room((size_t)n, MOST);
    s->bytes = room((size_t)n, sizeof *s->bytes);
    s->chunks = room((size_t)n, sizeof *s->chunks);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bytes = MOST;

        s->chunks[i] = i;
        must(zarr_array_block_read_encoded(s->array, &i, s->encoded + i * MOST, &bytes,
                                           NULL, &err));
        s->bytes[i].handle = s->encoded + i * MOST;
        s->bytes[i].bytes = bytes;
    }
    s->batch = (zarr_block_batch)ZARR_BLOCK_BATCH_INIT;
    s->batch.n_blocks = n;
    s->batch.blocks = s->chunks;
    s->batch.bytes = s->bytes;
}

static void report(struct subject *s, uint64_t n, int rounds, int decodes)
{
    double took[ROUNDS_MOST];

    for (int i = 0; i < rounds; i++) {
        const double began = now();

        must(decodes
                 ? zarr_array_decode(s->array, NULL, &s->tensor, &s->batch, NULL, &err)
                 : zarr_array_read(s->array, NULL, &s->tensor, NULL, &err));
        took[i] = now() - began;
    }
    qsort(took, (size_t)rounds, sizeof *took, compare_doubles);
    printf("%-6s %.0f ns a chunk\n", decodes ? "decode" : "read",
           took[rounds / 2] * 1e9 / (double)n);
}

int main(int argc, char **argv)
{
    struct subject s = {0};
    const uint64_t n = argc > 3 ? strtoull(argv[1], NULL, 10) : 0;
    const int rounds = argc > 3 ? atoi(argv[3]) : 0;

    if (n == 0 || rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr,
                "usage: chunk_decode <n_chunks> <codecs> <rounds> [read|decode]\n");
        return 2;
    }
    open_array(&s, n, argv[2]);
    take_chunks(&s, n);
    if (argc < 5 || strcmp(argv[4], "read") == 0)
        report(&s, n, rounds, 0);
    if (argc < 5 || strcmp(argv[4], "decode") == 0)
        report(&s, n, rounds, 1);
    free(s.chunks);
    free(s.bytes);
    free(s.encoded);
    free(s.elements);
    zarr_array_free(s.array);
    zarr_store_free(s.store);
    zarr_context_free(s.ctx);
    return 0;
}
