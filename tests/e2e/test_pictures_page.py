"""The page Pictures in a real browser: one's own files go up, a plan comes back, it is kept."""

import re
from pathlib import Path

import pytest
from made_pictures import fill, looked_at, packed
from playwright.sync_api import Page, Route, expect

from semsim.importers import uploads

pytestmark = pytest.mark.e2e
PAGE, START = "pictures", "/studio/pictures"


def keep(page: Page, name: str) -> None:
    """Keep the plan that is shown under a name."""
    expect(page.locator(".pic-found .pic-sets > li")).to_have_count(2)
    for image in page.locator(".pic-found .pic-sets img").all():
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("status").filter(has_text="is kept.")).to_contain_text(name)


def test_a_zip_goes_up_is_shown_and_kept_and_a_set_of_it_goes(page: Page, tmp_path: Path) -> None:
    expect(page.get_by_text("There are no pictures yet.")).to_be_visible()
    page.locator("[data-input=files]").set_input_files(packed(fill(tmp_path / "mine")))
    expect(page.get_by_role("heading", name="Plan: mine.zip")).to_be_visible()
    expect(page.locator(".pic-checks")).to_contain_text("3 classes: cat, cow, dog.")
    page.get_by_text("Left out: 1").click()
    keep(page, "first")
    expect(page.locator(".pic-sets > li")).to_have_count(2)

    page.get_by_role("link", name="first/sharp").click()
    expect(page.locator(".pic-pairs > li")).to_have_count(3)
    page.get_by_role("button", name="Delete this set").click()
    expect(page.get_by_role("button", name="Delete the set")).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill("first/sharp")
    page.get_by_role("button", name="Delete the set").click()
    expect(page.locator("#studio-toasts")).to_contain_text("first/sharp: deleted.")
    expect(page.locator(".pic-sets > li")).to_have_count(1)


def test_what_is_not_taken_is_refused_before_a_byte_is_sent_and_who_cancels_leaves_nothing(
    page: Page, tmp_path: Path, server
) -> None:
    refused = """async ([count, before, after, size, address]) => {
        const { bundled } = await import(address);
        const names = Array.from({ length: count }, (_, n) => `${before}${n}${after}`);
        const files = names.map((name) => [name, { name, size }]);
        try { return bundled(files, [".png"]).name; } catch (problem) { return problem.message; }
    }"""
    script = page.url.split("/studio/")[0] + "/static/annotation/sending.js"
    most = 4_000_000_000
    for *files, says in (
        (1, "a", ".zip", most, "a0.zip"),
        (1, "a", ".zip", most + 1, "a0.zip has 4000 MB; up to 4 GB are taken at once."),
        (2, "net/", ".png", most // 2 + 1, "net.zip has 4000 MB; up to 4 GB are taken at once."),
        (40_001, "", ".png", 1, "40001 files; up to 40000 are taken"),
    ):
        assert says in page.evaluate(refused, [*files, script])

    for name in ("a.pt", "b.pt"):
        (tmp_path / name).write_text("x")
    page.locator("[data-input=files]").set_input_files([tmp_path / "a.pt", tmp_path / "b.pt"])
    expect(page.locator("[data-problem]")).to_contain_text("no picture and no table in it")

    page.route("**/studio/pictures/uploads/*?at=*", lambda route: None)  # no answer
    page.locator("[data-input=files]").set_input_files(packed(fill(tmp_path / "gone")))
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
    page.wait_for_function("() => true")
    assert not [*(server.data / "uploads").glob("*/file/gone.zip")]


def test_a_folder_goes_up_in_pieces_though_the_connection_breaks(
    page: Page, tmp_path: Path
) -> None:
    sent: list[int] = []

    def lossy(route: Route) -> None:
        found = re.search(r"at=(\d+)", route.request.url)
        assert found is not None
        sent.append(int(found[1]))
        if sent.count(sent[-1]) == 1 and len(sent) % 2 == 0:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/studio/pictures/uploads/*?at=*", lossy)
    folder = fill(tmp_path / "noise", side=400)
    page.locator("[data-input=folder]").set_input_files(folder)
    expect(page.get_by_role("heading", name="Plan: noise.zip")).to_be_visible()
    assert len(set(sent)) > 4
    assert len(sent) > len(set(sent))
    expect(page.get_by_text("Left out: 1")).to_be_visible()  # weights.pt, by its name alone
    keep(page, "second")


def test_a_page_looks_at_what_is_gone_no_longer(page: Page, tmp_path: Path, server) -> None:
    _, look = looked_at(packed(fill(tmp_path / "late")), server.data)

    def going(route: Route) -> None:
        answer = route.fetch()
        live = '<div data-watch="gone" data-going><p data-status></p></div></main>'
        route.fulfill(response=answer, body=answer.text().replace("</main>", live))

    page.route(f"**/plan/{look}", going, times=1)
    page.goto(f"{server.url}/studio/pictures/plan/{look}")
    expect(page.locator(".pic-found")).to_be_visible()
    expect(page.locator("[data-going]")).to_have_count(0)  # asked for anew


def test_files_are_discarded_once_somebody_is_sure(page: Page, tmp_path: Path, server) -> None:
    root = uploads.folder_of(server.data)
    sent, look = looked_at(packed(fill(tmp_path / "unwanted")), server.data)
    page.goto(f"{server.url}/studio/pictures/plan/{look}")
    for answer, left in (("Back", [sent]), ("Discard them", [])):
        page.get_by_role("button", name="Discard", exact=True).click()
        dialog = page.get_by_role("dialog", name="Discard these files?")
        dialog.get_by_role("button", name=answer).click()
        expect(dialog).to_have_count(0)
        if not left:
            expect(page.locator("#studio-toasts")).to_contain_text("nothing of it is kept")
        assert [one.id for one in uploads.uploads(root) if one.name == "unwanted.zip"] == left
