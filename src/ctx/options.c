/*
 * ctx/options.c - the options of a context: the caller's struct, then the environment for
 * members that are zero, then defaults. Only this file and the CPU switch of base/ read
 * the environment, apart from the variables of AWS (builtin.c), and only while a context
 * is created, so a later setenv() of the application cannot race with it. A variable with
 * an invalid value fails the creation, and the error names it: a typo in
 * ZARRC_MEMORY_BYTES must not use up the machine's memory. Thread class: plain functions.
 */
#include "ctx/ctx_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTIONS_BUDGET_MIN = 256 << 20,
    OPTIONS_BUDGET_PART = 8, /* of the machine's memory */
    QUOTA_NS = 1000000000    /* the quota of the control group may be as old */
};

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static zarr_status env_bytes(const char *name, uint64_t max, uint64_t *value,
                             zarr_error *err)
{
    const char *text = *value == 0 ? env_text(name) : NULL;
    uint64_t v = 0;

    if (!text)
        return ZARR_OK;
    if (!zr_parse_bytes(text, strlen(text), &v) || v > max)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "environment variable %s: \"%s\" is not a number up to %" PRIu64,
                       name, text, max);
    *value = v;
    return ZARR_OK;
}

static zarr_status env_log_level(uint32_t *level, zarr_error *err)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
    const char *text = *level == 0 ? env_text("ZARRC_LOG_LEVEL") : NULL;

    if (!text)
        return ZARR_OK;
    for (uint32_t i = 0; i < ZR_COUNT(names); i++)
        if (zr_streq(text, names[i]) || (text[0] == (char)('1' + i) && !text[1])) {
            *level = i + 1;
            return ZARR_OK;
        }
    return zr_fail(
        err, ZARR_ERR_INVALID,
        "environment variable ZARRC_LOG_LEVEL: \"%s\" is not one of error, warn, "
        "info, debug, trace",
        text);
}

static zarr_status env_trust(uint32_t *trust, zarr_error *err)
{
    const char *text = *trust == 0 ? secure_getenv("ZARRC_TRUST") : NULL;

    if (!text || !*text || zr_trust_parse(text, trust))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID,
                   "environment variable ZARRC_TRUST: \"%s\" is not one of verified, "
                   "full, none",
                   text);
}

/* *value 0: the variable is not set. */
static zarr_status env_word(const char *name, const char *const *words, uint32_t n_words,
                            const char *all, uint32_t *value, zarr_error *err)
{
    const char *text = secure_getenv(name);

    *value = 0;
    if (!text || !*text)
        return ZARR_OK;
    for (uint32_t i = 0; i < n_words; i++)
        if (zr_streq(text, words[i])) {
            *value = i + 1;
            return ZARR_OK;
        }
    return zr_fail(err, ZARR_ERR_INVALID,
                   "environment variable %s: \"%s\" is not one of %s", name, text, all);
}

zarr_status zr_ctx_store_defaults(zarr_context *ctx, zarr_error *err)
{
    /* in the order of ZARR_LOCKS_* and ZARR_SYMLINKS_* */
    static const char *const locks[] = {"os", "none"};
    static const char *const symlinks[] = {"within", "deny", "follow"};
    zarr_status st =
        env_word("ZARRC_LOCKS", locks, ZR_COUNT(locks), "os, none", &ctx->locks, err);

    if (st == ZARR_OK)
        st = env_word("ZARRC_SYMLINKS", symlinks, ZR_COUNT(symlinks),
                      "within, deny, follow", &ctx->symlinks, err);
    return st;
}

zarr_status zr_ctx_default_memory(zarr_context *ctx, const zarr_context_options *o,
                                  zarr_error *err)
{
    const char *text = o->device_type == 0 ? env_text("ZARRC_MEMORY") : NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    ctx->device_type = o->device_type ? o->device_type : ZARR_DEVICE_CPU;
    ctx->device_id = o->device_id;
    if (text)
        st = zarr_memory_parse(ctx, text, &ctx->device_type, &ctx->device_id, &why);
    return st == ZARR_OK
               ? st
               : zr_fail(err, st, "environment variable ZARRC_MEMORY: %s", why.message);
}

/* What this process may have at most: the machine's memory, less in a control group. */
static uint64_t machine_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = 0;

    if (pages <= 0 || page <= 0 || !zr_mul((uint64_t)pages, (uint64_t)page, &bytes))
        return 0;
    return ZR_MIN(bytes, zr_cgroup_bytes(NULL));
}

/* To read the quota takes some 50 us, as long as opening five arrays. */
uint32_t zarr_core_count(void)
{
    static _Atomic uint64_t cores, read_ns; /* the latest quota, 0: none was read */
    const uint64_t now = zr_now_ns();
    uint64_t quota = atomic_load(&cores);

    if (quota == 0 || now - atomic_load(&read_ns) >= QUOTA_NS) {
        quota = zr_cgroup_cores(NULL);
        atomic_store(&read_ns, now);
        atomic_store(&cores, quota);
    }
    return (uint32_t)ZR_MIN((uint64_t)zr_cpu_count(), quota);
}

static zarr_status check_options(const zarr_context_options *o, zarr_error *err)
{
    const zarr_allocator *a = o->allocator;

    if (zr_flags_check(o->flags, 0, "context options", err) != ZARR_OK)
        return ZARR_ERR_UNSUPPORTED;
    if (a && (!a->alloc || !a->realloc || !a->free))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "allocator: alloc, realloc and free must all be given");
    if (o->device_type < 0 || o->device_id < 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "default memory: no device has the type %" PRId32
                       " and the number %" PRId32,
                       o->device_type, o->device_id);
    if (o->log_level > ZARR_LOG_TRACE)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "log_level %" PRIu32 " is not one of ZARR_LOG_*", o->log_level);
    if (o->trust > ZARR_TRUST_NONE || o->reserved != 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "trust %" PRIu32
                       " is not one of ZARR_TRUST_*, or reserved is not 0",
                       o->trust);
    return ZARR_OK;
}

const char *zr_ctx_plugin_path(void)
{
    const char *text = secure_getenv("ZARRC_PLUGINS");

    return text && *text ? text : NULL;
}

zarr_status zr_ctx_costs_path(char **out, const zarr_allocator *alloc, zarr_error *err)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    zarr_status st = ZARR_OK;
    struct zr_str path;

    zr_str_init(&path, alloc);
    if (cache && *cache == '/')
        zr_str_printf(&path, "%s/zarrc/costs.json", cache);
    else if (home && *home == '/')
        zr_str_printf(&path, "%s/.cache/zarrc/costs.json", home);
    st = zr_str_status(&path, err);
    *out = NULL;
    if (st == ZARR_OK && zr_str_text(&path)[0]) {
        *out = zr_strdup(alloc, zr_str_text(&path));
        st = *out ? ZARR_OK : zr_fail_memory(err, path.bytes);
    }
    zr_str_deinit(&path);
    return st;
}

zarr_status zr_ctx_options_read(zarr_context_options *out, uint64_t *memory_limit,
                                const zarr_context_options *opts, zarr_error *err)
{
    uint64_t threads = 0;

    ZR_CHECK(zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                            "zarr_context_options", err));
    ZR_CHECK(check_options(out, err));
    threads = out->max_threads;
    ZR_CHECK(env_bytes("ZARRC_MAX_THREADS", UINT16_MAX, &threads, err));
    ZR_CHECK(env_bytes("ZARRC_MEMORY_BYTES", UINT64_MAX, &out->memory_bytes, err));
    ZR_CHECK(env_bytes("ZARRC_WAVE_BYTES", UINT64_MAX, &out->wave_bytes, err));
    ZR_CHECK(env_bytes("ZARRC_DEVICE_BYTES", UINT64_MAX, &out->device_bytes, err));
    ZR_CHECK(env_bytes("ZARRC_PINNED_BYTES", UINT64_MAX, &out->pinned_bytes, err));
    ZR_CHECK(env_log_level(&out->log_level, err));
    ZR_CHECK(env_trust(&out->trust, err));
    if (!out->pipeline)
        out->pipeline = env_text("ZARRC_PIPELINE");
    if (!out->codec_preference)
        out->codec_preference = env_text("ZARRC_CODEC_PREFERENCE");

    if (!out->allocators)
        out->allocators = env_text("ZARRC_ALLOCATORS");
    if (!out->plugin_options)
        out->plugin_options = secure_getenv("ZARRC_PLUGIN_OPTIONS");
    if (out->plugin_options && !*out->plugin_options)
        out->plugin_options = NULL;

    if (threads == 0)
        threads = zarr_core_count();
    out->max_threads = (uint32_t)ZR_MIN(threads, (uint64_t)ZR_MAX_THREADS);
    if (out->trust == 0)
        out->trust = ZARR_TRUST_VERIFIED;
    if (out->log_level == 0)
        out->log_level = ZARR_LOG_WARN;
    *memory_limit = out->memory_bytes;
    if (out->memory_bytes == 0)
        out->memory_bytes = ZR_MAX(machine_memory_bytes() / OPTIONS_BUDGET_PART,
                                   (uint64_t)OPTIONS_BUDGET_MIN);
    return ZARR_OK;
}

zarr_status zr_ctx_limits_read(zarr_limits *out, const zarr_context_options *opts,
                               zarr_error *err)
{
    const char *text = secure_getenv("ZARRC_LIMITS");
    zarr_limits usual = ZARR_LIMITS_INIT;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), opts->limits,
                          ZR_TAIL_REFUSE, "zarr_limits", err));
    ZR_TRY(zr_flags_check(out->flags, 0, "limits", err));
    if (text) {
        st = zarr_limits_parse(&usual, text, err);
        ZR_TRY(zr_prefix(err, st, "environment variable ZARRC_LIMITS"));
    }
    zr_limits_complete(out, &usual);
    zr_limits_default(&usual);
    zr_limits_complete(out, &usual);
    if (out->chunk_bytes == 0)
        out->chunk_bytes = ZR_MAX(opts->memory_bytes / 2, ZR_CHUNK_BYTES_LEAST);
    if (out->variable_chunk_bytes == 0)
        out->variable_chunk_bytes =
            ZR_MIN(out->chunk_bytes,
                   ZR_MAX(opts->memory_bytes / 2,
                          ZR_MIN(opts->memory_bytes, ZR_VARIABLE_CHUNK_BYTES_LEAST)));
    out->rank = ZR_MIN(out->rank, (uint32_t)ZARR_MAX_RANK);
    out->shard_depth = ZR_MIN(out->shard_depth, (uint32_t)ZR_SHARD_DEPTH_MAX);
out:
    return st;
}
