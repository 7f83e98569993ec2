/*
 * fuzz/fuzz_selection.c - any text as a selection of an array, and as a key. The first
 * byte picks the array's shape. What is accepted stays inside the array: it composes with
 * all of itself, and its shape has the rank it says.
 */
#include <string.h>

#include <zarrc/zarrc.h>

#include "fuzz.h"

static const uint64_t fuzz_shapes[][4] = {{10, 20, 30, 40},
                                          {0, 1, 2, 3},
                                          {INT64_MAX, INT64_MAX, 1, 7},
                                          {UINT64_MAX, 1, 1, 1},
                                          {1, 1, 1, 1}};

static zarr_context *fuzz_ctx;
static zarr_store *fuzz_store;

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_check(zarr_context_create(&fuzz_ctx, NULL, NULL) == ZARR_OK);
    fuzz_check(zarr_store_open(&fuzz_store, fuzz_ctx, "memory:", NULL, NULL) == ZARR_OK);
    return 0;
}

static void fuzz_select(const char *text, int32_t ndim, const uint64_t *shape)
{
    zarr_selection *sel = NULL, *all = NULL, *both = NULL;
    zarr_error err = {0};
    zarr_status st = zarr_selection_parse(&sel, ndim, shape, text, &err);

    if (st != ZARR_OK) {
        fuzz_check(err.message[0] && (st == ZARR_ERR_INVALID || st == ZARR_ERR_LIMIT));
        return;
    }
    fuzz_check(zarr_selection_ndim(sel) >= 0 && zarr_selection_ndim(sel) <= ndim);
    if (zarr_selection_dims(&all, zarr_selection_ndim(sel), zarr_selection_shape(sel), 0,
                            NULL, NULL) == ZARR_OK) {
        fuzz_check(zarr_selection_compose(&both, sel, all, &err) == ZARR_OK);
        fuzz_check(zarr_selection_n_items(both) == zarr_selection_n_items(sel));
    }
    zarr_selection_free(both);
    zarr_selection_free(all);
    zarr_selection_free(sel);
}

/* A key is refused, or holds its value and is listed as it was written. */
static void fuzz_key(const char *key)
{
    char value = 0;
    uint64_t bytes = 1;

    if (zarr_store_put(fuzz_store, key, "x", 1, NULL, NULL) != ZARR_OK)
        return;
    fuzz_check(key[0] && key[0] != '/' && !strstr(key, "//"));
    fuzz_check(strcmp(key, "..") != 0 && strncmp(key, "../", 3) != 0 &&
               !strstr(key, "/../"));
    fuzz_check(zarr_store_get(fuzz_store, key, 0, &value, &bytes, NULL, NULL) ==
                   ZARR_OK &&
               value == 'x');
    fuzz_check(zarr_store_erase(fuzz_store, key, NULL, NULL) == ZARR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    const size_t n = sizeof fuzz_shapes / sizeof *fuzz_shapes;

    if (size < 1 || size > sizeof text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    fuzz_select(text, (int32_t)(data[0] / n % 5), fuzz_shapes[data[0] % n]);
    fuzz_key(text);
    return 0;
}
