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
Batch 64 saves only %.1f %%. The first reason is measured, the second is inferred:

- **Measured.** Attention reads the KV cache of every sequence. The linear layers' share of the energy falls to %.0f %%.
- **Inferred.** The measured facts: with the source the card is at its power limit and runs at %.0f MHz. With the converted model it runs
  at %.0f MHz, and the time per token falls by only %.1f %%. Our explanation: fewer bits toggle, so the limit allows a higher clock. Each
  operation takes more energy at a higher clock, and the step waits for memory, so it is hardly faster. The higher clock then spends
  much of the saving. No measurement separates this from other reasons. Both models at one fixed clock would.
`, -change(r.Relative), 100*r.step.LinearEnergy, *r.step.Before.SMClock, *r.After.SMClock, -change(r.RelativeTime))
}

// billLine is a line of the table of billSection.
type billLine struct {
	use, recipe string
	row         *wholeRow
}

// billSection writes how to compute a recipe's saving on an energy bill.
func (p wholePages) billSection(b *bytes.Buffer, t *testing.T) {
	batch64 := slices.IndexFunc(p.byBatch(), func(r wholeRow) bool { return r.step.Batch == 64 })
	fmt.Fprintf(b, `
## Your bill

Find your use and recipe. The recipes themselves were not measured on a whole model. Each line is the plan with the nearest output
SNR: `+"`round=4`"+` for the default (`+"`near-lossless`"+`), and `+"`grid=4`"+` for `+"`balanced`"+`. Every figure is the change of energy per token.

| use | recipe | plan that was measured | linear layers, computed | their share of the card's energy | whole model on the card, measured | full server, computed |
|---|---|---|---|---|---|---|
`)
	prefill, decode := "prefill, 4096 tokens, at the cap", "decode, batch 16, below the cap"
	for _, l := range []billLine{
		{prefill, "default", p.prefill.row("round=4")}, {prefill, "balanced", p.prefill.row("grid=4")},
		{decode, "default", p.decode.row("round=4")}, {decode, "balanced", p.decode.row("scale=uncached,grid=4")},
		{"decode, batch 64, at the cap", "balanced", &p.byBatch()[batch64]},
	} {
		r := l.row
		fmt.Fprintf(b, "| %s | %s | `%s` | %s %% | %.0f %% | **%s %%** | **%s %%** |\n", l.use, l.recipe, r.Passes, signed(change(r.Relative)/r.step.LinearEnergy, 1),
			100*r.step.LinearEnergy, signed(change(r.Relative), 1), signed(atCap(r.Relative, r.RelativeTime), 1))
	}
	share := p.prefill.Energy.Steps[0].LinearEnergy
	for _, c := range cardTable(t, recorded+"cards") {
		if recipe := map[string]string{"round=4": "default", "grid=4": "balanced"}[c.plan]; recipe != "" && c.phase == "prefill below the cap" {
			e, _ := c.effects()
			fmt.Fprintf(b, "| prefill below the cap | %s | `%s` | %s %%, [measured on one layer](cards.md) | %.0f %%, taken from prefill at the cap | not measured; %s %% by the share | %s %% |\n",
				recipe, c.plan, signed(e.Mean, 1), 100*share, signed(share*e.Mean, 1), signed(serverShare*share*e.Mean, 1))
		}
	}
	before, after := p.prefill.Energy.Steps[0], p.decode.Energy.Steps[0]
	prompt, output := 10*before.Before.Joules*before.LinearEnergy, after.Before.Joules*after.LinearEnergy
	fmt.Fprintf(b, `
Not measured: the default at batch 64.

The arithmetic, for a model of your own:

1. Take the saving of your linear layers, from `+"`lowtoggle predict --w MODEL: --against OUT:`"+` (with `+"`--workload decode`"+` for decode).
2. Multiply it by the linear layers' share of the card's energy. This is the saving of the whole model on the card. `+"`verify MODEL OUT --gpu --whole`"+`
   measures share and saving.
3. Multiply by the cards' share of the server's power: %.0f %% for a full one. This is the saving of the server below the cap. At the cap, add
   the other %.0f %% times the time that is saved.
4. If prefill and decode share your cards, weight both savings by their parts of the energy.

The shares in `+"`--workload prefill=A,decode=B`"+` are such parts: of the energy of the original model's linear layers, not of time or tokens. With the
energies of the first table and 10 prompt tokens for each generated token, prefill takes 10 × %s mJ × %.0f %% and decode %s mJ × %.0f %%:
`+"`--workload prefill=%.2f,decode=%.2f`"+`.
`, 100*serverShare, 100-100*serverShare, millijoules(before.Before.Joules), 100*before.LinearEnergy, millijoules(after.Before.Joules), 100*after.LinearEnergy,
		prompt/(prompt+output), output/(prompt+output))
}
