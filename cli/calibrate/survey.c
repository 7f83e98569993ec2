/*
 * calibrate/survey.c - the devices, and the implementations of codecs, with the codecs of
 * an array that each of them works for.
 */
#include "calibrate/calibrate.h"

#include <stdlib.h>
#include <string.h>

/* `detail` is the name, and then sizes. */
static void copy_device_name(char name[CLI_CALIBRATE_NAME],
                             const zarr_registry_item *item)
{
    char size[32];
    const char *end;

    snprintf(size, sizeof size, "%.1f GiB",
             (double)item->total_bytes / (double)(1u << 30));
    end = item->total_bytes ? strstr(item->detail, size) : NULL;
    snprintf(name, CLI_CALIBRATE_NAME, "%s", item->detail);
    if (end && end - item->detail < CLI_CALIBRATE_NAME)
        name[end > item->detail + 1 ? end - item->detail - 2 : 0] = '\0';
}

static int add_device(void *user, const zarr_registry_item *item)
{
    struct cli_survey *s = user;
    struct cli_device *d = &s->device[s->n_devices];

    if (item->device_type == ZARR_DEVICE_CPU)
        s->host_bytes = item->total_bytes;
    if (s->n_devices == CLI_CALIBRATE_DEVICES || item->device_type == ZARR_DEVICE_CPU)
        return 0;
    *d = (struct cli_device){.type = item->device_type,
                             .id = item->device_id,
                             .total_bytes = item->total_bytes,
                             .free_bytes = item->free_bytes};
    snprintf(d->label, sizeof d->label, "%s", item->name);
    copy_device_name(d->name, item);
    s->n_devices++;
    return cli_is_cancelled();
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static int add_impl(void *user, const zarr_registry_item *item)
{
    const char *can = item->capabilities;
    struct cli_survey *s = user;
    struct cli_implementation *m = &s->impl[s->n_impls];

    if (s->n_impls == CLI_CALIBRATE_IMPLS || strlen(item->name) >= sizeof m->name ||
        strlen(item->of) >= sizeof m->codec)
        return 0;
    *m = (struct cli_implementation){.in_kinds = item->in_kinds,
                                     .out_kinds = item->out_kinds,
                                     .decodes = has_word(can, "decode"),
                                     .encodes = has_word(can, "encode"),
                                     .only_v2 =
                                         has_word(can, "v2") && !has_word(can, "v3")};
    snprintf(m->codec, sizeof m->codec, "%s", item->of);
    snprintf(m->name, sizeof m->name, "%s", item->name);
    s->n_impls++;
    return 0;
}

/* The codecs of an array in v3 metadata. */
static char *make_chain(const zarr_registry_item *codec)
{
    static const char bytes[] =
        "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}";
    char *name = cli_json_quote(codec->v3), *chain,
         *own = cli_format("{\"name\": %s, \"configuration\": {}}", name);

    if (strstr(codec->detail, "array to array") == codec->detail)
        chain = cli_format("[%s, %s]", own, bytes);
    else if (strstr(codec->detail, "array to bytes") == codec->detail)
        chain = cli_format("[%s]", own);
    else
        chain = cli_format("[%s, %s]", bytes, own);
    free(own);
    free(name);
    return chain;
}

/* A codec may have a row for each format. The row of v3 is preferred. */
static int set_chain(void *user, const zarr_registry_item *codec)
{
    struct cli_implementation *m = user;
    const bool is_v3 = *codec->v3 && !m->only_v2;

    if (strcmp(codec->name, m->codec) != 0 || (!is_v3 && (m->chain || !*codec->v2)))
        return 0;
    free(m->chain);
    m->zarr_format = is_v3 ? 3 : 2;
    m->chain = is_v3 ? make_chain(codec)
                     : cli_format("{\"filters\": [{\"id\": \"%s\"}], "
                                  "\"compressor\": null}",
                                  codec->v2);
    return is_v3;
}

/* The codecs of new arrays for devices say more than a default configuration, such as
 * which compressor inside of a codec devices have. Implementations of a codec among them
 * are measured with all of them, except those of plug-ins for zstd inside of blosc. */
static zarr_status prefer_device_codecs(struct cli *cli, struct cli_survey *s,
                                        zarr_error *err)
{
    const uint64_t length = 1;
    static const char zstd[] =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
        "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":5,"
        "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]";
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_status st = zarr_store_open(&store, cli->ctx, "memory:", NULL, err);

    spec.ndim = 1;
    spec.shape = &length;
    spec.data_type = CLI_MEASURING_TYPE;
    spec.zarr_format = 3;
    opts.device_type = ZARR_DEVICE_CUDA; /* one need not be there */
    if (!st)
        st = zarr_array_create(&array, store, "", &spec, &opts, err);
    for (int i = 0; i < s->n_impls && !st; i++) {
        struct cli_implementation *m = &s->impl[i];
        char *name = cli_format("{\"name\":\"%s\"", m->codec);

        if (m->chain && m->zarr_format == 3 && strstr(zarr_array_codecs(array), name)) {
            free(m->chain);
            m->chain = cli_strdup(
                strstr(m->name, ".blosc_zstd") ? zstd : zarr_array_codecs(array));
        }
        free(name);
    }
    zarr_array_free(array);
    zarr_store_free(store);
    return st;
}

int cli_survey_init(struct cli *cli, struct cli_survey *s)
{
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st;

    *s = (struct cli_survey){0};
    st = zarr_context_list(cli->ctx, ZARR_REGISTRY_DEVICE, add_device, s, &err);
    if (!st)
        st = zarr_context_list(cli->ctx, ZARR_REGISTRY_CODEC_IMPL, add_impl, s, &err);
    for (int i = 0; i < s->n_impls && !st; i++)
        st = zarr_context_list(cli->ctx, ZARR_REGISTRY_CODEC, set_chain, &s->impl[i],
                               &err);
    if (!st)
        st = prefer_device_codecs(cli, s, &err);
    return st ? cli_fail(cli, st, &err, "cannot list the devices") : CLI_OK;
}

void cli_survey_deinit(struct cli_survey *s)
{
    for (int i = 0; i < s->n_impls; i++)
        free(s->impl[i].chain);
}

bool cli_implementation_has_kind(const struct cli_implementation *m, int32_t type)
{
    return type > 0 && type < 32 &&
           (m->in_kinds & m->out_kinds & (UINT32_C(1) << type)) != 0;
}

bool cli_survey_has_cpu(const struct cli_survey *s, const char *codec, bool encode)
{
    for (int i = 0; i < s->n_impls; i++)
        if (strcmp(s->impl[i].codec, codec) == 0 &&
            strncmp(s->impl[i].name, "cpu.", 4) == 0 &&
            cli_implementation_has_kind(&s->impl[i], ZARR_DEVICE_CPU) &&
            (encode ? s->impl[i].encodes : s->impl[i].decodes))
            return true;
    return false;
}
