from __future__ import annotations

import subprocess
import sys

import pytest

from nbutils.sweeps.lean import without


def test_hidden_modules_come_back_even_after_an_exception():
    sys.modules.pop("wave", None)
    with pytest.raises(ModuleNotFoundError), without("wave"):
        import wave
    import wave

    with without("wave"):
        import wave as same
    assert same is wave, "what is imported already stays"


def test_others_get_a_whole_jsonschema():
    code = """
import sys
from nbutils.sweeps.lean import nbformat
nbformat.validate(nbformat.v4.new_notebook())
assert not [name for name in sys.modules if name.startswith(("rfc3987_syntax", "jsonschema."))]
import jsonschema
assert "rfc3987_syntax" in sys.modules
jsonschema.validate("no address", {"format": "iri"}, format_checker=jsonschema.FormatChecker())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "'no address' is not a 'iri'" in done.stderr
