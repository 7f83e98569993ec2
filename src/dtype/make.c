/*
 * dtype/make.c - makes one object per type. The table's parse() fills in the facts. This
 * file checks them once and then has the texts for the getters written. Members of
 * families are interned by their short name. The parse runs outside the lock, because it
 * may look up other types. If two threads make the same type, the later object is freed.
 * Thread class: shared where a registry is changed.
 */
#include "struct_int.h"

#include <string.h>

void zr_dtype_unmake(struct zarr_dtype *t)
{
    if (!t)
        return;
    if (t->entry->vt.free && t->parsed)
        t->entry->vt.free(&t->info);
    zr_free(t->alloc, t->name);
    zr_free(t->alloc, t->v3_json);
    zr_free(t->alloc, t->v2);
    zr_free(t->alloc, t->numpy);
    zr_free(t->alloc, t);
}

/* The allocator for tables if the context has no allocator of its own. */
static void *plain_alloc(void *user, size_t bytes)
{
    ZR_UNUSED(user);
    return zr_malloc(NULL, bytes);
}
static void *plain_realloc(void *user, void *block, size_t bytes)
{
    ZR_UNUSED(user);
    return zr_realloc(NULL, block, bytes);
}
static void plain_free(void *user, void *block)
{
    ZR_UNUSED(user);
    zr_free(NULL, block);
}
static const zarr_allocator plain_allocator = {NULL, plain_alloc, plain_realloc,
                                               plain_free};

static zarr_status find_for_table(const zarr_dtype_host *host, const char *text,
                                  const zarr_dtype **out, zarr_error *err)
{
    return zr_dtype_find(host->registry, text, out, NULL, err);
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
    if (info->kind == 0 || info->item_bytes == 0 ||
        info->item_bytes % info->swap_bytes != 0 ||
        ((info->flags & ZARR_DTYPE_VARIABLE) && info->item_bytes < sizeof(zarr_vlen)) ||
        info->components > 2 || info->item_bytes % info->components != 0 ||
        info->item_bits > info->item_bytes * 8 ||
        info->component_bits > info->item_bits / info->components)
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "data type %s: its table gives wrong facts", info->name);
    return ZARR_OK;
}

/* Makes one text of a type: the table writes it, or it follows from the table's constant
 * names. *text NULL: the type has no such text. */
static zarr_status write_text(const struct zarr_dtype *t, uint32_t what, char **text,
                              zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_dtype_vtable *vt = &t->entry->vt;
    const char *plain = what == ZARR_DTYPE_TEXT_V2 ? vt->v2 : vt->name;
    size_t n = 0, m = 0;

    *text = NULL;
    if (vt->write) {
        ZR_TRY(vt->write(&t->info, what, NULL, 0, &n, err));
        if (n == 0)
            goto out;
    } else if (!plain) {
        goto out;
    } else {
        n = strlen(plain) + (what == ZARR_DTYPE_TEXT_V3 ? 2 : 0);
    }
    *text = zr_malloc(t->alloc, n + 1);
    if (!*text) {
        st = zr_fail_memory(err, n + 1);
        goto out;
    }
    if (vt->write) {
        ZR_TRY(vt->write(&t->info, what, *text, n + 1, &m, err));
    } else {
        struct zr_sink s = {*text, n + 1, 0};

        if (what == ZARR_DTYPE_TEXT_V3)
            zr_sink_putc(&s, '"');
        zr_sink_puts(&s, plain);
        if (what == ZARR_DTYPE_TEXT_V3)
            zr_sink_putc(&s, '"');
        st = zr_sink_end(&s, &m);
    }
out:
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

static zarr_status write_v2(struct zarr_dtype *t, zarr_error *err)
{
    const zarr_dtype_vtable *vt = &t->entry->vt;
    zarr_status st = ZARR_OK;
    char *bare = NULL;
    const char *numpy;

    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_V2, &bare, err));
    if (bare) {
        t->v2 = with_order(t, bare, (vt->flags & ZARR_DTYPE_V2_PLAIN) != 0);
        if (!t->v2)
            st = zr_fail_memory(err, strlen(bare));
    }
    numpy = vt->numpy && (vt->flags & ZARR_DTYPE_FAMILY) ? bare : vt->numpy;
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

    if (!t) {
        st = zr_fail_memory(err, sizeof *t);
        goto out;
    }
    t->entry = entry;
    t->alloc = r->alloc;
    t->info.struct_size = sizeof t->info;
    t->info.allocator = r->alloc ? r->alloc : &plain_allocator;
    t->info.name = v2 ? v2 : name;
    if (v2)
        ZR_TRY(entry->vt.parse_v2(&t->info, &host, v2, err));
    else
        ZR_TRY(entry->vt.parse(&t->info, &host, name, json, err));
    t->parsed = true;
    ZR_TRY(check_facts(&t->info, err));
    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_V3, &t->v3_json, err));
    ZR_TRY(write_text(t, ZARR_DTYPE_TEXT_NAME, &t->name, err));
    ZR_TRY(write_v2(t, err));
    ZR_TRY(zr_dtype_check_texts(r, t, err));
    if (!t->name && !t->v2) {
        st = zr_fail(err, ZARR_ERR_INTERNAL, "data type %s: its table gives no name",
                     t->info.name);
        goto out;
    }
    t->info.name = t->name ? t->name : t->v2;
    *out = t;
    t = NULL;
out:
    zr_dtype_unmake(t);
    return st;
}

static uint64_t text_bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Estimates the bytes that a type keeps allocated from its texts, which contain
 * everything that its parse kept. */
static uint64_t type_bytes(const struct zarr_dtype *t)
{
    const struct zr_struct *s = zr_struct_of(t);
    uint64_t bytes = sizeof *t + text_bytes_of(t->name) + text_bytes_of(t->v3_json) +
                     text_bytes_of(t->v2) + text_bytes_of(t->numpy);

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
            st = zr_fail(err, ZARR_ERR_LIMIT,
                         "data type %.64s: with it, the context's data types would take "
                         "more than %" PRIu64 " bytes (limit dtype_bytes)",
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
