"""A convolution that isn't initialised with random numbers, of ELMo and fconv."""

import torch
from torch import nn
from torch.nn import functional


class Convolution(nn.Module):
    """Convolution over the last axis. weight: [width, width_in, kernel]. bias: [width]."""

    def __init__(self, width_in: int, width: int, kernel: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width_in, kernel))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return [row, width, position - kernel + 1] for states [row, width_in, position]."""
        return functional.conv1d(states, self.weight, self.bias)
