package bench

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// batchesExplained writes why large batches save less.
func (p wholePages) batchesExplained(b *bytes.Buffer) {
	rows := p.byBatch()
	at := slices.IndexFunc(rows, func(r wholeRow) bool { return r.step.Batch == 64 })
	r := rows[at]
	fmt.Fprintf(b, `
Decode with batch 64 saves only %.1f %% of energy per token. There are two probable reasons:

- **Attention** takes a larger share, because it reads the KV cache of every sequence. The linear layers' measured share of the
  energy falls to %.0f %%.
- **The clock** rises. With the source, the card is at its power limit and runs at %.0f MHz. With the converted model the card
  runs at %.0f MHz. Fewer bits toggle, so the limit allows this higher clock. Each operation then takes more energy. The time per
  token falls by only %.1f %%, because the step waits for memory. So the higher clock probably spends much of the saving. No
  measurement has confirmed this reason yet. To confirm the reason, measure both models at one fixed clock.
`, -change(r.Relative), 100*r.step.LinearEnergy, *r.step.Before.SMClock, *r.After.SMClock, -change(r.RelativeTime))
}

// billSection answers what part of a reader's own bill a recipe saves.
func (p wholePages) billSection(b *bytes.Buffer, t *testing.T) {
	fmt.Fprintf(b, `
## Your bill

Find your use and your recipe in the table. The recipes were measured on the model above on %s. The cards were %s (decode with
batches 16 and 64) and %s (all other rows). Copies of the source differed from the source by %s of energy. The
columns *card* and *full server* give the change of energy per token.

| use | options of `+"`convert`"+` | linear layers' share of energy | card, measured (95 %% interval) | time per token | card's power before | full server, computed |
|---|---|---|---|---|---|---|
`, day(p.recipePrefill.Energy), p.recipeDecode.card(), p.recipe32.card(), nullsOf(p.recipePrefill, p.recipeDecode, p.recipe32))
	rows := slices.Concat(p.recipePrefill.rows(), p.recipeDecode.rows(), p.recipe32.rows())
	slices.SortStableFunc(rows, func(a, b wholeRow) int { return a.step.Batch - b.step.Batch }) // prefill has one sequence
	for _, r := range rows {
		use := fmt.Sprintf("prefill, %d tokens", r.step.Context)
		if r.step.Phase == "decode" {
			use = fmt.Sprintf("decode, batch %d", r.step.Batch)
		}
		at := "below the cap"
		if cappedNote(r.step) != "" {
			at = "at the cap"
		}
		fmt.Fprintf(b, "| %s, %s | `%s` | %.0f %% | **%s %%** (%s) | %s %% | %.0f W | **%s %%** |\n", use, at, r.Passes, 100*r.step.LinearEnergy,
			signed(change(r.Relative), 1), spanOf(r.Interval), signed(change(r.RelativeTime), 1), r.step.Before.Watts, signed(serverChange(&r), 1))
	}
	share := p.recipePrefill.Energy.Steps[0].LinearEnergy
	fmt.Fprintf(b, "\nPrefill below the cap was measured for a single layer, not for a whole model ([cards.md](cards.md)). In prefill at the cap, linear layers take\n%.1f %% of the card's energy (table above). If their share is the same below the cap, a card saves:\n\n", 100*share)
	for _, c := range cardTable(t, recorded+"cards") {
		if recipe := map[string]string{"round=4": "`near-lossless` (the default)", "grid=4": "`balanced`"}[c.plan]; recipe != "" && c.phase == "prefill below the cap" {
			e, _ := c.effects()
			fmt.Fprintf(b, "- %s %% of energy with `%s`, which saves %s %% of the layer's energy. `%[2]s` is about as coarse as %[4]s.\n", printed(1, -share*e.Mean), c.plan, printed(1, -e.Mean), recipe)
		}
	}
	before, after := p.recipePrefill.Energy.Steps[0], p.recipeDecode.Energy.Steps[0]
	prompt, output := 10*before.Before.Joules*before.LinearEnergy, after.Before.Joules*after.LinearEnergy
	fmt.Fprintf(b, `
For a model of your own, `+"`verify MODEL OUT --gpu --whole`"+` measures the card's energy and the time per token. Without a GPU,
estimate the saving in these steps:

1. Take the change of energy of your linear layers from `+"`lowtoggle predict --w MODEL: --against OUT:`"+`, with
   `+"`--workload decode`"+` for decode. For prefill below the power cap, take the change that predict prints for a lightly
   loaded card instead. For layers of 8192² this prediction agrees with the measurement above. For smaller layers the
   predicted saving is larger. No measurement has tested this larger saving.
2. Multiply this change by the linear layers' share of energy in the table, in the row of your phase and batch size. The result
   is the change of the card's energy. Without a GPU, the share of another model cannot be measured. Larger batches and longer
   contexts lower the share, because attention then takes more energy. Smaller hidden sizes lower the share, too. The work of linear
   layers grows with the square of the hidden size. The work of attention grows only in proportion to the hidden size.
   Predictions for decode hold below the power cap. In the table, decode with batch 16 or 32 is below the cap. Decode with batch 64
   is at the cap and saves less.
3. For a server below the cap, multiply by the cards' share of the server's power: 8 × W / (8 × W + %.1f kW), if each card
   draws W.
4. For a server in prefill at the cap, use the change of the card's energy. In this case energy and time fall by about the same share.
5. If prefill and decode share your cards, weight the two changes by the shares of prefill and decode in the energy.

A card is at its power cap if `+"`nvidia-smi -q -d PERFORMANCE`"+` prints `+"`SW Power Cap : Active`"+` under your load. The card's power is
then close to its limit: `+"`nvidia-smi --query-gpu=power.draw,power.limit --format=csv`"+` prints both.

`+"`--workload prefill=A,decode=B`"+` takes shares of the energy of the original model's linear layers, not of time or tokens. As
an example, take the energies of these runs, and 10 prompt tokens for each generated token. Per generated token, prefill then
takes 10 × %s mJ × %.0f %%, and decode takes %s mJ × %.0f %%. The option is then `+"`--workload prefill=%.2f,decode=%.2f`"+`.
The numbers of tokens are in a server's metrics: in vLLM, `+"`vllm:prompt_tokens_total` and `vllm:generation_tokens_total`"+`.
`+"`verify MODEL OUT --gpu --whole`"+` measures the energies per token of your own model.

Some servers, such as vLLM with chunked prefill, put a part of a prompt and tokens of other requests into one step. The products of
such a step have the size of all its tokens. A step of more than 256 tokens counts as prefill, with all its tokens. A step of at
most 256 tokens counts as decode.
`, serverRest/1e3, millijoules(before.Before.Joules), 100*before.LinearEnergy, millijoules(after.Before.Joules), 100*after.LinearEnergy,
		prompt/(prompt+output), output/(prompt+output))
}

// nullsOf returns the range of the copies' changes of energy.
func nullsOf(records ...wholeRecord) string {
	var all []float64
	for _, r := range records {
		for _, s := range r.Energy.Steps {
			all = append(all, change(s.Run.Null.RelativeEnergy))
		}
	}
	return fmt.Sprintf("%s to %s %%", signed(slices.Min(all), 2), signed(slices.Max(all), 2))
}
