/*
 * commands/cmd_calibrate.c - zarrc calibrate: measures for each codec of a device
 * whether the device or the CPU is the faster one for elements of that device, and keeps
 * the figures in the user's cache, where the library reads them.
 */
#include "calibrate/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CPU_NAME = 128,  /* bytes */
    MEMORY_PART = 4, /* of what there is, at most for the elements */
    BUDGET_PART = 8  /* of the machine's memory: the budget of buffers without --mem */
};
#define SIZE_MOST (UINT64_C(1) << 30) /* fills the streams of a device */

struct calibration {
    struct cli *cli;
    struct cli_survey survey;
    struct cli_string measured; /* what goes into the file */
    int n_measured;
};

static void add_figures(void *user, const struct cli_measurement *m)
{
    struct calibration *c = user;
    const struct cli_device *d = m->device;
    char *name = cli_json_quote(d->name), *codec = cli_json_quote(m->impl->codec),
         *impl = cli_json_quote(m->impl->name);

    cli_string_printf(
        &c->measured,
        "%s    {\"device_type\": %" PRId32 ", \"device_id\": %" PRId32
        ", \"device\": %s, \"total_bytes\": %" PRIu64
        ", \"codec\": %s, \"implementation\": %s, \"encode\": %s, \"chunk_bytes\": "
        "%" PRIu64 ", \"device_ns\": %" PRIu64 ", \"host_ns\": %" PRIu64 "}",
        c->n_measured++ ? ",\n" : "", d->type, d->id, name, d->total_bytes, codec, impl,
        m->encode ? "true" : "false", m->chunk_bytes, m->device_ns, m->host_ns);
    free(name);
    free(codec);
    free(impl);
    if (!c->cli->json)
        cli_printf(c->cli,
                   "%-10s %-10s %-7s %9" PRIu64 " bytes  %s %.1f us a MiB, the CPU and a "
                   "copy %.1f\n",
                   d->label, m->impl->codec, m->encode ? "encode" : "decode",
                   m->chunk_bytes, m->impl->name, (double)m->device_ns / 1e3,
                   (double)m->host_ns / 1e3);
}

/* ---- the file ---- */

/* The CPU's name, as Linux tells it; "": it does not. */
static void get_cpu_name(char name[CPU_NAME])
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[512];

    name[0] = '\0';
    while (f && !name[0] && fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;

        if (!at)
            continue;
        at += 1 + (at[1] == ' ');
        snprintf(name, CPU_NAME, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (f)
        fclose(f);
}

static char *document(const struct calibration *c)
{
    char name[CPU_NAME], *cpu, *text;

    get_cpu_name(name);
    cpu = cli_json_quote(name);
    text = cli_format("{\n  \"version\": 1,\n  \"library\": \"%s\",\n  \"cpu\": %s,\n"
                      "  \"cores\": %" PRIu32 ",\n  \"measured\": [\n%s%s  ]\n}\n",
                      zarr_version(), cpu, zarr_core_count(),
                      c->measured.text ? c->measured.text : "",
                      c->measured.text ? "\n" : "");
    free(cpu);
    return text;
}

/* The folder of the file, which is made; NULL: there is none. */
static char *folder(struct cli *cli, int *rc)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *above, *path;

    if (cache && *cache == '/')
        above = cli_strdup(cache);
    else if (home && *home == '/')
        above = cli_path_join(home, ".cache");
    else {
        *rc = cli_error(cli, CLI_NOT_FOUND, "Set XDG_CACHE_HOME to an absolute path.",
                        "there is no folder for the user's cache");
        return NULL;
    }
    path = cli_path_join(above, "zarrc");
    if ((mkdir(above, 0700) != 0 && errno != EEXIST) ||
        (mkdir(path, 0700) != 0 && errno != EEXIST))
        *rc = cli_errno(cli, errno, "%s", path);
    free(above);
    return path;
}

static int keep(struct cli *cli, const char *text)
{
    struct cli_file file = {0};
    int rc = CLI_OK;
    char *above = folder(cli, &rc),
         *path = above ? cli_path_join(above, "costs.json") : NULL;

    if (!rc)
        rc = cli_file_create(cli, path, true, &file);
    if (!rc) {
        if (fputs(text, file.file) < 0)
            rc = cli_errno(cli, errno, "%s", path);
        else
            rc = cli_file_commit(cli, &file);
        cli_file_close(&file);
    }
    if (!rc)
        cli_say(cli, "%s", path);
    free(above);
    free(path);
    return rc;
}

/* ---- the command ---- */

static void at_most(uint64_t *bytes, uint64_t of, uint64_t part)
{
    if (of > 0 && *bytes > of / part)
        *bytes = of / part;
}

/* Bytes of elements without --size: as much as fills a device, but a small part of the
 * memory of the machine, of the budget for buffers and of each device. */
static int default_size(struct cli *cli, const struct cli_survey *s, uint64_t *total)
{
    uint64_t budget = s->host_bytes / BUDGET_PART;
    const int rc = cli_size(cli, "mem", &budget);

    *total = SIZE_MOST;
    at_most(total, s->host_bytes, MEMORY_PART);
    at_most(total, budget, MEMORY_PART);
    for (int i = 0; i < s->n_devices; i++) {
        at_most(total, s->device[i].total_bytes, MEMORY_PART);
        at_most(total, s->device[i].free_bytes, MEMORY_PART);
    }
    *total = *total > CLI_MEASURING_STEP ? *total : CLI_MEASURING_STEP;
    return rc;
}

static int choose_size(struct cli *cli, const struct cli_survey *s, uint64_t *total)
{
    int rc = default_size(cli, s, total);

    if (!rc)
        rc = cli_size(cli, "size", total);
    *total -= *total % CLI_MEASURING_STEP;
    if (!rc && *total == 0)
        rc = cli_error(cli, CLI_USAGE, NULL, "--size: at least 4 MiB");
    return rc;
}

static int run_calibrate(struct cli *cli)
{
    static struct calibration c;
    struct cli_measuring how = {
        .cli = cli, .survey = &c.survey, .add = add_figures, .user = &c};
    char *text = NULL;
    int rc;

    c = (struct calibration){.cli = cli};
    rc = cli_survey_init(cli, &c.survey);
    if (!rc && c.survey.n_devices == 0)
        cli_warn(cli, "there is no device to measure; ZARRC_PLUGINS loads plug-ins");
    if (!rc)
        rc = choose_size(cli, &c.survey, &how.total);
    if (!rc)
        rc = cli_measure(&how);
    if (!rc && !cli_is_cancelled()) {
        text = document(&c);
        if (cli->json)
            cli_json_raw(cli_json(cli), text);
        if (c.survey.n_devices > 0 && !cli_flag(cli, "dry-run"))
            rc = keep(cli, text);
    }
    free(text);
    cli_survey_deinit(&c.survey);
    cli_string_free(&c.measured);
    return rc;
}

static const struct cli_option calibrate_options[] = {
    {"dry-run", 'n', 0, NULL, NULL, "measure and print, but keep nothing"},
    {"size", 0, 0, "SIZE", NULL,
     "bytes of elements in each measurement, in steps of 4 MiB (default: 1G, or a "
     "quarter of "
     "--mem, of the machine's memory or of a device's if that is less)"},
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
        "device "
        "and with the codec on the CPU and a copy of the elements. It does so with "
        "chunks "
        "of 64 KiB, 512 KiB and 4 MiB, on an otherwise idle machine for good figures. A "
        "request that is not counted comes first, then up to three, of which the best "
        "one "
        "counts. That takes one to two minutes for a GPU and 16 cores, and longer with "
        "fewer cores; a smaller --size is faster, but then start-up is in the figures. "
        "An "
        "implementation that cannot do such chunks here, for example for want of a "
        "library, is left out, and a line says so.\n\n"
        "The figures are kept in zarrc/costs.json in the user's cache: in "
        "$XDG_CACHE_HOME, or in ~/.cache without it. The library reads them when it "
        "chooses an implementation for elements of a device: where the CPU was faster, "
        "the CPU does it. A codec preference is stronger. Without the file, with a "
        "damaged one, or with one of another version of the library, CPU or device, the "
        "device does each codec that it has. explain shows the figures that decided. "
        "Calibrate again after a change of the driver or a plug-in. Removing the file "
        "is always safe. Nothing about it is written to an array.",
    .json = "The document that is kept: version, library, cpu, cores, and measured, an "
            "array of objects with device_type, device_id, device, total_bytes, codec, "
            "implementation, encode, chunk_bytes, device_ns and host_ns (nanoseconds for "
            "a MiB of elements).",
    .options = calibrate_options,
    .examples = calibrate_examples,
    .see_also = "zarrc-explain zarrc-list",
    .run = run_calibrate,
};
