/*
 * net/xml.c - XML by libexpat, which is not linked: only listings need it. libexpat stays
 * loaded until the process ends. Expat recurses on no input, and without a document type
 * nothing expands, so the memory of a document is bounded by its length and the limits.
 *
 * Thread class: shared.
 */
#include "net/net_int.h"

#include <expat.h>
#include <stddef.h>

/* X(type of the result, name without XML_, arguments) */
#define XML_FUNCTIONS(X)                                                                 \
    X(XML_Parser, ParserCreateNS, (const XML_Char *, XML_Char))                          \
    X(void, ParserFree, (XML_Parser))                                                    \
    X(void, SetUserData, (XML_Parser, void *))                                           \
    X(void, SetElementHandler,                                                           \
      (XML_Parser, XML_StartElementHandler, XML_EndElementHandler))                      \
    X(void, SetCharacterDataHandler, (XML_Parser, XML_CharacterDataHandler))             \
    X(void, SetStartDoctypeDeclHandler, (XML_Parser, XML_StartDoctypeDeclHandler))       \
    X(enum XML_Status, Parse, (XML_Parser, const char *, int, int))                      \
    X(enum XML_Status, StopParser, (XML_Parser, XML_Bool))                               \
    X(enum XML_Error, GetErrorCode, (XML_Parser))                                        \
    X(const XML_LChar *, ErrorString, (enum XML_Error))

enum {
    XML_PIECE = 1 << 20 /* of a document, in one call of expat */
};

struct xml_expat {
#define XML_MEMBER(type, name, arguments) type(*name) arguments;
    XML_FUNCTIONS(XML_MEMBER)
#undef XML_MEMBER
};
static struct xml_expat expat; /* after expat_load */

static struct {
    zr_once once;
    zarr_status st;
    zarr_error err;
} expat_load = {.once = ZR_ONCE_INIT};

/* ---- loading ---- */

#ifdef ZR_LINK_CURL /* what is linked statically cannot load it either */
static zarr_status expat_fill(zarr_error *err)
{
    ZR_UNUSED(err);
#    define XML_MEMBER(type, name, arguments) expat.name = XML_##name;
    XML_FUNCTIONS(XML_MEMBER)
#    undef XML_MEMBER
    return ZARR_OK;
}
#else
static zarr_status expat_fill(zarr_error *err)
{
    static const struct zr_net_symbol symbols[] = {
#    define XML_MEMBER(type, name, arguments)                                            \
        {"XML_" #name, offsetof(struct xml_expat, name)},
        XML_FUNCTIONS(XML_MEMBER)
#    undef XML_MEMBER
    };
    static const char *const files[] = {
#    ifdef __APPLE__
        "libexpat.1.dylib",
#    else
        "libexpat.so.1",
#    endif
        NULL};

    return zr_net_load_library(&expat, files, symbols, ZR_COUNT(symbols),
                               "listings in XML need libexpat", err);
}
#endif

static void expat_load_once(void)
{
    expat_load.st = expat_fill(&expat_load.err);
}

/* ---- reading ---- */

struct xml_reader {
    const struct zr_xml_sink *sink;
    XML_Parser parser;
    uint32_t depth;
    bool is_leaf; /* the element that began last is open */
    struct zr_str text;
    zarr_status st; /* the first failure */
    zarr_error err;
};

static void reader_stop(struct xml_reader *r, zarr_status st)
{
    if (st == ZARR_OK || r->st != ZARR_OK)
        return;
    r->st = st;
    (void)expat.StopParser(r->parser, XML_FALSE);
}

static void reader_begin(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_reader *r = user;

    ZR_UNUSED(attributes);
    if (r->st != ZARR_OK) /* expat may still call it after a stop */
        return;
    zr_str_clear(&r->text);
    r->is_leaf = true;
    if (++r->depth > ZR_XML_DEPTH_MOST)
        reader_stop(r, zr_fail(&r->err, ZARR_ERR_CORRUPT,
                               "the XML has more than %d elements inside each other",
                               ZR_XML_DEPTH_MOST));
    else if (r->sink->begin)
        reader_stop(r, r->sink->begin(r->sink->user, name, &r->err));
}

static void reader_end(void *user, const XML_Char *name)
{
    struct xml_reader *r = user;

    if (r->st != ZARR_OK)
        return;
    r->depth--;
    if (r->sink->end)
        reader_stop(r, r->sink->end(r->sink->user, name,
                                    r->is_leaf ? zr_str_text(&r->text) : NULL, &r->err));
    r->is_leaf = false;
}

static void reader_text(void *user, const XML_Char *text, int n)
{
    struct xml_reader *r = user;

    if (r->st != ZARR_OK || !r->is_leaf)
        return;
    if ((size_t)n > ZR_XML_TEXT_MOST - r->text.bytes) {
        reader_stop(r, zr_fail(&r->err, ZARR_ERR_CORRUPT,
                               "the XML has a text of more than %d bytes",
                               ZR_XML_TEXT_MOST));
        return;
    }
    zr_str_append(&r->text, text, (size_t)n);
    reader_stop(r, zr_str_status(&r->text, &r->err));
}

static void reader_doctype(void *user, const XML_Char *name, const XML_Char *system,
                           const XML_Char *pub, int has_subset)
{
    struct xml_reader *r = user;

    ZR_UNUSED(name, system, pub, has_subset);
    if (r->st == ZARR_OK)
        reader_stop(
            r, zr_fail(&r->err, ZARR_ERR_CORRUPT, "the XML declares a document type"));
}

static zarr_status reader_run(struct xml_reader *r, const char *bytes, size_t n,
                              zarr_error *err)
{
    enum XML_Status ok = XML_STATUS_OK;
    size_t at = 0, piece = 0;

    expat.SetUserData(r->parser, r);
    expat.SetElementHandler(r->parser, reader_begin, reader_end);
    expat.SetCharacterDataHandler(r->parser, reader_text);
    expat.SetStartDoctypeDeclHandler(r->parser, reader_doctype);
    do {
        piece = ZR_MIN(n - at, (size_t)XML_PIECE);
        ok = expat.Parse(r->parser, bytes + at, (int)piece, at + piece == n);
        at += piece;
    } while (ok == XML_STATUS_OK && at < n);
    if (r->st != ZARR_OK)
        return zr_pass(err, r->st, &r->err);
    if (ok != XML_STATUS_OK)
        return zr_fail(err, ZARR_ERR_CORRUPT, "the XML is malformed: %s",
                       expat.ErrorString(expat.GetErrorCode(r->parser)));
    return ZARR_OK;
}

zarr_status zr_xml_read(const struct zr_xml_sink *sink, const zarr_allocator *alloc,
                        const char *bytes, size_t n, zarr_error *err)
{
    struct xml_reader r = {.sink = sink};
    zarr_status st = ZARR_OK;

    zr_call_once(&expat_load.once, expat_load_once);
    if (expat_load.st != ZARR_OK)
        return zr_pass(err, expat_load.st, &expat_load.err);
    r.parser = expat.ParserCreateNS(NULL, ' ');
    if (!r.parser)
        return zr_fail(err, ZARR_ERR_NO_MEMORY, "libexpat lacks memory");
    zr_str_init(&r.text, alloc);
    st = reader_run(&r, bytes, n, err);
    if (r.text.ptr) /* it may have been a secret */
        zr_wipe(r.text.ptr, r.text.cap);
    zr_str_deinit(&r.text);
    expat.ParserFree(r.parser);
    return st;
}
