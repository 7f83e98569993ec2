/*
 * base/options.h - a part of the door: structs that begin with their size, and limits.
 */
#ifndef ZR_BASE_OPTIONS_H
#define ZR_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <zarrc/base.h>
#include <zarrc/error.h>
#include <zarrc/limits.h>

enum zr_tail {
    ZR_TAIL_REFUSE,
    ZR_TAIL_IGNORE
}; /* for options and tensors; for vtables */
/* Copies a caller's size-first struct over dst (dst_bytes long, zeroed first, its own
 * struct_size set to dst_bytes). src NULL: all defaults. min_bytes: shortest ever
 * published. */
zarr_status zr_struct_read(void *dst, size_t dst_bytes, size_t min_bytes, const void *src,
                           enum zr_tail tail, const char *name, zarr_error *err);
/* UNSUPPORTED, "what: unknown flags ...", if others than the known ones are set. */
zarr_status zr_flags_check(uint32_t flags, uint32_t known, const char *what,
                           zarr_error *err);
/* Size of a struct of which `member` is the last member: for structs that have grown,
 * min_bytes of zr_struct_read() is the size through the last member of the first
 * release. */
#define ZR_SIZE_THROUGH(type, member)                                                    \
    (offsetof(type, member) + sizeof(((type *)NULL)->member))
/* The other direction: copies src to a caller's struct of dst_bytes, as much as fits,
 * fills the rest with zeros, and sets struct_size. */
void zr_struct_give(void *dst, size_t dst_bytes, const void *src, size_t src_bytes);

/* The greatest limits.shard_depth: each shard in a shard is a level of recursion. */
enum {
    ZR_SHARD_DEPTH_MAX = 64
};
/* The least defaults of chunk_bytes and variable_chunk_bytes: a context with more memory
 * takes half of it. */
#define ZR_CHUNK_BYTES_LEAST          (UINT64_C(2) << 30)
#define ZR_VARIABLE_CHUNK_BYTES_LEAST (UINT64_C(256) << 20)
/* The defaults of all members but encoded_bytes, chunk_bytes and variable_chunk_bytes. */
void zr_limits_default(zarr_limits *out);
/* Gives each member that is 0 the value of `from`. */
void zr_limits_complete(zarr_limits *limits, const zarr_limits *from);

#endif
