package flag

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lowtoggle/lowtoggle/weights"
)

// OpenModel opens the model that the command line names.
func OpenModel(path string) (*weights.Model, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file or folder", path)
	}
	return weights.Open(path)
}
