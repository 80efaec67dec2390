"""Meaning of c(M) for one network, in words, and the effect of small changes on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from semsim.attacks.linear.rank import Convolution, Shape
from semsim.base.errors import SettingsError
from semsim.base.words import agreeing, counted
from semsim.lab.markup import pieces
from semsim.sets.recognition import STATISTIC
from semsim.systems.audit.security_index import Layer, LayerSecurity, SecurityIndex, security_index

_HTML = pieces("page.html", "semsim.systems.audit")


@dataclass(frozen=True, kw_only=True)
class TryOut:
    """One change of one convolution.

    Attributes:
        place: Its number, from 1.
        value: C(M) with the change.
        hidden: How many values of the image itself the first convolution then hides from the
            attacker.
    """

    place: int
    change: str
    layers: tuple[Layer, ...]
    value: float
    hidden: int


def try_outs(layers: Sequence[Layer], input_shape: Shape) -> list[TryOut]:
    """Another stride, or half or twice the channels, in each convolution, the best hidden first.

    The fully connected layers are made to fit. Changes that leave no map are left out.
    """
    found = []
    places = [(i, layer) for i, layer in enumerate(layers) if isinstance(layer, Convolution)]
    for number, (place, convolution) in enumerate(places, start=1):
        for words, changed in _changes(convolution):
            tried = (*layers[:place], changed, *layers[place + 1 :])
            try:
                index = security_index(tried, input_shape)
            except SettingsError:  # a later layer would have no input left
                continue
            hidden = index.layers[0].hidden
            found.append(
                TryOut(place=number, change=words, layers=tried, value=index.value, hidden=hidden)
            )
    return sorted(found, key=lambda one: (one.value, one.place))


def advice(index: SecurityIndex, notes: Sequence[str] = ()) -> list[str]:
    """Return paragraphs that explain c(M) of a network, one a thought (COPA, §2).

    Args:
        notes: What stands in the way of the recursion beside c(M), as `read_network` finds it.
    """
    if not index.layers:
        return [
            "There is no convolution: the gradient of a fully connected layer determines its input "
            "exactly (Lemma A.1).",
            *notes,
        ]
    wider = [_WIDER] if index.value < 0 and index.layers[0].hidden == 0 else []
    return [*_verdict(index, bool(notes)), *_of_layers(index), *wider, _LIMIT, *notes]


_LIMIT = (
    "c(M) counts the values that linear equations hide from the attacker, layer by layer. It is no "
    "proof of privacy: an attack with an image prior, such as copa-prior, guesses much of the "
    "hidden part."
)


_WIDER = (
    "Beware of a c(M) that is low only because a later layer gets many values: those depend on "
    "each other (the paper's pull-back constraint), which c(M) does not count."
)


def _verdict(index: SecurityIndex, hindered: bool) -> Iterator[str]:
    if index.value == 0 and not index.exact:
        yield "c(M) is 0 at most: the closed form finds nothing hidden, but is a bound; see below."
        return
    if index.value == 0:
        end = (
            "Whether layer-wise inversion gets the image back depends on the layers between them; "
            "see the notes below."
            if hindered
            else "Layer-wise inversion gets the image back exactly, up to rounding."
        )
        known = "c(M) is 0: at every layer the weights and the gradient determine the input."
        yield f"{known} {end}"
        return
    most = "" if index.exact else " at most"
    worst = min(index.layers, key=lambda layer: layer.contribution)
    yield (
        f"c(M) is {signed(index.value)}{most}: the image cannot be solved for layer by layer. Most "
        f"is hidden by convolution {worst.place}, where {worst.hidden:,} of {worst.unknowns:,} "
        f"values ({worst.hidden / worst.unknowns:.0%}) stay hidden from the attacker."
    )


def _of_layers(index: SecurityIndex) -> Iterator[str]:
    first = index.layers[0]
    if first.hidden == 0:
        yield (
            f"Convolution 1 hides nothing: it makes {_size(first.outputs):,} values of "
            f"{first.unknowns:,}, and the gradient of its weights adds to them. Wide layers at the "
            "beginning hide least. A larger stride or fewer channels in convolution 1 would hide "
            "part of the image itself."
        )
    elif index.value < 0:
        yield (
            "Convolution 1 loses part of the image itself, which no later layer can make up for: "
            "the place the paper recommends."
        )
    later = [str(layer.place) for layer in index.layers[1:] if layer.hidden == 0]
    if later and index.value < 0:
        word = agreeing(len(later), "Convolution", "Convolutions")
        verb = agreeing(len(later), "hides", "hide")
        yield f"{word} {', '.join(later)} {verb} nothing."
    for layer in index.layers:
        if layer.unseen:
            yield (
                f"Convolution {layer.place} never looks at {layer.unseen:,} of its "
                f"{layer.unknowns:,} input values: its stride leaves gaps or a rest at the border."
            )
    if rough := [str(layer.place) for layer in index.layers if not layer.exact and layer.rank]:
        yield (
            f"The closed form is an upper bound of the rank for convolution {', '.join(rough)} "
            f"({_because(index)}), so more may be hidden than it says. The "
            "command `audit --verify` computes the rank itself."
        )


def _because(index: SecurityIndex) -> str:
    """Return the reasons that the rank of some convolution is a bound only."""
    rough = [layer for layer in index.layers if not layer.exact and layer.rank]
    return " or ".join(sorted({layer.bound_by for layer in rough}))


def stated(index: SecurityIndex) -> str:
    """c(M) in a line, with ≤ where the closed form is a bound only."""
    return f"c(M) {'=' if index.exact else '≤'} {signed(index.value)}"


def signed(value: float) -> str:
    """c(M): thousands separated, a decimal where it has one, a proper minus."""
    whole = abs(value - round(value)) < 0.05
    # Adding 0.0 turns a rounded −0.0 into 0.
    return (f"{round(value) + 0.0:,.0f}" if whole else f"{value:,.1f}").replace("-", "−")


def _size(shape: Shape) -> int:
    channels, height, width = shape
    return channels * height * width


def _changes(convolution: Convolution) -> Iterator[tuple[str, Convolution]]:
    down, right = convolution.stride
    other = (2, 2) if (down, right) == (1, 1) else (1, 1)
    yield f"stride {other[0]}", replace(convolution, stride=other)
    half = convolution.channels // 2
    if half and half % convolution.groups == 0:
        yield counted(half, "channel"), replace(convolution, channels=half)
    yield (
        counted(2 * convolution.channels, "channel"),
        replace(convolution, channels=2 * convolution.channels),
    )


def described(layer: LayerSecurity) -> str:
    """A convolution in a few words, as 3×3, 6 channels, stride 2."""
    one = layer.convolution
    words = [f"{one.kernel[0]}×{one.kernel[1]}", counted(one.channels, "channel")]
    extras = {"stride": (one.stride, (1, 1)), "padding": (one.padding, (0, 0))}
    extras["dilation"] = (one.dilation, (1, 1))
    for name, (pair, usual) in extras.items():
        if pair != usual:
            words.append(
                f"{name} {pair[0]}" if pair[0] == pair[1] else f"{name} {pair[0]}×{pair[1]}"
            )
    if one.groups != 1:
        words.append(f"{one.groups} groups")
    return ", ".join(words)


def verdict_html(index: SecurityIndex, words: Sequence[str]) -> str:
    """Return c(M) in a sentence, as the statistic that it is, then what it means, as HTML."""
    return _HTML.verdict(stated(index), [f"{STATISTIC}{words[0]}", *words[1:]])


def layers_html(index: SecurityIndex) -> str:
    """c(M) layer by layer."""
    header = ["Convolution", "n", "equations", "rank U", "hidden", "part of c(M)"]
    rows = [
        [
            f"{layer.place}: {described(layer)}",
            *(f"{count:,}" for count in (layer.unknowns, layer.equations)),
            f"{layer.rank:,}" if layer.exact else f"≤ {layer.rank:,}",
            f"{layer.hidden:,}",
            signed(layer.contribution),
        ]
        for layer in index.layers
    ]
    return _HTML.layers(header, rows, index.features)


def tried_html(index: SecurityIndex, tried: Sequence[TryOut]) -> str:
    """Return what small changes would make of c(M), as HTML."""
    if not tried:
        return ""
    rows = [
        [f"convolution {one.place}: {one.change}", signed(one.value), f"{one.hidden:,}"]
        for one in tried
    ]
    header = ["Change in", f"c(M), now {signed(index.value)}", "hidden of the image itself"]
    return str(_HTML.table("What if a layer were changed?", "Changes", header, rows))
