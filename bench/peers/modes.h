/* bench/peers/modes.h - what a worker is asked to do, over any engine. */
#ifndef BENCH_PEERS_MODES_H
#define BENCH_PEERS_MODES_H

#include "worker.h"

struct modes_state;

struct modes_state *modes_begin(struct job *job, const struct engine *engine);
void modes_before(struct modes_state *state);    /* opens; not timed */
double modes_run(struct modes_state *state);     /* the seconds of what counts */
uint64_t modes_after(struct modes_state *state); /* the checksum; closes */

#endif
