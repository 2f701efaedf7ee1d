"""Attention over a sliding window moved by the bulk copy engine (TMA), from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.attention_descriptors import AttentionDescriptors


class AttentionWindowDescriptors(AttentionDescriptors):
    """As for full attention; blocks of keys that no query of a program sees are skipped."""

    name = "triton.attention_window_descriptors"
    operator = "attention_window"
    instead = "triton.attention_window_pointers"


SKETCH = AttentionWindowDescriptors()
