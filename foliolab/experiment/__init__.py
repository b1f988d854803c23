# SPDX-License-Identifier: GPL-2.0-only
"""Experiment files, the variants they compare, and the plan of boots that follows from them."""
