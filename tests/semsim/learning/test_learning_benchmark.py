"""What `python -m benchmarks.learning` says of a training beside its pace."""

from dataclasses import replace

from benchmarks.learning import DAMAGES, SETUPS, judged, study


def test_a_training_is_judged_beside_both_controls(tmp_path):
    settings, _ = SETUPS["LeNet, batch 16"]
    quick = {"epochs": 1, "triplets_per_original": 1, "validation_fraction": 0.0, "device": "cpu"}
    labels = study(tmp_path, 6)
    assert len(labels) == 6 * len(DAMAGES)
    text = judged("LeNet", labels, replace(settings, **quick), tmp_path / "learned")
    rows = [line.split("  ")[0] for line in text.splitlines()]
    assert rows[0].startswith("LeNet: 2 originals held out, 1 epochs")
    controls = [
        "SemSim (semsim, initial weights)",
        "Calibrated baseline (semsim)",
        "5 shuffles of the votes: mean [lowest, highest]",
    ]
    assert rows[2:6] == ["SemSim (semsim)", *controls]
    assert "alone (best of 4 blocks, picked on these images" in rows[6]
    assert rows[7:10] == ["MSE", "PSNR", "SSIM"]
    said = text.splitlines()[-2:]
    assert "its initial weights" in text
    assert "the same training on shuffled votes" in said[1]


def test_damages_are_of_both_kinds_alike_so_that_triplets_are_many():
    kinds = [recognisable for _, recognisable in DAMAGES.values()]
    assert sum(kinds) * 2 == len(kinds)
