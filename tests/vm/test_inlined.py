# SPDX-License-Identifier: GPL-2.0-only
"""Programs of guest/ as single files."""

import re
from pathlib import Path

import pytest

from foliolab import process
from foliolab.arch import NATIVE
from foliolab.errors import BuildError
from foliolab.vm import inlined as module
from foliolab.vm.image import program_sources
from foliolab.vm.inlined import inlined

_HEADER = """/* SPDX-License-Identifier: GPL-2.0-only */
/* What a test has. */
#ifndef FOLIOLAB_{NAME}_H
#define FOLIOLAB_{NAME}_H

{body}

#endif /* FOLIOLAB_{NAME}_H */
"""


def header(directory: Path, name: str, body: str) -> None:
    (directory / f"{name}.h").write_text(_HEADER.format(NAME=name.upper(), body=body))


USED = """static inline int __attribute__((format(printf, 1, 2)))
used(const char *format, ...)
{
	int n = *format;

	return n;
}"""
LOW = """#include <stdint.h>

static inline int leaf(void)
{
	return 1;
}

static const struct {
	int number;
} table[] = { { 1 } };

/* Names used(). */
static inline int unused(void)
{
	return leaf() + table[0].number;
}"""
MAIN = """int main(void)
{
	puts("leaf");
	return used("a");
}
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with two headers, of which one includes the other."""
    monkeypatch.setattr(module, "GUEST", tmp_path)
    header(tmp_path, "low", LOW)
    header(tmp_path, "high", f'#include <stdio.h>\n\n#include "low.h"\n\n{USED}')
    file = tmp_path / "program.c"
    includes = '#define _GNU_SOURCE\n#include <stdio.h>\n\n#define PROBE\t"x"\n#include "high.h"\n#include "low.h"\n'
    file.write_text(f"// SPDX-License-Identifier: GPL-2.0-only\n/* A program. */\n{includes}\n{MAIN}")
    return file


def test_headers_stand_where_they_are_included_without_what_is_not_used(source: Path) -> None:
    assert inlined(source) == (
        "/* A program. */\n#define _GNU_SOURCE\n\n#include <stdint.h>\n#include <stdio.h>\n\n"
        f'#define PROBE\t"x"\n\n/* What a test has. */\n\n/* What a test has. */\n\n{USED}\n\n{MAIN}'
    )


@pytest.mark.parametrize("name", program_sources())
def test_every_program_compiles_without_headers_of_ours(name: str) -> None:
    text = inlined(program_sources()[name])
    assert re.findall(r'#include "|FOLIOLAB_\w+_H|SPDX', text) == []
    assert len(includes := re.findall(r"#include <.*", text)) == len(set(includes)) > 0
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-fsyntax-only", "-x", "c", "-"]
    process.run([process.tool(NATIVE.compiler), *flags], BuildError, stdin=text.encode())
