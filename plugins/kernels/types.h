/*
 * kernels/types.h - what kernels read: descriptions of work, which the host writes and
 * trusts, and the statuses that they write. No description has a pointer: places are
 * bytes from the start of a buffer. All structs have the same layout on every target.
 */
#ifndef K_TYPES_H
#define K_TYPES_H

enum {
    K_RANK = 8,
    K_SPLITS = 16 /* most streams in a block of blosc */
};

/* What a kernel says of a chunk. Kernels write only damage: the host clears the statuses
 * before a launch, and any number of streams may share the status of their chunk. */
enum {
    K_OK = 0,
    K_BAD_INPUT = 1,  /* it ends too early, or goes on after the end */
    K_BAD_OFFSET = 2, /* a match begins before the output */
    K_TOO_LONG = 3,   /* it decodes to more bytes than metadata gives */
    K_TOO_SHORT = 4,
    K_BAD_LENGTH = 5,  /* a length in a header is not the one that metadata gives */
    K_BAD_HEADER = 6,  /* no header of this format */
    K_BAD_SUM = 7,     /* the checksum differs */
    K_BAD_PADDING = 8, /* packbits counts other padding bits */
    K_UNSUPPORTED = 9, /* a valid header of a chunk that only other code decodes */
    K_STATUSES
};

/* A strided box of n elements. The host fills it in, and kernels_box_ready() (boxes.h)
 * then orders its dimensions and sets the last three fields. */
struct k_box {
    k_u64 n, dst_at, src_at; /* bytes to the first elements */
    k_u64 shape[K_RANK];
    k_i64 dst[K_RANK], src[K_RANK]; /* strides in bytes */
    k_u32 ndim, item_bytes;
    k_u32 swap_bytes; /* units of an element whose bytes are reversed; 0 and 1: none */
    k_u32 piece; /* elements of a unit of work; 0: up to sixteen bytes of a row, which is
                    contiguous on both sides */
    k_u64 units, in_row; /* of the box, and of a row: the last dimension */
    k_u32 turn; /* the dimension that neighbouring units follow; ndim: the last one */
    k_u32 unused;
};

/* Bytes that are copied, or compared. */
struct k_run {
    k_u64 src, dst, bytes;
};

/* How the bytes of a stream are decoded. */
enum {
    K_STORED = 0, /* they are the output */
    K_LZ4 = 1,    /* a block of LZ4 */
    K_LZ4_HEADED =
        2, /* a block after its decoded length, four bytes, as numcodecs has it */
    K_SNAPPY = 3,
    K_BLOSCLZ = 4,
    K_DAMAGED = 5, /* not at all: src_bytes is the status */
    K_ZLIB = 6,    /* by other code only */
    K_ZSTD = 7,
    K_GZIP = 8
};
/* A stream and the place of its output. */
struct k_stream {
    k_u64 src, src_bytes, dst, dst_bytes;
    k_u32 how, number; /* `number`: place of its status */
};

/* Elements, and their bytes or bits in planes. item_bytes of 0 and 1: without `bits` the
 * bytes are copied. Bytes after the last whole element stay in place. */
struct k_planes {
    k_u64 src, dst, bytes;
    k_u32 item_bytes;
    k_u32 bits; /* planes of bits, if there are a multiple of eight elements */
};

#endif
