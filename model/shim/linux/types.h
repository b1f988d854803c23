/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_TYPES_H
#define MODEL_SHIM_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#endif /* MODEL_SHIM_TYPES_H */
