"""From labelling to ranking, with a real server, a real browser and five people."""

import io
import re
import zipfile
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
import pandas as pd
import pytest
import torch
from made_demo import demo_in
from playwright.sync_api import Browser, Page, expect
from scipy import stats
from skimage.io import imread
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio
from studio import Studio, fill_training

from annotation.images import encode
from annotation.store import Store
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import list_studies
from semsim.datasets.symbols import Symbols
from semsim.images import to_uint8

pytestmark = pytest.mark.e2e
PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve")
MODELS = {"clear": 0.03, "good": 0.08, "poor": 0.15, "bad": 0.3}  # name → noise on its images
IMAGES = 5
KEYS = [f"Digit{n}" for n in range(1, 6)] + [f"Key{c}" for c in "QWERTASDFGZXCVB"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Somebody's own zip: a folder a model, the same five symbols, each worse than the last."""
    path = tmp_path_factory.mktemp("own") / "symbols.zip"
    data = Symbols(test_per_class=1)("test").pick([0, 4, 22, 30, 40])
    rng = torch.Generator().manual_seed(0)
    with zipfile.ZipFile(path, "w") as packed:
        for model, noise in MODELS.items():
            for image, image_id, label in zip(
                data.images, data.ids, data.labels.tolist(), strict=True
            ):
                dirt = noise * torch.randn(image.shape, generator=rng)
                for what, pixels in (("ori", image), ("rec", image + dirt)):
                    name = f"{model}/{image_id}_{label}_{what}.png"
                    packed.writestr(name, encode(to_uint8(pixels)))
    return path


class Restarted(Studio):
    """Its first server has a process for each job, and its second a thread.

    Pictures are looked through and kept by processes, which import no torch. A thread has that of
    the server; what it does for a job is the same.
    """

    def start(self) -> None:
        super().start()
        self._has_jobs = True


def test_from_ones_own_zip_to_a_ranking(tmp_path, own, chromium):
    data = tmp_path / "data"
    demo_in(data)
    studio = Restarted(data, tmp_path / "checkpoints")
    studio.start()
    try:
        with Store(f"sqlite:///{data / 'studies.db'}") as store:
            make_study(chromium, studio, own)
            (study,) = (one for one in list_studies(store) if one.name == "Everything")
            pressed = label_everything(chromium, studio, store, study)
            check_votes(store, study, pressed)
            look_at_results(chromium, studio, study)
            train(chromium, studio)
            compare(chromium, studio, export_labels(store, study.id, data / "images"), study)
    finally:
        studio.kill()


def make_study(chromium: Browser, studio: Studio, own: Path) -> None:
    """Let a zip go on the page Pictures, keep what was found, and make a study of it."""
    page = chromium.new_page()
    page.goto(f"{studio.url}/studio/pictures")
    page.locator("[data-drop] input[data-input=files]").set_input_files(own)
    expect(page.locator(".pic-found .pic-sets > li")).to_have_count(len(MODELS))
    for image in page.locator(".pic-found .pic-sets img").all():
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("status").get_by_role("link", name="Make a study of these").click()

    expect(page.locator("input[name=set]:checked")).to_have_count(len(MODELS))
    following = page.get_by_role("button", name="Next")
    following.click()
    expect(page.get_by_role("radio", name="Recognition")).to_be_checked()
    following.click()
    page.locator("section[data-step=people] summary").first.click()
    page.locator("#set-min_rt_ms").fill("0")  # the people of this test are quick
    following.click()
    page.locator("#set-name").fill("Everything")
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(r"/studio/overview\?study="))
    expect(page.get_by_role("status").filter(has_text="Created")).to_be_visible()
    page.context.close()


def label_everything(
    chromium: Browser, studio: Studio, store: Store, study
) -> dict[tuple[str, str], str]:
    """Five people answer every item by key; the server is killed and restarted in between."""
    labels = export_labels(store, study.id, studio.data / "images")
    people = [
        Person(chromium, studio, study, name, number, labels) for number, name in enumerate(PEOPLE)
    ]
    for person in people:
        person.answer(8)
    studio.kill()
    people[0].answer(2)  # typed while nobody listens: kept in the browser
    expect(people[0].page.locator(".sl-status")).to_contain_text("unsaved")
    studio.start()
    for person in people:
        person.answer_rest()
    for person in people:
        expect(person.page.locator("semsim-labeller")).to_contain_text("All done")
        assert person.errors == []
        person.page.context.close()
    return {key: answer for person in people for key, answer in person.pressed.items()}


class Person:
    """One annotator in a browser context of their own."""

    def __init__(self, chromium, studio, study, name, number, labels) -> None:
        self.page: Page = chromium.new_context().new_page()
        self.name, self.number = name, number
        self.truth = labels.set_index("item")
        self.items: dict[str, dict] = {}  # address of its picture → item
        self.pressed: dict[tuple[str, str], str] = {}
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("response", self._remember)
        self.page.goto(f"{studio.url}/join/{study.token}")
        self.page.get_by_label("Your name").fill(name)
        self.page.get_by_role("button").first.click()
        expect(self.page.locator(".sl-pictures img")).to_be_visible()

    def _remember(self, response) -> None:
        if "/api/next" in response.url and response.ok:
            for item in response.json()["items"]:
                self.items[item["images"][0]] = item

    def answer(self, count: int) -> None:
        """Press the key of this person's opinion for the next `count` pictures."""
        for _ in range(count):
            picture = self.page.locator(".sl-pictures img").get_attribute("src")
            item = self.items[picture]
            answer = self._opinion(item)
            key = "Space" if answer == "none" else KEYS[item["candidates"].index(answer)]
            self.page.keyboard.press(key)
            self.pressed[self.name, item["item"]] = answer
            if len(self.pressed_by_me) < len(MODELS) * IMAGES:
                expect(self.page.locator(".sl-pictures img")).not_to_have_attribute("src", picture)

    def answer_rest(self) -> None:
        self.answer(len(MODELS) * IMAGES - len(self.pressed_by_me))

    @property
    def pressed_by_me(self) -> list[str]:
        return [item for name, item in self.pressed if name == self.name]

    def _opinion(self, item: dict) -> str:
        """Sees the better models' pictures; the fifth person sees one model less."""
        row = self.truth.loc[item["item"]]
        picture = sorted(set(self.truth["image_id"])).index(row["image_id"])
        seen = {"clear": 4, "good": 3, "poor": 2, "bad": 1}[row["model"]]
        if picture < seen - (self.number == 4):
            return str(row["class_name"])
        return "none"


def check_votes(store: Store, study, pressed: dict[tuple[str, str], str]) -> None:
    """Nothing lost, nothing twice, and each vote is what was pressed."""
    votes = export_votes(store, study.id)
    assert (votes["status"] == "counted").all()
    assert votes.groupby("item").size().tolist() == [5] * (len(MODELS) * IMAGES)
    assert not votes.duplicated(["item", "annotator"]).any()
    stored = {(row.annotator, row.item): row.answer for row in votes.itertuples()}
    assert stored == pressed
    assert not votes["simulated"].any()


def look_at_results(chromium: Browser, studio: Studio, study) -> None:
    """What the five said, on every tab of Results."""
    page = chromium.new_page()
    page.goto(f"{studio.url}/studio/results?study={study.id}")
    votes = len(PEOPLE) * len(MODELS) * IMAGES
    expect(page.locator("#results")).to_contain_text(f"{votes} votes of {len(PEOPLE)} annotators")
    for tab, shown in (("Agreement", ".rs-heat"), ("People", ".st-table"), ("Checks", ".st-card")):
        page.locator(".rs-tabs").get_by_role("link", name=tab, exact=True).click()
        expect(page.locator(f".rs-body {shown}").first).to_be_visible()
    page.close()


def train(chromium: Browser, studio: Studio) -> None:
    """Two epochs from the page, and a reload in between."""
    page = chromium.new_page()
    page.goto(f"{studio.url}/studio/train")
    # The first picture was recognised on every model, the last one on none.
    expect(page.locator("#learn-stock")).to_contain_text(f"{IMAGES - 2} of {IMAGES} originals")
    expect(page.locator("#learn-preset input[value=triplet]")).to_be_checked()
    fill_training(page, "e2e")
    page.locator("#learn-start").click()
    expect(page.locator("#learn-status [data-state]")).to_be_visible()
    page.reload()
    expect(page.locator("#learn-status [data-state=done]")).to_be_visible()
    assert (studio.checkpoints / "e2e.safetensors").exists()
    page.close()


def compare(chromium: Browser, studio: Studio, labels: pd.DataFrame, study) -> None:
    """The page's numbers are those scipy and scikit-image give on the exported data."""
    page = chromium.new_page()
    page.goto(f"{studio.url}/studio/compare?study={study.id}&tab=answer&originals=all")
    # Scored by itself; the answer comes without a reload.
    expect(page.locator("#cmp-forest")).to_contain_text("e2e")
    rows = read_rows(page.locator("#cmp-forest"))
    people = labels.groupby("model")["recognisable"].mean().astype(float)
    assert people.nunique() == len(MODELS)
    raw = agreement_file(page)
    for name, values in per_model(labels).items():
        rho, tau = (
            stats.spearmanr(people, values[people.index]).statistic,
            stats.kendalltau(people, values[people.index]).statistic,
        )
        assert raw.loc[name, ["rho", "tau"]].tolist() == pytest.approx([rho, tau], abs=1e-9)
        # two decimals on the page
        assert rows[name] == pytest.approx([rho, tau], abs=0.006)
    learned = next(row for title, row in rows.items() if "e2e" in title)
    assert np.isfinite(learned).all()
    click_through(page)
    look_otherwise(page)
    page.close()


def agreement_file(page: Page) -> pd.DataFrame:
    """The table of agreement as the tab Files offers it, by title."""
    page.locator("#cmp-tab-files").click()
    link = page.get_by_role("link", name="CSV: Agreement of each metric with people").last
    reply = page.request.get(urljoin(page.url, link.get_attribute("href") or ""))
    return pd.read_csv(io.StringIO(reply.text())).set_index("title")


def look_otherwise(page: Page) -> None:
    """Another rule, and the only reference there is."""
    page.locator("#cmp-tab-answer").click()
    page.locator("#cmp-rule").select_option("mean-response")
    expect(page.locator("#cmp-body")).to_contain_text("The protocol fixed 'Majority of votes'")
    # No zip of pictures records what was attacked, so nothing else can be the reference.
    expect(page.locator("#cmp-reference option")).to_have_text(["Clean original"])
    expect(page.locator("#cmp-forest")).to_contain_text("MSE")
    expect(page.locator("#cmp-body")).not_to_contain_text("Computing the metrics")
    expect(page.locator("#cmp-rule")).to_have_value("mean-response")
    assert "HeadlineRule" not in page.locator("body").inner_text()


def click_through(page: Page) -> None:
    """A metric is one everywhere, a point of a model shows its images, a file can be had."""
    page.locator("#cmp-tab-answer").click()
    page.get_by_role("link", name="PSNR", exact=True).click()
    expect(page.locator("#cmp-side h2")).to_contain_text("PSNR")
    page.locator("#cmp-side circle[data-key]").first.click()
    expect(page.locator("#cmp-metric")).to_have_value("psnr")
    expect(page.locator("#cmp-pictures figure")).to_have_count(IMAGES)
    page.locator("#cmp-way-images").click()
    page.locator("#cmp-drawn circle[data-key^='row:']").first.click()  # of pictures, not models
    expect(page.locator("#cmp-pair img").first).to_be_visible()
    expect(page.locator("#cmp-pair img")).to_have_count(2)
    page.keyboard.press("Escape")
    page.locator("#cmp-tab-files").click()
    with page.expect_download() as waiting:
        page.locator("[data-act=report]").click()
    report = waiting.value.path().read_text(encoding="utf-8")
    assert "Everything" in report  # the study's name
    assert "Simulated votes" not in report


def per_model(labels: pd.DataFrame) -> dict[str, pd.Series]:
    """Mean leakage of each model by MSE (negated: more is less) and PSNR."""
    pairs = [(imread(r.original), imread(r.reconstruction), r.model) for r in labels.itertuples()]
    frame = pd.DataFrame(
        {
            "model": [model for _, _, model in pairs],
            "MSE": [-mean_squared_error(a / 255, b / 255) for a, b, _ in pairs],
            "PSNR": [peak_signal_noise_ratio(a, b) for a, b, _ in pairs],
        }
    )
    return {name: frame.groupby("model")[name].mean() for name in ("MSE", "PSNR")}


def read_rows(table) -> dict[str, list[float]]:
    """Title of each row → ρ, τ; NaN where the page shows no number."""

    def value(text: str) -> float:
        first = text.split()[0].replace("−", "-") if text.split() else ""
        return float(first) if first.lstrip("-").replace(".", "").isdigit() else float("nan")

    texts = table.evaluate_all(
        """tables => tables.flatMap(table => [...table.querySelectorAll("tbody tr")])
            .map(row => [...row.cells].map(cell => cell.innerText))"""
    )
    return {cells[0].strip(): [value(cell) for cell in cells[2:4]] for cells in texts}
