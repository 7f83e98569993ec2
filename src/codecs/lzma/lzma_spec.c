/*
 * codecs/lzma/lzma_spec.c - numcodecs' lzma. The configuration has the container (1 .xz,
 * 2 .lzma, 3 none), a check, and either a preset or a list of filters. All are liblzma's
 * numbers, as in Python's module lzma. A configuration that liblzma would refuse is
 * INVALID, and the error names the member. The rules are written out, because
 * specifications do not include the library. Thread class: plain functions.
 */
#include "codecs/lzma/lzma_filters.h"

#include <stdio.h>

#define LZMA_ID_LZMA1 INT64_C(0x4000000000000001)
#define LZMA_EXTREME  INT64_C(0x80000000)
enum {
    LZMA_FORMAT_XZ = 1,
    LZMA_FORMAT_ALONE = 2,
    LZMA_FORMAT_RAW = 3,
    LZMA_ID_DELTA = 0x03,
    LZMA_ID_BCJ_FIRST = 0x04,
    LZMA_ID_BCJ_LAST = 0x0A,
    LZMA_ID_LZMA2 = 0x21
};

enum lzma_family {
    LZMA_FAMILY_NONE,
    LZMA_FAMILY_LZMA,
    LZMA_FAMILY_DELTA,
    LZMA_FAMILY_BCJ
};
static const struct {
    const char *name;
    enum lzma_family family;
    int64_t lo, hi;
} lzma_members[ZR_LZMA_MEMBERS] = {
    [ZR_LZMA_PRESET] = {"preset", LZMA_FAMILY_LZMA, 0, LZMA_EXTREME | 9},
    [ZR_LZMA_DICT_SIZE] = {"dict_size", LZMA_FAMILY_LZMA, 4096, 1610612736},
    [ZR_LZMA_LC] = {"lc", LZMA_FAMILY_LZMA, 0, 4},
    [ZR_LZMA_LP] = {"lp", LZMA_FAMILY_LZMA, 0, 4},
    [ZR_LZMA_PB] = {"pb", LZMA_FAMILY_LZMA, 0, 4},
    [ZR_LZMA_MODE] = {"mode", LZMA_FAMILY_LZMA, 1, 2},
    [ZR_LZMA_NICE_LEN] = {"nice_len", LZMA_FAMILY_LZMA, 2, 273},
    [ZR_LZMA_MF] = {"mf", LZMA_FAMILY_LZMA, 3, 20},
    [ZR_LZMA_DEPTH] = {"depth", LZMA_FAMILY_LZMA, 0, UINT32_MAX},
    [ZR_LZMA_DIST] = {"dist", LZMA_FAMILY_DELTA, 1, 256},
    [ZR_LZMA_START_OFFSET] = {"start_offset", LZMA_FAMILY_BCJ, 0, UINT32_MAX},
};

static enum lzma_family lzma_family(int64_t id)
{
    if (id == LZMA_ID_LZMA1 || id == LZMA_ID_LZMA2)
        return LZMA_FAMILY_LZMA;
    if (id == LZMA_ID_DELTA)
        return LZMA_FAMILY_DELTA;
    return id >= LZMA_ID_BCJ_FIRST && id <= LZMA_ID_BCJ_LAST ? LZMA_FAMILY_BCJ
                                                             : LZMA_FAMILY_NONE;
}

static bool lzma_is_preset(int64_t preset)
{
    return preset >= 0 && (preset & ~LZMA_EXTREME) <= 9;
}

static uint32_t lzma_member_index(const struct zr_json *m)
{
    uint32_t i = 0;

    while (i < ZR_LZMA_MEMBERS && !zr_json_has_key(m, lzma_members[i].name))
        i++;
    return i;
}

static bool lzma_member_fits(uint32_t i, enum lzma_family family, int64_t v)
{
    return i < ZR_LZMA_MEMBERS && lzma_members[i].family == family &&
           v >= lzma_members[i].lo && v <= lzma_members[i].hi &&
           (i != ZR_LZMA_PRESET || lzma_is_preset(v)) &&
           (i != ZR_LZMA_MF || v <= 4 || v >= 18);
}

/* Members that a decoder does not need. */
static bool lzma_member_encodes(uint32_t i)
{
    return i == ZR_LZMA_MEMBERS || i == ZR_LZMA_MODE || i == ZR_LZMA_NICE_LEN ||
           i == ZR_LZMA_MF || i == ZR_LZMA_DEPTH;
}

/* stored: a member that a decoder does not need may be wrong, and counts as absent. */
static zarr_status lzma_read_filter(const struct zr_json *v, uint32_t at, bool stored,
                                    struct zr_lzma_filter *f, zarr_error *err)
{
    enum lzma_family family = LZMA_FAMILY_NONE;
    int64_t lc = 3, lp = 0;
    char text[64];

    for (uint32_t i = 0; i < ZR_LZMA_MEMBERS; i++)
        f->member[i] = -1;
    if (zr_json_i64(zr_json_get(v, "id"), &f->id))
        family = lzma_family(f->id);
    if (family == LZMA_FAMILY_NONE)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: filters[%" PRIu32
                       "].id is %s, which is not a filter of liblzma",
                       at, zr_json_excerpt(zr_json_get(v, "id"), text, sizeof text));
    for (const struct zr_json *m = v->u.children.first; m; m = m->next) {
        const uint32_t i = lzma_member_index(m);
        int64_t number = -1;

        if (zr_json_has_key(m, "id") || m->type == ZR_JSON_NULL)
            continue;
        if (!zr_json_i64(m, &number) || !lzma_member_fits(i, family, number)) {
            if (stored && lzma_member_encodes(i))
                continue;
            return zr_fail(err, ZARR_ERR_INVALID,
                           "lzma: filters[%" PRIu32 "].%s is %s, which this filter does "
                           "not take",
                           at, m->key, zr_json_excerpt(m, text, sizeof text));
        }
        f->member[i] = number;
    }
    lc = f->member[ZR_LZMA_LC] < 0 ? lc : f->member[ZR_LZMA_LC];
    lp = f->member[ZR_LZMA_LP] < 0 ? lp : f->member[ZR_LZMA_LP];
    if (lc + lp > 4)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: filters[%" PRIu32 "]: lc and lp are %" PRId64
                       " together, at most 4",
                       at, lc + lp);
    return ZARR_OK;
}

/* INVALID unless LZMA1 or LZMA2 is the last filter and no other one. .xz requires LZMA2;
 * .lzma requires LZMA1 as the only filter. */
static zarr_status lzma_check_filters(const struct zr_lzma_filter *f, uint32_t n,
                                      int64_t format, zarr_error *err)
{
    const int64_t last = n ? f[n - 1].id : 0;

    for (uint32_t i = 0; i + 1 < n; i++)
        if (lzma_family(f[i].id) == LZMA_FAMILY_LZMA)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "lzma: filters[%" PRIu32 "] must be the last one", i);
    if (lzma_family(last) != LZMA_FAMILY_LZMA)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: the last of filters must be LZMA1 or LZMA2");
    if (format == LZMA_FORMAT_XZ && last != LZMA_ID_LZMA2)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: format 1 takes LZMA2 as the last filter");
    if (format == LZMA_FORMAT_ALONE && (n != 1 || last != LZMA_ID_LZMA1))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: format 2 takes LZMA1 as the only filter");
    return ZARR_OK;
}

static zarr_status lzma_read_filters(const zarr_codec_spec *raw, int64_t format,
                                     struct zr_lzma_filter *f, uint32_t *n,
                                     zarr_error *err)
{
    const struct zr_json *list = zr_conf_value(raw, "filters");
    zarr_status st = ZARR_OK;

    *n = 0;
    if (!zr_conf_has(raw, "filters")) {
        if (format == LZMA_FORMAT_RAW)
            st = zr_fail(
                err, ZARR_ERR_INVALID,
                "lzma: format 3 (raw) needs filters, because the stream names none");
        goto out;
    }
    if (!zr_json_is(list, ZR_JSON_ARRAY) || zr_json_count(list) < 1 ||
        zr_json_count(list) > ZR_LZMA_FILTERS_MAX) {
        st = zr_conf_refuse(
            raw, "filters",
            "null or a list of 1 to " ZR_DIGITS(ZR_LZMA_FILTERS_MAX) " objects", err);
        goto out;
    }
    for (const struct zr_json *v = list->u.children.first; v; v = v->next) {
        ZR_TRY(lzma_read_filter(v, *n, zr_conf_is_stored(raw), &f[*n], err));
        (*n)++;
    }
    st = lzma_check_filters(f, *n, format, err);
out:
    return st;
}

/* What encoding needs. If a store's document has it wrong, it counts as absent, and
 * filters beside a preset do. Decoders need the filters of format 3 only. */
static zarr_status lzma_read_encoder(const zarr_codec_spec *raw, int64_t format,
                                     struct zr_lzma_filter *f, uint32_t *n,
                                     int64_t *preset, zarr_error *err)
{
    const bool free = zr_conf_is_stored(raw) && format != LZMA_FORMAT_RAW;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_conf_encoder_i64(raw, "preset", 0, LZMA_EXTREME | 9, preset, err));
    if (zr_conf_is_stored(raw) && !lzma_is_preset(*preset))
        *preset = -1;
    st = lzma_read_filters(raw, format, f, n, free ? NULL : err);
    if (free && (st != ZARR_OK || *preset >= 0)) {
        st = ZARR_OK;
        *n = 0;
    }
    ZR_TRY(st);
    if (zr_conf_is_stored(raw) && *n)
        *preset = -1;
    if (*preset >= 0 && !lzma_is_preset(*preset))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "lzma: preset is %" PRId64
                ", must be 0 to 9, or 2147483648 more for extreme",
                *preset);
    if (*preset >= 0 && *n)
        st =
            zr_fail(err, ZARR_ERR_INVALID, "lzma: preset and filters exclude each other");
out:
    return st;
}

uint32_t zr_spec_lzma_filters(const zarr_codec_spec *spec,
                              struct zr_lzma_filter out[ZR_LZMA_FILTERS_MAX])
{
    uint32_t n = 0;

    /* lzma_canonical() has checked them */
    return lzma_read_filters(spec, 0, out, &n, NULL) == ZARR_OK ? n : 0;
}

static void lzma_put_filters(struct zr_conf_text *t, const struct zr_lzma_filter *f,
                             uint32_t n)
{
    char text[64];

    zr_conf_put_raw(t, n ? ",\"filters\":[" : ",\"filters\":null");
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "%s{\"id\":%" PRId64, i ? "," : "", f[i].id);
        zr_conf_put_raw(t, text);
        for (uint32_t k = 0; k < ZR_LZMA_MEMBERS; k++) {
            if (f[i].member[k] < 0)
                continue;
            (void)snprintf(text, sizeof text, ",\"%s\":%" PRId64, lzma_members[k].name,
                           f[i].member[k]);
            zr_conf_put_raw(t, text);
        }
        zr_conf_put_raw(t, "}");
    }
    zr_conf_put_raw(t, n ? "]" : "");
}

/* -1 is the container's default: CRC-64 in .xz, none in the others. */
static zarr_status lzma_check_check(int64_t check, int64_t format, zarr_error *err)
{
    if (check != -1 && check != 0 && check != 1 && check != 4 && check != 10)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: check is %" PRId64 ", must be one of -1 0 1 4 10", check);
    if (check > 0 && format != LZMA_FORMAT_XZ)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lzma: check is %" PRId64 ", only format 1 (.xz) has one", check);
    return ZARR_OK;
}

static zarr_status lzma_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"format", "check", "preset", "filters", NULL};
    struct zr_lzma_filter f[ZR_LZMA_FILTERS_MAX];
    struct zr_conf_text t;
    int64_t container = LZMA_FORMAT_XZ, check = -1, preset = -1;
    uint32_t n = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(
        zr_conf_i64(raw, "format", LZMA_FORMAT_XZ, LZMA_FORMAT_RAW, &container, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "check", -1, 10, &check, err));
    if (zr_conf_is_stored(raw) && lzma_check_check(check, container, NULL) != ZARR_OK)
        check = -1;
    ZR_CHECK(lzma_check_check(check, container, err));
    ZR_CHECK(lzma_read_encoder(raw, container, f, &n, &preset, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "format", container);
    zr_conf_put_i64(&t, "check", check);
    if (preset >= 0)
        zr_conf_put_i64(&t, "preset", preset);
    else
        zr_conf_put_raw(&t, ",\"preset\":null");
    lzma_put_filters(&t, f, n);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* LZMA2 stores incompressible input in pieces of 64 KiB. LZMA1 cannot store: its output
 * may be longer than its input, but never twice as long. */
static zarr_status lzma_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    int64_t container = LZMA_FORMAT_XZ;
    uint64_t extra = in->n_bytes / 4096 + 4096;

    ZR_UNUSED(fill_out);
    (void)zarr_codec_spec_i64(spec, "format", &container);
    if (container != LZMA_FORMAT_XZ && !zr_add(extra, in->n_bytes, &extra))
        extra = UINT64_MAX;
    return zr_spec_compressed(spec, in, out, extra, err);
}

const zarr_codec_spec_vtable zr_spec_lzma = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "lzma",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = lzma_canonical,
    .resolve = lzma_resolve,
};
