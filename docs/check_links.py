"""Every link within the built site leads to a file, and to a place in it, that exists.

python docs/check_links.py build/docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the places in it that links can name."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Keep the links and the names of one tag."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def broken_links(folder):
    """Pairs of a page and a link in it that leads nowhere."""
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
            place = unquote(parts.fragment)
            known = target not in pages or place in {"", *pages[target].places}
            if not (target.exists() and known):
                yield path.relative_to(folder), link


def main(folder):
    """Print what is broken; how many there are."""
    broken = list(broken_links(folder))
    for page, link in broken:
        print(f"{page}: {link}")
    print(f"{len(broken)} broken links in {folder}")
    return len(broken)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 0)
