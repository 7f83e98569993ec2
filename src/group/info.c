/*
 * group/info.c - plain getters of a group. They return NULL for a text if memory is out.
 * Thread class: as the handle.
 */
#include "group/group_int.h"

int32_t zarr_group_zarr_format(const zarr_group *group)
{
    if (!group)
        return 0;
    struct zr_group_state *s = zr_group_state_get(group);
    const int32_t format = s->format;

    zr_group_state_free(s);
    return format;
}

const char *zarr_group_path(const zarr_group *group)
{
    return group ? group->h.path : NULL;
}

struct zr_consolidated *zr_group_consolidated(const zarr_group *group)
{
    struct zr_group_state *s = zr_group_state_get(group);
    struct zr_consolidated *cons = zr_consolidated_ref(s->cons);

    zr_group_state_free(s);
    return cons;
}

int zarr_group_is_consolidated(const zarr_group *group)
{
    if (!group)
        return 0;
    struct zr_group_state *s = zr_group_state_get(group);
    const int is = s->cons != NULL;

    zr_group_state_free(s);
    return is;
}

const char *zarr_group_metadata(const zarr_group *group)
{
    if (!group)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&group->h;
    struct zr_group_state *s = zr_group_state_get(group);
    const char *text = zr_handle_json(h, &s->document, s->root, ZR_META_INDENT);

    zr_group_state_free(s);
    return text;
}

const char *zarr_group_attributes(const zarr_group *group)
{
    if (!group)
        return NULL;
    struct zr_handle *h = (struct zr_handle *)(uintptr_t)&group->h;
    struct zr_group_state *s = zr_group_state_get(group);
    const char *text = zr_handle_json(h, &s->attributes, s->attrs, ZR_META_INDENT);

    zr_group_state_free(s);
    return text;
}

zarr_store *zarr_group_store(const zarr_group *group)
{
    return group ? group->h.store : NULL;
}
