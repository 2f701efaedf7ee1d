"""HTML pages as tests read them: parsed, and in a real headless Chromium."""

import re
import shutil
import subprocess
import tempfile
from html import escape
from html.parser import HTMLParser
from pathlib import Path

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
NO_CHROMIUM = "no chromium, chromium-browser or google-chrome on the PATH"
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --timeout=20000"
)
# Tells the frame's parent what does not fit into the window, and text that is drawn too small to be read.
_PROBE = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth, bad = [];
  if (document.documentElement.scrollWidth > width) bad.push("page " + document.documentElement.scrollWidth);
  for (const text of document.querySelectorAll("svg[role=img] text")) {
    const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
    if (!box.width) continue;
    const scale = frame.width / text.ownerSVGElement.viewBox.baseVal.width;
    if (12 * scale < 10) bad.push("small " + text.textContent);
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 2)
      bad.push("cut " + text.textContent);
  }
  parent.document.title = bad.length ? bad.join("; ") : "fits " + width;
});</script></body>"""
_VOID = {"meta", "link", "br", "hr", "img", "input"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, dict(attributes), parent
        self.children, self.texts = [], []

    def all(self, tag):
        """Elements of a kind below this one, in order."""
        found = []
        for child in self.children:
            found += [child] if child.tag == tag else []
            found += child.all(tag)
        return found

    def get(self, name):
        return self.attributes.get(name)

    @property
    def text(self):
        return " ".join(" ".join(self.texts + [c.text for c in self.children]).split())


class _Parser(HTMLParser):
    def __init__(self):
        super().__init__()
        self.root = self.here = Element("document", {}, None)

    def handle_starttag(self, tag, attrs):
        element = Element(tag, attrs, self.here)
        self.here.children.append(element)
        if tag not in _VOID:
            self.here = element

    def handle_startendtag(self, tag, attrs):
        self.here.children.append(Element(tag, attrs, self.here))

    def handle_endtag(self, tag):
        assert self.here.tag == tag, f"</{tag}> ends <{self.here.tag}>"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.texts.append(data)


def parsed(text):
    """The document, whose every element must be closed in order."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.here is parser.root, f"<{parser.here.tag}> is not closed"
    return parser.root


def chromium(page, *flags):
    """What Chromium writes to standard output for a page that is shown from a file."""
    with tempfile.TemporaryDirectory() as profile:
        words = [CHROMIUM, *_FLAGS.split(), f"--user-data-dir={profile}", *flags, Path(page).resolve().as_uri()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def misfits(text, width, folder):
    """What is wider than the window, cut off or too small to read at a width; "fits WIDTH" where all is well."""
    inner = escape(text.replace("</body>", _PROBE))
    # A window is never narrower than 500 pixels, a frame may be.
    outer = f'<body><iframe width="{width}" height="900" style="border:0" srcdoc="{inner}"></iframe></body>'
    (folder / "frame.html").write_text(outer)
    shown = chromium(folder / "frame.html", "--window-size=1500,900", "--dump-dom")
    return re.search(r"<title>(.*?)</title>", shown)[1]
