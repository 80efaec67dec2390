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

An eavesdropper treats PBPFL's messages before, or instead of, matching gradients. A masked network
is an ordinary network: rescaling a hidden channel by r > 0 and what reads it by 1/r changes no
output. `canonicalised` picks the same rescaling for every mask, `stripped` takes the additive noise
out, and after both the eavesdropper stands where the server stands. A biased linear first layer
needs no search at all: `first_layer_input`. A client with data of its own learns the secret γ:
`estimated_gamma`.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import torch
from torch import Tensor, nn

from semsim.base.errors import AttackFailedError, DataError, SettingsError
from semsim.layer_graph import LayerGraph, Node
from semsim.systems.federated import pbpfl
from semsim.systems.federated.data import FederatedExamples
from semsim.systems.federated.networks import QuadraticClassifier, drawn_network, fresh_network
from semsim.systems.federated.pbpfl import FIXED, ClientUpload, Masked, Slots, scales_of, slots_of
from semsim.systems.federated.rounds import FederatedRun, KeptRound, with_weights
from semsim.systems.federated.settings import View
from semsim.systems.federated.transport import as_numbers, summed
from semsim.types import AttackedModel, GradientObservation, Reconstruction

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

    Args:
        round_number: One of the kept rounds; None takes the first.
        guess: Seed of the weights that the "uplink" eavesdropper draws.
        dtype: Of the model and gradients handed to the attack. The label is taken as known. With a
            quadratic loss the model is a `QuadraticClassifier`.

    Raises:
        DataError: Where the run holds no such round or its batch is not one image.
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
    return pbpfl.recover(kept.keys[client], pbpfl.ClientUpload.of(update), masks).gradients


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


def canonicalised(seen: GradientObservation) -> GradientObservation:
    """The same observation of the same function, its hidden rows rescaled to unit norm.

    Every multiplicative mask of one network leads to the same result. Without it the naive
    matching of gradient directions is dominated by the rows that the mask happened to shrink.
    Raises `SettingsError` where the model is not a ReLU `LayerGraph`.
    """
    network = network_of(seen.model)
    scales = canonical_scales(network)
    rescaled = copy.deepcopy(network)
    with torch.no_grad():
        for name, parameter in rescaled.named_parameters():
            parameter.mul_(scales[name])
    names = [name for name, _ in network.named_parameters()]
    gradients = tuple(g / scales[name] for name, g in zip(names, seen.gradients, strict=True))
    return replace(seen, model=_as(seen.model, rescaled), gradients=gradients)


def canonical_scales(network: LayerGraph) -> dict[str, Tensor]:
    """Factors by parameter name after which every hidden row has unit norm.

    A row is what one unit reads, all weights into one channel. Where channels are added to each
    other, their common factor is that of the layer which writes them first. Rows of zeros stay.
    Returns what `scales_of` returns, in shapes that broadcast to the parameters. Raises
    `SettingsError` where a layer is not positively homogeneous.
    """
    slots = slots_of(network)
    r = torch.ones(slots.count, dtype=next(network.parameters()).dtype)
    seen = {FIXED}
    for node in network.nodes:
        if isinstance(node.layer, nn.Linear | nn.Conv2d):
            norms = _row_norms(node, slots, r)
            for slot, norm in zip(slots.of_node[node.name], norms.tolist(), strict=True):
                if slot not in seen and norm > 0:
                    r[slot] = 1 / norm
                seen.add(slot)
    return scales_of(network, slots, r)


def stripped(
    seen: GradientObservation, upload: ClientUpload, a: Tensor, gamma: float | None = None
) -> GradientObservation:
    """The observation without PBPFL's additive noise, as far as `gamma` is right.

    Args:
        seen: An eavesdropper's on both links.
        upload, a: What else passes there, (outputs,).
        gamma: The attacker's γ̂; None guesses it from the received weights by `guessed_gamma`.
            Whatever γ̂ is, g − γ̂σ + γ̂²‖a‖²β is exactly the gradient of the network whose last
            layer lacks γ̂a1ᵀ: a wrong γ̂ leaves some noise in, but never makes network and gradient
            disagree.

    Raises:
        SettingsError: Where the observation's model is no `LayerGraph` with a linear layer last.
    """
    network = copy.deepcopy(network_of(seen.model))
    last = _last(network)
    a = a.to(last.weight)
    gamma = guessed_gamma(network, a) if gamma is None else gamma
    with torch.no_grad():
        last.weight.sub_(gamma * a[:, None])
    v = gamma**2 * a.square().sum().item()
    gradients = []
    for (name, _), g in zip(network.named_parameters(), seen.gradients, strict=True):
        beta = upload.beta[name] if name in upload.beta else torch.zeros_like(g)
        exact = upload.g[name].double() - gamma * upload.sigma[name] + v * beta
        gradients.append(exact.to(g))
    return replace(seen, model=_as(seen.model, network), gradients=tuple(gradients))


def guessed_gamma(network: LayerGraph, a: Tensor) -> float:
    """γ̂ from the received last layer alone, which is R∘W + γ a 1ᵀ.

    The mean over columns of their projection on a, (outputs,): the weights W point anywhere, the
    noise always along a. Raises `SettingsError` where the last layer is not linear.
    """
    weight = _last(network).weight.detach()
    return ((a @ weight).mean() / a.square().sum()).item()


@torch.no_grad()
def estimated_gamma(masked: Masked, examples: FederatedExamples) -> float:
    """A client's γ̂ from its own labelled examples and the masked network it received.

    The least-squares fit of ŷ − ȳ by γ α a: since ŷ = y + γ α a and y is near ȳ in a network that
    has learned something, γ̂ = Σ α ⟨a, ŷ − ȳ⟩ / (‖a‖² Σ α²). The paper's Lemma 3 argues sample by
    sample that γ cannot be known; but all samples share it.
    """
    noisy, features = masked.network.with_features(examples.inputs)
    alpha = features.sum(1)
    gap = noisy - examples.targets.to(noisy)
    below = masked.a.square().sum() * alpha.square().sum()
    if not below > 0:
        raise AttackFailedError("Every unit before the last layer is dead: γ leaves no trace.")
    return ((alpha * (gap @ masked.a)).sum() / below).item()


@torch.no_grad()
def denoised_outputs(masked: Masked, inputs: Tensor, gamma: float) -> Tensor:
    """A client's prediction once it has γ̂: ŷ − γ̂ α a, (N, outputs)."""
    noisy, features = masked.network.with_features(inputs)
    return noisy - gamma * features.sum(1)[:, None] * masked.a


def first_layer_input(network: LayerGraph, gradients: Mapping[str, Tensor]) -> Tensor:
    """The one input of a network that begins with a biased linear layer, from an upload alone.

    A unit's weight gradient is its bias gradient times the input, and PBPFL leaves the input as it
    is (r⁽⁰⁾ = 1), so that no model is needed: x = ∂W_i / ∂b_i.

    Args:
        gradients: Of one input, by name, plain or masked.
        network: Only its shape and normalisation are used, which are public. Returns
            `network.input_shape` in the data's own units.

    Raises:
        SettingsError: Where the first layer is another one.
        AttackFailedError: Where all its units are dead.
    """
    weight, bias = _first_layer(network, gradients)
    unit = int(bias.abs().argmax())
    if not bias[unit].abs() > 0:
        raise AttackFailedError("Every unit of the first layer is dead: its gradient is zero.")
    normalised = (weight[unit] / bias[unit]).reshape(1, *network.input_shape)
    return (normalised * network.std + network.mean)[0]


def first_layer_distance(
    network: LayerGraph, gradients: Mapping[str, Tensor], found: Tensor
) -> float:
    """Return the relative error of `found` in ∂W = ∂b xᵀ: ‖∂W − ∂b xᵀ‖ / ‖∂W‖, 0 if it solves it.

    Arguments as in `first_layer_input`;

    Args:
        found: What that returns, or another guess of its shape. Like it, it asks for no model, so
            that an eavesdropper on the uplink alone can compute it, and it raises `SettingsError`
            where the first layer is not linear.
        found: `network.input_shape`.
    """
    weight, bias = _first_layer(network, gradients)
    x = ((found.to(weight) - network.mean.to(weight)) / network.std.to(weight)).flatten()
    return float((weight - torch.outer(bias, x)).norm() / weight.norm())


def solved_input(network: LayerGraph, gradients: Mapping[str, Tensor]) -> Reconstruction:
    """`first_layer_input` of an image as the result of an attack, (C, H, W) clamped to [0, 1].

    objective: `first_layer_distance` before clamping; residual, grey_residual: after it, and of a
    mid-grey image. Raises as `first_layer_input` does.
    """
    solution = first_layer_input(network, gradients)
    image = solution.float().clamp(0, 1)
    return Reconstruction(
        image=image,
        objective=first_layer_distance(network, gradients, solution),
        residual=first_layer_distance(network, gradients, image),
        grey_residual=first_layer_distance(network, gradients, torch.full_like(image, 0.5)),
    )


def network_of(model: AttackedModel) -> LayerGraph:
    """The layer graph behind an observation's model."""
    network = model.network if isinstance(model, QuadraticClassifier) else model
    if not isinstance(network, LayerGraph):
        raise SettingsError(
            f"Only a LayerGraph's channels are known; got {type(network).__name__}."
        )
    return network


def has_linear_start(network: LayerGraph) -> bool:
    """Return whether `first_layer_input` can be used on gradients of `network`."""
    layer = _first(network).layer
    return isinstance(layer, nn.Linear) and layer.bias is not None


def _first_layer(network: LayerGraph, gradients: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The gradients of the first layer's weight and bias; `SettingsError` if it is not linear."""
    first = _first(network)
    if not has_linear_start(network):
        raise SettingsError(
            "The closed form needs a network that begins with a linear layer with bias; this one "
            f"begins with {type(first.layer).__name__} ({first.name!r})."
        )
    return gradients[f"layers.{first.name}.weight"], gradients[f"layers.{first.name}.bias"]


def _first(network: LayerGraph) -> Node:
    return next(node for node in network.nodes if not isinstance(node.layer, nn.Flatten))


def _row_norms(node: Node, slots: Slots, r: Tensor) -> Tensor:
    """Norms of a layer's rows, (outputs,), after its inputs were rescaled by r."""
    weight = node.layer.weight
    if not isinstance(weight, Tensor):
        raise SettingsError(f"Layer {node.name!r} has no weights.")
    inner = r[list(slots.of_node[node.inputs[0]])].to(weight)
    rows = weight.detach().flatten(2) if weight.dim() > 2 else weight.detach()[..., None]
    return (rows / inner[None, :, None]).flatten(1).norm(dim=1)


def _last(network: LayerGraph) -> nn.Linear:
    layer = network.nodes[-1].layer
    if not isinstance(layer, nn.Linear):
        raise SettingsError(f"The last layer is a linear one; got {type(layer).__name__}.")
    return layer


def _as(model: AttackedModel, network: LayerGraph) -> AttackedModel:
    """`network` in the place of the one in `model`."""
    return QuadraticClassifier(network) if isinstance(model, QuadraticClassifier) else network
