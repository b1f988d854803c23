# SPDX-License-Identifier: GPL-2.0-only
"""From samples to rows of figures, and to verdicts on what an experiment expects."""
