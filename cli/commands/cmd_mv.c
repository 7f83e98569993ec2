/*
 * commands/cmd_mv.c - zarrc mv: renames a node, or copies it and then deletes the source.
 * The source stays complete until every byte is at the destination and flushed; the
 * library does both (zarr_node_move).
 */
#include "node/work.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    CLI_COPY_OPTIONS("fail if it is complete, because SOURCE is gone then"),
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc mv x.zarr/temp x.zarr/old/temp", "Move an array into a group."},
    {NULL, NULL}};

struct moving {
    struct cli_progress progress;
    uint64_t objects, bytes;
    uint64_t objects_skipped, bytes_skipped; /* they were there */
};

static void tell_progress(void *user, uint64_t objects, uint64_t bytes)
{
    struct moving *m = user;

    m->objects = objects;
    m->bytes = bytes;
    cli_progress_update(&m->progress, bytes, objects);
}

/* ---- a move that failed ---- */

static bool both_exist(const struct cli_node *src, const struct cli_node *dst)
{
    uint32_t kind[2] = {ZARR_NODE_NONE, ZARR_NODE_NONE};
    int32_t format;

    return zarr_node_probe(dst->store, dst->path, &kind[0], &format, cli_cancel, NULL) ==
               ZARR_OK &&
           zarr_node_probe(src->store, src->path, &kind[1], &format, cli_cancel, NULL) ==
               ZARR_OK &&
           kind[0] != ZARR_NODE_NONE && kind[0] == kind[1];
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
        "--force alone copies all of it anew. "
        "zarrc rm -r %s removes the copy.",
        at);
    const int rc =
        cli_fail_with(cli, st, err, NULL, hint,
                      "%s was copied to %s, but the copy may not be on the disk",
                      src->shown, dst->shown);

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
        return cli_fail_with(
            cli, st, err, NULL,
            "Both are complete. When it can be deleted, the same command with "
            "--resume does it.",
            "%s was copied to %s, but cannot be deleted", src->shown, dst->shown);
    return cli_tell_copy_failure(cli, st, err, "move", src, dst);
}

/* ---- the move ---- */

static int move(struct cli *cli, struct cli_node *src, struct cli_node *dst,
                struct moving *m)
{
    zarr_copy_options opts = {.struct_size = sizeof opts};
    struct cli_objects total = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    if (!cli_same_store(src, dst)) /* else this is a rename, most likely */
        rc = cli_objects_count(cli, src, cli->progress != CLI_PROGRESS_NONE, &total);
    if (rc)
        return rc;
    opts.flags = cli_flag(cli, "force") ? ZARR_COPY_OVERWRITE : 0u;
    opts.flags |= cli_skips_equal(cli) ? ZARR_COPY_SKIP_EQUAL : 0u;
    opts.flags |= cli_flag(cli, "no-consolidate") ? 0u : ZARR_COPY_CONSOLIDATED;
    opts.max_threads = cli->max_threads;
    opts.progress = tell_progress;
    opts.progress_user = m;
    opts.cancel = cli_cancel;
    opts.objects_skipped = &m->objects_skipped;
    opts.bytes_skipped = &m->bytes_skipped;
    cli_progress_begin(&m->progress, cli, "move", total.n_bytes, total.n_objects);
    st = zarr_node_move(src->store, src->path, dst->store, dst->path, &opts, &err);
    cli_progress_end(&m->progress, st == ZARR_OK);
    if (st)
        return tell_move_failure(cli, st, &err, src, dst);
    rc = cli_node_flush(cli, dst);
    if (!rc)
        rc = cli_node_flush(cli, src);
    if (!rc && !*src->path) /* the store is empty now: removes its folder */
        (void)rmdir(cli_local_root(src));
    return rc;
}

static void summary(struct cli *cli, const struct cli_node *src,
                    const struct cli_node *dst, const struct moving *m)
{
    char *skipped = cli_skipped_text(m->objects_skipped);

    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "source"), src->shown);
        cli_json_text(cli_key(j, "destination"), dst->shown);
        cli_json_u64(cli_key(j, "objects"), m->objects - m->objects_skipped);
        cli_json_u64(cli_key(j, "bytes"), m->bytes - m->bytes_skipped);
        cli_json_u64(cli_key(j, "objects_skipped"), m->objects_skipped);
        cli_json_u64(cli_key(j, "bytes_skipped"), m->bytes_skipped);
        cli_json_end(j);
    }
    if (m->objects == 0) /* the store renamed the node, or it is a link */
        cli_say(cli, "moved %s to %s", src->shown, dst->shown);
    else
        cli_say(cli, "moved %s to %s: %" PRIu64 " objects copied%s", src->shown,
                dst->shown, m->objects - m->objects_skipped, skipped);
    free(skipped);
}

/* ---- a link to a store ---- */

/* A link inside of a store is the library's: it copies what the link names, and deletes
 * the link. */
static bool is_root_link(const struct cli_node *node)
{
    struct stat st;

    return !*node->path && lstat(cli_local_root(node), &st) == 0 && S_ISLNK(st.st_mode);
}

/* Makes a link at `to` that leads where `from` does. It has the same text, unless that
 * leads elsewhere from its new place. */
static int make_link(struct cli *cli, const char *from, const char *to)
{
    char text[PATH_MAX];
    const ssize_t n = readlink(from, text, sizeof text - 1);
    char *old = realpath(from, NULL), *new = NULL;
    int os_code = n < 0 || !old ? errno : 0;

    if (os_code == 0) {
        text[n] = '\0';
        os_code = symlink(text, to) != 0 ? errno : 0;
    }
    new = os_code == 0 ? realpath(to, NULL) : NULL;
    if (os_code == 0 && (!new || strcmp(old, new) != 0))
        os_code = unlink(to) != 0 || symlink(old, to) != 0 ? errno : 0;
    free(old);
    free(new);
    return os_code == 0 ? CLI_OK : cli_errno(cli, os_code, "cannot make the link %s", to);
}

/* As mv does: the store may be the only copy, on another disk, and is not touched. */
static int move_link(struct cli *cli, const struct cli_node *src, struct cli_node *dst)
{
    const char *from = cli_local_root(src), *to = cli_local_root(dst);
    int rc = CLI_OK;

    if (*dst->path || !dst->created_root) {
        char *store = realpath(from, NULL);

        rc = cli_error(cli, CLI_EXISTS,
                       "To move the store, name it instead of the link. To move the "
                       "link, give it a name that does not exist, outside of stores.",
                       "%s is a link to %s and cannot be moved to %s", src->shown,
                       store ? store : "a store", dst->shown);
        free(store);
        return rc;
    }
    cli_remove_empty_root(dst);
    dst->created_root = false;
    rc = make_link(cli, from, to);
    if (rc)
        return rc;
    if (unlink(from) != 0)
        return cli_errno(cli, errno, "%s has a link now, but cannot delete %s",
                         dst->shown, src->shown);
    return CLI_OK;
}

/* ---- the command ---- */

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
         (cli_skips_equal(cli) || cli_flag(cli, "force"));
    free(name);
    cli_job_free(&job);
    return is;
}

/* A move that was killed after its last step has no source any more, or an empty folder,
 * and consolidated metadata may not list the destination. */
static int complete(struct cli *cli, struct cli_node *src, struct cli_node *dst)
{
    const bool there = dst->kind != ZARR_NODE_NONE, skips = cli_skips_equal(cli);
    const bool unlisted = there && cli_is_unlisted(dst);
    const bool empty = there && cli_is_empty_folder(src);
    struct moving m = {.objects = 0};
    int rc = CLI_OK;

    if (skips ? unlisted || empty : unlisted && cli_flag(cli, "force")) {
        if (empty)
            rc = cli_delete_folder(cli, src);
        if (!rc)
            rc = cli_update_after(cli, dst, true, CLI_OK);
        if (!rc)
            summary(cli, src, dst, &m);
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

static int run(struct cli *cli)
{
    struct cli_node src = {0}, dst = {0};
    struct moving m = {.objects = 0};
    int rc = cli_check_resume(cli);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0],
                           CLI_OPEN_WRITE | CLI_OPEN_PROBE | CLI_OPEN_MISSING, &src);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW | CLI_OPEN_PROBE, &dst);
    if (!rc)
        rc = cli_share_archive(cli, &src, &dst);
    if (!rc && cli_node_is_missing(&src) && !can_finish(cli, &src, &dst)) {
        rc = complete(cli, &src, &dst);
        goto out;
    }
    if (!rc && is_root_link(&src)) {
        rc = move_link(cli, &src, &dst);
        if (!rc)
            summary(cli, &src, &dst, &m);
        goto out;
    }
    if (!rc)
        rc = cli_require_copyable(cli, &src, &dst);
    if (!rc) {
        src.began = dst.began = cli_copy_may_begin(cli, &dst, cli_skips_equal(cli));
        rc = move(cli, &src, &dst, &m);
        if (!rc)
            summary(cli, &src, &dst, &m);
        rc = update_both(cli, &src, &dst, rc);
    }
out:
    if (rc)
        cli_remove_empty_root(&dst);
    cli_node_close(&src);
    cli_node_close(&dst);
    return rc;
}

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
        "the same location "
        "or inside each other; links in the two paths are resolved for this check, links "
        "below them are not.\n\n"
        "Inside one store this is one step. Otherwise SOURCE is deleted after all of it "
        "was copied, unless another program wrote into it meanwhile. If the command is "
        "interrupted, the same command with --resume continues.\n\n"
        "If SOURCE is a link to a store, the link is moved, and the store stays where it "
        "is. A relative link becomes an absolute one if it would lead elsewhere.",
    .json = "source, destination: locations. objects, bytes: copied; 0 if the store "
            "renamed the node. objects_skipped, bytes_skipped: found equal.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cp zarrc-rm",
    .run = run,
};
