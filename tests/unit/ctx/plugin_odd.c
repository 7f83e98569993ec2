/*
 * unit/ctx/plugin_odd.c - plug-ins with one fault each, chosen by PLUGIN_CASE. Each case
 * is a library of its own (CMakeLists.txt). Like all plug-ins they link to no library.
 */
#include <zarrc/plugin/plugin.h>

#define CASE_GOOD      0 /* valid: registers one entry of each kind */
#define CASE_NO_SYMBOL 1
#define CASE_NEWER     2 /* exports only zarr_plugin_v2 */
#define CASE_NO_TABLE  3
#define CASE_ABI       4
#define CASE_SHORT     5 /* struct_size too small */
#define CASE_NO_LOAD   6
#define CASE_FAILS     7 /* load() fails with a message */
#define CASE_MUTE      8 /* load() fails without a message */
/* Another name; registers the codec of CASE_GOOD after a type of its own. */
#define CASE_CLASH     9
#define CASE_SAME_NAME 10
#define CASE_CORE      11 /* its name is "core" */
#define CASE_UNDEFINED 12 /* needs a function that does not exist */
#define CASE_TAKES     13 /* registers names of the core, one a load: see `attempt` */
#define CASE_NAME      14 /* its name has two lines */
#define CASE_VERSION   15 /* its version has two lines */
#define CASE_OPTIONS   16 /* has options, and a destructor for threads */

#if PLUGIN_CASE == CASE_SAME_NAME || PLUGIN_CASE == CASE_GOOD
#    define NAME "good"
#elif PLUGIN_CASE == CASE_CORE
#    define NAME "core"
#elif PLUGIN_CASE == CASE_TAKES
#    define NAME "thief"
#elif PLUGIN_CASE == CASE_NAME
#    define NAME "odd\n  bytes"
#else
#    define NAME "odd"
#endif

#if PLUGIN_CASE == CASE_OPTIONS
#    include <pthread.h>
#    include <string.h>

/* Values of the options, and how many threads that loaded the plug-in have ended. */
ZARR_PLUGIN_EXPORT int64_t plugin_odd_i64;
ZARR_PLUGIN_EXPORT double plugin_odd_f64;
ZARR_PLUGIN_EXPORT int plugin_odd_bool, plugin_odd_given, plugin_odd_ended;
ZARR_PLUGIN_EXPORT char plugin_odd_text[16];
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void thread_end(void *value)
{
    ++*(int *)value;
}

static void key_make(void)
{
    (void)pthread_key_create(&key, thread_end);
}

static void read_options(const zarr_host *host, zarr_context *ctx)
{
    const char *text = host->option_text(ctx, "name");

    (void)pthread_once(&key_once, key_make);
    (void)pthread_setspecific(key, &plugin_odd_ended);
    plugin_odd_i64 = plugin_odd_bool = -1;
    plugin_odd_f64 = -1;
    plugin_odd_given = host->option_i64(ctx, "number", &plugin_odd_i64) +
                       2 * host->option_f64(ctx, "real", &plugin_odd_f64) +
                       4 * host->option_bool(ctx, "switch", &plugin_odd_bool) +
                       8 * (text != NULL);
    strncpy(plugin_odd_text, text ? text : "", sizeof plugin_odd_text - 1);
}
#endif

#if PLUGIN_CASE == CASE_UNDEFINED
int function_that_nobody_has(void);
#endif

ZARR_PLUGIN_EXPORT int plugin_odd_loads, plugin_odd_unloads, plugin_odd_attempt;
ZARR_PLUGIN_EXPORT int plugin_odd_closed; /* pipelines, memories */
ZARR_PLUGIN_EXPORT const zarr_host *plugin_odd_host;

static const zarr_codec_spec_vtable codec = {.struct_size = sizeof codec,
                                             .name = "odd.codec",
                                             .kind = ZARR_CODEC_BYTES_BYTES,
                                             .flags = ZARR_CODEC_SPEC_EXPERIMENTAL};

static zarr_status odd_read(void *self, zarr_request *request,
                            const zarr_pipeline_steps *steps, zarr_error *err)
{
    (void)self;
    (void)request;
    (void)steps;
    return plugin_odd_host->fail(err, ZARR_ERR_UNSUPPORTED, "odd reads nothing");
}

static void odd_close(void *self)
{
    ++*(int *)self;
}

static const zarr_pipeline_vtable pipeline = {
    .struct_size = sizeof pipeline, .name = "odd", .read = odd_read, .close = odd_close};

static zarr_status key_parse(void **self, const char *json, zarr_error *err)
{
    (void)json;
    (void)err;
    *self = NULL;
    return ZARR_OK;
}

static zarr_status key_canonical(const void *self, char *text, size_t cap,
                                 size_t *text_bytes, zarr_error *err)
{
    (void)self;
    (void)err;
    if (cap > 2) {
        text[0] = '{';
        text[1] = '}';
        text[2] = 0;
    }
    *text_bytes = 2;
    return ZARR_OK;
}

static size_t key_key(const void *self, int32_t ndim, const uint64_t *chunk, char *text,
                      size_t cap)
{
    (void)self;
    (void)ndim;
    (void)chunk;
    if (cap > 0)
        text[0] = 0;
    return 0;
}

static int key_chunk(const void *self, int32_t ndim, const char *text, uint64_t *chunk)
{
    (void)self;
    (void)ndim;
    (void)text;
    (void)chunk;
    return -1;
}

static const zarr_key_encoding_vtable keys = {.struct_size = sizeof keys,
                                              .name = "odd." NAME,
                                              .parse = key_parse,
                                              .canonical = key_canonical,
                                              .key = key_key,
                                              .chunk = key_chunk};

static zarr_status load(const zarr_host *host, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st = ZARR_OK;
    void *block = host->alloc(ctx, 16);

    plugin_odd_loads++;
    plugin_odd_host = host;
    host->free(ctx, block);
    if (!block)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "odd: no memory");
    *self = &plugin_odd_unloads;
#if PLUGIN_CASE == CASE_FAILS
    st = host->fail(err, ZARR_ERR_DEVICE, "no device %d here", 7);
#elif PLUGIN_CASE == CASE_OPTIONS
    read_options(host, ctx);
#elif PLUGIN_CASE == CASE_MUTE
    st = 1;
#elif PLUGIN_CASE == CASE_UNDEFINED
    st = function_that_nobody_has();
#elif PLUGIN_CASE == CASE_TAKES
    zarr_codec_spec_vtable spec = codec;
    static const char *const aliases[] = {"numcodecs.zstd", NULL};
    zarr_key_encoding_vtable key = keys;
    zarr_pipeline_vtable pipe = pipeline;

    pipe.name = "waves";
    key.name = "default";
    spec.name = plugin_odd_attempt == 0 ? "gzip" : "odd.other";
    spec.aliases = plugin_odd_attempt == 1 ? aliases : NULL;
    if (plugin_odd_attempt < 2)
        st = host->register_codec_spec(ctx, &spec, err);
    else if (plugin_odd_attempt == 2)
        st = host->register_key_encoding(ctx, &key, err);
    else
        st = host->register_pipeline(ctx, &pipe, &plugin_odd_closed, err);
#else
    st = host->register_key_encoding(ctx, &keys, err);
    if (st == ZARR_OK)
        st = host->register_codec_spec(ctx, &codec, err);
    if (st == ZARR_OK)
        st = host->register_pipeline(ctx, &pipeline, &plugin_odd_closed, err);
#endif
    (void)keys;
    (void)codec;
    (void)pipeline;
    return st;
}

static void unload(void *self)
{
    ++*(int *)self;
}

static const zarr_plugin plugin = {
#if PLUGIN_CASE == CASE_SHORT
    .struct_size = 16,
#else
    .struct_size = sizeof plugin,
#endif
#if PLUGIN_CASE == CASE_ABI
    .abi = 77,
#else
    .abi = ZARR_PLUGIN_ABI,
#endif
    .name = NAME,
#if PLUGIN_CASE == CASE_VERSION
    .version = "1.2\n",
#else
    .version = "1.2",
#endif
    .license = "MIT",
#if PLUGIN_CASE != CASE_NO_LOAD
    .load = load,
#endif
    .unload = unload,
};

#if PLUGIN_CASE == CASE_NO_SYMBOL
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_other(void);
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_other(void)
#elif PLUGIN_CASE == CASE_NEWER
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_v2(void);
ZARR_PLUGIN_EXPORT const zarr_plugin *zarr_plugin_v2(void)
#else
const zarr_plugin *zarr_plugin_v1(void)
#endif
{
#if PLUGIN_CASE == CASE_NO_TABLE
    return 0 ? &plugin : NULL;
#else
    (void)load;
    return &plugin;
#endif
}
