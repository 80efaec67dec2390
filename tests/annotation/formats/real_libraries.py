"""What the libraries that an export is for make of it: `python real_libraries.py NAME PATH CACHE`.

It prints JSON. Run by the python of `make formats`, which has these libraries.
"""

import json
import sys
from pathlib import Path


def hugging_face(path, cache):
    from datasets import load_dataset

    rows = load_dataset("imagefolder", data_dir=str(path), split="train", cache_dir=str(cache))
    pictures = ("image", "original")
    read = [{k: v.size if k in pictures else v for k, v in row.items()} for row in rows]
    return {"features": {k: str(v) for k, v in rows.features.items()}, "rows": read}


def card(path, cache):
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(path / "README.md").data
    return data.to_dict()


def label_studio(path, cache):
    config = (path / "config.xml").read_text()
    return {"rows": _annotators(path, config, cache), **_taken(path, config)}


def _annotators(path, config, cache):
    from label_studio_sdk.converter import Converter

    converter = Converter(config, project_dir=None, download_resources=False)
    converter.convert_to_csv(
        str(path / "annotated.json"), str(cache), is_dir=False, sep=",", header=True
    )
    (table,) = cache.glob("*.csv")
    import pandas as pd

    return pd.read_csv(table).to_dict("records")


def _taken(path, config):
    from label_studio_sdk.label_interface import LabelInterface

    interface = LabelInterface(config)
    tasks = json.loads((path / "tasks.json").read_text())
    # `validate_task` of this version fails on any task that has annotations.
    annotations = [task.pop("annotations") for task in tasks]
    return {
        "tasks": [interface.validate_task(task) for task in tasks],
        "annotations": [interface.validate_annotation(one) for each in annotations for one in each],
    }


def crowd_kit(path, cache):
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, MajorityVote

    answers = pd.read_csv(path)
    return {
        "majority": MajorityVote().fit_predict(answers).to_dict(),
        "dawid_skene": DawidSkene(n_iter=20).fit_predict(answers).to_dict(),
    }


if __name__ == "__main__":
    name, path, cache = sys.argv[1:]
    print(json.dumps(globals()[name](Path(path), Path(cache)), default=str))  # noqa: T201
