/*
 * zip/zip_int.h - what the files of this room share: the archive as a run of bytes, its
 * records, the table of members, the cache of decoded members.
 */
#ifndef ZR_ZIP_INT_H
#define ZR_ZIP_INT_H

#include "zip/zip.h"

#include <stdatomic.h>

/* ---- the archive: one value of the store below ------------------------------- */

struct zr_zip_archive {
    struct zr_store_env env;
    zarr_store *store;    /* counted */
    char *key;            /* owned */
    zarr_store_caps caps; /* of the store */
    uint64_t bytes;       /* length of the archive */
    /* Of the archive when it was opened; all zero if the store has no versions. Each read
     * compares. */
    zarr_store_version version;
    const zarr_cancel *cancel; /* of the opening; NULL after it */
};
/* A range of the archive that was read together with those of other operations. */
struct zr_zip_ahead {
    zarr_store_op op; /* the first member; `length` 0: nothing was read */
    uint8_t *block;   /* owned: where the bytes are; NULL: they are where they belong */
    zarr_error *err;  /* owned: of a failure; NULL: there is none, or no memory for it */
};
/* Of the operation for which the archive is read. */
struct zr_zip_caller {
    uint32_t kind; /* ZARR_STORE_OP_KIND bits */
    const zarr_cancel *cancel;
    const struct zr_zip_ahead *ahead; /* NULL: nothing was read ahead */
};
/* Makes the operation of zr_zip_read(). */
zarr_store_op zr_zip_read_op(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                             const zarr_memory *mem, const struct zr_zip_caller *caller);
/* Reads n bytes at `at` to the beginning of mem, all of them, or takes them from those
 * that were read ahead. IO if the archive has changed, disappeared or ends before. */
zarr_status zr_zip_read(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                        const zarr_memory *mem, const struct zr_zip_caller *caller,
                        zarr_error *err);
/* The same to host memory, for the opening. */
zarr_status zr_zip_read_host(const struct zr_zip_archive *a, uint64_t at, size_t n,
                             void *to, zarr_error *err);
/* Reads the end, at most n bytes, and learns length and version of the archive. */
zarr_status zr_zip_read_tail(struct zr_zip_archive *a, void *to, size_t n, size_t *got,
                             zarr_error *err);

/* ---- a window on the archive: reads with few requests ------------------------- */

struct zr_zip_window {
    const struct zr_zip_archive *archive;
    const uint8_t *tail; /* the last tail_bytes of the archive; borrowed */
    size_t tail_bytes;
    uint8_t *bytes; /* owned; those of [at, at + n) are there */
    size_t cap, n, most;
    uint64_t at;
};
/* Gives the n bytes at `at`, valid until the next call; reads ahead, up to `end` and to
 * w->most bytes. n is at most w->most, and at + n at most `end`. */
zarr_status zr_zip_window_get(struct zr_zip_window *w, uint64_t at, size_t n,
                              uint64_t end, const uint8_t **out, zarr_error *err);

/* ---- records ------------------------------------------------------------------ */

enum {
    ZR_ZIP_END_BYTES = 22,
    ZR_ZIP_END64_BYTES = 56,
    ZR_ZIP_LOCATOR_BYTES = 20,
    ZR_ZIP_CENTRAL_BYTES = 46,
    ZR_ZIP_LOCAL_BYTES = 30
};
#define ZR_ZIP_SIG_END     UINT32_C(0x06054b50)
#define ZR_ZIP_SIG_END64   UINT32_C(0x06064b50)
#define ZR_ZIP_SIG_LOCATOR UINT32_C(0x07064b50)
#define ZR_ZIP_SIG_CENTRAL UINT32_C(0x02014b50)
#define ZR_ZIP_SIG_LOCAL   UINT32_C(0x04034b50)
#define ZR_ZIP_SIG_SIGNED  UINT32_C(0x05054b50) /* a signature after the directory */

enum {
    ZR_ZIP_STORED = 0,
    ZR_ZIP_DEFLATED = 8,
    ZR_ZIP_ZSTD = 93
};
/* General purpose flags of a header. */
enum {
    ZR_ZIP_FLAG_ENCRYPTED = 1,
    ZR_ZIP_FLAG_DESCRIPTOR = 8,
    ZR_ZIP_FLAG_UTF8 = 0x800
};
static inline uint16_t zr_zip_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* A header of the directory; the three texts point into the window. */
struct zr_zip_central {
    uint64_t header_at, stored_bytes, bytes;
    uint32_t crc;
    uint16_t flags, method;
    bool is_link; /* a symbolic link of Unix: its value is a path */
    bool is_bad;  /* a number that is promised in a zip64 field is not there */
    const uint8_t *name, *extra;
    size_t name_bytes, extra_bytes;
    size_t record_bytes; /* of the whole record */
};
/* p has ZR_ZIP_CENTRAL_BYTES; gives the length of the whole record. 0: no record. */
size_t zr_zip_central_bytes(const uint8_t *p);
/* p has the whole record. */
void zr_zip_central_parse(const uint8_t *p, struct zr_zip_central *out);
/* An extra field by its number, and its length; NULL: there is none. */
const uint8_t *zr_zip_central_field(const struct zr_zip_central *c, uint16_t id,
                                    size_t *n);
/* How many bytes the local header has if it was written by the usual rules: the extra
 * fields of the directory, and those times of Info-ZIP that only the local header has. */
uint32_t zr_zip_usual_local_bytes(const struct zr_zip_central *c);

/* ---- names --------------------------------------------------------------------- */

/* Appends the name of a member in UTF-8. *converted: it does not have the bytes of the
 * record. */
void zr_zip_name(struct zr_str *out, const struct zr_zip_central *c, bool *converted);
/* Whether a name can be a key: no folder, no empty part, no ".", "..", NUL, backslash. */
bool zr_zip_name_is_key(const char *name, size_t n);

/* ---- the table of members ------------------------------------------------------ */

enum {
    ZR_ZIP_HAS_KEY = 1,      /* it is found by its name */
    ZR_ZIP_REPLACED = 2,     /* a later record has the same name: dead bytes */
    ZR_ZIP_IS_CONVERTED = 4, /* the name in the archive has other bytes */
    ZR_ZIP_IS_ENCRYPTED = 8,
    ZR_ZIP_IS_LINK = 16,
    ZR_ZIP_IS_BAD = 32,   /* its record contradicts itself */
    ZR_ZIP_OVERLAPS = 64, /* the next member begins inside of it */
    ZR_ZIP_IS_OUTSIDE =
        128, /* it is not between the begin of the archive and the directory */
    ZR_ZIP_HAS_DESCRIPTOR = 256
};
/* One record of the directory, in its order. */
struct zr_zip_member {
    uint64_t header_at;           /* of the local header, in the value of the store */
    uint64_t stored_bytes, bytes; /* in the archive, and decoded */
    uint32_t crc;
    uint32_t name_at; /* in the table's names; its end is a NUL */
    /* From the local header to the data: 0 if only the local header tells. */
    atomic_uint_least32_t lead;
    uint16_t name_bytes, method;
    uint16_t flags; /* ZR_ZIP_* above */
    uint16_t unused;
};
struct zr_zip_table {
    const zarr_allocator *alloc;
    struct zr_zip_member *member; /* n of them, in the order of the directory */
    size_t n, cap;
    struct zr_str names;      /* each with a NUL */
    size_t n_keys, n_ignored; /* ignored: the name is no key and no folder */
    size_t ignored;           /* the first ignored member */
    size_t first;             /* the first member that counts for `common` */
    size_t common; /* how many bytes all counted names have in common, up to a slash */
    bool has_first;
    size_t root;    /* length of the prefix that all keys have, with its slash; 0: none */
    uint32_t *slot; /* hash table: number of a member + 1 */
    size_t n_slots;
    uint64_t directory_at, directory_bytes; /* in the value of the store */
    uint64_t base;                          /* bytes before the archive */
    _Atomic(uint32_t *) sorted; /* the keys by name; made by the first listing */
    uint64_t limit;             /* most members; most names take 256 bytes each */
};
void zr_zip_table_init(struct zr_zip_table *t, const struct zr_store_env *env);
void zr_zip_table_deinit(struct zr_zip_table *t);
void zr_zip_table_clear(struct zr_zip_table *t);
zarr_status zr_zip_table_add(struct zr_zip_table *t, const struct zr_zip_central *c,
                             zarr_error *err);
/* Call it after the last member. */
zarr_status zr_zip_table_finish(struct zr_zip_table *t, zarr_error *err);
/* NULL: there is no such key. */
struct zr_zip_member *zr_zip_table_find(const struct zr_zip_table *t, const char *key);
const char *zr_zip_table_name(const struct zr_zip_table *t,
                              const struct zr_zip_member *m);
/* The name as a key, without the root; of a member with ZR_ZIP_HAS_KEY. */
const char *zr_zip_table_key(const struct zr_zip_table *t, const struct zr_zip_member *m);
zarr_status zr_zip_table_list(struct zr_zip_table *t, const char *prefix, bool deep,
                              zarr_store_list_fn fn, void *user, zarr_error *err);

/* Finds and reads the directory. tail: the last bytes of the archive. */
zarr_status zr_zip_directory_read(const struct zr_zip_archive *a, struct zr_zip_table *t,
                                  const uint8_t *tail, size_t tail_bytes,
                                  zarr_error *err);

/* ---- decoded members ------------------------------------------------------------ */

/* One decoded value. */
struct zr_zip_value {
    atomic_uint refs;
    size_t bytes;
    uint8_t data[];
};
enum {
    ZR_ZIP_VALUES = 16
};
/* The values that were used last: at most ZR_ZIP_VALUES, and 256 MiB, but always one. */
struct zr_zip_values {
    const zarr_allocator *alloc;
    struct {
        zr_mutex mutex;
        zr_cond done; /* a value was made, or could not be made */
        struct zr_zip_slot {
            const struct zr_zip_member *member; /* NULL: the slot is free */
            struct zr_zip_value *value;         /* NULL: a thread makes it */
            uint64_t used;                      /* the greatest was used last */
        } slot[ZR_ZIP_VALUES];
        uint64_t clock, bytes;
    } locked;
    struct zr_fork_hook fork;
};
void zr_zip_values_init(struct zr_zip_values *v, const zarr_allocator *alloc);
void zr_zip_values_deinit(struct zr_zip_values *v);
/* Gets the value of a member, or NULL: then the caller makes it, and calls
 * zr_zip_values_put(). While a thread makes it, others wait here. */
struct zr_zip_value *zr_zip_values_get(struct zr_zip_values *v,
                                       const struct zr_zip_member *m);
/* Ends what a NULL began. value: NULL if it could not be made. The caller keeps it. */
void zr_zip_values_put(struct zr_zip_values *v, const struct zr_zip_member *m,
                       struct zr_zip_value *value);
/* Gives up a value; NULL is allowed. */
void zr_zip_value_free(const zarr_allocator *alloc, struct zr_zip_value *value);

/* ---- the store -------------------------------------------------------------------- */

enum {
    ZR_ZIP_KINDS = 32
};
struct zr_zip_store {
    struct zr_zip_archive archive;
    struct zr_zip_table table;
    struct zr_zip_values values;
    int32_t device_types[ZR_ZIP_KINDS]; /* all kinds of memory that the host reaches */
    uint32_t n_device_types;
};
/* Does a GET of a member. Sets done_bytes and object_bytes. ahead: what was read of the
 * archive for it; NULL: nothing. */
zarr_status zr_zip_get(struct zr_zip_store *z, struct zr_zip_member *m, zarr_store_op *op,
                       const struct zr_zip_ahead *ahead, zarr_error *err);

/* What zr_zip_get() will read of the archive first. */
struct zr_zip_first {
    uint64_t at, n;
    void *to; /* NULL: to memory of its own */
};
/* Returns false if it reads nothing, or what is not worth reading ahead. headers: only
 * local headers without which the place of the data is unknown. */
bool zr_zip_get_first(struct zr_zip_store *z, struct zr_zip_member *m,
                      const zarr_store_op *op, bool headers, struct zr_zip_first *out);
/* Notes where the data of a member is, from a local header that was read ahead. A wrong
 * one is left to zr_zip_get(). */
void zr_zip_take_header(struct zr_zip_store *z, struct zr_zip_member *m,
                        const zarr_store_op *op, const struct zr_zip_ahead *ahead);

/* Does one operation. */
zarr_status zr_zip_run_one(struct zr_zip_store *z, zarr_store_op *op,
                           const struct zr_zip_ahead *ahead, zarr_error *err);
/* See `submit` in zarr_store_vtable. */
void zr_zip_submit(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg);

#endif
