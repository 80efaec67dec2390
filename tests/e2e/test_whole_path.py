"""From labelling to ranking, with a real server, a real browser and five people."""

import io
import time

import numpy as np
import pandas as pd
import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from scipy import stats
from skimage.io import imread
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio
from studio import Studio, browser

from annotation.spec import StudySpec, Task
from annotation.store import Store
from annotation.study.create import create_study
from annotation.study.exports import export_labels, export_votes
from semsim.datasets.symbols import Symbols
from semsim.images import to_uint8
from semsim.sets.image import SetImage
from semsim.sets.writer import write_set

pytestmark = pytest.mark.e2e
PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve")
MODELS = {"clear": 0.03, "good": 0.08, "poor": 0.15, "bad": 0.3}  # name → noise on its images
IMAGES = 5
KEYS = [f"Digit{n}" for n in range(1, 6)] + [f"Key{c}" for c in "QWERTASDFGZXCVB"]
LONG = 120_000  # milliseconds: two busy cores


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Four models' reconstructions of the same five symbols, worse from model to model."""
    root = tmp_path_factory.mktemp("sets")
    data = Symbols(test_per_class=1)("test").pick([0, 4, 22, 30, 40])
    rng = torch.Generator().manual_seed(0)
    for model, noise in MODELS.items():
        images = []
        for image, image_id, label in zip(data.images, data.ids, data.labels.tolist(), strict=True):
            dirt = noise * torch.randn(image.shape, generator=rng)
            images.append(
                SetImage(
                    image_id=image_id,
                    class_id=label,
                    class_name=data.classes[label],
                    original=to_uint8(image),
                    reconstruction=to_uint8(image + dirt),
                )
            )
        run = {"name": model, "model": model, "status": "ok", "seed": 0, "seconds": 0.0}
        run |= {"dataset": {"name": "symbols", "classes": list(data.classes), "size": [32, 32]}}
        run |= {"target": {}, "attack": {"name": "noise", "settings": {}}, "versions": {}}
        write_set(root / model, run, images)
    return sorted(root.iterdir())


def test_five_people_label_train_and_compare(tmp_path, sets):
    expect.set_options(timeout=LONG)
    data = tmp_path / "data"
    studio = Studio(data, tmp_path / "checkpoints")
    with Store(f"sqlite:///{data / 'studies.db'}") as store:
        spec = StudySpec(
            name="Everything", task=Task.RECOGNITION, list_size=20, seed=3, min_rt_ms=0
        )
        study = create_study(store, spec, sets, data / "images")
        try:
            studio.start()
            with browser() as chromium:
                pressed = label_everything(chromium, studio, store, study)
                check_votes(store, study, pressed)
                train(chromium, studio)
                compare(chromium, studio, export_labels(store, study.id, data / "images"), study)
        finally:
            studio.kill()


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
        expect(person.page.locator("semsim-labeller")).to_contain_text("All done", timeout=LONG)
        assert person.errors == []
        person.page.context.close()
    return {key: answer for person in people for key, answer in person.pressed.items()}


class Person:
    """One annotator in a browser context of their own."""

    def __init__(self, chromium, studio, study, name, number, labels) -> None:
        self.page: Page = chromium.new_context().new_page()
        self.page.set_default_timeout(LONG)
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
        expect(self.page.locator(".sl-pictures img")).to_have_count(1)

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


def train(chromium: Browser, studio: Studio) -> None:
    """Two epochs from the page, and a reload in between."""
    page = chromium.new_page()
    page.set_default_timeout(LONG)
    page.goto(f"{studio.url}/studio/train")
    # The first picture was recognised on every model, the last one on none.
    expect(page.locator("#learn-stock")).to_contain_text(f"{IMAGES - 2} of {IMAGES} originals")
    page.locator("#learn-name input, #learn-name textarea").fill("e2e")
    # So few originals bring the preset mixed, which trains no network.
    expect(page.locator("#learn-preset input[value=mixed]")).to_be_checked()
    page.locator("#learn-preset input[value=small]").check()
    page.get_by_text("Settings", exact=True).click()
    choose(page, "#learn-backbone", "resnet18")
    page.locator("#learn-epochs input").fill("2")
    page.locator("#learn-start").click()
    expect(page.locator("#learn-status [data-state]")).to_be_visible()
    page.reload()
    expect(page.locator("#learn-status [data-state=done]")).to_be_visible()
    assert (studio.checkpoints / "e2e.safetensors").exists()
    page.close()


def compare(chromium: Browser, studio: Studio, labels: pd.DataFrame, study) -> None:
    """The page's numbers are those scipy and scikit-image give on the exported data."""
    page = chromium.new_page()
    page.set_default_timeout(LONG)
    page.goto(f"{studio.url}/studio/compare?study={study.id}")
    table = page.locator("#compare-agreement table")
    rows = wait_for_rows(table, ("MSE", "PSNR", "SSIM", "e2e"))
    people = labels.groupby("model")["recognisable"].mean().astype(float)
    assert people.nunique() == len(MODELS)
    link = page.locator("#compare-agreement a", has_text="CSV").get_attribute("href")
    file = pd.read_csv(io.StringIO(page.request.get(f"{studio.url}{link}").text()))
    raw = file.set_index("title")
    for name, values in per_model(labels).items():
        rho, tau = (
            stats.spearmanr(people, values[people.index]).statistic,
            stats.kendalltau(people, values[people.index]).statistic,
        )
        assert raw.loc[name, ["rho", "tau"]].tolist() == pytest.approx([rho, tau], abs=1e-9)
        # three decimals on the page
        assert rows[name] == pytest.approx([abs(rho), abs(tau)], abs=0.0006)
    learned = next(row for title, row in rows.items() if "e2e" in title)
    assert np.isfinite(learned).all()
    click_through(page)
    look_otherwise(page)
    page.close()


def look_otherwise(page: Page) -> None:
    """Another rule, then a reference nothing is scored against: every control goes on answering."""
    choose(page, "#compare-rule", "mean-response")
    expect(page.locator("#compare-notice")).to_contain_text("ranks by 'mean-response'")
    choose(page, "#compare-reference", "Attacked image")
    expect(page.locator("#compare-forest")).to_contain_text("nothing to compare")
    expect(page.locator("#compare-rule input")).to_have_value("mean-response")
    choose(page, "#compare-rule", "dawid-skene")
    expect(page.locator("#compare-notice")).to_contain_text("ranks by 'dawid-skene'")
    choose(page, "#compare-reference", "Clean original")
    wait_for_rows(page.locator("#compare-agreement table"), ("MSE",))
    assert "HeadlineRule" not in page.locator("body").inner_text()


def click_through(page: Page) -> None:
    """A point of a model shows its images, a point of an image shows the pair."""
    page.locator("#compare-scatter [data-key]").first.click()
    expect(page.locator("#compare-model-images figure")).to_have_count(IMAGES)
    page.locator("#compare-images .points path").first.click(force=True)
    expect(page.locator("#compare-pair img")).to_have_count(2)
    with page.expect_download() as waiting:
        page.get_by_text("Report (HTML)").click()
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
    """First cell of each row → |ρ|, |τ|; NaN where the page shows no number."""

    def value(text: str) -> float:
        return float(text) if text.replace(".", "").isdigit() else float("nan")

    # In one go: the page may draw the table anew at any moment.
    texts = table.evaluate_all(
        """tables => tables.flatMap(table => [...table.querySelectorAll("tbody tr")])
            .map(row => [...row.cells].map(cell => cell.innerText))"""
    )
    return {cells[0]: [value(cell) for cell in cells[2:4]] for cells in texts}


def wait_for_rows(table, names: tuple[str, ...]) -> dict[str, list[float]]:
    """The rows, once every metric of `names` has its numbers."""
    deadline = time.monotonic() + LONG / 1000
    while True:
        rows = read_rows(table)
        ready = [
            any(name in title and np.isfinite(row).all() for title, row in rows.items())
            for name in names
        ]
        if all(ready):
            return rows
        assert time.monotonic() < deadline, f"the page shows only {rows}"
        table.page.wait_for_timeout(250)


def choose(page: Page, dropdown: str, option: str) -> None:
    """Pick an option of a Gradio dropdown by its words."""
    page.locator(f"{dropdown} input").click()
    page.get_by_role("option", name=option).first.click()
