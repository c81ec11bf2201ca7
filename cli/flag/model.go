package flag

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
)

// OpenModel opens the model at path, on a disk or in a bucket. The end of ctx ends reading from a bucket. A path of one
// shard of several is an error.
func OpenModel(ctx context.Context, path string) (*weights.Model, error) {
	path, folder, err := Place(path)
	if err != nil {
		return nil, err
	}
	if folder != nil {
		m, err := openStored(ctx, folder)
		return whole(path, m, err)
	}
	m, err := weights.Open(path)
	return whole(path, m, err)
}

// whole returns m and err. If m is one shard of several or a token file, whole closes m and returns an error.
func whole(path string, m *weights.Model, err error) (*weights.Model, error) {
	if err == nil && m.PartOf != "" {
		return nil, errors.Join(fmt.Errorf("%s is one of several shards that %s lists: give the folder %s", path, m.PartOf, m.Dir), m.Close())
	}
	if err == nil && m.Single && onlyTokens(m) {
		return nil, errors.Join(weights.FileErrorf(path, "holds only integers: it is a token file (--tokens), not a model; give the model's folder or its weights"), m.Close())
	}
	return m, err
}

// onlyTokens reports whether all tensors have an integer type of token files.
func onlyTokens(m *weights.Model) bool {
	types := []weights.DType{weights.U8, weights.I16, weights.U16, weights.I32, weights.U32, weights.I64, weights.U64}
	infos := m.Infos()
	return len(infos) > 0 && !slices.ContainsFunc(infos, func(t weights.Info) bool { return !slices.Contains(types, t.DType) })
}

// ReadFile reads a file that the command line names. The error for an absent file or a folder ends with remedy, which
// tells the user what to name.
func ReadFile(path, remedy string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, weights.Absent(path, "there is no such file: "+remedy)
	case err == nil && st.IsDir():
		return nil, weights.FileErrorf(path, "is a folder: %s", remedy)
	}
	return bounded.ReadFile(path, bounded.Index)
}
