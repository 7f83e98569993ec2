/*
 * impl/element.c - decodes one element through array->array codecs, to find how a fill
 * value that these codecs changed reads. Each layout does this once; chunks never do.
 * Also compares elements with a fill value. Thread class: plain functions.
 */
#include "impl/impl_int.h"

#include <string.h>

/* Copies the representations of a whole chunk, with the shape of one element. */
static zarr_status element_reps(struct zr_chain_reps *out,
                                const struct zr_chain_reps *reps, uint32_t n,
                                const zarr_allocator *alloc, zarr_error *err)
{
    out->alloc = alloc;
    out->n = n;
    out->rep = zr_calloc(alloc, (size_t)n + 1, sizeof *out->rep);
    if (!out->rep)
        return zr_fail_memory(err, sizeof *out->rep);
    for (uint32_t i = 0; i <= n; i++) {
        zarr_chunk_spec *rep = &out->rep[i];

        *rep = reps->rep[i];
        rep->ndim = 1;
        rep->shape[0] = 1;
        rep->n_bytes = zarr_dtype_item_bytes(rep->dtype);
        rep->exact = 1;
    }
    return ZARR_OK;
}

static bool vlen_equal(const uint8_t *at, const uint8_t *pattern, uint32_t item_bytes)
{
    zarr_vlen item, other;

    memcpy(&item, at, sizeof item);
    memcpy(&other, pattern, sizeof other);
    return item.bytes == other.bytes &&
           memcmp(at + sizeof item, pattern + sizeof item, item_bytes - sizeof item) ==
               0 &&
           (item.bytes == 0 ||
            (item.data && memcmp(item.data, other.data, (size_t)item.bytes) == 0));
}

bool zr_elements_equal(const void *elements, uint64_t n, const void *pattern,
                       uint32_t item_bytes, bool variable)
{
    const uint8_t *at = elements;

    if (!variable)
        return zr_all_equal(elements, n, pattern, item_bytes);
    for (; n > 0; n--, at += item_bytes)
        if (!vlen_equal(at, pattern, item_bytes))
            return false;
    return true;
}

zarr_status zr_element_decode(const struct zr_impl_registry *impls,
                              const struct zr_chain *chain,
                              const struct zr_chain_reps *reps, uint32_t trust, void *out,
                              const zarr_allocator *alloc, zarr_error *err)
{
    const uint64_t bytes = zarr_dtype_item_bytes(reps->rep[0].dtype);
    const zarr_chunk_spec *stored = &reps->rep[chain->n];
    const uint64_t stored_bytes = zarr_dtype_item_bytes(stored->dtype);
    struct zr_thread_states ts = {.alloc = alloc};
    struct zr_buffer buffer[ZR_UNSIZED_BUFFERS] = {{0}}, element = {0};
    struct zr_unsized g = {.ts = &ts, .buffer = buffer};
    const struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU,
                                              .trust = trust};
    struct zr_chain_reps one = {0};
    struct zr_program *p = NULL;
    const zarr_memory dst = zr_mem_of_host(out, bytes);
    zarr_memory src, got;
    zarr_status st = ZARR_OK;

    ZR_TRY(element_reps(&one, reps, chain->n, alloc, err));
    ZR_TRY(zr_buffer_need(&element, stored_bytes, &ts, err));
    if (stored->fill)
        memcpy(element.p, stored->fill, (size_t)stored_bytes);
    else
        memset(element.p, 0, (size_t)stored_bytes);
    src = zr_mem_of_host(element.p, stored_bytes);
    ZR_TRY(zr_program_make_plain(&p, impls, chain, &one, &opts, alloc, err));
    ZR_TRY(zr_unsized_decode(p, &g, &src, &dst, &got, err));
out:
    for (size_t i = 0; i < ZR_COUNT(buffer); i++)
        zr_buffer_free(&buffer[i], &ts);
    zr_buffer_free(&element, &ts);
    zr_thread_states_close(impls, &ts);
    zr_program_free(p);
    zr_chain_reps_deinit(&one);
    return st;
}
