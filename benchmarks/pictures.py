"""Take the picture of the labelling page: python -m benchmarks.pictures.

It opens the preview of the demo study in a browser, and writes data/demo/label.png.
"""

import io
import shutil

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

from benchmarks.measuring import ROOT
from benchmarks.pages import FLAGS, of_people, studio

SHOWN = ROOT / "data" / "demo" / "label.png"
WINDOW: ViewportSize = {"width": 1280, "height": 720}


def main() -> None:
    """Write the picture, in 128 colours."""
    with studio(None) as server, sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport=WINDOW)
        page.goto(f"{server.url}/studio/preview?study={of_people(server)}")
        page.locator(".sl-pictures img").first.wait_for()
        server.rest()
        whole = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    whole.convert("RGB").quantize(128).save(SHOWN, optimize=True)


if __name__ == "__main__":
    main()
