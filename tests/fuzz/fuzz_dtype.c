/*
 * fuzz/fuzz_dtype.c - a line with the name of a data type, then the JSON text of
 * an element. What is read is printed and read again: the bytes must be the
 * same, for every type and also for bytes that no text gave.
 */
#include "fuzz.h"
#include "fuzz_meta.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_meta_open();
    return 0;
}

/* Text says only true and false of a byte: of a bool, or of whether an optional element
 * has a value. A struct may hold such bytes. */
static bool fuzz_has_bool(const zarr_dtype *t)
{
    bool found =
        zarr_dtype_kind(t) == ZARR_KIND_BOOL || zarr_dtype_kind(t) == ZARR_KIND_OPTIONAL;

    for (uint64_t i = 0; i < zarr_dtype_n_fields(t) && !found; i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT, again = ZARR_DTYPE_FIELD_INIT;

        fuzz_must(zarr_dtype_field_at(t, i, &f, NULL) == ZARR_OK);
        fuzz_must(zarr_dtype_field_find(t, f.name, &again, NULL) == ZARR_OK);
        fuzz_must(again.offset == f.offset && again.dtype == f.dtype);
        found = fuzz_has_bool(f.dtype);
    }
    return found;
}

static void fuzz_element(const zarr_dtype *t, const uint8_t *element, size_t bytes,
                         bool parsed)
{
    const bool loose = fuzz_has_bool(t) && !parsed;
    uint8_t *again = malloc(bytes);
    char *text = NULL;
    size_t n = 0;

    if (zarr_dtype_print(t, element, NULL, 0, &n, NULL) == ZARR_OK) {
        text = malloc(n + 1);
        fuzz_must(zarr_dtype_print(t, element, text, n + 1, &n, NULL) == ZARR_OK);
        fuzz_must(strlen(text) == n);
        fuzz_must(zarr_dtype_parse(t, text, again, NULL) == ZARR_OK);
        fuzz_must(loose ||
                  (zarr_dtype_variable(t) ? zarr_dtype_compare(t, element, again) == 0
                                          : memcmp(element, again, bytes) == 0));
        zarr_dtype_release(t, again);
    }
    free(text);
    free(again);
}

static void fuzz_type(const zarr_dtype *t, const char *json, size_t json_bytes)
{
    size_t bytes = (size_t)zarr_dtype_item_bytes(t);
    const char *name = zarr_dtype_name(t) ? zarr_dtype_name(t) : zarr_dtype_v2(t);
    const zarr_dtype *same = NULL;
    uint8_t *element = calloc(1, bytes);

    fuzz_must(zr_dtype_find(&fuzz_world.dtypes, name, &same, NULL, NULL) == ZARR_OK);
    fuzz_must(same == t);
    if (zarr_dtype_parse(t, json, element, NULL) == ZARR_OK)
        fuzz_element(t, element, bytes, true);
    zarr_dtype_release(t, element);
    if (!zarr_dtype_variable(t)) { /* else these would be addresses */
        memcpy(element, json, ZR_MIN(json_bytes, bytes));
        zr_dtype_unpad(t, element, 1); /* as elements are in memory */
        fuzz_element(t, element, bytes, false);
    }
    free(element);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1), *json;
    const zarr_dtype *t = NULL;

    memcpy(name, data, size);
    name[size] = '\0';
    json = strchr(name, '\n');
    if (json) {
        *json++ = '\0';
        if (zr_dtype_find(&fuzz_world.dtypes, name, &t, NULL, NULL) == ZARR_OK &&
            zarr_dtype_item_bytes(t) <= 4096)
            fuzz_type(t, json, size - (size_t)(json - name));
    }
    free(name);
    return 0;
}
