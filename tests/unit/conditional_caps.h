/* unit/conditional_caps.h - the capabilities of a store that keeps all conditions on
 * versions. */
#ifndef ZR_CONDITIONAL_CAPS_H
#define ZR_CONDITIONAL_CAPS_H

#include <zarrc/store.h>

enum {
    CAPS_CONDITIONAL = ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_PUT_IF_VERSION |
                       ZARR_STORE_CAP_PUT_NEW | ZARR_STORE_CAP_ERASE_IF_VERSION
};

#endif
