/*
 * commands/cmd_repack.c - zarrc repack: writes a zip archive anew without the bytes that
 * no value uses. The library does it in one step; this file says what it saved.
 */
#include "node/work.h"

#include <stdlib.h>

static const struct cli_option options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "say what would be saved, change nothing"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc repack -n x.zarr.zip", "Say how many bytes no value uses."},
    {"zarrc repack x.zarr.zip", "Remove them."},
    {"zarrc repack x.ozx", "Also write the members in the order of RFC-9."},
    {NULL, NULL}};

static void tell(struct cli *cli, const struct cli_node *node,
                 const zarr_repack_result *r)
{
    const bool look = cli_flag(cli, "dry-run");
    const uint64_t saved =
        r->bytes_before > r->bytes_after ? r->bytes_before - r->bytes_after : 0;
    char before[16], text[16];

    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_bool(cli_key(j, "needed"), r->is_needed);
        cli_json_u64(cli_key(j, "bytes_before"), r->bytes_before);
        cli_json_u64(cli_key(j, "bytes_after"), r->bytes_after);
    }
    cli_bytes_text(r->bytes_before, before);
    cli_bytes_text(saved, text);
    if (!r->is_needed)
        cli_say(cli, "%s: nothing to remove, %s", node->shown, before);
    else
        cli_say(cli, "%s: %s %s of %s", node->shown, look ? "would save" : "saved", text,
                before);
}

static int run(struct cli *cli)
{
    const bool look = cli_flag(cli, "dry-run");
    const unsigned how = CLI_OPEN_PROBE | CLI_OPEN_MISSING | (look ? 0 : CLI_OPEN_WRITE);
    zarr_repack_result result = ZARR_REPACK_RESULT_INIT;
    struct cli_node node = {0};
    zarr_error err = {0};
    zarr_status st;
    int rc = cli_node_open(cli, cli->args[0], how, &node);

    if (!rc && *node.path)
        rc = cli_error(cli, CLI_USAGE, "Name the archive alone.",
                       "%s is a node in an archive: repack rewrites the whole archive",
                       node.shown);
    if (!rc) {
        st = zarr_store_repack(node.store, look ? ZARR_REPACK_LOOK : 0, &result,
                               cli_cancel, &err);
        if (st)
            rc = cli_fail(cli, st, &err, "cannot repack %s", node.shown);
    }
    if (!rc)
        tell(cli, &node, &result);
    cli_node_close(&node);
    return rc;
}

const struct cli_command cli_cmd_repack = {
    .name = "repack",
    .summary = "remove the bytes of a zip archive that no value uses",
    .operands = "ARCHIVE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Writes a zip archive anew without replaced and erased values, old directories, "
        "and what killed writers left. zarrc info --stats shows how many bytes these "
        "are. Without such bytes it changes nothing.\n\n"
        "The new archive replaces the old one in one step, so other programs find one "
        "of the two, also if the command is killed. Programs that write the archive wait "
        "meanwhile. Those that have it open for reading must open it again. The disk "
        "needs room for both archives.\n\n"
        "Values are copied as they are in the archive. The command checks their headers, "
        "and the CRC-32 of those that the archive does not compress. If it finds a "
        "fault, the archive stays as it is.\n\n"
        "An archive called *.ozx also gets what RFC-9 of OME-NGFF recommends: each "
        "zarr.json first, level by level, zip64, and a comment with the version of "
        "OME-Zarr, which is that of the root's attributes. --store-option zip_form=ozx "
        "does so for archives of other names, and zip_form=plain does not.",
    .json = "needed: whether there was anything to do. bytes_before, bytes_after: "
            "lengths of the archive. With --dry-run bytes_after is approximate.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-info zarrc-clean zarrc-verify",
    .run = run,
};
