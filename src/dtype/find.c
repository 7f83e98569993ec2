/*
 * dtype/find.c - finds the type that metadata or a caller names. The registry's maps
 * answer exact v3 names and v2 strings of types without configuration, without a lock.
 * The owner keeps registration out, by sealing the registry or by a lock around the call.
 * Tables and checks that look types up during registration run inside that lock already.
 * All other texts name a member of a family: an object with a configuration, a name with
 * a number ("r24") or brackets ("numpy.datetime64[10us]"), or a v2 letter followed by
 * more ("M8[us]"). Returns UNSUPPORTED for an unknown name and INVALID for a text that
 * cannot be a name.
 * Thread class: as the registry's (dtype.h).
 */
#include "dtype_int.h"

#include <stdio.h>
#include <string.h>

static zarr_status fail_unknown(const char *text, zarr_error *err)
{
    const char *bare = strchr("<>|=", text[0]) && text[0] ? text + 1 : text;

    return zr_fail_refused(err, zr_dtype_refused, "data type",
                           zr_refusal_find(zr_dtype_refused, "data type", bare) ? bare
                                                                                : text);
}

/* Parses a member of a family and gives the shared object. */
static zarr_status member(struct zr_dtype_registry *r, const struct zr_dtype_entry *e,
                          const char *name, const char *json, const char *v2,
                          const zarr_dtype **out, zarr_error *err)
{
    struct zarr_dtype *made = NULL;

    ZR_CHECK(zr_dtype_make(&made, r, e, name, json, v2, err));
    return zr_dtype_intern(r, made, out, err);
}

/* Counts the bytes of a member's name before its digits or brackets; 0: it has
 * neither. */
static size_t stem_bytes(const char *name)
{
    size_t n = strlen(name), stem = n;
    const char *inside;

    if (zr_split_brackets(name, &inside, &n))
        return (size_t)(inside - 1 - name);
    while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
        stem--;
    return name[stem] ? stem : 0;
}

/* Whether the right text follows the stem: digits for a numbered family, brackets for any
 * other. */
static bool joins(const zarr_dtype_vtable *v, const char *name, size_t stem)
{
    const bool numbered =
        (v->flags & ZARR_DTYPE_NUMBERED) && v->name && stem == strlen(v->name);

    return numbered == (name[stem] != '[');
}

const struct zr_dtype_entry *zr_family_find(const struct zr_dtype_registry *r,
                                            const char *name)
{
    const size_t stem = stem_bytes(name);
    const struct zr_dtype_entry *e =
        stem ? zr_map_get_n(&r->types.names, name, stem) : NULL;

    return e && (e->vt.flags & ZARR_DTYPE_FAMILY) && joins(&e->vt, name, stem) ? e : NULL;
}

bool zr_family_takes(const zarr_dtype_vtable *v, const char *own, const char *name)
{
    const size_t stem = stem_bytes(name);

    return stem && strlen(own) == stem && strncmp(own, name, stem) == 0 &&
           joins(v, name, stem);
}

/* Finds a type by its v3 name. json: the text of the configuration, or NULL. *out stays
 * NULL if the name is unknown. */
static zarr_status by_name(struct zr_dtype_registry *r, const char *name,
                           const char *json, const zarr_dtype **out, zarr_error *err)
{
    const struct zr_dtype_entry *e = (const void *)zr_registry_find(&r->types, name);

    *out = NULL;
    /* The stem of a numbered family ("r") is not a name; its aliases are names. */
    if (e && (e->vt.flags & ZARR_DTYPE_NUMBERED) && zr_streq(name, e->vt.name))
        e = NULL;
    if (!e &&
        !(json && strchr(name, '['))) /* brackets are the short form of a configuration */
        e = zr_family_find(r, name);
    if (!e)
        return ZARR_OK;
    if (!e->fixed ||
        (json && strcmp(json, "{}") != 0 && (e->vt.flags & ZARR_DTYPE_ANY_CONFIGURATION)))
        return member(r, e, name, json, NULL, out, err);
    if (json && strcmp(json, "{}") != 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "data type %s takes no configuration, not %.64s", name, json);
    *out = e->fixed;
    return ZARR_OK;
}

/* ---- v2 ------------------------------------------------------------------ */

static uint32_t order_from_mark(char c)
{
    if (c == '<')
        return ZARR_ORDER_LITTLE;
    return c == '>' ? ZARR_ORDER_BIG : ZR_ORDER_NATIVE;
}

/* Whether the text begins as a member of a family: "[" for structs, else a letter and a
 * digit. */
static bool has_letter(const char *bare)
{
    return bare[0] == '[' || (bare[0] && bare[1] >= '0' && bare[1] <= '9');
}

const struct zr_dtype_entry *zr_family_of_v2(const struct zr_dtype_registry *r,
                                             const char *bare)
{
    const struct zr_dtype_entry *e =
        has_letter(bare) ? zr_map_get_n(&r->v2, bare, 1) : NULL;

    return e && !e->fixed ? e : NULL;
}

bool zr_family_takes_v2(const zarr_dtype_vtable *v, const char *bare)
{
    return v->v2 && strlen(v->v2) == 1 && has_letter(bare) && bare[0] == v->v2[0];
}

/* Finds a type by its v2 string. *out stays NULL if no type has it. *byte_order is the
 * one that the text gives. */
static zarr_status by_v2(struct zr_dtype_registry *r, const char *text,
                         const zarr_dtype **out, uint32_t *byte_order, zarr_error *err)
{
    const char *bare = text[0] && strchr("<>|=", text[0]) ? text + 1 : text;
    const struct zr_dtype_entry *e = zr_map_get(&r->v2, bare);

    *out = NULL;
    *byte_order = order_from_mark(text[0]);
    if (e && !e->fixed)
        e = NULL;                             /* a family's letter without a size */
    if (!e && (bare == text || *bare != '[')) /* a list follows no byte order */
        e = zr_family_of_v2(r, bare);
    if (!e)
        return ZARR_OK;
    if (e->fixed)
        *out = e->fixed;
    else
        ZR_CHECK(member(r, e, NULL, NULL, bare, out, err));
    return ZARR_OK;
}

/* Makes a struct from a v2 list of fields. */
static zarr_status struct_v2(struct zr_dtype_registry *r, const struct zr_json *v,
                             const zarr_dtype **out, uint32_t *byte_order,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype *found = NULL;
    struct zr_str text;

    zr_str_init(&text, r->alloc);
    zr_json_write(v, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    ZR_TRY(by_v2(r, zr_str_text(&text), &found, byte_order, err));
    if (!found) {
        st = fail_unknown("struct", err);
        goto out;
    }
    ZR_TRY(zr_dtype_v2_order(found, v, byte_order, NULL, err));
    *out = found;
out:
    zr_str_deinit(&text);
    return st;
}

zarr_status zr_dtype_from_v2(struct zr_dtype_registry *r, const struct zr_json *v,
                             const zarr_dtype **out, uint32_t *byte_order,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const char *text = zr_json_string(v);
    const zarr_dtype *found = NULL;
    char shown[64];

    if (zr_json_is(v, ZR_JSON_ARRAY)) {
        st = struct_v2(r, v, out, byte_order, err);
        goto out;
    }
    /* a struct is a list: in a text, the orders of its fields would be lost */
    if (!text || !*text || *text == '[')
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "a data type must be a string such as \"<f4\", not %s",
                zr_json_excerpt(v, shown, sizeof shown));
    ZR_TRY(by_v2(r, text, &found, byte_order, err));
    if (!found) {
        st = fail_unknown(text, err);
        goto out;
    }
    if (found->info.swap_bytes <= 1)
        *byte_order = ZR_ORDER_NATIVE;
    else if (found->entry->vt.flags & ZARR_DTYPE_V2_PLAIN)
        *byte_order = *byte_order == ZARR_ORDER_BIG ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    else if (*byte_order == ZR_ORDER_NATIVE) {
        st = zr_v2_no_order(text, err);
        goto out;
    }
    *out = found;
out:
    return st;
}

/* ---- v3 ------------------------------------------------------------------ */

zarr_status zr_dtype_from_v3(struct zr_dtype_registry *r, const struct zr_json *v,
                             const zarr_dtype **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *config = zr_json_get(v, "configuration");
    const char *name =
        zr_json_string(zr_json_is(v, ZR_JSON_OBJECT) ? zr_json_get(v, "name") : v);
    const zarr_dtype *found = NULL;
    struct zr_str json;
    char shown[64];

    zr_str_init(&json, r->alloc);
    if (!name || !*name || (config && !zr_json_is(config, ZR_JSON_OBJECT)))
        ZR_FAIL(
            err, ZARR_ERR_INVALID,
            "a data type must be a name or an object with name and configuration, not %s",
            zr_json_excerpt(v, shown, sizeof shown));
    for (const struct zr_json *m = zr_json_is(v, ZR_JSON_OBJECT) ? v->u.children.first
                                                                 : NULL;
         m; m = m->next) {
        if (zr_json_has_key(m, "name") || zr_json_has_key(m, "configuration") ||
            (zr_json_has_key(m, "must_understand") && m->type == ZR_JSON_TRUE))
            continue;
        ZR_FAIL(err, ZARR_ERR_INVALID, "data type %s: unknown member \"%.64s\"", name,
                m->key);
    }
    if (config)
        zr_json_write(config, 0, &json);
    ZR_TRY(zr_str_status(&json, err));
    ZR_TRY(by_name(r, name, config ? zr_str_text(&json) : NULL, &found, err));
    if (!found || (found->entry->vt.flags & ZARR_DTYPE_V2_ONLY))
        st = fail_unknown(name, err);
    else
        *out = found;
out:
    zr_str_deinit(&json);
    return st;
}

/* ---- both ---------------------------------------------------------------- */

/* A JSON text: what v3 metadata has, or a v2 list of fields. */
static zarr_status from_text(struct zr_dtype_registry *r, const char *text,
                             const zarr_dtype **out, uint32_t *byte_order,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;

    zr_json_doc_init(&doc, r->alloc);
    st = zr_json_parse(&doc, text, strlen(text), NULL, err);
    if (st == ZARR_ERR_CORRUPT)
        st = zr_prefix(err, ZARR_ERR_INVALID, "data type");
    if (st == ZARR_OK && zr_json_is(doc.root, ZR_JSON_ARRAY))
        st = struct_v2(r, doc.root, out, byte_order, err);
    else if (st == ZARR_OK)
        st = zr_dtype_from_v3(r, doc.root, out, err);
    zr_json_doc_deinit(&doc);
    return st;
}

zarr_status zr_dtype_find(struct zr_dtype_registry *r, const char *text,
                          const zarr_dtype **out, uint32_t *byte_order, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype *found = NULL;
    uint32_t order = ZR_ORDER_NATIVE;

    if (!text || !*text)
        ZR_FAIL(err, ZARR_ERR_INVALID, "a data type's name is needed");
    if (*text == '{' || *text == '"' || (*text == '[' && byte_order)) {
        ZR_TRY(from_text(r, text, &found, &order, err));
    } else {
        ZR_TRY(by_name(r, text, NULL, &found, err));
        if (!found)
            ZR_TRY(by_v2(r, text, &found, &order, err));
    }
    if (!found) {
        st = fail_unknown(text, err);
        goto out;
    }
    if (byte_order)
        *byte_order = zr_dtype_has_order(found) ? order : (uint32_t)ZR_ORDER_NATIVE;
    *out = found;
out:
    return st;
}

zarr_status zr_dtype_from_dlpack(const struct zr_dtype_registry *r, uint8_t code,
                                 uint8_t bits, uint16_t lanes, const zarr_dtype **out,
                                 zarr_error *err)
{
    for (size_t i = 0; i < r->types.n; i++) {
        const struct zarr_dtype *t = zr_dtype_entry_at(r, i)->fixed;

        if (t && t->info.dlpack_bits == bits && t->info.dlpack_code == code &&
            t->info.dlpack_lanes == lanes) {
            *out = t;
            return ZARR_OK;
        }
    }
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "no data type for DLPack code %u, %u bits, %u lanes", code, bits,
                   lanes);
}

/* Finds the type of one of NumPy's spellings of a number. */
static zarr_status find_by_spelling(const struct zr_dtype_registry *r, const char *text,
                                    const char *type, const zarr_dtype **out,
                                    zarr_error *err)
{
    const struct zr_dtype_entry *e = type ? zr_map_get(&r->v2, type) : NULL;

    if (!e || !e->fixed)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "data type \"%.64s\" is refused: its size differs between "
                       "machines; write a type with a size, such as int64 or uint32",
                       text);
    *out = e->fixed;
    return ZARR_OK;
}

/* Finds a type by the name that NumPy has for it besides its type string: "float32",
 * "datetime64[us]". */
static zarr_status by_numpy_name(struct zr_dtype_registry *r, const char *text,
                                 const zarr_dtype **out, zarr_error *err)
{
    const char *bare = strchr("<>|=", text[0]) ? text + 1 : text, *type = NULL;
    const zarr_dtype *found = NULL;
    char name[64];

    if (zr_numpy_spelling(bare, &type))
        return find_by_spelling(r, text, type, out, err);
    if (zr_starts_with(bare, "datetime64") || zr_starts_with(bare, "timedelta64"))
        snprintf(name, sizeof name, "numpy.%.40s%s", bare,
                 strchr(bare, '[') ? "" : "[generic]");
    else
        snprintf(name, sizeof name, "%.63s", bare);
    if (strlen(bare) < 40 && by_name(r, name, NULL, &found, err))
        return ZARR_ERR_INVALID;
    if (!found || !found->numpy ||
        (found->info.kind > ZARR_KIND_COMPLEX && found->info.kind != ZARR_KIND_DATETIME &&
         found->info.kind != ZARR_KIND_TIMEDELTA))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "no data type for NumPy's \"%.64s\"",
                       text);
    *out = found;
    return ZARR_OK;
}

/* "4B" is opaque bytes like "V4". Gives any other text as it is. */
static const char *in_bytes(const char *bare, char text[32])
{
    const size_t n = strlen(bare), digits = strspn(bare, "0123456789");

    if (digits == 0 || digits + 1 != n || bare[digits] != 'B' || n > 24)
        return bare;
    (void)snprintf(text, 32, "V%.*s", (int)digits, bare);
    return text;
}

zarr_status zr_dtype_from_numpy(struct zr_dtype_registry *r, const char *text,
                                const zarr_dtype **out, uint32_t *byte_order,
                                zarr_error *err)
{
    const char *bare = text && text[0] && strchr("<>|=", text[0]) ? text + 1 : text;
    const zarr_dtype *found = NULL;
    const struct zr_dtype_entry *e;
    uint32_t order = ZR_ORDER_NATIVE;
    char form[32];

    if (!text || !*text)
        return zr_fail(err, ZARR_ERR_INVALID, "a NumPy type is needed");
    bare = in_bytes(bare, form);
    e = zr_map_get(&r->numpy, bare);
    if (e && e->fixed)
        found = e->fixed;
    else if (zr_is_typestr(bare))
        ZR_CHECK(by_v2(r, bare, &found, &order, err)); /* families: v2's text */
    if (!found)
        ZR_CHECK(by_numpy_name(r, text, &found, err));
    if (byte_order)
        *byte_order = found->info.swap_bytes > 1 ? order_from_mark(text[0])
                                                 : (uint32_t)ZR_ORDER_NATIVE;
    *out = found;
    return ZARR_OK;
}

zarr_status zr_dtype_find_any(struct zr_dtype_registry *r, const char *text,
                              const zarr_dtype **out, uint32_t *byte_order,
                              zarr_error *err)
{
    zarr_status st = zr_dtype_find(r, text, out, byte_order, err);
    const char *bare, *type;

    if (st != ZARR_ERR_UNSUPPORTED)
        return st;
    bare = strchr("<>|=", *text) ? text + 1 : text;
    if (zr_numpy_spelling(bare, &type) || zr_starts_with(bare, "datetime64") ||
        zr_starts_with(bare, "timedelta64"))
        st = zr_dtype_from_numpy(r, text, out, byte_order, err);
    return st;
}

zarr_status zr_dtype_find_order(struct zr_dtype_registry *r, const char *text,
                                const zarr_dtype **out, uint32_t *byte_order,
                                zarr_error *err)
{
    const zarr_dtype *found = NULL;
    zarr_status st = zr_dtype_find_any(r, text, &found, byte_order, err);

    if (st == ZARR_ERR_UNSUPPORTED && text && *text != '[' &&
        zr_dtype_from_numpy(r, text, &found, byte_order, NULL) == ZARR_OK)
        st = ZARR_OK;
    if (st == ZARR_OK && *byte_order == ZR_ORDER_MIXED)
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                     "data type %.64s: its fields have different byte orders", text);
    if (st == ZARR_OK)
        *out = found;
    return st;
}
