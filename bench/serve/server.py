"""A small OpenAI-compatible server built on transformers, for measurements without vLLM.

    python3 bench/serve/server.py MODEL --port-file port.txt

It has GET /v1/models, GET /health and POST /v1/completions with "stream": true. A prompt is text or a list of
token ids; a model folder without a tokenizer takes ids only. Answers are greedy and never end before max_tokens.

Requests whose prompts have the same length run as one batch, from the first token to the last. Requests
that arrive meanwhile wait for the next batch: there is no continuous batching. The server listens on loopback only, at a
free port that it writes to --port-file once the model is loaded. Made for transformers 4.56 and later with torch 2.11.
"""

import argparse
import json
import os
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
import transformers
from transformers.generation.streamers import BaseStreamer

GATHER = 0.01  # seconds in which the requests of a batch arrive
MOST_BYTES = 64 << 20  # of a request


class Refused(Exception):
    """A request that cannot be served; its text goes to the client with status 400."""


class Request:
    """A completion in progress. The batch puts token ids, then None; or an exception."""

    def __init__(self, ids, tokens, usage):
        self.ids, self.tokens, self.usage = ids, tokens, usage
        self.out = queue.SimpleQueue()
        self.gone = False  # the client has closed the connection
        self.sent = 0

    def put(self, token):
        if self.sent < self.tokens:
            self.out.put(token)
            self.sent += 1
            if self.sent == self.tokens:
                self.out.put(None)


class Streamer(BaseStreamer):
    """Passes the tokens of each step to the requests of a batch. generate() puts the prompts first."""

    def __init__(self, batch):
        self.batch, self.prompts = batch, True

    def put(self, value):
        if self.prompts:
            self.prompts = False
            return
        for request, token in zip(self.batch, value.reshape(-1).tolist()):
            request.put(token)

    def end(self):
        pass


class Abandoned(transformers.StoppingCriteria):
    """Ends a batch whose clients have all disconnected."""

    def __init__(self, batch):
        self.batch = batch

    def __call__(self, input_ids, scores, **kwargs):
        done = all(r.gone or r.sent >= r.tokens for r in self.batch)
        return torch.full((input_ids.shape[0],), done, dtype=torch.bool, device=input_ids.device)


class Model:
    """A model on the GPU and the thread that runs its batches."""

    def __init__(self, folder, device, most, cache):
        self.device, self.most, self.cache = device, most, cache
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
        config = self.model.config.get_text_config() if hasattr(self.model.config, "get_text_config") else self.model.config
        self.vocabulary = config.vocab_size
        self.longest = getattr(config, "max_position_embeddings", None) or 1 << 20
        self.tokenizer = None
        if any(os.path.exists(os.path.join(folder, name)) for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        generation = self.model.generation_config
        generation.eos_token_id = None  # answers have the length that was asked for
        generation.pad_token_id = 0
        self.requests = queue.Queue()
        self.waiting = []
        threading.Thread(target=self.work, daemon=True).start()

    def ids(self, prompt):
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise Refused("the model folder has no tokenizer: give the prompt as a list of token ids")
            prompt = self.tokenizer(prompt)["input_ids"]
        if not isinstance(prompt, list) or not prompt or not all(type(i) is int for i in prompt):
            raise Refused("prompt: want text or a list of token ids")
        if not all(0 <= i < self.vocabulary for i in prompt):
            raise Refused(f"prompt: token ids must be below the vocabulary's {self.vocabulary}")
        return prompt

    def text(self, token):
        text = self.tokenizer.decode([token]) if self.tokenizer else ""
        return text or f" {token}"

    def gather(self):
        """The next batch: the oldest request and others with prompts of its length."""
        if not self.waiting:
            self.waiting.append(self.requests.get())
        end = time.monotonic() + GATHER
        while len(self.waiting) < self.most:
            try:
                self.waiting.append(self.requests.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                break
        length = len(self.waiting[0].ids)
        batch = [r for r in self.waiting if len(r.ids) == length][: self.most]
        self.waiting = [r for r in self.waiting if r not in batch]
        return batch

    def work(self):
        while True:
            batch = self.gather()
            try:
                self.run(batch)
            except Exception as err:  # the clients are told, and the server goes on
                print(f"a batch of {len(batch)} failed: {err!r}", file=sys.stderr, flush=True)
                for request in batch:
                    request.out.put(err)

    @torch.inference_mode()
    def run(self, batch):
        ids = torch.tensor([r.ids for r in batch], device=self.device)
        tokens = max(r.tokens for r in batch)
        cache = {"cache_implementation": self.cache} if self.cache else {}
        self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens,
            streamer=Streamer(batch), stopping_criteria=transformers.StoppingCriteriaList([Abandoned(batch)]), **cache)
        for request in batch:
            if request.sent < request.tokens:  # it is gone, or generate() ended early
                request.out.put(RuntimeError(f"the model ended after {request.sent} tokens"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # buffered: an event is one packet, flushed at its end
    disable_nagle_algorithm = True
    model = None
    name = ""

    def log_message(self, format, *args):
        pass  # one line a request is too much; failures are printed

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": self.name, "object": "model"}]})
        elif self.path == "/health":
            self.reply(200, {})
        else:
            self.reply(404, {"error": {"message": "no such path"}})

    def do_POST(self):
        try:
            request = self.parse()
        except Refused as err:
            self.close_connection = True
            self.reply(400, {"error": {"message": str(err)}})
            return
        self.model.requests.put(request)
        try:
            self.stream(request)
        except OSError:  # the client has closed the connection
            request.gone = True
            self.close_connection = True

    def parse(self):
        if self.path != "/v1/completions":
            raise Refused("this server has /v1/completions only")
        size = int(self.headers.get("Content-Length") or 0)
        if size > MOST_BYTES:
            raise Refused(f"a request may have {MOST_BYTES} bytes")
        try:
            q = json.loads(self.rfile.read(size))
        except ValueError as err:
            raise Refused(f"not JSON: {err}") from err
        if not isinstance(q, dict) or not q.get("stream"):
            raise Refused('want a JSON object with "stream": true')
        tokens = q.get("max_tokens", 16)
        if type(tokens) is not int or tokens < 1:
            raise Refused("max_tokens: want a number from 1 on")
        ids = self.model.ids(q.get("prompt"))
        if len(ids) + tokens > self.model.longest:
            raise Refused(f"{len(ids)} tokens of prompt and {tokens} of answer exceed the model's {self.model.longest}")
        return Request(ids, tokens, bool((q.get("stream_options") or {}).get("include_usage")))

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, request):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        n = 0
        while (token := request.out.get()) is not None:
            if isinstance(token, Exception):
                self.event(json.dumps({"error": {"message": repr(token)}}))
                break
            n += 1
            choice = {"index": 0, "text": self.model.text(token), "finish_reason": "length" if n == request.tokens else None}
            self.event(json.dumps({"object": "text_completion", "model": self.name, "choices": [choice]}))
        if request.usage:
            usage = {"prompt_tokens": len(request.ids), "completion_tokens": n, "total_tokens": len(request.ids) + n}
            self.event(json.dumps({"object": "text_completion", "model": self.name, "choices": [], "usage": usage}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that has gone is no error
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of the model")
    parser.add_argument("--port", type=int, default=0, help="port on loopback; 0: a free one")
    parser.add_argument("--port-file", help="written when the server is ready")
    parser.add_argument("--device", default="cuda", help="torch's name of the device")
    parser.add_argument("--batch", type=int, default=256, help="most requests in a batch")
    parser.add_argument("--cache", default=None, help="cache_implementation of generate(): static compiles the model")
    a = parser.parse_args()
    Handler.model = Model(a.model, a.device, a.batch, a.cache)
    Handler.name = os.path.basename(os.path.normpath(a.model))
    server = Server(("127.0.0.1", a.port), Handler)
    port = server.server_address[1]
    print(f"{a.model} on http://127.0.0.1:{port}, transformers {transformers.__version__}, torch {torch.__version__}", flush=True)
    if a.port_file:
        with open(a.port_file + ".partial", "w") as f:
            f.write(f"{port}\n")
        os.rename(a.port_file + ".partial", a.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
