/* unit/zip/zip_test.c - see zip_test.h. */
#include "zip_test.h"

#include <errno.h>
#include <unistd.h>

#include "unit/world_alloc.h"

#include <libdeflate.h>
#include <zstd.h>

#include "codecs/codecs.h"

/* ---- the store that counts ---- */

static void counting_caps(void *self, zarr_store_caps *out)
{
    struct world *w = self;

    zarr_store_capabilities(w->memory_store, out);
    out->flags &= (uint32_t) ~(ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_LOCK |
                               ZARR_STORE_CAP_WRITES_WAIT | ZARR_STORE_CAP_LIST);
    out->device_types = NULL;
    out->n_device_types = 0;
}

static void slow_caps(void *self, zarr_store_caps *out)
{
    counting_caps(self, out);
    out->flags &= ~(uint32_t)ZARR_STORE_CAP_FAST_GET;
}

/* The same bytes, but a new value. */
static void replace_archive(struct world *w)
{
    static uint8_t bytes[4096];
    uint64_t n = sizeof bytes;

    w->n_changes--;
    assert_status(zarr_store_get(w->memory_store, "x.zip", 0, bytes, &n, NULL, NULL),
                  ZARR_OK);
    put_archive(w, bytes, (size_t)n);
}

static void counting_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct world *w = self;

    (void)zarr_store_run(w->memory_store, op, err);
    if (op->verb == ZARR_STORE_GET) {
        atomic_fetch_add(&w->n_gets, 1);
        atomic_fetch_add(&w->got_bytes, op->done_bytes);
        if (w->n_changes > 0)
            replace_archive(w);
    }
}

static void world_log(void *user, uint32_t level, const char *text)
{
    struct world *w = user;

    (void)level;
    snprintf(w->log, sizeof w->log, "%s", text);
}

int world_setup(void **state)
{
    static const zarr_store_vtable counting = {.struct_size = sizeof counting,
                                               .name = "counting",
                                               .caps = counting_caps,
                                               .run = counting_run};
    zarr_store_vtable slow = counting;
    struct world *w = calloc(1, sizeof *w);
    zarr_error err;

    assert_non_null(w);
    slow.caps = slow_caps;
    w->alloc = (zarr_allocator){w, world_alloc, world_realloc, world_dealloc};
    assert_status(zr_memory_registry_init(&w->memory, &w->alloc, &err), ZARR_OK);
    assert_status(zr_store_registry_create(&w->registry, &w->alloc, &err), ZARR_OK);
    assert_status(zr_store_registry_add_core(w->registry, &err), ZARR_OK);
    w->env = (struct zr_store_env){
        .alloc = &w->alloc, .memory = &w->memory, .log = {world_log, w, ZARR_LOG_WARN}};
    zr_limits_default(&w->env.limits);
    w->env.limits.chunk_bytes = 1 << 20; /* a context sets it */
    assert_status(
        zr_store_open(&w->memory_store, w->registry, &w->env, "memory:", NULL, &err),
        ZARR_OK);
    assert_status(zr_store_open_custom(&w->store, &w->env, &counting, w, NULL, &err),
                  ZARR_OK);
    assert_status(zr_store_open_custom(&w->slow, &w->env, &slow, w, NULL, &err), ZARR_OK);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;

    zarr_store_free(w->slow);
    zarr_store_free(w->store);
    zarr_store_free(w->memory_store);
    zr_store_registry_free(w->registry);
    zr_memory_registry_deinit(&w->memory);
    assert_int_equal(w->n_blocks, 0);
    free(w);
    return 0;
}

/* ---- archives ---- */

void make_free(struct maker *k)
{
    free(k->bytes);
    *k = (struct maker){0};
}

void make_bytes(struct maker *k, const void *bytes, size_t n)
{
    if (k->n + n > k->cap) {
        k->cap = 2 * (k->n + n);
        k->bytes = realloc(k->bytes, k->cap);
        assert_non_null(k->bytes);
    }
    if (n > 0)
        memcpy(k->bytes + k->n, bytes, n);
    k->n += n;
}

void make_u16(struct maker *k, size_t at, uint16_t v)
{
    k->bytes[at] = (uint8_t)v;
    k->bytes[at + 1] = (uint8_t)(v >> 8);
}

void make_u32(struct maker *k, size_t at, uint32_t v)
{
    zr_store_le32(k->bytes + at, v);
}

static void add_number(struct maker *k, uint64_t v, size_t bytes)
{
    uint8_t p[8];

    zr_store_le64(p, v);
    make_bytes(k, p, bytes);
}

static void add_numbers(struct maker *k, const uint32_t *v, const char *bytes)
{
    for (size_t i = 0; bytes[i]; i++)
        add_number(k, v[i], (size_t)(bytes[i] - '0'));
}

static void add_extra(struct maker *k, const struct made_member *m, bool local)
{
    const size_t unknown = local ? m->local_extra : m->central_extra;
    static const uint8_t zeros[1024] = {0};

    assert_true(unknown <= sizeof zeros);
    if (m->times) {
        add_numbers(k, (const uint32_t[]){0x5455, local ? 9 : 5, 3, 1}, "2214");
        if (local)
            add_number(k, 2, 4);
    }
    if (unknown > 0) {
        add_numbers(k, (const uint32_t[]){0x7777, (uint32_t)unknown - 4}, "22");
        make_bytes(k, zeros, unknown - 4);
    }
    if (local && m->local_zip64) {
        add_numbers(k, (const uint32_t[]){1, 16}, "22");
        add_number(k, m->bytes, 8);
        add_number(k, m->bytes, 8);
    }
}

static size_t compress_member(const struct made_member *m, uint8_t **out)
{
    const size_t room = m->bytes + m->bytes / 8 + 1024;
    struct libdeflate_compressor *c;
    size_t n = m->bytes;

    *out = malloc(room);
    assert_non_null(*out);
    if (m->method == 8) {
        c = libdeflate_alloc_compressor(6);
        n = libdeflate_deflate_compress(c, m->data, m->bytes, *out, room);
        libdeflate_free_compressor(c);
    } else if (m->method == 93) {
        n = ZSTD_compress(*out, room, m->data, m->bytes, 3);
    } else if (n > 0) {
        memcpy(*out, m->data, n);
    }
    return n;
}

void make_member(struct maker *k, const struct made_member *m)
{
    const size_t i = k->n_members++;
    const size_t name = m->name_bytes ? m->name_bytes : strlen(m->name);
    uint8_t *data = NULL;
    const size_t n = compress_member(m, &data);
    const uint32_t crc = zr_codecs_crc32(0, m->data, m->bytes);
    const bool late = m->descriptor;
    const uint16_t flags = (uint16_t)(m->flags | (late ? 8 : 0));

    assert_true(i < MADE_MEMBERS);
    k->member[i].m = *m;
    k->member[i].m.name_bytes = name;
    k->member[i].m.flags = flags;
    k->member[i].header_at = k->n;
    k->member[i].stored = n;
    k->member[i].crc = crc;
    add_numbers(k,
                (const uint32_t[]){0x04034b50, 20, flags, m->method, 0, 33,
                                   late ? 0 : crc, late ? 0 : (uint32_t)n,
                                   late ? 0 : (uint32_t)m->bytes, (uint32_t)name, 0},
                "42222244422");
    make_bytes(k, m->name, name);
    add_extra(k, m, true);
    make_u16(k, k->member[i].header_at + 28,
             (uint16_t)(k->n - k->member[i].header_at - 30 - name));
    k->member[i].data_at = k->n;
    make_bytes(k, data, n);
    if (late)
        add_numbers(k,
                    (const uint32_t[]){0x08074b50, crc, (uint32_t)n, (uint32_t)m->bytes},
                    "4444");
    free(data);
}

void make_text(struct maker *k, const char *name, const char *text)
{
    make_member(k,
                &(struct made_member){.name = name, .data = text, .bytes = strlen(text)});
}

static void add_central(struct maker *k, size_t i)
{
    const struct made_member *m = &k->member[i].m;
    const size_t at = k->n;

    k->member[i].central_at = at;
    add_numbers(k,
                (const uint32_t[]){0x02014b50, 0x314, 20, m->flags, m->method, 0, 33,
                                   k->member[i].crc, (uint32_t)k->member[i].stored,
                                   (uint32_t)m->bytes, (uint32_t)m->name_bytes, 0, 0, 0,
                                   0, m->is_link ? 0xa1ff0000u : 0x81a40000u,
                                   (uint32_t)(k->member[i].header_at - k->base)},
                "42222224442222244");
    make_bytes(k, m->name, m->name_bytes);
    add_extra(k, m, false);
    make_u16(k, at + 30, (uint16_t)(k->n - at - 46 - m->name_bytes));
}

void make_end(struct maker *k, size_t first, const void *comment, size_t n, bool zip64)
{
    const uint32_t count = (uint32_t)(k->n_members - first);
    size_t bytes;

    k->directory_at = k->n;
    for (size_t i = first; i < k->n_members; i++)
        add_central(k, i);
    bytes = k->n - k->directory_at;
    if (zip64) {
        const size_t at = k->n;

        add_number(k, 0x06064b50, 4);
        add_number(k, 44, 8);
        add_numbers(k, (const uint32_t[]){45, 45, 0, 0}, "2244");
        add_number(k, count, 8);
        add_number(k, count, 8);
        add_number(k, bytes, 8);
        add_number(k, k->directory_at - k->base, 8);
        add_numbers(k, (const uint32_t[]){0x07064b50, 0}, "44");
        add_number(k, at - k->base, 8);
        add_number(k, 1, 4);
    }
    k->end_at = k->n;
    add_numbers(
        k,
        (const uint32_t[]){0x06054b50, 0, 0, zip64 ? 0xffff : count,
                           zip64 ? 0xffff : count, zip64 ? UINT32_MAX : (uint32_t)bytes,
                           zip64 ? UINT32_MAX : (uint32_t)(k->directory_at - k->base),
                           (uint32_t)n},
        "42222442");
    make_bytes(k, comment, n);
}

/* ---- opening and reading ---- */

void put_archive(struct world *w, const void *bytes, size_t n)
{
    assert_status(zarr_store_put(w->memory_store, "x.zip", bytes, n, NULL, NULL),
                  ZARR_OK);
}

zarr_status open_archive(zarr_store **out, struct world *w, zarr_error *err)
{
    void *self = NULL;
    zarr_status st;

    *out = NULL;
    w->n_gets = 0;
    w->got_bytes = 0;
    st = zr_zip_open(&self, &w->env, w->is_slow ? w->slow : w->store, "x.zip",
                     &(struct zr_zip_options){.flags = ZARR_STORE_READ_ONLY}, err);
    if (st != ZARR_OK)
        return st;
    return zr_store_open_custom_url(out, &w->env, &zr_zip_vtable, self, "zip:x.zip", NULL,
                                    err);
}

zarr_store *need_archive(struct world *w, const struct maker *k)
{
    zarr_store *s = NULL;
    zarr_error err;

    put_archive(w, k->bytes, k->n);
    if (open_archive(&s, w, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

zarr_status read_whole(zarr_store *s, const char *key, void *to, size_t room, size_t *n,
                       zarr_error *err)
{
    uint64_t bytes = room;
    const zarr_status st = zarr_store_get(s, key, 0, to, &bytes, NULL, err);

    *n = st == ZARR_OK ? (size_t)bytes : 0;
    return st;
}

void assert_text(zarr_store *s, const char *key, const char *text)
{
    char to[4096];
    size_t n = 0;
    zarr_error err;

    if (read_whole(s, key, to, sizeof to, &n, &err) != ZARR_OK)
        fail_msg("%s: %s", key, err.message);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(to, text, n);
}

void assert_absent(zarr_store *s, const char *key)
{
    assert_status(zarr_store_stat(s, key, NULL, NULL, NULL), ZARR_ERR_NOT_FOUND);
}

void assert_fails(zarr_store *s, const char *key, zarr_status st, const char *text)
{
    char to[4096];
    size_t n = 0;
    zarr_error err = {0};

    assert_status(read_whole(s, key, to, sizeof to, &n, &err), st);
    if (!strstr(err.message, text) || !strstr(err.message, key) ||
        !strstr(err.message, "x.zip"))
        fail_msg("%s has no \"%s\"", err.message, text);
}

void add_note(void *user, int is_fault, const char *text)
{
    struct notes *f = user;
    const size_t n = strlen(f->text);

    snprintf(f->text + n, sizeof f->text - n, "%s: %s\n", is_fault ? "fault" : "note",
             text);
}

/* ---- archives that are written ---- */

/* Opens an archive in a memory store, or in a folder if there is one. */
zarr_status open_as(zarr_store **out, struct world *w, zarr_store *below, uint32_t flags,
                    bool copies, zarr_error *err)
{
    const struct zr_zip_options opts = {.flags = flags, .always_copies = copies};
    const zarr_store_options how = {.struct_size = sizeof how,
                                    .flags = flags & ZARR_STORE_READ_ONLY};
    void *self = NULL;
    const zarr_status st = zr_zip_open(&self, &w->env, below, "x.zip", &opts, err);

    *out = NULL;
    return st == ZARR_OK ? zr_store_open_custom_url(out, &w->env, &zr_zip_vtable, self,
                                                    "zip:x.zip", &how, err)
                         : st;
}

zarr_store *need_as(struct world *w, zarr_store *below, uint32_t flags, bool copies)
{
    zarr_store *s = NULL;
    zarr_error err = {0};

    if (open_as(&s, w, below, flags, copies, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

void put_text(zarr_store *s, const char *key, const char *text)
{
    zarr_error err = {0};

    if (zarr_store_put(s, key, text, strlen(text), NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", key, err.message);
}

void need_flush(zarr_store *s)
{
    zarr_error err = {0};

    if (zarr_store_flush(s, NULL, &err) != ZARR_OK)
        fail_msg("%s", err.message);
}

char folder[] = "/tmp/zip-write-XXXXXX";

zarr_store *open_folder(struct world *w)
{
    const zarr_store_options opts = {.struct_size = sizeof opts, .lock_wait_ms = 100};
    zarr_store *s = NULL;
    zarr_error err = {0};

    if (zr_store_open(&s, w->registry, &w->env, folder, &opts, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return s;
}

zarr_store *begin_place(struct world *w, enum place place)
{
    zarr_store *below =
        place == IN_MEMORY ? zarr_store_ref(w->memory_store) : open_folder(w);

    if (zarr_store_erase(below, "x.zip", NULL, NULL) != ZARR_OK)
        assert_status(zarr_store_stat(below, "x.zip", NULL, NULL, NULL),
                      ZARR_ERR_NOT_FOUND);
    return below;
}

uint64_t archive_bytes(zarr_store *below)
{
    zarr_store_value v = {.struct_size = sizeof v};

    assert_status(zarr_store_stat(below, "x.zip", &v, NULL, NULL), ZARR_OK);
    return v.bytes;
}

int folder_setup(void **state)
{
    return mkdtemp(folder) ? world_setup(state) : -1;
}

int folder_teardown(void **state)
{
    const int rc = world_teardown(state);
    char name[64];

    snprintf(name, sizeof name, "%s/x.zip", folder);
    unlink(name);
    rc == 0 ? rmdir(folder) : 0;
    strcpy(folder, "/tmp/zip-write-XXXXXX");
    return rc;
}

/* ---- the store that fails ---- */

static bool fails_now(struct failing *f)
{
    return f->at > 0 && --f->at == 0;
}

static zarr_status fail_now(zarr_error *err)
{
    return zr_fail_os(err, ZARR_ERR_IO, ENOSPC, "made to fail");
}

static void failing_caps(void *self, zarr_store_caps *out)
{
    struct failing *f = self;

    zarr_store_capabilities(f->below, out);
    out->flags &=
        ~(uint32_t)(ZARR_STORE_CAP_LIST | (f->is_slow ? ZARR_STORE_CAP_FAST_GET : 0));
}

static void failing_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct failing *f = self;
    const bool fails = fails_now(f), changes = op->verb == ZARR_STORE_GET && f->changes;

    /* an append in a full disk writes some bytes */
    if (fails && op->verb == ZARR_STORE_APPEND && !f->answers_late)
        op->length = op->mem.bytes = op->mem.bytes / 2;
    if (!fails || f->answers_late || op->verb == ZARR_STORE_APPEND)
        (void)zarr_store_run(f->below, op, err);
    if (fails)
        op->status = fail_now(err);
    if (changes)
        f->changes(f);
}

static void failing_submit(void *self, zarr_store_op **ops, uint64_t n,
                           void (*done)(void *arg, zarr_store_op *op,
                                        const zarr_error *err),
                           void *arg)
{
    struct failing *f = self;

    f->most_ops = n > f->most_ops ? n : f->most_ops;
    for (uint64_t i = 0; i < n; i++) {
        zarr_error err = {0};

        failing_run(self, ops[i], &err);
        done(arg, ops[i], ops[i]->status == ZARR_OK ? NULL : &err);
    }
}

static zarr_status failing_lock(void *self, const char *key, const zarr_cancel *cancel,
                                void **lock, zarr_error *err)
{
    struct failing *f = self;

    return fails_now(f) ? fail_now(err)
                        : zarr_store_lock(lock, f->below, key, cancel, err);
}

static void failing_unlock(void *self, void *lock)
{
    zarr_store_unlock(((struct failing *)self)->below, lock);
}

static zarr_status failing_begin(void *self, const char *key, void *lock,
                                 const zarr_cancel *cancel, void **parts, zarr_error *err)
{
    struct failing *f = self;

    return fails_now(f) ? fail_now(err)
                        : zarr_store_begin_parts(parts, f->below, key, lock, cancel, err);
}

static void failing_end(void *self, const char *key, void *parts)
{
    zarr_store_end_parts(((struct failing *)self)->below, key, parts);
}

static zarr_status failing_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    struct failing *f = self;

    (void)cancel;
    return fails_now(f) ? fail_now(err) : zarr_store_flush(f->below, NULL, err);
}

static const zarr_store_vtable failing_store = {.struct_size = sizeof failing_store,
                                                .name = "failing",
                                                .caps = failing_caps,
                                                .run = failing_run,
                                                .submit = failing_submit,
                                                .lock = failing_lock,
                                                .unlock = failing_unlock,
                                                .begin_parts = failing_begin,
                                                .end_parts = failing_end,
                                                .flush = failing_flush};

zarr_store *open_failing(struct world *w, struct failing *f)
{
    const zarr_store_options opts = {.struct_size = sizeof opts};
    zarr_store *s = NULL;

    assert_status(zr_store_open_custom(&s, &w->env, &failing_store, f, &opts, NULL),
                  ZARR_OK);
    return s;
}
