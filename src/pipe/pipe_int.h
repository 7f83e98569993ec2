/*
 * pipe/pipe_int.h - what the files of this room share, by subject.
 */
#ifndef ZR_PIPE_INT_H
#define ZR_PIPE_INT_H

#include "pipe/chunk_int.h"
#include "pipe/flow_int.h"
#include "pipe/read_int.h"
#include "pipe/work_int.h"
#include "pipe/write_int.h"

#endif
