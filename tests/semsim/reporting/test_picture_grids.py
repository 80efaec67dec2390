"""Figures 1 and 2 of the COPA paper, 5 to 7 of the Ensembler paper."""

import numpy as np
import torch

from semsim.reporting.picture_grids import GridPicture, Row, defence_figure, method_figure


def shown(variant):
    image = torch.full((3, 4, 4), 0.5)
    return [
        GridPicture(variant=variant, method="original", image=image, mse=0.0),
        GridPicture(variant=variant, method="rgap", image=image / 2, mse=0.0625),
        GridPicture(variant=variant, method="copa", image=None, mse=float("nan")),
    ]


def test_pictures_stand_in_rows_with_their_errors():
    figure = method_figure([*shown(1), *shown(4)], 1, "tanh").draw(120.0)
    assert len(figure.axes) == 6
    assert [one.get_title(loc="left") for one in figure.axes[:3]] == ["Original", "R-GAP", "COPA"]
    assert [one.get_ylabel() for one in figure.axes[::3]] == ["Variant 1", "Variant 4"]
    for row in (0, 3):
        original, found, failed = figure.axes[row : row + 3]
        assert original.get_xlabel() == ""
        assert found.get_xlabel() == "0.062"
        assert np.all(found.images[0].get_array() == 64)
        assert [text.get_text() for text in failed.texts] == ["failed"]


def test_defences_stand_in_rows_below_the_originals_and_attacks_in_columns():
    originals = torch.rand(3, 3, 4, 4)
    published, aligned = "the published attack", "the aligned attack"
    both = {published: originals / 2, aligned: originals / 4}
    rows = [
        Row(
            title="NONE",
            images=both,
            ssim={published: 0.436, aligned: 0.9},
            psnr={published: 12.27, aligned: 20.0},
        ),
        Row(
            title="N=1",
            images={published: originals},
            ssim={published: float("nan")},
            psnr={published: 5.0},
        ),
    ]
    drawn = defence_figure(rows, originals, "What comes back", 5)
    assert "Figure 5" in drawn.caption
    figure = drawn.draw(120.0)
    assert len(figure.axes) == 3 * 2
    titles = [one.get_title(loc="left") for one in figure.axes]
    assert titles[:2] == [f"Originals, {published}", f"Originals, {aligned}"]
    assert titles[2] == "NONE, SSIM 0.44, 12.3 dB"
    assert [len(one.images) for one in figure.axes] == [1, 1, 1, 1, 1, 0]
    shown = figure.axes[2].images[0].get_array()
    assert shown.shape == (4, 12, 3)
    assert np.abs(shown[:, 4:8] / 255 - originals[1].permute(1, 2, 0).numpy() / 2).max() < 0.003
