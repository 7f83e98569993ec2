/*
 * commands/cmd_verify.c - zarrc verify: everything below a node is read and decoded: the
 * metadata of each node, each stored chunk (checksums where codecs have them),
 * the index of each shard, and consolidated metadata against the truth. Each
 * fault is one line, key and reason. Faults of the data give exit code 1; a
 * store that cannot be read at all gives the code of that failure, because then
 * nobody can say anything about the rest.
 */
#include "node/work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"no-data", 0, 0, NULL, NULL, "only metadata: decode no chunk"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc verify x.zarr", "Is all of it well?"},
    {"zarrc verify --untrusted --json download.zarr",
     "Data from strangers, with narrow limits; faults as JSON."},
    {NULL, NULL}};

struct verify {
    struct cli *cli;
    struct cli_node node;
    struct cli_tree tree;
    const char *path; /* of the node under work, from the store's root */
    struct cli_progress progress;
    uint64_t n_arrays, n_groups, n_objects, n_bytes, n_faults;
    uint64_t before_objects, in_this; /* of nodes that are done; of the one under work */
    double seconds;
    bool broken; /* a node has metadata that cannot be read */
};

/* ---- faults --------------------------------------------------------------------- */

/* Errors name their node, and so does the line. */
static const char *without_path(const char *why, const char *path)
{
    const size_t n = strlen(path);

    return why[0] == '/' && strncmp(why + 1, path, n) == 0 &&
                   strncmp(why + 1 + n, ": ", 2) == 0
               ? why + n + 3
               : why;
}

static int fault(struct verify *v, const char *key, zarr_status st, const char *why)
{
    struct cli *cli = v->cli;

    v->n_faults++;
    why = without_path(why, key);
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "node"), v->path);
        cli_json_text(cli_key(j, "key"), key);
        cli_json_text(cli_key(j, "code"), zarr_status_text(st));
        cli_json_text(cli_key(j, "reason"), why);
        cli_json_end(j);
        return 0;
    }
    if (cli->progress == CLI_PROGRESS_BAR && v->progress.width_shown)
        fputs("\r\033[K", stderr);
    return cli_printf(cli, "%s: %s   [%s]\n", *key ? key : "/", why,
                      zarr_status_text(st));
}

static int on_item(void *user, const zarr_verify_item *item)
{
    return fault(user, item->key, item->status, item->message);
}

static int on_consolidated(void *user, const char *path, const char *what)
{
    struct verify *v = user;
    char *text = cli_format("consolidated metadata of /%s: %s", path, what);
    int rc = fault(v, v->node.zarr_format == 2 ? ".zmetadata" : "zarr.json",
                   ZARR_ERR_CORRUPT, text);

    free(text);
    return rc;
}

/* ---- nodes ---------------------------------------------------------------------- */

/* Reading only: nothing is lost when the program ends in the middle of a chunk. */
static void on_progress(void *user, const zarr_stats *so_far)
{
    struct verify *v = user;
    uint64_t done = v->before_objects + so_far->chunks_done;
    double share = v->n_objects ? (double)done / (double)v->n_objects : 1;

    v->in_this = so_far->chunks_done;
    if (cli_cancel) {
        cli_progress_end(&v->progress, false);
        cli_fail(v->cli, ZARR_ERR_CANCELLED, NULL, "cannot verify");
        fflush(stdout);
        _exit(CLI_INTERRUPTED);
    }
    cli_progress_update(&v->progress, (uint64_t)((double)v->n_bytes * share), done);
}

static int count_chunk(void *user, const zarr_chunk_info *chunk)
{
    struct verify *v = user;

    v->n_objects++;
    v->n_bytes += cli_object_bytes(v->node.store, chunk->key, chunk->bytes);
    return cli_cancel;
}

/* NULL and *rc CLI_OK: it cannot be opened, which is a fault. */
static zarr_array *open_array(struct verify *v, const char *path, int *rc)
{
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_array_open(&array, v->node.store, path, NULL, &err);

    *rc = CLI_OK;
    if (st == ZARR_ERR_IO || st == ZARR_ERR_NO_MEMORY)
        *rc = cli_fail(v->cli, st, &err, "cannot open array /%s", path);
    else if (st)
        fault(v, path, st, err.message);
    return array;
}

static int verify_array(struct verify *v, zarr_array *array)
{
    zarr_io_options opts = {.struct_size = sizeof opts};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    opts.progress = on_progress;
    opts.progress_user = v;
    v->in_this = 0;
    if (!cli_flag(v->cli, "no-data"))
        st = zarr_array_verify(array, on_item, v, &opts, &err);
    if (st == ZARR_ERR_UNSUPPORTED && !cli_cancel) { /* the others still count */
        fault(v, v->path, st, err.message);
        st = ZARR_OK;
    }
    if (st || cli_cancel)
        return cli_fail(v->cli, st, &err, "cannot verify /%s", v->path);
    v->before_objects += v->in_this;
    return v->cli->out_failed ? CLI_IO : CLI_OK;
}

static int verify_group(struct verify *v)
{
    zarr_group_open_options opts = {.struct_size = sizeof opts};
    zarr_group *group = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_group_open(&group, v->node.store, v->path, &opts, &err);
    int rc = CLI_OK;

    if (st == ZARR_ERR_IO || st == ZARR_ERR_NO_MEMORY)
        rc = cli_fail(v->cli, st, &err, "cannot open group /%s", v->path);
    else if (st)
        fault(v, v->path, st, err.message);
    else if (zarr_group_is_consolidated(group))
        st = zarr_group_consolidated_check(v->node.store, v->path, on_consolidated, v,
                                           &err);
    if (group && st == ZARR_ERR_IO)
        rc = cli_fail(v->cli, st, &err, "cannot check consolidated metadata of /%s",
                      v->path);
    else if (group && st && !v->broken) /* a broken node is a fault of its own */
        fault(v, v->path, st, err.message);
    zarr_group_free(group);
    return rc;
}

/* A node that the walk could not read: opening it tells why. */
static void broken_node(struct verify *v)
{
    zarr_group *group = NULL;
    zarr_array *array = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_array_open(&array, v->node.store, v->path, NULL, &err);

    if (st == ZARR_ERR_NOT_FOUND)
        st = zarr_group_open(&group, v->node.store, v->path, NULL, &err);
    fault(v, v->path, st ? st : ZARR_ERR_CORRUPT,
          st ? err.message : "its metadata cannot be read");
    zarr_array_free(array);
    zarr_group_free(group);
}

static int verify_node(struct verify *v, const struct cli_tree_item *item)
{
    char *path = cli_path_join(v->node.path, item->path);
    zarr_array *array = NULL;
    int rc = CLI_OK;

    v->path = path;
    if (item->kind == ZARR_NODE_GROUP) {
        v->n_groups++;
        rc = verify_group(v);
    } else if (item->kind == ZARR_NODE_NONE) {
        broken_node(v);
    } else {
        v->n_arrays++;
        array = open_array(v, path, &rc);
        if (array)
            rc = verify_array(v, array);
        zarr_array_free(array);
    }
    v->path = "";
    free(path);
    return rc;
}

/* How much there is to do, for progress and summary. */
static void count_all(struct verify *v)
{
    for (size_t i = 0; i < v->tree.n_items && !cli_cancel; i++)
        v->broken = v->broken || v->tree.items[i].kind == ZARR_NODE_NONE;
    for (size_t i = 0; i < v->tree.n_items && !cli_cancel; i++) {
        char *path = cli_path_join(v->node.path, v->tree.items[i].path);
        zarr_array *array = NULL;

        if (v->tree.items[i].kind == ZARR_NODE_ARRAY &&
            zarr_array_open(&array, v->node.store, path, NULL, NULL) == ZARR_OK &&
            zarr_array_chunk_list(array, ZARR_CHUNKS_OBJECTS, count_chunk, v, NULL) !=
                ZARR_OK)
            cli_note(v->cli, "objects of /%s cannot be counted", path);
        zarr_array_free(array);
        free(path);
    }
}

/* ---- the report ----------------------------------------------------------------- */

static void report_json(const struct verify *v)
{
    struct cli_json *j = cli_json(v->cli);

    cli_json_end(j); /* faults */
    cli_json_bool(cli_key(j, "valid"), v->n_faults == 0);
    cli_json_u64(cli_key(j, "n_faults"), v->n_faults);
    cli_json_u64(cli_key(j, "arrays"), v->n_arrays);
    cli_json_u64(cli_key(j, "groups"), v->n_groups);
    cli_json_u64(cli_key(j, "objects"), v->n_objects);
    cli_json_u64(cli_key(j, "bytes"), v->n_bytes);
    cli_json_f64(cli_key(j, "seconds"), v->seconds);
}

static void report_text(const struct verify *v)
{
    char size[16], speed[16];
    double s = v->seconds > 0 ? v->seconds : 1e-9;

    cli_say(v->cli,
            "%s: %" PRIu64 " arrays, %" PRIu64 " groups, %" PRIu64
            " objects, %s, %.1f s, %s/s: %s",
            v->node.shown, v->n_arrays, v->n_groups, v->n_objects,
            cli_bytes_text(v->n_bytes, size), v->seconds,
            cli_bytes_text((uint64_t)((double)v->n_bytes / s), speed),
            v->n_faults == 0 ? "valid" : "NOT VALID");
    if (v->n_faults)
        cli_say(v->cli, "%" PRIu64 " fault%s", v->n_faults, v->n_faults == 1 ? "" : "s");
}

static int verify(struct verify *v)
{
    struct cli *cli = v->cli;
    double began = cli_seconds();
    int rc = cli_tree_list(cli, &v->node, &v->tree);

    if (rc)
        return rc;
    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_text(cli_key(cli_json(cli), "node"), v->node.shown);
        cli_json_array(cli_key(cli_json(cli), "faults"));
    }
    count_all(v);
    cli_progress_begin(&v->progress, cli, "verify", v->n_bytes, v->n_objects);
    for (size_t i = 0; i < v->tree.n_items && !rc; i++)
        rc = verify_node(v, &v->tree.items[i]);
    cli_progress_end(&v->progress, rc == CLI_OK);
    v->seconds = cli_seconds() - began;
    if (rc)
        return rc;
    if (cli->json)
        report_json(v);
    else
        report_text(v);
    return v->n_faults ? CLI_DIFFERENT : CLI_OK;
}

static int run(struct cli *cli)
{
    struct verify v = {.cli = cli, .path = ""};
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_SHUT, &v.node);

    if (!rc)
        rc = verify(&v);
    cli_tree_free(&v.tree);
    cli_node_close(&v.node);
    return rc;
}

const struct cli_command cli_cmd_verify = {
    .name = "verify",
    .summary = "check everything that is stored",
    .operands = "NODE",
    .min_args = 1,
    .max_args = 1,
    .about =
        "Reads and decodes all that is stored below NODE: metadata of every node, every "
        "chunk with its checksums, the index of every shard, and consolidated metadata "
        "against the nodes. A fault is one line on stdout: key, reason, kind.\n\n"
        "Exit code 0: all is well. 1: there are faults. Chunks that are not stored are "
        "legal, they are the fill value. Without checksums a changed bit is found only "
        "where the decoder notices it.",
    .json =
        "node. faults: objects with node, key, code, reason. valid; n_faults; arrays; "
        "groups; objects; bytes (stored); seconds.",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-clean zarrc-diff",
    .run = run,
};
