/*
 * zarrc/zarrc.h - everything a user of libzarrc needs. Those who extend it
 * include <zarrc/plugin/...> as well.
 */
#ifndef ZARRC_ZARRC_H
#define ZARRC_ZARRC_H

#include <zarrc/array.h>
#include <zarrc/base.h>
#include <zarrc/context.h>
#include <zarrc/dtype.h>
#include <zarrc/error.h>
#include <zarrc/group.h>
#include <zarrc/limits.h>
#include <zarrc/memory.h>
#include <zarrc/plan.h>
#include <zarrc/request.h>
#include <zarrc/selection.h>
#include <zarrc/store.h>
#include <zarrc/version.h>
#include <zarrc/vlen.h>

#endif
