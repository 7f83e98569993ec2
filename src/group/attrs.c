/*
 * group/attrs.c - attributes of a group. Reads use the handle's state, without the store.
 * Changes go through node/attrs.c. A group that was opened through consolidated metadata
 * still uses it for its children afterwards.
 * Thread class: changes may run from many threads.
 */
#include "group/group_int.h"

#include <string.h>

struct group_changing {
    zarr_group *group;
    const zarr_cancel *cancel;
    struct zr_group_state *before, *after;
};

static zarr_status state_with_attributes(struct group_changing *c,
                                         struct zr_parsed *parsed, zarr_error *err)
{
    const struct zr_meta_env env = zr_meta_env_make(c->group->h.ctx, true);
    struct zr_group_state *b = c->before, *a = NULL;
    zarr_status st = ZARR_OK;

    if (b->format == 3) {
        ZR_TRY(zr_group_state_new(&a, &env, 3, parsed, parsed->json.root, err));
    } else {
        ZR_TRY(zr_group_state_new(&a, &env, 2, b->parsed, b->root, err));
        zr_group_state_attrs(a, parsed, parsed->json.root);
    }
    if (b->cons && (b->format == 2 || *b->prefix)) { /* cons is in another document */
        zr_free(a->alloc, a->prefix);
        a->prefix = zr_strdup(a->alloc, b->prefix);
        if (!a->prefix)
            ZR_FAIL_MEMORY(err, strlen(b->prefix));
        a->cons = zr_consolidated_ref(b->cons);
    } else if (b->cons) {
        ZR_TRY(zr_group_find_consolidated(a, c->group, NULL, err));
    }
    zr_group_state_free(c->after);
    c->after = a; /* moved */
    a = NULL;
out:
    zr_group_state_free(a);
    return st;
}

/* v2: .zattrs may be new, so only .zgroup shows that there is a group. A group in
 * consolidated metadata may have no .zgroup. */
static zarr_status check_document(const struct group_changing *c, zarr_error *err)
{
    bool there = true;
    zarr_status st = ZARR_OK;

    if (c->before->format == 2 && !c->before->cons)
        st = zr_doc_is_there(c->group->h.store, c->group->h.path, ZR_DOC_GROUP, &there,
                             c->cancel, err);
    if (st == ZARR_OK && !there)
        st = zr_fail(
            err, ZARR_ERR_NOT_FOUND,
            ZR_DOC_GROUP
            " no longer exists: the group was moved or deleted after it was opened");
    return st;
}

static zarr_status check_group_change(void *arg, struct zr_parsed *parsed,
                                      zarr_error *err)
{
    struct group_changing *c = arg;
    zarr_status st = check_document(c, err);

    if (st != ZARR_OK)
        return st;
    if (c->before->format == 3 &&
        !zr_json_is_text(zr_json_get(parsed->json.root, "node_type"), "group"))
        return zr_fail(err, ZARR_ERR_CONFLICT, "it is no longer a group");
    return state_with_attributes(c, parsed, err);
}

/* Everything that this handle changes is in this document, so the state written last is
 * the current one. */
static zarr_status commit_group_change(void *arg, zarr_error *err)
{
    struct group_changing *c = arg;

    ZR_UNUSED(err);
    zr_group_state_swap(c->group, c->after);
    c->after = NULL; /* moved */
    return ZARR_OK;
}

static zarr_status change_group(zarr_group *group, struct zr_attrs_change *change,
                                zarr_error *err)
{
    struct group_changing c = {
        .group = group, .cancel = change->cancel, .before = zr_group_state_get(group)};
    zarr_status st = ZARR_OK;

    change->format = c.before->format;
    change->large = change->format == 3; /* zarr.json may contain consolidated metadata */
    change->check = check_group_change;
    change->commit = commit_group_change;
    change->arg = &c;
    st = zr_attrs_change(group->h.store, group->h.path, change, err);
    zr_path_prefix(err, st, group->h.path);
    zr_group_state_free(c.after);
    zr_group_state_free(c.before);
    return st;
}

zarr_status zarr_group_attribute_get(const zarr_group *group, const char *name,
                                     char *text, size_t cap, size_t *text_bytes,
                                     zarr_error *err)
{
    ZR_NEED(group, err);
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_group_state *s = zr_group_state_get(group);
    const zarr_status st = zr_attrs_get(s->attrs, name, &to, s->alloc, err);

    zr_group_state_free(s);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, group->h.path);
}

zarr_status zarr_group_attribute_set(zarr_group *group, const char *name,
                                     const char *json, const zarr_cancel *cancel,
                                     zarr_error *err)
{
    struct zr_attrs_change c = {
        .verb = ZR_ATTRS_SET, .name = name, .json = json, .cancel = cancel};

    ZR_NEED(group, err);
    return change_group(group, &c, err);
}

zarr_status zarr_group_attribute_delete(zarr_group *group, const char *name,
                                        const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_attrs_change c = {.verb = ZR_ATTRS_DELETE, .name = name, .cancel = cancel};

    ZR_NEED(group, err);
    return change_group(group, &c, err);
}

zarr_status zarr_group_attributes_merge(zarr_group *group, const char *json_object,
                                        int replace_all, const zarr_cancel *cancel,
                                        zarr_error *err)
{
    struct zr_attrs_change c = {.verb = replace_all ? ZR_ATTRS_REPLACE : ZR_ATTRS_MERGE,
                                .json = json_object,
                                .cancel = cancel};

    ZR_NEED(group, err);
    return change_group(group, &c, err);
}
