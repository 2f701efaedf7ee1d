import hashlib
import sys
from pathlib import Path

import pytest

from search_spaces.errors import InvalidWorkload, UnknownName
from search_spaces.operator import TensorSpec
from search_spaces.task import find_operator


def test_what_is_not_named_is_the_default_of_the_kind():
    matmul = find_operator("matmul")
    assert str(matmul.workload("cuda", M=64)) == "matmul M=64,N=4096,K=4096,trans_b=0 float16"
    assert str(matmul.workload("llvm", dtype="float16", K=32)) == "matmul M=512,N=512,K=32,trans_b=0 float16"


def test_what_cannot_be_built_is_refused():
    matmul, attention = find_operator("matmul"), find_operator("attention")
    with pytest.raises(UnknownName, match="unknown axis of matmul 'L'"):
        matmul.workload(L=4)
    with pytest.raises(UnknownName, match="did you mean 'float16'"):
        matmul.workload(dtype="flaot16")
    with pytest.raises(InvalidWorkload, match="M must be 1 or more"):
        matmul.workload(M=0)
    with pytest.raises(InvalidWorkload, match="causal must be 0 or 1"):
        attention.workload(causal=2)
    with pytest.raises(InvalidWorkload, match="do not divide"):
        attention.workload(H=6, G=4)


def test_key_value_heads_follow_the_query_heads():
    attention = find_operator("attention")
    assert attention.workload(H=6)["G"] == 6
    assert attention.workload(H=6, G=2)["G"] == 2


def test_a_workload_is_its_values():
    matmul = find_operator("matmul")
    one = matmul.workload(M=64, N=32)
    assert one == matmul.workload(N=32, M=64)
    assert one.key == matmul.workload(N=32, M=64).key
    assert one.key != matmul.workload(M=64, N=33).key
    assert one.key != matmul.workload(M=64, N=32, dtype="bfloat16").key
    assert one["M"] == 64


def test_known_costs():
    cost = find_operator("matmul").cost(find_operator("matmul").workload(M=2, N=3, K=5, dtype="float16"))
    assert cost.operations == 60
    assert cost.bytes == 2 * (2 * 5 + 5 * 3 + 2 * 3)
    attention = find_operator("attention")
    full, causal = (attention.cost(attention.workload(S=64, causal=c)) for c in (0, 1))
    assert full.operations == 2 * causal.operations
    assert TensorSpec("A", (3, 4), "float16").bytes == 24


def test_the_classes_that_an_operator_extends_define_it_too():
    operator = find_operator("int8_linear")
    files = [Path(sys.modules[c.__module__].__file__) for c in type(operator).__mro__[:2]]
    assert [f.name for f in files] == ["int8_linear.py", "products.py"]
    text = b"".join(f.read_bytes() for f in files)
    assert operator.source_hash == hashlib.sha256(text).hexdigest()[:16]
