package bench

// These texts stand between the tables of docs/cards.md.
const (
	cardsIntroduction = `# How much do savings differ from card to card?

Generated from [bench/results/h200](../bench/results/h200) by ` + "`go test ./bench -run CardsPage -update`" + `. All %d cards are
NVIDIA H200s with the same driver and power limit. A card's id, such as H200-04df, ends with four hex digits of a hash of
the card's UUID (` + "`power.Info.ID`" + `). Reports and JSON documents contain the id.

The same weights save different shares of energy on different cards of one kind. The interval of a single run does
not include this difference between cards. The older records show these standard deviations between cards:

- Prefill: %.0f %% of a plan's saving (%d cards).
- Decode: %.0f %% of a plan's saving (%d cards).
- All-zero weights: %.0f %% of the saving (%d cards).

A saving on another card may therefore differ from a page's figure by ± %.0f %% of the figure in prefill and by ± %.0f %% in decode. These
are two standard deviations of a difference. Pages compare plans within one run, on one card.

Decode runs below the power cap. The joules that a plan saves in decode differ by only %.0f %% between cards. The total energy differs
more between cards, so the saved share differs more, too. Prefill runs at the power cap. The joules that a plan saves in prefill differ
by %.0f %% between cards, as much as the saved shares.

![Energy saved by the same plan on several cards](cards.svg)

The tables have these columns:

- **Energy** is relative to the same product with its original weights.
- **Mean of all cards** is the confidence interval of the mean over all cards of this kind.
- **A new card** is the prediction interval for one more card.
- **Between cards** is the standard deviation between cards in percentage points, without the error of the runs.

Both intervals come from a random-effects model (` + "`stats.Combine`" + `). The model uses Paule and Mandel's variance between cards, Hartung and
Knapp's interval, and Student's prediction interval. Rows of only two cards have no intervals, because two values give a poor estimate of
a spread.
`
	cardsMeasured = `The layer has 8192×8192 normal weights in BF16, in the stationary role. The layer's inputs are normal(0,1). *Prefill* has 8192
tokens, back to back (at the power cap) or in bursts with gaps (*below the cap*). *Decode* has 16 tokens and reads the weights from
memory. In decode the card draws less than the cap. All plans have the same address in memory. The records come from %d cards, on these
days: %s.
`
	cardsRecorded = `
### How precise is a record?

A block measures each plan in two windows. After one block the interval of a plan has one degree of freedom, so the interval's width
varies much by chance. The standard error in the table is therefore pooled over all plans of a run. The error includes the distance of
the copy from zero. In %d of the %d runs the card did not reach a steady state before the first block. The table has these columns:

- *Copy* is the reading of the same weights in the same place. The reading should be zero.
- *Expected between cards* is the standard deviation of ` + "`grid=4`" + ` between cards in percentage points. This value assumes that cards differ by
  the same share of the saving as in the older records. The value for bursts uses the share of prefill.
- *Blocks needed* is the number of blocks after which the standard error is half of *expected between cards*.

One block shows that a plan saves energy: %d of the %d savings exceed two standard errors. One block cannot rank plans whose savings are
closer than about three standard errors. The plans of a run share the error of the source's readings. All savings of a run may therefore be
too large or too small together. A comparison with other cards takes about as many blocks as the table states. Records of one
card cannot show how much cards differ.

| card | phase | blocks | copy | standard error, points | expected between cards | blocks needed |
|---|---|---|---|---|---|---|
%s
`
	cardsCommand = `The following command adds a record of one more card. The next run with ` + "`-update`" + ` includes the record. ` + "`-cards-time`" + ` is the time
for the blocks at the cap. The blocks below the cap get three times as much time, the blocks of decode half:

` + "```" + `
go test ./bench -run GPUCards -cards $PWD/bench/results/h200/cards -cards-time 75s -timeout 20m
` + "```" + `
`
	cardsOlder = `
These runs were made for other pages. Runs of one plan differ in the card, the day and the memory addresses. Some runs also differ in the
build of lowtoggle. The difference between cards includes all these differences. Each run's error is pooled over its comparisons and its
copy, as in the previous section.
`
	cardsNotes = `
- *Own inputs* are activations of the model on calibration tokens. *Random inputs* are normal(0,1). A plan *for* a percentage is
  the result of a search that may raise perplexity by this percentage.
- The cards of ` + "`round=4`" + ` with random inputs ran at the same time in one host.
- Three runs are marked invalid, because their copies read %s to %s: frontier-stationary-1, order-stationary-1 and order-stationary-2.
  The table includes these runs, because excluding runs by their copies would bias the result. The copies' errors are also smaller than
  the differences between cards.
- Whole models exchange memory between blocks, so addresses do not contribute to their differences. In decode with
  ` + "`grid=4`" + `, %s.
`
)
