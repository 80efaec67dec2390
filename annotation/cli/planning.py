"""`semsim-studio study plan`: what a study will take."""

from typing import Annotated, Any

import pandas as pd
import typer

from annotation.cli.console import Json, show
from annotation.design.workload import FIGURES, Crowd, enough, plan
from annotation.texts import counted
from semsim.base.cli.console import text_table
from semsim.base.cli.options import settings_of, taking
from semsim.base.cli.terminal import rows_of
from semsim.base.stats.standstill import USUAL, evidence

app = typer.Typer(
    name="plan",
    help="People, days and money of a study, by a simulated crowd.",
    no_args_is_help=True,
    add_completion=False,
)
Runs = Annotated[int, typer.Option("--runs", help="Simulated studies of each kind.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of arrivals and answers.")]


@app.callback()
def main() -> None:
    """Estimate the people, days and money that a study will take, by a simulated crowd."""


@app.command()
@taking(assumed=settings_of(Crowd, called={"votes": "votes-per-item"}))
def crowd(assumed: Crowd, runs: Runs = 10, seed: Seed = 0, as_json: Json = False) -> None:
    """Simulate the people of a large study: their number, time and cost.

    Everybody who worked is paid, also who is excluded. People who fail too many catch trials are
    paused, as the product does, and then excluded: others give those votes again.
    """
    table = plan(assumed, runs, seed)
    of = counted(assumed.items, "picture")
    head = (
        f"A simulated crowd, nobody real: {counted(runs, 'study', 'studies')} each of {of} × "
        f"{counted(assumed.votes, 'vote')}. In brackets what holds 90% of them."
    )
    early = f"An early end: {evidence(USUAL)}"
    text = "\n".join([head, _lines(table), _needed(table, assumed.most_wrong), early])
    show({"figures": rows_of(table)}, text, as_json)


def _lines(table: pd.DataFrame) -> str:
    """The table in words: a line a figure, a column a rate of catch trials."""
    cells = {(row.figure, row.catch_rate): row for row in table.itertuples()}
    rates = sorted(table["catch_rate"].unique())
    header = ["catch trials per vote", *(f"{rate:g}" if rate else "none" for rate in rates)]
    lines = [
        [title, *(_cell(cells[name, rate], form) for rate in rates)]
        for name, (title, form) in FIGURES.items()
    ]
    return text_table(header, lines)


def _cell(row: Any, form: str) -> str:
    if pd.isna(row.mean):
        return "nobody there"
    return f"{row.mean:{form}} ({row.low:{form}} to {row.high:{form}})"


def _needed(table: pd.DataFrame, most_wrong: float) -> str:
    """Return a sentence on the quality control that the study needs, and on what it costs."""
    goal, rate = f"At most {most_wrong:.2%} wrong labels", enough(table, most_wrong)
    if rate is None:
        return f"{goal}: none of these is enough. Ask for more votes, or for people who see more."
    money = table[table["figure"] == "money"].set_index("catch_rate")["mean"]
    if not rate:
        return f"{goal}: without catch trials as well."
    more = money[rate] - money[0.0]
    return f"{goal}: with {rate:g} catch trials per vote, which cost {more:,.0f} more than none."
