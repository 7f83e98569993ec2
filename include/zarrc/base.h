/*
 * zarrc/base.h - what every public header needs: linkage, fixed-width types,
 * and the rule by which structs grow.
 *
 * Structs that begin with `struct_size` grow at their end only. Set the member
 * with the struct's _INIT macro; every other member's default is zero. A short
 * struct (older caller) means "defaults for the rest"; a longer one (newer
 * caller) is accepted while the part this library does not know is zero, else
 * the call fails with ZARR_ERR_UNSUPPORTED: a wish is never silently ignored.
 *
 * Words used in every comment. borrowed: stays the caller's, valid for the
 * call (or as long as stated). owned: the caller frees it. moved: belongs to
 * the callee from here on, also when the call fails. Thread classes. frozen:
 * share freely between threads. solo: one thread at a time. shared: locks
 * inside, use from any thread.
 */
#ifndef ZARRC_BASE_H
#define ZARRC_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(ZARR_STATIC)
#    ifdef ZARR_BUILDING
#        define ZARR_API __declspec(dllexport)
#    else
#        define ZARR_API __declspec(dllimport)
#    endif
#elif defined(__GNUC__)
#    define ZARR_API __attribute__((visibility("default")))
#else
#    define ZARR_API
#endif

#if defined(__GNUC__)
#    define ZARR_MUST_CHECK         __attribute__((warn_unused_result))
#    define ZARR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#    define ZARR_MUST_CHECK
#    define ZARR_PRINTF(fmt, first)
#endif

#ifdef __cplusplus
#    define ZARR_BEGIN_DECLS extern "C" {
#    define ZARR_END_DECLS   }
#else
#    define ZARR_BEGIN_DECLS
#    define ZARR_END_DECLS
#endif

/** Initialiser of a struct that begins with its size: all other members zero. */
#ifdef __cplusplus
#    define ZARR_SIZE_FIRST(type)                                                        \
        {                                                                                \
            sizeof(type)                                                                 \
        }
#else
#    define ZARR_SIZE_FIRST(type)                                                        \
        {                                                                                \
            .struct_size = sizeof(type)                                                  \
        }
#endif

/** Highest rank of an array; DLPack and NumPy 2 agree on 64. */
#define ZARR_MAX_RANK 64

#endif
