"""Walk through a document: do, in a fresh folder, what its blocks of code say.

Blocks of a Markdown file are done from top to bottom:

    a block whose first line is a comment with a path (# dags/revenue.py, -- models/day.sql)
                     is written to that file of the folder; it must not be there yet
    ```sh            is run by bash, and must not fail
    ```sh install    is not run: it fetches packages
    ```sql           is run by psql, in the database of PGDATABASE, and must not fail
    ```sql error     must raise an error
    ```python        is run by python, and must not fail
    ```console       is a session: the lines after "$ " are run by bash, one after the
                     other, and what they print must be the lines that follow. Blank lines
                     and blanks at line ends do not count; "..." stands for any text, also
                     for any number of lines where it is alone on a line

Other kinds are only to be read. A block is run with the environment that is given, plus
HOME in the folder.
"""

import os
import pathlib
import re
import subprocess

_FENCE = re.compile(r"^```(.*)$")
_PATH = re.compile(r"^(?:#|--) ((?:[\w.-]+/)*[\w-]+\.\w+)$")


class Block:
    """One block of code: its kind, its lines, and where it begins in the document."""

    def __init__(self, document, line, kind):
        self.document, self.line, self.kind = document, line, kind
        self.lines = []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def path(self):
        """The file that the block is, or None."""
        match = _PATH.match(self.lines[0]) if self.lines else None
        return match and match.group(1)

    def __str__(self):
        return f"{self.document}:{self.line} ({self.kind})"


def blocks(document):
    """The blocks of a Markdown file."""
    block = None
    for number, line in enumerate(pathlib.Path(document).read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if block is None and fence:
            block = Block(document, number, fence.group(1).strip())
        elif block is not None and fence:
            yield block
            block = None
        elif block is not None:
            block.lines.append(line)
    assert block is None, f"{block} does not end"


class Walk:
    """A folder, an environment, and what was done in it so far."""

    def __init__(self, folder, environment):
        self.folder = pathlib.Path(folder)
        self.environment = {**environment, "HOME": str(folder)}

    def walk(self, document):
        """Do all that a document says. Returns how many blocks were written or run."""
        done = 0
        for block in blocks(document):
            done += self.do(block)
        return done

    def do(self, block):
        """Do what one block says. Returns whether there was anything to do."""
        kind = block.kind
        if block.path:
            file = self.folder / block.path
            assert not file.exists(), f"{block}: there is a {block.path} already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif kind == "sh":
            self._run(block, ["bash", "-euo", "pipefail"], block.text)
        elif kind == "python":
            self._run(block, ["python", "-"], block.text)
        elif kind == "sql":
            self._run(block, ["psql", "-X", "-v", "ON_ERROR_STOP=1"], block.text)
        elif kind == "sql error":
            self._run(block, ["psql", "-X", "-v", "ON_ERROR_STOP=1"], block.text, fails=True)
        elif kind == "console":
            self._session(block)
        else:
            return False
        return True

    def _run(self, block, command, text, fails=False):
        done = subprocess.run(
            command,
            input=text,
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert (done.returncode != 0) == fails, (
            f"{block}: exit status {done.returncode}\n{done.stdout}"
        )
        return done.stdout

    def _session(self, block):
        commands, expected = [], []
        for line in block.lines:
            if line.startswith("$ "):
                commands.append(line[2:])
                expected.append([])
            else:
                assert commands, f"{block}: output before the first command"
                expected[-1].append(line)
        for command, lines in zip(commands, expected):
            printed = self._run(block, ["bash", "-uo", "pipefail", "-c", command + " || true"], "")
            assert _matches(lines, printed), f"{block}: {command}\nprints\n{printed}"


def _matches(expected, printed):
    """Does the text have the expected lines?"""
    pattern = ""
    for line in expected:
        line = line.rstrip()
        if line == "...":
            pattern += r"(?:.*\n)*?"
        elif line:
            pattern += re.escape(line).replace(re.escape("..."), ".*") + r"\n"
    lines = [line.rstrip() for line in printed.splitlines()]
    text = "".join(line + "\n" for line in lines if line)
    return re.fullmatch(pattern, text) is not None
