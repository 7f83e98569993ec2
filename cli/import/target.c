/*
 * import/target.c - where zarrc import creates a new array. An array that replaces
 * another one is created at a temporary location next to it and moved when it is
 * complete, so that a failed import leaves the old array unchanged. Otherwise the array
 * is created at its final location. A failed import deletes the metadata and the chunks
 * that it wrote, and nothing else.
 */
#include "import/import.h"
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The temporary location as a folder; NULL: the store has no folders. Owned. */
static char *staging_folder(const struct import *im)
{
    char *real = realpath(cli_local_root(&im->node), NULL);
    char *path = real ? cli_path_join(real, im->node.path) : NULL;
    char *out = path ? cli_format("%s" CLI_STAGING_SUFFIX, path) : NULL;

    free(path);
    free(real);
    return out;
}

/* If the array is the root of its store, the temporary location is another store next to
 * it. A store that is not a folder has no such location: the array is then created at its
 * final location. */
static int open_staging_store(struct import *im)
{
    zarr_error err = {0};
    zarr_status st;

    im->target_root = staging_folder(im);
    if (!im->target_root)
        return CLI_OK;
    st = cli_store_open(im->cli, &im->target_store, im->target_root, ZARR_STORE_CREATE,
                        &err);
    if (st)
        return cli_fail(im->cli, st, &err, "cannot create %s", im->target_root);
    im->staged = true;
    return CLI_OK;
}

/* Whether an import that replaces an array was interrupted: what it left at the temporary
 * location is replaced by this one. */
static bool is_staged(const struct import *im)
{
    char *folder = staging_folder(im), *path = NULL;
    bool is = folder && access(folder, F_OK) == 0;

    if (!is && *im->node.path) { /* the store may have no folders */
        path = cli_format("%s" CLI_STAGING_SUFFIX, im->node.path);
        is = cli_kind_at(im->node.store, path, NULL) != ZARR_NODE_NONE;
    }
    free(path);
    free(folder);
    return is;
}

int cli_import_target(struct import *im, bool replaces)
{
    int rc = CLI_OK;

    replaces = replaces || (cli_flag(im->cli, "force") && is_staged(im));
    if (replaces && *im->node.path) {
        im->target_path = cli_format("%s" CLI_STAGING_SUFFIX, im->node.path);
        im->staged = true;
    } else {
        im->target_path = cli_strdup(im->node.path);
        if (replaces)
            rc = open_staging_store(im);
    }
    if (!im->target_store)
        im->target_store = zarr_store_ref(im->node.store);
    return rc;
}

int cli_import_commit(struct import *im)
{
    zarr_copy_options opts = {.struct_size = sizeof opts, .flags = ZARR_COPY_OVERWRITE};
    zarr_store_caps caps = ZARR_STORE_CAPS_INIT;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc;

    if (!cli_flag(im->cli, "no-consolidate"))
        opts.flags |= ZARR_COPY_CONSOLIDATED;
    zarr_store_capabilities(im->target_store, &caps);
    if (!(caps.flags & ZARR_STORE_CAP_ATOMIC_FLUSH)) /* the job goes after the flush */
        st = zarr_store_flush(im->target_store, cli_cancel, &err);
    if (st)
        return cli_fail(im->cli, st, &err, "cannot finish writing %s", im->node.shown);
    cli_job_end(im->cli, im->target_store, im->target_path);
    if (!im->staged) /* else the record of the import may come back */
        return cli_node_flush(im->cli, &im->node);
    im->created = false;             /* cli_import_undo() cannot undo the move */
    zarr_array_free(im->node.array); /* and its claim of the temporary location */
    im->node.array = NULL;
    st = zarr_node_move(im->target_store, im->target_path, im->node.store, im->node.path,
                        &opts, &err);
    if (st)
        return cli_fail(im->cli, st, &err,
                        "the new array is complete at %s%s%s, but cannot replace %s",
                        im->target_root ? im->target_root
                                        : zarr_store_url(im->target_store),
                        im->target_root ? "" : ":/", im->target_path, im->node.shown);
    rc = cli_node_flush(im->cli, &im->node);
    im->created = rc == CLI_OK;
    return rc;
}

/* ---- an import that failed ---- */

static const char *const documents[] = {"zarr.json", ".zarray", ".zattrs"};

static int add_chunk(void *user, const zarr_block_info *chunk)
{
    const zarr_store_item item = {.key = chunk->key};

    return cli_keys_add(user, &item);
}

static int count_key(void *user, const zarr_store_item *item)
{
    *(size_t *)user += !item->is_prefix;
    return 0;
}

static size_t count_keys(const struct import *im)
{
    size_t n = 0;

    if (zarr_store_list(im->target_store, im->target_path, ZARR_LIST_RECURSIVE, count_key,
                        &n, NULL, NULL) != ZARR_OK)
        n = SIZE_MAX;
    return n;
}

/* Deletes the metadata first: readers must not take a partly deleted array for an array
 * with missing chunks. The job object goes last. */
static bool erase_made(const struct import *im)
{
    struct cli_keys chunks = {0};
    bool ok = zarr_array_list_blocks(im->node.array, ZARR_BLOCKS_STORED, add_chunk,
                                     &chunks, NULL, NULL) == ZARR_OK;

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        char *key = cli_path_join(im->target_path, documents[i]);
        zarr_status st = zarr_store_erase(im->target_store, key, NULL, NULL);

        ok &= st == ZARR_OK || st == ZARR_ERR_NOT_FOUND;
        free(key);
    }
    if (count_keys(im) != chunks.n_items + 1) { /* the job object */
        for (size_t i = 0; i < chunks.n_items; i++)
            ok &= zarr_store_erase(im->target_store, chunks.items[i], NULL, NULL) ==
                  ZARR_OK;
        if (ok)
            cli_job_end(im->cli, im->target_store, im->target_path);
    } else /* no other files: deletes everything at once, with the folders */
        ok &= zarr_store_erase_prefix(im->target_store, im->target_path, NULL, NULL) ==
              ZARR_OK;
    cli_keys_free(&chunks);
    return ok;
}

void cli_import_undo(struct import *im)
{
    if (im->created && !erase_made(im))
        cli_warn(im->cli, "%s is incomplete and could not be removed", im->node.shown);
}

void cli_import_free(struct import *im)
{
    zarr_store_free(im->target_store);
    if (im->target_root)
        (void)rmdir(im->target_root); /* fails if it is not empty, as intended */
    free(im->target_root);
    free(im->target_path);
}
