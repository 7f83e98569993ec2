/*
 * codecs/libraries.c - which versions of the libraries that every build has do the work:
 * those that run, where a library tells it. Thread class: shared.
 */
#include "codecs/codecs.h"

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <zstd.h>

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
