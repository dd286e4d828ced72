from __future__ import annotations

import json

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from nbutils.sweeps.measurements import MIME, read_measurements, record


def outputs_of(*calls):
    InteractiveShell.instance()  # without one there is nothing to publish to
    with capture_output() as captured:
        for arguments, options in calls:
            record(*arguments, **options)
    return [{"output_type": "display_data", "data": o.data, "metadata": {}} for o in captured.outputs]


def notebook(*outputs):
    cell = nbformat.v4.new_code_cell("")
    cell.outputs = [nbformat.from_dict(o) for o in outputs]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("x"), cell])


def test_what_is_recorded_is_read_in_order_and_the_last_value_holds():
    calls = [
        (("accuracy", np.float32(0.5)), {"low": 0.4, "high": np.float64(0.6)}),
        (("communities", np.int64(7)), {}),
        (("verdict", "supported"), {}),
        (("accuracy", 0.75, "share"), {}),
        (("dead", True), {}),
    ]
    found = {row["metric"]: row for row in read_measurements(notebook(*outputs_of(*calls)))}
    assert list(found) == ["accuracy", "communities", "verdict", "dead"]
    assert found["accuracy"] == {
        "metric": "accuracy",
        "value": 0.75,
        "text": "",
        "unit": "share",
        "low": None,
        "high": None,
    }
    assert found["communities"]["value"] == 7
    assert (found["verdict"]["value"], found["verdict"]["text"]) == (None, "supported")
    assert found["dead"]["value"] == 1


def test_numbers_that_json_lacks_travel_as_text():
    [output] = outputs_of((("loss", float("nan")), {"low": float("-inf"), "high": 1.0}))
    json.dumps(output["data"][MIME], allow_nan=False)
    [row] = read_measurements(notebook(output))
    assert (row["value"], row["text"], row["low"], row["high"]) == (None, "nan", None, 1.0)


def test_records_show_nothing_on_the_page():
    [output] = outputs_of((("x", 1), {}))
    assert output["data"]["text/plain"] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", [1, 2]), r"value of 'x' must be a number or a string, received \[1, 2\]"),
        (("x", None), "received None"),
        (("x", np.ones(3)), "received array"),
        (("", 1), "name must be a string that is not empty, received ''"),
        ((3, 1), "name must be a string"),
    ],
)
def test_wrong_values_are_named(arguments, words):
    with pytest.raises(TypeError, match=words):
        record(*arguments)


@pytest.mark.parametrize(("value", "low", "high"), [(1, 2, 0), (1, 2, 3), (4, 2, 3), (1, None, 0.5), ("word", 2, 1)])
def test_a_value_outside_its_interval_is_refused(value, low, high):
    with pytest.raises(ValueError, match="low, value and high of 'x' must rise in this order, received"):
        record("x", value, low=low, high=high)
    with pytest.raises(TypeError, match="low of 'x' must be a number, received 'less'"):
        record("x", 1, low="less")


def test_scraps_are_read_too():
    data = {"application/scrapbook.scrap.json+json": {"name": "acc", "data": 0.9, "encoder": "json", "version": 1}}
    table = {"application/scrapbook.scrap.json+json": {"name": "df", "data": [1, 2], "encoder": "json", "version": 1}}
    outputs = [{"output_type": "display_data", "data": d, "metadata": {}} for d in (data, table)]
    [row] = read_measurements(notebook(*outputs))
    assert (row["metric"], row["value"]) == ("acc", 0.9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1], r"a measurement must have a 'metric', .* received \[1\]"),
        ({"value": 1}, "a measurement must have a 'metric'"),
        ({"metric": 3, "value": 1}, "a measurement must have a 'metric'"),
        ({"metric": "x"}, "value of 'x' must be a number or a string, received None"),
        ({"metric": "x", "value": [1]}, r"value of 'x' must be a number or a string, received \[1\]"),
        ({"metric": "x", "value": 1, "unit": None}, "unit of 'x' must be a string, received None"),
        ({"metric": "x", "value": 1, "low": []}, "value of 'low end of x' must be a number"),
    ],
)
def test_measurements_written_by_hand_are_checked(given, words):
    """A notebook may display them without `record`, and wrongly."""
    with pytest.raises(TypeError, match=words):
        read_measurements(notebook({"output_type": "display_data", "data": {MIME: given}, "metadata": {}}))


def test_words_written_by_hand_as_values_are_texts():
    """As NaN arrives that a notebook displayed as a number."""
    given = {"metric": "x", "value": "nan", "text": "", "unit": ""}
    [row] = read_measurements(notebook({"output_type": "display_data", "data": {MIME: given}, "metadata": {}}))
    assert (row["value"], row["text"], row["low"]) == (None, "nan", None)
