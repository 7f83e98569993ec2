/*
 * chain/refused.c - codecs and storage transformers that real files or specifications
 * name and that this library refuses on purpose, each with its reason. An error gives the
 * reason; `zarrc list refused` and docs/status/ show the table. Names are v2 ids; the v3
 * name "numcodecs.<id>" is refused with them. A plug-in may register such a name. Rows of
 * "elements" are for lists only. The code that finds such elements makes their errors.
 */
#include "chain/chain_int.h"

const struct zr_refusal zr_codec_refused[] = {
    {"codec", "pickle", "decoding it would run whatever code the file brings"},
    {"codec", "json", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "msgpack", "numcodecs before 0.6; its chunks do not say their shape"},
    {"codec", "imagecodecs_*",
     "a codec of the Python package imagecodecs; nothing describes its bytes"},
    {"codec", "szip",
     "NCZarr leaves its scan lines to the netCDF dimensions, which the array's metadata "
     "does not hold"},
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
    {"codec", "jpeg*", "pictures, which no registered codec describes"},
    {"elements", "json2, msgpack2",
     "only text of any length (|O), bools, integers and floats of 16 to 64 bits are "
     "supported, and little-endian ones only: no text of fixed length (<U3, |S3), no "
     "lists, objects or complex numbers, no None where it is not the fill value; with "
     "order F zarr-python reads other elements than it wrote"},
    {"elements", "json2, encoding",
     "texts in other encodings than utf-8 and ascii, as Python may write them, are not "
     "read"},
    {"elements", "categorize, astype of floats or text",
     "the numbers of labels are integers of 8 to 64 bits"},
    {"elements", "categorize, dtype of another array",
     "dtype must be the array's in width and byte order: numcodecs makes that type of "
     "what it decodes, and zarr-python views or converts it"},
    {"elements", "vlen-array of |O", "Python objects in lists, which would be pickled"},
    {"elements", "shuffle, elementsize 0",
     "in v2 NCZarr and numcodecs differ in what it means (the data type's size, or "
     "none)"},
    {"elements", "delta of bools",
     "NumPy's differences of bools do not add up to them again"},
    {"elements", "delta",
     "either both dtype and astype must be complex or neither: NumPy refuses or loses "
     "the rest"},
    {"elements", "delta, astype of times or text",
     "delta is done on timedelta64 in its own unit, astype between integers and times, "
     "or times of one unit: NumPy sums no dates, and other units and text are not "
     "converted"},
    {"elements", "numcodecs filters of another type",
     "in v2 one as wide as the array's, in v3 integers and times only: what else "
     "zarr-python gets back there it converts, which changes it"},
    {"storage transformer", "concat-parts", ZR_REFUSED_DRAFT("39")},
    {"storage transformer", "chunk-manifest-json",
     "it sends reads to keys and files that the store itself does not hold"},
    {"storage transformer", "*",
     "the registry has none, and reading past one would give wrong values"},
    {NULL, NULL, NULL},
};
