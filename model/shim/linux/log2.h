/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_LOG2_H
#define MODEL_SHIM_LOG2_H

/* Of numbers above 0. */
#define ilog2(n)	(63 - __builtin_clzll(n))

#endif /* MODEL_SHIM_LOG2_H */
