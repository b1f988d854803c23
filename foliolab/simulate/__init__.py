# SPDX-License-Identifier: GPL-2.0-only
"""How much more than the best fixed window a way to read costs, by the model of the page cache."""
