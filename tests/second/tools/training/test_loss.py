"""The loss and its gradient are torch's, whatever the number of rows and their type."""

import pytest
import torch

from tools.training.loss import ROWS, mean_cross_entropy


@pytest.mark.parametrize("n", [1, ROWS, 2 * ROWS + 11])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_loss_and_gradient_are_torchs(n: int, kind: torch.dtype) -> None:
    drawn = torch.Generator().manual_seed(n)
    logits = (4 * torch.randn(n, 701, generator=drawn)).to(kind)
    targets = torch.randint(0, 701, (n,), generator=drawn)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()

    loss = mean_cross_entropy(ours, targets)
    expected = torch.nn.functional.cross_entropy(theirs.float(), targets)
    (3 * loss).backward()  # type: ignore[no-untyped-call]
    (3 * expected).backward()  # type: ignore[no-untyped-call]

    torch.testing.assert_close(loss.detach(), expected.detach(), rtol=1e-5, atol=1e-6)
    assert ours.grad is not None and ours.grad.dtype == kind
    tolerance = 1e-6 if kind == torch.float32 else 2e-2
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=tolerance, atol=1e-8)
