/*
 * codec/write.c - a chain back to JSON, complete and canonical, as zarr-python
 * writes it: v3 objects of name and configuration (left out when empty), v2
 * objects of id and members in numcodecs' spelling. What only the array can tell
 * complete.c has settled before.
 * Between the formats the differences are few: blosc says shuffle by number
 * and no typesize in v2, zstd names its checksum there only when it has one, gzip may
 * leave its level open there, and filters of numcodecs (and its crc32c with the checksum
 * in front) carry a prefix in v3, where those that compute move in front of `bytes`.
 * Thread class: reads a frozen chain.
 * Recursion: through nested shards, whose depth the parser has bounded.
 */
#include "codec/codec_int.h"

#include <stdio.h>

/* ---- writing
 * ------------------------------------------------------------------------------ */

/* A data type named between arrays has no byte order; a v2 filter's has that of the bytes
 * that flow. */
static struct zr_json *write_v2_type(struct zr_json_doc *doc, const struct zr_json *m,
                                     bool big)
{
    struct zr_numpy_type type;
    char name[ZR_NUMPY_NAME];

    struct zr_numpy_unit unit;

    if (zr_numpy_parse_time(zr_json_string(m), &type, &unit)) {
        char time[24];

        (void)snprintf(time, sizeof time, "%c%c8[%s]", big ? '>' : '<', unit.kind,
                       unit.text);
        return zr_json_new_text(doc, time);
    }
    if (!zr_numpy_parse(zr_json_string(m), &type))
        return zr_json_copy(doc, m);
    type.big = type.item_bytes > 1 && big;
    zr_numpy_print(&type, name);
    return zr_json_new_text(doc, name);
}

/* c-blosc's number of a shuffle that v3 spells as a word. */
static struct zr_json *write_v2_shuffle(struct zr_json_doc *doc, const struct zr_json *m)
{
    static const char *const words[] = {"noshuffle", "shuffle", "bitshuffle"};

    for (int64_t i = 0; i < (int64_t)ZR_COUNT(words); i++)
        if (zr_json_is_text(m, words[i]))
            return zr_json_new_i64(doc, i);
    return zr_json_new_i64(doc, -1);
}

static void write_v2_members(struct zr_json_doc *doc, struct zr_json *out,
                             const struct zarr_codec_spec *s, bool big)
{
    const bool blosc = s->vt->canonical == zr_spec_blosc.canonical;
    const bool zstd = s->vt->canonical == zr_spec_zstd.canonical;
    const bool array = s->vt->resolve == zr_spec_delta_array.resolve;

    for (const struct zr_json *m = s->members->u.kids.first; m; m = m->next) {
        struct zr_json *v = NULL;

        if (blosc && zr_streq(m->key, "typesize"))
            continue;
        if (zstd && zr_streq(m->key, "checksum") && m->type == ZR_JSON_FALSE)
            continue;
        if (blosc && zr_streq(m->key, "shuffle"))
            v = write_v2_shuffle(doc, m);
        else
            v = array ? write_v2_type(doc, m, big) : zr_json_copy(doc, m);
        zr_json_set(doc, out, m->key, v);
    }
}

static struct zr_json *write_link_v2(struct zr_json_doc *doc,
                                     const struct zr_chain *chain, uint32_t i)
{
    const struct zarr_codec_spec *s = &chain->codec[i];
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, out, "id", zr_json_new_text(doc, s->vt->name));
    if (out)
        write_v2_members(doc, out, s,
                         chain->codec[chain->a2b].stored.order == ZARR_ORDER_BIG);
    return out;
}

static bool write_is_packbits(const struct zarr_codec_spec *s)
{
    return s->vt->resolve == zr_spec_packbits_v2.resolve;
}

static bool write_is_round(const struct zarr_codec_spec *s)
{
    return s->vt->resolve == zr_spec_bitround_v2.resolve;
}

static bool write_is_filter(const struct zarr_codec_spec *s)
{
    return s->vt->resolve == zr_spec_delta.resolve || write_is_round(s) ||
           write_is_packbits(s);
}

/* A v2 filter between arrays: what it gets has this machine's order there, and
 * zarr-python takes the name of another one by its word. */
static struct zr_json *write_filter_members(struct zr_json_doc *doc,
                                            const struct zarr_codec_spec *s)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);

    for (const struct zr_json *m = s->members->u.kids.first; m; m = m->next)
        zr_json_set(doc, out, m->key, write_v2_type(doc, m, false));
    return out;
}

/* v2's gzip may leave the level to zlib by -1; v3 has 0 to 9 (Z_DEFAULT_COMPRESSION is
 * 6). */
static struct zr_json *write_gzip_members(struct zr_json_doc *doc,
                                          const struct zarr_codec_spec *s)
{
    struct zr_json *out = zr_json_copy(doc, s->members);
    int64_t level = 0;

    if (out && zarr_codec_spec_i64(s, "level", &level) == 0 && level < 0)
        zr_json_set(doc, out, "level", zr_json_new_i64(doc, 6));
    return out;
}

/* zarr-python wants numcodecs' to have a configuration, be it empty. A v2 bitround and a
 * v2 packbits are numcodecs', too. */
static struct zr_json *write_link_v3(struct zr_json_doc *doc,
                                     const struct zarr_codec_spec *s, bool moved)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);
    const bool prefix = (s->vt->flags & ZARR_CODEC_SPEC_NUMCODECS) ||
                        zr_conf_has(s, "location") || write_is_round(s) ||
                        write_is_packbits(s) || s->keeps_alias;
    struct zr_str name;

    zr_str_init(&name, s->alloc);
    zr_str_printf(&name, "%s%s", prefix ? "numcodecs." : "", s->vt->name);
    doc->failed |= name.failed;
    zr_json_set(doc, out, "name", zr_json_new_text(doc, zr_str_text(&name)));
    if (s->shard)
        zr_json_set(doc, out, "configuration", zr_shard_spec_write(doc, s->shard));
    else if (write_is_filter(s) && moved)
        zr_json_set(doc, out, "configuration", write_filter_members(doc, s));
    else if (s->vt->canonical == zr_spec_gzip.canonical)
        zr_json_set(doc, out, "configuration", write_gzip_members(doc, s));
    else if (zr_json_count(s->members) ||
             zr_starts_with(zr_str_text(&name), "numcodecs."))
        zr_json_set(doc, out, "configuration", zr_json_copy(doc, s->members));
    zr_str_deinit(&name);
    return out;
}

/* ---- v2 filters in v3 ----------------------------------------------------------------
 */

/* The run of v2 filters right behind `bytes` that v3 has between arrays, before it. */
struct write_run {
    uint32_t n;
    uint32_t item_bytes; /* of what comes out; 0: as it went in */
    bool big;
};

/* Between arrays there is no byte order, so each must name the one that it gets. */
static struct write_run write_find_run(const struct zr_chain *chain)
{
    const struct zarr_codec_spec *behind = &chain->codec[chain->a2b + 1];
    struct write_run run = {.big =
                                chain->codec[chain->a2b].stored.order == ZARR_ORDER_BIG};
    struct zr_filter f;

    for (; chain->a2b + 1 + run.n < chain->n; run.n++) {
        if (!write_is_filter(&behind[run.n]))
            break;
        if (write_is_round(&behind[run.n]))
            continue;
        if (write_is_packbits(&behind[run.n])) {
            run.item_bytes = 1;
            run.big = false;
            continue;
        }
        if (zr_filter_read(&behind[run.n], NULL, &f, NULL) != ZARR_OK ||
            (f.dtype.item_bytes > 1 && f.dtype.big != run.big))
            break;
        run.item_bytes = f.astype.item_bytes;
        run.big = f.astype.big;
    }
    return run;
}

zarr_status zr_chain_has_form(const struct zr_chain *chain, int format, zarr_error *err)
{
    const uint32_t n = format == 3 ? write_find_run(chain).n : 0;

    if (format == 2 && chain->codec[chain->a2b].shard)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Zarr v2 has no shards");
    for (uint32_t i = chain->a2b + n + 1; format == 3 && i < chain->n; i++)
        if (write_is_filter(&chain->codec[i]))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "Zarr v3 cannot say the filter \"%s\" here: such filters must "
                           "come first and name the byte order that they get",
                           chain->codec[i].vt->name);
    return ZARR_OK;
}

/* `bytes` behind the filters that moved: the order is that of what they give. */
static struct zr_json *write_bytes_v3(struct zr_json_doc *doc,
                                      const struct zarr_codec_spec *s,
                                      const struct write_run *run)
{
    struct zr_json *out = write_link_v3(doc, s, true);
    struct zr_json *config = zr_json_get(out, "configuration");

    if (run->item_bytes == 1) {
        zr_json_remove(out, "configuration");
    } else if (run->item_bytes > 1) {
        if (!config) {
            zr_json_set(doc, out, "configuration", zr_json_new(doc, ZR_JSON_OBJECT));
            config = zr_json_get(out, "configuration");
        }
        zr_json_set(doc, config, "endian",
                    zr_json_new_text(doc, run->big ? "big" : "little"));
    }
    return out;
}

struct zr_json *zr_chain_write(struct zr_json_doc *doc, const struct zr_chain *chain,
                               int format)
{
    struct write_run run = {0};
    struct zr_json *out = NULL;

    if (zr_chain_has_form(chain, format, NULL) != ZARR_OK) {
        doc->failed = true; /* rather a wrong reason than a document without codecs */
        return NULL;
    }
    if (format == 3)
        run = write_find_run(chain);
    out = zr_json_new(doc, ZR_JSON_ARRAY);
    for (uint32_t k = 0; k < chain->n; k++) {
        uint32_t i = k;

        if (k >= chain->a2b && k < chain->a2b + run.n)
            i = k + 1;
        else if (k == chain->a2b + run.n)
            i = chain->a2b;
        zr_json_append(doc, out,
                       format == 2       ? write_link_v2(doc, chain, i)
                       : i == chain->a2b ? write_bytes_v3(doc, &chain->codec[i], &run)
                                         : write_link_v3(doc, &chain->codec[i], true));
    }
    return zr_json_ok(doc) ? out : NULL;
}

struct zr_json *zr_chain_show(struct zr_json_doc *doc, const struct zr_chain *chain)
{
    const struct write_run none = {0};
    struct zr_json *out = NULL;

    if (zr_chain_has_form(chain, 3, NULL) == ZARR_OK)
        return zr_chain_write(doc, chain, 3);
    out = zr_json_new(doc, ZR_JSON_ARRAY);
    for (uint32_t i = 0; i < chain->n; i++)
        zr_json_append(doc, out,
                       i == chain->a2b ? write_bytes_v3(doc, &chain->codec[i], &none)
                                       : write_link_v3(doc, &chain->codec[i], false));
    return zr_json_ok(doc) ? out : NULL;
}

struct zr_json *zr_shard_spec_write(struct zr_json_doc *doc,
                                    const struct zr_shard_spec *shard)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *shape = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t i = 0; i < shard->ndim; i++)
        zr_json_append(doc, shape, zr_json_new_u64(doc, shard->chunk_shape[i]));
    zr_json_set(doc, out, "chunk_shape", shape);
    zr_json_set(doc, out, "codecs", zr_chain_write(doc, shard->inner, 3));
    zr_json_set(doc, out, "index_codecs", zr_chain_write(doc, shard->index, 3));
    zr_json_set(doc, out, "index_location",
                zr_json_new_text(doc, shard->index_at_end ? "end" : "start"));
    return out;
}

zarr_status zr_shard_spec_settle(struct zarr_codec_spec *s, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    struct zr_json *config = NULL;
    struct zr_str text;
    char *json = NULL;

    zr_json_doc_init(&doc, s->alloc);
    zr_str_init(&text, s->alloc);
    config = zr_shard_spec_write(&doc, s->shard);
    if (!config || !zr_json_ok(&doc)) {
        st = zr_fail_memory(err, 0);
        goto out;
    }
    zr_json_write(config, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    json = zr_str_take(&text);
    st = json ? zr_link_settle(s, json, err) : zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
    return st;
}
