"""One step of a matrix product whose sums the tensor cores may not carry over all of K."""

import triton
import triton.language as tl


@triton.jit
def multiplied(left, right, sums, PROMOTE: tl.constexpr):
    """`sums` and the product of two tiles, added to `sums` in float32 after each `PROMOTE` terms, 0 for never.

    Products of fp8 on sm_90 lose the low bits of what is added to sums as large as those of a long K.
    """
    if PROMOTE == 0:
        sums = tl.dot(left, right, sums, input_precision="ieee", out_dtype=sums.dtype)
    else:
        sums = tl.dot(left, right, sums, max_num_imprecise_acc=PROMOTE, out_dtype=sums.dtype)
    return sums
