/*
 * cuda/nvcomp_library.c - finds libnvcomp, looks at its version before it calls anything
 * else, and looks its functions up. Functions of one name have other arguments in other
 * major versions, so a version that is not known is refused. A missing function makes its
 * format unavailable. The library stays loaded. Thread class: shared.
 */
#include "nvcomp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    VERSION_LEAST = 5100,
    VERSION_6 = 6000,
    VERSION_END = 6100,
    PATH_BYTES = 4096
};

_Static_assert(sizeof(struct nvcomp_options) == 64, "nvCOMP's structs of options");

typedef int properties_fn(struct nvcomp_properties *out);
typedef void (*any_call)(void);

static struct {
    pthread_mutex_t mutex;
    int tried;
    void *library; /* NULL: there is none, for the reason `why` */
    char why[300], place[PATH_BYTES];
    struct nvcomp_way way[NVCOMP_FORMATS][2]; /* decode, encode */
} nv = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *const format_names[NVCOMP_FORMATS] = {
    [NVCOMP_ZSTD] = "Zstd",     [NVCOMP_DEFLATE] = "Deflate",   [NVCOMP_GZIP] = "Gzip",
    [NVCOMP_SNAPPY] = "Snappy", [NVCOMP_GDEFLATE] = "Gdeflate", [NVCOMP_LZ4] = "LZ4"};

void nvcomp_place(const char *path)
{
    pthread_mutex_lock(&nv.mutex);
    if (!nv.tried)
        (void)snprintf(nv.place, sizeof nv.place, "%s", path ? path : "");
    pthread_mutex_unlock(&nv.mutex);
}

/* The thread that held the lock is not in the child. */
void nvcomp_in_child(void)
{
    (void)pthread_mutex_init(&nv.mutex, NULL);
}

/* ---- loading -------------------- */

static void *open_file(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();

    if (why)
        (void)snprintf(nv.why, sizeof nv.why, "%s", why);
    return library;
}

/* The library in a folder; "" is the loader's own search. */
static void *open_in(const char *folder)
{
    static const char *const names[] = {"libnvcomp.so.6", "libnvcomp.so.5"};
    char file[PATH_BYTES + 32];
    void *library = NULL;

    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        (void)snprintf(file, sizeof file, "%s%s%s", folder, *folder ? "/" : "", names[i]);
        library = open_file(file);
    }
    return library;
}

static void *open_library(void)
{
    const size_t n = strlen(nv.place);

    if (n > 0 && strstr(nv.place, ".so"))
        return open_file(nv.place);
    return open_in(nv.place);
}

static any_call find_call(const char *format, const char *name)
{
    char symbol[100];
    void *found;
    any_call call;

    (void)snprintf(symbol, sizeof symbol, "nvcompBatched%s%s", format, name);
    found = dlsym(nv.library, symbol);
    memcpy(&call, &found, sizeof call); /* ISO C has no cast to a function */
    return call;
}

static int find_alignments(const char *format, const char *name,
                           struct nvcomp_alignments *out)
{
    const struct nvcomp_options how = {{0}};
    nvcomp_alignments_fn *fn = (nvcomp_alignments_fn *)find_call(format, name);

    return fn && fn(how, out) == 0 && out->input > 0 && out->output > 0 &&
           out->temp > 0 && out->input <= 256 && out->output <= 256 && out->temp <= 256;
}

static void bind_decoder(const char *format, int six, struct nvcomp_way *w)
{
    if (six)
        w->temp_6 = (nvcomp_temp_6_fn *)find_call(format, "DecompressGetTempSize");
    else
        w->temp_5 = (nvcomp_temp_5_fn *)find_call(format, "DecompressGetTempSizeAsync");
    if (find_alignments(format, "DecompressGetRequiredAlignments", &w->align) &&
        (w->temp_5 || w->temp_6))
        w->decode = (nvcomp_coder *)find_call(format, "DecompressAsync");
}

static void bind_encoder(const char *format, int six, struct nvcomp_way *w)
{
    w->most = (nvcomp_most_fn *)find_call(format, "CompressGetMaxOutputChunkSize");
    if (six)
        w->temp_6 = (nvcomp_temp_6_fn *)find_call(format, "CompressGetTempSize");
    else
        w->temp_5 = (nvcomp_temp_5_fn *)find_call(format, "CompressGetTempSizeAsync");
    if (find_alignments(format, "CompressGetRequiredAlignments", &w->align) && w->most &&
        (w->temp_5 || w->temp_6))
        w->encode = (nvcomp_encoder *)find_call(format, "CompressAsync");
}

static void load_locked(void)
{
    struct nvcomp_properties p = {0};
    properties_fn *properties = NULL;
    void *found;

    nv.tried = 1;
    nv.library = open_library();
    if (!nv.library)
        return;
    found = dlsym(nv.library, "nvcompGetProperties");
    memcpy(&properties, &found, sizeof found);
    if (!properties || properties(&p) != 0 || p.version < VERSION_LEAST ||
        p.version >= VERSION_END) {
        (void)snprintf(nv.why, sizeof nv.why,
                       "libnvcomp has version %u.%u, not one of 5.1 to 6.0",
                       (unsigned)(p.version / 1000), (unsigned)(p.version / 100 % 10));
        (void)dlclose(nv.library);
        nv.library = NULL;
        return;
    }
    for (int f = 0; f < NVCOMP_FORMATS; f++) {
        bind_decoder(format_names[f], p.version >= VERSION_6, &nv.way[f][0]);
        bind_encoder(format_names[f], p.version >= VERSION_6, &nv.way[f][1]);
    }
}

zarr_status nvcomp_start(zarr_error *err)
{
    zarr_status st = ZARR_OK;

    pthread_mutex_lock(&nv.mutex);
    if (!nv.tried)
        load_locked();
    if (!nv.library)
        st = port_host->fail(err, ZARR_ERR_UNSUPPORTED, "nvCOMP: %s", nv.why);
    pthread_mutex_unlock(&nv.mutex);
    return st;
}

const struct nvcomp_way *nvcomp_find(enum nvcomp_format f, int encode)
{
    const struct nvcomp_way *w = &nv.way[f][encode != 0];

    return w->decode || w->encode ? w : NULL;
}

/* ---- sizes -------------------- */

uint64_t nvcomp_temp(enum nvcomp_format f, int encode, uint64_t n, uint64_t most,
                     CUstream s)
{
    const struct nvcomp_way *w = nvcomp_find(f, encode);
    const struct nvcomp_options how = {{0}};
    size_t bytes = 0;
    int rc;

    if (!w || n == 0 || most == 0 || n > SIZE_MAX / 2 / most)
        return 0;
    rc = w->temp_6
             ? w->temp_6((size_t)n, (size_t)most, how, &bytes, (size_t)(n * most), s)
             : w->temp_5((size_t)n, (size_t)most, how, &bytes, (size_t)(n * most));
    if (rc != 0 || bytes > UINT64_C(1) << 44)
        return 0;
    /* frames of the highest levels of zstd need half as much again */
    if (f == NVCOMP_ZSTD && !encode)
        bytes += bytes / 2;
    return bytes + 256;
}
