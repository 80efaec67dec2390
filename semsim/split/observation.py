"""What the server of split inference sees. The threat model is a type."""

from dataclasses import dataclass

from torch import Tensor, nn

from semsim.split.networks import Examples, SplitNetwork


@dataclass(frozen=True, kw_only=True)
class FeatureObservation:
    """What a curious server sees that may not query the client (Ensembler paper, §2.2).

    There is no field for the private inputs, the client's weights, its noise or its selector, so
    no attack can look at them.

    features: (N, C, …), what the client has sent, one row a query.
    bodies: the server's own networks with their weights.
    network: the architecture and its cuts, which are public.
    public: examples of the same distribution as the private ones.
    """

    features: Tensor
    bodies: tuple[nn.Module, ...]
    network: SplitNetwork
    public: Examples
