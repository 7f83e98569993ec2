/*
 * base/log.h - a part of the door: the log of a context.
 */
#ifndef ZR_BASE_LOG_H
#define ZR_BASE_LOG_H

#include <stdint.h>

#include <zarrc/base.h>
#include <zarrc/context.h>

/* What a context passes to lower rooms; copied by value. fn NULL: no log. */
struct zr_log {
    zarr_log_fn fn;
    void *user;
    uint32_t level; /* ZARR_LOG_*: messages above it are dropped before formatting */
};
void zr_log(const struct zr_log *log, uint32_t level, const char *fmt, ...)
    ZARR_PRINTF(3, 4);

#endif
