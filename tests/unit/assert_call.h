/*
 * unit/assert_call.h - asserts the status of a call that fills the error `terr`.
 */
#ifndef ZR_TESTS_ASSERT_CALL_H
#define ZR_TESTS_ASSERT_CALL_H

#define assert_status(call, want)                                                        \
    do {                                                                                 \
        zarr_status got_ = (call);                                                       \
        if (got_ != (want))                                                              \
            fail_msg("%s: got \"%s\", wanted \"%s\": %s", #call, zarr_status_text(got_), \
                     zarr_status_text(want), terr.message);                              \
    } while (0)
#define assert_ok(call) assert_status(call, ZARR_OK)

#endif
