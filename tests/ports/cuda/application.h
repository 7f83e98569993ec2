/*
 * ports/cuda/application.h - the driver as an application calls it, beside the plug-in.
 */
#ifndef PORT_CUDA_APPLICATION_H
#define PORT_CUDA_APPLICATION_H

#include "arrays.h"

/* The driver's function of a name, or NULL: also what only the fake driver has. */
typedef void (*any_call)(void);
any_call driver_call(const char *name);
#define DRIVER(type, name) ((type)driver_call(name))
/* Whether the driver is the fake one. */
int is_fake(void);

#endif
