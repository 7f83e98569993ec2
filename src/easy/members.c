/*
 * easy/members.c - the members of a group as a list, which a walk through the group
 * fills.
 * Thread class: plain functions; a list is frozen.
 */
#include "easy/easy_int.h"

#include <string.h>

struct members_block {
    zarr_members members; /* first: the caller has its address */
    zarr_context *ctx;    /* counted: it has the allocator */
    struct zr_arena arena;
    const zarr_node_item **node;
    size_t cap;
    int32_t max_depth;
    zarr_status st; /* of add_member() */
};

void zarr_members_free(zarr_members *members)
{
    struct members_block *b = (struct members_block *)(void *)members;
    zarr_context *ctx;

    if (!b)
        return;
    ctx = b->ctx;
    zr_arena_deinit(&b->arena);
    zr_free(ctx->alloc, b->node);
    zr_free(ctx->alloc, b);
    zarr_context_free(ctx);
}

/* Returns false if there is no memory. */
static bool copy_text(struct members_block *b, const char **out, const char *text)
{
    *out = text ? zr_arena_strndup(&b->arena, text, strlen(text)) : NULL;
    return *out || !text;
}

static int add_member(void *user, const zarr_node_item *item)
{
    struct members_block *b = user;
    const size_t n = (size_t)b->members.n;
    zarr_node_item *node = zr_arena_alloc(&b->arena, sizeof *node);

    b->st = ZARR_ERR_NO_MEMORY;
    if (!node || !copy_text(b, &node->path, item->path) ||
        !copy_text(b, &node->metadata, item->metadata))
        return ZARR_WALK_STOP;
    b->st = zr_grow(b->ctx->alloc, &b->node, &b->cap, n + 1, sizeof(void *), NULL);
    if (b->st != ZARR_OK)
        return ZARR_WALK_STOP;
    node->struct_size = sizeof *node;
    node->kind = item->kind;
    node->zarr_format = item->zarr_format;
    node->depth = item->depth;
    node->name = node->path + (item->name - item->path);
    b->node[b->members.n++] = node;
    return item->depth == b->max_depth ? ZARR_WALK_SKIP : ZARR_WALK_GO_ON;
}

zarr_status zarr_group_list_members_with(zarr_members **out, zarr_group *group,
                                         int32_t max_depth, const zarr_list_options *opts,
                                         zarr_error *err)
{
    struct members_block *b = NULL;
    zarr_context *ctx;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(group, err);
    if (max_depth < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "max_depth is negative");
    ctx = zr_store_context(zarr_group_store(group));
    b = zr_calloc(ctx->alloc, 1, sizeof *b);
    if (!b)
        return zr_fail_memory(err, sizeof *b);
    b->ctx = zarr_context_ref(ctx);
    b->max_depth = max_depth;
    b->members.struct_size = sizeof b->members;
    zr_arena_init(&b->arena, ctx->alloc);
    ZR_TRY(zarr_group_walk(group, add_member, b, opts, err));
    if (b->st != ZARR_OK)
        ZR_FAIL_MEMORY(err, b->arena.used_bytes);
    b->members.node = b->node;
    *out = &b->members;
    b = NULL; /* moved */
out:
    zarr_members_free(b ? &b->members : NULL);
    return st;
}

zarr_status zarr_group_list_members(zarr_members **out, zarr_group *group,
                                    int32_t max_depth, zarr_error *err)
{
    return zarr_group_list_members_with(out, group, max_depth, NULL, err);
}
