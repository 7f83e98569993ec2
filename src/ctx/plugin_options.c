/*
 * ctx/plugin_options.c - options for plug-ins: one JSON object with an object for each
 * plug-in. A plug-in asks for its options by name and type in load(). What it did not ask
 * for is an unknown option, so a typo is an error without any work of the plug-in.
 * Thread class: under the loader's lock, as all loading.
 */
#include "ctx/ctx_int.h"

#include <string.h>

zarr_status zr_plugin_options_read(zarr_context *ctx, const char *text, zarr_error *err)
{
    struct zr_json_doc *doc = &ctx->plugins.options.doc;
    zarr_status st = ZARR_OK;

    if (!text)
        return ZARR_OK;
    st = zr_json_parse(doc, text, strlen(text), &ctx->limits, err);
    if (st == ZARR_ERR_CORRUPT)
        st = ZARR_ERR_INVALID;
    ZR_TRY(zr_prefix(err, st, "plugin_options"));
    if (!zr_json_is(doc->root, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_INVALID, "plugin_options is not an object but a %s",
                       zr_json_type_text(doc->root));
    for (const struct zr_json *v = doc->root->u.children.first; v; v = v->next)
        if (!zr_json_is(v, ZR_JSON_OBJECT))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "plugin_options: \"%s\" is not an object but a %s", v->key,
                           zr_json_type_text(v));
out:
    return st;
}

void zr_plugin_options_deinit(struct zr_plugins *p, const zarr_allocator *alloc)
{
    zr_free(alloc, p->options.asked);
    zr_json_doc_deinit(&p->options.doc);
}

zarr_status zr_plugin_options_begin(zarr_context *ctx, const char *plugin,
                                    zarr_error *err)
{
    struct zr_plugins *p = &ctx->plugins;
    const struct zr_json *root = p->options.doc.root;
    size_t n = 0;

    p->options.mine = root ? zr_json_get(root, plugin) : NULL;
    p->options.wrong = NULL;
    zr_free(ctx->alloc, p->options.asked);
    p->options.asked = NULL;
    if (!p->options.mine)
        return ZARR_OK;
    n = zr_json_count(p->options.mine);
    p->options.asked = zr_calloc(ctx->alloc, n + 1, sizeof *p->options.asked);
    return p->options.asked ? ZARR_OK : zr_fail_memory(err, n + 1);
}

zarr_status zr_plugin_options_end(zarr_context *ctx, const char *plugin, zarr_error *err)
{
    const struct zr_plugins *p = &ctx->plugins;
    const struct zr_json *v = p->options.mine ? p->options.mine->u.children.first : NULL;

    if (p->options.wrong)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "plugin_options: option \"%s\" of plug-in \"%s\" has another type "
                       "than the plug-in reads",
                       p->options.wrong, plugin);
    for (size_t i = 0; v; v = v->next, i++)
        if (!p->options.asked[i])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "plugin_options: plug-in \"%s\" has no option \"%s\"", plugin,
                           v->key);
    return ZARR_OK;
}

static bool plugin_is_loaded(const struct zr_plugins *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (zr_streq(zr_plugin_name(p->item[i]), name))
            return true;
    return false;
}

void zr_plugin_options_warn(zarr_context *ctx)
{
    const struct zr_json *root = ctx->plugins.options.doc.root;

    zr_mutex_lock(&ctx->plugins.list_mutex);
    for (const struct zr_json *v = root ? root->u.children.first : NULL; v; v = v->next)
        if (!plugin_is_loaded(&ctx->plugins, v->key))
            zr_log(&ctx->log, ZARR_LOG_WARN,
                   "plugin_options: plug-in \"%s\" is not loaded", v->key);
    zr_mutex_unlock(&ctx->plugins.list_mutex);
}

/* ---- what a plug-in asks ---------------------------------------------------------- */

static const struct zr_json *option_find(zarr_context *ctx, const char *name)
{
    struct zr_plugins *p = &ctx->plugins;
    const struct zr_json *v = NULL;
    size_t i = 0;

    if (!atomic_load(&p->loading) || !p->options.mine) /* only in load() */
        return NULL;
    for (v = p->options.mine->u.children.first; v && !zr_streq(v->key, name);
         v = v->next, i++)
        ;
    if (v)
        p->options.asked[i] = true;
    return v;
}

/* Notes that an option has another type. */
static int check_option(zarr_context *ctx, const struct zr_json *v, bool good)
{
    if (v && !good)
        ctx->plugins.options.wrong = v->key;
    return v && good;
}

int zr_plugin_option_i64(zarr_context *ctx, const char *name, int64_t *out)
{
    const struct zr_json *v = option_find(ctx, name);

    return check_option(ctx, v, v && zr_json_i64(v, out));
}

int zr_plugin_option_f64(zarr_context *ctx, const char *name, double *out)
{
    const struct zr_json *v = option_find(ctx, name);

    return check_option(ctx, v, v && zr_json_f64(v, out));
}

int zr_plugin_option_bool(zarr_context *ctx, const char *name, int *out)
{
    const struct zr_json *v = option_find(ctx, name);
    bool given = false;

    if (!check_option(ctx, v, v && zr_json_bool(v, &given)))
        return 0;
    *out = given;
    return 1;
}

const char *zr_plugin_option_text(zarr_context *ctx, const char *name)
{
    const struct zr_json *v = option_find(ctx, name);
    const char *text = v ? zr_json_string(v) : NULL;

    (void)check_option(ctx, v, text != NULL);
    return text;
}
