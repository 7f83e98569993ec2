/*
 * impl/preference.c - reads codec preferences, "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu":
 * the implementations of a codec to prefer, best first. A name matches itself and every
 * name that begins with it and a dot. Codecs that the text does not name keep their
 * priorities. Unregistered names are ignored, because a plug-in may be missing on this
 * machine; explain shows the choice. Blanks are ignored.
 * Thread class: plain functions; they do not copy the text.
 */
#include "impl/impl_int.h"

#include <string.h>

/* The text before a stop character, without blanks around it. */
struct pref_word {
    const char *text;
    size_t bytes;
    char stop;        /* the stop character; NUL at the end of the text */
    const char *next; /* after the stop */
};

static struct pref_word pref_word(const char *text, const char *stops)
{
    struct pref_word w = {0};
    const size_t n = strcspn(text, stops);

    w.text = text;
    w.bytes = n;
    w.stop = text[n];
    w.next = text[n] ? text + n + 1 : text + n;
    while (w.bytes && w.text[0] == ' ') {
        w.text++;
        w.bytes--;
    }
    while (w.bytes && w.text[w.bytes - 1] == ' ')
        w.bytes--;
    return w;
}

zarr_status zr_preference_check(const char *text, zarr_error *err)
{
    const char *at = text ? text : "";

    while (*at) {
        struct pref_word w = pref_word(at, "=;,");

        if (w.stop == '=' && w.bytes) {
            do {
                w = pref_word(w.next, "=;,");
                if (!w.bytes || w.stop == '=')
                    break;
            } while (w.stop == ',');
        } else if (!w.bytes && w.stop != '=' && w.stop != ',') {
            at = w.next; /* an empty part between semicolons */
            continue;
        } else {
            w.bytes = 0;
        }
        if (!w.bytes || w.stop == '=' || w.stop == ',')
            return zr_fail(
                err, ZARR_ERR_INVALID,
                "codec preference: expected codec=implementation,... at \"%s\"", at);
        at = w.next;
    }
    return ZARR_OK;
}

static bool pref_names(const struct pref_word *w, const char *impl)
{
    return strncmp(w->text, impl, w->bytes) == 0 &&
           (impl[w->bytes] == '\0' || impl[w->bytes] == '.');
}

uint32_t zr_preference_rank(const char *text, const char *codec, const char *impl)
{
    const char *at = text ? text : "";
    uint32_t rank = 0;

    while (*at) {
        struct pref_word w = pref_word(at, "=;");
        const bool ours = w.stop == '=' && w.bytes == strlen(codec) &&
                          strncmp(w.text, codec, w.bytes) == 0;

        while (w.stop == '=' || w.stop == ',') {
            w = pref_word(w.next, ",;");
            if (ours && pref_names(&w, impl))
                return rank;
            rank += ours;
        }
        at = w.next;
    }
    return rank;
}
