/*
 * codecs/codecs.c - the tables of this build: the specifications, the CPU
 * implementations, the reasons why an implementation is absent, and the versions of the
 * libraries that every build has. The names are in codecs_int.h.
 */
#include "codecs/codecs_int.h"
#include "codecs/codecs.h"

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <zstd.h>

/* The version that runs, where a library tells it. */
const char *zr_codecs_library_version(const char *impl)
{
    if (zr_streq(impl, "cpu.libzstd"))
        return ZSTD_versionString();
    if (zr_streq(impl, "cpu.liblz4"))
        return LZ4_versionString();
    if (zr_streq(impl, "cpu.libblosc"))
        return blosc_get_version_string();
    if (zr_streq(impl, "cpu.libdeflate")) /* it has no call that tells */
        return LIBDEFLATE_VERSION_STRING;
    return NULL;
}

#define SPEC_ROW(name) &zr_spec_##name,
#define IMPL_ROW(name) &zr_cpu_##name,

/* clang-format off */
const zarr_codec_spec_vtable *const zr_codecs_specs[] = {ZR_CODECS_SPECS(SPEC_ROW) NULL};

const zarr_codec_impl_vtable *const zr_codecs_impls[] = {
    ZR_CODECS_IMPLS(IMPL_ROW)
#if defined(ZR_HAVE_BZ2)
    IMPL_ROW(bz2)
#endif
#if defined(ZR_HAVE_LZMA)
    IMPL_ROW(lzma)
#endif
#if defined(ZR_HAVE_SNAPPY)
    IMPL_ROW(snappy)
#endif
#if defined(ZR_HAVE_ZFP)
    IMPL_ROW(zfp) IMPL_ROW(zfpy)
#endif
    NULL};
/* clang-format on */

/* A plug-in may register an implementation of any of these. */
const struct zr_impl_absence zr_codecs_absent[] = {
#if !defined(ZR_HAVE_BZ2)
    {"bz2", "this build has no libbz2 (Debian package libbz2-dev)"},
#endif
#if !defined(ZR_HAVE_LZMA)
    {"lzma", "this build has no liblzma (Debian package liblzma-dev)"},
#endif
#if !defined(ZR_HAVE_SNAPPY)
    {"snappy", "this build has no libsnappy (Debian package libsnappy-dev)"},
#endif
#if !defined(ZR_HAVE_ZFP)
    {"zfp", "this build has no libzfp (Debian package libzfp-dev)"},
    {"zfpy", "this build has no libzfp (Debian package libzfp-dev)"},
#endif
    {"pcodec", "its library, pco, is in Rust and has no form for C: a plug-in that "
               "registers an implementation of \"pcodec\" can provide it"},
    {"zarrs.gdeflate", "no library of Debian has GDeflate: a plug-in that registers an "
                       "implementation of \"zarrs.gdeflate\" can provide it"},
    {NULL, NULL},
};
