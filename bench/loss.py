"""Loss of converted Llama folders on their evaluation tokens, in float32 with PyTorch.

    python3 bench/loss.py MODEL OUT... > result.json

The script reads the safetensors files itself and shares no code with lowtoggle. Differences from MODEL
have a 95 % interval over sequences (paired). Needs PyTorch and a CUDA GPU.
"""

import glob
import json
import math
import os
import struct
import sys

import torch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu

TYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32, "U8": torch.uint8}


def read(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    tensors = {}
    for name, info in json.loads(raw[8 : 8 + n]).items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            data = bytearray(raw[8 + n + begin : 8 + n + end])
            tensors[name] = torch.frombuffer(data, dtype=TYPES[info["dtype"]]).reshape(info["shape"]).cuda()
    return tensors


class Llama:
    def __init__(self, folder):
        self.config = json.load(open(folder + "/config.json"))
        self.w = {}
        for shard in sorted(glob.glob(folder + "/model*.safetensors")):
            self.w.update({name: t.float() for name, t in read(shard).items()})

    def norm(self, x, name):
        eps = self.config["rms_norm_eps"]
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * self.w[name]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T

    def logits(self, tokens):
        c = self.config
        heads, kv, size = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        batch, length = tokens.shape
        pair = torch.arange(0, size, 2, device="cuda") / size
        angle = torch.arange(length, device="cuda")[:, None] / c["rope_parameters"]["rope_theta"] ** pair
        cos, sin = (f(torch.cat([angle, angle], -1)) for f in (torch.cos, torch.sin))

        def rotate(t):
            return t * cos + torch.cat([-t[..., size // 2 :], t[..., : size // 2]], -1) * sin

        def split(t, n):
            return t.view(batch, length, n, size).transpose(1, 2)

        h = self.w["model.embed_tokens.weight"][tokens]
        for i in range(c["num_hidden_layers"]):
            at = f"model.layers.{i}."
            x = self.norm(h, at + "input_layernorm.weight")
            q = rotate(split(self.linear(x, at + "self_attn.q_proj"), heads))
            k = rotate(split(self.linear(x, at + "self_attn.k_proj"), kv)).repeat_interleave(heads // kv, 1)
            v = split(self.linear(x, at + "self_attn.v_proj"), kv).repeat_interleave(heads // kv, 1)
            a = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
            h = h + self.linear(a.reshape(batch, length, heads * size), at + "self_attn.o_proj")
            x = self.norm(h, at + "post_attention_layernorm.weight")
            gate = silu(self.linear(x, at + "mlp.gate_proj"))
            h = h + self.linear(gate * self.linear(x, at + "mlp.up_proj"), at + "mlp.down_proj")
        return self.linear(self.norm(h, "model.norm.weight"), "lm_head")

    @torch.no_grad()
    def loss(self, tokens):
        """Mean loss of each sequence over all positions but its first, in nats."""
        rows = []
        for part in tokens.split(16):
            logits = self.logits(part)[:, :-1]
            nats = cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="none")
            rows.append(nats.view(len(part), -1).double().mean(1))
        return torch.cat(rows)


def main(model, *outs):
    torch.backends.cuda.matmul.allow_tf32 = False
    tokens = read(model + "/tokens.safetensors")["evaluation"].long()
    base = Llama(model).loss(tokens)
    report = {
        "model": os.path.basename(model),
        "tokens": tokens.numel(),
        "loss": base.mean().item(),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "command": "python3 bench/loss.py MODEL OUT...",
        "converted": {},
    }
    for out in outs:
        diff = Llama(out).loss(tokens) - base
        half = 1.96 * diff.std().item() / math.sqrt(len(diff))
        mean = diff.mean().item()
        report["converted"][os.path.basename(out)] = {
            "loss_rises_by": mean,
            "interval": [mean - half, mean + half],
            "perplexity_rises_by_percent": 100 * math.expm1(mean),
        }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main(*sys.argv[1:])
