import torch

from semsim.split.experiment import Leak
from semsim.split.records import write_split_set
from semsim.types import LabelledImages
from semsim.ui import split_view

ROW = {
    "network": "small",
    "defence": "<b>single</b>",
    "accuracy": 0.95,
    "change": -0.02,
    "valid": True,
    "attack": "one-body",
    "choice": "best SSIM",
    "n": 6,
    "ssim_mean": 0.5,
    "ssim_sd": 0.1,
    "psnr_mean": 20.0,
    "psnr_sd": 1.0,
    "recognised": 0.25,
}


def written(folder, name="single"):
    images = LabelledImages(
        dataset="digits",
        classes=("0",),
        ids=("a", "b"),
        images=torch.rand(2, 3, 8, 8),
        labels=torch.tensor([0, 0]),
    )
    zeros = torch.zeros(2).numpy()
    leak = Leak(
        images=torch.rand(2, 3, 8, 8),
        ssim=zeros,
        psnr=zeros,
        residuals=zeros,
        grey_residuals=zeros + 1,
        shadow_accuracy=0.5,
        decoder_error=0.1,
    )
    record = {
        "model": f"small/{name}/seed 0",
        "target": {"valid": True, "test_accuracy": 0.9},
        "attack": {"name": "adaptive"},
    }
    return write_split_set(folder / name, record, images, leak)


def test_scores_are_told_with_their_spread_and_words_are_escaped():
    html = split_view.scores_html([ROW])
    assert "0.500 ± 0.100" in html
    assert "95.0% (-2.0 points)" in html
    assert "needs the originals" in html
    assert "<b>" not in html
    assert "invalid" not in html


def test_an_invalid_system_is_marked_and_explained():
    bare = {**ROW, "valid": False, "attack": "", "choice": "", "ssim_mean": None, "n": 0}
    html = split_view.scores_html([{**bare, "psnr_mean": None, "recognised": None}])
    assert "not attacked" in html
    assert "not trained enough" in html


def test_images_stand_below_their_originals(tmp_path):
    folders = [written(tmp_path), written(tmp_path, "none")]
    html = split_view.images_html(folders)
    assert html.count("<img") == 3 * 2
    assert html.index("originals") < html.index("small/single/seed 0")
    assert "small/none/seed 0" in html


def test_a_set_that_was_deleted_is_said_to_be_gone(tmp_path):
    assert "is gone" in split_view.images_html([tmp_path / "nothing"])
    assert "no system was attacked" in split_view.images_html([])


def test_costs_are_told():
    cost = {"network": "small", "defence": "none", "client": 1e6, "client_ms": 1.25}
    cost |= {"server": 2e6, "server_ms": 3.5, "sent": 4096, "returned": 128}
    html = split_view.costs_html([cost])
    assert "1.00 MFLOP, 1.2 ms" in html
    assert "4,096 bytes" in html


def test_a_chosen_metric_is_a_column_of_its_own():
    html = split_view.scores_html([{**ROW, "semsim:mine_mean": 0.75, "semsim:mine_sd": 0.25}])
    assert "semsim:mine</th>" in html
    assert "0.750 ± 0.250" in html
