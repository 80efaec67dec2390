"""Names of target models in words that a stranger reads, where their parts are known."""

from functools import cache

from markupsafe import Markup

from semsim.base.storage.places import toml_of

_SUFFIX = " · "  # in front of the data set or the attack of models that are called alike
_UNTIL = "until="  # in front of the accuracy at which training ended


@cache
def _words() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the short words of networks, strategies and attacks by name."""
    lists = toml_of("semsim.base", "choices.toml")
    networks, strategies, attacks = (
        {
            name: words[2] if len(words) > 2 else words[0]
            for name, words in {**lists[part], **lists[part]["more"]}.items()
            if name != "more"
        }
        for part in ("architectures", "strategies", "attacks")
    )
    return networks, strategies, attacks


@cache
def plain_name(model: str) -> str:
    """Return a name in words, "small smooth net, noise on gradients, our attack".

    Args:
        model: NETWORK/STRATEGY/ATTACK, between the last two maybe until=ACCURACY, as campaigns call
            their sets; another one stays as it is.
    """
    networks, strategies, attacks = _words()
    name, *suffixes = model.split(_SUFFIX)
    *parts, attack = name.split("/")
    until = parts.pop() if parts and parts[-1].startswith(_UNTIL) else ""
    if len(parts) < 2 or parts[-1] not in strategies or attack not in attacks:
        return model
    told = [networks.get(parts[-2], parts[-2]), strategies[parts[-1]]]
    told += [f"trained until accuracy {until.removeprefix(_UNTIL)}"] if until else []
    return ", ".join([*told, attacks[attack], *(one for one in suffixes if one != attack)])


def name_html(text: str) -> Markup:
    """Return a name of a model or a set as HTML: in words with its own below, or its own alone.

    It may break behind its slashes.
    """
    own, plain = Markup("/<wbr>").join(text.split("/")), plain_name(text)
    if plain == text:
        return own
    return Markup('{}<small class="st-own-name">{}</small>').format(plain, own)
