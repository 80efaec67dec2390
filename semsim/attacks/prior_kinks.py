"""Whether a model bends sharply anywhere: that decides which optimiser can match its gradient."""

import torch

from semsim.types import AttackedModel

# Names of autograd nodes whose slope jumps; a loss made of slopes then jumps too, and quasi-Newton
# steps, which need a second derivative, go astray.
_KINKED = ("Relu", "Prelu", "Hardtanh", "Hardswish", "Hardsigmoid", "Threshold", "MaxPool", "Abs")


def has_kinks(model: AttackedModel, shape: tuple[int, int, int]) -> bool:
    """Whether the forward pass of `model` uses an activation or pooling that is not smooth.

    Read off the graph that autograd records for a grey image of `shape`, so that activations
    called as functions count like those that are modules.
    """
    image = torch.full((1, *shape), 0.5, device=model.mean.device, requires_grad=True)
    waiting = [model(image).grad_fn]
    known = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if any(word in node.name() for word in _KINKED):
            return True
        waiting.extend(following for following, _ in node.next_functions)
    return False
