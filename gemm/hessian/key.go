package hessian

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// Key identifies statistics by the model's fingerprint, its config.json, the file that describes its family
// (nil for a family of the catalogue) and the tokens. Configuration and family decide the arithmetic, so the
// inputs of layers depend on them.
func Key(fingerprint string, config, family []byte, sets ...tokens.Set) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n%s\n", fingerprint, len(config), config)
	h.Write(family)
	for _, s := range sets {
		fmt.Fprintln(h, s.N, s.T)
		for _, sequence := range s.Sequences {
			_ = binary.Write(h, binary.LittleEndian, sequence) // writing to a hash cannot fail
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
