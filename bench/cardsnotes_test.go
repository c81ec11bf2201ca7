package bench

// These texts stand between the tables of docs/cards.md.
const (
	cardsIntroduction = `# How savings differ from card to card

Generated from [bench/results/h200](../bench/results/h200) by ` + "`go test ./bench -run CardsPage -update`" + `. All %d cards are
NVIDIA H200s with the same driver and power limit. An id such as H200-04df names a card: four hex digits of a hash of
its UUID (` + "`power.Info.ID`" + `). Reports and JSON documents have it, too.

The same weights save different shares of energy on different cards of one kind. The interval of a single run does
not contain this difference. In the older records below, the standard deviation between cards is

- %.0f %% of a plan's saving in prefill (%d cards),
- %.0f %% of a plan's saving in decode (%d cards),
- %.0f %% of the saving of all-zero weights (%d cards).

So where a page gives a figure of one card, the figure of another card may differ by ± %.0f %% of it in prefill and
± %.0f %% in decode (two standard deviations of a difference). Pages that compare plans compare them within
one run, on one card.

In decode, which is below the power cap, the joules that a plan saves differ by %.0f %% alone. What differs is the rest of a card's
energy, which the saving is a share of. In prefill, at the cap, the joules differ by %.0f %%, as much as the shares.

![Energy saved by the same plan on several cards](cards.svg)

**Energy** is relative to the same product with its original weights. **Mean of all cards** is where the mean of the kind lies,
and **a new card** is where the saving of a further card lies (` + "`stats.Combine`" + `: Paule and Mandel's method for the
differences between cards, Hartung and Knapp's interval, and Student's prediction interval). **Between cards** is the standard
deviation in percentage points, without the error of the runs. Two cards have no intervals, because one difference says
little about a deviation.
`
	cardsMeasured = `An 8192×8192 layer of normal weights in BF16, x normal(0,1), stationary. *Prefill* has 8192 tokens, back to back, at the power
cap, or in bursts with gaps, *below the cap*; *decode* has 16 tokens and reads the weights from memory, which draws less than the cap.
All plans have the same address in memory. The table needs five cards, on different days. With one card, ± is the standard error
of its run.
`
	cardsRecorded = `
### What a record is worth

A block measures a plan in two windows, so the interval of a plan after one block has one degree of freedom, and can be narrow or wide by
chance. The standard error below is therefore pooled over all plans of a run. It includes the distance of the copy from zero.
*Copy* is the reading of the same weights in the same place, which changes no energy. *Expected between cards* is the standard deviation of
` + "`grid=4`" + ` between cards in percentage points, if cards differ by the same share of the saving as in the older records (in bursts, by that of
prefill). With the *blocks needed*, the standard error is half of that. In %d of the %d runs the card did not reach a steady state before the first block.

One block tells that a plan saves: %d of the %d savings exceed two standard errors. It does not rank plans whose savings are
closer than about three standard errors. It tells nothing about how this card differs from others, unless its blocks are about as many as needed. One card
never tells how much cards differ.

| card | phase | blocks | copy | standard error, points | expected between cards | blocks needed |
|---|---|---|---|---|---|---|
%s
`
	cardsCommand = `On a further card, this adds a record, and the next ` + "`-update`" + ` counts it. The time is that of each row's blocks:

` + "```" + `
go test ./bench -run GPUCards -cards $PWD/bench/results/h200/cards -cards-time 3m -timeout 20m
` + "```" + `
`
	cardsOlder = `
These runs were made for other pages, mostly with one card for a plan. They are the same experiment apart from the card, the day, the
addresses in memory and, for some, the build of lowtoggle. All of this is in the difference between cards. Each run's error is
pooled over its comparisons and its copy, as above.
`
	cardsNotes = `
- *Own inputs* are activations of the model on calibration tokens; *random inputs* are normal(0,1). A search for a given rise
  of perplexity made the plans without a number.
- The cards of ` + "`round=4`" + ` with random inputs ran at the same time in one host.
- The meter calls frontier-stationary-1, order-stationary-1 and order-stationary-2 invalid, because their copies read %s to %s. They
  are included: leaving out runs by their copies would select them, and such errors are small beside these differences.
- Whole models exchange their memory between blocks, so addresses are no part of their differences. In decode with ` + "`grid=4`" + `,
  %s.
`
)
