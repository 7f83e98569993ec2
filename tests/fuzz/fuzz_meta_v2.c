/* fuzz/fuzz_meta_v2.c - any bytes as a .zarray or .zgroup, its member ".zattrs" as the
 * attributes. */
#include "fuzz.h"
#include "fuzz_meta.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_meta_open();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zr_json_doc doc;
    struct zr_group_meta group;

    if (fuzz_parse(&doc, data, size)) {
        fuzz_array(2, doc.root, zr_json_get(doc.root, ".zattrs"));
        fuzz_group(2, doc.root, &group);
    }
    zr_json_doc_deinit(&doc);
    return 0;
}
