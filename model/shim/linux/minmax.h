/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_MINMAX_H
#define MODEL_SHIM_MINMAX_H

#define SHIM_CHOOSE(a, op, b) ({						\
	__typeof__(a) _x = (a);						\
	__typeof__(b) _y = (b);						\
									\
	_x op _y ? _x : _y;						\
})

#define min(a, b)		SHIM_CHOOSE(a, <, b)
#define max(a, b)		SHIM_CHOOSE(a, >, b)
#define min3(a, b, c)		min(min(a, b), c)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, value, low, high)					\
	min_t(type, max_t(type, value, low), high)

#endif /* MODEL_SHIM_MINMAX_H */
