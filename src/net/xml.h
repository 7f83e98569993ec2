/*
 * net/xml.h - a part of the door: reads XML that a server sent, by libexpat, which the
 * first call loads.
 */
#ifndef ZR_NET_XML_H
#define ZR_NET_XML_H

#include "base/base.h"

enum {
    ZR_XML_DEPTH_MOST = 32,
    ZR_XML_TEXT_MOST = 256 << 10 /* bytes of the text of an element */
};

/* What gets the elements, in their order. A name is "NAMESPACE NAME", or the name alone.
 * Both may be NULL; a failure ends the reading with its status and text. */
struct zr_xml_sink {
    zarr_status (*begin)(void *user, const char *name, zarr_error *err);
    /* text: UTF-8, of an element without others inside, else NULL */
    zarr_status (*end)(void *user, const char *name, const char *text, zarr_error *err);
    void *user;
};
/* Reads a document. A declaration of a document type is refused, so there are no entities
 * but those of XML itself. CORRUPT: it is malformed, deeper or longer than the limits
 * above. UNSUPPORTED: there is no libexpat, or this build lacks it. */
zarr_status zr_xml_read(const struct zr_xml_sink *sink, const zarr_allocator *alloc,
                        const char *bytes, size_t n, zarr_error *err);

#endif
