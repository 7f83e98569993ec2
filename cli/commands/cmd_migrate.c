/*
 * commands/cmd_migrate.c - zarrc migrate: writes the metadata of a node and of everything
 * below it in the other format. The chunks do not change.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"zarr-format", 0, 0, "N", "2|3", "format of the new metadata (default: 3)"},
    {"dry-run", 'n', 0, NULL, NULL, "list what would be done, change nothing"},
    {"force", 'f', 0, NULL, NULL,
     "replace existing metadata of the new format that differs"},
    {"remove-old", 0, 0, NULL, NULL, "delete the metadata of the old format at the end"},
    {"keep-fill", 0, 0, NULL, NULL,
     "leave fill values and attributes _FillValue, even if missing values change"},
    CLI_RESUME_OPTION(CLI_RESUME_DOES_NOTHING),
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc migrate -n x.zarr", "Check whether v3 can describe everything."},
    {"zarrc migrate x.zarr", "Write v3 metadata; the v2 metadata stays."},
    {"zarrc migrate --zarr-format=2 --remove-old x.zarr/group",
     "Convert back to v2 only."},
    {NULL, NULL}};

struct migrating {
    struct cli *cli;
    uint64_t n[ZARR_MIGRATED_WARNED + 1];
    bool resumed; /* an earlier migrate was interrupted */
};

static const char *const words[ZARR_MIGRATED_WARNED + 1] = {
    "", "write", "replace", "keep", "consolidate", "remove", "refuse", "leave", "warn"};

static bool has_reason(const zarr_migrate_item *item)
{
    return item->action == ZARR_MIGRATED_REFUSED || item->action == ZARR_MIGRATED_LEFT ||
           item->action == ZARR_MIGRATED_WARNED;
}

static void tell(void *user, const zarr_migrate_item *item)
{
    struct migrating *m = user;
    struct cli *cli = m->cli;

    m->n[item->action]++;
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "action"), words[item->action]);
        cli_json_text(cli_key(j, "path"), item->path);
        cli_json_text(cli_key(j, "key"), item->key);
        if (has_reason(item))
            cli_json_text(cli_key(j, "why"), item->text);
        else
            cli_json_raw(cli_key(j, "document"), item->text);
        cli_json_end(j);
    } else if (item->action == ZARR_MIGRATED_REFUSED) {
        if (m->n[item->action] > 1) /* the first refusal is the error of the call */
            cli_error(cli, CLI_UNSUPPORTED, NULL, "%s", item->text);
    } else if (cli_flag(cli, "dry-run") && item->action != ZARR_MIGRATED_WARNED) {
        (void)cli_line(cli, "%-11s  %s\n", words[item->action], item->key);
    }
    if (item->action == ZARR_MIGRATED_LEFT)
        cli_warn(cli, "%s is not removed: %s", item->key, item->text);
    if (item->action == ZARR_MIGRATED_WARNED)
        cli_warn(cli, "%s: %s", item->key, item->text);
}

/* *is_other: the job object is that of another command, and says that the node is not
 * complete. It stays. */
static bool has_job(const struct cli_node *node, bool *is_other)
{
    struct cli_job job;
    const bool has = cli_job_read(node->store, node->path, &job);

    *is_other = has && strcmp(job.command, "migrate") != 0;
    cli_job_free(&job);
    return has;
}

/* Whether a call with this result leaves nothing to continue. Everything is checked
 * before the first document is written, so a fault of the data alone changes nothing. */
static bool is_over(const struct migrating *m, zarr_status st)
{
    if (st == ZARR_OK || st == ZARR_ERR_UNSUPPORTED)
        return true;
    return !m->resumed && !m->n[ZARR_MIGRATED_WRITTEN] && !m->n[ZARR_MIGRATED_REPLACED] &&
           !m->n[ZARR_MIGRATED_REMOVED] && !m->n[ZARR_MIGRATED_CONSOLIDATED] &&
           (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_LIMIT || st == ZARR_ERR_INVALID ||
            st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_CONFLICT);
}

static int migrate(struct cli *cli, struct cli_node *node, struct migrating *m)
{
    zarr_migrate_options opts = ZARR_MIGRATE_OPTIONS_INIT;
    uint64_t format = 3;
    bool is_other;
    char *given;
    zarr_error err = {0};
    zarr_status st;
    int rc = cli_u64(cli, "zarr-format", &format);

    if (rc)
        return rc;
    opts.flags = cli_flag(cli, "dry-run") ? ZARR_MIGRATE_DRY_RUN : 0u;
    opts.flags |= cli_flag(cli, "force") ? ZARR_MIGRATE_OVERWRITE : 0u;
    opts.flags |= cli_flag(cli, "remove-old") ? ZARR_MIGRATE_REMOVE : 0u;
    opts.flags |= cli_flag(cli, "keep-fill") ? ZARR_MIGRATE_KEEP_FILL : 0u;
    opts.zarr_format = (int32_t)format;
    opts.tell = tell;
    opts.user = m;
    opts.cancel = cli_cancel;
    if (cli->json) {
        cli_json_node(cli, node->shown);
        cli_json_u64(cli_key(cli_json(cli), "zarr_format"), format);
        cli_json_array(cli_key(cli_json(cli), "documents"));
    }
    given = cli_format("--zarr-format=%" PRIu64 "%s%s%s%s", format,
                       cli_flag(cli, "force") ? " --force" : "",
                       cli_flag(cli, "remove-old") ? " --remove-old" : "",
                       cli_flag(cli, "keep-fill") ? " --keep-fill" : "",
                       cli_flag(cli, "no-consolidate") ? " --no-consolidate" : "");
    m->resumed = has_job(node, &is_other);
    if (!cli_flag(cli, "dry-run") && !is_other)
        rc = cli_job_begin(cli, node->store, node->path, given);
    free(given);
    if (rc)
        return rc;
    st = zarr_node_migrate(node->store, node->path, &opts, &err);
    if (!cli_flag(cli, "dry-run") && !is_other && is_over(m, st))
        cli_job_end(cli, node->store, node->path);
    if (cli->json)
        cli_json_end(cli_json(cli));
    if (st || cli_is_cancelled())
        return cli_fail(cli, st, &err, "cannot migrate %s to v%" PRIu64, node->shown,
                        format);
    return cli_flag(cli, "dry-run") ? CLI_OK : cli_node_flush(cli, node);
}

static void summary(struct cli *cli, const struct cli_node *node,
                    const struct migrating *m)
{
    const uint64_t written = m->n[ZARR_MIGRATED_WRITTEN] + m->n[ZARR_MIGRATED_REPLACED];
    const uint64_t kept = m->n[ZARR_MIGRATED_KEPT];
    const uint64_t removed = m->n[ZARR_MIGRATED_REMOVED];

    if (cli->json) {
        cli_json_u64(cli_key(cli_json(cli), "written"), written);
        cli_json_u64(cli_key(cli_json(cli), "kept"), kept);
        cli_json_u64(cli_key(cli_json(cli), "removed"), removed);
    }
    if (cli_flag(cli, "dry-run"))
        cli_say(cli, "%" PRIu64 " document%s would be written, %" PRIu64 " removed",
                written, cli_plural(written), removed);
    else if (written + kept + removed == 0)
        cli_say(cli, "there is nothing to migrate in %s", node->shown);
    else
        cli_say(cli,
                "migrated %s: %" PRIu64 " document%s written, %" PRIu64
                " unchanged, %" PRIu64 " removed",
                node->shown, written, cli_plural(written), kept, removed);
}

static bool has_written(const struct migrating *m)
{
    return m->n[ZARR_MIGRATED_WRITTEN] + m->n[ZARR_MIGRATED_REPLACED] +
               m->n[ZARR_MIGRATED_REMOVED] >
           0;
}

static int run(struct cli *cli)
{
    const bool dry = cli_flag(cli, "dry-run");
    struct cli_node node = {0};
    struct migrating m = {.cli = cli};
    int rc = cli_node_open(cli, cli->args[0], dry ? 0 : CLI_OPEN_WRITE, &node);

    if (!rc) {
        rc = migrate(cli, &node, &m);
        if (!rc)
            summary(cli, &node, &m);
        node.began =
            !dry && (m.resumed || has_written(&m) || cli_flag(cli, "remove-old"));
        if (node.began)
            rc = cli_update_after(cli, &node, true, rc);
    }
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_migrate = {
    .name = "migrate",
    .summary = "write v3 metadata for v2 nodes, or back, over the same chunks",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Writes the metadata of an array, or of a group and everything below it, in the "
        "other format. Chunks are neither read nor written: the new metadata describes "
        "the existing chunks, so the time does not depend on their size.\n\n"
        "From v2 to v3, order F becomes a transpose codec, filters and compressor become "
        "codecs, _ARRAY_DIMENSIONS becomes the dimension names, and a null fill value "
        "becomes the default of the data type. NaN and Infinity in attributes become "
        "strings, because JSON has no such numbers.\n\n"
        "From v3 to v2, only arrays that v2 can describe are converted: no shards, a "
        "regular chunk grid, the key encoding \"v2\", a fill value that v2 keeps bit for "
        "bit, and names for all dimensions or for none. A scalar gets an empty list of "
        "names, which xarray needs. zarrc-reencode converts other arrays by writing them "
        "anew.\n\n"
        "xarray and other CF readers take v2's fill value for the missing value, and "
        "v3's attribute _FillValue. Arrays with dimension names keep their missing "
        "value: to v3 they get the attribute (a type for which xarray has none: a "
        "warning), to v2 the attribute goes, or the fill value becomes null. If this "
        "would change the elements of missing chunks, the array is refused; "
        "zarrc-reencode stores them. --keep-fill changes neither fill value nor "
        "attribute.\n\n"
        "OME-Zarr metadata stays where it is, with a warning that says what to do: 0.4 "
        "is for v2 and at the top of the attributes, 0.5 is for v3 and in the attribute "
        "ome.\n\n"
        "Everything is checked first. If the other format cannot describe a node, every "
        "such node is reported and nothing is written. The old metadata stays unless "
        "--remove-old is given; if a node has both, v3 is read. --remove-old keeps, with "
        "a warning, v2 attributes that differ from those of an existing v3 node, and v2 "
        "documents with members that v3 lacks. Groups with consolidated metadata get it "
        "in the new format as well. After an interrupt everything can still be read, and "
        "the same command continues, with --resume or without.",
    .json =
        "node; zarr_format: of the new metadata; documents: an array of objects with "
        "action (write, replace, keep, consolidate, remove, refuse, leave, warn), path "
        "of "
        "the node, key of the document, and either document (the metadata) or why (the "
        "reason to refuse, leave or warn); written, kept, removed: numbers of documents.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-reencode zarrc-consolidate",
    .run = run,
};
