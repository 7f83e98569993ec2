/*
 * diff/report.c - what zarrc diff says: for people one line a difference, under
 * a line that names the node; for programs one object a node that differs.
 * Values of elements are spelt as everywhere, with all their digits.
 */
#include "diff/diff.h"
#include "data/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT = 60
}; /* longer values are cut in text */

static bool is_silent(const struct diff *d)
{
    return d->cli->quiet && !d->cli->json;
}

void cli_diff_begin(struct diff *d)
{
    if (!d->cli->json)
        return;
    cli_json_object(cli_json(d->cli));
    cli_json_text(cli_key(cli_json(d->cli), "a"), d->a.shown);
    cli_json_text(cli_key(cli_json(d->cli), "b"), d->b.shown);
    cli_json_array(cli_key(cli_json(d->cli), "nodes"));
}

void cli_diff_end(struct diff *d)
{
    struct cli_json *j;

    if (!d->cli->json) {
        if (d->n_different == 0)
            cli_note(d->cli, "%s and %s are equal (%" PRIu64 " nodes)", d->a.shown,
                     d->b.shown, d->n_nodes);
        return;
    }
    j = cli_json(d->cli);
    cli_json_end(j);
    cli_json_bool(cli_key(j, "equal"), d->n_different == 0);
    cli_json_u64(cli_key(j, "nodes_compared"), d->n_nodes);
    cli_json_u64(cli_key(j, "nodes_different"), d->n_different);
    cli_json_end(j);
}

static bool is_first(const struct diff_pair *p)
{
    return p->n_facts == 0 && p->elements.n_different == 0;
}

/* The node's line or object, before its first difference. */
static void open_node(struct diff_pair *p)
{
    struct cli *cli = p->d->cli;

    if (!is_first(p))
        return;
    if (cli->json) {
        cli_json_object(cli_json(cli));
        cli_json_text(cli_key(cli_json(cli), "path"), p->path);
        cli_json_array(cli_key(cli_json(cli), "differences"));
    } else if (!is_silent(p->d)) {
        cli_printf(cli, "%s and %s differ\n", p->shown_a, p->shown_b);
    }
}

static void value_json(struct cli_json *j, const char *value, bool is_json)
{
    if (is_json && value)
        cli_json_raw(j, value);
    else
        cli_json_text(j, value);
}

static const char *cut(const char *value, char text[SHORT + 4])
{
    if (!value)
        return "(none)";
    if (strlen(value) <= SHORT)
        return value;
    memcpy(text, value, SHORT);
    memcpy(text + SHORT, "...", 4);
    return text;
}

void cli_diff_fact(struct diff_pair *p, const char *what, const char *a, const char *b,
                   bool is_json)
{
    struct cli *cli = p->d->cli;
    char ta[SHORT + 4], tb[SHORT + 4];

    open_node(p);
    p->n_facts++;
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "what"), what);
        value_json(cli_key(j, "a"), a, is_json);
        value_json(cli_key(j, "b"), b, is_json);
        cli_json_end(j);
    } else if (!is_silent(p->d)) {
        cli_printf(cli, "  %s: %s | %s\n", what, cut(a, ta), cut(b, tb));
    }
}

void cli_diff_only(struct diff *d, const char *path, char side)
{
    struct cli *cli = d->cli;

    d->n_nodes++;
    d->n_different++;
    if (cli->json) {
        struct cli_json *j = cli_json(cli);

        cli_json_object(j);
        cli_json_text(cli_key(j, "path"), path);
        cli_json_text(cli_key(j, "only_in"), side == 'a' ? "a" : "b");
        cli_json_end(j);
    } else if (!is_silent(d)) {
        char *shown = cli_shown_below(side == 'a' ? &d->a : &d->b, path);

        cli_printf(cli, "only %s\n", shown);
        free(shown);
    }
}

static void element_json(struct diff_pair *p, const uint64_t *at, const void *a,
                         const void *b)
{
    struct cli_json *j = cli_json(p->d->cli);
    const zarr_dtype *type = p->field[0].type;
    struct cli_string text = {0};

    if (!p->in_elements) {
        cli_json_end(j); /* differences */
        cli_json_array(cli_key(j, "elements"));
        p->in_elements = true;
    }
    cli_json_object(j);
    cli_json_shape(cli_key(j, "index"), p->ndim, at);
    cli_element_json(p->d->cli, type, a, &text);
    cli_json_raw(cli_key(j, "a"), text.text);
    text.n_bytes = 0;
    cli_element_json(p->d->cli, type, b, &text);
    cli_json_raw(cli_key(j, "b"), text.text);
    cli_json_end(j);
    free(text.text);
}

static void element_text(struct diff_pair *p, const uint64_t *at, const void *a,
                         const void *b)
{
    const zarr_dtype *type = p->field[0].type;
    struct cli_string text = {0};

    cli_string_printf(&text, "  [");
    for (int32_t d = 0; d < p->ndim; d++)
        cli_string_printf(&text, "%s%" PRIu64, d ? ", " : "", at[d]);
    cli_string_printf(&text, "]: ");
    cli_element_text(p->d->cli, type, a, &text);
    cli_string_printf(&text, " | ");
    cli_element_text(p->d->cli, type, b, &text);
    cli_string_printf(&text, "\n");
    cli_out(p->d->cli, text.text, text.n_bytes);
    free(text.text);
}

void cli_diff_element(struct diff_pair *p, const uint64_t *at, const void *a,
                      const void *b)
{
    open_node(p);
    p->elements.n_different++;
    if (p->elements.n_shown >= p->d->limit || is_silent(p->d))
        return;
    p->elements.n_shown++;
    if (p->d->cli->json)
        element_json(p, at, a, b);
    else
        element_text(p, at, a, b);
}

void cli_diff_pair_begin(struct diff_pair *p)
{
    p->d->n_nodes++;
    p->elements.largest = -1;
}

static void end_json(struct diff_pair *p)
{
    struct cli_json *j = cli_json(p->d->cli);

    cli_json_end(j); /* differences or elements */
    if (p->elements.n_compared) {
        cli_json_u64(cli_key(j, "elements_compared"), p->elements.n_compared);
        cli_json_u64(cli_key(j, "elements_different"), p->elements.n_different);
        if (p->elements.largest >= 0)
            cli_json_f64(cli_key(j, "largest_difference"), p->elements.largest);
    }
    cli_json_end(j);
}

static void end_text(struct diff_pair *p)
{
    const struct diff_elements *e = &p->elements;

    if (e->n_different == 0)
        return;
    if (e->n_different > e->n_shown)
        cli_printf(p->d->cli, "  ... and %" PRIu64 " more\n",
                   e->n_different - e->n_shown);
    cli_printf(p->d->cli, "  %" PRIu64 " of %" PRIu64 " elements differ", e->n_different,
               e->n_compared);
    if (e->largest >= 0) {
        char *at = cli_shape_text(p->ndim, e->largest_at);

        cli_printf(p->d->cli, ", by %.6g at most, at %s", e->largest, at);
        free(at);
    }
    cli_printf(p->d->cli, "\n");
}

void cli_diff_pair_end(struct diff_pair *p)
{
    if (is_first(p))
        return;
    p->d->n_different++;
    if (p->d->cli->json)
        end_json(p);
    else if (!is_silent(p->d))
        end_text(p);
}
