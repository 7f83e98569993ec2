/*
 * port/filters.c - numcodecs' filters that compute: delta of integers of one type,
 * fixedscaleoffset, astype and quantize. Each exists twice: as a filter on bytes in v2,
 * whose types have a byte order, and between arrays in v3, where the order is native.
 * What the kernels do not compute as NumPy does goes to the next implementation.
 */
#include <stdlib.h>
#include <string.h>

#include "port_int.h"

enum {
    DELTA_SLICES = 256 /* of a chunk: each item adds up the slices before its own */
};

enum what {
    DELTA,
    SCALE,
    CAST
};
struct filter_self {
    enum what what;
    struct k_filter filter; /* without places; from the decoded to the encoded type */
};

/* ---- configuration -------------------- */

/* Reads a type of NumPy. Returns 0 if the kernels do not have it. */
static int read_type(const char *text, int native, struct k_type *out)
{
    static const char kinds[] = "biuf"; /* in the order of K_BOOL and so on */
    const char *kind = text && text[0] ? strchr(kinds, text[1]) : NULL;
    const char *digits = kind && *kind ? text + 2 : "";

    if (!strchr("<>=|", text ? text[0] : 'x') || strlen(digits) != 1)
        return 0;
    *out = (struct k_type){.kind = (k_u32)(kind - kinds),
                           .bytes = (k_u32)(digits[0] - '0'),
                           .big = !native && text[0] == '>'};
    return out->kind == K_BOOL    ? out->bytes == 1
           : out->kind == K_FLOAT ? strchr("248", digits[0]) != NULL
                                  : strchr("1248", digits[0]) != NULL;
}

static int read_number(const zarr_codec_spec *spec, const char *member, double *out)
{
    int64_t whole;

    if (port_host->spec_f64(spec, member, out) == 0)
        return 1;
    if (port_host->spec_i64(spec, member, &whole) != 0)
        return 0;
    *out = (double)whole;
    return (int64_t)*out == whole;
}

static int same_type(const struct k_type *a, const struct k_type *b)
{
    return a->kind == b->kind && a->bytes == b->bytes;
}

/* Whether the kernels compute as NumPy does. */
static int filter_fits(const struct filter_self *s, const char *name, int encode)
{
    const struct k_filter *f = &s->filter;

    if (s->what == DELTA)
        return same_type(&f->from, &f->to) && f->from.kind != K_FLOAT &&
               f->from.kind != K_BOOL;
    if (s->what == SCALE)
        return !encode || f->from.kind == K_FLOAT;
    return !encode || !strstr(name, "quantize");
}

static int filter_read(struct filter_self *s, const zarr_codec_spec *spec,
                       const char *name)
{
    const int native = strncmp(name, "numcodecs.", 10) == 0;
    const char *id = native ? name + 10 : name;
    const int astype = strcmp(id, "astype") == 0;
    const char *to = port_host->spec_text(spec, astype ? "encode_dtype" : "astype");
    const char *from = port_host->spec_text(spec, astype ? "decode_dtype" : "dtype");

    s->what = strcmp(id, "delta") == 0              ? DELTA
              : strcmp(id, "fixedscaleoffset") == 0 ? SCALE
                                                    : CAST;
    if (!read_type(from, native, &s->filter.from) ||
        !read_type(to ? to : from, native, &s->filter.to))
        return 0;
    return s->what != SCALE || (read_number(spec, "scale", &s->filter.scale) &&
                                read_number(spec, "offset", &s->filter.offset));
}

static zarr_status filter_bind(void **self, const zarr_codec_spec *spec,
                               const zarr_codec_binding *to, zarr_error *err)
{
    const char *name = port_host->spec_name(spec);
    struct filter_self *s = calloc(1, sizeof *s);

    if (!s)
        return port_no_memory(err);
    if (filter_read(s, spec, name) && filter_fits(s, name, (int)to->encode)) {
        *self = s;
        return ZARR_OK;
    }
    free(s);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED, PORT_NAME ": %s: not these types",
                           name);
}

/* ---- launches -------------------- */

static zarr_status launch_filters(struct port_call *c, enum port_kernel k,
                                  const struct port_item *x,
                                  const struct port_block *list, uint64_t n,
                                  uint64_t most, zarr_error *err)
{
    const uint64_t each = port_each(n, most);
    const struct port_argument a[] = {PORT_ARG_BUFFER(x[0].dst),
                                      PORT_ARG_BUFFER(x[0].src), PORT_ARG_BLOCK(*list),
                                      PORT_ARG_U64(n), PORT_ARG_U64(each)};

    return port_launch(c->lane, k, a, 5, n * each, err);
}

static zarr_status launch_undelta(struct port_call *c, const struct port_item *x,
                                  const struct port_block *list, uint64_t n,
                                  zarr_error *err)
{
    const struct port_place sums = port_memory_place(&c->exec->scratch);
    const struct port_argument first[] = {PORT_ARG_BUFFER(x[0].src),
                                          PORT_ARG_BLOCK(*list), PORT_ARG_AT(sums),
                                          PORT_ARG_U64(n), PORT_ARG_U64(DELTA_SLICES)};
    const struct port_argument last[] = {
        PORT_ARG_BUFFER(x[0].dst), PORT_ARG_BUFFER(x[0].src), PORT_ARG_BLOCK(*list),
        PORT_ARG_AT(sums),         PORT_ARG_U64(n),           PORT_ARG_U64(DELTA_SLICES)};
    zarr_status st;

    if (n > c->exec->scratch.bytes / (DELTA_SLICES * sizeof(k_u64)))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED, PORT_NAME ": too many chunks");
    st = port_launch(c->lane, PORT_DELTA_SUMS, first, 5, n * DELTA_SLICES, err);
    return st == ZARR_OK
               ? port_launch(c->lane, PORT_UNDELTA, last, 6, n * DELTA_SLICES, err)
               : st;
}

/* Lists the chunks of a group. `most`: bytes of the longest. */
static zarr_status list_filters(struct port_call *c, const struct port_item *x,
                                uint64_t n, struct k_filter filter,
                                struct port_block *list, uint64_t *most, zarr_error *err)
{
    const zarr_status st = port_stage(c->lane, n * sizeof(struct k_filter), list, err);

    *most = 0;
    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        zarr_codec_job *job = x[i].job;

        filter.src = x[i].src.at;
        filter.dst = x[i].dst.at;
        filter.n = job->src.bytes / filter.from.bytes;
        if (job->src.bytes % filter.from.bytes != 0)
            port_note_status(c, x[i].number, K_BAD_LENGTH);
        if (filter.n > job->dst.bytes / filter.to.bytes) {
            port_note_status(c, x[i].number, K_TOO_LONG);
            filter.n = 0;
        }
        job->dst_used = filter.n * filter.to.bytes;
        *most = job->src.bytes > *most ? job->src.bytes : *most;
        ((struct k_filter *)list->host)[i] = filter;
    }
    return st;
}

static zarr_status decode_group(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    const struct filter_self *self = c->self;
    struct k_filter filter = self->filter;
    struct port_block list;
    uint64_t most;
    zarr_status st;

    filter.from = self->filter.to;
    filter.to = self->filter.from;
    st = list_filters(c, x, n, filter, &list, &most, err);
    if (st != ZARR_OK)
        return st;
    if (self->what == DELTA)
        return launch_undelta(c, x, &list, n, err);
    return launch_filters(c, self->what == SCALE ? PORT_UNSCALE : PORT_CAST, x, &list, n,
                          most, err);
}

static zarr_status encode_group(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    static const enum port_kernel kernels[] = {
        [DELTA] = PORT_DELTA, [SCALE] = PORT_SCALE, [CAST] = PORT_CAST};
    const struct filter_self *self = c->self;
    struct port_block list;
    uint64_t most;
    const zarr_status st = list_filters(c, x, n, self->filter, &list, &most, err);

    return st == ZARR_OK ? launch_filters(c, kernels[self->what], x, &list, n, most, err)
                         : st;
}

static zarr_status filter_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {.name = "filter", .group = decode_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status filter_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                                 zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {.name = "filter", .group = encode_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static uint64_t filter_scratch(void *self, uint64_t n, uint64_t max_out)
{
    const struct filter_self *s = self;

    (void)max_out;
    return s->what == DELTA ? n * DELTA_SLICES * sizeof(k_u64) : 0;
}

/* ---- the tables -------------------- */

#define FILTER(table, name)                                                              \
    const zarr_codec_impl_vtable table = {.struct_size = sizeof table,                   \
                                          .caps = PORT_BOTH_WAYS,                        \
                                          .codec = name,                                 \
                                          .impl = PORT_NAME ".filters",                  \
                                          .in_kinds = PORT_KINDS,                        \
                                          .out_kinds = PORT_KINDS,                       \
                                          .priority = 10,                                \
                                          .bind = filter_bind,                           \
                                          .scratch = filter_scratch,                     \
                                          .encode = filter_encode,                       \
                                          .decode = filter_decode,                       \
                                          .settle = port_settle,                         \
                                          .close = free}
FILTER(port_delta, "delta");
FILTER(port_delta_array, "numcodecs.delta");
FILTER(port_fixedscaleoffset, "fixedscaleoffset");
FILTER(port_fixedscaleoffset_array, "numcodecs.fixedscaleoffset");
FILTER(port_quantize, "quantize");
FILTER(port_quantize_array, "numcodecs.quantize");
FILTER(port_astype, "astype");
FILTER(port_astype_array, "numcodecs.astype");
