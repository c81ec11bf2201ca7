package bench

// These texts stand between the tables of docs/cards.md.
const (
	cardsIntroduction = `# How much do savings differ from card to card?

Generated from [bench/results/h200](../bench/results/h200) by ` + "`go test ./bench -run CardsPage -update`" + `. All %d cards are
NVIDIA H200s with the same driver and power limit. An id such as H200-04df names a card: four hex digits of a hash of
its UUID (` + "`power.Info.ID`" + `). Reports and JSON documents contain it.

The same weights save different shares of energy on different cards of one kind. The interval of a single run does
not contain this difference. In the older records below, the standard deviation between cards is

- %.0f %% of a plan's saving in prefill (%d cards),
- %.0f %% of a plan's saving in decode (%d cards),
- %.0f %% of the saving of all-zero weights (%d cards).

The saving on another card may therefore differ from a page's figure by ± %.0f %% of that figure in prefill and by
± %.0f %% in decode (two standard deviations of a difference). Pages compare plans within one run, on one card.

Decode runs below the power cap. There the joules that a plan saves differ by only %.0f %% between cards. The total energy differs
more, and the saving is a share of it. Prefill runs at the cap. There the saved joules differ by %.0f %%, as much as the shares.

![Energy saved by the same plan on several cards](cards.svg)

**Energy** is relative to the same product with its original weights. **Mean of all cards** is the
confidence interval of the mean over all cards of this kind. **A new card** is the prediction interval for one more card.
Both come from a random-effects model (` + "`stats.Combine`" + `: Paule and Mandel's variance between cards, Hartung and Knapp's
interval, Student's prediction interval). **Between cards** is the standard deviation between cards in percentage points,
without the error of the runs. Rows of only two cards have no intervals, because two values give a poor estimate of a spread.
`
	cardsMeasured = `An 8192×8192 layer of normal weights in BF16, x normal(0,1), stationary. *Prefill* has 8192 tokens, back to back
(at the power cap) or in bursts with gaps (*below the cap*). *Decode* has 16 tokens and reads the weights from memory, which draws
less than the cap. All plans have the same address in memory. The records are of %d cards, on these days: %s.
`
	cardsRecorded = `
### How precise a record is

A block measures a plan in two windows. After one block the interval of a plan has one degree of freedom, so its width varies much
by chance. The standard error below is therefore pooled over all plans of a run. It includes the distance of the copy from zero.
*Copy* is the reading of the same weights in the same place, which should be zero. *Expected between cards* is the standard deviation of
` + "`grid=4`" + ` between cards in percentage points, if cards differ by the same share of the saving as in the older records (in bursts, by that of
prefill). With the *blocks needed*, the standard error is half of that. In %d of the %d runs the card did not reach a steady
state before the first block.

One block shows that a plan saves: %d of the %d savings exceed two standard errors. It cannot rank plans whose savings are
closer than about three standard errors. The plans of a run share the error of the source's readings, so all their savings may be
too large or too small together. A comparison with other cards needs about as many blocks as the table states. Records of one
card cannot show how much cards differ.

| card | phase | blocks | copy | standard error, points | expected between cards | blocks needed |
|---|---|---|---|---|---|---|
%s
`
	cardsCommand = `This command adds a record of one more card. The next ` + "`-update`" + ` includes it. The option is the time for the blocks at
the cap. The blocks below the cap get three times as much, those of decode half:

` + "```" + `
go test ./bench -run GPUCards -cards $PWD/bench/results/h200/cards -cards-time 75s -timeout 20m
` + "```" + `
`
	cardsOlder = `
These runs were made for other pages. Runs of one plan differ in the card, the day, the memory addresses and, for some, the build of
lowtoggle. The difference between cards includes all of these. Each run's error is pooled over its comparisons and its copy, as above.
`
	cardsNotes = `
- *Own inputs* are activations of the model on calibration tokens; *random inputs* are normal(0,1). A plan *for* a percentage is
  the result of a search that may raise perplexity by this percentage.
- The cards of ` + "`round=4`" + ` with random inputs ran at the same time in one host.
- The runs frontier-stationary-1, order-stationary-1 and order-stationary-2 are marked invalid, because their copies read %s to %s.
  They are included, because excluding runs by their copies would bias the result. The errors are also smaller than the
  differences between cards.
- Whole models exchange memory between blocks, so addresses do not contribute to their differences. In decode with
  ` + "`grid=4`" + `: %s.
`
)
