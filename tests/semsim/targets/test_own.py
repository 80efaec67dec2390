"""A network of somebody's own: told apart by its source, made, checked, and kept."""

import importlib
import sys

import pytest
import torch
from made_campaign import toy_campaign
from made_network import write_network
from torch import nn

from semsim.base.errors import JobError, SettingsError
from semsim.campaign.campaign_job import plan_of
from semsim.grid.executor import of_the_machine
from semsim.targets.model import TargetModel, load_target, save_target
from semsim.targets.own import OwnNetwork, own_network, source_of

MODULE = "nets_of_a_test"


def forget():
    """Nothing is imported yet, as in another process."""
    for name in [one for one in sys.modules if one.partition(".")[0] in (MODULE, "parts")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    source_of.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    forget()
    yield tmp_path
    forget()


def network(name="Tiny", module=MODULE):
    return OwnNetwork(network=f"{module}:{name}", source=source_of(f"{module}:{name}"))


def made(name="Tiny"):
    return network(name).classifier(3, (32, 32), 5)


def test_it_is_made_whole_with_its_own_last_layer_and_survives_saving(folder):
    write_network(folder, MODULE)
    torch.manual_seed(0)
    target = TargetModel(network(), "abcde", mean=[0.4] * 3, std=[0.2] * 3, size=(32, 32)).eval()
    images = torch.rand(2, 3, 32, 32)
    assert target(images).shape == (2, 5)
    assert torch.equal(target(images), target.body((images - 0.4) / 0.2))
    assert isinstance(target.head, nn.Identity)
    assert not any(getattr(one, "inplace", False) for one in target.modules())
    assert target.body.training is False
    assert made().training is True
    save_target(target, folder / "t.safetensors", name="own", facts={})
    again = load_target(folder / "t.safetensors")
    assert torch.equal(again(images), target(images))


@pytest.mark.parametrize("module", [MODULE, f"{MODULE}.small"])
def test_whatever_it_imports_of_its_own_tells_it_apart(folder, module):
    named = write_network(folder, module)
    place = folder.joinpath(*module.split(".")[:-1])
    before = source_of(named)
    (place / "unrelated.py").write_text("x = 1\n")
    forget()
    assert source_of(named) == before
    for file in sorted({"parts.py", f"{module.rpartition('.')[2]}.py"}):
        kept = (place / file).read_text()
        (place / file).write_text(kept + "\n# another\n")
        forget()
        assert source_of(named) != before
        (place / file).write_text(kept)
    forget()
    assert source_of(named) == before


def test_relative_imports_are_followed(folder):
    (folder / MODULE).mkdir()
    (folder / MODULE / "__init__.py").write_text("")
    (folder / MODULE / "a.py").write_text("from . import b\nfrom .c import d\n")
    seen = set()
    for text in ("x = 1", "x = 2"):
        for name in ("b", "c"):
            (folder / MODULE / f"{name}.py").write_text(f"{text}\nd = 0\n")
            forget()
            seen.add(source_of(f"{MODULE}.a:x"))
    assert len(seen) == 4


def test_a_network_of_an_installed_package_counts_by_its_version(monkeypatch):
    named = "torchvision.models.alexnet:AlexNet"
    found = {"torchvision": ["torchvision"]}  # metadata looks through all that is installed
    monkeypatch.setattr("semsim.targets.own.metadata.packages_distributions", lambda: found)
    source_of.cache_clear()
    before = source_of(named)
    monkeypatch.setattr("semsim.targets.own.metadata.version", lambda _: "another")
    source_of.cache_clear()
    assert source_of(named) != before
    source_of.cache_clear()


def test_two_networks_never_share_a_key_and_one_keeps_its_own(folder):
    write_network(folder, MODULE)
    text = own_network(f"{MODULE}:Tiny")
    asked = {"strategies": ("none",), "images": 1}
    first = plan_of(toy_campaign(architectures=(text,), **asked))
    assert [one.model for one in first.sets] == ["Tiny/none/invgrad"]
    twin = text.replace(":Tiny,", ":frozen,").replace(f"source={source_of(f'{MODULE}:Tiny')}",
                        f"source={source_of(f'{MODULE}:frozen')}")  # fmt: skip
    assert own_network(f"{MODULE}:frozen") == twin
    (folder / "parts.py").write_text("from torch import nn\n\n\ndef activation():\n"
                                     "    return nn.Tanh()\n")  # fmt: skip
    with pytest.raises(JobError, match="not what this campaign began with"):
        forget() or plan_of(toy_campaign(architectures=(text,), **asked))
    forget()
    second = plan_of(toy_campaign(architectures=(own_network(f"{MODULE}:Tiny"),), **asked))
    keys = [{*(cell.key for cell in plan.cells), plan.targets[0].key} for plan in (first, second)]
    assert not keys[0] & keys[1]


def test_a_process_that_has_imported_an_older_version_is_refused(folder):
    write_network(folder, MODULE)
    made()
    (folder / "parts.py").write_text("from torch import nn\n\nactivation = nn.Tanh\n")
    newer = source_of.__wrapped__(f"{MODULE}:Tiny")
    assert newer != source_of(f"{MODULE}:Tiny")
    asked = OwnNetwork(network=f"{MODULE}:Tiny", source=newer)
    with pytest.raises(JobError, match="start again what has imported it"):
        asked.classifier(3, (32, 32), 5)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong_shape", r"\(N, num_classes\); of 2 images and 5 classes that is \(2, 5\), it gave"
                        r" \(2, 6\)"),
        ("no_module", "should give a torch.nn.Module; it gave a function"),
        ("no_size", r"cannot be made with num_classes=5, image_size=\(32, 32\): TypeError"),
        ("for_small_images", r"cannot take images \(2, 3, 32, 32\): RuntimeError"),
        ("idle", r"the parameter spare.weight has no gradient"),
        ("frozen", r"the parameter last.weight has no gradient"),
        ("overwriting", "overwrites what another one reads.* Take inplace=False"),
        ("empty", r"it gave \(2, 3072\)"),
    ],
)  # fmt: skip
def test_what_is_no_classifier_is_refused_with_the_reason(folder, name, words):
    write_network(folder, MODULE)
    with pytest.raises(SettingsError, match=words) as refused:
        made(name)
    assert not of_the_machine(refused.value)  # it comes out the same everywhere


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ("nowhere_to_be_found:Tiny", "cannot be imported .* PYTHONPATH"),
        (f"{MODULE}:Absent", "has no 'Absent'"),
        (f"{MODULE}", "package.module:Class"),
        (f"{MODULE}:a.b", "package.module:Class"),
        ("breaks_at_once:Tiny", "breaks when it is imported: ZeroDivisionError"),
    ],
)
def test_what_cannot_be_found_is_told(folder, network, words):
    write_network(folder, MODULE)
    (folder / "breaks_at_once.py").write_text("1 / 0\n")
    with pytest.raises(SettingsError, match=words):
        own_network(network)


def test_what_a_machine_does_not_have_is_the_machines(folder):
    """Another machine may have it, so nothing is kept of the failure."""
    write_network(folder, MODULE)
    with pytest.raises(SettingsError) as absent:
        own_network("nowhere_to_be_found:Tiny")
    with pytest.raises(JobError) as other:
        OwnNetwork(network=f"{MODULE}:Tiny", source="0" * 12).classifier(3, (32, 32), 5)
    assert of_the_machine(absent.value)
    assert of_the_machine(other.value)


def test_without_its_source_it_has_no_key():
    with pytest.raises(SettingsError, match="--own-network"):
        plan_of(toy_campaign(architectures=(f"own:network={MODULE}:Tiny",)))
