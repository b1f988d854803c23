/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_OVERFLOW_H
#define MODEL_SHIM_OVERFLOW_H

#define check_mul_overflow(a, b, product)	__builtin_mul_overflow(a, b, product)

#endif /* MODEL_SHIM_OVERFLOW_H */
