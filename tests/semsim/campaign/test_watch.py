import pytest
from made_campaign import toy_campaign

from semsim.campaign.watch import RunFolder, campaigns, read_campaign
from semsim.errors import JobError, SettingsError


def test_a_name_belongs_to_one_campaign(tmp_path):
    folder = RunFolder(tmp_path, "toy")
    folder.claim(toy_campaign())
    folder.claim(toy_campaign())  # the same again: a resume
    with pytest.raises(SettingsError, match="Choose another name"):
        folder.claim(toy_campaign(images=9))
    assert campaigns(tmp_path) == ["toy"]
    assert read_campaign(tmp_path, "toy") == toy_campaign()
    with pytest.raises(JobError, match="Campaigns: toy"):
        read_campaign(tmp_path, "other")


def test_shares_are_there_only_while_something_runs(tmp_path):
    folder = RunFolder(tmp_path, "toy")
    folder.claim(toy_campaign())
    assert folder.shares() == {}
    folder.tell({"a": 0.5})
    assert RunFolder(tmp_path, "toy").shares() == {"a": 0.5}
    folder.quiet()
    assert folder.shares() == {}
