/*
 * import/place.c - where zarrc import makes a new array. One that replaces an
 * array is made beside it and takes its place when it is complete, so that an
 * import that fails leaves the old one whole; elsewhere it is made in place. An
 * import that fails takes back what it made and nothing else: the document and
 * the chunks.
 */
#include "import/import.h"
#include "node/work.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BESIDE ".zarrc-import"

/* An array that is its store's root has no place beside it but in another store. Stores
 * that are no folders have none at all: there it is made in place. */
static int open_beside_root(struct import *im)
{
    char *real = realpath(cli_local_root(&im->node), NULL);
    zarr_store_options opts = {.struct_size = sizeof opts, .flags = ZARR_STORE_CREATE};
    zarr_error err = {0};
    zarr_status st;

    if (!real)
        return CLI_OK;
    im->made_root = cli_format("%s" BESIDE, real);
    free(real);
    st = zarr_store_open(&im->made_store, im->cli->ctx, im->made_root, &opts, &err);
    if (st)
        return cli_fail(im->cli, st, &err, "cannot make %s", im->made_root);
    im->beside = true;
    return CLI_OK;
}

int cli_import_place(struct import *im, bool replaces)
{
    int rc = CLI_OK;

    if (replaces && *im->node.path) {
        im->made_path = cli_format("%s" BESIDE, im->node.path);
        im->beside = true;
    } else {
        im->made_path = cli_strdup(im->node.path);
        if (replaces)
            rc = open_beside_root(im);
    }
    if (!im->made_store)
        im->made_store = zarr_store_ref(im->node.store);
    return rc;
}

int cli_import_settle(struct import *im)
{
    zarr_copy_options opts = {.struct_size = sizeof opts, .flags = ZARR_COPY_OVERWRITE};
    zarr_error err = {0};
    zarr_status st = zarr_store_flush(im->made_store, &err);

    if (st)
        return cli_fail(im->cli, st, &err, "cannot finish writing %s", im->node.shown);
    if (!im->beside)
        return CLI_OK;
    zarr_array_free(im->node.array);
    im->node.array = NULL;
    im->created = false; /* what follows cannot be taken back */
    st = zarr_node_move(im->made_store, im->made_path, im->node.store, im->node.path,
                        &opts, &err);
    if (st)
        return cli_fail(im->cli, st, &err,
                        "cannot put the new array, which is complete at %s%s%s, in the "
                        "place of %s",
                        im->made_root ? im->made_root : zarr_store_url(im->made_store),
                        im->made_root ? "" : ":/", im->made_path, im->node.shown);
    im->created = true;
    return cli_node_flush(im->cli, &im->node);
}

/* ---- an import that failed ---- */

static const char *const documents[] = {"zarr.json", ".zarray", ".zattrs"};

static int add_chunk(void *user, const zarr_chunk_info *chunk)
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

    if (zarr_store_list(im->made_store, im->made_path, ZARR_LIST_RECURSIVE, count_key, &n,
                        NULL) != ZARR_OK)
        n = SIZE_MAX;
    return n;
}

/* The document first: half an array must not be taken for one with missing chunks. */
static bool erase_made(const struct import *im)
{
    struct cli_keys chunks = {0};
    bool ok = zarr_array_chunk_list(im->node.array, ZARR_CHUNKS_OBJECTS, add_chunk,
                                    &chunks, NULL) == ZARR_OK;

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        char *key = cli_path_join(im->made_path, documents[i]);
        zarr_status st = zarr_store_erase(im->made_store, key, NULL);

        ok &= st == ZARR_OK || st == ZARR_ERR_NOT_FOUND;
        free(key);
    }
    if (count_keys(im) != chunks.n_items)
        for (size_t i = 0; i < chunks.n_items; i++)
            ok &= zarr_store_erase(im->made_store, chunks.items[i], NULL) == ZARR_OK;
    else /* all at once, with the folders */
        ok &= zarr_store_erase_prefix(im->made_store, im->made_path, NULL) == ZARR_OK;
    cli_keys_free(&chunks);
    return ok;
}

void cli_import_undo(struct import *im)
{
    if (im->created && !erase_made(im))
        cli_warn(im->cli, "%s is incomplete and could not be removed", im->node.shown);
}

void cli_import_leave(struct import *im)
{
    zarr_store_free(im->made_store);
    if (im->made_root)
        (void)rmdir(im->made_root); /* fails, as it should, when something is in it */
    free(im->made_root);
    free(im->made_path);
}
