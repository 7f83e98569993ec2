/*
 * impl/absent.c - codecs that this build knows and cannot do: which library is
 * missing, for the message. An implementation that a plug-in registers does them
 * all the same.
 */
#include "impl/impl_int.h"

static const struct {
    const char *codec, *why;
} absent_codecs[] = {
#if !defined(ZR_HAVE_BZ2)
    {"bz2", "this build has no libbz2 (Debian package libbz2-dev)"},
#endif
#if !defined(ZR_HAVE_LZMA)
    {"lzma", "this build has no liblzma (Debian package liblzma-dev)"},
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

const char *zr_impl_absent(const char *codec)
{
    for (size_t i = 0; absent_codecs[i].codec; i++)
        if (zr_streq(absent_codecs[i].codec, codec))
            return absent_codecs[i].why;
    return NULL;
}
