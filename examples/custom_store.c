/* Introduces: zarr_store_vtable, zarr_store_open_custom()
 *
 * A store of the application's own, which makes each chunk when it is read. The library
 * emulates or refuses what the table leaves out.
 */
#include <stdio.h>
#include <string.h>

#include <zarrc/plugin/store.h>
#include <zarrc/zarrc.h>

static const char document[] =
    "{\"zarr_format\": 2, \"shape\": [160000], \"chunks\": [16], \"dtype\": \"|u1\","
    " \"compressor\": null, \"filters\": null, \"fill_value\": 0, \"order\": \"C\"}";

static void declare(void *self, zarr_store_caps *out)
{
    (void)self;
    out->flags = ZARR_STORE_CAP_FAST_GET; /* whole values only; no list, no writing */
}

/* Called from any thread. Chunk n holds the number n sixteen times. */
static void run(void *self, zarr_store_op *op, zarr_error *err)
{
    const int is_document = strcmp(op->key, ".zarray") == 0;
    char made[16];
    unsigned n = 0;

    (void)self, (void)err;
    op->done_bytes = 0;
    op->object_bytes = is_document ? sizeof document - 1 : sizeof made;
    op->status = is_document || sscanf(op->key, "%u", &n) ? ZARR_OK : ZARR_ERR_NOT_FOUND;
    if (op->status != ZARR_OK || op->verb != ZARR_STORE_GET)
        return;
    memset(made, (int)(n & 0xFF), sizeof made);
    op->done_bytes = op->mem.bytes < op->object_bytes ? op->mem.bytes : op->object_bytes;
    memcpy((char *)op->mem.handle + op->mem.offset, is_document ? document : made,
           op->done_bytes);
}

int main(void)
{
    const zarr_store_vtable made = {sizeof made, 0, "made", .caps = declare, .run = run};
    const uint64_t shape[1] = {160000};
    static uint8_t data[160000];
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;

    zarr_tensor_host(&tensor, "uint8", data, sizeof data, 1, shape);
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open_custom(&store, ctx, &made, NULL, NULL, &err) ||
        zarr_array_open(&array, store, "", NULL, &err) ||
        zarr_array_read(array, NULL, &tensor, NULL, &err))
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    zarr_array_free(array), zarr_store_free(store), zarr_context_free(ctx);
    return err.code != ZARR_OK || data[16 * 200 + 5] != 200;
}
