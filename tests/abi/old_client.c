/*
 * abi/old_client.c - calls today's library like a program compiled when
 * zarr_context_options was shorter, and like one compiled when it was longer. The
 * options end directly in front of a page that faults, so reading one byte too far
 * crashes the test.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

enum {
    MAX_OPTIONS_BYTES = 1024
};

struct old_options {
    uint32_t struct_size, flags;
};

static unsigned char *edge; /* first byte that must not be read */

static int make_edge(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        return -1;
    edge = pages + page;
    return 0;
}

/* Opens a context with n_bytes of options, the last of which is `last`. */
static zarr_status open_with(uint32_t n_bytes, uint32_t struct_size, unsigned char last)
{
    zarr_context *ctx = NULL;
    zarr_error err;
    zarr_status st;
    unsigned char *options = edge - n_bytes;

    memset(options, 0, n_bytes);
    memcpy(options, &struct_size, sizeof struct_size);
    if (n_bytes > sizeof struct_size)
        options[n_bytes - 1] = last;
    st = zarr_context_create(&ctx, (const zarr_context_options *)(const void *)options,
                             &err);
    zarr_context_free(ctx);
    return st;
}

/* Structs that the library fills: `bytes` long, directly in front of the page that
 * faults. */
static int given_structs(uint32_t bytes)
{
    zarr_limits all = ZARR_LIMITS_INIT, part;
    zarr_tensor t;
    zarr_context *ctx = NULL;
    zarr_error err;
    void *out = edge - bytes;
    int bad = 0;

    memset(&part, 0, sizeof part);
    if (zarr_context_create(&ctx, NULL, &err) != ZARR_OK)
        return 1;
    zarr_limits_untrusted(&all);
    zarr_limits_untrusted_sized(out, bytes);
    memcpy(&part, out, bytes < sizeof part ? bytes : sizeof part);
    bad |= part.struct_size != bytes || part.metadata_bytes != all.metadata_bytes;
    zarr_context_limits(ctx, &all);
    zarr_context_limits_sized(ctx, out, bytes);
    memcpy(&part, out, bytes < sizeof part ? bytes : sizeof part);
    bad |= part.struct_size != bytes || part.metadata_bytes != all.metadata_bytes;
    zarr_tensor_host_sized(out, bytes, NULL, &bad, sizeof bad, 0, NULL);
    memset(&t, 0, sizeof t);
    memcpy(&t, out, bytes < sizeof t ? bytes : sizeof t);
    bad |= t.struct_size != bytes || t.device_type != ZARR_DEVICE_CPU;
    for (size_t i = sizeof all; i < bytes; i++)
        bad |= edge[-(long)bytes + (long)i] != 0;
    zarr_context_free(ctx);
    return bad;
}

static int expect(const char *what, zarr_status got, zarr_status want)
{
    printf("%s: %s (status %d, expected %d)\n", got == want ? "ok" : "FAILED", what,
           (int)got, (int)want);
    return got != want;
}

/* ---- plug-ins' tables as compiled with the first headers -------------------- */

enum { /* sizes at that time */
    OLD_SPEC_BYTES = 48,
    OLD_IMPL_BYTES = 104,
    OLD_GRID_BYTES = 64
};

static zarr_status no_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    (void)err;
    return ZARR_ERR_UNSUPPORTED;
}

static zarr_status no_grid(void **self, int32_t ndim, const uint64_t *shape,
                           const char *json, zarr_error *err)
{
    (void)self;
    (void)ndim;
    (void)shape;
    (void)json;
    (void)err;
    return ZARR_ERR_UNSUPPORTED;
}

static zarr_status no_text(const void *self, char *text, size_t cap, size_t *text_bytes,
                           zarr_error *err)
{
    (void)self;
    (void)text;
    (void)cap;
    (void)text_bytes;
    (void)err;
    return ZARR_ERR_UNSUPPORTED;
}

static uint64_t no_chunks(const void *self, int32_t dim)
{
    (void)self;
    (void)dim;
    return 0;
}

static uint64_t no_chunk_at(const void *self, int32_t dim, uint64_t at)
{
    (void)self;
    (void)dim;
    return at;
}

static void no_extent(const void *self, int32_t dim, uint64_t chunk, uint64_t *origin,
                      uint64_t *size)
{
    (void)self;
    (void)dim;
    *origin = *size = chunk;
}

/* The first `bytes` of a table, directly in front of the page that faults. */
static const void *cut(const void *table, uint32_t bytes)
{
    memcpy(edge - bytes, table, bytes);
    memcpy(edge - bytes, &bytes, sizeof bytes); /* struct_size */
    return edge - bytes;
}

/* Shorter by this many bytes. */
static zarr_status register_old(uint32_t missing)
{
    const zarr_codec_spec_vtable spec = {.name = "old", .kind = ZARR_CODEC_BYTES_BYTES};
    const zarr_codec_impl_vtable impl = {.caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE,
                                         .codec = "old",
                                         .impl = "cpu.old",
                                         .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
                                         .decode = no_decode};
    const zarr_grid_vtable grid = {.name = "old",
                                   .parse = no_grid,
                                   .canonical = no_text,
                                   .n_chunks = no_chunks,
                                   .locate = no_chunk_at,
                                   .extent = no_extent};
    zarr_context *ctx = NULL;
    zarr_error err;
    zarr_status st = zarr_context_create(&ctx, NULL, &err);

    if (st == ZARR_OK)
        st = zarr_context_register_codec_spec(ctx, cut(&spec, OLD_SPEC_BYTES - missing),
                                              "old", &err);
    if (missing == 0 && st == ZARR_OK)
        st = zarr_context_register_codec_impl(ctx, cut(&impl, OLD_IMPL_BYTES), "old",
                                              &err);
    if (missing == 0 && st == ZARR_OK)
        st = zarr_context_register_grid(ctx, cut(&grid, OLD_GRID_BYTES), "old", &err);
    zarr_context_free(ctx);
    return st;
}

int main(void)
{
    int n_failed = 0;
    uint32_t old = sizeof(struct old_options);
    uint32_t now = sizeof(zarr_context_options);
    uint32_t longer = now + 64;

    if (make_edge() != 0 || longer > MAX_OPTIONS_BYTES) {
        printf("cannot lay out the test\n");
        return 1;
    }
    n_failed += expect("older, shorter options", open_with(old, old, 0), ZARR_OK);
    n_failed += expect("today's options", open_with(now, now, 0), ZARR_OK);
    n_failed += expect("newer, longer options that ask for nothing new",
                       open_with(longer, longer, 0), ZARR_OK);
    n_failed += expect("newer, longer options with an unknown wish",
                       open_with(longer, longer, 1), ZARR_ERR_UNSUPPORTED);
    n_failed +=
        expect("options whose size was not set", open_with(now, 0, 0), ZARR_ERR_ABI);
    n_failed += expect("shorter structs to fill", given_structs(16), 0);
    n_failed +=
        expect("longer structs to fill", given_structs(sizeof(zarr_limits) + 64), 0);
    n_failed += expect("older, shorter tables of plug-ins", register_old(0), ZARR_OK);
    n_failed += expect("tables shorter than ever", register_old(8), ZARR_ERR_ABI);
    return n_failed != 0;
}
