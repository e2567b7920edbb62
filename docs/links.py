"""Checks every link of the built site: each file and each place within a page that another page names is there."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects them."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def read(site: Path) -> dict[Path, Page]:
    """The pages of a built site, but for Sphinx's own."""
    return {path: Page(path) for path in site.rglob("*.html") if not path.relative_to(site).parts[0].startswith("_")}


def external(site: Path) -> dict[str, list[str]]:
    """Every address elsewhere, with the pages that link to it: nothing tries them, so that a build needs no network.

    ``python docs/links.py build/docs`` prints them.
    """
    found: dict[str, list[str]] = {}
    for path, page in read(site).items():
        for link in page.links:
            if urlsplit(link).netloc:
                found.setdefault(link, []).append(str(path.relative_to(site)))
    return dict(sorted(found.items()))


def malformed(link: str) -> bool:
    """Whether an address elsewhere is none: not of the web, without a host, or with a space in it."""
    address = urlsplit(link)
    return address.scheme not in ("https", "http", "mailto", "data") or (
        address.scheme.startswith("http")
        and (" " in link or not ("." in address.netloc or address.hostname == "localhost"))
    )


def broken(site: Path) -> list[str]:
    """Every link of the site that leads nowhere, and every address elsewhere that cannot lead anywhere."""
    pages = read(site)
    found = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                found += [f"{path.relative_to(site)}: {link}"] if malformed(link) else []
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                found.append(f"{path.relative_to(site)}: {link}")
    return sorted(found)


def check(app: Sphinx, problem: Exception | None) -> None:
    """Fails the build if a link is broken."""
    if problem is None and app.builder.name == "html" and (found := broken(Path(app.outdir).resolve())):
        raise ExtensionError("Links that lead nowhere:\n" + "\n".join(found))


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", check, priority=900)  # after all pages are drawn
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for address, pages in external(Path(sys.argv[1])).items():
        print(address, f"({len(pages)} pages, such as {sorted(pages)[0]})")
