/*
 * zarrc/error.h - how a call says that it failed.
 *
 * Every fallible function returns a zarr_status and takes a `zarr_error *err`
 * last; NULL means "don't care about the text". The caller owns the struct,
 * usually on its stack; there is nothing to free and nothing thread-local. On
 * success the struct is left as it was.
 */
#ifndef ZARRC_ERROR_H
#define ZARRC_ERROR_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/**
 * 0 is success; each negative value is a decision that the caller can take. Values never
 * change.
 */
typedef int32_t zarr_status;

enum {
    ZARR_OK = 0,
    ZARR_ERR_NOT_FOUND = -1, /**< no such node, key, member or file */
    /** something is there already and overwriting was not asked for */
    ZARR_ERR_EXISTS = -2,
    ZARR_ERR_INVALID = -3, /**< an argument, option or requested metadata is wrong */
    /** legal, but not in this build, or an unknown extension (named) */
    ZARR_ERR_UNSUPPORTED = -4,
    /** stored bytes are not what the format or the metadata says */
    ZARR_ERR_CORRUPT = -5,
    ZARR_ERR_IO = -6,        /**< the store failed; os_code has the cause */
    ZARR_ERR_NO_MEMORY = -7, /**< an allocation failed; the object is unchanged */
    /** over a limit of zarr_limits; the text names the knob */
    ZARR_ERR_LIMIT = -8,
    ZARR_ERR_DEVICE = -9, /**< a device or its driver failed */
    /** the request was cancelled, or inherited through fork */
    ZARR_ERR_CANCELLED = -10,
    ZARR_ERR_ABI = -11,      /**< struct_size or ABI number does not fit */
    ZARR_ERR_INTERNAL = -12, /**< a bug of ours */
    /** somebody else changed the object: read again and retry */
    ZARR_ERR_CONFLICT = -13,
    /** this memory cannot be used here: pass other memory or allow staging */
    ZARR_ERR_MEMORY_KIND = -14
};

enum {
    ZARR_ERROR_MESSAGE_BYTES = 488
};

/** 512 bytes, frozen layout. */
typedef struct zarr_error {
    zarr_status code;
    int32_t os_code;    /**< errno, HTTP status, or a driver's code; 0: none */
    uint32_t os_domain; /**< ZARR_OS_*: what os_code is */
    uint32_t reserved;
    uint64_t item;                          /**< first failed item of a batch */
    char message[ZARR_ERROR_MESSAGE_BYTES]; /**< UTF-8, one line, always terminated */
} zarr_error;

enum {
    ZARR_OS_NONE = 0,
    ZARR_OS_ERRNO = 1,
    ZARR_OS_HTTP = 2,
    ZARR_OS_DEVICE = 3
};

/**
 * Short English name of a status, e.g. "corrupt"; "unknown" for other numbers. Static
 * text.
 */
ZARR_API const char *zarr_status_text(zarr_status status);

ZARR_END_DECLS

#endif
