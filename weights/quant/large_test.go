package quant_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// TestLargeLayers: a layer that is read in many chunks, in any rows, has the values that are computed one by one. Encoding
// gives its bytes again.
func TestLargeLayers(t *testing.T) {
	const n, k = 256, 6144
	for _, q := range testmodel.Quantisations {
		m := testmodel.Open(t, testmodel.QuantisedLayer(t, q, n, k))
		d, err := quant.Describe(m)
		testmodel.OK(t, err)
		if d.Weights[0].CanRead() != nil {
			continue
		}
		if recoded(t, q.Name, m, d) != 1 {
			t.Errorf("%s: the layer is not read", q.Name)
		}
		w, all := d.Weights[0], quant.Group(m, d).All[0]
		matrix, err := w.Read(0)
		testmodel.OK(t, err)
		for _, r := range [][2]int{{0, n}, {1, n - 1}, {31, 1}, {33, 100}, {n - 1, 1}} {
			rows, part := all.ReadRows(nil, r[0], r[1]), w.Rows(0, r[0], r[1])
			for i := range r[1] {
				for j := i % 37; j < k; j += 37 { // some of each row
					want := math.Float32bits(matrix.Value(r[0]+i, j))
					if got := binary.LittleEndian.Uint32(rows[4*(i*k+j):]); got != want || math.Float32bits(part.Value(i, j)) != want {
						t.Fatalf("%s: rows %v: value %d, %d is %#x in rows, %#x in a part, want %#x", q.Name, r, i, j, got, math.Float32bits(part.Value(i, j)), want)
					}
				}
				if whole := quant.Whole(*part); whole.RowScales(0) != 0 || part.RowScales(i) != part.Place(i, 0)/part.Columns()*part.Columns() {
					t.Fatalf("%s: rows %v: the scales of row %d begin at %d, and of a whole matrix at %d", q.Name, r, i, part.RowScales(i), whole.RowScales(0))
				}
			}
		}
		checkStops(t, q.Name, w, matrix)
	}
}

// checkStops checks that Encode ends at the first error of store, and at a code with too many bits in any place.
func checkStops(t *testing.T, name string, w *quant.Quantised, m *quant.Matrix) {
	t.Helper()
	calls := 0
	testmodel.OK(t, w.Encode(m, 0, func(int, int64, []byte) error { calls++; return nil }))
	for last := range calls {
		full, n := errors.New("full"), 0
		err := w.Encode(m, 0, func(int, int64, []byte) error {
			if n++; n > last {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) || n != last+1 {
			t.Errorf("%s: store fails in call %d, and is called %d times: %v", name, last+1, n, err)
		}
	}
	if len(m.Book.Values) == 256 {
		return
	}
	for _, at := range []int{0, len(m.Codes) / 2, len(m.Codes) - 1} {
		bad := m.Clone()
		bad.Codes[at] = 16
		err := w.Encode(bad, 0, func(int, int64, []byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("weight \"m.up_proj.weight\": code 16 does not exist in %s", m.Book.Codes)) {
			t.Errorf("%s: code %d is 16: %v", name, at, err)
		}
		if unit := w.RowUnit(); unit > 0 {
			codes, _ := w.RowSizes()
			if err := w.EncodeRows(bad, 0, 0, make([]byte, bad.N*codes), nil); err == nil {
				t.Errorf("%s: code %d is 16, and rows are encoded", name, at)
			}
		}
	}
}

// TestMemoryIsUsedAgain: ReadInto reuses the memory of another weight's matrix if it is large enough, and keeps none of the
// other weight's values.
func TestMemoryIsUsedAgain(t *testing.T) {
	m := &quant.Matrix{}
	var codes *byte
	for i, q := range []string{"gptq", "pack-quantized asymmetric", "fp8 block", "compressed nvfp4", "gptq"} {
		model := testmodel.Open(t, testmodel.QuantisedLayer(t, layout(t, q), 128, 256))
		d, err := quant.Describe(model)
		testmodel.OK(t, err)
		testmodel.OK(t, d.Weights[0].ReadInto(m, 0))
		want, err := d.Weights[0].Read(0)
		testmodel.OK(t, err)
		if !bytes.Equal(m.Codes, want.Codes) || !slices.Equal(m.Scales, want.Scales) || !slices.Equal(m.Zeros, want.Zeros) || !slices.Equal(m.Group, want.Group) ||
			m.Global != want.Global || m.Divide != want.Divide || m.Block != want.Block || m.Book.Codes != want.Book.Codes || (m.Zeros == nil) != (want.Zeros == nil) {
			t.Errorf("%s: the matrix differs from one that is read into new memory", q)
		}
		if i > 0 && codes != &m.Codes[0] {
			t.Errorf("%s: new memory for as many codes", q)
		}
		codes = &m.Codes[0]
	}
}

// TestWhatCannotBeRead: every way to read returns an error with the reason and the weight's name.
func TestWhatCannotBeRead(t *testing.T) {
	d, err := quant.Describe(testmodel.Open(t, testmodel.QuantisedLayer(t, layout(t, "bitsandbytes nf4"), 128, 128)))
	testmodel.OK(t, err)
	unread := d.Weights[0]
	d, err = quant.Describe(testmodel.Open(t, testmodel.QuantisedLayer(t, layout(t, "gptq"), 128, 128)))
	testmodel.OK(t, err)
	bare := *d.Weights[0]
	bare.Tensors = slices.Clone(bare.Tensors)
	bare.Tensors[1].Data = bare.Tensors[1].Data[1:]
	for want, w := range map[string]*quant.Quantised{`weight "m.up_proj.weight", nf4 (bitsandbytes): values of this layout cannot be read`: unread, `tensor "m.up_proj.scales": was described without its data`: &bare} {
		for name, read := range map[string]func() error{
			"Read":     func() error { _, err := w.Read(0); return err },
			"ReadInto": func() error { return w.ReadInto(&quant.Matrix{}, 0) },
			"Load":     func() error { _, err := w.Load(0); return err },
			"Values":   func() error { _, err := w.Values(t.Context(), 1); return err },
			"Check":    w.Check,
			"Rows": func() (err error) {
				defer func() { err, _ = recover().(error) }()
				w.Rows(0, 0, 1)
				return nil
			},
		} {
			if w == unread && name == "Values" { // it has no shape, so no experts
				continue
			}
			testmodel.WantError(t, read(), want)
		}
	}
	store := func(int, int64, []byte) error { return nil }
	for name, err := range map[string]error{
		"CanRead": unread.CanRead(), "Encode": unread.Encode(&quant.Matrix{}, 0, store), "EncodeRows": unread.EncodeRows(&quant.Matrix{}, 0, 0, nil, nil),
		"New": second(unread.New(1)), "OperandRows": second(unread.OperandRows(0, 1)), "PackedRows": second(unread.PackedRows(0, 1)),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if unread.RowUnit() != 0 || unread.Dequantised() || d.Weights[0].RowUnit() != 0 {
		t.Error("rows of a layout that cannot be read, or whose outputs share words, can be encoded alone")
	}
	for _, expert := range []int{-1, 1} {
		testmodel.WantError(t, second(d.Weights[0].Read(expert)), fmt.Sprintf("has no expert %d", expert))
		testmodel.WantError(t, d.Weights[0].Encode(&quant.Matrix{}, expert, store), fmt.Sprintf("has no expert %d", expert))
	}
}

func second[T any](_ T, err error) error { return err }

// TestStoringPlainRows: rows are stored in the place from which ReadRows reads them. Values of a quantised weight are
// refused.
func TestStoringPlainRows(t *testing.T) {
	d, err := quant.Describe(testmodel.Open(t, testmodel.QuantisedLayer(t, layout(t, "modelopt fp8"), 128, 128)))
	testmodel.OK(t, err)
	w := d.Weights[0]
	scales, ok := w.Scales()
	if !ok || scales.Name != "m.up_proj.weight_scale" || !w.HasActivationScale() || w.Plain() {
		t.Errorf("scales %v %v, activation scale %v, plain %v", scales.Name, ok, w.HasActivationScale(), w.Plain())
	}
	path := t.TempDir() + "/a.safetensors"
	writeFile(t, path, tensor{"x", weights.BF16, []int{4, 6}}, tensor{"y", weights.F32, nil})
	m := testmodel.Open(t, path)
	set := quant.Group(m, nil)
	for _, w := range set.All {
		for first := range w.Rows {
			rows := w.ReadRows(nil, first, w.Rows-first)
			var stored []byte
			testmodel.OK(t, w.StoreRows(first, rows, func(part int, at int64, b []byte) error {
				if stored = b; part != 0 || at != int64(first*w.RowBytes()) {
					t.Errorf("%s: row %d is stored at byte %d of part %d", w.Name, first, at, part)
				}
				return nil
			}))
			if !bytes.Equal(stored, w.Parts[0].Data[first*w.RowBytes():]) {
				t.Errorf("%s: rows from %d on are %d bytes", w.Name, first, len(stored))
			}
		}
		testmodel.OK(t, w.StoreRows(0, nil, func(int, int64, []byte) error { return errors.New("called for no rows") }))
	}
	if (&quant.Quantised{}).HasActivationScale() || (&quant.Quantised{Tensors: []quant.Stored{{Role: quant.Codes}}}).Plain() || !(&quant.Quantised{Tensors: []quant.Stored{{Role: quant.Values}}}).Plain() {
		t.Error("a weight without tensors has an activation scale, or codes are plain values")
	}
}

// TestRoundScaleOfPowers: the ends of the range of powers of two, and a type without a format.
func TestRoundScaleOfPowers(t *testing.T) {
	powers := quant.Book{ScaleType: weights.F8E8M0}
	for s, want := range map[float32]float32{math.SmallestNonzeroFloat32: 0x1p-127, 0x1p-127: 0x1p-127, 0x1.7p0: 1, 0x1.8p0: 2, 0x1.9p0: 2, 0x1.7p127: 0x1p127, math.MaxFloat32: 0x1p127} {
		if got := powers.RoundScale(s); got != want {
			t.Errorf("%g becomes %g, want %g", s, got, want)
		}
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `scales of type "I64" have no format`) {
			t.Errorf("panic %q", text)
		}
	}()
	(&quant.Book{ScaleType: weights.I64}).RoundScale(1)
}

// TestFormatsByNumber: the format with most weights comes first. Formats with equally many weights are in alphabetical order.
func TestFormatsByNumber(t *testing.T) {
	d := &quant.Description{}
	for _, codes := range []string{"fp8", "int4", "int4", "int8", "awq"} {
		d.Weights = append(d.Weights, &quant.Quantised{Format: quant.Format{Codes: codes}})
	}
	if got, want := d.Formats(), "2 weights in int4; 1 weight in awq; 1 weight in fp8; 1 weight in int8"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestGroupsInOrderAreStored: if neither the matrix nor the source has a group index, neighbouring inputs form the groups.
func TestGroupsInOrderAreStored(t *testing.T) {
	config, tensors := valid("gptq")
	var infos []weights.Info
	for _, x := range tensors {
		infos = append(infos, info("m."+x.name, x.dtype, x.shape...))
	}
	d, err := quant.Describe(&weights.Model{Config: []byte(`{"quantization_config": ` + config + `}`), Shards: []*weights.File{{Path: "model.safetensors", Tensors: infos}}})
	testmodel.OK(t, err)
	w := d.Weights[0]
	m, err := w.New(8)
	testmodel.OK(t, err)
	m.Group = nil
	for i := range m.Zeros {
		m.Zeros[i], m.Scales[i] = 8, 1
	}
	var index []byte
	testmodel.OK(t, w.Encode(m, 0, func(part int, at int64, b []byte) error {
		if w.Tensors[part].Role == quant.GroupIndex {
			index = append(index, b...)
		}
		return nil
	}))
	for k := range 64 {
		if g := int(binary.LittleEndian.Uint32(index[4*k:])); g != k/32 {
			t.Errorf("input %d belongs to group %d", k, g)
		}
	}
}
