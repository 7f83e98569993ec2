/*
 * commands/calibrate.h - what the files of zarrc calibrate share: cmd_calibrate.c (what
 * there is to measure, and the file of figures) and calibrate_measure.c.
 */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "node/node.h"

enum {
    NAME_MOST = 128, /* bytes of a name */
    DEVICES_MOST = 32,
    IMPLS_MOST = 256
};
#define ITEM_TYPE "uint32"            /* the data type of the elements */
#define STEP      (UINT64_C(4) << 20) /* the largest chunk that is measured */

struct device {
    char label[NAME_MOST], name[NAME_MOST]; /* "cuda:0"; its backend's */
    int32_t type, id;
    uint64_t total_bytes, free_bytes; /* 0: not known */
};

struct implementation {
    char codec[NAME_MOST], name[NAME_MOST];
    uint32_t in_kinds, out_kinds;
    bool decodes, encodes;
    bool only_v2; /* it does nothing for codecs in v3 metadata */
    char *chain;  /* owned: the codecs of an array that it works for; NULL: not known */
    int32_t zarr_format; /* of that array */
};

struct calibration {
    struct cli *cli;
    struct device device[DEVICES_MOST];
    struct implementation impl[IMPLS_MOST];
    int n_devices, n_impls;
    uint64_t host_bytes; /* the memory of the machine; 0: not known */
    uint64_t total;      /* bytes of elements of each request: a multiple of STEP */
    uint8_t *elements;
    struct cli_string text; /* of the file */
    struct cli_json *json;  /* its writer, inside the list "measured" */
};

/* Whether the implementation takes and gives memory of this device type. */
bool calibrate_has_kind(const struct implementation *m, int32_t type);
/* Whether the CPU has this codec. */
bool calibrate_has_cpu(const struct calibration *s, const char *codec, bool encode);
/* Measures all sizes of chunks, with each implementation of each device. */
int calibrate_measure(struct calibration *c);

#endif
