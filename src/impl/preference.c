/*
 * impl/preference.c - reads codec preferences, "zstd=cuda.nvcomp,cpu.libzstd;gzip=cpu":
 * the implementations of a codec to prefer, best first. A name matches itself and every
 * name that begins with it and a dot. Codecs that the text does not name keep their
 * priorities. Blanks are ignored. A list may name implementations of plug-ins that this
 * machine does not have. But if the list has no name that is registered, or none that can
 * serve, this is an error or a warning (zr_preference_tell()).
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

zarr_status zr_preference_tell(const struct zr_placement_options *opts,
                               const struct zr_impl_registry *impls,
                               const zarr_codec_spec *spec, const struct zr_impl *chosen,
                               zarr_error *err)
{
    const char *codec = zarr_codec_spec_name(spec);
    const char *verb = opts->encode ? "encode" : "decode";
    const uint32_t able = opts->encode ? ZARR_CODEC_CAN_ENCODE : ZARR_CODEC_CAN_DECODE;
    struct pref_word list;
    uint32_t caps = 0;
    int n;

    if (!pref_list(opts->preference, codec, &list))
        return ZARR_OK;
    caps = pref_caps(impls, spec, &list);
    n = (int)ZR_MIN(list.bytes, (size_t)100);
    if (!caps) {
        if (opts->strict)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "codec preference: no implementation of \"%s\" is named "
                           "\"%.*s\"; \"%s\" is one",
                           codec, n, list.text, chosen->vt.impl);
        zr_log(opts->log, ZARR_LOG_WARN,
               "codec preference: no implementation of \"%s\" is named \"%.*s\"; "
               "\"%s\" is used to %s",
               codec, n, list.text, chosen->vt.impl, verb);
        return ZARR_OK;
    }
    if (zr_preference_rank(opts->preference, codec, chosen->vt.impl) >=
        zr_preference_length(opts->preference, codec))
        zr_log(opts->log, caps & able ? ZARR_LOG_WARN : ZARR_LOG_INFO,
               "codec preference: \"%.*s\" cannot %s \"%s\" here, for its memory, its "
               "chunks or its direction; \"%s\" is used",
               n, list.text, verb, codec, chosen->vt.impl);
    return ZARR_OK;
}

uint32_t zr_preference_length(const char *text, const char *codec)
{
    return zr_preference_rank(text, codec, "");
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
