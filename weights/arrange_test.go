package weights

import (
	"bytes"
	"testing"
)

func TestArrange(t *testing.T) {
	data := map[string][]byte{"a": {1, 2, 3, 4}, "b": nil}
	infos := []Info{{Name: "b", DType: BF16, Shape: []int{3}}, {Name: "a", DType: F32, Shape: []int{1}}}
	f, err := Arrange("x.safetensors", infos, map[string]string{"format": "pt"}, func(i Info) []byte { return data[i.Name] })
	if err != nil {
		t.Fatal(err)
	}
	a, ok := f.Tensor("a")
	if !ok || !bytes.Equal(a.Data, data["a"]) || a.Begin != 6 || a.File != "x.safetensors" {
		t.Errorf("a is %+v", a)
	}
	if b, ok := f.Tensor("b"); !ok || b.Data != nil {
		t.Errorf("b is %+v", b)
	}
	head, _, err := EncodeHeader(infos, map[string]string{"format": "pt"})
	if err != nil || !bytes.Equal(f.Head(), head) || f.Size() != int64(len(head))+10 || f.DataSize() != 10 || len(f.Data()) != 0 {
		t.Errorf("head %q, size %d", f.Head(), f.Size())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	_, err = Arrange("x.safetensors", append(infos, infos[0]), nil, func(Info) []byte { return nil })
	wantError(t, err, `x.safetensors: tensor "b": appears twice`)
	_, err = Arrange("x.safetensors", infos, nil, func(Info) []byte { return []byte{1} })
	wantError(t, err, "weights: Arrange: data do not fit tensor b")
}
