"""Where the demo's traces and contracts lie.

Belongs here: writing the trace files, finding the contracts. Does not belong here: what is in
them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmark_assets.demo.generate import generate_files
from benchmark_assets.demo.models import BINDING
from benchmark_assets.model.problem import InputError, Problem


def write_traces(folder: Path, seed: int = 7) -> int:
    """Write the demo's traces as JSONL files `DAY/MODEL.jsonl` under `folder`.

    A file that holds the right bytes already is left alone; any other is replaced in one step,
    so a reader sees the old file or the new one. Other files in the folder are not touched.

    Args:
        folder: Created if it is not there.
        seed: Of the generator; the same seed gives the same bytes.

    Returns:
        The number of traces that lie in the folder now.

    Raises:
        OSError: If the folder cannot be written.
    """
    count = 0
    for file in generate_files(seed):
        path = folder / file.name
        count += len(file.traces)
        if path.is_file() and path.read_bytes() == file.data:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, file.data)
    return count


def contracts_folder() -> Path:
    """The folder of the demo's contracts: the repository's, or the copy in the package.

    Raises:
        InputError: If there is neither, which is a broken installation.
    """
    package = Path(__file__).resolve().parent
    candidates = (package.parents[1] / "contracts", package / "contracts")
    for candidate in candidates:
        # A folder named `contracts` beside an installed package can be anybody's.
        if (candidate / f"{BINDING}.yaml").is_file():
            return candidate
    raise InputError(
        Problem(
            "the demo's contracts are missing",
            file=str(candidates[1]),
            cure="install the package again",
        )
    )


def _replace(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        temporary.chmod(0o644)  # mkstemp's 0600 would hide the files from other users
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
