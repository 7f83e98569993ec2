/*
 * node/node.h - the door of nodes as documents: their paths, the texts under their
 * metadata keys, how nodes are found, listed, written and erased, and what handles of
 * arrays and groups share. A *document* is the text under one metadata key (zr_doc). A
 * *found* node is the node at a path: kind, format and the parsed document (zr_found).
 */
#ifndef ZR_NODE_H
#define ZR_NODE_H

#include "node/change.h"
#include "node/document.h"
#include "node/handle.h"
#include "node/members.h"

#endif
