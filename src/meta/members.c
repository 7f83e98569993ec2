/*
 * meta/members.c - members of an array's or a group's document that its format does not
 * know. They are kept, because other programs wrote them.
 * Thread class: pure.
 */
#include "meta_int.h"

static bool is_known_in(const struct zr_json *v, int32_t format, bool array)
{
    if (array)
        return zr_meta_is_known(v,
                                format == 3 ? zr_array_v3_members : zr_array_v2_members);
    return zr_meta_is_known(v, format == 3 ? zr_group_v3_members : zr_group_v2_members);
}

const struct zr_json *zr_meta_other_member(const struct zr_json *root, int32_t format,
                                           bool array)
{
    const struct zr_json *v = root->u.children.first;

    while (v && is_known_in(v, format, array))
        v = v->next;
    return v;
}

void zr_meta_carry(struct zr_json_doc *doc, struct zr_json *to,
                   const struct zr_json *from, bool array)
{
    if (!zr_json_is(from, ZR_JSON_OBJECT))
        return;
    for (const struct zr_json *v = from->u.children.first; v; v = v->next)
        if (!is_known_in(v, 3, array) && !is_known_in(v, 2, array))
            zr_json_add(doc, to, v->key, v->key_bytes, zr_json_copy(doc, v));
}
