/*
 * base/base.h - the door of the lowest room: status text and error filling, allocation,
 * checked arithmetic, strings, growing arrays, maps, arenas, bytes in a given order,
 * threads, log. It knows nothing of Zarr. Only this room may call malloc or pthread_*.
 * Thread class: plain functions; objects here are solo unless they say locks.
 */
#ifndef ZR_BASE_H
#define ZR_BASE_H

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zarrc/base.h>
#include <zarrc/cancel.h>
#include <zarrc/context.h>
#include <zarrc/error.h>
#include <zarrc/limits.h>

/* ---- errors ---------------------------------------------------------- */

/* These assign to `st` and jump to `out`: ZR_TRY() if `expr` failed, the others always.
 * ZR_FAIL() takes the arguments of zr_fail(); those of like names go with zr_fail_limit()
 * and zr_fail_memory(). */
#define ZR_TRY(expr)                                                                     \
    do {                                                                                 \
        st = (expr);                                                                     \
        if (st != ZARR_OK)                                                               \
            goto out;                                                                    \
    } while (0)
#define ZR_LEAVE(status)                                                                 \
    do {                                                                                 \
        st = (status);                                                                   \
        goto out;                                                                        \
    } while (0)
#define ZR_FAIL(...)        ZR_LEAVE(zr_fail(__VA_ARGS__))
#define ZR_FAIL_LIMIT(...)  ZR_LEAVE(zr_fail_limit(__VA_ARGS__))
#define ZR_FAIL_MEMORY(...) ZR_LEAVE(zr_fail_memory(__VA_ARGS__))

/* In a public function that returns a status: refuses a handle that is NULL. */
#define ZR_NEED(handle, err)                                                             \
    do {                                                                                 \
        if (!(handle))                                                                   \
            return zr_fail(err, ZARR_ERR_INVALID, "%s(): %s is NULL", __func__,          \
                           #handle);                                                     \
    } while (0)

#define ZR_COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define ZR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ZR_MAX(a, b) ((a) > (b) ? (a) : (b))
#define ZR_UNUSED(x) ((void)(x))

/* Fills err (may be NULL) and returns status, for use as `return zr_fail(...)`. Long text
 * is cut at a UTF-8 boundary. Messages are one line: control characters become '?'. The
 * arguments may quote err->message. */
zarr_status zr_fail(zarr_error *err, zarr_status status, const char *fmt, ...)
    ZARR_PRINTF(3, 4);
/* The same with the errno of a failed system call; ": strerror" is appended to the text.
 * ENOMEM gives NO_MEMORY whatever `status` says; ENOENT and ENOTDIR do not change it. */
/* The kernel's own "not supported", which NFS and FUSE pass to programs; strerror() does
 * not know it. */
#define ZR_ENOTSUPP 524
zarr_status zr_fail_os(zarr_error *err, zarr_status status, int os_code, const char *fmt,
                       ...) ZARR_PRINTF(4, 5);
zarr_status zr_fail_memory(zarr_error *err, uint64_t bytes);
/* LIMIT: "<text> (limit NAME is VALUE)". The name, a member of zarr_limits or
 * "memory_bytes", becomes the part ZARR_ERROR_SETTING. Only for limits that the user can
 * raise. */
zarr_status zr_fail_limit(zarr_error *err, const char *name, uint64_t value,
                          const char *fmt, ...) ZARR_PRINTF(4, 5);
/* Puts text before the message that err has: "<prefix>: <message>".
 * Sets the code to `status` and returns it; os_code and item stay. */
zarr_status zr_prefix(zarr_error *err, zarr_status status, const char *fmt, ...)
    ZARR_PRINTF(3, 4);
/* The same, and says which parts the text has; the offsets count from its beginning. A
 * part that the message has already stays. */
zarr_status zr_prefix_parts(zarr_error *err, zarr_status status,
                            const zarr_error_part part[ZARR_ERROR_PARTS], const char *fmt,
                            ...) ZARR_PRINTF(4, 5);
/* The prefix is the key. */
zarr_status zr_prefix_key(zarr_error *err, zarr_status status, const char *key);
/* Sets one of ZARR_ERROR_PATH and so on, unless the numbers are too large. */
void zr_part_set(zarr_error_part part[ZARR_ERROR_PARTS], uint32_t which, size_t offset,
                 size_t bytes);
/* Says that the message of err (may be NULL) has this part at the offset. Does nothing if
 * the part is known already, or if another text is there, because the message was cut. */
void zr_error_mark(zarr_error *err, uint32_t which, size_t offset, const char *text);
/* Says that the message has "(option NAME)", the part ZARR_ERROR_SETTING. */
void zr_error_mark_option(zarr_error *err, const char *name);
/* If the message has a key below this path, says that it has the path, too. */
void zr_error_mark_path(zarr_error *err, const char *path);
/* Sets the operation that failed, unless a lower room did. err may be NULL. */
void zr_error_operation(zarr_error *err, uint32_t operation);
/* No error: for functions of plug-ins and applications, which may set some members. */
void zr_error_clear(zarr_error *err);
/* Removes from err what such a function cannot have meant. */
void zr_error_distrust(zarr_error *err);
/* Copies `said` to err (may be NULL) unless status is OK; returns status. For calls some
 * of whose failures are expected and must not change err. */
static inline zarr_status zr_pass(zarr_error *err, zarr_status status,
                                  const zarr_error *said)
{
    if (err && status != ZARR_OK)
        *err = *said;
    return status;
}
/*
 * Surrounds a call of a foreign function (of a plug-in or an application). The function
 * gets the result of zr_foreign_begin() as its err. If it fails, zr_foreign_fail()
 * copies its text to the caller's err, or says that `who` (fmt) failed if there is no
 * text. An unknown status becomes INTERNAL, and so does CANCELLED if no caller cancelled.
 * If the function succeeds, the caller's err does not change.
 */
struct zr_foreign {
    zarr_error *err;
    zarr_error said;
};
zarr_error *zr_foreign_begin(struct zr_foreign *f, zarr_error *err);
zarr_status zr_foreign_status(zarr_status st, bool cancelled);
zarr_status zr_foreign_fail(struct zr_foreign *f, zarr_status st, bool cancelled,
                            const char *fmt, ...) ZARR_PRINTF(4, 5);
/* "<who> broke its contract: <how>": a bug of a plug-in or an application. */
#define ZR_BROKE "broke its contract"
/* For bugs of the library only: returns INTERNAL in all builds, never aborts. */
#define zr_internal(err)                                                                 \
    zr_fail((err), ZARR_ERR_INTERNAL, "internal error at %s:%d", __FILE__, __LINE__)

/* ---- refusals ---------------------------------------------------------------- */

/* A name that files have and that the library refuses, with the reason. The rooms have
 * tables of these, so that errors and the status pages give the same reason. A name may
 * end in '*', which stands for any rest. A table ends with kind NULL. The tables are
 * searched last: a plug-in may register such a name, and then it is not refused. */
struct zr_refusal {
    const char *kind, *name, *reason;
};
/* The reason for a pull request of zarr-developers/zarr-extensions that is not merged:
 * data written by one version of it may mean something else in the next version. */
#define ZR_REFUSED_DRAFT(pull)                                                           \
    "a draft (zarr-extensions pull request " pull ") that may still change"
/* The row for this name, or NULL. */
const struct zr_refusal *zr_refusal_find(const struct zr_refusal *table, const char *kind,
                                         const char *name);
/* UNSUPPORTED: `<kind> "<name>" is refused: <reason>`, or `... is not known`. */
zarr_status zr_fail_refused(zarr_error *err, const struct zr_refusal *table,
                            const char *kind, const char *name);

/* ---- options structs (zarrc/base.h states the rule) -------------------- */

enum zr_tail {
    ZR_TAIL_REFUSE,
    ZR_TAIL_IGNORE
}; /* for options and tensors; for vtables */
/* Copies a caller's size-first struct over dst (dst_bytes long, zeroed first, its own
 * struct_size set to dst_bytes). src NULL: all defaults. min_bytes: shortest ever
 * published. */
zarr_status zr_struct_read(void *dst, size_t dst_bytes, size_t min_bytes, const void *src,
                           enum zr_tail tail, const char *name, zarr_error *err);
/* Size of a struct of which `member` is the last member: for structs that have grown,
 * min_bytes of zr_struct_read() is the size through the last member of the first
 * release. */
#define ZR_SIZE_THROUGH(type, member)                                                    \
    (offsetof(type, member) + sizeof(((type *)NULL)->member))
/* The other direction: copies src to a caller's struct of dst_bytes, as much as fits,
 * fills the rest with zeros, and sets struct_size. */
void zr_struct_give(void *dst, size_t dst_bytes, const void *src, size_t src_bytes);

/* The greatest limits.shard_depth: each shard in a shard is a level of recursion. */
enum {
    ZR_SHARD_DEPTH_MAX = 64
};
/* The least defaults of chunk_bytes and variable_chunk_bytes: a context with more memory
 * takes half of it. */
#define ZR_CHUNK_BYTES_LEAST          (UINT64_C(2) << 30)
#define ZR_VARIABLE_CHUNK_BYTES_LEAST (UINT64_C(256) << 20)
/* Gives each member that is 0 the value of `from`. */
void zr_limits_complete(zarr_limits *limits, const zarr_limits *from);

/* ---- allocation ------------------------------------------------------ */

/* If the allocator is NULL, malloc is used. Sizes of 0 give a valid pointer. The caller
 * checks for NULL. */
void *zr_malloc(const zarr_allocator *a, size_t bytes);
void *zr_calloc(const zarr_allocator *a, size_t n, size_t bytes); /* product checked */
void *zr_realloc(const zarr_allocator *a, void *p, size_t bytes);
void zr_free(const zarr_allocator *a, void *p);
char *zr_strdup(const zarr_allocator *a, const char *s);
char *zr_strndup(const zarr_allocator *a, const char *s, size_t n);
/* Grows *p to hold at least `need` items (amortised doubling, product checked). */
zarr_status zr_grow(const zarr_allocator *a, void *p_ptr, size_t *cap, size_t need,
                    size_t item_bytes, zarr_error *err);
/* Allocates zeroed pages from the system; blocks of 4 MiB or more are aligned to 2 MiB
 * and use huge pages. Returns NULL if there is no memory. For pools and arenas.
 * zr_pages_free() takes the same `bytes`; NULL is allowed. */
void *zr_pages_alloc(size_t bytes);
void zr_pages_free(void *p, size_t bytes);
/* Asks for huge pages in the aligned part of a block that the library does not own (a
 * caller's fresh output). Does nothing below 4 MiB; never fails. */
void zr_pages_advise(void *p, size_t bytes);

/* ---- checked arithmetic: true when the result fits ------------------- */

static inline bool zr_add_u64(uint64_t a, uint64_t b, uint64_t *r)
{
    return !__builtin_add_overflow(a, b, r);
}
static inline bool zr_sub_u64(uint64_t a, uint64_t b, uint64_t *r)
{
    return !__builtin_sub_overflow(a, b, r);
}
static inline bool zr_mul_u64(uint64_t a, uint64_t b, uint64_t *r)
{
    return !__builtin_mul_overflow(a, b, r);
}
static inline bool zr_add_i64(int64_t a, int64_t b, int64_t *r)
{
    return !__builtin_add_overflow(a, b, r);
}
static inline bool zr_mul_i64(int64_t a, int64_t b, int64_t *r)
{
    return !__builtin_mul_overflow(a, b, r);
}
static inline bool zr_add_size(size_t a, size_t b, size_t *r)
{
    return !__builtin_add_overflow(a, b, r);
}
static inline bool zr_mul_size(size_t a, size_t b, size_t *r)
{
    return !__builtin_mul_overflow(a, b, r);
}
static inline bool zr_to_size(uint64_t a, size_t *r)
{
    return !__builtin_add_overflow(a, (uint64_t)0, r);
}
static inline bool zr_to_i64(uint64_t a, int64_t *r)
{
    return !__builtin_add_overflow(a, (uint64_t)0, r);
}
/* The same, but UINT64_MAX if the result does not fit: for totals of progress. */
static inline uint64_t zr_add_cap(uint64_t a, uint64_t b)
{
    uint64_t r;

    return zr_add_u64(a, b, &r) ? r : UINT64_MAX;
}
static inline uint64_t zr_mul_cap(uint64_t a, uint64_t b)
{
    uint64_t r;

    return zr_mul_u64(a, b, &r) ? r : UINT64_MAX;
}
/* Product of n factors; 1 for n = 0; a zero factor gives 0 even if the rest would
 * overflow. */
bool zr_product_u64(const uint64_t *v, size_t n, uint64_t *r);
static inline uint64_t zr_product_cap(const uint64_t *v, size_t n)
{
    uint64_t r;

    return zr_product_u64(v, n, &r) ? r : UINT64_MAX;
}
static inline uint64_t zr_ceil_div_u64(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* ---- strings --------------------------------------------------------- */

/* A growing, always terminated text or byte string. {0} with .alloc set is empty and
 * valid. Errors stick: after a failed append `failed` is set and further appends do
 * nothing. */
struct zr_str {
    char *ptr; /* NULL while empty: use zr_str_text() */
    size_t bytes, cap;
    const zarr_allocator *alloc;
    bool failed;
};
void zr_str_init(struct zr_str *s, const zarr_allocator *alloc);
void zr_str_deinit(struct zr_str *s);
void zr_str_clear(struct zr_str *s);
void zr_str_append(struct zr_str *s, const void *bytes, size_t n);
void zr_str_puts(struct zr_str *s, const char *text);
void zr_str_putc(struct zr_str *s, char c);
void zr_str_printf(struct zr_str *s, const char *fmt, ...) ZARR_PRINTF(2, 3);
void zr_str_vprintf(struct zr_str *s, const char *fmt, va_list ap);
void zr_str_u64(struct zr_str *s, uint64_t v);   /* decimal, fast: chunk keys */
const char *zr_str_text(const struct zr_str *s); /* "" when empty */
zarr_status zr_str_status(const struct zr_str *s, zarr_error *err);
char *zr_str_take(struct zr_str *s); /* moved to the caller, who calls zr_free(); NULL
                                        after a failure */
bool zr_streq(const char *a, const char *b);
bool zr_starts_with(const char *s, const char *prefix);
/* Checks a name before it is registered: printable ASCII without blanks, quotes and
 * backslashes, so that it fits lists, lines and JSON. INVALID if it is something else,
 * NULL or "". what: the kind of name for the message, such as "codec". */
zarr_status zr_check_name(const char *what, const char *name, zarr_error *err);
/* True if s is a line of printable ASCII, blanks included; also for "". */
bool zr_is_plain_line(const char *s);
/* Writes "1,2,3", as many numbers as fit. Returns the length. */
size_t zr_coord_text(char *text, size_t cap, const uint64_t *at, int32_t ndim);
bool zr_ends_with(const char *s, const char *suffix);

/* True for well-formed UTF-8 without surrogates. */
bool zr_utf8_is_valid(const char *s, size_t n);
/* Base64, RFC 4648 with padding. decode accepts missing padding, but no other
 * characters. */
void zr_base64_encode(struct zr_str *out, const void *bytes, size_t n);
bool zr_base64_decode(const char *text, size_t n, void *out, size_t cap,
                      size_t *out_bytes);

/* Numbers, independent of the locale. The parsers take the whole text, or return false.
 * Integers: digits, also with leading zeros; i64 also with '-' or '+'. Reals: JSON's
 * grammar, also with a leading '+', correctly rounded. A number that is too large becomes
 * infinity: check isfinite() if that is wrong. */
bool zr_parse_u64(const char *s, size_t n, uint64_t *out);
/* Digits, which K, M, G or T may follow for powers of 1024. */
bool zr_parse_bytes(const char *s, size_t n, uint64_t *out);
bool zr_parse_i64(const char *s, size_t n, int64_t *out);
bool zr_parse_f64(const char *s, size_t n, double *out);
bool zr_parse_f32(const char *s, size_t n, float *out);
/* Writes the shortest text that reads back to the same bits, for finite values, laid out
 * as Python's repr() does: it always has '.' or 'e'. Others give NaN, Infinity,
 * -Infinity. Returns the length; cap >= 40. */
size_t zr_format_f64(char *out, size_t cap, double v);
size_t zr_format_f32(char *out, size_t cap, float v);
/* The same for c * 2^q of any binary format, c < 2^53, -1074 <= q <= 971. narrow_below:
 * the next smaller number is half as far away as the next larger one (c is a power of two
 * and its exponent not the least). even: ties are rounded to this number. */
size_t zr_format_binary(char *out, size_t cap, bool minus, uint64_t c, int q,
                        bool narrow_below, bool even);
/* Computes only the digits. Returns the power of ten by which to multiply them. c > 0. */
int zr_shortest(uint64_t c, int q, bool narrow_below, bool even, uint64_t *digits);

/* ---- map: text key -> pointer, in order of insertion ------------------------ */

struct zr_map_item {
    char *key; /* owned by the map */
    size_t key_bytes;
    void *value; /* borrowed; freed by free_value if given */
    uint64_t hash;
};
struct zr_map {
    struct zr_map_item *items;
    size_t n, cap;
    uint32_t *slots; /* open addressing, index + 1 */
    size_t n_slots;
    const zarr_allocator *alloc;
    void (*free_value)(const zarr_allocator *alloc, void *value);
};
/* The hash of a map: keyed per process, so strangers cannot choose keys that collide. */
uint64_t zr_map_hash(const char *key, size_t n);
void zr_map_init(struct zr_map *m, const zarr_allocator *alloc,
                 void (*free_value)(const zarr_allocator *, void *));
void zr_map_deinit(struct zr_map *m);
void *zr_map_get(const struct zr_map *m, const char *key);
void *zr_map_get_n(const struct zr_map *m, const char *key, size_t n);
/* Frees the old value of the key. After a failure the caller still owns `value`. */
zarr_status zr_map_put(struct zr_map *m, const char *key, void *value, zarr_error *err);
zarr_status zr_map_put_n(struct zr_map *m, const char *key, size_t n, void *value,
                         zarr_error *err);             /* keys with zero bytes inside */
bool zr_map_remove(struct zr_map *m, const char *key); /* keeps order; O(n) */
/* O(1): the last item takes the place of the removed one. */
bool zr_map_remove_unordered(struct zr_map *m, const char *key);

/* ---- registry: entries in order of registration, found by name -------------- */

/* The first member of every entry. The owner's fields follow, with a copy of the
 * registered table. */
struct zr_registered {
    const char *name;   /* NULL: no name here */
    const char *origin; /* "core", or the name of the plug-in that registered it */
};
struct zr_registry {
    const char *what; /* "codec": for messages; borrowed */
    const zarr_allocator *alloc;
    struct zr_registered **entry; /* owned; entries do not move */
    size_t n, cap;
    struct zr_map names; /* names and aliases -> struct zr_registered */
    void (*close)(struct zr_registered *e); /* frees what an entry owns; or NULL */
};
void zr_registry_init(struct zr_registry *r, const char *what,
                      const zarr_allocator *alloc,
                      void (*close)(struct zr_registered *e));
void zr_registry_deinit(struct zr_registry *r); /* removes the newest entry first */
/* Adds a copy of the `bytes` bytes at `entry`, with its texts. EXISTS names the owner of
 * a name or alias that is taken. aliases: ends with NULL; NULL: none. After a failure the
 * caller still owns what the entry owns. */
zarr_status zr_registry_add(struct zr_registry *r, const struct zr_registered *entry,
                            size_t bytes, const char *const *aliases, zarr_error *err);
/* The same in two steps, for entries that must be complete before they can be found.
 * put() moves the entry if it succeeds. */
struct zr_registered *zr_registry_make(const struct zr_registry *r,
                                       const struct zr_registered *entry, size_t bytes,
                                       zarr_error *err);
zarr_status zr_registry_put(struct zr_registry *r, struct zr_registered *e,
                            const char *const *aliases, zarr_error *err);
void zr_registry_drop(const struct zr_registry *r,
                      struct zr_registered *e); /* closes it */
struct zr_registered *zr_registry_find(const struct zr_registry *r,
                                       const char *name); /* or NULL */
/* OK if `had` is NULL. Otherwise EXISTS, which says that `had` has the name, or the alias
 * (NULL: the name). */
zarr_status zr_registry_refuse_taken(const struct zr_registry *r, const char *name,
                                     const char *alias, const struct zr_registered *had,
                                     zarr_error *err);

/* ---- arena: many small blocks, freed at once -------------------------- */

struct zr_arena {
    struct zr_arena_block *head;
    size_t next_bytes, used_bytes; /* used: given out since init or reset */
    const zarr_allocator *alloc;
};
void zr_arena_init(struct zr_arena *a, const zarr_allocator *alloc);
void zr_arena_deinit(struct zr_arena *a);
void zr_arena_reset(struct zr_arena *a); /* keeps the largest block */
void *zr_arena_alloc(struct zr_arena *a,
                     size_t bytes); /* 16-byte aligned; NULL: no memory */
char *zr_arena_strndup(struct zr_arena *a, const char *s, size_t n);
/* Makes the first block of an empty arena as large as two pieces that need so many bytes
 * in all. Does nothing for another arena. */
void zr_arena_expect(struct zr_arena *a, size_t bytes);

/* ---- bytes in a stated order ------------------------------------------ */

static inline uint32_t zr_load_le32(const void *p)
{
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
           (uint32_t)b[3] << 24;
}
static inline uint64_t zr_load_le64(const void *p)
{
    return (uint64_t)zr_load_le32(p) | (uint64_t)zr_load_le32((const uint8_t *)p + 4)
                                           << 32;
}
static inline void zr_store_le32(void *p, uint32_t v)
{
    uint8_t *b = (uint8_t *)p;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
    b[2] = (uint8_t)(v >> 16);
    b[3] = (uint8_t)(v >> 24);
}
static inline void zr_store_le64(void *p, uint64_t v)
{
    zr_store_le32(p, (uint32_t)v);
    zr_store_le32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}
static inline bool zr_host_is_little(void)
{
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 1;
}
/* Reverses every unit of unit_bytes (1, 2, 4, 8, 16) in place or from src to dst (same or
 * disjoint; need not be aligned). */
void zr_byteswap(void *dst, const void *src, size_t n_units, uint32_t unit_bytes);

/* ---- threads ----------------------------------------------------------- */

typedef pthread_mutex_t zr_mutex;
typedef pthread_cond_t zr_cond; /* always on the monotonic clock: zr_cond_init() it */
#define ZR_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
void zr_mutex_init(zr_mutex *m);
void zr_mutex_deinit(zr_mutex *m);
void zr_mutex_lock(zr_mutex *m);
bool zr_mutex_try(zr_mutex *m); /* false: another thread holds it */
void zr_mutex_unlock(zr_mutex *m);
void zr_cond_init(zr_cond *c);
void zr_cond_deinit(zr_cond *c);
void zr_cond_wait(zr_cond *c, zr_mutex *m);
/* deadline_ns is a time of zr_now_ns(); UINT64_MAX: none. Returns false after the
 * deadline. */
bool zr_cond_wait_until(zr_cond *c, zr_mutex *m, uint64_t deadline_ns);
void zr_cond_signal(zr_cond *c);
void zr_cond_broadcast(zr_cond *c);
typedef struct zr_thread {
    pthread_t id;
} zr_thread;
/* Threads started here block signals: the library never handles those of the
 * application. */
zarr_status zr_thread_start(zr_thread *t, void *(*fn)(void *), void *arg,
                            zarr_error *err);
void zr_thread_join(zr_thread *t);
_Noreturn void zr_thread_park(void); /* sleeps until the process ends */
zr_thread zr_thread_self(void);
bool zr_thread_is_self(const zr_thread *t); /* t: of a thread that still runs */
uint32_t zr_cpu_count(void); /* CPUs that this process may use (affinity), at least 1 */
/* Where the kernel tells of control groups; tests have their own files. */
struct zr_cgroup_files {
    const char *root, *groups;
};
/* Cores (rounded up) and bytes of memory that the control groups of this process allow;
 * UINT64_MAX: there is no limit. files NULL: the kernel's. Each reads a few small files.
 */
uint64_t zr_cgroup_cores(const struct zr_cgroup_files *files);
uint64_t zr_cgroup_bytes(const struct zr_cgroup_files *files);
typedef pthread_once_t zr_once;
#define ZR_ONCE_INIT PTHREAD_ONCE_INIT
void zr_call_once(zr_once *once, void (*fn)(void));
static inline void zr_cpu_relax(void) /* call it inside a short spin loop */
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* A small number of the calling thread, unique among the threads that use the library. It
 * is free again when the thread ends. For caches in arrays. ZR_THREAD_NO_SLOT: too many
 * threads; do without a cache. */
#define ZR_THREAD_SLOTS   1024
#define ZR_THREAD_NO_SLOT UINT32_MAX
uint32_t zr_thread_slot(void);

/* ---- cancellation ------------------------------------------------------- */

/* The public object; a request has one of its own, whose `outer` is the caller's. */
struct zarr_cancel {
    atomic_bool set;
    atomic_uint refs;
    const struct zarr_cancel *outer; /* setting it sets this one, too; borrowed; NULL */
};
void zr_cancel_init(zarr_cancel *c, const zarr_cancel *outer);
/* Whether the object, or one outside of it, is set. NULL: no. */
static inline bool zr_is_cancelled(const zarr_cancel *c)
{
    for (; c; c = c->outer)
        if (atomic_load_explicit(&c->set, memory_order_relaxed))
            return true;
    return false;
}
/* CANCELLED if it is. */
zarr_status zr_cancel_check(const zarr_cancel *cancel, zarr_error *err);

/* ---- fork ---------------------------------------------------------------- */

/* The number of forks since the library was loaded: one more in a forked child than in
 * its parent. An object that stores the number can detect that it was inherited. */
uint64_t zr_fork_generation(void);
/* Keeps a long-lived object usable in a forked child. The fork holds `mutex`, so the
 * object is consistent in the child. There, before the mutex is released, child(arg)
 * resets what belonged to threads that no longer exist. (child may be NULL. It
 * initializes its conditions again and does not destroy them.) If two such locks are
 * nested, the outer one has the higher rank. The caller owns the memory. Add and remove
 * with no lock held. Adding twice is allowed. */
struct zr_fork_hook {
    zr_mutex *mutex;
    void (*child)(void *arg);
    void *arg;
    uint32_t rank;
    bool linked;
    struct zr_fork_hook *prev, *next;
};
void zr_fork_hook_add(struct zr_fork_hook *hook);
void zr_fork_hook_remove(struct zr_fork_hook *hook);

uint64_t zr_now_ns(void);      /* monotonic */
int64_t zr_wall_seconds(void); /* since 1970 */
/* Unpredictable enough for temporary names; not for secrets. */
uint64_t zr_random_u64(void);

/* ---- log ---------------------------------------------------------------- */

/* What a context passes to lower rooms; copied by value. fn NULL: no log. */
struct zr_log {
    zarr_log_fn fn;
    void *user;
    uint32_t level; /* ZARR_LOG_*: messages above it are dropped before formatting */
};
void zr_log(const struct zr_log *log, uint32_t level, const char *fmt, ...)
    ZARR_PRINTF(3, 4);

/* ---- CPU ------------------------------------------------------------------ */

enum {
    ZR_CPU_SSE42 = 1,
    ZR_CPU_AVX2 = 2,
    ZR_CPU_PCLMUL = 4,
    ZR_CPU_SSSE3 = 8,
    ZR_CPU_FSRM = 16 /* kernels copy fast to any address */
};
/* The features of this CPU, without those named in ZARRC_DISABLE_CPU=avx2,... (or "all").
 * The variable is read once. */
uint32_t zr_cpu_features(void);

#endif
