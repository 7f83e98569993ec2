/* fault/world.c - see fault.h. */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- fuses and allocators ------------------------------------------------------- */

void fuse_set(struct fuse *f, int64_t k, bool forever)
{
    f->forever = forever;
    atomic_store(&f->blown, false);
    atomic_store(&f->left, k);
}

bool fuse_burns(struct fuse *f)
{
    int_fast64_t left = atomic_load(&f->left);

    if (left <= 0)
        return false;
    if (left == 1 && f->forever) {
        atomic_store(&f->blown, true);
        return true;
    }
    if (atomic_fetch_sub(&f->left, 1) != 1)
        return false;
    atomic_store(&f->blown, true);
    return true;
}

bool fuse_off(struct fuse *f)
{
    atomic_store(&f->left, 0);
    return atomic_load(&f->blown);
}

static void *world_alloc(void *user, size_t bytes)
{
    struct world *w = user;
    void *block = fuse_burns(&w->memory) ? NULL : malloc(bytes);

    if (block)
        atomic_fetch_add(&w->n_blocks, 1);
    return block;
}

static void *world_realloc(void *user, void *old, size_t bytes)
{
    struct world *w = user;
    void *block = fuse_burns(&w->memory) ? NULL : realloc(old, bytes);

    if (block && !old)
        atomic_fetch_add(&w->n_blocks, 1);
    return block;
}

static void world_free(void *user, void *block)
{
    struct world *w = user;

    if (block)
        atomic_fetch_sub(&w->n_blocks, 1);
    free(block);
}

void world_must(zarr_status st, const zarr_error *err, const char *what)
{
    if (st != ZARR_OK)
        fail_msg("%s: %s: %s", what, zarr_status_text(st), err->message);
}

void world_context(struct world *w, uint32_t max_threads)
{
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_limits limits = ZARR_LIMITS_INIT;
    zarr_error err;

    memset(w, 0, sizeof *w);
    limits.consolidated_bytes = 64 << 10; /* as much is allocated to read a document */
    opts.limits = &limits;
    w->alloc = (zarr_allocator){w, world_alloc, world_realloc, world_free};
    opts.allocator = &w->alloc;
    opts.max_threads = max_threads;
    world_must(zarr_context_create(&w->ctx, &opts, &err), &err, "context");
}

void world_close(struct world *w)
{
    zarr_store_free(w->store);
    zarr_context_free(w->ctx);
    if (atomic_load(&w->n_blocks) != 0)
        fail_msg("%lld blocks leaked", (long long)atomic_load(&w->n_blocks));
}

/* ---- arrays ------------------------------------------------------------------------ */

int32_t world_cell(int seed, int64_t i)
{
    return (int32_t)((int64_t)seed * 100000 + i + 1);
}

zarr_status world_make(struct world *w, const char *path, int kind, zarr_error *err)
{
    static const char edges[] =
        "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
        "\"chunk_shapes\":[[1,[2,2],40],[3,[4,9]]]}}";
    static const char shards[] =
        "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
        "\"chunk_shapes\":[[2,[4,9]],[5,[10,9]]]}}";
    static const char big[] =
        "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}]";
    static const char whole[] =
        "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}},"
        "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,5],"
        "\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
        "\"zstd\"],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
        "\"little\"}},\"crc32c\"]}},\"gzip\"]";
    const uint64_t shape[2] = {ROWS, COLS}, chunk[2] = {2, 5}, shard[2] = {6, 10};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = kind == 2 ? 2 : 3,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = kind == 6   ? NULL
                                                 : kind == 8 ? shard
                                                             : chunk,
                                  .chunk_grid = kind == 6   ? edges
                                                : kind == 7 ? shards
                                                            : NULL,
                                  .shard_shape = kind == 4 ? shard : NULL,
                                  .data_type = "int32",
                                  .fill_value = "-1",
                                  .codecs = kind == 5   ? big
                                            : kind == 8 ? whole
                                                        : NULL,
                                  .attributes = "{\"was\": 1}"};
    zarr_array *a = NULL;
    zarr_status st = zarr_array_create(&a, w->store, path, &spec, NULL, err);

    zarr_array_free(a);
    return st;
}

/* Reads or writes rows [first, first + n) of the array, all columns. */
zarr_status world_rows_io(struct world *w, const char *path, bool write, uint64_t first,
                          uint64_t n, int32_t *data, zarr_error *err)
{
    const uint64_t start[2] = {first, 0}, count[2] = {n, COLS};
    const uint64_t shape[2] = {(uint64_t)n, COLS};
    zarr_array *a = NULL;
    zarr_selection *sel = NULL;
    zarr_tensor t;
    zarr_status st = zarr_array_open(&a, w->store, path, NULL, err);

    zarr_tensor_host(&t, NULL, data, n * COLS * sizeof *data, 2, shape);
    if (st == ZARR_OK)
        st = zarr_selection_box(&sel, 2, zarr_array_shape(a), start, count, err);
    if (st == ZARR_OK)
        st = write ? zarr_array_write(a, sel, &t, NULL, err)
                   : zarr_array_read(a, sel, &t, NULL, err);
    zarr_selection_free(sel);
    zarr_array_free(a);
    return st;
}

zarr_status world_write_rows(struct world *w, const char *path, int seed, uint64_t first,
                             uint64_t n, zarr_error *err)
{
    int32_t data[2 * CELLS];

    for (uint64_t i = 0; i < n * COLS; i++)
        data[i] = world_cell(seed, (int64_t)(first * COLS + i));
    return world_rows_io(w, path, true, first, n, data, err);
}

zarr_status world_read_rows(struct world *w, const char *path, uint64_t first, uint64_t n,
                            zarr_error *err)
{
    int32_t data[CELLS];
    zarr_status st = world_rows_io(w, path, false, first, n, data, err);

    for (uint64_t i = 0; st == ZARR_OK && i < n * COLS; i++)
        assert_int_equal(data[i], world_cell(1, (int64_t)(first * COLS + i)));
    return st;
}

static const struct {
    const char *path;
    int kind;
} arrays[] = {{"g/v3", 3},    {"g/shard", 4},  {"g/plain", 5}, {"v2/x", 2},
              {"g/edges", 6}, {"g/uneven", 7}, {"g/whole", 8}, {"g/gone/deep", 4}};

/* The keys and values of a filled store, kept from the first world for all later
 * ones. */
static struct {
    char *key;
    void *value;
    uint64_t bytes;
} filled[128];
static size_t n_filled;

static int keep_key(void *user, const zarr_store_item *item)
{
    (void)user;
    if (n_filled == sizeof filled / sizeof *filled)
        return 1;
    filled[n_filled].bytes = item->bytes;
    filled[n_filled++].key = strdup(item->key);
    return 0;
}

static void keep_filled(struct world *w)
{
    zarr_error err;

    world_must(
        zarr_store_list(w->store, "", ZARR_LIST_RECURSIVE, keep_key, NULL, NULL, &err),
        &err, "list");
    assert_in_range(n_filled, 1, sizeof filled / sizeof *filled - 1);
    for (size_t i = 0; i < n_filled; i++) {
        uint64_t bytes = filled[i].bytes == UINT64_MAX ? 1 << 16 : filled[i].bytes;

        filled[i].value = malloc(bytes);
        world_must(zarr_store_get(w->store, filled[i].key, 0, filled[i].value, &bytes,
                                  NULL, &err),
                   &err, filled[i].key);
        filled[i].bytes = bytes;
    }
}

/* Creates a new file, and the folders above it. */
static int new_file(char *path, size_t root_bytes)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL;
    const int fd = open(path, flags, 0600);

    if (fd >= 0)
        return fd;
    for (char *at = strchr(path + root_bytes + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0700); /* fails if the file exists */
        *at = '/';
    }
    return open(path, flags, 0600);
}

/* Whether a world with these extra arrays has the key. */
static bool is_wanted(const char *key, const char *extra)
{
    static const char *const optional[] = {"v3", "edges", "uneven", "whole", "gone"};

    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        const size_t n = strlen(optional[i]);

        if (strncmp(key, "g/", 2) == 0 && strncmp(key + 2, optional[i], n) == 0 &&
            key[2 + n] == '/')
            return extra && strstr(extra, optional[i]);
    }
    return true;
}

bool world_files(const char *root, const char *extra)
{
    char path[512];

    if (n_filled > 0 && mkdir(root, 0700) != 0)
        fail_msg("%s: %s", root, strerror(errno));
    for (size_t i = 0; i < n_filled; i++) {
        const ssize_t bytes = (ssize_t)filled[i].bytes;
        int fd;

        if (!is_wanted(filled[i].key, extra))
            continue;
        snprintf(path, sizeof path, "%s/%s", root, filled[i].key);
        fd = new_file(path, strlen(root));
        if (fd < 0 || write(fd, filled[i].value, filled[i].bytes) != bytes)
            fail_msg("%s: %s", path, strerror(errno));
        close(fd);
    }
    return n_filled > 0;
}

void world_fill(struct world *w, zarr_store *store, const char *extra)
{
    const bool is_first = n_filled == 0;
    zarr_error err;

    w->store = store;
    for (size_t i = 0; i < n_filled; i++)
        if (is_wanted(filled[i].key, extra))
            world_must(zarr_store_put(store, filled[i].key, filled[i].value,
                                      filled[i].bytes, NULL, &err),
                       &err, filled[i].key);
    for (size_t i = 0; is_first && i < sizeof arrays / sizeof *arrays; i++) {
        world_must(world_make(w, arrays[i].path, arrays[i].kind, &err), &err,
                   arrays[i].path);
        world_must(world_write_rows(w, arrays[i].path, 1, 0, ROWS, &err), &err,
                   arrays[i].path);
    }
    if (is_first)
        keep_filled(w);
}

/* ---- stores that wrap another one ---- */

zarr_status inner_get(zarr_store *inner, zarr_store_op *op, zarr_error *err)
{
    char *data = (char *)op->mem.handle + op->mem.offset;
    zarr_store_value value = ZARR_STORE_VALUE_INIT;
    uint64_t at = op->offset, n = op->mem.bytes;
    zarr_status st = zarr_store_stat(inner, op->key, &value, NULL, err);

    if (st != ZARR_OK)
        return st;
    op->object_bytes = value.bytes;
    if (op->verb == ZARR_STORE_STAT)
        return ZARR_OK;
    if (op->offset == ZARR_STORE_SUFFIX)
        at = value.bytes > op->length ? value.bytes - op->length : 0;
    if (n > op->length)
        n = op->length;
    st = zarr_store_get(inner, op->key, at, data, &n, NULL, err);
    op->done_bytes = n;
    return st;
}
