"""The inputs of a Llama folder's linear layers on its calibration tokens, in BF16.

    python3 bench/activations.py MODEL OUT.safetensors [--tokens 8192]

The forward pass is that of loss.py, in float32. The file has an x[tokens, K] in BF16 for each layer,
by the name of the layer's weight, such as model.layers.0.self_attn.q_proj.weight. Layers with the same
input have a copy each. All inputs are held in memory before they are written. The tokens are the
first of the whole sequences of `calibration` in MODEL/tokens.safetensors. Needs PyTorch and a CUDA
GPU.
"""

import argparse
import json
import os
import struct

import torch

from loss import Llama, read


class Recorder(Llama):
    """Keeps the first `tokens` rows of each linear layer's input, by the name of its weight."""

    def __init__(self, folder, tokens):
        super().__init__(folder)
        self.tokens = tokens
        self.inputs = {}

    def linear(self, x, name):
        parts = self.inputs.setdefault(name + ".weight", [])
        have = sum(len(p) for p in parts)
        parts.append(x.flatten(0, 1)[: self.tokens - have].bfloat16().cpu())
        return super().linear(x, name)


def record(model, tokens):
    """x[tokens, K] of every linear layer, in the order of the forward pass."""
    sequences = read(model + "/tokens.safetensors")["calibration"].long()
    if tokens > sequences.numel():
        raise SystemExit(f"{model} has {sequences.numel()} calibration tokens: ask for at most that many with --tokens")
    recorder = Recorder(model, tokens)
    length = sequences.shape[1]
    with torch.no_grad():
        for part in sequences[: -(-tokens // length)].split(16):
            recorder.logits(part)
    return {name: torch.cat(parts) for name, parts in recorder.inputs.items()}


def write(path, tensors):
    """Writes BF16 tensors as a safetensors file, in their order. path must not exist."""
    head, end = {}, 0
    for name, t in tensors.items():
        begin, end = end, end + 2 * t.numel()
        head[name] = {"dtype": "BF16", "shape": list(t.shape), "data_offsets": [begin, end]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.contiguous().view(torch.uint8).numpy())


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", metavar="MODEL", help="a Llama folder with tokens.safetensors")
    p.add_argument("out", metavar="OUT.safetensors", help="the file to write")
    p.add_argument("--tokens", type=int, default=8192, help="rows of every x (default: %(default)s)")
    o = p.parse_args()
    if o.tokens < 1:
        p.error("--tokens is at least 1")
    if os.path.lexists(o.out):
        p.error(f"{o.out} exists: remove it or name another file")
    torch.backends.cuda.matmul.allow_tf32 = False
    write(o.out, record(o.model, o.tokens))


main()
