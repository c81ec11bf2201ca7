package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// openTokens reads the token file that --tokens names; where path is empty, the one in the model's
// folder.
func openTokens(path, modelDir string) (*tokens.File, error) {
	if path == "" {
		path = tokens.Path(modelDir)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file: name one with --tokens: safetensors with integer tensors [sequences, length], called %s and %s",
			path, tokens.Calibration, tokens.Evaluation)
	}
	return tokens.Open(path)
}
