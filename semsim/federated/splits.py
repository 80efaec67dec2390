"""How the training examples are dealt out to clients, and in which order a client walks."""

import math

import torch

from semsim.errors import SettingsError
from semsim.federated.data import Examples
from semsim.federated.settings import FederatedSettings, generator

_TRIES = 100


def deal(examples: Examples, settings: FederatedSettings) -> tuple[tuple[int, ...], ...]:
    """Indices into `examples` for every client; each index goes to exactly one.

    Raises `SettingsError` where a client would get nothing, or "dirichlet" has no classes.
    """
    if len(examples) < settings.clients:
        raise SettingsError(
            f"{settings.clients} clients need as many examples; there are {len(examples)}."
        )
    if settings.split == "iid":
        order = torch.randperm(len(examples), generator=generator("iid", settings.seed))
        return tuple(tuple(part.tolist()) for part in torch.tensor_split(order, settings.clients))
    return _dirichlet(examples, settings)


def batch_of(count: int, step: int, client: int, settings: FederatedSettings) -> list[int]:
    """Positions, among a client's own `count` examples, of its mini-batch number `step`, from 0."""
    per_epoch = math.ceil(count / settings.batch_size)
    epoch, place = divmod(step, per_epoch)
    order = torch.randperm(count, generator=generator("epoch", settings.seed, client, epoch))
    found: list[int] = order.split(settings.batch_size)[place].tolist()
    return found


def _dirichlet(examples: Examples, settings: FederatedSettings) -> tuple[tuple[int, ...], ...]:
    """Each class's examples in shares drawn from Dir(α) (Hsu et al. 2019, arXiv:1909.06335)."""
    if examples.labels is None:
        raise SettingsError("The split 'dirichlet' needs classes; this data has none. Use 'iid'.")
    rng = generator("dirichlet", settings.seed)
    for _ in range(_TRIES):
        parts = _drawn(examples.labels, settings, rng)
        if all(parts):
            return parts
    raise SettingsError(
        f"In {_TRIES} draws with dirichlet_alpha={settings.dirichlet_alpha:g} some client of "
        f"{settings.clients} got nothing. Take a larger dirichlet_alpha or fewer clients."
    )


def _drawn(
    labels: torch.Tensor, settings: FederatedSettings, rng: torch.Generator
) -> tuple[tuple[int, ...], ...]:
    parts: list[list[int]] = [[] for _ in range(settings.clients)]
    alpha = torch.full((settings.clients,), settings.dirichlet_alpha, dtype=torch.float64)
    for label in labels.unique():
        members = (labels == label).nonzero().flatten()
        members = members[torch.randperm(len(members), generator=rng)]
        weights = torch._standard_gamma(alpha, generator=rng)
        ends = (weights.cumsum(0) / weights.sum() * len(members)).round().long()[:-1]
        for part, share in zip(parts, torch.tensor_split(members, ends), strict=True):
            part += share.tolist()
    return tuple(tuple(sorted(part)) for part in parts)
