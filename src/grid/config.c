/*
 * grid/config.c - configuration text for the vtables of this room. A vtable gets JSON
 * text, because the tree cannot cross a plug-in border, and writes canonical text to a
 * block of the caller, as snprintf does.
 * Thread class: plain functions.
 */
#include "grid/config_int.h"
#include "grid/grid_int.h"

#include <string.h>

static bool is_known(const struct zr_json *m, const char *const *members)
{
    for (; *members; members++)
        if (zr_json_has_key(m, *members))
            return true;
    return false;
}

zarr_status zr_config_check(const struct zr_json *config, const char *what,
                            const char *member, zarr_error *err)
{
    const char *const members[] = {member, NULL};

    return zr_config_check_members(config, what, members, err);
}

zarr_status zr_config_check_members(const struct zr_json *config, const char *what,
                                    const char *const *members, zarr_error *err)
{
    if (!config)
        return ZARR_OK;
    if (!zr_json_is(config, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: configuration is a %s, must be an object", what,
                       zr_json_type_text(config));
    for (const struct zr_json *m = config->u.children.first; m; m = m->next) {
        if (is_known(m, members))
            continue;
        if (!zr_refusal_find(zr_grid_refused, "member", m->key))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: unknown member \"%s\"", what,
                           m->key);
        return zr_prefix(err, zr_fail_refused(err, zr_grid_refused, "member", m->key),
                         "%s", what);
    }
    return ZARR_OK;
}

zarr_status zr_config_parse(struct zr_json_doc *doc, const char *json, zarr_error *err)
{
    zarr_limits limits;

    zr_limits_default(&limits);
    return zr_json_parse(doc, json, strlen(json), &limits, err);
}

zarr_status zr_config_text(const struct zr_json *config, struct zr_str *out,
                           zarr_error *err)
{
    if (config)
        zr_json_write(config, 0, out);
    else
        zr_str_puts(out, "{}");
    return zr_str_status(out, err);
}

zarr_status zr_config_give(const struct zr_str *s, char *text, size_t cap,
                           size_t *text_bytes, zarr_error *err)
{
    zarr_status st = zr_str_status(s, err);

    if (st != ZARR_OK)
        return st;
    *text_bytes = s->bytes;
    if (cap > 0) {
        size_t n = ZR_MIN(s->bytes, cap - 1);
        memcpy(text, zr_str_text(s), n);
        text[n] = '\0';
    }
    return ZARR_OK;
}

zarr_status zr_config_take(const void *self, zr_canonical_fn canonical,
                           struct zr_str *out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    size_t bytes = 0;
    char *text = NULL;

    ZR_TRY(canonical(self, NULL, 0, &bytes, err));
    if (bytes == SIZE_MAX || !(text = zr_malloc(out->alloc, bytes + 1)))
        ZR_FAIL_MEMORY(err, bytes);
    ZR_TRY(canonical(self, text, bytes + 1, &bytes, err));
    zr_str_append(out, text, strnlen(text, bytes));
    st = zr_str_status(out, err);
out:
    zr_free(out->alloc, text);
    return st;
}
