"""Train a small network the way a user would, in torch alone, and save weights and data.

    python tests/train_plain_gru.py FOLDER

The task: a sine of unknown phase and rate, five steps after its last noisy value.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 12, batch_first=True)
        self.fc = nn.Linear(12, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        states, _ = self.rnn(inputs)
        found: Tensor = self.fc(states[:, -1])
        return found


def sines(count: int, length: int = 20, ahead: int = 5) -> tuple[Tensor, Tensor]:
    time = torch.arange(length + ahead)
    phase, rate = 6.28 * torch.rand(count, 1), 0.3 + 0.2 * torch.rand(count, 1)
    wave = torch.sin(rate * time + phase)
    noisy = wave[:, :length] + 0.05 * torch.randn(count, length)
    return noisy[:, :, None], wave[:, -1:]


def train(steps: int = 300) -> Forecaster:
    model = Forecaster()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        inputs, targets = sines(64)
        loss = (model(inputs) - targets).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = train()
    inputs, targets = sines(32)
    save_file(model.state_dict(), folder / "model.safetensors")
    torch.save(model.state_dict(), folder / "model.pt")
    np.savez(folder / "data.npz", inputs=inputs.numpy(), targets=targets.numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
