/*
 * tests/tuning.h - a zarr_tuning inside an expression, which lives as long as the block
 * that it is in: `.tuning = TUNING(.pipeline = "serial")`.
 */
#ifndef ZR_TESTS_TUNING_H
#define ZR_TESTS_TUNING_H

#include <zarrc/io.h>

#define TUNING(...)                                                                      \
    (&(const zarr_tuning){.struct_size = sizeof(zarr_tuning), __VA_ARGS__})

#endif
