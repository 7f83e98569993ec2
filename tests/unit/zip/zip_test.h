/*
 * unit/zip/zip_test.h - helpers of the zip tests: archives made in memory, with any
 * header wrong, in a store that counts and changes its operations.
 */
#ifndef ZR_ZIP_TEST_H
#define ZR_ZIP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "zip/zip.h"

struct world {
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks, fail_at;
    bool forever;
    struct zr_memory_registry memory;
    struct zr_store_registry *registry;
    struct zr_store_env env;
    char log[512];                    /* the last line */
    zarr_store *memory_store, *store; /* store: counts the operations on memory_store */
    zarr_store *slow;                 /* the same without ZARR_STORE_CAP_FAST_GET */
    bool is_slow;                     /* archives are opened there */
    int n_changes;                    /* gets after which the archive is replaced */
    atomic_int n_gets;                /* of the archive since the last reset */
    atomic_uint_fast64_t got_bytes;
};
int world_setup(void **state);
int world_teardown(void **state);

/* ---- archives ---- */

struct made_member {
    const char *name;
    size_t name_bytes; /* 0: strlen */
    const void *data;  /* what the member decodes to */
    size_t bytes;
    uint16_t method, flags;
    size_t local_extra, central_extra; /* bytes of an unknown extra field */
    bool local_zip64;                  /* a zip64 field in the local header, forced */
    bool times;                        /* Info-ZIP's field of times: 13 and 9 bytes */
    bool descriptor;                   /* sizes after the data, not before them */
    bool is_link;
};
enum {
    MADE_MEMBERS = 400
};
struct maker {
    uint8_t *bytes;
    size_t n, cap;
    size_t base; /* bytes before the archive, which its offsets do not count */
    size_t directory_at, end_at;
    struct {
        struct made_member m;
        size_t header_at, data_at, stored, central_at;
        uint32_t crc;
    } member[MADE_MEMBERS];
    size_t n_members;
};
void make_free(struct maker *k);
void make_bytes(struct maker *k, const void *bytes, size_t n);
void make_u16(struct maker *k, size_t at, uint16_t v); /* overwrites */
void make_u32(struct maker *k, size_t at, uint32_t v);
void make_member(struct maker *k, const struct made_member *m);
void make_text(struct maker *k, const char *name, const char *text); /* stored */
/* The directory of the members from `first` on, and the end record. */
void make_end(struct maker *k, size_t first, const void *comment, size_t n, bool zip64);

/* Puts the archive under the key "x.zip". */
void put_archive(struct world *w, const void *bytes, size_t n);
zarr_status open_archive(zarr_store **out, struct world *w, zarr_error *err);
/* Opens it, or fails the test. */
zarr_store *need_archive(struct world *w, const struct maker *k);
/* The whole value; -1: not found. Other failures give their status. */
zarr_status read_whole(zarr_store *s, const char *key, void *to, size_t room, size_t *n,
                       zarr_error *err);
void assert_text(zarr_store *s, const char *key, const char *text);
void assert_absent(zarr_store *s, const char *key);
/* Reading the key fails so, and the message has this text. */
void assert_fails(zarr_store *s, const char *key, zarr_status st, const char *text);
/* What a check of the form finds: "fault: " or "note: " and a text, a line each. */
struct notes {
    char text[2048];
};
void add_note(void *user, int is_fault, const char *text); /* `user`: struct notes */

/* ---- archives that are written ---- */

extern char folder[];
int folder_setup(void **state);
int folder_teardown(void **state);
/* Every kind of place that holds an archive. */
enum place {
    IN_MEMORY,
    IN_FOLDER,
    IN_FOLDER_BY_COPY,
    N_PLACES
};
/* A memory store or the folder, without an archive; and another store in the folder. */
zarr_store *begin_place(struct world *w, enum place place);
zarr_store *open_folder(struct world *w);
zarr_status open_as(zarr_store **out, struct world *w, zarr_store *below, uint32_t flags,
                    bool copies, zarr_error *err);
zarr_store *need_as(struct world *w, zarr_store *below, uint32_t flags, bool copies);
void put_text(zarr_store *s, const char *key, const char *text);
void need_flush(zarr_store *s);
uint64_t archive_bytes(zarr_store *below);

/* ---- a store over another one ---- */

/* A call fails, before its operation or after it; and other tricks. */
struct failing {
    zarr_store *below;
    int at; /* this call fails; 0: none */
    bool answers_late;
    bool is_slow;                       /* no ZARR_STORE_CAP_FAST_GET */
    uint64_t most_ops;                  /* of a submit() */
    void (*changes)(struct failing *f); /* after each GET; NULL: nothing */
};
zarr_store *open_failing(struct world *w, struct failing *f);

#define assert_status(got, want)                                                         \
    do {                                                                                 \
        const zarr_status status_ = (got);                                               \
        if (status_ != (want))                                                           \
            fail_msg("%s: %s, not %s", #got, zarr_status_text(status_),                  \
                     zarr_status_text(want));                                            \
    } while (0)

#endif
