"""A small OpenAI-compatible server built on transformers, for measurements without vLLM.

    python3 bench/serve/server.py MODEL --port-file port.txt

It has GET /v1/models, GET /health and POST /v1/completions with "stream": true. A prompt is text or a list of
token ids; a model folder without a tokenizer takes ids only. Answers are greedy and never end before max_tokens.

Requests whose prompts have the same length run as one batch, from the first token to the last. Requests
that arrive meanwhile wait for the next batch: there is no continuous batching. The model has a process of its own
(model.py), so writing to clients does not delay the next step. The server listens on loopback only, at a
free port that it writes to --port-file once the model is loaded. Made for transformers 4.56 and later with torch 2.11.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_BYTES = 64 << 20  # of a request


class Refused(Exception):
    """A request that cannot be served; its text goes to the client with status 400."""


def work(pipe, *model):
    """The model's process."""
    from model import Model

    try:
        Model(*model, pipe).work()
    except (EOFError, BrokenPipeError, KeyboardInterrupt):  # the server has ended
        pass


class Model:
    """The server's side of the model's process."""

    def __init__(self, folder, *options):
        self.tokenizer = None
        if any(os.path.exists(os.path.join(folder, name)) for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
            import transformers

            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        spawn = multiprocessing.get_context("spawn")
        self.pipe, there = spawn.Pipe()
        self.process = spawn.Process(target=work, args=(there, folder, *options), daemon=True)
        self.process.start()
        there.close()
        try:
            self.vocabulary, self.longest = self.pipe.recv()
        except EOFError:
            sys.exit("the model was not loaded: its process ended; the error is above")
        self.answers, self.numbers = {}, itertools.count()
        self.writing = threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Passes tokens to the requests. If the model's process ends, the server ends, too."""
        try:
            while True:
                for number, token in self.pipe.recv():
                    if answer := self.answers.get(number):
                        answer.put(token)
        except EOFError:
            print("the model's process has ended", file=sys.stderr, flush=True)
            os._exit(1)

    def begin(self, ids, tokens):
        """Starts a request. Returns its number and a queue with the answer's tokens and then None; a text reports a failure."""
        number, answer = next(self.numbers), queue.SimpleQueue()
        self.answers[number] = answer
        with self.writing:
            self.pipe.send((number, ids, tokens))
        return number, answer

    def end(self, number, whole):
        """Forgets a request. If its answer is incomplete, the client has disconnected, and the model is told."""
        del self.answers[number]
        if not whole:
            with self.writing:
                self.pipe.send((number, None, 0))

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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # buffered: an event is one packet, flushed at its end
    disable_nagle_algorithm = True
    model = None
    name = ""

    def log_message(self, format, *args):
        pass  # one line a request is too much; failures are printed

    def reply(self, status, value, close=False):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if close:  # of a request whose body may not be read to its end
            self.send_header("Connection", "close")
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
            self.reply(400, {"error": {"message": str(err)}}, close=True)
            return
        ids, tokens, usage = request
        number, answer = self.model.begin(ids, tokens)
        whole = False
        try:
            self.stream(answer, len(ids), tokens, usage)
            whole = True
        except OSError:  # the client has closed the connection
            self.close_connection = True
        finally:
            self.model.end(number, whole)

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
        return ids, tokens, bool((q.get("stream_options") or {}).get("include_usage"))

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, answer, prompt, tokens, usage):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        n = 0
        while (token := answer.get()) is not None:
            if isinstance(token, str):
                self.event(json.dumps({"error": {"message": token}}))
                break
            n += 1
            choice = {"index": 0, "text": self.model.text(token), "finish_reason": "length" if n == tokens else None}
            self.event(json.dumps({"object": "text_completion", "model": self.name, "choices": [choice]}))
        if usage:
            counts = {"prompt_tokens": prompt, "completion_tokens": n, "total_tokens": prompt + n}
            self.event(json.dumps({"object": "text_completion", "model": self.name, "choices": [], "usage": counts}))
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
    print(f"{a.model} on http://127.0.0.1:{port}", flush=True)
    if a.port_file:
        with open(a.port_file + ".partial", "w") as f:
            f.write(f"{port}\n")
        os.rename(a.port_file + ".partial", a.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
