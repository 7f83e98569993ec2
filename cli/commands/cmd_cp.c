/*
 * commands/cmd_cp.c - zarrc cp and zarrc mv. cp copies a node with everything below it,
 * byte for byte, between any two stores. Chunks are copied first and the node's own
 * metadata last, so that an interrupted copy is not yet a node. --resume continues it.
 * --verify reads both sides again and compares their bytes. mv renames a node, or copies
 * it and then deletes the source, which stays complete until every byte is at the
 * destination and flushed; the library does both (zarr_node_move).
 */
#include "node/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The options of cp and mv on what is at the destination. */
#define COPY_OPTIONS(complete)                                                           \
    {"force", 'f', 0, NULL, NULL, "delete the node at DESTINATION first"},               \
        CLI_RESUME_OPTION(complete),                                                     \
    {                                                                                    \
        "skip-equal", 0, 0, NULL, NULL,                                                  \
            "as --resume: skip objects that DESTINATION already has with equal bytes; "  \
            "with --force, replace different objects and delete extra ones"              \
    }

struct copying {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_objects total;
    struct cli_progress progress;
    uint64_t objects, bytes;
    uint64_t objects_skipped, bytes_skipped; /* they were there */
};

static void tell_progress(void *user, uint64_t objects, uint64_t bytes)
{
    struct copying *c = user;

    c->objects = objects;
    c->bytes = bytes;
    cli_progress_update(&c->progress, bytes, objects);
}

/* ---- the destination ---- */

/* Whether cp and mv keep what is equal at the destination: --resume or --skip-equal. */
static bool skips_equal(const struct cli *cli)
{
    return cli_flag(cli, "resume") || cli_flag(cli, "skip-equal");
}

/* Whether a missing destination may be made. An interrupted copy may be continued or
 * replaced. */
static int require_copyable(struct cli *cli, const struct cli_node *src,
                            const struct cli_node *dst)
{
    const bool force = cli_flag(cli, "force"), skip = skips_equal(cli);
    struct cli_job job;
    char *name;
    bool same;
    int rc = CLI_OK;

    if (!cli_node_is_missing(dst))
        return CLI_OK;
    if (!cli_job_read(dst->store, dst->path, &job))
        return force || !skip ? cli_require_empty(cli, dst) : CLI_OK;
    name = cli_job_name(src);
    same = strcmp(job.command, cli->command->name) == 0 && job.source &&
           strcmp(job.source, name) == 0;
    if (!force && skip && !same)
        rc = cli_error(cli, CLI_EXISTS,
                       "--skip-equal --force replaces it: what differs is replaced, and "
                       "what SOURCE does not have is deleted.",
                       "the interrupted %s at %s is of another source or command%s%s%s",
                       job.command, dst->shown, job.source ? " (" : "",
                       job.source ? job.source : "", job.source ? ")" : "");
    else if (!force && !skip)
        rc = cli_job_error(cli, CLI_EXISTS, &job, dst->shown);
    free(name);
    cli_job_free(&job);
    return rc;
}

/* ---- the transfer ---- */

/* "; skipped 3 objects that were there", or "" for none. Owned. */
static char *skipped_text(uint64_t n_objects)
{
    return n_objects
               ? cli_format("; skipped %" PRIu64 " object%s that %s there", n_objects,
                            cli_plural(n_objects), n_objects == 1 ? "was" : "were")
               : cli_strdup("");
}

/* The last step of a move deletes the node before what is below it, and another program
 * may have moved the source away. */
static bool still_has_node(const struct cli_node *node)
{
    int32_t format;

    cli_kind_at(node->store, node->path, &format);
    return format > 0;
}

/* Prints why a copy or move failed, with what helps. */
static int tell_copy_failure(struct cli *cli, zarr_status st, const zarr_error *err,
                             const char *verb, const struct cli_node *src,
                             const struct cli_node *dst)
{
    if (st == ZARR_ERR_EXISTS && skips_equal(cli) && !cli_flag(cli, "force"))
        return cli_error(cli, CLI_EXISTS,
                         "With --force, --skip-equal replaces what differs and deletes "
                         "what SOURCE does not have.",
                         "cannot %s %s to %s: %s", verb, src->shown, dst->shown,
                         err->message);
    if (st == ZARR_ERR_CONFLICT && err->os_code != EBUSY)
        return cli_error(cli, CLI_EXISTS,
                         still_has_node(src)
                             ? "The same command with --skip-equal --force copies what "
                               "differs."
                             : "SOURCE has no node. Compare what it still has "
                               "with DESTINATION before you delete either.",
                         "cannot %s %s to %s: %s", verb, src->shown, dst->shown,
                         err->message);
    return cli_fail(cli, st, err, "cannot %s %s to %s", verb, src->shown, dst->shown);
}

/* Copies with zarr_node_copy(), or moves with zarr_node_move(). */
static zarr_status transfer(struct copying *c, bool moves, zarr_error *err)
{
    struct cli *cli = c->cli;
    const zarr_copy_options opts = {
        .struct_size = sizeof opts,
        .flags = (cli_flag(cli, "force") ? ZARR_COPY_OVERWRITE : 0u) |
                 (skips_equal(cli) ? ZARR_COPY_SKIP_EQUAL : 0u) |
                 (cli_flag(cli, "no-consolidate") ? 0u : ZARR_COPY_CONSOLIDATED),
        .max_threads = cli->max_threads,
        .progress = tell_progress,
        .progress_user = c,
        .cancel = cli_cancel,
        .objects_skipped = &c->objects_skipped,
        .bytes_skipped = &c->bytes_skipped};
    zarr_status st;

    cli_progress_begin(&c->progress, cli, moves ? "move" : "copy", c->total.n_bytes,
                       c->total.n_objects);
    st = (moves ? zarr_node_move : zarr_node_copy)(c->src.store, c->src.path,
                                                   c->dst.store, c->dst.path, &opts, err);
    cli_progress_end(&c->progress, st == ZARR_OK);
    return st;
}

/* The members that the documents of both commands have. */
static void begin_json(const struct copying *c, uint64_t objects, uint64_t bytes)
{
    struct cli_json *j = cli_json(c->cli);

    cli_json_object(j);
    cli_json_text(cli_key(j, "source"), c->src.shown);
    cli_json_text(cli_key(j, "destination"), c->dst.shown);
    cli_json_u64(cli_key(j, "objects"), objects);
    cli_json_u64(cli_key(j, "bytes"), bytes);
    cli_json_u64(cli_key(j, "objects_skipped"), c->objects_skipped);
    cli_json_u64(cli_key(j, "bytes_skipped"), c->bytes_skipped);
}

static int count_source(struct copying *c)
{
    if (!cli_can_list(c->cli, &c->src, "copied"))
        return CLI_OK;
    return cli_objects_count(c->cli, &c->src, ZARR_LIST_RECURSIVE,
                             c->cli->progress != CLI_PROGRESS_NONE, &c->total);
}

static void close_both(struct copying *c, int rc)
{
    if (rc)
        cli_remove_empty_root(&c->dst);
    cli_node_close(&c->src);
    cli_node_close(&c->dst);
}

/* ---- cp --verify ---- */

enum {
    PIECE = 1 << 20
};

/* Compares one object of both sides in pieces. below: its key below both nodes. */
static int compare_object(struct copying *c, const char *below, unsigned char *buffer)
{
    char *key = cli_path_join(c->src.path, below);
    char *other = cli_path_join(c->dst.path, below);
    uint64_t offset = 0, n = PIECE, m = PIECE;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    do {
        n = m = PIECE;
        st = zarr_store_get(c->src.store, key, offset, buffer, &n, cli_cancel, &err);
        if (!st)
            st = zarr_store_get(c->dst.store, other, offset, buffer + PIECE, &m,
                                cli_cancel, &err);
        if (st)
            rc = cli_fail(c->cli, st, &err, "cannot compare %s with %s", key, other);
        else if (n != m || memcmp(buffer, buffer + PIECE, (size_t)n) != 0)
            rc = cli_error(c->cli, CLI_DIFFERENT, NULL, "%s of the copy differs from %s",
                           other, key);
        offset += n;
    } while (!rc && n == PIECE && !cli_is_cancelled());
    c->objects++;
    c->bytes += offset;
    cli_progress_update(&c->progress, c->bytes, c->objects);
    free(key);
    free(other);
    return rc;
}

/* Compares what the source lists; if it cannot, what was copied. */
static int compare_all(struct copying *c)
{
    unsigned char *buffer = cli_alloc((size_t)2 * PIECE);
    const struct cli_node *listed = &c->src;
    struct cli_keys keys = {0};
    zarr_error err = {0};
    zarr_status st = zarr_store_list(c->src.store, c->src.path, ZARR_LIST_RECURSIVE,
                                     cli_keys_add, &keys, cli_cancel, &err);
    int rc = CLI_OK;

    if (st == ZARR_ERR_UNSUPPORTED) {
        listed = &c->dst;
        st = zarr_store_list(listed->store, listed->path, ZARR_LIST_RECURSIVE,
                             cli_keys_add, &keys, cli_cancel, &err);
    }
    c->objects = c->bytes = 0;
    cli_progress_begin(&c->progress, c->cli, "verify", c->total.n_bytes,
                       c->total.n_objects);
    if (st)
        rc = cli_fail(c->cli, st, &err, "cannot list %s", listed->shown);
    for (size_t i = 0; i < keys.n_items && !rc && !cli_is_cancelled(); i++)
        rc = compare_object(c, cli_path_below(keys.items[i], listed->path), buffer);
    if (!rc && cli_is_cancelled())
        rc = cli_fail(c->cli, ZARR_ERR_CANCELLED, NULL, "cannot compare");
    cli_progress_end(&c->progress, rc == CLI_OK);
    cli_keys_free(&keys);
    free(buffer);
    return rc;
}

/* ---- cp ---- */

static void tell_copied(const struct copying *c, uint64_t objects, uint64_t bytes,
                        double s)
{
    const bool verified = cli_flag(c->cli, "verify");
    char size[16], speed[16], *skipped = skipped_text(c->objects_skipped);

    if (c->cli->json) {
        begin_json(c, objects, bytes);
        cli_json_f64(cli_key(cli_json(c->cli), "seconds"), s);
        cli_json_bool(cli_key(cli_json(c->cli), "verified"), verified);
    }
    cli_say(c->cli, "copied %" PRIu64 " object%s, %s, %s/s%s%s", objects,
            cli_plural(objects), cli_bytes_text(bytes, size),
            cli_bytes_text((uint64_t)((double)bytes / (s > 0 ? s : 1e-9)), speed),
            skipped, verified ? "; all bytes compared equal" : "");
    free(skipped);
}

static int copy(struct copying *c)
{
    zarr_error err = {0};
    const zarr_status st = transfer(c, false, &err);

    if (st)
        return tell_copy_failure(c->cli, st, &err, "copy", &c->src, &c->dst);
    return cli_node_flush(c->cli, &c->dst);
}

static int run_cp(struct cli *cli)
{
    struct copying c = {.cli = cli};
    double began = cli_seconds(), took;
    uint64_t objects = 0, bytes = 0;
    int rc = cli_check_resume(cli);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_PROBE, &c.src);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW | CLI_OPEN_PROBE, &c.dst);
    if (!rc)
        rc = cli_share_archive(cli, &c.src, &c.dst);
    if (!rc)
        rc = require_copyable(cli, &c.src, &c.dst);
    if (!rc)
        rc = count_source(&c);
    if (!rc) {
        c.dst.began = cli_copy_may_begin(cli, &c.dst, skips_equal(cli));
        rc = copy(&c);
    }
    took = cli_seconds() - began;
    objects = c.objects - c.objects_skipped;
    bytes = c.bytes - c.bytes_skipped;
    if (!rc && cli_flag(cli, "verify"))
        rc = compare_all(&c);
    if (!rc)
        tell_copied(&c, objects, bytes, took);
    rc = cli_update_after(cli, &c.dst, true, rc);
    close_both(&c, rc);
    return rc;
}

static const struct cli_option cp_options[] = {
    COPY_OPTIONS(CLI_RESUME_DOES_NOTHING),
    {"verify", 0, 0, NULL, NULL, "read both afterwards and compare all bytes"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example cp_examples[] = {
    {"zarrc cp run.zarr/temp backup.zarr/temp", "Copy an array into another hierarchy."},
    {"zarrc cp --resume --verify big.zarr /mnt/big.zarr",
     "Continue an interrupted copy, then compare all bytes."},
    {"until zarrc cp --resume big.zarr /mnt/big.zarr || [ $? -lt 7 ]; do sleep 60; "
     "done",
     "Try again after faults that pass, and after an interruption."},
    {NULL, NULL}};

const struct cli_command cli_cmd_cp = {
    .name = "cp",
    .summary = "copy a node with everything below it",
    .operands = "SOURCE DESTINATION",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Copies an array or a group with everything below it to DESTINATION, byte for "
        "byte, between any two stores. DESTINATION is the name of the copy. It must not "
        "exist yet unless --force, --resume or --skip-equal is given. Missing groups "
        "above it are created. SOURCE and DESTINATION must not be the same location or "
        "inside each other; links in the two paths are resolved for this check, links "
        "below them are not.\n\n"
        "Chunks are copied first and the metadata of the node last: an interrupted copy "
        "is not yet a node, and has an object .zarrc-job. The same command with --resume "
        "continues it. --skip-equal --force also replaces objects that differ and "
        "deletes those that SOURCE does not have. Of two commands with one DESTINATION "
        "the second ends with exit code 7, as long as the first is at work.\n\n"
        "To change chunks, codecs or format while copying, use zarrc reencode.",
    .json = "source, destination: locations. objects, bytes: copied. "
            "objects_skipped, bytes_skipped: found equal. seconds. verified: all bytes "
            "were compared.",
    .options = cp_options,
    .examples = cp_examples,
    .see_also = "zarrc-mv zarrc-reencode zarrc-diff",
    .run = run_cp,
};

/* ---- mv: a move that failed ---- */

static bool both_exist(const struct cli_node *src, const struct cli_node *dst)
{
    const uint32_t kind = cli_kind_at(src->store, src->path, NULL);

    return kind != ZARR_NODE_NONE && kind == cli_kind_at(dst->store, dst->path, NULL);
}

/* The job object at the destination is deleted only after the flush of the copy. */
static bool has_job(const struct cli_node *dst)
{
    struct cli_job job;
    const bool has = cli_job_read(dst->store, dst->path, &job);

    cli_job_free(&job);
    return has;
}

/* The system may report a failed write to the disk only once, and then reads the copy
 * from memory. So --resume would find it equal and delete the source. */
static int not_durable(struct cli *cli, zarr_status st, const zarr_error *err,
                       const struct cli_node *src, const struct cli_node *dst)
{
    char *at = cli_shell_word(dst->shown);
    char *hint = cli_format(
        "SOURCE is complete and unchanged. Do not continue with --resume: it could "
        "delete the only good copy. When the disk works again, the same command with "
        "--force alone copies all of it anew. zarrc rm -r %s removes the copy.",
        at);
    const int rc = cli_tell_failure(
        cli, &(struct cli_failure){.status = st, .error = err, .hint = hint},
        "%s was copied to %s, but the copy may not be on the disk", src->shown,
        dst->shown);

    free(hint);
    free(at);
    return rc;
}

static int tell_move_failure(struct cli *cli, zarr_status st, const zarr_error *err,
                             const struct cli_node *src, const struct cli_node *dst)
{
    const bool is_new = cli_node_is_missing(dst);
    const bool both = st != ZARR_ERR_CONFLICT && both_exist(src, dst);

    if (both && has_job(dst) && (is_new || st == ZARR_ERR_IO || st == ZARR_ERR_DENIED))
        return not_durable(cli, st, err, src, dst);
    if (both && is_new)
        return cli_tell_failure(
            cli,
            &(struct cli_failure){st, err, NULL,
                                  "Both are complete. When it can be deleted, the same "
                                  "command with --resume does it."},
            "%s was copied to %s, but cannot be deleted", src->shown, dst->shown);
    return tell_copy_failure(cli, st, err, "move", src, dst);
}

/* ---- mv ---- */

static int move(struct copying *c)
{
    struct cli *cli = c->cli;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    if (!cli_same_store(&c->src, &c->dst)) /* else this is a rename, most likely */
        rc = count_source(c);
    if (rc)
        return rc;
    st = transfer(c, true, &err);
    if (st)
        return tell_move_failure(cli, st, &err, &c->src, &c->dst);
    rc = cli_node_flush(cli, &c->dst);
    if (!rc)
        rc = cli_node_flush(cli, &c->src);
    if (!rc && !*c->src.path) /* the store is empty now: removes its folder */
        (void)rmdir(cli_local_root(&c->src));
    return rc;
}

static void tell_moved(const struct copying *c)
{
    const uint64_t copied = c->objects - c->objects_skipped;
    char *skipped = skipped_text(c->objects_skipped);

    if (c->cli->json)
        begin_json(c, copied, c->bytes - c->bytes_skipped);
    if (c->objects == 0) /* the store renamed the node */
        cli_say(c->cli, "moved %s to %s", c->src.shown, c->dst.shown);
    else
        cli_say(c->cli, "moved %s to %s: %" PRIu64 " object%s copied%s", c->src.shown,
                c->dst.shown, copied, cli_plural(copied), skipped);
    free(skipped);
}

/* A link to a store is not a node: a copy of the store, which may be the only one on
 * another disk, must not replace it. A link inside of a store is the library's: it copies
 * what the link names, and deletes the link. */
static int refuse_link(struct cli *cli, const struct cli_node *node)
{
    const char *root = cli_local_root(node);
    char *store = NULL;
    struct stat st;

    if (*node->path || lstat(root, &st) != 0 || !S_ISLNK(st.st_mode))
        return CLI_OK;
    store = realpath(root, NULL);
    cli_error(cli, CLI_UNSUPPORTED,
              "To move the store, name it instead of the link. The command mv of the "
              "system moves the link.",
              "%s is a link to %s", node->shown, store ? store : "a store");
    free(store);
    return CLI_UNSUPPORTED;
}

/* Both, also if the first fails. */
static int update_both(struct cli *cli, struct cli_node *src, struct cli_node *dst,
                       int rc)
{
    const int first = cli_update_after(cli, src, true, rc);
    const int second = cli_update_after(cli, dst, true, rc);

    return first ? first : second;
}

/* Whether a move to this destination was interrupted while it deleted the source, and
 * this command goes on: the library then completes it. */
static bool can_finish(const struct cli *cli, const struct cli_node *src,
                       const struct cli_node *dst)
{
    struct cli_job job;
    char *name;
    bool is = false;

    if (!cli_job_read(src->store, src->path, &job))
        return false;
    name = cli_job_name(dst);
    is = strcmp(job.command, "mv") == 0 && cli_job_deletes(&job) && job.destination &&
         strcmp(job.destination, name) == 0 && dst->kind != ZARR_NODE_NONE &&
         (skips_equal(cli) || cli_flag(cli, "force"));
    free(name);
    cli_job_free(&job);
    return is;
}

/* Whether consolidated metadata of a group above the node does not list it. */
static bool is_unlisted(const struct cli_node *node)
{
    zarr_group_open_options opts = {.struct_size = sizeof opts};
    char *path = cli_strdup(node->path);
    bool unlisted = false;

    opts.consolidated = ZARR_CONSOLIDATED_MUST;
    while (*path && !unlisted) {
        zarr_group *group = NULL;
        zarr_array *array = NULL;
        zarr_group *member = NULL;
        char *slash = strrchr(path, '/');
        const char *below;

        *(slash ? slash : path) = '\0';
        below = cli_path_below(node->path, path);
        if (zarr_group_open(&group, node->store, path, &opts, NULL) == ZARR_OK)
            unlisted = zarr_group_open_node(&array, &member, group, below, NULL, NULL,
                                            NULL) == ZARR_ERR_NOT_FOUND;
        zarr_array_free(array);
        zarr_group_free(member);
        zarr_group_free(group);
    }
    free(path);
    return unlisted;
}

/* A move that was killed after its last step has no source, or an empty folder there, and
 * consolidated metadata may not list the destination. */
static int complete(struct copying *c)
{
    struct cli *cli = c->cli;
    struct cli_node *src = &c->src, *dst = &c->dst;
    const bool there = dst->kind != ZARR_NODE_NONE, skips = skips_equal(cli);
    const bool unlisted = there && is_unlisted(dst);
    const bool empty = there && cli_is_empty_folder(src);
    int rc = CLI_OK;

    if (skips ? unlisted || empty : unlisted && cli_flag(cli, "force")) {
        if (empty)
            rc = cli_delete_folder(cli, src);
        if (!rc)
            rc = cli_update_after(cli, dst, true, CLI_OK);
        if (!rc)
            tell_moved(c);
        return rc;
    }
    if (empty && !unlisted)
        return cli_error(cli, CLI_NOT_FOUND,
                         "If a move was interrupted, zarrc mv --resume with the same "
                         "locations completes it.",
                         "there is nothing to move: %s is an empty folder", src->shown);
    if (!unlisted)
        return cli_node_fail_missing(cli, 0, src);
    return cli_error(cli, CLI_NOT_FOUND,
                     "If a move was interrupted, the same command with --resume "
                     "completes it.",
                     "there is no Zarr array or group at %s, and consolidated metadata "
                     "does not list %s",
                     src->shown, dst->shown);
}

static int run_mv(struct cli *cli)
{
    const unsigned how = CLI_OPEN_WRITE | CLI_OPEN_PROBE | CLI_OPEN_MISSING;
    struct copying c = {.cli = cli};
    int rc = cli_check_resume(cli);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], how, &c.src);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW | CLI_OPEN_PROBE, &c.dst);
    if (!rc)
        rc = cli_share_archive(cli, &c.src, &c.dst);
    if (!rc && cli_node_is_missing(&c.src) && !can_finish(cli, &c.src, &c.dst)) {
        rc = complete(&c);
        goto out;
    }
    if (!rc)
        rc = refuse_link(cli, &c.src);
    if (!rc)
        rc = require_copyable(cli, &c.src, &c.dst);
    if (!rc) {
        c.src.began = c.dst.began = cli_copy_may_begin(cli, &c.dst, skips_equal(cli));
        rc = move(&c);
        if (!rc)
            tell_moved(&c);
        rc = update_both(cli, &c.src, &c.dst, rc);
    }
out:
    close_both(&c, rc);
    return rc;
}

static const struct cli_option mv_options[] = {
    COPY_OPTIONS("fail if it is complete, because SOURCE is gone then"),
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example mv_examples[] = {
    {"zarrc mv x.zarr/temp x.zarr/old/temp", "Move an array into a group."},
    {NULL, NULL}};

const struct cli_command cli_cmd_mv = {
    .name = "mv",
    .summary = "move or rename a node",
    .operands = "SOURCE DESTINATION",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Moves an array or a group with everything below it, inside a store or to "
        "another store. DESTINATION is its new name. It must not exist yet unless "
        "--force, --resume or --skip-equal is given. SOURCE and DESTINATION must not be "
        "the same location or inside each other; links in the two paths are resolved for "
        "this check, links below them are not.\n\n"
        "Inside one store this is one step. Otherwise SOURCE is deleted after all of it "
        "was copied, unless another program wrote into it meanwhile. If the command is "
        "interrupted, the same command with --resume continues.\n\n"
        "SOURCE must not be a link to a store: mv(1) moves the link.",
    .json = "source, destination: locations. objects, bytes: copied; 0 if the store "
            "renamed the node. objects_skipped, bytes_skipped: found equal.",
    .options = mv_options,
    .examples = mv_examples,
    .see_also = "zarrc-cp zarrc-rm",
    .run = run_mv,
};
