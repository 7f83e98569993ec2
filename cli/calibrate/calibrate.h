/*
 * calibrate/calibrate.h - what zarrc calibrate measures: calibrate/survey.c lists the
 * devices and the implementations, calibrate/measure.c measures them. cmd_calibrate.c has
 * the command and its file.
 */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "node/node.h"

enum {
    CLI_CALIBRATE_NAME = 128, /* bytes of a name */
    CLI_CALIBRATE_DEVICES = 32,
    CLI_CALIBRATE_IMPLS = 256
};

struct cli_device {
    char label[CLI_CALIBRATE_NAME],
        name[CLI_CALIBRATE_NAME]; /* "cuda:0"; its backend's */
    int32_t type, id;
    uint64_t total_bytes, free_bytes; /* 0: not known */
};

struct cli_implementation {
    char codec[CLI_CALIBRATE_NAME], name[CLI_CALIBRATE_NAME];
    uint32_t in_kinds, out_kinds;
    bool decodes, encodes;
    bool only_v2; /* it does nothing for codecs in v3 metadata */
    char *chain;  /* owned: the codecs of an array that it works for; NULL: not known */
    int32_t zarr_format; /* of that array */
};

struct cli_survey {
    struct cli_device device[CLI_CALIBRATE_DEVICES];
    struct cli_implementation impl[CLI_CALIBRATE_IMPLS];
    int n_devices, n_impls;
    uint64_t host_bytes; /* the memory of the machine; 0: not known */
};

/* ---- calibrate/survey.c ---- */

/* Lists what the context has. Owned: cli_survey_deinit(), also after a failure. */
int cli_survey_init(struct cli *cli, struct cli_survey *s);
void cli_survey_deinit(struct cli_survey *s);
/* Whether the implementation takes and gives memory of this device type. */
bool cli_implementation_has_kind(const struct cli_implementation *m, int32_t type);
/* Whether the CPU has this codec. */
bool cli_survey_has_cpu(const struct cli_survey *s, const char *codec, bool encode);

/* ---- calibrate/measure.c ---- */

struct cli_measurement {
    const struct cli_device *device;
    const struct cli_implementation *impl;
    bool encode;
    uint64_t chunk_bytes, device_ns, host_ns; /* nanoseconds for a MiB of elements */
};

/* The data type of the elements. */
#define CLI_MEASURING_TYPE "uint32"
/* The largest chunk that is measured. */
#define CLI_MEASURING_STEP (UINT64_C(4) << 20)

/* How to measure, and what to do with each figure. */
struct cli_measuring {
    struct cli *cli;
    const struct cli_survey *survey;
    uint64_t total; /* bytes of elements of each request: a multiple of the step */
    void (*add)(void *user, const struct cli_measurement *m);
    void *user;
    uint8_t *elements; /* of cli_measure() */
};
/* Measures all devices. */
int cli_measure(struct cli_measuring *c);

#endif
