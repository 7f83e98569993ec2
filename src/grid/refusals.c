/*
 * grid/refusals.c - chunk grids and chunk key encodings that real files or specifications
 * name and that this library refuses on purpose, each with its reason. Kinds "chunk
 * grid", "chunk key encoding" and "member" (of a configuration of either).
 */
#include "grid/grid_int.h"

const struct zr_refusal zr_grid_refused[] = {
    {"chunk grid", "rectangular", "a draft (ZEP 3) that \"rectilinear\" has replaced"},
    {"member", "encoded_chunk_shapes", ZR_REFUSED_DRAFT("75")},
    {"chunk key encoding", "fanout", ZR_REFUSED_DRAFT("31")},
    {"chunk key encoding", "prefix", ZR_REFUSED_DRAFT("47")},
    {"chunk key encoding", "template", ZR_REFUSED_DRAFT("69")},
    {NULL, NULL, NULL},
};
