package bench

// These notes explain the tables of docs/measured.md.
const (
	patternNotes = `
- Both columns keep the order of the early readings, except for neighbours that differ by about a point. In the
  stationary role nearly all new readings are higher, by 1.2 points on average. In the streaming role they are higher by
  0.1 points.
- All rows but zeros in the stationary role, and eight of twelve in the streaming role, draw 692 W, the cap.
  At the cap, energy and time fall together, and the clock rises. The other rows draw less, but the driver still
  limits their clock because of power (for example to 1.7 GHz at 545 W). Reports call both cases capped.
- It is not settled why the readings changed. One cause is visible here: a load at the cap that follows
  zeros first exceeds the cap by 30 W, and its power oscillates for 3 s (clock 1380 to 1515 MHz). The early readings used
  windows of 0.7 s right after such a change, so their baseline is wrong by several per cent. Today's meter runs the
  load for 3 s first.
- With stationary weights, rows in runs of four use as much energy as random rows (1.000 ± 0.004). With streaming
  weights they use 17 % less. Equal neighbouring rows save energy in the streaming slot only.
- The saving of multiples of a power of two depends on the step, here 2⁻⁶ at σ = 0.02. The step of the early
  reading is not known.
- Absolute values save 2.6 % ± 0.4 of energy in the streaming slot; the early reading was 1 %.
`
	layerNotes = `
- Prefill: zeros (stationary) and reordering agree with the early readings. Rounding and grids save
  50 to 80 % as much as in the early readings. The card drew 692 W in every row but zeros, so energy falls
  only as much as time does. With the default recipe, kinds of layers below the cap save 6 % of energy, and those at
  the cap 2.5 to 4 % (see *The default recipe*). If the early readings were taken below the cap, that explains the
  difference. At the cap, energy × time shows more of the saving: 0.942 for ` + "`round=4`" + ` in the stationary role.
- Decode: every rounding saves about twice as much energy as in the early readings, 8.3 % for ` + "`round=4`" + `.
  Here the card draws 487 W at 1.98 GHz and reads 3.0 TB/s of weights. The early readings were taken
  at 670 W, presumably with other shapes.
- Reordering alone saves 0.2 % ± 0.3 of energy, which is within the error ([ordering.md](ordering.md)).
- Trellis rounding is measured in [frontier.md](frontier.md).
`
	recipeNotes = `
- These models were converted by an earlier version of the recipe, which chose ` + "`round=4`" + ` nearly everywhere. Today's
  recipe chooses ` + "`grid=16`" + ` nearly everywhere ([results.md](results.md)).
- A model fitted to the early readings predicted −5.2 % ± 2.0 of energy in decode, where −8.1 % was measured. The
  built-in cost model came later; [cost.md](cost.md) compares it with these totals.
- Decode in the streaming role (one block) and the rows by kind are less precise than ±0.5 %.

## How it was recorded

`
	recordedNotes = `The first card measured null-60s, pair-1,
pytorch-1 and pytorch-2 (before and after other runs there). The second measured null-20s and the patterns, and the third all
other files. Earlier builds of the same day ran on the first two cards. They wrote the half width of the null comparison
as smallest_effect. The build on the first card could also end a window on a counter step that it saw late. The windows'
lengths show that this did not happen.

` + "```" + `
go build .
python3 bench/activations.py llama-17m acts.safetensors
for p in round=4 round=5 grid=16 grid=8 grid=4 sparsify=0.5 reorder; do
	./lowtoggle convert llama-17m ${p/=/-} --passes $p
done
./lowtoggle convert llama-17m near-lossless
` + "```" + `

Then run the command in each file. Replace the tensors of patterns.safetensors by the patterns
in the table under *Operands have roles*, and its tensor random by normal(0,0.02).
`
)
