/* unit/array/hook_store.c - a store that calls the test around each operation, and for
 * each flush, and fails operations as the test says. */
#include "hook_store.h"

#include <pthread.h>
#include <stdbool.h>

/* ---- the store: a table of keys, with any number of handles ---------------- */

_Atomic(hook_fn) hook;
_Atomic(fault_fn) fault_hook;
_Thread_local int is_others;

enum {
    N_KEYS = 512,
    VALUE_BYTES = 4096
};

static struct {
    pthread_mutex_t mutex;
    struct {
        char key[64];
        unsigned char value[VALUE_BYTES];
        uint64_t bytes, version; /* version 0: the key does not exist */
    } row[N_KEYS];
    uint64_t last;
    uint32_t caps;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void table_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_FAST_GET | table.caps;
}

static int find_row(const char *key)
{
    int free_row = -1;

    for (int i = 0; i < N_KEYS; i++) {
        if (table.row[i].version && strcmp(table.row[i].key, key) == 0)
            return i;
        if (!table.row[i].version && free_row < 0)
            free_row = i;
    }
    return free_row;
}

/* None, if the row is free. */
static zarr_store_version row_version(int i)
{
    zarr_store_version v = {{0}};

    if (table.row[i].version) {
        v.bytes[0] = sizeof table.row[i].version;
        memcpy(v.bytes + 1, &table.row[i].version, sizeof table.row[i].version);
    }
    return v;
}

static void do_op(zarr_store_op *op)
{
    const int i = find_row(op->key);
    unsigned char *mem = (unsigned char *)op->mem.handle + op->mem.offset;
    const zarr_store_version now = row_version(i);

    op->status = ZARR_OK;
    op->done_bytes = 0;
    op->object_bytes = UINT64_MAX;
    if (!table.row[i].version && op->verb != ZARR_STORE_PUT) {
        op->status = ZARR_ERR_NOT_FOUND;
    } else if ((op->flags & ZARR_STORE_OP_IF_VERSION) &&
               memcmp(&op->version, &now, sizeof now) != 0) {
        op->status = ZARR_ERR_CONFLICT;
    } else if (op->verb == ZARR_STORE_PUT) {
        snprintf(table.row[i].key, sizeof table.row[i].key, "%s", op->key);
        memcpy(table.row[i].value, mem, op->mem.bytes);
        table.row[i].bytes = op->done_bytes = op->mem.bytes;
        table.row[i].version = ++table.last;
    } else if (op->verb == ZARR_STORE_ERASE) {
        table.row[i].version = 0;
    } else {
        op->object_bytes = table.row[i].bytes;
        if (op->verb == ZARR_STORE_GET) {
            op->done_bytes =
                op->mem.bytes < op->object_bytes ? op->mem.bytes : op->object_bytes;
            if (op->done_bytes > 0)
                memcpy(mem, table.row[i].value, op->done_bytes);
        }
    }
    op->version = row_version(i);
}

static void table_run(void *self, zarr_store_op *op, zarr_error *err)
{
    hook_fn h = hook;
    const fault_fn fault = fault_hook;

    (void)err;
    is_others = self != NULL;
    if (h)
        h(op, 0);
    op->status = fault ? fault(op) : ZARR_OK;
    pthread_mutex_lock(&table.mutex);
    if (op->status == ZARR_OK)
        do_op(op);
    pthread_mutex_unlock(&table.mutex);
    h = hook;
    is_others = self != NULL;
    if (h)
        h(op, 1);
}

/* Whether an earlier row is in the same folder: the first `n` bytes of its key are equal.
 */
static bool told_before(int row, size_t n)
{
    for (int i = 0; i < row; i++)
        if (table.row[i].version &&
            strncmp(table.row[i].key, table.row[row].key, n) == 0 &&
            table.row[i].key[n] == '/')
            return true;
    return false;
}

static zarr_status table_list(void *self, const char *prefix, uint32_t how,
                              zarr_store_list_fn fn, void *user,
                              const zarr_cancel *cancel, zarr_error *err)
{
    const size_t n = strlen(prefix), skip = n ? n + 1 : 0;

    (void)cancel;
    (void)self;
    (void)err;
    for (int i = 0; i < N_KEYS; i++) {
        char key[sizeof table.row[i].key];
        zarr_store_item item = {.key = key, .bytes = table.row[i].bytes};
        char *slash;

        memcpy(key, table.row[i].key, sizeof key);
        if (!table.row[i].version ||
            (n && (strncmp(key, prefix, n) != 0 || key[n] != '/')))
            continue;
        slash = how == ZARR_LIST_DIRECTORY ? strchr(key + skip, '/') : NULL;
        if (slash) {
            *slash = '\0';
            item.is_prefix = 1;
            item.bytes = 0;
            if (told_before(i, (size_t)(slash - key)))
                continue;
        }
        if (fn(user, &item))
            break;
    }
    return ZARR_OK;
}

_Atomic(flush_fn) flush_hook;

static zarr_status table_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    const flush_fn f = flush_hook;

    (void)cancel;
    (void)self;
    return f ? f(err) : ZARR_OK;
}

static const zarr_store_vtable table_vtable = {
    .struct_size = sizeof table_vtable,
    .name = "table",
    .caps = table_caps,
    .run = table_run,
    .list = table_list,
    .flush = table_flush,
};

/* ---- worlds: two handles of the same table ---------------------------------- */

struct world world;
zarr_store *other;
zarr_array *mine, *theirs;
atomic_int n_hooked;
zarr_status their_status;

zarr_array *line(zarr_store *s, int format, uint64_t length, uint64_t chunk)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = format,
                                  .ndim = 1,
                                  .shape = &length,
                                  .chunk_shape = &chunk,
                                  .codecs = format == 3 ? "[]" : NULL,
                                  .data_type = "int32"};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, s, "a", &spec, NULL, &terr));
    return a;
}

void unhook(void)
{
    const hook_fn none = NULL; /* clang 14 refuses to store NULL itself */
    const flush_fn no_flush = NULL;
    const fault_fn no_fault = NULL;

    hook = none;
    flush_hook = no_flush;
    fault_hook = no_fault;
}

void begin(uint32_t caps, int format, uint64_t length, uint64_t chunk)
{
    world_begin(&world, WORLD_PLAIN);
    assert_ok(world_context(&world, &terr));
    memset(table.row, 0, sizeof table.row);
    table.caps = caps;
    unhook();
    n_hooked = 0;
    assert_ok(zarr_store_open_custom(&world.store, world.ctx, &table_vtable, NULL, NULL,
                                     &terr));
    assert_ok(
        zarr_store_open_custom(&other, world.ctx, &table_vtable, &table, NULL, &terr));
    mine = format ? line(world.store, format, length, chunk) : NULL;
    theirs = NULL;
}

void end(void)
{
    unhook();
    zarr_array_free(mine);
    zarr_array_free(theirs);
    zarr_store_free(other);
    world_close(&world);
}

zarr_status append(zarr_array *a, int32_t first, int n)
{
    int32_t data[256];
    const uint64_t shape = (uint64_t)n;
    zarr_tensor t;
    zarr_error e;

    for (int i = 0; i < n; i++)
        data[i] = first + i;
    zarr_tensor_host(&t, NULL, data, (uint64_t)n * sizeof *data, 1, &shape);
    return zarr_array_append(a, 0, &t, NULL, NULL, &e);
}

void read_all(zarr_array *a, int32_t *data, uint64_t want)
{
    const uint64_t shape = (uint64_t)want;
    zarr_tensor t;

    assert_ok(zarr_array_refresh(a, NULL, NULL, &terr));
    assert_int_equal(zarr_array_shape(a)[0], want);
    zarr_tensor_host(&t, NULL, data, want * sizeof *data, 1, &shape);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
}

int is_at(const zarr_store_op *op, uint32_t verb, const char *key)
{
    int none = 0;

    return op->verb == verb && strncmp(op->key, key, strlen(key)) == 0 &&
           atomic_compare_exchange_strong(&n_hooked, &none, 1);
}
