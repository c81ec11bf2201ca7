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
[cost model](cost.md). *Clock₀* is the highest clock. *Awake* is proportional to the share of the multiprocessors that have work.
*Busy* is the share of an execution's time outside launches (%.2f µs each) and rests (pauses). If a kernel's temperature is unknown,
the model derives the temperature from the predicted power.

The coefficients are non-negative. The fit uses kernels that stress one component each. The built-in components
(` + "`cost/component/calibrations/h200.json`" + `) are fitted to %d kernels. These kernels were measured on %[4]s, on %[3]s.

![Components of an H200](power-components.svg)

[components-accuracy.md](components-accuracy.md) compares the model with kernels outside the fit.
`

const componentsAccuracy = `# How accurate is the split by component?

Generated from the built-in components and [bench/results](../bench/results/h200) by ` + "`go test ./bench -run Page -update`" + `.
[components.md](components.md) explains the model.

## Kernels of one card

Every kernel below is unseen: the fit that predicts the kernel does not contain the kernel. Some kernels are held out of all fits.
Between %.0f and %.0f W and below the power cap there are %d unseen kernels, of %.0f to %.0f W. The model's mean error of power is
**%s**; the mean error of power of the best naive model is %s.

The table compares the model with three simpler models, which are fitted to the same kernels:

- *Constant*, a naive model, predicts one power for all kernels.
- *Duty*, a naive model, predicts a constant power plus power in proportion to the share of time in which the kernel runs.
- *Utilisation* predicts power from four shares: of time with a running kernel, of multiprocessors with work, of the peak rate of
  operations, and of the peak bandwidth of memory. *Utilisation* ignores the operands' bits, caches, clocks and temperature.

The columns of these models give the error of predicted power. In a kernel's name, *random* or *zeros* describes both operands, and *by
zeros* the weights beside random activations. *Cold* means that the weights come from memory, not from the cache. If a name lists several
operations, these run one after the other.
`

const componentsCap = `
At the power cap every kernel draws the same power, so a constant power is right by definition. The clocks differ instead. The model
predicts the highest clock at which power stays within the cap. For the %d held-out kernels at the cap, the mean error of the
model's clock is %s. The mean error of a constant clock is %s.
`

const componentsElsewhere = `
## Other cards

The built-in components were fitted on one card. Recorded GEMMs of other cards ([bench/results/h200](../bench/results/h200)) test
these components, with operands from zeros to random values. Nothing is fitted to these readings. Below the cap there are %d
readings on %d cards, from %.0f to %.0f W. The model's mean error of power is **%s**; the mean error of power of the best naive model is
%s. The best constant for these readings, which is known only after the measurement, has a mean error of power of %s. In the
table, *mean error* and *worst* are errors of the model's power. The last three columns are the simpler models' mean errors of power.

![Predicted over measured power](components-unseen.svg)
`

const componentsElsewhereCap = `
At the cap there are %d readings on %d cards. At the measured clocks, the mean error of predicted power is %s. This comparison
tests how energy depends on the clock. In the model, the energy of an operation is proportional to clock^%g.
The table gives the mean error of power on the other cards for other exponents. For each exponent, the model is fitted to the same
kernels:
`

const componentsLayers = `
Another test runs the linear layers of ` + "`llama-17m`" + `, a model of small layers, one after the other. In decode each layer takes some
microseconds, and the predicted power is too high:

| layers | card | measured | predicted |
|---|---|---|---|
`

const componentsSensor = `
## Does the split agree with the memory's sensor?

The fit has not seen the other cards' readings of memory power. A reading minus the sensor's offset should equal the power of the
component *hbm* in the split.
`

const componentsPairs = `
- If the weights come from memory, the split agrees with the sensor.
- For FP8 8192³ the predicted memory power and the predicted total are too high. For INT8 8192³ the predicted memory power is too
  low. The kernels of cuBLASLt differ in the share of repeated reads that miss the cache. The model has one share for all kernels.
- If the operands stay in the cache, the sensor reads less than its offset for most products, and more for FP32 2048³. The
  chip's power affects the sensor, so differences of some tens of watts are not significant for these products.

### Pairs that differ in the weights' bits

With weights from memory, the recorded kernels of a run have the same shape, and nearly the same time. In FP16 the random weights run
at the power cap, so the clock differs, too.
Each of %d kernels is compared with the run's random weights. The card draws up to %.0f W less than with random weights,
and %.1f W less on average. The split predicts this difference with a mean error of %.1f W. The sensor reads up to %.0f W less,
%.1f W less on average. The split predicts this difference, as the component *hbm*, with a mean error of %.1f W. Summed over all kernels, the split
predicts %.2f of the card's difference and %.2f of the sensor's difference. So the split underestimates the effect of bits in decode.
`

const componentsUse = `
## What uses the split by component?

` + "`verify --gpu`" + ` and ` + "`profile`" + ` split the measured power by component. Both commands read one of these files, and name the file above
the table:

- The file that ` + "`--components`" + ` names.
- Without ` + "`--components`" + `, ` + "`calibration-components.json`" + ` in the working folder, if it is complete and of the same kind of card.
- Otherwise the built-in file.

Both commands also compute three clocks:

- the clock of least energy with at most 1 %% more time;
- the clock of least energy with at most 5 %% more time;
- the clock of the least energy-delay product (energy × time).

` + "`verify --gpu`" + ` computes these clocks for the model before and after the conversion. A clock is advised only under two conditions:

- At least eight unseen kernels below the cap test the model. Their mean error of power is at most half of the best naive model's error.
  [components-accuracy.md](components-accuracy.md) describes the naive models.
- For unseen kernels of the same kind, the mean error of power is at most 5 %%. A kind is a dtype and a bottleneck, arithmetic or
  memory. At least two of these kernels are below the cap.

If a condition fails, the report says why there is no advice. Further limits:

%s- No split is shown if the mean error of power on unseen kernels is above 15 %%.
- No clock below the card's own choice has been measured. The model may extrapolate the clock by at
  most 20 %%, and the advice then says so.

A second run of ` + "`calibrate --components`" + ` continues with the same file. With ` + "`--anew`" + ` the command measures all kernels again.
`

const componentsCoefficients = `Values are at the highest clock, with standard errors. Coefficients of operations and bytes are energies. A row with *bits* is the part
that depends on the operands' bits, for random operands. A *cache byte* is read from the L2 cache or written to it. A *byte to memory*
passes between the cache and memory; its energy in memory is that of an *hbm byte*. A byte *asked again* is read once more, and may
miss the cache.
`

const componentsCard = `
## Kernels outside the fits, on another card

On card %s, on %s, ` + "`calibrate --components`" + ` measured %d kernels
([components/H200-9ea1.json](../bench/results/h200/components/H200-9ea1.json)). The fit of the built-in components lacks
four kinds of kernels: kernels with rests, reads, loops that move no data (*spin*), and products on few multiprocessors. In a kernel's
name, *on 66* means 66 multiprocessors, *x16* means 16 passes over the bytes, and *rest* means a pause after each execution. Power is
predicted at the measured time, clock and temperature. Three models predict the power of the kernels below the cap:

- **The built-in components** predict the power of %d kernels of %.0f to %.0f W. Their mean error of power is **%s**. The mean error of
  power is %s for the best naive model, and %s for utilisation. The best constant for these kernels, which is known only after the
  measurement, has a mean error of power of %s. No fit used this record. The card of the built-in components was not recorded, and
  may be the same card.
- **A fit to another card's kernels** predicts the power of %d kernels. The fit has the kernels of the same kinds on %s
  ([components/H200-214c.json](../bench/results/h200/components/H200-214c.json)). The mean error of power is **%s**, the worst error of
  power %s. TF32 is excluded, because an interrupted run left a single TF32 kernel. One kernel does not determine the cost of bits.
- **A fit to this card's own kernels** predicts the power of %d unseen kernels. The mean error of power is **%s**, compared with %s for
  the best naive model and %s for utilisation. A kernel that alone determines a coefficient cannot test this fit.

Each of the three models has at most half the mean error of the best naive model. The built-in components are worst for kernels that
keep multiprocessors awake without much work. The errors of power are %s on *spin* and %s on *spin on 66*. From %.0f to
%.0f W, a constant is a good guess. There the built-in components' mean error is slightly more than half of the best naive model's.

The coefficients of single components are less certain than the predicted total. The three models have
different coefficients, given here in the order of the list above. *Awake* is %s, %s and %s; the fit of the built-in components has no kernels that spin. *Static* is
%s, %s and %s: leakage, which rises with temperature, compensates for the difference. The memory sensor's offset is %[30]s, %[31]s
and %[32]s. The fit to this card also has a term for one or more awake multiprocessors, independent of their number: %[29]s. Real
differences between the cards may contribute to these differences.

The table gives mean errors of power. *Worst* is the largest error of the built-in components. *Constant*, *duty* and *utilisation* are
fitted to the kernels of the built-in components. The last two columns are the two other models, with the number of kernels.

| kernels | number | watts | built-in | worst | constant | duty | utilisation | other card's fit | own fit, unseen |
|---|---|---|---|---|---|---|---|---|---|
`

const componentsWorst = `
The next table lists the kernels with the largest errors of the built-in components. Each model has a column with the predicted power
and its error:

| kernel | measured | built-in | fit of %s | own fit, unseen |
|---|---|---|---|---|
`

const componentsCardPairs = `
The two held-out kernels of each pair differ in one component alone. The table gives the second kernel's power minus the first
kernel's power. *Built-in* is the prediction of the built-in components, *own fit* that of the fit to this card's own kernels. The last
three columns give the differences of memory power. There, *measured* is the sensor's reading. In the last pair, the second product ran
at the power cap, at a lower clock than the first product.

| first kernel | second kernel | differ in | card, measured | card, built-in | card, own fit | memory, measured | memory, built-in | memory, own fit |
|---|---|---|---|---|---|---|---|---|
`

const componentsScopes = `
## Which power does an H200 report?

NVML names three scopes of power: the card, the module and the memory. An H200 reports the mean power of the card and of the memory, and
the instantaneous power of the card. An H200 does not report the power of the module
([components/H200-214c-scopes.csv](../bench/results/h200/components/H200-214c-scopes.csv)). The last column is the time
until a reading shows a step of power. The averages of card and memory are running means over about a second. A kernel must run for
about a second before the memory's reading is free of the previous kernel.

| scope | reading | range while the kernels ran | a change takes |
|---|---|---|---|
`

const componentsRemains = `
## Which kernels remain to be measured?

` + "`lowtoggle calibrate h200 --components`" + ` measures %d kernels for the fit and holds out %d, in about two minutes. The record of %s
has %s kernels. The built-in components are older and have fewer kernels. A file from a further card can replace the
built-in components. The records of the cards on this page can then test the new fit. After an interruption, the same command continues
on the same card.
`
