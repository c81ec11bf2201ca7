"""Digests of the float32 values of quantised weights.

    python3 bench/dequantise.py FOLDER... > digests.json

The script reads config.json and the safetensors files itself, shares no code with lowtoggle, and needs only Python. It
computes one value at a time, so folders should be small. For each folder
and each quantised weight it prints the shape and the SHA-256 of all values, row by row, as little-endian float32. Every
NaN has the bits 0x7FC00000.

A value is (code - zero point) * scale, rounded to float32 once. With a global scale, the product (ModelOpt) or
quotient (compressed-tensors) of both scales is rounded to float32 first.
"""

import array
import glob
import hashlib
import json
import math
import os
import struct
import sys

NAN = struct.unpack("<f", struct.pack("<I", 0x7FC00000))[0]


def single(x):
    """Round to float32."""
    return array.array("f", [x])[0]


def small_float(code, exponent_bits, mantissa_bits, bias):
    """The value of a float without infinities and NaN."""
    sign = -1.0 if code >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    fraction = code & (1 << mantissa_bits) - 1
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + fraction / 2.0**mantissa_bits) * 2.0 ** (exponent - bias)


E4M3 = [NAN if c & 0x7F == 0x7F else small_float(c, 4, 3, 7) for c in range(256)]
E2M1 = [small_float(c, 2, 1, 1) for c in range(16)]
E8M0 = [NAN if c == 255 else math.ldexp(1.0, c - 127) for c in range(256)]


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, shape, data

    def floats(self):
        d = self.data
        if self.dtype == "F32":
            return [x[0] for x in struct.iter_unpack("<f", d)]
        if self.dtype == "F16":
            return [x[0] for x in struct.iter_unpack("<e", d)]
        if self.dtype == "BF16":
            return [struct.unpack("<f", struct.pack("<I", x[0] << 16))[0] for x in struct.iter_unpack("<H", d)]
        if self.dtype == "F8_E4M3":
            return [E4M3[c] for c in d]
        if self.dtype in ("U8", "F8_E8M0"):
            return [E8M0[c] for c in d]
        raise ValueError("scales of type " + self.dtype)

    def integers(self):
        kind = {"I8": "<b", "I32": "<i", "I64": "<q"}[self.dtype]
        return [x[0] for x in struct.iter_unpack(kind, self.data)]

    def words(self):
        return [x[0] for x in struct.iter_unpack("<I", self.data)]


def read_folder(folder):
    config = json.load(open(os.path.join(folder, "config.json")))["quantization_config"]
    tensors = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        raw = open(path, "rb").read()
        (n,) = struct.unpack("<Q", raw[:8])
        for name, info in json.loads(raw[8 : 8 + n]).items():
            if name != "__metadata__":
                begin, end = info["data_offsets"]
                tensors[name] = Tensor(info["dtype"], info["shape"], raw[8 + n + begin : 8 + n + end])
    return config, tensors


def bits(words, first, count):
    """A number in a stream of 32-bit words that begins with their lowest bits."""
    i, shift = divmod(first, 32)
    both = words[i] | (words[i + 1] << 32 if i + 1 < len(words) else 0)
    return both >> shift & (1 << count) - 1


def size(shape):
    return math.prod(shape)


def scheme(config):
    """The weights of a compressed-tensors config."""
    (group,) = config["config_groups"].values()
    return group["weights"]


def block_of(config, scales, shape):
    """Rows and columns of one scale."""
    n, k = shape[-2:]
    if config["quant_method"] == "compressed-tensors":
        args = scheme(config)
        if args["strategy"] == "block":
            return args["block_structure"]
        if args["strategy"] in ("group", "tensor_group"):
            return [1, min(args["group_size"], k)]
    if config.get("weight_block_size"):
        return config["weight_block_size"]
    if size(scales.shape) in (1, size(shape[:-2])) and not (len(scales.shape) >= 2 and scales.shape[-2] == n and n > 1):
        return [n, k]
    return [1, k]


def scaled(config, codes, shape, zeros, scales, global_scale, divide, group=None):
    """Values of a weight whose codes and zero points are lists; zeros has one element for each scale, or is a number."""
    n, k = shape[-2:]
    experts = size(shape[:-2])
    height, width = block_of(config, scales, shape)
    rows, columns = -(-n // height), -(-k // width)
    s = scales.floats()
    g = global_scale.floats() if global_scale else None
    out = array.array("f")
    for e in range(experts):
        effective = s if len(s) == 1 else s[e * rows * columns : (e + 1) * rows * columns]
        if g:
            by = g[e] if len(g) > 1 else g[0]
            effective = [single(x / by if divide else x * by) for x in effective]
        for i in range(n):
            at = (e * n + i) * k
            for j in range(k):
                place = i // height * columns + (group[j] if group else j // width)
                zero = zeros if isinstance(zeros, int) else zeros[e * rows * columns + place]
                value = codes[at + j] if zero == 0 else codes[at + j] - zero
                out.append(value * effective[place if len(effective) > 1 else 0])
    return out


def packed_integers(config, part):
    """compressed-tensors: integers in words along a row, zero points in words along a column."""
    count = scheme(config)["num_bits"]
    codes, scales = part["_packed"], part["_scale"]
    shape = part["_shape"].integers()
    n, k = shape[-2:]
    words, width = codes.words(), codes.shape[-1]
    values = []
    for row in range(size(shape[:-1])):
        own = words[row * width : (row + 1) * width]
        values += [bits(own, j * count, count) for j in range(k)]
    zeros = 1 << count - 1
    if "_zero_point" in part:
        t = part["_zero_point"]
        packed, height, columns = t.words(), t.shape[-2], t.shape[-1]
        zeros = []
        for e in range(size(shape[:-2])):
            own = packed[e * height * columns : (e + 1) * height * columns]
            zeros += [bits(own[g::columns], i * count, count) for i in range(n) for g in range(columns)]
    group = None
    if "_g_idx" in part and -1 not in part["_g_idx"].integers():
        group = part["_g_idx"].integers()
    return shape, scaled(config, values, shape, zeros, scales, None, False, group)


def four_bits(config, codes, scales, global_scale, divide):
    """FP4, the even input in the low half of a byte."""
    shape = codes.shape[:-1] + [2 * codes.shape[-1]]
    values = [E2M1[c] for byte in codes.data for c in (byte & 15, byte >> 4)]
    width = {True: 16, False: 32}[scales.dtype == "F8_E4M3"]
    config = {"quant_method": "", "weight_block_size": [1, width]}
    return shape, scaled(config, values, shape, 0, scales, global_scale, divide)


def gptq(config, part):
    count = config["bits"]
    codes, zeros, scales = part["qweight"], part["qzeros"], part["scales"]
    groups, n = scales.shape
    k = codes.shape[0] * 32 // count
    words, packed, s = codes.words(), zeros.words(), scales.floats()
    index = part["g_idx"].integers() if "g_idx" in part else [j // (k // groups) for j in range(k)]
    less = 0 if config.get("checkpoint_format") == "gptq_v2" else 1
    width = zeros.shape[1]
    zero = [[bits(packed[g * width : (g + 1) * width], i * count, count) + less for i in range(n)] for g in range(groups)]
    out = array.array("f")
    for i in range(n):
        column = words[i::n]
        for j in range(k):
            g = index[j]
            out.append((bits(column, j * count, count) - zero[g][i]) * s[g * n + i])
    return [n, k], out


def awq(config, part):
    codes, zeros, scales = part["qweight"], part["qzeros"], part["scales"]
    groups, n = scales.shape
    k = codes.shape[0]
    group = k // groups
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # the output in each 4 bits of a word

    def unpack(t, row):
        words = struct.unpack_from("<%dI" % (n // 8), t.data, row * n // 2)
        line = [0] * n
        for i, word in enumerate(words):
            for slot, output in enumerate(order):
                line[8 * i + output] = word >> 4 * slot & 15
        return line

    rows, zero, s = [unpack(codes, j) for j in range(k)], [unpack(zeros, g) for g in range(groups)], scales.floats()
    out = array.array("f")
    for i in range(n):
        for j in range(k):
            g = j // group
            out.append((rows[j][i] - zero[g][i]) * s[g * n + i])
    return [n, k], out


def one_byte(config, part, codes):
    """FP8 and INT8, codes and scales of one weight."""
    scales = part.get("_scale") or part.get("_scale_inv")
    zeros = 0
    if codes.dtype == "F8_E4M3":
        values = [E4M3[c] for c in codes.data]
    else:
        values = codes.integers()
        if "_zero_point" in part:
            zeros = part["_zero_point"].integers()
    return codes.shape, scaled(config, values, codes.shape, zeros, scales, None, False)


def weights(config, tensors):
    """Yields the name, shape and values of each quantised weight."""
    method = config["quant_method"]
    for name, codes in sorted(tensors.items()):
        module, _, last = name.rpartition(".")
        beside = {other[len(module) + 1 :]: t for other, t in tensors.items() if other.rpartition(".")[0] == module}
        if last == "qweight":
            yield module + ".weight", *(awq if method == "awq" else gptq)(config, beside)
            continue
        for end in ("_packed", "_blocks", ""):
            if not name.endswith(end):
                continue
            base = name[: len(name) - len(end)]
            part = {other[len(base) :]: t for other, t in tensors.items() if other.startswith(base)}
            if end == "_packed" and codes.dtype == "I32":
                yield base, *packed_integers(config, part)
            elif end == "_packed":
                yield base, *four_bits(config, codes, part["_scale"], part.get("_global_scale"), True)
            elif end == "_blocks":
                flat = Tensor(codes.dtype, codes.shape[:-2] + [codes.shape[-2] * 16], codes.data)
                yield base, *four_bits(config, flat, part["_scales"], None, False)
            elif codes.dtype == "U8" and "_scale_2" in part:
                yield base, *four_bits(config, codes, part["_scale"], part["_scale_2"], False)
            elif codes.dtype in ("F8_E4M3", "I8") and ("_scale" in part or "_scale_inv" in part):
                yield base, *one_byte(config, part, codes)
            break


def digest(values):
    if sys.byteorder == "big":
        values.byteswap()
    data = bytearray(values.tobytes())
    for i, x in enumerate(values):
        if x != x:
            struct.pack_into("<I", data, 4 * i, 0x7FC00000)
    return hashlib.sha256(data).hexdigest()


def main(folders):
    result = {}
    for folder in folders:
        own = {}
        for name, shape, values in weights(*read_folder(folder)):
            assert len(values) == size(shape), name
            own[name] = {"shape": shape, "sha256": digest(values)}
        result[folder] = own
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
