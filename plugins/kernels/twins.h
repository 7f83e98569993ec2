/*
 * kernels/twins.h - the kernels in host C, by name: what the tests compare other targets
 * with, and what a device without a compiler of its own can run.
 */
#ifndef K_TWINS_H
#define K_TWINS_H

#include <stdint.h>

/* A buffer, or a number if `bytes` is NULL. */
struct kernels_argument {
    void *bytes;
    uint64_t number;
};
/* Runs n work items of the kernel, one after the other. Returns 0 if no kernel has this
 * name. Thread class: any thread; the arguments belong to the call. */
int kernels_twin(const char *name, uint64_t n, const struct kernels_argument *arguments);

#endif
