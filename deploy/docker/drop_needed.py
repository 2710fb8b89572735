"""Take Arrow's libraries that leave_out.py deleted off the lists of what others load (ELF's NEEDED), by patchelf.

Each library of Arrow's names all others, whether it calls them or not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def drop(directory: Path) -> None:
    """Drop the names of Arrow's libraries that are not in the directory."""
    for library in sorted(directory.glob("*.so*")):
        listing = ["patchelf", "--print-needed", str(library)]
        needed = subprocess.run(listing, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        gone = [
            name for name in needed if name.startswith(("libarrow", "libparquet")) and not (directory / name).exists()
        ]
        if gone:
            told = [word for name in gone for word in ("--remove-needed", name)]
            subprocess.run(["patchelf", *told, str(library)], check=True)


if __name__ == "__main__":
    drop(Path(sys.argv[1]))
