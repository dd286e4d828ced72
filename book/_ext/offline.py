"""Keep built pages free of outside requests: drop the scripts that load code from elsewhere."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def drop_remote_scripts(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Remove the live-code (thebe) scripts, which this book does not use, from every page."""
    scripts = context.get("script_files", [])
    context["script_files"] = [
        s for s in scripts if "thebe" not in str(getattr(s, "filename", s) or getattr(s, "attributes", ""))
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx entry point."""
    app.connect("html-page-context", drop_remote_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
