/*
 * unit/pipe/own_pipe.h - a pipeline of an application's own, "test.own": fetch, decode
 * and scatter run by run, encode and put unit by unit, each step by itself.
 */
#ifndef ZR_OWN_PIPE_H
#define ZR_OWN_PIPE_H

#include "unit/pipe/pipe_test.h"

struct own_counts {
    atomic_int reads, writes, encoded, fetched;
    atomic_int wrong; /* expectations not met: the steps run on other threads */
};
extern struct own_counts own_n;

extern const zarr_pipeline_vtable own_pipe; /* its self: &own_n */

#endif
