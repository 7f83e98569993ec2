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
    ROUNDS = 3,      /* of a row, at most */
    CLEAR = 2,       /* one side took so many times the other: it is the slower one */
    MEMORY_PART = 4, /* of what there is, at most for the elements */
    BUDGET_PART = 8, /* of the machine's memory: the budget of buffers without --mem */
    ITEM = 4         /* bytes of an element */
};
#define SIZE_MOST (UINT64_C(1) << 30)  /* fills the streams of a device */
#define ENOUGH_NS UINT64_C(500000000)  /* rounds of that duration together are enough */
#define SLOW_NS   UINT64_C(1000000000) /* start-up is a small part of such a request */
static const uint64_t chunk_sizes[] = {64 << 10, 512 << 10, 4 << 20};
enum {
    N_SIZES = sizeof chunk_sizes / sizeof chunk_sizes[0]
};

struct device {
    char label[NAME], name[NAME]; /* "cuda:0"; what the backend says */
    int32_t type, id;
    uint64_t total_bytes, free_bytes; /* 0: not known */
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
    uint64_t total;      /* bytes of elements of each read or write */
    uint64_t host_bytes; /* the memory of the machine; 0: not known */
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

    if (item->device_type == ZARR_DEVICE_CPU)
        c->host_bytes = item->total_bytes;
    if (c->n_devices == DEVICES_MOST || item->device_type == ZARR_DEVICE_CPU)
        return 0;
    *d = (struct device){.type = item->device_type,
                         .id = item->device_id,
                         .total_bytes = item->total_bytes,
                         .free_bytes = item->free_bytes};
    snprintf(d->label, sizeof d->label, "%s", item->name);
    device_name(d->name, item);
    c->n_devices++;
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

static bool is_on_kind(const struct implementation *m, int32_t type)
{
    return type > 0 && type < 32 &&
           (m->in_kinds & m->out_kinds & (UINT32_C(1) << type)) != 0;
}

/* Whether the CPU has this codec. */
static bool is_on_cpu(const struct calibration *c, const char *codec, bool encode)
{
    for (int i = 0; i < c->n_impls; i++)
        if (strcmp(c->impl[i].codec, codec) == 0 &&
            strncmp(c->impl[i].name, "cpu.", 4) == 0 &&
            is_on_kind(&c->impl[i], ZARR_DEVICE_CPU) &&
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
    zarr_memory mem;
    zarr_tensor tensor;
    uint64_t length;
};

static void subject_close(struct calibration *c, struct subject *s)
{
    zarr_memory_free(c->cli->ctx, &s->mem);
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

    *s = (struct subject){.length = shape};
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk_shape = &chunk;
    spec.data_type = "uint32";
    spec.codecs = codecs;
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

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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
    const uint64_t begin = now_ns();
    uint64_t took;

    *st = w->encode ? zarr_array_write(s->array, NULL, &s->tensor, o, err)
                    : zarr_array_read(s->array, NULL, &s->tensor, o, err);
    took = now_ns() - begin;
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

/* What is not measured of an implementation, for each direction. */
struct left_out {
    struct cli_string sizes[2]; /* of chunks */
    char *why[2];               /* of the last size */
};

static void leave_out(struct left_out *l, const struct result *r, const char *why)
{
    const int i = r->encode;

    cli_string_printf(&l->sizes[i], "%s%" PRIu64, l->sizes[i].text ? ", " : "",
                      r->chunk_bytes);
    free(l->why[i]);
    l->why[i] = cli_strdup(why);
}

/* Tells it in one line for each direction, and forgets it. */
static void left_out_end(struct calibration *c, const struct result *r,
                         struct left_out *l)
{
    for (int i = 0; i < 2; i++) {
        if (l->sizes[i].text)
            cli_say(c->cli, "%s: %s is left out of %s of %s with chunks of %s bytes: %s",
                    r->d->label, r->m->name, i ? "encode" : "decode", r->m->codec,
                    l->sizes[i].text, l->why[i]);
        cli_string_free(&l->sizes[i]);
        free(l->why[i]);
    }
}

static void leave_to(struct left_out *l, const struct result *r, const struct way *w)
{
    char *why = cli_format("%s would do it here", w->instead);

    leave_out(l, r, why);
    free(why);
}

/* One direction with the device and with the CPU. Each side names the other one as its
 * second choice, so that the library has nothing to warn of: look() tells. */
static zarr_status measure_row(struct calibration *c, const struct subject *s,
                               struct result *r, struct left_out *l, zarr_error *err)
{
    const char *codec = r->m->codec;
    char *device_first = cli_format("%s=%s,cpu", codec, r->m->name),
         *cpu_first = cli_format("%s=cpu,%s", codec, r->m->name);
    struct way device = {
        .encode = r->encode, .preference = device_first, .name = r->m->name};
    struct way host = {.encode = r->encode, .preference = cpu_first, .name = "cpu."};
    zarr_status st = ZARR_OK;

    r->host_ns = 0;
    r->device_ns = measure(c, s, codec, &device, &st, err);
    host.against = r->device_ns;
    if (r->device_ns)
        r->host_ns = measure(c, s, codec, &host, &st, err);
    if (st)
        leave_out(l, r, err->message);
    else if (device.instead || host.instead)
        leave_to(l, r, device.instead ? &device : &host);
    else if (r->device_ns && r->host_ns)
        add_result(c, r);
    free(device.instead);
    free(host.instead);
    free(device_first);
    free(cpu_first);
    return st;
}

static int measure_one(struct calibration *c, struct result *r, struct left_out *l)
{
    char *codecs = codec_json(r->m->codec);
    zarr_error err = ZARR_ERROR_INIT;
    struct subject s;
    const zarr_status open = subject_open(c, &s, r->d, codecs, r->chunk_bytes, &err);
    zarr_status st = open;

    if (!s.array) /* a codec that needs other metadata */
        cli_note(c->cli, "%s: %s with chunks of %" PRIu64 " bytes is not measured: %s",
                 r->d->label, r->m->name, r->chunk_bytes, err.message);
    for (int encode = 0;
         encode < 2 && s.array && st != ZARR_ERR_DEVICE && !cli_is_cancelled();
         encode++) {
        r->encode = encode != 0;
        if ((encode ? !r->m->encodes : !r->m->decodes) ||
            !is_on_cpu(c, r->m->codec, r->encode))
            continue;
        if (open)
            leave_out(l, r, err.message);
        else
            st = measure_row(c, &s, r, l, &err);
    }
    subject_close(c, &s);
    free(codecs);
    return st == ZARR_ERR_DEVICE
               ? cli_fail(c->cli, st, &err, "cannot measure %s", r->d->label)
               : CLI_OK;
}

static int measure_device(struct calibration *c, const struct device *d)
{
    int rc = CLI_OK;

    for (int i = 0; i < c->n_impls && !rc; i++) {
        struct result r = {.d = d, .m = &c->impl[i]};
        struct left_out l = {0};

        if (!is_on_kind(r.m, d->type) || is_on_kind(r.m, ZARR_DEVICE_CPU) ||
            (!is_on_cpu(c, r.m->codec, false) && !is_on_cpu(c, r.m->codec, true)))
            continue;
        for (size_t k = 0; k < N_SIZES && !rc && !cli_is_cancelled(); k++) {
            r.chunk_bytes = chunk_sizes[k];
            rc = measure_one(c, &r, &l);
        }
        left_out_end(c, &r, &l);
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
        cli_warn(cli, "there is no device to measure; ZARRC_PLUGINS loads plug-ins");
    return CLI_OK;
}

static void at_most(uint64_t *bytes, uint64_t of, uint64_t part)
{
    if (of > 0 && *bytes > of / part)
        *bytes = of / part;
}

/* Bytes of elements without --size: as much as fills a device, but a small part of the
 * memory of the machine, of the budget for buffers and of each device. */
static int default_size(struct calibration *c)
{
    const uint64_t least = chunk_sizes[N_SIZES - 1];
    uint64_t budget = c->host_bytes / BUDGET_PART;
    const int rc = cli_size(c->cli, "mem", &budget);

    c->total = SIZE_MOST;
    at_most(&c->total, c->host_bytes, MEMORY_PART);
    at_most(&c->total, budget, MEMORY_PART);
    for (int i = 0; i < c->n_devices; i++) {
        at_most(&c->total, c->device[i].total_bytes, MEMORY_PART);
        at_most(&c->total, c->device[i].free_bytes, MEMORY_PART);
    }
    c->total = c->total > least ? c->total : least;
    return rc;
}

static int choose_size(struct calibration *c)
{
    const uint64_t step = chunk_sizes[N_SIZES - 1];
    int rc = default_size(c);

    if (!rc)
        rc = cli_size(c->cli, "size", &c->total);
    c->total = c->total / step * step;
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
    rc = find_all(&c);
    if (!rc)
        rc = choose_size(&c);
    if (!rc && c.n_devices > 0)
        make_elements(&c);
    for (int i = 0; i < c.n_devices && !rc && !cli_is_cancelled(); i++)
        rc = measure_device(&c, &c.device[i]);
    if (!rc && !cli_is_cancelled()) {
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
