"""TFLOP/s that PyTorch reaches for x[M,K]·w[N,K]ᵀ with random normal operands.

    python3 bench/pytorch.py > tflops.json

BF16 goes through torch.nn.functional.linear, FP8 (E4M3) through torch._scaled_mm with unit scales,
full accumulation and BF16 output. A CUDA graph of 16 products is replayed, first to warm up the card,
then without a pause between two CUDA events. The types are measured in turns, twice by default, to
show a drift of the card. Mean power comes from NVML's energy counter, and is null if pynvml (package
nvidia-ml-py) is not installed. Needs PyTorch and a CUDA GPU with FP8.

This file must not be called torch.py: the scripts beside it would then import it as PyTorch.
"""

import argparse
import ctypes
import json
import math
import sys
import time

try:
    import torch
except ImportError as err:
    sys.exit(f"PyTorch cannot be imported ({err}): install it (pip install torch), or run this with the python3 that has it")

PRODUCTS = 16  # in one graph: some 10 ms of work, so that launching never idles the card


def normal(rows, cols, sigma, dtype):
    return (sigma * torch.randn(rows, cols, device="cuda")).to(dtype)


def bf16(m, n, k, sigma):
    """Returns a function that multiplies once, with new x and w."""
    x, w = normal(m, k, 1, torch.bfloat16), normal(n, k, sigma, torch.bfloat16)
    return lambda: torch.nn.functional.linear(x, w)


def fp8(m, n, k, sigma):
    x, w = normal(m, k, 1, torch.float8_e4m3fn), normal(n, k, sigma, torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(
        x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=False
    )


class Products:
    """A captured graph of products of one type."""

    def __init__(self, multiply):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # libraries allocate on first use, which a capture forbids
            for _ in range(3):
                multiply()
        torch.cuda.current_stream().wait_stream(stream)
        self.multiply, self.graph = multiply, torch.cuda.CUDAGraph()  # multiply keeps x and w alive
        with torch.cuda.graph(self.graph):
            for _ in range(PRODUCTS):
                self.y = multiply()

    def replay_for(self, seconds):
        """Replays for about that many seconds; returns the seconds of one replay."""
        count, start = 0, time.monotonic()
        while count == 0 or time.monotonic() - start < seconds:
            self.graph.replay()
            torch.cuda.synchronize()
            count += 1
        return (time.monotonic() - start) / count

    def reading(self, warm, seconds, flop, energy):
        replays = max(1, round(seconds / self.replay_for(warm)))
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(replays):
            self.graph.replay()
        end.record()
        watts = energy and mean_power(energy, seconds / 2, end)
        end.synchronize()
        if not self.y.isfinite().all():
            sys.exit("a product has infinities or NaNs, so its speed is not valid: pass a smaller --w-sigma or --w-sigma8")
        took = start.elapsed_time(end) / 1e3
        count = PRODUCTS * replays
        return {"tflops": count * flop / took / 1e12, "seconds": took, "products": count, "watts": watts}


def energy_counter():
    """Returns a function that reads the card's energy counter in joules; None without a counter."""
    try:
        import pynvml

        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
        pynvml.nvmlDeviceGetTotalEnergyConsumption(card)
    except Exception:  # no pynvml, or one that cannot: power is extra
        return None
    return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(card) / 1e3


def mean_power(energy, seconds, end):
    """Returns mean watts over about that many seconds; None if the card reached end before."""

    def step():  # the counter moves about every 100 ms: only then does it belong to a moment
        before = energy()
        while (now := energy()) == before and not end.query():
            pass
        return now, time.monotonic()

    first, began = step()
    time.sleep(seconds)
    last, ended = step()
    return None if end.query() else (last - first) / (ended - began)


def cublas_version():
    """Returns the version of PyTorch's cuBLASLt, such as "13.1.0"; None if it is not found."""
    try:
        lib = ctypes.CDLL("libcublasLt.so." + torch.version.cuda.split(".")[0])
    except OSError:
        return None
    lib.cublasLtGetVersion.restype = ctypes.c_size_t
    v = lib.cublasLtGetVersion()
    return f"{v // 10000}.{v // 100 % 100}.{v % 100}"


def positive(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def options():
    p = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, means in ("m", "rows of x"), ("n", "rows of w"), ("k", "columns of both"):
        p.add_argument("--" + name, type=int, default=8192, help=means)
    p.add_argument("--w-sigma", type=positive, default=0.02, help="standard deviation of w in BF16 (default: %(default)s)")
    p.add_argument("--w-sigma8", type=positive, default=1.0, help="standard deviation of w in FP8, where 0.02 would be subnormal (default: %(default)s)")
    p.add_argument("--warm", type=positive, default=4.0, help="seconds of warm-up before each reading")
    p.add_argument("--seconds", type=positive, default=6.0, help="seconds of each reading")
    p.add_argument("--turns", type=int, default=2, help="readings of each type")
    p.add_argument("--seed", type=int, default=0, help="chooses the random numbers")
    o = p.parse_args()
    if min(o.m, o.n, o.k, o.turns) < 1 or o.n % 16 or o.k % 16:
        p.error("--m, --n, --k and --turns are at least 1; FP8 needs --n and --k to be multiples of 16")
    return o


def main():
    o = options()
    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} finds no CUDA GPU: run this where nvidia-smi lists one")
    if torch.cuda.get_device_capability() < (8, 9):
        sys.exit(f"{torch.cuda.get_device_name()} has no FP8 tensor cores: use an Ada, Hopper or later GPU")
    torch.manual_seed(o.seed)
    types = {
        "bf16": ({"call": "torch.nn.functional.linear", "x_sigma": 1, "w_sigma": o.w_sigma}, bf16),
        "fp8": ({"call": "torch._scaled_mm", "x_sigma": 1, "w_sigma": o.w_sigma8, "fast_accum": False}, fp8),
    }
    products = {t: Products(make(o.m, o.n, o.k, about["w_sigma"])) for t, (about, make) in types.items()}
    readings = {t: [] for t in types}
    energy = energy_counter()
    for _ in range(o.turns):
        for t in types:
            readings[t].append(products[t].reading(o.warm, o.seconds, 2 * o.m * o.n * o.k, energy))
    report = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cublas": cublas_version(),
        "command": " ".join(["python3 bench/pytorch.py"] + sys.argv[1:]),
        "product": {"m": o.m, "n": o.n, "k": o.k},
        "types": {t: about | {"readings": readings[t]} for t, (about, _) in types.items()},
    }
    json.dump(report, sys.stdout, indent=2)
    print()


main()
