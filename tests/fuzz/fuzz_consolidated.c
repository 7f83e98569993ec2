/*
 * fuzz/fuzz_consolidated.c - any bytes as consolidated metadata of either
 * format: the frame, the paths in it, and the documents inside.
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

static void fuzz_map_v3(const struct zr_json *map)
{
    struct zr_group_meta group;

    for (const struct zr_json *v = map->u.children.first; v; v = v->next) {
        fuzz_array(3, v, NULL);
        fuzz_group(3, v, &group);
    }
}

static void fuzz_map_v2(const struct zr_json *map)
{
    struct zr_group_meta group;

    for (const struct zr_json *v = map->u.children.first; v; v = v->next) {
        fuzz_array(2, v, zr_json_get(map, ".zattrs"));
        fuzz_group(2, v, &group);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zr_json_doc doc;
    struct zr_group_meta group = {0};
    const struct zr_json *map = NULL;

    if (fuzz_parse(&doc, data, size)) {
        fuzz_group(3, doc.root, &group);
        if (group.consolidated)
            fuzz_map_v3(group.consolidated);
        if (zr_consolidated_map(&map, 2, doc.root, NULL) == ZARR_OK && map)
            fuzz_map_v2(map);
    }
    zr_json_doc_deinit(&doc);
    return 0;
}
