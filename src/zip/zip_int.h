/*
 * zip/zip_int.h - what the files of this room share: the archive as a run of bytes, its
 * records, the table of members, the cache of decoded members, the session of a writer.
 */
#ifndef ZR_ZIP_INT_H
#define ZR_ZIP_INT_H

#include "zip/zip.h"

#include <stdatomic.h>

/* ---- a new archive in a temporary file (spool.c) -------------------------------- */

struct zr_zip_spool {
    bool is_open;
    int fd;
    /* what the last PUT of it made; `bytes` 0: there was none, or more was written */
    uint64_t bytes;
    zarr_store_version version;
    uint64_t tried; /* bytes of a PUT whose outcome is unknown; 0: there was none */
};
zarr_status zr_zip_spool_open(struct zr_zip_spool *spool, const char *folder,
                              zarr_error *err);
void zr_zip_spool_close(struct zr_zip_spool *spool); /* zeroed storage is allowed */
/* mem: plain host memory. */
zarr_status zr_zip_spool_write(const struct zr_zip_spool *spool, const zarr_memory *mem,
                               uint64_t at, zarr_error *err);
zarr_status zr_zip_spool_read(const struct zr_zip_spool *spool, uint64_t at, uint64_t n,
                              void *to, zarr_error *err);
/* Does a PUT of the first op->length > 0 bytes. */
zarr_status zr_zip_spool_put(struct zr_zip_spool *spool, zarr_store *store,
                             zarr_store_op *op, zarr_error *err);

/* ---- the archive: one value of the store below ------------------------------- */

struct zr_zip_archive {
    struct zr_store_env env;
    zarr_store *store;    /* counted */
    char *key;            /* owned */
    zarr_store_caps caps; /* of the store */
    uint64_t bytes;       /* length of the archive; 0: it does not exist */
    /* Of the archive when its directory was read, or after the last append; all zero if
     * the store has no versions. Each read compares. */
    zarr_store_version version;
    const zarr_cancel *cancel; /* of a call that reads the directory; else NULL */
    bool *has_changed;         /* the same, as in struct zr_zip_caller */
    bool in_session;           /* this handle has the lock and writes */
    void *parts; /* the archive is read from these parts; NULL: from its key */
    const struct zr_zip_spool *spool; /* where `parts` are written; NULL: in the store */
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
    bool *has_changed; /* becomes true if another program changed the archive; or NULL */
};
/* Makes the operation of zr_zip_read(). */
zarr_store_op zr_zip_read_op(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                             const zarr_memory *mem, const struct zr_zip_caller *caller);
/* Reads n bytes at `at` to the beginning of mem, all of them, or takes them from those
 * that were read ahead. IO if the archive has changed, disappeared or ends before. */
zarr_status zr_zip_read(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                        const zarr_memory *mem, const struct zr_zip_caller *caller,
                        zarr_error *err);
/* The same to host memory, for a call that reads the directory. */
zarr_status zr_zip_read_host(const struct zr_zip_archive *a, uint64_t at, size_t n,
                             void *to, zarr_error *err);
/* Fails as a read does after another program changed the archive. */
zarr_status zr_zip_fail_changed(const struct zr_zip_archive *a,
                                const struct zr_zip_caller *caller, zarr_error *err);
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

/* ---- the table of members ------------------------------------------------------ */

enum {
    ZR_ZIP_HAS_KEY = 1,      /* it is found by its name */
    ZR_ZIP_IS_DEAD = 2,      /* replaced or erased: a new directory does not name it */
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
    uint32_t lead;    /* from the local header to the data; 0: only the header tells */
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
    size_t first_at; /* in names: the first name that counts for `common` and `root` */
    size_t common;   /* how many bytes all counted names have in common, up to a slash */
    bool has_first;
    size_t root;    /* length of the prefix that all keys have, with its slash; 0: none */
    uint32_t *slot; /* hash table: number of a member + 1 */
    size_t n_slots;
    uint64_t directory_at, directory_bytes; /* in the value of the store */
    uint64_t comment_at, end_at; /* behind the end record; behind its comment */
    uint64_t base;               /* bytes before the archive */
    size_t n_recorded;           /* members that this directory names: the first ones */
    uint32_t *sorted;            /* the keys by name, made by a listing; NULL: not yet */
    uint64_t limit;              /* most members; most names take 256 bytes each */
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
/* Makes room, so that zr_zip_table_put() of a key cannot fail. */
zarr_status zr_zip_table_reserve(struct zr_zip_table *t, const char *key,
                                 zarr_error *err);
/* Gives a key a new member, which has what *m has, except its name. */
void zr_zip_table_put(struct zr_zip_table *t, const char *key,
                      const struct zr_zip_member *m);
/* The key of a member becomes missing. */
void zr_zip_table_drop(struct zr_zip_table *t, struct zr_zip_member *m);
const char *zr_zip_table_name(const struct zr_zip_table *t,
                              const struct zr_zip_member *m);
/* The name as a key, without the root; of a member with ZR_ZIP_HAS_KEY. */
const char *zr_zip_table_key(const struct zr_zip_table *t, const struct zr_zip_member *m);
/* The rows of a listing, which a caller gets while the table may change. */
struct zr_zip_rows {
    struct zr_str text; /* the key of each, with a NUL */
    struct zr_zip_row {
        uint64_t bytes; /* UINT64_MAX: a prefix */
        size_t key_at;
    } * row; /* n of them */
    size_t n, cap;
};
zarr_status zr_zip_table_list(struct zr_zip_table *t, const char *prefix, bool deep,
                              struct zr_zip_rows *rows, zarr_error *err);

/* The dead bytes of [m, next_at): all of them if the member is dead. */
uint64_t zr_zip_dead_behind(const struct zr_zip_member *m, uint64_t next_at);
/* Where the first member begins that the directory names; UINT64_MAX: there is none. */
uint64_t zr_zip_first_at(const struct zr_zip_table *t);
/* Whether the first bytes of an archive are those of a program or an image in front of
 * it, and not members that no directory names, or an old directory. */
bool zr_zip_is_headed(const uint8_t first[4]);
/* Adds the bytes of the archive that no value uses, and the members that are dead. Adds
 * nothing without memory. is_headed: offsets count the bytes in front of the archive. */
void zr_zip_count_dead(const struct zr_zip_table *t, uint64_t archive_bytes,
                       bool is_headed, zarr_store_counters *out);

/* See `check` in zarr_store_vtable. */
zarr_status zr_zip_check(void *self, zarr_store_check_fn fn, void *user,
                         const zarr_cancel *cancel, zarr_error *err);

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
            bool is_used;
            uint64_t epoch, header_at;  /* of a member */
            struct zr_zip_value *value; /* NULL: a thread makes it */
            uint64_t used;              /* the greatest was used last */
        } slot[ZR_ZIP_VALUES];
        uint64_t clock, bytes;
    } locked;
    struct zr_fork_hook fork;
};
void zr_zip_values_init(struct zr_zip_values *v, const zarr_allocator *alloc);
void zr_zip_values_deinit(struct zr_zip_values *v);
struct zr_zip_view;
/* Gets the value of a member, or NULL: then the caller makes it, and calls
 * zr_zip_values_put(). While a thread makes it, others wait here. */
struct zr_zip_value *zr_zip_values_get(struct zr_zip_values *v,
                                       const struct zr_zip_view *view);
/* Ends what a NULL began. value: NULL if it could not be made. The caller keeps it. */
void zr_zip_values_put(struct zr_zip_values *v, const struct zr_zip_view *view,
                       struct zr_zip_value *value);
/* Gives up a value; NULL is allowed. */
void zr_zip_value_free(const zarr_allocator *alloc, struct zr_zip_value *value);

/* ---- the store -------------------------------------------------------------------- */

enum {
    ZR_ZIP_KINDS = 32,
    ZR_ZIP_TRIES = 16 /* of a read while other programs write */
};
/* The least time from one directory to the next. */
#define ZR_ZIP_DUE_NS UINT64_C(5000000000)
/* After this time a handle that never pauses lets other programs write. */
#define ZR_ZIP_TURN_NS UINT64_C(10000000000)
/* How often a thread that waits looks at `cancel`. */
#define ZR_ZIP_CANCEL_NS UINT64_C(20000000)

/* What the writer of an archive needs, from the first write to the flush. It belongs to
 * the thread for which the store is busy. */
struct zr_zip_session {
    void *lock;            /* of the archive's key in the store below */
    bool is_locked;        /* also if that store has no locks */
    void *parts;           /* of a draft; NULL: there is none, or not yet */
    uint64_t n_parts;      /* how many parts the draft has */
    uint64_t end;          /* where the next bytes go */
    uint32_t time;         /* of new members, as MS-DOS has it */
    bool is_in_place;      /* the archive grows; else a draft replaces it */
    bool is_dirty;         /* members changed after the last directory */
    uint64_t written_ns;   /* when that was written */
    uint64_t cost_ns;      /* how long this took */
    uint64_t copy_ns;      /* how long the copy of the archive took */
    uint64_t member_bytes; /* of members after it */
};
/* The handles of this process that write, or wait to. Guarded by the list's mutex. */
struct zr_zip_writer {
    struct zr_zip_store *next;
    char *place;         /* owned: where the archive is; made by the first write */
    uint32_t n_visitors; /* threads of other handles that end the session */
    unsigned n_tries;    /* to end the session while the process exits */
};
struct zr_zip_store {
    zr_mutex mutex; /* guards the members up to has_forked; nothing waits with it */
    zr_cond changed;
    struct zr_zip_archive archive;
    struct zr_zip_table table;
    uint64_t epoch;       /* how often the directory was read */
    uint64_t members_end; /* all members are before this byte */
    uint32_t n_readers;   /* threads that read the archive of a session */
    bool is_stale;        /* the directory must be read again */
    bool is_busy;         /* a thread reads the directory, or writes */
    bool is_ending;       /* a session ends: no thread begins to read */
    bool is_headed;       /* zr_zip_is_headed() */
    uint64_t head_epoch;  /* the epoch of is_headed, and 1; 0: it is not known */
    bool has_forked;      /* the parent's session was open: no write in this process */
    bool is_spooled;      /* a new archive goes to a file first */
    struct zr_zip_spool spool; /* of the busy thread */
    char *temp_folder;         /* owned */
    bool can_write, is_new_allowed;
    bool always_copies; /* the option zip_update=copy */
    bool is_ozx;        /* has the form of single-file OME-Zarr */
    bool needs_order;   /* the next flush brings members in order */
    enum {
        ZR_ZIP_ORDERS_NEVER,
        ZR_ZIP_ORDERS_ONCE, /* after a new archive was completed */
        ZR_ZIP_ORDERS_EACH  /* after each session */
    } orders;
    uint64_t due_ns;  /* least time from one directory to the next */
    uint64_t turn_ns; /* longest time in which no other program can write */
    uint64_t turn_began_ns, unlocked_ns; /* of the busy thread */
    atomic_uint_fast64_t idle_at_ns;     /* when the session may end without a flush */
    struct zr_zip_session session;
    struct zr_zip_writer writer;
    struct zr_zip_values values;
    struct zr_fork_hook fork;
    int32_t device_types[ZR_ZIP_KINDS]; /* all kinds of memory that the host reaches */
    uint32_t n_device_types;
};

/* A member, and how the archive was when the directory named it. */
struct zr_zip_view {
    struct zr_zip_archive archive;
    struct zr_zip_member m;
    uint64_t epoch, members_end;
    bool has_changed; /* a read found that another program changed the archive */
};
/* Finds a member, or NOT_FOUND. After OK the caller reads (is_get), and calls
 * zr_zip_view_end(). */
zarr_status zr_zip_view_begin(struct zr_zip_store *z, const char *key,
                              const zarr_cancel *cancel, bool is_get,
                              struct zr_zip_view *v, zarr_error *err);
void zr_zip_view_end(struct zr_zip_store *z, const struct zr_zip_view *v);
/* Notes where the data of a member begins. */
void zr_zip_view_note(struct zr_zip_store *z, struct zr_zip_view *v, const char *key,
                      uint32_t lead);
/* The version of a member: it differs from that of another value of its key. */
void zr_zip_version(const struct zr_zip_member *m, zarr_store_version *out);
zarr_status zr_zip_list(void *self, const char *prefix, uint32_t how,
                        zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                        zarr_error *err);

/* Waits until this thread alone may read the directory and write. */
zarr_status zr_zip_busy_begin(struct zr_zip_store *z, const zarr_cancel *cancel,
                              zarr_error *err);
/* The same without a wait. Returns whether it may. */
bool zr_zip_busy_try(struct zr_zip_store *z);
void zr_zip_busy_end(struct zr_zip_store *z);
/* Of a busy thread: reads the directory, again if another program changes it meanwhile.
 * NOT_FOUND: there is no archive. */
zarr_status zr_zip_load(struct zr_zip_store *z, const zarr_cancel *cancel,
                        zarr_error *err);
/* Of a busy thread: reads the directory again if it is stale, but not in a session. look:
 * also if another program has changed the archive; a handle that only reads fails then.
 */
zarr_status zr_zip_refresh_busy(struct zr_zip_store *z, bool look,
                                const zarr_cancel *cancel, zarr_error *err);
/* Whether the archive is as it was when the directory was read. a: a copy. */
zarr_status zr_zip_is_current(const struct zr_zip_archive *a, const zarr_cancel *cancel,
                              bool *yes, zarr_error *err);

/* Does a GET of a member. Sets done_bytes and object_bytes. ahead: what was read of the
 * archive for it; NULL: nothing. */
zarr_status zr_zip_get(struct zr_zip_store *z, struct zr_zip_view *v, zarr_store_op *op,
                       const struct zr_zip_ahead *ahead, zarr_error *err);

/* What zr_zip_get() will read of the archive first. */
struct zr_zip_first {
    uint64_t at, n;
    void *to; /* NULL: to memory of its own */
};
/* Returns false if it reads nothing, or what is not worth reading ahead. headers: only
 * local headers without which the place of the data is unknown. */
bool zr_zip_get_first(struct zr_zip_store *z, struct zr_zip_view *v,
                      const zarr_store_op *op, bool headers, struct zr_zip_first *out);
/* Notes where the data of a member is, from a local header that was read ahead. A wrong
 * one is left to zr_zip_get(). */
void zr_zip_take_header(struct zr_zip_store *z, struct zr_zip_view *v,
                        const zarr_store_op *op, const struct zr_zip_ahead *ahead);

/* Why a member is damaged, as the directory shows it; NULL: it may be whole. */
const char *zr_zip_member_fault(const struct zr_zip_member *m);

/* Does one operation. */
zarr_status zr_zip_run_one(struct zr_zip_store *z, zarr_store_op *op,
                           const struct zr_zip_ahead *ahead, zarr_error *err);
/* See `submit` in zarr_store_vtable. */
void zr_zip_submit(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg);

/* ---- writing ---------------------------------------------------------------------- */

/* What the headers of a member say. */
struct zr_zip_record {
    const char *name;
    size_t name_bytes;
    uint64_t header_at; /* counted as the archive does, without the bytes before it */
    uint64_t bytes;
    uint32_t crc, time;
};
enum {
    ZR_ZIP_RECORD_MOST = ZR_ZIP_CENTRAL_BYTES + 28, /* without the name */
};
/* Write a header with its name to p, and return its length. */
size_t zr_zip_write_local(uint8_t *p, const struct zr_zip_record *r);
size_t zr_zip_write_central(uint8_t *p, const struct zr_zip_record *r);
/* The end record, with those of zip64 if they are needed, or is_zip64. */
size_t zr_zip_write_end(uint8_t *p, uint64_t n, uint64_t at, uint64_t bytes,
                        uint16_t comment_bytes, bool is_zip64);
/* Writes a record of a directory with another place of the local header. p has room for
 * the record and 28 bytes. 0: its extra fields would be too long. */
size_t zr_zip_write_moved(uint8_t *p, const uint8_t *record, uint64_t header_at);
/* The time now, in UTC, as MS-DOS has it. */
uint32_t zr_zip_time(void);

/* Each of these is called by a busy thread. */
/* Ends the sessions of other handles, and takes the lock of the archive. */
zarr_status zr_zip_session_lock(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err);
void zr_zip_session_unlock(struct zr_zip_store *z);
/* Begins the session, unless there is one. */
zarr_status zr_zip_session_begin(struct zr_zip_store *z, const zarr_cancel *cancel,
                                 zarr_error *err);
/* Writes n bytes to the end of the archive. */
zarr_status zr_zip_session_write(struct zr_zip_store *z, const void *bytes, uint64_t n,
                                 const zarr_cancel *cancel, zarr_error *err);
/* Writes the directory and releases the lock. After a failure the session goes on. */
zarr_status zr_zip_session_end(struct zr_zip_store *z, zarr_error *err);
/* The same, and then brings the members in order if `needs_order` says so. */
zarr_status zr_zip_end_in_order(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err);
/* Releases the lock. Members that no directory names are lost. */
void zr_zip_session_drop(struct zr_zip_store *z);
/* Notes that something was written now. */
void zr_zip_session_used(struct zr_zip_store *z);
/* After a write: writes the directory if it is due. */
zarr_status zr_zip_session_tick(struct zr_zip_store *z, zarr_error *err);
/* Appends the records of the directory and its end. new_at: where the local headers of
 * the members come to; NULL: they stay. */
zarr_status zr_zip_directory_write(struct zr_zip_store *z, const uint64_t *new_at,
                                   zarr_error *err);
/* In a session in which nothing was written yet: begins a draft without the old archive,
 * which is read as before. The next bytes go to its beginning. */
zarr_status zr_zip_session_begin_anew(struct zr_zip_store *z, const zarr_cancel *cancel,
                                      zarr_error *err);

/* See `repack` in zarr_store_vtable. */
zarr_status zr_zip_repack(void *self, uint32_t flags, zarr_repack_result *out,
                          const zarr_cancel *cancel, zarr_error *err);
/* The same, of a busy thread and outside of a session, without a flush of the store. */
zarr_status zr_zip_repack_busy(struct zr_zip_store *z, zarr_repack_result *out,
                               const zarr_cancel *cancel, zarr_error *err);

/* ---- single-file OME-Zarr (RFC-9) ------------------------------------------------- */

/* The order of members: each zarr.json by its depth, then all others. Archives of other
 * forms have one level. */
enum {
    ZR_ZIP_LEVELS = 64
};
unsigned zr_zip_level(const struct zr_zip_store *z, const struct zr_zip_member *m);
/* A bit for each level that has members. */
uint64_t zr_zip_levels(const struct zr_zip_store *z);
/* Makes the comment of a new directory: the old one, unless that is about OME-Zarr. If
 * the archive has the form, it tells the version of OME-Zarr. new_at: as above. */
zarr_status zr_zip_make_comment(const struct zr_zip_store *z, const uint64_t *new_at,
                                struct zr_str *out, zarr_error *err);
/* Whether a repack would write the comment and the end record that are there. */
zarr_status zr_zip_ozx_is_same(const struct zr_zip_store *z, bool *yes, zarr_error *err);
/* Whether the end of the directory is that of zip64. */
bool zr_zip_has_end64(const struct zr_zip_table *t);
/* Whether the name is that of a node's document. */
bool zr_zip_is_document(const char *name);
size_t zr_zip_count_slashes(const char *name);
/* What the comment says. Another comment says nothing. */
struct zr_zip_ome {
    bool is_ome, says_first; /* there is a version; jsonFirst */
};
zarr_status zr_zip_read_ome(const struct zr_zip_archive *a, const struct zr_zip_table *t,
                            struct zr_zip_ome *out, zarr_error *err);

/* Makes a handle the writer of its archive in this process. Another handle's session
 * ends, so that a thread with two handles does not wait for itself. */
zarr_status zr_zip_writer_claim(struct zr_zip_store *z, const zarr_cancel *cancel,
                                zarr_error *err);
/* Ends the session of another handle of the archive. */
zarr_status zr_zip_writer_end_others(struct zr_zip_store *z, const zarr_cancel *cancel,
                                     zarr_error *err);
void zr_zip_writer_release(struct zr_zip_store *z);
/* The same, and waits until no other thread uses the handle. */
void zr_zip_writer_leave(struct zr_zip_store *z);

zarr_status zr_zip_put(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err);
zarr_status zr_zip_erase(struct zr_zip_store *z, zarr_store_op *op, zarr_error *err);
zarr_status zr_zip_flush(void *self, const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_zip_erase_prefix(void *self, const char *prefix, const zarr_cancel *cancel,
                                zarr_error *err);
zarr_status zr_zip_clean(void *self, const char *prefix, uint64_t min_age_s,
                         uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);

#endif
