/*
 * unit/chain/test_parse.c - which codec lists are valid chains, the errors of the
 * others, and how a chain is written back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/chain/chain_test.h"

static struct codec_env env;

static int open_env(void **state)
{
    ZR_UNUSED(state);
    return codec_env_open(&env, NULL, NULL) == ZARR_OK ? 0 : -1;
}

static int close_env(void **state)
{
    ZR_UNUSED(state);
    codec_env_close(&env);
    return 0;
}

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define INDEX "\"index_codecs\":[" BYTES ",{\"name\":\"crc32c\"}]"

/* Read in `format`, written in format 3 and, if v2 is given, in format 2. */
static const struct {
    int format;
    const char *text, *v3, *v2;
} good[] = {
    {3, "[" BYTES "]", "[" BYTES "]", "[{\"id\":\"bytes\",\"endian\":\"little\"}]"},
    {3, "[\"bytes\"]", "[{\"name\":\"bytes\"}]", NULL},
    {3, "[{\"name\":\"bytes\",\"configuration\":null}]", "[{\"name\":\"bytes\"}]", NULL},
    {3, "[{\"name\":\"endian\",\"configuration\":{\"endian\":\"big\"}}]",
     "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", NULL},
    {3, "[{\"name\":\"bytes\",\"must_understand\":false}]", "[{\"name\":\"bytes\"}]",
     NULL},
    {3, "[\"bytes\",\"zstd\"]",
     "[{\"name\":\"bytes\"},{\"name\":\"zstd\",\"configuration\":{\"level\":0,"
     "\"checksum\":false}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"zstd\",\"level\":0}]"},
    {3,
     "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"checksum\":true,\"level\":-7}}]",
     "[{\"name\":\"bytes\"},{\"name\":\"zstd\",\"configuration\":{\"level\":-7,"
     "\"checksum\":true}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"zstd\",\"level\":-7,\"checksum\":true}]"},
    {3, "[\"bytes\",\"gzip\"]",
     "[{\"name\":\"bytes\"},{\"name\":\"gzip\",\"configuration\":{\"level\":5}}]", NULL},
    {3,
     "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":3,"
     "\"shuffle\":2,\"typesize\":4,\"blocksize\":0}}]",
     "[{\"name\":\"bytes\"},{\"name\":\"blosc\",\"configuration\":{\"typesize\":4,"
     "\"cname\":\"lz4\",\"clevel\":3,\"shuffle\":\"bitshuffle\",\"blocksize\":0}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":3,\"shuffle\":2,"
     "\"blocksize\":0}]"},
    {3, "[\"bytes\",\"numcodecs.zlib\",\"crc32c\"]",
     "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}"
     ","
     "{\"name\":\"crc32c\"}]",
     "[{\"id\":\"bytes\"},{\"id\":\"zlib\",\"level\":1},{\"id\":\"crc32c\"}]"},
    {3, "[\"bytes\",{\"name\":\"numcodecs.zstd\",\"configuration\":{\"level\":3}}]",
     "[{\"name\":\"bytes\"},{\"name\":\"zstd\",\"configuration\":{\"level\":3,"
     "\"checksum\":false}}]",
     NULL},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0,2]}},\"bytes\"]",
     "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0,2]}},{\"name\":"
     "\"bytes\"}]",
     NULL},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}},\"bytes\"]",
     "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}},{\"name\":\"bytes\"}"
     "]",
     NULL},
    {3,
     "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"int32\"}}," BYTES "]",
     "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\",\"astype\":"
     "\"<i4\"}}," BYTES "]",
     NULL},
    {3,
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],"
     "\"codecs\":["
     "\"bytes\"]," INDEX "}}]",
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],"
     "\"codecs\":[{"
     "\"name\":\"bytes\"}]," INDEX ",\"index_location\":\"end\"}}]",
     NULL},
    {3,
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":["
     "{"
     "\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":["
     "\"bytes\"]," INDEX "}}]," INDEX ",\"index_location\":\"start\"}},\"gzip\"]",
     "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":["
     "{"
     "\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],\"codecs\":[{"
     "\"name\":\"bytes\"}]," INDEX ",\"index_location\":\"end\"}}]," INDEX
     ",\"index_location\":\"start\"}},{\"name\":\"gzip\",\"configuration\":{\"level\":5}}"
     "]",
     NULL},
    {2, "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"blosc\"}]",
     "[" BYTES ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
     "\"shuffle\":\"shuffle\",\"blocksize\":0}}]",
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"blosc\",\"cname\":\"lz4\","
     "\"clevel\":5,\"shuffle\":1,\"blocksize\":0}]"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"blosc\",\"shuffle\":-1,\"cname\":\"zstd\",\"x\":1}]",
     "[{\"name\":\"bytes\"},{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\","
     "\"clevel\":5,\"blocksize\":0}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"blosc\",\"cname\":\"zstd\",\"clevel\":5,\"shuffle\":-"
     "1,"
     "\"blocksize\":0}]"},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"delta\",\"dtype\":\">i4\","
     "\"astype\":"
     "\"|i1\"},{\"id\":\"shuffle\"},{\"id\":\"lz4\"},{\"id\":\"gzip\"}]",
     "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\",\"astype\":\"|"
     "i1\"}}"
     ",{\"name\":\"bytes\"},{\"name\":"
     "\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}},{\"name\":"
     "\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}},{\"name\":\"gzip\","
     "\"configuration\":{\"level\":1}}]",
     "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"delta\",\"dtype\":\">i4\","
     "\"astype\":"
     "\"|i1\"},{\"id\":\"shuffle\",\"elementsize\":4},{\"id\":\"lz4\",\"acceleration\":1}"
     ",{"
     "\"id\":\"gzip\",\"level\":1}]"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"gzip\",\"level\":-1},{\"id\":\"zlib\",\"level\":-1}]",
     "[{\"name\":\"bytes\"},{\"name\":\"gzip\",\"configuration\":{\"level\":6}},{"
     "\"name\":"
     "\"numcodecs.zlib\",\"configuration\":{\"level\":6}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"gzip\",\"level\":6},{\"id\":\"zlib\",\"level\":6}"
     "]"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"crc32\",\"location\":\"start\"},{\"id\":"
     "\"adler32\",\"location\":\"end\"},{\"id\":\"fletcher32\"},{\"id\":"
     "\"jenkins_lookup3\",\"prefix\":[7,8]},{\"id\":\"base64\"},{\"id\":\"bz2\"}]",
     "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.crc32\",\"configuration\":{"
     "}},{\"name\":"
     "\"numcodecs.adler32\",\"configuration\":{\"location\":\"end\"}},{\"name\":"
     "\"numcodecs.fletcher32\",\"configuration\":{}},{\"name\":\"numcodecs.jenkins_"
     "lookup3\","
     "\"configuration\":{\"initval\":0,\"prefix\":[7,8]}},{\"name\":"
     "\"numcodecs.base64\",\"configuration\":{}},{\"name\":\"numcodecs.bz2\","
     "\"configuration\":{"
     "\"level\":1}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"crc32\"},{\"id\":\"adler32\",\"location\":"
     "\"end\"},{\"id\":\"fletcher32\"},{\"id\":\"jenkins_lookup3\",\"initval\":0,"
     "\"prefix\":[7,8]},{\"id\":\"base64\"},{\"id\":\"bz2\",\"level\":1}]"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"lzma\"},{\"id\":\"lzma\",\"format\":3,"
     "\"filters\":[{\"dist\":2,\"id\":3},{\"id\":33,\"preset\":2147483657}]}]",
     "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.lzma\",\"configuration\":{"
     "\"format\":1,\"check\":-1,\"preset\":null,\"filters\":null}},{\"name\":"
     "\"numcodecs.lzma\",\"configuration\":{\"format\":3,\"check\":-1,\"preset\":null,"
     "\"filters\":[{\"id\":3,\"dist\":2},{\"id\":33,\"preset\":2147483657}]}}]",
     NULL},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"zfpy\",\"tolerance\":0.5,"
     "\"compression_kwargs\":{\"tolerance\":0.5}}]",
     "[{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4,\"tolerance\":0.5,"
     "\"rate\":-1,\"precision\":-1}}]",
     NULL},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"end_bit\":5}}]",
     "[{\"name\":\"packbits\",\"configuration\":{\"padding_encoding\":\"none\","
     "\"last_bit\":5}}]",
     NULL},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"fixedscaleoffset\",\"offset\":10,"
     "\"scale\":0.10,\"dtype\":\">f8\",\"astype\":\"<i2\",\"x\":1},{\"id\":\"delta\","
     "\"dtype\":\"<i2\"},{\"id\":\"zlib\"}]",
     "[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"scale\":0.10,"
     "\"offset\":10,\"dtype\":\"<f8\",\"astype\":\"<i2\"}},{\"name\":\"numcodecs.delta\","
     "\"configuration\":{\"dtype\":\"<i2\",\"astype\":\"<i2\"}}," BYTES
     ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}]",
     NULL},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"bitround\",\"keepbits\":3},"
     "{\"id\":\"quantize\",\"digits\":2,\"dtype\":\"float32\",\"astype\":\"f2\"}]",
     "[{\"name\":\"numcodecs.bitround\",\"configuration\":{\"keepbits\":3}},{\"name\":"
     "\"numcodecs.quantize\",\"configuration\":{\"digits\":2,\"dtype\":\"<f4\","
     "\"astype\":"
     "\"<f2\"}}," BYTES "]",
     "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"bitround\",\"keepbits\":3},"
     "{\"id\":\"quantize\",\"digits\":2,\"dtype\":\"<f4\",\"astype\":\"<f2\"}]"},
    {3,
     "[{\"name\":\"numcodecs.astype\",\"configuration\":{\"encode_dtype\":\"<f4\","
     "\"decode_dtype\":\"<f8\"}},{\"name\":\"bytes\",\"configuration\":{\"endian\":"
     "\"big\"}"
     "}]",
     "[{\"name\":\"numcodecs.astype\",\"configuration\":{\"encode_dtype\":\"<f4\","
     "\"decode_dtype\":\"<f8\"}},{\"name\":\"bytes\",\"configuration\":{\"endian\":"
     "\"big\"}"
     "}]",
     "[{\"id\":\"numcodecs.astype\",\"encode_dtype\":\">f4\",\"decode_dtype\":\">f8\"},"
     "{\"id\":\"bytes\",\"endian\":\"big\"}]"},
    {3,
     "[{\"name\":\"reshape\",\"configuration\":{\"shape\":[[0,1],-1, 3]}},"
     "\"zarrs.squeeze\",{\"name\":\"numcodecs.bitround\",\"configuration\":{\"keepbits\":"
     "4}"
     "},\"bytes\"]",
     "[{\"name\":\"reshape\",\"configuration\":{\"shape\":[[0,1],-1,3]}},{\"name\":"
     "\"zarrs.squeeze\"},{\"name\":\"numcodecs.bitround\",\"configuration\":{"
     "\"keepbits\":4}},"
     "{\"name\":\"bytes\"}]",
     NULL},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"crc32c\",\"location\":\"start\"}]",
     "[{\"name\":\"bytes\"},{\"name\":\"numcodecs.crc32c\",\"configuration\":{"
     "\"location\":"
     "\"start\"}}]",
     "[{\"id\":\"bytes\"},{\"id\":\"crc32c\",\"location\":\"start\"}]"},
};

static void reads_and_writes(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(good); i++) {
        struct zr_chain *chain = NULL, *again = NULL;
        zarr_error err = {0};
        char text[2048];

        env.stored = true; /* unknown members of v2 are ignored */
        if (codec_env_parse(&chain, &env, good[i].format, good[i].text, NULL, &err) !=
            ZARR_OK)
            fail_msg("%s: %s", good[i].text, err.message);
        assert_true(codec_env_write(chain, 3, text, sizeof text));
        assert_string_equal(text, good[i].v3);
        /* The text written can be parsed and is canonical. */
        env.stored = false;
        if (codec_env_parse(&again, &env, 3, text, NULL, &err) != ZARR_OK)
            fail_msg("%s: %s", text, err.message);
        assert_true(codec_env_write(again, 3, text, sizeof text));
        assert_string_equal(text, good[i].v3);
        if (good[i].v2) {
            assert_true(codec_env_write(chain, 2, text, sizeof text));
            assert_string_equal(text, good[i].v2);
        }
        zr_chain_free(chain);
        zr_chain_free(again);
    }
}

/* A chain that a format cannot express is not written, rather than written with another
 * meaning. */
static void writes_no_lies(void **state)
{
    static const struct {
        int from, to;
        const char *text;
    } cases[] = {
        {3, 2,
         "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],"
         "\"codecs\":["
         "\"bytes\"]," INDEX "}}]"},
        {2, 3,
         "[{\"id\":\"bytes\"},{\"id\":\"zlib\"},{\"id\":\"delta\",\"dtype\":\"|u1\"}]"},
        {2, 3,
         "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"delta\",\"dtype\":\">i4\"}"
         "]"},
        {2, 3,
         "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"astype\",\"encode_dtype\":"
         "\"<f4\",\"decode_dtype\":\">f8\"},{\"id\":\"delta\",\"dtype\":\">f4\"}]"},
        {2, 3,
         "[{\"id\":\"bytes\"},{\"id\":\"zlib\"},{\"id\":\"bitround\",\"keepbits\":"
         "3}]"},
    };

    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        struct zr_chain *chain = NULL;
        char text[1024];

        assert_int_equal(
            codec_env_parse(&chain, &env, cases[i].from, cases[i].text, NULL, NULL),
            ZARR_OK);
        assert_int_equal(zr_chain_has_form(chain, cases[i].to, NULL),
                         ZARR_ERR_UNSUPPORTED);
        assert_int_equal(zr_chain_has_form(chain, cases[i].from, NULL), ZARR_OK);
        assert_false(codec_env_write(chain, cases[i].to, text, sizeof text));
        assert_true(codec_env_write(chain, cases[i].from, text, sizeof text));
        zr_chain_free(chain);
    }
}

#define SHARD(members) "[{\"name\":\"sharding_indexed\",\"configuration\":{" members "}}]"

static const struct {
    int format;
    const char *text;
    zarr_status status;
    const char *says;
} bad[] = {
    {3, "{}", ZARR_ERR_INVALID, "codecs: a list is expected, not {}"},
    {3, "[]", ZARR_ERR_INVALID, "an array->bytes codec such as"},
    {3, "[\"zstd\"]", ZARR_ERR_INVALID, "no array->bytes codec"},
    {3, "[\"bytes\",\"bytes\"]", ZARR_ERR_INVALID, "codecs[1]: \"bytes\" takes an array"},
    {3, "[\"bytes\",{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}]",
     ZARR_ERR_INVALID, "codecs[1]: \"transpose\" takes an array"},
    {3, "[\"bytes\",\"zstd\",\"bytes\"]", ZARR_ERR_INVALID, "codecs[2]"},
    {3, "[7]", ZARR_ERR_INVALID, "codecs[0]: a codec is an object or a name, not 7"},
    {3, "[\"a\\u0000b\"]", ZARR_ERR_INVALID, "NUL"},
    {3, "[{\"configuration\":{}}]", ZARR_ERR_INVALID, "name is missing"},
    {3, "[{\"name\":\"bytes\",\"config\":{}}]", ZARR_ERR_INVALID,
     "unknown member \"config\""},
    {3, "[{\"name\":\"bytes\",\"must_understand\":0}]", ZARR_ERR_INVALID,
     "must_understand"},
    {3, "[{\"name\":\"bytes\",\"configuration\":[]}]", ZARR_ERR_INVALID,
     "configuration is [], must be an object"},
    {3, "[\"bytes\",\"nope\"]", ZARR_ERR_UNSUPPORTED,
     "codecs[1]: codec \"nope\" is unknown"},
    {3, "[\"bytes\",{\"name\":\"nope\",\"must_understand\":false}]", ZARR_ERR_UNSUPPORTED,
     "codec \"nope\" is unknown"},
    {3, "[\"bytes\",\"lz4\"]", ZARR_ERR_UNSUPPORTED, "\"numcodecs.lz4\""},
    {3, "[\"bytes\",\"bz2\"]", ZARR_ERR_UNSUPPORTED, "\"numcodecs.bz2\""},
    {3, "[\"bytes\",\"numcodecs.bz3\"]", ZARR_ERR_UNSUPPORTED, "numcodecs.bz3"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"bz2\",\"level\":0}]", ZARR_ERR_INVALID,
     "bz2: level is 0, must be an integer from 1 to 9"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"crc32\",\"location\":\"middle\"}]",
     ZARR_ERR_INVALID, "crc32: location is \"middle\", must be one of \"end\" \"start\""},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"jenkins_lookup3\",\"initval\":-1}]",
     ZARR_ERR_INVALID, "jenkins_lookup3: initval is -1"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"jenkins_lookup3\",\"prefix\":\"a\"}]",
     ZARR_ERR_INVALID, "jenkins_lookup3: prefix is \"a\", must be null or a list"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"jenkins_lookup3\",\"prefix\":[1,256]}]",
     ZARR_ERR_INVALID, "jenkins_lookup3: prefix[1] is 256"},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"padding_encoding\":\"byte\"}}]",
     ZARR_ERR_INVALID, "packbits: padding_encoding is \"byte\", must be one of \"none\""},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"first_bit\":4,\"last_bit\":3}}]",
     ZARR_ERR_INVALID, "packbits: last_bit is 3, must not be less than first_bit, 4"},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"first_bit\":1,\"start_bit\":1}}]",
     ZARR_ERR_INVALID, "first_bit and start_bit name the same member"},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"last_bit\":64}}]", ZARR_ERR_INVALID,
     "packbits: last_bit is 64, must be an integer from 0 to 63"},
    {3, "[{\"name\":\"packbits\",\"configuration\":{\"bits\":1}}]", ZARR_ERR_INVALID,
     "packbits: unknown member \"bits\""},
    {3, "[\"zfp\"]", ZARR_ERR_INVALID, "zfp: mode is required"},
    {3, "[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"best\"}}]", ZARR_ERR_INVALID,
     "zfp: mode is \"best\", must be one of \"expert\""},
    {3, "[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\"}}]",
     ZARR_ERR_INVALID, "zfp: rate is required by mode \"fixed_rate\""},
    {3, "[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_rate\",\"rate\":0}}]",
     ZARR_ERR_INVALID, "zfp: rate is 0, must be a finite number above 0"},
    {3,
     "[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"fixed_accuracy\",\"tolerance\":"
     "-1}}]",
     ZARR_ERR_INVALID, "zfp: tolerance is -1, must be a finite number, not below 0"},
    {3,
     "[{\"name\":\"zfp\",\"configuration\":{\"mode\":\"expert\",\"minbits\":9,"
     "\"maxbits\":8,\"maxprec\":1,\"minexp\":0}}]",
     ZARR_ERR_INVALID, "zfp: minbits is 9, must be at most maxbits"},
    {3, "[{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":6}}]",
     ZARR_ERR_INVALID, "zfpy: mode is 6, must be an integer from 1 to 5"},
    {2, "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"zfpy\"}]", ZARR_ERR_UNSUPPORTED,
     "codecs[1]: \"zfpy\" takes little-endian elements only"},
    {2, "[{\"id\":\"bytes\",\"endian\":\"little\"},{\"id\":\"zlib\"},{\"id\":\"zfpy\"}]",
     ZARR_ERR_UNSUPPORTED,
     "codecs[1]: \"zlib\" gives bytes, but \"zfpy\" after it takes an array"},
    {2,
     "[{\"id\":\"bytes\",\"endian\":\"big\"},{\"id\":\"delta\",\"dtype\":\"<f4\"},"
     "{\"id\":\"zfpy\"}]",
     ZARR_ERR_UNSUPPORTED, "codecs[1]: \"delta\" before \"zfpy\" names a byte order"},
    {3, "[{\"name\":\"numcodecs.pcodec\",\"configuration\":{\"level\":13}}]",
     ZARR_ERR_INVALID, "pcodec: level is 13, must be an integer from 0 to 12"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"szip\",\"mask\":1}]", ZARR_ERR_UNSUPPORTED,
     "codec \"szip\" is refused: NCZarr takes"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"format\":4}]", ZARR_ERR_INVALID,
     "lzma: format is 4, must be an integer from 1 to 3"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"format\":3}]", ZARR_ERR_INVALID,
     "lzma: format 3 (raw) needs filters"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"check\":3}]", ZARR_ERR_INVALID,
     "lzma: check is 3, must be one of -1 0 1 4 10"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"format\":2,\"check\":4}]",
     ZARR_ERR_INVALID, "lzma: check is 4, only format 1"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"preset\":10}]", ZARR_ERR_INVALID,
     "lzma: preset is 10"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":{}}]", ZARR_ERR_INVALID,
     "lzma: filters is {}, must be null or a list of 1 to 4 objects"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":[{\"id\":99}]}]",
     ZARR_ERR_INVALID, "lzma: filters[0].id is 99"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":[{\"id\":3},{\"id\":33,"
     "\"dist\":1}]}]",
     ZARR_ERR_INVALID, "lzma: filters[1].dist is 1"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":[{\"id\":33,\"lc\":4,"
     "\"lp\":1}]}]",
     ZARR_ERR_INVALID, "lzma: filters[0]: lc and lp are 5 together"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":[{\"id\":3}]}]",
     ZARR_ERR_INVALID, "lzma: the last of filters must be LZMA1 or LZMA2"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"filters\":[{\"id\":33},{\"id\":33}]}]",
     ZARR_ERR_INVALID, "lzma: filters[0] must be the last one"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"preset\":1,\"filters\":[{\"id\":33}]"
     "}]",
     ZARR_ERR_INVALID, "lzma: preset and filters exclude each other"},
    {2,
     "[{\"id\":\"bytes\"},{\"id\":\"lzma\",\"format\":2,\"filters\":[{\"id\":33}]"
     "}]",
     ZARR_ERR_INVALID, "lzma: format 2 takes LZMA1"},
    {3, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"middle\"}}]",
     ZARR_ERR_INVALID, "bytes: endian is \"middle\", must be one of \"little\" \"big\""},
    {3, "[{\"name\":\"bytes\",\"configuration\":{\"order\":1}}]", ZARR_ERR_INVALID,
     "bytes: unknown member \"order\""},
    {3, "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":23}}]",
     ZARR_ERR_INVALID, "zstd: level is 23, must be an integer from -131072 to 22"},
    {3, "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":1.5}}]",
     ZARR_ERR_INVALID, "zstd: level"},
    {3, "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"checksum\":1}}]",
     ZARR_ERR_INVALID, "zstd: checksum is 1, must be true or false"},
    {3, "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":-1}}]",
     ZARR_ERR_INVALID, "gzip: level"},
    {3, "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz5\"}}]",
     ZARR_ERR_INVALID, "blosc: cname is \"lz5\""},
    {3, "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"shuffle\":3}}]",
     ZARR_ERR_INVALID, "blosc: shuffle is 3"},
    {3, "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"typesize\":0}}]",
     ZARR_ERR_INVALID, "blosc: typesize is 0"},
    {3, "[\"bytes\",{\"name\":\"blosc\",\"configuration\":{\"clevel\":10}}]",
     ZARR_ERR_INVALID, "blosc: clevel is 10"},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2]}},\"bytes\"]",
     ZARR_ERR_INVALID, "permutation"},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,1]}},\"bytes\"]",
     ZARR_ERR_INVALID, "permutation"},
    {3, "[{\"name\":\"transpose\",\"configuration\":{\"order\":\"R\"}},\"bytes\"]",
     ZARR_ERR_INVALID, "permutation"},
    {3, "[\"transpose\",\"bytes\"]", ZARR_ERR_INVALID, "permutation"},
    {3, "[{\"name\":\"numcodecs.delta\",\"configuration\":{}},\"bytes\"]",
     ZARR_ERR_INVALID, "delta: dtype"},
    {3,
     "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<c32\"}},\"bytes\"]",
     ZARR_ERR_UNSUPPORTED, "<c32"},
    {3, "[\"sharding_indexed\"]", ZARR_ERR_INVALID,
     "chunk_shape is nothing, must be a list"},
    {3, SHARD("\"chunk_shape\":[2],\"codecs\":[\"bytes\"]"), ZARR_ERR_INVALID,
     "sharding_indexed: index_codecs: a list is expected, not nothing"},
    {3, SHARD("\"chunk_shape\":[0],\"codecs\":[\"bytes\"]," INDEX), ZARR_ERR_INVALID,
     "chunk_shape[0]"},
    {3, SHARD("\"chunk_shape\":[-1],\"codecs\":[\"bytes\"]," INDEX), ZARR_ERR_INVALID,
     "chunk_shape[0]"},
    {3, SHARD("\"chunk_shape\":[2],\"codecs\":[\"bytes\"],\"x\":0," INDEX),
     ZARR_ERR_INVALID, "unknown member \"x\""},
    {3,
     SHARD(
         "\"chunk_shape\":[2],\"codecs\":[\"bytes\"],\"index_location\":\"mid\"," INDEX),
     ZARR_ERR_INVALID, "index_location"},
    {3, SHARD("\"chunk_shape\":[2],\"codecs\":[\"bytes\",\"nope\"]," INDEX),
     ZARR_ERR_UNSUPPORTED, "codecs[0]: sharding_indexed: codecs[1]: codec \"nope\""},
    {3,
     SHARD(
         "\"chunk_shape\":[2],\"codecs\":[\"bytes\"],\"index_codecs\":[{\"name\":"
         "\"sharding_"
         "indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":[\"bytes\"]," INDEX
         "}}]"),
     ZARR_ERR_INVALID, "an index cannot be sharded"},
    {2, "[\"bytes\"]", ZARR_ERR_INVALID, "a codec is an object, not \"bytes\""},
    {2, "[{\"name\":\"bytes\"}]", ZARR_ERR_INVALID, "id is missing"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"pickle\"}]", ZARR_ERR_UNSUPPORTED, "pickle"},
    {2, "[{\"id\":\"bytes\"},{\"id\":\"numcodecs.zlib\"}]", ZARR_ERR_UNSUPPORTED,
     "unknown"},
    {2, "[{\"id\":\"sharding_indexed\"}]", ZARR_ERR_UNSUPPORTED, "sharding_indexed"},
};

static void refuses(void **state)
{
    ZR_UNUSED(state);
    for (size_t i = 0; i < ZR_COUNT(bad); i++) {
        struct zr_chain *chain = NULL;
        zarr_error err = {0};
        zarr_status st =
            codec_env_parse(&chain, &env, bad[i].format, bad[i].text, NULL, &err);

        if (st != bad[i].status || !strstr(err.message, bad[i].says))
            fail_msg("%s: status %d, \"%s\"; expected %d, \"%s\"", bad[i].text, st,
                     err.message, bad[i].status, bad[i].says);
        assert_null(chain);
    }
}

static void limits_name_themselves(void **state)
{
    const zarr_limits few = {.codecs = 3}, flat = {.shard_depth = 1};
    struct zr_chain *chain = NULL;
    zarr_error err = {0};

    ZR_UNUSED(state);
    assert_int_equal(codec_env_parse(&chain, &env, 3,
                                     "[\"bytes\",\"zstd\",\"zstd\",\"zstd\"]", &few,
                                     &err),
                     ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "limit codecs"));
    assert_int_equal(
        codec_env_parse(&chain, &env, 3,
                        SHARD("\"chunk_shape\":[2],\"codecs\":[\"bytes\"]," INDEX), &few,
                        &err),
        ZARR_ERR_LIMIT);
    assert_int_equal(
        codec_env_parse(
            &chain, &env, 3,
            SHARD("\"chunk_shape\":[2],\"codecs\":" SHARD(
                "\"chunk_shape\":[1],\"codecs\":[\"bytes\"]," INDEX) "," INDEX),
            &flat, &err),
        ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "shard_depth"));
}

static void missing_bytes_codec(void **state)
{
    struct zr_chain_parse_options opts = {.format = 3, .allow_missing_bytes = true};
    struct zr_chain *chain = NULL;
    struct zr_json_doc doc;
    char text[256];

    ZR_UNUSED(state);
    zr_json_doc_init(&doc, NULL);
    assert_int_equal(zr_json_parse(&doc, "[\"zstd\"]", 8, NULL, NULL), ZARR_OK);
    assert_int_equal(zr_chain_parse(&chain, &env.codecs, doc.root, &opts, NULL, NULL),
                     ZARR_OK);
    assert_true(codec_env_write(chain, 2, text, sizeof text));
    assert_string_equal(text, "[{\"id\":\"bytes\"},{\"id\":\"zstd\",\"level\":0}]");
    zr_chain_free(chain);
    zr_json_doc_deinit(&doc);
}

/* A name with a NUL in it would look to a plug-in as one that it knows. */
static void plugin_names(void **state)
{
    static const zarr_codec_spec_vtable v = {
        .struct_size = sizeof v, .name = "x.names", .kind = ZARR_CODEC_BYTES_BYTES};
    struct zr_chain *chain = NULL;
    zarr_error e = ZARR_ERROR_INIT;

    ZR_UNUSED(state);
    assert_int_equal(zr_codec_spec_register(&env.codecs, &v, "test", NULL), ZARR_OK);
    assert_int_equal(codec_env_parse(&chain, &env, 3,
                                     "[\"bytes\",{\"name\":\"x.names\","
                                     "\"configuration\":{\"level\\u0000x\":1}}]",
                                     NULL, &e),
                     ZARR_ERR_INVALID);
    assert_non_null(strstr(e.message, "has a NUL after \"level\""));
    assert_int_equal(codec_env_parse(&chain, &env, 3,
                                     "[\"bytes\",{\"name\":\"x.names\","
                                     "\"configuration\":{\"level\":\"\\u0000x\"}}]",
                                     NULL, &e),
                     ZARR_OK);
    assert_null(zarr_codec_spec_text(&chain->codec[1], "level"));
    zr_chain_free(chain);
}

/* A plug-in's codec without canonical(): its configuration is kept as given and read by
 * getters. */
static void plugin_codecs(void **state)
{
    static const char *const aliases[] = {"x-alias", NULL};
    const zarr_codec_spec_vtable v = {.struct_size = sizeof v,
                                      .name = "x.test",
                                      .aliases = aliases,
                                      .kind = ZARR_CODEC_BYTES_BYTES};
    zarr_codec_spec_vtable other = v;
    struct zr_chain *chain = NULL;
    const zarr_codec_spec *s = NULL;
    const zarr_dtype *dtype = NULL;
    void *block = NULL;
    int64_t i = 0, list[2];
    double f = 0;
    int b = 0;

    ZR_UNUSED(state);
    assert_int_equal(zr_codec_spec_register(&env.codecs, &v, "test", NULL), ZARR_OK);
    assert_int_equal(zr_codec_spec_register(&env.codecs, &v, "test", NULL),
                     ZARR_ERR_EXISTS);
    other.name = "x.other";
    assert_int_equal(zr_codec_spec_register(&env.codecs, &other, "test", NULL),
                     ZARR_ERR_EXISTS);
    other.kind = 9;
    assert_int_equal(zr_codec_spec_register(&env.codecs, &other, "test", NULL),
                     ZARR_ERR_INVALID);
    assert_int_equal(
        codec_env_parse(&chain, &env, 3,
                        "[\"bytes\",{\"name\":\"x-alias\",\"configuration\":{"
                        "\"i\":-5,\"f\":0.5,\"b\":true,\"t\":\"x\",\"l\":[1,2,3],"
                        "\"m\":[1,\"x\"]}}]",
                        NULL, NULL),
        ZARR_OK);
    s = &chain->codec[1];
    assert_string_equal(zarr_codec_spec_name(s), "x.test");
    block = zarr_codec_spec_allocator(s)->alloc(zarr_codec_spec_allocator(s)->user, 8);
    block = zarr_codec_spec_allocator(s)->realloc(zarr_codec_spec_allocator(s)->user,
                                                  block, 80);
    assert_non_null(block);
    zarr_codec_spec_allocator(s)->free(zarr_codec_spec_allocator(s)->user, block);
    assert_int_equal(zarr_codec_spec_dtype(&dtype, s, "int8", NULL), ZARR_OK);
    assert_int_equal(zarr_dtype_item_bytes(dtype), 1);
    assert_int_equal(zarr_codec_spec_i64(s, "i", &i), 0);
    assert_int_equal(i, -5);
    assert_int_equal(zarr_codec_spec_i64(s, "f", &i), -1);
    assert_int_equal(zarr_codec_spec_f64(s, "f", &f), 0);
    assert_true(f == 0.5);
    assert_int_equal(zarr_codec_spec_bool(s, "b", &b), 0);
    assert_int_equal(b, 1);
    assert_int_equal(zarr_codec_spec_bool(s, "i", &b), -1);
    assert_string_equal(zarr_codec_spec_text(s, "t"), "x");
    assert_null(zarr_codec_spec_text(s, "i"));
    assert_int_equal(zarr_codec_spec_i64s(s, "l", list, 2), 3);
    assert_int_equal(list[1], 2);
    assert_int_equal(zarr_codec_spec_i64s(s, "m", list, 2), -1);
    assert_int_equal(zarr_codec_spec_i64s(s, "nope", list, 2), -1);
    assert_string_equal(zarr_codec_spec_member(s, 1), "f");
    assert_null(zarr_codec_spec_member(s, 6));
    zr_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes),
        cmocka_unit_test(writes_no_lies),
        cmocka_unit_test(refuses),
        cmocka_unit_test(limits_name_themselves),
        cmocka_unit_test(missing_bytes_codec),
        cmocka_unit_test(plugin_codecs),
        cmocka_unit_test(plugin_names),
    };

    return cmocka_run_group_tests(tests, open_env, close_env);
}
