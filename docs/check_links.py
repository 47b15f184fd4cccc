"""Check that every link within the built site has an existing target.

usage: python docs/check_links.py build/docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collect the links and the anchors of one tag."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(folder):
    """Yield pairs of a page and a link in it that has no target."""
    folder = Path(folder).resolve()
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if "_static" not in path.parts
    }
    for path, page in sorted(pages.items()):
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = path if not parts.path else target
            anchor = unquote(parts.fragment)
            found = target not in pages or anchor in {"", *pages[target].anchors}
            if not (target.exists() and found):
                yield path.relative_to(folder), link


def main(folder):
    """Print all broken links and return their number."""
    broken = list(broken_links(folder))
    for page, link in broken:
        print(f"{page}: {link}")
    print(f"{len(broken)} broken links in {folder}")
    return len(broken)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
