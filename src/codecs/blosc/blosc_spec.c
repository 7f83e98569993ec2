/*
 * codecs/blosc/blosc_spec.c - blosc (the container of c-blosc 1). The canonical form is
 * that of v3, with shuffle as a word. v3 requires typesize, and v2 does not have it. A
 * missing typesize stays open until the input is known. So does shuffle "auto", which is
 * -1 in numcodecs and zarr-python's default for a missing shuffle: it shuffles the bits
 * of elements of one byte, and the bytes of longer elements. blosc_complete() sets both.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

static const char *const blosc_cnames[] = {"lz4",    "lz4hc", "blosclz", "zstd",
                                           "snappy", "zlib",  NULL};
/* In the order of numcodecs' numbers. The last one is still to be chosen. */
static const char *const blosc_shuffles[] = {"noshuffle", "shuffle", "bitshuffle", "auto",
                                             NULL};
enum {
    BLOSC_WORD_SHUFFLE = 1,
    BLOSC_WORD_AUTO = 3,
    BLOSC_MOST_BLOCK = 715827542 /* BLOSC_MAX_BLOCKSIZE */
};

/* GDAL writes its own option's words, in the same order. */
static const char *const blosc_gdal[] = {"NONE", "BYTE", "BIT"};

/* Reads shuffle as a word of v3 or of GDAL, or as numcodecs' number, which v3 documents
 * may also have. */
static zarr_status blosc_read_shuffle(const zarr_codec_spec *raw, int *shuffle,
                                      zarr_error *err)
{
    int64_t number = 0;
    const char *text = zarr_codec_spec_text(raw, "shuffle");

    for (size_t i = 0; text && i < ZR_COUNT(blosc_gdal); i++)
        if (zr_streq(text, blosc_gdal[i])) {
            *shuffle = (int)i;
            return ZARR_OK;
        }
    if (zarr_codec_spec_i64(raw, "shuffle", &number) != 0)
        return zr_conf_encoder_word(raw, "shuffle", blosc_shuffles, shuffle, err);
    ZR_CHECK(zr_conf_encoder_i64(raw, "shuffle", -1, 2, &number, err));
    *shuffle = number < 0 ? BLOSC_WORD_AUTO : (int)number;
    return ZARR_OK;
}

static zarr_status blosc_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"typesize", "cname",     "clevel",
                                        "shuffle",  "blocksize", NULL};
    struct zr_conf_text t;
    int cname = format == 3 ? 3 : 0;
    int shuffle = format == 3 ? BLOSC_WORD_AUTO : BLOSC_WORD_SHUFFLE;
    int64_t clevel = 5, blocksize = 0, typesize = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "typesize", !zr_conf_is_stored(raw), INT32_MAX,
                                 &typesize, err));
    ZR_CHECK(zr_conf_encoder_word(raw, "cname", blosc_cnames, &cname, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "clevel", 0, 9, &clevel, err));
    ZR_CHECK(blosc_read_shuffle(raw, &shuffle, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "blocksize", 0, BLOSC_MOST_BLOCK, &blocksize, err));
    zr_conf_open(&t, text, cap);
    if (typesize)
        zr_conf_put_i64(&t, "typesize", typesize);
    zr_conf_put_word(&t, "cname", blosc_cnames[cname]);
    zr_conf_put_i64(&t, "clevel", clevel);
    zr_conf_put_word(&t, "shuffle", blosc_shuffles[shuffle]);
    zr_conf_put_i64(&t, "blocksize", blocksize);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* BLOSC_MAX_OVERHEAD is 16, the size of the header. Incompressible input is stored after
 * it. BLOSC_MAX_BUFFERSIZE is INT_MAX - 16. */
static zarr_status blosc_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    if (in->exact && in->n_bytes > INT32_MAX - 16) /* a bound need not be reached */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "blosc: chunks have at most 2147483631 bytes, not %" PRIu64,
                       in->n_bytes);
    return zr_spec_compressed(spec, in, out, 16, err);
}

enum {
    BLOSC_NO_NUMBER = -2
};

/* Writes the configuration with this typesize and shuffle. typesize 0 is omitted. shuffle
 * is `word`, or `number` if word is NULL, and omitted if number is BLOSC_NO_NUMBER. */
static void blosc_put(const zarr_codec_spec *spec, int64_t typesize, const char *word,
                      int64_t number, char *text, size_t cap, size_t *text_bytes)
{
    struct zr_conf_text t;
    int64_t clevel = 0, blocksize = 0;

    (void)zarr_codec_spec_i64(spec, "clevel", &clevel);
    (void)zarr_codec_spec_i64(spec, "blocksize", &blocksize);
    zr_conf_open(&t, text, cap);
    if (typesize)
        zr_conf_put_i64(&t, "typesize", typesize);
    zr_conf_put_word(&t, "cname", zarr_codec_spec_text(spec, "cname"));
    zr_conf_put_i64(&t, "clevel", clevel);
    if (word)
        zr_conf_put_word(&t, "shuffle", word);
    else if (number != BLOSC_NO_NUMBER)
        zr_conf_put_i64(&t, "shuffle", number);
    zr_conf_put_i64(&t, "blocksize", blocksize);
    zr_conf_close(&t, text_bytes);
}

static zarr_status blosc_complete(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  const zarr_chunk_spec *array, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    const char *shuffle = zarr_codec_spec_text(spec, "shuffle");
    int64_t typesize = in->item_bytes_hint ? in->item_bytes_hint : 1;

    ZR_UNUSED(array, err);
    (void)zarr_codec_spec_i64(spec, "typesize", &typesize);
    if (zr_streq(shuffle, blosc_shuffles[BLOSC_WORD_AUTO]))
        shuffle = typesize == 1 ? "bitshuffle" : "shuffle";
    blosc_put(spec, typesize, shuffle, 0, text, cap, text_bytes);
    return ZARR_OK;
}

/* v2 has no typesize, and its shuffle is a number. v3 has no word for the choice that is
 * left to the array: zarr-python takes a missing shuffle for it. */
static zarr_status blosc_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                               char *text, size_t cap, size_t *text_bytes,
                               zarr_error *err)
{
    const char *shuffle = zarr_codec_spec_text(spec, "shuffle");
    const bool is_auto = zr_streq(shuffle, blosc_shuffles[BLOSC_WORD_AUTO]);
    int64_t number = 0, typesize = 0;

    ZR_UNUSED(err);
    *text_bytes = 0;
    (void)zarr_codec_spec_i64(spec, "typesize", &typesize);
    if (how->format == 3 && is_auto)
        blosc_put(spec, typesize, NULL, BLOSC_NO_NUMBER, text, cap, text_bytes);
    if (how->format == 3)
        return ZARR_OK;
    while (number < BLOSC_WORD_AUTO && !zr_streq(shuffle, blosc_shuffles[number]))
        number++;
    blosc_put(spec, 0, NULL, number == BLOSC_WORD_AUTO ? -1 : number, text, cap,
              text_bytes);
    return ZARR_OK;
}

static const char *const blosc_aliases[] = {"numcodecs.blosc", NULL};
const zarr_codec_spec_vtable zr_spec_blosc = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "blosc",
    .aliases = blosc_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = blosc_canonical,
    .resolve = blosc_resolve,
    .complete = blosc_complete,
    .spell = blosc_spell,
};
