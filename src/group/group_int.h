/*
 * group/group_int.h - what the files of this room share. A handle (zarr_group) has a
 * frozen, counted *state* made from documents. A change makes a new state and swaps it
 * in.
 */
#ifndef ZR_GROUP_INT_H
#define ZR_GROUP_INT_H

#include "ctx/ctx.h"
#include "group/group.h"

struct zr_group_state {
    atomic_uint refs;
    int32_t format;
    struct zr_parsed *parsed, *attrs_parsed; /* counted; attrs_parsed: v2 */
    const struct zr_json *root, *attrs;      /* attrs may be NULL */
    struct zr_consolidated *cons; /* counted; NULL: children are looked up in the store */
    char *prefix;                 /* path of this group inside cons */
    const char *document,
        *attributes; /* borrowed from the handle, under its mutex; NULL: not made yet */
    const zarr_allocator *alloc;
};
struct zarr_group {
    struct zr_handle h;
    struct zr_group_state *state; /* under h.mutex */
    uint32_t consolidated;        /* ZARR_CONSOLIDATED_* */
    char *consolidated_key;       /* v2 */
};
/* Makes a state from a document and takes references. zr_group_state_attrs() adds v2
 * attributes. */
zarr_status zr_group_state_new(struct zr_group_state **out, const struct zr_meta_env *env,
                               int32_t format, struct zr_parsed *parsed,
                               const struct zr_json *root, zarr_error *err);
void zr_group_state_attrs(struct zr_group_state *s, struct zr_parsed *attrs_parsed,
                          const struct zr_json *attrs);
/* Sets s->cons as the group's opener wanted it. found: of a v2 group. */
zarr_status zr_group_find_consolidated(struct zr_group_state *s, const zarr_group *g,
                                       struct zr_found *found, zarr_error *err);
void zr_group_state_swap(zarr_group *group, struct zr_group_state *s); /* s is moved */
/* Returns the current state, counted. */
struct zr_group_state *zr_group_state_get(const zarr_group *group);
void zr_group_state_free(struct zr_group_state *s);

#endif
