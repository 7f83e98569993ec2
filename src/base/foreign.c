/*
 * base/foreign.c - errors of foreign functions. A foreign function may fail without a
 * text, or return a number that is no status and that a caller could take for success.
 * Here, and only after a failure, such an answer gets a text, one of our statuses and the
 * name of the function's owner.
 * Thread class: plain functions on the caller's struct; solo.
 */
#include "base/base.h"
#include "base/text_int.h"

#include <string.h>

zarr_error *zr_foreign_begin(struct zr_foreign *f, zarr_error *err)
{
    f->err = err;
    if (!err)
        return NULL;
    zr_error_clear(&f->said);
    return &f->said;
}

zarr_status zr_foreign_status(zarr_status st, bool cancelled)
{
    const bool known = st < 0 && st >= ZARR_ERR_DENIED;

    return known && (st != ZARR_ERR_CANCELLED || cancelled) ? st : ZARR_ERR_INTERNAL;
}

zarr_status zr_foreign_fail(struct zr_foreign *f, zarr_status st, bool cancelled,
                            const char *fmt, ...)
{
    const zarr_status answer = zr_foreign_status(st, cancelled);
    char *said = f->said.message, who[256];
    va_list ap;

    if (!f->err)
        return answer;
    zr_error_distrust(&f->said);
    if (answer == st && *said) {
        (void)zr_fail(f->err, st, "%s", said); /* makes the text safe to print */
        f->err->os_code = f->said.os_code;
        f->err->os_domain = f->said.os_domain;
        f->err->operation = f->said.operation;
        f->err->item = f->said.item;
        memcpy(f->err->part, f->said.part, sizeof f->err->part);
        return st;
    }
    va_start(ap, fmt);
    zr_text_line(who, sizeof who, fmt, ap);
    va_end(ap);
    if (answer == st)
        return zr_fail(f->err, st, "%s failed (%s) and does not say why", who,
                       zarr_status_text(st));
    return zr_fail(f->err, answer,
                   "%s " ZR_BROKE ": it failed with status %" PRId32 ", %s%s%s", who, st,
                   st == ZARR_ERR_CANCELLED ? "cancelled, but no caller cancelled it"
                                            : "which means nothing",
                   *said ? ": " : "", said);
}
