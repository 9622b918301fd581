"""Opens the pages of a book in Chromium, as a reader's browser does, and notes what happens."""

import functools
import gzip
import mimetypes
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

PREFIX = "/msstab/"
"""A project's pages are never at the root of a site."""

PROBES = (Path(__file__).parent / "probes.js").read_text(encoding="utf-8")
BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PATIENCE = 180_000  # milliseconds, for a machine with much else to do
COMPRESSED = ("text/", "application/json", "application/javascript", "image/svg+xml")


def missing(what: str) -> NoReturn:
    """Skip a test for want of a program, or let it fail where MSSTAB_REQUIRE_BROWSER is set."""
    if os.environ.get("MSSTAB_REQUIRE_BROWSER"):
        pytest.fail(f"{what}, and MSSTAB_REQUIRE_BROWSER is set")
    pytest.skip(what)


def find_browser() -> str:
    """Return the path of a browser: `CHROME_PATH`, or the first known one that is installed."""
    if given := os.environ.get("CHROME_PATH"):
        return given
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    missing("no Chromium or Chrome is installed; CHROME_PATH can say where one is")


def flags() -> list[str]:
    """Return what Chromium needs in a container; its sandbox does not start for root."""
    return ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser."""
    path = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags())
        yield browser
        browser.close()


@contextmanager
def serving(book: Path) -> Iterator[str]:
    """Serve a book on this machine; yield its address."""

    @functools.cache
    def answer(path: str, compress: bool) -> tuple[int, dict[str, str], bytes]:
        file = book / unquote(path.removeprefix(PREFIX))
        file = file / "index.html" if file.is_dir() else file
        status = 200 if path.startswith(PREFIX) and file.is_file() else 404
        file = file if status == 200 else book / "404.html"
        body = file.read_bytes() if file.is_file() else b"There is nothing here."
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers = {"Content-Type": kind, "Cache-Control": "max-age=600"}
        if compress and kind.startswith(COMPRESSED):
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        return status, headers, body

    class Pages(BaseHTTPRequestHandler):
        """Answers as GitHub Pages does: compressed, and with a page of its own for what is gone."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            accepted = "gzip" in self.headers.get("Accept-Encoding", "")
            status, headers, body = answer(urlsplit(self.path).path, accepted)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@dataclass
class Seen:
    """What a page asked for and complained about while it was open."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    bytes: int = 0


@contextmanager
def opened(browser: Browser, address: str, **settings: Any) -> Iterator[tuple[Page, Seen]]:
    """Open a page in a fresh profile, wait until nothing on it moves, and watch it."""
    context = browser.new_context(reduced_motion="reduce", **settings)
    context.set_default_timeout(PATIENCE)
    page, seen = watched(context)
    page.goto(address)
    settle(page)
    yield page, seen
    context.close()


def watched(context: BrowserContext) -> tuple[Page, Seen]:
    """Return a new page, and what it will ask for and complain about."""
    page, seen = context.new_page(), Seen()

    def weigh(event: dict[str, Any]) -> None:
        seen.bytes += int(event["encodedDataLength"])

    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", weigh)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("requestfailed", lambda request: seen.complaints.append(f"failed: {request.url}"))
    page.on(
        "console",
        lambda message: (
            seen.complaints.append(message.text) if message.type in {"error", "warning"} else None
        ),
    )
    page.on(
        "response",
        lambda response: (
            seen.complaints.append(f"{response.status}: {response.url}")
            if response.status >= 400
            else None
        ),
    )
    page.add_init_script(PROBES)
    return page, seen


def settle(page: Page) -> None:
    """Wait for mathematics, fonts, and what a change of the window or the theme moves."""
    page.evaluate("probes.settled()")


def probe(page: Page, name: str) -> list[str]:
    """Return what is wrong with a page according to a function of `probes.js`."""
    found: list[str] = page.evaluate(f"probes.{name}()")
    return found
