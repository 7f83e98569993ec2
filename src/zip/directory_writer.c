/*
 * zip/directory_writer.c - writes a directory: the records of the old one, so that what
 * other programs stored there stays, and then those of new members. Members that were
 * replaced or erased have none. In single-file OME-Zarr, records are in the order of
 * levels: the old directory is read once for each of them.
 * Thread class: called by the busy thread.
 */
#include "zip/zip_int.h"

enum {
    DIRECTORY_PIECE_BYTES = 1 << 20,
    WINDOW_BYTES = 256 << 10, /* more than the longest record */
    ROOM_BYTES = ZR_ZIP_RECORD_MOST + 3 * UINT16_MAX
};

struct zip_output {
    struct zr_zip_store *z;
    const uint64_t *new_at; /* where the local headers come to; NULL: they stay */
    struct zr_str piece;    /* not yet written */
    uint8_t *room;          /* for a record and more */
    uint64_t n;             /* records */
};

static zarr_status write_piece(struct zip_output *o, zarr_error *err)
{
    zarr_status st = zr_str_status(&o->piece, err);

    if (st == ZARR_OK && o->piece.bytes > 0)
        st = zr_zip_session_write(o->z, o->piece.ptr, o->piece.bytes, NULL, err);
    zr_str_clear(&o->piece);
    return st;
}

static zarr_status add_bytes(struct zip_output *o, const void *bytes, size_t n,
                             zarr_error *err)
{
    zr_str_append(&o->piece, bytes, n);
    return o->piece.failed || o->piece.bytes >= DIRECTORY_PIECE_BYTES
               ? write_piece(o, err)
               : ZARR_OK;
}

static bool is_of_level(const struct zip_output *o, size_t i, unsigned level)
{
    const struct zr_zip_member *m = &o->z->table.member[i];

    return !(m->flags & ZR_ZIP_IS_DEAD) && zr_zip_level(o->z, m) == level;
}

/* p: the record of member i, n bytes. */
static zarr_status copy_record(struct zip_output *o, const uint8_t *p, size_t n, size_t i,
                               zarr_error *err)
{
    size_t moved = 0;

    o->n++;
    if (!o->new_at)
        return add_bytes(o, p, n, err);
    moved = zr_zip_write_moved(o->room, p, o->new_at[i] - o->z->table.base);
    if (moved == 0)
        return zr_fail(err, ZARR_ERR_LIMIT, "%s: a record of the directory is too long",
                       o->z->archive.key);
    return add_bytes(o, o->room, moved, err);
}

static zarr_status copy_old_records(struct zip_output *o, unsigned level, zarr_error *err)
{
    const struct zr_zip_table *t = &o->z->table;
    const uint64_t end = t->directory_at + t->directory_bytes;
    struct zr_zip_window w = {.archive = &o->z->archive, .most = WINDOW_BYTES};
    uint64_t at = t->directory_at;
    const uint8_t *p = NULL;
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < t->n_recorded; i++) {
        size_t n = ZR_ZIP_CENTRAL_BYTES;

        if (end - at >= n) {
            ZR_TRY(zr_zip_window_get(&w, at, n, end, &p, err));
            n = zr_zip_central_bytes(p);
        }
        if (n == 0 || end - at < n)
            ZR_FAIL(err, ZARR_ERR_IO, "%s: the directory of the archive changed",
                    o->z->archive.key);
        if (is_of_level(o, i, level)) {
            ZR_TRY(zr_zip_window_get(&w, at, n, end, &p, err));
            ZR_TRY(copy_record(o, p, n, i, err));
        }
        at += n;
    }
out:
    zr_free(t->alloc, w.bytes);
    return st;
}

static zarr_status add_new_records(struct zip_output *o, unsigned level, zarr_error *err)
{
    const struct zr_zip_table *t = &o->z->table;

    for (size_t i = t->n_recorded; i < t->n; i++) {
        const struct zr_zip_member *m = &t->member[i];
        const struct zr_zip_record r = {.name = zr_zip_table_name(t, m),
                                        .name_bytes = m->name_bytes,
                                        .header_at = m->header_at - t->base,
                                        .bytes = m->bytes,
                                        .crc = m->crc,
                                        .time = o->z->session.time};

        if (!is_of_level(o, i, level))
            continue;
        ZR_CHECK(add_bytes(o, o->room, zr_zip_write_central(o->room, &r), err));
        o->n++;
    }
    return ZARR_OK;
}

/* The end record, with its comment. */
static zarr_status add_end(struct zip_output *o, uint64_t directory_at, zarr_error *err)
{
    const struct zr_zip_table *t = &o->z->table;
    const uint64_t end = o->z->session.end + o->piece.bytes;
    struct zr_str comment;
    zarr_status st = ZARR_OK;

    zr_str_init(&comment, t->alloc);
    ZR_TRY(zr_zip_make_comment(o->z, o->new_at, &comment, err));
    ZR_TRY(add_bytes(o, o->room,
                     zr_zip_write_end(o->room, o->n, directory_at - t->base,
                                      end - directory_at, (uint16_t)comment.bytes,
                                      o->z->is_ozx),
                     err));
    ZR_TRY(add_bytes(o, zr_str_text(&comment), comment.bytes, err));
    st = write_piece(o, err);
out:
    zr_str_deinit(&comment);
    return st;
}

zarr_status zr_zip_directory_write(struct zr_zip_store *z, const uint64_t *new_at,
                                   zarr_error *err)
{
    const zarr_allocator *alloc = z->archive.env.alloc;
    const uint64_t at = z->session.end, levels = zr_zip_levels(z);
    struct zip_output o = {.z = z, .new_at = new_at};
    zarr_status st = ZARR_OK;

    o.room = zr_malloc(alloc, ROOM_BYTES);
    if (!o.room)
        return zr_fail_memory(err, ROOM_BYTES);
    zr_str_init(&o.piece, alloc);
    for (unsigned level = 0; level < ZR_ZIP_LEVELS; level++) {
        if (!(levels >> level & 1))
            continue;
        ZR_TRY(copy_old_records(&o, level, err));
        ZR_TRY(add_new_records(&o, level, err));
    }
    st = add_end(&o, at, err);
out:
    zr_str_deinit(&o.piece);
    zr_free(alloc, o.room);
    return st;
}
