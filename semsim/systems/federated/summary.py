"""A federated comparison as tables and sentences for people, and its answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from semsim.base.cli.terminal import text_table
from semsim.base.stats.intervals import half_words
from semsim.base.words import listed, with_spread
from semsim.lab import sets
from semsim.lab.curves import Chart, Curve, svg
from semsim.lab.markup import pieces
from semsim.sets.no_attack_baseline import Count
from semsim.sets.recognition import CLEARER, STATISTIC, recognised_words
from semsim.systems.federated.settings import ARMS, PARTIES, REFERENCE, RESCALED

NEAR = 0.05  # of SSIM: less is not a difference anybody sees
COST_COLUMNS = ("perturb", "forward", "backward", "update")  # PP, LFP, LBP, MU of Table 5
_TRAFFIC = {
    "numbers down": "numbers_down",
    "numbers up": "numbers_up",
    "bytes down, all rounds": "bytes_down",
    "bytes up, all rounds": "bytes_up",
}
_COST_TITLES = ("server masks", "clients forward", "clients backward", "server updates")
# Of a verdict, what it means for the party.
_STANDING = {
    **dict.fromkeys(("identical", "as much"), "sees"),
    "less": "less",
    **dict.fromkeys(("little", "nothing"), "kept"),
    **dict.fromkeys(("unclear", "too weak", "failed", "reference"), "open"),
}
_SAID = {
    "kept": "Masks keep most below that for {} against this attack.",
    "less": "It is less for {}, but most pictures are above the no-attack baseline.",
    "sees": "Masks change nothing of it for {}.",
    "open": "Whether masks change it for {} is not known.",
}
# Colour and dash: schemes that agree lie on each other, so that the upper one is dashed.
_LINES = {
    "FedAvg": ("leaked", False),
    "PBPFL": ("private", True),
    "FedAvg, cross-entropy": ("ink", True),
}
_HTML = pieces("page.html", "semsim.systems.federated")


def parts_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of all three tables: the ends of schemes, their cost, and leaks of arms."""
    training = result["training"]
    ends = [{"scheme": name, **curve[-1]} for name, curve in training["curves"].items()]
    kinds = [(training["costs"], COST_COLUMNS), (training["traffic"], tuple(_TRAFFIC.values()))]
    costs = [
        {"cost": key, **{scheme: found[scheme][key] for scheme in ("FedAvg", "PBPFL")}}
        for found, keys in kinds
        for key in keys
    ]
    return {"training": ends, "cost": costs, "leak": result["leak"].get("scores", [])}


def curve_table(training: Mapping[str, Any]) -> str:
    """Return a table of each scheme's last measures on test data."""
    header = ["scheme", "rounds", "loss", "squared error", "accuracy"]
    return text_table(header, [_end(name, curve) for name, curve in training["curves"].items()])


def training_words(training: Mapping[str, Any]) -> str:
    """Describe the effect of masks on training: none on the model, and what a client learns."""
    gamma, released = training["gamma"], training["released"]
    text = [
        f"FedAvg and PBPFL end {training['largest_difference']:.0e} apart in their most different "
        f"parameter (recovery's condition number: {training['condition']:.0f}).",
        f"The released model predicts the same to {released['predictions']:.0e}; its parameters "
        f"differ by up to {released['parameters']:.2g}.",
        f"A client finds γ = {gamma['estimated']:.4g} from its own data; it is "
        f"{gamma['gamma']:.4g}. Its outputs are off by {gamma['error_before']:.0%} before and "
        f"{gamma['error_after']:.0%} after it takes the noise out.",
    ]
    if "agreement_before" in gamma:
        text.append(
            f"Its predicted class is the true model's in {gamma['agreement_before']:.0%} of test "
            f"images before, and in {gamma['agreement_after']:.0%} after."
        )
    return "\n".join(text)


def cost_table(training: Mapping[str, Any]) -> str:
    """CPU seconds and traffic of PBPFL over FedAvg's."""
    rows, traffic = cost_rows(training["costs"]), training["traffic"]
    for title, key in _TRAFFIC.items():
        plain, masked = traffic["FedAvg"][key], traffic["PBPFL"][key]
        rows.append([title, f"{plain:,}", f"{masked:,}", f"{masked / plain:.2f}"])
    return text_table(["cost", "FedAvg", "PBPFL", "ratio"], rows)


def cost_rows(costs: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """CPU seconds of each scheme, and PBPFL's over FedAvg's, whose masking is packing alone."""
    rows = []
    for title, key in zip(_COST_TITLES, COST_COLUMNS, strict=True):
        plain, masked = costs["FedAvg"][key], costs["PBPFL"][key]
        ratio = f"{masked / plain:.2f}" if plain > 0 else "-"
        rows.append([title, f"{plain:.2f} CPU s", f"{masked:.2f} CPU s", ratio])
    return rows


def leak_table(leak: Mapping[str, Any]) -> str:
    """Every arm's figures, mean ± sd, SSIM's difference with its 95% interval, and verdict."""
    header = ["arm", CLEARER, "SSIM", "PSNR dB", "SSIM from FedAvg's (95%)"]
    header += ["failed", "verdict by statistics"]
    return text_table(header, [leak_row(score) for score in leak["scores"]])


def count_of(score: Mapping[str, Any]) -> Count:
    """Return the count of pictures that show more than a guess, of a score as `asdict` gives it."""
    images = score["images"]
    return Count(score["clearer"], score["by_shapes"], images, images // score["seeds"])


def leak_row(score: Mapping[str, Any]) -> list[str]:
    """One line of `leak_table`; a score as `asdict` gives it."""
    untold = score["arm"] == score["yardstick"] or score["verdict"] == "failed"
    gap = "" if untold else gap_words(score)
    return [
        ARMS[score["arm"]].title,
        count_of(score).short,
        with_spread(score["ssim"], score["ssim_sd"]),
        with_spread(score["psnr"], score["psnr_sd"], ".1f"),
        gap,
        f"{score['failed']} of {score['images']}",
        score["verdict"],
    ]


def gap_words(score: Mapping[str, Any]) -> str:
    """SSIM's difference from the yardstick's with its interval, or why there is none."""
    return f"{score['difference']:+.2f}{half_words(score['margin'], score['no_interval'], 2)}"


def strength(score: Mapping[str, Any]) -> tuple[int, float]:
    """By which attacks are put in order: the pictures they get back, then their mean SSIM.

    Args:
        score: As `asdict` gives it; SSIM may be None or NaN.
    """
    ssim = score["ssim"]
    return score["clearer"], -1.0 if ssim is None or ssim != ssim else ssim


def _end(name: str, curve: Sequence[Mapping[str, Any]]) -> list[str]:
    last = curve[-1]
    accuracy = "-" if last["accuracy"] is None else f"{last['accuracy']:.1%}"
    figures = [f"{last['loss']:.4f}", f"{last['squared_error']:.4f}"]
    return [name, str(last["round"]), *figures, accuracy]


def answer_words(scores: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> tuple[str, str]:
    """Return what can be recognised, then the statistic.

    Args:
        scores: Of each arm, as `asdict` gives it. Each party counts by the arm that shows it most.
        named: As `semsim.metrics.reference_classifier.recognition`. Where the attack does not get
            most pictures back from plain training, nothing is said.
    """
    known = {score["arm"]: score for score in scores}
    plain = max((known[arm] for arm in (REFERENCE, RESCALED) if arm in known), key=strength)
    count = count_of(plain)
    figures = f"{count.words} (SSIM {with_spread(plain['ssim'])})"
    lead = recognised_words(named, [plain["arm"]], " from plain training")
    if not count.comes_back:
        return lead, (
            f"{STATISTIC}the attack failed on plain training too; what came back is {figures}. "
            "Nothing can be said of masks. Take a stronger attack, or another network."
        )
    found: dict[str, list[str]] = {}
    for party, arms in PARTIES.items():
        judged = [known[arm] for arm in arms if arm in known]
        if judged:
            best = max(judged, key=strength)
            told = f"{party[0].lower()}{party[1:]} ({best['clearer']} of {best['images']})"
            found.setdefault(_STANDING[best["verdict"]], []).append(told)
    parts = [f"{STATISTIC}what came back from plain training is {figures}."]
    parts += [words.format(listed(found[key])) for key, words in _SAID.items() if key in found]
    return lead, " ".join(parts)


def leak_words(leak: Mapping[str, Any]) -> Sequence[str]:
    """Return the verdict's sentences; none before there is one."""
    if "scores" in leak:
        return answer_words(leak["scores"], leak["recognition"])
    return [*leak.get("summary", ())][:1]


def result_html(summary: Sequence[str], steps: Sequence[sets.RunSet]) -> str:
    """Return a study of what came back, and the summary by party."""
    return sets.made_html(_HTML.summary(summary), [one.folder for one in steps])


def figures_of(score: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the figures beside the pictures of a party."""
    if score is None:
        return ()
    gap = "\N{NO-BREAK SPACE}"
    return (
        f"SSIM{gap}{with_spread(score['ssim'])}",
        f"{with_spread(score['psnr'], None, '.1f')}{gap}dB",
        f"statistic: {score['verdict']}",
    )


def training_html(training: Mapping[str, Any]) -> str:
    """The course, what masking changes in words, and what it costs as a table."""
    rows, traffic = cost_rows(training["costs"]), training["traffic"]
    for title, key in (("megabytes down", "bytes_down"), ("megabytes up", "bytes_up")):
        plain, masked = traffic["FedAvg"][key], traffic["PBPFL"][key]
        rows.append([title, f"{plain / 1e6:.2f}", f"{masked / 1e6:.2f}", f"{masked / plain:.2f}"])
    head = ("Cost", "FedAvg", "PBPFL", "Ratio")
    words = training_words(training).splitlines()
    return str(_HTML.training(svg(course(training)), words, head, rows))


def course(training: Mapping[str, Any]) -> Chart:
    """Accuracy against rounds, or squared error where there are no classes."""
    curves = training["curves"]
    classes = all(point["accuracy"] is not None for curve in curves.values() for point in curve)
    key, title = ("accuracy", "Accuracy on test images") if classes else ("squared_error", "MSE")
    lines = tuple(
        Curve(
            name=name,
            x=[point["round"] for point in curve],
            y=[point[key] for point in curve],
            colour=_LINES[name][0],
            dashed=_LINES[name][1],
            marked=False,
        )
        for name, curve in curves.items()
    )
    return Chart(title=title, x="round", y=title, curves=lines)
