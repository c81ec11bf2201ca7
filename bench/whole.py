"""Time and energy of whole Llama models in PyTorch, with every step in a CUDA graph.

    python3 bench/whole.py SOURCE OUT... > whole-pytorch.json

The folders hold safetensors and a config.json of a Llama of the same shapes, in BF16. The steps are those of
`lowtoggle verify --gpu --whole`: decode at several batch sizes, and a prefill. The folders are measured in the order
A B B A. Each measurement is a warm-up and a reading of NVML's energy counter. relative_energy is the mean ratio of a
folder to the first. A copy of the first folder shows the error of the run. The script needs PyTorch 2.5 or later,
safetensors and pynvml.
"""

import argparse
import json
import math
import os
import sys
import time

import pynvml
import torch
import torch.nn.functional as F
from safetensors.torch import load_file


class Llama:
    """A model: the weights of a folder on the GPU."""

    def __init__(self, folder):
        with open(os.path.join(folder, "config.json")) as f:
            c = json.load(f)
        self.hidden, self.blocks, self.eps = c["hidden_size"], c["num_hidden_layers"], c.get("rms_norm_eps", 1e-6)
        self.heads, self.kv = c["num_attention_heads"], c["num_key_value_heads"]
        self.size = c.get("head_dim") or self.hidden // self.heads
        theta = (c.get("rope_parameters") or {}).get("rope_theta", c.get("rope_theta", 10000.0))
        self.inverse = 1 / theta ** (torch.arange(0, self.size, 2, device="cuda", dtype=torch.float32) / self.size)
        self.vocab = c["vocab_size"]
        self.w = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".safetensors") and name != "tokens.safetensors":
                self.w.update(load_file(os.path.join(folder, name), device="cuda"))
        if "lm_head.weight" not in self.w:
            self.w["lm_head.weight"] = self.w["model.embed_tokens.weight"]

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def step(self, tokens, positions, caches, decode):
        """Runs tokens [batch, length] at positions [length]; returns the next token of each sequence."""
        w, batch, length = self.w, *tokens.shape
        angles = torch.outer(positions.float(), self.inverse)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        h = F.embedding(tokens, w["model.embed_tokens.weight"])
        for i in range(self.blocks):
            p = f"model.layers.{i}."
            x = F.rms_norm(h, (self.hidden,), w[p + "input_layernorm.weight"], self.eps)
            q, k, v = (F.linear(x, w[p + f"self_attn.{n}_proj.weight"]).view(batch, length, -1, self.size).transpose(1, 2) for n in "qkv")
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            keys, values = caches[i]
            keys.index_copy_(2, positions, k)
            values.index_copy_(2, positions, v)
            if decode:
                z = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
            else:
                z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            h = h + F.linear(z.transpose(1, 2).reshape(batch, length, -1), w[p + "self_attn.o_proj.weight"])
            x = F.rms_norm(h, (self.hidden,), w[p + "post_attention_layernorm.weight"], self.eps)
            x = F.silu(F.linear(x, w[p + "mlp.gate_proj.weight"])) * F.linear(x, w[p + "mlp.up_proj.weight"])
            h = h + F.linear(x, w[p + "mlp.down_proj.weight"])
        h = F.rms_norm(h[:, -1], (self.hidden,), w["model.norm.weight"], self.eps)
        return F.linear(h, w["lm_head.weight"]).argmax(dim=-1)


def capture(model, caches, batch, context, decode, seed):
    torch.manual_seed(seed)
    tokens = torch.randint(model.vocab, (batch, context), device="cuda")
    if decode:
        tokens, positions = tokens[:, -1:], torch.tensor([context - 1], device="cuda")
    else:
        positions = torch.arange(context, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model.step(tokens, positions, caches, decode)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        model.step(tokens, positions, caches, decode)
    return graph


def once(graph):
    """Returns the seconds of one replay."""
    for n in (2, 20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(n):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / n


def reading(graph, seconds, each, counter):
    """Returns joules and seconds of one replay: the mean over the given seconds, after a warm-up of a second."""
    n = max(1, math.ceil(0.05 / each))

    def busy(until):
        count = 0
        while time.perf_counter() < until:
            for _ in range(n):
                graph.replay()
            torch.cuda.synchronize()
            count += n
        return count

    busy(time.perf_counter() + 1)
    joules, start = counter(), time.perf_counter()
    count = busy(start + seconds)
    return (counter() - joules) / count, (time.perf_counter() - start) / count


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folders", nargs="+")
    p.add_argument("--batch", default="1,16,64", help="numbers of sequences in the decode steps")
    p.add_argument("--context", type=int, default=1024)
    p.add_argument("--prompt", type=int, default=4096)
    p.add_argument("--seconds", type=float, default=3.0, help="seconds of a reading; 0 measures time alone")
    p.add_argument("--turns", type=int, default=2, help="repetitions of the order A B B A")
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())

    def counter():
        return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3

    with torch.no_grad():
        models = [Llama(f) for f in o.folders]
        first, steps = models[0], []
        works = [(int(b), o.context, True) for b in o.batch.split(",") if b] + ([(1, o.prompt, False)] if o.prompt else [])
        for batch, context, decode in works:
            caches = [[torch.randn(batch, first.kv, context, first.size, device="cuda").bfloat16() for _ in range(2)] for _ in range(first.blocks)]
            graphs = [capture(m, caches, batch, context, decode, o.seed) for m in models]
            step = {"phase": "decode" if decode else "prefill", "batch": batch, "context": context, "seconds": once(graphs[0])}
            if o.seconds > 0:
                readings = [[] for _ in graphs]
                order = list(range(len(graphs)))
                for _ in range(o.turns):
                    for i in order + order[::-1]:
                        readings[i].append(reading(graphs[i], o.seconds, step["seconds"], counter))
                ratios = [[b[0] / a[0] for a, b in zip(readings[0], r)] for r in readings]
                step["joules"] = [sum(j for j, _ in r) / len(r) for r in readings]
                step["relative_energy"] = [sum(r) / len(r) for r in ratios]
                step["standard_error"] = [torch.tensor(r).std().item() / math.sqrt(len(r)) for r in ratios]
            steps.append(step)
            del graphs, caches
            torch.cuda.empty_cache()
    json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "folders": o.folders, "steps": steps}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
