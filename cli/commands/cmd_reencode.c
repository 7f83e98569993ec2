/*
 * commands/cmd_reencode.c - zarrc reencode: copies an array, or a group with everything
 * below it, into other chunks, shards, codecs, keys or format by zarr_node_reencode().
 * The source is opened read-only.
 */
#include "cf/cf.h"
#include "reencode/reencode.h"
#include "spec/spec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    CLI_SPEC_OPTIONS,
    {"dtype", 't', 0, "TYPE", NULL,
     "data type of the new array: integers and floats are converted, with the fill value "
     "and CF attributes such as valid_range"},
    {"rounding", 0, 0, "WORD",
     "exact|nearest-even|towards-zero|towards-positive|towards-negative|nearest-away",
     "with --dtype: how to round; exact: a number that would change is an error "
     "(default: exact)"},
    {"out-of-range", 0, 0, "WORD", "error|clamp|wrap",
     "with --dtype: what a number out of the range becomes (default: error)"},
    CLI_NEAREST_OPTION,
    CLI_RESUME_OPTION(CLI_RESUME_DOES_NOTHING),
    {"force", 'f', 0, NULL, NULL, "delete the node at DESTINATION first"},
    {"verify", 0, 0, NULL, NULL, "read both afterwards and compare every bit"},
    {"keep-fill", 0, 0, NULL, NULL,
     "with --zarr-format: leave fill values and attributes _FillValue, even if missing "
     "values change"},
    CLI_MISSING_OPTION,
    CLI_SKIP_DAMAGED_OPTION,
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc reencode --chunks=64,64 --shards=1024,1024 --codec=zstd:9 a.zarr b.zarr",
     "Other chunks, in shards, with stronger compression."},
    {"zarrc reencode 'climate.zarr[time@2003-07, lat@35:70]' july.zarr",
     "A part of all arrays with these dimensions, coordinates included."},
    {"zarrc reencode --dtype=int16 --rounding=nearest-even a.zarr/temp b.zarr",
     "Another data type; a value out of its range is an error."},
    {"zarrc reencode --zarr-format=3 old.zarr new.zarr",
     "A hierarchy from Zarr v2 to v3; everything else stays."},
    {"until zarrc reencode --resume --chunks=100,100 a.zarr b.zarr || [ $? -lt 7 ]; do "
     "sleep 1; done",
     "Repeat until it is complete, or fails for a reason that stays."},
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
        return cli_error(r->cli, CLI_USAGE,
                         "Write to another location, then move it with zarrc mv.",
                         "%s and %s overlap", r->src.shown, r->dst.shown);
    return CLI_OK;
}

static int check_group_options(struct reencode *r)
{
    static const char *const single[] = {"fill", "dims", "attributes", "dtype"};

    for (size_t i = 0; i < 4 && r->src.kind == ZARR_NODE_GROUP; i++)
        if (cli_text(r->cli, single[i]))
            return cli_error(r->cli, CLI_USAGE, NULL,
                             "option --%s is for single arrays, %s is a group", single[i],
                             r->src.shown);
    if (cli_text(r->cli, "dtype") && cli_text(r->cli, "zarr-format"))
        return cli_error(r->cli, CLI_USAGE, "Use two commands.",
                         "--dtype and --zarr-format exclude each other");
    return CLI_OK;
}

static void on_progress(void *user, const zarr_progress *now)
{
    struct reencode *r = user;
    const char *phase = now->flags & ZARR_PROGRESS_COMPARING ? "verify" : "reencode";

    if (!r->phase || strcmp(r->phase, phase) != 0) {
        if (r->phase)
            cli_progress_end(&r->progress, true);
        cli_progress_begin(&r->progress, r->cli, phase, now->bytes_total, 0);
        r->phase = phase;
    }
    r->progress.skipped_bytes = now->bytes_skipped;
    cli_progress_update(&r->progress, now->bytes_done, 0);
}

static void on_warning(void *user, const char *path, const char *text)
{
    struct reencode *r = user;

    cli_warn(r->cli, "/%s: %s", path, text);
}

/* ---- the report ---- */

static void report_json(const struct reencode *r, double seconds)
{
    static const char *const states[] = {"new", "resumed", "complete"};
    const zarr_reencode_result *s = &r->result;
    struct cli_json *j = cli_json(r->cli);

    cli_json_object(j);
    cli_json_text(cli_key(j, "source"), r->src.shown);
    cli_json_text(cli_key(j, "destination"), r->dst.shown);
    cli_json_text(cli_key(j, "state"), states[s->state]);
    cli_json_u64(cli_key(j, "arrays"), s->n_arrays);
    cli_json_u64(cli_key(j, "groups"), s->n_groups);
    cli_json_u64(cli_key(j, "bytes"), s->bytes);
    cli_json_u64(cli_key(j, "bytes_skipped"), s->bytes_skipped);
    cli_json_u64(cli_key(j, "objects_written"), s->objects_written);
    cli_json_f64(cli_key(j, "seconds"), seconds);
    cli_json_bool(cli_key(j, "verified"), s->verified);
    cli_json_end(j);
}

static void report_text(const struct reencode *r, double seconds)
{
    const zarr_reencode_result *s = &r->result;
    const uint64_t idle = cli_add(s->bytes_skipped, s->bytes_empty);
    const uint64_t fresh = s->bytes > idle ? s->bytes - idle : 0;
    const char *equal = s->verified ? "; all elements compared equal" : "";
    char total[16], speed[16], skipped[16];

    if (s->state == ZARR_REENCODE_COMPLETE) {
        cli_say(r->cli, "%s was already complete%s", r->dst.shown, equal);
        return;
    }
    cli_say(
        r->cli, "re-encoded %" PRIu64 " array%s, %s, %s/s, %" PRIu64 " object%s%s%s%s",
        s->n_arrays, s->n_arrays == 1 ? "" : "s", cli_bytes_text(s->bytes, total),
        cli_bytes_text((uint64_t)((double)fresh / (seconds > 0 ? seconds : 1e-9)), speed),
        s->objects_written, cli_plural(s->objects_written),
        s->bytes_skipped ? "; finished before: " : "",
        s->bytes_skipped ? cli_bytes_text(s->bytes_skipped, skipped) : "", equal);
}

/* Prints what exists at the destination, with a hint what to do. */
static int report_found(const struct reencode *r)
{
    struct cli *cli = r->cli;
    const char *at = r->dst.shown;
    struct cli_job job;

    if (r->result.found != ZARR_REENCODE_FOUND_NODE &&
        cli_job_read(r->dst.store, r->dst.path, &job)) {
        const bool other = strcmp(job.command, "reencode") != 0;

        if (other)
            (void)cli_job_error(cli, CLI_EXISTS, &job, at);
        cli_job_free(&job);
        if (other)
            return CLI_EXISTS;
    }
    switch (r->result.found) {
    case ZARR_REENCODE_FOUND_JOB:
        return cli_error(cli, CLI_EXISTS, "--resume continues it, --force starts again.",
                         "there is an interrupted reencode at %s", at);
    case ZARR_REENCODE_FOUND_OTHER_JOB:
        return cli_error(
            cli, CLI_EXISTS,
            "Use the options of the first command, or --force to start again.",
            "the interrupted reencode at %s has another source or other options", at);
    case ZARR_REENCODE_FOUND_FILES:
        if (cli_rest_of_array(&r->dst))
            return cli_rest_error(cli, CLI_EXISTS, &r->dst);
        return cli_error(cli, CLI_EXISTS,
                         "Choose another location, or empty it yourself.",
                         "there are files at %s that are not a Zarr node", at);
    default:
        return cli_error(
            cli, CLI_EXISTS, "Nothing was changed. --force deletes it first.",
            cli_flag(cli, "resume") ? "%s already exists, and is another node"
                                    : "%s already exists",
            at);
    }
}

static int report_failure(const struct reencode *r, zarr_status st, const zarr_error *err)
{
    if (r->rc)
        return r->rc;
    if (st == ZARR_ERR_EXISTS && r->result.found)
        return report_found(r);
    if (r->result.differs)
        return cli_error(r->cli, CLI_DIFFERENT,
                         "The destination is incomplete and not yet a node. Lossy codecs "
                         "cannot be verified.",
                         "%s", err->message);
    return cli_fail(r->cli, st, err, "cannot re-encode %s", r->src.shown);
}

/* ---- the work ---- */

/* 0: the default of the library. Elements before their conversion need memory, too. */
static uint64_t buffer_bytes(const struct reencode *r)
{
    const char *name = cli_text(r->cli, "dtype");
    const zarr_dtype *type = NULL;
    uint64_t from, to;

    if (!name || zarr_dtype_find(&type, r->cli->ctx, name, NULL) != ZARR_OK)
        return r->cli->memory_bytes ? cli_buffer_bytes(r->cli) : 0;
    from = zarr_dtype_item_bytes(zarr_array_dtype(r->src.array));
    to = zarr_dtype_item_bytes(type);
    return cli_buffer_bytes(r->cli) / (from + to) * to;
}

static int reencode(struct reencode *r)
{
    const double began = cli_seconds();
    zarr_reencode_options o = ZARR_REENCODE_OPTIONS_INIT;
    const char *format = cli_text(r->cli, "zarr-format");
    char *text = NULL;
    zarr_error err = {0};
    zarr_status st;
    int rc = CLI_OK;

    if (cli_flag(r->cli, "resume"))
        o.flags |= ZARR_REENCODE_RESUME;
    if (cli_flag(r->cli, "force"))
        o.flags |= ZARR_REENCODE_OVERWRITE;
    if (cli_missing_is_error(r->cli))
        o.flags |= ZARR_REENCODE_MISSING_ERROR;
    if (!cli_flag(r->cli, "no-consolidate"))
        o.flags |= ZARR_REENCODE_CONSOLIDATED;
    if (cli_flag(r->cli, "verify"))
        o.flags |= ZARR_REENCODE_VERIFY;
    if (cli_flag(r->cli, "keep-fill"))
        o.flags |= ZARR_REENCODE_KEEP_FILL;
    o.zarr_format = format ? *format - '0' : 0;
    o.make = cli_reencode_make;
    o.progress = on_progress;
    o.warn = on_warning;
    o.make_user = o.progress_user = o.warn_user = o.read_user = r;
    o.buffer_bytes = buffer_bytes(r);
    if (r->regions) {
        text = cli_reencode_text(r);
        o.read = cli_reencode_read;
        o.read_text = text;
    }
    o.cancel = cli_cancel;
    r->dst.began = cli_copy_may_begin(r->cli, &r->dst, cli_flag(r->cli, "resume"));
    st = zarr_node_reencode(r->src.store, r->src.path, r->dst.store, r->dst.path,
                            &r->result, &o, &err);
    free(text);
    if (r->phase)
        cli_progress_end(&r->progress, st == ZARR_OK);
    if (st)
        rc = report_failure(r, st, &err);
    else if (r->cli->json)
        report_json(r, cli_seconds() - began);
    else
        report_text(r, cli_seconds() - began);
    return cli_update_after(r->cli, &r->dst, true, rc);
}

static int run(struct cli *cli)
{
    const char *rounding = cli_text(cli, "rounding");
    const char *range = cli_text(cli, "out-of-range");
    struct reencode r = {.cli = cli,
                         .result = ZARR_REENCODE_RESULT_INIT,
                         .rounding = rounding ? rounding : "exact",
                         .out_of_range = range ? range : "error"};
    int rc = cli_check_resume(cli);

    if (!rc && cli_flag(cli, "skip-damaged") && cli_missing_is_error(cli))
        rc = cli_error(cli, CLI_USAGE, NULL,
                       "--skip-damaged and --missing-chunks=error exclude each other");
    if (!rc && (rounding || range) && !cli_text(cli, "dtype"))
        rc =
            cli_error(cli, CLI_USAGE, NULL, "--rounding and --out-of-range need --dtype");
    if (!rc)
        rc = cli_node_open(cli, cli->args[0], CLI_OPEN_REGION | CLI_OPEN_CROP, &r.src);
    if (!rc)
        rc = cli_node_open(cli, cli->args[1], CLI_OPEN_NEW, &r.dst);
    if (!rc)
        rc = cli_share_archive(cli, &r.src, &r.dst);
    if (!rc)
        rc = check_places(&r);
    if (!rc)
        rc = check_group_options(&r);
    if (!rc && cli_flag(cli, "skip-damaged"))
        rc = r.src.region ? cli_salvage_open(cli, &r.src)
                          : cli_salvage_node(cli, &r.src, &r.n_lost);
    if (!rc)
        rc = cli_reencode_regions(&r);
    if (!rc)
        rc = reencode(&r);
    if (rc)
        cli_remove_empty_root(&r.dst);
    cli_reencode_free(&r);
    cli_node_close(&r.src);
    cli_node_close(&r.dst);
    return rc ? rc : r.n_lost ? CLI_LOST : CLI_OK;
}

const struct cli_command cli_cmd_reencode = {
    .name = "reencode",
    .summary = "copy into other chunks, shards, codecs or format",
    .operands = "SOURCE[REGION] DESTINATION",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Copies an array, or a group with everything below it, and encodes it anew. "
        "Everything that no option changes is as in SOURCE: chunks, shards, codecs, "
        "keys, format, fill value, dimension names, attributes. In a group, --chunks and "
        "--shards only apply to arrays of their rank. SOURCE is never changed.\n\n"
        "Elements are copied in whole blocks of the destination and, if --mem permits, "
        "in whole chunks of SOURCE. A larger shard of the destination is encoded and "
        "written chunk by chunk. A chunk that --mem, or its default, does not permit is "
        "refused before anything is written. Missing chunks of SOURCE are skipped, "
        "unless the fill value changes.\n\n"
        "If --zarr-format changes the format of an array with dimension names, its "
        "missing value stays, as zarrc-migrate(1) describes; chunks whose elements the "
        "new fill value lacks are stored. --keep-fill, --fill and --attributes take "
        "precedence. A warning says what to do with OME-Zarr metadata, which has another "
        "place in the other format.\n\n"
        "With a REGION, only these elements are copied. Of a group, its items have "
        "names, and each cuts every array that has the dimension: time=3 by index, "
        "lat@35:70 by value, as zarrc-cat(1) describes. An index keeps the dimension, "
        "with length 1. Other arrays are copied whole.\n\n"
        "--dtype converts by the rules of the codec cast_value. An error names the "
        "array, the place in it or in its REGION, and the value. NaN has no place in "
        "integers.\n\n"
        "DESTINATION becomes a node at the end, when every chunk is written. Until then "
        "it has chunks and an object .zarrc-job. After an interrupt, a crash or kill -9, "
        "the same command with --resume continues: it does not write complete chunks "
        "again, and the result has the same bytes as without the interruption. After a "
        "power failure add --verify.\n\n"
        "--skip-damaged first verifies SOURCE; with a REGION, it only looks at what it "
        "reads. Chunks that cannot be decoded are left out: they are missing in "
        "DESTINATION, so that their elements have the fill value, and "
        "--missing-chunks=error finds them. Each is one line on stderr, and the exit "
        "code "
        "is 8. After --resume with a REGION, the losses that the interrupted command "
        "told "
        "are not told again. Arrays whose metadata is damaged stay errors; "
        "zarrc-verify(1) repairs them.",
    .json =
        "source, destination: locations. state: new, resumed, or complete (it already "
        "was). arrays, groups. bytes: decoded size of all arrays. bytes_skipped: "
        "written before the interruption. objects_written. seconds. verified: every "
        "bit was compared.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-cp zarrc-diff zarrc-create",
    .run = run,
};
