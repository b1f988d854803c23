# SPDX-License-Identifier: GPL-2.0-only
"""Tables for people, in the terminal and in Markdown, and rows for programs; all from the store alone."""
