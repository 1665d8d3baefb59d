"""Runs every function `judge_…` of the files `judge_*.py` beside this one.

    python run.py            judge, and print the names of what failed and what was skipped
    python run.py --skip WHY judge nothing and name everything as skipped; needs no package
    python run.py --only FILE  the judges of one file, such as judge_model; those that need no package run without any

The last line is `N passed, N failed, N skipped`. Exit status 1 when something failed or nothing ran.
"""

import ast
import importlib
import pathlib
import sys
import time
import traceback

from judging import Skip

HERE = pathlib.Path(__file__).resolve().parent


def judges():
    """Module and name of every judge, found without importing what may not be installed."""
    for path in sorted(HERE.glob("judge_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("judge_"):
                yield path.stem, node.name


def main(arguments):
    names = [name for name in judges() if arguments[:1] != ["--only"] or name[0] == arguments[1]]
    passed, failed, skipped = [], [], []
    if arguments[:1] == ["--skip"]:
        skipped = [(f"{module}.{name}", arguments[1]) for module, name in names]
    else:
        for module, name in names:
            title, began = f"{module}.{name}", time.monotonic()
            try:
                getattr(importlib.import_module(module), name)()
            except Skip as reason:
                skipped.append((title, str(reason)))
            except Exception:
                failed.append((title, traceback.format_exc()))
            else:
                passed.append(title)
                print(f"passed: {title} ({time.monotonic() - began:.1f} s)", file=sys.stderr)
    for title, reason in skipped:
        print(f"skipped: {title}: {reason}")
    for title, reason in failed:
        print(reason.rstrip())
        print(f"failed: {title}")
    if not names:
        print("no judge was found")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    nothing_ran = not passed and not failed and arguments[:1] != ["--skip"]
    return 1 if failed or nothing_ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
