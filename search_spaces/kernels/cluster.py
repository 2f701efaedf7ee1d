"""What Gluon 3.6 cannot say about clusters of blocks: multicast copies, arrivals at another block's barrier, meetings.

`everywhere` and `here` put comments around instructions; `rewritten` turns what lies between them in the PTX into its
form for every block of the cluster. Each word does nothing where a cluster is one block.
"""

import re

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

_EVERYWHERE = re.compile(r"// everywhere$(.*?)// here$", re.DOTALL | re.MULTILINE)
_COPY = re.compile(r"(@%p\d+ cp\.async\.bulk\.tensor\.\S+::bytes) (.*);")
_ARRIVE = re.compile(r"(@%p\d+) mbarrier\.arrive\.shared::cta\.b64 _, \[(%r\d+)\];")
_THREADS = re.compile(r"^\.reqntid .*$", re.MULTILINE)


@gluon.jit
def say(TEXT: gl.constexpr):
    """Puts text into the PTX, in order with the copies and the barriers around it."""
    gl.inline_asm_elementwise(TEXT + "\nmov.b32 $0, 0;", "=r", [], gl.int32, is_pure=False, pack=1)


@gluon.jit
def everywhere(CLUSTER: gl.constexpr):
    """From here on copies and arrivals go to every block of the cluster."""
    if CLUSTER > 1:
        say("// everywhere")


@gluon.jit
def here(CLUSTER: gl.constexpr):
    """From here on they stay in this block again."""
    if CLUSTER > 1:
        say("// here")


@gluon.jit
def publish(CLUSTER: gl.constexpr):
    """Makes barriers just initialised visible to the other blocks, once all have met."""
    if CLUSTER > 1:
        say("fence.mbarrier_init.release.cluster;")


@gluon.jit
def meet(CLUSTER: gl.constexpr):
    """Waits until every thread of the cluster came here."""
    if CLUSTER > 1:
        say("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;")


def rewritten(ptx: str, blocks: int) -> str:
    """The PTX for clusters of so many blocks, with what lies between `everywhere` and `here` done for each of them.

    Raises:
        RuntimeError: The PTX is not as Triton 3.6 writes it; run as it is, a cluster would hang.
    """
    copied = rf"{{ .reg .b16 all; mov.b16 all, {(1 << blocks) - 1}; \1.multicast::cluster \2, all; }}"
    arrivals = [
        rf"mapa.shared::cluster.u32 there, \2, {i}; \1 mbarrier.arrive.shared::cluster.b64 _, [there];"
        for i in range(blocks)
    ]
    arrived = rf"{{ .reg .b32 there; {' '.join(arrivals)} }}"
    ptx, entries = _THREADS.subn(rf"\g<0>\n.explicitcluster\n.reqnctapercluster {blocks}", ptx)
    ptx = _EVERYWHERE.sub(lambda found: _ARRIVE.sub(arrived, _COPY.sub(copied, found[1])), ptx)
    if entries != 1 or ".multicast::cluster" not in ptx or "mapa.shared::cluster" not in ptx or "// here" in ptx:
        raise RuntimeError("this Triton writes PTX that cannot be rewritten for clusters of blocks")
    return ptx
