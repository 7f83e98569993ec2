/*
 * dtype/claims.c - checks the names that a table claims when it is registered, and the
 * texts that it writes for each type. A name, alias, v2, NumPy or DLPack type belongs to
 * the table that registered it first, in every spelling that look-ups understand, so no
 * plug-in can take over a core type. Only the raw form of a size ("V4") may be the v2 or
 * NumPy form of several types, and "V", "B" and "O" the NumPy form. No table gets NumPy's
 * spellings of numbers ("half"); a family may have one as its v2 letter.
 * Thread class: as the registry's (dtype.h).
 */
#include "dtype_int.h"

#include <stdio.h>
#include <string.h>

bool zr_is_typestr(const char *type)
{
    return type[0] && strchr("biufcmMSUV", type[0]) &&
           (type[1] == '\0' || (type[1] >= '0' && type[1] <= '9'));
}

bool zr_is_raw_form(const char *type)
{
    return type && type[0] == 'V' && type[1] >= '0' && type[1] <= '9';
}

bool zr_is_shared_form(const char *numpy)
{
    return zr_is_raw_form(numpy) || zr_streq(numpy, "V") || zr_streq(numpy, "B") ||
           zr_streq(numpy, "O");
}

/* A table and the name of its registrant. */
struct claim {
    const zarr_dtype_vtable *vt;
    const char *origin;
};

static const char *table_name(const zarr_dtype_vtable *vt)
{
    return vt->name ? vt->name : vt->v2 ? vt->v2 : "";
}

static zarr_status check_not_taken(const struct claim *c, const char *what,
                                   const char *name, const struct zr_dtype_entry *old,
                                   zarr_error *err)
{
    if (!old)
        return ZARR_OK;
    return zr_fail(
        err, ZARR_ERR_EXISTS,
        "data type \"%.64s\" of %s: the %s \"%.64s\" is taken by %s's \"%.64s\"",
        table_name(c->vt), c->origin, what, name, old->entry.origin,
        table_name(&old->vt));
}

/* Names appear in JSON, in lists separated by blanks, and in texts that look-ups take
 * apart. They must be printable ASCII and may not begin with a character that means
 * something else. A v2 family may have the name "[". */
static zarr_status check_spelling(const struct claim *c, const char *what,
                                  const char *name, zarr_error *err)
{
    const char *p = name;

    while (*p > ' ' && *p < 0x7F && *p != '"' && *p != '\\')
        p++;
    if (p > name && !*p && !strchr("<>|={", *name) &&
        (*name != '[' || zr_streq(name, c->vt->v2)))
        return ZARR_OK;
    return zr_fail(
        err, ZARR_ERR_INVALID,
        "data type of %s: the %s must be printable ASCII without blanks, \" and "
        "\\, and not begin with one of <>|=[{",
        c->origin, what);
}

/* Finds the owner of a v2 type, with or without a leading byte order. */
static const struct zr_dtype_entry *owner_of_v2(const struct zr_dtype_registry *r,
                                                const char *type)
{
    const char *bare = type[0] && strchr("<>|=", type[0]) ? type + 1 : type;
    const struct zr_dtype_entry *old = zr_map_get(&r->v2, bare);

    return old ? old : zr_family_of_v2(r, bare);
}

/* Finds the owner of a v3 name. The family owns "r24". */
static const struct zr_dtype_entry *owner_of_v3(const struct zr_dtype_registry *r,
                                                const char *name)
{
    const struct zr_dtype_entry *old = (const void *)zr_registry_find(&r->types, name);

    return old ? old : zr_family_find(r, name);
}

/* NumPy's spellings of numbers stay free of tables, so that a user gets the same type
 * whatever plug-ins are loaded. */
static zarr_status check_reserved(const struct claim *c, const char *what,
                                  const char *name, zarr_error *err)
{
    const char *type;

    if (!zr_numpy_spelling(name, &type))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_EXISTS,
                   "data type \"%.64s\" of %s: the %s \"%.64s\" is taken by NumPy",
                   table_name(c->vt), c->origin, what, name);
}

/* Checks v2 types also, because look-ups take them wherever they take a name. */
static zarr_status check_name(const struct zr_dtype_registry *r, const struct claim *c,
                              const char *name, zarr_error *err)
{
    const struct zr_dtype_entry *old = NULL;

    if (!name)
        return ZARR_OK;
    old = owner_of_v3(r, name);
    ZR_CHECK(check_not_taken(c, "name", name, old ? old : owner_of_v2(r, name), err));
    ZR_CHECK(check_reserved(c, "name", name, err));
    return check_spelling(c, "name", name, err);
}

/* The raw form has no owner, because all types of a size share it. A v2 type may not be
 * the name of another type: look-ups would find that type in the fields of a struct. */
static zarr_status check_v2(const struct zr_dtype_registry *r, const struct claim *c,
                            zarr_error *err)
{
    const char *type = c->vt->v2;
    const struct zr_dtype_entry *old = NULL;
    zarr_status st = ZARR_OK;

    if (!type || zr_is_raw_form(type))
        return ZARR_OK;
    old = owner_of_v2(r, type);
    ZR_TRY(check_not_taken(c, "v2 type", type, old ? old : owner_of_v3(r, type), err));
    if (!(c->vt->flags & ZARR_DTYPE_FAMILY)) /* a family has it before digits only */
        ZR_TRY(check_reserved(c, "v2 type", type, err));
    if (strcmp(type, "O") == 0)
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "data type \"%.64s\" of %s: the v2 type \"O\" is taken by core's "
                     "text and bytes, which filters tell apart",
                     table_name(c->vt), c->origin);
    else
        st = check_spelling(c, "v2 type", type, err);
out:
    return st;
}

/* Asks the look-up, because NumPy's own names for core types, "float32" and
 * "datetime64[us]", are in no map. */
static zarr_status check_numpy(struct zr_dtype_registry *r, const struct claim *c,
                               const char *type, zarr_error *err)
{
    const zarr_dtype *old = NULL;
    const bool family = (c->vt->flags & ZARR_DTYPE_FAMILY) != 0;
    const char *spelled;
    zarr_status st = ZARR_OK;

    if (family && zr_streq(type, c->vt->v2) && zr_numpy_spelling(type, &spelled))
        return ZARR_OK; /* its v2 letter */
    ZR_TRY(check_reserved(c, "NumPy type", type, err));
    if (*type)
        st = zr_dtype_from_numpy(r, type, &old, NULL, NULL);
    if (st == ZARR_ERR_NO_MEMORY)
        ZR_FAIL_MEMORY(err, strlen(type));
    ZR_TRY(check_not_taken(c, "NumPy type", type, old ? old->entry : NULL, err));
    if (!family)
        st = check_spelling(c, "NumPy type", type, err);
out:
    return st;
}

/* Checks that no type registered earlier, in any spelling, is a member of a new
 * family. */
static zarr_status check_member(const struct claim *c, const char *name,
                                const struct zr_dtype_entry *old, zarr_error *err)
{
    bool takes = name && zr_family_takes_v2(c->vt, name);

    if (!name || zr_is_raw_form(name))
        return ZARR_OK;
    takes = takes || (c->vt->name && zr_family_takes(c->vt, c->vt->name, name));
    for (const char *const *own = c->vt->aliases; own && *own && !takes; own++)
        takes = zr_family_takes(c->vt, *own, name);
    return takes ? check_not_taken(c, "member", name, old, err) : ZARR_OK;
}

static zarr_status check_family(const struct zr_dtype_registry *r, const struct claim *c,
                                zarr_error *err)
{
    for (size_t i = 0; i < r->types.n && (c->vt->flags & ZARR_DTYPE_FAMILY); i++) {
        const struct zr_dtype_entry *old = zr_dtype_entry_at(r, i);

        ZR_CHECK(check_member(c, old->vt.name, old, err));
        ZR_CHECK(check_member(c, old->vt.v2, old, err));
        ZR_CHECK(check_member(c, old->vt.numpy, old, err));
        for (const char *const *alias = old->vt.aliases; alias && *alias; alias++)
            ZR_CHECK(check_member(c, *alias, old, err));
    }
    return ZARR_OK;
}

static zarr_status check_dlpack(const struct zr_dtype_registry *r, const struct claim *c,
                                const struct zarr_dtype *t, zarr_error *err)
{
    const zarr_dtype *old = NULL;
    char numbers[32];

    if (t->info.dlpack_bits == 0 ||
        zr_dtype_from_dlpack(r, t->info.dlpack_code, t->info.dlpack_bits,
                             t->info.dlpack_lanes, &old, NULL) != ZARR_OK ||
        old->entry == t->entry)
        return ZARR_OK;
    snprintf(numbers, sizeof numbers, "%u,%u,%u", t->info.dlpack_code,
             t->info.dlpack_bits, t->info.dlpack_lanes);
    return check_not_taken(c, "DLPack type", numbers, old->entry, err);
}

/* Whether the table has this name: as its own or as that of a member. */
static bool goes_by(const zarr_dtype_vtable *v, const char *name)
{
    const bool family = (v->flags & ZARR_DTYPE_FAMILY) != 0;

    if (v->name &&
        (zr_streq(name, v->name) || (family && zr_family_takes(v, v->name, name))))
        return true;
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        if (zr_streq(name, *alias) || (family && zr_family_takes(v, *alias, name)))
            return true;
    return false;
}

static zarr_status not_its_own(const struct claim *c, const char *what, const char *name,
                               const struct zr_dtype_entry *owner, zarr_error *err)
{
    if (owner)
        return check_not_taken(c, what, name, owner, err);
    return zr_fail(err, ZARR_ERR_INTERNAL,
                   "data type \"%.64s\" of %s: its table writes the %s \"%.64s\", which "
                   "it did not register",
                   table_name(c->vt), c->origin, what, name);
}

static const char *name_in(const struct zr_json *v)
{
    return zr_json_string(zr_json_is(v, ZR_JSON_OBJECT) ? zr_json_get(v, "name") : v);
}

/* Checks the text for v3 metadata: "name" or {"name": "name", ...}. */
static zarr_status check_json(const struct zr_dtype_registry *r, const struct claim *c,
                              const char *text, zarr_error *err)
{
    zarr_error e = {0};
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;
    const char *name;

    zr_json_doc_init(&doc, r->alloc);
    st = zr_json_parse(&doc, text, strlen(text), NULL, &e);
    name = st == ZARR_OK ? name_in(doc.root) : NULL;
    if (st == ZARR_ERR_NO_MEMORY)
        st = zr_fail_memory(err, strlen(text));
    else if (st == ZARR_ERR_LIMIT) /* the v3 text of a deep v2 struct */
        st = ZARR_OK;
    else if (!name)
        st = zr_fail(err, ZARR_ERR_INTERNAL,
                     "data type \"%.64s\" of %s: its table writes %.64s for metadata, "
                     "which does not name a type",
                     table_name(c->vt), c->origin, text);
    else
        st = goes_by(c->vt, name)
                 ? ZARR_OK
                 : not_its_own(c, "name", name, owner_of_v3(r, name), err);
    zr_json_doc_deinit(&doc);
    return st;
}

/* Checks the short name. A struct has its metadata's text as short name. */
static zarr_status check_short(const struct zr_dtype_registry *r, const struct claim *c,
                               const struct zarr_dtype *t, zarr_error *err)
{
    const char *name = t->name;

    if (!name || zr_streq(name, t->v3_json))
        return ZARR_OK;
    if (*name == '{' || *name == '"')
        return check_json(r, c, name, err);
    return goes_by(c->vt, name) ? ZARR_OK
                                : not_its_own(c, "name", name, owner_of_v3(r, name), err);
}

/* In v2, "O" is text or bytes of any length, which filters tell apart. Only the core's
 * types have it. */
static bool goes_by_v2(const struct zr_dtype_entry *e, const char *bare)
{
    return zr_is_raw_form(bare) || zr_streq(bare, e->vt.v2) ||
           ((e->vt.flags & ZARR_DTYPE_FAMILY) && zr_family_takes_v2(&e->vt, bare)) ||
           (strcmp(bare, "O") == 0 && zr_streq(e->entry.origin, "core"));
}

zarr_status zr_dtype_check_texts(const struct zr_dtype_registry *r,
                                 const struct zarr_dtype *t, zarr_error *err)
{
    const struct claim c = {.vt = &t->entry->vt, .origin = t->entry->entry.origin};

    if (t->v3_json)
        ZR_CHECK(check_json(r, &c, t->v3_json, err));
    ZR_CHECK(check_short(r, &c, t, err));
    if (t->v2) {
        const char *bare = t->v2 + (t->v2[0] && strchr("<>|=", t->v2[0]));

        if (!goes_by_v2(t->entry, bare))
            ZR_CHECK(not_its_own(&c, "v2 type", bare, owner_of_v2(r, bare), err));
    }
    return check_dlpack(r, &c, t, err);
}

/* Checks that the table has the entries that it needs. */
static zarr_status check_entries(const struct claim *c, zarr_error *err)
{
    const zarr_dtype_vtable *v = c->vt;
    const bool family = (v->flags & ZARR_DTYPE_FAMILY) != 0;
    const char *wrong = NULL;
    zarr_status st = ZARR_OK;

    if (!v->name && !v->v2)
        wrong = "name and v2 are NULL";
    else if (!v->parse)
        wrong = "parse is NULL";
    else if (!v->fill_parse)
        wrong = "fill_parse is NULL";
    else if (!v->fill_print)
        wrong = "fill_print is NULL";
    else if (family && !v->write)
        wrong = "write is NULL, which a family needs";
    else if (family && v->v2 && !v->parse_v2)
        wrong = "parse_v2 is NULL, which a family with v2 needs";
    else if (family && (v->flags & ZARR_DTYPE_ANY_CONFIGURATION))
        wrong = "flags are FAMILY and ANY_CONFIGURATION, which exclude each other";
    if (wrong)
        st = zr_fail(err, ZARR_ERR_INVALID, "data type \"%.64s\" of %s: its table: %s",
                     table_name(v), c->origin, wrong);
    else if (family && v->numpy && !zr_is_shared_form(v->numpy) &&
             !zr_streq(v->numpy, v->v2))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "data type \"%.64s\" of %s: its table: numpy is \"%.64s\", but a "
                     "family has its letter in v2 (%.64s), \"V\", \"B\" or \"O\"",
                     table_name(v), c->origin, v->numpy, v->v2 ? v->v2 : "none");
    return st;
}

zarr_status zr_dtype_check_table(struct zr_dtype_registry *r, const zarr_dtype_vtable *v,
                                 const char *origin, zarr_error *err)
{
    const struct claim claim = {.vt = v, .origin = origin}, *c = &claim;

    ZR_CHECK(check_entries(c, err));
    ZR_CHECK(check_name(r, c, v->name, err));
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        ZR_CHECK(check_name(r, c, *alias, err));
    ZR_CHECK(check_v2(r, c, err));
    if (v->numpy && !zr_is_shared_form(v->numpy))
        ZR_CHECK(check_numpy(r, c, v->numpy, err));
    for (const char *const *alias = v->numpy_aliases; alias && *alias; alias++)
        ZR_CHECK(check_numpy(r, c, *alias, err));
    return check_family(r, c, err);
}
