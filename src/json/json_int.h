/*
 * json/json_int.h - what the files of this room share: nodes from slabs, the check that
 * an object's keys differ, and the state of a parse. Not for other rooms.
 */
#ifndef ZR_JSON_INT_H
#define ZR_JSON_INT_H

#include "json/json.h"

#include <stdalign.h>
#include <stddef.h>

/* Makes a zeroed node of this document. NULL: no memory, and doc->failed is set. */
struct zr_json *zr_json_node(struct zr_json_doc *doc);

static inline void zr_json_link(struct zr_json *around, struct zr_json *v)
{
    if (around->u.children.last)
        around->u.children.last->next = v;
    else
        around->u.children.first = v;
    around->u.children.last = v;
    around->u.children.n++;
}

/* Scratch for one parse: a hash set of key nodes, made when it is first needed. */
struct zr_json_keys {
    const struct zr_json **slots;
    size_t cap; /* slots, a power of two */
    const zarr_allocator *alloc;
};

/* The stack of a walk through a tree: `width` bytes a level. The first levels are inside,
 * deeper ones come from the allocator. */
struct zr_json_stack {
    const zarr_allocator *alloc;
    size_t width, depth, cap;
    void *big; /* NULL: the levels are in `small` */
    alignas(max_align_t) unsigned char small[1024];
};
void zr_json_stack_init(struct zr_json_stack *s, size_t width,
                        const zarr_allocator *alloc);
void zr_json_stack_deinit(struct zr_json_stack *s);
/* Returns a new level on top, or NULL without memory. Moves the levels: use addresses of
 * levels only until the next push. */
void *zr_json_stack_push(struct zr_json_stack *s);
/* The level on top; s->depth > 0. */
static inline void *zr_json_stack_top(struct zr_json_stack *s)
{
    return (s->big ? (unsigned char *)s->big : s->small) + (s->depth - 1) * s->width;
}

/* One parse. */
struct zr_json_parser {
    char *base, *p, *end;
    char *number_end; /* where a NUL must be written after the delimiter there is read */
    struct zr_json_doc *doc;
    struct zr_json *open; /* innermost open container */
    uint64_t depth, max_depth, n_values, max_values;
    size_t max_string;
    struct zr_json_keys keys;
    zarr_error *err;
};

static inline uint64_t zr_json_position(const struct zr_json_parser *ps, const char *at)
{
    return (uint64_t)(at - ps->base);
}

/* Reads a string. ps->p is after its opening quote on entry, and after the closing one on
 * return. */
zarr_status zr_json_read_string(struct zr_json_parser *ps, const char **text,
                                size_t *bytes);

#endif
