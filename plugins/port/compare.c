/*
 * port/compare.c - which runs of bytes are nothing but a repeated pattern. The answers
 * reach the host's list when the lane was waited for.
 */
#include "port_int.h"

#include <stdlib.h>

/* A launch whose answers are on their way. */
struct port_comparison {
    struct port_block differs;
    uint8_t *equal;
    uint64_t n;
    struct port_comparison *next;
};

void port_finish_comparisons(struct port_lane *l, zarr_status st)
{
    while (l->comparisons) {
        struct port_comparison *c = l->comparisons;
        const k_u32 *differs = c->differs.host;

        l->comparisons = c->next;
        for (uint64_t i = 0; i < c->n && st == ZARR_OK; i++)
            c->equal[i] = differs[i] == 0;
        port_result_close(&c->differs);
        free(c);
    }
}

static zarr_status launch_differ(struct port_lane *l, const struct port_comparison *c,
                                 const zarr_memory *src, const void *pattern,
                                 uint32_t item_bytes, zarr_error *err)
{
    const struct port_place from = port_memory_place(&src[0]);
    struct port_block runs, bytes;
    uint64_t most = 0, each;
    zarr_status st = port_stage(l, c->n * sizeof(struct k_run), &runs, err);

    if (st == ZARR_OK)
        st = port_stage(l, item_bytes, &bytes, err);
    if (st != ZARR_OK)
        return st;
    for (uint32_t k = 0; k < item_bytes; k++)
        ((uint8_t *)bytes.host)[k] = ((const uint8_t *)pattern)[k];
    for (uint64_t i = 0; i < c->n; i++) {
        ((struct k_run *)runs.host)[i] =
            (struct k_run){.src = port_memory_place(&src[i]).at, .bytes = src[i].bytes};
        most = src[i].bytes > most ? src[i].bytes : most;
    }
    each = port_each(c->n, most);
    const struct port_argument a[] = {PORT_ARG_BUFFER(from),   PORT_ARG_BLOCK(bytes),
                                      PORT_ARG_BLOCK(runs),    PORT_ARG_BLOCK(c->differs),
                                      PORT_ARG_U64(c->n),      PORT_ARG_U64(each),
                                      PORT_ARG_U32(item_bytes)};

    return port_launch(l, PORT_DIFFER, a, 7, c->n * each, err);
}

/* The runs of one buffer. */
static zarr_status compare_runs(struct port_lane *l, const zarr_memory *src, uint64_t n,
                                const void *pattern, uint32_t item_bytes, uint8_t *equal,
                                zarr_error *err)
{
    struct port_comparison *c = calloc(1, sizeof *c);
    zarr_status st;

    if (!c)
        return port_no_memory(err);
    c->equal = equal;
    c->n = n;
    st = port_result_open(l, n * sizeof(k_u32), &c->differs, err);
    if (st != ZARR_OK) {
        free(c);
        return st;
    }
    c->next = l->comparisons; /* moved: a failure below leaves it to
                                 port_finish_comparisons() */
    l->comparisons = c;
    st = launch_differ(l, c, src, pattern, item_bytes, err);
    return st == ZARR_OK ? port_result_fetch(l, &c->differs, err) : st;
}

/* NOLINTNEXTLINE(readability-function-size): the entry of a table of the ABI */
zarr_status port_equal_list(void *self, const zarr_memory *src, uint64_t n,
                            const void *pattern, uint32_t item_bytes, uint8_t *equal,
                            void *stream, zarr_error *err)
{
    struct port_lane *l;
    zarr_status st;

    (void)self;
    if (n == 0)
        return ZARR_OK;
    st = port_begin(stream, src[0].device_id, &l, err);
    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0, k; i < n && st == ZARR_OK; i = k) {
        const void *buffer = port_memory_place(&src[i]).buffer;

        for (k = i + 1; k < n && port_memory_place(&src[k]).buffer == buffer; k++)
            ;
        st = compare_runs(l, &src[i], k - i, pattern, item_bytes, &equal[i], err);
    }
    return port_end(stream, l, st, err);
}
