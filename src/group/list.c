/*
 * group/list.c - lists direct children, and walks everything below a group: parents
 * before children, siblings by name. Without consolidated metadata the walk lists group
 * by group and keeps one listing per level on a stack of its own. With it, the walk
 * passes through one sorted table. So does the walk of a store that cannot list, with the
 * table of the nearest group that has one. A node with a broken document is reported with
 * kind NONE, and the walk goes on. With ZARR_MEMBERS_GO_ON it goes on past what may not
 * be read, too. A prefix without a document is not a node, and the walk does not look
 * below it. Thread class: plain functions; the caller's function runs on this thread.
 */
#include "group/group_int.h"

#include <string.h>

struct walk_call {
    const zarr_group *group;
    struct zr_group_state *state; /* counted */
    zarr_node_fn fn;
    void *user;
    bool deep, go_on;
    const zarr_cancel *cancel;
    int answer; /* what fn returned last */
    struct zr_str path, text;
};

static void walk_emit(struct walk_call *c, zarr_node_item *item)
{
    item->struct_size = sizeof *item;
    item->path = zr_str_text(&c->path);
    item->name = zr_path_name(item->path);
    c->answer = c->fn(c->user, item);
}

/* Whether the caller ended the walk. */
static bool walk_stopped(const struct walk_call *c)
{
    return c->answer != ZARR_WALK_GO_ON && !(c->deep && c->answer == ZARR_WALK_SKIP);
}

/* ---- consolidated ------------------------------------------------------- */

static zarr_status emit_entry(struct walk_call *c, const struct zr_entry *e,
                              const char *rest, zarr_error *err)
{
    zarr_node_item item = {
        .kind = e->kind, .zarr_format = e->format, .depth = (int32_t)zr_path_depth(rest)};

    (void)zr_path_key(&c->path, c->group->h.path, rest, NULL);
    zr_str_clear(&c->text);
    zr_json_write(e->doc, ZR_META_INDENT, &c->text);
    ZR_CHECK(zr_str_status(&c->path, err));
    ZR_CHECK(zr_str_status(&c->text, err));
    item.metadata = zr_str_text(&c->text);
    walk_emit(c, &item);
    return ZARR_OK;
}

static zarr_status walk_entries(struct walk_call *c, zarr_error *err)
{
    const struct zr_consolidated *cons = c->state->cons;
    const char *prefix = c->state->prefix, *skipped = NULL;
    const size_t skip = *prefix ? strlen(prefix) + 1 : 0;

    for (size_t i = *prefix ? zr_consolidated_seek(cons, prefix) : 0; i < cons->n; i++) {
        const struct zr_entry *e = &cons->entry[i];

        if (zr_streq(e->path, prefix))
            continue;
        if (!zr_key_is_below(e->path, prefix))
            break;
        if (!c->deep && strchr(e->path + skip, '/'))
            continue;
        if (skipped && zr_key_is_below(e->path, skipped))
            continue;
        ZR_CHECK(zr_cancel_check(c->cancel, err));
        ZR_CHECK(emit_entry(c, e, e->path + skip, err));
        if (walk_stopped(c))
            break;
        skipped = c->answer == ZARR_WALK_SKIP ? e->path : NULL;
    }
    return ZARR_OK;
}

/* ---- in the store ------------------------------------------------------- */

struct walk_stack {
    struct zr_children *level;
    size_t n, cap;
    struct zr_seen seen;
    const zarr_allocator *alloc;
};

static zarr_status walk_push(struct walk_stack *s, zarr_store *store, const char *path,
                             int32_t first, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_grow(s->alloc, &s->level, &s->cap, s->n + 1, sizeof *s->level, err));
    st = zr_children_open(&s->level[s->n++], store, path, first, &s->seen, err);
    zr_path_prefix(err, st, path);
out:
    return st;
}

static zarr_status emit_child(struct walk_call *c, const struct zr_children *level,
                              const struct zr_child *child, size_t depth, zarr_error *err)
{
    zarr_node_item item = {
        .kind = child->found.kind,
        .zarr_format = child->found.format,
        .depth = (int32_t)depth,
        .metadata = child->found.doc.text,
    };

    ZR_CHECK(zr_path_key(&c->path, level->path, child->name, err));
    if (child->st != ZARR_OK) {
        item.kind = ZARR_NODE_NONE;
        zr_log(&c->group->h.ctx->log, ZARR_LOG_WARN, "%s", child->err.message);
    }
    walk_emit(c, &item);
    return ZARR_OK;
}

/* Enters the group that was told last. If its members may not be listed, tells it again,
 * as broken. */
static zarr_status enter_child(struct walk_call *c, struct walk_stack *s, int32_t format,
                               zarr_error *err)
{
    zarr_node_item item = {.zarr_format = format, .depth = (int32_t)s->n};
    zarr_error why = {0};
    const zarr_status st =
        walk_push(s, c->group->h.store, zr_str_text(&c->path), format, &why);

    if (st == ZARR_OK || !c->go_on || !zr_store_blames_object(st, &why))
        return zr_pass(err, st, &why);
    zr_children_close(&s->level[--s->n]);
    zr_log(&c->group->h.ctx->log, ZARR_LOG_WARN, "%s", why.message);
    walk_emit(c, &item);
    return ZARR_OK;
}

static zarr_status walk_store(struct walk_call *c, zarr_error *err)
{
    struct walk_stack s = {.seen.cancel = c->cancel,
                           .seen.go_on = c->go_on,
                           .alloc = c->group->h.ctx->alloc};
    zarr_status st = ZARR_OK;

    ZR_TRY(walk_push(&s, c->group->h.store, c->group->h.path, c->state->format, err));
    while (s.n > 0) {
        struct zr_children *level = &s.level[s.n - 1];
        const struct zr_child *child = NULL;

        ZR_TRY(zr_cancel_check(c->cancel, err));
        ZR_TRY(zr_children_next(level, &child, err));
        if (!child) {
            zr_children_close(level);
            s.n--;
            continue;
        }
        ZR_TRY(emit_child(c, level, child, s.n, err));
        if (c->deep && c->answer == ZARR_WALK_GO_ON && child->st == ZARR_OK &&
            child->found.kind == ZARR_NODE_GROUP)
            ZR_TRY(enter_child(c, &s, child->found.format, err));
        if (walk_stopped(c))
            break;
    }
out:
    while (s.n > 0)
        zr_children_close(&s.level[--s.n]);
    zr_free(s.alloc, s.level);
    return st;
}

/* Finds the nearest group, at or above this one, whose consolidated metadata names it,
 * and walks by that. *found false: there is none. */
static zarr_status walk_without_listing(struct walk_call *c, bool *found, zarr_error *err)
{
    const zarr_group_open_options opts = {.struct_size = sizeof opts,
                                          .consolidated = ZARR_CONSOLIDATED_MUST,
                                          .cancel = c->cancel};
    const char *full = c->group->h.path;
    zarr_group *above = NULL, *here = NULL;
    zarr_status st = ZARR_OK;

    for (size_t n = strlen(full);; n = zr_path_parent_bytes(c->path.ptr)) {
        zr_str_clear(&c->path);
        zr_str_append(&c->path, full, n);
        ZR_TRY(zr_str_status(&c->path, err));
        if (zarr_group_open(&above, c->group->h.store, zr_str_text(&c->path), &opts,
                            NULL) == ZARR_OK ||
            n == 0)
            break;
    }
    *found = above && zarr_group_open_group(&here, above, full + c->path.bytes, &opts,
                                            NULL) == ZARR_OK;
    if (!*found)
        goto out;
    zr_group_state_free(c->state);
    c->state = zr_group_state_get(here);
    st = walk_entries(c, err);
out:
    zarr_group_free(here);
    zarr_group_free(above);
    return st;
}

/* Asks the store, or the consolidated metadata if the store cannot list. A store that
 * listed some groups has told nodes already, so there the walk fails. */
static zarr_status walk_nodes(struct walk_call *c, zarr_error *err)
{
    zarr_error why = {0};
    bool found = false;
    const zarr_status st = walk_store(c, &why);

    if (st == ZARR_ERR_UNSUPPORTED && c->path.bytes == 0) {
        const zarr_status then = walk_without_listing(c, &found, err);

        if (found || then != ZARR_OK)
            return then;
    }
    return zr_pass(err, st, &why);
}

static zarr_status list_options_read(zarr_list_options *o, const zarr_list_options *opts,
                                     zarr_error *err)
{
    zarr_status st = zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts,
                                    ZR_TAIL_REFUSE, "zarr_list_options", err);

    return st == ZARR_OK
               ? zr_flags_check(o->flags, ZARR_MEMBERS_GO_ON, "list options", err)
               : st;
}

static zarr_status walk_group(struct walk_call *call, const zarr_list_options *opts,
                              zarr_error *err)
{
    struct walk_call c = *call;
    zarr_list_options o;
    zarr_status st = list_options_read(&o, opts, err);

    if (st != ZARR_OK)
        return st;
    c.cancel = o.cancel;
    c.go_on = o.flags & ZARR_MEMBERS_GO_ON;
    zr_str_init(&c.path, c.group->h.ctx->alloc);
    zr_str_init(&c.text, c.group->h.ctx->alloc);
    c.state = zr_group_state_get(c.group);
    st = c.state->cons ? walk_entries(&c, err) : walk_nodes(&c, err);
    zr_group_state_free(c.state);
    zr_str_deinit(&c.path);
    zr_str_deinit(&c.text);
    return st;
}

zarr_status zarr_group_list(zarr_group *group, zarr_node_fn fn, void *user,
                            const zarr_list_options *opts, zarr_error *err)
{
    ZR_NEED(group, err);
    struct walk_call c = {.group = group, .fn = fn, .user = user};

    return walk_group(&c, opts, err);
}

zarr_status zarr_group_walk(zarr_group *group, zarr_node_fn fn, void *user,
                            const zarr_list_options *opts, zarr_error *err)
{
    ZR_NEED(group, err);
    struct walk_call c = {.group = group, .fn = fn, .user = user, .deep = true};

    return walk_group(&c, opts, err);
}
