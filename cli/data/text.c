/*
 * data/text.c - one element as text. Its JSON is the library's spelling of a fill value
 * (zarr_dtype_print), except that opaque bytes are base64 in every format, so that other
 * programs need only one rule. The readable text is made from the JSON: without quotes,
 * complex numbers as NumPy writes them.
 */
#include "data/data.h"

#include <stdlib.h>
#include <string.h>

void cli_base64(const void *bytes, size_t n, struct cli_string *out)
{
    const unsigned char *data = bytes;
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;
        char four[4];

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? data[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            four[k] = i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63];
        cli_string_add(out, four, 4);
    }
}

static bool is_opaque(uint32_t kind)
{
    return kind == ZARR_KIND_RAW || kind == ZARR_KIND_BYTES;
}

static int add_printed(struct cli *cli, const zarr_dtype *type, const void *element,
                       struct cli_string *out)
{
    zarr_error err = {0};
    const zarr_status st = cli_element_print(type, element, out, &err);

    return st ? cli_fail(cli, st, &err, "cannot write an element as text") : CLI_OK;
}

/* Bytes of ASCII without control characters at the front. Numbers have no others. */
static size_t count_plain(const char *text, size_t bytes)
{
    size_t n = 0;

    while (n < bytes && text[n] >= ' ' && text[n] < 0x7f)
        n++;
    return n;
}

/* JSON may have U+007F to U+009F as they are, which terminals obey. */
static bool has_controls(const char *text, size_t n)
{
    unsigned code;

    for (size_t i = count_plain(text, n); i < n; i++)
        if (cli_control(text + i, n - i, false, &code) > 0)
            return true;
    return false;
}

static int add_json(struct cli *cli, const zarr_dtype *type, const void *element,
                    struct cli_string *out)
{
    const size_t before = out->n_bytes;
    struct cli_string clean = {0};
    const int rc = add_printed(cli, type, element, out);

    if (!rc && has_controls(out->text + before, out->n_bytes - before)) {
        cli_add_clean(&clean, out->text + before, out->n_bytes - before);
        out->n_bytes = before;
        cli_string_add(out, clean.text, clean.n_bytes);
        cli_string_free(&clean);
    }
    return rc;
}

int cli_element_json(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out)
{
    if (!is_opaque(zarr_dtype_kind(type)))
        return add_json(cli, type, element, out);
    cli_string_add(out, "\"", 1);
    cli_base64(element, (size_t)zarr_dtype_item_bytes(type), out);
    cli_string_add(out, "\"", 1);
    return CLI_OK;
}

static void add_raw(const unsigned char *data, size_t n, bool hex, struct cli_string *out)
{
    if (hex)
        cli_string_add(out, "0x", 2);
    else
        while (n && data[n - 1] == 0)
            n--; /* padding */
    for (size_t i = 0; i < n; i++)
        if (hex)
            cli_string_printf(out, "%02x", data[i]);
        else if (data[i] < 0x20 || data[i] > 0x7e || data[i] == '\\')
            cli_string_printf(out, "\\x%02x", data[i]);
        else
            cli_string_add(out, data + i, 1);
}

/* Text with its control characters escaped, for terminals and CSV. keep: those that are
 * not. */
static void add_line(const void *text, size_t bytes, const char *keep,
                     struct cli_string *out)
{
    const char *at = text, *end = at + bytes;

    cli_string_add(out, "", 0);
    while (at < end) {
        const size_t left = (size_t)(end - at), plain = count_plain(at, left);
        unsigned code;
        size_t n = plain;

        if (n == 0 && (*at == '\0' || !strchr(keep, *at)))
            n = cli_control(at, left, false, &code);
        if (n > plain)
            cli_string_printf(out, "\\x%02x", code);
        else
            cli_string_add(out, at, n = n ? n : 1);
        at += n;
    }
}

/* A JSON string without its quotes, as lines; any other value unchanged. */
static void add_plain(const char *json, size_t bytes, struct cli_string *out)
{
    struct cli_string text = {0};

    if (cli_json_unquote_to(json, bytes, &text))
        add_line(text.text, text.n_bytes, "\t\n\r", out);
    else
        cli_string_add(out, json, bytes);
    cli_string_free(&text);
}

/* "[1.0, -2.0]" as 1.0-2.0j */
static void add_complex(const char *json, struct cli_string *out)
{
    size_t n = 0;
    const char *part = cli_json_item(json, 0, &n);

    if (part)
        add_plain(part, n, out);
    part = cli_json_item(json, 1, &n);
    if (!part)
        return;
    if (*part != '-' && strncmp(part, "\"-", 2) != 0)
        cli_string_add(out, "+", 1);
    add_plain(part, n, out);
    cli_string_add(out, "j", 1);
}

int cli_element_text(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out)
{
    const uint32_t kind = zarr_dtype_kind(type);
    struct cli_string json = {0};
    int rc;

    if (is_opaque(kind)) {
        add_raw(element, (size_t)zarr_dtype_item_bytes(type), kind != ZARR_KIND_BYTES,
                out);
        return CLI_OK;
    }
    if (kind == ZARR_KIND_VARRAY)
        return add_json(cli, type, element, out);
    if (zarr_dtype_variable(type) && kind != ZARR_KIND_OPTIONAL) {
        zarr_vlen item;

        memcpy(&item, element, sizeof item);
        if (kind == ZARR_KIND_STRING)
            add_line(item.data, (size_t)item.bytes, "", out);
        else
            add_raw(item.data, (size_t)item.bytes, true, out);
        return CLI_OK;
    }
    if (kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT || kind == ZARR_KIND_BOOL)
        return add_printed(cli, type, element, out);
    cli_string_add(&json, "", 0);
    rc = add_json(cli, type, element, &json);
    if (!rc && kind == ZARR_KIND_COMPLEX)
        add_complex(json.text, out);
    else if (!rc)
        add_plain(json.text, json.n_bytes, out);
    cli_string_free(&json);
    return rc;
}

void cli_csv_field(const struct cli_string *field, bool is_alone, struct cli_string *out)
{
    const char *t = field->text;

    if (!strpbrk(t, ",\"\r\n") && (!is_alone || *t)) { /* readers skip empty lines */
        cli_string_add(out, t, field->n_bytes);
        return;
    }
    cli_string_add(out, "\"", 1);
    for (; *t; t++)
        cli_string_add(out, *t == '"' ? "\"\"" : t, *t == '"' ? 2 : 1);
    cli_string_add(out, "\"", 1);
}
