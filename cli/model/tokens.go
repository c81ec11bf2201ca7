package model

import (
	"context"
	"fmt"

	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// openTokens reads the token file at path. If path is empty, it reads the file in the model's folder.
func openTokens(ctx context.Context, path, modelDir string) (*tokens.File, error) {
	if path == "" {
		path = tokens.Path(modelDir)
	}
	file, err := flag.ReadTokens(ctx, path)
	if flag.IsAbsent(err) {
		return nil, fmt.Errorf("%[1]s: there is no such file: give --tokens FILE, a safetensors file with the integer tensors %[2]s and %[3]s of shape [sequences, length]",
			path, tokens.Calibration, tokens.Evaluation)
	}
	return file, err
}
