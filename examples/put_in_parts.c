/* Introduces: zarr_store_begin_parts(), zarr_store_end_parts(), zarr_store_run(),
 * zarr_store_read(), zarr_store_write()
 *
 * Writes a new object in parts. Then the store copies it to another key, and the copy is
 * cut to its last bytes, unless another writer changes it meanwhile.
 * Usage: put_in_parts DIRECTORY
 */
#include <stdio.h>

#include <zarrc/plugin/store.h>
#include <zarrc/zarrc.h>

/* Readers see no value, or all of it. */
static zarr_status put_object(zarr_store *store, const char *key, zarr_error *err)
{
    char text[2][6] = {"hello ", "world!"};
    zarr_store_op part = {0}, commit = {0};
    zarr_status st = zarr_store_begin_parts(&part.parts, store, key, NULL, NULL, err);

    if (st != ZARR_OK)
        return st;
    part.verb = ZARR_STORE_PUT_PART, part.key = commit.key = key;
    part.mem.device_type = ZARR_DEVICE_CPU, part.mem.bytes = part.length = 6;
    for (part.part = 1; st == ZARR_OK && part.part <= 2; part.part++) {
        part.offset = 6 * (part.part - 1), part.mem.handle = text[part.part - 1];
        st = zarr_store_run(store, &part, err);
    }
    commit.verb = ZARR_STORE_PUT, commit.parts = part.parts, commit.length = 12;
    /* the version is zeros: a new key */
    commit.flags = ZARR_STORE_OP_IN_PARTS | ZARR_STORE_OP_IF_VERSION;
    if (st == ZARR_OK)
        st = zarr_store_run(store, &commit, err);
    zarr_store_end_parts(store, key, part.parts);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_options create = ZARR_STORE_OPTIONS_INIT;
    zarr_store_value value = ZARR_STORE_VALUE_INIT;
    zarr_store_source source = {0};
    zarr_memory end = {0};
    char text[6];
    zarr_store_op copy = {0};
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    create.flags = ZARR_STORE_CREATE, source.key = "a";
    copy.verb = ZARR_STORE_COPY, copy.key = "b", copy.source = &source;
    end.device_type = ZARR_DEVICE_CPU, end.handle = text, end.bytes = sizeof text;
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_store_open(&store, ctx, argc > 1 ? argv[1] : "x.zarr", &create, &err) ||
        put_object(store, "a", &err) || zarr_store_run(store, &copy, &err) ||
        zarr_store_read(store, "b", ZARR_STORE_SUFFIX, &end, &value, NULL, &err) ||
        zarr_store_write(store, "b", &end, &value.version, NULL, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_store_free(store), zarr_context_free(ctx);
    return printf("%.6s of %d bytes\n", text, (int)value.bytes) < 0;
}
