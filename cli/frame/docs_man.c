/*
 * frame/docs_man.c - man pages, made from the commands' tables with the macros of man(7),
 * without warnings of mandoc -T lint. There is one page for the program and one for each
 * command. Each has the exit codes, the output of --json, and examples. `zarrc help
 * --man COMMAND` prints them; a test compares the pages in man/ with its output.
 */
#include "frame/frame_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char page_date[] = "2026-11-21"; /* fixed, so that pages are reproducible */

/* Adds n bytes of text with the characters escaped that are special to roff. */
static void add_bytes(struct cli_string *out, const char *text, size_t n)
{
    for (const char *t = text; t < text + n; t++) {
        bool begins = t == text || t[-1] == '\n';

        if (*t == '\\')
            cli_string_add(out, "\\e", 2);
        else if (*t == '-')
            cli_string_add(out, "\\-", 2);
        else if (begins && (*t == '.' || *t == '\''))
            cli_string_printf(out, "\\&%c", *t);
        else
            cli_string_add(out, t, 1);
    }
}

static void add_roff(struct cli_string *out, const char *text)
{
    add_bytes(out, text, strlen(text));
}

/* Adds paragraphs, which empty lines separate. */
static void add_paragraphs(struct cli_string *out, const char *text)
{
    const char *between = "";

    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);

        cli_string_printf(out, "%s", between);
        add_bytes(out, text, n);
        cli_string_add(out, "\n", 1);
        between = ".PP\n";
        text += n + (end ? 2 : 0);
    }
}

static void add_head(struct cli_string *out, const char *name, const char *summary)
{
    cli_string_printf(out,
                      ".\\\" Written by zarrc help --man from the tables in cli/.\n.TH ");
    for (const char *n = name; *n; n++)
        cli_string_printf(out, *n == '-' ? "\\-" : "%c", toupper((unsigned char)*n));
    cli_string_printf(out, " 1 \"%s\" \"zarrc %s\" \"zarrc manual\"\n.SH NAME\n",
                      page_date, ZARR_VERSION_STRING);
    add_roff(out, name);
    cli_string_printf(out, " \\- ");
    add_roff(out, summary);
    cli_string_printf(out, "\n.SH SYNOPSIS\n");
}

static void add_option(struct cli_string *out, const struct cli_option *o)
{
    cli_string_printf(out, ".TP\n");
    if (o->letter)
        cli_string_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    cli_string_printf(out, "\\fB\\-\\-");
    add_roff(out, o->name);
    cli_string_printf(out, "\\fR");
    if (o->value)
        cli_string_printf(out, "=\\fI%s\\fR", o->value);
    cli_string_add(out, "\n", 1);
    add_roff(out, o->help);
    if (o->choices) {
        cli_string_printf(out, "; one of ");
        add_roff(out, o->choices);
    }
    if (o->flags & CLI_REPEAT)
        cli_string_printf(out, "; may be repeated");
    cli_string_printf(out, ".\n");
}

static void add_options(struct cli_string *out, const struct cli_option *table)
{
    for (; table && table->name; table++)
        add_option(out, table);
}

static void add_exit_status(struct cli_string *out)
{
    cli_string_printf(out, ".SH EXIT STATUS\n");
    for (const struct cli_exit_row *r = cli_exit_rows; r->code; r++) {
        cli_string_printf(out, ".TP 6\n%s\n", r->code);
        add_roff(out, r->text);
        cli_string_printf(out, ".\n");
    }
}

static void add_examples(struct cli_string *out, const struct cli_example *e)
{
    cli_string_printf(out, ".SH EXAMPLES\n");
    for (; e && e->line; e++) {
        cli_string_printf(out, ".TP\n\\fB");
        add_roff(out, e->line);
        cli_string_printf(out, "\\fR\n");
        add_roff(out, e->what);
        cli_string_add(out, "\n", 1);
    }
}

/* "zarrc-cp zarrc-mv" as "zarrc-cp(1), zarrc-mv(1)". */
static void add_see_also(struct cli_string *out, const char *names)
{
    const char *comma = "";

    cli_string_printf(out, ".SH SEE ALSO\n");
    while (*names) {
        size_t n = strcspn(names, " ");

        cli_string_printf(out, "%s.BR ", comma);
        add_bytes(out, names, n);
        cli_string_printf(out, " (1)");
        comma = ",\n";
        names += n + strspn(names + n, " ");
    }
    cli_string_printf(out, "\n");
}

void cli_man_command(const struct cli_command *c, struct cli_string *out)
{
    char *name = cli_format("zarrc-%s", c->name);
    char *also =
        cli_format("zarrc%s%s", c->see_also ? " " : "", c->see_also ? c->see_also : "");

    add_head(out, name, c->summary);
    cli_string_printf(out, "\\fBzarrc %s\\fR [\\fIOPTION\\fR]...", c->name);
    if (*c->operands) {
        cli_string_printf(out, " \\fI");
        add_roff(out, c->operands);
        cli_string_printf(out, "\\fR");
    }
    cli_string_printf(out, "\n.SH DESCRIPTION\n");
    add_paragraphs(out, c->about);
    cli_string_printf(out, ".SH OPTIONS\n");
    add_options(out, c->options);
    cli_string_printf(out, ".SS Common options\n");
    add_options(out, cli_common_options);
    if (c->json) {
        cli_string_printf(out, ".SH JSON\n");
        add_paragraphs(out, c->json);
    }
    add_exit_status(out);
    add_examples(out, c->examples);
    add_see_also(out, also);
    free(name);
    free(also);
}

static const char program_about[] =
    "zarrc shows, reads, creates, changes and checks Zarr arrays and groups of the "
    "formats 2 and 3. Data and JSON go to standard output, everything else to standard "
    "error.\n\n"
    "A location is a path: x.zarr/group/array. The root of the store is found "
    "automatically: it is the topmost folder of the unbroken chain of nodes above the "
    "path. x.zarr:/group/array names the root explicitly; file://x.zarr is the same as "
    "the path x.zarr. SCHEME:/... and SCHEME://... name a store of a plug-in (zarrc list "
    "stores). If a file or folder is called SCHEME, SCHEME:/... means a store with that "
    "root, and only SCHEME://... names the store of the plug-in. A region in Python's "
    "notation may follow an array, x.zarr/temp[0:10,::2]; quote it, because shells "
    "interpret brackets and stars.\n\n"
    "A region can also name dimensions: x.zarr/tas[time@2003-07, lat@35:70, lon=3]. "
    "NAME=INDICES takes indices in Python's notation, as isel of xarray. NAME@VALUES "
    "takes values of the one-dimensional coordinate NAME, as sel of xarray: one value, a "
    "list [V,...], or a range V:V that includes both ends. Text is a value as it is, and "
    "a range of it goes by position. The coordinate is the array NAME in the group of "
    "the array or in a group above; scale_factor, add_offset and units of time are "
    "applied. A date that is coarser than the coordinate selects its whole period: "
    "2003-07 is all of July. Ranges go by value, also on a falling coordinate: lat@35: "
    "takes 35 and all larger values. The elements keep their order. A range of "
    "longitudes (units degrees_east) goes east and may cross the seam: -10:40 or 350:40 "
    "of 0 to 360. A value between two points is an error without --nearest, and so is a "
    "range without points. Items without a name come first.\n\n"
    "Options and operands may be mixed; -- ends the options. Names of options cannot be "
    "abbreviated. With --json every command writes one JSON document, and an error is "
    "one JSON object on one line of standard error: {\"error\": {\"code\", \"exit\", "
    "\"what\", \"why\", \"next\"}}. If the error has them, there are also \"node\", "
    "\"key\", \"block\" (coordinates in the grid of blocks) and \"chunk\" (of a shard, "
    "coordinates in the array's grid of chunks). Later versions may add members, but "
    "never remove one. Nothing depends on the locale.\n\n"
    "An interrupt (Ctrl-C) ends the command cleanly: the objects in the store are "
    "complete, and temporary files are removed. A second interrupt kills the program; "
    "zarrc clean removes the temporary files that remain.\n\n"
    "A command that changes a store ends with 0 only after the disk has the change, so "
    "that it survives a loss of power. The operating system writes the files of export "
    "and plot to the disk later.";

void cli_man_program(struct cli_string *out)
{
    static const struct cli_example examples[] = {
        {"zarrc ls -R x.zarr", "What is in a store."},
        {"zarrc info x.zarr/temp", "Shape, chunks, codecs and attributes of an array."},
        {"zarrc cat --format=npy 'x.zarr/temp[0]' > t0.npy",
         "One plane of an array as a NumPy file."},
        {NULL, NULL}};
    struct cli_string also = {0};

    add_head(out, "zarrc", "Zarr arrays on the command line");
    cli_string_printf(out, "\\fBzarrc\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... "
                           "[\\fIOPERAND\\fR]...\n.SH DESCRIPTION\n");
    add_paragraphs(out, program_about);
    cli_string_printf(out, ".SH COMMANDS\n");
    for (size_t i = 0; cli_commands[i]; i++) {
        cli_string_printf(out, ".TP\n\\fB%s\\fR\n", cli_commands[i]->name);
        add_roff(out, cli_commands[i]->summary);
        cli_string_printf(out, ".\n");
        cli_string_printf(&also, "%szarrc-%s", also.n_bytes ? " " : "",
                          cli_commands[i]->name);
    }
    cli_string_printf(out, ".SH COMMON OPTIONS\n");
    add_options(out, cli_common_options);
    cli_string_printf(
        out,
        ".SH ENVIRONMENT\n"
        ".TP\nNO_COLOR\nIf set and not empty, output has no colours.\n"
        ".TP\nZARRC_MAX_THREADS, ZARRC_MEMORY_BYTES, ZARRC_LOG_LEVEL\n"
        "Defaults for \\-\\-max\\-threads, \\-\\-mem and \\-\\-log\\-level.\n"
        ".TP\nZARRC_DECODE\n1: cat and export decode values, as with \\-\\-decode.\n"
        ".TP\nZARRC_LIMITS\nLimits as for \\-\\-limit, separated by commas. It does not "
        "change the limits of \\-\\-untrusted. Ignored in a program with raised "
        "privileges.\n"
        ".TP\nZARRC_LOCKS, ZARRC_SYMLINKS\nDefaults for \\-\\-locks and \\-\\-symlinks. "
        "Ignored in a program with raised privileges.\n"
        ".TP\nZARRC_WAVE_BYTES\nThe most decoded bytes of one wave, such as 64M. A "
        "request handles its chunks in waves.\n"
        ".TP\nZARRC_DEVICE_BYTES, ZARRC_PINNED_BYTES\nThe most bytes for buffers on each "
        "device, and for pinned host memory of each device, such as 4G.\n"
        ".TP\nZARRC_MEMORY\nThe program itself has all elements in host memory, whatever "
        "this variable says.\n"
        ".TP\nZARRC_ALLOCATORS\nNames of memory backends that allocate memory of their "
        "kind, separated by semicolons.\n"
        ".TP\nZARRC_PLUGINS\nPlug\\-ins to load, separated by colons: absolute paths of "
        "files, or of folders, from which every .so is loaded. A plug\\-in that cannot "
        "be loaded is an error. Ignored in a program with raised privileges.\n"
        ".TP\nZARRC_PLUGIN_OPTIONS\nOptions of plug\\-ins, a JSON object such as "
        "{\"acme\": {\"device\": 1}}. Ignored in a program with raised privileges.\n"
        ".TP\nZARRC_PIPELINE\nThe pipeline that reads and writes; see zarrc list "
        "pipelines.\n"
        ".TP\nZARRC_TRUST\nWhich decoders that do not check their input are used: "
        "verified (the default: for data with a checksum that was verified), full or "
        "none. Ignored in a program with raised privileges.\n"
        ".TP\nZARRC_CODEC_PREFERENCE\nThe preferred implementations of codecs, as "
        "gzip=cpu.libdeflate;zstd=cpu; see zarrc list implementations.\n"
        ".TP\nZARRC_DISABLE_CPU\nInstruction sets not to use, for tests: sse42, ssse3, "
        "avx2, pclmul, fsrm, separated by commas, or all.\n");
    add_exit_status(out);
    add_examples(out, examples);
    add_see_also(out, also.text ? also.text : "");
    cli_string_free(&also);
}
