/*
 * array/io/chain.c - chains of codecs by themselves (zarrc/chain.h): an array of one
 * chunk without a store, whose chunk the caller has. Thread class: shared.
 */
#include "array/create/spec_int.h"
#include "array/stored/stored_int.h"

#include <zarrc/chain.h>
#include <zarrc/chunks.h>

struct zarr_chain {
    zarr_array *array;
    zarr_context *ctx; /* counted */
    uint64_t bound;
};

static const uint64_t only_chunk[ZARR_MAX_RANK];

static zarr_status chain_spec(zarr_array_spec *s, const zarr_array_spec *spec,
                              zarr_error *err)
{
    zarr_array_spec copy;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(&copy, sizeof copy, 2 * sizeof(uint32_t), spec, ZR_TAIL_REFUSE,
                          "zarr_array_spec", err));
    if (copy.like || copy.document || copy.chunk_grid)
        ZR_FAIL(err, ZARR_ERR_INVALID, "a chain takes no like, document or chunk_grid");
    if (copy.ndim > 0 && !copy.chunk_shape)
        ZR_FAIL(err, ZARR_ERR_INVALID, "chunk_shape is NULL");
    copy.shape = copy.shard_shape ? copy.shard_shape : copy.chunk_shape;
    *s = copy;
out:
    return st;
}

/* The most bytes of the chunk, for elements in host memory. */
static zarr_status compute_chain_bound(zarr_chain *c, zarr_error *err)
{
    const struct zr_layout_key host = {.tensor = ZARR_DEVICE_CPU,
                                       .lent = ZARR_DEVICE_CPU};
    struct zr_array_state *s = zr_array_state_get(c->array);
    const struct zr_layout *l = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_layout(&l, c->array, s, &host, err));
    c->bound = l->level[0].unsized ? UINT64_MAX : l->level[0].encoded_bound;
out:
    zr_array_state_free(s);
    return st;
}

zarr_status zarr_chain_open(zarr_chain **out, zarr_context *ctx,
                            const zarr_array_spec *spec, zarr_error *err)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .empty_chunks = ZARR_EMPTY_CHUNKS_WRITE};
    zarr_array_spec s = ZARR_ARRAY_SPEC_INIT;
    zarr_chain *c = NULL;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(ctx, err);
    zr_ctx_seal(ctx);
    zr_str_init(&text, ctx->alloc);
    ZR_TRY(chain_spec(&s, spec, err));
    ZR_TRY(zr_spec_text(&text, ctx, &s, err));
    c = zr_calloc(ctx->alloc, 1, sizeof *c);
    if (!c)
        ZR_FAIL_MEMORY(err, sizeof *c);
    c->ctx = zarr_context_ref(ctx);
    ZR_TRY(zarr_array_open_document(&c->array, ctx, zr_str_text(&text), NULL, NULL, NULL,
                                    &o, err));
    ZR_TRY(compute_chain_bound(c, err));
    *out = c; /* moved */
    c = NULL;
out:
    zarr_chain_free(c);
    zr_str_deinit(&text);
    return st;
}

void zarr_chain_free(zarr_chain *chain)
{
    zarr_context *ctx = chain ? chain->ctx : NULL;

    if (!chain)
        return;
    zarr_array_free(chain->array);
    zr_free(ctx->alloc, chain);
    zarr_context_free(ctx);
}

uint64_t zarr_chain_bound(const zarr_chain *chain)
{
    return chain ? chain->bound : 0;
}

const char *zarr_chain_codecs(const zarr_chain *chain)
{
    return chain ? zarr_array_codecs(chain->array) : NULL;
}

/* ---- one chunk ---------------------------------------------------------- */

struct chain_put {
    zarr_context *ctx;
    zarr_memory *dst;
    uint64_t room;
};

static zarr_status put_chunk(void *user, const uint64_t *chunk, const zarr_memory *bytes,
                             zarr_error *err)
{
    const struct chain_put *p = user;

    ZR_UNUSED(chunk);
    if (!bytes)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "empty_chunks of the options would leave the chunk out");
    p->dst->bytes = bytes->bytes;
    if (bytes->bytes > p->room)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "the encoded chunk has %" PRIu64 " bytes, the room %" PRIu64,
                       bytes->bytes, p->room);
    return zarr_memory_copy(p->ctx, p->dst, bytes, bytes->bytes, err);
}

zarr_status zarr_chain_encode(zarr_chain *chain, const zarr_tensor *src, zarr_memory *dst,
                              const zarr_io_options *opts, zarr_error *err)
{
    ZR_NEED(chain, err);
    struct chain_put put = {.ctx = chain->ctx, .dst = dst, .room = dst->bytes};
    const zarr_block_sink sink = {
        .struct_size = sizeof sink, .fn = put_chunk, .user = &put};

    return zarr_array_encode(chain->array, NULL, src, NULL, &sink, opts, err);
}

zarr_status zarr_chain_decode(zarr_chain *chain, const zarr_memory *src,
                              const zarr_tensor *dst, const zarr_io_options *opts,
                              zarr_error *err)
{
    const zarr_block_batch in = {
        .struct_size = sizeof in, .n_blocks = 1, .blocks = only_chunk, .bytes = src};

    if (!src || !src->handle) /* a batch would take it for a missing chunk */
        return zr_fail(err, ZARR_ERR_INVALID, "the encoded chunk is NULL");
    return zarr_array_decode(chain->array, NULL, dst, &in, opts, err);
}
