"""Tasks with known motifs, by name; see :class:`MotifBatch` for what they give."""

from __future__ import annotations

from collections.abc import Mapping

from nbutils.truth.digit_circle import DIGIT_CIRCLE, SMALL_CIRCLE
from nbutils.truth.motif_batches import END, MotifBatch, MotifTask, join_batches, part_of_batch

__all__ = ["END", "TASKS", "MotifBatch", "MotifTask", "join_batches", "part_of_batch"]

TASKS: Mapping[str, MotifTask] = {task.name: task for task in (DIGIT_CIRCLE, SMALL_CIRCLE)}
