"""The science of SemSim Studio: reconstruct, score, learn, compare.

What is public, and where each name lives. A name is imported when it is first asked for, so that
`import semsim` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semsim import metrics as metrics
    from semsim import torchmetrics as torchmetrics
    from semsim.api.attack import attack as attack
    from semsim.api.compare import compare as compare
    from semsim.api.demo_sets import demo as demo
    from semsim.api.pretrained import SemSim as SemSim
    from semsim.api.pretrained import SemSimLoss as SemSimLoss
    from semsim.api.score import score as score

PUBLIC = {
    "SemSim": "semsim.api.pretrained",
    "SemSimLoss": "semsim.api.pretrained",
    "attack": "semsim.api.attack",
    "compare": "semsim.api.compare",
    "demo": "semsim.api.demo_sets",
    "metrics": "semsim.metrics",
    "score": "semsim.api.score",
    "torchmetrics": "semsim.torchmetrics",
}
__all__ = sorted(PUBLIC)
__version__ = "0.1.0"


if not TYPE_CHECKING:  # else a type checker would take every misspelt name

    def __getattr__(name: str) -> Any:
        from semsim.base.errors import foreign

        if name not in PUBLIC:
            raise AttributeError(f"module 'semsim' has no attribute {name!r}. {foreign()}".strip())
        try:
            module = import_module(PUBLIC[name])
        except ImportError as error:
            error.msg = f"{error.msg} {foreign()}".strip()
            raise
        found = module if PUBLIC[name] == f"semsim.{name}" else getattr(module, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
