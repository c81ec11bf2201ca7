package bench

// These texts stand between the tables of docs/cards.md.
const (
	cardsIntroduction = `# How much do savings differ from card to card?

Generated from [bench/results/h200](../bench/results/h200) by ` + "`go test ./bench -run CardsPage -update`" + `. All %d cards are
NVIDIA H200s with the same driver and power limit. A card's id, such as H200-04df, ends with four hex digits of a hash of
the card's UUID (` + "`power.Info.ID`" + `). Reports and JSON documents contain the id.

The same weights save different shares of energy on different cards of one kind. The interval of a single run does
not include this difference between cards. [Older records](#which-older-records-have-one-plan-on-several-cards) show these standard
deviations between cards:

- Prefill: %.0f %% of a plan's saving (%d cards).
- Decode: %.0f %% of a plan's saving (%d cards).
- All-zero weights in both phases: %.0f %% of the saving (%d cards).

On another card a saving may therefore differ from a page's figure by ± %.0f %% of this figure in prefill, ± %.0f %% in decode. These
ranges are two standard deviations of a difference between cards. All pages compare plans within one run, on one card.

Decode runs below the power cap. The joules that a plan saves in decode differ by only %.0f %% between cards. The total energy differs
more between cards, so the saved share differs more, too. Prefill runs at the power cap. The joules that a plan saves in prefill differ
by %.0f %% between cards, as much as the saved shares.

![Energy saved by the same plan on several cards](cards.svg)

The tables have these columns:

- **Energy** is the change of energy relative to the same product with its original weights, as the mean over the cards.
- **Mean of all cards** is the confidence interval of the mean over all cards of this kind.
- **A new card** is the prediction interval for one more card.
- **Between cards** is the standard deviation between cards in percentage points, without the error of the runs.
- **Least, most** are the changes of energy in per cent on the cards that save least and most, with the cards' ids.

Both intervals come from a random-effects model (` + "`stats.Combine`" + `). The model uses Paule and Mandel's variance between cards, Hartung and
Knapp's interval, and Student's prediction interval. Rows of only two cards have no intervals, because two values give a poor estimate of
a spread.
`
	cardsMeasured = `The layer has 8192×8192 normal weights in BF16, in the stationary role. The layer's inputs are normal(0,1). *Prefill* has 8192
tokens, back to back (at the power cap) or in bursts with gaps (*below the cap*). *Decode* has 16 tokens and reads the weights from
memory. In decode the card draws less than the cap. The weights of all plans have the same address in memory. The records come from %d
cards, on these days: %s.
`
	cardsRecorded = `
### How precise is a record?

A block measures each plan in two windows. After one block the interval of a plan has one degree of freedom, so the interval's width
varies much by chance. The standard error in the table is therefore pooled over all plans of a run. This error includes the copy's
difference from zero. In %s the card did not reach a steady state before the first block. The table has these columns:

- *Copy* is the change of energy with a copy of the original weights at the same address. This change should be zero.
- *Expected between cards* is the standard deviation between cards for ` + "`grid=4`" + `, in percentage points. This value assumes that cards
  differ by the same share of the saving as in the older records. The value below the cap uses the share of prefill.
- *Blocks needed* is the number of blocks after which the standard error is half of *expected between cards*.

A record shows that a plan saves energy: %d of the %d savings exceed two standard errors. A record cannot rank plans whose savings are
closer than about three standard errors. The plans of a run share the error of the source's readings. All savings of a run may therefore be
too large or too small together. A comparison with other cards needs about as many blocks as the table states.

| card | phase | blocks | copy | standard error, percentage points | expected between cards | blocks needed |
|---|---|---|---|---|---|---|
%s
`
	cardsCommand = `The following command adds a record of one more card:

` + "```" + `
go test ./bench -run GPUCards -cards $PWD/bench/results/h200/cards -cards-time 75s -timeout 20m
` + "```" + `

` + "`-cards-time`" + ` is the time for the blocks at the cap. The blocks below the cap get three times as much time, the blocks of decode half
as much. ` + "`go test ./bench -run CardsPage -update`" + ` then adds the record to this page.
`
	cardsOlder = `
These runs were made for other pages. Runs of one plan differ in the card, the day and the memory addresses. Some runs also differ in the
build of lowtoggle. The difference between cards includes all these differences. The error of a run is pooled over all
comparisons of the run, with the copy, as for [the newer records](#how-precise-is-a-record).
`
	cardsNotes = `
- *Own inputs* are activations of the model on calibration tokens. *Random inputs* are normal(0,1). A plan *for* a percentage is
  the result of a search that may raise perplexity by this percentage.
- The cards of ` + "`round=4`" + ` with random inputs ran at the same time in one host.
- Three runs are marked invalid, because their copies read %s to %s: frontier-stationary-1, order-stationary-1 and order-stationary-2.
  The table includes these runs, because excluding runs by their copies would bias the result. The copies' errors are also smaller than
  the differences between cards.
- Whole models exchange memory between blocks, so addresses do not contribute to the differences between cards. With the
  source, the cards draw different power in decode. In this phase, ` + "`grid=4`" + ` saves these shares of energy:
  %s.
`
)
