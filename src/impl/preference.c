/*
 * impl/preference.c - reads codec preferences, "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu":
 * the implementations of a codec to prefer, best first. A name matches itself and every
 * name that begins with it and a dot. Codecs that the text does not name keep their
 * priorities. Blanks are ignored. A list may name implementations of plug-ins that this
 * machine does not have. If it has no name that is registered, this is an error or a
 * warning (zr_preference_check()); if none can serve, a warning (zr_preference_tell()).
 * Thread class: plain functions; they do not copy the text.
 */
#include "impl/impl_int.h"

#include <stdio.h>
#include <string.h>

enum {
    PREF_CODEC_BYTES = 128 /* a longer name is no codec's */
};

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

static zarr_status pref_check_form(const char *text, zarr_error *err)
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

/* The part of a text after "=" for a codec, up to the semicolon. False: it has none. */
static bool pref_list(const char *text, const char *codec, struct pref_word *list)
{
    const char *at = text ? text : "";

    while (*at) {
        struct pref_word w = pref_word(at, "=;");
        const bool ours = w.stop == '=' && w.bytes == strlen(codec) &&
                          strncmp(w.text, codec, w.bytes) == 0;

        if (w.stop == '=') {
            *list = pref_word(w.next, ";");
            if (ours)
                return true;
            w = *list;
        }
        at = w.next;
    }
    return false;
}

/* The capabilities, together, of the implementations of a codec that a list names. 0:
 * none is registered. */
static uint32_t pref_caps(const struct zr_impl_registry *impls,
                          const zarr_codec_spec *spec, const struct pref_word *list)
{
    uint32_t caps = 0;

    for (size_t k = 0; k < zr_impl_count(impls); k++) {
        const struct zr_impl *impl = zr_impl_at(impls, k);
        struct pref_word w = {.stop = ',', .next = list->text};

        if (!zr_impl_is_for(impl, spec->vt))
            continue;
        while (w.stop == ',') {
            w = pref_word(w.next, ",;");
            if (pref_names(&w, impl->vt.impl))
                caps |= impl->vt.caps;
        }
    }
    return caps;
}

/* Whether an implementation of this codec, of either format, is in the list. */
static bool pref_knows(const struct zr_impl_registry *impls, const char *codec,
                       const struct pref_word *list)
{
    bool known = false;

    for (size_t k = 0; k < zr_impl_count(impls) && !known; k++) {
        const struct zr_impl *impl = zr_impl_at(impls, k);
        struct pref_word w = {.stop = ',', .next = list->text};

        while (!known && w.stop == ',' && zr_streq(impl->vt.codec, codec)) {
            w = pref_word(w.next, ",;");
            known = pref_names(&w, impl->vt.impl);
        }
    }
    return known;
}

zarr_status zr_preference_check(const char *text, const struct zr_codec_registry *codecs,
                                const struct zr_impl_registry *impls,
                                const struct zr_log *log, zarr_error *err)
{
    const char *at = text ? text : "";
    char codec[PREF_CODEC_BYTES];

    ZR_CHECK(pref_check_form(text, err));
    while (*at) {
        const struct pref_word w = pref_word(at, "=;");
        const struct pref_word list = pref_word(w.next, ";");
        const int n = (int)ZR_MIN(list.bytes, (size_t)100);

        at = w.stop == '=' ? list.next : w.next;
        if (w.stop != '=')
            continue;
        snprintf(codec, sizeof codec, "%.*s", (int)ZR_MIN(w.bytes, sizeof codec), w.text);
        if (!zr_codec_spec_has(codecs, codec, false) &&
            !zr_codec_spec_has(codecs, codec, true))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "codec preference: there is no codec \"%s\"", codec);
        if (pref_knows(impls, codec, &list))
            continue;
        if (!log)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "codec preference: no implementation of \"%s\" is named "
                           "\"%.*s\"",
                           codec, n, list.text);
        zr_log(log, ZARR_LOG_WARN,
               "codec preference: no implementation of \"%s\" is named \"%.*s\"", codec,
               n, list.text);
    }
    return ZARR_OK;
}

void zr_preference_tell(const struct zr_placement_options *opts,
                        const struct zr_impl_registry *impls, const zarr_codec_spec *spec,
                        const struct zr_impl *chosen)
{
    const char *codec = zarr_codec_spec_name(spec);
    const char *verb = opts->encode ? "encode" : "decode";
    const uint32_t able = opts->encode ? ZARR_CODEC_CAN_ENCODE : ZARR_CODEC_CAN_DECODE;
    struct pref_word list;
    uint32_t caps = 0;

    if (!pref_list(opts->preference, codec, &list))
        return;
    caps = pref_caps(impls, spec, &list);
    if (caps && zr_preference_rank(opts->preference, codec, chosen->vt.impl) ==
                    zr_preference_rank(opts->preference, codec, "")) /* not in the list */
        zr_log(opts->log, caps & able ? ZARR_LOG_WARN : ZARR_LOG_INFO,
               "codec preference: \"%.*s\" cannot %s \"%s\" here, for its memory, its "
               "chunks or its direction; \"%s\" is used",
               (int)ZR_MIN(list.bytes, (size_t)100), list.text, verb, codec,
               chosen->vt.impl);
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
