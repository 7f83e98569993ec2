/*
 * array/handle/attrs.c - attributes of an array. Reads use the handle's state, without
 * the store. Changes go through node/attrs.c; afterwards the handle has the document as
 * written, including what others changed in it.
 * Thread class: changes may run from many threads.
 */
#include "array/array_int.h"

struct array_changing {
    zarr_array *array;
    const zarr_cancel *cancel;
    struct zr_array_state *before, *after;
};

/* The new document must still describe an array that can be opened. */
static zarr_status check_array_change(void *arg, struct zr_parsed *parsed,
                                      zarr_error *err)
{
    struct array_changing *c = arg;
    const int32_t format = c->before->meta.format;
    struct zr_array_source src = zr_array_source_make(format, parsed, NULL, NULL);

    zr_array_state_free(c->after); /* of an attempt that met a conflict */
    c->after = NULL;
    if (format == 2) {
        src = zr_array_source_make(format, c->before->parsed, parsed, &c->before->meta);
        src.root = c->before->root;
        /* .zattrs may be new, so only .zarray shows that there is an array */
        ZR_CHECK(zr_array_recheck(c->array, c->before, c->cancel, err));
    } else if (!zr_json_is_text(zr_json_get(src.root, "node_type"), "array")) {
        return zr_fail(err, ZARR_ERR_CONFLICT, "it is no longer an array");
    }
    ZR_CHECK(zr_array_state_new(&c->after, c->array->h.ctx, &src, err));
    return zr_separator_inherit(c->array, c->before, c->after, err);
}

static zarr_status commit_array_change(void *arg, zarr_error *err)
{
    struct array_changing *c = arg;

    return zr_array_state_commit(c->array, c->before, c->after, ZR_STATE_ATTRS, err);
}

static zarr_status change_array(zarr_array *array, struct zr_attrs_change *change,
                                zarr_error *err)
{
    struct array_changing c = {
        .array = array, .cancel = change->cancel, .before = zr_array_state_get(array)};
    zarr_status st = zr_array_may_change(array, err);

    change->format = c.before->meta.format;
    change->check = check_array_change;
    change->commit = commit_array_change;
    change->arg = &c;
    if (st == ZARR_OK)
        st = zr_attrs_change(array->h.store, array->h.path, change, err);
    change->arg = NULL; /* c ends here */
    if (st != ZARR_OK)
        zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(c.after);
    zr_array_state_free(c.before);
    return st;
}

zarr_status zarr_array_attribute_get(const zarr_array *array, const char *name,
                                     char *text, size_t cap, size_t *text_bytes,
                                     zarr_error *err)
{
    ZR_NEED(array, err);
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = zr_attrs_get(s->meta.attributes, name, &to, s->alloc, err);

    zr_array_state_free(s);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, array->h.path);
}

zarr_status zarr_array_attribute_set(zarr_array *array, const char *name,
                                     const char *json, const zarr_cancel *cancel,
                                     zarr_error *err)
{
    struct zr_attrs_change c = {
        .verb = ZR_ATTRS_SET, .name = name, .json = json, .cancel = cancel};

    ZR_NEED(array, err);
    return change_array(array, &c, err);
}

zarr_status zarr_array_attribute_delete(zarr_array *array, const char *name,
                                        const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_attrs_change c = {.verb = ZR_ATTRS_DELETE, .name = name, .cancel = cancel};

    ZR_NEED(array, err);
    return change_array(array, &c, err);
}

zarr_status zarr_array_attributes_merge(zarr_array *array, const char *json_object,
                                        int replace_all, const zarr_cancel *cancel,
                                        zarr_error *err)
{
    struct zr_attrs_change c = {.verb = replace_all ? ZR_ATTRS_REPLACE : ZR_ATTRS_MERGE,
                                .json = json_object,
                                .cancel = cancel};

    ZR_NEED(array, err);
    return change_array(array, &c, err);
}
