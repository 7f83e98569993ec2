/*
 * ctx/zip.c - opens zip archives: by a URL, as any registered store, or under a key of an
 * open store. The room zip reads and writes them.
 * Thread class: shared.
 */
#include "ctx/ctx_int.h"

#include "json/json.h"
#include "zip/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ---- */

/* Options of archives, and the text with the others. */
struct zip_config {
    bool always_copies;
    enum zr_zip_form form;
    struct zr_str rest; /* may have secrets; empty if there are none */
};

static void config_deinit(struct zip_config *c)
{
    if (c->rest.ptr)
        zr_wipe(c->rest.ptr, c->rest.cap);
    zr_str_deinit(&c->rest);
}

/* Writes all other options. The buffer does not move, so no copy of a secret stays. */
static zarr_status config_write_rest(struct zip_config *c, const struct zr_json *object,
                                     size_t text_bytes, zarr_error *err)
{
    const size_t most = zr_add_cap(zr_mul_cap(text_bytes, 6), 3); /* all is escaped */
    const zarr_status st =
        zr_grow(c->rest.alloc, &c->rest.ptr, &c->rest.cap, most, 1, err);

    if (st != ZARR_OK)
        return st;
    zr_json_write(object, 0, &c->rest);
    return zr_str_status(&c->rest, err);
}

/* Takes an option that has one of two values: 0 if it is absent, else 1 or 2. */
static zarr_status config_take(struct zr_json *object, const char *name,
                               const char *const values[2], int *out, zarr_error *err)
{
    const struct zr_json *v = zr_json_get(object, name);

    *out = 0;
    if (!v)
        return ZARR_OK;
    for (int i = 0; i < 2; i++)
        if (zr_json_is_text(v, values[i]))
            *out = i + 1;
    if (*out == 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_store_options.config: the option \"%s\" of stores of kind "
                       "zip is one of %s|%s",
                       name, values[0], values[1]);
    (void)zr_json_remove(object, name);
    return ZARR_OK;
}

static zarr_status config_read(struct zip_config *c, zarr_context *ctx, const char *text,
                               zarr_error *err)
{
    static const char *const updates[] = {"append", "copy"}, *const forms[] = {"plain",
                                                                               "ozx"};
    int update = 0, form = 0;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    c->always_copies = false;
    c->form = ZR_ZIP_FORM_BY_NAME;
    zr_str_init(&c->rest, ctx->alloc);
    if (!text)
        return ZARR_OK;
    zr_json_doc_init(&doc, ctx->alloc);
    st = zr_json_parse(&doc, text, strlen(text), &ctx->limits, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st == ZARR_ERR_CORRUPT ? ZARR_ERR_INVALID : st,
                         "zarr_store_options.config"));
    ZR_TRY(config_take(doc.root, "zip_update", updates, &update, err));
    ZR_TRY(config_take(doc.root, "zip_form", forms, &form, err));
    c->always_copies = update == 2;
    c->form = form == 1   ? ZR_ZIP_FORM_PLAIN
              : form == 2 ? ZR_ZIP_FORM_OZX
                          : ZR_ZIP_FORM_BY_NAME;
    if (!zr_json_is(doc.root, ZR_JSON_OBJECT) || zr_json_count(doc.root) > 0)
        st = config_write_rest(c, doc.root, strlen(text), err);
out:
    zr_arena_wipe(&doc.arena);
    zr_json_doc_deinit(&doc);
    return st;
}

/* ---- opening ---- */

/* shown: the name of the archive for messages. */
static zarr_status zip_open_key(void **self, zarr_store *store, const char *key,
                                const char *shown, const struct zr_zip_options *opts,
                                zarr_error *err)
{
    const struct zr_store_env env = zr_ctx_store_env(zr_store_context(store));
    const zarr_status st = zr_zip_open(self, &env, store, key, opts, err);

    if (st != ZARR_ERR_NOT_FOUND)
        return st;
    if (opts->flags & ZARR_STORE_CREATE)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s does not exist, and the store that would hold it cannot write "
                       "archives",
                       shown);
    return zr_fail_os(err, st, ENOENT, "%s", shown);
}

/* The archive is the root of its store, so a link to it is followed as one to a folder:
 * zr_archive_split() does it. So the file has one name, one lock and one place.
 */
static zarr_status zip_open_url(void **self, zarr_context *ctx, const char *url,
                                const zarr_store_options *opts, const zarr_cancel *cancel,
                                zarr_error *err)
{
    zarr_store_options inner = {.struct_size = sizeof inner,
                                .flags = opts->flags,
                                .durability = opts->durability,
                                .locks = opts->locks,
                                .symlinks = ZARR_SYMLINKS_FOLLOW,
                                .lock_wait_ms = opts->lock_wait_ms,
                                .cancel = cancel};
    struct zr_zip_options how = {
        .flags = opts->flags, .cancel = cancel, .temp_folder = getenv("TMPDIR")};
    struct zip_config config;
    zarr_store *store = NULL;
    char *place = NULL, *key = NULL, *shown = NULL;
    zarr_status st = config_read(&config, ctx, opts->config, err);

    ZR_TRY(st);
    how.always_copies = config.always_copies;
    how.form = config.form;
    if (config.rest.bytes > 0)
        inner.config = config.rest.ptr;
    if (zr_starts_with(url, ZR_STORE_ZIP ":"))
        url += zr_starts_with(url, ZR_STORE_ZIP "://") ? 6 : 4;
    ZR_TRY(zr_archive_split(ctx->alloc, url, &place, &key, err));
    if (*key == '\0')
        ZR_FAIL(err, ZARR_ERR_INVALID, "the URL names no archive");
    ZR_TRY(zarr_store_open(&store, ctx, place, &inner, err));
    ZR_TRY(zr_store_show_url(&shown, ctx->alloc, url, err));
    st = zip_open_key(self, store, key, shown ? shown : url, &how, err);
out:
    config_deinit(&config);
    zarr_store_free(store);
    zr_free(ctx->alloc, shown);
    zr_free_secret(ctx->alloc, place);
    zr_free(ctx->alloc, key);
    return st;
}

zarr_status zr_ctx_register_zip(zarr_context *ctx, zarr_error *err)
{
    zarr_store_vtable vt = zr_zip_vtable;

    vt.open = zip_open_url;
    return zarr_context_register_store(ctx, &vt, ZR_CTX_CORE, err);
}

zarr_status zarr_store_open_zip(zarr_store **out, zarr_store *store, const char *key,
                                const zarr_store_options *opts, zarr_error *err)
{
    struct zr_zip_options how = {.always_copies = false};
    zarr_store_options o;
    struct zr_store_env env;
    struct zip_config config;
    struct zr_str url;
    void *self = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(store, err);
    ZR_NEED(key, err);
    env = zr_ctx_store_env(zr_store_context(store));
    zr_str_init(&url, env.alloc);
    zr_str_init(&config.rest, env.alloc);
    ZR_TRY(zr_struct_read(&o, sizeof o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                          "zarr_store_options", err));
    ZR_TRY(config_read(&config, env.ctx, o.config, err));
    how = (struct zr_zip_options){o.flags, config.always_copies, config.form, o.cancel,
                                  getenv("TMPDIR")};
    o.config = config.rest.bytes > 0 ? config.rest.ptr : NULL; /* is refused */
    zr_str_printf(&url, ZR_STORE_ZIP ":%s/%s", zarr_store_url(store), key);
    ZR_TRY(zr_str_status(&url, err));
    ZR_TRY(zip_open_key(&self, store, key, zr_str_text(&url), &how, err));
    st = zr_store_open_custom_url(out, &env, &zr_zip_vtable, self, zr_str_text(&url), &o,
                                  err);
out:
    config_deinit(&config);
    zr_str_deinit(&url);
    return st;
}
