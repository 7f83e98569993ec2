/*
 * frame/suggest.c - the known word that is most similar to an unknown one, for "did you
 * mean".
 */
#include "frame/frame_int.h"

#include <stdio.h>
#include <string.h>

/* The Levenshtein distance of two words of at most 31 letters; 99 for longer ones. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[33];
    size_t n = strlen(a), m = strlen(b);

    if (n > 31 || m > 31)
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned corner = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);

            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[m];
}

struct search {
    const char *word;
    unsigned best; /* the least distance so far, or the largest that is accepted */
    bool found;
};

static struct search begin_search(const char *word)
{
    return (struct search){.word = word, .best = strlen(word) > 4 ? 3 : 2};
}

/* Whether this word is more similar than all before it. */
static bool is_nearer(struct search *s, const char *known)
{
    const size_t n = strlen(s->word);
    unsigned d = distance(s->word, known);

    if (d > 1 && n >= 3 && strncmp(s->word, known, n) == 0)
        d = 1; /* word is a prefix */
    if (d > s->best || (d == s->best && s->found))
        return false;
    s->best = d;
    s->found = true;
    return true;
}

const char *cli_nearest(const char *word, const char *const *list)
{
    struct search s = begin_search(word);
    const char *best = NULL;

    for (size_t i = 0; list[i]; i++)
        if (is_nearer(&s, list[i]))
            best = list[i];
    return best;
}

/* ---- names of a registry ---- */

struct name_search {
    struct search search;
    bool v2; /* a codec of Zarr v2 */
    char name[64];
};

static int look_at_name(void *user, const zarr_registry_item *item)
{
    static const char prefix[] = "numcodecs.";
    struct name_search *s = user;
    const char *name = item->registry != ZARR_REGISTRY_CODEC ? item->name
                       : s->v2                               ? item->v2
                                                             : item->v3;
    const size_t skip =
        strncmp(name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;

    if (*name && strlen(name) < sizeof s->name && is_nearer(&s->search, name + skip))
        snprintf(s->name, sizeof s->name, "%s", name);
    return 0;
}

/* What other programs call data types and codecs. */
static const char *find_synonym(const char *word)
{
    static const char *const synonyms[][2] = {{"float", "float32"}, {"text", "string"},
                                              {"utf8", "string"},   {"zstandard", "zstd"},
                                              {"deflate", "zlib"},  {"bzip2", "bz2"},
                                              {"xz", "lzma"}};

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i][0], word) == 0)
            return synonyms[i][1];
    return word;
}

/* Whether the word is in the value of an option: else it is in a store. */
static bool is_typed(const struct cli *cli, const char *word)
{
    for (size_t i = 0; i < cli->values->n_items; i++) {
        const char *text = cli->values->items[i].text;

        if (text && strstr(text, word))
            return true;
    }
    return false;
}

/* Copies the word from `kind "word" is unknown` at the end of a message. */
static bool read_unknown(const char *message, const char *kind, char *word, size_t size)
{
    const char *at = strstr(message, kind), *end;
    size_t n;

    if (!at)
        return false;
    at += strlen(kind);
    n = strcspn(at, "\"");
    end = at + n;
    if (n == 0 || n >= size ||
        (strcmp(end, "\" is unknown") != 0 && strcmp(end, "\" is not known") != 0))
        return false;
    snprintf(word, size, "%.*s", (int)n, at);
    return true;
}

const char *cli_nearest_name(const struct cli *cli, const char *message)
{
    static const struct {
        const char *kind;
        uint32_t registry;
    } kinds[] = {{"data type \"", ZARR_REGISTRY_DTYPE},
                 {"codec \"", ZARR_REGISTRY_CODEC},
                 {"key encoding \"", ZARR_REGISTRY_KEY_ENCODING}};
    static char hint[128];
    char word[32];
    struct name_search s = {.v2 = !strstr(message, "codecs[")};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!read_unknown(message, kinds[i].kind, word, sizeof word) ||
            !is_typed(cli, word))
            continue;
        s.search = begin_search(find_synonym(word));
        if (!cli->ctx ||
            zarr_context_list(cli->ctx, kinds[i].registry, look_at_name, &s, NULL) !=
                ZARR_OK ||
            !*s.name)
            return NULL;
        snprintf(hint, sizeof hint, "Did you mean \"%s\"? zarrc list shows all names.",
                 s.name);
        return hint;
    }
    return NULL;
}
