/*
 * fuzz/fuzz_json.c - any bytes as JSON text. What is read is written, compact
 * and indented, and read again: it must be the same value, except that bare
 * NaN tokens come back as strings.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "json/json.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void read_again(const struct zr_json_doc *doc, unsigned indent)
{
    struct zr_json_doc again;
    struct zr_str text;
    zarr_limits limits = {.json_depth = 1024, .string_bytes = 1u << 30};

    zr_json_doc_init(&again, NULL);
    zr_str_init(&text, NULL);
    zr_json_write(doc->root, indent, &text);
    must(!text.failed);
    must(zr_json_parse(&again, text.ptr, text.bytes, &limits, NULL) == ZARR_OK);
    must(!again.nan_tokens);
    must(doc->nan_tokens || zr_json_equal(doc->root, again.root));
    zr_str_deinit(&text);
    zr_json_doc_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zr_json_doc doc;
    char *text = malloc(size ? size : 1);
    char small[16];
    zarr_error err;

    memcpy(text, data, size);
    zr_json_doc_init(&doc, NULL);
    if (zr_json_parse(&doc, text, size, NULL, &err) == ZARR_OK) {
        must(zr_json_equal(doc.root, zr_json_copy(&doc, doc.root)));
        must(zr_json_excerpt(doc.root, small, sizeof small) != NULL);
        must(zr_utf8_is_valid(small, strnlen(small, sizeof small)));
        read_again(&doc, 0);
        read_again(&doc, 2);
    }
    zr_json_doc_deinit(&doc);
    free(text);
    return 0;
}
