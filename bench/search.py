"""Times a search with an accuracy budget on a GPU, for a model with the shapes of an 8 B Llama.

    python3 bench/search.py LOWTOGGLE FOLDER [--models MODELS] [--blocks 32] [--device 0]

Makes a random model and random tokens and runs `LOWTOGGLE convert --max-loss 0.1%` on a pseudoterminal. Prints the start of
each stage, the command's report, and the largest memory use of the process. FOLDER gets statistics and the result: 50 GB
for 32 blocks. MODELS (default: FOLDER) gets the model, 14.5 GB; it may be a folder in memory. The script removes its files
at the end. Without --device the search runs on the CPU with a small model, to try the script.
"""

import argparse
import array
import fcntl
import json
import os
import pty
import random
import re
import shutil
import struct
import subprocess
import termios
import time


def write_tokens(path, vocabulary, sequences, length):
    r = random.Random(1)
    shapes = {"calibration": [sequences, length], "evaluation": [sequences // 2, length]}
    head, data = {}, b""
    for name, (n, length) in shapes.items():
        part = array.array("i", [r.randrange(vocabulary) for _ in range(n * length)]).tobytes()
        head[name] = {"dtype": "I32", "shape": [n, length], "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    head = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)


def memory(pid):
    """Returns a process's memory in GiB, by kind. VmHWM is the peak of all kinds together."""
    try:
        with open(f"/proc/{pid}/status") as f:
            fields = dict(line.split(":", 1) for line in f)
        return {k: int(fields[k].split()[0]) / 2**20 for k in ("VmHWM", "RssAnon", "RssFile", "RssShmem")}
    except (OSError, KeyError):
        return {}


def run(command):
    """Runs a command on a terminal of 120 columns; prints its stages, other lines and peak memory."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
    start = time.monotonic()
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    stages, most, text = [], {}, ""
    while True:
        try:
            data = os.read(master, 1 << 16)  # bars are drawn ten times a second
        except OSError:  # the command has ended
            break
        now = time.monotonic() - start
        for kind, gib in memory(p.pid).items():
            most[kind] = max(most.get(kind, 0), gib)
        *lines, text = re.split(r"[\r\n]+", text + data.decode(errors="replace"))
        for line in lines:
            line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).rstrip()
            bar = re.match(r"([a-z]+) +\[", line)
            if bar and bar[1] not in (name for name, _ in stages):
                stages.append((bar[1], now))
            elif line and not bar:
                print(line)
    status, end = p.wait(), time.monotonic() - start
    for (name, begin), (_, after) in zip(stages, [*stages[1:], ("", end)]):
        print(f"{name:14} from {begin:6.1f} s, {after - begin:6.1f} s")
    print(f"total {end:.1f} s, exit status {status}; peak memory in GiB:", ", ".join(f"{k} {v:.1f}" for k, v in most.items()))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("lowtoggle")
    p.add_argument("folder")
    p.add_argument("--models")
    p.add_argument("--blocks", type=int, default=32)
    p.add_argument("--device")
    o = p.parse_args()
    hidden, ffn, vocabulary, sequences, length = (4096, 14336, 32000, 128, 1024) if o.device else (256, 512, 1000, 8, 32)
    models, out = os.path.join(o.models or o.folder, "search-model"), os.path.join(o.folder, "search-out")
    os.makedirs(models)
    os.makedirs(o.folder, exist_ok=True)
    try:
        config, model, tokens = (os.path.join(models, name) for name in ("config.json", "model", "tokens.safetensors"))
        with open(config, "w") as f:
            json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": ffn,
                       "num_hidden_layers": o.blocks, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": hidden // 32,
                       "vocab_size": vocabulary, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
                       "torch_dtype": "bfloat16", "tie_word_embeddings": False, "hidden_act": "silu"}, f)
        subprocess.run([o.lowtoggle, "synth", config, model, "--quiet"], check=True)
        write_tokens(tokens, vocabulary, sequences, length)
        run([o.lowtoggle, "convert", model, out, "--max-loss", "0.1%", "--tokens", tokens, *(["--device", o.device] if o.device else [])])
    finally:
        for folder in (models, out, out + ".search"):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
