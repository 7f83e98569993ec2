/*
 * chain/refusals.c - codecs and storage transformers that real files or specifications
 * name and that this library refuses on purpose, each with its reason. An error gives the
 * reason; `zarrc list refused` and docs/status/ show the table. Names are v2 ids; the v3
 * name "numcodecs.<id>" is refused with them. A plug-in may register such a name. Rows of
 * "elements" are for lists only. The code that finds such elements makes their errors.
 */
#include "chain/chain_int.h"

const struct zr_refusal zr_codec_refused[] = {
    {"codec", "pickle", "decoding it would run code from the file"},
    {"codec", "json", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "msgpack", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "imagecodecs_*",
     "a codec of the Python package imagecodecs; its format is not documented"},
    {"codec", "nvcomp_*",
     "a codec of KvikIO (ANS, Bitcomp, Cascaded, Gdeflate, LZ4, Snappy) in the format of "
     "nvCOMP's managers, which NVIDIA does not document; nvcomp_batch can be read"},
    {"codec", "szip",
     "NCZarr takes its scan lines from the netCDF dimensions, which are not in the "
     "array's "
     "metadata"},
    {"codec", "lzw", ZR_REFUSED_DRAFT("16")},
    {"codec", "pad", ZR_REFUSED_DRAFT("36")},
    {"codec", "arrow-ipc", ZR_REFUSED_DRAFT("41")},
    {"codec", "n5_varlen", ZR_REFUSED_DRAFT("54")},
    {"codec", "label_multiset", ZR_REFUSED_DRAFT("55")},
    {"codec", "n5_label_multiset", ZR_REFUSED_DRAFT("56")},
    {"codec", "singleton_dim", ZR_REFUSED_DRAFT("58")},
    {"codec", "jpeg", ZR_REFUSED_DRAFT("66")},
    {"codec", "vlen-ndarray", ZR_REFUSED_DRAFT("71")},
    {"codec", "nanovdb", ZR_REFUSED_DRAFT("73")},
    {"codec", "jpeg*", "images, for which no codec is registered"},
    {"elements", "json2, msgpack2",
     "only text of any length (|O), bools, integers and floats of 16 to 64 bits are "
     "supported, and little-endian ones only: no text of fixed length (<U3, |S3), no "
     "complex numbers; in |O no bytes, extensions or keys that are not text, which JSON "
     "lacks; with order F zarr-python reads other elements than it wrote"},
    {"elements", "json2, encoding",
     "only utf-8 and ascii are supported; Python may write other encodings"},
    {"elements", "categorize, astype of floats or text",
     "labels are stored as integers of 8 to 64 bits"},
    {"elements", "categorize, dtype of another array",
     "dtype must have the array's width and byte order: numcodecs decodes to dtype, and "
     "zarr-python views or converts the result"},
    {"elements", "vlen-array of |O", "Python objects in lists, which would be pickled"},
    {"elements", "delta of bools",
     "NumPy's differences of bools do not add up to the original values"},
    {"elements", "delta",
     "either both dtype and astype must be complex or neither: NumPy refuses or loses "
     "the rest"},
    {"elements", "delta, astype of times or text",
     "delta works on timedelta64 of one unit, astype between integers and times or "
     "between times of one unit: NumPy cannot add dates, and other units and text are "
     "not "
     "converted"},
    {"elements", "numcodecs filters of another type",
     "the type must have the array's width in v2, and be an integer or time in v3, where "
     "zarr-python converts decoded elements of other types, which changes them"},
    {"storage transformer", "concat-parts", ZR_REFUSED_DRAFT("39")},
    {"storage transformer", "chunk-manifest-json",
     "it sends reads to keys and files outside the store"},
    {"storage transformer", "*",
     "none is registered, and ignoring one would give wrong values"},
    {NULL, NULL, NULL},
};
