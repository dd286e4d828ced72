"""Inside a notebook: check its parameters, get its runs with progress, say where the numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from nbutils.data.datasets import DATASETS, title_of
from nbutils.drawing.display import Html, callout, fold, format_number, say, show, show_table
from nbutils.pages.figures import CONDITION_NAMES
from nbutils.study.archive import archive_folder, read_archive
from nbutils.study.comparisons import BASELINES
from nbutils.study.hypotheses import Evidence, collect_evidence, headline, is_prespecified, verdict
from nbutils.study.results import Results
from nbutils.support.arguments import checked
from nbutils.support.provenance import UNKNOWN, provenance
from nbutils.sweeps.measurements import record
from nbutils.sweeps.parameters import check_parameters, injected_names, model_of_cells, template_file, template_model

__all__ = ["Page", "open_page"]

TRAINING = ("seeds", "seed", "epochs", "density", "device", "jobs")  # parameters of runs that are made, not read
# Hypothesis -> what it is about, and its page.
CLAIMS = {
    "H1": ("communities", "h1_communities"),
    "H2": ("modularity", "h2_modularity"),
    "H3": ("entropy", "h3_entropy"),
}


@dataclass(frozen=True)
class Page:
    """A notebook with checked parameters.

    Attributes:
        template: name of the notebook.
        parameters: its parameters, checked.
    """

    template: str
    parameters: Any

    @cached_property
    def all_results(self) -> list[Results]:
        """Results of every data set of the study, the page's own first.

        Read from committed tables where the page asks for them and they are there; else missing runs are computed, with
        progress.
        """
        studies = self.parameters.studies()
        return [
            read_archive(archive_folder(name), name) if study is None else self._compute(name, study)
            for name, study in studies.items()
        ]

    @property
    def results(self) -> Results:
        """Results of the page's own data set.

        Raises:
            ValueError: the page's parameters name no study.
        """
        if not self.all_results:
            raise ValueError(f"{self.template} has no study: its parameters lack source; nb.show shows figures without")
        return self.all_results[0]

    @cached_property
    def evidence(self) -> list[Evidence]:
        """All tests of the study, p values adjusted over all its data sets."""
        return collect_evidence(self.all_results)

    def tests(self, hypothesis: str, prespecified: bool = True) -> list[Evidence]:
        """Tests of one hypothesis on the page's own data set: those that decide, or the exploratory ones."""
        own = [e for e in self.evidence if e.dataset == self.parameters.dataset and e.hypothesis == hypothesis]
        return [e for e in own if is_prespecified(e) == prespecified]

    def test(self, name: str) -> Evidence:
        """A pre-specified test of the page's own data set by name, such as "H2a".

        Where it cannot be made, since too few networks finished, its numbers are NaN.
        """
        own = self.tests(name[:2])
        unknown = (float("nan"),) * 3
        empty = Evidence(self.parameters.dataset, "true", name[:2], name, "", *unknown, enough=False)
        empty = replace(empty, saturated=next((e.saturated for e in own), ""))
        return next((e for e in own if e.test == name), empty)

    def show_verdict(self, hypothesis: str, text: str) -> Html:
        """The verdict box, computed from the pre-specified tests; the verdict and its tests are recorded for sweeps."""
        tests = self.tests(hypothesis)
        for test in tests:
            record(test.test, test.estimate, low=test.low, high=test.high)
        record(f"{hypothesis} verdict", verdict(tests) if tests else "inconclusive")
        if not tests:
            return callout(f"{hypothesis}: inconclusive", "No run of this data set finished.", "inconclusive")
        word, why, _ = headline(tests, self.parameters.dataset, hypothesis)
        return callout(f"{hypothesis} on {title_of(self.parameters.dataset)}: {word}{why}", text, word)

    def show_verdicts(self) -> Html:
        """Verdict of every hypothesis on every data set, with its main effect; recorded for sweeps."""
        rows = []
        for name in self._datasets():
            cells = [title_of(name)]
            for hypothesis, (_, page) in CLAIMS.items():
                word, misses, main = headline(self.evidence, name, hypothesis)
                record(f"{hypothesis} verdict on {name}", word)
                effect = f", {main.test} {main.effect}" if main else ""
                linked = f"[{word}](../{name}/{page}.html)" if name in DATASETS else word  # others have no pages
                cells.append(f"{linked}{misses}{effect}")
            rows.append(cells)
        columns = ["data set", *(f"{h}: {claim}" for h, (claim, _) in CLAIMS.items())]
        caption = "Verdicts from the pre-specified tests: which they miss, and the main effect with its 95 % interval."
        return show_table(pd.DataFrame(rows, columns=columns), caption, names=("data set",))

    def show_tests(self, hypothesis: str) -> Html:
        """The tests of a hypothesis on this data set that decide, as a table, above the exploratory ones, folded."""
        decide, explore = (_test_rows(self.tests(hypothesis, prespecified)) for prespecified in (True, False))
        others = len(self._datasets()) - 1
        family = f"with those on {others} other data set{'s' if others > 1 else ''}" if others else "together"
        caption = f"Tests of {hypothesis} that decide; p values adjusted (Holm) {family}."
        shown = show_table(decide.drop(columns="labels"), caption)
        if explore.empty:
            return shown
        rest = show_table(explore.drop(columns="effect"), "Not pre-specified; no verdict depends on them.")
        folded = fold(f"{len(explore)} tests on other labels", rest)
        return Html(shown.text + folded.text, f"{shown!r}\n{folded!r}")

    def source(self) -> str:
        """Where a page's numbers come from, for captions."""
        shown = [self.results] if hasattr(self.parameters, "dataset") else self.all_results
        kept, live = ([r for r in shown if (r.computed is None) == committed] for committed in (True, False))
        computed = sum(r.computed for r in live)
        how = f"{computed} computed now, the rest read from the store" if computed else "read from the store"
        words = ((kept, "in the committed tables"), (live, how))
        parts = [f"{sum(len(r.runs) for r in group)} runs {where}" for group, where in words if group]
        commits = sorted({commit for r in shown for commit in r.commits})
        return f"Source: {', and '.join(parts)}; trained at commit {', '.join(commits)}."

    @staticmethod
    def title(dataset: str) -> str:
        """What pages call a data set."""
        return title_of(dataset)

    @staticmethod
    def named(table: pd.DataFrame) -> pd.DataFrame:
        """A table as pages say it: titles of data sets, in their column and in headings, and names of measures."""
        said = {"dataset": title_of, "data set": title_of, "measure": lambda name: BASELINES.get(name, name)}
        cells = {column: table[column].map(say) for column, say in said.items() if column in table}
        return table.assign(**cells).rename(columns=title_of)

    def show(self, figure: Figure, caption: str, alt: str, **options: Any) -> Html:
        """A figure whose caption ends with where its numbers come from."""
        return show(figure, f"{caption} {self.source()}", alt, **options)

    def show_failures(self) -> Html:
        """Runs that failed, or a sentence that none did."""
        failed = self.results.failed
        if failed.empty:
            return say(f"All {len(self.results.runs)} runs of this data set finished.")
        return show_table(failed, f"{len(failed)} of {len(self.results.runs)} runs failed and are left out everywhere.")

    def _datasets(self) -> list[str]:
        return list(self.parameters.studies())

    def _compute(self, name: str, study: Any) -> Results:
        handle = None

        def progress(finished: int, missing: int) -> None:
            nonlocal handle
            text = say(f"{name}: {finished} of {missing} missing runs trained and measured.")
            if handle is None:
                handle = display(text, display_id=True)
            elif handle:
                handle.update(text)

        return study.compute(self.parameters.jobs or None, progress)


def _test_rows(tests: Sequence[Evidence]) -> pd.DataFrame:
    """Tests as rows for a table."""
    p_values = [
        f"{format_number(e.p_value)} ({format_number(e.adjusted)})" if np.isfinite(e.p_value) else "–" for e in tests
    ]
    labels = [CONDITION_NAMES.get(e.condition, e.condition) for e in tests]
    cells = zip(labels, tests, p_values, strict=True)
    rows = [(label, e.test, e.question, e.effect, p, e.outcome) for label, e, p in cells]
    columns = ["labels", "test", "effect", "estimate (95 % interval)", "p (adjusted)", "outcome"]
    return pd.DataFrame(rows, columns=columns)


@checked
def open_page(template: str, namespace: Mapping[str, Any]) -> Page:
    """Check a notebook's parameters and show where it runs. Call it with `globals()` right after the imports.

    What may be given stands in the notebook's own cell of parameters, see :mod:`nbutils.sweeps.parameters`: as that ran
    in this kernel, else as the notebook's file has it.

    Args:
        template: name of the notebook, such as "h2_modularity".
        namespace: the notebook's variables.

    Returns:
        The :class:`Page`.

    Raises:
        ValueError: a parameter has a wrong type or value, papermill injected a name that the notebook does not declare,
            or a value that the committed tables do not follow.
    """
    shell = get_ipython()
    cells = shell.user_ns.get("In", []) if shell else []
    model = model_of_cells(template, cells) or template_model(template_file(template))
    defaults = {name: field.default for name, field in model.model_fields.items()}
    values = {name: namespace[name] for name in defaults if name in namespace}
    changed = {k for k, v in values.items() if type(v) is not type(defaults[k]) or v != defaults[k]}
    page = Page(template, check_parameters(template, values, injected_names(cells) | changed, model))
    origin = provenance()
    versions = origin["versions"]
    studies = page.parameters.studies()
    tables = [name for name, study in studies.items() if study is None]
    unused = TRAINING if tables == list(studies) != [] else ()  # the runs of committed tables are what they are
    shown = [f"{name} = {value!r}" for name, value in page.parameters.model_dump().items() if name not in unused]
    mixed = "source" in model.model_fields and 0 < len(tables) < len(studies)
    shown += [f"in committed tables: {' '.join(tables)}"] if mixed else []
    code = f"Commit `{origin['commit']}`" if origin["commit"] != UNKNOWN else "Installed code"
    libraries = f"Python {versions['python']}, torch {versions['torch']}, {origin['device']}"
    display(say(f"Checked: {', '.join(shown)}. {code}, {libraries}."))
    return page
