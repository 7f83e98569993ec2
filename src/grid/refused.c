/*
 * grid/refused.c - chunk grids and chunk key encodings that real files or specifications
 * name and that this library refuses on purpose, each with its reason. Kinds "chunk grid"
 * and "chunk key encoding".
 */
#include "grid/grid_int.h"

const struct zr_refusal zr_grid_refused[] = {
    {"chunk grid", "rectangular", "a draft (ZEP 3) that \"rectilinear\" has replaced"},
    {NULL, NULL, NULL},
};
