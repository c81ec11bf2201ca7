"""Copies of a Llama folder whose linear layers are zeroed or coarse in one structure each.

    python3 bench/structures.py MODEL DIR

DIR gets a folder for each structure. Their energies relative to MODEL show which zeros save energy, and how much
the coarsest values that keep all signs save. Accuracy does not matter here: no folder is a usable model.
bench/results/h200/structure-stationary.json was made by

    python3 bench/activations.py MODEL acts.safetensors --tokens 8192
    lowtoggle measure --w MODEL: --against NAME: ... --against zeros --x acts.safetensors: \\
        --role stationary --time 170s --precision 0.05% --json

The record's gptq2, neur25 and half_... came from a prototype that is not in the repository: compensated
rounding (now the pass compensate), zeroed neurons, and zeros in the first two blocks only. No page uses them.
Needs PyTorch.
"""

import argparse
import os
import shutil

import torch

from loss import Llama


def row_step(w, s):
    """A power of two near σ/s for each row, as the pass grid takes it."""
    sigma = w.double().pow(2).mean(1, keepdim=True).sqrt()
    return 2.0 ** torch.round(torch.log2(sigma / s))


def grid(s):
    return lambda w, _: (w / row_step(w, s)).round() * row_step(w, s)


def zero(rows=None, cols=None):
    """Zeroes a slice of rows or of columns, given as functions of their number."""

    def change(w, _):
        w = w.clone()
        if rows:
            w[rows(w.shape[0])] = 0
        if cols:
            w[:, cols(w.shape[1])] = 0
        return w

    return change


def blocks(share, height, width):
    def change(w, generator):
        mask = torch.rand(w.shape[0] // height, w.shape[1] // width, generator=generator) < share
        w = w.clone()
        w[mask.repeat_interleave(height, 0).repeat_interleave(width, 1)] = 0
        return w

    return change


def powers_of_two(w, _):
    return torch.sign(w) * 2.0 ** torch.floor(torch.log2(w.abs().clamp(min=1e-30)) + 0.5)


def powers_on_grid(w, _):
    q = w / row_step(w, 2)
    power = torch.sign(q) * 2.0 ** torch.round(torch.log2(q.abs().clamp(min=0.5)))
    return torch.where(q.abs() < 0.5, torch.zeros_like(q), power) * row_step(w, 2)


def last(share):
    return lambda n: slice(n - int(n * share), n)


STRUCTURES = {
    "rtn4": grid(4),
    "rtn2": grid(2),
    "colend25": zero(cols=last(0.25)),
    "colend50": zero(cols=last(0.5)),
    "colspread25": zero(cols=lambda n: slice(0, n, 4)),
    "col16x25": zero(cols=lambda n: [k for k in range(n) if k // 16 % 4 == 0]),
    "rows25": zero(rows=last(0.25)),
    "blk16x16_25": blocks(0.25, 16, 16),
    "blk1x16_25": blocks(0.25, 1, 16),
    "el25": blocks(0.25, 1, 1),
    "pow2": powers_of_two,
    "onemag": lambda w, _: torch.sign(w) * w.abs().mean(),
    "p2grid2": powers_on_grid,
}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", metavar="MODEL", help="a Llama folder")
    p.add_argument("dir", metavar="DIR", help="a folder for the copies")
    o = p.parse_args()
    from safetensors.torch import save_file

    source = {name: w.cpu() for name, w in Llama(o.model).w.items()}
    for name, change in STRUCTURES.items():
        folder = os.path.join(o.dir, name)
        os.makedirs(folder)
        shutil.copy(os.path.join(o.model, "config.json"), folder)
        generator = torch.Generator().manual_seed(1)
        tensors = {
            n: change(w, generator) if w.dim() == 2 and "embed" not in n else w for n, w in source.items()
        }
        save_file({n: w.bfloat16().contiguous() for n, w in tensors.items()}, os.path.join(folder, "model.safetensors"))


main()
