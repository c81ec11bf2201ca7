// Package serve compares the energy of servers of language models. It measures joules per token, tokens per second,
// time to first token and inter-token latency of OpenAI-compatible endpoints on the same GPUs.
//
// # Load
//
// [Compare] keeps a fixed number of requests in flight on one server at a time. All requests have the same output
// length. Prompts come from a list or are random token IDs. In one pass, every server gets the same prompts in the same
// order. Answers are streamed, and the time of every arrival is recorded.
//
// # Windows
//
// A turn of a server has three parts. First the batch fills. Each slot's first request is shorter than later requests,
// by a different share for each slot, so that a server with continuous batching does not start all prompts at the same
// time. Second comes the window. It opens at a step of the card's energy counter, after every slot has finished its
// first request and [Options.Settle] has passed. It closes at a later step, when [Options.Window] has passed and every
// slot has produced whole answers. Third, the requests in flight end, and no new requests start. The window therefore
// excludes the filling and the draining of the batch.
//
// A window is invalid if any request of its turn fails, stalls, or has a wrong number of tokens. An invalid window
// stays in the result with the reason, and the turn is repeated ([Options.Tries]).
//
// # Statistics
//
// As in package power, a block is one pass over all servers in random order and one pass in the reverse order. Ratios
// are taken within a pass. The geometric mean over passes gets a 95 % interval. The null is a server with a copy of the
// baseline's weights.
//
// # Cards
//
// Energy is that of whole cards, including idle servers. The energies of several cards are added.
package serve
