"""Attention over a sliding window through pointers, for every architecture."""

from __future__ import annotations

from search_spaces.sketches.triton.attention_pointers import AttentionPointers


class AttentionWindowPointers(AttentionPointers):
    """As for full attention; blocks of keys that no query of a program sees are skipped."""

    name = "triton.attention_window_pointers"
    operator = "attention_window"


SKETCH = AttentionWindowPointers()
