/*
 * fault/power.h - a log of what the process does with files, and what of it a loss of
 * power leaves. power.c replaces functions of the C library, in the program that has it.
 * One log at a time.
 */
#ifndef ZR_TESTS_POWER_H
#define ZR_TESTS_POWER_H

#include <stdbool.h>
#include <stddef.h>

/* Begins the log. `top` is the directory that was there before. */
void power_begin(const char *top);
/* The log gets no more entries. */
void power_stop(void);
/* The same, and forgets the log. */
void power_clear(void);
/* The number of entries. */
size_t power_entries(void);

/* From here on all that was done is on the disk, as the durability promises. */
void power_mark(void);
/* Sets such a mark before this name is written, or erased. NULL: before none. */
void power_mark_before(const char *put, const char *erase);

/* How many objects a loss of power cuts off, summed over all entries after which it may
 * come; and how many are missing that were promised at marks. */
struct power_losses {
    int documents, chunks, promised;
};
struct power_losses power_losses(void);

/* From entry `begin` on: how often the whole file system was synced, the marks, and what
 * is missing at them. */
struct power_syncs {
    int whole, marks, lost;
};
struct power_syncs power_syncs(size_t begin);

#endif
