/*
 * codec/refused.c - codecs and storage transformers that real files or specifications
 * name and that this library refuses on purpose, each with its reason. An error gives
 * the reason; `zarrc list refused` and docs/status/ show the table. v2 ids; the v3 name
 * "numcodecs.<id>" is refused with them. Whoever registers such a name gets it.
 */
#include "codec/codec_int.h"

const struct zr_refusal zr_codec_refused[] = {
    {"codec", "pickle", "decoding it would run whatever code the file brings"},
    {"codec", "json", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "msgpack", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "imagecodecs_*",
     "a codec of the Python package imagecodecs; nothing describes its bytes"},
    {"codec", "szip",
     "NCZarr leaves its scan lines to the netCDF dimensions, which the array's metadata "
     "does not hold"},
    {"storage transformer", "chunk-manifest-json",
     "it sends reads to keys and files that the store itself does not hold"},
    {"storage transformer", "*",
     "the registry has none, and reading past one would give wrong values"},
    {NULL, NULL, NULL},
};
