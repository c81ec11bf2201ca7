"""Losses of small quantised Llamas in transformers, to compare with lowtoggle eval.

    lowtoggle synth config.json m-NAME --format NAME          # for each NAME of --format
    lowtoggle eval m-NAME --tokens tokens.safetensors --json > eval-NAME.json
    python3 bench/quantised.py tokens.safetensors m-NAME... > result.json

"filled" is the loss of an unquantised model in float32 whose weights dequantise.py computed. "native" is the loss
of the folder as transformers loads it, dequantised if transformers can do so. If a library is missing, "native" is the
error. transformers does not support ModelOpt, and takes the codes of modelopt-fp8 for the weights.
"""

import json
import os
import struct
import sys

import torch
from transformers import AutoModelForCausalLM, FineGrainedFP8Config, LlamaConfig, LlamaForCausalLM

import dequantise


def read_tokens(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack("<Q", raw[:8])
    info = json.loads(raw[8 : 8 + n])["evaluation"]
    begin, end = info["data_offsets"]
    return torch.frombuffer(bytearray(raw[8 + n + begin : 8 + n + end]), dtype=torch.int32).reshape(info["shape"]).long()


def loss(model, tokens):
    model.eval()
    with torch.no_grad():
        logits = model(tokens.to(model.device)).logits.double()
    after = tokens[:, 1:].to(logits.device).reshape(-1)
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), after).item()


def filled(folder):
    js = json.load(open(os.path.join(folder, "config.json")))
    js.pop("quantization_config")
    config = LlamaConfig(**js)
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).float()
    config, tensors = dequantise.read_folder(folder)
    state = {}
    for name, t in tensors.items():
        if name.endswith("norm.weight") or "embed" in name or "lm_head" in name:
            state[name] = torch.tensor(t.floats()).reshape(t.shape)
    for name, shape, values in dequantise.weights(config, tensors):
        state[name] = torch.tensor(values).reshape(shape)
    model.load_state_dict(state, strict=True)
    return model


def native(folder):
    options = {}
    if json.load(open(os.path.join(folder, "config.json")))["quantization_config"]["quant_method"] == "fp8":
        options["quantization_config"] = FineGrainedFP8Config(dequantize=True, weight_block_size=(128, 128))
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, device_map="cuda", **options)


def main(path, folders):
    tokens = read_tokens(path)
    result = []
    for folder in folders:
        name = os.path.basename(folder.rstrip("/")).removeprefix("m-")
        ours = json.load(open("eval-%s.json" % name))["loss"]
        out = {"format": name, "lowtoggle": ours}
        for key, load in (("filled", filled), ("native", native)):
            try:
                out[key] = loss(load(folder), tokens)
                out[key + "_relative_difference"] = out[key] / ours - 1
            except Exception as error:  # a library that is missing, above all
                out[key + "_error"] = (type(error).__name__ + ": " + str(error))[:120]
        result.append(out)
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
