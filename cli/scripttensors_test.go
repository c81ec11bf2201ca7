//go:build unix

package cli

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowtoggle/lowtoggle/weights"
)

// scriptGraft is graft FILE TENSORS. It adds F32 tensors to a safetensors file, or creates the file. TENSORS is a
// file with a JSON object from names to shapes.
func scriptGraft(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE TENSORS")
	shapes := map[string][]int{}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &shapes))
	rewrite(ts, args[0], func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for _, name := range slices.Sorted(maps.Keys(shapes)) {
			info := weights.Info{Name: name, DType: weights.F32, Shape: shapes[name]}
			for i := range info.Len() {
				data[name] = binary.LittleEndian.AppendUint32(data[name], math.Float32bits(float32(math.Sin(float64(i*i)))))
			}
			infos = append(infos, info)
		}
		return infos
	})
}

// scriptRename is rename FILE FROM TO. It replaces the prefix FROM of tensor names in a safetensors file by TO.
func scriptRename(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE FROM TO")
	rewrite(ts, args[0], func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for i, info := range infos {
			if rest, ok := strings.CutPrefix(info.Name, args[1]); ok {
				infos[i].Name, data[args[2]+rest] = args[2]+rest, data[info.Name]
			}
		}
		return infos
	})
}

// scriptRetype is retype FILE PATTERN DTYPE. It replaces the tensors of a safetensors file whose names match by zeros
// of another type.
func scriptRetype(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, "FILE PATTERN DTYPE")
	dtype, err := weights.ParseDType(args[2])
	ts.Check(err)
	rewrite(ts, args[0], func(infos []weights.Info, data map[string][]byte) []weights.Info {
		for i, info := range infos {
			match, err := path.Match(args[1], info.Name)
			ts.Check(err)
			if match {
				infos[i].DType = dtype
				data[info.Name] = make([]byte, info.Len()*dtype.Bits()/8)
			}
		}
		return infos
	})
}

// rewrite changes a safetensors file's tensors. If there is no file, there are no tensors.
func rewrite(ts *testscript.TestScript, file string, change func([]weights.Info, map[string][]byte) []weights.Info) {
	file = ts.MkAbs(file)
	var infos []weights.Info
	data := map[string][]byte{}
	if _, err := os.Stat(file); err == nil {
		f, err := weights.OpenFile(file)
		ts.Check(err)
		defer f.Close()
		infos = slices.Clone(f.Tensors)
		ts.Check(f.Each(func(t weights.Tensor) error {
			data[t.Name] = slices.Clone(t.Data)
			return nil
		}))
		ts.Check(os.Remove(file)) // the file is mapped
	}
	head, placed, err := weights.EncodeHeader(change(infos, data), nil)
	ts.Check(err)
	for _, info := range placed {
		head = append(head, data[info.Name]...)
	}
	ts.Check(os.WriteFile(file, head, 0o666))
}
