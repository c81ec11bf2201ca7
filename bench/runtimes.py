"""Outputs of model folders as transformers computes them, in float64.

    for c in weights/synth/configs/*-tiny.json; do
        go run . synth --seed 1 "$c" "synth/$(basename "$c" .json)"
    done
    python3 bench/runtimes.py --to internal/reference/testdata synth/*
    python3 bench/runtimes.py --pairs SOURCE CONVERTED [SOURCE CONVERTED...]
    python3 bench/runtimes.py --bf16 internal/reference/testdata synth/*

The first form prints {folder: outputs}. With --to it writes FOLDER.json for each folder, for the tests of
internal/reference. The second form compares converted folders with their sources. "apart" is the largest
difference of the outputs, divided by the largest magnitude. "apart_centred" first subtracts the mean of every
row, because the pass shift adds a constant to all logits of an untied head, which softmax ignores. The third form runs
folders in BF16 on a GPU, as a server does, and prints the relative errors of their outputs against the recorded ones.

Every folder runs on the same tokens, (7t + 3) mod vocabulary at position t. Models of images or sound also
get the same input values. A folder that cannot be run is reported under "error", and the exit status is
then 1. Made with transformers 5.17 and torch 2.11. Only --bf16 needs a GPU.
"""

import argparse
import json
import os
import sys
import traceback
import types

sys.path.pop(0)  # pytorch.py beside this file is not the module that some library looks for

import torch
import transformers

POSITIONS = 9
DIGITS = 10  # of the numbers that are written


class Double(types.ModuleType):
    """torch, where float32 is another name of float64."""

    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


def double_everywhere():
    """Models cast norms, rotary angles and softmax to float32, whatever type they are run in: their
    modules get another torch. The code that reads files keeps the real one."""
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double
    computing = ("transformers.models.", "transformers.modeling_rope_utils", "transformers.activations")
    double = Double("torch")
    for name, module in list(sys.modules.items()):
        if name.startswith(computing) and vars(module).get("torch") is torch:
            module.torch = double


def load(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = getattr(transformers, config.architectures[0])  # this imports its module
    double_everywhere()
    # Falcon's eager attention adds ALiBi's bias twice in this release, its usual one once.
    attention = "sdpa" if config.model_type == "falcon" else "eager"
    model, found = kind.from_pretrained(
        folder, dtype=torch.float64, attn_implementation=attention, output_loading_info=True
    )
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if found.get(problem):
            raise ValueError(f"{problem}: {sorted(map(str, found[problem]))}")
    for name, t in (*model.named_parameters(), *model.named_buffers()):
        if t.is_floating_point() and t.dtype != torch.float64:
            print(f"{folder}: {name} is of type {t.dtype}", file=sys.stderr)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    return model.eval()


def values(*shape):
    """Input of images or sound: element i is (7919·i mod 1009)/1009 - 1/2."""
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * 7919 % 1009).double() / 1009 - 0.5).reshape(1, *shape)


def inputs(config):
    text = config.get_text_config()
    if hasattr(config, "image_size") and not hasattr(config, "text_config"):
        return {"pixel_values": values(config.num_channels, config.image_size, config.image_size)}
    tokens = ((torch.arange(POSITIONS) * 7 + 3) % text.vocab_size)[None]
    if hasattr(config, "num_mel_bins"):
        heard = values(config.num_mel_bins, 2 * config.max_source_positions)
        if config.architectures[0] == "WhisperForAudioClassification":
            return {"input_features": heard}
        return {"input_features": heard, "decoder_input_ids": tokens}
    return {"input_ids": tokens}


@torch.no_grad()
def outputs(folder):
    """[positions, logits], or hidden states where the model has no head."""
    model = load(folder)
    out = model(**inputs(model.config))
    if getattr(out, "reconstruction", None) is not None:
        stride = model.config.encoder_stride  # a row for each patch
        rows = torch.nn.functional.pixel_unshuffle(out.reconstruction, stride).flatten(2).transpose(1, 2)
    elif getattr(out, "logits", None) is not None:
        rows = out.logits
    else:
        rows = out.last_hidden_state
    rows = rows.squeeze(0) if rows.dim() == 3 else rows
    if rows.dtype != torch.float64 or not torch.isfinite(rows).all():
        raise ValueError(f"outputs are of type {rows.dtype}, or not finite")
    return rows


def report(folder):
    rows = outputs(folder)
    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "rows": [[float(f"{v:.{DIGITS}g}") for v in row] for row in rows.tolist()],
    }


@torch.no_grad()
def served(folder, recorded):
    """Returns the relative error of the logits in BF16 on a GPU."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.bfloat16).to("cuda").eval()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    rows = model(**{name: v.to("cuda") for name, v in inputs(config).items()}).logits.squeeze(0).double().cpu()
    with open(os.path.join(recorded, os.path.basename(os.path.normpath(folder)) + ".json")) as f:
        want = torch.tensor(json.load(f)["rows"], dtype=torch.float64)
    return {"relative_error": ((rows - want).norm() / want.norm()).item()}


def apart(a, b):
    return ((a - b).abs().max() / a.abs().max()).item()


def pair(source, converted):
    a, b = outputs(source), outputs(converted)
    centre = lambda x: x - x.mean(-1, keepdim=True)
    return {"source": source, "apart": apart(a, b), "apart_centred": apart(centre(a), centre(b))}


def attempt(results, name, fn, *args):
    try:
        results[name] = fn(*args)
    except Exception as e:
        traceback.print_exc()
        results[name] = {"error": f"{type(e).__name__}: {e}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", action="store_true", help="folders are pairs: SOURCE CONVERTED ...")
    parser.add_argument("--bf16", metavar="DIR", help="run in BF16 on a GPU and compare with the files that --to wrote to DIR")
    parser.add_argument("--to", metavar="DIR", help="write a file for each folder into DIR")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    if args.bf16 and (args.pairs or args.to):
        parser.error("--bf16 cannot be combined with --pairs or --to")
    if args.pairs and (len(args.folders) % 2 or args.to):
        parser.error("--pairs takes an even number of folders and cannot be combined with --to")
    results = {}
    if args.pairs:
        for source, converted in zip(args.folders[::2], args.folders[1::2]):
            attempt(results, converted, pair, source, converted)
    else:
        run = [served, args.bf16] if args.bf16 else [report]
        for folder in args.folders:
            attempt(results, os.path.basename(os.path.normpath(folder)), run[0], folder, *run[1:])
    failed = {name: r for name, r in results.items() if "error" in r}
    if args.to:
        os.makedirs(args.to, exist_ok=True)
        for name in results.keys() - failed.keys():
            with open(os.path.join(args.to, name + ".json"), "w") as f:
                json.dump(results[name], f)
                f.write("\n")
        results = failed
    if results:
        json.dump(results, sys.stdout, indent=None if not args.pairs else 2)
        print()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
