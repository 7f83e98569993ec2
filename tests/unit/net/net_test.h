/*
 * unit/net/net_test.h - helpers of the tests of requests. The scripted server
 * (tests/support) starts these programs, and its query makes the faults.
 */
#ifndef ZR_NET_TEST_H
#define ZR_NET_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/net.h"
#include "sched/sched.h"

#define SECOND UINT64_C(1000000000)
enum {
    TEST_BYTES = 1 << 20
};

/* A request into a buffer, and how it ended. */
struct trial {
    struct zr_net_request r;
    struct zr_net_buffer buffer;
    uint8_t bytes[TEST_BYTES];
    char url[1024];
    zarr_status st;
    zarr_error err;
};
/* Options with short pauses. */
struct zr_net_options test_options(void);
struct zr_net *test_client(const struct zr_net_options *opts);
uint8_t test_byte(uint64_t i);
/* Sets up a GET of "<server><path>"; fmt and what follows: the path. */
void trial_init(struct trial *t, const char *server, const char *fmt, ...)
    ZARR_PRINTF(3, 4);
/* Does it, and frees it unless the caller wants the answer. */
zarr_status trial_run(struct trial *t, struct zr_net *net);
/* The body is what the server has from `first` on, n bytes. */
void trial_check(const struct trial *t, uint64_t first, size_t n);
/* The number that /_stats has under a name. */
uint64_t server_count(struct zr_net *net, const char *name);
/* The server's URL from the environment, or the test is skipped. */
const char *server_url(const char *name);
/* For main(): skips the program if no server started it. */
int skip_without_server(void **state);

/* ---- many requests at once ---- */

struct flight {
    struct zr_event all;
    atomic_uint left, n_ok, n_cancelled;
};
struct piece {
    struct zr_net_request r;
    struct zr_net_buffer buffer;
    struct flight *flight;
    uint64_t first;
    char url[200];
    uint8_t bytes[16384];
};
/* Submits n requests with the tag f for ranges of an object of 100 MB. */
struct piece *flight_start(struct zr_net *net, struct flight *f, const char *server,
                           uint32_t n, const char *query);
/* Waits for their ends, at most a minute, and frees them. */
void flight_wait(struct flight *f, struct piece *p);
void check_is_idle(void);

/* ---- the process ---- */

/* A child ends in time, with 0. */
void expect_child(pid_t child);
uint32_t count_entries(const char *folder);
/* 0 with a sanitizer. */
uint64_t memory_in_use(void);

#endif
