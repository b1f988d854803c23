/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_MATH_H
#define MODEL_SHIM_MATH_H

#include <linux/minmax.h>

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
/* To a power of two. */
#define round_down(x, y)	((x) & ~((__typeof__(x))(y) - 1))

#define abs_diff(a, b) ({						\
	__typeof__(a) _a = (a);						\
	__typeof__(b) _b = (b);						\
									\
	_a > _b ? _a - _b : _b - _a;					\
})

#endif /* MODEL_SHIM_MATH_H */
