"""The CPU's instruction sets, and bf16 on a CPU without instructions for it."""

from pathlib import Path

import pytest
import torch
from tiny_models import save_model_folder

from lama_core.models import cpu
from lama_core.models.cache import CACHE, load_model
from lama_core.models.cpu import NO_BF16, Cpu, read_cpuinfo

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def old_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU without instructions for bf16."""
    monkeypatch.setattr(cpu, "find_cpu", lambda: Cpu("Old CPU", ("avx2",)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "model name\t: Intel Xeon 8488C\nflags\t\t: fpu avx2 avx512f amx_bf16 amx_tile\n",
            "Intel Xeon 8488C (avx2, avx512f, amx_bf16)",
        ),
        ("model name : AMD EPYC 7763\nflags : sse2 avx2\n", "AMD EPYC 7763 (avx2)"),
        ("processor : 0\nFeatures : fp asimd i8mm bf16\n", " (asimd, i8mm, bf16)"),
        ("", " (instruction sets unknown)"),
    ],
)
def test_instruction_sets_are_read_from_cpuinfo(text: str, shown: str) -> None:
    assert str(read_cpuinfo(text)) == shown


def test_only_bf16_instructions_make_bf16_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("avx512_vnni", "amx_int8", "avx2"):
        monkeypatch.setattr(cpu, "find_cpu", lambda name=name: Cpu("CPU", (name,)))
        assert not cpu.has_bf16()
        assert cpu.computed_precision("bf16", "cpu") == "bf16-weights"
        for precision, device in (("fp32", "cpu"), ("auto", "cpu"), ("bf16", "cuda:0")):
            assert cpu.computed_precision(precision, device) == precision
    monkeypatch.setattr(cpu, "find_cpu", lambda: Cpu("CPU", ("avx512_bf16",)))
    assert cpu.has_bf16() and cpu.computed_precision("bf16", "cpu") == "bf16"


@pytest.mark.usefixtures("old_cpu")
@pytest.mark.parametrize("family", ("bert-cased", "smollm2"))
def test_without_the_instructions_bf16_weights_are_computed_in_fp32(
    family: str, tmp_path: Path
) -> None:
    folder = str(save_model_folder(family, tmp_path / family))
    exact, rounded = (load_model(folder, precision=name) for name in ("fp32", "bf16"))
    assert rounded.precision == "bf16-weights" and rounded.notes == [NO_BF16]
    assert exact.precision == "fp32" and not exact.notes
    assert rounded.identity == exact.identity.removesuffix("fp32") + "bf16-weights"
    pairs = list(zip(exact.model.parameters(), rounded.model.parameters(), strict=True))
    assert all(torch.equal(one.bfloat16().float(), other) for one, other in pairs)
    assert not all(torch.equal(one, other) for one, other in pairs)
    assert load_model(folder, precision="bf16-weights") is rounded
    assert CACHE.identity(exact.name, "bf16") == rounded.identity
