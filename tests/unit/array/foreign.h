/*
 * unit/array/foreign.h - pieces of an application's own: codecs test.neg (~x) and
 * test.mirror (elements from back to front), array to array, test.pack (~x), array to
 * bytes, test.turn, bytes to bytes, which can decode parts; chunk keys test.keys.
 */
#ifndef ZR_FOREIGN_H
#define ZR_FOREIGN_H

#include "array_test.h"

extern atomic_int n_partial, n_whole; /* calls of test.turn: of parts, of all */

/* As world_begin(), with a context that has them; no store is opened. */
void foreign_world(struct world *w, enum world_sort sort);

#endif
