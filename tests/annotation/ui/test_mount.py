"""The cost of mounted pages while nobody looks at them."""

import asyncio
import contextlib

from helpers import limit

from annotation.ui.mount import IDLE, Drowsy


class Blocks:
    """The part of a Gradio application that knows its queue."""

    def __init__(self):
        import gradio as gr

        with gr.Blocks() as self.blocks:
            gr.Markdown("x")
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()

    def get_blocks(self):
        return self.blocks

    async def __call__(self, scope, receive, send):
        self.entered.set()
        await self.go_on.wait()


def paces(app):
    queue = app.blocks._queue
    return queue.sleep_when_free, queue.progress_update_sleep_when_free


def test_a_queue_looks_for_work_seldom_unless_somebody_asks(monkeypatch):
    monkeypatch.setattr("annotation.ui.mount.PRESENT", 0.0)

    async def visit():
        app = Blocks()
        usual = paces(app)
        drowsy = Drowsy(app)
        assert paces(app) == (IDLE, IDLE) > usual
        first, second = (asyncio.create_task(drowsy({}, None, None)) for _ in range(2))
        await app.entered.wait()
        assert paces(app) == usual
        first.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await first
        await asyncio.sleep(0)
        assert paces(app) == usual  # for who is still there
        app.go_on.set()
        await second
        async with asyncio.timeout(limit(60)):
            while paces(app) != (IDLE, IDLE):
                await asyncio.sleep(0)

    asyncio.run(visit())
