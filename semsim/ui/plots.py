"""The frame of the curves that pages draw while a job goes on."""

import plotly.graph_objects as go

GREY = "#7a7a7a"  # read on white and on black alike


def empty_plot(title: str, x: str, y: str, job_id: str) -> go.Figure:
    """A figure without curves; axes have a title each, and a zoom outlives the next look at a job.

    Both axes begin at 0 unless a range is set.
    """
    axis = {"gridcolor": "rgba(122,122,122,.25)", "zeroline": False, "rangemode": "tozero"}
    return go.Figure(
        layout={
            "title": {"text": title, "font": {"size": 14}},
            "xaxis": {**axis, "title": {"text": x}},
            "yaxis": {**axis, "title": {"text": y}},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": GREY},
            "legend": {"orientation": "h", "y": -0.25},
            "margin": {"l": 50, "r": 10, "t": 40, "b": 40},
            "height": 300,
            "uirevision": job_id,
        }
    )
