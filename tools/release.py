"""Build the wheel and the source distribution, and try both where nothing else is installed.

The wheel is tried on every Python that is found: the one that runs this, `python3.11` and newer on
the path, and those in the environment variable PYTHONS. The source distribution is tried on the
first of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
MINORS = range(11, 15)
EXTRAS = "[report,service]"
PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def main() -> None:
    """Build and try; an error ends it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    interpreters = found()
    for interpreter in interpreters.values():
        try_out(interpreter, wheel)
    try_out(next(iter(interpreters.values())), source)
    print(f"{wheel.name} and {source.name} work on Python {', '.join(interpreters)}")


def found() -> dict[str, str]:
    """Return the interpreters to try by their version, each version once."""
    named = os.environ.get("PYTHONS", "").split()
    candidates = [sys.executable, *named, *(f"python3.{minor}" for minor in MINORS)]
    versions: dict[str, str] = {}
    for candidate in candidates:
        version = version_of(candidate)
        if version is not None:
            versions.setdefault(version, candidate)
    return dict(sorted(versions.items()))


def version_of(interpreter: str) -> str | None:
    """Return the version of an interpreter; None if it does not run, or is too old."""
    if shutil.which(interpreter) is None:
        return None
    outcome = subprocess.run(
        (interpreter, "-c", PRINT_VERSION), capture_output=True, text=True, check=False
    )
    version = outcome.stdout.strip()
    known = {f"3.{minor}" for minor in MINORS}
    return version if outcome.returncode == 0 and version in known else None


def try_out(interpreter: str, package: Path) -> None:
    """Install a package into an empty environment and run the smoke test there."""
    with tempfile.TemporaryDirectory() as folder:
        run(interpreter, "-m", "venv", folder)
        python = str(Path(folder) / "bin" / "python")
        quiet = ("--quiet", "--disable-pip-version-check")
        run(python, "-m", "pip", "install", *quiet, f"ebrank{EXTRAS} @ {package.as_uri()}")
        smoke = shutil.copy(ROOT / "tools" / "smoke.py", folder)
        run(python, str(smoke), cwd=folder)  # elsewhere, so that nothing of the clone is imported


def run(*command: str, cwd: str | None = None) -> None:
    """Run a command; an error ends everything."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(command, check=True, cwd=cwd, env=environment)


if __name__ == "__main__":
    main()
