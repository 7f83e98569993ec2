/*
 * dtype/refusals.c - data types that real files name and that this library refuses on
 * purpose, each with its reason: v3 names, v2 and NumPy types without byte order. Rows of
 * "elements" are for lists only. The code that finds such elements makes their errors.
 */
#include "dtype_int.h"

#define LONG_DOUBLE "long double; its layout differs between machines"

const struct zr_refusal zr_dtype_refused[] = {
    {"data type", "f12", LONG_DOUBLE},
    {"data type", "f16", LONG_DOUBLE},
    {"data type", "c24", LONG_DOUBLE},
    {"data type", "c32", LONG_DOUBLE},
    {"data type", "g", LONG_DOUBLE},
    {"data type", "G", LONG_DOUBLE},
    {"data type", "float80", LONG_DOUBLE},
    {"data type", "float96", LONG_DOUBLE},
    {"data type", "float128", LONG_DOUBLE},
    {"data type", "longdouble", LONG_DOUBLE},
    {"data type", "complex256", LONG_DOUBLE},
    {"data type", "O", "Python objects, and no filter says how they are stored"},
    {"data type", "json", ZR_REFUSED_DRAFT("9")},
    {"data type", "binary_fixed_point", ZR_REFUSED_DRAFT("40")},
    {"data type", "label_multiset", ZR_REFUSED_DRAFT("55")},
    {"data type", "fixed_size_list", ZR_REFUSED_DRAFT("62")},
    {"data type", "vlen-ndarray", ZR_REFUSED_DRAFT("71")},
    {"elements", "S0, U0, V0",
     "elements of zero bytes, which v2 permits and which hold nothing"},
    {"elements", "struct with an empty subarray",
     "a field whose shape has a zero, which holds nothing"},
    {NULL, NULL, NULL},
};
