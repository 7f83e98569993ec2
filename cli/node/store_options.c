/*
 * node/store_options.c - opens stores with the options of the command line. Values of
 * --store-option may be secrets: no message quotes one, and files with values keep them
 * out of lists of processes. The texts are wiped when the store is open.
 */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    FILE_MOST_BYTES = 1 << 20 /* of a value */
};

/* One value of --store-option, [URL-PREFIX=]name=value. */
struct store_option {
    const char *prefix, *name, *value;
    size_t prefix_bytes, name_bytes;
};

static size_t name_bytes(const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return text[n] == '=' ? n : 0;
}

/* A text before the name that cannot be a name is the prefix. */
static bool split_option(struct store_option *o, const char *text)
{
    const size_t n = name_bytes(text) > 0 ? 0 : strcspn(text, "=");

    *o = (struct store_option){.prefix = text, .prefix_bytes = n};
    o->name = n > 0 && text[n] == '=' ? text + n + 1 : text;
    o->name_bytes = name_bytes(o->name);
    o->value = o->name + o->name_bytes + 1;
    return o->name_bytes > 0;
}

/* "https://h/a" is for "https://h/a" and what is below it, but not for "https://h/ab": a
 * secret must not go to another host. */
static bool is_for(const struct store_option *o, const char *url)
{
    const size_t n = o->prefix_bytes;
    const char last = n > 0 ? o->prefix[n - 1] : '/';

    return strncmp(url, o->prefix, n) == 0 &&
           (last == '/' || last == ':' || url[n] == '\0' || url[n] == '/' ||
            url[n] == '?');
}

static zarr_status fail_option(zarr_error *err, const struct store_option *o,
                               const char *what)
{
    err->code = ZARR_ERR_INVALID;
    snprintf(err->message, sizeof err->message, "--store-option%s%.*s: %s",
             o->name_bytes > 0 ? " " : "", (int)(o->name_bytes < 64 ? o->name_bytes : 64),
             o->name, what);
    return ZARR_ERR_INVALID;
}

/* Returns the text of a file without its last newline, or NULL. *n: with its NUL. */
static char *read_value(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text;

    if (!f)
        return NULL;
    setvbuf(f, NULL, _IONBF, 0); /* no copy in a buffer that is not wiped */
    text = cli_alloc(FILE_MOST_BYTES + 1);
    *n = fread(text, 1, FILE_MOST_BYTES, f);
    if (ferror(f) || *n == FILE_MOST_BYTES || memchr(text, '\0', *n)) {
        cli_wipe(text, *n);
        free(text);
        text = NULL;
    } else {
        *n -= *n > 0 && text[*n - 1] == '\n';
        text[*n] = '\0';
    }
    fclose(f);
    return text;
}

static zarr_status put_option(struct cli_string *config, const struct store_option *o,
                              zarr_error *err)
{
    size_t n = 0;
    char *file = *o->value == '@' ? read_value(o->value + 1, &n) : NULL;
    const char *value = *o->value == '@' ? file : o->value;

    if (!value)
        return fail_option(err, o,
                           "the file of the value cannot be read, or has a NUL "
                           "byte or more than 1 MiB");
    cli_string_printf(config, "%s\"%.*s\":", config->n_bytes > 1 ? "," : "",
                      (int)o->name_bytes, o->name);
    if (*value == '{' || *value == '[')
        cli_string_add(config, value, strlen(value));
    else
        cli_string_add_quoted(config, value);
    if (file)
        cli_wipe(file, n);
    free(file);
    return ZARR_OK;
}

/* Whether the store of a URL takes the option "untrusted". */
static bool is_web(const char *url)
{
    if (strncmp(url, "zip:", 4) == 0)
        url += 4;
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0 ||
           strncasecmp(url, "s3://", 5) == 0;
}

/* Makes the JSON object of all options for a URL; of one name the last counts. Text is
 * NULL if there are none. */
static zarr_status make_config(struct cli *cli, const char *url,
                               struct cli_string *config, zarr_error *err)
{
    const int n = cli_count(cli, "store-option");
    zarr_status st = ZARR_OK;
    struct store_option o, later;
    bool is_told = false;

    for (int i = 0; i < n && st == ZARR_OK; i++) {
        bool is_last = true;

        if (!split_option(&o, cli_text_at(cli, "store-option", i)))
            return fail_option(err, &o, "write name=value, or URL-PREFIX=name=value");
        for (int k = i + 1; k < n; k++)
            if (split_option(&later, cli_text_at(cli, "store-option", k)) &&
                is_for(&later, url) && later.name_bytes == o.name_bytes &&
                memcmp(later.name, o.name, o.name_bytes) == 0)
                is_last = false;
        if (!is_last || !is_for(&o, url))
            continue;
        if (config->n_bytes == 0)
            cli_string_add(config, "{", 1);
        is_told = is_told || (o.name_bytes == strlen("untrusted") &&
                              memcmp(o.name, "untrusted", o.name_bytes) == 0);
        st = put_option(config, &o, err);
    }
    if (cli->untrusted && !is_told && is_web(url))
        cli_string_printf(config, "%s\"untrusted\":true", config->n_bytes ? "," : "{");
    if (config->n_bytes > 0)
        cli_string_add(config, "}", 1);
    return st;
}

zarr_status cli_store_open(struct cli *cli, zarr_store **out, const char *url,
                           uint32_t flags, zarr_error *err)
{
    zarr_store_options opts = {.struct_size = sizeof opts,
                               .flags = flags,
                               .locks = cli->locks,
                               .symlinks = cli->symlinks,
                               .lock_wait_ms = (uint32_t)cli->lock_wait_s * 1000};
    struct cli_string config = {.is_secret = true};
    zarr_status st = make_config(cli, url, &config, err);

    opts.config = config.text;
    if (st == ZARR_OK)
        st = zarr_store_open(out, cli->ctx, url, &opts, err);
    cli_string_free(&config);
    return st;
}
