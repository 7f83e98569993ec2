/*
 * port/packbits.c - two codecs that pack elements into bits: the registry's `packbits`,
 * which stores the lowest bit first, and numcodecs' packing of bools, which stores the
 * highest first, a filter on bytes in v2 and a codec between arrays in v3. Chunks whose
 * length metadata does not tell go to the next implementation.
 */
#include <stdlib.h>
#include <string.h>

#include "port_int.h"

struct bits_self {
    struct k_pack pack;      /* without places; n: of a chunk */
    uint64_t encoded, plain; /* bytes of a chunk */
    int padding_first;       /* the byte that counts padding bits, if there is one */
};

/* ---- configuration -------------------- */

/* Bits of a component, and its bytes. Returns 0 for other types. */
static int bits_of_type(const zarr_dtype *type, struct k_pack *out)
{
    const uint32_t kind = port_host->dtype_kind(type);
    const uint32_t components = kind == ZARR_KIND_COMPLEX ? 2 : 1;
    const uint64_t bytes = port_host->dtype_item_bytes(type) / components;

    switch (kind) {
    case ZARR_KIND_BOOL:
    case ZARR_KIND_INT:
    case ZARR_KIND_UINT:
    case ZARR_KIND_FLOAT:
    case ZARR_KIND_COMPLEX:
    case ZARR_KIND_DATETIME:
    case ZARR_KIND_TIMEDELTA:
        break;
    default:
        return 0;
    }
    out->boolean = kind == ZARR_KIND_BOOL;
    out->is_signed = kind == ZARR_KIND_INT || kind == ZARR_KIND_DATETIME ||
                     kind == ZARR_KIND_TIMEDELTA;
    out->bytes = (k_u32)bytes;
    out->kept = out->boolean ? 1 : (k_u32)port_host->dtype_item_bits(type) / components;
    return bytes >= 1 && bytes <= 8 && out->kept >= 1 && out->kept <= 8 * bytes;
}

/* The registry's packbits. */
static int bits_read(struct bits_self *s, const zarr_codec_spec *spec,
                     const zarr_dtype *type)
{
    const char *padding = port_host->spec_text(spec, "padding_encoding");
    int64_t first = 0, last;

    if (!bits_of_type(type, &s->pack))
        return 0;
    last = (int64_t)s->pack.kept - 1;
    (void)port_host->spec_i64(spec, "first_bit", &first);
    (void)port_host->spec_i64(spec, "last_bit", &last);
    if (first < 0 || last < first || last >= (int64_t)s->pack.kept)
        return 0;
    s->pack.first = (k_u32)first;
    s->pack.kept = (k_u32)(last - first + 1);
    s->pack.counted = padding && strcmp(padding, "none") != 0;
    s->padding_first = s->pack.counted && strcmp(padding, "first_byte") == 0;
    return 1;
}

static int bits_fit(struct bits_self *s, const zarr_codec_spec *spec,
                    const zarr_codec_binding *to)
{
    const zarr_dtype *type = to->decoded->dtype;
    const int bools = !type || strcmp(port_host->spec_name(spec), "packbits") != 0;
    uint64_t n;

    if (!to->decoded->exact || !to->encoded->exact)
        return 0;
    if (bools) {
        s->pack.bytes = s->pack.kept = s->pack.boolean = 1;
        s->pack.high_first = s->pack.counted = 1;
        s->padding_first = 1;
    } else if (!bits_read(s, spec, type)) {
        return 0;
    }
    n = to->decoded->n_bytes / s->pack.bytes;
    if (n > UINT64_MAX / 64)
        return 0;
    s->pack.n = n;
    s->plain = n * s->pack.bytes;
    s->encoded = (n * s->pack.kept + 7) / 8 + s->pack.counted;
    return s->plain == to->decoded->n_bytes && s->encoded == to->encoded->n_bytes;
}

static zarr_status bits_bind(void **self, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    struct bits_self *s = calloc(1, sizeof *s);

    if (!s)
        return port_no_memory(err);
    if (bits_fit(s, spec, to)) {
        *self = s;
        return ZARR_OK;
    }
    free(s);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED, PORT_NAME ": packbits: not these");
}

/* ---- launches -------------------- */

/* Lists the chunks of a group. A chunk of another length gets a status, and no work. */
static zarr_status list_packs(struct port_call *c, const struct port_item *x, uint64_t n,
                              int encode, struct port_block *list, zarr_error *err)
{
    const struct bits_self *s = c->self;
    const uint64_t in = encode ? s->plain : s->encoded,
                   out = encode ? s->encoded : s->plain;
    const zarr_status st = port_stage(c->lane, n * sizeof(struct k_pack), list, err);

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        struct k_pack p = s->pack;
        uint64_t *packed = encode ? &p.dst : &p.src;
        zarr_codec_job *job = x[i].job;

        p.src = x[i].src.at;
        p.dst = x[i].dst.at;
        p.count_at = *packed + (s->padding_first ? 0 : s->encoded - 1);
        *packed += (uint64_t)s->padding_first;
        p.number = (k_u32)x[i].number;
        job->dst_used = out;
        if (job->src.bytes != in || job->dst.bytes < out) {
            port_note_status(c, x[i].number,
                             job->src.bytes != in ? K_BAD_LENGTH : K_TOO_LONG);
            job->dst_used = 0;
            p.n = p.counted = 0;
        }
        ((struct k_pack *)list->host)[i] = p;
    }
    return st;
}

static zarr_status unpack_group(struct port_call *c, const struct port_item *x,
                                uint64_t n, zarr_error *err)
{
    const struct bits_self *s = c->self;
    const uint64_t each = port_each(n, s->plain);
    struct port_block list;
    const zarr_status st = list_packs(c, x, n, 0, &list, err);

    if (st != ZARR_OK)
        return st;
    const struct port_argument a[] = {
        PORT_ARG_BUFFER(x[0].dst), PORT_ARG_BUFFER(x[0].src),
        PORT_ARG_BLOCK(list),      PORT_ARG_BLOCK(c->pending->status),
        PORT_ARG_U64(n),           PORT_ARG_U64(each)};

    return port_launch(c->lane, PORT_UNPACK_BITS, a, 6, n * each, err);
}

static zarr_status pack_group(struct port_call *c, const struct port_item *x, uint64_t n,
                              zarr_error *err)
{
    const struct bits_self *s = c->self;
    const uint64_t each = port_each(n, s->plain);
    struct port_block list;
    const zarr_status st = list_packs(c, x, n, 1, &list, err);

    if (st != ZARR_OK)
        return st;
    const struct port_argument a[] = {PORT_ARG_BUFFER(x[0].dst),
                                      PORT_ARG_BUFFER(x[0].src), PORT_ARG_BLOCK(list),
                                      PORT_ARG_U64(n), PORT_ARG_U64(each)};

    return port_launch(c->lane, PORT_PACK_BITS, a, 5, n * each, err);
}

static zarr_status bits_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "packbits", .results = PORT_STATUSES, .group = unpack_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status bits_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {.name = "packbits", .group = pack_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

/* ---- the tables -------------------- */

#define PACKBITS(table, name)                                                            \
    const zarr_codec_impl_vtable table = {.struct_size = sizeof table,                   \
                                          .caps = PORT_BOTH_WAYS,                        \
                                          .codec = name,                                 \
                                          .impl = PORT_NAME ".packbits",                 \
                                          .in_kinds = PORT_KINDS,                        \
                                          .out_kinds = PORT_KINDS,                       \
                                          .priority = 10,                                \
                                          .bind = bits_bind,                             \
                                          .encode = bits_encode,                         \
                                          .decode = bits_decode,                         \
                                          .settle = port_settle,                         \
                                          .close = free}
PACKBITS(port_packbits, "packbits");
PACKBITS(port_packbits_array, "numcodecs.packbits");
