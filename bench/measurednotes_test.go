package bench

// What the tables of docs/measured.md mean, beside them on the page.
const (
	patternNotes = `
- Both tables keep the order of the first readings, but for neighbours that a point or so parts. In the
  stationary role nearly all new ones lie higher, by 1.2 points on average, in the streaming role
  by 0.1.
- All rows but zeros in the stationary role, and eight of twelve streaming ones, draw 692 W, the cap:
  energy and time fall together there, and the clock rises. The others draw less, and the driver
  holds their clock down for power all the same (at 545 W to 1.7 GHz): reports call both capped.
- Why the readings moved is not settled. One cause can be seen here: a load at the cap that follows
  zeros first exceeds it by 30 W and swings for 3 s (clock 1380 to 1515 MHz). Windows of 0.7 s right
  after such a change, as the first readings had, read the baseline too high or too low by
  per cents; this meter lets the load run for 3 s first.
- Rows in runs of four cost what random rows do where weights are stationary (1.000 ± 0.004) and
  save 17 % where they stream: what follows one another counts in the streaming slot alone.
- The saving of multiples of a power of two depends on the step, here 2⁻⁶ at σ = 0.02; the first
  reading's is not known.
- Absolute values do save in the streaming slot: 2.6 % ± 0.4, not 1 %.
`
	layerNotes = `
- Prefill: zeros (stationary) and reordering agree with the first readings; rounding and grids save
  50 to 80 % of what they did there. The card drew 692 W in every row but zeros, so that energy falls
  only as time does. Kinds of layers that run below that save 6 % by the default recipe and those at
  it 2.5 to 4 % (next table): first readings below the cap would explain it.
  Energy times time is the fairer measure at the cap: 0.942 for ` + "`round=4`" + ` in the stationary role.
- Decode: every rounding saves about twice what it did in the first readings, 8.3 % for ` + "`round=4`" + `.
  Here the card draws 487 W at 1.98 GHz and reads 3.0 TB/s of weights; the first readings were taken
  at 670 W, which other shapes must have drawn.
- Reordering alone saves 0.2 % ± 0.3: nothing that could be told from none.
- The rows on trellis rounding in the design notes have no counterpart yet: there is no such pass.
`
	recipeNotes = `
- A predictor read off the first readings said −5.2 % ± 2.0 in decode, where −8.1 % was measured. The
  model that is built in since is held against these totals in [cost.md](cost.md).
- Not as narrow as ±0.5 %: decode in the streaming role (one block) and the rows by kind.

## How it was recorded

The runs in bench/results/h200 took place on three cards of one kind, on 2026-11-21. null-60s, pair-1,
pytorch-1 and pytorch-2 (before and after other runs there) are from the first card, null-20s and the patterns from the
second, all others from the third. Those of the first two cards were recorded by earlier builds of the
same day: smallest_effect is the null's half width there, and on the first card windows could still
end on a step of the counter that was seen late (none of these did, by their lengths).

` + "```" + `
go build .
python3 bench/activations.py llama-17m acts.safetensors
for p in round=4 round=5 grid=16 grid=8 grid=4 sparsify=0.5 reorder; do
	./lowtoggle convert llama-17m ${p/=/-} --passes $p
done
./lowtoggle convert llama-17m near-lossless
` + "```" + `

and then the command that each file names. In place of tensors of patterns.safetensors, give the patterns
in the table under *Operands have roles*, and normal(0,0.02) for its tensor random.
`
)
