/*
 * commands/calibrate_measure.c - zarrc calibrate: measures codecs. It reads and writes an
 * array in memory from and to the memory of the device, with the codec on either side.
 */
#include "commands/calibrate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 3, /* of a row, at most */
    CLEAR = 2,  /* one side took so many times the other: it is the slower one */
    ITEM = 4    /* bytes of an element */
};
#define ENOUGH_NS UINT64_C(500000000)  /* rounds of that duration together are enough */
#define SLOW_NS   UINT64_C(1000000000) /* start-up is a small part of such a request */
static const uint64_t chunk_sizes[] = {64 << 10, 512 << 10, STEP};

struct measurement {
    const struct device *device;
    const struct implementation *impl;
    bool encode;
    uint64_t chunk_bytes, device_ns, host_ns; /* nanoseconds for a MiB of elements */
};

static void add_figures(const struct calibration *c, const struct measurement *m)
{
    const struct device *d = m->device;
    struct cli_json *j = c->json;

    cli_json_object(j);
    cli_json_i64(cli_key(j, "device_type"), d->type);
    cli_json_i64(cli_key(j, "device_id"), d->id);
    cli_json_text(cli_key(j, "device"), d->name);
    cli_json_u64(cli_key(j, "total_bytes"), d->total_bytes);
    cli_json_text(cli_key(j, "codec"), m->impl->codec);
    cli_json_text(cli_key(j, "implementation"), m->impl->name);
    cli_json_bool(cli_key(j, "encode"), m->encode);
    cli_json_u64(cli_key(j, "chunk_bytes"), m->chunk_bytes);
    cli_json_u64(cli_key(j, "device_ns"), m->device_ns);
    cli_json_u64(cli_key(j, "host_ns"), m->host_ns);
    cli_json_end(j);
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

/* An array in memory, written by the CPU, and a tensor of the device. */
static zarr_status subject_open(const struct calibration *c, struct subject *s,
                                const struct measurement *m, zarr_error *err)
{
    const uint64_t shape = c->total / ITEM, chunk = m->chunk_bytes / ITEM;
    const struct cli_memory memory = {m->device->type, m->device->id};
    const zarr_memory from = {
        .device_type = ZARR_DEVICE_CPU, .handle = c->elements, .bytes = c->total};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
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
    zarr_tensor_host(&s->tensor, NULL, c->elements, c->total, 1, &s->length);
    if (!st)
        st = zarr_array_write(s->array, NULL, &s->tensor, NULL, err);
    if (!st)
        st = cli_memory_tensor(c->cli, &memory, c->total, &s->mem, &s->tensor, err);
    return st ? st : zarr_memory_copy(c->cli->ctx, &s->mem, &from, c->total, err);
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
static zarr_status measure_row(const struct calibration *c, const struct subject *s,
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

    return calibrate_has_kind(i, m->device->type) &&
           !calibrate_has_kind(i, ZARR_DEVICE_CPU) &&
           (encode ? i->encodes : i->decodes) && calibrate_has_cpu(c, i->codec, encode);
}

static int measure_chunks(const struct calibration *c, struct measurement *m)
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
    zarr_memory_free(c->cli->ctx, &s.mem);
    zarr_array_free(s.array);
    zarr_store_free(s.store);
    return st == ZARR_ERR_DEVICE
               ? cli_fail(c->cli, st, &err, "cannot measure %s", m->device->label)
               : CLI_OK;
}

int calibrate_measure(struct calibration *c)
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
