/*
 * dtype/spelling.c - NumPy's spellings of numbers besides type strings ("f4") and names
 * with a size ("float32"). Users may write them; stored metadata may not. "int" and the
 * like mean what NumPy 2 gives them on 64-bit machines.
 * Thread class: plain functions.
 */
#include "dtype_int.h"

#include <stdio.h>
#include <string.h>

bool zr_numpy_spelling(const char *text, const char **type)
{
    static const char *const rows[][2] = {
        /* blanks around each spelling */
        {" ? bool_ ", "b1"},
        {" b byte ", "i1"},
        {" B ubyte ", "u1"},
        {" h short ", "i2"},
        {" H ushort ", "u2"},
        {" i intc ", "i4"},
        {" I uintc ", "u4"},
        {" q int int_ longlong ", "i8"},
        {" Q uint ulonglong ", "u8"},
        {" e half ", "f2"},
        {" f single ", "f4"},
        {" d double float float_ ", "f8"},
        {" F csingle singlecomplex ", "c8"},
        {" D cdouble cfloat complex complex_ ", "c16"},
        {" l long n p intp L ulong N P uintp ", NULL},
    };
    char word[24];

    if (snprintf(word, sizeof word, " %s ", text) >= (int)sizeof word ||
        strchr(text, ' '))
        return false;
    for (size_t i = 0; i < ZR_COUNT(rows); i++)
        if (strstr(rows[i][0], word)) {
            *type = rows[i][1];
            return true;
        }
    return false;
}
