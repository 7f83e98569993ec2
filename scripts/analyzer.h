/*
 * scripts/analyzer.h - told to clang-tidy about src/, included by scripts/tidy after
 * base/base.h. The analyzer sees one file at a time, so it must be told that a
 * failure is never ZARR_OK; else it follows paths behind a failed allocation.
 */
#define zr_fail(err, status, ...)                                                        \
    ((zr_fail)(err, status, __VA_ARGS__), (zarr_status)(status))
#define zr_fail_memory(err, bytes) ((zr_fail_memory)(err, bytes), ZARR_ERR_NO_MEMORY)
