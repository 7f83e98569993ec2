/*
 * array/create/spec_read.c - reads a caller's array spec and refuses members that
 * contradict each other. Thread class: plain functions.
 */
#include "array/create/spec_int.h"

static zarr_status check_spec(const zarr_array_spec *s, zarr_error *err)
{
    const uint32_t known = ZARR_SPEC_OVERWRITE | ZARR_SPEC_NO_PARENTS |
                           ZARR_SPEC_INDEX_AT_START | ZARR_SPEC_IF_MISSING |
                           ZARR_SPEC_NO_SHARDS | ZARR_SPEC_KEEP_CHUNKS |
                           ZARR_SPEC_KEEP_FILL | ZARR_SPEC_CLAIM | ZARR_SPEC_CHECKSUM |
                           ZARR_SPEC_CONSOLIDATED;

    if (zr_flags_check(s->flags, known, "array spec", err) != ZARR_OK)
        return ZARR_ERR_UNSUPPORTED;
    if (s->flags & ZARR_SPEC_KEEP_CHUNKS && s->flags & ZARR_SPEC_OVERWRITE)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "KEEP_CHUNKS keeps chunks that OVERWRITE deletes");
    if (zr_format_check(s->zarr_format, err) != ZARR_OK)
        return ZARR_ERR_INVALID;
    if (s->ndim < 0 || s->ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID, "ndim %" PRId32 " is not in 0 to %d",
                       s->ndim, ZARR_MAX_RANK);
    if (s->order && s->order != 'C' && s->order != 'F')
        return zr_fail(err, ZARR_ERR_INVALID, "order must be 'C' or 'F'");
    if (s->separator && s->separator != '/' && s->separator != '.')
        return zr_fail(err, ZARR_ERR_INVALID, "separator must be '/' or '.'");
    return ZARR_OK;
}

static zarr_status check_members(const zarr_array_spec *s, zarr_error *err)
{
    if (s->document) {
        if (s->shape || s->chunk_shape || s->shard_shape || s->data_type ||
            s->fill_value || s->codecs || s->index_codecs || s->dimension_names ||
            s->key_encoding || s->separator || s->order || s->chunk_grid || s->like ||
            s->flags & ZARR_SPEC_CHECKSUM)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "a document is given: no other member of the spec may be");
        return ZARR_OK;
    }
    if (s->flags & ZARR_SPEC_NO_SHARDS && s->shard_shape)
        return zr_fail(err, ZARR_ERR_INVALID, "shard_shape is given, and NO_SHARDS too");
    if (s->like) /* checked again when the spec is complete */
        return ZARR_OK;
    if (!s->data_type)
        return zr_fail(err, ZARR_ERR_INVALID, "data_type is missing");
    if (s->ndim > 0 && !s->shape)
        return zr_fail(err, ZARR_ERR_INVALID, "shape is missing");
    if (s->zarr_format == 2 && s->chunk_grid)
        return zr_fail(err, ZARR_ERR_INVALID, "v2 arrays have no choice of chunk_grid");
    if (s->chunk_grid && s->shard_shape)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "chunk_grid and shard_shape both say what the shards are");
    if (s->separator && s->key_encoding && *s->key_encoding == '{')
        return zr_fail(err, ZARR_ERR_INVALID,
                       "key_encoding is given as an object: no separator may be");
    if (s->zarr_format == 2 && (s->shard_shape || s->index_codecs))
        return zr_fail(err, ZARR_ERR_INVALID, "v2 arrays have no shards");
    if (s->zarr_format == 2 && s->key_encoding)
        return zr_fail(err, ZARR_ERR_INVALID, "v2 arrays have no choice of key_encoding");
    if (!zr_spec_is_sharded(s) &&
        (s->index_codecs || s->flags & ZARR_SPEC_INDEX_AT_START))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "an index is described, but there are no shards");
    return ZARR_OK;
}

zarr_status zr_spec_read(zarr_array_spec *out, const zarr_array_spec *spec,
                         zarr_error *err)
{
    if (!spec)
        return zr_fail(err, ZARR_ERR_INVALID, "no array spec is given");
    ZR_CHECK(zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), spec, ZR_TAIL_REFUSE,
                            "zarr_array_spec", err));
    ZR_CHECK(check_spec(out, err));
    return check_members(out, err);
}
