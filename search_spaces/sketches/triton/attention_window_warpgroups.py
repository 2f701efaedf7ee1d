"""Attention over a sliding window on Hopper, with roles for groups of warps."""

from __future__ import annotations

from search_spaces.sketches.triton.attention_warpgroups import AttentionWarpgroups


class AttentionWindowWarpgroups(AttentionWarpgroups):
    """As for full attention; blocks of keys that no query of a tile sees are skipped."""

    name = "triton.attention_window_warpgroups"
    operator = "attention_window"
    instead = "triton.attention_window_pointers"


SKETCH = AttentionWindowWarpgroups()
