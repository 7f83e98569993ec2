/*
 * dtype/make.c - makes one object per type. The table's parse() fills in the facts. This
 * file checks them once and then has the texts for the getters written. Members of
 * families are interned by their short name. The parse runs outside the lock, because it
 * may look up other types. If two threads make the same type, the later object is freed.
 * Thread class: shared where a registry is changed.
 */
#include "struct_int.h"

#include <stdio.h>
#include <string.h>

void zr_dtype_unmake(struct zarr_dtype *t)
{
    if (!t)
        return;
    if (t->entry->vt.free && t->parsed)
        t->entry->vt.free(&t->info);
    zr_free(t->alloc, t->name);
    zr_free(t->alloc, t->v3_json);
    zr_free(t->alloc, t->v3_name);
    zr_free(t->alloc, t->v3_config);
    zr_free(t->alloc, t->v2);
    zr_free(t->alloc, t->numpy);
    zr_free(t->alloc, t);
}

static zarr_status find_for_table(const zarr_dtype **out, const zarr_dtype_host *host,
                                  const char *text, zarr_error *err)
{
    return zr_dtype_find(host->registry, text, out, NULL, err);
}

static zarr_status wrong_fact(const zarr_dtype_info *info, const char *fact,
                              uint64_t value, const char *rule, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_INTERNAL,
                   "data type %s: its table gives wrong facts: %s is %" PRIu64 ", %s",
                   info->name, fact, value, rule);
}

static zarr_status check_components(const zarr_dtype_info *info, zarr_error *err)
{
    if (info->components > ZARR_COMPONENTS_MAX)
        return wrong_fact(info, "components", info->components,
                          "more than ZARR_COMPONENTS_MAX (64)", err);
    if (info->item_bytes % info->components != 0)
        return wrong_fact(info, "components", info->components,
                          "which does not divide item_bytes", err);
    if (info->item_bits > info->item_bytes * 8)
        return wrong_fact(info, "item_bits", info->item_bits, "more than item_bytes have",
                          err);
    if (info->component_bits > info->item_bits / info->components)
        return wrong_fact(info, "component_bits", info->component_bits,
                          "more than a component's share of item_bits", err);
    if (info->dlpack_bits && info->dlpack_lanes == 0)
        return wrong_fact(info, "dlpack_lanes", 0, "although dlpack_bits is set", err);
    return ZARR_OK;
}

static zarr_status check_facts(zarr_dtype_info *info, zarr_error *err)
{
    if (info->item_bits == 0)
        info->item_bits = info->item_bytes * 8;
    if (info->swap_bytes == 0)
        info->swap_bytes = 1;
    if (info->components == 0)
        info->components = 1;
    if (info->component_bits == 0)
        info->component_bits = (uint32_t)(info->item_bits / info->components);
    if (info->item_bytes > ZR_ITEM_BYTES_MAX)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "data type %s: elements of %" PRIu64 " bytes, at most %" PRIu64
                       " are supported",
                       info->name, info->item_bytes, ZR_ITEM_BYTES_MAX);
    if (info->kind == 0)
        return wrong_fact(info, "kind", 0, "and must be one of ZARR_KIND_*", err);
    if (info->item_bytes == 0)
        return wrong_fact(info, "item_bytes", 0, "and must be at least 1", err);
    if (info->item_bytes % info->swap_bytes != 0)
        return wrong_fact(info, "swap_bytes", info->swap_bytes,
                          "which does not divide item_bytes", err);
    if ((info->flags & ZARR_DTYPE_VARIABLE) && info->item_bytes < sizeof(zarr_vlen))
        return wrong_fact(info, "item_bytes", info->item_bytes,
                          "less than a zarr_vlen, with which elements of VARIABLE begin",
                          err);
    return check_components(info, err);
}

/* Checks that a configuration did not change what elements are (ANY_CONFIGURATION). */
static zarr_status check_same_facts(const zarr_dtype_info *a, const zarr_dtype_info *b,
                                    zarr_error *err)
{
    const char *rule = "another value than without a configuration";

    if (a->kind != b->kind)
        return wrong_fact(a, "kind", a->kind, rule, err);
    if (a->item_bytes != b->item_bytes)
        return wrong_fact(a, "item_bytes", a->item_bytes, rule, err);
    if (a->swap_bytes != b->swap_bytes)
        return wrong_fact(a, "swap_bytes", a->swap_bytes, rule, err);
    if (a->components != b->components)
        return wrong_fact(a, "components", a->components, rule, err);
    if (a->component_bits != b->component_bits)
        return wrong_fact(a, "component_bits", a->component_bits, rule, err);
    return ZARR_OK;
}

/* Asks the table for a text. */
static zarr_status table_text(const struct zarr_dtype *t, uint32_t what, char **text,
                              zarr_error *err)
{
    const zarr_dtype_vtable *vt = &t->entry->vt;
    size_t n = 0, m = 0;

    ZR_CHECK(vt->write(&t->info, what, NULL, 0, &n, err));
    if (n == 0)
        return ZARR_OK;
    *text = zr_malloc(t->alloc, n + 1);
    if (!*text)
        return zr_fail_memory(err, n + 1);
    return vt->write(&t->info, what, *text, n + 1, &m, err);
}

/* Makes the text from the table's constant name, and from the configuration of a type
 * that takes any; config NULL: none. */
static zarr_status constant_text(const struct zarr_dtype *t, uint32_t what,
                                 const char *config, char **text, zarr_error *err)
{
    const zarr_dtype_vtable *vt = &t->entry->vt;
    const char *plain = what == ZARR_DTYPE_TEXT_V2 ? vt->v2 : vt->name;
    const bool object = config && what != ZARR_DTYPE_TEXT_V2;
    const char *quote = object || what == ZARR_DTYPE_TEXT_V3 ? "\"" : "";
    const char *const part[] = {object ? "{\"name\":" : "",
                                quote,
                                plain,
                                quote,
                                object ? ",\"configuration\":" : "",
                                object ? config : "",
                                object ? "}" : ""};
    struct zr_sink s = {NULL, 0, 0};
    size_t n = 0;

    if (!plain)
        return ZARR_OK;
    for (size_t i = 0; i < ZR_COUNT(part); i++)
        n += strlen(part[i]);
    *text = zr_malloc(t->alloc, n + 1);
    if (!*text)
        return zr_fail_memory(err, n + 1);
    s.text = *text;
    s.cap = n + 1;
    for (size_t i = 0; i < ZR_COUNT(part); i++)
        zr_sink_puts(&s, part[i]);
    return zr_sink_end(&s, &n);
}

/* Makes one text of a type: the table writes it, or it follows from the table's constant
 * names. *text NULL: the type has no such text. */
static zarr_status write_text(const struct zarr_dtype *t, uint32_t what,
                              const char *config, char **text, zarr_error *err)
{
    const zarr_dtype_vtable *vt = &t->entry->vt;

    *text = NULL;
    if (!(vt->flags & ZARR_DTYPE_ANY_CONFIGURATION))
        config = NULL;
    return vt->write && !config ? table_text(t, what, text, err)
                                : constant_text(t, what, config, text, err);
}

/* Takes name and configuration out of the text for v3 metadata. That text may nest deeper
 * than a stored document may. */
static zarr_status split_v3(struct zarr_dtype *t, zarr_error *err)
{
    const struct zr_json *config;
    struct zr_json_doc doc;
    struct zr_str text;
    zarr_status st = ZARR_OK;
    const char *name;

    if (!t->v3_json || (t->entry->vt.flags & ZARR_DTYPE_V2_ONLY))
        return ZARR_OK;
    zr_json_doc_init(&doc, t->alloc);
    zr_str_init(&text, t->alloc);
    st = zr_json_parse(&doc, t->v3_json, strlen(t->v3_json), NULL, err);
    if (st == ZARR_ERR_LIMIT) { /* a deep v2 struct, which v3 metadata cannot have */
        st = ZARR_OK;
        goto out;
    }
    ZR_TRY(st);
    name = zr_json_string(
        zr_json_is(doc.root, ZR_JSON_OBJECT) ? zr_json_get(doc.root, "name") : doc.root);
    config = zr_json_get(doc.root, "configuration");
    if (config) {
        zr_json_write(config, 0, &text);
        ZR_TRY(zr_str_status(&text, err));
        t->v3_config = zr_strdup(t->alloc, zr_str_text(&text));
    }
    t->v3_name = zr_strdup(t->alloc, name ? name : "");
    if (!t->v3_name || (config && !t->v3_config))
        st = zr_fail_memory(err, strlen(t->v3_json));
out:
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
    return st;
}

/* Puts a byte order before a type: "<f4" for "f4", and "|b1" for "b1", which has none.
 * Plain names have no byte order. In the list of a struct, the fields have it. */
static char *with_order(const struct zarr_dtype *t, const char *bare, bool plain)
{
    const size_t n = strlen(bare);
    char *text;

    if (plain || bare[0] == '[')
        return zr_strdup(t->alloc, bare);
    text = zr_malloc(t->alloc, n + 2);
    if (text) {
        text[0] = t->info.swap_bytes > 1 ? '<' : '|';
        memcpy(text + 1, bare, n + 1);
    }
    return text;
}

/* Fills in a form that types share: "V" means "V4" if elements have 4 bytes, "B" means
 * "4B". Gives any other form as it is. */
static const char *numpy_form(const struct zarr_dtype *t, const char *numpy,
                              char text[32])
{
    const uint64_t bytes = t->info.item_bytes;

    if (zr_streq(numpy, "V"))
        (void)snprintf(text, 32, "V%" PRIu64, bytes);
    else if (zr_streq(numpy, "B") && bytes > 1)
        (void)snprintf(text, 32, "%" PRIu64 "B", bytes);
    else
        return numpy;
    return text;
}

static zarr_status write_v2(struct zarr_dtype *t, zarr_error *err)
{
    const zarr_dtype_vtable *vt = &t->entry->vt;
    const bool family = (vt->flags & ZARR_DTYPE_FAMILY) != 0;
    zarr_status st = ZARR_OK;
    char *bare = NULL;
    const char *numpy;
    char form[32];

    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_V2, NULL, &bare, err));
    if (bare) {
        t->v2 = with_order(t, bare, (vt->flags & ZARR_DTYPE_V2_PLAIN) != 0);
        if (!t->v2)
            st = zr_fail_memory(err, strlen(bare));
    }
    numpy = vt->numpy && family && !zr_is_shared_form(vt->numpy)
                ? bare
                : numpy_form(t, vt->numpy, form);
    if (st == ZARR_OK && numpy) {
        t->numpy = with_order(t, numpy, !zr_is_typestr(numpy));
        if (!t->numpy)
            st = zr_fail_memory(err, strlen(numpy));
    }
out:
    zr_free(t->alloc, bare);
    return st;
}

zarr_status zr_dtype_make(struct zarr_dtype **out, struct zr_dtype_registry *r,
                          const struct zr_dtype_entry *entry, const char *name,
                          const char *json, const char *v2, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype_host host = {
        .struct_size = sizeof host, .registry = r, .find = find_for_table};
    struct zarr_dtype *t = zr_calloc(r->alloc, 1, sizeof *t);

    if (!t)
        ZR_FAIL_MEMORY(err, sizeof *t);
    t->entry = entry;
    t->alloc = r->alloc;
    t->info.struct_size = sizeof t->info;
    t->info.allocator = zr_allocator_or_plain(r->alloc);
    t->info.name = v2 ? v2 : name;
    if (v2)
        ZR_TRY(entry->vt.parse_v2(&t->info, &host, v2, err));
    else
        ZR_TRY(entry->vt.parse(&t->info, &host, name, json, err));
    t->parsed = true;
    ZR_TRY(check_facts(&t->info, err));
    if (entry->fixed)
        ZR_TRY(check_same_facts(&t->info, &entry->fixed->info, err));
    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_V3, json, &t->v3_json, err));
    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_NAME, json, &t->name, err));
    ZR_TRY(write_v2(t, err));
    ZR_TRY(zr_dtype_check_texts(r, t, err));
    ZR_TRY(split_v3(t, err));
    if (!t->name && !t->v2)
        ZR_FAIL(err, ZARR_ERR_INTERNAL, "data type %s: its table gives no name",
                t->info.name);
    t->info.name = t->name ? t->name : t->v2;
    *out = t;
    t = NULL;
out:
    zr_dtype_unmake(t);
    return st;
}

static uint64_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Estimates the bytes that a type keeps allocated from its texts, which contain
 * everything that its parse kept. */
static uint64_t type_bytes(const struct zarr_dtype *t)
{
    const struct zr_struct *s = zr_struct_from_dtype(t);
    uint64_t bytes = sizeof *t + text_size(t->name) + text_size(t->v3_json) +
                     text_size(t->v2) + text_size(t->numpy) + text_size(t->v3_name) +
                     text_size(t->v3_config);

    if (s) /* its fields, their names with and without quotes, and the map */
        bytes += sizeof *s + s->n * (sizeof *s->field + 2 * sizeof(void *)) + bytes;
    return bytes;
}

zarr_status zr_dtype_intern(struct zr_dtype_registry *r, struct zarr_dtype *made,
                            const zarr_dtype **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const uint64_t bytes = type_bytes(made);
    struct zarr_dtype *old;

    zr_mutex_lock(&r->locked.mutex);
    old = zr_map_get(&r->locked.made, made->info.name);
    if (old && old->entry != made->entry) {
        st =
            zr_fail(err, ZARR_ERR_EXISTS,
                    "data type \"%.64s\" of %s: that name is taken by a type of %s",
                    made->info.name, made->entry->entry.origin, old->entry->entry.origin);
    } else if (!old) {
        if (r->most_bytes && bytes > r->most_bytes - r->locked.bytes)
            st = zr_fail_limit(err, "dtype_bytes", r->most_bytes,
                               "data type %.64s: with it, the context's data types would "
                               "take more than %" PRIu64 " bytes",
                               made->info.name, r->most_bytes);
        else
            st = zr_map_put(&r->locked.made, made->info.name, made, err);
        if (st == ZARR_OK) {
            r->locked.bytes += bytes;
            old = made;
            made = NULL;
        }
    }
    zr_mutex_unlock(&r->locked.mutex);
    if (st == ZARR_OK)
        *out = old;
    zr_dtype_unmake(made);
    return st;
}
