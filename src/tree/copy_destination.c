/*
 * tree/copy_destination.c - what is at the destination of a copy before it begins. A
 * delete or another copy that was interrupted leaves keys without their document. The
 * copy writes the document, and these keys would be part of it: chunks would show
 * elements that the source does not have. Also, the document of another array would
 * describe chunks that the copy writes before its own document. Thread class: plain
 * functions.
 */
#include "tree/copy_int.h"

#include <string.h>

static bool has_key(const struct zr_names *names, const char *key)
{
    return zr_names_find(names, key) < names->n;
}

struct mix_look {
    struct zr_copy *c;
    struct zr_names there; /* keys at the destination */
    struct zr_str folder;  /* the folder that was looked at last; keys are sorted */
    bool known, taken;     /* folder is set; see find_owner() */
    size_t owner;          /* length of the path of the node above the folder */
    struct zr_str scratch;
};

/* Whether there is a node at the folder that key[0..n) names. */
static zarr_status has_node(struct mix_look *l, const struct zr_names *names,
                            const char *key, size_t n, bool *yes, zarr_error *err)
{
    static const char *const documents[] = {ZR_DOC_V3, ZR_DOC_ARRAY, ZR_DOC_GROUP};

    *yes = false;
    for (size_t i = 0; i < ZR_COUNT(documents) && !*yes; i++) {
        zr_str_clear(&l->scratch);
        zr_str_append(&l->scratch, key, n);
        if (n > 0)
            zr_str_putc(&l->scratch, '/');
        zr_str_puts(&l->scratch, documents[i]);
        ZR_CHECK(zr_str_status(&l->scratch, err));
        *yes = has_key(names, zr_str_text(&l->scratch));
    }
    return ZARR_OK;
}

/* The key is at the destination only. Its owner is the nearest node above it, at either
 * place; it is taken if the copy makes this node. */
static zarr_status find_owner(struct mix_look *l, const char *key, zarr_error *err)
{
    const size_t folder = zr_path_parent_bytes(key);
    bool at_src = false, at_dst = false;
    size_t n = folder;

    if (l->known && l->folder.bytes == folder &&
        (folder == 0 || memcmp(l->folder.ptr, key, folder) == 0))
        return ZARR_OK;
    for (;;) {
        ZR_CHECK(has_node(l, &l->c->keys, key, n, &at_src, err));
        ZR_CHECK(has_node(l, &l->there, key, n, &at_dst, err));
        if (n == 0 || at_src || at_dst)
            break;
        while (--n > 0 && key[n] != '/') {
        }
    }
    zr_str_clear(&l->folder);
    zr_str_append(&l->folder, key, folder);
    ZR_CHECK(zr_str_status(&l->folder, err));
    l->known = true;
    l->taken = at_src && !at_dst;
    l->owner = n;
    return ZARR_OK;
}

/* Without SKIP_EQUAL nothing of the source may be there. */
static zarr_status look_at_key(struct mix_look *l, const char *key, zarr_error *err)
{
    bool taken = true;

    if (!zr_streq(key, ZR_DOC_JOB) && !has_key(&l->c->keys, key)) {
        ZR_CHECK(find_owner(l, key, err));
        taken = l->taken && zr_key_is_left_over(key + l->owner + (l->owner > 0));
    }
    if (taken)
        return zr_fail(err, ZARR_ERR_EXISTS,
                       "/%s: there is no complete node, but keys that one left (%s): "
                       "zarr_node_delete() and ZARR_COPY_OVERWRITE delete them",
                       l->c->dst_path, key);
    return ZARR_OK;
}

static zarr_status mix_begin(struct mix_look *l, struct zr_copy *c, zarr_error *err)
{
    *l = (struct mix_look){.c = c};
    zr_names_init(&l->there, c->ctx->alloc);
    l->there.cancel = c->opts.cancel;
    zr_str_init(&l->folder, c->ctx->alloc);
    zr_str_init(&l->scratch, c->ctx->alloc);
    return zr_store_can(c->dst, ZARR_STORE_CAP_LIST)
               ? zr_names_keys(&l->there, c->dst, c->dst_path, err)
               : ZARR_OK;
}

static void mix_end(struct mix_look *l)
{
    zr_str_deinit(&l->scratch);
    zr_str_deinit(&l->folder);
    zr_names_deinit(&l->there);
}

static zarr_status look_at_documents(struct mix_look *l, zarr_error *err)
{
    for (size_t i = 0; i < l->there.n; i++) {
        const int rank = zr_copy_rank(l->there.item[i]);

        if (rank < 2 && has_key(&l->c->keys, l->there.item[i]))
            ZR_CHECK(zr_copy_clear_document(l->c, l->there.item[i], rank == 1, err));
    }
    return ZARR_OK;
}

zarr_status zr_copy_must_not_mix(struct zr_copy *c, zarr_error *err)
{
    struct mix_look l;
    zarr_status st = ZARR_OK;

    ZR_TRY(mix_begin(&l, c, err));
    if (c->opts.flags & ZARR_COPY_SKIP_EQUAL) {
        ZR_TRY(look_at_documents(&l, err));
        goto out;
    }
    for (size_t i = 0; i < l.there.n; i++)
        ZR_TRY(look_at_key(&l, l.there.item[i], err));
out:
    mix_end(&l);
    return st;
}

zarr_status zr_copy_clear_documents(struct zr_copy *c, zarr_error *err)
{
    struct mix_look l;
    zarr_status st = ZARR_OK;

    if (!(c->opts.flags & ZARR_COPY_SKIP_EQUAL))
        return ZARR_OK; /* all of the destination was erased */
    ZR_TRY(mix_begin(&l, c, err));
    ZR_TRY(look_at_documents(&l, err));
out:
    mix_end(&l);
    return st;
}
