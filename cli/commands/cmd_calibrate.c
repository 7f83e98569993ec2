/*
 * commands/cmd_calibrate.c - zarrc calibrate: measures for each codec of a device
 * whether the device or the CPU is the faster one for elements of that device, and keeps
 * the figures in the user's cache, where the library reads them. It reads and writes an
 * array in memory from and to the memory of the device, with the codec on either side.
 */
#include "node/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    NAME_MOST = 128, /* bytes of a name */
    DEVICES_MOST = 32,
    IMPLS_MOST = 256,
    MEMORY_PART = 4, /* of what there is, at most for the elements */
    BUDGET_PART = 8, /* of the machine's memory: the budget of buffers without --mem */
    ROUNDS = 3,      /* of a row, at most */
    CLEAR = 2,       /* one side took so many times the other: it is the slower one */
    ITEM = 4         /* bytes of an element */
};
#define ITEM_TYPE "uint32"
#define STEP      (UINT64_C(4) << 20)  /* the largest chunk that is measured */
#define SIZE_MOST (UINT64_C(1) << 30)  /* fills the streams of a device */
#define ENOUGH_NS UINT64_C(500000000)  /* rounds of that duration together are enough */
#define SLOW_NS   UINT64_C(1000000000) /* start-up is a small part of such a request */
static const uint64_t chunk_sizes[] = {64 << 10, 512 << 10, STEP};

struct device {
    char label[NAME_MOST], name[NAME_MOST]; /* "cuda:0"; its backend's */
    int32_t type, id;
    uint64_t total_bytes, free_bytes; /* 0: not known */
};

struct implementation {
    char codec[NAME_MOST], name[NAME_MOST];
    uint32_t in_kinds, out_kinds;
    bool decodes, encodes;
    bool only_v2; /* it does nothing for codecs in v3 metadata */
    char *chain;  /* owned: the codecs of an array that it works for; NULL: not known */
    int32_t zarr_format; /* of that array */
};

struct calibration {
    struct cli *cli;
    struct device device[DEVICES_MOST];
    struct implementation impl[IMPLS_MOST];
    int n_devices, n_impls;
    uint64_t host_bytes; /* the memory of the machine; 0: not known */
    uint64_t total;      /* bytes of elements of each request: a multiple of STEP */
    uint8_t *elements;
    struct cli_string measured; /* what goes into the file */
    int n_measured;
};

struct measurement {
    const struct device *device;
    const struct implementation *impl;
    bool encode;
    uint64_t chunk_bytes, device_ns, host_ns; /* nanoseconds for a MiB of elements */
};

/* ---- the devices and the implementations of codecs ---- */

/* `detail` is the name, and then sizes. */
static void copy_device_name(char name[NAME_MOST], const zarr_registry_item *item)
{
    char size[32];
    const char *end;

    snprintf(size, sizeof size, "%.1f GiB",
             (double)item->total_bytes / (double)(1u << 30));
    end = item->total_bytes ? strstr(item->detail, size) : NULL;
    snprintf(name, NAME_MOST, "%s", item->detail);
    if (end && end - item->detail < NAME_MOST)
        name[end > item->detail + 1 ? end - item->detail - 2 : 0] = '\0';
}

static int add_device(void *user, const zarr_registry_item *item)
{
    struct calibration *s = user;
    struct device *d = &s->device[s->n_devices];

    if (item->device_type == ZARR_DEVICE_CPU)
        s->host_bytes = item->total_bytes;
    if (s->n_devices == DEVICES_MOST || item->device_type == ZARR_DEVICE_CPU)
        return 0;
    *d = (struct device){.type = item->device_type,
                         .id = item->device_id,
                         .total_bytes = item->total_bytes,
                         .free_bytes = item->free_bytes};
    snprintf(d->label, sizeof d->label, "%s", item->name);
    copy_device_name(d->name, item);
    s->n_devices++;
    return cli_is_cancelled();
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static int add_impl(void *user, const zarr_registry_item *item)
{
    const char *can = item->capabilities;
    struct calibration *s = user;
    struct implementation *m = &s->impl[s->n_impls];

    if (s->n_impls == IMPLS_MOST || strlen(item->name) >= sizeof m->name ||
        strlen(item->of) >= sizeof m->codec)
        return 0;
    *m = (struct implementation){.in_kinds = item->in_kinds,
                                 .out_kinds = item->out_kinds,
                                 .decodes = has_word(can, "decode"),
                                 .encodes = has_word(can, "encode"),
                                 .only_v2 = has_word(can, "v2") && !has_word(can, "v3")};
    snprintf(m->codec, sizeof m->codec, "%s", item->of);
    snprintf(m->name, sizeof m->name, "%s", item->name);
    s->n_impls++;
    return 0;
}

/* The codecs of an array in v3 metadata. */
static char *make_chain(const zarr_registry_item *codec)
{
    static const char bytes[] =
        "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}";
    char *name = cli_json_quote(codec->v3), *chain,
         *own = cli_format("{\"name\": %s, \"configuration\": {}}", name);

    if (strstr(codec->detail, "array to array") == codec->detail)
        chain = cli_format("[%s, %s]", own, bytes);
    else if (strstr(codec->detail, "array to bytes") == codec->detail)
        chain = cli_format("[%s]", own);
    else
        chain = cli_format("[%s, %s]", bytes, own);
    free(own);
    free(name);
    return chain;
}

/* A codec may have a row for each format. The row of v3 is preferred. */
static int set_chain(void *user, const zarr_registry_item *codec)
{
    struct implementation *m = user;
    const bool is_v3 = *codec->v3 && !m->only_v2;

    if (strcmp(codec->name, m->codec) != 0 || (!is_v3 && (m->chain || !*codec->v2)))
        return 0;
    free(m->chain);
    m->zarr_format = is_v3 ? 3 : 2;
    m->chain = is_v3 ? make_chain(codec)
                     : cli_format("{\"filters\": [{\"id\": \"%s\"}], "
                                  "\"compressor\": null}",
                                  codec->v2);
    return is_v3;
}

/* The codecs of new arrays for devices say more than a default configuration, such as
 * which compressor inside of a codec devices have. Implementations of a codec among them
 * are measured with all of them, except those of plug-ins for zstd inside of blosc. */
static zarr_status prefer_device_codecs(struct calibration *s, zarr_error *err)
{
    const uint64_t length = 1;
    static const char zstd[] =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":5,"
        "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]";
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_status st = zarr_store_open(&store, s->cli->ctx, "memory:", NULL, err);

    spec.ndim = 1;
    spec.shape = &length;
    spec.data_type = ITEM_TYPE;
    spec.zarr_format = 3;
    opts.device_type = ZARR_DEVICE_CUDA; /* one need not be there */
    if (!st)
        st = zarr_array_create(&array, store, "", &spec, &opts, err);
    for (int i = 0; i < s->n_impls && !st; i++) {
        struct implementation *m = &s->impl[i];
        char *name = cli_format("{\"name\":\"%s\"", m->codec);

        if (m->chain && m->zarr_format == 3 && strstr(zarr_array_codecs(array), name)) {
            free(m->chain);
            m->chain = cli_strdup(
                strstr(m->name, ".blosc_zstd") ? zstd : zarr_array_codecs(array));
        }
        free(name);
    }
    zarr_array_free(array);
    zarr_store_free(store);
    return st;
}

/* Lists what the context has. */
static int list_all(struct calibration *s)
{
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st;

    st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_DEVICE, add_device, s, &err);
    if (!st)
        st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_CODEC_IMPL, add_impl, s, &err);
    for (int i = 0; i < s->n_impls && !st; i++)
        st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_CODEC, set_chain, &s->impl[i],
                               &err);
    if (!st)
        st = prefer_device_codecs(s, &err);
    return st ? cli_fail(s->cli, st, &err, "cannot list the devices") : CLI_OK;
}

/* Whether the implementation takes and gives memory of this device type. */
static bool has_kind(const struct implementation *m, int32_t type)
{
    return type > 0 && type < 32 &&
           (m->in_kinds & m->out_kinds & (UINT32_C(1) << type)) != 0;
}

/* Whether the CPU has this codec. */
static bool has_cpu(const struct calibration *s, const char *codec, bool encode)
{
    for (int i = 0; i < s->n_impls; i++)
        if (strcmp(s->impl[i].codec, codec) == 0 &&
            strncmp(s->impl[i].name, "cpu.", 4) == 0 &&
            has_kind(&s->impl[i], ZARR_DEVICE_CPU) &&
            (encode ? s->impl[i].encodes : s->impl[i].decodes))
            return true;
    return false;
}

/* ---- measuring ---- */

static void add_figures(struct calibration *c, const struct measurement *m)
{
    const struct device *d = m->device;
    char *name = cli_json_quote(d->name), *codec = cli_json_quote(m->impl->codec),
         *impl = cli_json_quote(m->impl->name);

    cli_string_printf(
        &c->measured,
        "%s    {\"device_type\": %" PRId32 ", \"device_id\": %" PRId32
        ", \"device\": %s, \"total_bytes\": %" PRIu64
        ", \"codec\": %s, \"implementation\": %s, \"encode\": %s, \"chunk_bytes\": "
        "%" PRIu64 ", \"device_ns\": %" PRIu64 ", \"host_ns\": %" PRIu64 "}",
        c->n_measured++ ? ",\n" : "", d->type, d->id, name, d->total_bytes, codec, impl,
        m->encode ? "true" : "false", m->chunk_bytes, m->device_ns, m->host_ns);
    free(name);
    free(codec);
    free(impl);
    if (!c->cli->json)
        cli_printf(c->cli,
                   "%-10s %-10s %-7s %9" PRIu64 " bytes  %s %.1f us a MiB, the CPU and a "
                   "copy %.1f\n",
                   d->label, m->impl->codec, m->encode ? "encode" : "decode",
                   m->chunk_bytes, m->impl->name, (double)m->device_ns / 1e3,
                   (double)m->host_ns / 1e3);
}

/* Steps of some noise: they compress to about half. */
static uint8_t *make_elements(uint64_t total)
{
    uint8_t *elements = cli_alloc(total);
    uint64_t x = 1;
    uint32_t value = 0;

    for (uint64_t i = 0; i < total / ITEM; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value = i % 16 == 0 ? (uint32_t)(x >> 44) : value + (uint32_t)(x >> 62);
        memcpy(elements + i * ITEM, &value, ITEM);
    }
    return elements;
}

struct subject {
    zarr_store *store;
    zarr_array *array;
    zarr_memory mem;
    zarr_tensor tensor;
    uint64_t length;
};

static void subject_close(const struct calibration *c, struct subject *s)
{
    zarr_memory_free(c->cli->ctx, &s->mem);
    zarr_array_free(s->array);
    zarr_store_free(s->store);
}

/* An array in memory, written by the CPU, and a tensor of the device. */
static zarr_status subject_open(const struct calibration *c, struct subject *s,
                                const struct measurement *m, zarr_error *err)
{
    const uint64_t shape = c->total / ITEM, chunk = m->chunk_bytes / ITEM;
    const struct device *d = m->device;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_tensor host;
    zarr_status st;

    *s = (struct subject){.length = shape};
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk_shape = &chunk;
    spec.data_type = ITEM_TYPE;
    spec.codecs = m->impl->chain;
    spec.zarr_format = m->impl->zarr_format;
    st = zarr_store_open(&s->store, c->cli->ctx, "memory:", NULL, err);
    if (!st)
        st = zarr_array_create(&s->array, s->store, "a", &spec, NULL, err);
    zarr_tensor_host(&host, NULL, c->elements, c->total, 1, &s->length);
    if (!st)
        st = zarr_array_write(s->array, NULL, &host, NULL, err);
    if (!st)
        st = zarr_memory_alloc(&s->mem, c->cli->ctx, d->type, d->id, c->total, err);
    if (!st) {
        const zarr_memory from = {
            .device_type = ZARR_DEVICE_CPU, .handle = c->elements, .bytes = c->total};

        st = zarr_memory_copy(c->cli->ctx, &s->mem, &from, c->total, err);
    }
    s->tensor = (zarr_tensor)ZARR_TENSOR_INIT;
    s->tensor.device_type = d->type;
    s->tensor.device_id = d->id;
    s->tensor.ndim = 1;
    s->tensor.data = s->mem.handle;
    s->tensor.byte_offset = s->mem.offset;
    s->tensor.data_bytes = s->mem.offset + c->total;
    s->tensor.shape = &s->length;
    return st;
}

/* One way to do a row: a preference, and the implementation that must do all chunks. */
struct way {
    bool encode;
    const char *preference;
    const char *name; /* an implementation, or "cpu." for any of the CPU */
    uint64_t against; /* what the other side took for a MiB; 0: it comes later */
    char *instead;    /* owned: what did chunks in its place; NULL: nothing did */
};

static bool is_way(const struct way *w, const char *name)
{
    return strcmp(w->name, "cpu.") == 0 ? strncmp(name, "cpu.", 4) == 0
                                        : strcmp(w->name, name) == 0;
}

/* Finds out whether the way's implementation is placed; else notes which one is. */
static zarr_status look(const struct subject *s, const char *codec, struct way *w,
                        const zarr_io_options *o, zarr_error *err)
{
    const uint32_t what = w->encode ? ZARR_EXPLAIN_WRITE : ZARR_EXPLAIN_READ;
    zarr_explanation *e = NULL;
    zarr_status st = zarr_array_explain(&e, s->array, what, NULL, &s->tensor, o, err);
    const char *placed = "nothing";

    for (uint32_t i = 0; !st && i < e->n_steps; i++) {
        const zarr_explain_step *step = e->steps[i];

        if (step->kind == ZARR_STEP_CODEC && strcmp(step->codec, codec) == 0 &&
            step->n_implementations > 0)
            placed = step->implementations[0];
    }
    if (!st && !is_way(w, placed))
        w->instead = cli_strdup(placed);
    zarr_explanation_free(e);
    return st;
}

/* Nanoseconds of one request; 0: it failed, or others than the way did chunks. */
static uint64_t request(const struct subject *s, struct way *w, const zarr_io_options *o,
                        zarr_status *st, zarr_error *err)
{
    const uint64_t begin = cli_now_ns();
    uint64_t took;

    *st = w->encode ? zarr_array_write(s->array, NULL, &s->tensor, o, err)
                    : zarr_array_read(s->array, NULL, &s->tensor, o, err);
    took = cli_now_ns() - begin;
    if (!*st && o->stats->chunks_fallback + o->stats->chunks_distrusted > 0)
        w->instead = cli_strdup("another implementation");
    return *st || w->instead || cli_is_cancelled() ? 0 : took > 0 ? took : 1;
}

/* Whether the best round so far, if there is one, leaves no doubt who is the faster. */
static bool is_clear(uint64_t best, uint64_t mib, uint64_t against)
{
    return best != UINT64_MAX && against > 0 &&
           (best / mib / CLEAR > against || against / CLEAR > best / mib);
}

/* Nanoseconds for a MiB, the best of several rounds; 0: the way's implementation does not
 * do it. The first request makes pinned memory, kernels and blocks of pools, so it counts
 * only if it is a slow one of the CPU. */
static uint64_t measure(const struct calibration *c, const struct subject *s,
                        const char *codec, struct way *w, zarr_status *st,
                        zarr_error *err)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    zarr_tuning tuning = ZARR_TUNING_INIT;
    const uint64_t mib = c->total >> 20;
    uint64_t best = 0, sum = 0;

    tuning.codec_preference = w->preference;
    o.tuning = &tuning;
    o.trust = ZARR_TRUST_FULL; /* it has written the chunks itself */
    o.stats = &stats;
    *st = look(s, codec, w, &o, err);
    if (!*st && !w->instead)
        best = request(s, w, &o, st, err);
    if (best == 0)
        return 0;
    if (w->against && best >= SLOW_NS)
        return best / mib;
    best = UINT64_MAX;
    for (int i = 0; i < ROUNDS && sum < ENOUGH_NS && !is_clear(best, mib, w->against);
         i++) {
        const uint64_t took = request(s, w, &o, st, err);

        if (took == 0)
            return 0;
        best = took < best ? took : best;
        sum += took;
    }
    return best / mib > 0 ? best / mib : 1;
}

static void leave_out(const struct calibration *c, const struct measurement *m,
                      const char *why, const char *more)
{
    cli_say(c->cli,
            "%s: %s is left out of %s of %s with chunks of %" PRIu64 " bytes: %s%s",
            m->device->label, m->impl->name, m->encode ? "encode" : "decode",
            m->impl->codec, m->chunk_bytes, why, more);
}

/* One direction with the device and with the CPU. Each side names the other one as its
 * second choice, so that the library has nothing to warn of: look() tells. */
static zarr_status measure_row(struct calibration *c, const struct subject *s,
                               struct measurement *m, zarr_error *err)
{
    const char *codec = m->impl->codec;
    char *device_first = cli_format("%s=%s,cpu", codec, m->impl->name),
         *cpu_first = cli_format("%s=cpu,%s", codec, m->impl->name);
    struct way device = {
        .encode = m->encode, .preference = device_first, .name = m->impl->name};
    struct way host = {.encode = m->encode, .preference = cpu_first, .name = "cpu."};
    zarr_status st = ZARR_OK;

    m->host_ns = 0;
    m->device_ns = measure(c, s, codec, &device, &st, err);
    host.against = m->device_ns;
    if (m->device_ns)
        m->host_ns = measure(c, s, codec, &host, &st, err);
    if (st)
        leave_out(c, m, err->message, "");
    else if (device.instead || host.instead)
        leave_out(c, m, device.instead ? device.instead : host.instead,
                  " would do it here");
    else if (m->device_ns && m->host_ns)
        add_figures(c, m);
    free(device.instead);
    free(host.instead);
    free(device_first);
    free(cpu_first);
    return st;
}

/* Whether the implementation does this on one side, and the CPU on the other. */
static bool is_comparable(const struct calibration *c, const struct measurement *m,
                          bool encode)
{
    const struct implementation *i = m->impl;

    return has_kind(i, m->device->type) && !has_kind(i, ZARR_DEVICE_CPU) &&
           (encode ? i->encodes : i->decodes) && has_cpu(c, i->codec, encode);
}

static int measure_chunks(struct calibration *c, struct measurement *m)
{
    zarr_error err = ZARR_ERROR_INIT;
    struct subject s;
    const zarr_status open = subject_open(c, &s, m, &err);
    zarr_status st = open;

    if (!s.array) /* a codec that has no default configuration, or takes no uint32 */
        cli_note(c->cli, "%s: %s with chunks of %" PRIu64 " bytes is not measured: %s",
                 m->device->label, m->impl->name, m->chunk_bytes, err.message);
    for (int encode = 0;
         encode < 2 && s.array && st != ZARR_ERR_DEVICE && !cli_is_cancelled();
         encode++) {
        m->encode = encode != 0;
        if (!is_comparable(c, m, m->encode))
            continue;
        if (open)
            leave_out(c, m, err.message, "");
        else
            st = measure_row(c, &s, m, &err);
    }
    subject_close(c, &s);
    return st == ZARR_ERR_DEVICE
               ? cli_fail(c->cli, st, &err, "cannot measure %s", m->device->label)
               : CLI_OK;
}

/* All sizes of chunks, with each implementation of each device. */
static int measure_all(struct calibration *c)
{
    const size_t n_sizes = sizeof chunk_sizes / sizeof *chunk_sizes;
    int rc = CLI_OK;

    c->elements = c->n_devices > 0 ? make_elements(c->total) : NULL;
    for (int d = 0; d < c->n_devices; d++)
        for (int i = 0; i < c->n_impls; i++) {
            struct measurement m = {.device = &c->device[d], .impl = &c->impl[i]};
            const bool can = m.impl->chain &&
                             (is_comparable(c, &m, false) || is_comparable(c, &m, true));

            for (size_t k = 0; k < n_sizes && can && !rc && !cli_is_cancelled(); k++) {
                m.chunk_bytes = chunk_sizes[k];
                rc = measure_chunks(c, &m);
            }
        }
    free(c->elements);
    return rc;
}

/* ---- the file ---- */

/* The CPU's name, as Linux tells it; "": it does not. */
static void get_cpu_name(char name[NAME_MOST])
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];

    name[0] = '\0';
    while (f && !name[0] && fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;

        if (!at)
            continue;
        at += 1 + (at[1] == ' ');
        snprintf(name, NAME_MOST, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f)
        fclose(f);
}

static char *document(const struct calibration *c)
{
    char name[NAME_MOST], *cpu, *text;

    get_cpu_name(name);
    cpu = cli_json_quote(name);
    text = cli_format("{\n  \"version\": 1,\n  \"library\": \"%s\",\n  \"cpu\": %s,\n"
                      "  \"cores\": %" PRIu32 ",\n  \"measured\": [\n%s%s  ]\n}\n",
                      zarr_version(), cpu, zarr_core_count(),
                      c->measured.text ? c->measured.text : "",
                      c->measured.text ? "\n" : "");
    free(cpu);
    return text;
}

/* The folder of the file, which is made; NULL: there is none. */
static char *folder(struct cli *cli, int *rc)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *above, *path;

    if (cache && *cache == '/')
        above = cli_strdup(cache);
    else if (home && *home == '/')
        above = cli_path_join(home, ".cache");
    else {
        *rc = cli_error(cli, CLI_NOT_FOUND, "Set XDG_CACHE_HOME to an absolute path.",
                        "there is no folder for the user's cache");
        return NULL;
    }
    path = cli_path_join(above, "zarrc");
    if ((mkdir(above, 0700) != 0 && errno != EEXIST) ||
        (mkdir(path, 0700) != 0 && errno != EEXIST))
        *rc = cli_errno(cli, errno, "%s", path);
    free(above);
    return path;
}

static int keep(struct cli *cli, const char *text)
{
    struct cli_file file = {0};
    int rc = CLI_OK;
    char *above = folder(cli, &rc),
         *path = above ? cli_path_join(above, "costs.json") : NULL;

    if (!rc)
        rc = cli_file_create(cli, path, true, &file);
    if (!rc) {
        if (fputs(text, file.file) < 0)
            rc = cli_errno(cli, errno, "%s", path);
        else
            rc = cli_file_commit(cli, &file);
        cli_file_close(&file);
    }
    if (!rc)
        cli_say(cli, "%s", path);
    free(above);
    free(path);
    return rc;
}

/* ---- the command ---- */

static void at_most(uint64_t *bytes, uint64_t of, uint64_t part)
{
    if (of > 0 && *bytes > of / part)
        *bytes = of / part;
}

/* Without --size: as much as fills a device, but a small part of the memory of the
 * machine, of the budget for buffers and of each device. */
static int choose_size(struct calibration *c)
{
    uint64_t budget = c->host_bytes / BUDGET_PART;
    int rc = cli_size(c->cli, "mem", &budget);

    c->total = SIZE_MOST;
    at_most(&c->total, c->host_bytes, MEMORY_PART);
    at_most(&c->total, budget, MEMORY_PART);
    for (int i = 0; i < c->n_devices; i++) {
        at_most(&c->total, c->device[i].total_bytes, MEMORY_PART);
        at_most(&c->total, c->device[i].free_bytes, MEMORY_PART);
    }
    c->total = c->total > STEP ? c->total : STEP;
    if (!rc)
        rc = cli_size(c->cli, "size", &c->total);
    c->total -= c->total % STEP;
    if (!rc && c->total == 0)
        rc = cli_error(c->cli, CLI_USAGE, NULL, "--size: at least 4 MiB");
    return rc;
}

static int run_calibrate(struct cli *cli)
{
    static struct calibration c;
    char *text = NULL;
    int rc;

    c = (struct calibration){.cli = cli};
    rc = list_all(&c);
    if (!rc && c.n_devices == 0)
        cli_warn(cli, "there is no device to measure; ZARRC_PLUGINS loads plug-ins");
    if (!rc)
        rc = choose_size(&c);
    if (!rc)
        rc = measure_all(&c);
    if (!rc && !cli_is_cancelled()) {
        text = document(&c);
        if (cli->json)
            cli_json_raw(cli_json(cli), text);
        if (c.n_devices > 0 && !cli_flag(cli, "dry-run"))
            rc = keep(cli, text);
    }
    free(text);
    for (int i = 0; i < c.n_impls; i++)
        free(c.impl[i].chain);
    cli_string_free(&c.measured);
    return rc;
}

static const struct cli_option calibrate_options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "measure and print, but keep nothing"},
    {"size", 0, 0, "SIZE", NULL,
     "bytes of elements in each measurement, in steps of 4 MiB (default: 1G, or a "
     "quarter of "
     "--mem, of the machine's memory or of a device's if that is less)"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example calibrate_examples[] = {
    {"zarrc calibrate", "Measure all codecs of all devices, and keep the figures."},
    {"zarrc calibrate -n --json", "Print the figures alone."},
    {NULL, NULL}};

const struct cli_command cli_cmd_calibrate = {
    .name = "calibrate",
    .summary = "measure whether devices or the CPU are faster with codecs",
    .operands = "",
    .about =
        "Measures each codec that a device and the CPU have: how long an array in memory "
        "takes into the memory of the device and from there, with the codec on the "
        "device "
        "and with the codec on the CPU and a copy of the elements. It does so with "
        "chunks "
        "of 64 KiB, 512 KiB and 4 MiB, on an otherwise idle machine for good figures. A "
        "request that is not counted comes first, then up to three, of which the best "
        "one "
        "counts. That takes one to two minutes for a GPU and 16 cores, and longer with "
        "fewer cores; a smaller --size is faster, but then start-up is in the figures. "
        "An "
        "implementation that cannot do such chunks here, for example for want of a "
        "library, is left out, and a line says so.\n\n"
        "The figures are kept in zarrc/costs.json in the user's cache: in "
        "$XDG_CACHE_HOME, or in ~/.cache without it. The library reads them when it "
        "chooses an implementation for elements of a device: where the CPU was faster, "
        "the CPU does it. A codec preference is stronger. Without the file, with a "
        "damaged one, or with one of another version of the library, CPU or device, the "
        "device does each codec that it has, except zstd by kernels of zarrc, as "
        "cuda.zstd: the CPU does it. explain shows the figures that decided. "
        "Calibrate again after a change of the driver or a plug-in. Removing the file "
        "is always safe. Nothing about it is written to an array.",
    .json = "The document that is kept: version, library, cpu, cores, and measured, an "
            "array of objects with device_type, device_id, device, total_bytes, codec, "
            "implementation, encode, chunk_bytes, device_ns and host_ns (nanoseconds for "
            "a MiB of elements).",
    .options = calibrate_options,
    .examples = calibrate_examples,
    .see_also = "zarrc-explain zarrc-list",
    .run = run_calibrate,
};
