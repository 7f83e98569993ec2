/*
 * codecs/zfp/zfp_promote.h - conversion of elements whose type zfp lacks. Knows no
 * streams and no jobs.
 */
#ifndef ZR_ZFP_PROMOTE_H
#define ZR_ZFP_PROMOTE_H

#include "codecs/zfp/zfp_field.h"

/* Whether the elements need a conversion to the type of the field. */
bool zr_zfp_promotes(const struct zr_zfp *z);
/* Converts all n_items to the field's type. Returns false if one does not fit. */
bool zr_zfp_promote(const struct zr_zfp *z, const uint8_t *from, void *to);
/* Converts back. Values outside the range of the elements become its nearest value. */
void zr_zfp_demote(const struct zr_zfp *z, const void *from, uint8_t *to);

#endif
