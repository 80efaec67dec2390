"""Figures 1 and 2 of the COPA paper."""

import numpy as np
import torch

from semsim.reporting.picture_grids import Shown, method_figure


def shown(variant):
    image = torch.full((3, 4, 4), 0.5)
    return [
        Shown(variant=variant, method="original", image=image, mse=0.0),
        Shown(variant=variant, method="rgap", image=image / 2, mse=0.0625),
        Shown(variant=variant, method="copa", image=None, mse=float("nan")),
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
