/* SPDX-License-Identifier: GPL-2.0-only */
/* What the policy takes from the kernel's header of this name. */
#ifndef MODEL_SHIM_PAGE_H
#define MODEL_SHIM_PAGE_H

#define PAGE_SHIFT	12

#endif /* MODEL_SHIM_PAGE_H */
