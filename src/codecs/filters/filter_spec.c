/*
 * codecs/filters/filter_spec.c - numcodecs' filters that compute: delta,
 * fixedscaleoffset, quantize, astype. Each exists twice. In v2 it is a filter on bytes
 * that names its own data types with their byte order. In v3, "numcodecs.<id>" does the
 * same arithmetic between arrays, before `bytes`; a byte order in its data types has no
 * effect. Numbers of the configuration keep their spelling, because NumPy computes
 * differently with 10 and 10.0. As in numcodecs, a fill value is cast to the other type
 * but takes no part in the arithmetic. delta (time spans only) and astype treat times as
 * int64; their unit does not change.
 * Thread class: plain functions.
 */
#include "codecs/filters/filter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FILTER_NAME 24 /* "<M8[2147483647generic]" */

struct filter_form {  /* one filter */
    const char *name; /* v2 id */
    enum zr_filter_kind kind;
    const char *known[6];
    const char *dtype, *astype; /* names of the members for the two types */
    const char *kinds, *rule; /* permitted on both sides: NumPy's letters, and in words */
};
static const struct filter_form filter_forms[] = {
    {"delta",
     ZR_FILTER_DELTA,
     {"dtype", "astype", NULL},
     "dtype",
     "astype",
     "iufc",
     "integers, floats of 16 to 64 bits or complex numbers"},
    {"fixedscaleoffset",
     ZR_FILTER_SCALE,
     {"scale", "offset", "dtype", "astype", NULL},
     "dtype",
     "astype",
     "iuf",
     "integers or floats of 16 to 64 bits"},
    {"quantize",
     ZR_FILTER_QUANTIZE,
     {"digits", "dtype", "astype", NULL},
     "dtype",
     "astype",
     "f",
     "floats of 16 to 64 bits"},
    {"astype",
     ZR_FILTER_ASTYPE,
     {"encode_dtype", "decode_dtype", NULL},
     "decode_dtype",
     "encode_dtype",
     "biufc",
     "bools, integers, floats of 16 to 64 bits or complex numbers"},
};

static bool filter_is_between_arrays(const zarr_codec_spec *spec)
{
    return zr_starts_with(zarr_codec_spec_name(spec), "numcodecs.");
}

static const struct filter_form *filter_form(const char *name)
{
    if (zr_starts_with(name, "numcodecs."))
        name += strlen("numcodecs.");
    for (size_t i = 0; i < ZR_COUNT(filter_forms); i++)
        if (zr_streq(filter_forms[i].name, name))
            return &filter_forms[i];
    return NULL;
}

/* ---- members ---------------------------------------------------------------------- */

/* delta and astype take times as integers, because they only subtract or copy them. */
static bool filter_type_parse(const struct filter_form *form, const char *text,
                              struct zr_number *type, struct zr_numpy_unit *unit)
{
    *unit = (struct zr_numpy_unit){0};
    if (zr_numpy_parse(text, type))
        return strchr(form->kinds, zr_numpy_letter(type)) != NULL;
    return (form->kind == ZR_FILTER_DELTA || form->kind == ZR_FILTER_ASTYPE) &&
           zr_numpy_parse_time(text, type, unit);
}

static zarr_status filter_type(const zarr_codec_spec *raw, const struct filter_form *form,
                               const char *member, struct zr_number *type,
                               struct zr_numpy_unit *unit, zarr_error *err)
{
    const char *text = zarr_codec_spec_text(raw, member);

    if (filter_type_parse(form, text, type, unit))
        return ZARR_OK;
    if (text)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: %s is \"%s\", must be %s",
                       form->name, member, text, form->rule);
    return zr_conf_refuse(raw, member, "a NumPy type such as \"<i4\"", err);
}

/* True for an integer, and for a type that the configuration does not name. */
static bool filter_may_count(const struct zr_number *n)
{
    return !n->kind || zr_number_is_whole(n);
}

/* UNSUPPORTED unless NumPy can compute with these times. It adds up time spans of one
 * unit only, and no dates. It casts times to integers or to the same unit, which copies
 * the counts. */
static zarr_status filter_times(const struct filter_form *form, const struct zr_filter *f,
                                zarr_error *err)
{
    const bool same = zr_streq(f->unit.text, f->asunit.text);

    if (!f->unit.kind && !f->asunit.kind)
        return ZARR_OK;
    if (form->kind == ZR_FILTER_DELTA) {
        if (same && f->unit.kind == 'm' && f->asunit.kind == 'm')
            return ZARR_OK;
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "delta: times must be timedelta64 of the same unit on both sides");
    }
    if (f->unit.kind && f->asunit.kind
            ? same
            : filter_may_count(&f->dtype) && filter_may_count(&f->astype))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "astype: times can become integers or times of the same unit only");
}

/* UNSUPPORTED if the two types do not fit together. In delta both or neither must be
 * complex: NumPy cannot sum complex numbers into a real array, and a cast to a real type
 * loses the imaginary parts. */
static zarr_status filter_fit(const struct filter_form *form, const struct zr_filter *f,
                              zarr_error *err)
{
    if (form->kind != ZR_FILTER_DELTA || (f->dtype.parts == 2) == (f->astype.parts == 2))
        return filter_times(form, f, err);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: either both %s and %s must be complex or neither", form->name,
                   form->dtype, form->astype);
}

/* INVALID unless the member is a finite number. An integer must fit 64 bits. */
static zarr_status filter_factor(const zarr_codec_spec *raw,
                                 const struct filter_form *form, const char *member,
                                 struct zr_filter_factor *out, zarr_error *err)
{
    const struct zr_json *v = zr_conf_value(raw, member);
    int64_t number = 0;
    char text[64];

    *out = (struct zr_filter_factor){0};
    if (zr_json_is(v, ZR_JSON_NUMBER) && !strpbrk(v->u.text.ptr, ".eEIN")) {
        out->whole = true;
        if (zr_json_u64(v, &out->u)) {
            out->f = (double)out->u;
            return ZARR_OK;
        }
        if (zr_json_i64(v, &number)) {
            out->minus = true;
            out->u = (uint64_t)number;
            out->f = (double)number;
            return ZARR_OK;
        }
    } else if (zr_json_is(v, ZR_JSON_NUMBER) && zr_json_f64(v, &out->f) &&
               isfinite(out->f)) {
        out->minus = out->f < 0;
        return ZARR_OK;
    }
    return zr_fail(err, ZARR_ERR_INVALID,
                   "%s: %s is %s, must be a finite number; integers must fit 64 bits",
                   form->name, member, zr_json_excerpt(v, text, sizeof text));
}

/* Whether decoding is a copy: quantize and astype cast from a type to itself. New
 * metadata is never taken for it, because encoding needs the types. */
static bool filter_decodes_nothing(const zarr_codec_spec *raw,
                                   const struct filter_form *form)
{
    const char *dtype = zarr_codec_spec_text(raw, form->dtype);
    const char *astype = zarr_codec_spec_text(raw, form->astype);

    if (!zr_conf_is_stored(raw) || !dtype)
        return false;
    if (form->kind == ZR_FILTER_QUANTIZE && !zr_conf_has(raw, form->astype))
        return true;
    return (form->kind == ZR_FILTER_QUANTIZE || form->kind == ZR_FILTER_ASTYPE) &&
           astype && zr_streq(dtype, astype);
}

/* Sets `out` to copy bytes if decoding is a copy and the filter does not know the type.
 * Returns false otherwise. */
static bool filter_read_nothing(const zarr_codec_spec *raw,
                                const struct filter_form *form, struct zr_filter *out)
{
    out->nothing = filter_decodes_nothing(raw, form);
    out->only_decodes =
        out->nothing && !filter_type_parse(form, zarr_codec_spec_text(raw, form->dtype),
                                           &out->dtype, &out->unit);
    if (out->only_decodes) {
        out->dtype = out->astype = zr_number_make(ZARR_KIND_UINT, 1);
        out->unit = out->asunit = (struct zr_numpy_unit){0};
    }
    return out->only_decodes;
}

/* The inverse of the step that numcodecs derives from `digits`. INVALID for digits that
 * numcodecs' own arithmetic cannot handle. */
static zarr_status filter_quantum(const zarr_codec_spec *raw, double *quantum,
                                  zarr_error *err)
{
    int64_t digits = 0;
    double exponent;

    if (!zr_conf_has(raw, "digits") && !zr_conf_is_stored(raw))
        return zr_fail(err, ZARR_ERR_INVALID, "quantize: digits is missing");
    ZR_CHECK(zr_conf_encoder_i64(raw, "digits", -300, 300, &digits, err));
    exponent = log10(pow(10.0, -(double)digits));
    exponent = exponent < 0 ? floor(exponent) : ceil(exponent);
    *quantum = pow(2.0, ceil(log2(pow(10.0, -exponent))));
    return ZARR_OK;
}

zarr_status zr_filter_read(const zarr_codec_spec *spec, const zarr_dtype *array,
                           struct zr_filter *out, zarr_error *err)
{
    const struct filter_form *form = filter_form(zarr_codec_spec_name(spec));
    const bool big = !ZR_HOST_IS_LITTLE;

    *out = (struct zr_filter){0};
    if (!form)
        return zr_internal(err);
    out->kind = form->kind;
    if (filter_read_nothing(spec, form, out))
        return ZARR_OK;
    if (array && !zr_conf_has(spec, form->dtype)) {
        if (!filter_type_parse(form, zarr_dtype_v2(array), &out->dtype, &out->unit))
            ZR_CHECK(zr_spec_refuse_dtype(spec, array, form->rule, err));
    } else {
        ZR_CHECK(filter_type(spec, form, form->dtype, &out->dtype, &out->unit, err));
    }
    out->astype = out->dtype;
    out->asunit = out->unit;
    if (zr_conf_has(spec, form->astype) || form->kind == ZR_FILTER_ASTYPE)
        ZR_CHECK(filter_type(spec, form, form->astype, &out->astype, &out->asunit, err));
    ZR_CHECK(filter_fit(form, out, err));
    if (form->kind == ZR_FILTER_SCALE) {
        ZR_CHECK(filter_factor(spec, form, "offset", &out->offset, err));
        ZR_CHECK(filter_factor(spec, form, "scale", &out->scale, err));
    }
    if (form->kind == ZR_FILTER_QUANTIZE)
        ZR_CHECK(filter_quantum(spec, &out->quantum, err));
    if (array) {
        out->dtype.big = out->dtype.bytes > 1 && big;
        out->astype.big = out->astype.bytes > 1 && big;
    }
    return ZARR_OK;
}

/* Prints a NumPy type such as "<i4" or "<M8[s]". */
static void filter_print(const struct zr_number *type, const struct zr_numpy_unit *unit,
                         char name[FILTER_NAME])
{
    if (unit->kind)
        (void)snprintf(name, FILTER_NAME, "%c%c8[%s]", type->big ? '>' : '<', unit->kind,
                       unit->text);
    else
        zr_numpy_print(type, name);
}

static void filter_put_type(struct zr_conf_text *t, const char *member,
                            const struct zr_number *type,
                            const struct zr_numpy_unit *unit)
{
    char name[FILTER_NAME];

    filter_print(type, unit, name);
    zr_conf_put_word(t, member, name);
}

static void filter_put_digits(struct zr_conf_text *t, const zarr_codec_spec *raw)
{
    int64_t digits = 0;

    (void)zr_conf_encoder_i64(raw, "digits", -300, 300, &digits, NULL);
    zr_conf_put_i64(t, "digits", digits);
}

/* Omits types of kind 0. Copies the other members unchanged, except digits outside their
 * range. */
static zarr_status filter_write(const zarr_codec_spec *raw,
                                const struct filter_form *form, const struct zr_filter *f,
                                struct zr_conf_text *t, size_t *text_bytes,
                                zarr_error *err)
{
    for (size_t i = 0; form->known[i]; i++) {
        const bool is_dtype = zr_streq(form->known[i], form->dtype);
        const bool is_astype = zr_streq(form->known[i], form->astype);

        if (f->only_decodes)
            zr_conf_put_json(t, raw, form->known[i]);
        else if (is_dtype && f->dtype.kind)
            filter_put_type(t, form->dtype, &f->dtype, &f->unit);
        else if (zr_streq(form->known[i], "digits"))
            filter_put_digits(t, raw);
        else if (is_astype && f->astype.kind)
            filter_put_type(t, form->astype, &f->astype, &f->asunit);
        else if (!is_dtype && !is_astype)
            zr_conf_put_json(t, raw, form->known[i]);
    }
    return zr_conf_end(t, text_bytes, err);
}

/* In v3 the configuration may omit the decoded type, except that of delta. The array's
 * data type is used then. */
static zarr_status filter_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    const struct filter_form *form = filter_form(zarr_codec_spec_name(raw));
    const bool array = filter_is_between_arrays(raw);
    struct zr_filter f = {0};
    struct zr_filter_factor factor;
    struct zr_conf_text t;
    double quantum = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, form->known, err));
    if (filter_read_nothing(raw, form, &f))
        goto write;
    if (!array || form->kind == ZR_FILTER_DELTA || zr_conf_has(raw, form->dtype))
        ZR_CHECK(filter_type(raw, form, form->dtype, &f.dtype, &f.unit, err));
    f.astype = f.dtype;
    f.asunit = f.unit;
    if (zr_conf_has(raw, form->astype) || form->kind == ZR_FILTER_ASTYPE)
        ZR_CHECK(filter_type(raw, form, form->astype, &f.astype, &f.asunit, err));
    ZR_CHECK(filter_fit(form, &f, err));
    if (form->kind == ZR_FILTER_SCALE) {
        ZR_CHECK(filter_factor(raw, form, "scale", &factor, err));
        ZR_CHECK(filter_factor(raw, form, "offset", &factor, err));
    }
    if (form->kind == ZR_FILTER_QUANTIZE)
        ZR_CHECK(filter_quantum(raw, &quantum, err));
write:
    zr_conf_open(&t, text, cap);
    return filter_write(raw, form, &f, &t, text_bytes, err);
}

/* Reads the types that the configuration names. The other types get kind 0. */
static zarr_status filter_read_types(const zarr_codec_spec *spec,
                                     const struct filter_form *form, struct zr_filter *f,
                                     zarr_error *err)
{
    *f = (struct zr_filter){.kind = form->kind};
    if (filter_read_nothing(spec, form, f))
        return ZARR_OK;
    if (zr_conf_has(spec, form->dtype))
        ZR_CHECK(filter_type(spec, form, form->dtype, &f->dtype, &f->unit, err));
    if (zr_conf_has(spec, form->astype))
        ZR_CHECK(filter_type(spec, form, form->astype, &f->astype, &f->asunit, err));
    return ZARR_OK;
}

/* In v2 the types have the byte order of the encoded elements. Between arrays they have
 * none. */
static zarr_status filter_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                                char *text, size_t cap, size_t *text_bytes,
                                zarr_error *err)
{
    const struct filter_form *form = filter_form(zarr_codec_spec_name(spec));
    const bool array = filter_is_between_arrays(spec);
    const bool big = how->format == 2 && (how->flags & ZARR_SPELLING_BIG_ENDIAN);
    struct zr_conf_text t;
    struct zr_filter f;

    *text_bytes = 0;
    if (how->format == 2 ? !array : !(how->flags & ZARR_SPELLING_BETWEEN_ARRAYS))
        return ZARR_OK;
    ZR_CHECK(filter_read_types(spec, form, &f, err));
    f.dtype.big = f.dtype.bytes > 1 && big;
    f.astype.big = f.astype.bytes > 1 && big;
    zr_conf_open(&t, text, cap);
    return filter_write(spec, form, &f, &t, text_bytes, err);
}

/* Adds the types that the configuration of a filter between arrays omits. */
static zarr_status filter_complete(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   const zarr_chunk_spec *array, char *text, size_t cap,
                                   size_t *text_bytes, zarr_error *err)
{
    const struct filter_form *form = filter_form(zarr_codec_spec_name(spec));
    struct zr_conf_text t;
    struct zr_filter f;

    ZR_UNUSED(array);
    *text_bytes = 0;
    if (zr_conf_has(spec, form->dtype) && zr_conf_has(spec, form->astype))
        return ZARR_OK;
    ZR_CHECK(zr_filter_read(spec, in->dtype, &f, err));
    f.dtype.big = f.astype.big = false;
    zr_conf_open(&t, text, cap);
    return filter_write(spec, form, &f, &t, text_bytes, err);
}

static zarr_status filter_elements(const zarr_codec_spec *spec, const char *in,
                                   zarr_codec_elements *out, zarr_error *err)
{
    struct zr_filter f;

    ZR_UNUSED(in);
    _Static_assert(FILTER_NAME <= ZARR_ELEMENTS_NAME, "names fit");
    ZR_CHECK(zr_filter_read(spec, NULL, &f, err));
    if (f.only_decodes)
        return ZARR_OK;
    filter_print(&f.dtype, &f.unit, out->takes);
    filter_print(&f.astype, &f.asunit, out->gives);
    return ZARR_OK;
}

/* numcodecs' delta and fixedscaleoffset flatten their input. */
static void filter_pass_flat(const zarr_codec_spec *spec, zarr_codec_input *input)
{
    ZR_UNUSED(spec);
    input->flags |= ZARR_INPUT_FLAT;
    input->flags &= ~(uint32_t)ZARR_INPUT_TRANSPOSED;
}

/* ---- over bytes ------------------------------------------------------------------ */

static zarr_status filter_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_filter f;

    ZR_UNUSED(fill_out);
    ZR_CHECK(zr_filter_read(spec, NULL, &f, err));
    if (f.nothing)
        return ZARR_OK;
    if (in->exact && in->n_bytes % zr_number_item_bytes(&f.dtype))
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "%s: %" PRIu64 " bytes are not a whole number of elements of %" PRIu32,
            zarr_codec_spec_name(spec), in->n_bytes, zr_number_item_bytes(&f.dtype));
    out->item_bytes_hint = zr_number_item_bytes(&f.astype);
    if (!zr_mul(in->n_bytes / zr_number_item_bytes(&f.dtype),
                zr_number_item_bytes(&f.astype), &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: a chunk of %" PRIu64 " bytes is too large",
                       zarr_codec_spec_name(spec), in->n_bytes);
    return ZARR_OK;
}

/* ---- between arrays -------------------------------------------------------------- */

/* Prints the type as little-endian, whatever this machine's order is, so that texts are
 * the same on all machines. */
static void filter_type_name(const struct zr_number *type,
                             const struct zr_numpy_unit *unit, char name[FILTER_NAME])
{
    struct zr_number little = *type;

    little.big = false;
    filter_print(&little, unit, name);
}

static bool is_count(const zarr_dtype *dtype)
{
    const uint32_t kind = zarr_dtype_kind(dtype);

    return kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT ||
           kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA;
}

/* Whether the filter may view the array's bits as `dtype`, as NumPy's view() does. In v2
 * numcodecs takes any type of the same size. In v3 zarr-python assigns the decoded
 * elements to the array's type, which keeps the bits of integers and times only. */
static bool filter_views(const zarr_codec_spec *spec, const zarr_dtype *array,
                         const zarr_dtype *dtype, const struct zr_filter *f)
{
    if (zarr_dtype_item_bytes(array) != zr_number_item_bytes(&f->dtype))
        return false;
    return (zr_spec_input(spec)->flags & ZARR_INPUT_V2_FILTER) ||
           zarr_dtype_equal(dtype, array) || (is_count(array) && is_count(dtype));
}

static zarr_status filter_array_resolve(const zarr_codec_spec *spec,
                                        const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                        void *fill_out, zarr_error *err)
{
    const struct filter_form *form = filter_form(zarr_codec_spec_name(spec));
    const zarr_dtype *dtype = NULL;
    struct zr_filter f;
    char name[FILTER_NAME];

    ZR_CHECK(zr_filter_read(spec, in->dtype, &f, err));
    if (f.nothing) {
        out->fill = in->fill;
        return ZARR_OK;
    }
    filter_type_name(&f.dtype, &f.unit, name);
    ZR_CHECK(zarr_codec_spec_dtype(&dtype, spec, name, err));
    if (!filter_views(spec, in->dtype, dtype, &f))
        return zr_fail(err,
                       zarr_dtype_item_bytes(in->dtype) == zr_number_item_bytes(&f.dtype)
                           ? ZARR_ERR_UNSUPPORTED
                           : ZARR_ERR_INVALID,
                       "%s: %s \"%s\" is not the array's, %s", form->name, form->dtype,
                       name, zr_dtype_label(in->dtype));
    filter_type_name(&f.astype, &f.asunit, name);
    ZR_CHECK(zarr_codec_spec_dtype(&out->dtype, spec, name, err));
    if (in->fill) {
        zr_numpy_cast(&f.dtype, &f.astype, in->fill, fill_out);
        out->fill = fill_out;
    }
    return ZARR_OK;
}

/* 0 only if all values come back. Integers come back from any integer type of at least
 * the same size. Sums of floats do not. Nor do sums of signed and unsigned integers,
 * which NumPy may compute in floats. */
static int filter_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_filter f;
    bool narrow;

    if (zr_filter_read(spec, in->dtype, &f, NULL) != ZARR_OK ||
        f.kind == ZR_FILTER_SCALE || f.kind == ZR_FILTER_QUANTIZE ||
        (f.kind == ZR_FILTER_DELTA && f.unit.kind)) /* a NaT spoils all after it */
        return 1;
    narrow = zr_number_item_bytes(&f.astype) < zr_number_item_bytes(&f.dtype);
    if (f.dtype.kind == f.astype.kind)
        return narrow || (f.kind == ZR_FILTER_DELTA && !zr_number_is_whole(&f.dtype));
    return narrow || f.kind == ZR_FILTER_DELTA || !zr_number_is_whole(&f.dtype) ||
           !zr_number_is_whole(&f.astype);
}

#define FILTER_SPEC(id, table, more, on)                                                 \
    const zarr_codec_spec_vtable table = {                                               \
        .struct_size = sizeof(zarr_codec_spec_vtable),                                   \
        .flags = ZARR_CODEC_SPEC_NUMCODECS,                                              \
        .name = id,                                                                      \
        .kind = ZARR_CODEC_BYTES_BYTES,                                                  \
        .canonical = filter_canonical,                                                   \
        .resolve = filter_resolve,                                                       \
        .spell = filter_spell,                                                           \
        .elements = filter_elements,                                                     \
    };                                                                                   \
    const zarr_codec_spec_vtable table##_array = {                                       \
        .struct_size = sizeof(zarr_codec_spec_vtable),                                   \
        .flags = ZARR_CODEC_SPEC_V3 | (more),                                            \
        .name = "numcodecs." id,                                                         \
        .kind = ZARR_CODEC_ARRAY_ARRAY,                                                  \
        .canonical = filter_canonical,                                                   \
        .resolve = filter_array_resolve,                                                 \
        .lossy = filter_lossy,                                                           \
        .complete = filter_complete,                                                     \
        .spell = filter_spell,                                                           \
        .pass = (on),                                                                    \
    }
FILTER_SPEC("delta", zr_spec_delta, ZARR_CODEC_SPEC_KEEPS_SHAPE, filter_pass_flat);
FILTER_SPEC("fixedscaleoffset", zr_spec_fixedscaleoffset, ZARR_CODEC_SPEC_ELEMENTWISE,
            filter_pass_flat);
FILTER_SPEC("quantize", zr_spec_quantize, ZARR_CODEC_SPEC_ELEMENTWISE, NULL);
FILTER_SPEC("astype", zr_spec_astype, ZARR_CODEC_SPEC_ELEMENTWISE, NULL);
