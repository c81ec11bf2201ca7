package synth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// TestQuantilesAreFrozen: the quantiles have the bits of amd64, wherever the test runs. They come from math.Erfinv, whose last bits
// depend on the processor.
func TestQuantilesAreFrozen(t *testing.T) {
	h := sha256.New()
	for _, z := range quantiles() {
		h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(z)))
	}
	if have := hex.EncodeToString(h.Sum(nil)); have != "1cfbba1e07e34386a57626f82aeb43e6ed54ba70a3ea6b7d964dc66a841074a8" {
		t.Errorf("the quantiles have the SHA-256 %s", have)
	}
}
