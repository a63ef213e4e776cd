"""``make site-check``: reads the built site as its readers do, in headless Chromium.

It checks six rules, the first four at three widths. Only code and tables scroll sideways. Tables are tables for screen
readers. The focus of the keyboard is in the window and marked, and each press of Tab moves it. The keyboard opens and
closes the menu and "On this page", with a button that says which of the two it did. In light and in dark colours,
axe-core finds no error in contrast, names, roles and the keyboard. The search finds the words that readers type. The
program prints a line for each finding.

It uses the Chromium on PATH, or that of the environment variable CHROMIUM. `make site-check` fetches axe-core with npm.
`make docs` passes ``--if-possible``: the check then succeeds with one line if one of the two is missing.
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests" / "docs"))

from search_words import WORDS  # noqa: E402

SITE = ROOT / "build" / "docs"
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (400, 800, 1280)
HEIGHT = 900
UNAVAILABLE = 77
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
"""The numbers of keys in the protocol."""

FIRST = 10
"""The number of results that a reader checks."""

SIDEWAYS = """
(() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const scrolls = (node) => node && node !== document.body && node !== document.documentElement &&
    (/auto|scroll|hidden|clip/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter((node) => node.getBoundingClientRect().right > wide + 1 && !scrolls(node.parentElement))
    .map((node) => `${node.tagName.toLowerCase()}.${node.className} ${(node.textContent || "").trim().slice(0, 40)}`);
})()
"""

ELSE_SCROLLS = """
[...document.querySelectorAll("article *")]
  .filter((node) => /auto|scroll/.test(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth + 1)
  .filter((node) => !node.closest("pre, .highlight, table, .table-wrapper, .math"))
  .map((node) => `${node.tagName.toLowerCase()}.${node.className}`)
"""

# The parts of tables that are shown as something else, or not at all, and have no role to say what they are.
NO_TABLE = """
[...document.querySelectorAll("article :is(table, thead, tbody, tr, th, td)")]
  .filter((node) => !getComputedStyle(node).display.startsWith("table"))
  .filter((node) => getComputedStyle(node).display === "none" || node.getAttribute("role") !== {
    table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", th: "columnheader", td: "cell"}[node.localName])
  .map((node) => `${node.localName} ${node.textContent.trim().replace(/\\s+/g, " ").slice(0, 40)}`)
"""

# Rules that matter to readers: contrast, names, order, roles, and access by keyboard.
AXE_RUN = """
axe.run(document, {runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "cat.keyboard"]},
                   rules: {"aria-allowed-role": {enabled: true}}, resultTypes: ["violations"]})
  .then((found) => found.violations.map((one) => ({
    id: one.id, help: one.help, number: one.nodes.length,
    nodes: one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0] ? node.any[0].message : ""}`)})))
"""

# Where the focus is: nothing if it is nowhere.
FOCUS = """
(() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const box = node.getBoundingClientRect(), style = getComputedStyle(node);
  const beside = node.labels && node.labels[0] ? getComputedStyle(node.labels[0]) : style;
  return {
    what: `${node.localName}.${node.className} ${(node.textContent || node.name || "").trim().slice(0, 30)}`,
    seen: box.width > 0 && box.height > 0 && style.visibility !== "hidden" &&
      box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
    shown: [style, beside].some((one) => one.outlineStyle !== "none" || one.boxShadow !== "none"),
  };
})()
"""

# Every element that takes the focus, one after the other: those that are outside the window.
UNSEEN = """
[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter((node) => node.tabIndex >= 0)
  .map((node) => { node.focus(); return node === document.activeElement ? FOCUS : {seen: true}; })
  .filter((at) => !at.seen).map((at) => at.what)
""".replace("FOCUS", FOCUS.strip())

# What opens a drawer that is closed: nothing if the drawer is open or empty, else whether it takes the focus.
SWITCH = """
(() => {
  const drawer = document.querySelector("DRAWER");
  if (!drawer || !drawer.querySelector("a") || drawer.getBoundingClientRect().width === 0) return null;
  const box = drawer.getBoundingClientRect();
  if (box.left < innerWidth && box.right > 0) return null;
  const button = BUTTON;
  if (button) button.focus();
  return Boolean(button) && button.tabIndex >= 0 && button === document.activeElement;
})()
"""

BUTTON = '[...document.querySelectorAll("label[for=TOGGLE] [role=button]")].find((node) => node.offsetWidth)'
"""What opens a drawer: it is in a label of its checkbox."""

DRAWERS = {"__navigation": ".sidebar-drawer", "__toc": ".toc-drawer"}
"""The theme's checkboxes, and what each opens."""

RESULTS = """
[...document.querySelectorAll("#search-results ul.search > li > a")].map((link) => link.getAttribute("href"))
"""

DESCRIPTORS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""A program that execs another, such as Chromium, which reads commands from descriptor 3 and answers on 4."""


class Browser:
    """Headless Chromium with one page. It speaks the DevTools protocol through a pair of pipes."""

    def __init__(self, command: str, folder: str):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Copies with numbers above 3 and 4, so that neither overwrites the other.
        given = [fcntl.fcntl(number, fcntl.F_DUPFD, 10) for number in (to_read, to_write)]
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", DESCRIPTORS, *map(str, given)),
                *(command, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}"),
                *(["--no-sandbox"] if os.geteuid() == 0 else []),  # as root, it does not start without this
                *("--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=given,
        )
        for number in (to_read, to_write, *given):
            os.close(number)
        self._number, self._rest, self._session = 0, b"", ""
        (target,) = (one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.colours("light")

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=30)

    def call(self, method: str, **parameters: object) -> dict:
        """Send a command of the protocol and return its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        for answer in self._messages():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise RuntimeError(f"Chromium ended during {method}")

    def _messages(self) -> Iterator[dict]:
        while True:
            while b"\0" not in self._rest:
                more = os.read(self._read, 1 << 20)
                if not more:
                    return
                self._rest += more
            first, _, self._rest = self._rest.partition(b"\0")
            yield json.loads(first)

    def accessible(self, code: str) -> dict[str, object]:
        """What a screen reader gets of the element that an expression returns: its role, name and states."""
        found = self.call("Runtime.evaluate", expression=code)["result"]["objectId"]
        node = self.call("Accessibility.getPartialAXTree", objectId=found, fetchRelatives=False)["nodes"][0]
        states = {one["name"]: one["value"].get("value") for one in node.get("properties", ())}
        return {what: node.get(what, {}).get("value") for what in ("role", "name")} | states

    def open(self, url: str) -> None:
        """Show a page, and wait until it is loaded."""
        self.call("Page.navigate", url=url)
        for message in self._messages():
            if message.get("method") == "Page.loadEventFired":
                return

    def evaluate(self, code: str) -> object:
        """The value of an expression in JavaScript, or of its promise."""
        result = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def width(self, pixels: int) -> None:
        """Set the width of the page."""
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.evaluate("new Promise(requestAnimationFrame)")  # by then the page's own scripts know

    def colours(self, scheme: str) -> None:
        """Ask for "light" or "dark" colours, and for no motion, so that nothing is checked on its way."""
        wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str) -> None:
        """Press a key of KEYS."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])


def sideways(browser: Browser) -> Iterator[str]:
    """Elements that make the current page scroll sideways, and those that scroll and are neither code nor tables."""
    for pixels in WIDTHS:
        browser.width(pixels)
        for what in browser.evaluate(SIDEWAYS):
            yield f"at {pixels} pixels the page scrolls sideways: {what}"
        for what in browser.evaluate(ELSE_SCROLLS):
            yield f"at {pixels} pixels this scrolls sideways: {what}"


def tables(browser: Browser) -> Iterator[str]:
    """The tables of the current page that are no tables, or without some of their parts, for screen readers."""
    for pixels in WIDTHS:
        browser.width(pixels)
        if lost := browser.evaluate(NO_TABLE):
            yield f"at {pixels} pixels {len(lost)} parts of tables lose their role: {lost[0]}"


def axe(browser: Browser, source: str) -> Iterator[str]:
    """The findings of axe-core in the current page: wide in both colours, and narrow."""
    browser.evaluate(f"{source};0")
    for pixels, scheme in ((1280, "light"), (1280, "dark"), (400, "light")):
        browser.width(pixels)
        browser.colours(scheme)
        for one in browser.evaluate(AXE_RUN):
            where = "; ".join(one["nodes"])
            yield f"at {pixels} pixels, {scheme}: {one['id']}, {one['help']}, {one['number']} times: {where}"
    browser.colours("light")


def keyboard(browser: Browser, url: str, presses: int = 40) -> Iterator[str]:
    """Places where the focus stays, is outside the window or is not marked, and drawers that no key opens or closes."""
    for pixels in WIDTHS:
        browser.width(pixels)
        browser.open(url)  # so that the first Tab goes to the first element
        for finding in (*tabs(browser, presses), *drawers(browser)):
            yield f"at {pixels} pixels {finding}"


def tabs(browser: Browser, presses: int) -> Iterator[str]:
    """What is wrong with the first `presses` of Tab, and with the other elements that take the focus."""
    seen = []
    for _ in range(presses):
        browser.press("Tab")
        at = browser.evaluate(FOCUS)
        if at is None:
            break
        seen.append(at["what"])
        if at["seen"] and not at["shown"]:
            yield f"the focus does not show: {at['what']}"
    if len(set(seen)) < min(presses, 5):
        yield f"the focus reaches only {sorted(set(seen))}"
    if outside := browser.evaluate(UNSEEN):
        yield f"the focus goes to what is not seen, {len(outside)} times: {outside[0]}"


def drawers(browser: Browser) -> Iterator[str]:
    """The drawers that are closed, and that Enter does not open or Escape does not close."""
    for toggle, drawer in DRAWERS.items():
        button = BUTTON.replace("TOGGLE", toggle)
        focused = browser.evaluate(SWITCH.replace("DRAWER", drawer).replace("BUTTON", button))
        if focused is None:
            continue
        if not focused:
            yield f"the keyboard does not reach what opens {drawer}"
            continue
        said = browser.accessible(button)
        if said["role"] != "button" or not said["name"] or said.get("expanded") is not False:
            yield f"what opens {drawer} is no button that has a name and says that it is closed: {said}"
        browser.press("Enter")
        inside = browser.evaluate(f"document.querySelector({drawer!r}).contains(document.activeElement)")
        if not inside or not browser.evaluate(FOCUS)["seen"]:
            yield f"Enter does not open {drawer} and move the focus into it"
            continue
        if browser.accessible(button).get("expanded") is not True:
            yield f"what opens {drawer} does not say that it is open"
        browser.press("Escape")
        back = browser.evaluate(f"document.activeElement === {button}")
        if not back or browser.accessible(button).get("expanded") is not False:
            yield f"Escape does not close {drawer} and move the focus back"


def found(browser: Browser, site: Path, word: str) -> list[str]:
    """The pages that the site's search finds for `word`, the best first."""
    browser.open(f"{(site / 'search.html').as_uri()}?q={quote(word)}")
    browser.evaluate(
        "new Promise((done) => { const look = (left) => left && "
        "!/found|match/.test((document.querySelector('.search-summary') || {}).textContent || '') "
        "? setTimeout(() => look(left - 1), 50) : done(0); look(200); })"
    )
    pages = [link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in browser.evaluate(RESULTS)]
    return list(dict.fromkeys(pages))


def searches(browser: Browser, site: Path) -> Iterator[str]:
    """The words whose search does not find their page."""
    for word, page in WORDS.items():
        pages = found(browser, site, word)[:FIRST]
        if page not in pages:
            yield f"the search for {word!r} does not find {page} among {pages}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="only these, such as start.html (default: all)")
    parser.add_argument("--site", type=Path, default=SITE, help="what `make docs` has built")
    parser.add_argument("--axe", type=Path, default=AXE, help="axe.min.js of axe-core")
    parser.add_argument("--search", action="store_true", help="try the search as well where only some pages are read")
    parser.add_argument("--if-possible", action="store_true", help="succeed if Chromium or axe-core is missing")
    options = parser.parse_args()
    command = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    needed = {"Chromium, on PATH or named by CHROMIUM": command, f"axe-core in {options.axe}": options.axe.is_file()}
    if missing := [what for what, there in needed.items() if not there]:
        said = f"there is no {' and no '.join(missing)}"
        if options.if_possible:
            print(f"site-check: not checked: {said}")
            return 0
        print(f"site-check: {said}", file=sys.stderr)
        return UNAVAILABLE
    pages = [options.site / page for page in options.pages] or sorted(options.site.rglob("*.html"))
    source = options.axe.read_text(encoding="utf-8")
    number = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(command, folder)
        try:
            for page in pages:
                browser.width(1280)
                browser.open(page.as_uri())
                of_page = (*sideways(browser), *tables(browser), *axe(browser, source))
                for finding in (*of_page, *keyboard(browser, page.as_uri())):
                    print(f"{page.relative_to(options.site)}: {finding}", flush=True)
                    number += 1
            if options.search or not options.pages:
                for finding in searches(browser, options.site):
                    print(finding, flush=True)
                    number += 1
        finally:
            browser.close()
    print(f"site-check: {len(pages)} pages, {number or 'no'} findings")
    return bool(number)


if __name__ == "__main__":
    sys.exit(main())
