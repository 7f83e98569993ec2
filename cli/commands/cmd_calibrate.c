/*
 * commands/cmd_calibrate.c - zarrc calibrate: lists the devices and their implementations
 * of codecs, and keeps in the user's cache whether they or the CPU are faster, where the
 * library reads it. calibrate_measure.c measures.
 */
#include "commands/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MEMORY_PART = 4, /* of what there is, at most for the elements */
    BUDGET_PART = 8  /* of the machine's memory: the budget of buffers without --mem */
};
#define SIZE_MOST (UINT64_C(1) << 30) /* fills the streams of a device */

/* ---- the devices and the implementations of codecs ---- */

/* `detail` is the name, and then sizes. */
static void copy_device_name(char name[NAME_MOST], const zarr_registry_item *item)
{
    char size[32];
    const char *end;

    snprintf(size, sizeof size, "%.1f GiB",
             (double)item->total_bytes / (double)(1u << 30));
    end = item->total_bytes ? strstr(item->detail, size) : NULL;
    snprintf(name, NAME_MOST, "%s", item->detail);
    if (end && end - item->detail < NAME_MOST)
        name[end > item->detail + 1 ? end - item->detail - 2 : 0] = '\0';
}

static int add_device(void *user, const zarr_registry_item *item)
{
    struct calibration *s = user;
    struct device *d = &s->device[s->n_devices];

    if (item->device_type == ZARR_DEVICE_CPU)
        s->host_bytes = item->total_bytes;
    if (s->n_devices == DEVICES_MOST || item->device_type == ZARR_DEVICE_CPU)
        return 0;
    *d = (struct device){.type = item->device_type,
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
    struct calibration *s = user;
    struct implementation *m = &s->impl[s->n_impls];

    if (s->n_impls == IMPLS_MOST || strlen(item->name) >= sizeof m->name ||
        strlen(item->of) >= sizeof m->codec)
        return 0;
    *m = (struct implementation){.in_kinds = item->in_kinds,
                                 .out_kinds = item->out_kinds,
                                 .decodes = has_word(can, "decode"),
                                 .encodes = has_word(can, "encode"),
                                 .only_v2 = has_word(can, "v2") && !has_word(can, "v3")};
    snprintf(m->codec, sizeof m->codec, "%s", item->of);
    snprintf(m->name, sizeof m->name, "%s", item->name);
    s->n_impls++;
    return 0;
}

/* A codec may have a row for each format. The row of v3 is preferred. */
static int set_chain(void *user, const zarr_registry_item *codec)
{
    struct implementation *m = user;
    const bool is_v3 = *codec->v3 && !m->only_v2;

    if (strcmp(codec->name, m->codec) != 0 || (!is_v3 && (m->chain || !*codec->v2)))
        return 0;
    free(m->chain);
    m->zarr_format = is_v3 ? 3 : 2;
    m->chain =
        cli_format(is_v3 ? "[{\"name\": \"%s\"}]" /* the library adds bytes */
                         : "{\"filters\": [{\"id\": \"%s\"}], \"compressor\": null}",
                   is_v3 ? codec->v3 : codec->v2);
    return is_v3;
}

/* The codecs of new arrays for devices say more than a default configuration, such as
 * which compressor inside of a codec devices have. Implementations of a codec among them
 * are measured with all of them, except those of plug-ins for zstd inside of blosc. */
static zarr_status prefer_device_codecs(struct calibration *s, zarr_error *err)
{
    const uint64_t length = 1;
    static const char zstd[] =
        "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":"
        "\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":5,\"shuffle\":"
        "\"shuffle\",\"typesize\":4,\"blocksize\":0}}]";
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_array *array = NULL;
    zarr_status st = zarr_store_open(&store, s->cli->ctx, "memory:", NULL, err);

    spec.ndim = 1;
    spec.shape = &length;
    spec.data_type = ITEM_TYPE;
    spec.zarr_format = 3;
    opts.device_type = ZARR_DEVICE_CUDA; /* one need not be there */
    if (!st)
        st = zarr_array_create(&array, store, "", &spec, &opts, err);
    for (int i = 0; i < s->n_impls && !st; i++) {
        struct implementation *m = &s->impl[i];
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

/* Lists what the context has. */
static int list_all(struct calibration *s)
{
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st;

    st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_DEVICE, add_device, s, &err);
    if (!st)
        st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_CODEC_IMPL, add_impl, s, &err);
    for (int i = 0; i < s->n_impls && !st; i++)
        st = zarr_context_list(s->cli->ctx, ZARR_REGISTRY_CODEC, set_chain, &s->impl[i],
                               &err);
    if (!st)
        st = prefer_device_codecs(s, &err);
    return st ? cli_fail(s->cli, st, &err, "cannot list the devices") : CLI_OK;
}

bool calibrate_has_kind(const struct implementation *m, int32_t type)
{
    return type > 0 && type < 32 &&
           (m->in_kinds & m->out_kinds & (UINT32_C(1) << type)) != 0;
}

bool calibrate_has_cpu(const struct calibration *s, const char *codec, bool encode)
{
    for (int i = 0; i < s->n_impls; i++)
        if (strcmp(s->impl[i].codec, codec) == 0 &&
            strncmp(s->impl[i].name, "cpu.", 4) == 0 &&
            calibrate_has_kind(&s->impl[i], ZARR_DEVICE_CPU) &&
            (encode ? s->impl[i].encodes : s->impl[i].decodes))
            return true;
    return false;
}

/* ---- the file ---- */

/* The CPU's name, as Linux tells it; "": it does not. */
static void get_cpu_name(char name[NAME_MOST])
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];

    name[0] = '\0';
    while (f && !name[0] && fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;

        if (!at)
            continue;
        at += 1 + (at[1] == ' ');
        snprintf(name, NAME_MOST, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f)
        fclose(f);
}

/* Begins the document, up to the list of figures. */
static void begin_document(struct calibration *c)
{
    char cpu[NAME_MOST];

    get_cpu_name(cpu);
    c->json = cli_json_start(c->cli, &c->text, false);
    cli_json_object(c->json);
    cli_json_u64(cli_key(c->json, "version"), 1);
    cli_json_text(cli_key(c->json, "library"), zarr_version());
    cli_json_text(cli_key(c->json, "cpu"), cpu);
    cli_json_u64(cli_key(c->json, "cores"), zarr_core_count());
    cli_json_array(cli_key(c->json, "measured"));
}

/* Writes the file, whose folder is made. */
static int keep(struct cli *cli, const char *text)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *above = cache && *cache == '/' ? cli_strdup(cache)
                  : home && *home == '/' ? cli_path_join(home, ".cache")
                                         : NULL;
    char *folder = above ? cli_path_join(above, "zarrc") : NULL;
    char *path = above ? cli_path_join(folder, "costs.json") : NULL;
    struct cli_file file = {0};
    int rc = CLI_OK;

    if (!above)
        return cli_error(cli, CLI_NOT_FOUND, "Set XDG_CACHE_HOME to an absolute path.",
                         "there is no folder for the user's cache");
    if ((mkdir(above, 0700) != 0 && errno != EEXIST) ||
        (mkdir(folder, 0700) != 0 && errno != EEXIST))
        rc = cli_errno(cli, errno, "%s", folder);
    if (!rc)
        rc = cli_file_create(cli, path, true, &file);
    if (!rc && fprintf(file.file, "%s\n", text) < 0)
        rc = cli_errno(cli, errno, "%s", path);
    if (!rc)
        rc = cli_file_commit(cli, &file);
    cli_file_close(&file);
    if (!rc)
        cli_say(cli, "%s", path);
    free(above);
    free(folder);
    free(path);
    return rc;
}

/* ---- the command ---- */

static void at_most(uint64_t *bytes, uint64_t of, uint64_t part)
{
    if (of > 0 && *bytes > of / part)
        *bytes = of / part;
}

/* Without --size: as much as fills a device, but a small part of the memory of the
 * machine, of the budget for buffers and of each device. */
static int choose_size(struct calibration *c)
{
    uint64_t budget = c->host_bytes / BUDGET_PART;
    int rc = cli_size(c->cli, "mem", &budget);

    c->total = SIZE_MOST;
    at_most(&c->total, c->host_bytes, MEMORY_PART);
    at_most(&c->total, budget, MEMORY_PART);
    for (int i = 0; i < c->n_devices; i++) {
        at_most(&c->total, c->device[i].total_bytes, MEMORY_PART);
        at_most(&c->total, c->device[i].free_bytes, MEMORY_PART);
    }
    c->total = c->total > STEP ? c->total : STEP;
    if (!rc)
        rc = cli_size(c->cli, "size", &c->total);
    c->total -= c->total % STEP;
    if (!rc && c->total == 0)
        rc = cli_error(c->cli, CLI_USAGE, NULL, "--size: at least 4 MiB");
    return rc;
}

static int run_calibrate(struct cli *cli)
{
    static struct calibration c;
    int rc;

    c = (struct calibration){.cli = cli};
    rc = list_all(&c);
    if (!rc && c.n_devices == 0)
        cli_warn(cli, "there is no device to measure; ZARRC_PLUGINS loads plug-ins");
    if (!rc)
        rc = choose_size(&c);
    begin_document(&c);
    if (!rc)
        rc = calibrate_measure(&c);
    (void)cli_json_finish(c.json);
    if (!rc && !cli_is_cancelled()) {
        if (cli->json)
            cli_json_raw(cli_json(cli), c.text.text);
        if (c.n_devices > 0 && !cli_flag(cli, "dry-run"))
            rc = keep(cli, c.text.text);
    }
    for (int i = 0; i < c.n_impls; i++)
        free(c.impl[i].chain);
    cli_string_free(&c.text);
    return rc;
}

static const struct cli_option calibrate_options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "measure and print, but keep nothing"},
    {"size", 0, 0, "SIZE", NULL,
     "bytes of elements in each measurement, in steps of 4 MiB (default: 1G, or a "
     "quarter of --mem, of the machine's memory or of a device's if that is less)"},
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example calibrate_examples[] = {
    {"zarrc calibrate", "Measure all codecs of all devices, and keep the figures."},
    {"zarrc calibrate -n --json", "Print the figures alone."},
    {NULL, NULL}};

const struct cli_command cli_cmd_calibrate = {
    .name = "calibrate",
    .summary = "measure whether devices or the CPU are faster with codecs",
    .operands = "",
    .about =
        "Measures each codec that a device and the CPU have: how long an array in memory "
        "takes into the memory of the device and from there, with the codec on the "
        "device and with the codec on the CPU and a copy of the elements. It does so "
        "with chunks of 64 KiB, 512 KiB and 4 MiB, on an otherwise idle machine for good "
        "figures. A request that is not counted comes first, then up to three, of which "
        "the best one counts. That takes one to two minutes for a GPU and 16 cores, and "
        "longer with fewer cores; a smaller --size is faster, but then start-up is in "
        "the figures. An implementation that cannot do such chunks here, for example for "
        "want of a library, is left out, and a line says so.\n\n"
        "The figures are kept in zarrc/costs.json in the user's cache: in "
        "$XDG_CACHE_HOME, or in ~/.cache without it. The library reads them when it "
        "chooses an implementation for elements of a device: where the CPU was faster, "
        "the CPU does it. A codec preference is stronger. Without the file, with a "
        "damaged one, or with one of another version of the library, CPU or device, the "
        "device does each codec that it has, except zstd by kernels of zarrc, as "
        "cuda.zstd: the CPU does it. explain shows the figures that decided. Calibrate "
        "again after a change of the driver or a plug-in. Removing the file is always "
        "safe. Nothing about it is written to an array.",
    .json = "The document that is kept: version, library, cpu, cores, and measured, an "
            "array of objects with device_type, device_id, device, total_bytes, codec, "
            "implementation, encode, chunk_bytes, device_ns and host_ns (nanoseconds for "
            "a MiB of elements).",
    .options = calibrate_options,
    .examples = calibrate_examples,
    .see_also = "zarrc-explain zarrc-list",
    .run = run_calibrate,
};
