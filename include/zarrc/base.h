/**
 * @file
 * What every public header needs: linkage, fixed-width types, and initialisers of structs
 * that grow. zarrc/zarrc.h explains the words of all comments: borrowed, owned, moved;
 * frozen, shared, solo.
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

/**
 * Initialiser of a struct that begins with its size: all other members zero. In C++ it is
 * an expression, because an initialiser list of C++17 cannot name a member.
 */
#ifdef __cplusplus
#    define ZARR_SIZE_FIRST(type) zarr_size_first<type>()

#    if __cplusplus >= 201402L
#        define ZARR_CONSTEXPR constexpr
#    else
#        define ZARR_CONSTEXPR inline
#    endif

extern "C++" {
/** The value of ZARR_SIZE_FIRST() in C++. */
template <typename T> ZARR_CONSTEXPR T zarr_size_first()
{
    T value = T();

    value.struct_size = static_cast<uint32_t>(sizeof(T));
    return value;
}
}
#else
#    define ZARR_SIZE_FIRST(type)                                                        \
        {                                                                                \
            .struct_size = sizeof(type)                                                  \
        }
#endif

/** The most dimensions of an array. DLPack and NumPy 2 allow 64 as well. */
#define ZARR_MAX_RANK 64

#endif
