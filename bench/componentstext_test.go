package bench

// The texts of docs/components.md and docs/components-accuracy.md. The page's code writes the tables and fills in the figures.

const componentsIntroduction = `# Which component of the card draws the power?

Generated from the built-in components and [bench/results](../bench/results/h200) by ` + "`go test ./bench -run Page -update`" + `.

` + "`lowtoggle calibrate --components`" + ` finds how much power each component of a card draws. The method follows Aga and Ibrahim,
"CompPow: A Case for Component-level GPU Power Management". No NVIDIA card reports the power of its tensor cores. An
H200 reports the power of its memory, as a mean over a second. Therefore a model splits the power by component:

    watts = static + leakage·(°C − 50) + awake·busy·(clock/clock₀)² +
            (clock/clock₀)·(operations + bytes on the chip) + bytes of memory

Each operation and each byte costs energy. A part of this energy depends on the operands' bits, through the features of the
[cost model](cost.md). *Awake* is proportional to the share of the multiprocessors that have work. *Busy* is the share of
an execution without empty launches (%.2f µs each) and rests. If a kernel's temperature is unknown, the model derives the temperature
from the predicted power.

The coefficients are non-negative. The fit uses kernels that stress one component each. The built-in components
(` + "`cost/component/calibrations/h200.json`" + `) are fitted to %d kernels. These kernels were measured on %[4]s, on %[3]s.

![Components of an H200](power-components.svg)

[components-accuracy.md](components-accuracy.md) compares the model with kernels outside the fit.
`

const componentsAccuracy = `# How accurate is the split by component?

Generated from the built-in components and [bench/results](../bench/results/h200) by ` + "`go test ./bench -run Page -update`" + `.
[components.md](components.md) explains the model.

## Kernels of one card

Every kernel below is unseen. Some kernels are held out of all fits. Each other kernel is predicted by a fit without this kernel.
Between %.0f and %.0f W and below the power cap there are %d unseen kernels, of %.0f to %.0f W. The model's mean error of power is
**%s**, that of the best naive model %s.

The table compares the model with three simpler models, which are fitted to the same kernels:

- *Constant*, a naive model, is one power for all kernels.
- *Duty*, a naive model, is a constant plus a part in proportion to the share of time in which a kernel runs.
- *Utilisation* knows the shares of time, of multiprocessors, of the highest rate of operations and of the highest rate of memory.
  Utilisation does not know bits, caches, clocks or temperature.
`

const componentsCap = ` At the power cap every kernel draws the same power, so a constant power is right by definition. The clocks
differ instead. The model chooses the highest clock within the cap. For %d held-out kernels the mean error of the model's clock is
%s, that of a constant clock %s.
`

const componentsElsewhere = `
## Other cards

The built-in components were fitted on one card. Recorded GEMMs of other cards ([bench/results/h200](../bench/results/h200)) test
these components, with operands from zeros to random values. Nothing is fitted to these readings. Below the cap there are %d
readings on %d cards, from %.0f to %.0f W. The model's mean error of power is **%s**, that of the best naive model %s. The best
constant for these readings, which is known only after the measurement, has a mean error of %s.

![Predicted over measured power](components-unseen.svg)
`

const componentsElsewhereCap = ` At the cap, %d readings on %d cards are predicted at their measured clocks, with a mean error of
%s. This comparison tests how energy depends on the clock. In the model, energy is proportional to the clock to the power of %g.
The table gives the mean error on the other cards for other exponents, with the model fitted to the same kernels each time:
`

const componentsLayers = ` The last test has the linear layers of ` + "`llama-17m`" + `, a model of small layers, run one after
the other. In decode each layer takes some microseconds, and the predicted power is too high:

| layers | card | measured | predicted |
|---|---|---|---|
`

const componentsSensor = `
## Does the split agree with the memory's sensor?

The fit has not seen the other cards' readings of memory power. The sensor's reading minus the sensor's offset should equal the
HBM part of the split.
`

const componentsPairs = `
- If the weights come from memory, the split agrees with the sensor.
- For FP8 8192³ the predicted memory power and the predicted total are too high. For INT8 8192³ the predicted memory power is too
  low. The kernels of cuBLASLt differ in the share of repeated reads that miss the cache. The model has one share for all kernels.
- If the operands stay in the cache, the sensor's reading falls below the sensor's offset when the chip draws more power. The
  chip's power affects the sensor, so differences of some ten watts are not significant for these products.

### Pairs that differ in the weights' bits alone

With weights from memory, the recorded kernels of a run have the same shape, clock and time. Only the bits of the weights differ.
Each of %d kernels is compared with the run's random weights. The card draws up to %.0f W less than with random weights,
and %.1f W less on average. The split predicts this difference with a mean error of %.1f W. The sensor reads up to %.0f W less,
%.1f W less on average. The predicted difference of the HBM part has a mean error of %.1f W. In total the split predicts a share
of %.2f of the card's differences and of %.2f of the sensor's differences. So the split underestimates the effect of bits in
decode.
`

const componentsUse = `
## What uses the split by component?

` + "`verify --gpu`" + ` and ` + "`profile`" + ` split their measurement by component. Both commands read the first of these files that exists, and name the file above the table:

- The file that ` + "`--components`" + ` names.
- ` + "`calibration-components.json`" + ` in the working folder.
- The built-in file.

Both commands also compute clocks before and after a conversion: the clock of least energy within 1 and 5 %% of time, and the clock of
least energy-delay product (energy × time). A clock is advised only under two conditions:

- The model's error on unseen kernels below the cap is at most half of the best naive model's.
- Unseen kernels of the same kind are off by at most 5 %% on average. A kind is a dtype and a bottleneck, arithmetic or memory. At least
  two of these kernels are below the cap.

If a condition fails, the report says why there is no advice. Further limits:

%s- No split is shown if the mean error is above 15 %%.
- No clock below the card's own choice has been measured. The advice says where the model extrapolates, by at
  most 20 %%.

A second ` + "`calibrate --components`" + ` continues with the same file. With ` + "`--anew`" + ` the command measures all kernels again.
`

const componentsCard = `
## A card that no fit has seen

On card %s, on %s, ` + "`calibrate --components`" + ` measured %d kernels
([components/H200-9ea1.json](../bench/results/h200/components/H200-9ea1.json)). The built-in components have not seen many of
these kinds of kernels: rests, reads, spinning (loops that move no data), and products on few multiprocessors. Power is predicted
at the measured time, clock and temperature. Three models predict the kernels below the cap:

- **The built-in components** predict %d kernels of %.0f to %.0f W. Their mean error of power is **%s**. The best naive model has
  an error of %s, utilisation %s. The best constant for these kernels, which is known only after the measurement, has an error of
  %s. No fit used this record. The card of the built-in components was not recorded, so it may be the same card.
- **A fit to another card's kernels** predicts %d kernels. The fit has the kernels of the same kinds on %s
  ([components/H200-214c.json](../bench/results/h200/components/H200-214c.json)). The mean error is **%s**, the worst error %s.
  TF32 is excluded: the run was interrupted, and a single TF32 kernel does not determine the cost of bits.
- **A fit to this card's own kernels** predicts %d unseen kernels. The mean error is **%s**; the best naive model has %s,
  utilisation %s. A kernel that alone determines a coefficient cannot test this fit.

For each of the three, the mean error is at most half of the best naive model's. The built-in components are worst for kernels
that keep multiprocessors awake without much work. The errors are %s on *spin* and %s on *spin on 66*. In the middle of the range
of power, a constant is a good guess. There the mean error is slightly more than half of the best naive model's.

The coefficients of single components are less certain than the predicted total. The three models, in the order of the list above,
have different coefficients. *Awake* is %s, %s and %s; the fit of the built-in components has no kernels that spin. *Static* is
%s, %s and %s: leakage, which rises with temperature, compensates for the difference. The memory sensor's offset is %[28]s, %[29]s
and %[30]s. The fit to this card also has a term for one or more awake multiprocessors, independent of their number: %[27]s. Real
differences between the cards may contribute.

| kernels | number | watts | built-in | worst | constant | duty | utilisation | other card's fit | own fit, unseen |
|---|---|---|---|---|---|---|---|---|---|
`

const componentsWorst = `
This table has the largest errors of the built-in components:

| kernel | measured | built-in | fit of %s | own fit, unseen |
|---|---|---|---|---|
`

const componentsCardPairs = `
The two held-out kernels of each pair differ in one component alone. The table gives the power of
the second kernel minus that of the first: measured, predicted by the built-in components, and predicted by the card's own fit.
The last three columns give the same for the memory's sensor. In the last pair, the second product ran at the power cap, at a
lower clock than the first.

| kernel | and | differ in | measured | built-in | own fit | sensor | built-in | own fit |
|---|---|---|---|---|---|---|---|---|
`

const componentsScopes = `
## Which power does an H200 report?

NVML names three scopes of power: the card, the module and the memory. An H200 reports the mean power of the card and of the memory, and
the present power of the card. An H200 does not report the power of the module
([components/H200-214c-scopes.csv](../bench/results/h200/components/H200-214c-scopes.csv)). The last column is the time
until a reading shows a step of power. The averages, including the memory's, are running means over about a second. A kernel must run
for about a second before the memory's reading is free of the previous kernel.

| scope | reading | range while the kernels ran | a change takes |
|---|---|---|---|
`

const componentsRemains = `
## Which kernels remain to be measured?

` + "`lowtoggle calibrate h200 --components`" + ` measures %d kernels for the fit and holds out %d, in about two minutes. The record of %s
has %d of these %d kernels. The built-in components are older and have fewer kernels. A file from a further card can replace the
built-in components. The cards of this page would then still test the new fit. After an interruption the same command continues, on
the same card.
`
