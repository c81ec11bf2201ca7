package quant

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// check compares a weight's tensors with its layout and the config, and sets the weight's format and shape.
func (s *survey) check(w *Quantised) {
	switch w.layout {
	case scaledLayout:
		s.checkScaled(w)
	case packedLayout:
		s.checkPacked(w)
	case gptqLayout:
		s.checkGPTQ(w)
	case blocksLayout:
		s.checkBlocks(w)
	case nestedLayout:
		s.checkNested(w)
	case bytesLayout:
		s.checkBytes(w)
	}
}

// Types of scales.
var (
	floats    = []weights.DType{weights.BF16, weights.F16, weights.F32}
	powers    = []weights.DType{weights.U8, weights.F8E8M0}
	fineTypes = []weights.DType{weights.F8E4M3}
)

// need returns a required tensor of a weight. It records a problem if the tensor is missing or has another type.
func (s *survey) need(w *Quantised, r Role, name string, types []weights.DType) (t Stored, ok bool) {
	t, ok = w.part(r)
	if !ok {
		said := ""
		if s.config != nil {
			said = ", and " + s.config.says()
		}
		s.failf(w.Tensors[0].Name, "holds the codes of a quantised weight without its %s: there is no tensor %q in any shard%s", r, name, said)
		return t, false
	}
	return t, s.isOf(t, types)
}

func (s *survey) isOf(t Stored, types []weights.DType) bool {
	if slices.Contains(types, t.DType) {
		return true
	}
	s.failf(t.Name, "holds the %s in type %s instead of %s", t.Role, t.DType, either(types))
	return false
}

// either lists types: "BF16, F16 or F32".
func either(types []weights.DType) string {
	text := ""
	for i, t := range types {
		switch {
		case i > 0 && i == len(types)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		text += t.String()
	}
	return text
}

// because returns a reason as the end of a message; empty if there is no reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return "; " + reason
}

// optional returns an optional tensor of a weight and checks its type.
func (s *survey) optional(w *Quantised, r Role, types []weights.DType) (t Stored, ok bool) {
	if t, ok = w.part(r); !ok {
		return t, false
	}
	return t, s.isOf(t, types)
}

// want records a problem if a tensor has none of the given shapes, which follow from the codes and the config.
func (s *survey) want(t Stored, w *Quantised, reason string, shapes ...[]int) bool {
	if slices.ContainsFunc(shapes, func(shape []int) bool { return slices.Equal(shape, t.Shape) }) {
		return true
	}
	var list []string
	for _, shape := range shapes {
		list = append(list, fmt.Sprint(shape))
	}
	codes := w.Tensors[0]
	s.failf(t.Name, "has shape %v, but codes %q of shape %v need %s of shape %s%s", t.Shape, codes.Name, codes.Shape, t.Role, strings.Join(list, " or "), because(reason))
	return false
}

// matrix splits a shape into leading dimensions (experts), outputs and inputs.
func matrix(shape []int) (lead []int, n, k int, ok bool) {
	if len(shape) < 2 || slices.Contains(shape, 0) {
		return nil, 0, 0, false
	}
	i := len(shape) - 2
	return shape[:i:i], shape[i], shape[i+1], true
}

// codesMatrix splits the shape of a weight's codes. It records a problem if the codes are not a matrix.
func (s *survey) codesMatrix(w *Quantised) (lead []int, n, k int, ok bool) {
	codes := w.Tensors[0]
	if lead, n, k, ok = matrix(codes.Shape); !ok {
		s.failf(codes.Name, "holds the codes of a quantised weight, but has shape %v, which is not a matrix", codes.Shape)
	}
	return lead, n, k, ok
}

func ceil(a, b int) int { return (a-1)/b + 1 }

// granularity derives from shapes whether a scale applies to a tensor, channel, block or group. Blocks are 128×128 if the
// shapes fit, or else of the size that divides the weight evenly. block is zero if neither size fits.
func granularity(lead []int, n, k int, scales []int) (per string, block [2]int, ok bool) {
	all := 1
	for _, d := range scales {
		all *= d
	}
	if all == 1 || slices.Equal(scales, lead) && len(lead) > 0 {
		return "tensor", block, true
	}
	if len(scales) == 1 && len(lead) == 0 && scales[0] == n {
		return "channel", block, true
	}
	front, a, b, ok := matrix(scales)
	if !ok || !slices.Equal(front, lead) || a > n || b > k {
		return "", block, false
	}
	switch {
	case a == 1 && b == 1:
		return "tensor", block, true
	case a == n && b == 1, a == 1 && b == k: // some experts are stored as inputs × outputs
		return "channel", block, true
	case a == n && k%b == 0:
		return "group", [2]int{1, k / b}, true
	case a == n:
		return "group", block, true
	case a == ceil(n, 128) && b == ceil(k, 128):
		return "block", [2]int{128, 128}, true
	case n%a == 0 && k%b == 0:
		return "block", [2]int{n / a, k / b}, true
	}
	return "block", block, true
}

// scaleShapes lists the shapes that scales of a granularity may have.
func scaleShapes(per string, block [2]int, lead []int, n, k int) [][]int {
	with := func(tail ...int) []int { return slices.Concat(lead, tail) }
	switch per {
	case "tensor":
		if len(lead) > 0 {
			return [][]int{with(1, 1), with(1), lead, {}, {1}}
		}
		return [][]int{{}, {1}, {1, 1}}
	case "channel":
		if len(lead) > 0 {
			return [][]int{with(n, 1), with(1, k), with(n)}
		}
		return [][]int{{n, 1}, {n}}
	}
	return [][]int{with(ceil(n, block[0]), ceil(k, block[1]))}
}

// checkScaled checks codes in the weight's own tensor, one or two in a byte.
func (s *survey) checkScaled(w *Quantised) {
	codes := w.Tensors[0]
	switch codes.DType {
	case weights.F8E4M3, weights.F8E5M2, weights.F8E4M3FNUZ, weights.F8E5M2FNUZ:
		s.checkGrained(w, "fp8")
	case weights.I8:
		s.checkGrained(w, "int8")
	default:
		if scales, _ := w.part(Scales); codes.DType == weights.U8 && (scales.DType == weights.F8E4M3 || s.config != nil) {
			s.checkFour(w, "nvfp4")
		} // otherwise the layout is unknown
	}
}

// checkGrained checks scales per tensor, channel, block or group.
func (s *survey) checkGrained(w *Quantised, codes string) {
	lead, n, k, ok := s.codesMatrix(w)
	scales, is := s.need(w, Scales, w.Name+"_scale", append(slices.Clone(floats), weights.F8E8M0))
	if !ok || !is {
		return
	}
	w.Shape, w.Format.Codes = w.Tensors[0].Shape, codes
	per, block, known := granularity(lead, n, k, scales.Shape)
	w.Format.Per, w.Format.Block = per, block
	g := s.scheme(w, func(g scheme) bool { return g.codes == codes && known && g.fits(per, scales.Shape, lead, n, k) })
	switch {
	case g == nil && !known:
		s.want(scales, w, "", append(scaleShapes("tensor", block, lead, n, k), scaleShapes("channel", block, lead, n, k)...)...)
	case g == nil:
	case g.codes != codes:
		s.failf(w.Tensors[0].Name, "holds %s codes (%s%v), but %s implies %s", codes, w.Tensors[0].DType, w.Tensors[0].Shape, s.config.at(g.codesIn), g.codes)
	case !g.fits(per, scales.Shape, lead, n, k):
		s.checkGroups(w, g, scales, lead, n, k)
	default:
		w.Format.Per = g.per
		if size := g.size(k); size[0] > 0 && size[1] > 0 {
			w.Format.Block = size
		}
		s.needZeros(w, g)
	}
}

// needZeros records a problem for an integer weight without the zero points that the config requires.
func (s *survey) needZeros(w *Quantised, g *scheme) {
	if _, ok := w.part(ZeroPoints); !ok && g.zerosIn != "" && strings.HasPrefix(g.codes, "int") {
		s.failf(w.Tensors[0].Name, "holds codes without zero points: there is no tensor %q in any shard, but %s is false", w.Name+"_zero_point", s.config.at(s.fieldOf(g, g.zerosIn)))
	}
}

// checkGroups records a problem if scales contradict a scheme.
func (s *survey) checkGroups(w *Quantised, g *scheme, scales Stored, lead []int, n, k int) {
	in := func(field string) string { return s.config.at(s.fieldOf(g, field)) }
	reason := ""
	switch {
	case g.per == "block":
		reason = fmt.Sprintf("%s is [%d, %d]", in(g.blockIn), g.block[0], g.block[1])
	case g.per == "group":
		reason = fmt.Sprintf("%s is %d", in(g.groupIn), g.group)
	case g.perMissing:
		reason = fmt.Sprintf("%s is missing, which implies one scale per %s", in(g.perIn), g.per)
	default:
		reason = fmt.Sprintf("%s implies one scale per %s", in(g.perIn), g.per)
	}
	if g.per == "group" && g.group > 0 && k > g.group && k%g.group != 0 {
		s.failf(w.Tensors[0].Name, "holds rows of %d values, which is not a multiple of the group size %d; %s", k, g.group, reason)
		return
	}
	size := g.size(k)
	if g.per == "block" && size == [2]int{} || g.per == "group" && size[1] == 0 {
		return
	}
	s.want(scales, w, reason, scaleShapes(g.per, size, lead, n, k)...)
}

// fieldOf returns the name of a scheme's field in the config, for messages.
func (s *survey) fieldOf(g *scheme, field string) string {
	return strings.Trim(g.field+"."+field, ".")
}

// size returns a scheme's block or group size in rows and columns; zeros if it has none or none is given.
func (g *scheme) size(k int) [2]int {
	switch {
	case g.per == "block":
		return g.block
	case g.per == "group" && (g.group == -1 || g.group > k): // shorter rows are one group
		return [2]int{1, k}
	case g.per == "group":
		return [2]int{1, g.group}
	}
	return [2]int{}
}

// fits reports whether scales have the shape that a scheme gives them.
func (g *scheme) fits(per string, scales, lead []int, n, k int) bool {
	size := g.size(k)
	if (g.per == "block" || g.per == "group") && (size[0] == 0 || size[1] == 0) {
		return g.per == per // the config gives no size
	}
	if g.per == "group" && k%size[1] != 0 {
		return false
	}
	return slices.ContainsFunc(scaleShapes(g.per, size, lead, n, k), func(shape []int) bool { return slices.Equal(shape, scales) })
}

// scheme returns the config's scheme for a weight: the first scheme that fits the weight's tensors, or else the first that names
// the weight. It returns nil without a config.
func (s *survey) scheme(w *Quantised, fits func(scheme) bool) *scheme {
	if s.config == nil || len(s.config.schemes) == 0 {
		return nil
	}
	list := s.config.schemes
	i := slices.IndexFunc(list, fits)
	if i < 0 {
		i = max(0, slices.IndexFunc(list, func(g scheme) bool { return slices.Contains(g.targets, parent(w.Name)) }))
	}
	return &list[i]
}

// checkFour checks FP4 codes, two in a byte along the inputs, with one scale per group.
func (s *survey) checkFour(w *Quantised, codes string) {
	lead, n, bytes, ok := s.codesMatrix(w)
	group, types := 16, fineTypes
	if codes == "mxfp4" {
		group, types = 32, powers
	}
	scales, is := s.need(w, Scales, w.Name+"_scale", types)
	if !ok || !is {
		return
	}
	k := 2 * bytes
	w.Format.Codes, w.Format.Per, w.Format.Block = codes, "group", [2]int{1, group}
	w.Shape = slices.Concat(lead, []int{n, k})
	g := s.scheme(w, func(g scheme) bool { return g.codes == codes })
	switch {
	case g != nil && g.codes != codes:
		s.failf(w.Tensors[0].Name, "holds %s codes, but %s implies %s", codes, s.config.at(g.codesIn), g.codes)
		return
	case g != nil && g.group > 0 && g.group != group:
		s.failf(scales.Name, "holds scales of %s codes, whose groups have %d values, but %s is %d", codes, group, s.config.at(s.fieldOf(g, g.groupIn)), g.group)
		return
	case k%group != 0:
		s.failf(w.Tensors[0].Name, "holds rows of %d values, which is not a multiple of the group size %d", k, group)
		return
	}
	s.want(scales, w, fmt.Sprintf("a group has %d values, two in a byte", group), slices.Concat(lead, []int{n, k / group}))
	if codes != "nvfp4" {
		return
	}
	name := w.Name + "_scale_2"
	if last(w.Tensors[0].Name) != last(w.Name) {
		name = w.Name + "_global_scale"
	}
	if global, ok := s.need(w, GlobalScale, name, floats); ok {
		s.want(global, w, "", scaleShapes("tensor", [2]int{}, lead, n, k)...)
	}
}

// checkPacked checks the packed layouts of compressed-tensors.
func (s *survey) checkPacked(w *Quantised) {
	codes := w.Tensors[0]
	if codes.DType == weights.U8 {
		kind := "nvfp4"
		if scales, _ := w.part(Scales); slices.Contains(powers, scales.DType) {
			kind = "mxfp4"
		}
		s.checkFour(w, kind)
		return
	}
	lead, n, width, ok := s.codesMatrix(w)
	if !s.isOf(codes, []weights.DType{weights.I32}) {
		return
	}
	scales, is := s.need(w, Scales, w.Name+"_scale", floats)
	if !ok || !is {
		return
	}
	stated := 0
	if shape, ok := s.optional(w, Shape, []weights.DType{weights.I64, weights.I32}); ok && s.want(shape, w, "", []int{len(codes.Shape)}) {
		stated = statedInputs(shape, slices.Concat(lead, []int{n}))
	}
	inputs := func(bits int) int { // 0: no number fits
		switch {
		case stated > 0 && ceil(stated*bits, 32) == width:
			return stated
		case width*32%bits != 0:
			return 0
		}
		return width * 32 / bits
	}
	g := s.scheme(w, func(g scheme) bool {
		return strings.HasPrefix(g.codes, "int") && inputs(g.bits) > 0 && g.fits("group", scales.Shape, lead, n, inputs(g.bits))
	})
	if g == nil {
		return // without a shape the bits per code are unknown
	}
	if !strings.HasPrefix(g.codes, "int") {
		s.failf(codes.Name, "holds packed integers, but %s implies %s", s.config.at(g.codesIn), g.codes)
		return
	}
	k := inputs(g.bits)
	if held := width * 32 / max(1, stated); k != stated && stated > 0 && !g.fits(g.per, scales.Shape, lead, n, k) {
		s.failf(codes.Name, "holds codes of %d bits (rows of %d words for the %d inputs that %q names), but %s is %d", held, width, stated, w.Name+"_shape",
			s.config.at(s.fieldOf(g, g.bitsIn)), g.bits)
		return
	}
	if k == 0 {
		s.failf(codes.Name, "has rows of %d bits, which is not a multiple of the code's %d bits (%s)", width*32, g.bits, s.config.at(s.fieldOf(g, g.bitsIn)))
		return
	}
	w.Shape = slices.Concat(lead, []int{n, k})
	if k != stated {
		w.Padding = (32 - 1) / g.bits
	}
	w.Format.Codes, w.Format.Per, w.Format.Block = g.codes, g.per, g.size(k)
	if !g.fits(g.per, scales.Shape, lead, n, k) {
		s.checkGroups(w, g, scales, lead, n, k)
		return
	}
	s.needZeros(w, g)
	if zeros, ok := s.optional(w, ZeroPoints, []weights.DType{weights.I32, weights.I8}); ok {
		_, _, groups, _ := matrix(append(slices.Clone(scales.Shape), 1)[:max(2, len(scales.Shape))])
		s.want(zeros, w, "", slices.Concat(lead, []int{ceil(n*g.bits, 32), groups}), slices.Concat(lead, []int{n, groups}))
	}
	if index, ok := s.optional(w, GroupIndex, []weights.DType{weights.I32, weights.I64}); ok {
		s.want(index, w, "", []int{k})
	}
}

// statedInputs reads the number of inputs from the tensor that holds a weight's shape, because packed rows may be padded. It
// returns 0 if the tensor has no data, or if the dimensions before the last differ from front.
func statedInputs(shape Stored, front []int) (k int) {
	if len(shape.Data) < shape.Len()*shape.DType.Bits()/8 {
		return 0
	}
	err := weights.Guard(shape.File, func() error {
		weights.Need(shape.Data)
		for i, d := range front {
			if shape.integer(i) != int64(d) {
				return errors.New("another shape")
			}
		}
		k = int(shape.integer(len(front)))
		return nil
	})
	if err != nil || k < 0 || k > math.MaxInt32 {
		return 0
	}
	return k
}

// gptqOrAWQ returns the methods, GPTQ or AWQ, that the shapes fit: GPTQ packs codes along the inputs, AWQ along the outputs.
func (s *survey) gptqOrAWQ(w *Quantised) []string {
	scales, ok := w.part(Scales)
	codes := w.Tensors[0]
	if _, index := w.part(GroupIndex); index {
		return []string{methodGPTQ}
	}
	if !ok || len(scales.Shape) != 2 || len(codes.Shape) != 2 {
		return []string{methodGPTQ, methodAWQ}
	}
	switch outputs := scales.Shape[1]; outputs {
	case codes.Shape[1]:
		return []string{methodGPTQ}
	case 8 * codes.Shape[1]:
		return []string{methodAWQ}
	}
	return []string{methodGPTQ, methodAWQ}
}

// checkGPTQ checks the layouts of GPTQ and AWQ.
func (s *survey) checkGPTQ(w *Quantised) {
	codes, module := w.Tensors[0], parent(w.Name)
	_, _, _, ok := s.codesMatrix(w)
	i32 := []weights.DType{weights.I32}
	scales, okScales := s.need(w, Scales, strings.TrimPrefix(module+".scales", "."), floats)
	zeros, okZeros := s.need(w, ZeroPoints, strings.TrimPrefix(module+".qzeros", "."), i32)
	if !s.isOf(codes, i32) || !ok || !okScales || !okZeros {
		return
	}
	if len(codes.Shape) != 2 || len(scales.Shape) != 2 || len(zeros.Shape) != 2 || slices.Contains(scales.Shape, 0) {
		s.failf(scales.Name, "has shape %v beside zero points of shape %v and codes of shape %v: all three must be matrices", scales.Shape, zeros.Shape, codes.Shape)
		return
	}
	groups, outputs := scales.Shape[0], scales.Shape[1]
	g := s.scheme(w, func(scheme) bool { return true })
	bits, from := zeros.Shape[1]*32/outputs, ""
	if g != nil && g.bits != 0 && !g.overruled {
		bits, from = g.bits, fmt.Sprintf("%s is %d", s.config.at(g.bitsIn), g.bits)
	}
	if bits < 1 || bits > 32 {
		s.want(zeros, w, "", []int{groups, ceil(outputs*4, 32)})
		return
	}
	if held := zeros.Shape[1] * 32 / outputs; from != "" && held != bits && w.Format.Method != methodAWQ && codes.Shape[1] == outputs && zeros.Shape[1]*32 == outputs*held {
		s.failf(codes.Name, "has zero points of %d bits (tensor %q of shape %v, for %d outputs), but %s", held, zeros.Name, zeros.Shape, outputs, from)
		return
	}
	inputs := codes.Shape[0]
	switch {
	case w.Format.Method == methodAWQ:
		if codes.Shape[1]*32 != outputs*bits {
			s.failf(codes.Name, "has rows of %d bits, but %d codes of %d bits need %d bits (scales %q are for %d outputs)%s",
				codes.Shape[1]*32, outputs, bits, outputs*bits, scales.Name, outputs, because(from))
			return
		}
	case codes.Shape[1] != outputs:
		s.want(scales, w, from, []int{groups, codes.Shape[1]})
		return
	case codes.Shape[0]*32%bits != 0:
		s.failf(codes.Name, "has columns of %d bits, which is not a multiple of the code's %d bits%s", codes.Shape[0]*32, bits, because(from))
		return
	default:
		inputs = codes.Shape[0] * 32 / bits
	}
	if outputs*bits%32 != 0 {
		s.failf(zeros.Name, "has rows of %d zero points of %d bits, which do not fill whole words of 32 bits%s", outputs, bits, because(from))
		return
	}
	size, field := inputs/max(1, groups), ""
	if g != nil && g.group != 0 && !g.overruled {
		size, field = g.group, fmt.Sprintf("%s is %d", s.config.at(g.groupIn), g.group)
		if size == -1 {
			size = inputs
		}
	}
	switch {
	case field == "" && (size == 0 || inputs%size != 0):
		s.failf(codes.Name, "holds %d inputs, which cannot be divided into the %d groups of scales %q", inputs, groups, scales.Name)
		return
	case inputs%size != 0:
		s.failf(codes.Name, "holds %d inputs, which is not a multiple of the group size %d; %s", inputs, size, field)
		return
	}
	okScales = s.want(scales, w, field, []int{inputs / size, outputs})
	okZeros = s.want(zeros, w, from, []int{inputs / size, outputs * bits / 32})
	if index, ok := s.optional(w, GroupIndex, i32); ok && !s.want(index, w, "", []int{inputs}) || !okScales || !okZeros {
		return
	}
	w.Shape = []int{outputs, inputs}
	w.Format.Codes, w.Format.Per, w.Format.Block = fmt.Sprint("int", bits), "group", [2]int{1, size}
	if s.config != nil && w.Format.Method == methodGPTQ {
		w.version = s.config.version
		w.Format.Method = s.config.version
	}
}

// checkBlocks checks the MXFP4 layout of gpt-oss: blocks of 32 values in 16 bytes, each with one scale.
func (s *survey) checkBlocks(w *Quantised) {
	codes := w.Tensors[0]
	if n := len(codes.Shape); n < 3 || codes.Shape[n-1] != 16 || slices.Contains(codes.Shape, 0) {
		s.failf(codes.Name, "has shape %v, but codes in MXFP4 blocks have three or more dimensions, and the last one is 16 bytes", codes.Shape)
		return
	}
	scales, ok := s.need(w, Scales, w.Name+"_scales", powers)
	if !ok {
		return
	}
	front := codes.Shape[:len(codes.Shape)-1]
	if !s.want(scales, w, "a block of 16 bytes has one scale", front) {
		return
	}
	w.Shape = slices.Clone(front)
	w.Shape[len(w.Shape)-1] *= 32
	w.Format.Codes, w.Format.Per, w.Format.Block = "mxfp4", "group", [2]int{1, 32}
}

// checkNested checks the 4-bit formats of bitsandbytes. The values' shape is in the data of quant_state, which cannot be read.
func (s *survey) checkNested(w *Quantised) {
	s.need(w, Scales, w.Name+".absmax", []weights.DType{weights.F32, weights.U8})
	s.isOf(w.Tensors[0], []weights.DType{weights.U8})
	w.Format.Codes = "4 bits"
	for _, t := range w.Tensors {
		if kind, ok := strings.CutPrefix(t.Name, w.Name+".quant_state.bitsandbytes__"); ok {
			w.Format.Codes = kind
		}
	}
}

// checkBytes checks LLM.int8() of bitsandbytes: an absolute maximum for each output.
func (s *survey) checkBytes(w *Quantised) {
	_, n, _, ok := s.codesMatrix(w)
	scales, is := s.need(w, Scales, strings.TrimPrefix(parent(w.Name)+".SCB", "."), floats)
	if !ok || !is || !s.isOf(w.Tensors[0], []weights.DType{weights.I8}) {
		return
	}
	w.Shape, w.Format.Codes, w.Format.Per = w.Tensors[0].Shape, "int8", "channel"
	s.want(scales, w, "", []int{n})
}
