# SPDX-License-Identifier: GPL-2.0-only
"""What commands of the plan print, kept with the code that it is of: where it was measured, and in release/."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from foliolab.errors import StoreError
from foliolab.files import write_atomic
from foliolab.kernel.code import code_hash
from foliolab.kernel.name import BASE_VERSION
from foliolab.model.compiled import policy_hash
from foliolab.reproduce.plan import Part


@dataclass(frozen=True)
class Output:
    command: list[str]
    code: str
    """The hash of what decides it: the policy for what the model says, else our kernel code."""
    output: str

    def is_of(self, part: Part) -> bool:
        """Whether it is of the part's command, and of the code as it stands."""
        return self.command == list(part.command) and self.code == code_behind(part)


def code_behind(part: Part) -> str:
    return policy_hash() if part.command[0] == "regret" else code_hash(BASE_VERSION)


def output_file(part: Part, directory: Path) -> Path:
    return directory / f"{part.name}.json"


def read_output(part: Part, directory: Path) -> Output | None:
    """None if there is none; StoreError if it is damaged."""
    file = output_file(part, directory)
    try:
        return Output(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{file} cannot be read: {error}.") from None


def write_output(part: Part, output: str, directory: Path) -> None:
    kept = Output(list(part.command), code_behind(part), output)
    write_atomic(output_file(part, directory), json.dumps(asdict(kept), indent=1) + "\n")
