/*
 * base/text_int.h - inside base only: one safe line of text, for errors and log.
 */
#ifndef ZR_TEXT_INT_H
#define ZR_TEXT_INT_H

#include "base/base.h"

/* Formats into out (cap >= 8): one line of valid UTF-8, terminated, cut between
 * characters; control characters and malformed bytes become '?'. */
void zr_text_line(char *out, size_t cap, const char *fmt, va_list ap) ZARR_PRINTF(3, 0);

#endif
