/*
 * commands/cmd_migrate.c - zarrc migrate: the metadata of a node and all below it in the
 * other format, over the chunks as they lie.
 */
#include "node/work.h"

#include <inttypes.h>

static const struct cli_option options[] = {
    {"format", 0, 0, "N", "2|3", "format of the new metadata (default: 3)"},
    {"dry-run", 'n', 0, NULL, NULL, "check everything and list it, write nothing"},
    {"force", 'f', 0, NULL, NULL,
     "replace metadata of the new format that says something else"},
    {"remove-old", 0, 0, NULL, NULL, "delete the metadata of the old format at the end"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc migrate -n x.zarr", "Can all of it be read as v3? What would be written?"},
    {"zarrc migrate x.zarr", "v3 metadata beside the v2 metadata."},
    {"zarrc migrate --format=2 --remove-old x.zarr/group", "Back to v2 only."},
    {NULL, NULL}};

struct migrating {
    struct cli *cli;
    uint64_t n[ZARR_MIGRATED_LEFT + 1];
};

static const char *const words[ZARR_MIGRATED_LEFT + 1] = {
    "", "write", "replace", "keep", "consolidate", "remove", "refuse", "leave"};

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
        if (item->action == ZARR_MIGRATED_REFUSED || item->action == ZARR_MIGRATED_LEFT)
            cli_json_text(cli_key(j, "why"), item->text);
        else
            cli_json_raw(cli_key(j, "document"), item->text);
        cli_json_end(j);
    } else if (item->action == ZARR_MIGRATED_REFUSED) {
        if (m->n[item->action] > 1) /* the first one is the error at the end */
            cli_error(cli, CLI_UNSUPPORTED, NULL, "%s", item->text);
    } else if (cli_flag(cli, "dry-run")) {
        (void)cli_printf(cli, "%-11s  %s\n", words[item->action], item->key);
    }
    if (item->action == ZARR_MIGRATED_LEFT)
        cli_warn(cli, "%s is not removed: %s", item->key, item->text);
}

static int migrate(struct cli *cli, struct cli_node *node, struct migrating *m)
{
    zarr_migrate_options opts = ZARR_MIGRATE_OPTIONS_INIT;
    uint64_t format = 3;
    zarr_error err = {0};
    zarr_status st;
    int rc = cli_u64(cli, "format", &format);

    if (rc)
        return rc;
    opts.flags = cli_flag(cli, "dry-run") ? ZARR_MIGRATE_DRY_RUN : 0u;
    opts.flags |= cli_flag(cli, "force") ? ZARR_MIGRATE_OVERWRITE : 0u;
    opts.flags |= cli_flag(cli, "remove-old") ? ZARR_MIGRATE_REMOVE : 0u;
    opts.zarr_format = (int32_t)format;
    opts.tell = tell;
    opts.user = m;
    opts.cancel = &cli_cancel;
    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_text(cli_key(cli_json(cli), "node"), node->shown);
        cli_json_u64(cli_key(cli_json(cli), "zarr_format"), format);
        cli_json_array(cli_key(cli_json(cli), "documents"));
    }
    st = zarr_node_migrate(node->store, node->path, &opts, &err);
    if (cli->json)
        cli_json_end(cli_json(cli));
    if (st || cli_cancel)
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
        cli_say(cli, "%" PRIu64 " documents would be written, %" PRIu64 " removed",
                written, removed);
    else if (written + kept + removed == 0)
        cli_say(cli, "there is nothing to migrate in %s", node->shown);
    else
        cli_say(cli,
                "migrated %s: %" PRIu64 " documents written, %" PRIu64
                " were there, %" PRIu64 " removed",
                node->shown, written, kept, removed);
    if (written + removed > 0 && !cli_flag(cli, "dry-run"))
        cli_warn_consolidated(cli, node);
}

static int run(struct cli *cli)
{
    const bool dry = cli_flag(cli, "dry-run");
    struct cli_node node = {0};
    struct migrating m = {.cli = cli};
    int rc = cli_node_open(cli, cli->args[0], dry ? 0 : CLI_OPEN_WRITE, &node);

    if (!rc)
        rc = migrate(cli, &node, &m);
    if (!rc)
        summary(cli, &node, &m);
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
        "other format. No chunk is read or written: the new metadata describes the "
        "chunks as they lie, so this takes no longer for terabytes. From v2, the order F "
        "becomes a transpose, filters and compressor become codecs, the names in "
        "_ARRAY_DIMENSIONS the dimension names, a null fill value the type's default; "
        "NaN and Infinity in attributes become strings, as JSON has no such numbers. "
        "From v3, only what v2 can say: no shards, no chunk grid that is not regular, "
        "the key encoding \"v2\", a fill value whose bits stay, and a name for every "
        "dimension or for none (scalars get the empty list, which xarray needs there); "
        "zarrc-reencode converts the rest by writing it anew.\n\n"
        "All of it is checked first. What the other format cannot say is refused, every "
        "such node is named, and nothing is written. The old metadata stays where it is "
        "unless --remove-old is given; where a node has both, v3 is read. Even then v2 "
        "attributes beside a node that was v3 before stay if they say something else, "
        "with a warning, as do v2 documents with members that v3 does not know. Groups "
        "with consolidated metadata get it in the new format as "
        "well. When it is interrupted, everything can be read, and the same command goes "
        "on.",
    .json =
        "node; zarr_format: of the new metadata; documents: an array of objects with "
        "action (write, replace, keep, consolidate, remove, refuse, leave), path of the "
        "node, key of the document, and document, the metadata, or why it is refused or "
        "left; "
        "written, kept, removed: how many.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-reencode zarrc-consolidate",
    .run = run,
};
