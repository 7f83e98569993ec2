/*
 * commands/cmd_reencode.c - zarrc reencode: an array, or a group with all below it, in
 * other chunks, shards, codecs, keys or format. The source is opened read-only.
 * How it goes on after a kill: reencode/plan.c.
 */
#include "reencode/reencode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    CLI_SPEC_OPTIONS,
    {"resume", 0, 0, NULL, NULL,
     "go on with a run of the same command that was interrupted; begins, or does "
     "nothing, where that is what is left to do"},
    {"force", 'f', 0, NULL, NULL, "delete the node at DESTINATION first"},
    {"verify", 0, 0, NULL, NULL, "read both afterwards and compare every bit"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc reencode --chunks=64,64 --shards=1024,1024 --codec=zstd:9 a.zarr b.zarr",
     "Other chunks, in shards, packed harder."},
    {"zarrc reencode --format=3 old.zarr new.zarr",
     "A hierarchy from Zarr v2 to v3; everything else stays."},
    {"until zarrc reencode --resume --chunks=100,100 a.zarr b.zarr; do sleep 1; done",
     "Until it is done, whatever happens."},
    {NULL, NULL}};

static int check_places(struct reencode *r)
{
    zarr_error err = {0};
    int overlap = 0;
    const zarr_status st = zarr_store_overlap(r->src.store, r->src.path, r->dst.store,
                                              r->dst.path, &overlap, &err);

    if (st)
        return cli_fail(r->cli, st, &err, "cannot tell %s from %s", r->src.shown,
                        r->dst.shown);
    if (overlap)
        return cli_error(r->cli, CLI_USAGE, "Write to another place, then zarrc mv it.",
                         "%s and %s overlap", r->src.shown, r->dst.shown);
    return CLI_OK;
}

static int check_options(struct cli *cli)
{
    if (cli_flag(cli, "force") && cli_flag(cli, "resume"))
        return cli_error(cli, CLI_USAGE, NULL, "--force and --resume exclude each other");
    return CLI_OK;
}

static int check_group_options(struct reencode *r)
{
    static const char *const single[] = {"fill", "dims", "attributes"};

    for (size_t i = 0; i < 3 && r->src.kind == ZARR_NODE_GROUP; i++)
        if (cli_text(r->cli, single[i]))
            return cli_error(r->cli, CLI_USAGE, NULL,
                             "option --%s is for single arrays, %s is a group", single[i],
                             r->src.shown);
    return CLI_OK;
}

/* Each array of the tree, through fn. */
static int each_array(struct reencode *r,
                      int (*fn)(struct reencode *, const struct reencode_pair *))
{
    int rc = CLI_OK;

    for (size_t i = 0; i < r->tree.n_items && !rc; i++) {
        struct reencode_pair pair = {0};

        if (r->tree.items[i].kind != ZARR_NODE_ARRAY)
            continue;
        rc = cli_reencode_open(r, i, &pair);
        if (!rc)
            rc = fn(r, &pair);
        cli_reencode_close(&pair);
    }
    return rc;
}

/* Is there memory for each? Asked before anything is deleted or written. */
static int check_shape(struct reencode *r, const struct reencode_pair *pair)
{
    struct reencode_shape shape = {.n_buffers = 0};

    return cli_reencode_shape(r, pair, &shape);
}

static int work(struct reencode *r)
{
    int rc = CLI_OK;

    if (r->state != REENCODE_COMPLETE) {
        cli_progress_begin(&r->progress, r->cli, "reencode", r->total_bytes, 0);
        rc = each_array(r, cli_reencode_array);
        cli_progress_end(&r->progress, rc == CLI_OK);
    }
    if (!rc && cli_flag(r->cli, "verify")) {
        const uint64_t done = r->done_bytes, empty = r->empty_bytes;

        r->done_bytes = r->empty_bytes = 0;
        cli_progress_begin(&r->progress, r->cli, "verify", r->total_bytes, 0);
        rc = each_array(r, cli_reencode_compare);
        cli_progress_end(&r->progress, rc == CLI_OK);
        r->done_bytes = done;
        r->empty_bytes = empty;
        r->verified = rc == CLI_OK;
    }
    return rc ? rc : cli_reencode_finish(r);
}

static void report_json(struct reencode *r, double seconds)
{
    static const char *const states[] = {"new", "resumed", "complete"};
    struct cli_json *j = cli_json(r->cli);

    cli_json_object(j);
    cli_json_text(cli_key(j, "source"), r->src.shown);
    cli_json_text(cli_key(j, "destination"), r->dst.shown);
    cli_json_text(cli_key(j, "state"), states[r->state]);
    cli_json_u64(cli_key(j, "arrays"), r->n_arrays);
    cli_json_u64(cli_key(j, "groups"), r->n_groups);
    cli_json_u64(cli_key(j, "bytes"), r->total_bytes);
    cli_json_u64(cli_key(j, "bytes_skipped"), r->skipped_bytes);
    cli_json_u64(cli_key(j, "objects_written"), r->n_written);
    cli_json_f64(cli_key(j, "seconds"), seconds);
    cli_json_bool(cli_key(j, "verified"), r->verified);
    cli_json_end(j);
}

static void report_text(struct reencode *r, double seconds)
{
    const uint64_t idle = cli_add(r->skipped_bytes, r->empty_bytes);
    const uint64_t fresh = r->done_bytes > idle ? r->done_bytes - idle : 0;
    char total[16], speed[16], skipped[16];

    if (r->state == REENCODE_COMPLETE) {
        cli_say(r->cli, "%s is complete, nothing was to do%s", r->dst.shown,
                r->verified ? "; all elements compared equal" : "");
        return;
    }
    cli_say(
        r->cli, "re-encoded %" PRIu64 " array%s, %s, %s/s, %" PRIu64 " objects%s%s%s",
        r->n_arrays, r->n_arrays == 1 ? "" : "s", cli_bytes_text(r->total_bytes, total),
        cli_bytes_text((uint64_t)((double)fresh / (seconds > 0 ? seconds : 1e-9)), speed),
        r->n_written, r->skipped_bytes ? "; finished before: " : "",
        r->skipped_bytes ? cli_bytes_text(r->skipped_bytes, skipped) : "",
        r->verified ? "; all elements compared equal" : "");
}

static int reencode(struct reencode *r)
{
    const double began = cli_seconds();
    int rc = check_places(r);

    if (!rc)
        rc = check_group_options(r);
    if (!rc)
        rc = cli_reencode_plan(r);
    if (!rc)
        rc = each_array(r, check_shape);
    if (!rc)
        rc = cli_reencode_begin(r);
    if (!rc)
        rc = work(r);
    if (rc)
        return rc;
    if (r->cli->json)
        report_json(r, cli_seconds() - began);
    else
        report_text(r, cli_seconds() - began);
    cli_warn_consolidated(r->cli, &r->dst);
    return CLI_OK;
}

static int run(struct cli *cli)
{
    struct reencode r = {.cli = cli};
    int rc = check_options(cli);

    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ANY, &r.src);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW, &r.dst);
    if (!rc)
        rc = reencode(&r);
    if (rc)
        cli_unmake_root(&r.dst);
    free(r.job.text);
    cli_tree_free(&r.tree);
    zarr_store_free(r.target);
    cli_node_close(&r.src);
    cli_node_close(&r.dst);
    return rc;
}

const struct cli_command cli_cmd_reencode = {
    .name = "reencode",
    .summary = "copy into other chunks, shards, codecs or format",
    .operands = "SOURCE DESTINATION",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Copies an array, or a group with everything below it, and encodes it anew. What "
        "no option names stays as it is in SOURCE: chunks, shards, codecs, keys, format, "
        "fill value, names of dimensions, attributes. In a group, --chunks and --shards "
        "are for arrays of their rank. SOURCE is never changed.\n\n"
        "Elements are streamed in units of what is written (chunks, or shards), whole "
        "chunks of SOURCE at a time where --mem allows. There must be room for one "
        "unit. Of huge arrays with few chunks only those are visited, unless the fill "
        "value changes.\n\n"
        "DESTINATION becomes a node last of all, when every chunk is there. Until then "
        "it holds chunks and an object .zarrc-job. After an interrupt, a crash or kill "
        "-9, the same command with --resume goes on; finished chunks are not written "
        "again, and the bytes are those of a run without interruption. After a power "
        "failure add --verify.",
    .json = "source, destination: places. state: new, resumed, or complete (nothing was "
            "to do). arrays, groups. bytes: decoded, of all. bytes_skipped: finished "
            "before. objects_written. seconds. verified: every bit was compared.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cp zarrc-diff zarrc-create",
    .run = run,
};
