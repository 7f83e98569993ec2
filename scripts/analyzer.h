/*
 * scripts/analyzer.h - facts about src/ for clang-tidy; scripts/tidy includes it after
 * base/base.h. The analyzer sees one file at a time. It must learn here that a failure is
 * never ZARR_OK, or it follows paths after a failed allocation.
 */
#define zr_fail(err, status, ...)                                                        \
    ((zr_fail)(err, status, __VA_ARGS__), (zarr_status)(status))
#define zr_fail_memory(err, bytes) ((zr_fail_memory)(err, bytes), ZARR_ERR_NO_MEMORY)
#define zr_fail_limit(err, name, value, ...)                                             \
    ((zr_fail_limit)(err, name, value, __VA_ARGS__), ZARR_ERR_LIMIT)
