/*
 * base/log.c - one line to the application's log function. The library has no log of its
 * own. Without a function nothing is logged, and a message above the level costs one
 * comparison. A line is cut at 1 KiB. It is made safe to print, as error messages are,
 * because it may quote text from a store.
 * Thread class: shared, as the application's function must be.
 */
#include "base/text_int.h"

void zr_log(const struct zr_log *log, uint32_t level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (!log || !log->fn || level > log->level)
        return;
    va_start(ap, fmt);
    zr_text_line(line, sizeof line, fmt, ap);
    va_end(ap);
    log->fn(log->user, level, line);
}
