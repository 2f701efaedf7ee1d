"""Kernels in Helion's language; imported only where Helion is installed."""

import math

import helion
import helion.language as hl
import torch

LOG2_E = math.log2(math.e)


@helion.kernel(static_shapes=True)
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C = A B, summed in fp32."""
    m, k = a.shape
    n = b.size(1)
    c = torch.empty([m, n], dtype=a.dtype, device=a.device)
    for rows, columns in hl.tile([m, n]):
        total = hl.zeros([rows, columns], dtype=torch.float32)
        for inner in hl.tile(k):
            total = torch.addmm(total, a[rows, inner], b[inner, columns])
        c[rows, columns] = total.to(a.dtype)
    return c


@helion.kernel(static_shapes=True)
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Of every row."""
    y = torch.empty_like(x)
    for rows in hl.tile(x.size(0)):
        y[rows, :] = torch.softmax(x[rows, :], dim=1)
    return y


@helion.kernel(static_shapes=True)
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Without a mask, over [heads, positions, size], with the running maximum of FlashAttention."""
    size = hl.specialize(q.size(2))
    keys = k.transpose(1, 2)
    out = torch.empty_like(q)
    scale = LOG2_E / math.sqrt(size)
    for head, queries in hl.tile([q.size(0), q.size(1)]):
        most = hl.full([head, queries], float("-inf"), dtype=torch.float32)
        weight = hl.zeros([head, queries], dtype=torch.float32)
        mean = hl.zeros([head, queries, size], dtype=torch.float32)
        q_tile = q[head, queries, :]
        for positions in hl.tile(v.size(1)):
            scores = torch.bmm(q_tile, keys[head, :, positions])
            higher = torch.maximum(most, torch.amax(scores, -1) * scale)
            shares = torch.exp2(scores * scale - higher[:, :, None])
            kept = torch.exp2(most - higher)
            weight = weight * kept + torch.sum(shares, -1)
            mean = torch.baddbmm(mean * kept[:, :, None], shares.to(v.dtype), v[head, positions, :])
            most = higher
        out[head, queries, :] = (mean / weight[:, :, None]).to(out.dtype)
    return out
