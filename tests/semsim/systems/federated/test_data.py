import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_federated import made_data, made_images

from semsim.base.errors import DataError, SettingsError, UnknownNameError
from semsim.images import write_png
from semsim.systems.federated.comparison import load
from semsim.systems.federated.data import (
    OwnTable,
    batch_of,
    deal,
    of_images,
    of_table,
    own_table_text,
)
from semsim.systems.federated.flower.meeting import facts_of, fitted
from semsim.systems.federated.networks import fresh_network
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import FederatedSettings


def test_images_get_one_hot_targets_and_their_own_normalisation():
    images = made_images(9, 0)
    data = of_images(images, made_images(3, 1))
    assert data.input_shape == (3, 8, 8)
    assert data.outputs == 3
    assert torch.equal(data.train.targets.argmax(1), images.labels)
    assert data.train.targets.sum() == 9
    assert data.mean[1] == pytest.approx(images.images[:, 1].mean().item(), rel=1e-6)


def test_a_channel_that_is_the_same_in_all_images_is_not_divided_by_zero():
    images = made_images(9, 0)
    images.images[:, 2] = 0.3
    data = of_images(images, replace(images, ids=images.ids[::-1]))
    assert data.std[2] == 1.0
    assert data.std[0] == pytest.approx(images.images[:, 0].std().item(), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "rows", "columns"), [("diabetes", 442, 10), ("breast-cancer", 569, 30)]
)
def test_tables_are_split_and_normalised_by_their_training_rows(name, rows, columns):
    data = of_table(name)
    assert len(data.train) + len(data.test) == rows
    assert len(data.test) == rows // 5
    assert data.input_shape == (columns,)
    normal = (data.train.inputs - torch.tensor(data.mean)) / torch.tensor(data.std)
    assert torch.allclose(normal.mean(0), torch.zeros(columns).double(), atol=1e-5)  # float32 mean
    assert data.train.labels is None
    assert torch.equal(of_table(name).test.inputs, data.test.inputs)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="same classes and size"):
        of_images(made_images(3, 0), made_images(3, 0, side=4))
    with pytest.raises(UnknownNameError, match="breast-cancer"):
        of_table("wine")


def shares(parts, labels):
    return [
        [sum(int(labels[i]) == c for i in part) / len(part) for c in range(3)] for part in parts
    ]


@pytest.mark.parametrize("split", ["iid", "dirichlet"])
def test_every_example_goes_to_exactly_one_client(split):
    train = made_data(count=90).train
    parts = deal(train, FederatedSettings(clients=4, split=split))
    assert len(parts) == 4
    assert sorted(index for part in parts for index in part) == list(range(90))


def test_a_small_alpha_makes_clients_differ_and_a_large_one_does_not():
    train = made_data(count=300).train
    for alpha, low, high in ((1e-6, 1.0, 1.0), (0.1, 0.7, 1.0), (1e4, 0.33, 0.4)):
        settings = FederatedSettings(clients=3, split="dirichlet", dirichlet_alpha=alpha)
        largest = max(max(row) for row in shares(deal(train, settings), train.labels))
        assert low <= largest <= high


def test_splits_depend_on_the_seed():
    train = made_data(count=30).train
    for split in ("iid", "dirichlet"):
        one, same, other = (
            deal(train, FederatedSettings(split=split, seed=seed)) for seed in (0, 0, 1)
        )
        assert one == same != other


def test_an_epoch_uses_each_example_once_with_a_short_last_batch():
    settings = FederatedSettings(batch_size=4)
    batches = [batch_of(10, step, 0, settings) for step in range(3)]
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(place for batch in batches for place in batch) == list(range(10))
    assert batch_of(10, 0, 1, settings) != batches[0]


def test_what_cannot_be_dealt_is_refused():
    with pytest.raises(SettingsError, match="there are 3"):
        deal(made_data(count=3).train, FederatedSettings(clients=4))
    with pytest.raises(SettingsError, match="Use 'iid'"):
        deal(of_table("diabetes").train, FederatedSettings(split="dirichlet"))
    uneven = FederatedSettings(split="dirichlet", dirichlet_alpha=1e-6, clients=8)
    with pytest.raises(SettingsError, match="larger dirichlet_alpha"):
        deal(made_data(count=9).train, uneven)


JOBS = ("clerk", "farmer", "none")


def bank(path, rows=60, sign=";", jobs=JOBS):
    """Rows as in the bank marketing data, words in quotes; old farmers buy."""
    rng = random.Random(0)
    lines = [sign.join(('"age"', '"job"', '"balance"', '"y"'))]
    for row in range(rows):
        age, job = 20 + rng.randrange(50), jobs[row % len(jobs)]
        bought = "yes" if job == "farmer" and age > 40 else "no"
        lines.append(sign.join((str(age), f'"{job}"', str(rng.gauss(0, 900)), f'"{bought}"')))
    path.write_text("\n".join(lines) + "\n")
    return path


def data_of(path, target="y", **more):
    extra = "".join(f",{name}={value}" for name, value in more.items())
    return load(f"table:path={path},target={target}{extra}").data


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_numbers_categories_and_a_target_of_two_words(tmp_path, sign):
    data = data_of(bank(tmp_path / "bank.csv", sign=sign))
    assert data.input_shape == (5,)  # age, three jobs, balance
    assert (len(data.train), len(data.test), data.outputs) == (48, 12, 1)
    both = torch.cat([data.train.inputs, data.test.inputs])
    assert torch.equal(both[:, 1:4].sum(1), torch.ones(60, dtype=torch.float64))
    assert both[:, 0].min() >= 20
    farmers = both[:, 2] == 1
    targets = torch.cat([data.train.targets, data.test.targets])[:, 0]
    assert torch.equal(targets == 1, farmers & (both[:, 0] > 40))
    assert data.coding["columns"] == [["age", None], ["job", list(JOBS)], ["balance", None]]


def test_a_number_is_predicted_in_standard_deviations_and_zeros_and_ones_as_they_are(tmp_path):
    path = bank(tmp_path / "bank.csv")
    data = data_of(path, target="balance")
    targets = torch.cat([data.train.targets, data.test.targets])
    assert targets.std().item() == pytest.approx(1, rel=1e-9)
    assert data.coding["target"]["std"] > 100
    (tmp_path / "bits.csv").write_text("x,y\n" + "\n".join(f"{i},{i % 2}" for i in range(10)))
    assert set(data_of(tmp_path / "bits.csv").train.targets.flatten().tolist()) <= {0.0, 1.0}


def test_a_table_trains_the_same_masked_and_not(tmp_path):
    data = data_of(bank(tmp_path / "bank.csv"))
    settings = FederatedSettings(clients=2, rounds=40, batch_size=8, evaluate_every=40)
    plain = train(settings, data)
    masked = train(FederatedSettings(**{**vars(settings), "scheme": "pbpfl"}), data)
    for one, other in zip(plain.model.parameters(), masked.model.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-9)
    assert plain.curves[-1].squared_error < plain.curves[0].squared_error


def test_a_column_that_says_the_same_of_all_does_no_harm(tmp_path):
    (tmp_path / "t.csv").write_text("x,c,y\n" + "\n".join(f"{i},7,{i * i}" for i in range(10)))
    data = data_of(tmp_path / "t.csv")
    network = fresh_network(FederatedSettings(), data)
    assert torch.isfinite(network(data.test.inputs)).all()


def test_another_party_codes_its_words_as_the_first_does(tmp_path):
    server = data_of(bank(tmp_path / "server.csv"))
    facts = json.loads(json.dumps(facts_of(server)))
    path = bank(tmp_path / "client.csv", jobs=("farmer", "clerk"))
    text = f"table:path={path},target=y"
    client = fitted(load(text, facts["coding"]).data, facts)
    assert client.input_shape == server.input_shape
    assert client.mean == server.mean
    assert client.train.inputs[:, 3].sum() == 0  # nobody there is without a job
    with pytest.raises(DataError, match="does not fit the server's: shape"):
        fitted(load(text).data, facts)
    odd = bank(tmp_path / "odd.csv", jobs=("farmer", "pilot"))
    with pytest.raises(DataError, match="'pilot' in column 'job' is none of clerk, farmer, none"):
        load(f"table:path={odd},target=y", facts["coding"])


def pictures(folder, count=20, size=12):
    """Grey squares and a CSV file that says how bright each is."""
    folder.mkdir()
    lines = ["file,grade"]
    for place in range(count):
        shade = place / count
        write_png(torch.full((3, size, size), shade), folder / f"eye{place}.png")
        lines.append(f"eye{place}{'.png' if place % 2 else ''},{place % 5}")
    (folder / "grades.csv").write_text("\n".join(lines))
    return folder


def test_a_number_for_every_image(tmp_path):
    folder = pictures(tmp_path / "eyes")
    data = data_of(folder / "grades.csv", target="grade", images=folder, size=8)
    assert data.input_shape == (3, 8, 8)
    assert len(data.mean) == 3
    assert data.train.labels is None
    settings = FederatedSettings(network="resnet20", clients=2, rounds=1, batch_size=2, keep=())
    assert train(settings, data).curves[-1].accuracy is None
    (folder / "eye3.png").unlink()
    with pytest.raises(DataError, match=r"no image 'eye3\.png'.*first column"):
        data_of(folder / "grades.csv", target="grade", images=folder)


def test_what_cannot_be_a_table_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "t.csv"

    def refused(text, words, target="y"):
        path.write_text(text)
        with pytest.raises(DataError, match=words):
            data_of(path, target=target)

    five = [1, 2, 3, 4, 5]
    refused("", "not a readable table")
    refused("x,y\n1,2\n", "has 1 rows; 5 or more")
    refused("x,y\n" + "\n".join(f"{i},{i}" for i in five), "no column 'z'.*x, y", target="z")
    refused("x,y\n" + "\n".join(f"{i},3" for i in five), "'y' is 3 everywhere")
    refused("x,y\n" + "\n".join(f"{i},w{i}" for i in five), "5 different words.*folder:root")
    refused("y\n" + "\n".join(map(str, five)), "no column except the target")
    refused("x,y\n1,1\n,2\n3,3\n4,4\n5,5\n", "'x' holds numbers.*row 3.*Fill them in")
    many = "\n".join(f"name{i},{i}" for i in range(101))
    refused(f"x,y\n{many}\n", "101 different words.*Leave the column out")
    with pytest.raises(DataError, match="There is no table"):
        data_of(tmp_path / "nowhere.csv")
    with pytest.raises(SettingsError, match="A table needs target="):
        load(f"table:path={path}")
    grades = pictures(tmp_path / "eyes") / "grades.csv"
    with pytest.raises(DataError, match="no folder"):
        OwnTable(path=str(grades), target="grade", images="nowhere").read()


def test_files_named_by_numbers_keep_their_zeros(tmp_path):
    for number in range(5):
        write_png(torch.rand(3, 8, 8), tmp_path / "pictures" / f"{number:03}.png")
    rows = "\n".join(f"{number:03},{number}" for number in range(5))
    (tmp_path / "graded.csv").write_text(f"file,grade\n{rows}\n")
    data = data_of(tmp_path / "graded.csv", target="grade", images=tmp_path / "pictures", size=8)
    assert len(data.train) + len(data.test) == 5


def test_a_table_is_named_by_its_whole_path_and_may_have_a_comma(tmp_path, monkeypatch):
    (tmp_path / "my, own").mkdir()
    bank(tmp_path / "my, own" / "bank.csv")
    monkeypatch.chdir(tmp_path / "my, own")
    text = own_table_text(Path("bank.csv"), "y")
    monkeypatch.chdir("/")
    assert load(text).data.input_shape == (5,)


def test_a_table_out_of_a_spreadsheet_is_the_same_table(tmp_path):
    plain = data_of(bank(tmp_path / "bank.csv"))
    text = (tmp_path / "bank.csv").read_text()
    (tmp_path / "wide.csv").write_text(f"sep=;\n{text.replace('.', ',')}", encoding="utf-16")
    found = data_of(tmp_path / "wide.csv")
    assert found.coding == plain.coding
    assert torch.equal(found.train.inputs, plain.train.inputs)
