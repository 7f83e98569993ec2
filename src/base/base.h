/*
 * base/base.h - the door of the lowest room. It includes the headers of its subjects; no
 * other room includes these. The room knows nothing of Zarr.
 * Thread class: plain functions; objects here are solo unless they say locks.
 */
#ifndef ZR_BASE_H
#define ZR_BASE_H

#include "base/arith.h"
#include "base/containers.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/system.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/url.h"

#endif
