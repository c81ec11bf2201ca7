// Package serve compares the energy of servers of language models: joules per token, tokens a second, time to first
// token and inter-token latency of two or more OpenAI-compatible endpoints on the same GPUs.
//
// # Load
//
// [Compare] holds a fixed number of requests in flight on one server at a time. All requests have the same output
// length. Prompts come from a list or are random token ids; in one pass, every server gets the same prompts in the same
// order. Answers are streamed, and the time of every arrival is recorded.
//
// # Windows
//
// A turn of a server has three parts. First the batch fills: each slot's first request is shorter than the others, by a
// different share, so that a server with continuous batching does not begin all prompts at the same time. Then the
// window: it opens at a step of the card's energy counter, after every slot has finished its first request and
// [Options.Settle] has passed. It closes at a later step, when [Options.Window] has passed and every slot has produced
// whole answers. Then the requests in flight end, and no new ones begin. So the window excludes the filling and
// the draining of the batch.
//
// A window is invalid if any request of its turn fails, stalls, or has another number of tokens than asked for. The
// window stays in the result with the reason, and the turn is repeated ([Options.Tries]).
//
// # Statistics
//
// As in package power: a block is one pass over all servers in random order and one in the reverse order. Ratios are
// taken within a pass, and the geometric mean over passes gets a 95 % interval. The null is a server with a copy
// of the baseline's weights.
//
// # Cards
//
// Energy is that of whole cards, with idle servers included. Several cards add up.
package serve
