"""Start the studio as a Hugging Face Space does: without arguments, behind the Space's own TLS."""

import os
import sys
from pathlib import Path

PASSWORD = "SEMSIM_ADMIN_PASSWORD"
SETTINGS = "Open Settings of this Space"


def missing(home: Path) -> str:
    """Return what has to be set before the studio can start with its data in `home`; or ""."""
    if not os.access(home, os.W_OK):
        return f"{home} cannot be written, so votes would be lost. {SETTINGS} and attach storage."
    if not os.environ.get(PASSWORD) and not (home / "data/studies.db").exists():
        return f"There is no administrator. {SETTINGS} and add the secret {PASSWORD}."
    return ""


def main() -> None:
    """Serve on all addresses; whoever stands in front of the Space is believed."""
    home = Path(os.environ.setdefault("SEMSIM_HOME", "/data"))  # before anything is imported
    if why := missing(home):
        raise SystemExit(why)
    os.environ.setdefault("SEMSIM_FRAMED_BY", "https://huggingface.co")
    os.environ.setdefault("SEMSIM_PUBLIC_HOST", os.environ["SPACE_HOST"])
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # for the jobs that it starts
    port = os.environ.get("PORT", "7860")
    front = ["--trusted-proxy", "0.0.0.0/0", "--trusted-proxy", "::/0"]
    sys.argv[1:] = ["serve", "--host", "0.0.0.0", "--port", port, *front]
    from app import main as studio

    studio()


if __name__ == "__main__":
    main()
