/*
 * data/text_in.c - reads elements from text: a nested JSON array, one JSON value a line,
 * or plain lines. It reads the formats json and elements of cat and export. The whole
 * text is read into memory. The library parses each element, in the spelling of a fill
 * value; this file only parses the brackets and commas around the elements.
 */
#include "data/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_text_format(const char *format)
{
    return format && cli_choice_place(CLI_TEXT_FORMATS, format) > 0;
}

const char *cli_format_of_name(const char *path)
{
    static const char *const rows[][2] = {{".npy", "npy"},   {".csv", "csv"},
                                          {".json", "json"}, {".txt", "text"},
                                          {".raw", "raw"},   {".bin", "raw"}};
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(dot, rows[i][0]) == 0)
            return rows[i][1];
    return NULL;
}

void cli_elements_free(struct cli_elements *e)
{
    for (uint64_t i = 0; e->type && i < e->n; i++)
        zarr_dtype_release(e->type, e->data + i * e->item_bytes);
    free(e->data);
    *e = (struct cli_elements){0};
}

static void elements_init(struct cli_elements *e, const zarr_dtype *type)
{
    *e = (struct cli_elements){.type = type,
                               .item_bytes = (size_t)zarr_dtype_item_bytes(type)};
}

/* Adds one element, given as JSON text. */
static int add_json(struct cli *cli, struct cli_elements *e, const char *name,
                    const char *json)
{
    zarr_error err = {0};
    zarr_status st;

    if (e->n == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 64;
        e->data = cli_realloc(e->data, (size_t)cli_mul(e->cap, e->item_bytes));
    }
    memset(e->data + e->n * e->item_bytes, 0, e->item_bytes);
    st = zarr_dtype_parse(e->type, json, e->data + e->n * e->item_bytes, &err);
    if (st == ZARR_ERR_INVALID || st == ZARR_ERR_CORRUPT) /* the file is wrong */
        return cli_error(cli, CLI_CORRUPT, NULL, "element %" PRIu64 " of %s: %s", e->n,
                         name, err.message);
    if (st)
        return cli_fail(cli, st, &err, "element %" PRIu64 " of %s", e->n, name);
    e->n++;
    return CLI_OK;
}

static int add_slice(struct cli *cli, struct cli_elements *e, const char *name,
                     const char *text, size_t bytes)
{
    char *json = cli_format("%.*s", (int)bytes, text);
    const int rc = add_json(cli, e, name, json);

    free(json);
    return rc;
}

/* ---- lines ---- */

/* Adds a line as text or, if the elements are bytes, as its bytes. For other types the
 * line is JSON. */
static int add_line_text(struct cli *cli, struct cli_elements *e, const char *name,
                         const char *line, size_t bytes)
{
    const uint32_t kind = zarr_dtype_kind(e->type);
    struct cli_string text = {0}, json = {0};
    int rc;

    if (kind == ZARR_KIND_BYTES || kind == ZARR_KIND_VBYTES)
        cli_base64(line, bytes, &text);
    else if (kind == ZARR_KIND_STRING || kind == ZARR_KIND_UTF32)
        cli_string_add(&text, line, bytes);
    else
        return add_slice(cli, e, name, line, bytes);
    cli_string_add_quoted(&json, text.text ? text.text : "");
    if (text.text && !cli_is_utf8(text.text))
        rc = cli_error(cli, CLI_CORRUPT,
                       "The data type variable_length_bytes can hold any bytes.",
                       "line %" PRIu64 " of %s is not UTF-8", e->n + 1, name);
    else
        rc = add_json(cli, e, name, json.text);
    cli_string_free(&json);
    cli_string_free(&text);
    return rc;
}

static int read_lines(struct cli *cli, struct cli_elements *e, const char *name,
                      const struct cli_string *text, bool plain)
{
    int rc = CLI_OK;

    for (size_t at = 0; !rc && at < text->n_bytes;) {
        const char *line = text->text + at;
        const char *end = memchr(line, '\n', text->n_bytes - at);
        const size_t bytes = end ? (size_t)(end - line) : text->n_bytes - at;

        if (plain)
            rc = add_line_text(cli, e, name, line, bytes);
        else if (strspn(line, " \t\r") < bytes) /* skips empty lines */
            rc = add_slice(cli, e, name, line, bytes);
        at += bytes + 1;
    }
    e->ndim = 1;
    e->shape[0] = e->n;
    return rc;
}

/* ---- nested arrays ---- */

struct nest {
    const char *text, *at;
    int32_t depth;
    uint64_t count[ZARR_MAX_RANK];
    bool known[ZARR_MAX_RANK];
    bool done;
};

static int wrong_text(struct cli *cli, const char *name, const char *what,
                      const struct nest *t)
{
    return cli_error(cli, CLI_CORRUPT, NULL, "%s: byte %zu: %s", name,
                     (size_t)(t->at - t->text), what);
}

static void skip_blanks(struct nest *t)
{
    t->at += strspn(t->at, " \t\r\n");
}

/* The nesting of a text up to its first value that is not null. */
struct depths {
    int32_t value; /* of that value; -1: none */
    int32_t null;  /* the least depth of a null before it; -1: none */
    int32_t most;  /* the greatest depth before it */
};

static struct depths find_depths(const char *text)
{
    struct depths d = {.value = -1, .null = -1};

    for (int32_t depth = 0; *text && d.value < 0;) {
        if (*text == '[' || *text == ']')
            depth += *text == '[' ? 1 : -1;
        d.most = depth > d.most ? depth : d.most;
        if (strchr("[], \t\r\n", *text)) {
            text++;
        } else if (strncmp(text, "null", 4) == 0) {
            d.null = d.null < 0 || depth < d.null ? depth : d.null;
            text += 4;
        } else {
            d.value = depth;
        }
    }
    return d;
}

/* Finds how many levels of brackets are dimensions of the array. The others belong to the
 * elements: an element may be a list itself, and an optional value is null or a list of
 * one. wanted: the rank of the array if the text is ambiguous; -1: not known. */
static int count_dimensions(struct cli *cli, const struct cli_elements *e,
                            const char *text, int32_t wanted, int32_t *ndim)
{
    void *zero = cli_alloc(e->item_bytes + 1);
    const struct depths d = find_depths(text);
    const zarr_dtype *type = e->type;
    struct cli_string json = {0};
    int32_t wrapped = 0, own;
    int rc;

    for (; zarr_dtype_underlying(type); type = zarr_dtype_underlying(type))
        wrapped++;
    memset(zero, 0, e->item_bytes + 1);
    rc = cli_element_json(cli, type, zero, &json);
    own = !rc && json.n_bytes && *json.text == '[';
    if (d.value >= 0)
        *ndim = d.value - wrapped - own;
    else if (d.null >= 0) /* nested optionals: [null] is a value or a list of values */
        *ndim = wrapped > 1 && wanted >= 0 && wanted < d.null ? wanted : d.null;
    else if (zarr_dtype_kind(type) == ZARR_KIND_VARRAY) /* an element may be [] */
        *ndim = wanted >= 0 && wanted <= d.most ? wanted : d.most - wrapped - own;
    else
        *ndim = d.most;
    cli_string_free(&json);
    free(zero);
    return rc;
}

/* Reads the text after a value: ends of lists, and the comma before the next value. */
static int close_lists(struct cli *cli, struct cli_elements *e, const char *name,
                       struct nest *t)
{
    for (;; t->at++) {
        skip_blanks(t);
        if (t->depth == 0) {
            t->done = true;
            return *t->at ? wrong_text(cli, name, "there is text after the array", t)
                          : CLI_OK;
        }
        if (*t->at == ',' && t->count[t->depth - 1] > 0) {
            t->at++;
            return CLI_OK;
        }
        if (*t->at != ']')
            return wrong_text(cli, name, "expected , or ]", t);
        t->depth--;
        if (t->known[t->depth] && e->shape[t->depth] != t->count[t->depth])
            return wrong_text(cli, name, "lists of one dimension differ in length", t);
        e->shape[t->depth] = t->count[t->depth];
        t->known[t->depth] = true;
        if (t->depth > 0)
            t->count[t->depth - 1]++;
    }
}

static int read_nested(struct cli *cli, struct cli_elements *e, const char *name,
                       const struct cli_string *text, int32_t wanted)
{
    struct nest t = {.text = text->text, .at = text->text};
    int rc = count_dimensions(cli, e, t.at, wanted, &e->ndim);

    if (!rc && (e->ndim < 0 || e->ndim > ZARR_MAX_RANK))
        rc = wrong_text(cli, name, "this is not an array of such elements", &t);
    while (!rc && !t.done) {
        skip_blanks(&t);
        if (t.depth < e->ndim) {
            if (*t.at != '[')
                return wrong_text(cli, name, "expected [", &t);
            t.at++;
            t.count[t.depth++] = 0;
            skip_blanks(&t);
            if (*t.at != ']')
                continue;
        } else {
            const char *end = cli_json_value_end(t.at);

            rc = add_slice(cli, e, name, t.at, (size_t)(end - t.at));
            t.at = end;
            if (t.depth > 0)
                t.count[t.depth - 1]++;
        }
        if (!rc)
            rc = close_lists(cli, e, name, &t);
    }
    return rc;
}

/* ---- whole files ---- */

int cli_elements_read(struct cli *cli, struct cli_source *source, const char *format,
                      const zarr_dtype *type, int32_t ndim, struct cli_elements *out)
{
    struct cli_string text = {0};
    int rc;

    elements_init(out, type);
    rc = cli_source_text(cli, source, &text);
    out->text_bytes = text.n_bytes;
    if (!rc && *format == 'j')
        rc = read_nested(cli, out, source->name, &text, ndim);
    else if (!rc)
        rc = read_lines(cli, out, source->name, &text, *format == 'l');
    cli_string_free(&text);
    return rc;
}

int cli_elements_convert(struct cli *cli, const zarr_dtype *from, const void *data,
                         uint64_t n, const char *name, const zarr_dtype *to,
                         struct cli_elements *out)
{
    const uint64_t bytes = zarr_dtype_item_bytes(from);
    const bool padded = zarr_dtype_kind(from) == ZARR_KIND_BYTES;
    struct cli_string json = {0};
    int rc = CLI_OK;

    elements_init(out, to);
    for (uint64_t i = 0; !rc && i < n; i++) {
        const char *at = (const char *)data + i * bytes;
        size_t length = (size_t)bytes;

        json.n_bytes = 0;
        while (padded && length > 0 && at[length - 1] == '\0')
            length--;
        rc = padded ? add_line_text(cli, out, name, at, length)
                    : cli_element_json(cli, from, at, &json);
        if (!rc && !padded)
            rc = add_json(cli, out, name, json.text);
    }
    cli_string_free(&json);
    return rc;
}
