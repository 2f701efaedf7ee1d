"""How CUDA_VISIBLE_DEVICES is read."""

import pytest

from autotune.devices.visible import chosen

FOUND = ["GPU-aa11", "GPU-ab22", "GPU-ff33"]


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, FOUND),
        ("", []),
        ("-1", []),
        ("2,0", ["GPU-ff33", "GPU-aa11"]),
        (" 1 ", ["GPU-ab22"]),
        ("GPU-f", ["GPU-ff33"]),
        # What is named twice, or by what two begin with, ends the list, as for CUDA.
        ("1,1,2", ["GPU-ab22"]),
        ("0,GPU-a,2", ["GPU-aa11"]),
        ("0,7,1", ["GPU-aa11"]),
        ("GPU-aa11,1", ["GPU-aa11", "GPU-ab22"]),
    ],
)
def test_what_is_visible(visible, left):
    assert chosen(FOUND, visible) == left
