/*
 * net/noxml.c - a build without libexpat's headers reads no XML.
 *
 * Thread class: plain function.
 */
#include "net/xml.h"

zarr_status zr_xml_read(const struct zr_xml_sink *sink, const zarr_allocator *alloc,
                        const char *bytes, size_t n, zarr_error *err)
{
    ZR_UNUSED(sink, alloc, bytes, n);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "listings in XML are not supported: this build lacks libexpat");
}
