"""Take the picture of the dashboard in the README: `python tools/screenshot.py`, some minutes.

The demo is served as everybody serves it, and the top of its page kept once a second prior is live
and forty items have arrived.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from selenium.webdriver.support.ui import WebDriverWait

from ebrank import Client
from ebrank.errors import EBRankError

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "dashboard.png"
WIDTH, HEIGHT, SHARPNESS = 1200, 768, 1.5
PATIENCE_SECONDS = 600.0


def main() -> None:
    """Serve the demo, wait until it has something to show, and keep a picture of it."""
    from tests.browser import chromium
    from tests.serving import free_port

    port = free_port()
    command = (sys.executable, "-m", "ebrank", "serve", "--demo", "--port", str(port))
    server = subprocess.Popen(command)
    url = f"http://127.0.0.1:{port}"
    try:
        with Client(url) as client, chromium(WIDTH, HEIGHT) as browser:
            wait(client)
            screen = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SHARPNESS}
            screen |= {"mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            browser.get(url)
            drawn = "return document.querySelectorAll('#panel-newest path.rising').length >= 40"
            WebDriverWait(browser, PATIENCE_SECONDS).until(lambda _: browser.execute_script(drawn))
            browser.save_screenshot(str(PICTURE))
    finally:
        server.terminate()
        server.wait()


def wait(client: Client) -> None:
    """Wait until the demo has learned twice from its users, and shown forty new items."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(2)
        try:
            known = client.insights()
        except EBRankError:
            continue  # it starts
        if known.model >= 2 and len(known.arrivals) >= 40:
            return
    sys.exit("the demo has learned nothing in time")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
