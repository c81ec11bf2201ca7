"""Time and energy of whole Llama models in PyTorch, with every step in a CUDA graph.

    python3 bench/whole.py SOURCE OUT... > whole-pytorch.json

The folders hold safetensors and a config.json of a Llama of the same shapes, in BF16. The steps are those of
`lowtoggle verify --gpu --whole`: decode at several batch sizes, and a prefill. The folders are measured in turns of the
order A B B A. Between two turns the models exchange their memory, so that with as many turns as folders each has been
measured at every address. A measurement lasts from one step of NVML's energy counter to another. relative_energy is the
geometric mean of a folder's ratios to the first; standard_error comes from their spread within turns. A folder that is
named twice shows the error of the run. The script needs PyTorch 2.5 or later, safetensors and pynvml.
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
    return graph, tokens, positions  # the graph reads these tensors: they must stay allocated


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


def step_of(counter):
    """Waits for a step of the energy counter; returns its new value and the time."""
    last = value = counter()
    while value == last:
        value = counter()
    return value, time.perf_counter()


def reading(graph, seconds, settle, each, counter):
    """Returns joules and seconds of one replay. Power is measured from one step of the energy counter to another, after
    the graph has run for settle. Replays are queued ahead: the card never waits for Python."""
    n = math.ceil((settle + seconds + 0.5) / each)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start = time.perf_counter()
    begin.record()
    launched = 0

    def launch(until):
        nonlocal launched
        while launched < n and launched * each < until:
            graph.replay()
            launched += 1

    def wait(until):  # keeps 0.2 s of replays queued: a full queue would block
        while (left := until - (time.perf_counter() - start)) > 0:
            launch(until - left + 0.2)
            time.sleep(min(left, 0.005))

    def watch():  # the counter's next step
        launch(time.perf_counter() - start + 0.4)
        return step_of(counter)

    wait(settle)
    first, opened = watch()
    wait(opened - start + seconds - 0.05)
    last, closed = watch()
    launch(math.inf)
    end.record()
    torch.cuda.synchronize()
    took = begin.elapsed_time(end) / 1e3 / n
    if closed > start + n * took:  # the replays ended before the window did
        return reading(graph, seconds, settle, 0.9 * each, counter)
    return (last - first) / (closed - opened) * took, took


def rotate(models):
    """Moves the weights of each model to the memory of the next, and those of the last to that of the first."""
    for name in {t.data_ptr(): name for name, t in models[0].w.items()}.values():  # a tied head once
        tensors = [m.w[name] for m in models]
        kept = tensors[-1].clone()
        for to, of in zip(tensors[:0:-1], tensors[-2::-1]):
            to.copy_(of)
        tensors[0].copy_(kept)
    torch.cuda.synchronize()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folders", nargs="+")
    p.add_argument("--batch", default="1,16,64", help="numbers of sequences in the decode steps")
    p.add_argument("--context", type=int, default=1024)
    p.add_argument("--prompt", type=int, default=4096)
    p.add_argument("--seconds", type=float, default=1.0, help="seconds of a reading; 0 measures time alone")
    p.add_argument("--settle", type=float, default=0.3, help="seconds that a model runs before a reading")
    p.add_argument("--turns", type=int, default=0, help="repetitions of the order A B B A; default: one for each folder")
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
            captured = [capture(m, caches, batch, context, decode, o.seed) for m in models]
            graphs = [graph for graph, *_ in captured]
            step = {"phase": "decode" if decode else "prefill", "batch": batch, "context": context, "seconds": once(graphs[0])}
            if o.seconds > 0:
                count, turns = len(graphs), o.turns or len(graphs)
                busy = time.perf_counter() + 8  # until the card is warm
                while time.perf_counter() < busy:
                    reading(graphs[0], 1, 0, step["seconds"], counter)
                joules, ratios = [[] for _ in graphs], [[] for _ in graphs]  # ratios: of each turn, those of its two passes
                for turn in range(turns):
                    found = [[] for _ in graphs]
                    for i in [*range(count), *reversed(range(count))]:
                        found[i].append(reading(graphs[(i + turn) % count], o.seconds, o.settle, step["seconds"], counter)[0])
                    for i in range(count):
                        joules[i] += found[i]
                        ratios[i].append([math.log(b / a) for a, b in zip(found[0], found[i])])
                    rotate(models)
                for _ in range(-turns % count):  # back to each model's own memory
                    rotate(models)
                step["joules"] = [sum(j) / len(j) for j in joules]
                step["log_ratios"] = ratios
                step["relative_energy"] = [math.exp(sum(map(sum, r)) / 2 / turns) for r in ratios]
                # A turn's two passes differ by twice the error of their mean.
                step["standard_error"] = [math.sqrt(sum((a - b) ** 2 for a, b in r)) / 2 / turns for r in ratios]
            steps.append(step)
            del captured, graphs, caches
            torch.cuda.empty_cache()
    json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "folders": o.folders, "steps": steps}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
