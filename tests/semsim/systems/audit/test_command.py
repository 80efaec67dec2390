import json
import re
import sys

import pytest
from audit_command import run
from PIL import Image

from semsim.base.errors import SettingsError
from semsim.systems.audit import numeric_rank as security_check
from semsim.systems.audit.command import shape_of

NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(1, 2, 3, stride=2)
        self.end = nn.Linear(2 * 7 * 7, 4)

    def forward(self, images):
        return self.end(self.look(images).tanh().flatten(1))

class Dense(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(256, 4))

class Large(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 1, 3, 2), nn.Conv2d(1, 1, 3), nn.Flatten(), nn.Linear(37 * 37, 4)
        )

class Needs(nn.Module):
    def __init__(self, width):
        super().__init__()

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.end = self.nothing

class Plain:
    pass
"""


BEHIND = """
from torch import nn

class Behind(nn.Sequential):
    def __init__(self, *behind):
        side = 2 if len(behind) == 2 else 4
        super().__init__(
            nn.Conv2d(2, 4, 5, 2), *behind, nn.Flatten(), nn.Linear(4 * side * side, 5)
        )

class Pooled(Behind):
    def __init__(self):
        super().__init__(nn.LeakyReLU(0.2), nn.AvgPool2d(2))

class Highest(Behind):
    def __init__(self):
        super().__init__(nn.Tanh(), nn.MaxPool2d(2))

class Cut(Behind):
    def __init__(self):
        super().__init__(nn.ReLU())

class Smooth(Behind):
    def __init__(self):
        super().__init__(nn.Tanh())
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


@pytest.fixture
def behind(tmp_path):
    path = tmp_path / "behind.py"
    path.write_text(BEHIND)
    return path


def test_a_built_in_network_is_audited_and_checked():
    done = run("cnn3:2", "--verify")
    assert done.exit_code == 0, done.output
    assert "c(M) = −1,995\n" in done.output
    assert "c(M) is −1,995: the image cannot be solved for" in done.output
    assert "Checked with weights and a gradient: c(M) = −1,995" in done.output
    assert done.output.count("as in closed form") == 2
    assert "c(M), now −1,995" in done.output


def test_layers_and_changes_are_printed_as_json_too():
    done = run("cnn3:2", "--verify", "--json")
    parts = json.loads(done.stdout)
    layers = parts["layers"]
    assert sum(row["contribution"] for row in layers) == pytest.approx(-1995)
    assert [row["checked_rank"] for row in layers] == [row["rank"] for row in layers]
    assert [row["full_rank"] for row in layers] == [row["pulls_back"] for row in layers]
    changes = [row["value"] for row in parts["changes"]]
    assert changes == sorted(changes)
    assert len(changes) > 3
    assert "the image cannot be solved for" in done.stderr


def test_whether_a_weight_has_full_rank_is_said_where_it_is_checked():
    def ends(*words):
        lines = run("cnn3:1", *words).output.splitlines()
        header, *layers = lines[2:5]
        assert header.rstrip().split("  ")[-2:] == ["widens", "W has full rank"]
        return [line.split()[-2:] for line in layers]

    assert ends() == [["yes", "–"], ["no", "–"]]
    assert ends("--verify") == [["yes", "yes"], ["no", "no"]]


def test_a_class_of_a_file_is_audited_and_drawn(file, tmp_path):
    for name in ("leaks.png", "leaks.svg"):
        done = run(f"{file}:Net", "--input", "1x16x16", "--figure", tmp_path / "new" / name)
        assert done.exit_code == 0, done.output
        assert "1: look" in done.output
        assert "c(M) = −144" in done.output  # 2·49 + 2·9 − 2² of 256 values
    assert Image.open(tmp_path / "new/leaks.png").size[0] > 1000
    assert (tmp_path / "new/leaks.svg").read_text().rstrip().endswith("</svg>")


def test_a_network_without_a_convolution_has_nothing_to_check(file):
    done = run(f"{file}:Dense", "--input", "1x16x16", "--verify")
    assert done.exit_code == 0, done.output
    assert "Nothing to check" in done.output


def test_a_layer_too_large_to_check_stops_nothing(file, monkeypatch, tmp_path):
    monkeypatch.setattr(security_check, "_LARGEST", 1400)
    drawing = tmp_path / "leaks.svg"
    done = run(f"{file}:Large", "--input", "1x79x79", "--verify", "--figure", drawing)
    assert done.exit_code == 0, done.output
    assert "1: 0: too large to check: 1,530 equations for 6,241 values" in done.output
    assert "2: 1: rank 1,377, as in closed form" in done.output
    assert "c(M) = −4,784, in part in closed form" in done.output
    assert "c(M), now" in done.output
    assert drawing.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["cnn3:5"], "cnn3:1 to cnn3:4"),
        (["nothing.py:Net"], "No file 'nothing.py'"),
        (["cnn3:1", "--input", "32x32"], "channels x height x width"),
        (["cnn3:1", "--input", "0x28x28"], "each from 1"),
        (["cnn3:1", "--input", "3x4x4"], "larger than the 2×2 map"),
        (["cnn3:4", "--figure", "leaks.gif"], ".png or .svg"),
    ],
)
def test_what_cannot_be_done_says_why(words, says):
    done = run(*words)
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            ":Net2",
            "no class 'Net2', as model.py:Net. Networks in it: Net, Dense, Large, Needs, Own.",
        ),
        ("", "name a class of it, as model.py:Net. Networks in it: Net, "),
        (":Needs", "without arguments: TypeError"),
        (":Own", "without arguments: AttributeError: 'Own' object has no attribute 'nothing'"),
        (":Plain", "torch.nn.Module"),
    ],
)
def test_a_class_that_is_no_network_says_why(file, name, says):
    done = run(f"{file}{name}", "--input", "1x16x16")
    assert done.exit_code == 2
    assert says in done.output


def test_a_wrong_input_for_a_network_of_a_file_is_told_in_a_line(file):
    done = run(f"{file}:Net", "--input", "1x28x28")
    assert done.exit_code == 2
    assert "Error: Net does not take images of 1×28×28: mat1 and mat2" in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise RuntimeError('not today')", "cannot be run: RuntimeError: not today."),
        ("import sys\nsys.exit(0)", "cannot be run: it ends the program (SystemExit: 0)."),
        ("x = 1\nclass Net(:", "broken.py, line 2: syntax error: invalid syntax."),
        ("import a_module_that_is_missing", "ModuleNotFoundError"),
    ],
)
def test_a_file_that_fails_is_told_without_a_traceback(tmp_path, code, says):
    path = tmp_path / "broken.py"
    path.write_text(code)
    done = run(f"{path}:Net")
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output


def test_a_file_may_import_its_neighbour(file):
    before = list(sys.path)
    (file.parent / "neighbour_of_net.py").write_text("from net import Net as Same")
    (file.parent / "user.py").write_text(
        "from neighbour_of_net import Same\n\nclass Net(Same): ..."
    )
    done = run(f"{file.parent / 'user.py'}:Net", "--input", "1x16x16")
    assert done.exit_code == 0, done.output
    assert sys.path == before


def test_the_help_says_that_the_file_is_run():
    done = run("--help")
    assert "CAUTION: the file is run" in " ".join(done.output.replace("│", " ").split())


def test_sizes_are_three_numbers():
    assert shape_of("3x32×40") == (3, 32, 40)
    with pytest.raises(SettingsError):
        shape_of("3x-1x4")


@pytest.mark.parametrize("name", ["Pooled", "Highest", "Cut"])
def test_before_pooling_and_relu_the_closed_form_is_said_to_be_a_bound(behind, name):
    done = run(f"{behind}:{name}", "--input", "2x12x12", "--verify", "--seed", 0)
    assert "≤ 242" in done.output
    assert "c(M) ≤ −46" in done.output
    assert "c(M) is −46 at most" in done.output
    assert "(pooling or an activation like ReLU behind it)" in done.output
    (rank,) = re.findall(r"rank (\d+), closed form 242: .*upper bound here", done.output)
    assert int(rank) < 242


def test_before_a_smooth_activation_it_is_the_rank(behind):
    done = run(f"{behind}:Smooth", "--input", "2x12x12", "--verify", "--seed", 0)
    assert "≤" not in done.output
    assert "c(M) = −46" in done.output
    assert "rank 242, as in closed form" in done.output
