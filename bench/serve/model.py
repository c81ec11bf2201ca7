"""The model behind server.py. It runs in its own process and answers batches of requests with transformers, greedily.

The process reads requests from a pipe: (number, ids, tokens), or (number, None, 0) once the client has disconnected.
Its first message gives the vocabulary size and the longest sequence. After every step it sends a list of (number, token).
The token is None at the end of an answer, and a text if the answer failed.
"""

import sys

import torch
import transformers

GATHER = 0.02  # seconds without a new request, after which a batch begins


class Request:
    def __init__(self, number, ids, tokens):
        self.number, self.ids, self.tokens = number, ids, tokens
        self.sent = 0
        self.gone = False  # the client has disconnected

    def done(self):
        return self.gone or self.sent == self.tokens


class Model:
    """A model on the GPU that answers requests from a pipe."""

    def __init__(self, folder, device, most, cache, pipe):
        self.device, self.most, self.cache, self.pipe = device, most, cache, pipe
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(device).eval()
        generation = self.model.generation_config
        generation.eos_token_id = None  # answers have the length that was asked for
        generation.pad_token_id = 0
        print(f"transformers {transformers.__version__}, torch {torch.__version__}", flush=True)
        config = self.model.config.get_text_config()
        pipe.send((config.vocab_size, getattr(config, "max_position_embeddings", None) or 1 << 20))
        self.waiting, self.batch = [], []

    def receive(self, seconds):
        """Reads all messages that arrive within some seconds; None: waits for the first message."""
        while self.pipe.poll(seconds):
            number, ids, tokens = self.pipe.recv()
            if ids is not None:
                self.waiting.append(Request(number, ids, tokens))
            for request in self.waiting + self.batch:
                if ids is None and request.number == number:
                    request.gone = True
            seconds = 0

    def gather(self):
        """Chooses the next batch: the oldest request and others whose prompts have the same length."""
        self.batch = []
        while not self.waiting:
            self.receive(None)
        before = 0
        while before < len(self.waiting) < self.most:
            before = len(self.waiting)
            self.receive(GATHER)
        self.waiting = [r for r in self.waiting if not r.gone]
        if self.waiting:
            self.batch = [r for r in self.waiting if len(r.ids) == len(self.waiting[0].ids)][: self.most]
            self.waiting = [r for r in self.waiting if r not in self.batch]

    def work(self):
        while True:
            self.gather()
            if not self.batch:
                continue
            failure = None
            try:
                self.run()
            except Exception as err:  # the clients are told, and the server goes on
                failure = repr(err)
                print(f"a batch of {len(self.batch)} failed: {failure}", file=sys.stderr, flush=True)
            left = [r for r in self.batch if not r.done()]
            self.pipe.send([(r.number, failure or f"the model ended after {r.sent} tokens") for r in left])

    @torch.inference_mode()
    def run(self):
        ids = torch.tensor([r.ids for r in self.batch], device=self.device)
        tokens = max(r.tokens for r in self.batch)
        cache = {"cache_implementation": self.cache} if self.cache else {}
        self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens,
            streamer=Streamer(self), stopping_criteria=transformers.StoppingCriteriaList([Ended(self)]), **cache)

    def send(self, tokens):
        """Sends a step's tokens, one for each request in the batch."""
        steps = []
        for request, token in zip(self.batch, tokens):
            if request.sent < request.tokens:
                steps.append((request.number, token))
                request.sent += 1
                if request.sent == request.tokens:
                    steps.append((request.number, None))
        self.pipe.send(steps)


class Streamer:
    """Passes the tokens of each step on. generate() puts the prompts first."""

    def __init__(self, model):
        self.model, self.prompts = model, True

    def put(self, value):
        if not self.prompts:
            self.model.send(value.reshape(-1).tolist())
        self.prompts = False

    def end(self):
        pass


class Ended(transformers.StoppingCriteria):
    """Ends a batch once every answer is complete or its client has disconnected."""

    def __init__(self, model):
        self.model = model

    def __call__(self, input_ids, scores, **kwargs):
        self.model.receive(0)
        done = all(r.done() for r in self.model.batch)
        return torch.full((input_ids.shape[0],), done, dtype=torch.bool, device=input_ids.device)
