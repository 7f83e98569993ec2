/*
 * unit/array/foreign.h - extensions that an application registers: the array->array
 * codecs test.neg (inverts all bits) and test.mirror (reverses the elements), the
 * array->bytes codec test.pack (inverts all bits), the bytes->bytes codec test.turn,
 * which can decode parts, and the chunk key encoding test.keys.
 */
#ifndef ZR_FOREIGN_H
#define ZR_FOREIGN_H

#include "array_test.h"

extern atomic_int n_partial,
    n_whole; /* calls of test.turn that decoded a part, and the whole */

/* Like world_begin(), but the context has these extensions registered. Opens no
 * store. */
void foreign_world(struct world *w, enum world_sort sort);

#endif
