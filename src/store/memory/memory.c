/*
 * store/memory/memory.c - a store in memory of one kind: host memory, or a device's, as
 * its options say. A PUT makes a new value and replaces the old one in the table. A GET
 * takes a reference to the value, copies without any lock, and drops the reference. So
 * readers see the old or the new value, and a pin is only a reference. A GET can read
 * into any registered memory kind, and a PUT can take its value from any: the room mem
 * does the copy. Thread class: shared.
 */
#include "store/memory/memory_int.h"

#include <stdio.h>
#include <string.h>

struct memory_store {
    struct zr_store_env env;
    const struct zr_backend *backend; /* of the values' memory */
    const struct zr_backend *host;    /* of the memory of documents */
    int32_t device_id;
    int32_t device_types[ZR_STORE_KINDS];
    uint32_t n_device_types;
    atomic_uint_fast64_t last_version;
    uint64_t id; /* makes versions differ between stores */
    struct zr_memory_table table;
    struct zr_keylocks keylocks;
};

static void memory_close(void *self)
{
    struct memory_store *m = self;

    zr_memory_table_deinit(&m->table);
    zr_keylocks_deinit(&m->keylocks);
    zr_free(m->env.alloc, m);
}

static zarr_status memory_open(void **self, const struct zr_store_env *env,
                               const char *url, const zarr_store_options *opts,
                               zarr_error *err)
{
    int32_t type = opts->device_type == 0 ? ZARR_DEVICE_CPU : opts->device_type;
    struct memory_store *m = zr_calloc(env->alloc, 1, sizeof *m);
    zarr_status st = ZARR_OK;

    ZR_UNUSED(url);
    if (!m)
        return zr_fail_memory(err, sizeof *m);
    m->env = *env;
    m->device_id = opts->device_id;
    m->id = zr_random_u64();
    zr_keylocks_init(&m->keylocks, env, opts);
    ZR_TRY(zr_backend_find(env->memory, type, &m->backend, err));
    m->backend = zr_backend_allocator(env->memory, m->backend);
    ZR_TRY(zr_backend_find(env->memory, ZARR_DEVICE_CPU, &m->host, err));
    m->host = zr_backend_allocator(env->memory, m->host);
    /* Only where the values are: bytes that must cross are copied by the caller, who
     * copies many at once. */
    m->device_types[m->n_device_types++] = ZARR_DEVICE_CPU;
    if (type != ZARR_DEVICE_CPU)
        m->device_types[m->n_device_types++] = type;
    ZR_TRY(zr_memory_table_init(&m->table, env->alloc, err));
    *self = m;
    m = NULL;
out:
    if (m)
        memory_close(m);
    return st;
}

static void memory_caps(void *self, zarr_store_caps *out)
{
    struct memory_store *m = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT | ZARR_STORE_CAP_LOCK |
                 ZARR_STORE_CAP_FAST_GET | ZARR_STORE_CAP_WRITES_WAIT |
                 ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_PUT_NEW |
                 ZARR_STORE_CAP_PUT_IF_VERSION | ZARR_STORE_CAP_ERASE_IF_VERSION |
                 ZARR_STORE_CAP_PARTS | ZARR_STORE_CAP_READ_PARTS | ZARR_STORE_CAP_COPY |
                 ZARR_STORE_CAP_COPY_PARTS;
    out->device_types = m->device_types;
    out->n_device_types = m->n_device_types;
}

/* ---- reading ---- */

/* The numbers of a version. */
enum {
    MEMORY_VERSION,
    MEMORY_STORE, /* so that a version of another store never matches */
    MEMORY_NUMBERS
};

static void memory_set_version(const struct memory_store *m, uint64_t version,
                               zarr_store_version *out)
{
    const uint64_t numbers[MEMORY_NUMBERS] = {
        [MEMORY_VERSION] = version, [MEMORY_STORE] = m->id};

    zr_store_version_make(out, numbers, MEMORY_NUMBERS);
}

/* The version of a value that has this version; 0: there is no such key. */
static uint64_t memory_expected(const struct memory_store *m, const zarr_store_version *v)
{
    if (zr_store_version_is_none(v))
        return 0;
    return zr_store_version_number(v, MEMORY_NUMBERS, MEMORY_STORE) == m->id
               ? zr_store_version_number(v, MEMORY_NUMBERS, MEMORY_VERSION)
               : UINT64_MAX;
}

static zarr_status memory_conflict(const zarr_store_op *op, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", op->key);
}

static zarr_status memory_not_found(zarr_store_op *op, zarr_error *err)
{
    return zr_op_end(op, zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key), 0);
}

static void memory_read_value(struct memory_store *m, zarr_store_op *op,
                              const struct zr_memory_value *v, zarr_error *err)
{
    struct zr_copy_counters counters = {0};
    zarr_status st = ZARR_OK;
    uint64_t offset, n;
    zarr_memory from;

    if ((op->flags & ZARR_STORE_OP_IF_VERSION) &&
        memory_expected(m, &op->version) != v->version) {
        zr_op_end(op, memory_conflict(op, err), 0);
        return;
    }
    memory_set_version(m, v->version, &op->version);
    op->object_bytes = v->mem.bytes;
    if (op->verb == ZARR_STORE_STAT) {
        zr_op_end(op, ZARR_OK, 0);
        return;
    }
    zr_op_range(op, v->mem.bytes, &offset, &n);
    if (n > 0 && !zr_mem_slice(&v->mem, offset, n, &from))
        st = zr_internal(err);
    else if (n > 0)
        st = zr_mem_copy_bytes(m->env.memory, &op->mem, &from, n, &counters, err);
    zr_op_add_copies(op, &counters);
    if (st == ZARR_OK)
        op->done_bytes = n;
    zr_op_end(op, st, 0);
}

static void memory_read(struct memory_store *m, zarr_store_op *op, zarr_error *err)
{
    struct zr_memory_value *v;

    if (op->flags & ZR_STORE_OP_PINNED) {
        const struct zr_store_pin *p = op->lock;

        memory_read_value(m, op, (const struct zr_memory_value *)p->held, err);
        return;
    }
    v = zr_memory_table_get(&m->table, op->key);
    if (!v) {
        memory_not_found(op, err);
        return;
    }
    memory_read_value(m, op, v, err);
    zr_memory_value_free(v);
}

static zarr_status memory_pin(void *self, struct zr_store_pin *p, zarr_error *err)
{
    struct memory_store *m = self;
    struct zr_memory_value *v = zr_memory_table_get(&m->table, p->key);

    if (!v)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", p->key);
    memory_set_version(m, v->version, &p->version);
    p->object_bytes = v->mem.bytes;
    p->held = (intptr_t)v;
    return ZARR_OK;
}

static void memory_unpin(void *self, struct zr_store_pin *p)
{
    ZR_UNUSED(self);
    zr_memory_value_free((struct zr_memory_value *)p->held);
}

/* ---- writing ---- */

/* Call it under the key's lock, or with a lock that the caller passed. */
static zarr_status memory_change(struct memory_store *m, zarr_store_op *op,
                                 struct zr_memory_value *to, zarr_error *err)
{
    const uint64_t expected = memory_expected(m, &op->version);
    struct zr_memory_change c = {
        .key = op->key,
        .expected = op->flags & ZARR_STORE_OP_IF_VERSION ? &expected : NULL,
        .to = to};
    uint64_t version = to ? to->version : 0;
    zarr_status st;

    st = zr_memory_table_change(&m->table, &c, err);
    if (st == ZARR_ERR_CONFLICT)
        return memory_conflict(op, err);
    if (st != ZARR_OK)
        return st;
    if (!to && !c.found)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key);
    op->version = (zarr_store_version){{0}};
    if (to) {
        memory_set_version(m, version, &op->version);
        if ((op->flags & ZR_STORE_OP_TELL) && !c.found)
            op->flags |= ZR_STORE_OP_CREATED;
    }
    return ZARR_OK;
}

static zarr_status memory_change_with_lock(struct memory_store *m, zarr_store_op *op,
                                           struct zr_memory_value *to, zarr_error *err)
{
    struct zr_lock_wait wait = {.key = op->key, .cancel = op->cancel};
    struct zr_keylock lock;
    zarr_status st;

    if (op->flags & ZARR_STORE_OP_LOCKED) {
        const struct zr_handle_lock *held = op->lock;

        if (!held || strcmp(held->key, op->key) != 0)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: write with no lock, or another key's", op->key);
        return memory_change(m, op, to, err);
    }
    st = zr_keylocks_take(&m->keylocks, &lock, &wait, err);
    if (st != ZARR_OK)
        return st;
    st = memory_change(m, op, to, err);
    zr_keylocks_give(&m->keylocks, &lock);
    return st;
}

/* Metadata is read by the CPU alone, so it is in host memory in any store. */
static const struct zr_backend *memory_backend(const struct memory_store *m,
                                               const char *key)
{
    return zr_key_kind(key) == ZARR_STORE_OP_DOCUMENT ? m->host : m->backend;
}

/* Makes a value for op's key that is a copy of mem. mem NULL: uninitialized. */
static zarr_status memory_make(struct memory_store *m, zarr_store_op *op,
                               const zarr_memory *mem, uint64_t bytes,
                               struct zr_memory_value **out, zarr_error *err)
{
    const struct zr_backend *backend = memory_backend(m, op->key);
    struct zr_copy_counters counters = {0};
    struct zr_memory_value *v = NULL;
    zarr_status st = zr_memory_value_create(
        &v, m->env.alloc, backend, backend == m->host ? 0 : m->device_id, bytes, err);

    if (st != ZARR_OK)
        return st;
    v->version = atomic_fetch_add(&m->last_version, 1) + 1;
    if (mem && bytes > 0) {
        st = zr_mem_copy_bytes(m->env.memory, &v->mem, mem, bytes, &counters, err);
        zr_op_add_copies(op, &counters);
    }
    if (st == ZARR_OK)
        *out = v;
    else
        zr_memory_value_free(v);
    return st;
}

/* The value that a COPY writes. Keys of one store share it, and its version. */
static zarr_status memory_source(struct memory_store *m, zarr_store_op *op,
                                 struct zr_memory_value **out, zarr_error *err)
{
    const zarr_store_source *from = op->source;
    struct memory_store *other = from->self;
    struct zr_memory_value *v = zr_memory_table_get(&other->table, from->key);
    zarr_status st = ZARR_OK;

    if (!v)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", from->key);
    if (!zr_store_version_is_none(&from->version) &&
        memory_expected(other, &from->version) != v->version)
        ZR_FAIL(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", from->key);
    if (other == m && v->backend == memory_backend(m, op->key)) {
        *out = v;
        return ZARR_OK;
    }
    st = memory_make(m, op, &v->mem, v->mem.bytes, out, err);
out:
    zr_memory_value_free(v);
    return st;
}

/* Gives op's key a value, which is moved. */
static zarr_status memory_store_value(struct memory_store *m, zarr_store_op *op,
                                      struct zr_memory_value *v, zarr_error *err)
{
    const uint64_t bytes = v->mem.bytes;
    const zarr_status st = memory_change_with_lock(m, op, v, err);

    if (st != ZARR_OK)
        zr_memory_value_free(v);
    else
        op->done_bytes = op->object_bytes = bytes;
    return st;
}

static zarr_status memory_put(struct memory_store *m, zarr_store_op *op, zarr_error *err)
{
    struct zr_memory_value *v = NULL;
    const zarr_status st = op->verb == ZARR_STORE_COPY
                               ? memory_source(m, op, &v, err)
                               : memory_make(m, op, &op->mem, op->mem.bytes, &v, err);

    return st == ZARR_OK ? memory_store_value(m, op, v, err) : st;
}

/* ---- values in parts ---- */

static zarr_status memory_begin_parts(void *self, const char *key, void *lock,
                                      const zarr_cancel *cancel, void **parts,
                                      zarr_error *err)
{
    const struct memory_store *m = self;
    struct zr_memory_parts *p = NULL;
    const zarr_status st = zr_memory_parts_create(&p, m->env.alloc, key, err);

    ZR_UNUSED(lock, cancel);
    *parts = p;
    return st;
}

static void memory_end_parts(void *self, const char *key, void *parts)
{
    ZR_UNUSED(self, key);
    zr_memory_parts_free(parts);
}

/* A PUT_PART, or a COPY whose value becomes a part. */
static zarr_status memory_put_part(struct memory_store *m, zarr_store_op *op,
                                   zarr_error *err)
{
    struct zr_memory_value *v = NULL;
    uint64_t bytes;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_memory_parts_check(op->parts, op->key, err));
    if (op->verb == ZARR_STORE_COPY)
        ZR_TRY(memory_source(m, op, &v, err));
    else
        ZR_TRY(memory_make(m, op, &op->mem, op->mem.bytes, &v, err));
    bytes = v->mem.bytes;
    ZR_TRY(zr_memory_parts_add(op->parts, op, v, err));
    v = NULL;
    op->done_bytes = bytes;
    if (op->verb == ZARR_STORE_COPY)
        op->object_bytes = bytes;
out:
    zr_memory_value_free(v);
    return st;
}

/* A second commit finds that it is done. */
static zarr_status memory_commit(struct memory_store *m, zarr_store_op *op,
                                 zarr_error *err)
{
    struct zr_memory_parts *p = op->parts;
    struct zr_memory_value *v = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_memory_parts_check(p, op->key, err));
    if (p->is_committed) {
        op->version = p->version;
        op->done_bytes = op->object_bytes = op->length;
        goto out;
    }
    ZR_TRY(memory_make(m, op, NULL, op->length, &v, err));
    ZR_TRY(zr_memory_parts_join(p, m->env.memory, &v->mem, op, err));
    st = memory_store_value(m, op, v, err);
    v = NULL;
    p->is_committed = st == ZARR_OK;
    p->version = op->version;
out:
    zr_memory_value_free(v);
    return st;
}

static zarr_status memory_get_parts(struct memory_store *m, zarr_store_op *op,
                                    zarr_error *err)
{
    zarr_status st = zr_memory_parts_check(op->parts, op->key, err);

    return st == ZARR_OK ? zr_memory_parts_read(op->parts, m->env.memory, op, err) : st;
}

static void memory_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const bool in_parts = op->flags & ZARR_STORE_OP_IN_PARTS;

    if (op->verb == ZARR_STORE_PUT && in_parts)
        zr_op_end(op, memory_commit(self, op, err), 0);
    else if (op->verb == ZARR_STORE_GET && in_parts)
        zr_op_end(op, memory_get_parts(self, op, err), 0);
    else if (op->verb == ZARR_STORE_PUT_PART || in_parts)
        zr_op_end(op, memory_put_part(self, op, err), 0);
    else if (op->verb == ZARR_STORE_PUT || op->verb == ZARR_STORE_COPY)
        zr_op_end(op, memory_put(self, op, err), 0);
    else if (op->verb == ZARR_STORE_ERASE)
        zr_op_end(op, memory_change_with_lock(self, op, NULL, err), 0);
    else
        memory_read(self, op, err);
}

static zarr_status memory_lock(void *self, const char *key, const zarr_cancel *cancel,
                               void **lock, zarr_error *err)
{
    struct memory_store *m = self;

    return zr_handle_lock_take(&m->keylocks, m->env.alloc, key, cancel, lock, err);
}

static void memory_unlock(void *self, void *lock)
{
    struct memory_store *m = self;

    zr_handle_lock_give(&m->keylocks, m->env.alloc, lock);
}

static zarr_status memory_rename(void *self, const char *from, const char *to,
                                 const zarr_cancel *cancel, zarr_error *err)
{
    struct memory_store *m = self;

    ZR_UNUSED(cancel);
    return zr_memory_table_rename(&m->table, from, to, err);
}

/* ---- listing ---- */

static zarr_status memory_list(void *self, const char *prefix, uint32_t how,
                               zarr_store_list_fn fn, void *user,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct memory_store *m = self;
    const bool deep = how != ZARR_LIST_DIRECTORY && how != ZARR_LIST_DIRECTORY_UNLINKED;
    const uint64_t max_keys = m->env.limits.listing_keys;
    struct zr_memory_list page;
    uint64_t n = 0;
    bool more = how != ZARR_LIST_DEBRIS;
    zarr_status st = ZARR_OK;

    zr_memory_list_init(&page, m->env.alloc);
    while (more) {
        ZR_TRY(zr_cancel_check(cancel, err));
        ZR_TRY(zr_memory_table_list(&m->table, prefix, deep, &page, err));
        more = page.n == ZR_MEMORY_PAGE;
        for (size_t i = 0; i < page.n; i++) {
            const struct zr_memory_row *row = &page.row[i];
            const zarr_store_item item = {
                .key = row->key, .bytes = row->bytes, .is_prefix = row->is_prefix};

            if (n++ >= max_keys)
                ZR_FAIL_LIMIT(err, "listing_keys", max_keys,
                              "more than %" PRIu64 " keys in a listing", max_keys);
            if (fn(user, &item) != 0)
                goto out;
        }
    }
out:
    zr_memory_list_deinit(&page);
    return st;
}

static void memory_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct memory_store *m = self;
    char number[32];
    const zarr_store_place place = {
        .struct_size = sizeof place, .scheme = "memory", .endpoint = number};

    (void)snprintf(number, sizeof number, "%016" PRIx64, m->id);
    fn(user, &place);
}

const zarr_store_vtable zr_memory_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "memory",
    .caps = memory_caps,
    .run = memory_run,
    .list = memory_list,
    .lock = memory_lock,
    .unlock = memory_unlock,
    .close = memory_close,
    .rename = memory_rename,
    .begin_parts = memory_begin_parts,
    .end_parts = memory_end_parts,
    .place = memory_place,
};

const struct zr_store_native zr_memory_native = {
    .open = memory_open,
    .pin = memory_pin,
    .unpin = memory_unpin,
    .detail = "values in memory of any kind; URL: memory:",
};
