/* bench/peers/slow_store.h - a store whose reads take as long as requests over a network
 * do: each waits for the delay, any number of them at once. */
#ifndef BENCH_PEERS_SLOW_STORE_H
#define BENCH_PEERS_SLOW_STORE_H

#include <zarrc/zarrc.h>

#include <stdint.h>

/* Takes `inner` over. Ends the program if it fails. */
zarr_store *slow_store(zarr_context *context, zarr_store *inner, uint64_t delay_ms);

#endif
