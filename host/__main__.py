# SPDX-License-Identifier: GPL-2.0-only
"""What Python runs of this directory, and of the file that is made of it."""

import runpy

runpy.run_module("foliohost", run_name="__main__")
