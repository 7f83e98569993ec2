/*
 * unit/ctx/ctx_test.h - helpers of the tests of ctx: the error of the last call, and a
 * store that can be registered and that always fails to open.
 */
#ifndef ZR_CTX_TEST_H
#define ZR_CTX_TEST_H

#include "ctx/ctx.h"

static zarr_error terr;

#define assert_ok(call)                                                                  \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, terr.message);                                     \
    } while (0)

#define assert_status(call, want) assert_int_equal(call, want)

/* A set-up: no variable of the environment changes a context. */
static inline int clear_environment(void **state)
{
    static const char *const variables[] = {
        "ZARRC_MAX_THREADS",      "ZARRC_MEMORY_BYTES", "ZARRC_PIPELINE",
        "ZARRC_CODEC_PREFERENCE", "ZARRC_LOG_LEVEL",    "ZARRC_DEVICE_BYTES",
        "ZARRC_PINNED_BYTES",     "ZARRC_ALLOCATORS",   "ZARRC_MEMORY",
        "ZARRC_WAVE_BYTES"};

    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

static inline void own_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    (void)out;
}

static inline void own_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)op;
    (void)err;
}

static inline zarr_status own_open(void **self, zarr_context *ctx, const char *url,
                                   const zarr_store_options *opts,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    (void)self;
    (void)ctx;
    (void)url;
    (void)opts;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "no store");
}

#endif
