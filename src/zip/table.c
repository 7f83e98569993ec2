/*
 * zip/table.c - the members of an archive, in the order of its directory: 40 bytes each,
 * their names in one block, as UTF-8, and 8 bytes for a hash table. No member has an
 * allocation of its own. A writer finds here what a new directory needs: dead and ignored
 * members stay.
 *
 * The table also derives from the layout where the data of a member begins. If the bytes
 * from one local header to the next are exactly what a header by the usual rules and the
 * data take, no local header has to be read.
 * Thread class: solo while it is filled, then shared.
 */
#include "zip/zip_int.h"
#include "codecs/codecs.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

enum {
    FIELD_UNICODE = 0x7075,
    NAME_BYTES = 256, /* which all members may have on average */
    UNICODE_HEAD = 5  /* its version, and the CRC-32 of the name in the record */
};

/* The characters 0x80 to 0xff. */
static const uint16_t page_437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb,
    0x00e8, 0x00ef, 0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4,
    0x00f6, 0x00f2, 0x00fb, 0x00f9, 0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5,
    0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa, 0x00f1, 0x00d1, 0x00aa, 0x00ba,
    0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb, 0x2591, 0x2592,
    0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557,
    0x255d, 0x255c, 0x255b, 0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c,
    0x255e, 0x255f, 0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567,
    0x2568, 0x2564, 0x2565, 0x2559, 0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518,
    0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580, 0x03b1, 0x00df, 0x0393, 0x03c0,
    0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4, 0x221e, 0x03c6,
    0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
    0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

static void append_437(struct zr_str *out, const uint8_t *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t c = name[i] < 0x80 ? name[i] : page_437[name[i] - 0x80];

        if (c >= 0x800) {
            zr_str_putc(out, (char)(0xe0 | c >> 12));
            zr_str_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        } else if (c >= 0x80) {
            zr_str_putc(out, (char)(0xc0 | c >> 6));
        }
        zr_str_putc(out, (char)(c < 0x80 ? c : 0x80 | (c & 0x3f)));
    }
}

/* The name that some programs add in UTF-8. It counts only for the name that it was made
 * from: another program may have changed that. */
static bool append_unicode(struct zr_str *out, const struct zr_zip_central *c)
{
    size_t n = 0;
    const uint8_t *field = zr_zip_central_field(c, FIELD_UNICODE, &n);

    if (!field || n <= UNICODE_HEAD || field[0] != 1 ||
        zr_load_le32(field + 1) != zr_codecs_crc32(0, c->name, c->name_bytes))
        return false;
    zr_str_append(out, field + UNICODE_HEAD, n - UNICODE_HEAD);
    return true;
}

/* Appends the name of a member in UTF-8. A name is UTF-8 if a flag says so, and also if
 * it is valid UTF-8: Info-ZIP stores it so without the flag. Then comes the extra field
 * in which other programs have a name in UTF-8. Any other name is in code page 437.
 * *converted: out does not have the bytes of the record. */
static void put_name(struct zr_str *out, const struct zr_zip_central *c, bool *converted)
{
    *converted = false;
    if ((c->flags & ZR_ZIP_FLAG_UTF8) ||
        zr_utf8_is_valid((const char *)c->name, c->name_bytes)) {
        zr_str_append(out, c->name, c->name_bytes);
        return;
    }
    *converted = true;
    if (!append_unicode(out, c))
        append_437(out, c->name, c->name_bytes);
}

/* Whether a name can be a key: no folder, no empty part, no ".", "..", NUL, backslash. */
static bool name_is_key(const char *name, size_t n)
{
    return zr_key_validate(name, n, NULL) == ZARR_OK && !memchr(name, '\\', n);
}

/* ---- an empty table ---- */

void zr_zip_table_init(struct zr_zip_table *t, const struct zr_store_env *env)
{
    *t = (struct zr_zip_table){.alloc = env->alloc,
                               .limit = ZR_MIN(env->limits.listing_keys, UINT32_MAX - 1)};
    zr_str_init(&t->names, env->alloc);
}

void zr_zip_table_deinit(struct zr_zip_table *t)
{
    zr_str_deinit(&t->names);
    zr_free(t->alloc, t->member);
    zr_free(t->alloc, t->slot);
    zr_free(t->alloc, t->sorted);
}

void zr_zip_table_clear(struct zr_zip_table *t)
{
    zr_str_clear(&t->names);
    t->n = t->n_ignored = t->common = 0;
    t->has_first = false;
}

const char *zr_zip_table_name(const struct zr_zip_table *t, const struct zr_zip_member *m)
{
    return t->names.ptr + m->name_at;
}

const char *zr_zip_table_key(const struct zr_zip_table *t, const struct zr_zip_member *m)
{
    return zr_zip_table_name(t, m) + t->root;
}

/* ---- filling ---- */

/* Keeps how many bytes, up to a slash, all names have in common. The folder that macOS
 * adds does not count. */
static void note_common(struct zr_zip_table *t, const char *name, size_t n)
{
    static const char apple[] = "__MACOSX/";
    const char *first = t->names.ptr + t->first_at;
    size_t same = 0;

    if (zr_starts_with(name, apple))
        return;
    if (!t->has_first) {
        t->first_at = (size_t)(name - t->names.ptr);
        t->has_first = true;
        t->common = n;
        first = name;
    }
    if (t->common <= n && memcmp(first, name, t->common) == 0)
        same = t->common;
    else
        while (same < t->common && same < n && first[same] == name[same])
            same++;
    while (same > 0 && name[same - 1] != '/')
        same--;
    t->common = same;
}

static uint16_t member_flags(const struct zr_zip_central *c, bool converted, bool is_key)
{
    unsigned flags = converted ? ZR_ZIP_IS_CONVERTED : 0;

    if (is_key)
        flags |= ZR_ZIP_HAS_KEY;
    if (c->flags & ZR_ZIP_FLAG_ENCRYPTED)
        flags |= ZR_ZIP_IS_ENCRYPTED;
    if (c->flags & ZR_ZIP_FLAG_DESCRIPTOR)
        flags |= ZR_ZIP_HAS_DESCRIPTOR;
    if (c->is_link)
        flags |= ZR_ZIP_IS_LINK;
    if (c->is_bad || (c->method == ZR_ZIP_STORED && c->stored_bytes != c->bytes &&
                      !(c->flags & ZR_ZIP_FLAG_ENCRYPTED)))
        flags |= ZR_ZIP_IS_BAD;
    return (uint16_t)flags;
}

zarr_status zr_zip_table_add(struct zr_zip_table *t, const struct zr_zip_central *c,
                             zarr_error *err)
{
    const size_t at = t->names.bytes;
    struct zr_zip_member *m = NULL;
    bool converted = false, is_key = false, is_folder = false;
    size_t n = 0;

    if (t->n >= t->limit)
        return zr_fail_limit(err, "listing_keys", t->limit,
                             "more than %" PRIu64 " members", t->limit);
    ZR_CHECK(zr_grow(t->alloc, &t->member, &t->cap, t->n + 1, sizeof *t->member, err));
    put_name(&t->names, c, &converted);
    ZR_CHECK(zr_str_status(&t->names, err));
    n = t->names.bytes - at;
    if (t->names.bytes / NAME_BYTES > t->limit || t->names.bytes >= UINT32_MAX)
        return zr_fail_limit(err, "listing_keys", t->limit,
                             "names of more than %d bytes for each of %" PRIu64
                             " members",
                             NAME_BYTES, t->limit);
    is_folder = n > 0 && t->names.ptr[at + n - 1] == '/';
    is_key = !is_folder && name_is_key(t->names.ptr + at, n);
    m = &t->member[t->n];
    *m = (struct zr_zip_member){.header_at = c->header_at,
                                .stored_bytes = c->stored_bytes,
                                .bytes = c->bytes,
                                .crc = c->crc,
                                .name_at = (uint32_t)at,
                                .name_bytes = (uint16_t)ZR_MIN(n, (size_t)UINT16_MAX),
                                .method = c->method,
                                .flags = member_flags(c, converted, is_key)};
    m->lead = zr_zip_usual_local_bytes(c);
    if (!zr_add(m->header_at, t->base, &m->header_at))
        m->flags |= ZR_ZIP_IS_BAD;
    zr_str_append(&t->names, "", 1);
    ZR_CHECK(zr_str_status(&t->names, err));
    if (is_key)
        note_common(t, t->names.ptr + at, n);
    else if (!is_folder && t->n_ignored++ == 0)
        t->ignored = t->n;
    t->n++;
    return ZARR_OK;
}

/* ---- the layout ---- */

/* Decides whether the data of a member begins where it should: the next local header, or
 * the directory, is at next_at. */
static void settle_member(const struct zr_zip_table *t, struct zr_zip_member *m,
                          uint64_t next_at)
{
    const uint32_t usual = m->lead;
    const uint32_t least =
        ZR_ZIP_LOCAL_BYTES + (m->flags & ZR_ZIP_IS_CONVERTED ? 0u : m->name_bytes);
    uint32_t lead = 0;
    uint64_t end = 0, gap = 0;

    if (!zr_add(m->header_at, least, &end) || !zr_add(end, m->stored_bytes, &end) ||
        end > t->directory_at)
        m->flags |= ZR_ZIP_IS_OUTSIDE;
    else if (end > next_at)
        m->flags |= ZR_ZIP_OVERLAPS;
    else if (!(m->flags & (ZR_ZIP_HAS_DESCRIPTOR | ZR_ZIP_IS_CONVERTED))) {
        gap = next_at - m->header_at - m->stored_bytes;
        lead = gap == usual || gap == least ? (uint32_t)gap : 0;
    }
    m->lead = lead;
}

struct zip_place {
    uint64_t at;
    uint32_t i;
};

static int by_header(const void *a, const void *b)
{
    const struct zip_place *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static bool is_in_order(const struct zr_zip_table *t)
{
    for (size_t i = 1; i < t->n; i++)
        if (t->member[i - 1].header_at >= t->member[i].header_at)
            return false;
    return true;
}

static zarr_status settle_members(struct zr_zip_table *t, zarr_error *err)
{
    struct zip_place *place = NULL;

    if (is_in_order(t)) {
        for (size_t i = 0; i < t->n; i++)
            settle_member(t, &t->member[i],
                          i + 1 < t->n ? t->member[i + 1].header_at : t->directory_at);
        return ZARR_OK;
    }
    place = zr_calloc(t->alloc, t->n, sizeof *place);
    if (!place)
        return zr_fail_memory(err, t->n * sizeof *place);
    for (size_t i = 0; i < t->n; i++)
        place[i] = (struct zip_place){t->member[i].header_at, (uint32_t)i};
    qsort(place, t->n, sizeof *place, by_header);
    for (size_t i = 0; i < t->n; i++)
        settle_member(t, &t->member[place[i].i],
                      i + 1 < t->n ? place[i + 1].at : t->directory_at);
    zr_free(t->alloc, place);
    return ZARR_OK;
}

/* ---- the folder above the root ---- */

/* The length of the folder's name, with its slash, if the name is that of a document of
 * a node; SIZE_MAX if it is not. */
static size_t document_folder(const char *name, size_t n)
{
    static const char *const documents[] = {ZR_DOC_V3, ZR_DOC_GROUP, ZR_DOC_ARRAY,
                                            ZR_DOC_CONSOLIDATED};
    size_t at = n;

    while (at > 0 && name[at - 1] != '/')
        at--;
    for (size_t i = 0; i < ZR_COUNT(documents); i++)
        if (strcmp(name + at, documents[i]) == 0)
            return at;
    return SIZE_MAX;
}

/* The root is the first folder that holds a document, if all members are below it. */
static void find_root(struct zr_zip_table *t)
{
    size_t root = SIZE_MAX;

    for (size_t i = 0; t->common > 0 && i < t->n; i++) {
        const struct zr_zip_member *m = &t->member[i];

        if (m->flags & ZR_ZIP_HAS_KEY)
            root = ZR_MIN(root, document_folder(zr_zip_table_name(t, m), m->name_bytes));
    }
    t->root = root <= t->common ? root : 0;
}

/* ---- finding ---- */

static uint32_t *find_slot(const struct zr_zip_table *t, const char *key, size_t n)
{
    size_t i = (size_t)zr_map_hash(key, n) & (t->n_slots - 1);

    for (; t->slot[i] != 0; i = (i + 1) & (t->n_slots - 1)) {
        const struct zr_zip_member *m = &t->member[t->slot[i] - 1];

        if (m->name_bytes == n + t->root &&
            memcmp(zr_zip_table_name(t, m) + t->root, key, n) == 0)
            break;
    }
    return &t->slot[i];
}

/* Makes an empty hash table for n members. */
static zarr_status make_slots(struct zr_zip_table *t, size_t n, zarr_error *err)
{
    size_t n_slots = 16;
    uint32_t *slot = NULL;

    while (n_slots / 2 < n)
        n_slots *= 2;
    slot = zr_calloc(t->alloc, n_slots, sizeof *slot);
    if (!slot)
        return zr_fail_memory(err, n_slots * sizeof *slot);
    zr_free(t->alloc, t->slot);
    t->slot = slot;
    t->n_slots = n_slots;
    return ZARR_OK;
}

static void mark_dead(struct zr_zip_member *m)
{
    m->flags = (uint16_t)((m->flags & ~ZR_ZIP_HAS_KEY) | ZR_ZIP_IS_DEAD);
}

static zarr_status index_keys(struct zr_zip_table *t, zarr_error *err)
{
    const char *prefix = t->root > 0 ? t->names.ptr + t->first_at : "";
    const zarr_status st = make_slots(t, t->n, err);

    if (st != ZARR_OK)
        return st;
    for (size_t i = 0; i < t->n; i++) {
        struct zr_zip_member *m = &t->member[i];
        const char *name = zr_zip_table_name(t, m);
        uint32_t *slot;

        if (!(m->flags & ZR_ZIP_HAS_KEY))
            continue;
        if (memcmp(name, prefix, ZR_MIN(t->root, (size_t)m->name_bytes)) != 0 ||
            m->name_bytes <= t->root) {
            m->flags &= (uint16_t)~ZR_ZIP_HAS_KEY; /* beside the root */
            continue;
        }
        slot = find_slot(t, name + t->root, m->name_bytes - t->root);
        if (*slot != 0) { /* the last one wins */
            mark_dead(&t->member[*slot - 1]);
            t->n_keys--;
        }
        *slot = (uint32_t)i + 1;
        t->n_keys++;
    }
    return ZARR_OK;
}

zarr_status zr_zip_table_finish(struct zr_zip_table *t, zarr_error *err)
{
    const zarr_status st = settle_members(t, err);

    if (st != ZARR_OK)
        return st;
    find_root(t);
    t->n_recorded = t->n;
    return index_keys(t, err);
}

struct zr_zip_member *zr_zip_table_find(const struct zr_zip_table *t, const char *key)
{
    const uint32_t i = *find_slot(t, key, strlen(key));

    return i > 0 && t->member[i - 1].flags & ZR_ZIP_HAS_KEY ? &t->member[i - 1] : NULL;
}

/* ---- changes by a writer ---- */

static void forget_order(struct zr_zip_table *t)
{
    zr_free(t->alloc, t->sorted);
    t->sorted = NULL;
}

/* Keys that are missing lose their slots. */
static zarr_status grow_slots(struct zr_zip_table *t, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (t->n < t->n_slots / 2)
        return ZARR_OK;
    st = make_slots(t, t->n + 1, err);
    for (size_t i = 0; st == ZARR_OK && i < t->n; i++) {
        const struct zr_zip_member *m = &t->member[i];

        if (m->flags & ZR_ZIP_HAS_KEY)
            *find_slot(t, zr_zip_table_key(t, m), m->name_bytes - t->root) =
                (uint32_t)i + 1;
    }
    return st;
}

zarr_status zr_zip_table_reserve(struct zr_zip_table *t, const char *key, zarr_error *err)
{
    const size_t bytes = t->root + strlen(key);
    size_t names = 0;

    if (!name_is_key(key, strlen(key))) /* readers would ignore it */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: the name of a member cannot have a backslash", key);
    if (bytes > UINT16_MAX)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: the name of a member has at most 65535 bytes, not %zu", key,
                       bytes);
    if (t->n >= t->limit || t->names.bytes + bytes >= UINT32_MAX)
        return zr_fail_limit(err, "listing_keys", t->limit,
                             "more than %" PRIu64 " members", t->limit);
    names = t->names.bytes + bytes + 2;
    ZR_CHECK(zr_grow(t->alloc, &t->member, &t->cap, t->n + 1, sizeof *t->member, err));
    ZR_CHECK(zr_grow(t->alloc, &t->names.ptr, &t->names.cap, names, 1, err));
    return grow_slots(t, err);
}

void zr_zip_table_put(struct zr_zip_table *t, const char *key,
                      const struct zr_zip_member *m)
{
    const size_t n = strlen(key);
    uint32_t *slot = find_slot(t, key, n), name_at = (uint32_t)t->names.bytes;
    struct zr_zip_member *old = *slot > 0 ? &t->member[*slot - 1] : NULL, *to = NULL;

    if (!old || !(old->flags & ZR_ZIP_HAS_KEY)) {
        forget_order(t);
        t->n_keys++;
    }
    if (old && *slot > t->n_recorded) { /* no directory names it yet */
        to = old;
        name_at = old->name_at;
    } else {
        if (old) {
            forget_order(t); /* it has numbers of members */
            mark_dead(old);
        }
        if (t->root > 0) /* the buffer has room, so it does not move */
            zr_str_append(&t->names, t->names.ptr + t->first_at, t->root);
        zr_str_append(&t->names, key, n + 1);
        to = &t->member[t->n++];
        *slot = (uint32_t)t->n;
    }
    *to = *m;
    to->flags = ZR_ZIP_HAS_KEY;
    to->name_at = name_at;
    to->name_bytes = (uint16_t)(t->root + n);
}

void zr_zip_table_drop(struct zr_zip_table *t, struct zr_zip_member *m)
{
    mark_dead(m);
    t->n_keys--;
    forget_order(t);
}
