package bench

// These notes explain the tables of docs/measured.md.
const (
	patternNotes = `
- Both columns keep the order of the early readings, except for neighbours that differ by a point or so. In the
  stationary role nearly all new readings are higher, by 1.2 points on average; in the streaming role by 0.1.
- All rows but zeros in the stationary role, and eight of twelve in the streaming role, draw 692 W, the cap.
  Energy and time fall together there, and the clock rises. The other rows draw less, and the driver still
  holds their clock down for power (at 545 W to 1.7 GHz). Reports call both capped.
- Why the readings changed is not settled. One cause is visible here: a load at the cap that follows
  zeros first exceeds the cap by 30 W, and its power swings for 3 s (clock 1380 to 1515 MHz). The early readings used
  windows of 0.7 s right after such a change, which makes the baseline wrong by per cents. Today's meter lets the
  load run for 3 s first.
- Rows in runs of four use as much energy as random rows where weights are stationary (1.000 ± 0.004), and
  17 % less where they stream. Equal neighbours matter in the streaming slot alone.
- The saving of multiples of a power of two depends on the step, here 2⁻⁶ at σ = 0.02. The step of the early
  reading is not known.
- Absolute values do save energy in the streaming slot: 2.6 % ± 0.4, not 1 %.
`
	layerNotes = `
- Prefill: zeros (stationary) and reordering agree with the early readings. Rounding and grids save
  50 to 80 % of what they did there. The card drew 692 W in every row but zeros, so energy falls
  only as time does. Kinds of layers below the cap save 6 % with the default recipe, and those at
  the cap 2.5 to 4 % (next table); early readings below the cap would explain the difference.
  Energy × time is the fairer measure at the cap: 0.942 for ` + "`round=4`" + ` in the stationary role.
- Decode: every rounding saves about twice as much as in the early readings, 8.3 % for ` + "`round=4`" + `.
  Here the card draws 487 W at 1.98 GHz and reads 3.0 TB/s of weights. The early readings were taken
  at 670 W, presumably with other shapes.
- Reordering alone saves 0.2 % ± 0.3, which is not measurable ([ordering.md](ordering.md)).
- Trellis rounding is measured in [frontier.md](frontier.md).
`
	recipeNotes = `
- This is an earlier plan of the recipe, nearly all ` + "`round=4`" + `. Today's plan is nearly all ` + "`grid=16`" + ` ([results.md](results.md)).
- A predictor fitted to the early readings gave −5.2 % ± 2.0 in decode, where −8.1 % was measured. The
  built-in model came later; [cost.md](cost.md) compares it with these totals.
- Less precise than ±0.5 %: decode in the streaming role (one block) and the rows by kind.

## How it was recorded

`
	recordedNotes = `On the first card are null-60s, pair-1,
pytorch-1 and pytorch-2 (before and after other runs there); on the second null-20s and the patterns; on the third all
others. Earlier builds of the same day recorded the first two cards. They took the null's half width as smallest_effect.
On the first card windows could still end on a step of the counter that was seen late; by their lengths, none did.

` + "```" + `
go build .
python3 bench/activations.py llama-17m acts.safetensors
for p in round=4 round=5 grid=16 grid=8 grid=4 sparsify=0.5 reorder; do
	./lowtoggle convert llama-17m ${p/=/-} --passes $p
done
./lowtoggle convert llama-17m near-lossless
` + "```" + `

and then the command in each file. In place of tensors of patterns.safetensors, give the patterns
in the table under *Operands have roles*, and normal(0,0.02) for its tensor random.
`
)
