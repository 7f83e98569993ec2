/*
 * ctx/costs.c - reads what `zarrc calibrate` measured, from the user's cache: once a
 * context, when a program for a device is first placed. A file that is damaged, or that
 * is of another library, machine or device, counts as none, and a line of the log says
 * so.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <zarrc/version.h>

enum {
    COSTS_VERSION = 1,
    COSTS_FILE_MOST = 1 << 20,
    COSTS_NAME_MOST = 128,
    COSTS_NS_MOST = 1000000000
};

struct zr_ctx_costs {
    struct zr_costs table;
    struct zr_json_doc doc; /* has the names */
    struct zr_measured *of;
};

/* ---- the file -------------------------------------------------------------------- */

/* Reads at most `cap` bytes. *why: what was wrong; NULL: there is no file. */
static bool costs_read(const char *path, char *text, size_t cap, size_t *bytes,
                       const char **why)
{
    /* a FIFO there must not stop the program */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = 0;

    *bytes = 0;
    *why = fd >= 0 || errno == ENOENT || errno == ENOTDIR ? NULL : "cannot be read";
    if (fd < 0)
        return false;
    do {
        n = read(fd, text + *bytes, cap - *bytes);
        *bytes += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && *bytes < cap) || (n < 0 && errno == EINTR));
    close(fd);
    if (n != 0)
        *why = n < 0 ? "cannot be read" : "is too large";
    return n == 0;
}

/* ---- whose it is ------------------------------------------------------------------ */

/* The CPU's name, as Linux tells it; "": it does not. */
static void cpu_name(char *text, size_t cap)
{
    char info[4096];
    size_t n = 0;
    const char *why = NULL, *at;

    text[0] = '\0';
    (void)costs_read("/proc/cpuinfo", info, sizeof info - 1, &n, &why);
    info[n] = '\0';
    at = strstr(info, "model name");
    at = at ? strchr(at, ':') : NULL;
    if (!at)
        return;
    at += 1 + (at[1] == ' ');
    n = strcspn(at, "\n");
    n = ZR_MIN(n, cap - 1);
    memcpy(text, at, n);
    text[n] = '\0';
}

static bool same_machine(const struct zr_json *root)
{
    char cpu[COSTS_NAME_MOST];
    uint64_t cores = 0;

    cpu_name(cpu, sizeof cpu);
    return zr_json_is_text(zr_json_get(root, "library"), zarr_version()) &&
           zr_json_is_text(zr_json_get(root, "cpu"), cpu) &&
           zr_json_u64(zr_json_get(root, "cores"), &cores) && cores == zarr_core_count();
}

/* Whether the device has the name and size that a measurement was made with. */
static bool costs_same_device(const zarr_context *ctx, const struct zr_json *one,
                              int32_t type)
{
    const struct zr_backend *be = NULL;
    zarr_device_facts facts;
    uint64_t id = 0, total = 0;

    return zr_json_u64(zr_json_get(one, "device_id"), &id) && id <= INT32_MAX &&
           zr_json_u64(zr_json_get(one, "total_bytes"), &total) &&
           zr_backend_find(&ctx->memory, type, &be, NULL) == ZARR_OK &&
           zr_backend_describe(be, (int32_t)id, &facts, NULL) == ZARR_OK &&
           facts.total_bytes == total &&
           zr_json_is_text(zr_json_get(one, "device"), facts.name);
}

/* ---- measurements ----------------------------------------------------------------- */

static const char *costs_name(const struct zr_json *one, const char *key)
{
    const char *text = zr_json_string(zr_json_get(one, key));

    return text && *text && strlen(text) < COSTS_NAME_MOST ? text : NULL;
}

static bool costs_read_ns(const struct zr_json *one, const char *key, uint64_t *out)
{
    return zr_json_u64(zr_json_get(one, key), out) && *out > 0 && *out <= COSTS_NS_MOST;
}

static bool costs_read_one(const struct zr_json *one, struct zr_measured *out)
{
    uint64_t type = 0;

    *out = (struct zr_measured){.codec = costs_name(one, "codec"),
                                .impl = costs_name(one, "implementation")};
    if (!zr_json_u64(zr_json_get(one, "device_type"), &type) || type > 31)
        return false;
    out->device_type = (int32_t)type;
    return out->codec && out->impl &&
           zr_json_bool(zr_json_get(one, "encode"), &out->to_stored) &&
           zr_json_u64(zr_json_get(one, "chunk_bytes"), &out->chunk_bytes) &&
           out->chunk_bytes > 0 && costs_read_ns(one, "device_ns", &out->device_ns) &&
           costs_read_ns(one, "host_ns", &out->host_ns);
}

/* Takes the measurements of devices that are there. Returns what is wrong, or NULL. */
static const char *costs_parse(const zarr_context *ctx, struct zr_ctx_costs *c)
{
    const struct zr_json *root = c->doc.root, *list = zr_json_get(root, "measured");
    const size_t n = zr_json_is(list, ZR_JSON_ARRAY) ? zr_json_count(list) : 0;
    const struct zr_json *before = NULL;
    uint64_t version = 0;
    bool there = false;

    if (!zr_json_is(root, ZR_JSON_OBJECT) ||
        !zr_json_u64(zr_json_get(root, "version"), &version))
        return "is damaged";
    if (version != COSTS_VERSION || !same_machine(root))
        return "is of another library or machine";
    c->of = zr_calloc(ctx->alloc, n + 1, sizeof *c->of);
    if (!c->of)
        return "needs memory";
    for (size_t i = 0; i < n; i++) {
        const struct zr_json *one = zr_json_at(list, i);
        struct zr_measured m;

        if (!costs_read_one(one, &m))
            return "is damaged";
        if (!before ||
            !zr_json_equal(zr_json_get(before, "device"), zr_json_get(one, "device")) ||
            !zr_json_equal(zr_json_get(before, "device_id"),
                           zr_json_get(one, "device_id")) ||
            !zr_json_equal(zr_json_get(before, "device_type"),
                           zr_json_get(one, "device_type")))
            there = costs_same_device(ctx, one, m.device_type);
        before = one;
        if (there)
            c->of[c->table.n++] = m;
    }
    c->table.of = c->of;
    return n > 0 && c->table.n == 0 ? "is of other devices" : NULL;
}

static void costs_load(const zarr_context *ctx, struct zr_ctx_costs *c)
{
    char *text = zr_malloc(ctx->alloc, COSTS_FILE_MOST);
    const char *why = NULL;
    size_t bytes = 0;

    if (!text || !ctx->costs_path ||
        !costs_read(ctx->costs_path, text, COSTS_FILE_MOST, &bytes, &why))
        goto out;
    why = zr_json_parse(&c->doc, text, bytes, &ctx->limits, NULL) == ZARR_OK
              ? costs_parse(ctx, c)
              : "is damaged";
out:
    if (why) {
        c->table.n = 0;
        zr_log(&ctx->log, ZARR_LOG_INFO,
               "%s %s: measured costs are not used; zarrc calibrate measures again",
               ctx->costs_path, why);
    }
    zr_free(ctx->alloc, text);
}

/* ---- door ------------------------------------------------------------------------- */

static void costs_free(const zarr_context *ctx, struct zr_ctx_costs *c)
{
    if (!c)
        return;
    zr_json_doc_deinit(&c->doc);
    zr_free(ctx->alloc, c->of);
    zr_free(ctx->alloc, c);
}

/* Two threads may both read the file; one of them is faster. */
static const struct zr_costs *ctx_costs(void *arg)
{
    zarr_context *ctx = arg;
    struct zr_ctx_costs *c = atomic_load(&ctx->costs), *mine;

    if (c)
        return &c->table;
    mine = zr_calloc(ctx->alloc, 1, sizeof *mine);
    if (!mine)
        return NULL; /* constants decide, which is slower at worst */
    zr_json_doc_init(&mine->doc, ctx->alloc);
    costs_load(ctx, mine);
    if (atomic_compare_exchange_strong(&ctx->costs, &c, mine))
        return &mine->table;
    costs_free(ctx, mine);
    return &c->table;
}

void zr_ctx_costs_init(zarr_context *ctx)
{
    atomic_init(&ctx->costs, NULL);
    ctx->impls.costs = ctx_costs;
    ctx->impls.costs_arg = ctx;
}

void zr_ctx_costs_deinit(zarr_context *ctx)
{
    costs_free(ctx, atomic_load(&ctx->costs));
    zr_free(ctx->alloc, ctx->costs_path);
}
