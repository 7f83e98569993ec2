/*
 * unit/meta/documents.h - an array's document in each format, which a test changes with
 * a patch, and the text expected when it is written; also the registries and options it
 * is read with.
 */
#ifndef ZR_TESTS_META_DOCUMENTS_H
#define ZR_TESTS_META_DOCUMENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/meta/env.h"

#define BYTES_LE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static const char base_v3[] =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[30,20],\"data_type\":"
    "\"int32\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[10,20]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/"
    "\"}},"
    "\"fill_value\":7,\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
    "\"little\"}}]}";
static const char base_v2[] =
    "{\"zarr_format\":2,\"shape\":[30,20],\"chunks\":[10,20],\"dtype\":\"<i4\",\"fill_"
    "value\":7,"
    "\"order\":\"C\",\"filters\":null,\"compressor\":null,\"dimension_separator\":\".\"}";

static struct meta_world world;

static inline int set_up(void **state)
{
    (void)state;
    return meta_world_open(&world, NULL) == ZARR_OK ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    meta_world_close(&world);
    return 0;
}

/* The base document with the members of an object added or replaced. A member "-name":
 * null removes `name`. */
static inline void patch_document(struct zr_json_doc *doc, const char *base,
                                  const char *patch)
{
    struct zr_json_doc over;

    zr_json_doc_init(doc, NULL);
    zr_json_doc_init(&over, NULL);
    assert_int_equal(zr_json_parse(doc, base, strlen(base), NULL, NULL), ZARR_OK);
    assert_int_equal(zr_json_parse(&over, patch, strlen(patch), NULL, NULL), ZARR_OK);
    for (const struct zr_json *v = over.root->u.children.first; v; v = v->next) {
        if (v->key[0] == '-')
            assert_true(zr_json_remove(doc->root, v->key + 1));
        else
            zr_json_set(doc, doc->root, v->key, zr_json_copy(doc, v));
    }
    zr_json_doc_deinit(&over);
}

struct refusal {
    const char *patch;
    zarr_status want;
    const char *says; /* with ZARR_OK: a member of the document written, "key=json" */
};

static inline void check_written(const struct zr_array_meta *m, const struct refusal *r)
{
    const char *equals = r->says ? strchr(r->says, '=') : NULL;
    struct zr_json_doc doc;
    struct zr_json *root = NULL;
    struct zr_str text;
    char key[64] = "";

    zr_json_doc_init(&doc, NULL);
    zr_str_init(&text, NULL);
    assert_int_equal(zr_array_meta_write(m, &doc, &root, NULL), ZARR_OK);
    if (equals) {
        memcpy(key, r->says, (size_t)(equals - r->says));
        zr_json_write(zr_json_get(root, key), 0, &text);
        if (strcmp(zr_str_text(&text), equals + 1) != 0)
            fail_msg("%s: %s is written %s", r->patch, key, zr_str_text(&text));
    }
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
}

#endif
