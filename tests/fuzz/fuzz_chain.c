/*
 * fuzz/fuzz_chain.c - a list of codecs from metadata: parse, resolve, complete,
 * write, read again, place. The first byte picks format and data type, the second
 * the chunk's shape, the rest is JSON. What is accepted must be written in a form
 * that reads back to the same text.
 */
#include "fuzz.h"
#include "unit/impl/program_text.h"
#include "unit/impl/impl_test.h"

static const char *const fuzz_dtypes[] = {"uint8", "int16", "float32", "complex128",
                                          "bool"};
static const uint64_t fuzz_shapes[][4] = {
    {0}, {12}, {4, 6}, {8, 4, 2}, {1024, 1024, 1024}};

static struct impl_env fuzz_env;

static void fuzz_check(bool ok)
{
    if (!ok)
        __builtin_trap();
}

/* Written, read, written: the same. */
static void fuzz_write_twice(const struct zr_chain *chain, int format)
{
    struct zr_chain *again = NULL;
    struct zr_json_doc doc, doc2;
    const struct zr_chain_parse_options opts = {.format = format};
    struct zr_json *first = NULL;

    if (zr_chain_has_form(chain, format, NULL) != ZARR_OK)
        return;
    zr_json_doc_init(&doc, NULL);
    zr_json_doc_init(&doc2, NULL);
    first = zr_chain_write(&doc, chain, format);
    fuzz_check(first != NULL);
    fuzz_check(zr_chain_parse(&again, &fuzz_env.codec.codecs, first, &opts, NULL, NULL) ==
               ZARR_OK);
    fuzz_check(zr_json_equal(first, zr_chain_write(&doc2, again, format)));
    zr_chain_free(again);
    zr_json_doc_deinit(&doc);
    zr_json_doc_deinit(&doc2);
}

/* What has a form can be written. */
static void fuzz_write_once(const struct zr_chain *chain, int format)
{
    struct zr_json_doc doc;

    zr_json_doc_init(&doc, NULL);
    if (zr_chain_has_form(chain, format, NULL) == ZARR_OK)
        fuzz_check(zr_chain_write(&doc, chain, format) != NULL);
    fuzz_check(zr_chain_show(&doc, chain) != NULL); /* and any can be shown */
    zr_json_doc_deinit(&doc);
}

/* Zarr v3 has no codec of this name. meta/convert.c refuses such a chain before it
 * writes. */
static bool fuzz_v2_only(const struct zr_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct zarr_codec_spec *s = &chain->codec[i];

        if (s->vt->kind == ZARR_CODEC_ARRAY_BYTES &&
            (s->vt->flags & ZARR_CODEC_SPEC_V2) &&
            !zr_codec_spec_lookup(&fuzz_env.codec.codecs, zarr_codec_spec_name(s)))
            return true;
    }
    return false;
}

static void fuzz_place(const struct zr_chain *chain, const struct zr_chain_reps *reps,
                       bool encode)
{
    const struct zr_placement_options opts = {.target_device = ZARR_DEVICE_CPU,
                                              .encode = encode};
    struct zr_program *p = NULL;
    struct zr_str text;
    zarr_status st =
        chain->codec[chain->a2b].structure.shard
            ? zr_program_make_bytes(&p, &fuzz_env.impls, chain, reps, &opts, NULL, NULL)
            : zr_program_make(&p, &fuzz_env.impls, chain, reps, &opts, NULL, NULL);

    fuzz_check(st == ZARR_OK);
    zr_str_init(&text, NULL);
    program_print(p, &text);
    zr_str_deinit(&text);
    zr_program_free(p);
}

static void fuzz_follow(struct zr_chain *chain, int format, uint8_t dtype, uint8_t shape)
{
    struct zr_chain_reps reps = {0};
    zarr_chunk_spec chunk;

    fuzz_check(codec_env_chunk(
                   &chunk, &fuzz_env.codec, fuzz_dtypes[dtype % ZR_COUNT(fuzz_dtypes)],
                   fuzz_shapes[shape % ZR_COUNT(fuzz_shapes)], NULL) == ZARR_OK);
    if (zr_chain_resolve(&reps, chain, &chunk, NULL, NULL, NULL) != ZARR_OK)
        return;
    fuzz_place(chain, &reps, false);
    fuzz_place(chain, &reps, true);
    zr_chain_reps_deinit(&reps);
    fuzz_check(zr_chain_complete(chain, &chunk, NULL) == ZARR_OK);
    if (fuzz_v2_only(chain))
        fuzz_write_once(chain, 3);
    else
        fuzz_write_twice(chain, 3);
    if (format == 2 && chain->a2b == 0)
        fuzz_write_twice(chain, 2);
    else /* meta/convert.c puts them into v2's order, and knows what v2 has no name for */
        fuzz_write_once(chain, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zr_chain *chain = NULL;
    struct zr_chain_parse_options opts = {0};
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;
    zarr_error err = {0};

    if (!zr_impl_count(&fuzz_env.impls))
        fuzz_check(impl_env_open(&fuzz_env, NULL, NULL) == ZARR_OK);
    if (size < 2)
        return 0;
    opts.format = data[0] & 1 ? 2 : 3;
    opts.allow_missing_bytes = data[0] & 2;
    zr_json_doc_init(&doc, NULL);
    if (zr_json_parse(&doc, (const char *)data + 2, size - 2, NULL, NULL) == ZARR_OK) {
        st = zr_chain_parse(&chain, &fuzz_env.codec.codecs, doc.root, &opts, NULL, &err);
        if (st == ZARR_OK)
            fuzz_follow(chain, opts.format, data[0] >> 2, data[1]);
        else
            fuzz_check(err.message[0] != '\0' &&
                       (st == ZARR_ERR_INVALID || st == ZARR_ERR_UNSUPPORTED ||
                        st == ZARR_ERR_LIMIT));
    }
    zr_chain_free(chain);
    zr_json_doc_deinit(&doc);
    return 0;
}
