import json
from dataclasses import replace

import pytest
from made_campaign import toy_campaign

from benchmarks import cards
from semsim.campaign import costs
from semsim.campaign.campaign_job import CampaignOrder, whole_campaign
from semsim.campaign.costs import (
    Cost,
    How,
    Table,
    keep_cost,
    keep_found,
    keep_took,
    known,
    order_key,
    paced,
    read_table,
    write_table,
)
from semsim.device import cores

ASKED = toy_campaign()
THERE = Cost(seconds=30.0, alone=4.0, disk=500)
TABLE = Table(loop=0.5, orders={order_key(ASKED): THERE}, machine="another one")


@pytest.fixture
def pace_of(tmp_path, monkeypatch):
    """Let this machine do the fixed work in so many seconds."""

    def measured(seconds):
        monkeypatch.setattr(costs, "loop", lambda: seconds)
        return paced(tmp_path)

    return measured


def test_what_another_machine_measured_is_told_as_it_is_until_this_one_has_a_pace(tmp_path):
    found = known(ASKED, tmp_path, TABLE)
    assert (found.how, found.cost) == (How.ELSEWHERE, THERE)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_is_slower_takes_longer_and_as_much_disk(tmp_path, pace_of):
    assert pace_of(1.5) == 1.5  # three times that of the table
    found = known(ASKED, tmp_path, TABLE)
    assert (found.how, found.cost) == (How.SCALED, Cost(seconds=90.0, alone=12.0, disk=500))


def test_the_pace_is_measured_once(tmp_path, pace_of):
    assert pace_of(0.25) == 0.25
    assert pace_of(9.0) == 0.25
    assert known(ASKED, tmp_path, TABLE).cost.seconds == 15.0


def test_a_pace_is_a_time_and_the_same_work_takes_it_again():
    first, second = costs.loop(), costs.loop()
    assert 0 < first < 60
    assert second / 20 < first < 20 * second


def test_what_was_measured_here_comes_first_and_what_it_took_before_that(tmp_path, pace_of):
    pace_of(1.0)
    here = Cost(seconds=20.0, alone=3.0, disk=700)
    keep_cost(ASKED, tmp_path, here)
    assert known(replace(ASKED, name="other"), tmp_path, TABLE) == costs.Known(
        cost=here, how=How.PROBED
    )
    keep_took(ASKED, tmp_path, 41.0)
    found = known(ASKED, tmp_path, TABLE)
    assert (found.how, found.cost.alone, found.cost.disk) == (How.TOOK, 41.0, 700)


def test_what_it_took_here_has_the_disk_of_the_table(tmp_path):
    keep_took(ASKED, tmp_path, 41.0)
    assert known(ASKED, tmp_path, TABLE).cost == Cost(seconds=0.0, alone=41.0, disk=500)
    assert known(ASKED, tmp_path, replace(TABLE, orders={})).cost.disk == 0


def test_another_order_is_not_known(tmp_path):
    assert known(toy_campaign(images=4), tmp_path, TABLE) is None


def test_asking_begins_no_data_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "loop", lambda: 1.0)
    paced(tmp_path / "none")
    keep_found(tmp_path / "none", "key", {"seconds": 1.0})
    assert not (tmp_path / "none").exists()


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "table.json"
    write_table(TABLE, {order_key(ASKED): "A page: a card"}, path)
    assert read_table(path) == TABLE
    assert "A page: a card" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [{"format": costs.FORMAT - 1}, {"loop": 0}, {"orders": {"x": {}}}, {"orders": None}],
)
def test_a_table_that_is_older_or_damaged_is_none(tmp_path, change):
    path = tmp_path / "table.json"
    assert read_table(path) is None
    write_table(TABLE, {order_key(ASKED): ""}, path)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), encoding="utf-8")
    assert read_table(path) is None


def test_the_table_of_the_product_has_what_the_pages_offer():
    """`python -m benchmarks.cards` writes it; a card that has changed is not known before."""
    table, names = read_table(), {order_key(one.order): one.name for one in cards.cards()}
    assert set(table.orders) <= set(names)  # nothing that no page offers any more
    found = {names[key] for key in table.orders}
    assert {name for name in names.values() if "See it work" in name} <= found
    for cost in table.orders.values():
        assert cost.seconds > 0
        assert cost.alone > 0
        assert cost.disk > 0


def test_a_card_is_measured_as_if_the_machine_had_not_changed_its_pace(monkeypatch):
    paces = iter([1.0, 3.0])  # before and after: 2 on the way
    monkeypatch.setattr(costs, "loop", lambda: next(paces))
    card = cards.Card(name="", order=ASKED, probe=lambda data: keep_cost(ASKED, data, THERE))
    assert cards.measured(card, 1.0) == Cost(seconds=15.0, alone=2.0, disk=500)


@pytest.mark.parametrize(
    ("order", "outcome"),
    [
        ({"scheduler": "tcp://10.0.0.1:8786"}, {}),
        ({"workers": 1 + cores()}, {}),
        ({"judge": "J"}, {}),
        ({}, {"reused": 1}),
        ({}, {"trained": 1}),  # of two
        ({}, {"undone": {"no memory": 1}}),
    ],
)
def test_only_a_campaign_with_all_of_the_machine_and_nothing_before_tells_what_it_takes(
    tmp_path, order, outcome
):
    asked = CampaignOrder(campaign=ASKED, data=tmp_path)
    whole = {"trained": 2, "reused": 0, "undone": {}}
    assert whole_campaign(asked, whole) == ASKED
    assert whole_campaign(replace(asked, **order), whole | outcome) is None
