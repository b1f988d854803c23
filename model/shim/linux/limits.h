/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_LIMITS_H
#define MODEL_SHIM_LIMITS_H

/* The C library's own header includes the system's. */
#include_next <linux/limits.h>
#include <stdint.h>

#define U16_MAX		UINT16_MAX

#endif /* MODEL_SHIM_LIMITS_H */
