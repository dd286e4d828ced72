"""Tasks with known motifs, by name; see :class:`nbutils.motifs.motif_batches.MotifBatch` for what they give."""

from __future__ import annotations

from collections.abc import Mapping

from nbutils.motifs.digit_circle import DIGIT_CIRCLE, SMALL_CIRCLE
from nbutils.motifs.motif_batches import END, MotifBatch, MotifTask, join_batches, part_of_batch
from nbutils.motifs.token_lines import TOKEN_LINES
from nbutils.motifs.tone_lines import TONE_LINES

__all__ = ["END", "TASKS", "MotifBatch", "MotifTask", "join_batches", "part_of_batch"]

TASKS: Mapping[str, MotifTask] = {task.name: task for task in (DIGIT_CIRCLE, SMALL_CIRCLE, TOKEN_LINES, TONE_LINES)}
