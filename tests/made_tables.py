"""Votes and scores of a small study, as tables."""

import numpy as np
import pandas as pd


def made_tables(n_models=5, n_images=8):
    """Votes of three people and scores: PSNR falls with the share who recognise, as it should."""
    draw = np.random.default_rng(0)
    votes, scores = [], []
    for m in range(n_models):
        for i in range(n_images):
            key = {"dataset": "d", "attack": "a", "model": f"net/{m}", "image_id": f"{i:03}"}
            chance = 1 - m / n_models
            votes += [
                {
                    **{**key, "study": "made", "class_name": "cat", "annotator": f"p{person}"},
                    **{"answer": "cat" if seen else "none", "recognised": seen},
                    **{"votes_per_item": 3, "headline": "mean-response", "simulated": False},
                }
                for person, seen in enumerate(draw.random(3) < chance)
            ]
            scores.append({**key, "metric": "psnr", "value": 20 * chance + draw.random()})
            scores.append({**key, "metric": "mine", "value": chance + draw.random()})
        scores.append({**key, "image_id": None, "metric": "set", "value": float(m)})
    return pd.DataFrame(votes), pd.DataFrame(scores)
