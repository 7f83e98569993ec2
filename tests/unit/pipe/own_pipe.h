/*
 * unit/pipe/own_pipe.h - an application's pipeline, "test.own": it fetches, decodes and
 * scatters segment by segment, and encodes and puts unit by unit, with one call for each
 * step. It overwrites what it fetched.
 */
#ifndef ZR_OWN_PIPE_H
#define ZR_OWN_PIPE_H

#include "unit/pipe/pipe_test.h"

#include <stdbool.h>

struct own_counts {
    atomic_int reads, writes, encoded, fetched;
    /* Failed expectations, counted because the steps run on other threads. */
    atomic_int wrong;
};
extern struct own_counts own_n;
extern bool own_reserves; /* takes bytes of the budget for each segment and unit */

extern const zarr_pipeline_vtable own_pipe; /* its self pointer: &own_n */

#endif
