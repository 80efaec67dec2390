"""SemSim as people import it: loaded from everywhere, saved, exported, differentiated."""

import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import copies
import huggingface_hub
import pytest
import torch
from helpers import ROOT
from huggingface_hub import ModelCard
from made_weights import make_semsim
from safetensors.torch import load_file, save_file

from semsim import SemSim, SemSimLoss
from semsim.base.errors import DataError, SettingsError, WeightsError
from semsim.base.metric_spec import CALIBRATED
from semsim.metrics.network import ModelSettings, load_semsim, semsim_distance

DEMO = ROOT / "checkpoints" / "demo.safetensors"


def images(n=4, side=32, seed=0):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def demo():
    return SemSim.from_pretrained(DEMO)


@pytest.mark.parametrize("given", [DEMO, str(DEMO), str(DEMO.with_suffix(""))])
def test_a_file_of_this_product_loads_with_its_name_origin_and_card(given):
    metric = SemSim.from_pretrained(given)
    assert metric.name == "demo"
    assert metric.origin["n_triplets"] > 0
    assert metric.card["name"] == "demo"


def test_its_distance_is_that_of_the_command_line(demo):
    x, y = images(), images(seed=1, side=40)
    expected = semsim_distance(load_semsim(DEMO), x, y)
    assert torch.allclose(demo(x, y), expected, rtol=0, atol=1e-6)
    assert demo(x, y).shape == (4,)


def test_gradients_reach_the_images_and_not_the_network(demo):
    x, y = images(), images(seed=1).requires_grad_()
    demo(x, y).sum().backward()
    assert y.grad.abs().sum() > 0
    assert not any(weight.requires_grad for weight in demo.parameters())


def test_equal_images_have_a_distance_and_a_gradient_of_nought(demo):
    x = images().requires_grad_()
    distance = demo(x, x.detach())
    distance.sum().backward()
    assert distance.tolist() == [0] * 4
    assert x.grad.abs().max() == 0


def test_a_gradient_is_the_slope_of_the_distance():
    torch.manual_seed(0)
    metric = SemSim(ModelSettings(backbone="lenet", input_size=20)).double()
    x, y = images(1, 20).double(), images(1, 20, seed=1).double().mul(0.9).add(0.05)
    assert torch.autograd.gradcheck(lambda z: metric(x, z), y.requires_grad_())


def test_it_stays_in_eval_mode_inside_a_model_that_trains(demo):
    whole = torch.nn.ModuleList([demo]).train()
    assert whole.training
    assert not any(module.training for module in demo.modules())


@pytest.mark.parametrize("wrong", [images() * 2, images()[0], (images() * 255).byte()])
def test_other_images_are_refused(demo, wrong):
    with pytest.raises(DataError):
        demo(images(), wrong)


def test_a_folder_brings_back_the_same_module(demo, tmp_path):
    demo.save_pretrained(tmp_path / "kept")
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        "config.json",
        "model.safetensors",
        "README.md",
        "card.json",
    }
    again = SemSim.from_pretrained(tmp_path / "kept")
    x, y = images(), images(seed=1)
    assert torch.equal(again(x, y), demo(x, y))
    assert (again.name, again.origin, again.card) == (demo.name, demo.origin, demo.card)
    assert not any(module.training for module in again.modules())


def test_loading_a_folder_prints_nothing(demo, tmp_path, capsys):
    demo.save_pretrained(tmp_path)
    SemSim.from_pretrained(tmp_path)
    assert capsys.readouterr() == ("", "")


def test_a_folder_is_a_checkpoint_again(demo, tmp_path):
    demo.save_pretrained(tmp_path / "kept")
    SemSim.from_pretrained(tmp_path / "kept").save_checkpoint(tmp_path / "mine.safetensors")
    x, y = images(), images(seed=1)
    found = semsim_distance(load_semsim(tmp_path / "mine.safetensors"), x, y)
    assert torch.equal(found, semsim_distance(load_semsim(DEMO), x, y))


def test_the_card_has_front_matter_with_metrics_and_their_intervals(demo, tmp_path):
    demo.save_pretrained(tmp_path)
    front = ModelCard.load(tmp_path / "README.md").data
    assert front.license == "unknown"
    assert front.library_name == "semsim"
    assert {"image-similarity", "simulated-votes"} <= set(front.tags)
    assert front.datasets == ["symbols"]
    rho = next(found for found in front.eval_results if found.metric_name == "ρ")
    held_out = demo.card["held_out"]["metrics"]
    own = next(row for row in held_out if row["metric"].startswith("semsim:"))
    assert rho.metric_value == pytest.approx(own["rho"])
    assert rho.metric_args["low"] < rho.metric_value < rho.metric_args["high"]
    assert {found.metric_name for found in front.eval_results} >= {"ρ", "τ", "AUC pooled"}
    for found in front.eval_results:
        assert found.metric_args["low"] <= found.metric_value <= found.metric_args["high"]
    assert {found.metric_type for found in front.eval_results} == set(front.metrics)


def test_without_a_card_the_readme_says_that_nothing_is_known(tmp_path):
    make_semsim(tmp_path / "bare.safetensors")
    SemSim.from_pretrained(tmp_path / "bare").save_pretrained(tmp_path / "out")
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.license == "unknown"
    assert card.data.model_name == "bare" or "SemSim bare" in card.text
    assert "not stated" in card.text
    assert SemSim.from_pretrained(tmp_path / "out").card is None


@pytest.mark.parametrize("backbone", ["lenet", CALIBRATED])
def test_an_exported_one_computes_the_same_for_any_number_of_images(tmp_path, backbone):
    torch.manual_seed(0)
    exported_is_the_same(SemSim(ModelSettings(backbone=backbone)), tmp_path)


def test_a_trained_one_is_exported(demo, tmp_path):
    exported_is_the_same(demo, tmp_path)


def exported_is_the_same(metric, tmp_path):
    batch = torch.export.Dim("batch")
    program = torch.export.export(
        metric,
        (images(2), images(2, seed=1)),
        dynamic_shapes=({0: batch}, {0: batch}),
    )
    torch.export.save(program, tmp_path / "semsim.pt2")
    loaded = torch.export.load(tmp_path / "semsim.pt2").module()
    x, y = images(7, seed=2), images(7, seed=3)
    assert torch.allclose(loaded(x, y), metric(x, y), rtol=0, atol=1e-6)


@pytest.mark.parametrize("spoiled", ["no weights", "other weights", "not finite", "empty"])
def test_a_folder_that_cannot_be_used_says_so(demo, tmp_path, spoiled):
    demo.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    if spoiled == "no weights":
        (tmp_path / "model.safetensors").unlink()
    elif spoiled == "other weights":
        save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    elif spoiled == "not finite":
        weights = {name: value * torch.nan for name, value in weights.items()}
        save_file(weights, tmp_path / "model.safetensors")
    else:
        (tmp_path / "config.json").unlink()
    with pytest.raises(WeightsError, match=str(tmp_path)):
        SemSim.from_pretrained(tmp_path)


def test_a_repository_that_is_nowhere_is_told(tmp_path):
    with pytest.raises(WeightsError, match="the hub has none by this name"):
        SemSim.from_pretrained("hub:nobody/nothing", local_files_only=True, cache_dir=tmp_path)


@pytest.mark.parametrize("given", ["checkpoints/nope", "somebody/mine", "nope", "./nope"])
def test_the_hub_is_asked_only_where_it_is_named(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *of, **options: asked.append(of))
    told = r"No SemSim is at .* There are: .*checkpoints/demo.*hub:OWNER/NAME only"
    with pytest.raises(WeightsError, match=told):
        SemSim.from_pretrained(given)
    assert asked == []


def test_a_name_is_plain():
    with pytest.raises(SettingsError):
        SemSim(ModelSettings(backbone="lenet"), name="../a")


class Hub(BaseHTTPRequestHandler):
    """As much of a model hub as a download asks for."""

    def __init__(self, folder, *args):
        self.folder = folder
        super().__init__(*args)

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, whole):
        path = self.folder / self.path.partition("?")[0].rpartition("/")[2]
        known = self.path.startswith("/somebody/mine/resolve/main/") and path.is_file()
        self.send_response(200 if known else 404)
        content = path.read_bytes() if known else b""
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(content)))
        if known:
            self.send_header("ETag", f'"{path.name}"')
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if whole:
            self.wfile.write(content)

    def log_message(self, *args):
        """Nothing is told."""


def test_a_repository_of_a_hub_is_fetched(demo, tmp_path):
    demo.save_pretrained(tmp_path / "kept")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, tmp_path / "kept"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = (
        "import semsim; m = semsim.SemSim.from_pretrained('hub:somebody/mine');"
        "print(m.name, m.card is not None, sum(float(w.sum()) for w in m.parameters()))"
    )
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path / "hub"),
        "HF_HUB_DISABLE_XET": "1",
        "PATH": "",
        "NO_PROXY": "127.0.0.1",
    }
    done = copies.run(["-c", code], cwd=ROOT, env=environment)
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr
    *facts, total = done.stdout.split()
    assert facts == ["demo", "True"]
    assert float(total) == pytest.approx(sum(float(w.sum()) for w in demo.parameters()), rel=1e-4)


def test_pushing_sends_the_folder(demo, monkeypatch):
    sent = {}

    def create_repo(self, repo_id, **kwargs):
        return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

    def upload_folder(self, *, repo_id, folder_path, **kwargs):
        sent.update({path.name: path.stat().st_size for path in Path(folder_path).iterdir()})
        return repo_id

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", create_repo)
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", upload_folder)
    assert demo.push_to_hub("somebody/mine") == "somebody/mine"
    assert {"config.json", "model.safetensors", "README.md"} <= set(sent)


def test_what_rounding_moved_past_white_counts_as_white(demo):
    x, white = images(), torch.ones(4, 3, 32, 32)
    assert torch.equal(demo(x, white + 1e-4), demo(x, white))
    with pytest.raises(DataError, match=r"values from 1.001 to 1.001"):
        demo(x, white + 1e-3)


@pytest.mark.parametrize("strange", [images().to("meta"), images().to_sparse()])
def test_images_without_values_in_rows_are_refused(demo, strange):
    with pytest.raises(DataError, match="must be dense and have values"):
        demo(images(), strange)


@pytest.mark.parametrize(("reduction", "expected"), [("mean", torch.mean), ("sum", torch.sum)])
def test_reductions_are_of_the_distances(reduction, expected):
    metric = SemSim.from_pretrained(DEMO)
    x, y = images(), images(seed=1)
    distances = SemSimLoss(metric, "none")(y, x)
    assert torch.equal(distances, metric(x, y))
    assert torch.equal(SemSimLoss(metric, reduction)(y, x), expected(distances))


def test_another_reduction_is_refused():
    with pytest.raises(SettingsError, match="reduction"):
        SemSimLoss(str(DEMO), "median")


def test_a_training_loop_makes_it_smaller_and_leaves_the_metric_alone():
    loss = SemSimLoss(str(DEMO))
    before = [value.clone() for value in loss.state_dict().values()]
    pixels = torch.nn.Parameter(torch.zeros(1, 3, 32, 32))
    optimiser = torch.optim.Adam([pixels, *loss.parameters()], lr=0.05)
    target, seen = images(1), []
    for _ in range(15):
        found = loss(pixels.sigmoid(), target)
        optimiser.zero_grad()
        found.backward()
        optimiser.step()
        seen.append(found.item())
    assert seen[-1] < 0.8 * seen[0]
    assert all(map(torch.equal, before, loss.state_dict().values()))


def test_pictures_out_of_range_are_refused():
    with pytest.raises(DataError, match=r"\[0, 1\]"):
        SemSimLoss(str(DEMO))(images() * 3, images())
