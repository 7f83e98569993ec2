/*
 * grid_months.c - a chunk grid and a chunk key encoding. "example.months": the first
 * dimension has an element for each day, and a chunk for each month of a calendar with
 * 365 days in every year; each other dimension is one chunk. "example.padded": the keys
 * of chunks, such as c.000002.000000, sort in the order of the chunks.
 *
 *     cc -shared -fPIC -o grid_months.so grid_months.c
 *     zarrc --plugin=./grid_months.so create --key-encoding=example.padded ...
 *
 * The grid is for zarr_array_spec.chunk_grid: {"name": "example.months"}.
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const zarr_host *host; /* static in the library: may be kept */

/* Day of the year on which each month begins. */
static const uint16_t first[13] = {0,   31,  59,  90,  120, 151, 181,
                                   212, 243, 273, 304, 334, 365};

struct grid {
    uint64_t shape[ZARR_MAX_RANK];
};

/* Both have no configuration: canonical() writes "{}". */
static zarr_status check_empty(const char *name, const char *json, zarr_error *err)
{
    return strcmp(json, "{}") == 0
               ? ZARR_OK
               : host->fail(err, ZARR_ERR_INVALID, "%s: the configuration is %s, not {}",
                            name, json);
}

static zarr_status write_empty(const void *self, char *text, size_t cap,
                               size_t *text_bytes, zarr_error *err)
{
    (void)self;
    (void)err;
    *text_bytes = (size_t)snprintf(text, cap, "{}");
    return ZARR_OK;
}

/* ---- the grid ---- */

static zarr_status months_parse(void **self, int32_t ndim, const uint64_t *shape,
                                const char *json, zarr_error *err)
{
    struct grid *grid = NULL;
    const zarr_status st = check_empty("example.months", json, err);

    if (st != ZARR_OK)
        return st;
    grid = (struct grid *)calloc(1, sizeof *grid);
    if (!grid)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "example.months: no memory");
    for (int32_t d = 0; d < ndim; d++)
        grid->shape[d] = shape[d];
    *self = grid;
    return ZARR_OK;
}

static uint64_t months_locate(const void *self, int32_t dim, uint64_t at)
{
    uint64_t month = 0;

    (void)self;
    if (dim > 0)
        return 0;
    while (first[month + 1] <= at % 365)
        month++;
    return at / 365 * 12 + month;
}

static uint64_t months_n_chunks(const void *self, int32_t dim)
{
    const uint64_t length = ((const struct grid *)self)->shape[dim];

    return length == 0 ? 0 : months_locate(self, dim, length - 1) + 1;
}

static void months_extent(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                          uint64_t *size)
{
    const uint16_t *month = &first[chunk % 12];

    *origin = dim > 0 ? 0 : chunk / 12 * 365 + month[0];
    *size = dim > 0 ? ((const struct grid *)self)->shape[dim]
                    : (uint64_t)(month[1] - month[0]);
}

static const zarr_grid_vtable months = {.struct_size = sizeof months,
                                        .name = "example.months",
                                        .parse = months_parse,
                                        .canonical = write_empty,
                                        .n_chunks = months_n_chunks,
                                        .locate = months_locate,
                                        .extent = months_extent,
                                        .free = free};

/* ---- the keys ---- */

static zarr_status padded_parse(void **self, const char *json, zarr_error *err)
{
    *self = NULL;
    return check_empty("example.padded", json, err);
}

static size_t padded_key(const void *self, int32_t ndim, const uint64_t *chunk,
                         char *text, size_t cap)
{
    size_t n = (size_t)snprintf(text, cap, "c");

    (void)self;
    for (int32_t d = 0; d < ndim; d++)
        n += (size_t)snprintf(n < cap ? text + n : NULL, n < cap ? cap - n : 0, ".%06llu",
                              (unsigned long long)chunk[d]);
    return n;
}

/* A number has one spelling only: the one that padded_key() writes. */
static int padded_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    char part[32];

    (void)self;
    if (*text++ != 'c')
        return -1;
    for (int32_t d = 0; d < ndim; d++) {
        if (*text != '.')
            return -1;
        chunk[d] = strtoull(text + 1, NULL, 10);
        snprintf(part, sizeof part, ".%06llu", (unsigned long long)chunk[d]);
        if (strncmp(text, part, strlen(part)) != 0)
            return -1;
        text += strlen(part);
    }
    return *text == '\0' ? 0 : -1;
}

static const zarr_key_encoding_vtable padded = {.struct_size = sizeof padded,
                                                .name = "example.padded",
                                                .parse = padded_parse,
                                                .canonical = write_empty,
                                                .key = padded_key,
                                                .chunk = padded_chunk};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st;

    (void)self;
    host = given;
    st = host->register_grid(ctx, &months, err);
    return st == ZARR_OK ? host->register_key_encoding(ctx, &padded, err) : st;
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-months",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
