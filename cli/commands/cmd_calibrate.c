/*
 * commands/cmd_calibrate.c - zarrc calibrate: measures for each codec of a device
 * whether the device or the CPU is the faster one for elements of that device, and keeps
 * the figures in the user's cache, where the library reads them.
 */
#include "node/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    NAME = 128,
    DEVICES_MOST = 32,
    IMPLS_MOST = 256,
    ROUNDS = 3,
    ITEM = 4 /* bytes of an element */
};
static const uint64_t chunk_sizes[] = {64 << 10, 512 << 10, 4 << 20};
enum {
    N_SIZES = sizeof chunk_sizes / sizeof chunk_sizes[0]
};

struct device {
    char label[NAME], name[NAME]; /* "cuda:0"; what the backend says */
    int32_t type, id;
    uint64_t total_bytes;
};
struct implementation {
    char codec[NAME], name[NAME];
    uint32_t in_kinds, out_kinds;
    bool decodes, encodes;
};
struct calibration {
    struct cli *cli;
    struct device device[DEVICES_MOST];
    struct implementation impl[IMPLS_MOST];
    int n_devices, n_impls;
    uint64_t total; /* bytes of elements of each read or write */
    uint8_t *elements;
    struct cli_string measured; /* what goes into the file */
    int n_measured;
};

/* ---- what there is ---- */

/* `detail` is the name, and then sizes. */
static void device_name(char name[NAME], const zarr_registry_item *item)
{
    char size[32];
    const char *end;

    snprintf(size, sizeof size, "%.1f GiB",
             (double)item->total_bytes / (double)(1u << 30));
    end = item->total_bytes ? strstr(item->detail, size) : NULL;
    snprintf(name, NAME, "%s", item->detail);
    if (end && end - item->detail < NAME)
        name[end > item->detail + 1 ? end - item->detail - 2 : 0] = '\0';
}

static int add_device(void *user, const zarr_registry_item *item)
{
    struct calibration *c = user;
    struct device *d = &c->device[c->n_devices];

    if (c->n_devices == DEVICES_MOST || item->device_type == ZARR_DEVICE_CPU)
        return 0;
    *d = (struct device){.type = item->device_type,
                         .id = item->device_id,
                         .total_bytes = item->total_bytes};
    snprintf(d->label, sizeof d->label, "%s", item->name);
    device_name(d->name, item);
    c->n_devices++;
    return cli_cancelled();
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
    struct calibration *c = user;
    struct implementation *m = &c->impl[c->n_impls];

    if (c->n_impls == IMPLS_MOST || strlen(item->name) >= NAME ||
        strlen(item->of) >= NAME)
        return 0;
    *m = (struct implementation){.in_kinds = item->in_kinds,
                                 .out_kinds = item->out_kinds,
                                 .decodes = has_word(item->capabilities, "decode"),
                                 .encodes = has_word(item->capabilities, "encode")};
    snprintf(m->codec, sizeof m->codec, "%s", item->of);
    snprintf(m->name, sizeof m->name, "%s", item->name);
    c->n_impls++;
    return 0;
}

static bool on_kind(const struct implementation *m, int32_t type)
{
    return type > 0 && type < 32 &&
           (m->in_kinds & m->out_kinds & (UINT32_C(1) << type)) != 0;
}

/* Whether the CPU has this codec. */
static bool on_cpu(const struct calibration *c, const char *codec, bool encode)
{
    for (int i = 0; i < c->n_impls; i++)
        if (strcmp(c->impl[i].codec, codec) == 0 &&
            strncmp(c->impl[i].name, "cpu.", 4) == 0 &&
            on_kind(&c->impl[i], ZARR_DEVICE_CPU) &&
            (encode ? c->impl[i].encodes : c->impl[i].decodes))
            return true;
    return false;
}

/* ---- measuring ---- */

/* Steps of some noise: they compress to about half. */
static void make_elements(struct calibration *c)
{
    uint64_t x = 1;
    uint32_t value = 0;

    c->elements = cli_alloc(c->total);
    for (uint64_t i = 0; i < c->total / ITEM; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        value = i % 16 == 0 ? (uint32_t)(x >> 44) : value + (uint32_t)(x >> 62);
        memcpy(c->elements + i * ITEM, &value, ITEM);
    }
}

/* The metadata of a codec, with the options that it must have. */
static char *codec_json(const char *codec)
{
    const char *options =
        strcmp(codec, "blosc") == 0
            ? ",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":"
              "\"shuffle\",\"typesize\":4,\"blocksize\":0}"
        : strcmp(codec, "gzip") == 0 || strcmp(codec, "zlib") == 0
            ? ",\"configuration\":{\"level\":5}"
            : "";
    const bool numcodecs = strcmp(codec, "lz4") == 0 || strcmp(codec, "zlib") == 0 ||
                           strcmp(codec, "shuffle") == 0;

    return cli_format("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                      "{\"name\":\"%s%s\"%s}]",
                      numcodecs ? "numcodecs." : "", codec, options);
}

struct subject {
    zarr_store *store;
    zarr_array *array;
    zarr_mem mem;
    zarr_tensor tensor;
    int64_t length;
};

static void subject_close(struct calibration *c, struct subject *s)
{
    zarr_mem_free(c->cli->ctx, &s->mem);
    zarr_array_free(s->array);
    zarr_store_free(s->store);
}

/* An array in memory, written by the CPU, and a tensor of the device. */
static zarr_status subject_open(struct calibration *c, struct subject *s,
                                const struct device *d, const char *codecs,
                                uint64_t chunk_bytes, zarr_error *err)
{
    const uint64_t shape = c->total / ITEM, chunk = chunk_bytes / ITEM;
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_tensor host;
    zarr_status st;

    *s = (struct subject){.length = (int64_t)shape};
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk_shape = &chunk;
    spec.data_type = "uint32";
    spec.codecs = codecs;
    st = zarr_store_open(&s->store, c->cli->ctx, "memory:", NULL, err);
    if (!st)
        st = zarr_array_create(&s->array, s->store, "a", &spec, NULL, err);
    zarr_tensor_host(&host, c->elements, c->total, 1, &s->length);
    if (!st)
        st = zarr_array_write(s->array, NULL, &host, NULL, err);
    if (!st)
        st = zarr_mem_alloc(c->cli->ctx, d->type, d->id, c->total, &s->mem, err);
    if (!st) {
        const zarr_mem from = {
            .device_type = ZARR_DEVICE_CPU, .handle = c->elements, .bytes = c->total};

        st = zarr_mem_copy(c->cli->ctx, &s->mem, &from, c->total, err);
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

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nanoseconds for a MiB, the best of several rounds; 0: these implementations do not do
 * it. */
static uint64_t measure(const struct calibration *c, const struct subject *s, bool encode,
                        const char *preference, zarr_status *st, zarr_error *err)
{
    zarr_stats stats = ZARR_STATS_INIT;
    zarr_io_options o = ZARR_IO_OPTIONS_INIT;
    uint64_t best = UINT64_MAX;

    o.codec_preference = preference;
    o.trust = ZARR_TRUST_FULL; /* it has written the chunks itself */
    o.stats = &stats;
    for (int i = 0; i < ROUNDS && !*st; i++) {
        const uint64_t begin = now_ns();
        uint64_t took;

        *st = encode ? zarr_array_write(s->array, NULL, &s->tensor, &o, err)
                     : zarr_array_read(s->array, NULL, &s->tensor, &o, err);
        took = now_ns() - begin;
        best = took < best ? took : best;
        if (!*st && (stats.chunks_fallback > 0 || cli_cancelled()))
            return 0;
    }
    best /= c->total >> 20;
    return *st ? 0 : best > 0 ? best : 1;
}

/* ---- results ---- */

struct result {
    const struct device *d;
    const struct implementation *m;
    bool encode;
    uint64_t chunk_bytes, device_ns, host_ns;
};

static void add_result(struct calibration *c, const struct result *r)
{
    char *name = cli_json_quote(r->d->name), *codec = cli_json_quote(r->m->codec),
         *impl = cli_json_quote(r->m->name);

    cli_string_printf(
        &c->measured,
        "%s    {\"device_type\": %" PRId32 ", \"device_id\": %" PRId32
        ", \"device\": %s, \"total_bytes\": %" PRIu64
        ", \"codec\": %s, \"implementation\": %s, \"encode\": %s, \"chunk_bytes\": "
        "%" PRIu64 ", \"device_ns\": %" PRIu64 ", \"host_ns\": %" PRIu64 "}",
        c->n_measured++ ? ",\n" : "", r->d->type, r->d->id, name, r->d->total_bytes,
        codec, impl, r->encode ? "true" : "false", r->chunk_bytes, r->device_ns,
        r->host_ns);
    free(name);
    free(codec);
    free(impl);
    if (!c->cli->json)
        cli_printf(c->cli,
                   "%-10s %-10s %-7s %9" PRIu64 " bytes  %s %.1f us a MiB, the CPU and a "
                   "copy %.1f\n",
                   r->d->label, r->m->codec, r->encode ? "encode" : "decode",
                   r->chunk_bytes, r->m->name, (double)r->device_ns / 1e3,
                   (double)r->host_ns / 1e3);
}

static int measure_one(struct calibration *c, struct result *r)
{
    char *codecs = codec_json(r->m->codec);
    char *by_device = cli_format("%s=%s", r->m->codec, r->m->name),
         *by_cpu = cli_format("%s=cpu", r->m->codec);
    zarr_error err = ZARR_ERROR_INIT;
    struct subject s;
    zarr_status st = subject_open(c, &s, r->d, codecs, r->chunk_bytes, &err);

    for (int encode = 0; encode < 2 && !st && !cli_cancelled(); encode++) {
        r->encode = encode != 0;
        if ((encode ? !r->m->encodes : !r->m->decodes) ||
            !on_cpu(c, r->m->codec, r->encode))
            continue;
        r->device_ns = measure(c, &s, r->encode, by_device, &st, &err);
        r->host_ns = st ? 0 : measure(c, &s, r->encode, by_cpu, &st, &err);
        if (r->device_ns && r->host_ns)
            add_result(c, r);
    }
    if (st)
        cli_note(c->cli, "%s: %s with chunks of %" PRIu64 " bytes is not measured: %s",
                 r->d->label, r->m->name, r->chunk_bytes, err.message);
    subject_close(c, &s);
    free(codecs);
    free(by_device);
    free(by_cpu);
    return st == ZARR_ERR_DEVICE
               ? cli_fail(c->cli, st, &err, "cannot measure %s", r->d->label)
               : CLI_OK;
}

static int measure_device(struct calibration *c, const struct device *d)
{
    int rc = CLI_OK;

    for (int i = 0; i < c->n_impls && !rc; i++) {
        struct result r = {.d = d, .m = &c->impl[i]};

        if (!on_kind(r.m, d->type) || on_kind(r.m, ZARR_DEVICE_CPU) ||
            (!on_cpu(c, r.m->codec, false) && !on_cpu(c, r.m->codec, true)))
            continue;
        for (size_t k = 0; k < N_SIZES && !rc && !cli_cancelled(); k++) {
            r.chunk_bytes = chunk_sizes[k];
            rc = measure_one(c, &r);
        }
    }
    return rc;
}

/* ---- the file ---- */

/* The CPU's name, as Linux tells it; "": it does not. */
static void cpu_name(char name[NAME])
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];

    name[0] = '\0';
    while (f && !name[0] && fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;

        if (!at)
            continue;
        at += 1 + (at[1] == ' ');
        snprintf(name, NAME, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f)
        fclose(f);
}

static char *document(const struct calibration *c)
{
    char name[NAME], *cpu, *text;

    cpu_name(name);
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

static int find_all(struct calibration *c)
{
    struct cli *cli = c->cli;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st =
        zarr_context_list(cli->ctx, ZARR_REGISTRY_DEVICE, add_device, c, &err);

    if (!st)
        st = zarr_context_list(cli->ctx, ZARR_REGISTRY_CODEC_IMPL, add_impl, c, &err);
    if (st)
        return cli_fail(cli, st, &err, "cannot list the devices");
    if (c->n_devices == 0)
        cli_warn(cli, "there is no device to measure; ZARRC_PLUGIN_PATH loads plug-ins");
    return CLI_OK;
}

static int run_calibrate(struct cli *cli)
{
    static struct calibration c;
    char *text = NULL;
    int rc;

    c = (struct calibration){.cli = cli, .total = UINT64_C(64) << 20};
    rc = cli_size(cli, "size", &c.total);
    c.total = c.total / chunk_sizes[N_SIZES - 1] * chunk_sizes[N_SIZES - 1];
    if (!rc && c.total == 0)
        rc = cli_error(cli, CLI_USAGE, NULL, "--size: at least 4 MiB");
    if (!rc)
        rc = find_all(&c);
    if (!rc && c.n_devices > 0)
        make_elements(&c);
    for (int i = 0; i < c.n_devices && !rc && !cli_cancelled(); i++)
        rc = measure_device(&c, &c.device[i]);
    if (!rc && !cli_cancelled()) {
        text = document(&c);
        if (cli->json)
            cli_json_raw(cli_json(cli), text);
        if (c.n_devices > 0 && !cli_flag(cli, "dry-run"))
            rc = keep(cli, text);
    }
    free(text);
    free(c.elements);
    cli_string_free(&c.measured);
    return rc;
}

static const struct cli_option calibrate_options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "measure and print, but keep nothing"},
    {"size", 0, 0, "SIZE", NULL,
     "bytes of elements in each measurement, in steps of 4 MiB (default: 64M)"},
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
        "of 64 KiB, 512 KiB and 4 MiB, on an otherwise idle machine for good figures.\n\n"
        "The figures are kept in zarrc/costs.json in the user's cache: in "
        "$XDG_CACHE_HOME, or in ~/.cache without it. The library reads them when it "
        "chooses an implementation for elements of a device: where the CPU was faster, "
        "the CPU does it. A codec preference is stronger. Without the file, with a "
        "damaged one, or with one of another version of the library, CPU or device, the "
        "device does each codec that it has. explain shows the figures that decided. "
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
