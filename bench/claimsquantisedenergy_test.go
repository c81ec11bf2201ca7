package bench

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// quantisedOf returns a variant of a record of a quantised layer, by the part of its name before the SNR.
func (e *evidence) quantisedOf(file, variant string) power.Comparison {
	e.Helper()
	for _, v := range recordedRun(e.T, "quantised/"+file).Variants {
		if strings.HasPrefix(v.Name, variant+",") {
			return v
		}
	}
	e.Fatalf("%s has no %s", file, variant)
	return power.Comparison{}
}

func quantisedEnergyClaims(e *evidence) []claim {
	kernels := e.calibration().Facts.Kernels
	four, channel, block := kernels.Dequantised, kernels.Scaled["channel"], kernels.Scaled["block"]
	two := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	const streaming, capped, uncapped = "int4-streaming-prefill", "passes-block-decode-capped", "passes-block-decode"
	mantissa, powers, zeros := e.quantisedOf(streaming, "two mantissa bits"), e.quantisedOf(streaming, "powers of two"), e.quantisedOf(streaming, "all codes zero")
	span := func(c power.Comparison) string {
		return fmt.Sprintf("%.1f to %.1f %%", -change(c.Interval[1]), -change(c.Interval[0]))
	}
	faster := func(c power.Comparison) string { return printed(1, -change(c.RelativeTime)) + " %" }
	watts := func(v float64) string { return fmt.Sprintf("%.0f W", v) }
	widest := 0.0
	for _, v := range recordedRun(e.T, "quantised/"+uncapped).Variants {
		widest = max(widest, halfWidth(v))
	}
	three, coarse := e.quantisedOf(capped, "scales=3"), e.quantisedOf(capped, "scales=2")
	return []claim{
		says("| for each output | {} | {} |", two(channel.Operands), two(channel.FewOperands)),
		says("| for each block | {} | {} |", two(block.Operands), two(block.FewOperands)),
		says("blocks also spends {} % of its energy", printed(0, 100*block.Sums)),
		says("the share of the values is {} with the weights as the A operand and {} as the B operand. In decode\nthe share of the values is {} and the share of the codes is {}. The",
			two(four.Operands), two(four.StreamingOperands), two(four.FewOperands), two(four.Codes)),
		says("95 % intervals of up to ±{} %.", printed(0, 100*widest)),
		says("scales of two mantissa bits save {} of energy (95 %: {}), and powers of\ntwo {} ({}).", saved(mantissa, 1), span(mantissa), saved(powers, 1), span(powers)),
		says("also take {} and {} less time. With all\ncodes zero the card draws {},", faster(mantissa), faster(powers), watts(zeros.Watts)),
		says("This card drew {}, both with the first weights and with `scales=3`. The other card drew {} with the first weights and {} with `scales=3`.",
			watts(recordedRun(e.T, "quantised/"+capped).Baseline.Watts), watts(recordedRun(e.T, "quantised/"+uncapped).Baseline.Watts), watts(e.quantisedOf(uncapped, "scales=3").Watts)),
		says("`scales=3` saves {} of energy and {} of time, `scales=2` {} and\n{}. The predictions", saved(three, 1), faster(three), saved(coarse, 1), faster(coarse)),
	}
}

// quantisedSpeedClaims compare the rates of quantised kernels with BF16.
func quantisedSpeedClaims(e *evidence) []claim {
	const rates, few = "h200/quantised/rates.txt", "h200/quantised/few.txt"
	many, rest, _ := strings.Cut(e.text(rates), "weights as the B operand:")
	streaming, alone, _ := strings.Cut(rest, "before, with BF16")
	alone, few16, _ := strings.Cut(alone, "M = 16")
	find := func(text, name string) float64 {
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` +\S+ +(\S+)`).FindStringSubmatch(text)
		if m == nil {
			e.Fatalf("%s lacks %s", rates, name)
		}
		return e.number(m[1])
	}
	names := map[string]string{"INT4": "INT4, groups of 128", "INT4 with zero points": "INT4, zero points"}
	named := func(row string) string {
		if name, ok := names[row]; ok {
			return name
		}
		return row
	}
	whole, two := func(v float64) string { return printed(0, v) }, func(v float64) string { return fmt.Sprintf("%.2f", v) }
	bf16 := find(many, "BF16 (cuBLASLt)")
	list := []claim{says("| BF16, cuBLASLt | {} | 1 | | |", whole(bf16)), says("| BF16, cuBLASLt | {} |\n|", two(find(few16, "BF16 (cuBLASLt)")))}
	low, high, lowest, highest, fewest, most := math.Inf(1), 0.0, math.Inf(1), 0.0, math.Inf(1), 0.0
	micros := func(name string) float64 {
		return e.number(regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` +(\S+)`).FindStringSubmatch(few16)[1])
	}
	for _, row := range []string{"INT4", "INT4 with zero points", "NVFP4", "MXFP4"} {
		a, b := find(many, named(row)), find(streaming, named(row))
		read := find(few16, named(row))
		list = append(list, says("| "+row+" | {} | {} | {} | {} |", whole(a), two(a/bf16), whole(b), two(b/bf16)), says("| "+row+" | {} |\n|", two(read)))
		rate, speed := read/find(few16, "BF16 (cuBLASLt)"), micros("BF16 (cuBLASLt)")/micros(named(row))
		bytes := micros("BF16 (cuBLASLt)") * find(few16, "BF16 (cuBLASLt)") / micros(named(row)) / read
		fewest, most = min(fewest, bytes), max(most, bytes)
		low, high, lowest, highest = min(low, rate), max(high, rate), min(lowest, speed), max(highest, speed)
	}
	beside := e.number(e.record(rates, `before, with BF16 at (698.0):`)[0]) // microseconds of BF16 in that run
	for _, row := range []string{"FP8, one scale", "FP8, a scale for each output", "FP8, blocks of 128×128"} {
		end := "|"
		if strings.Contains(row, "blocks") {
			end = "\nWith"
		}
		m := regexp.MustCompile(regexp.QuoteMeta(row) + ` +(\S+) +(\S+)`).FindStringSubmatch(alone)
		list = append(list, says("| "+row+" | {} | {} | | |", whole(e.number(m[2])), two(beside/e.number(m[1]))), says("| "+row+" | {} |\n"+end, two(find(few16, row))))
	}
	_, present, _ := strings.Cut(e.text(few), "The present kernel")
	timed := regexp.MustCompile(`(?m)^W 8,  B 2, S 7 +\S+ +(\S+) +\S+ +(\S+) `).FindStringSubmatch(present)
	list = append(list, says("weights of 28672×8192 at {} TB/s (`bench", timed[2]))
	earlier := recordedRun(e.T, "quantised/int4-decode")
	weights := float64(earlier.Products[0].Problem.N * earlier.Products[0].Problem.K)
	list = append(list, says("an earlier kernel that read\n{} TB/s", two(weights*(4+16.0/128)/8/earlier.Baseline.Seconds/1e12)))
	return append(list, says("weights at {} to {} of BF16's rate. The kernel is {} to {} times as fast as BF16's kernel. At BF16's rate of bytes the four-bit kernel would be {} to {} times as fast.", two(low), two(high),
		printed(1, lowest), printed(1, highest), printed(1, fewest), printed(1, most)))
}
