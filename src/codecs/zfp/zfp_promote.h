/*
 * codecs/zfp/zfp_promote.h - elements that zfp has no type for, apart from streams and
 * jobs.
 */
#ifndef ZR_ZFP_PROMOTE_H
#define ZR_ZFP_PROMOTE_H

#include "codecs/zfp/zfp_field.h"

/* Whether elements differ from what the field holds. */
bool zr_zfp_promotes(const struct zr_zfp *z);
/* All n_items as what the field holds; false: one does not fit. */
bool zr_zfp_promote(const struct zr_zfp *z, const uint8_t *from, void *to);
/* And back: what a lossy stream takes out of the range becomes its end. */
void zr_zfp_demote(const struct zr_zfp *z, const void *from, uint8_t *to);

#endif
