"""Views of each party of a federated training, as an observation for gradient inversion.

server: the true network and the client's true gradient; with zero-sum masks only the sum of all
    clients' gradients.
uplink: an eavesdropper on the client's upload who has never seen a model. The network's shape is
    public, so that he tries freshly drawn weights.
up_and_downlink: an eavesdropper on both links: the network as the client got it, and the client's
    own gradient of it.
client: another participant who also listens to the upload: the network as that participant got
    it. With noise_scope "round", and with FedAvg, it is the victim's network.

PBPFL's σ and β are in the messages (`sent`), but no view here uses them: they are gradients of
other scalars of the same network, and the ordinary gradient g alone is enough.
"""

import copy
from typing import get_args

import torch
from torch import Tensor

from semsim.base.errors import DataError, SettingsError
from semsim.layer_graph import LayerGraph
from semsim.systems.federated import pbpfl
from semsim.systems.federated.networks import QuadraticClassifier, drawn_network, fresh_network
from semsim.systems.federated.rounds import FederatedRun, KeptRound, with_weights
from semsim.systems.federated.settings import View
from semsim.systems.federated.zero_sum import as_numbers, summed
from semsim.types import AttackedModel, GradientObservation

VIEWS: tuple[View, ...] = get_args(View)


def observe(
    run: FederatedRun,
    view: View,
    *,
    client: int = 0,
    round_number: int | None = None,
    guess: int = 0,
    dtype: torch.dtype = torch.float32,
) -> GradientObservation:
    """Return the observation in `view` of the one image that `client` trained on in a round.

    round_number: one of the kept rounds; None takes the first. guess: seed of the weights that
    the "uplink" eavesdropper draws. dtype: of the model and gradients handed to the attack.
    The label is taken as known. With a quadratic loss the model is a `QuadraticClassifier`.
    Raises `DataError` where the run holds no such round or its batch is not one image.
    """
    kept = kept_round(run, round_number)
    label, shape = _victim(run, kept, client)
    network, gradients = _seen(run, kept, view, client, guess)
    network = copy.deepcopy(network).to(dtype).eval()
    model: AttackedModel = network if run.settings.loss != "mse" else QuadraticClassifier(network)
    return GradientObservation(
        model=model,
        gradients=tuple(gradients[name].to(dtype) for name, _ in network.named_parameters()),
        shape=shape,
        label=label,
    )


def kept_round(run: FederatedRun, round_number: int | None = None) -> KeptRound:
    """The kept round of that number, or the first; `DataError` where it was not kept."""
    for kept in run.kept:
        if round_number in (None, kept.number):
            return kept
    have = ", ".join(str(kept.number) for kept in run.kept) or "none"
    raise DataError(
        f"Round {round_number or 'any'} was not kept; kept: {have}. Name it in the setting 'keep'."
    )


def sent(run: FederatedRun, client: int, round_number: int) -> dict[str, Tensor]:
    """A client's update by name: "g/…", and with PBPFL "sigma/…" and "beta/…".

    Each has the shape of its parameter. Under zero-sum masks the numbers are what the masks make
    of them. Raises `DataError` where the round was not kept.
    """
    update = _message(run, "update", client, round_number)
    if run.settings.hides_updates:
        return as_numbers(update, run.settings.masks.zero_sum_digits, run.settings.torch_dtype)
    return update


def received(run: FederatedRun, client: int, round_number: int) -> LayerGraph:
    """The network that a client got, in the precision of the training."""
    weights = pbpfl.under("model", _message(run, "model", client, round_number))
    return with_weights(fresh_network(run.settings, run.data), weights)


def received_noise(run: FederatedRun, client: int, round_number: int) -> Tensor:
    """PBPFL's vector a that a client got, (outputs,).

    Raises `DataError` where the round was not kept, or the run has none.
    """
    tensors = _message(run, "model", client, round_number)
    if "a" not in tensors:
        raise DataError("Only PBPFL sends a noise vector; this run is FedAvg.")
    return tensors["a"]


def recovered(run: FederatedRun, client: int, round_number: int) -> dict[str, Tensor]:
    """The gradient of one client as the server knows it, by parameter name.

    Each has the shape of its parameter. With zero-sum masks it is the weighted mean over all
    clients, the only thing the server gets. Raises `DataError` where the round was not kept.
    """
    kept = kept_round(run, round_number)
    if run.settings.scheme == "fedavg":
        return pbpfl.under("g", sent(run, client, round_number))
    masks, clients = run.settings.masks, range(run.settings.clients)
    if run.settings.hides_updates:
        hidden = [_message(run, "update", one, round_number) for one in clients]
        update = summed(hidden, masks.zero_sum_digits, run.settings.torch_dtype)
    else:
        update = sent(run, client, round_number)
    return pbpfl.recover(kept.keys[client], pbpfl.Upload.of(update), masks).gradients


def _seen(
    run: FederatedRun, kept: KeptRound, view: View, client: int, guess: int
) -> tuple[LayerGraph, dict[str, Tensor]]:
    if view == "server":
        return kept.server, recovered(run, client, kept.number)
    uploaded = pbpfl.under("g", sent(run, client, kept.number))
    if view == "up_and_downlink":
        return received(run, client, kept.number), uploaded
    if view == "client":
        return received(run, _another(run, client), kept.number), uploaded
    if view == "uplink":
        settings = run.settings
        name, seed = settings.network, 1_000_003 * (guess + 1) + settings.seed
        return drawn_network(name, run.data, settings.torch_dtype, seed), uploaded
    raise SettingsError(f"view is one of {', '.join(VIEWS)}; got {view!r}.")


def _another(run: FederatedRun, client: int) -> int:
    if run.settings.clients < 2:
        raise SettingsError("The view 'client' needs 2 clients or more; this run has 1.")
    return (client + 1) % run.settings.clients


def _victim(run: FederatedRun, kept: KeptRound, client: int) -> tuple[int, tuple[int, int, int]]:
    if not 0 <= client < run.settings.clients:
        raise SettingsError(f"Clients are 0 to {run.settings.clients - 1}; got {client}.")
    labels, shape = run.data.train.labels, run.data.input_shape
    if labels is None or len(shape) != 3:
        raise DataError("Only images can be reconstructed; this run trained on a table.")
    members = kept.members[client]
    if len(members) != 1 or run.settings.local_steps != 1:
        raise DataError(
            f"A view shows one image; client {client} trained on {len(members)} in "
            f"{run.settings.local_steps} local steps. Take batch_size=1 and local_steps=1."
        )
    return int(labels[members[0]]), (shape[0], shape[1], shape[2])


def _message(run: FederatedRun, kind: str, client: int, round_number: int) -> dict[str, Tensor]:
    for message in run.messages:
        if (message.kind, message.client, message.round) == (kind, client, round_number):
            return message.tensors()
    raise DataError(
        f"No {kind} message of client {client} in round {round_number} was kept. Name the round in "
        "the setting 'keep'."
    )
