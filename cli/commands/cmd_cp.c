/*
 * commands/cmd_cp.c - zarrc cp: copies a node with everything below it, byte for byte,
 * between any two stores. Chunks are copied first and the node's own metadata last, so
 * that an interrupted copy is not yet a node. --resume continues it. --verify reads both
 * sides again and compares their bytes.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    CLI_COPY_OPTIONS(CLI_RESUME_DOES_NOTHING),
    {"verify", 0, 0, NULL, NULL, "read both afterwards and compare all bytes"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc cp run.zarr/temp backup.zarr/temp", "Copy an array into another hierarchy."},
    {"zarrc cp --resume --verify big.zarr /mnt/big.zarr",
     "Continue an interrupted copy, then compare all bytes."},
    {"until zarrc cp --resume big.zarr /mnt/big.zarr || [ $? -lt 7 ]; do sleep 60; "
     "done",
     "Try again after faults that pass, and after an interruption."},
    {NULL, NULL}};

struct copying {
    struct cli *cli;
    struct cli_node src, dst;
    struct cli_objects total;
    struct cli_progress progress;
    uint64_t objects, bytes;
    uint64_t objects_skipped, bytes_skipped; /* they were there */
    bool verified;
};

static void tell_progress(void *user, uint64_t objects, uint64_t bytes)
{
    struct copying *c = user;

    c->objects = objects;
    c->bytes = bytes;
    cli_progress_update(&c->progress, bytes, objects);
}

/* ---- --verify ---- */

enum {
    PIECE = 1 << 20
};

/* Compares one object of both sides in pieces. */
static int compare_object(struct copying *c, const char *key, unsigned char *buffer)
{
    char *other = cli_path_join(c->dst.path, cli_path_below(key, c->src.path));
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
    free(other);
    return rc;
}

static int compare_all(struct copying *c)
{
    unsigned char *buffer = cli_alloc((size_t)2 * PIECE);
    struct cli_keys keys = {0};
    zarr_error err = {0};
    zarr_status st = zarr_store_list(c->src.store, c->src.path, ZARR_LIST_RECURSIVE,
                                     cli_keys_add, &keys, cli_cancel, &err);
    int rc = CLI_OK;

    c->objects = c->bytes = 0;
    cli_progress_begin(&c->progress, c->cli, "verify", c->total.n_bytes,
                       c->total.n_objects);
    if (st)
        rc = cli_fail(c->cli, st, &err, "cannot list %s", c->src.shown);
    for (size_t i = 0; i < keys.n_items && !rc && !cli_is_cancelled(); i++)
        rc = compare_object(c, keys.items[i], buffer);
    if (!rc && cli_is_cancelled())
        rc = cli_fail(c->cli, ZARR_ERR_CANCELLED, NULL, "cannot compare");
    cli_progress_end(&c->progress, rc == CLI_OK);
    c->verified = rc == CLI_OK;
    cli_keys_free(&keys);
    free(buffer);
    return rc;
}

/* ---- the copy ---- */

static int copy(struct copying *c)
{
    struct cli *cli = c->cli;
    zarr_copy_options opts = {.struct_size = sizeof opts};
    zarr_error err = {0};
    zarr_status st;

    opts.flags = (cli_flag(cli, "force") ? ZARR_COPY_OVERWRITE : 0u) |
                 (cli_skips_equal(cli) ? ZARR_COPY_SKIP_EQUAL : 0u) |
                 (cli_flag(cli, "no-consolidate") ? 0u : ZARR_COPY_CONSOLIDATED);
    opts.max_threads = cli->max_threads;
    opts.progress = tell_progress;
    opts.progress_user = c;
    opts.cancel = cli_cancel;
    opts.objects_skipped = &c->objects_skipped;
    opts.bytes_skipped = &c->bytes_skipped;
    cli_progress_begin(&c->progress, cli, "copy", c->total.n_bytes, c->total.n_objects);
    st =
        zarr_node_copy(c->src.store, c->src.path, c->dst.store, c->dst.path, &opts, &err);
    cli_progress_end(&c->progress, st == ZARR_OK);
    if (st)
        return cli_tell_copy_failure(cli, st, &err, "copy", &c->src, &c->dst);
    return cli_node_flush(cli, &c->dst);
}

static void summary(const struct copying *c, uint64_t objects, uint64_t bytes, double s)
{
    struct cli *cli = c->cli;
    char size[16], speed[16], *skipped;

    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "source"), c->src.shown);
        cli_json_text(cli_key(j, "destination"), c->dst.shown);
        cli_json_u64(cli_key(j, "objects"), objects);
        cli_json_u64(cli_key(j, "bytes"), bytes);
        cli_json_u64(cli_key(j, "objects_skipped"), c->objects_skipped);
        cli_json_u64(cli_key(j, "bytes_skipped"), c->bytes_skipped);
        cli_json_f64(cli_key(j, "seconds"), s);
        cli_json_bool(cli_key(j, "verified"), c->verified);
        cli_json_end(j);
    }
    skipped = cli_skipped_text(c->objects_skipped);
    cli_say(cli, "copied %" PRIu64 " objects, %s, %s/s%s%s", objects,
            cli_bytes_text(bytes, size),
            cli_bytes_text((uint64_t)((double)bytes / (s > 0 ? s : 1e-9)), speed),
            skipped, c->verified ? "; all bytes compared equal" : "");
    free(skipped);
}

static int run(struct cli *cli)
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
        rc = cli_require_copyable(cli, &c.src, &c.dst);
    if (!rc)
        rc = cli_objects_count(cli, &c.src, cli->progress != CLI_PROGRESS_NONE, &c.total);
    if (!rc) {
        c.dst.began = cli_copy_may_begin(cli, &c.dst, cli_skips_equal(cli));
        rc = copy(&c);
    }
    took = cli_seconds() - began;
    objects = c.objects - c.objects_skipped;
    bytes = c.bytes - c.bytes_skipped;
    if (!rc && cli_flag(cli, "verify"))
        rc = compare_all(&c);
    if (!rc)
        summary(&c, objects, bytes, took);
    rc = cli_update_after(cli, &c.dst, true, rc);
    if (rc)
        cli_remove_empty_root(&c.dst);
    cli_node_close(&c.src);
    cli_node_close(&c.dst);
    return rc;
}

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
        "above it are "
        "created. SOURCE and DESTINATION must not be the same location or inside each "
        "other; links in the two paths are resolved for this check, links below them are "
        "not.\n\n"
        "Chunks are copied first and the metadata of the node last: an interrupted copy "
        "is not yet a node, and has an object .zarrc-job. The same command with "
        "--resume continues it. --skip-equal --force also replaces objects that "
        "differ and deletes those that SOURCE does not have. Of two commands with one "
        "DESTINATION the second ends with exit code 7, as long as the first is at work."
        "\n\n"
        "To change chunks, codecs or format while copying, use zarrc reencode.",
    .json = "source, destination: locations. objects, bytes: copied. "
            "objects_skipped, bytes_skipped: found equal. seconds. verified: all bytes "
            "were compared.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-mv zarrc-reencode zarrc-diff",
    .run = run,
};
