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
    ZARR_ERR_INVALID = -3, /**< an argument, an option or metadata to write is wrong */
    /** the request is legal, but this build cannot do it; the message names the codec,
     * data type or other extension that is missing */
    ZARR_ERR_UNSUPPORTED = -4,
    /** the stored bytes are not what the format or the metadata promises */
    ZARR_ERR_CORRUPT = -5,
    ZARR_ERR_IO = -6,        /**< the store failed; `os_code` has the cause */
    ZARR_ERR_NO_MEMORY = -7, /**< an allocation failed */
    /** the input exceeds a limit. If it is a member of `zarr_limits`, the message and the
     * part ZARR_ERROR_SETTING name it */
    ZARR_ERR_LIMIT = -8,
    ZARR_ERR_DEVICE = -9, /**< a device or its driver failed */
    /** the request was cancelled, or a child process inherited it through fork() */
    ZARR_ERR_CANCELLED = -10,
    ZARR_ERR_ABI = -11,      /**< a `struct_size` or an ABI number does not fit */
    ZARR_ERR_INTERNAL = -12, /**< the library has a bug */
    /** another writer changed the same node or key: read it again, then retry */
    ZARR_ERR_CONFLICT = -13,
    /** this memory cannot be used here: pass memory of another kind */
    ZARR_ERR_MEMORY_KIND = -14,
    /** the store refuses access, such as with EACCES or EPERM in `os_code`: check
     * permissions or credentials */
    ZARR_ERR_DENIED = -15
};

enum {
    ZARR_ERROR_MESSAGE_BYTES = 484
};

/** The parts of an error: indexes of `zarr_error.part`. */
enum {
    /** path of the node: "/a/b". zarr_error_text() adds the slash if the message lacks
     * it. For the root the part may be absent */
    ZARR_ERROR_PATH = 0,
    ZARR_ERROR_KEY = 1, /**< key in the store: "a/b/c/0/1" */
    /** coordinates of a chunk of a shard in the array's grid of chunks: "0,3" */
    ZARR_ERROR_CHUNK = 2,
    ZARR_ERROR_FIELD = 3, /**< name of the field of a struct type */
    /** name of the setting that the user can change to avoid the error. It is a limit
     * that the input exceeds (a member of `zarr_limits`) or "memory_bytes" (a member of
     * `zarr_context_options` and of `zarr_tuning`). Or it is "locks" or "symlinks"
     * (members of `zarr_store_options`) */
    ZARR_ERROR_SETTING = 4,
    ZARR_ERROR_PARTS = 5 /**< how many parts there are */
};

/** Where a part is in `zarr_error.message`. */
typedef struct zarr_error_part {
    uint16_t offset, bytes; /**< `bytes` 0: the error does not have this part */
} zarr_error_part;

/** What failed: the operation on a store, or the work on a chunk. */
enum {
    ZARR_OPERATION_NONE = 0,   /**< neither, or not known */
    ZARR_OPERATION_OPEN = 1,   /**< opening a store */
    ZARR_OPERATION_READ = 2,   /**< reading a value of a store, or its length */
    ZARR_OPERATION_WRITE = 3,  /**< writing a value */
    ZARR_OPERATION_ERASE = 4,  /**< removing a key, or all keys below a prefix */
    ZARR_OPERATION_LIST = 5,   /**< listing keys */
    ZARR_OPERATION_LOCK = 6,   /**< waiting for the lock of a key */
    ZARR_OPERATION_RENAME = 7, /**< moving all keys below a prefix */
    ZARR_OPERATION_FLUSH = 8,  /**< making writes durable */
    ZARR_OPERATION_DECODE = 9, /**< decoding a chunk, or the index of a shard */
    ZARR_OPERATION_ENCODE = 10 /**< encoding a chunk, or the index of a shard */
};

/**
 * Tells why a call failed. The caller owns the struct, usually on its stack, and passes
 * its address as the last argument of a call. A call that fails fills it; a call that
 * succeeds does not change it. It has 528 bytes, and its layout never changes.
 *
 * A program can get the node, the key and so on as parts of `message`, which
 * zarr_error_text() copies. A part is absent if the failing code does not know it, or if
 * a long message was cut before it. zarr_array_block_of_key() turns the key of a block
 * into the coordinates of the block in the grid of blocks.
 * @see zarr_status_text()
 */
typedef struct zarr_error {
    zarr_status code; /**< what the call returned, one of ZARR_ERR_* */
    int32_t os_code;  /**< an errno, an HTTP status, or a code of a driver or a store; 0:
                       * none */
    uint32_t os_domain; /**< what `os_code` is, one of ZARR_OS_* */
    uint32_t operation; /**< what failed, one of ZARR_OPERATION_* */
    uint64_t item;      /**< of a call with several selections (zarrc/parts.h): index of
                         * the first one that failed */
    zarr_error_part part[ZARR_ERROR_PARTS]; /**< at the index ZARR_ERROR_PATH and so on */
    char message[ZARR_ERROR_MESSAGE_BYTES]; /**< one line of UTF-8 text, terminated */
} zarr_error;

/** Initialiser: no error. It is optional, because a call that fails sets all members. */
#define ZARR_ERROR_INIT                                                                  \
    {                                                                                    \
        ZARR_OK, 0, 0, 0, 0, {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}},                   \
        {                                                                                \
            0                                                                            \
        }                                                                                \
    }

/** What `zarr_error.os_code` is. */
enum {
    ZARR_OS_NONE = 0,   /**< nothing */
    ZARR_OS_ERRNO = 1,  /**< an errno */
    ZARR_OS_HTTP = 2,   /**< a status of HTTP */
    ZARR_OS_DEVICE = 3, /**< a code of a device's driver */
    ZARR_OS_STORE = 4   /**< a code of the store of a plug-in or an application */
};

/**
 * Returns the short English name of a status, such as "not found".
 * @param status any number
 * @return static text; "unknown" for a number that is not a status
 * @see zarr_error
 */
ZARR_API const char *zarr_status_text(zarr_status status);

/**
 * Copies a part of an error's message, and ends it with a NUL.
 * @param err an error that a call has filled; not NULL
 * @param part one of ZARR_ERROR_PATH, ZARR_ERROR_KEY, ZARR_ERROR_CHUNK,
 * ZARR_ERROR_FIELD and ZARR_ERROR_SETTING
 * @param text receives as much as fits; may be NULL if `cap` is 0
 * @param cap size of `text` in bytes
 * @return length of the part without the NUL; 0: the error has no such part
 * @see zarr_error
 */
ZARR_API size_t zarr_error_text(const zarr_error *err, uint32_t part, char *text,
                                size_t cap);

/**
 * Gives the coordinates of the chunk that an error is about. They count in the array's
 * grid of chunks, as those of zarr_array_chunk_extent() do.
 * @param err an error that a call has filled; not NULL
 * @param chunk receives one coordinate for each dimension; room for ZARR_MAX_RANK
 * @return number of dimensions; 0: the error is about a whole block, or about no chunk
 */
ZARR_API int32_t zarr_error_chunk(const zarr_error *err, uint64_t *chunk);

ZARR_END_DECLS

#endif
