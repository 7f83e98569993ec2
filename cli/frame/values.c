/*
 * frame/values.c - values of options by name, and the parsers of numbers, sizes and
 * shapes. A name that is in no table of the command is a bug of the program; it aborts,
 * so that every test notices. Numbers follow the C locale, because setlocale() is never
 * called.
 */
#include "frame/frame_int.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option *find_option(const struct cli *cli, const char *name)
{
    const struct cli_option *o = cli_option_find(cli->command, '\0', name, strlen(name));

    if (!o) {
        fprintf(stderr, "zarrc: bug: no table of %s has an option --%s\n",
                cli->command ? cli->command->name : "zarrc", name);
        abort();
    }
    return o;
}

int cli_count(const struct cli *cli, const char *name)
{
    const struct cli_option *o = find_option(cli, name);
    int n = 0;

    for (size_t i = 0; i < cli->values->n_items; i++)
        n += cli->values->items[i].option == o;
    return n;
}

bool cli_flag(const struct cli *cli, const char *name)
{
    return cli_count(cli, name) > 0;
}

const char *cli_text_at(const struct cli *cli, const char *name, int i)
{
    const struct cli_option *o = find_option(cli, name);

    for (size_t k = 0; k < cli->values->n_items; k++)
        if (cli->values->items[k].option == o && i-- == 0)
            return cli->values->items[k].text;
    return NULL;
}

const char *cli_text(const struct cli *cli, const char *name)
{
    return cli_text_at(cli, name, cli_count(cli, name) - 1);
}

uint32_t cli_choice(const struct cli *cli, const char *name)
{
    const char *value = cli_text(cli, name);

    return value ? cli_choice_place(find_option(cli, name)->choices, value) : 0;
}

/* ---- parsers ---- */

static bool parse_u64(const char *text, uint64_t *out)
{
    char *end = NULL;
    unsigned long long value;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *out = value;
    return true;
}

bool cli_parse_i64(const char *text, int64_t *out)
{
    char *end = NULL;
    long long value;
    const char *digits = text + (*text == '-' || *text == '+');

    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || *end)
        return false;
    *out = value;
    return true;
}

bool cli_parse_f64(const char *text, double *out)
{
    char *end = NULL;
    double value;

    if (*text == '\0' || *text == ' ' || *text == '\t' || *text == '\n')
        return false;
    value = strtod(text, &end);
    if (*end)
        return false;
    *out = value;
    return true;
}

/* The factor of a unit ("K", "KiB", "KB", "kb", ...), or 0 if there is no such unit. */
static double unit_factor(const char *unit)
{
    static const char letters[] = "KMGTPE";
    const char *at;
    double factor = 1, base = 1024;

    if (*unit == '\0' || strcmp(unit, "B") == 0 || strcmp(unit, "b") == 0)
        return 1;
    at = strchr(letters, *unit & ~0x20);
    if (!at)
        return 0;
    if (strcmp(unit + 1, "B") == 0 || strcmp(unit + 1, "b") == 0)
        base = 1000;
    else if (unit[1] && strcmp(unit + 1, "iB") != 0 && strcmp(unit + 1, "i") != 0)
        return 0;
    for (const char *l = letters; l <= at; l++)
        factor *= base;
    return factor;
}

static bool parse_size(const char *text, uint64_t *out)
{
    char *end = NULL;
    double value, factor;

    if (parse_u64(text, out)) /* exact */
        return true;
    if (*text < '0' || *text > '9' || text[1] == 'x')
        return false;
    value = strtod(text, &end);
    while (*end == ' ')
        end++;
    factor = unit_factor(end);
    value *= factor;
    if (factor == 0 || !(value < 0x1p63))
        return false;
    *out = (uint64_t)value;
    return true;
}

bool cli_parse_shape(const char *text, bool keep, uint64_t out[ZARR_MAX_RANK],
                     int32_t *ndim)
{
    int32_t n = 0;
    size_t bytes = strlen(text);
    char *copy = cli_strdup(text);
    char *at = copy;
    bool ok = true;

    if (bytes > 1 && (copy[0] == '(' || copy[0] == '[')) { /* as printed by info */
        copy[bytes - 1] = '\0';
        at++;
    }
    while (*at && ok) {
        size_t m = strcspn(at, ",x");
        char split = at[m];

        at[m] = '\0';
        while (*at == ' ') {
            at++;
            m--;
        }
        ok = n < ZARR_MAX_RANK && ((keep && strcmp(at, "-") == 0) ||
                                   (parse_u64(at, &out[n]) && out[n] <= INT64_MAX));
        n += ok;
        at += m + (split != '\0');
    }
    free(copy);
    *ndim = n;
    return ok;
}

/* ---- values of options ---- */

static int check(struct cli *cli, const char *name, bool ok, const char *what)
{
    return ok ? CLI_OK
              : cli_error(cli, CLI_USAGE, NULL, "option --%s: \"%s\" is not a %s", name,
                          cli_text(cli, name), what);
}

int cli_u64(struct cli *cli, const char *name, uint64_t *out)
{
    const char *text = cli_text(cli, name);

    return check(cli, name, !text || parse_u64(text, out), "whole number of at least 0");
}

int cli_i64(struct cli *cli, const char *name, int64_t *out)
{
    const char *text = cli_text(cli, name);

    return check(cli, name, !text || cli_parse_i64(text, out), "whole number");
}

int cli_f64(struct cli *cli, const char *name, double *out)
{
    const char *text = cli_text(cli, name);

    return check(cli, name, !text || cli_parse_f64(text, out), "number");
}

int cli_size(struct cli *cli, const char *name, uint64_t *out)
{
    const char *text = cli_text(cli, name);

    return check(cli, name, !text || parse_size(text, out),
                 "size: write 4096, 64M, 2GiB or 2GB");
}

int cli_shape(struct cli *cli, const char *name, uint64_t out[ZARR_MAX_RANK],
              int32_t *ndim, bool *given)
{
    const char *text = cli_text(cli, name);

    *ndim = 0;
    if (given)
        *given = text != NULL;
    return check(cli, name, !text || cli_parse_shape(text, false, out, ndim),
                 "list of lengths: write 100,200");
}
