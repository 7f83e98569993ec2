/**
 * @file
 * How a call reports that it failed.
 */
#ifndef ZARRC_ERROR_H
#define ZARRC_ERROR_H

#include <zarrc/base.h>

ZARR_BEGIN_DECLS

/**
 * What a call returns: ZARR_OK, or one of ZARR_ERR_*, which are negative. The values
 * never change.
 */
typedef int32_t zarr_status;

/** Values of a status. */
enum {
    ZARR_OK = 0,             /**< the call succeeded */
    ZARR_ERR_NOT_FOUND = -1, /**< there is no such node, key, attribute or file */
    /** something exists already, and the caller did not ask to overwrite it */
    ZARR_ERR_EXISTS = -2,
    ZARR_ERR_INVALID = -3, /**< an argument, an option or the wanted metadata is wrong */
    /** the request is legal, but this build cannot do it; the message names the codec,
     * data type or other extension that is missing */
    ZARR_ERR_UNSUPPORTED = -4,
    /** the stored bytes are not what the format or the metadata promises */
    ZARR_ERR_CORRUPT = -5,
    ZARR_ERR_IO = -6,        /**< the store failed; `os_code` has the cause */
    ZARR_ERR_NO_MEMORY = -7, /**< an allocation failed; the object is unchanged */
    /** the input exceeds a member of `zarr_limits`, which the message names */
    ZARR_ERR_LIMIT = -8,
    ZARR_ERR_DEVICE = -9, /**< a device or its driver failed */
    /** the request was cancelled, or a child process inherited it through fork() */
    ZARR_ERR_CANCELLED = -10,
    ZARR_ERR_ABI = -11,      /**< a `struct_size` or an ABI number does not fit */
    ZARR_ERR_INTERNAL = -12, /**< the library has a bug */
    /** another writer changed the object: read it again, then retry */
    ZARR_ERR_CONFLICT = -13,
    /** this memory cannot be used here: pass memory of another kind */
    ZARR_ERR_MEMORY_KIND = -14
};

enum {
    ZARR_ERROR_MESSAGE_BYTES = 488
};

/**
 * Tells why a call failed. The caller owns the struct, usually on its stack, and passes
 * its address as the last argument of a call. A call that fails fills it; a call that
 * succeeds leaves it as it was. It has 512 bytes, and its layout never changes.
 * @see zarr_status_text()
 */
typedef struct zarr_error {
    zarr_status code;   /**< what the call returned, one of ZARR_ERR_* */
    int32_t os_code;    /**< an errno, an HTTP status or the code of a driver; 0: none */
    uint32_t os_domain; /**< what `os_code` is, one of ZARR_OS_* */
    uint32_t reserved;
    uint64_t item;                          /**< the first item of a batch that failed */
    char message[ZARR_ERROR_MESSAGE_BYTES]; /**< one line of UTF-8 text, terminated */
} zarr_error;

/** No error yet. A call that fails sets all members, so this is not required. */
#define ZARR_ERROR_INIT                                                                  \
    {                                                                                    \
        ZARR_OK, 0, 0, 0, 0,                                                             \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }

/** What `zarr_error.os_code` is. */
enum {
    ZARR_OS_NONE = 0,  /**< nothing */
    ZARR_OS_ERRNO = 1, /**< an errno */
    ZARR_OS_HTTP = 2,  /**< a status of HTTP */
    ZARR_OS_DEVICE = 3 /**< a code of a device's driver */
};

/**
 * Returns the short English name of a status, such as "not found".
 * @param status any number
 * @return static text; "unknown" for a number that is not a status
 * @see zarr_error
 */
ZARR_API const char *zarr_status_text(zarr_status status);

ZARR_END_DECLS

#endif
