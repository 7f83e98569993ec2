/*
 * ports/python/host.h - what a binding finds in an interpreted language: a lock that each
 * thread must hold when it touches an object, counted byte strings, and an event loop
 * that must never block. Each rule is asserted.
 */
#ifndef PORT_HOST_H
#define PORT_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program. Works on any thread, as cmocka's assertions do not. */
#define MUST(x)                                                                          \
    do {                                                                                 \
        if (!(x)) {                                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                      \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* ---- the interpreter's lock ----------------------------------------------- */

void host_lock(void);
void host_unlock(void);
/* Whether this thread has the lock. */
bool host_locked(void);

/* ---- byte strings: the caller has the lock --------------------------------- */

struct bytes {
    unsigned owners;
    uint64_t n;
    unsigned char data[];
};
struct bytes *bytes_new(const void *data, uint64_t n);
struct bytes *bytes_keep(struct bytes *b); /* NULL: NULL */
void bytes_drop(struct bytes *b);          /* may be NULL */
/* How many byte strings there are. */
unsigned bytes_alive(void);

/* ---- the event loop ---------------------------------------------------------- */

typedef void (*loop_fn)(void *arg);
void loop_start(void);
void loop_stop(void);
/* Has the loop call a function soon, with the lock held. From any thread, which needs no
 * lock. */
void loop_call(loop_fn fn, void *arg);
/* Has the loop call a function once, with the lock held, when a descriptor is readable.
 * Only for the loop's thread. */
void loop_watch(int fd, loop_fn fn, void *arg);
bool loop_here(void);
/* The longest time in nanoseconds that one function kept the loop busy. */
uint64_t loop_slowest(void);

#endif
