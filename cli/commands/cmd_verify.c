/*
 * commands/cmd_verify.c - zarrc verify: prints each fault that the library finds below a
 * node (zarr_node_verify) as one line with key and reason. Faults give exit code 1. If
 * the store cannot be read, verification stops with the exit code of that failure.
 */
#include "node/work.h"

#include <inttypes.h>
#include <string.h>
#include <stdlib.h>

enum {
    LIMIT = 1000
};

static const struct cli_option options[] = {
    {"no-data", 0, 0, NULL, NULL, "check metadata only, decode no chunk"},
    CLI_MISSING_OPTION,
    {"strict", 0, 0, NULL, NULL,
     "also report metadata that zarrc reads and a strict reader refuses"},
    {"show", 'N', 0, "N", NULL,
     "show at most N faults, and count the rest (default: 1000; 0: all)"},
    {"repair", 0, 0, "HOW", NULL,
     "delete: make broken blocks missing. from:STORE: copy them from the same path of "
     "another store. consolidated: restore metadata from the consolidated metadata, or "
     "the other way round. Without --yes it only prints the plan"},
    {"yes", 'y', 0, NULL, NULL, "with --repair: do it"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc verify x.zarr", "Check a whole store."},
    {"zarrc verify --untrusted --json download.zarr",
     "Check untrusted data with stricter limits; faults as JSON."},
    {"zarrc verify --repair=from:b.zarr x.zarr",
     "Plan which broken blocks another store can replace; --yes replaces them."},
    {NULL, NULL}};

struct verify {
    struct cli *cli;
    struct cli_node node;
    struct cli_progress progress;
    bool begun;
    zarr_verify_result result;
    struct cli_faults faults;          /* for --repair */
    bool is_silent;                    /* after a repair: tells nothing */
    uint64_t limit, n_shown, n_hidden; /* limit 0: no limit */
    double seconds;
};

static uint64_t n_faults(const struct verify *v)
{
    return v->result.n_errors + v->result.n_warnings;
}

static const char *severity_text(uint32_t severity)
{
    return severity == ZARR_SEVERITY_NOTE      ? "note"
           : severity == ZARR_SEVERITY_LIMIT   ? "limit"
           : severity == ZARR_SEVERITY_WARNING ? "warning"
                                               : "error";
}

static int on_finding(void *user, const zarr_finding *f)
{
    struct verify *v = user;
    struct cli *cli = v->cli;

    if (cli_text(cli, "repair"))
        cli_faults_add(&v->faults, f);
    if (v->is_silent)
        return cli_is_cancelled();
    if (f->severity == ZARR_SEVERITY_NOTE && cli->quiet && !cli->json)
        return cli->out_failed;
    if (v->limit && v->n_shown == v->limit) {
        v->n_hidden++;
        return cli->out_failed;
    }
    v->n_shown++;
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "node"), f->path);
        cli_json_text(cli_key(j, "key"), f->key);
        cli_json_shape(cli_key(j, "block"), f->ndim, f->block);
        cli_json_text(cli_key(j, "code"), zarr_status_text(f->status));
        cli_json_text(cli_key(j, "reason"), f->message);
        cli_json_text(cli_key(j, "severity"), severity_text(f->severity));
        cli_json_end(j);
        return cli->out_failed;
    }
    if (cli->progress == CLI_PROGRESS_BAR && v->progress.width_shown)
        fputs("\r\033[K", stderr);
    cli_line(cli, "%s: %s   [%s]\n", *f->key ? f->key : "/", f->message,
             f->severity == ZARR_SEVERITY_NOTE ? "note" : zarr_status_text(f->status));
    return cli->out_failed;
}

/* The first call comes before the first finding. */
static void begin(struct verify *v, const zarr_progress *now)
{
    struct cli *cli = v->cli;

    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_text(cli_key(cli_json(cli), "node"), v->node.shown);
        cli_json_array(cli_key(cli_json(cli), "faults"));
    }
    cli_progress_begin(&v->progress, cli, "verify", now->bytes_total, now->objects_total);
    v->begun = true;
}

static void on_progress(void *user, const zarr_progress *now)
{
    struct verify *v = user;

    if (!v->begun)
        begin(v, now);
    cli_progress_update(&v->progress, now->bytes_done, now->objects_done);
}

/* ---- the report ---- */

static void report_json(const struct verify *v)
{
    const zarr_verify_result *r = &v->result;
    struct cli_json *j = cli_json(v->cli);

    cli_json_end(j); /* faults */
    cli_json_u64(cli_key(j, "n_faults"), n_faults(v));
    cli_json_u64(cli_key(j, "n_limits"), r->n_limits);
    cli_json_u64(cli_key(j, "n_notes"), r->n_notes);
    cli_json_u64(cli_key(j, "arrays"), r->n_arrays);
    cli_json_u64(cli_key(j, "groups"), r->n_groups);
    cli_json_u64(cli_key(j, "objects"), r->n_objects);
    cli_json_u64(cli_key(j, "bytes"), r->n_bytes);
    cli_json_f64(cli_key(j, "seconds"), v->seconds);
}

/* What is left after a repair. */
static void report_end(const struct verify *v)
{
    struct cli_json *j = cli_json(v->cli);

    cli_json_u64(cli_key(j, "n_faults_left"), n_faults(v));
    if (n_faults(v) == 0 && v->result.n_limits)
        cli_json_null(cli_key(j, "valid"));
    else
        cli_json_bool(cli_key(j, "valid"), n_faults(v) == 0);
}

static void report_text(const struct verify *v)
{
    const zarr_verify_result *r = &v->result;
    const uint64_t n = n_faults(v);
    char size[16], speed[16];
    double s = v->seconds > 0 ? v->seconds : 1e-9;

    cli_say(v->cli,
            "%s: %" PRIu64 " array%s, %" PRIu64 " group%s, %" PRIu64
            " object%s, %s, %.1f s, %s/s: %s",
            v->node.shown, r->n_arrays, r->n_arrays == 1 ? "" : "s", r->n_groups,
            r->n_groups == 1 ? "" : "s", r->n_objects, r->n_objects == 1 ? "" : "s",
            cli_bytes_text(r->n_bytes, size), v->seconds,
            cli_bytes_text((uint64_t)((double)r->n_bytes / s), speed),
            n             ? "NOT VALID"
            : r->n_limits ? "valid, above the limits of this run"
                          : "valid");
    if (n)
        cli_say(v->cli, "%" PRIu64 " fault%s", n, n == 1 ? "" : "s");
    if (r->n_limits)
        cli_say(v->cli,
                "not checked, because a limit is lower: %" PRIu64
                "; --limit=NAME=VALUE raises it",
                r->n_limits);
    if (v->n_hidden)
        cli_say(v->cli, "%" PRIu64 " of them are not shown; --show=0 shows all",
                v->n_hidden);
}

/* What an interrupted command left, as a warning. */
static void on_job(void *user, const char *key, const char *command, const char *hint)
{
    struct verify *v = user;
    char *path =
        cli_format("%.*s", (int)(strrchr(key, '/') ? strrchr(key, '/') - key : 0), key);
    char *text = cli_format("a %s was interrupted, or is at work. %s", command, hint);
    const zarr_finding f = {.struct_size = sizeof f,
                            .what = ZARR_FINDING_NODE,
                            .status = ZARR_ERR_CONFLICT,
                            .severity = ZARR_SEVERITY_WARNING,
                            .path = path,
                            .key = key,
                            .message = text};

    v->result.n_warnings++;
    (void)on_finding(v, &f);
    free(path);
    free(text);
}

/* What other programs left, or a delete by hand. */
static void on_rest(void *user, const struct cli_rest *rest)
{
    struct verify *v = user;
    char *text = rest->read_error
                     ? cli_strdup(rest->read_error->message)
                     : cli_format("%s. %s",
                                  rest->is_group ? "there are nodes or chunks below it, "
                                                   "but it has no metadata"
                                                 : "there are chunks, but no array",
                                  rest->hint);
    const zarr_finding f = {.struct_size = sizeof f,
                            .what = ZARR_FINDING_NODE,
                            .status = rest->read_error ? rest->read_error->code
                                                       : ZARR_ERR_NOT_FOUND,
                            .severity = rest->read_error ? ZARR_SEVERITY_ERROR
                                        : rest->is_group ? ZARR_SEVERITY_NOTE
                                                         : ZARR_SEVERITY_WARNING,
                            .path = rest->path,
                            .key = rest->path,
                            .message = text};

    v->result.n_errors += rest->read_error != NULL;
    *(rest->is_group ? &v->result.n_notes : &v->result.n_warnings) += !rest->read_error;
    (void)on_finding(v, &f);
    free(text);
}

static int find(void *user)
{
    struct verify *v = user;
    struct cli *cli = v->cli;
    zarr_verify_options opts = ZARR_VERIFY_OPTIONS_INIT;
    zarr_error err = {0};
    zarr_status st;

    opts.flags = (cli_flag(cli, "no-data") ? ZARR_VERIFY_NO_DATA : 0) |
                 (cli_flag(cli, "strict") ? ZARR_VERIFY_STRICT : 0) |
                 (cli_missing_is_error(cli) ? ZARR_VERIFY_MISSING_ERROR : 0);
    opts.tell = on_finding;
    opts.progress = v->is_silent ? NULL : on_progress;
    opts.tell_user = opts.progress_user = v;
    opts.cancel = cli_cancel;
    st = zarr_node_verify(v->node.store, v->node.path, &v->result, &opts, &err);
    if (v->begun && !v->is_silent)
        cli_progress_end(&v->progress, st == ZARR_OK);
    if (st)
        return cli_fail(cli, st, &err, "cannot verify %s", v->node.shown);
    if (cli_can_list(cli, &v->node, "checked") &&
        (cli_jobs_each(cli, &v->node, on_job, v) ||
         cli_rests_each(cli, &v->node, on_rest, v)))
        return CLI_IO;
    return cli->out_failed ? CLI_IO : CLI_OK;
}

static int verify(struct verify *v)
{
    struct cli *cli = v->cli;
    const double began = cli_seconds();
    int rc = find(v);

    if (rc)
        return rc;
    v->seconds = cli_seconds() - began;
    if (cli->json)
        report_json(v);
    else
        report_text(v);
    v->is_silent = true;
    if (cli_text(cli, "repair"))
        rc = cli_repair(cli, &v->node, &v->faults, find, v);
    if (rc)
        return rc;
    if (cli->json)
        report_end(v);
    return n_faults(v) ? CLI_DIFFERENT : v->result.n_limits ? CLI_CORRUPT : CLI_OK;
}

static int verify_one(struct cli *cli, const char *place)
{
    struct verify v = {.cli = cli, .result = ZARR_VERIFY_RESULT_INIT, .limit = LIMIT};
    int rc = cli_u64(cli, "show", &v.limit);

    if (!rc)
        rc = cli_node_open(cli, place,
                           CLI_OPEN_PROBE | (cli_flag(cli, "yes") ? CLI_OPEN_WRITE : 0u),
                           &v.node);
    if (!rc)
        rc = verify(&v);
    cli_faults_free(&v.faults);
    cli_node_close(&v.node);
    return rc;
}

static int run(struct cli *cli)
{
    const int rc = cli_repair_check(cli);

    return rc ? rc : cli_each_node(cli, false, verify_one);
}

const struct cli_command cli_cmd_verify = {
    .name = "verify",
    .summary = "check everything that is stored",
    .operands = "NODE...",
    .min_args = 1,
    .max_args = -1,
    .about =
        "Reads and decodes everything that is stored below each NODE: the metadata of "
        "every node, every chunk with its checksums, and the index of every shard. It "
        "also compares consolidated metadata with the nodes. Each fault is one line on "
        "stdout: key, reason, kind.\n\n"
        "It reports what interrupted commands left, with the commands that continue or "
        "remove it, and chunks below a group that no array has. A group without metadata "
        "above other nodes is a note; the nodes below it are not checked.\n\n"
        "It reports a resize or append that was killed (see clean). What else is stored "
        "outside of the shape of an array is a note: other programs and resize "
        "--keep-chunks leave it there. Codecs that lose values may change what is "
        "outside, so with them border chunks are not looked at.\n\n"
        "Objects below an array that are neither chunks nor metadata are a note. If they "
        "look like chunks, the metadata may name a wrong key encoding. If the first of "
        "them is a chunk with the other separator, and no chunk has the right one, that "
        "is a fault.\n\n"
        "An object that alone cannot be read is a fault: a folder, a FIFO or a broken "
        "symbolic link in the place of a chunk, or a file on a bad block. So is an "
        "object or a folder without permission. verify goes on with everything else.\n\n"
        "An archive called *.ozx is checked for the rules of single-file OME-Zarr "
        "(RFC-9) if NODE is its root. What it must do and does not is a fault. What it "
        "should do is a note, as is all of this in another archive whose comment says "
        "that it is OME-Zarr.\n\n"
        "What exceeds a limit of the program cannot be checked. Such data is not a "
        "fault: \"valid, above the limits of this run\" means that nothing else is "
        "wrong. --limit raises the limit that the line names.\n\n"
        "Exit code 0: no fault. 1: there are faults. 4: no fault, but something is above "
        "the limits of this run. A note is not a fault, and --quiet hides it. A missing "
        "chunk is not a fault: its elements have the fill value. Without a checksum, a "
        "changed bit is found only if the decoder detects it.\n\n"
        "--repair prints one line for each repair, with the regions of elements that are "
        "lost or copied, and changes nothing without --yes. delete removes a broken "
        "block; of a shard only the broken chunks, if its index can be decoded. These "
        "elements then have the fill value; in S3, chunks of it are written. from:STORE "
        "copies a "
        "broken block, or the elements of a broken chunk, from the same path of STORE, "
        "and restores metadata from there. The array there must have the same shape, "
        "data type, fill value, chunk grid, codecs, scale_factor, add_offset and units. "
        "consolidated restores broken or missing metadata from the consolidated metadata "
        "of a group above, also of an array without chunks, which may be one of fill "
        "values or deleted by hand; consolidated metadata that is broken or out of date "
        "is written anew from the nodes, when each entry has its node again. "
        "zarrc-consolidate(1) drops entries of deleted nodes instead.\n\n"
        "Each repair is first made in memory and read there. Then it changes one object "
        "in one step, if that still is the broken one. No other object changes. Then "
        "everything is verified again, also what is below restored metadata, and "
        "repaired until nothing more can be. After a kill, repeat the command. Objects "
        "that exceed a limit, that this build cannot decode, that need a permission, or "
        "that a newer version of Zarr wrote are never repaired. delete leaves what the "
        "disk or the network cannot read, and an array of which no block can be decoded: "
        "its metadata may be wrong. With --yes the exit code is 0 if there is no fault "
        "at the end.\n\n"
        "An array is read in spite of metadata that cannot change its elements: a "
        "compression level out of range, or members that v2 does not know. --strict "
        "reports the first fault of this kind in each array, as other readers may refuse "
        "it. zarrc-reencode(1) writes metadata without such faults.",
    .json =
        "node. faults: objects with node, key, block (coordinates in the grid of "
        "blocks, or null), code, reason, severity (error, warning, limit or note). "
        "n_faults, n_limits and n_notes: how many were found (not only those in faults); "
        "arrays; groups; objects; bytes (stored); seconds. With --repair also repairs: "
        "objects with key, action, regions (texts, as after the name of an array), done, "
        "reason (null: possible). At the end, as the exit code: n_faults_left, which "
        "only --yes makes fewer; valid (null: no fault is left, but something is above "
        "the limits).",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-clean zarrc-diff",
    .run = run,
};
