/*
 * base/error.h - a part of the door: statuses and errors, the control flow of failures,
 * calls of foreign functions, and names that are refused.
 */
#ifndef ZR_BASE_ERROR_H
#define ZR_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zarrc/base.h>
#include <zarrc/error.h>

/* These assign to `st` and jump to `out`: ZR_TRY() if `expr` failed, the others always.
 * ZR_FAIL() takes the arguments of zr_fail(); those of like names go with zr_fail_limit()
 * and zr_fail_memory(). */
#define ZR_TRY(expr)                                                                     \
    do {                                                                                 \
        st = (expr);                                                                     \
        if (st != ZARR_OK)                                                               \
            goto out;                                                                    \
    } while (0)
#define ZR_LEAVE(status)                                                                 \
    do {                                                                                 \
        st = (status);                                                                   \
        goto out;                                                                        \
    } while (0)
#define ZR_FAIL(...)        ZR_LEAVE(zr_fail(__VA_ARGS__))
#define ZR_FAIL_LIMIT(...)  ZR_LEAVE(zr_fail_limit(__VA_ARGS__))
#define ZR_FAIL_MEMORY(...) ZR_LEAVE(zr_fail_memory(__VA_ARGS__))

/* Returns the status of a call that failed: for functions that own nothing to free. */
#define ZR_CHECK(expr)                                                                   \
    do {                                                                                 \
        const zarr_status status_ = (expr);                                              \
        if (status_ != ZARR_OK)                                                          \
            return status_;                                                              \
    } while (0)

/* In a public function that returns a status: refuses a handle that is NULL. */
#define ZR_NEED(handle, err)                                                             \
    do {                                                                                 \
        if (!(handle))                                                                   \
            return zr_fail(err, ZARR_ERR_INVALID, "%s(): %s is NULL", __func__,          \
                           #handle);                                                     \
    } while (0)

/* Fills err (may be NULL) and returns status, for use as `return zr_fail(...)`. Long text
 * is cut at a UTF-8 boundary. Messages are one line: control characters become '?'. The
 * arguments may quote err->message. */
zarr_status zr_fail(zarr_error *err, zarr_status status, const char *fmt, ...)
    ZARR_PRINTF(3, 4);
/* The same with the errno of a failed system call; ": strerror" is appended to the text.
 * ENOMEM gives NO_MEMORY whatever `status` says, and EACCES and EPERM give DENIED in
 * place of IO; ENOENT and ENOTDIR do not change it. */
/* The kernel's own "not supported", which NFS and FUSE pass to programs; strerror() does
 * not know it. */
#define ZR_ENOTSUPP 524
zarr_status zr_fail_os(zarr_error *err, zarr_status status, int os_code, const char *fmt,
                       ...) ZARR_PRINTF(4, 5);
/* True for IO and DENIED: the store failed. */
bool zr_is_store_failure(zarr_status st);
zarr_status zr_fail_memory(zarr_error *err, uint64_t bytes);
/* LIMIT: "<text> (limit NAME is VALUE)". The name, a member of zarr_limits or
 * "memory_bytes", becomes the part ZARR_ERROR_SETTING. Only for limits that the user can
 * raise. */
zarr_status zr_fail_limit(zarr_error *err, const char *name, uint64_t value,
                          const char *fmt, ...) ZARR_PRINTF(4, 5);
/* Puts text before the message that err has: "<prefix>: <message>".
 * Sets the code to `status` and returns it; os_code and item stay. Does nothing if status
 * is OK. */
zarr_status zr_prefix(zarr_error *err, zarr_status status, const char *fmt, ...)
    ZARR_PRINTF(3, 4);
/* The same, and says which parts the text has; the offsets count from its beginning. A
 * part that the message has already stays. */
struct zr_text_part {
    size_t offset, bytes;
};
zarr_status zr_prefix_parts(zarr_error *err, zarr_status status,
                            const struct zr_text_part part[ZARR_ERROR_PARTS],
                            const char *fmt, ...) ZARR_PRINTF(4, 5);
/* The prefix is the key. */
zarr_status zr_prefix_key(zarr_error *err, zarr_status status, const char *key);
/* Says that the message of err (may be NULL) has this part at the offset. Does nothing if
 * the part is known already, or if another text is there, because the message was cut. */
void zr_error_mark(zarr_error *err, uint32_t which, size_t offset, const char *text);
/* Says that the message has "(option NAME)", the part ZARR_ERROR_SETTING. */
void zr_error_mark_option(zarr_error *err, const char *name);
/* If the message has a key below this path, says that it has the path, too. */
void zr_error_mark_path(zarr_error *err, const char *path);
/* Sets the operation that failed, unless a lower room did. err may be NULL. */
void zr_error_operation(zarr_error *err, uint32_t operation);
/* No error: for functions of plug-ins and applications, which may set some members. */
void zr_error_clear(zarr_error *err);
/* Removes from err what such a function cannot have meant. */
void zr_error_distrust(zarr_error *err);
/* Copies `said` to err (may be NULL) unless status is OK; returns status. For calls some
 * of whose failures are expected and must not change err. */
zarr_status zr_pass(zarr_error *err, zarr_status status, const zarr_error *said);
/*
 * Surrounds a call of a foreign function (of a plug-in or an application). The function
 * gets the result of zr_foreign_begin() as its err. If it fails, zr_foreign_fail()
 * copies its text to the caller's err, or says that `who` (fmt) failed if there is no
 * text. An unknown status becomes INTERNAL, and so does CANCELLED if no caller cancelled.
 * If the function succeeds, the caller's err does not change.
 */
struct zr_foreign {
    zarr_error *err;
    zarr_error said;
};
zarr_error *zr_foreign_begin(struct zr_foreign *f, zarr_error *err);
zarr_status zr_foreign_status(zarr_status st, bool cancelled);
zarr_status zr_foreign_fail(struct zr_foreign *f, zarr_status st, bool cancelled,
                            const char *fmt, ...) ZARR_PRINTF(4, 5);
/* "<who> broke its contract: <how>": a bug of a plug-in or an application. */
#define ZR_BROKE "broke its contract"
/* For bugs of the library only: returns INTERNAL in all builds, never aborts. */
#define zr_internal(err)                                                                 \
    zr_fail((err), ZARR_ERR_INTERNAL, "internal error at %s:%d", __FILE__, __LINE__)

/* ---- refusals ---------------------------------------------------------------- */

/* A name that files have and that the library refuses, with the reason. The rooms have
 * tables of these, so that errors and the status pages give the same reason. A name may
 * end in '*', which stands for any rest. A table ends with kind NULL. The tables are
 * searched last: a plug-in may register such a name, and then it is not refused. */
struct zr_refusal {
    const char *kind, *name, *reason;
};
/* The reason for a pull request of zarr-developers/zarr-extensions that is not merged:
 * data written by one version of it may mean something else in the next version. */
#define ZR_REFUSED_DRAFT(pull)                                                           \
    "a draft (zarr-extensions pull request " pull ") that may still change"
/* The row for this name, or NULL. */
const struct zr_refusal *zr_refusal_find(const struct zr_refusal *table, const char *kind,
                                         const char *name);
/* UNSUPPORTED: `<kind> "<name>" is refused: <reason>`, or `... is not known`. */
zarr_status zr_fail_refused(zarr_error *err, const struct zr_refusal *table,
                            const char *kind, const char *name);

#endif
