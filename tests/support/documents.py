"""Fenced blocks of Markdown pages, with what a comment above a block says of how it is tried.

`<!-- gpu -->`: needs a GPU; only its options are checked. `<!-- not run: why -->`: neither. `<!-- exits: 0 8 -->`: a
command may end with any of these exit codes; without it only with 0. `<!-- output varies -->`: what is shown depends on
what was found, and is not compared. Several are joined with `;`.
"""

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"(?:<!--\s*(?P<note>[^>]*?)\s*-->\n)?^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    text: str
    note: str

    @property
    def gpu(self):
        return self.note == "gpu"

    @property
    def skipped(self):
        return self.note.startswith("not run:")

    @property
    def varies(self):
        return "output varies" in self.note

    @property
    def exits(self):
        found = re.search(r"exits: ([\d ]+)", self.note)
        return tuple(map(int, found[1].split())) if found else (0,)

    @property
    def commands(self):
        """Each `$ command` with the lines shown under it; every line of a bash block."""
        found = []
        text = self.text.replace("\\\n", " ")
        for line in text.splitlines():
            if self.language == "bash" and line.strip():
                found.append((line, []))
            elif line.startswith("$ "):
                found.append((line[2:], []))
            elif found and line.strip():
                found[-1][1].append(line)
        return found


def blocks(text):
    """All fenced blocks of a page, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        info = match["info"].strip()
        title = _TITLE.search(info)
        found.append(Block(info.split(" ")[0], title[1] if title else "", match["text"], match["note"] or ""))
    return found
