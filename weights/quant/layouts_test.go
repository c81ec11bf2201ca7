package quant_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lowtoggle/lowtoggle/weights"
)

// layer is a quantised layer of random shape and bytes, with a function that computes one value at a time.
type layer struct {
	config  string
	tensors []stored
	shape   []int
	value   func(e, n, k int) float32
}

func (l *layer) add(name string, d weights.DType, shape []int, data []byte) {
	l.tensors = append(l.tensors, stored{name, d, shape, data})
}

// draw makes random layers.
type draw struct{ *rand.Rand }

func (r draw) between(low, high int) int { return low + r.IntN(high-low+1) }

func (r draw) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// positive makes n positive scales of a type and returns their values.
func (r draw) positive(d weights.DType, n int) (b []byte, values []float32) {
	for range n {
		v := float32(math.Ldexp(1+r.Float64(), r.between(-12, 3)))
		switch d {
		case weights.U8, weights.F8E8M0:
			e := r.between(0, 254)
			b, v = append(b, byte(e)), float32(math.Ldexp(1, e-127))
		case weights.F8E4M3:
			c := r.between(0, 0x7E)
			f, _ := d.Format()
			b, v = append(b, byte(c)), f.Value(uint32(c))
		case weights.F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		default:
			f, _ := d.Format()
			c := f.FromValue(v)
			if r.IntN(8) == 0 && d == weights.F16 {
				c = uint32(r.between(1, 0x3FF)) // subnormal
			}
			b, v = binary.LittleEndian.AppendUint16(b, uint16(c)), f.Value(c)
		}
		values = append(values, v)
	}
	return b, values
}

// bitsOf reads bits of little-endian words that lie stride words apart.
func bitsOf(data []byte, first, count, stride int) (code int) {
	for i := range count {
		at := first + i
		if data[4*(at/32*stride)+at%32/8]>>(at%8)&1 != 0 {
			code |= 1 << i
		}
	}
	return code
}

// fp8 returns a layer of codes of one byte in one of the methods that store them.
func (r draw) fp8() *layer {
	n, k, experts := r.between(1, 300), r.between(1, 300), 0
	if r.IntN(3) == 0 {
		experts = r.between(1, 3)
	}
	shape := []int{n, k}
	count := 1
	if experts > 0 {
		shape, count = []int{experts, n, k}, experts
	}
	l := &layer{shape: shape}
	codes := r.bytes(count * n * k)
	d := weights.F8E4M3
	l.add("weight", d, shape, codes)
	name, scaleType := "weight_scale", []weights.DType{weights.BF16, weights.F16, weights.F32}[r.IntN(3)]
	block, per := [2]int{n, k}, r.IntN(3)
	lead := shape[:len(shape)-2]
	scaleShape := slices.Concat(lead, []int{1, 1})
	shared := false
	strategy := `"strategy": "tensor"`
	switch per {
	case 0:
		if shared = r.IntN(2) == 0; shared {
			scaleShape = [][]int{{}, {1}}[r.IntN(2)]
		}
	case 1:
		block, scaleShape, strategy = [2]int{1, k}, slices.Concat(lead, []int{n, 1}), `"strategy": "channel"`
		if experts == 0 && r.IntN(2) == 0 {
			scaleShape = []int{n}
		}
	case 2:
		block = [2]int{r.between(1, 130), r.between(1, 130)}
		scaleShape = slices.Concat(lead, []int{(n-1)/block[0] + 1, (k-1)/block[1] + 1})
		strategy = fmt.Sprintf(`"strategy": "block", "block_structure": [%d, %d]`, block[0], block[1])
	}
	l.config = `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"g": {"targets": ["Linear"],
		"weights": {"num_bits": 8, "type": "float", ` + strategy + `}}}}`
	switch r.IntN(4) {
	case 0:
		l.config = `{"quant_method": "fp8", "fmt": "e4m3"}`
		if per == 2 {
			l.config = fmt.Sprintf(`{"quant_method": "fp8", "weight_block_size": [%d, %d]}`, block[0], block[1])
			name = "weight_scale_inv"
			if r.IntN(2) == 0 {
				scaleType = weights.F8E8M0
			}
		} else if per == 1 {
			l.config = `{"quant_method": "fbgemm_fp8"}`
		}
	case 1:
		if per < 2 {
			l.config = `{"quant_method": "modelopt", "quant_algo": "` + []string{"FP8", "FP8_PER_CHANNEL_PER_TOKEN"}[per] + `"}`
		}
	}
	rows, columns := (n-1)/block[0]+1, (k-1)/block[1]+1
	each := rows * columns
	if shared {
		count = 1
	}
	b, scales := r.positive(scaleType, count*each)
	l.add(name, scaleType, scaleShape, b)
	f, _ := d.Format()
	l.value = func(e, i, j int) float32 {
		at := e*each + i/block[0]*columns + j/block[1]
		if shared {
			at = 0
		}
		return f.Value(uint32(codes[(e*n+i)*k+j])) * scales[at]
	}
	return l
}

// int8 returns a layer of I8 codes of compressed-tensors, symmetric or not.
func (r draw) int8() *layer {
	n, group := r.between(1, 70), r.between(1, 40)
	columns := r.between(1, 4)
	k := group * columns
	l := &layer{shape: []int{n, k}}
	codes := r.bytes(n * k)
	l.add("weight", weights.I8, l.shape, codes)
	b, scales := r.positive(weights.BF16, n*columns)
	l.add("weight_scale", weights.BF16, []int{n, columns}, b)
	zeros := make([]byte, n*columns)
	if r.IntN(2) == 0 {
		zeros = r.bytes(n * columns)
		l.add("weight_zero_point", weights.I8, []int{n, columns}, zeros)
	}
	strategy := fmt.Sprintf(`"strategy": "group", "group_size": %d`, group)
	if columns == 1 {
		strategy = `"strategy": "channel"`
	}
	l.config = `{"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"g": {"targets": ["Linear"],
		"weights": {"num_bits": 8, "type": "int", ` + strategy + `}}}}`
	l.value = func(_, i, j int) float32 {
		at := i*columns + j/group
		return float32(int(int8(codes[i*k+j]))-int(int8(zeros[at]))) * scales[at]
	}
	return l
}

// packed returns a layer of packed integers of compressed-tensors: of 1 to 8 bits, rows that do not fill words, zero points whose
// columns do not, and groups whose inputs lie apart.
func (r draw) packed() *layer {
	bits, n, columns := r.between(1, 8), r.between(1, 70), r.between(1, 5)
	group := r.between(1, 50)
	k, experts := group*columns, 1
	l := &layer{shape: []int{n, k}}
	if r.IntN(4) == 0 {
		experts = r.between(1, 3)
		l.shape = []int{experts, n, k}
	}
	lead := l.shape[:len(l.shape)-2]
	words := (k*bits-1)/32 + 1
	codes := r.bytes(4 * words * n * experts)
	l.add("weight_packed", weights.I32, slices.Concat(lead, []int{n, words}), codes)
	d := []weights.DType{weights.BF16, weights.F16, weights.F32}[r.IntN(3)]
	b, scales := r.positive(d, experts*n*columns)
	l.add("weight_scale", d, slices.Concat(lead, []int{n, columns}), b)
	var dims []byte
	for _, dim := range l.shape {
		dims = binary.LittleEndian.AppendUint64(dims, uint64(dim))
	}
	l.add("weight_shape", weights.I64, []int{len(l.shape)}, dims)
	half := 1 << (bits - 1)
	zero := func(int, int, int) int { return half }
	if r.IntN(2) == 0 {
		rows := (n*bits-1)/32 + 1
		zeros := r.bytes(4 * rows * columns * experts)
		l.add("weight_zero_point", weights.I32, slices.Concat(lead, []int{rows, columns}), zeros)
		zero = func(e, i, g int) int { return bitsOf(zeros[4*(e*rows*columns+g):], i*bits, bits, columns) }
	}
	groups := make([]int, k)
	for j := range groups {
		groups[j] = j / group
	}
	if shuffled := r.IntN(3); shuffled > 0 {
		var index []byte
		if shuffled == 1 {
			r.Shuffle(k, func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		}
		for _, g := range groups {
			if shuffled == 2 && k > 3 {
				g = -1
			}
			index = binary.LittleEndian.AppendUint32(index, uint32(g))
		}
		l.add("weight_g_idx", weights.I32, []int{k}, index)
	}
	l.config = fmt.Sprintf(`{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets": ["Linear"],
		"weights": {"num_bits": %d, "type": "int", "strategy": "group", "group_size": %d}}}}`, bits, group)
	l.value = func(e, i, j int) float32 {
		code := bitsOf(codes[4*words*(e*n+i):], j*bits, bits, 1)
		return float32(code-zero(e, i, groups[j])) * scales[(e*n+i)*columns+groups[j]]
	}
	return l
}

// gptq returns a layer of GPTQ, version 1 or 2.
func (r draw) gptq() *layer {
	bits := []int{2, 3, 4, 8}[r.IntN(4)]
	n, k := 32*r.between(1, 5), 32*r.between(1, 8)
	columns := []int{1, 2, 4, 8}[r.IntN(4)]
	group := k / columns
	v1 := r.IntN(2) == 0
	l := &layer{shape: []int{n, k}}
	codes := r.bytes(k * bits / 8 * n)
	l.add("qweight", weights.I32, []int{k * bits / 32, n}, codes)
	zeros, row := r.bytes(columns*n*bits/8), n*bits/8
	less := 0
	if v1 {
		less = 1
		for g := range columns {
			for i := range n {
				if bitsOf(zeros[g*row:], i*bits, bits, 1) == 1<<bits-1 {
					zeros[g*row+i*bits/8] &^= 1 << (i * bits % 8)
				}
			}
		}
	}
	l.add("qzeros", weights.I32, []int{columns, n * bits / 32}, zeros)
	b, scales := r.positive(weights.F16, columns*n)
	l.add("scales", weights.F16, []int{columns, n}, b)
	groups := make([]int, k)
	var index []byte
	for j := range groups {
		groups[j] = j / group
		if r.IntN(2) == 0 {
			groups[j] = r.IntN(columns)
		}
	}
	for j := range groups {
		index = binary.LittleEndian.AppendUint32(index, uint32(groups[j]))
	}
	if r.IntN(3) > 0 {
		l.add("g_idx", weights.I32, []int{k}, index)
	} else {
		for j := range groups {
			groups[j] = j / group
		}
	}
	l.config = fmt.Sprintf(`{"quant_method": "gptq", "checkpoint_format": "%s", "bits": %d, "group_size": %d}`, map[bool]string{true: "gptq", false: "gptq_v2"}[v1], bits, group)
	l.value = func(_, i, j int) float32 {
		g := groups[j]
		code, zero := bitsOf(codes[4*i:], j*bits, bits, n), bitsOf(zeros[g*row:], i*bits, bits, 1)+less
		return float32(code-zero) * scales[g*n+i]
	}
	return l
}

func (r draw) awq() *layer {
	n, columns, group := 8*r.between(1, 20), r.between(1, 4), r.between(1, 50)
	k := columns * group
	l := &layer{shape: []int{n, k}}
	codes, zeros := r.bytes(k*n/2), r.bytes(columns*n/2)
	l.add("qweight", weights.I32, []int{k, n / 8}, codes)
	l.add("qzeros", weights.I32, []int{columns, n / 8}, zeros)
	b, scales := r.positive(weights.F16, columns*n)
	l.add("scales", weights.F16, []int{columns, n}, b)
	l.config = fmt.Sprintf(`{"quant_method": "awq", "bits": 4, "group_size": %d}`, group)
	nibble := func(data []byte, row, i int) int {
		slot := slices.Index([]int{0, 2, 4, 6, 1, 3, 5, 7}, i%8)
		return bitsOf(data[row*n/2+i/8*4:], 4*slot, 4, 1)
	}
	l.value = func(_, i, j int) float32 {
		g := j / group
		return float32(nibble(codes, j, i)-nibble(zeros, g, i)) * scales[g*n+i]
	}
	return l
}

// fp4 returns a layer of MXFP4 or NVFP4, in one of the layouts.
func (r draw) fp4() *layer {
	values := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	kind := r.IntN(4)
	group := []int{32, 32, 16, 16}[kind]
	n, columns, experts := r.between(1, 40), r.between(1, 6), 1
	k := group * columns
	l := &layer{shape: []int{n, k}}
	if kind == 1 || r.IntN(3) == 0 {
		experts = r.between(1, 3)
		l.shape = []int{experts, n, k}
	}
	lead := l.shape[:len(l.shape)-2]
	codes := r.bytes(experts * n * k / 2)
	d := []weights.DType{weights.U8, weights.U8, weights.F8E4M3, weights.F8E4M3}[kind]
	b, scales := r.positive(d, experts*n*columns)
	two, each := slices.Concat(lead, []int{n, k / 2}), slices.Concat(lead, []int{n, columns})
	global := []float32{1}
	divide := false
	switch kind {
	case 0:
		l.add("weight_packed", weights.U8, two, codes)
		l.add("weight_scale", d, each, b)
		l.config = `{"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"g": {"targets": ["Linear"],
			"weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}}}}`
	case 1:
		l.add("up_blocks", weights.U8, []int{experts, n, columns, 16}, codes)
		l.add("up_scales", d, []int{experts, n, columns}, b)
		l.config = `{"quant_method": "mxfp4"}`
	default:
		shape := []int{1}
		if count := experts; r.IntN(2) == 0 && len(lead) > 0 {
			shape = []int{count}
		}
		var data []byte
		data, global = r.positive(weights.F32, shape[0])
		name := "weight_scale_2"
		if divide = kind == 2; divide {
			l.add("weight_packed", weights.U8, two, codes)
			name = "weight_global_scale"
			l.config = `{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"g": {"targets": ["Linear"],
				"weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}}`
		} else {
			l.add("weight", weights.U8, two, codes)
			l.config = `{"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}`
		}
		l.add("weight_scale", d, each, b)
		l.add(name, weights.F32, shape, data)
	}
	l.value = func(e, i, j int) float32 {
		at := (e*n+i)*k + j
		code := codes[at/2] >> (4 * (at % 2)) & 15
		v := values[code&7]
		if code&8 != 0 {
			v = float32(math.Copysign(float64(v), -1))
		}
		s, g := scales[(e*n+i)*columns+j/group], global[min(e, len(global)-1)]
		if divide {
			s /= g
		} else {
			s *= g
		}
		return v * s
	}
	return l
}

// layers are the generators by name.
var layers = map[string]func(draw) *layer{"fp8": draw.fp8, "int8": draw.int8, "packed": draw.packed, "gptq": draw.gptq, "awq": draw.awq, "fp4": draw.fp4}
